"""Double pendulums swing, each from other initial angles: ``python -m examples.pendulum``.

There is no friction, so the energy should be constant. The summary gives its error.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import warp as wp

import newton_like as nl
from examples import common
from newton_like.solvers import SolverFeatherstone

ROD = 0.5
FRAME = 1.0 / 60.0
ROW = 6
"""Pendulums that a video shows, one behind the other."""
LOOK = {"spacing": (0.0, 0.4, 0.0), "azimuth": -60.0, "elevation": 12.0, "size": (480, 400)}
"""Distance between them [m], direction of the camera [degrees] and size of the video [pixels]."""
WORLD_BYTES, FRAME_BYTES = 8_000, 64
"""Memory of a world while it is built, and of each recorded frame."""


def build(worlds: int, seed: int, device: str) -> nl.Model:
    """A model of double pendulums, one a world, hanging from the origin, at random angles of any size."""
    pendulum = nl.ModelBuilder()
    rods = [pendulum.add_link(label=name) for name in ("upper", "lower")]
    for rod in rods:
        pendulum.add_shape_capsule(rod, radius=0.02, half_height=0.5 * ROD)
    top, bottom = (0, 0, 0.5 * ROD, 0, 0, 0, 1), (0, 0, -0.5 * ROD, 0, 0, 0, 1)
    hinges = [
        pendulum.add_joint_revolute(-1, rods[0], axis="y", child_xform=top),
        pendulum.add_joint_revolute(rods[0], rods[1], axis="y", parent_xform=bottom, child_xform=top),
    ]
    pendulum.add_articulation(hinges)

    scene = nl.ModelBuilder()
    seen = nl.ShapeConfig(density=0.0, has_shape_collision=False)  # for videos
    scene.add_ground_plane(height=-2.4 * ROD, cfg=seen)
    scene.add_shape_box(-1, hx=0.02, hy=0.5 * ROW * LOOK["spacing"][1], hz=0.02, color=(0.35, 0.37, 0.4), cfg=seen)
    scene.replicate(pendulum, worlds)
    scene.joint_q = np.random.default_rng(seed).uniform(-np.pi, np.pi, 2 * worlds)
    return scene.finalize(device)


def energy(model: nl.Model, state: nl.State) -> np.ndarray:
    """Kinetic plus potential energy of every world [J], from the poses and velocities of its bodies."""
    pose = state.body_q.numpy().astype(float).reshape(model.world_count, -1, 7)
    twist = state.body_qd.numpy().astype(float).reshape(model.world_count, -1, 6)
    mass = model.body_mass.numpy().reshape(model.world_count, -1)
    # The rods turn about y alone, and their centres of mass are the origins of their frames.
    inertia = model.body_inertia.numpy().reshape(model.world_count, -1, 3, 3)[..., 1, 1]
    kinetic = 0.5 * mass * np.sum(twist[..., :3] ** 2, axis=-1) + 0.5 * inertia * twist[..., 4] ** 2
    potential = -mass * np.sum(model.gravity.numpy()[:, None] * pose[..., :3], axis=-1)
    return np.sum(kinetic + potential, axis=1)


def tips(model: nl.Model, state: nl.State) -> np.ndarray:
    """Positions of the lower ends, ``[worlds, 2]``: x and z [m]."""
    x, _, z, _, qy, _, qw = state.body_q.numpy().reshape(model.world_count, -1, 7)[:, 1].T
    return np.stack([x - ROD * qy * qw, z - 0.5 * ROD * (1.0 - 2.0 * qy * qy)], axis=1)


def plot(seconds: np.ndarray, error: np.ndarray, path: np.ndarray, folder: Path) -> Path:
    """Plots the paths of some lower ends, and the errors of the energy of all worlds; returns the path of the PNG."""
    figure, axes = common.new_figure([["paths", "energy"]], figsize=(11, 4.8), width_ratios=(1.0, 1.4))
    for world in range(min(path.shape[1], 4)):
        axes["paths"].plot(*path[:, world].T, lw=0.7, color=f"C{world}", label=f"world {world}")
        axes["paths"].plot(*path[-1, world], "o", ms=5, color=f"C{world}")
    axes["paths"].plot(0.0, 0.0, "k.", ms=8)
    reach = 2.2 * ROD
    axes["paths"].set(
        title="Paths of the lower ends", xlabel="x [m]", ylabel="z [m]",
        aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach),
    )  # fmt: skip
    axes["paths"].legend(loc="upper right", fontsize=7)
    common.band(axes["energy"], seconds, 100.0 * error, "C0")
    axes["energy"].set(
        title="Error of the energy",
        xlabel="time [s]",
        ylabel="energy error [% of upright minus hanging energy]",
    )
    axes["energy"].set_xlim(0.0, seconds[-1])
    axes["energy"].legend(loc="lower left")
    return common.save_figure(figure, folder, "pendulum.png")


def main(arguments: list[str] | None = None) -> None:
    """Runs the example.

    Args:
        arguments: command line; None: that of the process.
    """
    options = common.parser("Simulates double pendulums.", world_count=256, num_frames=600)
    args = options.parse_args(arguments)
    common.prepare(options, args, WORLD_BYTES + FRAME_BYTES * args.num_frames)
    common.say(
        f"building {common.count_text(args.world_count, 'world')}; kernels are compiled the first time ...", args.quiet
    )
    model = build(args.world_count, args.seed, args.device)
    solver, state = SolverFeatherstone(model), model.state()
    solver.reset(state)
    # the energy that lifts both rods from hanging to upright
    mass = model.body_mass.numpy()[0]
    scale = 9.81 * mass * (ROD + 3.0 * ROD)
    substeps = common.steps_in(FRAME, args.dt)

    energies, path, busy = [energy(model, state)], [tips(model, state)], 0.0
    video = common.video(args, model, "pendulum", world=range(min(args.world_count, ROW)), **LOOK)
    if video is not None:
        video.record(state, 0.0)
    solver.step(state, state.clone(), dt=args.dt)
    for frame in common.progress(args.num_frames, args.quiet, "swing"):
        begin = time.perf_counter()
        for _ in range(substeps):
            solver.step(state, state, dt=args.dt)
        wp.synchronize_device(model.device)
        busy += time.perf_counter() - begin
        energies.append(energy(model, state))
        path.append(tips(model, state))
        if video is not None:
            video.record(state, args.dt * substeps * (frame + 1))

    healthy = solver.check(state)
    if not healthy.any():
        raise SystemExit(f"all worlds diverged with the time step {common.step_text(args.dt)}; use a smaller --dt")
    error = ((np.array(energies) - energies[0]) / scale)[:, healthy]
    seconds = args.dt * substeps * np.arange(len(error))
    worst = np.abs(error).max(axis=0)
    common.summary(
        f"Swing of {common.count_text(args.world_count, 'double pendulum')}, {seconds[-1]:.2f} s, "
        f"time step {common.step_text(args.dt)}, {model.device}",
        [
            ("healthy", f"{healthy.sum()} of {args.world_count} worlds"),
            (
                "energy drift",
                f"{100.0 * error[-1].mean():+.3f} % of the energy difference between upright and hanging (mean over worlds, at the end)",
            ),
            (
                "largest error",
                f"{100.0 * np.median(worst):.2f} % (median over worlds), {100.0 * worst.max():.2f} % (worst world)",
            ),
            ("throughput", f"{args.world_count * substeps * args.num_frames / busy:,.0f} world-steps/s"),
        ],
    )
    if args.viewer == "plot":
        print(f"  plot in {plot(seconds, error, np.array(path), args.output_path)}")
    common.save_video(video, args.quiet)


if __name__ == "__main__":
    common.run(main)
