"""MJCF files in SolverFeatherstone and in MuJoCo: which files the solver takes, accelerations at random states, and falls.

    python -m tests.benchmarks.compare_mjcf FOLDER ... [--states 5] [--all] [--match TEXT]

Files that MuJoCo does not load (parts that other files include) and files without moving bodies are left out. Accelerations and falls
are those of files with loops, tendons, muscles or other actuators with laws of their own; `--all`: of all files. Both engines work in
double precision, without contacts, dry friction and fluids. Equality constraints and limits of joints that state no softness get
MuJoCo's default in both engines; here they would be rigid.

* Accelerations: random coordinates within the limits of joints, random velocities, activations and controls. The difference is relative to
  the largest acceleration. Here they are those of a step of 10 ns, or of a ten-thousandth of the time in which the strongest damper of a
  joint stops it: dampers are implicit here, and their forces decrease within a step. Velocities against dampers that need less than a
  millisecond are smaller in proportion, so that these forces do not hide all others.
* Falls: 0.2 s from the initial pose with constant random controls, in steps of at most 0.5 ms. The difference is the largest distance
  between the origins of bodies in both engines at the end, relative to the longest way of a body, and in metres. Springs, drives and soft
  rows are integrated in other ways in MuJoCo, with errors in proportion to the step. Falls that differ are repeated in steps of a fifth,
  at most 0.1 ms, and agree if they agree then. The printed numbers are those of the last fall; `fifth` marks repeated ones.
"""

from __future__ import annotations

import argparse
import time
import traceback
import warnings
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import warp as wp

from newton_like import ModelBuilder
from newton_like.types import ShapeFlags
from tests.support.actuators import Pair

STEP, FALL, FALL_STEP = 1.0e-8, 0.2, 5.0e-4
PARTS = 5
"""Steps of repeated falls in a step of the first one."""
STEP_OF_DECAY, SLOW_DECAY = 1.0e-4, 1.0e-3
"""Of accelerations: the largest part of the time of decay by a damper that a step takes; the shortest such time [s] of fast joints."""

CLOSE, CLOSE_FALL, CLOSE_WAY = 1.0e-3, 1.0e-2, 1.0e-3
"""Accelerations agree up to this part, falls up to this part of the way or these metres."""

_LAW = 'solref{0}="0.02 1" solimp{0}="0.9 0.95 0.001 0.5 2"'
_SOFT = f"<default><equality {_LAW.format('')}/><joint {_LAW.format('limit')}/></default>"


class BarePair(Pair):
    """A file here and in MuJoCo, without contacts and dry friction."""

    def __init__(self, path: Path):
        text = path.read_text(errors="replace")
        source = path
        if "<mujoco" in text:
            # beside the file, for its meshes and included files
            source = path.with_name(f"{path.stem}__soft.xml")
            head = text.index(">", text.index("<mujoco")) + 1
            source.write_text(text[:head] + _SOFT + text[head:])
        try:
            self._read(source)
        finally:
            if source is not path:
                source.unlink()

    def _read(self, source: Path) -> None:
        from newton_like.solvers import SolverFeatherstone

        self.mj = mujoco.MjModel.from_xml_path(str(source))
        builder = ModelBuilder()
        self.report = builder.add_mjcf(str(source))
        builder.shape_flags = [int(flags) & ~int(ShapeFlags.COLLIDE_SHAPES) for flags in builder.shape_flags]
        builder.joint_friction = [0.0] * len(builder.joint_friction)
        builder.tendons = [replace(tendon, friction=0.0) for tendon in builder.tendons]
        self.builder = builder
        self.model = builder.finalize("cpu", dtype=wp.float64)
        opt = self.mj.opt
        # the time step of the file, which `accelerations` changes
        self.timestep = float(opt.timestep)
        opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS)
        opt.integrator, opt.density, opt.viscosity = mujoco.mjtIntegrator.mjINT_EULER, 0.0, 0.0
        opt.solver, opt.iterations, opt.tolerance = mujoco.mjtSolver.mjSOL_NEWTON, 200, 1.0e-14
        self.data = mujoco.MjData(self.mj)
        self.state, self.control = self.model.state(), self.model.control()
        self.solver = SolverFeatherstone(
            self.model, evaluator="general", width=1, unsupported_contacts="ignore", iterations=64
        )

    def random(self, rng) -> tuple:
        """Coordinates within the limits of joints, velocities, activations and controls."""
        mj = self.mj
        qpos = mj.qpos0.copy()
        for j in range(mj.njnt):
            at, kind = mj.jnt_qposadr[j], mj.jnt_type[j]
            if kind == mujoco.mjtJoint.mjJNT_FREE:
                qpos[at : at + 7] += 0.2 * rng.normal(size=7)
            elif kind == mujoco.mjtJoint.mjJNT_BALL:
                qpos[at : at + 4] += 0.2 * rng.normal(size=4)
            elif mj.jnt_limited[j]:
                low, high = mj.jnt_range[j]
                qpos[at] = low + (high - low) * rng.uniform(0.1, 0.9)
            else:
                qpos[at] += rng.uniform(-0.3, 0.3)
        low, high = np.where(mj.actuator_ctrllimited[:, None] != 0, mj.actuator_ctrlrange, (-1.0, 1.0)).T
        ctrl = low + (high - low) * rng.uniform(0.2, 0.8, mj.nu)
        qvel = 0.3 * rng.normal(size=mj.nv) / np.maximum(1.0, SLOW_DECAY * self.decay())
        return qpos, qvel, rng.uniform(0.0, 0.5, mj.na), ctrl

    def decay(self) -> np.ndarray:
        """The rates [1/s] at which dampers of joints stop their degrees of freedom, with the inertias of the initial pose."""
        return self.mj.dof_damping * self.mj.dof_invweight0

    def accelerations(self, rng) -> float:
        """The difference of the accelerations at a random state."""
        dt = min(STEP, STEP_OF_DECAY / max(self.decay().max(), 1.0))
        self.mj.opt.timestep = dt
        qpos, qvel, act, ctrl = self.random(rng)
        self.set(qpos, qvel, act, ctrl)
        before = self.state.joint_qd.numpy().copy()
        theirs = self.data.qacc.copy()
        self.step(dt)
        self.state.joint_qd.assign((self.state.joint_qd.numpy() - before) / dt)
        ours = self.velocities()
        # the velocity of the origin of a free body turns with the body
        for j in np.flatnonzero(self.mj.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
            body, at = self.mj.jnt_bodyid[j], self.mj.jnt_dofadr[j]
            spin = self.data.xmat[body].reshape(3, 3) @ self.data.qvel[at + 3 : at + 6]
            arm = self.data.xipos[body] - self.data.xpos[body]
            ours[at : at + 3] -= np.cross(spin, np.cross(spin, arm))
        return float(np.abs(ours - theirs).max() / (1.0 + np.abs(theirs).max()))

    def places(self) -> np.ndarray:
        """Origins of all bodies here."""
        poses, found = self.state.body_q.numpy(), np.zeros((self.mj.nbody, 3))
        for i in range(1, self.mj.nbody):
            name = mujoco.mj_id2name(self.mj, mujoco.mjtObj.mjOBJ_BODY, i) or [*self.report.frames][i]
            link, pose = self.report.frames[name]
            x, y, z, w = poses[link][3:] if link >= 0 else (0.0, 0.0, 0.0, 1.0)
            turn = np.zeros(9)
            mujoco.mju_quat2Mat(turn, np.array([w, x, y, z]))
            found[i] = turn.reshape(3, 3) @ pose[:3] + (poses[link][:3] if link >= 0 else 0.0)
        return found

    def fall(self, ctrl, part: int = 1) -> tuple[float, float]:
        """The longest way of a body in MuJoCo, and the largest difference of places at the end, in steps of `part` parts of a step."""
        mj, data = self.mj, self.data
        dt = min(self.timestep, FALL_STEP) / part
        mj.opt.timestep = dt
        self.solver.reset(self.state)
        self.set(mj.qpos0, np.zeros(mj.nv), np.zeros(mj.na), ctrl)
        way = np.zeros(mj.nbody)
        for _ in range(round(FALL / dt)):
            last = data.xpos.copy()
            mujoco.mj_step(mj, data)
            mujoco.mj_kinematics(mj, data)
            way += np.linalg.norm(data.xpos - last, axis=1)
            self.step(dt)
        return float(way.max()), float(np.linalg.norm(self.places() - data.xpos, axis=1).max())


def interesting(mj) -> str:
    """Letters of what a model has: l(oops and welds), p(olynomials), t(endons), m(uscles), a(ctuators with laws of their own)."""
    kinds = set(mj.eq_type.tolist()) if mj.neq else set()
    found = "l" * bool(kinds & {0, 1}) + "p" * bool(kinds & {2, 3}) + "t" * bool(mj.ntendon)
    if mj.nu:
        muscles = (mj.actuator_gaintype == mujoco.mjtGain.mjGAIN_MUSCLE).any()
        own = mj.na > 0 or (mj.actuator_trntype > 1).any() or (mj.actuator_gaintype != 0).any()
        found += "m" * bool(muscles) + "a" * bool(own and not muscles)
    return found


def agrees(row: dict) -> bool:
    """Whether the falls of a row agree."""
    return row["fall"] != "" and row["fall"] <= max(CLOSE_FALL * row["way"], CLOSE_WAY)


def compare(path: Path, states: int, every: bool, rng) -> dict | None:
    """One row of the table; None: a file that is left out."""
    try:
        mj = mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        return None
    if mj.nv == 0:
        return None
    row = {
        "file": str(path),
        "has": interesting(mj),
        "nv": mj.nv,
        "taken": True,
        "why": "",
        "acc": "",
        "way": "",
        "fall": "",
        "part": 1,
    }
    if not (row["has"] or every):
        try:
            builder = ModelBuilder()
            builder.add_mjcf(str(path))
        except (ValueError, KeyError) as error:
            row.update(taken=False, why=f"{type(error).__name__}: {error}")
        return row
    try:
        pair = BarePair(path)
    except Exception as error:
        return row | {"taken": False, "why": f"{type(error).__name__}: {str(error)[:300]}"}
    try:
        row["data"] = [f"{a.name} ({a.kind})" for a in pair.report.actuators if a.drive is None]
        row["acc"] = max(pair.accelerations(rng) for _ in range(states))
        _, _, _, ctrl = pair.random(rng)
        for row["part"] in (1, PARTS):
            row["way"], row["fall"] = pair.fall(ctrl, row["part"])
            if agrees(row):
                break
    except Exception:
        row["why"] = traceback.format_exc(limit=-2)[-400:]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--states", type=int, default=5)
    parser.add_argument("--all", action="store_true", help="compare all files")
    parser.add_argument("--match", default="", help="text that paths contain")
    args = parser.parse_args()
    wp.config.quiet = True
    warnings.simplefilter("ignore")
    rows = []
    for folder in args.folders:
        for path in sorted(folder.rglob("*.xml")):
            if args.match not in str(path) or "__soft" in path.name:
                continue
            began = time.time()
            row = compare(path, args.states, args.all, np.random.default_rng(1))
            if row is None:
                continue
            rows.append(row)
            if row["has"] or args.all or not row["taken"]:
                numbers = [f"{row[k]:.1e}" if row[k] != "" else "-" for k in ("acc", "fall", "way")]
                good = row["acc"] != "" and row["acc"] <= CLOSE and agrees(row)
                mark = "ok  " if good else "DIFF" if row["taken"] else "no  "
                print(mark, row["has"].ljust(4), str(row["nv"]).rjust(4), *numbers, str(path.relative_to(folder)),
                    *["fifth"] * (row["part"] > 1), f"{time.time() - began:.0f}s", row["why"].replace("\n", " "),
                    *(["data:", *row["data"][:3]] if row.get("data") else []),
                    flush=True)  # fmt: skip
    taken = sum(row["taken"] for row in rows)
    compared = [row for row in rows if row["acc"] != ""]
    close = [row for row in compared if row["acc"] <= CLOSE]
    falls = [row for row in compared if agrees(row)]
    print(
        f"{len(rows)} files, {taken} taken by the solver; {len(compared)} compared: accelerations of {len(close)} agree, falls of"
        f" {len(falls)}"
    )


if __name__ == "__main__":
    main()
