"""Names and indices, limits and random positions of joints, and conversions between representations and conventions."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation
from scipy.stats import kstest

from newton_like import ModelBuilder, dynamics
from newton_like.types import VelRepr
from tests.support import reference
from tests.support.dynamics_cases import cases
from tests.support.random_trees import random_transform, random_tree

# A dozen roundings of numbers of up to a hundred.
CLOSE = dict(rtol=1e-12, atol=1e-12)


def two_robots(rng):
    """Three worlds of a robot with sensors, and a fourth one of another robot."""
    robot, other = random_tree(rng, joints=6, label="robot"), random_tree(rng, joints=4, label="other")
    robot.add_site(robot.joint_child[3], label="camera", xform=random_transform(rng))
    robot.add_site(robot.joint_child[1], label="imu", xform=random_transform(rng))
    scene = ModelBuilder()
    scene.replicate(robot, 3, label_prefixes=["w0", "w1", "w2"])
    scene.add_world(other)
    return scene.finalize("cpu")


def test_names_and_indices_are_inverse_to_each_other(rng):
    model = two_robots(rng)
    start, child = model.articulation_start.numpy(), model.joint_child.numpy()
    for a in range(model.articulation_count):
        joints = range(start[a], model.articulation_end.numpy()[a])
        assert dynamics.joint_names(model, articulation=a) == [model.joint_label[j] for j in joints]
        assert dynamics.link_names(model, articulation=a) == [model.body_label[child[j]] for j in joints]
        np.testing.assert_array_equal(dynamics.link_bodies(model, a), child[joints])
        for names, index, indices in (
            (dynamics.link_names, dynamics.link_index, dynamics.link_indices),
            (dynamics.joint_names, dynamics.joint_index, dynamics.joint_indices),
            (dynamics.frame_names, dynamics.frame_index, dynamics.frame_indices),
        ):
            labels = names(model, articulation=a)
            order = [int(i) for i in rng.permutation(len(labels))]
            assert [index(model, label, a) for label in labels] == list(range(len(labels)))
            assert [index(model, label.rpartition("/")[2], a) for label in labels] == list(range(len(labels)))
            assert indices(model, names(model, order, a), a) == order


def test_frames_know_their_links(rng):
    model = two_robots(rng)
    shapes = model.shape_label
    for a in range(3):
        assert sorted(dynamics.frame_names(model, articulation=a)) == [f"w{a}/camera", f"w{a}/imu"]
        assert dynamics.frame_link(model, "camera", a) == 3
        assert dynamics.frame_link(model, "imu", a) == 1
        expected = model.shape_transform.numpy()[shapes.index(f"w{a}/imu")]
        np.testing.assert_array_equal(dynamics.frame_offset(model, "imu", a), expected)
    assert dynamics.frame_names(model, articulation=3) == []


def test_dofs_and_coordinates_of_joints(rng):
    model = two_robots(rng)
    for a in range(model.articulation_count):
        first = int(model.articulation_start.numpy()[a])
        for i, name in enumerate(dynamics.joint_names(model, articulation=a)):
            for function, starts in (
                (dynamics.joint_dofs, model.joint_qd_start.numpy()),
                (dynamics.joint_coords, model.joint_q_start.numpy()),
            ):
                s = function(model, name, a)
                assert [s.start, s.stop] == list(starts[[first + i, first + i + 1]] - starts[first])


def test_unknown_names_are_named_with_similar_ones(rng):
    model = two_robots(rng)
    with pytest.raises(KeyError, match=r"link 'robot_lnk_2'.*0.*'robot_link_2'"):
        dynamics.link_index(model, "robot_lnk_2")
    with pytest.raises(KeyError, match=r"joint 'wheel'.*3.*'other_joint_0'"):
        dynamics.joint_index(model, "wheel", 3)
    with pytest.raises(KeyError, match=r"frame 'imu'.*3"):
        dynamics.frame_index(model, "imu", 3)
    with pytest.raises(IndexError, match=r"articulation 4.*4"):
        dynamics.link_names(model, articulation=4)
    with pytest.raises(IndexError, match=r"link index 6.*6"):
        dynamics.link_names(model, [6])
    with pytest.raises(TypeError, match=r"names.*'robot_link_2'"):
        dynamics.link_indices(model, "robot_link_2")
    with pytest.raises(TypeError, match=r"joint.*0.5"):
        dynamics.joint_index(model, 0.5)
    with pytest.raises(TypeError, match=r"link.*True"):
        dynamics.link_index(model, True)


# --------------------------------------------------------------------------------------------------------- limits


def limited():
    """A robot with a joint of every kind of range."""
    b = ModelBuilder()
    links = [b.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(9)]
    dof = ModelBuilder.JointDofConfig
    x = (1.0, 0.0, 0.0)
    joints = [
        b.add_joint_free(links[0], label="root"),
        b.add_joint_revolute(links[0], links[1], axis=x, limit_lower=-0.5, limit_upper=1.5, label="elbow"),
        b.add_joint_revolute(links[1], links[2], axis=x, limit_lower=-9.0, limit_upper=20.0, label="wide"),
        b.add_joint_revolute(links[2], links[3], axis=x, limit_lower=5.0, limit_upper=20.0, label="beyond"),
        b.add_joint_prismatic(links[3], links[4], axis=x, limit_lower=-20.0, limit_upper=30.0, label="rail"),
        b.add_joint_ball(links[4], links[5], label="ball"),
        b.add_joint_distance(links[5], links[6], min_distance=0.5, max_distance=0.75, label="rope"),
        b.add_joint_d6(
            links[6], links[7], linear_axes=[dof(axis=x)], label="both",
            angular_axes=[dof(axis=x, limit_lower=0.1, limit_upper=0.2), dof(axis=(0.0, 1.0, 0.0))],
        ),
        b.add_joint_revolute(links[7], links[8], axis=x, label="mimic"),
    ]  # fmt: skip
    b.joint_mimic_joint[joints[8]] = joints[1]
    b.joint_mimic_coeffs[joints[8]] = (0.25, -2.0)
    b.add_articulation(joints)
    return b


def test_limits_of_joints():
    model = limited().finalize("cpu", dtype=wp.float64)
    lower, upper = dynamics.joint_position_limits(model)
    inf = np.inf
    expected = [*[-inf] * 6, -0.5, -9.0, 5.0, -20.0, *[-inf] * 9, -inf, 0.1, -inf, -inf]
    np.testing.assert_array_equal(lower, expected)
    for one in ("elbow", 1, np.int32(1)):
        lower, upper = dynamics.joint_position_limits(model, one)
        assert (lower.tolist(), upper.tolist()) == ([-0.5], [1.5])
    lower, upper = dynamics.joint_position_limits(model, ["both", "rail"])
    assert (lower.tolist(), upper.tolist()) == ([-inf, 0.1, -inf, -20.0], [inf, 0.2, inf, 30.0])
    assert dynamics.joint_position_limits(model, [])[0].shape == (0,)
    with pytest.raises(KeyError, match=r"joint 'elbo'.*0.*'elbow'"):
        dynamics.joint_position_limits(model, "elbo")
    with pytest.raises(IndexError, match=r"joint 9.*9"):
        dynamics.joint_position_limits(model, 9)


def draws(model, seed, **options):
    q = dynamics.random_joint_positions(model, seed, **options).numpy()
    return q.reshape(model.world_count, -1)


@pytest.mark.slow
def test_random_positions_are_uniform_between_limits(rng):
    """Each coordinate by the test of Kolmogorov and Smirnov, which a right sample fails once in a million times."""
    scene = ModelBuilder()
    scene.replicate(limited(), 2000)
    model = scene.finalize("cpu", dtype=wp.float64)
    q = draws(model, rng)
    columns = {name: q[:, dynamics.joint_coords(model, name)] for name in dynamics.joint_names(model)}

    def uniform(values, low, high):
        assert kstest(values, "uniform", (low, high - low)).pvalue > 1e-6

    for i in range(3):
        uniform(columns["root"][:, i], -1.0, 1.0)
    uniform(columns["elbow"][:, 0], -0.5, 1.5)
    uniform(columns["wide"][:, 0], -np.pi, np.pi)
    uniform(columns["beyond"][:, 0], 5.0, 5.0 + 2.0 * np.pi)
    uniform(columns["rail"][:, 0], -20.0, 30.0)
    uniform(columns["both"][:, 0], -1.0, 1.0)
    uniform(columns["both"][:, 1], 0.1, 0.2)
    uniform(columns["both"][:, 2], -np.pi, np.pi)
    uniform(np.linalg.norm(columns["rope"][:, :3], axis=1), 0.5, 0.75)
    for name in ("root", "ball", "rope"):
        turns = columns[name][:, -4:]
        np.testing.assert_allclose(np.linalg.norm(turns, axis=1), 1.0, rtol=1e-14)
        # of a uniform rotation every entry of its matrix is uniform on [-1, 1]
        for entry in Rotation.from_quat(turns).as_matrix().reshape(-1, 9).T:
            uniform(entry, -1.0, 1.0)
    np.testing.assert_allclose(columns["mimic"], 0.25 - 2.0 * columns["elbow"], rtol=1e-15)


def test_random_positions_of_some_joints(rng):
    scene = ModelBuilder()
    scene.replicate(limited(), 3)
    model = scene.finalize("cpu")
    rest = model.joint_q.numpy().reshape(3, -1)
    seed = int(rng.integers(2**31))
    out = wp.zeros(model.joint_coord_count, dtype=wp.float32, device="cpu")
    assert dynamics.random_joint_positions(model, seed, joints=["rail", 5], out=out) is out
    q = out.numpy().reshape(3, -1)
    changed, kept = np.zeros(q.shape[1], dtype=bool), np.ones(q.shape[1], dtype=bool)
    for name in ("rail", "ball"):
        changed[dynamics.joint_coords(model, name)] = True
    kept[changed] = kept[dynamics.joint_coords(model, "mimic")] = False
    np.testing.assert_array_equal(q[:, kept], rest[:, kept])
    assert (q[:, changed] != rest[:, changed]).all()
    np.testing.assert_array_equal(q, draws(model, seed, joints=["rail", 5]))
    assert (q != draws(model, seed + 1, joints=["rail", 5]))[:, changed].all()
    with pytest.raises(KeyError, match=r"joint 'rial'.*'rail'"):
        dynamics.random_joint_positions(model, joints="rial")
    with pytest.raises(IndexError, match=r"joint 9.*9"):
        dynamics.random_joint_positions(model, joints=[9])
    with pytest.raises(TypeError, match=r"seed.*numpy.random.Generator"):
        dynamics.random_joint_positions(model, "seed")
    with pytest.raises(ValueError, match=r"out .*\(2,\)"):
        dynamics.random_joint_positions(model, out=wp.zeros(2, dtype=wp.float32, device="cpu"))


# ---------------------------------------------------------------------------------------------------- conversions


def X(R, p):
    """The spec's [[R, [p]R], [0, R]]."""
    return np.block([[R, reference.cross_matrix(p) @ R], [np.zeros((3, 3)), R]])


def frames_and_factors(rng, n=5):
    """Poses, centres of mass, and for each representation the matrices that take BODY twists to it, by the spec."""
    poses, coms = np.array([random_transform(rng) for _ in range(n)]), rng.normal(size=(n, 3))
    factors = {r: [] for r in VelRepr}
    for pose, com in zip(poses, coms, strict=True):
        R = Rotation.from_quat(pose[3:]).as_matrix()
        factors[VelRepr.BODY].append(np.eye(6))
        factors[VelRepr.MIXED].append(X(R, np.zeros(3)))
        factors[VelRepr.INERTIAL].append(X(R, pose[:3]))
        factors[VelRepr.COM].append(X(R, -R @ com))
    return poses, coms, {r: np.array(f) for r, f in factors.items()}


def test_velocities_and_forces_convert_by_the_formulas(rng):
    """v_target = X_target X_source^-1 v_source, and forces by X^-T of it, so that their power stays."""
    poses, coms, factors = frames_and_factors(rng)
    v, f = rng.normal(size=(2, len(poses), 6))
    for a in VelRepr:
        for b in VelRepr:
            matrix = factors[b] @ np.linalg.inv(factors[a])
            given = dict(pose=poses, source=a, target=b, com=coms)
            moved, pushed = dynamics.convert_velocity(v, **given), dynamics.convert_force(f, **given)
            np.testing.assert_allclose(dynamics.velocity_transform(**given), matrix, **CLOSE)
            np.testing.assert_allclose(moved, np.einsum("nij,nj->ni", matrix, v), **CLOSE)
            np.testing.assert_allclose(pushed, np.einsum("nji,nj->ni", np.linalg.inv(matrix), f), **CLOSE)
            np.testing.assert_allclose(np.sum(moved * pushed, axis=1), np.sum(v * f, axis=1), **CLOSE)


def test_accelerations_convert_as_derivatives_of_velocities(rng):
    """Against central differences along a motion of the frame with a velocity that changes."""
    step = 1e-6
    for a in VelRepr:
        poses, coms, _ = frames_and_factors(rng, 1)
        pose, com = poses[0], coms[0]
        v, dv = rng.normal(size=(2, 6))

        def moved(t, pose=pose, com=com, v=v, dv=dv, a=a):
            u = v + t * dv
            x = dynamics.convert_velocity(v + 0.5 * t * dv, pose, a, VelRepr.MIXED, com=com)
            turned = Rotation.from_rotvec(t * x[3:]) * Rotation.from_quat(pose[3:])
            return np.concatenate([pose[:3] + t * x[:3], turned.as_quat()]), u

        for b in VelRepr:
            ends = [dynamics.convert_velocity(u, p, a, b, com=com) for p, u in (moved(step), moved(-step))]
            actual = dynamics.convert_acceleration(dv, v, pose, a, b, com=com)
            # truncation of 1e-12 times third derivatives, and roundings of 1e-15 over the step
            np.testing.assert_allclose(actual, (ends[0] - ends[1]) / (2 * step), atol=1e-8, rtol=1e-8)


@pytest.mark.slow
def test_conversions_agree_with_the_library(rng, by_numpy):
    """Velocities, accelerations and Jacobians of one representation, converted to another one."""
    for case in cases(rng):
        given = dict(pose=case.get(dynamics.link_transforms), com=case.tree.body_com[case.tree.joint_child])
        v = {r: case.get(dynamics.link_velocities, repr=r) for r in VelRepr}
        a = {r: case.get(dynamics.link_bias_accelerations, out_repr=r) for r in VelRepr}
        J = {r: case.get(dynamics.link_jacobians, out_repr=r) for r in VelRepr}
        for s in VelRepr:
            for t in VelRepr:
                np.testing.assert_allclose(
                    dynamics.convert_velocity(v[s], source=s, target=t, **given), v[t], atol=1e-11
                )
                converted = dynamics.convert_acceleration(a[s], v[s], source=s, target=t, **given)
                np.testing.assert_allclose(converted, a[t], atol=1e-11)
                np.testing.assert_allclose(
                    dynamics.velocity_transform(source=s, target=t, **given) @ J[s], J[t], atol=1e-11
                )


def test_conversions_refuse_what_they_cannot_do(rng):
    poses, coms, _ = frames_and_factors(rng)
    v = rng.normal(size=(5, 6))
    with pytest.raises(ValueError, match=r"target=None.*VelRepr.COM.*VelRepr.MIXED"):
        dynamics.convert_velocity(v, poses, VelRepr.BODY, None)
    with pytest.raises(ValueError, match=r"source=VelRepr.COM.*mass"):
        dynamics.convert_force(v, poses, VelRepr.COM, VelRepr.BODY)
    with pytest.raises(ValueError, match=r"velocity.*\(5, 3\).*\[..., 6\]"):
        dynamics.convert_velocity(v[:, :3], poses, VelRepr.BODY, VelRepr.MIXED)
    with pytest.raises(ValueError, match=r"com.*finite"):
        dynamics.convert_velocity(v, poses, VelRepr.COM, VelRepr.MIXED, com=coms * np.nan)
    with pytest.raises(TypeError, match=r"velocity.*'fast'"):
        dynamics.convert_velocity("fast", poses, VelRepr.BODY, VelRepr.MIXED)


def test_angular_first_and_linear_first(rng):
    """Of vectors, of Jacobians' rows, and of both sides of a matrix whose first six entries are a floating base's."""
    v, w, rest = rng.normal(size=(3, 4, 3))
    np.testing.assert_array_equal(dynamics.to_angular_first(np.hstack([v, w, rest])), np.hstack([w, v, rest]))
    np.testing.assert_array_equal(dynamics.to_linear_first(np.hstack([w, v])), np.hstack([v, w]))
    nu, M = rng.normal(size=9), rng.normal(size=(9, 9))
    swapped = dynamics.to_angular_first(dynamics.to_angular_first(M, axis=0), axis=1)
    energy = dynamics.to_angular_first(nu) @ swapped @ dynamics.to_angular_first(nu)
    np.testing.assert_allclose(energy, nu @ M @ nu, **CLOSE)
    given = wp.array(np.hstack([v, w]), dtype=wp.spatial_vector, device="cpu")
    turned = dynamics.to_angular_first(given)
    assert turned.dtype is given.dtype
    np.testing.assert_array_equal(turned.numpy(), np.hstack([w, v]).astype(np.float32))
    with pytest.raises(ValueError, match=r"value.*\(4, 3\).*-1.*6"):
        dynamics.to_angular_first(v)


def test_scalar_first_and_scalar_last(rng):
    """Both ways, of quaternions and of transforms; as scipy has them."""
    turns = Rotation.random(4, rng)
    xyzw, wxyz = turns.as_quat(), turns.as_quat(scalar_first=True)
    np.testing.assert_array_equal(dynamics.wxyz_to_xyzw(wxyz), xyzw)
    np.testing.assert_array_equal(dynamics.xyzw_to_wxyz(xyzw), wxyz)
    x = rng.normal(size=(4, 3))
    np.testing.assert_array_equal(dynamics.wxyz_to_xyzw(np.hstack([x, wxyz])), np.hstack([x, xyzw]))
    given = wp.array(np.hstack([x, xyzw]), dtype=wp.transform, device="cpu")
    np.testing.assert_array_equal(dynamics.xyzw_to_wxyz(given).numpy(), np.hstack([x, wxyz]).astype(np.float32))
    with pytest.raises(ValueError, match=r"quaternions.*4.*7.*6"):
        dynamics.wxyz_to_xyzw(np.zeros((2, 6)))
