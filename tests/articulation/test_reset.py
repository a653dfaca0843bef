"""Reset of instances: state, buffers, actuators, wrenches; other worlds keep every bit."""

import numpy as np
import pytest

import newton_like as nl
from newton_like.articulation import Articulation, DelayedPDActuatorCfg, InitialStateCfg, RigidObject, SimulationContext
from newton_like.solvers import SolverXPBD
from tests.articulation.robots import WORLDS, numbers, random_states, rotation, scene, walker

DELAYED = {"legs": DelayedPDActuatorCfg(".*", stiffness=20.0, damping=1.0, effort_limit=5.0, min_delay=1, max_delay=3)}


def play(robot, rng, steps: int = 6) -> None:
    for _ in range(steps):
        robot.set_joint_position_target(rng.normal(size=(WORLDS, 4)))
        robot.set_external_force_and_torque(rng.normal(size=3), None, body_ids=[1])
        robot.write_data_to_sim()
        robot.sim.step()


def test_reset_to_defaults_and_a_copy_of_the_first_episode(rng):
    """After a reset, the same commands give the bits of the first episode, but for delays that are drawn again."""
    robot = walker(
        rng, actuators={"legs": DelayedPDActuatorCfg(".*", stiffness=20.0, damping=1.0, min_delay=2, max_delay=2)}
    )
    robot.reset_to()
    seed = int(rng.integers(1 << 30))
    play(robot, np.random.default_rng(seed))
    first = robot.sim.state.joint_q.numpy().copy()
    play(robot, rng)
    robot.reset_to()
    np.testing.assert_allclose(numbers(robot.data.root_state_w), numbers(robot.data.default_root_state), atol=1e-6)
    np.testing.assert_array_equal(robot.data.joint_pos.numpy(), robot.data.default_joint_pos.numpy())
    assert not robot.data.joint_acc.numpy().any() and not robot.data.computed_torque.numpy().any()
    play(robot, np.random.default_rng(seed))
    np.testing.assert_array_equal(robot.sim.state.joint_q.numpy(), first)


@pytest.mark.parametrize(
    "frame, name", [("state", "root_state_w"), ("link", "root_link_state_w"), ("com", "root_com_state_w")]
)
def test_reset_of_some_leaves_others(rng, frame, name):
    robot = walker(rng, actuators=DELAYED)
    play(robot, rng)
    chosen, others = [1, 4], [0, 2, 3]
    state = robot.sim.state
    before = {
        n: getattr(state, n).numpy().reshape(WORLDS, -1).copy() for n in ("joint_q", "joint_qd", "joint_qdd", "body_f")
    }
    delays = robot.actuators["legs"].delay.copy()
    targets = robot.data.joint_pos_target.numpy().copy()
    root, q, qd = random_states(rng, 2), rng.normal(size=(2, 4)), rng.normal(size=(2, 4))
    robot.reset_to(chosen, root, q, qd, frame=frame)
    found = numbers(getattr(robot.data, name))[chosen]
    found[:, 3:7] *= np.sign(np.einsum("ni,ni->n", found[:, 3:7], root[:, 3:7]))[:, None]
    np.testing.assert_allclose(found, root, atol=1e-5)
    np.testing.assert_allclose(numbers(robot.data.joint_pos)[chosen], q, rtol=1e-6)
    np.testing.assert_allclose(numbers(robot.data.joint_vel)[chosen], qd, rtol=1e-6)
    for n, old in before.items():
        np.testing.assert_array_equal(getattr(state, n).numpy().reshape(WORLDS, -1)[others], old[others])
    np.testing.assert_array_equal(robot.actuators["legs"].delay[others], delays[others])
    np.testing.assert_array_equal(robot.data.joint_pos_target.numpy()[others], targets[others])
    np.testing.assert_array_equal(
        robot.data.joint_pos_target.numpy()[chosen], robot.data.default_joint_pos.numpy()[chosen]
    )
    robot.write_data_to_sim()
    pressed = state.body_f.numpy().reshape(WORLDS, -1)
    assert not pressed[chosen].any() and pressed[others].any()


def test_a_world_that_went_nan_comes_back(rng):
    robot, other = (walker(np.random.default_rng(7), actuators=DELAYED) for _ in range(2))
    for each in (robot, other):
        each.reset_to()
    view = robot.data.joint_pos_target.numpy()
    view[2] = np.nan
    for each in (robot, other):
        for _ in range(5):
            each.write_data_to_sim()
            each.sim.step()
    assert np.isnan(robot.data.joint_pos.numpy()[2]).any()
    # data of other worlds are as if nothing had happened
    for name in ("root_state_w", "body_com_acc_w", "joint_acc"):
        np.testing.assert_array_equal(
            getattr(robot.data, name).numpy()[[0, 1, 3, 4]], getattr(other.data, name).numpy()[[0, 1, 3, 4]]
        )
    for each in (robot, other):
        each.reset_to([2])
        for _ in range(5):
            each.write_data_to_sim()
            each.sim.step()
    assert robot.sim.solver.check(robot.sim.state).all()
    assert np.isfinite(robot.data.body_com_acc_w.numpy()).all()
    np.testing.assert_array_equal(
        robot.data.joint_pos.numpy()[[0, 1, 3, 4]], other.data.joint_pos.numpy()[[0, 1, 3, 4]]
    )


def test_a_fixed_root_that_went_nan_comes_back_to_its_anchor(rng):
    """SolverXPBD moves the bodies of fixed roots, too."""
    one = nl.ModelBuilder()
    base, rod = (one.add_link(mass=1.0, inertia=np.eye(3), label=label) for label in ("base", "rod"))
    place, inner = random_states(rng, 2)[:, :7]
    foot = one.add_joint_fixed(-1, base, parent_xform=place, child_xform=inner)
    one.add_articulation([foot, one.add_joint_revolute(base, rod, axis=(0, 1, 0), label="hinge")], label="clock")
    builder = nl.ModelBuilder()
    builder.replicate(one, 4)
    clock = Articulation(SimulationContext(builder.finalize("cpu"), solver=SolverXPBD), "clock")
    start, anchors = clock.data.root_link_pose_w.numpy().copy(), clock.model.joint_X_p.numpy().copy()
    for array in (clock.sim.state.body_q, clock.sim.state.body_qd):
        values = array.numpy()
        values.reshape(4, -1)[[1, 3]] = np.nan
        array.assign(values)
    clock.sim.advance(clock)
    before = clock.data.joint_pos.numpy().copy()
    assert np.isnan(before[[1, 3]]).all() and np.isfinite(before[[0, 2]]).all()
    clock.reset_to([1, 3])
    np.testing.assert_allclose(clock.data.root_link_pose_w.numpy()[[1, 3]], start[[1, 3]], atol=1e-6)
    np.testing.assert_array_equal(clock.model.joint_X_p.numpy(), anchors)
    np.testing.assert_array_equal(clock.data.joint_pos.numpy()[[0, 2]], before[[0, 2]])
    clock.sim.advance(clock)
    assert np.isfinite(clock.data.joint_pos.numpy()).all() and np.isfinite(clock.data.body_link_state_w.numpy()).all()


def test_reset_clears_the_forces_on_bodies(rng):
    """Wrenches of the last step, and NaN in them, neither act nor are seen after a reset, before ``write_data_to_sim``."""
    robot, calm = (walker(np.random.default_rng(5)) for _ in range(2))
    calm.reset_to()
    calm.sim.step()
    robot.permanent_wrench_composer.set_forces_and_torques(rng.normal(size=(WORLDS, 5, 3)) * 50.0)
    robot.write_data_to_sim()
    robot.sim.state.joint_q.numpy().reshape(WORLDS, -1)[1] = np.nan
    for _ in range(3):
        robot.write_data_to_sim()
        robot.sim.step()
    forces = robot.sim.state.body_f.numpy().reshape(WORLDS, -1, 6)
    assert np.isnan(forces[1]).any() and (forces[[0, 2, 3, 4]] != 0.0).any(axis=(1, 2)).all()
    kept = forces.copy()
    robot.reset_to([1, 3])
    assert not forces[[1, 3]].any()
    np.testing.assert_array_equal(forces[[0, 2, 4]], kept[[0, 2, 4]])
    # at rest, without contacts and wrenches: the root carries the weight
    found = numbers(robot.data.body_incoming_joint_wrench_b)[[1, 3], 0]
    weight = 9.81 * numbers(robot.data.body_mass).sum(axis=1)[[1, 3]]
    np.testing.assert_allclose(np.linalg.norm(found[:, :3], axis=1), weight, rtol=1e-4)
    robot.sim.step()
    np.testing.assert_array_equal(
        robot.sim.state.joint_qd.numpy().reshape(WORLDS, -1)[[1, 3]],
        calm.sim.state.joint_qd.numpy().reshape(WORLDS, -1)[[1, 3]],
    )


def test_a_refused_reset_writes_nothing(rng):
    robot, held = walker(rng), walker(rng, floating=False)
    for each, wrong, told in (
        (robot, dict(root_state=random_states(rng, 1), joint_pos=np.zeros((1, 5))), r"position has shape \(1, 5\)"),
        (robot, dict(root_state=random_states(rng, 1), joint_vel=np.nan), "velocity holds numbers"),
        (robot, dict(root_state=np.zeros(13), joint_pos=0.3), "zero"),
        (held, dict(root_state=np.r_[0, 0, 1.0, 0, 0, 0, 1, np.ones(6)], joint_pos=0.3), "free joint"),
        (held, dict(root_state=np.r_[0, 0, 1.0, 0, 0, 0, 1, np.zeros(6)], joint_pos=np.nan), "position holds"),
    ):
        robot.set_joint_position_target(0.7)
        parts = each.sim.state.joint_q, each.sim.state.joint_qd, each.model.joint_X_p, each.data.joint_pos_target
        before = [part.numpy().copy() for part in parts]
        with pytest.raises(ValueError, match=told):
            each.reset_to([3], **wrong)
        for part, kept in zip(parts, before, strict=True):
            np.testing.assert_array_equal(part.numpy(), kept)


def test_reset_of_no_instance_changes_nothing(rng):
    robot = walker(rng, actuators=DELAYED)
    play(robot, rng)
    q, delays = robot.sim.state.joint_q.numpy().copy(), robot.actuators["legs"].delay.copy()
    robot.reset([])
    robot.reset_to(np.zeros(WORLDS, dtype=bool))
    np.testing.assert_array_equal(robot.sim.state.joint_q.numpy(), q)
    np.testing.assert_array_equal(robot.actuators["legs"].delay, delays)
    with pytest.raises(IndexError, match=r"\b9\b"):
        robot.reset([9])
    with pytest.raises(ValueError, match="frame 'body'"):
        robot.reset_to(frame="body")


def test_initial_states_of_configurations_are_the_defaults(rng):
    start = InitialStateCfg(
        pos=(0.1, 0.2, 0.3),
        rot=(0.0, 0.0, 2.0, 0.0),
        ang_vel=(0.0, 0.0, 1.0),
        joint_pos={".*hip.*": 0.4},
        joint_vel=0.5,
    )
    robot = walker(rng, init_state=start)
    before = robot.data.joint_pos.numpy().copy()
    defaults = robot.data.default_joint_pos.numpy()
    names = robot.joint_names
    for j, name in enumerate(names):
        assert (defaults[:, j] == np.float32(0.4 if "hip" in name else 0.0)).all()
    assert not np.array_equal(before, defaults)
    robot.reset_to()
    state = robot.data.root_state_w.numpy()
    np.testing.assert_allclose(
        abs(state), [[0.1, 0.2, 0.3, 0, 0, 1, 0, *abs(state[0, 7:10]), 0, 0, 1.0]] * WORLDS, atol=1e-6
    )
    np.testing.assert_array_equal(robot.data.joint_vel.numpy(), np.float32(0.5))
    for wrong, told in (
        (dict(pos=(1.0, 2.0)), "init_state.pos"),
        (dict(rot=(0.0,) * 4), "zero quaternion"),
        (dict(joint_pos={"hop": 1.0}), "'hop' matches no joint"),
        (dict(rps=90.0), "no rotors"),
    ):
        with pytest.raises(ValueError, match=told):
            walker(rng, init_state=InitialStateCfg(**wrong))
    with pytest.raises(ValueError, match="free joint"):
        walker(rng, floating=False, init_state=InitialStateCfg(lin_vel=(1.0, 0.0, 0.0)))
    with pytest.raises(TypeError, match="InitialStateCfg"):
        walker(rng, init_state={})


FILTERS = """
<mujoco model="arm"><worldbody>
  <body name="upper"><joint name="elbow" damping="0.1"/><geom size="0.1"/><site name="tip" pos="0.1 0 0"/>
    <body name="lower"><joint name="wrist" damping="0.1" range="-60 60" limited="true"/><geom size="0.1"/></body></body>
  <body name="ball" pos="2 0 0"><freejoint/><geom size="0.1"/><site name="nose"/></body>
</worldbody>
<actuator>
  <general name="lag" joint="elbow" gainprm="5" dyntype="filter" dynprm="0.5"/>
  <general name="jet" site="nose" gear="1 0 0 0 0 0" gainprm="2" dyntype="filter" dynprm="0.1"/>
  <muscle name="biceps" joint="wrist" force="20"/>
</actuator></mujoco>"""


@pytest.mark.slow
def test_activations_of_the_model_are_reset(rng):
    """Filters, muscles and their controls in the chosen worlds, of the chosen robot only; a world whose activations went NaN comes back."""
    one = nl.ModelBuilder(gravity=0.0)
    one.add_mjcf(FILTERS)
    kinds = [a.label for a in one.actuators]
    builder = nl.ModelBuilder(gravity=0.0)
    builder.replicate(one, 4)
    model = builder.finalize("cpu")
    start = rng.uniform(0.1, 0.3, (4, 3)).astype(np.float32)
    model.actuator_act.assign(start.ravel())
    sim = SimulationContext(model, dt=1e-3, evaluator="general")
    arm, ball = Articulation(sim, "arm/upper"), RigidObject(sim, "arm/ball")
    act, ctrl = sim.state.actuator_act.numpy().reshape(4, 3), sim.control.actuator_ctrl.numpy().reshape(4, 3)
    ctrl[:] = 0.8
    ctrl[1] = np.nan
    for _ in range(5):
        arm.write_data_to_sim()
        sim.step()
    act[1, 1] = np.nan
    assert (act != start).all()
    kept, own = act.copy(), np.array(["jet" not in kind for kind in kinds])
    arm.reset_to([1, 3])
    kept[np.ix_([1, 3], own)] = start[[1, 3]][:, own]
    np.testing.assert_array_equal(act, kept)
    assert not ctrl[[1, 3]][:, own].any() and np.isnan(ctrl[1, ~own]).all() and (ctrl[[0, 2]] == np.float32(0.8)).all()
    ball.reset_to(np.array([False, True, False, True]))
    kept[np.ix_([1, 3], ~own)] = start[[1, 3]][:, ~own]
    np.testing.assert_array_equal(act, kept)
    sim.step()
    assert np.isfinite(sim.state.joint_q.numpy()).all() and np.isfinite(act).all()


def test_initial_states_beyond_limits_name_the_joints(rng):
    model = scene(rng)
    low, high, speed = (
        getattr(model, f"joint_{n}").numpy().reshape(WORLDS, -1)[:, 6:]
        for n in ("limit_lower", "limit_upper", "velocity_limit")
    )
    low[:, 1], high[:, 1], high[3, 2], speed[:, 0] = -0.5, 0.7, 0.2, 2.0
    sim = SimulationContext(model, evaluator="general")
    for wrong, told in (
        (
            dict(joint_pos=0.9),
            r"joint_pos.*'left_knee_joint' \(0.9 is not within -0.5 and 0.7\), 'right_hip_joint' .*0.2\)",
        ),
        (dict(joint_pos={"left_knee.*": -0.6}), "joint_pos.*'left_knee_joint'"),
        (dict(joint_vel={"left_hip.*": -2.5}), r"joint_vel.*'left_hip_joint' \(-2.5 is not within -2 and 2\)"),
    ):
        with pytest.raises(ValueError, match=told):
            Articulation(sim, "walker", init_state=InitialStateCfg(**wrong))
    start = InitialStateCfg(joint_pos={"left_knee.*": 0.7, "right_hip.*": 0.2}, joint_vel={"left_hip.*": -2.0})
    assert Articulation(sim, "walker", init_state=start).data.default_joint_pos.numpy()[0, 1] == np.float32(0.7)


@pytest.mark.parametrize("way", ["init_state", "default_root_state"])
def test_fixed_roots_go_to_default_poses_that_were_set(rng, way):
    pose = random_states(rng, 1)[0, :7]
    start = InitialStateCfg(pos=pose[:3], rot=pose[3:]) if way == "init_state" else None
    robot = walker(rng, floating=False, init_state=start)
    first = numbers(robot.data.root_pose_w)
    if way == "default_root_state":
        # without a default pose that was set, a reset leaves the pose that was written last
        robot.write_root_pose_to_sim(random_states(rng, 1)[0, :7], [1])
        moved = numbers(robot.data.root_pose_w)
        robot.reset_to()
        np.testing.assert_array_equal(numbers(robot.data.root_pose_w), moved)
        first = moved
        robot.data.numpy.default_root_state[2:, :7] = pose
    robot.reset_to([2, 4])
    robot.write_data_to_sim()
    robot.sim.step()
    found = numbers(robot.data.root_pose_w)
    np.testing.assert_allclose(rotation(found[[2, 4], 3:]), rotation(pose[None, 3:])[[0, 0]], atol=1e-5)
    np.testing.assert_allclose(found[[2, 4], :3], [pose[:3]] * 2, atol=1e-5)
    np.testing.assert_array_equal(found[[0, 1, 3]], first[[0, 1, 3]])


def test_the_pose_of_a_root_on_a_joint_is_that_of_the_model(rng):
    one = nl.ModelBuilder()
    cart = one.add_link(mass=1.0, label="cart")
    rail = one.add_joint_prismatic(-1, cart, axis=(1, 0, 0), parent_xform=(0, 0, 2.0, 0, 0, 0, 1), label="rail")
    one.add_articulation([rail], label="cartpole")
    builder = nl.ModelBuilder()
    builder.replicate(one, 2)
    sim = SimulationContext(builder.finalize("cpu"), evaluator="general")
    for wrong in (dict(pos=(0.0, 0.0, 1.0)), dict(rot=(0.0, 0.0, 1.0, 0.0))):
        with pytest.raises(
            ValueError,
            match=rf"init_state.{next(iter(wrong))}: the root of 'cartpole' moves on joint 'rail'.*joint_pos",
        ):
            Articulation(sim, "cartpole", init_state=InitialStateCfg(**wrong))
    Articulation(sim, "cartpole", init_state=InitialStateCfg(pos=(0.0, 0.0, 2.0), rot=(0.0, 0.0, 0.0, -1.0))).reset_to()
