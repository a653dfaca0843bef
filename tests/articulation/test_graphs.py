"""Steps of assets in graphs: launches give the bits of ordinary steps."""

import gc
import re

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like.articulation import (
    Articulation,
    ArticulationData,
    DCMotorCfg,
    DelayedPDActuatorCfg,
    IdealPDActuatorCfg,
    ImplicitActuatorCfg,
    NetworkActuatorCfg,
    RigidObjectCollection,
    SimulationContext,
)
from newton_like.articulation.multirotor import LeePositionController, Multirotor, add_vehicle
from tests.articulation.robots import WORLDS, scene

DATA = (
    "root_state_w",
    "projected_gravity_b",
    "body_acc_w",
    "body_com_state_w",
    "joint_pos",
    "joint_vel",
    "joint_acc",
    "applied_torque",
)
GAINS = {"stiffness": 20.0, "damping": 1.0}
ACTUATORS = {
    "implicit": ImplicitActuatorCfg(".*", **GAINS),
    "ideal": IdealPDActuatorCfg(".*", **GAINS, effort_limit=5.0),
    "motor": DCMotorCfg(".*", **GAINS, effort_limit=5.0, saturation_effort=6.0, velocity_limit=9.0),
    "delayed": DelayedPDActuatorCfg(".*", **GAINS, effort_limit=5.0, max_delay=3),
}


def two(seed, actuators=None, **options):
    """The same robot twice: one is stepped, and a graph moves the other."""
    found = []
    for _ in range(2):
        model = scene(np.random.default_rng(seed))
        sim = SimulationContext(model, dt=1 / 240, decimation=2, evaluator="general", **options)
        found.append(Articulation(sim, "walker", actuators=actuators))
    return found


def assert_same(one, other, names=DATA) -> None:
    for name in names:
        a, b = (getattr(each.data, name).numpy() for each in (one, other))
        assert np.isfinite(a).all() and np.array_equal(a, b), f"{name} differs by {abs(a - b).max()}"


@pytest.mark.parametrize("kind", ACTUATORS)
def test_a_graph_takes_the_steps_of_an_environment(kind, rng):
    """Targets, wrenches, resets, poses and numbers of actuators that are written between launches count."""
    varying = ("joint_target_ke", "body_com")
    stepped, replayed = pair = two(rng.integers(1 << 30), {"legs": ACTUATORS[kind]}, varying=varying)
    for robot in pair:
        robot.write_joint_friction_coefficient_to_sim(0.5, 0.2, 0.01)
        robot.sim.advance(robot)
    before = replayed.sim.state.joint_q.numpy().copy()
    with replayed.sim.capture() as graph:
        replayed.sim.advance(replayed)
        seen = {name: getattr(replayed.data, name) for name in DATA}
    assert np.array_equal(replayed.sim.state.joint_q.numpy(), before), "a capture runs nothing"
    assert (replayed.sim.steps, graph.steps) == (2, 2)
    assert_same(*pair)
    for k in range(8):
        targets, push = rng.normal(0, 0.5, (WORLDS, 4)), rng.normal(0, 3.0, (2, 5, 3))
        for robot in pair:
            robot.set_joint_position_target(targets)
            if k == 1:
                robot.set_external_force_and_torque(push, None, env_ids=[0, 3])
            if k == 2:
                robot.instantaneous_wrench_composer.add_forces_and_torques(torques=push, env_ids=[1, 2])
            if k == 3:
                robot.reset_to([1, 4])
                robot.write_root_pose_to_sim([1.0, 2.0, 3.0, 0.0, 0.6, 0.0, 0.8], env_ids=[3])
            if k == 5:
                robot.actuators["legs"].set_numbers([2], stiffness=35.0)
                robot.write_body_com_to_sim(np.full(3, 0.05), body_ids=[0], env_ids=[0])
            if k == 6:
                robot.sim.advance(robot)
        stepped.sim.advance(stepped)
        graph.launch()
        for name, array in seen.items():
            assert np.array_equal(array.numpy(), getattr(stepped.data, name).numpy()), f"{name} of the graph"
        assert_same(*pair)
    assert stepped.sim.steps == replayed.sim.steps and stepped.sim.time == pytest.approx(replayed.sim.time)


def test_a_plain_capture_of_warp_records_commands_too(rng):
    stepped, replayed = two(rng.integers(1 << 30), {"legs": ACTUATORS["ideal"]})
    for robot in (stepped, replayed):
        robot.sim.advance(robot)
    with wp.ScopedCapture("cpu") as capture:
        replayed.sim.advance(replayed)
    for _ in range(3):
        targets = rng.normal(0, 0.5, (WORLDS, 4))
        for robot in (stepped, replayed):
            robot.set_joint_position_target(targets)
        stepped.sim.advance(stepped)
        wp.capture_launch(capture.graph)
        replayed.update(1 / 120)
        assert_same(stepped, replayed)


def test_targets_on_the_device_are_read_by_the_graph(rng):
    """Writes of Warp arrays are part of a graph, also of states."""
    stepped, replayed = two(rng.integers(1 << 30), {"legs": ACTUATORS["ideal"]})
    targets, pose = (
        wp.zeros((WORLDS, 4), dtype=wp.float32, device="cpu"),
        wp.zeros((WORLDS, 7), dtype=wp.float32, device="cpu"),
    )

    def act(robot):
        robot.set_joint_position_target(targets)
        robot.sim.advance(robot)
        robot.write_root_pose_to_sim(pose)

    with replayed.sim.capture() as graph:
        act(replayed)
    for _ in range(3):
        targets.assign(rng.normal(0, 0.5, (WORLDS, 4)))
        turn = rng.normal(size=(WORLDS, 4))
        pose.assign(np.hstack([rng.normal(size=(WORLDS, 3)), turn / np.linalg.norm(turn, axis=1)[:, None]]))
        act(stepped)
        graph.launch()
        assert_same(stepped, replayed)


def test_substeps_and_collections(rng):
    stepped, replayed = two(rng.integers(1 << 30), {"legs": ACTUATORS["implicit"]}, substeps=2)
    with replayed.sim.capture() as graph:
        replayed.sim.advance(replayed)
    for _ in range(2):
        stepped.sim.advance(stepped)
        graph.launch()
        assert_same(stepped, replayed)
    pair = []
    for _ in range(2):
        one, many = nl.ModelBuilder(), nl.ModelBuilder()
        for label in "ab":
            body = one.add_link(mass=1.0, com=(0.1, 0.0, 0.0), inertia=np.eye(3) * 0.1, label=label)
            one.add_articulation([one.add_joint_free(body)], label=label)
        many.replicate(one, WORLDS)
        pair.append(RigidObjectCollection(SimulationContext(many.finalize("cpu"), evaluator="general"), ["a", "b"]))
    turning = rng.normal(size=(WORLDS, 2, 6))
    for each in pair:
        each.write_object_velocity_to_sim(turning)
    with pair[1].sim.capture() as graph:
        pair[1].sim.advance(pair[1])
        speeds = pair[1].data.object_link_vel_w
    for _ in range(2):
        pair[0].sim.advance(pair[0])
        graph.launch()
        assert np.array_equal(speeds.numpy(), pair[0].data.object_link_vel_w.numpy())
        assert_same(*pair, ("object_state_w", "object_acc_w"))


def test_multirotors(rng):
    """Controllers, motors and wrenches that are set later."""
    pair = []
    for _ in range(2):
        one, many = nl.ModelBuilder(), nl.ModelBuilder()
        settings = add_vehicle(one, "iris")
        many.replicate(one, WORLDS)
        sim = SimulationContext(many.finalize("cpu"), decimation=2, evaluator="general")
        drone = Multirotor(sim, "iris", settings)
        drone.controller = LeePositionController(drone)
        drone.controller.set_command(np.zeros(4))
        pair.append(drone)
    with pair[1].sim.capture() as graph:
        pair[1].sim.advance(pair[1])
    for k in range(6):
        goal, gust = rng.normal(size=(WORLDS, 4)), rng.normal(size=(1, 1, 3))
        for drone in pair:
            drone.controller.set_command(goal)
            if k == 1:
                drone.set_external_force_and_torque(gust, None, body_ids=[0], env_ids=[2])
            if k == 3:
                drone.set_thruster_parameter("efficiency", 0.0, thruster_ids=[1], env_ids=[3])
            if k == 4:
                drone.reset_to([2])
        pair[0].sim.advance(pair[0])
        graph.launch()
        assert_same(*pair, ("root_state_w", "applied_thrust", "body_acc_w"))
    drone = pair[1]
    with pytest.raises(RuntimeError, match="efficiency of thrusters: not while a graph"), drone.sim.capture():
        drone.set_thruster_parameter("efficiency", 0.5)
    assert drone.thruster_parameter("efficiency").max() == 1.0
    with pytest.raises(RuntimeError, match="allocation_matrix: not while a graph"), drone.sim.capture():
        _ = drone.allocation_matrix


def ones(count: int) -> wp.array:
    return wp.full((WORLDS, count), 1.0, dtype=wp.float32, device="cpu")


def test_what_graphs_cannot_repeat_is_refused(rng):
    robot, other = two(rng.integers(1 << 30), {"legs": ACTUATORS["ideal"]})
    refused = {
        "target from the host": lambda: robot.set_joint_position_target(0.1),
        "env_ids": lambda: robot.set_joint_position_target(robot.data.default_joint_pos, env_ids=[0]),
        "root_pose from the host": lambda: robot.write_root_pose_to_sim([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]),
        "reset of 'walker'": robot.reset,
        "body_incoming_joint_wrench_b": lambda: robot.data.body_incoming_joint_wrench_b,
        "forces from the host": lambda: robot.set_external_force_and_torque([0.0, 0.0, 1.0], None),
        "Articulation(model)": lambda: Articulation(robot.sim, "walker"),
        # arrays that are filled in the capture have no numbers yet
        "armature of joints": lambda: robot.write_joint_armature_to_sim(ones(4)),
        "limits of joints": lambda: robot.write_joint_effort_limit_to_sim(ones(4)),
        "friction of joints": lambda: robot.write_joint_friction_to_sim(ones(4)),
        "mass of bodies": lambda: robot.write_body_mass_to_sim(ones(5)),
    }
    state = robot.data.root_state_w.numpy().copy()
    for text, call in refused.items():
        refusal = pytest.raises(RuntimeError, match=f"^{re.escape(text)}: not while a graph is captured")
        with refusal, robot.sim.capture() as graph:
            call()
        with pytest.raises(RuntimeError, match="the graph has no launches"):
            graph.launch()
    assert np.array_equal(robot.data.root_state_w.numpy(), state) and robot.sim.steps == 0
    for each in (robot, other):
        each.sim.advance(each)
    assert_same(robot, other)
    network = NetworkActuatorCfg(".*", network=lambda x: x[:, 0], saturation_effort=5.0, velocity_limit=9.0)
    (learned, _) = two(rng.integers(1 << 30), {"legs": network})
    with pytest.raises(RuntimeError, match="the network of actuator 'legs'"), learned.sim.capture():
        learned.sim.advance(learned)


def test_friction_that_graphs_do_not_have_warns(rng):
    robot, _ = two(rng.integers(1 << 30))
    robot.write_joint_friction_to_sim(0.5)
    with robot.sim.capture() as graph:
        robot.sim.advance(robot)
    graph.launch()
    with pytest.warns(UserWarning, match="captured earlier on this model do not see this edit.*: capture them again"):
        robot.write_joint_friction_coefficient_to_sim(0.5, 0.2)


def test_graphs_keep_what_they_use(rng):
    """A graph runs after its assets and their context were let go."""
    stepped, replayed = two(rng.integers(1 << 30), {"legs": ACTUATORS["ideal"]})
    with replayed.sim.capture() as graph:
        replayed.sim.advance(replayed)
        pose = replayed.data.root_com_pose_w
    del replayed
    gc.collect()
    for _ in range(3):
        graph.launch()
        stepped.sim.advance(stepped)
        assert np.array_equal(pose.numpy(), stepped.data.root_com_pose_w.numpy())


def test_all_data_are_read_in_graphs(rng):
    """Also those in the order w x y z; temporary memory of a capture is not used again."""
    stepped, replayed = two(rng.integers(1 << 30), {"legs": ACTUATORS["implicit"]})
    names = [
        name for name in dir(ArticulationData) if name.startswith(("root_", "body_", "joint_", "projected", "heading"))
    ]
    names += [name + "_wxyz" for name in names if "quat" in name or name.endswith(("pose_w", "state_w", "pose_b"))]
    names = [name for name in names if hasattr(getattr(stepped.data, name), "numpy") and "incoming" not in name]
    assert len(names) > 90
    replayed.sim.advance(replayed)
    with replayed.sim.capture() as graph:
        replayed.sim.advance(replayed)
        seen = {name: getattr(replayed.data, name) for name in names}
    others = [wp.full(WORLDS * k, 7.0, dtype=wp.float32, device="cpu") for k in range(1, 200)]
    stepped.sim.advance(stepped)
    for _ in range(2):
        graph.launch()
        stepped.sim.advance(stepped)
        for name, array in seen.items():
            assert np.array_equal(array.numpy(), getattr(stepped.data, name).numpy(), equal_nan=True), name
    assert all((each.numpy() == 7.0).all() for each in others)
