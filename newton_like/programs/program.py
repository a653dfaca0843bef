"""What can be run over the articulations of a model: a program of the kernels, and the arrays that it reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from newton_like.kernels.layout import KINEMATICS, ROWS
from newton_like.programs.workspace import row_sizes


@dataclass(frozen=True)
class Field:
    """What an array holds for every articulation.

    Attributes:
        row: where it lies in a worker's memory, a name of ``Layout``.
        kind: ``"coords"`` and ``"dofs"``: one number for each; ``"bodies"``: `size` numbers a body; ``"articulations"``: `size`
            numbers an articulation, the same number for all templates; ``"batch"``: the same, in an array that has the articulations
            of one batch alone; ``"tendons"``, ``"actuators"``: one number for each tendon or actuator of a cluster; ``"all"``: `size`
            numbers that all articulations read; ``"reach"``: `size` numbers for every dof of the longest chain, which no array has.
        size: see above: a number, or a function of the model that gives it.
    """

    row: str
    kind: str
    size: int | Callable = 1

    def numbers(self, model) -> int:
        """Its size."""
        return self.size(model) if callable(self.size) else self.size

    def length(self, model) -> int:
        """Numbers in the whole array."""
        counts = {
            "coords": model.joint_coord_count, "dofs": model.joint_dof_count, "bodies": model.body_count,
            "articulations": model.articulation_count, "all": 1, "tendons": model.tendon_count,
            "actuators": model.actuator_count,
        }  # fmt: skip
        return counts[self.kind] * self.numbers(model)

    def width(self, model, template) -> int:
        """Numbers of one articulation."""
        counts = {"coords": template.coords, "dofs": template.dofs, "bodies": template.bodies, "reach": template.reach}
        return counts.get(self.kind, 1) * self.numbers(model)


@dataclass(frozen=True)
class Program:
    """What runs over every articulation.

    Attributes:
        name: the function of the programs' namespace, ``(b, t, T, P, L, mem)``.
        inputs: arrays that it reads.
        outputs: arrays that it writes.
        rows: names of further rows of memory, of those of which the table says the size, and fields for the others.
        settings: integers of ``Tree`` that say what is asked for, as pairs of names and values.
        adjoint: the function that is differentiated in its place: one of the same value, cheaper to go through backward.
        tables: ``tables.of(batch)`` gives further integers of ``Tree``, and arrays of them, that a batch needs.
        varied: whether it is asked for many things, now this link and then that one, so that compiling each of them does not pay:
            then it is specialised only where the model says so.
    """

    name: str
    inputs: tuple[Field, ...]
    outputs: tuple[Field, ...]
    rows: tuple[str | Field, ...] = ()
    settings: tuple[tuple[str, int], ...] = ()
    adjoint: str | None = None
    tables: object = None
    varied: bool = False

    def ask(self, **settings: int) -> Program:
        """The same program with other settings: integers of ``Tree``, which its memory is made with."""
        wanted = tuple(settings.items())
        known = self._asked.get(wanted)
        if known is None:
            known = replace(self, settings=tuple(sorted({**dict(self.settings), **settings}.items())))
            self._asked[wanted] = known
        return known

    def sizes(self, model, template) -> dict[str, int]:
        """Sizes of all rows of memory that the program needs."""
        named = [ROWS[row] for row in self.rows if isinstance(row, str)]
        fields = [row for row in self.rows if isinstance(row, Field)]
        sizes = row_sizes(template, (*KINEMATICS, *named))
        return {**sizes, **{f.row: f.width(model, template) for f in (*fields, *self.inputs, *self.outputs)}}

    @cached_property
    def _asked(self) -> dict:
        return {}

    @cached_property
    def key(self) -> tuple:
        """What tells it from other programs."""
        fields = ((f.row, f.kind, f.size if isinstance(f.size, int) else 0) for f in (*self.inputs, *self.outputs))
        return (self.name, self.adjoint, self.tables, *self.settings, *fields)


cached_program = lru_cache(maxsize=256)(Program)
"""Programs that are made again in every call: the same arguments give the same program, whose key and settings are known."""
