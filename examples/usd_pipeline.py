"""Simulates a USD stage in place: ``python -m examples.usd_pipeline [STAGE]``; by default the project's warehouse.

A separate stage stores the motion as time samples over the prims of the source, which does not change. The example then reads this file
and compares the pose of each body with the simulation, for each frame.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import warp as wp
from pxr import Usd, UsdGeom

import newton_like as nl
from examples import common
from newton_like import assets, usd
from newton_like.geometry.transforms import (
    quat_from_matrix,
    transform,
    transform_inverse,
    transform_multiply,
    transform_point,
)
from newton_like.importers.usd import UsdWarning
from newton_like.viewer import bounds, picture

FRAME = 1.0 / 60.0
AZIMUTH = {"X": -50.0, "Y": 40.0, "Z": -50.0}
"""Direction of the camera, by the stage's up axis [degrees]."""
PICTURES = 4
MOVES = 0.01
"""Bodies that move less than this have no curve in the plot [m]."""
TOLERANCE = 1.0e-5
"""Largest error of a pose in the file [m, rad]. The error of float32 poses, some metres from the origin, is a few 1e-7."""
WORLD_BYTES, FRAME_BYTES = 50_000_000, 100_000
"""Memory that the stage and its model need, and every frame of it, in scenes of up to some hundred bodies."""


@dataclass
class Run:
    """A simulation and its recorded motion.

    Attributes:
        source: the stage's file.
        simulation: of it.
        before: content of the file at the start.
        codes: time code of each frame, the start among them.
        poses: of all bodies at each frame, ``[bodies, 7]`` each.
        busy: wall time of all steps and samples [s].
    """

    source: Path
    simulation: usd.Simulation
    before: bytes
    codes: list[float] = field(default_factory=list)
    poses: list[np.ndarray] = field(default_factory=list)
    busy: float = 0.0

    def remember(self) -> None:
        self.codes.append(self.simulation.time_code)
        self.poses.append(self.simulation.state.body_q.numpy().astype(float).reshape(-1, 7))

    @property
    def seconds(self) -> np.ndarray:
        """Simulated time at each frame [s]."""
        return self.simulation.frame_dt * np.arange(len(self.poses))


def start(source: Path, dt: float, device: str) -> Run:
    """Opens a stage and makes a simulation of it, whose frames are 1/60 s or the next longer time that whole steps make up."""
    substeps = common.steps_in(FRAME, dt)
    simulation = usd.Simulation(
        source,
        fps=1.0 / (substeps * dt),
        substeps=substeps,
        device=device,
        # The general kernel needs no compilation for a new stage.
        solver={"evaluator": "general"},
    )
    # Kernels are compiled before the clock runs.
    state = simulation.state
    simulation.solver.step(state, state.clone(), simulation.control, None, dt)
    run = Run(source, simulation, source.read_bytes())
    run.remember()
    return run


def simulate(run: Run, frames: int, quiet: bool) -> None:
    """Simulates some frames; each is written into the motion layer and remembered."""
    for _ in common.progress(frames, quiet, "simulate"):
        begin = time.perf_counter()
        run.simulation.step()
        wp.synchronize_device(run.simulation.model.device)
        run.busy += time.perf_counter() - begin
        run.remember()


def read_back(run: Run, file: Path) -> tuple[float, float]:
    """The largest distance [m] and angle [rad] between a body in the file and in the simulation, over all frames."""
    stage = Usd.Stage.Open(str(file))
    report = run.simulation.report
    distance = angle = 0.0
    for code, poses in zip(run.codes, run.poses, strict=True):
        cache = UsdGeom.XformCache(Usd.TimeCode(code))
        for path, (body, inner) in report.frames.items():
            rows = np.array(cache.GetLocalToWorldTransform(stage.GetPrimAtPath(path)))
            axes = rows[:3, :3] / np.linalg.norm(rows[:3, :3], axis=1)[:, None]
            found = transform(report.meters_per_unit * rows[3, :3], quat_from_matrix(axes.T))
            expected = transform_multiply(transform_inverse(report.stage_pose), transform_multiply(poses[body], inner))
            off = transform_multiply(transform_inverse(expected), found)
            distance = max(distance, float(np.linalg.norm(off[:3])))
            angle = max(angle, 2.0 * float(np.linalg.norm(off[3:6])))
    return distance, angle


def imported(run: Run, file: Path) -> float:
    """The largest distance [m] between a body at the end of the simulation and in a model made from the file at its end."""
    builder = nl.ModelBuilder(up_axis=run.simulation.model.up_axis)
    with warnings.catch_warnings():
        # Remarks about the source were made when it was opened.
        warnings.simplefilter("ignore", UsdWarning)
        report = builder.add_usd(file, time=run.codes[-1], package_dirs=[run.source.parent])
    here = [report.bodies[path] for path in run.simulation.report.bodies]
    there = list(run.simulation.report.bodies.values())
    places = np.array([builder.body_q[body][:3] for body in here])
    return float(np.linalg.norm(places - run.poses[-1][there, :3], axis=1).max(initial=0.0))


def check(run: Run, file: Path) -> None:
    """Compares the file with the simulation.

    Raises:
        AssertionError: the motion in the file is another one, the source has changed, or the simulation diverged.
    """
    assert run.simulation.solver.check(run.simulation.state).all(), "the simulation diverged"
    distance, angle = read_back(run, file)
    assert distance < TOLERANCE and angle < TOLERANCE, (
        f"the pose of a body in {file} has an error of {distance:.2g} m and {angle:.2g} rad"
    )
    off = imported(run, file)
    assert off < TOLERANCE, f"the position of a body of the model made from {file} has an error of {off:.2g} m"
    assert run.source.read_bytes() == run.before, f"{run.source} has changed"
    moved = displacements(run).max(initial=0.0)
    assert moved > MOVES, f"nothing has moved: the largest displacement is {moved:.2g} m"


def displacements(run: Run) -> np.ndarray:
    """Distance of the centre of mass of each body from its start, ``[frames, bodies]`` [m]."""
    coms = run.simulation.model.body_com.numpy().astype(float)
    places = np.array([[transform_point(pose, com) for pose, com in zip(f, coms, strict=True)] for f in run.poses])
    return np.linalg.norm(places - places[0], axis=2)


def azimuth_of(run: Run) -> float:
    """Direction of the camera [degrees]."""
    return AZIMUTH[run.simulation.model.up_axis.name]


def plot(run: Run, folder: Path) -> Path:
    """Draws the stage at some times, and plots the displacements of bodies; returns the path of the PNG."""
    model, state = run.simulation.model, run.simulation.model.state()
    figure, axes = common.new_figure(
        [["at 0", "at 1", "paths"], ["at 2", "at 3", "paths"]], figsize=(13, 6.5), width_ratios=(1.0, 1.0, 0.65)
    )
    frames = np.linspace(0, len(run.poses) - 1, PICTURES).round().astype(int)
    boxes = []
    for frame in frames:
        state.body_q.assign(run.poses[frame].astype(np.float32))
        boxes.append(bounds(model, state, world=None))
    # one camera for all, which sees everything at every time
    extent = np.stack([np.min(boxes, axis=0)[0], np.max(boxes, axis=0)[1]])
    for number, frame in enumerate(frames):
        state.body_q.assign(run.poses[frame].astype(np.float32))
        drawn = picture(model, state, world=None, azimuth=azimuth_of(run), size=(8.0, 5.2), extent=extent)
        drawn.canvas.draw()
        view = axes[f"at {number}"]
        view.imshow(np.asarray(drawn.canvas.buffer_rgba()), interpolation="antialiased")
        view.set_title(f"{run.seconds[frame]:.2f} s")
        view.set_axis_off()
    names = ["/".join(label.split("/")[-2:]) for label in model.body_label]
    away = displacements(run)
    for body in np.flatnonzero(away.max(axis=0) > MOVES):
        axes["paths"].plot(run.seconds, away[:, body], lw=1.2, label=names[body])
    axes["paths"].set(
        title="Displacement of the bodies", xlabel="time [s]", ylabel="displacement of the centre of mass [m]"
    )
    if axes["paths"].lines:
        axes["paths"].legend(fontsize=7)
    return common.save_figure(figure, folder, "usd_pipeline.png")


def report(run: Run, file: Path) -> None:
    """Prints what happened."""
    model, found = run.simulation.model, run.simulation.report
    distance, angle = read_back(run, file)
    moved = displacements(run).max(axis=0)
    far = int(np.argmax(moved)) if len(moved) else -1
    substeps = run.simulation.substeps
    common.summary(
        f"{run.source.name}, {run.seconds[-1]:.2f} s, time step "
        f"{common.step_text(run.simulation.frame_dt / substeps)}, {model.device}",
        [
            ("stage", f"{found.meters_per_unit:g} m per unit, {found.up_axis.name} up"),
            (
                "model",
                f"{model.body_count} bodies, {model.joint_dof_count} degrees of freedom, {model.shape_count} shapes",
            ),
            (
                "largest displacement",
                f"{moved[far]:.3f} m, {model.body_label[far]}" if len(moved) else "there are no bodies",
            ),
            ("read back", f"{len(run.poses)} frames, largest error {distance:.1e} m and {angle:.1e} rad"),
            ("speed", f"{run.seconds[-1] / run.busy:.1f} times real time, including the time samples"),
            ("motion", str(file)),
        ],
    )


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    options = common.parser("Simulates a USD stage in place.", world_count=None, num_frames=180)
    options.add_argument(
        "stage", nargs="?", type=Path, default=assets.path("warehouse.usda"), help="the USD file to simulate"
    )
    options.add_argument(
        "--test", action="store_true", help="fail if no body moves, or if the file differs from the simulation"
    )
    args = options.parse_args(arguments)
    if not args.stage.is_file():
        options.error(f"the file {args.stage} does not exist; give a USD file")
    common.prepare(options, args, WORLD_BYTES + FRAME_BYTES * args.num_frames, writes=True)
    file = args.output_path / f"{args.stage.stem}_motion.usda"
    common.say(f"building {args.stage.name}; kernels are compiled the first time ...", args.quiet)
    try:
        run = start(args.stage, args.dt, args.device)
        simulate(run, args.num_frames, args.quiet)
        run.simulation.save(file)
    except (OSError, ValueError, NotImplementedError, RuntimeError) as error:
        raise SystemExit(str(error)) from None
    report(run, file)
    if args.viewer == "plot":
        print(f"  plot in {plot(run, args.output_path)}")
    if video := common.video(args, run.simulation.model, "usd_pipeline", world=None, azimuth=azimuth_of(run)):
        state = run.simulation.model.state()
        for seconds, poses in zip(run.seconds, run.poses, strict=True):
            state.body_q.assign(poses.astype(np.float32))
            video.record(state, seconds)
        common.save_video(video, args.quiet)
    if args.test:
        common.verdict(lambda: check(run, file))


if __name__ == "__main__":
    common.run(main)
