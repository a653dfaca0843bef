"""Writes joints of a model as UsdPhysics joint prims: frames, axes, limits, drives, passive forces, state."""

from __future__ import annotations

import itertools
import math

import numpy as np

from newton_like.exporters.usd.author import Author
from newton_like.exporters.usd.host import FREE_DOF, Host
from newton_like.geometry.transforms import (
    IDENTITY,
    quat_between,
    quat_from_matrix,
    quat_multiply,
    quat_rotate,
    transform_inverse,
    transform_multiply,
)
from newton_like.importers.usd.joints import ANGULAR, LINEAR
from newton_like.importers.usd.own import COORD_ARRAYS, DOF_ARRAYS
from newton_like.model.joint_types import GENERIC_PRIM, JOINT_TYPES, JointTypeRow
from newton_like.types import MAXVAL, JointTargetMode

DEGREE = math.pi / 180.0
_FOLLOWS = (JointTargetMode.POSITION, JointTargetMode.POSITION_VELOCITY)
_MOVES = (JointTargetMode.VELOCITY, JointTargetMode.POSITION_VELOCITY)
"""Drive modes with a position target, and with a velocity target."""
NO_TURN = np.array([0.0, 0.0, 0.0, 1.0])


class JointWriter:
    """Writes joint prims.

    Args:
        author: author of the layer.
        host: arrays of the model.
        remark: function that is called with a statement and a joint's label, for properties that other tools cannot read.
    """

    def __init__(self, author: Author, host: Host, remark):
        self._author, self._host, self._remark = author, host, remark

    def write(self, path: str, joint: int, index: int, ends: tuple[str, str], scope, collides: bool) -> None:
        """Writes one joint.

        Args:
            path: path of its prim.
            joint: index in the model.
            index: index among the joints of its scope.
            ends: paths of the connected prims. If the parent is the world, the first is the prim of the scope, in which world anchors are
                given. It is not written for a FREE joint, because its anchor does not move with its world.
            scope: scope of the joint.
            collides: whether shapes of parent and child collide.
        """
        author, host = self._author, self._host
        kind = JOINT_TYPES[host.joint_type[joint]]
        angular = host.angular(joint)
        axes = host.joint_axis[host.dofs(joint)]
        names, turn, signs = _layout(kind, axes, angular)
        drives = self._drives(joint, kind, names, signs)
        apis = self._apis(joint, kind, names, drives)
        prim = author.prim(path, kind.usd, apis=apis)
        author.set(prim, "newtonLike:label", "string", scope.strip(host.joint_label[joint]))
        author.set(prim, "newtonLike:index", "int", index)
        for number, (end, target) in enumerate(zip(("X_p", "X_c"), ends, strict=True)):
            frame = getattr(host, f"joint_{end}")[joint]
            if number == 0 and host.joint_parent[joint] < 0 and kind.anchored:
                frame = transform_multiply(transform_inverse(scope.frame), frame)
            if number == 1 or host.joint_parent[joint] >= 0 or kind.anchored:
                author.relate(prim, f"physics:body{number}", [target])
            author.set(prim, f"physics:localPos{number}", "point3f", frame[:3])
            author.set(prim, f"physics:localRot{number}", "quatf", quat_multiply(frame[3:], turn))
        for name, value, usual in (
            ("jointEnabled", bool(host.joint_enabled[joint]), True),
            ("excludeFromArticulation", host.joint_articulation[joint] < 0, False),
            ("collisionEnabled", collides, False),
        ):
            if value != usual:
                author.set(prim, f"physics:{name}", "bool", value, uniform=name == "excludeFromArticulation")
        if kind.single_axis:
            self._single(prim, joint, names[0], angular[0])
        elif kind.limits_distance:
            for name, value in (("min", host.joint_min_distance[joint]), ("max", host.joint_max_distance[joint])):
                author.set(prim, f"physics:{name}Distance", "float", value if 0.0 <= value < MAXVAL else -1.0)
        elif kind.compound:
            self._axes_of_d6(prim, joint, names, signs, angular)
        elif kind.turns_only:
            self._stops(prim, joint)
        if not kind.fixed:
            self._own(prim, joint, kind, names, turn, signs, axes)
        for name, gains in drives.items():
            self._drive(prim, name, *gains)

    def _stops(self, prim, joint: int) -> None:
        """Limits of a ball joint. UsdPhysics has none for the angle of a rotation."""
        author, host = self._author, self._host
        swing, angle = float(host.joint_max_swing[joint]), float(host.joint_max_angle[joint])
        if 0.0 <= swing < MAXVAL:
            for i in "01":
                author.set(prim, f"physics:coneAngle{i}Limit", "float", swing / DEGREE)
        if 0.0 <= angle < MAXVAL:
            self._remark("largest angles of ball joints are in newtonLike attributes only", host.joint_label[joint])
        for name, value in (("maxSwing", swing), ("maxAngle", angle)):
            if value >= 0.0:
                author.set(prim, f"newtonLike:{name}", "double", value)

    def mimic(self, path: str, joint: int, leader_path: str) -> None:
        """Writes a mimic relation between two joints whose prims exist."""
        author, host = self._author, self._host
        prim = self._author.layer.GetPrimAtPath(path)
        offset, factor = host.joint_mimic_coeffs[joint]
        unit = DEGREE if host.angular(joint).any() else 1.0
        author.relate(prim, "newton:mimicJoint", [leader_path])
        author.set(prim, "newton:mimicCoef0", "float", offset / unit)
        author.set(prim, "newton:mimicCoef1", "float", factor)

    def _apis(self, joint: int, kind: JointTypeRow, names, drives) -> list[str]:
        host = self._host
        apis = []
        if kind.compound:
            limits = host.joint_limit_lower[host.dofs(joint)], host.joint_limit_upper[host.dofs(joint)]
            bounded = {name for name, low, high in zip(names, *limits, strict=True) if low > -MAXVAL or high < MAXVAL}
            apis += [f"PhysicsLimitAPI:{name}" for name in (*LINEAR, *ANGULAR) if name in bounded or name not in names]
        apis += [f"PhysicsDriveAPI:{name}" for name in drives]
        if kind.axis_by_axis:
            apis += [f"PhysicsJointStateAPI:{name}" for name in names]
            apis.append("NewtonJointAPI")
        if host.joint_mimic_joint[joint] >= 0:
            apis.append("NewtonMimicAPI")
        return apis

    def _drives(self, joint: int, kind: JointTypeRow, names, signs) -> dict[str, tuple]:
        """Drives by dof: (stiffness, damping, target, target velocity, largest force, is an angle)."""
        host = self._host
        rows = range(*host.dofs(joint).indices(len(host.joint_axis)))
        if not kind.axis_by_axis:
            if any(host.joint_target_mode[row] != JointTargetMode.NONE for row in rows):
                what = f"drives of {kind.type.name} joints are in newtonLike attributes only"
                self._remark(what, host.joint_label[joint])
            return {}
        first = int(host.joint_q_start[joint])
        result = {}
        for number, (row, name, angular) in enumerate(zip(rows, names, host.angular(joint), strict=True)):
            mode = JointTargetMode(int(host.joint_target_mode[row]))
            limit = host.joint_effort_limit[row]
            if mode == JointTargetMode.NONE and limit == FREE_DOF["joint_effort_limit"]:
                continue
            follows, moves = mode in _FOLLOWS, mode in _MOVES
            result[name] = (
                host.joint_target_ke[row] if follows else 0.0,
                host.joint_target_kd[row] if follows or moves else 0.0,
                signs[number] * host.joint_target_q[first + number] if follows else 0.0,
                signs[number] * host.joint_target_qd[row] if moves else 0.0,
                limit,
                bool(angular),
            )
        return result

    def _drive(self, prim, name: str, stiffness, damping, target, speed, limit, angular: bool) -> None:
        unit = DEGREE if angular else 1.0
        prefix = f"drive:{name}:physics:"
        set_ = self._author.set
        set_(prim, prefix + "type", "token", "force", uniform=True)
        set_(prim, prefix + "stiffness", "float", stiffness * unit)
        set_(prim, prefix + "damping", "float", damping * unit)
        set_(prim, prefix + "targetPosition", "float", target / unit)
        set_(prim, prefix + "targetVelocity", "float", speed / unit)
        set_(prim, prefix + "maxForce", "float", _open(limit))

    def _single(self, prim, joint: int, name: str, angular: bool) -> None:
        """Writes axis, limits, passive forces and state of a joint with one dof."""
        author, host = self._author, self._host
        row, unit = int(host.joint_qd_start[joint]), DEGREE if angular else 1.0
        axes = host.joint_axis[row : row + 1]
        author.set(prim, "physics:axis", "token", "XYZ"[_token(axes[0])], uniform=True)
        for end, value in (("lower", host.joint_limit_lower[row]), ("upper", host.joint_limit_upper[row])):
            if abs(value) < MAXVAL:
                author.set(prim, f"physics:{end}Limit", "float", value / unit)
        self._passive(prim, row, unit)
        author.set(prim, "newton:stiffness", "float", host.joint_stiffness[row] * unit)
        author.set(prim, "newton:restPosition", "float", host.joint_rest_q[host.joint_q_start[joint]] / unit)
        self._state(prim, joint, [name], [1.0])

    def _passive(self, prim, row: int, unit: float) -> None:
        author, host = self._author, self._host
        for name, value in (
            ("armature", host.joint_armature[row]),
            ("friction", host.joint_friction[row]),
            ("damping", host.joint_damping[row] * unit),
            ("velocityLimit", _open(host.joint_velocity_limit[row]) / unit),
            ("limitStiffness", host.joint_limit_ke[row] * unit),
            ("limitDamping", host.joint_limit_kd[row] * unit),
        ):
            author.set(prim, f"newton:{name}", "float", value)

    def _state(self, prim, joint: int, names, signs) -> None:
        host = self._host
        position, velocity = signs * host.joint_q[host.coords(joint)], signs * host.joint_qd[host.dofs(joint)]
        for name, angular, q, qd in zip(names, host.angular(joint), position, velocity, strict=True):
            unit = DEGREE if angular else 1.0
            self._author.set(prim, f"state:{name}:physics:position", "float", q / unit)
            self._author.set(prim, f"state:{name}:physics:velocity", "float", qd / unit)

    def _axes_of_d6(self, prim, joint: int, names, signs, angular) -> None:
        author, host = self._author, self._host
        rows = host.dofs(joint)
        for name in (*LINEAR, *ANGULAR):
            if name not in names:
                # In UsdPhysics a lower limit above the upper one locks an axis.
                author.set(prim, f"limit:{name}:physics:low", "float", 1.0)
                author.set(prim, f"limit:{name}:physics:high", "float", -1.0)
                continue
            row, sign = rows.start + names.index(name), signs[names.index(name)]
            unit = DEGREE if name in ANGULAR else 1.0
            limits = sorted((sign * host.joint_limit_lower[row], sign * host.joint_limit_upper[row]))
            for end, value in zip(("low", "high"), limits, strict=True):
                if abs(value) < MAXVAL:
                    author.set(prim, f"limit:{name}:physics:{end}", "float", value / unit)
        alike = all(
            np.ptp(getattr(host, column)[rows]) == 0.0
            for column in ("joint_armature", "joint_friction", "joint_damping", "joint_velocity_limit")
        )
        if names and alike and angular.all() == angular.any():
            self._passive(prim, rows.start, DEGREE if angular[0] else 1.0)
        self._state(prim, joint, names, signs)

    def _own(self, prim, joint: int, kind: JointTypeRow, names, turn, signs, axes) -> None:
        """Writes properties without a schema: rotated axes, types that share a prim type, numbers of each dof."""
        author, host = self._author, self._host
        rows, coords = host.dofs(joint), host.coords(joint)
        tokens = [JointTargetMode(int(mode)).name.lower() for mode in host.joint_target_mode[rows]]
        if kind.axis_by_axis or any(token != "none" for token in tokens):
            author.set(prim, "newtonLike:targetModes", "token[]", tokens, uniform=True)
        if kind.usd == GENERIC_PRIM:
            author.set(prim, "newtonLike:jointType", "token", kind.type.name.lower(), uniform=True)
        if not np.array_equal(turn, NO_TURN) or (kind.compound and not _is_standard(names, axes)):
            author.set(prim, "newtonLike:frame", "quatf", turn)
            author.set(prim, "newtonLike:axes", "vector3f[]", axes)
            author.set(prim, "newtonLike:dofs", "token[]", names, uniform=True)
            if kind.compound and not _is_expressible(names, axes, turn, signs):
                self._remark(
                    "D6 joints with axes that are not orthogonal get the nearest orthogonal frame",
                    host.joint_label[joint],
                )
        # For other joints the states of the dofs, or the poses and velocities of the bodies, have these numbers.
        told = set() if kind.turns_only else {"velocity", "position"}
        for table, part in ((DOF_ARRAYS, rows), (COORD_ARRAYS, coords)):
            for name, column in table.items():
                values = getattr(host, column)[part]
                if name not in told and not self._is_told(column, values, kind, rows):
                    author.set(prim, f"newtonLike:{name}", "double[]", values)

    def _is_told(self, column: str, values, kind: JointTypeRow, rows: slice) -> bool:
        """Whether a reader finds these numbers without a ``newtonLike:`` attribute."""
        if column in ("joint_f", "joint_act"):
            return not values.any()
        if column == "joint_friction_ratio":
            return bool(np.all(values == 1.0))
        if kind.compound:
            return column in ("joint_limit_lower", "joint_limit_upper", "joint_qd") and not np.any(
                (self._host.joint_limit_lower[rows] == 0.0) & (self._host.joint_limit_upper[rows] == 0.0)
            )
        if kind.turns_only:
            return False
        if not kind.single_axis:
            usual = FREE_DOF.get(column, 0.0)
            if column in COORD_ARRAYS.values():
                usual = IDENTITY
            return bool(np.all(values == usual))
        mode = JointTargetMode(int(self._host.joint_target_mode[rows.start]))
        follows, moves = mode in _FOLLOWS, mode in _MOVES
        told = {
            "joint_target_ke": follows,
            "joint_target_kd": follows or moves,
            "joint_target_q": follows,
            "joint_target_qd": moves,
        }
        return told.get(column, True) or not values.any()


def _open(limit: float) -> float:
    """The value of a limit in USD files, infinite for no limit."""
    return math.inf if limit >= MAXVAL else float(limit)


def _token(axis: np.ndarray) -> int:
    """Index of the coordinate axis along which an axis lies; also 0 if there is none."""
    along = np.flatnonzero(np.abs(axis) == 1.0)
    return int(along[0]) if len(along) else 0


def _layout(kind: JointTypeRow, axes: np.ndarray, angular: np.ndarray) -> tuple[list[str], np.ndarray, np.ndarray]:
    """UsdPhysics names of the dofs, the rotation from the model's anchors to the frame of their axes, and the sign of each
    dof: -1 for an opposite axis, because the axes of a chain may be left-handed.
    """
    if kind.single_axis:
        along = np.eye(3)[_token(axes[0])]
        turn = NO_TURN if np.array_equal(along, axes[0]) else quat_between(along, axes[0])
        return ["angular" if angular[0] else "linear"], turn, np.ones(1)
    if not kind.compound:
        return [], NO_TURN, np.ones(len(axes))
    return _frame_of_axes(axes, angular)


def _frame_of_axes(axes: np.ndarray, angular: np.ndarray) -> tuple[list[str], np.ndarray, np.ndarray]:
    """A frame whose coordinate axes, up to sign, are the axes of a D6 joint, in ascending order if possible."""
    frames = _candidate_frames(axes)
    cosines = axes @ frames
    slides, turns = _assigned(cosines[:, ~angular]), _assigned(cosines[:, angular])
    nearest = np.concatenate([slides, turns], axis=1)
    signs = np.where(np.take_along_axis(cosines, nearest[..., None], 2)[..., 0] < 0.0, -1.0, 1.0)
    error = np.abs(signs[..., None] * cosines - np.eye(3)[nearest]).max(axis=(1, 2), initial=0.0)
    # The order of rotations changes the motion; the order of translations changes only names.
    unordered = [(np.diff(group) < 0).any(axis=1) for group in (turns, slides)]
    best = np.lexsort((error.round(9), np.count_nonzero(signs < 0.0, axis=1), *reversed(unordered), error > 1.0e-6))[0]
    names = [(ANGULAR if turn else LINEAR)[at] for at, turn in zip(nearest[best], angular, strict=True)]
    turn = NO_TURN if np.array_equal(frames[best], np.eye(3)) else quat_from_matrix(frames[best])
    return names, turn, signs[best]


def _assigned(cosines: np.ndarray) -> np.ndarray:
    """For each frame and up to three directions, the nearest axis of the frame, all different, ``[frames, directions]``."""
    orders = _ORDERS[cosines.shape[1]]
    sums = np.abs(cosines)[:, np.arange(cosines.shape[1]), orders].sum(axis=2)
    return orders[sums.argmax(axis=1)]


def _candidate_frames(axes: np.ndarray) -> np.ndarray:
    """Right-handed frames (columns) with some of the axes as columns, ``[frames, 3, 3]``; the identity is first."""
    distinct: list[np.ndarray] = []
    for axis in axes:
        if all(np.abs(np.dot(axis, other)) < 1.0 - 1.0e-9 for other in distinct):
            distinct.append(axis)
    frames = []
    for first, second in itertools.permutations([*distinct, *np.eye(3)], 2):
        beside = second - np.dot(second, first) * first
        if np.linalg.norm(beside) >= 1.0e-6:
            beside /= np.linalg.norm(beside)
            frames.append(np.stack([first, beside, np.cross(first, beside)], axis=1))
    return np.concatenate([np.eye(3)[None], (np.array(frames)[:, None] @ _RIGHT_HANDED).reshape(-1, 3, 3)])


_ORDERS = [np.array([*itertools.permutations(range(3), n)], dtype=int) for n in range(4)]
"""Orders of up to three of a frame's axes, ``[orders, axes]``."""

_RIGHT_HANDED = np.array(
    [
        turned
        for order in itertools.permutations(range(3))
        for signs in itertools.product((1.0, -1.0), repeat=3)
        if np.linalg.det(turned := np.eye(3)[:, order] * np.array(signs)) > 0.0
    ]
)
"""Matrices that permute and flip the axes of a frame and keep it right-handed, ``[24, 3, 3]``."""


def _is_standard(names, axes) -> bool:
    """Whether readers of UsdPhysics assign these axes in this order."""
    order = [(*LINEAR, *ANGULAR).index(name) for name in names]
    return order == sorted(order) and np.array_equal(np.eye(3)[np.array(order, dtype=int) % 3], axes)


def _is_expressible(names, axes, turn, signs) -> bool:
    frame = np.stack([quat_rotate(turn, e) for e in np.eye(3)])
    wanted = frame[[(*LINEAR, *ANGULAR).index(name) % 3 for name in names]]
    return bool(np.abs(wanted - signs[:, None] * axes).max(initial=0.0) <= 1.0e-6)
