"""Tendons in SolverFeatherstone: energy, friction, limits, drives, the motion of MuJoCo, equal bits."""

import mujoco
import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, ModelFlags, dynamics
from newton_like.model.actuators import Actuator
from newton_like.model.tendons import Tendon
from newton_like.solvers import SolverFeatherstone
from tests.support.tendons import chain, two_bars


def model_of(xml: str, dtype=wp.float64, copies: int = 1):
    """The robots of a text. In double precision they have a motor that exerts no force: they share the kernel of the tests of actuators."""
    robot = ModelBuilder()
    robot.add_mjcf(xml)
    if dtype is wp.float64:
        robot.add_actuator(Actuator(label="idle", transmission="joint", target=0))
    builder = ModelBuilder()
    builder.replicate(robot, copies)
    return builder.finalize("cpu", dtype=dtype)


def solver_of(model, **options) -> SolverFeatherstone:
    return SolverFeatherstone(
        model, **{"evaluator": "general", "width": 1 if model.dtype is wp.float64 else None, **options}
    )


def energy(model, state) -> float:
    """Mechanical energy and that of the springs."""
    lengths = dynamics.tendon_lengths(model, state).numpy()[0]
    low, high = model.tendon_rest_lower.numpy(), model.tendon_rest_upper.numpy()
    stretch = np.maximum(lengths - high, 0.0) + np.minimum(lengths - low, 0.0)
    return float(
        dynamics.mechanical_energy(model, state).numpy()[0] + 0.5 * model.tendon_stiffness.numpy() @ stretch**2
    )


SPRINGS = (
    '<spatial name="s" stiffness="{k}" damping="{d}" springlength=".3"><site site="sa"/><site site="sb"/></spatial>'
    '<fixed name="f" stiffness="{f}" springlength="-.2 .3"><joint joint="a" coef="1"/><joint joint="b" coef="-.7"/></fixed>'
)


@pytest.mark.slow
def test_springs_keep_energy(rng):
    """0.05 % of 20 J over 2 s, at steps of 1 ms and of 0.5 ms, with springs that go slack."""
    k, f = rng.uniform(50.0, 300.0), rng.uniform(1.0, 10.0)
    model = model_of(two_bars(SPRINGS.format(k=k, d=0.0, f=f)))
    drifts = []
    for dt in (1.0e-3, 0.5e-3):
        state, solver = model.state(), solver_of(model)
        start, most = energy(model, state), 0.0
        for i in range(round(2.0 / dt)):
            solver.step(state, state, dt=dt)
            if i % 10 == 0:
                most = max(most, abs(energy(model, state) - start))
        drifts.append(most)
    assert max(drifts) < 1.0e-2


@pytest.mark.slow
def test_a_damper_loses_the_work_of_its_force(rng):
    """The work of the tendon's force over a step, force times change of length, is the energy that is lost."""
    model = model_of(two_bars(SPRINGS.format(k=0.0, d=rng.uniform(1.0, 5.0), f=0.0)))
    state, solver, dt = model.state(), solver_of(model), 5.0e-4
    start, work = energy(model, state), 0.0
    for _ in range(1000):
        before = dynamics.tendon_lengths(model, state).numpy()[0]
        solver.step(state, state, dt=dt)
        work += solver.tendon_forces().numpy() @ (dynamics.tendon_lengths(model, state).numpy()[0] - before)
    lost = energy(model, state) - start
    assert work < -0.02 and lost == pytest.approx(work, abs=2e-3 * abs(work) + 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("stiffness", [1.0e5, 1.0e9])
def test_stiff_springs_and_dampers_of_any_size_come_to_rest(rng, stiffness):
    spring = f'<spatial name="s" stiffness="{stiffness}" damping="{stiffness}" springlength=".25">'
    spring += '<site site="sa"/><site site="sb"/></spatial>'
    model = model_of(two_bars(spring), wp.float32)
    state, solver = model.state(), solver_of(model)
    first = energy(model, state)
    for _ in range(300):
        solver.step(state, state, dt=0.01)
    assert np.isfinite(state.joint_q.numpy()).all()
    assert energy(model, state) < max(first, 30.0)


def test_friction_holds_below_its_threshold(rng):
    """The force that the weight needs is held by friction above it, and not by friction below."""
    weight, drop = rng.uniform(0.5, 3.0), 9.81
    for share, moves in ((1.05, False), (0.95, True)):
        xml = (
            '<mujoco><worldbody><body><joint name="z" type="slide" axis="0 0 1"/>'
            f'<geom size=".1" mass="{weight}" contype="0" conaffinity="0"/></body></worldbody><tendon>'
            f'<fixed name="t" frictionloss="{share * weight * drop / 2}"><joint joint="z" coef="-2"/></fixed></tendon></mujoco>'
        )
        model = model_of(xml)
        state, solver = model.state(), solver_of(model)
        for _ in range(100):
            solver.step(state, state, dt=0.005)
        z = state.joint_q.numpy()[0]
        if moves:
            # the net force is the weight less the friction
            assert z == pytest.approx(-0.5 * drop * (1.0 - share) * 0.5**2, rel=0.05)
        else:
            assert abs(z) < 1e-6
            assert abs(solver.tendon_forces().numpy()[0]) == pytest.approx(weight * drop / 2, rel=1e-3)


FALLS = {
    "springs": SPRINGS.format(k=100.0, d=3.0, f=4.0),
    "limit": '<spatial name="l" range="0 .9" limited="true"><site site="sb"/><site site="w"/></spatial>',
    "friction": '<fixed name="f" frictionloss="1.5"><joint joint="a" coef="1"/><joint joint="b" coef="2"/></fixed>',
    "inertia of a line": (
        '<spatial name="s" armature=".5" stiffness="30"><site site="sa"/><site site="w"/><pulley divisor="2"/><site site="sb"/>'
        '<site site="w"/></spatial>'
    ),
    "inertia": '<fixed name="f" armature=".3"><joint joint="a" coef="1"/><joint joint="b" coef="-2"/></fixed>',
    "pulley": (
        '<spatial name="p" stiffness="300" damping="5" springlength=".4"><site site="w"/><site site="sa"/><pulley divisor="2"/>'
        '<site site="sa"/><site site="sb"/></spatial>'
    ),
}


@pytest.mark.parametrize("kind", FALLS)
def test_falls_are_those_of_mujoco(rng, kind):
    """Over 0.2 s, at steps of 0.2 ms: the methods of both are of first order in dt."""
    xml = two_bars(FALLS[kind], 'timestep=".0002"')
    peer = mujoco.MjModel.from_xml_string(xml)
    # friction without creep
    peer.tendon_solref_fri[:], peer.tendon_solimp_fri[:] = [[4e-4, 1.0]], [[0.9999, 0.9999, 0.001, 0.5, 2.0]]
    data = mujoco.MjData(peer)
    model = model_of(xml)
    state, solver = model.state(), solver_of(model, iterations=20)
    q, qd = rng.uniform(-0.1, 0.1, 2), rng.normal(size=2)
    state.joint_q, state.joint_qd = q, qd
    data.qpos[:], data.qvel[:] = q, qd
    for _ in range(1000):
        solver.step(state, state, dt=peer.opt.timestep)
        mujoco.mj_step(peer, data)
    # the softness of MuJoCo's limits counts with the inertia at the start
    atol = 2e-2 if kind == "limit" else 2e-3 * (1.0 + np.abs(data.qvel).max() * 0.2)
    np.testing.assert_allclose(state.joint_q.numpy(), data.qpos, rtol=0, atol=atol)


ACTUATORS = {
    "motor": ('<motor name="m" tendon="t" gear="3"/>', 0.7),
    "limited": ('<motor name="m" tendon="t" gear="3" ctrlrange="-1 1"/>', 5.0),
    "position": ('<position name="m" tendon="t" kp="20" kv="2" gear="2"/>', 0.5),
    "velocity": ('<velocity name="m" tendon="t" kv="3"/>', 1.0),
}


@pytest.mark.parametrize("kind", ACTUATORS)
def test_actuators_of_tendons_are_those_of_mujoco(rng, kind):
    actuator, control = ACTUATORS[kind]
    tendon = '<fixed name="t"><joint joint="a" coef="1"/><joint joint="b" coef=".5"/></fixed>'
    xml = two_bars(tendon, 'timestep=".0002"', actuator)
    peer = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(peer)
    builder = ModelBuilder()
    (made,) = builder.add_mjcf(xml).actuators
    builder.add_actuator(Actuator(label="idle", transmission="joint", target=0))
    model = builder.finalize("cpu", dtype=wp.float64)
    assert made.index == 0 and made.drive.startswith("tendon_")
    state, solver, controls = model.state(), solver_of(model), model.control()
    setattr(controls, made.drive, [made.factor * control + made.offset])
    data.ctrl[0] = control
    for _ in range(500):
        solver.step(state, state, controls, dt=peer.opt.timestep)
        mujoco.mj_step(peer, data)
    np.testing.assert_allclose(state.joint_q.numpy(), data.qpos, rtol=0, atol=2e-3)


@pytest.mark.slow
def test_both_evaluators_and_all_batches_give_the_same_bits(rng):
    xml = chain(rng).replace(
        'name="f"', 'name="f" stiffness="20" damping="1" frictionloss=".1" range="-1 1" limited="true"'
    )
    xml = xml.replace('name="a"', 'name="a" stiffness="30" armature=".1" range="0 .5" limited="true"').replace(
        'name="t0"', 'name="t0" frictionloss=".2"'
    )
    q, qd = rng.normal(size=(2, 9, 6)) * 0.5
    pull = -rng.uniform(size=(9, 11))
    results = []
    for evaluator, worlds in (("general", range(9)), ("specialised", range(9)), ("general", [4]), ("specialised", [4])):
        model = model_of(xml, wp.float32, len(worlds))
        state, control = model.state(), model.control()
        state.joint_q, state.joint_qd, control.tendon_f = (x[worlds].ravel() for x in (q, qd, pull))
        solver = solver_of(model, evaluator=evaluator)
        for _ in range(40):
            solver.step(state, state, control, dt=0.002)
        found = np.concatenate(
            [state.joint_q.numpy().reshape(len(worlds), -1), solver.tendon_forces().numpy().reshape(len(worlds), -1)],
            axis=1,
        )
        results.append(found[4] if len(worlds) > 1 else found[0])
    assert np.isfinite(results[0]).all()
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


@pytest.mark.slow
@pytest.mark.parametrize("varying", [(), ("shape_transform",)])
def test_specialised_code_follows_edits_of_tendons(rng, varying):
    """Numbers of tendons are read; places of sites are constants of the code, unless they vary, until they are edited."""
    model = model_of(chain(rng), wp.float32, 9)
    solvers = [solver_of(model, evaluator=evaluator, varying=varying) for evaluator in ("general", "specialised")]
    q = rng.normal(size=54) * 0.3

    def compare():
        found = []
        for solver in solvers:
            state = model.state()
            state.joint_q = q
            solver.reset(state, None, q)
            for _ in range(10):
                solver.step(state, state, dt=0.002)
            found.append(
                np.concatenate([state.joint_q.numpy(), state.joint_qd.numpy(), solver.tendon_forces().numpy()])
            )
        np.testing.assert_array_equal(*found)
        return found[0]

    before = compare()
    kernel = solvers[1]._steppers[0].kernel
    model.tendon_stiffness = rng.uniform(10.0, 50.0, model.tendon_count)
    for solver in solvers:
        solver.notify_model_changed(ModelFlags.TENDON_PROPERTIES)
    after = compare()
    assert np.abs(after - before).max() > 1e-4
    assert solvers[1]._steppers[0].kernel is kernel
    for spread in (1.0, rng.uniform(0.9, 1.1, (model.shape_count, 1))):
        transform = model.shape_transform.numpy()
        transform[:, :3] *= 1.01 * spread
        model.shape_transform.assign(transform)
        for solver in solvers:
            solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
        before, after = after, compare()
        assert np.abs(after - before).max() > 1e-4
        # the code holds places no more after the first edit of one
        assert (solvers[1]._steppers[0].kernel is kernel) is bool(varying)


def test_the_first_inertia_of_a_tendon_that_varies_makes_no_table_again(rng):
    """Its array can be named; the result is that of a solver that is made after the edit."""
    model = model_of(chain(rng, wraps=0), copies=2)
    solver = solver_of(model, varying=("tendon_armature", "tendon_stiffness", "actuator_gear"))
    before = solver.model.state()
    solver.step(before, before, dt=0.002)
    steppers = solver._steppers
    model.tendon_armature = rng.uniform(0.1, 0.3, model.tendon_count)
    solver.notify_model_changed(ModelFlags.TENDON_PROPERTIES)
    q, found = rng.normal(size=model.joint_coord_count) * 0.3, []
    for each in (solver, solver_of(model)):
        state = model.state()
        each.reset(state, None, q)
        for _ in range(20):
            each.step(state, state, dt=0.002)
        found.append(state.joint_qd.numpy())
    assert solver._steppers is steppers
    np.testing.assert_array_equal(*found)
    assert np.abs(found[0]).max() > 0.01


def test_numbers_may_differ_between_worlds_and_be_edited(rng):
    """Worlds with other stiffness move as models with that stiffness do."""
    xml = two_bars(SPRINGS.format(k=10.0, d=0.1, f=1.0))
    stiffness = rng.uniform(10.0, 100.0, (3, 2))
    model = model_of(xml, copies=3)
    state, solver = model.state(), solver_of(model)
    solver.step(state, state, dt=1.0e-3)
    state = model.state()
    model.tendon_stiffness = stiffness.ravel()
    solver.notify_model_changed(ModelFlags.TENDON_PROPERTIES)
    solver.reset(state)
    lone = model_of(xml)
    for _ in range(50):
        solver.step(state, state, dt=1.0e-3)
    for i in range(3):
        lone.tendon_stiffness = stiffness[i]
        alone, own = lone.state(), solver_of(lone)
        for _ in range(50):
            own.step(alone, alone, dt=1.0e-3)
        np.testing.assert_array_equal(state.joint_q.numpy().reshape(3, 2)[i], alone.joint_q.numpy())


def test_unsupported_tendons_are_refused_by_name(rng):
    bars = '<spatial name="s" stiffness="1"><site site="sa"/><geom geom="g"/><site site="w"/></spatial>'
    model = model_of(
        two_bars(bars).replace("<worldbody>", '<worldbody><geom name="g" size=".1" contype="0" conaffinity="0"/>')
    )
    model.tendon_armature = [1.0]
    with pytest.raises(ValueError, match=r"tendon 'mujoco/s' \(index 0\) wraps.*inertia"):
        solver_of(model)
    builder = ModelBuilder()
    joints = []
    for _ in range(2):
        link = builder.add_link(mass=1.0, inertia=np.eye(3))
        joints.append(builder.add_joint_revolute(-1, link, axis=(0, 0, 1)))
        builder.add_articulation([joints[-1]])
    ends = [builder.add_site(-1, label=f"end_{i}") for i in range(2)]
    builder.add_tendon(Tendon(label="still", path=tuple(("site", s) for s in ends)))
    with pytest.raises(ValueError, match=r"'still'.*world"):
        solver_of(builder.finalize("cpu"))
    builder.tendons.clear()
    builder.add_tendon(Tendon(label="far", joints=tuple((j, 0, 1.0) for j in joints)))
    with pytest.raises(ValueError, match=r"tendon 'far'.*2 articulations"):
        solver_of(builder.finalize("cpu"))
    model = model_of(two_bars(SPRINGS.format(k=1.0, d=0.0, f=0.0)))
    model.tendon_damping = [-1.0, 0.0]
    with pytest.raises(ValueError, match=r"tendon 'mujoco/s'.*tendon_damping is -1"):
        solver_of(model)
