"""Which joints make the joint-space inertia of a model singular, found on the host from the arrays of the model.

Kinematics, inverse dynamics and the mass matrix itself serve every model. Its inverse does not exist where a degree of freedom moves
no mass and has no armature: a massless link at the end of a chain, a point mass on the axis of its joint, two joints in line with a
massless link between them.

The measure of a degree of freedom is the inertia that it feels with everything behind it free to give way (the pivot ``d`` of the
articulated-body algorithm, Featherstone 2008, table 7.1), over the inertia that it feels with everything behind it rigid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import warp as wp

from newton_like.arrays import unrecorded
from newton_like.geometry.transforms import quat_to_matrix
from newton_like.kernels.edits import NOTHING, REGULAR
from newton_like.model.joint_types import look_up
from newton_like.types import BodyFlags, JointType

SINGULAR = 1.0e-9
"""Smallest over largest moment of a body, or a measure as above, that counts as none. For comparison: a hair, 0.1 mm thick and
1 m long, has 1e-8."""
POSES = 3
"""Configurations that are looked at: zeros, and two random ones. A degree of freedom is singular if its measure vanishes in all of them
but one: rounding alone gives a measure where a joint behind nearly lines up with another by chance."""
CHUNK = 256
"""Articulations that are computed side by side."""


def check_invertible(model, user: str) -> None:
    """Raises ValueError if the mass matrix has no inverse in any configuration, both at ``finalize`` and now. A degree of freedom
    that loses its inertia after ``finalize`` is treated as locked.

    Args:
        model: the model.
        user: what needs the inverse, as messages have it.

    Raises:
        ValueError: a joint moves nothing; the message names the joint and solutions.
    """
    if model._singular is None:
        return
    told, version = model._singular
    if version != model.version:
        with unrecorded(model.device, user):
            told = singular_joints(ModelArrays(model))
        model._singular = None if told is None else (told, model.version)
    _refuse(told, user)


def refuse_singular(model, user: str) -> None:
    """As :func:`check_invertible`, and of inertia that was taken away later, too."""
    _refuse(singular_joints(ModelArrays(model)), user)


def armature_matters(model) -> bool:
    """Whether joints may move nothing if their armature is taken away."""
    arrays = ModelArrays(model)
    arrays.replaced["joint_armature"] = np.zeros(model.joint_dof_count)
    return bool(suspect_joints(arrays).any())


def _refuse(told: str | None, user: str) -> None:
    if told is not None:
        raise ValueError(f"{told}; {user} needs an invertible mass matrix: {CURE}")


class ModelArrays:
    """The arrays of a model on the host, by name; some may be `replaced`."""

    def __init__(self, model):
        self._model, self.replaced = model, {}
        # on a GPU reading an array is a copy
        self._read: dict = {}

    def __getitem__(self, name: str):
        if name in self.replaced:
            return self.replaced[name]
        if name not in self._read:
            value = getattr(self._model, name)
            self._read[name] = value.numpy() if isinstance(value, wp.array) else value
        return self._read[name]


CURE = (
    "give the body mass and inertia (or a shape with density), give the joint an armature (default_joint_cfg.armature before an import, or"
    " builder.joint_armature), or lock the joint with newton_like.dynamics.reduce(builder,"
    " locked_positions={'label of the joint': position})"
)


def singular_joints(arrays) -> str | None:
    """The first joint whose degrees of freedom move nothing in any configuration, in words, and how many more there are; or
    None.

    Args:
        arrays: arrays and labels by the names that a model has for them; on the host.
    """
    suspect = suspect_joints(arrays)
    if not suspect.any():
        return None
    wrong: dict[int, str] = {}
    rng = np.random.default_rng(1)
    for tree in trees_with(arrays, suspect):
        draws = np.stack([np.zeros(tree.dofs), *rng.uniform(-1.0, 1.0, (POSES - 1, tree.dofs))])
        measures = [tree.measures(np.broadcast_to(draw, (tree.count, tree.dofs)))[0] for draw in draws]
        lost = (np.partition(measures, -2, axis=0)[-2] < SINGULAR) & np.repeat(tree.dynamic, tree.sizes, axis=1)
        for a, i in zip(*np.nonzero(lost), strict=True):
            k = int(np.searchsorted(tree.dof_at, i, side="right")) - 1
            wrong.setdefault(int(tree.first_joint[a]) + k, _lack(arrays, tree, a, k))
    if not wrong:
        return None
    joint = min(wrong)
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    kind = JointType(int(arrays["joint_type"][joint])).name
    name = f"joint '{arrays['joint_label'][joint]}' (index {joint})"
    return f"{name}: this {kind} joint moves no inertia: {wrong[joint]}{more}"


def _lack(arrays, tree: Trees, a: int, k: int) -> str:
    body = int(arrays["joint_child"][tree.first_joint[a] + k])
    name = f"body '{arrays['body_label'][body]}' (index {body})"
    mass = tree.carried_mass(a)
    if mass[k] <= 0.0:
        return f"{name} and all bodies behind it have no mass"
    whole, *_ = tree.one(a).measures(np.zeros((1, tree.dofs)), rigid=True)
    if whole[0, tree.dof_at[k] : tree.dof_at[k + 1]].min() < SINGULAR:
        return f"{name} and all that it carries ({mass[k]:g} kg) have no inertia about an axis of the joint"
    return f"{name} has no mass, and other joints move the bodies behind it ({mass[k]:g} kg) in the same way"


def suspect_joints(arrays) -> np.ndarray:
    """Joints ``[joint_count]`` whose own body, with all that is welded to it, has no inertia about some axis, and that have a degree of
    freedom without armature: the only ones that can be singular."""
    dims = arrays["joint_dof_dim"].sum(axis=1)
    owned = arrays["joint_articulation"] >= 0
    moving = (dims > 0) & owned
    body = arrays["joint_child"]
    regular = _regular(arrays["body_mass"], arrays["body_inertia"])
    if regular.all():
        return np.zeros(len(dims), bool)
    ancestor = arrays["joint_ancestor"]
    # pointers jump to the joint that moves a weld
    root = np.where((dims == 0) & (ancestor >= 0), ancestor, np.arange(len(dims)))
    while not np.array_equal(further := root[root], root):
        root = further
    alive = np.zeros(len(dims), bool)
    alive[root[regular[body] & owned]] = True
    stiff = np.append(arrays["joint_armature"] > 0.0, True)
    start = np.append(arrays["joint_qd_start"], 0)[: len(dims)]
    armed = np.logical_and.reduceat(stiff, np.minimum(start, len(stiff) - 1)) if len(dims) else np.zeros(0, bool)
    fixed = arrays["body_flags"][body] != BodyFlags.DYNAMIC
    return moving & ~alive & ~armed & ~fixed


def _regular(mass: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Bodies with mass, and with inertia about every axis."""
    # a copy by entries: strided reads would take twice as long
    xx, xy, xz, _, yy, yz, _, _, zz = np.ascontiguousarray(inertia.reshape(len(mass), 9).T)
    size = (xx + yy + zz) / 3.0
    determinant = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
    return (mass > 0.0) & (determinant > REGULAR * size**3) & (size > NOTHING)


@dataclass
class Trees:
    """Articulations of one shape in NumPy. The base of each stands at the origin, unless `grounded` is true.

    Attributes:
        first_joint: of each articulation, ``[count]``.
        parent: joint that carries each joint, -1 for none, ``[joints]``.
        sizes: numbers of degrees of freedom, ``[joints]``; `linear` are the sliding ones among them.
        dof_at: first of them, and last their number, ``[joints + 1]``.
        whole: whether a joint turns as a whole, about axes that do not turn with it, ``[joints]``.
        dynamic: joints whose body is not kinematic, ``[count, joints]``.
        before, after: poses of the anchors in parent and child, as rotation ``[count, joints, 3, 3]`` and place.
        axis: ``[count, dofs, 3]``.
        armature: ``[count, dofs]``.
        mass, com, inertia: of the bodies, ``[count, joints, ...]``.
        rounding: relative error of all numbers.
    """

    first_joint: np.ndarray
    parent: np.ndarray
    sizes: np.ndarray
    linear: np.ndarray
    dof_at: np.ndarray
    whole: np.ndarray
    dynamic: np.ndarray
    before: tuple[np.ndarray, np.ndarray]
    after: tuple[np.ndarray, np.ndarray]
    axis: np.ndarray
    armature: np.ndarray
    mass: np.ndarray
    com: np.ndarray
    inertia: np.ndarray
    rounding: float
    grounded: bool = False

    @property
    def count(self) -> int:
        """Number of articulations."""
        return len(self.first_joint)

    @property
    def dofs(self) -> int:
        """Number of degrees of freedom of each."""
        return int(self.dof_at[-1])

    def one(self, a: int, copies: int = 1) -> Trees:
        """Copies of one of the articulations."""
        pick = np.full(copies, a)
        parts = {
            name: getattr(self, name)[pick]
            for name in ("first_joint", "dynamic", "axis", "armature", "mass", "com", "inertia")
        }
        frames = {name: tuple(part[pick] for part in getattr(self, name)) for name in ("before", "after")}
        shape = {name: getattr(self, name) for name in ("parent", "sizes", "linear", "dof_at", "whole", "rounding")}
        return Trees(**parts, **frames, **shape)

    def carried_mass(self, a: int) -> np.ndarray:
        """Mass of each body of an articulation with all that it carries, ``[joints]``."""
        mass = self.mass[a].copy()
        for k in range(len(mass) - 1, -1, -1):
            if self.parent[k] >= 0:
                mass[self.parent[k]] += mass[k]
        return mass

    def measures(
        self, q: np.ndarray, rigid: bool = False, holding: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The measure of each degree of freedom, the inertia that it feels with everything behind it rigid, and the size of that inertia
        about any axis.

        Args:
            q: positions of the degrees of freedom [m or rad], ``[count, dofs]``; those of a joint that turns as a whole are turns about
                its axes one after the other.
            rigid: everything behind a joint stays rigid for the measure, too.
            holding: ``[joints]`` bool, joints whose bodies hold everything behind them rigid.

        Returns:
            Each ``[count, dofs]``, the last two in kg or kg m^2; the second with armature. The third is the mass behind a sliding axis, or
            half of the sum of the moments of inertia about a turning joint: 1 to 1.5 times the largest moment about any axis.
        """
        turns, places, subspace, reference = self.kinematics(q)
        # inertia of 1 kg that rounding leaves where there is none: of the given places, and of sums of inertias
        noise = max((16.0 * self.rounding) ** 2, 64.0 * np.finfo(np.float64).eps)
        nearly = noise * np.max([np.sum(place**2, axis=1) for place in (*places, *reference)], axis=0)
        articulated, composite = {}, {}
        measure = np.ones((self.count, self.dofs))
        whole, size = np.zeros_like(measure), np.zeros_like(measure)
        for k in range(len(self.parent) - 1, -1, -1):
            offset = places[k] + _apply(turns[k], self.com[:, k]) - reference[k]
            own = _spatial_inertia(self.mass[:, k], offset, turns[k] @ self.inertia[:, k] @ turns[k].transpose(0, 2, 1))
            felt, body = own.copy(), own
            for c in np.flatnonzero(self.parent == k):
                shift = _shift(reference[c] - reference[k])
                felt = felt + shift.transpose(0, 2, 1) @ articulated.pop(c) @ shift
                body = body + shift.transpose(0, 2, 1) @ composite.pop(c) @ shift
            if rigid or (holding is not None and holding[k]):
                felt = body.copy()
            for i in range(self.dof_at[k + 1] - 1, self.dof_at[k] - 1, -1):
                s, armature = subspace[i], self.armature[:, i]
                u = _apply(felt, s)
                d = np.maximum(np.sum(s * u, axis=1), 0.0) + armature
                whole[:, i] = np.sum(s * _apply(body, s), axis=1) + armature
                turning = i - self.dof_at[k] >= self.linear[k]
                size[:, i] = 0.5 * np.trace(body[:, 3:, 3:], axis1=1, axis2=2) if turning else body[:, 0, 0]
                some = whole[:, i] > np.maximum(NOTHING, nearly * body[:, 0, 0] if turning else 0.0)
                measure[:, i] = np.where(some, d / np.where(some, whole[:, i], 1.0), 0.0)
                inverse = np.where(measure[:, i] > SINGULAR, 1.0 / np.where(d > 0.0, d, 1.0), 0.0)
                felt = felt - u[:, :, None] * u[:, None, :] * inverse[:, None, None]
            articulated[k], composite[k] = felt, body
        return measure, whole, size

    def kinematics(self, q: np.ndarray):
        """Rotations and places of all bodies, the motion of every degree of freedom about the reference point of its joint, and these
        points."""
        turns, places, subspace, reference = [], [], [], []
        for k, parent in enumerate(self.parent):
            turn, place = self.before[0][:, k], self.before[1][:, k]
            if parent >= 0:
                turn, place = turns[parent] @ turn, places[parent] + _apply(turns[parent], place)
            elif not self.grounded:
                place = np.zeros_like(place)
            anchor, first = turn, self.dof_at[k]
            for i in range(first, self.dof_at[k + 1]):
                axis = _apply(anchor if self.whole[k] or i - first < self.linear[k] else turn, self.axis[:, i])
                still = np.zeros_like(axis)
                if i - first < self.linear[k]:
                    place = place + q[:, i, None] * axis
                    subspace.append(np.concatenate([axis, still], axis=1))
                else:
                    subspace.append(np.concatenate([still, axis], axis=1))
                    turn = turn @ _rotation(self.axis[:, i], q[:, i])
            reference.append(place)
            turn = turn @ self.after[0][:, k].transpose(0, 2, 1)
            turns.append(turn)
            places.append(place - _apply(turn, self.after[1][:, k]))
        return turns, places, subspace, reference


def trees_with(arrays, joints: np.ndarray, first_alone: bool = False) -> Iterator[Trees]:
    """The articulations that have some of these joints, gathered by their shape; of equal ones the first alone. With `first_alone` the
    first of each shape, and no others."""
    owner = arrays["joint_articulation"]
    chosen = np.unique(owner[joints & (owner >= 0)])
    start, end = arrays["articulation_start"][chosen], arrays["articulation_end"][chosen]
    ancestor, types, dims = (arrays[name] for name in ("joint_ancestor", "joint_type", "joint_dof_dim"))
    sizes = end - start
    for size in np.unique(sizes):
        first = start[sizes == size]
        index = first[:, None] + np.arange(size)
        local = np.where(ancestor[index] < 0, -1, ancestor[index] - first[:, None])
        shape = np.concatenate([local, types[index], dims[index].reshape(len(first), -1)], axis=1)
        while len(first):
            same = (shape == shape[0]).all(axis=1)
            yield from _gathered(arrays, first[same][: 1 if first_alone else None], shape[0], int(size))
            first, shape = first[~same], shape[~same]


def _gathered(arrays, first: np.ndarray, shape: np.ndarray, size: int) -> Iterator[Trees]:
    parent, types, dims = shape[:size], shape[size : 2 * size], shape[2 * size :].reshape(size, 2)
    dof_at = np.concatenate([[0], np.cumsum(dims.sum(axis=1))])
    joints = first[:, None] + np.arange(size)
    dofs = arrays["joint_qd_start"][first][:, None] + np.arange(dof_at[-1])
    bodies = arrays["joint_child"][joints]
    read = {
        "axis": arrays["joint_axis"][dofs],
        "armature": arrays["joint_armature"][dofs],
        "mass": arrays["body_mass"][bodies],
        "com": arrays["body_com"][bodies],
        "inertia": arrays["body_inertia"][bodies],
        "before": arrays["joint_X_p"][joints],
        "after": arrays["joint_X_c"][joints],
        "dynamic": arrays["body_flags"][bodies] == BodyFlags.DYNAMIC,
    }
    read["before"][:, parent < 0, :3] = 0.0  # where a base stands changes nothing
    rows = np.concatenate([part.reshape(len(first), -1) for part in read.values()], axis=1)
    kept = np.flatnonzero(np.append(True, (rows[1:] != rows[0]).any(axis=1)))
    for at in range(0, len(kept), CHUNK):
        part = kept[at : at + CHUNK]
        numbers = {
            name: values[part].astype(np.float64 if name != "dynamic" else bool) for name, values in read.items()
        }
        frames = {
            name: (quat_to_matrix(numbers[name][..., 3:]), numbers[name][..., :3]) for name in ("before", "after")
        }
        yield Trees(
            first_joint=first[part],
            parent=parent,
            sizes=dims.sum(axis=1),
            linear=dims[:, 0],
            dof_at=dof_at,
            whole=look_up(types, "has_quaternion"),
            rounding=float(np.finfo(read["axis"].dtype).eps),
            **{**numbers, **frames},
        )


def _apply(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return (matrix @ vector[..., None])[..., 0]


def _cross_matrix(r: np.ndarray) -> np.ndarray:
    result = np.zeros((len(r), 3, 3))
    result[:, 0, 1], result[:, 0, 2], result[:, 1, 2] = -r[:, 2], r[:, 1], -r[:, 0]
    return result - result.transpose(0, 2, 1)


def _rotation(axis: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Rodrigues' formula."""
    k = _cross_matrix(axis)
    return np.eye(3) + np.sin(angle)[:, None, None] * k + (1.0 - np.cos(angle))[:, None, None] * (k @ k)


def _spatial_inertia(mass: np.ndarray, com: np.ndarray, about_com: np.ndarray) -> np.ndarray:
    """``[n, 6, 6]``, linear first, about the point that `com` starts at."""
    lever = _cross_matrix(mass[:, None] * com)
    result = np.zeros((len(mass), 6, 6))
    result[:, :3, :3] = mass[:, None, None] * np.eye(3)
    result[:, :3, 3:] = -lever
    result[:, 3:, :3] = lever
    result[:, 3:, 3:] = about_com - lever @ _cross_matrix(com)
    return result


def _shift(offset: np.ndarray) -> np.ndarray:
    """Motions about a point to motions about another one that is `offset` away, ``[n, 6, 6]``."""
    result = np.zeros((len(offset), 6, 6))
    result[:, :3, :3] = result[:, 3:, 3:] = np.eye(3)
    result[:, :3, 3:] = -_cross_matrix(offset)
    return result
