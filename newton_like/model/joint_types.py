"""Table of the properties of joint types for host code, with a row for each type.

The kinematics of joints is in ``newton_like.kernels.joints.forward``, by the kinds of ``newton_like.kernels.tree``. Host code uses the
properties of a row (``JOINT_TYPES[kind].floats``) and does not branch on types.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from newton_like.kernels.tree import BALL, COMPOUND, FIXED, FREE, PRISMATIC, REVOLUTE
from newton_like.types import JointType

GENERIC_PRIM = "PhysicsJoint"
"""USD prim type of joints without a prim type of their own."""

_KIND_OF_AXES = {(0, 0): FIXED, (0, 1): REVOLUTE, (1, 0): PRISMATIC}


@dataclass(frozen=True)
class JointTypeRow:
    """Properties of a joint type.

    Attributes:
        type: the member of :class:`JointType`.
        axes: numbers of linear and angular axes, with a dof for each; None: up to three of each, which differ between joints.
        kind: the kind on the device, of ``newton_like.kernels.tree``; a COMPOUND joint of fewer than two axes has a simpler kind.
        usd: prim type in USD files.
        rotation_at: index of the quaternion's first number among the joint's coordinates, and of the angular velocity's first number
            among its dofs; -1: no quaternion, and coordinates match dofs one to one.
        limits_distance: whether the joint keeps the distance of its anchors between two limits.
    """

    type: JointType
    axes: tuple[int, int] | None
    kind: int
    usd: str
    rotation_at: int = -1
    limits_distance: bool = False

    @property
    def has_quaternion(self) -> bool:
        """Whether the coordinates contain a quaternion. The axes are then x, y and z, and single coordinates have no limits."""
        return self.rotation_at >= 0

    @property
    def floats(self) -> bool:
        """Whether the child has six dofs: three coordinates of its position, then a quaternion."""
        return self.rotation_at == 3

    @property
    def turns_only(self) -> bool:
        """Whether the coordinates are a quaternion only."""
        return self.rotation_at == 0

    @property
    def anchored(self) -> bool:
        """Whether the motion depends on the position of the parent anchor. Otherwise the coordinates can give the child any pose."""
        return not self.floats or self.limits_distance

    @property
    def fixed(self) -> bool:
        """Whether the joint has no dofs."""
        return self.axes == (0, 0)

    @property
    def compound(self) -> bool:
        """Whether the number of axes differs between joints of this type."""
        return self.axes is None

    @property
    def single_axis(self) -> bool:
        """Whether the joint has a single axis, with one coordinate and one dof."""
        return self.axes in ((1, 0), (0, 1))

    @property
    def axis_by_axis(self) -> bool:
        """Whether the joint has configurable axes with a coordinate and a dof for each. Only these joints can mimic others."""
        return self.single_axis or self.compound

    @property
    def rest(self) -> tuple[float, ...] | None:
        """Coordinates of the zero configuration of joints with a quaternion; None: zeros, one for each axis."""
        return (0.0,) * self.rotation_at + (0.0, 0.0, 0.0, 1.0) if self.has_quaternion else None

    def device_kind(self, linear: int, angular: int) -> int:
        """The kind on the device of a joint with these numbers of axes."""
        return _KIND_OF_AXES.get((linear, angular), self.kind) if self.compound else self.kind


class _Table(dict):
    def __missing__(self, number):
        raise ValueError(f"{number!r} is not a JointType; use {', '.join(JointType.__members__)}")


JOINT_TYPES: dict[JointType, JointTypeRow] = _Table(
    (row.type, row)
    for row in (
        JointTypeRow(JointType.PRISMATIC, (1, 0), PRISMATIC, "PhysicsPrismaticJoint"),
        JointTypeRow(JointType.REVOLUTE, (0, 1), REVOLUTE, "PhysicsRevoluteJoint"),
        JointTypeRow(JointType.BALL, (0, 3), BALL, "PhysicsSphericalJoint", rotation_at=0),
        JointTypeRow(JointType.FIXED, (0, 0), FIXED, "PhysicsFixedJoint"),
        JointTypeRow(JointType.FREE, (3, 3), FREE, GENERIC_PRIM, rotation_at=3),
        JointTypeRow(JointType.DISTANCE, (3, 3), FREE, "PhysicsDistanceJoint", rotation_at=3, limits_distance=True),
        JointTypeRow(JointType.D6, None, COMPOUND, GENERIC_PRIM),
    )
)
"""The row of each type, indexed by the type's number."""


def look_up(types: np.ndarray, name: str) -> np.ndarray:
    """An attribute of the rows of an array of types, for example ``look_up(types, "floats")``."""
    return np.array([getattr(JOINT_TYPES[kind], name) for kind in sorted(JointType)])[types]
