"""Speed of robots with loops and tendons against MuJoCo, in processor time.

    python -m tests.benchmarks.bench_mechanisms [--worlds 4096] [--steps 20] [--rounds 5] [--evaluator auto] [--file hand.xml]

* legs: a quadruped with a four-bar loop in each leg, on a plane
* hand: 22 hinges, moved by 20 tendons over sites and around cylinders, with five more that couple the last two hinges of each finger
* a file: without contacts, as the hand

Both engines step the same worlds, with other coordinates and controls in each, on all threads. Rounds alternate between the engines; a
figure is the processor time of all threads for a step of a world, the smallest of all rounds and the median.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import mujoco
import mujoco.rollout
import numpy as np
import warp as wp

from newton_like import ModelBuilder
from newton_like.solvers import SolverFeatherstone
from newton_like.types import ShapeFlags
from tests.solvers.featherstone.test_loops import QUADRUPED

FINGERS = 5


def hand() -> str:
    """A hand on a wrist of two hinges: five fingers of four hinges, each with a flexor and an extensor for its middle hinges, and two
    tendons for its base."""
    fingers, tendons, motors = "", "", ""
    for i in range(FINGERS):
        y = 0.02 * (i - 2)
        palm = f'<site name="p{i}" pos="0 {y} -.015"/><site name="q{i}" pos="0 {y} .015"/>'
        palm += f'<site name="l{i}" pos=".02 {y - 0.01} 0"/><site name="r{i}" pos=".02 {y + 0.01} 0"/>'
        links = ""
        for k, (axis, length) in enumerate((("0 0 1", 0.01), ("0 1 0", 0.045), ("0 1 0", 0.025), ("0 1 0", 0.02))):
            at = f"0.09 {y} 0" if k == 0 else f"{(0.01, 0.045, 0.025)[k - 1]} 0 0"
            limits = "-.3 .3" if k == 0 else "0 1.6"
            links += f'<body name="f{i}{k}" pos="{at}"><joint name="j{i}{k}" axis="{axis}" range="{limits}" damping=".01" armature="2e-4"/>'
            links += f'<geom type="capsule" size=".007" fromto="0 0 0 {length} 0 0" mass=".02"/>'
            links += (
                f'<site name="s{i}{k}" pos="{length * 0.6} 0 -.009"/><site name="e{i}{k}" pos="{length * 0.6} 0 .009"/>'
            )
            if k:
                links += f'<geom name="g{i}{k}" type="cylinder" size=".005 .006" euler="90 0 0" mass=".001"/>'
                links += f'<site name="b{i}{k}" pos="0 0 -.02"/>'
        last = f'<joint joint="j{i}3" coef="-1"/>'
        fingers += palm + links + "</body>" * 4
        wrap = "".join(f'<geom geom="g{i}{k}" sidesite="b{i}{k}"/><site site="s{i}{k}"/>' for k in (1, 2))
        tendons += f'<spatial name="flex{i}" damping=".5"><site site="p{i}"/>{wrap}</spatial>'
        line = "".join(f'<site site="e{i}{k}"/>' for k in (1, 2))
        tendons += f'<spatial name="ext{i}" stiffness="20" damping=".5"><site site="q{i}"/>{line}</spatial>'
        tendons += f'<spatial name="left{i}"><site site="l{i}"/><site site="s{i}1"/></spatial>'
        tendons += f'<spatial name="right{i}"><site site="r{i}"/><site site="s{i}1"/></spatial>'
        tendons += f'<fixed name="tip{i}" stiffness="2" springlength="0"><joint joint="j{i}2" coef="1"/>{last}</fixed>'
        motors += "".join(f'<motor tendon="{name}{i}" ctrlrange="-8 0"/>' for name in ("flex", "left", "right"))
        motors += f'<position tendon="ext{i}" kp="100" kv="2" ctrlrange=".02 .2"/>'
    wrist = "".join(
        f'<joint name="w{k}" axis="{axis}" damping=".2" armature=".001" range="-.6 .6"/>'
        for k, axis in enumerate(("0 1 0", "0 0 1"))
    )
    motors += "".join(f'<position joint="w{k}" kp="5" kv=".2"/>' for k in range(2))
    return (
        '<mujoco><compiler angle="radian"/><option timestep=".002" integrator="implicitfast"><flag contact="disable"/></option>'
        '<default><geom contype="0" conaffinity="0"/></default><worldbody><body name="palm">'
        f'{wrist}<geom type="box" size=".045 .05 .01" pos=".045 0 0" mass=".3"/>{fingers}</body></worldbody>'
        f"<tendon>{tendons}</tendon><actuator>{motors}</actuator></mujoco>"
    ).replace('euler="90 0 0"', 'euler="1.5708 0 0"')


class Bench:
    """One scene in both engines."""

    def __init__(self, source: str, worlds: int, evaluator: str, contacts: bool, rng):
        self.mj = (
            mujoco.MjModel.from_xml_path(source) if source.endswith(".xml") else mujoco.MjModel.from_xml_string(source)
        )
        builder = ModelBuilder()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = builder.add_mjcf(source)
        if not contacts:
            self.mj.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
            builder.shape_flags = [int(flags) & ~int(ShapeFlags.COLLIDE_SHAPES) for flags in builder.shape_flags]
        scene = ModelBuilder()
        scene.replicate(builder, worlds)
        self.model = scene.finalize("cpu")
        self.threads = len(os.sched_getaffinity(0))
        self.datas = [mujoco.MjData(self.mj) for _ in range(self.threads)]
        self.rollout = mujoco.rollout.Rollout(nthread=self.threads)
        # the same coordinates of hinges in both
        q = np.tile(np.array(builder.joint_q), (worlds, 1))
        self.start = np.zeros((worlds, mujoco.mj_stateSize(self.mj, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
        data = mujoco.MjData(self.mj)
        mujoco.mj_getState(self.mj, data, self.start[0], mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self.start[:] = self.start[0]
        looped = self.mj.neq > 0
        for j in range(self.mj.njnt):
            name = mujoco.mj_id2name(self.mj, mujoco.mjtObj.mjOBJ_JOINT, j)
            if self.mj.jnt_type[j] < 2 or looped:
                continue
            low, high = self.mj.jnt_range[j] if self.mj.jnt_limited[j] else (-0.3, 0.3)
            x = low + (high - low) * rng.uniform(0.2, 0.8, worlds)
            self.start[:, 1 + self.mj.jnt_qposadr[j]] = x
            q[:, report.coords[name]] = x
        self.state, self.control = self.model.state(), self.model.control()
        self.state.joint_q.assign(q.ravel().astype(np.float32))
        low, high = np.where(self.mj.actuator_ctrllimited[:, None] != 0, self.mj.actuator_ctrlrange, (0.0, 0.0)).T
        self.ctrl = low + (high - low) * rng.uniform(0.0, 1.0, (worlds, self.mj.nu))
        self._give(report, worlds)
        self.solver = SolverFeatherstone(self.model, evaluator=evaluator, unsupported_contacts="ignore")
        self.dt = float(self.mj.opt.timestep)

    def _give(self, report, worlds: int) -> None:
        arrays = {
            name: getattr(self.model, name).numpy().reshape(worlds, -1).copy()
            for name in self.control._names
            if getattr(self.model, name).size
        }
        cleared = set()
        for i, made in enumerate(report.actuators):
            if made.drive is None:
                continue
            if (made.drive, made.index) not in cleared:
                arrays[made.drive][:, made.index] = 0.0
                cleared.add((made.drive, made.index))
            arrays[made.drive][:, made.index] += made.factor * self.ctrl[:, i] + made.offset
        for name, values in arrays.items():
            getattr(self.control, name).assign(values.ravel().astype(np.float32))

    def ours(self, steps: int) -> float:
        began = time.process_time()
        for _ in range(steps):
            self.solver.step(self.state, self.state, self.control, None, self.dt)
        return time.process_time() - began

    def theirs(self, steps: int) -> float:
        control = np.repeat(self.ctrl[:, None], steps, axis=1) if self.mj.nu else None
        began = time.process_time()
        states, _ = self.rollout.rollout(self.mj, self.datas, self.start, control, nstep=steps)
        took = time.process_time() - began
        self.start = states[:, -1].copy()
        return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worlds", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--evaluator", default="auto", choices=("general", "specialised", "auto"))
    parser.add_argument("--file", type=Path, help="an MJCF file instead of the hand and the legs")
    args = parser.parse_args()
    wp.config.quiet = True
    cases = {"legs": (QUADRUPED, True), "hand": (hand(), False)}
    if args.file is not None:
        cases = {args.file.stem: (str(args.file), False)}
    for name, (source, contacts) in cases.items():
        bench = Bench(source, args.worlds, args.evaluator, contacts, np.random.default_rng(1))
        bench.ours(2), bench.theirs(2)
        mine, peer = [], []
        for _ in range(args.rounds):
            mine.append(bench.ours(args.steps))
            peer.append(bench.theirs(args.steps))
        unit = 1.0e6 / (args.worlds * args.steps)
        finite = bool(np.isfinite(bench.state.joint_q.numpy()).all() and np.isfinite(bench.start).all())
        print(
            f"{name} ({args.evaluator}, {bench.mj.nv} dofs): newton_like {min(mine) * unit:.2f} us (median {np.median(mine) * unit:.2f}),"
            f" MuJoCo {min(peer) * unit:.2f} us (median {np.median(peer) * unit:.2f}): {min(peer) / min(mine):.1f} times (median"
            f" {np.median(np.array(peer) / np.array(mine)):.1f}); finite: {finite}; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
