"""Edited parameters at every reset: ``python -m tests.benchmarks.bench_edits``.

Quadrupeds stand on the ground. With ``--maximal``: the times of `notify_model_changed` of `SolverXPBD`. Otherwise three tables:
the time of `notify_model_changed` (after an edit of all worlds, after none, and with masks)
and of `reset` beside a step; the time of a step of solvers that were told what varies against one that was not; and the time of
`model.collide`, and of a step with its list, beside a step that finds the contacts itself. Everything takes turns;
medians over rounds, or minima with ``--minima``, for a machine that other programs use. Before anything is timed the edited numbers are
seen to act: the mean height of the base of edited worlds is not that of the others.
"""

from __future__ import annotations

import argparse
import platform
import time
from functools import partial

import numpy as np
import warp as wp

import newton_like as nl
from newton_like.solvers import SolverFeatherstone, SolverXPBD

from .cases import QUADRUPED, design_quadruped
from .peers import silence

KINDS = {
    "masses (body_mass, body_com, body_inertia)": ("BODY_INERTIAL_PROPERTIES", ("body_mass", "body_com", "body_inertia")),
    "gains (joint_target_ke, joint_damping, ...)": (
        "JOINT_DOF_PROPERTIES",
        ("joint_target_ke", "joint_target_kd", "joint_armature", "joint_damping"),
    ),
    "friction of joints (joint_friction)": ("JOINT_DOF_PROPERTIES", ("joint_friction",)),
    "friction of shapes (shape_material_mu)": ("SHAPE_PROPERTIES", ("shape_material_mu",)),
    "anchors (joint_X_p)": ("JOINT_PROPERTIES", ("joint_X_p",)),
    "gravity": ("MODEL_PROPERTIES", ("gravity",)),
}  # fmt: skip
SHARES = (1.0, 0.02, 0.0)


def quadrupeds(worlds: int):
    scene = nl.ModelBuilder()
    scene.replicate(design_quadruped(nl), worlds)
    scene.add_ground_plane()
    return scene.finalize("cpu")


def turns(rounds: int, jobs: dict, repeat: int = 1, mean=np.median) -> dict:
    """Medians of the seconds that jobs take, in turns; or another mean of them."""
    times = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            start = time.perf_counter()
            for _ in range(repeat):
                job()
            times[name].append((time.perf_counter() - start) / repeat)
    return {name: float(mean(values[1:])) for name, values in times.items()}


def check(model, solver, state) -> None:
    """Raises AssertionError unless edited masses act, and act in the edited worlds alone."""
    mass, heavy = model.body_mass.numpy().copy(), np.arange(model.world_count) % 2 == 0
    edited = mass.reshape(model.world_count, -1) * np.where(heavy, 1.5, 1.0)[:, None]
    model.body_mass.assign(edited.ravel())
    solver.notify_model_changed(nl.ModelFlags.BODY_INERTIAL_PROPERTIES, heavy)
    for _ in range(60):
        solver.step(state, state)
    z = state.joint_q.numpy().reshape(model.world_count, -1)[:, 2]
    assert z[heavy].max() < z[~heavy].min(), "heavier robots do not sink deeper into their drives"
    model.body_mass.assign(mass)
    solver.notify_model_changed(nl.ModelFlags.BODY_INERTIAL_PROPERTIES)
    for _ in range(60):
        solver.step(state, state)


def alternate(model, names) -> None:
    """Changes arrays in all worlds, by a little."""
    for name in names:
        array = getattr(model, name)
        numbers = array.numpy().reshape(len(array), -1)
        if name == "joint_friction":
            numbers[:, :] = 1.0e-6 if numbers[-1, -1] == 0.0 else 0.0
        else:
            numbers[:, : 3 if name == "joint_X_p" else None] *= np.float32(1.0001)


def edits(worlds: int, rounds: int, mean=np.median) -> list[str]:
    """Rows of the first table."""
    model = quadrupeds(worlds)
    solver = SolverFeatherstone(model, varying=[name for _, names in KINDS.values() for name in names])
    state, control = model.state(), model.control()
    check(model, solver, state)
    rng, jobs = np.random.default_rng(0), {"a step": lambda: solver.step(state, state, control)}
    groups = KINDS | {
        "all arrays (ModelFlags.ALL)": ("ALL", ("joint_X_p", "joint_damping", "body_mass", "shape_material_mu"))
    }
    for kind, (flag, names) in groups.items():
        notice = partial(solver.notify_model_changed, nl.ModelFlags[flag])
        for share in SHARES:
            if share == 1.0:
                # the edit's own time does not count
                jobs[kind, "edit"], jobs[kind, share] = partial(alternate, model, names), notice
                jobs[kind, "unchanged"] = notice
            else:
                jobs[kind, share] = partial(notice, wp.array(rng.random(worlds) < share, dtype=wp.bool, device="cpu"))
    # the dynamics library takes over the edits above here, and its time does not count
    nothing = wp.zeros(worlds, dtype=wp.bool, device="cpu")
    jobs["library"] = lambda: solver.reset(state, nothing)
    masses = nl.ModelFlags.BODY_INERTIAL_PROPERTIES
    for share in SHARES:
        mask = wp.array(rng.random(worlds) < share, dtype=wp.bool, device="cpu")
        jobs["reset", share] = lambda mask=mask: solver.reset(state, mask)
    for share in SHARES:
        mask = wp.array(rng.random(worlds) < share, dtype=wp.bool, device="cpu")
        jobs["masses, then reset", share] = lambda mask=mask: (
            solver.notify_model_changed(masses, mask),
            solver.reset(state, mask),
        )
    found = turns(rounds, jobs, mean=mean)
    rows = [
        f"| {worlds} quadrupeds | all worlds changed [ms] | no mask, no change [ms] | a mask of 2 % [ms] | a mask of none [ms] |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    rows.append(f"| a step, for comparison | {1e3 * found['a step']:.2f} | | | |")
    for kind in (*groups, "reset", "masses, then reset"):
        columns = (1.0, "unchanged", *SHARES[1:])
        times = [f"{1e3 * found[kind, column]:.3f}" if (kind, column) in found else "" for column in columns]
        rows.append(f"| {kind} | {' | '.join(times)} |")
    return rows


def maximal(worlds: int, rounds: int, mean=np.median) -> list[str]:
    """Rows of the table of the solver in maximal coordinates."""
    model = quadrupeds(worlds)
    solver, state = SolverXPBD(model, update_joints=False), model.state()
    nl.eval_fk(model, state.joint_q, state.joint_qd, state)
    for _ in range(10):
        solver.step(state, state)
    rng, jobs = np.random.default_rng(0), {"a step": lambda: solver.step(state, state)}
    groups = KINDS | {
        "all arrays (ModelFlags.ALL)": ("ALL", ("joint_X_p", "joint_damping", "body_mass", "shape_material_mu"))
    }
    for kind, (flag, names) in groups.items():
        notice = partial(solver.notify_model_changed, nl.ModelFlags[flag])
        few = wp.array(rng.random(worlds) < SHARES[1], dtype=wp.bool, device="cpu")
        jobs[kind, "edit"], jobs[kind, "all"] = partial(alternate, model, names), notice
        jobs[kind, "unchanged"], jobs[kind, "few"] = notice, partial(notice, few)
    found = turns(rounds, jobs, mean=mean)
    rows = [
        f"| {worlds} quadrupeds, `SolverXPBD` | all worlds changed [ms] | no mask, no change [ms] | a mask of 2 % [ms] |",
        "| --- | ---: | ---: | ---: |",
        f"| a step, for comparison | {1e3 * found['a step']:.2f} | | |",
    ]
    for kind in groups:
        times = [f"{1e3 * found[kind, column]:.2f}" for column in ("all", "unchanged", "few")]
        rows.append(f"| {kind} | {' | '.join(times)} |")
    return rows


def varying(worlds: int, rounds: int, evaluator: str, mean=np.median) -> list[str]:
    """Rows of the second table."""
    rows = [f"| numbers that vary | time of a step, {evaluator}, over that with none |", "| --- | ---: |"]
    choices = {"none": ()} | {kind: names for kind, (_, names) in KINDS.items()}
    choices["all of these"] = [name for _, names in KINDS.values() for name in names]
    jobs = {}
    for kind, names in choices.items():
        model = quadrupeds(worlds)
        solver = SolverFeatherstone(model, evaluator=evaluator, varying=names)
        state, control = model.state(), model.control()
        for _ in range(60):
            solver.step(state, state, control)
        jobs[kind] = lambda solver=solver, state=state, control=control: solver.step(state, state, control)
    found = turns(rounds, jobs, 4, mean)
    rows.append(f"| none | {1e9 * found['none'] / worlds:.0f} ns a world |")
    return rows + [f"| {kind} | {found[kind] / found['none']:.3f} |" for kind in choices if kind != "none"]


def lists(worlds: int, rounds: int, mean=np.median) -> list[str]:
    """Rows of the third table."""
    found = {}
    for title, self_collisions in (("feet only", False), ("self-collisions too", True)):
        robot, scene = nl.ModelBuilder(), nl.ModelBuilder()
        robot.add_urdf(QUADRUPED, floating=True, enable_self_collisions=self_collisions)
        scene.replicate(robot, worlds)
        scene.add_ground_plane()
        model = scene.finalize("cpu")
        solvers = {name: SolverFeatherstone(model, evaluator=name) for name in ("specialised", "general")}
        state, out, control = model.state(), model.state(), model.control()
        for _ in range(120):
            solvers["specialised"].step(state, state, control)
        nl.eval_fk(model, state.joint_q, state.joint_qd, state)
        contacts = model.contacts()
        model.collide(state, contacts)
        # both ways find the same contacts
        results = []
        for given in (None, contacts):
            solvers["general"].forget()
            solvers["general"].step(state, out, control, given)
            results.append(out.joint_qd.numpy())
        assert np.abs(results[0] - results[1]).max() < 1.0e-3, "the list has other contacts than the step"
        jobs = {f"a step, {name}": partial(solver.step, state, out, control) for name, solver in solvers.items()}
        jobs["`model.collide`"] = partial(model.collide, state, contacts)
        jobs["a step with the list"] = partial(solvers["specialised"].step, state, out, control, contacts)
        found[title] = turns(rounds, jobs, mean=mean)
    rows = [f"| {worlds} quadrupeds | {' | '.join(f'{title} [ms]' for title in found)} |", "| --- | ---: | ---: |"]
    return rows + [
        f"| {name} | {' | '.join(f'{1e3 * times[name]:.2f}' for times in found.values())} |" for name in jobs
    ]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--minima", action="store_true")
    parser.add_argument("--maximal", action="store_true", help="the table of SolverXPBD only")
    options = parser.parse_args(arguments)
    mean = np.min if options.minima else np.median
    silence()
    print(f"{platform.machine()}, Warp {wp.__version__}, newton_like {nl.__version__}\n")
    if options.maximal:
        print("\n".join(maximal(options.worlds, options.rounds, mean)))
        return
    for rows in (
        edits(options.worlds, options.rounds, mean),
        varying(options.worlds, options.rounds, "specialised", mean),
        varying(options.worlds, options.rounds, "general", mean),
        lists(options.worlds, options.rounds, mean),
    ):
        print("\n".join(rows), "\n", sep="\n")


if __name__ == "__main__":
    main()
