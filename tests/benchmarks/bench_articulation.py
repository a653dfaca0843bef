"""A step of an environment beside the bare step of the solver: ``python -m tests.benchmarks.bench_articulation``.

Quadrupeds stand on the ground. A step of the environment sets position targets, runs the actuators, steps, and reads all data of the root
and the joints. Both take turns; medians over rounds, also of the ratio. Before anything is timed, the states after some steps of the
environment are compared with those of bare steps with the same drives (implicit actuators): they must be equal bit for bit. The last
columns are the time of a reset of all worlds, and of one in fifty.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import newton_like as nl
from newton_like.articulation import (
    Articulation,
    DCMotorCfg,
    DelayedPDActuatorCfg,
    IdealPDActuatorCfg,
    ImplicitActuatorCfg,
    SimulationContext,
)
from newton_like.articulation.data.fields import Part, View
from newton_like.solvers import SolverFeatherstone

from .cases import design_quadruped
from .peers import silence

GAINS = dict(stiffness=60.0, damping=2.0, effort_limit=30.0)
ACTUATORS = {
    "implicit PD": ImplicitActuatorCfg(**GAINS),
    "ideal PD": IdealPDActuatorCfg(**GAINS),
    "DC motor": DCMotorCfg(velocity_limit=20.0, saturation_effort=40.0, **GAINS),
    "delayed PD": DelayedPDActuatorCfg(min_delay=0, max_delay=4, **GAINS),
    "implicit PD, other friction at rest": ImplicitActuatorCfg(friction=0.2, dynamic_friction=0.1, **GAINS),
}
DT = 1.0 / 240.0


def quadrupeds(worlds: int):
    """A model of quadrupeds on the ground."""
    builder = nl.ModelBuilder()
    builder.replicate(design_quadruped(nl), worlds)
    builder.add_ground_plane()
    return builder.finalize("cpu")


def scene(worlds: int) -> SimulationContext:
    """Quadrupeds on the ground, with a simulation."""
    return SimulationContext(quadrupeds(worlds), dt=DT)


def names(data) -> list[str]:
    """All properties of the root and the joints."""
    fields = [n for n in dir(type(data)) if isinstance(getattr(type(data), n), Part | View)]
    return [n for n in fields if n.startswith(("root_", "joint_", "projected", "heading"))] + [
        "computed_torque",
        "applied_torque",
        "joint_pos_limits",
        "soft_joint_pos_limits",
    ]


class Environment:
    """One kind of actuators, beside bare steps of the same worlds."""

    def __init__(self, worlds: int, actuator, plain: tuple | None = None):
        self.sim = scene(worlds)
        label = self.sim.model.articulation_label[0]
        self.robot = Articulation(self.sim, label, actuators={"legs": actuator})
        self.read = names(self.robot.data)
        self.actions = np.array(self.robot.data.default_joint_pos.numpy())
        # a twin without assets, with implicit drives and the same friction, whose steps write no accelerations
        rubbed = {name: getattr(self.sim.model, name) for name in ("joint_friction", "joint_friction_ratio")}
        if plain is None or any((getattr(plain[0].model, n).numpy() != own.numpy()).any() for n, own in rubbed.items()):
            model = scene(worlds).model
            Articulation(model, label, actuators={"legs": ACTUATORS["implicit PD"]})
            twin = quadrupeds(worlds)
            for name, own in rubbed.items():
                getattr(twin, name).assign(own)
            for name in (
                "joint_target_ke",
                "joint_target_kd",
                "joint_target_mode",
                "joint_effort_limit",
                "joint_velocity_limit",
            ):
                getattr(twin, name).assign(getattr(model, name))
            plain = SolverFeatherstone(twin), twin.state(), twin.control()
        self.plain = plain

    def step(self) -> None:
        """A step of the environment."""
        robot, data = self.robot, self.robot.data
        robot.set_joint_position_target(self.actions)
        self.sim.advance(robot)
        for name in self.read:
            getattr(data, name)

    def bare(self) -> None:
        """A step of the solver."""
        solver, state, control = self.plain
        solver.step(state, state, control, dt=DT)


def check(env: Environment) -> None:
    """Raises AssertionError unless the environment moves as the solver alone."""
    env.robot.reset_to()
    for _ in range(20):
        env.step()
    found = env.sim.state.joint_q.numpy().copy()
    solver, state, control = env.plain
    for name in ("joint_target_q", "joint_target_qd", "joint_act"):
        getattr(control, name).assign(getattr(env.sim.control, name))
    solver.reset(state)
    for _ in range(20):
        env.bare()
    assert np.array_equal(found, state.joint_q.numpy()), "the environment and the solver alone differ"


def measure(jobs: dict, rounds: int, repeat: int, clock) -> dict[str, np.ndarray]:
    """Times of each job in all rounds [ms], in turns."""
    times = {name: np.zeros(rounds) for name in jobs}
    for i in range(rounds):
        for name, job in jobs.items():
            start = clock()
            for _ in range(repeat):
                job()
            times[name][i] = (clock() - start) / repeat * 1e3
    return times


def main(arguments: list[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worlds", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument(
        "--cpu-time", action="store_true", help="time of the processor, for one thread of a busy machine"
    )
    options = parser.parse_args(arguments)
    silence()
    clock = time.process_time if options.cpu_time else time.perf_counter
    print(
        f"{options.worlds} quadrupeds, {len(names_of_all(options.worlds))} properties of root and joints read in each step\n"
    )
    print(
        "| actuators | bare step [ms] | step of the environment [ms] | ratio | reset of all [ms] | reset of 2 % [ms] |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    plain = None
    for name, actuator in ACTUATORS.items():
        env = Environment(options.worlds, actuator, plain)
        plain = env.plain
        if name == "implicit PD":
            check(env)
        few = np.arange(0, options.worlds, 50)
        jobs = {"bare": env.bare, "env": env.step}
        found = measure(jobs, options.rounds, 2, clock)
        resets = measure(
            {"all": env.robot.reset_to, "few": lambda env=env, few=few: env.robot.reset_to(few)},
            -(-options.rounds // 10),
            1,
            clock,
        )
        ratio = np.median(found["env"] / found["bare"])
        bare, whole, every, few = (
            np.median(times) for times in (found["bare"], found["env"], resets["all"], resets["few"])
        )
        print(f"| {name} | {bare:.2f} | {whole:.2f} | {ratio:.2f} | {every:.2f} | {few:.2f} |", flush=True)


def names_of_all(worlds: int) -> list[str]:
    """What a step reads."""
    return names(Articulation(scene(min(worlds, 2)), "*").data)


if __name__ == "__main__":
    main()
