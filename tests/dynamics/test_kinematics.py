"""Transforms, velocities, accelerations and Jacobians of links, frames and points: definitions, identities, pinocchio, precision."""

from itertools import pairwise

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import JointType, ModelBuilder, dynamics
from newton_like.types import VelRepr
from tests.support import reference
from tests.support.dynamics_cases import Case, cases
from tests.support.kinematic_cases import every_kind, forest, gradient_errors, moving_state
from tests.support.paths import ROBOTS
from tests.support.random_trees import random_state, random_transform, random_tree
from tests.support.traced import run_by_numpy

BASES = [None, *VelRepr]

# Sums over ten joints of products of numbers of about ten, some hundred roundings of 1e-16 each.
CLOSE = dict(rtol=1e-11, atol=1e-11)
# Central differences: truncation of 1e-12 times third derivatives, and roundings of 1e-15 over steps of 1e-6 of numbers of up to 1e2.
SMOOTH = dict(rtol=1e-6, atol=1e-6)


def vector(S):
    """w of the matrix [w]."""
    return np.array([S[2, 1], S[0, 2], S[1, 0]])


def derivatives(X, com, repr):
    """Velocity and acceleration in a representation of a frame whose pose along a motion is ``X[0] + X[1] t + X[2] t^2``.

    By differentiating the definition of the representation; `com` is the centre of mass seen from the frame.
    """
    R, dR, ddR = X[0, :3, :3], X[1, :3, :3], 2.0 * X[2, :3, :3]
    p, dp, ddp = X[0, :3, 3], X[1, :3, 3], 2.0 * X[2, :3, 3]
    w, dw = vector(dR @ R.T), vector(0.5 * ((ddR @ R.T) - (ddR @ R.T).T))
    if repr == VelRepr.COM:
        dp, ddp = dp + dR @ com, ddp + ddR @ com
    if repr == VelRepr.INERTIAL:
        dp, ddp = dp - np.cross(w, p), ddp - np.cross(dw, p) - np.cross(w, dp)
    if repr == VelRepr.BODY:
        dp, ddp = R.T @ dp, dR.T @ dp + R.T @ ddp
        w, dw = R.T @ w, dR.T @ w + R.T @ dw
    return np.concatenate([dp, w]), np.concatenate([ddp, dw])


def links_of(case):
    """Body of every link."""
    return case.tree.joint_child


def poses_of(X):
    return np.array([reference.matrix_pose(x) for x in X])


def same_poses(actual, expected):
    np.testing.assert_allclose(actual[..., :3], expected[..., :3], **CLOSE)
    turned = np.abs(np.sum(actual[..., 3:] * expected[..., 3:], axis=-1))
    # half the square of the angle between them
    np.testing.assert_allclose(turned, 1.0, atol=1e-14)


def some_frames(case, rng, count=3):
    """Random frames of random links: pairs for the library, and for each its link's body and matrix."""
    links = rng.integers(len(links_of(case)), size=count)
    offsets = [random_transform(rng) for _ in links]
    pairs = [(int(k), offset) for k, offset in zip(links, offsets, strict=True)]
    return pairs, [(links_of(case)[k], reference.pose_matrix(x)) for k, x in pairs]


@pytest.mark.slow
def test_links_and_frames_move_as_the_definitions_say(rng, by_numpy):
    """Poses, velocities and accelerations in every representation, from polynomials in time."""
    for case in cases(rng):
        qdd = rng.normal(size=len(case.qd))
        X = reference.body_motion(case.tree, case.q, case.qd, qdd)
        pairs, frames = some_frames(case, rng)
        frames += [(body, np.eye(4)) for body in links_of(case)]
        motions = [X[body] @ offset for body, offset in frames]
        coms = [(np.linalg.inv(offset) @ np.append(case.tree.body_com[body], 1.0))[:3] for body, offset in frames]
        actual = np.concatenate([case.get(dynamics.frame_transforms, frames=pairs), case.get(dynamics.link_transforms)])
        same_poses(actual, poses_of(m[0] for m in motions))
        for repr in VelRepr:
            expected = [derivatives(m, c, repr) for m, c in zip(motions, coms, strict=True)]
            velocities = case.get(dynamics.frame_velocities, frames=pairs, repr=repr)
            velocities = np.concatenate([velocities, case.get(dynamics.link_velocities, repr=repr)])
            np.testing.assert_allclose(velocities, [v for v, _ in expected], **CLOSE)
            given = dict(joint_acceleration=wp.array(qdd, dtype=wp.float64), out_repr=repr)
            accelerations = [case.get(dynamics.frame_acceleration, frame=pair, **given) for pair in pairs]
            accelerations = np.concatenate([accelerations, case.get(dynamics.link_accelerations, **given)])
            np.testing.assert_allclose(accelerations, [a for _, a in expected], **CLOSE)


@pytest.mark.slow
def test_points_are_origins_of_frames(rng, by_numpy):
    """A point and a frame at this point have equal velocities, Jacobians and bias accelerations."""
    for case in cases(rng):
        on = [int(k) for k in rng.integers(len(links_of(case)), size=4)]
        points = rng.normal(size=(4, 3))
        frames = [(k, [*x, *Rotation.random(None, rng).as_quat()]) for k, x in zip(on, points, strict=True)]
        here = dict(links=on, points=points)
        np.testing.assert_allclose(
            case.get(dynamics.point_positions, **here),
            case.get(dynamics.frame_transforms, frames=frames)[:, :3],
            **CLOSE,
        )
        np.testing.assert_allclose(
            case.get(dynamics.point_velocities, **here),
            case.get(dynamics.frame_velocities, frames=frames)[:, :3],
            **CLOSE,
        )
        for repr in (None, VelRepr.BODY):
            pairs = (
                (dynamics.point_jacobians, dynamics.frame_jacobians),
                (dynamics.point_jacobian_derivatives, dynamics.frame_jacobian_derivatives),
            )
            for of_points, of_frames in pairs:
                actual, expected = case.get(of_points, repr=repr, **here), case.get(of_frames, frames=frames, repr=repr)
                np.testing.assert_allclose(actual, expected[:, :3], **CLOSE)
            np.testing.assert_allclose(
                case.get(dynamics.point_bias_accelerations, repr=repr, **here),
                case.get(dynamics.point_jacobian_derivatives, repr=repr, **here) @ case.velocities(repr),
                **CLOSE,
            )


def test_every_articulation_has_its_own_points(rng, by_numpy):
    model = forest(rng, worlds=2, robots=1, joints=5).finalize("cpu", dtype=wp.float64)
    state, *_ = moving_state(model, rng)
    points = rng.normal(size=(2, 3, 3))
    together = dynamics.point_positions(model, state, 2, points).numpy()
    for a in range(2):
        alone = dynamics.point_positions(model, state, 2, points[a]).numpy()
        np.testing.assert_allclose(together[a], alone[a], **CLOSE)
        assert np.abs(together[1 - a] - alone[1 - a]).max() > 1e-3


@pytest.mark.slow
def test_jacobian_times_velocity_and_its_derivative(rng, by_numpy):
    """J nu = v, J_dot nu = bias, and J nu_dot + J_dot nu = acceleration, between all representations."""
    for case in cases(rng):
        pairs, _ = some_frames(case, rng, 2)
        for out_repr in VelRepr:
            velocities = case.get(dynamics.link_velocities, repr=out_repr)
            of_frames = case.get(dynamics.frame_velocities, frames=pairs, repr=out_repr)
            # a fixed base has no representation
            for repr in BASES if case.floating else [out_repr]:
                asked = dict(repr=repr, out_repr=out_repr)
                nu, nu_dot = case.velocities(repr), rng.normal(size=len(case.qd))
                J, dJ = (
                    case.get(dynamics.link_jacobians, **asked),
                    case.get(dynamics.link_jacobian_derivatives, **asked),
                )
                np.testing.assert_allclose(J @ nu, velocities, **CLOSE)
                bias = case.get(dynamics.link_bias_accelerations, **asked)
                np.testing.assert_allclose(dJ @ nu, bias, **CLOSE)
                acceleration = case.get(dynamics.link_accelerations, joint_acceleration=nu_dot, **asked)
                np.testing.assert_allclose(J @ nu_dot + dJ @ nu, acceleration, **CLOSE)
                J = case.get(dynamics.frame_jacobians, frames=pairs, **asked)
                dJ = case.get(dynamics.frame_jacobian_derivatives, frames=pairs, **asked)
                np.testing.assert_allclose(J @ nu, of_frames, **CLOSE)
                bias = [case.get(dynamics.frame_bias_acceleration, frame=pair, **asked) for pair in pairs]
                np.testing.assert_allclose(dJ @ nu, bias, **CLOSE)


@pytest.mark.slow
def test_derivatives_of_jacobians_are_those_along_the_motion(rng, by_numpy):
    """Against central differences of the Jacobians themselves."""
    for case in cases(rng):
        pairs, _ = some_frames(case, rng, 2)
        for repr, out_repr in zip(BASES, [*VelRepr, VelRepr.BODY], strict=True):
            asked = dict(frames=pairs, repr=repr, out_repr=out_repr)
            moved = case.along(lambda q, qd, c=case, k=asked: c.get(dynamics.frame_jacobians, state=c.at(q, qd), **k))
            np.testing.assert_allclose(case.get(dynamics.frame_jacobian_derivatives, **asked), moved, **SMOOTH)


@pytest.mark.slow
def test_every_kind_of_joint(rng, by_numpy):
    """Between a moving parent and a moving child: J nu = v, and J_dot is the derivative of J."""
    model = every_kind(rng).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    case = Case(model, q, qd)

    def everything(function, state, **options):
        return function(model, state, **options).numpy()

    def split(values):
        starts = model.joint_qd_start.numpy()[model.articulation_start.numpy()]
        result = np.zeros((model.articulation_count, model.max_dofs_per_articulation))
        for a, (s, e) in enumerate(pairwise(starts)):
            result[a, : e - s] = values[s:e]
        return result

    J = everything(dynamics.link_jacobians, case.state)
    velocities = everything(dynamics.link_velocities, case.state)
    np.testing.assert_allclose(np.einsum("alij,aj->ali", J, split(qd)), velocities, **CLOSE)
    ends = [
        everything(dynamics.link_jacobians, case.at(reference.displace(case.tree, q, qd, s * 1e-6), qd))
        for s in (1, -1)
    ]
    actual = everything(dynamics.link_jacobian_derivatives, case.state)
    np.testing.assert_allclose(actual, (ends[0] - ends[1]) / 2e-6, **SMOOTH)


@pytest.mark.slow
def test_relative_transforms_and_twists(rng, by_numpy):
    """The transform is inverse(X_target) X_source; the twist agrees with its definition with the target as the world."""
    for case in cases(rng):
        X = reference.body_motion(case.tree, case.q, case.qd, np.zeros(len(case.qd)))
        pairs, frames = some_frames(case, rng, 2)
        worlds = [(None, np.eye(4))]
        for (source, (b, S)), (target, (a, F)) in (
            ((pairs[0], frames[0]), (pairs[1], frames[1])),
            ((pairs[1], frames[1]), (None, worlds[0])),
            ((None, worlds[0]), (pairs[0], frames[0])),
        ):
            rest = np.stack([np.eye(4), np.zeros((4, 4)), np.zeros((4, 4))])
            moving = [(rest if body is None else X[body]) @ offset for body, offset in ((b, S), (a, F))]
            inverse = np.linalg.inv(moving[1][0])
            rate = -inverse @ moving[1][1] @ inverse
            Y = np.stack([inverse @ moving[0][0], rate @ moving[0][0] + inverse @ moving[0][1], np.zeros((4, 4))])
            ends = dict(source=source, target=target)
            same_poses(case.get(dynamics.relative_transform, **ends), reference.matrix_pose(Y[0]))
            com = np.zeros(3) if b is None else (np.linalg.inv(S) @ np.append(case.tree.body_com[b], 1.0))[:3]
            for repr in VelRepr:
                twist = case.get(dynamics.relative_twist, repr=repr, **ends)
                np.testing.assert_allclose(twist, derivatives(Y, com, repr)[0], **CLOSE)
            # along the axes of the world: turned, and in INERTIAL the difference of both velocities, which adds up along chains
            R = moving[1][0][:3, :3]
            for repr in (VelRepr.MIXED, VelRepr.COM):
                seen = case.get(dynamics.relative_twist, repr=repr, **ends).reshape(2, 3)
                turned = case.get(dynamics.relative_twist, repr=repr, axes="world", **ends).reshape(2, 3)
                np.testing.assert_allclose(turned, seen @ R.T, **CLOSE)
            twist = case.get(dynamics.relative_twist, repr=VelRepr.INERTIAL, axes="world", **ends)
            velocities = [derivatives(X, np.zeros(3), VelRepr.INERTIAL)[0] for X in moving]
            np.testing.assert_allclose(twist, velocities[0] - velocities[1], **CLOSE)
            with pytest.raises(ValueError, match=r"BODY.*axes"):
                dynamics.relative_twist(case.model, case.state, repr=VelRepr.BODY, axes="world", **ends)
            with pytest.raises(ValueError, match="axes"):
                dynamics.relative_twist(case.model, case.state, axes="root", **ends)


@pytest.mark.slow
def test_one_link_is_that_of_all(rng, by_numpy):
    """Singular functions, by name and by index, give a row of the plural ones."""
    model = forest(rng, worlds=2, robots=1, joints=4).finalize("cpu", dtype=wp.float64)
    state, *_ = moving_state(model, rng)
    pairs = (
        (dynamics.link_transform, dynamics.link_transforms),
        (dynamics.link_velocity, dynamics.link_velocities),
        (dynamics.link_bias_acceleration, dynamics.link_bias_accelerations),
        (dynamics.link_jacobian, dynamics.link_jacobians),
        (dynamics.link_jacobian_derivative, dynamics.link_jacobian_derivatives),
    )
    for one, every in pairs:
        whole = every(model, state).numpy()
        for k, name in enumerate(dynamics.link_names(model)):
            np.testing.assert_array_equal(one(model, state, name).numpy(), whole[:, k])
            np.testing.assert_array_equal(one(model, state, np.int64(k)).numpy(), whole[:, k])
    framed = (
        (dynamics.frame_jacobian, dynamics.frame_jacobians),
        (dynamics.frame_jacobian_derivative, dynamics.frame_jacobian_derivatives),
        (dynamics.frame_velocity, dynamics.frame_velocities),
        (dynamics.frame_transform, dynamics.frame_transforms),
    )
    pair = (2, random_transform(rng))
    for one, every in framed:
        np.testing.assert_array_equal(one(model, state, pair).numpy(), every(model, state, [0, pair]).numpy()[:, 1])


@pytest.mark.slow
def test_articulations_of_other_shapes_and_names(rng, by_numpy):
    """A name is looked up in each; those without it, and links and dofs that are not there, have zeros."""
    scene = ModelBuilder()
    small, large = random_tree(rng, joints=3, label="a"), random_tree(rng, joints=6, label="b")
    small.body_label[small.joint_child[1]] = "robot/hand"
    large.body_label[large.joint_child[4]] = "hand"
    small.add_site(small.joint_child[2], label="tip", xform=random_transform(rng))
    scene.add_builder(small, label_prefix="left")
    scene.add_builder(large)
    scene.add_builder(small, label_prefix="right")
    # a robot of the same shape where the name means another link
    small.body_label[small.joint_child[1]], small.body_label[small.joint_child[2]] = "arm", "hand"
    scene.add_builder(small, label_prefix="other")
    model = scene.finalize("cpu", dtype=wp.float64)
    state, *_ = moving_state(model, rng)
    transforms, jacobians = (
        dynamics.link_transforms(model, state).numpy(),
        dynamics.link_jacobians(model, state).numpy(),
    )
    assert not transforms[[0, 2, 3], 3:].any()
    assert not jacobians[[0, 2, 3], 3:].any()
    hands = (range(4), [1, 4, 1, 2])
    np.testing.assert_array_equal(dynamics.link_transform(model, state, "hand").numpy(), transforms[hands])
    np.testing.assert_array_equal(dynamics.link_jacobian(model, state, "hand").numpy(), jacobians[hands])
    # two robots of one shape, and a name that one of them has; a buffer is overwritten in all
    out = wp.full((4, 7), 5.0, dtype=wp.float64, device="cpu")
    left = dynamics.link_transform(model, state, "left/robot/hand", out=out)
    assert left is out
    np.testing.assert_array_equal(left.numpy()[0], transforms[0, 1])
    assert not left.numpy()[1:].any()
    tip = dynamics.frame_velocity(model, state, "tip").numpy()
    pair = (dynamics.frame_link(model, "tip"), dynamics.frame_offset(model, "tip"))
    expected = dynamics.frame_velocity(model, state, pair).numpy()
    np.testing.assert_array_equal(tip[[0, 2, 3]], expected[[0, 2, 3]])
    assert not tip[1].any()
    assert expected[1].any()
    # a relative quantity needs both ends
    assert not dynamics.relative_transform(model, state, "hand", "tip").numpy()[1].any()


def test_sites_that_moved_are_read_anew(rng, by_numpy):
    tree = random_tree(rng, joints=3)
    site = tree.add_site(tree.joint_child[1], label="tip")
    scene = ModelBuilder()
    scene.replicate(tree, 2)
    model = scene.finalize("cpu", dtype=wp.float64)
    state, *_ = moving_state(model, rng)
    before = dynamics.frame_transform(model, state, "tip").numpy()
    np.testing.assert_array_equal(before, dynamics.link_transform(model, state, 1).numpy())
    transforms = model.shape_transform.numpy()
    transforms[site + tree.shape_count] = random_transform(rng)
    model.shape_transform.assign(transforms)
    model.notify_changed()
    after = dynamics.frame_transform(model, state, "tip").numpy()
    np.testing.assert_array_equal(after[0], before[0])
    expected = reference.pose_matrix(before[1]) @ reference.pose_matrix(transforms[site + tree.shape_count])
    same_poses(after[1], reference.matrix_pose(expected))


# ------------------------------------------------------------------------------------------------------ pinocchio


class Pinocchio:
    """Frames of a robot in pinocchio, in our velocities with a floating base in BODY.

    Without BALL joints, and with the base's own joint frame fixed to the link frame, pinocchio's velocities are a constant matrix T
    times ours.
    """

    def __init__(self, case, pairs):
        from tests.support.pinocchio_bridge import PinocchioBridge, pin

        self.pin, self.bridge = pin, PinocchioBridge(case.model)
        model = self.bridge.model
        self.ids = []
        for i, (k, offset) in enumerate(pairs):
            body = int(links_of(case)[k])
            place = pin.SE3(self.bridge._offset[body] @ reference.pose_matrix(np.asarray(offset)))
            self.ids.append(model.addFrame(pin.Frame(f"f{i}", self.bridge._carrier[body], 0, place, pin.OP_FRAME)))
        self.data = model.createData()
        self.T = self.bridge.velocity_map(case.q)[0]
        if case.floating:
            self.T[:6, :6] = pin.SE3(self.bridge._offset[case.base]).action
        self.q, self.v = self.bridge.q_pin(case.q), self.T @ case.velocities(VelRepr.BODY)
        kinds = {VelRepr.MIXED: pin.LOCAL_WORLD_ALIGNED, VelRepr.INERTIAL: pin.WORLD, VelRepr.BODY: pin.LOCAL}
        self.kinds = kinds

    def check(self, case, pairs, rng):
        pin, model, data = self.pin, self.bridge.model, self.data
        nu_dot = rng.normal(size=len(case.qd))
        # for the derivative of its Jacobians pinocchio takes a joint's axes to be fixed in the child; several ones of a D6 joint are not
        fixed = np.repeat(case.tree.joint_type != reference.D6, np.diff(case.tree.joint_qd_start))
        pin.computeJointJacobiansTimeVariation(model, data, self.q, self.v)
        pin.forwardKinematics(model, data, self.q, self.v, self.T @ nu_dot)
        pin.updateFramePlacements(model, data)
        # the bound: 1e-9 of the largest number
        for repr, kind in self.kinds.items():
            asked = dict(repr=VelRepr.BODY, out_repr=repr)
            J = case.get(dynamics.frame_jacobians, frames=pairs, **asked)
            dJ = case.get(dynamics.frame_jacobian_derivatives, frames=pairs, **asked)
            v = case.get(dynamics.frame_velocities, frames=pairs, repr=repr)
            for i, frame in enumerate(self.ids):
                self.near(J[i], pin.getFrameJacobian(model, data, frame, kind) @ self.T)
                derivative = pin.getFrameJacobianTimeVariation(model, data, frame, kind) @ self.T
                self.near(dJ[i][:, fixed], derivative[:, fixed])
                self.near(v[i], pin.getFrameVelocity(model, data, frame, kind).vector)
                a = case.get(dynamics.frame_acceleration, frame=pairs[i], joint_acceleration=nu_dot, **asked)
                if repr == VelRepr.MIXED:
                    self.near(a, pin.getFrameClassicalAcceleration(model, data, frame, kind).vector)
                else:
                    self.near(a, pin.getFrameAcceleration(model, data, frame, kind).vector)

    @staticmethod
    def near(actual, expected):
        np.testing.assert_allclose(actual, expected, rtol=0.0, atol=1e-9 * max(1.0, np.abs(expected).max(initial=0.0)))


@pytest.mark.parametrize("floating", [False, True], ids=["fixed", "floating"])
def test_frames_of_random_trees_are_those_of_pinocchio(rng, by_numpy, floating):
    pytest.importorskip("pinocchio")
    kinds = (JointType.PRISMATIC, JointType.REVOLUTE, JointType.D6, JointType.FIXED)
    for _ in range(4):
        tree = random_tree(rng, joints=7, types=kinds, floating=floating)
        tree.joint_armature = [0.0] * tree.joint_dof_count
        model = tree.finalize("cpu", dtype=wp.float64)
        case = Case(model, *random_state(model, rng))
        pairs, _ = some_frames(case, rng)
        Pinocchio(case, pairs).check(case, pairs, rng)


@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
@pytest.mark.parametrize("name", ["anymal_c_simple_description", "simple_humanoid_description", "panda_description"])
def test_frames_of_robots_are_those_of_pinocchio(rng, by_numpy, name):
    pytest.importorskip("pinocchio")
    files = sorted((ROBOTS / name).glob("*/*.urdf"))
    if not files:
        pytest.skip(f"{ROBOTS / name} is not there")
    robot = ModelBuilder()
    robot.add_urdf(files[0], floating=not name.startswith("panda"), hide_visuals=True)
    robot.joint_mimic_joint = [-1] * robot.joint_count
    model = robot.finalize("cpu", dtype=wp.float64)
    case = Case(model, *random_state(model, rng))
    pairs, _ = some_frames(case, rng)
    Pinocchio(case, pairs).check(case, pairs, rng)


# ------------------------------------------------------------------------------------------- compiled, and precision


def everything(model, state, pair, qdd, points):
    """One call of every program, with another one that takes offsets."""
    every = dict(repr=VelRepr.MIXED, out_repr=VelRepr.BODY)
    return [
        dynamics.link_transforms(model, state),
        dynamics.point_positions(model, state, [0, 1], points),
        dynamics.relative_transform(model, state, 2, pair),
        dynamics.link_velocities(model, state, repr=VelRepr.INERTIAL),
        dynamics.relative_twist(model, state, pair, 0, repr=VelRepr.BODY),
        dynamics.link_jacobians(model, state, **every),
        dynamics.frame_jacobian(model, state, pair, out_repr=VelRepr.COM),
        dynamics.link_jacobian_derivatives(model, state, **every),
        dynamics.point_jacobian_derivatives(model, state, [0, 1], points),
        dynamics.link_accelerations(model, state, qdd, **every),
        dynamics.frame_bias_acceleration(model, state, pair),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "tolerance"), [(wp.float64, 1e-12), (wp.float32, 1e-4)])
def test_compiled_programs_do_the_same(rng, monkeypatch, dtype, tolerance):
    """As NumPy, which runs their traces in double precision: to roundings of some hundred operations on numbers of up to 1e2."""
    scene = forest(rng, worlds=2, joints=5, floating=None)
    exact, model = scene.finalize("cpu", dtype=wp.float64), scene.finalize("cpu", dtype=dtype)
    model.evaluator = "general"
    state, q, qd = moving_state(model, rng)
    pair, qdd, points = (3, random_transform(rng)), rng.normal(size=qd.size), rng.normal(size=(2, 3))
    actual = everything(model, state, pair, qdd, points)
    monkeypatch.setattr("newton_like.dynamics.internal.common.run", run_by_numpy)
    wide = exact.state()
    wide.joint_q.assign(q)
    wide.joint_qd.assign(qd)
    for a, b in zip(actual, everything(exact, wide, pair, qdd, points), strict=True):
        assert a.dtype is dtype
        assert a.shape == b.shape
        scale = max(1.0, np.abs(b.numpy()).max())
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0.0, atol=tolerance * scale)


FAR = np.array([600.0, -700.0, 400.0])
"""About a kilometre, in whole metres: sums with numbers of eight binary places are exact in float32."""


def grid(x):
    return np.round(np.asarray(x) * 256.0) / 256.0


def far_robots(seed, shift):
    """A robot with a floating base and one on a fixed one, in float32, whose fixed base is moved by `shift`."""
    scene, rng = ModelBuilder(), np.random.default_rng(seed)
    for floating in (True, False):
        tree = random_tree(rng, joints=6, floating=floating)
        anchor = np.asarray(tree.joint_X_p[0], dtype=float)
        # a floating base's coordinates are those of the world
        anchor = [0, 0, 0, 0, 0, 0, 1] if floating else [*(grid(anchor[:3]) + shift), *anchor[3:]]
        tree.joint_X_p[0] = wp.transform(*anchor)
        scene.add_builder(tree)
    model = scene.finalize("cpu", dtype=wp.float32)
    model.evaluator = "general"
    return model


@pytest.mark.slow
def test_a_kilometre_away_nothing_relative_loses_digits(rng):
    """In float32, robots moved by whole metres have the same bits in all that does not name the world's origin."""
    seed, pair = int(rng.integers(2**31)), (3, random_transform(rng))
    here, away = far_robots(seed, np.zeros(3)), far_robots(seed, FAR)
    q, qd = random_state(here, rng)
    q[:3] = grid(q[:3])
    given = []
    for model, shift in ((here, 0.0), (away, FAR)):
        state = model.state()
        state.joint_q.assign([*(q[:3] + shift), *q[3:]])
        state.joint_qd.assign(qd)
        given.append((model, state))
    for repr in (VelRepr.MIXED, VelRepr.BODY, VelRepr.COM):
        both = dict(repr=repr, out_repr=repr)
        for function, options in (
            (dynamics.relative_transform, dict(source=pair, target=1)),
            (dynamics.relative_twist, dict(source=pair, target=1, repr=repr)),
            (dynamics.link_velocities, dict(repr=repr)),
            (dynamics.link_jacobians, both),
            (dynamics.link_jacobian_derivatives, both),
            (dynamics.link_accelerations, dict(joint_acceleration=qd, **both)),
        ):
            near, far = (function(*g, **options).numpy() for g in given)
            assert np.abs(near).max() > 0.1
            np.testing.assert_array_equal(near, far)
    # four roundings by half the spacing of numbers below 1024, 3.05e-5: three where the root's frame turns its coordinates, and one
    # where the robot is moved to where it is; and some of the robot's own
    places = [dynamics.link_transforms(*g).numpy()[..., :3].astype(float) for g in given]
    assert np.abs(places[1] - places[0] - FAR).max() < 1.3e-4
    # velocities at the world's origin have a lever of 1005 m: its rounding, and two of products
    twists, inertial = (dynamics.link_velocities(*given[1], repr=r).numpy() for r in (VelRepr.MIXED, VelRepr.INERTIAL))
    v, w = (x.astype(float) for x in np.split(twists, 2, axis=-1))
    error = inertial[..., :3] - v + np.cross(w, places[0] + FAR)
    assert np.abs(error).max() < 2e-4 * np.abs(w).max()
    np.testing.assert_array_equal(inertial[..., 3:], twists[..., 3:])


@pytest.mark.slow
def test_gradients_are_those_of_central_differences(rng):
    """With respect to coordinates, velocities and points."""
    model = random_tree(rng, joints=3, floating=True).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    points = rng.normal(size=(2, 3))

    class State:
        def __init__(self, joint_q, joint_qd):
            self.joint_q, self.joint_qd = joint_q, joint_qd

    def derivative(joint_q, joint_qd, where):
        state = State(joint_q, joint_qd)
        return [dynamics.point_jacobian_derivatives(model, state, [1, 2], where.reshape((2, 3)), repr=VelRepr.MIXED)]

    # central differences: rounding 1e-16 / 1e-6 of values of some 10, and third derivatives times 1e-12
    assert max(gradient_errors(derivative, [q, qd, points.ravel()], rng)) < 1e-7


# ------------------------------------------------------------------------------------------------------ bad input


def test_wrong_arguments_are_refused(rng, by_numpy):
    model = forest(rng, worlds=1, robots=1, joints=3).finalize("cpu", dtype=wp.float64)
    state = model.state()
    with pytest.raises(KeyError, match=r"link 'tree_0_lnk_1'.*'tree_0_link_1'"):
        dynamics.link_jacobian(model, state, "tree_0_lnk_1")
    with pytest.raises(KeyError, match="frame 'tip'"):
        dynamics.frame_transform(model, state, "tip")
    with pytest.raises(IndexError, match=r"link 3.*3"):
        dynamics.link_velocity(model, state, 3)
    with pytest.raises(IndexError, match="link -1"):
        dynamics.link_velocity(model, state, -1)
    with pytest.raises(TypeError, match=r"link.*1.5"):
        dynamics.link_transform(model, state, 1.5)
    with pytest.raises(TypeError, match=r"frame"):
        dynamics.frame_transform(model, state, {"link": 1})
    with pytest.raises(ValueError, match="repr=9"):
        dynamics.link_velocities(model, state, repr=9)
    with pytest.raises(ValueError, match=r"out_repr=None.*VelRepr.COM"):
        dynamics.link_jacobians(model, state, out_repr=None)
    with pytest.raises(ValueError, match=r"frame.*offset.*\b3\b"):
        dynamics.frame_transform(model, state, (0, [1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match=r"frame.*offset.*length"):
        dynamics.frame_transform(model, state, (0, [0, 0, 0, 1, 1, 0, 0]))
    with pytest.raises(ValueError, match=r"points.*\(3,\).*\(n, 3\).*\(1, n, 3\)"):
        dynamics.point_positions(model, state, 0, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"points.*finite"):
        dynamics.point_positions(model, state, 0, [[np.nan, 0.0, 0.0]])
    with pytest.raises(ValueError, match=r"2 links.*1"):
        dynamics.point_positions(model, state, [0, 1], [[1.0, 0.0, 0.0]])
    with pytest.raises(ValueError, match=r"out.*\(1, 3, 6\).*\(1, 3, 7\)"):
        dynamics.link_transforms(model, state, out=wp.zeros((1, 3, 6), dtype=wp.float64, device="cpu"))
    with pytest.raises(TypeError, match=r"out.*float32.*float64"):
        dynamics.link_transforms(model, state, out=wp.zeros((1, 3, 7), dtype=wp.float32, device="cpu"))
    with pytest.raises(ValueError, match=r"joint_acceleration .*shape"):
        dynamics.link_accelerations(model, state, np.zeros(model.joint_dof_count + 1))


def test_a_name_that_means_several_links_is_refused(rng, by_numpy):
    tree = random_tree(rng, joints=3)
    tree.body_label[:] = ["left/hand", "right/hand", "trunk"]
    model = tree.finalize("cpu", dtype=wp.float64)
    with pytest.raises(ValueError, match=r"link 'hand'.*0.*indices"):
        dynamics.link_transform(model, model.state(), "hand")
    assert dynamics.link_transform(model, model.state(), "left/hand").shape == (1, 7)


def test_nothing_to_do_has_an_answer():
    empty = ModelBuilder().finalize("cpu")
    assert dynamics.link_transforms(empty, empty.state()).shape == (0, 0, 7)
    assert dynamics.link_jacobians(empty, empty.state()).shape == (0, 0, 6, 0)
    builder = ModelBuilder()
    builder.add_articulation([builder.add_joint_fixed(-1, builder.add_link(mass=1.0, inertia=np.eye(3)))])
    fixed = builder.finalize("cpu")
    assert dynamics.link_jacobian(fixed, fixed.state(), 0).shape == (1, 6, 0)
    assert dynamics.point_positions(fixed, fixed.state(), 0, np.zeros((0, 3))).shape == (1, 0, 3)
