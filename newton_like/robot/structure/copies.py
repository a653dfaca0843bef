"""Copies and pickles of trees of links and joints, as flat lists: the depth of a tree is not limited by Python's recursion."""

from __future__ import annotations

_OF_LINKS, _OF_JOINTS = ("_parent_joint", "_child_joints", "_counts"), ("_parent_link", "_child_link")
"""Attributes that connect links and joints."""

_EARLY = "_early"
"""Attribute of a root that is not restored yet: members that attributes of the user refer to."""


def bare(thing, changed: dict):
    """A shallow copy with other values of some attributes."""
    made = object.__new__(type(thing))
    made.__dict__.update(thing.__dict__ | changed)
    return made


def reduced_link(link) -> tuple:
    """What ``__reduce__`` of a link returns: the whole tree for the root, and the place in the tree for other links."""
    root = _root(link)
    if link is not root:
        links, _ = _members(root)
        return _member, (root, type(link), 0, next(i for i, each in enumerate(links) if each is link))
    links, joints = _members(root)
    index = {id(each): i for i, each in enumerate(links)}
    flat = (
        [(type(each), _own(each, _OF_LINKS)) for each in links],
        [(type(each), _own(each, _OF_JOINTS), index[id(each.parent_link)]) for each in joints],
    )
    return object.__new__, (type(root),), flat


def reduced_joint(joint) -> tuple:
    """What ``__reduce__`` of a joint returns."""
    if joint.parent_link is None:
        return object.__new__, (type(joint),), joint.__dict__
    root = _root(joint.parent_link)
    _, joints = _members(root)
    return _member, (root, type(joint), 1, next(i for i, each in enumerate(joints) if each is joint))


def restore(root, flat: tuple) -> None:
    """Gives a new root its attributes and its tree."""
    early = root.__dict__.pop(_EARLY, {})
    links, joints = (
        [early.get((kind, i)) or object.__new__(each[0]) for i, each in enumerate(some)]
        for kind, some in enumerate(flat)
    )
    links[0], children = root, [[] for _ in links]
    for link, above, below, (_, own) in zip(links, [None, *joints], children, flat[0], strict=True):
        link.__dict__.update(own, _parent_joint=above, _child_joints=below, _counts=None)
    for joint, child, (_, own, parent) in zip(joints, links[1:], flat[1], strict=True):
        joint.__dict__.update(own, _parent_link=links[parent], _child_link=child)
        children[parent].append(joint)


def _member(root, cls: type, kind: int, i: int):
    """A link (kind 0) or a joint (1) of a tree, by its place."""
    if "_child_joints" in root.__dict__:
        return _members(root)[kind][i]
    return root.__dict__.setdefault(_EARLY, {}).setdefault((kind, i), object.__new__(cls))


def _root(link):
    while link.parent_joint is not None:
        link = link.parent_joint.parent_link
    return link


def _members(root) -> tuple[list, list]:
    """All links, the root first, and the joints that move the others."""
    links, joints = [root], []
    for link in links:
        joints += link.child_joints
        links += [joint.child_link for joint in link.child_joints]
    return links, joints


def _own(thing, connections: tuple[str, ...]) -> dict:
    return {name: value for name, value in thing.__dict__.items() if name not in connections}
