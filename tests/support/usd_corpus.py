"""Damaged USD stages by the thousand: ``python -m tests.support.usd_corpus --count 5000 --seed 1``.

The stages of ``usd_damage`` are handed to the importer in a process of their own, each with a time limit. A case ends with a
model, with one of the errors that the importer documents, or it is a defect: another exception, a hang, a crash.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import selectors
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from newton_like.model.builder.builder import ModelBuilder
from newton_like.model.columns import COLUMNS

from .paths import ROOT
from .usd_damage import damaged, sources

MEMORY = 6 * 2**30
"""Limit of the address space of the process [bytes]. A file that exceeds it has a false size that the importer did not reject."""

DOCUMENTED = (ValueError, KeyError, TypeError, FileNotFoundError, OSError)


def outcome(source: str | bytes, folder: Path) -> tuple[str, str]:
    """``model``, ``error``, ``defect`` or ``same``, and the message."""
    builder = ModelBuilder()
    if isinstance(source, bytes):
        path = folder / f"case{'.usdz' if source[:2] == b'PK' else '.usdc'}"
        path.unlink(missing_ok=True)
        path.write_bytes(source)
        source = path
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            builder.add_usd(source)
            builder.finalize(device="cpu")
    except DOCUMENTED as error:
        return ("error", f"{type(error).__name__}: {error}") if str(error) else ("defect", f"{error!r} says nothing")
    except BaseException:
        return "defect", traceback.format_exc()
    words = " | ".join(str(w.message) for w in caught)
    key = repr([getattr(builder, column.name) for column in COLUMNS if column.name != "shape_source"])
    return "model", f"{hash((key, builder.gravity, words))} {words}"


def work(seed: int, first: int, last: int) -> None:
    """Runs the cases in the separate process, and prints a line before and after each case."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    good = {outcome(text, Path())[1].split(" ")[0] for text in sources()[0]}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, last):
            source, what, _ = damaged(seed, number)
            print(json.dumps([number, "begin", what]), flush=True)
            begin = time.perf_counter()
            kind, words = outcome(source, Path(folder))
            if kind == "model" and words.split(" ")[0] in good:
                kind = "same"
            print(json.dumps([number, kind, words[-3000:], round(time.perf_counter() - begin, 3)]), flush=True)


def run(seed: int, count: int, limit: float = 60.0, first: int = 0) -> list[dict]:
    """Runs cases and returns their outcomes. After a hang or a crash a new process continues with the next case.

    Args:
        seed: seed of the damage.
        count: number of cases.
        limit: time limit of a case [s].
        first: number of the first case.
    """
    cases: list[dict] = []
    number, last = first, first + count
    while number < last:
        command = [sys.executable, "-m", "tests.support.usd_corpus", "--work", str(number), str(last)]
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                [*command, "--seed", str(seed)], cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, env=os.environ
            ) as process,
        ):
            lines = _lines(process, limit, start=600.0)
            case = None
            for line in lines:
                at, kind, words, *seconds = json.loads(line)
                if kind == "begin":
                    case = {"number": at, "damage": words, "end": "hang", "words": "", "seconds": limit}
                    cases.append(case)
                else:
                    case.update(end=kind, words=words, seconds=seconds[0])
                    number = at + 1
            hung = process.poll() is None
            process.kill()
            code = process.wait()
            if number < last:
                if case is None:
                    errors.seek(0)
                    raise RuntimeError(f"the process ended before its first case: {errors.read()[-3000:].decode()}")
                if not hung:
                    errors.seek(0)
                    case.update(
                        end="crash", words=f"exit code {code}: {errors.read()[-2000:].decode(errors='replace')}"
                    )
                number = case["number"] + 1
    return cases


def _lines(process, limit: float, start: float):
    """Lines of output of a process, until it ends or a time limit without output is exceeded."""
    watch = selectors.DefaultSelector()
    watch.register(process.stdout, selectors.EVENT_READ)
    rest, patience = b"", start
    while watch.select(patience):
        piece = os.read(process.stdout.fileno(), 2**16)
        if not piece:
            process.wait()
            return
        patience = limit
        *complete, rest = (rest + piece).split(b"\n")
        yield from (line for line in complete if line.startswith(b"["))  # Warp prints its banner to the same stream


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--show", nargs="*", default=["defect", "hang", "crash"])
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments.seed, *arguments.work)
        return
    cases = run(arguments.seed, arguments.count, first=arguments.first)
    for case in cases:
        if case["end"] in arguments.show:
            print(
                f"{case['number']} {case['end']} after {case['seconds']} s: {case['damage'][:300]}\n    {case['words'][:3000]}"
            )
    slowest = max(cases, key=lambda case: case["seconds"])
    print(dict(Counter(case["end"] for case in cases)), f"slowest {slowest['seconds']} s (case {slowest['number']})")


if __name__ == "__main__":
    main()
