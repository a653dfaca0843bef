"""Calls that interrupt another call of the same thread, as signal handlers and finalizers do, with a state of their own."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import newton_like.robot as rd
from newton_like.programs.recording import Recording
from newton_like.robot.core.calls import Calls
from newton_like.robot.core.shelf import Shelf
from newton_like.threads import compiling
from tests.robot.test_reuse import made


def detected(robot, state):
    rows = robot.detect_collisions_or_nearest_links(state, 3)
    rows = [x for some in rows for x in some] if state.batch_size else rows
    return np.array([[x.distance, *x.position1, *x.position2] for x in rows])


def reached(robot, state, link: int):
    goal = robot.compute_transformation(robot.make_state(), 0, link)
    return rd.solve_ik(robot, state, link, goal, starts=1, iterations=3).q


CALLS = {
    "pose": lambda robot, state, i: robot.compute_transformation(state, 0, 2 + i),
    "centre": lambda robot, state, i: robot.compute_center_of_mass_jacobian(state, 0, [1, 1 + i]),
    "mass matrix": lambda robot, state, i: robot.compute_mass_matrix(state),
    "distances": lambda robot, state, i: robot.compute_distances(state, jacobian=True).jacobian,
    "one distance": lambda robot, state, i: robot.compute_distances(state, [i], jacobian=True).jacobian,
    "nearest": lambda robot, state, i: detected(robot, state),
    "ik": lambda robot, state, i: reached(robot, state, 3 + i),
}


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_interrupted_keeps_its_result(rng, monkeypatch, name, batch):
    """Each launch is interrupted just before it by the same call with other numbers, and that one by a third one."""
    call, robot = CALLS[name], made(int(rng.integers(1 << 30)))
    states = [robot.make_state() for _ in range(3)]
    for state in states:
        state.q = rng.normal(size=(4, robot.dof) if batch else robot.dof)
    expected = [call(robot, state, i) for i, state in enumerate(states)]
    run, depth, found = Recording.run, [0], [None] * 3

    class Logger:
        def __del__(self):
            if depth[0] < 2:
                depth[0] += 1
                i = depth[0]
                found[i] = call(robot, states[i], i)
                depth[0] -= 1

    def interrupted(recording):
        if depth[0] < 2:
            # goes at once
            Logger()
        run(recording)

    monkeypatch.setattr(Recording, "run", interrupted)
    found[0] = call(robot, states[0], 0)
    monkeypatch.undo()
    for mine, theirs in zip(found, expected, strict=True):
        assert mine is None or np.array_equal(mine, theirs)
    assert not batch or all(mine is not None for mine in found)


@pytest.mark.slow
def test_a_finalizer_may_compute_while_a_robot_is_made(rng):
    """One thread makes kernels and computes meanwhile; another one makes launches and needs kernels. Neither waits for the other."""
    robot, making, inside, done = made(int(rng.integers(1 << 30))), threading.Event(), threading.Event(), []
    record = Calls.record

    @compiling
    def make():
        making.set()
        inside.wait(5.0)
        state = robot.make_state()
        state.q = np.zeros((5, robot.dof))
        done.append(robot.compute_transformation(state, 0, 1).shape)

    def slow(calls, *args, **options):
        if threading.current_thread() is threads[1]:
            inside.set()
        return record(calls, *args, **options)

    def compute():
        making.wait(5.0)
        state = robot.make_state()
        state.q = np.zeros((6, robot.dof))
        done.append(robot.compute_transformation(state, 0, 1).shape)

    threads = [threading.Thread(target=f, daemon=True) for f in (make, compute)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Calls, "record", slow)
        [thread.start() for thread in threads]
        [thread.join(30.0) for thread in threads]
    assert sorted(done) == [(5, 4, 4), (6, 4, 4)]


def test_a_shelf_gives_a_thing_to_one_user_at_a_time():
    shelf = Shelf(2)
    assert shelf.take("a") is None
    for key, thing in (("a", 1), ("a", 2), ("b", 3), ("a", 4), ("c", 5)):
        shelf.give(key, thing)
    assert shelf.take("b") is None
    assert sorted(shelf.take("a") for _ in range(3)) == [1, 2, 4]
    assert shelf.take("a") is None and shelf.take("c") == 5
    for thing in range(100):
        shelf.give("a", thing)
    assert 1 < sum(shelf.take("a") is not None for _ in range(100)) < 20


def test_no_code_runs_when_a_state_goes(rng):
    """Signal handlers run between operations of Python, and Python ignores errors of handlers that interrupt a ``__del__``: handlers that
    nest without end would never come to an end if it were code of Python that takes the memory of a state back."""
    robot, codes = made(int(rng.integers(1 << 30))), []
    state = robot.make_state()
    robot.compute_mass_matrix(state)
    memory = state.core._memory
    sys.setprofile(lambda frame, event, arg: codes.append(frame.f_code) if event == "call" else None)
    try:
        del state
    finally:
        sys.setprofile(None)
    assert not codes
    assert robot.make_state().core._memory is memory


def test_robots_compute_nothing_while_the_interpreter_ends(rng, monkeypatch):
    """Kernels may be gone before ``__del__`` of the last objects is called."""
    robot = made(int(rng.integers(1 << 30)))
    state = robot.make_state()
    monkeypatch.setattr("newton_like.robot.robot.is_finalizing", lambda: True)
    for call in (robot.compute_mass_matrix, robot.compute_inverse_dynamics, robot.detect_collisions_or_nearest_links):
        with pytest.raises(rd.RobotError, match="interpreter"):
            call(state)


LAST_WORDS = """
import os
import sys
import numpy as np
import newton_like.robot as rd

base, link = rd.Link("base"), rd.Link("link")
rd.Joint.make_revolute("j").connect_links(base, link)
robot = rd.Robot(rd.RobotConfiguration("r", base))

class Last:
    def __init__(self, batch):
        self.robot, self.state, self.write = robot, robot.make_state(), os.write
        self.state.q = np.ones((3, 1) if batch else 1)
        robot.compute_transformation(self.state, 0, 1)
    def __del__(self):
        try:
            self.robot.compute_transformation(self.state, 0, 1)
            self.robot.compute_mass_matrix(self.state)
        except RuntimeError as error:
            self.write(1, f"{error}\\n".encode())

kept = Last(False)
sys.kept = Last(True)
cycle = Last(False)
cycle.itself = cycle
"""


@pytest.mark.slow
def test_finalizers_at_exit_do_not_crash():
    done = subprocess.run([sys.executable, "-c", LAST_WORDS], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # others of the three may find names of modules gone
    assert "interpreter ends" in done.stdout
