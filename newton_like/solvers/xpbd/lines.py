"""Mimic joints, polynomials between joints and tendons of a model, as lines in blocks of lanes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from newton_like.geometry.transforms import quat_to_matrix

from newton_like.kernels.solvers.xpbd.lines import (  # isort: skip
    ALONG_JOINT, EQUATION, LINE_COLUMNS, LINE_DAMPING, LINE_EFFORT, LINE_FRICTION, LINE_KD, LINE_KE, LINE_LOWER, LINE_NUMBERS,
    LINE_OFFSET, LINE_POWERS, LINE_REST_LOWER, LINE_REST_UPPER, LINE_STIFFNESS, LINE_UPPER, LINE_WRENCHES, PAIR_AXES, PAIR_CENTER,
    PAIR_COLUMNS, PAIR_END, PAIR_NUMBERS, PAIR_RADIUS, PAIR_SCALE, PAIR_SIDE, PAIR_START, TENDON_LINE,
)  # fmt: skip
from newton_like.kernels.solvers.xpbd.joints import JOINT_WORK
from newton_like.kernels.tree import STRAIGHT
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.model.mujoco.equality_settings import equalities_of
from newton_like.model.tendons import piece_kind, pieces_of
from newton_like.solvers.xpbd.moving import moving_bodies
from newton_like.solvers.xpbd.tables import Blocks, Slots, worlds_of_bodies

_NUMBERS = {
    "offset": LINE_OFFSET, "stiffness": LINE_STIFFNESS, "damping": LINE_DAMPING, "rest_lower": LINE_REST_LOWER,
    "rest_upper": LINE_REST_UPPER, "target_ke": LINE_KE, "target_kd": LINE_KD, "effort_limit": LINE_EFFORT,
    "friction": LINE_FRICTION, "limit_lower": LINE_LOWER,
    "limit_upper": LINE_UPPER,
}  # fmt: skip


@dataclass
class Pair:
    """A coordinate of a joint, or a piece of a path.

    Attributes:
        kind: see `newton_like.kernels.solvers.xpbd.lines`.
        bodies: at its start and end, of the shape and of the side site; -1: the world, -2: none.
        joint, dof: of a coordinate.
        scale: coefficient, or inverse divisor.
        shapes: of both sites, what it wraps around, and the side site; -1: none.
    """

    kind: int
    bodies: tuple[int, int, int, int]
    scale: float
    joint: int = -1
    dof: int = 0
    shapes: tuple[int, int, int, int] = (-1, -1, -1, -1)


@dataclass
class Line:
    """A relation along a length.

    Attributes:
        kind: see `newton_like.kernels.solvers.xpbd.lines`.
        pairs: what its length is the sum of.
        numbers: ``[LINE_NUMBERS]``.
        world: its world.
        tendon: index of the tendon.
        bodies: bodies, each once, in the order of the pairs; -1: the world.
    """

    kind: int
    pairs: list[Pair]
    numbers: np.ndarray
    world: int
    tendon: int = 0
    bodies: list[int] = field(default_factory=list)

    def __post_init__(self):
        self.bodies = list(dict.fromkeys(b for pair in self.pairs for b in pair.bodies if b >= -1))


class LinesOf:
    """The lines of a model.

    Args:
        model: the model.

    Attributes:
        lines: all lines.
        joints: joints whose coordinates they read.
        bodies: bodies on which they act.
        wraps: whether a path wraps around a shape.

    Raises:
        ValueError: a line follows a joint that is disabled, or a coordinate that is no length or angle.
    """

    def __init__(self, model):
        self.model = model
        self._parent, self._child = (getattr(model, f"joint_{side}").numpy() for side in ("parent", "child"))
        self._types, self._first = model.joint_type.numpy(), model.joint_qd_start.numpy()
        self._world = worlds_of_bodies(model)
        self.lines = [*self._mimics(), *self._polynomials(), *self._tendons()]
        pairs = [pair for line in self.lines for pair in line.pairs]
        self.joints = np.unique(np.array([p.joint for p in pairs if p.joint >= 0], dtype=int))
        self.bodies = sorted({b for line in self.lines for b in line.bodies if b >= 0})
        self.wraps = any(p.kind not in (ALONG_JOINT, STRAIGHT) for p in pairs)
        enabled = model.joint_enabled.numpy().astype(bool)
        off = self.joints[~enabled[self.joints]] if len(self.joints) else self.joints
        if len(off):
            raise ValueError(
                f"joint '{model.joint_label[off[0]]}' (index {off[0]}) is disabled, and a mimic joint, an equality constraint or a tendon"
                " follows it, which SolverXPBD does not support: enable it"
            )

    def _of(self, bodies) -> int:
        held = [b for b in bodies if b >= 0]
        return int(self._world[held[0]]) if held else 0

    def _coordinate(self, joint: int, dof: int, scale: float, what: str) -> Pair:
        kind = JOINT_TYPES[int(self._types[joint])]
        if kind.has_quaternion or not 0 <= dof < self._first[joint + 1] - self._first[joint]:
            raise ValueError(
                f"{what}: joint '{self.model.joint_label[joint]}' (index {joint}) has no coordinate {dof} that is a length or an angle;"
                " name another joint"
            )
        return Pair(ALONG_JOINT, (int(self._parent[joint]), int(self._child[joint]), -2, -2), scale, joint, dof)

    def _equation(self, first: Pair, second: Pair | None, powers) -> Line:
        numbers = np.zeros(LINE_NUMBERS)
        numbers[LINE_OFFSET], numbers[LINE_POWERS : LINE_POWERS + 4] = -powers[0], powers[1:]
        pairs = [first] if second is None else [first, second]
        return Line(EQUATION, pairs, numbers, self._of([b for p in pairs for b in p.bodies]))

    def _mimics(self):
        model = self.model
        leaders = model.joint_mimic_joint.numpy()
        for j in np.flatnonzero(leaders >= 0).tolist():
            offset, ratio = model.joint_mimic_coeffs.numpy()[j].tolist()
            what = f"joint '{model.joint_label[j]}' (index {j})"
            for dof in range(int(self._first[j + 1] - self._first[j])):
                pair = self._coordinate(int(leaders[j]), dof, 1.0, what)
                yield self._equation(self._coordinate(j, dof, 1.0, what), pair, (offset, ratio, 0.0, 0.0, 0.0))

    def _polynomials(self):
        rows = equalities_of(self.model)
        if rows is None:
            return
        columns = (rows[name].tolist() for name in ("joint1", "joint2", "target"))
        for one, two, target, powers in zip(*columns, rows["polycoef"], strict=True):
            if target < 0:
                what = f"an equality constraint of joint '{self.model.joint_label[one]}' (index {one})"
                second = self._coordinate(two, 0, 1.0, what) if two >= 0 else None
                yield self._equation(self._coordinate(one, 0, 1.0, what), second, powers.astype(float))

    def _tendons(self):
        model = self.model
        if not model.tendons:
            return
        shapes = _Shapes(model)
        arrays = {name: getattr(model, f"tendon_{name}").numpy().astype(np.float64) for name in _NUMBERS}
        for n, tendon in enumerate(model.tendons):
            what = f"tendon '{tendon.label}' (index {n})"
            pairs = [self._coordinate(j, dof, float(c), what) for j, dof, c in tendon.joints]
            for a, b, around, beside, divisor in pieces_of(tendon):
                try:
                    kind = piece_kind(shapes, around, beside)
                except ValueError as error:
                    raise ValueError(f"{what}: {error}") from None
                used = (a, b, around, beside)
                bodies = tuple(int(shapes.shape_body[k]) if k >= 0 else -2 for k in used)
                pairs.append(Pair(kind, bodies, 1.0 / divisor, shapes=used))
            numbers = np.zeros(LINE_NUMBERS)
            for name, at in _NUMBERS.items():
                numbers[at] = arrays[name][n]
            yield Line(TENDON_LINE, pairs, numbers, self._of([b for p in pairs for b in p.bodies]), n)


class _Shapes:
    """Columns of shapes on the host."""

    def __init__(self, model):
        self.shape_type, self.shape_body = model.shape_type.numpy(), model.shape_body.numpy()
        self.shape_transform, self.shape_scale = (
            getattr(model, f"shape_{name}").numpy().astype(np.float64) for name in ("transform", "scale")
        )


@dataclass
class LineBlocks:
    """Lines in blocks of lanes, see `newton_like.kernels.solvers.xpbd.lines`.

    Attributes:
        of_chunk: first block of each chunk, and the end.
        table, pairs: ``[blocks, LINE_COLUMNS]``, ``[pairs, PAIR_COLUMNS]``.
        slot: ``[bodies, width]``; place: ``[pairs, width]``; tendon, world: ``[blocks, width]``, world -1 for no line.
        numbers, pair_numbers: ``[blocks, LINE_NUMBERS, width]``, ``[pairs, PAIR_NUMBERS, width]``.
        work: how many rows of work memory there are.
    """

    of_chunk: np.ndarray
    table: np.ndarray
    pairs: np.ndarray
    slot: np.ndarray
    place: np.ndarray
    tendon: np.ndarray
    world: np.ndarray
    numbers: np.ndarray
    pair_numbers: np.ndarray
    work: int

    def arrays(self, array, lanes) -> dict:
        """The arrays of the struct ``Lines``, made by two functions: of integers, and of lanes."""
        width = self.numbers.shape[2]
        return dict(
            of_chunk=array(self.of_chunk), blocks=array(self.table), pairs=array(self.pairs), slot=array(self.slot.ravel()),
            place=array(self.place.ravel()), tendon=array(self.tendon.ravel()), numbers=lanes(self.numbers.reshape(-1, width)),
            pair_numbers=lanes(self.pair_numbers.reshape(-1, width)), work=lanes(np.zeros((self.work, width))),
        )  # fmt: skip


def _colours(lines: list[Line], moves: np.ndarray) -> list[int]:
    """One more than the largest colour of earlier lines with a body in common that forces move."""
    last: dict[int, int] = {}
    found = []
    for line in lines:
        own = [b for b in line.bodies if b >= 0 and moves[b]]
        colour = 1 + max((last.get(b, -1) for b in own), default=-1)
        found.append(colour)
        last.update(dict.fromkeys(own, colour))
    return found


def make_line_blocks(model, of: LinesOf, slots: Slots, blocks: Blocks, width: int) -> LineBlocks:
    """Orders lines by chunks, colours and structures.

    Args:
        model: the model.
        of: its lines.
        slots, blocks: tables of bodies and joints.
        width: lanes of a block.
    """
    moves = moving_bodies(model)
    dims = model.joint_dof_dim.numpy()
    known: dict[tuple, list[Line]] = {}
    for line, colour in zip(of.lines, _colours(of.lines, moves), strict=True):
        local = {b: i for i, b in enumerate(line.bodies)}
        structure = tuple(
            (
                p.kind, *(local.get(b, -1) for b in p.bodies), p.dof, *(dims[p.joint].tolist() if p.joint >= 0 else (0, 0)),
            )
            for p in line.pairs
        )  # fmt: skip
        key = (int(slots.chunk_of_world[line.world]), colour, line.kind, len(line.bodies), structure)
        known.setdefault(key, []).append(line)
    lane_of = np.full(max(model.joint_count, 1), -1)
    flat = blocks.joint.ravel()
    lane_of[flat[flat >= 0]] = np.flatnonzero(flat >= 0)
    shapes, com = _Shapes(model), np.append(model.body_com.numpy().astype(np.float64), np.zeros((1, 3)), axis=0)
    table, pairs, slot, place, tendon, world, numbers, pair_numbers, chunk_of = ([] for _ in range(9))
    work = 0
    for key in sorted(known, key=lambda k: k[:2]):
        chunk, _, kind, count, structure = key
        dummy = int(slots.chunks[chunk, 3])
        for i in range(0, len(known[key]), width):
            part = known[key][i : i + width]
            idle = [None] * (width - len(part))
            first = len(slot)
            table.append((kind, len(pairs), len(pairs) + len(structure), first, first + count, work))
            work += LINE_WRENCHES + 6 * count
            chunk_of.append(chunk)
            slot += [[_slot(x, b, slots, dummy) for x in (*part, *idle)] for b in range(count)]
            tendon.append([0 if x is None else x.tendon for x in (*part, *idle)])
            world.append([-1 if x is None else x.world for x in (*part, *idle)])
            numbers.append([np.zeros(LINE_NUMBERS) if x is None else x.numbers for x in (*part, *idle)])
            for k, entry in enumerate(structure):
                ends = (first + b if b >= 0 else -1 for b in entry[1:5])
                pairs.append((entry[0], *ends, *entry[5:]))
                place.append([0 if x is None else _place(lane_of, x.pairs[k], width) for x in (*part, *idle)])
                rows = [x.pairs[k] for x in part] + [part[0].pairs[k]] * len(idle)
                pair_numbers.append([_pair_numbers(p, shapes, com) for p in rows])
    chunks = np.searchsorted(chunk_of, np.arange(len(slots.chunks) + 1))

    def lanes(rows, size: int) -> np.ndarray:
        return np.array(rows, dtype=np.float64).reshape(-1, width, size).transpose(0, 2, 1)

    def ints(rows, columns: int) -> np.ndarray:
        return np.array(rows, dtype=np.int32).reshape(-1, columns)

    return LineBlocks(
        chunks.astype(np.int32), ints(table, LINE_COLUMNS), ints(pairs, PAIR_COLUMNS),
        *(ints(x, width) for x in (slot, place, tendon, world)),
        lanes(numbers, LINE_NUMBERS), lanes(pair_numbers, PAIR_NUMBERS), work,
    )  # fmt: skip


def _slot(line: Line | None, b: int, slots: Slots, dummy: int) -> int:
    if line is None:
        return dummy
    body = line.bodies[b]
    return int(slots.slot_of[body] if body >= 0 else slots.fixed[line.world])


def _place(lane_of: np.ndarray, pair: Pair, width: int) -> int:
    """The first number of a joint in the work memory of joints, as a row of numbers."""
    if pair.joint < 0:
        return 0
    block, lane = divmod(int(lane_of[pair.joint]), width)
    return block * JOINT_WORK * width + lane


def _pair_numbers(pair: Pair, shapes: _Shapes, com: np.ndarray) -> np.ndarray:
    out = np.zeros(PAIR_NUMBERS)
    out[PAIR_SCALE] = pair.scale
    for shape, at in zip(pair.shapes, (PAIR_START, PAIR_END, PAIR_CENTER, PAIR_SIDE), strict=True):
        if shape >= 0:
            out[at : at + 3] = shapes.shape_transform[shape, :3] - com[shapes.shape_body[shape]]
    if pair.shapes[2] >= 0:
        out[PAIR_AXES : PAIR_AXES + 9] = quat_to_matrix(shapes.shape_transform[pair.shapes[2], 3:]).ravel()
        out[PAIR_RADIUS] = shapes.shape_scale[pair.shapes[2], 0]
    return out
