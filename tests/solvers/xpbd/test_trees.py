"""Joints of trees, which are solved at once."""

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.solvers.xpbd.joints import AXES, TURNS

import newton_like as nl
from newton_like.solvers import SolverFeatherstone
from newton_like.solvers.xpbd.trees import DEEPEST, trees_of_joints
from tests.solvers.xpbd.scenes import after, gaps, started, xpbd
from tests.support.random_trees import random_inertia, random_transform, random_unit

WORLDS = 16


def random_pairs(rng, count: int, bodies: int) -> np.ndarray:
    """Parents and children of random joints, some with the world, some with bodies that nothing moves as children."""
    pairs = rng.integers(-1, bodies, size=(count, 2))
    return pairs[pairs[:, 0] != pairs[:, 1]]


def test_joints_in_trees_have_parents_above_them(rng):
    """Of random graphs: each child has one joint of a tree, whose parent is one level above; children of a parent have different ranks."""
    for _ in range(300):
        pairs = random_pairs(rng, int(rng.integers(1, 12)), 8)
        kinds = np.array([(AXES, 0, 1), (TURNS, 0, 3), (AXES, 1, 0), (AXES, 0, 3)])[
            rng.choice(4, p=[0.4, 0.25, 0.25, 0.1], size=len(pairs))
        ].reshape(-1, 3)
        placed = trees_of_joints(pairs, kinds)
        own = np.flatnonzero(placed.depth)
        into = {int(pairs[j, 1]): j for j in own}
        assert len(into) == len(own) and -1 not in into
        assert not ((kinds[own, 0] == AXES) & (kinds[own, 2] == 3)).any()
        ranks = set()
        for j in own:
            a, b = pairs[j].tolist()
            assert placed.depth[j] == 1 + (placed.depth[into[a]] if a in into else 0)
            assert placed.leaf[j] == (b not in pairs[own, 0])
            assert placed.moved[j] == (a >= 0)
            if a >= 0:
                assert (a, placed.rank[j]) not in ranks
                ranks.add((a, placed.rank[j]))


def test_all_joints_of_trees_are_in_them(rng):
    """Random trees with two joints and more, in random order; without joints of lines."""
    for _ in range(100):
        count = int(rng.integers(2, 10))
        pairs = np.array([(rng.integers(i), i) for i in range(1, count + 1)])[rng.permutation(count)]
        kinds, alone = np.tile((AXES, 0, 1), (count, 1)), rng.uniform(size=count) < 0.3
        assert trees_of_joints(pairs, kinds).depth.all()
        assert not trees_of_joints(pairs, kinds, alone).depth[alone].any()


def test_deep_trees_are_left_out():
    """The joints of a chain of `DEEPEST` links are solved at once, and those of a chain with one more one after the other."""
    chain = np.arange(DEEPEST + 2)
    pairs = np.stack([chain - 1, chain], axis=1)
    kinds = np.tile((AXES, 0, 1), (len(pairs), 1))
    for count, solved in ((DEEPEST, True), (DEEPEST + 1, False)):
        assert trees_of_joints(pairs[:count], kinds[:count]).depth.tolist() == [*range(1, count + 1)] * solved + [
            0
        ] * count * (not solved)


def random_tree(rng, floating: bool, **dof) -> nl.ModelBuilder:
    """A tree of eight links with joints of the kinds that are solved together."""
    builder, joints, links = nl.ModelBuilder(), [], []
    config = nl.ModelBuilder.JointDofConfig

    def link() -> int:
        mass = 10.0 ** rng.uniform(-1.0, 0.5)
        links.append(builder.add_link(mass=mass, com=0.1 * rng.normal(size=3), inertia=random_inertia(rng, mass)))
        return links[-1]

    base = link()
    joints.append(builder.add_joint_free(base) if floating else builder.add_joint_revolute(-1, base, axis=(0, 1, 0)))
    for kind in rng.permutation(["revolute", "revolute", "prismatic", "ball", "fixed", "cylindrical", "universal"]):
        parent, child = links[rng.integers(len(links))], link()
        where = dict(parent_xform=random_transform(rng, 0.2), child_xform=random_transform(rng, 0.2))
        basis = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        axes = [config(axis=tuple(a), **dof) for a in basis]
        if kind in ("revolute", "prismatic"):
            add = getattr(builder, f"add_joint_{kind}")
            joints.append(add(parent, child, axis=tuple(random_unit(rng)), **where, **dof))
        elif kind in ("ball", "fixed"):
            joints.append(getattr(builder, f"add_joint_{kind}")(parent, child, **where))
        elif kind == "cylindrical":
            joints.append(builder.add_joint_d6(parent, child, linear_axes=axes[:1], angular_axes=axes[1:2], **where))
        else:
            joints.append(builder.add_joint_d6(parent, child, angular_axes=axes[:2], **where))
    builder.add_articulation(joints)
    return builder


@pytest.mark.parametrize("floating", [True, False])
@pytest.mark.parametrize(
    "dof",
    [{}, dict(stiffness=40.0, damping=0.5, armature=0.02), dict(target_ke=60.0, target_kd=0.3, effort_limit=1.0)],
    ids=["passive", "springs", "drives"],
)
def test_accelerations_are_those_of_forward_dynamics(floating, dof, rng):
    """The change of velocities in a short sub-step with one pass is that of `SolverFeatherstone`. Passes over one joint after the other
    would need many."""
    scene = nl.ModelBuilder()
    for _ in range(WORLDS):
        scene.add_world(random_tree(rng, floating, **dof))
    model = scene.finalize("cpu", dtype=wp.float64)
    q = model.joint_q.numpy()
    ends = []
    dt = 1e-4
    for solver in (SolverFeatherstone(model, evaluator="general", width=1), xpbd(model, iterations=1, substeps=1)):
        state = started(model, q)
        # the first two steps differ: velocities of a leapfrog are those half a step later
        for _ in range(2):
            solver.step(state, state, None, None, dt)
        ends.append(state.joint_qd.numpy().copy() / dt)
    off, size = np.abs(ends[1] - ends[0]).max(), np.abs(ends[0]).max()
    # half a step of the leapfrog, and the change of accelerations in two steps: both of the order of dt
    assert off < 1e-3 * size


def test_arms_under_their_weight_have_no_gaps(rng):
    """Arms of six links hang on stiff drives: anchors meet to rounding. With passes over one joint after the other, gaps were about
    1e-5 m."""
    scene = nl.ModelBuilder()
    for _ in range(WORLDS):
        builder, joints, parent = nl.ModelBuilder(), [], -1
        for _ in range(6):
            mass = rng.uniform(0.5, 3.0)
            link = builder.add_link(mass=mass, com=0.1 * rng.normal(size=3), inertia=random_inertia(rng, mass, 0.1))
            place = 0.25 * random_unit(rng)
            joints.append(
                builder.add_joint_revolute(
                    parent, link, axis=tuple(random_unit(rng)), parent_xform=(*place, 0, 0, 0, 1), target_ke=1000.0,
                    target_kd=100.0,
                )
            )  # fmt: skip
            parent = link
        builder.add_articulation(joints)
        scene.add_world(builder)
    model = scene.finalize("cpu")
    state = after(xpbd(model), started(model), 2.0, 1 / 240)
    # a place of 1.5 m rounds by 1e-7 m
    assert gaps(model, state).max() < 1e-6


def test_light_links_between_heavy_ones_do_not_shake(rng):
    """The middle link has 2e-4 of the moments of inertia of its neighbours, as the waist of a Unitree G1. Passes over one joint after the
    other do not hold it: such arms turned at 1 rad/s and more."""
    scene = nl.ModelBuilder()
    for _ in range(WORLDS):
        builder, joints, parent = nl.ModelBuilder(), [], -1
        for moment in (0.1, 2e-5, 2e-5, 0.1):
            link = builder.add_link(mass=1e3 * moment if moment < 1e-3 else 5.0, inertia=moment * np.eye(3))
            builder.body_com[link] = wp.vec3(0.0, 0.0, 0.1 if moment > 1e-3 else 0.0)
            joints.append(
                builder.add_joint_revolute(parent, link, axis=tuple(random_unit(rng)), target_ke=300.0, target_kd=5.0)
            )
            parent = link
        builder.add_articulation(joints)
        scene.add_world(builder)
    model = scene.finalize("cpu")
    state = after(xpbd(model), started(model), 3.0, 1 / 240)
    assert np.abs(state.body_qd.numpy()).max() < 1e-2


@pytest.mark.parametrize("width", [1, 8])
def test_a_robot_alone_has_the_bits_of_one_among_others(width, rng):
    """Children of one parent are in one block where a robot is alone, and in several ones beside others. The others meet limits at other
    times, and one has velocities that are not numbers."""
    builder = random_tree(rng, True, target_ke=30.0, target_kd=1.0, limit_lower=-0.2, limit_upper=0.2, friction=0.2)
    speeds = 3.0 * rng.normal(size=(19, builder.joint_dof_count))
    speeds[-1] = np.nan
    ends = []
    for count in (1, 19):
        scene = nl.ModelBuilder()
        for _ in range(count):
            scene.add_world(builder)
        model = scene.finalize("cpu")
        state = after(xpbd(model, width=width), started(model, None, speeds[:count]), 0.1, 1 / 240)
        ends.append(state.body_q.numpy().reshape(count, -1))
    assert np.isfinite(ends[1][:-1]).all()
    assert (ends[1][0] == ends[0][0]).all()


def chain_of_hinges(radius: float = 0.1, free: bool = True, count: int = 4) -> nl.ModelBuilder:
    """Spheres of the density of water that hinges with axes along x and y connect."""
    builder, joints, parent = nl.ModelBuilder(gravity=0.0), [], -1
    mass = 4000.0 / 3.0 * np.pi * radius**3
    for i in range(count):
        link = builder.add_link(mass=mass, inertia=0.4 * mass * radius**2 * np.eye(3))
        ends = dict(parent_xform=(0, 0, -radius, 0, 0, 0, 1), child_xform=(0, 0, radius, 0, 0, 0, 1))
        axis = (0, 1, 0) if i % 2 else (1, 0, 0)
        first = i == 0 and free
        joints.append(
            builder.add_joint_free(link) if first else builder.add_joint_revolute(parent, link, axis=axis, **ends)
        )
        parent = link
    builder.add_articulation(joints)
    return builder


def test_small_robots_turn_as_large_ones(rng):
    """Without weight, angles do not depend on the size. Products of three moments of inertia of spheres of 0.1 mm are zero in single
    precision."""
    speeds, ends = rng.normal(size=9), []
    for radius in (1e-4, 0.1):
        model = chain_of_hinges(radius).finalize("cpu")
        state = started(model, None, np.append(np.zeros(6), speeds[6:]))
        ends.append(after(xpbd(model), state, 0.5, 1 / 240).joint_q.numpy()[7:])
    np.testing.assert_allclose(*ends, atol=1e-4)


def test_lanes_without_a_joint_have_finite_numbers():
    """Joints of one block of joints that are in several blocks of trees leave lanes free. What these compute goes into slots without a
    body, which lanes of contacts read, too."""
    model = chain_of_hinges(free=False, count=6).finalize("cpu")
    solver, state = xpbd(model), started(model, np.full(6, 0.1))
    after(solver, state, 0.02, 1 / 240)
    assert np.isfinite(solver._bodies["numbers"].numpy()).all()
    assert np.isfinite(solver._trees["body"].numpy()).all()


def test_limits_of_trees_hold(rng):
    """Links of random trees that begin with random velocities stop at their limits of position; a sub-step of 1/1920 s passes them by what
    the velocity leaves of a limit that begins to hold between two sub-steps."""
    scene = nl.ModelBuilder(gravity=0.0)
    for _ in range(WORLDS):
        scene.add_world(random_tree(rng, True, limit_lower=-0.2, limit_upper=0.2))
    model = scene.finalize("cpu")
    state, solver = started(model, None, 3.0 * rng.normal(size=model.joint_dof_count)), xpbd(model)
    limited = model.joint_limit_upper.numpy() < 1.0
    starts, dofs = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    place = np.concatenate([starts[j] + np.arange(n) for j, n in enumerate(np.diff(dofs)) if limited[dofs[j]]])
    most = 0.0
    for _ in range(120):
        solver.step(state, state, None, None, 1 / 240)
        most = max(most, np.abs(state.joint_q.numpy()[place]).max())
    assert most < 0.21
