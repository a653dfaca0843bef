"""Copies and pickles of links, joints, collisions and robots."""

import copy
import pickle

import numpy as np
import pytest

from newton_like import robot as rd
from tests.support.random_robots import link_poses, random_robot


def again(thing):
    return pickle.loads(pickle.dumps(thing))


def tree(rng):
    links, joints = random_robot(rd, int(rng.integers(1 << 30)), 9)
    return links, joints, {joint.name: rng.normal() for joint in joints}


def assert_sound(link: rd.Link) -> None:
    """The ends of each joint below a link know the joint."""
    for joint in link.child_joints:
        assert joint.parent_link is link and joint.child_link.parent_joint is joint
        assert_sound(joint.child_link)


def test_a_copied_joint_is_not_connected(rng):
    links, joints, _ = tree(rng)
    for joint in joints:
        other = copy.copy(joint)
        assert (other.parent_link, other.child_link) == (None, None)
        assert other.name == joint.name and other.is_fixed() == joint.is_fixed()
        for name in ("S", "T_pj", "T_jc", "limit_q", "limit_qdot", "limit_qddot", "limit_torque"):
            np.testing.assert_array_equal(getattr(other, name), getattr(joint, name))
        other.connect_links(rd.Link("one"), rd.Link("two"))
        other.set_limit_torque(123.0)
        assert joint.limit_torque != 123.0
    assert_sound(links[0])


def test_a_copied_link_has_no_joints(rng):
    links, _, _ = tree(rng)
    for link in links:
        children, collisions = link.child_joints, link.collisions
        other = copy.copy(link)
        assert other.parent_joint is None and other.child_joints == []
        assert other.name == link.name and other.collisions == collisions
        np.testing.assert_array_equal(other.inertia, link.inertia)
        rd.Joint.make_fixed("more").connect_links(other, rd.Link("more"))
        other.add_collision(rd.Collision("more"))
        assert link.child_joints == children and link.collisions == collisions
    assert_sound(links[0])


def test_a_copied_collision_has_a_list_of_its_own():
    collision = rd.Collision("one")
    collision.add_geom(rd.GeomCapsule(0.1, 0.1, 1, 1))
    other = copy.copy(collision)
    other.add_geom(rd.GeomCapsule(0.2, 0.1, 1, 1))
    assert len(collision.geoms) == 1 and len(other.geoms) == 2 and other.geoms[0] is collision.geoms[0]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, again])
def test_deep_copies_take_the_tree_with_them(rng, duplicate):
    links, joints, q = tree(rng)
    poses = link_poses(links[0], q)
    i = int(rng.integers(len(joints)))
    base, joint, link = duplicate((links[0], joints[i], links[i + 1]))
    assert base is not links[0] and joint.child_link is link and link.parent_joint is joint
    assert_sound(base)
    found = link_poses(base, q)
    assert found.keys() == poses.keys()
    for name, T in poses.items():
        np.testing.assert_array_equal(found[name], T)
    assert [child.name for child in base.child_joints] == [child.name for child in links[0].child_joints]
    # each of them alone takes the same tree
    for one in (duplicate(joints[i]).child_link, duplicate(links[i + 1])):
        assert one is not links[i + 1] and one.name == link.name
        while one.parent_joint is not None:
            one = one.parent_joint.parent_link
        assert one.name == base.name and rd.Robot.count_joints(one, True) == len(joints)
    free = duplicate(rd.Joint.make("free", rng.normal(size=6)))
    assert free.parent_link is None and free.name == "free"


@pytest.mark.parametrize("duplicate", [copy.deepcopy, again])
def test_attributes_of_the_user_are_copied(rng, duplicate):
    links, joints, _ = tree(rng)
    links[0].partner, links[3].partner, links[2].joint = links[2], links[0], joints[4]
    base = duplicate(links[0])
    assert_sound(base)
    names = {joint.name: joint for joint in joints}
    below, found = [base], {}
    for link in below:
        found[link.name] = link
        below += [joint.child_link for joint in link.child_joints]
    assert base.partner is found[links[2].name] and found[links[3].name].partner is base
    assert base.partner.joint is found[names[joints[4].name].child_link.name].parent_joint


@pytest.mark.parametrize("duplicate", [copy.deepcopy, again])
def test_long_chains_are_copied(duplicate):
    """Longer than Python's recursion allows."""
    base = last = rd.Link("base")
    for i in range(400):
        link = rd.Link(f"l{i}")
        rd.Joint.make_revolute(f"j{i}").connect_links(last, link)
        last = link
    other = duplicate(rd.RobotConfiguration("chain", base)).base_link
    assert other is not base and rd.Robot.count_joints(other) == 400
    assert duplicate(last).name == last.name
