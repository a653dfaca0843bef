"""Writes collision filters of a model with few properties of UsdPhysics.

Readers disable collisions of shapes of one body, of bodies that a joint without ``collisionEnabled`` connects, of a body welded to the
world and static shapes, and within an articulation without self collisions. Only the remaining pairs are written as filtered pairs.
Pairs that never collide are not written: those of shapes without collisions, and of two static shapes.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from pxr import Sdf

from newton_like.exporters.usd.author import Author
from newton_like.exporters.usd.host import Host, Scope
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.types import ShapeFlags


class Filters:
    """The filter pairs of a model, and their representation in a stage.

    Attributes:
        self_colliding: for each articulation, whether its bodies collide with each other.
        colliding_joint: for each joint, whether parent and child collide.
    """

    def __init__(self, host: Host):
        self._host = host
        flags = host.shape_flags & int(ShapeFlags.COLLIDE_SHAPES)
        self._collides = flags != 0
        pairs = host.model.shape_collision_filter_pairs.to_array().astype(np.int64)
        pairs = pairs[self._collides[pairs].all(axis=1) & (host.shape_body[pairs] >= 0).any(axis=1)]
        self._pairs = set(_codes(pairs[:, 0], pairs[:, 1]).tolist())
        self._shapes = defaultdict(list)
        self._statics = defaultdict(list)
        for shape in np.flatnonzero(self._collides).tolist():
            body = int(host.shape_body[shape])
            if body < 0:
                self._statics[int(host.shape_world[shape])].append(shape)
            else:
                self._shapes[body].append(shape)
        self._implied: set[int] = set()
        for shapes in self._shapes.values():
            self._implied |= _cross(shapes, shapes)
        self.self_colliding = [self._articulation(i) for i in range(host.model.articulation_count)]
        self.colliding_joint = [self._joint(i) for i in range(host.model.joint_count)]

    def _touching(self, codes: set[int], forbidden: set[int], implies: bool = True) -> bool:
        """Whether some of the pairs collide. If none collides and `implies` is true, marks the pairs as implied by another property."""
        touching = not codes <= forbidden
        if implies and not touching:
            self._implied |= codes
        return touching

    def _articulation(self, articulation: int) -> bool:
        host = self._host
        joints = range(int(host.articulation_start[articulation]), int(host.articulation_end[articulation]))
        shapes = [shape for joint in joints for shape in self._shapes[int(host.joint_child[joint])]]
        return len(joints) < 2 or self._touching(_cross(shapes, shapes), self._pairs | self._implied)

    def _joint(self, joint: int) -> bool:
        host = self._host
        parent, child = int(host.joint_parent[joint]), int(host.joint_child[joint])
        own = self._shapes[child]
        if parent >= 0:
            return self._touching(_cross(self._shapes[parent], own), self._pairs)
        world = int(host.joint_world[joint])
        around = self._statics[-1] + (self._statics[world] if world >= 0 else [])
        codes = _cross(around, own)
        welded = JOINT_TYPES[host.joint_type[joint]].fixed
        return self._touching(codes, self._pairs, implies=welded) if codes else not welded

    def write(self, author: Author, body_paths: list[str], shape_paths: list[str], scopes: list[Scope]) -> None:
        """Writes the pairs that no other property implies. Pairs of copied worlds are in their original."""
        host = self._host
        copied = {scope.world for scope in scopes if scope.copy_of is not None}
        codes = np.array(sorted(self._pairs - self._implied), dtype=np.int64)
        pairs = np.stack([codes >> 32, codes & 0xFFFFFFFF], axis=1)
        by_body = defaultdict(list)
        for a, b in pairs.tolist():
            worlds = int(host.shape_world[a]), int(host.shape_world[b])
            if worlds[0] == worlds[1] and worlds[0] in copied:
                continue
            # References do not remap targets outside of the copied world, so the shared shape has the relationship.
            if worlds[0] >= 0 > worlds[1]:
                a, b = b, a
            by_body[int(host.shape_body[a]), int(host.shape_body[b])].append((a, b))
        targets = defaultdict(list)
        for (first, second), found in by_body.items():
            if min(first, second) >= 0 and len(found) == len(self._shapes[first]) * len(self._shapes[second]):
                targets[body_paths[first]].append(body_paths[second])
                continue
            for a, b in found:
                targets[shape_paths[a]].append(shape_paths[b])
        for path, others in targets.items():
            prim = author.layer.GetPrimAtPath(path)
            listed = prim.GetInfo("apiSchemas").prependedItems if prim.HasInfo("apiSchemas") else []
            prim.SetInfo("apiSchemas", Sdf.TokenListOp.Create(prependedItems=[*listed, "PhysicsFilteredPairsAPI"]))
            author.relate(prim, "physics:filteredPairs", others)


def write_groups(author: Author, host: Host, shape_paths: list[str], scopes: list[Scope]) -> None:
    """Writes collision groups if a shape is not in the default group. The groups of all scopes merge by name."""
    collides = (host.shape_flags & int(ShapeFlags.COLLIDE_SHAPES)) != 0
    values = sorted(set(host.shape_collision_group[collides].tolist()))
    if values in ([], [1]):
        return
    names = {value: f"group_{'minus_' if value < 0 else ''}{abs(value)}" for value in values}
    for scope in scopes:
        if scope.copy_of is not None:
            continue
        folder = f"{scope.root}/collisionGroups"
        author.prim(folder, "Scope")
        for value in values:
            prim = author.prim(f"{folder}/{names[value]}", "PhysicsCollisionGroup")
            author.set(prim, "newtonLike:collisionGroup", "int", value)
            author.set(prim, "physics:mergeGroup", "string", names[value])
            apart = [f"{folder}/{names[other]}" for other in values if not _may_touch(value, other)]
            if apart:
                author.relate(prim, "physics:filteredGroups", apart)
            members = [shape_paths[s] for s in scope.shapes if collides[s] and host.shape_collision_group[s] == value]
            if members:
                author.relate(prim, "collection:colliders:includes", members)


def _may_touch(a: int, b: int) -> bool:
    """The rule of ``ShapeConfig.collision_group``."""
    if a == 0 or b == 0:
        return False
    return a == b if a > 0 and b > 0 else a != b


def _codes(a, b):
    a, b = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
    return (np.minimum(a, b) << 32) | np.maximum(a, b)


def _cross(first: list[int], second: list[int]) -> set[int]:
    if not first or not second:
        return set()
    a, b = (grid.reshape(-1) for grid in np.meshgrid(first, second))
    return set(_codes(a[a != b], b[a != b]).tolist())
