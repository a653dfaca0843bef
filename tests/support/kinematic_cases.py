"""Models and states for the tests of kinematics, and comparisons of coordinates and poses."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import JointDofConfig, JointType, ModelBuilder, eval_fk
from newton_like.arrays import flat
from newton_like.programs.device import lane_width

from .random_trees import random_inertia, random_state, random_transform, random_tree, random_unit

QUATERNION = (JointType.BALL, JointType.FREE, JointType.DISTANCE)

PRECISIONS = [(1, wp.float32), (8, wp.float32), (16, wp.float32), (1, wp.float64), (8, wp.float64), (16, wp.float64)]
"""Lane widths and scalar types."""

QUICK = (lane_width("cpu", wp.float32), wp.float32), (lane_width("cpu", wp.float64), wp.float64)
"""Those of this machine, whose kernels most tests share."""

LANES = [
    pytest.param(p, marks=() if p in (*QUICK, (1, wp.float32)) else pytest.mark.slow, id=f"{p[0]}-{p[1].__name__}")
    for p in PRECISIONS
]
"""The same as parameters of a fixture; width 1 is that of GPUs."""

EVERY_PRECISION = pytest.mark.parametrize(
    ("width", "dtype"),
    [pytest.param(*p, marks=() if p in QUICK else pytest.mark.slow) for p in PRECISIONS],
)

NARROW = [(None, wp.float32), (None, wp.float64), pytest.param(1, wp.float64, marks=pytest.mark.slow)]
"""The widths of this machine, and width 1 for float64 only, to compile fewer kernels."""


def use_width(monkeypatch, width: int | None) -> None:
    """Sets the lane width of kernels; None: that of this machine."""
    if width is None:
        monkeypatch.delenv("NEWTON_LIKE_WIDTH", raising=False)
    else:
        monkeypatch.setenv("NEWTON_LIKE_WIDTH", str(width))


def use_threads(monkeypatch, threads: int) -> None:
    """Sets the number of threads, and divides even the smallest batch between them."""
    monkeypatch.setenv("NEWTON_LIKE_THREADS", str(threads))
    monkeypatch.setattr("newton_like.programs.run._WORK_A_THREAD", 1)


def forest(rng: np.random.Generator, worlds: int = 1, robots: int = 2, joints: int = 8, **options) -> ModelBuilder:
    """Worlds with copies of the same random trees."""
    trees = [random_tree(rng, joints=joints, label=f"tree_{i}", **options) for i in range(robots)]
    scene = ModelBuilder()
    for _ in range(worlds):
        scene.begin_world()
        for tree in trees:
            scene.add_builder(tree)
        scene.end_world()
    return scene


def add_joint(
    builder: ModelBuilder, rng, kind: JointType, parent: int, linear: int = 0, angular: int = 0, hand: int = 1
):
    """A link on a joint of one type with random frames; D6 axes make a right- (hand 1) or left-handed (-1) triple."""
    mass = rng.uniform(0.5, 2.0)
    link = builder.add_link(mass=mass, com=0.2 * rng.normal(size=3), inertia=random_inertia(rng, mass))
    frames = {"parent_xform": random_transform(rng), "child_xform": random_transform(rng)}
    if kind == JointType.PRISMATIC:
        joint = builder.add_joint_prismatic(parent, link, axis=random_unit(rng), **frames)
    elif kind == JointType.REVOLUTE:
        joint = builder.add_joint_revolute(parent, link, axis=random_unit(rng), **frames)
    elif kind == JointType.BALL:
        joint = builder.add_joint_ball(parent, link, **frames)
    elif kind == JointType.FIXED:
        joint = builder.add_joint_fixed(parent, link, **frames)
    elif kind == JointType.FREE:
        joint = builder.add_joint_free(link, parent=parent, **frames)
    elif kind == JointType.DISTANCE:
        joint = builder.add_joint_distance(parent, link, min_distance=-1.0, max_distance=-1.0, **frames)
    else:
        triples = [Rotation.random(None, rng).as_matrix() * [[1], [1], [hand]] for _ in range(2)]
        axes = [[JointDofConfig(axis=a) for a in t[:n]] for t, n in zip(triples, (linear, angular), strict=True)]
        joint = builder.add_joint_d6(parent, link, linear_axes=axes[0], angular_axes=axes[1], **frames)
    return link, joint


KINDS = [(kind, 0, 0, 1) for kind in JointType if kind != JointType.D6] + [
    (JointType.D6, linear, angular, hand)
    for linear in range(4)
    for angular in range(4)
    for hand in ((1, -1) if 3 in (linear, angular) else (1,))
    if linear + angular > 0
]
"""Every joint type, and a D6 joint of every number of axes."""


def every_kind(rng: np.random.Generator, moving: bool = True) -> ModelBuilder:
    """An articulation for each of `KINDS`: its joint on the world, or between a moving parent and a moving child."""
    builder = ModelBuilder()
    for kind, linear, angular, hand in KINDS:
        joints, parent = [], -1
        if moving:
            parent, joint = add_joint(builder, rng, JointType.FREE, -1)
            joints.append(joint)
        parent, joint = add_joint(builder, rng, kind, parent, linear, angular, hand)
        joints.append(joint)
        if moving:
            joints.append(add_joint(builder, rng, JointType.REVOLUTE, parent)[1])
        builder.add_articulation(joints)
    return builder


def moving_state(model, rng, **options):
    """A state at random coordinates and velocities, with these as float64 arrays."""
    q, qd = random_state(model, rng, **options)
    state = model.state()
    state.joint_q.assign(q)
    state.joint_qd.assign(qd)
    return state, q, qd


def real_array(model, values, requires_grad: bool = False) -> wp.array:
    """Numbers as a Warp array of the model's scalar type."""
    return wp.array(values, dtype=model.dtype, device=model.device, requires_grad=requires_grad)


def bodies_at(model, q, qd):
    """``body_q`` [body, 7] and ``body_qd`` [body, 6] by `eval_fk`."""
    state = model.state(requires_grad=False)
    eval_fk(model, real_array(model, q), real_array(model, qd), state)
    return state.body_q.numpy().copy(), state.body_qd.numpy().copy()


def same_sign(model, q: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Coordinates whose quaternions have the signs of the expected ones."""
    q, end = q.copy(), model.joint_q_start.numpy()[1:]
    for j in np.flatnonzero(np.isin(model.joint_type.numpy(), QUATERNION)):
        s = slice(end[j] - 4, end[j])
        q[s] *= np.sign(q[s] @ expected[s])
    return q


def pose_error(actual: np.ndarray, expected: np.ndarray) -> tuple[float, float]:
    """Largest distance [m] and largest angle [rad] between poses ``[n, 7]``."""
    turned = Rotation.from_quat(actual[:, 3:]) * Rotation.from_quat(expected[:, 3:]).inv()
    offset = np.linalg.norm(actual[:, :3].astype(np.float64) - expected[:, :3], axis=1)
    return offset.max(initial=0.0), turned.magnitude().max(initial=0.0)


@wp.kernel
def _weighted_sum(values: wp.array[wp.float64], weights: wp.array[wp.float64], total: wp.array[wp.float64]):
    i = wp.tid()
    wp.atomic_add(total, 0, values[i] * weights[i])


def gradient_errors(function, inputs: list[np.ndarray], rng, directions: int | None = None) -> list[float]:
    """Largest differences between the tape's gradients and central differences, relative to the largest derivative.

    Args:
        function: From Warp arrays (float64) like `inputs` to a list of Warp arrays. Their randomly weighted sum is
            differentiated.
        inputs: Arguments, one flat float64 array each.
        directions: Number of random directions for each argument; by default the directions of all entries.
    """
    real, step = wp.float64, 1e-6
    arrays = [wp.array(x, dtype=real, device="cpu", requires_grad=True) for x in inputs]
    loss = wp.zeros(1, dtype=real, device="cpu", requires_grad=True)
    with wp.Tape() as tape:
        outputs = [flat(a, real) for a in function(*arrays)]
        weights = [rng.normal(size=a.size) for a in outputs]
        for a, w in zip(outputs, weights, strict=True):
            wp.launch(_weighted_sum, a.size, [a, wp.array(w, dtype=real, device="cpu"), loss], device="cpu")
    tape.backward(loss)

    def value(k, change):
        moved = [x + change if i == k else x for i, x in enumerate(inputs)]
        results = function(*[wp.array(x, dtype=real, device="cpu") for x in moved])
        return sum(flat(a, real).numpy() @ w for a, w in zip(results, weights, strict=True))

    errors = []
    for k, x in enumerate(inputs):
        ways = np.eye(x.size) if directions is None else rng.normal(size=(directions, x.size))
        expected = np.array([(value(k, step * w) - value(k, -step * w)) / (2.0 * step) for w in ways])
        scale = max(1.0, np.abs(expected).max(initial=0.0))
        errors.append(np.abs(ways @ arrays[k].grad.numpy() - expected).max(initial=0.0) / scale)
    return errors
