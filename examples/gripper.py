"""An arm picks cubes up by friction, moves them and puts them down: ``python -m examples.gripper``.

Each world has a cube of its own mass and place. Inverse kinematics turns the places of the cube into joint positions, and the drives of the
joints follow a path through them. Two pads, which slide towards each other at the same pace, hold the cube with a limited force.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
import warp as wp

import newton_like as nl
import newton_like.robot as rd
from examples import blocks, common
from examples.blocks import Blocks
from newton_like import assets
from newton_like.importers.urdf import UrdfWarning

ARM = ("turn", "shoulder", "roll", "elbow", "twist", "wrist", "flange")
"""The joints of the arm."""
CUBE = 0.04
"""Edge of the cube [m]."""
MASSES = (0.1, 1.5)
"""Range of its mass [kg]."""
FRICTION = 0.8
PICK, PLACE = np.array([0.5, -0.2]), np.array([0.45, 0.25])
"""Middle of the places where cubes are picked up, and where they are put down, on the ground [m]."""
SPREAD = 0.04
"""Largest distance of a cube from the middle, along x and y [m]."""
ABOVE, LIFTED = 0.12, 0.2
"""Heights of the grasp before and after it goes down [m]."""
GRASP = 0.125
"""Distance of the grasp from the hand's frame [m]."""
PAD_REACH, PAD_FORCE = 0.034, 60.0
"""Distance of an open pad's middle from the middle of the hand [m]; largest force of the drive, of which each pad has half [N]."""
STAGES = (
    (0.8, "above"),
    (0.6, "down"),
    (0.4, "close"),
    (0.8, "lift"),
    (1.2, "carry"),
    (0.8, "lower"),
    (0.4, "open"),
    (0.6, "leave"),
)
"""Durations [s] and names of the parts of the motion."""
TEST_TIME = sum(seconds for seconds, _ in STAGES) + 0.2
TEST_PLACE, TEST_SLIP = 0.004, 0.002
"""Largest distance of a cube from where it is put down, and largest slip in the hand [m]."""
ROW = 1
LOOK = {"azimuth": -60.0, "elevation": 22.0, "size": (520, 440)}
PADS = """
  <link name="{0}_pad">
    <inertial><mass value="0.05"/><inertia ixx="1e-5" iyy="1e-5" izz="1e-5" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><box size="0.02 0.008 0.03"/></geometry><material name="orange"/></visual>
    <collision><geometry><box size="0.02 0.008 0.03"/></geometry></collision>
  </link>
  <joint name="{0}_slide" type="prismatic">
    <parent link="hand"/><child link="{0}_pad"/>
    <origin xyz="0 {1} {2}"/><axis xyz="0 {3} 0"/>
    <limit lower="0" upper="0.034" effort="{4}" velocity="1"/>{5}
  </joint>
"""
"""A pad in front of a finger. Positive positions close the hand."""


def description() -> str:
    """The URDF of the arm with pads."""
    follows = '<mimic joint="right_slide"/>'
    pads = [
        PADS.format(name, -side * PAD_REACH, GRASP, side, PAD_FORCE, mimic)
        for name, side, mimic in (("right", 1, ""), ("left", -1, follows))
    ]
    return Path(assets.path("arm.urdf")).read_text().replace("</robot>", "".join(pads) + "</robot>")


def arm_paths(text: str, start: np.ndarray) -> np.ndarray:
    """Positions of the seven joints of the arm at the places of the motion, ``[worlds, 4, 7]``: above the cube, at the cube, above the
    place where it is put down, and there.

    Args:
        text: the URDF.
        start: places of the cubes on the ground, ``[worlds, 2]``.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UrdfWarning)
        robot = rd.Robot(rd.load_robot_from_urdf_data(text, "base"), evaluator="general")
    state = robot.make_state(["base", "hand"])
    joints = [state.joint_names.index(name) for name in ARM]
    goals = np.tile(np.diag([1.0, -1.0, -1.0, 1.0]), (len(start), 4, 1, 1))
    goals[:, :2, :2, 3], goals[:, 2:, :2, 3] = start[:, None], PLACE
    goals[:, :, 2, 3] = GRASP + 0.5 * CUBE + np.array([ABOVE, 0.0, LIFTED, 0.0])
    # elbow up, the hand down
    q = np.zeros(robot.dof)
    q[joints] = [0.0, 0.5, 0.0, 1.2, 0.0, 1.4, 0.0]
    paths = np.zeros((len(start), 4, 7))
    for i in range(4):
        state.q = np.broadcast_to(q, (len(start), robot.dof))
        found = rd.solve_ik(robot, state, 1, goals[:, i], starts=16)
        if not found.success.all():
            raise SystemExit(f"world {np.flatnonzero(~found.success)[0]}: the arm does not reach the cube")
        q = found.q
        paths[:, i] = q[:, joints]
    return paths


class Grasps(Blocks):
    """Worlds with an arm and a cube; `poses` has those of the cubes and of the hands, ``[frames, worlds, 2, 7]`` [m]."""

    def __init__(self, worlds: int, dt: float, device: str, seed: int):
        begin = time.perf_counter()
        rng, text = np.random.default_rng(seed), description()
        self.masses = rng.uniform(*MASSES, worlds)
        places = PICK + rng.uniform(-SPREAD, SPREAD, (worlds, 2))
        self.paths = arm_paths(text, places)
        world = nl.ModelBuilder()
        world.default_joint_cfg.target_ke, world.default_joint_cfg.target_kd = 20_000.0, 1_000.0
        world.default_joint_cfg.armature = 0.1
        world.default_shape_cfg.mu = FRICTION
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UrdfWarning)
            world.add_urdf(text, floating=False, enable_self_collisions=False)
        labels = [label.split("/")[-1] for label in world.joint_label]
        joints, pads = ([labels.index(name) for name in names] for names in (ARM, ("right_slide", "left_slide")))
        self._arm, self._pads = (np.array([world.joint_q_start[j] for j in each]) for each in (joints, pads))
        for j in pads:
            world.joint_armature[world.joint_qd_start[j]] = 0.0
        hand = [label.split("/")[-1] for label in world.body_label].index("hand")
        cube = world.add_body(label="cube")
        world.add_shape_box(
            cube, hx=0.5 * CUBE, hy=0.5 * CUBE, hz=0.5 * CUBE, cfg=nl.ShapeConfig(density=1000.0, mu=FRICTION)
        )
        self._seen = [cube, hand]
        scene = nl.ModelBuilder()
        scene.add_ground_plane(cfg=nl.ShapeConfig(mu=FRICTION))
        scene.replicate(world, worlds)
        coordinates = np.reshape(scene.joint_q, (worlds, -1))
        coordinates[:, self._arm] = self.paths[:, 0]
        coordinates[:, -7:] = [0.0, 0.0, 0.5 * CUBE, 0.0, 0.0, 0.0, 1.0]
        coordinates[:, -7:-5] = places
        scene.joint_q = coordinates.ravel()
        bodies = world.body_count
        for i, mass in enumerate(self.masses):
            k = i * bodies + cube
            scene.body_inertia[k] = wp.mat33(np.eye(3) * mass * CUBE**2 / 6.0)
            scene.body_mass[k] = mass
        self.prepare(scene.finalize(device), worlds, len(self._seen), dt, begin)

    def targets(self, seconds: float) -> tuple[np.ndarray, float]:
        """Targets of the arm ``[worlds, 7]`` and of the pads at a time."""
        above, at, carried, put = np.moveaxis(self.paths, 1, 0)
        # the arm goes up along the way on which it went down
        ends = dict(above=above, down=at, close=at, lift=above, carry=carried, lower=put, open=put, leave=carried)
        grip = dict(close=1.0, lift=1.0, carry=1.0, lower=1.0)
        before, closed = above, 0.0
        for duration, name in STAGES:
            share = np.clip(seconds / duration, 0.0, 1.0)
            s = share**3 * (10.0 + share * (6.0 * share - 15.0))
            arm, hold = before + s * (ends[name] - before), closed + s * (grip.get(name, 0.0) - closed)
            if seconds <= duration:
                return arm, hold * PAD_REACH
            seconds, before, closed = seconds - duration, ends[name], grip.get(name, 0.0)
        return before, 0.0

    def advance(self) -> None:
        """Simulates a frame."""
        arm, pads = self.targets(self.time + self.frame_time)
        targets = self.control.joint_target_q.numpy().reshape(self.worlds, -1).copy()
        targets[:, self._arm], targets[:, self._pads] = arm, pads
        self.control.joint_target_q.assign(targets.ravel())
        super().advance()

    def observe(self) -> None:
        """Records the poses."""
        self.poses.append(self.state.body_q.numpy().reshape(self.worlds, -1, 7)[:, self._seen].copy())


def frame_at(scene: Grasps, name: str) -> int:
    """The frame at the end of a part of the motion."""
    end = 0.0
    for duration, stage in STAGES:
        end += duration
        if stage == name:
            break
    return min(round(end / scene.frame_time), len(scene.poses) - 1)


def slips(scene: Grasps) -> np.ndarray:
    """How far each cube moved in the hand while it was carried, ``[worlds]`` [m]."""
    poses = np.array(scene.poses)
    way = poses[..., 0, :3] - poses[..., 1, :3]
    first, last = (np.linalg.norm(way[frame_at(scene, name)], axis=1) for name in ("close", "carry"))
    return abs(last - first)


def misses(scene: Grasps) -> np.ndarray:
    """Distance of each cube at the end from where it was to be put down, ``[worlds]`` [m]."""
    return np.linalg.norm(scene.poses[-1][:, 0, :3] - np.append(PLACE, 0.5 * CUBE), axis=1)


def check(scene: Grasps) -> None:
    """Raises AssertionError unless all cubes were lifted, did not slip, and are where they were put."""
    lifted = scene.poses[frame_at(scene, "carry")][:, 0, 2]
    for name, failed in (
        ("diverged", ~scene.healthy),
        ("was not lifted", lifted < LIFTED),
        (f"slipped by more than {TEST_SLIP:g} m", slips(scene) > TEST_SLIP),
        (f"was put down more than {TEST_PLACE:g} m away", misses(scene) > TEST_PLACE),
    ):
        # Raised by hand: python -O leaves assertions out.
        if failed.any():
            world = np.flatnonzero(failed)[0]
            raise AssertionError(
                f"in {failed.sum()} of {common.count_text(scene.worlds, 'world')} the cube {name}, the first is world {world}"
            )


def report(scene: Grasps, heading: str, rates: list[tuple[str, str]]) -> None:
    """Prints the summary."""
    rows = [("masses", f"{scene.masses.min():.2f} to {scene.masses.max():.2f} kg")]
    if len(scene.poses) > frame_at(scene, "leave") > frame_at(scene, "open"):
        rows += [
            ("slip in the hand", f"{1e3 * slips(scene).max():.2f} mm at most"),
            ("put down", f"{1e3 * misses(scene).max():.2f} mm away at most"),
        ]
    common.summary(heading, [*rows, *rates])


def plot(scene: Grasps, folder: Path) -> Path:
    """Plots heights and paths of the cubes; returns the path of the PNG."""
    figure, axes = common.new_figure([["height", "way"]], figsize=(11, 4.4))
    cubes = np.array(scene.poses)[:, :, 0]
    common.band(axes["height"], scene.seconds, cubes[..., 2], "C0")
    axes["height"].set(
        title="Height of the cubes", xlabel="time [s]", ylabel="height of the middle [m]", xlim=(0.0, scene.seconds[-1])
    )
    axes["height"].legend(loc="best")
    for i in range(min(scene.worlds, 16)):
        axes["way"].plot(cubes[:, i, 0], cubes[:, i, 1], lw=1.2, color=f"C{i % 10}")
    axes["way"].set(title="Paths of the cubes, from above", xlabel="x [m]", ylabel="y [m]", aspect="equal")
    return common.save_figure(figure, folder, "gripper.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    blocks.run(
        arguments,
        name="gripper",
        description="Simulates arms that pick cubes up, move them and put them down.",
        tested="all cubes are lifted, do not slip, and are put down where they belong",
        title="arm",
        word="grasp",
        test_time=TEST_TIME,
        world_count=16,
        num_frames=350,
        build=Grasps,
        report=report,
        plot=plot,
        check=check,
        row=ROW,
        look=LOOK,
    )


if __name__ == "__main__":
    common.run(main)
