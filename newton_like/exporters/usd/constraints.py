"""Writes tendons and equality constraints of a model in the schemas of MuJoCo: MjcTendon prims, and MjcEquality attributes of joints.

Numbers have MuJoCo's units, with angles in radians. Properties without a name in these schemas are ``newtonLike:`` attributes.
"""

from __future__ import annotations

import numpy as np
from pxr import Sdf

from newton_like.exporters.usd.author import Author
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.model.mujoco.equality_settings import equalities_of
from newton_like.model.tendons import Tendon
from newton_like.types import MAXVAL

PARAMETERS = {"stiffness": "stiffness", "damping": "damping", "frictionloss": "friction", "armature": "armature"}
"""The array ``tendon_*`` of each attribute ``mjc:`` of a tendon."""

OWN = {
    "offset": ("offset", 0.0),
    "targetStiffness": ("target_ke", 0.0),
    "targetDamping": ("target_kd", 0.0),
    "effortLimit": ("effort_limit", MAXVAL),
    "limitStiffness": ("limit_ke", -1.0),
    "force": ("f", 0.0),
    "targetPosition": ("target_q", 0.0),
    "targetVelocity": ("target_qd", 0.0),
}
"""The array ``tendon_*`` of each attribute ``newtonLike:``, and the number of a tendon without it."""

POLYNOMIAL = "newtonLike:isPolynomial"
"""Whether an equality of joints is no mimic relation, even if it is linear."""


OTHER_EQUALITY = "newtonLike:equality"
"""Beginning of the names of attributes of further equality constraints of a joint."""


class TendonWriter:
    """Writes MjcTendon prims.

    Args:
        author: author of the layer.
        model: the model.
    """

    def __init__(self, author: Author, model):
        self._author, self._model = author, model
        names = {
            *PARAMETERS.values(),
            *(name for name, _ in OWN.values()),
            "rest_lower",
            "rest_upper",
            "limit_lower",
            "limit_upper",
        }
        self._arrays = {name: getattr(model, f"tendon_{name}").numpy().astype(float) for name in names}

    def write(self, path: str, number: int, index: int, label: str, joints: list[str], shapes: list[str]) -> None:
        """Writes one tendon.

        Args:
            path: path of its prim.
            number: index in the model.
            index: index among the tendons of its scope.
            label: its label there.
            joints, shapes: paths of all prims of joints and shapes.
        """
        author, tendon = self._author, self._model.tendons[number]
        prim = author.prim(path, "MjcTendon")
        author.set(prim, "newtonLike:label", "string", label)
        author.set(prim, "newtonLike:index", "int", index)
        author.set(prim, "mjc:type", "token", "spatial" if tendon.is_spatial else "fixed", uniform=True)
        if tendon.is_spatial:
            self._spatial(prim, tendon, shapes)
        else:
            self._path(prim, [joints[j] for j, _, _ in tendon.joints])
            author.set(prim, "mjc:path:coef", "double[]", [c for _, _, c in tendon.joints])
            if any(dof for _, dof, _ in tendon.joints):
                author.set(prim, "newtonLike:dofs", "int[]", [dof for _, dof, _ in tendon.joints])
        numbers = {name: float(values[number]) for name, values in self._arrays.items()}
        for name, ours in PARAMETERS.items():
            if numbers[ours]:
                author.set(prim, f"mjc:{name}", "double", numbers[ours])
        for name, (ours, usual) in OWN.items():
            if numbers[ours] != float(np.float32(usual)):
                author.set(prim, f"newtonLike:{name}", "double", numbers[ours])
        rest = numbers["rest_lower"], numbers["rest_upper"]
        # -1 would be the length at the start
        author.set(prim, "newtonLike:restLength" if rest == (-1.0, -1.0) else "mjc:springlength", "double[]", rest)
        self._range(prim, "range", "limited", (numbers["limit_lower"], numbers["limit_upper"]))
        self._range(prim, "actuatorfrcrange", "actuatorfrclimited", tendon.effort or (-MAXVAL, MAXVAL))
        author.set(prim, "mjc:solreflimit", "double[]", tendon.solref_limit)
        author.set(prim, "mjc:solimplimit", "double[]", tendon.solimp_limit)
        author.set(prim, "mjc:margin", "double", tendon.margin)

    def tie(self, number: int, paths: list[str]) -> None:
        """Writes the equality constraints of a tendon.

        Args:
            number: index in the model.
            paths: paths of all prims of tendons.
        """
        author, prim = self._author, self._author.layer.GetPrimAtPath(paths[number])
        for k, tie in enumerate(self._model.tendons[number].ties):
            author.set(prim, f"newtonLike:tie{k}Coefficients", "double[]", tie.polycoef)
            author.set(prim, f"newtonLike:tie{k}Rest", "double[]", tie.rest)
            if not tie.enabled:
                author.set(prim, f"newtonLike:tie{k}Enabled", "bool", False)
            if tie.leader:
                author.relate(prim, f"mjc:tie{k}Leader", [paths[number + tie.leader]])
            if tie.solref is not None:
                author.set(prim, f"newtonLike:tie{k}Solref", "double[]", tie.solref)
                author.set(prim, f"newtonLike:tie{k}Solimp", "double[]", tie.solimp)

    def _range(self, prim, name: str, limited: str, bounds) -> None:
        given = bool(bounds[0] > -float(np.float32(MAXVAL)) or bounds[1] < float(np.float32(MAXVAL)))
        self._author.set(prim, f"mjc:{limited}", "token", "true" if given else "false", uniform=True)
        for end, value in zip(("min", "max"), bounds if given else (), strict=False):
            self._author.set(prim, f"mjc:{name}:{end}", "double", value)

    def _path(self, prim, targets: list[str], relation: str = "mjc:path", numbers: list[int] | None = None) -> None:
        """A relationship with each target once, and the indices of the entries in it."""
        once = list(dict.fromkeys(targets))
        self._author.relate(prim, relation, once)
        indices = [once.index(target) for target in targets] if numbers is None else numbers
        self._author.set(prim, f"{relation}:indices", "int[]", indices)

    def _spatial(self, prim, tendon: Tendon, shapes: list[str]) -> None:
        targets, beside, segments, divisors = [], [], [], [1.0]
        for kind, *rest in tendon.path:
            if kind == "pulley":
                if targets:
                    divisors.append(float(rest[0]))
                else:
                    divisors = [float(rest[0])]
                continue
            targets.append(shapes[rest[0]])
            segments.append(len(divisors) - 1)
            beside.append(shapes[rest[1]] if kind == "geom" and rest[1] >= 0 else "")
        self._path(prim, targets)
        self._author.set(prim, "mjc:path:segments", "int[]", segments)
        self._author.set(prim, "mjc:path:divisors", "double[]", divisors)
        sides = list(dict.fromkeys(filter(None, beside)))
        if sides:
            indices = [sides.index(side) if side else -1 for side in beside]
            self._path(prim, sides, "mjc:sideSites", indices)


def write_equalities(author: Author, model, joint_paths: list[str], written, remark) -> None:
    """Writes equality constraints to the prims of their joints: the softness of loop joints and mimic joints, and polynomials.

    The schemas have one constraint for each joint. Others, and those that are not enabled, are ``newtonLike:equality<number>`` attributes.

    Args:
        author: author of the layer.
        model: the model.
        joint_paths: paths of all prims of joints.
        written: whether a prim is written in full, and is not in a copy of a world.
        remark: function that is called with a statement and a name.
    """
    rows = equalities_of(model, every=True)
    leaders, kinds = model.joint_mimic_joint.numpy(), model.joint_type.numpy()
    others: dict[int, int] = {}
    taken = set()
    for i in range(0 if rows is None else len(rows["target"])):
        target, first, second = (int(rows[name][i]) for name in ("target", "joint1", "joint2"))
        joint = target if target >= 0 else first
        if not 0 <= joint < model.joint_count:
            remark("equality constraints without a joint, which are not enabled, are not written", f"index {i}")
            continue
        if not written(joint):
            continue
        prim = author.layer.GetPrimAtPath(joint_paths[joint])
        if joint in taken or not rows["enabled"][i] or (target < 0 and leaders[joint] >= 0):
            others[joint] = number = others.get(joint, 0) + 1
            name, relation = f"{OTHER_EQUALITY}{number}", f"{OTHER_EQUALITY}{number}Joint"
            law, coefficients = (f"{name}Solref", f"{name}Solimp"), [f"{name}Coefficients"]
            scale = f"{name}TorqueScale"
            author.set(prim, f"{name}Enabled", "bool", rows["enabled"][i])
        else:
            taken.add(joint)
            follows = target < 0 or leaders[joint] >= 0
            welds = JOINT_TYPES[int(kinds[joint])].fixed
            _apply(prim, f"MjcEquality{'Joint' if follows else 'Weld' if welds else 'Connect'}API")
            law, relation, coefficients = ("mjc:solref", "mjc:solimp"), "mjc:target", [f"mjc:coef{n}" for n in range(5)]
            scale = "mjc:torqueScale"
            if target < 0:
                author.set(prim, POLYNOMIAL, "bool", True)
        for name, column in zip(law, ("solref", "solimp"), strict=True) if rows["rules"][i] else ():
            author.set(prim, name, "double[]", rows[column][i])
        if rows["torquescale"][i] != 1.0:
            author.set(prim, scale, "float", float(rows["torquescale"][i]), uniform=True)
        if target >= 0:
            continue
        if second >= 0:
            author.relate(prim, relation, [joint_paths[second]])
        numbers = rows["polycoef"][i].tolist()
        if len(coefficients) == 1:
            author.set(prim, coefficients[0], "double[]", numbers)
        else:
            for name, number in zip(coefficients, numbers, strict=True):
                author.set(prim, name, "double", number)


def _apply(prim: Sdf.PrimSpec, schema: str) -> None:
    listed = prim.GetInfo("apiSchemas").prependedItems if prim.HasInfo("apiSchemas") else []
    prim.SetInfo("apiSchemas", Sdf.TokenListOp.Create(prependedItems=[*listed, schema]))
