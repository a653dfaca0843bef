"""Random scenes of bodies and robots that fall over each other, and what has to hold while they do."""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from newton_like import Mesh, ModelBuilder, ShapeConfig, eval_fk
from newton_like.solvers import SolverFeatherstone
from tests.support.random_trees import random_unit
from tests.support.simulate import GRAVITY

DT = 1.0 / 240.0

TURN = 0.5
"""How far a body may turn in a step so that nothing falls through [rad], as in the guide."""


def hull(rng, half) -> Mesh:
    """The convex hull of points on an ellipsoid."""
    points = rng.normal(size=(14, 3))
    points *= half / np.linalg.norm(points, axis=1, keepdims=True)
    found = ConvexHull(points)
    outward = (
        np.einsum(
            "ij,ij->i", np.cross(*np.diff(points[found.simplices], axis=1).transpose(1, 0, 2)), found.equations[:, :3]
        )
        > 0
    )
    triangles = np.where(outward[:, None], found.simplices, found.simplices[:, ::-1])
    return Mesh(points.astype(np.float32), triangles.ravel())


def add_shape(builder, body: int, rng, size: float) -> None:
    """A random convex shape with a random surface."""
    cfg = ShapeConfig(
        density=rng.uniform(200.0, 3000.0), mu=rng.uniform(0.0, 1.0), restitution=rng.choice([0.0, 0.0, 0.5])
    )
    a, b, c = (float(x) for x in size * rng.uniform(0.5, 1.0, 3))
    add = (
        lambda: builder.add_shape_sphere(body, radius=a, cfg=cfg),
        lambda: builder.add_shape_box(body, hx=a, hy=b, hz=c, cfg=cfg),
        lambda: builder.add_shape_capsule(body, radius=0.5 * a, half_height=b, cfg=cfg),
        lambda: builder.add_shape_cylinder(body, radius=a, half_height=b, cfg=cfg),
        lambda: builder.add_shape_cone(body, radius=a, half_height=b, cfg=cfg),
        lambda: builder.add_shape_ellipsoid(body, rx=a, ry=b, rz=c, cfg=cfg),
        lambda: builder.add_shape_convex_hull(body, mesh=hull(rng, [a, b, c]), cfg=cfg),
    )
    add[rng.integers(len(add))]()


def add_robot(builder, rng, place, most: int = 5, touching: bool = False) -> None:
    """A floating tree of up to `most` links, which touch each other only if `touching`; links that a joint connects never do."""
    first = len(builder.shape_body)
    links = [builder.add_link(xform=place)]
    add_shape(builder, links[0], rng, 0.1)
    joints = [builder.add_joint_free(links[0])]
    for _ in range(rng.integers(1, most)):
        link, axis = builder.add_link(), 0.15 * random_unit(rng)
        add_shape(builder, link, rng, 0.08)
        ends = dict(parent_xform=(*axis, 0.0, 0.0, 0.0, 1.0), child_xform=(*(-0.7 * axis), 0.0, 0.0, 0.0, 1.0))
        parent, kind = links[rng.integers(len(links))], rng.integers(3)
        if kind == 0:
            joints.append(
                builder.add_joint_revolute(
                    parent, link, axis=tuple(random_unit(rng)), limit_lower=-1.0, limit_upper=1.0, **ends
                )
            )
        elif kind == 1:
            joints.append(builder.add_joint_ball(parent, link, **ends))
        else:
            joints.append(
                builder.add_joint_prismatic(parent, link, axis=(0, 0, 1), limit_lower=-0.05, limit_upper=0.05, **ends)
            )
        links.append(link)
    builder.add_articulation(joints)
    if touching:
        return
    for one in range(first, len(builder.shape_body)):
        for other in range(first, one):
            builder.add_shape_collision_filter_pair(other, one)


def random_scene(rng) -> ModelBuilder:
    builder = ModelBuilder()
    builder.add_ground_plane(cfg=ShapeConfig(mu=rng.uniform(0.0, 1.0)))
    for i in range(rng.integers(2, 9)):
        place = (*rng.uniform(-0.15, 0.15, 2), 1.2 + 0.35 * i, *Rotation.random(random_state=rng).as_quat())
        if rng.random() < 0.7:
            add_shape(builder, builder.add_body(xform=place), rng, 0.15)
        else:
            add_robot(builder, rng, place)
    return builder


class Energy:
    """Mechanical energy of a model, and heights of centres of mass."""

    def __init__(self, model):
        self.mass, self.inertia = (array.numpy().astype(np.float64) for array in (model.body_mass, model.body_inertia))
        self.com = model.body_com.numpy()

    def __call__(self, state) -> tuple[float, np.ndarray]:
        pose, velocity = (array.numpy().astype(np.float64) for array in (state.body_q, state.body_qd))
        turn = Rotation.from_quat(pose[:, 3:])
        height = (pose[:, :3] + turn.apply(self.com))[:, 2]
        spin = turn.inv().apply(velocity[:, 3:])
        kinetic = 0.5 * (
            self.mass @ (velocity[:, :3] ** 2).sum(axis=1) + np.einsum("ni,nij,nj->", spin, self.inertia, spin)
        )
        return kinetic + GRAVITY * self.mass @ height, height


def robot_scene(rng) -> ModelBuilder:
    """A robot of many links that touch each other, over the ground."""
    builder = ModelBuilder()
    builder.add_ground_plane(cfg=ShapeConfig(mu=rng.uniform(0.0, 1.0)))
    place = (0.0, 0.0, rng.uniform(0.8, 1.5), *Rotation.random(random_state=rng).as_quat())
    add_robot(builder, rng, place, most=12, touching=True)
    return builder


def watch(model, rng, substeps: int, steps: int, speed: float, kicks: int = 1, evaluator: str = "general") -> bool:
    """Steps a scene, whose velocities get random changes at the start of each of `kicks` equal parts of the time.

    Args:
        model: the scene, in one world.
        rng: random numbers.
        substeps: of a step.
        steps: how many.
        speed: standard deviation of the changes of joint velocities.
        kicks: number of such changes.
        evaluator: of the solver.

    Returns:
        Whether some body turned by more than TURN in one of the solver's steps; its tree may then have fallen through.

    Raises:
        AssertionError: energy grows, a tree falls through, or the state is not finite.
    """
    state, energy = model.state(), Energy(model)
    solver = SolverFeatherstone(model, evaluator=evaluator, substeps=substeps)
    tree = np.zeros(model.body_count, dtype=int)
    tree[model.joint_child.numpy()] = model.joint_articulation.numpy()
    quick = np.zeros(model.articulation_count, dtype=bool)
    for _ in range(kicks):
        state.joint_qd.assign(state.joint_qd.numpy() + speed * rng.normal(size=model.joint_dof_count))
        eval_fk(model, state.joint_q, state.joint_qd, state)
        start, _ = energy(state)
        for _ in range(steps // (10 * kicks)):
            for _ in range(10):
                solver.step(state, state, dt=DT)
                turn = np.linalg.norm(state.body_qd.numpy()[:, 3:], axis=1) * DT / substeps
                quick[tree[turn > TURN]] = True
            now, height = energy(state)
            # rounding, first-order contacts, and shapes that overlap at the start
            assert now < 1.05 * start, f"the energy grew from {start:.3g} to {now:.3g} J"
            low = height[~quick[tree]].min(initial=1.0)
            assert low > 0.0, f"a body fell through the ground, to {low:.3g} m"
        assert solver.check(state).all(), "a state is not finite"
    return bool(quick.any())
