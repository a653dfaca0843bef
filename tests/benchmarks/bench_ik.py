"""Inverse kinematics of a Panda arm against pinocchio's and newton's on the same CPU: ``python -m tests.benchmarks.bench_ik``.

All engines get the same random reachable poses of the hand and start from the middle of the joint limits. An answer counts as solved if the
forward kinematics of pinocchio (of this engine where pinocchio is missing) says that it is within the tolerance, and if the joints are
within `SLACK` of their limits. The engines take turns, and medians of the turns are printed. Other work on the machine slows all down.
Pinocchio's loop and newton use one thread; ``NEWTON_LIKE_THREADS=1`` gives this engine one, too.

* newton_like: ``solve_ik`` with up to ``--starts`` starts in double precision.
* pinocchio: the loop that its users write in Python, in double precision. "documented" is the loop of its documentation: damped least
  squares with a step of 0.1. "damped" is the method of Sugihara (2011): the damping follows the error. Joints are moved between their
  limits after each step, and random starts follow where it fails.
* newton: ``newton.ik.IKSolver`` in single precision with a penalty on limits. It does the same number of iterations for all poses and
  all random starts.

With ``--near`` the program prints times of single calls instead: `solve_qp_step` with a safe distance of 0.02 m, and `solve_ik`, for the
right hand of the wheeled humanoid and a goal 0.07 m away.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import warp as wp

from examples import wheeled
from newton_like import robot as rd
from newton_like.threads import worker_count

FILE = "example-robot-data/robots/panda_description/urdf/panda.urdf"
BASE, HAND = "panda_link0", "panda_hand"
SLACK = 1e-3
"""Angle [rad] or distance [m] by which an answer may be beyond a limit."""


def stripped(path: Path) -> str:
    """The file without shapes, whose meshes need not be there."""
    tree = ElementTree.parse(path)
    for link in tree.getroot().iter("link"):
        for kind in ("visual", "collision"):
            for found in link.findall(kind):
                link.remove(found)
    return ElementTree.tostring(tree.getroot(), encoding="unicode")


class Mine:
    """This engine."""

    def __init__(self, path: Path, starts: int, tolerance: float):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.robot = rd.Robot(rd.load_robot_from_urdf(str(path), BASE))
        self.state, self.starts, self.tolerance = self.robot.make_state([BASE, HAND]), starts, (tolerance, tolerance)
        self.lower, self.upper = self.robot.get_limit_q_lower(self.state), self.robot.get_limit_q_upper(self.state)
        self.state.set_q(0.5 * (self.lower + self.upper))

    def poses(self, q: np.ndarray) -> np.ndarray:
        state = self.robot.make_state([BASE, HAND])
        state.set_q(q)
        return self.robot.compute_transformation(state, 0, 1)

    def solve(self, goals: np.ndarray) -> np.ndarray:
        found = rd.solve_ik(self.robot, self.state, 1, goals, starts=self.starts, tolerance=self.tolerance)
        self.iterations = int(found.iterations.sum())
        return found.q


class Pinocchio:
    """The loop in Python.

    Args:
        damped: see the module.
    """

    def __init__(self, path: Path, start: np.ndarray, starts: int, tolerance: float, damped: bool):
        import pinocchio as pin

        self.pin, self.damped = pin, damped
        self.model = pin.buildModelFromUrdf(str(path))
        self.data, self.frame = self.model.createData(), self.model.getFrameId(HAND)
        self.start, self.starts, self.tolerance = start, starts if damped else 1, tolerance
        self.most = 40 if damped else 1000
        self.random = np.random.default_rng([0, 1])

    def poses(self, q: np.ndarray) -> np.ndarray:
        found = []
        for x in q:
            self.pin.framesForwardKinematics(self.model, self.data, x)
            found.append(self.data.oMf[self.frame].homogeneous)
        return np.array(found)

    def solve(self, goals: np.ndarray) -> np.ndarray:
        self.iterations, lower, upper = 0, self.model.lowerPositionLimit, self.model.upperPositionLimit
        found = []
        for goal in goals:
            goal = self.pin.SE3(goal)
            for attempt in range(self.starts):
                q = self.start.copy() if not attempt else self.random.uniform(lower, upper)
                if self.loop(goal, q, lower, upper):
                    break
            found.append(q)
        return np.array(found)

    def loop(self, goal, q: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> bool:
        """Changes q. Returns whether the goal is reached."""
        pin, model, data = self.pin, self.model, self.data
        for _ in range(self.most):
            self.iterations += 1
            pin.framesForwardKinematics(model, data, q)
            offset = data.oMf[self.frame].actInv(goal)
            error = pin.log6(offset).vector
            if np.linalg.norm(error[:3]) < self.tolerance and np.linalg.norm(error[3:]) < self.tolerance:
                return True
            J = -pin.Jlog6(offset.inverse()) @ pin.computeFrameJacobian(model, data, q, self.frame)
            damping = 0.5 * error @ error if self.damped else 1e-12
            v = -J.T @ np.linalg.solve(J @ J.T + (damping + 1e-12) * np.eye(6), error)
            q[:] = np.clip(q + v, lower, upper) if self.damped else pin.integrate(model, q, 0.1 * v)
        return False


class Newton:
    """Newton's solver with a fixed number of iterations."""

    def __init__(self, path: Path, start: np.ndarray, lower, upper, count: int, seeds: int, iterations: int):
        import newton
        import newton.ik as ik

        builder = newton.ModelBuilder()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "robot.urdf"
            file.write_text(stripped(path))
            builder.add_urdf(str(file), floating=False)
        self.model = builder.finalize(device="cpu")
        names = [label.split("/")[-1] for label in self.model.body_label]
        self.position = wp.zeros(count, dtype=wp.vec3, device="cpu")
        self.rotation = wp.zeros(count, dtype=wp.vec4, device="cpu")
        hand = names.index(HAND)
        limits = (wp.array(x, dtype=wp.float32, device="cpu") for x in (lower, upper))
        objectives = [
            ik.IKObjectivePosition(hand, wp.vec3(), self.position),
            ik.IKObjectiveRotation(hand, wp.quat_identity(), self.rotation),
            ik.IKObjectiveJointLimit(*limits, weight=10.0),
        ]
        sampler = ik.IKSampler.ROBERTS if seeds > 1 else ik.IKSampler.NONE
        self.solver = ik.IKSolver(
            self.model, count, objectives, jacobian_mode=ik.IKJacobianType.ANALYTIC, sampler=sampler, n_seeds=seeds
        )
        self.start = wp.array(np.tile(start, (count, 1)), dtype=wp.float32, device="cpu")
        self.out, self.count, self.each = wp.zeros_like(self.start), iterations, count * seeds * iterations

    def solve(self, goals: np.ndarray) -> np.ndarray:
        from scipy.spatial.transform import Rotation

        self.position.assign(goals[:, :3, 3].astype(np.float32))
        self.rotation.assign(Rotation.from_matrix(goals[:, :3, :3]).as_quat().astype(np.float32))
        self.solver.reset()
        self.solver.step(self.start, self.out, iterations=self.count)
        self.iterations = self.each
        return self.out.numpy().astype(np.float64)


def solved(poses, goals, q, lower, upper, tolerance: float) -> np.ndarray:
    """Which answers are right."""
    found = poses(q)
    move = np.linalg.norm(found[:, :3, 3] - goals[:, :3, 3], axis=1)
    # |R - R'| = 2 sqrt(2) sin(angle / 2)
    turn = 2.0 * np.arcsin(
        np.minimum(np.linalg.norm(found[:, :3, :3] - goals[:, :3, :3], axis=(1, 2)) / np.sqrt(8.0), 1.0)
    )
    within = ((q >= lower - SLACK) & (q <= upper + SLACK)).all(axis=1)
    return (move < 1.01 * tolerance) & (turn < 1.01 * tolerance) & within


def near(rounds: int, calls: int = 200) -> None:
    """Prints medians and extremes of the means of rounds of calls [us]."""
    robot = wheeled.load()
    state = robot.make_state(["base", "right_tool", "left_tool"])
    wheeled.set_joints(state, wheeled.READY)
    goal = robot.compute_transformation(state, 0, 1)
    goal[:3, 3] += 0.05, 0.02, 0.05
    jobs = {
        "solve_qp_step": lambda: rd.solve_qp_step(robot, state, rd.PoseTask(1, goal), dt=0.01, safe_distance=0.02),
        "solve_ik": lambda: rd.solve_ik(robot, state, 1, goal),
    }
    taken: dict = {name: [] for name in jobs}
    for turn in range(rounds + 1):
        for name, job in jobs.items():
            begin = time.perf_counter()
            for _ in range(calls):
                found = job()
            if not found.success:
                raise RuntimeError(f"{name} has no success")
            if turn:
                taken[name].append((time.perf_counter() - begin) / calls * 1e6)
    pairs = len(robot.compute_distances(state).links)
    print(f"wheeled humanoid, {robot.dof} joints, {pairs} pairs of capsules, load {os.getloadavg()[0]:.1f}")
    for name, times in taken.items():
        print(f"{name:>14}: {np.median(times):.0f} us, {min(times):.0f} to {max(times):.0f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=Path(__file__).resolve().parents[3] / "shared", help="folder of example-robot-data"
    )
    parser.add_argument("--count", type=int, default=4096, help="poses of a batch")
    parser.add_argument("--few", type=int, default=100, help="poses for pinocchio")
    parser.add_argument("--starts", type=int, default=8)
    parser.add_argument("--tolerance", type=float, default=1e-4, help="[rad] and [m]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--near", action="store_true", help="single calls for the wheeled humanoid, in place of the Panda"
    )
    args = parser.parse_args()
    wp.config.quiet = True
    if args.near:
        near(args.rounds)
        return
    path = args.data / FILE
    if not path.exists():
        raise SystemExit(f"{path} does not exist; name the folder with --data")
    mine = Mine(path, args.starts, args.tolerance)
    rng = np.random.default_rng(args.seed)
    goals, start = mine.poses(rng.uniform(mine.lower, mine.upper, (args.count, len(mine.lower)))), mine.state.q
    few = goals[: args.few]
    sides = {f"newton_like, {args.count} poses": (mine, goals), "newton_like, one by one": (mine, few)}
    poses = mine.poses
    try:
        for kind in ("damped", "documented"):
            sides[f"pinocchio, {kind}"] = (Pinocchio(path, start, args.starts, args.tolerance, kind == "damped"), few)
        poses = sides["pinocchio, damped"][0].poses
    except ImportError:
        print("pinocchio is not installed")
    try:
        for seeds, iterations in ((1, 24), (args.starts, 24)):
            side = Newton(path, start, mine.lower, mine.upper, args.count, seeds, iterations)
            sides[f"newton, {seeds} x {iterations} iterations"] = (side, goals)
    except ImportError:
        print("newton is not installed")
    taken: dict = {name: [] for name in sides}
    rate: dict = {}
    spent: dict = {}
    for turn in range(args.rounds + 1):
        for name, (side, wanted) in sides.items():
            begin = time.perf_counter()
            if name.endswith("one by one"):
                answers = []
                spent[name] = 0
                for x in wanted:
                    answers.append(side.solve(x))
                    spent[name] += side.iterations
                q = np.array(answers)
            else:
                q = side.solve(wanted)
                spent[name] = side.iterations
            if turn:
                taken[name].append((time.perf_counter() - begin) / len(wanted))
            else:
                # compiles, and checks the answers
                rate[name] = solved(poses, wanted, q, mine.lower, mine.upper, args.tolerance).mean()
    print(
        f"Panda, {worker_count()} threads, load {os.getloadavg()[0]:.1f}, tolerance {args.tolerance:g} rad and m, "
        f"medians of {args.rounds} turns"
    )
    print(f"{'solver':>32} {'poses/s':>10} {'us a pose':>10} {'solved':>8} {'iterations':>11} {'ns an iteration':>16}")
    for name, (_, wanted) in sides.items():
        each = float(np.median(taken[name]))
        iterations = spent[name] / len(wanted)
        print(
            f"{name:>32} {1.0 / each:>10,.0f} {each * 1e6:>10.1f} {rate[name]:>8.1%} {iterations:>11.1f} {each / iterations * 1e9:>16,.0f}"
        )


if __name__ == "__main__":
    main()
