"""Crates fall on a bridge of planks that hangs between two banks, in maximal coordinates: ``python -m examples.chain_bridge``.

Planks are joined by hinges, in a chain that is closed by a hinge on the other bank. ``SolverXPBD`` solves joints and contacts side by side:
the time of a step grows linearly with the number of planks and crates.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

import newton_like as nl
from examples import blocks, common
from examples.blocks import Blocks
from newton_like.geometry.transforms import transform_point
from newton_like.solvers import SolverXPBD

PLANKS, CRATES = 24, 6
"""Planks of the bridge, and crates that fall on it."""
LENGTH, WIDTH, THICKNESS = 0.25, 0.8, 0.04
"""Size of a plank [m]; LENGTH is the distance of its hinges."""
SLACK = 1.05
"""Length of the bridge, as a multiple of the span."""
DENSITY, FRICTION = 600.0, 0.6
CRATE, CRATE_MASS, DROP = 0.3, 30.0, 0.6
"""Edge [m] and mass [kg] of a crate, and its height above the banks at the start [m]."""
DAMPING = 4.0
"""Damping of a hinge [N m s/rad]."""
TEST_TIME, TEST_GAP = 4.0, 2.0e-3
"""The hinges stay closed within a gap [m] while the crates fall and lie; the impacts open them by about a millimetre."""
CLOSING_SPEED = 2.0
"""Speed at which gaps of hinges close at least [m/s]."""
ROW = 1
LOOK = {"azimuth": -70.0, "elevation": 18.0, "size": (640, 320)}
SPAN = PLANKS * LENGTH / SLACK


def arc(length: float, span: float, parts: int) -> np.ndarray:
    """Joints of a chain of equal parts between two points at height 0, along a parabola of about the length, ``[parts + 1, 2]`` [m]."""

    def ends(depth: float) -> np.ndarray:
        # equal parts: each turns by the slope of the parabola in its middle
        x = (np.arange(parts) + 0.5) / parts * 2.0 - 1.0
        slope = np.arctan(depth * x)
        steps = length / parts * np.stack([np.cos(slope), np.sin(slope)], axis=1)
        return np.concatenate([[[0.0, 0.0]], np.cumsum(steps, axis=0)])

    depth = brentq(lambda d: ends(d)[-1, 0] - span, 0.0, 3.0)
    return ends(depth)


def bridge() -> nl.ModelBuilder:
    """A world: planks, hinges, and crates above."""
    world = nl.ModelBuilder()
    world.default_shape_cfg.mu = FRICTION
    plank = nl.ShapeConfig(mu=FRICTION, density=DENSITY, collision_group=1)
    points = arc(PLANKS * LENGTH, SPAN, PLANKS)
    angles = -np.arctan2(*np.diff(points, axis=0).T[::-1])
    joints, parent, before = [], -1, 0.0
    for i in range(PLANKS):
        body = world.add_link(label=f"plank_{i}")
        size = dict(hx=0.46 * LENGTH, hy=0.5 * WIDTH, hz=0.5 * THICKNESS)
        world.add_shape_box(body, xform=(0.5 * LENGTH, 0, 0, 0, 0, 0, 1), cfg=plank, **size)
        at = (LENGTH if i else -0.5 * SPAN, 0.0, 0.0 if i else 1.5, 0.0, 0.0, 0.0, 1.0)
        joints.append(world.add_joint_revolute(parent, body, parent_xform=at, axis=(0, 1, 0), damping=DAMPING))
        world.joint_q[-1] = angles[i] - before
        parent, before = body, angles[i]
    world.add_articulation(joints)
    world.add_joint_revolute(
        -1, parent, parent_xform=(0.5 * SPAN, 0, 1.5, 0, 0, 0, 1), child_xform=(LENGTH, 0, 0, 0, 0, 0, 1), axis=(0, 1, 0), label="bank"
    )  # fmt: skip
    crate = nl.ShapeConfig(mu=FRICTION, density=CRATE_MASS / CRATE**3)
    for i in range(CRATES):
        x = SPAN * (0.25 + 0.5 * i / (CRATES - 1) - 0.5)
        body = world.add_body(xform=(x, 0.0, 1.5 + DROP + 0.1 * i, 0.0, 0.0, 0.0, 1.0), label=f"crate_{i}")
        world.add_shape_box(body, hx=0.5 * CRATE, hy=0.5 * CRATE, hz=0.5 * CRATE, cfg=crate)
    return world


class Bridges(Blocks):
    """Worlds with a bridge each; crates fall from random places.

    Attributes:
        gap: largest gap of a hinge after each recorded frame [m].
    """

    def __init__(self, worlds: int, dt: float, device: str, seed: int):
        begin = time.perf_counter()
        world = bridge()
        scene = nl.ModelBuilder()
        scene.add_ground_plane(cfg=world.default_shape_cfg)
        scene.replicate(world, worlds)
        rng = np.random.default_rng(seed)
        starts = np.array(scene.joint_q_start)[np.array(scene.joint_type) == nl.JointType.FREE]
        q = np.array(scene.joint_q)
        q[starts] += rng.uniform(-0.05, 0.05, len(starts))
        q[starts + 1] += rng.uniform(-0.1, 0.1, len(starts))
        scene.joint_q = q
        self.gap: list[float] = []
        self.prepare(scene.finalize(device), worlds, world.body_count, dt, begin)

    def make_solver(self):
        """The solver, which takes a time step at a time. Gaps of hinges shrink with the sub-steps: long time steps get more of them."""
        return SolverXPBD(self.model, max_depenetration_speed=CLOSING_SPEED, substeps=common.substeps_in(self.dt))

    def advance(self) -> None:
        """Simulates a frame."""
        for _ in range(self.substeps):
            self.solver.step(self.state, self.state, self.control, dt=self.dt)
        self.time += self.frame_time

    def observe(self) -> None:
        super().observe()
        self.gap.append(float(self.gaps().max()))

    def gaps(self) -> np.ndarray:
        """Distances between both ends of each hinge, ``[hinges]`` [m]."""
        model = self.model
        poses = np.append(self.state.body_q.numpy().astype(float), [[0, 0, 0, 0, 0, 0, 1]], axis=0)
        hinges = np.flatnonzero(model.joint_type.numpy() == nl.JointType.REVOLUTE)
        sides = [
            (getattr(model, f"joint_{n}").numpy()[hinges], getattr(model, f"joint_X_{n[0]}").numpy()[hinges])
            for n in ("parent", "child")
        ]
        one, two = (transform_point(poses[body], frame[:, :3].astype(float)) for body, frame in sides)
        return np.linalg.norm(one - two, axis=1)

    def sag(self) -> np.ndarray:
        """How far the lowest plank is below the banks, ``[frames, worlds]`` [m]."""
        return 1.5 - np.array(self.poses)[:, :, :PLANKS, 2].min(axis=2)

    def lying(self) -> np.ndarray:
        """How many crates are on the bridge, ``[frames, worlds]``: not on the ground below."""
        return (np.array(self.poses)[:, :, PLANKS:, 2] > CRATE).sum(axis=2)


def build(worlds: int, dt: float, device: str, seed: int) -> Bridges:
    """Bridges, and crates above them."""
    return Bridges(worlds, dt, device, seed)


def check(scene: Bridges) -> None:
    """Raises AssertionError unless the hinges stay closed and crates lie on the bridges."""
    # Raised by hand: python -O leaves assertions out.
    if not scene.healthy.all():
        raise AssertionError(f"{(~scene.healthy).sum()} worlds diverged")
    if max(scene.gap) > TEST_GAP:
        raise AssertionError(f"a hinge is open by {1e3 * max(scene.gap):.3f} mm")
    if scene.lying()[-1].min() < 1:
        raise AssertionError("no crate lies on a bridge")
    if not 0.2 < scene.sag()[-1].max() < 1.4:
        raise AssertionError(f"a bridge hangs down by {scene.sag()[-1].max():.2f} m")


def report(scene: Bridges, heading: str, rates: list[tuple[str, str]]) -> None:
    """Prints the summary."""
    rows = [
        ("crates on the bridge at the end", f"{scene.lying()[-1].mean():.1f} of {CRATES}"),
        ("sag at the end", f"{scene.sag()[-1].mean():.2f} m"),
        ("largest gap of a hinge", f"{1e3 * max(scene.gap):.3f} mm"),
    ]
    common.summary(heading, [*rows, *rates])


def plot(scene: Bridges, folder: Path) -> Path:
    """Plots the sag of the bridges and the gaps of their hinges; returns the path of the PNG."""
    figure, axes = common.new_figure([["sag", "gap"]], figsize=(11, 4.8))
    figure.suptitle(common.count_text(scene.worlds, "bridge"), fontsize=13, fontweight="bold")
    common.band(axes["sag"], scene.seconds, scene.sag(), "C0")
    axes["sag"].set(title="Sag of the bridge", xlabel="time [s]", ylabel="sag [m]")
    axes["gap"].plot(scene.seconds, 1e3 * np.array(scene.gap), color="C1", lw=1.4)
    axes["gap"].set(title="Largest gap of a hinge", xlabel="time [s]", ylabel="gap [mm]")
    return common.save_figure(figure, folder, "chain_bridge.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    blocks.run(
        arguments,
        name="chain_bridge",
        description="Simulates crates that fall on a bridge of planks, in maximal coordinates.",
        tested="the hinges stay closed, and crates lie on the bridge",
        title="bridge",
        word="fall",
        test_time=TEST_TIME,
        world_count=1,
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
