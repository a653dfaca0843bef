"""Arms for tests of inverse kinematics and control."""

import numpy as np

from newton_like import robot as rd
from tests.support.random_robots import random_inertia, random_pose


def link(name: str, rng, length: float) -> rd.Link:
    """A link with an inertia, and with a capsule along the z axis."""
    made = rd.Link(name, random_inertia(rng))
    collision = rd.Collision(name)
    collision.add_geom(rd.GeomCapsule(np.zeros(3), np.array([0.0, 0.0, length]), 0.04, 1, 0))
    made.add_collision(collision)
    return made


def arm(rng, joints: int = 7, hands: int = 1, limit: float = 2.6, continuous: int = 0) -> rd.Robot:
    """A robot with serial arms whose axes differ, and a tool behind a fixed joint on each.

    The links are ``base``, ``a1`` to ``a7``, ``tool_a``, ``b1`` and so on. The first joints may turn without limits. The base has a capsule
    that the links of the arms may hit.
    """
    base = rd.Link("base", random_inertia(rng))
    obstacle = rd.Collision("obstacle")
    obstacle.add_geom(rd.GeomCapsule(np.array([0.5, 0.0, 0.4]), np.array([0.5, 0.1, 0.4]), 0.1, 0, 1))
    base.add_collision(obstacle)
    for hand in range(hands):
        letter, before = "ab"[hand], base
        for i in range(joints):
            name, length = f"{letter}{i + 1}", 0.25 if i % 2 else 0.1
            child = link(name, rng, 0.2)
            joint = rd.Joint.make_revolute(f"joint_{name}", None, np.eye(3)[(2, 1, 0)[i % 3]])
            if i >= continuous:
                joint.set_limit_q(-limit, limit)
            joint.set_limit_qdot(-2.0, 2.0)
            T = np.eye(4)
            T[:3, 3] = [0.0, 0.2 * hand, 0.1] if before is base else [0.02, 0.01, length]
            joint.connect_links(before, child, T, np.eye(4))
            before = child
        tool = rd.Link(f"tool_{letter}", random_inertia(rng))
        rd.Joint.make_fixed(f"joint_tool_{letter}").connect_links(before, tool, random_pose(rng, 0.05), np.eye(4))
    return rd.Robot(rd.RobotConfiguration("arms", base))


def reachable(robot, state, rng, target: int, count: int | None = None, ref: int | None = None) -> np.ndarray:
    """Poses of the target link at random configurations between 90 % of the limits."""
    lower, upper = robot.get_limit_q_lower(state), robot.get_limit_q_upper(state)
    other = robot.make_state(state.link_names, state.joint_names)
    other.set_q(
        rng.uniform(
            *(0.9 * np.clip(x, -np.pi, np.pi) for x in (lower, upper)), ((count,) if count else ()) + lower.shape
        )
    )
    return robot.compute_transformation(other, state.base_link_idx if ref is None else ref, target)
