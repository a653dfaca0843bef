"""Reduced models: joints are locked, and the child links of locked joints are merged into their parents."""

from __future__ import annotations

import copy

import numpy as np

from newton_like.coercion import as_list, as_vector
from newton_like.geometry.transforms import (
    UNIT_TOLERANCE,
    as_transform,
    quat_from_axis_angle,
    quat_inverse,
    quat_multiply,
    quat_rotate,
    transform,
    transform_multiply,
)
from newton_like.model.builder.builder import ModelBuilder
from newton_like.model.builder.checks import Report, check_values, read_columns
from newton_like.model.builder.collapse import joints_called
from newton_like.model.columns import COLUMNS, COUNTS
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.model.pairs import PairSet
from newton_like.types import JointType

MIMIC_TOLERANCE = 1.0e-6
"""Largest difference [m or rad] between the given position of a locked mimic joint and the position that follows from its leader."""


def reduce(builder: ModelBuilder, joints_to_keep=None, locked_positions=None) -> ModelBuilder:
    """A copy of a robot, or of a whole scene, in which only some joints can move.

    The child link of a locked joint is merged into its parent link (or into the world): masses and inertias are combined, and shapes,
    sites and child joints move to the parent with unchanged poses. The frames of merged links become named frames. The result moves as
    the original robot with locked joints. Fixed joints that are not kept are also merged. Loop joints and disabled joints are not
    changed. The given builder does not change; the result must be finalized.

    Args:
        builder: the builder, before :meth:`ModelBuilder.finalize`.
        joints_to_keep: labels or indices of the joints that stay movable. All other joints are locked, except those of floating
            bases (FREE or DISTANCE, on the world), which are locked only if ``locked_positions`` contains them. A label selects
            all joints with this label, as in the worlds of a scene. The last part of a label (``"elbow"`` for ``"arm/elbow"``) is enough
            where it is unique in each articulation. By default all joints that are not in ``locked_positions``.
        locked_positions: positions of locked joints: a dict from labels or indices to coordinates (a number, or as many as the joint has
            in ``joint_q``; quaternions x y z w). The default is the builder's ``joint_q``; for mimic joints it follows from their leaders.

    Returns:
        The new builder.

    Raises:
        KeyError: no joint has one of the labels.
        IndexError: no joint has one of the indices.
        TypeError: a model or something else is given instead of a builder, or something else instead of a number.
        ValueError: a name is ambiguous; a joint is both kept and locked, cannot be locked (it closes a loop or is disabled), has another
            number of coordinates, a quaternion that is not of unit length, or only one of a leader and its follower is kept.
    """
    if not isinstance(builder, ModelBuilder):
        raise TypeError(
            f"reduce() works on a ModelBuilder, before finalize(), not on a {type(builder).__name__}; links and joints of a "
            "finished model are fixed"
        )
    if joints_to_keep is None and locked_positions is None:
        raise TypeError("reduce() needs joints_to_keep or locked_positions")
    report = Report(builder)
    columns = read_columns(builder, report)
    check_values(columns, report)
    given = _given(builder, {} if locked_positions is None else locked_positions)
    locked = _locked(builder, joints_to_keep, given)
    positions = _positions(builder, columns, locked, given)

    result = _copied(builder)
    coms = [np.array(c) for c in columns["body_com"]]
    for joint in locked:
        first, (linear, angular) = columns["joint_qd_start"][joint], columns["joint_dof_dim"][joint]
        motion = _motion(columns["joint_axis"][first : first + linear + angular], int(linear), positions[joint])
        result.joint_X_p[joint] = tuple(transform_multiply(columns["joint_X_p"][joint], motion).tolist())
    _fix(result, locked)
    kept = sorted(set(range(builder.joint_count)) - set(locked))
    remap = result.collapse_fixed_joints(joints_to_keep=kept)
    _keep_velocities(result, {new: coms[old] for old, new in remap["body_remap"].items() if old >= 0})
    return result


def _given(builder, locked_positions) -> dict[int, object]:
    """The given positions, by index of the joint."""
    if not hasattr(locked_positions, "items"):
        raise TypeError(f"locked_positions must be a dict from joints to positions, not {locked_positions!r}")
    given = {}
    for key, value in locked_positions.items():
        for joint in joints_called(builder, key):
            if joint in given:
                raise ValueError(f"locked_positions contains {builder._describe('joint', joint)} twice")
            if builder.joint_articulation[joint] < 0 or not builder.joint_enabled[joint]:
                what = "closes a loop" if builder.joint_articulation[joint] < 0 else "is disabled"
                raise ValueError(f"{builder._describe('joint', joint)} {what} and cannot be locked")
            given[joint] = value
    return given


def _locked(builder, joints_to_keep, given: dict) -> list[int]:
    if joints_to_keep is None:
        locked = set(given)
    else:
        names = as_list(joints_to_keep, "joints_to_keep", "labels or indices")
        kept = {j for name in names for j in joints_called(builder, name)}
        both = sorted(kept & set(given))
        if both:
            raise ValueError(f"{builder._describe('joint', both[0])} is in joints_to_keep and in locked_positions")
        for joint in set(range(builder.joint_count)) - set(given):
            loop = builder.joint_articulation[joint] < 0 or not builder.joint_enabled[joint]
            if loop or (_floats(builder, joint) and builder.joint_parent[joint] < 0):
                kept.add(joint)
        locked = set(range(builder.joint_count)) - kept
    for follower, leader in enumerate(builder.joint_mimic_joint):
        if leader >= 0 and (follower in locked) != (leader in locked):
            raise ValueError(
                f"{builder._describe('joint', follower)} follows {builder._describe('joint', leader)}; keep both or lock both"
            )
    return sorted(locked)


def _floats(builder, joint: int) -> bool:
    return JOINT_TYPES[builder.joint_type[joint]].floats


def _positions(builder, columns: dict, locked: list[int], given: dict) -> dict[int, np.ndarray]:
    """Coordinates of the locked joints."""
    ends = [*builder.joint_q_start[1:], builder.joint_coord_count]
    positions = {}
    for joint in locked:
        positions[joint] = columns["joint_q"][builder.joint_q_start[joint] : ends[joint]]
        if joint in given:
            positions[joint] = _read(builder, joint, given[joint], len(positions[joint]))
    for joint in locked:
        leader = builder.joint_mimic_joint[joint]
        if leader >= 0:
            offset, ratio = columns["joint_mimic_coeffs"][joint]
            wanted = offset + ratio * positions[leader]
            if joint in given and np.abs(positions[joint] - wanted).max(initial=0.0) > MIMIC_TOLERANCE:
                raise ValueError(
                    f"{builder._describe('joint', joint)} cannot be locked at {positions[joint].tolist()}: it follows "
                    f"{builder._describe('joint', leader)}, which puts it at {wanted.tolist()}"
                )
            positions[joint] = wanted
    return positions


def _read(builder, joint: int, value, count: int) -> np.ndarray:
    what = f"position of {builder._describe('joint', joint)}"
    q = np.array(as_vector([value] if np.ndim(value) == 0 else value, count, what))
    if count > sum(builder.joint_dof_dim[joint]):
        length = np.linalg.norm(q[-4:])
        if abs(length - 1.0) > UNIT_TOLERANCE:
            raise ValueError(f"{what}: the quaternion {q[-4:].tolist()} has length {length:.6g}; normalise it")
        q[-4:] /= length
    return q


def _motion(axes: np.ndarray, linear: int, q: np.ndarray) -> np.ndarray:
    """The transform of a joint at its coordinates: translations along the first axes, then rotations about the others or a quaternion."""
    turn = np.array([0.0, 0.0, 0.0, 1.0])
    if len(q) > len(axes):
        turn = q[-4:]
    else:
        for axis, angle in zip(axes[linear:], q[linear:], strict=True):
            turn = quat_multiply(turn, quat_from_axis_angle(axis, angle))
    return transform(q[:linear] @ axes[:linear], turn)


def _copied(builder: ModelBuilder) -> ModelBuilder:
    result = copy.copy(builder)
    for name in (*[column.name for column in COLUMNS], "world_label", "world_gravity"):
        setattr(result, name, list(getattr(builder, name)))
    result.world_gravity = [copy.copy(gravity) for gravity in builder.world_gravity]
    for name in ("default_joint_cfg", "default_shape_cfg"):
        setattr(result, name, copy.copy(getattr(builder, name)))
    result.custom_attributes = {key: a.copy(a.values.copy()) for key, a in builder.custom_attributes.items()}
    result.custom_frequencies = dict(builder.custom_frequencies)
    result.shape_collision_filter_pairs = PairSet(builder.shape_collision_filter_pairs)
    result.frames = builder.frames.copy()
    result._forget_neighbours()
    return result


def _fix(builder: ModelBuilder, locked: list[int]) -> None:
    """Makes the locked joints FIXED, and removes their coordinates."""
    remap = {"joint_constraint": _blocked(builder, locked)}
    for kind, name in (("dof", "joint_qd_start"), ("coord", "joint_q_start")):
        total = getattr(builder, COUNTS[kind])
        starts = [*getattr(builder, name), total]
        gone = {i for j in locked for i in range(starts[j], starts[j + 1])}
        keep = [i for i in range(total) if i not in gone]
        remap[kind] = {old: new for new, old in enumerate(keep)}
        for column in COLUMNS:
            if column.kind == kind:
                values = getattr(builder, column.name)
                setattr(builder, column.name, [values[i] for i in keep])
        setattr(builder, name, np.searchsorted(keep, starts[:-1]).tolist())
    builder._renumber_custom(remap)
    for joint in locked:
        builder.joint_type[joint] = int(JointType.FIXED)
        builder.joint_dof_dim[joint] = (0, 0)
        builder.joint_mimic_joint[joint] = -1
        builder.joint_mimic_coeffs[joint] = (0.0, 1.0)
        for name in ("min_distance", "max_distance", "max_angle", "max_swing"):
            getattr(builder, f"joint_{name}")[joint] = -1.0


def _blocked(builder: ModelBuilder, locked: list[int]) -> dict[int, int]:
    """New indices of the constraint directions of joints that are not locked, by old index."""
    old = [6 - linear - angular for linear, angular in builder.joint_dof_dim]
    new = [6 if joint in locked else count for joint, count in enumerate(old)]
    starts = zip(np.cumsum([0, *old]).tolist(), np.cumsum([0, *new]).tolist(), strict=True)
    pairs = zip(starts, old, range(len(old)), strict=False)
    return {a + i: b + i for (a, b), count, joint in pairs if joint not in locked for i in range(count)}


def _keep_velocities(builder: ModelBuilder, old_coms: dict[int, np.ndarray]) -> None:
    """Shifts initial velocities of bodies and of FREE and DISTANCE joints to the new centres of mass, whose velocities they are."""
    for body, old in old_coms.items():
        shift = np.array(builder.body_com[body]) - old
        qd = np.array(builder.body_qd[body], dtype=np.float64)
        qd[:3] += np.cross(qd[3:], quat_rotate(as_transform(builder.body_q[body])[3:], shift))
        builder.body_qd[body] = tuple(qd.tolist())
        for joint in builder._joints_of(body):
            if builder.joint_child[joint] == body and _floats(builder, joint):
                q, v = builder.joint_q_start[joint] + 3, builder.joint_qd_start[joint]
                turn = quat_multiply(
                    builder.joint_q[q : q + 4], quat_inverse(as_transform(builder.joint_X_c[joint])[3:])
                )
                velocity = np.array(builder.joint_qd[v : v + 6], dtype=np.float64)
                moved = velocity[:3] + np.cross(velocity[3:], quat_rotate(turn, shift))
                builder.joint_qd[v : v + 3] = moved.tolist()
