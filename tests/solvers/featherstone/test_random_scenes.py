"""Random scenes of bodies and robots that fall over each other: nothing becomes infinite, gains energy, or falls through the ground."""

import pytest

from tests.support.random_scenes import random_scene, robot_scene, watch

STEPS = 360


@pytest.mark.slow
def test_random_scenes_stay_sound(rng):
    """Scenes in which something turns too fast for the time step stay sound with substeps."""
    for _ in range(25):
        model = random_scene(rng).finalize("cpu")
        speed = rng.choice([0.0, 2.0, 5.0])
        if watch(model, rng, 1, STEPS, speed):
            watch(model, rng, 4, STEPS, speed)


@pytest.mark.slow
def test_random_robots_whose_links_touch_stay_sound(rng):
    """The same for robots whose links touch each other."""
    for _ in range(25):
        model = robot_scene(rng).finalize("cpu")
        speed = rng.choice([0.0, 2.0, 5.0])
        if watch(model, rng, 1, STEPS, speed):
            watch(model, rng, 4, STEPS, speed)
