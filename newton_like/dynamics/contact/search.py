"""Rigid contact in stages: separate programs for the sweeps, which pass their state in arrays.

Code for gradients has no loops. Each sweep is a launch of the same program on the tape, so the program is compiled once for any number of
sweeps.
"""

from __future__ import annotations

from functools import cached_property

import warp as wp

from newton_like.dynamics.internal import common
from newton_like.dynamics.internal.common import Q, V, columns, has_gradients
from newton_like.kernels.dynamics.contact.rigid import BLOCK, RIGID_LAW
from newton_like.programs.program import Field, Program
from newton_like.programs.run import batches


def rows(n: int) -> tuple:
    """Rows of memory of the programs of rigid contact, for n points."""
    sizes = dict(contact=BLOCK * n, impulse=3 * n, point_force=3 * n, point_depth=n, vector=columns)
    own = (Field(name, "articulations", size) for name, size in sizes.items())
    named = ("tau", "acceleration", "pivot", "root", "z", "u", "previous_z", "momentum")
    return (*named, Field("contact_y", "reach", 3 * n), *own)


class Search:
    """The stages of one call.

    Args:
        contact: the :class:`RigidContact`.
        arrays: inputs of the call.
        settings: settings of all programs.
    """

    def __init__(self, contact, arrays, **settings: int):
        self.contact, self.model, self.n = contact, contact.model, contact.points.count
        self.settings, self.grad = settings, has_gradients(self.model, arrays)
        self._programs: dict[tuple, Program] = {}

    @cached_property
    def fields(self) -> dict[str, Field]:
        """Fields of the arrays between stages, by row, with the sizes of the largest articulation."""
        n, dofs = self.n, columns(self.model)
        templates = [batch.template for batch in batches(self.model)]
        reach = max((template.reach for template in templates), default=1)
        sizes = dict(
            contact=BLOCK * n, next_contact=BLOCK * n, contact_y=3 * reach * n, impulse=3 * n, point_law=RIGID_LAW,
            h=max((template.entries for template in templates), default=0),
        )  # fmt: skip
        sizes["search"] = sizes["found"] = 2 * dofs + 1 + 9 * n
        fields = {row: Field(row, "articulations", size) for row, size in sizes.items()}
        return {**fields, "root": Field("root", "dofs"), "acceleration": Field("acceleration", "dofs"), "q": Q, "v": V,
                "offset": self.contact.points.offset_field}  # fmt: skip

    def run(self, name: str, inputs: dict, outputs: dict) -> list[wp.array]:
        """Runs a stage.

        Args:
            name: name of the program.
            inputs: arrays by row of `fields`, or by field.
            outputs: arrays likewise; None: a new array.

        Returns:
            The output arrays.
        """
        fields = [[self.fields[f] if isinstance(f, str) else f for f in ends] for ends in (inputs, outputs)]
        found = [
            common.output_array(self.model, None, f.length(self.model), self.grad) if a is None else a
            for f, a in zip(fields[1], outputs.values(), strict=True)
        ]
        key = (name, *map(tuple, fields))
        if key not in self._programs:
            program = Program(*key, rows(self.n), tables=self.contact.points.table, varied=True)
            self._programs[key] = program.ask(offset_size=3, **self.settings)
        common.run(self.model, self._programs[key], [*inputs.values(), *found])
        return found

    def sweep(self, contact: wp.array, contact_y: wp.array, search: wp.array) -> wp.array:
        """Returns the state of the iteration after all sweeps."""
        law = self.contact.law
        for _ in range(self.contact.sweeps):
            given = {"contact": contact, "contact_y": contact_y, "point_law": law, "search": search}
            (search,) = self.run("eval_contact_sweep", given, {"found": None})
        return search
