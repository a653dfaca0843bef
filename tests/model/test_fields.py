"""Attributes of models, states and controls: arrays of any library are taken, unknown names are not."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like.model.state import Control, State
from newton_like.solvers import SolverFeatherstone
from newton_like.types import ModelFlags
from tests.support.mechanisms import mechanism, same_robot
from tests.support.tensor import Tensor

STATE = ("joint_q", "joint_qd", "body_q", "body_qd", "body_f")
MODEL = ("body_mass", "body_inertia", "joint_axis", "joint_armature", "shape_scale", "gravity")


@pytest.fixture(scope="module")
def model():
    return same_robot(mechanism).finalize("cpu")


KINDS = {
    "list": lambda values: values.tolist(),
    "numpy float64": lambda values: values.astype(np.float64),
    "flat": lambda values: values.ravel(),
    "warp float64": lambda values: wp.array(values.astype(np.float64), dtype=wp.float64),
    "tensor": Tensor,
}


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_any_library_are_copied_into_the_array_that_is_there(model, rng, kind):
    owners = [(model.state(), STATE), (model.control(), Control._names), (same_robot(mechanism).finalize("cpu"), MODEL)]
    for owner, names in owners:
        for name in names:
            array = getattr(owner, name)
            values = rng.normal(size=array.numpy().shape).astype(np.float32)
            setattr(owner, name, KINDS[kind](values))
            assert getattr(owner, name) is array
            np.testing.assert_array_equal(array.numpy(), values)


def test_arrays_of_the_same_type_take_the_place_of_the_old_ones(model):
    state = model.state()
    other = wp.zeros_like(state.joint_q)
    state.joint_q = other
    assert state.joint_q is other
    poses = wp.zeros((model.body_count, 7), dtype=wp.float32, device="cpu")
    state.body_q = poses
    assert state.body_q is poses


@pytest.mark.parametrize(
    ("value", "error", "named"),
    [
        (np.zeros(3), ValueError, "(3,)"),
        ("zeros", TypeError, "'zeros'"),
        (object(), TypeError, "object"),
        ([None], TypeError, "list"),
        (np.zeros(7, complex), TypeError, "ndarray"),
        ([[1.0], [2.0, 3.0]], TypeError, "list"),
    ],
)
def test_what_is_no_array_of_that_size_is_refused_by_name(model, value, error, named):
    state = model.state()
    before = state.joint_q
    with pytest.raises(error) as caught:
        state.joint_q = value
    assert "State.joint_q" in str(caught.value) and named in str(caught.value)
    assert state.joint_q is before


@pytest.mark.parametrize("name", ["joint_qdd", "body_qdd", "body_parent_f"])
def test_arrays_that_nobody_requested_cannot_be_set(model, name):
    state = model.state()
    with pytest.raises(AttributeError, match=rf"State.*'{name}'.*request_state_attributes"):
        setattr(state, name, np.zeros(6))
    assert getattr(state, name) is None


@pytest.mark.parametrize("kind", [*KINDS, "vector"])
def test_three_numbers_are_the_gravity_of_all_worlds(kind):
    """Of one world, the builder of the model had others."""
    builder = nl.ModelBuilder()
    for size in range(4):
        builder.begin_world(gravity=-size)
        builder.add_body(mass=1.0, inertia=np.eye(3))
        builder.end_world()
    model = builder.finalize("cpu")
    array, values = model.gravity, np.array([0.5, -1.5, 2.0], dtype=np.float32)
    model.gravity = wp.vec3(*values) if kind == "vector" else KINDS[kind](values)
    assert model.gravity is array
    np.testing.assert_array_equal(array.numpy(), [values] * 4)
    model.gravity = KINDS.get(kind, np.asarray)(np.arange(12.0).reshape(4, 3))
    np.testing.assert_array_equal(model.gravity.numpy(), np.arange(12.0).reshape(4, 3))
    for wrong in (np.zeros(4), np.zeros((3, 3)), np.zeros(2), -9.81):
        with pytest.raises(ValueError, match=r"Model\.gravity.*\(4, 3\).*\(3,\)"):
            model.gravity = wrong
    # other arrays have no such rule
    with pytest.raises(ValueError, match=r"Model\.body_com.*\(3,\).*\(4, 3\)$"):
        model.body_com = np.zeros(3)


def test_arrays_with_gaps_are_refused_by_name(model):
    state = model.state()
    before = state.joint_q
    with pytest.raises(ValueError, match=r"State\.joint_q.*contiguous"):
        state.joint_q = wp.zeros(2 * len(before), dtype=before.dtype, device="cpu")[::2]
    assert state.joint_q is before


def test_whole_numbers_are_not_made_of_fractions():
    model = same_robot(mechanism).finalize("cpu")
    with pytest.raises(TypeError, match=r"Model\.joint_parent.*float"):
        model.joint_parent = np.full(model.joint_count, 0.5)


@pytest.mark.parametrize(
    ("owner", "name", "meant"),
    [
        ("control", "joint_targets_q", "joint_target_q"),
        ("control", "joint_target_pos", "joint_target_q"),
        ("state", "body_qddd", "body_qdd"),
        ("state", "q", None),
        ("model", "body_masses", "body_mass"),
        ("model", "world_counts", "world_count"),
    ],
)
def test_names_that_nothing_reads_are_refused(model, owner, name, meant):
    owner = model if owner == "model" else getattr(model, owner)()
    with pytest.raises(AttributeError) as caught:
        setattr(owner, name, 1.0)
    assert type(owner).__name__ in str(caught.value) and repr(name) in str(caught.value)
    assert meant is None or repr(meant) in str(caught.value)
    assert not hasattr(owner, name)


def test_states_may_be_made_by_hand(model):
    mine = State(*(getattr(model.state(), name) for name in STATE))
    assert mine.clone().joint_q.shape == mine.joint_q.shape


@pytest.mark.slow
def test_arguments_of_a_step_that_are_of_another_kind_are_refused_by_name(model):
    solver, state, dt = SolverFeatherstone(model, unsupported_contacts="ignore"), model.state(), 1.0 / 240.0
    for arguments, named in (
        ((state, state, dt), r"^control\b"),
        ((state, state, None, dt), r"^contacts\b"),
        ((model, state), r"^state_in\b"),
        ((state, None), r"^state_out\b"),
        ((state, state, state), r"^control\b"),
        ((state, state, None, None, "fast"), "dt"),
    ):
        with pytest.raises(TypeError, match=named):
            solver.step(*arguments)


def test_solvers_take_finished_models_only():
    with pytest.raises(TypeError, match=r"ModelBuilder.*finalize\(\)"):
        SolverFeatherstone(same_robot(mechanism))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("body_mass", -1.0),
        ("body_mass", np.nan),
        ("body_mass", np.inf),
        ("body_inertia", -np.eye(3)),
        ("body_inertia", np.nan),
    ],
)
def test_masses_that_no_body_has_are_refused_when_they_are_taken_over(rng, name, entry):
    model = same_robot(mechanism).finalize("cpu")
    solver, body = SolverFeatherstone(model, unsupported_contacts="ignore"), int(rng.integers(model.body_count))
    numbers = getattr(model, name).numpy()
    numbers[body] = entry
    setattr(model, name, numbers)
    with pytest.raises(ValueError, match=rf"\(index {body}\): {name} is"):
        solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)


@pytest.mark.parametrize("value", [np.zeros(3), "zeros", 5.0])
def test_an_array_that_was_left_out_comes_back_with_its_size(model, rng, value):
    for owner, name in ((model.control(), "joint_target_q"), (model.state(), "body_f")):
        array = getattr(owner, name)
        setattr(owner, name, None)
        with pytest.raises((ValueError, TypeError), match=f"{type(owner).__name__}.{name}"):
            setattr(owner, name, value)
        assert getattr(owner, name) is None
        values = rng.normal(size=array.numpy().shape).astype(np.float32)
        setattr(owner, name, values)
        assert isinstance(getattr(owner, name), wp.array)
        np.testing.assert_array_equal(getattr(owner, name).numpy(), values)


def test_a_model_needs_all_its_arrays(model):
    for name in MODEL:
        before = getattr(model, name)
        with pytest.raises(ValueError, match=rf"Model\.{name}\b.*array"):
            setattr(model, name, None)
        assert getattr(model, name) is before
