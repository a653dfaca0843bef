"""Invalid arguments of functions of the dynamics library raise errors that name the argument."""

import copy
import gc
import inspect
import re
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

import newton_like.dynamics as dynamics
from newton_like import Axis, MechanismState, ModelBuilder, State
from newton_like.model.arguments import SEARCHED, check_finite
from newton_like.model.model import inverse_inertias
from newton_like.types import VelRepr
from tests.conftest import SEED
from tests.dynamics.test_gradients import Case
from tests.support.kinematic_cases import forest
from tests.support.random_trees import random_tree


@pytest.fixture(scope="module")
def case():
    return Case(np.random.default_rng([SEED, 2]))


def takers() -> list[tuple[str, str]]:
    """Public functions and the arguments of theirs that are arrays of numbers."""
    arrays = {
        "joint_acceleration",
        "joint_forces",
        "link_forces",
        "forces",
        "points",
        "contact_state",
        "q0",
        "phi",
        "rate",
    }
    found = []
    for name in dynamics.__all__:
        function = getattr(dynamics, name)
        parameters = inspect.signature(function).parameters if inspect.isfunction(function) else ()
        states = [s for s in ("state", "state_in") if s in parameters and "model" in parameters]
        # others read other arrays, or write
        reads = not name.startswith("set_") and name not in ("joint_velocities",)
        found += [(name, "joint_q")] * (len(states) if reads else 0)
        if states:
            # the points of contact are no array, and soft contact depends on no joint forces
            skipped = {"points"} if name.startswith("contact_point") else set()
            skipped |= {"joint_forces"} if name == "link_contact_forces" else set()
            found += [(name, p) for p in parameters if p in arrays - skipped]
    return found


STATES = sorted({name for name, argument in takers() if argument == "joint_q"})


@pytest.mark.parametrize(("name", "argument"), takers())
def test_arrays_that_are_not_finite_are_refused(case, by_numpy, name, argument):
    """One number of an array, somewhere in it; before anything runs."""
    arguments = case.arguments(name, {})
    array = case.state.joint_q if argument == "joint_q" else arguments[argument]
    before = array.numpy().copy()
    spoilt = before.copy()
    at = case.rng.integers(spoilt.size)
    spoilt.flat[at] = case.rng.choice([np.nan, np.inf, -np.inf])
    array.assign(spoilt)
    try:
        with pytest.raises(ValueError, match=rf"{argument} .*(nan|-?inf) .*index {at}\b"):
            getattr(dynamics, name)(**arguments)
    finally:
        array.assign(before)


def test_joints_are_named_and_the_search_can_be_left_out(rng, by_numpy):
    model = forest(rng, worlds=2, robots=1, joints=5).finalize("cpu", dtype=wp.float64)
    state = model.state()
    v = state.joint_qd.numpy()
    v[-1] = np.inf
    state.joint_qd.assign(v)
    label = next(f"'{name}', index {j}," for j, name in reversed([*enumerate(model.joint_label)]) if _dofs(model, j))
    with pytest.raises(ValueError, match=rf"state\.joint_qd .*inf .*index {len(v) - 1} .*joint {label} .*world 1\b"):
        dynamics.kinetic_energy(model, state)
    model.check_finite = False
    with np.errstate(all="ignore"):
        energy = dynamics.kinetic_energy(model, state).numpy()
    assert np.isfinite(energy[0])
    assert not np.isfinite(energy[1])
    with pytest.raises(ValueError, match=r"state\.joint_qd"):
        model.check_finite = True
        MechanismState(model, state).kinetic_energy()
    with pytest.raises(ValueError, match=r"check_finite 'always'.*'auto'"):
        model.check_finite = "always"


def _dofs(model, j: int) -> int:
    starts = model.joint_qd_start.numpy()
    return starts[j + 1] - starts[j]


def test_what_is_no_state_is_refused(rng):
    model = forest(rng, worlds=1, robots=1, joints=2).finalize("cpu")
    for wrong in (None, model.control(), model.joint_q):
        for function in (dynamics.mass_matrix, dynamics.bias_forces, dynamics.forward_dynamics):
            with pytest.raises(TypeError, match=f"state .*State.*{type(wrong).__name__}"):
                function(model, wrong)


@pytest.fixture(scope="module")
def other(case):
    """Another model of the same counts."""
    return case.scene.finalize("cpu", dtype=wp.float64)


@pytest.mark.parametrize("name", STATES)
def test_states_of_another_model_are_refused(case, other, by_numpy, name):
    """A state of another model with the same counts, in either class, raises an error with both models and the cure."""
    arguments = case.arguments(name, {})
    for key in {"state", "state_in", "state_out"} & set(arguments):
        for foreign in (other.state(), other.state().clone(), copy.copy(other.state()), MechanismState(other)):
            with pytest.raises(ValueError, match=rf"^{key} .*model.*worlds: 2, .*model\.state\(\)"):
                getattr(dynamics, name)(**{**arguments, key: foreign})


@pytest.mark.slow
def test_states_know_who_made_them_and_hand_made_ones_do_not(case, other, by_numpy):
    """Whoever copies or keeps a state keeps that it may be used; values go from model to model by assign."""
    model, mine = case.model, case.model.state()
    theirs = other.state()
    theirs.joint_q.assign(case.state.joint_q)
    mine.assign(theirs)
    expected = dynamics.potential_energy(model, case.state).numpy()
    plain = SimpleNamespace(joint_q=theirs.joint_q)
    arrays = {name: getattr(theirs, name) for name in ("joint_q", "joint_qd", "body_q", "body_qd", "body_f")}
    for state in (mine, mine.clone(), copy.copy(mine), MechanismState(model, mine), plain, State(**arrays)):
        np.testing.assert_array_equal(dynamics.potential_energy(model, state).numpy(), expected)
    # who copies a model has the same one with other settings
    np.testing.assert_array_equal(dynamics.potential_energy(copy.copy(model), mine).numpy(), expected)
    with pytest.raises(ValueError, match=r"^state .*model\.state\(\)"):
        MechanismState(model, theirs)
    # states do not keep their models
    gone = case.scene.finalize("cpu", dtype=wp.float64)
    orphan, alive = gone.state(), weakref.ref(gone)
    del gone
    gc.collect()
    assert alive() is None
    with pytest.raises(ValueError, match=r"^state .*gone.*model\.state\(\)"):
        dynamics.potential_energy(model, orphan)


NO_NUMBERS = {
    "complex": (np.array([1.0 + 2.0j]), "complex"),
    "text": ([["a", "b", "c"]], "text"),
    "digits": (["1", "2"], "text"),
    "dates": (np.array(["2020-01-01"], dtype="M8[D]"), "dates"),
    "uneven": ([[0.0, 0.0], [1.0]], "list"),
    "object": (object(), "object"),
}


@pytest.mark.parametrize("kind", NO_NUMBERS)
@pytest.mark.parametrize(("name", "argument"), [(n, a) for n, a in takers() if a not in ("joint_q", "contact_state")])
def test_what_is_no_array_of_real_numbers_is_refused(case, by_numpy, name, argument, kind):
    """By every function, for every array that may come from the host."""
    value, said = NO_NUMBERS[kind]
    with pytest.raises(TypeError, match=rf"^{argument} .*{said}"):
        getattr(dynamics, name)(**{**case.arguments(name, {}), argument: value})


REFUSED = {
    # function of the model, a state and a MechanismState; error; name in its message
    "no model": (lambda m, s, ms: MechanismState(None), TypeError, r"model.*NoneType"),
    "no state in": (lambda m, s, ms: dynamics.integrate(m, None, s, 0.1), TypeError, "state_in"),
    "no state out": (lambda m, s, ms: dynamics.integrate(m, s, None, 0.1), TypeError, "state_out"),
    "bool repr": (lambda m, s, ms: dynamics.mass_matrix(m, s, repr=True), ValueError, "repr=True"),
    "fraction repr": (lambda m, s, ms: dynamics.mass_matrix(m, s, repr=1.0), ValueError, "repr=1.0"),
    "other enum": (lambda m, s, ms: dynamics.mass_matrix(m, s, repr=Axis.Y), ValueError, r"repr=Axis\.Y"),
    "bool source": (
        lambda m, s, ms: dynamics.convert_velocity(np.zeros(6), np.eye(7)[6], True, VelRepr.BODY),
        ValueError,
        "source=True",
    ),
    "beyond float32": (
        lambda m, s, ms: dynamics.forward_dynamics(m, s, np.full(6, 1e300)),
        ValueError,
        r"joint_forces.*1e\+300.*float32",
    ),
    "configuration beyond float32": (
        lambda m, s, ms: ms.set_velocity(np.full(6, -1e39)),
        ValueError,
        r"velocity.*-1e\+39.*float32",
    ),
    "flat wrenches": (
        lambda m, s, ms: dynamics.forward_dynamics(m, s, None, np.zeros(6)),
        ValueError,
        r"link_forces.*\(6,\).*\(1, 6\).*\(1, 1, 6\)",
    ),
    "method": (lambda m, s, ms: dynamics.forward_dynamics(m, s, method=[]), ValueError, r"method=\[\].*'aba'"),
    "integrator": (lambda m, s, ms: dynamics.integrate(m, s, s, 0.1, {}), ValueError, r"method=\{\}.*'rk4'"),
    "friction": (lambda m, s, ms: dynamics.RigidContact(m, friction=[]), ValueError, r"friction=\[\].*'coulomb'"),
    "passive": (
        lambda m, s, ms: dynamics.velocity_rate(m, s, passive=3),
        TypeError,
        "passive=3",
    ),
    "passive of lists": (
        lambda m, s, ms: dynamics.velocity_rate(m, s, passive=[["limits"]]),
        ValueError,
        r"passive.*\['limits'\]",
    ),
    "links": (
        lambda m, s, ms: dynamics.point_positions(m, s, [[0], [1]], np.zeros((2, 3))),
        TypeError,
        r"link.*\[0\]",
    ),
    "offset": (
        lambda m, s, ms: dynamics.frame_transform(m, s, (0, ["a"] * 7)),
        TypeError,
        "a frame's offset",
    ),
    "heights": (
        lambda m, s, ms: dynamics.HeightfieldTerrain([["a"] * 2] * 2),
        TypeError,
        "heights.*terrain",
    ),
    "places": (lambda m, s, ms: dynamics.ContactPoints(m, {0: [["a"] * 3]}), TypeError, r"points.*0"),
    "law": (lambda m, s, ms: dynamics.SoftContactParameters(1j), TypeError, "stiffness.*soft contact"),
    "dimensions": (
        lambda m, s, ms: dynamics.forward_dynamics(m, s, np.zeros((1,) * 6)),
        ValueError,
        r"joint_forces.*\(1, 1, 1, 1, 1, 1\).*4",
    ),
    "seed": (lambda m, s, ms: dynamics.random_state(m, -1), ValueError, "seed -1"),
    "mass": (lambda m, s, ms: dynamics.set_link_mass(m, 0, 1j), TypeError, "mass"),
    "option of integrate": (
        lambda m, s, ms: dynamics.integrate(m, s, s, 0.1, foo=1),
        TypeError,
        r"integrate\(\).*'foo'.*forward_method",
    ),
    "option of state_rate": (
        lambda m, s, ms: dynamics.state_rate(m, s, out=1),
        TypeError,
        r"state_rate\(\).*'out'",
    ),
    "active points": (
        lambda m, s, ms: dynamics.estimate_soft_contact_parameters(m, active_points=0, max_penetration=0.1),
        ValueError,
        r"active_points 0.*1",
    ),
    "sphere points": (lambda m, s, ms: dynamics.ContactPoints(m, sphere_points=3), ValueError, r"sphere_points.*\b4\b"),
    "sweeps": (lambda m, s, ms: dynamics.RigidContact(m, sweeps=2**40), ValueError, f"sweeps.*{2**31 - 1}"),
    "additional states": (
        lambda m, s, ms: MechanismState(m, additional_states=-1),
        ValueError,
        r"additional_states -1.*0",
    ),
    "whole additional states": (
        lambda m, s, ms: MechanismState(m, additional_states=1.5),
        TypeError,
        r"additional_states.*1.5",
    ),
    "stages": (lambda m, s, ms: ms.update(3), TypeError, r"stages.*3"),
    "pairs": (lambda m, s, ms: ms.update(("mass_matrix", 3)), TypeError, "stages.*names.*pairs"),
    "out": (
        lambda m, s, ms: ms.mass_matrix(out=m.joint_q),
        TypeError,
        r"mass_matrix\(\).*MechanismState.*'out'",
    ),
    "option of a quantity": (
        lambda m, s, ms: ms.mass_matrix(foo=1),
        TypeError,
        r"mass_matrix\(\).*'foo'.*repr",
    ),
    "body": (lambda m, s, ms: ms.transform_to_root([0]), TypeError, r"body.*\[0\]"),
    "joint": (lambda m, s, ms: ms.twist([0]), TypeError, r"joint.*\[0\]"),
    "joint of a setter": (lambda m, s, ms: ms.set_velocity(0.0, [0]), TypeError, "^joint .*name.*index"),
    "world of a setter": (lambda m, s, ms: ms.set_velocity(0.0, 0, world=[0]), TypeError, "^world .*index"),
}


@pytest.fixture(scope="module")
def one_body():
    builder = ModelBuilder()
    body = builder.add_link(mass=1.0, inertia=np.eye(3), label="body")
    builder.add_articulation([builder.add_joint_free(body)])
    return builder.finalize("cpu")


@pytest.mark.parametrize("case_name", REFUSED)
def test_errors_name_the_argument(one_body, by_numpy, case_name):
    """Raised by a ``raise`` of this package before anything runs, and in its words."""
    call, kind, said = REFUSED[case_name]
    with pytest.raises(kind, match=said) as caught:
        call(one_body, one_body.state(), MechanismState(one_body))
    assert re.search(r"newton_like\b", str(caught.traceback[-1].path))
    assert str(caught.traceback[-1].statement).lstrip().startswith("raise")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_inertias_of_a_search_have_inverses(rng, sign):
    """`set_inertial_parameters` checks no inertia: inverses are those of Moore and Penrose, with negative traces too."""
    axes = np.linalg.qr(rng.normal(size=(3, 3, 3)))[0]
    inertia = sign * np.einsum("nij,nj,nkj->nik", axes, [[3.0, 2.0, 1.0], [2.0, 1.0, 0.0], [1.0, 0.0, 0.0]], axes)
    inertia = np.concatenate([inertia, np.zeros((1, 3, 3)), sign * np.ones((1, 3, 3))])
    # rounding of a few products of numbers near 1
    np.testing.assert_allclose(inverse_inertias(inertia), np.linalg.pinv(inertia, rcond=1e-9), atol=1e-13)
    spoilt = np.full((1, 3, 3), np.nan)
    np.testing.assert_array_equal(inverse_inertias(spoilt), 0.0)


def test_inertial_parameters_of_no_body_are_taken(one_body):
    before = dynamics.inertial_parameters(one_body).numpy()
    try:
        dynamics.set_inertial_parameters(one_body, -np.ones((1, 10)))
        np.testing.assert_array_equal(dynamics.inertial_parameters(one_body).numpy(), -1.0)
    finally:
        dynamics.set_inertial_parameters(one_body, before)


def test_small_arrays_are_searched_and_all_on_request(rng):
    model = forest(rng, worlds=1, robots=1, joints=2).finalize("cpu")
    for size, found in ((SEARCHED, True), (SEARCHED + 1, False)):
        numbers = rng.normal(size=size)
        # as large as single precision goes is finite
        numbers[0] = np.finfo(np.float32).max
        array = wp.array(numbers, dtype=wp.float32, device="cpu")
        assert check_finite(model, array, "numbers") is array
        numbers[-1] = np.nan
        array.assign(numbers)
        model.check_finite = "auto" if found else True
        with pytest.raises(ValueError, match=rf"numbers .*nan .*index {size - 1}\b"):
            check_finite(model, array, "numbers")
        model.check_finite = "auto"
    assert check_finite(model, array, "numbers") is array
    # cached data of an array is freed with the array
    alive = weakref.ref(array)
    del array
    gc.collect()
    assert alive() is None


@pytest.mark.slow
def test_results_without_gradients_are_refused_where_constants_have_some(rng):
    """Of masses and of gravity; functions that read neither are served."""
    model = random_tree(rng, joints=3).finalize("cpu", dtype=wp.float64)
    model.evaluator, state = "general", model.state(requires_grad=False)
    calls = {
        "bias_forces": ("body_mass", "gravity"),
        "mass_matrix": ("body_mass", "body_inertia"),
        "total_momentum": ("body_mass", "body_com"),
        "gravity_forces": ("gravity",),
        "link_transforms": (),
    }
    for name, reads in calls.items():
        function = getattr(dynamics, name)
        out = function(model, state)
        for constant in ("body_mass", "body_com", "body_inertia", "gravity"):
            array = getattr(model, constant)
            array.requires_grad = True
            with wp.Tape():
                if constant in reads:
                    with pytest.raises(ValueError, match="requires_grad=True"):
                        function(model, state, out=out)
                elif name == "link_transforms":
                    function(model, state, out=out)
            array.requires_grad = False
