"""Forces along joints that leave a body free, against the solver in generalized coordinates."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like.solvers import SolverFeatherstone
from newton_like.types import JointTargetMode
from tests.solvers.xpbd.scenes import after, started, xpbd
from tests.support.random_trees import random_inertia, random_transform

NONE, VELOCITY, EFFORT = (int(JointTargetMode[name]) for name in ("NONE", "VELOCITY", "EFFORT"))


def two_bodies(rng):
    """A free body, and one that a distance joint without limits leaves free; without gravity."""
    builder = nl.ModelBuilder()
    masses = rng.uniform(0.5, 2.0, 2)
    bodies = [builder.add_link(mass=mass, inertia=random_inertia(rng, mass, 0.3)) for mass in masses]
    free = builder.add_joint_free(bodies[0], parent_xform=random_transform(rng))
    far = builder.add_joint_distance(*bodies, max_distance=-1.0, parent_xform=random_transform(rng))
    builder.add_articulation([free, far])
    model = builder.finalize("cpu", dtype=wp.float64)
    model.set_gravity((0.0, 0.0, 0.0))
    return model


@pytest.mark.parametrize("damping", [0.0, 0.3], ids=["external", "rows"])
def test_feedforward_forces_act_within_limits_of_effort(damping, rng):
    """`joint_act` acts in all modes within its limit; in the mode of efforts, the limit bounds its sum with `joint_f`."""
    model = two_bodies(rng)
    dofs = model.joint_dof_count
    model.joint_damping.fill_(damping)
    model.joint_target_mode.assign(rng.choice([NONE, EFFORT] if damping == 0.0 else [NONE, VELOCITY, EFFORT], dofs))
    model.joint_target_kd.assign(rng.uniform(0.1, 0.3, dofs))
    model.joint_effort_limit.assign(rng.uniform(0.05, 0.3, dofs))
    control = model.control()
    control.joint_act.assign(rng.uniform(-0.4, 0.4, dofs))
    control.joint_f.assign(rng.uniform(-0.4, 0.4, dofs))
    exact = after(SolverFeatherstone(model, evaluator="general"), started(model), 0.1, 1e-4, control)
    found = after(xpbd(model), started(model), 0.1, 2e-4, control)
    assert abs(found.body_qd.numpy()).max() > 0.01
    assert found.body_qd.numpy() == pytest.approx(exact.body_qd.numpy(), abs=1e-2)


def test_edited_limits_of_effort_act_at_the_next_step(rng):
    model = two_bodies(rng)
    solver, control, start = xpbd(model), model.control(), started(model)
    control.joint_act.assign(np.full(model.joint_dof_count, 5.0))
    seen = []
    for limit in (1.0, 0.5):
        model.joint_effort_limit.fill_(limit)
        solver.notify_model_changed(nl.ModelFlags.JOINT_DOF_PROPERTIES)
        state = start.clone()
        solver.step(state, state, control, dt=1e-4)
        seen.append(state.body_qd.numpy()[1, 3:])
    assert seen[0] == pytest.approx(2.0 * seen[1], rel=1e-3)
    assert abs(seen[1]).min() > 0.0


def test_a_feedforward_force_that_is_no_number_shows(rng):
    model = two_bodies(rng)
    control, state = model.control(), started(model)
    control.joint_act.assign(np.full(model.joint_dof_count, np.nan))
    xpbd(model).step(state, state, control)
    assert np.isnan(state.body_qd.numpy()).any(axis=1).all()
