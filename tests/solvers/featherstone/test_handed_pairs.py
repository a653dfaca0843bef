"""Lists of contacts of shapes on two bodies that are handed to a step, and bodies that joints fix to the world."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from newton_like import Contacts, ModelBuilder, eval_fk, threads
from newton_like.solvers import SolverFeatherstone
from tests.support.random_trees import random_unit
from tests.support.simulate import GRAVITY

DT = 1.0 / 240.0


def add_random_shape(builder, rng, body) -> None:
    size = rng.uniform(0.08, 0.15)
    kind = rng.integers(4)
    if kind == 0:
        builder.add_shape_sphere(body, radius=size)
    elif kind == 1:
        builder.add_shape_box(body, hx=size, hy=0.8 * size, hz=0.6 * size)
    elif kind == 2:
        builder.add_shape_capsule(body, radius=0.6 * size, half_height=size)
    else:
        builder.add_shape_cylinder(body, radius=size, half_height=0.8 * size)


def heaps(rng, worlds=3, bodies=4) -> ModelBuilder:
    """Random shapes that overlap a little, and a fixed one below them, in worlds with bodies of the same shapes."""
    seed = rng.integers(2**31)
    whole = ModelBuilder()
    for _ in range(worlds):
        shapes = np.random.default_rng(seed)
        one = ModelBuilder()
        one.add_shape_box(-1, xform=(0, 0, -0.1, 0, 0, 0, 1), hx=1.0, hy=1.0, hz=0.1)
        for i in range(bodies):
            turn = Rotation.random(random_state=int(rng.integers(2**31))).as_quat()
            body = one.add_body(xform=(*rng.uniform(-0.05, 0.05, 2), 0.1 + 0.17 * i, *turn))
            add_random_shape(one, shapes, body)
        whole.add_world(one)
    return whole


def one_step(model, contacts, qd, dt, found=None) -> np.ndarray:
    """With sweeps that converge: their order is that of the list. `found`: a list for the contacts that the step finds."""
    solver, state = SolverFeatherstone(model, evaluator="general", iterations=300, tolerance=1.0e-6), model.state()
    state.joint_qd.assign(qd)
    solver.step(state, state, None, contacts, dt)
    assert solver.unused_contacts() == 0
    if found is not None:
        solver.update_contacts(found, state)
    return state.joint_qd.numpy()


def rearranged(model, contacts, order, swap) -> Contacts:
    """The same list in another order, with some pairs of shapes swapped."""
    n, result = len(order), model.contacts(contacts.rigid_contact_max)
    result.rigid_contact_count.assign([n])
    for name in ("shape", "point", "margin"):
        old = [getattr(contacts, f"rigid_contact_{name}{k}").numpy() for k in range(2)]
        for k in range(2):
            new = old[k].copy()
            pick = swap if new.ndim == 1 else swap[:, None]
            new[:n] = np.where(pick, old[1 - k][order], old[k][order])
            getattr(result, f"rigid_contact_{name}{k}").assign(new)
    normal = contacts.rigid_contact_normal.numpy().copy()
    normal[:n] = np.where(swap, -1.0, 1.0)[:, None] * normal[order]
    result.rigid_contact_normal.assign(normal)
    return result


@pytest.mark.slow
def test_a_list_gives_the_impulses_of_the_contacts_that_a_step_finds(rng):
    """For random overlapping shapes, whatever the order of the list and of the two shapes. Normals stay the same in so short a step. The
    list is that of the step, because `model.collide` may have one or two points where the edge of a cylinder is nearly in a face."""
    model = heaps(rng).finalize("cpu")
    model.request_contact_attributes("force")
    qd = rng.uniform(-0.3, 0.3, model.joint_dof_count)
    dt, contacts = 1.0e-6, model.contacts(400)
    found = one_step(model, None, qd, dt, contacts)
    n, body = int(contacts.rigid_contact_count.numpy()[0]), model.shape_body.numpy()
    one, two = (getattr(contacts, f"rigid_contact_shape{k}").numpy()[:n] for k in range(2))
    assert ((body[one] >= 0) & (body[two] >= 0)).any(), "no two bodies touch"
    given = one_step(model, contacts, qd, dt)
    scale = np.abs(found - qd).max()
    np.testing.assert_allclose(given, found, atol=2.0e-2 * scale)
    # contacts of a pair keep their order, so that they have the same places
    swapped = one_step(model, rearranged(model, contacts, np.arange(n), rng.random(n) < 0.5), qd, dt)
    np.testing.assert_allclose(swapped, given, atol=1.0e-5 * scale)
    mixed = one_step(model, rearranged(model, contacts, rng.permutation(n), rng.random(n) < 0.5), qd, dt)
    np.testing.assert_allclose(mixed, given, atol=2.0e-2 * scale)


@pytest.mark.slow
@pytest.mark.parametrize("worthwhile", [1, 10_000])
def test_nothing_is_left_of_the_list_before(rng, monkeypatch, worthwhile):
    """A step with a list of a solver that had other lists has the bits of a new solver, also where several threads place contacts."""
    monkeypatch.setattr(threads, "WORTHWHILE", worthwhile)
    model = heaps(rng).finalize("cpu")
    start, contacts = model.state(), model.contacts()
    start.joint_qd.assign(0.3 * rng.normal(size=model.joint_dof_count))
    eval_fk(model, start.joint_q, start.joint_qd, start)
    model.collide(start, contacts)
    n = int(contacts.rigid_contact_count.numpy()[0])
    assert n > 8
    straight = np.zeros(n, dtype=bool)
    lists = [contacts, rearranged(model, contacts, rng.permutation(n)[: n // 3], straight[: n // 3])]
    lists += [model.contacts(n), Contacts(0, device="cpu"), rearranged(model, contacts, rng.permutation(n), straight)]
    lists += [lists[1], lists[0]]

    def stepped(solver, given) -> bytes:
        result = model.state()
        solver.forget()
        solver.step(start, result, None, given, DT)
        return result.joint_qd.numpy().tobytes()

    old, results = SolverFeatherstone(model, evaluator="general"), []
    for given in lists:
        results.append(stepped(old, given))
        assert results[-1] == stepped(SolverFeatherstone(model, evaluator="general"), given)
    assert len(set(results)) >= 3 and results[2] == results[3] and results[0] == results[-1]


def run_with_lists(model, state, seconds, dt=DT):
    solver, contacts = SolverFeatherstone(model, evaluator="general"), model.contacts(64 * model.world_count)
    for _ in range(round(seconds / dt)):
        model.collide(state, contacts)
        solver.step(state, state, None, contacts, dt)
        assert solver.unused_contacts() == 0
    return solver


@pytest.mark.slow
def test_an_impact_by_a_list_keeps_the_momentum(rng):
    builder = ModelBuilder(gravity=0.0)
    masses = rng.uniform(0.5, 3.0, 2)
    way = random_unit(rng)
    for mass, side in zip(masses, (-1.0, 1.0), strict=True):
        body = builder.add_body(xform=(*(0.2 * side * way), 0, 0, 0, 1))
        builder.add_shape_sphere(body, radius=0.1)
        builder.body_mass[body] = mass
    model = builder.finalize("cpu")
    state, speed = model.state(), rng.uniform(0.5, 2.0)
    state.joint_qd.assign(np.concatenate([speed * way, np.zeros(3), -speed * way, np.zeros(3)]))
    eval_fk(model, state.joint_q, state.joint_qd, state)
    run_with_lists(model, state, 0.4)
    linear = state.joint_qd.numpy().reshape(2, 6)[:, :3]
    expected = speed * (masses[0] - masses[1]) / masses.sum() * way
    np.testing.assert_allclose(linear, [expected] * 2, atol=2.0e-3 * speed)


@pytest.mark.slow
def test_a_stack_rests_on_lists():
    builder = ModelBuilder()
    builder.add_ground_plane()
    for i in range(4):
        builder.add_shape_box(builder.add_body(xform=(0, 0, 0.1 + 0.2 * i, 0, 0, 0, 1)), hx=0.1, hy=0.1, hz=0.1)
    model = builder.finalize("cpu")
    state = model.state()
    run_with_lists(model, state, 1.0)
    poses = state.body_q.numpy()
    np.testing.assert_allclose(poses[:, 2], 0.1 + 0.2 * np.arange(4), atol=2.0e-3)
    np.testing.assert_allclose(poses[:, :2], 0.0, atol=1.0e-3)
    assert np.abs(state.body_qd.numpy()).max() < 1.0e-2


@pytest.mark.parametrize("listed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_bodies_that_joints_fix_to_the_world_hold_others(rng, listed):
    """A table on a fixed joint in an articulation of its own, in a random place, in each world."""
    whole, heights = ModelBuilder(), rng.uniform(0.2, 0.8, 3)
    for height in heights:
        one = ModelBuilder()
        table = one.add_link(mass=1.0, inertia=np.eye(3))
        joint = one.add_joint_fixed(-1, table, parent_xform=(0.1, 0.0, height, 0, 0, 0, 1))
        one.add_articulation([joint])
        one.add_shape_box(table, xform=(0, 0, 0.05, 0, 0, 0, 1), hx=0.5, hy=0.5, hz=0.05)
        one.add_shape_sphere(one.add_body(xform=(0.2, 0.1, height + 0.25, 0, 0, 0, 1)), radius=0.1)
        whole.add_world(one)
    model = whole.finalize("cpu")
    state = model.state()
    if listed:
        run_with_lists(model, state, 1.0)
    else:
        solver = SolverFeatherstone(model, evaluator="general")
        for _ in range(240):
            solver.step(state, state, None, None, DT)
        force = solver.contact_forces().numpy().reshape(3, 2, 3)
        mass = model.body_mass.numpy()[1]
        np.testing.assert_allclose(force[:, 1], [[0, 0, mass * GRAVITY]] * 3, rtol=1.0e-3, atol=1.0e-3 * mass)
    poses = state.body_q.numpy().reshape(3, 2, 7)
    np.testing.assert_allclose(poses[:, 1, 2], heights + 0.2, atol=1.0e-3)
    np.testing.assert_allclose(poses[:, 0, 2], heights, atol=1.0e-6)


@pytest.mark.slow
def test_a_kinematic_body_pushes_by_a_list():
    builder = ModelBuilder(gravity=0.0)
    pusher = builder.add_body(xform=(-0.3, 0, 0, 0, 0, 0, 1), is_kinematic=True, mass=1.0, inertia=np.eye(3))
    builder.add_shape_box(pusher, hx=0.1, hy=0.1, hz=0.1)
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    model = builder.finalize("cpu")
    state = model.state()
    state.joint_qd.assign([0.5, 0, 0, 0, 0, 0] + [0.0] * 6)
    run_with_lists(model, state, 1.0)
    qd = state.joint_qd.numpy()
    np.testing.assert_allclose(qd[:6], [0.5, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(qd[6:9], [0.5, 0, 0], atol=1.0e-3)


def test_shapes_on_bodies_of_no_world_are_refused_beside_worlds():
    """No cluster of a world has them."""
    whole = ModelBuilder()
    table = whole.add_link(mass=1.0, inertia=np.eye(3))
    whole.add_articulation([whole.add_joint_fixed(-1, table)])
    whole.add_shape_box(table, hx=0.5, hy=0.5, hz=0.05, label="table")
    for _ in range(2):
        whole.begin_world()
        whole.add_shape_sphere(whole.add_body(xform=(0, 0, 0.5, 0, 0, 0, 1)), radius=0.1, label="ball")
        whole.end_world()
    model = whole.finalize("cpu")
    with pytest.raises(ValueError, match=r"'table' \(index 0.*'ball'"):
        SolverFeatherstone(model)
    with pytest.raises(ValueError, match="no world"):
        model.collide(model.state())
    SolverFeatherstone(model, unsupported_contacts="ignore", evaluator="general")


def test_planes_on_bodies_are_refused():
    builder = ModelBuilder()
    floor = builder.add_link(mass=1.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_fixed(-1, floor)])
    builder.add_shape_plane(body=floor, label="floor")
    builder.add_shape_sphere(builder.add_body(xform=(0, 0, 0.5, 0, 0, 0, 1)), radius=0.1)
    with pytest.raises(ValueError, match="'floor'"):
        SolverFeatherstone(builder.finalize("cpu"))
