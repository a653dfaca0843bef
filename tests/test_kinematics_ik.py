"""eval_ik as the inverse of eval_fk for every joint type, and on poses that joints cannot take."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import JointDofConfig, JointType, ModelBuilder, eval_fk, eval_ik
from newton_like.types import warp_types
from tests.support.kinematic_cases import (
    EVERY_PRECISION,
    KINDS,
    NARROW,
    bodies_at,
    every_kind,
    forest,
    gradient_errors,
    pose_error,
    real_array,
    same_sign,
    use_threads,
    use_width,
)
from tests.support.random_trees import random_state, random_transform, random_tree, random_unit

# Coordinates go through some hundred operations there and back; poses of trees of a few metres are stored in between,
# rounded to 2.4e-7 m (float32). The middle of three angles is at most 1.1, where the others are known half as well.
POSITION = {wp.float32: 2e-5, wp.float64: 5e-14}
VELOCITY = {wp.float32: 1e-4, wp.float64: 2e-13}


class Bodies:
    """The arrays of a state that `eval_ik` reads."""

    def __init__(self, body_q, body_qd):
        self.body_q, self.body_qd = body_q, body_qd


def joints_at(model, body_q, body_qd):
    """Coordinates and velocities by `eval_ik`."""
    kinds = warp_types(model.dtype)
    state = Bodies(
        wp.array(body_q, dtype=kinds.transform, device="cpu"),
        wp.array(body_qd, dtype=kinds.spatial_vector, device="cpu"),
    )
    joint_q, joint_qd = (
        wp.zeros(n, dtype=model.dtype, device="cpu") for n in (model.joint_coord_count, model.joint_dof_count)
    )
    eval_ik(model, state, joint_q, joint_qd)
    return joint_q.numpy(), joint_qd.numpy()


def check_round_trip(model, q, qd, position, velocity):
    again, rate = joints_at(model, *bodies_at(model, q, qd))
    np.testing.assert_allclose(same_sign(model, again, q), q, rtol=0.0, atol=position)
    np.testing.assert_allclose(rate, qd, rtol=0.0, atol=velocity)


@EVERY_PRECISION
def test_coordinates_come_back_from_random_trees(rng, monkeypatch, width, dtype):
    use_width(monkeypatch, width)
    for worlds in (1, 16, 19):
        model = forest(rng, worlds).finalize("cpu", dtype=dtype)
        check_round_trip(model, *random_state(model, rng), POSITION[dtype], VELOCITY[dtype])


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
@pytest.mark.parametrize("moving", [False, True])
def test_coordinates_come_back_from_every_joint_type(rng, moving, dtype):
    scene = ModelBuilder()
    scene.replicate(every_kind(rng, moving), 4)
    model = scene.finalize("cpu", dtype=dtype)
    check_round_trip(model, *random_state(model, rng), POSITION[dtype], VELOCITY[dtype])


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_coordinates_come_back_a_kilometre_away(rng, dtype):
    model = forest(rng, worlds=4, robots=1, floating=True).finalize("cpu", dtype=dtype)
    q, qd = random_state(model, rng, far=1000.0)
    again, rate = joints_at(model, *bodies_at(model, q, qd))
    error = np.abs(same_sign(model, again, q) - q)
    # `body_q` at 1 km is rounded to 3e-5 m (5.7e-14 m); an offset between two bodies has four such roundings, with a
    # component along each axis. Angles do not suffer; velocities do where they act on an offset, at some 3 rad/s.
    rounding = {wp.float32: 3.1e-5, wp.float64: 5.7e-14}[dtype]
    base = (model.joint_q_start.numpy()[model.articulation_start.numpy()[:-1], None] + np.arange(3)).ravel()
    assert np.delete(error, base).max() < 8.0 * rounding
    assert np.abs(rate - qd).max() < 30.0 * rounding
    # the base's own kilometre is turned into world axes and back: two matrices of ten roundings an entry
    assert error[base].max() < 60.0 * rounding


def two_links(rng, linear=(), angular=()) -> ModelBuilder:
    """A D6 joint with the given axes below a floating link."""
    builder = ModelBuilder()
    links = [builder.add_link(mass=1.0, com=0.1 * rng.normal(size=3), inertia=np.eye(3)) for _ in range(2)]
    axes = [[JointDofConfig(axis=a) for a in x] for x in (linear, angular)]
    frames = {"parent_xform": random_transform(rng), "child_xform": random_transform(rng)}
    joints = [
        builder.add_joint_free(links[0]),
        builder.add_joint_d6(*links, linear_axes=axes[0], angular_axes=axes[1], **frames),
    ]
    builder.add_articulation(joints)
    return builder


def test_skewed_sliding_axes(rng):
    """Linear axes are not changed: only angular axes are made orthonormal."""
    for count in (2, 3):
        for _ in range(5):
            axes = Rotation.random(None, rng).as_matrix()[:count] + 0.3 * rng.normal(size=(count, 3))
            axes /= np.linalg.norm(axes, axis=1, keepdims=True)
            model = two_links(rng, linear=axes).finalize("cpu", dtype=wp.float64)
            stored = model.joint_axis.numpy()[6 : 6 + count]
            np.testing.assert_allclose(stored, axes, atol=1e-15)
            # oblique axes amplify rounding errors by the inverse of their smallest singular value
            loss = 1.0 / np.linalg.svd(axes, compute_uv=False)[-1] ** 2
            check_round_trip(model, *random_state(model, rng), 1e-14 * loss, 1e-13 * loss)


def test_two_angles_take_the_whole_circle(rng):
    """There is no gimbal lock between two axes: either angle may be anything."""
    model = two_links(rng, angular=Rotation.random(None, rng).as_matrix()[:2]).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    for first in np.linspace(-np.pi, np.pi, 9)[1:]:
        for second in np.linspace(-np.pi, np.pi, 9)[1:]:
            q[7:] = first, second
            again, rate = joints_at(model, *bodies_at(model, q, qd))
            # pi and -pi are one turn
            np.testing.assert_allclose(np.exp(1j * again[7:]), np.exp(1j * q[7:]), atol=1e-13)
            np.testing.assert_allclose(rate, qd, atol=1e-12)


def test_angles_come_back_within_half_a_turn(rng):
    for axes in ({"angular": 1}, {"angular": 2}, {"angular": 3}, {"linear": 1, "angular": 1}):
        triples = {name: Rotation.random(None, rng).as_matrix()[:n] for name, n in axes.items()}
        model = two_links(rng, **triples).finalize("cpu", dtype=wp.float64)
        q, qd = random_state(model, rng)
        whole = q.copy()
        turns = 2.0 * np.pi * rng.integers(-3, 4, axes["angular"])
        whole[model.joint_coord_count - axes["angular"] :] += turns
        again, _ = joints_at(model, *bodies_at(model, whole, qd))
        np.testing.assert_allclose(same_sign(model, again, q), q, atol=1e-13)


def test_half_a_turn_is_positive(rng):
    model = every_kind(rng, moving=False).finalize("cpu", dtype=wp.float64)
    for sign in (-1.0, 1.0):
        q, qd = random_state(model, rng)
        kinds, start = model.joint_type.numpy(), model.joint_q_start.numpy()
        hinges = start[:-1][kinds == JointType.REVOLUTE]
        q[hinges] = sign * np.pi
        again, _ = joints_at(model, *bodies_at(model, q, qd))
        # half a turn comes out as +pi or, rounded to the other side, as -pi and a bit
        np.testing.assert_allclose(np.abs(again[hinges]), np.pi, atol=1e-14)
        assert (again[hinges] <= np.pi).all()


@pytest.mark.parametrize("hand", [1, -1])
@pytest.mark.parametrize("sign", [1, -1])
def test_poses_and_velocities_are_met_in_gimbal_lock(rng, sign, hand):
    triple = Rotation.random(None, rng).as_matrix() * [[1], [1], [hand]]
    model = two_links(rng, angular=triple).finalize("cpu", dtype=wp.float64)
    for miss in (0.0, 1e-12, 1e-6):
        q, qd = random_state(model, rng)
        q[8] = sign * (0.5 * np.pi - miss)
        # the first and the last axis are one: there is no velocity across it
        qd[6:] = rng.normal(), 0.0, 0.0
        body_q, body_qd = bodies_at(model, q, qd)
        again, rate = joints_at(model, body_q, body_qd)
        assert np.isfinite(again).all()
        assert np.isfinite(rate).all()
        met, moving = bodies_at(model, again, rate)
        assert max(pose_error(met, body_q)) < 1e-14
        # the rate of the last angle is a rounding, 1e-15, over the cosine of the middle one, taken as 1e-6 at least
        np.testing.assert_allclose(moving, body_qd, atol=1e-8)


def test_three_angles_come_back_next_to_gimbal_lock(rng):
    model = two_links(rng, angular=Rotation.random(None, rng).as_matrix()).finalize("cpu", dtype=wp.float64)
    for miss in (1e-1, 1e-2, 1e-3, 1e-4):
        q, qd = random_state(model, rng)
        q[8] = 0.5 * np.pi - miss
        again, rate = joints_at(model, *bodies_at(model, q, qd))
        # angles and their rates are the roundings of the pose over the distance from the lock
        np.testing.assert_allclose(np.exp(1j * again[7:]), np.exp(1j * q[7:]), atol=1e-14 / miss)
        np.testing.assert_allclose(rate[6:], qd[6:], atol=1e-13 / miss**2)


@pytest.mark.slow
def test_the_nearest_pose_a_hinge_can_take(rng):
    """Off its axis, a hinge reads the angle that leaves the smallest rotation over."""
    axis = random_unit(rng)
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_revolute(-1, link, axis=axis)])
    model = builder.finalize("cpu", dtype=wp.float64)
    axis = model.joint_axis.numpy()[0]
    for _ in range(20):
        pose = random_transform(rng)
        angle = joints_at(model, [pose], np.zeros((1, 6)))[0][0]

        def rest(a, quaternion=pose[3:]):
            return (Rotation.from_rotvec(a * axis).inv() * Rotation.from_quat(quaternion)).magnitude()

        assert rest(angle) <= min(rest(a) for a in np.linspace(-np.pi, np.pi, 2000)) + 1e-12


def test_slides_read_the_offset_along_their_axes(rng):
    """The coordinates of linear axes give the nearest reachable point: the residual is orthogonal to the axes."""
    for count in (1, 2, 3):
        axes = Rotation.random(None, rng).as_matrix()[:count] + 0.2 * rng.normal(size=(count, 3))
        model = two_links(rng, linear=axes / np.linalg.norm(axes, axis=1, keepdims=True)).finalize(
            "cpu", dtype=wp.float64
        )
        body_q = np.stack([random_transform(rng) for _ in range(2)])
        q, _ = joints_at(model, body_q, np.zeros((2, 6)))
        X_p, X_c = (getattr(model, name).numpy()[1] for name in ("joint_X_p", "joint_X_c"))
        parent, child = (Rotation.from_quat(pose[3:]) for pose in body_q)
        offset = body_q[1, :3] + child.apply(X_c[:3]) - body_q[0, :3] - parent.apply(X_p[:3])
        local = (parent * Rotation.from_quat(X_p[3:])).inv().apply(offset)
        stored = model.joint_axis.numpy()[6:]
        np.testing.assert_allclose(stored @ (local - q[7:] @ stored), 0.0, atol=1e-13)


def test_a_revolving_parent_does_not_move_the_coordinates_of_its_child(rng):
    """Both rotate as one body about a distant point: joint velocities below the base are zero, for any offsets."""
    model = every_kind(rng).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    spin = np.zeros_like(qd)
    starts = model.joint_qd_start.numpy()
    for a in range(model.articulation_count):
        base = starts[model.articulation_start.numpy()[a]]
        spin[base : base + 6] = rng.normal(size=6)
    _, rate = joints_at(model, *bodies_at(model, q, spin))
    np.testing.assert_allclose(rate, spin, atol=1e-13)


def test_quaternions_of_bodies_need_not_be_unit(rng):
    model = forest(rng).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    body_q, body_qd = bodies_at(model, q, qd)
    expected = joints_at(model, body_q, body_qd)
    body_q[:, 3:] *= rng.choice([-1.0, 1.0], (len(body_q), 1)) * rng.uniform(0.5, 2.0, (len(body_q), 1))
    again, rate = joints_at(model, body_q, body_qd)
    np.testing.assert_allclose(same_sign(model, again, expected[0]), expected[0], atol=1e-13)
    np.testing.assert_allclose(rate, expected[1], atol=1e-12)


@pytest.mark.parametrize(("width", "dtype"), NARROW)
def test_coordinates_that_are_not_selected_keep_their_bits(rng, monkeypatch, width, dtype):
    use_width(monkeypatch, width)
    model = forest(rng, worlds=37).finalize("cpu", dtype=dtype)
    q, qd = random_state(model, rng)
    state = model.state()
    eval_fk(model, real_array(model, q), real_array(model, qd), state)
    whole = joints_at(model, state.body_q.numpy(), state.body_qd.numpy())
    of = model.joint_articulation.numpy()
    of_q = np.repeat(of, np.diff(model.joint_q_start.numpy()))
    of_qd = np.repeat(of, np.diff(model.joint_qd_start.numpy()))
    count = model.articulation_count
    for mask in (rng.random(count) < 0.4, np.arange(count) < 35, np.zeros(count, bool), np.ones(count, bool)):
        for selection in ({"mask": mask}, {"indices": np.flatnonzero(mask)}):
            old_q, old_qd = rng.normal(size=len(q)), rng.normal(size=len(qd))
            joint_q, joint_qd = real_array(model, old_q), real_array(model, old_qd)
            old_q, old_qd = joint_q.numpy().copy(), joint_qd.numpy().copy()
            eval_ik(model, state, joint_q, joint_qd, **selection)
            np.testing.assert_array_equal(joint_q.numpy(), np.where(mask[of_q], whole[0], old_q))
            np.testing.assert_array_equal(joint_qd.numpy(), np.where(mask[of_qd], whole[1], old_qd))


def test_a_world_has_the_same_bits_in_any_batch_on_any_number_of_threads(rng, monkeypatch):
    tree = random_tree(rng, joints=9)

    def run(keys, threads):
        use_threads(monkeypatch, threads)
        scene = ModelBuilder()
        scene.replicate(tree, len(keys))
        model = scene.finalize("cpu")
        body_q = np.concatenate([bodies[k][0] for k in keys])
        body_qd = np.concatenate([bodies[k][1] for k in keys])
        return [x.reshape(len(keys), -1) for x in joints_at(model, body_q, body_qd)]

    single = tree.finalize("cpu")
    bodies = [bodies_at(single, *random_state(single, rng)) for _ in range(35)]
    expected = run(np.arange(35), 1)
    for threads, keys in ((3, rng.permutation(35)), (1, rng.permutation(35)[:16]), (2, rng.permutation(35)[:5])):
        for actual, one in zip(run(keys, threads), expected, strict=True):
            np.testing.assert_array_equal(actual, one[keys])


def test_joints_outside_of_articulations_keep_their_coordinates(rng):
    builder = random_tree(rng, joints=6)
    builder.add_joint_revolute(0, 5, axis=(0, 0, 1), parent_xform=random_transform(rng))
    model = builder.finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    state = model.state()
    eval_fk(model, real_array(model, q), real_array(model, qd), state)
    joint_q, joint_qd = real_array(model, np.full_like(q, 5.0)), real_array(model, np.full_like(qd, 6.0))
    eval_ik(model, state, joint_q, joint_qd)
    assert joint_q.numpy()[-1] == 5.0
    assert joint_qd.numpy()[-1] == 6.0
    np.testing.assert_allclose(joint_qd.numpy()[:-1], qd[:-1], atol=1e-12)


def test_articulations_may_share_a_stretch_of_bodies(rng):
    builder = ModelBuilder()
    links = [builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(6)]
    for first in (0, 1):
        parent, joints = -1, []
        for link in links[first::2]:
            joints.append(builder.add_joint_revolute(parent, link, axis=random_unit(rng)))
            parent = link
        builder.add_articulation(joints)
    scene = ModelBuilder()
    scene.replicate(builder, 18)
    model = scene.finalize("cpu", dtype=wp.float64)
    check_round_trip(model, *random_state(model, rng), 1e-14, 1e-13)


def test_nothing_to_do_is_done():
    empty = ModelBuilder().finalize("cpu")
    eval_ik(empty, empty.state(), empty.joint_q, empty.joint_qd)
    fixed = ModelBuilder()
    fixed.add_articulation([fixed.add_joint_fixed(-1, fixed.add_link(mass=1.0, inertia=np.eye(3)))])
    model = fixed.finalize("cpu")
    eval_ik(model, model.state(), model.joint_q, model.joint_qd)
    assert model.joint_coord_count == 0


@pytest.mark.slow
def test_gradients_are_those_of_central_differences(rng):
    """At poses that the joints cannot quite take."""
    for builder in (every_kind(rng), forest(rng, worlds=2)):
        model = builder.finalize("cpu", dtype=wp.float64)
        # code with a long compile time is interpreted, with the same bits (tests/compiler/test_listing.py)
        model.evaluator = "general"
        kinds = warp_types(wp.float64)

        def as_kind(array, kind, model=model):
            grad = None
            if array.requires_grad:
                grad = wp.array(ptr=array.grad.ptr, dtype=kind, shape=(model.body_count,), device="cpu", copy=False)
            return wp.array(ptr=array.ptr, dtype=kind, shape=(model.body_count,), device="cpu", copy=False, grad=grad)

        def joints(body_q, body_qd, model=model, kinds=kinds):
            outputs = [
                wp.zeros(n, dtype=wp.float64, device="cpu", requires_grad=body_q.requires_grad)
                for n in (model.joint_coord_count, model.joint_dof_count)
            ]
            state = Bodies(as_kind(body_q, kinds.transform), as_kind(body_qd, kinds.spatial_vector))
            eval_ik(model, state, *outputs)
            return outputs

        body_q, body_qd = bodies_at(model, *random_state(model, rng))
        body_q += 0.01 * rng.normal(size=body_q.shape)
        # central differences: rounding 1e-16 / 1e-6 of values of some 10, and third derivatives times 1e-12
        assert max(gradient_errors(joints, [body_q.ravel(), body_qd.ravel()], rng)) < 1e-7


def test_wrong_arguments_are_refused(rng):
    model = forest(rng, worlds=2).finalize("cpu")
    state = model.state()
    with pytest.raises(ValueError, match=r"mask.*indices"):
        eval_ik(model, state, state.joint_q, state.joint_qd, mask=[True] * 4, indices=[0])
    with pytest.raises(IndexError, match=r"indices.*articulation.*9.*4"):
        eval_ik(model, state, state.joint_q, state.joint_qd, indices=[9])
    with pytest.raises(ValueError, match=r"joint_qd .*shape"):
        eval_ik(model, state, state.joint_q, state.joint_q)
    other = ModelBuilder()
    other.add_body(mass=1.0, inertia=np.eye(3))
    with pytest.raises(ValueError, match=r"state.body_q.*\(1,\).*\(32,\)"):
        eval_ik(model, other.finalize("cpu").state(), state.joint_q, state.joint_qd)
    assert len(KINDS) > 20
