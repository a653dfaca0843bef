"""`eval_fk` of this engine and of Newton on the same robots."""

from __future__ import annotations

import time

import numpy as np
import warp as wp

import newton_like

from .cases import Case
from .engines import DEVICE
from .peers import silence


class ForwardKinematics:
    """Poses and velocities of all bodies of many worlds, by one engine."""

    def __init__(self, case: Case, engine, device: str = DEVICE):
        self.case, self.engine, self.device = case, engine, device
        self.name = f"{engine.__name__} eval_fk"

    def prepare(self, worlds: int) -> None:
        """Random coordinates, the same for both engines."""
        with silence():
            self.model = self.case.scene(self.engine, worlds).finalize(self.device)
        self.worlds, self.state = worlds, self.model.state()
        rng = np.random.default_rng(3)
        q = self.model.joint_q.numpy().reshape(worlds, -1).copy()
        q[:, :3] += rng.normal(0.0, 1.0, (worlds, 3))
        q[:, 3:7] = rng.normal(size=(worlds, 4))
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        q[:, 7:] += rng.normal(0.0, 0.5, q[:, 7:].shape)
        self.state.joint_q.assign(q.ravel())
        self.state.joint_qd.assign(rng.normal(0.0, 1.0, self.model.joint_dof_count))
        self.burst(2)

    def burst(self, calls: int) -> float:
        """Seconds that some calls take."""
        model, state, eval_fk = self.model, self.state, self.engine.eval_fk
        begin = time.perf_counter()
        for _ in range(calls):
            eval_fk(model, state.joint_q, state.joint_qd, state)
        wp.synchronize_device(self.device)
        return time.perf_counter() - begin

    def results(self) -> np.ndarray:
        """Poses, and velocities of the bodies, in one row."""
        return np.concatenate([self.state.body_q.numpy().ravel(), self.state.body_qd.numpy().ravel()])


def pair(case: Case) -> list[ForwardKinematics]:
    """Both engines on a case; ours alone where Newton is not installed."""
    ours = ForwardKinematics(case, newton_like)
    try:
        import newton
    except ImportError:
        return [ours]
    return [ours, ForwardKinematics(case, newton)]
