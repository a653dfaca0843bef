"""The robot package against the library whose API it has: ``python -m tests.benchmarks.bench_robot``.

Both get the same robot, one thread and the same numbers. Results are compared first; then the two take turns, and medians and minima of the
turns are printed. Times are processor times of the thread, because other processes may use the same cores. The first table is about calls
from Python for one configuration, the second about batches: a row has the time of all calls for one configuration, setters included. One
configuration of each batch is compared with the call for it alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

os.environ["NEWTON_LIKE_THREADS"] = "1"

import numpy as np

import newton_like.robot as ours

TURN = 0.02
"""Seconds of a turn."""

ALLOWED = 5.0
"""Microseconds that a call may take longer than that of the vendor."""

RATIO = 20.0
"""How many times faster a batch is to be."""

RATED = ("pose", "space Jacobian", "body Jacobian", "body velocity", "mass matrix", "inverse dynamics", "collision")
"""Quantities for which there is a target for batches."""


ROBOTS = {"Random tree, 24 joints": {}, "Random chain, 24 joints": {"chain": True}}
MORE = {
    "Random chain, rotations about oblique axes": {"chain": True, "oblique": True},
    "Random chain, half of the joints translations": {"chain": True, "translations": 2},
    "Random chain, screws of length 1.7": {"chain": True, "oblique": True, "length": 1.7},
    "Random chain, screws of length 2": {"chain": True, "oblique": True, "length": 2.0},
    "Random tree, screws of length 2": {"oblique": True, "length": 2.0},
}
"""Other robots of 24 joints, for ``--more``."""


def random_robot(
    sdk,
    joints: int,
    rng: np.random.Generator,
    chain: bool = False,
    oblique: bool = False,
    translations: int = 5,
    length: float = 1.0,
):
    """A tree with rotations and translations about random axes, or a chain of them, and a capsule on each link. Axes are z axes of joint
    frames in random directions, and one joint of `translations` is a translation; with `oblique` all joints are rotations, about oblique
    vectors of a `length` in these frames."""

    def inertia() -> np.ndarray:
        mass, com, A = rng.uniform(0.5, 2.0), 0.1 * rng.normal(size=3), rng.normal(size=(3, 3))
        C = np.array([[0.0, -com[2], com[1]], [com[2], 0.0, -com[0]], [-com[1], com[0], 0.0]])
        G = np.zeros((6, 6))
        G[:3, :3] = 0.01 * (np.trace(A @ A.T) * np.eye(3) - A @ A.T) + mass * C @ C.T
        G[:3, 3:], G[3:, :3], G[3:, 3:] = mass * C, mass * C.T, mass * np.eye(3)
        return G

    def pose() -> np.ndarray:
        T, (Q, _) = np.eye(4), np.linalg.qr(rng.normal(size=(3, 3)))
        T[:3, :3], T[:3, 3] = Q * np.sign(np.linalg.det(Q)), 0.2 * rng.normal(size=3)
        return T

    links = [sdk.Link("base", inertia())]
    for i in range(joints):
        make = sdk.Joint.make_revolute if i % translations or oblique else sdk.Joint.make_prismatic
        axis = rng.normal(size=3) if oblique else np.array([0.0, 0.0, 1.0])
        axis /= np.linalg.norm(axis)
        if length == 1.0:
            joint = make(f"j{i}", np.eye(4), axis)
        else:
            joint = sdk.Joint.make(f"j{i}", length * np.concatenate([axis, np.zeros(3)]))
        link = sdk.Link(f"l{i}", inertia())
        parent = len(links) - 1 - (0 if chain else int(rng.integers(0, 3)))
        joint.connect_links(links[max(0, parent)], link, pose())
        capsule = sdk.Collision(f"c{i}")
        capsule.add_geom(sdk.GeomCapsule(0.1, 0.05, 1, 1))
        link.add_collision(capsule)
        links.append(link)
    return links, sdk.RobotConfiguration("random", links[0])


def complete(path: str) -> str:
    """A URDF whose joints all have axes and limits, which the vendor wants."""
    root = ElementTree.parse(path).getroot()
    for joint in root.findall("joint"):
        if joint.find("axis") is None:
            ElementTree.SubElement(joint, "axis", xyz="0 0 1")
        if joint.find("limit") is None:
            ElementTree.SubElement(joint, "limit", lower="-3", upper="3", velocity="10", effort="100")
    return ElementTree.tostring(root, encoding="unicode")


class Side:
    """One library with one robot, whose calls have names."""

    def __init__(self, sdk, configuration, names: tuple[list, list] | None, dofs: int | None):
        fixed = {18: "Robot_18", 24: "Robot_24", 26: "Robot_26"}.get(dofs)
        self.robot = getattr(sdk, fixed if fixed and sdk is not ours else "Robot")(configuration)
        if names is None:
            names = self.robot.get_link_names(), self.robot.get_joint_names()
        self.names, self.state = names, self.robot.make_state(*names)

    def calls(self, base: int, tip: int, matrices: bool) -> dict:
        r, s = self.robot, self.state

        def torques():
            r.compute_inverse_dynamics(s)
            return s.get_tau()

        found = {
            "pose": lambda: r.compute_transformation(s, base, tip),
            "space Jacobian": lambda: r.compute_space_jacobian(s, base, tip),
            "body Jacobian": lambda: r.compute_body_jacobian(s, base, tip),
            "body velocity": lambda: r.compute_body_velocity(s, base, tip),
            "centre of mass": lambda: r.compute_center_of_mass(s, base),
            "its Jacobian": lambda: r.compute_center_of_mass_jacobian(s, base),
            "total inertia": lambda: r.compute_total_inertial(s, base),
            "gravity term": lambda: r.compute_gravity_term(s),
            "inverse dynamics": torques,
        }
        if matrices:
            found["mass matrix"] = lambda: r.compute_mass_matrix(s)
            found["reflective inertia"] = lambda: r.compute_reflective_inertia(s, base, tip)
        return found

    def set(self, numbers) -> None:
        q, qdot, qddot = numbers
        self.state.set_q(q)
        self.state.set_qdot(qdot)
        self.state.set_qddot(qddot)

    def update(self) -> None:
        r, s = self.robot, self.state
        r.compute_forward_kinematics(s)
        r.compute_diff_forward_kinematics(s)
        r.compute_2nd_diff_forward_kinematics(s)


def turns(functions: list, rounds: int) -> list[tuple[float, float]]:
    """Median and least processor times of functions that take turns [us]."""
    counts, times = [], [[] for _ in functions]
    for f in functions:
        begin = time.thread_time()
        f()
        f()
        counts.append(max(1, int(TURN * 2 / (time.thread_time() - begin + 1e-9))))
    for _ in range(rounds):
        for f, count, found in zip(functions, counts, times, strict=True):
            begin = time.thread_time()
            for _ in range(count):
                f()
            found.append((time.thread_time() - begin) / count * 1e6)
    return [(float(np.median(t)), min(t)) for t in times]


def compared(name: str, functions: list, rounds: int) -> tuple[str, ...]:
    """A row of the table for one configuration."""
    (a, least_a), (b, least_b) = turns(functions, rounds)
    late = " (!)" if min(b - a, least_b - least_a) > ALLOWED else ""
    return name, f"{a:.2f}", f"{b:.2f}", f"{least_a:.2f}", f"{least_b:.2f}", f"{least_b - least_a:+.2f}{late}"


def agree(name: str, mine, theirs) -> None:
    """Raises where results differ."""
    scale = max(1.0, float(np.abs(theirs).max()))
    if name == "reflective inertia":
        # pseudo-inverses: compared by their inverses, which are smooth
        mine, theirs = np.linalg.pinv(mine, rcond=1e-9), np.linalg.pinv(theirs, rcond=1e-9)
    if not np.abs(mine - theirs).max() < 1e-8 * scale:
        raise RuntimeError(f"{name}: results differ by {np.abs(mine - theirs).max():g}")


def same(name: str, row, alone) -> None:
    """Raises where the result of one configuration of a batch is not that of the configuration alone."""
    if name == "collision":
        row, alone = ([(x.link1, x.link2, x.distance) for x in found] for found in (row, alone))
        equal = row == alone
    else:
        equal = np.array_equal(row, alone)
    if not equal:
        raise RuntimeError(f"{name}: a configuration of a batch has another result than alone")


def table(title: str, head: tuple[str, ...], rows: list) -> None:
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def measure(label: str, theirs: Side, mine: Side, batch: int, rounds: int, matrices: bool) -> None:
    rng = np.random.default_rng(3)
    n = mine.robot.dof
    numbers, many = rng.normal(size=(3, n)), rng.normal(size=(3, batch, n))
    gravity = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -9.81])
    base, tip = mine.state.base_link_idx, len(mine.names[0]) - 1
    for side in (theirs, mine):
        side.set(numbers)
        side.state.set_gravity(gravity)
        side.update()
    one, two = theirs.calls(base, tip, matrices), mine.calls(base, tip, matrices)
    rows = []
    for name, f in one.items():
        agree(name, two[name](), f())
        rows.append(compared(name, [f, two[name]], rounds))
    for name, f, g in (
        ("set_q", lambda: theirs.state.set_q(numbers[0]), lambda: mine.state.set_q(numbers[0])),
        ("set_q, forward kinematics", *((lambda x=x: (x.state.set_q(numbers[0]), x.robot.compute_forward_kinematics(x.state))) for x in
        (theirs, mine))),
    ):  # fmt: skip
        rows.append(compared(name, [f, g], rounds))

    def detect(state, robot=mine.robot):
        return lambda: robot.detect_collisions_or_nearest_links(state, 1)

    capsules = bool(mine.robot.compute_distances(mine.state).links)
    if capsules:
        first, second = detect(theirs.state, theirs.robot), detect(mine.state)
        for x, y in zip(first(), second(), strict=True):
            agree("collision", np.array([y.distance]), np.array([x.distance]))
        rows.append(compared("collision", [first, second], rounds))
    head = ("call", "vendor", "newton_like", "vendor, least", "newton_like, least", "difference")
    table(f"{label}: one configuration [us]", head, rows)

    group = mine.robot.make_state(*mine.names)
    group.set_gravity(gravity)
    single, alone = mine.state, two
    mine.state = group
    two = mine.calls(base, tip, matrices)
    if capsules:
        alone["collision"], two["collision"] = detect(single), detect(group)
        one["collision"] = one["distances of all pairs"] = detect(theirs.state, theirs.robot)
        alone["distances of all pairs"] = lambda: mine.robot.compute_distances(single).distance
        two["distances of all pairs"] = lambda: mine.robot.compute_distances(group).distance
    rows = []
    group.set_qdot(many[1])
    # both sides are written out: for one configuration, loops and look-ups in Python would take part of the vendor's time
    r, s, (q, qdot, qddot) = theirs.robot, theirs.state, (x.copy() for x in numbers)
    (some_q, some_qdot, some_qddot), ours_too = many, mine.robot

    def vendor_dynamics():
        s.set_q(q)
        s.set_qdot(qdot)
        s.set_qddot(qddot)
        r.compute_forward_kinematics(s)
        r.compute_diff_forward_kinematics(s)
        r.compute_2nd_diff_forward_kinematics(s)
        r.compute_inverse_dynamics(s)
        return s.get_tau()

    def lanes_dynamics():
        group.set_q(some_q)
        group.set_qdot(some_qdot)
        group.set_qddot(some_qddot)
        ours_too.compute_inverse_dynamics(group)
        return group.get_tau()

    def vendor_velocity():
        s.set_q(q)
        s.set_qdot(qdot)
        r.compute_forward_kinematics(s)
        r.compute_diff_forward_kinematics(s)
        return r.compute_body_velocity(s, base, tip)

    def lanes_velocity():
        group.set_q(some_q)
        group.set_qdot(some_qdot)
        return ours_too.compute_body_velocity(group, base, tip)

    def vendor_call(f):
        def call():
            s.set_q(q)
            r.compute_forward_kinematics(s)
            return f()

        return call

    def lanes_call(f):
        def call():
            group.set_q(some_q)
            return f()

        return call

    moving = {
        "inverse dynamics": (vendor_dynamics, lanes_dynamics),
        "body velocity": (vendor_velocity, lanes_velocity),
    }
    for name in two:
        if name in moving:
            vendor, lanes = moving[name]
        else:
            vendor, lanes = vendor_call(one[name]), lanes_call(two[name])
        lanes()
        row = batch // 2
        mine.state = single
        mine.set(many[:, row])
        mine.state = group
        same(name, two[name]()[row], alone[name]())
        (a, least_a), (b, least_b) = turns([vendor, lanes], rounds)
        ratio, of_least = a * batch / b, least_a * batch / least_b
        slow = " (!)" if name in RATED and max(ratio, of_least) < RATIO else ""
        rows.append((name, f"{a:.2f}", f"{b / batch:.3f}", f"{ratio:.1f}", f"{of_least:.1f}{slow}"))
    mine.state = single
    table(
        f"{label}: batches of {batch} [us for each configuration]",
        ("calls", "vendor", "newton_like", "ratio", "ratio of the least"),
        rows,
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--urdf", nargs=2, action="append", metavar=("FILE", "BASE"), default=[], help="a file, and its base link"
    )
    parser.add_argument("--more", action="store_true", help="other random robots, in place of the usual ones")
    options = parser.parse_args(arguments)
    try:
        import rby1_sdk.dynamics as vendor
    except ImportError:
        sys.exit("rby1_sdk is not installed; install the extra 'peers'")
    for label, shape in (MORE if options.more else ROBOTS).items():
        sides = []
        for sdk in (vendor, ours):
            links, configuration = random_robot(sdk, 24, np.random.default_rng(7), **shape)
            names = [link.get_name() for link in links], [f"j{i}" for i in range(24)]
            sides.append(Side(sdk, configuration, names, 24))
            sides[-1].links = links
        measure(label, *sides, options.batch, options.rounds, True)
    for path, base in options.urdf:
        data = complete(path)
        mine = Side(ours, ours.load_robot_from_urdf_data(data, base), None, None)
        theirs = Side(vendor, vendor.load_robot_from_urdf_data(data, base), mine.names, mine.robot.dof)
        measure(Path(path).name, theirs, mine, options.batch, options.rounds, mine.robot.dof in (18, 24, 26))


if __name__ == "__main__":
    main()
