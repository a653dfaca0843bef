"""ModelBuilder: mass from shapes, joints, filters, fixed joints merged, and the model and state that come out."""

import itertools

import numpy as np
import pytest
import trimesh
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like.geometry.mesh import Mesh
from newton_like.model import JointDofConfig, ModelBuilder, PairSet, ShapeConfig
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.types import MAXVAL, Axis, GeoType, JointTargetMode, JointType, ModelFlags, ShapeFlags
from tests.support import reference
from tests.support.random_trees import random_inertia, random_transform, random_tree, random_unit

# Computed in float64 from numbers of order one in a few hundred operations.
TIGHT = {"rtol": 1e-11, "atol": 1e-11}


def one_hinge(**settings) -> ModelBuilder:
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3), label="arm")
    builder.add_articulation([builder.add_joint_revolute(-1, link, label="hinge", **settings)])
    return builder


def doubles(builder: ModelBuilder):
    return builder.finalize("cpu", dtype=wp.float64)


def body_matrices(model, q) -> dict[int, np.ndarray]:
    """4 x 4 poses of all bodies at coordinates q; -1 is the world."""
    poses = reference.body_poses(reference.Tree.from_model(model), q)
    return {-1: np.eye(4), **{body: reference.pose_matrix(x) for body, x in enumerate(poses)}}


def test_every_joint_type_has_a_row_with_its_numbers_of_coordinates():
    assert list(JOINT_TYPES) == list(JointType)
    for kind, row in JOINT_TYPES.items():
        dofs = sum(row.axes or (2, 1))
        assert kind.dof_count(dofs) == (dofs, dofs + row.has_quaternion)


# Mass


def test_parts_of_a_box_weigh_what_the_box_weighs(rng):
    """Mass, centre of mass and inertia of eight boxes that fill a ninth, in the frame of a body far from both."""
    half, density = rng.uniform(0.1, 1.0, 3), rng.uniform(100.0, 2000.0)
    place = random_transform(rng, 2.0)
    cfg = ShapeConfig(density=density)
    builder = ModelBuilder()
    whole, parts = builder.add_link(), builder.add_link()
    builder.add_shape_box(whole, xform=place, hx=half[0], hy=half[1], hz=half[2], cfg=cfg)
    cut = rng.uniform(-0.7, 0.7, 3) * half
    turn = Rotation.from_quat(place[3:])
    for side in itertools.product((-1.0, 1.0), repeat=3):
        side = np.array(side)
        size = 0.5 * (half - side * cut)
        centre = 0.5 * (cut + side * half)
        xform = (place[:3] + turn.apply(centre), place[3:])
        builder.add_shape_box(parts, xform=xform, hx=size[0], hy=size[1], hz=size[2], cfg=cfg)
    np.testing.assert_allclose(builder.body_mass[parts], 8.0 * np.prod(half) * density, rtol=1e-12)
    for name in ("body_mass", "body_com", "body_inertia"):
        values = getattr(builder, name)
        np.testing.assert_allclose(values[parts], values[whole], rtol=1e-10, atol=1e-10 * builder.body_mass[whole])


def test_shapes_add_to_the_mass_that_is_given_unless_it_is_locked():
    builder = ModelBuilder()
    given = {"mass": 2.0, "com": (0.1, 0, 0), "inertia": np.diag([1, 1, 1])}
    free, locked = builder.add_link(**given), builder.add_link(**given, lock_inertia=True)
    for body in (free, locked):
        builder.add_shape_sphere(body, radius=0.1, cfg=ShapeConfig(density=1000.0))
    ball = 1000.0 * 4.0 / 3.0 * np.pi * 0.1**3
    assert builder.body_mass[free] == pytest.approx(2.0 + ball, rel=1e-12)
    assert builder.body_com[free] == pytest.approx((0.2 / (2.0 + ball), 0.0, 0.0), rel=1e-12)
    reduced = 2.0 * ball / (2.0 + ball)  # of two masses about their common centre
    expected = [1.0 + 0.4 * ball * 0.01, *[1.0 + 0.4 * ball * 0.01 + reduced * 0.01] * 2]
    np.testing.assert_allclose(builder.body_inertia[free], np.diag(expected), rtol=1e-12, atol=1e-15)
    assert builder.body_mass[locked] == 2.0
    assert builder.body_com[locked] == (0.1, 0.0, 0.0)
    np.testing.assert_array_equal(builder.body_inertia[locked], np.eye(3))


def test_flags_of_a_configuration_may_be_set():
    for value in itertools.chain(range(8), (int(ShapeFlags.SITE), ShapeFlags.SITE | ShapeFlags.VISIBLE)):
        cfg = ShapeConfig()
        cfg.flags = value
        assert cfg.flags == value
    cfg.flags = ShapeFlags.SITE | ShapeFlags.COLLIDE_SHAPES
    assert (cfg.flags, cfg.density, cfg.collision_group) == (ShapeFlags.SITE, 0.0, 0)


def test_massless_things_add_no_mass():
    builder = ModelBuilder()
    body = builder.add_link(mass=1, inertia=np.eye(3))
    builder.add_site(body, type=GeoType.BOX, scale=(1, 1, 1))
    builder.add_shape_box(body, as_site=True)
    builder.add_shape_plane(body=body)
    builder.add_shape_box(body, cfg=ShapeConfig(density=0))
    builder.add_shape(body=body, type=GeoType.BOX, is_static=True)
    builder.add_shape_box(-1)
    assert builder.body_mass == [1.0]
    for site in (0, 1):
        assert builder.shape_flags[site] & ShapeFlags.SITE
        assert not builder.shape_flags[site] & ShapeFlags.COLLIDE_SHAPES
        assert builder.shape_collision_group[site] == 0


# Joints


@pytest.mark.parametrize("kind", [JointType.FREE, JointType.DISTANCE])
@pytest.mark.parametrize("generic", [False, True])
def test_free_joints_start_where_the_body_is(rng, kind, generic):
    """FK of the initial coordinates gives body_q back, with random anchors, on the world and on a moved parent."""
    builder = ModelBuilder()
    joints = []
    for parent in (-1, 0):
        child = builder.add_link(xform=random_transform(rng, 3.0), mass=1.0, inertia=np.eye(3))
        frames = {"parent_xform": random_transform(rng), "child_xform": random_transform(rng)}
        if generic:
            joints.append(builder.add_joint(kind, parent, child, **frames))
        elif kind == JointType.FREE:
            joints.append(builder.add_joint_free(child, parent=parent, **frames))
        else:
            joints.append(builder.add_joint_distance(parent, child, **frames))
    builder.add_articulation(joints)
    model = doubles(builder)
    poses = body_matrices(model, model.joint_q.numpy())
    np.testing.assert_allclose([poses[0], poses[1]], [reference.pose_matrix(x) for x in model.body_q.numpy()], **TIGHT)


def test_add_body_is_link_free_joint_and_articulation(rng):
    builder = ModelBuilder()
    pose = random_transform(rng)
    body = builder.add_body(xform=pose, mass=1, inertia=np.eye(3), label="ball")
    assert (builder.joint_label, builder.articulation_label) == (["ball_free_joint"], ["ball_articulation"])
    assert builder.joint_type == [JointType.FREE]
    assert (builder.joint_parent, builder.joint_child) == ([-1], [body])
    np.testing.assert_allclose(builder.joint_q, pose, rtol=1e-12)


def test_defaults_fill_in_what_is_not_given():
    builder = ModelBuilder()
    builder.default_joint_cfg = JointDofConfig(armature=0.5, friction=2, limit_upper=3)
    links = [builder.add_link() for _ in range(3)]
    builder.add_joint_revolute(-1, links[0], friction=0, axis=Axis.Y)
    builder.add_joint_prismatic(links[0], links[1], axis=JointDofConfig(axis=(0, 3, 4)))
    builder.add_joint_ball(links[1], links[2], damping=7)
    assert builder.joint_armature == [0.5, 0.0, 0.5, 0.5, 0.5]
    assert builder.joint_friction == [0.0, 0.0, 2.0, 2.0, 2.0]
    assert builder.joint_damping == [0.0, 0.0, 7.0, 7.0, 7.0]
    assert builder.joint_limit_upper == [3.0, MAXVAL, MAXVAL, MAXVAL, MAXVAL]  # a ball joint has no limits
    np.testing.assert_allclose(builder.joint_axis, [(0, 1, 0), (0, 0.6, 0.8), (1, 0, 0), (0, 1, 0), (0, 0, 1)])


def test_rotations_rest_at_the_identity_quaternion():
    builder = ModelBuilder()
    joints, parent = [], -1
    for add in (builder.add_joint_ball, builder.add_joint_distance, builder.add_joint_revolute):
        child = builder.add_link(mass=1, inertia=np.eye(3))
        joints.append(add(parent, child))
        parent = child
    builder.add_articulation(joints)
    turn = Rotation.random(None, 3).as_quat()
    ball = builder.add_link(mass=1, inertia=np.eye(3))
    joint = builder.add_joint_ball(parent, ball, target_q=turn, rest_q=turn[::-1], target_qd=(1, 2, 3), target_ke=4)
    builder.extend_articulation(0, [joint])
    model = doubles(builder)
    rest = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    for name, last in (("joint_q", [0, 0, 0, 1]), ("joint_target_q", turn), ("joint_rest_q", turn[::-1])):
        np.testing.assert_allclose(getattr(model, name).numpy(), [*rest, *last], rtol=1e-12)
    np.testing.assert_array_equal(model.joint_target_qd.numpy()[-3:], [1, 2, 3])
    assert model.joint_target_mode.numpy()[-3:].tolist() == [JointTargetMode.POSITION] * 3


def test_drive_modes_follow_the_gains():
    gains = [{}, {"target_ke": 1}, {"target_kd": 1}, {"target_ke": 1, "target_kd": 1}]
    modes = [one_hinge(**settings).joint_target_mode[0] for settings in gains]
    assert modes == [JointTargetMode.NONE, JointTargetMode.POSITION, JointTargetMode.VELOCITY, JointTargetMode.POSITION]
    forced = one_hinge(target_ke=1, actuator_mode=JointTargetMode.EFFORT)
    assert forced.joint_target_mode == [JointTargetMode.EFFORT]
    assert JointTargetMode.from_gains(0, 0, has_drive=True) == JointTargetMode.EFFORT
    assert JointTargetMode.from_gains(1, 1, True, True) == JointTargetMode.POSITION_VELOCITY


def test_integers_and_all_kinds_of_arrays_are_numbers():
    """The same scene from ints, NumPy scalars, lists, arrays and Warp values gives the same bits."""

    def scene(number, vector, pose):
        builder = ModelBuilder(gravity=vector((0, 0, -2)))
        link = builder.add_link(mass=number(1), com=vector((0, 1, 2)), inertia=np.diag([1, 1, 1]), xform=pose)
        builder.add_shape_box(link, hx=number(1), hy=number(2), hz=number(3), xform=pose, cfg=ShapeConfig(density=2))
        joint = builder.add_joint_revolute(
            -1, link, axis=vector((0, 0, 2)), limit_lower=number(-1), limit_upper=number(1), parent_xform=pose
        )
        builder.add_articulation(np.array([joint]))
        return builder.finalize("cpu")

    plain = scene(float, tuple, ((1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0)))
    others = [
        scene(int, list, [1, 2, 3, 0, 0, 0, 1]),
        scene(np.float32, np.array, np.array([1, 2, 3, 0, 0, 0, 1])),
        scene(np.int64, lambda v: wp.vec3(*v), wp.transform((1, 2, 3), wp.quat_identity())),
        scene(lambda v: np.array(v), lambda v: wp.vec3d(*v), (np.array([1, 2, 3]), wp.quat_identity())),
    ]
    compared = 0
    for name, array in vars(plain).items():
        if isinstance(array, wp.array):
            for other in others:
                np.testing.assert_array_equal(array.numpy(), getattr(other, name).numpy(), err_msg=name)
            compared += 1
    assert compared > 60


def test_d6_turns_are_made_orthonormal(rng):
    """The first axis stays, each next one lies in the span of the axes up to it: the same flag of subspaces."""
    given = [random_unit(rng) for _ in range(3)]
    while abs(np.linalg.det(given)) < 0.1:
        given = [random_unit(rng) for _ in range(3)]
    builder = ModelBuilder()
    link = builder.add_link(mass=1, inertia=np.eye(3))
    slide = random_unit(rng)
    builder.add_articulation([builder.add_joint_d6(-1, link, linear_axes=[slide], angular_axes=given)])
    axes = doubles(builder).joint_axis.numpy()
    np.testing.assert_allclose(axes[0], slide, **TIGHT)
    np.testing.assert_allclose(axes[1:] @ axes[1:].T, np.eye(3), **TIGHT)
    np.testing.assert_allclose(axes[1], given[0], **TIGHT)
    assert abs(np.linalg.det([given[0], given[1], axes[2]])) < 1e-12
    assert np.dot(axes[2], given[1]) > 0.0
    assert np.dot(axes[3], given[2]) > 0.0


def test_mimic_by_label_and_back():
    builder = ModelBuilder()
    joints, parent = [], -1
    for name in ("a", "b"):
        child = builder.add_link(mass=1, inertia=np.eye(3))
        joints.append(builder.add_joint_revolute(parent, child, label=name))
        parent = child
    builder.add_articulation(joints)
    builder.set_joint_mimic("b", "a", coeffs=(1, -2))
    model = builder.finalize("cpu")
    assert model.joint_mimic_joint.numpy().tolist() == [-1, 0]
    assert model.joint_mimic_coeffs.numpy()[1].tolist() == [1.0, -2.0]
    builder.set_joint_mimic("b", None)
    assert builder.joint_mimic_joint == [-1, -1]


def test_joint_ancestor_is_the_joint_of_the_parent_body(rng):
    builder = random_tree(rng, joints=12)
    model = builder.finalize("cpu")
    for joint in range(12):
        parent, ancestor = model.joint_parent.numpy()[joint], model.joint_ancestor.numpy()[joint]
        assert (ancestor == -1) == (parent == -1)
        if parent >= 0:
            assert model.joint_child.numpy()[ancestor] == parent


def test_bodies_know_their_shapes():
    builder = ModelBuilder()
    bodies = [builder.add_body() for _ in range(3)]
    owners = [bodies[1], -1, bodies[0], bodies[1]]
    for body in owners:
        builder.add_shape_sphere(body)
    builder.body_mass, builder.body_inertia = [1.0] * 3, [np.eye(3)] * 3
    expected = {-1: [1], 0: [2], 1: [0, 3], 2: []}
    assert builder.body_shapes == builder.finalize("cpu").body_shapes == expected


# Filters


def test_parent_and_child_never_touch_and_order_does_not_matter(rng):
    """Filter pairs follow from which bodies are joined, whether shapes or joints were added first."""
    edges = [(-1, 0, "hinge"), (0, 1, "hinge"), (1, 2, "weld"), (0, 3, "hinge"), (-1, 4, "weld")]
    steps = [("joint", e) for e in edges] + [("shape", b) for b in (-1, 0, 0, 1, 2, 3, 4)]
    for _ in range(5):
        builder = ModelBuilder()
        for _ in range(5):
            builder.add_link()
        for what, item in (steps[i] for i in rng.permutation(len(steps))):
            if what == "shape":
                builder.add_shape_sphere(item)
            else:
                add = builder.add_joint_fixed if item[2] == "weld" else builder.add_joint_revolute
                add(item[0], item[1])
        # A body that moves may touch the world it hangs on; one that is welded to it may not.
        joined = {(0, 1), (1, 2), (0, 3), (-1, 4)}
        expected = {
            (a, b)
            for a, b in itertools.combinations(range(7), 2)
            for ends in [tuple(sorted((builder.shape_body[a], builder.shape_body[b])))]
            if ends in joined or (ends[0] == ends[1] >= 0)
        }
        assert set(builder.shape_collision_filter_pairs) == expected


def test_filters_can_be_switched_off():
    builder = ModelBuilder()
    bodies = [builder.add_link() for _ in range(3)]
    for body in bodies:
        builder.add_shape_box(body, cfg=ShapeConfig(collision_filter_parent=body != bodies[2]))
    builder.add_joint_revolute(bodies[0], bodies[1], collision_filter_parent=False)
    builder.add_joint_revolute(bodies[1], bodies[2])
    assert len(builder.shape_collision_filter_pairs) == 0
    builder.add_shape_collision_filter_pair(2, 0)
    assert set(builder.shape_collision_filter_pairs) == {(0, 2)}


def test_pair_set_is_a_set_of_unordered_pairs(rng):
    pairs, expected = PairSet(), set()
    for _ in range(300):
        a, b = rng.choice(12, 2, replace=False).tolist()
        if rng.random() < 0.6:
            pairs.add((a, b))
            expected.add((min(a, b), max(a, b)))
        else:
            pairs.discard((a, b))
            expected.discard((min(a, b), max(a, b)))
        assert len(pairs) == len(expected)
    assert set(pairs) == expected
    assert pairs == expected
    assert all((b, a) in pairs for a, b in expected)
    assert [tuple(p) for p in pairs.to_array().tolist()] == sorted(expected)
    assert "ab" not in pairs
    big = [(2**31 - 2, 2**31 - 1)]
    assert list(PairSet(big)) == big
    with pytest.raises(ValueError, match="indices"):
        pairs.add((3, 3))


# Shapes


@pytest.mark.parametrize("up", "XYZ")
def test_ground_plane_is_across_the_up_axis(up, rng):
    height = rng.normal()
    builder = ModelBuilder(up_axis=up)
    builder.add_ground_plane(height=height)
    plane = reference.pose_matrix(np.array(builder.shape_transform[0]))
    normal = np.eye(3)["XYZ".index(up)]
    np.testing.assert_allclose(plane[:3, 2], normal, atol=1e-12)
    np.testing.assert_allclose(plane[:3, 3], height * normal, atol=1e-12)
    np.testing.assert_allclose(builder.gravity, -9.81 * normal)


def test_plane_equation_holds_on_the_plane(rng):
    equation = np.array([*rng.normal(size=3), rng.normal()])
    builder = ModelBuilder()
    builder.add_shape_plane(equation)
    plane = reference.pose_matrix(np.array(builder.shape_transform[0]))
    points = plane @ np.array([*rng.normal(size=(2, 5)), np.zeros(5), np.ones(5)])
    np.testing.assert_allclose(equation @ points, 0.0, atol=1e-12 * np.linalg.norm(equation))
    assert plane[:3, 2] @ equation[:3] > 0.0


def test_equal_meshes_share_their_hull(rng):
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    mesh = Mesh(corners, trimesh.convex.convex_hull(corners).faces)
    builder = ModelBuilder()
    bodies = [builder.add_body(mass=1, inertia=np.eye(3)) for _ in range(3)]
    scales = [(1, 2, 3), (1, 2, 3), (2, 2, 2)]
    for body, scale in zip(bodies, scales, strict=True):
        builder.add_shape_mesh(body, mesh=mesh, scale=scale)
    builder.add_shape_sphere(bodies[0], radius=0.5)
    model = builder.finalize("cpu")
    first, count = model.shape_hull_first.numpy(), model.shape_hull_count.numpy()
    points = model.hull_points.numpy()
    assert count.tolist() == [8, 8, 8, 0]
    assert first[0] == first[1]
    assert len(points) == 16
    for shape, scale in enumerate(scales):
        hull = points[first[shape] : first[shape] + count[shape]]
        expected = corners * scale
        assert {tuple(p) for p in hull.tolist()} == {tuple(p) for p in expected.tolist()}
        assert model.shape_collision_radius.numpy()[shape] == pytest.approx(np.linalg.norm(scale), rel=1e-6)
    assert model.shape_source[0] is mesh


# What comes out


def test_double_models_keep_every_digit(rng):
    numbers = rng.normal(size=3)
    builder = ModelBuilder(gravity=numbers)
    inertia = random_inertia(rng, 1.0)
    builder.add_body(com=numbers, mass=0.1, inertia=inertia)
    model = doubles(builder)
    assert (model.body_com.dtype, model.gravity.dtype) == (wp.vec3d, wp.vec3d)
    np.testing.assert_array_equal(model.body_com.numpy()[0], numbers)
    np.testing.assert_array_equal(model.gravity.numpy()[0], numbers)
    assert model.body_mass.numpy()[0] == 0.1
    np.testing.assert_allclose(model.body_inv_inertia.numpy()[0] @ inertia, np.eye(3), atol=1e-11)
    for array in (*vars(model.state()).values(), *vars(model.control()).values()):
        assert array.numpy().dtype == np.float64


def test_lists_can_be_edited_until_finalize():
    builder = one_hinge()
    builder.joint_q[0] = 0.25
    builder.joint_target_ke = np.array([12.5])
    builder.joint_target_mode = [JointTargetMode.POSITION]
    builder.body_q[0] = wp.transform((1.0, 2.0, 3.0), wp.quat_identity())
    builder.joint_X_p[0] = ((4, 5, 6), (0, 0, 0, 1))
    builder.body_inertia[0] = wp.mat33(1.0, 0.0, 0.0, 0.0, 1.5, 0.0, 0.0, 0.0, 1.25)
    builder.body_com[0] = np.array([1, 2, 3], dtype=np.float32)
    model = builder.finalize("cpu")
    assert model.joint_q.numpy().tolist() == [0.25]
    assert model.joint_target_ke.numpy().tolist() == [12.5]
    assert model.body_q.numpy()[0].tolist() == [1, 2, 3, 0, 0, 0, 1]
    assert model.joint_X_p.numpy()[0].tolist() == [4, 5, 6, 0, 0, 0, 1]
    assert np.diag(model.body_inertia.numpy()[0]).tolist() == [1.0, 1.5, 1.25]
    assert model.body_com.numpy()[0].tolist() == [1, 2, 3]
    builder.joint_q[0] = 0.5  # the builder is not used up, and the model does not follow it
    assert builder.finalize("cpu").joint_q.numpy().tolist() == [0.5]
    assert model.joint_q.numpy().tolist() == [0.25]


def test_states_are_independent_copies():
    model = one_hinge().finalize("cpu", requires_grad=True)
    first, second = model.state(), model.state(requires_grad=False)
    assert first.requires_grad
    assert not second.requires_grad
    first.joint_q.fill_(1.0)
    first.body_f.fill_(2.0)
    assert second.joint_q.numpy()[0] == model.joint_q.numpy()[0] == 0.0
    second.assign(first)
    copy = first.clone()
    first.clear_forces()
    assert (first.body_f.numpy() == 0.0).all()
    for state in (second, copy):
        assert (state.body_f.numpy() == 2.0).all()
        assert state.joint_q.numpy()[0] == 1.0
    control = model.control()
    control.joint_f.fill_(3.0)
    control.joint_target_q.fill_(0.5)
    control.clear()
    assert control.joint_f.numpy()[0] == 0.0
    assert control.joint_target_q.numpy()[0] == 0.5
    larger = random_tree(np.random.default_rng(0), joints=3).finalize("cpu")
    with pytest.raises(ValueError, match=r"State\.\w+"):
        first.assign(larger.state())
    with pytest.raises(TypeError, match=r"Control.*State"):
        first.assign(control)


def test_changes_are_counted_and_inverses_renewed():
    model = one_hinge().finalize("cpu")
    version = model.version
    model.body_mass.assign([4.0])
    model.body_inertia.assign([np.diag([2.0, 4.0, 5.0])])
    model.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    assert model.version == version + 1
    assert model.body_inv_mass.numpy().tolist() == [0.25]
    np.testing.assert_allclose(model.body_inv_inertia.numpy()[0], np.diag([0.5, 0.25, 0.2]), rtol=1e-6)


def test_inverse_of_a_rod_leaves_its_axis_out():
    builder = one_hinge(axis="x")
    builder.body_inertia[0] = np.diag([2.0, 2.0, 0.0])
    np.testing.assert_allclose(builder.finalize("cpu").body_inv_inertia.numpy()[0], np.diag([0.5, 0.5, 0.0]), atol=1e-6)


def test_contacts_have_room_for_moving_shapes():
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_box(builder.add_body())
    model = builder.finalize("cpu")
    contacts = model.contacts()
    assert contacts.rigid_contact_max == len(contacts.rigid_contact_normal) == 8
    assert len(model.contacts(3).rigid_contact_shape0) == 3
    contacts.rigid_contact_count.fill_(11)
    assert contacts.dropped == 3
    contacts.clear()
    assert contacts.dropped == 0


def test_hulls_have_room_for_two_faces_of_eight_corners():
    builder = ModelBuilder()
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
    mesh = Mesh(corners, [0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2])
    for add in (builder.add_shape_convex_hull, builder.add_shape_mesh):
        add(builder.add_body(), mesh=mesh)
    builder.add_shape_sphere(builder.add_body())
    builder.add_shape_convex_hull(-1, mesh=mesh)
    assert builder.finalize("cpu").contacts().rigid_contact_max == 16 + 16 + 8


def test_an_empty_scene_is_a_model():
    model = ModelBuilder().finalize("cpu")
    assert (model.body_count, model.joint_count, model.world_count) == (0, 0, 1)
    assert len(model.state().body_q) == 0
    np.testing.assert_allclose(model.gravity.numpy(), [[0, 0, -9.81]], rtol=1e-6)


# The contract

# Arrays of newton 1.8 that mean something else here.
DIFFERENT = {
    "joint_q": "a DISTANCE joint starts where body_q says, as a FREE one",
    "joint_limit_lower": "distances of a DISTANCE joint have arrays of their own",
    "joint_limit_upper": "as above",
    "joint_limit_ke": "as above",
    "joint_limit_kd": "as above",
    "joint_target_q": "as above",
    "shape_material_mu_torsional": "0 by default",
    "shape_material_mu_rolling": "0 by default",
    "shape_gap": "smaller by default",
    "shape_color": "another palette",
    "shape_collision_radius": "tight for cylinders and cones",
    "gravity": "no row for world -1",
}


@pytest.mark.filterwarnings("ignore:Inertia validation")
def test_same_calls_give_the_arrays_of_newton(rng):
    """One script, this builder and that of newton 1.8: all arrays but a few are equal, name by name."""
    newton = pytest.importorskip("newton", reason="newton is not installed (extra 'peers')")
    numbers = rng.uniform(0.2, 1.0, 20).round(3).tolist()
    poses = [random_transform(rng) for _ in range(8)]
    axes = [random_unit(rng).tolist() for _ in range(4)]

    def script(Builder, axis_type):
        pose = [wp.transform(x[:3].tolist(), x[3:].tolist()) for x in poses]
        dof = Builder.JointDofConfig
        robot = Builder()
        robot.default_shape_cfg.density = 500.0
        robot.default_joint_cfg.armature = 0.125
        links = [
            robot.add_link(mass=1.0, inertia=wp.mat33(np.eye(3)), xform=pose[0], com=(0.1, 0.2, 0.3), label=f"link{i}")
            for i in range(7)
        ]
        robot.add_shape_box(links[0], xform=pose[1], hx=numbers[0], hy=numbers[1], hz=numbers[2])
        robot.add_shape_sphere(
            links[1], xform=pose[2], radius=numbers[3], cfg=Builder.ShapeConfig(mu=0.25, margin=0.01)
        )
        robot.add_shape_capsule(links[2], xform=pose[3], radius=numbers[4], half_height=numbers[5], label="tube")
        robot.add_shape_cylinder(links[3], xform=pose[4], radius=numbers[6], half_height=numbers[7])
        robot.add_shape_cone(links[4], radius=numbers[8], half_height=numbers[9])
        robot.add_shape_ellipsoid(links[5], xform=pose[5], rx=numbers[10], ry=numbers[11], rz=numbers[12])
        robot.add_site(links[6], xform=pose[6])
        frames = {"parent_xform": pose[6], "child_xform": pose[7]}
        joints = [
            robot.add_joint_free(links[0], **frames),
            robot.add_joint_revolute(
                links[0],
                links[1],
                axis=axes[0],
                limit_lower=-1.0,
                limit_upper=2.0,
                target_ke=10.0,
                target_q=0.5,
                **frames,
            ),
            robot.add_joint_prismatic(links[1], links[2], axis=axis_type.Y, friction=0.5, effort_limit=7.0, **frames),
            robot.add_joint_ball(links[1], links[3], damping=0.5, **frames),
            robot.add_joint_fixed(links[0], links[4], **frames),
            robot.add_joint_distance(links[4], links[5], min_distance=0.1, max_distance=0.5, **frames),
            robot.add_joint_d6(
                links[4],
                links[6],
                linear_axes=[dof(axis=axes[1], limit_ke=5.0)],
                angular_axes=[dof(axis="x", target_kd=3.0), dof(axis="z", velocity_limit=9.0)],
                **frames,
            ),
        ]
        robot.add_articulation(joints, label="robot")
        robot.set_joint_mimic(joints[2], joints[1], coeffs=(0.5, 2.0))
        robot.add_body(xform=pose[1], mass=2.0, inertia=wp.mat33(np.eye(3)), label="ball")
        scene = Builder(gravity=wp.vec3(0.0, 0.0, -5.0))
        scene.add_ground_plane(height=0.25)
        scene.replicate(robot, 3, spacing=(2.0, 3.0, 0.0))
        scene.add_world(robot, label_prefix="last", xform=pose[2])
        return scene.finalize("cpu")

    ours, theirs = script(ModelBuilder, Axis), script(newton.ModelBuilder, newton.Axis)
    compared = set()
    for name, array in vars(ours).items():
        other = getattr(theirs, name, None)
        if isinstance(array, wp.array) and isinstance(other, wp.array):
            if name in DIFFERENT:
                continue
            compared.add(name)
            mine, yours, tolerance = array.numpy(), other.numpy(), 2e-5  # newton computes in float32
            if "inertia" in name:
                # Inertias are also added in float32; the residuals of cancelled terms are small compared with the largest.
                size = np.abs(mine).max(axis=(1, 2), keepdims=True)
                mine, yours, tolerance = mine / size, yours / size, 2e-4
            np.testing.assert_allclose(mine, yours, rtol=tolerance, atol=tolerance, err_msg=name)
    assert len(compared) > 55
    for name in ("body_label", "articulation_label", "body_count", "joint_dof_count", "max_dofs_per_articulation"):
        assert getattr(ours, name) == getattr(theirs, name), name
