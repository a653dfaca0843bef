"""The tree of links and joints below a base link, and the order of their names."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from newton_like.coercion import as_list
from newton_like.robot.arguments import as_object
from newton_like.robot.errors import RobotError, RobotNameError
from newton_like.robot.structure.joint import Joint
from newton_like.robot.structure.link import Link


def survey(base_link: Link) -> tuple[list[Link], list[Joint]]:
    """All links and joints of a robot, breadth-first.

    Joints of one link are in the order in which they were connected. Fixed joints and their links are included.

    Args:
        base_link: the root. Its own parent joint is not part of the robot.

    Returns:
        Links, the base link first; and joints, so that ``joints[i].child_link is links[i + 1]``.

    Raises:
        TypeError: not a link.
        RobotError: two links or two joints of the same name, or a link that is reached twice.
    """
    as_object(base_link, Link, "base_link")
    links, joints = [base_link], []
    link_of: dict[str, Link] = {base_link.name: base_link}
    joint_of: dict[str, Joint] = {}
    waiting = deque(links)
    while waiting:
        for joint in waiting.popleft().child_joints:
            child = joint.child_link
            if joint.name in joint_of:
                raise RobotError(
                    f"two joints have the name {joint.name!r}: those of links {joint_of[joint.name].child_link.name!r} and {child.name!r};"
                    " rename one"
                )
            if link_of.get(child.name) is child:
                raise RobotError(f"joint {joint.name!r} leads to link {child.name!r} a second time; a robot is a tree")
            if child.name in link_of:
                raise RobotError(f"two links have the name {child.name!r}; rename one")
            joint_of[joint.name], link_of[child.name] = joint, child
            joints.append(joint)
            links.append(child)
            waiting.append(child)
    return links, joints


def count_joints(base_link: Link, include_fixed: bool = False) -> int:
    """Number of joints below a link.

    Args:
        base_link: the link.
        include_fixed: whether fixed joints count.

    Raises:
        TypeError, RobotError: as :func:`survey`.
    """
    return sum(include_fixed or not joint.is_fixed() for joint in survey(base_link)[1])


def name_order(found: Sequence[str], listed: Sequence[str], what: str = "name") -> list[int]:
    """Indices into `found`: the listed names first, then the others in their order.

    Args:
        found: all names, without duplicates.
        listed: names that come first.
        what: kind of the names in errors, such as "joint".

    Raises:
        TypeError: `listed` is not a list of strings.
        RobotNameError: a listed name is not in `found`.
        RobotError: a name is listed twice.
    """
    if isinstance(listed, list | tuple) and not listed:
        return list(range(len(found)))
    listed = as_list(listed, f"{what}_names", "names")
    index = {name: i for i, name in enumerate(found)}
    order: dict[int, None] = {}
    for name in listed:
        if not isinstance(name, str):
            raise TypeError(f"{what}_names must be a list of names, but has {name!r}")
        if name not in index:
            raise RobotNameError(f"there is no {what} {name!r}; the names are {', '.join(found) or 'none'}")
        if index[name] in order:
            raise RobotError(f"{what} {name!r} is listed twice; list it once")
        order[index[name]] = None
    return [*order, *(i for i in range(len(found)) if i not in order)]
