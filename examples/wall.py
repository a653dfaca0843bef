"""A ball breaks through a brick wall, in maximal coordinates: ``python -m examples.wall``.

The wall is a running bond of bricks without mortar. ``SolverXPBD`` moves each brick as a body of its own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import newton_like as nl
from examples import blocks, common
from examples.blocks import Blocks
from newton_like.solvers import SolverXPBD

ROWS, COLUMNS = 5, 6
"""Rows of bricks, and bricks of a row. Rows are shifted against each other by a quarter of a brick."""
HALF = (0.1, 0.2, 0.1)
"""Half the sizes of a brick [m]: thickness, width, height."""
DENSITY, BALL_DENSITY = 500.0, 1000.0
BALL_RADIUS, BALL_DISTANCE = 0.2, 1.5
"""Radius of the ball, and its distance from the wall at the start [m]."""
SPEED = (6.0, 9.0)
"""Range of the speed of the ball [m/s]."""
FRICTION = 0.6
TEST_TIME = 1.5
TEST_MOVED = 0.2
"""A brick counts as moved beyond this distance from its place [m]."""
ROW = 1
LOOK = {"azimuth": -50.0, "elevation": 18.0, "size": (560, 360)}


def places() -> np.ndarray:
    """Centres of the bricks, ``[bricks, 3]`` [m]."""
    found = []
    for i in range(ROWS):
        y = 2.0 * HALF[1] * (np.arange(COLUMNS) - 0.5 * (COLUMNS - 1) + 0.25 * (i % 2))
        found.append(np.stack([np.zeros(COLUMNS), y, np.full(COLUMNS, HALF[2] * (1 + 2 * i))], axis=1))
    return np.concatenate(found)


class Wall(Blocks):
    """Blocks in maximal coordinates."""

    def make_solver(self):
        """The solver, which takes a time step at a time."""
        return SolverXPBD(self.model)

    def advance(self) -> None:
        """Simulates a frame."""
        for _ in range(self.substeps):
            self.solver.step(self.state, self.state, self.control, dt=self.dt)
        self.time += self.frame_time


def build(worlds: int, dt: float, device: str, seed: int) -> Wall:
    """The wall, and the ball on its way."""
    world = nl.ModelBuilder()
    world.default_shape_cfg.mu = FRICTION
    bricks = places()
    for i in range(len(bricks)):
        body = world.add_body(label=f"brick_{i}")
        world.add_shape_box(body, hx=HALF[0], hy=HALF[1], hz=HALF[2], cfg=nl.ShapeConfig(mu=FRICTION, density=DENSITY))
    ball = world.add_body(label="ball")
    world.add_shape_sphere(ball, radius=BALL_RADIUS, cfg=nl.ShapeConfig(mu=FRICTION, density=BALL_DENSITY))
    q, qd = np.zeros((worlds, len(bricks) + 1, 7)), np.zeros((worlds, len(bricks) + 1, 6))
    q[..., 6] = 1.0
    q[:, :-1, :3] = bricks
    rng = np.random.default_rng(seed)
    q[:, -1, 0] = -BALL_DISTANCE
    q[:, -1, 1] = rng.uniform(-0.3, 0.3, worlds)
    q[:, -1, 2] = 0.6 * ROWS * 2.0 * HALF[2]
    qd[:, -1, 0] = rng.uniform(*SPEED, worlds)
    return Wall(world, q, qd, dt, device)


def moved(scene: Blocks) -> np.ndarray:
    """How many bricks left their places, ``[frames, worlds]``."""
    way = np.linalg.norm(np.array(scene.poses)[:, :, :-1, :3] - places(), axis=3)
    return (way > TEST_MOVED).sum(axis=2)


def check(scene: Blocks) -> None:
    """Raises AssertionError unless the wall stands until the ball comes, breaks then, and nothing sinks into the ground."""
    poses = np.array(scene.poses)
    quiet = round(0.1 / scene.frame_time)
    early = np.abs(poses[quiet, :, :-1, :3] - places()).max(axis=(1, 2))
    broken = moved(scene)[-1]
    low = poses[..., 2].min(axis=(0, 2))
    for world in range(scene.worlds):
        # Raised by hand: python -O leaves assertions out.
        if not scene.healthy[world]:
            raise AssertionError(f"world {world} diverged")
        if early[world] > 0.01:
            raise AssertionError(f"the wall of world {world} moved by {early[world]:.3f} m before the ball came")
        if not 3 <= broken[world] < len(places()):
            raise AssertionError(f"{broken[world]} of {len(places())} bricks of world {world} left their places")
        if low[world] < 0.5 * min(HALF):
            raise AssertionError(f"a body of world {world} is {min(HALF) - low[world]:.3f} m deep in the ground")


def report(scene: Blocks, heading: str, rates: list[tuple[str, str]]) -> None:
    """Prints the summary."""
    broken = moved(scene)[-1]
    speed = np.linalg.norm(scene.velocities[:, -1, :3], axis=1)
    rows = [
        ("bricks that left their places", f"{broken.mean():.1f} of {len(places())}"),
        ("speed of the ball at the end", f"{speed.mean():.2f} m/s"),
    ]
    common.summary(heading, [*rows, *rates])


def plot(scene: Blocks, folder: Path) -> Path:
    """Plots the bricks that moved and the way of the ball; returns the path of the PNG."""
    figure, axes = common.new_figure([["bricks", "ball"]], figsize=(11, 4.8))
    figure.suptitle(common.count_text(scene.worlds, "wall"), fontsize=13, fontweight="bold")
    common.band(axes["bricks"], scene.seconds, moved(scene).astype(float), "C0")
    axes["bricks"].set(title="Bricks that left their places", xlabel="time [s]", ylabel="bricks")
    common.band(axes["ball"], scene.seconds, np.array(scene.poses)[:, :, -1, 0], "C1")
    axes["ball"].set(title="Position of the ball", xlabel="time [s]", ylabel="x [m]")
    return common.save_figure(figure, folder, "wall.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    blocks.run(
        arguments,
        name="wall",
        description="Simulates a ball that breaks through a brick wall, in maximal coordinates.",
        tested="the wall stands until the ball comes, and breaks then",
        title="wall",
        word="break",
        test_time=TEST_TIME,
        world_count=1,
        num_frames=120,
        build=build,
        report=report,
        plot=plot,
        check=check,
        row=ROW,
        look=LOOK,
    )


if __name__ == "__main__":
    common.run(main)
