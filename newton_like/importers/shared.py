"""Shared code of importers: arguments, meshes, joint order, restoring the builder after errors, and warnings."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import math
import os
import re
import typing
import warnings
import weakref
from collections import Counter, deque
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from newton_like.callers import outside_level
from newton_like.coercion import as_flag, as_index, as_list, as_member, as_number
from newton_like.geometry import inertia as rigid
from newton_like.geometry.mesh import LEAST_HULL_VERTICES, MAX_HULL_VERTICES, Mesh
from newton_like.geometry.transforms import (
    IDENTITY,
    as_transform,
    quat_between,
    quat_inverse,
    transform,
    transform_multiply,
)
from newton_like.model.columns import COLUMNS
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.model.labels import some_of
from newton_like.model.pairs import PairSet
from newton_like.types import MAXVAL, Axis, BodyFlags, JointType

SHOWN_NAMES = 5
"""Largest number of names that a warning lists; it counts the others, and the report lists all."""

NO_FORCES = dict.fromkeys(("target_ke", "target_kd", "friction", "damping", "stiffness", "armature"), 0.0)
"""Settings of ball joints that close loops. The defaults of a builder are those of the joints of trees."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Checked arguments of all importers; :func:`newton_like.importers.urdf.add_urdf` documents them. An importer derives a
    class with its own arguments.

    Attributes:
        turn: rotation from the axes of the file to those of the builder.
    """

    xform: np.ndarray
    turn: np.ndarray = field(default_factory=IDENTITY.copy)
    floating: bool | None
    base_joint: dict | None
    parent_body: int
    scale: float = 1.0
    override_root_xform: bool
    hide_visuals: bool
    parse_visuals_as_colliders: bool
    force_show_colliders: bool
    enable_self_collisions: bool
    ignore_inertial_definitions: bool
    joint_ordering: str | None
    collapse_fixed_joints: bool
    package_dirs: tuple[Path, ...]
    mesh_maxhullvert: int

    @classmethod
    def read(cls, builder, arguments: dict):
        """Checks arguments. Of those of a single importer, only flags are checked.

        Args:
            builder: the model builder.
            arguments: arguments by name, ``locals()`` of the importer.

        Raises:
            ValueError, TypeError, IndexError: a wrong argument.
        """
        kinds = typing.get_type_hints(cls)
        given = {name: arguments[name] for name in kinds if name in arguments}
        for name, kind in kinds.items():
            if kind is bool or (kind == bool | None and given[name] is not None):
                given[name] = as_flag(given[name], name)
        if given["override_root_xform"] and given["xform"] is None:
            raise ValueError("override_root_xform=True replaces the pose of the root by xform; give xform")
        given["xform"] = as_transform(given["xform"], "xform")
        if "up_axis" in arguments:
            given["turn"] = upright(builder.up_axis, arguments["up_axis"])
        if "scale" in given:
            scale = given["scale"] = as_number(given["scale"], "scale")
            if scale <= 0.0:
                raise ValueError(f"scale {scale:g} must be above 0")
        given["parent_body"] = _parent(builder, given["parent_body"], given["floating"], given["base_joint"])
        if given["joint_ordering"] not in ("dfs", "bfs", None):
            raise ValueError(f"joint_ordering {given['joint_ordering']!r} must be 'dfs', 'bfs' or None")
        given["package_dirs"] = folders(given["package_dirs"])
        most = given["mesh_maxhullvert"]
        most = MAX_HULL_VERTICES if most is None else as_index(most, "mesh_maxhullvert", 2**31)
        if most < LEAST_HULL_VERTICES:
            raise ValueError(f"mesh_maxhullvert {most} must be at least {LEAST_HULL_VERTICES}")
        return cls(**{**given, "mesh_maxhullvert": most})

    @functools.cached_property
    def root_pose(self) -> np.ndarray:
        """Pose of the file's root in the world, or in ``parent_body``."""
        return transform_multiply(self.xform, self.turn)

    def world_pose(self, builder) -> np.ndarray:
        """Pose of the file's root in the world."""
        if self.parent_body < 0:
            return self.root_pose
        return transform_multiply(as_transform(builder.body_q[self.parent_body]), self.root_pose)

    @property
    def frees_root(self) -> bool:
        """Whether the joint of a root body that these arguments give is free and has the world as its parent."""
        base = self.base_joint
        if base is None:
            return bool(self.floating) and self.parent_body < 0
        return not JOINT_TYPES[as_member(JointType, base["joint_type"], "joint_type")].anchored and self.parent_body < 0


def upright(up_axis: Axis, of_file) -> np.ndarray:
    """The rotation from the up axis of a file to another one."""
    return transform(q=quat_between(Axis.from_any(of_file).to_vector(), up_axis.to_vector()))


_meshes: weakref.WeakValueDictionary[tuple, Mesh] = weakref.WeakValueDictionary()


def shared_mesh(vertices, faces, max_hull_vertices: int, path) -> Mesh:
    """A triangle mesh. If a mesh with the same numbers from an earlier import still exists, it is returned, so that worlds from
    the same file share its hull, whose computation takes longer than reading the file.

    Raises:
        ValueError, TypeError: as :class:`Mesh`.
    """
    arrays = [np.ascontiguousarray(array) for array in (vertices, faces)]
    digests = [(array.dtype.str, array.shape, hashlib.blake2b(array).digest()) for array in arrays]
    key = (*digests, max_hull_vertices, str(path))
    mesh = _meshes.get(key)
    if mesh is None:
        mesh = Mesh(*arrays, compute_inertia=False, max_hull_vertices=max_hull_vertices, path=path)
        _meshes[key] = mesh
    return mesh


def _parent(builder, parent_body, floating, base_joint) -> int:
    """The argument ``parent_body`` of an importer as an index.

    Raises:
        ValueError, TypeError, IndexError: a wrong index, or wrong or contradictory arguments for the joint of the root.
    """
    parent_body = as_index(parent_body, "parent_body", builder.body_count, lowest=-1)
    if base_joint is not None:
        if floating is not None:
            raise ValueError("give floating or base_joint, not both: each defines the joint of the root link")
        if not isinstance(base_joint, dict):
            raise TypeError(f"base_joint must be a dictionary of arguments of add_joint, not {base_joint!r}")
        unknown = set(base_joint) - set(inspect.signature(builder.add_joint).parameters)
        if unknown:
            raise TypeError(
                f"base_joint contains {', '.join(map(repr, sorted(unknown, key=str)))}, which add_joint does not accept"
            )
        if "joint_type" not in base_joint:
            raise ValueError(f"base_joint {base_joint!r} has no 'joint_type'; add one, such as JointType.D6")
        wrong = {"parent", "child"} & set(base_joint)
        if wrong:
            raise ValueError(f"base_joint must not contain {', '.join(sorted(wrong))}; use parent_body")
    if parent_body >= 0:
        if floating:
            raise ValueError(
                f"floating=True makes the root move freely, but parent_body is {parent_body}; remove one of the two"
            )
        articulation = articulation_of(builder, parent_body)
        if articulation != builder.articulation_count - 1 or builder.articulation_end[-1] != builder.joint_count:
            raise ValueError(
                f"parent_body: body {builder.body_label[parent_body]!r} (index {parent_body}) is not in the "
                "articulation that was added last, and the joints of an articulation must be consecutive; add this robot before "
                "other articulations"
            )
    return parent_body


def folders(package_dirs) -> tuple[Path, ...]:
    """The argument ``package_dirs`` of an importer as paths."""
    if package_dirs is None:
        return ()
    if isinstance(package_dirs, str | os.PathLike):
        package_dirs = [package_dirs]
    folders = as_list(package_dirs, "package_dirs", "folders")
    for folder in folders:
        if not isinstance(folder, str | os.PathLike):
            raise TypeError(f"package_dirs contains {folder!r}; give folders as strings or paths")
    return tuple(map(Path, folders))


def regular_expressions(value, name: str) -> list[str]:
    """An argument of an importer as regular expressions."""
    patterns = [value] if isinstance(value, str) else as_list(value, name, "regular expressions")
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise TypeError(f"{name} contains {pattern!r}; give regular expressions as strings")
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{name}: {pattern!r} is not a regular expression: {error}") from None
    return patterns


def articulation_of(builder, body: int) -> int:
    """Articulation of a body. Raises ValueError for a body outside of articulations."""
    for joint, child in enumerate(builder.joint_child):
        if child == body and builder.joint_articulation[joint] >= 0:
            return builder.joint_articulation[joint]
    raise ValueError(
        f"parent_body: body {builder.body_label[body]!r} (index {body}) is in no articulation; add it to one first"
    )


def outward(first, below, breadth_first: bool) -> list:
    """All nodes of trees, depth first or breadth first, parents before children.

    Args:
        first: the roots.
        below: function from a node to its children.
        breadth_first: whether the order is breadth first.
    """
    order, waiting = [], deque(first)
    while waiting:
        order.append(waiting.popleft())
        if breadth_first:
            waiting.extend(below(order[-1]))
        else:
            waiting.extendleft(reversed(below(order[-1])))
    return order


def ordered(root, edges: list, ordering: str | None, out_of_order) -> list:
    """Joints of a tree (with ``parent`` and ``child``) with every parent before its children.

    Args:
        root: the root of the tree.
        edges: the joints, in the order of the file.
        ordering: the argument ``joint_ordering``.
        out_of_order: function from a joint that precedes its parent in the file to an error.
    """
    if ordering is None:
        placed = {root}
        for edge in edges:
            if edge.parent not in placed:
                raise out_of_order(edge)
            placed.add(edge.child)
        return edges
    below: dict = {}
    for edge in edges:
        below.setdefault(edge.parent, []).append(edge)
    return outward(below.get(root, ()), lambda edge: below.get(edge.child, ()), ordering == "bfs")


def add_root_joint(builder, options: Options, floating: bool, root: int, pose: np.ndarray, labels) -> int:
    """Adds the joint of a root body: the one of the argument ``base_joint`` if given, else a free or a fixed joint.

    Args:
        pose: pose of the root in ``parent_body``.
        labels: labels of the joint in these three cases; ``base_joint`` may give another label.
    """
    of_base, of_free, of_fixed = labels
    if options.base_joint is None and floating:
        return builder.add_joint_free(root, label=of_free)
    if options.base_joint is None:
        return builder.add_joint_fixed(options.parent_body, root, parent_xform=pose, label=of_fixed)
    if options.override_root_xform:
        anchors = {"parent_xform": pose}
    else:
        # The child anchor gets the rotation, so that the joint's axes are those of the parent.
        anchors = {"parent_xform": transform(pose[:3]), "child_xform": transform(q=quat_inverse(pose[3:]))}
    settings = {"label": of_base, **anchors, **options.base_joint}
    return builder.add_joint(settings.pop("joint_type"), options.parent_body, root, **settings)


def join_articulation(builder, parent_body: int, joints: list[int], label: str) -> int:
    """Adds joints to the articulation of the body that carries them, or to a new one, and returns its index."""
    if parent_body < 0:
        return builder.add_articulation(joints, label=label)
    articulation = articulation_of(builder, parent_body)
    builder.extend_articulation(articulation, joints)
    return articulation


def remark_massless(builder, joints, remark, names=None) -> None:
    """Adds a remark for joints that move no mass and have no armature. Kinematics works for such joints, but solvers raise an error, see
    :mod:`newton_like.model.singular`.

    Args:
        builder: the builder with all bodies, shapes and joints.
        joints: indices, parents before children.
        remark: function that is called with a statement and the name of a joint.
        names: names of joints by index, where they differ from their labels.
    """
    carried: Counter[int] = Counter()
    for joint in reversed(joints):
        child = builder.joint_child[joint]
        carried[child] += builder.body_mass[child]
        carried[builder.joint_parent[joint]] += carried[child]
        first = builder.joint_qd_start[joint]
        armature = builder.joint_armature[first : first + sum(builder.joint_dof_dim[joint])]
        owned, dynamic = builder.joint_articulation[joint] >= 0, builder.body_flags[child] == BodyFlags.DYNAMIC
        if carried[child] == 0.0 and 0.0 in armature and owned and dynamic:
            remark(
                "joints move links without mass; kinematics works, but solvers raise an error: give the links mass or the joints an"
                " armature, or lock the joints",
                (names or {}).get(joint, builder.joint_label[joint]),
            )


def possible_inertia(mass: float, inertia: np.ndarray, what: str, label: str, remark) -> np.ndarray:
    """The inertia, or the nearest physically possible one. In that case `remark` is called with a statement and a name."""
    if rigid.check(mass, inertia) is None:
        return inertia
    possible = rigid.nearest_possible(inertia)
    change = np.linalg.norm(possible - inertia) / np.linalg.norm(inertia)
    remark(
        f"{what} have an impossible inertia (a moment is negative or above the sum of the others); the nearest "
        "possible one is used",
        f"{label} (change: {float(f'{100.0 * change:.2g}'):g} %)",
    )
    return possible


@contextlib.contextmanager
def unchanged_by_errors(builder):
    """Context manager that restores the builder if its block raises."""
    lengths = {column.name: len(getattr(builder, column.name)) for column in COLUMNS}
    others = {
        name: list(getattr(builder, name))
        for name in ("actuators", "articulation_end", "tendons", "world_label", "world_gravity")
    }
    others |= {name: getattr(builder, name) for name in ("world_count", "_current_world", "_gravity", "up_axis")}
    others["shape_collision_filter_pairs"] = PairSet(builder.shape_collision_filter_pairs)
    others["frames"] = builder.frames.copy()
    others["custom_attributes"] = {key: a.copy(a.values.copy()) for key, a in builder.custom_attributes.items()}
    others["custom_frequencies"] = dict(builder.custom_frequencies)
    try:
        yield
    except BaseException:
        for name, length in lengths.items():
            del getattr(builder, name)[length:]
        for name, value in others.items():
            setattr(builder, name, value)
        builder._forget_neighbours()
        raise


def bounded(value: float) -> float:
    """A limit, clamped to `MAXVAL`: files write inf or 1e16 for "no limit"."""
    return math.copysign(min(abs(value), MAXVAL), value)


def report_of(kind, *sources, **own):
    """A report. Each entry is given in `own`, or is the attribute of the same name of the first source that has it."""
    for entry in fields(kind):
        if entry.name not in own:
            value = next(getattr(source, entry.name) for source in sources if hasattr(source, entry.name))
            own[entry.name] = dict(value) if isinstance(value, Counter) else value
    return kind(**own)


def warn(kind: type[UserWarning], report, source: str) -> None:
    """Issues one warning with the remarks of a report, at the line outside of the package that called the importer."""
    statement = told(report.remarks, report.not_understood)
    if statement:
        warnings.warn(kind(f"{source}: {statement}"), stacklevel=outside_level())


def tell(source: str, bodies, joints, shapes) -> None:
    """Prints the numbers of entities that an import added; arguments are their indices."""
    counts = (len({index for index in indices if index >= 0}) for indices in (bodies, joints, shapes))
    print("{}: added {} bodies, {} joints and {} shapes".format(source, *counts))


def told(remarks: dict[str, list[str]], not_understood: dict[str, int]) -> str:
    """The remarks of a report as one sentence; "" if there are none."""
    parts = []
    for statement, names in remarks.items():
        names = list(dict.fromkeys(names))
        parts.append(f"{statement} ({len(names)}): {some_of(names, SHOWN_NAMES)}" if names else statement)
    if not_understood:
        counts = ", ".join(f"{count} {tag}" for tag, count in sorted(not_understood.items()))
        parts.append(f"not understood and ignored: {counts}")
    return "; ".join(parts)
