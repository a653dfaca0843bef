"""The same robot in newton_like.robot and in the vendor's library of the robot SDK. Tests that import this file are skipped without the
vendor's library."""

import numpy as np
import pytest

from newton_like import robot as rd
from tests.support import robot_calls

vendor = pytest.importorskip("rby1_sdk.dynamics", reason="rby1-sdk is not installed (extra 'peers')")


def close(found, expected, what="", tolerance=1e-9):
    assert np.shape(found) == np.shape(expected), what
    if np.size(expected):
        np.testing.assert_allclose(
            found, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max()), err_msg=what
        )


class Pair:
    """The same robot in both libraries, with states of the same order and the same inputs.

    Args:
        make: a function of the library that returns the base link.
        rng: for the order of names and the inputs.
        dofs: a robot of fixed size.
    """

    def __init__(self, make, rng, dofs: int | None = None):
        kind = "Robot" if dofs is None else f"Robot_{dofs}"
        self.robots = [getattr(lib, kind)(lib.RobotConfiguration("pair", make(lib))) for lib in (rd, vendor)]
        seed = rng.integers(2**32)
        self.states = [robot_calls.shuffled_state(robot, np.random.default_rng(seed)) for robot in self.robots]
        self.rng = rng

    def set(self, **inputs):
        for state in self.states:
            for name, value in inputs.items():
                setattr(state, name, value)
        robot, state = self.robots[1], self.states[1]
        robot.compute_forward_kinematics(state)
        robot.compute_diff_forward_kinematics(state)
        robot.compute_2nd_diff_forward_kinematics(state)

    def randomize(self):
        self.set(**{name: robot_calls.random_input(self.states[0], name, self.rng) for name in robot_calls.INPUTS})

    def both(self, call, *links):
        return [call(robot, state, *links) for robot, state in zip(self.robots, self.states, strict=True)]

    def check(self, calls, rounds: int = 3):
        calls = {name: call for name, call in calls.items() if name not in ("center_of_mass", "com_jacobian")}
        for _ in range(rounds):
            self.randomize()
            links = robot_calls.two_links(self.robots[0], self.states[0], self.rng)
            for name, call in calls.items():
                tolerance = 1e-9
                if name == "reflective_inertia":
                    ratio = robot_calls.reach(self.robots[0], self.states[0], *links)
                    if ratio > 1e9:
                        # almost singular: what counts as unreachable is a matter of thresholds
                        continue
                    tolerance += 1e-13 * ratio
                close(*self.both(call, *links), name, tolerance)
            self.check_centre(links[0])

    def check_collisions(self, least: int):
        """Some of ten thousand distances of the vendor's library are too large; tests/robot/test_distances.py has an independent
        reference."""
        found, expected = self.both(lambda robot, state: robot.detect_collisions_or_nearest_links(state, least))
        assert len(found) == len(expected)
        missing = 0
        for theirs in expected:
            same = [ours for ours in found if (ours.link1, ours.link2) == (theirs.link1, theirs.link2)]
            ours = min(same, key=lambda x, d=theirs.distance: abs(x.distance - d), default=None)
            if ours is None or abs(ours.distance - theirs.distance) > 1e-9:
                missing += 1
                continue
            if theirs.distance < ours.distance + 1e-13:
                close(ours.position1, theirs.position1, tolerance=1e-5)
                close(ours.position2, theirs.position2, tolerance=1e-5)
        assert missing <= 1 + len(expected) // 20
        assert all(ours.distance <= theirs.distance + 1e-9 for ours, theirs in zip(found, expected, strict=True))

    def check_centre(self, ref: int):
        (ours, theirs), (state, other) = self.robots, self.states
        masses = np.array([theirs.compute_mass(other, i) for i in range(len(other.link_names))])
        heavy = np.flatnonzero(masses).tolist()
        close(
            ours.compute_center_of_mass(state, ref), theirs.compute_center_of_mass(other, ref, heavy), "center_of_mass"
        )
        columns = sum(masses[i] * theirs.compute_center_of_mass_jacobian(other, ref, i) for i in heavy)
        close(ours.compute_center_of_mass_jacobian(state, ref), columns / masses.sum(), "com_jacobian")
        if masses.all():
            close(ours.compute_center_of_mass(state, ref), theirs.compute_center_of_mass(other, ref), "center_of_mass")
            close(*self.both(robot_calls.SHARED["com_jacobian"], ref, ref), "com_jacobian")
