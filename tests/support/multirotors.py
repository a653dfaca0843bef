"""Multirotors for tests: a model of many worlds with one vehicle each."""

from __future__ import annotations

import numpy as np

import newton_like as nl
from newton_like.articulation.multirotor import Multirotor, MultirotorCfg, ThrusterCfg, add_vehicle
from newton_like.articulation.simulation import SimulationContext

NO_LAG = {"time_constant_up": 0.0, "time_constant_down": 0.0}


def flock(vehicle: str = "iris", count: int = 5, dt: float = 0.004, cfg=None, edit=None, **options) -> Multirotor:
    """A vehicle of the project in each of `count` worlds, in a context of the general solver.

    Args:
        vehicle: its name.
        count: number of worlds.
        dt: physics step [s].
        cfg: function that edits the settings in place.
        edit: function that edits the builder of a world.
        **options: arguments of the solver.
    """
    one = nl.ModelBuilder()
    settings = add_vehicle(one, vehicle)
    if edit is not None:
        edit(one)
    if cfg is not None:
        cfg(settings)
    return in_worlds(one, settings, count, dt, vehicle, **options)


def in_worlds(one, settings: MultirotorCfg, count: int, dt: float, pattern: str = "*", **options) -> Multirotor:
    """The multirotor of a builder in each of `count` worlds."""
    scene = nl.ModelBuilder()
    scene.replicate(one, count)
    sim = SimulationContext(scene.finalize("cpu"), dt=dt, **{"evaluator": "general", **options})
    return Multirotor(sim, pattern, settings)


def frame_vehicle(rng, thrusters: int = 4, mass: float = 1.2, cfg: ThrusterCfg | None = None, **settings):
    """A builder of one body with a random inertia, and thrusters at random places with random directions, and its settings."""
    one = nl.ModelBuilder()
    a = rng.normal(size=(3, 3))
    points = 0.1 * rng.normal(size=(12, 3)) @ (a + 2 * np.eye(3))
    points -= points.mean(axis=0)
    moments = mass / 12 * sum(p @ p * np.eye(3) - np.outer(p, p) for p in points)
    body = one.add_link(mass=mass, com=0.05 * rng.normal(size=3), inertia=moments, label="body")
    one.add_articulation([one.add_joint_free(body)], label="craft")
    quats = rng.normal(size=(thrusters, 4))
    quats /= np.linalg.norm(quats, axis=1)[:, None]
    poses = np.concatenate([0.3 * rng.normal(size=(thrusters, 3)), quats], axis=1)
    one.frames.extend([f"rotor_{i}" for i in range(thrusters)], [body] * thrusters, poses)
    group = cfg or ThrusterCfg("rotor_.*", (0.0, 20.0), 1.0e-3, **NO_LAG)
    return one, MultirotorCfg({"rotors": group}, **{"rotor_directions": rng.choice([-1.0, 1.0], thrusters), **settings})


def place(drone: Multirotor, rng, spread: float = 1.0, speed: float = 1.0, tilt: float | None = None) -> None:
    """Gives vehicles random poses and velocities; `tilt`: the largest angle of rotation about a random axis; None: any orientation."""
    model, state, n = drone.model, drone.sim.state, drone.num_instances
    q = state.joint_q.numpy().reshape(n, -1)
    qd = state.joint_qd.numpy().reshape(n, -1)
    q[:, :3] = spread * rng.normal(size=(n, 3))
    turn = rng.normal(size=(n, 4))
    if tilt is not None:
        axis = turn[:, :3] / np.linalg.norm(turn[:, :3], axis=1)[:, None]
        half = 0.5 * rng.uniform(0.0, tilt, n)
        turn = np.concatenate([np.sin(half)[:, None] * axis, np.cos(half)[:, None]], axis=1)
    q[:, 3:7] = turn / np.linalg.norm(turn, axis=1)[:, None]
    qd[:] = speed * rng.normal(size=qd.shape)
    state.joint_q.assign(q.ravel())
    state.joint_qd.assign(qd.ravel())
    nl.eval_fk(model, state.joint_q, state.joint_qd, state)


def fly(drone: Multirotor, steps: int) -> None:
    """Takes physics steps."""
    for _ in range(steps):
        drone.write_data_to_sim()
        drone.sim.step()
