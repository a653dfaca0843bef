"""The hands of a wheeled humanoid meet, and distances of its capsules tell how near they are: ``python -m examples.self_collision``.

Distances of all pairs of capsules are computed for the whole motion in one call. Where a pair comes closer than the clearance, the
gradient of its distance moves the joints until it does not.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import newton_like.robot as rd
from examples import common, wheeled

CLEARANCE = 0.03
"""Least distance of two capsules after the correction [m]."""
CORRECTIONS, STEP = 60, 0.5
"""Most corrections of a configuration, and the part of the missing distance that each of them adds."""
INWARD = {"right_arm_yaw": 1.0, "left_arm_yaw": -1.0, "right_elbow": -1.5, "left_elbow": -1.4}
"""The pose in which the hands cross [rad]."""
TEST_CHANGE = 0.05
"""Change of a joint in a configuration that is clear [rad] that ``--test`` allows."""
PERIOD = 4.0
"""Duration of the motion [s]."""
REPEATS = 50
"""Calls whose mean time is reported."""
LOOK = {"azimuth": 25.0, "elevation": 18.0, "size": (420, 480)}
"""Direction of the camera [degrees] and size of the video [pixels]."""


def motion(state: rd.State, frames: int) -> np.ndarray:
    """Joint positions from the pose with both forearms forward to crossed hands and back, ``[frames, n]``."""
    wheeled.set_joints(state, wheeled.READY)
    start = state.q
    wheeled.set_joints(state, INWARD)
    share = 0.5 - 0.5 * np.cos(np.linspace(0.0, 2.0 * np.pi, frames))
    return start + share[:, None] * (state.q - start)


def cleared(robot: rd.Robot, state: rd.State, q: np.ndarray) -> np.ndarray:
    """Joint positions near `q` in which all pairs have the clearance: repeated least-norm steps along the gradients of the distances of
    pairs that are too close, ``[batch, n]``."""
    state.q = q
    lower, upper = robot.get_limit_q_lower(state), robot.get_limit_q_upper(state)
    for _ in range(CORRECTIONS):
        found = robot.compute_distances(state, jacobian=True)
        missing = np.maximum(CLEARANCE * 1.02 - found.distance, 0.0)
        if not missing.any():
            break
        rows = found.jacobian * (missing > 0.0)[..., None]
        gram = rows @ np.swapaxes(rows, -1, -2) + 1e-4 * np.eye(rows.shape[-2])
        move = np.swapaxes(rows, -1, -2) @ np.linalg.solve(gram, missing[..., None])
        state.q = np.clip(state.q + STEP * move[..., 0], lower, upper)
    return state.q


def plot(seconds: np.ndarray, before: rd.Distances, after: rd.Distances, folder: Path) -> Path:
    """Plots the distances of the pairs that come closest; returns the path of the PNG."""
    figure, axes = common.new_figure([["before", "after"]], figsize=(11, 4.2), sharey=True)
    nearest = np.argsort(before.distance.min(axis=0))[:5]
    for name, found, title in (
        ("before", before, "Distances of the motion"),
        ("after", after, "Distances after the correction"),
    ):
        for i, pair in enumerate(nearest):
            label = " - ".join(link.replace("_", " ") for link in before.links[pair])
            axes[name].plot(seconds, 1e3 * found.distance[:, pair], color=f"C{i}", label=label)
        axes[name].axhline(1e3 * CLEARANCE, color="k", lw=0.8, ls="--")
        axes[name].axhspan(-100.0, 0.0, color="C3", alpha=0.1, lw=0)
        axes[name].set(title=title, xlabel="time [s]", xlim=(0.0, PERIOD), ylim=(-100.0, 300.0))
    axes["before"].set_ylabel("distance [mm]")
    handles, labels = axes["before"].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", fontsize=7, ncols=len(labels))
    return common.save_figure(figure, folder, "self_collision.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    options = common.parser("Keeps the arms of a robot apart.", world_count=None, num_frames=120, dt=None)
    options.add_argument(
        "--test", action="store_true", help="check that the arms keep the clearance, within all limits"
    )
    args = options.parse_args(arguments)
    common.prepare(options, args, 20_000 * args.num_frames)
    common.say("loading the robot; kernels are compiled the first time ...", args.quiet)
    robot = wheeled.load("general")
    state = robot.make_state(["base"], [])
    q = motion(state, args.num_frames)
    state.q = q
    before = robot.compute_distances(state)
    begin = time.perf_counter()
    for _ in range(REPEATS):
        robot.compute_distances(state)
    spent = (time.perf_counter() - begin) / REPEATS
    moved = cleared(robot, state, q)
    after = robot.compute_distances(state)
    close = (before.distance < CLEARANCE).any(axis=1)
    common.summary(
        f"{args.num_frames} configurations, {len(before.links)} pairs of capsules",
        [
            (
                "least distance",
                f"{1e3 * before.distance.min():.1f} mm, and {1e3 * after.distance.min():.1f} mm after the correction",
            ),
            ("corrected", f"{close.sum()} configurations, by at most {np.abs(moved - q).max():.2f} rad"),
            ("distances", f"{1e6 * spent / args.num_frames:.1f} us for each configuration"),
        ],
    )
    if args.test:

        def check():
            lower, upper = robot.get_limit_q_lower(state), robot.get_limit_q_upper(state)
            assert close.any() and not close.all(), (
                "the motion is not clear at first and too near later; use more frames"
            )
            assert after.distance.min() > CLEARANCE, f"capsules come as near as {after.distance.min():g} m"
            assert ((moved >= lower) & (moved <= upper)).all(), "a joint is beyond its limits"
            assert np.abs(moved - q)[~close].max() < TEST_CHANGE, "a clear configuration was moved"

        common.verdict(check)
    seconds = np.linspace(0.0, PERIOD, args.num_frames)
    if args.viewer == "plot":
        print(f"  plot in {plot(seconds, before, after, args.output_path)}")
    if args.viewer in common.VIDEOS:
        model, now = wheeled.drawn(robot, marks=2)
        video = common.video(args, model, "self_collision", **LOOK)
        state.q = moved
        near = robot.compute_distances(state)
        for i, time_now in enumerate(seconds):
            pair = int(np.argmin(near.distance[i]))
            first, second = (
                robot.links[robot.link_names.index(name)].collisions[0].geoms[0].radius for name in near.links[pair]
            )
            points = (
                near.position1[i, pair] + first * near.normal[i, pair], near.position2[i, pair] - second * near.normal[i, pair],
            )  # fmt: skip
            wheeled.show(model, robot, now, moved[i], state.joint_names, marks=points)
            video.record(now, float(time_now))
        common.save_video(video, args.quiet)


if __name__ == "__main__":
    common.run(main)
