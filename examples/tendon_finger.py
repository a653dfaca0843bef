"""Fingers bend and stretch by tendons: ``python -m examples.tendon_finger``.

A flexor runs along the palm side of three phalanges, and wraps around a cylinder at each joint. Its drive follows a length that falls and
rises. An extensor on the other side is a spring, with another stiffness in each world: that of a world is an entry of
``Model.tendon_stiffness``. All joints together follow the one drive; how much each of them bends depends on the springs.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import newton_like as nl
from examples import blocks, common
from examples.blocks import Blocks
from newton_like import dynamics
from newton_like.model.tendons import Tendon

LENGTHS = (0.05, 0.03, 0.025)
"""Of the phalanges [m]."""
RADIUS, PULLEY, DENSITY = 0.008, 0.009, 1100.0
"""Radius of the phalanges, and of the cylinders at the joints [m]; density [kg/m^3]."""
JOINT = {"damping": 1.0e-3, "armature": 1.0e-6}
SPRINGS = (0.06, 0.05, 0.04)
"""Damper [N m s/rad] and inertia [kg m^2] of the joints, and their springs [N m/rad]."""
EXTENSOR, SPREAD, SLACK = 250.0, 0.5, 0.02
"""Stiffness of the extensors [N/m], its largest relative difference between worlds, and how far they are stretched at the start [m]."""
GAINS = {"target_ke": 2.0e4, "target_kd": 20.0, "effort_limit": 60.0}
"""Drive of the flexors [N/m, N s/m, N]."""
TRAVEL, PERIOD = 0.03, 2.0
"""How far a flexor is shortened [m], and how long bending and stretching take [s]."""
TEST_TIME, TEST_LENGTH, TEST_BEND = 2.0, 2.0e-3, 2.0
"""For this time [s] flexors follow their targets to this length [m]; all joints together bend by at least this angle [rad]."""
ROW = 4
LOOK = {"spacing": (0.2, 0.0, 0.0), "azimuth": -90.0, "elevation": 0.0, "size": (640, 240)}


def finger() -> nl.ModelBuilder:
    """A world with a finger that points along x and bends towards -z."""
    world = nl.ModelBuilder()
    world.default_shape_cfg.density = DENSITY
    world.default_shape_cfg.has_shape_collision = False
    along, across = (0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5)), (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))
    sides = {"flexor": -1.0, "extensor": 1.0}
    start = (-0.012, 0.0, 0.3)
    paths = {
        name: [
            ("site", world.add_site(-1, xform=(start[0], 0.0, start[2] + side * PULLEY, 0, 0, 0, 1), label=f"{name}_0"))
        ]
        for name, side in sides.items()
    }
    body, reach, joints = -1, (0.0, 0.0, 0.3), []
    for i, length in enumerate(LENGTHS):
        pulley = world.add_shape_cylinder(
            body, xform=(*reach, *across), radius=PULLEY, half_height=RADIUS, label=f"pulley_{i}"
        )
        for name, side in sides.items():
            beside = world.add_site(
                body, xform=(reach[0], 0.0, reach[2] + 3.0 * side * PULLEY, 0, 0, 0, 1), label=f"{name}_side_{i}"
            )
            paths[name].append(("geom", pulley, beside))
        link = world.add_link(label=f"phalanx_{i}")
        world.add_shape_capsule(link, xform=(0.5 * length, 0, 0, *along), radius=RADIUS, half_height=0.5 * length)
        for name, side in sides.items():
            for place in (0.25 * length, 0.75 * length):
                site = world.add_site(
                    link, xform=(place, 0.0, side * PULLEY, 0, 0, 0, 1), label=f"{name}_{i}_{place:.3f}"
                )
                paths[name].append(("site", site))
        joints.append(
            world.add_joint_revolute(
                body,
                link,
                parent_xform=(*reach, 0, 0, 0, 1),
                axis=(0, 1, 0),
                limit_lower=-0.2,
                limit_upper=1.7,
                label=f"joint_{i}",
                stiffness=SPRINGS[i],
                **JOINT,
            )
        )
        body, reach = link, (length, 0.0, 0.0)
    world.add_articulation(joints)
    # straight, each has the length of its line
    line = 0.012 + sum(LENGTHS) - 0.25 * LENGTHS[-1]
    world.add_tendon(Tendon(label="flexor", path=tuple(paths["flexor"]), target_q=line, **GAINS))
    rest = (line - SLACK, line - SLACK)
    world.add_tendon(
        Tendon(label="extensor", path=tuple(paths["extensor"]), stiffness=EXTENSOR, damping=1.0, rest_length=rest)
    )
    return world


class Fingers(Blocks):
    """Worlds with a finger each.

    Attributes:
        lengths, targets: of the flexors after each recorded frame, ``[frames, worlds]`` [m].
        forces: of flexors and extensors, ``[frames, worlds, 2]`` [N].
        angles: of the joints, ``[frames, worlds, 3]`` [rad].
    """

    def __init__(self, worlds: int, dt: float, device: str, seed: int):
        begin = time.perf_counter()
        scene = nl.ModelBuilder()
        scene.replicate(finger(), worlds)
        model = scene.finalize(device)
        rng = np.random.default_rng(seed)
        stiffness = model.tendon_stiffness.numpy().reshape(worlds, 2)
        stiffness[:, 1] *= 1.0 + rng.uniform(-SPREAD, SPREAD, worlds)
        model.tendon_stiffness = stiffness.ravel()
        self.line = model.tendon_target_q.numpy()[0]
        self.lengths: list[np.ndarray] = []
        self.targets: list[np.ndarray] = []
        self.forces: list[np.ndarray] = []
        self.angles: list[np.ndarray] = []
        self.prepare(model, worlds, 3, dt, begin)

    def target(self) -> float:
        """The length that flexors aim at now [m]."""
        return self.line - TRAVEL * 0.5 * (1.0 - np.cos(2.0 * np.pi * self.time / PERIOD))

    def advance(self) -> None:
        targets = np.zeros((self.model.world_count, 2))
        targets[:, 0] = self.target()
        self.control.tendon_target_q = targets.ravel()
        super().advance()

    def observe(self) -> None:
        super().observe()
        self.lengths.append(dynamics.tendon_lengths(self.model, self.state).numpy()[:, 0].astype(np.float64))
        self.targets.append(np.full(self.worlds, self.target()))
        self.forces.append(self.solver.tendon_forces().numpy().reshape(self.worlds, 2).copy())
        self.angles.append(self.state.joint_q.numpy().reshape(self.worlds, 3).copy())

    def errors(self) -> np.ndarray:
        """How far flexors are from their targets, ``[frames, worlds]`` [m]."""
        return np.abs(np.array(self.lengths) - np.array(self.targets))


def build(worlds: int, dt: float, device: str, seed: int) -> Fingers:
    """Fingers that are straight."""
    return Fingers(worlds, dt, device, seed)


def check(scene: Fingers) -> None:
    """Raises AssertionError unless all fingers bend, and all flexors follow their targets."""
    worst, bend = scene.errors().max(), np.array(scene.angles).sum(axis=2).max(axis=0).min()
    # Raised by hand: python -O leaves assertions out.
    if not (scene.healthy.all() and worst < TEST_LENGTH):
        raise AssertionError(f"a flexor misses its length by {1e3 * worst:.2f} mm")
    if bend < TEST_BEND:
        raise AssertionError(f"a finger bends by {bend:.2f} rad only")


def report(scene: Fingers, heading: str, rates: list[tuple[str, str]]) -> None:
    """Prints the summary."""
    most = np.degrees(np.array(scene.angles).max(axis=(0, 1)))
    rows = [
        ("largest error of a flexor's length", f"{1e3 * scene.errors().max():.3f} mm"),
        ("largest angles of the joints", ", ".join(f"{angle:.0f} deg" for angle in most)),
        ("largest pull of a flexor", f"{-np.array(scene.forces)[..., 0].min():.1f} N"),
    ]
    common.summary(heading, [*rows, *rates])


def plot(scene: Fingers, folder: Path) -> Path:
    """Plots lengths of flexors and angles of joints; returns the path of the PNG."""
    figure, axes = common.new_figure([["length", "angles"]], figsize=(11, 4.8))
    figure.suptitle(common.count_text(scene.worlds, "finger"), fontsize=13, fontweight="bold")
    common.band(axes["length"], scene.seconds, 1e3 * np.array(scene.lengths), "C0")
    axes["length"].plot(scene.seconds, 1e3 * np.array(scene.targets)[:, 0], "k--", lw=1.0, label="target")
    axes["length"].set(
        title="Lengths of the flexors", xlabel="time [s]", ylabel="length [mm]", xlim=(0.0, scene.seconds[-1])
    )
    axes["length"].legend(loc="best")
    angles = np.degrees(np.array(scene.angles))
    for i in range(3):
        common.band(axes["angles"], scene.seconds, angles[..., i], f"C{i + 1}")
    axes["angles"].set(
        title="Angles of the joints", xlabel="time [s]", ylabel="angle [deg]", xlim=(0.0, scene.seconds[-1])
    )
    return common.save_figure(figure, folder, "tendon_finger.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    blocks.run(
        arguments,
        name="tendon_finger",
        description="Simulates fingers that tendons bend and stretch.",
        tested="all fingers bend, and all flexors follow their target lengths",
        title="finger",
        word="bend",
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
