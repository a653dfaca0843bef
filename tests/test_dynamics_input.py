"""What functions of the dynamics library are given: numbers that are not finite are found and named."""

import gc
import inspect
import weakref

import numpy as np
import pytest
import warp as wp

import newton_like.dynamics as dynamics
from newton_like import MechanismState
from newton_like.model.arguments import SEARCHED, check_finite

from .conftest import SEED
from .support.kinematic_cases import forest
from .test_gradients import Case


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
        found += [(name, "joint_q")] * len(states)
        if states:
            # the points of contact are no array, and soft contact depends on no joint forces
            skipped = {"points"} if name.startswith("contact_point") else set()
            skipped |= {"joint_forces"} if name == "link_contact_forces" else set()
            found += [(name, p) for p in parameters if p in arrays - skipped]
    return found


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
        with pytest.raises(ValueError, match=rf"{argument} holds (nan|-?inf) at index {at}"):
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
    with pytest.raises(
        ValueError, match=rf"state\.joint_qd holds inf at index {len(v) - 1} \(joint {label} of world 1\)"
    ):
        dynamics.kinetic_energy(model, state)
    model.check_finite = False
    with np.errstate(all="ignore"):
        energy = dynamics.kinetic_energy(model, state).numpy()
    assert np.isfinite(energy[0])
    assert not np.isfinite(energy[1])
    with pytest.raises(ValueError, match=r"state\.joint_qd"):
        model.check_finite = True
        MechanismState(model, state).kinetic_energy()
    with pytest.raises(ValueError, match="check_finite 'always' must be 'auto', True or False"):
        model.check_finite = "always"


def _dofs(model, j: int) -> int:
    starts = model.joint_qd_start.numpy()
    return starts[j + 1] - starts[j]


def test_what_is_no_state_is_refused(rng):
    model = forest(rng, worlds=1, robots=1, joints=2).finalize("cpu")
    for wrong in (None, model.control(), model.joint_q):
        for function in (dynamics.mass_matrix, dynamics.bias_forces, dynamics.forward_dynamics):
            with pytest.raises(TypeError, match=f"state must be a State.*not {type(wrong).__name__}"):
                function(model, wrong)


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
        with pytest.raises(ValueError, match=rf"numbers holds nan at index {size - 1}, and 1 numbers"):
            check_finite(model, array, "numbers")
        model.check_finite = "auto"
    assert check_finite(model, array, "numbers") is array
    # what is remembered of an array goes with it
    alive = weakref.ref(array)
    del array
    gc.collect()
    assert alive() is None
