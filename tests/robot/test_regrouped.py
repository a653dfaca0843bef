"""Inverse dynamics and Jacobians of robots whose axes are in special places, against the definitions of the SDK. Frames of links follow
from the places of the axes."""

import numpy as np
import pytest

from newton_like import robot as rd
from tests.support.random_robots import adjoint, cross_matrix, random_inertia, random_pose, screw_motion
from tests.support.robot_calls import random_input

TOLERANCE = 1e-11
"""Of the largest number: rounding errors of some hundred operations on lengths that are at most a hundred times those of the robot."""


def bracket(V) -> np.ndarray:
    """``ad(V)`` of a twist, angular part first."""
    return np.block([[cross_matrix(V[:3]), np.zeros((3, 3))], [cross_matrix(V[3:]), cross_matrix(V[:3])]])


def by_definition(state, joints, links):
    """The torques by recursion over links: V = Ad(E^-1) Vp + S qdot, A = Ad(E^-1) Ap + ad(V) S qdot + S qddot, F = G A - ad(V)^T G V."""
    at = {name: i for i, name in enumerate(state.joint_names)}
    motion, forces, moves = {links[0].name: (state.V0, state.Vdot0)}, {}, {}
    for joint in joints:
        q, qdot, qddot = (
            getattr(state, x)[at[joint.name]] if joint.name in at else 0.0 for x in ("q", "qdot", "qddot")
        )
        E = joint.T_pj @ screw_motion(joint.S, q) @ joint.T_jc
        X = adjoint(np.linalg.inv(E))
        S = adjoint(np.linalg.inv(joint.T_jc)) @ joint.S
        V, A = (X @ x for x in motion[joint.parent_link.name])
        V = V + S * qdot
        A = A + bracket(V) @ S * qdot + S * qddot
        G = joint.child_link.inertia
        motion[joint.child_link.name] = V, A
        forces[joint.child_link.name], moves[joint.name] = G @ A - bracket(V).T @ G @ V, (S, X)
    tau = np.zeros(len(at))
    for joint in reversed(joints):
        (S, X), F = moves[joint.name], forces[joint.child_link.name]
        if joint.name in at:
            tau[at[joint.name]] = S @ F
        if joint.parent_link.name in forces:
            forces[joint.parent_link.name] = forces[joint.parent_link.name] + X.T @ F
    return tau


def turned(rng, case: str) -> np.ndarray:
    """The pose of a joint in the frame of the joint before it, whose axes are both z axes."""
    T = random_pose(rng)
    if case in ("parallel", "opposite", "nearly parallel", "one line"):
        angle = rng.normal()
        T[:2, :3], T[2, :3] = (
            [[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0]],
            [0.0, 0.0, 1.0],
        )
    if case == "opposite":
        T[:3, :3] = T[:3, :3] @ np.diag([1.0, -1.0, -1.0])
    if case == "nearly parallel":
        tilt = 10.0 ** rng.uniform(-17.0, -1.0)
        T[:3, :3] = screw_motion([*(tilt * np.append(rng.normal(size=2), 0.0)), 0.0, 0.0, 0.0], 1.0)[:3, :3] @ T[:3, :3]
    if case == "one line":
        T[:2, 3] = 0.0
    if case == "one point":
        T[:3, 3] = 0.0
    if case == "right angles":
        T[:3, :3] = np.eye(3)[[1, 2, 0]]
    return T


CASES = ("general", "parallel", "opposite", "nearly parallel", "one line", "one point", "right angles", "all")


def made(rng, case: str, joints: int = 7):
    """A tree of joints about or along z axes, some of which are screws, and of links on fixed joints."""
    links, made, some = [rd.Link("0", random_inertia(rng))], [], CASES[:-1]
    for i in range(joints):
        S = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
        kind = rng.choice(["turn", "turn", "slide", "screw", "fixed"])
        if kind == "slide":
            S = np.concatenate([np.zeros(3), rng.normal(size=3) if rng.integers(2) else [0.0, 0.0, 1.0]])
        if kind == "screw":
            S[5] = rng.normal()
        joint = rd.Joint.make_fixed(f"j{i}") if kind == "fixed" else rd.Joint.make(f"j{i}", S * rng.choice([1.0, -2.0]))
        inertia = random_inertia(rng) if rng.integers(4) else np.zeros((6, 6))
        links.append(rd.Link(str(i + 1), inertia))
        T = turned(rng, rng.choice(some) if case == "all" else case)
        parent = links[-2] if rng.integers(3) else links[rng.integers(i + 1)]
        joint.connect_links(parent, links[-1], T, random_pose(rng) if rng.integers(2) else np.eye(4))
        made.append(joint)
    return rd.Robot(rd.RobotConfiguration("r", links[0])), links, made


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * max(1.0, np.abs(expected).max(initial=0.0)))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_axes_in_special_places(rng, case):
    for _ in range(4):
        robot, links, joints = made(rng, case)
        state = robot.make_state()
        for name in ("q", "qdot", "qddot", "V0", "Vdot0"):
            setattr(state, name, random_input(state, name, rng))
        robot.compute_inverse_dynamics(state)
        close(state.tau, by_definition(state, joints, links))
        ref, target = (int(i) for i in rng.integers(0, len(links), 2))
        J = robot.compute_body_jacobian(state, ref, target)
        close(J @ state.qdot, robot.compute_body_velocity(state, ref, target))
        pose = robot.compute_transformation(state, ref, target)
        close(robot.compute_space_jacobian(state, ref, target), adjoint(pose) @ J)
        q, step = state.q, 1e-6
        if len(q):
            k = int(rng.integers(len(q)))
            poses = []
            for sign in (1, -1):
                state.q = q + sign * step * np.eye(len(q))[k]
                poses.append(robot.compute_transformation(state, ref, target))
            rate = np.linalg.inv(pose) @ (poses[0] - poses[1]) / (2.0 * step)
            column = [rate[2, 1], rate[0, 2], rate[1, 0], *rate[:3, 3]]
            # a difference quotient
            np.testing.assert_allclose(J[:, k], column, rtol=0, atol=1e-7 * max(1.0, np.abs(J).max()))


def test_a_batch_with_screws_of_any_length_follows_its_inputs(rng):
    """Some functions read inputs as they are set, others in units of motion."""
    robot, _, _ = made(rng, "all")
    state, one = robot.make_state(), robot.make_state()
    for _ in range(3):
        state.q = random_input(state, "q", rng) * rng.normal(size=(3, 1))
        state.qdot = random_input(state, "qdot", rng)
        one.q, one.qdot = state.q[1], state.qdot
        for call in ("space_jacobian", "transformation", "body_velocity", "body_jacobian"):
            found, alone = (getattr(robot, f"compute_{call}")(x, 0, 7) for x in (state, one))
            np.testing.assert_array_equal(found[1], alone)
        for each in (state, one):
            robot.compute_inverse_dynamics(each)
        np.testing.assert_array_equal(state.tau[1], one.tau)
