"""Robots with loop joints."""

from __future__ import annotations

import numpy as np
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import JointDofConfig, JointType, ModelBuilder, dynamics, eval_fk
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


def started(model, q, rng, speed: float = 1.0):
    """A state with closed loops and velocities that keep them closed."""
    state = model.state()
    state.joint_q.assign(loop_coordinates(model, q))
    tree = np.flatnonzero(model.joint_articulation.numpy() >= 0)
    starts = model.joint_qd_start.numpy()
    dofs = np.concatenate([np.arange(starts[j], starts[j + 1]) for j in tree]).reshape(model.articulation_count, -1)
    K, gap = (x.numpy().astype(np.float64) for x in dynamics.constraint_jacobian(model, state))
    assert np.abs(gap).max() < 1e-5
    qd = np.zeros(model.joint_dof_count)
    for i, own in enumerate(dofs):
        v = speed * rng.normal(size=len(own))
        J = K[i][:, : len(own)]
        qd[own] = v - np.linalg.pinv(J, rcond=1e-9) @ (J @ v)
    state.joint_qd.assign(qd)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    return state, dofs


def four_bar(rng, **settings) -> tuple[ModelBuilder, np.ndarray]:
    """Three bars in a vertical plane between two hinges on the world, closed by the second one, which may have
    settings, and closed coordinates."""
    ground, *bars = (0.5, 0.2, 0.45, 0.4) * rng.uniform(0.95, 1.05, 4)
    turn = rng.uniform(0.0, 2.0 * np.pi)
    # the point that is as far from the end of the first bar and from the second hinge as the bars are long
    end = bars[0] * np.array([np.cos(turn), np.sin(turn)])
    away = np.array([ground, 0.0]) - end
    d = np.linalg.norm(away)
    along = (bars[1] ** 2 - bars[2] ** 2 + d**2) / (2.0 * d)
    joint = end + along * away / d + np.sqrt(bars[1] ** 2 - along**2) * np.array([-away[1], away[0]]) / d
    angles = [turn, np.arctan2(*(joint - end)[::-1]), np.arctan2(*(np.array([ground, 0.0]) - joint)[::-1])]
    builder = ModelBuilder()
    links = []
    for length in bars:
        inertia = np.diag([1.0e-4, length**3 / 6.0, length**3 / 6.0])
        links.append(builder.add_link(mass=2.0 * length, com=(0.5 * length, 0, 0), inertia=inertia))
    # x stays, and y of the plane is z
    axis, parents, joints = (0.0, -1.0, 0.0), [-1, *links[:2]], []
    for parent, child, reach in zip(parents, links, (0.0, *bars[:2]), strict=True):
        joints.append(builder.add_joint_revolute(parent, child, parent_xform=(reach, 0, 0, 0, 0, 0, 1), axis=axis))
    builder.add_articulation(joints)
    ends = dict(parent_xform=(ground, 0, 0, 0, 0, 0, 1), child_xform=(bars[2], 0, 0, 0, 0, 0, 1))
    builder.add_joint_revolute(-1, links[2], axis=axis, label="closing", **ends, **settings)
    return builder, np.array([angles[0], angles[1] - angles[0], angles[2] - angles[1]])
