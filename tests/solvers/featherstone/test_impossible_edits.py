"""Edits that make no body, no shape or another structure are refused by name."""

import numpy as np
import pytest
import warp as wp

from newton_like import Mesh, ModelBuilder, ModelFlags, dynamics
from newton_like.model.editing.edit_checks import check_masses
from newton_like.model.editing.edits import edits_of
from newton_like.solvers import SolverFeatherstone
from newton_like.types import GeoType


def toys():
    """A box and a tetrahedron over a finite plane."""
    builder = ModelBuilder()
    box = builder.add_body(xform=(0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0), mass=1.0, inertia=0.1 * np.eye(3), label="box")
    builder.add_shape_box(box, hx=0.1, hy=0.1, hz=0.1, label="cube")
    solid = builder.add_body(
        xform=(2.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0), mass=1.0, inertia=0.1 * np.eye(3), label="stone"
    )
    corners = 0.1 * np.vstack([np.zeros(3), np.eye(3)])
    builder.add_shape_convex_hull(solid, mesh=Mesh(corners, [0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2]), label="rock")
    builder.add_shape_plane(width=20.0, length=20.0, label="floor")
    return builder.finalize("cpu")


@pytest.mark.parametrize("flag", [ModelFlags.SHAPE_PROPERTIES, ModelFlags.SHAPE_TYPE_AND_SOURCE, ModelFlags.ALL])
def test_types_of_shapes_are_looked_at_by_all_notices_of_shapes(flag):
    """Unknown ones are refused, others act: a sphere lies as high as its radius."""
    model = toys()
    s = model.shape_label.index("cube")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    types = model.shape_type.numpy()
    before = types[s]
    types[s] = 99
    with pytest.raises(ValueError, match=rf"shape 'cube' \(index {s}\): shape_type\["):
        solver.notify_model_changed(flag)
    types[s] = before
    solver.notify_model_changed(flag)
    solver.step(state, state)
    stepper = solver._steppers[0]
    tables = stepper.tables
    types[s] = int(GeoType.SPHERE)
    solver.notify_model_changed(flag)
    assert solver._steppers[0].tables is not tables


@pytest.mark.parametrize("varying", [False, True])
@pytest.mark.parametrize(
    ("shape", "name", "bad"),
    [
        ("cube", "shape_scale", (0.1, -0.1, 0.1)),
        ("cube", "shape_scale", (0.1, np.inf, 0.1)),
        ("floor", "shape_scale", (-1.0, 20.0, 0.0)),
        ("rock", "shape_scale", (2.0, 2.0, 2.0)),
        ("cube", "shape_type", 99),
        ("cube", "shape_type", -3),
        ("cube", "shape_type", int(GeoType.MESH)),
        ("cube", "shape_type", int(GeoType.HFIELD)),
    ],
)
def test_shapes_that_cannot_be_are_refused_by_name(shape, name, bad, varying):
    """By the notice, by each step and by a new solver, until the array is mended; the notice of its own flag is enough."""
    model = toys()
    s = model.shape_label.index(shape)
    solver = SolverFeatherstone(model, evaluator="general", varying=["shape_scale"] if varying else ())
    state, array = model.state(), getattr(model, name)
    sound, numbers = wp.clone(array), array.numpy().copy()
    numbers[s] = bad
    array.assign(numbers)
    flag = ModelFlags.SHAPE_PROPERTIES if name == "shape_scale" else ModelFlags.SHAPE_TYPE_AND_SOURCE
    for call in [
        lambda: solver.notify_model_changed(flag),
        lambda: solver.step(state, state),
        lambda: SolverFeatherstone(model, evaluator="general"),
    ]:
        with pytest.raises(ValueError, match=rf"shape '{shape}' \(index {s}\): {name}\["):
            call()
    wp.copy(array, sound)
    solver.notify_model_changed()
    solver.step(state, state)
    assert np.isfinite(state.joint_q.numpy()).all()


@pytest.mark.slow
def test_a_shape_that_was_enlarged_touches_others(rng):
    """Its bounding sphere grows, though ``shape_collision_radius`` is as it was: two balls push each other apart."""
    builder = ModelBuilder(gravity=0.0)
    for x in (0.0, 1.0):
        body = builder.add_body(xform=(x, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), mass=1.0, inertia=0.1 * np.eye(3))
        builder.add_shape_sphere(body, radius=0.1)
    model = builder.finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    solver.step(state, state)
    radius = rng.uniform(0.55, 0.6)
    scale = model.shape_scale.numpy()
    scale[:, 0] = radius
    model.shape_scale.assign(scale)
    solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    for _ in range(400):
        solver.step(state, state)
    places = state.body_q.numpy()[:, 0]
    assert places[1] - places[0] > 2.0 * radius - 1e-3
    assert model.collide(state).rigid_contact_max > 0


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "not symmetric"),
        (np.diag([1.0, 1.0, 3.0]), "triangle inequality"),
        ([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "(negative|at least 0)"),
    ],
)
def test_inertias_that_no_body_has_are_refused_by_name(rng, bad, told):
    """In any axes, by the notice, by each step, by a new solver and by functions of the library."""
    model = toys()
    solver, state, sound = SolverFeatherstone(model, evaluator="general"), model.state(), wp.clone(model.body_inertia)
    turn, numbers = np.linalg.qr(rng.normal(size=(3, 3)))[0], model.body_inertia.numpy().copy()
    numbers[1] = 0.1 * turn @ np.array(bad) @ turn.T
    model.body_inertia.assign(numbers)
    for call in [
        lambda: solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES),
        lambda: solver.step(state, state),
        lambda: SolverFeatherstone(model, evaluator="general"),
        lambda: dynamics.forward_dynamics(model, state),
    ]:
        with pytest.raises(ValueError, match=rf"body 'stone' \(index 1\): body_inertia .*{told}"):
            call()
    wp.copy(model.body_inertia, sound)
    solver.notify_model_changed()
    solver.step(state, state)


def test_plates_rods_and_points_are_possible(rng):
    """The largest moment of a plate is the sum of the others, and rods and points lack moments, in any axes and in float32."""
    model = toys()
    for moments in ([0.1, 0.2, 0.3], [0.0, 0.1, 0.1], [0.1, 0.1, 0.1], [1e-4, 1.0, 1.0001]):
        for _ in range(20):
            turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
            numbers = model.body_inertia.numpy().copy()
            numbers[:] = turn @ np.diag(moments) @ turn.T
            model.body_inertia.assign(numbers)
            model.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
            check_masses(model)
            assert edits_of(model).masses.numpy()[0] < 0


@pytest.mark.parametrize(
    ("name", "entity", "flag"),
    [
        ("joint_type", "joint", ModelFlags.JOINT_PROPERTIES),
        ("joint_parent", "joint", ModelFlags.JOINT_PROPERTIES),
        ("joint_child", "joint", ModelFlags.JOINT_PROPERTIES),
        ("shape_body", "shape", ModelFlags.SHAPE_PROPERTIES),
        ("joint_q_start", "joint", ModelFlags.ALL),
        ("joint_qd_start", "joint", ModelFlags.ALL),
        ("joint_dof_dim", "joint", ModelFlags.ALL),
        ("joint_articulation", "joint", ModelFlags.ALL),
        ("articulation_start", "articulation", ModelFlags.ALL),
    ],
)
def test_the_structure_of_a_model_is_fixed(name, entity, flag):
    """An edit is refused by name, and nothing of it is noted."""
    model = toys()
    solver, state, version = SolverFeatherstone(model, evaluator="general"), model.state(), model.version
    array = getattr(model, name)
    sound, numbers = wp.clone(array), array.numpy().copy()
    numbers[1] = numbers[1] - 1
    array.assign(numbers)
    with pytest.raises(ValueError, match=rf"{entity} '.*' \(index 1\): {name} was .* at finalize.*builder"):
        solver.notify_model_changed(flag)
    assert model.version == version
    wp.copy(array, sound)
    solver.notify_model_changed(flag)
    solver.step(state, state)
