"""The oracles against each other: a slow reference from the definitions, MuJoCo, and pinocchio, on random trees.

These tests do not run kernels of newton_like; they check the reference implementations. Models are float64, so that agreement
is to rounding: poses and forces of trees of a few metres and newtons carry about 1e-15 relative error per operation,
and the worst conditioned mass matrices of these trees (condition about 1e5) lose five digits of it.
"""

import mujoco
import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import JointType, ModelBuilder
from tests.support import reference
from tests.support.mujoco_bridge import MujocoBridge
from tests.support.random_trees import random_state, random_transform, random_tree

EXACT = 1e-11
SOLVED = 1e-8

TREES = 12


def trees(rng, **options):
    for _ in range(TREES):
        options.setdefault("stiffness", True)
        model = random_tree(rng, joints=int(rng.integers(2, 10)), **options).finalize("cpu", dtype=wp.float64)
        yield model, *random_state(model, rng)


def assert_near(actual, expected, tolerance):
    """Equal to `tolerance`, relative to the largest of the expected values."""
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * scale)


def assert_same_poses(actual, expected, tolerance):
    assert_near(actual[:, :3], expected[:, :3], tolerance)
    turned = Rotation.from_quat(actual[:, 3:]) * Rotation.from_quat(expected[:, 3:]).inv()
    assert turned.magnitude().max(initial=0.0) < tolerance


def test_random_trees_draw_every_joint_type_and_are_reproducible():
    seen = set()
    for seed in range(TREES):
        first, second = (random_tree(np.random.default_rng(seed)).finalize("cpu", dtype=wp.float64) for _ in range(2))
        seen |= set(first.joint_type.numpy().tolist())
        np.testing.assert_array_equal(first.body_inertia.numpy(), second.body_inertia.numpy())
    assert seen == {int(t) for t in JointType}


def test_reference_velocities_are_the_rate_of_reference_poses(rng):
    h = 1e-5
    for model, q, qd in trees(rng):
        tree = reference.Tree.from_model(model)
        before, after = (reference.body_poses(tree, reference.displace(tree, q, qd, s)) for s in (-h, h))
        R0, R1 = (Rotation.from_quat(X[:, 3:]) for X in (before, after))
        com = (after[:, :3] + R1.apply(tree.body_com) - before[:, :3] - R0.apply(tree.body_com)) / (2.0 * h)
        spin = (R1 * R0.inv()).as_rotvec() / (2.0 * h)
        # Central differences: h^2 times a third derivative of up to 1e4, and rounding 1e-15 / h.
        assert_near(np.hstack([com, spin]), reference.body_velocities(tree, q, qd), 1e-6)


def test_reference_accelerations_are_the_rate_of_reference_velocities(rng):
    h = 1e-5
    for model, q, qd in trees(rng):
        tree, qdd = reference.Tree.from_model(model), rng.normal(size=model.joint_dof_count)
        before, after = (
            reference.body_velocities(tree, reference.displace(tree, q, qd, s), qd + s * qdd) for s in (-h, h)
        )
        expected = reference.body_accelerations(tree, q, qd, qdd)
        assert_near((after - before) / (2.0 * h), expected, 1e-6)


@pytest.mark.slow
def test_reference_power_is_the_rate_of_energy(rng):
    h = 1e-5
    for model, q, qd in trees(rng):
        tree, qdd = reference.Tree.from_model(model), rng.normal(size=model.joint_dof_count)

        def energy(s, tree=tree, q=q, qd=qd, qdd=qdd):
            moved = reference.displace(tree, q, qd, s)
            return reference.kinetic_energy(tree, moved, qd + s * qdd) + reference.potential_energy(tree, moved)

        power = reference.inverse_dynamics(tree, q, qd, qdd) @ qd
        # Energies are up to 1e3 J: rounding of 1e-13 / h and the third derivative times h^2.
        assert_near((energy(h) - energy(-h)) / (2.0 * h), power, 1e-6)


def test_reference_springs_take_the_energy_that_they_store(rng):
    h = 1e-5
    for model, q, qd in trees(rng, damping=False):
        tree = reference.Tree.from_model(model)
        before, after = (reference.spring_energy(tree, reference.displace(tree, q, qd, s)) for s in (-h, h))
        power = reference.passive_forces(tree, q, qd) @ qd
        # A rotation vector jumps at half a turn: with probability of about h a random ball joint is near enough.
        assert_near((after - before) / (2.0 * h), -power, 1e-6)


def test_mujoco_agrees_with_the_reference(rng):
    for model, q, qd in trees(rng):
        bridge = MujocoBridge(model)
        tree = bridge.tree
        bridge.set_state(q, qd)
        assert_same_poses(bridge.body_q(), reference.body_poses(tree, q), EXACT)
        assert_near(bridge.body_qd(), reference.body_velocities(tree, q, qd), EXACT)
        assert_near(bridge.mass_matrix(q), reference.mass_matrix(tree, q), EXACT)
        assert_near(bridge.bias_forces(q, qd), reference.bias_forces(tree, q, qd), EXACT)
        assert_near(bridge.passive_forces(q, qd), reference.passive_forces(tree, q, qd), EXACT)
        tau, wrench = rng.normal(size=tree.dof_count), rng.normal(size=(tree.body_count, 6))
        expected = reference.forward_dynamics(tree, q, qd, tau, wrench)
        assert_near(bridge.forward_dynamics(q, qd, tau, wrench), expected, SOLVED)


def test_mujoco_coordinates_come_back(rng):
    for model, q, qd in trees(rng):
        bridge = MujocoBridge(model)
        bridge.set_state(q, qd)
        again, velocity = bridge.get_state()
        assert_near(velocity, qd, EXACT)
        assert_near(bridge.qpos(again), bridge.data.qpos, EXACT)
        assert_same_poses(reference.body_poses(bridge.tree, again), reference.body_poses(bridge.tree, q), EXACT)


def test_pinocchio_agrees_with_the_reference(rng):
    pytest.importorskip("pinocchio")
    from tests.support.pinocchio_bridge import PinocchioBridge

    for model, q, qd in trees(rng):
        bridge = PinocchioBridge(model)
        tree = bridge.tree
        assert_same_poses(bridge.body_q(q), reference.body_poses(tree, q), EXACT)
        assert_near(bridge.body_qd(q, qd), reference.body_velocities(tree, q, qd), EXACT)
        assert_near(bridge.mass_matrix(q), reference.mass_matrix(tree, q), EXACT)
        assert_near(bridge.bias_forces(q, qd), reference.bias_forces(tree, q, qd), EXACT)
        tau = rng.normal(size=tree.dof_count)
        expected = reference.forward_dynamics(tree, q, qd, tau)
        passive = reference.passive_forces(tree, q, qd)
        assert_near(bridge.forward_dynamics(q, qd, tau + passive), expected, SOLVED)


@pytest.mark.slow
def test_world_wrench_on_a_free_joint_is_a_body_force(rng):
    for model, q, qd in trees(rng, types=(JointType.REVOLUTE, JointType.BALL), floating=True):
        tree, wrench = reference.Tree.from_model(model), rng.normal(size=6)
        joint_f, body_f = np.zeros(tree.dof_count), np.zeros((tree.body_count, 6))
        root = int(np.flatnonzero(tree.joint_type == JointType.FREE)[0])
        joint_f[tree.qd_of(root)], body_f[tree.joint_child[root]] = wrench, wrench
        by_joint = reference.forward_dynamics(tree, q, qd, reference.generalized_forces(tree, q, joint_f))
        assert_near(by_joint, reference.forward_dynamics(tree, q, qd, body_f=body_f), SOLVED)


def test_worlds_are_told_apart(rng):
    one, other = (random_tree(rng, joints=n) for n in (3, 5))
    builder = ModelBuilder()
    builder.add_world(one)
    builder.add_world(other)
    both = builder.finalize("cpu", dtype=wp.float64)
    q, qd = random_state(both, rng)
    whole = reference.body_velocities(reference.Tree.from_model(both), q, qd)
    for world, alone in enumerate((one, other)):
        tree = reference.Tree.from_model(both, world)
        expected = reference.Tree.from_model(alone.finalize("cpu", dtype=wp.float64))
        np.testing.assert_array_equal(tree.body_inertia, expected.body_inertia)
        np.testing.assert_array_equal(tree.joint_axis, expected.joint_axis)
        part = reference.body_velocities(tree, q[tree.coords], qd[tree.dofs])
        assert_near(part, whole[tree.bodies], EXACT)


def support_height(kind, size, R):
    """How far a shape reaches down from its centre (closed forms)."""
    a, b, c = size
    x, y, z = np.abs(R[2])
    if kind == "sphere":
        return a
    if kind == "capsule":
        return a + b * z
    if kind == "cylinder":
        return b * z + a * np.hypot(x, y)
    if kind == "box":
        return a * x + b * y + c * z
    return np.sqrt((a * x) ** 2 + (b * y) ** 2 + (c * z) ** 2)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("sphere", ("radius",)),
        ("capsule", ("radius", "half_height")),
        ("cylinder", ("radius", "half_height")),
        ("box", ("hx", "hy", "hz")),
        ("ellipsoid", ("rx", "ry", "rz")),
    ],
)
def test_mujoco_shapes_reach_down_as_far_as_ours(kind, names, rng):
    depth = 0.01
    for _ in range(5):
        builder, size = ModelBuilder(), rng.uniform(0.1, 0.3, 3)
        builder.add_ground_plane()
        link, frame, child = builder.add_link(), random_transform(rng), random_transform(rng)
        joint = builder.add_joint_free(link, child_xform=child)
        builder.add_articulation([joint])
        getattr(builder, f"add_shape_{kind}")(link, xform=frame, **dict(zip(names, size, strict=False)))
        bridge = MujocoBridge(builder.finalize("cpu", dtype=wp.float64), contacts=True)

        X = reference.pose_matrix(random_transform(rng))
        shape = X @ np.linalg.inv(reference.pose_matrix(child)) @ reference.pose_matrix(frame)
        X[2, 3] += support_height(kind, size, shape[:3, :3]) - depth - shape[2, 3]
        bridge.set_state(reference.matrix_pose(X), np.zeros(6))
        distances = [contact.dist for contact in bridge.data.contact]
        # MuJoCo finds the lowest point of an ellipsoid or cylinder by a convex solver that stops at about 1e-6.
        assert min(distances) == pytest.approx(-depth, abs=2e-6)


def test_mujoco_drives_pull_to_their_targets_and_stop_at_the_effort_limit(rng):
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    joint = builder.add_joint_revolute(-1, link, axis=(0, 0, 1), target_ke=7.0, target_kd=3.0, effort_limit=2.0)
    builder.add_articulation([joint])
    bridge = MujocoBridge(builder.finalize("cpu", dtype=wp.float64), drives=True)
    for target in (0.1, 5.0):
        q, qd, aim = 0.02, 0.05, np.array([target])
        bridge.data.ctrl[:] = bridge.ctrl(aim, np.array([0.4]), np.array([0.01]))
        bridge.set_state(np.array([q]), np.array([qd]))
        expected = min(2.0, 7.0 * (target - q) + 3.0 * (0.4 - qd) + 0.01)
        assert bridge.data.qfrc_actuator[0] == pytest.approx(expected, abs=EXACT)


def test_mujoco_holds_joint_limits_and_dry_friction(rng):
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    joint = builder.add_joint_prismatic(-1, link, axis=(0, 0, 1), limit_lower=-0.1, limit_upper=0.2, friction=20.0)
    builder.add_articulation([joint])
    model = builder.finalize("cpu", dtype=wp.float64)
    free, held, stuck = (MujocoBridge(model, **o) for o in ({}, {"limits": True}, {"friction": True}))
    for bridge in (free, held, stuck):
        for _ in range(2000):
            mujoco.mj_step(bridge.model, bridge.data)
    assert free.get_state()[0][0] < -1.0
    # MuJoCo's limits are soft: the weight of 1 kg presses them in by well under a millimetre.
    assert held.get_state()[0][0] == pytest.approx(-0.1, abs=1e-3)
    # Dry friction is soft there, too, and creeps where the force of its damper carries the weight: v = g R m / b with
    # R m = (1 - d) / d at d = 0.9 and b = 2 / (0.95 * 0.02 s), MuJoCo's default solimp and solref.
    creep = 9.81 * (0.1 / 0.9) * (0.95 * 0.02) / 2.0
    assert -stuck.get_state()[0][0] == pytest.approx(creep * stuck.data.time, rel=0.01)


def spheres_in_a_heap(count: int, per_body: int = 1) -> ModelBuilder:
    """Free bodies whose spheres all overlap."""
    builder = ModelBuilder()
    for i in range(count):
        body = builder.add_body(xform=(0.01 * i, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0))
        for _ in range(per_body):
            builder.add_shape_sphere(body, radius=0.1)
    return builder


def test_bodies_whose_shapes_are_filtered_do_not_touch_in_mujoco(rng):
    builder = spheres_in_a_heap(4)
    filtered = {tuple(sorted(map(int, rng.choice(4, 2, replace=False)))) for _ in range(3)}
    builder.shape_collision_filter_pairs.update(filtered)
    bridge = MujocoBridge(builder.finalize("cpu"), contacts=True, between_bodies=True)
    mujoco.mj_forward(bridge.model, bridge.data)
    touching = {tuple(sorted(int(bridge.model.geom(g).name[6:]) for g in c.geom)) for c in bridge.data.contact}
    assert touching == {(a, b) for a in range(4) for b in range(a + 1, 4)} - filtered


def test_bodies_of_which_some_shapes_are_filtered_are_refused():
    builder = spheres_in_a_heap(2, per_body=2)
    builder.shape_collision_filter_pairs.update([(0, 2)])
    with pytest.raises(ValueError, match=r"bodies.*\b0\b.*\b1\b.*\b4\b.*pairs"):
        MujocoBridge(builder.finalize("cpu"), contacts=True, between_bodies=True)


def test_what_has_no_translation_is_refused(rng):
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_free(link)])
    builder.joint_armature[0] = 0.1
    with pytest.raises(ValueError, match="armature"):
        MujocoBridge(builder.finalize("cpu", dtype=wp.float64))
