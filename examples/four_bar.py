"""Four-bar linkages swing from rest, each with other bars: ``python -m examples.four_bar``.

Three bars hang between two hinges on the world; the second one closes a loop. Without friction, a linkage keeps its energy. The middle of
the coupler, the bar between crank and rocker, moves on a coupler curve (F. Freudenstein, "Approximate synthesis of four-bar linkages",
Trans. ASME 77, 1955).
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import newton_like as nl
from examples import blocks, common
from examples.blocks import Blocks
from newton_like import dynamics

GROUND, CRANK, COUPLER, ROCKER = 0.5, 0.2, 0.45, 0.4
"""Lengths: between the hinges on the world, and of the three bars [m]."""
SPREAD = 0.05
"""Largest relative difference of these lengths between worlds."""
DENSITY, RADIUS = 1500.0, 0.015
"""Density [kg/m^3] and radius [m] of the bars."""
AXIS = (0.0, -1.0, 0.0)
"""Axis of all hinges; angles grow from x towards z."""
GRAVITY = 9.81
TEST_TIME, TEST_ENERGY, TEST_GAP = 3.0, 1.0e-2, 1.0e-4
"""Linkages keep their energy for this time [s], to this part of the energy that they can store, and loops stay closed within a gap [m]."""
TIME_STEP = "1/480"
"""Gaps after a step go by the square of the time step: 0.03 mm here, 0.11 mm at 1/240 s. They are closed in the middle of each step."""
ROW = 4
LOOK = {"spacing": (0.95, 0.0, 0.0), "azimuth": -90.0, "elevation": 0.0, "size": (640, 240)}


def closed_angles(lengths: np.ndarray, crank: np.ndarray) -> np.ndarray:
    """Angles of the three bars to the x axis at which linkages are closed, ``[n, 3]`` [rad].

    Args:
        lengths: of ground, crank, coupler and rocker, ``[n, 4]`` [m].
        crank: angles of the cranks, ``[n]`` [rad].
    """
    ground, first, second, third = lengths.T
    end = first * np.exp(1j * crank)
    away = ground - end
    along = (second**2 - third**2 + np.abs(away) ** 2) / (2.0 * np.abs(away))
    joint = end + (along + 1j * np.sqrt(second**2 - along**2)) * away / np.abs(away)
    return np.stack([crank, np.angle(joint - end), np.angle(ground - joint)], axis=1)


def linkage(lengths: np.ndarray) -> nl.ModelBuilder:
    """A world with a linkage of bars of these lengths ``[4]`` [m]."""
    world = nl.ModelBuilder()
    cfg = nl.ShapeConfig(density=DENSITY, has_shape_collision=False)
    turned = (0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5))  # a capsule along x
    bars, joints, reach = [-1], [], 0.0
    for i, (name, length) in enumerate(zip(("crank", "coupler", "rocker"), lengths[1:], strict=True)):
        bar = world.add_link(label=name)
        middle = (0.5 * length, 0.0, 0.0, *turned)
        world.add_shape_capsule(bar, xform=middle, radius=RADIUS, half_height=0.5 * length, cfg=cfg)
        at = (reach, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        joints.append(world.add_joint_revolute(bars[i], bar, parent_xform=at, axis=AXIS, label=f"hinge_{i}"))
        bars.append(bar)
        reach = length
    world.add_articulation(joints)
    ends = dict(parent_xform=(lengths[0], 0, 0, 0, 0, 0, 1), child_xform=(reach, 0, 0, 0, 0, 0, 1))
    world.add_joint_revolute(-1, bars[-1], axis=AXIS, label="closing", **ends)
    return world


class Linkages(Blocks):
    """Worlds with a linkage each, which starts at rest.

    Attributes:
        gap: largest gap of the loops after each recorded frame [m].
        energy: energies after each recorded frame, ``[frames, worlds]`` [J].
    """

    def __init__(self, worlds: int, dt: float, device: str, seed: int):
        begin = time.perf_counter()
        rng = np.random.default_rng(seed)
        self.lengths = (GROUND, CRANK, COUPLER, ROCKER) * (1.0 + rng.uniform(-SPREAD, SPREAD, (worlds, 4)))
        angles = closed_angles(self.lengths, rng.uniform(0.2, np.pi - 0.2, worlds))
        scene = nl.ModelBuilder()
        for lengths, angle in zip(self.lengths, angles, strict=True):
            world = linkage(lengths)
            world.joint_q[:3] = [angle[0], *np.diff(angle)]
            scene.add_world(world)
        self.gap: list[float] = []
        self.energy: list[np.ndarray] = []
        self.prepare(scene.finalize(device), worlds, 3, dt, begin)
        masses = self.model.body_mass.numpy().reshape(worlds, 3).sum(axis=1)
        # all bars lifted by twice the crank
        self.stored = masses * GRAVITY * 2.0 * self.lengths[:, 1]

    def observe(self) -> None:
        super().observe()
        self.gap.append(float(np.abs(dynamics.constraint_jacobian(self.model, self.state)[1].numpy()).max()))
        kinetic, potential = (f(self.model, self.state) for f in (dynamics.kinetic_energy, dynamics.potential_energy))
        self.energy.append(kinetic.numpy().astype(np.float64) + potential.numpy())

    def errors(self) -> np.ndarray:
        """Errors of the energy, as a part of the energy that lifts all bars by twice the crank, ``[frames, worlds]``."""
        return (np.array(self.energy) - self.energy[0]) / self.stored

    def curves(self) -> np.ndarray:
        """Places of the middles of the couplers, ``[frames, worlds, 2]``: x and z [m]."""
        x, _, z, _, y, _, w = np.moveaxis(np.array(self.poses)[:, :, 1], -1, 0)
        half = 0.5 * self.lengths[:, 2]
        return np.stack([x + half * (1.0 - 2.0 * y * y), z - half * 2.0 * y * w], axis=-1)


def build(worlds: int, dt: float, device: str, seed: int) -> Linkages:
    """Linkages at rest."""
    return Linkages(worlds, dt, device, seed)


def check(scene: Linkages) -> None:
    """Raises AssertionError unless all linkages keep their energy and stay closed."""
    worst = np.abs(scene.errors()).max()
    # Raised by hand: python -O leaves assertions out.
    if not (scene.healthy.all() and worst < TEST_ENERGY):
        raise AssertionError(f"the energy of a linkage is wrong by {100.0 * worst:.2f} %")
    if max(scene.gap) > TEST_GAP:
        raise AssertionError(f"a loop is open by {1e3 * max(scene.gap):.3f} mm")


def report(scene: Linkages, heading: str, rates: list[tuple[str, str]]) -> None:
    """Prints the summary."""
    worst = 100.0 * np.abs(scene.errors()).max(axis=0)
    energy = f"{np.median(worst):.3f} % (median over worlds), {worst.max():.3f} % (worst world)"
    rows = [("largest error of the energy", energy), ("largest gap of a loop", f"{1e3 * max(scene.gap):.3f} mm")]
    common.summary(heading, [*rows, *rates])


def plot(scene: Linkages, folder: Path) -> Path:
    """Plots coupler curves, and the errors of the energy of all worlds; returns the path of the PNG."""
    figure, axes = common.new_figure([["curves", "energy"]], figsize=(11, 4.8))
    figure.suptitle(common.count_text(scene.worlds, "four-bar linkage"), fontsize=13, fontweight="bold")
    for world in range(min(scene.worlds, 4)):
        axes["curves"].plot(*scene.curves()[:, world].T, lw=1.0, color=f"C{world}", label=f"world {world}")
    axes["curves"].set(title="Paths of the middles of the couplers", xlabel="x [m]", ylabel="z [m]", aspect="equal")
    axes["curves"].legend(loc="best", fontsize=7)
    common.band(axes["energy"], scene.seconds, 100.0 * scene.errors(), "C0")
    axes["energy"].set(
        title="Error of the energy", xlabel="time [s]", ylabel="energy error [% of m g h, h = 2 crank lengths]",
        xlim=(0.0, scene.seconds[-1]),
    )  # fmt: skip
    axes["energy"].legend(loc="best")
    return common.save_figure(figure, folder, "four_bar.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    blocks.run(
        arguments,
        name="four_bar",
        description="Simulates four-bar linkages that swing.",
        tested="all linkages keep their energy, and all loops stay closed",
        title="four-bar linkage",
        word="swing",
        test_time=TEST_TIME,
        world_count=64,
        num_frames=240,
        build=build,
        report=report,
        plot=plot,
        check=check,
        row=ROW,
        look=LOOK,
        dt=TIME_STEP,
    )


if __name__ == "__main__":
    common.run(main)
