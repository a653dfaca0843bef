"""Gradients through views: getters and setters are linear maps, whose adjoints are checked with random covectors."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like.selection import ArticulationView
from tests.selection.test_differing_worlds import chain

LAYOUTS = {
    "regular": ("AAA", {}),
    "gaps": ("AAA", {"exclude_joints": "joint_1", "exclude_links": "link_1"}),
    "sparse": ("ABBAA", {"homogeneous": False}),
}
ARRAYS = ("joint_q", "joint_qd", "body_q")


@pytest.fixture(params=LAYOUTS)
def scene(request):
    """A model, and a view of some of its robots."""
    order, options = LAYOUTS[request.param]
    robots = {"A": chain("robot", ["revolute", "ball"], []), "B": chain("other", ["revolute"], [])}
    scene = nl.ModelBuilder()
    for name in order:
        scene.add_world(robots[name])
    model = scene.finalize("cpu", dtype=wp.float64)
    return model, ArticulationView(model, "robot", **options)


def random(rng, array: wp.array, requires_grad: bool = False) -> wp.array:
    shape = (*array.shape, *getattr(array.dtype, "_shape_", ()))
    return wp.array(rng.normal(size=shape), dtype=array.dtype, device="cpu", requires_grad=requires_grad)


def rows_of(model, view, name: str) -> np.ndarray:
    """Rows of the flat array, as the view reads them."""
    frequency = {"joint_q": "JOINT_COORD", "joint_qd": "JOINT_DOF", "body_q": "BODY"}[name]
    return view.frequency_layouts[nl.Model.AttributeFrequency[frequency]].get_absolute_indices()


@pytest.mark.parametrize("name", ARRAYS)
def test_what_is_read_gives_its_gradient_to_the_rows(scene, rng, name):
    model, view = scene
    state = model.state(requires_grad=True)
    with wp.Tape() as tape:
        read = view.get_attribute(name, state)
    covector = random(rng, read)
    tape.backward(grads={read: covector})
    array = getattr(state, name)
    expected = np.zeros(array.numpy().shape)
    expected[rows_of(model, view, name)] = covector.numpy()
    np.testing.assert_array_equal(array.grad.numpy(), expected)
    tape.zero()
    tape.backward(grads={read: covector})
    np.testing.assert_array_equal(array.grad.numpy(), expected)


def test_root_poses_give_their_gradients_to_the_coordinates(scene, rng):
    model, view = scene
    state = model.state(requires_grad=True)
    with wp.Tape() as tape:
        poses, twists = view.get_root_transforms(state), view.get_root_velocities(state)
    covectors = {poses: random(rng, poses), twists: random(rng, twists)}
    tape.backward(grads=covectors)
    for array, start, covector in zip(
        (state.joint_q, state.joint_qd), (model.joint_q_start, model.joint_qd_start), covectors.values(), strict=True
    ):
        roots = model.articulation_start.numpy()[view.articulation_ids.numpy()]
        size = covector.numpy().shape[-1]
        expected = np.zeros(array.shape)
        expected[start.numpy()[roots][..., None] + np.arange(size)] = covector.numpy()
        np.testing.assert_array_equal(array.grad.numpy(), expected)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", ARRAYS)
def test_what_is_written_takes_the_gradient_of_the_rows(scene, rng, name, masked):
    """``y = P x + Q v`` for what was there, x, and the values, v, has the adjoints P' and Q'; tapes without it compute the same numbers."""
    model, view = scene
    state, plain = model.state(requires_grad=True), model.state()
    mask = np.array([True, False, True]) if masked else None
    values = random(rng, view.get_attribute(name, state), requires_grad=True)
    with wp.Tape() as tape:
        view.set_attribute(name, state, values, mask)
    view.set_attribute(name, plain, values.numpy(), mask)
    np.testing.assert_array_equal(getattr(state, name).numpy(), getattr(plain, name).numpy())
    covector = random(rng, getattr(state, name))
    tape.backward(grads={getattr(state, name): covector})
    rows, chosen = rows_of(model, view, name), np.ones(3, dtype=bool) if mask is None else mask
    expected = np.where(chosen.reshape(-1, *[1] * (values.numpy().ndim - 1)), covector.numpy()[rows], 0.0)
    np.testing.assert_array_equal(values.grad.numpy(), expected)
    rest = covector.numpy().copy()
    rest[rows[chosen]] = 0.0
    np.testing.assert_array_equal(getattr(state, name).grad.numpy(), rest)


def test_a_step_of_writing_reading_and_writing_is_the_product_of_its_maps(scene, rng):
    """Velocities of one state are written into another one and read back: the gradient arrives where they came from."""
    model, view = scene
    first, second = model.state(requires_grad=True), model.state(requires_grad=True)
    with wp.Tape() as tape:
        view.set_dof_velocities(second, view.get_dof_velocities(first))
        read = view.get_dof_velocities(second)
        view.set_dof_velocities(first, 0.0)
    covector = random(rng, read)
    tape.backward(grads={read: covector})
    expected = np.zeros(model.joint_dof_count)
    expected[rows_of(model, view, "joint_qd")] = covector.numpy()
    np.testing.assert_array_equal(first.joint_qd.grad.numpy(), expected)
    assert not second.joint_qd.grad.numpy().any()


def test_what_is_written_back_keeps_its_gradient(scene, rng):
    model, view = scene
    state = model.state(requires_grad=True)
    with wp.Tape() as tape:
        view.set_dof_positions(state, view.get_dof_positions(state))
    covector = random(rng, state.joint_q)
    tape.backward(grads={state.joint_q: covector})
    np.testing.assert_array_equal(state.joint_q.grad.numpy(), covector.numpy())


def test_values_with_a_gradient_need_an_array_with_one(scene, rng):
    model, view = scene
    state = model.state()
    values = random(rng, view.get_dof_positions(state), requires_grad=True)
    with wp.Tape(), pytest.raises(ValueError, match="requires_grad"):
        view.set_dof_positions(state, values)
    view.set_dof_positions(state, values)
    np.testing.assert_array_equal(view.get_dof_positions(state).numpy(), values.numpy())
