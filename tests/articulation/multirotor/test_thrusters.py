"""Thrusters follow their targets as the closed forms of a first-order lag say, within their limits."""

import math

import numpy as np
import pytest
import warp as wp

from newton_like.articulation.multirotor import ThrusterCfg
from newton_like.articulation.multirotor.config import shares
from tests.support.multirotors import flock, fly, frame_vehicle, in_worlds

TAU = 0.02


def craft(rng, count: int = 3, dt: float = 0.01, thrusters: int = 4, **cfg):
    """A vehicle whose thrusters have k = 0.1 N s^2 and a time constant of 0.02 s."""
    settings = {
        "thrust_range": (0.0, 10.0),
        "thrust_constant": 0.1,
        "time_constant_up": TAU,
        "time_constant_down": TAU,
    } | cfg
    one, vehicle = frame_vehicle(rng, thrusters, cfg=ThrusterCfg("rotor_.*", **settings), rps=1.0)
    return in_worlds(one, vehicle, count, dt)


def thrusts_after(drone, steps: int = 1) -> np.ndarray:
    for _ in range(steps):
        drone.write_data_to_sim()
    return drone.data.applied_thrust.numpy().astype(float)


@pytest.mark.parametrize(
    ("scheme", "thrust"), [("euler", 0.544444), ("rk4", 0.661990), ("exact", 0.1 * (5 - 4 * math.exp(-0.5)) ** 2)]
)
def test_a_step_of_a_motor_has_the_thrust_of_its_scheme(rng, scheme, thrust):
    """From 1 to 5 rev/s in half a time constant."""
    drone = craft(rng, integration=scheme)
    drone.set_thrust_target(0.1 * 5.0**2)
    assert np.allclose(thrusts_after(drone), thrust, atol=1e-6)


def test_speeds_follow_the_exponential_for_any_targets(rng):
    drone = craft(rng, time_constant_up=0.03, time_constant_down=0.07)
    speeds = np.full((3, 4), 1.0)
    for _ in range(30):
        targets = rng.uniform(0.0, 10.0, (3, 4)).astype(np.float32)
        drone.set_thrust_target(targets)
        goal = np.sqrt(targets / 0.1)
        speeds = goal + (speeds - goal) * np.exp(-0.01 / np.where(goal > speeds, 0.03, 0.07))
        assert np.allclose(thrusts_after(drone), 0.1 * speeds**2, rtol=1e-5, atol=1e-6)


def test_exact_steps_compose(rng):
    """Ten steps of the exact scheme are one step of ten times the length."""
    short, long = craft(rng, dt=0.002), craft(rng, dt=0.02)
    for drone in (short, long):
        drone.set_thrust_target(6.0)
    assert np.allclose(thrusts_after(short, 10), thrusts_after(long), rtol=1e-5)


@pytest.mark.parametrize(("scheme", "order"), [("euler", 1), ("rk4", 4)])
def test_schemes_converge_with_their_order(scheme, order):
    def error(n):
        share = float(shares(scheme, 0.05 / n, np.array(TAU)))
        return abs((1.0 - share) ** n - math.exp(-0.05 / TAU))

    assert error(16) / error(32) == pytest.approx(2.0**order, rel=0.2)


def test_a_motor_whose_state_is_the_thrust_lags_in_thrust(rng):
    drone = craft(rng, state="thrust")
    drone.set_thrust_target(4.0)
    assert np.allclose(thrusts_after(drone, 3), 4.0 + (0.1 - 4.0) * math.exp(-1.5), rtol=1e-5)


@pytest.mark.parametrize("state", ["speed", "thrust"])
def test_thrust_changes_no_faster_than_its_rate(rng, state):
    drone = craft(rng, state=state, max_thrust_rate=20.0, time_constant_up=0.0, time_constant_down=0.0)
    drone.set_thrust_target(9.0)
    for i in range(1, 6):
        assert np.allclose(thrusts_after(drone), 0.1 + 0.2 * i, rtol=1e-5)
    drone.set_thrust_target(0.0)
    assert np.allclose(thrusts_after(drone, 2), 1.1 - 0.4, rtol=1e-4)
    assert np.allclose(thrusts_after(drone, 10), 0.0, atol=1e-6)


def test_thrusts_stay_within_their_range(rng):
    drone = craft(rng, thrust_range=(0.5, 3.0), time_constant_up=0.0, time_constant_down=0.0)
    drone.set_thrust_target([-1.0, 0.2, 2.0, 50.0])
    assert np.allclose(thrusts_after(drone), [0.5, 0.5, 2.0, 3.0], rtol=1e-6)


def test_rotors_that_turn_both_ways_pull_both_ways(rng):
    drone = craft(rng, thrust_range=(-4.0, 4.0), time_constant_up=0.0, time_constant_down=0.0)
    drone.set_thrust_target([-3.0, 3.0, -1.0, 0.0])
    assert np.allclose(thrusts_after(drone), [-3.0, 3.0, -1.0, 0.0], rtol=1e-5)
    speeds = drone.data.thruster_state.numpy()[0]
    assert np.allclose(speeds, np.sign([-3, 3, -1, 0]) * np.sqrt(np.array([3, 3, 1, 0]) / 0.1), rtol=1e-5)


def test_applied_thrust_is_the_computed_one_within_its_range_times_the_efficiency(rng):
    drone = craft(rng)
    drone.set_thrust_target(8.0)
    thrusts_after(drone, 50)
    drone.set_thruster_parameter("thrust_max", 5.0)
    drone.set_thruster_parameter("efficiency", 0.5, thruster_ids=[2], env_ids=[1])
    drone.set_thruster_parameter("efficiency", 0.0, thruster_ids=[0], env_ids=[1])
    applied = thrusts_after(drone)
    computed = drone.data.computed_thrust.numpy()
    assert (computed > 5.0).all()
    expected = np.full((3, 4), 5.0)
    expected[1] = [0.0, 5.0, 2.5, 5.0]
    assert np.allclose(applied, expected, rtol=1e-6)


def test_parameters_of_each_world_act(rng):
    count = 19
    drone = craft(rng, count)
    k, up = rng.uniform(0.05, 0.2, (count, 4)), rng.uniform(0.0, 0.05, (count, 4))
    drone.set_thruster_parameter("thrust_constant", k)
    drone.set_thruster_parameter("time_constant_up", up)
    assert np.allclose(drone.thruster_parameter("thrust_constant"), k)
    drone.set_thrust_target(7.0)
    applied = thrusts_after(drone, 2)
    goal = np.sqrt(7.0 / k)
    with np.errstate(divide="ignore"):
        speed = goal + (1.0 - goal) * np.exp(-0.02 / up)
    assert np.allclose(applied, k * speed**2, rtol=1e-5)
    # some worlds alone
    some, few = [3, 17], rng.uniform(0.05, 0.2, (2, 4))
    drone.set_thruster_parameter("thrust_constant", few, env_ids=some)
    k[some] = few
    speed = drone.data.thruster_state.numpy().astype(float)
    goal = np.sqrt(7.0 / k)
    share = np.where(goal > speed, -np.expm1(-0.01 / np.maximum(up, 1e-12)), -np.expm1(-0.01 / TAU))
    assert np.allclose(thrusts_after(drone), np.minimum(k * (speed + share * (goal - speed)) ** 2, 10.0), rtol=2e-5)


def test_groups_have_their_own_numbers(rng):
    one, vehicle = frame_vehicle(rng, 5)
    vehicle.actuators = {
        "slow": ThrusterCfg("rotor_[03]", (0, 9), {"rotor_0": 0.1, "rotor_3": 0.2}, time_constant_up=0.1),
        "fast": ThrusterCfg("rotor_[124]", (0, 5), state="thrust", time_constant_up=0.0),
    }
    vehicle.rps = {"rotor_0": 2.0, "rotor_3": 3.0, "rotor_[124]": 0.0}
    drone = in_worlds(one, vehicle, 2, 0.01)
    assert drone.thruster_names == ["rotor_0", "rotor_3", "rotor_1", "rotor_2", "rotor_4"]
    assert {name: group.thruster_indices for name, group in drone.thrusters.items()} == {
        "slow": [0, 1],
        "fast": [2, 3, 4],
    }
    assert drone.actuators == drone.thrusters
    drone.set_thrust_target(4.0)
    applied = thrusts_after(drone)[0]
    a = -math.expm1(-0.1)
    slow = [k * (n + a * (math.sqrt(4.0 / k) - n)) ** 2 for k, n in ((0.1, 2.0), (0.2, 3.0))]
    assert np.allclose(applied, [*slow, 4.0, 4.0, 4.0], rtol=1e-5)
    fast = drone.thrusters["fast"]
    assert fast.thruster_names == ["rotor_1", "rotor_2", "rotor_4"]
    assert np.allclose(fast.applied_thrust.numpy(), 4.0)
    # the memory of all thrusters
    fast.state.numpy()[:] = 1.0
    assert (drone.data.thruster_state.numpy()[:, 2:] == 1.0).all()


def test_reset_gives_chosen_worlds_their_default_speeds_and_leaves_the_others(rng):
    drone = flock("iris", 21)
    speeds = rng.uniform(50.0, 120.0, (21, 4))
    drone.data.default_thruster_rps.assign(speeds.astype(np.float32))
    drone.set_thrust_target(rng.uniform(0.0, 6.0, (21, 4)))
    fly(drone, 3)
    names = ("thrust_target", "computed_thrust", "applied_thrust", "thruster_state")
    before = {name: getattr(drone.data, name).numpy().copy() for name in names}
    chosen = rng.permutation(21)[:7]
    drone.reset(chosen)
    others = np.setdiff1d(np.arange(21), chosen)
    k = drone.thruster_parameter("thrust_constant")[chosen]
    for name in names:
        now = getattr(drone.data, name).numpy()
        assert np.array_equal(now[others], before[name][others])
        expected = speeds[chosen] if name == "thruster_state" else k * speeds[chosen] ** 2
        if name == "applied_thrust":
            expected = np.minimum(expected, drone.thruster_parameter("thrust_max")[chosen])
        assert np.allclose(now[chosen], expected, rtol=1e-5)
    # rotors keep these speeds
    fly(drone, 1)
    assert np.allclose(
        drone.data.thruster_state.numpy()[chosen], np.minimum(speeds[chosen], 838.0 / (2 * math.pi)), rtol=1e-5
    )


def test_targets_of_chosen_worlds_and_thrusters_are_set(rng):
    drone = flock("hexarotor", 9)
    before = drone.data.thrust_target.numpy().copy()
    worlds, rotors, values = [1, 4, 8], [5, 2], rng.uniform(0, 3, (3, 2)).astype(np.float32)
    drone.set_thrust_target(values, rotors, worlds)
    after = drone.data.thrust_target.numpy().copy()
    assert np.array_equal(after[np.ix_(worlds, rotors)], values)
    after[np.ix_(worlds, rotors)] = before[np.ix_(worlds, rotors)]
    assert np.array_equal(after, before)
    mask = np.arange(9) % 2 == 0
    drone.set_thrust_target(1.0, slice(0, 2), mask)
    assert (drone.data.thrust_target.numpy()[mask, :2] == 1.0).all()


def test_a_world_does_not_change_the_bits_of_the_others(rng):
    """Worlds of one block, of which one has other targets and a NaN."""
    drones = [flock("iris", 16) for _ in range(2)]
    targets = rng.uniform(0.0, 6.0, (16, 4)).astype(np.float32)
    for i, drone in enumerate(drones):
        drone.set_thrust_target(targets)
        if i:
            drone.data.thrust_target.numpy()[5] = np.nan
        fly(drone, 5)
    rest = np.arange(16) != 5
    for name in ("computed_thrust", "applied_thrust", "thruster_state"):
        a, b = (getattr(drone.data, name).numpy()[rest] for drone in drones)
        assert np.array_equal(a, b)
    a, b = (drone.sim.state.body_q.numpy()[rest] for drone in drones)
    assert np.array_equal(a, b)


@pytest.mark.parametrize("state", ["speed", "thrust"])
def test_targets_that_are_no_numbers_show_in_thrust_and_state(rng, state):
    """Warp arrays of commands are not looked at: NaN must not become the least thrust. Other worlds keep their bits."""
    calm, torn = (craft(np.random.default_rng(3), thrusters=6, state=state, max_thrust_rate=40.0) for _ in range(2))
    wrench = np.array([0.0, 0.0, 8.0, 0.1, -0.1, 0.05])
    sent = np.tile(wrench, (3, 1))
    sent[1, 4] = np.nan
    for way in ("target", "pseudo_inverse", "bounded"):
        for drone, numbers in ((calm, np.tile(wrench, (3, 1))), (torn, sent)):
            given = wp.array(numbers, dtype=wp.float32, device="cpu")
            if way == "target":
                drone.set_thrust_target(given)
            else:
                drone.set_wrench_target(given, allocation=way)
            drone.write_data_to_sim()
        for name in ("computed_thrust", "applied_thrust"):
            a, b = (getattr(drone.data, name).numpy() for drone in (calm, torn))
            wrong = np.isnan(b[1])
            assert wrong[4] if way == "target" else wrong.any(), f"{way} {name}"
            assert np.array_equal(a[[0, 2]], b[[0, 2]]) and np.isfinite(a).all(), f"{way} {name}"
        assert (
            np.isnan(torn.sim.state.body_f.numpy()[1]).any()
            and np.isfinite(torn.sim.state.body_f.numpy()[[0, 2]]).all()
        )
        for drone in (calm, torn):
            drone.reset([1])
        assert np.array_equal(*(drone.data.applied_thrust.numpy() for drone in (calm, torn)))


def test_settings_that_are_edited_for_the_next_vehicle_do_not_change_the_first():
    kept = []

    def keep(settings):
        settings.actuators["rotors"].integration = "exact"
        settings.allocation_matrix = np.arange(24.0).reshape(6, 4)
        kept.append(settings)

    first, other = (flock("iris", 1, cfg=keep) for _ in range(2))
    kept[0].actuators["rotors"].integration = "euler"
    kept[0].allocation_matrix[:] = 0.0
    np.testing.assert_array_equal(first.allocation_matrix.numpy(), other.allocation_matrix.numpy())
    for drone in (first, other):
        drone.sim.dt *= 2.0
        drone.set_thrust_target(1.0)
        drone.write_data_to_sim()
    np.testing.assert_array_equal(first.data.computed_thrust.numpy(), other.data.computed_thrust.numpy())
