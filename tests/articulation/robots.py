"""Robots of these tests: centres of mass off the link frames, inertias turned, all worlds different."""

import numpy as np
import warp as wp

import newton_like as nl
from newton_like.articulation import Articulation, SimulationContext

WORLDS = 5


def random_inertia(rng) -> np.ndarray:
    """A sound inertia along random axes."""
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    a, b = rng.uniform(0.01, 0.03, 2)
    return axes @ np.diag([a, b, rng.uniform(max(a, b), a + b)]) @ axes.T


def add_robot(builder: nl.ModelBuilder, rng, floating: bool = True, label: str = "walker") -> None:
    """A base with two legs of two joints: hinge and slide, hinge and hinge."""
    base = builder.add_link(mass=2.0, com=rng.uniform(-0.1, 0.1, 3), inertia=random_inertia(rng), label=f"{label}/base")
    pose = (*rng.normal(size=2), 1.0, 0.0, 0.0, 0.0, 1.0)
    if floating:
        joints = [builder.add_joint_free(base, label=f"{label}/root")]
    else:
        joints = [builder.add_joint_fixed(-1, base, parent_xform=pose, label=f"{label}/root")]
    for side, kinds in (("left", "rp"), ("right", "rr")):
        parent = base
        for k, kind in zip(("hip", "knee"), kinds, strict=True):
            link = builder.add_link(
                mass=rng.uniform(0.5, 1.0),
                com=rng.uniform(-0.1, 0.1, 3),
                inertia=random_inertia(rng),
                label=f"{label}/{side}_{k}",
            )
            axis = rng.normal(size=3)
            add = builder.add_joint_revolute if kind == "r" else builder.add_joint_prismatic
            joints.append(
                add(
                    parent,
                    link,
                    axis=tuple(axis / np.linalg.norm(axis)),
                    parent_xform=(*rng.uniform(-0.2, 0.2, 3), 0, 0, 0, 1),
                    armature=0.01,
                    label=f"{label}/{side}_{k}_joint",
                )
            )
            parent = link
    builder.add_articulation(joints, label=label)


def scene(rng, worlds: int = WORLDS, floating: bool = True, gravity: float = -9.81, beside=None):
    """A model of many worlds with a robot in each; `beside` adds to a world."""
    one = nl.ModelBuilder(gravity=gravity)
    add_robot(one, rng, floating)
    if beside is not None:
        beside(one)
    builder = nl.ModelBuilder(gravity=gravity)
    builder.replicate(one, worlds)
    return builder.finalize("cpu")


def shake(robot: Articulation, rng) -> None:
    """Random states in all worlds."""
    n, j = robot.data.joint_pos.shape
    if not robot.is_fixed_base:
        robot.write_root_state_to_sim(random_states(rng, n))
    robot.write_joint_state_to_sim(rng.uniform(-1.0, 1.0, (n, j)), rng.normal(size=(n, j)))


def random_states(rng, n: int) -> np.ndarray:
    """Poses and velocities, ``[n, 13]``."""
    states = rng.normal(size=(n, 13))
    states[:, 3:7] /= np.linalg.norm(states[:, 3:7], axis=1, keepdims=True)
    return states.astype(np.float32)


def walker(
    rng,
    floating: bool = True,
    actuators=None,
    gravity: float = -9.81,
    dt: float = 1.0 / 240.0,
    substeps: int = 1,
    **options,
) -> Articulation:
    """A robot in several worlds, in random states."""
    sim = SimulationContext(
        scene(rng, floating=floating, gravity=gravity), dt=dt, evaluator="general", substeps=substeps
    )
    robot = Articulation(sim, "walker", actuators=actuators, **options)
    shake(robot, rng)
    return robot


def rotation(q: np.ndarray) -> np.ndarray:
    """Matrices of quaternions x y z w, ``[..., 3, 3]``."""
    x, y, z, w = np.moveaxis(np.asarray(q, dtype=np.float64), -1, 0)
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], -1),
            np.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], -1),
            np.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], -1),
        ],
        -2,
    )


def numbers(array: wp.array) -> np.ndarray:
    """A copy in double precision."""
    return array.numpy().astype(np.float64)
