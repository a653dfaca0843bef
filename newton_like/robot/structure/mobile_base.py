"""Mobile bases on wheels: their description, velocity kinematics both ways, slip, and odometry.

A body velocity is ``[w, vx, vy]``: the yaw rate [rad/s], and the velocity of the origin of the base link along its x and y axes [m/s].
The wheels are described in the wheel frame ``T``, whose x axis is the forward direction of the wheels, and whose z axis is that of the base
link. A wheel that turns by a positive angle about the y axis of this frame rolls forward.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from newton_like.callers import outside_level
from newton_like.coercion import as_list
from newton_like.robot.arguments import as_array, as_name, as_object, as_pose
from newton_like.robot.errors import RobotError, RobotNameError, ShapeError
from newton_like.robot.screws import axis_of, product
from newton_like.robot.structure.enums import NumberedEnum
from newton_like.robot.structure.joint import Joint
from newton_like.robot.structure.link import Link
from newton_like.robot.structure.tree import survey

_SIDE = 1e-6
"""Distance [m] of a wheel from an axis of the wheel frame below which its side is not clear."""

ALIGNED = 1.0e-2
"""Largest sine of the angle [rad] between a wheel's axis and the y axis of the wheel frame, and between the z axes of wheel frame and base
link. It allows for angles that are written with three digits."""


class MobileBaseType(NumberedEnum):
    """The kinds of mobile bases."""

    Unspecified = 0
    Differential = 1
    Mecanum = 2


class MobileBase:
    """The wheels of a robot.

    :class:`MobileBaseDifferential` and :class:`MobileBaseMecanum` describe wheels. A base of the type ``Unspecified`` has none: it is what
    :func:`load_robot_from_urdf` gives for a file without ``<mobile>``.

    Args:
        type: kind of the base.
        joints: names of the wheel joints, in the order of the type.
        params: lengths [m] of the type, above 0.
        T: pose of the wheel frame in the base link, shape ``[4, 4]``; ``None``: the identity.

    Raises:
        ShapeError, TypeError: an argument has another type or shape, or there is a wrong number of joints or lengths.
        RobotError: a repeated joint, a length that is not above 0, or a wheel frame whose z axis is not parallel to that of the base link.
    """

    JOINTS: tuple[str, ...] = ()
    """The wheels, in the order of :attr:`joints`."""
    PARAMS: tuple[str, ...] = ()
    """The lengths, in the order of :attr:`params`."""

    def __init__(
        self,
        type: MobileBaseType,
        joints: Sequence[str] = (),
        params: Sequence[float] = (),
        T: np.ndarray | None = None,
    ):
        self._type = as_object(type, MobileBaseType, "type of a mobile base")
        kind = self._type.name.lower()
        cls = _CLASSES.get(self._type, MobileBase)
        if not isinstance(self, cls):
            raise TypeError(f"a {kind} mobile base is made by {cls.__name__}")
        self._joints = [as_name(name, "name of a wheel joint") for name in as_list(joints, "joints", "names")]
        params = as_list(params, "params", "lengths")
        self._params = as_array(params, (len(params),), "params").tolist() if params else []
        for found, wanted, what in ((self._joints, cls.JOINTS, "joints"), (self._params, cls.PARAMS, "params")):
            if len(found) != len(wanted):
                raise ShapeError(
                    f"a {kind} mobile base has {len(wanted)} {what}{' (' + ', '.join(wanted) + ')' if wanted else ''}, not {len(found)}"
                )
        if len(set(self._joints)) < len(self._joints):
            raise RobotError(f"the wheel joints {', '.join(self._joints)} have a name twice")
        for name, value in zip(cls.PARAMS, self._params, strict=True):
            if value <= 0.0:
                raise RobotError(f"{name} of a {kind} mobile base is {value:g} m; it must be above 0")
        self._T = np.eye(4) if T is None else as_pose(T, "T of a mobile base")
        if math.hypot(self._T[0, 2], self._T[1, 2]) > ALIGNED:
            raise RobotError(
                f"the wheel frame T of a mobile base has the z axis {self._T[:3, 2].tolist()}; it must be parallel to the z axis of the"
                " base link"
            )

    @property
    def type(self) -> MobileBaseType:
        """Kind of the base."""
        return self._type

    @property
    def joints(self) -> list[str]:
        """Names of the wheel joints, in the order of the type."""
        return list(self._joints)

    @property
    def params(self) -> list[float]:
        """Lengths [m], in the order of the type."""
        return list(self._params)

    @property
    def T(self) -> np.ndarray:
        """A copy of the pose of the wheel frame in the base link, shape ``[4, 4]``."""
        return self._T.copy()

    def forward_rates(self) -> np.ndarray:
        """Matrix from the body velocity ``[w, vx, vy]`` of the wheel frame to the turning rates of the wheels about its y axis [rad/s].

        Returns:
            Shape ``[wheels, 3]``.

        Raises:
            RobotError: the type of the base is ``Unspecified``.
        """
        raise _no_wheels()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._type.name}, joints={self._joints}, params={self._params})"


class MobileBaseDifferential(MobileBase):
    """Two wheels on one axis.

    Args:
        joints: names of the joints of the right and the left wheel.
        params: distance of the wheels, and their radius [m].
        T: pose in the base link of the frame in the middle between the wheels, shape ``[4, 4]``; ``None``: the identity.

    Raises:
        ShapeError, TypeError, RobotError: as :class:`MobileBase`.
    """

    JOINTS = ("right", "left")
    PARAMS = ("wheel_base", "wheel_radius")

    def __init__(self, joints: Sequence[str], params: Sequence[float], T: np.ndarray | None = None):
        super().__init__(MobileBaseType.Differential, joints, params, T)

    @property
    def right_wheel_idx(self) -> int:
        """Index of the right wheel in :attr:`joints`."""
        return 0

    @property
    def left_wheel_idx(self) -> int:
        """Index of the left wheel in :attr:`joints`."""
        return 1

    @property
    def wheel_base(self) -> float:
        """Distance of the wheels [m]."""
        return self._params[0]

    @property
    def wheel_radius(self) -> float:
        """Radius of the wheels [m]."""
        return self._params[1]

    def forward_rates(self) -> np.ndarray:
        # documented by MobileBase
        half = 0.5 * self.wheel_base
        return np.array([[half, 1.0, 0.0], [-half, 1.0, 0.0]]) / self.wheel_radius


class MobileBaseMecanum(MobileBase):
    """Four mecanum wheels at the corners of a rectangle.

    The axes of the rollers are at 45 degrees to those of the wheels. With ``L = lx + ly`` the wheels turn about the y axis at (Lynch and
    Park 2017, "Modern Robotics", section 13.2)::

        front right (vx + vy + L w) / r      front left (vx - vy - L w) / r
        rear right  (vx - vy + L w) / r      rear left  (vx + vy - L w) / r

    Args:
        joints: names of the joints of the wheels front right, front left, rear right, rear left.
        params: distances of the wheels from the centre along x and along y, and the radius [m].
        T: pose of the centre of the wheels in the base link, shape ``[4, 4]``; ``None``: the identity.

    Raises:
        ShapeError, TypeError, RobotError: as :class:`MobileBase`.
    """

    JOINTS = ("front right", "front left", "rear right", "rear left")
    PARAMS = ("lx", "ly", "wheel_radius")

    def __init__(self, joints: Sequence[str], params: Sequence[float], T: np.ndarray | None = None):
        super().__init__(MobileBaseType.Mecanum, joints, params, T)

    @property
    def lx(self) -> float:
        """Distance of the wheels from the centre along x [m]."""
        return self._params[0]

    @property
    def ly(self) -> float:
        """Distance of the wheels from the centre along y [m]."""
        return self._params[1]

    @property
    def wheel_radius(self) -> float:
        """Radius of the wheels [m]."""
        return self._params[2]

    def forward_rates(self) -> np.ndarray:
        # documented by MobileBase
        L = self.lx + self.ly
        rates = np.array([[L, 1.0, 1.0], [-L, 1.0, -1.0], [L, 1.0, -1.0], [-L, 1.0, 1.0]])
        return rates / self.wheel_radius


_CLASSES = {MobileBaseType.Differential: MobileBaseDifferential, MobileBaseType.Mecanum: MobileBaseMecanum}


def wheel_axes(base: MobileBase, base_link: Link) -> np.ndarray:
    """Axes of the wheel joints in the base link, with all joints at 0.

    Args:
        base: the mobile base.
        base_link: the base link.

    Returns:
        Shape ``[wheels, 3]``. The length is the angle [rad] for each unit of the joint's coordinate.

    Raises:
        TypeError: not a mobile base, or not a link.
        RobotNameError: a wheel joint is not below the base link.
        RobotError: a wheel joint does not turn.
    """
    axes = []
    for joint, T in _wheel_joints(base, base_link):
        if not joint.S[:3].any():
            raise RobotError(f"the wheel joint {joint.name!r} does not turn; wheels need revolute or continuous joints")
        axes.append(T[:3, :3] @ joint.S[:3])
    return np.array(axes).reshape(-1, 3)


def wheel_roles(base: MobileBase, base_link: Link) -> list[int]:
    """The role of each wheel joint, as its place in the order of the parameters: right, left (differential); front right, front left, rear
    right, rear left (mecanum).

    The positions of the axes in the wheel frame decide, with all joints at 0. If they do not tell the wheels apart, the order of
    ``base.joints`` is that of the roles. A screw, such as that of ``make_revolute(name, T, axis)``, has no position along its axis; place
    wheels by ``T_pj`` of :meth:`Joint.connect_links`.

    Raises:
        TypeError: not a mobile base, or not a link.
        RobotNameError: a wheel joint is not below the base link.
        RobotError: the base has no wheels; or positions do not tell the wheels apart, and contradict the order of ``base.joints``.

    Warns:
        UserWarning: positions do not tell the wheels apart.
    """
    wheels = _wheel_joints(base, base_link)
    if not wheels:
        raise _no_wheels()
    to_frame, places = np.linalg.inv(base.T), []
    for joint, T in wheels:
        point = axis_of(joint.S).point if joint.S.any() else np.zeros(3)
        x, y = (to_frame @ T @ (*point, 1.0))[:2]
        places.append((x, np.nan if np.abs(point).max() > _SIDE else y))
    places = np.array(places)
    # 1, -1, or 0 where a side is not clear; wheels of a differential base have no side along x
    sides = np.where(np.abs(places) > _SIDE, np.sign(places), 0.0)
    sides[:, ~(np.ptp(places, axis=0) > _SIDE)] = 0.0
    if base.type is not MobileBaseType.Mecanum:
        sides[:, 0] = 1.0
    order = list(range(len(sides)))
    if sides.all():
        roles = [(2 if x < 0.0 else 0) + (1 if y > 0.0 else 0) for x, y in sides]
        if sorted(roles) == order:
            return roles
    names = ", ".join(f"{name} {role}" for name, role in zip(base.joints, base.JOINTS, strict=True))
    wanted = np.array([((-1.0 if i > 1 else 1.0), (1.0 if i % 2 else -1.0)) for i in order]).reshape(-1, 2)
    if (sides * wanted < 0.0).any():
        raise RobotError(
            f"the positions of the wheel joints in the wheel frame, {np.round(places, 6).tolist()}, do not tell the wheels apart, and "
            f"contradict the order of the joints, {names}; place the wheels by T_pj of connect_links, or list their joints in that order"
        )
    warnings.warn(
        f"the positions of the wheel joints do not tell the wheels apart; by their order they are {names}",
        stacklevel=outside_level(),
    )
    return order


def _wheel_joints(base: MobileBase, base_link: Link) -> list[tuple[Joint, np.ndarray]]:
    """The wheel joints, and the poses of their joint frames in the base link with all joints at 0."""
    as_object(base, MobileBase, "base")
    joints = {joint.name: joint for joint in survey(base_link)[1]}
    found = []
    for name in base.joints:
        if name not in joints:
            raise RobotNameError(f"the mobile base names the wheel joint {name!r}, which is not a joint of the robot")
        above = joint = joints[name]
        T = joint.T_pj
        while above.parent_link is not base_link:
            above = above.parent_link.parent_joint
            T = above.T_pj @ above.T_jc @ T
        found.append((joint, T))
    return found


def wheel_matrix(base: MobileBase, axes: np.ndarray, roles: Sequence[int]) -> np.ndarray:
    """Matrix from the body velocity ``[w, vx, vy]`` of the base link to the velocities of the wheel joints [rad/s].

    Args:
        base: the mobile base.
        axes: axes of the wheel joints in the base link, shape ``[wheels, 3]``, see :func:`wheel_axes`. Each must be parallel to the y
            axis of the wheel frame; the sign of a wheel's velocity is that of its axis.
        roles: the role of each wheel, see :func:`wheel_roles`; ``range(wheels)`` if ``base.joints`` are in the order of the roles.

    Returns:
        Shape ``[wheels, 3]``, in the order of ``base.joints``.

    Raises:
        ShapeError, TypeError: `base`, `axes` or `roles` has another type or shape.
        RobotError: an axis is not parallel to the y axis of the wheel frame, the base has no wheels, or `roles` are not all roles.
    """
    as_object(base, MobileBase, "base")
    rates, roles = base.forward_rates() @ _to_wheel_frame(base), as_list(roles, "roles", "indices, see wheel_roles")
    for role in roles:
        if isinstance(role, bool) or not isinstance(role, int | np.integer):
            raise TypeError(f"roles must be integers, but has {role!r}; see wheel_roles")
    if sorted(roles) != list(range(len(rates))):
        raise RobotError(
            f"roles {roles} must be the numbers 0 to {len(rates) - 1}, one for each wheel; see wheel_roles"
        )
    rates = rates[roles]
    axes = as_array(axes, (len(base.joints), 3), "axes of the wheels")
    for name, axis, row in zip(base.joints, axes, rates, strict=True):
        length = np.linalg.norm(axis)
        along = axis @ base.T[:3, 1]
        if length == 0.0 or np.linalg.norm(axis - along * base.T[:3, 1]) > ALIGNED * length:
            raise RobotError(
                f"the wheel joint {name!r} has the axis {axis.tolist()} in the base link; it must be parallel to the y axis of the wheel"
                f" frame, {base.T[:3, 1].tolist()}"
            )
        row /= math.copysign(length, along)
    return rates


def velocity_matrix(base: MobileBase, axes: np.ndarray, roles: Sequence[int]) -> np.ndarray:
    """Matrix from the velocities of the wheel joints to the body velocity ``[w, vx, vy]`` of the base link.

    It is the least-squares inverse of :func:`wheel_matrix`. Of the velocities that a differential base can have, it gives the one without
    sideways motion in the wheel frame.

    Args:
        base, axes, roles: as in :func:`wheel_matrix`.

    Returns:
        Shape ``[3, wheels]``.

    Raises:
        ShapeError, TypeError, RobotError: as :func:`wheel_matrix`.
    """
    to_wheels = _to_wheel_frame(as_object(base, MobileBase, "base"))
    return np.linalg.solve(to_wheels, np.linalg.pinv(wheel_matrix(base, axes, roles) @ np.linalg.inv(to_wheels)))


def _to_wheel_frame(base: MobileBase) -> np.ndarray:
    """Matrix from the body velocity of the base link to that of the wheel frame, which moves with it."""
    R, p = base.T[:3, :3], base.T[:3, 3]
    matrix = np.zeros((3, 3))
    matrix[0, 0] = R[2, 2]
    matrix[1:, 1:] = R[:2, :2].T
    matrix[1:, 0] = R[:2, :2].T @ (-p[1], p[0])
    return matrix


def slip(base: MobileBase, axes: np.ndarray, wheel_velocities: np.ndarray, roles: Sequence[int]) -> np.ndarray:
    """How much wheel velocities differ from those of a motion without slip.

    Args:
        base, axes, roles: as in :func:`wheel_matrix`.
        wheel_velocities: velocities of the wheel joints [rad/s], shape ``[..., wheels]``.

    Returns:
        Velocity of each wheel minus that for the body velocity of :func:`velocity_matrix` [rad/s], shape ``[..., wheels]``. It is 0 for all
        velocities of a differential base, and for those of a mecanum base that agree with one motion of the base.

    Raises:
        ShapeError, TypeError, RobotError: as :func:`wheel_matrix`.
    """
    velocities = _last(wheel_velocities, len(as_object(base, MobileBase, "base").joints), "wheel_velocities")
    return velocities - product(wheel_matrix(base, axes, roles) @ velocity_matrix(base, axes, roles), velocities)


def blocked_velocity(base: MobileBase, axes: np.ndarray, body_velocity: np.ndarray, roles: Sequence[int]) -> np.ndarray:
    """The part of a body velocity that the wheels cannot follow without slip.

    Args:
        base, axes, roles: as in :func:`wheel_matrix`.
        body_velocity: ``[w, vx, vy]`` of the base link, shape ``[..., 3]``.

    Returns:
        Shape ``[..., 3]``. It is 0 for a mecanum base, and the sideways velocity of the wheel frame for a differential base.

    Raises:
        ShapeError, TypeError, RobotError: as :func:`wheel_matrix`.
    """
    velocity = _last(body_velocity, 3, "body_velocity")
    return velocity - product(velocity_matrix(base, axes, roles) @ wheel_matrix(base, axes, roles), velocity)


def integrate_odometry(pose: np.ndarray, body_velocity: np.ndarray, dt: float | np.ndarray) -> np.ndarray:
    """Pose in the plane after a time with a constant body velocity.

    The path is an arc of a circle, which is integrated exactly: the pose times the exponential of SE(2). The distance from start to end
    is ``dt |v| sin(h) / h`` with half the change of direction ``h = w dt / 2``, in the direction at half time.

    Args:
        pose: x, y [m] and yaw [rad], shape ``[..., 3]``.
        body_velocity: ``[w, vx, vy]``, shape ``[..., 3]``.
        dt: time [s], shape ``[...]``.

    Returns:
        x, y and yaw, shape ``[..., 3]``. The yaw is continuous and not limited to one turn.

    Raises:
        ShapeError, TypeError: an argument has another type or shape.
        RobotError: a number is not finite.
    """
    pose, velocity = _last(pose, 3, "pose"), _last(body_velocity, 3, "body_velocity")
    dt = as_array(dt, _shape(dt, "dt", "[...]"), "dt")
    try:
        pose, velocity, dt = np.broadcast_arrays(pose, velocity, dt[..., None])
    except ValueError as error:
        raise ShapeError(
            f"pose, body_velocity and dt have the shapes {pose.shape}, {velocity.shape} and {dt.shape}, which do not fit together"
        ) from error
    half = 0.5 * velocity[..., 0] * dt[..., 0]
    along = velocity[..., 1:] * (dt[..., :1] * np.sinc(half / np.pi)[..., None])
    middle = pose[..., 2] + half
    c, s = np.cos(middle), np.sin(middle)
    x, y = along[..., 0], along[..., 1]
    return np.stack([pose[..., 0] + c * x - s * y, pose[..., 1] + s * x + c * y, middle + half], axis=-1)


def _last(value, size: int, what: str) -> np.ndarray:
    """An array of finite numbers whose last dimension has this size."""
    shape = _shape(value, what, f"[..., {size}]")
    if not shape or shape[-1] != size:
        raise ShapeError(f"{what} must have the shape [..., {size}], not {list(shape)}")
    return as_array(value, shape, what)


def _shape(value, what: str, wanted: str) -> tuple[int, ...]:
    try:
        return np.shape(value)
    except ValueError as error:
        raise ShapeError(f"{what} must have the shape {wanted}; its rows differ in length") from error


def _no_wheels() -> RobotError:
    return RobotError(
        "the mobile base is of the type Unspecified and has no wheels; use a differential or mecanum base"
    )
