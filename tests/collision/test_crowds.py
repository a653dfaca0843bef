"""Contacts of worlds with many shapes, against those that are found by looking at all pairs."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import newton_like as nl
from newton_like.collision import crowds
from newton_like.types import ShapeFlags

MANY = crowds.CROWD + 16
SIZE = 0.1
# Positions of single precision at about 1 m, and curved shapes that are compared after searches with other starts.
TOLERANCE = 2.0e-5


def random_turn(rng) -> np.ndarray:
    """A random unit quaternion."""
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def polyhedron(rng) -> nl.Mesh:
    """A tetrahedron with corners near a sphere."""
    corners = SIZE * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / 3**0.5
    return nl.Mesh(corners + rng.uniform(-0.01, 0.01, (4, 3)), np.array([0, 1, 2, 0, 3, 1, 0, 2, 3, 1, 3, 2]))


def crowd(rng, bodies: int, surfaces: bool = False) -> nl.ModelBuilder:
    """Mixed shapes that overlap each other, the ground, and fixed shapes."""
    world = nl.ModelBuilder()
    hulls = [polyhedron(rng) for _ in range(3)]
    world.add_shape_box(-1, xform=(0.5, 0, 0.3, 0, 0, 0, 1), hx=0.1, hy=0.6, hz=0.3)
    if surfaces:
        corners = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0.2], [-1, 1, 0.2]], dtype=float)
        world.add_shape_mesh(-1, mesh=nl.Mesh(corners, np.array([0, 1, 2, 0, 2, 3])))
        field = nl.Heightfield(rng.uniform(0.0, 0.1, (6, 6)), 6, 6, 1.0, 1.0)
        world.add_shape_heightfield(heightfield=field)
    for i in range(bodies):
        place = (*rng.uniform(-0.45, 0.45, 2), rng.uniform(0.0, 0.6))
        body = world.add_body(xform=(*place, *random_turn(rng)))
        size = SIZE * rng.uniform(0.6, 1.0)
        group = int(rng.choice([1, 1, 1, -1, -2, 0]))
        cfg = nl.ShapeConfig(collision_group=group, margin=rng.uniform(0.0, 0.004), gap=rng.uniform(0.0, 0.01))
        own = tuple(rng.uniform(-0.05, 0.05, 3)) + tuple(random_turn(rng))
        kind = i % 7
        if kind == 0:
            world.add_shape_box(body, xform=own, hx=size, hy=0.8 * size, hz=0.5 * size, cfg=cfg)
        elif kind == 1:
            world.add_shape_sphere(body, xform=own, radius=size, cfg=cfg)
        elif kind == 2:
            world.add_shape_capsule(body, xform=own, radius=0.5 * size, half_height=size, cfg=cfg)
        elif kind == 3:
            world.add_shape_cylinder(body, xform=own, radius=0.6 * size, half_height=size, cfg=cfg)
        elif kind == 4:
            world.add_shape_cone(body, xform=own, radius=0.6 * size, half_height=size, cfg=cfg)
        elif kind == 5:
            world.add_shape_ellipsoid(body, xform=own, rx=size, ry=0.7 * size, rz=0.5 * size, cfg=cfg)
        else:
            world.add_shape_convex_hull(body, xform=own, mesh=hulls[i % 3], cfg=cfg)
        if i % 5 == 4:
            world.add_shape_sphere(body, radius=0.5 * size, cfg=cfg)
    shapes = world.shape_count
    for a, b in rng.integers(shapes, size=(60, 2)).tolist():
        if a != b:
            world.add_shape_collision_filter_pair(a, b)
    return world


def scene(worlds) -> nl.ModelBuilder:
    builder = nl.ModelBuilder()
    for world in worlds:
        builder.add_world(world)
    builder.add_ground_plane()
    return builder


def started(model, rng):
    state = model.state()
    nl.eval_fk(model, state.joint_q, state.joint_qd, state)
    state.body_qd.assign(rng.normal(size=(model.body_count, 6)).astype(np.float32))
    return state


def listed(model, state, **options) -> np.ndarray:
    """Contacts as rows: shapes, points, normal, margins."""
    contacts = model.contacts(**options)
    model.collide(state, contacts)
    n = min(int(contacts.rigid_contact_count.numpy()[0]), contacts.rigid_contact_max)
    names = ("shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1")
    return np.concatenate([getattr(contacts, f"rigid_contact_{x}").numpy()[:n].reshape(n, -1) for x in names], axis=1)


def brute(model, state, monkeypatch) -> np.ndarray:
    """The same by looking at all pairs."""
    with monkeypatch.context() as patch:
        patch.setattr(crowds, "CROWD", 10**9)
        model._contact_finder = None
        found = listed(model, state, rigid_contact_max=20_000)
    model._contact_finder = None
    return found


def points(model, state, rows: np.ndarray) -> dict:
    """The contacts of each pair of shapes, the lower index first: both points and the normal in the world, ``[n, 9]``."""
    pose = np.append(state.body_q.numpy().astype(float), [[0, 0, 0, 0, 0, 0, 1]], axis=0)
    body = model.shape_body.numpy()
    found: dict = {}
    for row in rows:
        ends = [
            pose[body[int(s)], :3] + Rotation.from_quat(pose[body[int(s)], 3:]).apply(row[k : k + 3])
            for s, k in zip(row[:2], (2, 5), strict=True)
        ]
        if row[0] < row[1]:
            record = [*ends[0], *ends[1], *row[8:11]]
        else:
            record = [*ends[1], *ends[0], *-row[8:11]]
        found.setdefault((int(row[:2].min()), int(row[:2].max())), []).append(record)
    return {pair: np.array(sorted(records, key=lambda x: tuple(np.round(x, 3)))) for pair, records in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("surfaces", [False, True])
def test_contacts_are_those_of_all_pairs(rng, monkeypatch, surfaces):
    model = scene([crowd(rng, MANY, surfaces), crowd(rng, 5), crowd(rng, MANY + 9)]).finalize("cpu")
    state = started(model, rng)
    rows = listed(model, state, rigid_contact_max=20_000)
    found, wanted = points(model, state, rows), points(model, state, brute(model, state, monkeypatch))
    assert len(wanted) > MANY
    assert found.keys() == wanted.keys()
    # searches for the depth of curved shapes in hulls start elsewhere, and end within a percent of the size of the smallest depth
    for pair, records in wanted.items():
        depth = [min(np.einsum("ni,ni->n", x[:, 3:6] - x[:, :3], x[:, 6:])) for x in (records, found[pair])]
        assert abs(depth[0] - depth[1]) < 0.01 * SIZE
    same = [p for p in wanted if found[p].shape == wanted[p].shape and np.allclose(found[p], wanted[p], atol=TOLERANCE)]
    assert len(same) > 0.9 * len(wanted)


@pytest.mark.slow
def test_lists_do_not_depend_on_other_worlds_and_threads(rng, monkeypatch):
    worlds = [crowd(rng, MANY), crowd(rng, MANY + 30), crowd(rng, MANY + 200)]
    speeds = rng.normal(size=(sum(w.body_count for w in worlds), 6)).astype(np.float32)

    def lists(chosen, threads):
        monkeypatch.setenv("NEWTON_LIKE_THREADS", str(threads))
        model = scene([worlds[i] for i in chosen]).finalize("cpu")
        state = started(model, np.random.default_rng(0))
        starts = np.cumsum([0, *[w.body_count for w in worlds]])
        state.body_qd.assign(np.concatenate([speeds[starts[i] : starts[i + 1]] for i in chosen]))
        rows = listed(model, state)
        world = model.shape_world.numpy()
        out = []
        for k in range(len(chosen)):
            first = np.flatnonzero(world == k)[0]
            own = rows[world[rows[:, 1].astype(int)] == k]
            own[:, :2] = np.where(world[own[:, :2].astype(int)] == k, own[:, :2] - first, -1)
            out.append(own)
        return out

    whole = lists([0, 1, 2], 1)
    for chosen, threads in (([2, 0, 1], 2), ([1], 3), ([2], 2)):
        for i, found in zip(chosen, lists(chosen, threads), strict=True):
            assert np.array_equal(found, whole[i])


@pytest.mark.slow
def test_contacts_do_not_depend_on_kinds_of_other_worlds(rng):
    """The narrow phase is made for the pairs of kinds that occur."""
    boxes = nl.ModelBuilder()
    for _ in range(MANY):
        body = boxes.add_body(xform=(*rng.uniform(-0.45, 0.45, 2), rng.uniform(0.0, 0.6), *random_turn(rng)))
        boxes.add_shape_box(body, hx=0.06, hy=0.05, hz=0.04)
    alone, beside = (scene(worlds).finalize("cpu") for worlds in ([boxes], [boxes, crowd(rng, MANY)]))
    rows = [
        listed(model, started(model, np.random.default_rng(0)), rigid_contact_max=20_000) for model in (alone, beside)
    ]
    kernels = [model._contact_finder.crowds.kernels()[0] for model in (alone, beside)]
    assert kernels[0] is not kernels[1]
    # the ground comes behind the shapes of all worlds
    count = alone.shape_count - 1
    rows[1] = rows[1][(rows[1][:, 1] < count) & ((rows[1][:, 0] < count) | (rows[1][:, 0] == beside.shape_count - 1))]
    rows[1][:, 0] = np.where(rows[1][:, 0] < count, rows[1][:, 0], count)
    assert len(rows[0]) > MANY
    assert np.array_equal(*rows)


@pytest.mark.slow
def test_edits_and_lost_bodies(rng, monkeypatch):
    model = scene([crowd(rng, MANY)]).finalize("cpu")
    state = started(model, rng)
    listed(model, state)
    # a shape that no longer collides, and a fixed one that moves
    flags = model.shape_flags.numpy()
    gone = int(np.flatnonzero(model.shape_body.numpy() >= 0)[3])
    flags[gone] &= ~int(ShapeFlags.COLLIDE_SHAPES)
    model.shape_flags.assign(flags)
    places = model.shape_transform.numpy()
    places[0, 0] -= 0.4
    model.shape_transform.assign(places)
    model.notify_changed()
    rows = listed(model, state, rigid_contact_max=20_000)
    assert len(rows) and not (rows[:, :2] == gone).any()
    wanted = points(model, state, brute(model, state, monkeypatch))
    assert points(model, state, rows).keys() == wanted.keys()
    # bodies that are not a number, or far away, have no contacts, and the others keep theirs
    poses = state.body_q.numpy()
    poses[0, :3], poses[1, :3] = np.nan, 1.0e6
    state.body_q.assign(poses)
    lost = np.isin(model.shape_body.numpy(), (0, 1))
    left = {pair: x for pair, x in wanted.items() if not lost[list(pair)].any()}
    assert points(model, state, listed(model, state, rigid_contact_max=20_000)).keys() == left.keys()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Model.collide")
def test_contacts_without_room_are_counted(rng):
    model = scene([crowd(rng, MANY)]).finalize("cpu")
    state = started(model, rng)
    whole = listed(model, state, rigid_contact_max=20_000)
    contacts = model.contacts(rigid_contact_max=50)
    model.collide(state, contacts)
    assert contacts.dropped == len(whole) - 50
    shapes = np.stack([contacts.rigid_contact_shape0.numpy(), contacts.rigid_contact_shape1.numpy()], axis=1)
    assert {tuple(x) for x in shapes} <= {tuple(x) for x in whole[:, :2].astype(int)}


def test_worlds_with_few_shapes_are_no_crowds(rng):
    builder = scene([crowd(rng, 5), crowd(rng, MANY)])
    model = builder.finalize("cpu")
    assert crowds.crowd_keys(model) == [1]
    assert crowds.crowd_keys(scene([crowd(rng, 5)]).finalize("cpu")) == []


def test_captures_on_a_cpu_are_refused(rng):
    model = scene([crowd(rng, MANY)]).finalize("cpu")
    state, contacts = model.state(), model.contacts()
    with wp.ScopedCapture("cpu"), pytest.raises(RuntimeError, match=r"64 shapes.*capture"):
        model.collide(state, contacts)


def octagon(radius: float = 0.12, height: float = 0.03) -> nl.Mesh:
    """A prism with eight corners at each end."""
    turn = 0.25 * np.pi * np.arange(8)
    corners = np.concatenate(
        [np.c_[radius * np.cos(turn), radius * np.sin(turn), np.full(8, z)] for z in (-height, height)]
    )
    return nl.Mesh(corners, ConvexHull(corners).simplices, compute_inertia=False)


@pytest.mark.slow
def test_hulls_on_a_surface_have_the_contacts_of_all_pairs(rng, monkeypatch):
    """Hulls have the largest numbers of contact points: a corner each of a face, and some of slopes beside it."""
    world, plate, heights = nl.ModelBuilder(), octagon(), np.zeros((41, 41))
    heights[:, 2::4] = 0.2  # ridges across x, at whose feet the hulls are
    world.add_shape_heightfield(heightfield=nl.Heightfield(heights, 41, 41, 2.0, 2.0))
    for x, y in np.stack(np.meshgrid(np.arange(9), np.arange(9)), axis=-1).reshape(-1, 2) * 0.4 - 1.6:
        turn = Rotation.from_euler("z", rng.uniform(0.0, 2.0 * np.pi)).as_quat()
        place = (x + rng.uniform(-0.02, 0.02), y + rng.uniform(-0.02, 0.02), 0.03 - rng.uniform(1.0e-4, 1.0e-3))
        world.add_shape_convex_hull(world.add_body(xform=(*place, *turn)), mesh=plate)
    model = world.finalize("cpu")
    assert len(crowds.crowd_keys(model)) == 1
    state = started(model, rng)
    rows = listed(model, state, rigid_contact_max=20_000)
    found, wanted = points(model, state, rows), points(model, state, brute(model, state, monkeypatch))
    assert max(len(x) for x in found.values()) > 8
    assert found.keys() == wanted.keys()
    for pair, records in wanted.items():
        np.testing.assert_allclose(found[pair], records, atol=TOLERANCE)
