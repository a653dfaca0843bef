"""This engine and MuJoCo behind one interface: settle a case, set a batch up, run bursts of steps.

What a burst takes is the stepping alone; commands are worked out and handed over outside of it.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import mujoco
import mujoco.rollout
import numpy as np
import warp as wp

import newton_like
from newton_like.solvers import SolverFeatherstone

from ..support.mujoco_bridge import MujocoBridge
from .cases import SETTLED, Case

THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
DEVICE = "cpu"


@dataclass
class Settled:
    """What `SETTLED` worlds came to.

    Attributes:
        heights: of the base at the end [world] [m].
        distance: that the base has moved along x [world] [m].
        touching: number of shapes that touch the ground [world].
        force: of the ground, upward, over the robot's weight; None where it is not known.
        finite: no NaN.
    """

    heights: np.ndarray
    distance: np.ndarray
    touching: np.ndarray
    force: np.ndarray | None
    finite: bool


class NewtonLike:
    """`newton_like.solvers.SolverFeatherstone`."""

    def __init__(self, case: Case, evaluator: str, device: str = DEVICE):
        self.case, self.evaluator, self.device = case, evaluator, device
        self.name = f"newton_like, {evaluator}"

    def build(self, worlds: int) -> None:
        """Model, states and solver."""
        self.worlds = worlds
        self.model = self.case.scene(newton_like, worlds).finalize(self.device)
        self.state, self.control = self.model.state(), self.model.control()
        self.solver = SolverFeatherstone(
            self.model, evaluator=self.evaluator, threads=THREADS, unsupported_contacts="ignore"
        )
        self.step_count = 0

    def set_state(self, q: np.ndarray, qd: np.ndarray | None = None) -> None:
        """Coordinates and velocities ``[SETTLED, n]``, repeated or cut to the number of worlds."""
        pick = np.arange(self.worlds) % SETTLED
        self.state.joint_q.assign(q[pick].ravel())
        if qd is not None:
            self.state.joint_qd.assign(qd[pick].ravel())

    def command(self) -> None:
        """Targets of the step that comes."""
        if self.case.targets is None:
            return
        q, qd = self.case.commands(self.step_count, self.worlds)
        for array, values in ((self.control.joint_target_q, q), (self.control.joint_target_qd, qd)):
            rows = array.numpy().reshape(self.worlds, -1)
            rows[:, -q.shape[1] :] = values
            if self.device != "cpu":
                array.assign(rows.ravel())

    def burst(self, steps: int) -> float:
        """Seconds that some steps take."""
        solver, state, control, dt, busy = self.solver, self.state, self.control, self.case.dt, 0.0
        if self.case.targets is None:
            begin = time.perf_counter()
            for _ in range(steps):
                solver.step(state, state, control, None, dt)
            wp.synchronize_device(self.device)
            return time.perf_counter() - begin
        for _ in range(steps):
            self.command()
            begin = time.perf_counter()
            solver.step(state, state, control, None, dt)
            wp.synchronize_device(self.device)
            busy += time.perf_counter() - begin
            self.step_count += 1
        return busy

    def settle(self) -> Settled:
        """Runs `SETTLED` worlds from their starts; `rest` is what they come to."""
        self.build(SETTLED)
        start = self.case.starts(self.model.joint_q.numpy().reshape(SETTLED, -1)[0])
        self.set_state(start)
        self.burst(self.case.steps_to_settle)
        q = self.state.joint_q.numpy().reshape(SETTLED, -1).astype(np.float64)
        qd = self.state.joint_qd.numpy().reshape(SETTLED, -1).astype(np.float64)
        self.rest = q, qd
        model = self.model
        body = model.shape_body.numpy()
        force = self.solver.contact_forces().numpy()[body >= 0].reshape(SETTLED, -1, 3)
        weight = 9.81 * model.body_mass.numpy().reshape(SETTLED, -1).sum(axis=1)
        touching = (np.abs(force).max(axis=2) > 0.0).sum(axis=1)
        finite = bool(np.isfinite(q).all() and np.isfinite(qd).all())
        return Settled(q[:, 2], q[:, 0] - start[:, 0], touching, force[:, :, 2].sum(axis=1) / weight, finite)

    def prepare(self, worlds: int) -> None:
        """A batch of worlds that have settled."""
        self.build(worlds)
        self.set_state(*self.rest)
        self.step_count = self.case.steps_to_settle
        self.burst(4)

    def heights(self) -> np.ndarray:
        """Heights of the bases now [world]."""
        return self.state.joint_q.numpy().reshape(self.worlds, -1)[:, 2]


class Mujoco:
    """MuJoCo in C on the model that the bridge makes of ours: `mujoco.rollout` on all cores, or `mj_step` on one."""

    def __init__(self, case: Case, model, loop: bool = False):
        """`model`: of this engine, finalized."""
        self.case, self.loop = case, loop
        self.name = "mujoco, mj_step, one core" if loop else f"mujoco.rollout, {THREADS} threads"
        self.bridge = MujocoBridge(model, contacts=True, limits=True, friction=True, drives=True)
        self.model = self.bridge.model
        self.model.opt.timestep = case.dt
        self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        self.start = case.starts(model.joint_q.numpy().reshape(model.world_count, -1)[0])
        self.rest_target = model.joint_target_q.numpy().reshape(model.world_count, -1)[0].astype(np.float64)
        threads = 1 if loop else THREADS
        self.data = [mujoco.MjData(self.model) for _ in range(threads)]
        self.pool = mujoco.rollout.Rollout(nthread=threads)
        self._spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
        self._size = mujoco.mj_stateSize(self.model, self._spec)

    def controls(self, step: int, steps: int) -> np.ndarray:
        """``[world, steps, actuator]``"""
        bridge, dofs = self.bridge, self.bridge.tree.dof_count
        if self.case.targets is None:
            u = bridge.ctrl(self.rest_target, np.zeros(dofs), np.zeros(dofs))
            return np.broadcast_to(u, (self.worlds, steps, len(u))).copy()
        out = np.empty((self.worlds, steps, self.model.nu))
        for i in range(steps):
            q, qd = self.case.commands(step + i, self.worlds)
            # all joints of these cases are hinges with drives, in our order
            out[:, i] = bridge._ke[bridge._driven] * q + bridge._kd[bridge._driven] * qd
        return out

    def settle(self) -> Settled:
        """As `NewtonLike.settle`."""
        self.worlds = SETTLED
        state = np.zeros((SETTLED, self._size))
        data, tree = self.data[0], self.bridge.tree
        for w in range(SETTLED):
            data.qpos[:], data.qvel[:] = self.bridge.qpos(self.start[w]), 0.0
            data.time = 0.0
            mujoco.mj_getState(self.model, data, state[w], self._spec)
        steps = self.case.steps_to_settle
        out, _ = self.pool.rollout(self.model, self.data, state, self.controls(0, steps), nstep=steps)
        self.rest = out[:, -1].copy()
        self.warmstart = np.zeros((SETTLED, self.model.nv))
        heights, distance, touching, force = (np.zeros(SETTLED) for _ in range(4))
        weight, one = 9.81 * tree.body_mass.sum(), np.zeros(6)
        last = self.controls(steps - 1, 1)
        for w in range(SETTLED):
            mujoco.mj_setState(self.model, data, self.rest[w], self._spec)
            data.ctrl[:] = last[w, 0]
            mujoco.mj_forward(self.model, data)
            self.warmstart[w] = data.qacc_warmstart
            q = self.bridge.q(data.qpos)
            heights[w], distance[w] = q[2], q[0] - self.start[w, 0]
            touching[w] = len({max(c.geom1, c.geom2) for c in data.contact if c.efc_address >= 0})
            for i in range(data.ncon):
                mujoco.mj_contactForce(self.model, data, i, one)
                force[w] += (data.contact[i].frame.reshape(3, 3).T @ one[:3])[2] / weight
        return Settled(heights, distance, touching, np.abs(force), bool(np.isfinite(out).all()))

    def prepare(self, worlds: int) -> None:
        """A batch of worlds that have settled."""
        pick = np.arange(worlds) % SETTLED
        self.worlds = worlds
        self.state, self.warm = self.rest[pick].copy(), self.warmstart[pick].copy()
        self.step_count = self.case.steps_to_settle
        if self.loop:
            mujoco.mj_setState(self.model, self.data[0], self.state[0], self._spec)
            self.data[0].qacc_warmstart[:] = self.warm[0]

    def burst(self, steps: int) -> float:
        """Seconds that some steps take."""
        controls = self.controls(self.step_count, steps)
        self.step_count += steps
        model, data = self.model, self.data[0]
        if self.loop and self.case.targets is None:
            data.ctrl[:] = controls[0, 0]
            begin = time.perf_counter()
            mujoco.mj_step(model, data, steps)
            return time.perf_counter() - begin
        if self.loop:
            begin = time.perf_counter()
            for i in range(steps):
                data.ctrl[:] = controls[0, i]
                mujoco.mj_step(model, data)
            return time.perf_counter() - begin
        begin = time.perf_counter()
        out, _ = self.pool.rollout(
            model, self.data, self.state, controls, nstep=steps, initial_warmstart=self.warm, skip_checks=False
        )
        busy = time.perf_counter() - begin
        self.state = np.ascontiguousarray(out[:, -1])
        return busy

    def heights(self) -> np.ndarray:
        """Heights of the bases now [world]."""
        return np.array([self.data[0].qpos[2]]) if self.loop else self.state[:, 3]
