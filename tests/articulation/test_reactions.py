"""Wrenches that joints transmit: beside inverse dynamics, and in balance with contacts."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like import dynamics
from newton_like.articulation import Articulation, IdealPDActuatorCfg, ImplicitActuatorCfg, SimulationContext
from newton_like.model.mujoco.contact_settings import declare_body_settings
from newton_like.model.tendons import Tendon, TendonTie
from newton_like.solvers import SolverFeatherstone, SolverXPBD
from tests.articulation.robots import WORLDS, add_robot, numbers, rotation, shake, walker


@pytest.mark.slow
@pytest.mark.parametrize("floating", [True, False])
def test_along_the_axis_of_a_joint_is_what_inverse_dynamics_gives(rng, floating):
    # forces are those of the middle of the step
    robot = walker(
        rng, floating=floating, dt=1e-4, actuators={"a": IdealPDActuatorCfg(".*", stiffness=3.0, damping=0.2)}
    )
    model, state, d = robot.model, robot.sim.state, robot.data
    robot.set_external_force_and_torque(rng.normal(size=(WORLDS, 5, 3)), rng.normal(size=(WORLDS, 5, 3)))
    for _ in range(3):
        robot.write_data_to_sim()
        robot.sim.step()
    found = numbers(d.body_incoming_joint_wrench_b)
    tau = numbers(dynamics.inverse_dynamics(model, state, state.joint_qdd, state.body_f))
    armature = numbers(model.joint_armature).reshape(WORLDS, -1) * numbers(state.joint_qdd).reshape(WORLDS, -1)
    tau = (tau - armature)[:, -4:]
    axes = numbers(model.joint_axis).reshape(WORLDS, -1, 3)[:, -4:]
    # anchors of children are not turned: axes in the child's link are those of the parent, which the joint does not turn
    part = {"left_hip_joint": 3, "left_knee_joint": 0, "right_hip_joint": 3, "right_knee_joint": 3}
    for j, name in enumerate(robot.joint_names):
        along = np.einsum("ni,ni->n", axes[:, j], found[:, 1 + j, part[name] : part[name] + 3])
        np.testing.assert_allclose(along, tau[:, j], rtol=2e-3, atol=2e-3)
    if floating:
        np.testing.assert_allclose(found[:, 0], 0.0, atol=0.03)


def test_a_free_root_gets_no_wrench_while_its_robot_lies_on_the_ground(rng):
    """Contacts, gravity and motion balance; the joints of the legs carry what the ground gives."""
    one = nl.ModelBuilder()
    add_robot(one, rng)
    for body in range(one.body_count):
        one.add_shape_sphere(body, radius=0.08, cfg=nl.ShapeConfig(density=0.0))
    builder = nl.ModelBuilder()
    builder.add_ground_plane()
    builder.replicate(one, WORLDS)
    model = builder.finalize("cpu")
    drives = {"a": ImplicitActuatorCfg(".*", stiffness=20.0, damping=5.0)}
    robot = Articulation(SimulationContext(model, evaluator="general"), "walker", actuators=drives)
    shake(robot, rng)
    robot.write_joint_velocity_to_sim(0.0)
    state = numbers(robot.data.root_state_w)
    state[:, 2], state[:, 7:] = 0.4, 0.0
    robot.write_root_state_to_sim(state)
    robot.sim.step()
    with pytest.raises(ValueError, match="request_contact_attributes"):
        robot.data.body_incoming_joint_wrench_b  # noqa: B018
    model.request_contact_attributes("force")
    for _ in range(400):
        robot.write_data_to_sim()
        robot.sim.step()
    weight = 9.81 * numbers(robot.data.body_mass).sum(axis=1)
    found = numbers(robot.data.body_incoming_joint_wrench_b)
    ground = numbers(robot.sim.solver.contact_forces())[1:].reshape(WORLDS, -1, 3).sum(axis=1)
    assert (ground[:, 2] > 0.1 * weight).any()
    assert abs(found[:, 0]).max() < 0.05 * weight.max()
    assert abs(found[:, 1:]).max() > 0.05 * weight.min()


def test_a_fixed_root_carries_the_weight_at_rest(rng):
    robot = walker(rng, floating=False, actuators={"a": IdealPDActuatorCfg(".*", stiffness=0.0, damping=0.0)})
    robot.write_joint_state_to_sim(0.0, 0.0)
    robot.write_joint_friction_to_sim(1e4)
    for _ in range(3):
        robot.write_data_to_sim()
        robot.sim.step()
    d = robot.data
    turn = rotation(numbers(d.root_quat_w))
    force = np.einsum("nij,nj->ni", turn, numbers(d.body_incoming_joint_wrench_b)[:, 0, :3])
    weight = 9.81 * numbers(d.body_mass).sum(axis=1)
    np.testing.assert_allclose(force, np.stack([0 * weight, 0 * weight, weight], 1), atol=0.02)
    # the torque about the root's anchor is that of the weights at the centres of mass
    arms = numbers(d.body_com_pos_w) - numbers(d.root_pos_w)[:, None]
    torque = np.cross(arms, [0, 0, 9.81] * numbers(d.body_mass)[..., None]).sum(axis=1)
    found = np.einsum("nij,nj->ni", turn, numbers(d.body_incoming_joint_wrench_b)[:, 0, 3:])
    np.testing.assert_allclose(found, torque, atol=0.02)


def pulled_robot(rng, what: str, dt: float = 1e-4) -> Articulation:
    """A fixed robot whose joints are passive, with a loop joint, a spatial tendon or shares of weight between its bodies."""
    one = nl.ModelBuilder()
    if what == "gravcomp":
        declare_body_settings(one)
    add_robot(one, rng, floating=False)
    left, right = (one.body_label.index(f"walker/{side}_knee") for side in ("left", "right"))
    if what == "loop":
        alone = nl.ModelBuilder()
        alone.replicate(one, 1)
        straight = Articulation(SimulationContext(alone.finalize("cpu", dtype=wp.float64)), "walker")
        places = numbers(straight.data.body_link_pos_w)[0]
        point = places[left] + rng.uniform(-0.1, 0.1, 3)
        ends = [(*(point - places[b]), 0, 0, 0, 1) for b in (left, right)]
        one.add_joint_ball(left, right, parent_xform=ends[0], child_xform=ends[1], label="loop")
    elif what == "tendon":
        sites = [one.add_site(b, xform=(*rng.uniform(-0.2, 0.2, 3), 0, 0, 0, 1)) for b in (left, 0, right, left)]
        path = (
            ("pulley", 2.0),
            ("site", sites[0]),
            ("site", sites[1]),
            ("pulley", 1.0),
            ("site", sites[2]),
            ("site", sites[3]),
        )
        one.add_tendon(Tendon(label="rope", path=path, stiffness=50.0, damping=1.0, rest_length=(0.1, 0.1)))
    builder = nl.ModelBuilder()
    if what == "gravcomp":
        declare_body_settings(builder)
    builder.replicate(one, WORLDS)
    model = builder.finalize("cpu", dtype=wp.float64)
    if what == "gravcomp":
        model.mujoco.gravcomp.assign(rng.uniform(0.0, 1.0, model.body_count).astype(np.float32))
    return Articulation(SimulationContext(model, dt=dt, evaluator="general"), "walker")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["loop", *(pytest.param(x, marks=pytest.mark.slow) for x in ("tendon", "gravcomp"))])
def test_passive_joints_transmit_nothing_along_their_axes(rng, what):
    """Along the axis of a joint without drives acts what accelerates its armature; so the forces of loops, tendons and shares of weight
    are on the right bodies, at the right points. All bodies together are carried by the fixed root."""
    robot = pulled_robot(rng, what)
    if what == "loop":
        robot.write_joint_state_to_sim(0.0, 0.0)
    else:
        shake(robot, rng)
    model, d = robot.model, robot.data
    for _ in range(3):
        robot.sim.step()
    found = numbers(d.body_incoming_joint_wrench_b)
    armature = numbers(d.joint_armature) * numbers(d.joint_acc)
    axes = numbers(model.joint_axis).reshape(WORLDS, -1, 3)
    part = {"left_hip_joint": 3, "left_knee_joint": 0, "right_hip_joint": 3, "right_knee_joint": 3}
    size = abs(found).max()
    for j, name in enumerate(robot.joint_names):
        along = np.einsum("ni,ni->n", axes[:, j], found[:, 1 + j, part[name] : part[name] + 3])
        np.testing.assert_allclose(along, -armature[:, j], rtol=1e-3, atol=1e-3 * size)
    assert size > 1.0
    force = np.einsum("nij,nj->ni", rotation(numbers(d.root_quat_w)), found[:, 0, :3])
    mass = numbers(d.body_mass)[..., None]
    share = model.mujoco.gravcomp.numpy().reshape(WORLDS, -1, 1) if what == "gravcomp" else 0.0
    wanted = (mass * (numbers(d.body_com_lin_acc_w) + (1.0 - share) * np.array([0.0, 0.0, 9.81]))).sum(axis=1)
    np.testing.assert_allclose(force, wanted, rtol=1e-6, atol=1e-6 * size)


def test_forces_that_are_not_known_by_body_are_named():
    """Models whose loop joints, tendons or actuators act on bodies by forces that the solver does not report are refused."""
    one = nl.ModelBuilder()
    add_robot(one, np.random.default_rng(1), floating=False)
    site = one.add_site(1, xform=(0, 0, 0, 0, 0, 0, 1))
    one.add_tendon(
        Tendon(label="cord", path=(("site", site), ("site", one.add_site(3))), ties=(TendonTie(polycoef=(0.0,) * 5),))
    )
    builder = nl.ModelBuilder()
    builder.replicate(one, 1)
    robot = Articulation(SimulationContext(builder.finalize("cpu"), evaluator="general"), "walker")
    with pytest.raises(NotImplementedError, match="ties"):
        robot.data.body_incoming_joint_wrench_b  # noqa: B018


@pytest.mark.slow
def test_a_pinned_chain_is_beside_mujoco(rng):
    """Three hinges whose tip is pinned to the world: at rest, forces and torques of the joints are those of MuJoCo's cfrc_int, which is
    about the centre of mass of the chain, in world axes."""
    mujoco = pytest.importorskip("mujoco")
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    bodies = ""
    for k, axis in enumerate(axes):
        place, tip = rng.uniform(-0.1, 0.1, 3), rng.uniform(0.2, 0.4, 3)
        bodies += (
            f'<body name="b{k}" pos="{" ".join(map(repr, map(float, 0.3 + place)))}">'
            f'<joint name="j{k}" axis="{" ".join(map(repr, map(float, axis)))}" damping="2"/>'
            f'<geom type="sphere" size="0.05" pos="{" ".join(map(repr, map(float, tip)))}" mass="{0.5 + k}" contype="0" conaffinity="0"/>'
        )
    text = (
        f'<mujoco><compiler angle="radian" autolimits="true"/><option timestep="0.002" integrator="implicitfast"/><worldbody>{bodies}'
        f'{"</body>" * 3}</worldbody><equality><connect body1="b2" anchor="0.2 0.1 0.3" solref="0.005 1" solimp="0.99 0.9999 0.001"/>'
        "</equality></mujoco>"
    )
    theirs = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    for _ in range(2000):
        mujoco.mj_step(theirs, data)
    mujoco.mj_forward(theirs, data)
    mujoco.mj_rnePostConstraint(theirs, data)
    builder = nl.ModelBuilder()
    builder.add_mjcf(text)
    robot = Articulation(
        SimulationContext(builder.finalize("cpu", dtype=wp.float64), dt=2e-3, evaluator="general"), "*"
    )
    for _ in range(2000):
        robot.sim.step()
    d = robot.data
    assert abs(numbers(d.joint_vel)).max() < 1e-3
    found = numbers(d.body_incoming_joint_wrench_b)[0]
    turn = rotation(numbers(d.body_link_quat_w)[0])
    names = [theirs.body(i).name for i in range(theirs.nbody)]
    for k, name in enumerate(d.body_names):
        i = names.index(name.rpartition("/")[2])
        force = turn[k] @ found[k, :3]
        arm = numbers(d.body_link_pos_w)[0, k] - data.subtree_com[1]
        torque = turn[k] @ found[k, 3:] + np.cross(arm, force)
        size = 9.81 * 4.5
        np.testing.assert_allclose(force, data.cfrc_int[i, 3:], atol=5e-3 * size)
        np.testing.assert_allclose(torque, data.cfrc_int[i, :3], atol=5e-3 * size)
    assert abs(data.cfrc_int[1:, 3:]).max() > 1.0


@pytest.mark.slow
@pytest.mark.parametrize("what", ["loop", "tendon", "gravcomp"])
def test_states_have_these_wrenches_on_request(rng, what):
    """About centres of mass and in world axes, and written by a step."""
    robot = pulled_robot(rng, what)
    shake(robot, rng)
    if what == "loop":
        robot.write_joint_state_to_sim(0.0, 0.0)
    model, d = robot.model, robot.data
    robot.sim.forward()
    model.request_state_attributes("body_parent_f")
    state = model.state()
    for name in ("joint_q", "joint_qd"):
        wp.copy(getattr(state, name), getattr(robot.sim.state, name))
    SolverFeatherstone(model, evaluator="general").step(state, state, dt=robot.sim.dt)
    robot.sim.step()
    found = numbers(state.body_parent_f).reshape(WORLDS, -1, 6)
    turn = rotation(numbers(d.body_link_quat_w).reshape(-1, 4)).reshape(WORLDS, -1, 3, 3)
    wanted = numbers(d.body_incoming_joint_wrench_b)
    force, torque = (np.einsum("nbij,nbj->nbi", turn, part) for part in (wanted[..., :3], wanted[..., 3:]))
    child = model.joint_child.numpy()
    anchors = np.zeros((model.body_count, 3))
    tree = model.joint_articulation.numpy() >= 0
    anchors[child[tree]] = numbers(model.joint_X_c)[tree, :3]
    anchors = np.einsum("nbij,nbj->nbi", turn, anchors.reshape(WORLDS, -1, 3)) + numbers(d.body_link_pos_w)
    torque += np.cross(anchors - numbers(d.body_com_pos_w), force)
    scale = abs(force).max()
    assert scale > 1.0
    np.testing.assert_allclose(found[..., :3], force, atol=1e-9 * scale)
    np.testing.assert_allclose(found[..., 3:], torque, atol=1e-9 * scale)


@pytest.mark.parametrize("of", ["loop joints", "tendons"])
def test_a_solver_that_does_not_tell_forces_is_named(of):
    builder = nl.ModelBuilder()
    rod = builder.add_link(mass=1.0, com=(0.3, 0, 0), inertia=0.02 * np.eye(3))
    builder.add_articulation([builder.add_joint_revolute(-1, rod, axis=(0, 1, 0))], label="rod")
    if of == "tendons":
        sites = (
            builder.add_site(-1, xform=(0.5, 0, 2, 0, 0, 0, 1)),
            builder.add_site(rod, xform=(0.5, 0, 0, 0, 0, 0, 1)),
        )
        builder.add_tendon(Tendon(label="rope", path=tuple(("site", site) for site in sites), stiffness=10.0))
    else:
        builder.add_joint_ball(-1, rod)
    robot = Articulation(SimulationContext(builder.finalize("cpu"), solver=SolverXPBD), "rod")
    robot.sim.step()
    with pytest.raises(NotImplementedError, match=f"body_incoming_joint_wrench_b needs the forces of {of}.*SolverXPBD"):
        robot.data.body_incoming_joint_wrench_b  # noqa: B018
