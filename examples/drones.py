"""Shared code of the examples with multirotors: worlds with one vehicle each, under Lee control."""

from __future__ import annotations

import time

import numpy as np
import warp as wp

import newton_like as nl
from examples import common
from examples.blocks import FRAME, Blocks
from newton_like.articulation import SimulationContext
from newton_like.articulation.multirotor import Multirotor, MultirotorCfg


class Drones(Blocks):
    """Worlds with one multirotor each, and their recorded motion; see :class:`examples.blocks.Blocks`.

    A subclass may override :meth:`start`, called before each run, and :meth:`command`, called in every physics step.

    Attributes:
        sim, drone: the simulation and the multirotors.
        thrusts: recorded thrusts, ``[frames, worlds, rotors]`` [N].
    """

    def __init__(
        self,
        world: nl.ModelBuilder,
        settings: MultirotorCfg,
        joint_q: np.ndarray,
        dt: float,
        device: str,
        seed: int,
        scene: nl.ModelBuilder | None = None,
    ):
        """Builds the scene.

        Args:
            world: the builder of a world, whose first body is the vehicle.
            settings: of the vehicle.
            joint_q: poses of the vehicles at the start, ``[worlds, 7]`` [m].
            dt: time step [s].
            device: Warp device.
            seed: of random numbers of :meth:`start`.
            scene: a builder with what all worlds share; None: a ground plane.
        """
        begin = time.perf_counter()
        if scene is None:
            scene = nl.ModelBuilder()
            scene.add_ground_plane()
        scene.replicate(world, len(joint_q))
        scene.joint_q = joint_q.ravel()
        self.settings, self.seed, self.thrusts = settings, seed, []
        self.prepare(scene.finalize(device), len(joint_q), 1, dt, begin)

    def prepare(self, model, worlds: int, boxes: int, dt: float, begin: float) -> None:
        self.model, self.worlds, self.boxes, self.dt, self.time = model, worlds, boxes, dt, 0.0
        self.substeps = common.steps_in(FRAME, dt)
        self.frame_time = self.substeps * dt
        # the general kernels are compiled once for all scenes
        self.sim = SimulationContext(model, dt=dt, evaluator="general")
        self.drone = Multirotor(self.sim, "*", self.settings, evaluator="general")
        self.state, self.solver = self.sim.state, self.sim.solver
        self.setup()
        # videos show thrusts and goals
        self.drone.debug_vis_cfg.frames = False
        self.drone.set_debug_vis(True)
        self.reset()
        self.advance()
        self.reset()
        self.poses: list[np.ndarray] = []
        self.thrusts = []
        self.ready = time.perf_counter() - begin

    def setup(self) -> None:
        """Makes the controller."""

    def start(self) -> None:
        """Prepares a run."""

    def command(self) -> None:
        """Prepares a physics step."""

    def reset(self) -> None:
        self.drone.reset_to()
        self.time = 0.0
        self.start()
        wp.synchronize_device(self.model.device)

    def advance(self) -> None:
        for _ in range(self.substeps):
            self.command()
            self.drone.write_data_to_sim()
            self.sim.step()
            self.time += self.dt

    def observe(self) -> None:
        self.sim.forward()
        super().observe()
        self.thrusts.append(self.drone.data.applied_thrust.numpy().copy())

    def heights_and_places(self) -> np.ndarray:
        """Positions of the vehicles, ``[frames, worlds, 3]`` [m]."""
        return np.array(self.poses)[:, :, 0, :3]
