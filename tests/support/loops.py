"""Robots with loop joints."""

from __future__ import annotations

import numpy as np
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import JointDofConfig, JointType, ModelBuilder, eval_fk
from newton_like.geometry.transforms import transform_inverse, transform_multiply

from .random_trees import random_state, random_transform, random_tree, random_unit


def add_loop(builder, rng, kind, parent, child, linear=0, angular=0):
    """Adds a loop joint between two bodies of a tree, with random frames."""
    frames = {"parent_xform": random_transform(rng), "child_xform": random_transform(rng), "label": f"loop_{kind}"}
    if kind == JointType.PRISMATIC:
        return builder.add_joint_prismatic(parent, child, axis=random_unit(rng), **frames)
    if kind == JointType.REVOLUTE:
        return builder.add_joint_revolute(parent, child, axis=random_unit(rng), **frames)
    if kind == JointType.BALL:
        return builder.add_joint_ball(parent, child, **frames)
    if kind == JointType.FIXED:
        return builder.add_joint_fixed(parent, child, **frames)
    if kind == JointType.FREE:
        return builder.add_joint_free(child, parent=parent, **frames)
    axes = [[JointDofConfig(axis=a) for a in Rotation.random(None, rng).as_matrix()[:n]] for n in (linear, angular)]
    return builder.add_joint_d6(parent, child, linear_axes=axes[0], angular_axes=axes[1], **frames)


def looped(rng, worlds=2):
    """Robots of one shape, with a few loop joints each."""
    tree = random_tree(rng, joints=7, floating=True)
    add_loop(tree, rng, JointType.BALL, 2, 5)
    add_loop(tree, rng, JointType.REVOLUTE, -1, 4)
    scene = ModelBuilder()
    scene.replicate(tree, worlds)
    return scene


def closed(rng, loops, joints: int = 7, floating: bool | None = True, dtype=None, **options):
    """A robot whose loop joints are closed at random coordinates, and these coordinates.

    Args:
        rng: random numbers.
        loops: kinds of loop joints, each with a parent and a child, which are numbers of links or -1.
        joints, floating, options: of :func:`random_tree`.
    """
    tree = random_tree(rng, joints=joints, floating=floating, **options)
    model = tree.finalize("cpu", dtype=wp.float64)
    q, _ = random_state(model, rng)
    state = model.state()
    state.joint_q.assign(q)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    poses = state.body_q.numpy()
    for kind, parent, child in loops:
        at = random_transform(rng)
        in_world = at if parent < 0 else transform_multiply(poses[parent], at)
        own = transform_multiply(transform_inverse(poses[child]), in_world)
        frames = {"parent_xform": at, "child_xform": own, "label": f"loop_{kind.name.lower()}_{child}"}
        if kind == JointType.REVOLUTE:
            tree.add_joint_revolute(parent, child, axis=random_unit(rng), **frames)
        elif kind == JointType.PRISMATIC:
            tree.add_joint_prismatic(parent, child, axis=random_unit(rng), **frames)
        elif kind == JointType.BALL:
            tree.add_joint_ball(parent, child, **frames)
        else:
            tree.add_joint_fixed(parent, child, **frames)
    return tree, q


def loop_coordinates(model, q) -> np.ndarray:
    """Coordinates of all joints: those of the tree `q` in every world; those of loop joints do not matter."""
    full = model.joint_q.numpy().astype(np.float64)
    tree = model.joint_articulation.numpy() >= 0
    start = model.joint_q_start.numpy()
    places = np.concatenate([np.arange(start[j], start[j + 1]) for j in np.flatnonzero(tree)])
    full[places] = np.resize(q, len(places))
    return full
