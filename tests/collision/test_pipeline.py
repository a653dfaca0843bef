"""Contacts of a state as a list, against the lowest points of shapes in NumPy."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import ModelBuilder, ModelFlags, ShapeConfig, eval_fk
from tests.support.kinematic_cases import random_state
from tests.support.random_trees import random_tree, random_unit

BALL, BOX = 0.1, (0.2, 0.15, 0.1)
CORNERS = np.array([[x, y, z] for x in (1, -1) for y in (1, -1) for z in (1, -1)]) * BOX  # as the list has them


APART = ShapeConfig(collision_group=-1)
"""Shapes of this group touch those of other groups alone: the ground."""


def scene(order: str) -> ModelBuilder:
    """Bodies above a ground: ``"s"`` a ball, ``"b"`` a box, ``"n"`` without a shape."""
    builder = ModelBuilder()
    for kind in order:
        body = builder.add_body(mass=1.0, inertia=np.eye(3))
        if kind == "s":
            builder.add_shape_sphere(body, radius=BALL, cfg=APART)
        if kind == "b":
            builder.add_shape_box(body, hx=BOX[0], hy=BOX[1], hz=BOX[2], cfg=APART)
    return builder


def on_ground(orders) -> ModelBuilder:
    """A world of each."""
    builder = ModelBuilder()
    for order in orders:
        builder.add_world(scene(order))
    builder.add_ground_plane()
    return builder


def expected_contacts(model, orders: str, poses) -> list[tuple]:
    """Shape, point on it in the axes of its body, and depth of every point below the ground, in the order of bodies."""
    found = []
    shapes = {body: shape for shape, body in enumerate(model.shape_body.numpy()) if body >= 0}
    for body, (kind, pose) in enumerate(zip(orders, poses, strict=True)):
        turn = Rotation.from_quat(pose[3:])
        points = {"s": turn.inv().apply([[0.0, 0.0, -BALL]]), "b": CORNERS, "n": CORNERS[:0]}[kind]
        for point, z in zip(points, turn.apply(points.reshape(-1, 3))[:, 2] + pose[2], strict=True):
            if z < 0.0:
                found.append((shapes[body], point, z))
    return found


@pytest.mark.parametrize(
    ("dtype", "tolerance", "gpu_memory"),
    [
        (wp.float32, 2e-6, False),
        pytest.param(wp.float64, 1e-12, False, marks=pytest.mark.slow),
        pytest.param(wp.float64, 1e-12, True, marks=pytest.mark.slow),
    ],
)
def test_lists_hold_the_contacts_of_the_state_they_are_asked_for(rng, monkeypatch, dtype, tolerance, gpu_memory):
    """Of batches with other numbers of candidates, and of several states in turn, some of which are far above the ground."""
    if gpu_memory:
        monkeypatch.setenv("NEWTON_LIKE_WIDTH", "1")
        monkeypatch.setattr("newton_like.programs.device.STAND_IN", True)
    orders = ["sbn", "bsnb", "n", "sbn", "bsnb"]
    builder = on_ground(orders)
    model, kinds = builder.finalize("cpu", dtype=dtype), "".join(orders)
    states = [model.state() for _ in range(3)]
    for i in (0, 1, 2, 0, 1):
        poses = np.zeros((model.body_count, 7))
        for pose in poses:
            pose[:3] = *rng.normal(size=2), rng.choice([rng.uniform(-0.05, 0.1), 5.0])
            pose[3:] = Rotation.from_rotvec(rng.uniform(0.0, 3.0) * random_unit(rng)).as_quat()
        if i == 2:
            poses[:, 2] = 5.0
        else:
            # the first one is a ball, and touches
            poses[0, 2] = 0.5 * BALL
        states[i].body_q.assign(poses)
        contacts = model.collide(states[i], unsupported_contacts="ignore")
        count = int(contacts.rigid_contact_count.numpy()[0])
        shape, point, normal, ground = (
            getattr(contacts, f"rigid_contact_{name}").numpy()[:count]
            for name in ("shape1", "point1", "normal", "shape0")
        )
        feet = contacts.rigid_contact_point0.numpy()[:count].astype(np.float64)
        np.testing.assert_array_equal(model.shape_body.numpy()[ground], -1)
        np.testing.assert_array_equal(normal, np.tile([0.0, 0.0, 1.0], (count, 1)))
        X = poses[model.shape_body.numpy()[shape]]
        world = Rotation.from_quat(X[:, 3:]).apply(point.reshape(-1, 3)) + X[:, :3] if count else point
        # points that come near are in the list as well
        below = world[:, 2] < 0.0
        expected = expected_contacts(model, kinds, poses)
        assert shape[below].tolist() == [s for s, _, _ in expected]
        assert (i == 2) == (not expected)
        for actual, foot, at, (_, local, depth) in zip(point[below], feet[below], world[below], expected, strict=True):
            np.testing.assert_allclose(actual, local, rtol=0.0, atol=tolerance)
            # contact points lie above each other, the plane's on the plane
            np.testing.assert_allclose(foot, [*at[:2], 0.0], rtol=0.0, atol=10 * tolerance)
            assert at[2] == pytest.approx(depth, abs=tolerance)


def test_states_with_gradients_do_not_collide_on_a_tape():
    model = on_ground(["s"]).finalize("cpu")
    state = model.state(requires_grad=True)
    assert model.collide(state).rigid_contact_count.numpy()[0] == 1
    with wp.Tape(), pytest.raises(RuntimeError, match="gradient"):
        model.collide(state)


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_states_and_contacts_of_another_scalar_type_are_refused_by_name(dtype):
    other = wp.float64 if dtype is wp.float32 else wp.float32
    mine, others = (on_ground(["s"]).finalize("cpu", dtype=kind) for kind in (dtype, other))
    with pytest.raises(TypeError, match=r"state\.body_q .*transform"):
        mine.collide(others.state())
    with pytest.raises(ValueError, match="contacts"):
        mine.collide(mine.state(), others.contacts())
    for arguments, named in (((None,), "state.*NoneType"), ((mine.state(), mine.state()), "contacts.*State")):
        with pytest.raises(TypeError, match=named):
            mine.collide(*arguments)


def test_candidates_take_as_much_memory_as_there_are():
    """For any largest number of candidates of an articulation."""
    model = on_ground(["s"] * 50 + ["b" * 20]).finalize("cpu")
    model.collide(model.state(), unsupported_contacts="ignore")
    assert model._contact_finder.point.size == 50 + 20 * 8


def test_repeated_calls_follow_states_lists_and_edits(rng):
    """Calls with the arrays of the call before, with others in turn, and after edits find what the first call of a new model finds."""

    def new():
        builder = on_ground("ssb")
        return builder.finalize("cpu")

    model = new()
    states, lists = [model.state() for _ in range(2)], [model.contacts() for _ in range(2)]
    scale = model.shape_scale.numpy()
    seen = set()
    for k in range(24):
        state, contacts = states[int(rng.integers(2))], lists[int(rng.integers(2))]
        poses = state.body_q.numpy()
        # the first states touch the ground nowhere, and everywhere
        poses[:, 2] = rng.uniform(0.05, 0.6, len(poses)) if k > 1 else 5.0 - 4.99 * k
        state.body_q.assign(poses)
        if k % 8 == 7:
            scale = scale * rng.uniform(0.8, 1.2)
            model.shape_scale.assign(scale)
            model.notify_changed(ModelFlags.SHAPE_PROPERTIES)
        model.collide(state, contacts)
        if k % 3 == 0:
            # the same arrays once more
            model.collide(state, contacts)
        other = new()
        other.shape_scale.assign(scale)
        fresh = other.state()
        fresh.body_q.assign(poses)
        expected = other.collide(fresh)
        n = int(expected.rigid_contact_count.numpy()[0])
        seen.add(n)
        assert int(contacts.rigid_contact_count.numpy()[0]) == n
        for name in ("shape0", "shape1", "point0", "point1", "normal"):
            found, wanted = (getattr(each, f"rigid_contact_{name}").numpy()[:n] for each in (contacts, expected))
            np.testing.assert_array_equal(found, wanted)
    assert len(seen) > 1


def test_edited_shapes_and_models_without_contacts():
    builder = on_ground("ss")
    model = builder.finalize("cpu")
    state = model.state()
    state.body_q.assign(np.tile([0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0], (2, 1)))
    assert model.collide(state).rigid_contact_count.numpy()[0] == 0
    scale = model.shape_scale.numpy()
    scale[model.shape_body.numpy() == 1] = 0.4
    model.shape_scale.assign(scale)
    model.notify_changed()
    contacts = model.collide(state, unsupported_contacts="ignore")
    assert contacts.rigid_contact_count.numpy()[0] == 1
    assert model.shape_body.numpy()[contacts.rigid_contact_shape1.numpy()[0]] == 1

    for bare in (scene("n"), ModelBuilder()):
        model = bare.finalize("cpu")
        assert model.collide(model.state()).rigid_contact_count.numpy().tolist() == [0]


def test_shapes_are_where_their_bodies_are_whatever_the_order_of_links(rng):
    """Links of the tree are added in another order than the joints that move them."""
    tree = random_tree(rng, joints=7, floating=True)
    balls = [tree.add_shape_sphere(body, radius=BALL) for body in rng.permutation(tree.body_count)]
    scene = ModelBuilder()
    scene.replicate(tree, 3)
    scene.add_ground_plane()
    model = scene.finalize("cpu")
    assert len(balls) == 7
    state = model.state()
    state.joint_q, state.joint_qd = random_state(model, rng)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    # the lowest body of each world touches the ground
    lowest = state.body_q.numpy().reshape(3, -1, 7)[:, :, 2].min(axis=1)
    placed = state.joint_q.numpy()
    trunks = model.joint_q_start.numpy()[model.articulation_start.numpy()[:-1]]
    placed[trunks + 2] -= lowest
    state.joint_q = placed
    eval_fk(model, state.joint_q, state.joint_qd, state)
    contacts = model.collide(state, unsupported_contacts="ignore")
    count = int(contacts.rigid_contact_count.numpy()[0])
    # balls may touch each other, too
    on_ground = model.shape_body.numpy()[contacts.rigid_contact_shape0.numpy()[:count]] < 0
    shapes, points = (
        a.numpy()[:count][on_ground] for a in (contacts.rigid_contact_shape1, contacts.rigid_contact_point1)
    )
    found = dict(zip(shapes.tolist(), points, strict=True))
    poses, expected = state.body_q.numpy(), {}
    for shape, body in enumerate(model.shape_body.numpy()):
        if body >= 0 and poses[body, 2] < BALL:
            expected[shape] = Rotation.from_quat(poses[body, 3:]).inv().apply([0.0, 0.0, -BALL])
    assert len(found) == len(shapes)
    assert expected.keys() <= found.keys()  # those that come near the ground soon are listed, too
    assert expected
    for shape, point in expected.items():
        # rounding of places some metres away, in single precision
        np.testing.assert_allclose(found[shape], point, rtol=0.0, atol=1e-5)


def test_boxes_with_parallel_edges_touch_at_four_corners(rng):
    """Edges of one box that miss a face of the other one are parallel to its sides: they meet them at infinity, in single precision too."""
    offsets = [(0.05, 0.03), (-0.05, 0.03), (0.05, -0.03), (0.02, 0.07), (0.05, 0.0), *rng.uniform(-0.15, 0.15, (9, 2))]
    scene = ModelBuilder()
    for x, y in offsets:
        world = ModelBuilder()
        for place in ((0.0, 0.0, 0.1), (x, y, 0.299)):
            body = world.add_body(xform=(*place, 0.0, 0.0, 0.0, 1.0))
            world.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
        scene.add_world(world)
    model = scene.finalize("cpu")
    contacts = model.collide(model.state())
    count = int(contacts.rigid_contact_count.numpy()[0])
    assert count == 4 * len(offsets)
    corners = contacts.rigid_contact_point0.numpy()[:count, :2].reshape(-1, 4, 2)
    for place, offset in zip(corners, np.abs(offsets), strict=True):
        # the part that both faces share, which is cut with a slack of some roundings of the sizes
        np.testing.assert_allclose(np.ptp(place, axis=0), 0.2 - offset, atol=2e-5)
