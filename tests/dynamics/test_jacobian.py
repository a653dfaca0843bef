"""eval_jacobian: J qd == body_qd, against the definitions, with its gradients and refusals."""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, eval_fk, eval_jacobian
from tests.support import reference
from tests.support.kinematic_cases import NARROW, every_kind, forest, gradient_errors, moving_state, use_width
from tests.support.random_trees import random_tree

# Columns are lengths of a few metres after some hundred roundings of 6e-8 (float32) or 1e-16.
TOLERANCE = {wp.float32: 1e-5, wp.float64: 1e-13}


class Coordinates:
    """The arrays of a state that `eval_jacobian` reads."""

    def __init__(self, joint_q):
        self.joint_q = joint_q


def shape_of(model):
    return (model.articulation_count, 6 * model.max_joints_per_articulation, model.max_dofs_per_articulation)


def parts(model):
    """Joints, dofs and links of every articulation."""
    start, end = model.articulation_start.numpy(), model.articulation_end.numpy()
    first, child = model.joint_qd_start.numpy(), model.joint_child.numpy()
    for a in range(model.articulation_count):
        yield a, slice(first[start[a]], first[end[a]]), child[start[a] : end[a]]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dtype"), NARROW)
def test_jacobian_times_velocities_are_the_velocities_of_bodies(rng, monkeypatch, width, dtype):
    use_width(monkeypatch, width)
    scene = forest(rng, worlds=19)
    scene.add_world(every_kind(rng))
    model = scene.finalize("cpu", dtype=dtype)
    state, _, qd = moving_state(model, rng)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    J = eval_jacobian(model, state)
    assert J.shape == shape_of(model)
    assert J.dtype is dtype
    for a, dofs, links in parts(model):
        rows, columns = 6 * len(links), dofs.stop - dofs.start
        matrix = J.numpy()[a]
        moved = (matrix[:rows, :columns] @ qd[dofs]).reshape(-1, 6)
        # a sum over up to 40 dofs of some m/s each
        np.testing.assert_allclose(moved, state.body_qd.numpy()[links], rtol=0.0, atol=20.0 * TOLERANCE[dtype])
        assert not matrix[rows:].any()
        assert not matrix[:, columns:].any()


def test_columns_follow_from_the_definitions(rng):
    for _ in range(5):
        model = random_tree(rng).finalize("cpu", dtype=wp.float64)
        state, q, _ = moving_state(model, rng)
        tree = reference.Tree.from_model(model)
        expected = reference.jacobian(tree, q)[model.joint_child.numpy()]
        np.testing.assert_allclose(
            eval_jacobian(model, state).numpy()[0], expected.reshape(-1, model.joint_dof_count), rtol=0.0, atol=1e-13
        )


def test_poses_of_bodies_are_not_read(rng):
    model = random_tree(rng).finalize("cpu")
    state, _, _ = moving_state(model, rng)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    expected = eval_jacobian(model, state).numpy()
    state.body_q.fill_(np.nan)
    np.testing.assert_array_equal(eval_jacobian(model, state).numpy(), expected)


def test_nothing_to_do_has_an_answer():
    empty = ModelBuilder().finalize("cpu")
    assert eval_jacobian(empty, empty.state()) is None
    builder = ModelBuilder()
    builder.add_articulation([builder.add_joint_fixed(-1, builder.add_link(mass=1.0, inertia=np.eye(3)))])
    fixed = builder.finalize("cpu")
    assert eval_jacobian(fixed, fixed.state()).shape == (1, 6, 0)
    # beside a robot that moves, the one that cannot has a matrix of zeros
    builder.add_body(mass=1.0, inertia=np.eye(3))
    both = builder.finalize("cpu")
    J = wp.full((2, 6, 6), 7.0, dtype=wp.float32, device="cpu")
    eval_jacobian(both, both.state(), J)
    np.testing.assert_array_equal(J.numpy(), [np.zeros((6, 6)), np.eye(6)])


def test_gradients_are_those_of_central_differences(rng):
    model = forest(rng, worlds=2, robots=1, joints=6).finalize("cpu", dtype=wp.float64)

    def matrix(joint_q):
        return [eval_jacobian(model, Coordinates(joint_q))]

    _, q, _ = moving_state(model, rng)
    # central differences: rounding 1e-16 / 1e-6 of values of some 10, and third derivatives times 1e-12
    assert max(gradient_errors(matrix, [q], rng)) < 1e-7


def test_wrong_arguments_are_refused(rng):
    model = forest(rng, worlds=2).finalize("cpu")
    state = model.state()
    right = shape_of(model)
    with pytest.raises(ValueError, match=r"J.*\(1, 2, 3\).*\(4, 48, \d+\)"):
        eval_jacobian(model, state, wp.zeros((1, 2, 3), dtype=wp.float32, device="cpu"))
    with pytest.raises(TypeError, match=r"J.*float64.*float32"):
        eval_jacobian(model, state, wp.zeros(right, dtype=wp.float64, device="cpu"))
    with pytest.raises(ValueError, match=r"mask.*\(2,\).*\(4,\)"):
        eval_jacobian(model, state, mask=[True, False])
    # Newton's fourth argument is its working memory, and not the mask
    with pytest.raises(TypeError, match=r"joint_S_s .*mask="):
        eval_jacobian(model, state, None, [True] * 4)
    memory = wp.zeros(model.joint_dof_count, dtype=wp.spatial_vector, device="cpu")
    one = wp.array(np.arange(4) == 0, dtype=wp.bool, device="cpu")
    chosen = eval_jacobian(model, state, None, memory, one).numpy()
    np.testing.assert_array_equal(chosen[0], eval_jacobian(model, state).numpy()[0])
    assert not chosen[1:].any()
    with pytest.raises(ValueError, match=r"state.joint_q .*shape"):
        eval_jacobian(model, Coordinates(state.joint_qd))
