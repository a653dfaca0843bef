"""What is written to the simulation is read back from it; other instances, joints and bodies keep every bit."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like import dynamics
from newton_like.articulation import Articulation, IdealPDActuatorCfg, ImplicitActuatorCfg, SimulationContext
from tests.articulation.robots import WORLDS, numbers, random_states, scene, walker

JOINTS = 4


def chosen(rng, count: int):
    """A random selection in one of the ways in which it may be given, and its indices."""
    indices = rng.permutation(count)[: rng.integers(1, count + 1)]
    mask = np.zeros(count, dtype=bool)
    mask[indices] = True
    ways = (
        (None, np.arange(count)),
        (slice(1, None, 2), np.arange(1, count, 2)),
        (indices, indices),
        (indices.tolist(), indices),
        (mask, np.flatnonzero(mask)),
        (wp.array(indices, dtype=int, device="cpu"), indices),
        (wp.array(mask, dtype=wp.bool, device="cpu"), np.flatnonzero(mask)),
    )
    return ways[rng.integers(len(ways))]


@pytest.fixture(scope="module")
def robot(module_rng):
    return walker(module_rng, actuators={"legs": ImplicitActuatorCfg(".*", stiffness=5.0, damping=0.1)})


WRITES = {
    "set_joint_position_target": "joint_pos_target",
    "set_joint_velocity_target": "joint_vel_target",
    "set_joint_effort_target": "joint_effort_target",
    "write_joint_position_to_sim": "joint_pos",
    "write_joint_velocity_to_sim": "joint_vel",
    "write_joint_stiffness_to_sim": "joint_stiffness",
    "write_joint_damping_to_sim": "joint_damping",
    "write_joint_armature_to_sim": "joint_armature",
    "write_joint_effort_limit_to_sim": "joint_effort_limits",
    "write_joint_velocity_limit_to_sim": "joint_vel_limits",
    "write_joint_friction_to_sim": "joint_friction_coeff",
}


@pytest.mark.parametrize("method", WRITES)
def test_numbers_of_joints_come_back_and_others_keep_their_bits(robot, rng, method):
    for _ in range(4):
        (envs, rows), (joints, columns) = chosen(rng, WORLDS), chosen(rng, JOINTS)
        before = getattr(robot.data, WRITES[method]).numpy().copy()
        values = rng.uniform(0.1, 2.0, (len(rows), len(columns))).astype(np.float32)
        given = wp.array(values, dtype=float, device="cpu") if rng.random() < 0.3 else values
        getattr(robot, method)(given, joint_ids=joints, env_ids=envs)
        wanted = before.copy()
        wanted[np.ix_(rows, columns)] = values
        np.testing.assert_array_equal(getattr(robot.data, WRITES[method]).numpy(), wanted)
        getattr(robot, method)(0.5, joint_ids=joints, env_ids=envs)
        wanted[np.ix_(rows, columns)] = 0.5
        np.testing.assert_array_equal(getattr(robot.data, WRITES[method]).numpy(), wanted)


def test_values_of_a_mask_may_have_rows_of_all_instances(robot, rng):
    mask = np.array([True, False, True, True, False])
    values = rng.normal(size=(WORLDS, JOINTS)).astype(np.float32)
    before = robot.data.joint_pos.numpy().copy()
    robot.write_joint_position_to_sim(values, env_ids=mask)
    np.testing.assert_array_equal(robot.data.joint_pos.numpy(), np.where(mask[:, None], values, before))


@pytest.mark.parametrize("frame", ["", "link_", "com_"])
def test_root_states_come_back_in_their_frames(robot, rng, frame):
    (envs, rows) = chosen(rng, WORLDS)
    states, before = random_states(rng, len(rows)), numbers(getattr(robot.data, f"root_{frame}state_w"))
    others = np.setdiff1d(np.arange(WORLDS), rows)
    kept = robot.sim.state.joint_q.numpy().reshape(WORLDS, -1)[others].copy()
    getattr(robot, f"write_root_{frame}state_to_sim")(states, envs)
    found = numbers(getattr(robot.data, f"root_{frame}state_w"))
    sign = np.sign(np.einsum("ni,ni->n", found[rows, 3:7], states[:, 3:7]))
    states[:, 3:7] *= sign[:, None]
    np.testing.assert_allclose(found[rows], states, atol=5e-6)
    np.testing.assert_array_equal(found[others], before[others])
    np.testing.assert_array_equal(robot.sim.state.joint_q.numpy().reshape(WORLDS, -1)[others], kept)


@pytest.mark.parametrize("frame", ["", "link_", "com_"])
def test_poses_and_velocities_of_roots_are_written_apart(robot, rng, frame):
    states = random_states(rng, WORLDS)
    robot.write_root_state_to_sim(states)
    velocity = numbers(robot.data.root_com_vel_w)
    pose = random_states(rng, WORLDS)[:, :7]
    getattr(robot, f"write_root_{frame}pose_to_sim")(pose)
    np.testing.assert_allclose(numbers(robot.data.root_com_vel_w), velocity, atol=1e-6)
    name = frame or "link_"
    placed = numbers(getattr(robot.data, f"root_{name}pose_w"))
    np.testing.assert_allclose(placed[:, :3], pose[:, :3], atol=2e-6)
    new = random_states(rng, WORLDS)[:, 7:]
    getattr(robot, f"write_root_{frame}velocity_to_sim")(new)
    name = frame or "com_"
    np.testing.assert_allclose(numbers(getattr(robot.data, f"root_{name}vel_w")), new, atol=5e-6)
    np.testing.assert_allclose(numbers(getattr(robot.data, f"root_{frame or 'link_'}pose_w")), placed, atol=2e-6)


def test_the_pose_of_a_fixed_root_is_its_anchor(rng):
    robot = walker(rng, floating=False)
    pose, mask = random_states(rng, WORLDS)[:, :7], np.arange(WORLDS) != 1
    before = numbers(robot.data.root_pose_w)
    robot.write_root_pose_to_sim(pose, mask)
    found = numbers(robot.data.root_pose_w)
    np.testing.assert_array_equal(found[1], before[1])
    np.testing.assert_allclose(found[mask, :3], pose[mask, :3], atol=2e-6)
    robot.sim.step()
    np.testing.assert_allclose(numbers(robot.data.root_pose_w)[:, :3], found[:, :3], atol=2e-6)
    with pytest.raises(ValueError, match="free joint"):
        robot.write_root_velocity_to_sim(np.ones(6))


def test_position_limits_act_and_clip_default_positions(rng):
    robot = walker(rng, gravity=0.0)
    limits = np.array([-0.2, 0.3])
    robot.data.default_joint_pos.fill_(0.5)
    with pytest.warns(UserWarning, match=r"default position 0\.5\b.*instance"):
        robot.write_joint_position_limit_to_sim(limits, joint_ids=[1, 2], env_ids=[0, 3])
    found = robot.data.joint_pos_limits.numpy()
    np.testing.assert_allclose(found[np.ix_([0, 3], [1, 2])], np.broadcast_to(limits, (2, 2, 2)), rtol=1e-6)
    assert (abs(found[[1, 2, 4]]) > 1e9).all()
    assert np.allclose(robot.data.default_joint_pos.numpy()[0], [0.5, 0.3, 0.3, 0.5])
    # a default that a user sets beyond the limits stays while limits of others are written
    start = robot.data.numpy.default_joint_pos
    start[0, 1] = 0.4
    kept = start.copy()
    robot.write_joint_position_limit_to_sim(limits, joint_ids=[2], env_ids=[0, 3])
    np.testing.assert_array_equal(start, kept)
    robot.write_joint_state_to_sim(0.0, 0.0)
    robot.write_root_velocity_to_sim(0.0)
    robot.set_joint_effort_target(3.0)
    for _ in range(120):
        robot.write_data_to_sim()
        robot.sim.step()
    q = robot.data.joint_pos.numpy()
    assert (q[np.ix_([0, 3], [1, 2])] < 0.31).all() and (abs(q[[1, 2, 4]][:, 1:3]) > 0.31).any()
    with pytest.raises(ValueError, match="lower limit"):
        robot.write_joint_limits_to_sim(limits[::-1].copy())


def test_dry_friction_at_rest_holds_more_than_friction_in_motion(rng):
    """A hinge without gravity: it rests below the bound; beyond it, the effort above the friction in motion accelerates it."""
    robot = walker(rng, floating=False, gravity=0.0)
    robot.write_joint_state_to_sim(0.0, 0.0)
    robot.write_joint_friction_coefficient_to_sim(100.0)
    robot.write_joint_friction_coefficient_to_sim(1.0, 0.4, 0.0, joint_ids=[0])
    d = robot.data
    np.testing.assert_array_equal(d.joint_dynamic_friction_coeff.numpy()[:, 0], np.float32(0.4))
    efforts = np.array([0.5, 0.9, 1.1, 1.5, -1.5])

    def run(steps: int) -> np.ndarray:
        for _ in range(steps):
            robot.write_data_to_sim()
            robot.sim.step()
        return numbers(d.joint_vel)[:, 0]

    robot.set_joint_effort_target(efforts[:, None], joint_ids=[0])
    v = run(10)
    assert abs(v[:2]).max() < 1e-4 and (abs(v[2:]) > 1e-3).all()
    # what moves goes on where friction at rest would hold it
    robot.set_joint_effort_target(0.6 * np.sign(efforts)[:, None], joint_ids=[0])
    w = run(10)
    assert abs(w[:2]).max() < 1e-4 and (abs(w[2:]) > abs(v[2:])).all()
    gained = abs(w[2:] - v[2:])
    robot.set_joint_effort_target(0.8 * np.sign(efforts)[:, None], joint_ids=[0])
    np.testing.assert_allclose(abs(run(10)[2:] - w[2:]) / gained, (0.8 - 0.4) / (0.6 - 0.4), rtol=0.05)
    with pytest.raises(ValueError, match="friction"):
        robot.write_joint_friction_coefficient_to_sim(0.1, 0.2)


def test_friction_in_motion_stops_joints_and_leaves_joint_forces_alone():
    """A joint that coasts loses its momentum at the rate of the friction in motion, and stays where it stops. The user's forces keep their
    bits, and others do not see the two frictions."""
    ends = []
    for at_rest in (0.6, 0.05):
        robot = walker(np.random.default_rng(5), floating=False, gravity=0.0, dt=1e-3)
        robot.write_joint_state_to_sim(0.0, 0.0)
        robot.write_joint_friction_coefficient_to_sim(100.0)
        robot.write_joint_friction_coefficient_to_sim(at_rest, 0.05, 0.0, joint_ids=[3])
        robot.write_joint_velocity_to_sim(0.6, joint_ids=[3])
        given = np.random.default_rng(6).normal(size=robot.sim.control.joint_f.shape).astype(np.float32) * 1e-3
        robot.sim.control.joint_f.assign(given)
        found = []
        for _ in range(600):
            robot.write_data_to_sim()
            robot.sim.step()
            found.append(numbers(robot.data.joint_vel)[:, 3])
        np.testing.assert_array_equal(robot.sim.control.joint_f.numpy(), given)
        np.testing.assert_array_equal(
            robot.model.joint_friction.numpy().reshape(WORLDS, -1)[:, -1], np.float32(at_rest)
        )
        ends.append(np.array(found))
    # single precision; the last step before the stop
    np.testing.assert_allclose(*ends, atol=1e-3)
    assert (ends[0][100] < 0.55).all() and abs(ends[0][-1]).max() < 1e-4


def test_two_assets_of_one_robot_share_its_friction():
    """Both read the same two coefficients, and the robot moves as with one asset, bit for bit, also after one of them is gone."""
    ends = []
    for several in (False, True):
        robot = walker(np.random.default_rng(5), floating=False, gravity=0.0, dt=1e-3)
        robot.write_joint_state_to_sim(0.0, 0.6)
        other = Articulation(robot.sim, "walker") if several else robot
        robot.write_joint_friction_coefficient_to_sim(0.6, 0.05, 0.0)
        np.testing.assert_array_equal(other.data.joint_dynamic_friction_coeff.numpy(), np.float32(0.05))
        other.write_joint_friction_coefficient_to_sim(0.5, 0.1, 0.0, joint_ids=[1])
        np.testing.assert_array_equal(robot.data.joint_friction_coeff.numpy()[0], np.float32([0.6, 0.5, 0.6, 0.6]))
        for step in range(40):
            if several and step == 20:
                del other
            robot.sim.step()
        ends.append(robot.sim.state.joint_qd.numpy().copy())
    np.testing.assert_array_equal(*ends)


def test_thresholds_of_dry_friction_to_one_percent():
    """A hinge with the inertia I and without gravity rests below the friction at rest s and starts above it, for both directions; in
    motion, its speed changes at the rate (effort - d) / I with the friction d."""
    one = nl.ModelBuilder(gravity=0.0)
    link = one.add_link(mass=1.0, inertia=0.2 * np.eye(3), label="wheel")
    one.add_articulation([one.add_joint_revolute(-1, link, axis=(0.0, 0.0, 1.0), label="hinge")], label="wheel")
    factors = np.array([0.99, 1.01, -0.99, -1.01, 3.0])
    builder = nl.ModelBuilder(gravity=0.0)
    builder.replicate(one, len(factors))
    robot = Articulation(SimulationContext(builder.finalize("cpu"), dt=1e-3, evaluator="general"), "wheel")
    rest, motion, inertia = 0.7, 0.4, 0.2
    robot.write_joint_friction_coefficient_to_sim(rest, motion, 0.0)
    robot.set_joint_effort_target(rest * factors[:, None])
    speeds = []
    for _ in range(100):
        robot.write_data_to_sim()
        robot.sim.step()
        speeds.append(numbers(robot.data.joint_vel)[:, 0])
    speeds = np.array(speeds)
    moves = abs(factors) > 1.0
    np.testing.assert_allclose(speeds[:, ~moves], 0.0, atol=1e-6)
    rate = (speeds[-1] - speeds[50]) / (49 * robot.sim.dt)
    wanted = np.sign(factors) * (rest * abs(factors) - motion) / inertia
    np.testing.assert_allclose(rate[moves], wanted[moves], rtol=0.01)
    # coasting: the deceleration is that of the friction in motion
    robot.set_joint_effort_target(0.0)
    robot.write_joint_velocity_to_sim(1.0)
    for _ in range(100):
        robot.write_data_to_sim()
        robot.sim.step()
    np.testing.assert_allclose(numbers(robot.data.joint_vel)[:, 0], 1.0 - 0.1 * motion / inertia, rtol=0.01)


def test_masses_come_back_and_act(rng):
    """A lone force gives the centre of mass of a robot the acceleration F / m, with the masses of each world."""
    robot = walker(rng, gravity=0.0, dt=1e-4)
    d, bodies = robot.data, [0, 2]
    before = d.body_mass.numpy().copy()
    mass = rng.uniform(2.0, 4.0, (2, 2)).astype(np.float32)
    robot.write_body_mass_to_sim(mass, bodies, [1, 3])
    before[np.ix_([1, 3], bodies)] = mass
    np.testing.assert_array_equal(d.body_mass.numpy(), before)
    com = rng.uniform(-0.1, 0.1, (WORLDS, 1, 3)).astype(np.float32)
    robot.write_body_com_to_sim(com, [4])
    np.testing.assert_array_equal(d.body_com_pos_b.numpy()[:, 4:], com)
    inertia = np.diag([0.02, 0.03, 0.04]).ravel()
    robot.write_body_inertia_to_sim(inertia, env_ids=[2])
    kept = robot.data.body_inertia.numpy().copy()
    robot.write_body_inertia_to_sim(2.0 * kept[2:3], env_ids=[2])
    np.testing.assert_array_equal(robot.data.body_inertia.numpy()[2], 2.0 * kept[2])
    robot.write_body_inertia_to_sim(kept[2, 1], [1], [2])
    robot.write_body_inertia_to_sim(wp.array(kept, dtype=wp.float32))
    np.testing.assert_array_equal(robot.data.body_inertia.numpy(), kept)
    np.testing.assert_allclose(d.body_inertia.numpy()[2].reshape(-1, 9), np.tile(inertia, (5, 1)), rtol=1e-6)
    assert not np.array_equal(d.body_inertia.numpy()[0], d.body_inertia.numpy()[2])
    np.testing.assert_array_equal(d.body_com_quat_b.numpy()[2], np.tile([0.0, 0.0, 0.0, 1.0], (5, 1)))
    force = np.array([3.0, -2.0, 5.0])
    robot.set_external_force_and_torque(force, None, body_ids=[1], is_global=True)
    robot.write_root_velocity_to_sim(0.0)
    robot.write_joint_velocity_to_sim(0.0)
    robot.write_data_to_sim()
    robot.sim.step()
    total = before.sum(axis=1)
    found = np.einsum("nb,nbi->ni", before, numbers(d.body_com_lin_acc_w)) / total[:, None]
    np.testing.assert_allclose(found, force / total[:, None], rtol=2e-3, atol=2e-3)


def test_viscous_friction_takes_the_power_of_the_speed_squared(rng):
    robot = walker(rng, floating=False, gravity=0.0)
    robot.write_joint_friction_coefficient_to_sim(0.0, 0.0, 0.7)
    np.testing.assert_array_equal(robot.data.joint_viscous_friction_coeff.numpy(), np.float32(0.7))
    np.testing.assert_array_equal(robot.model.joint_damping.numpy(), np.float32(0.7))
    robot.write_joint_velocity_to_sim(rng.normal(size=(WORLDS, JOINTS)))
    energy, work = [], np.zeros(WORLDS)
    for i in range(40):
        robot.write_data_to_sim()
        speed = numbers(robot.data.joint_vel)
        robot.sim.step()
        both = 0.5 * (speed + numbers(robot.data.joint_vel))
        if i:
            work += 0.7 * robot.sim.dt * (both**2).sum(axis=1)
        if i in (0, 39):
            state = robot.sim.state
            energy.append(dynamics.mechanical_energy(robot.model, state).numpy().astype(float))
    lost = energy[0] - energy[1]
    assert (lost > 0.1 * energy[0]).all()
    # of first order in the time step
    np.testing.assert_allclose(lost, work, rtol=0.05)


def test_drives_follow_what_was_set_only_after_it_was_applied(robot, rng):
    targets = rng.normal(size=(WORLDS, JOINTS)).astype(np.float32)
    coords = robot.sim.control.joint_target_q.numpy().reshape(WORLDS, -1)[:, 7:]
    robot.set_joint_position_target(targets)
    assert not np.array_equal(coords, targets)
    robot.write_data_to_sim()
    np.testing.assert_array_equal(coords, targets)


def test_bad_input_is_named(rng):
    model = scene(rng)
    sim = SimulationContext(model, evaluator="general")
    pd = IdealPDActuatorCfg
    with pytest.raises(KeyError, match="'crawler'"):
        Articulation(sim, "crawler")
    with pytest.raises(ValueError, match=r"'a'.*'left_hop.*'"):
        Articulation(sim, "walker", actuators={"a": pd("left_hop.*")})
    with pytest.raises(ValueError, match=r"'a'.*'b'.*'left_hip_joint'"):
        Articulation(sim, "walker", actuators={"a": pd("left.*"), "b": pd(".*hip_joint")})
    with pytest.raises(TypeError, match=r"'a'.*\bint\b.*configuration"):
        Articulation(sim, "walker", actuators={"a": 3})
    with pytest.raises(ValueError, match=r"'a'.*stiffness.*'left'"):
        Articulation(sim, "walker", actuators={"a": pd(".*", stiffness={"left": 1.0})})
    with pytest.raises(TypeError, match=r"patterns.*\b3\b"):
        Articulation(sim, "walker").find_joints(3)
    with pytest.raises(ValueError, match=r"stiffness.*'left_hip_joint'.*-1\b"):
        Articulation(sim, "walker", actuators={"a": pd(".*", stiffness=-1.0)})
    robot = Articulation(sim, "walker")
    with pytest.raises(ValueError, match=r"target.*\(5, 3\).*\(5, 4\)"):
        robot.set_joint_position_target(np.zeros((5, 3)))
    with pytest.raises(IndexError, match=r"env_ids.*index 5.*5"):
        robot.set_joint_position_target(0.0, env_ids=[5])
    with pytest.raises(IndexError, match="joint_ids: index -1"):
        robot.set_joint_position_target(0.0, joint_ids=[-1])
    with pytest.raises(ValueError, match=r"joint_ids.*\b2\b"):
        robot.set_joint_position_target(0.0, joint_ids=[2, 2])
    with pytest.raises(ValueError, match=r"mask.*\b3\b.*\b5\b"):
        robot.set_joint_position_target(0.0, env_ids=np.ones(3, bool))
    with pytest.raises(ValueError, match="not finite"):
        robot.set_joint_position_target(np.nan)
    with pytest.raises(ValueError, match=r"stiffness -2\b"):
        robot.write_joint_stiffness_to_sim(-2.0)
    with pytest.raises(ValueError, match=r"quaternion.*\brow 0\b"):
        robot.write_root_pose_to_sim(np.zeros(7))


def test_limits_of_drives_limit_the_reported_efforts(rng):
    """Limits of the configuration and limits that are written later, for joints of one law beside joints of another."""
    actuators = {
        "hips": ImplicitActuatorCfg(".*_hip.*", stiffness=100.0, damping=0.0, effort_limit_sim=2.0),
        "knees": IdealPDActuatorCfg(".*knee.*", stiffness=100.0, damping=0.0, effort_limit=3.0),
    }
    robot = walker(rng, actuators=actuators)
    hips, knees = robot.find_joints(".*_hip.*")[0], robot.find_joints(".*knee.*")[0]
    robot.write_joint_state_to_sim(0.0, 0.0)
    robot.set_joint_position_target(5.0)
    robot.write_data_to_sim()
    efforts = robot.data.applied_torque.numpy()
    np.testing.assert_array_equal(efforts[:, hips], 2.0)
    np.testing.assert_array_equal(efforts[:, knees], 3.0)
    mask = np.arange(WORLDS) % 2 == 0
    limits = rng.uniform(0.5, 1.5, (WORLDS, len(robot.joint_names))).astype(np.float32)
    robot.write_joint_effort_limit_to_sim(limits, env_ids=mask)
    robot.write_data_to_sim()
    efforts = robot.data.applied_torque.numpy()
    np.testing.assert_array_equal(efforts[mask][:, hips], limits[mask][:, hips])
    np.testing.assert_array_equal(efforts[~mask][:, hips], 2.0)
    with pytest.raises(ValueError, match=r"limits"):
        robot.write_joint_effort_limit_to_sim(np.ones((WORLDS + 1, 2)), env_ids=mask)


def test_friction_of_all_instances_with_a_mask(rng):
    robot, mask = walker(rng), np.arange(WORLDS) % 2 == 1
    before = robot.data.joint_friction_coeff.numpy().copy()
    friction = rng.uniform(0.1, 0.3, before.shape).astype(np.float32)
    robot.write_joint_friction_coefficient_to_sim(friction, env_ids=mask)
    np.testing.assert_array_equal(robot.data.joint_friction_coeff.numpy(), np.where(mask[:, None], friction, before))
    with pytest.raises(ValueError, match="viscous"):
        robot.write_joint_friction_coefficient_to_sim(0.9, None, -1.0)
    np.testing.assert_array_equal(robot.data.joint_friction_coeff.numpy(), np.where(mask[:, None], friction, before))


@pytest.mark.parametrize("stepped", [False, True])
def test_what_is_refused_changes_nothing(rng, stepped):
    floating, fixed = walker(rng), walker(rng, floating=False)
    for robot in (floating, fixed) if stepped else ():
        robot.sim.step()
    refused = (
        (floating, "write_body_mass_to_sim", (-1.0, [0], [1]), "body_mass"),
        (floating, "write_body_inertia_to_sim", (np.arange(9.0), [0], [1]), "not symmetric"),
        (floating, "write_joint_state_to_sim", (0.3, np.nan), "velocity holds"),
        (floating, "write_joint_position_limit_to_sim", ([-1.0, np.nan],), "limits holds"),
        (floating, "write_joint_friction_coefficient_to_sim", (0.3, 0.2, np.inf), "joint_viscous_friction_coeff holds"),
        (floating, "write_joint_friction_coefficient_to_sim", (0.3, 0.2, np.ones(3)), r"has shape \(3,\)"),
        (fixed, "write_root_state_to_sim", (random_states(rng, WORLDS),), "free joint"),
    )
    for robot, method, arguments, told in refused:
        parts = robot.model, robot.sim.state

        def everything(parts=parts):
            names = ((part, n) for part in parts for n in vars(part) if n.startswith(("joint_", "body_")))
            return {n: getattr(part, n).numpy().copy() for part, n in names if isinstance(getattr(part, n), wp.array)}

        robot.sim.forward()
        before = everything()
        with pytest.raises(ValueError, match=told):
            getattr(robot, method)(*arguments)
        robot.sim.forward()
        for name, values in everything().items():
            np.testing.assert_array_equal(values, before[name], err_msg=f"{method} {name}")
        robot.sim.step()


def cart_and_pole() -> Articulation:
    """The root slides on a rail: it has no free joint, and no anchor that poses could move."""
    one = nl.ModelBuilder()
    cart, pole = one.add_link(mass=1.0, label="cart"), one.add_link(mass=0.2, com=(0, 0, 0.3), label="pole")
    rail = one.add_joint_prismatic(-1, cart, axis=(1, 0, 0), parent_xform=(0, 0, 2.0, 0, 0, 0, 1), label="rail")
    hinge = one.add_joint_revolute(cart, pole, axis=(0, 1, 0), label="hinge")
    one.add_articulation([rail, hinge], label="cartpole")
    worlds = nl.ModelBuilder()
    worlds.replicate(one, WORLDS, spacing=(3.0, 3.0, 0.0))
    return Articulation(SimulationContext(worlds.finalize("cpu"), evaluator="general"), "cartpole")


@pytest.mark.parametrize("kind", ["arm", "cartpole"])
def test_the_reset_of_a_task_carries_over_to_fixed_bases(rng, kind):
    """Default poses and velocities, and those of now, are taken and change nothing but the anchor of an arm; others are refused."""
    robot = cart_and_pole() if kind == "cartpole" else walker(rng, floating=False)
    ids, rows = [1, 3], slice(1, 4, 2)
    start = robot.data.default_root_state.numpy()[ids]
    robot.write_joint_state_to_sim(rng.normal(size=(WORLDS, robot.num_joints)), rng.normal(size=robot.num_joints))
    now = robot.data.root_state_w.numpy()[ids].copy()
    if kind == "cartpole":
        assert (abs(now - start).max(axis=1) > 1e-3).all()
    parts = robot.sim.state.joint_q, robot.sim.state.joint_qd, robot.model.joint_X_p
    before = [numbers(part) for part in parts]
    for state in (start, now):
        robot.write_root_pose_to_sim(state[:, :7], ids)
        robot.write_root_link_pose_to_sim(state[:, :7] * [1, 1, 1, -1, -1, -1, -1], rows)
        robot.write_root_velocity_to_sim(state[:, 7:], ids)
        robot.write_root_velocity_to_sim(np.zeros(6), ids)
        robot.write_root_state_to_sim(state, ids)
    robot.write_root_com_pose_to_sim(robot.data.root_com_pose_w.numpy()[ids], ids)
    robot.write_root_link_velocity_to_sim(robot.data.root_link_vel_w.numpy()[ids], ids)
    for part, kept in zip(parts, before, strict=True):
        np.testing.assert_allclose(part.numpy(), kept, atol=1e-5)
    np.testing.assert_allclose(robot.data.root_state_w.numpy()[ids], now, atol=1e-5)
    for method, values in (("velocity", now[:, 7:] + 0.1), ("state", now + np.r_[np.zeros(7), 0.1 * np.ones(6)])):
        with pytest.raises(ValueError, match="no free joint at its root"):
            getattr(robot, f"write_root_{method}_to_sim")(values, ids)
    if kind == "cartpole":
        with pytest.raises(ValueError, match=r"moves on joint '.*rail'"):
            robot.write_root_pose_to_sim(now[:, :7] + np.r_[0.01, np.zeros(6)], ids)
