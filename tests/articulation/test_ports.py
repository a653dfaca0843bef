"""Two environments of learners, written with the names and shapes that they know: velocity tracking of a quadruped, and a quadcopter that
flies to goals. Observations, rewards, terminations and resets are compared with those of the arrays of the simulation, in double precision,
and the motion with the laws of motors and bodies."""

from typing import NamedTuple

import numpy as np
import pytest

import newton_like as nl
from newton_like import assets
from newton_like.articulation import Articulation, ImplicitActuatorCfg, SimulationContext
from newton_like.articulation.multirotor import Multirotor, add_vehicle
from tests.articulation.robots import rotation

WORLDS, DT = 32, 1 / 200
STANCE = np.array([0.0, 0.8, -1.6] * 4)
STIFFNESS, DAMPING = 60.0, 2.0


class Environment:
    """What both environments share: the loop of a step and the end of episodes."""

    decimation, max_episode_length = 1, 15

    def __init__(self, rng):
        self.rng = rng
        self._robot = self._make_robot()
        self.sim = self._robot.sim
        self.step_dt = self.sim.step_dt
        self.episode_length_buf = np.zeros(WORLDS, dtype=int)
        self._reset_idx(np.arange(WORLDS))

    def _reset_idx(self, env_ids):
        robot, d = self._robot, self._robot.data.numpy
        robot.reset(env_ids)
        self.episode_length_buf[env_ids] = self.rng.integers(0, 10, len(env_ids))
        root_state, joint_pos = d.default_root_state[env_ids], d.default_joint_pos[env_ids]
        root_state[:, :2] += self.rng.uniform(-0.5, 0.5, (len(env_ids), 2))
        root_state[:, 7:] += self.rng.uniform(-0.5, 0.5, (len(env_ids), 6))
        joint_pos = joint_pos * self.rng.uniform(0.9, 1.1, joint_pos.shape)
        robot.write_root_pose_to_sim(root_state[:, :7], env_ids)
        robot.write_root_velocity_to_sim(root_state[:, 7:], env_ids)
        robot.write_joint_state_to_sim(joint_pos, d.default_joint_vel[env_ids], None, env_ids)
        self.written = env_ids, root_state, joint_pos

    def step(self, actions, look=lambda: None):
        """A step of the environment; ``look`` is called before and after each physics step."""
        self._pre_physics_step(actions.copy())
        for _ in range(self.decimation):
            self._apply_action()
            self._robot.write_data_to_sim()
            look()
            self.sim.step()
            self._robot.update(DT)
            look()
        self.episode_length_buf += 1
        died, time_out = self._get_dones(), self.episode_length_buf >= self.max_episode_length
        reward = self._get_rewards()
        env_ids = (died | time_out).nonzero()[0]
        if len(env_ids):
            self._reset_idx(env_ids)
        return self._get_observations(), reward, died, time_out


class Numbers(NamedTuple):
    """Numbers of the simulation, in double precision: position and rotation of the root, velocities of its centre of mass, joints."""

    place: np.ndarray
    turn: np.ndarray
    lin: np.ndarray
    ang: np.ndarray
    q: np.ndarray
    qd: np.ndarray

    def back(self, vectors) -> np.ndarray:
        """Vectors of the world in axes of the root."""
        return np.einsum("nji,nj->ni", self.turn, np.broadcast_to(vectors, (WORLDS, 3)))


def numbers_of(env) -> Numbers:
    env.sim.forward()
    names = ("body_q", "body_qd", "joint_q", "joint_qd")
    pose, v, q, qd = (getattr(env.sim.state, name).numpy().astype(float).reshape(WORLDS, -1) for name in names)
    return Numbers(pose[:, :3], rotation(pose[:, 3:7]), v[:, :3], v[:, 3:6], q[:, 7:], qd[:, 6:])


class Run:
    """Takes steps of an environment, and keeps what is to be compared.

    Attributes:
        before, after: numbers before and after the last physics step.
        resets: counts of worlds that died, and whose time was out.
    """

    def __init__(self, env, check=lambda: None):
        self.env, self.check, self.resets, self._seen = env, check, np.zeros(2, dtype=int), []

    def _look(self):
        self._seen.append(numbers_of(self.env))
        if len(self._seen) == 2:
            (self.before, self.after), self._seen = self._seen, []
            # positions move with the mean of the velocities before and after the step
            for place, speed in (("place", "lin"), ("q", "qd")):
                moved = getattr(self.after, place) - getattr(self.before, place)
                mean = 0.5 * (getattr(self.before, speed) + getattr(self.after, speed))
                np.testing.assert_allclose(moved, DT * mean, atol=2e-6)
            self.check()

    def step(self, actions, dies) -> tuple[np.ndarray, np.ndarray]:
        """A step, of which the ends of episodes and the resets are compared; returns observations and rewards."""
        env, length = self.env, self.env.episode_length_buf + 1
        observation, reward, died, time_out = env.step(actions, self._look)
        np.testing.assert_array_equal(died, dies(self.after))
        np.testing.assert_array_equal(time_out, length >= env.max_episode_length)
        self.resets += died.sum(), time_out.sum()
        done, now = died | time_out, numbers_of(env)
        np.testing.assert_array_equal(env.episode_length_buf[~done], length[~done])
        for kept, found in zip(self.after, now, strict=True):
            np.testing.assert_array_equal(found[~done], kept[~done])
        if done.any():
            env_ids, root_state, joint_pos = env.written
            np.testing.assert_array_equal(env_ids, np.flatnonzero(done))
            np.testing.assert_allclose(now.place[done], root_state[:, :3], atol=1e-6)
            np.testing.assert_allclose(now.turn[done], rotation(root_state[:, 3:7]), atol=1e-6)
            np.testing.assert_allclose(now.q[done], joint_pos, rtol=1e-6)
            np.testing.assert_allclose(np.hstack([now.lin, now.ang])[done], root_state[:, 7:], atol=1e-6)
            assert not now.qd[done].any()
        return observation, reward


class VelocityTracking(Environment):
    """Joint positions about the default pose as actions; rewards for the commanded velocity of the root."""

    decimation, action_scale = 4, 0.25

    def _make_robot(self):
        dog = nl.ModelBuilder()
        dog.default_joint_cfg.armature = 0.005
        path = assets.path("quadruped.urdf")
        dog.add_urdf(path, xform=(0, 0, 0.3, 0, 0, 0, 1), floating=True, collapse_fixed_joints=True)
        dog.joint_q[7:] = STANCE
        scene = nl.ModelBuilder()
        scene.add_ground_plane()
        scene.replicate(dog, WORLDS)
        sim = SimulationContext(scene.finalize("cpu"), dt=DT, decimation=self.decimation, evaluator="general")
        legs = ImplicitActuatorCfg(".*", stiffness=STIFFNESS, damping=DAMPING)
        self._actions, self._previous_actions = np.zeros((2, WORLDS, 12))
        self._commands = np.zeros((WORLDS, 3))
        return Articulation(sim, "quadruped", actuators={"legs": legs})

    def _reset_idx(self, env_ids):
        super()._reset_idx(env_ids)
        self._actions[env_ids] = self._previous_actions[env_ids] = 0.0
        self._commands[env_ids] = self.rng.uniform(-1.0, 1.0, (len(env_ids), 3))

    def _pre_physics_step(self, actions):
        self._previous_actions, self._actions = self._actions, actions
        self._processed_actions = self.action_scale * actions + self._robot.data.numpy.default_joint_pos

    def _apply_action(self):
        self._robot.set_joint_position_target(self._processed_actions)

    def _get_observations(self):
        d = self._robot.data.numpy
        root = d.root_lin_vel_b, d.root_ang_vel_b, d.projected_gravity_b, self._commands
        return np.concatenate([*root, d.joint_pos - d.default_joint_pos, d.joint_vel, self._actions], axis=-1)

    def _get_rewards(self):
        d = self._robot.data.numpy
        lin = np.sum(np.square(self._commands[:, :2] - d.root_lin_vel_b[:, :2]), axis=1)
        yaw = np.square(self._commands[:, 2] - d.root_ang_vel_b[:, 2])
        terms = {
            "track_lin_vel_xy_exp": np.exp(-lin / 0.25),
            "track_ang_vel_z_exp": 0.5 * np.exp(-yaw / 0.25),
            "lin_vel_z_l2": -2.0 * np.square(d.root_lin_vel_b[:, 2]),
            "ang_vel_xy_l2": -0.05 * np.sum(np.square(d.root_ang_vel_b[:, :2]), axis=1),
            "dof_torques_l2": -2.5e-4 * np.sum(np.square(d.applied_torque), axis=1),
            "dof_acc_l2": -2.5e-7 * np.sum(np.square(d.joint_acc), axis=1),
            "action_rate_l2": -0.01 * np.sum(np.square(self._actions - self._previous_actions), axis=1),
            "flat_orientation_l2": -5.0 * np.sum(np.square(d.projected_gravity_b[:, :2]), axis=1),
        }
        return sum(terms.values()) * self.step_dt

    def _get_dones(self):
        return self._robot.data.numpy.projected_gravity_b[:, 2] > -0.5


def track(rng, steps: int, max_episode_length: int) -> np.ndarray:
    """Runs and compares quadrupeds; returns the counts of resets."""
    env = VelocityTracking(rng)
    env.max_episode_length = max_episode_length
    d, limited = env._robot.data.numpy, []

    def check():
        before, after = run.before, run.after
        run.acceleration = (after.qd - before.qd) / DT
        np.testing.assert_allclose(d.joint_acc, run.acceleration, rtol=1e-5, atol=5e-3)
        torque = STIFFNESS * (STANCE + env.action_scale * env._actions - before.q) - DAMPING * before.qd
        run.torque = np.clip(torque, -d.joint_effort_limits, d.joint_effort_limits)
        limited.append((run.torque != torque).mean())
        np.testing.assert_allclose(d.computed_torque, torque, rtol=1e-5, atol=2e-4)
        np.testing.assert_allclose(d.applied_torque, run.torque, rtol=1e-5, atol=2e-4)

    run = Run(env, check)
    tipped = [0.84, 0.0, 0.0, 0.54]
    env._robot.write_root_pose_to_sim([0.0, 0.0, 0.5, *tipped], rng.choice(WORLDS, 4, replace=False))
    for _ in range(steps):
        actions = rng.normal(size=(WORLDS, 12)) * rng.choice([0.4, 4.0], (WORLDS, 1), p=[0.9, 0.1])
        previous, commands = env._actions.copy(), env._commands.copy()
        observation, reward = run.step(actions, lambda now: now.back([0.0, 0.0, -1.0])[:, 2] > -0.5)
        now = run.after
        v, w, down = (now.back(x) for x in (now.lin, now.ang, [0.0, 0.0, -1.0]))
        missed = (commands - np.hstack([v[:, :2], w[:, 2:]])) ** 2
        wanted = np.exp(-4.0 * missed[:, :2].sum(axis=1)) + 0.5 * np.exp(-4.0 * missed[:, 2]) - 2.0 * v[:, 2] ** 2
        for factor, x in (
            (0.05, w[:, :2]),
            (2.5e-4, run.torque),
            (2.5e-7, run.acceleration),
            (0.01, actions - previous),
            (5.0, down[:, :2]),
        ):
            wanted -= factor * (x**2).sum(axis=1)
        np.testing.assert_allclose(reward, wanted * 4 * DT, rtol=1e-4, atol=1e-5)
        now, started = numbers_of(env), (env._actions == 0.0).all(axis=1)
        actions[started] = 0.0
        parts = now.lin, now.ang, [0.0, 0.0, -1.0], env._commands, now.q - STANCE, now.qd, actions
        wanted = np.hstack([*(now.back(x) for x in parts[:3]), *parts[3:]])
        np.testing.assert_allclose(observation, wanted, rtol=1e-5, atol=5e-6)
        assert (env._commands != commands).any(axis=1).tolist() == started.tolist()
    assert 0.001 < np.mean(limited) < 0.9
    return run.resets


@pytest.mark.slow
def test_velocity_tracking_of_quadrupeds(rng):
    assert (track(rng, 10, 15) > 0).all()


@pytest.mark.slow
def test_velocity_tracking_of_quadrupeds_for_long(rng):
    assert (track(rng, 120, 40) > [4, WORLDS]).all()


class GoalReaching(Environment):
    """Actions are a thrust and a moment on the body; rewards for being near to a goal."""

    thrust_to_weight, moment_scale, low, high = 1.9, 2e-4, 0.98, 1.02

    def _make_robot(self):
        one = nl.ModelBuilder()
        self._settings = add_vehicle(one, "crazyflie", xform=(0, 0, 1, 0, 0, 0, 1))
        scene = nl.ModelBuilder()
        scene.replicate(one, WORLDS)
        sim = SimulationContext(scene.finalize("cpu"), dt=DT, evaluator="general")
        self._desired_pos_w = np.zeros((WORLDS, 3))
        return self._asset(sim)

    def _asset(self, sim):
        robot = Articulation(sim, "crazyflie")
        self._body_id = robot.find_bodies("base_link")[0]
        self._weight = robot.data.numpy.default_mass[0].sum() * 9.81
        self._thrust, self._moment = np.zeros((2, WORLDS, 1, 3))
        return robot

    def _reset_idx(self, env_ids):
        super()._reset_idx(env_ids)
        self._desired_pos_w[env_ids] = self.rng.uniform([-2.0, -2.0, 0.5], [2.0, 2.0, 1.5], (len(env_ids), 3))

    def _pre_physics_step(self, actions):
        actions = np.clip(actions, -1.0, 1.0)
        self._thrust[:, 0, 2] = self.thrust_to_weight * self._weight * (actions[:, 0] + 1.0) / 2.0
        self._moment[:, 0] = self.moment_scale * actions[:, 1:]

    def _apply_action(self):
        self._robot.set_external_force_and_torque(self._thrust, self._moment, body_ids=self._body_id)

    def _get_observations(self):
        d = self._robot.data.numpy
        goal_b = np.einsum("nji,nj->ni", rotation(d.root_quat_w), self._desired_pos_w - d.root_pos_w)
        return np.concatenate([d.root_lin_vel_b, d.root_ang_vel_b, d.projected_gravity_b, goal_b], axis=-1)

    def _get_rewards(self):
        d = self._robot.data.numpy
        distance = np.linalg.norm(self._desired_pos_w - d.root_pos_w, axis=1)
        speed, spin = np.sum(np.square(d.root_lin_vel_b), axis=1), np.sum(np.square(d.root_ang_vel_b), axis=1)
        return self.step_dt * (15.0 * (1.0 - np.tanh(distance / 0.8)) - 0.05 * speed - 0.01 * spin)

    def _get_dones(self):
        z = self._robot.data.numpy.root_pos_w[:, 2]
        return (z < self.low) | (z > self.high)


class GoalReachingByThrusters(GoalReaching):
    """The same with a thrust of each rotor as action."""

    def _asset(self, sim):
        robot = Multirotor(sim, "crazyflie", self._settings)
        self._weight = robot.data.numpy.default_mass[0].sum() * 9.81
        return robot

    def _pre_physics_step(self, actions):
        self._thrusts = self.thrust_to_weight * self._weight / 4.0 * (np.clip(actions, -1.0, 1.0) + 1.0) / 2.0

    def _apply_action(self):
        self._robot.set_thrust_target(self._thrusts)


MASS, INERTIA = 0.027, np.array([1.4e-5, 1.4e-5, 2.17e-5])
ROTORS = 0.028 * np.array([[1.0, -1.0], [-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
SPINS = np.array([1.0, -1.0, 1.0, -1.0])


def wrenches(run, actions, speeds) -> tuple[np.ndarray, np.ndarray]:
    """Lifts and moments of the next step, from the numbers of the vehicle. Motors of thrusters are first-order lags of 0.03 s; their speeds
    [rev/s], whose squares are 3600 times 3.16e-10 N, are updated in place."""
    weight = MASS * 9.81
    actions = np.clip(actions, -1.0, 1.0)
    if not isinstance(run.env, GoalReachingByThrusters):
        return 1.9 * weight * (actions[:, 0] + 1.0) / 2.0, 2e-4 * actions[:, 1:]
    thrusts, constant = 1.9 * weight / 4.0 * (actions + 1.0) / 2.0, 3600.0 * 3.16e-10
    goal = np.sqrt(thrusts / constant)
    speeds += (goal - speeds) * (1.0 - np.exp(-DT / 0.03))
    thrusts = constant * speeds**2
    # r x f, and the torque of drag against the spin
    moments = thrusts @ np.column_stack([ROTORS[:, 1], -ROTORS[:, 0], -SPINS * 7.94e-12 / 3.16e-10])
    return thrusts.sum(axis=1), moments


def fly(env, rng, steps: int) -> np.ndarray:
    """Flies, compares each step with the laws of Newton and Euler, and returns the counts of resets."""
    run, speeds = Run(env), np.full((WORLDS, 4), 240.0)
    for _ in range(steps):
        actions = rng.uniform(-1.5, 1.5, (WORLDS, 4)) * rng.choice([0.2, 1.0], (WORLDS, 1)) + 0.1
        lift, moment = wrenches(run, actions, speeds)
        goals = env._desired_pos_w.copy()
        observation, reward = run.step(actions, lambda now: (now.place[:, 2] < env.low) | (now.place[:, 2] > env.high))
        before, after = run.before, run.after
        force = before.turn[:, :, 2] * lift[:, None] + [0.0, 0.0, -MASS * 9.81]
        np.testing.assert_allclose(after.lin, before.lin + DT * force / MASS, atol=2e-6)
        spin = before.back(before.ang)
        change = DT * (moment - np.cross(spin, INERTIA * spin)) / INERTIA
        error = after.ang - np.einsum("nij,nj->ni", before.turn, spin + change)
        error, speed, change = (np.linalg.norm(x, axis=1) for x in (error, spin, change))
        # of second order in the time step
        assert (error < DT * (speed + change) * change + 1e-5).all()
        away = np.linalg.norm(goals - after.place, axis=1)
        wanted = (
            15.0 * (1.0 - np.tanh(away / 0.8)) - 0.05 * (after.lin**2).sum(axis=1) - 0.01 * (after.ang**2).sum(axis=1)
        )
        np.testing.assert_allclose(reward, DT * wanted, rtol=1e-5, atol=1e-7)
        now = numbers_of(env)
        parts = now.lin, now.ang, [0.0, 0.0, -1.0], env._desired_pos_w - now.place
        np.testing.assert_allclose(observation, np.hstack([now.back(x) for x in parts]), atol=5e-6)
        started = (env._desired_pos_w != goals).any(axis=1)
        np.testing.assert_array_equal(now.place[started, 2], 1.0)
        speeds[started] = 240.0
    return run.resets


@pytest.mark.slow
@pytest.mark.parametrize("kind", [GoalReaching, GoalReachingByThrusters])
def test_goals_of_quadcopters(rng, kind):
    assert (fly(kind(rng), rng, 20) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [GoalReaching, GoalReachingByThrusters])
def test_goals_of_quadcopters_for_long(rng, kind):
    assert (fly(kind(rng), rng, 300) > WORLDS).all()
