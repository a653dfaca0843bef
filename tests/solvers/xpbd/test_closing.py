"""Joints that are open when they are made, enabled, moved or reset: bodies are pulled together slowly."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from tests.solvers.xpbd.scenes import energy, gaps, momentum, started, xpbd
from tests.support.random_trees import random_inertia, random_transform

# the first step warns of open joints
pytestmark = pytest.mark.filterwarnings("ignore:.*anchors of joint.*apart")

KINDS = ("ball", "fixed", "revolute", "prismatic", "d6")
SPEED = 2.0


def joined(rng, kind: str, far: float, *, enabled: bool):
    """Two bodies without gravity, which a joint that closes a loop would hold together, at places far from each other."""
    builder = nl.ModelBuilder()
    bodies = []
    for _ in range(2):
        mass = rng.uniform(0.5, 2.0)
        bodies.append(builder.add_body(xform=random_transform(rng), mass=mass, inertia=random_inertia(rng, mass, 0.4)))
    options = {}
    if kind in ("revolute", "prismatic"):
        options["axis"] = rng.normal(size=3)
    if kind == "d6":
        options["angular_axes"] = [nl.ModelBuilder.JointDofConfig(axis=axis) for axis in ((1, 0, 0), (0, 1, 0))]
    ends = dict(parent_xform=random_transform(rng, 0.1), child_xform=random_transform(rng, 0.1))
    joint = getattr(builder, f"add_joint_{kind}")(*bodies, enabled=enabled, **ends, **options)
    away = rng.normal(size=3)
    builder.joint_q[7:10] = np.array(builder.joint_q[:3]) + far * away / np.linalg.norm(away)
    model = builder.finalize("cpu", dtype=wp.float64)
    model.set_gravity((0.0, 0.0, 0.0))
    return model, joint


def pulled(model, solver, state, seconds: float) -> tuple[float, object]:
    """The largest kinetic energy on the way, and the state in the end."""
    most = 0.0
    for _ in range(round(240 * seconds)):
        solver.step(state, state)
        most = max(most, energy(model, state, 0.0))
    return most, state


@pytest.mark.parametrize("kind", KINDS)
def test_a_joint_that_is_enabled_while_open_closes_slowly(kind, rng):
    """Anchors meet at `max_depenetration_speed` at most: the bodies get no more energy than their masses have at twice this speed, and no
    momentum."""
    model, _ = joined(rng, kind, far=rng.uniform(0.2, 1.0), enabled=False)
    solver, state = xpbd(model, max_depenetration_speed=SPEED), started(model)
    solver.step(state, state)
    model.joint_enabled.assign(np.arange(model.joint_count) >= 0)
    solver.notify_model_changed(nl.ModelFlags.JOINT_PROPERTIES)
    most, state = pulled(model, solver, state, 2.2)
    assert 1e-3 < most < 0.5 * model.body_mass.numpy().sum() * (2.0 * SPEED) ** 2
    assert np.linalg.norm(momentum(model, state)[0]) < 1e-9
    if kind in ("ball", "fixed", "revolute"):
        assert gaps(model, state).max() < 1e-5
    free = momentum(model, state)
    assert energy(model, state, 0.0) <= most
    assert np.linalg.norm(free[1]) < 1e-6


def test_loops_that_are_open_close_slowly_from_the_start_and_after_a_reset(rng):
    model, _ = joined(rng, "ball", far=0.5, enabled=True)
    solver, state = xpbd(model, max_depenetration_speed=SPEED), started(model)
    bound = 0.5 * model.body_mass.numpy().sum() * (2.0 * SPEED) ** 2
    with pytest.warns(UserWarning, match="m apart"):
        solver.step(state, state)
    for _ in range(2):
        most, state = pulled(model, solver, state, 1.0)
        assert most < bound and gaps(model, state).max() < 1e-5
        solver.reset(state)


def test_a_joint_whose_anchor_is_moved_closes_slowly(rng):
    model, joint = joined(rng, "fixed", far=0.0, enabled=True)
    solver, state = xpbd(model, max_depenetration_speed=SPEED), started(model)
    pulled(model, solver, state, 1.0)
    anchors = model.joint_X_c.numpy().copy()
    anchors[joint] = random_transform(rng, 0.3)
    model.joint_X_c.assign(anchors)
    solver.notify_model_changed(nl.ModelFlags.JOINT_PROPERTIES)
    most, state = pulled(model, solver, state, 2.2)
    assert 1e-3 < most < 0.5 * model.body_mass.numpy().sum() * (2.0 * SPEED) ** 2
    assert gaps(model, state).max() < 1e-5
