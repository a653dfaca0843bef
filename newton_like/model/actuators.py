"""Actuators of a builder and a model: what they pull, and their parameters."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from newton_like.coercion import as_index, as_number
from newton_like.types import MAXVAL

TRANSMISSIONS = ("joint", "jointinparent", "tendon", "site")
GAINS = ("fixed", "affine", "muscle")
BIASES = ("none", "affine", "muscle")
DYNAMICS = ("none", "integrator", "filter", "filterexact", "muscle")
TIME_CONSTANTS = {"filter": 1, "filterexact": 1, "muscle": 2}
"""Numbers of time constants, the first of ``dynprm``. Types of dynamics that are not here have none."""

DRIVES = ("joint_target_q", "joint_target_qd", "joint_f")
"""Entries of a drive that an actuator may set instead of a force."""

GAIN_NUMBERS, DYNAMIC_NUMBERS = 9, 3
"""How many of MuJoCo's ten parameters are read."""


def _first(value: float, count: int):
    return field(default_factory=lambda: (value, *(0.0,) * (count - 1)))


@dataclass(frozen=True, kw_only=True)
class Actuator:
    """An actuator as in MuJoCo, whose force is ``gain a + bias`` within ``forcerange``, times ``gear``.

    The strength a is the activation, or the control if there is no activation dynamics. Gain and bias are constant, affine in length and
    velocity of the transmission, or those of a muscle. The controls are ``Control.actuator_ctrl``, the activations
    ``State.actuator_act``.

    Attributes:
        label: name.
        transmission: kind of its target: ``"joint"``, ``"jointinparent"``, ``"tendon"`` or ``"site"``.
        target: index of the joint, the tendon or the shape of the site.
        dof: number of the dof of a joint with lengths or angles; -1: the whole BALL or FREE joint.
        reference: of a site: shape of the site relative to which the target moves; -1: the world.
        gear: factors on length and force; six for a BALL or FREE joint or a site, a force and a torque: in the frame of the site, or of
            its reference; of a FREE joint in world axes, with the torque in those of the body; of a BALL joint a torque at 0 to 2, in
            the frame of the body. ``jointinparent``: torques in the frame of the parent.
        gain, bias, dynamics: types.
        gainprm, biasprm, dynprm: their parameters, see the MJCF reference: nine, nine and three numbers.
        ctrlrange, forcerange, actrange: limits, or ``None``.
        actearly: whether the force uses the activation at the end of the step.
        lengthrange: smallest and largest length of the transmission, which a muscle needs.
        acc0: of a muscle whose force is negative: norm of the joint accelerations by a unit force, at the initial coordinates.
            0: the solver computes it at the initial coordinates of the model.
        drive: ``None``, or which entry of the drive of a joint it sets, of :data:`DRIVES`. The entry grows by ``factor a + offset``, and
            the actuator exerts no other force.
        factor, offset: see ``drive``.
        ctrl, act: initial control and activation.
        world: as of other entities; set by the builder.
    """

    label: str
    transmission: str
    target: int
    dof: int = 0
    reference: int = -1
    gear: tuple[float, ...] = _first(1.0, 6)
    gain: str = "fixed"
    bias: str = "none"
    dynamics: str = "none"
    gainprm: tuple[float, ...] = _first(1.0, GAIN_NUMBERS)
    biasprm: tuple[float, ...] = _first(0.0, GAIN_NUMBERS)
    dynprm: tuple[float, ...] = _first(1.0, DYNAMIC_NUMBERS)
    ctrlrange: tuple[float, float] | None = None
    forcerange: tuple[float, float] | None = None
    actrange: tuple[float, float] | None = None
    actearly: bool = False
    lengthrange: tuple[float, float] | None = None
    acc0: float = 0.0
    drive: str | None = None
    factor: float = 1.0
    offset: float = 0.0
    ctrl: float = 0.0
    act: float = 0.0
    world: int = -1

    @property
    def is_muscle(self) -> bool:
        """Whether gain or bias are those of a muscle."""
        return "muscle" in (self.gain, self.bias)

    def renumbered(self, joint, shape, tendon, **changes) -> Actuator:
        """A copy with renumbered indices, for copies of builders.

        Args:
            joint, shape, tendon: functions from old to new indices.
            changes: other attributes to change.
        """
        new = {"joint": joint, "jointinparent": joint, "tendon": tendon, "site": shape}[self.transmission]
        reference = shape(self.reference) if self.reference >= 0 else -1
        return replace(self, target=new(self.target), reference=reference, **changes)

    def check(self, joint_count: int, shape_count: int, tendon_count: int) -> None:
        """Checks the actuator.

        Raises:
            IndexError: the target does not exist.
            TypeError: a value is not a number.
            ValueError: an unknown type; a wrong number of parameters; a lower limit above the upper limit; a negative time constant; a
                muscle without a range of lengths.
        """
        what = f"actuator {self.label!r}"
        for name, known in (
            ("transmission", TRANSMISSIONS), ("gain", GAINS), ("bias", BIASES), ("dynamics", DYNAMICS),
            ("drive", (None, *DRIVES)),
        ):  # fmt: skip
            if getattr(self, name) not in known:
                shown = ", ".join(map(str, known))
                raise ValueError(f"{what}: {name} {getattr(self, name)!r} is unknown; there are {shown}")
        counts = {"tendon": tendon_count, "site": shape_count}
        as_index(self.target, f"{what}: {self.transmission}", counts.get(self.transmission, joint_count))
        as_index(self.reference, f"{what}: reference", shape_count, lowest=-1)
        as_index(self.dof, f"{what}: dof", 6, lowest=-1)
        sizes = {"gear": 6, "gainprm": GAIN_NUMBERS, "biasprm": GAIN_NUMBERS, "dynprm": DYNAMIC_NUMBERS}
        for name, size in sizes.items():
            numbers = getattr(self, name)
            if len(numbers) != size:
                raise ValueError(f"{what}: {name} needs {size} numbers, not {len(numbers)}")
            for x in numbers:
                as_number(x, f"{what}: {name}")
        for name in ("factor", "offset", "ctrl", "act", "acc0"):
            as_number(getattr(self, name), f"{what}: {name}")
        for name in ("ctrlrange", "forcerange", "actrange", "lengthrange"):
            pair = getattr(self, name)
            if pair is not None and not as_number(pair[0], f"{what}: {name}") <= as_number(pair[1], f"{what}: {name}"):
                raise ValueError(f"{what}: {name} {tuple(pair)} must be the smaller number and the larger one")
        for time in self.dynprm[: TIME_CONSTANTS.get(self.dynamics, 0)]:
            if time < 0.0:
                raise ValueError(f"{what}: the time constant {time:g} must be at least 0")
        if self.is_muscle and not (self.lengthrange and self.lengthrange[0] < self.lengthrange[1]):
            raise ValueError(
                f"{what} is a muscle and has no range of lengths; give lengthrange, its smallest and largest length"
            )
        if self.drive is not None and (self.transmission != "joint" or self.dof < 0):
            raise ValueError(f"{what}: only an actuator on a joint with lengths or angles sets a drive")


NUMBERS = {
    "gear": 6, "gainprm": GAIN_NUMBERS, "biasprm": GAIN_NUMBERS, "dynprm": DYNAMIC_NUMBERS, "ctrlrange": 2, "forcerange": 2,
    "actrange": 2, "lengthrange": 2, "acc0": 1, "factor": 1, "offset": 1,
}  # fmt: skip
"""Arrays ``actuator_*`` of a model, with so many numbers for each actuator."""


def actuator_numbers(actuators: list[Actuator]) -> dict[str, np.ndarray]:
    """These arrays as ``[actuators, numbers]`` float64, and ``ctrl`` and ``act`` as ``[actuators]``."""
    found = {}
    for name, size in NUMBERS.items():
        rows = np.zeros((len(actuators), size))
        for row, actuator in zip(rows, actuators, strict=True):
            value = getattr(actuator, name)
            if name.endswith("range"):
                lowest, highest = (0.0, 0.0) if name == "lengthrange" else (-MAXVAL, MAXVAL)
                value = np.clip((lowest, highest) if value is None else value, -MAXVAL, MAXVAL)
            row[:] = value
        found[name] = rows if size > 1 else rows[:, 0]
    for name in ("ctrl", "act"):
        found[name] = np.array([getattr(actuator, name) for actuator in actuators], dtype=np.float64)
    return found
