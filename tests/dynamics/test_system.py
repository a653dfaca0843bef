"""The rates of a mechanism's state, which one program computes."""

from itertools import pairwise

import numpy as np
import pytest
import warp as wp

from newton_like import dynamics
from newton_like.dynamics import system
from newton_like.dynamics.internal.common import state_arrays
from newton_like.programs.run import _numbers_of
from newton_like.types import VelRepr
from tests.support.kinematic_cases import forest, moving_state, real_array
from tests.support.loops import looped

SPEED, GAIN = 0.1, 0.3


def made(rng, evaluator="general"):
    """A model with all passive forces, a state of it that moves, joint forces and wrenches on links; with gradients."""
    model = forest(rng, worlds=3, joints=5, friction=True, stiffness=True, limits=True).finalize(
        "cpu", dtype=wp.float64
    )
    model.evaluator = evaluator
    state, *_ = moving_state(model, rng)
    forces = real_array(model, rng.normal(size=model.joint_dof_count))
    wrenches = real_array(model, rng.normal(size=(model.body_count, 6)))
    arrays = state.joint_q, state.joint_qd, forces, wrenches
    for array in arrays:
        array.requires_grad = True
    return model, state, arrays


def apart(model, state, forces, wrenches, passive, method):
    """Rates of coordinates and velocities by the functions for each of them."""
    bits = system.passive_bits(passive)
    total = system.sum_of_joint_forces(model, state_arrays(model, state), forces, bits, SPEED)
    options = {"method": method, "link_forces_repr": VelRepr.MIXED, "repr": VelRepr.BODY}
    qdd = dynamics.forward_dynamics(model, state, total, wrenches, **options)
    return dynamics.position_rate(model, state, regularisation=GAIN), qdd


def together(model, state, forces, wrenches, passive, method):
    """The same by one program; `repr` is an argument of `velocity_rate` only."""
    options = {"passive": passive, "method": method, "friction_speed": SPEED, "link_forces_repr": VelRepr.MIXED}
    found = dynamics.velocity_rate(model, state, forces, wrenches, repr=VelRepr.BODY, **options)
    return dynamics.state_rate(model, state, forces, wrenches, regularisation=GAIN, **options).joint_q, found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("evaluator", "method"),
    [("general", "aba"), *[pytest.param(*case, marks=pytest.mark.slow) for case in
                           (("general", "crb"), ("specialised", "aba"), ("specialised", "crb"))]],
)  # fmt: skip
def test_one_program_gives_the_bits_and_gradients_of_several(rng, evaluator, method):
    model, state, (q, qd, forces, wrenches) = made(rng, evaluator=evaluator)
    arrays = q, qd, forces, wrenches
    kinds = ("friction", "limits", "springs")
    for passive in (kinds, kinds[:1], ()) if evaluator == "general" else (kinds,):
        results, gradients = [], []
        seeds = None
        for rates in (apart, together):
            for array in arrays:
                array.grad.zero_()
            with wp.Tape() as tape:
                found = rates(model, state, forces, wrenches, passive, method)
            seeds = seeds or [real_array(model, rng.normal(size=f.shape)) for f in found]
            tape.backward(grads=dict(zip(found, seeds, strict=True)))
            results.append([f.numpy() for f in found])
            gradients.append([array.grad.numpy().copy() for array in arrays])
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)
        for one, other in zip(*gradients, strict=True):
            assert np.abs(one).max() > 0.0
            # sums in another order, and forces up to 1e4 times as large as accelerations
            np.testing.assert_allclose(other, one, rtol=0.0, atol=1e-11 * np.abs(one).max())


def test_state_rate_is_one_launch(rng):
    """A call records one launch for each batch, and the next call with the same arguments records none."""
    model, state, (_, _, forces, wrenches) = made(rng)
    calls = [
        lambda: dynamics.velocity_rate(model, state, forces, wrenches),
        lambda: dynamics.state_rate(model, state, forces, wrenches),
        lambda: dynamics.state_rate(model, state, forces, wrenches),
    ]
    counts = [0]
    for call in calls:
        call()
        counts.append(len(_numbers_of(model).recorded))
    assert [after - before for before, after in pairwise(counts)] == [1, 1, 0]


def test_results_do_not_depend_on_what_memory_held(rng):
    """Programs write every number of a result: results are the same in arrays of any contents."""
    model, state, _ = made(rng)
    for function in (dynamics.velocity_rate, dynamics.position_rate, dynamics.mass_matrix, dynamics.link_transforms):
        found = function(model, state)
        out = wp.full(found.shape, np.nan, dtype=model.dtype, device="cpu")
        np.testing.assert_array_equal(function(model, state, out=out).numpy(), found.numpy())


def test_methods_are_checked_for_models_with_loops_too(rng):
    model = looped(rng).finalize("cpu")
    with pytest.raises(ValueError, match="method='lu'"):
        dynamics.velocity_rate(model, model.state(), passive=("friction",), method="lu")
