"""Position limits with MuJoCo's settings: joints bounce, rest and settle as in MuJoCo; other limits stay as they are.

Positions half a step later, at the velocity of the state, are those of MuJoCo's Euler integrator, see `test_contact_laws`.
"""

import mujoco
import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, ModelFlags, eval_fk
from newton_like.importers.mjcf import MjcfWarning
from newton_like.programs.records import MASSES
from newton_like.solvers import SolverFeatherstone
from newton_like.solvers.featherstone.loop_weights import InverseMasses, dof_weights, tendon_weights

DT = 0.002


def limit_settings(rng, direct: bool) -> str:
    """Random settings. Where a spring is stiffer than one per step squared, it is softer here than in MuJoCo."""
    ref = (
        (-rng.uniform(1e3, 1e4), -rng.uniform(10.0, 100.0))
        if direct
        else (rng.uniform(0.005, 0.05), rng.uniform(0.5, 1.5))
    )
    low, high, width = rng.uniform(0.1, 0.9), rng.uniform(0.5, 0.99), rng.uniform(5e-4, 5e-2)
    curve = (rng.uniform(0.2, 0.8), rng.uniform(1.0, 4.0))
    numbers = " ".join(str(float(x)) for x in (low, high, width, *curve))
    margin = f'margin="{rng.uniform(0.0, 0.05)}"' if rng.random() < 0.5 else ""
    return f'solreflimit="{ref[0]} {ref[1]}" solimplimit="{numbers}" {margin}'


def joint_of(rng, kind: str, settings: str, name: str = "joint") -> str:
    axis = "0 1 0" if kind == "hinge" else "0 0 1"
    limits = (-rng.uniform(0.05, 0.3), rng.uniform(0.05, 0.3))
    return f'<joint name="{name}" type="{kind}" axis="{axis}" range="{limits[0]} {limits[1]}" {settings}/>'


def scene(body: str) -> str:
    option = f'<compiler angle="radian"/><option timestep="{DT}"><flag contact="disable" eulerdamp="disable"/></option>'
    return f"<mujoco>{option}<worldbody>{body}</worldbody></mujoco>"


def ball(rng) -> str:
    return f'<geom type="sphere" size=".05" pos="{rng.uniform(0.2, 0.4)} 0 0" mass="{rng.uniform(0.2, 2.0)}"/>'


def single(rng, kind: str, direct: bool) -> str:
    return scene(f"<body>{joint_of(rng, kind, limit_settings(rng, direct))}{ball(rng)}</body>")


def built(xmls, dtype=wp.float64):
    builder = ModelBuilder()
    for xml in xmls:
        builder.begin_world()
        builder.add_mjcf(xml)
        builder.end_world()
    return builder.finalize(dtype=dtype)


def motions(model, steps: int, **options) -> np.ndarray:
    """Coordinates after each step, half a step later, ``[steps, coordinates]``."""
    solver, now, then = SolverFeatherstone(model, **options), model.state(), model.state()
    found = []
    for _ in range(steps):
        solver.step(now, then, dt=DT)
        now, then = then, now
        found.append(now.joint_q.numpy() + 0.5 * DT * now.joint_qd.numpy())
    return np.array(found)


def motions_of_mujoco(xmls, steps: int) -> np.ndarray:
    worlds = []
    for xml in xmls:
        model = mujoco.MjModel.from_xml_string(xml)
        data, found = mujoco.MjData(model), []
        for _ in range(steps):
            mujoco.mj_step(model, data)
            found.append(data.qpos.copy())
        worlds.append(found)
    return np.concatenate(worlds, axis=1)


@pytest.mark.parametrize("direct", [False, True])
def test_joints_bounce_at_limits_and_rest_as_in_mujoco(rng, direct):
    """Hinges and slides of random loads; each world has its own numbers. Custom attributes have single precision."""
    for kind in ("hinge", "slide"):
        xmls = [single(rng, kind, direct) for _ in range(8)]
        found = motions(built(xmls), 500, evaluator="general")
        expected = motions_of_mujoco(xmls, 500)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=6.0e-7)


@pytest.mark.slow
def test_chains_settle_at_their_limits_as_in_mujoco(rng):
    """Two links, whose limits both carry load."""
    for _ in range(3):
        joints = [
            f'<joint type="hinge" axis="0 1 0" damping=".3" range="-.2 {x}" solreflimit=".02 1" solimplimit=".8 .9 .01"/>'
            for x in rng.uniform(0.02, 0.2, 2)
        ]
        arm = f'<body pos=".3 0 0">{joints[1]}{ball(rng)}</body>'
        xml = scene(f"<body>{joints[0]}{ball(rng)}{arm}</body>")
        found, expected = motions(built([xml]), 2000, evaluator="general")[-1], motions_of_mujoco([xml], 2000)[-1]
        limits = mujoco.MjModel.from_xml_string(xml).jnt_range[:, 1]
        assert (expected > limits + 1e-5).all(), "both are beyond their limits"
        np.testing.assert_allclose(found - limits, expected - limits, rtol=1e-4)


def driven(rng, dt: float = DT) -> str:
    """Two links that servos press against soft stops; gains, dampers and armatures are much larger than inertias over the time step."""
    joints, servos = [], []
    for name in ("shoulder", "elbow"):
        settings = f'damping="{rng.uniform(0.5, 5.0)}" armature="{rng.uniform(0.001, 0.02)}" solimplimit=".9 .95 .001"'
        joints.append(f'<joint name="{name}" axis="0 1 0" range="-.2 {rng.uniform(0.05, 0.2)}" {settings}/>')
        servos.append(f'<position joint="{name}" kp="{rng.uniform(100, 1000)}" kv="{rng.uniform(5, 50)}"/>')
    arm = f'<body pos=".3 0 0">{joints[1]}{ball(rng)}</body>'
    body = f"<body>{joints[0]}{ball(rng)}{arm}</body>"
    return scene(body).replace("</mujoco>", f"<actuator>{''.join(servos)}</actuator></mujoco>")


def pressed(model, joint_q: float, change=None, steps: int = 500) -> np.ndarray:
    """Positions after servos pressed to this target; `change`: called with the solver after half of the steps."""
    solver, state, control = SolverFeatherstone(model, evaluator="general"), model.state(), model.control()
    control.joint_target_q.assign(np.full(model.joint_coord_count, joint_q))
    for step in range(steps):
        if step == steps // 2 and change is not None:
            change(solver)
        solver.step(state, state, control, dt=DT)
    return state.joint_q.numpy().copy()


def test_servos_press_into_limits_as_deep_as_in_mujoco(rng):
    """The softness is that of the inertia in the initial pose, without implicit servos and dampers: with those, stops of servos were up to
    three times too stiff."""
    xmls, deep = [driven(rng) for _ in range(4)], []
    found = pressed(built(xmls), 0.5, steps=1500)
    for xml in xmls:
        model = mujoco.MjModel.from_xml_string(xml)
        data = mujoco.MjData(model)
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        data.ctrl[:] = 0.5
        for _ in range(1500):
            mujoco.mj_step(model, data)
        assert abs(data.qvel).max() < 1e-6
        deep.append((data.qpos, model.jnt_range[:, 1]))
    qpos, limits = np.concatenate(deep, axis=1)
    assert (qpos > limits + 1e-3).all(), "all are beyond their limits"
    np.testing.assert_allclose(found - limits, qpos - limits, rtol=1e-4)


def test_softness_follows_edits_of_masses_in_single_worlds(rng):
    """A model whose masses or armatures were edited, and one that had them from the start, rest at the same positions; other worlds keep
    their bits."""
    xml = driven(rng)
    factors, worlds = np.array([1.0, rng.uniform(1.5, 3.0), 1.0]), 3
    for name, flags in (
        ("body_mass", ModelFlags.BODY_INERTIAL_PROPERTIES),
        ("joint_armature", ModelFlags.JOINT_DOF_PROPERTIES),
    ):
        edited, other = built([xml] * worlds), built([xml] * worlds)
        before = pressed(edited, 0.5)

        def edit(model, name=name):
            array = getattr(model, name)
            array.assign((array.numpy().reshape(worlds, -1) * factors[:, None]).ravel())

        def change(solver, flags=flags, edited=edited):
            edit(edited)
            solver.notify_model_changed(flags, factors != 1.0)

        found = pressed(edited, 0.5, change, steps=1500).reshape(worlds, -1)
        edit(other)
        expected = pressed(other, 0.5, steps=1500).reshape(worlds, -1)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-7)
        assert abs(found[1] - before.reshape(worlds, -1)[1]).max() > 1e-4, "softness depends on inertia"
        np.testing.assert_array_equal(found[0], found[2])


def weights_in_use(solver) -> np.ndarray:
    """The inverse inertias by which the steps of a solver are soft, ``[worlds, dofs]``."""
    (stepper,) = solver._steppers
    parameters = stepper.work.parameters
    return parameters.rows()[:, slice(*parameters._layout.spans["weight"])]


def changed(name: str, numbers: np.ndarray, rng) -> np.ndarray:
    """Other numbers for an array that inertias depend on."""
    if name == "joint_axis":
        turn = rng.uniform(0.1, 0.5)
        return np.tile((np.sin(turn), np.cos(turn), 0.0), (len(numbers), 1))
    if name in ("joint_X_p", "joint_X_c", "body_com"):
        return numbers + rng.uniform(0.01, 0.1) * (np.arange(numbers.shape[1]) < 3)
    return numbers * rng.uniform(1.5, 3.0)


@pytest.mark.parametrize("named", [True, False])
def test_code_is_made_once_for_edits_of_each_array_that_softness_depends_on(rng, named):
    """It is kept where the array was named; either way, the softness follows."""
    for name in sorted(MASSES - {"body_flags", "tendon_armature"}):
        model = built([driven(rng)])
        solver = SolverFeatherstone(model, evaluator="specialised", varying=(name,) if named else ())
        (stepper,) = solver._steppers
        kernels, freed = [stepper.kernel], []
        for _ in range(2):
            before = weights_in_use(solver)
            array = getattr(model, name)
            array.assign(changed(name, array.numpy(), rng))
            solver.notify_model_changed()
            kernels.append(stepper.kernel)
            freed.append(stepper.work.parameters.freed)
            assert (weights_in_use(solver) != before).any(), name
            np.testing.assert_array_equal(weights_in_use(solver)[0], dof_weights(model))
        assert kernels[1] is kernels[2], name
        assert (kernels[0] is kernels[1]) is named, name
        # anchors have numbers in common
        others = {"joint_X_p", "joint_X_c", "joint_axis"} if name.startswith(("joint_X", "joint_axis")) else set()
        assert freed[0] - others == (set() if named else {name} - others) and not freed[1], name


def tied(rng) -> str:
    """Two links whose joints a tendon with inertia couples."""
    coefs = "".join(f'<joint joint="{name}" coef="{rng.uniform(0.5, 1.0)}"/>' for name in ("shoulder", "elbow"))
    tendon = f'<tendon><fixed name="line" armature="{rng.uniform(0.01, 0.1)}">{coefs}</fixed></tendon>'
    return driven(rng).replace("</mujoco>", f"{tendon}</mujoco>")


@pytest.mark.parametrize("named", [True, False])
def test_softness_follows_edits_of_inertias_along_tendons(rng, named):
    """In the worlds where they were edited, and not in others whose masses nobody told of; code is made again unless the array was named,
    once."""
    xml, worlds = tied(rng), 3
    model = built([xml] * worlds)
    varying = ("tendon_armature",) if named else ()
    solver = SolverFeatherstone(model, evaluator="specialised", varying=varying)
    (stepper,) = solver._steppers
    first, kernels = weights_in_use(solver), [stepper.kernel]
    mass = model.body_mass.numpy()
    mass[-1] *= 2.0
    model.body_mass.assign(mass)
    for _ in range(2):
        armature = model.tendon_armature.numpy()
        armature[1] *= rng.uniform(10.0, 20.0)
        model.tendon_armature.assign(armature)
        solver.notify_model_changed(ModelFlags.TENDON_PROPERTIES)
        kernels.append(stepper.kernel)
        found = weights_in_use(solver)
        np.testing.assert_array_equal(found[[0, 2]], first[[0, 2]])
        np.testing.assert_array_equal(found[1], dof_weights(model).reshape(worlds, -1)[1])
        file = xml.split('<fixed name="line" armature="')
        at_once = f'{file[0]}<fixed name="line" armature="{armature[1]}"{file[1][file[1].index(chr(34)) + 1 :]}'
        expected = mujoco.MjModel.from_xml_string(at_once).dof_invweight0
        np.testing.assert_allclose(found[1], expected, rtol=1e-6)
    assert (found[1] < 0.9 * first[1]).any()
    assert kernels[1] is kernels[2]
    assert (kernels[0] is kernels[1]) is named
    assert stepper.work.parameters.freed == set()


def test_softness_is_that_of_the_pose_in_which_the_model_was_finalized(rng):
    """Whatever coordinates the model got since, whether the solver was made before or after, and whichever worlds notices named."""
    xml, worlds = tied(rng), 3
    model, twin = built([xml] * worlds), built([xml] * worlds)

    def softness(model) -> list[np.ndarray]:
        return [dof_weights(model), tendon_weights(model), InverseMasses(model).links]

    solver = SolverFeatherstone(model, evaluator="general")
    first = softness(model)
    model.joint_q.assign(rng.uniform(-2.0, 2.0, model.joint_coord_count))
    eval_fk(model, model.joint_q, model.joint_qd, model)
    for flags in (ModelFlags.JOINT_DOF_FORCE_PROPERTIES, ModelFlags.JOINT_PROPERTIES, ModelFlags.ALL):
        solver.notify_model_changed(flags, rng.random(worlds) < 0.5)
        for found, before in zip(softness(model), first, strict=True):
            np.testing.assert_array_equal(found, before)
    late = SolverFeatherstone(model, evaluator="general")
    np.testing.assert_array_equal(weights_in_use(late).ravel(), first[0])
    for each in (model, twin):
        each.body_mass.assign(np.linspace(1.0, 2.0, each.body_count))
    solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES, [False, True, False])
    twin.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    for found, edited, before in zip(softness(model), softness(twin), first, strict=True):
        found, edited, before = (x.reshape(worlds, -1) for x in (found, edited, before))
        np.testing.assert_array_equal(found, [before[0], edited[1], before[2]])
        assert (edited[1] != before[1]).any()
    np.testing.assert_array_equal(weights_in_use(solver).ravel(), dof_weights(model))


@pytest.mark.slow
def test_evaluators_agree_bit_by_bit(rng):
    xmls = [single(rng, "hinge", False)] * 9
    runs = [motions(built(xmls, wp.float32), 150, evaluator=e) for e in ("general", "specialised")]
    np.testing.assert_array_equal(*runs)
    assert np.ptp(runs[0], axis=1).max() == 0.0


def test_joints_without_settings_keep_their_limits(rng):
    """In a file, and in a model, in which another joint has some."""
    stiff = joint_of(rng, "hinge", "", "stiff")
    plain = f"<body>{stiff}{ball(rng)}</body>"
    soft = f'<body pos="0 1 0">{joint_of(rng, "hinge", limit_settings(rng, False), "soft")}{ball(rng)}</body>'
    alone, both = built([scene(plain)]), built([scene(plain + soft)])
    assert not hasattr(alone, "mujoco")
    np.testing.assert_array_equal(both.mujoco.limit_rules.numpy(), [0, 1])
    found = [motions(model, 300, evaluator="general")[:, 0] for model in (alone, both)]
    np.testing.assert_array_equal(*found)


@pytest.mark.slow
def test_steps_with_lists_of_contacts_have_the_same_limits(rng):
    model = built([single(rng, "hinge", False)])
    found = []
    for contacts in (None, model.contacts(8)):
        solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
        for _ in range(300):
            solver.step(state, state, None, contacts, DT)
        found.append(state.joint_q.numpy())
    np.testing.assert_allclose(*found, rtol=0.0, atol=1e-12)


def test_settings_of_your_own_and_their_edits(rng):
    """The depth at rest beyond a limit is that of its law, R f = k d depth with f = m g and R = (1 - d) / (d m), for a constant d."""
    g, time, ratio, d = 9.81, rng.uniform(0.02, 0.05), rng.uniform(0.8, 1.5), rng.uniform(0.3, 0.9)
    builder = ModelBuilder()
    SolverFeatherstone.register_custom_attributes(builder)
    link = builder.add_link(mass=rng.uniform(0.5, 3.0), inertia=np.eye(3))
    settings = {"limit_rules": 1, "solreflimit": (time, ratio), "solimplimit": (d, d, 0.01, 0.5, 2.0)}
    joint = builder.add_joint_prismatic(
        -1,
        link,
        axis="z",
        limit_lower=-0.1,
        limit_upper=0.1,
        custom_attributes={f"mujoco:{k}": v for k, v in settings.items()},
    )
    builder.add_articulation([joint])
    model = builder.finalize(dtype=wp.float64)

    def depth(solver) -> float:
        state = model.state()
        for _ in range(2000):
            solver.step(state, state, None, None, DT)
        return -0.1 - state.joint_q.numpy()[0]

    solver = SolverFeatherstone(model, evaluator="general")
    first = depth(solver)
    k = 1.0 / (d * time * ratio) ** 2
    np.testing.assert_allclose(first, (1.0 - d) / d * g / (k * d), rtol=1e-5)
    model.mujoco.solreflimit.assign([[0.5 * time, ratio]])
    solver.notify_model_changed(ModelFlags.JOINT_DOF_PROPERTIES)
    np.testing.assert_allclose(depth(solver), 0.25 * first, rtol=1e-5)
    for name, value, match in (
        (
            "solreflimit",
            [[0.0, 1.0]],
            r"joint 'joint_0' \(index 0\), degree of freedom 0: mujoco:solreflimit is .*time constant",
        ),
        ("limit_margin", [-1.0], "limit_margin is -1.*at least 0"),
        ("solimplimit", [[np.nan] * 5], "solimplimit is .*finite"),
    ):
        old = getattr(model.mujoco, name).numpy().copy()
        getattr(model.mujoco, name).assign(value)
        with pytest.raises(ValueError, match=match):
            SolverFeatherstone(model, evaluator="general")
        getattr(model.mujoco, name).assign(old)


def test_settings_without_a_meaning_are_remarked(rng):
    builder = ModelBuilder()
    joint = joint_of(rng, "hinge", 'solreflimit="0 1"')
    with pytest.warns(MjcfWarning, match="solreflimit"):
        builder.add_mjcf(scene(f"<body>{joint}{ball(rng)}</body>"))
    assert not builder.custom_attributes
