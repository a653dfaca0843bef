"""Random robots whose capsules are in each other's way."""

import numpy as np

from newton_like import robot as rd
from tests.support.random_robots import random_pose


def cluttered_robot(rng) -> rd.Robot:
    """A tree of 3 to 12 joints, of which some slide and some have no limits. Links have capsules, the base link has thin and thick posts.
    Many capsules overlap at all angles of the joints, and others at some."""
    base = rd.Link("base", np.eye(6))
    posts, links = rd.Collision("posts"), [base]
    for _ in range(rng.integers(5)):
        start, length = rng.normal(scale=0.4, size=3), rng.choice([0.01, 0.5])
        end, radius = start + rng.normal(scale=length, size=3), float(rng.choice([0.002, 0.05, 0.1]))
        posts.add_geom(rd.GeomCapsule(start, end, radius, 3, 3))
    base.add_collision(posts)
    serial, free = rng.random() < 0.7, rng.choice([0.0, 0.3, 1.0])
    for i in range(rng.integers(3, 13)):
        link, axis = rd.Link(f"l{i}", np.eye(6)), rng.normal(size=3)
        make = rd.Joint.make_prismatic if rng.random() < 0.12 else rd.Joint.make_revolute
        joint, T = make(f"j{i}", None, axis / np.linalg.norm(axis)), random_pose(rng, 0.05)
        if rng.random() >= free:
            joint.set_limit_q(*np.sort(rng.uniform(-3.0, 3.0, 2)))
        if rng.random() < 0.7:
            joint.set_limit_qdot(-2.0, 2.0)
        T[2, 3] += rng.uniform(0.05, 0.35)
        joint.connect_links(links[-1] if serial else links[rng.integers(len(links))], link, T)
        collision = rd.Collision(f"c{i}")
        for _ in range(rng.integers(3)):
            start, end = rng.normal(scale=0.03, size=(2, 3))
            end[2] += rng.uniform(0.02, 0.35)
            radius, bits = float(rng.choice([0.002, 0.02, 0.05, 0.08])), rng.integers(1, 4, 2).tolist()
            collision.add_geom(rd.GeomCapsule(start, end, radius, *bits))
        link.add_collision(collision)
        links.append(link)
    return rd.Robot(rd.RobotConfiguration("cluttered", base), evaluator="general")
