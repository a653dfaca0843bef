"""Tendons: kept with a model as data. Solvers do not support tendons and raise ValueError for models that have some."""

from __future__ import annotations

from dataclasses import dataclass, replace

from newton_like.coercion import as_index, as_number


@dataclass(frozen=True, kw_only=True)
class Tendon:
    """A tendon as in MuJoCo: its length is a sum over joints (fixed) or that of a line through sites (spatial).

    Attributes:
        label: name.
        joints: of a fixed tendon: ``(joint index, number of the joint's dof, coefficient)`` each; the length is the sum of
            coefficient times coordinate.
        path: of a spatial tendon, in order: ``("site", shape index)``, ``("geom", shape index, shape index of the site on
            the side it passes or -1)`` for a shape that it wraps around, ``("pulley", divisor)``.
        stiffness, damping: of the spring [N/m] and the damper [N s/m] along it.
        friction: dry friction along it [N].
        armature: inertia along it [kg].
        rest_length: two lengths [m] between which the spring is slack, or ``None`` for the length at the start.
        limits: smallest and largest length [m], or ``None``.
        effort: smallest and largest force [N] of all its actuators together, or ``None``.
        world: as of other entities; set by the builder.
    """

    label: str
    joints: tuple[tuple[int, int, float], ...] = ()
    path: tuple[tuple, ...] = ()
    stiffness: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    rest_length: tuple[float, float] | None = None
    limits: tuple[float, float] | None = None
    effort: tuple[float, float] | None = None
    world: int = -1

    @property
    def is_spatial(self) -> bool:
        """Whether it runs through sites."""
        return bool(self.path)

    def renumbered(self, joint, shape, **changes) -> Tendon:
        """A copy with renumbered indices, for copies of builders.

        Args:
            joint, shape: functions from old to new indices.
            changes: other attributes to change.
        """
        path = tuple(
            entry if entry[0] == "pulley" else (entry[0], *(shape(index) if index >= 0 else -1 for index in entry[1:]))
            for entry in self.path
        )
        joints = tuple((joint(index), dof, coefficient) for index, dof, coefficient in self.joints)
        return replace(self, joints=joints, path=path, **changes)

    def check(self, joint_count: int, shape_count: int) -> None:
        """Checks the tendon.

        Raises:
            IndexError: a joint or shape does not exist.
            TypeError: a value is not a number.
            ValueError: neither joints nor a path, or both; a negative value; a lower limit above the upper limit.
        """
        what = f"tendon {self.label!r}"
        if bool(self.joints) == bool(self.path):
            raise ValueError(f"{what} needs joints (fixed) or a path (spatial), and only one of them")
        for name in ("stiffness", "damping", "friction", "armature"):
            if as_number(getattr(self, name), f"{what}: {name}") < 0.0:
                raise ValueError(f"{what}: {name} {getattr(self, name):g} must be at least 0")
        for name in ("rest_length", "limits", "effort"):
            pair = getattr(self, name)
            if pair is not None and not pair[0] <= pair[1]:
                raise ValueError(f"{what}: {name} {pair} must be the smaller number and the larger one")
        for joint, _, _ in self.joints:
            as_index(joint, f"{what}: joint", joint_count)
        for kind, *rest in self.path:
            if kind not in ("site", "geom", "pulley"):
                raise ValueError(f"{what}: a path has sites, geoms and pulleys, not {kind!r}")
            for shape in rest if kind != "pulley" else ():
                as_index(shape, f"{what}: shape", shape_count, lowest=-1)
