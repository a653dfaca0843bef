"""Many random scenes for a long time: ``python -m tests.benchmarks.random_scenes --scenes 1000 --steps 1000``.

Piles, robots in piles, and robots whose links touch each other, with kicks. Each scene is checked as in
``tests/solvers/featherstone/test_random_scenes.py``; scenes in which something turns too fast for the time step are run again with
substeps. The program prints the seed of each scene that fails, and ``--first SEED --scenes 1`` repeats it.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import warp as wp

from examples.common import positive_int

from ..support.random_scenes import random_scene, robot_scene, watch


def fault(seed: int, steps: int) -> str:
    """What does not hold in the scene of a seed; empty where all does."""
    rng = np.random.default_rng(seed)
    make = robot_scene if seed % 3 == 2 else random_scene
    model = make(rng).finalize("cpu")
    speed = rng.choice([0.0, 2.0, 5.0])
    try:
        if watch(model, rng, 1, steps, speed, kicks=2):
            watch(model, rng, 4, steps, speed, kicks=2)
    except AssertionError as error:
        return str(error)
    return ""


def main(arguments: list[str] | None = None) -> int:
    """Runs the scenes; 1 if one fails."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.random_scenes", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--scenes", type=positive_int, default=1000)
    parser.add_argument("--steps", type=positive_int, default=1000, help="of 1/240 s")
    parser.add_argument("--first", type=int, default=0, help="seed of the first scene")
    options = parser.parse_args(arguments)
    wp.config.log_level = wp.LOG_ERROR
    failed = 0
    for seed in range(options.first, options.first + options.scenes):
        wrong = fault(seed, options.steps)
        if wrong:
            failed += 1
            print(f"seed {seed}: {wrong}", flush=True)
        if (seed + 1 - options.first) % 50 == 0:
            print(f"{seed + 1 - options.first} scenes, {failed} failed", flush=True)
    print(f"{options.scenes} scenes of {options.steps} steps: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
