"""Mechanisms of human size with loops against closed forms: a catenary, a delta robot, and a chain that is closed to a ring."""

import numpy as np
import pytest
from scipy.optimize import brentq

from newton_like import JointDofConfig, ModelBuilder, dynamics, eval_fk
from newton_like.solvers import SolverFeatherstone
from newton_like.types import VelRepr

GAP = 1.0e-4
"""Largest gap of a loop [m]."""
G = 9.81


def rod(builder, length: float, mass: float, label: str = "", thickness: float = 1e-3) -> int:
    """A rod from the origin along x; `thickness` is the ratio of its moments of inertia."""
    inertia = mass * length**2 / 12.0
    return builder.add_link(
        mass=mass, com=(0.5 * length, 0, 0), inertia=np.diag([thickness * inertia, inertia, inertia]), label=label
    )


def at(*place) -> tuple:
    return (*place, 0.0, 0.0, 0.0, 1.0)


def gap(model, state) -> float:
    return float(np.abs(dynamics.constraint_jacobian(model, state)[1].numpy()).max())


def catenary(links: int, length: float, mass: float, span: float) -> tuple[np.ndarray, float]:
    """Slopes of the rods of a hanging chain, and its horizontal tension. The torques on each rod are in balance if the tangent of its slope
    is the mean of the vertical forces at its ends over the horizontal one."""
    steps = np.arange(links) - 0.5 * (links - 1)

    def slopes(tension):
        return np.arctan(mass * G * steps / tension)

    tension = brentq(lambda h: length * np.cos(slopes(h)).sum() - span, 1e-3 * mass * G, 1e4 * links * mass * G)
    return slopes(tension), tension


@pytest.mark.slow
def test_a_chain_of_fifty_rods_hangs_in_a_catenary(rng):
    """Between two points at one height. It starts beside the catenary. It comes to rest because its velocities are set to zero whenever its
    kinetic energy has passed a maximum."""
    links, length, mass = 50, 0.04, rng.uniform(0.05, 0.2)
    span = links * length * rng.uniform(0.5, 0.8)
    builder, parent, joints = ModelBuilder(gravity=(0.0, 0.0, -G)), -1, []
    for _ in range(links):
        link = rod(builder, length, mass)
        place = at(0, 0, 0) if parent < 0 else at(length, 0, 0)
        joints.append(
            builder.add_joint_revolute(parent, link, parent_xform=place, axis=(0, -1, 0), damping=0.02 * mass)
        )
        parent = link
    builder.add_articulation(joints)
    builder.add_joint_ball(-1, parent, parent_xform=at(span, 0, 0), child_xform=at(length, 0, 0), label="end")
    model = builder.finalize("cpu")
    slopes, tension = catenary(links, length, mass, span)
    state = model.state()
    start = np.diff(slopes, prepend=0.0) + rng.uniform(-0.02, 0.02, links)
    dynamics.set_joint_positions(model, state, start)
    dynamics.assemble(model, state)
    solver, gaps = SolverFeatherstone(model, evaluator="general"), []
    energy = 0.0
    for i in range(2400):
        solver.step(state, state)
        if i % 20 == 0:
            gaps.append(gap(model, state))
            last, energy = energy, float(dynamics.kinetic_energy(model, state).numpy()[0])
            if energy < last:
                state.joint_qd.zero_()
                energy = 0.0
    assert max(gaps) < GAP
    found = np.cumsum(dynamics.joint_positions(model, state).numpy()[0])
    np.testing.assert_allclose(found, slopes, atol=5e-3)
    force = np.abs(solver.loop_forces().numpy()[0])
    np.testing.assert_allclose(
        np.sort(force), np.sort([0.0, tension, 0.5 * links * mass * G]), atol=0.01 * links * mass * G
    )


BASE, PLATFORM, UPPER, LOWER, HALF = 0.2, 0.06, 0.3, 0.6, 0.05
"""A delta robot: radii of base and platform, lengths of arms and rods, and half of the distance of two parallel rods [m]."""


def delta(load: float) -> ModelBuilder:
    """Arms on hinges at the base; two parallel rods on each carry the platform, which one rod holds as a part of the tree."""
    builder, joints = ModelBuilder(gravity=(0.0, 0.0, -G)), []
    platform = None
    ends = []
    for k in range(3):
        turn = 2.0 * np.pi * k / 3.0
        out, across = np.array([np.cos(turn), np.sin(turn), 0.0]), np.array([-np.sin(turn), np.cos(turn), 0.0])
        spin = (0.0, 0.0, np.sin(turn / 2.0), np.cos(turn / 2.0))
        arm = rod(builder, UPPER, 0.5, f"arm_{k}")
        drive = JointDofConfig(axis=(0, 1, 0), target_ke=1.0e5, target_kd=1.0e3)
        joints.append(
            builder.add_joint_d6(-1, arm, angular_axes=[drive], parent_xform=(*(BASE * out), *spin), label=f"hinge_{k}")
        )
        for side in (-HALF, HALF):
            thin = rod(builder, LOWER, 0.1, f"rod_{k}_{side:+g}")
            axes = [JointDofConfig(axis=axis) for axis in ((0, 1, 0), (0, 0, 1))]
            joints.append(builder.add_joint_d6(arm, thin, angular_axes=axes, parent_xform=at(UPPER, side, 0)))
            ends.append((thin, PLATFORM * out + side * across))
    platform = builder.add_link(mass=1.0 + load, inertia=(0.01 + 0.01 * load) * np.eye(3), label="platform")
    thin, place = ends.pop(0)
    joints.append(builder.add_joint_ball(thin, platform, parent_xform=at(LOWER, 0, 0), child_xform=at(*place)))
    builder.add_articulation(joints)
    for thin, place in ends:
        builder.add_joint_ball(thin, platform, parent_xform=at(LOWER, 0, 0), child_xform=at(*place))
    return builder


def delta_place(angles) -> np.ndarray:
    """Where the platform is: below, at the distance of a rod from three elbows that are moved inwards by its radius."""
    turn = 2.0 * np.pi * np.arange(3) / 3.0
    reach = BASE - PLATFORM + UPPER * np.cos(angles)
    p = np.stack([reach * np.cos(turn), reach * np.sin(turn), -UPPER * np.sin(angles)], axis=1)
    # trilateration
    x = p[1] - p[0]
    d = np.linalg.norm(x)
    x /= d
    i = x @ (p[2] - p[0])
    y = p[2] - p[0] - i * x
    j = np.linalg.norm(y)
    y /= j
    a = 0.5 * d
    b = (i**2 + j**2) / (2.0 * j) - i / j * a
    z = np.cross(x, y)
    return p[0] + a * x + b * y - np.sign(z[2]) * z * np.sqrt(LOWER**2 - a**2 - b**2)


@pytest.mark.slow
def test_a_delta_robot_carries_a_load_level_where_its_elbows_say(rng):
    """Drives hold the arms. The platform does not turn, and its place is that of three spheres about the elbows."""
    model = delta(load=rng.uniform(1.0, 10.0)).finalize("cpu")
    angles = rng.uniform(0.1, 0.6, 3)
    state = model.state()
    arms = [f"hinge_{k}" for k in range(3)]
    dynamics.set_joint_positions(model, state, angles, arms)
    # rods that hang down from the arms, and a platform that is level
    q = state.joint_q.numpy()
    starts = model.joint_q_start.numpy()
    for k in range(3):
        for n in (1, 2):
            q[starts[3 * k + n]] = 1.9 - angles[k]
    q[starts[9] : starts[9] + 4] = 0.0, np.sin(-0.95), 0.0, np.cos(0.95)
    state.joint_q.assign(q)
    dynamics.assemble(model, state, fixed=arms)
    control = model.control()
    targets = control.joint_target_q.numpy()
    targets[starts[[0, 3, 6]]] = angles
    control.joint_target_q.assign(targets)
    solver, gaps = SolverFeatherstone(model, evaluator="general"), []
    for i in range(480):
        solver.step(state, state, control)
        if i % 10 == 0:
            gaps.append(gap(model, state))
    assert max(gaps) < GAP
    eval_fk(model, state.joint_q, state.joint_qd, state)
    pose = state.body_q.numpy()[model.body_label.index("platform")]
    found = dynamics.joint_positions(model, state, arms).numpy()[0]
    np.testing.assert_allclose(found, angles, atol=0.01)
    np.testing.assert_allclose(pose[:3], delta_place(found), atol=1e-4)
    np.testing.assert_allclose(np.abs(pose[3:]), [0, 0, 0, 1], atol=5e-4)


@pytest.mark.slow
def test_a_ring_of_rods_keeps_its_momenta(rng):
    """Free in space, without gravity, from random velocities that keep it closed."""
    links, length = 12, 0.15
    builder, joints, parent = ModelBuilder(gravity=(0.0, 0.0, 0.0)), [], -1
    for _ in range(links):
        link = rod(builder, length, 0.3, thickness=0.3)
        if parent < 0:
            joints.append(builder.add_joint_free(link))
        else:
            joints.append(builder.add_joint_ball(parent, link, parent_xform=at(length, 0, 0)))
        parent = link
    builder.add_articulation(joints)
    builder.add_joint_ball(parent, 0, parent_xform=at(length, 0, 0), label="clasp")
    model = builder.finalize("cpu")
    state = model.state()
    turn = np.pi / links
    q = state.joint_q.numpy()
    for k in range(1, links):
        at_q = int(model.joint_q_start.numpy()[k])
        q[at_q : at_q + 4] = 0.0, 0.0, np.sin(turn), np.cos(turn)
    state.joint_q.assign(q)
    assert gap(model, state) < 1e-5
    dofs = model.joint_qd_start.numpy()[links]
    K = dynamics.constraint_jacobian(model, state)[0].numpy()[0].astype(float)[:, :dofs]
    v = 0.5 * rng.normal(size=dofs)
    qd = np.zeros(model.joint_dof_count)
    qd[:dofs] = v - np.linalg.pinv(K) @ (K @ v)
    state.joint_qd.assign(qd)

    def momenta() -> np.ndarray:
        """Linear, and angular about the origin."""
        return dynamics.total_momentum(model, state, repr=VelRepr.INERTIAL).numpy()[0]

    before, solver, gaps = momenta(), SolverFeatherstone(model, evaluator="general"), []
    for i in range(480):
        solver.step(state, state, dt=1.0 / 480.0)
        if i % 10 == 0:
            gaps.append(gap(model, state))
    assert max(gaps) < GAP
    np.testing.assert_allclose(momenta(), before, atol=1e-3 * np.abs(before).max())
