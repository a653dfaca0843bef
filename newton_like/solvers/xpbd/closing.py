"""Loop joints that are open when they are made, and joints that are open when they are enabled or moved: steps close them slowly.

Steps close most of a gap at once, because forces and impacts open joints fast. A gap that was there before would throw the bodies.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.geometry.transforms import (
    quat_inverse,
    quat_multiply,
    quat_rotate,
    transform_inverse,
    transform_multiply,
)
from newton_like.kernels.solvers.xpbd.joints import JOINT_NUMBERS, PARENT_AT, PARENT_FRAME
from newton_like.model.joint_types import look_up
from newton_like.solvers.xpbd.edited import put_numbers
from newton_like.solvers.xpbd.tables import joint_rows

_EDITED = ("joint_enabled", "joint_X_p", "joint_X_c")


def openings(model, joints: np.ndarray, body_q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far joints are open along what they lock: ways of the child's anchor, ``[n, 3]`` [m], and rotation vectors of its frame,
    ``[n, 3]`` [rad], in the frame of the parent's anchor.

    Args:
        model: the model.
        joints: indices.
        body_q: poses of bodies, ``[body_count, 7]``.
    """
    from scipy.spatial.transform import Rotation  # an import takes a quarter of a second

    poses = np.append(np.asarray(body_q, dtype=np.float64).reshape(-1, 7), [[0, 0, 0, 0, 0, 0, 1]], axis=0)
    ends = []
    for side, name in (("p", "parent"), ("c", "child")):
        frame = getattr(model, f"joint_X_{side}").numpy()[joints].astype(np.float64)
        ends.append(transform_multiply(poses[getattr(model, f"joint_{name}").numpy()[joints]], frame))
    between = transform_multiply(transform_inverse(ends[0]), ends[1])
    way, turned = between[:, :3].copy(), between[:, 3:]
    dims, first = model.joint_dof_dim.numpy()[joints], model.joint_qd_start.numpy()[joints]
    kinds = model.joint_type.numpy()[joints]
    axes = np.append(model.joint_axis.numpy().astype(np.float64).reshape(-1, 3), np.zeros((6, 3)), axis=0)
    for i in range(3):
        axis = np.where((i < dims[:, 0])[:, None], axes[first + i], 0.0)
        way -= axis * (axis * way).sum(axis=1, keepdims=True)
    # a hinge has one axis in both frames; the first of two axes is the parent's, the second one the child's, and they are perpendicular
    two = dims[:, 1] == 2
    here, there = axes[first + dims[:, 0]], axes[first + dims[:, 0] + np.where(two, 1, 0)]
    there = quat_rotate(turned, there)
    normal = np.cross(here, there)
    length = np.linalg.norm(normal, axis=1)
    angle = np.arctan2(length, (here * there).sum(axis=1)) - np.where(two, 0.5 * np.pi, 0.0)
    turn = normal * (angle / np.maximum(length, 1.0e-12))[:, None]
    turn = np.where((dims[:, 1] == 0)[:, None], Rotation.from_quat(turned).as_rotvec(), turn)
    turn[look_up(kinds, "has_quaternion") | (dims[:, 1] == 3)] = 0.0
    floats = look_up(kinds, "floats")
    way[floats] = 0.0
    return way, turn


def _shorter(vectors: np.ndarray, by: float) -> np.ndarray:
    """Vectors whose lengths are smaller, and not below zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors * np.maximum(0.0, 1.0 - by / np.maximum(length, 1.0e-30))


class ClosingJoints:
    """Which joints of a solver close slowly, at `max_depenetration_speed` [m/s, rad/s], until they are closed.

    For each step, the anchor of the parent is moved to where that of the child should be after the step, so that arms of impulses are
    those of a closed joint, and a sub-step closes its share of the way.

    Attributes:
        active: whether the next step must look at joints.

    Args:
        model: the model.
    """

    def __init__(self, model):
        self._model = model
        self._slow = np.zeros(model.joint_count, dtype=bool)
        # joints of trees that poses of the first state open are closed at once, as in Newton
        self._loops = model.joint_articulation.numpy() < 0
        self._new = self._loops.copy()
        self.active = bool(self._new.any())
        self._known = self._arrays()

    def _arrays(self) -> list[np.ndarray]:
        return [getattr(self._model, name).numpy().copy() for name in _EDITED]

    def after_edit(self) -> None:
        """Looks at joints again that were enabled, or whose anchors were moved, relative to their bodies."""
        old, self._known = self._known, self._arrays()
        enabled, before = self._known[0].astype(bool), old[0].astype(bool)
        moved = [(a != b).any(axis=1) for a, b in zip(self._known[1:3], old[1:3], strict=True) if len(a)]
        self._new |= enabled & np.logical_or.reduce([~before, *moved])
        self._slow &= enabled
        self.active = bool((self._new | self._slow).any())

    def after_reset(self, mask: wp.array) -> None:
        """Looks at joints that close loops again, in the worlds that `mask` names."""
        if self._loops.any():
            child, parent = self._model.joint_child.numpy(), self._model.joint_parent.numpy()
            world = self._model.body_world.numpy()[np.where(child >= 0, child, parent)]
            self._new |= self._loops & np.append(mask.numpy().astype(bool), True)[world]
            self.active = bool((self._new | self._slow).any())

    def before_step(self, solver, body_q: wp.array, speed: float, dt: float) -> None:
        """Finds joints that are open by more than a sub-step may close, and moves their anchors for the next step.

        Args:
            solver: the solver.
            body_q: poses of bodies as the step begins.
            speed: the speed at which joints close [m/s, rad/s].
            dt: length of the step.
        """
        seen = np.flatnonzero((self._new | self._slow) & self._model.joint_enabled.numpy().astype(bool))
        slow, shown = np.zeros_like(self._slow), np.zeros(0, dtype=int)
        if len(seen):
            way, turn = openings(self._model, seen, body_q.numpy())
            opened = (
                np.maximum(np.linalg.norm(way, axis=1), np.linalg.norm(turn, axis=1)) > speed * dt / solver.substeps
            )
            shown, way, turn = seen[opened], _shorter(way[opened], speed * dt), _shorter(turn[opened], speed * dt)
        slow[shown] = True
        if (slow | self._slow).any():
            self._move_anchors(solver, np.flatnonzero(self._slow & ~slow), None, None)
            self._move_anchors(solver, shown, way, turn)
        changed = (slow != self._slow).any()
        self._slow, self.active = slow, bool(slow.any())
        self._new[:] = False
        if changed or solver._joints["closing"] != int(self.active):
            self._write(solver)

    def _move_anchors(self, solver, joints: np.ndarray, way: np.ndarray | None, turn: np.ndarray | None) -> None:
        """Writes constants of joints; if given, with anchors of parents that are moved and turned."""
        place = np.full(self._model.joint_count + 1, -1)
        place[joints] = np.arange(len(joints))
        lanes = solver._lane_joint
        block, lane = np.nonzero((place[lanes] >= 0) & ~solver._lengths[:, None])
        if not len(block):
            return
        own = place[lanes[block, lane]]
        rows = joint_rows(self._model, lanes[block, lane], solver._lengths[block])
        if way is not None:
            from scipy.spatial.transform import Rotation

            frame = self._model.joint_X_p.numpy()[joints[own], 3:].astype(np.float64)
            rows[:, PARENT_AT : PARENT_AT + 3] += quat_rotate(frame, way[own])
            there = quat_multiply(quat_multiply(frame, Rotation.from_rotvec(turn[own]).as_quat()), quat_inverse(frame))
            rows[:, PARENT_FRAME : PARENT_FRAME + 4] = quat_multiply(there, rows[:, PARENT_FRAME : PARENT_FRAME + 4])
        shape = len(lanes), JOINT_NUMBERS, lanes.shape[1]
        put_numbers(solver._joints["numbers"], shape, (block, slice(None), lane), rows)

    def lanes(self, joint: np.ndarray) -> np.ndarray:
        """One for each lane whose joint closes slowly, for joints of lanes, -1 for none."""
        return np.append(self._slow, False)[joint].astype(np.float64)

    def _write(self, solver) -> None:
        """Writes which joints close slowly into the tables of the solver."""
        joint, tables = solver._lane_joint, solver._joints
        if len(joint):
            put_numbers(tables["slow"], joint.shape, (slice(None),), self.lanes(joint))
        if tables["closing"] != int(self.active):
            tables["closing"] = int(self.active)
            solver._recorded.clear()
