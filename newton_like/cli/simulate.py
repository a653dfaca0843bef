"""Simulating a file frame by frame."""

from __future__ import annotations

import time

import numpy as np

from newton_like.cli.scene import Scene
from newton_like.cli.terminal import progress
from newton_like.collision.ground import unsupported_pairs
from newton_like.dynamics import mechanical_energy
from newton_like.solvers import SolverFeatherstone

SHOWN_PAIRS = 3
JSON_PAIRS = 100
"""Pairs of shapes that a remark names, and those that JSON lists."""


def simulate(scene: Scene, args) -> dict:
    """Runs the command's simulation and says what came of it.

    Args:
        scene: what to simulate.
        args: options of the command.

    Raises:
        ValueError: a state that is not finite; a feature that the solver lacks.
        OSError: the output cannot be written.
    """
    model, state = scene.model, scene.state
    solver = SolverFeatherstone(model, evaluator="general", unsupported_contacts="ignore")
    recorder = None
    if args.output is not None:
        from newton_like.usd import Recorder

        recorder = Recorder(model, str(args.output), fps=args.fps)
        recorder.record(state, 0.0)
        # an output that cannot be written is found before the work, not after it
        recorder.save()
    before, dt = _energy(model, state), 1.0 / (args.fps * args.substeps)
    # kernels are compiled before the clock runs
    solver.step(state, state.clone(), dt=dt)
    if model.articulation_count:
        solver.reset(state)
    begin = time.perf_counter()
    for frame in progress(args.frames, args.quiet or args.json, "simulating"):
        for _ in range(args.substeps):
            solver.step(state, state, dt=dt)
        if not np.isfinite(state.body_q.numpy()).all():
            raise ValueError(
                f"{args.file}: the simulation left the finite numbers in frame {frame + 1}; try more --substeps than {args.substeps}"
            )
        if recorder is not None:
            recorder.record(state, (frame + 1) / args.fps)
    taken = time.perf_counter() - begin
    if recorder is not None:
        recorder.save()
    pairs = unsupported_pairs(model)
    return {
        "frames": args.frames, "seconds": args.frames / args.fps, "wall_seconds": taken,
        "energy_start": before, "energy_end": _energy(model, state),
        "output": None if args.output is None else str(args.output),
        "ignored_pairs": {
            "count": len(pairs), "first": [[model.shape_label[a], model.shape_label[b]] for a, b in pairs[:JSON_PAIRS]]
        },
        "remarks": scene.remarks,
    }  # fmt: skip


def ignored(model) -> list[str]:
    """A remark on shapes that the solver lets through each other."""
    pairs = unsupported_pairs(model)
    if not len(pairs):
        return []
    names = [f"'{model.shape_label[a]}' and '{model.shape_label[b]}'" for a, b in pairs[:SHOWN_PAIRS]]
    more = f", and {len(pairs) - SHOWN_PAIRS} more" if len(pairs) > SHOWN_PAIRS else ""
    many = "a pair of shapes goes" if len(pairs) == 1 else f"{len(pairs)} pairs of shapes go"
    return [f"{many} through each other, as moving shapes touch planes only: {', '.join(names)}{more}"]


def _energy(model, state) -> float:
    return float(mechanical_energy(model, state).numpy().sum()) if model.articulation_count else 0.0
