"""The generalised velocity in every representation: its definition, products with matrices, and setting it."""

import numpy as np
import pytest
import warp as wp

from newton_like import MechanismState, ModelBuilder, dynamics
from newton_like.types import VelRepr
from tests.support.dynamics_cases import cases
from tests.support.kinematic_cases import gradient_errors
from tests.support.random_trees import random_state, random_tree

REPRESENTATIONS = [None, *VelRepr]

# Sums over ten joints of products of numbers of about ten, some hundred roundings of 1e-16 each.
CLOSE = dict(rtol=1e-11, atol=1e-11)


def two_kinds(rng, dtype=wp.float64, **options):
    """Two worlds, each with a floating and a fixed robot of other sizes, at random coordinates and velocities."""
    scene = ModelBuilder()
    for trees in [[random_tree(rng, joints=n, floating=f, label=f"t{n}") for n, f in ((5, True), (3, False))]] * 2:
        scene.begin_world()
        for tree in trees:
            scene.add_builder(tree)
        scene.end_world()
    model = scene.finalize("cpu", dtype=dtype, **options)
    state = model.state()
    q, qd = random_state(model, rng)
    state.joint_q.assign(q)
    state.joint_qd.assign(qd)
    return model, state


@pytest.mark.parametrize("repr", REPRESENTATIONS)
def test_velocities_are_those_that_the_definition_gives(rng, by_numpy, repr):
    """Base velocities agree with the motion of the representation's point, and with the mass matrix and Jacobians."""
    for case in cases(rng):
        nu = case.get(dynamics.velocity, repr=repr)
        np.testing.assert_allclose(nu, case.velocities(repr), **CLOSE)
        energy = case.get(dynamics.kinetic_energy)
        np.testing.assert_allclose(0.5 * nu @ case.get(dynamics.mass_matrix, repr=repr) @ nu, energy, rtol=1e-10)
        twist = case.get(dynamics.link_velocities, repr=VelRepr.MIXED)[-1]
        J = case.get(dynamics.link_jacobians, repr=repr, out_repr=VelRepr.MIXED)[-1]
        np.testing.assert_allclose(J @ nu, twist, **CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("repr", REPRESENTATIONS)
def test_setting_is_the_inverse_of_reading(rng, by_numpy, repr):
    """Flat and dense velocities, numbers and arrays; coordinates stay."""
    model, state = two_kinds(rng)
    before, q = state.joint_qd.numpy().copy(), state.joint_q.numpy().copy()
    nu = dynamics.velocity(model, state, repr)
    state.joint_qd.fill_(9.0)
    dynamics.set_velocity(model, state, nu, repr)
    np.testing.assert_allclose(state.joint_qd.numpy(), before, **CLOSE)
    wanted = rng.normal(size=nu.shape)
    dynamics.set_velocity(model, state, wanted, repr=repr)
    counts = np.diff(model.joint_qd_start.numpy()[[0, *model.articulation_end.numpy()]])
    found = dynamics.velocity(model, state, repr=repr).numpy()
    for a, n in enumerate(counts):
        np.testing.assert_allclose(found[a, :n], wanted[a, :n], **CLOSE)
        assert not found[a, n:].any()
    flat = np.concatenate([row[:n] for row, n in zip(wanted, counts, strict=True)])
    dynamics.set_velocity(model, state, flat, repr=repr)
    np.testing.assert_allclose(dynamics.velocity(model, state, repr=repr).numpy(), found, **CLOSE)
    np.testing.assert_array_equal(state.joint_q.numpy(), q)


def test_a_mechanism_state_reads_and_sets_representations(rng, by_numpy):
    model, state = two_kinds(rng)
    mechanism = MechanismState(model, state)
    body = mechanism.velocity(repr=VelRepr.BODY)
    np.testing.assert_array_equal(body.numpy(), dynamics.velocity(model, state, VelRepr.BODY).numpy())
    wanted = body.numpy() + 1.0
    mechanism.set_velocity(wanted, repr=VelRepr.BODY)
    dofs = int(model.joint_qd_start.numpy()[model.articulation_start.numpy()[1]])
    set_there = mechanism.velocity(repr=VelRepr.BODY).numpy()[0, :dofs]
    np.testing.assert_allclose(set_there, wanted[0, :dofs], **CLOSE)
    dynamics.set_velocity(model, state, wanted, VelRepr.BODY)
    np.testing.assert_allclose(mechanism.joint_qd.numpy(), state.joint_qd.numpy(), **CLOSE)
    with pytest.raises(TypeError, match="repr"):
        mechanism.velocity(0, repr=VelRepr.BODY)
    with pytest.raises(TypeError, match="repr"):
        mechanism.set_velocity(wanted, world=0, repr=VelRepr.BODY)


@pytest.mark.slow
def test_gradients_reach_coordinates_and_velocities_both_ways(rng):
    model, state = two_kinds(rng, requires_grad=True)
    q, v = state.joint_q.numpy().copy(), state.joint_qd.numpy().copy()

    def there_and_back(q, v):
        moved = model.state()
        wp.copy(moved.joint_q, q)
        dynamics.set_velocity(model, moved, v, VelRepr.INERTIAL)
        return [moved.joint_qd, dynamics.velocity(model, moved, VelRepr.BODY)]

    assert max(gradient_errors(there_and_back, [q, v], rng, 2)) < 1e-6


def test_what_cannot_be_set_is_refused(rng):
    model, state = two_kinds(rng, wp.float32)
    nu = np.zeros(model.joint_dof_count)
    with pytest.raises(ValueError, match="repr"):
        dynamics.velocity(model, state, 7)
    with pytest.raises(ValueError, match="repr"):
        dynamics.set_velocity(model, state, nu, "body")
    with pytest.raises(ValueError, match="velocity"):
        dynamics.set_velocity(model, state, nu[1:])
    with pytest.raises(ValueError, match="velocity"):
        dynamics.set_velocity(model, state, nu + np.nan)
    state.joint_q.fill_(np.nan)
    with pytest.raises(ValueError, match=r"state\.joint_q"):
        dynamics.set_velocity(model, state, nu)
    with pytest.raises(ValueError, match=r"state\.joint_q"):
        dynamics.joint_positions(model, state)
    state.joint_q.assign(model.joint_q)
    with pytest.raises(TypeError, match="velocity"):
        dynamics.set_velocity(model, state, None)
    given = wp.zeros(len(nu), dtype=wp.float32, requires_grad=True)
    with wp.Tape(), pytest.raises(ValueError, match=r"joint_qd.*gradient"):
        dynamics.set_velocity(model, state, given)
