"""Conversion of MJCF bodies to links: merging of bodies, order of links, and groups of joints for one D6 joint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from newton_like.geometry import inertia as rigid
from newton_like.geometry.transforms import IDENTITY, transform_multiply
from newton_like.importers.mjcf.records import Joint, Mjcf
from newton_like.importers.shared import outward

RIGHT_ANGLE = 1.0e-9
"""Largest cosine of two axes of one D6 joint: ``finalize`` makes axes orthonormal, which must not change them."""


@dataclass
class Hosts:
    """The link of each body.

    Attributes:
        body: for each body, the body whose link it is part of; 0 is the world.
        pose: for each body, its pose in that body's frame.
    """

    body: list[int]
    pose: list[np.ndarray]

    def place(self, body: int, pose: np.ndarray) -> tuple[int, np.ndarray]:
        """Converts a pose in a body to a pose in its link."""
        return self.body[body], transform_multiply(self.pose[body], pose)


def find_hosts(model: Mjcf, merge: bool, merge_roots: bool, massless: set[int]) -> Hosts:
    """Merges bodies without joints into their parents, and adds up masses.

    Args:
        model: the model; masses of merged bodies are added to those of their hosts.
        merge: whether bodies are merged.
        merge_roots: whether child bodies of the world are merged into it.
        massless: bodies into which their child bodies are merged in any case.
    """
    hosts = Hosts([0], [IDENTITY])
    parts: dict[int, list] = {}
    for index, body in enumerate(model.bodies[1:], 1):
        wanted = body.parent in massless or (merge and (merge_roots or body.parent > 0))
        merged = wanted and not body.joints and not body.mocap
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
    """Bodies that become links, tree by tree, parents first. Trees with a common pair in `ties` are one group.

    Args:
        model: the model.
        hosts: see :func:`find_hosts`.
        ties: pairs of bodies that must be in one articulation.
        breadth_first: whether the order within a tree is breadth first; depth first otherwise.
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
    """Groups of consecutive joints of a body that one joint of the builder can represent.

    A D6 joint translates along up to three axes of the parent, and then rotates about up to three orthogonal axes through one
    point. A group is therefore slides followed by hinges at one point. A hinge whose reference is not zero ends its group,
    because its offset rotates only the axes after it. Free and ball joints and those in ``alone`` (by ``id``) are not grouped.
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
    # All rotations of a D6 joint are about one point; MuJoCo's hinges have a position each.
    same_place = all(np.array_equal(other.pos, joint.pos) for other in turns)
    return same_place and all(abs(np.dot(other.axis, joint.axis)) < RIGHT_ANGLE for other in turns)
