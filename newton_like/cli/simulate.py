"""Simulating a file frame by frame."""

from __future__ import annotations

import time

import numpy as np
import warp as wp

from newton_like.dynamics import mechanical_energy
from newton_like.solvers import SolverFeatherstone


def simulate(args, read) -> dict:
    """Runs the command's simulation and says what came of it.

    Args:
        args: its options.
        read: gives the scene of `args` for a scalar type.

    Raises:
        ValueError: a state that is not finite; a feature that the solver lacks.
        OSError: the output cannot be written.
    """
    model = read(args, ground=args.ground, dtype=wp.float32).builder.finalize(args.device)
    state = model.state()
    solver = SolverFeatherstone(model, evaluator="general", unsupported_contacts="ignore")
    solver.reset(state)
    recorder = None
    if args.output is not None:
        from newton_like.usd import Recorder

        recorder = Recorder(model, str(args.output), fps=args.fps)
        recorder.record(state, 0.0)
    before = float(mechanical_energy(model, state).numpy().sum()) if model.articulation_count else 0.0
    begin, dt = time.perf_counter(), 1.0 / (args.fps * args.substeps)
    for frame in _frames(args):
        for _ in range(args.substeps):
            solver.step(state, state, dt=dt)
        if recorder is not None:
            recorder.record(state, (frame + 1) / args.fps)
    taken = time.perf_counter() - begin
    if recorder is not None:
        recorder.save()
    if not np.isfinite(state.body_q.numpy()).all():
        raise ValueError(
            f"{args.file}: the simulation left the finite numbers; try more --substeps than {args.substeps}"
        )
    after = float(mechanical_energy(model, state).numpy().sum()) if model.articulation_count else 0.0
    return {
        "frames": args.frames, "seconds": args.frames / args.fps, "wall_seconds": taken, "energy_start": before, "energy_end": after,
        "output": None if args.output is None else str(args.output),
    }  # fmt: skip


def _frames(args):
    """The numbers of the frames, with a progress bar where somebody looks and tqdm is there."""
    if args.quiet or args.json:
        return range(args.frames)
    try:
        from tqdm import tqdm
    except ImportError:
        return range(args.frames)
    return tqdm(range(args.frames), desc="simulating", unit="frame", disable=None)
