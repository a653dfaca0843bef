"""Mobile bases: wheels that roll without slip, both ways, and odometry."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from newton_like import robot as rd
from tests.support.random_robots import random_pose

# Places of the wheels as multiples of the lengths along x and y, and the directions along which the wheel on the ground does not slide:
# the plane of the wheel for a plain wheel (and its axis, if the base does not move sideways), the axis of the roller for a mecanum wheel.
PLACES = {rd.MobileBaseDifferential: [(0, -1), (0, 1)], rd.MobileBaseMecanum: [(1, -1), (1, 1), (-1, -1), (-1, 1)]}
HELD = {
    rd.MobileBaseDifferential: [(1, 0)] * 2,
    rd.MobileBaseMecanum: [(1, 1), (1, -1), (1, -1), (1, 1)],
}
KINDS = list(PLACES)
TWO, AXES = rd.MobileBaseDifferential(["r", "l"], [1.0, 1.0]), np.array([[0.0, 1.0, 0.0]] * 2)


def random_base(rng, cls):
    """A base, the axes of its wheels in the base link, and the places of the wheels in the wheel frame."""
    T = np.eye(4)
    T[:3, :3] = Rotation.from_rotvec([0.0, 0.0, rng.uniform(-3.0, 3.0)]).as_matrix()
    T[:3, 3] = rng.normal(size=3)
    params = rng.uniform(0.1, 1.0, len(cls.PARAMS))
    names = [f"wheel_{i}" for i in rng.permutation(len(cls.JOINTS))]
    base = cls(names, params, T)
    signs = rng.choice([-1.0, 1.0], len(names)) * rng.uniform(0.5, 2.0, len(names))
    lengths = np.array([0.0, 0.5 * params[0]]) if cls is rd.MobileBaseDifferential else params[:2]
    return base, np.outer(signs, T[:3, 1]), np.array(PLACES[cls]) * lengths


def contact_velocities(base, axes, places, body_velocity, wheel_velocities):
    """Velocities of the points of the wheels at the ground, along x and y of the wheel frame, from rigid-body kinematics."""
    (w, vx, vy), T = body_velocity, base.T
    found = []
    for place, axis, rate in zip(places, axes, wheel_velocities, strict=True):
        point = T[:3, :3] @ (*place, 0.0) + T[:3, 3]
        down = np.array([0.0, 0.0, -base.wheel_radius])
        centre = np.array([vx, vy, 0.0]) + np.cross((0.0, 0.0, w), point)
        # the yaw rate of the base is parallel to `down` and adds nothing
        found.append(T[:3, :3].T @ (centre + np.cross(axis * rate, down)))
    return np.array(found)[:, :2]


@pytest.mark.parametrize("cls", KINDS)
def test_wheels_roll_without_slip(rng, cls):
    base, axes, places = random_base(rng, cls)
    body_velocity = rng.normal(size=3)
    rates = rd.wheel_matrix(base, axes, range(len(axes))) @ body_velocity
    contact = contact_velocities(base, axes, places, body_velocity, rates)
    assert np.allclose(np.sum(contact * HELD[cls], axis=1), 0.0, atol=1e-12)


def test_a_differential_base_does_not_move_sideways(rng):
    base, axes, places = random_base(rng, rd.MobileBaseDifferential)
    rates = rng.normal(size=2)
    body_velocity = rd.velocity_matrix(base, axes, range(len(axes))) @ rates
    assert np.allclose(contact_velocities(base, axes, places, body_velocity, rates), 0.0, atol=1e-12)


@pytest.mark.parametrize("cls", KINDS)
def test_both_ways(rng, cls):
    base, axes, _ = random_base(rng, cls)
    W, V = rd.wheel_matrix(base, axes, range(len(axes))), rd.velocity_matrix(base, axes, range(len(axes)))
    assert np.allclose(W @ V @ W, W, atol=1e-12) and np.allclose(V @ W @ V, V, atol=1e-12)
    if cls is rd.MobileBaseMecanum:
        assert np.allclose(V @ W, np.eye(3), atol=1e-12)
    else:
        assert np.allclose(W @ V, np.eye(2), atol=1e-12)


@pytest.mark.parametrize("cls", KINDS)
def test_slip_is_what_no_motion_of_the_base_explains(rng, cls):
    base, axes, _ = random_base(rng, cls)
    W = rd.wheel_matrix(base, axes, range(len(axes)))
    rates = rng.normal(size=(5, len(axes)))
    rest = rd.slip(base, axes, rates, range(len(axes)))
    assert np.allclose(rd.slip(base, axes, rates + rng.normal(size=(5, 3)) @ W.T, range(len(axes))), rest, atol=1e-12)
    assert np.allclose(rd.slip(base, axes, rest, range(len(axes))), rest, atol=1e-12)
    assert (np.abs(rest).max() < 1e-12) == (cls is rd.MobileBaseDifferential)
    assert np.allclose(rd.slip(base, axes, rates[0], range(len(axes))), rest[0])


@pytest.mark.parametrize("cls", KINDS)
def test_blocked_velocity_is_sideways(rng, cls):
    base, axes, _ = random_base(rng, cls)
    velocity = rng.normal(size=(4, 3))
    blocked = rd.blocked_velocity(base, axes, velocity, range(len(axes)))
    assert np.allclose(rd.wheel_matrix(base, axes, range(len(axes))) @ blocked.T, 0.0, atol=1e-11)
    w, p = velocity[:, 0], base.T[:3, 3]
    centre = velocity[:, 1:] + w[:, None] * np.array([-p[1], p[0]])
    sideways = centre @ base.T[:2, 1] if cls is rd.MobileBaseDifferential else np.zeros(4)
    assert np.allclose(blocked[:, 0], 0.0, atol=1e-12)
    assert np.allclose(blocked[:, 1:], np.outer(sideways, base.T[:2, 1]), atol=1e-12)


def test_axes_of_wheels_behind_other_links(rng):
    """A wheel's axis does not change under its own motion, and turns with the poses of the links before it."""
    base, arm, wheel = (rd.Link(name) for name in ("base", "arm", "wheel"))
    T = [random_pose(rng) for _ in range(5)]
    axis = rng.normal(size=3)
    rd.Joint.make_fixed("mount").connect_links(base, arm, T[0], T[1])
    rd.Joint.make_revolute("axle", T[2], axis).connect_links(arm, wheel, T[3], T[4])
    mobile = rd.MobileBaseDifferential(["axle", "other"], [1.0, 1.0])
    with pytest.raises(KeyError, match="'other'"):
        rd.wheel_axes(mobile, base)
    rd.Joint.make_revolute("other").connect_links(base, rd.Link("second"))
    axes = rd.wheel_axes(mobile, base)
    assert np.allclose(axes, [(T[0] @ T[1] @ T[3] @ T[2])[:3, :3] @ axis, (0, 0, 1)])


def test_wheels_turn():
    base = rd.Link("base")
    for name, joint in (("r", rd.Joint.make_revolute("r")), ("l", rd.Joint.make_prismatic("l"))):
        joint.connect_links(base, rd.Link(name))
    with pytest.raises(rd.RobotError, match="'l'"):
        rd.wheel_axes(rd.MobileBaseDifferential(["r", "l"], [1.0, 1.0]), base)


def test_axes_of_wheels_are_along_y():
    base = rd.MobileBaseDifferential(["right", "left"], [0.5, 0.1])
    for wrong in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.1), (0.0, 0.0, 0.0)):
        with pytest.raises(rd.RobotError, match="'left'"):
            rd.wheel_matrix(base, [(0.0, 1.0, 0.0), wrong], [0, 1])


def planar(pose):
    c, s = np.cos(pose[2]), np.sin(pose[2])
    return np.array([[c, -s, pose[0]], [s, c, pose[1]], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("rate", [0.0, 1e-12, 1e-5, 1.0, 30.0])
def test_odometry_is_the_exponential_of_the_twist(rng, rate):
    pose, velocity, dt = rng.normal(size=3), rng.normal(size=3), rng.uniform(0.1, 2.0)
    velocity[0] *= rate
    w, vx, vy = velocity
    twist = np.array([[0.0, -w, vx], [w, 0.0, vy], [0.0, 0.0, 0.0]])
    found = rd.integrate_odometry(pose, velocity, dt)
    assert np.allclose(planar(found), planar(pose) @ expm(twist * dt), atol=1e-12)
    assert np.isclose(found[2], pose[2] + w * dt)


def test_odometry_in_batches(rng):
    pose, velocity, dt = rng.normal(size=(6, 3)), rng.normal(size=(6, 3)), rng.uniform(size=6)
    found = rd.integrate_odometry(pose, velocity, dt)
    for i in range(6):
        assert np.array_equal(found[i], rd.integrate_odometry(pose[i], velocity[i], dt[i]))
    assert rd.integrate_odometry(pose[0], velocity, 0.1).shape == (6, 3)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: rd.integrate_odometry(np.zeros(2), np.zeros(3), 0.1), "pose"),
        (lambda: rd.integrate_odometry(np.zeros(3), np.zeros((2, 4)), 0.1), "body_velocity"),
        (lambda: rd.integrate_odometry(np.zeros((2, 3)), np.zeros((3, 3)), 0.1), "pose"),
        (lambda: rd.integrate_odometry(np.zeros(3), np.zeros(3), "a"), "dt"),
        (
            lambda: rd.slip(rd.MobileBaseDifferential(["r", "l"], [1.0, 1.0]), [[0, 1, 0]] * 2, np.zeros(3), [0, 1]),
            "wheel_velocities",
        ),
        (lambda: rd.wheel_matrix(rd.MobileBaseDifferential(["r", "l"], [1.0, 1.0]), np.zeros((4, 3)), [0, 1]), "axes"),
        (lambda: rd.slip(rd.MobileBaseDifferential(["r", "l"], [1.0, 1.0]), [[0, 1, 0]] * 2, np.zeros(2)), "roles"),
        (lambda: rd.MobileBase(), "type"),
        (lambda: rd.MobileBase(1), "type"),
        (lambda: rd.MobileBase(rd.MobileBaseType.Mecanum), "MobileBaseMecanum"),
        (lambda: rd.MobileBaseDifferential(), "joints"),
        (lambda: rd.MobileBaseDifferential("rl", [1.0, 1.0]), "joints"),
        (lambda: rd.MobileBaseDifferential(["r", "l"], [1.0, 1.0], np.eye(3)), "T of"),
        (lambda: rd.MobileBaseDifferential(["r"], [1.0, 1.0]), "joints"),
        (lambda: rd.MobileBaseMecanum(list("abcd"), [1.0]), "params"),
        (lambda: rd.wheel_matrix(None, AXES, [0, 1]), "base"),
        (lambda: rd.velocity_matrix(None, AXES, [0, 1]), "base"),
        (lambda: rd.slip(None, AXES, [1.0, 1.0], [0, 1]), "base"),
        (lambda: rd.wheel_roles(None, rd.Link("base")), "base"),
        (lambda: rd.wheel_axes(None, rd.Link("base")), "base"),
        (lambda: rd.wheel_matrix(TWO, AXES[:1], [0, 1]), "axes"),
        (lambda: rd.wheel_matrix(TWO, [], [0, 1]), "axes"),
        (lambda: rd.wheel_matrix(TWO, AXES, [0.0, 1.0]), "roles"),
        (lambda: rd.wheel_matrix(TWO, AXES, [0, "left"]), "roles"),
        (lambda: rd.wheel_matrix(TWO, AXES, np.eye(2)), "roles"),
        (lambda: rd.wheel_matrix(TWO, AXES, [False, True]), "roles"),
        (lambda: rd.slip(TWO, AXES, [[1.0, 1.0], [1.0]], [0, 1]), "wheel_velocities"),
        (lambda: rd.integrate_odometry(np.zeros(3), np.zeros(3), [[1.0], [1.0, 2.0]]), "dt"),
    ],
)
def test_other_types_and_shapes(call, named):
    with pytest.raises(TypeError, match=named):
        call()


def tilted():
    T = np.eye(4)
    T[:3, :3] = Rotation.from_rotvec([0.3, 0.0, 0.0]).as_matrix()
    return T


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: rd.MobileBaseDifferential(["r"], [1.0, 1.0]), "joints"),
        (lambda: rd.MobileBaseDifferential(["r", "l"], [1.0]), "params"),
        (lambda: rd.MobileBaseMecanum(["a", "b", "c", "a"], [1.0, 1.0, 1.0]), "a, b, c, a"),
        (lambda: rd.MobileBaseMecanum(["a", "b", "c", "d"], [1.0, -1.0, 1.0]), "ly"),
        (lambda: rd.MobileBaseDifferential(["r", "l"], [1.0, np.nan]), "params"),
        (lambda: rd.MobileBaseDifferential(["r", "l"], [1.0, 1.0], tilted()), "z axis"),
        (lambda: rd.MobileBase(rd.MobileBaseType.Unspecified, ["a"]), "joints"),
        (lambda: rd.MobileBase(rd.MobileBaseType.Unspecified).forward_rates(), "Unspecified"),
        (lambda: rd.wheel_roles(rd.MobileBase(rd.MobileBaseType.Unspecified), rd.Link("base")), "Unspecified"),
        (lambda: rd.wheel_matrix(TWO, AXES, [0]), "roles"),
        (lambda: rd.wheel_matrix(TWO, AXES, []), "roles"),
        (lambda: rd.integrate_odometry(np.zeros(3), np.zeros(3), np.nan), "dt"),
    ],
)
def test_wrong_values(call, named):
    with pytest.raises(rd.RobotError, match=named):
        call()


def test_attributes_are_copies_without_setters(rng):
    base, _, _ = random_base(rng, rd.MobileBaseDifferential)
    assert base.wheel_base == base.params[0] and base.wheel_radius == base.params[1]
    assert base.joints[base.right_wheel_idx] == base.joints[0] and base.joints[base.left_wheel_idx] == base.joints[1]
    for name in ("T", "joints", "params", "type"):
        with pytest.raises(AttributeError):
            setattr(base, name, getattr(base, name))
    kept = base.T
    base.T[:] = 0.0
    base.joints.clear()
    assert np.array_equal(base.T, kept) and len(base.joints) == 2
