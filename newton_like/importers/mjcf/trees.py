"""From MJCF bodies to links: which bodies are merged, in which order links come, and which joints share one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from newton_like.geometry import inertia as rigid
from newton_like.geometry.transforms import IDENTITY, transform_multiply
from newton_like.importers.mjcf.records import Joint, Mjcf
from newton_like.importers.shared import outward

RIGHT_ANGLE = 1.0e-9
"""Largest cosine of two axes of one D6 joint: ``finalize`` makes them orthonormal, which must not move them."""


@dataclass
class Hosts:
    """Which link each body is part of.

    Attributes:
        body: by body, the body whose link it is part of; 0 is the world.
        pose: by body, its pose in that body's frame.
    """

    body: list[int]
    pose: list[np.ndarray]

    def place(self, body: int, pose: np.ndarray) -> tuple[int, np.ndarray]:
        """A pose in a body as one in the link it is part of."""
        return self.body[body], transform_multiply(self.pose[body], pose)


def find_hosts(model: Mjcf, merge: bool, merge_roots: bool) -> Hosts:
    """Merges bodies without joints into those that carry them, and adds up their masses.

    Args:
        model: its bodies get the masses of those merged into them.
        merge: whether any are merged.
        merge_roots: whether those of the world become part of it.
    """
    hosts = Hosts([0], [IDENTITY])
    parts: dict[int, list] = {}
    for index, body in enumerate(model.bodies[1:], 1):
        merged = merge and not body.joints and not body.mocap and (merge_roots or body.parent > 0)
        host, pose = hosts.place(body.parent, body.pose) if merged else (index, IDENTITY)
        hosts.body.append(host)
        hosts.pose.append(pose)
        if merged and host > 0:
            parts.setdefault(host, []).append(rigid.transform(body.mass, body.com, body.inertia, pose))
    for host, others in parts.items():
        body = model.bodies[host]
        body.mass, body.com, body.inertia = rigid.combine(
            [part for part in [(body.mass, body.com, body.inertia), *others] if part[0] > 0.0]
        )
    return hosts


def order_of(model: Mjcf, hosts: Hosts, ties: list[tuple[int, int]], breadth_first: bool) -> list[list[int]]:
    """Bodies that become links, tree by tree, parents first. Trees that something ties together count as one.

    Args:
        model: the model.
        hosts: see :func:`find_hosts`.
        ties: pairs of bodies that must be in one articulation.
        breadth_first: order within a tree; depth first else.
    """
    kept = [index for index in range(1, len(model.bodies)) if hosts.body[index] == index]
    below: dict[int, list[int]] = {index: [] for index in [0, *kept]}
    for index in kept:
        below[hosts.body[model.bodies[index].parent]].append(index)
    root_of: dict[int, int] = {}
    trees: dict[int, list[int]] = {}
    for root in below[0]:
        trees[root] = outward([root], below.__getitem__, breadth_first)
        root_of.update(dict.fromkeys(trees[root], root))
    leader = {root: root for root in trees}

    def find(root):
        while leader[root] != root:
            root = leader[root]
        return root

    for first, second in ties:
        a, b = (find(root_of[hosts.body[body]]) if hosts.body[body] else None for body in (first, second))
        if a is not None and b is not None:
            leader[max(a, b)] = min(a, b)
    groups: dict[int, list[int]] = {}
    for root, order in trees.items():
        groups.setdefault(find(root), []).extend(order)
    return list(groups.values())


def share_joints(joints: list[Joint], alone: set[int]) -> list[list[Joint]]:
    """Groups of consecutive joints of a body that one joint of the engine can do.

    A D6 joint slides along up to three axes of the parent, and then turns about up to three axes at right angles through one
    point. So a group is slides, then hinges at one place; a hinge whose reference is not zero ends its group, as
    its offset turns nothing but what comes after. Free and ball joints and those in ``alone`` (by identity) stay alone.
    """
    groups: list[list[Joint]] = []
    for joint in joints:
        if groups and _joins(groups[-1], joint, alone):
            groups[-1].append(joint)
        else:
            groups.append([joint])
    return groups


def _joins(group: list[Joint], joint: Joint, alone: set[int]) -> bool:
    last = group[-1]
    if id(joint) in alone or id(last) in alone:
        return False
    if joint.kind not in ("slide", "hinge") or last.kind not in ("slide", "hinge"):
        return False
    if joint.kind == "slide":
        return last.kind == "slide" and len(group) < 3
    turns = [other for other in group if other.kind == "hinge"]
    if not turns:
        return True
    if len(turns) == 3 or turns[-1].ref != 0.0:
        return False
    # The engine places all axes at one point; MuJoCo's are where each joint says.
    same_place = all(np.array_equal(other.pos, joint.pos) for other in turns)
    return same_place and all(abs(np.dot(other.axis, joint.axis)) < RIGHT_ANGLE for other in turns)
