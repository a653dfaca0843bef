"""The tracer: traces compute the results of programs in the working precision, without repeated operations."""

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.layout import STEP_ROWS

from newton_like.collision.ground import find_colliders, shape_kinds
from newton_like.compiler.trace import Index, Number, Trace, tracing_math
from newton_like.programs.parameters import Parameters
from newton_like.programs.robot import namespace
from newton_like.programs.template import find_batches
from newton_like.programs.workspace import Workspace
from newton_like.solvers.featherstone.specialise import Specialiser
from newton_like.solvers.featherstone.stepper import step_memory
from tests.support.mechanisms import mechanism, quadruped, same_robot, vary, worlds_of
from tests.support.paths import ROOT

REALS = [np.float32, np.float64]
PLACES = 12


def rounded(exact: Fraction, real):
    """The number of type `real` nearest to a fraction, ties to even."""
    guess = real(float(exact))
    around = [np.nextafter(guess, real(-np.inf)), guess, np.nextafter(guess, real(np.inf))]
    return min(around, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(f"i{x.nbytes}")) % 2))


# every operation on numbers of NumPy, written without the tracer
NUMPY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "rcp": lambda a: type(a)(1.0) / a,
    "sqrt": np.sqrt,
    "shrink": lambda a, b: a / np.sqrt(b) if a < np.sqrt(b) else type(a)(1.0),
    "min": lambda a, b: a if a < b else b,
    "max": lambda a, b: a if a > b else b,
    "where_lt": lambda a, b, x, y: x if a < b else y,
    "fma": lambda a, b, c: rounded(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)), type(a)),
    "fnma": lambda a, b, c: rounded(Fraction(float(c)) - Fraction(float(a)) * Fraction(float(b)), type(a)),
    "sin": np.sin,
    "cos": np.cos,
    "atan2": np.arctan2,
    "exp": np.exp,
    "log": np.log,
}
ARGUMENTS = {"neg": 1, "rcp": 1, "sqrt": 1, "sin": 1, "cos": 1, "exp": 1, "log": 1, "fma": 3, "fnma": 3, "where_lt": 4}
SPELLED = {"min": "smaller", "max": "larger"}
# where the last bit is the library's choice
TRANSCENDENTAL = ("sin", "cos", "atan2", "exp", "log")


def run(trace: Trace, memory: dict, params: dict, uniforms: dict, real) -> list:
    """Values of all operations of a trace."""
    values = []

    def value(a):
        return values[a] if isinstance(a, int) else real(a)

    for name, *args in trace.ops:
        if name == "load":
            values.append(real(memory[args[0]]))
        elif name == "param":
            values.append(real(params[args[0]]))
        elif name == "uniform":
            values.append(real(uniforms[args[0]]))
        else:
            assert all(a < len(values) for a in args if isinstance(a, int))
            values.append(NUMPY[name](*map(value, args)))
    return values


def unknown(place):
    return None


def tracer(real=np.float32, parameter=unknown):
    """A trace and its mathematics."""
    trace = Trace()
    return trace, tracing_math(trace, parameter, real)


def number_of(x: Number, values: list, real):
    return real(x.constant) if x.constant is not None else values[x.node]


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("name", NUMPY)
def test_an_operation_on_unknown_numbers_is_written_down(rng, name, real):
    trace, m = tracer(real)
    count = ARGUMENTS.get(name, 2)
    inputs = {i: real(rng.uniform(0.1, 3.0)) for i in range(count)}
    result = getattr(m, SPELLED.get(name, name))(*[m.get(None, i, 0) for i in inputs])
    assert [op[0] for op in trace.ops] == ["load"] * count + [name]
    assert run(trace, inputs, {}, {}, real)[result.node] == NUMPY[name](*inputs.values())


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("name", NUMPY)
def test_an_operation_on_constants_is_done_at_once_in_the_working_precision(rng, name, real):
    trace, m = tracer(real)
    for _ in range(200):
        inputs = [real(x) for x in rng.uniform(0.1, 3.0, ARGUMENTS.get(name, 2))]
        result = getattr(m, SPELLED.get(name, name))(*[m.fill(float(x)) for x in inputs])
        expected = NUMPY[name](*inputs)
        if name in TRANSCENDENTAL:
            # NumPy's and Python's libraries may round differently
            np.testing.assert_allclose(
                result.constant, expected, rtol=2.0 * np.finfo(real).eps, atol=np.finfo(real).eps
            )
        else:
            assert result.constant == expected
        assert real(result.constant) == result.constant
    assert len(trace) == 0


@pytest.mark.parametrize("real", REALS)
def test_a_fused_multiply_add_of_constants_rounds_once(rng, real):
    """Also where a b and c nearly cancel, and where the sum lies close to the middle between two numbers."""
    _, m = tracer(real)
    cancelled = 0
    for _ in range(2000):
        a, b = (real(x) for x in rng.normal(size=2))
        c = -a * b if rng.random() < 0.5 else real(rng.normal() * 2.0 ** rng.integers(-30, 30))
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        cancelled += exact != 0 and abs(exact) < abs(Fraction(float(c))) / 1000
        fused = m.fma(m.fill(float(a)), m.fill(float(b)), m.fill(float(c))).constant
        assert fused == rounded(exact, real)
        assert m.fnma(m.fill(float(-a)), m.fill(float(b)), m.fill(float(c))).constant == fused
    assert cancelled > 100


@pytest.mark.parametrize("real", REALS)
def test_random_programs(rng, real):
    """Hundreds of operations on constants, zeros and ones among them, parameters and memory, against the same with NumPy.

    Every folding rule has to leave every finite number as it is; only the sign of zero may be lost.
    """
    known = {i: real(rng.choice([0.0, 1.0, -1.0, rng.normal()])) for i in range(0, 40, 2)}
    params = {i: known.get(i, real(rng.normal())) for i in range(40)}
    trace, m = tracer(real, lambda i: float(known[i]) if i in known else None)
    memory = {i: real(rng.normal()) for i in range(PLACES)}
    uniforms = {"dt": real(0.004)}
    kept = dict(memory)
    pool = [(m.fill(float(x)), real(x)) for x in (0.0, 1.0, -1.0, 0.5, 0.1, rng.normal())]
    pool += [(m.get(None, i, 0), memory[i]) for i in range(4)]
    pool += [(m.param(None, None, 0, "b", i), params[i]) for i in range(20)]
    pool += [(m.fill("dt"), uniforms["dt"])]
    names = [name for name in NUMPY if name not in TRANSCENDENTAL]
    done = dict.fromkeys(names, 0)
    for _ in range(1500):
        name = names[rng.integers(len(names))]
        picked = [pool[i] for i in rng.integers(len(pool), size=ARGUMENTS.get(name, 2))]
        with np.errstate(all="ignore"):
            expected = NUMPY[name](*[x for _, x in picked]) if _fine(name, picked) else real(np.nan)
        if not (np.isfinite(expected) and abs(expected) < 1e6):
            continue
        done[name] += 1
        pool.append((getattr(m, SPELLED.get(name, name))(*[x for x, _ in picked]), expected))
        if rng.random() < 0.05:
            place = int(rng.integers(PLACES))
            m.put(None, place, 0, pool[-1][0])
            kept[place] = pool[-1][1]
        if rng.random() < 0.05:
            place = int(rng.integers(PLACES))
            pool.append((m.get(None, place, 0), kept[place]))
    assert min(done.values()) > 10
    values = run(trace, memory, params, uniforms, real)
    wrong = [i for i, (x, expected) in enumerate(pool) if number_of(x, values, real) != expected]
    assert not wrong
    assert all(number_of(x, values, real) == kept[place] for place, x in trace.memory.items())
    assert len({(op[0], *((type(a), a) for a in op[1:])) for op in trace.ops}) == len(trace.ops)


def _fine(name, picked) -> bool:
    """Fractions hold finite numbers only, and roots real ones."""
    values = [x for _, x in picked]
    return all(np.isfinite(values)) and not (name in ("sqrt", "shrink") and values[-1] <= 0)


def test_folding_rules():
    """Neutral elements, signs and repetitions add no operations."""
    trace, m = tracer()
    x, y = m.get(None, 0, 0), m.get(None, 1, 0)
    zero, one, minus = m.fill(0.0), m.fill(1.0), m.fill(-1.0)
    loads = len(trace)
    same = [m.add(x, zero), m.add(zero, x), m.sub(x, zero), m.mul(one, x), m.mul(x, one), m.where_lt(y, zero, x, x)]
    same += [m.fma(one, x, zero), m.fma(zero, y, x), m.fnma(y, zero, x)]
    assert all(r.node == x.node for r in same)
    nothing = [m.mul(zero, x), m.mul(x, zero), m.sub(x, x), m.fma(zero, x, zero), m.fnma(x, zero, zero)]
    assert all(r.constant == 0.0 for r in nothing)
    assert len(trace) == loads
    negated = m.neg(x)
    assert m.neg(negated).node == x.node
    assert {m.mul(minus, x).node, m.mul(x, minus).node, m.sub(zero, x).node} == {negated.node}
    assert len(trace) == loads + 1
    difference = m.sub(y, x)
    assert m.add(y, negated).node == difference.node
    assert m.fnma(one, x, y).node == difference.node
    assert m.add(x, y).node == m.add(y, x).node == m.fma(one, x, y).node == m.fma(y, one, x).node
    assert m.mul(x, y).node == m.mul(y, x).node == m.fma(x, y, zero).node
    assert m.fma(x, y, one).node == m.fma(y, x, one).node
    assert m.sub(x, y).node != m.sub(y, x).node
    assert len(trace) == loads + 6


def test_the_number_of_an_operation_is_not_a_constant():
    """Operation 1 and the constant 1.0 are equal in Python."""
    trace, m = tracer()
    x, y = m.get(None, 0, 0), m.get(None, 1, 0)
    assert y.node == 1
    assert m.add(x, y).node != m.add(x, m.fill(1.0)).node
    assert m.where_lt(x, x, y, m.fill(1.0)).node is not None
    assert [op[0] for op in trace.ops] == ["load", "load", "add", "add", "where_lt"]


def test_memory_is_read_once_and_what_was_written_is_known():
    trace, m = tracer()
    x = m.get(None, 3, 0)
    assert m.get(None, 3, 0) is x
    m.put(None, 4, 0, m.add(x, x))
    assert m.get(None, 4, 0) is trace.memory[4]
    m.put(None, 3, 0, m.fill(2.0))
    assert m.get(None, 3, 0).constant == 2.0
    assert trace.loads == [3]
    assert [op[0] for op in trace.ops] == ["load", "add"]


def test_index_arithmetic(rng):
    """Against integers, through the text that goes into the code; equal sums are one place."""
    integers = {name: int(rng.integers(0, 50)) for name in "acs"}
    for _ in range(200):
        index, number = Index(0, ((name := "acs"[rng.integers(3)], 1),)), None
        number = integers[name]
        for _ in range(int(rng.integers(1, 8))):
            k, kind = int(rng.integers(-5, 10)), rng.integers(6)
            other = "acs"[rng.integers(3)]
            if kind == 0:
                index, number = index + k, number + k
            elif kind == 1:
                index, number = k + index, k + number
            elif kind == 2:
                index, number = index - k, number - k
            elif kind == 3:
                index, number = index * max(k, 1), number * max(k, 1)
            elif kind == 4:
                index, number = max(k, 1) * index, max(k, 1) * number
            else:
                index, number = index + Index(k, ((other, 2),)), number + k + 2 * integers[other]
        assert eval(str(index), {}, integers) == number
    a, c = Index(0, (("a", 1),)), Index(0, (("c", 1),))
    assert 3 * a + c + 5 == 5 + c + a * 3
    assert hash(3 * a + c + 5) == hash(5 + c + a * 3)
    assert a + 1 != a
    assert a + c != a + a
    assert {a + c: 1}[c + a] == 1


# ---------------------------------------------------------------------------------------------------- stages of robots

# memory that the kernel writes before a stage
STAGED = {
    "q", "v", "force", "target_q", "target_v", "act", "wrench", "impulse", "coupling_impulse", "dof_impulse", "dof_need", "over",
    "z", "warm_work", "bias_change", "bias_share",
}  # fmt: skip
# memory that the general code for hulls and couplings writes
GENERAL = {"near", "gap", "point", "clear"}
# always run, before the ones that may
FIRST = ("smooth", "predict")


def specialiser(robot, worlds: int = 3, varied=()) -> Specialiser:
    model = worlds_of(robot, worlds).finalize("cpu")
    vary(model, varied, range(worlds))
    (batch,) = find_batches(model, shape_kinds(model))
    tables = find_colliders(model, batch)
    m = namespace(8, wp.float32, STEP_ROWS)
    work = Workspace(m, batch, Parameters(m, model, batch, tables), "cpu", 1)
    return Specialiser(step_memory(work, tables)[0])


@pytest.fixture(scope="module", params=["mechanism", "quadruped"])
def special(request):
    return specialiser(same_robot(mechanism) if request.param == "mechanism" else quadruped())


@pytest.mark.slow
def test_what_a_stage_reads_an_earlier_one_has_written(special):
    """Or the kernel, or the stage that built the row that it sweeps."""
    traces = special._traces
    written = set().union(*(trace.memory for name in FIRST for trace in traces[name].values()))

    def missing(trace, *builders):
        known = written.union(*(b.memory for b in builders))
        names = STAGED | GENERAL | {special._name(p) for b in builders for p in b.memory}
        out = []
        for place in trace.loads:
            name = special._name(place)
            exact = isinstance(place, int) and name not in STAGED | GENERAL
            if place not in known and (exact or name not in names | {special._name(p) for p in written}):
                out.append((name, str(place)))
        return out

    first = Trace()
    assert not {special._name(p) for p in traces["smooth"][0].loads} - STAGED
    for name in ("predict", "saturate", "recheck", "finish", "wrenches"):
        needs = (traces["smooth"][0],) if name == "predict" else (first,)
        assert not missing(traces[name][0], *needs), name
    for trace in traces["detect"].values():
        assert not missing(trace)
    for case, trace in traces["contact_build"].items():
        assert not missing(trace), case
    for body, trace in traces["contact_sweep"].items():
        builders = [t for case, t in traces["contact_build"].items() if case // special.planes == body]
        assert builders
        assert not missing(trace, *builders), body
    for row, trace in traces["dof_build"].items():
        assert not missing(trace), row
        assert not missing(traces["dof_sweep"][row], trace), row


@pytest.mark.slow
def test_what_is_read_is_emitted(special):
    """A store is left out only if no stage and no part of the kernel reads it."""
    places, arrays = special._live()
    read, dropped = set(), 0
    for cases in special._traces.values():
        for trace in cases.values():
            read |= set(trace.loads)
    for name, cases in special._traces.items():
        for trace in cases.values():
            text = special._emit(trace, places, arrays)
            for place, x in trace.memory.items():
                unchanged = x.node is not None and trace.ops[x.node] == ("load", place)
                emitted = f"\n{special.emitter.place(place)} = " in f"\n{text}"
                if place in read and not unchanged:
                    assert emitted, (name, str(place))
                dropped += not emitted
    assert dropped > 0


@pytest.mark.slow
def test_a_varying_parameter_is_read_where_others_are_constants(rng):
    """Two worlds with different masses: the mass is loaded, and results of shared parameters are still folded."""
    robot = quadruped()
    same, varied = specialiser(robot), specialiser(robot, varied=("body_mass",))

    def parameters(special):
        return {op[1] for cases in special._traces.values() for t in cases.values() for op in t.ops if op[0] == "param"}

    at = varied.work.parameters.at["body"]
    end = min(start for start in varied.work.parameters.at.values() if start > at)
    fresh = {i for i in parameters(varied) - parameters(same) if isinstance(i, int)}
    assert fresh
    assert all(at <= i < end for i in fresh)
    assert not varied.work.parameters.known.same[sorted(fresh)].any()
    assert varied.operations > same.operations


def code_of(special) -> str:
    live = special._live()
    return "".join(special._code(name, *live) for name in special._traces)


@pytest.mark.slow
def test_code_is_the_same_in_every_process():
    """Otherwise compiled code would not be found in the cache. The order of sets differs between processes, like string hashes."""
    script = (
        "import hashlib; from tests.compiler.test_trace import *; "
        "print(hashlib.sha256(code_of(specialiser(same_robot(mechanism))).encode()).hexdigest())"
    )
    texts = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        result = subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        texts.append(result.stdout.split()[-1])
    assert texts[0] == texts[1]
