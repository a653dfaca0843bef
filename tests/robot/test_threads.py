"""Threads whose first calls come at the same time, in a process that has compiled and loaded nothing."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys, threading
import numpy as np
import newton_like.robot as rd
from newton_like import assets

def robot():
    return rd.Robot(rd.load_robot_from_urdf(assets.path("arm.urdf"), "base"))

robots = [robot() for _ in range(6)] if sys.argv[1] == "own" else [robot()] * 6
barrier, q, found = threading.Barrier(6), np.linspace(-0.5, 0.5, robots[0].dof), []

def work(robot):
    state = robot.make_state(["base", "hand"])
    barrier.wait()
    for _ in range(50):
        state.q = q
        found.append((robot.compute_transformation(state, 0, 1), robot.compute_transformation(state, 1, 0)))

threads = [threading.Thread(target=work, args=(robot,)) for robot in robots]
[thread.start() for thread in threads], [thread.join() for thread in threads]
assert len(found) == 300
for there, back in found:
    np.testing.assert_allclose(there @ back, np.eye(4), atol=1e-12)
"""


@pytest.mark.slow
@pytest.mark.parametrize("whose", ["own", "shared"])
def test_threads_may_make_their_first_calls_at_once(whose):
    # several tries: two threads meet by chance
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SCRIPT, whose], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
