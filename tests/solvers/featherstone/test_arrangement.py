"""Worlds of robots whose links touch each other change their places in the blocks of a step, and keep their results."""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.solvers.arrange import GAIN, MOVES, arrange_kernel, scratch_size

from newton_like import ModelFlags
from newton_like.solvers import SolverFeatherstone
from tests.solvers.featherstone.test_slots import robots

DT = 1.0 / 240.0


@pytest.fixture
def kept(rng):
    """What the worlds of some blocks keep, one column a world: up to `most` contacts with three impulses, a feature and a pair, four
    numbers of limits and two of trees. The numbers say which world they belong to."""
    width, count, most = 16, int(rng.integers(50, 120)), 9
    blocks = -(-count // width)
    contacts = rng.integers(0, most + 1, count)
    runs = dict(impulses=0, features=3 * most, pairs=4 * most, limits=5 * most, trees=5 * most + 4)
    size = 5 * most + 6
    numbers = np.zeros((size, blocks * width), dtype=np.float32)
    active = np.zeros((blocks, most + 2), dtype=np.int32)
    for world, n in enumerate(contacts):
        numbers[:, world] = 1000.0 * world + np.arange(size)
        numbers[runs["pairs"] + n : runs["limits"], world] = -1.0
    # a block lists as many contacts as its world with the most of them has, and some have no limits
    padded = np.append(contacts, np.zeros(blocks * width - count, dtype=int)).reshape(blocks, width)
    numbers[runs["pairs"] : runs["limits"], count:] = -1.0
    active[:, 0], active[:, -1] = padded.max(axis=1), rng.integers(0, 2, blocks)
    return SimpleNamespace(
        width=width,
        count=count,
        most=most,
        blocks=blocks,
        contacts=contacts,
        size=size,
        numbers=numbers,
        active=active,
        **runs,
    )


def arranged(kept, sort: bool, order: np.ndarray, threads: int = 1, steps: int = 8):
    """The kept numbers, one column a place, the lists of blocks, and the worlds of places, after so many launches."""
    lane = wp.types.vector(kept.width, wp.float32)
    lanes = kept.numbers.reshape(kept.size, kept.blocks, kept.width).transpose(1, 0, 2)
    memory = wp.array(np.ascontiguousarray(lanes), dtype=lane, device="cpu")
    active = wp.array(kept.active, dtype=wp.int32, device="cpu")
    runs = [kept.impulses, kept.features, kept.pairs, 3, kept.limits, 4, kept.trees, 2]
    order, place = (wp.array(x, dtype=wp.int32, device="cpu") for x in (order, np.argsort(order)))
    inputs = [
        kept.count, int(sort), threads, wp.array(runs, dtype=wp.int32, device="cpu"), active, memory,
        wp.zeros(scratch_size(kept.blocks, kept.width, kept.most), dtype=wp.int32, device="cpu"),
        wp.zeros(kept.size, dtype=wp.float32, device="cpu"), order, place,
    ]  # fmt: skip
    for _ in range(steps):
        wp.launch(arrange_kernel(kept.width, wp.float32), dim=1, inputs=inputs, device="cpu")
    numbers = memory.numpy().reshape(kept.blocks, kept.size, kept.width).transpose(1, 0, 2).reshape(kept.size, -1)
    return numbers, active.numpy(), order.numpy(), place.numpy()


def highest(kept, contacts: np.ndarray) -> np.ndarray:
    """The most contacts of each block, of the contacts of the worlds at its places."""
    free = np.zeros(kept.blocks * kept.width - kept.count, dtype=int)
    return np.append(contacts, free).reshape(-1, kept.width).max(axis=1)


def test_moves_wait_until_they_pay(rng, kept):
    """Worlds move once blocks have had so many contacts in vain that all threads lost the time of one thread that moves worlds."""
    threads = int(rng.integers(20, 100))
    all_moved = arranged(kept, True, np.arange(kept.count))[2]
    moving = (all_moved != np.arange(kept.count)).sum()
    assert moving > 0
    loss = highest(kept, kept.contacts).sum() - highest(kept, np.sort(kept.contacts)[::-1]).sum()
    steps = -(-moving * threads // (MOVES * loss))
    assert steps > 1
    assert np.array_equal(arranged(kept, True, np.arange(kept.count), threads, steps - 1)[2], np.arange(kept.count))
    assert np.array_equal(arranged(kept, True, np.arange(kept.count), threads, steps)[2], all_moved)


def test_what_worlds_keep_moves_along(rng, kept):
    """Each place has the numbers of its world, blocks are nearly as short as they can be, and sorting again moves nothing."""
    count, width = kept.count, kept.width
    numbers, active, order, place = arranged(kept, True, np.arange(count))
    assert np.array_equal(np.sort(order), np.arange(count))
    assert np.array_equal(order[place], np.arange(count))

    least = highest(kept, np.sort(kept.contacts)[::-1]).sum()
    assert highest(kept, kept.contacts).sum() > least
    assert GAIN * (highest(kept, kept.contacts[order]).sum() - least) <= least
    assert np.array_equal(active[:, 0], np.maximum(highest(kept, kept.contacts[order]), active[:, 0]))
    for at, world in enumerate(order):
        n, listed = kept.contacts[world], active[at // width, 0]
        mine = 1000.0 * world + np.arange(kept.size)
        for first, each in ((kept.impulses, 3), (kept.features, 1), (kept.pairs, 1)):
            assert np.array_equal(numbers[first : first + each * n, at], mine[first : first + each * n])
        # contacts that other worlds of the block have
        assert (numbers[kept.pairs + n : kept.pairs + listed, at] == -1.0).all()
        assert np.array_equal(numbers[kept.trees :, at], mine[kept.trees :])
        # those of a world whose block had no impulses of limits are zero, or not read
        had, has = kept.active[world // width, -1], active[at // width, -1]
        if had or has:
            assert np.array_equal(numbers[kept.limits : kept.limits + 4, at], had * mine[kept.limits : kept.limits + 4])

    again = SimpleNamespace(**{**vars(kept), "numbers": numbers, "active": active})
    assert np.array_equal(arranged(again, True, order)[2], order)
    # back to the order of the batch
    back, _, order, place = arranged(again, False, order)
    assert np.array_equal(order, np.arange(count))
    assert np.array_equal(place, np.arange(count))
    assert np.array_equal(back[kept.trees :, :count], kept.numbers[kept.trees :, :count])


def test_results_do_not_depend_on_places(rng):
    """Some worlds of a large batch have the bits that they have in a small one, where they are at other places: states and forces, also
    after resets of some worlds and after an edit that gives worlds masses of their own, which brings them back to their order."""
    seed, worlds, few = int(rng.integers(1 << 31)), 90, 20
    chosen = np.sort(rng.choice(worlds, few, replace=False))
    simulations, q, qd = [], None, None
    for n in (worlds, few):
        model, start, speeds = robots(np.random.default_rng(seed), wp.float32, 0.0, friction=0.6, worlds=n)
        if q is None:
            q, qd = start, 3.0 * speeds
        solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
        pick = np.arange(worlds) if n == worlds else chosen
        solver.reset(state, None, q[pick].ravel(), qd[pick].ravel())
        simulations.append((model, solver, state, pick))

    def step(times: int):
        """Steps, and compares."""
        rows = []
        for model, solver, state, pick in simulations:
            for _ in range(times):
                solver.step(state, state, None, None, DT)
            body = model.shape_body.numpy()
            force = solver.contact_forces().numpy()[body >= 0].reshape(len(pick), -1)
            found = [x.numpy().reshape(len(pick), -1) for x in (state.joint_q, state.joint_qd)]
            rows.append(np.concatenate([*found, force], axis=1))
        assert np.isfinite(rows[0]).all()
        assert rows[0][chosen].tobytes() == rows[1].tobytes()

    order = simulations[0][1]._steppers[0].arrangement.order
    moved = 0
    for _ in range(5):
        step(8)
        moved += (order.numpy() != np.arange(worlds)).any()
    assert moved > 0
    for _, solver, state, pick in simulations:
        mask = wp.array(pick % 3 == 0, dtype=wp.bool, device="cpu")
        solver.reset(state, mask, q[pick].ravel(), qd[pick].ravel())
    step(1)
    step(8)
    for model, solver, _, pick in simulations:
        mass = model.body_mass.numpy().reshape(len(pick), -1)
        mass[:, 3] *= 1.0 + 0.01 * pick
        model.body_mass.assign(mass.ravel())
        solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    step(1)
    assert np.array_equal(order.numpy(), np.arange(worlds))
    step(8)


def test_graphs_change_places(rng):
    """Launches of a captured step have the results of steps."""
    model, q, qd = robots(rng, wp.float32, 0.0, friction=0.6, worlds=40)
    solver, once = (SolverFeatherstone(model, evaluator="general") for _ in range(2))
    state, other = model.state(), model.state()
    once.reset(other, None, q.ravel(), 3.0 * qd.ravel())
    with wp.ScopedCapture("cpu") as capture:
        solver.step(state, state, None, None, DT)
    solver.reset(state, None, q.ravel(), 3.0 * qd.ravel())
    for _ in range(30):
        wp.capture_launch(capture.graph)
        once.step(other, other, None, None, DT)
    assert (solver._steppers[0].arrangement.order.numpy() != np.arange(40)).any()
    for name in ("joint_q", "joint_qd"):
        assert getattr(state, name).numpy().tobytes() == getattr(other, name).numpy().tobytes()


def test_a_single_block_is_not_arranged(rng):
    """Where no world could change its block, a step launches nothing before its kernel."""
    for worlds, launched in ((16, 0), (17, 1)):
        model, *_ = robots(rng, wp.float32, 0.0, friction=0.6, worlds=worlds)
        solver, state = SolverFeatherstone(model, evaluator="general", width=16), model.state()
        solver.step(state, state, None, None, DT)
        assert len(solver._recent[0]._first) == launched
