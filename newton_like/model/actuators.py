"""Actuators of a builder and a model: what they pull, and their parameters."""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np

from newton_like.coercion import as_index, as_number
from newton_like.options import configuration
from newton_like.types import MAXVAL, ShapeFlags

TRANSMISSIONS = ("joint", "jointinparent", "tendon", "site", "slidercrank", "body")
GAINS = ("fixed", "affine", "muscle")
BIASES = ("none", "affine", "muscle", "dcmotor")
DYNAMICS = ("none", "integrator", "filter", "filterexact", "muscle", "dcmotor")
TIME_CONSTANTS = {"filter": 1, "filterexact": 1, "muscle": 2, "dcmotor": 1}
"""Numbers of time constants, the first of ``dynprm``. Types of dynamics that are not here have none."""

DRIVES = ("joint_target_q", "joint_target_qd", "joint_f")
"""Entries of a drive that an actuator may set instead of a force."""

GAIN_NUMBERS, DYNAMIC_NUMBERS = 9, 3
"""How many of MuJoCo's ten parameters are read."""


def _first(value: float, count: int):
    return field(default_factory=lambda: (value, *(0.0,) * (count - 1)))


@configuration(frozen=True, kw_only=True)
class Actuator:
    """An actuator as in MuJoCo, whose force is ``gain a + bias`` within ``forcerange``, times ``gear``.

    The strength a is the activation, or the control if there is no activation dynamics. Gain and bias are constant, affine in length and
    velocity of the transmission, or those of a muscle. The controls are ``Control.actuator_ctrl``, the activations
    ``State.actuator_act``.

    Attributes:
        label: name.
        transmission: kind of its target: ``"joint"``, ``"jointinparent"``, ``"tendon"``, ``"site"``, ``"slidercrank"`` (a rod from the
            site of a crank to a slider, whose length is the place of the slider along its axis) or ``"body"`` (adhesion: the force presses
            the body onto what it touches, in equal parts at all its contacts).
        target: index of the joint, the tendon, the body, or the shape of the site; of a ``slidercrank`` that of the crank.
        dof: number of the dof of a joint with lengths or angles; -1: the whole BALL or FREE joint.
        reference: of a site: shape of the site relative to which the target moves; -1: the world. Of a ``slidercrank``: shape of the site
            of the slider, which moves along the z axis of the site.
        rod: length of the rod of a ``slidercrank`` [m].
        gear: factors on length and force; six for a BALL or FREE joint or a site, a force and a torque: in the frame of the site, or of
            its reference; of a FREE joint in world axes, with the torque in those of the body; of a BALL joint a torque at 0 to 2, in
            the frame of the body. ``jointinparent``: torques in the frame of the parent.
            The length of a BALL joint, and of a site with a reference, is the rotation vector along the torque, plus that of the force
            along the way between the sites; the length of a FREE joint, and of a site without reference, is zero.
        gain, bias, dynamics: types.
        gainprm, biasprm, dynprm: their parameters, see the MJCF reference: nine, nine and three numbers. The bias ``"dcmotor"`` is an
            affine one and the cogging torque ``A sin(N L + phi)`` beyond the range of forces, with A, N and phi at 3 to 5 of ``biasprm``.
            The dynamics ``"dcmotor"`` is that of a current i with ``t di/dt = (ctrl - K u) / R - i`` [A], where u is the speed of the
            transmission; t [s], R [Ohm] and K [N m/A] are ``dynprm``.
        ctrlrange, forcerange, actrange: limits, or ``None``.
        actearly: whether the force uses the activation at the end of the step.
        lengthrange: smallest and largest length of the transmission, which a muscle needs. Along a tendon it may be ``None``: the solver
            finds the extreme lengths within the limits of joints and tendon from the initial coordinates of the model on, and writes them
            to ``Model.actuator_lengthrange``.
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
    rod: float = 0.0
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

    @property
    def pulls_sites(self) -> bool:
        """Whether its target is the shape of a site."""
        return self.transmission in ("site", "slidercrank")

    def renumbered(self, joint, shape, tendon, body, **changes) -> Actuator:
        """A copy with renumbered indices, for copies of builders.

        Args:
            joint, shape, tendon, body: functions from old to new indices.
            changes: other attributes to change.
        """
        new = shape if self.pulls_sites else {"tendon": tendon, "body": body}.get(self.transmission, joint)
        reference = shape(self.reference) if self.reference >= 0 else -1
        return replace(self, target=new(self.target), reference=reference, **changes)

    def check(self, joint_count: int, shape_count: int, tendon_count: int, body_count: int) -> None:
        """Checks the actuator.

        Raises:
            IndexError: the target does not exist.
            TypeError: a value is not a number.
            ValueError: an unknown type; a wrong number of parameters; a lower limit above the upper limit; a negative time constant; a
                muscle without a range of lengths; a slider without a site or a rod; adhesion that depends on a length.
        """
        what = f"actuator {self.label!r}"
        for name, known in (
            ("transmission", TRANSMISSIONS), ("gain", GAINS), ("bias", BIASES), ("dynamics", DYNAMICS),
            ("drive", (None, *DRIVES)),
        ):  # fmt: skip
            if getattr(self, name) not in known:
                shown = ", ".join(map(str, known))
                raise ValueError(f"{what}: {name} {getattr(self, name)!r} is unknown; there are {shown}")
        counts = {"tendon": tendon_count, "site": shape_count, "slidercrank": shape_count, "body": body_count}
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
        for name in ("factor", "offset", "ctrl", "act", "acc0", "rod"):
            as_number(getattr(self, name), f"{what}: {name}")
        for name in ("ctrlrange", "forcerange", "actrange", "lengthrange"):
            pair = getattr(self, name)
            if pair is not None and not as_number(pair[0], f"{what}: {name}") <= as_number(pair[1], f"{what}: {name}"):
                raise ValueError(f"{what}: {name} {tuple(pair)} must be the smaller number and the larger one")
        for time in self.dynprm[: TIME_CONSTANTS.get(self.dynamics, 0)]:
            if time < 0.0:
                raise ValueError(f"{what}: the time constant {time:g} must be at least 0")
        known = self.lengthrange is not None and self.lengthrange[0] < self.lengthrange[1]
        if self.is_muscle and not known and not (self.transmission == "tendon" and self.lengthrange is None):
            raise ValueError(
                f"{what} is a muscle and has no range of lengths; give lengthrange, its smallest and largest length"
            )
        self._check_kind(what)

    def _check_kind(self, what: str) -> None:
        """Checks what only some transmissions and types have."""
        if self.transmission == "slidercrank" and (self.reference < 0 or not self.rod > 0.0):
            raise ValueError(
                f"{what}: a slidercrank needs the site of the slider as reference and the length of the rod above 0, not"
                f" reference={self.reference}, rod={self.rod:g}"
            )
        if self.transmission == "body" and (self.gain, self.bias) != ("fixed", "none"):
            raise ValueError(
                f"{what} acts on the contacts of a body, which have no length; use gain 'fixed' and bias 'none'"
            )
        if self.dynamics == "dcmotor" and (not self.dynprm[1] > 0.0 or self.transmission == "body"):
            raise ValueError(
                f"{what}: dcmotor dynamics need a resistance above 0 as the second number of dynprm, and a target that moves"
            )
        if self.drive is not None and (self.transmission != "joint" or self.dof < 0):
            raise ValueError(f"{what}: only an actuator on a joint with lengths or angles sets a drive")
        if self.drive is not None and self.dynamics == "dcmotor":
            raise ValueError(f"{what}: the current of a motor is a force of its own; dcmotor dynamics set no drive")


def check_sites(actuator: Actuator, builder) -> None:
    """Raises ValueError if an actuator on sites names a shape of a builder that is no site."""
    if not actuator.pulls_sites:
        return
    for name, shape in (("target", actuator.target), ("reference", actuator.reference)):
        if shape >= 0 and not builder.shape_flags[shape] & ShapeFlags.SITE:
            raise ValueError(
                f"actuator {actuator.label!r}: its {name} is {builder._describe('shape', shape)}, which is no site; make a site with"
                " add_site()"
            )


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
