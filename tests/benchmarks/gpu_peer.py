"""Steps on a GPU, this engine and MuJoCo Warp: ``python -m tests.benchmarks.gpu_peer [SCENE ...] [--device cuda:0]``.

The scenes are those of `bench_contact`, and robots of `cases` (``stand``, ``humanoid`` ...). Each world settles in this engine from its own
start. MuJoCo Warp gets the states of the first worlds, repeated, and the model that the tests hand to MuJoCo in C, with elliptic cones, its
Newton solver and its defaults otherwise. Before anything is timed, both engines step on, and the mean heights of bodies are compared.
Each engine replays a graph of ten steps; the engines take turns, and medians are printed. A scene that only starts (``falling``)
is reset before each burst, outside of the time that counts. It needs ``mujoco-warp`` (the extra ``peers``), and runs on a CPU too.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback

import mujoco
import numpy as np
import warp as wp

import newton_like as nl
from newton_like.solvers import SolverFeatherstone

from ..support.mujoco_bridge import MujocoBridge
from .bench_gpu import GRAPH, alone
from .cases import CASES
from .contact_scenes import RNG, SCENES, Scene

KEPT = 64
"""Settled worlds that MuJoCo Warp gets."""
SPARE = 1.5
"""Capacity of MuJoCo Warp for contacts and rows of constraints, over the most that MuJoCo finds in the kept worlds."""
LEAST = 16, 64
"""The least capacity of a world for contacts and rows."""


def case_scene(case) -> Scene:
    """A robot of `cases` that stands on a plane, as a scene."""

    def spread(rng, q, qd):
        q[2] += rng.uniform(0.0, 0.01)
        q[7:] += rng.normal(0.0, 0.02, len(q) - 7)

    def world():
        return case.robot(nl)

    return Scene(case.name, case.name, world, case.dt, case.steps_to_settle * case.dt, spread, between_bodies=False)


def scenes() -> dict[str, Scene]:
    """Scenes by name."""
    found = {case.name: case_scene(case) for case in CASES if case.targets is None}
    return found | {scene.name: scene for scene in SCENES if scene.name != "heap"}


class Ours:
    """`SolverFeatherstone` with its defaults."""

    def __init__(self, scene: Scene, worlds: int, device, evaluator: str | None):
        builder = nl.ModelBuilder()
        if scene.ground:
            builder.add_ground_plane()
        builder.replicate(scene.world(), worlds)
        self.scene, self.worlds, self.device, self.model = scene, worlds, device, builder.finalize(device)
        options = {"evaluator": evaluator} if evaluator else {}
        self.solver = SolverFeatherstone(self.model, unsupported_contacts="ignore", **options)
        self.state, self.control = self.model.state(), self.model.control()
        rng = np.random.default_rng(RNG)
        q = self.model.joint_q.numpy().reshape(worlds, -1).astype(np.float64)
        qd = self.model.joint_qd.numpy().reshape(worlds, -1).astype(np.float64)
        for one, speed in zip(q[:KEPT], qd[:KEPT], strict=True):
            scene.spread(rng, one, speed)
        pick = np.arange(worlds) % KEPT
        self.solver.reset(self.state, None, q[pick].ravel(), qd[pick].ravel())
        self.run(round(scene.settle / scene.dt))
        self.q, self.qd = (
            a.numpy().reshape(worlds, -1)[:KEPT].astype(np.float64) for a in (self.state.joint_q, self.state.joint_qd)
        )
        self.run(1)
        self.graph = captured(device, lambda: self.run(GRAPH))
        self.start()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.solver.step(self.state, self.state, self.control, None, self.scene.dt)

    def start(self) -> None:
        """Back to the settled states."""
        pick = np.arange(self.worlds) % KEPT
        self.solver.reset(self.state, None, self.q[pick].ravel(), self.qd[pick].ravel())

    def bodies(self) -> np.ndarray:
        """Places of bodies of the kept worlds ``[world, body, 3]``."""
        return self.state.body_q.numpy().reshape(self.worlds, -1, 7)[:KEPT, :, :3]


class Theirs:
    """MuJoCo Warp."""

    def __init__(self, scene: Scene, ours: Ours):
        import mujoco_warp

        self.peer, self.scene, self.worlds, self.device = mujoco_warp, scene, ours.worlds, ours.device
        one = scene.model(1)
        bridge = MujocoBridge(
            one, contacts=True, limits=True, friction=True, drives=True, between_bodies=scene.between_bodies
        )
        self.bridge, model = bridge, bridge.model
        model.opt.timestep = scene.dt
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        target, dofs = one.joint_target_q.numpy().astype(np.float64), bridge.tree.dof_count
        data, qpos, qvel, most = mujoco.MjData(model), [], [], np.array(LEAST)
        control = bridge.ctrl(target, np.zeros(dofs), np.zeros(dofs)) if model.nu else np.zeros(0)
        for q, qd in zip(ours.q, ours.qd, strict=True):
            data.qpos[:], data.qvel[:], data.ctrl[:] = bridge.qpos(q), bridge.qvel(q, qd), control
            qpos.append(data.qpos.copy())
            qvel.append(data.qvel.copy())
            steps = 1 if scene.window is None else scene.window
            for _ in range(steps):
                mujoco.mj_step(model, data)
                most = np.maximum(most, [data.ncon, data.nefc])
        contacts, rows = (int(SPARE * x) for x in most)
        pick = np.arange(self.worlds) % KEPT
        with wp.ScopedDevice(self.device):
            self.model = mujoco_warp.put_model(model)
            self.data = mujoco_warp.make_data(model, nworld=self.worlds, nconmax=contacts, njmax=rows)
            self.first = wp.array(np.array(qpos)[pick], dtype=float), wp.array(np.array(qvel)[pick], dtype=float)
            if model.nu:
                self.data.ctrl.assign(np.tile(control, (self.worlds, 1)))
            self.start()
            self.run(1)
            self.graph = captured(self.device, lambda: self.run(GRAPH))
            self.start()

    def run(self, steps: int) -> None:
        with wp.ScopedDevice(self.device):
            for _ in range(steps):
                self.peer.step(self.model, self.data)

    def start(self) -> None:
        """Back to the settled states."""
        wp.copy(self.data.qpos, self.first[0])
        wp.copy(self.data.qvel, self.first[1])
        self.data.qacc_warmstart.zero_()

    def bodies(self) -> np.ndarray:
        """Places of the origins of bodies of the kept worlds ``[world, body, 3]``."""
        found, bridge = [], self.bridge
        for qpos in self.data.qpos.numpy()[:KEPT]:
            bridge.data.qpos[:] = qpos
            found.append(bridge.q(bridge.data.qpos))
        model = self.scene.model(len(found))
        state = model.state()
        state.joint_q.assign(np.array(found).ravel())
        nl.eval_fk(model, state.joint_q, state.joint_qd, state)
        return state.body_q.numpy().reshape(len(found), -1, 7)[:, :, :3]


def captured(device, call):
    """A function that replays a call."""
    if not wp.get_device(device).is_cuda:
        return call
    with wp.ScopedCapture(device) as capture:
        call()
    return lambda: wp.capture_launch(capture.graph)


def burst(engine, replays: int) -> float:
    """Seconds of a step."""
    if engine.scene.window is not None:
        engine.start()
        replays = engine.scene.window // GRAPH
    wp.synchronize_device(engine.device)
    begin = time.perf_counter()
    for _ in range(replays):
        engine.graph()
    wp.synchronize_device(engine.device)
    return (time.perf_counter() - begin) / (replays * GRAPH)


def measure(scene: Scene, worlds: int, options) -> bool:
    """Prints the row of a scene; whether the engines agree."""
    begin = time.perf_counter()
    ours = Ours(scene, KEPT, options.device, options.evaluator)
    first = time.perf_counter() - begin
    if not options.alone:
        Theirs(scene, ours)  # compiles
    with alone(options.lock):
        ours = Ours(scene, worlds, options.device, options.evaluator)
        theirs = None if options.alone else Theirs(scene, ours)
        engines = [ours] if theirs is None else [ours, theirs]
        for engine in engines:
            burst(engine, 4)
        apart, finite = np.nan, bool(np.isfinite(ours.bodies()).all())
        if theirs is not None:
            here, there = (engine.bodies()[:, :, 2].mean(axis=0) for engine in engines)
            apart = np.abs(here - there).max()
            finite &= bool(np.isfinite(there).all())
        times = {engine: [] for engine in engines}
        for _ in range(options.rounds):
            for engine in engines:
                times[engine].append(burst(engine, options.replays))
    seconds = [float(np.median(times[engine])) for engine in engines]
    cells = [scene.title, str(worlds), f"{first:.1f}", f"{1e3 * seconds[0]:.3f}", f"{worlds / seconds[0] / 1e6:.3g}"]
    if theirs is not None:
        cells += [f"{1e3 * seconds[1]:.3f}", f"{seconds[1] / seconds[0]:.1f}", f"{1e3 * apart:.1f}"]
    good = finite and not apart > scene.same
    print("| " + " | ".join([*cells, "" if good else "states differ"]) + " |", flush=True)
    return good


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints; 1 if a scene fails."""
    known = scenes()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=", ".join(known))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--worlds", nargs="+", type=int, default=[4096, 32768])
    parser.add_argument("--evaluator", choices=("general", "specialised"), help="default: the engine's own choice")
    parser.add_argument("--alone", action="store_true", help="without MuJoCo Warp")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--replays", type=int, default=5, help="graphs of ten steps in a burst")
    parser.add_argument("--lock", help="file; times are taken while this process holds its lock")
    options = parser.parse_args(arguments)
    wp.config.log_level = wp.LOG_ERROR
    head = ["scene", "worlds", "compiled and settled [s]", "newton_like [ms]", "million world-steps/s"]
    if not options.alone:
        head += ["MuJoCo Warp [ms]", "ratio", "difference of mean heights [mm]"]
    print("| " + " | ".join([*head, "remarks"]) + " |\n" + "| --- " * (len(head) + 1) + "|", flush=True)
    failed = 0
    for name in options.scenes or known:
        for worlds in options.worlds:
            try:
                failed |= not measure(known[name], worlds, options)
            except Exception:
                print(f"| {name} | {worlds} | fails |", flush=True)
                traceback.print_exc()
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
