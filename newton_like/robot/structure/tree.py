"""The tree of links and joints below a base link, and the order of their names."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from newton_like.coercion import as_list
from newton_like.robot.arguments import as_object
from newton_like.robot.errors import RobotError, RobotNameError
from newton_like.robot.structure.joint import Joint, count_below
from newton_like.robot.structure.link import Link, connections, keep_counts, known_counts


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
    known = known_counts(as_object(base_link, Link, "base_link"))
    if known is None:
        changes, counts = connections(), count_below(base_link)
        if counts is None:
            # names the mistake
            joints = survey(base_link)[1]
            counts = sum(not joint.is_fixed() for joint in joints), len(joints)
        known = keep_counts(base_link, changes, *counts)
    return known[2 if include_fixed else 1]


def name_order(
    found: Sequence[str], listed: Sequence[str], what: str = "name", index: dict[str, int] | None = None
) -> list[int]:
    """Indices into `found`: the listed names first, then the others in their order.

    Args:
        found: all names, without duplicates.
        listed: names that come first.
        what: kind of the names in errors, such as "joint".
        index: places of the names in `found`, if they are known.

    Raises:
        TypeError: `listed` is not a list of strings.
        RobotNameError: a listed name is not in `found`.
        RobotError: a name is listed twice.
    """
    if type(listed) is not list and type(listed) is not tuple:
        listed = as_list(listed, f"{what}_names", "names")
    if not listed:
        return list(range(len(found)))
    index = {name: i for i, name in enumerate(found)} if index is None else index
    try:
        known = dict.fromkeys(map(index.__getitem__, listed))
        if len(known) == len(listed):
            return [*known, *(i for i in range(len(found)) if i not in known)] if len(known) < len(found) else [*known]
    except (KeyError, TypeError):
        # the loop names the culprit
        pass
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
