"""eval_fk of chosen joints and of bodies with a flag, eval_ik of joints whose children have a flag."""

import numpy as np
import pytest
import warp as wp

from newton_like import BodyFlags, ModelBuilder, eval_fk, eval_ik
from tests.support.kinematic_cases import bodies_at, forest, gradient_errors, moving_state, pose_error, real_array
from tests.support.random_trees import random_state


def moved(model, state, q, qd, **chosen):
    """``body_q`` and ``body_qd`` after a call that starts from the bodies of a state."""
    state = state.clone()
    eval_fk(model, real_array(model, q), real_array(model, qd), state, **chosen)
    return state.body_q.numpy().copy(), state.body_qd.numpy().copy()


def assert_same(actual, expected, tolerance=1e-12):
    assert max(pose_error(actual[0], expected[0])) < tolerance
    np.testing.assert_allclose(actual[1], expected[1], rtol=0.0, atol=10.0 * tolerance)


def test_a_branch_moves_as_if_only_its_joints_had_moved(rng):
    model = forest(rng, worlds=2).finalize("cpu", dtype=wp.float64)
    state, q, qd = moving_state(model, rng)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    ancestor = model.joint_ancestor.numpy()
    chosen = np.zeros(model.joint_count, dtype=bool)
    chosen[rng.choice(model.joint_count, 3, replace=False)] = True
    for joint in range(model.joint_count):  # parents come before children
        chosen[joint] |= ancestor[joint] >= 0 and chosen[ancestor[joint]]
    other_q, other_qd = random_state(model, rng)
    q_of, qd_of = (np.repeat(chosen, np.diff(starts.numpy())) for starts in (model.joint_q_start, model.joint_qd_start))
    expected = bodies_at(model, np.where(q_of, other_q, q), np.where(qd_of, other_qd, qd))
    for mask in (chosen, chosen.tolist(), chosen.astype(np.int8), wp.array(chosen, dtype=wp.bool, device="cpu")):
        assert_same(moved(model, state, other_q, other_qd, joint_mask=mask), expected)
    still = ~np.isin(np.arange(model.body_count), model.joint_child.numpy()[chosen])
    actual = moved(model, state, other_q, other_qd, joint_mask=chosen)
    for now, before in zip(actual, (state.body_q.numpy(), state.body_qd.numpy()), strict=True):
        np.testing.assert_array_equal(now[still], before[still])


def test_a_joint_alone_moves_its_child_and_nothing_behind_it(rng):
    """Bodies behind it stay, also where that tears the joints between."""
    model = forest(rng).finalize("cpu", dtype=wp.float64)
    state, _, _ = moving_state(model, rng)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    q, qd = random_state(model, rng)
    # a fixed joint does not move its child
    dofs = np.diff(model.joint_qd_start.numpy())
    mask = np.arange(model.joint_count) == np.flatnonzero(dofs > 0)[0]
    actual = moved(model, state, q, qd, joint_mask=mask)
    changed = np.any(actual[0] != state.body_q.numpy(), axis=1)
    np.testing.assert_array_equal(np.flatnonzero(changed), model.joint_child.numpy()[mask])


def test_all_joints_and_articulations_that_are_not_chosen(rng):
    model = forest(rng, worlds=2).finalize("cpu", dtype=wp.float64)
    state, q, qd = moving_state(model, rng)
    assert_same(moved(model, state, q, qd, joint_mask=np.ones(model.joint_count, bool)), bodies_at(model, q, qd))
    only = moved(model, state, q, qd, indices=[1], joint_mask=np.ones(model.joint_count, bool))
    assert_same(only, moved(model, state, q, qd, indices=[1]))


def kinematic_base(rng):
    """A floating base and an arm on it, twice; in the second robot the base is kinematic."""
    builder = ModelBuilder()
    for kinematic in (False, True):
        base = builder.add_link(mass=1.0, inertia=np.eye(3), com=rng.normal(size=3), is_kinematic=kinematic)
        arm = builder.add_link(mass=1.0, inertia=np.eye(3), com=rng.normal(size=3))
        anchor = (*rng.normal(size=3), 0.0, 0.0, 0.0, 1.0)
        builder.add_articulation(
            [builder.add_joint_free(base), builder.add_joint_revolute(base, arm, parent_xform=anchor)]
        )
    return builder.finalize("cpu", dtype=wp.float64)


def test_kinematic_bodies_stay_and_carry_the_others(rng):
    model = kinematic_base(rng)
    state, q, qd = moving_state(model, rng)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    other_q, other_qd = random_state(model, rng)
    mixed_q, mixed_qd = other_q.copy(), other_qd.copy()
    mixed_q[8:15], mixed_qd[7:13] = q[8:15], qd[7:13]
    actual = moved(model, state, other_q, other_qd, body_flag_filter=BodyFlags.DYNAMIC)
    assert_same(actual, bodies_at(model, mixed_q, mixed_qd))
    assert_same(moved(model, state, other_q, other_qd, body_flag_filter=3), bodies_at(model, other_q, other_qd))

    found_q, found_qd = (real_array(model, np.full(n, 9.0)) for n in (16, 14))
    eval_ik(model, state, found_q, found_qd, body_flag_filter=BodyFlags.KINEMATIC)
    whole_q, whole_qd = (real_array(model, np.full(n, 9.0)) for n in (16, 14))
    eval_ik(model, state, whole_q, whole_qd)
    base_q, base_qd = np.zeros(16, bool), np.zeros(14, bool)
    base_q[8:15] = base_qd[7:13] = True
    np.testing.assert_array_equal(found_q.numpy(), np.where(base_q, whole_q.numpy(), 9.0))
    np.testing.assert_array_equal(found_qd.numpy(), np.where(base_qd, whole_qd.numpy(), 9.0))


def test_gradients_are_those_of_central_differences(rng):
    model = forest(rng, robots=1, joints=5).finalize("cpu", dtype=wp.float64)
    model.evaluator = "general"  # no compilation
    base, _, _ = moving_state(model, rng)
    eval_fk(model, base.joint_q, base.joint_qd, base)
    mask = rng.random(model.joint_count) < 0.6

    def bodies(joint_q, joint_qd):
        state = base.clone(requires_grad=joint_q.requires_grad)
        eval_fk(model, joint_q, joint_qd, state, joint_mask=mask)
        return state.body_q, state.body_qd

    assert max(gradient_errors(bodies, list(random_state(model, rng)), rng, directions=20)) < 1e-7


def test_wrong_masks_are_refused(rng):
    model = forest(rng).finalize("cpu")
    state = model.state()
    for mask, error in (([True], ValueError), ([0.5] * model.joint_count, TypeError), ("all", TypeError)):
        with pytest.raises(error, match="joint_mask"):
            eval_fk(model, state.joint_q, state.joint_qd, state, joint_mask=mask)
