"""Towers of ten boxes drop onto the ground and stand, each placed a little differently: ``python -m examples.box_tower``.

The boxes start a little above each other, each moved and turned by a random amount.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import newton_like as nl
from examples import blocks, common
from examples.blocks import Blocks

BOXES = 10
HALF = 0.1
"""Half the edge of a box [m]."""
GAP = 0.01
"""Distance between boxes at the start [m]."""
OFFSET, TURN = 0.01, 0.3
"""Largest displacement along x and y [m] and largest turn about z [rad] of a box at the start."""
TEST_TIME, TEST_DISTANCE, TEST_SPEED = 3.0, 0.01, 0.01
"""A tower stands if, after this time [s], each box is within this distance of its place [m] and slower than this [m/s]."""
ROW = 4
LOOK = {"spacing": (0.7, 0.0, 0.0), "azimuth": -60.0, "elevation": 15.0, "size": (560, 420)}
"""Towers in a video: distance between them [m], direction of the camera [degrees] and size of the video [pixels]."""


def heights() -> np.ndarray:
    """Heights of the centres of the boxes of a tower that stands, ``[boxes]`` [m]."""
    return HALF * (1.0 + 2.0 * np.arange(BOXES))


def build(worlds: int, dt: float, device: str, seed: int) -> Blocks:
    """Towers before the drop."""
    tower = nl.ModelBuilder()
    for i in range(BOXES):
        body = tower.add_body(label=f"box_{i}")
        tower.add_shape_box(body, hx=HALF, hy=HALF, hz=HALF)
    rng = np.random.default_rng(seed)
    q = np.zeros((worlds, BOXES, 7))
    q[..., :2] = rng.uniform(-OFFSET, OFFSET, (worlds, BOXES, 2))
    q[..., 2] = heights() + GAP * np.arange(1, BOXES + 1)
    half = 0.5 * rng.uniform(-TURN, TURN, (worlds, BOXES))
    q[..., 5], q[..., 6] = np.sin(half), np.cos(half)
    return Blocks(tower, q, np.zeros((worlds, BOXES, 6)), dt, device)


def errors(scene: Blocks) -> np.ndarray:
    """Distances of the boxes from their places in a tower that stands, ``[frames, worlds, boxes]`` [m].

    The place of a box is its start, lowered onto the box below.
    """
    places = scene.poses[0][..., :3].copy()
    places[..., 2] = heights()
    return np.linalg.norm(np.array(scene.poses)[..., :3] - places, axis=3)


def standing(scene: Blocks) -> np.ndarray:
    """Which towers stand now, ``[worlds]``."""
    near = errors(scene)[-1].max(axis=1) < TEST_DISTANCE
    slow = np.linalg.norm(scene.velocities[..., :3], axis=2).max(axis=1) < TEST_SPEED
    return scene.healthy & near & slow


def check(scene: Blocks) -> None:
    """Raises AssertionError unless all towers stand."""
    fallen = np.flatnonzero(~standing(scene))
    # Raised by hand: python -O leaves assertions out.
    if len(fallen):
        raise AssertionError(
            f"{len(fallen)} of {common.count_text(scene.worlds, 'tower')} do not stand, the first is in world {fallen[0]}"
        )


def report(scene: Blocks, heading: str, rates: list[tuple[str, str]]) -> None:
    """Prints the summary."""
    error = 1.0e3 * errors(scene)[-1]
    speed = 1.0e3 * np.linalg.norm(scene.velocities[..., :3], axis=2)
    common.summary(
        heading,
        [
            ("standing", f"{standing(scene).sum()} of {common.count_text(scene.worlds, 'tower')}"),
            ("distance from the place", f"{error.mean():.2f} mm, at most {error.max():.2f} mm"),
            ("speed", f"{speed.mean():.3f} mm/s, at most {speed.max():.3f} mm/s"),
            *rates,
        ],
    )


def plot(scene: Blocks, folder: Path) -> Path:
    """Plots the heights of the boxes of a tower, and the distances of all boxes from their places; returns the path of the PNG."""
    figure, axes = common.new_figure([["height", "error"]], figsize=(11, 4.8))
    figure.suptitle(common.count_text(scene.worlds, "tower"), fontsize=13, fontweight="bold")
    z = np.array(scene.poses)[:, 0, :, 2]
    for i in range(BOXES):
        axes["height"].plot(scene.seconds, z[:, i], color=f"C{i}", lw=1.4)
    axes["height"].set(title="Heights of the boxes (world 0)", ylabel="height of the centre [m]")
    common.band(axes["error"], scene.seconds, 1.0e3 * errors(scene).max(axis=2), "C0")
    axes["error"].set(title="Largest distance of a box from its place", ylabel="distance [mm]", yscale="log")
    axes["error"].legend(loc="best")
    for name in axes:
        axes[name].set(xlabel="time [s]", xlim=(0.0, scene.seconds[-1]))
    return common.save_figure(figure, folder, "box_tower.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    blocks.run(
        arguments,
        name="box_tower",
        description="Simulates towers of ten boxes that drop onto the ground.",
        tested=f"all towers stand after {TEST_TIME:g} s",
        title="tower",
        word="drop",
        test_time=TEST_TIME,
        world_count=64,
        num_frames=240,
        build=build,
        report=report,
        plot=plot,
        check=check,
        row=ROW,
        look=LOOK,
    )


if __name__ == "__main__":
    common.run(main)
