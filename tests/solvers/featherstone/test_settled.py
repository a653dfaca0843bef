"""Sweeps of robots alone with tendons, loop joints or couplings go on until velocities settle."""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, dynamics
from newton_like.model.actuators import Actuator
from newton_like.solvers import SolverFeatherstone
from tests.support.tendons import chain

DT = 2.0e-3


def finger(rng) -> str:
    """Three phalanges above a plane, with stops and a drive of a tendon over all three hinges."""
    links = ""
    for name, at, length, stop in (
        ("a", f"0 0 {rng.uniform(0.03, 0.06)}", 0.05, (0.05, 0.5)),
        ("b", "0.05 0 0", 0.03, (0.05, 0.6)),
        ("c", "0.03 0 0", 0.025, (0.05, 0.6)),
    ):
        joint = f'range="-.5 {rng.uniform(*stop)}" damping=".002" armature="1e-5"'
        links += f'<body pos="{at}"><joint name="{name}" axis="0 1 0" {joint}/>'
        links += f'<geom type="capsule" size=".008" fromto="0 0 0 {length} 0 0" mass="{0.4 * length}"/>'
    coefs = ".01", *rng.uniform(0.003, 0.01, 2)
    line = "".join(f'<joint joint="{name}" coef="{coef}"/>' for name, coef in zip("abc", coefs, strict=True))
    return (
        '<mujoco><compiler angle="radian"/><worldbody><geom type="plane" size="5 5 1"/>'
        f'{links}{"</body>" * 3}</worldbody><tendon><fixed name="f">{line}</fixed></tendon>'
        '<actuator><position tendon="f" kp="2000" kv="5" ctrlrange="-1 1"/></actuator></mujoco>'
    )


def scene(texts, worlds: int = 1):
    """Worlds with a robot each. A motor without force makes them share the kernel of other tests."""
    builder = ModelBuilder()
    for text in texts:
        robot = ModelBuilder()
        report = robot.add_mjcf(text)
        robot.add_actuator(Actuator(label="idle", transmission="joint", target=0))
        builder.replicate(robot, worlds)
    return builder.finalize("cpu", dtype=wp.float64), report


def solvers(model) -> list[SolverFeatherstone]:
    """With more sweeps than most of these robots need, with default settings, and with eight sweeps in each step."""
    settings = {"iterations": 200, "tolerance": 0.0}, {}, {"iterations": 1, "tolerance": 0.0}
    return [SolverFeatherstone(model, evaluator="general", width=1, **each) for each in settings]


@pytest.mark.slow
def test_a_finger_presses_with_the_force_of_the_converged_solution(rng):
    """To 5 %. Where a tendon, stops and the ground act against each other, eight sweeps a step give twice the force in some fingers."""
    model, report = scene([finger(rng) for _ in range(24)])
    made, forces = report.actuators[0], []
    for solver in solvers(model)[:2]:
        state, control = model.state(), model.control()
        setattr(control, made.drive, np.full(24, made.factor * 0.02 + made.offset))
        for _ in range(500):
            solver.step(state, state, control, dt=DT)
        assert np.abs(state.joint_qd.numpy()).max() < 2e-2
        forces.append(solver.contact_forces().numpy()[:, 2].reshape(24, -1).sum(axis=1))
    exact, found = forces
    assert exact.max() > 1.0
    np.testing.assert_allclose(found, exact, rtol=5e-2, atol=2e-2)


TENDONS = {
    "f": 'frictionloss="1"',
    "a": 'stiffness="200" damping="2"',
    "p": 'stiffness="100" springlength=".1"',
    "t0": 'limited="true" range="0 .4"',
    "t1": 'frictionloss=".5" stiffness="50"',
    "t2": 'damping="3"',
}


def test_steps_in_motion_are_near_the_converged_solution(rng):
    """Chains with springs, friction and limits of tendons, and stops: in more than 90 % of the steps, velocities are within ten times
    `tolerance` of the converged ones, in the norm of the kinetic energy. The mean error is less than half of that of eight sweeps."""
    texts, worlds = [], 2
    for _ in range(12):
        text = chain(rng, wraps=3).replace("<geom size=", '<geom mass="1" size=')
        text = text.replace('type="hinge"', 'type="hinge" damping=".1" range="-60 60"')
        for name, settings in TENDONS.items():
            text = text.replace(f'name="{name}"', f'name="{name}" {settings}')
        texts.append(text)
    model, _ = scene(texts, worlds)
    exact, *others = solvers(model)
    state, found, count = model.state(), model.state(), 12 * worlds
    state.joint_q = rng.uniform(-1.0, 1.0, model.joint_coord_count)
    state.joint_qd = rng.normal(size=model.joint_dof_count)

    def norm(x, inertia):
        x = x.reshape(count, -1)
        return np.sqrt(np.einsum("ni,nij,nj->n", x, inertia, x))

    residuals = []
    for i in range(25):
        free = state.joint_qd.numpy() + DT * dynamics.forward_dynamics(model, state).numpy().ravel()
        speeds = []
        for solver in others:
            solver.step(state, found, dt=DT)
            speeds.append(found.joint_qd.numpy().copy())
        exact.step(state, state, dt=DT)
        after, inertia = state.joint_qd.numpy(), dynamics.mass_matrix(model, state).numpy()
        if i:
            whole = norm(after - free, inertia)
            residuals.append([norm(each - after, inertia) / whole for each in speeds])
    default, eight = np.moveaxis(residuals, 1, 0)
    assert np.mean(default < 10.0 * others[0].tolerance) > 0.9
    assert default.mean() < 0.5 * eight.mean()


@pytest.mark.slow
def test_a_robot_does_not_depend_on_those_that_need_more_sweeps(rng):
    """Fingers in a batch have the bits that each has alone, in both evaluators; they settle after different numbers of sweeps."""
    builders = []
    for _ in range(20):
        robot = ModelBuilder()
        made = robot.add_mjcf(finger(rng)).actuators[0]
        builders.append(robot)
    starts = rng.uniform(-0.3, 0.3, (20, 3))

    def run(chosen, evaluator) -> np.ndarray:
        scene = ModelBuilder()
        for i in chosen:
            scene.add_world(builders[i])
        model = scene.finalize("cpu")
        solver, state, control = SolverFeatherstone(model, evaluator=evaluator), model.state(), model.control()
        setattr(control, made.drive, np.full(len(chosen), made.factor * 0.02 + made.offset))
        state.joint_q = starts[chosen].ravel()
        for _ in range(100):
            solver.step(state, state, control, dt=DT)
        return state.joint_q.numpy().reshape(len(chosen), -1).copy()

    together = run(range(20), "general")
    np.testing.assert_array_equal(run(range(20), "specialised"), together)
    for i in (0, 17):
        np.testing.assert_array_equal(run([i], "general")[0], together[i])
    for first in (3, 11):
        np.testing.assert_array_equal(run([*range(first, 20)], "general"), together[first:])
