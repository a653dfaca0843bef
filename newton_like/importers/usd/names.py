"""Which attributes of physics prims the USD importer reads; all others are counted in its report."""

from __future__ import annotations

import functools
import re
from collections import Counter

_DOF = r"(linear|angular|trans[XYZ]|rot[XYZ])"

_READ = re.compile(
    "|".join(
        (
            r"newton:(armature|friction|damping|stiffness|restPosition|limitStiffness|limitDamping|velocityLimit)",
            r"newton:(mimicJoint|mimicCoef0|mimicCoef1|mimicEnabled|inertia|massModel)",
            r"newtonLike:\w+",
            rf"newton:{_DOF}:(position|velocity|limitStiffness|limitDamping)",
            r"newton:(contactMargin|contactGap|maxHullVertices|selfCollisionEnabled|gravityEnabled)",
            r"newton:(torsionalFriction|rollingFriction|contactStiffness|contactDamping|contactFrictionGain)",
            r"physxJoint:(armature|maxJointVelocity)",
            rf"physxLimit:{_DOF}:(stiffness|damping)",
            rf"physxJointAxis:{_DOF}:(armature|maxJointVelocity|staticFrictionEffort|viscousFrictionCoefficient)",
            rf"physxMimicJoint:{_DOF}:(referenceJoint|gearing|offset)",
            r"physxArticulation:enabledSelfCollisions",
            r"physxCollision:(restOffset|contactOffset)",
            r"physx(ConvexHull|ConvexDecomposition)Collision:hullVertexLimit",
            r"physxTendon:\w+:\w+",
            rf"state:{_DOF}:physics:(position|velocity)",
            r"mjc:(armature|damping|stiffness|springref|frictionloss|margin|gap|maxhullvert)",
            r"mjc:(torsionalfriction|rollingfriction|actuatorfrcrange:(min|max)|actuatorfrclimited)",
        )
    )
)
"""Attributes of vendors that are read, wherever they stand."""

_IDLE = re.compile(
    r"physics:(startsAsleep|simulationOwner)|xformOp:.*|xformOpOrder|primvars:.*|material:binding.*|collection:.*"
    r"|userProperties:.*|ui:.*|omni:.*|inputs:.*|outputs:.*|visibility|purpose|proxyPrim|isaac:.*"
)
"""What has no meaning to a simulation."""

_VENDOR = re.compile(r"(physx|newton|mjc|physics|drive|limit|state|warp|tendon|isaac)\w*:")
"""Names that look as if they belonged to physics, also on prims that are none of ours."""


@functools.cache
def is_read(name: str) -> bool:
    """Whether an attribute that no schema of USD itself declares is read or means nothing here."""
    return _READ.fullmatch(name) is not None or _IDLE.fullmatch(name) is not None


@functools.cache
def _is_physics(name: str) -> bool:
    return _VENDOR.match(name) is not None


class Leftovers:
    """Counts authored properties that nobody reads, by their names.

    Attributes:
        not_understood: the counts.
    """

    def __init__(self):
        self.not_understood: Counter = Counter()
        self._declared: dict[tuple, frozenset] = {}

    def look(self, prim, applied: list[str], is_physics: bool, names: list[str]) -> None:
        """Counts what is left over on a prim.

        Args:
            prim: any prim.
            applied: names of its API schemas.
            is_physics: whether the importer makes something of the prim; of others only names of physics count.
            names: of its authored properties.
        """
        if not is_physics:
            names = [name for name in names if _is_physics(name)]
        if not names:
            return
        key = (prim.GetTypeName(), *applied)
        declared = self._declared.get(key)
        if declared is None:
            declared = self._declared[key] = frozenset(prim.GetPrimDefinition().GetPropertyNames())
        for name in names:
            if name not in declared and not is_read(name):
                self.not_understood[name] += 1
