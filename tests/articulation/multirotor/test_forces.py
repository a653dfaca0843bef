"""Forces of thrusters and of the air act on bodies as their formulas say, and together with all others."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like.articulation import SimulationContext
from newton_like.articulation.multirotor import (
    BodyDrag,
    GroundEffect,
    LeePositionController,
    Multirotor,
    MultirotorCfg,
    ThrusterCfg,
    add_vehicle,
)
from newton_like.dynamics import mechanical_energy
from newton_like.geometry.transforms import quat_rotate, quat_to_matrix
from tests.support.multirotors import NO_LAG, flock, fly, frame_vehicle, in_worlds, place

mujoco = pytest.importorskip("mujoco")


def off(settings) -> None:
    """No thrust at all."""
    settings.rps = 0.0


def forces(drone) -> np.ndarray:
    drone.write_data_to_sim()
    return drone.sim.state.body_f.numpy().astype(float)


def test_without_thrust_energy_and_momentum_are_kept(rng):
    """Free fall of tumbling vehicles: nothing of the multirotor acts."""
    drone = flock("iris", 6, dt=0.001, cfg=off)
    drone.set_thrust_target(0.0)
    place(drone, rng, speed=2.0)
    model, state = drone.model, drone.sim.state
    before = mechanical_energy(model, state).numpy().copy()
    v, q = state.body_qd.numpy().copy(), state.body_q.numpy().astype(float)
    moments = drone.rotors.masses.moments[0]

    def spin(q, v):
        r = quat_to_matrix(q[:, 3:])
        return np.einsum("nij,jk,nlk,nl->ni", r, moments, r, v[:, 3:])

    start = spin(q, v)
    fly(drone, 500)
    after, end = state.body_qd.numpy(), state.body_q.numpy().astype(float)
    assert np.array_equal(state.body_f.numpy(), np.zeros((6, 6)))
    assert np.allclose(mechanical_energy(model, state).numpy(), before, atol=2e-4 * np.abs(before).max())
    assert np.allclose(after[:, :3], v[:, :3] + [0.0, 0.0, -9.81 * 0.5], atol=1e-4)
    assert np.allclose(spin(end, after), start, atol=2e-4 * np.abs(start).max())


def test_thrusts_add_to_all_other_wrenches(rng):
    """Of both composers, in both frames."""
    drone = flock("iris", 4)
    place(drone, rng)
    drone.set_thrust_target(rng.uniform(0.0, 6.0, (4, 4)))
    alone = forces(drone).copy()
    force, torque = rng.normal(size=(4, 1, 3)), rng.normal(size=(4, 1, 3))
    drone.rotors.reset()
    drone.set_thrust_target(drone.data.thrust_target.numpy() * 0 + 3.0)
    base = forces(drone).copy()
    drone.set_external_force_and_torque(force, torque, is_global=True)
    both = forces(drone).copy()
    # motors go on between two calls: thrust of the second
    drone.set_external_force_and_torque(np.zeros((4, 1, 3)), np.zeros((4, 1, 3)))
    rest = forces(drone).copy()
    drone.permanent_wrench_composer.reset()
    again = forces(drone).copy()
    wrench = drone.data.applied_thrust.numpy().astype(float) @ drone.allocation_matrix.numpy().T
    r = quat_to_matrix(drone.sim.state.body_q.numpy()[:, 3:])
    own = np.concatenate([np.einsum("nij,nj->ni", r, wrench[:, k : k + 3]) for k in (0, 3)], axis=1)
    assert np.allclose(again, own, atol=1e-4)
    given = np.concatenate([force[:, 0], torque[:, 0]], axis=1)
    # `both` lies between the thrusts of the calls before and after it
    low, high = np.minimum(base, rest), np.maximum(base, rest)
    assert ((both - given > low - 1e-4) & (both - given < high + 1e-4)).all()
    assert np.abs(alone).max() > 1.0


def test_thrust_turns_with_the_body_in_every_step(rng):
    drone = flock("iris", 3)
    drone.set_thrust_target(4.0)
    place(drone, rng, speed=3.0)
    for _ in range(20):
        drone.write_data_to_sim()
        up = quat_rotate(drone.sim.state.body_q.numpy()[:, 3:], np.array([0.0, 0.0, 1.0]))
        total = drone.data.applied_thrust.numpy().sum(axis=1)[:, None]
        assert np.allclose(drone.sim.state.body_f.numpy()[:, :3], total * up, rtol=1e-5, atol=1e-4)
        drone.sim.step()


def test_drag_is_linear_and_quadratic_in_the_speed_relative_to_the_wind(rng):
    d = rng.uniform(0.01, 0.5, (4, 3))

    def dragged(settings):
        off(settings)
        settings.drag = BodyDrag(*map(tuple, d))

    drone = flock("iris", 9, cfg=dragged)
    drone.set_thrust_target(0.0)
    place(drone, rng, speed=3.0)
    wind = rng.normal(size=(9, 3))
    drone.set_wind(wind)
    q, v = drone.sim.state.body_q.numpy().astype(float), drone.sim.state.body_qd.numpy().astype(float)
    r = quat_to_matrix(q[:, 3:])
    u, w = (np.einsum("nji,nj->ni", r, x) for x in (v[:, :3] - wind, v[:, 3:]))
    f, n = -(d[0] + d[1] * np.abs(u)) * u, -(d[2] + d[3] * np.abs(w)) * w
    expected = np.concatenate([np.einsum("nij,nj->ni", r, x) for x in (f, n)], axis=1)
    assert np.allclose(forces(drone), expected, rtol=1e-4, atol=1e-4)


def test_a_falling_vehicle_reaches_its_terminal_velocity():
    """m g = d v + c v^2"""

    def dragged(settings):
        off(settings)
        settings.drag = BodyDrag(linear=0.5, quadratic=0.3)

    drone = flock("iris", 1, cfg=dragged)
    drone.set_thrust_target(0.0)
    fly(drone, 3000)
    weight = drone.rotors.masses.total[0] * 9.81
    expected = (-0.5 + np.sqrt(0.25 + 4 * 0.3 * weight)) / 0.6
    assert drone.sim.state.body_qd.numpy()[0, 2] == pytest.approx(-expected, rel=1e-3)


def test_a_steady_wind_carries_a_drone_away_from_its_place_by_drag_over_gain(rng):
    """In hover, K_x m offset = d wind."""

    def dragged(settings):
        settings.drag = BodyDrag(linear=0.2)

    drone = flock("iris", 2, cfg=dragged)
    drone.controller = LeePositionController(drone)
    drone.controller.set_command(np.zeros(4))
    drone.set_wind([2.0, 0.0, 0.0], env_ids=[1])
    fly(drone, 3000)
    x = drone.sim.state.body_q.numpy()[:, 0]
    assert x[0] == pytest.approx(0.0, abs=1e-3)
    assert x[1] == pytest.approx(0.2 * 2.0 / (4.0 * 1.52), rel=0.03)


def test_rotors_drag_in_their_planes(rng):
    cfg = ThrusterCfg("rotor_.*", (0.0, 20.0), 1e-3, rotor_drag=2e-3, **NO_LAG)
    one, vehicle = frame_vehicle(rng, 5, cfg=cfg)
    drone = in_worlds(one, vehicle, 7, 0.01)
    place(drone, rng)
    thrust = rng.uniform(1.0, 20.0, (7, 5))
    drone.set_thrust_target(thrust)
    wind = rng.normal(size=(7, 3))
    drone.set_wind(wind)
    found = forces(drone)
    q, v = drone.sim.state.body_q.numpy().astype(float), drone.sim.state.body_qd.numpy().astype(float)
    matrix = drone.allocation_matrix.numpy().astype(float)
    com = np.asarray(one.body_com[0])
    for i in range(7):
        r = quat_to_matrix(q[i, 3:])
        u, w = r.T @ (v[i, :3] - wind[i]), r.T @ v[i, 3:]
        wrench = matrix @ thrust[i]
        for k in range(5):
            axis, arm = matrix[:3, k], one.frames.transform[k, :3] - com
            hub = u + np.cross(w, arm)
            f = -2e-3 * np.sqrt(thrust[i, k] / 1e-3) * (hub - (hub @ axis) * axis)
            wrench += np.concatenate([f, np.cross(arm, f)])
        assert np.allclose(found[i], np.concatenate([r @ wrench[:3], r @ wrench[3:]]), rtol=1e-4, atol=2e-4)


def spinning(rng, dt: float):
    """Tumbling vehicles with heavy rotors that have thrusts of no effect, and their angular momentum without rotors and of rotors."""
    cfg = ThrusterCfg(
        "rotor_.*",
        (-20.0, 20.0),
        1.0e-3,
        time_constant_up=0.1,
        time_constant_down=0.2,
        efficiency=0.0,
        rotor_inertia=2e-4,
    )
    one, settings = frame_vehicle(rng, cfg=cfg, rps=0.0)
    drone = in_worlds(one, settings, 5, dt)
    place(drone, rng, speed=2.0)
    moments, axes = drone.rotors.masses.moments[0], drone.rotors._axes

    def momenta() -> tuple[np.ndarray, np.ndarray]:
        q, v = (x.numpy().astype(float) for x in (drone.sim.state.body_q, drone.sim.state.body_qd))
        r = quat_to_matrix(q[:, 3:])
        n = drone.data.thruster_state.numpy().astype(float)
        rotors = 2.0 * np.pi * 2e-4 * np.einsum("nij,kj,nk,k->ni", r, axes, n, drone.rotors.spins)
        return np.einsum("nij,jk,nlk,nl->ni", r, moments, r, v[:, 3:]), rotors

    return drone, momenta


def test_the_torque_of_a_rotor_is_the_rate_of_its_angular_momentum(rng):
    """- w x h - dh/dt in the axes of the body, which a step takes at its beginning with the speeds at its end."""
    drone, momenta = spinning(rng, 0.004)
    drone.set_thrust_target(rng.uniform(-15.0, 15.0, (5, 4)))
    for _ in range(3):
        before = momenta()[1]
        w = drone.sim.state.body_qd.numpy()[:, 3:].astype(float)
        found = forces(drone)
        now = momenta()[1]
        assert np.allclose(found[:, :3], 0.0)
        assert np.allclose(found[:, 3:], -np.cross(w, now) - (now - before) / 0.004, rtol=1e-4, atol=1e-5)
        drone.sim.step()


def test_rotors_and_body_keep_their_angular_momentum(rng):
    """While rotors speed up and turn back, in the axes of the world."""
    drone, momenta = spinning(rng, 2.5e-4)
    start, gained = sum(momenta()), 0.0
    for goal in (15.0, -10.0):
        drone.set_thrust_target(goal * rng.uniform(0.5, 1.0, (5, 4)))
        fly(drone, 400)
        body, rotors = momenta()
        gained = max(gained, np.abs(rotors).max())
        # of first order in the time step
        assert np.allclose(body + rotors, start, atol=4e-3 * np.abs(start).max())
    assert gained > 0.02 * np.abs(start).max()


def test_thrust_grows_near_the_ground(rng):
    """By Cheeseman and Bennett, at the height of each hub above the ground."""

    def near(settings):
        settings.ground_effect = GroundEffect(height=-0.5, strength=1.5)

    drone = flock("iris", 8, cfg=near)
    place(drone, rng, spread=0.2, speed=0.0, tilt=0.4)
    drone.set_thrust_target(3.0)
    for _ in range(300):
        drone.write_data_to_sim()
    q = drone.sim.state.body_q.numpy().astype(float)
    hubs = np.asarray(drone.model.frames.transform[:4, :3])
    z = q[:, 2:3] + np.stack([quat_rotate(q[:, 3:], hub)[:, 2] for hub in hubs], axis=1) + 0.5
    factor = 1.0 / (1.0 - 1.5 * (0.128 / (4.0 * np.maximum(z, 0.064))) ** 2)
    up = quat_rotate(q[:, 3:], np.array([0.0, 0.0, 1.0]))
    expected = (3.0 * factor).sum(axis=1)[:, None] * up
    assert np.allclose(drone.sim.state.body_f.numpy()[:, :3], expected, rtol=1e-4, atol=1e-3)


def test_thrusters_on_several_bodies_push_each_of_them(rng):
    """Two arms on hinges carry a thruster each; the root carries a third."""
    one = nl.ModelBuilder()
    root = one.add_link(mass=1.0, inertia=0.01 * np.eye(3), label="root")
    joints = [one.add_joint_free(root)]
    for i, side in enumerate((-1.0, 1.0)):
        arm = one.add_link(mass=0.3, com=(0.05, 0.02 * i, 0.0), inertia=0.002 * np.eye(3), label=f"arm_{i}")
        joints.append(
            one.add_joint_revolute(
                root, arm, axis=(1, 0, 0), parent_xform=(0, 0.2 * side, 0.05, 0, 0, 0, 1), label=f"hinge_{i}"
            )
        )
    one.add_articulation(joints, label="craft")
    group = ThrusterCfg(["root", "arm_.*"], (0, 9), torque_to_thrust_ratio=0.03, **NO_LAG)
    cfg = MultirotorCfg({"all": group}, rotor_directions=(1, -1, 1))
    drone = in_worlds(one, cfg, 3, 0.005)
    place(drone, rng)
    thrust = rng.uniform(1.0, 9.0, (3, 3))
    drone.set_thrust_target(thrust)
    found = forces(drone).reshape(3, 3, 6)
    q = drone.sim.state.body_q.numpy().astype(float).reshape(3, 3, 7)
    com = drone.model.body_com.numpy().reshape(3, 3, 3)[0]
    for b, spin in enumerate((1, -1, 1)):
        axis = quat_rotate(q[:, b, 3:], np.array([0.0, 0.0, 1.0]))
        f = thrust[:, b : b + 1] * axis
        n = np.cross(quat_rotate(q[:, b, 3:], -com[b]), f) - spin * 0.03 * f
        assert np.allclose(found[:, b], np.concatenate([f, n], axis=1), rtol=1e-5, atol=1e-5)


def test_a_flight_is_that_of_mujoco_with_thrusts_at_sites(rng):
    """The same thrusts at sites of the same body; both with small steps."""
    steps, dt = 400, 0.0005
    drone = flock("iris", 3, dt=dt)
    place(drone, rng, speed=1.0)
    masses, matrix = drone.rotors.masses, drone.allocation_matrix.numpy()
    hubs = drone.model.frames.transform[:4, :3]
    assert np.allclose(masses.moments[0], np.diag(np.diag(masses.moments[0])), atol=1e-6)
    sites = "".join(f'<site name="s{i}" pos="{x} {y} {z}"/>' for i, (x, y, z) in enumerate(hubs))
    motors = "".join(f'<motor site="s{i}" gear="0 0 1 0 0 {matrix[5, i]}"/>' for i in range(4))
    com = " ".join(map(str, masses.centre[0]))
    moments = " ".join(map(str, np.diag(masses.moments[0])))
    peer = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{dt}" integrator="RK4"/><worldbody><body><freejoint/><inertial pos="{com}" mass="{masses.total[0]}"'
        f' diaginertia="{moments}"/>{sites}</body></worldbody><actuator>{motors}</actuator></mujoco>'
    )
    data = [mujoco.MjData(peer) for _ in range(3)]
    q, v = drone.sim.state.body_q.numpy().astype(float), drone.sim.state.body_qd.numpy().astype(float)
    for i, d in enumerate(data):
        r = quat_to_matrix(q[i, 3:])
        d.qpos[:] = [*q[i, :3], q[i, 6], *q[i, 3:6]]
        d.qvel[:3] = v[i, :3] - np.cross(v[i, 3:], r @ masses.centre[0])
        d.qvel[3:] = r.T @ v[i, 3:]
    for _ in range(4):
        drone.set_thrust_target(rng.uniform(1.0, 6.0, (3, 4)))
        for _ in range(steps // 4):
            drone.write_data_to_sim()
            for d, thrust in zip(data, drone.data.applied_thrust.numpy(), strict=True):
                d.ctrl[:] = thrust
                mujoco.mj_step(peer, d)
            drone.sim.step()
    q = drone.sim.state.body_q.numpy()
    for i, d in enumerate(data):
        assert np.allclose(q[i, :3], d.qpos[:3], atol=2e-4)
        peer_q = np.array([*d.qpos[4:7], d.qpos[3]])
        assert abs(abs(peer_q @ q[i, 3:]) - 1.0) < 1e-5


def test_a_world_that_went_nan_flies_again_after_its_reset(rng):
    drone = flock("iris", 9)
    place(drone, rng, tilt=0.3)
    drone.controller = LeePositionController(drone)
    drone.controller.set_command(np.zeros(4))
    fly(drone, 3)
    drone.sim.state.joint_q.numpy()[7 * 3 + 1] = np.nan
    drone.data.thruster_state.numpy()[3] = np.nan
    fly(drone, 2)
    broken = np.isnan(drone.sim.state.body_q.numpy()).any(axis=1) | np.isnan(drone.data.applied_thrust.numpy()).any(
        axis=1
    )
    assert np.flatnonzero(broken).tolist() == [3]
    drone.reset_to([3])
    fly(drone, 5)
    assert np.isfinite(drone.sim.state.body_q.numpy()).all()
    assert np.isfinite(drone.data.applied_thrust.numpy()).all()


def test_a_captured_graph_repeats_steps_with_control(rng):
    ends, seed = [], rng.integers(2**31)
    for captured in (False, True):
        drone = flock("iris", 19)
        place(drone, np.random.default_rng(seed), tilt=0.3)
        drone.controller = LeePositionController(drone)
        drone.controller.set_command(np.zeros(4))
        fly(drone, 3)
        if captured:
            with wp.ScopedCapture("cpu") as capture:
                fly(drone, 2)
            for _ in range(3):
                wp.capture_launch(capture.graph)
        else:
            fly(drone, 6)
        ends.append(drone.sim.state.body_q.numpy().copy())
    assert np.array_equal(*ends)


@pytest.mark.slow
def test_vehicles_hover_in_double_precision():
    one = nl.ModelBuilder()
    settings = add_vehicle(one, "iris")
    scene = nl.ModelBuilder()
    scene.replicate(one, 3)
    sim = SimulationContext(scene.finalize("cpu", dtype=wp.float64), dt=0.004, evaluator="general")
    drone = Multirotor(sim, "*", settings)
    drone.controller = LeePositionController(drone)
    drone.controller.set_command([0.5, 0.0, 1.0, 0.0])
    fly(drone, 4000)
    place_of_mass = drone.sim.state.body_q.numpy()[:, :3] + drone.rotors.masses.centre[0]
    assert np.abs(place_of_mass - [0.5, 0.0, 1.0]).max() < 1e-6
    assert np.allclose(drone.data.applied_thrust.numpy().sum(axis=1), drone.rotors.masses.total[0] * 9.81, rtol=1e-6)
