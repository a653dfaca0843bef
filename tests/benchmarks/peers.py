"""Newton and MuJoCo Warp behind the interface of `engines`, for who has them installed."""

from __future__ import annotations

import contextlib
import io
import time
import warnings

import mujoco
import numpy as np
import warp as wp

from .cases import Case
from .engines import DEVICE, Mujoco

SETTLED_WORLDS = 4
"""These engines are slow on a CPU: they settle a few worlds only."""


@contextlib.contextmanager
def silence():
    """Without the warnings and remarks of the peers' importers."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


class Newton:
    """A solver of Newton with Newton's collision detection, as its examples put them together."""

    def __init__(self, case: Case, solver: str, device: str = DEVICE):
        import newton

        self.newton, self.case, self.solver_name, self.device = newton, case, solver, device
        self.name = f"newton {newton.__version__}, {solver}"

    def prepare(self, worlds: int) -> None:
        """Worlds at their starts."""
        newton = self.newton
        with silence():
            self.worlds, self.step_count = worlds, 0
            self.model = self.case.scene(newton, worlds).finalize(self.device)
            self.solver = getattr(newton.solvers, self.solver_name)(self.model)
            self.now, self.next = self.model.state(), self.model.state()
            self.control = self.model.control()
            start = self.case.starts(self.model.joint_q.numpy().reshape(worlds, -1)[0])
            self.now.joint_q.assign(start[np.arange(worlds) % len(start)].ravel())
            newton.eval_fk(self.model, self.now.joint_q, self.now.joint_qd, self.now)
            self.pipeline = newton.CollisionPipeline(self.model)
            self.contacts = self.pipeline.contacts()

    def _command(self) -> None:
        if self.case.targets is None:
            return
        q, qd = self.case.commands(self.step_count, self.worlds)
        for array, values in ((self.control.joint_target_q, q), (self.control.joint_target_qd, qd)):
            rows = array.numpy().reshape(self.worlds, -1)
            rows[:, -q.shape[1] :] = values
            array.assign(rows.ravel())

    def burst(self, steps: int) -> float:
        """Seconds that some steps take, collision detection included."""
        busy = 0.0
        for _ in range(steps):
            self._command()
            begin = time.perf_counter()
            self.now.clear_forces()
            self.pipeline.collide(self.now, self.contacts)
            self.solver.step(self.now, self.next, self.control, self.contacts, self.case.dt)
            self.now, self.next = self.next, self.now
            wp.synchronize_device(self.device)
            busy += time.perf_counter() - begin
            self.step_count += 1
        return busy

    def heights(self) -> np.ndarray:
        """Heights of the bases now [world]."""
        return self.now.body_q.numpy().reshape(self.worlds, -1, 7)[:, 0, 2]


class MujocoWarp:
    """MuJoCo Warp on the MuJoCo model that `engines.Mujoco` runs."""

    def __init__(self, case: Case, mujoco_engine: Mujoco):
        import mujoco_warp

        self.warp, self.case, self.engine = mujoco_warp, case, mujoco_engine
        self.name = "mujoco_warp"

    def prepare(self, worlds: int) -> None:
        """Worlds at their starts."""
        engine = self.engine
        data = mujoco.MjData(engine.model)
        self.worlds, self.step_count = worlds, 0
        with silence():
            self.model = self.warp.put_model(engine.model)
            self.data = self.warp.put_data(engine.model, data, nworld=worlds, nconmax=48, njmax=192)
        start = engine.start[np.arange(worlds) % len(engine.start)]
        self.data.qpos.assign(np.array([engine.bridge.qpos(q) for q in start], np.float32))
        self._command()

    def _command(self) -> None:
        engine = self.engine
        engine.worlds = self.worlds
        self.data.ctrl.assign(engine.controls(self.step_count, 1)[:, 0].astype(np.float32))

    def burst(self, steps: int) -> float:
        """Seconds that some steps take."""
        busy = 0.0
        for _ in range(steps):
            if self.case.targets is not None:
                self._command()
            begin = time.perf_counter()
            self.warp.step(self.model, self.data)
            wp.synchronize()
            busy += time.perf_counter() - begin
            self.step_count += 1
        return busy

    def heights(self) -> np.ndarray:
        """Heights of the bases now [world]."""
        return self.data.qpos.numpy()[:, 2]
