"""Robots of models, and models of robots: the same masses, poses, limits and capsules."""

import itertools

import numpy as np
import pytest
import warp as wp

import newton_like as nl
import newton_like.robot as rd
from newton_like import assets, dynamics
from newton_like.types import JointType
from tests.support.random_robots import random_robot
from tests.support.random_trees import random_state, random_tree

AXES = (JointType.PRISMATIC, JointType.REVOLUTE, JointType.FIXED, JointType.D6)
"""Joints that robots can have."""


def pose_of(x: np.ndarray) -> np.ndarray:
    """Homogeneous transform of position and quaternion."""
    T = np.eye(4)
    T[:3, :3] = np.array(wp.quat_to_matrix(wp.quatd(*x[3:]))).reshape(3, 3)
    T[:3, 3] = x[:3]
    return T


def joints_of(model, robot: rd.Robot) -> list[str]:
    """Names of the robot's joints in the order of the model's dofs."""
    names = []
    for j, label in enumerate(model.joint_label):
        dofs = int(model.joint_qd_start.numpy()[j + 1] - model.joint_qd_start.numpy()[j])
        names += [label] if dofs == 1 else [f"{label}:{i}" for i in range(dofs)]
    return [name.removeprefix("tree/") for name in names]


def test_a_robot_of_a_random_tree_has_its_mass_matrix_and_poses(rng):
    """D6 joints of several axes become chains."""
    for _ in range(3):
        tree = random_tree(rng, joints=7, types=AXES, armature=False, damping=False)
        model = tree.finalize("cpu", dtype=wp.float64)
        robot = rd.from_model(model)
        state, now = robot.make_state([], joints_of(model, robot)), model.state()
        q, _ = random_state(model, rng)
        state.q = q
        now.joint_q.assign(q)
        nl.eval_fk(model, now.joint_q, now.joint_qd, now)
        # double precision: rounding of some hundred operations
        np.testing.assert_allclose(
            robot.compute_mass_matrix(state), dynamics.mass_matrix(model, now).numpy()[0], atol=1e-12
        )
        base = robot.base.name
        to_base = np.eye(4)
        if base in model.body_label:
            to_base = np.linalg.inv(pose_of(now.body_q.numpy()[model.body_label.index(base)]))
        for body, label in enumerate(model.body_label):
            found = robot.compute_transformation(state, state.base_link_idx, state.link_names.index(label))
            np.testing.assert_allclose(found, to_base @ pose_of(now.body_q.numpy()[body]), atol=1e-12)


@pytest.mark.slow
def test_a_model_of_a_random_robot_has_its_poses_and_inverse_dynamics(rng):
    for floating in (False, True):
        links, joints = random_robot(rd, int(rng.integers(1 << 30)), 9, unit=True)
        for joint in joints:
            joint.set_limit_qdot(-2.0, 3.0)
        robot = rd.Robot(rd.RobotConfiguration("robot", links[0]), evaluator="general")
        state = robot.make_state()
        state.q = rng.normal(size=robot.dof)
        builder = robot.to_builder(state, floating=floating)
        model = builder.finalize("cpu", dtype=wp.float64)
        now = model.state()
        initial = now.body_q.numpy().copy()
        nl.eval_fk(model, now.joint_q, now.joint_qd, now)
        np.testing.assert_allclose(
            *([pose_of(x) for x in poses] for poses in (initial, now.body_q.numpy())), rtol=0, atol=1e-12
        )
        for body, label in enumerate(model.body_label):
            found = robot.compute_transformation(state, state.base_link_idx, state.link_names.index(label))
            np.testing.assert_allclose(found, pose_of(now.body_q.numpy()[body]), atol=1e-12)
        if not floating:
            state.set_gravity([0, 0, 0, *model.gravity.numpy()[0]])
            order = [state.joint_names.index(name) for name in model.joint_label if name in state.joint_names]
            expected = dynamics.gravity_forces(model, now).numpy()[0]
            np.testing.assert_allclose(robot.compute_gravity_term(state)[order], expected, atol=1e-11)


def test_there_and_back_is_the_same_robot(rng):
    robot = rd.Robot(rd.load_robot_from_urdf(assets.path("wheeled_humanoid.urdf"), "base"), evaluator="general")
    again = rd.from_model(robot.to_builder().finalize("cpu", dtype=wp.float64))
    assert (again.link_names, again.joint_names) == (robot.link_names, robot.joint_names)
    state, other = robot.make_state(), again.make_state()
    state.q = other.q = rng.uniform(-1, 1, robot.dof)
    np.testing.assert_allclose(robot.compute_mass_matrix(state), again.compute_mass_matrix(other), atol=1e-12)
    for name in ("q_lower", "q_upper", "qdot_lower", "qdot_upper", "torque"):
        limits = (getattr(r, f"get_limit_{name}")(s) for r, s in ((robot, state), (again, other)))
        np.testing.assert_allclose(*limits)
    before, after = robot.compute_distances(state), again.compute_distances(other)
    assert before.links == after.links and len(before.links) > 0
    np.testing.assert_allclose(before.distance, after.distance, rtol=0, atol=1e-12)


def test_limits_and_groups_of_capsules_go_there_and_back(rng):
    """Also without limits, from a model that has other shapes and several such robots."""
    links = [rd.Link(name, np.eye(6)) for name in ("a", "b", "c")]
    groups = rng.integers(2**32, size=(3, 2)).tolist()
    for link, (coltype, colaffinity) in zip(links, groups, strict=True):
        collision = rd.Collision(link.name)
        collision.add_geom(rd.GeomCapsule(rng.uniform(0.0, 1.0), 0.1, coltype, colaffinity))
        link.add_collision(collision)
    for parent, child in itertools.pairwise(links):
        rd.Joint.make_revolute(f"to_{child.name}").connect_links(parent, child)
    robot = rd.Robot(rd.RobotConfiguration("r", links[0]), evaluator="general")
    scene = nl.ModelBuilder()
    scene.add_ground_plane()
    for _ in range(2):
        scene.add_builder(robot.to_builder())
    again = rd.from_model(scene.finalize("cpu", dtype=wp.float64), 1)
    state, other = robot.make_state(), again.make_state()
    for name in ("q_lower", "q_upper", "qdot_lower", "qdot_upper", "torque"):
        get = f"get_limit_{name}"
        np.testing.assert_array_equal(getattr(robot, get)(state), getattr(again, get)(other))
    found = [(geom.coltype, geom.colaffinity) for link in again.links for geom in link.collisions[0].geoms]
    assert found == [tuple(x) for x in groups]


def test_unequal_limits_of_velocity_become_the_smaller_one_with_a_warning():
    links = [rd.Link(name, np.eye(6)) for name in ("a", "b")]
    joint = rd.Joint.make_revolute("elbow")
    joint.set_limit_qdot(-1.0, 3.0)
    joint.connect_links(*links)
    with pytest.warns(UserWarning, match="'elbow'") as found:
        builder = rd.Robot(rd.RobotConfiguration("r", links[0]), evaluator="general").to_builder()
    assert builder.joint_velocity_limit[-1] == 1.0 and found[0].filename == __file__


def test_joints_of_one_body_keep_their_names():
    builder = nl.ModelBuilder()
    builder.add_mjcf(
        "<mujoco model='m'><worldbody><body name='base'><geom size='0.1'/><body name='x'><joint name='x' axis='1 0 0'/>"
        "<joint name='y' axis='0 1 0'/><geom size='0.1'/><body name='b'><joint name='u' axis='1 0 0'/><joint name='v' axis='0 1 0'/>"
        "<joint name='w' axis='0 0 1'/><geom size='0.1'/></body></body></body></worldbody></mujoco>"
    )
    robot = rd.from_model(builder.finalize("cpu"))
    assert sorted(robot.joint_names) == ["u", "v", "w", "x", "y"]
    axes = {joint.name: joint.S[:3] for joint in robot.joints}
    for name, axis in {"x": (1, 0, 0), "y": (0, 1, 0), "u": (1, 0, 0), "v": (0, 1, 0), "w": (0, 0, 1)}.items():
        np.testing.assert_allclose(axes[name], axis, atol=1e-6)


def test_inertias_that_no_body_can_have_are_replaced_as_by_add_urdf(rng):
    moments = rng.uniform(0.5, 1.0, (2, 3)) * [[1.0, 1.0, 5.0], [1.0, 1.0, 1.0]]
    links = "".join(
        f"<link name='{name}'><inertial><mass value='2'/><inertia ixx='{x}' iyy='{y}' izz='{z}' ixy='0' ixz='0' iyz='0'/></inertial>"
        "</link>"
        for name, (x, y, z) in zip(("wrong", "right"), moments, strict=True)
    )
    text = (
        f"<robot name='r'>{links}<joint name='j' type='revolute'><parent link='right'/><child link='wrong'/>"
        "<limit lower='-1' upper='1' effort='1' velocity='1'/></joint></robot>"
    )
    expected = nl.ModelBuilder()
    with pytest.warns(UserWarning, match="wrong"):
        expected.add_urdf(text, floating=False)
    robot = rd.Robot(rd.load_robot_from_urdf_data(text, "right"))
    with pytest.warns(UserWarning, match="wrong"):
        builder = robot.to_builder()
    inertias = builder.finalize("cpu").body_inertia.numpy()
    np.testing.assert_allclose(inertias, expected.finalize("cpu").body_inertia.numpy(), rtol=1e-6)
    np.testing.assert_allclose(np.diagonal(inertias[0]), moments[1], rtol=1e-6)
    np.testing.assert_allclose(robot.get_link("wrong").inertia[:3, :3], np.diag(moments[0]))


@pytest.mark.parametrize("floating", [False, True])
def test_labels_are_unique(floating):
    """Also with joints that are named like the joint of the base link, and with several collisions of one name."""
    links = [rd.Link(name) for name in ("a", "b", "c")]
    for parent, child, name in zip(links, links[1:], ("robot_base", "robot_base_2"), strict=False):
        rd.Joint.make_revolute(name).connect_links(parent, child)
        for _ in range(3):
            collision = rd.Collision("shape")
            collision.add_geom(rd.GeomCapsule(0.1, 0.1, 1, 1))
            child.add_collision(collision)
    builder = rd.Robot(rd.RobotConfiguration("robot", links[0]), evaluator="general").to_builder(floating=floating)
    for labels, count in ((builder.joint_label, 3), (builder.shape_label, 6)):
        assert len(set(labels)) == len(labels) == count
    assert {"robot_base", "robot_base_2"} < set(builder.joint_label)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["go2", "go2/left", "world/go2", "/"])
@pytest.mark.parametrize("first", ["go2/", "go2/left/", "world/", "go2_", ""])
def test_names_that_begin_alike_come_back(name, first):
    """Models that are added to others have a common first part of all labels, which is not a part of the names; robots may have one too."""
    base, link, joint = rd.Link(f"{first}base"), rd.Link(f"{first}link"), rd.Joint.make_revolute(f"{first}joint")
    joint.connect_links(base, link)
    builder = rd.Robot(rd.RobotConfiguration(name, base), evaluator="general").to_builder()
    scene = nl.ModelBuilder()
    scene.add_builder(builder, label_prefix="scene")
    for each in (builder, scene):
        back = rd.from_model(each.finalize("cpu", dtype=wp.float64), evaluator="general")
        assert back.link_names == [f"{first}base", f"{first}link"] and back.joint_names == [f"{first}joint"]


def test_merged_links_are_links_again():
    def read(collapse: bool) -> rd.Robot:
        builder = nl.ModelBuilder()
        builder.add_urdf(assets.path("quadruped.urdf"), floating=True, collapse_fixed_joints=collapse)
        with pytest.warns(UserWarning, match="damping"):
            return rd.from_model(builder.finalize("cpu", dtype=wp.float64))

    whole, merged = read(False), read(True)
    assert set(whole.link_names) == set(merged.link_names)
    names = sorted(whole.link_names)
    states = [robot.make_state(names, whole.joint_names) for robot in (whole, merged)]
    for state in states:
        state.q = np.linspace(-0.5, 0.5, whole.dof)
    for i in range(len(names)):
        poses = [
            robot.compute_transformation(s, s.base_link_idx, i)
            for robot, s in zip((whole, merged), states, strict=True)
        ]
        np.testing.assert_allclose(*poses, atol=1e-12)


def test_models_that_are_no_robots_are_refused(rng):
    ball = random_tree(rng, joints=1, types=(JointType.BALL,), floating=False).finalize("cpu")
    with pytest.raises(rd.RobotError, match="BALL"):
        rd.from_model(ball)
    two = nl.ModelBuilder()
    for label in ("left", "right"):
        two.add_builder(
            random_tree(rng, joints=2, types=(JointType.REVOLUTE,), label=label, armature=False, damping=False)
        )
    model = two.finalize("cpu")
    with pytest.raises(rd.RobotError, match="left"):
        rd.from_model(model)
    assert rd.from_model(model, "right").dof == 2
    with pytest.raises(KeyError, match="middle"):
        rd.from_model(model, "middle")
    for index in (2, -1):
        with pytest.raises(rd.RobotIndexError, match=f"{index}.*0 to 1"):
            rd.from_model(model, index)
    with pytest.raises(TypeError, match="Model"):
        rd.from_model(two)


@pytest.mark.parametrize("first", ["fixed", "hinge"])
def test_a_second_body_on_the_world_is_refused(first):
    builder = nl.ModelBuilder()
    links = [builder.add_link(mass=1.0, inertia=np.eye(3), label=label) for label in ("a", "b")]
    adds = [builder.add_joint_fixed, builder.add_joint_revolute]
    joints = [add(-1, link) for add, link in zip(adds if first == "fixed" else adds[::-1], links, strict=True)]
    builder.add_articulation(joints)
    with pytest.raises(rd.RobotError, match="second body"):
        rd.from_model(builder.finalize("cpu"))


def test_robots_that_are_no_models_are_refused():
    def robot(S) -> rd.Robot:
        base, link = rd.Link("base"), rd.Link("link")
        rd.Joint.make("joint", np.array(S, dtype=float)).connect_links(base, link)
        return rd.Robot(rd.RobotConfiguration("robot", base), evaluator="general")

    with pytest.raises(rd.RobotError, match="'joint' moves 2"):
        robot([0, 0, 2, 0, 0, 0]).to_builder()
    with pytest.raises(rd.RobotError, match="helical"):
        robot([0, 0, 1, 0, 0, 0.1]).to_builder()
    fast = robot([0, 0, 1, 0, 0, 0])
    fast.joints[0].set_limit_qdot(1.0, 2.0)
    with pytest.raises(rd.RobotError, match=r"'joint'.*velocities.*\b1\b.*\b2\b"):
        fast.to_builder()
    one, other = robot([0, 0, 1, 0, 0, 0]), robot([0, 0, 1, 0, 0, 0])
    with pytest.raises(rd.RobotError, match="another robot"):
        one.to_builder(other.make_state())
    state = one.make_state()
    state.q = [[0.0], [1.0]]
    with pytest.raises(rd.ShapeError, match="batch"):
        one.to_builder(state)
