"""Adds the actuators of a USD stage to a builder: MjcActuator prims.

Numbers have MuJoCo's units, with angles in radians. Stages in other units than metres and kilograms are not converted.
"""

from __future__ import annotations

import math

from newton_like.model.actuators import (
    BIASES,
    DRIVES,
    DYNAMIC_NUMBERS,
    DYNAMICS,
    GAIN_NUMBERS,
    GAINS,
    TRANSMISSIONS,
    Actuator,
)
from newton_like.model.joint_types import JOINT_TYPES

_TYPES = {
    "gain": ("gainType", GAINS, "fixed"),
    "bias": ("biasType", BIASES, "none"),
    "dynamics": ("dynType", DYNAMICS, "none"),
}
_NUMBERS = {
    "gear": ("gear", 6, 1.0),
    "gainprm": ("gainPrm", 10, 1.0),
    "biasprm": ("biasPrm", 10, 0.0),
    "dynprm": ("dynPrm", 10, 1.0),
}
_USED = {"gear": 6, "gainprm": GAIN_NUMBERS, "biasprm": GAIN_NUMBERS, "dynprm": DYNAMIC_NUMBERS}
_OWN = {"acc0": 0.0, "factor": 1.0, "offset": 0.0, "ctrl": 0.0, "act": 0.0}


class Actuators:
    """Actuators of one scene.

    Args:
        constraints: the `newton_like.importers.usd.constraints.Constraints` of the scene, which have added its tendons.
    """

    def __init__(self, constraints):
        self.builder, self.scene, self.made = constraints.builder, constraints.scene, constraints.made
        self.shapes, self.tendons, self.prefix = constraints.shapes, constraints.made_tendons, constraints.prefix
        self.reader = self.scene.reader

    def add(self) -> None:
        """Adds all of them.

        Raises:
            ImportFileError: an attribute is invalid, or names a prim that does not exist.
        """
        prims = [(path, self.scene.prim_at(path)) for path in self.scene.actuators]
        units = self.scene.units
        if prims and (units.meters != 1.0 or units.kilograms != 1.0):
            for path, _ in prims:
                self.scene.remark("actuators of stages in other units than metres and kilograms have no effect", path)
            return
        for path, prim in sorted(prims, key=lambda pair: self.reader.get(pair[1], "newtonLike:index", math.inf)):
            target = self._target(prim)
            if target is None:
                self.scene.remark("actuators whose targets are not loaded have no effect", path)
                continue
            label = self.reader.get(prim, "newtonLike:label")
            label = path if label is None else self.prefix + str(label)
            try:
                self.builder.add_actuator(Actuator(label=label, **target, **self._settings(prim)))
            except ValueError as error:
                raise self.reader.error(prim, str(error)) from None

    def _one(self, prim, name: str) -> str:
        """The target of a relationship; "": it has none."""
        targets = [str(target) for target in self.reader.targets(prim, name)]
        if len(targets) > 1:
            raise self.reader.error(prim, f"{name} has {len(targets)} targets; give one")
        if targets and not self.scene.prim_at(targets[0]):
            raise self.reader.error(prim, f"{name} names <{targets[0]}>, which does not exist; correct it")
        return targets[0] if targets else ""

    def _target(self, prim) -> dict | None:
        """Transmission, target, dof, reference and rod; None: a prim is not loaded."""
        reader, made = self.reader, self.made
        target = self._one(prim, "mjc:target")
        if not target:
            raise reader.error(prim, "mjc:target has no target; an actuator needs a joint, a tendon, a site or a body")
        slider, reference = self._one(prim, "mjc:sliderSite"), self._one(prim, "mjc:refSite")
        stated = reader.token(prim, "newtonLike:transmission", "")
        if stated and stated not in TRANSMISSIONS:
            raise reader.error(prim, f"newtonLike:transmission {stated!r} is unknown; use {', '.join(TRANSMISSIONS)}")
        if target in made.joints or (stated.startswith("joint") and target in made.base_joints):
            kind = "jointinparent" if reader.get(prim, "mjc:jointInParent", False) else "joint"
            return {"transmission": kind, **self._joint(prim, target)}
        if target in self.tendons:
            return {"transmission": "tendon", "target": self.tendons[target]}
        if target in made.bodies and stated in ("", "body"):
            return {"transmission": "body", "target": made.bodies[target]}
        if target not in self.shapes:
            return None
        found = {"transmission": "site", "target": self.shapes[target][0]}
        other = slider or reference
        if other:
            if other not in self.shapes:
                return None
            found["reference"] = self.shapes[other][0]
        if slider:
            found |= {"transmission": "slidercrank", "rod": reader.number(prim, "mjc:crankLength", 0.0)}
        return found

    def _joint(self, prim, target: str) -> dict:
        builder, made = self.builder, self.made
        index = made.joints.get(target, made.base_joints.get(target))
        if JOINT_TYPES[builder.joint_type[index]].has_quaternion:
            return {"target": index, "dof": -1}
        number = int(self.reader.get(prim, "newtonLike:dof", 0))
        first = made.dofs[target][0] - builder.joint_qd_start[index] if made.dofs.get(target) else 0
        return {"target": index, "dof": first + number}

    def _settings(self, prim) -> dict:
        """The other arguments of an actuator."""
        reader, found = self.reader, {}
        for name, (attribute, known, usual) in _TYPES.items():
            kind = reader.token(prim, f"newtonLike:{attribute}", "") or reader.token(prim, f"mjc:{attribute}", usual)
            if kind not in known:
                raise reader.error(prim, f"mjc:{attribute} {kind!r} is not simulated; use {', '.join(known)}")
            found[name] = kind
        for name, (attribute, most, first) in _NUMBERS.items():
            values = reader.numbers(prim, f"mjc:{attribute}")
            values = [] if values is None else values.ravel().tolist()
            if len(values) > most or not all(map(math.isfinite, values)):
                raise reader.error(prim, f"mjc:{attribute} is {values}; give up to {most} finite numbers")
            usual = [first, *[0.0] * (most - 1)]
            found[name] = tuple([*values, *usual[len(values) :]][: _USED[name]])
        for name, attribute in (
            ("ctrlrange", "ctrl"),
            ("forcerange", "force"),
            ("actrange", "act"),
            ("lengthrange", "length"),
        ):
            found[name] = self._range(prim, attribute)
        drive = reader.token(prim, "newtonLike:drive", "") or None
        if drive is not None and drive not in DRIVES:
            raise reader.error(prim, f"newtonLike:drive {drive!r} is unknown; use {', '.join(DRIVES)}")
        found |= {name: reader.number(prim, f"newtonLike:{name}", usual) for name, usual in _OWN.items()}
        return {**found, "drive": drive, "actearly": bool(reader.get(prim, "mjc:actEarly", False))}

    def _range(self, prim, name: str) -> tuple[float, float] | None:
        reader = self.reader
        bounds = [reader.authored(prim, f"mjc:{name}Range:{end}") for end in ("min", "max")]
        state = reader.token(prim, f"mjc:{name}Limited", "auto")
        if state == "false":
            return None
        low, high = (0.0 if bound is None else float(bound) for bound in bounds)
        if not low <= high:
            raise reader.error(prim, f"mjc:{name}Range:min {low:g} is above mjc:{name}Range:max {high:g}; swap them")
        # as in MuJoCo, "auto" takes equal bounds as none
        return (low, high) if state == "true" or low < high else None
