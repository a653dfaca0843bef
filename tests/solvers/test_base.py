"""Reset of worlds: by masks and indices of any library, to given states."""

import copy
import itertools

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like import ModelBuilder, dynamics, eval_fk
from newton_like.solvers import SolverBase, SolverFeatherstone, SolverXPBD
from tests.support.mechanisms import quadruped, worlds_of
from tests.support.tensor import Tensor

WORLDS = 6


@pytest.fixture(scope="module")
def solver():
    return SolverFeatherstone(worlds_of(quadruped(), WORLDS).finalize("cpu"), unsupported_contacts="ignore")


MASKS = {
    "list": lambda mask: mask.tolist(),
    "numpy": lambda mask: mask,
    "bytes": lambda mask: mask.astype(np.uint8),
    "warp": lambda mask: wp.array(mask, dtype=wp.bool, device="cpu"),
    "tensor": Tensor,
}
INDICES = {
    "list": lambda indices: indices.tolist(),
    "numpy": lambda indices: indices,
    "bytes": lambda indices: indices.astype(np.uint8),
    "warp": lambda indices: wp.array(indices, dtype=wp.int32, device="cpu"),
    "tensor": Tensor,
}
NUMBERS = {
    "list": lambda numbers: numbers.tolist(),
    "numpy": lambda numbers: numbers.astype(np.float64),
    "warp": lambda numbers: wp.array(numbers, dtype=wp.float32, device="cpu"),
    "warp float64": lambda numbers: wp.array(numbers, dtype=wp.float64, device="cpu"),
    "tensor": Tensor,
}


def drawn(model, rng):
    """Coordinates and velocities of all worlds, ``[world, n]``; quaternions are unit."""
    q = rng.normal(size=(WORLDS, model.joint_coord_count // WORLDS)).astype(np.float32)
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return q, rng.normal(size=(WORLDS, model.joint_dof_count // WORLDS)).astype(np.float32)


def disturbed(model, rng):
    state = model.state()
    for name in ("joint_q", "joint_qd", "body_q", "body_qd", "body_f"):
        array = getattr(state, name)
        array.assign(rng.normal(size=array.numpy().shape).astype(np.float32))
    return state


def rows(array):
    return array.numpy().reshape(WORLDS, -1)


def check(model, state, before, chosen, q, qd):
    """Chosen worlds have these coordinates, and poses that follow from them; the others are as they were."""
    wanted = model.state()
    wanted.joint_q, wanted.joint_qd = q.ravel(), qd.ravel()
    eval_fk(model, wanted.joint_q, wanted.joint_qd, wanted)
    for name in ("joint_q", "joint_qd", "body_q", "body_qd", "body_f"):
        got, old, new = (rows(getattr(s, name)) for s in (state, before, wanted))
        assert got[chosen].tobytes() == new[chosen].tobytes(), name
        assert got[~chosen].tobytes() == old[~chosen].tobytes(), name


@pytest.mark.parametrize("kind", MASKS)
def test_masks_choose_worlds(solver, rng, kind):
    model, chosen = solver.model, rng.random(WORLDS) < 0.5
    state = disturbed(model, rng)
    before = state.clone()
    solver.reset(state, MASKS[kind](chosen))
    check(model, state, before, chosen, rows(model.joint_q), rows(model.joint_qd))


@pytest.mark.parametrize("kind", INDICES)
def test_indices_choose_worlds(solver, rng, kind):
    """Any number of them, so also all, in any order."""
    model = solver.model
    for count in (0, 1, 3, WORLDS):
        indices = rng.permutation(WORLDS)[:count]
        chosen = np.isin(np.arange(WORLDS), indices)
        state = disturbed(model, rng)
        before = state.clone()
        solver.reset(state, INDICES[kind](indices))
        check(model, state, before, chosen, rows(model.joint_q), rows(model.joint_qd))


@pytest.mark.parametrize("kind", NUMBERS)
def test_states_may_be_given(solver, rng, kind):
    model, give = solver.model, NUMBERS[kind]
    q, qd = drawn(model, rng)
    chosen, indices = rng.random(WORLDS) < 0.5, rng.permutation(WORLDS)[:4]
    of_indices = np.isin(np.arange(WORLDS), indices)
    for worlds, given_q, given_qd, where in (
        (None, q.ravel(), qd, np.ones(WORLDS, bool)),
        (chosen, q, qd.ravel(), chosen),
        (indices, q[indices], qd[indices], of_indices),
        (indices, q.ravel(), qd.ravel(), of_indices),
        (indices[::-1].copy(), q[indices[::-1]], qd[indices[::-1]], of_indices),
    ):
        state = disturbed(model, rng)
        before = state.clone()
        solver.reset(state, worlds, give(given_q), give(given_qd))
        check(model, state, before, where, q, qd)


@pytest.mark.parametrize("numbers", NUMBERS)
def test_one_row_holds_for_all_chosen_worlds(solver, rng, numbers):
    model, give = solver.model, NUMBERS[numbers]
    q, qd = (np.tile(values[:1], (WORLDS, 1)) for values in drawn(model, rng))
    chosen = np.arange(WORLDS) % 2 == 0
    for worlds, where in ((None, np.ones(WORLDS, bool)), (chosen, chosen), (np.flatnonzero(chosen)[::-1], chosen)):
        state = disturbed(model, rng)
        before = state.clone()
        solver.reset(state, worlds, give(q[0]), give(qd[0]))
        check(model, state, before, where, q, qd)
    zero = q[0].copy()
    zero[3:7] = 0.0
    with pytest.raises(ValueError, match="quaternion"):
        solver.reset(state, [1], give(zero))
    with pytest.raises(ValueError, match="joint_q"):
        solver.reset(state, [1], give(q[0, 1:]))


def test_one_of_both_may_be_given(solver, rng):
    model = solver.model
    q, _ = drawn(model, rng)
    state = disturbed(model, rng)
    solver.reset(state, joint_q=q)
    check(model, state, state.clone(), np.ones(WORLDS, bool), q, rows(model.joint_qd))


def test_a_scene_without_worlds_is_one(rng):
    model = quadruped().finalize("cpu")
    solver, state = SolverFeatherstone(model, unsupported_contacts="ignore"), model.state()
    q = rng.normal(size=(1, model.joint_coord_count)).astype(np.float32)
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1)
    solver.reset(state, [0], q)
    assert state.joint_q.numpy().tobytes() == q.tobytes()


def test_a_reset_normalises_quaternions_from_the_host(rng):
    """Whole states and rows for indices; poses are those that the coordinates had before, too."""
    model = worlds_of(quadruped(), WORLDS).finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general", unsupported_contacts="ignore"), model.state()
    q = rng.normal(size=(WORLDS, model.joint_coord_count // WORLDS))
    unit = q.copy()
    unit[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    for chosen, given in ((None, q), (None, q.ravel()), (np.arange(WORLDS)[::-1], q[::-1])):
        solver.reset(state)
        solver.reset(state, chosen, given)
        np.testing.assert_allclose(state.joint_q.numpy().reshape(q.shape), unit, rtol=2e-7)
        fresh = model.state()
        eval_fk(model, wp.array(q.ravel(), dtype=model.dtype, device="cpu"), fresh.joint_qd, fresh)
        np.testing.assert_allclose(state.body_q.numpy(), fresh.body_q.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        (([True, False],), ValueError, f"world_mask.*2.*{WORLDS}"),
        (([WORLDS],), IndexError, f"world {WORLDS} "),
        (([-1],), IndexError, "world -1 "),
        (([2, 2],), ValueError, "world_mask.*index 2 .*bool"),
        (([1, 0, 1, 0, 0, 0],), ValueError, f"world_mask.*index 1 .*{WORLDS} bools"),
        (([0.5] * WORLDS,), TypeError, "world_mask"),
        (("all",), TypeError, "world_mask.*'all'"),
        ((None, np.zeros(3)), ValueError, r"joint_q .*\(3,\)"),
        (([1, 3], np.zeros((3, 19))), ValueError, r"joint_q .*\(3, 19\).*\(2, 19\)"),
        ((None, None, "fast"), TypeError, "joint_qd.*'fast'"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(solver, arguments, error, named):
    state = solver.model.state()
    with pytest.raises(error, match=named):
        solver.reset(state, *arguments)


@pytest.mark.parametrize("call", ["check", "reset"])
def test_states_of_other_models_are_refused_by_name(solver, call):
    """Kernels would read and write behind the ends of their arrays."""
    call = getattr(solver, call)
    smaller = worlds_of(quadruped(), WORLDS - 1).finalize("cpu").state()
    wider = worlds_of(quadruped(), WORLDS).finalize("cpu", dtype=wp.float64).state()
    with pytest.raises(ValueError, match=r"state\.joint_q "):
        call(smaller)
    with pytest.raises(TypeError, match=r"state\.joint_q .*float64"):
        call(wider)
    with pytest.raises(TypeError, match=r"state .*NoneType"):
        call(None)


@pytest.mark.parametrize("name", ["body_q", "body_qd", "body_f"])
def test_a_reset_looks_at_all_arrays_before_it_writes_one(solver, rng, name):
    state = disturbed(solver.model, rng)
    vars(state)[name] = getattr(worlds_of(quadruped(), WORLDS - 1).finalize("cpu").state(), name)
    before = state.clone()
    with pytest.raises(ValueError, match=rf"state\.{name} "):
        solver.reset(state)
    for each in ("joint_q", "joint_qd"):
        np.testing.assert_array_equal(getattr(state, each).numpy(), getattr(before, each).numpy())


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_numbers_from_the_host_are_finite_in_the_worlds_that_are_chosen(solver, rng, number):
    q, qd = drawn(solver.model, rng)
    world = int(rng.integers(WORLDS))
    others = np.delete(np.arange(WORLDS), world)
    for name, values in (("joint_q", q), ("joint_qd", qd)):
        place = (world, int(rng.integers(values.shape[1])))
        values[place] = number
        state = solver.model.state()
        with pytest.raises(
            ValueError, match=rf"{name} holds {number} at index {np.ravel_multi_index(place, values.shape)},"
        ):
            solver.reset(state, None, **{name: values})
        with pytest.raises(ValueError, match=rf"{name} holds {number}"):
            solver.reset(state, [world], **{name: values[[world]]})
        solver.reset(state, np.arange(WORLDS) != world, **{name: values})
        solver.reset(state, others, **{name: values[others]})
        solver.reset(state, others, **{name: values.ravel()})
        np.testing.assert_array_equal(rows(getattr(state, name))[others], values[others])


def test_forces_may_be_plain_numbers(solver, rng):
    state = disturbed(solver.model, rng)
    state.body_f = wp.array(state.body_f.numpy(), dtype=wp.float32, device="cpu")
    solver.reset(state, [1])
    assert not rows(state.body_f)[1].any() and rows(state.body_f)[0].all()


@pytest.mark.slow
def test_rows_of_worlds_that_differ_are_refused():
    scene = ModelBuilder()
    scene.add_world(quadruped())
    scene.add_world(ModelBuilder())
    solver = SolverFeatherstone(scene.finalize("cpu"), unsupported_contacts="ignore")
    with pytest.raises(ValueError, match=r"worlds.*alike"):
        solver.reset(solver.model.state(), [0], np.zeros((1, solver.model.joint_coord_count)))


@pytest.mark.parametrize("evaluator", ["general", "specialised"])
@pytest.mark.parametrize(("value", "name"), [(-1.0, "body_mass"), (np.nan, "body_mass"), (-1.0, "body_inertia")])
def test_a_new_solver_refuses_unsound_masses(rng, evaluator, value, name):
    """Edited after `finalize`, without notice; a function of the library refuses them after the notice, each time."""
    model = worlds_of(quadruped(), 2).finalize("cpu")
    array = getattr(model, name)
    numbers = array.numpy().copy()
    body = int(rng.integers(model.body_count))
    numbers[body] *= value
    sound = wp.clone(array)
    array.assign(numbers)
    with pytest.raises(ValueError, match=rf"index {body}\b.*{name}"):
        SolverFeatherstone(model, evaluator=evaluator)
    model.notify_changed()
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"index {body}\b.*{name}"):
            dynamics.mass_matrix(model, model.state())
    wp.copy(array, sound)
    model.notify_changed()
    assert np.isfinite(dynamics.mass_matrix(model, model.state()).numpy()).all()


def test_options_of_newton_without_effect_are_accepted():
    model = one_body().finalize("cpu")
    options = {"use_tile_gemm": True, "fuse_cholesky": False, "friction_smoothing": 0.5, "deterministic": None}
    made = SolverFeatherstone(model, update_mass_matrix_interval=1, **options)
    assert isinstance(made, SolverBase)
    assert made.device == model.device
    with pytest.raises(ValueError, match="update_mass_matrix_interval=4"):
        SolverFeatherstone(model, update_mass_matrix_interval=4)
    with pytest.raises(TypeError, match=r"'iteration'.*'iterations'"):
        SolverFeatherstone(model, iteration=4)


def one_body() -> ModelBuilder:
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    return builder


def test_a_reset_of_something_else_than_a_state_is_refused(solver):
    for wrong in (solver.model, solver.model.control()):
        with pytest.raises(TypeError, match=rf"\bstate\b.*\bState\b.*{type(wrong).__name__}"):
            solver.reset(wrong)


def test_unknown_attributes_of_a_solver_are_refused():
    """A typo of a setting has no effect otherwise. Subclasses may have attributes of their own."""
    model = one_body().finalize("cpu")
    solver = SolverFeatherstone(model, evaluator="general")
    with pytest.raises(AttributeError, match=r"SolverFeatherstone.*'iteration'.*'iterations'"):
        solver.iteration = 3
    solver.iterations = 3
    state = model.state()
    solver.step(state, state)

    class Own(SolverFeatherstone):
        def __init__(self, model):
            super().__init__(model)
            self.gain = 2.0

    own = Own(model)
    own.gain, own.more = 3.0, 1
    assert (own.gain, own.more, solver.iterations) == (3.0, 1, 3)


def test_a_deep_copy_of_a_model_is_a_separate_model(solver, rng):
    """It moves as the original does, and keeps its numbers when the original is edited. Copies of states and contacts have own arrays."""
    robot = quadruped()
    SolverFeatherstone.register_custom_attributes(robot)
    model = worlds_of(robot, 2).finalize("cpu")
    model.joint_q.assign(model.joint_q.numpy() + rng.normal(size=model.joint_coord_count) * 1e-2)
    twin = copy.deepcopy(model)
    assert model.mujoco is not twin.mujoco
    masses = model.body_mass.numpy().copy()
    for one, other in ((model, twin), (model.mujoco, twin.mujoco)):
        for name, array in vars(one).items():
            if isinstance(array, wp.array) and array.size:
                assert array.ptr != vars(other)[name].ptr, name
    states = [m.state() for m in (model, twin)]
    solvers = [SolverFeatherstone(m, evaluator="general") for m in (model, twin)]
    for state, own in zip(states, solvers, strict=True):
        own.step(state, state, dt=0.004)
    assert np.array_equal(states[0].joint_q.numpy(), states[1].joint_q.numpy())
    model.body_mass.assign(2.0 * masses)
    solvers[0].notify_model_changed()
    assert np.array_equal(twin.body_mass.numpy(), masses)
    kept, contacts = copy.deepcopy(states[1]), copy.deepcopy(twin.contacts())
    solvers[1].step(states[1], states[1], dt=0.004)
    assert not np.array_equal(kept.joint_q.numpy(), states[1].joint_q.numpy())
    solvers[1].step(kept, kept, dt=0.004)
    # the solver begins with the impulses of the step before
    np.testing.assert_allclose(kept.joint_q.numpy(), states[1].joint_q.numpy(), atol=1e-4)
    twin.collide(kept, contacts)
    with pytest.raises(TypeError, match=r"SolverFeatherstone cannot be copied.*copy\.deepcopy\(model\)"):
        copy.deepcopy(solver)


def test_a_filter_that_is_added_to_a_copy_leaves_the_original_alone():
    builder = nl.ModelBuilder()
    for i in range(2):
        builder.add_shape_sphere(builder.add_body(xform=(0.15 * i, 0, 0, 0, 0, 0, 1)), radius=0.1)
    model = builder.finalize("cpu")
    twin = copy.deepcopy(model)
    twin.shape_collision_filter_pairs.add((0, 1))
    for one, count in ((model, 1), (twin, 0)):
        assert one.collide(one.state()).rigid_contact_count.numpy()[0] == count


@pytest.mark.parametrize("order", itertools.permutations(range(3)))
def test_states_and_contacts_that_are_copied_with_their_model_belong_to_the_copy(order):
    model = one_body().finalize("cpu")
    originals = (model, model.state(), model.contacts())
    copies = dict(zip(order, copy.deepcopy([originals[i] for i in order]), strict=True))
    copies[0].collide(copies[1], copies[2])
    assert copies[1].made_by is copies[0].made_by
    with pytest.raises(ValueError, match="another model"):
        model.collide(originals[1], copies[2])


@pytest.mark.parametrize("make", [SolverFeatherstone, SolverXPBD])
def test_a_time_step_is_a_positive_number_of_seconds(make):
    model = one_body().finalize("cpu")
    solver, state = make(model), model.state()
    for wrong, error in (
        (True, TypeError),
        (np.True_, TypeError),
        ("1", TypeError),
        (0, ValueError),
        (-1e-3, ValueError),
    ):
        with pytest.raises(error, match=r"\bdt\b"):
            solver.step(state, state, dt=wrong)
    for right in (0.004, np.float32(0.004), np.array(0.004), 1):
        solver.step(state, state, dt=right)


def test_the_model_of_a_solver_stays(solver):
    model = solver.model
    for other in (one_body().finalize("cpu"), "x", None):
        with pytest.raises(AttributeError, match=r"\bmodel\b"):
            solver.model = other
    assert solver.model is model


@pytest.mark.parametrize("whole", [False, True])
def test_quaternions_of_chosen_worlds_are_not_zero(solver, rng, whole):
    """Worlds that are not chosen may have any numbers."""
    model = solver.model
    state, q = model.state(), model.joint_q.numpy().reshape(model.world_count, -1).copy()
    world = int(rng.integers(model.world_count))
    q[world] = 0.0
    others = np.delete(np.arange(model.world_count), world)
    with pytest.raises(ValueError, match=r"joint_q.*quaternion.*joint '"):
        solver.reset(state, None, q)
    if whole:
        solver.reset(state, np.arange(model.world_count) != world, q.ravel())
    else:
        solver.reset(state, others, q[others])
        with pytest.raises(ValueError, match=r"joint_q.*quaternion.*joint '"):
            solver.reset(state, [world], q[[world]])


def test_quaternions_of_warp_arrays_are_not_zero(solver, rng):
    """Also those of the model; worlds that are not chosen may have any numbers."""
    model = solver.model
    sound = model.joint_q.numpy().copy()
    state, q = model.state(), sound.reshape(model.world_count, -1).copy()
    world = int(rng.integers(model.world_count))
    q[world] = 0.0
    given = wp.array(q.ravel(), dtype=model.dtype, device="cpu")
    before = state.joint_q.numpy().tobytes()
    with pytest.raises(ValueError, match=r"joint_q.*quaternion.*joint '"):
        solver.reset(state, None, given)
    with pytest.raises(ValueError, match=r"joint_q.*quaternion.*joint '"):
        solver.reset(state, [world], wp.array(q[[world]], dtype=model.dtype, device="cpu"))
    assert state.joint_q.numpy().tobytes() == before
    others = np.arange(model.world_count) != world
    solver.reset(state, others, given)
    try:
        model.joint_q.assign(q.ravel())
        with pytest.raises(ValueError, match=r"joint_q.*quaternion.*joint '"):
            solver.reset(state)
        solver.reset(state, others)
        # a turn by 180 degrees has w = 0
        q[world] = sound.reshape(q.shape)[world]
        q[world, 3:7] = (0.0, 1.0, 0.0, 0.0)
        model.joint_q.assign(q.ravel())
        solver.reset(state)
        assert state.joint_q.numpy().tobytes() == q.astype(np.float32).tobytes()
    finally:
        model.joint_q.assign(sound)


def test_a_reset_in_a_capture_says_which_arrays_it_needs(solver):
    """Warp arrays on the device."""
    model = solver.model
    state, mask = model.state(), wp.ones(model.world_count, dtype=wp.bool, device="cpu")
    for arguments, words in (
        ((None,), r"mask .*wp\.bool"),
        ((mask, model.joint_q.numpy()), "joint_q .*Warp array of float32"),
        ((mask, None, model.joint_qd.numpy()), "joint_qd .*Warp array of float32"),
    ):
        with pytest.raises(RuntimeError, match=words), wp.ScopedCapture("cpu"):
            solver.reset(state, *arguments)
