"""Properties of tendons of each world, and the work that tendons do."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like import dynamics
from newton_like.articulation import Articulation, SimulationContext
from newton_like.model.tendons import Tendon
from tests.articulation.robots import add_robot, numbers

WORLDS = 4


@pytest.fixture
def robot(rng) -> Articulation:
    one = nl.ModelBuilder(gravity=0.0)
    add_robot(one, rng, floating=False)
    joint = one.joint_label.index("walker/left_hip_joint")
    other = one.joint_label.index("walker/right_knee_joint")
    one.add_tendon(Tendon(label="cross", joints=((joint, 0, 1.0), (other, 0, -0.5)), stiffness=2.0, damping=0.0))
    one.add_tendon(Tendon(label="limited", joints=((other, 0, 2.0),), limits=(-3.0, 3.0), limit_ke=50.0))
    ends = [
        one.add_site(b, xform=(*rng.uniform(-0.1, 0.1, 3), 0, 0, 0, 1))
        for b in (0, one.body_label.index("walker/right_hip"))
    ]
    one.add_tendon(Tendon(label="rope", path=tuple(("site", s) for s in ends), stiffness=3.0))
    builder = nl.ModelBuilder(gravity=0.0)
    builder.replicate(one, WORLDS)
    robot = Articulation(SimulationContext(builder.finalize("cpu"), dt=1 / 1000, evaluator="general"), "walker")
    robot.write_joint_state_to_sim(rng.uniform(-0.5, 0.5, (WORLDS, 4)), 0.3 * rng.normal(size=(WORLDS, 4)))
    return robot


def test_names_and_defaults(robot):
    assert robot.fixed_tendon_names == ["cross", "limited"] and robot.spatial_tendon_names == ["rope"]
    assert robot.find_fixed_tendons("li.*") == ([1], ["limited"]) and robot.find_spatial_tendons(".*")[0] == [0]
    d = robot.data
    np.testing.assert_array_equal(d.fixed_tendon_stiffness.numpy()[0], [2.0, 0.0])
    np.testing.assert_array_equal(d.default_fixed_tendon_limit.numpy()[0, 1], [-3.0, 3.0])
    found = d.fixed_tendon_limit_stiffness.numpy()[0]
    assert np.isnan(found[0]) and found[1] == 50.0
    with pytest.raises(ValueError, match=r"'lose'.*tendon"):
        robot.find_fixed_tendons("lose")


@pytest.mark.parametrize("name", ["stiffness", "damping", "rest_length", "offset", "position_limit", "limit_stiffness"])
def test_properties_of_fixed_tendons_reach_the_model_when_they_are_written(robot, rng, name):
    array = "pos_limits" if name == "position_limit" else name
    own = {"rest_length": "rest_lower", "position_limit": "limit_lower", "limit_stiffness": "limit_ke"}.get(name, name)

    def in_model() -> np.ndarray:
        return getattr(robot.model, f"tendon_{own}").numpy().reshape(WORLDS, 3).copy()

    before = in_model()
    values = np.sort(rng.uniform(0.1, 1.0, (2, 2, 2)).astype(np.float32), axis=-1)
    given = values if array == "pos_limits" else values[..., 0]
    getattr(robot, f"set_fixed_tendon_{name}")(given, env_ids=[1, 3])
    np.testing.assert_array_equal(in_model(), before)
    robot.write_fixed_tendon_properties_to_sim(fixed_tendon_ids=[0], env_ids=[3])
    wanted = before.copy()
    wanted[3, 0] = values[1, 0, 0]
    np.testing.assert_array_equal(in_model(), wanted)
    robot.write_fixed_tendon_properties_to_sim()
    wanted[[1, 3], :2] = values[..., 0]
    np.testing.assert_array_equal(in_model(), wanted)
    np.testing.assert_array_equal(getattr(robot.data, f"fixed_tendon_{array}").numpy()[[1, 3]], given)
    robot.set_fixed_tendon_offset(7.0)
    robot.reset([0])
    assert (robot.data.fixed_tendon_offset.numpy()[0] == robot.model.tendon_offset.numpy()[:2]).all()
    assert (robot.data.fixed_tendon_offset.numpy()[1:] == 7.0).all()


@pytest.mark.slow
def test_springs_lose_the_energy_that_joints_gain(robot):
    """Without gravity, damping and friction, kinetic energy and the energy of all springs are constant, in worlds of different springs."""
    model, state = robot.model, robot.sim.state
    robot.set_fixed_tendon_stiffness(np.array([[1.0], [2.0], [4.0], [8.0]]), fixed_tendon_ids=[0])
    robot.set_spatial_tendon_stiffness(np.array([[1.0], [5.0], [0.0], [20.0]]))
    robot.write_fixed_tendon_properties_to_sim()
    robot.write_spatial_tendon_properties_to_sim()

    def energy() -> tuple[np.ndarray, np.ndarray]:
        lengths = numbers(dynamics.tendon_lengths(model, state)).reshape(WORLDS, -1)
        rest, k = (numbers(x).reshape(WORLDS, -1) for x in (model.tendon_rest_lower, model.tendon_stiffness))
        return numbers(dynamics.kinetic_energy(model, state)), (0.5 * k * (lengths - rest) ** 2).sum(axis=1)

    motion, springs = energy()
    swing = np.zeros(WORLDS)
    for _ in range(300):
        robot.write_data_to_sim()
        robot.sim.step()
        now = energy()
        swing = np.maximum(swing, abs(now[1] - springs))
        np.testing.assert_allclose(sum(now), motion + springs, rtol=0.02, atol=1e-4)
    assert (swing > 1e-5).all() and swing.max() > 1e-2


def carts(rng) -> Articulation:
    """A cart on a rail in each world, with a fixed tendon of the factor 2 and a spatial one, both with limits."""
    one = nl.ModelBuilder(gravity=0.0)
    cart = one.add_link(mass=0.7, inertia=np.eye(3), label="cart")
    one.add_articulation([one.add_joint_prismatic(-1, cart, axis=(1.0, 0.0, 0.0), label="rail")], label="cart")
    one.add_tendon(Tendon(label="fixed", joints=((0, 0, 2.0),), limits=(-0.5, 0.5)))
    sites = [("site", one.add_site(body, xform=(x, 0, 0, 0, 0, 0, 1))) for body, x in ((-1, -3.0), (cart, 0.0))]
    one.add_tendon(Tendon(label="spatial", path=tuple(sites), limits=(2.0, 3.5)))
    builder = nl.ModelBuilder(gravity=0.0)
    builder.replicate(one, WORLDS)
    model = builder.finalize("cpu", dtype=wp.float64)
    return Articulation(SimulationContext(model, dt=1 / 500, evaluator="general"), "cart")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "factor", "limit"), [("fixed", 2.0, 0.25), ("spatial", 1.0, 0.5)])
def test_limits_with_a_stiffness_are_springs_beyond_them(rng, kind, factor, limit):
    """At the depth in the middle of the step, the implicit step of a spring k is u = (u' - dt k c depth / m) / (1 + dt^2 k c^2 / m);
    else the cart is free. With a constant force, the cart comes to rest at the depth force / (c k)."""
    robot = carts(rng)
    other = "spatial" if kind == "fixed" else "fixed"
    k = np.array([0.0, 20.0, 300.0, 1e5])
    getattr(robot, f"set_{kind}_tendon_limit_stiffness")(k[:, None])
    getattr(robot, f"set_{other}_tendon_limit_stiffness")(0.0)
    for each in (kind, other):
        getattr(robot, f"write_{each}_tendon_properties_to_sim")()
    np.testing.assert_array_equal(robot.model.tendon_limit_ke.numpy().reshape(WORLDS, 2)[:, int(kind == "spatial")], k)
    x, u, dt, mass = limit - rng.uniform(0.0, 0.02, WORLDS), rng.uniform(0.5, 1.0, WORLDS), robot.sim.dt, 0.7
    robot.write_joint_state_to_sim(x[:, None], u[:, None])
    x, u = (numbers(a)[:, 0] for a in (robot.data.joint_pos, robot.data.joint_vel))
    deepest = np.zeros(WORLDS)
    for _ in range(100):
        robot.sim.step()
        x = x + 0.5 * dt * u
        depth = factor * (x - limit)
        pushed = (u - dt * k * factor * depth / mass) / (1.0 + dt * dt * k * factor * factor / mass)
        # springs push only
        u = np.where(depth > 0.0, np.minimum(u, pushed), u)
        x = x + 0.5 * dt * u
        deepest = np.maximum(deepest, factor * (x - limit))
        np.testing.assert_allclose(numbers(robot.data.joint_vel)[:, 0], u, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(numbers(robot.data.joint_pos)[:, 0], x, rtol=1e-6, atol=1e-6)
    assert (deepest > 1e-4).all() and (u[1:] < u[0]).all()
    robot.write_joint_friction_coefficient_to_sim(0.0, 0.0, 60.0)
    robot.write_joint_state_to_sim(np.full((WORLDS, 1), limit), 0.0)
    for _ in range(1500):
        robot.sim.control.joint_f.fill_(5.0)
        robot.sim.step()
    depth = factor * (numbers(robot.data.joint_pos)[:, 0] - limit)
    np.testing.assert_allclose(depth[2:], 5.0 / (factor * k[2:]), rtol=1e-3)


@pytest.mark.slow
def test_stiffness_of_limits_in_some_worlds_leaves_the_others_alone(rng):
    """Other worlds keep every bit; their limits stay those of MuJoCo, and the data say NaN."""
    start = 0.3 + 0.3 * rng.random((WORLDS, 1))
    states = []
    for chosen in (None, [1, 3]):
        robot = carts(rng)
        if chosen is not None:
            robot.set_fixed_tendon_limit_stiffness(500.0, env_ids=chosen)
            robot.write_fixed_tendon_properties_to_sim(env_ids=chosen)
        robot.write_joint_state_to_sim(start, 0.0)
        for _ in range(10):
            robot.sim.step()
        states.append(robot.sim.state.joint_q.numpy().copy())
    np.testing.assert_array_equal(states[0][[0, 2]], states[1][[0, 2]])
    assert (states[0][[1, 3]] != states[1][[1, 3]]).all()
    found = robot.data.fixed_tendon_limit_stiffness.numpy()[:, 0]
    np.testing.assert_array_equal(found, [np.nan, 500.0, np.nan, 500.0])


def test_bad_properties_are_named(robot):
    with pytest.raises(ValueError, match=r"^stiffness.*fixed tendons"):
        robot.set_fixed_tendon_stiffness(-1.0)
    with pytest.raises(ValueError, match=r"limit_stiffness.*spatial tendons"):
        robot.set_spatial_tendon_limit_stiffness(-1.0)
    with pytest.raises(IndexError, match="fixed_tendon_ids: index 2"):
        robot.set_fixed_tendon_damping(1.0, fixed_tendon_ids=[2])
    robot.set_fixed_tendon_limit(np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match=r"'cross'.*instance 0\b.*lower"):
        robot.write_fixed_tendon_properties_to_sim()
    assert isinstance(robot.data.fixed_tendon_limit, wp.array)
