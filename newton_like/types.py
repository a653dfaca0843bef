"""Enumerations, axes and number types that every other file may use.

Names and values are those of the Newton engine 1.8, so that arrays and files can be exchanged with it.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from types import SimpleNamespace

import numpy as np
import warp as wp

MAXVAL = 1.0e10
"""Value for "no limit" in arrays. Infinity is not used, because infinity times zero is NaN."""


class Axis(IntEnum):
    """A coordinate axis. Compares equal to its number and to its name in either case: ``Axis.Z == "z" == 2``."""

    X = 0
    Y = 1
    Z = 2

    @classmethod
    def from_string(cls, name: str) -> Axis:
        """Axis of the name ``"x"``, ``"y"`` or ``"z"``, in either case.

        Raises:
            ValueError: any other name.
        """
        key = str(name).strip().upper()
        if key not in cls.__members__:
            raise ValueError(f"unknown axis {name!r}; use 'X', 'Y' or 'Z'")
        return cls[key]

    @classmethod
    def from_any(cls, value) -> Axis:
        """Axis from an :class:`Axis`, a name or the number 0, 1 or 2.

        Raises:
            TypeError: ``value`` is neither a name nor an integer.
            ValueError: it is, but of no axis.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls.from_string(value)
        if isinstance(value, int | np.integer | wp.int32 | wp.int64) and not isinstance(value, bool):
            index = int(value)
            if index not in (0, 1, 2):
                raise ValueError(f"unknown axis {index}; use 0, 1, 2 or 'X', 'Y', 'Z'")
            return cls(index)
        raise TypeError(f"{value!r} is not an axis; use Axis.X, Axis.Y, Axis.Z, a name or 0, 1, 2")

    def to_vector(self) -> tuple[float, float, float]:
        """Unit vector of the axis."""
        return tuple(1.0 if i == self else 0.0 for i in range(3))

    def to_vec3(self) -> wp.vec3:
        """Unit vector of the axis as a Warp vector."""
        return wp.vec3(*self.to_vector())

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Axis.{self.name}"

    def __eq__(self, other) -> bool:
        if isinstance(other, str):
            return self.name == other.upper()
        return int.__eq__(self, other)

    def __ne__(self, other) -> bool:
        return not self == other

    __hash__ = int.__hash__


AxisType = Axis | int | str
"""What :meth:`Axis.from_any` takes."""


class JointType(IntEnum):
    """Type of a joint: the possible motion of its child relative to its parent."""

    PRISMATIC = 0
    """Slide along one axis: 1 coordinate, 1 dof."""
    REVOLUTE = 1
    """Turn about one axis: 1 coordinate, 1 dof."""
    BALL = 2
    """Turn in any way: 4 coordinates (quaternion), 3 dofs (angular velocity in the parent anchor frame)."""
    FIXED = 3
    """No motion."""
    FREE = 4
    """Any motion: 7 coordinates (position, quaternion), 6 dofs (velocity of the centre of mass, angular velocity)."""
    DISTANCE = 5
    """As FREE, and the anchors stay between two distances."""
    D6 = 6
    """Up to three linear axes, then up to three angular axes as an intrinsic chain; a coordinate and a dof for each."""

    def dof_count(self, num_axes: int) -> tuple[int, int]:
        """Numbers of dofs and of coordinates; ``num_axes`` counts the axes of a joint with single axes or of a D6."""
        if self in _FIXED_COUNTS:
            return _FIXED_COUNTS[self]
        return num_axes, num_axes

    def constraint_count(self, num_axes: int) -> int:
        """Number of velocity directions that the joint blocks. A DISTANCE joint is an inequality and counts none."""
        return 6 - self.dof_count(num_axes)[0]


_FIXED_COUNTS = {JointType.BALL: (3, 4), JointType.FIXED: (0, 0), JointType.FREE: (6, 7), JointType.DISTANCE: (6, 7)}


class JointTargetMode(IntEnum):
    """The targets that the drive of a dof follows."""

    NONE = 0
    """No drive. Gains and targets are not used."""
    POSITION = 1
    """``ke (target_q - q) - kd qd``."""
    VELOCITY = 2
    """``kd (target_qd - qd)``."""
    POSITION_VELOCITY = 3
    """``ke (target_q - q) + kd (target_qd - qd)``."""
    EFFORT = 4
    """The force in ``Control.joint_f``, limited by the effort limit; gains are not used."""

    @staticmethod
    def from_gains(
        target_ke: float, target_kd: float, force_position_velocity: bool = False, has_drive: bool = False
    ) -> JointTargetMode:
        """Mode that gains ask for: none without a drive, effort without gains, else what the non-zero gains can follow.

        Args:
            target_ke: position gain.
            target_kd: velocity gain.
            force_position_velocity: with both gains, follow the velocity target too.
            has_drive: whether a drive exists.
        """
        if not has_drive:
            return JointTargetMode.NONE
        if target_ke != 0.0:
            both = force_position_velocity and target_kd != 0.0
            return JointTargetMode.POSITION_VELOCITY if both else JointTargetMode.POSITION
        return JointTargetMode.VELOCITY if target_kd != 0.0 else JointTargetMode.EFFORT


class GeoType(IntEnum):
    """Kind of a shape. Long axes are along the shape's z axis; ``shape_scale`` holds the sizes named here."""

    NONE = 0
    """No geometry; it never collides."""
    PLANE = 1
    """Half space below z = 0: width along x, length along y (0: infinite), unused."""
    HFIELD = 2
    """Height field: scale of the :class:`Heightfield` along x, y, z."""
    SPHERE = 3
    """Radius, unused, unused."""
    CAPSULE = 4
    """Radius, half length of the cylinder between the caps, unused."""
    ELLIPSOID = 5
    """Half axes."""
    CYLINDER = 6
    """Radius, half height, unused."""
    BOX = 7
    """Half sides."""
    MESH = 8
    """Triangle mesh: scale of the :class:`Mesh` along x, y, z."""
    CONE = 9
    """Radius of the base at z = -half height, half height (apex at +half height), unused."""
    CONVEX_MESH = 10
    """Convex hull of a mesh: scale of the :class:`Mesh` along x, y, z."""


class BodyFlags(IntFlag):
    """Kind of a body."""

    DYNAMIC = 1
    """Moves under forces."""
    KINEMATIC = 2
    """Moves as its state says; forces do nothing to it."""
    ALL = 3


class ShapeFlags(IntFlag):
    """Roles of a shape: visible, colliding, site."""

    VISIBLE = 1
    COLLIDE_SHAPES = 2
    COLLIDE_PARTICLES = 4
    """Kept for exchange with other engines; there are no particles here."""
    SITE = 8
    """A named frame: no mass, no collisions."""


class VelRepr(IntEnum):
    """Representation of velocities (accelerations, wrenches) of a frame, linear part first (Traversaro and Saccon 2019).

    Of a body with link frame B in the world W, centre of mass c, rotation R, position p:
    """

    COM = 1
    """Velocity of the centre of mass and angular velocity, in world axes: the convention of ``State.body_qd``."""
    MIXED = 2
    """Velocity of the frame's origin (dp/dt) and angular velocity, in world axes."""
    INERTIAL = 3
    """Velocity of the body's point that is at the world's origin (dp/dt - w x p), in world axes."""
    BODY = 4
    """Velocity of the frame's origin and angular velocity, in the frame's axes (transpose(R) dp/dt)."""


class ModelFlags(IntFlag):
    """Groups of model arrays, for :meth:`Model.notify_changed`."""

    JOINT_PROPERTIES = 1
    """``joint_X_p, joint_X_c, joint_axis, joint_enabled``, distances of DISTANCE joints, initial coordinates."""
    JOINT_DOF_PROPERTIES = 2
    """Gains, limits, armature, friction, damping, stiffness, rest coordinates, target modes."""
    BODY_PROPERTIES = 4
    """``body_q, body_qd, body_flags``."""
    BODY_INERTIAL_PROPERTIES = 8
    """``body_mass, body_com, body_inertia``; the inverses are renewed from them."""
    SHAPE_PROPERTIES = 16
    """Poses, scales, margins, gaps, materials, flags and groups of shapes."""
    MODEL_PROPERTIES = 32
    """Gravity and other global numbers."""
    CONSTRAINT_PROPERTIES = 64
    """``joint_mimic_coeffs``."""
    TENDON_PROPERTIES = 128
    ACTUATOR_PROPERTIES = 256
    JOINT_DOF_FORCE_PROPERTIES = 512
    """The part of the dof properties that is forces: all but armature and rest coordinates."""
    JOINT_DOF_INERTIAL_PROPERTIES = 1024
    """``joint_armature``."""
    JOINT_REFERENCE_POSE_PROPERTIES = 2048
    """``joint_rest_q``."""
    SHAPE_TYPE_AND_SOURCE = 4096
    """``shape_type``, ``shape_source`` and what collision detection derives from them."""
    ALL = 8191


_NAMES = ("vec2", "vec3", "quat", "mat33", "transform", "spatial_vector")
_WARP_TYPES = {
    real: SimpleNamespace(real=real, **{name: getattr(wp, name + ending) for name in _NAMES})
    for real, ending in ((wp.float32, ""), (wp.float64, "d"))
}


_SCALARS = {
    float: wp.float32,
    np.float32: wp.float32,
    np.float64: wp.float64,
    np.dtype(np.float32): wp.float32,
    np.dtype(np.float64): wp.float64,
}
"""Scalar types of Python and NumPy, and what Warp takes them for."""


def warp_types(dtype) -> SimpleNamespace:
    """Warp types over one scalar type: ``real, vec2, vec3, quat, mat33, transform, spatial_vector``.

    Args:
        dtype: ``wp.float32`` or ``wp.float64``; Python's ``float`` and NumPy's types are taken for what Warp takes
            them.

    Raises:
        TypeError: any other type.
    """
    try:
        return _WARP_TYPES[dtype if dtype in _WARP_TYPES else _SCALARS.get(dtype, dtype)]
    except (KeyError, TypeError):
        raise TypeError(f"dtype {dtype!r} is not a scalar type of a model; use wp.float32 or wp.float64") from None
