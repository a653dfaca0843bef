"""How long the first step takes in a fresh process, and how much memory worlds need.

``python -m tests.benchmarks.first_step CASE EVALUATOR`` prints one line of JSON; the kernel cache is that of WARP_CACHE_PATH.
"""

from __future__ import annotations

import time

BEGIN = time.perf_counter()

import contextlib  # noqa: E402
import ctypes  # noqa: E402
import gc  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
WORLDS = 4096


def array_bytes(*roots) -> int:
    """Bytes of all Warp arrays that are reachable from some objects through attributes, lists and dicts."""
    import warp as wp

    seen, found, stack = set(), {}, list(roots)
    while stack:
        x = stack.pop()
        if id(x) in seen or isinstance(x, (str, bytes, int, float, type)):
            continue
        seen.add(id(x))
        if isinstance(x, wp.array):
            if x.ptr:
                found[x.ptr] = max(found.get(x.ptr, 0), x.capacity)
        elif isinstance(x, dict):
            stack += x.values()
        elif isinstance(x, (list, tuple, set)):
            stack += x
        elif type(x).__module__.startswith(("newton_like", "warp._src.codegen")) and hasattr(x, "__dict__"):
            stack += vars(x).values()
    return sum(found.values())


def resident() -> int:
    """Bytes of this process that are in memory, after what the allocator kept for later has been given back."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(name: str, evaluator: str) -> dict:
    """Seconds and bytes, in this process."""
    import warp as wp

    wp.config.log_level = wp.LOG_ERROR
    import newton_like
    from newton_like.solvers import SolverFeatherstone

    from .cases import CASES

    imported = time.perf_counter()
    case = {c.name: c for c in CASES}[name]

    def start(worlds):
        begin = time.perf_counter()
        model = case.scene(newton_like, worlds).finalize("cpu")
        built = time.perf_counter()
        solver = SolverFeatherstone(model, evaluator=evaluator, unsupported_contacts="ignore")
        states, control = (model.state(), model.state()), model.control()
        solver.step(states[0], states[1], control, None, case.dt)
        return built - begin, time.perf_counter() - built, (model, solver, states, control)

    build, first, kept = start(8)
    total = time.perf_counter() - BEGIN
    gc.collect()
    before = resident()
    _, _, kept = start(WORLDS)
    for _ in range(3):
        _, solver, states, control = kept
        solver.step(states[1], states[0], control, None, case.dt)
        solver.step(states[0], states[1], control, None, case.dt)
    gc.collect()
    return {
        "import": imported - BEGIN,
        "build": build,
        "first": first,
        "total": total,
        "arrays": array_bytes(*kept) / WORLDS,
        "resident": (resident() - before) / WORLDS,
    }


def in_fresh_process(name: str, evaluator: str, cache: str) -> dict:
    """What `measure` gives in a process with another kernel cache."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.first_step", name, evaluator],
        cwd=ROOT,
        env={**os.environ, "WARP_CACHE_PATH": cache, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    if result.returncode:
        raise RuntimeError(
            result.stderr.strip().splitlines()[-1] if result.stderr.strip() else "it failed without a word"
        )
    return json.loads(result.stdout.strip().splitlines()[-1])


def cold_and_warm(name: str, evaluator: str) -> tuple[dict, dict]:
    """`measure` with an empty kernel cache, and once more."""
    with tempfile.TemporaryDirectory() as cache:
        return in_fresh_process(name, evaluator, cache), in_fresh_process(name, evaluator, cache)


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:3])))
