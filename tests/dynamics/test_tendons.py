"""Lengths, Jacobians and speeds of tendons against MuJoCo, finite differences and closed forms; wrapping in NumPy."""

import math

import mujoco
import numpy as np
import pytest
import warp as wp
from newton_like.kernels.tree import IN_SPHERE, ROUND_CYLINDER, ROUND_SPHERE

from newton_like import GeoType, ModelBuilder, ModelFlags, dynamics
from newton_like.geometry.wrapping import piece_length
from newton_like.model.tendons import Tendon
from tests.support.tendons import chain, dense_jacobian


def built(xml: str, dtype=wp.float64, copies: int = 1):
    robot = ModelBuilder()
    robot.add_mjcf(xml)
    builder = ModelBuilder()
    builder.replicate(robot, copies)
    model = builder.finalize("cpu", dtype=dtype)
    model.evaluator = "general"
    return model


def numbers(model, q, qd):
    state = model.state()
    state.joint_q, state.joint_qd = q, qd
    return [x.numpy().astype(np.float64) for x in dynamics.tendon_kinematics(model, state)]


@pytest.mark.parametrize("dtype", [wp.float64, wp.float32])
def test_lengths_jacobians_and_speeds_are_those_of_mujoco(rng, dtype):
    """MuJoCo finds the point of a path inside of a shape to about 1e-6 by an iteration; all else is a closed form."""
    xml = chain(rng)
    peer = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(peer)
    model = built(xml, dtype, 3)
    q, qd = rng.normal(size=(2, 3, 6)) * 0.7
    lengths, jacobians, speeds = numbers(model, q.ravel(), qd.ravel())
    atol = 1e-6 if dtype is wp.float64 else 3e-5
    for i in range(3):
        data.qpos[:], data.qvel[:] = q[i], qd[i]
        mujoco.mj_forward(peer, data)
        np.testing.assert_allclose(lengths[i], data.ten_length, rtol=0, atol=atol)
        np.testing.assert_allclose(jacobians[i], dense_jacobian(peer, data), rtol=0, atol=20 * atol)
        np.testing.assert_allclose(speeds[i], data.ten_velocity, rtol=0, atol=60 * atol)


def test_jacobians_are_derivatives_of_lengths(rng):
    model = built(chain(rng))
    q, step = rng.normal(size=6) * 0.7, 1.0e-6
    _, jacobian, _ = numbers(model, q, np.zeros(6))
    found = np.stack(
        [
            (numbers(model, q + step * e, 0 * q)[0][0] - numbers(model, q - step * e, 0 * q)[0][0]) / (2 * step)
            for e in np.eye(6)
        ],
        axis=1,
    )
    # a path may change sides within the step
    wrong = np.abs(found - jacobian[0]).max(axis=1) > 1e-6
    assert wrong.sum() <= 1


def test_articulations_with_other_tendons_have_rows_of_zeros(rng):
    builder = ModelBuilder()
    builder.add_mjcf(chain(rng))
    lone = builder.add_link(mass=1.0, inertia=np.eye(3))
    joint = builder.add_joint_revolute(-1, lone, axis=(0, 0, 1))
    builder.add_articulation([joint])
    builder.add_tendon(Tendon(label="own", joints=((joint, 0, 3.0),), offset=0.5))
    model = builder.finalize("cpu", dtype=wp.float64)
    model.evaluator = "general"
    q = rng.normal(size=7)
    lengths, jacobians, _ = numbers(model, q, np.zeros(7))
    assert lengths.shape == (2, 11) and jacobians.shape == (2, 11, 6)
    assert lengths[1, 0] == pytest.approx(0.5 + 3.0 * q[6]) and jacobians[1, 0, 0] == 3.0
    assert not lengths[1, 1:].any() and not jacobians[1, 1:].any()
    np.testing.assert_allclose(lengths[0], numbers_of_first(builder, q), rtol=0, atol=1e-14)


def numbers_of_first(builder, q):
    builder.tendons.pop()
    model = builder.finalize("cpu", dtype=wp.float64)
    model.evaluator = "general"
    return numbers(model, q, np.zeros(7))[0][0]


def test_edits_of_sites_and_offsets_are_read(rng):
    model = built(chain(rng))
    q = rng.normal(size=6)
    before, *_ = numbers(model, q, 0 * q)
    model.tendon_offset = model.tendon_offset.numpy() + 0.25
    model.notify_changed(ModelFlags.TENDON_PROPERTIES)
    np.testing.assert_allclose(numbers(model, q, 0 * q)[0], before + 0.25, rtol=0, atol=1e-14)


def test_arcs_are_closed_forms(rng):
    """Around a circle of radius r, from distance a to distance b and a turn t: two tangents and the rest of the angle."""
    r, turn = rng.uniform(0.1, 1.0), rng.uniform(2.5, 3.1)
    a, b = r * rng.uniform(1.2, 3.0, 2)
    x, y = np.array([a, 0.0, 0.0]), b * np.array([math.cos(turn), math.sin(turn), 0.0])
    tangents = math.sqrt(a * a - r * r) + math.sqrt(b * b - r * r)
    ends = math.acos(r / a) + math.acos(r / b)
    if turn > ends:
        short = tangents + r * (turn - ends)
        assert piece_length(ROUND_SPHERE, x, y, None, r) == pytest.approx(short, abs=1e-12)
        rise = rng.uniform(0.1, 2.0)
        lifted = y + np.array([0.0, 0.0, rise])
        assert piece_length(ROUND_CYLINDER, x, lifted, None, r) == pytest.approx(math.hypot(short, rise), abs=1e-12)
    # a side site behind the centre asks for the long way
    behind = -2.0 * r * np.array([math.cos(turn / 2), math.sin(turn / 2), 0.0])
    long = tangents + r * (2.0 * math.pi - turn - ends)
    assert piece_length(ROUND_SPHERE, x, y, behind, r) == pytest.approx(long, abs=1e-12)
    # inside, from equal distances: over the middle
    y = a * np.array([math.cos(0.4), math.sin(0.4), 0.0])
    if a * math.cos(0.2) > r:
        middle = r * np.array([math.cos(0.2), math.sin(0.2), 0.0])
        assert piece_length(IN_SPHERE, x, y, 0 * x, r) == pytest.approx(2.0 * np.linalg.norm(x - middle), abs=1e-9)


def test_degenerate_paths_are_finite():
    """Ends on one line with the centre, at one place, and inside of the shape."""
    x = np.array([0.5, 0.0, 0.0])
    assert piece_length(ROUND_SPHERE, x, -x, None, 0.2) == pytest.approx(
        2 * math.sqrt(0.25 - 0.04) + 0.2 * (math.pi - 2 * math.acos(0.4)), abs=1e-12
    )
    assert piece_length(ROUND_SPHERE, x, x, None, 0.2) == 0.0
    assert piece_length(ROUND_CYLINDER, 0.1 * x, x, None, 0.2) == pytest.approx(0.45)


@pytest.mark.parametrize(
    ("tendon", "told"),
    [
        (dict(), "joints"),
        (dict(path=(("site", 0),)), "site"),
        (dict(path=(("site", 0), ("site", 1), ("site", 1))), "site"),
        (dict(path=(("geom", 0, -1), ("site", 0))), "sites"),
        (dict(path=(("site", 0), ("site", 1), ("pulley", 0.0), ("site", 0), ("site", 1))), "divisor"),
        (dict(path=(("site", 0), ("site", 1)), stiffness=-1.0), "stiffness"),
        (dict(path=(("site", 0), ("site", 1)), limits=(1.0, 0.0)), "limits"),
    ],
)
def test_bad_tendons_are_refused_by_name(tendon, told):
    builder = ModelBuilder()
    link = builder.add_body()
    builder.add_site(link)
    builder.add_site(-1)
    with pytest.raises(ValueError, match=f"tendon 'bad'.*{told}"):
        builder.add_tendon(Tendon(label="bad", **tendon))


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ((("site", "a"), ("site", "box")), r"'box' .*add_site.*wrap"),
        ((("site", "a"), ("geom", "ball", "box"), ("site", "b")), r"'box' .*add_site"),
        ((("site", "a"), ("geom", "box", -1), ("site", "b")), r"'box' .*BOX.*spheres and cylinders"),
        ((("site", "a"), ("geom", "a", -1), ("site", "b")), r"'a' .*spheres and cylinders"),
    ],
)
def test_paths_over_other_shapes_than_sites_are_refused_by_name(path, told):
    builder = ModelBuilder()
    link = builder.add_body()
    shapes = {
        "a": builder.add_site(link, label="a", type=GeoType.BOX, scale=(0.1, 0.1, 0.1)),
        "b": builder.add_site(-1, label="b"),
        "box": builder.add_shape_box(link, label="box"),
        "ball": builder.add_shape_sphere(link, label="ball"),
    }
    path = tuple((kind, *(shapes.get(name, name) for name in names)) for kind, *names in path)
    with pytest.raises(ValueError, match=f"tendon 'bad': .*{told}"):
        builder.add_tendon(Tendon(label="bad", path=path))
    builder.add_tendon(
        Tendon(label="good", path=(("site", shapes["a"]), ("geom", shapes["ball"], -1), ("site", shapes["b"])))
    )
    assert [tendon.label for tendon in builder.tendons] == ["good"]
