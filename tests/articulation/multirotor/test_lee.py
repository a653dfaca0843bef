"""Lee controllers ask for the wrench of their law, and errors decay as the gains say."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from newton_like.articulation.multirotor import (
    BodyDrag,
    GroundEffect,
    LeeAccelerationController,
    LeeAttitudeController,
    LeePositionController,
    LeeRateController,
    LeeVelocityController,
    Multirotor,
    MultirotorCfg,
    ThrusterCfg,
)
from newton_like.geometry.transforms import quat_to_matrix
from newton_like.kinematics import eval_fk
from newton_like.model.builder.builder import ModelBuilder
from newton_like.types import ModelFlags
from tests.support.multirotors import flock, fly, frame_vehicle, in_worlds, place

GRAVITY = np.array([0.0, 0.0, -9.81])


def vee(s: np.ndarray) -> np.ndarray:
    return np.array([s[2, 1], s[0, 2], s[1, 0]])


def poses(drone) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Positions of the roots, their rotations, velocities of the centres of mass and body rates."""
    q, v = drone.sim.state.body_q.numpy().astype(float), drone.sim.state.body_qd.numpy().astype(float)
    r = quat_to_matrix(q[:, 3:])
    return q[:, :3], r, v[:, :3], np.einsum("nji,nj->ni", r, v[:, 3:])


def ideal(settings) -> None:
    """Thrusters without lag, and with all the range that a test needs."""
    group = settings.actuators["rotors"]
    group.time_constant_up = group.time_constant_down = 0.0
    group.thrust_range = (-1e4, 1e4)


def tracking(r, w, moments, d, rate, gains):
    """The torque of the paper, per unit of inertia: `rate` is the desired angular velocity in the desired axes."""
    to = r.T @ d
    e_r, e_w = 0.5 * vee(d.T @ r - r.T @ d), w - to @ rate
    return moments @ (-gains[0] * e_r - gains[1] * e_w - np.cross(w, to @ rate)) + np.cross(w, moments @ w)


def looking(f: np.ndarray, heading: np.ndarray) -> np.ndarray:
    """The attitude with the third axis along f and the first one towards the heading."""
    z = f / np.linalg.norm(f)
    y = np.cross(z, heading)
    y /= np.linalg.norm(y)
    return np.stack([np.cross(y, z), y, z], axis=1)


def craft(rng, count: int = 24, **cfg):
    one, vehicle = frame_vehicle(rng, 6, **cfg)
    return in_worlds(one, vehicle, count, 0.004)


KINDS = {
    "position": (LeePositionController, 11),
    "velocity": (LeeVelocityController, 7),
    "acceleration": (LeeAccelerationController, 4),
    "attitude": (LeeAttitudeController, 8),
    "angles": (LeeAttitudeController, 4),
    "rates": (LeeRateController, 4),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_wrench_is_that_of_the_paper(rng, kind):
    """For random states, gains, inertias and commands."""
    drone = craft(rng)
    place(drone, rng)
    maker, size = KINDS[kind]
    gains = {name: rng.uniform(0.5, 5.0, (24, 3)) for name in ("position_gain", "velocity_gain", "attitude_gain", "rate_gain")}  # fmt: skip
    options = {**gains, "max_yaw_error": None}
    controller = maker(drone, **{name: options[name] for name in options if name in (*maker.uses, "rate_gain")})
    command = rng.normal(size=(24, size))
    if kind == "attitude":
        command[:, 1:5] /= np.linalg.norm(command[:, 1:5], axis=1)[:, None]
    wrench = controller.compute(command).numpy()
    masses = drone.rotors.masses
    mass, centre, moments = masses.total[0], masses.centre[0], masses.moments[0]
    for i, (x, r, v, w) in enumerate(zip(*poses(drone), strict=True)):
        kx, kv, kr, kw = (g[i] for g in gains.values())
        c, f = command[i], np.array([0.0, 0.0, command[i, 0]])
        heading, rate = np.array([r[0, 0], r[1, 0], 0.0]), np.zeros(3)
        d = r
        if kind in ("position", "velocity", "acceleration"):
            turn = c[3]
            a = c[:3]
            if kind == "position":
                a = c[7:10] - kx * (x + r @ centre - c[:3]) - kv * (v - c[4:7])
                heading, turn = np.array([np.cos(c[3]), np.sin(c[3]), 0.0]), c[10]
            if kind == "velocity":
                a = c[4:7] - kv * (v - c[:3])
            force = mass * (a - GRAVITY)
            d = looking(force, heading)
            rate = d.T @ np.array([0.0, 0.0, turn])
            f = np.array([0.0, 0.0, force @ r[:, 2]])
        if kind == "attitude":
            d, rate = quat_to_matrix(c[1:5]), c[5:]
        if kind == "angles":
            d = Rotation.from_euler("ZYX", [np.arctan2(heading[1], heading[0]), c[2], c[1]]).as_matrix()
            rate = d.T @ np.array([0.0, 0.0, c[3]])
        if kind == "rates":
            torque = moments @ (-kw * (w - c[1:])) + np.cross(w, moments @ w)
        else:
            torque = tracking(r, w, moments, d, rate, (kr, kw))
        expected = np.concatenate([f, torque])
        assert np.allclose(wrench[i], expected, rtol=2e-4, atol=2e-4 * np.abs(expected).max())


def test_small_errors_of_the_attitude_decay_as_the_gains_say(rng):
    """e'' + K_W e' + K_R e = 0, by the matrix exponential, for motors without lag."""
    drone = flock("iris", 6, dt=0.0005, cfg=ideal)
    place(drone, rng, speed=0.0, tilt=0.02)
    k_r, k_w = rng.uniform(20.0, 80.0, 3), rng.uniform(4.0, 20.0, 3)
    controller = drone.controller = LeeAttitudeController(drone, attitude_gain=k_r, rate_gain=k_w)
    controller.set_command([drone.rotors.masses.total[0] * 9.81, 0.0, 0.0, 0.0, 1.0])

    def errors():
        _, r, _, w = poses(drone)
        return np.stack([Rotation.from_matrix(r).as_rotvec(), w], axis=-1)

    start = errors()
    for _ in range(4):
        fly(drone, 100)
        now = errors()
        time = drone.sim.time
        for axis in range(3):
            flow = expm(time * np.array([[0.0, 1.0], [-k_r[axis], -k_w[axis]]]))
            scale = np.abs(start[:, axis]).max() * np.array([1.0, np.sqrt(k_r[axis])])
            assert np.all(np.abs(now[:, axis] - start[:, axis] @ flow.T) < 0.02 * scale)


def test_position_errors_decay_as_the_gains_say(rng):
    """The vertical and, for a fully actuated vehicle, all axes: e'' + K_v e' + K_x e = 0."""
    drone = flock("hexarotor", 5, dt=0.001, cfg=ideal)
    place(drone, rng, spread=0.3, speed=0.0, tilt=0.0)
    controller = drone.controller = LeePositionController(
        drone, position_gain=(4.0, 9.0, 6.0), velocity_gain=(3.0, 2.0, 5.0), fully_actuated=True
    )
    controller.set_command([0.0, 0.0, 0.0, 0.0])
    start = poses(drone)[0]
    fly(drone, 800)
    for axis, (kx, kv) in enumerate(((4.0, 3.0), (9.0, 2.0), (6.0, 5.0))):
        flow = expm(0.8 * np.array([[0.0, 1.0], [-kx, -kv]]))
        assert np.allclose(poses(drone)[0][:, axis], start[:, axis] * flow[0, 0], atol=0.01)
    assert np.abs(poses(drone)[3]).max() < 1e-2


@pytest.mark.parametrize("vehicle", ["crazyflie", "iris", "hexarotor"])
def test_vehicles_hold_their_place_and_hover_with_their_weight(rng, vehicle):
    """The vertical thrust is the weight; position and yaw are those of the command."""
    drone = flock(vehicle, 7)
    place(drone, rng, spread=0.4, speed=0.3, tilt=0.6)
    goal = np.concatenate([rng.normal(size=(7, 3)), rng.uniform(-3.0, 3.0, (7, 1))], axis=1)
    drone.controller = LeePositionController(drone, max_acceleration=4.0)
    drone.controller.set_command(goal)
    fly(drone, 2500)
    x, r, v, _ = poses(drone)
    assert np.abs(x + r @ drone.rotors.masses.centre[0] - goal[:, :3]).max() < 2e-3
    assert np.abs(v).max() < 2e-3
    yaw = np.arctan2(r[:, 1, 0], r[:, 0, 0])
    assert np.abs(np.angle(np.exp(1j * (yaw - goal[:, 3])))).max() < 5e-3
    wrench = drone.data.applied_thrust.numpy() @ drone.allocation_matrix.numpy().T
    assert np.allclose(wrench[:, 2], drone.rotors.masses.total[0] * 9.81, rtol=1e-3)
    assert np.allclose(drone.sim.state.body_f.numpy()[:, 2], drone.rotors.masses.total[0] * 9.81, rtol=1e-3)


def test_velocities_accelerations_and_rates_follow_their_commands(rng):
    drone = flock("iris", 4)
    velocity = np.concatenate([rng.uniform(-1.0, 1.0, (4, 3)), rng.uniform(-0.5, 0.5, (4, 1))], axis=1)
    drone.controller = LeeVelocityController(drone)
    drone.controller.set_command(velocity)
    fly(drone, 1500)
    _, _, v, w = poses(drone)
    assert np.abs(v - velocity[:, :3]).max() < 0.02
    assert np.abs(w[:, 2] - velocity[:, 3]).max() < 0.02
    drone.controller = LeeAccelerationController(drone)
    drone.controller.set_command(np.concatenate([0.5 * velocity[:, :3], np.zeros((4, 1))], axis=1))
    fly(drone, 300)
    before = poses(drone)[2]
    fly(drone, 50)
    assert np.abs((poses(drone)[2] - before) / 0.2 - 0.5 * velocity[:, :3]).max() < 0.02
    drone.controller = LeeRateController(drone)
    rates = rng.uniform(-0.6, 0.6, (4, 3))
    drone.controller.set_command(np.concatenate([np.full((4, 1), 14.0), rates], axis=1))
    fly(drone, 900)
    assert np.abs(poses(drone)[3] - rates).max() < 0.02


def test_a_trajectory_with_its_velocity_and_acceleration_is_followed(rng):
    """A circle; without lag of the motors and with fast attitude gains, errors are those of the attitude alone."""
    drone = flock("iris", 3, dt=0.002, cfg=ideal)
    drone.controller = controller = LeePositionController(drone, attitude_gain=900.0, rate_gain=60.0)
    radius, rate = rng.uniform(0.5, 1.0, 3), rng.uniform(0.6, 1.2, 3)

    def command(t):
        c, s, z = np.cos(rate * t), np.sin(rate * t), np.zeros(3)
        x = [radius * c, radius * s, z]
        v = [-radius * rate * s, radius * rate * c, z]
        a = [-radius * rate**2 * c, -radius * rate**2 * s, z]
        return np.stack([*x, z, *v, *a], axis=1)

    for i in range(3000):
        controller.set_command(command(0.002 * i))
        fly(drone, 1)
    assert np.abs(poses(drone)[0] - command(0.002 * 3000)[:, :3]).max() < 0.05


@pytest.mark.parametrize("kind", ["position", "velocity"])
def test_the_tilt_and_the_acceleration_of_errors_stay_within_their_limits(rng, kind):
    """The commanded acceleration is added in full, though it is larger than the limit."""
    drone = craft(rng)
    place(drone, rng, spread=50.0, speed=5.0)
    limit, position = 0.4, kind == "position"
    feed = 5.0 * rng.normal(size=(24, 3))
    command = np.zeros((24, 10 if position else 7))
    command[:, -3:] = feed
    wrench = {}
    for tilt in (limit, None):
        options = {"max_acceleration": 3.0, "max_tilt": tilt, "attitude_gain": 1.0, "rate_gain": 0.0}
        if position:
            controller = LeePositionController(drone, max_yaw_error=None, **options)
        else:
            controller = LeeVelocityController(drone, **options)
        wrench[tilt] = controller.compute(command).numpy().copy()
    mass, centre = drone.rotors.masses.total[0], drone.rotors.masses.centre[0]
    moments = drone.rotors.masses.moments[0]
    for i, (x, r, v, w) in enumerate(zip(*poses(drone), strict=True)):
        a = -3.0 * v - (4.0 * (x + r @ centre) if position else 0.0)
        a *= min(1.0, 3.0 / np.linalg.norm(a))
        f = mass * (feed[i] + a - GRAVITY)
        heading = np.array([1.0, 0.0, 0.0] if position else [r[0, 0], r[1, 0], 0.0])
        for tilt in (limit, None):
            g = f.copy()
            if tilt:
                g[2] = max(g[2], 0.5 * mass)
                g[:2] *= min(1.0, np.tan(tilt) * g[2] / np.linalg.norm(g[:2]))
                assert np.arccos(g[2] / np.linalg.norm(g)) < tilt + 1e-6
            torque = tracking(r, w, moments, looking(g, heading), np.zeros(3), (1.0, 0.0))
            expected = np.concatenate([[0.0, 0.0, g @ r[:, 2]], torque])
            assert np.allclose(wrench[tilt][i], expected, atol=3e-4 * max(1.0, np.abs(expected).max()))


def test_the_yaw_turns_to_its_goal_no_farther_than_the_largest_error(rng):
    """Level vehicles at their places: the torque is that of the limited error."""
    drone = craft(rng)
    place(drone, rng, spread=0.0, speed=0.0, tilt=0.0)
    controller = LeePositionController(drone, position_gain=0.0, attitude_gain=1.0, max_yaw_error=0.7)
    yaw = rng.uniform(-3.1, 3.1, 24)
    command = np.zeros((24, 4))
    command[:, 3] = yaw
    expected = np.sin(np.clip(yaw, -0.7, 0.7))[:, None] * drone.rotors.masses.moments[0][:, 2]
    assert np.allclose(controller.compute(command).numpy()[:, 3:], expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["position", "velocity"])
def test_vehicles_of_several_bodies_are_controlled_at_their_common_centre_of_mass(rng, kind):
    """The force is that of the law for the mean velocity of all mass, while joints are at rest in the initial configuration."""
    one = ModelBuilder()
    root, arm = (
        one.add_link(mass=mass, com=0.2 * rng.normal(size=3), inertia=0.05 * np.eye(3), label=label)
        for label, mass in (("root", 1.0), ("arm", 0.6))
    )
    free, middle = one.add_joint_free(root), (*rng.normal(size=3), 0.0, 0.0, 0.0, 1.0)
    hinge = one.add_joint_revolute(root, arm, axis=(0, 0, 1), parent_xform=middle)
    one.add_articulation([free, hinge], label="craft")
    quats = Rotation.random(6, random_state=int(rng.integers(2**31))).as_quat()
    one.frames.extend([f"rotor_{i}" for i in range(6)], [root] * 6, np.concatenate([rng.normal(size=(6, 3)), quats], axis=1))  # fmt: skip
    group = ThrusterCfg("rotor_.*", (-100.0, 100.0), 1.0e-3)
    drone = in_worlds(one, MultirotorCfg({"rotors": group}), 8, 0.004)
    place(drone, rng)
    state = drone.sim.state
    state.joint_qd.numpy().reshape(8, -1)[:, 6:] = 0.0
    eval_fk(drone.model, state.joint_q, state.joint_qd, state)
    q, qd = (a.numpy().astype(float).reshape(8, 2, -1) for a in (state.body_q, state.body_qd))
    share = np.array([1.0, 0.6])[:, None] / 1.6
    coms = drone.model.body_com.numpy().astype(float).reshape(8, 2, 3)
    r = quat_to_matrix(q[..., 3:])
    x = (share * (q[..., :3] + np.einsum("nbij,nbj->nbi", r, coms))).sum(axis=1)
    v = (share * qd[..., :3]).sum(axis=1)
    command = rng.normal(size=(8, 7))
    if kind == "position":
        controller = LeePositionController(drone, fully_actuated=True)
        a = -4.0 * (x - command[:, :3]) - 3.0 * (v - command[:, 4:])
    else:
        controller = LeeVelocityController(drone, fully_actuated=True)
        a = command[:, 4:] - 3.0 * (v - command[:, :3])
    force = np.einsum("nji,nj->ni", r[:, 0], 1.6 * (a - GRAVITY))
    assert np.abs(v - qd[:, 0, :3]).max() > 0.01
    assert np.allclose(controller.compute(command).numpy()[:, :3], force, atol=2e-4 * np.abs(force).max())


def test_worlds_of_a_block_do_not_change_each_other(rng):
    """One world gets another command and other gains; the others keep every bit."""
    ends = []
    gain = np.full((16, 3), 100.0)
    for other in (False, True):
        drone = flock("iris", 16)
        command, gains = np.zeros((16, 4)), gain.copy()
        if other:
            command[7], gains[7] = 3.0, 50.0
        drone.controller = LeePositionController(drone, attitude_gain=gains, allocation="bounded")
        drone.controller.set_command(command)
        fly(drone, 20)
        ends.append(drone.sim.state.body_q.numpy().copy())
    rest = np.arange(16) != 7
    assert np.array_equal(ends[0][rest], ends[1][rest])
    assert not np.array_equal(ends[0][7], ends[1][7])


def test_bounded_allocation_saves_vehicles_that_start_upside_down(rng):
    """With the torques of roll and pitch first; the pseudo-inverse loses them to the yaw."""
    drone = flock("iris", 16)
    place(drone, rng, spread=0.2, speed=0.2)
    drone.controller = LeePositionController(
        drone, allocation="bounded", weights=(1, 1, 1, 10, 10, 1), max_acceleration=4.0, max_tilt=1.0
    )
    drone.controller.set_command([0.0, 0.0, 0.0, 0.0])
    fly(drone, 3000)
    assert (poses(drone)[1][:, 2, 2] > 0.8).all()


def test_commands_of_chosen_worlds(rng):
    drone = flock("iris", 5)
    controller = LeePositionController(drone)
    whole = rng.normal(size=(5, 4)).astype(np.float32)
    controller.set_command(whole)
    controller.set_command(np.ones((2, 4)), env_ids=[1, 3])
    whole[[1, 3]] = 1.0
    assert np.array_equal(controller.command.numpy(), whole)
    controller.command = whole[::-1]
    assert np.array_equal(controller.command.numpy(), whole[::-1])
    with pytest.raises(ValueError, match="a command has 4 or 7"):
        controller.command = 3.0


@pytest.mark.parametrize("name", ["position_gain", "position_gian", "weights", "allocation", "fully_actuated"])
def test_gains_and_options_that_are_set_afterwards_are_refused(name):
    """They had no effect."""
    controller = LeePositionController(flock("iris", 1))
    with pytest.raises(AttributeError, match=f"'{name}' of a LeePositionController cannot be set.*make another"):
        setattr(controller, name, 1.0)
    assert not hasattr(controller, name)
    controller.note = "free"


def test_gravity_of_each_world_is_carried(rng):
    """An edit of the model reaches the controller."""
    drone = flock("iris", 3)
    drone.controller = LeePositionController(drone)
    drone.controller.set_command(np.zeros(4))
    drone.model.set_gravity(-1.62, world=1)
    fly(drone, 1500)
    thrust = drone.data.applied_thrust.numpy().sum(axis=1)
    assert np.allclose(thrust, drone.rotors.masses.total[0] * np.array([9.81, 1.62, 9.81]), rtol=1e-3)


def test_a_load_in_some_worlds_is_carried(rng):
    """After a notice of the edited masses."""
    drone = flock("iris", 3)
    drone.controller = LeePositionController(drone)
    drone.controller.set_command(np.zeros(4))
    fly(drone, 10)
    drone.model.body_mass.numpy()[2] *= 1.3
    drone.sim.solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    fly(drone, 1500)
    thrust = drone.data.applied_thrust.numpy().sum(axis=1)
    assert np.allclose(thrust, 1.52 * 9.81 * np.array([1.0, 1.0, 1.3]), rtol=1e-3)
    assert np.abs(poses(drone)[0][:, 2]).max() < 2e-3


def test_bad_commands_and_gains_are_refused_by_name(rng):
    drone = flock("iris", 3)
    with pytest.raises(ValueError, match=r"attitude_gain.*\(3, 3\)"):
        LeePositionController(drone, attitude_gain=(1.0, 2.0))
    with pytest.raises(ValueError, match=r"rate_gain\b"):
        LeePositionController(drone, rate_gain=-1.0)
    with pytest.raises(ValueError, match=r"max_tilt 2\b"):
        LeePositionController(drone, max_tilt=2.0)
    with pytest.raises(ValueError, match=r"max_acceleration.*\b0\b"):
        LeePositionController(drone, max_acceleration=0.0)
    with pytest.raises(ValueError, match=r"allocation.*'best'"):
        LeePositionController(drone, allocation="best")
    controller = LeePositionController(drone)
    with pytest.raises(ValueError, match="set_command"):
        controller.compute()
    with pytest.raises(ValueError, match=r"command.*4 or 7 or 10 or 11.*\(3, 5\)"):
        controller.set_command(np.zeros((3, 5)))
    with pytest.raises(ValueError, match=r"command.*finite"):
        controller.set_command([np.nan, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"command.*\b4\b.*worlds"):
        controller.set_command(np.zeros(4), env_ids=[0])
    controller.set_command(np.zeros(4))
    with pytest.raises(ValueError, match=r"quaternion \[0.0, 0.0, 0.0, 0.0\].*command 1\b"):
        LeeAttitudeController(drone).set_command([[9.0, 0, 0, 0, 1], [9.0, 0, 0, 0, 0], [9.0, 0, 0, 0, 1]])
    with pytest.raises(IndexError, match=r"\b3\b"):
        controller.set_command(np.zeros(4), env_ids=[3])


@pytest.mark.parametrize("maker", dict.fromkeys(maker for maker, _ in KINDS.values()))
def test_arguments_without_effect_are_refused_by_name(maker):
    """All other arguments change the wrench."""
    drone = flock("hexarotor", 3)
    place(drone, np.random.default_rng(5), spread=3.0, speed=3.0)
    size = next(n for m, n in KINDS.values() if m is maker)
    command = np.random.default_rng(6).normal(size=(3, size))
    if size == 8:
        command[:, 1:5] /= np.linalg.norm(command[:, 1:5], axis=1)[:, None]
    plain = maker(drone).compute(command).numpy().copy()
    values = {"max_acceleration": 0.1, "max_tilt": 0.01, "max_yaw_error": 0.01, "fully_actuated": True}
    for name in ("position_gain", "velocity_gain", "attitude_gain", "rate_gain", *values):
        options = {name: values.get(name, 0.5)}
        if name in (*maker.uses, "rate_gain"):
            assert not np.allclose(maker(drone, **options).compute(command).numpy(), plain), name
        else:
            with pytest.raises(TypeError, match=f"{maker.__name__}.*{name}"):
                maker(drone, **options)


def test_the_largest_tilt_needs_a_thrust_along_one_axis():
    with pytest.raises(ValueError, match=r"LeePositionController.*max_tilt.*fully_actuated=True"):
        LeePositionController(flock("hexarotor", 1), max_tilt=0.5, fully_actuated=True)


@pytest.mark.slow
@pytest.mark.parametrize("vehicle", ["iris", "hexarotor"])
def test_specialised_code_gives_the_bits_of_the_general_kernel(rng, vehicle):
    """In flight with drag, rotor drag, ground effect and rotor inertia, parameters that are edited, and worlds that differ."""

    def air(settings):
        settings.drag, settings.ground_effect = BodyDrag(0.1, 0.05, 0.01, 0.01), GroundEffect(-1.0)
        settings.actuators["rotors"].rotor_drag = 1e-4
        settings.actuators["rotors"].rotor_inertia = 4e-5

    ends, seed = [], rng.integers(2**31)
    for evaluator in ("general", "specialised"):
        own = np.random.default_rng(seed)
        drone = flock(vehicle, 21, cfg=air)
        drone = Multirotor(drone.sim, "*", drone.rotors.cfg, evaluator=evaluator)
        place(drone, own, spread=0.3, tilt=0.5)
        drone.set_wind(own.normal(size=(21, 3)))
        found = []
        for maker, size in ((LeePositionController, 4), (LeeVelocityController, 4), (LeeRateController, 4)):
            options = {"max_tilt": 0.7, "max_acceleration": 5.0}
            drone.controller = maker(drone, **(options if maker is not LeeRateController else {}))
            drone.controller.set_command(own.normal(size=(21, size)))
            fly(drone, 5)
            drone.set_thruster_parameter("thrust_constant", own.uniform(3e-4, 4e-4, (2, 1)), env_ids=[3, 8])
            drone.set_thruster_parameter("efficiency", 0.0, thruster_ids=[0], env_ids=[5])
            fly(drone, 5)
            found += [drone.sim.state.body_q.numpy().copy(), drone.data.applied_thrust.numpy().copy()]
        drone.controller = None
        drone.set_thrust_target(own.uniform(0.0, 6.0, (21, drone.num_thrusters)))
        fly(drone, 5)
        ends.append([*found, drone.sim.state.body_q.numpy().copy(), drone.data.thruster_state.numpy().copy()])
    for general, specialised in zip(*ends, strict=True):
        assert np.array_equal(general, specialised)
