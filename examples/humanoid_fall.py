"""Humanoids fall onto the ground and onto their own limbs: ``python -m examples.humanoid_fall``.

Each humanoid starts in a random orientation, with random joint positions, and has no drives. Its limbs touch each other (self-collision).
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import newton_like as nl
from examples import blocks, common
from examples.blocks import Blocks
from newton_like import assets

HEIGHT = 1.2
"""Height of the pelvis at the start [m]."""
BEND = 0.3
"""Standard deviation of the joint positions at the start [rad]; they stay within their limits."""
START_DEPTH = 0.002
"""Largest depth to which shapes overlap at the start [m]."""
TEST_TIME = 5.0
TEST_SPEED = 0.1
"""Largest mean speed of the links at the end of the test, the mean over the humanoids [m/s]."""
TEST_DEPTH = 0.02
"""Largest depth to which shapes overlap at the end of the test [m]."""
ROW = 1
LOOK = {"azimuth": -65.0, "elevation": 25.0, "size": (640, 360)}


def humanoid() -> nl.ModelBuilder:
    """The humanoid of the assets, with self-collision and without springs and drives."""
    text = Path(assets.path("humanoid.xml")).read_text()
    builder = nl.ModelBuilder()
    # shapes of the file touch the ground only
    builder.add_mjcf(
        text.replace('contype="1" conaffinity="0"', 'contype="1" conaffinity="1"'), enable_self_collisions=True
    )
    return builder


def depths(model, state) -> np.ndarray:
    """The largest depth to which two shapes of each world overlap, ``[worlds]`` [m]."""
    found = model.collide(state)
    count = int(found.rigid_contact_count.numpy()[0])
    one, two = found.rigid_contact_shape0.numpy()[:count], found.rigid_contact_shape1.numpy()[:count]
    poses, body = state.body_q.numpy(), model.shape_body.numpy()

    def places(shapes: np.ndarray, points: np.ndarray) -> np.ndarray:
        pose = poses[body[shapes]]
        moved = Rotation.from_quat(pose[:, 3:]).apply(points) + pose[:, :3]
        return np.where(body[shapes, None] < 0, points, moved)

    first, second = found.rigid_contact_point0.numpy()[:count], found.rigid_contact_point1.numpy()[:count]
    gaps = ((places(two, second) - places(one, first)) * found.rigid_contact_normal.numpy()[:count]).sum(axis=1)
    deepest = np.zeros(model.world_count)
    np.maximum.at(deepest, model.body_world.numpy()[np.maximum(body[one], body[two])], -gaps)
    return deepest


def random_poses(model, world: nl.ModelBuilder, rng: np.random.Generator) -> np.ndarray:
    """Random joint coordinates in which no limb is in another one, ``[worlds, coords]``."""
    rest, state = np.array(world.joint_q), model.state()
    lower, upper = np.array(world.joint_limit_lower[6:]), np.array(world.joint_limit_upper[6:])
    q, again = np.tile(rest, (model.world_count, 1)), np.ones(model.world_count, dtype=bool)
    for _ in range(200):
        q[again, 2] = HEIGHT
        q[again, 3:7] = Rotation.random(again.sum(), random_state=rng).as_quat()
        q[again, 7:] = np.clip(rest[7:] + BEND * rng.normal(size=(again.sum(), len(lower))), lower, upper)
        state.joint_q.assign(q.ravel())
        nl.eval_fk(model, state.joint_q, state.joint_qd, state)
        again = depths(model, state) > START_DEPTH
        if not again.any():
            return q
    raise SystemExit(f"no pose without overlaps was found for {common.count_text(again.sum(), 'humanoid')}")


class Falls(Blocks):
    """Worlds with a humanoid; `poses` has those of all links, ``[frames, worlds, links, 7]`` [m]."""

    def __init__(self, worlds: int, dt: float, device: str, seed: int):
        begin = time.perf_counter()
        world = humanoid()
        scene = nl.ModelBuilder()
        scene.replicate(world, worlds)
        model = scene.finalize(device)
        model.joint_q.assign(random_poses(model, world, np.random.default_rng(seed)).ravel())
        self.prepare(model, worlds, world.body_count, dt, begin)

    def speeds(self) -> np.ndarray:
        """Mean speeds of the links from frame to frame, ``[frames - 1, worlds]`` [m/s]."""
        ways = np.diff(np.array(self.poses)[..., :3], axis=0)
        return np.linalg.norm(ways, axis=-1).mean(axis=2) / self.frame_time


def check(scene: Falls) -> None:
    """Raises AssertionError unless the humanoids lie still, and no shapes overlap by much."""
    speed, depth = float(scene.speeds()[-1].mean()), depths(scene.model, scene.state).max()
    # Raised by hand: python -O leaves assertions out.
    if not scene.healthy.all():
        raise AssertionError(f"{(~scene.healthy).sum()} of {common.count_text(scene.worlds, 'world')} diverged")
    if not speed < TEST_SPEED:
        raise AssertionError(f"the humanoids still move, on average at {speed:.3f} m/s")
    if not depth < TEST_DEPTH:
        raise AssertionError(f"two shapes overlap by {1e3 * depth:.1f} mm")


def report(scene: Falls, heading: str, rates: list[tuple[str, str]]) -> None:
    """Prints the summary."""
    rows = [("largest overlap now", f"{1e3 * depths(scene.model, scene.state).max():.2f} mm")]
    if len(scene.poses) > 1:
        rows.insert(0, ("mean speed of the links", f"{scene.speeds()[-1].mean():.4f} m/s"))
    common.summary(heading, [*rows, *rates])


def plot(scene: Falls, folder: Path) -> Path:
    """Plots heights and speeds; returns the path of the PNG."""
    figure, axes = common.new_figure([["height", "speed"]], figsize=(11, 4.2))
    heights = np.array(scene.poses)[..., 2].mean(axis=2)
    common.band(axes["height"], scene.seconds, heights, "C0")
    common.band(axes["speed"], scene.seconds[1:], scene.speeds(), "C1")
    axes["height"].set(title="Mean height of the links", xlabel="time [s]", ylabel="height [m]")
    axes["speed"].set(title="Mean speed of the links", xlabel="time [s]", ylabel="speed [m/s]")
    axes["height"].legend(loc="best")
    return common.save_figure(figure, folder, "humanoid_fall.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    blocks.run(
        arguments,
        name="humanoid_fall",
        description="Simulates humanoids that fall onto the ground and onto their own limbs.",
        tested="the humanoids come to rest and no shapes overlap by much",
        title="humanoid",
        word="fall",
        test_time=TEST_TIME,
        world_count=32,
        num_frames=300,
        build=Falls,
        report=report,
        plot=plot,
        check=check,
        row=ROW,
        look=LOOK,
    )


if __name__ == "__main__":
    common.run(main)
