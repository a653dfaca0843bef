"""Ranges of sums of forces of actuators, see `kernels.solvers.force_ranges`: which there are, and the numbers that kernels read of them."""

from __future__ import annotations

import numpy as np

from newton_like.dynamics.names import names_of
from newton_like.kernels.solvers.force_ranges import OF_SUM, OF_WEIGHT
from newton_like.model.mujoco.effort_settings import effort_settings


class ForceRanges:
    """The ranges of sums of forces in a model.

    Attributes:
        dofs: bits of each degree of freedom; None: none has a range.
        tendons: indices of the tendons whose forces have a range that single forces do not keep.
    """

    def __init__(self, model):
        settings = effort_settings(model)
        self.dofs = None
        if settings is not None:
            sums = settings["effort_rules"] != 0
            self.dofs = np.where(sums, OF_SUM + OF_WEIGHT * (settings["jnt_actgravcomp"] != 0), 0)
        self.tendons = frozenset(_shared_tendons(model)) if model.tendons else frozenset()
        self._model_names = names_of(model) if self.dofs is not None else None
        self._starts = model.joint_qd_start.numpy() if self.dofs is not None else None

    def changed(self, model) -> bool:
        """Whether other degrees of freedom or tendons have ranges now."""
        new = ForceRanges(model)
        return not np.array_equal(self.dofs, new.dofs) or self.tendons != new.tendons

    def kinds(self, articulations: int) -> list[bytes]:
        """What the ranges of each articulation have in common with those of others that can share a batch with it."""
        if self.dofs is None:
            return [b""] * articulations
        names, starts = self._model_names, self._starts
        ends = [names.start[a] + names.count[a] for a in range(articulations)]
        return [self.dofs[starts[names.start[a]] : starts[ends[a]]].tobytes() for a in range(articulations)]

    def flags(self, batch, pulled: list[int], lines: int) -> np.ndarray:
        """Integers of the degrees of freedom of a batch, and then of its rows; none: there are no ranges.

        Args:
            batch: the batch.
            pulled: tendons of its first cluster, whose rows come first.
            lines: number of rows.
        """
        template = batch.template
        of_dofs = np.zeros(template.dofs, dtype=int)
        if self.dofs is not None:
            of_dofs = self.dofs[int(batch.qd_start[0]) + np.asarray(template.dof_slot, dtype=int)]
        of_rows = [int(n in self.tendons) for n in pulled]
        found = np.array([*of_dofs, *of_rows, *[0] * (lines - len(pulled))], dtype=int)
        return found if found.any() else found[:0]


def _shared_tendons(model) -> set[int]:
    """Tendons with a range of forces that single actuators do not keep."""
    forces: dict[int, list] = {}
    for actuator in model.actuators:
        if actuator.transmission == "tendon" and 0 <= actuator.target < len(model.tendons):
            forces.setdefault(actuator.target, []).append(actuator.forcerange)
    found = set()
    for n, ranges in forces.items():
        effort = model.tendons[n].effort
        if effort is None:
            continue
        kept = len(ranges) == 1 and ranges[0] is not None and effort[0] <= ranges[0][0] and ranges[0][1] <= effort[1]
        if not kept:
            found.add(n)
    return found


def range_numbers(model, batch, pulled: list[list[int]], lines: int) -> np.ndarray:
    """The middles of the ranges of degrees of freedom and then the ranges of rows, for each cluster, ``[count, dofs + 2 lines]``.

    Args:
        model: the model.
        batch: the batch.
        pulled: the tendons of each cluster.
        lines: number of rows.
    """
    template = batch.template
    settings = effort_settings(model)
    middles = np.zeros((batch.count, template.dofs))
    if settings is not None:
        slots = np.asarray(batch.qd_start, dtype=int)[:, None] + np.asarray(template.dof_slot, dtype=int)
        middles = settings["effort_middle"].astype(np.float64)[slots]
    rows = np.zeros((batch.count, lines, 2))
    for c, tendons in enumerate(pulled):
        for k, n in enumerate(tendons):
            rows[c, k] = model.tendons[n].effort or (0.0, 0.0)
    return np.concatenate([middles, rows.reshape(batch.count, -1)], axis=1)
