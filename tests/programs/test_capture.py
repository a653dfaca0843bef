"""Calls that Warp captures on a CPU: a graph repeats the calls on the arrays that were captured."""

import gc
import re
import warnings
import weakref

import numpy as np
import pytest
import warp as wp

from newton_like import MechanismState, ModelBuilder, ModelFlags, dynamics, eval_fk
from newton_like.selection import ArticulationView
from newton_like.solvers import SolverFeatherstone
from tests.support.mechanisms import quadruped, worlds_of
from tests.support.random_trees import random_state

WORLDS = 3


@pytest.fixture
def model():
    return worlds_of(quadruped(), WORLDS).finalize("cpu")


def low_state(model, rng) -> tuple[np.ndarray, np.ndarray]:
    """A random state in which legs touch the ground."""
    q, qd = random_state(model, rng)
    q.reshape(WORLDS, -1)[:, 2] = 0.0
    return q, qd


def begin(model, solver, state, start) -> None:
    """Sets a state; the solver forgets the contacts of the step before."""
    if solver is not None:
        solver.reset(state)
    state.joint_q.assign(start[0])
    state.joint_qd.assign(start[1])
    eval_fk(model, state.joint_q, state.joint_qd, state)


def forward(model):
    state, out = model.state(), model.state()
    return None, state, lambda: eval_fk(model, state.joint_q, state.joint_qd, out), (out.body_q, out.body_qd)


def mass(model):
    state, dofs = model.state(), model.joint_dof_count // WORLDS
    out = wp.zeros((WORLDS, dofs, dofs), dtype=wp.float32, device="cpu")
    return None, state, lambda: dynamics.mass_matrix(model, state, out=out), (out,)


def contacts(model):
    state, found = model.state(), model.contacts()
    result = found.rigid_contact_count, found.rigid_contact_point0, found.rigid_contact_shape0
    return None, state, lambda: model.collide(state, found, unsupported_contacts="ignore"), result


def step(model):
    solver = SolverFeatherstone(model, evaluator="general")
    state, between, out = model.state(), model.state(), model.state()

    def two():
        solver.step(state, between, dt=1e-3)
        solver.step(between, out, dt=1e-3)

    return solver, state, two, (out.joint_q, out.joint_qd, out.body_q)


def handed(model):
    solver = SolverFeatherstone(model, evaluator="general")
    state, out, found = model.state(), model.state(), model.contacts()

    def one():
        model.collide(state, found, unsupported_contacts="ignore")
        solver.step(state, out, contacts=found, dt=1e-3)

    return solver, state, one, (out.joint_q, out.joint_qd)


def values(arrays) -> list[np.ndarray]:
    return [a.numpy().copy() for a in arrays]


@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
@pytest.mark.parametrize(
    "make", [forward, mass, step, *(pytest.param(x, marks=pytest.mark.slow) for x in (contacts, handed))]
)
def test_a_graph_repeats_a_call(rng, model, make, first):
    """Also where the captured call is the first one, which prepares later ones. The same call on other arrays does not disturb the graph,
    nor does a graph disturb later calls."""
    solver, state, call, results = make(model)
    if not first:
        call()
    with wp.ScopedCapture("cpu") as capture:
        call()
    other_solver, other_state, other_call, others = make(model)
    begin(model, other_solver, other_state, low_state(model, rng))
    other_call()
    kept = values(others)
    for _ in range(3):
        start, found = low_state(model, rng), []
        for run in (call, lambda: wp.capture_launch(capture.graph)):
            begin(model, solver, state, start)
            for array in results:
                array.zero_()
            run()
            found.append(values(results))
        assert any(a.any() for a in found[0])
        for a, b in zip(*found, strict=True):
            np.testing.assert_array_equal(a, b)
    for a, b in zip(kept, values(others), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_graph_reads_edited_parameters(model):
    model.varying = ("gravity",)
    solver, state, call, (_, qd, _) = step(model)
    with wp.ScopedCapture("cpu") as capture:
        call()
    start = model.joint_q.numpy(), np.zeros(model.joint_dof_count)
    begin(model, solver, state, start)
    wp.capture_launch(capture.graph)
    np.testing.assert_allclose(qd.numpy().reshape(WORLDS, -1)[:, 2], -2e-3 * 9.81, rtol=1e-4)
    model.set_gravity((0.0, 0.0, 0.0))
    call()
    begin(model, solver, state, start)
    wp.capture_launch(capture.graph)
    np.testing.assert_allclose(qd.numpy().reshape(WORLDS, -1)[:, 2], 0.0, atol=1e-6)


def test_what_comes_from_the_host_is_refused_in_a_capture(model):
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    with wp.ScopedCapture("cpu"):
        for worlds in ([0], wp.array([0], dtype=int, device="cpu")):
            with pytest.raises(RuntimeError, match=r"captured.*mask \[\d+\] of wp.bool"):
                solver.reset(state, worlds)
        with pytest.raises(RuntimeError, match="capture"):
            model.notify_changed()


@pytest.mark.slow
def test_arrays_that_a_first_call_makes_are_not_part_of_the_graph(rng, model):
    """Functions that keep places of joints and constants for later calls; a first call in a capture prepares them."""
    state = model.state()
    with wp.ScopedCapture("cpu") as capture:
        found = dynamics.joint_positions(model, state, [1, 3]), dynamics.velocity_rate(model, state)
    begin(model, None, state, low_state(model, rng))
    wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(found[0].numpy(), dynamics.joint_positions(model, state, [1, 3]).numpy())
    np.testing.assert_allclose(found[1].numpy(), dynamics.velocity_rate(model, state).numpy(), rtol=1e-6)
    with wp.ScopedCapture("cpu"):
        with pytest.raises(RuntimeError, match="capture"):
            dynamics.inverse_dynamics(model, state, np.zeros(model.joint_dof_count))
        with pytest.raises(RuntimeError, match=r"SolverFeatherstone.*capture"):
            SolverFeatherstone(model)


@pytest.mark.slow
def test_a_graph_keeps_what_it_reads(rng, model):
    """Also where nobody else knows the solver any more; without the graph it is freed."""
    solver, state, call, results = step(model)
    _, _, mass_call, (inertia,) = mass(model)
    with wp.ScopedCapture("cpu") as capture:
        call()
        mass_call()
    start = low_state(model, rng)
    begin(model, solver, state, start)
    call()
    expected = values(results)
    begin(model, solver, state, start)
    alive = weakref.ref(solver)
    graph, capture.graph = capture.graph, None
    del solver, call, mass_call
    gc.collect()
    assert alive() is not None
    for array in results:
        array.zero_()
    wp.capture_launch(graph)
    for a, b in zip(expected, values(results), strict=True):
        np.testing.assert_array_equal(a, b)
    assert inertia.numpy().any()
    del graph
    gc.collect()
    assert alive() is None


def test_what_a_capture_does_not_run_is_refused(model):
    """Results that are read on the host, numbers from there, and objects whose arrays are filled from there."""
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    view, count = ArticulationView(model, "quadruped"), model.articulation_count
    calls = [
        lambda: solver.check(state),
        lambda: view.set_dof_velocities(state, 0.0),
        lambda: view.set_dof_velocities(
            state, wp.zeros(view.get_dof_velocities(state).shape, dtype=float), mask=[True] * count
        ),
        lambda: eval_fk(model, state.joint_q, state.joint_qd, state, mask=np.ones(count, dtype=bool)),
        lambda: worlds_of(quadruped(), 1).finalize("cpu"),
        lambda: setattr(state, "joint_q", np.zeros(model.joint_coord_count)),
        lambda: dynamics.random_state(model, 1),
        lambda: dynamics.SoftContact(model),
        lambda: dynamics.ContactPoints(model),
        lambda: MechanismState(model),
    ]
    with wp.ScopedCapture("cpu"):
        for call in calls:
            with pytest.raises(RuntimeError, match="capture"):
                call()


def test_states_that_are_made_in_a_capture_are_filled(model):
    found = model.joint_q.numpy() + 0.1
    model.joint_q.assign(found)
    with wp.ScopedCapture("cpu") as capture:
        state, control = model.state(), model.control()
        dynamics.mass_matrix(model, state)
    for name in ("joint_q", "joint_qd", "body_q"):
        np.testing.assert_array_equal(getattr(state, name).numpy(), getattr(model, name).numpy())
    np.testing.assert_array_equal(control.joint_target_q.numpy(), model.joint_target_q.numpy())
    # and not filled again by the graph
    state.joint_q.fill_(0.3)
    wp.capture_launch(capture.graph)
    assert (state.joint_q.numpy() == np.float32(0.3)).all()


@pytest.mark.parametrize("asked", [False, True])
def test_a_mechanism_keeps_nothing_that_a_capture_did_not_compute(rng, model, asked):
    """A call in a capture is part of the graph, even where the quantity was known before."""
    mechanism, state = MechanismState(model), model.state()
    expected = dynamics.mass_matrix(model, state).numpy()
    if asked:
        mechanism.mass_matrix()
    with wp.ScopedCapture("cpu") as capture:
        inertia = mechanism.mass_matrix()
    np.testing.assert_array_equal(mechanism.mass_matrix().numpy(), expected)
    mechanism.set_configuration(mechanism.configuration().numpy() * rng.uniform(0.5, 1.5))
    inertia.zero_()
    wp.capture_launch(capture.graph)
    found = inertia.numpy().copy()
    mechanism.set_dirty()
    np.testing.assert_array_equal(found, mechanism.mass_matrix().numpy())
    assert found.any()


def test_contact_forces_in_a_graph(rng, model):
    solver, state, call, _ = step(model)
    with wp.ScopedCapture("cpu") as capture:
        call()
        forces = solver.contact_forces()
    for _ in range(2):
        start = low_state(model, rng)
        begin(model, solver, state, start)
        wp.capture_launch(capture.graph)
        found = forces.numpy().copy()
        begin(model, solver, state, start)
        call()
        np.testing.assert_array_equal(found, solver.contact_forces().numpy())
        assert found.any()


@pytest.mark.slow
def test_a_graph_of_a_reset_survives_edits_of_shapes():
    """An edit that gives the solver other tables leaves the memory that the graph clears as it is."""
    builder = ModelBuilder()
    for i in range(3):
        builder.add_shape_box(
            builder.add_body(xform=(0.0, 0.0, 0.1 + 0.2 * i, 0.0, 0.0, 0.0, 1.0)), hx=0.1, hy=0.1, hz=0.1
        )
    scene = ModelBuilder()
    scene.add_ground_plane()
    scene.replicate(builder, 4)
    model = scene.finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    solver.step(state, state)
    mask = wp.ones(4, dtype=wp.bool, device="cpu")
    with wp.ScopedCapture("cpu") as capture:
        solver.reset(state, mask)
    groups = model.shape_collision_group.numpy()
    groups[1::3] = 0
    model.shape_collision_group.assign(groups)
    with pytest.warns(UserWarning, match="captured"):
        solver.notify_model_changed()
    memory = []
    for _ in range(20):
        wp.capture_launch(capture.graph)
        np.testing.assert_array_equal(state.joint_q.numpy(), model.joint_q.numpy())
        solver.step(state, state)
        memory.append(wp.full(1000, 1.0, dtype=float, device="cpu"))
    assert all((x.numpy() == 1.0).all() for x in memory)


EDITS = {
    "body_mass": (ModelFlags.BODY_INERTIAL_PROPERTIES, 1.5),
    "joint_armature": (ModelFlags.JOINT_DOF_PROPERTIES, 3.0),
    "gravity": (ModelFlags.MODEL_PROPERTIES, 0.5),
}


def edit(model, name: str, solver=None) -> None:
    """Scales an array of parameters, so that all numbers differ from before."""
    flag, factor = EDITS[name]
    array = getattr(model, name)
    array.assign(factor * array.numpy() + (0.01 if name == "joint_armature" else 0.0))
    (model.notify_changed if solver is None else solver.notify_model_changed)(flag)


def launched(model, solver, state, graph, results, start) -> list[np.ndarray]:
    begin(model, solver, state, start)
    wp.capture_launch(graph)
    return values(results)


def called(model, solver, state, call, results, start) -> list[np.ndarray]:
    begin(model, solver, state, start)
    call()
    return values(results)


def same(a, b) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("make", [step, mass])
def test_a_graph_sees_an_edit_or_a_warning_says_that_it_does_not(rng, model, name, make):
    """The first edit of numbers that are equal in all worlds needs other launches: one warning, also for later edits. Graphs that are
    captured then see later edits, without a warning."""
    solver, state, call, results = make(model)
    start = low_state(model, rng)
    with wp.ScopedCapture("cpu") as first:
        call()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        edit(model, name, solver)
    affected = not (make is mass and name == "gravity")
    old, new = (
        launched(model, solver, state, first.graph, results, start),
        called(model, solver, state, call, results, start),
    )
    assert same(old, new) != affected
    assert len(told) == affected  # a mass matrix does not read gravity
    for warning in told:
        assert warning.filename == __file__ and f"model.{name}:" in str(warning.message)
    with wp.ScopedCapture("cpu") as second:
        call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        edit(model, name, solver)
    old = launched(model, solver, state, second.graph, results, start)
    assert same(old, called(model, solver, state, call, results, start))
    assert not affected or not same(old, new)


@pytest.mark.parametrize("make", [step, mass])
def test_a_graph_of_arrays_that_vary_sees_edits_without_another_call(rng, model, make):
    """At the next launch, though nothing else was called after the edit."""
    model.varying = tuple(EDITS)
    solver, state, call, results = make(model)
    with wp.ScopedCapture("cpu") as capture:
        call()
    for name in EDITS:
        start = low_state(model, rng)
        begin(model, solver, state, start)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            edit(model, name)
        wp.capture_launch(capture.graph)
        found, fresh = values(results), make(model)
        assert same(found, called(model, *fresh, start))


def told_of(model, *names: str) -> set[str]:
    """The arrays that warnings name after edits of some arrays, with one notice."""
    for name in names:
        array = getattr(model, name)
        array.assign(1.25 * array.numpy() + (0.0 if name in ("body_mass", "gravity") else 0.125))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.notify_changed()
    assert len(told) <= 1
    return set(re.findall(r"model\.([a-z_]+)", str(told[0].message).split(":")[0])) if told else set()


def test_a_graph_warns_once_for_each_array_that_it_reads(rng):
    """Forward kinematics read no masses; the mass matrix reads no gravity, and of the gains armatures. The warning names edited arrays."""

    def fresh(make):
        model = worlds_of(quadruped(), WORLDS).finalize("cpu")
        solver, _, call, _ = make(model)
        with wp.ScopedCapture("cpu") as capture:
            call()
        return model, solver, capture.graph

    model, *kept = fresh(forward)
    assert told_of(model, "body_mass", "gravity", "joint_target_ke") == set()
    # numbers of bodies are in other memory by now
    assert told_of(model, "body_com") == {"body_com"}
    assert told_of(model, "body_com") == set()
    model, *kept = fresh(mass)
    assert told_of(model, "gravity", "joint_target_ke") == set()
    assert told_of(model, "body_mass") == {"body_mass"}
    assert told_of(model, "body_mass", "joint_armature") == {"joint_armature"}
    model, *kept = fresh(step)
    assert told_of(model, "joint_target_ke") == {"joint_target_ke"}
    assert told_of(model, "joint_target_kd", "joint_target_ke") == {"joint_target_kd"}
    assert told_of(model, "body_mass", "gravity") == {"body_mass", "gravity"}
    assert told_of(model, "body_mass", "gravity", "joint_target_ke") == set()
    assert kept


def test_gravity_is_not_set_in_a_capture(model):
    """The refusal comes before any change."""
    before = model.gravity.numpy().copy()
    with wp.ScopedCapture("cpu"), pytest.raises(RuntimeError, match=r"set_gravity.*capture"):
        model.set_gravity(-1.0)
    np.testing.assert_array_equal(model.gravity.numpy(), before)


@pytest.mark.slow
def test_no_warning_without_a_graph(rng, model):
    """Graphs that do not exist any more do not count."""
    solver, _, call, _ = step(model)
    with wp.ScopedCapture("cpu") as capture:
        call()
    del capture
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        edit(model, "body_mass", solver)


def test_general_launches_see_edits_of_numbers_beside_those_that_differ(rng, model):
    """Where worlds differ in one mass, the kernel reads all numbers of bodies from memory: a graph sees edits of the others."""
    numbers = model.body_mass.numpy()
    numbers[0] *= 1.1
    model.body_mass.assign(numbers)
    model.notify_changed()
    solver, state, call, results = step(model)
    with wp.ScopedCapture("cpu") as capture:
        call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        edit(model, "body_mass", solver)
    start = low_state(model, rng)
    old = launched(model, solver, state, capture.graph, results, start)
    assert same(old, called(model, solver, state, call, results, start))


def test_contact_forces_of_graphs_from_before_an_edit_of_shapes_are_refused(model):
    """They are in memory that the solver does not use any more."""
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    with wp.ScopedCapture("cpu") as capture:
        solver.step(state, state)
    groups = model.shape_collision_group.numpy()
    groups[model.shape_body.numpy() == 0] = 0
    model.shape_collision_group.assign(groups)
    with pytest.warns(UserWarning, match="contact_forces"):
        solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    wp.capture_launch(capture.graph)
    with pytest.raises(ValueError, match="contact_forces"):
        solver.contact_forces()
    solver.step(state, state)
    assert solver.contact_forces().shape == (model.shape_count,)
