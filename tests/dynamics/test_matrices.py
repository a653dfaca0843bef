"""Common properties of `eval_jacobian` and `eval_mass_matrix`: selections, and bits that do not depend on other worlds."""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, eval_jacobian, eval_mass_matrix
from tests.support.kinematic_cases import NARROW, forest, moving_state, use_threads, use_width
from tests.support.random_trees import random_tree

FUNCTIONS = pytest.mark.parametrize("function", [eval_jacobian, eval_mass_matrix])


@FUNCTIONS
@pytest.mark.parametrize(("width", "dtype"), NARROW)
def test_matrices_that_are_not_selected_keep_their_bits(rng, monkeypatch, function, width, dtype):
    use_width(monkeypatch, width)
    model = forest(rng, worlds=18).finalize("cpu", dtype=dtype)
    state, _, _ = moving_state(model, rng)
    whole = function(model, state).numpy()
    old = rng.normal(size=whole.shape)
    for mask in (rng.random(len(whole)) < 0.5, np.zeros(len(whole), bool), np.ones(len(whole), bool)):
        matrix = wp.array(old, dtype=dtype, device="cpu")
        before = matrix.numpy().copy()
        assert function(model, state, matrix, mask=mask) is matrix
        np.testing.assert_array_equal(matrix.numpy(), np.where(mask[:, None, None], whole, before))
        alone = function(model, state, mask=mask).numpy()
        np.testing.assert_array_equal(alone, np.where(mask[:, None, None], whole, 0.0))


@FUNCTIONS
def test_a_world_has_the_same_bits_in_any_batch_on_any_number_of_threads(rng, monkeypatch, function):
    tree = random_tree(rng)
    scene = ModelBuilder()
    scene.replicate(tree, 21)
    model = scene.finalize("cpu")
    state, _, _ = moving_state(model, rng)
    expected = function(model, state).numpy()
    use_threads(monkeypatch, 2)
    np.testing.assert_array_equal(function(model, state).numpy(), expected)
    single = tree.finalize("cpu")
    for world in (0, 15, 16, 20):
        n = single.joint_coord_count
        one = single.state()
        one.joint_q.assign(state.joint_q.numpy()[world * n : (world + 1) * n])
        np.testing.assert_array_equal(function(single, one).numpy()[0], expected[world])
