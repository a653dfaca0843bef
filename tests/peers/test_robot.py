"""Robots in newton_like.robot and in the vendor's library: all functions give the same numbers.

Differences of the vendor's library 0.10.0:

* T_jc of joints that move is ignored there. The robots there have joints without it that are the same motion (`fold` of random_robot).
* Functions of kinematics use the frames of the last compute_forward_kinematics; here they always follow the inputs.
* compute_mass_matrix and compute_reflective_inertia crash for robots of free size. Robots of 18, 24 and 26 joints have classes for which
  they work; for other sizes, columns of the mass matrix are inverse dynamics of unit accelerations.
* The centre of mass of a robot with a link without mass is NaN there. It is the centre of the other links.
* A capsule without length as the second one of a pair: the start of the first axis is taken for its nearest point.
"""

import enum

import numpy as np
import pytest

from newton_like import robot as rd
from tests.support import robot_calls
from tests.support.random_robots import random_pose, random_robot
from tests.support.robot_pair import Pair, close, vendor

SIZES = (18, 24, 26)


def test_all_names_are_there():
    """Those of the library that is installed, which may be newer than the list of tests/robot/test_names.py."""
    for name, theirs in vars(vendor).items():
        if name[0] != "_" and isinstance(theirs, type):
            ours = getattr(rd, name)
            members = {member for member in dir(theirs) if member[0] != "_"}
            # attributes of members of an enumeration are not those of its class
            found = next(iter(ours)) if issubclass(ours, enum.Enum) else ours
            assert [member for member in members if not hasattr(found, member)] == [], name
        elif callable(theirs):
            assert callable(getattr(rd, name)), name


@pytest.mark.parametrize("joints", [1, 4, 9, 15])
@pytest.mark.parametrize("unit", [True, False])
def test_random_robots(rng, joints, unit):
    """Also screws whose length is not 1: they are used as they are given."""
    seed = rng.integers(2**32)
    pair = Pair(lambda lib: random_robot(lib, seed, joints, lib is vendor, unit=unit, helical=not unit)[0][0], rng)
    pair.check(robot_calls.SHARED)


@pytest.mark.parametrize("dofs", SIZES)
def test_robots_of_fixed_size(rng, dofs):
    seed = rng.integers(2**32)

    def make(lib):
        return random_robot(lib, seed, dofs + 3, lib is vendor, moving=dofs, unit=dofs == 24)[0][0]

    Pair(make, rng, dofs).check(robot_calls.SHARED | robot_calls.FIXED_SIZE)


def test_mass_matrix_of_free_size(rng):
    seed = rng.integers(2**32)
    pair = Pair(lambda lib: random_robot(lib, seed, 10, lib is vendor)[0][0], rng)
    n = len(pair.states[0].joint_names)
    pair.randomize()
    pair.set(qdot=np.zeros(n), V0=np.zeros(6), Vdot0=np.zeros(6))
    M = pair.robots[0].compute_mass_matrix(pair.states[0])
    for column, unit in zip(M.T, np.eye(n), strict=True):
        pair.set(qddot=unit)
        pair.robots[1].compute_inverse_dynamics(pair.states[1])
        close(column, pair.states[1].get_tau())


def test_masses_names_and_limits(rng):
    seed = rng.integers(2**32)
    pair = Pair(lambda lib: random_robot(lib, seed, 9)[0][0], rng)
    a, b = pair.states
    assert (a.link_names, a.joint_names, a.base_link_idx) == (b.link_names, b.joint_names, b.base_link_idx)
    for i in range(len(a.link_names)):
        assert len({name.get_name() for name in pair.both(lambda robot, state, at: robot.get_link(state, at), i)}) == 1
        close(*pair.both(lambda robot, state, at: robot.compute_mass(state, at), i))
    for quantity in ("q_lower", "q_upper", "qdot_lower", "qdot_upper", "qddot_lower", "qddot_upper", "torque"):
        found, expected = pair.both(lambda robot, state, name=quantity: getattr(robot, f"get_limit_{name}")(state))
        np.testing.assert_array_equal(found, expected)
    ours, theirs = pair.both(lambda robot, state: robot.get_joint_property(state, lambda joint: len(joint.get_name())))
    np.testing.assert_array_equal(ours, theirs)
    ours, theirs = pair.robots
    assert ours.get_dof() == theirs.get_dof() == ours.get_number_of_joints()
    assert sorted(ours.get_link_names()) == sorted(theirs.get_link_names())
    assert sorted(ours.get_joint_names()) == sorted(theirs.get_joint_names())
    for fixed in (False, True):
        assert ours.count_joints(ours.get_base(), fixed) == theirs.count_joints(theirs.get_base(), fixed)


def test_joints_that_are_not_listed_follow_breadth_first(rng):
    seed = rng.integers(2**32)
    bases = [random_robot(lib, seed, 12)[0][0] for lib in (rd, vendor)]
    robots = [lib.Robot(lib.RobotConfiguration("", base)) for lib, base in zip((rd, vendor), bases, strict=True)]
    listed = [str(name) for name in rng.permutation(robots[0].get_joint_names())[:3]]
    for names in ([], listed):
        assert len({tuple(robot.make_state([], names).joint_names) for robot in robots}) == 1


def test_defaults_of_joints_and_states():
    def make(lib):
        base, link = lib.Link("base"), lib.Link("link")
        lib.Joint.make_revolute("joint").connect_links(base, link)
        return base

    pair = Pair(make, np.random.default_rng(0))
    for name in robot_calls.INPUTS:
        np.testing.assert_array_equal(*[getattr(state, name) for state in pair.states])
    for quantity in ("q_lower", "q_upper", "qdot_lower", "qdot_upper", "qddot_lower", "qddot_upper", "torque"):
        found, expected = pair.both(lambda robot, state, name=quantity: getattr(robot, f"get_limit_{name}")(state))
        np.testing.assert_array_equal(found, expected)
    ours, theirs = pair.robots
    assert (repr(ours), str(ours)) == (repr(theirs), str(theirs))
    # without compute_forward_kinematics, frames there are those of q = 0
    close(ours.compute_transformation(pair.states[0], 0, 1), theirs.compute_transformation(pair.states[1], 0, 1))


def test_gravity_is_the_opposite_acceleration_of_the_base(rng):
    seed = rng.integers(2**32)
    pair = Pair(lambda lib: random_robot(lib, seed, 6, lib is vendor)[0][0], rng)
    pair.randomize()
    gravity = rng.normal(size=6)
    for state in pair.states:
        state.set_gravity(gravity)
    np.testing.assert_array_equal(pair.states[0].Vdot0, pair.states[1].Vdot0)
    np.testing.assert_array_equal(pair.states[0].V0, pair.states[1].V0)
    close(*pair.both(lambda robot, state: robot.compute_gravity_term(state)))


def test_a_robot_of_one_link(rng):
    pair = Pair(lambda lib: lib.Link("alone", 2.0 * np.eye(6)), rng)
    pair.set(V0=rng.normal(size=6), Vdot0=rng.normal(size=6))
    for name, call in robot_calls.SHARED.items():
        close(*pair.both(call, 0, 0), name)


def test_nothing_is_stale(rng):
    """The vendor's results are those of the last compute_forward_kinematics. Here they follow q and qdot."""
    seed = rng.integers(2**32)
    pair = Pair(lambda lib: random_robot(lib, seed, 8, lib is vendor)[0][0], rng)
    pair.randomize()
    links = robot_calls.two_links(pair.robots[0], pair.states[0], rng)
    calls = [robot_calls.SHARED[name] for name in ("transformation", "body_velocity", "center_of_mass_of_link")]
    before = [pair.both(call, *links) for call in calls]
    for state, generator in zip(pair.states, (np.random.default_rng(5), np.random.default_rng(5)), strict=True):
        state.set_q(robot_calls.random_input(state, "q", generator))
        state.set_qdot(robot_calls.random_input(state, "qdot", generator))
    stale = [pair.both(call, *links) for call in calls]
    pair.set()
    fresh = [pair.both(call, *links) for call in calls]
    for old, now, then in zip(before, stale, fresh, strict=True):
        # the vendor's result did not change, although q and qdot did
        np.testing.assert_array_equal(now[1], old[1])
        close(now[0], then[1])
        close(then[0], then[1])


def test_a_general_pose_of_the_child_in_a_joint_that_moves(rng):
    """T_pc = T_pj exp([S] q) T_jc. The vendor ignores T_jc here, and applies it in a fixed joint behind the joint that moves."""
    T_pj, T_jc, T, axis, q = random_pose(rng), random_pose(rng), random_pose(rng), rng.normal(size=3), rng.normal()

    def make(lib, two: bool):
        base, middle, end = lib.Link("base"), lib.Link("middle"), lib.Link("end")
        joint = lib.Joint.make_revolute("joint", T, axis)
        if two:
            joint.connect_links(base, middle, T_pj)
            lib.Joint.make_fixed("offset").connect_links(middle, end, np.eye(4), T_jc)
        else:
            joint.connect_links(base, end, T_pj, T_jc)
        return base

    poses = []
    for lib, two in ((rd, False), (rd, True), (vendor, True)):
        robot = lib.Robot(lib.RobotConfiguration("", make(lib, two)))
        state = robot.make_state(["base", "end"], [])
        state.set_q([q])
        robot.compute_forward_kinematics(state)
        poses.append(robot.compute_transformation(state, 0, 1))
    close(poses[0], poses[2])
    close(poses[1], poses[2])


# ---------------------------------------------------------------------------------------------------- distances


@pytest.mark.parametrize("least", [0, 1, 7, 1000])
def test_detected_collisions(rng, least):
    for joints in (3, 12):
        seed = rng.integers(2**32)
        pair = Pair(lambda lib, seed=seed, joints=joints: random_robot(lib, seed, joints, lib is vendor)[0][0], rng)
        pair.randomize()
        pair.check_collisions(least)


def test_a_capsule_without_length_as_the_second_one(rng):
    """A segment from z = -1 to 1 and a sphere at (.5, 0, .2). The nearest point of the segment is (0, 0, .2), at a distance of .5.

    The vendor takes (0, 0, -1), the start of the segment, if the sphere is the second one, and the right point if it is the first one.
    """

    def detected(lib, order):
        shapes = {"rod": ((0, 0, -1.0), (0, 0, 1.0)), "ball": ((0.5, 0, 0.2), (0.5, 0, 0.2))}
        links = {name: lib.Link(name) for name in shapes}
        for name, ends in shapes.items():
            collision = lib.Collision(name)
            collision.add_geom(lib.GeomCapsule(*[np.array(end, dtype=float) for end in ends], 0.1, 1, 1))
            links[name].add_collision(collision)
        lib.Joint.make_revolute("joint").connect_links(links["rod"], links["ball"])
        robot = lib.Robot(lib.RobotConfiguration("", links["rod"]))
        state = robot.make_state(order, [])
        robot.compute_forward_kinematics(state)
        (result,) = robot.detect_collisions_or_nearest_links(state, 1)
        return result

    for order in (["rod", "ball"], ["ball", "rod"]):
        result = detected(rd, order)
        points = {result.link1: result.position1, result.link2: result.position2}
        origin = (0.0, 0.0, 0.0)
        close(result.distance, 0.3)
        close(points["rod"] - origin, (0.0, 0.0, 0.2))
        close(points["ball"] - origin, (0.5, 0.0, 0.2))
    close(detected(vendor, ["ball", "rod"]).distance, 0.3)
