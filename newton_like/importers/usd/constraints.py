"""Adds the tendons and equality constraints of a USD stage to a builder: MjcTendon prims, and MjcEquality attributes of joints.

Numbers have MuJoCo's units, with angles in radians and lengths in units of the stage. `newton_like.importers.usd.physx_tendons` adds the
tendons of PhysX.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

from newton_like.importers.shared import bounded
from newton_like.importers.usd.physx_tendons import PhysxTendons
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.model.mujoco.contact_settings import NAMESPACE, SOLIMP, SOLREF, is_solref
from newton_like.model.mujoco.equality_settings import EQUALITY_DEFAULTS, declare_equality_settings
from newton_like.model.tendons import Tendon, TendonTie, check_path
from newton_like.types import GeoType, ShapeFlags

_KEPT = "tendons are kept in the report and have no effect"


class Constraints:
    """Tendons and equality constraints of one scene.

    Args:
        builder: the builder with the added scene.
        scene: the records.
        made: the ``SceneBuilder`` that added them.
        others: those of the scenes before, whose shapes tendons may run through.
        prefix: prefix of labels.

    Attributes:
        shapes: indices of shapes by path.
        made_tendons: indices of added MjcTendon prims by path.
    """

    def __init__(self, builder, scene, made, others=(), prefix: str = ""):
        self.builder, self.scene, self.made, self.prefix = builder, scene, made, prefix
        self.reader, self.meters, self.kilograms = scene.reader, scene.units.meters, scene.units.kilograms
        self.made_tendons: dict[str, int] = {}
        self.shapes = {path: found for one in (*others, made) for path, found in one.shapes.items()}

    def add(self) -> None:
        """Adds all of them.

        Raises:
            ImportFileError: an attribute is invalid, or names a prim that does not exist.
        """
        records = [(record, self.scene.prim_at(record.path)) for record in self.scene.tendons if record.kind == "mjc"]
        for record, prim in sorted(records, key=lambda pair: self.reader.get(pair[1], "newtonLike:index", math.inf)):
            tendon = self._tendon(prim, record.path)
            if tendon is None:
                self.scene.remark(_KEPT, record.path)
            else:
                self.made_tendons[record.path] = self.builder.add_tendon(tendon)
        PhysxTendons(self.builder, self.scene, self.made).add()
        for path, index in self.made_tendons.items():
            self._tie(self.scene.prim_at(path), index)
        for path in self.made.joints:
            self._equality(self.scene.prim_at(path), self.made.joints[path])

    # ----------------------------------------------------------------------------------------------- tendons

    def _tendon(self, prim, path: str) -> Tendon | None:
        """The tendon of a prim; None: it runs through prims that are not loaded."""
        reader = self.reader
        kind = reader.token(prim, "mjc:type", "spatial")
        if kind not in ("spatial", "fixed"):
            raise reader.error(prim, f"mjc:type {kind!r} is unknown; use 'spatial' or 'fixed'")
        targets = [str(target) for target in reader.targets(prim, "mjc:path")]
        if not targets:
            what = "joints" if kind == "fixed" else "sites"
            raise reader.error(prim, f"mjc:path has no targets; a {kind} tendon needs {what}")
        numbers = self._integers(prim, "mjc:path:indices", range(len(targets)), None, 0, len(targets))
        entries = [targets[n] for n in numbers]
        found = self._joints(prim, entries) if kind == "fixed" else self._path(prim, entries)
        if found is None:
            return None
        label = reader.get(prim, "newtonLike:label")
        label = path if label is None else self.prefix + str(label)
        return Tendon(label=label, **found, **self._settings(prim, self.meters if kind == "spatial" else 1.0))

    def _integers(self, prim, name: str, usual, count: int | None, low: int, high: int) -> list[int]:
        """An array of `count` indices from `low` to before `high`."""
        values = self.reader.numbers(prim, name)
        if values is None or not values.size:
            return list(usual)
        numbers = values.ravel().tolist()
        if (count is not None and len(numbers) != count) or any(n != int(n) or not low <= n < high for n in numbers):
            many = "" if count is None else f"{count} "
            raise self.reader.error(prim, f"{name} is {numbers}; give {many}indices from {low} to {high - 1}")
        return [int(n) for n in numbers]

    def _known(self, prim, target: str, table: dict, what: str):
        """The entry of a target in a table; None: it is not loaded."""
        if target in table:
            return table[target]
        if not self.scene.prim_at(target):
            raise self.reader.error(prim, f"mjc:path names <{target}>, which does not exist; name a {what}")
        return None

    def _joints(self, prim, entries: list[str]) -> dict | None:
        builder, made = self.builder, self.made
        coefs = self.reader.numbers(prim, "mjc:path:coef")
        coefs = [1.0] * len(entries) if coefs is None else coefs.ravel().tolist()
        if len(coefs) != len(entries) or not all(map(math.isfinite, coefs)):
            raise self.reader.error(
                prim, f"mjc:path:coef is {coefs}; give {len(entries)} finite numbers, one for each joint"
            )
        dofs = self._integers(prim, "newtonLike:dofs", [0] * len(entries), len(entries), 0, 6)
        joints = []
        for target, coef, number in zip(entries, coefs, dofs, strict=True):
            index = self._known(prim, target, made.joints, "joint")
            if index is None:
                return None
            # joints that were merged into one have its dofs
            dof = made.dofs[target][0] - builder.joint_qd_start[index] + number
            linear = builder.joint_dof_dim[index][0]
            if not made.dofs[target] or JOINT_TYPES[builder.joint_type[index]].has_quaternion:
                raise self.reader.error(
                    prim, f"mjc:path names <{target}>, which has no length or angle; name another joint"
                )
            joints.append((index, dof, coef / (self.meters if dof < linear else 1.0)))
        return {"joints": tuple(joints)}

    def _path(self, prim, entries: list[str]) -> dict | None:
        reader, builder, count = self.reader, self.builder, len(entries)
        divisors = reader.numbers(prim, "mjc:path:divisors")
        divisors = [1.0] if divisors is None or not divisors.size else divisors.ravel().tolist()
        if not all(d > 0.0 and math.isfinite(d) for d in divisors):
            raise reader.error(prim, f"mjc:path:divisors is {divisors}; give numbers above 0")
        segments = self._integers(prim, "mjc:path:segments", [0] * count, count, 0, len(divisors))
        if any(b < a for a, b in pairwise(segments)):
            raise reader.error(prim, f"mjc:path:segments is {segments}; give indices that do not fall")
        sides = [str(target) for target in reader.targets(prim, "mjc:sideSites")]
        beside = self._integers(prim, "mjc:sideSites:indices", [-1] * count, count, -1, len(sides))
        path, last = [], -1
        for target, segment, side in zip(entries, segments, beside, strict=True):
            found = [self._known(prim, target, self.shapes, "site or a shape"), [-1]]
            if side >= 0:
                found[1] = self._known(prim, sides[side], self.shapes, "site")
            if None in found or any(len(shapes) != 1 for shapes in found):
                return None
            if segment != last and (last >= 0 or divisors[segment] != 1.0):
                path.append(("pulley", divisors[segment]))
            last, (shape, beside_it) = segment, (shapes[0] for shapes in found)
            if builder.shape_flags[shape] & ShapeFlags.SITE:
                path.append(("site", shape))
                continue
            if builder.shape_type[shape] not in (GeoType.SPHERE, GeoType.CYLINDER):
                raise reader.error(
                    prim, f"the path wraps around <{target}>; a tendon wraps around spheres and cylinders"
                )
            path.append(("geom", shape, beside_it))
        try:
            check_path("", tuple(path))
        except ValueError as error:
            raise reader.error(prim, str(error).partition(": ")[2]) from None
        return {"path": tuple(path)}

    def _settings(self, prim, length: float) -> dict:
        """The other arguments of a tendon, for the unit of its length."""
        reader = self.reader
        energy = self.kilograms * self.meters**2

        def number(name: str, unit: float, low: float | None = None) -> float:
            return unit * reader.number(prim, name, 0.0, low=low)

        gain, inertia = energy / length**2, energy / length**2
        settings = {
            "stiffness": number("mjc:stiffness", gain, 0.0),
            "damping": number("mjc:damping", gain, 0.0),
            "friction": number("mjc:frictionloss", energy / length, 0.0),
            "armature": number("mjc:armature", inertia, 0.0),
            "margin": number("mjc:margin", length, 0.0),
            "offset": number("newtonLike:offset", length),
            "target_ke": number("newtonLike:targetStiffness", gain, 0.0),
            "target_kd": number("newtonLike:targetDamping", gain, 0.0),
            "force": number("newtonLike:force", energy / length),
            "target_q": number("newtonLike:targetPosition", length),
            "target_qd": number("newtonLike:targetVelocity", length),
        }
        effort = reader.authored(prim, "newtonLike:effortLimit")
        if effort is not None:
            settings["effort_limit"] = bounded(effort * energy / length)
        stiffness = reader.authored(prim, "newtonLike:limitStiffness")
        if stiffness is not None and stiffness >= 0.0:
            settings["limit_ke"] = gain * stiffness
        own = self._several(prim, "newtonLike:restLength", 2)
        rest = self._several(prim, "mjc:springlength", 2) if own is None else own
        if rest is not None and (own is not None or set(rest) != {-1.0}):
            settings["rest_length"] = (length * rest[0], length * max(rest))
        settings["limits"] = self._range(prim, "range", "limited", length)
        settings["effort"] = self._range(prim, "actuatorfrcrange", "actuatorfrclimited", energy / length)
        settings |= self._law(prim, "solreflimit", "solimplimit", ("solref_limit", "solimp_limit"), length)
        return settings

    def _tie(self, prim, index: int) -> None:
        """Adds the equality constraints of a tendon."""
        reader, builder, ties = self.reader, self.builder, []
        while (coefficients := self._several(prim, f"newtonLike:tie{len(ties)}Coefficients", 5)) is not None:
            name = f"newtonLike:tie{len(ties)}"
            leader = index
            for target in reader.targets(prim, f"mjc:tie{len(ties)}Leader"):
                if str(target) not in self.made_tendons:
                    raise reader.error(
                        prim,
                        f"mjc:tie{len(ties)}Leader names <{target}>, which is no tendon that was imported; correct it",
                    )
                leader = self.made_tendons[str(target)]
            units = [self.meters if builder.tendons[n].is_spatial else 1.0 for n in (index, leader)]
            rest = self._several(prim, f"{name}Rest", 2) or (0.0, 0.0)
            law = self._law(prim, f"{name}Solref", f"{name}Solimp", ("solref", "solimp"), units[0])
            numbers = (*coefficients, *(0.0,) * 5)[:5]
            scaled = tuple(units[0] * c / units[1] ** i for i, c in enumerate(numbers))
            rest = tuple(unit * x for unit, x in zip(units, rest, strict=True))
            enabled = reader.flag(prim, f"{name}Enabled", True)
            ties.append(TendonTie(leader=leader - index, polycoef=scaled, rest=rest, enabled=enabled, **law))
        if ties:
            builder.tendons[index] = replace(builder.tendons[index], ties=tuple(ties))

    def _several(self, prim, name: str, count: int) -> tuple | None:
        """Up to `count` finite numbers; the last is repeated."""
        values = self.reader.numbers(prim, name)
        if values is None or not values.size:
            return None
        numbers = values.ravel().tolist()
        if len(numbers) > count or not all(map(math.isfinite, numbers)):
            raise self.reader.error(prim, f"{name} is {numbers}; give {count} finite numbers")
        return (*numbers, *numbers[-1:] * (count - len(numbers)))

    def _range(self, prim, name: str, limited: str, unit: float) -> tuple | None:
        reader = self.reader
        bounds = [reader.authored(prim, f"mjc:{name}:{end}") for end in ("min", "max")]
        state = reader.token(prim, f"mjc:{limited}", "auto")
        if state == "false" or (state != "true" and bounds == [None, None]):
            return None
        low, high = (0.0 if bound is None else bound for bound in bounds)
        if low > high:
            raise reader.error(prim, f"mjc:{name}:min {low:g} is above mjc:{name}:max {high:g}; swap them")
        return bounded(unit * low), bounded(unit * high)

    def _law(self, prim, ref: str, imp: str, names, length: float) -> dict:
        """``solref`` and ``solimp`` that the prim states."""
        found = {}
        for attribute, name, usual in ((ref, names[0], SOLREF), (imp, names[1], SOLIMP)):
            full = attribute if ":" in attribute else f"mjc:{attribute}"
            values = self.reader.numbers(prim, full)
            if values is None or not values.size:
                continue
            numbers = values.ravel().tolist()
            if len(numbers) > len(usual) or not all(map(math.isfinite, numbers)):
                raise self.reader.error(prim, f"{full} is {numbers}; give {len(usual)} finite numbers")
            found[name] = (*numbers, *usual[len(numbers) :])
        if not is_solref(found.get(names[0], SOLREF)):
            self.scene.remark(f"{ref if ':' in ref else f'mjc:{ref}'} has a 0 or two signs, and is ignored", prim)
            found[names[0]] = SOLREF
        if names[1] in found:
            low, high, width, *curve = found[names[1]]
            found[names[1]] = (low, high, length * width, *curve)
        return found

    # ------------------------------------------------------------------------------------------- equalities

    def _equality(self, prim, joint: int) -> None:
        """The row of a joint with an MjcEquality schema."""
        self._other_equalities(prim, joint)
        listed = prim.GetMetadata("apiSchemas")
        applied = listed.GetAppliedItems() if listed is not None else ()
        kinds = [
            name for name in applied if name in ("MjcEqualityJointAPI", "MjcEqualityConnectAPI", "MjcEqualityWeldAPI")
        ]
        if not kinds:
            return
        law = self._law(prim, "solref", "solimp", ("eq_solref", "eq_solimp"), 1.0)
        values = {**EQUALITY_DEFAULTS, **law, "eq_rules": int(bool(law)), "equality_constraint_target": joint}
        values["equality_constraint_torquescale"] = self.reader.number(prim, "mjc:torqueScale", 1.0)
        follower = self.builder.joint_mimic_joint[joint] >= 0
        if "MjcEqualityJointAPI" in kinds and not follower:
            values |= self._polynomial(prim, joint)
        elif not law:
            return
        # that is the open one
        del values["equality_constraint_world"]
        declare_equality_settings(self.builder)
        self.builder.add_custom_values(**{f"{NAMESPACE}:{name}": value for name, value in values.items()})

    def _other_equalities(self, prim, joint: int) -> None:
        """Further rows of a joint, for which there is no schema: see `newton_like.exporters.usd.constraints.write_equalities`."""
        number = 1
        while (enabled := self.reader.flag(prim, f"newtonLike:equality{number}Enabled", None)) is not None:
            name = f"newtonLike:equality{number}"
            number += 1
            if (self.meters, self.kilograms) != (1.0, 1.0):
                self.scene.remark(
                    "newtonLike attributes of joints are in metres and kilograms, and are ignored in stages with other units",
                    prim,
                )
                continue
            law = self._law(prim, f"{name}Solref", f"{name}Solimp", ("eq_solref", "eq_solimp"), 1.0)
            values = {**law, "eq_rules": int(bool(law)), "equality_constraint_enabled": int(enabled)}
            coefficients = self._several(prim, f"{name}Coefficients", 5)
            if coefficients is None:
                values["equality_constraint_target"] = joint
                values["equality_constraint_torquescale"] = self.reader.number(prim, f"{name}TorqueScale", 1.0)
            else:
                values |= {
                    "equality_constraint_joint1": joint,
                    "equality_constraint_joint2": self._leader(prim, f"{name}Joint"),
                    "equality_constraint_polycoef": coefficients,
                }
            declare_equality_settings(self.builder)
            self.builder.add_custom_values(**{f"{NAMESPACE}:{key}": value for key, value in values.items()})

    def _leader(self, prim, name: str) -> int:
        """The joint that a relationship names; -1: none."""
        leader = -1
        for target in self.reader.targets(prim, name):
            found = self.made.joints.get(str(target))
            if found is None:
                raise self.reader.error(
                    prim, f"{name} names <{target}>, which is not a joint that was imported; correct it"
                )
            leader = found
        return leader

    def _polynomial(self, prim, joint: int) -> dict:
        builder, reader = self.builder, self.reader
        leader = self._leader(prim, "mjc:target")
        coefficients = [reader.number(prim, f"mjc:coef{n}", float(n == 1)) for n in range(5)]
        for index in (joint, leader) if leader >= 0 else (joint,):
            if sum(builder.joint_dof_dim[index]) != 1:
                raise reader.error(
                    prim,
                    f"ties joint '{builder.joint_label[index]}', which is not revolute or prismatic; tie such joints",
                )
        units = [self.meters if builder.joint_dof_dim[k][0] else 1.0 for k in (joint, leader)]
        scaled = [units[0] * c / (units[1] if leader >= 0 else 1.0) ** n for n, c in enumerate(coefficients)]
        return {
            "equality_constraint_target": -1,
            "equality_constraint_joint1": joint,
            "equality_constraint_joint2": leader,
            "equality_constraint_polycoef": tuple(scaled),
        }
