"""Prints one table of this engine and its peers on the same robots: ``python -m tests.benchmarks.run``.

Engines take turns, so that whatever else the machine does hits all of them; the table has medians over the rounds. Before
anything is timed the engines must agree on what happens.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import warp as wp

from examples.common import positive_int

from . import first_step, fk, peers
from .cases import CASES, Case
from .engines import THREADS, Mujoco, NewtonLike, Settled

OUTPUT = Path(__file__).resolve().parents[2] / "output" / "benchmarks.md"
SAME_HEIGHT = 2.0e-3
"""Two engines stand at the same height within this [m]; contacts are soft, and each engine has its own softness."""
SAME_PACE = 0.2
"""Two engines walk equally far within this share; a foot that slips or not is chaos, the mean over the worlds is not."""
QUIET = 0.1
"""A round counts if other processes take less than this share of the machine; if there are too few, the quietest count."""
PATIENCE = 3
"""So many times the rounds that are asked for are tried before that."""
PEER_WORLDS = 64
"""The largest batch of the engines that are slow on a CPU."""


class Table:
    """Rows of a Markdown table, printed as they come."""

    def __init__(self, worlds: list[int]):
        self.head = ["case", "engine", *(f"N = {n}" for n in worlds), "result", "first step cold / warm", "kB a world"]
        self.worlds, self.rows, self.remarks = worlds, [], []
        self._print(self.head)
        self._print(["---"] * len(self.head))

    def _print(self, cells) -> None:
        print("| " + " | ".join(cells) + " |", flush=True)

    def add(
        self, case: str, engine: str, rates: dict[int, str], result: str = "", first: str = "", memory: str = ""
    ) -> None:
        """A row; `rates` by number of worlds."""
        row = [case, engine, *(rates.get(n, "") for n in self.worlds), result, first, memory]
        self.rows.append(row)
        self._print(row)

    def text(self) -> str:
        """The table and the remarks in Markdown."""
        lines = ["| " + " | ".join(cells) + " |" for cells in (self.head, ["---"] * len(self.head), *self.rows)]
        return "\n".join([*lines, "", *self.remarks])

    def remark(self, text: str) -> None:
        """A line below the table."""
        self.remarks.append(f"* {text}")


def take_turns(engines, worlds: int, rounds: int, seconds: float) -> np.ndarray:
    """World-steps per second ``[engine, round]`` of engines that take turns in bursts of a length."""
    counts = []
    for engine in engines:
        engine.prepare(worlds)
        engine.burst(1)
        once = engine.burst(2) / 2
        counts.append(int(np.clip(seconds / once, 2, 20_000)))
    rates, disturbed = [], []
    for _ in range(PATIENCE * rounds):
        foreign = Foreign()
        rates.append([worlds * n / engine.burst(n) for n, engine in zip(counts, engines, strict=True)])
        disturbed.append(foreign.share())
        if sum(share < QUIET for share in disturbed) == rounds:
            break
    quietest = np.argsort(disturbed, kind="stable")[:rounds]
    return np.array(rates)[quietest].T


class Foreign:
    """What share of the machine other processes take from now on."""

    def __init__(self):
        self.before = self._read()

    def _read(self) -> tuple[float, float, float]:
        own, tick = sum(os.times()[:4]), os.sysconf("SC_CLK_TCK")
        try:
            user, nice, system = (int(x) / tick for x in Path("/proc/stat").read_text().split()[1:4])
        except OSError:
            return time.perf_counter(), own, own
        return time.perf_counter(), user + nice + system, own

    def share(self) -> float:
        """Between 0 and 1."""
        wall, everybody, own = (b - a for a, b in zip(self.before, self._read(), strict=True))
        return max(0.0, everybody - own) / max(wall * (os.cpu_count() or 1), 1e-9)


def rate_text(rates: np.ndarray, reference: np.ndarray | None) -> str:
    """Median rate, and the median of the ratios to a reference that was measured in the same rounds."""
    text = f"{np.median(rates):,.0f}"
    return text if reference is None else f"{text} ({np.median(rates / reference):.3g} x)"


def disagreement(case: Case, ours: Settled, theirs: Settled) -> str | None:
    """What two engines do not agree on; None where they do."""
    if not (ours.finite and theirs.finite):
        return f"finite: {ours.finite}, {theirs.finite}"
    apart = abs(ours.heights.mean() - theirs.heights.mean())
    if case.feet is not None:
        if apart > SAME_HEIGHT:
            return f"base heights {ours.heights.mean():.4f} m and {theirs.heights.mean():.4f} m"
        if not (ours.touching == case.feet).all() or not (theirs.touching == case.feet).all():
            return f"shapes on the ground: {ours.touching.mean():.2f} and {theirs.touching.mean():.2f}, not {case.feet}"
        # at rest the ground carries the weight; what is left of the settling is within a part in fifty
        if np.abs(ours.force - 1.0).max() > 0.02 or np.abs(theirs.force - 1.0).max() > 0.02:
            return f"ground forces over the weight: {ours.force.min():.3f}, {theirs.force.min():.3f}"
        return None
    way = ours.distance.mean(), theirs.distance.mean()
    if abs(way[0] - way[1]) > SAME_PACE * abs(way[1]) or way[1] < 0.1:
        return f"distances walked: {way[0]:.2f} m and {way[1]:.2f} m"
    return (
        None
        if apart < 5.0 * SAME_HEIGHT
        else f"base heights {ours.heights.mean():.4f} m and {theirs.heights.mean():.4f} m"
    )


def describe(case: Case, result: Settled) -> str:
    """What a case came to, for the table."""
    if case.feet is None:
        return f"walked {result.distance.mean():.2f} m, {result.touching.mean():.1f} feet down"
    return f"z {result.heights.mean():.4f} m, {result.touching.mean():.0f} feet down"


def engine_rows(case: Case, table: Table, options, ratios: dict) -> Mujoco | None:
    """This engine and MuJoCo on one case; the MuJoCo engine if they agree."""
    general, special = NewtonLike(case, "general"), NewtonLike(case, "specialised")
    ours, same = general.settle(), special.settle()
    rollout = Mujoco(case, general.model)
    theirs = rollout.settle()
    loop = Mujoco(case, general.model, loop=True)
    loop.rest, loop.warmstart = rollout.rest, rollout.warmstart
    for other, results in ((same, "specialised"), (theirs, "mujoco")):
        wrong = disagreement(case, ours, other)
        if wrong:
            table.add(case.title, results, {}, f"not measured, it does not agree with the general kernel: {wrong}")
            return None
    texts = {engine: {} for engine in (general, special, rollout, loop)}
    for worlds in options.worlds:
        engines = [general, special, rollout, *([loop] if worlds == 1 else [])]
        rates = take_turns(engines, worlds, options.rounds, options.seconds)
        for engine, rate in zip(engines, rates, strict=True):
            texts[engine][worlds] = rate_text(rate, rates[2] if engine in (general, special) else None)
        for name, i in (("general", 0), ("specialised", 1)):
            ratios[case.name, name, worlds] = float(np.median(rates[i] / rates[2]))
        for engine in engines:
            if not np.isfinite(engine.heights()).all():
                table.remark(f"{case.title}, {engine.name}: not finite after the measurement")
    for engine, evaluator, result in ((general, "general", ours), (special, "specialised", same)):
        first, memory = first_texts(case, evaluator, options, table, ratios)
        table.add(case.title, engine.name, texts[engine], describe(case, result), first, memory)
    table.add(case.title, rollout.name, texts[rollout], describe(case, theirs))
    if texts[loop]:
        table.add(case.title, loop.name, texts[loop])
    return rollout


def first_texts(case: Case, evaluator: str, options, table: Table, ratios: dict) -> tuple[str, str]:
    """Seconds to the first step and memory; robots share what they share."""
    if options.no_first_step:
        return "", ""
    # two motions of one robot run the same program, and the general kernel is the same for all
    if case.name == "trot" or (evaluator == "general" and case.name != "stand"):
        return "as standing", "as standing" if case.name == "trot" else ""
    try:
        cold, warm = first_step.cold_and_warm(case.name, evaluator)
    except Exception as error:
        return f"not measured: {error}", ""
    ratios[case.name, evaluator, "first"] = cold["first"], warm["first"]
    ratios[case.name, evaluator, "memory"] = warm["arrays"]
    return (
        f"{cold['first']:.1f} s / {warm['first']:.1f} s",
        f"{1e-3 * warm['arrays']:.1f}, process {1e-3 * warm['resident']:.0f}",
    )


def peer_rows(case: Case, table: Table, options, rollout: Mujoco) -> None:
    """Newton and MuJoCo Warp on one case, where they are installed."""
    makers = {
        "newton SolverXPBD": lambda: peers.Newton(case, "SolverXPBD"),
        "newton SolverFeatherstone": lambda: peers.Newton(case, "SolverFeatherstone"),
        "mujoco_warp": lambda: peers.MujocoWarp(case, rollout),
    }
    for name, make in makers.items():
        try:
            engine = make()
            engine.prepare(peers.SETTLED_WORLDS)
            engine.burst(case.steps_to_settle)
            heights = engine.heights()
            result = f"z {heights.mean():.4f} m" if np.isfinite(heights).all() else "unstable at this time step: NaN"
            if heights.min() < 0.5 * rollout.start[:, 2].mean():
                result = f"fell: z {heights.mean():.2f} m"
            texts = {}
            for worlds in options.worlds:
                if worlds <= PEER_WORLDS:
                    rates = take_turns([engine], worlds, min(3, options.rounds), options.seconds)
                    texts[worlds] = rate_text(rates[0], None)
            table.add(case.title, engine.name, texts, result)
        except ImportError as error:
            table.add(case.title, name, {}, f"not measured: {error}")
        except Exception as error:
            table.add(case.title, name, {}, f"not measured: {type(error).__name__}: {str(error).splitlines()[0][:120]}")


def fk_rows(case: Case, table: Table, options, ratios: dict) -> None:
    """Forward kinematics on one case."""
    engines = fk.pair(case)
    texts, result = [{} for _ in engines], "newton is not installed"
    for worlds in options.worlds:
        rates = take_turns(engines, worlds, options.rounds, 0.5 * options.seconds)
        if len(engines) == 2:
            # float32 through chains of a metre or two
            error = np.abs(engines[0].results() - engines[1].results()).max()
            result = f"largest difference {error:.0e}"
            ratios[case.name, "fk", worlds] = float(np.median(rates[0] / rates[1]))
            if not error < 1e-3:
                table.add(case.title, "eval_fk", {}, f"not measured, newton differs by {error:.1e}")
                return
        for e, rate in enumerate(rates):
            texts[e][worlds] = rate_text(rate, rates[1] if e == 0 and len(engines) == 2 else None)
    for engine, text in zip(engines, texts, strict=True):
        table.add(case.title, engine.name, text, result)


def targets(ratios: dict, worlds: int = 4096) -> list[str]:
    """What was to be seen with so many worlds, and what was seen; nothing on what was not measured."""
    lines = []

    def line(what, value, target, more=True):
        if value is not None:
            met = value >= target if more else value <= target
            lines.append(
                f"{what}: {value:.3g}, target {'at least' if more else 'at most'} {target}: {'met' if met else 'MISSED'}"
            )

    for name in ("design", "stand"):
        line(f"{name}, general, x MuJoCo at N = {worlds}", ratios.get((name, "general", worlds)), 8)
        line(f"{name}, specialised, x MuJoCo at N = {worlds}", ratios.get((name, "specialised", worlds)), 20)
    line(f"eval_fk, x newton at N = {worlds}", ratios.get(("stand", "fk", worlds)), 15)
    for key, value in ratios.items():
        if key[2] == "first":
            line(f"{key[0]}, {key[1]}, first step cold [s]", value[0], 30, more=False)
            line(f"{key[0]}, {key[1]}, first step warm [s]", value[1], 5, more=False)
        if key[2] == "memory":
            line(f"{key[0]}, {key[1]}, arrays of a world [kB]", 1e-3 * value, 40, more=False)
    return lines


def machine() -> str:
    """What all this ran on."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    names = []
    for name in ("newton-like", "warp-lang", "mujoco", "newton", "mujoco-warp", "numpy"):
        try:
            names.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            names.append(f"{name} absent")
    return f"{model}, {THREADS} cores; {', '.join(names)}; {time.strftime('%Y-%m-%d %H:%M')}"


def main(arguments: list[str] | None = None) -> None:
    """Runs the benchmarks.

    Args:
        arguments: command line; None: that of the process.
    """
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.run", description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=names, default=names)
    parser.add_argument("--worlds", nargs="+", type=positive_int, default=[1, 64, 1024, 4096])
    parser.add_argument("--rounds", type=positive_int, default=5, help="of bursts, engine after engine")
    parser.add_argument("--seconds", type=float, default=0.12, help="length of a burst")
    parser.add_argument("--no-peers", action="store_true", help="leave newton and mujoco_warp out")
    parser.add_argument("--no-first-step", action="store_true", help="leave out what starts further processes")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the Markdown file to write")
    options = parser.parse_args(arguments)
    if not options.seconds > 0.0:
        parser.error(f"--seconds {options.seconds:g} must be above 0")
    try:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.touch()
    except OSError as error:
        parser.error(f"--output {options.output}: cannot write there ({error.strerror})")
    wp.config.log_level = wp.LOG_ERROR
    begin, ratios = time.perf_counter(), {}
    where = machine()
    print(where)
    print(
        "World-steps per second (in brackets: times mujoco.rollout, for eval_fk times newton); medians of interleaved bursts."
    )
    table = Table(options.worlds)
    for case in CASES:
        if case.name in options.cases:
            rollout = engine_rows(case, table, options, ratios)
            if rollout is not None and not options.no_peers:
                peer_rows(case, table, options, rollout)
    for case in CASES:
        if case.name in options.cases and case.name in ("stand", "humanoid"):
            fk_rows(case, table, options, ratios)
    for line in targets(ratios):
        table.remark(line)
        print(line)
    taken = f"{time.perf_counter() - begin:.0f} s"
    print(taken)
    options.output.write_text(
        f"{where}; {' '.join(sys.argv[1:]) or 'all options at their defaults'}; {taken}\n\n{table.text()}\n"
    )


if __name__ == "__main__":
    main()
