"""Memory of states that are gone goes to the next states, and counts of joints are kept, without anybody noticing."""

import contextlib
import copy
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import newton_like.robot as rd
from newton_like.robot.core import orders, single
from newton_like.robot.core.single import Memory, Store
from newton_like.robot.structure.link import _is_sound, least_moment
from tests.support.random_robots import random_robot


def made(seed: int, unit: bool = True):
    links, _ = random_robot(rd, seed, 8, unit=unit)
    rng = np.random.default_rng(seed)
    for i, link in enumerate(links):
        collision = rd.Collision(f"c{i}")
        collision.add_geom(rd.GeomCapsule(rng.normal(size=3), rng.normal(size=3), 0.05, 1, 1))
        link.add_collision(collision)
    return rd.Robot(rd.RobotConfiguration("case", links[0]), evaluator="general")


def results(robot, state) -> list[np.ndarray]:
    last = len(robot.links) - 1
    near = robot.compute_distances(state)
    return [
        robot.compute_transformation(state, 0, last), robot.compute_mass_matrix(state), robot.compute_body_velocity(state, 0, last),
        robot.compute_gravity_term(state), near.distance, near.position1,
    ]  # fmt: skip


def equal(a, b) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.slow
def test_states_of_finalizers_in_cycles_keep_their_memory(rng):
    """The collector calls the finalizers of a cycle before it frees anything; they may use states, and keep them."""
    robot, seen, kept = made(int(rng.integers(1 << 30))), [], []

    class Controller:
        def __init__(self, state):
            self.state, self.me = state, self

        def __del__(self):
            for _ in range(3):
                other = robot.make_state()
                other.q = np.ones(robot.dof)
                robot.compute_mass_matrix(other)
            seen.append((self.state.q, *results(robot, self.state)))
            kept.append(self.state)

    state = robot.make_state()
    state.q = q = rng.normal(size=robot.dof)
    expected = results(robot, state)
    controller = Controller(state)
    del state, controller
    gc.collect()
    others = []
    for _ in range(3):
        others.append(robot.make_state())
        others[-1].q = rng.normal(size=robot.dof)
        robot.compute_mass_matrix(others[-1])
    assert equal(seen[0], [q, *expected]) and np.array_equal(kept[0].q, q) and equal(results(robot, kept[0]), expected)


@pytest.mark.slow
def test_robots_and_states_in_cycles_are_freed(rng):
    """Memory that is handed on does not keep robots alive."""
    robot = made(int(rng.integers(1 << 30)))
    state = robot.make_state()
    results(robot, state)
    robot.base.owner = [robot, state]
    gone = [weakref.ref(x) for x in (robot, state, robot.core.patterns.store, state.core._memory.lanes)]
    del robot, state
    gc.collect()
    assert not any(x() for x in gone)


def test_memory_that_is_kept_is_bounded(rng, monkeypatch):
    robot = made(int(rng.integers(1 << 30)))
    store = robot.core.patterns.store
    states = [robot.make_state([], robot.joint_names[:: -1 if i % 3 else 1]) for i in range(12)]
    for state in states:
        robot.compute_mass_matrix(state)
    each = states[0].core._memory.lanes.capacity
    monkeypatch.setattr(single, "_IDLE", 5 * each)
    del state
    states.clear()
    store.collect()
    assert sum(map(len, store._idle.values())) == 5
    monkeypatch.setattr(single, "_ORDERS", 2)
    other = Store()
    for i in range(4):
        memory = Memory(bytes([i]), 1, 1)
        memory.prepare(robot.core.patterns)
        other.give(memory)
    assert [*other._idle] == [bytes([2]), bytes([3])]


def test_memory_is_counted(rng, monkeypatch):
    """The count of memory that is kept follows all that is taken, given and forgotten."""
    robot, store = made(int(rng.integers(1 << 30))), Store()
    memories = [Memory(bytes([i % 5]), 1, 1) for i in range(12)]
    for memory in memories:
        memory.prepare(robot.core.patterns)
    monkeypatch.setattr(single, "_IDLE", 6 * memories[0].lanes.capacity)
    monkeypatch.setattr(single, "_ORDERS", 4)
    for _ in range(200):
        i = int(rng.integers(len(memories) + 3))
        if i < len(memories):
            store.give(memories.pop(i))
        else:
            found = store.take(bytes([int(rng.integers(5))]))
            memories += [] if found is None else [found]
        if not memories:
            memories = [store.take(order) for order in [*store._idle] if store._idle[order]]
        kept = sum(map(len, store._idle.values()))
        assert kept <= min(store._given, 6)


@pytest.mark.slow
def test_many_orders_of_links_keep_their_capsules(rng):
    robot = made(int(rng.integers(1 << 30)))
    orders_of_links = [rng.permutation(robot.link_names).tolist() for _ in range(40)]

    def capsules() -> list:
        found = []
        for names in orders_of_links:
            state = robot.make_state(names)
            robot.compute_distances(state)
            found.append(state.core.capsules)
        return found

    assert all(a is b for a, b in zip(capsules(), capsules(), strict=True))


@pytest.mark.parametrize("unit", [True, False])
def test_a_state_goes_to_batches_and_back(rng, unit):
    """Launches of one configuration stay recorded, and read the right numbers."""
    robot = made(int(rng.integers(1 << 30)), unit)
    n, state = robot.dof, robot.make_state([], robot.joint_names[::-1])
    for k in range(8):
        names = rng.permutation(["q", "qdot", "Vdot0"])[: 1 + k % 3]
        for name in ("q", "qdot", "Vdot0"):
            size = 6 if name == "Vdot0" else n
            value = rng.normal(size=(3, size) if k % 2 and name in names else size)
            setattr(state, name, value)
        fresh = robot.make_state([], robot.joint_names[::-1])
        fresh.q, fresh.qdot, fresh.Vdot0 = state.q, state.qdot, state.Vdot0
        assert equal(results(robot, state), results(robot, fresh)) and len(state.core._runs) <= 12
        robot.compute_inverse_dynamics(state)
        robot.compute_inverse_dynamics(fresh)
        assert np.array_equal(state.tau, fresh.tau)


def test_more_orders_than_are_kept(rng, monkeypatch):
    monkeypatch.setattr(orders, "_KEPT", 4)
    robot, other = (made(seed) for seed in 2 * [int(rng.integers(1 << 30))])
    q = rng.normal(size=robot.dof)
    for _ in range(12):
        joints, links = rng.permutation(robot.joint_names).tolist(), rng.permutation(robot.link_names).tolist()
        state, fresh = robot.make_state(links, joints), other.make_state(links, joints)
        state.q = fresh.q = q
        assert state.joint_names == joints and state.link_names == links
        assert equal(results(robot, state), results(other, fresh))
    assert len(robot._orders._of_joints) == 4


@pytest.mark.slow
def test_threads_share_capsules(rng):
    robot = made(int(rng.integers(1 << 30)))
    qs = rng.normal(size=(6, 40, robot.dof))

    def work(each) -> list:
        found = []
        for q in each:
            state = robot.make_state()
            state.q = q
            found.append(robot.compute_distances(state, jacobian=True)[:4])
            state.q = np.stack([q, -q])
            rows = robot.detect_collisions_or_nearest_links(state, 3)
            found.append([np.array([x.distance for some in rows for x in some])])
        return found

    expected = [work(each) for each in qs]
    with ThreadPoolExecutor(6) as pool:
        for mine, theirs in zip(pool.map(work, qs), expected, strict=True):
            assert all(equal(a, b) for a, b in zip(mine, theirs, strict=True))


def test_shared_capsules_follow_edits(rng):
    robot = made(int(rng.integers(1 << 30)))
    state = robot.make_state()
    before = robot.compute_distances(state).distance
    # the last collision of a link has a capsule
    robot.links[1].collisions[-1].set_origin(
        np.block([[np.eye(3), np.ones((3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]])
    )
    after = robot.compute_distances(state).distance
    assert not np.array_equal(before, after)
    assert np.array_equal(robot.compute_distances(robot.make_state()).distance, after)


def test_counts_follow_changes(rng):
    """Counts that are kept equal those of a walk through the tree, whatever is connected and separated anywhere."""

    def brute(link, fixed) -> int:
        return sum((fixed or not joint.is_fixed()) + brute(joint.child_link, fixed) for joint in link.child_joints)

    links = [rd.Link(f"l{i}") for i in range(9)]
    joints = [(rd.Joint.make_fixed if i % 3 == 0 else rd.Joint.make_revolute)(f"j{i}") for i in range(10)]
    for k in range(600):
        joint, (a, b) = joints[rng.integers(10)], rng.integers(9, size=2)
        if k % 50 == 49:
            links, joints = copy.deepcopy((links, joints))
        elif k % 3 == 0:
            joint.disconnect()
        elif k % 3 == 1 and joint.parent_link is not None:
            ends = joint.parent_link, joint.child_link
            joint.disconnect()
            joint.connect_links(*ends)
        else:
            with contextlib.suppress(rd.RobotError):
                joint.connect_links(links[a], links[b])
        for link in (links[i] for i in rng.integers(9, size=2)):
            fixed = bool(rng.integers(2))
            assert rd.Robot.count_joints(link, fixed) == brute(link, fixed)


def test_fast_test_of_inertias_is_as_strict(rng):
    """Point masses, rods, links without mass and random matrices near the border."""
    for k in range(200):
        mass, c = float(rng.uniform(0.1, 3)), rng.normal(size=3)
        Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        least = [0.0, 1e-3, -1e-7, -3e-6, -1e-2][k % 5]
        moments = [np.zeros(3), np.array([0, 1.0, 1.0]), np.array([least, 0.3, 0.4])][k % 3]
        C = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
        if k % 7 == 0:
            mass = 0.0
        I = (Q * moments) @ Q.T
        I = 0.5 * (I + I.T)
        G = np.block([[I + mass * C @ C.T, mass * C], [mass * C.T, mass * np.eye(3)]])
        fast, size = _is_sound(G.tolist()), np.abs(G[:3, :3]).max()
        exact = least_moment(G)
        if fast:
            assert exact >= -1e-6 * size
        if exact >= -1e-8 * size:
            assert fast
            rd.Link("l", G)
    assert not _is_sound(np.diag([0.0, 0, 0, 0, 0, -1.0]).tolist())
    for G in (np.diag([0.1, 0.1, 0.1, 0, 0, 0]) + np.eye(6, k=5) * 0.1, np.diag([0, 0, -1.0, 1, 1, 1])):
        with pytest.raises(rd.RobotError):
            rd.Link("l", G)
