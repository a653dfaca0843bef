"""Distances of the capsules of a robot: all pairs of the filter, and their derivatives."""

import numpy as np
import pytest

from newton_like import robot as rd
from newton_like.programs.recording import Recording
from tests.support.random_robots import link_poses, random_pose, random_robot
from tests.support.robot_calls import random_input, shuffled_state
from tests.support.segments import segment_distance


def made(rng, joints: int = 7, **options):
    base = random_robot(rd, rng.integers(2**32), joints, helical=True)[0][0]
    robot = rd.Robot(rd.RobotConfiguration("case", base), **options)
    state = shuffled_state(robot, rng)
    state.q = random_input(state, "q", rng)
    return robot, state


def capsules_of(robot, state):
    """(place of the link, geom, ends of its axis) of all capsules in the frame of the state's first link."""
    poses = link_poses(robot.base, dict(zip(state.joint_names, state.q, strict=True)))
    first = np.linalg.inv(poses[state.link_names[0]])
    found = []
    for i, name in enumerate(state.link_names):
        for collision in robot.get_link(name).collisions:
            T = first @ poses[name] @ collision.origin
            for geom in collision.geoms:
                ends = [T[:3, :3] @ x + T[:3, 3] for x in (geom.start_point, geom.end_point)]
                found.append((i, geom, ends))
    return found


def pairs_of(robot, state):
    """Names, distance, and ends of the axes of all pairs, in the order of the state's links."""
    every, names = capsules_of(robot, state), state.link_names
    return [
        ((names[i], names[j]), segment_distance(*a, *b) - x.radius - y.radius, a, b, x, y)
        for n, (i, x, a) in enumerate(every)
        for j, y, b in every[n + 1 :]
        if i != j and x.filter(y)
    ]


def off_segment(point, ends) -> float:
    """How much longer the way over a point is than the segment."""
    return np.linalg.norm(point - ends[0]) + np.linalg.norm(point - ends[1]) - np.linalg.norm(ends[1] - ends[0])


def test_distances_of_all_pairs(rng):
    robot, state = made(rng)
    expected, found = pairs_of(robot, state), robot.compute_distances(state)
    assert found.links == [names for names, *_ in expected] and found.jacobian is None
    np.testing.assert_allclose(found.distance, [d for _, d, *_ in expected], atol=1e-12)
    for k, (_, _, a, b, x, y) in enumerate(expected):
        p, q, n = found.position1[k], found.position2[k], found.normal[k]
        assert off_segment(p, a) < 1e-12 and off_segment(q, b) < 1e-12
        assert np.isclose(np.linalg.norm(q - p), found.distance[k] + x.radius + y.radius, atol=1e-12)
        np.testing.assert_allclose(n * np.linalg.norm(q - p), q - p, atol=1e-12)


@pytest.mark.parametrize("least", [-1, 0, 3, 10**6])
def test_detected_are_contacts_and_the_nearest(rng, least):
    robot, state = made(rng)
    every = robot.compute_distances(state)
    order = np.argsort(every.distance, kind="stable")
    order = order[: max(least, np.count_nonzero(every.distance <= 0.0))]
    found = robot.detect_collisions_or_nearest_links(state, collision_threshold=least)
    assert len(found) == len(order)
    for result, k in zip(found, order, strict=True):
        assert (result.link1, result.link2) == every.links[k] and result.distance == every.distance[k]
        np.testing.assert_array_equal(result.position1, every.position1[k])
        np.testing.assert_array_equal(result.position2, every.position2[k])
        assert np.isclose(result.normal @ (result.surface2 - result.surface1), result.distance, atol=1e-12)


def test_jacobian_is_the_derivative_of_the_distances(rng):
    """Nearest points that jump between ends of axes, or axes that almost cross, have no derivative; such pairs are far from any other
    solution here or are left out."""
    robot, state = made(rng)
    q, step = state.q, 1e-6
    found = robot.compute_distances(state, jacobian=True)
    assert found.jacobian.shape == (len(found.distance), len(q))
    slopes, curvatures = np.empty_like(found.jacobian), np.empty_like(found.jacobian)
    for i, unit in enumerate(np.eye(len(q))):
        ends = []
        for sign in (1, -1):
            state.q = q + sign * step * unit
            ends.append(robot.compute_distances(state).distance)
        slopes[:, i] = (ends[0] - ends[1]) / (2.0 * step)
        curvatures[:, i] = np.abs(ends[0] + ends[1] - 2.0 * found.distance) / step
    smooth = (curvatures < 1e-4).all(axis=1)
    assert smooth.mean() > 0.8
    np.testing.assert_allclose(found.jacobian[smooth], slopes[smooth], atol=1e-6)


@pytest.mark.parametrize("count", [None, 3])
def test_distances_and_their_derivatives_take_one_launch(rng, count, monkeypatch):
    robot, state = made(rng)
    if count is not None:
        state.q = rng.normal(size=(count, robot.dof))
    launches, run_on = [], Recording.run_on
    monkeypatch.setattr(Recording, "run_on", lambda *args: launches.append(1) or run_on(*args))
    found = robot.compute_distances(state, jacobian=True)
    assert len(launches) == 1
    alone = robot.compute_distances(state)
    for name in ("distance", "position1", "position2", "normal"):
        np.testing.assert_array_equal(getattr(found, name), getattr(alone, name))


def test_distances_do_not_depend_on_the_first_link(rng):
    """Points are in its frame; distances and their derivatives are the same."""
    robot, state = made(rng)
    names = [*state.link_names[1:], state.link_names[0]]
    other = robot.make_state(names, state.joint_names)
    other.q = state.q
    T = robot.compute_transformation(state, 0, state.link_names.index(names[0]))
    a, b = robot.compute_distances(state, jacobian=True), robot.compute_distances(other, jacobian=True)
    for k, (links, d) in enumerate(zip(a.links, a.distance, strict=True)):
        found = [
            i for i, x in enumerate(b.links) if sorted(x) == sorted(links) and np.isclose(b.distance[i], d, atol=1e-12)
        ]
        assert found
        i = found[0]
        np.testing.assert_allclose(b.jacobian[i], a.jacobian[k], atol=1e-9)
        p = b.position1[i] if b.links[i] == links else b.position2[i]
        np.testing.assert_allclose(T[:3, :3] @ p + T[:3, 3], a.position1[k], atol=1e-9)


def test_chosen_pairs(rng):
    robot, state = made(rng)
    every = robot.compute_distances(state, jacobian=True)
    chosen = rng.permutation(len(every.distance))[:4]
    found = robot.compute_distances(state, chosen, True)
    assert found.links == [every.links[i] for i in chosen]
    for a, b in zip(found, every, strict=True):
        if not isinstance(a, list):
            np.testing.assert_array_equal(a, b[chosen])
    one = robot.compute_distances(state, int(chosen[0]))
    np.testing.assert_array_equal(one.distance, every.distance[chosen[:1]])
    none = robot.compute_distances(state, [], True)
    assert none.distance.shape == (0,) and none.jacobian.shape == (0, len(state.joint_names)) and none.links == []


def row(poses, lengths=(1.0, 1.0)):
    """Two links, fixed to each other, with a capsule each: axes along z of the given poses."""
    links = [rd.Link("a"), rd.Link("b")]
    rd.Joint.make_fixed("joint").connect_links(*links)
    for link, T, length in zip(links, poses, lengths, strict=True):
        collision = rd.Collision("shape")
        collision.set_origin(T)
        collision.add_geom(rd.GeomCapsule(length, 0.1, 1, 1))
        link.add_collision(collision)
    robot = rd.Robot(rd.RobotConfiguration("", links[0]))
    return robot, robot.make_state(), links


@pytest.mark.parametrize("lengths", [(1.0, 1.0), (2.0, 0.5), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
@pytest.mark.parametrize("placed", ["anywhere", "parallel", "crossing", "same"])
def test_the_same_answers_as_two_capsules_alone(rng, lengths, placed):
    """Also for parallel, crossing and coinciding axes, and for axes of no length."""
    T = [random_pose(rng), random_pose(rng)]
    if placed == "parallel":
        T[1][:3, :3] = T[0][:3, :3]
    elif placed == "crossing":
        T[1][:3, 3] = T[0][:3, 3]
    elif placed == "same":
        T[1] = T[0]
    robot, state, links = row(T, lengths)
    found = robot.compute_distances(state)
    a, b = (link.collisions[0].geoms[0] for link in links)
    alone = a.compute_minimum_distance(T[0], b, T[1])
    assert np.isclose(found.distance[0], alone.distance, atol=1e-14)
    assert np.isclose(np.linalg.norm(found.normal[0]), 1.0, rtol=1e-14)
    np.testing.assert_allclose(found.position1[0], alone.position1, atol=1e-12)
    np.testing.assert_allclose(found.position2[0], alone.position2, atol=1e-12)


def test_adjacent_links_are_pairs_and_shapes_of_one_link_are_not():
    robot, state, links = row([np.eye(4), np.eye(4)])
    other = rd.Collision("other")
    other.add_geom(rd.GeomCapsule(1.0, 0.1, 1, 1))
    links[0].add_collision(other)
    assert robot.compute_distances(state).links == [("a", "b")] * 2


def test_a_robot_without_capsules(rng):
    links = [rd.Link("a"), rd.Link("b")]
    rd.Joint.make_revolute("joint").connect_links(*links)
    robot = rd.Robot(rd.RobotConfiguration("", links[0]))
    state = robot.make_state()
    assert robot.detect_collisions_or_nearest_links(state, 5) == []
    state.q = rng.normal(size=(3, 1))
    assert list(robot.detect_collisions_or_nearest_links(state, 5)) == [[], [], []]
    found = robot.compute_distances(state, jacobian=True)
    assert found.distance.shape == (3, 0) and found.jacobian.shape == (3, 0, 1) and found.position1.shape == (3, 0, 3)


def test_a_geom_without_shape_is_named():
    robot, state, links = row([np.eye(4), np.eye(4)])
    links[1].collisions[0].add_geom(rd.Geom(1, 1))
    with pytest.raises(RuntimeError, match=r"'shape'.*'b'"):
        robot.compute_distances(state)


@pytest.mark.parametrize(
    ("least", "evaluator"), [(0, "general"), (4, "general"), pytest.param(1, "auto", marks=pytest.mark.slow)]
)
def test_batches_that_take_several_launches_have_the_results_of_single_calls(rng, least, evaluator):
    """Bit by bit: links, distances, points and normals, nearest first; also of configurations that occur twice."""
    robot, one = made(rng, evaluator=evaluator)
    q = random_input(one, "q", rng, 700)
    q[650:] = q[:50]
    group = robot.make_state(one.link_names, one.joint_names)
    group.q = q
    found = robot.detect_collisions_or_nearest_links(group, least)
    assert len(found) == len(q)

    def numbers(results):
        names = "distance", "position1", "position2", "surface1", "surface2", "normal"
        return [(x.link1, x.link2, *(np.array(getattr(x, name)).tobytes() for name in names)) for x in results]

    every = [numbers(x) for x in found]
    assert every[650:] == every[:50]
    for i in (0, 349, 350, 511, 512, 699, *rng.integers(0, len(q), 20)):
        one.q = q[i]
        assert every[i] == numbers(robot.detect_collisions_or_nearest_links(one, least))
    assert len({len(x) for x in every}) > 1 or least
