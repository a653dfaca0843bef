"""A heap of mixed bodies in a box, in maximal coordinates: ``python -m examples.heap``.

A thousand boxes, balls, capsules, cylinders, cones and polyhedra fall into an open box and come to rest. ``SolverXPBD`` moves each of them
as a body of its own, and all threads compute the one world together.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import newton_like as nl
from examples import blocks, common
from examples.blocks import Blocks
from newton_like.solvers import SolverXPBD

BODIES = 1000
SIDE = 11
"""Bodies of a row at the start; a layer has the square of it."""
SPACING = 0.22
"""Distance of bodies at the start [m]."""
SIZE = 0.1
"""Largest distance of the surface of a body from its centre, about [m]."""
THICK, HEIGHT = 0.2, 2.0
"""Thickness and height of the walls of the box [m]."""
INSIDE = 0.5 * SPACING * SIDE + 0.05
"""Half the width of the box [m]."""
DENSITY, FRICTION = 500.0, 0.5
TEST_TIME = 3.0
TEST_QUIET = 0.05
"""Speed above which a body counts as moving [m/s]."""
TEST_MOVING = 0.02
"""Share of bodies that may move at the end: single bodies still roll."""
ROW = 1
LOOK = {"azimuth": -55.0, "elevation": 35.0, "size": (560, 420)}


def polyhedron() -> nl.Mesh:
    """An icosahedron with corners at the distance SIZE [m]."""
    g = 0.5 * (1.0 + 5.0**0.5)
    corners = np.array([(0, a, b * g) for a in (-1, 1) for b in (-1, 1)], dtype=float)
    corners = np.concatenate([np.roll(corners, k, axis=1) for k in range(3)])
    corners *= SIZE / np.linalg.norm(corners[0])
    near = np.linalg.norm(corners[:, None] - corners[None], axis=2) < 1.1 * SIZE
    faces = [
        (i, j, k) for i in range(12) for j in range(i) for k in range(j) if near[i, j] and near[j, k] and near[i, k]
    ]
    turned = [f if np.linalg.det(corners[list(f)]) > 0.0 else f[::-1] for f in faces]
    return nl.Mesh(corners, np.array(turned).ravel())


def add_shape(world: nl.ModelBuilder, body: int, kind: int, size: float, mesh: nl.Mesh, cfg: nl.ShapeConfig) -> None:
    """Adds one of six shapes. `size`: about the distance of its surface from the centre [m]."""
    if kind == 0:
        world.add_shape_box(body, hx=size, hy=0.8 * size, hz=0.6 * size, cfg=cfg)
    elif kind == 1:
        world.add_shape_sphere(body, radius=size, cfg=cfg)
    elif kind == 2:
        world.add_shape_capsule(body, radius=0.6 * size, half_height=0.6 * size, cfg=cfg)
    elif kind == 3:
        world.add_shape_cylinder(body, radius=0.8 * size, half_height=0.8 * size, cfg=cfg)
    elif kind == 4:
        world.add_shape_cone(body, radius=0.8 * size, half_height=0.9 * size, cfg=cfg)
    else:
        world.add_shape_convex_hull(body, mesh=mesh, cfg=cfg)


class Heap(Blocks):
    """Bodies in maximal coordinates."""

    def make_solver(self):
        """The solver, which takes a time step at a time."""
        return SolverXPBD(self.model, update_joints=False)

    def advance(self) -> None:
        """Simulates a frame."""
        for _ in range(self.substeps):
            self.solver.step(self.state, self.state, self.control, dt=self.dt)
        self.time += self.frame_time


def build(worlds: int, dt: float, device: str, seed: int, bodies: int = BODIES) -> Heap:
    """The bodies above the box, in rows, columns and layers, turned at random."""
    rng = np.random.default_rng(seed)
    world = nl.ModelBuilder()
    cfg = nl.ShapeConfig(mu=FRICTION, density=DENSITY)
    world.default_shape_cfg = cfg
    half, away = 0.5 * HEIGHT, INSIDE + THICK
    for side in (-1.0, 1.0):
        world.add_shape_box(
            -1, xform=(side * away, 0, half, 0, 0, 0, 1), hx=THICK, hy=INSIDE + 2 * THICK, hz=half, cfg=cfg
        )
        world.add_shape_box(-1, xform=(0, side * away, half, 0, 0, 0, 1), hx=INSIDE, hy=THICK, hz=half, cfg=cfg)
    mesh = polyhedron()
    for i in range(bodies):
        body = world.add_body(label=f"body_{i}")
        add_shape(world, body, int(rng.integers(6)), SIZE * rng.uniform(0.7, 1.0), mesh, cfg)
    n = np.arange(bodies)
    place = (
        np.stack([n % SIDE - 0.5 * (SIDE - 1), n // SIDE % SIDE - 0.5 * (SIDE - 1), n // SIDE**2 + 0.6], axis=1)
        * SPACING
    )
    q, qd = np.zeros((worlds, bodies, 7)), np.zeros((worlds, bodies, 6))
    q[..., :3] = place + rng.uniform(-0.01, 0.01, (worlds, bodies, 3))
    turn = rng.normal(size=(worlds, bodies, 4))
    q[..., 3:] = turn / np.linalg.norm(turn, axis=2, keepdims=True)
    return Heap(world, q, qd, dt, device)


def moving(scene: Blocks) -> np.ndarray:
    """The share of bodies that move, ``[worlds]``."""
    return (np.linalg.norm(scene.velocities[..., :3], axis=2) > TEST_QUIET).mean(axis=1)


def check(scene: Blocks) -> None:
    """Raises AssertionError unless all bodies stay in the box and nearly all come to rest."""
    centres = np.array(scene.poses)[..., :3]
    share = moving(scene)
    for world in range(scene.worlds):
        # Raised by hand: python -O leaves assertions out.
        if not scene.healthy[world]:
            raise AssertionError(f"world {world} diverged")
        if np.abs(centres[:, world, :, :2]).max() > INSIDE:
            raise AssertionError(f"a body of world {world} went through a wall")
        if centres[:, world, :, 2].min() < 0.0:
            raise AssertionError(f"a body of world {world} went through the ground")
        if share[world] > TEST_MOVING:
            raise AssertionError(f"{100 * share[world]:.1f} % of the bodies of world {world} still move")


def report(scene: Blocks, heading: str, rates: list[tuple[str, str]]) -> None:
    """Prints the summary."""
    top = np.array(scene.poses)[-1, :, :, 2].max(axis=1)
    rows = [
        ("bodies", f"{scene.boxes}"),
        ("highest centre at the end", f"{top.mean():.2f} m"),
        ("bodies that move at the end", f"{100 * moving(scene).mean():.1f} %"),
    ]
    common.summary(heading, [*rows, *rates])


def plot(scene: Blocks, folder: Path) -> Path:
    """Plots heights and speeds; returns the path of the PNG."""
    figure, axes = common.new_figure([["height", "speed"]], figsize=(11, 4.8))
    figure.suptitle(common.count_text(scene.worlds, "heap"), fontsize=13, fontweight="bold")
    centres = np.array(scene.poses)[..., :3]
    common.band(axes["height"], scene.seconds, centres[:, 0, :, 2], "C0")
    axes["height"].set(title="Heights of the bodies", xlabel="time [s]", ylabel="z [m]")
    speed = np.linalg.norm(np.diff(centres[:, 0], axis=0), axis=2) / scene.frame_time
    common.band(axes["speed"], scene.seconds[1:], speed, "C1")
    axes["speed"].set(title="Speeds of the bodies", xlabel="time [s]", ylabel="speed [m/s]")
    return common.save_figure(figure, folder, "heap.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    blocks.run(
        arguments,
        name="heap",
        description="Simulates a thousand mixed bodies that fall into a box, in maximal coordinates.",
        tested="all bodies stay in the box and come to rest",
        title="heap",
        word="settle",
        test_time=TEST_TIME,
        world_count=1,
        num_frames=180,
        build=build,
        report=report,
        plot=plot,
        check=check,
        row=ROW,
        look=LOOK,
    )


if __name__ == "__main__":
    common.run(main)
