"""Reads joints of USD stages as records in SI units: frames, axes, limits, drives, passive forces, mimics."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from newton_like.geometry.transforms import quat_between, transform_multiply
from newton_like.importers.shared import bounded
from newton_like.importers.usd.values.pose import transform
from newton_like.importers.usd.values.units import DofUnits, Reader, Units
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.types import JointTargetMode

KINDS = {row.usd: row.type.name.lower() for row in JOINT_TYPES.values()}
"""The kind of a joint by prim type. A generic joint is D6, or ``free`` if it has no limit."""

LINEAR, ANGULAR = ("transX", "transY", "transZ"), ("rotX", "rotY", "rotZ")

_INSTANCES = {"revolute": ("angular",), "prismatic": ("linear",), "d6": (*LINEAR, *ANGULAR, "distance")}
"""Instance names of limits and drives, by kind of joint."""

_OF_BALLS = frozenset(
    ("armature", "friction", "friction_ratio", "damping", "stiffness", "velocity_limit", "effort_limit")
)


@dataclass
class Axis:
    """One axis of a joint.

    Attributes:
        axis: unit vector in the joint frame.
        settings: fields of ``JointDofConfig`` that the file gives [SI].
        acceleration: the drive's gains are per moved inertia (1/s^2 and 1/s) and not yet multiplied by it.
        position, velocity: state that the file gives [m or rad], ``None`` where it gives none.
    """

    axis: np.ndarray
    settings: dict
    acceleration: bool = False
    position: float | None = None
    velocity: float | None = None


@dataclass
class Joint:
    """A joint.

    Attributes:
        path: path of its prim.
        kind: a value of ``KINDS``, or ``free`` for a generic joint without any limit.
        bodies: paths of the bodies at its two ends, ``None`` for the world.
        anchors: the joint frame in each body, or in the stage's world [m].
        enabled, excluded, collides: jointEnabled, excludeFromArticulation, collisionEnabled.
        linear, angular: axes of translation and rotation.
        passive: fields of ``JointDofConfig`` for all rotations of a ball joint.
        distances: smallest and largest distance [m], -1 for no limit.
        stops: limits of a ball joint [rad], by the names of arguments of ``add_joint_ball``.
        mimic: ``(path of the leader, offset, factor)`` or ``None``.
    """

    path: str
    kind: str
    bodies: list
    anchors: list
    enabled: bool = True
    excluded: bool = False
    collides: bool = False
    linear: list[Axis] = field(default_factory=list)
    angular: list[Axis] = field(default_factory=list)
    passive: dict = field(default_factory=dict)
    distances: tuple[float, float] = (-1.0, -1.0)
    stops: dict[str, float] = field(default_factory=dict)
    mimic: tuple[str, float, float] | None = None


class JointReader:
    """Reads joint prims.

    Args:
        reader: reader of attributes.
        units: units of the stage.
        remark: function that is called with a statement and a prim.
        frame_of: function from a joint, the path of a prim and a frame in that prim to the path of the prim's body
            (or ``None``) and the frame in this body (or in the stage).
    """

    def __init__(self, reader: Reader, units: Units, remark, frame_of):
        self._reader, self._units, self._remark, self._frame_of = reader, units, remark, frame_of

    def read(self, prim, kind: str, applied: list[str]) -> Joint:
        """The record of a joint.

        Args:
            prim: the joint.
            kind: a value of ``KINDS``.
            applied: names of its API schemas.

        Raises:
            ImportFileError: an invalid joint.
        """
        reader = self._reader
        bodies, anchors = [], []
        for end in "01":
            position = reader.vector(prim, f"physics:localPos{end}", np.zeros(3))
            frame = transform(position, reader.rotation(prim, f"physics:localRot{end}"))
            targets = reader.targets(prim, f"physics:body{end}")
            if len(targets) > 1:
                raise reader.error(prim, f"physics:body{end} names {len(targets)} prims; keep one")
            if targets:
                body, frame = self._frame_of(prim, targets[0], frame)
            else:
                body, frame = None, transform(self._units.meters * frame[:3], frame[3:])
            bodies.append(body)
            anchors.append(frame)
        joint = Joint(
            path=str(prim.GetPath()),
            kind=kind,
            bodies=bodies,
            anchors=anchors,
            enabled=reader.flag(prim, "physics:jointEnabled", True),
            excluded=reader.flag(prim, "physics:excludeFromArticulation", False),
            collides=reader.flag(prim, "physics:collisionEnabled", False),
        )
        for name in ("physics:breakForce", "physics:breakTorque"):
            if math.isfinite(reader.limit(prim, name, math.inf)):
                self._remark("joints do not break; breakForce and breakTorque are ignored", prim)
        self._remark_idle(prim, joint, applied)
        self._read_axes(prim, joint, set(applied))
        joint.mimic = self._mimic(prim, joint)
        return joint

    def _remark_idle(self, prim, joint: Joint, applied: list[str]) -> None:
        """Adds remarks for drives and limits without effect."""
        for name in applied:
            schema, _, instance = name.partition(":")
            if schema in ("PhysicsDriveAPI", "PhysicsLimitAPI") and instance not in _INSTANCES.get(joint.kind, ()):
                self._remark(
                    "drives and limits of axes that the joint does not have are ignored", f"{joint.path} ({name})"
                )
        for name in prim.GetAuthoredPropertyNames():
            kind, _, rest = name.partition(":")
            if kind in ("drive", "limit"):
                schema = f"Physics{kind.capitalize()}API:{rest.partition(':')[0]}"
                if schema not in applied:
                    self._remark(
                        "drives and limits are ignored if their schema is not applied; add the schema to apiSchemas",
                        f"{joint.path} ({schema})",
                    )

    def _read_axes(self, prim, joint: Joint, applied: set[str]) -> None:
        if joint.kind in ("revolute", "prismatic"):
            angular = joint.kind == "revolute"
            name = self._reader.token(prim, "physics:axis", "X")
            if name not in ("X", "Y", "Z"):
                raise self._reader.error(prim, f"physics:axis {name!r} is unknown; use 'X', 'Y' or 'Z'")
            low, high = (self._reader.limit(prim, f"physics:{end}Limit") for end in ("lower", "upper"))
            axis = self._axis(
                prim, "XYZ".index(name), "angular" if angular else "linear", angular, (low, high), applied
            )
            (joint.angular if angular else joint.linear).append(axis)
        elif joint.kind == "distance":
            low, high = (self._reader.limit(prim, f"physics:{end}Distance", -1.0) for end in ("min", "max"))
            if 0.0 <= high < low:
                raise self._reader.error(
                    prim, f"physics:minDistance {low:g} is above physics:maxDistance {high:g}; swap them"
                )
            joint.distances = tuple(self._units.meters * d if 0.0 <= d < math.inf else -1.0 for d in (low, high))
        elif joint.kind == "ball":
            self._read_stops(prim, joint)
            turn = Axis(np.eye(3)[0], {})
            self._passive(prim, "rotX", turn, self._units.angular)
            joint.passive = {name: value for name, value in turn.settings.items() if name in _OF_BALLS}
        elif joint.kind == "d6":
            for names, axes in ((LINEAR, joint.linear), (ANGULAR, joint.angular)):
                for number, name in enumerate(names):
                    self._read_d6_axis(prim, number, name, axes, applied)
            if "PhysicsLimitAPI:distance" in applied:
                self._remark("distance limits of generic joints are ignored", prim)
            is_free = not any(name.startswith(("PhysicsLimitAPI", "PhysicsDriveAPI")) for name in applied)
            if is_free and len(joint.linear) == len(joint.angular) == 3 and self._is_free(prim):
                joint.kind, joint.linear, joint.angular = "free", [], []

    def _read_stops(self, prim, joint: Joint) -> None:
        """Limits of a ball joint: a cone about the axis of the joint, and the angle that ``newton_like.usd.write`` writes."""
        cone = [self._reader.limit(prim, f"physics:coneAngle{i}Limit", -1.0) for i in "01"]
        bound = [0.0 <= angle < math.inf for angle in cone]
        if all(bound):
            if cone[0] != cone[1]:
                self._remark(
                    "cones of spherical joints with two angles are round here; the smaller angle is used", prim
                )
            joint.stops["max_swing"] = math.radians(min(cone))
            self._to_first_axis(prim, joint)
        elif any(bound):
            self._remark("cones of spherical joints with one angle are ignored", prim)
        for name, attribute in (("max_angle", "newtonLike:maxAngle"), ("max_swing", "newtonLike:maxSwing")):
            limit = self._reader.limit(prim, attribute)
            if limit is not None and limit >= 0.0:
                joint.stops[name] = bounded(limit)

    def _to_first_axis(self, prim, joint: Joint) -> None:
        """Turns the anchors of a joint so that its axis is their x axis."""
        name = self._reader.token(prim, "physics:axis", "X")
        if name not in ("X", "Y", "Z"):
            raise self._reader.error(prim, f"physics:axis {name!r} is unknown; use 'X', 'Y' or 'Z'")
        if name != "X":
            turn = transform(np.zeros(3), quat_between(np.eye(3)[0], np.eye(3)["XYZ".index(name)]))
            joint.anchors = [transform_multiply(anchor, turn) for anchor in joint.anchors]

    def _is_free(self, prim) -> bool:
        return self._reader.token(prim, "newtonLike:jointType", "free") == "free"

    def _read_d6_axis(self, prim, number: int, name: str, axes: list[Axis], applied: set[str]) -> None:
        low, high = -math.inf, math.inf
        if f"PhysicsLimitAPI:{name}" in applied:
            low = self._reader.limit(prim, f"limit:{name}:physics:low", -math.inf)
            high = self._reader.limit(prim, f"limit:{name}:physics:high", math.inf)
            # In UsdPhysics a lower limit above the upper one locks an axis.
            if low > high or (low == high == 0.0 and name not in (self._reader.get(prim, "newtonLike:dofs") or ())):
                return
        axes.append(self._axis(prim, number, name, name in ANGULAR, (low, high), applied))

    def _axis(self, prim, number: int, name: str, angular: bool, limits, applied: set[str]) -> Axis:
        """Reads one axis: limits, drive, attributes of vendors, and state."""
        reader, units = self._reader, self._units.angular if angular else self._units.linear
        settings = {}
        low, high = (-math.inf if limits[0] is None else limits[0]), (math.inf if limits[1] is None else limits[1])
        if low > high:
            raise reader.error(
                prim, f"the lower limit {low:g} is above the upper limit {high:g}; swap them, or use a fixed joint"
            )
        if limits != (None, None):
            settings["limit_lower"], settings["limit_upper"] = (
                bounded(units.position * low),
                bounded(units.position * high),
            )
        axis = Axis(np.eye(3)[number], settings)
        if f"PhysicsDriveAPI:{name}" in applied:
            self._drive(prim, name, axis, units)
        self._passive(prim, name, axis, units)
        for prefix in (f"state:{name}:physics:", f"newton:{name}:"):
            for quantity in ("position", "velocity"):
                value = reader.authored(prim, prefix + quantity)
                if value is not None:
                    setattr(axis, quantity, units.position * reader.number(prim, prefix + quantity))
        return axis

    def _drive(self, prim, name: str, axis: Axis, units: DofUnits) -> None:
        """``effort = stiffness (target - q) + damping (target velocity - qd)``, at most ``maxForce`` (DriveAPI)."""
        reader, prefix = self._reader, f"drive:{name}:physics:"
        ke = reader.number(prim, prefix + "stiffness", 0.0, low=0.0)
        kd = reader.number(prim, prefix + "damping", 0.0, low=0.0)
        target = units.position * reader.number(prim, prefix + "targetPosition", 0.0)
        speed = units.position * reader.number(prim, prefix + "targetVelocity", 0.0)
        effort = reader.limit(prim, prefix + "maxForce", math.inf)
        kind = reader.token(prim, prefix + "type", "force")
        if kind not in ("force", "acceleration"):
            raise reader.error(prim, f"{prefix}type {kind!r} is unknown; use 'force' or 'acceleration'")
        if effort < 0.0:
            raise reader.error(prim, f"{prefix}maxForce {effort:g} is negative; give at least 0")
        mode = JointTargetMode.from_gains(ke, kd, force_position_velocity=speed != 0.0, has_drive=True)
        axis.acceleration = kind == "acceleration"
        # Gains of acceleration drives are in degrees per s^2 and degree, so degrees cancel.
        gain = 1.0 if axis.acceleration else units.gain
        axis.settings.update(
            target_ke=gain * ke,
            target_kd=gain * kd,
            target_q=target,
            target_qd=speed,
            effort_limit=bounded(units.effort * effort),
            actuator_mode=mode,
        )

    def _passive(self, prim, name: str, axis: Axis, units: DofUnits) -> None:
        """Reads passive properties from attributes of vendors; the first existing attribute of each row is used."""
        physx = f"physxJointAxis:{name}:"
        rows = {
            "armature": (("newton:armature", units.inertia), (physx + "armature", units.inertia),
                         ("physxJoint:armature", units.inertia), ("mjc:armature", units.inertia)),
            "friction": (("newton:friction", units.effort), (physx + "staticFrictionEffort", units.effort),
                         ("mjc:frictionloss", units.effort)),
            "damping": (("newton:damping", units.gain), (physx + "viscousFrictionCoefficient", units.gain),
                        ("mjc:damping", units.radian)),
            "stiffness": (("newton:stiffness", units.gain), ("mjc:stiffness", units.radian)),
            "rest_q": (("newton:restPosition", units.position), ("mjc:springref", units.position)),
            "velocity_limit": (("newton:velocityLimit", units.position), (physx + "maxJointVelocity", units.position),
                               ("physxJoint:maxJointVelocity", units.position)),
            "limit_ke": (("newton:limitStiffness", units.gain), (f"newton:{name}:limitStiffness", units.gain),
                         (f"physxLimit:{name}:stiffness", units.gain)),
            "limit_kd": (("newton:limitDamping", units.gain), (f"newton:{name}:limitDamping", units.gain),
                         (f"physxLimit:{name}:damping", units.gain)),
        }  # fmt: skip
        for setting, choices in rows.items():
            for attribute, unit in choices:
                value = self._reader.authored(prim, attribute)
                if value is None:
                    continue
                if setting != "rest_q" and value < 0.0:
                    raise self._reader.error(prim, f"{attribute} {value:g} is negative; give at least 0")
                if setting in ("velocity_limit", "friction"):
                    axis.settings[setting] = bounded(unit * value)
                else:
                    axis.settings[setting] = unit * self._reader.number(prim, attribute)
                break
        self._friction_in_motion(prim, physx, axis)
        self._actuator_range(prim, axis, units)

    def _friction_in_motion(self, prim, physx: str, axis: Axis) -> None:
        """Reads PhysX's dry friction in motion, if that at rest is PhysX's, too."""
        names = physx + "staticFrictionEffort", physx + "dynamicFrictionEffort"
        at_rest, in_motion = (self._reader.authored(prim, name) for name in names)
        if in_motion is None:
            return
        if not in_motion >= 0.0:
            raise self._reader.error(prim, f"{names[1]} is {in_motion:g}; give a number of at least 0")
        if at_rest is None or self._reader.authored(prim, "newton:friction") is not None:
            self._remark(
                "dry friction in motion is ignored where staticFrictionEffort does not state that at rest", prim
            )
        elif in_motion > at_rest:
            self._remark("dry friction in motion is above that at rest; the latter is used for both", prim)
        elif in_motion < at_rest:
            axis.settings["friction_ratio"] = in_motion / at_rest

    def _actuator_range(self, prim, axis: Axis, units: DofUnits) -> None:
        """Reads ``mjc:actuatorfrcrange``, limits of the effort. The effort limit is symmetric, so the larger one is used."""
        low, high = (self._reader.authored(prim, f"mjc:actuatorfrcrange:{end}") for end in ("min", "max"))
        limited = self._reader.token(prim, "mjc:actuatorfrclimited", "auto")
        if limited == "false" or (low is None and high is None) or "effort_limit" in axis.settings:
            return
        low, high = low or 0.0, high or 0.0
        if low < high:
            if low != -high:
                self._remark("effort ranges are not symmetric; the larger value is used for both directions", prim)
            axis.settings["effort_limit"] = bounded(units.effort * max(abs(low), abs(high)))

    def _mimic(self, prim, joint: Joint) -> tuple[str, float, float] | None:
        """``q = offset + factor * q of the leader``, offset in m or rad."""
        reader = self._reader
        unit = (self._units.angular if joint.angular else self._units.linear).position
        leaders = reader.targets(prim, "newton:mimicJoint")
        if leaders and reader.flag(prim, "newton:mimicEnabled", True):
            offset = reader.number(prim, "newton:mimicCoef0", 0.0)
            return str(leaders[0]), unit * offset, reader.number(prim, "newton:mimicCoef1", 1.0)
        for instance in (*ANGULAR, *LINEAR, "angular", "linear"):
            leaders = reader.targets(prim, f"physxMimicJoint:{instance}:referenceJoint")
            if leaders:
                # q + gearing * q of the leader + offset = 0
                offset = reader.number(prim, f"physxMimicJoint:{instance}:offset", 0.0)
                gearing = reader.number(prim, f"physxMimicJoint:{instance}:gearing", 1.0)
                return str(leaders[0]), -unit * offset, -gearing
        return None
