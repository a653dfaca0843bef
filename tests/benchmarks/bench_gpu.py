"""Steps and forward kinematics of many worlds on a GPU: ``python -m tests.benchmarks.bench_gpu --device cuda:0``.

For each robot and evaluator: seconds of the first step (compiled, or loaded from the cache of WARP_CACHE_PATH), and for each number of
worlds world-steps per second, called one by one and as a graph of ten steps, calls of `eval_fk` times worlds per second, and bytes of
arrays a world. Medians of bursts. It needs no other engine, and runs on a CPU too, without graphs.
"""

from __future__ import annotations

import argparse
import fcntl
import sys
import time
from contextlib import contextmanager

import numpy as np
import warp as wp

import newton_like
from newton_like.solvers import SolverFeatherstone
from newton_like.solvers.featherstone.specialise import Specialiser

from .cases import CASES
from .first_step import array_bytes

GRAPH = 10
"""Steps in a graph."""


@contextmanager
def alone(path: str | None):
    """Holds the lock of a file, so that processes measure one after the other."""
    if path is None:
        yield
        return
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def median_seconds(call, device, rounds: int, seconds: float) -> float:
    """Of one call, among bursts of about the given length."""
    call()
    wp.synchronize_device(device)
    begin = time.perf_counter()
    call()
    wp.synchronize_device(device)
    count = max(1, round(seconds / max(time.perf_counter() - begin, 1e-6)))
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        wp.synchronize_device(device)
        taken.append((time.perf_counter() - begin) / count)
    return float(np.median(taken))


def measure(case, evaluator: str, worlds: int, options) -> list[str]:
    """One row of the table."""
    device = wp.get_device(options.device)
    model = case.scene(newton_like, worlds).finalize(device)
    state, other = model.state(), model.state()
    q = case.starts(model.joint_q.numpy().reshape(worlds, -1)[0])
    state.joint_q.assign(q[np.arange(worlds) % len(q)].ravel())
    begin = time.perf_counter()
    solver = SolverFeatherstone(model, evaluator=evaluator, unsupported_contacts="ignore")
    solver.step(state, state, None, None, case.dt)
    wp.synchronize_device(device)
    first = time.perf_counter() - begin
    with alone(options.lock):

        def step():
            solver.step(state, state, None, None, case.dt)

        # the robots come to rest, or at least to the ground
        for _ in range(case.steps_to_settle):
            step()
        if not np.isfinite(state.joint_q.numpy()).all():
            return [case.name, evaluator, str(worlds), "not finite"]
        one = median_seconds(step, device, options.rounds, options.seconds)
        graph = None
        if device.is_cuda:
            with wp.ScopedCapture(device) as capture:
                for _ in range(GRAPH):
                    step()
            graph = (
                median_seconds(lambda: wp.capture_launch(capture.graph), device, options.rounds, options.seconds)
                / GRAPH
            )
        newton_like.eval_fk(model, state.joint_q, state.joint_qd, other)
        fk = median_seconds(
            lambda: newton_like.eval_fk(model, state.joint_q, state.joint_qd, other),
            device,
            options.rounds,
            options.seconds,
        )
        rates = [f"{worlds / x:.3g}" if x else "" for x in (one, graph, fk)]
        height = state.joint_q.numpy().reshape(worlds, -1)[:, 2].mean()
        memory = array_bytes(model, state, other, solver) / worlds / 1000
        return [case.name, evaluator, str(worlds), f"{first:.1f}", *rates, f"{memory:.1f}", f"{height:.4f}"]


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints; 1 if a robot is not finite."""
    names = [case.name for case in CASES if case.name != "trot"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--cases", nargs="+", choices=names, default=names)
    parser.add_argument(
        "--evaluators", nargs="+", choices=("general", "specialised"), default=("specialised", "general")
    )
    parser.add_argument("--worlds", nargs="+", type=int, default=[1, 4096, 32768, 131072])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="length of a burst")
    parser.add_argument(
        "--level", type=int, choices=range(4), help="of optimisation, instead of the engine's own choice"
    )
    parser.add_argument("--lock", help="file; times are taken while this process holds its lock")
    options = parser.parse_args(arguments)
    wp.config.log_level = wp.LOG_ERROR
    if options.level is not None:
        Specialiser.level = options.level
    head = [
        "case",
        "evaluator",
        "worlds",
        "first step s",
        "world-steps/s",
        "in a graph",
        "eval_fk/s",
        "kB a world",
        "height m",
    ]
    print("| " + " | ".join(head) + " |\n" + "| --- " * len(head) + "|", flush=True)
    failed = 0
    for case in CASES:
        for evaluator in options.evaluators if case.name in options.cases else ():
            for worlds in options.worlds:
                row = measure(case, evaluator, worlds, options)
                failed |= len(row) < len(head)
                print("| " + " | ".join(row) + " |", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
