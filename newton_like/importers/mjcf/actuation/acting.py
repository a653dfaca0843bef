"""Actuators of MJCF in a builder: those that are drives alone, and those that become actuators of the builder."""

from __future__ import annotations

from newton_like.importers.mjcf.actuation.actuators import DATA_ONLY, Actuator
from newton_like.importers.mjcf.actuation.motors import motor_law
from newton_like.importers.mjcf.actuation.ranges import give_ranges
from newton_like.importers.mjcf.records import Joint
from newton_like.model import actuators as modelled

_NOT_SIMULATED = "actuators of kinds that are not simulated are kept only as data, and do nothing"


def _forces(actuator: Actuator, effort) -> tuple[float, float] | None:
    """The range of forces of an actuator, with that of its joint or tendon, which is one of forces before gears for a tendon."""
    if effort is None or actuator.gear[0] == 0.0:
        return actuator.forcerange
    gear = 1.0 if actuator.transmission == "tendon" else actuator.gear[0]
    low, high = sorted(force / gear for force in effort)
    if actuator.forcerange is not None:
        low, high = (min(max(force, low), high) for force in actuator.forcerange)
    return low, high


def make(
    actuator: Actuator, joint: Joint | None, scale: float, effort, ctrl: float, act: float, **target
) -> modelled.Actuator | str:
    """The actuator of a builder for an actuator of the file; for one that is kept as data only, the reason.

    Args:
        actuator: the actuator; its ``drive`` is that of `newton_like.importers.mjcf.actuation.actuators.find_drives`.
        joint: its joint, or ``None``.
        scale: factor on lengths, for transmissions along lengths.
        effort: smallest and largest force of all actuators of the joint or tendon, or ``None``.
        ctrl, act: initial control and activation.
        target: label, transmission, index of the target, its dof, the reference and the rod.
    """
    laws = actuator.gain, actuator.bias, actuator.dynamics
    if "dcmotor" in (actuator.gain[0], actuator.bias[0], actuator.dynamics[0]):
        laws = motor_law(*laws, actuator.input)
        if isinstance(laws, str):
            return laws
    (gain, gainprm), (bias, biasprm), (dynamics, dynprm) = laws
    if actuator.kind in DATA_ONLY:
        return f"{actuator.kind} actuators"
    for kind, known, what in (
        (gain, modelled.GAINS, "gains"), (bias, modelled.BIASES, "biases"), (dynamics, modelled.DYNAMICS, "dynamics")
    ):  # fmt: skip
        if kind not in known:
            return f"{what} of type {kind}"
    slopes = [prm[1] for kind, prm in ((gain, gainprm), (bias, biasprm)) if kind in ("affine", "dcmotor")]
    whole = target["dof"] < 0
    zero = (actuator.transmission == "site" and not actuator.reference) or (whole and joint.kind == "free")
    muscle = "muscle" in (gain, bias)
    cogging = bias == "dcmotor" and biasprm[3] != 0.0
    if (muscle or cogging) and zero:
        return "muscles and cogging of a site without reference or of a free joint, whose length is always zero"
    if actuator.transmission == "body" and (gain != "fixed" or bias != "none"):
        return "forces on contacts that depend on a length"
    lengths = actuator.lengthrange
    if muscle and lengths is None and joint is not None and joint.range is not None:
        lengths = tuple(sorted(actuator.gear[0] * x for x in joint.range))
    unknown = lengths is None or lengths[0] == lengths[1]
    if muscle and unknown and (actuator.transmission != "tendon" or actuator.gear[0] == 0.0):
        return "muscles without lengthrange on joints without limits, or on sliders"
    scaled = scale if muscle or any(slopes) else 1.0
    if scaled != 1.0 and not muscle:
        gainprm, biasprm = ((scaled * prm[0], *prm[1:]) for prm in (gainprm, biasprm))
    return modelled.Actuator(
        gear=actuator.gear,
        gain=gain,
        bias=bias,
        dynamics=dynamics,
        gainprm=gainprm[: modelled.GAIN_NUMBERS],
        biasprm=biasprm[: modelled.GAIN_NUMBERS],
        dynprm=dynprm[: modelled.DYNAMIC_NUMBERS],
        ctrlrange=actuator.ctrlrange,
        forcerange=_forces(actuator, effort),
        actrange=actuator.actrange,
        actearly=actuator.attributes.get("actearly", "true" if dynamics == "dcmotor" else "false") == "true",
        lengthrange=None if unknown else (scaled * lengths[0], scaled * lengths[1]),
        drive=actuator.drive,
        factor=actuator.factor if actuator.drive else 1.0,
        offset=actuator.offset if actuator.drive else 0.0,
        ctrl=ctrl,
        act=act,
        **target,
    )


class Binder:
    """Finds the entries of ``Control`` of all actuators, and adds those that are no drives alone to the builder.

    Args:
        scene: the :class:`newton_like.importers.mjcf.build.SceneBuilder`, with all bodies, joints, sites and tendons in the builder.
        key: the keyframe with initial controls and activations, or ``None``.
        names: records of the model, by kind and name.
    """

    def __init__(self, scene, key, names: dict[str, dict]):
        self.scene, self.builder, self.scale = scene, scene.builder, scene.options.scale
        self._joints: dict[str, Joint] = names["joint"]
        self._spatial = {record.name for record in scene.tendons if record.path}
        self._limits = {record.name: record.values["effort"] for record in scene.tendons}
        self._controls, self._activations = (key and key.ctrl) or (), iter((key and key.act) or ())

    def bind(self) -> None:
        """Binds all actuators of the scene."""
        for number, actuator in enumerate(self.scene.actuators):
            act = next(self._activations, 0.0) if actuator.activated else 0.0
            if not self._drives(actuator):
                self._add(actuator, self._controls[number] if number < len(self._controls) else 0.0, act)
        give_ranges(self.builder, self.scene.sums, self._joints, self.scene.dofs)

    def _drives(self, actuator: Actuator) -> bool:
        """Gives an actuator its entry of a drive. Returns whether it is one alone."""
        scene = self.scene
        if actuator.drive is not None and actuator.transmission == "tendon":
            actuator.index = scene.indices[actuator.target]
            if actuator.drive != "tendon_f" and actuator.target in self._spatial:
                actuator.factor, actuator.offset = self.scale * actuator.factor, self.scale * actuator.offset
            return True
        if actuator.drive is None or actuator.target not in scene.dofs:
            return False
        if actuator.drive not in ("joint_f", "joint_act") and self._joints[actuator.target].kind == "slide":
            actuator.factor, actuator.offset = self.scale * actuator.factor, self.scale * actuator.offset
        if actuator.activated:
            return False
        table = scene.coords if actuator.drive == "joint_target_q" else scene.dofs
        actuator.index = table[actuator.target]
        return True

    def _add(self, actuator: Actuator, ctrl: float, act: float) -> None:
        joint = self._joints.get(actuator.target) if actuator.transmission.startswith("joint") else None
        slides = joint is not None and joint.kind == "slide"
        along = (
            actuator.target in self._spatial
            or actuator.transmission == "slidersite"
            or slides
            or (actuator.reference and any(actuator.gear[:3]))
        )
        efforts = (
            self._limits if actuator.transmission == "tendon" else {} if joint is None else {joint.name: joint.effort}
        )
        target = self._target_of(actuator)
        made = "targets that are not imported"
        if target is not None and self._pushes_the_world(target):
            made = "forces on sites of the world only, which have no effect"
        elif target is not None:
            summed = self.scene.sums.tendons if actuator.transmission == "tendon" else self.scene.sums.joints
            effort = None if actuator.target in summed else efforts.get(actuator.target)
            made = make(actuator, joint, self.scale if along else 1.0, effort, ctrl, act, **target)
        if isinstance(made, str):
            actuator.drive = None
            self.scene.model.findings.remark(_NOT_SIMULATED, f"{actuator.name} ({actuator.kind}: {made})")
            return
        actuator.drive, actuator.factor, actuator.offset = "actuator_ctrl", 1.0, 0.0
        actuator.index = self.builder.add_actuator(made)
        actuator.act = actuator.index if actuator.activated else -1

    def _pushes_the_world(self, target: dict) -> bool:
        """Whether all sites of an actuator, as :meth:`_target_of` gives them, are fixed to the world."""
        if target["transmission"] not in ("site", "slidercrank"):
            return False
        sites = [target[name] for name in ("target", "reference") if target[name] >= 0]
        return all(self.builder.shape_body[site] < 0 for site in sites)

    def _target_of(self, actuator: Actuator) -> dict | None:
        """Label, transmission, target, dof, reference and rod of an actuator as the builder counts them; None: the builder has no such
        target."""
        scene, target = self.scene, actuator.target
        found = {"label": scene.label(actuator.name), "dof": 0, "transmission": actuator.transmission}
        if actuator.transmission == "tendon":
            return {**found, "target": scene.indices[target]}
        if actuator.transmission == "site":
            reference = scene.sites.get(actuator.reference, -1) if actuator.reference else -1
            if target not in scene.sites or (actuator.reference and reference < 0):
                return None
            return {**found, "target": scene.sites[target], "reference": reference}
        if actuator.transmission == "slidersite":
            if target not in scene.sites or actuator.crank not in scene.sites:
                return None
            sites = {"target": scene.sites[actuator.crank], "reference": scene.sites[target]}
            return {**found, "transmission": "slidercrank", **sites, "rod": self.scale * actuator.rod}
        if actuator.transmission == "body":
            link = scene.frames[target][0]
            return {**found, "target": link} if link >= 0 else None
        if target not in scene.joints:
            return None
        joint, kind = scene.joints[target], self._joints[target].kind
        number = scene.dofs[target] - self.builder.joint_qd_start[joint]
        return {**found, "target": joint, "dof": -1 if kind in ("ball", "free") else number}
