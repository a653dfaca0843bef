"""Wrong arguments of robots and states: errors of the kinds that scripts for the SDK expect, which name the thing.

The SDK raises TypeError for arguments of a wrong type or shape, and RuntimeError for all others. Where it crashes or accepts
the argument in silence, the error here is a RuntimeError or a TypeError, too.
"""

import copy
import itertools
import pickle
import warnings
from functools import cache

import numpy as np
import pytest

from newton_like import robot as rd
from tests.support.random_robots import random_robot


def arm(*names: str, mass: float = 1.0) -> rd.RobotConfiguration:
    """A chain of links with these names, with joints j0, j1, ... and a fixed joint to a hand without mass."""
    links = [rd.Link(name, mass * np.eye(6)) for name in (*names, "hand")]
    for i, (parent, child) in enumerate(itertools.pairwise(links)):
        joint = rd.Joint.make_fixed("grip") if child is links[-1] else rd.Joint.make_revolute(f"j{i}")
        joint.connect_links(parent, child)
    return rd.RobotConfiguration("arm", links[0])


@cache
def one() -> rd.Robot:
    """A robot, made at the first call: kernels are compiled when tests run, and not when they are collected."""
    return rd.Robot(arm("base", "upper", "lower"))


@cache
def other() -> rd.Robot:
    """Another robot like it."""
    return rd.Robot(arm("base", "upper", "lower"))


def state():
    return one().make_state()


def call(name, *args):
    return lambda: getattr(one(), f"compute_{name}")(state(), *args)


def put(name, value):
    return lambda: setattr(state(), name, value)


# ------------------------------------------------------------------------------------------------------- robots


def cycle():
    a, b = rd.Link("first"), rd.Link("second")
    rd.Joint.make_revolute("there").connect_links(a, b)
    back = rd.Joint.make_revolute("back")
    back.connect_links(b, a)
    return rd.Robot(rd.RobotConfiguration("", a))


def wheels(joints):
    base = rd.Link("base")
    for i in range(2):
        rd.Joint.make_revolute(f"j{i}", axis=[0, -1, 0]).connect_links(base, rd.Link(f"wheel{i}"))
    return rd.Robot(rd.RobotConfiguration("cart", base, rd.MobileBaseDifferential(joints, (0.5, 0.1))))


def same_joint_names():
    links = [rd.Link(name) for name in ("base", "a", "b")]
    for link in links[1:]:
        rd.Joint.make_revolute("twin").connect_links(links[0], link)
    return rd.Robot(rd.RobotConfiguration("", links[0]))


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (cycle, "first"),
        (same_joint_names, "twin"),
        (lambda: rd.Robot(arm("base", "same", "same")), "same"),
        (lambda: rd.Robot(rd.RobotConfiguration()), "base_link"),
        (lambda: rd.Robot_24(arm("base", "upper")), "24.* 1"),
    ],
)
def test_robots_that_cannot_be(make, named):
    with pytest.raises(rd.RobotError, match=named):
        make()


@pytest.mark.parametrize(
    "make", [lambda: rd.Robot(None), lambda: rd.Robot(), lambda: rd.Robot(rd.Link("base")), lambda: rd.State()]
)
def test_types_of_configurations(make):
    with pytest.raises(TypeError):
        make()


def test_unknown_evaluators():
    with pytest.raises(rd.RobotError, match="'fast'"):
        rd.Robot(arm("base"), evaluator="fast")


# ------------------------------------------------------------------------------------------------------- states


@pytest.mark.parametrize(
    ("links", "joints", "kind", "named"),
    [
        (["base", "nose"], [], KeyError, "nose"),
        ([], ["j0", "j7"], KeyError, "j7"),
        # a fixed joint is not one of a state
        ([], ["grip"], KeyError, "grip"),
        (["base", "base"], [], ValueError, "base"),
        ([], ["j1", "j1"], ValueError, "j1"),
        ("base", [], TypeError, "link_names"),
        ([], "j0", TypeError, "joint_names"),
        (None, [], TypeError, "link_names"),
        ([3], [], TypeError, "3"),
    ],
)
def test_names_of_states(links, joints, kind, named):
    with pytest.raises(kind, match=named) as error:
        one().make_state(links, joints)
    assert kind is TypeError or isinstance(error.value, RuntimeError)
    # a KeyError has no quotation marks around its message
    assert str(error.value)[0] != '"'


@pytest.mark.parametrize("name", ["q", "qdot", "qddot", "tau", "V0", "Vdot0"])
def test_shapes_of_inputs(name):
    n = 6 if name[0] == "V" else 2
    for value in (
        np.zeros(n + 1),
        np.zeros(n - 1),
        np.zeros((1, n + 1)),
        np.zeros((2, 2, n)),
        1.0,
        [],
        np.zeros((0, n)),
    ):
        for set_value in (put(name, value), lambda value=value: getattr(state(), f"set_{name}")(value)):
            # RuntimeError and TypeError: the SDK raises one or the other
            with pytest.raises(rd.ShapeError, match=name):
                set_value()
    for value in ("text", None, ["a"] * n, np.zeros(n, dtype=complex), {}, [[1.0], [1.0, 2.0]]):
        with pytest.raises(TypeError, match=name):
            put(name, value)()


def test_batches_without_configurations_are_named():
    with pytest.raises(rd.ShapeError, match=r"qdot.*\(0, 2\)"):
        put("qdot", np.zeros((0, 2)))()


def test_gravity_is_named():
    with pytest.raises(rd.ShapeError, match="gravity"):
        state().set_gravity([0.0, 0.0, -9.81])


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(number):
    for name in ("q", "qdot", "qddot", "tau"):
        with pytest.raises(rd.RobotError, match=rf"{name}\[1\].*'j1'"):
            put(name, [0.0, number])()
        with pytest.raises(rd.RobotError, match=rf"{name}\[3, 1\].*'j1'"):
            put(name, [[0.0, 1.0]] * 3 + [[0.0, number]])()
    for name in ("V0", "Vdot0"):
        with pytest.raises(rd.RobotError, match=rf"{name}\[4\]"):
            put(name, [0.0] * 4 + [number, 0.0])()


def test_types_that_states_accept():
    for value in (
        [1, 2],
        (1, 2),
        np.array([1, 2], dtype=np.float32),
        np.array([[1], [2]]),
        [True, 2],
        np.arange(1, 5)[::2] * [1, 2 / 3],
    ):
        used = state()
        used.q = value
        assert used.q.dtype == float and np.allclose(used.q, (1, 2))


def test_attributes_that_cannot_be_set():
    for name in ("link_names", "joint_names", "base_link_idx", "batch_size"):
        with pytest.raises(AttributeError):
            put(name, getattr(state(), name))()
    with pytest.raises(AttributeError):
        put("qdott", [0.0, 0.0])()


def test_states_are_not_copied():
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="make_state"):
            duplicate(state())


# ------------------------------------------------------------------------------------------------------- links


WITH_TWO = (
    "transformation",
    "space_jacobian",
    "body_jacobian",
    "body_velocity",
    "reflective_inertia",
    "center_of_mass",
    "center_of_mass_jacobian",
)
WITH_ONE = ("mass", "total_inertial", "center_of_mass", "center_of_mass_jacobian")
INDEXED = [*[(name, (at, 0)) for name in WITH_TWO for at in (0, 1)], *[(name, (0,)) for name in WITH_ONE]]


def with_index(name, place, index):
    """A call with `index` as one of its links."""
    links = [0] * (2 if len(place) == 2 else 1)
    links[place[0]] = index
    return call(name, *links)


@pytest.mark.parametrize(("name", "place"), INDEXED)
def test_indices_of_links(name, place):
    for index in (4, 99, np.int64(4), 2**40):
        with pytest.raises(IndexError, match=str(index)) as error:
            with_index(name, place, index)()
        assert isinstance(error.value, RuntimeError)
    with pytest.raises(IndexError, match="-1") as error:
        with_index(name, place, -1)()
    assert isinstance(error.value, TypeError)
    for index in (1.0, "base", np.float64(1.0), b"1"):
        with pytest.raises(TypeError, match="index"):
            with_index(name, place, index)()
    for index in (np.int64(1), np.uint8(1), True):
        np.testing.assert_array_equal(with_index(name, place, index)(), with_index(name, place, 1)())


def test_lists_of_links():
    for links in ([], (), np.array([], dtype=int)):
        with pytest.raises(rd.RobotError, match="empty"):
            call("center_of_mass", 0, links)()
    with pytest.raises(IndexError, match="7"):
        call("center_of_mass", 0, [0, 7])()
    with pytest.raises(TypeError):
        call("center_of_mass", 0, [0, 1.5])()
    with pytest.raises(TypeError):
        call("center_of_mass", 0, "base")()
    with pytest.raises(TypeError):
        one().compute_center_of_mass(state(), 0, 1, target_links=[1])


def test_links_without_mass():
    links = [rd.Link("base", np.zeros((6, 6))), rd.Link("ghost", np.zeros((6, 6)))]
    rd.Joint.make_revolute("joint").connect_links(*links)
    robot = rd.Robot(rd.RobotConfiguration("", links[0]))
    used = robot.make_state()
    for given in ((), (1,), ([1, 1],)):
        for compute in (robot.compute_center_of_mass, robot.compute_center_of_mass_jacobian):
            with pytest.raises(rd.RobotError, match="ghost"):
                compute(used, 0, *given)


def test_names_and_indices_of_get_link():
    used = state()
    assert one().get_link("upper") is one().links[1] and one().get_link(name="upper") is one().links[1]
    assert one().get_link("nose") is None
    assert one().get_link(used, 1) is one().get_link(state=used, index=1) is one().links[1]
    for index in (99, -1):
        with pytest.raises(IndexError, match=str(index)):
            one().get_link(used, index)
    for args in ((), (3,), ("upper", 1), (None,), (used, "upper"), (None, 1), (used, 1, 2)):
        with pytest.raises(TypeError):
            one().get_link(*args)


# ------------------------------------------------------------------------------------------------------- foreign states

NO_LINKS = (
    "forward_kinematics",
    "diff_forward_kinematics",
    "2nd_diff_forward_kinematics",
    "mass_matrix",
    "gravity_term",
    "inverse_dynamics",
)


def every_call(robot, used):
    """All functions with this state."""
    for name in NO_LINKS:
        yield lambda name=name: getattr(robot, f"compute_{name}")(used)
    for name in WITH_TWO:
        yield lambda name=name: getattr(robot, f"compute_{name}")(used, 0, 0)
    for name in WITH_ONE:
        yield lambda name=name: getattr(robot, f"compute_{name}")(used, 0)
    for name in ("q_lower", "q_upper", "qdot_lower", "qdot_upper", "qddot_lower", "qddot_upper", "torque"):
        yield lambda name=name: getattr(robot, f"get_limit_{name}")(used)
    yield lambda: robot.get_joint_property(used, lambda joint: 0.0)
    yield lambda: robot.get_link(used, 0)
    yield lambda: robot.detect_collisions_or_nearest_links(used)
    yield lambda: robot.compute_distances(used)
    yield lambda: robot.compute_mobility_diff_kinematics(used)
    yield lambda: robot.compute_mobility_inverse_diff_kinematics(used, [0.0, 0.0, 0.0])


def test_states_of_other_robots():
    for run in every_call(one(), other().make_state()):
        with pytest.raises(rd.RobotError, match="another robot"):
            run()
    for value in (None, 3, one()):
        for run in every_call(one(), value):
            with pytest.raises(TypeError, match="state"):
                run()


def test_states_of_robots_of_other_classes(rng):
    """As in the SDK, a State_18 is not a State, and the reverse: TypeError."""
    links = random_robot(rd, rng.integers(2**32), 18, moving=18)[0]
    fixed, free = (kind(rd.RobotConfiguration("", links[0])) for kind in (rd.Robot_18, rd.Robot))
    assert type(fixed.make_state()) is rd.State_18 and type(free.make_state()) is rd.State
    for robot, used in ((fixed, free.make_state()), (free, fixed.make_state())):
        for run in every_call(robot, used):
            with pytest.raises(TypeError):
                run()


# ------------------------------------------------------------------------------------------------------- other arguments


def test_getters_of_joint_properties():
    used = state()
    np.testing.assert_array_equal(one().get_joint_property(used, lambda joint: len(joint.name)), [2.0, 2.0])
    assert one().get_joint_property(used, lambda joint: np.float32(0.5)).dtype == float
    for value in ("text", "3", None, [1.0], 1j, np.zeros(2)):
        with pytest.raises(rd.RobotError, match="'j0'"):
            one().get_joint_property(used, lambda joint, value=value: value)
    for getter in (None, 3):
        with pytest.raises(TypeError, match="getter") as error:
            one().get_joint_property(used, getter)
        assert isinstance(error.value, RuntimeError)
    with pytest.raises(ZeroDivisionError):
        one().get_joint_property(used, lambda joint: 1 / 0)


def test_counts_of_collisions():
    assert one().detect_collisions_or_nearest_links(state(), np.int64(3)) == []
    for count in (1.0, "1", None):
        with pytest.raises(TypeError, match="collision_threshold"):
            one().detect_collisions_or_nearest_links(state(), count)


def test_indices_of_pairs():
    with pytest.raises(IndexError, match="3"):
        one().compute_distances(state(), [3])
    for pairs in ("all", [0.5], [[0]]):
        with pytest.raises(TypeError, match="pairs"):
            one().compute_distances(state(), pairs)


def test_robots_without_wheels():
    for base in (None, rd.MobileBase(rd.MobileBaseType.Unspecified)):
        configuration = arm("base", "upper")
        configuration.mobile_base = base
        robot = rd.Robot(configuration)
        used = robot.make_state()
        with pytest.raises(rd.RobotError, match="mobile"):
            robot.compute_mobility_diff_kinematics(used)
        with pytest.raises(rd.RobotError, match="mobile"):
            robot.compute_mobility_inverse_diff_kinematics(used, [0.0, 0.0, 0.0])
        # wrong arguments are of the kind of the SDK, with or without wheels
        for args in ((), (np.zeros(4),), ("text",), ([0.0], 1.0)):
            with pytest.raises(TypeError, match="velocity"):
                robot.compute_mobility_inverse_diff_kinematics(used, *args)


def test_velocities_of_the_base():
    robot = wheels(["j0", "j1"])
    used = robot.make_state()
    compute = robot.compute_mobility_inverse_diff_kinematics
    for args in (([0.0, 0.0],), (np.zeros(4),), (np.zeros((2, 2)),), ([0.0], 1.0), ([0.0, 0.0, 0.0], 1.0)):
        with pytest.raises(rd.ShapeError, match="velocity"):
            compute(used, *args)
    for args in ((), ("text",), (None,), ([0.0, 0.0], "text"), ([0.0, 0.0], None), ([0.0, 0.0], 1.0, 2.0)):
        with pytest.raises(TypeError, match="velocity"):
            compute(used, *args)
    for args in (([0.0, np.nan, 0.0],), ([0.0, np.nan], 1.0), ([0.0, 0.0], np.inf)):
        with pytest.raises(rd.RobotError, match="velocity"):
            compute(used, *args)
    used.qdot = np.zeros((5, 2))
    with pytest.raises(rd.ShapeError, match=r"3.*5"):
        compute(used, np.zeros((3, 3)))
    with pytest.raises(TypeError):
        compute(used, speed=[0.0, 0.0, 0.0])
    assert not used.qdot.any()


def test_wheels_that_are_not_there():
    with pytest.raises(rd.RobotError, match="j7"):
        wheels(["j0", "j7"])


def test_numbers_that_are_too_large_are_named():
    rows = np.eye(4)
    rows[2, 3] = 1e200
    with pytest.raises(rd.RobotError, match="joint 'j'"):
        rd.Joint.make_revolute("j", rows, [1e200, 1e200, 0.0])
    with pytest.raises(rd.RobotError, match="link 'l'"):
        rd.Link("l", np.diag([-1.0, 1.0, 1.0, 2.0, 2.0, 2.0]) * 1e200)
    huge, joint = 10**400, rd.Joint.make_revolute("j")
    for call in (lambda: joint.set_limit_q_upper(huge), lambda: rd.GeomCapsule(1.0, huge, 1, 1)):
        for kind in (TypeError, RuntimeError):
            with pytest.raises(kind, match="308 digits"):
                call()


def test_arrays_of_objects_are_numbers():
    pose, axis = np.eye(4).astype(object), np.array([0.0, 1.0, 0.0], dtype=object)
    np.testing.assert_array_equal(rd.Joint.make_revolute("j", pose, axis).S, [0, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(rd.Link("l", np.eye(6).astype(object)).inertia, np.eye(6))
    for wrong in (np.full((6, 6), "1", dtype=object), np.full((6, 6), None), np.full((6, 6), 1j, dtype=object)):
        with pytest.raises(TypeError):
            rd.Link("l", wrong)


FAR = np.eye(4)
FAR[0, 3] = 1e40
# 1e-62 kg at 1e31 m
LIGHT = np.diag([10.0, 10, 10, 1e-62, 1e-62, 1e-62])
LIGHT[[1, 5, 2, 4], [5, 1, 4, 2]] = [-1e-31, -1e-31, 1e-31, 1e-31]
HUGE = {
    "I of link 'child'": dict(I=np.diag([1.0, 1, 1, 1, 1, 1]) * 1e31),
    "I of link 'child'.* ": dict(I=LIGHT),
    "T_pj of joint 'hinge'": dict(T=FAR),
    "axis of joint 'hinge'.*1e-200": dict(S=[0, 0, 1e-200, 0, 0, 0]),
    "axis of joint 'hinge'.*1e\\+200": dict(S=[0, 0, 1e200, 0, 0, 0]),
    "S of joint 'hinge'": dict(S=[0, 0, 1, 1e200, 0, 0]),
}


@pytest.mark.parametrize("message", HUGE)
def test_numbers_that_no_model_has_are_named_without_warnings(message):
    """As in the SDK, errors are RuntimeErrors."""
    given = HUGE[message]
    with warnings.catch_warnings(), pytest.raises(RuntimeError, match=message):
        warnings.simplefilter("error")
        links = [rd.Link("base"), rd.Link("child", given.get("I"))]
        rd.Joint.make("hinge", given.get("S", [0, 0, 1, 0, 0, 0])).connect_links(*links, given.get("T", np.eye(4)))
        rd.Robot(rd.RobotConfiguration("case", links[0]), evaluator="general")
