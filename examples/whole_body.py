"""A wheeled humanoid keeps both hands where they are in the room while its base drives: ``python -m examples.whole_body``.

The base follows a velocity ``[w, vx, 0]``; its wheels get the velocities for that, and odometry gives its pose. Each control step solves
the inverse kinematics of both hands relative to the base. Distances of capsules are checked afterwards, for the whole motion in one call.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np

import newton_like.robot as rd
from examples import common, wheeled

RATE = 25.0
"""Control steps in a second."""
SPEED, TURN = 0.11, 0.12
"""Largest speed [m/s] and rate of turn [rad/s] of the base."""
HANDS = ("right_tool", "left_tool")
LOOK = {"azimuth": 35.0, "elevation": 22.0, "size": (480, 460)}
"""Direction of the camera [degrees] and size of the video [pixels]."""
TEST_ERROR, TEST_TRAVEL = 1e-5, 0.1
"""Errors of the hands [rad, m] that ``--test`` allows, and distance [m] that the base has to travel."""


def drive(time: float, period: float) -> np.ndarray:
    """Velocity ``[w, vx, vy]`` of the base: forward and back, and a turn to both sides."""
    phase = 2.0 * np.pi * time / period
    return np.array([TURN * np.sin(2.0 * phase), SPEED * np.sin(phase), 0.0])


def planar(pose: np.ndarray) -> np.ndarray:
    """The transform of a pose ``(x, y, yaw)``."""
    x, y, yaw = pose
    T = np.eye(4)
    T[:2, :2] = [[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]]
    T[:2, 3] = x, y
    return T


def plot(seconds: np.ndarray, base: np.ndarray, errors: np.ndarray, distance: np.ndarray, folder: Path) -> Path:
    """Plots the motion of the base, the errors of the hands, ``[steps, 2]`` in rad and m, and the least distance of two capsules; returns
    the path of the PNG."""
    figure, axes = common.new_figure([["base", "hands", "distance"]], figsize=(12, 3.8))
    for i, label in enumerate(("x [m]", "y [m]", "yaw [rad]")):
        axes["base"].plot(seconds, base[:, i], label=label)
    axes["base"].set(title="Pose of the base", ylabel="position [m], angle [rad]")
    axes["base"].legend(fontsize=8)
    for i, label in enumerate(("rotation [rad]", "position [m]")):
        axes["hands"].semilogy(seconds, np.maximum(errors[:, i], 1e-16), label=label)
    axes["hands"].set(title="Errors of the hands in the room", ylabel="error [rad or m]")
    axes["hands"].legend(fontsize=8)
    axes["distance"].plot(seconds, 1e3 * distance)
    axes["distance"].set(title="Least distance of two capsules", ylabel="distance [mm]", ylim=(0.0, None))
    for each in axes.values():
        each.set(xlabel="time [s]", xlim=(0.0, max(seconds[-1], 0.1)))
    return common.save_figure(figure, folder, "whole_body.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    options = common.parser(
        "Drives a humanoid whose hands stay in place.", world_count=None, num_frames=200,
        frames="number of control steps, 25 a second", dt=None,
    )  # fmt: skip
    options.add_argument("--test", action="store_true", help="check that the hands stay in place")
    args = options.parse_args(arguments)
    common.prepare(options, args, 20_000 * args.num_frames)
    common.say("loading the robot; kernels are compiled the first time ...", args.quiet)
    robot = wheeled.load("general")
    state = robot.make_state(["base", *HANDS])
    wheeled.set_joints(state, wheeled.READY)
    in_room = [robot.compute_transformation(state, 0, i) for i in (1, 2)]
    # compiles
    rd.solve_ik(robot, state, [1, 2], in_room, starts=1)

    period = args.num_frames / RATE
    pose, q, base = np.zeros(3), [], []
    begin = perf_counter()
    for frame in range(args.num_frames):
        robot.compute_mobility_inverse_diff_kinematics(state, drive(frame / RATE, period))
        moved = rd.integrate_odometry(pose, robot.compute_mobility_diff_kinematics(state), 1.0 / RATE)
        # the wheels turn; their positions have no limits
        turned = state.q + state.qdot / RATE
        to_base = np.linalg.inv(planar(moved))
        state.q = turned
        found = rd.solve_ik(robot, state, [1, 2], [to_base @ T for T in in_room], starts=1, tolerance=(1e-6, 1e-6))
        if not found.success:
            raise SystemExit(
                f"the hands cannot stay in place at control step {frame}: the errors are {found.rotation_error:.3g} rad and "
                f"{found.position_error:.3g} m"
            )
        state.q, pose = found.q, moved
        q.append(state.q)
        base.append(pose)
    spent = perf_counter() - begin
    q, base = np.array(q), np.array(base)
    state.q = q
    bases = np.array([planar(pose) for pose in base])
    hands = [bases @ robot.compute_transformation(state, 0, i) for i in (1, 2)]
    errors = np.maximum(*(common.pose_errors(T, wanted[None]) for T, wanted in zip(hands, in_room, strict=True)))
    turned_by, off = errors.max(axis=0)
    distance = robot.compute_distances(state).distance.min(axis=1)
    travel = np.linalg.norm(np.diff(base[:, :2], axis=0), axis=1).sum()
    away, turned = np.linalg.norm(base[:, :2], axis=1).max(), np.abs(base[:, 2]).max()
    common.summary(
        f"{args.num_frames} control steps, {period:.1f} s",
        [
            (
                "base",
                f"travels {travel:.2f} m, up to {away:.2f} m away, turns up to {turned:.2f} rad",
            ),
            ("hands", f"stay within {turned_by:.1g} rad and {off:.1g} m"),
            ("least distance", f"{1e3 * distance.min():.0f} mm between two capsules"),
            ("time", f"{1e6 * spent / args.num_frames:.0f} us for a control step"),
        ],
    )
    if args.test:

        def check():
            assert errors.max() < TEST_ERROR, f"the hands are off by {turned_by:g} rad and {off:g} m"
            assert travel > TEST_TRAVEL, f"the base travels {travel:g} m"
            assert distance.min() > 0.0, "two capsules overlap"

        common.verdict(check)
    seconds = np.arange(args.num_frames) / RATE
    if args.viewer == "plot":
        print(f"  plot in {plot(seconds, base, errors, distance, args.output_path)}")
    if args.viewer in common.VIDEOS:
        model, now = wheeled.drawn(robot, floating=True, marks=2)
        video = common.video(args, model, "whole_body", **LOOK)
        marks = [T[:3, 3] for T in in_room]
        for time, positions, place in zip(seconds, q, base, strict=True):
            wheeled.show(model, robot, now, positions, state.joint_names, base=place, marks=marks)
            video.record(now, float(time))
        common.save_video(video, args.quiet)


if __name__ == "__main__":
    common.run(main)
