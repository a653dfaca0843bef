"""Single robots for tests of the dynamics library, and reference results from definitions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import JointDofConfig, ModelBuilder
from newton_like.types import VelRepr

from . import reference
from .random_trees import random_inertia, random_state, random_transform, random_tree

STEP = 1e-6
"""Step [s] of central differences."""


class Case:
    """One robot with coordinates and velocities, and its own arrays without padding."""

    def __init__(self, model, q, qd):
        self.model, self.q, self.qd, self.tree = model, q, qd, reference.Tree.from_model(model)
        self.state = self.at(q, qd)
        self.floating = self.tree.joint_type[0] in (reference.FREE, reference.DISTANCE)
        self.base = int(self.tree.joint_child[0])

    def at(self, q, qd):
        return SimpleNamespace(joint_q=wp.array(q, dtype=wp.float64), joint_qd=wp.array(qd, dtype=wp.float64))

    def get(self, function, *, state=None, **options) -> np.ndarray:
        """The result of a function for this robot."""
        (result,) = function(self.model, self.state if state is None else state, **options).numpy()
        return result

    def pose(self, q=None):
        """Position, centre of mass and rotation matrix of the first link."""
        pose = reference.body_poses(self.tree, self.q if q is None else q)[self.base]
        R = Rotation.from_quat(pose[3:]).as_matrix()
        return pose[:3], pose[:3] + R @ self.tree.body_com[self.base], R

    def place(self, repr, q=None):
        """Point and axes of a representation of the first link."""
        x, c, R = self.pose(q)
        point = {VelRepr.COM: c, VelRepr.INERTIAL: np.zeros(3)}.get(repr, x)
        return point, R if repr == VelRepr.BODY else np.eye(3)

    def velocities(self, repr, q=None, qd=None):
        """Generalised velocities in a representation."""
        q, qd = self.q if q is None else q, self.qd if qd is None else qd
        nu = qd.copy()
        if self.floating and repr is not None:
            v, w = np.split(reference.body_velocities(self.tree, q, qd)[self.base], 2)
            p, R = self.place(repr, q)
            nu[:3], nu[3:6] = R.T @ (v + np.cross(w, p - self.pose(q)[1])), R.T @ w
        return nu

    def along(self, value, qdd=0.0):
        """Derivative of value(q, qd) along a motion with accelerations qdd (of joint_qd)."""
        ends = [
            value(reference.displace(self.tree, self.q, self.qd, s * STEP), self.qd + s * STEP * qdd) for s in (1, -1)
        ]
        return (ends[0] - ends[1]) / (2 * STEP)


def _known_robot(rng, floating: bool) -> ModelBuilder:
    """Three links: a floating or sliding base, then a ball joint or a D6 joint with two axes, then a hinge."""
    builder = ModelBuilder()

    def link():
        mass = rng.uniform(0.5, 2.0)
        return builder.add_link(mass=mass, com=0.1 * rng.normal(size=3), inertia=random_inertia(rng, mass, 0.4))

    def frames():
        return {"parent_xform": random_transform(rng, 0.3), "child_xform": random_transform(rng, 0.3)}

    base, arm, hand = link(), link(), link()
    if floating:
        joints = [builder.add_joint_free(base)]
        joints.append(builder.add_joint_ball(base, arm, damping=0.2, **frames()))
    else:
        joints = [builder.add_joint_prismatic(-1, base, axis="y", stiffness=3.0, **frames())]
        axes = [JointDofConfig(axis=a, damping=0.1, armature=0.02) for a in ("x", "z")]
        joints.append(builder.add_joint_d6(base, arm, angular_axes=axes, **frames()))
    joints.append(builder.add_joint_revolute(arm, hand, axis="x", armature=0.05, damping=0.1, **frames()))
    builder.add_articulation(joints)
    return builder


def known_robots(requires_grad: bool = True):
    """A float64 model of two small robots in two worlds, the same in every run, so that compiled kernels are reused."""
    rng, scene = np.random.default_rng(5), ModelBuilder()
    robots = [_known_robot(rng, floating) for floating in (True, False)]
    for _ in range(2):
        scene.begin_world()
        for robot in robots:
            scene.add_builder(robot)
        scene.end_world()
    model = scene.finalize("cpu", dtype=wp.float64, requires_grad=requires_grad)
    # specialised code of a small robot compiles faster than the general kernels
    model.evaluator = "specialised"
    return model


def cases(rng, armature=True):
    """Floating and fixed bases, all joint types."""
    trees = [random_tree(rng, floating=f, joints=n, armature=armature) for f, n in ((True, 7), (False, 7), (None, 5))]
    if armature:
        trees[0].joint_armature[:6] = rng.uniform(0.0, 0.1, 6).tolist()
    for tree in trees:
        tree.gravity = tuple(rng.normal(size=3))
        model = tree.finalize("cpu", dtype=wp.float64)
        yield Case(model, *random_state(model, rng))


def motion(p, R):
    """The matrix X from twists about the origin in world axes to twists at p along the columns of R."""
    X = np.zeros((6, 6))
    X[:3, :3] = X[3:, 3:] = R.T
    X[:3, 3:] = -R.T @ reference.cross_matrix(p)
    return X
