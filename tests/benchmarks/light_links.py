"""Errors of robots with light links between their hinges: ``python -m tests.benchmarks.light_links``.

The program prints the tables of the section "Massless links and nearly singular inertia" of `docs/guide.md`, by parts:

* ``armatures``: shares of the worlds in which a rod on massless links has a large error, by the armature of the first hinge
* ``links``: the same for a rod that swings fast, by the mass and inertia of the links, with and without the armature that the warning names
* ``compound``: the same for three hinges in one D6 joint
* ``slides``: distances by which two slides in line exceed their limits, and the share of the worlds in which they still do after 3 s
* ``human``: angles by which the human of example-robot-data exceeds its limits, and its errors

An error is the distance to the result of small steps. These are no times: other processes and other machines change nothing but rounding.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import warp as wp

from examples.common import positive_int
from newton_like import ModelBuilder
from newton_like.geometry.transforms import quat_to_matrix
from newton_like.solvers import SolverFeatherstone
from newton_like.solvers.near_singular import CURED, near_singular

from ..support.light_links import arm, prevented, rod, slides
from .contact_scenes import robot_folder
from .run import machine

STEP, SMALL = 1 / 240, 1 / 3840
"""Time steps of the measurement and of the reference [s]."""
CARRIED = 0.25
"""Inertia that the first hinge carries [kg m^2]: 1 kg at 0.5 m."""
FAR = 0.01
"""Error from which on a world counts [m]."""
SHARES = (0.0, 0.00004, 0.0004, 0.001, 0.004, CURED)
LINKS = ((0.0, 0.0), (0.002, 0.02), (0.05, 0.02), (0.2, 0.02), (0.2, 0.05), (0.5, 0.05), (0.2, 0.15))
"""Masses [kg] and radii of gyration [m]."""
DEVIATIONS = (2.0, 3.0, 5.0, 7.0)
"""Standard deviations of the speeds of slides [m/s]."""


def run(robot: ModelBuilder, q, qd, dt: float, seconds: float, dtype, watch=None) -> np.ndarray:
    """Poses of the bodies at the end ``[world, body, 7]``, of worlds that start from coordinates and velocities ``[world, ...]``;
    `watch` is called with the coordinates after each step."""
    scene = ModelBuilder()
    scene.replicate(robot, len(q))
    model = scene.finalize("cpu", dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solver = SolverFeatherstone(model, evaluator="general")
    state = model.state()
    state.joint_q, state.joint_qd = np.ravel(q), np.ravel(qd)
    for _ in range(round(seconds / dt)):
        solver.step(state, state, dt=dt)
        if watch:
            watch(state.joint_q.numpy().reshape(len(q), -1))
    return state.body_q.numpy().astype(np.float64).reshape(len(q), -1, 7)


def astray(robot: ModelBuilder, q, qd, seconds: float, dtype) -> str:
    """Share of the worlds in which the end of the rod, 1 m from its hinges, has a large error."""
    poses = [run(robot, q, qd, *step) for step in ((STEP, seconds, dtype), (SMALL, seconds, wp.float64))]
    ends = [pose[:, -1, :3] - quat_to_matrix(pose[:, -1, 3:])[:, :, 2] for pose in poses]
    return f"{100 * np.mean(np.linalg.norm(ends[0] - ends[1], axis=1) > FAR):.0f} %"


def armatures(worlds: int) -> None:
    rng = np.random.default_rng(0)
    print(
        "| armature, as a share of the inertia that the hinge carries | worlds with an error above 0.01 m |\n| --- | --- |"
    )
    q, qd = np.zeros((worlds, 10)), np.zeros((worlds, 9))
    q[:, 6], q[:, 7:] = 1.0, rng.uniform(-1.5, 1.5, (worlds, 3))
    qd[:, 6:] = rng.uniform(-1.0, 1.0, (worlds, 3)) * (1.0, 4.0, 4.0)
    for share in SHARES:
        print(f"| {_plain(share)} | {astray(rod(1e-9, share * CARRIED), q, qd, 0.5, wp.float64)} |", flush=True)


def links(worlds: int) -> None:
    print(
        "| mass [kg] | radius [m] | inertia ratio | warning | error above 0.01 m | the same with the named armature |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for mass, radius in LINKS:
        named = bool(near_singular(arm(mass, gyration=radius).finalize("cpu")))
        cells = fast(arm(mass, gyration=radius), worlds), fast(prevented(arm(mass, gyration=radius)), worlds)
        head = (
            f"| {mass:g} | {radius if mass else ''} | {_plain(mass * radius**2 / CARRIED)} | {'yes' if named else 'no'}"
        )
        print(f"{head} | {cells[0]} | {cells[1] if named else ''} |", flush=True)


def compound(worlds: int) -> None:
    all_axes = prevented(arm(0.0, compound=True))
    all_axes.joint_armature = [max(all_axes.joint_armature)] * 3
    robots = {
        "none": arm(0.0, compound=True),
        "named, first axis": prevented(arm(0.0, compound=True)),
        "named, all axes": all_axes,
    }
    print("| armature | error above 0.01 m |\n| --- | --- |")
    for armature, robot in robots.items():
        print(f"| {armature} | {fast(robot, worlds)} |", flush=True)


def fast(robot: ModelBuilder, worlds: int) -> str:
    """Share of the worlds in which a rod that swings fast, without limits of positions, has a large error."""
    rng = np.random.default_rng(0)
    robot.joint_limit_lower, robot.joint_limit_upper = [-1e10] * 3, [1e10] * 3
    return astray(robot, rng.uniform(-np.pi, np.pi, (worlds, 3)), 6.0 * rng.normal(size=(worlds, 3)), 1.0, wp.float32)


def slides_in_line(worlds: int) -> None:
    columns = "without armature [m] | with the named armature [m] | beyond by 0.05 m after 3 s, without | with"
    print(f"| gravity [m/s^2] | speeds [m/s] | {columns} |\n|{' --- |' * 6}")
    for gravity in (0.0, -9.81):
        for deviation in DEVIATIONS:
            most, late = [], []
            for robot in (slides(), prevented(slides())):
                robot.gravity, rng, excess = gravity, np.random.default_rng(0), []
                q = rng.uniform(-0.4, 0.4, (worlds, 3))
                q[:, 1] = rng.choice([-1.0, 1.0], worlds) * 10 ** rng.uniform(-6, -1, worlds)

                def watch(q, excess=excess):
                    excess.append(np.abs(q[:, [0, 2]]).max(axis=1) - 0.5)

                run(robot, q, deviation * rng.normal(size=(worlds, 3)), STEP, 3.0, wp.float32, watch)
                most.append(f"{np.max(excess):.2f}")
                late.append(f"{100 * np.mean(excess[-1] > 0.05):.1f} %")
            print(f"| {gravity:g} | {deviation:g} | {' | '.join(most + late)} |", flush=True)


def human(worlds: int) -> None:
    try:
        folder = robot_folder("human_description")
    except FileNotFoundError as error:
        print(error)
        return
    robots = {"none": ModelBuilder(), "named": ModelBuilder()}
    for robot in robots.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            robot.add_urdf(folder / "robots/human.urdf", floating=False, package_dirs=folder.parents[2])
    prevented(robots["named"])
    limits = [np.array(end) for end in (robots["none"].joint_limit_lower, robots["none"].joint_limit_upper)]
    worlds = min(worlds, 64)
    print("| armature | time step [s] | worlds beyond a limit by more than 0.05 rad | largest excess [rad] |")
    print("| --- | --- | --- | --- |")
    for armature, steps in (("none", 240), ("none", 1000), ("named", 240)):
        rng, most = np.random.default_rng(0), np.zeros(worlds)
        q = rng.uniform(*limits, (worlds, len(limits[0])))

        def watch(q, most=most):
            np.maximum(most, np.maximum(q - limits[1], limits[0] - q).max(axis=1), out=most)

        run(robots[armature], q, rng.normal(size=q.shape), 1 / steps, 2.0, wp.float32, watch)
        print(f"| {armature} | 1/{steps} | {(most > 0.05).sum()} of {worlds} | {most.max():.2f} |", flush=True)
    q = np.random.default_rng(0).uniform(*limits, (min(worlds, 48), len(limits[0])))
    for armature, robot in robots.items():
        poses = [run(robot, q, np.zeros(q.shape), dt, 0.5, wp.float64)[:, :, :3] for dt in (STEP, 1 / 1920)]
        error = np.linalg.norm(poses[0] - poses[1], axis=2).max(axis=1)
        text = f"median {np.median(error):.3f} m, largest {error.max():.2f} m"
        print(f"errors from rest after 0.5 s, armature {armature}: {text}, {np.mean(error > FAR):.0%} above {FAR} m")


def _plain(x: float) -> str:
    """A number of one digit that is not zero, without an exponent."""
    return np.format_float_positional(x, precision=1, fractional=False, trim="-")


PARTS = {"armatures": armatures, "links": links, "compound": compound, "slides": slides_in_line, "human": human}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.light_links", description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--worlds", type=positive_int, default=1024, help="the human: at most 64")
    options = parser.parse_args(arguments)
    wp.config.log_level = wp.LOG_ERROR
    print(machine())
    for part in options.parts:
        print(f"\n{part}, {options.worlds} worlds\n")
        PARTS[part](options.worlds)


if __name__ == "__main__":
    main()
