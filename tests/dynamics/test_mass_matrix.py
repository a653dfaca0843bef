"""eval_mass_matrix: against the definitions, MuJoCo, and the kinetic energy that bodies have."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import ModelBuilder, ModelFlags, eval_fk, eval_mass_matrix
from tests.support import reference
from tests.support.kinematic_cases import NARROW, every_kind, forest, gradient_errors, moving_state, use_width
from tests.support.mujoco_bridge import MujocoBridge
from tests.support.random_trees import random_tree

# Relative to the largest entry (some 10 to 100 kg m^2): a sum over up to ten bodies of products of a hundred roundings.
TOLERANCE = {wp.float32: 1e-5, wp.float64: 1e-13}


class Coordinates:
    """The arrays of a state that `eval_mass_matrix` reads."""

    def __init__(self, joint_q):
        self.joint_q = joint_q


def by_articulation(model):
    """Index and dofs of every articulation."""
    start, end = model.articulation_start.numpy(), model.articulation_end.numpy()
    first = model.joint_qd_start.numpy()
    for a in range(model.articulation_count):
        yield a, slice(first[start[a]], first[end[a]])


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dtype"), NARROW)
def test_entries_follow_from_the_definitions(rng, monkeypatch, width, dtype):
    use_width(monkeypatch, width)
    model = forest(rng, worlds=18).finalize("cpu", dtype=dtype)
    state, q, _ = moving_state(model, rng)
    H = eval_mass_matrix(model, state)
    n = model.max_dofs_per_articulation
    assert H.shape == (model.articulation_count, n, n)
    assert H.dtype is dtype
    whole = np.zeros((model.joint_dof_count,) * 2)
    for world in range(model.world_count):
        tree = reference.Tree.from_model(model, world)
        whole[np.ix_(tree.dofs, tree.dofs)] = reference.mass_matrix(tree, q[tree.coords])
    for a, dofs in by_articulation(model):
        size, matrix = dofs.stop - dofs.start, H.numpy()[a]
        expected = whole[dofs, dofs]
        tolerance = TOLERANCE[dtype] * np.abs(expected).max()
        np.testing.assert_allclose(matrix[:size, :size], expected, rtol=0.0, atol=tolerance)
        np.testing.assert_array_equal(matrix, matrix.T)
        assert not matrix[size:].any()


def test_mujoco_finds_the_same_matrix(rng):
    for _ in range(5):
        model = random_tree(rng).finalize("cpu", dtype=wp.float64)
        state, q, _ = moving_state(model, rng)
        expected = MujocoBridge(model).mass_matrix(q)
        actual = eval_mass_matrix(model, state).numpy()[0]
        np.testing.assert_allclose(actual, expected, rtol=0.0, atol=1e-11 * np.abs(expected).max())


def test_it_gives_the_kinetic_energy_of_the_bodies(rng):
    """Every joint type: qdT H qd / 2 is the energy of bodies and armature, from `eval_fk` alone."""
    model = every_kind(rng).finalize("cpu", dtype=wp.float64)
    model.joint_armature.assign(rng.uniform(0.0, 0.1, model.joint_dof_count))
    model.notify_changed(ModelFlags.JOINT_DOF_PROPERTIES)
    state, _, qd = moving_state(model, rng)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    H = eval_mass_matrix(model, state).numpy()
    R = Rotation.from_quat(state.body_q.numpy()[:, 3:]).as_matrix()
    v, w = np.split(state.body_qd.numpy(), 2, axis=1)
    inertia = R @ model.body_inertia.numpy() @ R.transpose(0, 2, 1)
    of_body = 0.5 * (model.body_mass.numpy() * (v**2).sum(axis=1) + np.einsum("bi,bij,bj->b", w, inertia, w))
    of = model.joint_articulation.numpy()
    armature = model.joint_armature.numpy()
    for a, dofs in by_articulation(model):
        expected = of_body[model.joint_child.numpy()[of == a]].sum() + 0.5 * armature[dofs] @ qd[dofs] ** 2
        size = dofs.stop - dofs.start
        assert 0.5 * qd[dofs] @ H[a, :size, :size] @ qd[dofs] == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_edits_of_masses_and_armature_count_once_they_are_notified(rng):
    scene = ModelBuilder()
    scene.replicate(random_tree(rng, joints=5), 9)
    model = scene.finalize("cpu", dtype=wp.float64)
    state, q, _ = moving_state(model, rng)
    eval_mass_matrix(model, state)
    model.body_mass.assign(rng.uniform(0.5, 2.0, model.body_count))
    model.joint_armature.assign(rng.uniform(0.0, 1.0, model.joint_dof_count))
    model.notify_changed(ModelFlags.ALL)
    H = eval_mass_matrix(model, state).numpy()
    for world in range(9):
        tree = reference.Tree.from_model(model, world)
        expected = reference.mass_matrix(tree, q[tree.coords])
        np.testing.assert_allclose(H[world], expected, rtol=0.0, atol=1e-13 * np.abs(expected).max())


def test_it_is_the_same_anywhere(rng):
    """A floating robot's inertia does not depend on where it is, not even in its last bit, 1 km away."""
    model = random_tree(rng, floating=True).finalize("cpu")
    state, q, _ = moving_state(model, rng)
    expected = eval_mass_matrix(model, state).numpy()
    q[:3] += 1000.0
    state.joint_q.assign(q)
    np.testing.assert_array_equal(eval_mass_matrix(model, state).numpy(), expected)


def test_armature_may_be_left_out(rng):
    """The result has the same bits as the matrix of the same robot without armature."""
    model = forest(rng).finalize("cpu")
    state, _, _ = moving_state(model, rng)
    rigid = eval_mass_matrix(model, state, include_armature=False).numpy().copy()
    diagonals = np.zeros(rigid.shape[:2])
    for a, dofs in by_articulation(model):
        diagonals[a, : dofs.stop - dofs.start] = model.joint_armature.numpy()[dofs]
    assert np.any(diagonals)
    difference = eval_mass_matrix(model, state).numpy() - rigid
    np.testing.assert_allclose(difference, np.eye(rigid.shape[1]) * diagonals[..., None], rtol=0.0, atol=1e-4)
    model.joint_armature.zero_()
    model.notify_changed(ModelFlags.JOINT_DOF_INERTIAL_PROPERTIES)
    np.testing.assert_array_equal(eval_mass_matrix(model, state).numpy(), rigid)


def test_nothing_to_do_has_an_answer():
    empty = ModelBuilder().finalize("cpu")
    assert eval_mass_matrix(empty, empty.state()) is None
    builder = ModelBuilder()
    builder.add_articulation([builder.add_joint_fixed(-1, builder.add_link(mass=1.0, inertia=np.eye(3)))])
    fixed = builder.finalize("cpu")
    assert eval_mass_matrix(fixed, fixed.state()).shape == (1, 0, 0)
    # beside a robot that moves, the one that cannot has a matrix of zeros
    builder.add_body(mass=2.0, inertia=np.diag([0.1, 0.2, 0.25]))
    both = builder.finalize("cpu")
    H = wp.full((2, 6, 6), 7.0, dtype=wp.float32, device="cpu")
    eval_mass_matrix(both, both.state(), H)
    expected = np.diag([2.0, 2.0, 2.0, 0.1, 0.2, 0.25])
    np.testing.assert_allclose(H.numpy(), [np.zeros((6, 6)), expected], rtol=1e-6, atol=1e-7)


@pytest.mark.slow
def test_gradients_are_those_of_central_differences(rng):
    model = forest(rng, worlds=2, robots=1, joints=6).finalize("cpu", dtype=wp.float64)

    def matrix(joint_q):
        return [eval_mass_matrix(model, Coordinates(joint_q))]

    _, q, _ = moving_state(model, rng)
    # central differences: rounding 1e-16 / 1e-6 of values of some 100, and third derivatives times 1e-12
    assert max(gradient_errors(matrix, [q], rng)) < 1e-7


def test_wrong_arguments_are_refused(rng):
    model = forest(rng, worlds=2).finalize("cpu")
    state = model.state()
    with pytest.raises(ValueError, match=r"H.*\(1, 2, 3\).*\(4, (\d+), \1\)"):
        eval_mass_matrix(model, state, wp.zeros((1, 2, 3), dtype=wp.float32, device="cpu"))
    with pytest.raises(TypeError, match=r"H.*float32"):
        eval_mass_matrix(model, state, np.zeros(3))
    with pytest.raises(TypeError, match=r"mask.*bools.*float64"):
        eval_mass_matrix(model, state, mask=[0.5] * 4)
