"""The bits of a world do not depend on other worlds, its place, threads or the run."""

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.solvers.xpbd.order import order_kernels

import newton_like as nl
from tests.solvers.xpbd.scenes import started, xpbd
from tests.support.mechanisms import quadruped


def scene(worlds: int) -> nl.ModelBuilder:
    one = quadruped()
    box = one.add_body(xform=(0.1, 0.0, 0.9, 0, 0, 0, 1))
    one.add_shape_box(box, hx=0.1, hy=0.1, hz=0.1)
    builder = nl.ModelBuilder()
    builder.add_ground_plane()
    builder.replicate(one, worlds)
    return builder


def run(worlds: int, speeds: np.ndarray, steps: int = 60, dtype=wp.float32, **options) -> np.ndarray:
    """Poses and velocities of bodies by world, with initial velocities by world."""
    model = scene(worlds).finalize("cpu", dtype=dtype)
    state = started(model, joint_qd=speeds.ravel())
    solver = xpbd(model, **options)
    for _ in range(steps):
        solver.step(state, state)
    assert np.isfinite(state.body_q.numpy()).all()
    return np.concatenate([x.numpy().reshape(worlds, -1) for x in (state.body_q, state.body_qd, state.joint_q)], axis=1)


@pytest.mark.slow
def test_bits_do_not_depend_on_the_batch(rng):
    dofs = scene(1).finalize("cpu").joint_dof_count
    speeds = 0.5 * rng.normal(size=(21, dofs))
    whole = run(21, speeds, threads=1)
    order = rng.permutation(21)
    assert np.array_equal(run(21, speeds[order], threads=2), whole[order])
    assert np.array_equal(run(1, speeds[4:5]), whole[4:5])
    assert np.array_equal(run(3, speeds[9:12]), whole[9:12])


@pytest.mark.slow
def test_free_bodies_move_the_same_beside_joints(rng):
    """Models without joints have a kernel of their own."""
    boxes, pendulum = nl.ModelBuilder(), nl.ModelBuilder()
    for i in range(3):
        body = boxes.add_body(xform=(0.02 * i, 0, 0.1 + 0.21 * i, 0, 0, 0, 1))
        boxes.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    rod = pendulum.add_link(mass=1.0, com=(0.3, 0, 0), inertia=0.01 * np.eye(3))
    pendulum.add_articulation(
        [pendulum.add_joint_revolute(-1, rod, axis=(0, 1, 0), parent_xform=(0, 2, 2, 0, 0, 0, 1))]
    )
    speeds, results, kernels = rng.normal(size=(3, 6)), [], []
    for worlds in ([boxes], [boxes, pendulum]):
        builder = nl.ModelBuilder()
        for world in worlds:
            builder.add_world(world)
        builder.add_ground_plane()
        model = builder.finalize("cpu")
        solver, state = xpbd(model), started(model)
        state.body_qd.assign(np.concatenate([speeds, np.zeros((model.body_count - 3, 6))]))
        for _ in range(60):
            solver.step(state, state, dt=1 / 240)
        results.append(np.concatenate([state.body_q.numpy()[:3].ravel(), state.body_qd.numpy()[:3].ravel()]))
        kernels.append(solver._kernel)
    assert kernels[0] is not kernels[1]
    assert np.array_equal(*results)


def test_a_broken_world_stays_alone(rng):
    dofs = scene(1).finalize("cpu").joint_dof_count
    speeds = 0.5 * rng.normal(size=(5, dofs))
    whole = run(5, speeds)
    model = scene(5).finalize("cpu")
    state, solver = started(model, joint_qd=speeds.ravel()), xpbd(model)
    broken = state.body_qd.numpy().reshape(5, -1).copy()
    broken[2] = np.nan
    state.body_qd.assign(broken.reshape(-1, 6))
    for _ in range(60):
        solver.step(state, state)
    now = np.concatenate([x.numpy().reshape(5, -1) for x in (state.body_q, state.body_qd, state.joint_q)], axis=1)
    others = [0, 1, 3, 4]
    assert np.array_equal(now[others], whole[others])
    # a reset brings it back
    solver.reset(state, [2])
    solver.step(state, state)
    assert np.isfinite(state.body_q.numpy()).all()


def test_a_broken_world_with_a_fixed_base_moves_as_at_first_after_a_reset(rng):
    """The slot of a world that stands for its fixed bodies is cleared, too."""
    one = nl.ModelBuilder()
    base, rod = (one.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(2))
    foot = one.add_joint_fixed(-1, base)
    hinge = one.add_joint_revolute(base, rod, axis=(0, 1, 0), child_xform=(*rng.normal(size=3), 0, 0, 0, 1))
    one.add_articulation([foot, hinge])
    builder = nl.ModelBuilder()
    builder.replicate(one, 4)
    model = builder.finalize("cpu")
    state, solver = started(model), xpbd(model)
    for _ in range(5):
        solver.step(state, state)
    first = state.body_q.numpy().reshape(4, -1).copy()
    broken = state.body_qd.numpy()
    broken.reshape(4, -1)[[1, 3]] = np.nan
    state.body_qd.assign(broken)
    solver.step(state, state)
    solver.reset(state, [1, 3])
    for _ in range(5):
        solver.step(state, state)
    now = state.body_q.numpy().reshape(4, -1)
    assert np.isfinite(now).all() and np.array_equal(now[[1, 3]], first[[1, 3]])


def test_a_reset_forgets_impulses(rng):
    """A world that is reset moves as in the first run."""
    model = scene(2).finalize("cpu")
    start = started(model)
    states = []
    solver = xpbd(model)
    for _ in range(2):
        state = start.clone()
        solver.reset(state)
        for _ in range(40):
            solver.step(state, state)
        states.append(state.body_q.numpy().copy())
    assert np.array_equal(*states)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "dtype"),
    [
        # the kernel that the tests in double precision use; the others are compiled for this test alone
        (1, wp.float64),
        pytest.param(1, wp.float32, marks=pytest.mark.slow),
        pytest.param(16, wp.float32, marks=pytest.mark.slow),
    ],
    ids=["1-float64", "1-float32", "16-float32"],
)
def test_widths_agree_up_to_rounding(width, dtype, rng):
    """Poses round by 6e-8 m. Gaps of joints are divided by sub-steps of 1/1920 s, which makes 1e-4 m/s of it, and 5e-3 rad/s over 2 cm.
    Passes over chains and contacts make up to ten times that (0.056 rad/s with 6 seeds).

    In more than one step (of eight sub-steps), such differences may shift impacts, which changes velocities by much more.
    """
    one = scene(1).finalize("cpu")
    speeds = 0.3 * rng.normal(size=(2, one.joint_dof_count))
    found, expected = run(2, speeds, 1, dtype, width=width), run(2, speeds, 1)
    poses, velocities = slice(7 * one.body_count), slice(7 * one.body_count, 13 * one.body_count)
    assert found[:, poses] == pytest.approx(expected[:, poses], abs=5e-5)
    assert found[:, velocities] == pytest.approx(expected[:, velocities], abs=0.15)


@pytest.mark.slow
def test_a_gpu_gives_the_same_contacts_to_chunks(rng):
    """Sorting the contacts of a list by chunks (GPUs) gives the order in which one thread lists them (CPUs)."""
    model = scene(33).finalize("cpu")
    state = started(model, joint_qd=0.5 * rng.normal(size=model.joint_dof_count))
    solver = xpbd(model)
    for _ in range(40):
        solver.step(state, state)
    # a list in another order
    found, count = solver._found, int(solver._found.rigid_contact_count.numpy()[0])
    order = rng.permutation(count)
    for name in ("shape0", "shape1"):
        array = getattr(found, f"rigid_contact_{name}")
        array.assign(np.concatenate([array.numpy()[:count][order], array.numpy()[count:]]))
    N, lists, chunks = solver._listed(solver._found), solver._lists, len(solver._slots.chunks)
    _, share_out, _, (name_chunks, find_starts), _ = order_kernels(model.dtype)
    wp.launch(share_out, dim=1, inputs=[N], device="cpu")
    start = N.start.numpy().copy()
    chosen = N.chosen.numpy()[: start[-1]].copy()
    assert chunks > 1 and start[-1] > 100 and (np.diff(chosen) < 0).any()
    room = lists["room"]
    chunk, N.chosen = (wp.zeros(2 * room, dtype=int, device="cpu") for _ in range(2))
    N.start.fill_(-1)
    wp.launch(name_chunks, dim=room, inputs=[N, chunk], device="cpu")
    wp.utils.radix_sort_pairs(chunk, N.chosen, room)
    wp.launch(find_starts, dim=chunks + 1, inputs=[N, chunk, room], device="cpu")
    np.testing.assert_array_equal(N.start.numpy(), start)
    np.testing.assert_array_equal(N.chosen.numpy()[: start[-1]], chosen)
