"""Rigid contact of symmetric robots: the result does not depend on the order of the points."""

import numpy as np
import pytest

from newton_like.dynamics import ContactPoints, RelaxedRigidContactParameters, RigidContact, integrate
from tests.dynamics.contact.test_soft import CORNERS, box_on_four_points


@pytest.mark.slow
@pytest.mark.parametrize("height", [0.1, 0.4])
def test_a_symmetric_box_stays_where_it_is(height):
    """On relaxed ground, from rest and from a fall: the order of the four points moves it nowhere (JaxSim's bound is 1e-5 m)."""
    builder = box_on_four_points()
    model = builder.finalize("cpu")
    model.evaluator = "general"
    contact = RigidContact(model, ContactPoints(model, CORNERS), parameters=RelaxedRigidContactParameters(), sweeps=10)
    state, q = model.state(), model.joint_q.numpy().copy()
    q[:3] = 0.0, 0.0, height
    state.joint_q.assign(q)
    for _ in range(500):
        integrate(model, state, state, 1e-3, contact=contact)
    q = state.joint_q.numpy()
    assert np.abs(q[:2]).max() < 1e-7
    assert np.abs(q[3:6]).max() < 1e-6
    assert 0.0995 < q[2] < 0.1
