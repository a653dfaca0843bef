"""The scenes by which the method of ``SolverXPBD`` was chosen, with the solver itself: ``python -m tests.benchmarks.bench_methods``.

For each number of iterations: errors and energies of one world, and the time of a step of one of many equal worlds on one thread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import warp as wp

import newton_like as nl
from newton_like import assets, dynamics
from newton_like.geometry.transforms import quat_rotate, quat_to_matrix
from newton_like.solvers import SolverXPBD

DT = 1.0 / 240.0
G = 9.81


def boxes(heavy: bool) -> nl.ModelBuilder:
    """Ten boxes of 20 cm, or one of 100 kg on one of 1 kg."""
    builder = nl.ModelBuilder()
    for i, mass in enumerate([1.0, 100.0] if heavy else [8.0] * 10):
        body = builder.add_body(xform=(0, 0, 0.1 + 0.2 * i, 0, 0, 0, 1))
        builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=nl.ShapeConfig(density=mass / 0.008))
    return builder


def chain(links: int, end: float) -> nl.ModelBuilder:
    """Rods of 0.1 kg and 0.1 m on hinges in a row, which start level; the last one is `end` times as heavy."""
    builder, parent, joints = nl.ModelBuilder(), -1, []
    for i in range(links):
        mass = 0.1 * (end if i == links - 1 else 1.0)
        inertia = mass * np.diag([1.0e-4, 8.0e-4, 8.0e-4])
        rod = builder.add_link(mass=mass, com=(0.05, 0, 0), inertia=inertia)
        place = (0.1, 0, 0, 0, 0, 0, 1) if i else (0, 0, 0, 0, 0, 0, 1)
        joints.append(builder.add_joint_revolute(parent, rod, axis=(0, 1, 0), parent_xform=place))
        parent = rod
    builder.add_articulation(joints)
    return builder


def four_bar(drive: float) -> nl.ModelBuilder:
    """A linkage whose crank swings freely, or with a drive of velocity of this gain [N m s/rad]."""
    builder, bars = nl.ModelBuilder(), []
    for length in (0.2, 0.45, 0.4):
        bars.append(builder.add_link(mass=length, com=(length / 2, 0, 0), inertia=np.diag([1e-4, 0.01, 0.01])))
    driven = dict(actuator_mode=nl.JointTargetMode.VELOCITY, target_kd=drive, target_qd=6.0) if drive else {}
    frame = dict(axis=(0, 1, 0))
    joints = [builder.add_joint_revolute(-1, bars[0], **frame, **driven)]
    for i, x in ((0, 0.2), (1, 0.45)):
        joints.append(builder.add_joint_revolute(*bars[i : i + 2], parent_xform=(x, 0, 0, 0, 0, 0, 1), **frame))
    builder.add_articulation(joints)
    ends = dict(parent_xform=(0.5, 0, 0, 0, 0, 0, 1), child_xform=(0.4, 0, 0, 0, 0, 0, 1))
    builder.add_joint_revolute(-1, bars[2], **ends, **frame)
    model = builder.finalize("cpu", dtype=wp.float64)
    state = model.state()
    dynamics.set_joint_positions(model, state, [-1.0, 1.0, 1.0])
    dynamics.assemble(model, state, fixed=[0])
    builder.joint_q[:3] = state.joint_q.numpy()[:3].tolist()
    return builder


def quadruped() -> nl.ModelBuilder:
    """The project's quadruped with stiff drives, 5 cm above the ground."""
    builder = nl.ModelBuilder()
    builder.default_joint_cfg.target_ke, builder.default_joint_cfg.target_kd = 200.0, 4.0
    builder.add_urdf(assets.path("quadruped.urdf"), xform=(0, 0, 0.34, 0, 0, 0, 1), floating=True)
    builder.joint_q[7:] = builder.joint_target_q[7:] = [0.0, 0.8, -1.6] * 4
    return builder


SCENES = {
    "ten boxes": (lambda: boxes(False), 3.0),
    "100 kg on 1 kg": (lambda: boxes(True), 3.0),
    "100 links, heavy end": (lambda: chain(100, 100.0), 2.0),
    "double pendulum": (lambda: chain(2, 1.0), 5.0),
    "four-bar, free": (lambda: four_bar(0.0), 3.0),
    "four-bar, drive": (lambda: four_bar(5.0), 3.0),
    "quadruped": (quadruped, 2.0),
}
"""Builders of scenes, and how long they are simulated [s]."""


class World:
    """Measures of the first world of a model."""

    def __init__(self, model):
        self.model, self.bodies = model, model.body_count // model.world_count
        self.joints = np.arange(model.joint_count // model.world_count)
        dims, types = (getattr(model, f"joint_{name}").numpy()[self.joints] for name in ("dof_dim", "type"))
        self.held = self.joints[(dims[:, 0] == 0) & (types != nl.JointType.FREE)]
        self.mass, self.com, self.inertia = (
            getattr(model, f"body_{name}").numpy()[: self.bodies].astype(float) for name in ("mass", "com", "inertia")
        )

    def gap(self, state) -> float:
        """The largest distance of two anchors [m]."""
        poses = np.append(state.body_q.numpy().astype(float), [[0, 0, 0, 0, 0, 0, 1]], axis=0)
        ends = []
        for side, name in (("p", "parent"), ("c", "child")):
            pose = poses[getattr(self.model, f"joint_{name}").numpy()[self.held]]
            at = getattr(self.model, f"joint_X_{side}").numpy()[self.held, :3].astype(float)
            ends.append(pose[:, :3] + quat_rotate(pose[:, 3:], at))
        return float(np.linalg.norm(ends[0] - ends[1], axis=1).max(initial=0.0))

    def energy(self, state) -> float:
        """Kinetic and potential energy, and that of the springs of drives of position [J]."""
        q, qd = (x.numpy()[: self.bodies].astype(float) for x in (state.body_q, state.body_qd))
        turn = quat_to_matrix(q[:, 3:])
        spin = np.einsum("bji,bj->bi", turn, qd[:, 3:])
        height = q[:, 2] + quat_rotate(q[:, 3:], self.com)[:, 2]
        total = 0.5 * self.mass @ (qd[:, :3] ** 2).sum(axis=1) + G * self.mass @ height
        total += 0.5 * np.einsum("bi,bij,bj", spin, self.inertia, spin)
        stiffness = self.model.joint_target_ke.numpy()[6 : len(self.joints) + 5].astype(float)
        if self.model.joint_type.numpy()[0] == nl.JointType.FREE and stiffness.any():
            lack = (state.joint_q.numpy() - self.model.joint_target_q.numpy())[7 : len(self.joints) + 6].astype(float)
            total += 0.5 * stiffness @ lack**2
        return float(total)


def measured(make, seconds: float, iterations: int, worlds: int) -> dict[str, float]:
    """Errors, energies and the time of a step of a scene."""
    scene = nl.ModelBuilder()
    scene.add_ground_plane(height=0.0 if nl.JointType.FREE in make().joint_type else -20.0)
    one = nl.ModelBuilder()
    one.add_builder(scene)
    one.add_world(make())
    model = one.finalize("cpu")
    solver, state, world = SolverXPBD(model, iterations=iterations, threads=1), model.state(), World(model)
    nl.eval_fk(model, state.joint_q, state.joint_qd, state)
    start, top = world.energy(state), state.body_q.numpy()[world.bodies - 1, :3].astype(float)
    gap, energies = 0.0, []
    for _ in range(round(seconds / DT)):
        solver.step(state, state, dt=DT)
        gap = max(gap, world.gap(state))
        energies.append(world.energy(state) - start)
    moved = state.body_q.numpy()[world.bodies - 1, :3].astype(float) - top
    found = {
        "gap [mm]": 1e3 * gap,
        "gap at the end [mm]": 1e3 * world.gap(state),
        "change of energy [J]": energies[-1],
        "largest rise [J]": max(energies),
        "speed at the end [m/s, rad/s]": float(abs(state.body_qd.numpy()[: world.bodies]).max()),
        "last body sinks [mm]": -1e3 * moved[2],
        "sideways [mm]": 1e3 * float(np.hypot(*moved[:2])),
    }
    scene.replicate(make(), worlds)
    many = scene.finalize("cpu")
    solver, state = SolverXPBD(many, iterations=iterations, threads=1), many.state()
    nl.eval_fk(many, state.joint_q, state.joint_qd, state)
    times = []
    for _ in range(24):
        begin = time.perf_counter()
        solver.step(state, state, dt=DT)
        times.append(time.perf_counter() - begin)
    return found | {"start [J]": start, "time [us]": 1e6 * min(times[4:]) / worlds}


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenes", nargs="*", default=list(SCENES), choices=list(SCENES))
    parser.add_argument("--iterations", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--worlds", type=int, default=64)
    chosen = parser.parse_args(given)
    for name in chosen.scenes:
        make, seconds = SCENES[name]
        for iterations in chosen.iterations:
            found = measured(make, seconds, iterations, chosen.worlds)
            print(f"{name}, 8 x {iterations}:", ", ".join(f"{key} {x:.3g}" for key, x in found.items()), flush=True)


if __name__ == "__main__":
    main()
