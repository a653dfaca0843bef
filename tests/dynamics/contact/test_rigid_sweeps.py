"""Rigid contact by code of its own for a model, by sweeps in loops and on a tape: the same bits."""

import numpy as np
import pytest
import warp as wp

from newton_like.dynamics import (
    FlatTerrain,
    RigidContact,
    RigidContactParameters,
    contact_point_positions,
    impact,
    rigid_contact_forces,
)
from newton_like.dynamics.contact.rigid import TRACED_VISITS
from tests.dynamics.contact.test_rigid import general, place
from tests.dynamics.contact.test_soft import box_on_four_points, some_points
from tests.support.kinematic_cases import forest, moving_state


@pytest.mark.slow
def test_sweeps_on_a_tape_do_what_one_program_does(rng):
    """Bit by bit, for trees of different sizes, however many sweeps there are."""
    scene = forest(rng, worlds=3, robots=2, joints=3, floating=True)
    model = scene.finalize("cpu", dtype=wp.float64, requires_grad=True)
    points = some_points(rng, model, 1)
    state, _, _ = moving_state(model, rng)
    height = contact_point_positions(model, state, points).numpy()[points.link >= 0][:, 2]
    law = RigidContactParameters(0.6, 0.02, restitution=0.4)
    contact = RigidContact(model, points, FlatTerrain(np.median(height)), law, sweeps=TRACED_VISITS + 1)

    def results() -> list[np.ndarray]:
        return [a.numpy() for a in (*rigid_contact_forces(model, state, contact), *impact(model, state, contact))]

    expected = results()
    assert (expected[0] != 0.0).any()
    with wp.Tape():
        taped = results()
    for a, b in zip(expected, taped, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_specialised_sweeps_do_what_general_ones_do():
    """Bit by bit, with more visits than are unrolled."""
    model = general(box_on_four_points(), wp.float32)
    state = place(model.state(), [0, 0, 0.1, 0.1, 0, 0, 1], [0.3, -0.2, -1.0, 0.1, 0.2, 0.3])
    contact = RigidContact(model, sweeps=TRACED_VISITS)
    expected = rigid_contact_forces(model, state, contact)
    assert (expected.points.numpy() != 0.0).any()
    model.evaluator = "specialised"
    for a, b in zip(expected, rigid_contact_forces(model, state, contact), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
