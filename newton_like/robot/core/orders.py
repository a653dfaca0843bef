"""The orders of links and joints that states of a robot have."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from newton_like.robot.core.robot import RobotCore
from newton_like.robot.structure.joint import Joint
from newton_like.robot.structure.tree import name_order

_KEPT = 1024
"""Lists of names whose orders are kept. A script makes its states with few of them."""


class LinkOrder(NamedTuple):
    """An order of links.

    Attributes:
        bodies: of each link, its body.
        base: index of the base link.
        names: of the links.
    """

    bodies: list[int]
    base: int
    names: list[str]


class JointOrder(NamedTuple):
    """An order of the joints that move.

    Attributes:
        joints: in this order.
        names: of the joints.
        order: of each dof, the place of its joint.
        scale: motion for each unit of the coordinates, ``[n]``; None if all are 1.
        key: `order` as bytes.
    """

    joints: list[Joint]
    names: list[str]
    order: np.ndarray
    scale: np.ndarray | None
    key: bytes


class Orders:
    """The orders of the links and joints of a robot, by lists of names that come first. They are made once, and nothing writes to them.

    Args:
        core: the robot.
    """

    def __init__(self, core: RobotCore):
        self._core = core
        self.body_of = {name: i for i, name in enumerate(core.link_names)}
        self._dof_of = {name: i for i, name in enumerate(core.joint_names)}
        self._of_links: OrderedDict[tuple[str, ...], LinkOrder] = OrderedDict()
        self._of_joints: OrderedDict[tuple[str, ...], JointOrder] = OrderedDict()

    def links(self, listed: Sequence[str]) -> LinkOrder:
        """The order in which the listed links come first. Raises as :func:`name_order`."""
        return _kept(self._of_links, listed) or _keep(self._of_links, listed, self._link_order)

    def joints(self, listed: Sequence[str]) -> JointOrder:
        """The order in which the listed joints come first. Raises as :func:`name_order`."""
        return _kept(self._of_joints, listed) or _keep(self._of_joints, listed, self._joint_order)

    def _link_order(self, listed: Sequence[str]) -> LinkOrder:
        names = self._core.link_names
        bodies = name_order(names, listed, "link", self.body_of)
        return LinkOrder(bodies, bodies.index(0), [names[k] for k in bodies])

    def _joint_order(self, listed: Sequence[str]) -> JointOrder:
        core = self._core
        dofs = name_order(core.joint_names, listed, "joint", self._dof_of)
        scale = None if core.unit else core.scale[dofs]
        joints, names = [core.joints[i] for i in dofs], [core.joint_names[i] for i in dofs]
        order = np.array(dofs, dtype=int).argsort()
        return JointOrder(joints, names, order, scale, order.tobytes())


def _kept(orders: OrderedDict, listed):
    """The order of a list of names, if it is kept."""
    if type(listed) is list or type(listed) is tuple:
        try:
            listed = tuple(listed)
            found = orders.get(listed)
            if found is not None:
                orders.move_to_end(listed)
            return found
        except (KeyError, TypeError):
            # another thread made it go, or not names
            pass
    return None


def _keep(orders: OrderedDict, listed, make: Callable):
    """Makes the order of a list of names, and keeps it."""
    made = make(listed)
    if type(listed) is list or type(listed) is tuple:
        orders[tuple(listed)] = made
        while len(orders) > _KEPT:
            try:
                orders.popitem(last=False)
            except KeyError:
                break
    return made
