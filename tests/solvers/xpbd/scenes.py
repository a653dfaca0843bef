"""Models that several tests of the solver in maximal coordinates use."""

from __future__ import annotations

import numpy as np
import warp as wp

import newton_like as nl
from newton_like.geometry.transforms import quat_to_matrix, transform_point
from newton_like.model.tendons import Tendon
from newton_like.solvers import SolverXPBD
from newton_like.types import JointType
from tests.support.random_trees import random_inertia, random_transform


def xpbd(model, **options) -> SolverXPBD:
    """The solver with the lane width that all tests of a scalar type share."""
    width = 8 if model.dtype is wp.float32 else 1
    return SolverXPBD(model, **{"width": width, **options})


def started(model, joint_q=None, joint_qd=None):
    """A state with these joint coordinates, or those of the model, and the poses of bodies that follow."""
    state = model.state()
    if joint_q is not None:
        state.joint_q.assign(np.asarray(joint_q))
    if joint_qd is not None:
        state.joint_qd.assign(np.asarray(joint_qd))
    nl.eval_fk(model, state.joint_q, state.joint_qd, state)
    return state


def after(solver, state, seconds: float, dt: float, control=None, contacts=None):
    """The state after some time."""
    for _ in range(round(seconds / dt)):
        if contacts is not None:
            solver.model.collide(state, contacts)
        solver.step(state, state, control, contacts, dt)
    return state


def gaps(model, state) -> np.ndarray:
    """Distances of the anchors of joints whose anchors coincide [m]."""
    poses = np.vstack([state.body_q.numpy().astype(float).reshape(-1, 7), [0, 0, 0, 0, 0, 0, 1]])
    found = []
    types, parent, child = (getattr(model, f"joint_{n}").numpy() for n in ("type", "parent", "child"))
    frames = [getattr(model, f"joint_X_{n}").numpy().astype(float) for n in "pc"]
    for j in range(model.joint_count):
        if JointType(types[j]).name in ("REVOLUTE", "BALL", "FIXED"):
            ends = [transform_point(poses[k[j]], X[j, :3]) for k, X in zip((parent, child), frames, strict=True)]
            found.append(np.linalg.norm(ends[0] - ends[1]))
    return np.array(found)


def masses(model) -> np.ndarray:
    """Masses of bodies, in double precision."""
    return model.body_mass.numpy().astype(float)


def momentum(model, state, bodies: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Linear momentum, and angular momentum about the origin of the world, of the first `bodies`; None: of all."""
    q, qd = state.body_q.numpy().astype(float).reshape(-1, 7), state.body_qd.numpy().astype(float).reshape(-1, 6)
    p, turn = np.zeros(3), np.zeros(3)
    for k, m in enumerate(masses(model)[:bodies]):
        R = rotation(q[k, 3:])
        x = transform_point(q[k], model.body_com.numpy()[k].astype(float))
        inertia = R @ model.body_inertia.numpy()[k].astype(float) @ R.T
        p += m * qd[k, :3]
        turn += m * np.cross(x, qd[k, :3]) + inertia @ qd[k, 3:]
    return p, turn


def energy(model, state, gravity: float = 9.81) -> float:
    """Kinetic energy, and potential energy in a field along -z."""
    q, qd = state.body_q.numpy().astype(float).reshape(-1, 7), state.body_qd.numpy().astype(float).reshape(-1, 6)
    total = 0.0
    for k, m in enumerate(masses(model)):
        R = rotation(q[k, 3:])
        inertia = R @ model.body_inertia.numpy()[k].astype(float) @ R.T
        x = transform_point(q[k], model.body_com.numpy()[k].astype(float))
        total += 0.5 * m * qd[k, :3] @ qd[k, :3] + 0.5 * qd[k, 3:] @ inertia @ qd[k, 3:] + m * gravity * x[2]
    return total


def rotation(q) -> np.ndarray:
    """The rotation matrix of a unit quaternion."""
    x, y, z, w = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def pendulum(links: int = 2, **joint) -> nl.ModelBuilder:
    """Rods of 1 m and 1 kg that hang on hinges about y, at an angle of zero along x."""
    builder, joints, parent = nl.ModelBuilder(), [], -1
    for i in range(links):
        rod = builder.add_link(mass=1.0, com=(0.5, 0.0, 0.0), inertia=np.diag([1e-2, 1 / 12, 1 / 12]))
        at = (1.0 if i else 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        joints.append(builder.add_joint_revolute(parent, rod, axis=(0, 1, 0), parent_xform=at, **joint))
        parent = rod
    builder.add_articulation(joints)
    return builder


def random_chain(rng, kind: str, floating: bool, links: int = 2, **dof) -> nl.ModelBuilder:
    """A chain of joints of one kind with random frames; "d621": a D6 joint with two linear and one angular axis."""
    builder, joints = nl.ModelBuilder(), []

    def link():
        mass = rng.uniform(0.5, 2.0)
        return builder.add_link(mass=mass, com=0.1 * rng.normal(size=3), inertia=random_inertia(rng, mass, 0.3))

    parent = link()
    if floating:
        joints.append(builder.add_joint_free(parent))
    else:
        joints.append(builder.add_joint_fixed(-1, parent, parent_xform=random_transform(rng, 0.3)))
    for _ in range(links):
        child = link()
        where = dict(parent_xform=random_transform(rng, 0.3), child_xform=random_transform(rng, 0.3))
        if kind in ("revolute", "prismatic"):
            add = getattr(builder, f"add_joint_{kind}")
            joints.append(add(parent, child, axis=rng.normal(size=3), **where, **dof))
        elif kind in ("ball", "fixed"):
            joints.append(getattr(builder, f"add_joint_{kind}")(parent, child, **where))
        else:
            config = nl.ModelBuilder.JointDofConfig
            bases = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2)]
            counts = int(kind[2]), int(kind[3])
            axes = [[config(axis=tuple(a), **dof) for a in basis[:n]] for basis, n in zip(bases, counts, strict=True)]
            joints.append(builder.add_joint_d6(parent, child, linear_axes=axes[0], angular_axes=axes[1], **where))
        parent = child
    builder.add_articulation(joints)
    return builder


def random_coordinates(model, rng, turn: float = 0.5) -> np.ndarray:
    """Joint coordinates: small angles and lengths, any quaternions."""
    q, starts = model.joint_q.numpy().astype(float).copy(), model.joint_q_start.numpy()
    for j, kind in enumerate(model.joint_type.numpy()):
        start, end = starts[j], starts[j + 1]
        if JointType(kind).name in ("BALL", "FREE", "DISTANCE"):
            turned = rng.normal(size=4)
            q[end - 4 : end] = turned / np.linalg.norm(turned)
        else:
            q[start:end] = rng.uniform(-turn, turn, end - start)
    return q


def with_all_programs(builder) -> None:
    """Adds a body on a rail, far away, with a tendon that wraps and a ball with rolling friction: tests whose models have some of these
    share one kernel."""
    slider = builder.add_link(mass=1.0, inertia=0.01 * np.eye(3), label="far slider")
    at = (20.0, 0.0, 5.0, 0.0, 0.0, 0.0, 1.0)
    rail = builder.add_joint_prismatic(-1, slider, parent_xform=at, axis=(0, 0, 1), damping=1.0, label="far rail")
    builder.add_articulation([rail], label="far")
    config = nl.ShapeConfig(density=0.0, has_shape_collision=False)
    around = builder.add_shape_sphere(-1, xform=(20.0, 0.0, 6.0, 0, 0, 0, 1), radius=0.1, cfg=config)
    sites = [builder.add_site(-1, xform=(20.5, 0, 6, 0, 0, 0, 1)), builder.add_site(slider)]
    path = (("site", sites[0]), ("geom", around, -1), ("site", sites[1]))
    builder.tendons.append(Tendon(label="far line", path=path, stiffness=20.0, damping=1.0, rest_length=(0.0, 1.0)))
    builder.add_shape_sphere(slider, radius=0.05, cfg=nl.ShapeConfig(density=0.0, mu_rolling=0.001))


def energies(model, state) -> np.ndarray:
    """Kinetic and potential energy of each body [J]."""
    q, qd = state.body_q.numpy().astype(float), state.body_qd.numpy().astype(float)
    mass, inertia = model.body_mass.numpy().astype(float), model.body_inertia.numpy().astype(float)
    turn = quat_to_matrix(q[:, 3:])
    spin = np.einsum("nji,nj->ni", turn, qd[:, 3:])
    height = q[:, 2] + np.einsum("ni,ni->n", turn[:, 2], model.body_com.numpy().astype(float))
    moving = 0.5 * mass * (qd[:, :3] ** 2).sum(axis=1) + 0.5 * np.einsum("ni,nij,nj->n", spin, inertia, spin)
    return moving + 9.81 * mass * height


def of_worlds(model, values: np.ndarray) -> np.ndarray:
    """Sums over the bodies of each world."""
    return np.bincount(model.body_world.numpy(), values, minlength=model.world_count)
