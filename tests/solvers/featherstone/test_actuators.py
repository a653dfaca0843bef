"""Actuators in SolverFeatherstone: forces, activations and motion of MuJoCo, work, weight, equal bits, edits, errors."""

import dataclasses

import mujoco
import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, ModelFlags, dynamics
from newton_like.model.actuators import Actuator
from newton_like.solvers import SolverFeatherstone
from tests.support.actuators import IDLE, KINDS, Pair, robot
from tests.support.tendons import two_bars

ACTIVATED = (
    "filter",
    "servo",
    "intvelocity",
    "cylinder",
    "muscle",
    "smooth",
    "scaled",
    "pulling",
    "early",
    "free_parent",
)


@pytest.fixture(scope="module")
def base():
    """The robot without actuators."""
    return Pair(robot(()))


@pytest.mark.parametrize(
    "kind", [k if k in ("damper", "servo", "muscle") else pytest.param(k, marks=pytest.mark.slow) for k in KINDS]
)
def test_accelerations_are_those_of_mujoco(kind, base, rng):
    pair = Pair(robot((kind,)))
    for _ in range(3):
        theirs, ours = pair.actuated(base, *pair.random(rng))
        # ours are differences of velocities over a step
        np.testing.assert_allclose(ours, theirs, atol=2e-3 * max(np.abs(theirs).max(), 1.0))


def test_accelerations_of_all_actuators_together(base, rng):
    pair = Pair(robot())
    assert pair.model.actuator_count == len(KINDS) - 1 + IDLE
    for _ in range(3):
        theirs, ours = pair.actuated(base, *pair.random(rng))
        np.testing.assert_allclose(ours, theirs, atol=1e-3 * np.abs(theirs).max())


def test_activations_are_those_of_mujoco(rng):
    """Over 100 steps with changing controls, within their ranges and beyond."""
    pair, dt = Pair(robot(ACTIVATED, dt=0.005)), 0.005
    qpos, qvel, act, ctrl = pair.random(rng)
    pair.set(qpos, 0.0 * qvel, act, ctrl)
    for _ in range(100):
        ctrl = rng.uniform(-2.0, 2.0, pair.mj.nu)
        pair.data.ctrl[:] = ctrl
        pair.give(ctrl)
        mujoco.mj_step(pair.mj, pair.data)
        pair.step(dt)
        np.testing.assert_allclose(pair.activations(), pair.data.act, atol=1e-12)


def test_the_curves_of_a_muscle(rng):
    """Torques of a muscle on a hinge over lengths and speeds, against the functions of MuJoCo."""
    prm = [
        0.7,
        1.1,
        rng.uniform(5.0, 20.0),
        200.0,
        rng.uniform(0.4, 0.7),
        rng.uniform(1.3, 1.8),
        1.5,
        1.3,
        rng.uniform(1.1, 1.5),
    ]
    names = ("force", "scale", "lmin", "lmax", "vmax", "fpmax", "fvmax")
    told = " ".join(f'{name}="{float(x)!r}"' for name, x in zip(names, prm[2:], strict=True))
    xml = (
        '<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="j" axis="0 1 0"/>'
        f'<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody><actuator>'
        f'<muscle joint="j" lengthrange="-1 1" range="{prm[0]} {prm[1]}" {told}/></actuator></mujoco>'
    )
    pair, dt, lengths = Pair(xml), 1.0e-7, np.array([-1.0, 1.0])
    for q in np.linspace(-2.5, 3.0, 12):
        for v in (-4.0, -1.0, 0.0, 0.5, 3.0):
            act = rng.uniform()
            pair.set([q], [v], [act], [act])
            pair.step(dt)
            torque = (pair.state.joint_qd.numpy()[0] - v) / dt
            gain = mujoco.mju_muscleGain(q, v, lengths, 1.0, np.array(prm))
            bias = mujoco.mju_muscleBias(q, lengths, 1.0, np.array(prm))
            assert torque == pytest.approx(gain * act + bias, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kinds", [("muscle", "smooth", "scaled", "filter", "free"), tuple(k for k in KINDS if k != "growing")]
)
def test_motion_is_that_of_mujoco(kinds, rng):
    """Over 0.2 s with constant controls, against MuJoCo's Runge-Kutta method."""
    dt = 1.0e-4
    pair = Pair(robot(kinds, dt=dt, integrator="RK4"))
    _, qvel, act, ctrl = pair.random(rng)
    pair.set(pair.mj.qpos0, 0.3 * qvel, act, 0.3 * ctrl)
    for _ in range(round(0.2 / dt)):
        mujoco.mj_step(pair.mj, pair.data)
        pair.step(dt)
    mujoco.mj_forward(pair.mj, pair.data)
    np.testing.assert_allclose(pair.velocities(), pair.data.qvel, atol=5e-3 * (1.0 + np.abs(pair.data.qvel).max()))
    np.testing.assert_allclose(pair.activations(), pair.data.act, atol=2e-4)


TREES = """<mujoco><default><geom contype="0" conaffinity="0"/></default><worldbody>
  <body><joint name="x" type="slide" axis="1 0 0"/><geom size=".05" pos=".3 0 .1"/><site name="slider" euler="0 90 0"/></body>
  <body pos="-.3 0 0"><joint name="y" axis="0 1 0"/><geom size=".04" pos="0 .1 .2"/><site name="crank" pos="0 0 .1"/></body>
  </worldbody><actuator>{}</actuator></mujoco>"""


@pytest.mark.parametrize(
    "actuator",
    [
        '<position cranksite="crank" slidersite="slider" cranklength=".45" kp="50" kv="3"/>',
        '<general site="slider" refsite="crank" gear="1 0 2 .1 0 0"/>',
    ],
)
@pytest.mark.slow
def test_sites_of_two_trees(actuator, rng):
    """Accelerations by an actuator between two trees, which are one articulation, are those of MuJoCo."""
    pair, base = Pair(TREES.format(actuator)), Pair(TREES.format(""))
    assert pair.model.articulation_count == 1
    theirs, ours = pair.actuated(base, *pair.random(rng))
    np.testing.assert_allclose(ours, theirs, atol=1e-3 * np.abs(theirs).max())


def energy(pair: Pair) -> float:
    return float(dynamics.mechanical_energy(pair.model, pair.state).numpy()[0])


@pytest.mark.slow
def test_a_muscle_gives_the_work_of_its_force(rng):
    """The work of the tendon's force, force times change of length, is the energy that is gained."""
    spatial = '<spatial name="s"><site site="sa"/><site site="w"/></spatial>'
    muscle = '<muscle tendon="s" lengthrange=".2 .8" force="30" fpmax="0.2"/>'
    pair, dt, work = Pair(two_bars(spatial, actuators=muscle)), 5.0e-4, 0.0
    pair.control.actuator_ctrl = [rng.uniform(0.3, 1.0)]
    start = energy(pair)
    for _ in range(600):
        before = dynamics.tendon_lengths(pair.model, pair.state).numpy()[0]
        pair.step(dt)
        after = dynamics.tendon_lengths(pair.model, pair.state).numpy()[0]
        work += pair.solver.tendon_forces().numpy() @ (after - before)
    assert abs(work) > 0.1 and energy(pair) - start == pytest.approx(work, rel=5e-3, abs=2e-3)


@pytest.mark.parametrize("stiffness", [1.0e4, 1.0e8])
def test_stiff_servos_of_any_size_are_stable(stiffness):
    """A position servo with an activation on a tendon, and one between sites."""
    tendon = '<fixed name="t"><joint joint="a" coef="1"/></fixed>'
    servos = (
        f'<general tendon="t" dyntype="filter" dynprm=".02" gainprm="{stiffness}" biastype="affine"'
        f' biasprm="0 {-stiffness} {-stiffness / 100}"/>'
    )
    pair = Pair(two_bars(tendon, actuators=servos))
    pair.control.actuator_ctrl = [-0.5]
    for _ in range(300):
        pair.step(0.01)
    assert pair.state.joint_q.numpy()[0] == pytest.approx(-0.5, abs=0.05)


@pytest.mark.slow
def test_weight_is_taken_away(rng):
    shares = rng.uniform(0.0, 1.5, 2)
    xml = '<mujoco><option><flag contact="disable"/></option><worldbody>' + "".join(
        f'<body name="b{i}" pos="{i} 0 0" gravcomp="{float(x)!r}"><freejoint/><geom size=".1"/></body>'
        for i, x in enumerate(shares)
    )
    pair = Pair(xml + "</worldbody></mujoco>")
    pair.step(0.01)
    falls = pair.state.joint_qd.numpy().reshape(2, 6)[:, 2] / 0.01
    np.testing.assert_allclose(falls, -9.81 * (1.0 - shares), rtol=1e-6)
    pair.model.mujoco.gravcomp.assign([1.0, 0.0])
    pair.solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    before = pair.state.joint_qd.numpy().copy()
    pair.step(0.01)
    falls = (pair.state.joint_qd.numpy() - before).reshape(2, 6)[:, 2] / 0.01
    np.testing.assert_allclose(falls, [0.0, -9.81], atol=1e-6)


@pytest.mark.slow
def test_mocap_bodies_pull_what_is_welded_to_them():
    """A soft weld to a mocap body that moves, beside MuJoCo."""
    xml = (
        '<mujoco><option timestep="0.001"><flag contact="disable"/></option><worldbody><body name="m" mocap="true" pos=".4 0 .6"/>'
        '<body name="hand" pos=".4 0 .6"><freejoint name="f"/><geom type="box" size=".05 .1 .2" mass="2"/></body></worldbody>'
        '<equality><weld body1="m" body2="hand" solref="0.02 1"/></equality></mujoco>'
    )
    pair = Pair(xml)
    at = pair.model.joint_q_start.numpy()[pair.report.mocaps["m"]]
    for i in range(200):
        x = 0.4 - 0.1 * i / 200
        q = pair.state.joint_q.numpy().copy()
        q[at] = x
        pair.state.joint_q.assign(q)
        pair.data.mocap_pos[0, 0] = x
        mujoco.mj_step(pair.mj, pair.data)
        pair.step(0.001)
    here = pair.state.joint_q.numpy()[pair.report.coords["f"] :][:7]
    np.testing.assert_allclose(here[:3], pair.data.qpos[:3], atol=5e-4)
    assert here[0] < 0.33 and abs(here[2] - 0.6) < 1e-3


def worlds_of(kinds, count: int, dtype=wp.float32):
    one = ModelBuilder()
    one.add_mjcf(robot(kinds))
    builder = ModelBuilder()
    builder.replicate(one, count)
    return builder.finalize("cpu", dtype=dtype)


@pytest.mark.slow
def test_specialised_code_has_the_bits_of_general_code(rng):
    model = worlds_of(("smooth", "servo", "site_filter", "pulling", "early", "ball"), 9)
    gains = model.actuator_gainprm.numpy()
    gains[:, 2] *= rng.uniform(0.5, 2.0, len(gains))
    model.actuator_gainprm.assign(gains)
    control = model.control()
    control.actuator_ctrl = rng.uniform(-1.0, 1.0, model.actuator_count).astype(np.float32)
    found = []
    for evaluator in ("general", "specialised"):
        state, solver = model.state(), SolverFeatherstone(model, evaluator=evaluator)
        for _ in range(50):
            solver.step(state, state, control, dt=0.002)
        found.append(np.concatenate([state.joint_q.numpy(), state.joint_qd.numpy(), state.actuator_act.numpy()]))
    assert np.isfinite(found[0]).all()
    np.testing.assert_array_equal(*found)


def test_worlds_have_their_own_parameters_and_resets(rng):
    """Worlds with edited numbers move as models that are built with them; a reset gives back activations of the chosen worlds."""
    model = worlds_of(("smooth", "site_filter"), 3, wp.float64)
    solver, state, control = SolverFeatherstone(model, evaluator="general", width=1), model.state(), model.control()
    solver.step(state, state, control, dt=0.002)
    gears, prm = rng.uniform(0.5, 2.0, 3), model.actuator_gainprm.numpy()
    count = IDLE + 2
    prm[IDLE::count, 2] *= gears
    model.actuator_gainprm.assign(prm)
    solver.notify_model_changed(ModelFlags.ACTUATOR_PROPERTIES)
    control.actuator_ctrl = [0.0, 0.0, 1.0, 0.5] * 3
    solver.reset(state)
    for _ in range(20):
        solver.step(state, state, control, dt=0.002)
    one = ModelBuilder()
    one.add_mjcf(robot(("smooth", "site_filter")))
    for world, gear in enumerate(gears):
        alone = ModelBuilder()
        alone.add_builder(one)
        prm = list(alone.actuators[IDLE].gainprm)
        prm[2] *= gear
        alone.actuators[IDLE] = dataclasses.replace(alone.actuators[IDLE], gainprm=tuple(prm))
        single = alone.finalize("cpu", dtype=wp.float64)
        own, its = single.state(), single.control()
        its.actuator_ctrl = [0.0, 0.0, 1.0, 0.5]
        other = SolverFeatherstone(single, evaluator="general", width=1)
        for _ in range(20):
            other.step(own, own, its, dt=0.002)
        np.testing.assert_allclose(state.joint_qd.numpy().reshape(3, -1)[world], own.joint_qd.numpy(), atol=1e-9)
    acts = state.actuator_act.numpy().reshape(3, count)
    assert (acts[:, IDLE:] > 0.05).all()
    solver.reset(state, world_mask=[1])
    expected = acts * np.array([1.0, 0.0, 1.0])[:, None]
    np.testing.assert_array_equal(state.actuator_act.numpy().reshape(3, count), expected)
    twin = state.clone()
    state.actuator_act.zero_()
    state.assign(twin)
    np.testing.assert_array_equal(state.actuator_act.numpy().reshape(3, count), expected)


def test_substeps_are_steps(rng):
    pair = Pair(robot(("smooth", "early", "servo")))
    other = Pair(robot(("smooth", "early", "servo")), substeps=4)
    state = pair.random(rng)
    for each in (pair, other):
        each.set(*state)
    for _ in range(4):
        pair.step(0.001)
    other.step(0.004)
    np.testing.assert_array_equal(pair.state.actuator_act.numpy(), other.state.actuator_act.numpy())
    np.testing.assert_array_equal(pair.state.joint_qd.numpy(), other.state.joint_qd.numpy())


def built(**settings) -> ModelBuilder:
    builder = ModelBuilder()
    builder.add_mjcf(robot(()))
    builder.add_actuator(Actuator(**{"label": "x", "transmission": "joint", "target": 0, **settings}))
    return builder


@pytest.mark.parametrize(
    "settings, told",
    [
        ({"transmission": "wheel"}, "transmission 'wheel'"),
        ({"target": 99}, "joint"),
        ({"transmission": "tendon", "target": 5}, "tendon"),
        ({"transmission": "site", "target": -1}, "site"),
        ({"gear": (1.0,)}, "gear.*6"),
        ({"gain": "magic"}, "gain 'magic'"),
        ({"dynamics": "filter", "dynprm": (-0.1, 0.0, 0.0)}, "time constant -0.1"),
        ({"gain": "muscle"}, "lengths?"),
        ({"ctrlrange": (1.0, -1.0)}, "ctrlrange"),
        ({"drive": "joint_f", "transmission": "site"}, "drive"),
        ({"transmission": "slidercrank", "target": 0}, "slider"),
        ({"transmission": "slidercrank", "target": 0, "reference": 1}, "rod"),
        ({"transmission": "body", "target": 99}, "body"),
        ({"transmission": "body", "bias": "affine"}, "length"),
        ({"dynamics": "dcmotor", "dynprm": (0.1, 0.0, 1.0)}, "resistance"),
        ({"dynamics": "dcmotor", "dynprm": (0.1, 1.0, 1.0), "drive": "joint_f"}, "drive"),
    ],
)
def test_wrong_actuators_are_refused(settings, told):
    with pytest.raises((ValueError, IndexError, TypeError), match=told):
        built(**settings)


@pytest.mark.parametrize("settings, told", [({"dof": 3}, r"dof 3\b"), ({"dof": -1}, r"dof -1\b")])
def test_wrong_dofs_are_refused(settings, told):
    model = built(**settings).finalize("cpu")
    with pytest.raises(ValueError, match=told):
        SolverFeatherstone(model)


def test_edits_to_negative_times_are_refused():
    model = built(dynamics="filter", dynprm=(0.1, 0.0, 0.0)).finalize("cpu")
    solver = SolverFeatherstone(model)
    numbers = model.actuator_dynprm.numpy()
    numbers[IDLE] = -1.0, 0.0, 0.0
    model.actuator_dynprm.assign(numbers)
    with pytest.raises(ValueError, match=r"actuator 'x' \(index 2\).*time constant -1\b"):
        solver.notify_model_changed(ModelFlags.ACTUATOR_PROPERTIES)


def test_actuators_on_sites_refuse_other_shapes():
    builder = ModelBuilder()
    bar = builder.add_link(mass=1.0, inertia=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
    builder.add_articulation([builder.add_joint_revolute(-1, bar)])
    site, box = builder.add_site(bar), builder.add_shape_box(bar, label="plate")
    for named in ({"target": box}, {"target": site, "reference": box}):
        for way in ({"transmission": "site"}, {"transmission": "slidercrank", "rod": 1.0}):
            with pytest.raises(ValueError, match=r"'x': its (target|reference) is shape .*'plate'.*no site.*add_site"):
                builder.add_actuator(Actuator(label="x", **{"reference": site, **way, **named}))
    assert builder.add_actuator(Actuator(label="x", transmission="site", target=site)) == 0
