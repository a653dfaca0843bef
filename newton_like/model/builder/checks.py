"""Reads the lists of a builder as NumPy arrays and refuses numbers that cannot be.

All checks work on whole columns, so that thousands of worlds take as long as NumPy needs to read them. An error names
the first entity that is wrong and says how many more there are.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from newton_like.coercion import LARGEST, as_matrix33, as_number, as_vector
from newton_like.geometry.shapes import SOURCES
from newton_like.geometry.transforms import AXIS_TOLERANCE, UNIT_TOLERANCE, as_transform
from newton_like.model.columns import COLUMNS, COUNTS, INT_SHAPES, KINDS, SHAPES
from newton_like.model.joint_types import JOINT_TYPES, look_up
from newton_like.types import MAXVAL, BodyFlags, GeoType, JointTargetMode, JointType, ShapeFlags

_PLURAL = {"body": "bodies", "coord": "coordinates"}
"""Of kinds that take more than an s."""


class Report:
    """Names entities and raises errors about them."""

    def __init__(self, builder):
        self._builder = builder

    def name(self, kind: str, index: int) -> str:
        """Label, index and world of an entity; of a dof or coordinate: of its joint, and which one it is."""
        builder = self._builder
        index = int(index)
        if kind not in ("dof", "coord"):
            return builder._describe(kind, index)
        starts = np.asarray(builder.joint_qd_start if kind == "dof" else builder.joint_q_start)
        total = getattr(builder, COUNTS[kind])
        joint = int(np.searchsorted(starts, index, side="right")) - 1
        count = (starts[joint + 1] if joint + 1 < len(starts) else total) - starts[joint]
        name = builder._describe("joint", joint)
        return name if count == 1 else f"{name}, {'dof' if kind == 'dof' else 'coordinate'} {index - starts[joint]}"

    def refuse(self, kind: str, wrong: np.ndarray, text, among: np.ndarray | None = None) -> None:
        """Raises ``ValueError`` about the first entity where ``wrong`` is true; ``text(index)`` says what is wrong.

        ``wrong`` has an entry for each entity, or for each of the indices ``among`` them, which ascend.
        """
        indices = np.flatnonzero(wrong) if among is None else among[wrong]
        if indices.size:
            more = f" (and {indices.size - 1} more)" if indices.size > 1 else ""
            index = int(indices[0])
            raise ValueError(f"{self.name(kind, index)}: {text(index)}{more}")


def read_columns(builder, report: Report) -> dict:
    """All columns as float64, int64 and bool arrays (lists where the type is ``object``), checked one by one.

    Raises:
        ValueError: a list has another length than there are entities, or a number is NaN, infinite or out of range.
        TypeError: an entry cannot be read as what it should be.
    """
    columns = {}
    counts = {kind: getattr(builder, COUNTS[kind]) for kind in KINDS if kind not in ("dof", "coord")}
    for column in COLUMNS:
        if column.kind == "dof" and "dof" not in counts:  # the columns of joints have been read by now
            _check_enumeration("joint_type", "joint", JointType, columns, report)
            _check_dof_counts(columns, report)
            counts["dof"] = int(columns["joint_dof_dim"].sum())
            counts["coord"] = counts["dof"] + np.count_nonzero(look_up(columns["joint_type"], "has_quaternion"))
        values, count = getattr(builder, column.name), counts[column.kind]
        if len(values) != count:
            raise ValueError(
                f"builder.{column.name} has {len(values)} entries for {count} {_PLURAL.get(column.kind, column.kind + 's')}; "
                "edit entries, keep their number"
            )
        if column.type == "object":
            columns[column.name] = list(values)
        elif column.type in SHAPES:
            columns[column.name] = _read_reals(column, values, report)
        else:
            columns[column.name] = _read_integers(column, values)
        if column.name.endswith("_label"):
            _check_labels(column.name, values)
    _check_references(columns, counts, report)
    _check_sources(columns, report)
    last = int(builder.shape_collision_filter_pairs.to_array().max(initial=-1))
    if last >= builder.shape_count:
        raise ValueError(
            f"builder.shape_collision_filter_pairs names shape {last}; there are {builder.shape_count}, counted from 0"
        )
    return columns


def _read_reals(column, values: list, report: Report) -> np.ndarray:
    shape = (len(values), *SHAPES[column.type])
    try:
        array = np.array(values)
        if array.dtype.kind not in "fiub":
            raise TypeError
        array = array.astype(np.float64).reshape(shape)
    except (TypeError, ValueError):
        read = _ENTRY[column.type]
        entries = [read(value, f"{report.name(column.kind, i)}: {column.name}") for i, value in enumerate(values)]
        array = np.array(entries).reshape(shape)
    flat = array.reshape(len(values), math.prod(shape[1:]))
    short = column.name.removeprefix(f"{column.kind}_").removeprefix("joint_")
    if column.unlimited:
        report.refuse(column.kind, np.isnan(flat).any(axis=1), lambda i: f"{short} is NaN; give a number")
        array = np.clip(array, -MAXVAL, MAXVAL)
    else:
        wrong = ~np.isfinite(flat).all(axis=1)
        report.refuse(column.kind, wrong, lambda i: f"{short} {_text(values[i])} is not finite; give finite numbers")
        wrong = (np.abs(flat) > LARGEST).any(axis=1)
        report.refuse(
            column.kind, wrong, lambda i: f"{short} {_text(values[i])} is beyond {LARGEST:g}; units are SI (m, kg, s)"
        )
    if column.low is not None:
        wrong = (array.reshape(flat.shape) < column.low).any(axis=1)
        report.refuse(column.kind, wrong, lambda i: f"{short} {_text(values[i])} is below {column.low:g}")
    if column.high is not None:
        wrong = (flat > column.high).any(axis=1)
        report.refuse(column.kind, wrong, lambda i: f"{short} {_text(values[i])} is above {column.high:g}")
    return array


_ENTRY = {
    "real": lambda value, what: as_number(value, what, finite=False),
    "vec2": lambda value, what: as_vector(value, 2, what),
    "vec3": lambda value, what: as_vector(value, 3, what),
    "spatial_vector": lambda value, what: as_vector(value, 6, what),
    "mat33": as_matrix33,
    "transform": as_transform,
}


def _read_integers(column, values: list) -> np.ndarray:
    """Whole numbers (truth values) that fit into the int32 of the model."""
    shape = (len(values), *INT_SHAPES[column.type])
    low, high = (0, 1) if column.type == "bool" else (-(2**31), 2**31 - 1)
    if not values:
        return np.zeros(shape, dtype=bool if column.type == "bool" else np.int64)

    def fits(value, shape) -> bool:
        try:
            array = np.asarray(value)
        except ValueError:  # nested lists of unequal length
            return False
        return array.shape == shape and array.dtype.kind in "iub" and array.min() >= low and array.max() <= high

    if not fits(values, shape):
        wrong = next((i for i, v in enumerate(values) if not fits(v, shape[1:])), 0)
        wanted = {"bool": "True or False", "int": "an integer", "int2": "two integers"}[column.type]
        raise TypeError(f"builder.{column.name}[{wrong}] is {values[wrong]!r}; give {wanted}")
    return np.array(values).astype(bool if column.type == "bool" else np.int64)


def _check_labels(name: str, values: list) -> None:
    wrong = next((i for i, label in enumerate(values) if not isinstance(label, str)), None)
    if wrong is not None:
        raise TypeError(f"builder.{name}[{wrong}] is {values[wrong]!r}; give a string")


def _check_sources(columns: dict, report: Report) -> None:
    """Shapes have the mesh or heightfield of their type, and no other."""
    types = columns["shape_type"].tolist()
    wrong = np.array(
        [
            not isinstance(source, SOURCES.get(kind, type(None)))
            for kind, source in zip(types, columns["shape_source"], strict=True)
        ],
        dtype=bool,
    )

    def text(i):
        wanted = SOURCES.get(types[i])
        found = f"shape_source {columns['shape_source'][i]!r}"
        return f"{found} should be {'None' if wanted is None else f'a {wanted.__name__}'} for this type"

    report.refuse("shape", wrong, text)


def _check_references(columns: dict, counts: dict, report: Report) -> None:
    """Index columns point at entities that exist."""
    for column in COLUMNS:
        if column.refers is None:
            continue
        count = counts[column.refers]
        # The start of a joint without coordinates, and the end of an articulation, may be one past the last entry.
        last = count if column.name.endswith(("_start", "_end")) else count - 1
        values = columns[column.name]
        wrong = (values < -1) | (values > last)
        report.refuse(
            column.kind,
            wrong,
            lambda i, c=column, v=values, n=count: f"{c.name} {v[i]} is not an index of a {c.refers}; there are {n}",
        )


def check_values(columns: dict, report: Report) -> None:
    """Enumerations, quaternions, axes, limits and materials. Rounded quaternions and axes are normalised in place."""
    _check_starts(columns, report)
    _check_flags(columns, report)
    _check_enumeration("joint_target_mode", "dof", JointTargetMode, columns, report)
    _check_enumeration("shape_type", "shape", GeoType, columns, report)
    for name in ("body_q", "joint_X_p", "joint_X_c", "shape_transform"):
        kind = name.split("_")[0]
        columns[name][:, 3:] = _unit(columns[name][:, 3:], "quaternion", name, kind, report)
    _check_joint_quaternions(columns, report)
    columns["joint_axis"] = _unit(columns["joint_axis"], "axis", "joint_axis", "dof", report)
    _orthonormalise_axes(columns, report)
    _check_limits(columns, report)
    _check_drives(columns, report)
    _check_materials(columns, report)


def _check_enumeration(name: str, kind: str, enum, columns: dict, report: Report) -> None:
    values = columns[name]
    wrong = ~np.isin(values, [int(member) for member in enum])
    report.refuse(kind, wrong, lambda i: f"{values[i]} is not a {enum.__name__}; use {', '.join(enum.__members__)}")


def _check_flags(columns: dict, report: Report) -> None:
    flags = columns["body_flags"]
    wrong = ~np.isin(flags, (int(BodyFlags.DYNAMIC), int(BodyFlags.KINEMATIC)))
    report.refuse("body", wrong, lambda i: f"flags {flags[i]} must be BodyFlags.DYNAMIC or BodyFlags.KINEMATIC")
    known = sum(int(flag) for flag in ShapeFlags)
    unknown = columns["shape_flags"] & ~known
    report.refuse("shape", unknown != 0, lambda i: f"flags {columns['shape_flags'][i]} are not made of ShapeFlags")


def _check_dof_counts(columns: dict, report: Report) -> None:
    """Numbers of dofs agree with the joint types."""
    types, dims = columns["joint_type"], columns["joint_dof_dim"]
    fits = np.zeros(len(types), dtype=bool)
    for joint_type, row in JOINT_TYPES.items():
        allowed = (dims >= 0) & (dims <= 3) if row.compound else dims == row.axes
        fits |= (types == joint_type) & allowed.all(axis=1)
    report.refuse(
        "joint", ~fits, lambda i: f"a {JointType(types[i]).name} joint cannot have dof_dim {dims[i].tolist()}"
    )


def _check_starts(columns: dict, report: Report) -> None:
    dofs = columns["joint_dof_dim"].sum(axis=1)
    coords = dofs + look_up(columns["joint_type"], "has_quaternion")
    for name, counts in (("joint_qd_start", dofs), ("joint_q_start", coords)):
        expected = np.concatenate([[0], np.cumsum(counts)[:-1]])
        starts = columns[name]
        wrong = starts != expected[: len(starts)]
        report.refuse("joint", wrong, lambda i, n=name, s=starts, e=expected: f"{n} {s[i]} should be {e[i]}")


def _unit(vectors: np.ndarray, noun: str, name: str, kind: str, report: Report) -> np.ndarray:
    length = np.linalg.norm(vectors, axis=-1)
    cure = "normalise it, quaternions are x, y, z, w" if noun == "quaternion" else "give it length 1"
    wrong = np.abs(length - 1.0) > (UNIT_TOLERANCE if noun == "quaternion" else AXIS_TOLERANCE)
    report.refuse(kind, wrong, lambda i: f"{noun} {vectors[i].tolist()} of {name} has length {length[i]:.6g}; {cure}")
    return vectors / length[:, None]


def quaternion_starts(columns: dict) -> np.ndarray:
    """First coordinate of every quaternion among the joint coordinates."""
    at = look_up(columns["joint_type"], "rotation_at")
    return (columns["joint_q_start"] + at)[at >= 0]


def _check_joint_quaternions(columns: dict, report: Report) -> None:
    starts = quaternion_starts(columns)
    at = starts[:, None] + np.arange(4)
    for name in ("joint_q", "joint_target_q", "joint_rest_q"):
        quaternions = columns[name][at]
        length = np.linalg.norm(quaternions, axis=1)
        report.refuse(
            "coord",
            np.abs(length - 1.0) > UNIT_TOLERANCE,
            lambda i, v=columns[name], n=name: (
                f"the quaternion {v[i : i + 4].tolist()} (x, y, z, w) in {n} has length "
                f"{np.linalg.norm(v[i : i + 4]):.6g}; normalise it"
            ),
            among=starts,
        )
        columns[name][at] = quaternions / length[:, None]


def _orthonormalise_axes(columns: dict, report: Report) -> None:
    """Gram-Schmidt on the angular axes of D6 joints; refuses axes that leave a direction out."""
    d6 = look_up(columns["joint_type"], "compound")
    axis = columns["joint_axis"]
    linear, angular = columns["joint_dof_dim"].T
    start = columns["joint_qd_start"]
    wrong = np.zeros(len(d6), dtype=bool)
    for count in (2, 3):
        joints = np.flatnonzero(d6 & (linear == count))
        vectors = axis[start[joints, None] + np.arange(count)]
        wrong[joints] |= np.linalg.svd(vectors, compute_uv=False)[:, -1] < AXIS_TOLERANCE
    cure = "use fewer axes or turn one of them"
    report.refuse("joint", wrong, lambda i: f"its linear axes are linearly dependent; {cure}")
    for count in (2, 3):
        joints = np.flatnonzero(d6 & (angular == count))
        first = start[joints] + linear[joints]
        for k in range(1, count):
            vector = axis[first + k]
            for other in range(k):
                earlier = axis[first + other]
                vector = vector - np.sum(vector * earlier, axis=1, keepdims=True) * earlier
            length = np.linalg.norm(vector, axis=1)
            wrong[joints] |= length < AXIS_TOLERANCE
            axis[first + k] = vector / np.maximum(length, AXIS_TOLERANCE)[:, None]
    report.refuse("joint", wrong, lambda i: f"its angular axes are linearly dependent; {cure}")


def _check_limits(columns: dict, report: Report) -> None:
    lower, upper = columns["joint_limit_lower"], columns["joint_limit_upper"]
    report.refuse(
        "dof", lower > upper, lambda i: f"limit_lower {lower[i]:g} is above limit_upper {upper[i]:g}; swap them"
    )
    report.refuse(
        "dof", lower >= MAXVAL, lambda i: f"limit_lower {lower[i]:g} excludes all positions; use -inf for no limit"
    )
    report.refuse(
        "dof", upper <= -MAXVAL, lambda i: f"limit_upper {upper[i]:g} excludes all positions; use inf for no limit"
    )
    limited = (lower > -MAXVAL) | (upper < MAXVAL)
    turning = np.repeat(look_up(columns["joint_type"], "has_quaternion"), columns["joint_dof_dim"].sum(axis=1))
    report.refuse(
        "dof",
        limited & turning,
        lambda i: (
            "a joint with a quaternion has no limits of single dofs; use a D6 joint, or max_angle and max_swing of a ball joint"
        ),
    )
    low, high = columns["joint_min_distance"], columns["joint_max_distance"]
    wrong = (low >= 0.0) & (high >= 0.0) & (low > high)
    report.refuse("joint", wrong, lambda i: f"min_distance {low[i]:g} is above max_distance {high[i]:g}; swap them")
    ball = look_up(columns["joint_type"], "turns_only")
    for name in ("max_angle", "max_swing"):
        limit = columns[f"joint_{name}"]
        report.refuse(
            "joint",
            (limit >= 0.0) & (limit < MAXVAL) & ~ball,
            lambda i, n=name, x=limit: f"{n} {x[i]:g} limits rotations of BALL joints only; set it to -1 (none)",
        )


def _check_drives(columns: dict, report: Report) -> None:
    gains = (columns["joint_target_ke"] != 0.0) | (columns["joint_target_kd"] != 0.0)
    silent = np.flatnonzero(gains & (columns["joint_target_mode"] == JointTargetMode.NONE))
    if silent.size:
        warnings.warn(
            f"{report.name('dof', silent[0])}: target gains are set, but target_mode is NONE, so there is no drive "
            f"({silent.size} such dofs); set builder.joint_target_mode to POSITION, VELOCITY or POSITION_VELOCITY",
            stacklevel=5,
        )


def _check_materials(columns: dict, report: Report) -> None:
    collides = (columns["shape_flags"] & int(ShapeFlags.COLLIDE_SHAPES)) != 0
    for name in ("time_constant", "damping_ratio"):
        values = columns[f"shape_material_{name}"]
        report.refuse("shape", collides & (values <= 0.0), lambda i, n=name: f"{n} must be above 0")


def _text(value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
