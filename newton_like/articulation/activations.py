"""Activations of the actuators that a model has, such as muscles and filters of an MJCF file."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.articulation.chosen import Chosen
from newton_like.solvers.featherstone.actuators import table_of


class Activations:
    """The actuators of a model that pull the instances of an asset.

    Args:
        sim: the :class:`newton_like.articulation.SimulationContext`.
        articulations: articulation of each instance.
    """

    def __init__(self, sim, articulations: np.ndarray):
        self._sim, self._articulations = sim, articulations
        self._table, self._places = None, np.zeros((0, 0), dtype=int)

    def reset(self, rows: Chosen) -> None:
        """Writes the activations and controls of the model for the actuators of some instances."""
        sim, model = self._sim, self._sim.model
        if not model.actuator_count or not rows.count:
            return
        if self._table is not table_of(model):
            self._table = table_of(model)
            lists = [self._table.index[a] for a in self._articulations]
            self._places = np.full((len(lists), max(map(len, lists))), -1)
            for i, own in enumerate(lists):
                self._places[i, : len(own)] = own
        places = self._places[rows.indices].ravel()
        places = places[places >= 0]
        if places.size:
            _put(sim._state.actuator_act, places, model.actuator_act)
            _put(sim.control.actuator_ctrl, places, model.actuator_ctrl)


def _put(target: wp.array, places: np.ndarray, source: wp.array) -> None:
    numbers = target.numpy()
    numbers[places] = source.numpy()[places]
    if not target.device.is_cpu:
        target.assign(numbers)
