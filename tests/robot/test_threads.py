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
barrier, found = threading.Barrier(6), [[] for _ in range(6)]
positions = np.random.default_rng(int(sys.argv[2])).uniform(-0.5, 0.5, (6, 50, robots[0].dof))

def work(robot, positions, found, wait):
    state = robot.make_state(["base", "hand"])
    wait()
    for q in positions:
        state.q = q
        found.append((robot.compute_transformation(state, 0, 1), robot.compute_transformation(state, 1, 0)))

threads = [threading.Thread(target=work, args=(*each, barrier.wait)) for each in zip(robots, positions, found)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
for i in range(6):
    alone = []
    work(robot(), positions[i], alone, lambda: None)
    np.testing.assert_array_equal(found[i], alone)
there, back = np.moveaxis(np.array(found), 2, 0)
np.testing.assert_allclose(there @ back, np.broadcast_to(np.eye(4), there.shape), atol=1e-12)
"""


@pytest.mark.slow
@pytest.mark.parametrize("whose", ["own", "shared"])
def test_threads_may_make_their_first_calls_at_once(rng, whose):
    """Each thread has positions of its own, and the same results as if it were alone."""
    # several tries: two threads meet by chance
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SCRIPT, whose, str(rng.integers(2**31))],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
