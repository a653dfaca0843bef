"""Worlds in which bodies touch, this engine and MuJoCo in C: ``python -m tests.benchmarks.bench_contact``.

Both engines step the same scenes, which `contact_scenes` describes. Before anything is timed the states are checked: finite, without
deep overlaps, at the same heights in both engines, the grasped body still in the hand. A residual stands beside each time: the largest
change of a velocity if the same step is solved to convergence.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field

import mujoco
import mujoco.rollout
import numpy as np
import warp as wp
from scipy.spatial.transform import Rotation

from examples.common import positive_int
from newton_like.solvers import SolverFeatherstone

from ..support.mujoco_bridge import MujocoBridge
from .contact_scenes import RNG, SCENES, Scene
from .run import machine, take_turns

THREADS = 2
START_OVERLAP = 1.0e-3
"""Shapes overlap by less than this at the start [m]; otherwise, the world gets another start."""
DRAWS = 50
"""So many starts are tried for a world."""
SLIP = 5.0e-3
"""A grasped body moves in the hand by no more than this [m]."""
CONVERGED = 2000
"""Sweeps for the solution of a lone robot that the residual compares with."""
REPEATS = 16, 40
"""Iterations of a solution in clusters, and how often the step is solved with the forces of the solution before."""
SAME_SOLUTION = 1.0e-3
"""Two converged solutions of a step differ by less than this [m/s]."""
PROBES = 8
"""States within a window of which residuals and overlaps are computed."""
COLUMNS = (
    "scene", "contacts a world", "newton_like, 1 thread [us]", "2 threads [us]", "MuJoCo, 1 core [us]", "2 cores [us]", "ratio, 1 core",
    "ratio, 2 cores", "residual, 95 % and all of the worlds [m/s]", "deepest overlap (MuJoCo) [mm]", "remarks",
)  # fmt: skip


@dataclass
class Found:
    """What a scene came to.

    Attributes:
        q, qd: coordinates and velocities of the settled worlds ``[world, n]``.
        residual: see the module [m/s]; typical: of 19 worlds out of 20.
        contacts: of a world, as MuJoCo counts them on these states.
        overlap: the deepest one of two shapes, as MuJoCo measures it on these states [m].
        peer_overlap: the deepest one in MuJoCo's own states [m].
        wrong: what does not hold.
        remarks: for the table.
    """

    q: np.ndarray
    qd: np.ndarray
    residual: float = 0.0
    typical: float = 0.0
    contacts: float = 0.0
    overlap: float = 0.0
    peer_overlap: float = 0.0
    wrong: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def clock_of(threads: int):
    """The clock for an engine: with one thread the time of its core, which other processes disturb less; otherwise wall time."""
    return time.thread_time if threads == 1 else time.perf_counter


class Ours:
    """`SolverFeatherstone` with its defaults, on a number of threads."""

    def __init__(self, scene: Scene, threads: int):
        self.scene, self.threads = scene, threads
        self.name = f"newton_like, {threads} threads"

    def build(self, worlds: int, model=None) -> None:
        """Model, state and solver."""
        self.worlds = worlds
        self.model = self.scene.model(worlds) if model is None else model
        self.state = self.model.state()
        options = {"width": 1} if self.scene.most == 1 else {}
        self.solver = SolverFeatherstone(self.model, threads=self.threads, **options)

    def set_state(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Coordinates and velocities ``[n, ...]``, repeated or cut to the number of worlds, without remembered forces."""
        pick = np.arange(self.worlds) % len(q)
        self.solver.reset(self.state, None, q[pick].ravel(), qd[pick].ravel())

    def step(self, steps: int) -> None:
        """A number of steps."""
        for _ in range(steps):
            self.solver.step(self.state, self.state, None, None, self.scene.dt)

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and velocities ``[world, n]``."""
        return tuple(
            a.numpy().reshape(self.worlds, -1).astype(np.float64) for a in (self.state.joint_q, self.state.joint_qd)
        )

    def residual(self) -> np.ndarray:
        """The largest change of the velocity of a body in each world [m/s] if the next step is solved to convergence, and likewise for
        `CONVERGED` iterations in one solution, ``[2, world]``; makes that step."""
        default = self._velocities()
        # in clusters, solutions of few sweeps that start from each other converge where one of many sweeps may not
        repeats = REPEATS if self.scene.between_bodies else (CONVERGED, 1)
        apart = [np.linalg.norm(self._velocities(*way) - default, axis=1) for way in (repeats, (CONVERGED, 1))]
        # the step is made again, so that the next one does not start from forces of these solutions
        self.solver.step(self.state, self.state, None, None, self.scene.dt)
        return np.array(apart).reshape(2, self.worlds, -1).max(axis=2)

    def _velocities(self, iterations: int | None = None, times: int = 1) -> np.ndarray:
        """Velocities of bodies after one step ``[body, 3]`` [m/s], solved several times; None: with the settings of the solver."""
        solver, out = self.solver, self.model.state()
        settings = solver.iterations, solver.tolerance
        if iterations is not None:
            solver.iterations, solver.tolerance = iterations, 0.0
        for _ in range(times):
            solver.step(self.state, out, None, None, self.scene.dt)
        solver.iterations, solver.tolerance = settings
        return out.body_qd.numpy()[:, :3].astype(np.float64)

    def prepare(self, worlds: int) -> None:
        """A batch of settled worlds; `found` holds them."""
        self.build(worlds, self.shared(worlds))
        self.set_state(self.found.q, self.found.qd)
        if self.scene.window is None:
            self.step(16)

    def burst(self, steps: int) -> float:
        """Seconds that some steps take; with a window, the time of so many of its steps, on the average."""
        window = self.scene.window
        if window is not None:
            self.set_state(self.found.q, self.found.qd)
        clock = clock_of(self.threads)
        begin = clock()
        self.step(steps if window is None else window)
        busy = clock() - begin
        return busy if window is None else busy * steps / window


class Theirs:
    """MuJoCo in C: `mj_step` on one core, or `mujoco.rollout` on two."""

    def __init__(self, scene: Scene, bridge: MujocoBridge, target: np.ndarray, threads: int, cone: str):
        """`target`: coordinates that the drives hold."""
        self.scene, self.threads, self.bridge, self.target = scene, threads, bridge, target
        self.name = "mujoco, mj_step" if threads == 1 else f"mujoco.rollout, {threads} threads"
        self.model = bridge.model
        self.model.opt.timestep = scene.dt
        self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        self.model.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone.upper()}")
        dofs = bridge.tree.dof_count
        self.control = bridge.ctrl(target, np.zeros(dofs), np.zeros(dofs)) if self.model.nu else np.zeros(0)
        self.pool = mujoco.rollout.Rollout(nthread=threads) if threads > 1 else None
        self._spec = mujoco.mjtState.mjSTATE_FULLPHYSICS

    def start(self, q: np.ndarray, qd: np.ndarray) -> None:
        """States ``[world, n]``, each with its own `MjData`."""
        self.data = [mujoco.MjData(self.model) for _ in q]
        for data, one, speed in zip(self.data, q, qd, strict=True):
            data.qpos[:], data.qvel[:] = self.bridge.qpos(one), self.bridge.qvel(one, speed)
            data.ctrl[:] = self.control
        self._keep()

    def _keep(self) -> None:
        self.state = np.zeros((len(self.data), mujoco.mj_stateSize(self.model, self._spec)))
        self.warm = np.array([data.qacc_warmstart for data in self.data])
        for data, state in zip(self.data, self.state, strict=True):
            mujoco.mj_getState(self.model, data, state, self._spec)

    def step(self, steps: int) -> None:
        """A number of steps of all worlds, one world after the other."""
        for data in self.data:
            mujoco.mj_step(self.model, data, steps)

    def read(self) -> np.ndarray:
        """Coordinates of this engine ``[world, n]``."""
        return np.array([self.bridge.q(data.qpos) for data in self.data])

    def prepare(self, worlds: int) -> None:
        """The settled worlds, and no more: a world costs the same in any number."""
        self.worlds = worlds
        self.start(*self.rest)
        if self.scene.window is None:
            self.step(2)
            self._keep()

    def burst(self, steps: int) -> float:
        """Seconds that some steps take, for as many worlds as this engine has."""
        window, count = self.scene.window, len(self.data)
        share = self.worlds / count if window is None else self.worlds / count * steps / window
        steps = steps if window is None else window
        if self.threads > 1:
            control = np.broadcast_to(self.control, (count, steps, self.model.nu)).copy() if self.model.nu else None
            data = [self.data[0], self.data[1 % count]] if count > 1 else [self.data[0]]
            begin = time.perf_counter()
            out, _ = self.pool.rollout(self.model, data, self.state, control, nstep=steps, initial_warmstart=self.warm)
            busy = time.perf_counter() - begin
            if window is None:
                self.state = np.ascontiguousarray(out[:, -1])
            return busy * share
        if window is not None:
            for data, state, warm in zip(self.data, self.state, self.warm, strict=True):
                mujoco.mj_setState(self.model, data, state, self._spec)
                data.qacc_warmstart[:] = warm
        clock = clock_of(self.threads)
        begin = clock()
        self.step(steps)
        return (clock() - begin) * share


def overlap(theirs: Theirs, q: np.ndarray, depths: list) -> float:
    """Contacts of a world in mean; `depths` gets the deepest overlap of each world [m]."""
    model, data, count = theirs.model, theirs.bridge.data, []
    for one in q:
        data.qpos[:] = theirs.bridge.qpos(one)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        distance = data.contact.dist[: data.ncon]
        depths.append(max(0.0, -distance.min(initial=0.0)))
        count.append((distance < 0.0).sum())
    return float(np.mean(count))


def starts(scene: Scene, theirs: Theirs, model, worlds: int) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and velocities ``[world, n]`` with which nothing overlaps.

    Raises:
        RuntimeError: there are no such states among many.
    """
    rng, found = np.random.default_rng(RNG), []
    for _ in range(DRAWS * worlds):
        q, qd = scene.start(rng, model)
        depths = []
        overlap(theirs, [q], depths)
        if depths[0] < START_OVERLAP:
            found.append((q, qd))
        if len(found) == worlds:
            return tuple(np.array(x) for x in zip(*found, strict=True))
    raise RuntimeError(f"scene {scene.name}: shapes overlap in nearly all starts; change its `spread`")


def held(scene: Scene, labels: list[str], body_q: np.ndarray) -> np.ndarray:
    """Places of the grasped body in the frame of the finger ``[world, 3]``, of ``[world, body, 7]``."""
    hand, thing = (next(i for i, x in enumerate(labels) if x.endswith(name)) for name in scene.grasp)
    away = body_q[:, thing, :3] - body_q[:, hand, :3]
    return Rotation.from_quat(body_q[:, hand, 3:]).inv().apply(away)


def faults(scene: Scene, labels: list[str], depths: list, begin: np.ndarray, here: np.ndarray, there: np.ndarray):
    """What does not hold after a scene has settled.

    Args:
        scene: the scene.
        labels: of the bodies of a world.
        depths: deepest overlap of the states of this engine [m].
        begin, here, there: poses of bodies at the start and in the end, and those of MuJoCo ``[world, body, 7]``.
    """
    for who, poses_of in (("newton_like", here), ("MuJoCo", there)):
        if not np.isfinite(poses_of).all():
            return [f"{who} is not finite"]
    found = []
    if max(depths) > scene.deepest:
        share = np.mean(np.array(depths) > scene.deepest)
        found.append(
            f"overlap of {1e3 * max(depths):.1f} mm, above {1e3 * scene.deepest:.0f} mm in {share:.0%} of the states"
        )
    apart = np.abs((here[:, :, 2] - there[:, :, 2]).mean(axis=0)).max()
    if apart > scene.same:
        found.append(f"mean heights of a body differ from those of MuJoCo by {1e3 * apart:.1f} mm")
    if scene.grasp:
        for who, poses_of in (("newton_like", here), ("MuJoCo", there)):
            slip = np.linalg.norm(held(scene, labels, poses_of) - held(scene, labels, begin), axis=1).max()
            if slip > SLIP:
                found.append(f"{who}: the grasped body moves by {1e3 * slip:.1f} mm in the hand")
    return found


def poses(ours: Ours, q: np.ndarray) -> np.ndarray:
    """Poses of bodies at coordinates ``[world, body, 7]``."""
    ours.set_state(q, np.zeros((len(q), ours.model.joint_dof_count // ours.worlds)))
    return ours.state.body_q.numpy().reshape(ours.worlds, -1, 7).astype(np.float64)


def watch(scene: Scene, ours: Ours, theirs: Theirs, found: Found) -> list:
    """Residual and contacts of settled states, or of some states of the window, which ends then. Returns the deepest overlaps [m]."""
    depths, counts, residuals = [], [], []
    if scene.window is None:
        counts.append(overlap(theirs, found.q, depths))
        residuals.append(ours.residual())
    else:
        for _ in range(PROBES):
            ours.step(scene.window // PROBES - 1)
            residuals.append(ours.residual())
            counts.append(overlap(theirs, ours.read()[0], depths))
    residuals = np.concatenate(residuals, axis=1)
    found.residual, found.typical = residuals[0].max(), np.quantile(residuals[0], 0.95)
    found.contacts, found.overlap = float(np.mean(counts)), max(depths)
    if not np.abs(residuals[1] - residuals[0]).max() < SAME_SOLUTION:
        found.remarks.append(f"`iterations={CONVERGED}, tolerance=0`: changes by up to {residuals[1].max():.1g} m/s")
    return depths


def settle(scene: Scene, cone: str) -> tuple[Found, Theirs]:
    """Settles a scene in this engine, then in MuJoCo from there, and checks the states."""
    ours = Ours(scene, THREADS)
    ours.build(scene.worlds)
    bridge = MujocoBridge(
        ours.model, contacts=True, between_bodies=scene.between_bodies, limits=True, friction=True, drives=True
    )
    target = ours.model.joint_target_q.numpy().reshape(scene.worlds, -1)[0].astype(np.float64)
    theirs = Theirs(scene, bridge, target, 1, cone)
    start = starts(scene, theirs, ours.model, scene.worlds)
    begin = poses(ours, start[0])
    ours.set_state(*start)
    ours.step(round(scene.settle / scene.dt))
    found = Found(*ours.read())
    if not (np.isfinite(found.q).all() and np.isfinite(found.qd).all()):
        found.wrong.append("newton_like is not finite")
        return found, theirs
    depths = watch(scene, ours, theirs, found)
    end = ours.read()[0] if scene.window else found.q
    theirs.start(found.q, found.qd)
    steps, probes, of_peer = (
        scene.window or max(1, round(scene.peer_settle / scene.dt)),
        PROBES if scene.window else 1,
        [],
    )
    for _ in range(probes):
        theirs.step(steps // probes)
        overlap(theirs, theirs.read(), of_peer)
    found.peer_overlap = max(of_peer)
    labels = ours.model.body_label[: len(ours.model.body_label) // scene.worlds]
    here, there = poses(ours, end), poses(ours, theirs.read())
    found.wrong = faults(scene, labels, depths, begin, here, there)
    if scene.grasp:
        first, mine, after = (held(scene, labels, x) for x in (begin, here, there))
        slips = [1e3 * np.linalg.norm(b - a, axis=1).max() for a, b in ((first, mine), (mine, after))]
        found.remarks.append(
            f"in the hand, the body moves by {slips[0]:.2f} mm in {scene.settle:g} s, then in MuJoCo by {slips[1]:.2f} mm in "
            f"{scene.peer_settle:g} s"
        )
    # bursts of MuJoCo start from its own settled states, unless a window starts with the scene
    theirs.rest = found.q, found.qd
    if scene.window is None:
        speeds = [bridge.qd(bridge.q(data.qpos), data.qvel) for data in theirs.data]
        theirs.rest = theirs.read(), np.array(speeds)
    return found, theirs


def spread_out(scene: Scene, found: Found, theirs: Theirs, model) -> Found:
    """Settled states of all worlds of a model. The time of a step depends on how worlds differ, so no two of them are equal.

    Raises:
        RuntimeError: a state is not finite.
    """
    if model.world_count <= len(found.q):
        return found
    ours = Ours(scene, THREADS)
    ours.build(model.world_count, model)
    ours.set_state(*starts(scene, theirs, model, model.world_count))
    ours.step(round(scene.settle / scene.dt))
    q, qd = ours.read()
    if not (np.isfinite(q).all() and np.isfinite(qd).all()):
        raise RuntimeError(f"scene {scene.name}: newton_like is not finite in one of {model.world_count} worlds")
    return Found(q, qd)


def measure(scene: Scene, found: Found, theirs: Theirs, options) -> list[str]:
    """Cells with the times and ratios of a scene."""
    worlds = min(options.worlds, scene.most or options.worlds)
    counts, models = ((1,) if scene.most == 1 else (1, THREADS)), {}

    def shared(n):
        if n not in models:
            models[n] = scene.model(n)
        return models[n]

    engines, states = {}, spread_out(scene, found, theirs, shared(worlds))
    for threads in counts:
        engines["ours", threads] = Ours(scene, threads)
        engines["ours", threads].found, engines["ours", threads].shared = states, shared
        engines["theirs", threads] = Theirs(scene, theirs.bridge, theirs.target, threads, options.cone)
        engines["theirs", threads].rest = theirs.rest
    rates = dict(zip(engines, take_turns(list(engines.values()), worlds, options.rounds, options.seconds), strict=True))
    cells = [
        f"{1e6 / np.median(rates[key]):,.2f}" if key in rates else ""
        for key in ((w, n) for w in ("ours", "theirs") for n in (1, THREADS))
    ]
    for n in (1, THREADS):
        cells.append(f"{np.median(rates['ours', n] / rates['theirs', n]):.3g}" if n in counts else "")
    return cells


def row(scene: Scene, options) -> list[str]:
    """The row of a scene in the table."""
    try:
        found, theirs = settle(scene, options.cone)
    except FileNotFoundError as error:
        return [scene.title, *[""] * (len(COLUMNS) - 2), f"not measured: {error}"]
    cells = [""] * 6
    if not found.wrong or options.anyway:
        cells = measure(scene, found, theirs, options)
    said = "; ".join([*(f"check failed: {x}" for x in found.wrong), *found.remarks])
    return [
        scene.title,
        f"{found.contacts:.1f}",
        *cells,
        f"{found.typical:.0e}, {found.residual:.0e}",
        f"{1e3 * found.overlap:.1f} ({1e3 * found.peer_overlap:.1f})",
        said,
    ]


def main(arguments: list[str] | None = None) -> None:
    """Runs the benchmark.

    Args:
        arguments: command line; None: that of the process.
    """
    names = [scene.name for scene in SCENES]
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.bench_contact", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--scenes", nargs="+", choices=names, default=names)
    parser.add_argument("--worlds", type=positive_int, default=1024, help="worlds of this engine; a heap has one")
    parser.add_argument("--rounds", type=positive_int, default=5, help="of bursts, engine after engine")
    parser.add_argument("--seconds", type=float, default=0.12, help="length of a burst")
    parser.add_argument("--cone", choices=["elliptic", "pyramidal"], default="elliptic", help="friction cone of MuJoCo")
    parser.add_argument("--anyway", action="store_true", help="measure scenes, too, whose check failed")
    options = parser.parse_args(arguments)
    if not options.seconds > 0.0:
        parser.error(f"--seconds {options.seconds:g} must be above 0")
    wp.config.log_level = wp.LOG_ERROR
    print(machine(), flush=True)
    for cells in (COLUMNS, ["---"] * len(COLUMNS)):
        print("| " + " | ".join(cells) + " |", flush=True)
    for scene in SCENES:
        if scene.name in options.scenes:
            print("| " + " | ".join(row(scene, options)) + " |", flush=True)


if __name__ == "__main__":
    main()
