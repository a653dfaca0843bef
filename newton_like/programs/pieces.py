"""Where the numbers of articulations lie in the flat arrays that programs read and write, as the structs that kernels are told."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import warp as wp

from newton_like.arrays import flat
from newton_like.programs.program import Field


class Pieces(NamedTuple):
    """Structs ``Piece`` as kernels are told them.

    Attributes:
        array: of them, on the device.
        structs: the same on the host. They keep their arrays alive, of which `array` knows addresses only.
        given: which of them are about arrays of the caller, and not about zeros.
    """

    array: wp.array
    structs: list
    given: list[bool]

    def release(self) -> np.ndarray:
        """Lets go of the arrays of the caller. Returns where, on a CPU, the addresses of the numbers stand."""
        for struct, given in zip(self.structs, self.given, strict=True):
            if given:
                struct.numbers = None
        return self.array.numpy()["numbers"]["data"]


def pieces(model, work, fields, arrays, places: dict | None = None) -> Pieces:
    """Where fields lie in their arrays.

    Args:
        model: the model.
        work: the :class:`newton_like.programs.workspace.Workspace` of a batch.
        fields, arrays: what there is; None: zeros.
        places: of rows in packed memory, see :meth:`newton_like.compiler.cpp.Emitter.packed`.
    """
    structs = []
    for field, array in zip(fields, arrays, strict=True):
        piece = piece_of(model, work, field)
        if array is None and field.kind in _LISTED:
            piece.parts, array = 0, work.zeros(1)
        elif array is None:
            array = work.zeros(field.width(model, work.batch.template))
            piece.start = piece.stride = 0
            piece.parts, piece.size, piece.part = 1, array.size, work.ints([0])
        if places is not None:
            place = places.get(field.row, np.arange(piece.size))
            # squares of numbers are moved, the last one with some that nobody takes
            piece.place = work.ints(work.m.width * np.append(place, [0] * (work.m.width - 1)))
            if not len(place):
                piece.parts = 0
        piece.numbers = flat(array, model.dtype)
        structs.append(piece)
    return Pieces(wp.array(structs, dtype=work.m.Piece, device=model.device), structs, [a is not None for a in arrays])


AHEAD = 4_000_000
"""Bytes of states from which on a step reads them ahead: more than the caches of a few cores hold. To read ahead what is in a cache
takes 3 % of the time of a step."""


def batch_struct(work, masked: bool = False):
    """A batch as the struct ``Batch``."""
    B, batch = work.m.Batch(), work.batch
    B.count, B.masked = batch.count, int(masked)
    template, number = batch.template, wp.types.type_size_in_bytes(work.m.real)
    # coordinates, velocities, forces and targets; poses, velocities and forces of bodies
    numbers = template.coords + 6 * template.dofs + 26 * template.bodies
    B.ahead = int(batch.count * number * numbers > AHEAD)
    B.start, B.stride = int(batch.articulations[0]), batch.stride(batch.articulations)
    return B


def piece_of(model, work, field: Field):
    """The struct of a field, whose array is not known yet."""
    batch, template = work.batch, work.batch.template
    size = field.numbers(model)
    piece = work.m.Piece()
    if field.kind in _LISTED:
        return _listed_piece(work, field, piece)
    piece.row, piece.parts, piece.size = work.layout[field.row], 1, field.width(model, template)
    starts = {
        "coords": batch.q_start, "dofs": batch.qd_start, "bodies": size * batch.body_start,
        "articulations": size * batch.articulations, "batch": size * np.arange(batch.count), "all": np.zeros(batch.count, dtype=int),
    }[field.kind]  # fmt: skip
    piece.start, piece.stride = int(starts[0]), batch.stride(starts)
    part = [0]
    slots = {"bodies": template.body_slot, "coords": template.q_slot, "dofs": template.dof_slot}.get(field.kind)
    # bodies may be in another order than the joints that move them
    if slots is not None and slots.max(initial=-1) >= len(slots):
        # those of other articulations, or of loop joints, lie between
        part = size * slots
        piece.parts, piece.size = len(slots), size
    piece.part = work.ints(part)
    return piece


_LISTED = {"tendons": "tendon_index", "actuators": "actuator_index"}
"""Kinds of fields with a number for each entity of a list, and which attribute of a workspace has these, ``[count, entities]``."""


def _listed_piece(work, field: Field, piece):
    """The struct of such a field."""
    index = getattr(work, _LISTED[field.kind])
    starts = index[0] - index[0, 0] if index.size else np.zeros(0, dtype=int)
    size = run_size(starts)
    piece.row, piece.parts, piece.size = work.layout[field.row], len(starts) // size, size
    if index.size:
        steps = np.diff(index, axis=0)
        if (steps != steps[:1, :1]).any():
            raise ValueError(
                f"robots with {field.kind} that are copies of each other must be evenly spaced in the model, with their {field.kind}; make"
                " the copies with ModelBuilder.replicate"
            )
        piece.start, piece.stride = int(index[0, 0]), int(steps[0, 0]) if len(steps) else 0
    piece.part = work.ints(starts[::size] if index.size else [0])
    return piece


def run_size(numbers: np.ndarray) -> int:
    """Size of the largest runs of consecutive numbers, equal in size, that make up a list; 1 for an empty list."""
    ends = np.append(np.flatnonzero(np.diff(numbers) != 1) + 1, len(numbers))
    return max(int(np.gcd.reduce(ends)), 1)
