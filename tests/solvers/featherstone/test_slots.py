"""Contacts of a robot alone, which are in slots of each world, beside the lists of a solver with one world a thread."""

from collections import Counter

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import Mesh, ModelBuilder, ShapeConfig
from newton_like.solvers import SolverFeatherstone
from tests.support.random_trees import random_unit

WORLDS = 21
DT = 1.0 / 240.0
INSTANT = 1.0e-8
"""A time step in which nothing moves: what changes are velocities, by impacts."""


def add_shape(builder, rng, body: int, kind: int, cfg: ShapeConfig) -> None:
    """One of the seven kinds of convex shapes, with sizes of decimetres, not in the middle of its body."""
    place = (*rng.uniform(-0.05, 0.05, 3), *Rotation.random(random_state=rng).as_quat())
    a, b, c = rng.uniform(0.06, 0.12, 3)
    options = dict(xform=place, cfg=cfg)
    if kind == 0:
        builder.add_shape_sphere(body, radius=a, **options)
    elif kind == 1:
        builder.add_shape_capsule(body, radius=a, half_height=b, **options)
    elif kind == 2:
        builder.add_shape_box(body, hx=a, hy=b, hz=c, **options)
    elif kind == 3:
        builder.add_shape_cylinder(body, radius=a, half_height=b, **options)
    elif kind == 4:
        builder.add_shape_cone(body, radius=a, half_height=b, **options)
    elif kind == 5:
        builder.add_shape_ellipsoid(body, rx=a, ry=b, rz=c, **options)
    else:
        points = rng.normal(size=(12, 3))
        points *= 0.1 / np.linalg.norm(points, axis=1, keepdims=True)
        builder.add_shape_convex_hull(body, mesh=Mesh(points, np.arange(12)), **options)


def robots(rng, dtype, turning: float, friction: float, restitution: float = 0.0, worlds: int = WORLDS):
    """A model of equal robots over a plane and beside a fixed box, and states of them in which many links touch: eight links in a star of
    short arms, with shapes of all kinds."""
    cfg = ShapeConfig(
        mu=friction, restitution=restitution, mu_torsional=turning, mu_rolling=turning, margin=0.002, gap=0.01
    )
    robot = ModelBuilder()
    base = robot.add_link(xform=(0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0))
    add_shape(robot, rng, base, 2, cfg)
    joints, links = [robot.add_joint_free(base)], [base]
    for i in range(8):
        link = robot.add_link()
        add_shape(robot, rng, link, i % 7, cfg)
        anchor = (*(0.15 * random_unit(rng)), 0.0, 0.0, 0.0, 1.0)
        parent = links[int(rng.integers(len(links)))]
        joints.append(robot.add_joint_revolute(parent, link, axis=tuple(random_unit(rng)), parent_xform=anchor))
        links.append(link)
    robot.add_articulation(joints)
    add_shape(robot, rng, -1, 2, cfg)
    scene = ModelBuilder()
    scene.add_ground_plane(cfg=cfg)
    scene.replicate(robot, worlds)
    model = scene.finalize("cpu", dtype=dtype)
    q = model.joint_q.numpy().reshape(worlds, -1)
    q[:, 2] = rng.uniform(0.05, 0.4, worlds)
    q[:, 3:7] = Rotation.random(worlds, random_state=rng).as_quat()
    q[:, 7:] = rng.uniform(-3.0, 3.0, (worlds, q.shape[1] - 7))
    return model, q, rng.normal(0.0, 0.5, (worlds, model.joint_dof_count // worlds))


def contacts_of(solver, model, state):
    """The contacts of the last step, in an order of their own: pairs of shapes ``[n, 2]``, and points on the second shape, normals and
    forces, ``[n, 9]``."""
    found = model.contacts()
    solver.update_contacts(found, state)
    n = int(found.rigid_contact_count.numpy()[0])
    pairs = np.stack([found.rigid_contact_shape0.numpy()[:n], found.rigid_contact_shape1.numpy()[:n]], axis=1)
    numbers = np.concatenate(
        [a.numpy()[:n, :3] for a in (found.rigid_contact_point1, found.rigid_contact_normal, found.force)], axis=1
    )
    # contacts of one pair are told apart by their points
    order = np.lexsort((*numbers[:, :3].round(3).T, pairs[:, 1], pairs[:, 0]))
    return pairs[order], numbers[order]


@pytest.mark.parametrize(
    ("dtype", "turning"), [(wp.float32, 0.0), pytest.param(wp.float64, 0.02, marks=pytest.mark.slow)]
)
@pytest.mark.slow
def test_slots_have_the_contacts_of_lists(rng, dtype, turning):
    """The same contacts at the same places; without friction, for which velocities are unique, and with many sweeps the same velocities."""
    model, q, qd = robots(rng, dtype, turning, friction=0.0)
    model.request_contact_attributes("force")
    results = []
    for width in (None, 1):
        options = {} if width is None else {"width": width}
        solver = SolverFeatherstone(model, evaluator="general", iterations=400, tolerance=0.0, **options)
        assert solver._steppers[0].slotted == (width is None)
        state = model.state()
        solver.reset(state, None, q.ravel(), qd.ravel())
        solver.step(state, state, None, None, DT)
        results.append((*contacts_of(solver, model, state), state.joint_qd.numpy().astype(np.float64)))
    (pairs, numbers, new), (pairs_of_lists, numbers_of_lists, new_of_lists) = results
    counts, counts_of_lists = (Counter(map(tuple, x.tolist())) for x in (pairs, pairs_of_lists))
    # rounding decides on some: faces that are nearly parallel, two ways out of an overlap, contacts at the end of their reach
    differ = (counts - counts_of_lists).total() + (counts_of_lists - counts).total()
    assert len(pairs) > 5 * WORLDS
    assert differ < 0.02 * len(pairs)
    same = {pair for pair, n in counts.items() if counts_of_lists[pair] == n}
    one, two = (
        x[[tuple(pair) in same for pair in of.tolist()]]
        for x, of in ((numbers, pairs), (numbers_of_lists, pairs_of_lists))
    )
    # points of deep overlaps are known up to the tolerance of their search
    assert np.quantile(np.abs(one - two)[:, :6].max(axis=1), 0.7) < (1e-4 if dtype is wp.float32 else 1e-6)
    # up to 2 % of the contacts differ, which may be in 40 % of the worlds, and points of deep overlaps; in the other worlds, the error is
    # that of sweeps that have nearly converged
    new, new_of_lists = new.reshape(WORLDS, -1), new_of_lists.reshape(WORLDS, -1)
    error = np.abs(new - new_of_lists).max(axis=1) / np.abs(new_of_lists - qd).max(axis=1)
    assert np.quantile(error, 0.4) < 0.01


@pytest.mark.parametrize("turning", [0.0, pytest.param(0.02, marks=pytest.mark.slow)])
def test_forces_of_slots_change_the_momentum(rng, turning):
    """Impacts on fixed shapes change the momentum of each robot; those between links cancel."""
    model, q, qd = robots(rng, wp.float32, turning, friction=0.6, restitution=0.5)
    model.request_contact_attributes("force")
    solver = SolverFeatherstone(model, evaluator="general")
    state = model.state()
    solver.reset(state, None, q.ravel(), qd.ravel())
    mass = model.body_mass.numpy().astype(np.float64)
    world = model.body_world.numpy()
    body = model.shape_body.numpy()

    def momentum():
        total = np.zeros((WORLDS, 3))
        np.add.at(total, world, mass[:, None] * state.body_qd.numpy()[:, :3].astype(np.float64))
        return total

    before = momentum()
    solver.step(state, state, None, None, INSTANT)
    pairs, numbers = contacts_of(solver, model, state)
    force, by_shape = np.zeros((WORLDS, 3)), np.zeros((model.shape_count, 3))
    for side, sign in ((0, 1.0), (1, -1.0)):
        # what is listed acts on the first shape
        on_body = body[pairs[:, side]] >= 0
        np.add.at(force, world[body[pairs[on_body, side]]], sign * numbers[on_body, 6:])
        np.add.at(by_shape, pairs[on_body, side], sign * numbers[on_body, 6:])
    change = momentum() - before
    assert np.abs(change).max() > 0.1 * np.abs(before).max()
    # rounding of velocities and sums in single precision
    assert np.abs(change - INSTANT * force).max() < 1e-4 * np.abs(before).max()
    assert np.allclose(solver.contact_forces().numpy(), by_shape, atol=1e-4 * np.abs(by_shape).max())


def test_contacts_start_from_their_forces_of_the_step_before(rng):
    """A step that is made again starts from the forces of that step: a single sweep leaves its velocities nearly as they were. A step
    that starts without forces is far from them."""
    model, q, qd = robots(rng, wp.float32, 0.0, friction=0.6)
    solver = SolverFeatherstone(model, evaluator="general", iterations=100, tolerance=0.0)
    state, out = model.state(), model.state()
    solver.reset(state, None, q.ravel(), qd.ravel())

    def velocities():
        solver.step(state, out, None, None, DT)
        return out.joint_qd.numpy().reshape(WORLDS, -1).astype(np.float64)

    converged = velocities()
    # a world is done after a sweep that changes little
    solver.iterations, solver.tolerance = 1, 0.99
    again = np.linalg.norm(velocities() - converged, axis=1)
    solver.reset(state, None, q.ravel(), qd.ravel())
    cold = np.linalg.norm(velocities() - converged, axis=1)
    # remembered forces that would add energy are dropped in some worlds
    assert np.median(again / cold) < 0.05
