"""Checks of edited arrays on the host, which name what is wrong.

Kernels look at the numbers that they gather from edited arrays (`newton_like.kernels.parameters`). Where one of these numbers cannot be,
:func:`check_numbers` finds its entity. Numbers that a joint or a shape does not use are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from newton_like.geometry import inertia as inertia_math
from newton_like.geometry.shapes import SOURCES
from newton_like.geometry.transforms import AXIS_TOLERANCE, UNIT_TOLERANCE
from newton_like.model.columns import BY_NAME
from newton_like.model.editing.edits import MATERIALS
from newton_like.model.joint_types import look_up
from newton_like.types import MAXVAL, GeoType, JointTargetMode, ShapeFlags


def check_masses(model) -> None:
    """Raises ValueError for masses and moments of inertia that are negative or not finite, and for inertias that no body has."""
    for name, array in (("body_mass", model.body_mass), ("body_inertia", model.body_inertia)):
        numbers = array.numpy().reshape(model.body_count, 1 if name == "body_mass" else 9)
        least = numbers[:, ::4]  # of a matrix, the diagonal
        wrong = ~((least >= 0.0).all(axis=1) & np.isfinite(numbers).all(axis=1))
        if wrong.any():
            i = int(np.argmax(wrong))
            raise ValueError(
                f"body '{model.body_label[i]}' (index {i}): {name} is {numbers[i].tolist()} ({np.count_nonzero(wrong)} bodies in all);"
                " give a finite one of at least 0"
            )
    inertia = model.body_inertia.numpy().astype(np.float64).reshape(model.body_count, 3, 3)
    for i in np.flatnonzero(_impossible(inertia)).tolist():
        told = inertia_math.check(1.0, inertia[i])
        if told is not None:
            raise ValueError(
                f"body '{model.body_label[i]}' (index {i}): body_inertia is {model.body_inertia.numpy()[i].tolist()}: {told}"
            )


def _impossible(inertia: np.ndarray) -> np.ndarray:
    """Inertias ``[n, 3, 3]`` that may be impossible, ``[n]`` bool: those that are not symmetric, or whose second moments ``tr(I) / 2 - I``
    have a negative eigenvalue, by a test that takes less time than eigenvalues."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = np.ascontiguousarray(inertia.reshape(len(inertia), 9).T)
    size = (xx + yy + zz) / 3.0
    slack = inertia_math.RELATIVE_TOLERANCE * size
    skew = np.abs(xy - yx) + np.abs(xz - zx) + np.abs(yz - zy) > slack
    xy, xz, yz = 0.5 * (xy + yx), 0.5 * (xz + zx), 0.5 * (yz + zy)
    a, h = yy * zz - yz * yz, 1.5 * size
    minors = a + xx * zz - xz * xz + xx * yy - xy * xy - h * h
    determinant = h * minors - (xx * a - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz))
    return skew | (minors < -slack * size) | (determinant < -slack * size**2)


_CHECKED = {
    "body": ("body_com",),
    "joint": (
        "joint_X_p", "joint_X_c", "joint_min_distance", "joint_max_distance", "joint_max_angle", "joint_max_swing", "joint_mimic_coeffs",
    ),
    "dof": (
        "joint_axis", "joint_target_mode", "joint_target_ke", "joint_target_kd", "joint_armature", "joint_damping", "joint_stiffness",
        "joint_friction", "joint_friction_ratio", "joint_effort_limit", "joint_velocity_limit", "joint_limit_lower", "joint_limit_upper",
    ),
    "coord": ("joint_rest_q",),
    "shape": ("shape_transform", "shape_scale", "shape_collision_radius", *MATERIALS, "shape_margin", "shape_gap"),
    "world": ("gravity",),
}  # fmt: skip
"""Arrays whose numbers are checked after an edit, by what has them."""

_LIMITS = (
    "joint_effort_limit", "joint_velocity_limit", "joint_limit_lower", "joint_limit_upper", "joint_min_distance", "joint_max_distance",
    "joint_max_angle", "joint_max_swing",
)  # fmt: skip
"""Those of them that may be infinite."""

_POSES = ("joint_X_p", "joint_X_c", "shape_transform")


def check_numbers(model) -> None:
    """Raises ValueError for numbers of :data:`_CHECKED` that are NaN, infinite without being limits, or out of the range that their
    :class:`newton_like.model.columns.Column` allows; for quaternions and axes without length 1, target modes that do not exist, and limits
    that exclude all positions."""
    for kind, names in _CHECKED.items():
        for name in names:
            numbers = getattr(model, name).numpy()
            if not numbers.size:
                continue
            rows = numbers.reshape(len(numbers), -1)
            column = BY_NAME.get(name)
            low, high = (None, None) if column is None else (column.low, column.high)
            if name == "shape_collision_radius":
                low = 0.0
            sound = ~np.isnan(rows) if name in _LIMITS else np.isfinite(rows)
            sound &= (rows >= (-np.inf if low is None else low)) & (rows <= (np.inf if high is None else high))
            bounds = "" if low is None else f" of at least {low:g}"
            bounds += "" if high is None else f" and at most {high:g}"
            give = f"{'numbers' if name in _LIMITS else 'finite numbers'}{bounds}"
            _refuse(model, kind, name, ~sound.all(axis=1), give)
            if name in _POSES:
                _refuse(model, kind, name, _off(rows[:, 3:], UNIT_TOLERANCE), "a quaternion (x, y, z, w) of length 1")
    _refuse(
        model, "dof", "joint_axis", _off(model.joint_axis.numpy(), AXIS_TOLERANCE), "an axis of length 1", _positions
    )
    modes = ~np.isin(model.joint_target_mode.numpy(), [int(mode) for mode in JointTargetMode])
    _refuse(model, "dof", "joint_target_mode", modes, f"one of {', '.join(JointTargetMode.__members__)}")
    lower, upper = model.joint_limit_lower.numpy(), model.joint_limit_upper.numpy()
    _refuse(model, "dof", "joint_limit_lower", lower >= MAXVAL, "a smaller limit, or -inf for none")
    _refuse(model, "dof", "joint_limit_upper", upper <= -MAXVAL, "a larger limit, or inf for none")
    _refuse(model, "dof", "joint_limit_lower", lower > upper, "a limit of at most joint_limit_upper", _positions)
    low, high = model.joint_min_distance.numpy(), model.joint_max_distance.numpy()
    crossed = (low >= 0.0) & (high >= 0.0) & (low > high)
    _refuse(model, "joint", "joint_min_distance", crossed, "a distance of at most joint_max_distance")
    _check_rest(model)
    check_shape_types(model)
    sizes = ~np.isin(model.shape_type.numpy(), list(SOURCES))
    wrong = sizes & (model.shape_scale.numpy() < 0.0).any(axis=1)
    _refuse(model, "shape", "shape_scale", wrong, "sizes of at least 0 [m]")


def check_shape_types(model) -> None:
    """Raises ValueError for types of shapes that do not exist, and for meshes and height fields that collide and have no hull or no heights
    from ``finalize``."""
    types = model.shape_type.numpy()
    wrong = ~np.isin(types, [int(kind) for kind in GeoType])
    _refuse(model, "shape", "shape_type", wrong, f"one of {', '.join(GeoType.__members__)}")
    colliding = (model.shape_flags.numpy() & ShapeFlags.COLLIDE_SHAPES) != 0
    give = "another type, or shape_flags without COLLIDE_SHAPES: the shape was no"
    wrong = colliding & np.isin(types, (GeoType.MESH, GeoType.CONVEX_MESH)) & (model.shape_hull_count.numpy() == 0)
    _refuse(model, "shape", "shape_type", wrong, f"{give} colliding mesh at finalize, and has no hull")
    wrong = colliding & (types == GeoType.HFIELD)
    wrong[wrong] = [model.shape_source[s] is None for s in np.flatnonzero(wrong)]
    _refuse(model, "shape", "shape_type", wrong, f"{give} height field at finalize, and has no heights")


def check_mesh_scales(model) -> None:
    """Raises ValueError if the scale of a mesh that collides is not that of its hull, which ``finalize`` computes."""
    if model._hull_scale is not None:
        hull = model.shape_hull_count.numpy() > 0
        wrong = hull & (model.shape_scale.numpy() != model._hull_scale.numpy()).any(axis=1)
        give = "the scale of finalize again: hulls do not follow scales (change the scale in the builder and finalize again, or edit"
        _refuse(model, "shape", "shape_scale", wrong, f"{give} hull_points)")


def _check_rest(model) -> None:
    """Rest orientations of joints with a quaternion have length 1."""
    types = model.joint_type.numpy()
    turning = np.flatnonzero(look_up(types, "has_quaternion"))
    first = model.joint_q_start.numpy()[turning] + look_up(types, "rotation_at")[turning]
    rest = model.joint_rest_q.numpy()
    wrong = np.zeros(len(rest), bool)
    wrong[first] = _off(rest[first[:, None] + np.arange(4)], UNIT_TOLERANCE)
    _refuse(
        model,
        "coord",
        "joint_rest_q",
        wrong,
        "four numbers from here on that are a quaternion (x, y, z, w) of length 1",
    )


def _off(vectors: np.ndarray, tolerance: float) -> np.ndarray:
    """Vectors whose length is not 1."""
    return ~(np.abs(np.linalg.norm(vectors.astype(np.float64), axis=1) - 1.0) <= tolerance)


def _dofs(model, joints: np.ndarray) -> np.ndarray:
    """The degrees of freedom of chosen joints, ``[joint_dof_count]`` bool."""
    return np.repeat(joints, np.diff(model.joint_qd_start.numpy()))


def _positions(model) -> np.ndarray:
    """Degrees of freedom with a coordinate and an axis of their own."""
    return _dofs(model, look_up(model.joint_type.numpy(), "axis_by_axis"))


def _distances(model) -> np.ndarray:
    return look_up(model.joint_type.numpy(), "limits_distance")


def _balls(model) -> np.ndarray:
    return look_up(model.joint_type.numpy(), "turns_only")


_USED: dict[str, Callable] = {
    "joint_min_distance": _distances,
    "joint_max_distance": _distances,
    "joint_max_angle": _balls,
    "joint_max_swing": _balls,
    "joint_mimic_coeffs": lambda model: model.joint_mimic_joint.numpy() >= 0,
}
"""Which entries of an array are used, where some are not."""


def _refuse(model, kind: str, name: str, wrong: np.ndarray, give: str, used: Callable | None = None) -> None:
    """Raises ValueError about the first wrong entry of an array; `give`: the cure, `used`: which entries are looked at."""
    used = used or _USED.get(name)
    found = np.flatnonzero(wrong if used is None else wrong & used(model))
    if not found.size:
        return
    i, entity, noun = int(found[0]), int(found[0]), kind
    if kind in ("dof", "coord"):
        starts = model.joint_qd_start if kind == "dof" else model.joint_q_start
        entity, noun = int(np.searchsorted(starts.numpy(), i, side="right")) - 1, "joint"
    label = "" if kind == "world" else f"'{getattr(model, f'{noun}_label')[entity]}' "
    number = getattr(model, name).numpy()[i].tolist()
    raise ValueError(
        f"{noun} {label}(index {entity}): {name}[{i}] is {number} ({found.size} entries in all); give {give}"
    )
