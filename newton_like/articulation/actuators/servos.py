"""Servos of a model on joints of an asset: actuators of an MJCF file that a drive cannot replace, because of their ranges of forces."""

from __future__ import annotations

import warnings

import numpy as np

from newton_like.types import MAXVAL, ModelFlags

_FIRST, _SPEED = 1, 2
"""Entries of ``biasprm``: forces by position and by velocity."""


class Servos:
    """The servos on the joints of the instances of an asset. Their controls are ``Control.actuator_ctrl``.

    Args:
        sim: the :class:`newton_like.articulation.SimulationContext`.
        layout: where the joints of the instances lie in the model.

    Attributes:
        joints: the joints that have servos, by index, with the names of these.
    """

    def __init__(self, sim, layout):
        self._sim, self._worlds, self._label = sim, layout.worlds, layout.label
        self.joints: dict[int, list[str]] = {}
        # actuator, instance and joint of each
        self._places = np.array(self._find(sim.model, layout), dtype=int).reshape(-1, 3)
        if not len(self._places):
            return
        model, (at, i, j) = sim.model, self._places.T
        for n, joint in zip(at, j, strict=True):
            names = self.joints.setdefault(int(joint), [])
            if (name := model.actuators[n].label) not in names:
                names.append(name)
        gear, bias = model.actuator_gear.numpy()[at, 0], model.actuator_biasprm.numpy()[at]
        ranges = abs(model.actuator_forcerange.numpy()[at]).max(axis=1) * abs(gear)
        self._gains = {name: np.zeros(layout.dofs.shape) for name in ("target_ke", "target_kd", "effort_limit")}
        for name, values in (
            ("target_ke", np.maximum(-bias[:, _FIRST], 0.0) * gear**2),
            ("target_kd", np.maximum(-bias[:, _SPEED], 0.0) * gear**2),
            ("effort_limit", np.minimum(ranges, MAXVAL)),
        ):
            np.add.at(self._gains[name], (i, j), values)

    @staticmethod
    def _find(model, layout) -> list[tuple[int, int, int]]:
        found = []
        if not model.actuators:
            return found
        first = model.joint_qd_start.numpy()
        bias, gear = model.actuator_biasprm.numpy(), model.actuator_gear.numpy()
        place = {int(dof): at for at, dof in np.ndenumerate(layout.dofs)}
        for n, actuator in enumerate(model.actuators):
            if (
                actuator.transmission not in ("joint", "jointinparent")
                or actuator.dof < 0
                or actuator.drive is not None
            ):
                continue
            at = place.get(int(first[actuator.target]) + actuator.dof)
            if at is not None and actuator.bias == "affine" and bias[n, [_FIRST, _SPEED]].any() and gear[n, 0]:
                found.append((n, *at))
        return found

    def added_to(self, name: str, numbers: np.ndarray, columns: list[int]) -> np.ndarray:
        """Parameters ``joint_<name>`` of the model with those of the servos of joints: sums of gains, and effort limits up to the largest
        forces of the servos."""
        if not any(j in self.joints for j in columns) or name not in self._gains:
            return numbers
        own = self._gains[name][:, columns]
        return np.where(own > 0.0, np.minimum(numbers, own), numbers) if name == "effort_limit" else numbers + own

    def replace(self, columns) -> None:
        """Takes the servos of joints out of the model, which actuators of the asset move."""
        replaced = self._places[np.isin(self._places[:, 2], list(columns)), 0]
        if not replaced.size:
            return
        gears = self._sim.model.actuator_gear
        numbers = gears.numpy().copy()
        numbers[replaced] = 0.0
        gears.assign(numbers)
        self._sim.notify(ModelFlags.ACTUATOR_PROPERTIES, None, self._worlds)

    def warn(self, replaced, names: list[str]) -> None:
        """Warns of joints with servos that are in no group of actuators."""
        left = [j for j in sorted(self.joints) if j not in replaced]
        if left:
            told = ", ".join(f"{names[j]!r} ({', '.join(map(repr, self.joints[j]))})" for j in left[:4])
            warnings.warn(
                f"articulation '{self._label}': targets, gains and limits of the asset have no effect on servos that the model has at the"
                f" joints {told}{', ...' if len(left) > 4 else ''}; set Control.actuator_ctrl, or put the joints into a group of actuators,"
                " which replaces the servos",
                stacklevel=5,
            )
