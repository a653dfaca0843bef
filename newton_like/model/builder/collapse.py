"""Merging of bodies that fixed joints connect."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from newton_like.coercion import as_list
from newton_like.geometry import inertia
from newton_like.geometry.transforms import IDENTITY, as_transform, transform_inverse, transform_multiply
from newton_like.model.columns import COLUMNS, COUNTS, KINDS
from newton_like.model.joint_types import JOINT_TYPES

_log = logging.getLogger(__name__)


def collapse_fixed_joints(builder, *, verbose: bool = False, joints_to_keep=None) -> dict:
    """Merges each body on a fixed joint into the parent body, or into the world.

    The merged body's mass, shapes, sites and child joints move to the parent; their poses in the world do not change. The link
    frame of the merged body becomes a named frame in ``builder.frames`` with the body's label.
    Shapes that now share a body, or are on bodies that a joint connects, do not collide, as in any model. Shapes of bodies
    merged into the world become static. Disabled joints, loop joints, and a fixed joint to the world that
    closes a loop stay. Joints that closed a loop within one merged body are removed.

    Args:
        builder: the :class:`ModelBuilder` to change.
        verbose: log every merged body.
        joints_to_keep: labels or indices of fixed joints that stay.

    Returns:
        A dict with the changes, by old index:

        * ``body_remap``, ``joint_remap``, ``articulation_remap``: new indices of the remaining entities,
        * ``body_merged_parent``: for each merged body, the (old) index of the body that it is now part of; -1 for the world,
        * ``body_merged_transform``: the pose of its link frame in that body's link frame (or in the world), seven
          numbers.

    Raises:
        KeyError: no joint has one of the labels.
        IndexError: no joint has one of the indices.
    """
    tree_joint = _tree_joints(builder)
    welds = _welds(builder, tree_joint, _kept(builder, joints_to_keep))
    host, pose = _hosts(builder, welds)
    tree = set(tree_joint.values())
    closing = {builder.joint_child[j] for j in range(builder.joint_count) if j not in tree}
    for body in [body for body in welds if host[body] < 0 and body in closing]:
        del welds[body]
    host, pose = _hosts(builder, welds)

    _merge_masses(builder, welds, host, pose)
    _keep_frames(builder, welds, host, pose)
    _move_entities(builder, host, pose)
    gone = set(welds.values())
    gone |= {j for j in range(builder.joint_count) if builder.joint_parent[j] == builder.joint_child[j]}
    remap = _remove(builder, bodies=set(welds), joints=gone)
    _filter_merged(builder, {remap["body"][host[body]] for body in welds if host[body] >= 0})
    if verbose:
        for body in welds:
            _log.info("body %d merged into %s", body, f"body {host[body]}" if host[body] >= 0 else "the world")
    return {
        "body_remap": {-1: -1, **remap["body"]},
        "joint_remap": remap["joint"],
        "articulation_remap": remap["articulation"],
        "body_merged_parent": {body: host[body] for body in welds},
        "body_merged_transform": {body: tuple(pose[body].tolist()) for body in welds},
    }


def _kept(builder, joints_to_keep) -> set[int]:
    kept = set()
    for joint in [] if joints_to_keep is None else as_list(joints_to_keep, "joints_to_keep", "labels or indices"):
        kept.update(joints_called(builder, joint))
    return kept


def joints_called(builder, joint: int | str) -> list[int]:
    """Indices of all joints with a label, or whose label ends with ``/`` and a short name, or the joint with an index.

    Raises:
        KeyError, IndexError, TypeError: there is none.
        ValueError: several joints of an articulation have the short name.
    """
    if not isinstance(joint, str):
        return [builder._resolve("joint", joint)]
    whole = [j for j, label in enumerate(builder.joint_label) if label == joint]
    if whole:
        return whole
    found = [j for j, label in enumerate(builder.joint_label) if label.endswith(f"/{joint}")]
    places: dict[tuple[int, int], int] = {}
    for j in found:
        other = places.setdefault((builder.joint_articulation[j], builder.joint_world[j]), j)
        if other != j:
            labels = f"{builder._describe('joint', other)} and {builder._describe('joint', j)}"
            raise ValueError(f"joint {joint!r} is ambiguous: {labels}; give the whole label or the index")
    return found or [builder._resolve("joint", joint)]


def _tree_joints(builder) -> dict[int, int]:
    """For each body the joint whose child it is in the tree; other joints close loops."""
    joints = {}
    for joint in range(builder.joint_count - 1, -1, -1):
        body = builder.joint_child[joint]
        if builder.joint_articulation[joint] >= 0 or body not in joints or builder.joint_articulation[joints[body]] < 0:
            joints[body] = joint
    return joints


def _welds(builder, tree_joint: dict[int, int], kept: set[int]) -> dict[int, int]:
    """For each body to be merged, its fixed joint."""
    return {
        body: joint
        for body, joint in sorted(tree_joint.items())
        if JOINT_TYPES[builder.joint_type[joint]].fixed and builder.joint_enabled[joint] and joint not in kept
    }


def _hosts(builder, welds: dict[int, int]) -> tuple[dict[int, int], dict[int, np.ndarray]]:
    """For each body (and the world), the body that it is part of after the merge, and its pose in that body."""
    host, pose = {-1: -1}, {-1: IDENTITY.copy()}
    for body in range(builder.body_count):
        chain = []
        while body not in host and body in welds:
            if body in chain:
                raise ValueError(f"{builder._describe('body', body)} is welded to itself in a circle of fixed joints")
            chain.append(body)
            body = builder.joint_parent[welds[body]]
        if body not in host:
            host[body], pose[body] = body, IDENTITY.copy()
        for merged in reversed(chain):
            joint = welds[merged]
            parent = builder.joint_parent[joint]
            x_p, x_c = as_transform(builder.joint_X_p[joint]), as_transform(builder.joint_X_c[joint])
            relative = transform_multiply(x_p, transform_inverse(x_c))
            host[merged], pose[merged] = host[parent], transform_multiply(pose[parent], relative)
    return host, pose


def _merge_masses(builder, welds, host, pose) -> None:
    def part(body):
        return builder.body_mass[body], builder.body_com[body], builder.body_inertia[body]

    parts: dict[int, list] = {}
    for body in welds:
        if host[body] >= 0:
            parts.setdefault(host[body], []).append(inertia.transform(*part(body), pose[body]))
    for body, merged in parts.items():
        builder._set_mass(body, *inertia.combine([part(body), *merged]))


def _keep_frames(builder, welds, host, pose) -> None:
    """Adds the link frames of merged bodies to the named frames of their hosts, and moves their own named frames."""
    articulation = {body: builder.joint_articulation[joint] for body, joint in welds.items()}
    builder.frames.merge(host, pose, articulation)
    builder.frames.extend(
        [builder.body_label[body] for body in welds],
        [host[body] for body in welds],
        [pose[body] for body in welds],
        [articulation[body] if host[body] < 0 else -1 for body in welds],
    )


def _move_entities(builder, host, pose) -> None:
    """Moves shapes and joints of merged bodies to their hosts."""
    for bodies, xforms in (
        (builder.shape_body, builder.shape_transform),
        (builder.joint_parent, builder.joint_X_p),
        (builder.joint_child, builder.joint_X_c),
    ):
        for index, body in enumerate(bodies):
            if host[body] != body:
                bodies[index] = host[body]
                xforms[index] = tuple(transform_multiply(pose[body], as_transform(xforms[index])).tolist())
    for n, actuator in enumerate(builder.actuators):
        if actuator.transmission == "body" and host[actuator.target] != actuator.target:
            if host[actuator.target] < 0:
                raise ValueError(
                    f"actuator {actuator.label!r} (index {n}) acts on the contacts of body"
                    f" {builder.body_label[actuator.target]!r}, which is merged into the world; keep its joint (joints_to_keep)"
                )
            builder.actuators[n] = replace(actuator, target=host[actuator.target])


def _remove(builder, *, bodies: set[int], joints: set[int]) -> dict[str, dict[int, int]]:
    """Removes bodies, joints with their coordinates, and empty articulations, and renumbers all references."""
    keep = {
        "body": [b for b in range(builder.body_count) if b not in bodies],
        "joint": [j for j in range(builder.joint_count) if j not in joints],
        "shape": range(builder.shape_count),
    }
    for kind, name in (("dof", "joint_qd_start"), ("coord", "joint_q_start")):
        starts = [*getattr(builder, name), getattr(builder, COUNTS[kind])]
        keep[kind] = [i for j in keep["joint"] for i in range(starts[j], starts[j + 1])]
    owners = {builder.joint_articulation[j] for j in keep["joint"]}
    keep["articulation"] = [a for a in range(builder.articulation_count) if a in owners]
    remap = {kind: {old: new for new, old in enumerate(keep[kind])} for kind in KINDS}
    builder._renumber_custom(remap)
    for column in COLUMNS:
        values = getattr(builder, column.name)
        values = [values[i] for i in keep[column.kind]]
        if column.refers is not None and column.name.endswith(("_start", "_end")):
            values = np.searchsorted(keep[column.refers], values).tolist()
        elif column.refers is not None:
            values = [remap[column.refers].get(value, -1) for value in values]
        setattr(builder, column.name, values)
    joint, shape = remap["joint"].__getitem__, remap["shape"].__getitem__
    builder.tendons = [tendon.renumbered(joint, shape) for tendon in builder.tendons]
    body = remap["body"].__getitem__
    builder.actuators = [actuator.renumbered(joint, shape, lambda i: i, body) for actuator in builder.actuators]
    builder.frames.renumber(remap["body"], remap["articulation"])
    builder._forget_neighbours()
    return remap


def _filter_merged(builder, bodies: set[int]) -> None:
    """Adds the filter pairs of bodies that other bodies were merged into."""
    for body in bodies:
        shapes = builder._shapes_of(body)
        pairs = [(a, b) for i, a in enumerate(shapes) for b in shapes[:i]]
        builder.shape_collision_filter_pairs.update(pairs)
        for joint in builder._joints_of(body):
            parent, child = builder.joint_parent[joint], builder.joint_child[joint]
            if parent >= 0 and builder.joint_collision_filter_parent[joint]:
                builder._filter_bodies(parent, child)
