"""Reverse mode over traces: every operation against central differences, and the number of operations."""

import numpy as np
import pytest
import warp as wp

from newton_like import dynamics, kinematics
from newton_like.compiler.adjoint import _RULES, adjoint_trace
from newton_like.compiler.order import needed
from newton_like.compiler.trace import Trace, tracing_math
from newton_like.dynamics import forces
from newton_like.dynamics.internal import common
from newton_like.programs.program import Field, Program
from newton_like.programs.robot import INERTIA
from newton_like.programs.run import _numbers_of
from newton_like.programs.tracing import trace_program
from tests.support.kinematic_cases import forest
from tests.support.random_traces import random_trace
from tests.support.random_trees import random_state
from tests.support.traced import evaluate, run_traced_adjoint


def test_every_operation_against_central_differences(rng):
    used: set[str] = set()
    for _ in range(20):
        trace = random_trace(rng)
        used |= {op[0] for op in trace.ops}
        outputs, inputs = {10: 110, 11: 111}, {i: 100 + i for i in range(5)}
        adjoint = adjoint_trace(trace, outputs, inputs, {}, lambda i: None, np.float64)
        x, seed, way = rng.normal(size=(5, 30)), rng.normal(size=(2, 30)), rng.normal(size=(5, 30))
        memory = {**dict(enumerate(x)), 110: seed[0], 111: seed[1]}

        def value(y, trace=trace, seed=seed):
            out = evaluate(trace, dict(enumerate(y)), np.zeros((30, 0)))
            return seed[0] * out[10] + seed[1] * out[11]

        step = 1e-6
        try:
            with np.errstate(divide="raise", invalid="raise"):
                gradient = evaluate(adjoint, memory, np.zeros((30, 0)))
                expected = (value(x + step * way) - value(x - step * way)) / (2 * step)
        except FloatingPointError:
            # a program with a difference of equal numbers may divide zero by zero, and has no gradient then
            continue
        actual = sum(gradient.get(100 + i, 0.0) * way[i] for i in range(5))
        # truncation and cancellation; a comparison may change sides between the two points in a few of the 600 programs
        wrong = ~np.isclose(actual, expected, rtol=1e-6, atol=1e-6 * (1.0 + np.abs(expected).max()))
        assert wrong.mean() < 0.1
    assert used >= {*_RULES} - {"variation"}


@pytest.mark.parametrize("evaluator", ["specialised", pytest.param("general", marks=pytest.mark.slow)])
def test_gradients_are_added_to_what_is_there(rng, evaluator):
    """Of states and masses, in compiled and in interpreted adjoints, with a last block that is short; an array that comes in twice."""
    scene = forest(rng, worlds=21, robots=1, joints=5)
    model = scene.finalize("cpu", requires_grad=True)
    model.evaluator = evaluator
    state = model.state()
    for a, x in zip((state.joint_q, state.joint_qd), random_state(model, rng), strict=True):
        a.assign(x)
    arrays = [state.joint_q, state.joint_qd, model.body_mass, model.body_com, model.body_inertia]
    seed = rng.normal(size=model.joint_dof_count)

    def gradients(before) -> list[np.ndarray]:
        with wp.Tape() as tape:
            forces = dynamics.inverse_dynamics(model, state, joint_acceleration=state.joint_qd)
        for a, x in zip(arrays, before, strict=True):
            a.grad.assign(x)
        forces.grad.assign(seed)
        tape.backward()
        return [a.grad.numpy().copy() for a in arrays]

    none = gradients([np.zeros_like(a.numpy()) for a in arrays])
    before = [rng.normal(size=a.numpy().shape).astype(np.float32) for a in arrays]
    for added, gradient, x in zip(gradients(before), none, before, strict=True):
        assert np.abs(gradient).max() > 0.0
        # one rounding of a sum, two where an array comes in twice: of parts that may cancel
        scale = np.abs(gradient) + np.abs(x) + 0.2 * np.abs(gradient).max()
        np.testing.assert_array_less(np.abs(added - (gradient + x)), 1e-6 * scale)


def test_detached_numbers_are_constants(rng):
    trace = Trace()
    m = tracing_math(trace, lambda i: None, np.float64)
    x = m.get(None, 0, None)
    m.put(None, 1, None, m.mul(m.detach(m.mul(x, x)), x))
    adjoint = adjoint_trace(trace, {1: 11}, {0: 10}, {}, lambda i: None, np.float64)
    values = rng.normal(size=9)
    result = evaluate(adjoint, {0: values, 11: np.ones(9)}, np.zeros((9, 0)))
    np.testing.assert_allclose(result[10], values**2, rtol=1e-15)


def test_variations_are_zero_with_a_derivative(rng):
    """The variation of a rotation matrix with its angle, from a constant matrix: the derivative of the matrix, without its sine."""
    trace = Trace()
    m = tracing_math(trace, lambda i: None, np.float64, varied=True)
    x = m.get(None, 0, None)
    c, s = m.detach(m.cos(x)), m.detach(m.sin(x))
    # the first column turns about z by variation(x)
    m.put(None, 1, None, m.fnma(s, m.variation(x), c))
    m.put(None, 2, None, m.fma(c, m.variation(x), s))
    adjoint = adjoint_trace(trace, {1: 11, 2: 12}, {0: 10}, {}, lambda i: None, np.float64)
    values, seeds = rng.normal(size=9), rng.normal(size=(2, 9))
    result = evaluate(adjoint, {0: values, 11: seeds[0], 12: seeds[1]}, np.zeros((9, 0)))
    np.testing.assert_allclose(
        result[10], seeds[1] * np.cos(values) - seeds[0] * np.sin(values), rtol=1e-14, atol=1e-14
    )
    assert not any(op[0] in ("variation", "detach") for op in adjoint.ops)


PROGRAMS = {
    "eval_fk": kinematics._FK,
    "eval_jacobian": kinematics._JACOBIAN,
    "bias_forces": forces._BIAS,
}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_gradient_costs_at_most_four_evaluations(rng, name):
    """In operations of the code, the values that are worked out once more included (Griewank and Walther 2008, section 3.3), with
    respect to coordinates and forces, and to masses, centres of mass and inertias as well."""
    program = PROGRAMS[name]
    model = forest(rng, worlds=1, robots=1, joints=12).finalize("cpu", dtype=wp.float32)
    robot = _numbers_of(model).robots[0]
    work = robot.work(model, program, 1, 1, True)
    emitter = work.emitter()
    trace = trace_program(program.name, work, emitter.parameter)
    rows = {f.row for f in program.outputs}
    once = len(needed(trace, emitter.stores(trace, lambda place: emitter.name(place) in rows)))
    assert once > 100
    for inertia in ((), INERTIA):
        adjoint = robot.adjoint(model, program, work, emitter, inertia)
        stores = emitter.stores(adjoint, lambda place: emitter.name(place).startswith("adjoint_"))
        assert len(needed(adjoint, stores)) < 3.5 * once


def gradient_of_forward_dynamics(model, adjoint: str | None, q, qd, tau, seed) -> list[np.ndarray]:
    """Of seed . accelerations with respect to q, qd and tau, through the articulated bodies or `adjoint`."""
    fields = (common.Q, common.V, Field("force", "dofs"))
    vector = (Field("vector", "articulations", common.columns),)
    program = Program("eval_forward_dynamics", fields, vector, forces.SOLVING["aba"], adjoint=adjoint)
    return run_traced_adjoint(model, program, [q, qd, tau], [seed])


@pytest.mark.slow
def test_forward_dynamics_backward_by_the_implicit_function_theorem(rng):
    """The adjoint of the equation of motion is that of the articulated-body algorithm."""
    model = forest(rng, worlds=2, robots=2, joints=8).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    tau = rng.normal(size=model.joint_dof_count)
    seed = rng.normal(size=model.articulation_count * model.max_dofs_per_articulation)
    through = gradient_of_forward_dynamics(model, None, q, qd, tau, seed)
    implicit = gradient_of_forward_dynamics(model, "eval_forward_dynamics_implicit", q, qd, tau, seed)
    for a, b in zip(through, implicit, strict=True):
        # rounding, times the condition of the mass matrix
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-9 * np.abs(a).max())
        assert np.abs(a).max() > 0.1
