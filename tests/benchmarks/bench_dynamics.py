"""The dynamics library against pinocchio on the same CPU: ``python -m tests.benchmarks.bench_dynamics``.

Both get the same robots, random states and numbers of threads. Results are compared first; then the two take turns, and
medians of the turns are printed. Pinocchio computes in double, this engine in single precision, as each is used; with
``--double`` both compute in double. Where pinocchio has a parallel version (RNEA, ABA) that is what runs, without Python in
the loop; its ``crba`` is called from a Python loop on one thread. Newton's mass matrices are made by Warp kernels, which run on one
thread of a CPU whatever the number that this engine may use. Pinocchio's robots have one joint for each
axis, of the aligned types, which are its fastest.

With ``--gradients`` the program prints the time of gradients of some functions instead, over that of the function, of this engine alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
from functools import partial

import numpy as np
import warp as wp

import newton_like
from newton_like import dynamics

from .cases import design_quadruped, humanoid
from .peers import silence

ROBOTS = {"quadruped": design_quadruped, "humanoid": humanoid}
FUNCTIONS = ("inverse", "forward", "mass")
GRADIENTS = {
    "inverse_dynamics": ("accelerations",),
    "forward_dynamics": ("forces",),
    "mass_matrix": (),
    "bias_forces": (),
    "gravity_forces": (),
    "com_position": (),
    "com_jacobian": (),
    "total_momentum": (),
    "kinetic_energy": (),
    "mechanical_energy": (),
}
"""Functions whose gradients are measured, with their arguments."""
ASKED = {
    "coordinates, velocities, forces": (True, False, False),
    "masses, centres of mass and inertias, which differ between worlds": (False, True, True),
    "all of these, masses differ between worlds": (True, True, True),
    "all of these, constant masses": (True, True, False),
}
"""What gradients are with respect to: the state and arguments; the masses; whether masses differ between worlds."""
TURN = 0.04
"""Seconds of a turn: a core needs a millisecond to find its pace after other code."""


class Ours:
    """This engine on many worlds."""

    def __init__(self, robot, worlds: int, dtype, threads: int, of_masses: bool = False):
        os.environ["NEWTON_LIKE_THREADS"] = str(threads)
        scene = newton_like.ModelBuilder()
        scene.replicate(robot(newton_like), worlds)
        self.model = model = scene.finalize("cpu", dtype=dtype, requires_grad=of_masses)
        self.worlds, self.state = worlds, model.state()
        rng = np.random.default_rng(5)
        q = model.joint_q.numpy().reshape(worlds, -1).astype(np.float64)
        q[:, :3] += rng.normal(0.0, 1.0, (worlds, 3))
        q[:, 3:7] = rng.normal(size=(worlds, 4))
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        q[:, 7:] += rng.normal(0.0, 0.5, q[:, 7:].shape)
        n = model.joint_dof_count // worlds
        self.q, self.qd, self.a, self.tau = q, *rng.normal(size=(3, worlds, n))
        self.state.joint_q.assign(q.ravel())
        self.state.joint_qd.assign(self.qd.ravel())
        self.accelerations, self.forces = (wp.array(x.ravel(), dtype=dtype, device="cpu") for x in (self.a, self.tau))
        self.vector = wp.zeros((worlds, n), dtype=dtype, device="cpu")
        self.matrix = wp.zeros((worlds, n, n), dtype=dtype, device="cpu")

    def inverse(self) -> None:
        dynamics.inverse_dynamics(self.model, self.state, self.accelerations, out=self.vector)

    def forward(self) -> None:
        dynamics.forward_dynamics(self.model, self.state, self.forces, out=self.vector)

    def mass(self) -> None:
        dynamics.mass_matrix(self.model, self.state, out=self.matrix)


class Newton:
    """Newton's mass matrices of the same robots."""

    def __init__(self, robot, ours: Ours):
        import newton

        with silence():
            scene = newton.ModelBuilder()
            scene.replicate(robot(newton), ours.worlds)
            self.model = scene.finalize("cpu")
        self.state, self.eval_mass_matrix = self.model.state(), newton.eval_mass_matrix
        self.state.joint_q.assign(ours.q.ravel())
        self.state.joint_qd.assign(ours.qd.ravel())
        newton.eval_fk(self.model, self.state.joint_q, self.state.joint_qd, self.state)
        self.mass()

    def mass(self) -> None:
        self.result = self.eval_mass_matrix(self.model, self.state)


def check(ours: Ours, bridge, peer, tolerance: float) -> None:
    """Raises AssertionError where the engines disagree by more than rounding explains."""
    worlds = range(0, ours.worlds, max(1, ours.worlds // 16))
    ours.inverse()
    _close(
        ours.vector.numpy()[worlds],
        [bridge.inverse_dynamics(ours.q[i], ours.qd[i], ours.a[i]) for i in worlds],
        tolerance,
    )
    peer.inverse(1)
    _close(ours.vector.numpy()[worlds], [peer.maps[i][0].T @ peer.out[:, i] for i in worlds], tolerance)
    ours.forward()
    expected = [bridge.forward_dynamics(ours.q[i], ours.qd[i], ours.tau[i]) for i in worlds]
    _close(ours.vector.numpy()[worlds], expected, 100 * tolerance)
    peer.forward(1)
    _close(
        ours.vector.numpy()[worlds],
        [np.linalg.solve(T, peer.out[:, i] - d) for i in worlds for T, d in [peer.maps[i]]],
        100 * tolerance,
    )
    ours.mass()
    _close(ours.matrix.numpy()[worlds], [bridge.mass_matrix(ours.q[i]) for i in worlds], tolerance)


def _close(actual, expected, tolerance: float) -> None:
    expected = np.asarray(expected)
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * np.abs(expected).max())


def turns(sides: dict, seconds: float, mean=np.median) -> dict:
    """Median seconds a call of each side, taking turns; or another mean of them."""
    inner = dict.fromkeys(sides, 0)
    for name, call in sides.items():
        call()
        begin = time.perf_counter()
        while time.perf_counter() - begin < TURN:
            call()
            inner[name] += 1
    taken: dict = {name: [] for name in sides}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken[next(iter(sides))]) < 5:
        for name, call in sides.items():
            begin = time.perf_counter()
            for _ in range(inner[name]):
                call()
            taken[name].append((time.perf_counter() - begin) / inner[name])
    return {name: float(mean(x)) for name, x in taken.items()}


def gradients(robot, worlds: int, dtype, threads: int, seconds: float) -> None:
    """Prints the least time of gradients over that of functions."""
    for asked, (of_state, of_masses, differ) in ASKED.items():
        ours, ratios = Ours(robot, worlds, dtype, threads, of_masses), {}
        model, state = ours.model, ours.state
        for array in (state.joint_q, state.joint_qd, ours.accelerations, ours.forces):
            array.requires_grad = of_state
        if differ:
            model.body_mass.assign(model.body_mass.numpy() * np.linspace(0.9, 1.1, model.body_count))
            model.notify_changed(newton_like.ModelFlags.BODY_INERTIAL_PROPERTIES)
        for name, arguments in GRADIENTS.items():
            function = partial(getattr(dynamics, name), model, state, *(getattr(ours, x) for x in arguments))
            with wp.Tape() as tape:
                result = function()
            seed = wp.zeros_like(result)
            seed.fill_(1.0)
            sides = {
                "function": partial(function, out=wp.zeros_like(result)),
                "gradient": partial(tape.backward, grads={result: seed}),
            }
            taken = turns(sides, seconds, np.min)
            ratios[name] = taken["gradient"] / taken["function"]
        row = ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items())
        print(f"{asked}: {min(ratios.values()):.1f} to {max(ratios.values()):.1f}\n    {row}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", nargs="+", choices=list(ROBOTS), default=list(ROBOTS))
    parser.add_argument("--functions", nargs="+", choices=FUNCTIONS, default=FUNCTIONS)
    parser.add_argument("--worlds", type=int, default=4096)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, os.cpu_count() or 1])
    parser.add_argument("--seconds", type=float, default=3.0, help="time for each row")
    parser.add_argument("--no-newton", action="store_true", help="leave newton's mass matrix out")
    parser.add_argument("--double", action="store_true", help="float64 here too")
    parser.add_argument("--gradients", action="store_true", help="times of gradients, in place of the comparison")
    args = parser.parse_args()
    wp.config.quiet = True
    dtype = wp.float64 if args.double else wp.float32
    if args.gradients:
        for name in args.robots:
            for threads in args.threads:
                print(
                    f"{name}, {args.worlds} worlds, {threads} threads, {dtype.__name__}, load {os.getloadavg()[0]:.1f}"
                )
                gradients(ROBOTS[name], args.worlds, dtype, threads, args.seconds)
        return
    if importlib.util.find_spec("pinocchio") is None:
        parser.exit(2, "pinocchio is not installed: pip install 'newton-like[peers]'\n")
    from tests.support.pinocchio_bridge import PinocchioBridge

    from .pinocchio_peer import Peer

    print(f"nanoseconds a world (median), {args.worlds} worlds, {dtype.__name__}, load {os.getloadavg()[0]:.1f}")
    print(
        f"{'robot':>10} {'function':>9} {'threads':>8} {'other':>10} {'it takes':>8} {'newton_like':>12} {'ratio':>7} {'N = 1, us':>10}"
    )
    for name in args.robots:
        one = Ours(ROBOTS[name], 1, dtype, 1)
        bridge = PinocchioBridge(one.model)
        for threads in args.threads:
            ours = Ours(ROBOTS[name], args.worlds, dtype, threads)
            peer = Peer(bridge, ours.q, ours.qd, ours.a, ours.tau)
            check(ours, bridge, peer, 1e-10 if args.double else 3e-5)
            for function in args.functions:
                sides = {"ours": getattr(ours, function), "one": getattr(one, function)}
                if function != "mass" or threads == 1:
                    sides["pinocchio"] = lambda f=function, t=threads, p=peer: getattr(p, f)(t)
                if function == "mass" and not args.no_newton:
                    sides["newton"] = Newton(ROBOTS[name], ours).mass
                taken = {side: seconds * 1e9 / args.worlds for side, seconds in turns(sides, args.seconds).items()}
                for side in ("pinocchio", "newton"):
                    if side in taken:
                        print(
                            f"{name:>10} {function:>9} {threads:>8} {side:>10} {taken[side]:>8.0f} {taken['ours']:>12.1f}"
                            f" {taken[side] / taken['ours']:>7.1f} {taken['one'] * args.worlds / 1e3:>10.1f}"
                        )


if __name__ == "__main__":
    main()
