"""The one table of all that host code asks about a type of joint: a type is a row.

How a joint moves its body is written in ``newton_like.kernels.joints.forward``, by the kinds of ``newton_like.kernels.tree``. Files of
the host look up a row and ask what they need of it (``JOINT_TYPES[kind].floats``); none of them names a type to decide by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from newton_like.kernels.tree import BALL, COMPOUND, FIXED, FREE, PRISMATIC, REVOLUTE
from newton_like.types import JointType

GENERIC_PRIM = "PhysicsJoint"
"""Prim type in files of USD of a joint that none of the special ones is."""

_KIND_OF_AXES = {(0, 0): FIXED, (0, 1): REVOLUTE, (1, 0): PRISMATIC}


@dataclass(frozen=True)
class JointTypeRow:
    """What host code asks about a type of joint.

    Attributes:
        type: the member of :class:`JointType`.
        axes: numbers of linear and of angular axes, a dof for each; None: up to three of both, as the joint has them.
        kind: what it is to the device, of ``newton_like.kernels.tree``; a COMPOUND joint of fewer than two axes is a simpler kind.
        usd: prim type in files of USD.
        rotation_at: first of the four coordinates of a rotation as a whole (a quaternion) among the joint's coordinates, and first of
            its three dofs (an angular velocity) among the joint's dofs; -1: no such rotation, coordinates match dofs one to one.
        limits_distance: keeps the distance of its anchors between two limits.
    """

    type: JointType
    axes: tuple[int, int] | None
    kind: int
    usd: str
    rotation_at: int = -1
    limits_distance: bool = False

    @property
    def has_quaternion(self) -> bool:
        """Whether there is a rotation as a whole; then its axes are x, y and z and single coordinates have no limits."""
        return self.rotation_at >= 0

    @property
    def floats(self) -> bool:
        """Whether the child moves in any way: three coordinates of its position, then its rotation as a whole."""
        return self.rotation_at == 3

    @property
    def turns_only(self) -> bool:
        """Whether its coordinates are those of a rotation as a whole, and no others."""
        return self.rotation_at == 0

    @property
    def anchored(self) -> bool:
        """Whether it matters where the parent anchor is. Where it does not, coordinates say all of the child's place."""
        return not self.floats or self.limits_distance

    @property
    def fixed(self) -> bool:
        """Whether the type lets nothing move."""
        return self.axes == (0, 0)

    @property
    def compound(self) -> bool:
        """Whether numbers of axes differ from joint to joint."""
        return self.axes is None

    @property
    def single_axis(self) -> bool:
        """Whether it has one axis, and with it one coordinate and one dof."""
        return self.axes in ((1, 0), (0, 1))

    @property
    def axis_by_axis(self) -> bool:
        """Whether it moves along or about axes of its own, a coordinate and a dof for each; only such joints mimic others."""
        return self.single_axis or self.compound

    @property
    def rest(self) -> tuple[float, ...] | None:
        """Coordinates without any motion where there is a quaternion among them; None: zeros, as many as there are axes."""
        return (0.0,) * self.rotation_at + (0.0, 0.0, 0.0, 1.0) if self.has_quaternion else None

    def device_kind(self, linear: int, angular: int) -> int:
        """What a joint with these numbers of axes is to the device."""
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
"""The row of each type, in the order of their numbers."""


def look_up(types: np.ndarray, name: str) -> np.ndarray:
    """What the rows of an array of types say under a name, as ``look_up(types, "floats")``."""
    return np.array([getattr(JOINT_TYPES[kind], name) for kind in sorted(JointType)])[types]
