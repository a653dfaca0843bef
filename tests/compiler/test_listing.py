"""Programs as lists of operations: their results are those of their traces and of compiled code."""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.interpreter import OPERATIONS, READS

from newton_like import dynamics
from newton_like.compiler.listing import encode
from newton_like.compiler.trace import Trace, tracing_math
from newton_like.programs.run import _numbers_of
from tests.support.kinematic_cases import forest, use_width
from tests.support.random_traces import random_trace
from tests.support.random_trees import random_state, random_transform
from tests.support.traced import evaluate

PLACES = 12
"""Number of memory rows of a trace."""


def interpret(code, memory: np.ndarray) -> np.ndarray:
    """The memory after a list of operations, evaluated with the tracer's constant folding."""
    memory = np.concatenate([memory, code.constants, np.zeros(code.rows - len(code.constants))])
    trace = Trace()
    m = tracing_math(trace, lambda i: None, np.float64)
    methods = {"min": "smaller", "max": "larger"}
    told = iter(code.operations)
    for number in told:
        name = OPERATIONS[number]
        for _ in range(next(told)):
            to = next(told)
            values = [m.fill(memory[next(told)]) for _ in range(READS.get(name, 1))]
            memory[to] = values[0].constant if name == "move" else getattr(m, methods.get(name, name))(*values).constant
    return memory[:PLACES]


def test_a_list_does_what_its_trace_does(rng):
    for _ in range(20):
        trace = random_trace(rng)
        m = tracing_math(trace, lambda i: None, np.float64)
        # results over numbers that are read, a number that goes elsewhere unchanged, and constants
        first, second = (m.get(None, i, None) for i in (0, 1))
        m.put(None, 1, None, first)
        m.put(None, 0, None, m.sub(second, m.fill(0.5)))
        m.put(None, 9, None, m.fill(-0.0))
        before = rng.normal(size=PLACES)
        expected = evaluate(trace, dict(enumerate(before)), np.zeros((1, 0)))
        stores = [(place, x) for place, x in trace.memory.items()]
        code = encode(trace, stores, PLACES, lambda i: "body")
        after = interpret(code, before)
        for place in range(PLACES):
            # a fused operation is exact once, and rounded twice in NumPy: the rest of a random program multiplies that
            np.testing.assert_allclose(after[place], expected.get(place, [before[place]])[0], rtol=1e-9, atol=1e-9)
        assert np.signbit(after[9])
        # rows are used again: fewer than numbers found on the way
        assert code.rows - len(code.constants) < len(trace) - 5


def gradients(model, q, qd, seed) -> list[np.ndarray]:
    """Of inverse dynamics, by coordinates, velocities and masses."""
    state = model.state(requires_grad=True)
    state.joint_q.assign(q)
    state.joint_qd.assign(qd)
    model.body_mass.grad.zero_()
    with wp.Tape() as tape:
        tau = dynamics.bias_forces(model, state)
    tape.backward(grads={tau: wp.array(seed.reshape(tau.shape), dtype=model.dtype, device="cpu")})
    return [a.grad.numpy().copy() for a in (state.joint_q, state.joint_qd, model.body_mass)]


@pytest.mark.slow
@pytest.mark.parametrize("width", [None, 1])
def test_interpreted_gradients_are_those_of_compiled_code(rng, monkeypatch, width):
    """Bit by bit; without lanes compilers fuse as they like. Also after numbers changed: for all worlds alike, and for one."""
    if width is not None:
        use_width(monkeypatch, width)
    model = forest(rng, worlds=18, robots=1, joints=5).finalize("cpu", dtype=wp.float64, requires_grad=True)
    q, qd = random_state(model, rng)
    seed = rng.normal(size=model.articulation_count * model.max_dofs_per_articulation)
    for change in (slice(0, 0), slice(None), slice(0, 3)):
        mass = model.body_mass.numpy()
        mass[change] *= 1.5
        model.body_mass.assign(mass)
        model.notify_changed()
        found = []
        for model.evaluator in ("general", "specialised"):
            found.append(gradients(model, q, qd, seed))
        for interpreted, compiled in zip(*found, strict=True):
            assert np.abs(interpreted).max() > 0.0
            if width is None:
                np.testing.assert_array_equal(interpreted, compiled)
            else:
                np.testing.assert_allclose(interpreted, compiled, rtol=1e-10, atol=1e-10)
    kernels = [k for robot in _numbers_of(model).robots for k in robot.kernels.values()]
    assert {k.code is None for k in kernels} == {True, False}


@pytest.mark.slow
def test_long_adjoints_are_interpreted(rng, monkeypatch):
    model = forest(rng, worlds=18, robots=1, joints=5).finalize("cpu", dtype=wp.float64, requires_grad=True)
    q, qd = random_state(model, rng)
    seed = rng.normal(size=model.articulation_count * model.max_dofs_per_articulation)
    # robots whose axes are all slides have adjoints of a few operations
    monkeypatch.setattr("newton_like.programs.robot.BUDGET", -1)
    long = gradients(model, q, qd, seed)
    assert all(k.code is not None for robot in _numbers_of(model).robots for k in robot.kernels.values())
    model.evaluator = "general"
    for a, b in zip(long, gradients(model, q, qd, seed), strict=True):
        np.testing.assert_array_equal(a, b)


def test_recorded_tapes_keep_their_numbers(rng):
    """A tape that was recorded before a robot's numbers changed goes back with the old ones."""
    model = forest(rng, worlds=2, robots=1, joints=5).finalize("cpu", dtype=wp.float64, requires_grad=True)
    model.evaluator = "general"
    q, qd = random_state(model, rng)
    seed = rng.normal(size=model.articulation_count * model.max_dofs_per_articulation)
    expected = gradients(model, q, qd, seed)
    state = model.state(requires_grad=True)
    state.joint_q.assign(q)
    state.joint_qd.assign(qd)
    with wp.Tape() as tape:
        tau = dynamics.bias_forces(model, state)
    for array in (model.body_mass, model.body_inertia):
        array.assign(2.0 * array.numpy())
    model.notify_changed()
    other = gradients(model, q, qd, seed)
    tape.backward(grads={tau: wp.array(seed.reshape(tau.shape), dtype=model.dtype, device="cpu")})
    np.testing.assert_array_equal(state.joint_q.grad.numpy(), expected[0])
    assert np.abs(other[0] - expected[0]).max() > 1e-6


def check_within_memory(work) -> None:
    """Walks the code of a workspace as the interpreter does: to its end, over rows that there are."""
    code, rows, at = work.T.code.numpy(), work.memory[0].shape[0], 0
    while at < len(code):
        name, count = code[at : at + 2]
        told = 1 + READS.get(OPERATIONS[name], 1)
        end = at + 2 + told * count
        # the place and the group of a parameter are no rows
        named = code[at + 2 : end].reshape(count, told)[:, : 1 if OPERATIONS[name] == "param" else told]
        assert ((named >= 0) & (named < rows)).all()
        at = end
    assert at == len(code)


@pytest.mark.parametrize("seen_from", [None, 1])
def test_interpreted_code_stays_within_its_memory(rng, seen_from):
    """Includes code without operations: the pose of a frame relative to another frame of its link is constant."""
    model = forest(rng, worlds=2, robots=1, joints=5).finalize("cpu", dtype=wp.float64, requires_grad=True)
    model.evaluator = "general"
    q, qd = (wp.array(x, dtype=wp.float64, device="cpu", requires_grad=True) for x in random_state(model, rng))
    with wp.Tape() as tape:
        state, frame = SimpleNamespace(joint_q=q, joint_qd=qd), (1, random_transform(rng))
        twist = dynamics.relative_twist(model, state, frame, seen_from)
    (work,) = (w for robot in _numbers_of(model).robots for w in robot.works.values() if w.code is not None)
    assert seen_from is None or not len(work.code.operations)
    check_within_memory(work)
    tape.backward(grads={twist: wp.ones_like(twist)})
    assert seen_from is None or not qd.grad.numpy().any()


def test_gradients_of_some_inputs_after_those_of_others(rng):
    """The same function by coordinates alone, then by velocities alone: no launch is taken for the other."""
    model = forest(rng, worlds=2, robots=1, joints=5).finalize("cpu", dtype=wp.float64)
    model.evaluator = "general"
    start = random_state(model, rng)
    found = []
    for tracked in ((True, True), (True, False), (False, True)):
        arrays = [
            wp.array(x, dtype=wp.float64, device="cpu", requires_grad=t) for x, t in zip(start, tracked, strict=True)
        ]
        with wp.Tape() as tape:
            velocities = dynamics.link_velocities(model, SimpleNamespace(joint_q=arrays[0], joint_qd=arrays[1]))
        tape.backward(grads={velocities: wp.ones_like(velocities)})
        found.append([a.grad.numpy() if t else None for a, t in zip(arrays, tracked, strict=True)])
    np.testing.assert_array_equal(found[1][0], found[0][0])
    np.testing.assert_array_equal(found[2][1], found[0][1])
