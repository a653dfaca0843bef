"""Torsional and rolling friction, MuJoCo's softness, and round shapes: closed forms."""

import numpy as np
import pytest

import newton_like as nl
from newton_like.solvers import SolverFeatherstone
from tests.solvers.xpbd.scenes import after, started, with_all_programs, xpbd

pytestmark = pytest.mark.slow
"""These tests share a kernel with lines and laws of contacts, which takes as long to compile as all others of this folder."""

GRAVITY, RADIUS = 9.81, 0.1


def ball(kind: str = "sphere", **material) -> nl.ModelBuilder:
    """A ball or a wheel on a plane, both of one material."""
    builder = nl.ModelBuilder()
    builder.add_ground_plane(cfg=nl.ShapeConfig(mu=0.8, **material))
    turned = (0, 0, 0, 1) if kind == "sphere" else (2**-0.5, 0, 0, 2**-0.5)
    body = builder.add_body(xform=(0, 0, RADIUS, *turned))
    config = nl.ShapeConfig(mu=0.8, **material)
    if kind == "sphere":
        builder.add_shape_sphere(body, radius=RADIUS, cfg=config)
    else:
        builder.add_shape_cylinder(body, radius=RADIUS, half_height=0.05, cfg=config)
    with_all_programs(builder)
    return builder


def velocities(model, velocity) -> np.ndarray:
    return np.append(velocity, np.zeros(model.joint_dof_count - 6))


@pytest.mark.parametrize(("kind", "share"), [("sphere", 0.4), ("cylinder", 0.5)])
def test_a_ball_that_rolls_keeps_rolling(kind, share, rng):
    """Without rolling friction it keeps its velocity; with it, the velocity falls by mu g / (r (1 + I / m r^2)) a second."""
    speed, time = rng.uniform(0.8, 1.2), 0.5
    for rolling in (0.0, 0.004):
        model = ball(kind, mu_rolling=rolling).finalize("cpu")
        state = started(model, joint_qd=velocities(model, [speed, 0, 0, 0, speed / RADIUS, 0]))
        after(xpbd(model), state, time, 1 / 240)
        wanted = speed - time * rolling * GRAVITY / (RADIUS * (1.0 + share))
        assert state.body_qd.numpy()[0, 0] == pytest.approx(wanted, abs=2e-3)
        assert state.body_qd.numpy()[0, 4] == pytest.approx(wanted / RADIUS, abs=2e-2)
        # it does not sink: the softness of the contact is below a tenth of a millimetre
        assert state.body_q.numpy()[0, 2] == pytest.approx(RADIUS, abs=1e-4)


def test_a_ball_that_spins_slows_down(rng):
    """The torque is mu m g, until it rests."""
    spin, torsional = rng.uniform(8.0, 12.0), 0.01
    model = ball(mu_torsional=torsional).finalize("cpu")
    slower = torsional * GRAVITY / (0.4 * RADIUS**2)
    state, solver = started(model, joint_qd=velocities(model, [0, 0, 0, 0, 0, spin])), xpbd(model)
    after(solver, state, 0.25, 1 / 240)
    assert state.body_qd.numpy()[0, 5] == pytest.approx(spin - 0.25 * slower, rel=1e-4)
    after(solver, state, 0.5, 1 / 240)
    assert abs(state.body_qd.numpy()[0, 5]) < 1e-6


def test_rolling_friction_is_opposite_to_the_spin(rng):
    """Also of a body that is easier to turn about one axis: its angular momentum changes along its angular velocity."""
    builder = nl.ModelBuilder()
    builder.add_ground_plane(cfg=nl.ShapeConfig(mu=0.0, mu_rolling=0.01))
    inertia = np.diag([0.004, 0.016, 0.018])
    body = builder.add_body(xform=(0, 0, RADIUS, 0, 0, 0, 1), mass=1.0, inertia=inertia)
    builder.add_shape_sphere(body, radius=RADIUS, cfg=nl.ShapeConfig(density=0.0, mu=0.0, mu_rolling=0.01))
    with_all_programs(builder)
    model = builder.finalize("cpu")
    spin = 3.0 * np.array([np.cos(turn := rng.uniform(0.5, 1.0)), np.sin(turn), 0.0])
    state = started(model, joint_qd=velocities(model, [0, 0, 0, *spin]))
    # the normal impulse is there from the second step on
    solver = xpbd(model)
    after(solver, state, 2 / 240, 1 / 240)
    before = state.body_qd.numpy()[0, 3:].astype(float)
    after(solver, state, 1 / 240, 1 / 240)
    change = inertia @ (state.body_qd.numpy()[0, 3:] - before)
    wanted = -0.01 * GRAVITY / 240 * before / np.linalg.norm(before)
    assert change[:2] == pytest.approx(wanted[:2], rel=0.1)


@pytest.mark.parametrize("impedance", [0.5, 0.9])
def test_a_soft_contact_rests_as_deep_as_mujoco_says(impedance, rng):
    """k d depth = R g / w, with k = 1 / (d time_constant damping_ratio)^2 and R / w = (1 - d) / d, for any mass."""
    time_constant = 0.04
    builder = nl.ModelBuilder()
    SolverFeatherstone.register_custom_attributes(builder)
    builder.add_ground_plane()
    settings = {
        "mujoco:contact_rules": 2, "mujoco:solref": (time_constant, 1.0),
        "mujoco:geom_solimp": (impedance, impedance, 0.001, 0.5, 2.0),
    }  # fmt: skip
    body = builder.add_body(xform=(0, 0, RADIUS, 0, 0, 0, 1))
    density = rng.uniform(100.0, 5000.0)
    builder.add_shape_sphere(body, radius=RADIUS, cfg=nl.ShapeConfig(density=density), custom_attributes=settings)
    with_all_programs(builder)
    model = builder.finalize("cpu")
    state = after(xpbd(model), started(model), 1.0, 1 / 240)
    depth = RADIUS - state.body_q.numpy()[0, 2]
    assert depth == pytest.approx((1.0 - impedance) * GRAVITY * time_constant**2, rel=2e-3)


def test_a_pair_with_settings_is_refused(rng):
    builder = ball()
    SolverFeatherstone.register_custom_attributes(builder)
    builder.add_custom_values(**{"mujoco:pair_geom1": 0, "mujoco:pair_geom2": 1})
    with pytest.raises(ValueError, match="settings"):
        xpbd(builder.finalize("cpu"))
