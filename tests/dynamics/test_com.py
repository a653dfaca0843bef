"""Centres of mass in the axes of the first link, and masses, centres and energies of single links: definitions, sums, differences."""

import numpy as np
import pytest
import warp as wp

from newton_like import JointType, MechanismState, ModelBuilder, dynamics
from newton_like.types import VelRepr
from tests.support import reference
from tests.support.dynamics_cases import cases
from tests.support.random_trees import random_state, random_tree

# Sums over ten bodies of products of some hundred roundings of 1e-16, of numbers of up to a hundred.
CLOSE = dict(rtol=1e-11, atol=1e-10)
# Central differences: truncation of 1e-12 times third derivatives, and roundings of 1e-14 over steps of 1e-6 of numbers of up to 1e3.
SMOOTH = dict(rtol=1e-6, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("repr", [None, *VelRepr])
def test_the_centre_of_mass_in_the_axes_of_the_first_link(rng, by_numpy, repr):
    """R^T v in BODY; J nu is the velocity; J nu_dot + J_dot nu is its derivative along a motion, by differences."""
    for case in cases(rng):
        for out_repr in (VelRepr.BODY, VelRepr.INERTIAL):
            R = case.pose()[2] if out_repr == VelRepr.BODY else np.eye(3)
            velocity = case.get(dynamics.com_velocity, out_repr=out_repr)
            np.testing.assert_allclose(velocity, R.T @ case.get(dynamics.com_velocity), **CLOSE)
            J = case.get(dynamics.com_jacobian, repr=repr, out_repr=out_repr)
            np.testing.assert_allclose(J @ case.velocities(repr), velocity, **CLOSE)
            rate = case.along(
                lambda q, qd, c=case, o=out_repr: c.get(dynamics.com_velocity, state=c.at(q, qd), out_repr=o)
            )
            nu_dot = case.along(lambda q, qd, c=case: c.velocities(repr, q, qd))
            bias = case.get(dynamics.com_bias_acceleration, repr=repr, out_repr=out_repr)
            np.testing.assert_allclose(J @ nu_dot + bias, rate, **SMOOTH)


def two_robots(rng):
    """A model of two robots of other sizes in each of two worlds, with a state."""
    scene, trees = ModelBuilder(), [random_tree(rng, joints=n, label=f"robot_{n}") for n in (5, 3)]
    for world in range(2):
        scene.begin_world(gravity=rng.normal(size=3))
        for tree in trees:
            scene.add_builder(tree, label_prefix=f"w{world}")
        scene.end_world()
    model = scene.finalize("cpu", dtype=wp.float64)
    state = model.state()
    state.joint_q.assign(random_state(model, rng)[0])
    return model, state


def test_links_have_shares_of_the_mechanism(rng, by_numpy):
    """Masses, centres of mass and energies of links agree with the reference and with their sums; missing links have zeros."""
    model, state = two_robots(rng)
    q = state.joint_q.numpy()
    total, energy = dynamics.total_mass(model).numpy(), dynamics.potential_energy(model, state).numpy()
    com = dynamics.com_position(model, state).numpy()
    masses, moments, energies = np.zeros_like(total), np.zeros_like(com), np.zeros_like(energy)
    for link in range(5):
        mass = dynamics.link_mass(model, link).numpy()
        place = dynamics.link_com_position(model, state, link).numpy()
        masses += mass
        moments += mass[:, None] * place
        energies += dynamics.potential_energy(model, state, link).numpy()
        for a in range(model.articulation_count):
            bodies = dynamics.link_bodies(model, a)
            expected = model.body_mass.numpy()[bodies[link]] if link < len(bodies) else 0.0
            assert mass[a] == expected
            if link >= len(bodies):
                assert not place[a].any()
    np.testing.assert_allclose(masses, total, **CLOSE)
    np.testing.assert_allclose(moments, total[:, None] * com, **CLOSE)
    np.testing.assert_allclose(energies, energy, **CLOSE)
    for world in range(2):
        tree = reference.Tree.from_model(model, world)
        centres = reference._centres(tree, q.reshape(2, -1)[world])
        own = list(tree.bodies).index(dynamics.link_bodies(model, 2 * world)[1])
        np.testing.assert_allclose(
            dynamics.link_com_position(model, state, 1).numpy()[2 * world], centres[own], **CLOSE
        )
    mechanism = MechanismState(model, state)
    kept = mechanism.gravitational_potential_energy("robot_5_link_2")
    assert mechanism.gravitational_potential_energy("robot_5_link_2") is kept
    np.testing.assert_array_equal(kept.numpy(), dynamics.potential_energy(model, state, "robot_5_link_2").numpy())
    np.testing.assert_allclose(mechanism.gravitational_potential_energy().numpy(), energy, **CLOSE)


def test_names_of_links_are_checked(rng, by_numpy):
    model, state = two_robots(rng)
    for call in (
        lambda link: dynamics.link_mass(model, link),
        lambda link: dynamics.link_com_position(model, state, link),
        lambda link: dynamics.potential_energy(model, state, link),
    ):
        with pytest.raises(KeyError, match="robot_5_lnk_2"):
            call("robot_5_lnk_2")
        with pytest.raises(IndexError):
            call(5)
    with pytest.raises(TypeError, match="Model"):
        dynamics.total_mass(state)


def test_inertias_in_the_axes_of_their_links_need_no_state(rng, by_numpy):
    model, state = two_robots(rng)
    without = dynamics.link_spatial_inertia(model).numpy()
    np.testing.assert_allclose(without, dynamics.link_spatial_inertia(model, state).numpy(), **CLOSE)
    with pytest.raises(TypeError, match="state"):
        dynamics.link_spatial_inertia(model, repr=VelRepr.MIXED)


def test_base_links_are_those_that_first_joints_move(rng):
    floating, fixed = (random_tree(rng, joints=4, floating=f, label=f"floating_{f}") for f in (True, False))
    for tree, floats in ((floating, True), (fixed, False)):
        model = tree.finalize("cpu")
        # any joint may be drawn for the first one
        floats = floats or tree.joint_type[0] in (JointType.FREE, JointType.DISTANCE)
        assert dynamics.is_floating_base(model) is floats
        assert dynamics.base_link(model) == model.body_label[tree.joint_child[0]]
    with pytest.raises(IndexError):
        dynamics.base_link(model, 1)
    with pytest.raises(IndexError):
        dynamics.is_floating_base(model, 1)
