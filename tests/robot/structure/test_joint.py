"""Joints: screws, connections and limits."""

import sys

import numpy as np
import pytest

from newton_like import robot as rd
from tests.support.random_robots import random_pose, screw_motion


@pytest.mark.parametrize(("make", "part"), [(rd.Joint.make_revolute, 0), (rd.Joint.make_prismatic, 3)])
def test_motion_about_an_axis_of_another_frame(rng, make, part):
    """``exp([S] q) = T exp([s] q) T^-1`` with the screw s of the axis through the origin of T."""
    T, axis, q = random_pose(rng), rng.normal(size=3), rng.normal()
    local = np.zeros(6)
    local[part : part + 3] = axis
    joint = make("joint", T, axis)
    assert np.allclose(screw_motion(joint.S, q), T @ screw_motion(local, q) @ np.linalg.inv(T), atol=1e-12)
    assert not joint.is_fixed()


def test_screws_are_taken_as_they_are(rng):
    S = rng.normal(size=6)
    joint = rd.Joint.make("joint", S[:, None].tolist())
    assert np.array_equal(joint.S, S)
    joint.S[:] = 0.0
    assert np.array_equal(joint.S, S)


def test_fixed_joints_have_no_screw():
    joint = rd.Joint.make_fixed("joint")
    assert joint.is_fixed() and not joint.S.any()


def test_connection_and_separation(rng):
    a, b, c = (rd.Link(name) for name in "abc")
    joint, other = rd.Joint.make_revolute("joint"), rd.Joint.make_fixed("other")
    assert joint.parent_link is None and joint.get_child_link() is None
    T_pj, T_jc = random_pose(rng), random_pose(rng)
    joint.connect_links(a, b, T_pj, T_jc)
    other.connect_links(a, c)
    assert joint.parent_link is a and joint.child_link is b
    assert a.child_joints == [joint, other] and b.parent_joint is joint and a.parent_joint is None
    assert np.array_equal(joint.T_pj, T_pj) and np.array_equal(joint.T_jc, T_jc)
    assert np.array_equal(other.T_pj, np.eye(4)) and np.array_equal(other.T_jc, np.eye(4))
    joint.disconnect()
    joint.disconnect()
    assert a.child_joints == [other] and b.parent_joint is None
    assert joint.parent_link is None and joint.child_link is None


def test_a_connected_joint_moves_to_other_links():
    a, b, c = (rd.Link(name) for name in "abc")
    joint = rd.Joint.make_revolute("joint")
    joint.connect_links(a, b)
    joint.connect_links(b, a)
    joint.connect_links(b, c)
    assert a.child_joints == [] and a.parent_joint is None
    assert b.child_joints == [joint] and b.parent_joint is None and c.parent_joint is joint


def test_links_with_two_parents_and_cycles_are_errors():
    links = {name: rd.Link(name) for name in ("hip", "knee", "foot", "hand")}
    for name, parent, child in (("j1", "hip", "knee"), ("j2", "knee", "foot")):
        rd.Joint.make_revolute(name).connect_links(links[parent], links[child])
    joint = rd.Joint.make_revolute("extra")
    with pytest.raises(rd.RobotError, match=r"'extra'.*'foot'.*'j2'"):
        joint.connect_links(links["hand"], links["foot"])
    with pytest.raises(rd.RobotError, match=r"'extra'.*cycle"):
        joint.connect_links(links["foot"], links["hip"])
    with pytest.raises(rd.RobotError, match=r"'extra'.*cycle"):
        joint.connect_links(links["hand"], links["hand"])
    assert joint.parent_link is None and links["foot"].child_joints == []
    assert links["hip"].parent_joint is None and links["hand"].child_joints == []


def test_an_error_leaves_the_old_connection():
    a, b, c = (rd.Link(name) for name in "abc")
    joint = rd.Joint.make_revolute("joint")
    joint.connect_links(a, b)
    with pytest.raises(rd.RobotError, match="T_pj"):
        joint.connect_links(a, c, 2.0 * np.eye(4))
    assert joint.child_link is b and a.child_joints == [joint]


@pytest.mark.parametrize(
    "wrong",
    [lambda T: 2.0 * T, lambda T: T * [1, 1, -1, 1], lambda T: T + np.eye(4)[[1, 2, 3, 0]], lambda T: T * np.nan],
)
def test_poses_that_are_no_rigid_motion(rng, wrong):
    with pytest.raises(rd.RobotError, match="'joint'"):
        rd.Joint.make_revolute("joint", wrong(random_pose(rng)))


@pytest.mark.parametrize(
    "call",
    [
        lambda: rd.Joint.make("joint", np.ones(5)),
        lambda: rd.Joint.make_revolute("joint", np.eye(3)),
        lambda: rd.Joint.make_prismatic("joint", axis=(1.0, 0.0)),
        lambda: rd.Joint.make("joint", [[1.0, 2.0], [3.0]]),
        lambda: rd.Joint.make("joint", ["a"] * 6),
        lambda: rd.Joint.make("joint", np.ones(6, dtype=complex)),
        lambda: rd.Joint.make_fixed("joint").connect_links(rd.Link("a"), rd.Link("b"), np.eye(3)),
        lambda: rd.Joint.make_fixed("joint").connect_links(None, rd.Link("b")),
        lambda: rd.Joint.make_fixed("joint").set_limit_q_lower("a"),
    ],
)
def test_other_types_and_shapes(call):
    with pytest.raises(TypeError, match="'joint'"):
        call()


@pytest.mark.parametrize(
    "call", [lambda: rd.Joint(), lambda: rd.Joint.make_fixed(3), lambda: rd.Joint.make_revolute(None)]
)
def test_wrong_constructions(call):
    with pytest.raises(TypeError, match=r"[Jj]oint"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: rd.Joint.make("joint", np.zeros(6)),
        lambda: rd.Joint.make_revolute("joint", axis=(0, 0, 0)),
        lambda: rd.Joint.make("joint", np.full(6, np.inf)),
        lambda: rd.Joint.make_fixed("joint").set_limit_q(1.0, -1.0),
        lambda: rd.Joint.make_fixed("joint").set_limit_qddot_upper(np.nan),
        lambda: rd.Joint.make_fixed("joint").set_limit_torque(-1.0),
    ],
)
def test_wrong_values(call):
    with pytest.raises(rd.RobotError, match="'joint'"):
        call()


def test_limits_by_all_their_names(rng):
    joint = rd.Joint.make_revolute("joint")
    for name in ("q", "qdot", "qddot"):
        (a, b), (c, d) = np.sort(rng.normal(size=(2, 2)))
        get = [getattr(joint, f"get_limit_{name}_{end}") for end in ("lower", "upper")]
        getattr(joint, f"set_limit_{name}")(a, b)
        assert (get[0](), get[1]()) == (a, b) == getattr(joint, f"limit_{name}")
        getattr(joint, f"set_limit_{name}_lower")(c)
        getattr(joint, f"set_limit_{name}_upper")(d)
        assert (get[0](), get[1]()) == (c, d)
        setattr(joint, f"limit_{name}", (-np.inf, a))
        assert (get[0](), get[1]()) == (-np.inf, a)
    joint.set_limit_torque(3)
    assert joint.limit_torque == joint.get_limit_torque() == 3.0
    joint.limit_torque = 4.0
    assert joint.get_limit_torque() == 4.0


def test_new_joints_have_the_limits_of_the_sdk():
    joint = rd.Joint.make_prismatic("joint")
    most = sys.float_info.max
    assert joint.limit_q == joint.limit_qdot == (-most, most) and joint.limit_torque == most
    assert joint.limit_qddot == (-10.0, 10.0)
