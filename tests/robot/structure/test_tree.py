"""The tree of a robot, the order of its names, and its configuration."""

import copy
import gc
from contextlib import suppress

import numpy as np
import pytest

from newton_like import robot as rd
from newton_like.robot.structure.tree import count_joints, name_order, survey
from tests.support.random_robots import random_robot


def depth(link) -> int:
    return 0 if link.parent_joint is None else 1 + depth(link.parent_joint.parent_link)


def test_survey_is_breadth_first(rng):
    made, joints = random_robot(rd, rng.integers(2**31), 14)
    links, found = survey(made[0])
    assert links[0] is made[0] and set(links) == set(made) and set(found) == set(joints)
    assert all(joint.child_link is link for joint, link in zip(found, links[1:], strict=True))
    assert (np.diff([depth(link) for link in links]) >= 0).all()
    # children of one link, and the children of links of one depth, keep their order
    place = {link: i for i, link in enumerate(links)}
    assert (np.diff([place[joint.parent_link] for joint in found]) >= 0).all()
    for link in links:
        assert link.child_joints == [joint for joint in found if joint.parent_link is link]
    assert count_joints(made[0], True) == 14
    assert count_joints(made[0]) == sum(not joint.is_fixed() for joint in joints)


def test_survey_of_a_link_in_the_middle_leaves_out_the_links_above():
    a, b, c = (rd.Link(name) for name in "abc")
    rd.Joint.make_fixed("j1").connect_links(a, b)
    last = rd.Joint.make_fixed("j2")
    last.connect_links(b, c)
    assert survey(b) == ([b, c], [last])
    assert survey(c) == ([c], [])


@pytest.mark.parametrize(("links", "joints", "named"), [("aba", ("j1", "j2"), "'a'"), ("abc", ("j1", "j1"), "'j1'")])
def test_names_occur_once(links, joints, named):
    made = [rd.Link(name) for name in links]
    for name, parent, child in zip(joints, made[:-1], made[1:], strict=True):
        rd.Joint.make_revolute(name).connect_links(parent, child)
    with pytest.raises(rd.RobotError, match=named):
        survey(made[0])


def test_damaged_trees_are_errors():
    a, b = rd.Link("a"), rd.Link("b")
    rd.Joint.make_revolute("j1").connect_links(a, b)
    back = rd.Joint.make_revolute("back")
    back._parent_link, back._child_link = b, a
    b._child_joints.append(back)
    with pytest.raises(rd.RobotError, match=r"'back'.*'a'"):
        survey(a)


def test_counts_of_joints_follow_the_tree(rng):
    links, joints = random_robot(rd, rng.integers(2**32), 12)
    for i in rng.permutation(12):
        below = survey(links[0])[1]
        assert count_joints(links[0], True) == len(below)
        assert count_joints(links[0]) == sum(not joint.is_fixed() for joint in below)
        joints[i].disconnect()
    joints[0].connect_links(links[0], links[1])
    assert count_joints(links[0], True) == 1
    again = copy.deepcopy(links[0])
    assert count_joints(again, True) == 1 and count_joints(copy.copy(links[0]), True) == 0


def test_listed_names_come_first(rng):
    found = [f"name_{i}" for i in rng.permutation(9)]
    listed = [str(name) for name in rng.choice(found, 4, replace=False)]
    order = [found[i] for i in name_order(found, listed)]
    assert order[:4] == listed
    assert order[4:] == [name for name in found if name not in listed]
    assert name_order(found, ()) == list(range(9))


@pytest.mark.parametrize(
    ("listed", "kinds"),
    [(["hip", "arm"], (RuntimeError, KeyError)), (["hip", "hip"], (RuntimeError, ValueError)), ("hip", (TypeError,))],
)
def test_wrong_lists_of_names(listed, kinds):
    for kind in kinds:
        with pytest.raises(kind, match=listed[-1] if isinstance(listed, list) else "hip"):
            name_order(["hip", "knee"], listed, "joint")
    with pytest.raises(TypeError, match="3"):
        name_order(["hip", "knee"], ["hip", 3], "joint")


def test_configuration_keeps_what_it_is_given():
    link, base = rd.Link("base"), rd.MobileBaseDifferential(["r", "l"], [0.5, 0.1])
    empty = rd.RobotConfiguration()
    assert (empty.name, empty.base_link, empty.mobile_base) == ("", None, None)
    given = rd.RobotConfiguration("robot", base_link=link, mobile_base=base)
    assert (given.name, given.base_link, given.mobile_base) == ("robot", link, base)
    given.name, given.base_link, given.mobile_base = "other", None, None
    assert (given.name, given.base_link, given.mobile_base) == ("other", None, None)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [((None,), "name"), (("robot", "base"), "base_link"), (("robot", None, "base"), "mobile_base")],
)
def test_configuration_takes_its_own_objects(arguments, named):
    with pytest.raises(TypeError, match=named):
        rd.RobotConfiguration(*arguments)


def test_counts_after_each_change_are_those_of_all_joints(rng):
    links, joints = random_robot(rd, rng.integers(2**31), 12)
    for _ in range(20):
        joint = joints[rng.integers(12)]
        if joint.parent_link is None or rng.random() < 0.5:
            above, below = (links[i] for i in rng.choice(len(links), 2, replace=False))
            # a cycle, or a second parent, changes nothing
            with suppress(rd.RobotError):
                joint.connect_links(above, below)
        else:
            joint.disconnect()
        for link in links:
            below = survey(link)[1]
            assert count_joints(link, True) == len(below)
            assert count_joints(link) == sum(not joint.is_fixed() for joint in below)


@pytest.mark.slow
def test_counts_after_the_end_of_a_joint():
    """A joint that was connected and disconnected elsewhere, and is gone at the next count."""
    a, b, c, d = (rd.Link(name) for name in "abcd")
    rd.Joint.make_revolute("known").connect_links(a, d)
    assert count_joints(a) == 1
    joint = rd.Joint.make_revolute("gone")
    joint.connect_links(b, c)
    joint.disconnect()
    del joint
    gc.collect()
    assert count_joints(a) == 1 and count_joints(b) == 0


def test_counts_refuse_names_that_occur_twice():
    a, b, c = rd.Link("a"), rd.Link("b"), rd.Link("a")
    rd.Joint.make_revolute("j1").connect_links(a, b)
    assert count_joints(a) == 1
    rd.Joint.make_revolute("j2").connect_links(b, c)
    for _ in range(2):
        with pytest.raises(rd.RobotError, match="'a'"):
            count_joints(a)
    assert count_joints(b) == 1
