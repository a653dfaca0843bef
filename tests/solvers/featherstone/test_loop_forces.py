"""Springs, drives, friction and limits of loop joints, distances, and equality constraints of MJCF in SolverFeatherstone."""

import mujoco
import numpy as np
import pytest
import warp as wp

from newton_like import JointDofConfig, JointTargetMode, JointType, ModelBuilder, ModelFlags, dynamics, eval_fk
from newton_like.solvers import SolverFeatherstone
from tests.support.loops import four_bar, started
from tests.support.random_trees import random_inertia, random_transform, random_unit

DT = 1.0 / 480.0
SETTINGS = {
    "spring": dict(stiffness=30.0, damping=0.3, rest_q=0.4),
    "drive": dict(target_ke=40.0, target_kd=2.0),
    "weak drive": dict(target_ke=40.0, target_kd=2.0, effort_limit=1.5),
    "speed drive": dict(target_kd=5.0, actuator_mode=JointTargetMode.VELOCITY),
    "friction": dict(friction=1.5),
    "limits": dict(limit_lower=-0.2, limit_upper=0.3),
}


def held_body(rng_state, kind: str, on_loop: bool, settings: dict):
    """A body on a hinge, a slider, or a joint with two rotations to the world, which is the joint of its tree, or closes a loop beside a
    free joint. The two rotations have the settings in turn, or both."""
    rng = np.random.default_rng(rng_state)
    builder = ModelBuilder()
    mass = rng.uniform(0.5, 1.0)
    inertia = random_inertia(rng, mass, 0.3) + 0.02 * np.eye(3)
    x_p, x_c = random_transform(rng, 0.3), random_transform(rng, 0.3)
    link = builder.add_link(mass=mass, com=0.1 * rng.normal(size=3), inertia=inertia)
    held = dict(parent_xform=x_p, child_xform=x_c, label="held")
    if kind.startswith("universal"):
        add = builder.add_joint_d6
        axes = np.linalg.qr(rng.normal(size=(3, 3)))[0][:2]
        # "universal 1": the second rotation alone
        held["angular_axes"] = [
            JointDofConfig(axis=axis, **(settings if kind[-1] in (str(i), "l") else {})) for i, axis in enumerate(axes)
        ]
    else:
        add = builder.add_joint_revolute if kind == "hinge" else builder.add_joint_prismatic
        held |= dict(axis=random_unit(rng), **settings)
    if on_loop:
        builder.add_articulation([builder.add_joint_free(link)])
        add(-1, link, **held)
    else:
        builder.add_articulation([add(-1, link, **held)])
    return builder


@pytest.mark.parametrize("kind", ["hinge", "slider", "universal 0", "universal 1", "universal"])
@pytest.mark.parametrize("name", SETTINGS)
def test_a_body_on_a_loop_joint_moves_as_on_a_joint_of_a_tree(rng, kind, name):
    """Springs and drives are implicit in the same way, and limits and friction act at once."""
    own = 2 if kind.startswith("universal") else 1
    key, q, v = int(rng.integers(2**31)), [0.1] * own, rng.uniform(-1.0, 1.0, own)
    target_q, target_v = rng.uniform(-0.5, 0.5, own), rng.uniform(-2.0, 2.0, own)
    paths, start, start_v = [], None, None
    for on_loop in (False, True):
        model = held_body(key, kind, on_loop, SETTINGS[name]).finalize("cpu", dtype=wp.float64)
        state, control = model.state(), model.control()
        if on_loop:
            state.joint_q.assign([*start, *[0.0] * own])
            state.joint_qd.assign([*start_v, *[0.0] * own])
        else:
            state.joint_q.assign(q)
            state.joint_qd.assign(v)
            eval_fk(model, state.joint_q, state.joint_qd, state)
            start, start_v = state.body_q.numpy()[0].copy(), state.body_qd.numpy()[0].copy()
        targets = control.joint_target_q.numpy()
        targets[-own:] = target_q
        control.joint_target_q.assign(targets)
        targets = control.joint_target_qd.numpy()
        targets[-own:] = target_v
        control.joint_target_qd.assign(targets)
        solver = SolverFeatherstone(model, evaluator="general")
        path = []
        for _ in range(240):
            solver.step(state, state, control, None, DT)
            path.append(state.body_q.numpy()[0].copy())
        paths.append(np.array(path))
    moved = np.abs(paths[0] - paths[0][0]).max()
    apart = np.abs(paths[0][:, :3] - paths[1][:, :3]).max()
    # a slider stops at its limit in the same way, but what it has left of the gap to it in a step differs
    # and forces about two axes, whose directions change in a step, agree to first order in the time step
    assert apart < (1e-2 if own == 2 else 5e-3 if name == "limits" else 2e-4) * max(moved, 0.05)


@pytest.mark.parametrize("dtype", [wp.float64, wp.float32])
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.slow
def test_forces_of_loop_joints_that_will_vary_have_rows_where_they_are_zero(rng, name, dtype):
    """Before the edit, the body moves as without these rows; after it, as if it had the force from the start. No table is made again."""
    key, start_v = int(rng.integers(2**31)), rng.uniform(-1.0, 1.0, 6)
    setting = SETTINGS[name]
    mode = setting.get("actuator_mode", JointTargetMode.POSITION if "target_ke" in setting else JointTargetMode.NONE)
    numbers = {f"joint_{x}": y for x, y in setting.items() if x != "actuator_mode"}
    models = [
        held_body(key, "hinge", True, dict(settings, actuator_mode=mode)).finalize("cpu", dtype=dtype)
        for settings in ({}, {}, setting)
    ]
    solvers = [
        SolverFeatherstone(model, evaluator="general", varying=tuple(numbers) if i else ())
        for i, model in enumerate(models)
    ]
    states = [model.state() for model in models]
    states[0].joint_qd.assign([*start_v, 0.0])
    # rows without force give way like springs of 1e-30 N s/m
    close = dict(rtol=0.0, atol=1e-12 if dtype is wp.float64 else 2e-5)

    def walk(one: int, two: int, expected: bool = True) -> float:
        for array in ("joint_q", "joint_qd"):
            getattr(states[two], array).assign(getattr(states[one], array).numpy())
        for solver in solvers:
            solver.forget()
        for _ in range(120):
            for i in (one, two):
                solvers[i].step(states[i], states[i], None, None, DT)
            if expected:
                np.testing.assert_allclose(states[two].joint_q.numpy(), states[one].joint_q.numpy(), **close)
        return np.abs(states[two].joint_q.numpy() - states[one].joint_q.numpy()).max()

    walk(0, 1)
    steppers = solvers[1]._steppers
    for array, number in numbers.items():
        rows = getattr(models[1], array).numpy()
        rows[-1] = number
        getattr(models[1], array).assign(rows)
    solvers[1].notify_model_changed(ModelFlags.JOINT_DOF_PROPERTIES | ModelFlags.JOINT_REFERENCE_POSE_PROPERTIES)
    assert solvers[1]._steppers is steppers
    walk(1, 2)
    # the force is felt; limits only in some motions: a hinge may stay between them, or return to them fast enough
    felt = []
    for _ in range(12 if name == "limits" else 1):
        felt.append(walk(0, 1, expected=False))
        states[0].joint_qd.assign([*rng.uniform(-3.0, 3.0, 6), 0.0])
    assert max(felt) > 1e-3


def test_a_distance_of_a_loop_joint_stays_between_its_limits(rng):
    """A ball on a thread: it falls freely until the thread is tight, and swings then as a pendulum of that length."""
    for shortest, longest in ((-1.0, 0.5), (0.5, 0.5), (0.3, 0.6)):
        builder = ModelBuilder()
        ball = builder.add_link(mass=1.0, inertia=0.01 * np.eye(3))
        builder.add_articulation([builder.add_joint_free(ball)])
        builder.add_joint_distance(-1, ball, min_distance=shortest, max_distance=longest)
        model = builder.finalize("cpu", dtype=wp.float64)
        state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
        q = np.zeros(model.joint_coord_count)
        q[:3], q[6] = [0.5, 0.0, 0.0], 1.0
        state.joint_q.assign(q)
        lengths, energies = [], []
        for _ in range(960):
            solver.step(state, state, None, None, DT)
            p, v = state.joint_q.numpy()[:3], state.joint_qd.numpy()[:3]
            lengths.append(np.linalg.norm(p))
            energies.append(0.5 * v @ v + 9.81 * p[2])
        assert max(lengths) < longest + 2e-4
        if shortest == longest:
            assert min(lengths) > shortest - 2e-4
            assert np.abs(energies).max() < 2e-2
        elif shortest < 0.0:
            assert np.abs(energies).max() < 5e-2
        else:
            assert min(lengths) > shortest - 2e-4


TIED = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.0005" integrator="implicitfast"/>
  <default><geom contype="0" conaffinity="0" density="500"/></default>
  <worldbody>
    <body pos="0 0 1">
      <joint name="a" axis="0 1 0" ref="0.2"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03"/>
      <body pos="0.4 0 0">
        <joint name="b" type="slide" axis="1 0 0.5"/>
        <geom type="capsule" fromto="0 0 0 0.3 0.1 0.2" size="0.03"/>
      </body>
    </body>
    <body pos="0 1 1">
      <joint name="c" axis="0 1 0" ref="-0.1"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.04"/>
      <body pos="0.3 0 0">
        <joint name="d" axis="0 1 0.3" ref="0.3"/>
        <geom type="capsule" fromto="0 0 0 0.4 0.1 0" size="0.03"/>
        <body pos="0.4 0 0">
          <joint name="e" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 0.1 0.1 0" size="0.03"/>
        </body>
      </body>
    </body>
  </worldbody>
  <equality>
    <joint joint1="a" joint2="c" polycoef="0 0.8 -0.9 0.7 1.1" SOFT/>
    <joint joint1="b" joint2="a" polycoef="0 0.1 0.4" SOFT/>
    <joint joint1="e" polycoef="0" SOFT/>
    <joint joint1="d" joint2="c" polycoef="0 -1.5" SOFT/>
  </equality>
</mujoco>
"""


def fall(xml: str, peer_xml: str, steps: int, dt: float, dtype=wp.float64):
    """Coordinates of MuJoCo and ours, by name, after each step of a fall; and our solver."""
    builder = ModelBuilder()
    report = builder.add_mjcf(xml)
    model = builder.finalize("cpu", dtype=dtype)
    state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
    peer = mujoco.MjModel.from_xml_string(peer_xml)
    data = mujoco.MjData(peer)
    names = [peer.joint(i).name for i in range(peer.njnt)]
    ours, theirs = [], []
    for _ in range(steps):
        solver.step(state, state, None, None, dt)
        mujoco.mj_step(peer, data)
        ours.append([state.joint_q.numpy()[report.coords[name]] for name in names])
        theirs.append([data.qpos[peer.joint(name).qposadr[0]] for name in names])
    return np.array(ours), np.array(theirs), solver


def test_polynomials_between_joints_move_as_in_mujoco():
    """A fall of 0.3 s: joints that follow by polynomials, one of the other's follower; one that stands still; one that follows linearly.
    MuJoCo's are nearly rigid, and its integrator is wrong by g t dt / 2 / length."""
    stiff = 'solref="0.001 1" solimp="0.9999 0.9999 0.001"'
    ours, theirs, _ = fall(TIED.replace("SOFT", ""), TIED.replace("SOFT", stiff), 600, 0.0005)
    a, b, c, d, e = ours.T
    x = c + 0.1
    np.testing.assert_allclose(a - 0.2, 0.8 * x - 0.9 * x**2 + 0.7 * x**3 + 1.1 * x**4, rtol=0, atol=2e-6)
    np.testing.assert_allclose(b, 0.1 * (a - 0.2) + 0.4 * (a - 0.2) ** 2, rtol=0, atol=2e-6)
    np.testing.assert_allclose(d - 0.3, -1.5 * x, rtol=0, atol=1e-4)
    assert np.abs(e).max() < 1e-6
    assert np.abs(ours[-1] - ours[0]).max() > 0.1
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=5e-3)


SOFT = """
<mujoco>
  <option timestep="0.0002" integrator="implicitfast"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body><joint name="a" type="slide" axis="0 0 1"/><geom type="sphere" size="0.1" mass="1.3"/></body>
    <body pos="0 1 0">
      <joint name="b" type="slide" axis="0 0 1" damping="2" stiffness="40"/><geom type="sphere" size="0.1" mass="0.4"/>
    </body>
    <body name="c" pos="0 2 0">
      <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
      <joint name="z" type="slide" axis="0 0 1"/><geom type="sphere" size="0.1" mass="0.7"/>
    </body>
  </worldbody>
  <equality>
    <joint joint1="a" joint2="b" SOFT/>
    <connect body1="c" anchor="0 0 0" SOFT/>
  </equality>
</mujoco>
"""


@pytest.mark.parametrize(
    "softness",
    ['solref="0.05 1"', 'solref="0.1 0.2"', 'solref="-300 -10"', 'solref="0.04 0.7" solimp="0.3 0.8 0.05 0.4 3"'],
)
def test_soft_equalities_give_way_as_in_mujoco(softness):
    """A mimic relation that is soft, and a point that is softly held. MuJoCo's integrator is wrong by g t dt / 2."""
    xml = SOFT.replace("SOFT", softness)
    ours, theirs, _ = fall(xml, xml, 2000, 0.0002)
    given_way = np.array([ours[:, [0, 4]], theirs[:, [0, 4]]])
    given_way[..., 0] -= [ours[:, 1], theirs[:, 1]]
    scale = np.abs(given_way).max(axis=(0, 1))
    assert scale.min() > 5e-4
    apart = np.abs(given_way[0] - given_way[1]) / scale
    assert apart.max() < 0.05 and apart[-1].max() < 0.01


STRETCHED = """
<mujoco><option timestep="0.002"/><default><geom type="capsule" size=".03" mass="1" contype="0" conaffinity="0"/></default>
<worldbody><body><joint name="a" axis="0 1 0"/><geom fromto="0 0 0 .4 0 0"/>
<body name="b" pos=".4 0 0"><joint name="b" axis="0 1 0"/><geom fromto="0 0 0 .4 0 0"/></body></body></worldbody>
<equality><weld body1="b" SOFT/></equality></mujoco>
"""


@pytest.mark.parametrize("mass", [1.0e-3, 0.1, 30.0])
def test_soft_welds_do_not_depend_on_the_mass_of_a_body_that_nothing_moves(mass):
    """A body of 1 kg hangs on a mocap body and sags as in MuJoCo, where such bodies have no mass."""
    xml = f"""<mujoco><option timestep=".002"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
        <body name="hand" mocap="true" pos="0 0 1"><geom size=".02" mass="{mass}"/></body>
        <body name="load" pos="0 0 1"><freejoint/><geom type="box" size=".05 .05 .05" mass="1"/></body>
        </worldbody><equality><weld body1="hand" body2="load" solref=".02 1"/></equality></mujoco>"""
    peer = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(peer)
    builder = ModelBuilder()
    report = builder.add_mjcf(xml)
    model = builder.finalize("cpu", dtype=wp.float64)
    state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
    for _ in range(500):
        mujoco.mj_step(peer, data)
        solver.step(state, state, None, None, 0.002)
    sag = 1.0 - state.body_q.numpy()[report.links["load"], 2]
    assert 2e-4 < sag == pytest.approx(1.0 - data.body("load").xpos[2], rel=0.02)


@pytest.mark.parametrize("softness", ['solref="0.02 1"', 'solref="0.1 0.5"', 'solref="-1000 -10"'])
def test_a_soft_weld_of_a_stretched_arm_sags_as_in_mujoco(softness):
    """No joint moves the end along the arm: a softness that scaled with the response in the pose would be none there."""
    xml = STRETCHED.replace("SOFT", softness)
    ours, theirs, _ = fall(xml, xml, 1000, 0.002)
    # both are at rest up to exp(-2 / 0.1), where the arm is no longer straight
    np.testing.assert_allclose(ours[-1], theirs[-1], rtol=0, atol=3e-3 * np.abs(theirs[-1]).max())


@pytest.mark.parametrize(
    "softness", ['solref="0.02 1" solimp="0.9 0.9 0.001"', 'solref="0.05 1" solimp="0.3 0.8 0.2 0.4 3"']
)
def test_the_tilt_of_a_soft_weld_goes_by_its_torquescale_as_in_mujoco(softness):
    """A cube of 2 kg that is held 0.3 mm from its middle. MuJoCo's rows of rotations are half angles times torquescale, and its
    approximation of their response is not scaled: the tilt goes by 1 / torquescale^2. The impedance goes by the norm of all rows."""
    found = []
    for scale in (0.5, 1.0, -2.0):
        xml = f"""<mujoco><option timestep=".002"/><worldbody><body name="c"><freejoint/><geom type="box" size=".1 .1 .1" pos=".0003 0 0"
            mass="2" contype="0" conaffinity="0"/></body></worldbody>
            <equality><weld body1="c" {softness} torquescale="{scale}"/></equality></mujoco>"""
        peer = mujoco.MjModel.from_xml_string(xml)
        data = mujoco.MjData(peer)
        builder = ModelBuilder()
        builder.add_mjcf(xml)
        model = builder.finalize("cpu", dtype=wp.float64)
        state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
        for _ in range(500):
            mujoco.mj_step(peer, data)
            solver.step(state, state, None, None, 0.002)
        sag, tilt = state.joint_q.numpy()[[2, 4]]
        assert tilt == pytest.approx(data.qpos[5], rel=0.01)
        assert sag == pytest.approx(data.qpos[2], rel=0.01)
        found.append(tilt)
    if "0.9 0.9" in softness:  # the impedance is constant
        np.testing.assert_allclose(found, np.array([4.0, 1.0, 0.25]) * found[1], rtol=0.01)


def test_a_weld_with_torquescale_zero_leaves_rotations_free():
    builder = ModelBuilder()
    builder.add_mjcf(
        '<mujoco><worldbody><body name="c"><freejoint/><geom size=".1" pos=".1 0 0"/></body></worldbody>'
        '<equality><weld body1="c" solref=".02 1" torquescale="0"/><weld body1="c" torquescale="0"/></equality></mujoco>'
    )
    assert builder.joint_type[-2:] == [JointType.BALL] * 2


TIES = """
<mujoco><option timestep="0.0005"/><default><geom type="capsule" size=".03" mass="1" contype="0" conaffinity="0"/></default><worldbody>
<site name="w" pos="0 0 .5"/><body pos="0 0 1"><joint name="a" axis="0 1 0"/><geom fromto="0 0 0 .4 0 0"/><site name="s" pos=".2 0 .05"/>
<body pos=".4 0 0"><joint name="b" axis="0 1 0"/><geom fromto="0 0 0 .4 0 0"/><site name="e" pos=".2 0 .05"/></body></body></worldbody>
<tendon><fixed name="f"><joint joint="a" coef="1"/><joint joint="b" coef="-.7"/></fixed><fixed name="g"><joint joint="b" coef="1"/></fixed>
<spatial name="p"><site site="w"/><site site="s"/><site site="e"/></spatial></tendon><equality>TIE</equality></mujoco>
"""
STIFF = ' solref="0.001 1" solimp="0.9999 0.9999 0.001"'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tie", "softness"),
    [
        ('<tendon tendon1="f"SOFT/>', ' solref="0.02 1" solimp="0.9 0.95 0.001"'),
        ('<tendon tendon1="f" tendon2="g" polycoef=".1 .5 .2 0 .1"SOFT/>', ' solref="0.02 1" solimp="0.9 0.95 0.001"'),
        ('<tendon tendon1="f" tendon2="g" polycoef="0 .4 .3"SOFT/>', ""),
        ('<tendon tendon1="p"SOFT/>', ""),
        ('<tendon tendon1="p" tendon2="g" polycoef="0 .1 .05"SOFT/>', ""),
    ],
)
def test_ties_of_tendons_move_as_in_mujoco(tie, softness):
    """A fall of 0.3 s; those that state no softness are rigid here, and nearly so in MuJoCo."""
    xml = TIES.replace("TIE", tie)
    ours, theirs, _ = fall(xml.replace("SOFT", softness), xml.replace("SOFT", softness or STIFF), 600, 0.0005)
    # MuJoCo's integrator is wrong by g t dt / 2 / length
    assert np.abs(ours - theirs).max() < 4e-3


def linkage(rng, **settings):
    """A four-bar linkage whose closing hinge has forces, closed coordinates, and the angle of that hinge, far from half a turn."""
    while True:
        builder, q = four_bar(rng, **settings)
        angle = np.remainder(q.sum() + np.pi, 2.0 * np.pi) - np.pi
        if abs(angle) < 2.0:
            return builder, q, angle


def test_forces_of_a_closing_hinge_accelerate_the_linkage_by_the_principle_of_virtual_work(rng):
    """Its angle is the sum of the three others, so that its torque acts on all three."""
    stiffness, damping, ke, kd = rng.uniform(1.0, 5.0, 4)
    rest, target = rng.uniform(-1.0, 1.0, 2)
    settings = dict(stiffness=stiffness, damping=damping, rest_q=rest, target_ke=ke, target_kd=kd)
    builder, q, angle = linkage(rng, **settings)
    model = builder.finalize("cpu", dtype=wp.float64)
    state, dofs = started(model, q, rng)
    speed = state.joint_qd.numpy()[dofs[0]].sum()
    control = model.control()
    control.joint_target_q.assign([0.0, 0.0, 0.0, target])
    torque = stiffness * (rest - angle) - damping * speed + ke * (target - angle) - kd * speed
    before, dt = state.joint_qd.numpy()[dofs[0]], 1.0e-6
    rows = dynamics.constraint_jacobian(model, state)[0].numpy()[0, :, :3]
    mass, bias = (
        dynamics.mass_matrix(model, state).numpy()[0, :3, :3],
        dynamics.bias_forces(model, state).numpy()[0, :3],
    )
    SolverFeatherstone(model, evaluator="general").step(state, state, control, None, dt)
    got = (state.joint_qd.numpy()[dofs[0]] - before) / dt
    # the direction in which the closed linkage moves; across it, a first step also closes the loops at its middle
    way = np.linalg.svd(rows)[2][-1]
    assert np.abs(rows @ way).max() < 1e-12
    size = np.abs(way) @ (np.abs(bias) + abs(torque))
    np.testing.assert_allclose(way @ (mass @ got + bias), torque * way.sum(), rtol=0, atol=1e-4 * size)


def test_limits_and_friction_of_closing_hinges_hold_linkages(rng):
    """Linkages that fall are stopped at the limits of their closing hinge; friction of that hinge alone holds them where they are."""
    found = [linkage(rng) for _ in range(8)]
    scene = ModelBuilder()
    for builder, _, angle in found:
        builder.joint_limit_lower[-1], builder.joint_limit_upper[-1] = angle - 0.1, angle + 0.1
        scene.add_world(builder)
    model = scene.finalize("cpu", dtype=wp.float64)
    state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
    start = np.array([[*q, 0.0] for _, q, _ in found])
    state.joint_q.assign(start.ravel())
    furthest = np.zeros(8)
    for _ in range(480):
        solver.step(state, state, None, None, DT)
        turned = (state.joint_q.numpy().reshape(8, 4) - start)[:, :3].sum(axis=1)
        furthest = np.maximum(furthest, np.abs(turned))
    assert furthest.max() > 0.0999 and (furthest < 0.1 + 2e-4).all()
    assert np.abs(dynamics.constraint_jacobian(model, state)[1].numpy()).max() < 1e-4
    for name, value in (("limit_lower", -10.0), ("limit_upper", 10.0), ("friction", 30.0)):
        array = getattr(model, f"joint_{name}")
        numbers = array.numpy().reshape(8, 4)
        numbers[:, 3] = value
        array.assign(numbers.ravel())
    solver.notify_model_changed(ModelFlags.JOINT_DOF_PROPERTIES)
    held = state.joint_q.numpy().copy()
    solver.reset(state, None, held, np.zeros(model.joint_dof_count))
    for _ in range(240):
        solver.step(state, state, None, None, DT)
    # by how much the hinge turns where the linkage moves: near a dead point it does not, and its friction holds nothing
    K = dynamics.constraint_jacobian(model, state)[0].numpy()[:, :, :3]
    turns = np.abs([np.linalg.svd(k)[2][-1].sum() for k in K]) > 0.3
    # what was open closes
    moved, speed = ((x.reshape(8, 4)[turns]) for x in (state.joint_q.numpy() - held, state.joint_qd.numpy()))
    assert np.abs(moved).max(initial=0.0) < 2e-4 and np.abs(speed).max(initial=0.0) < 1e-4


def test_friction_of_ball_joints_that_close_loops_stops_a_turning_body(rng):
    """Dry friction takes the angular momentum friction * t away, as from a body on a ball joint of a tree."""
    paths = []
    for on_loop in (False, True):
        builder = ModelBuilder()
        link = builder.add_link(mass=1.0, inertia=0.1 * np.eye(3))
        if on_loop:
            builder.add_articulation([builder.add_joint_free(link)])
        ball = builder.add_joint_ball(-1, link, friction=0.2, damping=0.05)
        if not on_loop:
            builder.add_articulation([ball])
        model = builder.finalize("cpu", dtype=wp.float64)
        state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
        qd = np.zeros(model.joint_dof_count)
        qd[3 * on_loop : 3 * on_loop + 3] = 1.0, -0.5, 0.3
        state.joint_qd.assign(qd)
        path = []
        for _ in range(240):
            solver.step(state, state, None, None, DT)
            path.append(state.joint_qd.numpy()[3 * on_loop : 3 * on_loop + 3].copy())
        paths.append(path)
    np.testing.assert_allclose(*paths, rtol=0, atol=1e-9)
    assert np.abs(paths[0][-1]).max() < 1e-9


@pytest.mark.slow
def test_specialised_code_and_other_worlds_do_not_change_bits(rng):
    """With springs, friction and limits that differ between worlds."""
    worlds = []
    for _ in range(3):
        builder, q, angle = linkage(rng)
        limits = dict(limit_lower=angle - 0.2, limit_upper=angle + 0.1, friction=0.02, stiffness=0.5, rest_q=angle)
        limits |= dict(target_ke=3.0, target_kd=0.1, effort_limit=0.3)
        for name, value in limits.items():
            values = getattr(builder, f"joint_{name}")
            values[-1] = value
        builder.joint_target_mode[-1] = JointTargetMode.POSITION_VELOCITY
        worlds.append((builder, q))
    results = []
    for chosen, evaluator in (
        ([0], "general"),
        ([1], "general"),
        ([2], "general"),
        ([0, 1, 2], "general"),
        ([0, 1, 2], "specialised"),
    ):
        scene = ModelBuilder()
        for i in chosen:
            scene.add_world(worlds[i][0])
        model = scene.finalize("cpu")
        state = model.state()
        state.joint_q.assign(np.concatenate([[*worlds[i][1], 0.0] for i in chosen]))
        solver = SolverFeatherstone(model, evaluator=evaluator)
        for _ in range(100):
            solver.step(state, state)
        numbers = [x.numpy().reshape(len(chosen), -1) for x in (state.joint_q, state.joint_qd, solver.loop_forces())]
        results.append(np.hstack(numbers))
    np.testing.assert_array_equal(np.concatenate(results[:3]), results[3])
    np.testing.assert_array_equal(results[3], results[4])


def test_what_starts_beyond_a_limit_returns_slowly(rng):
    """At no more than ``max_depenetration_speed``, and a limit that is edited acts at once."""
    builder = ModelBuilder(gravity=0.0)
    ball = builder.add_link(mass=1.0, inertia=0.01 * np.eye(3))
    builder.add_articulation([builder.add_joint_free(ball)])
    builder.add_joint_distance(-1, ball, min_distance=-1.0, max_distance=0.5)
    model = builder.finalize("cpu", dtype=wp.float64)
    state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
    q = np.zeros(model.joint_coord_count)
    q[:3], q[6] = [0.9, 0.0, 0.0], 1.0
    state.joint_q.assign(q)
    speeds = []
    for _ in range(480):
        solver.step(state, state, None, None, DT)
        speeds.append(np.linalg.norm(state.joint_qd.numpy()[:3]))
    assert 0.99 < max(speeds) < 1.0 + 1e-6
    assert np.linalg.norm(state.joint_q.numpy()[:3]) < 0.5 + 1e-4
    model.joint_max_distance.assign([-1.0, 0.3])
    solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
    for _ in range(480):
        solver.step(state, state, None, None, DT)
    assert np.linalg.norm(state.joint_q.numpy()[:3]) < 0.3 + 1e-4


CHAIN = """<mujoco><option timestep="{dt}" gravity="0 0 0"/><default><geom contype="0" conaffinity="0" size=".05" type="sphere"/></default>
<worldbody><body name="a"><joint name="a" axis="0 1 0"/><geom pos=".2 0 0" mass="{m[0]}"/></body>
<body name="b"><joint name="b" axis="0 1 0"/><geom pos=".2 0 0" mass="{m[1]}"/></body>
<body name="c"><joint name="c" axis="0 1 0"/><geom pos=".2 0 0" mass="{m[2]}"/></body></worldbody>
<equality><joint joint1="a" joint2="b" polycoef="{p[0]} {p[1]} 0 0 0" {soft[0]}/>
<joint joint1="b" joint2="c" polycoef="{p[2]} {p[3]} 0 0 0" {soft[1]}/></equality></mujoco>"""


@pytest.mark.parametrize("soft", [(True, True), (True, False), (False, True)], ids=["both", "first", "second"])
def test_equalities_of_a_chain_are_rows_between_their_own_joints(rng, soft):
    """``a`` follows ``b``, which follows ``c``: a soft equality pulls at both of its joints. MuJoCo's equalities are never hard; one
    without softness in the file has its default there, and is hard here."""
    dt, rules = 1e-5, [f'solref="{rng.uniform(0.02, 0.1)} {rng.uniform(0.5, 1.2)}"' if s else "" for s in soft]
    p = rng.uniform(-0.6, 0.6, 4)
    text = CHAIN.format(dt=dt, m=rng.uniform(0.5, 2.0, 3), p=p, soft=rules)
    # in MuJoCo, a row that is as hard as it can be
    peer = mujoco.MjModel.from_xml_string(
        text.replace('0 0 0" />', '0 0 0" solref="-2e9 -1e5" solimp=".9999 .9999 .1"/>')
    )
    builder = ModelBuilder()
    builder.add_mjcf(text)
    model = builder.finalize("cpu", dtype=wp.float64)
    data, state = mujoco.MjData(peer), model.state()
    solver = SolverFeatherstone(model, evaluator="general")
    # the poses of hard equalities agree
    c = rng.uniform(-0.3, 0.3)
    b = p[2] + p[3] * c + 0.05 * soft[1]
    q = np.array([p[0] + p[1] * b + 0.05 * soft[0], b, c])
    data.qpos[:] = q
    solver.reset(state, None, q, np.zeros(3))
    for _ in range(200):
        mujoco.mj_step(peer, data)
        solver.step(state, state, dt=dt)
    np.testing.assert_allclose(state.joint_qd.numpy(), data.qvel, rtol=2e-3, atol=2e-3 * np.abs(data.qvel).max())
