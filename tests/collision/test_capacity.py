"""Lists of contacts without room for all: which contacts each world keeps, and how many it drops."""

import warnings

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.collision.ration import ration_kernels

import newton_like as nl
from newton_like.collision.crowds import CROWD
from newton_like.collision.pipeline import collide
from newton_like.collision.ration import rationed

pytestmark = pytest.mark.filterwarnings("ignore:Model.collide")

WORLDS = 4
NAMES = ("shape0", "shape1", "margin0", "margin1", "point0", "point1", "normal")


def boxes(rng, count: int) -> nl.ModelBuilder:
    """A pile of boxes that overlap each other and the ground by different depths."""
    world = nl.ModelBuilder()
    for i in range(count):
        turn = rng.normal(scale=0.02, size=3)
        body = world.add_body(
            xform=(0, 0, 0.1 + 0.195 * i + rng.uniform(-0.004, 0.004), *turn, np.sqrt(1 - turn @ turn))
        )
        world.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    return world


def heap(rng, count: int) -> nl.ModelBuilder:
    """Balls and boxes at random places."""
    world = nl.ModelBuilder()
    for i in range(count):
        body = world.add_body(xform=(*rng.uniform(-0.5, 0.5, 2), rng.uniform(0, 0.6), 0, 0, 0, 1))
        world.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1) if i % 2 else world.add_shape_sphere(body, radius=0.1)
    return world


def scene(worlds: list[nl.ModelBuilder]) -> nl.Model:
    builder = nl.ModelBuilder()
    builder.add_ground_plane()
    for world in worlds:
        builder.add_world(world)
    return builder.finalize("cpu")


def rows(contacts) -> np.ndarray:
    """The contacts of a list, one a row."""
    count = min(int(contacts.rigid_contact_count.numpy()[0]), contacts.rigid_contact_max)
    columns = [getattr(contacts, f"rigid_contact_{name}").numpy()[:count] for name in NAMES]
    if contacts.force is not None:
        columns.append(contacts.force.numpy()[:count])
    return np.column_stack(columns)


def gaps(model, state, listed: np.ndarray) -> np.ndarray:
    """Distances of surfaces."""
    poses = [wp.transform(*pose) for pose in state.body_q.numpy().tolist()]
    body = model.shape_body.numpy()

    def place(shape, point):
        return np.array(point if body[shape] < 0 else wp.transform_point(poses[body[shape]], wp.vec3(*point)))

    return np.array(
        [r[10:13] @ (place(int(r[1]), r[7:10]) - place(int(r[0]), r[4:7])) - r[2] - r[3] for r in listed.astype(float)]
    )


def check(model, whole: np.ndarray, contacts, rank: np.ndarray, tolerance: float = 1.0e-6) -> None:
    """Checks that the list has contacts of the whole one, in their order within each world, of each world those with the smallest ranks,
    and that no world could have more without another one having fewer."""
    listed, room, last = rows(contacts), contacts.rigid_contact_max, model.world_count
    keys = {row.tobytes(): i for i, row in enumerate(whole)}
    kept = np.array([keys[row.tobytes()] for row in listed], dtype=int)
    assert len(np.unique(kept)) == len(kept) == min(room, len(whole))
    world = model.shape_world.numpy()[whole[:, :2].astype(int)].max(axis=1)
    world = np.where(world < 0, last, world)
    number, left = (np.bincount(x, minlength=last + 1) for x in (world, world[kept]))
    assert contacts.dropped == max(len(whole) - room, 0)
    assert np.array_equal(contacts.dropped_by_world.numpy(), number - left)
    for w in range(last + 1):
        mine, missing = kept[world[kept] == w], np.setdiff1d(np.flatnonzero(world == w), kept)
        assert (np.diff(mine) > 0).all()
        if len(missing):
            assert left[w] >= left.max() - 1
            if len(mine):
                assert rank[mine].max() <= rank[missing].min() + tolerance


def test_each_world_keeps_its_deepest_contacts(rng):
    model = scene([boxes(rng, n) for n in (3, 3, 1, 2)])
    state = model.state()
    whole = model.contacts(1000)
    model.collide(state, whole)
    listed = rows(whole)
    depth = gaps(model, state, listed)
    assert not whole.dropped_by_world.numpy().any() and len(whole.dropped_by_world) == WORLDS + 1
    for room in (1, 2, 5, len(listed) // 2, len(listed) - 1, len(listed)):
        contacts = model.contacts(room)
        for _ in range(2):  # the second call repeats the launches of the first one
            model.collide(state, contacts)
            check(model, listed, contacts, depth)
    # no contact is dropped any more
    poses = state.body_q.numpy()
    poses[:, 2] = 10.0 * (1.0 + np.arange(len(poses)))
    state.body_q.assign(poses)
    contacts = model.contacts(5)
    model.collide(model.state(), contacts)
    assert contacts.dropped_by_world.numpy().any() and "of world 0" in contacts.dropped_message()
    model.collide(state, contacts)
    assert not contacts.dropped_by_world.numpy().any()


@pytest.mark.parametrize("collides", ["model", "pipeline"])
@pytest.mark.parametrize("count", [4, CROWD + 1], ids=["few", "crowd"])
def test_a_list_without_room_warns_once(collides, count, rng):
    """Each list warns at its first search without room, also after searches with room; steps that find contacts never do."""
    model = scene([boxes(rng, count) for _ in range(2)])
    finder = model if collides == "model" else nl.CollisionPipeline(model)
    near, far = model.state(), model.state()
    places = far.body_q.numpy().copy()
    places[1:, 0] += 3.0 * np.arange(1, len(places))
    far.body_q.assign(places)
    found = finder.contacts()
    finder.collide(far, found)
    room = int(found.rigid_contact_count.numpy()[0])
    assert room
    contacts = model.contacts(rigid_contact_max=room)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        finder.collide(far, contacts)
        finder.collide(far, contacts)
    with pytest.warns(UserWarning, match=r"of world 0, .* of world 1\).*rigid_contact_max=") as told:
        finder.collide(near, contacts)
        finder.collide(near, contacts)
    assert len(told) == 1 and told[0].filename == __file__


def test_a_search_with_room_after_one_without_does_not_warn(rng):
    """The search without room is by `newton_like.collision.collide`, which does not warn."""
    model = scene([boxes(rng, 4) for _ in range(2)])
    near, far = model.state(), model.state()
    places = far.body_q.numpy().copy()
    places[:, 2] = 10.0 * (1.0 + np.arange(len(places)))
    far.body_q.assign(places)
    contacts = model.contacts(rigid_contact_max=3)
    collide(model, near, contacts)
    assert contacts.dropped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.collide(far, contacts)
    with pytest.warns(UserWarning, match="had no room"):
        model.collide(near, contacts)


def test_bodies_of_no_world_count_last(rng):
    model = boxes(rng, 3)
    model.add_ground_plane()
    model = model.finalize("cpu")
    contacts = nl.Contacts(4, device="cpu")
    model.collide(model.state(), contacts)
    assert contacts.dropped_by_world.numpy().tolist() == [0, contacts.dropped]


@pytest.mark.slow
def test_graphs_keep_the_same_contacts(rng):
    model = scene([boxes(rng, 2) for _ in range(WORLDS)])
    state, contacts, others = model.state(), model.contacts(7), model.contacts(7)
    model.collide(state, contacts)
    with wp.ScopedCapture("cpu") as capture:
        model.collide(state, others)
    wp.capture_launch(capture.graph)
    assert np.array_equal(rows(others), rows(contacts))
    assert np.array_equal(others.dropped_by_world.numpy(), contacts.dropped_by_world.numpy())


@pytest.mark.slow
def test_crowds_share_the_room_with_other_worlds(rng):
    model = scene([heap(rng, n) for n in (CROWD + 20, 8, 4, CROWD + 6)])
    state, whole = model.state(), model.contacts(20_000)
    model.collide(state, whole)
    listed = rows(whole)
    depth = gaps(model, state, listed)
    for room in (1, 40, len(listed) // 2, len(listed) - 1, len(listed)):
        contacts = model.contacts(room)
        model.collide(state, contacts)
        check(model, listed, contacts, depth)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [nl.solvers.SolverFeatherstone, nl.solvers.SolverXPBD])
def test_reports_share_the_room(rng, solver):
    model = scene([boxes(rng, n) for n in (2, 3, 1, 2)])
    model.request_contact_attributes("force")
    solver, state = solver(model), model.state()
    for _ in range(3):
        solver.step(state, state, None, None, 1.0e-4)
    whole = model.contacts(1000)
    solver.update_contacts(whole, state)
    listed = rows(whole)
    of_force = isinstance(solver, nl.solvers.SolverXPBD)
    rank = -np.linalg.norm(listed[:, 13:16], axis=1) if of_force else gaps(model, state, listed)
    for room in (1, 6, len(listed) - 2, len(listed)):
        contacts = model.contacts(room)
        solver.update_contacts(contacts, state)
        # gaps are those half a step before the state
        check(model, listed, contacts, rank, 1.0e-4)


def test_shares_on_the_host(rng):
    """The host and the kernel share a room in the same way."""
    for _ in range(20):
        worlds = int(rng.integers(1, 8))
        number = rng.integers(0, 9, worlds)
        world = rng.permutation(np.repeat(np.arange(worlds), number))
        if not len(world):
            continue
        room, rank = int(rng.integers(0, len(world))), rng.integers(0, 5, len(world)).astype(float)
        kept, lost = rationed(world, rank, room, worlds)
        left = np.bincount(world[kept], minlength=worlds)
        assert np.array_equal(lost, number - left) and left.sum() == room
        share, _ = ration_kernels(wp.float32)
        starts, firsts, order, none = (
            wp.array(np.asarray(x), dtype=int, device="cpu")
            for x in (np.cumsum([0, *number]), np.arange(worlds + 1), np.arange(worlds), np.zeros(0))
        )
        out = [wp.zeros(n, dtype=int, device="cpu") for n in (worlds, 1, worlds, worlds, worlds, worlds)]
        inputs = [room, starts, order, firsts, none, none, none, order]
        wp.launch(share, dim=1, inputs=inputs, outputs=out, device="cpu")
        assert np.array_equal(out[3].numpy(), left)
        assert np.array_equal(out[5].numpy(), lost)
