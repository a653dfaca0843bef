"""Writes the actuators of a model as MjcActuator prims, in MuJoCo's units with angles in radians.

Properties without a name in this schema are ``newtonLike:`` attributes.
"""

from __future__ import annotations

import numpy as np

from newton_like.exporters.usd.author import Author
from newton_like.types import MAXVAL

NUMBERS = {"gear": "mjc:gear", "gainprm": "mjc:gainPrm", "biasprm": "mjc:biasPrm", "dynprm": "mjc:dynPrm"}
"""Attributes of the arrays ``actuator_*``."""

SIZE = 10
"""Numbers of gain, bias and dynamics in the schema."""

RANGES = {"ctrlrange": "ctrl", "forcerange": "force", "actrange": "act"}
"""Names ``mjc:<name>Range`` and ``mjc:<name>Limited`` of the arrays of ranges."""

TYPES = {"gain": "mjc:gainType", "bias": "mjc:biasType", "dynamics": "mjc:dynType"}

MOTOR = "dcmotor"
"""A type whose numbers are not those of MuJoCo: the attributes of other tools do not get it."""

OWN = {
    "acc0": ("acc0", 0.0),
    "factor": ("factor", 1.0),
    "offset": ("offset", 0.0),
    "ctrl": ("ctrl", 0.0),
    "act": ("act", 0.0),
}
"""The array ``actuator_*`` of each attribute ``newtonLike:``, and the number of an actuator without it."""


class ActuatorWriter:
    """Writes MjcActuator prims.

    Args:
        author: author of the layer.
        host: arrays of the model.
        remark: function that is called with a statement and an actuator's label.
    """

    def __init__(self, author: Author, host, remark):
        model = host.model
        self._author, self._model, self._remark = author, model, remark
        names = {*NUMBERS, *RANGES, *OWN, "lengthrange"}
        self._arrays = {name: getattr(model, f"actuator_{name}").numpy().astype(float) for name in names}
        self._arrays["act"] = host.actuator_act

    def write(self, path: str, number: int, index: int, label: str, paths: dict[str, list[str]]) -> None:
        """Writes one actuator.

        Args:
            path: path of its prim.
            number: index in the model.
            index: index among the actuators of its scope.
            label: its label there.
            paths: paths of all prims of joints, shapes, tendons and bodies.
        """
        author, actuator = self._author, self._model.actuators[number]
        prim = author.prim(path, "MjcActuator")
        author.set(prim, "newtonLike:label", "string", label)
        author.set(prim, "newtonLike:index", "int", index)
        self._targets(prim, actuator, paths)
        for name, attribute in TYPES.items():
            kind = getattr(actuator, name)
            if kind == MOTOR:
                author.set(prim, f"newtonLike:{attribute.partition(':')[2]}", "token", kind, uniform=True)
                self._remark("other tools do not read windings and cogging of motors", actuator.label)
                kind = "affine" if name == "bias" else "none"
            author.set(prim, attribute, "token", kind, uniform=True)
        numbers = {name: values[number] for name, values in self._arrays.items()}
        for name, attribute in NUMBERS.items():
            values = np.atleast_1d(numbers[name]).tolist()
            author.set(
                prim, attribute, "double[]", values if name == "gear" else [*values, *[0.0] * (SIZE - len(values))]
            )
        for name, short in RANGES.items():
            low, high = numbers[name].tolist()
            given = low > -float(np.float32(MAXVAL)) or high < float(np.float32(MAXVAL))
            author.set(prim, f"mjc:{short}Limited", "token", "true" if given else "false", uniform=True)
            self._range(prim, f"mjc:{short}Range", (low, high) if given else ())
        if numbers["lengthrange"][0] < numbers["lengthrange"][1]:
            self._range(prim, "mjc:lengthRange", numbers["lengthrange"].tolist())
        if actuator.actearly:
            author.set(prim, "mjc:actEarly", "bool", True)
        if actuator.drive is not None:
            author.set(prim, "newtonLike:drive", "token", actuator.drive, uniform=True)
        for name, (ours, usual) in OWN.items():
            if numbers[ours] != usual:
                author.set(prim, f"newtonLike:{name}", "double", float(numbers[ours]))

    def _range(self, prim, name: str, bounds) -> None:
        for end, value in zip(("min", "max"), bounds, strict=False):
            self._author.set(prim, f"{name}:{end}", "double", value)

    def _targets(self, prim, actuator, paths: dict[str, list[str]]) -> None:
        author, kind = self._author, actuator.transmission
        author.set(prim, "newtonLike:transmission", "token", kind, uniform=True)
        if kind in ("joint", "jointinparent"):
            target = paths["joint"][actuator.target]
            # free joints of bases have no prims
            target = target or paths["body"][int(self._model.joint_child.numpy()[actuator.target])]
            if kind == "jointinparent":
                author.set(prim, "mjc:jointInParent", "bool", True)
        else:
            target = paths["shape" if actuator.pulls_sites else kind][actuator.target]
        author.relate(prim, "mjc:target", [target])
        if actuator.dof:
            author.set(prim, "newtonLike:dof", "int", actuator.dof)
        if kind == "slidercrank":
            author.relate(prim, "mjc:sliderSite", [paths["shape"][actuator.reference]])
            author.set(prim, "mjc:crankLength", "double", actuator.rod)
        elif actuator.reference >= 0:
            author.relate(prim, "mjc:refSite", [paths["shape"][actuator.reference]])
