"""Settings of joint axes and shapes."""

from __future__ import annotations

import dataclasses
import operator
import warnings
from functools import wraps
from typing import Self

from newton_like.coercion import as_axis, as_flag, as_member, as_number
from newton_like.options import Settings, configuration, unknown_option
from newton_like.types import MAXVAL, Axis, AxisType, GeoType, JointTargetMode, ShapeFlags

_set = object.__setattr__


class _Copied(Settings):
    __slots__ = ()

    def copy(self, **changes) -> Self:
        """A copy with some values changed.

        Raises:
            TypeError: an unknown setting.
        """
        names = _NAMES.get(type(self))
        if names is None:
            return dataclasses.replace(self, **changes)
        # as dataclasses.replace, which takes several times as long
        made = object.__new__(type(self))
        for name in names:
            _set(made, name, getattr(self, name))
        for name, value in changes.items():
            if name not in names:
                raise unknown_option(type(self).__name__, name, names)
            _set(made, name, value)
        made.__post_init__()
        return made

    def __post_init__(self):
        """Checks the values."""


@configuration(kw_only=True, slots=True)
class JointDofConfig(_Copied):
    """One axis of a joint: its direction, passive forces, limits and drive.

    A value is in [N] and [m] where the axis slides, in [N m] and [rad] where it turns. A vector given as ``axis`` may
    have any length but zero; it is stored with length one.

    Raises:
        TypeError: a value is not a number.
        ValueError: a value is NaN, or the axis is zero.
    """

    axis: AxisType | tuple[float, float, float] = Axis.X
    """Direction in the parent anchor frame."""
    limit_lower: float = -MAXVAL
    """Lower position limit."""
    limit_upper: float = MAXVAL
    """Upper position limit."""
    limit_ke: float = 1.0e4
    """Stiffness of the limits in penalty solvers; :class:`SolverFeatherstone` solves limits as constraints."""
    limit_kd: float = 10.0
    """Damping of the limits in penalty solvers."""
    target_q: float | None = None
    """Position target; ``None`` is zero."""
    target_qd: float | None = None
    """Velocity target; ``None`` is zero."""
    target_ke: float = 0.0
    """Position gain of the drive."""
    target_kd: float = 0.0
    """Velocity gain of the drive."""
    damping: float = 0.0
    """Passive viscous damping, always active."""
    stiffness: float = 0.0
    """Passive spring towards ``rest_q``, always active."""
    rest_q: float | None = None
    """Rest position of the passive spring; ``None`` is zero."""
    armature: float = 0.0
    """Inertia of the drive, added to the axis."""
    effort_limit: float = 1.0e6
    """Largest force of the drive."""
    velocity_limit: float = 1.0e6
    """Largest speed. Solvers keep velocities within it."""
    friction: float = 0.0
    """Dry friction: the force below which the axis does not move."""
    friction_ratio: float = 1.0
    """Dry friction in motion, divided by that at rest, 0 to 1. An axis moves if it is faster than 1e-4 rad/s (m/s) as a step begins."""
    actuator_mode: JointTargetMode | None = None
    """Targets of the drive; ``None``: determined by the gains (:meth:`JointTargetMode.from_gains`)."""

    def __post_init__(self):
        self.axis = as_axis(self.axis, "axis")
        for name in _AXIS_NUMBERS:
            value = getattr(self, name)
            if value is not None:
                number = as_number(value, name, finite=False)
                if number is not value:
                    _set(self, name, number)
        if self.actuator_mode is not None:
            self.actuator_mode = as_member(JointTargetMode, self.actuator_mode, "actuator_mode")

    @classmethod
    def create_unlimited(cls, axis) -> JointDofConfig:
        """An axis without limits, drive or friction."""
        return cls(axis=axis, limit_ke=0.0, limit_kd=0.0)

    @property
    def target_mode(self) -> JointTargetMode:
        """``actuator_mode``, or the mode that the gains ask for."""
        if self.actuator_mode is not None:
            return self.actuator_mode
        has_drive = self.target_ke != 0.0 or self.target_kd != 0.0
        return JointTargetMode.from_gains(self.target_ke, self.target_kd, has_drive=has_drive)


OLD_NAMES = {"target_pos": "target_q", "target_vel": "target_qd"}
"""Names of targets that Newton deprecates since its version 1.8, and their present names."""


def with_present_names(settings: dict, stacklevel: int) -> dict:
    """Settings of a joint axis in which targets have their present names. Warns of each deprecated name.

    Raises:
        ValueError: a target has both names, with different values.
    """
    settings = dict(settings)
    for old, name in OLD_NAMES.items():
        value = settings.pop(old, None)
        if value is not None:
            _warn_of(old, stacklevel + 1)
            if settings.get(name) not in (None, value):
                raise ValueError(
                    f"{name}={settings[name]!r} and {old}={value!r} are two names of one setting; give {name}"
                )
            settings[name] = value
    return settings


def _warn_of(old: str, stacklevel: int) -> None:
    text = f"{old} is deprecated since Newton 1.8; use {OLD_NAMES[old]}"
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel + 1)


def _old_attribute(old: str) -> property:
    def read(self):
        _warn_of(old, 2)
        return getattr(self, OLD_NAMES[old])

    def write(self, value) -> None:
        _warn_of(old, 2)
        setattr(self, OLD_NAMES[old], value)

    return property(read, write, doc=f"Deprecated name of ``{OLD_NAMES[old]}``, as in Newton.")


def _accept_old_names(init):
    @wraps(init)
    def accepting(self, **settings):
        init(self, **(with_present_names(settings, 2) if OLD_NAMES.keys() & settings else settings))

    return accepting


JointDofConfig.__init__ = _accept_old_names(JointDofConfig.__init__)
for _name in OLD_NAMES:
    setattr(JointDofConfig, _name, _old_attribute(_name))


@configuration(kw_only=True, slots=True)
class ShapeConfig(_Copied):
    """Density, contact material and collision rules of a shape.

    Two touching shapes combine ``mu``, ``mu_torsional``, ``mu_rolling``, ``restitution``, ``time_constant`` and
    ``damping_ratio`` by their means, and add their margins and gaps.
    """

    density: float = 1000.0
    """Density [kg/m^3]; 0: the shape has no mass."""
    ke: float = 2.5e3
    """Contact stiffness of penalty solvers [N/m]; :class:`SolverFeatherstone` does not read it."""
    kd: float = 100.0
    """Contact damping of penalty solvers [N s/m]; :class:`SolverFeatherstone` does not read it."""
    kf: float = 1000.0
    """Friction gain of penalty solvers [N s/m]; :class:`SolverFeatherstone` does not read it."""
    mu: float = 1.0
    """Coulomb friction coefficient of sliding."""
    restitution: float = 0.0
    """Rebound speed over impact speed, 0 to 1."""
    mu_torsional: float = 0.0
    """Friction torque about the normal over the normal force [m]."""
    mu_rolling: float = 0.0
    """Friction torque about the tangents over the normal force [m]."""
    time_constant: float = 0.001
    """Softness of the contact [s]: a penetration is corrected like a spring-damper of natural frequency ``1 / time_constant``
    [rad/s] for the effective mass of the point alone, solved implicitly."""
    damping_ratio: float = 100.0
    """Damping ratio of that spring-damper; 1 is critical for the effective mass of the point alone. The load on a light foot may be a
    thousand times as heavy as the foot, and would oscillate on a contact that is critically damped for the foot. The default is overdamped
    and corrects penetration with the time constant ``2 damping_ratio time_constant``, 0.2 s."""
    margin: float = 0.0
    """Thickness added to the surface [m], and the wall of a shape that is not solid."""
    gap: float | None = None
    """Distance beyond the margin at which contacts are found [m]; ``None``: ``ModelBuilder.rigid_gap``."""
    is_solid: bool = True
    """True: mass fills the shape; false: mass is in a shell of thickness ``margin``."""
    collision_group: int = 1
    """Collision group. Group 0 collides with no shape. A positive group collides with the same group and with negative groups. A
    negative group collides with all groups except itself and 0."""
    collision_filter_parent: bool = True
    """Disables collisions with the shapes of the body's parents and children."""
    has_shape_collision: bool = True
    """Enables collisions."""
    has_particle_collision: bool = True
    """Stored for exchange with other engines; particles are not supported."""
    is_visible: bool = True
    """Shows the shape in viewers."""
    is_site: bool = False
    """A named frame: no mass and no collisions, see :meth:`mark_as_site`."""

    @property
    def flags(self) -> ShapeFlags:
        """The flags of ``Model.shape_flags`` that these settings amount to. May be set; with SITE as by :meth:`mark_as_site`."""
        flags = ShapeFlags(0)
        if self.is_visible:
            flags |= ShapeFlags.VISIBLE
        if self.is_site:
            return flags | ShapeFlags.SITE
        if self.has_shape_collision:
            flags |= ShapeFlags.COLLIDE_SHAPES
        if self.has_particle_collision:
            flags |= ShapeFlags.COLLIDE_PARTICLES
        return flags

    @flags.setter
    def flags(self, value: ShapeFlags | int) -> None:
        value = ShapeFlags(value)
        self.is_visible = ShapeFlags.VISIBLE in value
        if ShapeFlags.SITE in value:
            self.mark_as_site()
            return
        self.is_site = False
        self.has_shape_collision = ShapeFlags.COLLIDE_SHAPES in value
        self.has_particle_collision = ShapeFlags.COLLIDE_PARTICLES in value

    def mark_as_site(self) -> None:
        """Makes this the configuration of a site: no density, no collisions."""
        self.is_site = True
        self.has_shape_collision = False
        self.has_particle_collision = False
        self.density = 0.0
        self.collision_group = 0

    def validate(self, shape_type: GeoType | int | None = None, what: str = "ShapeConfig") -> None:
        """Checks every value.

        Args:
            shape_type: type of the shape that the settings are for, named in errors.
            what: name of the shape in errors.

        Raises:
            TypeError: a value is not a number.
            ValueError: a value is NaN, infinite or out of range.
        """
        if shape_type is not None:
            what = f"{what} ({as_member(GeoType, shape_type, 'shape_type').name})"
        for name in _NUMBERS:
            value = as_number(getattr(self, name), f"{what}: {name}")
            if value < 0.0:
                raise ValueError(f"{what}: {name} {value:g} is negative; give a number of at least 0")
        for name in _FLAGS:
            as_flag(getattr(self, name), f"{what}: {name}")
        if self.gap is not None and as_number(self.gap, f"{what}: gap") < 0.0:
            raise ValueError(f"{what}: gap {self.gap:g} is negative; give a distance [m] of at least 0")
        if self.restitution > 1.0:
            raise ValueError(f"{what}: restitution {self.restitution:g} is above 1; no impact gains energy")
        for name in ("time_constant", "damping_ratio"):
            if getattr(self, name) <= 0.0:
                raise ValueError(f"{what}: {name} must be above 0; a stiff contact has a small time_constant")
        try:
            operator.index(self.collision_group)
        except TypeError:
            raise TypeError(f"{what}: collision_group must be an integer, not {self.collision_group!r}") from None


_NAMES = {cls: tuple(f.name for f in dataclasses.fields(cls)) for cls in (JointDofConfig, ShapeConfig)}
_AXIS_NUMBERS = tuple(name for name in _NAMES[JointDofConfig] if name not in ("axis", "actuator_mode"))
_NUMBERS, _FLAGS = (
    tuple(f.name for f in dataclasses.fields(ShapeConfig) if f.type == kind) for kind in ("float", "bool")
)
