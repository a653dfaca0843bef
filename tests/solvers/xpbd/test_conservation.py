"""Momentum, angular momentum and energy of motion without external forces."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from tests.solvers.xpbd.scenes import after, energy, momentum, pendulum, random_chain, random_coordinates, started, xpbd


@pytest.mark.filterwarnings("ignore:.*nearly vanishes.*")
@pytest.mark.parametrize("kind", ["revolute", "ball", "d621"])
def test_free_flight_keeps_momentum_to_rounding(kind, rng):
    """Impulses of a joint act at one point: they change no momentum, even where joints have not converged. Damping and friction do not
    either."""
    dof = {} if kind == "ball" else {"damping": 0.1, "friction": 0.1}
    model = random_chain(rng, kind, floating=True, links=3, **dof).finalize("cpu", dtype=wp.float64)
    model.set_gravity((0.0, 0.0, 0.0))
    state = started(model, random_coordinates(model, rng), rng.normal(size=model.joint_dof_count))
    before = momentum(model, state)
    after(xpbd(model, substeps=2, iterations=1), state, 1.0, 1 / 240)
    now = momentum(model, state)
    size = sum(np.linalg.norm(x) for x in before)
    # rounding of 480 sub-steps in double precision; 1e-15 and 2e-14 were found
    assert np.linalg.norm(now[0] - before[0]) < 1e-14 * size
    assert np.linalg.norm(now[1] - before[1]) < 2e-13 * size


def test_momentum_is_kept_in_single_precision(rng):
    model = random_chain(rng, "revolute", floating=True, links=3).finalize("cpu")
    model.set_gravity((0.0, 0.0, 0.0))
    state = started(model, random_coordinates(model, rng), rng.normal(size=model.joint_dof_count))
    before = momentum(model, state)
    after(xpbd(model), state, 1.0, 1 / 240)
    now = momentum(model, state)
    size = sum(np.linalg.norm(x) for x in before)
    # 1920 sub-steps round by 6e-8 each: 1e-4 if all errors add; 3e-5 was found
    assert max(np.linalg.norm(a - b) for a, b in zip(before, now, strict=True)) < 1e-4 * size


def test_a_double_pendulum_keeps_its_energy(rng):
    """The rods fall by 0.5 m and 1.5 m, and exchange 19.6 J. 5 s change less than 2 mJ; half the time step changes less."""
    model = pendulum(2).finalize("cpu", dtype=wp.float64)
    drift = []
    for dt in (1 / 120, 1 / 240):
        state = started(model)
        start = energy(model, state)
        after(xpbd(model), state, 5.0, dt)
        drift.append(abs(energy(model, state) - start))
    # the energy of a leapfrog oscillates with the square of the time step; found: 0.7 mJ and 0.14 mJ
    assert drift[0] < 2e-3
    assert drift[1] < 0.5 * drift[0]


def test_collisions_keep_momentum(rng):
    builder = nl.ModelBuilder(gravity=0.0)
    for x in (-0.5, 0.5):
        ball = builder.add_body(xform=(x, 0.02 * rng.normal(), 0, 0, 0, 0, 1))
        builder.add_shape_sphere(ball, radius=0.1, cfg=nl.ShapeConfig(mu=0.4, restitution=0.5))
    model = builder.finalize("cpu")
    state = started(model, joint_qd=[1, 0, 0, 0, 0, 3, -2, 0, 0, 0, 1, 0])
    before = momentum(model, state)
    after(xpbd(model), state, 1.0, 1 / 240)
    now = momentum(model, state)
    assert state.body_qd.numpy()[0, 0] < 0.5
    # 1920 sub-steps round by 6e-8 each: 1e-4 if all errors add; 2e-5 was found
    for a, b in zip(before, now, strict=True):
        assert np.linalg.norm(a - b) < 1e-4 * (np.linalg.norm(a) + 1.0)
