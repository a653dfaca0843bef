"""Multirotors under Lee control beside the same bodies in MuJoCo: ``python -m tests.benchmarks.bench_multirotor``.

Here, a step is control, allocation, motors, forces and physics of all worlds. In MuJoCo C it is ``mj_step`` of a free body with a motor at
each of its rotor sites and constant thrusts, without a controller, by ``mujoco.rollout`` on as many threads. Both take turns; minima over
rounds. Times are wall time, and time of processors, which other programs disturb less. First, both engines fly the same vehicles with the
same thrusts, and must end at the same states.
"""

from __future__ import annotations

import argparse
import platform
import time

import mujoco
import numpy as np
from mujoco import rollout

import newton_like as nl
from newton_like.articulation import SimulationContext
from newton_like.articulation.multirotor import VEHICLES, LeePositionController, Multirotor, add_vehicle
from newton_like.threads import worker_count

DT = 0.004
AGREEMENT = 1.5e-3
"""Largest difference of positions [m] and quaternions after the flight that is compared."""


def drones(vehicle: str, worlds: int) -> Multirotor:
    """Vehicles in random poses near their places, under position control."""
    one = nl.ModelBuilder()
    settings = add_vehicle(one, vehicle)
    scene = nl.ModelBuilder()
    scene.replicate(one, worlds)
    rng = np.random.default_rng(0)
    q = np.zeros((worlds, 7))
    q[:, :3], q[:, 6] = rng.normal(size=(worlds, 3)), 1.0
    q[:, 3:6] = rng.uniform(-0.1, 0.1, (worlds, 3))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1)[:, None]
    scene.joint_q = q.ravel()
    sim = SimulationContext(scene.finalize("cpu"), dt=DT)
    drone = Multirotor(sim, "*", settings)
    drone.controller = LeePositionController(drone, max_acceleration=4.0)
    drone.controller.set_command(np.concatenate([rng.normal(size=(worlds, 3)), np.zeros((worlds, 1))], axis=1))
    return drone


def peer(drone: Multirotor) -> mujoco.MjModel:
    """The body in MuJoCo, with a motor for each rotor at its site."""
    masses, n = drone.rotors.masses, drone.num_thrusters
    matrix, frames = drone.allocation_matrix.numpy(), drone.model.frames.transform[:n]
    axes, ratio = matrix[:3].T, matrix[3:].T - np.cross(frames[:, :3] - masses.centre[0], matrix[:3].T)
    sites = "".join(f'<site name="s{i}" pos="{x} {y} {z}"/>' for i, (x, y, z) in enumerate(frames[:, :3]))
    gears = [" ".join(map(str, (*a, *r))) for a, r in zip(axes, ratio, strict=True)]
    motors = "".join(f'<motor site="s{i}" gear="{gear}"/>' for i, gear in enumerate(gears))
    text = [" ".join(map(str, x)) for x in (masses.centre[0], np.diag(masses.moments[0]))]
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{DT}"/><worldbody><body><freejoint/><inertial pos="{text[0]}" mass="{masses.total[0]}"'
        f' diaginertia="{text[1]}"/>{sites}</body></worldbody><actuator>{motors}</actuator></mujoco>'
    )


def states(drone: Multirotor, model: mujoco.MjModel) -> np.ndarray:
    """States of the vehicles for `mujoco.rollout`."""
    state, n = drone.sim.state, drone.num_instances
    q, v = state.body_q.numpy().astype(float), state.body_qd.numpy().astype(float)
    result = np.zeros((n, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    result[:, 1:4], result[:, 4], result[:, 5:8] = q[:, :3], q[:, 6], q[:, 3:6]
    r = np.array([rotation(x) for x in q[:, 3:]])
    result[:, 8:11] = v[:, :3] - np.cross(v[:, 3:], r @ drone.rotors.masses.centre[0])
    result[:, 11:14] = np.einsum("nji,nj->ni", r, v[:, 3:])
    return result


def rotation(q: np.ndarray) -> np.ndarray:
    """The rotation matrix of a quaternion x y z w."""
    m = np.zeros(9)
    mujoco.mju_quat2Mat(m, np.array([q[3], *q[:3]]))
    return m.reshape(3, 3)


def check(vehicle: str, steps: int = 50) -> float:
    """The largest difference of the engines after a flight of 16 vehicles with recorded thrusts.

    Raises:
        AssertionError: it is above `AGREEMENT`.
    """
    drone = drones(vehicle, 16)
    model = peer(drone)
    # positions of Euler's method, which is what is timed, are wrong by a half of acceleration, time and time step
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    start, thrusts = states(drone, model), []
    for _ in range(steps):
        drone.write_data_to_sim()
        thrusts.append(drone.data.applied_thrust.numpy().astype(float))
        drone.sim.step()
    ends, _ = rollout.rollout(model, mujoco.MjData(model), start, np.stack(thrusts, axis=1))
    q = drone.sim.state.body_q.numpy()
    there = np.concatenate([ends[:, -1, 1:4], ends[:, -1, 5:8], ends[:, -1, 4:5]], axis=1)
    there[:, 3:] *= np.sign(np.sum(there[:, 3:] * q[:, 3:], axis=1))[:, None]
    difference = float(np.abs(there - q).max())
    assert difference < AGREEMENT, f"{vehicle}: the engines differ by {difference:.1e} after {steps} steps"
    return difference


def timed(job, steps: int) -> tuple[float, float]:
    """Seconds of wall time and of processors for a step."""
    wall, used = time.perf_counter(), time.process_time()
    job()
    return (time.perf_counter() - wall) / steps, (time.process_time() - used) / steps


def measure(vehicle: str, worlds: int, rounds: int, steps: int, peer_worlds: int) -> list[tuple[str, float, float]]:
    """Microseconds of a step of a world, wall time and time of processors: minima over rounds."""
    drone = drones(vehicle, worlds)
    model, threads = peer(drone), worker_count()
    data = [mujoco.MjData(model) for _ in range(threads)]
    start = states(drone, model)[:peer_worlds]

    def fly() -> None:
        for _ in range(steps):
            drone.write_data_to_sim()
            drone.sim.step()

    def bare() -> None:
        for _ in range(steps):
            drone.sim.step()

    thrust = np.repeat(drone.data.applied_thrust.numpy().astype(float)[:peer_worlds, None], steps, axis=1)
    with rollout.Rollout(nthread=threads) as pool:
        jobs = {
            "newton_like: Lee control, motors, physics": (fly, worlds),
            "newton_like: physics alone": (bare, worlds),
            "MuJoCo C: physics with thrusts at sites": (lambda: pool.rollout(model, data, start, thrust), peer_worlds),
        }
        times: dict = {name: [] for name in jobs}
        for _ in range(rounds + 1):
            for name, (job, count) in jobs.items():
                times[name].append(1.0e6 * np.array(timed(job, steps)) / count)
            # without control, vehicles drift: back to their places
            fly()
    return [(name, *np.min(values[1:], axis=0)) for name, values in times.items()]


def main(arguments: list[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--vehicles", nargs="+", default=["iris"], choices=list(VEHICLES))
    options.add_argument("--worlds", type=int, default=16384)
    options.add_argument(
        "--peer-worlds", type=int, default=2048, help="worlds of MuJoCo, whose time for a world is the same"
    )
    options.add_argument("--rounds", type=int, default=30)
    options.add_argument("--steps", type=int, default=20, help="steps of a round")
    args = options.parse_args(arguments)
    print(
        f"{platform.processor() or platform.machine()}, {worker_count()} threads, {args.worlds} worlds, {DT:g} s a step\n"
    )
    print(
        "| vehicle | engine | wall [us] | processors [us] | times MuJoCo's speed: wall, processors |\n| --- | --- | --- | --- | --- |"
    )
    for vehicle in args.vehicles:
        check(vehicle)
        rows = measure(vehicle, args.worlds, args.rounds, args.steps, min(args.peer_worlds, args.worlds))
        _, wall, used = rows[-1]
        for name, a, b in rows:
            print(f"| {vehicle} | {name} | {a:.4f} | {b:.4f} | {wall / a:.1f}, {used / b:.1f} |")


if __name__ == "__main__":
    main()
