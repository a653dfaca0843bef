"""Steps on a GPU compared with those on the CPU: ``python -m tests.benchmarks.compare_devices [SCENE ...] [--device cuda:0]``.

A scene is one of those below, or ``general:FILE.xml``, ``specialised:FILE.xml`` or ``xpbd:FILE.xml``. Each scene starts from the same
states on both devices. For a number of steps the largest difference of coordinates over all worlds is printed, then the time of a step of
many worlds on the GPU in single precision, called one by one and as a graph. Scenes in which bodies hit each other magnify rounding: the
difference after the first step is printed as well.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings

import numpy as np
import warp as wp

import newton_like as nl
from newton_like.solvers import SolverFeatherstone, SolverXPBD

from . import contact_scenes
from .bench_gpu import GRAPH, alone, median_seconds

REAL = {"float32": wp.float32, "float64": wp.float64}


class Run:
    """A scene on one device."""

    def __init__(self, name: str, device, worlds: int, dtype, seed: int = 1):
        self.device = wp.get_device(device)
        kind = name.partition(":")[0]
        path = name.partition(":")[2]
        if path.endswith(".xml"):
            make, self.options, self.dt, spread = (lambda: _mjcf(path)), (), 0.002, _bend
        else:
            make, self.options, self.dt, spread = SCENES[name]
        builder = make()
        scene = nl.ModelBuilder()
        if "ground" in self.options:
            scene.add_ground_plane()
        scene.replicate(builder, worlds)
        self.model = scene.finalize(self.device, dtype=dtype)
        self.state, self.control = self.model.state(), self.model.control()
        q = self.model.joint_q.numpy().reshape(worlds, -1).astype(np.float64)
        qd = self.model.joint_qd.numpy().reshape(worlds, -1).astype(np.float64)
        for i in range(worlds):
            spread(np.random.default_rng(seed + i), q[i], qd[i])
        self.state.joint_q.assign(q.ravel())
        self.state.joint_qd.assign(qd.ravel())
        nl.eval_fk(self.model, self.state.joint_q, self.state.joint_qd, self.state)
        self.worlds = worlds
        if kind == "xpbd":
            self.solver = SolverXPBD(self.model)
        else:
            evaluator = "specialised" if kind == "specialised" else "general"
            self.solver = SolverFeatherstone(self.model, evaluator=evaluator, unsupported_contacts="ignore")

    def step(self) -> None:
        """One step, in place."""
        self.solver.step(self.state, self.state, self.control, None, self.dt)

    def fall(self, steps: int, others: list) -> None:
        """Steps, and gives the state to the same scene on other devices."""
        for _ in range(steps):
            self.step()
        for other in others:
            for name in ("joint_q", "joint_qd", "body_q", "body_qd"):
                getattr(other.state, name).assign(getattr(self.state, name).numpy())

    def contacts(self) -> int:
        """Contacts of the last step of `SolverXPBD`, or of the state."""
        found = getattr(self.solver, "_found", None) or self.model.collide(self.state)
        return int(found.rigid_contact_count.numpy()[0])

    def poses(self) -> np.ndarray:
        """Poses of bodies, ``[worlds, n]``."""
        return self.state.body_q.numpy().reshape(self.worlds, -1)

    def velocities(self) -> np.ndarray:
        """Velocities of the joints, ``[worlds, n]``."""
        return self.state.joint_qd.numpy().reshape(self.worlds, -1)


def _bend(rng, q, qd):
    # a free root has one coordinate more than velocities
    q[:] = q + rng.normal(0.0, 0.02, len(q)) * (np.arange(len(q)) >= (7 if len(q) > len(qd) else 0))
    qd[:] = rng.normal(0.0, 0.1, len(qd))


def _mjcf(text: str):
    builder = nl.ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder.add_mjcf(text)
    return builder


def _legs():
    from tests.solvers.featherstone.test_loops import QUADRUPED

    return _mjcf(QUADRUPED)


def _hand():
    from .bench_mechanisms import hand

    return _mjcf(hand())


def _heap():
    return contact_scenes.heap(60)


FALL = 100
"""Steps on the CPU in which the bodies of a heap fall onto each other."""

SCENES: dict[str, tuple] = {}
"""Names, ``kind:scene``: a function that returns the builder of a world, words (``ground``, and ``falls`` if bodies fall first), time step
[s], function that spreads the starts."""
for _scene in contact_scenes.SCENES:
    if _scene.name != "heap":
        SCENES[f"general:{_scene.name}"] = (
            _scene.world,
            ("ground",) if _scene.ground else (),
            _scene.dt,
            _scene.spread,
        )
SCENES["specialised:lying"] = SCENES["general:lying"]
SCENES["general:legs"] = (_legs, (), 0.002, lambda rng, q, qd: None)
SCENES["general:hand"] = (_hand, (), 0.002, _bend)
SCENES["xpbd:tower"] = SCENES["general:tower"]
SCENES["xpbd:wall"] = SCENES["general:wall"]
SCENES["xpbd:heap"] = (_heap, ("ground", "falls"), 1.0 / 240.0, lambda rng, q, qd: None)
SCENES["xpbd:legs"] = SCENES["general:legs"]


def compare(name: str, options) -> bool:
    """Prints the row of a scene; whether the devices agree."""
    begin = time.perf_counter()
    runs = [Run(name, device, options.worlds, REAL[options.dtype]) for device in ("cpu", options.device)]
    differences = []
    first = None
    if "falls" in runs[0].options:
        runs[0].fall(FALL, runs[1:])
    for _ in range(options.steps):
        for run in runs:
            run.step()
        a, b = (run.poses().astype(np.float64) for run in runs)
        differences.append(np.abs(a - b).max() if np.isfinite(b).all() and np.isfinite(a).all() else np.inf)
        first = first or time.perf_counter() - begin
    speed = np.abs(runs[0].velocities()).max()
    print(
        f"| {name} | {options.dtype} | {runs[0].contacts()} | {differences[0]:.1e} | {max(differences):.1e} | {speed:.3g} | {first:.0f} |",
        flush=True,
    )
    return max(differences) < options.tolerance


def measure(name: str, options) -> None:
    """Prints times of steps of many worlds."""
    for worlds in options.time_worlds:
        run = Run(name, options.device, worlds, wp.float32)
        run.step()
        with alone(options.lock):
            for _ in range(options.settle):
                run.step()
            one = median_seconds(run.step, run.device, 3, 0.2)
            graph = None
            if run.device.is_cuda and not name.startswith("xpbd"):
                with wp.ScopedCapture(run.device) as capture:
                    for _ in range(GRAPH):
                        run.step()
                graph = median_seconds(lambda c=capture: wp.capture_launch(c.graph), run.device, 3, 0.2) / GRAPH
        finite = np.isfinite(run.poses()).all()
        shown = f"{1e3 * graph:.3f}" if graph else "-"
        rate = worlds / min(one, graph or one)
        print(
            f"| {name} | {worlds} worlds | {1e3 * one:.3f} ms | {shown} ms in a graph | {rate:.3g} world-steps/s | finite: {finite} |",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> int:
    """Compares and prints; 1 if devices disagree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=", ".join(SCENES))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--worlds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20, help="steps that are compared; 0: none")
    parser.add_argument("--dtype", choices=REAL, default="float64")
    parser.add_argument("--tolerance", type=float, default=1.0e-6, help="largest difference of poses [m]")
    parser.add_argument("--time-worlds", nargs="*", type=int, default=[], help="numbers of worlds to time")
    parser.add_argument("--settle", type=int, default=100, help="steps before times are taken")
    parser.add_argument("--lock", help="file; times are taken while this process holds its lock")
    options = parser.parse_args(arguments)
    wp.config.log_level = wp.LOG_ERROR
    failed = 0
    if options.steps:
        print(
            "| scene | numbers | contacts | difference of poses after a step | after all | fastest joint | until the first step [s] |"
        )
        print("| --- " * 7 + "|")
    for name in options.scenes or SCENES:
        try:
            if options.steps:
                failed |= not compare(name, options)
            measure(name, options)
        except Exception:
            print(f"| {name} | fails", flush=True)
            traceback.print_exc()
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
