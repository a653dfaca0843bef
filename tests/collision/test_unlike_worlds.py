"""Worlds that differ in filters, in planes, and in shapes that do not collide."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from newton_like import ModelBuilder, ShapeConfig, eval_fk
from newton_like.collision import collide
from newton_like.solvers import SolverFeatherstone
from tests.support.random_trees import random_unit

RADIUS = 0.1
UNSEEN = ShapeConfig(has_shape_collision=False, density=0.0)


def plane_and_ball(filtered: bool) -> ModelBuilder:
    """A plane on a body, whose contacts are not found, and a ball."""
    builder = ModelBuilder()
    plane = builder.add_shape_plane(body=builder.add_body(mass=1.0, inertia=np.eye(3)), width=0.0, length=0.0)
    ball = builder.add_shape_sphere(builder.add_body(xform=(0, 0, 1, 0, 0, 0, 1)), radius=RADIUS)
    if filtered:
        builder.shape_collision_filter_pairs.append((plane, ball))
    return builder


@pytest.mark.parametrize("filtered", [(True, False), (False, True), (True, True), (False, False)])
def test_pairs_without_contacts_are_refused_in_whichever_world_no_filter_names_them(filtered):
    builder = ModelBuilder()
    for each in filtered:
        builder.add_world(plane_and_ball(each))
    model = builder.finalize("cpu")
    if all(filtered):
        collide(model, model.state(), model.contacts())
        return
    first = 2 * filtered.index(False)
    with pytest.raises(ValueError, match=rf"\(index {first}\) and .* \(index {first + 1}\) may touch"):
        collide(model, model.state(), model.contacts())


@pytest.mark.parametrize("last", [False, True])
def test_bodies_of_all_worlds_stand_beside_worlds_that_have_planes_of_their_own(rng, last):
    builder, heights = ModelBuilder(), rng.uniform(-0.5, 0.5, 2)
    cfg = ShapeConfig(collision_group=-1)

    def add_shared():
        body = builder.add_body(xform=(0, 0, 0.05, 0, 0, 0, 1), is_kinematic=True)
        builder.add_shape_sphere(body, radius=RADIUS, cfg=cfg)

    if not last:
        add_shared()
    for z in heights:
        builder.begin_world()
        body = builder.add_body(xform=(0, 0, z + 0.05, 0, 0, 0, 1))
        builder.add_shape_sphere(body, radius=RADIUS, cfg=cfg)
        ground = ShapeConfig(collision_group=-2)
        builder.add_shape_plane(xform=(0, 0, z, 0, 0, 0, 1), width=0.0, length=0.0, cfg=ground)
        builder.end_world()
    if last:
        add_shared()
    model = builder.finalize("cpu")
    contacts, state = model.contacts(), model.state()
    collide(model, state, contacts)
    shapes = [contacts.rigid_contact_shape0.numpy()[:2].tolist(), contacts.rigid_contact_shape1.numpy()[:2].tolist()]
    first = 0 if last else 1
    assert contacts.rigid_contact_count.numpy()[0] == 2
    assert shapes == [[first + 1, first + 3], [first, first + 2]]
    solver = SolverFeatherstone(model, evaluator="general")
    for _ in range(100):
        solver.step(state, state, None, None, 1.0 / 100.0)
    rest = state.body_q.numpy()[first : first + 2, 2]
    np.testing.assert_allclose(rest, heights + RADIUS, rtol=0, atol=1.0e-3)


def pendulum(before: int, after: int) -> ModelBuilder:
    """Two links with a ball each; so many shapes that do not collide follow each ball."""
    builder = ModelBuilder()
    one, two = (builder.add_link(mass=1.0, inertia=0.01 * np.eye(3)) for _ in range(2))
    hinge = dict(axis=(0, 1, 0), parent_xform=(0.5, 0, 0, 0, 0, 0, 1))
    builder.add_articulation([builder.add_joint_free(one), builder.add_joint_revolute(one, two, **hinge)])
    for link, count in ((one, before), (two, after)):
        builder.add_shape_sphere(link, radius=RADIUS)
        for _ in range(count):
            builder.add_shape_sphere(link, radius=0.02, cfg=UNSEEN)
    return builder


def test_lists_of_contacts_act_on_their_bodies_in_worlds_that_differ_in_shapes_that_do_not_collide(rng):
    builder = ModelBuilder()
    for counts in ((0, 0), (2, 1), (1, 2), (0, 3)):
        builder.add_world(pendulum(*counts))
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    state = model.state()
    q, v = state.joint_q.numpy().reshape(4, -1), 0.1 * rng.normal(size=(4, 7))
    q[:, 2] = RADIUS - rng.uniform(0.0, 0.005, 4)
    state.joint_q.assign(q.ravel())
    state.joint_qd.assign(v.ravel())
    eval_fk(model, state.joint_q, state.joint_qd, state)
    contacts = model.contacts()
    collide(model, state, contacts)
    assert contacts.rigid_contact_count.numpy()[0] == 8
    after, forces = [], []
    for given in (None, contacts):
        solver, end = SolverFeatherstone(model, evaluator="general", iterations=200), model.state()
        solver.step(state, end, None, given, 1.0 / 240.0)
        after.append(end.joint_qd.numpy())
        forces.append(solver.contact_forces().numpy())
    scale = np.abs(forces[0]).max()
    assert scale > 1.0
    # a step finds contacts half a step later
    np.testing.assert_allclose(after[1], after[0], rtol=0, atol=5.0e-3)
    np.testing.assert_allclose(forces[1], forces[0], rtol=0, atol=0.02 * scale)


def tumbling(filtered: list[bool], q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Velocities after some steps of two hinged bouncing boxes in each world; chosen worlds filter the second box with the ground."""
    whole, one, cfg = ModelBuilder(), ModelBuilder(), ShapeConfig(restitution=0.5, density=500.0)
    first, second = one.add_link(), one.add_link()
    hinge = dict(axis=(0, 1, 0), parent_xform=(0.3, 0, 0, 0, 0, 0, 1))
    one.add_articulation([one.add_joint_free(first), one.add_joint_revolute(first, second, **hinge)])
    one.add_shape_box(first, hx=0.1, hy=0.1, hz=0.1, cfg=cfg)
    one.add_shape_box(second, xform=(0.3, 0, 0, 0, 0, 0, 1), hx=0.1, hy=0.1, hz=0.1, cfg=cfg)
    whole.replicate(one, len(filtered))
    ground = whole.add_ground_plane(cfg=ShapeConfig(restitution=0.5))
    for w in np.flatnonzero(filtered).tolist():
        whole.shape_collision_filter_pairs.append((2 * w + 1, ground))
    model = whole.finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    state.joint_q.assign(q.ravel())
    state.joint_qd.assign(v.ravel())
    for _ in range(20):
        solver.step(state, state, None, None, 1.0 / 240.0)
    return state.joint_qd.numpy().reshape(len(q), -1)


def test_worlds_have_the_same_bits_beside_worlds_that_filter_less(rng):
    count = 32
    q, v = np.zeros((count, 8)), np.zeros((count, 7))
    q[:, 6] = 1.0
    q[:, 2], q[:, 7] = 0.1 - 0.02 * rng.random(count), 0.3 * rng.random(count)
    v[:, :2], v[:, 2], v[:, 6] = 0.2 * rng.normal(size=(count, 2)), -rng.random(count), 20.0 * rng.random(count)
    filtered = rng.random(count) < 0.5
    all_filtered, some = tumbling([True] * count, q, v), tumbling(filtered.tolist(), q, v)
    assert 4 < filtered.sum() < count - 4
    assert np.array_equal(all_filtered[filtered], some[filtered])
    assert (all_filtered[~filtered] != some[~filtered]).any()


def wedged(kinematic: list[bool], q: np.ndarray) -> np.ndarray:
    """Velocities after some steps of four boxes deep in each other and in two fixed ones in each world; some last ones are kinematic."""
    whole = ModelBuilder()
    for each in kinematic:
        one = ModelBuilder()
        for k in range(4):
            one.add_shape_box(one.add_body(is_kinematic=k == 3 and each), hx=0.12, hy=0.1, hz=0.08)
        for x in (-0.2, 0.2):
            one.add_shape_box(-1, xform=(x, 0, 0, 0, 0, 0, 1), hx=0.15, hy=0.3, hz=0.3)
        whole.add_world(one)
    model = whole.finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    state.joint_q.assign(q.ravel())
    eval_fk(model, state.joint_q, state.joint_qd, state)
    for _ in range(3):
        solver.step(state, state, None, None, 1.0 / 240.0)
    return state.joint_qd.numpy().reshape(len(q), -1)


def test_worlds_have_the_same_bits_beside_worlds_with_kinematic_bodies(rng):
    count = 256
    q = np.zeros((count, 4, 7))
    q[..., :3] = rng.uniform(-0.03, 0.03, (count, 4, 3))
    q[..., 3:] = Rotation.random(4 * count, random_state=int(rng.integers(2**31))).as_quat().reshape(count, 4, 4)
    kinematic = rng.random(count) < 0.5
    none, some = wedged([False] * count, q), wedged(kinematic.tolist(), q)
    assert np.array_equal(none[~kinematic], some[~kinematic])
    assert (some[kinematic, 18:] == 0.0).all()
    assert np.isfinite(some).all()


def whirling(rules: list[int], start: np.ndarray) -> np.ndarray:
    """Velocities after some steps of a fast box in the ground in each world, whose shape states some of MuJoCo's settings."""
    whole = ModelBuilder()
    SolverFeatherstone.register_custom_attributes(whole)
    for each in rules:
        one = ModelBuilder()
        SolverFeatherstone.register_custom_attributes(one)
        settings = {"mujoco:contact_rules": each}
        body = one.add_body(xform=(0, 0, 0.08, 0, 0, 0, 1))
        one.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, custom_attributes=settings)
        whole.add_world(one)
    whole.add_ground_plane()
    model = whole.finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    state.joint_qd.assign(np.tile(start, len(rules)))
    for _ in range(20):
        solver.step(state, state, None, None, 1.0 / 240.0)
    return state.joint_qd.numpy().reshape(len(rules), -1)


@pytest.mark.slow
def test_worlds_have_the_same_bits_beside_worlds_with_settings_of_mujoco(rng):
    start = np.array([0.0, 0.0, 0.0, *(rng.uniform(30.0, 60.0) * random_unit(rng))])
    plain = whirling([0, 0], start)
    for rules in (1, 2, 3):
        found = whirling([0, rules], start)
        assert np.array_equal(found[0], plain[0])
        assert not np.array_equal(found[1], plain[1]) or rules == 1
