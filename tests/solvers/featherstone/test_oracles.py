"""The velocity after a step against dense reference dynamics, MuJoCo and pinocchio, for random trees and robots.

Without constraints a step drifts for dt / 2 to the configuration q, where it solves for the new velocity v+

    M (v+ - v) / dt + bias(w) = tau + passive forces at (q + dt v+, v+) + drives at (q + dt v+, v+), clipped to limits

where springs move on along dt v+ linearly and w = (v + u) / 2, with u the velocity under the bias forces at v alone; then it drifts for
another dt / 2. Small steps give accelerations; the residual of this law vanishes in any.
"""

import dataclasses

import numpy as np
import pytest
import warp as wp

from newton_like import JointTargetMode, JointType, ModelBuilder
from tests.support import reference
from tests.support.mujoco_bridge import MujocoBridge
from tests.support.paths import ROBOTS, by_size
from tests.support.random_trees import random_state, random_tree
from tests.support.simulate import Simulation, worlds_of

ROBOT_FILES = sorted([*ROBOTS.glob("*/urdf/*.urdf"), *ROBOTS.glob("*/robots/*.urdf")])
HELD = (JointType.PRISMATIC, JointType.REVOLUTE, JointType.BALL, JointType.D6)
TREES = 24

# A step this small moves velocities by the acceleration but for dt times its rate (about 1e2 1/s of it, relative) and
# the rounding of velocities of size 10 (1e-15 / dt).
SMALL = 1e-7
SMALL_ERROR = 1e-4
SHORT = 1.0 / 480.0


def random_worlds(rng, trees=TREES, **options):
    """One world for each of many random trees."""
    return worlds_of(random_tree(rng, joints=int(rng.integers(1, 10)), **options) for _ in range(trees))


def every_tree(simulation):
    return [reference.Tree.from_model(simulation.model, w) for w in range(simulation.worlds)]


def add_random_drives(builder, rng, effort=None):
    """Drives of every mode on joints that are not free; `effort` bounds the random effort limits."""
    for j, kind in enumerate(builder.joint_type):
        if kind not in HELD:
            continue
        mode = JointTargetMode(int(rng.integers(len(JointTargetMode))))
        gains = rng.uniform(1.0, 100.0), rng.uniform(0.1, 5.0)
        start = builder.joint_qd_start[j]
        for i in range(start, start + sum(builder.joint_dof_dim[j])):
            builder.joint_target_mode[i] = int(mode)
            if mode not in (JointTargetMode.NONE, JointTargetMode.EFFORT):
                builder.joint_target_ke[i], builder.joint_target_kd[i] = gains
            if effort is not None:
                builder.joint_effort_limit[i] = float(rng.uniform(*effort))


def randomize(simulation, rng, speed=1.0):
    """Sets and returns random states, forces on joints and bodies, and targets."""
    model = simulation.model
    q, qd = random_state(model, rng, speed=speed)
    target_q, target_qd = random_state(model, rng, speed=speed)
    drawn = {
        "joint_f": 3.0 * rng.normal(size=model.joint_dof_count),
        "joint_target_q": target_q,
        "joint_target_qd": target_qd,
        "joint_act": rng.normal(size=model.joint_dof_count),
    }
    wrench = 3.0 * rng.normal(size=(model.body_count, 6))
    simulation.set_state(q, qd)
    simulation.state.body_f.assign(wrench)
    for name, values in drawn.items():
        getattr(simulation.control, name).assign(values)
    # As stored, so that rounding to float32 does not count as an error.
    read = {name: getattr(simulation.control, name).numpy().astype(np.float64) for name in drawn}
    return {**read, "body_f": simulation.state.body_f.numpy().astype(np.float64)}


class Law:
    """The equation that a step of one tree solves for the new velocity, from forces and targets that were drawn."""

    def __init__(self, simulation, tree, drawn, q, qd):
        model, self.tree, self.dt = simulation.model, tree, simulation.dt
        self.qd = qd[tree.dofs]
        self.q = q = reference.displace(tree, q[tree.coords], self.qd, 0.5 * self.dt)
        self.body_f = drawn["body_f"][tree.bodies]
        dofs = {n: getattr(model, f"joint_{n}").numpy()[tree.dofs] for n in ("target_ke", "target_kd", "effort_limit")}
        mode = model.joint_target_mode.numpy()[tree.dofs]
        follows_q = np.isin(mode, (JointTargetMode.POSITION, JointTargetMode.POSITION_VELOCITY))
        follows_qd = np.isin(mode, (JointTargetMode.VELOCITY, JointTargetMode.POSITION_VELOCITY))
        by_effort = mode == JointTargetMode.EFFORT
        goal = dataclasses.replace(
            tree, joint_rest_q=drawn["joint_target_q"][tree.coords], joint_stiffness=np.zeros(tree.dof_count)
        )
        joint_f = reference.generalized_forces(tree, q, drawn["joint_f"][tree.dofs])
        self.limit = dofs["effort_limit"]
        self.gain = np.where(follows_q, dofs["target_ke"], 0.0)
        self.damp = np.where(follows_q | follows_qd, dofs["target_kd"], 0.0)
        self.push = -self.gain * reference.spring_offsets(goal, q) + drawn["joint_act"][tree.dofs]
        self.push += np.where(follows_qd, self.damp * drawn["joint_target_qd"][tree.dofs], 0.0)
        self.push += np.where(by_effort, joint_f, 0.0)
        self.free = np.where(by_effort, 0.0, joint_f)
        self.spring = -tree.joint_stiffness * reference.spring_offsets(tree, q)

    def middle_velocity(self, mass, bias) -> np.ndarray:
        """w, halfway to the velocity under bias forces alone, which the implicit terms of drives and springs resist."""
        tree, dt = self.tree, self.dt
        slope = tree.joint_damping + self.damp + dt * (tree.joint_stiffness + self.gain)
        return self.qd - 0.5 * dt * np.linalg.solve(mass + dt * np.diag(slope), bias)

    def residual(self, new, mass=reference.mass_matrix, bias=None):
        """What drives gave in a step to the velocity `new`, what their law asks for, and the largest force at all.

        Bias forces are those at the middle velocity, which one iteration finds, or three or seven where that moves much.
        Whichever is nearest counts: between them lie several powers of ten of the tolerance.

        `mass` and `bias` are functions of (tree, q) and (tree, q, qd).
        """
        passive_bias = bias
        if bias is None:
            zero = np.zeros(self.tree.dof_count)
            passive_bias = reference.bias_forces

            def bias(tree, q, qd):
                return reference.inverse_dynamics(tree, q, qd, zero, self.body_f)

        tree, dt, M = self.tree, self.dt, mass(self.tree, self.q)
        inertial = M @ (new - self.qd) / dt
        passive = self.spring - (tree.joint_damping + dt * tree.joint_stiffness) * new
        drive = np.clip(self.push - (self.damp + dt * self.gain) * new, -self.limit, self.limit)
        middle, found = self.qd, []
        for iteration in range(1, 8):
            middle = self.middle_velocity(M, passive_bias(tree, self.q, middle))
            if iteration in (1, 3, 7):
                h = bias(tree, self.q, middle)
                largest = max(np.abs(f).max(initial=1e-300) for f in (inertial, h, drive, self.free, passive))
                found.append((inertial + h - self.free - passive, drive, largest))
        return min(found, key=lambda x: np.abs(x[0] - x[1]).sum())


def driving_forces(simulation, drawn, q, qd, new_qd):
    """For every world: forces of drives that the step amounts to, those of their law, the largest force at all."""
    for tree in every_tree(simulation):
        yield Law(simulation, tree, drawn, q, qd).residual(new_qd[tree.dofs])


def step_once(simulation, rng, speed=1.0):
    drawn = randomize(simulation, rng, speed)
    q, qd = simulation.state.joint_q.numpy().astype(np.float64), simulation.state.joint_qd.numpy().astype(np.float64)
    simulation.run(simulation.dt)
    return drawn, q, qd, simulation.state.joint_qd.numpy().astype(np.float64)


# Backward error of a factorisation: a few hundred roundings. In float32 the difference v+ - v over dt = 1/480 s costs
# more: 480 roundings of a velocity, times the largest mass; one tree in a thousand is at 4e-4. Steps are short, because trees
# that turn by some hundredths of a radian a step are damped beside these forces, see kernels.solvers.balance; one may be all the same.
PRECISIONS = pytest.mark.parametrize(
    ("dtype", "tolerance"), [(wp.float64, 1e-11), pytest.param(wp.float32, 1e-3, marks=pytest.mark.slow)]
)


@pytest.mark.slow
@PRECISIONS
def test_a_step_solves_the_implicit_equation_of_motion(rng, dtype, tolerance):
    scene = random_worlds(rng, stiffness=True)
    add_random_drives(scene, rng)
    simulation = Simulation(scene, SHORT, dtype=dtype)
    forces = driving_forces(simulation, *step_once(simulation, rng))
    errors = [np.abs(actual - law).max(initial=0.0) / largest for actual, law, largest in forces]
    assert np.sort(errors)[-2] < tolerance
    assert np.median(errors) < 0.05 * tolerance


@pytest.mark.slow
@PRECISIONS
def test_drives_are_clipped_at_the_new_velocity(rng, dtype, tolerance):
    scene = random_worlds(rng, 4 * TREES, stiffness=True)
    add_random_drives(scene, rng, effort=(0.5, 20.0))
    simulation = Simulation(scene, SHORT, dtype=dtype)
    drawn, clipped, errors = step_once(simulation, rng), 0, []
    limits = simulation.model.joint_effort_limit.numpy()
    for tree, (actual, law, largest) in zip(every_tree(simulation), driving_forces(simulation, *drawn), strict=True):
        # A drive counts as beyond its limit from 1.0001 times that on.
        errors.append(np.max((np.abs(actual - law) - 1e-4 * np.abs(law)) / largest, initial=0.0))
        clipped += np.count_nonzero(np.abs(law) == limits[tree.dofs])
    assert clipped > TREES
    assert np.sort(errors)[-2] < tolerance


@pytest.mark.slow
def test_small_steps_give_the_accelerations_of_the_reference(rng):
    scene = random_worlds(rng, stiffness=True)
    simulation = Simulation(scene, SMALL, dtype=wp.float64)
    drawn, q, qd, new = step_once(simulation, rng)
    for tree in every_tree(simulation):
        x, v = q[tree.coords], qd[tree.dofs]
        tau = reference.generalized_forces(tree, x, drawn["joint_f"][tree.dofs]) + drawn["joint_act"][tree.dofs]
        expected = reference.forward_dynamics(tree, x, v, tau, drawn["body_f"][tree.bodies])
        error = (new - qd)[tree.dofs] / SMALL - expected
        assert np.abs(error).max(initial=0.0) < SMALL_ERROR * max(1.0, np.abs(expected).max(initial=0.0))


@pytest.mark.slow
def test_a_step_moves_coordinates_along_their_manifold(rng):
    simulation = Simulation(random_worlds(rng), dtype=wp.float64)
    _, q, qd, new = step_once(simulation, rng, speed=3.0)
    moved, poses, velocities = (getattr(simulation.state, n).numpy() for n in ("joint_q", "body_q", "body_qd"))
    for tree in every_tree(simulation):
        middle = reference.displace(tree, q[tree.coords], qd[tree.dofs], 0.5 * simulation.dt)
        expected = reference.displace(tree, middle, new[tree.dofs], 0.5 * simulation.dt)
        # A few dozen roundings of metres; long chains add up those of their links.
        np.testing.assert_allclose(moved[tree.coords], expected, atol=1e-12)
        X = reference.body_poses(tree, expected)
        np.testing.assert_allclose(poses[tree.bodies][:, :3], X[:, :3], atol=1e-11)
        same = np.sign(np.sum(poses[tree.bodies][:, 3:] * X[:, 3:], axis=1, keepdims=True))
        np.testing.assert_allclose(same * poses[tree.bodies][:, 3:], X[:, 3:], atol=1e-11)
        V = reference.body_velocities(tree, expected, new[tree.dofs])
        np.testing.assert_allclose(velocities[tree.bodies], V, atol=1e-10)


def worst_acceleration_error(simulation, q, qd, new, others):
    """Largest relative difference of the step's accelerations from the results of `others`, a function for each world."""
    worst = 0.0
    for tree, other in zip(every_tree(simulation), others, strict=True):
        expected = other(q[tree.coords], qd[tree.dofs])
        error = np.abs((new - qd)[tree.dofs] / simulation.dt - expected).max(initial=0.0)
        worst = max(worst, error / max(1.0, np.abs(expected).max(initial=0.0)))
    return worst


def test_small_steps_give_the_accelerations_of_mujoco(rng):
    scene = random_worlds(rng, stiffness=True)
    simulation = Simulation(scene, SMALL, dtype=wp.float64)
    drawn, q, qd, new = step_once(simulation, rng)

    def mujoco(w):
        bridge = MujocoBridge(simulation.model, world=w)
        tree = bridge.tree

        def forward(x, v):
            tau = reference.generalized_forces(tree, x, drawn["joint_f"][tree.dofs]) + drawn["joint_act"][tree.dofs]
            return bridge.forward_dynamics(x, v, tau, drawn["body_f"][tree.bodies])

        return forward

    assert worst_acceleration_error(simulation, q, qd, new, map(mujoco, range(TREES))) < SMALL_ERROR


@pytest.mark.slow
def test_small_steps_give_the_driven_accelerations_of_mujoco(rng):
    # MuJoCo drives joints of one axis and D6 joints; each of its actuators is position and velocity drive in one.
    scene = random_worlds(
        rng, types=(JointType.PRISMATIC, JointType.REVOLUTE, JointType.D6, JointType.FREE, JointType.FIXED)
    )
    for j, kind in enumerate(scene.joint_type):
        if kind in HELD:
            start = scene.joint_qd_start[j]
            for i in range(start, start + sum(scene.joint_dof_dim[j])):
                scene.joint_target_mode[i] = int(JointTargetMode.POSITION_VELOCITY)
                scene.joint_target_ke[i], scene.joint_target_kd[i] = rng.uniform(1.0, 100.0), rng.uniform(0.1, 5.0)
                scene.joint_effort_limit[i] = rng.uniform(5.0, 100.0)
    simulation = Simulation(scene, SMALL, dtype=wp.float64)
    drawn, q, qd, new = step_once(simulation, rng)

    def mujoco(w):
        bridge = MujocoBridge(simulation.model, world=w, drives=True)
        tree = bridge.tree
        targets = (
            drawn["joint_target_q"][tree.coords],
            drawn["joint_target_qd"][tree.dofs],
            drawn["joint_act"][tree.dofs],
        )

        def forward(x, v):
            bridge.data.ctrl[:] = bridge.ctrl(*targets)
            # Joints without an actuator: the feed-forward force of the drive is all of it.
            undriven = np.where(np.isin(np.arange(tree.dof_count), bridge._driven), 0.0, drawn["joint_act"][tree.dofs])
            tau = reference.generalized_forces(tree, x, drawn["joint_f"][tree.dofs]) + undriven
            return bridge.forward_dynamics(x, v, tau, drawn["body_f"][tree.bodies])

        return forward

    assert worst_acceleration_error(simulation, q, qd, new, map(mujoco, range(TREES))) < SMALL_ERROR


def test_small_steps_give_the_accelerations_of_pinocchio(rng):
    pytest.importorskip("pinocchio")
    from tests.support.pinocchio_bridge import PinocchioBridge

    simulation = Simulation(random_worlds(rng, stiffness=True), SMALL, dtype=wp.float64)
    drawn, q, qd, new = step_once(simulation, rng)

    def pinocchio(w):
        bridge = PinocchioBridge(simulation.model, world=w)
        tree = bridge.tree

        def forward(x, v):
            tau = reference.generalized_forces(tree, x, drawn["joint_f"][tree.dofs]) + drawn["joint_act"][tree.dofs]
            pushed = np.einsum("bid,bi->d", reference.jacobian(tree, x), drawn["body_f"][tree.bodies])
            return bridge.forward_dynamics(x, v, tau + pushed + reference.passive_forces(tree, x, v))

        return forward

    assert worst_acceleration_error(simulation, q, qd, new, map(pinocchio, range(TREES))) < SMALL_ERROR


def robot_worlds(path, count, floating):
    """Copies of a robot without mimic joints and dry friction, which the reference dynamics lack."""
    robot = ModelBuilder()
    robot.add_urdf(path, floating=floating, hide_visuals=True)
    robot.joint_mimic_joint = [-1] * robot.joint_count
    robot.joint_friction = [0.0] * robot.joint_dof_count
    scene = ModelBuilder()
    scene.replicate(robot, count)
    return scene


def add_a_gram(model):
    """To every link, as MuJoCo takes none without inertia; all engines read it from the model."""
    model.body_mass.assign(model.body_mass.numpy() + 1e-3)
    model.body_inertia.assign(model.body_inertia.numpy() + 1e-6 * np.eye(3))


def inside_limits(model, rng):
    """Coordinates in the middle of every range, and velocities well below every limit, so that no limit acts."""
    q, qd = random_state(model, rng)
    low, high = model.joint_limit_lower.numpy(), model.joint_limit_upper.numpy()
    starts = zip(model.joint_q_start.numpy(), model.joint_qd_start.numpy(), model.joint_type.numpy(), strict=False)
    for at, dof, kind in starts:
        if kind in (JointType.REVOLUTE, JointType.PRISMATIC) and low[dof] > -1e9:
            q[at] = low[dof] + rng.uniform(0.1, 0.9) * (high[dof] - low[dof])
    return q, qd * np.minimum(1.0, 0.1 * model.joint_velocity_limit.numpy())


@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
@pytest.mark.skipif(not ROBOT_FILES, reason=f"{ROBOTS} is not there")
@pytest.mark.parametrize("floating", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("path", by_size(ROBOT_FILES), ids=lambda p: p.stem)
def test_robots_accelerate_as_in_other_engines(rng, path, floating):
    # The law of a step with the matrices of the other engine. Not the accelerations: those of finger tips that weigh a
    # gram and are damped change within nanoseconds.
    simulation = Simulation(robot_worlds(path, 2, floating), SHORT, dtype=wp.float64, edit=add_a_gram)
    model = simulation.model
    q, qd = inside_limits(model, rng)
    simulation.set_state(q, qd)
    simulation.run(simulation.dt)
    new = simulation.state.joint_qd.numpy()
    others = [MujocoBridge(model)]
    try:
        from tests.support.pinocchio_bridge import PinocchioBridge

        others.append(PinocchioBridge(model))
    except ImportError:
        pass
    nothing = {
        n: np.zeros(size) for n, size in (("joint_f", qd.size), ("joint_act", qd.size), ("joint_target_qd", qd.size))
    }
    nothing |= {"joint_target_q": q, "body_f": np.zeros((model.body_count, 6))}
    for tree in every_tree(simulation):
        law = Law(simulation, tree, nothing, q, qd)
        for other in others:
            drives, none, largest = law.residual(
                new[tree.dofs], lambda _, q, o=other: o.mass_matrix(q), lambda _, q, qd, o=other: o.bias_forces(q, qd)
            )
            # Rounding of two engines over 100 links: a few thousand roundings of the largest force.
            assert np.abs(drives - none).max(initial=0.0) < 1e-11 * max(1.0, largest)
