"""Time of USD output and input against the number of bodies: ``python -m tests.benchmarks.bench_usd``.

Boxes that fly about are written, read, recorded and simulated in place. The last column of each table is the exponent of the
power law between two rows: 1 is linear, 2 would be quadratic. Every result is read back and compared before its time counts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from pxr import Usd, UsdGeom

from newton_like import ModelBuilder
from newton_like.usd import Recorder, Simulation, write

SPREAD = 1.0e-4
"""Largest difference of a position that is read back [m]; boxes are up to some 100 m from the origin."""


def boxes(count: int, worlds: int = 1):
    """A model of ``count`` free boxes, in one scene or in equal worlds."""
    scene = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    side = int(np.ceil(count ** (1.0 / 3.0)))
    for i in range(count // worlds):
        place = np.array([i % side, (i // side) % side, i // side**2], dtype=float)
        body = scene.add_body(xform=(place, (0.0, 0.0, 0.0, 1.0)), label=f"box_{i}")
        scene.add_shape_box(body, hx=0.2, hy=0.2, hz=0.2)
        scene.joint_qd[scene.joint_qd_start[-1]] = 1.0
    if worlds == 1:
        return scene.finalize()
    builder = ModelBuilder()
    builder.replicate(scene, worlds, spacing=(2.0, 2.0, 0.0))
    return builder.finalize()


def timed(function) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def check(path, code: float, paths, poses) -> None:
    """Raises where bodies of a stage are not where they should be."""
    stage = Usd.Stage.Open(str(path))
    cache = UsdGeom.XformCache(Usd.TimeCode(code))
    for body in np.linspace(0, len(paths) - 1, 20).astype(int):
        place = cache.GetLocalToWorldTransform(stage.GetPrimAtPath(paths[body])).ExtractTranslation()
        if np.abs(np.array(place) - poses[body, :3]).max() > SPREAD:
            raise RuntimeError(f"{path}: {paths[body]} is at {place}, not at {poses[body, :3]}")


def measure(count: int, frames: int, folder: Path) -> dict[str, float]:
    """Seconds of each task for a number of bodies."""
    model = boxes(count)
    result, file = {}, folder / f"boxes_{count}.usdc"
    exported = []
    result["write"] = timed(lambda: exported.append(write(model, file)))
    check(file, 0.0, exported[0].bodies, model.body_q.numpy().reshape(-1, 7))
    other = ModelBuilder()
    result["add_usd"] = timed(lambda: other.add_usd(str(file)))
    if other.body_count != count or other.body_label != model.body_label:
        raise RuntimeError(f"{count} bodies were written, {other.body_count} read")
    recorder = Recorder(model, folder / f"motion_{count}.usdc")
    state = model.state()

    def record() -> None:
        q = state.body_q.numpy()
        for frame in range(frames):
            q[:, 2] += 0.01
            state.body_q.assign(q)
            recorder.record(state, frame / 60.0)

    result["record"] = timed(record)
    result["save"] = timed(recorder.save)
    check(recorder.path, frames - 1.0, recorder.body_paths, state.body_q.numpy().reshape(-1, 7))
    made = []
    options = {"evaluator": "general", "unsupported_contacts": "ignore"}
    result["open"] = timed(lambda: made.append(Simulation(str(file), solver=options, substeps=1)))
    result["frames"] = timed(lambda: made[0].step(frames))
    motion = folder / f"simulated_{count}.usdc"
    result["save motion"] = timed(lambda: made[0].save(motion))
    check(motion, float(frames), exported[0].bodies, made[0].state.body_q.numpy().reshape(-1, 7))
    return result


def table(counts: list[int], frames: int) -> str:
    """The measurements as Markdown."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measure(2, 1, Path(folder))  # compiles what there is to compile
        rows = [measure(count, frames, Path(folder)) for count in counts]
    names = list(rows[0])
    lines = [f"| bodies, {frames} frames | {' | '.join(f'{name} [s]' for name in names)} | exponent of the sum |"]
    lines.append("| --- " * (len(names) + 2) + "|")
    for i, (count, row) in enumerate(zip(counts, rows, strict=True)):
        power = ""
        if i:
            power = f"{np.log(sum(row.values()) / sum(rows[i - 1].values())) / np.log(count / counts[i - 1]):.2f}"
        lines.append(f"| {count} | {' | '.join(f'{row[name]:.3f}' for name in names)} | {power} |")
    return "\n".join(lines)


def main(arguments=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bodies", type=int, nargs="+", default=[500, 1000, 2000, 4000, 8000])
    parser.add_argument("--frames", type=int, default=20)
    options = parser.parse_args(arguments)
    print(table(options.bodies, options.frames))


if __name__ == "__main__":
    main()
