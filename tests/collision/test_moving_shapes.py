"""Contacts of bodies that loop joints connect to the world, and of bodies whose joints are disabled."""

import numpy as np
import pytest

from newton_like import ModelBuilder, ModelFlags
from newton_like.collision import collide
from newton_like.collision.crowds import CROWD
from newton_like.solvers import SolverXPBD


def add_boxes(builder, places, fixed: bool, **joint) -> None:
    """Cubes of 20 cm, each with a fixed joint to the world: as the joint of its tree, or as a loop joint."""
    for x in places:
        place = (*x, 0, 0, 0, 1)
        body = builder.add_link(xform=place) if fixed else builder.add_body(xform=place)
        builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
        own = builder.add_joint_fixed(-1, body, parent_xform=place, collision_filter_parent=False, **joint)
        if fixed:
            builder.add_articulation([own])


def pairs_found(model) -> set[tuple[int, int]]:
    contacts = model.contacts()
    collide(model, model.state(), contacts)
    n = int(contacts.rigid_contact_count.numpy()[0])
    shapes = (contacts.rigid_contact_shape0.numpy()[:n], contacts.rigid_contact_shape1.numpy()[:n])
    return {(min(pair), max(pair)) for pair in zip(*(x.tolist() for x in shapes), strict=True)}


@pytest.mark.parametrize("enabled", [True, False])
def test_free_bodies_with_loop_joints_to_the_world_touch_each_other(rng, enabled):
    x = rng.normal(size=3)
    builder = ModelBuilder()
    add_boxes(builder, (x, x + np.array([0.0, 0.0, 0.19])), fixed=False, enabled=enabled)
    assert pairs_found(builder.finalize("cpu")) == {(0, 1)}


@pytest.mark.parametrize("count", [2, pytest.param(CROWD + 2, marks=pytest.mark.slow)])
def test_bodies_whose_fixed_joints_are_disabled_touch_the_ground_and_each_other(rng, count):
    builder = ModelBuilder()
    ground = builder.add_ground_plane()
    far = [(10.0 + i, 0.0, 5.0) for i in range(count - 2)]
    add_boxes(builder, [(0.0, 0.0, 0.09), (0.0, rng.uniform(-0.05, 0.05), 0.28), *far], fixed=True)
    model = builder.finalize("cpu")
    touching = {(ground, ground + 1), (ground + 1, ground + 2)}
    assert not pairs_found(model)
    for enabled in (0, 1, 0):
        model.joint_enabled.fill_(enabled)
        model.notify_changed(ModelFlags.JOINT_PROPERTIES)
        assert pairs_found(model) == (set() if enabled else touching)


def test_a_world_with_a_disabled_joint_does_not_free_bodies_of_others(rng):
    builder, one = ModelBuilder(), ModelBuilder()
    add_boxes(one, [(0.0, 0.0, rng.uniform(0.083, 0.09)), (0.0, 0.0, 0.28)], fixed=True)
    builder.replicate(one, 3)
    ground = builder.add_ground_plane()
    model = builder.finalize("cpu")
    model.joint_enabled.assign([True, True, False, True, True, True])
    model.notify_changed(ModelFlags.JOINT_PROPERTIES)
    assert pairs_found(model) == {(2, ground), (2, 3)}


@pytest.mark.slow
def test_bodies_whose_fixed_joints_are_disabled_come_to_rest_on_the_ground(rng):
    builder = ModelBuilder()
    builder.add_ground_plane()
    add_boxes(builder, [(0.0, 0.0, rng.uniform(0.15, 0.3))], fixed=True)
    model = builder.finalize("cpu")
    solver, state = SolverXPBD(model), model.state()
    start = state.body_q.numpy()
    for enabled in (True, False):
        model.joint_enabled.fill_(enabled)
        solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
        for _ in range(240):
            solver.step(state, state, None, None, 1.0 / 240.0)
        if enabled:
            np.testing.assert_allclose(state.body_q.numpy(), start, rtol=0, atol=1.0e-6)
    np.testing.assert_allclose(state.body_q.numpy()[0, 2], 0.1, rtol=0, atol=1.0e-3)
