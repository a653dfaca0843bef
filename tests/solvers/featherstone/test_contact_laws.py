"""Contacts with MuJoCo's settings: motions and laws are those of MuJoCo, friction has closed forms, and nothing else changes.

Half a step of drift comes before and after the impulses of a step. Positions half a step later, at the velocity of the state, are those of
MuJoCo's Euler integrator.
"""

import re

import mujoco
import numpy as np
import pytest
import warp as wp
from newton_like.kernels.tree import (
    LAW_BY_RULE,
    LAW_DAMPING,
    LAW_IMPEDANCE,
    LAW_IMPEDANCE_MOST,
    LAW_MU,
    LAW_SOFT,
    LAW_STIFFNESS,
)

from newton_like import ModelBuilder, ModelFlags, ShapeConfig
from newton_like.importers.mjcf import MjcfWarning
from newton_like.importers.xml_source import ImportFileError
from newton_like.solvers import SolverFeatherstone

# each test compiles steps of other scenes
pytestmark = pytest.mark.slow

DT = 0.002
G = 9.81


def softness(rng, direct: bool = False) -> str:
    """Random settings of softness."""
    ref = (
        (-rng.uniform(1e3, 1e4), -rng.uniform(10.0, 100.0))
        if direct
        else (rng.uniform(0.005, 0.05), rng.uniform(0.3, 1.5))
    )
    low, high, width = rng.uniform(0.1, 0.9), rng.uniform(0.5, 0.99), rng.uniform(5e-4, 1e-2)
    curve = (rng.uniform(0.2, 0.8), rng.uniform(1.0, 4.0))
    numbers = " ".join(str(float(x)) for x in (low, high, width, *curve))
    return f'solref="{ref[0]} {ref[1]}" solimp="{numbers}"'


def scene(bodies: str, extra: str = "", gravity: float = G) -> str:
    option = f'<option timestep="{DT}" cone="elliptic" gravity="0 0 {-gravity}"/>'
    return f"<mujoco>{option}<worldbody>{bodies}</worldbody>{extra}</mujoco>"


def falling(rng, shape: str, height: float, settings: str) -> str:
    return f'<body pos="0 0 {height}"><freejoint/><geom {shape} mass="{rng.uniform(0.1, 10.0)}" {settings}/></body>'


def built(xmls, dtype=wp.float64):
    """A world for each text."""
    builder = ModelBuilder()
    for xml in xmls:
        builder.begin_world()
        builder.add_mjcf(xml)
        builder.end_world()
    return builder.finalize(dtype=dtype)


def motions(model, steps: int, **options):
    """Positions of all bodies after each step, half a step later, ``[steps, bodies, 3]``, and the last state."""
    solver, now, then = SolverFeatherstone(model, **options), model.state(), model.state()
    found = []
    for _ in range(steps):
        solver.step(now, then, dt=DT)
        now, then = then, now
        found.append(now.body_q.numpy()[:, :3] + 0.5 * DT * now.body_qd.numpy()[:, :3])
    return np.array(found), now


def motions_of_mujoco(xmls, steps: int) -> np.ndarray:
    worlds = []
    for xml in xmls:
        model = mujoco.MjModel.from_xml_string(xml)
        data, found = mujoco.MjData(model), []
        for _ in range(steps):
            mujoco.mj_step(model, data)
            mujoco.mj_kinematics(model, data)
            found.append(data.xpos[1:].copy())
        worlds.append(found)
    return np.concatenate(np.array(worlds), axis=1) if len(worlds) == 1 else np.concatenate(worlds, axis=1)


PLANE = '<geom type="plane" size="1 1 1" {}/>'
BALL, BOX = 'type="sphere" size=".1"', 'type="box" size=".2 .15 .1"'


@pytest.mark.parametrize("direct", [False, True])
def test_balls_bounce_and_rest_as_in_mujoco(rng, direct):
    """Each world has its own numbers; custom attributes have single precision."""
    xmls = [
        scene(PLANE.format(softness(rng, direct)) + falling(rng, BALL, 0.13, softness(rng, direct))) for _ in range(16)
    ]
    found, _ = motions(built(xmls), 400, evaluator="general")
    np.testing.assert_allclose(found, motions_of_mujoco(xmls, 400), rtol=0.0, atol=2e-8)


@pytest.mark.slow
def test_boxes_and_pairs_of_bodies_move_as_in_mujoco(rng):
    """A box on a plane, a ball on a fixed box, and two balls that meet: the sums of inverse masses are those of MuJoCo."""
    two = falling(rng, BALL, 0.0, softness(rng)) + falling(rng, BALL, 0.199, softness(rng))
    fixed = f'<geom type="box" size="1 1 .1" solmix="{rng.uniform(0.1, 3.0)}" {softness(rng)}/>'
    cases = [
        scene(PLANE.format(softness(rng)) + falling(rng, BOX, 0.1, softness(rng))),
        scene(fixed + falling(rng, BALL, 0.25, softness(rng))),
        scene(two, gravity=0.0),
    ]
    for xml in cases:
        found, _ = motions(built([xml]), 400, evaluator="general", iterations=50)
        np.testing.assert_allclose(found, motions_of_mujoco([xml], 400), rtol=0.0, atol=1e-6)


def test_impedances_out_of_range_are_clipped_as_in_mujoco(rng):
    """Impedances above 1 and below 0, a negative width, and a power below 1."""
    xmls = []
    for solimp in ("2 1 .01", "-1 .9 .01", ".9 .95 -1", ".5 .9 .01 .5 .1", ".5 .9 .01 2 2"):
        settings = f'solimp="{solimp}"'
        xmls.append(scene(PLANE.format(settings) + falling(rng, BALL, 0.13, settings)))
    found, _ = motions(built(xmls), 200, evaluator="general")
    np.testing.assert_allclose(found, motions_of_mujoco(xmls, 200), rtol=0.0, atol=2e-8)


def test_penetration_at_rest_is_that_of_the_formula(rng):
    """In single precision and at another time step: k d^2 depth = (1 - d) g."""
    width, d, time, ratio = (
        rng.uniform(0.01, 0.05),
        rng.uniform(0.5, 0.95),
        rng.uniform(0.03, 0.06),
        rng.uniform(0.7, 1.5),
    )
    settings = f'solref="{time} {ratio}" solimp="{d} {d} {width}"'
    model = built([scene(PLANE.format(settings) + falling(rng, BALL, 0.1, settings))], wp.float32)
    found, _ = motions(model, 1000)
    depth = (1.0 - d) * G / d**2 * (d * time * ratio) ** 2
    assert 0.1 - found[-1, 0, 2] == pytest.approx(depth, rel=1e-3)


@pytest.mark.slow
def test_both_evaluators_and_all_batches_give_the_same_bits(rng):
    xml = scene(PLANE.format(softness(rng)) + falling(rng, BOX, 0.12, softness(rng)))
    results = [
        motions(built([xml] * n, wp.float32), 60, evaluator=kind)[0]
        for n, kind in ((1, "general"), (1, "specialised"), (9, "specialised"))
    ]
    np.testing.assert_array_equal(results[0], results[1])
    for k in range(9):
        np.testing.assert_array_equal(results[0][:, 0], results[2][:, k])


def random_geom(rng, name: str, place: str, soft: float) -> str:
    settings = [
        f'condim="{rng.choice([1, 3, 4, 6])}"',
        f'priority="{rng.integers(-1, 2)}"',
        f'solmix="{rng.choice([0.0, rng.uniform(0.1, 3.0)])}"',
    ]
    settings.append('friction="{} {} {}"'.format(*rng.uniform(0.01, 1.0, 3)))
    if rng.random() < soft:
        settings.append(softness(rng, rng.random() < 0.3))
    return f'<geom name="{name}" {place} {" ".join(settings)}/>'


def test_laws_are_those_of_mujocos_contacts(rng):
    """Priority, solmix, condim and explicit pairs, for contacts with a plane and with a fixed box."""
    for _ in range(60):
        ground = rng.choice(
            [PLANE.format("").split("<geom ")[1].split("/>")[0], 'type="box" size="1 1 .1" pos="0 0 -.1"']
        )
        bodies = (
            random_geom(rng, "a", ground, 0.7)
            + f'<body pos="0 0 .09"><freejoint/>{random_geom(rng, "b", BALL, 1.0)}</body>'
        )
        extra = ""
        if rng.random() < 0.3:
            friction = "{0} {0} {1} {2} {2}".format(*rng.uniform(0.01, 1.0, 3))
            extra = f'<contact><pair geom1="a" geom2="b" friction="{friction}" {softness(rng)}/></contact>'
        xml = scene(bodies, extra)
        reference = mujoco.MjModel.from_xml_string(xml)
        data = mujoco.MjData(reference)
        mujoco.mj_forward(reference, data)
        contact = data.contact[0]
        solver = SolverFeatherstone(built([xml]), evaluator="general")
        parameters = solver._steppers[0].work.parameters
        law = parameters.rows()[0, parameters.at["law"] :]
        assert law[LAW_SOFT] == 1.0
        wanted = [
            contact.friction[0] if contact.dim > 1 else 0.0,
            contact.friction[2] if contact.dim > 3 else 0.0,
            contact.friction[3] if contact.dim > 4 else 0.0,
        ]
        assert law[LAW_BY_RULE] == 1.0
        np.testing.assert_allclose(law[LAW_MU : LAW_MU + 3], wanted, rtol=1e-6)
        time, ratio = contact.solref
        most = law[LAW_IMPEDANCE_MOST]
        assert most == pytest.approx(contact.solimp[1], rel=1e-6)
        assert law[LAW_IMPEDANCE] == pytest.approx(contact.solimp[0], rel=1e-6)
        stiffness, damping = (-time, -ratio) if time < 0.0 else (1.0 / (time * ratio) ** 2, 2.0 / time)
        np.testing.assert_allclose(law[[LAW_STIFFNESS, LAW_DAMPING]], [stiffness, damping], rtol=1e-6)


def pushed(xml: str, velocity, steps: int):
    """The velocity of a free body after so many steps, from this one, and the model's bodies at rest before."""
    model = built([xml])
    model.joint_qd.assign(np.asarray(velocity, dtype=np.float64))
    _, last = motions(model, steps, evaluator="general", iterations=50)
    return last.joint_qd.numpy()


@pytest.mark.slow
def test_sliding_force_is_that_of_the_combined_friction(rng):
    """The larger friction of both, that of the higher priority, and none for condim 1."""
    low, high = rng.uniform(0.1, 0.2), rng.uniform(0.3, 0.5)
    cases = [
        (f'friction="{low}"', f'friction="{high}"', high),
        (f'friction="{low}"', "", 1.0),
        (f'friction="{low}" condim="4"', f'friction="{high}"', high),
        (f'friction="{low}" priority="1"', f'friction="{high}"', low),
        ('condim="1"', 'condim="1"', 0.0),
    ]
    for ground, block, mu in cases:
        xml = scene(PLANE.format(ground) + falling(rng, 'type="box" size=".2 .15 .02"', 0.02, block))
        speed = pushed(xml, [2.0, 0.0, 0.0, 0.0, 0.0, 0.0], 100)[0]
        assert 2.0 - speed == pytest.approx(mu * G * 100 * DT, rel=1e-3, abs=1e-9)


@pytest.mark.slow
def test_spinning_balls_slow_down_by_condim(rng):
    """Torque mu_torsional m g about the normal with condim 4 of either geom, and none with condim 3."""
    torsional = rng.uniform(0.002, 0.004)
    for condim, share in ((4, 1.0), (3, 0.0)):
        settings = f'friction="1 {torsional} .001"'
        xml = scene(PLANE.format(f'{settings} priority="1" condim="{condim}"') + falling(rng, BALL, 0.1, settings))
        spin = pushed(xml, [0.0, 0.0, 0.0, 0.0, 0.0, 20.0], 100)[5]
        assert 20.0 - spin == pytest.approx(share * torsional * G / (0.4 * 0.1**2) * 100 * DT, rel=1e-3, abs=1e-9)


def test_a_plane_of_the_engine_has_no_share_in_softness_but_in_friction(rng):
    settings, mu = softness(rng), rng.uniform(0.1, 0.5)
    builder = ModelBuilder()
    builder.add_mjcf(scene(falling(rng, BALL, 0.1, f'friction="{mu}" condim="4" {settings}')))
    builder.add_ground_plane(cfg=ShapeConfig(mu=2.0 * mu))
    parameters = (
        SolverFeatherstone(builder.finalize(dtype=wp.float64), evaluator="general")._steppers[0].work.parameters
    )
    law = parameters.rows()[0, parameters.at["law"] :]
    time, ratio = (float(x) for x in re.search(r'solref="(\S+) (\S+)"', settings).groups())
    assert law[LAW_DAMPING] == pytest.approx(2.0 / time, rel=1e-6)
    assert law[LAW_STIFFNESS] == pytest.approx(1.0 / (time * ratio) ** 2, rel=1e-6)
    assert law[LAW_MU] == pytest.approx(2.0 * mu, rel=1e-6)


def test_pairs_without_numbers_have_mujocos_defaults(rng):
    """Settings of the geoms do not count for their pair."""
    geom = f'friction="{rng.uniform(0.1, 0.4)}" condim="{rng.choice([1, 6])}" {softness(rng)}'
    bodies = f'<geom name="a" type="plane" size="1 1 1" {geom}/><body pos="0 0 .09"><freejoint/><geom name="b" size=".1" {geom}/></body>'
    xml = scene(bodies, '<contact><pair geom1="a" geom2="b"/></contact>')
    reference = mujoco.MjModel.from_xml_string(xml)
    parameters = SolverFeatherstone(built([xml]), evaluator="general")._steppers[0].work.parameters
    law = parameters.rows()[0, parameters.at["law"] :]
    np.testing.assert_allclose(law[LAW_MU : LAW_MU + 3], [reference.pair_friction[0, 0], 0.0, 0.0], rtol=1e-6)
    time, ratio = reference.pair_solref[0]
    np.testing.assert_allclose(law[[LAW_STIFFNESS, LAW_DAMPING]], [1.0 / (time * ratio) ** 2, 2.0 / time], rtol=1e-6)
    np.testing.assert_allclose(law[[LAW_IMPEDANCE, LAW_IMPEDANCE_MOST]], reference.pair_solimp[0, :2], rtol=1e-6)


def test_the_larger_friction_is_for_geoms_of_files_alone(rng):
    """A plane of the engine and a geom have the mean friction, also where geoms of the file have the larger one."""
    one, two, mu = rng.uniform(0.1, 0.3), rng.uniform(0.4, 0.6), rng.uniform(0.7, 0.9)
    builder = ModelBuilder()
    bodies = (falling(rng, BALL, 0.1, f'friction="{one}"'), falling(rng, BALL, 0.31, f'friction="{two}"'))
    builder.add_mjcf(scene("".join(bodies)))
    builder.add_ground_plane(cfg=ShapeConfig(mu=mu))
    model = builder.finalize(dtype=wp.float64)
    solver = SolverFeatherstone(model, evaluator="general")
    laws = solver._steppers[0].tables.laws
    by_rule = {
        frozenset(pair): law[LAW_BY_RULE]
        for *pair, law in zip(*(shapes[0].tolist() for shapes in laws.shapes), laws.table[0], strict=True)
    }
    assert by_rule == {frozenset((0, 1)): 1.0, frozenset((0, 2)): 0.0, frozenset((1, 2)): 0.0}


def test_files_without_settings_have_no_laws(rng):
    xml = scene(PLANE.format('friction="1 .1 .1" margin=".01"') + falling(rng, BALL, 0.1, 'condim="3"'))
    model = built([xml])
    assert not model.custom_attributes
    assert SolverFeatherstone(model, evaluator="general")._steppers[0].tables.laws is None


def test_edited_settings_act_after_a_notice(rng):
    """Another time constant, and another sliding friction."""
    xml = scene(PLANE.format('condim="4"') + falling(rng, BALL, 0.1, 'condim="4" ' + softness(rng)))
    model = built([xml])
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()

    def law():
        solver.step(state, state, dt=DT)
        parameters = solver._steppers[0].work.parameters
        return parameters.rows()[0, parameters.at["law"] :]

    before = law()[LAW_DAMPING]
    model.mujoco.solref.assign(2.0 * model.mujoco.solref.numpy())
    model.shape_material_mu.fill_(0.125)
    solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    assert law()[LAW_DAMPING] == pytest.approx(0.5 * before)
    assert law()[LAW_MU] == 0.125
    model.mujoco.condim.fill_(2)
    with pytest.raises(ValueError, match=r"shape '\S+geom_0' \(index 0\): mujoco:condim.*\b2\b.*1, 3, 4 or 6"):
        solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    model.mujoco.condim.fill_(3)
    model.mujoco.contact_rules.fill_(8)
    with pytest.raises(
        ValueError, match=r"shape '\S+geom_0' \(index 0\): mujoco:contact_rules is 8; give a sum of 1, 2 and 4"
    ):
        solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)


@pytest.mark.parametrize("handed", [False, True])
def test_edited_torsional_and_rolling_friction_of_a_plane_of_the_engine_acts_after_a_notice(rng, handed):
    """The plane states no settings; the ball takes the larger friction of both, as in MuJoCo."""

    def model_of(plane: ShapeConfig):
        builder = ModelBuilder()
        builder.add_mjcf(scene(falling(rng, BALL, 0.0999, 'condim="6" friction="1 0.001 0.0001"')))
        builder.add_ground_plane(cfg=plane)
        return builder.finalize("cpu", dtype=wp.float64)

    def spin(model, solver) -> np.ndarray:
        state, contacts = model.state(), model.contacts() if handed else None
        state.joint_qd.assign([0.0, 0.0, 0.0, 1.0, 2.0, 3.0])
        for _ in range(10):
            if handed:
                model.collide(state, contacts)
            solver.step(state, state, None, contacts, DT)
        return state.joint_qd.numpy()

    least, most = rng.uniform(0.002, 0.005, 2), rng.uniform(0.02, 0.05, 2)
    seed = rng.bit_generator.state
    found = []
    for start in (most, least):
        rng.bit_generator.state = seed
        model = model_of(ShapeConfig(mu_torsional=start[0], mu_rolling=start[1]))
        solver = SolverFeatherstone(model, evaluator="general")
        found.append(spin(model, solver))
        for name, x in zip(("torsional", "rolling"), most, strict=True):
            array = getattr(model, f"shape_material_mu_{name}")
            numbers = array.numpy()
            numbers[-1] = x
            array.assign(numbers)
        solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
        solver.reset(model.state())
        found.append(spin(model, solver))
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1.0e-12)
    np.testing.assert_allclose(found[3], found[0], rtol=0, atol=1.0e-12)
    assert np.abs(found[2] - found[0]).max() > 0.01


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('solimp=".9 .9 .1 .5 2 3"', r"line \d+.*solimp='.9 .9 .1 .5 2 3'.*\b5 numbers"),
        ('solmix="-1"', "solmix"),
        ('priority="1.5"', "priority='1.5'"),
    ],
)
def test_bad_settings_name_the_geom(settings, message):
    with pytest.raises(ImportFileError, match=message):
        ModelBuilder().add_mjcf(scene(f"<body><freejoint/><geom size='.1' {settings}/></body>"))


def test_settings_of_pairs_that_are_not_used_are_named():
    pair = '<pair geom1="a" geom2="b" friction="1 .5" solreffriction=".1 1"/>'
    bodies = '<geom name="a" type="plane" size="1 1 1"/><body pos="0 0 1"><freejoint/><geom name="b" size=".1"/></body>'
    with pytest.warns(MjcfWarning) as told:
        ModelBuilder().add_mjcf(scene(bodies, f"<contact>{pair}</contact>"))
    assert re.search(r"solreffriction.*a-b", str(told[0].message))
    assert re.search(r"tangents.*a-b", str(told[0].message))


def test_the_first_of_several_pairs_of_the_same_geoms_counts():
    pairs = "".join(
        f'<pair geom1="{one}" geom2="{two}" friction="{mu} {mu}"/>'
        for one, two, mu in (("b", "a", 0.25), ("a", "b", 0.5))
    )
    bodies = (
        '<geom name="a" type="plane" size="1 1 1"/><body pos="0 0 .1"><freejoint/><geom name="b" size=".1"/></body>'
    )
    with pytest.warns(MjcfWarning, match=r"several contact pairs; the first one counts \(1\): a-b"):
        model = built([scene(bodies, f"<contact>{pairs}</contact>")])
    parameters = SolverFeatherstone(model, evaluator="general")._steppers[0].work.parameters
    assert parameters.rows()[0, parameters.at["law"] + LAW_MU] == 0.25


def splayed(rng) -> str:
    """A body that falls on two legs with servos, which spread under the load and are then held apart by friction."""
    length, mass = rng.uniform(0.3, 0.5), rng.uniform(5.0, 15.0)
    stiffness, angle = rng.uniform(150.0, 250.0), rng.uniform(0.35, 0.5)
    legs = "".join(
        f'''<body name="leg{i}" pos="{0.1 * side} 0 0"><joint name="hip{i}" axis="0 1 0" damping="20" armature="0.1"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0 0 {-length}" mass="0.5" contype="0" conaffinity="0"/>
        <geom name="foot{i}" type="sphere" size="0.03" pos="0 0 {-length}" mass="0.1" friction="1"/></body>'''
        for i, side in enumerate((-1, 1))
    )
    body = f'''<geom type="plane" size="9 9 9" friction="1"/><body pos="0 0 {length * np.cos(angle) + 0.04}">
    <joint type="slide" axis="0 0 1"/><joint type="slide" axis="1 0 0"/>
    <geom type="box" size="0.1 0.1 0.05" mass="{mass}" contype="0" conaffinity="0"/>{legs}</body>'''
    servos = "".join(f'<position joint="hip{i}" kp="{stiffness}"/>' for i in range(2))
    key = f'<keyframe><key qpos="0 0 {angle} {-angle}" ctrl="{angle} {-angle}"/></keyframe>'
    return scene(body, f"<actuator>{servos}</actuator>{key}")


def test_feet_of_a_standing_robot_push_sideways_as_in_mujoco_with_hard_friction(rng):
    """The servos of legs that spread under the load press the feet sideways, and friction holds them. MuJoCo's own friction is soft: the
    feet creep until nothing presses them. With a large ``impratio`` they do not creep in MuJoCo, either, and the forces agree."""
    xml = splayed(rng)
    sideways = {}
    for ratio in (1, 10_000):
        m = mujoco.MjModel.from_xml_string(xml)
        m.opt.impratio, m.opt.iterations, m.opt.tolerance = ratio, 200, 1e-12
        d = mujoco.MjData(m)
        mujoco.mj_resetDataKeyframe(m, d, 0)
        mujoco.mj_step(m, d, int(5.0 / DT))
        force, wrench = 0.0, np.zeros(6)
        for i in range(d.ncon):
            mujoco.mj_contactForce(m, d, i, wrench)
            force += 0.5 * abs((d.contact[i].frame.reshape(3, 3).T @ wrench[:3])[0])
        sideways[ratio] = force
    builder = ModelBuilder()
    report = builder.add_mjcf(xml)
    key = mujoco.MjModel.from_xml_string(xml).key(0)
    builder.joint_q = key.qpos.tolist()
    model = builder.finalize("cpu", dtype=wp.float64)
    solver, state, control = (
        SolverFeatherstone(model, evaluator="general", iterations=32),
        model.state(),
        model.control(),
    )
    for actuator, target in zip(report.actuators, key.ctrl, strict=True):
        getattr(control, actuator.drive).numpy()[actuator.index] = actuator.factor * target + actuator.offset
    for _ in range(int(5.0 / DT)):
        solver.step(state, state, control, dt=DT)
    forces = solver.contact_forces().numpy()
    feet = [model.shape_label.index(next(x for x in model.shape_label if x.endswith(f"foot{i}"))) for i in range(2)]
    np.testing.assert_allclose(np.abs(forces[feet, 0]), sideways[10_000], rtol=0.05)
    assert sideways[1] < 0.5 * sideways[10_000]
