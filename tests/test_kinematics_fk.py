"""eval_fk against poses and velocities from the definitions and from MuJoCo; masks, bits, gradients, errors."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

from newton_like import JointType, ModelBuilder, ModelFlags, eval_fk, eval_ik, eval_jacobian, eval_mass_matrix
from newton_like.programs.robot import general_kernel
from newton_like.threads import run_shared
from tests.support import reference
from tests.support.kinematic_cases import (
    EVERY_PRECISION,
    NARROW,
    bodies_at,
    every_kind,
    forest,
    gradient_errors,
    moving_state,
    pose_error,
    real_array,
    use_threads,
    use_width,
)
from tests.support.mujoco_bridge import MujocoBridge
from tests.support.random_trees import random_state, random_transform, random_tree
from tests.support.tensor import Tensor

# Trees of eight joints reach a few metres and metres a second. Each of some hundred operations rounds by 6e-8 (float32)
# or 1e-16 (float64) of that; the largest seen error is 4 times smaller.
TOLERANCE = {wp.float32: 1e-5, wp.float64: 2e-14}


def check(model, q, qd, body_q, body_qd, tolerance):
    """Compares with the definitions at the coordinates the engine was given, that is, rounded to its scalar type."""
    real = np.float32 if model.dtype is wp.float32 else np.float64
    q, qd = q.astype(real).astype(np.float64), qd.astype(real).astype(np.float64)
    for world in range(model.world_count):
        tree = reference.Tree.from_model(model, world)
        offset, angle = pose_error(body_q[tree.bodies], reference.body_poses(tree, q[tree.coords]))
        assert offset < tolerance
        assert angle < tolerance
        velocity = reference.body_velocities(tree, q[tree.coords], qd[tree.dofs])
        np.testing.assert_allclose(body_qd[tree.bodies], velocity, rtol=0.0, atol=10.0 * tolerance)


@pytest.mark.slow
@EVERY_PRECISION
def test_poses_and_velocities_follow_from_the_definitions(rng, monkeypatch, width, dtype):
    """All joint types in random trees, in batches that fill no block, one block, and more than one."""
    use_width(monkeypatch, width)
    for worlds in (1, 16, 19):
        model = forest(rng, worlds).finalize("cpu", dtype=dtype)
        q, qd = random_state(model, rng)
        check(model, q, qd, *bodies_at(model, q, qd), TOLERANCE[dtype])


@pytest.mark.parametrize("moving", [False, True])
def test_every_joint_type_on_a_resting_and_on_a_moving_parent(rng, moving):
    model = every_kind(rng, moving).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    check(model, q, qd, *bodies_at(model, q, qd), TOLERANCE[wp.float64])


def test_mujoco_finds_the_same_bodies(rng):
    for _ in range(6):
        model = random_tree(rng, joints=7).finalize("cpu", dtype=wp.float64)
        q, qd = random_state(model, rng)
        body_q, body_qd = bodies_at(model, q, qd)
        bridge = MujocoBridge(model)
        bridge.set_state(q, qd)
        # MuJoCo normalises quaternions and sums along the tree in another order: a hundred roundings more.
        offset, angle = pose_error(body_q, bridge.body_q())
        assert max(offset, angle) < 1e-12
        np.testing.assert_allclose(body_qd, bridge.body_qd(), rtol=0.0, atol=1e-11)


def test_quaternions_are_normalised_on_the_way(rng):
    model = forest(rng, types=(JointType.BALL, JointType.FREE, JointType.DISTANCE)).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    longer, end = q.copy(), model.joint_q_start.numpy()[1:]
    for e in end:
        longer[e - 4 : e] *= rng.uniform(0.5, 2.0)
    for actual, expected in zip(bodies_at(model, longer, qd), bodies_at(model, q, qd), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=0.0, atol=1e-13)


def test_floats_lose_no_digits_between_the_bodies_of_a_robot_far_away(rng):
    model = random_tree(rng, floating=True).finalize("cpu")
    q, qd = random_state(model, rng)
    here_q, here_qd = bodies_at(model, q, qd)
    q[:3] += 1000.0
    there_q, there_qd = bodies_at(model, q, qd)
    # everything is worked out relative to the base
    np.testing.assert_array_equal(there_q[:, 3:], here_q[:, 3:])
    np.testing.assert_array_equal(there_qd, here_qd)
    # only the result is rounded: floats from 1024 to 2048 are 1.2e-4 m apart, and a difference has two roundings
    base = model.joint_child.numpy()[0]
    apart = there_q[:, :3] - there_q[base, :3]
    np.testing.assert_allclose(apart, here_q[:, :3] - here_q[base, :3], rtol=0.0, atol=1.3e-4)


def test_worlds_may_differ_in_every_number_of_the_model(rng):
    model = forest(rng, worlds=18, robots=1).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    bodies_at(model, q, qd)
    n = model.joint_count
    for name in ("joint_X_p", "joint_X_c"):
        getattr(model, name).assign(np.stack([random_transform(rng) for _ in range(n)]))
    model.body_com.assign(0.2 * rng.normal(size=(model.body_count, 3)))
    model.notify_changed(ModelFlags.ALL)
    check(model, q, qd, *bodies_at(model, q, qd), TOLERANCE[wp.float64])


def interleaved(rng) -> ModelBuilder:
    """Two arms whose links were added in turns, so that neither has a stretch of body arrays of its own; those of the second one from the
    last to the first."""
    builder = ModelBuilder()
    links = [builder.add_link(mass=1.0, com=0.1 * rng.normal(size=3), inertia=np.eye(3)) for _ in range(8)]
    for chain in (links[::2], links[::-2]):
        parent, joints = -1, []
        for link in chain:
            frames = {"parent_xform": random_transform(rng), "child_xform": random_transform(rng)}
            joints.append(builder.add_joint_revolute(parent, link, axis=rng.normal(size=3), **frames))
            parent = link
        builder.add_articulation(joints)
    return builder


@pytest.mark.parametrize(("width", "dtype"), NARROW)
def test_articulations_may_share_a_stretch_of_bodies(rng, monkeypatch, width, dtype):
    use_width(monkeypatch, width)
    scene = ModelBuilder()
    scene.replicate(interleaved(rng), 18)
    model = scene.finalize("cpu", dtype=dtype)
    q, qd = random_state(model, rng)
    check(model, q, qd, *bodies_at(model, q, qd), TOLERANCE[dtype])
    mask = rng.random(model.articulation_count) < 0.5
    state = model.state()
    before = state.body_q.numpy().copy()
    eval_fk(model, real_array(model, q), real_array(model, qd), state, mask=mask)
    chosen = np.zeros(model.body_count, bool)
    chosen[model.joint_child.numpy()] = mask[model.joint_articulation.numpy()]
    np.testing.assert_array_equal(state.body_q.numpy()[~chosen], before[~chosen])
    np.testing.assert_array_equal(state.body_q.numpy()[chosen], bodies_at(model, q, qd)[0][chosen])


def selections(mask: np.ndarray):
    """The same articulations as mask.*indices of all kinds."""
    chosen = np.flatnonzero(mask)
    yield {"mask": mask}
    yield {"mask": mask.tolist()}
    yield {"mask": mask.astype(np.int32)}
    yield {"mask": wp.array(mask, dtype=wp.bool, device="cpu")}
    yield {"mask": wp.array(mask.astype(np.int32), dtype=wp.int32, device="cpu")}
    yield {"indices": chosen}
    yield {"indices": chosen.tolist()[::-1] * 2}
    yield {"indices": wp.array(chosen, dtype=wp.int32, device="cpu")}


@pytest.mark.parametrize(("width", "dtype"), NARROW)
def test_bodies_that_are_not_selected_keep_their_bits(rng, monkeypatch, width, dtype):
    use_width(monkeypatch, width)
    model = forest(rng, worlds=37).finalize("cpu", dtype=dtype)
    q, qd = random_state(model, rng)
    all_q, all_qd = bodies_at(model, q, qd)
    of = np.full(model.body_count, -1)
    of[model.joint_child.numpy()] = model.joint_articulation.numpy()
    count = model.articulation_count
    # some of every block; whole blocks; one alone; none; all
    masks = [rng.random(count) < 0.4, np.arange(count) < 35, np.arange(count) == 17, np.zeros(count, bool)]
    for mask in [*masks, np.ones(count, bool)]:
        for selection in selections(mask):
            state = model.state()
            state.body_q.assign(rng.normal(size=(model.body_count, 7)))
            state.body_qd.assign(rng.normal(size=(model.body_count, 6)))
            before_q, before_qd = state.body_q.numpy().copy(), state.body_qd.numpy().copy()
            eval_fk(model, real_array(model, q), real_array(model, qd), state, **selection)
            chosen = mask[of][:, None]
            np.testing.assert_array_equal(state.body_q.numpy(), np.where(chosen, all_q, before_q))
            np.testing.assert_array_equal(state.body_qd.numpy(), np.where(chosen, all_qd, before_qd))


def test_a_mask_on_the_device_is_read_in_every_call(rng):
    model = forest(rng, worlds=5).finalize("cpu")
    state, q, qd = moving_state(model, rng)
    expected, _ = bodies_at(model, q, qd)
    mask = wp.zeros(model.articulation_count, dtype=wp.bool, device="cpu")
    before = state.body_q.numpy().copy()
    eval_fk(model, state.joint_q, state.joint_qd, state, mask=mask)
    np.testing.assert_array_equal(state.body_q.numpy(), before)
    mask.fill_(True)
    eval_fk(model, state.joint_q, state.joint_qd, state, mask=mask)
    np.testing.assert_array_equal(state.body_q.numpy(), expected)


@pytest.mark.parametrize(("width", "dtype"), NARROW)
def test_a_world_has_the_same_bits_in_any_batch_at_any_place_on_any_number_of_threads(rng, monkeypatch, width, dtype):
    use_width(monkeypatch, width)
    tree = random_tree(rng, joints=9)

    def run(q, qd, threads):
        use_threads(monkeypatch, threads)
        scene = ModelBuilder()
        scene.replicate(tree, len(q))
        model = scene.finalize("cpu", dtype=dtype)
        body_q, body_qd = bodies_at(model, q.ravel(), qd.ravel())
        return body_q.reshape(len(q), -1), body_qd.reshape(len(q), -1)

    single = tree.finalize("cpu", dtype=dtype)
    q, qd = (np.stack(x) for x in zip(*[random_state(single, rng) for _ in range(41)], strict=True))
    expected = run(q, qd, 1)
    for threads, chosen in (
        (2, np.arange(41)),
        (3, rng.permutation(41)),
        (1, rng.permutation(41)[:16]),
        (1, rng.permutation(41)[:7]),
        (2, rng.permutation(41)[:1]),
    ):
        for actual, one in zip(run(q[chosen], qd[chosen], threads), expected, strict=True):
            np.testing.assert_array_equal(actual, one[chosen])


def test_whoever_is_free_takes_the_next_piece(rng, monkeypatch):
    """Every block is done once, also when a thread comes late."""
    use_threads(monkeypatch, 3)
    done = []

    class Piece:
        def __init__(self, i, worker):
            self.i, self.worker = i, worker

        def launch(self):
            if self.worker == 1:
                time.sleep(0.02)
            done.append(self.i)

    for pieces in (1, 2, 3, 12):
        done.clear()
        run_shared([[Piece(i, worker) for i in range(pieces)] for worker in range(3)])
        assert sorted(done) == list(range(pieces))
    model = forest(rng, worlds=50, robots=1).finalize("cpu")
    launched = []
    monkeypatch.setattr(
        "newton_like.programs.recording.run_shared",
        lambda workers: (launched.append(len(workers)), run_shared(workers)),
    )
    bodies_at(model, *random_state(model, rng))
    assert launched == [3]


@pytest.mark.slow
def test_zeros_are_positive(rng, monkeypatch):
    """Zeros of either sign compare equal but differ in their bits."""
    model = every_kind(rng, moving=False).finalize("cpu")
    q, _ = random_state(model, rng)
    for width in (1, None):
        use_width(monkeypatch, width)
        _, body_qd = bodies_at(model, q, np.zeros(model.joint_dof_count))
        assert not np.signbit(body_qd).any()


def test_joints_outside_of_articulations_play_no_role(rng):
    plain = random_tree(np.random.default_rng(7), joints=6)
    looped = random_tree(np.random.default_rng(7), joints=6)
    looped.add_joint_revolute(0, 5, axis=(0, 0, 1), parent_xform=random_transform(rng))
    models = [b.finalize("cpu", dtype=wp.float64) for b in (plain, looped)]
    q, qd = random_state(models[1], rng)
    for actual, expected in zip(bodies_at(models[1], q, qd), bodies_at(models[0], q[:-1], qd[:-1]), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_bodies_outside_of_articulations_keep_their_values(rng):
    builder = random_tree(rng, joints=3)
    lonely = builder.add_link(mass=1.0, inertia=np.eye(3), xform=(1, 2, 3, 0, 0, 0, 1))
    builder.add_articulation([builder.add_joint_free(lonely)])
    model = builder.finalize("cpu")
    state = model.state()
    state.body_q.assign(rng.normal(size=(4, 7)))
    before = state.body_q.numpy().copy()
    eval_fk(model, model.joint_q, model.joint_qd, state, indices=[0])
    np.testing.assert_array_equal(state.body_q.numpy()[lonely], before[lonely])
    assert (state.body_q.numpy()[:3] != before[:3]).all(axis=1).any()


def test_nothing_to_do_is_done():
    empty = ModelBuilder().finalize("cpu")
    eval_fk(empty, empty.joint_q, empty.joint_qd, empty.state())
    eval_fk(empty, empty.joint_q, empty.joint_qd, empty.state(), mask=[], indices=None)
    eval_fk(empty, empty.joint_q, empty.joint_qd, empty.state(), indices=[])


def test_articulations_without_degrees_of_freedom_stand_where_their_anchors_are(rng):
    builder = ModelBuilder()
    joints, expected, X = [], [], np.eye(4)
    parent = -1
    for _ in range(4):
        link = builder.add_link(mass=1.0, inertia=np.eye(3))
        here = random_transform(rng)
        joints.append(builder.add_joint_fixed(parent, link, parent_xform=here))
        X = X @ reference.pose_matrix(here)
        expected.append(reference.matrix_pose(X))
        parent = link
    builder.add_articulation(joints)
    scene = ModelBuilder()
    scene.replicate(builder, 3)
    model = scene.finalize("cpu", dtype=wp.float64)
    state = model.state()
    state.body_qd.fill_(1.0)
    eval_fk(model, model.joint_q, model.joint_qd, state)
    assert max(pose_error(state.body_q.numpy(), np.tile(expected, (3, 1)))) < 1e-14
    np.testing.assert_array_equal(state.body_qd.numpy(), np.zeros((12, 6)))


def test_a_model_can_take_the_place_of_the_state(rng):
    model = random_tree(rng).finalize("cpu")
    q, qd = random_state(model, rng)
    eval_fk(model, real_array(model, q), real_array(model, qd), model)
    np.testing.assert_array_equal(model.body_q.numpy(), bodies_at(model, q, qd)[0])


def test_edits_of_the_model_count_once_they_are_notified(rng):
    # of hinges: where nothing turns, centres of mass do not change velocities
    model = random_tree(rng, types=(JointType.REVOLUTE,)).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    before = bodies_at(model, q, qd)
    model.body_com.assign(rng.normal(size=(model.body_count, 3)))
    model.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    after = bodies_at(model, q, qd)
    np.testing.assert_array_equal(after[0], before[0])
    assert np.abs(after[1] - before[1]).max() > 1e-3
    check(model, q, qd, *after, TOLERANCE[wp.float64])


@pytest.mark.slow
def test_gradients_are_those_of_central_differences(rng):
    """Of every joint type on a moving parent, and of random trees."""
    for builder in (every_kind(rng), forest(rng, worlds=2)):
        model = builder.finalize("cpu", dtype=wp.float64)
        # code with a long compile time is interpreted, with the same bits (tests/compiler/test_listing.py)
        model.evaluator = "general"

        def bodies(joint_q, joint_qd, model=model):
            state = model.state(requires_grad=joint_q.requires_grad)
            eval_fk(model, joint_q, joint_qd, state)
            return state.body_q, state.body_qd

        # central differences: rounding 1e-16 / 1e-6 of values of some 10 m, and third derivatives times 1e-12
        assert max(gradient_errors(bodies, list(random_state(model, rng)), rng, directions=40)) < 1e-7


def test_results_without_gradients_are_refused_where_an_input_has_some(rng):
    """The gradient would be zero without an error."""
    model = random_tree(rng, joints=4).finalize("cpu", dtype=wp.float64)
    plain, state = model.state(requires_grad=False), model.state(requires_grad=True)
    shape = (1, model.joint_dof_count, model.joint_dof_count)
    calls = {
        "eval_fk": lambda: eval_fk(model, state.joint_q, state.joint_qd, plain),
        "eval_ik": lambda: eval_ik(model, state, plain.joint_q, plain.joint_qd),
        "eval_mass_matrix": lambda: eval_mass_matrix(model, state, wp.zeros(shape, dtype=wp.float64, device="cpu")),
    }
    for name, call in calls.items():
        call()
        with wp.Tape(), pytest.raises(ValueError, match=rf"\b{name}\b.*requires_grad=True"):
            call()
    with wp.Tape():
        eval_fk(model, state.joint_q, state.joint_qd, state)
        eval_ik(model, plain, plain.joint_q, plain.joint_qd)


@pytest.mark.slow
def test_gradients_stop_at_the_mask(rng):
    model = forest(rng, worlds=3, robots=1).finalize("cpu", dtype=wp.float64)
    mask = [True, False, True]

    def bodies(joint_q, joint_qd):
        state = model.state(requires_grad=joint_q.requires_grad)
        eval_fk(model, joint_q, joint_qd, state, mask=mask)
        return state.body_q, state.body_qd

    assert max(gradient_errors(bodies, list(random_state(model, rng)), rng)) < 1e-7


@pytest.mark.slow
def test_the_tape_holds_what_it_needs(rng):
    """Two calls on one tape, the first one's arrays out of reach, and the mask changed before the way back."""
    model = forest(rng, worlds=2, robots=1).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    joint_q, joint_qd = (real_array(model, x, requires_grad=True) for x in (q, qd))
    mask = wp.array([True, False], dtype=wp.bool, device="cpu")
    state = model.state(requires_grad=True)
    with wp.Tape() as tape:
        eval_fk(model, joint_q, joint_qd, model.state(requires_grad=True))
        eval_fk(model, joint_q, joint_qd, state, mask=mask)
    mask.fill_(True)
    junk = [model.state(requires_grad=True) for _ in range(8)]
    state.body_q.grad.assign(np.ones((model.body_count, 7)))
    tape.backward()
    gradient = joint_q.grad.numpy().reshape(2, -1)
    np.testing.assert_array_equal(gradient[1], 0.0)
    assert np.abs(gradient[0]).max() > 0.0
    assert len(junk) == 8


def call(model, **changes):
    state = model.state()
    arguments = {"joint_q": state.joint_q, "joint_qd": state.joint_qd, "state": state} | changes
    eval_fk(model, **arguments)


def test_wrong_selections_are_refused(rng):
    model = forest(rng, worlds=2).finalize("cpu")
    with pytest.raises(ValueError, match=r"mask.*indices"):
        call(model, mask=[True] * 4, indices=[0])
    with pytest.raises(ValueError, match=r"mask.*\(3,\).*\(4,\)"):
        call(model, mask=[True] * 3)
    with pytest.raises(ValueError, match=r"mask.*\(5,\)"):
        call(model, mask=wp.zeros(5, dtype=wp.bool, device="cpu"))
    with pytest.raises(TypeError, match=r"mask.*bools.*float64"):
        call(model, mask=[0.5, 1.0, 0.0, 0.0])
    with pytest.raises(IndexError, match=r"indices.*articulation.*4.*4"):
        call(model, indices=[0, 4])
    with pytest.raises(IndexError, match=r"indices.*articulation.*-1"):
        call(model, indices=np.array([-1]))
    with pytest.raises(TypeError, match=r"indices.*integers.*float64"):
        call(model, indices=[0.0])
    with pytest.raises(TypeError, match=r"indices.*integers"):
        call(model, indices=[True, False, True, False])
    with pytest.raises(ValueError, match=r"indices.*\(1, 2\)"):
        call(model, indices=[[0, 1]])


def test_wrong_arrays_are_refused(rng):
    model = forest(rng, worlds=2).finalize("cpu")
    n, state = model.joint_coord_count, model.state()
    with pytest.raises(TypeError, match=r"joint_q\b.*array"):
        call(model, joint_q="zeros")
    with pytest.raises(TypeError, match=r"joint_q.*float64.*float32"):
        call(model, joint_q=wp.zeros(n, dtype=wp.float64, device="cpu"))
    with pytest.raises(ValueError, match=rf"joint_q .*\({n + 1},\).*\({n},\)"):
        call(model, joint_q=wp.zeros(n + 1, dtype=wp.float32, device="cpu"))
    with pytest.raises(ValueError, match=r"joint_qd .*shape"):
        call(model, joint_qd=wp.zeros(1, dtype=wp.float32, device="cpu"))
    with pytest.raises(ValueError, match=r"joint_q.*joint_q.contiguous\(\)"):
        call(model, joint_q=wp.zeros(2 * n, dtype=wp.float32, device="cpu")[::2])
    with pytest.raises(TypeError, match=r"state.body_q.*vec3f"):
        poses = wp.zeros(model.body_count, dtype=wp.vec3, device="cpu")
        call(model, state=SimpleNamespace(body_q=poses, body_qd=state.body_qd))


def test_coordinates_may_be_numbers_of_the_host(rng):
    model = forest(rng, worlds=2).finalize("cpu")
    wanted, state = model.state(), model.state()
    q, v = random_state(model, rng)
    eval_fk(model, wp.array(q, dtype=wp.float32), wp.array(v, dtype=wp.float32), wanted)
    for kind in (np.asarray, list, lambda x: np.asarray(x, dtype=np.float64)[None], Tensor):
        eval_fk(model, kind(q), kind(v), state)
        np.testing.assert_array_equal(state.body_q.numpy(), wanted.body_q.numpy())
        np.testing.assert_array_equal(state.body_qd.numpy(), wanted.body_qd.numpy())
    with pytest.raises(ValueError, match=r"joint_q\b.*shape"):
        eval_fk(model, q[:-1], v, state)


def test_arguments_in_the_wrong_order_are_refused_by_name(rng):
    model = forest(rng, worlds=2).finalize("cpu")
    state = model.state()
    for call in (
        lambda: eval_jacobian(state, model),
        lambda: eval_mass_matrix(state, model),
        lambda: eval_fk(state, model.joint_q, model.joint_qd, state),
        lambda: eval_ik(state, state, model.joint_q, model.joint_qd),
    ):
        with pytest.raises(TypeError, match=r"\bmodel\b.*\bModel\b"):
            call()
    for call in (eval_jacobian, eval_mass_matrix):
        with pytest.raises(TypeError, match=r"\bstate\b.*\bState\b"):
            call(model, model.joint_q)


@pytest.mark.gpu
def test_gpus_find_what_cpus_find(rng):
    if not wp.is_cuda_available():
        pytest.skip("no CUDA device")
    scene = forest(rng, worlds=33)
    results = []
    for device in ("cpu", "cuda"):
        model = scene.finalize(device, dtype=wp.float64)
        numbers = np.random.default_rng(1)
        q, qd = random_state(model, numbers)
        mask = numbers.random(model.articulation_count) < 0.5
        state, again = model.state(), model.state()
        joint_q, joint_qd = real_array(model, q), real_array(model, qd)
        eval_fk(model, joint_q, joint_qd, state)
        eval_ik(model, state, again.joint_q, again.joint_qd, mask=mask)
        matrices = [eval_jacobian(model, again).numpy(), eval_mass_matrix(model, again, mask=mask).numpy()]
        results.append([getattr(state, x).numpy() for x in ("body_q", "body_qd")] + matrices)
        results[-1] += [again.joint_q.numpy(), again.joint_qd.numpy()]
    # the scalar libraries differ in the last place
    for cpu, cuda in zip(*results, strict=True):
        np.testing.assert_allclose(cuda, cpu, rtol=0.0, atol=1e-11)


@pytest.mark.slow
def test_the_kernel_compiles_for_gpus(tmp_path):
    if not wp.get_cuda_supported_archs():
        pytest.skip("this Warp has no compiler for CUDA")
    kernel = general_kernel("eval_fk", 1, wp.float32)
    wp.compile_aot_module(kernel.module, arch=75, module_dir=str(tmp_path), use_ptx=True)
    assert len(list(tmp_path.glob("*.ptx"))) == 1
