"""Simulation of a model, with results as float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import warp as wp

from newton_like import ModelBuilder
from newton_like.solvers import SolverFeatherstone

GRAVITY = 9.81


class Simulation:
    """A finalized builder with a solver, a state that is stepped in place, and a control.

    It uses only the general kernel of the default width, so that all tests share one compiled kernel a scalar type.

    Args:
        builder: The scene.
        dt: Time step [s].
        dtype: Scalar type of the model.
        edit: Function that is called with the model before the solver is created.
        options: Options of the solver.
    """

    def __init__(
        self,
        builder: ModelBuilder,
        dt: float = 1.0 / 240.0,
        *,
        dtype=wp.float32,
        edit: Callable | None = None,
        **options,
    ):
        self.model = builder.finalize("cpu", dtype=dtype)
        if edit is not None:
            edit(self.model)
        self.solver = SolverFeatherstone(self.model, evaluator="general", **options)
        self.state, self.control, self.dt = self.model.state(), self.model.control(), dt
        self.worlds = self.model.world_count

    def run(self, seconds: float, watch: Callable | None = None, every: int = 1) -> np.ndarray:
        """Simulates some seconds. Returns the results of `watch()` after every `every` steps."""
        seen = []
        for i in range(1, round(seconds / self.dt) + 1):
            self.solver.step(self.state, self.state, self.control, None, self.dt)
            if watch is not None and i % every == 0:
                seen.append(watch())
        return np.array(seen)

    def _read(self, array) -> np.ndarray:
        values = array.numpy().astype(np.float64)
        return values.reshape(self.worlds, -1)

    @property
    def q(self) -> np.ndarray:
        """Joint coordinates [world, coord]."""
        return self._read(self.state.joint_q)

    @property
    def qd(self) -> np.ndarray:
        """Joint velocities [world, dof]."""
        return self._read(self.state.joint_qd)

    @property
    def poses(self) -> np.ndarray:
        """Poses of the links [world, body, 7]."""
        return self._read(self.state.body_q).reshape(self.worlds, -1, 7)

    @property
    def velocities(self) -> np.ndarray:
        """Velocities of the links' centres of mass and their angular velocities [world, body, 6]."""
        return self._read(self.state.body_qd).reshape(self.worlds, -1, 6)

    def set_state(self, q=None, qd=None) -> None:
        """Sets joint coordinates or velocities, of any shape with the right number of entries."""
        for array, values in ((self.state.joint_q, q), (self.state.joint_qd, qd)):
            if values is not None:
                array.assign(np.asarray(values, np.float64).ravel())

    def push(self, wrench) -> None:
        """Sets the wrenches [world, body, 6] on the bodies for all further steps."""
        self.state.body_f.assign(
            np.broadcast_to(wrench, (self.worlds, self.model.body_count // self.worlds, 6)).reshape(-1, 6)
        )


def worlds_of(builders) -> ModelBuilder:
    """A builder with one world for each of the builders."""
    scene = ModelBuilder()
    for builder in builders:
        scene.add_world(builder)
    return scene
