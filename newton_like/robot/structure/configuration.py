"""The description that a robot is made from."""

from __future__ import annotations

from newton_like.robot.arguments import as_object
from newton_like.robot.structure.link import Link
from newton_like.robot.structure.mobile_base import MobileBase


class RobotConfiguration:
    """Name, base link and mobile base of a robot. All attributes may be set.

    Args:
        name: name of the robot.
        base_link: the root of the tree of links, or ``None``. Links above it are not part of the robot.
        mobile_base: the wheels of the robot, or ``None``.

    Raises:
        TypeError: an argument has another type.
    """

    def __init__(self, name: str = "", base_link: Link | None = None, mobile_base: MobileBase | None = None):
        self.name, self.base_link, self.mobile_base = name, base_link, mobile_base

    @property
    def name(self) -> str:
        """Name of the robot. Raises TypeError if it is set to another type."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = as_object(name, str, "name of a robot")

    @property
    def base_link(self) -> Link | None:
        """The root of the tree of links. Raises TypeError if it is set to another type."""
        return self._base_link

    @base_link.setter
    def base_link(self, link: Link | None) -> None:
        self._base_link = None if link is None else as_object(link, Link, f"base_link of robot {self._name!r}")

    @property
    def mobile_base(self) -> MobileBase | None:
        """The wheels of the robot. Raises TypeError if it is set to another type."""
        return self._mobile_base

    @mobile_base.setter
    def mobile_base(self, base: MobileBase | None) -> None:
        what = f"mobile_base of robot {self._name!r}"
        self._mobile_base = None if base is None else as_object(base, MobileBase, what)

    def __repr__(self) -> str:
        link = None if self._base_link is None else self._base_link.name
        return f"RobotConfiguration({self._name!r}, base_link={link!r}, mobile_base={self._mobile_base!r})"
