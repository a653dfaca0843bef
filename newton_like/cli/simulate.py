"""Simulation of a file, frame by frame."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from newton_like.cli.scene import Scene
from newton_like.cli.terminal import progress, suffix_text
from newton_like.dynamics import mechanical_energy
from newton_like.model.labels import some_of
from newton_like.solvers import SolverFeatherstone

VIDEO_SUFFIXES = (".gif", ".mp4")
STAGE_SUFFIXES = (".usd", ".usda", ".usdc")
VIDEO_FPS = 25.0
"""Largest number of frames per second of a video."""
SHOWN_PAIRS = 3
JSON_PAIRS = 100
"""Largest number of pairs of shapes in a remark, and in JSON output."""


def simulate(scene: Scene, args, video: Path | None = None, pairs=()) -> dict:
    """Runs the simulation of the command, and returns its results for JSON.

    Args:
        scene: the model and its initial state.
        args: options of the command.
        video: the GIF or MP4 file to write, or None.
        pairs: pairs of shapes without contacts, for the results.

    Raises:
        ValueError: the state is no longer finite, or the solver does not support the model.
        ImportError: Pillow, or ffmpeg for an MP4, is missing.
        OSError: the output cannot be written.
    """
    model, state = scene.model, scene.state
    solver = SolverFeatherstone(model, evaluator="general", unsupported_contacts="ignore")
    recorder, film, output = None, None, args.output if args.output != video else None
    if video is not None:
        from newton_like.viewer import VideoRecorder

        film = VideoRecorder(model, video, world=None, fps=min(args.fps, VIDEO_FPS))
        film.record(state, 0.0)
    if output is not None:
        from newton_like.usd import Recorder

        recorder = Recorder(model, str(output), fps=args.fps)
        recorder.record(state, 0.0)
        # so that errors in writing occur before the simulation
        recorder.save()
    before, dt = _energy(model, state), 1.0 / (args.fps * args.substeps)
    # compiles the kernels before the time measurement
    solver.step(state, state.clone(), dt=dt)
    if model.articulation_count:
        solver.reset(state)
    begin = time.perf_counter()
    for frame in progress(args.frames, args.quiet or args.json, "simulating"):
        for _ in range(args.substeps):
            solver.step(state, state, dt=dt)
        if not np.isfinite(state.body_q.numpy()).all():
            raise ValueError(
                f"{args.file}: the state is not finite after frame {frame + 1}; increase --substeps from {args.substeps}"
            )
        if recorder is not None:
            recorder.record(state, (frame + 1) / args.fps)
        if film is not None:
            film.record(state, (frame + 1) / args.fps)
    taken = time.perf_counter() - begin
    if recorder is not None:
        recorder.save()
    if film is not None:
        film.save(progress=lambda frames: progress(frames, args.quiet or args.json, "drawing"))
    return {
        "frames": args.frames, "seconds": args.frames / args.fps, "wall_seconds": taken,
        "energy_start": before, "energy_end": _energy(model, state),
        "output": None if output is None else str(output), "video": None if video is None else str(video),
        "ignored_pairs": {
            "count": len(pairs), "first": [[model.shape_label[a], model.shape_label[b]] for a, b in pairs[:JSON_PAIRS]]
        },
        "remarks": scene.remarks,
    }  # fmt: skip


def video_path(args) -> Path | None:
    """The path of the video for the options: ``--output`` itself, or a file beside it or in the current folder.

    Raises:
        ValueError: ``--viewer`` and the suffix of ``--output`` disagree, or files with this suffix cannot be written.
    """
    suffix = args.output.suffix.lower() if args.output is not None else ""
    if args.output is not None and suffix not in (*STAGE_SUFFIXES, *VIDEO_SUFFIXES):
        known = ", ".join((*STAGE_SUFFIXES, *VIDEO_SUFFIXES))
        raise ValueError(f"--output {args.output}: files {suffix_text(suffix)} cannot be written; use one of {known}")
    if suffix in VIDEO_SUFFIXES:
        if args.viewer not in ("null", suffix[1:]):
            raise ValueError(
                f"--viewer {args.viewer} and --output {args.output} request different video formats; omit --viewer"
            )
        return args.output
    if args.viewer == "null":
        return None
    beside = args.output if args.output is not None else Path(args.file.name)
    return beside.with_suffix(f".{args.viewer}")


def ignored(model, pairs) -> list[str]:
    """A remark on pairs of shapes whose contacts the solver ignores, see :func:`newton_like.collision.ground.unsupported_pairs`."""
    if not len(pairs):
        return []
    names = [f"'{model.shape_label[a]}' and '{model.shape_label[b]}'" for a, b in pairs]
    many = "1 pair of shapes passes" if len(pairs) == 1 else f"{len(pairs)} pairs of shapes pass"
    return [
        f"{many} through each other, because contacts of planes and height fields on moving bodies are not resolved:"
        f" {some_of(names, SHOWN_PAIRS)}"
    ]


def _energy(model, state) -> float:
    return float(mechanical_energy(model, state).numpy().sum()) if model.articulation_count else 0.0
