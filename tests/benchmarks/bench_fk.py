"""eval_fk and eval_ik against newton's on the same CPU: ``python -m tests.benchmarks.bench_fk``.

Both engines load the project's quadruped and get the same random coordinates. Results are compared first; then the two
take turns, and medians of the turns are printed. Other work on the machine slows both down, and an engine that uses all
cores more than one that uses one.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import warp as wp

import newton_like
from newton_like.programs.device import lane_width
from newton_like.threads import worker_count

ROBOT = Path(__file__).resolve().parents[2] / "assets" / "quadruped.urdf"


def scene(engine, count: int, device: str):
    """`count` quadrupeds of newton or of this engine, which share the names of everything used here."""
    robot = engine.ModelBuilder()
    robot.add_urdf(str(ROBOT), floating=True)
    builder = engine.ModelBuilder()
    builder.replicate(robot, count)
    return builder.finalize(device=device)


def random_coordinates(model, count: int, rng) -> tuple[np.ndarray, np.ndarray]:
    q = model.joint_q.numpy().reshape(count, -1) + rng.normal(scale=0.3, size=(count, model.joint_coord_count // count))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return q.astype(np.float32).ravel(), rng.normal(size=model.joint_dof_count).astype(np.float32)


class Side:
    """One engine with its arrays."""

    def __init__(self, engine, model, q, qd):
        self.engine, self.model, self.state = engine, model, model.state()
        self.state.joint_q.assign(q)
        self.state.joint_qd.assign(qd)
        self.again = model.state()

    def fk(self):
        self.engine.eval_fk(self.model, self.state.joint_q, self.state.joint_qd, self.state)

    def ik(self):
        self.engine.eval_ik(self.model, self.state, self.again.joint_q, self.again.joint_qd)

    def results(self):
        self.fk()
        self.ik()
        names = ((self.state, "body_q"), (self.state, "body_qd"), (self.again, "joint_q"), (self.again, "joint_qd"))
        return {name: getattr(owner, name).numpy().astype(np.float64) for owner, name in names}


def check(mine: dict, theirs: dict, count: int) -> None:
    """Raises AssertionError where the engines disagree by more than floats explain."""
    for x in (mine, theirs):
        for quaternion in (x["body_q"][:, 3:], x["joint_q"].reshape(count, -1)[:, 3:7]):
            quaternion *= np.where(quaternion[:, 3:] < 0.0, -1.0, 1.0)
    for name in mine:
        np.testing.assert_allclose(mine[name], theirs[name], rtol=0.0, atol=2e-4, err_msg=name)


def rounds(sides: dict, name: str, seconds: float, inner: dict) -> dict:
    """Median seconds a call of each side, taking turns."""
    taken = {key: [] for key in sides}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken[next(iter(sides))]) < 5:
        for key, side in sides.items():
            call, start = getattr(side, name), time.perf_counter()
            for _ in range(inner[key]):
                call()
            wp.synchronize_device(side.model.device)
            taken[key].append((time.perf_counter() - start) / inner[key])
    return {key: float(np.median(x)) for key, x in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--world-counts", type=int, nargs="+", default=[1, 64, 1024, 4096])
    parser.add_argument("--seconds", type=float, default=3.0, help="time for each row")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    wp.config.quiet = True
    rng = np.random.default_rng(args.seed)
    try:
        import newton
    except ImportError:
        newton = None
        print("newton is not installed: this engine alone")
    print(
        f"device {args.device}, width {lane_width(args.device)}, {worker_count()} threads, "
        f"load {os.getloadavg()[0]:.1f}, float32, nanoseconds a world (median)"
    )
    print(f"{'function':>9} {'worlds':>7} {'newton':>10} {'newton_like':>12} {'ratio':>7}")
    for count in args.world_counts:
        model = scene(newton_like, count, args.device)
        q, qd = random_coordinates(model, count, rng)
        sides = {"newton_like": Side(newton_like, model, q, qd)}
        if newton is not None:
            sides["newton"] = Side(newton, scene(newton, count, args.device), q, qd)
            check(sides["newton_like"].results(), sides["newton"].results(), count)
        for name in ("fk", "ik"):
            # turns of some 40 ms for both: a core needs a millisecond to find its pace after other code
            inner = {"newton_like": max(16, 1_000_000 // (count + 150)), "newton": max(4, 60_000 // (count + 40))}
            taken = rounds(sides, name, args.seconds, inner)
            mine, theirs = taken["newton_like"] / count * 1e9, taken.get("newton", np.nan) / count * 1e9
            print(f"{'eval_' + name:>9} {count:>7} {theirs:>10.1f} {mine:>12.1f} {theirs / mine:>7.1f}")


if __name__ == "__main__":
    main()
