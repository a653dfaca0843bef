"""Dynamics of robots: laws, and the dynamics library on the same robot as a model."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like import robot as rd
from newton_like.robot.structure.tree import survey
from newton_like.robot.to_model import edges_of, machine_model
from tests.support.random_robots import random_robot
from tests.support.robot_calls import random_input, randomize, reach, shuffled_state, two_links

SLACK = 1e-10


def made(rng, joints: int = 9, unit: bool = False):
    """A robot and its state at random inputs."""
    robot = rd.Robot(
        rd.RobotConfiguration("case", random_robot(rd, rng.integers(2**32), joints, unit=unit, helical=not unit)[0][0])
    )
    state = shuffled_state(robot, rng)
    randomize(state, rng)
    return robot, state


def torques(robot, state, **inputs):
    """Inverse dynamics; inputs that are not given are zero, except for q."""
    for name in ("qdot", "qddot", "V0", "Vdot0"):
        size = 6 if name[0] == "V" else len(state.joint_names)
        setattr(state, name, inputs.get(name, np.zeros(size)))
    robot.compute_inverse_dynamics(state)
    return state.tau


def close(found, expected, slack=SLACK):
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=slack * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("unit", [True, False])
def test_columns_of_the_mass_matrix_are_inverse_dynamics(rng, unit):
    robot, state = made(rng, unit=unit)
    M = robot.compute_mass_matrix(state)
    np.testing.assert_array_equal(M, M.T)
    close(M, np.transpose([torques(robot, state, qddot=column) for column in np.eye(len(state.joint_names))]))


def test_mass_matrix_is_the_sum_over_the_links(rng):
    """The inertia with the base link fixed: the sum of Jb^T G Jb over the links."""
    robot, state = made(rng)
    total, base = 0.0, state.base_link_idx
    for i in range(len(state.link_names)):
        J = robot.compute_body_jacobian(state, base, i)
        total = total + J.T @ robot.get_link(state, i).inertia @ J
    close(robot.compute_mass_matrix(state), total)


def test_kinetic_energy(rng):
    robot, state = made(rng)
    energy, base = 0.0, state.base_link_idx
    for i in range(len(state.link_names)):
        V = robot.compute_body_velocity(state, base, i)
        energy += 0.5 * V @ robot.get_link(state, i).inertia @ V
    close(0.5 * state.qdot @ robot.compute_mass_matrix(state) @ state.qdot, energy)


def test_power_of_the_joints_is_the_rate_of_the_kinetic_energy(rng):
    robot, state = made(rng)
    q, v, a = state.q, state.qdot, state.qddot
    energies = []
    for time in (1e-5, -1e-5):
        state.q, state.qdot = q + v * time + 0.5 * a * time**2, v + a * time
        energies.append(0.5 * state.qdot @ robot.compute_mass_matrix(state) @ state.qdot)
    state.q = q
    tau = torques(robot, state, qdot=v, qddot=a)
    close(tau @ v, (energies[0] - energies[1]) / 2e-5, 1e-7)


def test_gravity_term_is_inverse_dynamics_at_rest(rng):
    """For a base link with any acceleration, also an angular one. The gravity term reads neither V0 nor qdot."""
    robot, state = made(rng)
    Vdot0 = state.Vdot0
    found = robot.compute_gravity_term(state)
    close(found, torques(robot, state, Vdot0=Vdot0))


@pytest.mark.parametrize("unit", [True, False])
def test_gravity_term_is_the_gradient_of_the_potential_energy(rng, unit):
    robot, state = made(rng, unit=unit)
    gravity = rng.normal(size=3)
    state.set_gravity([0.0, 0.0, 0.0, *gravity])
    mass = sum(robot.compute_mass(state, i) for i in range(len(state.link_names)))
    q, step, slopes = state.q, 1e-6, []
    found = robot.compute_gravity_term(state)
    for unit_vector in np.eye(len(q)):
        energies = []
        for sign in (1, -1):
            state.q = q + sign * step * unit_vector
            energies.append(-mass * gravity @ robot.compute_center_of_mass(state, state.base_link_idx))
        slopes.append((energies[0] - energies[1]) / (2.0 * step))
    close(found, slopes, 1e-7)


def test_a_base_that_moves_is_a_first_joint_that_moves(rng):
    """V0 and Vdot0 of the base link are those that a joint below it gives it. The torques of the other joints are the same."""
    seed, links = rng.integers(2**32), []
    for _ in range(2):
        links.append(random_robot(rd, seed, 8)[0][0])
    axis = rng.normal(size=3)
    S = np.concatenate([axis, np.cross(rng.normal(size=3), axis)])
    ground = rd.Link("ground")
    rd.Joint.make("below", S).connect_links(ground, links[1])
    fixed, moved = (rd.Robot(rd.RobotConfiguration("", base)) for base in (links[0], ground))
    state = fixed.make_state()
    randomize(state, rng)
    other = moved.make_state([], ["below", *state.joint_names])
    speed, rate = rng.normal(size=2)
    for name, value in (("q", rng.normal()), ("qdot", speed), ("qddot", rate)):
        setattr(other, name, [value, *getattr(state, name)])
    # the twist and the acceleration of the base link in its own frame
    state.V0, state.Vdot0 = speed * S, rate * S
    fixed.compute_inverse_dynamics(state)
    moved.compute_inverse_dynamics(other)
    close(state.tau, other.tau[1:])


def test_reflective_inertia(rng):
    """pinv(J pinv(M) J^T)"""
    robot, state = made(rng, 11)
    compared = 0
    for _ in range(40):
        if compared == 4:
            break
        ref, target = two_links(robot, state, rng)
        ratio = reach(robot, state, ref, target)
        if ratio > 1e9:
            # nearly singular: rounding errors decide about the pseudo-inverse
            continue
        compared += 1
        J, M = robot.compute_body_jacobian(state, ref, target), robot.compute_mass_matrix(state)
        expected = np.linalg.pinv(J @ np.linalg.pinv(M, hermitian=True) @ J.T, rcond=1e-12, hermitian=True)
        close(robot.compute_reflective_inertia(state, ref, target), expected, 1e-9 + 1e-13 * ratio)
    assert compared == 4


def six_joints(axes, offsets, rng):
    """A chain of six joints, and a state of it."""
    links = [rd.Link("link0")]
    for i in range(6):
        links.append(
            rd.Link(
                f"link{i + 1}", np.diag(rng.uniform(1.0, 2.0, 6)[[0, 1, 2, 5, 5, 5]]) + np.diag([3.0] * 3 + [0] * 3)
            )
        )
        T = np.eye(4)
        T[:3, 3] = offsets[i]
        rd.Joint.make_revolute(f"joint{i}", T, axes[i]).connect_links(links[i], links[i + 1], T)
    robot = rd.Robot(rd.RobotConfiguration("", links[0]))
    return robot, robot.make_state()


def test_reflective_inertia_of_six_joints(rng):
    """A chain of six joints reaches all directions: J^T A J = M."""
    robot, state = six_joints(rng.normal(size=(6, 3)), rng.normal(size=(6, 3)), rng)
    state.q = rng.normal(size=6)
    J = robot.compute_body_jacobian(state, 0, 6)
    A = robot.compute_reflective_inertia(state, 0, 6)
    close(J.T @ A @ J, robot.compute_mass_matrix(state), 1e-9 + 1e-13 * reach(robot, state, 0, 6))


def test_reflective_inertia_near_a_singular_configuration(rng):
    """J^T A J = M of an arm whose wrist gets straight, from where the inverse is that of a factorisation to where it needs eigenvalues.
    Straight, the lost direction has no inertia. A batch has all of these."""
    z, y = [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]
    robot, state = six_joints(
        [z, y, y, z, y, z], [[0, 0, 0.3], [0.1, 0, 0], [0.4, 0, 0], [0, 0, 0.2], [0, 0, 0], [0, 0, 0]], rng
    )
    q = rng.uniform(0.5, 1.0, 6) + np.zeros((7, 1))
    q[:, 4] = [1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 0.0]
    ratios, found = [], []
    for one in q:
        state.q = one
        J, M, A = (
            robot.compute_body_jacobian(state, 0, 6), robot.compute_mass_matrix(state), robot.compute_reflective_inertia(state, 0, 6)
        )  # fmt: skip
        found.append(A)
        if one[4]:
            ratios.append(reach(robot, state, 0, 6))
            close(J.T @ A @ J, M, 1e-9 + 1e-13 * ratios[-1])
    assert ratios[0] < 1e6 and ratios[-1] > 1e10
    lost = np.linalg.svd(J.T)[2][-1]
    close(found[-1] @ lost, np.zeros(6), 1e-9 * np.abs(found[-1]).max())
    state.q = q
    np.testing.assert_array_equal(robot.compute_reflective_inertia(state, 0, 6), found)


def test_unreachable_directions_have_no_reflective_inertia(rng):
    robot, state = made(rng, 11)
    ref, target = two_links(robot, state, rng)
    J = robot.compute_body_jacobian(state, ref, target)
    A = robot.compute_reflective_inertia(state, ref, target)
    _, sizes, directions = np.linalg.svd(J.T)
    reached = np.count_nonzero(sizes > 1e-9 * sizes[0])
    close(A @ directions[reached:].T, np.zeros((6, 6 - reached)), 1e-9 * max(1.0, np.abs(A).max()))
    np.testing.assert_array_equal(robot.compute_reflective_inertia(state, ref, ref), np.zeros((6, 6)))


@pytest.mark.parametrize("batch", [(), (5,)])
def test_massless_ends_of_a_tree(rng, batch):
    """Joints that move no inertia are left out of J and M: links without mass at the ends of a tree, one behind the other too."""
    links = random_robot(rd, rng.integers(2**32), 9, unit=True)[0]
    tip = links[-1]
    for i in range(2):
        T, link = np.eye(4), rd.Link(f"massless{i}", np.zeros((6, 6)))
        T[:3, 3] = rng.normal(size=3)
        rd.Joint.make_revolute(f"idle{i}", T, rng.normal(size=3)).connect_links(tip, link, T)
        tip = link
    robot = rd.Robot(rd.RobotConfiguration("", links[0]))
    state = robot.make_state([], ["idle1"])
    state.q = rng.normal(size=(*batch, robot.dof))
    target = state.link_names.index(tip.name)
    J, M = robot.compute_body_jacobian(state, 0, target), robot.compute_mass_matrix(state)
    moves = np.abs(M).max(axis=-1).reshape(-1, robot.dof).max(axis=0) > 0.0
    assert not moves[[state.joint_names.index(f"idle{i}") for i in range(2)]].any()
    J, M = J[..., moves], M[..., moves, :][..., moves]
    A = J @ np.linalg.solve(M, np.swapaxes(J, -1, -2))
    found = robot.compute_reflective_inertia(state, 0, target)
    assert found.shape == (*batch, 6, 6)
    close(A @ found @ A, A, 1e-9)


def test_a_joint_that_moves_no_inertia(rng):
    """M is singular. The pseudo-inverse takes the joint for one that cannot move."""
    links = [rd.Link(name, np.zeros((6, 6)) if name == "tip" else np.eye(6)) for name in ("base", "arm", "tip")]
    for i in range(2):
        T = np.eye(4)
        T[:3, 3] = rng.normal(size=3)
        rd.Joint.make_revolute(f"joint{i}", T, rng.normal(size=3)).connect_links(links[i], links[i + 1], T)
    robot = rd.Robot(rd.RobotConfiguration("", links[0]))
    state = robot.make_state()
    state.q = rng.normal(size=2)
    M = robot.compute_mass_matrix(state)
    assert M[0, 0] > 0.0 and not M[1].any()
    J = robot.compute_body_jacobian(state, 0, 2)
    expected = np.linalg.pinv(np.outer(J[:, 0], J[:, 0]) / M[0, 0], hermitian=True, rcond=1e-12)
    close(robot.compute_reflective_inertia(state, 0, 2), expected, 1e-9)


def test_against_the_dynamics_library(rng, by_numpy):
    """Functions of models on the model of the robot, run by NumPy. They share the programs of joints and of the mass matrix with robots."""
    robot = rd.Robot(rd.RobotConfiguration("case", random_robot(rd, rng.integers(2**32), 9, unit=True)[0][0]))
    state = robot.make_state()
    randomize(state, rng)
    links, joints = survey(robot.base)
    edges = edges_of(links, joints)
    model = machine_model(links, edges, edges)
    gravity = rng.normal(size=3)
    model.set_gravity(gravity)
    n = len(state.joint_names)
    moved = model.state()
    moved.joint_q.assign(state.q)
    moved.joint_qd.assign(state.qdot)
    state.set_gravity([0.0, 0.0, 0.0, *gravity])
    close(robot.compute_mass_matrix(state), nl.dynamics.mass_matrix(model, moved).numpy()[0][:n, :n])
    state.V0 = np.zeros(6)
    robot.compute_inverse_dynamics(state)
    qdd = wp.array(state.qddot, dtype=wp.float64)
    close(state.tau, nl.dynamics.inverse_dynamics(model, moved, qdd).numpy().ravel()[:n])
    close(robot.compute_gravity_term(state), nl.dynamics.gravity_forces(model, moved).numpy().ravel()[:n])
    close(robot.compute_center_of_mass(state, 0), nl.dynamics.com_position(model, moved).numpy()[0])


def test_inputs_that_no_function_reads(rng):
    """tau is a result, V0 has no part in the gravity term, and limits do not clip coordinates."""
    robot, state = made(rng)
    before = robot.compute_gravity_term(state)
    state.tau = random_input(state, "tau", rng)
    state.V0, state.qdot = rng.normal(size=6), random_input(state, "qdot", rng)
    np.testing.assert_array_equal(robot.compute_gravity_term(state), before)
