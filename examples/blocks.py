"""Shared code of the examples with boxes that touch each other: worlds of boxes on the ground, their motion and their benchmark."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import warp as wp

import newton_like as nl
from examples import common
from newton_like.solvers import SolverFeatherstone
from newton_like.viewer import VideoRecorder

FRAME = 1.0 / 60.0
"""Length of a frame [s]; rounded up to a multiple of the time step."""
WORLD_BYTES, FRAME_BYTES = 100_000, 2_000
"""Memory of a world while it is built, and of each recorded frame and what is computed from it."""


class Blocks:
    """Worlds with the same boxes on the ground, which start at different poses and velocities, and their recorded motion.

    Attributes:
        model, state, control, solver: of the simulation.
        dt: time step [s].
        frame_time: length of a frame [s].
        ready: wall time that building and compiling took [s].
        time: simulated time [s].
        poses: recorded poses of the boxes, ``[frames, worlds, boxes, 7]`` [m].
    """

    def __init__(self, world: nl.ModelBuilder, joint_q: np.ndarray, joint_qd: np.ndarray, dt: float, device: str):
        """Builds the scene.

        Args:
            world: the boxes of a world; each is a body of its own.
            joint_q: poses of the boxes at the start, ``[worlds, boxes, 7]`` [m].
            joint_qd: their linear and angular velocities, ``[worlds, boxes, 6]`` [m/s, rad/s].
            dt: time step [s].
            device: Warp device.
        """
        begin = time.perf_counter()
        scene = nl.ModelBuilder()
        scene.add_ground_plane(cfg=world.default_shape_cfg)
        scene.replicate(world, joint_q.shape[0])
        scene.joint_q, scene.joint_qd = joint_q.ravel(), joint_qd.ravel()
        self.prepare(scene.finalize(device), *joint_q.shape[:2], dt, begin)

    def prepare(self, model, worlds: int, boxes: int, dt: float, begin: float) -> None:
        """Makes solver and state, and compiles by a first frame.

        Args:
            model: the finalized model.
            worlds: number of worlds.
            boxes: number of recorded bodies of a world.
            dt: time step [s].
            begin: when the building began, on the clock of ``time.perf_counter`` [s].
        """
        self.model, self.worlds, self.boxes, self.dt, self.time = model, worlds, boxes, dt, 0.0
        self.substeps = common.steps_in(FRAME, dt)
        self.frame_time = self.substeps * dt
        self.state, self.control = model.state(), model.control()
        self.solver = self.make_solver()
        # poses of bodies follow from joint coordinates
        self.reset()
        self.advance()
        self.reset()
        self.poses: list[np.ndarray] = []
        self.ready = time.perf_counter() - begin

    def make_solver(self):
        """The solver, which takes a frame in one step."""
        # the general kernel is compiled once for all scenes
        return SolverFeatherstone(self.model, evaluator="general", substeps=self.substeps)

    def reset(self) -> None:
        """Moves all boxes back to the start."""
        self.solver.reset(self.state)
        self.time = 0.0
        wp.synchronize_device(self.model.device)

    def advance(self) -> None:
        """Simulates a frame."""
        self.solver.step(self.state, self.state, self.control, dt=self.frame_time)
        self.time += self.frame_time

    def observe(self) -> None:
        """Records the poses."""
        self.poses.append(self.state.body_q.numpy().reshape(self.worlds, self.boxes, 7).copy())

    @property
    def healthy(self) -> np.ndarray:
        """Which worlds did not diverge, ``[worlds]``."""
        return self.solver.check(self.state)

    @property
    def velocities(self) -> np.ndarray:
        """Linear and angular velocities of the boxes now, ``[worlds, boxes, 6]`` [m/s, rad/s]."""
        return self.state.body_qd.numpy().reshape(self.worlds, self.boxes, 6)

    @property
    def seconds(self) -> np.ndarray:
        """Times of the recorded frames [s]."""
        return self.frame_time * np.arange(len(self.poses))

    def tilts(self) -> np.ndarray:
        """Angles between the z axes of the boxes and of the world, ``[frames, worlds, boxes]`` [rad]."""
        x, y = np.moveaxis(np.array(self.poses)[..., 3:5], -1, 0)
        return np.arccos(np.clip(1.0 - 2.0 * (x * x + y * y), -1.0, 1.0))


def simulate(blocks: Blocks, frames: int, word: str, quiet: bool, video: VideoRecorder | None = None) -> float:
    """Simulates and records frames; returns the wall time of their steps [s].

    Args:
        blocks: the scene.
        frames: number of frames.
        word: names the motion in the progress bar.
        quiet: shows no progress bar.
        video: records the frames, too.
    """
    busy = 0.0
    blocks.observe()
    if video is not None:
        video.record(blocks.state, blocks.time)
    for _ in common.progress(frames, quiet, word):
        begin = time.perf_counter()
        blocks.advance()
        wp.synchronize_device(blocks.model.device)
        busy += time.perf_counter() - begin
        blocks.observe()
        if video is not None:
            video.record(blocks.state, blocks.time)
    return busy


def rates(blocks: Blocks, frames: int, busy: float) -> list[tuple[str, str]]:
    """The last rows of a summary."""
    steps, seconds = blocks.worlds * frames * blocks.substeps, frames * blocks.frame_time
    return [
        ("start-up", f"{blocks.ready:.1f} s for building and compiling"),
        ("throughput", f"{steps / busy:,.0f} world-steps/s"),
        ("real-time factor", f"{common.factor_text(blocks.worlds * seconds / busy)}, {seconds / busy:.2f} per world"),
    ]


def benchmark(blocks: Blocks, title: str, frames: int, quiet: bool, bursts: int = 5) -> None:
    """Prints the throughput of the whole motion, from the start, several times."""
    found = []
    for _ in common.progress(bursts, quiet, "bursts"):
        blocks.reset()
        begin = time.perf_counter()
        for _ in range(frames):
            blocks.advance()
        wp.synchronize_device(blocks.model.device)
        found.append(blocks.worlds * frames * blocks.substeps / (time.perf_counter() - begin))
    if not blocks.healthy.all():
        raise SystemExit("benchmark: some worlds diverged, so the rates are invalid")
    common.summary(
        f"{title}, time step {common.step_text(blocks.dt)}, {blocks.model.device}, "
        f"{bursts} bursts of {common.count_text(frames, 'frame')}",
        [
            ("start-up", f"{blocks.ready:.1f} s for building and compiling"),
            ("median", f"{np.median(found):,.0f} world-steps/s"),
            ("slowest, fastest", f"{min(found):,.0f}, {max(found):,.0f} world-steps/s"),
            ("real-time factor", common.factor_text(np.median(found) * blocks.dt)),
        ],
    )


def run(
    arguments: list[str] | None,
    *,
    name: str,
    description: str,
    tested: str,
    title: str,
    word: str,
    test_time: float,
    world_count: int,
    num_frames: int,
    build: Callable[..., Blocks],
    report: Callable[[Blocks, str, list[tuple[str, str]]], None],
    plot: Callable[[Blocks, Path], Path],
    check: Callable[[Blocks], None],
    row: int,
    look: dict,
    solvers: tuple[str, ...] = (),
    dt: str = "1/240",
) -> None:
    """Runs an example: reads the options, simulates, prints the summary, and writes and checks what the options ask for.

    Args:
        arguments: command line; None: that of the process.
        name: of the example and its files.
        description: a sentence for ``--help``.
        tested: a condition for the help of ``--test``.
        title: names one world of the scene, such as ``tower``.
        word: names the motion in the progress bar.
        test_time: simulated time that the test needs [s].
        world_count, num_frames: defaults of the options.
        build: makes the scene from the number of worlds, time step, device and seed.
        report: prints the summary of a scene, with a title and rows of rates at the end.
        plot: writes the plot into a folder; returns its path.
        check: raises AssertionError if the test fails.
        row: worlds that a video shows side by side.
        look: options of the video.
        solvers: names of solvers that the option ``--solver`` takes, the first one by default; `build` gets the name as a fifth
            argument. Empty: there is no such option.
        dt: default time step [s].
    """
    options = common.parser(description, world_count=world_count, num_frames=num_frames)
    options.set_defaults(dt=dt)
    options.add_argument("--test", action="store_true", help=f"fail unless {tested}")
    options.add_argument(
        "--benchmark", action="store_true", help="measure the throughput of the motion, from the start, five times"
    )
    if solvers:
        options.add_argument(
            "--solver", choices=solvers, default=solvers[0], help=f"the solver (default: {solvers[0]})"
        )
    args: argparse.Namespace = options.parse_args(arguments)
    if args.benchmark and (args.test or args.viewer != "null"):
        options.error("--benchmark does not record data for --viewer and --test; omit these options")
    needed = common.steps_in(test_time, common.steps_in(FRAME, args.dt) * args.dt)
    if args.test and args.num_frames < needed:
        options.error(f"--test needs {test_time:g} s of motion: use --num-frames {needed} or more")
    common.prepare(options, args, WORLD_BYTES + (0 if args.benchmark else FRAME_BYTES * args.num_frames))
    common.say(
        f"building {common.count_text(args.world_count, 'world')}; kernels are compiled the first time ...", args.quiet
    )
    blocks = build(args.world_count, args.dt, args.device, args.seed, *([args.solver] if solvers else []))
    title = common.count_text(args.world_count, title)
    if args.benchmark:
        benchmark(blocks, title, args.num_frames, args.quiet)
        return
    video = common.video(args, blocks.model, name, world=range(min(args.world_count, row)), **look)
    busy = simulate(blocks, args.num_frames, word, args.quiet, video)
    seconds = args.num_frames * blocks.frame_time
    heading = f"{title}, {seconds:.2f} s, time step {common.step_text(args.dt)}, {blocks.model.device}"
    report(blocks, heading, rates(blocks, args.num_frames, busy))
    if args.viewer == "plot":
        print(f"  plot in {plot(blocks, args.output_path)}")
    common.save_video(video, args.quiet)
    if args.test:
        common.verdict(lambda: check(blocks))
