"""A script for the robot SDK, run twice: with ``import rby1_sdk.dynamics as rd`` and with ``import newton_like.robot as rd``."""

import numpy as np

from tests.support.robot_pair import close, vendor  # noqa: F401

SCRIPT = '''
import numpy as np


def report(name, value):
    RESULTS.append((name, value))


# ---- a robot of parts

def inertia(mass, com, moments):
    c = np.array([[0, -com[2], com[1]], [com[2], 0, -com[0]], [-com[1], com[0], 0]])
    G = np.zeros((6, 6))
    G[:3, :3] = np.diag(moments) + mass * c @ c.T
    G[:3, 3:], G[3:, :3], G[3:, 3:] = mass * c, mass * c.T, mass * np.eye(3)
    return G


def pose(x, y, z):
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


base = rd.Link("base", inertia(10.0, (0, 0, 0.1), (1.0, 1.1, 1.2)))
wheels = []
for side, y in (("right", -0.3), ("left", 0.3)):
    wheel = rd.Link(f"{side}_wheel_link", inertia(1.0, (0, 0, 0), (0.1, 0.2, 0.1)))
    joint = rd.Joint.make_revolute(f"{side}_wheel", np.eye(4), np.array([0, -1, 0]))
    joint.connect_links(base, wheel, pose(0.2, y, 0.1), np.eye(4))
    wheels.append(joint.get_name())

parent, axes = base, np.array([[0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]])
for i in range(22):
    link = rd.Link(f"link{i}", inertia(2.0 / (i + 1), (0, 0, 0.05), (0.02, 0.03, 0.01)))
    joint = (
        rd.Joint.make_prismatic(f"joint{i}", pose(0, 0, 0), axes[i % 6]) if i == 1
        else rd.Joint.make_revolute(f"joint{i}", pose(0, 0.01 * i, 0), axes[i % 6])
    )
    joint.set_limit_q(-1.0 - i, 1.0 + i)
    joint.set_limit_qdot_lower(-2.0)
    joint.set_limit_qdot_upper(3.0)
    joint.set_limit_qddot(-4.0, 5.0)
    joint.set_limit_torque(10.0 * (i + 1))
    joint.connect_links(parent_link=parent, child_link=link, T_pj=pose(0.01, 0.02, 0.3))
    shape = rd.Collision(f"shape{i}")
    shape.set_origin(pose(0, 0, 0.1))
    shape.add_geom(rd.GeomCapsule(0.1, 0.05, 1, 1))
    link.add_collision(shape)
    parent = base if i % 7 == 6 else link
hand = rd.Link("hand", np.zeros((6, 6)))
rd.Joint.make_fixed("wrist").connect_links(link, hand, pose(0, 0, 0.1), pose(0.05, 0, 0))

robot = rd.Robot_24(rd.RobotConfiguration("example", base))
# the order of links that are not listed has no meaning in the SDK, and decides which of two links of a collision is the first
first = ["base", "hand", "link3"]
state = robot.make_state(first + sorted(set(robot.get_link_names()) - set(first)), [f"joint{i}" for i in range(22)] + wheels)
BASE, HAND, ELBOW = 0, 1, 2
report("sizes", [robot.get_dof(), robot.get_number_of_joints(), robot.count_joints(base), robot.count_joints(base, True)])
report("names", state.get_joint_names())
report("base", [state.get_base_link_idx(), robot.get_base().get_name(), robot.get_link(state, HAND).get_name()])
report("limits", [
    robot.get_limit_q_lower(state), robot.get_limit_q_upper(state), robot.get_limit_qdot_lower(state),
    robot.get_limit_qdot_upper(state), robot.get_limit_qddot_lower(state), robot.get_limit_qddot_upper(state),
    robot.get_limit_torque(state), robot.get_joint_property(state, lambda joint: joint.get_limit_torque()),
])

# ---- inverse kinematics: damped steps towards a pose, then gravity compensation on the way

q = np.linspace(-0.5, 0.6, 24)
state.set_gravity(np.array([0, 0, 0, 0, 0, -9.81]))
goal = np.array([0.4, 0.1, 0.9])
for step in range(15):
    state.set_q(q)
    robot.compute_forward_kinematics(state)
    T = robot.compute_transformation(state, BASE, HAND)
    J = robot.compute_space_jacobian(state, BASE, HAND)
    p = T[:3, 3]
    # velocity of the hand's origin
    Jp = J[3:] + np.cross(J[:3].T, p).T
    q = q + 0.3 * Jp.T @ np.linalg.solve(Jp @ Jp.T + 0.1 * np.eye(3), goal - p)
report("q", q)
report("gravity", robot.compute_gravity_term(state))
report("hand", [T, robot.compute_body_jacobian(state, BASE, HAND)])

# ---- dynamics

state.set_qdot(np.cos(np.arange(24)))
state.set_qddot(np.sin(np.arange(24)))
state.set_V0(np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]))
robot.compute_forward_kinematics(state)
robot.compute_diff_forward_kinematics(state)
robot.compute_2nd_diff_forward_kinematics(state)
robot.compute_inverse_dynamics(state)
report("tau", state.get_tau())
report("M", robot.compute_mass_matrix(state))
report("velocity", robot.compute_body_velocity(state, BASE, HAND))
report("reflected", robot.compute_reflective_inertia(state, BASE, ELBOW))
report("com", [robot.compute_center_of_mass(state, BASE, ELBOW), robot.compute_center_of_mass(state, HAND, [BASE, ELBOW])])
report("com jacobian", robot.compute_center_of_mass_jacobian(state, BASE, ELBOW))
report("inertia", [robot.compute_total_inertial(state, HAND), robot.compute_mass(state, BASE)])

# ---- collisions

for result in robot.detect_collisions_or_nearest_links(state, 5):
    report("collision", [result.link1, result.link2, result.distance, result.position1, result.position2])

# ---- attributes

state.q = q * 0.5
state.V0 = state.V0 * 2
report("attributes", [state.q, state.qdot, state.qddot, state.V0, state.Vdot0, state.base_link_idx, state.joint_names])

# ---- a file with wheels, and errors that the script expects

URDF = """<robot name="cart"><link name="base"/><link name="r"/><link name="l"/>
<joint name="right" type="continuous"><parent link="base"/><child link="r"/><axis xyz="0 -1 0"/></joint>
<joint name="left" type="continuous"><parent link="base"/><child link="l"/><axis xyz="0 -1 0"/></joint>
<mobile type="differential" xyz="0.228 0 0" rpy="0 0 0" joints="right left" params="0.53 0.1"/></robot>"""
configuration = rd.load_robot_from_urdf_data(URDF, "base")
cart = rd.Robot(configuration)
wheels = cart.make_state(["base"], ["right", "left"])
mobile = configuration.mobile_base
report("mobile", [int(mobile.type), list(mobile.joints), list(mobile.params), mobile.T])
cart.compute_mobility_inverse_diff_kinematics(wheels, np.array([0.3, 0.7, -0.2]))
report("wheels", wheels.get_qdot())
cart.compute_mobility_inverse_diff_kinematics(wheels, np.array([0.7, 0.1]), 0.4)
report("wheels", wheels.get_qdot())
report("body", cart.compute_mobility_diff_kinematics(wheels))


def kind_of(call):
    try:
        call()
    except TypeError:
        return "TypeError"
    except RuntimeError:
        return "RuntimeError"
    return "none"


report("errors", [
    kind_of(lambda: robot.make_state(["nose"], [])),
    kind_of(lambda: robot.make_state([], ["wrist"])),
    kind_of(lambda: robot.make_state("base", [])),
    kind_of(lambda: robot.compute_transformation(state, 0, 99)),
    kind_of(lambda: robot.compute_transformation(state, 0, -1)),
    kind_of(lambda: robot.compute_transformation(state, 0, 1.5)),
    kind_of(lambda: state.set_q("text")),
    kind_of(lambda: state.set_gravity(np.zeros(3))),
    kind_of(lambda: robot.get_joint_property(state, lambda joint: "text")),
    kind_of(lambda: rd.Robot_26(rd.RobotConfiguration("", base))),
    kind_of(lambda: rd.Robot(None)),
    kind_of(lambda: robot.compute_mass_matrix(wheels)),
    kind_of(lambda: rd.load_robot_from_urdf("/no/such/file.urdf", "base")),
    kind_of(lambda: rd.load_robot_from_urdf_data(URDF, "nose")),
    kind_of(lambda: rd.load_robot_from_urdf_data("text", "base")),
    kind_of(lambda: rd.Joint()),
    kind_of(lambda: rd.GeomCapsule(0.1, 0.1, -1, 1)),
    kind_of(lambda: rd.Geom(1, 1).get_type()),
])
'''


def run(library: str) -> list:
    results = []
    exec(compile(f"import {library} as rd\n{SCRIPT}", library, "exec"), {"RESULTS": results})
    return results


def same(name, found, expected):
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected), name
        for a, b in zip(found, expected, strict=True):
            same(name, a, b)
    elif isinstance(expected, str):
        assert found == expected, name
    else:
        assert type(np.asarray(found)[()]) is type(np.asarray(expected)[()]), name
        close(found, expected, name)


def test_a_script_gives_the_same_numbers():
    found, expected = run("newton_like.robot"), run("rby1_sdk.dynamics")
    assert [name for name, _ in found] == [name for name, _ in expected]
    for (name, a), (_, b) in zip(found, expected, strict=True):
        same(name, a, b)
