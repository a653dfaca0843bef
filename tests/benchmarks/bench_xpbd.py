"""Times of ``SolverXPBD``: ``python -m tests.benchmarks.bench_xpbd``.

Scenes: towers of boxes in one world, and quadrupeds, one a world, beside Newton's ``SolverXPBD`` on the CPU; a heap of mixed bodies
beside pybullet; and heaps of several sizes. Engines are stepped in turn. How far the boxes of towers moved, how quadrupeds stand, and how
fast the bodies of the heap are, is printed before the times.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from importlib.util import find_spec

import numpy as np
import warp as wp

import newton_like as nl
from examples import heap
from newton_like.solvers import SolverFeatherstone, SolverXPBD

from . import contact_scenes
from .cases import CASES

DT = 1.0 / 240.0
GAP = 0.23
"""Distance of towers [m]."""
LEG = 0.25
"""Distance of the anchors of the thigh of the design quadruped [m]."""


def timed(calls: dict, rounds: int, each: int = 4) -> dict[str, np.ndarray]:
    """Wall and processor times of calls in turn [ms], ``[n, 2]``."""
    found: dict[str, list] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            for _ in range(each):
                wall, used = time.perf_counter(), time.process_time()
                call()
                found[name].append((time.perf_counter() - wall, time.process_time() - used))
    return {name: 1e3 * np.array(x) for name, x in found.items()}


def show(title: str, times: dict[str, np.ndarray]) -> None:
    """Prints minima and medians."""
    print(title, f"(load {os.getloadavg()[0]:.1f})")
    for name, x in times.items():
        wall, used = (f"{x[:, k].min():9.2f} {np.median(x[:, k]):9.2f}" for k in (0, 1))
        print(f"  {name:34s} wall {wall}   processor {used} ms")


def towers(builder, boxes: int) -> None:
    """Adds towers of five boxes to a builder of either engine."""
    side = int(np.ceil(np.sqrt(boxes / 5)))
    for i in range(boxes):
        x, y, z = i // 5 % side, i // 5 // side, i % 5
        body = builder.add_body(xform=wp.transform((GAP * x, GAP * y, 0.1 + 0.2 * z), wp.quat_identity()))
        builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)


class Ours:
    """A model of this package and its solver."""

    def __init__(self, model, dt: float = DT, **options):
        self.dt = dt
        self.solver, self.state = SolverXPBD(model, update_joints=False, **options), model.state()
        nl.eval_fk(model, self.state.joint_q, self.state.joint_qd, self.state)
        self.start = self.poses()

    def poses(self) -> np.ndarray:
        """Places of bodies, ``[bodies, 3]`` [m]."""
        return self.state.body_q.numpy()[:, :3].copy()

    def step(self) -> None:
        """One step."""
        self.solver.step(self.state, self.state, dt=self.dt)


class Theirs:
    """The same with Newton, which cuts a step into substeps."""

    def __init__(self, model, substeps: int, iterations: int, dt: float = DT):
        import newton

        self.dt = dt
        self.model, self.substeps = model, substeps
        self.solver = newton.solvers.SolverXPBD(model, iterations=iterations)
        self.one, self.two, self.control = model.state(), model.state(), model.control()
        self.contacts = model.contacts()
        newton.eval_fk(model, model.joint_q, model.joint_qd, self.one)
        self.start = self.poses()

    def poses(self) -> np.ndarray:
        """Places of bodies, ``[bodies, 3]`` [m]."""
        return self.one.body_q.numpy()[:, :3].copy()

    def step(self) -> None:
        """One step."""
        self.model.collide(self.one, self.contacts)
        for _ in range(self.substeps):
            self.one.clear_forces()
            self.solver.step(self.one, self.two, self.control, self.contacts, self.dt / self.substeps)
            self.one, self.two = self.two, self.one


def bench_towers(boxes: int, rounds: int, settings: list[tuple[int, int]], steps: int) -> None:
    """Towers: by how much boxes move, and times."""
    import newton

    builder = nl.ModelBuilder()
    builder.add_ground_plane()
    towers(builder, boxes)
    runs = {"newton_like": Ours(builder.finalize("cpu"))}
    for substeps, iterations in settings:
        other = newton.ModelBuilder()
        other.add_ground_plane()
        towers(other, boxes)
        runs[f"newton, {substeps} x {iterations}"] = Theirs(other.finalize("cpu"), substeps, iterations)
    for name, run in runs.items():
        for _ in range(steps):
            run.step()
        move = np.linalg.norm(run.poses() - run.start, axis=1)
        print(f"  {name:34s} boxes move by at most {1e3 * move.max():.3f} mm in {steps} steps")
    show(f"{boxes} boxes in towers of five, one world, a step", timed({n: r.step for n, r in runs.items()}, rounds, 2))


def bench_quadrupeds(worlds: int, rounds: int, settings: list[tuple[int, int]]) -> None:
    """Quadrupeds that stand, one a world: how far trunks move within a second, how far anchors are apart, and times."""
    import newton

    case = next(c for c in CASES if c.name == "design")
    model = case.scene(nl, worlds).finalize("cpu")
    runs = {"newton_like": Ours(model, case.dt)}
    for substeps, iterations in settings:
        other = case.scene(newton, worlds).finalize("cpu")
        runs[f"newton, {substeps} x {iterations}"] = Theirs(other, substeps, iterations, case.dt)
    exact, state = SolverFeatherstone(model, evaluator="general"), model.state()
    for _ in range(round(1.0 / case.dt)):
        exact.step(state, state, dt=case.dt)
    print(f"  {'SolverFeatherstone':34s} height of a trunk {state.joint_q.numpy()[2]:.4f} m")
    for name, run in runs.items():
        for _ in range(round(1.0 / case.dt)):
            run.step()
        bodies = run.poses().reshape(worlds, -1, 3)
        # the distance of hip and thigh is 0.25 m at all times
        height = bodies[:, 0, 2]
        stretched = np.abs(np.linalg.norm(bodies[:, 3] - bodies[:, 2], axis=1) - LEG).max()
        print(
            f"  {name:34s} height of a trunk {height.min():.4f} to {height.max():.4f} m, joint stretched by {1e3 * stretched:.2f} mm"
        )
    show(f"{worlds} quadrupeds, a step of {case.dt} s", timed({n: r.step for n, r in runs.items()}, rounds, 2))


class Bullet:
    """A world of loose bodies of `nl.ModelBuilder` in pybullet (one thread), with its default of 50 iterations."""

    def __init__(self, model):
        import pybullet as p

        self.p, self.contacts = p, 0
        p.connect(p.DIRECT)
        p.setGravity(0.0, 0.0, -9.81)
        p.setTimeStep(DT)
        kinds, scales = model.shape_type.numpy(), model.shape_scale.numpy()
        owners, places, friction = (
            model.shape_body.numpy(),
            model.shape_transform.numpy(),
            model.shape_material_mu.numpy(),
        )
        masses, poses = model.body_mass.numpy(), model.joint_q.numpy().reshape(-1, 7)
        self.bodies = []
        # pybullet multiplies the coefficients of two shapes, and this package takes their mean
        if (friction != 1.0).any():
            raise ValueError("the coefficients of friction must be 1, so that those of pairs are equal in both engines")
        for kind, scale, owner, place, mu in zip(kinds, scales, owners, places, friction, strict=True):
            scale = [float(x) for x in scale]
            if kind == nl.GeoType.PLANE:
                shape = p.createCollisionShape(p.GEOM_PLANE)
            elif kind == nl.GeoType.SPHERE:
                shape = p.createCollisionShape(p.GEOM_SPHERE, radius=scale[0])
            elif kind == nl.GeoType.BOX:
                shape = p.createCollisionShape(p.GEOM_BOX, halfExtents=scale)
            elif kind == nl.GeoType.CAPSULE:
                shape = p.createCollisionShape(p.GEOM_CAPSULE, radius=scale[0], height=2.0 * scale[1])
            elif kind == nl.GeoType.CYLINDER:
                shape = p.createCollisionShape(p.GEOM_CYLINDER, radius=scale[0], height=2.0 * scale[1])
            else:
                raise ValueError(f"a shape of type {kind} is not translated to pybullet")
            pose = poses[owner] if owner >= 0 else place
            body = p.createMultiBody(
                float(masses[owner]) if owner >= 0 else 0.0, shape, -1, pose[:3].tolist(), pose[3:].tolist()
            )
            p.changeDynamics(body, -1, lateralFriction=float(mu), linearDamping=0.0, angularDamping=0.0)
            if owner >= 0:
                self.bodies.append(body)

    def step(self) -> None:
        """One step of DT."""
        self.p.stepSimulation()

    def speeds(self) -> np.ndarray:
        """Of the bodies [m/s]."""
        return np.array([np.linalg.norm(self.p.getBaseVelocity(b)[0]) for b in self.bodies])


def bench_heap(bodies: int, settle: int, rounds: int) -> None:
    """A heap of mixed bodies in one world beside pybullet: how fast bodies are after they fell, and times."""
    builder = nl.ModelBuilder()
    builder.add_ground_plane()
    builder.add_builder(contact_scenes.heap(bodies))
    model = builder.finalize("cpu")
    ours, theirs = Ours(model), Bullet(model)
    for _ in range(settle):
        ours.step()
        theirs.step()
    speeds = np.linalg.norm(ours.state.body_qd.numpy().reshape(-1, 6)[:, :3], axis=1)
    count = int(ours.solver._found.rigid_contact_count.numpy()[0])
    print(f"  newton_like: {count} contacts, median speed {1e3 * np.median(speeds):.2f} mm/s after {settle} steps")
    count = len(theirs.p.getContactPoints())
    print(f"  pybullet: {count} contacts, median speed {1e3 * np.median(theirs.speeds()):.2f} mm/s")
    show(f"heap of {bodies} bodies, a step", timed({"newton_like": ours.step, "pybullet": theirs.step}, rounds, 4))


def bench_flat(sizes: list[int], settle: int, rounds: int) -> None:
    """Heaps of several sizes: the cost of a body."""
    runs = {}
    for n in sizes:
        side, inside = heap.SIDE, heap.INSIDE
        heap.SIDE = max(3, int(np.ceil((1.2 * n) ** (1.0 / 3.0))))
        heap.INSIDE = 0.5 * heap.SPACING * heap.SIDE + 0.05
        runs[n] = heap.build(1, DT, "cpu", 0, n)
        runs[n].solver.reset(runs[n].state)
        heap.SIDE, heap.INSIDE = side, inside
        for _ in range(settle):
            runs[n].solver.step(runs[n].state, runs[n].state, dt=DT)

    def call(scene):
        return lambda: scene.solver.step(scene.state, scene.state, dt=DT)

    times = timed({str(n): call(scene) for n, scene in runs.items()}, rounds, 2)
    show("heaps of mixed bodies, a step", times)
    for n, x in times.items():
        count = int(runs[int(n)].solver._found.rigid_contact_count.numpy()[0])
        wall, used = 1e3 * x.min(axis=0) / int(n)
        print(f"  {n} bodies, {count} contacts: {wall:.1f} us wall, {used:.1f} us processor a body")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--boxes", type=int, default=1000)
    parser.add_argument("--settle", type=int, default=240)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1000, 10_000])
    parser.add_argument(
        "--newton", nargs="*", default=["1x2", "4x4", "8x8"], help="settings of Newton: sub-steps x iterations"
    )
    parser.add_argument("--scenes", nargs="*", default=["towers", "quadrupeds", "heap", "flat"])
    parser.add_argument("--worlds", type=int, default=1024, help="of quadrupeds")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    wp.config.quiet = True
    settings = [tuple(map(int, x.split("x"))) for x in given.newton]
    for scene, peer in (("towers", "newton"), ("quadrupeds", "newton"), ("heap", "pybullet")):
        if scene in given.scenes and find_spec(peer) is None:
            print(f"{scene}: left out, because {peer} is not installed")
            given.scenes.remove(scene)
    if "towers" in given.scenes:
        bench_towers(given.boxes, given.rounds, settings, 40)
    if "quadrupeds" in given.scenes:
        bench_quadrupeds(given.worlds, given.rounds, settings)
    if "heap" in given.scenes:
        bench_heap(500, 300, given.rounds)
    if "flat" in given.scenes:
        bench_flat(given.sizes, given.settle, given.rounds)


if __name__ == "__main__":
    main()
