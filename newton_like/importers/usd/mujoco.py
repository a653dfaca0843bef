"""MuJoCo's settings in USD stages: which custom attributes a stage needs, softness of limits, and settings of pairs of shapes."""

from __future__ import annotations

import math

import numpy as np

from newton_like.model.joint_types import JOINT_TYPES
from newton_like.model.mujoco.contact_settings import (
    NAMESPACE,
    PAIR,
    SOLIMP,
    SOLREF,
    declare_body_settings,
    declare_contact_settings,
    is_solref,
)
from newton_like.model.mujoco.effort_settings import declare_effort_settings
from newton_like.types import ShapeFlags

_LIMITS = ("mjc:solreflimit", "mjc:solimplimit", "mjc:margin")
_CONTACTS = ("mjc:condim", "mjc:priority", "mjc:solmix", "mjc:solref", "mjc:solimp")
_NO_RULES = "mjc: attributes of contacts have no effect without newton:mujoco:contact_rules"
_RULES = f"newton:{NAMESPACE}:limit_rules"
_PAIRS = "newtonLike:pairs"
_NO_PAIR = "settings of pairs of shapes that are not loaded are ignored"

PAIR_SIZES = {"index": 1, "condim": 1, "solref": 2, "solimp": 5, "margin": 1, "gap": 1, "friction": 5}
"""Numbers of each pair in the attributes ``newtonLike:pair<Name>``, by the names of settings of pairs."""


def declare_stated(builder, scene) -> None:
    """Declares the custom attributes of the namespace ``mujoco`` that prims of a scene state.

    Args:
        builder: the builder.
        scene: the records, whose counts of attributes that are not read have their names.
    """
    counts = scene.leftovers.not_understood
    if f"newton:{NAMESPACE}:effort_rules" in counts:
        declare_effort_settings(builder)
    if "mjc:gravcomp" in counts:
        declare_body_settings(builder)
    limits = any(name in counts for name in _LIMITS)
    if limits or any(name.startswith(f"newton:{NAMESPACE}:") for name in counts) or _has_pairs(scene):
        declare_contact_settings(builder)
    for name in _LIMITS if limits else ():
        counts.pop(name, None)


def _has_pairs(scene) -> bool:
    return bool(scene.order) and any(scene.prim_at(path).HasRelationship(_PAIRS) for path in scene.shapes)


class MujocoSettings:
    """Adds the settings of a scene to its builder.

    Args:
        constraints: the `newton_like.importers.usd.constraints.Constraints` of the scene.
    """

    def __init__(self, constraints):
        self.builder, self.scene, self.made = constraints.builder, constraints.scene, constraints.made
        self.shapes, self.reader = constraints.shapes, constraints.reader

    def add(self) -> None:
        """Adds softness of limits and settings of pairs.

        Raises:
            ImportFileError: an attribute is invalid.
        """
        if f"{NAMESPACE}:limit_rules" not in self.builder.custom_attributes:
            return
        for path in self.made.joints:
            self._limits(self.scene.prim_at(path), path)
        pairs = []
        for path, indices in self.made.shapes.items():
            if not self.scene.order:
                self._look_at_contacts(path, indices)
            elif indices:
                pairs += self._pairs(self.scene.prim_at(path), path, indices[0])
        for _, values in sorted(pairs, key=lambda pair: pair[0]):
            self.builder.add_custom_values(**{f"{PAIR}_{name}": value for name, value in values.items()})

    def _limits(self, prim, path: str) -> None:
        """Softness of the limits of a joint with one axis, or of a ball joint, by attributes of MuJoCo."""
        reader, builder = self.reader, self.builder
        stated = [name for name in _LIMITS if reader.get(prim, name) is not None]
        # stages of `newton_like.usd.write` state the rules
        if not stated or any(reader.get(prim, name) is not None for name in ("newtonLike:index", _RULES)):
            return
        dofs = self.made.dofs[path]
        # custom attributes are read without units and checks
        for name in ("solreflimit", "solimplimit", "limit_margin"):
            for dof in dofs:
                builder.custom_attributes[f"{NAMESPACE}:{name}"].values.pop(dof, None)
        joint = self.made.joints[path]
        if len(dofs) != 1 and not JOINT_TYPES[builder.joint_type[joint]].turns_only:
            self.scene.remark("mjc: attributes of limits are read for joints with one axis and ball joints only", prim)
            return
        linear = dofs[0] - builder.joint_qd_start[joint] < builder.joint_dof_dim[joint][0]
        length = self.scene.units.meters if linear else 1.0
        solref, solimp = (self._filled(prim, *row) for row in zip(_LIMITS, (SOLREF, SOLIMP), strict=False))
        if not is_solref(solref):
            self.scene.remark("mjc:solreflimit has a 0 or two signs, and is ignored", prim)
            solref = SOLREF
            if stated == ["mjc:solreflimit"]:
                return
        low, high, width, *curve = solimp
        margin = reader.number(prim, "mjc:margin", 0.0, low=0.0)
        values = {
            "limit_rules": 1, "solreflimit": solref, "solimplimit": (low, high, length * width, *curve), "limit_margin": length * margin,
        }  # fmt: skip
        for name, value in values.items():
            builder.custom_attributes[f"{NAMESPACE}:{name}"].values[dofs[0]] = value

    def _filled(self, prim, name: str, usual: tuple) -> tuple:
        """Numbers of an attribute; those that are missing at its end are the usual ones."""
        values = self.reader.numbers(prim, name)
        numbers = [] if values is None else values.ravel().tolist()
        if len(numbers) > len(usual) or not all(map(math.isfinite, numbers)):
            raise self.reader.error(prim, f"{name} is {numbers}; give {len(usual)} finite numbers")
        return (*numbers, *usual[len(numbers) :])

    def _look_at_contacts(self, path: str, indices: list[int]) -> None:
        """Remarks on settings of contacts that no rule uses."""
        rules = self.builder.custom_attributes[f"{NAMESPACE}:contact_rules"].values
        collides = any(self.builder.shape_flags[i] & ShapeFlags.COLLIDE_SHAPES for i in indices)
        if collides and not any(rules.get(i) for i in indices):
            prim = self.scene.prim_at(path)
            if any(attribute.HasAuthoredValue() for name in _CONTACTS if (attribute := prim.GetAttribute(name))):
                self.scene.remark(_NO_RULES, path)
            laws = self.builder.custom_attributes[f"{NAMESPACE}:solref"].values
            for i in indices:
                if i in laws and not is_solref(laws[i]):
                    del laws[i]

    def _pairs(self, prim, path: str, shape: int) -> list[tuple[float, dict]]:
        """Index and settings of the pairs of a shape and others."""
        targets = [str(target) for target in self.reader.targets(prim, _PAIRS)]
        columns, found = {}, []
        for name, size in PAIR_SIZES.items() if targets else ():
            values = self.reader.numbers(prim, full := f"newtonLike:pair{name.capitalize()}")
            if values is None or values.size != size * len(targets):
                raise self.reader.error(
                    prim, f"{full} needs {size * len(targets)} numbers for the targets of {_PAIRS}; correct it"
                )
            columns[name] = values.reshape(len(targets), *(() if size == 1 else (size,)))
        for i, target in enumerate(targets):
            other = self.shapes.get(target)
            if not other:
                self.scene.remark(_NO_PAIR, f"{path} and {target}")
                continue
            values = {name: column[i].tolist() for name, column in columns.items()}
            values |= {"geom1": shape, "geom2": other[0], "condim": int(np.rint(columns["condim"][i]))}
            found.append((values.pop("index"), values))
        return found
