"""Arrays of states on request: accelerations of bodies, wrenches through joints and forces of drives, beside MuJoCo."""

import dataclasses

import mujoco
import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like.model.tendons import Tendon
from newton_like.solvers import SolverFeatherstone, SolverXPBD
from newton_like.types import JointTargetMode, JointType
from tests.support import reference
from tests.support.mujoco_bridge import MujocoBridge
from tests.support.random_trees import random_state, random_tree
from tests.support.simulate import Simulation, worlds_of

ARRAYS = ("body_qdd", "body_parent_f", "mujoco:qfrc_actuator")
WORLDS = 6
# a step this small leaves errors of 1e-4 of accelerations, where they change fast
SMALL = 1.0e-8
ERROR = 1.0e-4


def close(found, wanted, error=ERROR):
    """Errors are small beside the largest number of a tree."""
    np.testing.assert_allclose(found, wanted, rtol=error, atol=error * np.max(np.abs(wanted), initial=1.0))


def driven_trees(rng) -> Simulation:
    """One world for each of some random trees, whose joints have drives of all modes."""
    scene = worlds_of(random_tree(rng, joints=int(rng.integers(2, 8)), stiffness=True) for _ in range(WORLDS))
    for j, kind in enumerate(scene.joint_type):
        start = scene.joint_qd_start[j]
        for d in range(start, start + sum(scene.joint_dof_dim[j]) * (kind not in (JointType.FREE, JointType.DISTANCE))):
            scene.joint_target_mode[d] = int(rng.integers(4))
            if scene.joint_target_mode[d] != JointTargetMode.NONE:
                scene.joint_target_ke[d], scene.joint_target_kd[d] = rng.uniform(1.0, 50.0), rng.uniform(0.1, 5.0)
            scene.joint_effort_limit[d] = rng.uniform(5.0, 50.0)
    scene.request_state_attributes(*ARRAYS)
    return Simulation(scene, SMALL, dtype=wp.float64)


def drawn(simulation, rng) -> dict[str, np.ndarray]:
    """Draws and sets the state, and forces and targets."""
    model = simulation.model
    q, qd = random_state(model, rng)
    target_q, target_qd = random_state(model, rng)
    simulation.set_state(q, qd)
    nl.eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)
    result = {"q": q, "qd": qd, "body_f": rng.normal(size=(model.body_count, 6))}
    result |= {"joint_target_q": target_q, "joint_target_qd": target_qd}
    result |= {name: rng.normal(size=model.joint_dof_count) for name in ("joint_f", "joint_act")}
    simulation.state.body_f.assign(result["body_f"])
    for name in ("joint_target_q", "joint_target_qd", "joint_f", "joint_act"):
        getattr(simulation.control, name).assign(result[name])
    return result


def forces_of_drives(model, tree, given) -> np.ndarray:
    """The law of a drive at the coordinates and velocities that were drawn."""
    dofs = tree.dofs
    mode, ke, kd, most = (
        getattr(model, f"joint_{n}").numpy()[dofs] for n in ("target_mode", "target_ke", "target_kd", "effort_limit")
    )
    goal = dataclasses.replace(
        tree, joint_rest_q=given["joint_target_q"][tree.coords], joint_stiffness=np.zeros(tree.dof_count)
    )
    error = -reference.spring_offsets(goal, given["q"][tree.coords])
    rate = given["joint_target_qd"][dofs] * (mode & JointTargetMode.VELOCITY != 0) - given["qd"][dofs]
    force = ke * error * (mode & JointTargetMode.POSITION != 0) + kd * rate * (mode != 0)
    return np.clip(force + given["joint_act"][dofs], -most, most)


def test_accelerations_are_the_rates_of_velocities(rng):
    simulation = driven_trees(rng)
    drawn(simulation, rng)
    before, after = simulation.state, simulation.model.state()
    simulation.solver.step(before, after, simulation.control, dt=SMALL)
    close(after.body_qdd.numpy(), (after.body_qd.numpy() - before.body_qd.numpy()) / SMALL)


def test_accelerations_and_wrenches_are_those_of_mujoco(rng):
    simulation = driven_trees(rng)
    given, model = drawn(simulation, rng), simulation.model
    after = model.state()
    simulation.solver.step(simulation.state, after, simulation.control, dt=SMALL)
    found, wrench, drives = (a.numpy() for a in (after.body_qdd, after.body_parent_f, after.mujoco.qfrc_actuator))
    for w in range(WORLDS):
        bridge = MujocoBridge(model, world=w)
        tree, data = bridge.tree, bridge.data
        q, qd, body_f = given["q"][tree.coords], given["qd"][tree.dofs], given["body_f"][tree.bodies]
        force = forces_of_drives(model, tree, given)
        close(drives[tree.dofs], force, 1.0e-9)
        joint_f = reference.generalized_forces(tree, q, given["joint_f"][tree.dofs])
        bridge.forward_dynamics(q, qd, joint_f + force, body_f)
        data.xfrc_applied[bridge.body_id] = body_f
        mujoco.mj_rnePostConstraint(bridge.model, data)
        rates, pulls = [], []
        for i in bridge.body_id:
            # of MuJoCo angular first, about the centre of mass of the tree, in axes that do not turn; with gravity as an acceleration
            arm = data.xipos[i] - data.subtree_com[bridge.model.body_rootid[i]]
            spin, alpha, torque = data.cvel[i, :3], data.cacc[i, :3], data.cfrc_int[i, :3]
            velocity = data.cvel[i, 3:] - np.cross(arm, spin)
            linear = data.cacc[i, 3:] - np.cross(arm, alpha) + np.cross(spin, velocity) + bridge.model.opt.gravity
            rates.append([*linear, *alpha])
            pull = data.cfrc_int[i, 3:]
            pulls.append([*pull, *(torque - np.cross(arm, pull))])
        close(found[tree.bodies], rates)
        close(wrench[tree.bodies], pulls)


@pytest.mark.slow
def test_forces_of_drives_are_those_of_mujoco(rng):
    """Of all joints that MuJoCo drives: its actuators are position and velocity drive in one."""
    axes = (JointType.PRISMATIC, JointType.REVOLUTE, JointType.D6, JointType.FREE, JointType.FIXED)
    scene = worlds_of(random_tree(rng, joints=6, types=axes) for _ in range(WORLDS))
    for j, kind in enumerate(scene.joint_type):
        if kind in axes[:3]:
            start = scene.joint_qd_start[j]
            for d in range(start, start + sum(scene.joint_dof_dim[j])):
                scene.joint_target_mode[d] = int(JointTargetMode.POSITION_VELOCITY)
                scene.joint_target_ke[d], scene.joint_target_kd[d] = rng.uniform(1.0, 50.0), rng.uniform(0.1, 5.0)
                scene.joint_effort_limit[d] = rng.uniform(5.0, 50.0)
    scene.request_state_attributes("mujoco:qfrc_actuator")
    simulation = Simulation(scene, SMALL, dtype=wp.float64)
    given, state = drawn(simulation, rng), simulation.state
    simulation.solver.step(state, state, simulation.control, dt=0.01)
    found = state.mujoco.qfrc_actuator.numpy()
    for w in range(WORLDS):
        bridge = MujocoBridge(simulation.model, world=w, drives=True)
        tree = bridge.tree
        own = [
            given[name][tree.coords if name.endswith("_q") else tree.dofs]
            for name in ("joint_target_q", "joint_target_qd")
        ]
        bridge.data.ctrl[:] = bridge.ctrl(*own, given["joint_act"][tree.dofs])
        q, qd = given["q"][tree.coords], given["qd"][tree.dofs]
        bridge.set_state(q, qd)
        wanted = bridge.velocity_map(q)[0].T @ bridge.data.qfrc_actuator
        close(found[tree.dofs][bridge._driven], wanted[bridge._driven], 1.0e-9)


def stacked_boxes() -> nl.ModelBuilder:
    """A box with a mass on a fixed joint stands on the ground, and another box on it."""
    one = nl.ModelBuilder()
    below = one.add_link(xform=(0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0))
    one.add_shape_box(below, hx=0.2, hy=0.2, hz=0.1)
    held = one.add_link(mass=2.0, inertia=0.01 * np.eye(3))
    base = one.add_joint_free(below)
    one.add_articulation([base, one.add_joint_fixed(below, held, parent_xform=(0.05, 0.02, -0.05, 0.0, 0.0, 0.0, 1.0))])
    above = one.add_body(xform=(0.02, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0))
    one.add_shape_box(above, hx=0.1, hy=0.1, hz=0.1)
    scene = nl.ModelBuilder()
    scene.add_ground_plane()
    scene.replicate(one, 3)
    return scene


@pytest.mark.slow
@pytest.mark.parametrize("handed", [False, True])
def test_contacts_carry_what_no_joint_carries(handed):
    """At rest, a FREE joint transmits nothing, and a fixed joint the weight of what it holds."""
    scene = stacked_boxes()
    scene.request_state_attributes("body_parent_f")
    model = scene.finalize("cpu", dtype=wp.float64)
    assert "force" in model.contact_attributes and model.state_attributes == {"body_parent_f", "joint_qdd"}
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    for _ in range(240):
        solver.step(state, state, contacts=model.collide(state) if handed else None, dt=1.0 / 240.0)
    wrench = state.body_parent_f.numpy().reshape(3, 3, 6)
    weight = 9.81 * model.body_mass.numpy()
    assert weight[0] > 50.0
    np.testing.assert_allclose(wrench[:, [0, 2]], 0.0, atol=1.0e-3 * weight[0])
    np.testing.assert_allclose(wrench[:, 1], [[0.0, 0.0, weight[1], 0.0, 0.0, 0.0]] * 3, atol=1.0e-3 * weight[1])


@pytest.mark.slow
def test_steps_in_place_with_substeps_in_graphs_and_specialised_write_the_same(rng):
    scene = worlds_of(random_tree(rng, joints=4) for _ in range(2))
    scene.request_state_attributes(*ARRAYS)
    model = scene.finalize("cpu")
    model.request_contact_attributes("force")
    q, qd = random_state(model, rng)
    state, other = model.state(), model.state()
    state.joint_q.assign(q), state.joint_qd.assign(qd)

    def arrays(x):
        return [a.numpy().tobytes() for a in (x.joint_q, x.body_qdd, x.body_parent_f, x.mujoco.qfrc_actuator)]

    solver = SolverFeatherstone(model, evaluator="general", substeps=2)
    solver.step(state, other, dt=0.01)
    start, wanted = state.clone(), arrays(other)
    with wp.ScopedCapture("cpu") as capture:
        solver.step(state, state, dt=0.01)
    for array in (state.body_qdd, state.body_parent_f, state.mujoco.qfrc_actuator):
        array.fill_(7.0)
    state.joint_q.assign(start.joint_q), state.joint_qd.assign(start.joint_qd)
    wp.capture_launch(capture.graph)
    assert arrays(state) == wanted
    state.assign(start)
    solver.step(state, state, dt=0.01)
    assert arrays(state) == wanted
    special = model.state()
    SolverFeatherstone(model, evaluator="specialised", substeps=2).step(start, special, dt=0.01)
    assert arrays(special) == wanted
    # the forces of drives are those before the step, the rest that of its last part
    twice = model.state()
    halves = SolverFeatherstone(model, evaluator="general")
    halves.step(start, twice, dt=0.005)
    halves.step(twice, twice, dt=0.005)
    assert arrays(twice)[:3] == wanted[:3]


def hinge(**options) -> nl.ModelBuilder:
    builder = nl.ModelBuilder()
    rod = builder.add_link(mass=2.0, com=(0.5, 0.0, 0.0), inertia=np.diag([0.1, 0.1, 0.1]))
    builder.add_articulation([builder.add_joint_revolute(-1, rod, axis=(0, 1, 0), **options)])
    return builder


def test_requests_of_builders_come_to_their_models():
    one = hinge()
    one.request_state_attributes("body_qdd")
    one.request_contact_attributes("force")
    builder = nl.ModelBuilder()
    builder.add_world(one)
    builder.request_state_attributes("mujoco:qfrc_actuator")
    model = builder.finalize("cpu")
    assert model.state_attributes == {"body_qdd", "joint_qdd", "mujoco:qfrc_actuator"}
    assert model.contact_attributes == {"force"} and one.finalize("cpu").state_attributes == {"body_qdd", "joint_qdd"}
    state = model.state()
    assert state.body_parent_f is None and state.body_qdd.dtype is wp.spatial_vector and len(state.body_qdd) == 1
    assert len(state.mujoco.qfrc_actuator) == 1
    view = nl.selection.ArticulationView(model, "*")
    assert view.get_attribute("mujoco.qfrc_actuator", state).shape == (1, 1, 1)
    assert view.get_attribute("body_qdd", state).shape == (1, 1, 1)
    assert hinge().finalize("cpu").state().body_qdd is None
    for owner in (builder, model):
        with pytest.raises(
            ValueError, match=r"'body_qddd'.*'joint_qdd', 'body_qdd', 'body_parent_f', 'mujoco:qfrc_actuator'"
        ):
            owner.request_state_attributes("body_qddd")
        with pytest.raises(TypeError, match="text"):
            owner.request_state_attributes(("body_qdd",))
        with pytest.raises(ValueError, match=r"'forces'.*'force'"):
            owner.request_contact_attributes("forces")


def test_a_custom_attribute_of_that_name_is_in_the_way():
    builder = hinge()
    state, dof = nl.Model.AttributeAssignment.STATE, nl.Model.AttributeFrequency.JOINT_DOF
    builder.add_custom_attribute(builder.CustomAttribute("qfrc_actuator", float, dof, state, "mujoco"))
    builder.request_state_attributes("mujoco:qfrc_actuator")
    with pytest.raises(ValueError, match=r"'mujoco:qfrc_actuator'.*custom attribute"):
        builder.finalize("cpu")


def test_states_of_before_the_request_are_stepped_as_before():
    model = hinge().finalize("cpu")
    solver, old = SolverFeatherstone(model, evaluator="general"), model.state()
    solver.step(old, old, dt=1e-3)
    model.request_state_attributes(*ARRAYS)
    new, mixed = model.state(), model.state()
    new.joint_q.assign(old.joint_q), new.joint_qd.assign(old.joint_qd)
    solver.step(new, new, dt=1e-3)
    solver.step(old, old, dt=1e-3)
    assert old.body_qdd is None and not hasattr(old, "mujoco")
    assert old.joint_q.numpy()[0] == new.joint_q.numpy()[0] and abs(new.body_qdd.numpy()).max() > 1.0
    with pytest.raises(ValueError, match="State"):
        new.assign(old)
    twin = new.clone()
    mixed.assign(twin)
    for array in ("body_qdd", "body_parent_f"):
        np.testing.assert_array_equal(getattr(mixed, array).numpy(), getattr(new, array).numpy())
    mixed.joint_qdd = None
    with pytest.raises(ValueError, match="joint_qdd"):
        solver.step(mixed, mixed, dt=1e-3)


def test_models_with_other_forces_are_refused_by_name():
    builder = hinge()
    builder.add_tendon(Tendon(label="rope", joints=((0, 0, 1.0),)))
    builder.request_state_attributes("mujoco:qfrc_actuator")
    with pytest.raises(NotImplementedError, match=r"'mujoco:qfrc_actuator'.*'rope'"):
        SolverFeatherstone(builder.finalize("cpu"), evaluator="general")


def test_a_kinematic_body_has_no_drive():
    builder = hinge(target_ke=100.0, target_q=1.0, target_kd=1.0)
    builder.body_flags[0] = int(nl.BodyFlags.KINEMATIC)
    builder.request_state_attributes(*ARRAYS)
    model = builder.finalize("cpu")
    state = model.state()
    state.joint_qd.fill_(3.0)
    SolverFeatherstone(model, evaluator="general").step(state, state, dt=1e-3)
    assert state.mujoco.qfrc_actuator.numpy()[0] == 0.0
    # it turns evenly: towards the hinge
    np.testing.assert_allclose(np.linalg.norm(state.body_qdd.numpy()[0, :3]), 9.0 * 0.5, rtol=1e-4)


@pytest.mark.parametrize("in_place", [False, True])
def test_maximal_coordinates_write_mean_accelerations(in_place):
    builder = nl.ModelBuilder(gravity=(1.0, 2.0, -3.0))
    builder.add_body(mass=1.0, inertia=np.eye(3))
    builder.request_state_attributes("body_qdd")
    model = builder.finalize("cpu")
    before = model.state()
    after = before if in_place else model.state()
    before.body_qd.assign([[1.0, 0.0, 0.0, 0.0, 0.0, 2.0]])
    before.body_f.assign([[0.5, 0.0, 0.0, 0.0, 0.0, 0.25]])
    SolverXPBD(model).step(before, after, dt=0.01)
    np.testing.assert_allclose(after.body_qdd.numpy(), [[1.5, 2.0, -3.0, 0.0, 0.0, 0.25]], atol=1e-4)


@pytest.mark.parametrize("name", ["body_parent_f", "mujoco:qfrc_actuator"])
def test_maximal_coordinates_refuse_the_others_by_name(name):
    builder = hinge()
    builder.request_state_attributes(name)
    model = builder.finalize("cpu")
    state = model.state()
    before = state.body_q.numpy().copy()
    with pytest.raises(NotImplementedError, match=rf"State\.{name.replace(':', '.')}.*SolverFeatherstone"):
        SolverXPBD(model).step(state, state, dt=0.01)
    np.testing.assert_array_equal(state.body_q.numpy(), before)
