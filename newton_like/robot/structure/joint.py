"""Joints between two links of a robot."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from newton_like.robot.arguments import as_array, as_limit, as_name, as_object, as_pose, as_pose_rows, plain_vector
from newton_like.robot.errors import RobotError
from newton_like.robot.structure.copies import bare, reduced_joint
from newton_like.robot.structure.link import Link, join, joints_on, part

UNLIMITED = sys.float_info.max
"""Limits of position, velocity and torque of a new joint, as in the SDK."""

ACCELERATION_LIMIT = 10.0
"""Limit of the acceleration of a new joint [rad/s^2 or m/s^2], as in the SDK."""


_IDENTITY = np.eye(4)
_IDENTITY.flags.writeable = False

_Z = (0.0, 0.0, 1.0)
"""The axis of a new joint."""


class Joint:
    """A joint with one degree of freedom, or a fixed joint, between a parent link and a child link.

    The pose of the child link in the parent link is ``T_pc = T_pj exp([S] q) T_jc`` (Lynch and Park 2017, "Modern Robotics", chapter 4)
    with the screw ``S = [w, v]`` in the joint frame, angular part first. S is not normalised: with ``|w| = 2`` the joint turns by ``2 q``
    radians.

    Create joints with :meth:`make`, :meth:`make_revolute`, :meth:`make_prismatic` or :meth:`make_fixed`. A new joint is not connected, and
    has no limits of position, velocity and torque: as in the SDK, these are the largest number of double precision. Accelerations
    are limited to 10 rad/s^2 or m/s^2.

    ``copy.copy(joint)`` is not connected, as after :meth:`disconnect`. ``copy.deepcopy`` and ``pickle`` of a connected joint take the whole
    tree of links and joints with them.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("Joint has no constructor; use Joint.make, make_revolute, make_prismatic or make_fixed")

    @classmethod
    def _new(cls, name: str, S: np.ndarray, fixed: bool) -> Joint:
        joint = object.__new__(cls)
        joint._name, joint._S, joint._fixed = as_name(name, "name of a joint"), S, fixed
        joint._T_pj = joint._T_jc = _IDENTITY
        joint._parent_link = joint._child_link = None
        joint._q = (-UNLIMITED, UNLIMITED)
        joint._qdot = (-UNLIMITED, UNLIMITED)
        joint._qddot = (-ACCELERATION_LIMIT, ACCELERATION_LIMIT)
        joint._torque = UNLIMITED
        return joint

    @staticmethod
    def make(name: str, S: np.ndarray) -> Joint:
        """A joint with a screw.

        Args:
            name: name of the joint.
            S: screw ``[w, v]`` in the joint frame, shape ``[6]``, not zero.

        Raises:
            ShapeError, TypeError: an argument has another type or shape.
            RobotError: an empty name, a zero screw, or a number that is not finite.
        """
        S = as_array(S, (6,), f"S of joint {name!r}")
        if not S.any():
            raise RobotError(f"S of joint {name!r} is zero, so the joint does not move; use Joint.make_fixed")
        return Joint._new(name, S, False)

    @staticmethod
    def make_revolute(name: str, T: np.ndarray | None = None, axis: np.ndarray = _Z) -> Joint:
        """A joint that turns about an axis: ``S = Ad(T) [axis, 0]``.

        Args:
            name: name of the joint.
            T: pose in the joint frame of the frame that has the axis through its origin, shape ``[4, 4]``; ``None``: the identity.
            axis: direction of the axis, shape ``[3]``. Its length is the angle [rad] per unit of the coordinate.

        Raises:
            ShapeError, TypeError, RobotError: as :meth:`make`, or T is not a rigid motion.
        """
        if T is None:
            S = np.zeros(6)
            S[:3] = _axis(name, axis)
            return Joint._new(name, S, False)
        (a, b, c), (x, y, z) = _turned(name, T, axis)
        u, v, w = y * c - z * b, z * a - x * c, x * b - y * a
        if not u - u == v - v == w - w == 0.0:
            raise RobotError(
                f"joint {name!r}: the moment of the axis about the origin is too large; T and axis have SI units"
            )
        return Joint._new(name, np.array((a, b, c, u, v, w)), False)

    @staticmethod
    def make_prismatic(name: str, T: np.ndarray | None = None, axis: np.ndarray = _Z) -> Joint:
        """A joint that slides along an axis: ``S = Ad(T) [0, axis]``.

        Args:
            name: name of the joint.
            T: pose in the joint frame of the frame of the axis, shape ``[4, 4]``; ``None``: the identity.
            axis: direction of the axis, shape ``[3]``. Its length is the distance [m] per unit of the coordinate.

        Raises:
            ShapeError, TypeError, RobotError: as :meth:`make`, or T is not a rigid motion.
        """
        S = np.zeros(6)
        S[3:] = _axis(name, axis) if T is None else _turned(name, T, axis)[0]
        return Joint._new(name, S, False)

    @staticmethod
    def make_fixed(name: str) -> Joint:
        """A joint that does not move. Raises TypeError or RobotError for a wrong name."""
        return Joint._new(name, np.zeros(6), True)

    @property
    def name(self) -> str:
        """Name of the joint."""
        return self._name

    @property
    def S(self) -> np.ndarray:
        """A copy of the screw ``[w, v]`` in the joint frame, shape ``[6]``; zeros for a fixed joint."""
        return self._S.copy()

    @property
    def T_pj(self) -> np.ndarray:
        """A copy of the pose of the joint frame in the parent link, shape ``[4, 4]``."""
        return self._T_pj.copy()

    @property
    def T_jc(self) -> np.ndarray:
        """A copy of the pose of the child link in the joint frame at q = 0, shape ``[4, 4]``."""
        return self._T_jc.copy()

    @property
    def parent_link(self) -> Link | None:
        """The parent link, or ``None`` for a joint that is not connected."""
        return self._parent_link

    @property
    def child_link(self) -> Link | None:
        """The child link, or ``None`` for a joint that is not connected."""
        return self._child_link

    @property
    def limit_q(self) -> tuple[float, float]:
        """Lower and upper limit of the position [rad or m]. May be set; raises as :meth:`set_limit_q`."""
        return self._q

    @limit_q.setter
    def limit_q(self, limits: tuple[float, float]) -> None:
        self.set_limit_q(*limits)

    @property
    def limit_qdot(self) -> tuple[float, float]:
        """Lower and upper limit of the velocity [rad/s or m/s]. May be set; raises as :meth:`set_limit_q`."""
        return self._qdot

    @limit_qdot.setter
    def limit_qdot(self, limits: tuple[float, float]) -> None:
        self.set_limit_qdot(*limits)

    @property
    def limit_qddot(self) -> tuple[float, float]:
        """Lower and upper limit of the acceleration [rad/s^2 or m/s^2]. May be set; raises as :meth:`set_limit_q`."""
        return self._qddot

    @limit_qddot.setter
    def limit_qddot(self, limits: tuple[float, float]) -> None:
        self.set_limit_qddot(*limits)

    @property
    def limit_torque(self) -> float:
        """Limit of the magnitude of the torque or force [N m or N]. May be set; raises as :meth:`set_limit_torque`."""
        return self._torque

    @limit_torque.setter
    def limit_torque(self, torque: float) -> None:
        self.set_limit_torque(torque)

    def get_name(self) -> str:
        """:attr:`name`."""
        return self._name

    def is_fixed(self) -> bool:
        """Whether the joint comes from :meth:`make_fixed`."""
        return self._fixed

    def get_parent_link(self) -> Link | None:
        """:attr:`parent_link`."""
        return self._parent_link

    def get_child_link(self) -> Link | None:
        """:attr:`child_link`."""
        return self._child_link

    def connect_links(
        self, parent_link: Link, child_link: Link, T_pj: np.ndarray | None = None, T_jc: np.ndarray | None = None
    ) -> None:
        """Connects two links. A joint that is connected already is disconnected first.

        Args:
            parent_link: the parent link.
            child_link: the child link, which must not have another parent joint.
            T_pj: pose of the joint frame in the parent link, shape ``[4, 4]``; ``None``: the identity.
            T_jc: pose of the child link in the joint frame at q = 0, shape ``[4, 4]``; ``None``: the identity.

        Raises:
            ShapeError, TypeError: an argument has another type or shape.
            RobotError: the child link has another parent joint, the links would form a cycle, or a transform is not a rigid motion. The
                links and the joint stay as they were.
        """
        who = f"joint {self._name!r}"
        if not (isinstance(parent_link, Link) and isinstance(child_link, Link)):
            as_object(parent_link, Link, f"parent_link of {who}")
            as_object(child_link, Link, f"child_link of {who}")
        T_pj = _IDENTITY if T_pj is None else as_pose(T_pj, f"T_pj of {who}")
        T_jc = _IDENTITY if T_jc is None else as_pose(T_jc, f"T_jc of {who}")
        other = child_link.parent_joint
        if other is not None and other is not self:
            raise RobotError(
                f"{who}: link {child_link.name!r} is the child of joint {other.name!r} already; disconnect that joint first"
            )
        if joints_on(child_link) or parent_link is child_link:
            self._check_cycle(parent_link, child_link)
        self.disconnect()
        self._parent_link, self._child_link = parent_link, child_link
        self._T_pj, self._T_jc = T_pj, T_jc
        join(self, parent_link, child_link)

    def _check_cycle(self, parent_link: Link, child_link: Link) -> None:
        """Raises RobotError if the child link is the parent link, or above it."""
        link, path = parent_link, [child_link.name]
        while link is not None:
            path.append(link.name)
            if link is child_link:
                raise RobotError(f"joint {self._name!r} would close a cycle: {' <- '.join(path)}; a robot is a tree")
            above = link.parent_joint
            link = None if above is None or above is self else above.parent_link

    def disconnect(self) -> None:
        """Separates the two links. A joint that is not connected stays as it is.

        The SDK still returns the links of a disconnected joint; here they are ``None``.
        """
        parent_link, child_link = self._parent_link, self._child_link
        if parent_link is not None:
            self._parent_link = self._child_link = None
            part(self, parent_link, child_link)

    def get_limit_q_lower(self) -> float:
        """Lower limit of the position [rad or m]."""
        return self._q[0]

    def get_limit_q_upper(self) -> float:
        """Upper limit of the position [rad or m]."""
        return self._q[1]

    def get_limit_qdot_lower(self) -> float:
        """Lower limit of the velocity [rad/s or m/s]."""
        return self._qdot[0]

    def get_limit_qdot_upper(self) -> float:
        """Upper limit of the velocity [rad/s or m/s]."""
        return self._qdot[1]

    def get_limit_qddot_lower(self) -> float:
        """Lower limit of the acceleration [rad/s^2 or m/s^2]."""
        return self._qddot[0]

    def get_limit_qddot_upper(self) -> float:
        """Upper limit of the acceleration [rad/s^2 or m/s^2]."""
        return self._qddot[1]

    def get_limit_torque(self) -> float:
        """Limit of the magnitude of the torque or force [N m or N]."""
        return self._torque

    def set_limit_q(self, lower: float, upper: float) -> None:
        """Sets the limits of the position [rad or m].

        Raises:
            TypeError: not a number.
            RobotError: NaN, or a lower limit above the upper one.
        """
        self._q = self._interval("q", lower, upper)

    def set_limit_q_lower(self, val: float) -> None:
        """Sets the lower limit of the position [rad or m]. Raises TypeError, or RobotError for NaN."""
        self._q = (as_limit(val, f"lower limit of q of joint {self._name!r}"), self._q[1])

    def set_limit_q_upper(self, val: float) -> None:
        """Sets the upper limit of the position [rad or m]. Raises TypeError, or RobotError for NaN."""
        self._q = (self._q[0], as_limit(val, f"upper limit of q of joint {self._name!r}"))

    def set_limit_qdot(self, lower: float, upper: float) -> None:
        """Sets the limits of the velocity [rad/s or m/s]. Raises as :meth:`set_limit_q`."""
        self._qdot = self._interval("qdot", lower, upper)

    def set_limit_qdot_lower(self, val: float) -> None:
        """Sets the lower limit of the velocity [rad/s or m/s]. Raises TypeError, or RobotError for NaN."""
        self._qdot = (as_limit(val, f"lower limit of qdot of joint {self._name!r}"), self._qdot[1])

    def set_limit_qdot_upper(self, val: float) -> None:
        """Sets the upper limit of the velocity [rad/s or m/s]. Raises TypeError, or RobotError for NaN."""
        self._qdot = (self._qdot[0], as_limit(val, f"upper limit of qdot of joint {self._name!r}"))

    def set_limit_qddot(self, lower: float, upper: float) -> None:
        """Sets the limits of the acceleration [rad/s^2 or m/s^2]. Raises as :meth:`set_limit_q`."""
        self._qddot = self._interval("qddot", lower, upper)

    def set_limit_qddot_lower(self, val: float) -> None:
        """Sets the lower limit of the acceleration [rad/s^2 or m/s^2]. Raises TypeError, or RobotError for NaN."""
        self._qddot = (as_limit(val, f"lower limit of qddot of joint {self._name!r}"), self._qddot[1])

    def set_limit_qddot_upper(self, val: float) -> None:
        """Sets the upper limit of the acceleration [rad/s^2 or m/s^2]. Raises TypeError, or RobotError for NaN."""
        self._qddot = (self._qddot[0], as_limit(val, f"upper limit of qddot of joint {self._name!r}"))

    def set_limit_torque(self, torque: float) -> None:
        """Sets the limit of the magnitude of the torque or force [N m or N].

        Raises:
            TypeError: not a number.
            RobotError: NaN, or a negative number.
        """
        what = f"limit of the torque of joint {self._name!r}"
        torque = as_limit(torque, what)
        if torque < 0.0:
            raise RobotError(f"{what} {torque:g} is negative; a limit of the magnitude is at least 0")
        self._torque = torque

    def _interval(self, quantity: str, lower: float, upper: float) -> tuple[float, float]:
        what = f"limit of {quantity} of joint {self._name!r}"
        lower, upper = as_limit(lower, f"lower {what}"), as_limit(upper, f"upper {what}")
        if lower > upper:
            raise RobotError(f"lower {what} {lower:g} is above the upper one {upper:g}; swap them")
        return lower, upper

    def __copy__(self) -> Joint:
        return bare(self, {"_parent_link": None, "_child_link": None})

    def __reduce__(self):
        return reduced_joint(self)

    def __repr__(self) -> str:
        ends = [None if link is None else link.name for link in (self._parent_link, self._child_link)]
        return f"Joint({self._name!r}, fixed={self._fixed}, parent={ends[0]!r}, child={ends[1]!r})"


q_limits, qdot_limits, qddot_limits = attrgetter("_q"), attrgetter("_qdot"), attrgetter("_qddot")
"""The lower and the upper limit of a joint, as its getters, in less time."""


def count_below(base_link: Link) -> tuple[int, int] | None:
    """The joints below a link that move, and all joints; None for a link that is reached twice, or names that occur twice."""
    links, link_names, joint_names, fixed = [base_link], {base_link.name}, set(), 0
    for link in links:
        for joint in joints_on(link):
            child = joint._child_link
            if child._name in link_names or joint._name in joint_names:
                return None
            link_names.add(child._name)
            joint_names.add(joint._name)
            links.append(child)
            if joint._fixed:
                fixed += 1
    return len(links) - 1 - fixed, len(links) - 1


def _turned(name: str, T, axis) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """The axis in the axes of the joint frame, and the origin of a checked pose. For so few numbers, Python is faster than NumPy."""
    (a, b, c, x), (d, e, f, y), (g, h, i, z), _ = as_pose_rows(T, f"T of joint {name!r}")
    u, v, w = _axis(name, axis)
    return (a * u + b * v + c * w, d * u + e * v + f * w, g * u + h * v + i * w), (x, y, z)


def _axis(name: str, axis) -> Sequence[float]:
    """A checked direction."""
    if axis is _Z:
        return axis
    given = axis
    if type(axis) is not list or len(axis) != 3 or not type(axis[0]) is type(axis[1]) is type(axis[2]) is float:
        axis = plain_vector(given, 3)
        if axis is None:
            axis = as_array(given, (3,), f"axis of joint {name!r}").tolist()
    x, y, z = axis
    if not x - x == y - y == z - z == 0.0:
        as_array(given, (3,), f"axis of joint {name!r}")
    if x == y == z == 0.0:
        raise RobotError(f"axis of joint {name!r} is zero and has no direction; give an axis such as (0, 0, 1)")
    return axis
