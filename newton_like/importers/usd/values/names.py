"""Names of the attributes of physics prims that the USD importer reads. Its report counts all others."""

from __future__ import annotations

import functools
import re
from collections import Counter

_DOF = r"(linear|angular|trans[XYZ]|rot[XYZ])"

_READ = {
    "PhysicsJoint": (
        r"newton:(armature|friction|damping|stiffness|restPosition|limitStiffness|limitDamping|velocityLimit)",
        r"newton:(mimicJoint|mimicCoef0|mimicCoef1|mimicEnabled)",
        rf"newton:{_DOF}:(position|velocity|limitStiffness|limitDamping)",
        r"physxJoint:(armature|maxJointVelocity)",
        rf"physxLimit:{_DOF}:(stiffness|damping)",
        rf"physxJointAxis:{_DOF}:(armature|maxJointVelocity|staticFrictionEffort|dynamicFrictionEffort|viscousFrictionCoefficient)",
        rf"physxMimicJoint:{_DOF}:(referenceJoint|gearing|offset)",
        rf"state:{_DOF}:physics:(position|velocity)",
        rf"limit:(distance|{_DOF}):physics:(low|high)",
        rf"drive:{_DOF}:physics:(type|stiffness|damping|maxForce|targetPosition|targetVelocity)",
        r"mjc:(armature|damping|stiffness|springref|frictionloss|actuatorfrcrange:(min|max)|actuatorfrclimited)",
        r"mjc:(target|coef[0-4]|solref|solimp|torqueScale)",
    ),
    "PhysicsCollisionAPI": (
        r"newton:(contactMargin|contactGap)",
        r"physxCollision:(restOffset|contactOffset)",
        r"mjc:(margin|gap)",
    ),
    "Mesh": (
        r"(newton:maxHullVertices|mjc:maxhullvert)",
        r"physx(ConvexHull|ConvexDecomposition)Collision:hullVertexLimit",
        r"physxConvexDecompositionCollision:maxConvexHulls",
    ),
    "PhysicsMaterialAPI": (
        r"newton:(torsionalFriction|rollingFriction|contactStiffness|contactDamping|contactFrictionGain)",
        r"mjc:(torsionalfriction|rollingfriction)",
    ),
    "PhysicsMassAPI": (r"newton:inertia",),
    "PhysicsArticulationRootAPI": (r"newton:selfCollisionEnabled", r"physxArticulation:enabledSelfCollisions"),
    "PhysicsScene": (r"newton:gravityEnabled",),
    "": (
        r"newtonLike:\w+",
        r"newton:massModel",
        r"physxTendon:[\w:]+:(stiffness|damping|limitStiffness|offset|restLength|lowerLimit|upperLimit|tendonEnabled)",
        r"physxTendon:[\w:]+:(gearing|forceCoefficient|jointAxis|localPos|parentLink|parentAttachment)",
    ),
}
"""Attributes of vendors that are read, by the type or API schema of their prim; "" is any prim."""

_IDLE = re.compile(
    r"physics:(startsAsleep|simulationOwner)|xformOp:.*|xformOpOrder|primvars:.*|material:binding.*|collection:.*"
    r"|userProperties:.*|ui:.*|omni:.*|inputs:.*|outputs:.*|visibility|purpose|proxyPrim|isaac:.*"
)
"""Attributes without meaning for a simulation."""

_OF_OTHERS = re.compile(r"(userProperties|ui|omni|inputs|outputs|isaac):.*")
"""Namespaces of other programs, whose properties may be attributes or relationships."""

_VENDOR = re.compile(r"(physx|newton|mjc|physics|drive|limit|state|warp|tendon|isaac)\w*:")
"""Names that indicate physics, also on prims that the importer does not read."""


@functools.cache
def is_read(name: str, places: tuple[str, ...] = tuple(_READ)) -> bool:
    """Whether an attribute without a USD schema is read on prims of the types `places`, or has no meaning for a simulation."""
    return any(re.fullmatch(row, name) for place in places for row in _READ[place]) or _IDLE.fullmatch(name) is not None


def is_of_others(name: str) -> bool:
    """Whether a property is in a namespace of other programs, without meaning for a simulation."""
    return _OF_OTHERS.fullmatch(name) is not None


@functools.cache
def _is_physics(name: str) -> bool:
    return _VENDOR.match(name) is not None


class Leftovers:
    """Counts authored properties that are not read, by name.

    Attributes:
        not_understood: the counts.
    """

    def __init__(self):
        self.not_understood: Counter = Counter()
        self._declared: dict[tuple, tuple] = {}

    def look(self, prim, applied: list[str], is_physics: bool, names: list[str]) -> None:
        """Counts the properties of a prim that are not read.

        Args:
            prim: any prim.
            applied: names of its API schemas.
            is_physics: whether the importer reads the prim; for others only names that indicate physics are counted.
            names: names of its authored properties.
        """
        if not is_physics:
            names = [name for name in names if _is_physics(name)]
        if not names:
            return
        key = (prim.GetTypeName(), *applied)
        if key not in self._declared:
            kinds = ("", "PhysicsJoint" if prim.IsA("PhysicsJoint") else prim.GetTypeName(), *applied)
            places = tuple(place for place in _READ if place in kinds)
            self._declared[key] = frozenset(prim.GetPrimDefinition().GetPropertyNames()), places
        declared, places = self._declared[key]
        for name in names:
            if name not in declared and not is_read(name, places):
                self.not_understood[name] += 1
