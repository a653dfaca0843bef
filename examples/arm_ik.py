"""An arm follows a path of poses by inverse kinematics: ``python -m examples.arm_ik``.

The first pose is reached from joint positions of zero, or from random ones if that fails, and each next pose from the one before it. The
same poses are then solved as a batch, each like the first one.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np

import newton_like as nl
import newton_like.robot as rd
from examples import common
from newton_like import assets
from newton_like.importers.urdf import UrdfWarning

PERIOD = 6.0
"""Duration of the path [s]."""
CENTRE, RADIUS = np.array([0.45, 0.0, 0.55]), 0.18
"""Centre and radius of the path [m]: a loop in a plane that faces the arm, with the hand pointing forward."""
LOOK = {"azimuth": -55.0, "elevation": 18.0, "size": (480, 440)}
"""Direction of the camera [degrees] and size of the video [pixels]."""
TEST_ERROR, TEST_STEP = 1e-5, 0.35
"""Errors [rad, m] and change of a joint from pose to pose [rad] that ``--test`` allows."""


def load() -> rd.Robot:
    """The arm. Its boxes and the friction of its joints are not needed here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UrdfWarning)
        return rd.Robot(rd.load_robot_from_urdf(assets.path("arm.urdf"), "base"), evaluator="general")


def poses(count: int) -> np.ndarray:
    """A figure of eight in the plane x = const, the z axis of the hand forward, ``[count, 4, 4]``."""
    angle = np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
    T = np.tile(np.eye(4), (count, 1, 1))
    T[:, :3, :3] = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]
    T[:, 0, 3] = CENTRE[0]
    T[:, 1, 3] = CENTRE[1] + RADIUS * np.sin(angle)
    T[:, 2, 3] = CENTRE[2] + 0.5 * RADIUS * np.sin(2.0 * angle)
    return T


def follow(robot: rd.Robot, state: rd.State, tip: int, path: np.ndarray) -> np.ndarray:
    """Joint positions along the path, ``[count, n]``."""
    q = []
    for i, pose in enumerate(path):
        found = rd.solve_ik(robot, state, tip, pose, starts=1 if i else 32)
        if not found.success:
            raise SystemExit(
                f"pose {i} of the path cannot be reached: the errors are {found.rotation_error:.3g} rad and "
                f"{found.position_error:.3g} m"
            )
        state.q = found.q
        q.append(found.q)
    return np.array(q)


def plot(seconds: np.ndarray, names: list[str], q: np.ndarray, errors: np.ndarray, folder: Path) -> Path:
    """Plots joint positions and errors; returns the path of the PNG."""
    figure, axes = common.new_figure([["joints", "errors"]], figsize=(11, 4.2), width_ratios=(1.4, 1.0))
    for i, name in enumerate(names):
        axes["joints"].plot(seconds, q[:, i], label=name)
    axes["joints"].set(title="Joint positions", xlabel="time [s]", ylabel="position [rad]", xlim=(0.0, PERIOD))
    axes["errors"].semilogy(seconds, np.maximum(errors[:, 1], 1e-16), label="position [m]")
    axes["errors"].semilogy(seconds, np.maximum(errors[:, 0], 1e-16), label="rotation [rad]")
    axes["errors"].set(title="Errors of the poses", xlabel="time [s]", ylabel="error [m or rad]", xlim=(0.0, PERIOD))
    for name, handles in (("joints", len(names)), ("errors", 2)):
        axes[name].legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=7, ncols=handles)
    return common.save_figure(figure, folder, "arm_ik.png")


def film(args, robot: rd.Robot, state: rd.State, q: np.ndarray, path: np.ndarray) -> None:
    """Draws the arm, and the path as small spheres."""
    builder = nl.ModelBuilder()
    builder.add_urdf(assets.path("arm.urdf"), floating=False)
    look = nl.ShapeConfig(density=0.0, has_shape_collision=False)
    builder.add_ground_plane(cfg=look)
    for pose in path[:: max(1, len(path) // 60)]:
        place = (*pose[:3, 3], 0.0, 0.0, 0.0, 1.0)
        builder.add_shape_sphere(-1, radius=0.006, xform=place, color=(0.85, 0.15, 0.1), cfg=look)
    model = builder.finalize("cpu")
    now, start = model.state(), model.joint_q_start.numpy()
    at = [start[[label.split("/")[-1] for label in model.joint_label].index(name)] for name in state.joint_names]
    video = common.video(args, model, "arm_ik", **LOOK)
    for i, positions in enumerate(q):
        values = now.joint_q.numpy()
        values[at] = positions
        now.joint_q.assign(values)
        nl.eval_fk(model, now.joint_q, now.joint_qd, now)
        video.record(now, PERIOD * i / len(q))
    common.save_video(video, args.quiet)


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    options = common.parser(
        "Moves an arm along a path of poses.", world_count=None, num_frames=180, frames="number of poses", dt=None
    )
    options.add_argument("--test", action="store_true", help="check that the poses are reached without jumps")
    args = options.parse_args(arguments)
    common.prepare(options, args, 20_000 * args.num_frames)
    common.say("loading the arm; kernels are compiled the first time ...", args.quiet)
    robot = load()
    state = robot.make_state(["base", robot.link_names[-1]])
    path = poses(args.num_frames)
    follow(robot, state, 1, path[:1])
    begin = time.perf_counter()
    q = follow(robot, state, 1, path)
    spent = time.perf_counter() - begin
    state.q = q
    errors = common.pose_errors(robot.compute_transformation(state, 0, 1), path)
    state.q = np.zeros(robot.dof)
    rd.solve_ik(robot, state, 1, path, starts=32)
    begin = time.perf_counter()
    batch = rd.solve_ik(robot, state, 1, path, starts=32)
    together = time.perf_counter() - begin
    state.q = batch.q
    batch_errors = common.pose_errors(robot.compute_transformation(state, 0, 1), path)
    turned_by, off = errors.max(axis=0)
    turn = np.abs(np.diff(np.concatenate([q, q[:1]]), axis=0)).max()
    common.summary(
        f"{args.num_frames} poses of an arm with {robot.dof} joints",
        [
            (
                "one by one",
                f"{1e6 * spent / len(path):.0f} us for a pose, errors at most {turned_by:.1g} rad, {off:.1g} m",
            ),
            ("largest change", f"{turn:.3f} rad from pose to pose"),
            (
                "as a batch",
                f"{1e6 * together / len(path):.1f} us for a pose, {batch.success.sum()} of {len(path)} reached",
            ),
        ],
    )
    if args.test:

        def check():
            assert errors.max() < TEST_ERROR, f"errors up to {errors.max():g}"
            assert batch.success.all(), "the batch does not reach all poses"
            assert batch_errors.max() < TEST_ERROR, f"errors of the batch up to {batch_errors.max():g}"
            assert turn < TEST_STEP, f"a joint jumps by {turn:g} rad"

        common.verdict(check)
    if args.viewer == "plot":
        seconds = np.linspace(0.0, PERIOD, len(path), endpoint=False)
        print(f"  plot in {plot(seconds, state.joint_names, q, errors, args.output_path)}")
    if args.viewer in common.VIDEOS:
        film(args, robot, state, q, path)


if __name__ == "__main__":
    common.run(main)
