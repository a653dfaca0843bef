"""Platforms on six legs follow paths in six directions: ``python -m examples.stewart_platform``.

A leg is a universal joint on the ground, a linear drive, and a ball joint below the platform. The six ball joints close loops. The lengths
of the legs follow from the pose of the platform (D. Stewart, "A platform with six degrees of freedom", Proc. Inst. Mech. Eng. 180, 1965).
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import newton_like as nl
from examples import blocks, common
from examples.blocks import Blocks
from newton_like import dynamics
from newton_like.solvers import SolverXPBD

LEGS = 6
GROUND_RADIUS, PLATFORM_RADIUS, HEIGHT = 0.35, 0.22, 0.5
"""Radii of the circles on which legs end, and height of the platform at rest [m]."""
PAIRED = 0.2
"""Half the angle between neighbouring ends of two legs [rad]."""
MASS, THICKNESS = 15.0, 0.03
"""Mass [kg] and thickness [m] of the platform."""
STIFFNESS, DAMPING = 2.0e5, 2.0e3
"""Gains of the linear drives [N/m, N s/m]."""
ARMATURE = 0.006
"""Inertia of the universal joints [kg m^2]."""
SHIFT, TURN, PERIOD = 0.06, 0.2, 2.0
"""Amplitudes of the path of the platform [m, rad], and its period [s]."""
SETTLED = 0.5
"""The path grows from rest over this time [s]; the platform is compared with it afterwards."""
TEST_TIME, TEST_DISTANCE, TEST_ANGLE, TEST_GAP = 2.5, 5.0e-3, 0.02, 1.0e-4
"""The platform follows its path for this time [s] within a distance [m] and an angle [rad], and loops stay closed within a gap [m]."""
SOLVERS = ("featherstone", "xpbd")
"""Solvers to choose from: joint coordinates, or a body at a time."""
ROW = 3
LOOK = {"spacing": (1.1, 0.0, 0.0), "azimuth": -60.0, "elevation": 20.0, "size": (560, 300)}


def ends(radius: float, turned: float) -> np.ndarray:
    """Ends of the legs on a circle, in pairs, ``[legs, 3]`` [m]."""
    pair = turned + 2.0 * np.pi / 3.0 * np.repeat(np.arange(3), 2)
    angle = pair + PAIRED * np.tile([-1.0, 1.0], 3)
    return radius * np.stack([np.cos(angle), np.sin(angle), np.zeros(LEGS)], axis=1)


ON_GROUND = ends(GROUND_RADIUS, 0.0)
ON_PLATFORM = np.roll(ends(PLATFORM_RADIUS, np.pi / 3.0), 1, axis=0)
"""Ends of the legs below the platform; each is next to its end on the ground."""


def lengths(place: np.ndarray, turn: Rotation) -> np.ndarray:
    """Distances between the ends of the legs for poses of the platform, ``[n, legs]`` [m].

    Args:
        place: positions of the platform, ``[n, 3]`` [m].
        turn: its n orientations.
    """
    above = np.einsum("nij,kj->nki", turn.as_matrix(), ON_PLATFORM) + place[:, None]
    return np.linalg.norm(above - ON_GROUND, axis=2)


HOME = np.array([0.0, 0.0, HEIGHT])
HOME_LENGTH = lengths(HOME[None], Rotation.identity(1))[0]


def platform() -> nl.ModelBuilder:
    """A world: platform, legs, and the ball joints that close the loops."""
    world = nl.ModelBuilder()
    world.default_shape_cfg.collision_group = 0
    top = world.add_link(label="platform")
    world.add_shape_cylinder(
        top,
        radius=1.15 * PLATFORM_RADIUS,
        half_height=0.5 * THICKNESS,
        cfg=shape(MASS / cylinder(1.15 * PLATFORM_RADIUS)),
    )
    world.add_shape_box(top, xform=(0, 0, 0.06, 0, 0, 0, 1), hx=0.06, hy=0.09, hz=0.045, cfg=shape(0.0))
    joints = [world.add_joint_free(top, label="free")]
    uppers = []
    for k in range(LEGS):
        way = HOME + ON_PLATFORM[k] - ON_GROUND[k]
        along = Rotation.align_vectors([way], [[0.0, 0.0, 1.0]])[0].as_quat()
        half = 0.3 * HOME_LENGTH[k]
        lower, upper = (world.add_link(label=f"{name}_{k}") for name in ("lower", "upper"))
        world.add_shape_capsule(lower, xform=(0, 0, half, 0, 0, 0, 1), radius=0.02, half_height=half, cfg=shape(800.0))
        world.add_shape_capsule(
            upper, xform=(0, 0, -half, 0, 0, 0, 1), radius=0.012, half_height=half, cfg=shape(2000.0)
        )
        axes = [nl.JointDofConfig(axis=axis, armature=ARMATURE) for axis in ((1, 0, 0), (0, 1, 0))]
        joints.append(
            world.add_joint_d6(
                -1, lower, parent_xform=(*ON_GROUND[k], *along), angular_axes=axes, label=f"universal_{k}"
            )
        )
        drive = dict(target_ke=STIFFNESS, target_kd=DAMPING, label=f"drive_{k}")
        joints.append(
            world.add_joint_prismatic(
                lower, upper, parent_xform=(0, 0, HOME_LENGTH[k], 0, 0, 0, 1), axis=(0, 0, 1), **drive
            )
        )
        uppers.append(upper)
    world.add_articulation(joints)
    for k, upper in enumerate(uppers):
        world.add_joint_ball(top, upper, parent_xform=(*ON_PLATFORM[k], 0, 0, 0, 1), label=f"closing_{k}")
    world.joint_q[:3] = HOME
    return world


def cylinder(radius: float) -> float:
    """Volume of a platform of this radius [m^3]."""
    return np.pi * radius**2 * THICKNESS


def shape(density: float) -> nl.ModelBuilder.ShapeConfig:
    """Settings of a shape of this density [kg/m^3] that touches nothing."""
    return nl.ModelBuilder.ShapeConfig(density=density, has_shape_collision=False)


class Platforms(Blocks):
    """Worlds with a platform each, whose drives follow paths with random phases.

    Attributes:
        gap: largest gap of the loops after each recorded frame [m].
    """

    def __init__(self, worlds: int, dt: float, device: str, seed: int, solver: str = SOLVERS[0]):
        self.kind = solver
        begin = time.perf_counter()
        world = platform()
        scene = nl.ModelBuilder()
        scene.replicate(world, worlds)
        model = scene.finalize(device)
        self.phases = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, (worlds, 6))
        starts = model.joint_q_start.numpy()
        named = {label: int(starts[j]) for j, label in enumerate(world.joint_label)}
        stride = model.joint_coord_count // worlds
        self.drives = stride * np.arange(worlds)[:, None] + [named[f"drive_{k}"] for k in range(LEGS)]
        self.gap: list[float] = []
        self.prepare(model, worlds, world.body_count, dt, begin)

    def make_solver(self):
        """The solver: `SolverFeatherstone` takes a frame in one step, `SolverXPBD` a time step, with more sub-steps in long ones."""
        if self.kind == "featherstone":
            return super().make_solver()
        return SolverXPBD(self.model, substeps=common.substeps_in(self.dt))

    def wanted(self, seconds: float) -> tuple[np.ndarray, Rotation]:
        """Positions of the platforms on their paths, ``[worlds, 3]`` [m], and their orientations."""
        grown = min(seconds / SETTLED, 1.0)
        share = grown * grown * (3.0 - 2.0 * grown)
        wave = share * np.sin(2.0 * np.pi * seconds / PERIOD + self.phases)
        return HOME + SHIFT * wave[:, :3], Rotation.from_rotvec(TURN * wave[:, 3:])

    def advance(self) -> None:
        """Simulates a frame; the drives get the lengths of its end."""
        targets = self.control.joint_target_q.numpy().copy()
        targets[self.drives] = lengths(*self.wanted(self.time + self.frame_time)) - HOME_LENGTH
        self.control.joint_target_q.assign(targets)
        if self.kind == "featherstone":
            super().advance()
            return
        for _ in range(self.substeps):
            self.solver.step(self.state, self.state, self.control, dt=self.dt)
        self.time += self.frame_time

    def observe(self) -> None:
        super().observe()
        self.gap.append(float(np.abs(dynamics.constraint_jacobian(self.model, self.state)[1].numpy()).max()))

    def errors(self) -> tuple[np.ndarray, np.ndarray]:
        """Distances and angles between platforms and their paths, ``[frames, worlds]`` each [m, rad]."""
        far, turned = [], []
        for seconds, poses in zip(self.seconds, self.poses, strict=True):
            place, turn = self.wanted(seconds)
            far.append(np.linalg.norm(poses[:, 0, :3] - place, axis=1))
            turned.append((turn.inv() * Rotation.from_quat(poses[:, 0, 3:])).magnitude())
        return np.array(far), np.array(turned)


def build(worlds: int, dt: float, device: str, seed: int, solver: str = SOLVERS[0]) -> Platforms:
    """Platforms at rest."""
    return Platforms(worlds, dt, device, seed, solver)


def worst(scene: Platforms) -> tuple[float, float]:
    """The largest distance [m] and angle [rad] from the paths."""
    far, turned = scene.errors()
    return float(far.max()), float(turned.max())


def check(scene: Platforms) -> None:
    """Raises AssertionError unless all platforms follow their paths and all loops stay closed."""
    far, turned = worst(scene)
    # Raised by hand: python -O leaves assertions out.
    if not (scene.healthy.all() and far < TEST_DISTANCE and turned < TEST_ANGLE):
        raise AssertionError(
            f"a platform is {1e3 * far:.1f} mm and {np.degrees(turned):.1f} degrees away from its path"
        )
    if max(scene.gap) > TEST_GAP:
        raise AssertionError(f"a loop is open by {1e3 * max(scene.gap):.3f} mm")


def report(scene: Platforms, heading: str, rates: list[tuple[str, str]]) -> None:
    """Prints the summary."""
    far, turned = worst(scene)
    rows = [
        ("largest distance from the path", f"{1e3 * far:.2f} mm"),
        ("largest angle from the path", f"{np.degrees(turned):.2f} degrees"),
        ("largest gap of a loop", f"{1e3 * max(scene.gap):.4f} mm"),
    ]
    common.summary(heading, [*rows, *rates])


def plot(scene: Platforms, folder: Path) -> Path:
    """Plots the way of a platform and the errors of all of them; returns the path of the PNG."""
    figure, axes = common.new_figure([["way", "distance"]], figsize=(11, 4.8))
    figure.suptitle(common.count_text(scene.worlds, "platform") + " on six legs", fontsize=13, fontweight="bold")
    way = np.array(scene.poses)[:, 0, 0, :3] - HOME
    wanted = np.array([scene.wanted(s)[0][0] for s in scene.seconds]) - HOME
    for i, name in enumerate("xyz"):
        axes["way"].plot(scene.seconds, 1e3 * way[:, i], color=f"C{i}", lw=1.6, label=name)
        axes["way"].plot(scene.seconds, 1e3 * wanted[:, i], color="k", lw=0.8, ls=":", label="path" if i == 2 else None)
    axes["way"].set(
        title="Displacement (world 0)", xlabel="time [s]", ylabel="displacement [mm]",
        xlim=(0.0, scene.seconds[-1]), ylim=(-85.0, 70.0),
    )  # fmt: skip
    axes["way"].legend(loc="lower left", ncols=4)
    common.band(axes["distance"], scene.seconds, 1e3 * scene.errors()[0], "C0")
    axes["distance"].set(
        title="Distance from the path", xlabel="time [s]", ylabel="distance [mm]", xlim=(0.0, scene.seconds[-1])
    )
    axes["distance"].legend(loc="best")
    return common.save_figure(figure, folder, "stewart_platform.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    blocks.run(
        arguments,
        name="stewart_platform",
        description="Simulates platforms on six legs that follow paths.",
        tested="all platforms follow their paths, and all loops stay closed",
        title="platform",
        word="move",
        test_time=TEST_TIME,
        world_count=64,
        num_frames=240,
        build=build,
        report=report,
        plot=plot,
        check=check,
        row=ROW,
        look=LOOK,
        solvers=SOLVERS,
    )


if __name__ == "__main__":
    common.run(main)
