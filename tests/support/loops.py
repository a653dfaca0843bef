"""Robots with loop joints."""

from __future__ import annotations

from scipy.spatial.transform import Rotation

from newton_like import JointDofConfig, JointType, ModelBuilder

from .random_trees import random_transform, random_tree, random_unit


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
