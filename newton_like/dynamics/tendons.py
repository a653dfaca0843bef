"""Tendons: their lengths, speeds and Jacobians."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from newton_like.arrays import constant_array
from newton_like.dynamics.internal.common import Q, V, by_articulation, columns, evaluate, output_arrays, state_arrays
from newton_like.dynamics.internal.frames import WORLD
from newton_like.dynamics.names import names_of
from newton_like.geometry.transforms import quat_to_matrix
from newton_like.kernels.dynamics.tendons import (
    ARMATURE,
    AXES,
    CENTER,
    DAMPING,
    EFFORT_LIMIT,
    END,
    FRICTION,
    ITEM_NUMBERS,
    JOINT,
    KD,
    KE,
    LIMIT_KE,
    LIMIT_LOWER,
    LIMIT_UPPER,
    OFFSET,
    RADIUS,
    REST_LOWER,
    REST_UPPER,
    SCALE,
    SIDE,
    START,
    STIFFNESS,
    TENDON,
)
from newton_like.kernels.tree import MASSIVE, STRAIGHT
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.model.tendons import piece_kind, pieces_of
from newton_like.programs.program import Field, Program

PLACES = {
    "offset": OFFSET, "stiffness": STIFFNESS, "damping": DAMPING, "armature": ARMATURE, "rest_lower": REST_LOWER, "rest_upper": REST_UPPER,
    "target_ke": KE, "target_kd": KD, "effort_limit": EFFORT_LIMIT, "friction": FRICTION, "limit_lower": LIMIT_LOWER,
    "limit_upper": LIMIT_UPPER, "limit_ke": LIMIT_KE,
}  # fmt: skip
"""Where the arrays ``tendon_*`` of a model are in the record of a tendon."""


@dataclass(frozen=True)
class TendonItems:
    """The items of the tendons of an articulation: for each tendon the five integers of each item, see `kernels.dynamics.tendons`. Bodies
    are links, -1 is the world; in the last place of a piece, -2 is no side site. `lines`: the same of rows that are no tendons."""

    tendons: tuple[tuple[tuple[int, int, int, int, int], ...], ...]
    lines: tuple[tuple[tuple[int, int, int, int, int], ...], ...] = ()

    def of(self, batch) -> dict:
        """Integers and arrays of ``Tree`` for programs; see `tables` of :class:`newton_like.programs.program.Program`."""
        template = batch.template
        own = [item for tendon in self.tendons for item in tendon]
        dofs = max((item[1] for item in own if item[0] == JOINT), default=-1)
        links = max((k for item in own if item[0] != JOINT for k in item[1:]), default=-1)
        if dofs >= template.dofs or links >= template.bodies:
            # articulations of another shape, which a mask leaves out
            return tree_tables([TendonItems(((),) * len(self.tendons))], template)
        return tree_tables([self], template)


def tree_tables(trees: list[TendonItems], template) -> dict:
    """Integers and arrays of ``Tree`` for the tendons of the trees of a template, and then for their lines."""
    starts, items, spans = [0], [], []
    for i, listed in (*((i, x.tendons) for i, x in enumerate(trees)), *((i, x.lines) for i, x in enumerate(trees))):
        first = int(template.tree_at[i])
        dof, coord = int(template.dof_at[first]), int(template.q_at[first])

        def body(k: int, first=first, i=i) -> int:
            return first + k if k >= 0 else template.bodies + i if k == WORLD else -1

        for tendon in listed:
            moved = {0} if template.dofs else set()
            for kind, a, b, around, beside in tendon:
                if kind == JOINT:
                    items.append((JOINT, dof + a, coord + b, -1, -1))
                    leaves = [dof + a]
                else:
                    ends = [body(a), body(b), body(around), body(beside)]
                    items.append((kind, *ends))
                    leaves = [int(template.leaf[k]) for k in ends[:3] if 0 <= k < template.bodies]
                for leaf in leaves:
                    if leaf >= 0:
                        at = int(template.chain_at[leaf])
                        moved |= set(template.chain[at : at + int(template.depth[leaf]) + 1].tolist())
            starts.append(len(items))
            spans.append(sorted(moved))
    ends = len(spans) + 1 + np.cumsum([0, *map(len, spans)])
    return {
        "tendons": len(spans),
        "tendon_at": np.array(starts, dtype=int),
        "tendon_item": np.array(items, dtype=int).reshape(-1),
        "tendon_span": np.concatenate([ends, *spans]).astype(int),
    }


class Tendons:
    """The tendons of a model, by articulations, for one version of the model.

    Attributes:
        index: for each articulation, indices of its tendons in the model, in their order there.
        items: the items of its tendons; equal ones are the same object.
        count: the largest number of tendons of an articulation.

    Raises:
        ValueError: a tendon runs through two articulations or none, or along coordinates of a joint that are no lengths or angles; a path
            wraps around nothing.
    """

    def __init__(self, model):
        self.version = model.version
        self._shapes = _Shapes(model)
        self.index: list[list[int]] = [[] for _ in range(model.articulation_count)]
        found: list[list[tuple]] = [[] for _ in range(model.articulation_count)]
        numbers: list[list[list]] = [[] for _ in range(model.articulation_count)]
        armature = model.tendon_armature.numpy()
        tied = {k for n, tendon in enumerate(model.tendons) for tie in tendon.ties for k in (n, n + tie.leader)}
        for n, tendon in enumerate(model.tendons):
            what = f"tendon '{tendon.label}' (index {n})"
            owners, items, origin = _items(model, tendon, what, self._shapes)
            if tendon.is_spatial and (armature[n] > 0.0 or n in tied or "tendon_armature" in model.varying):
                # wraps have no curvature here, see `newton_like.solvers.featherstone.tendons`
                items = tuple((MASSIVE if item[0] == STRAIGHT else item[0], *item[1:]) for item in items)
            if not owners:
                raise ValueError(
                    f"{what} runs through the world only, and no joint changes its length; let its path begin or end at a body that moves"
                )
            if len(owners) != 1:
                raise ValueError(
                    f"{what} runs through {len(owners)} articulations, and is supported within one; make one of them before finalize, by"
                    " builder.merge_articulations()"
                )
            (a,) = owners
            self.index[a].append(n)
            found[a].append(items)
            numbers[a].append(origin)
        known: dict = {}
        self.items = [known.setdefault(tuple(x), TendonItems(tuple(x))) for x in found]
        self.count = max(map(len, self.index), default=0)
        self._origins = [[item for tendon in x for item in tendon] for x in numbers]
        self._vectors: dict = {}
        self.lines: list[list] = [[] for _ in self.index]
        # indices of the tendons of each articulation; -1: none
        self.table = np.full((model.articulation_count, self.count), -1)
        for a, own in enumerate(self.index):
            self.table[a, : len(own)] = own

    def numbers(self, model, articulations) -> np.ndarray:
        """Records of the tendons and of their items, ``[len(articulations), ...]``, of articulations with the same items."""
        index = np.array([self.index[a] for a in articulations], dtype=int)
        records = np.zeros((*index.shape, TENDON))
        for name, at in PLACES.items():
            records[..., at] = getattr(model, f"tendon_{name}").numpy().astype(np.float64)[index]
        origins = np.array([self._origins[a] for a in articulations], dtype=np.float64)
        items = self._shapes.numbers(origins.reshape(-1, 6)).reshape(len(index), -1)
        return np.concatenate([records.reshape(len(index), -1), items], axis=1)

    def line_numbers(self, articulations) -> np.ndarray:
        """Numbers of the items of the lines, ``[len(articulations), ...]``, of articulations with the same items."""
        return np.array([np.ravel(self.lines[a]) for a in articulations], dtype=np.float64)

    def add_lines(self, items: list[list[tuple]], numbers: list[list]) -> None:
        """Adds rows that are no tendons, see `TendonItems`: for each articulation their items, and the numbers of each item."""
        known: dict = {}
        new = [replace(mine, lines=tuple(x)) for mine, x in zip(self.items, items, strict=True)]
        self.items, self.lines = [known.setdefault(x, x) for x in new], numbers

    def parts(self, model) -> list[tuple]:
        """Of articulations with equal items: these, a mask of the articulations (None: all), and their numbers."""
        if not self._vectors:
            for items in dict.fromkeys(self.items):
                own = [a for a, mine in enumerate(self.items) if mine is items]
                numbers = self.numbers(model, own)
                n, lacking = len(items.tendons), self.count - len(items.tendons)
                # records that are missing are zero
                numbers = np.insert(numbers, [TENDON * n] * (TENDON * lacking), 0.0, axis=1)
                vectors = np.zeros((model.articulation_count, numbers.shape[1]))
                vectors[own] = numbers
                mask = np.zeros(model.articulation_count, dtype=bool)
                mask[own] = True
                mask = None if mask.all() else constant_array(mask, wp.bool, model.device)
                items = TendonItems(items.tendons + ((),) * lacking)
                self._vectors[items] = mask, constant_array(vectors, model.dtype, model.device)
        return [(items, *parts) for items, parts in self._vectors.items()]


class _Shapes:
    """Shapes of a model on the host, and what joints and bodies they may be with."""

    def __init__(self, model):
        self.shape_type, self.shape_body = model.shape_type.numpy().tolist(), model.shape_body.numpy().tolist()
        self.transform = model.shape_transform.numpy().astype(np.float64)
        self.scale = model.shape_scale.numpy().astype(np.float64)
        names = names_of(model)
        self.bodies = names.articulation.tolist(), names.link.tolist()
        joints = (model.joint_type, model.joint_articulation, model.joint_q_start, model.joint_qd_start)
        self.joints = *(x.numpy().tolist() for x in joints), names.start.tolist()
        # lists of all of them would take seconds in models of many worlds
        self.shape_transform, self.shape_scale = self.transform, self.scale

    def numbers(self, origins: np.ndarray) -> np.ndarray:
        """Numbers of items, ``[n, ITEM_NUMBERS]``, from `origins`: factor, first and last shape, shape around, side site; -1: none."""
        table = np.zeros((len(origins), ITEM_NUMBERS))
        table[:, SCALE] = origins[:, 0]
        for column, at in ((1, START), (2, END), (3, CENTER), (4, SIDE)):
            shape = origins[:, column].astype(int)
            has = shape >= 0
            table[has, at : at + 3] = self.transform[shape[has], :3]
        around = origins[:, 3].astype(int)
        wraps = np.flatnonzero(around >= 0)
        if len(wraps):
            shapes, of = np.unique(around[wraps], return_inverse=True)
            axes, where = np.unique(self.transform[shapes, 3:], axis=0, return_inverse=True)
            turned = np.array([quat_to_matrix(q).ravel() for q in axes])
            table[wraps, AXES : AXES + 9] = turned[where.ravel()][of.ravel()]
            table[wraps, RADIUS] = self.scale[around[wraps], 0]
        return table


def _items(model, tendon, what: str, shapes: _Shapes) -> tuple[set, tuple, list]:
    """The articulations of a tendon, the integers of its items, and what their numbers are made of."""
    owners, items, origins = set(), [], []
    if tendon.joints:
        types, articulation, q_start, qd_start, start = shapes.joints
        for j, dof, coefficient in tendon.joints:
            a = articulation[j]
            if a < 0 or JOINT_TYPES[types[j]].has_quaternion or not 0 <= dof < qd_start[j + 1] - qd_start[j]:
                raise ValueError(
                    f"{what}: joint '{model.joint_label[j]}' (index {j}) has no coordinate {dof} in an articulation that is a length or an"
                    " angle; name another joint"
                )
            owners.add(a)
            first = start[a]
            items.append((JOINT, qd_start[j] - qd_start[first] + dof, q_start[j] - q_start[first] + dof, -2, -2))
            origins.append((coefficient, -1, -1, -1, -1, -1))
        return owners, tuple(items), origins

    articulations, links = shapes.bodies

    def link(shape: int) -> int:
        body = shapes.shape_body[shape]
        if body < 0:
            return WORLD
        if articulations[body] < 0:
            raise ValueError(
                f"{what}: body '{model.body_label[body]}' belongs to no articulation; fix it to the world with a fixed joint"
            )
        owners.add(articulations[body])
        return links[body]

    for entry in tendon.path:
        if entry[0] == "geom" and entry[1] < 0:
            raise ValueError(
                f"{what}: the path wraps around a shape that the model lacks; import it with parse_visuals=True"
            )
    for a, b, around, beside, divisor in pieces_of(tendon):
        try:
            kind = piece_kind(shapes, around, beside)
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from None
        ends = (link(a), link(b), link(around) if around >= 0 else -2, link(beside) if beside >= 0 else -2)
        items.append((kind, *ends))
        origins.append((1.0 / divisor, a, b, around, beside, -1))
    return owners, tuple(items), origins


_tendons: WeakKeyDictionary = WeakKeyDictionary()


def tendons_of(model) -> Tendons:
    """The tendons of a model; found again after :meth:`Model.notify_changed`.

    Raises:
        ValueError: see :class:`Tendons`.
    """
    tendons = _tendons.get(model)
    if tendons is None or tendons.version != model.version or len(model.tendons) != sum(map(len, tendons.index)):
        tendons = _tendons[model] = Tendons(model)
    return tendons


def tendon_kinematics(model, state, *, out=None) -> tuple[wp.array, wp.array, wp.array]:
    """Lengths of tendons, their Jacobians, and their rates.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        out: three arrays to write to; new ones by default.

    Returns:
        Lengths ``[articulation_count, tendons]`` [m, or rad of fixed tendons along angles], their derivatives with respect to the dofs
        ``[articulation_count, tendons, max_dofs_per_articulation]``, and their rates ``[articulation_count, tendons]``. The tendons of
        an articulation have their order in ``model.tendons``; those that an articulation lacks are zero.

    Raises:
        ValueError: a tendon runs through two articulations; an array of the wrong shape or device.
        TypeError: an array of the wrong scalar type.
    """
    tendons = tendons_of(model)
    count, arrays = tendons.count, state_arrays(model, state)
    shapes = [(count,), (count, columns(model)), (count,)]
    results = tuple(output_arrays(model, arrays, by_articulation(model, shapes), out))
    for items, mask, vectors in tendons.parts(model) if count else ():
        inputs = (Q, V, Field("tendon", "articulations", vectors.shape[1]))
        evaluate(
            model, replace(_program(count), inputs=inputs, tables=items), [*arrays, vectors], shapes, results, mask=mask
        )
    return results


@cache
def _program(count: int) -> Program:
    """The program for so many tendons, without its inputs."""
    sizes = ("vector", count), ("matrix", lambda model: count * columns(model)), ("second", count)
    outputs = tuple(Field(row, "articulations", size) for row, size in sizes)
    rows = Field("tendon_length", "articulations", count), Field("tendon_j", "dofs", count)
    return Program("eval_tendons", (), outputs, rows)


def tendon_lengths(model, state, *, out: wp.array | None = None) -> wp.array:
    """Lengths of tendons; the first result of :func:`tendon_kinematics`, with its arguments and errors."""
    return _one(model, state, 0, out)


def tendon_jacobian(model, state, *, out: wp.array | None = None) -> wp.array:
    """Derivatives of the lengths of tendons with respect to the dofs; the second result of :func:`tendon_kinematics`."""
    return _one(model, state, 1, out)


def tendon_velocities(model, state, *, out: wp.array | None = None) -> wp.array:
    """Rates of the lengths of tendons; the third result of :func:`tendon_kinematics`."""
    return _one(model, state, 2, out)


def _one(model, state, i: int, out):
    if out is None:
        return tendon_kinematics(model, state)[i]
    count = tendons_of(model).count
    shapes = [(count,), (count, columns(model)), (count,)]
    results = output_arrays(model, state_arrays(model, state), by_articulation(model, shapes))
    results[i] = out
    return tendon_kinematics(model, state, out=results)[i]
