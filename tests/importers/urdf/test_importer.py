"""The URDF importer: the result of each element, with small files, and the project's quadruped."""

import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
import trimesh
import warp as wp

from newton_like.geometry import inertia
from newton_like.geometry.outline import triangles
from newton_like.geometry.transforms import quat_from_rpy, transform, transform_multiply
from newton_like.importers.urdf import UrdfWarning
from newton_like.model.builder.builder import ModelBuilder
from newton_like.model.configs import JointDofConfig
from newton_like.types import MAXVAL, GeoType, JointTargetMode, JointType, ShapeFlags
from tests.support.reference import Tree, body_poses, mass_matrix, pose_matrix
from tests.support.remarks import remarked

INERTIAL = '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'


def link(name, inside=INERTIAL):
    return f'<link name="{name}">{inside}</link>'


def joint(name, kind, parent, child, inside=""):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'


def robot(*parts):
    return f'<robot name="bot">{"".join(parts)}</robot>'


def two_links(kind, inside=""):
    return robot(link("a"), link("b"), joint("j", kind, "a", "b", inside))


def load(text, **options):
    builder = ModelBuilder()
    return builder, builder.add_urdf(text, **options)


def poses(builder, q):
    """Matrices of all bodies."""
    tree = Tree.from_model(builder.finalize(device="cpu", dtype=wp.float64))
    return [pose_matrix(pose) for pose in body_poses(tree, np.array(q, dtype=float))]


LIMIT = '<limit lower="-1" upper="2" effort="30" velocity="4"/>'


@pytest.mark.parametrize(
    ("kind", "inside", "expected", "dofs"),
    [
        ("revolute", LIMIT, JointType.REVOLUTE, (0, 1)),
        ("continuous", "", JointType.REVOLUTE, (0, 1)),
        ("prismatic", LIMIT, JointType.PRISMATIC, (1, 0)),
        ("fixed", "", JointType.FIXED, (0, 0)),
        ("floating", "", JointType.FREE, (3, 3)),
        ("planar", "", JointType.D6, (2, 1)),
    ],
)
def test_joint_types(kind, inside, expected, dofs):
    builder, report = load(two_links(kind, inside))
    index = report.joints["j"]
    assert builder.joint_type[index] == expected and builder.joint_dof_dim[index] == dofs
    assert builder.joint_label[index] == "bot/j" and builder.body_label == ["bot/a", "bot/b"]
    assert (builder.joint_parent[index], builder.joint_child[index]) == (report.links["a"], report.links["b"])


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "planar", "floating"])
def test_joints_move_as_in_pinocchio(rng, kind):
    pin = pytest.importorskip("pinocchio")
    xyz, rpy, axis = rng.normal(size=3), rng.uniform(-3, 3, 3), rng.normal(size=3)
    if kind == "planar":
        axis = np.array([0.0, 0.0, 1.0])  # pinocchio supports no other normal
    words = [" ".join(map(repr, map(float, v))) for v in (xyz, rpy, axis)]
    limit = LIMIT if kind in ("revolute", "prismatic") else ""
    inside = f'<origin xyz="{words[0]}" rpy="{words[1]}"/><axis xyz="{words[2]}"/>{limit}'
    text = two_links(kind, inside)
    builder, report = load(text)
    q = rng.uniform(-1, 2, len(builder.joint_q))
    theirs = q
    if kind == "floating":
        q[3:] /= np.linalg.norm(q[3:])
    elif kind == "planar":
        theirs = np.array([q[0], q[1], np.cos(q[2]), np.sin(q[2])])
    elif kind == "continuous":
        theirs = np.array([np.cos(q[0]), np.sin(q[0])])
    model = pin.buildModelFromXML(text)
    data = model.createData()
    pin.forwardKinematics(model, data, theirs)
    # Files hold 17 digits; three products of matrices of size one.
    assert np.allclose(poses(builder, q)[report.links["b"]], data.oMi[1].homogeneous, atol=1e-13)


def test_a_planar_joint_slides_in_its_plane_and_turns_about_the_normal(rng):
    normal = rng.normal(size=3)
    words = " ".join(map(str, normal))
    builder, report = load(two_links("planar", f'<axis xyz="{words}"/><dynamics damping="0.3" friction="0.2"/>'))
    n = normal / np.linalg.norm(normal)
    start = builder.joint_qd_start[report.joints["j"]]
    u, v, w = np.array(builder.joint_axis[start : start + 3])
    assert np.allclose(np.cross(u, v), w) and np.allclose(w, n)
    q = rng.normal(size=3)
    pose = poses(builder, q)[report.links["b"]]
    assert np.allclose(pose[:3, 3], q[0] * u + q[1] * v) and np.allclose(pose[:3, :3] @ n, n)
    assert builder.joint_damping[start : start + 3] == [0.3] * 3
    assert builder.joint_friction[start : start + 3] == [0.2] * 3


@pytest.mark.parametrize(("axis", "u"), [("0 0 1", (1, 0, 0)), ("1 0 0", (0, 1, 0)), ("0 1 0", (0, 0, 1))])
def test_planar_axes_follow_the_coordinate_axes(axis, u):
    builder, _ = load(two_links("planar", f'<axis xyz="{axis}"/>'))
    assert builder.joint_axis[0] == pytest.approx(u)


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_limits_and_dynamics_of_a_joint(kind):
    builder, _ = load(two_links(kind, LIMIT + '<dynamics damping="0.5" friction="0.25"/><axis xyz="0 3 4"/>'))
    values = {
        name: getattr(builder, f"joint_{name}")[0]
        for name in ("limit_lower", "limit_upper", "effort_limit", "velocity_limit", "damping", "friction")
    }
    assert values == dict(limit_lower=-1, limit_upper=2, effort_limit=30, velocity_limit=4, damping=0.5, friction=0.25)
    assert builder.joint_axis[0] == pytest.approx((0.0, 0.6, 0.8))


def test_the_axis_is_x_where_none_is_given():
    assert load(two_links("continuous"))[0].joint_axis[0] == (1.0, 0.0, 0.0)


def test_what_a_file_cannot_say_comes_from_the_builder():
    builder = ModelBuilder()
    builder.default_joint_cfg = JointDofConfig(armature=0.01, target_ke=50.0, damping=9.0, limit_ke=7.0)
    builder.default_shape_cfg.mu = 0.3
    shape = '<collision><geometry><sphere radius="1"/></geometry></collision>'
    builder.add_urdf(robot(link("a", shape), link("b"), joint("j", "revolute", "a", "b", LIMIT)))
    assert builder.joint_armature == [0.01] and builder.joint_target_ke == [50.0] and builder.joint_limit_ke == [7.0]
    assert builder.joint_damping == [9.0] and builder.shape_material_mu == [0.3]
    assert builder.joint_target_mode == [JointTargetMode.POSITION]


def test_drives_need_only_gains_to_work():
    assert load(two_links("revolute", LIMIT))[0].joint_target_mode == [JointTargetMode.POSITION]
    builder = ModelBuilder()
    builder.default_joint_cfg.actuator_mode = JointTargetMode.VELOCITY
    builder.add_urdf(two_links("revolute", LIMIT))
    assert builder.joint_target_mode == [JointTargetMode.VELOCITY]


@pytest.mark.parametrize(
    ("kind", "limit", "bounds", "effort", "remark"),
    [
        ("revolute", "", (-MAXVAL, MAXVAL), 1e6, "<limit>"),
        ("revolute", '<limit effort="5" velocity="2"/>', (-MAXVAL, MAXVAL), 5, "position"),
        ("revolute", '<limit effort="5" velocity="2" upper="1"/>', (0, 1), 5, "lower and upper"),
        ("revolute", '<limit effort="0" velocity="0" lower="0" upper="0"/>', (-MAXVAL, MAXVAL), 1e6, "zeros"),
        ("revolute", '<limit effort="5" velocity="2" lower="0" upper="0"/>', (0, 0), 5, None),
        ("revolute", '<limit effort="inf" velocity="2" lower="-1e16" upper="inf"/>', (-MAXVAL, MAXVAL), MAXVAL, None),
        ("prismatic", '<limit lower="0" upper="1"/>', (0, 1), 1e6, "effort and velocity"),
        ("continuous", '<limit effort="5" velocity="2" lower="-1" upper="1"/>', (-MAXVAL, MAXVAL), 5, "continuous"),
    ],
)
def test_limits_that_are_not_stated(kind, limit, bounds, effort, remark):
    builder = ModelBuilder()
    text = two_links(kind, limit)
    if remark is None:
        report = builder.add_urdf(text)
        assert not report.remarks
    else:
        with pytest.warns(UrdfWarning, match=rf"{remark}.*\(1\): j"):
            report = builder.add_urdf(text)
        assert remarked(report, remark) == ["j"]
    assert (builder.joint_limit_lower[0], builder.joint_limit_upper[0]) == bounds
    assert builder.joint_effort_limit[0] == effort


@pytest.mark.parametrize(("lower", "upper", "start"), [(0.5, 1.0, 0.5), (-2.0, -0.25, -0.25), (-1.0, 1.0, 0.0)])
@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
def test_joints_start_inside_their_range_and_bodies_where_they_then_are(lower, upper, start):
    limit = f'<limit lower="{lower}" upper="{upper}" effort="1" velocity="1"/><axis xyz="0 0 1"/>'
    text = robot(
        link("a"),
        link("b"),
        link("c"),
        joint("j", "revolute", "a", "b", '<origin xyz="1 0 0"/>' + limit),
        joint("k", "floating", "b", "c", '<origin xyz="0 2 0"/>'),
    )
    builder, report = load(text, xform=((0, 0, 3), (0, 0, 0, 1)))
    assert builder.joint_q[0] == start and builder.joint_target_q[0] == start
    for body, pose in enumerate(poses(builder, builder.joint_q)):
        assert np.allclose(pose_matrix(np.array(builder.body_q[body])), pose, atol=1e-14)
    assert builder.body_q[report.links["c"]][:3] == pytest.approx(
        (1 - 2 * math.sin(start), 2 * math.cos(start), 3), abs=1e-14
    )


def chain_of_mimics(scale_kind="prismatic"):
    mimic = '<mimic joint="{}" multiplier="{}" offset="{}"/>'
    return robot(
        *(link(name) for name in "abcd"),
        joint("lead", "revolute", "a", "b", LIMIT),
        joint("two", scale_kind, "b", "c", LIMIT + mimic.format("three", 2.0, 0.5)),
        joint("three", "revolute", "b", "d", LIMIT + mimic.format("lead", -3.0, 0.25)),
    )


def test_mimic_chains_follow_the_joint_at_their_end():
    builder, report = load(chain_of_mimics())
    two, three, lead = (report.joints[name] for name in ("two", "three", "lead"))
    assert builder.joint_mimic_joint[two] == builder.joint_mimic_joint[three] == lead
    assert builder.joint_mimic_joint[lead] == -1
    # two = 2 three + 0.5 = 2 (-3 lead + 0.25) + 0.5
    assert builder.joint_mimic_coeffs[two] == (1.0, -6.0) and builder.joint_mimic_coeffs[three] == (0.25, -3.0)
    assert builder.joint_q[builder.joint_q_start[two]] == 1.0


def test_mimics_of_sliders_scale_with_the_robot():
    builder, report = load(chain_of_mimics(), scale=10.0)
    assert builder.joint_mimic_coeffs[report.joints["two"]] == (10.0, -60.0)
    assert builder.joint_mimic_coeffs[report.joints["three"]] == (0.25, -3.0)


def test_an_inertial_frame_turns_the_inertia(rng):
    rpy = rng.uniform(-3, 3, 3)
    text = (
        f'<inertial><origin xyz="1 2 3" rpy="{rpy[0]} {rpy[1]} {rpy[2]}"/><mass value="2"/>'
        '<inertia ixx="0.3" iyy="0.4" izz="0.5" ixy="0.01" ixz="0.02" iyz="-0.03"/></inertial>'
    )
    builder, _ = load(robot(link("a", text)))
    matrix = np.array([[0.3, 0.01, 0.02], [0.01, 0.4, -0.03], [0.02, -0.03, 0.5]])
    cx, cy, cz = np.cos(rpy)
    sx, sy, sz = np.sin(rpy)
    turn = (
        np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
        @ np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
        @ np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    )
    assert builder.body_mass == [2.0] and builder.body_com[0] == (1.0, 2.0, 3.0)
    assert np.allclose(builder.body_inertia[0], turn @ matrix @ turn.T, atol=1e-15)


def test_shapes_of_every_kind():
    def piece(tag, geometry, name=""):
        return f'<{tag}{name}><origin xyz="1 2 3" rpy="0 0 1.5"/><geometry>{geometry}</geometry></{tag}>'

    text = robot(
        link(
            "a",
            piece("collision", '<box size="1 2 3"/>', ' name="case"')
            + piece("collision", '<sphere radius="0.5"/>')
            + piece("collision", '<cylinder radius="0.5" length="3"/>')
            + piece("visual", '<capsule radius="0.5" length="3"/>')
            + piece("visual", '<capsule radius="0.5" height="3"/>'),
        )
    )
    builder, report = load(text)
    assert report.shapes == {"a": [0, 1, 2, 3, 4]}
    assert builder.shape_type == [GeoType.BOX, GeoType.SPHERE, GeoType.CYLINDER, GeoType.CAPSULE, GeoType.CAPSULE]
    expected = [(0.5, 1, 1.5), (0.5, 0, 0), (0.5, 1.5, 0), (0.5, 1.5, 0), (0.5, 1.5, 0)]
    assert builder.shape_scale == expected
    assert builder.shape_label[:2] == ["bot/a/case", "bot/a/collision_1"]
    pose = (1, 2, 3, 0, 0, math.sin(0.75), math.cos(0.75))
    assert all(x == pytest.approx(pose, abs=1e-15) for x in builder.shape_transform)
    flags = [ShapeFlags(f) for f in builder.shape_flags]
    assert [bool(f & ShapeFlags.COLLIDE_SHAPES) for f in flags] == [True] * 3 + [False] * 2
    assert [bool(f & ShapeFlags.VISIBLE) for f in flags] == [False] * 3 + [True] * 2
    assert builder.body_mass == [0.0]

    hidden = load(text, hide_visuals=True)[0]
    assert hidden.shape_count == 3 and all(f & ShapeFlags.VISIBLE for f in hidden.shape_flags)
    swapped = load(text, parse_visuals_as_colliders=True)[0]
    assert swapped.shape_type == [GeoType.CAPSULE] * 2
    assert all(f & ShapeFlags.COLLIDE_SHAPES for f in swapped.shape_flags)
    shown = load(text, force_show_colliders=True)[0]
    assert all(f & ShapeFlags.VISIBLE for f in shown.shape_flags)


def test_materials_of_the_file_of_the_link_and_of_others():
    def visual(material):
        return f'<visual><geometry><sphere radius="1"/></geometry>{material}</visual>'

    own = '<material name="own"><color rgba="0.4 0.5 0.6 0.7"/></material>'
    text = robot(
        link("a", visual('<material name="red"/>') + visual('<material name="own"/>') + visual(own)),
        link("b", visual('<material name="red"><color rgba="0 1 0 1"/></material>')),
        joint("j", "fixed", "a", "b"),
        '<material name="red"><color rgba="1 0 0 1"/></material>',
    )
    builder, _ = load(text)
    assert builder.shape_color == [(1, 0, 0), (0.4, 0.5, 0.6), (0.4, 0.5, 0.6), (0, 1, 0)]
    assert builder.shape_opacity == [1, 0.7, 0.7, 1]


def test_materials_that_say_nothing_or_too_much_are_remarked():
    visual = '<visual><geometry><sphere radius="1"/></geometry><material name="{}">{}</material></visual>'
    with pytest.warns(UrdfWarning, match=r"material.*\(1\): a$") as caught:
        load(robot(link("a", visual.format("no", "") + visual.format("hot", '<color rgba="255 0 0 1"/>'))))
    assert "(1): '255 0 0 1' in line 1" in str(caught[0].message)


def test_a_visual_without_size_is_left_out():
    with pytest.warns(UrdfWarning, match=r"visual.*\(1\): a$"):
        builder, _ = load(robot(link("a", '<visual><geometry><box size="0 0 0"/></geometry></visual>')))
    assert builder.shape_count == 0


def test_a_capsule_of_length_zero_has_the_mass_and_the_outline_of_a_sphere():
    found = []
    for shape in ('<capsule radius="0.2" length="0"/>', '<sphere radius="0.2"/>'):
        pieces = "".join(f"<{tag}><geometry>{shape}</geometry></{tag}>" for tag in ("collision", "visual"))
        builder, _ = load(robot(link("a", pieces)), ignore_inertial_definitions=True)
        assert builder.shape_count == 2
        points = triangles(GeoType(builder.shape_type[0]), np.array(builder.shape_scale[0]))[0]
        assert np.allclose(np.linalg.norm(points, axis=-1), 0.2)
        found.append((builder.body_mass[0], np.array(builder.body_inertia[0])))
    assert np.isclose(found[0][0], found[1][0]) and np.allclose(found[0][1], found[1][1])


def package(tmp_path):
    """A package of the usual layout with one mesh, and the text of a link that names it."""
    folder = tmp_path / "ws" / "my robot"
    (folder / "meshes").mkdir(parents=True)
    (folder / "urdf").mkdir()
    trimesh.creation.box(extents=[1, 2, 3]).export(folder / "meshes" / "box.stl")
    return folder


def mesh_link(filename, tag="collision", scale=""):
    return link("a", f'<{tag}><geometry><mesh filename="{filename}"{scale}/></geometry></{tag}>')


@pytest.mark.parametrize(
    "uri",
    [
        "package://my robot/meshes/box.stl",
        "package://my%20robot/meshes/box.stl",
        "../meshes/box.stl",
        "model://my robot/meshes/box.stl",
    ],
)
def test_meshes_are_found_from_the_file_upward(tmp_path, uri):
    path = package(tmp_path) / "urdf" / "bot.urdf"
    path.write_text(robot(mesh_link(uri, scale=' scale="1 1 -2"')))
    builder, _ = load(path, scale=0.5)
    assert builder.shape_type == [GeoType.MESH] and builder.shape_scale == [(0.5, 0.5, -1.0)]
    assert builder.shape_source[0].path == (tmp_path / "ws" / "my robot" / "meshes" / "box.stl").resolve()


def test_meshes_are_found_by_every_other_way(tmp_path, monkeypatch):
    folder = package(tmp_path)
    text = robot(mesh_link("package://my robot/meshes/box.stl"))
    for package_dirs in (folder.parent, [str(folder)], (Path("nowhere"), folder.parent)):
        assert load(text, package_dirs=package_dirs)[0].shape_count == 1
    assert load(robot(mesh_link("meshes/box.stl")), package_dirs=[folder])[0].shape_count == 1
    for path in (folder / "meshes" / "box.stl", (folder / "meshes" / "box.stl").as_uri()):
        assert load(robot(mesh_link(path)), package_dirs=folder.parent)[0].shape_count == 1
    with pytest.raises(ValueError, match="package_dirs"):
        load(text)
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere{os.pathsep}{folder.parent}")
    assert load(text)[0].shape_count == 1


def test_robots_are_found_by_path_uri_and_text(tmp_path):
    folder = package(tmp_path)
    text = robot(link("a"))
    path = folder / "urdf" / "bot.urdf"
    path.write_text(f'<?xml version="1.0" encoding="latin-1"?><!-- \xe9 -->{text}', encoding="latin-1")
    declared = f'<?xml version="1.0" encoding="latin-1"?><!-- \xe9 -->{text}'
    sources = [path, str(path), path.as_uri(), text, f"\ufeff\n  {text}", text.encode(), path.read_bytes(), declared]
    for source in sources:
        assert load(source)[1].links == {"a": 0}
    assert load("package://my robot/urdf/bot.urdf", package_dirs=[folder.parent])[1].links == {"a": 0}


def test_missing_visual_meshes_are_warned_of_once_and_counted():
    visual = '<visual><geometry><mesh filename="{}.stl"/></geometry></visual>'
    text = robot(link("a", "".join(visual.format(f"nowhere_{n}") for n in range(7))))
    with pytest.warns(UrdfWarning) as caught:
        builder, report = load(text)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert re.search(r"\(7\): nowhere_0\.stl, .*\b2\b", str(caught[0].message))
    assert builder.shape_count == 0 and len(next(iter(report.remarks.values()))) == 7


def test_collisions_are_drawn_where_the_visuals_are_missing():
    shape = '<collision><geometry><sphere radius="1"/></geometry></collision>'
    text = robot(link("a", shape + '<visual><geometry><mesh filename="nowhere.stl"/></geometry></visual>'))
    with pytest.warns(UrdfWarning):
        builder, _ = load(text)
    assert builder.shape_flags[0] & ShapeFlags.VISIBLE


def test_impossible_inertias_are_repaired_and_named():
    bad = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="3" ixy="0" ixz="0" iyz="0"/></inertial>'
    with pytest.warns(UrdfWarning, match=r"inertia.*\(1\): b \("):
        builder, _ = load(robot(link("a"), link("b", bad), joint("j", "fixed", "a", "b")))
    assert inertia.check(1.0, builder.body_inertia[1]) is None
    # After merging with a heavy link the inertia is possible.
    heavy = INERTIAL.replace('value="1"', 'value="9"').replace("0.1", "9")
    _, report = load(robot(link("a", heavy), link("b", bad), joint("j", "fixed", "a", "b")), collapse_fixed_joints=True)
    assert not report.remarks


def test_links_without_mass_have_none_unless_asked():
    shape = '<collision><geometry><box size="1 1 1"/></geometry></collision>'
    text = robot(link("a", shape), link("b", INERTIAL + shape), joint("j", "fixed", "a", "b"))
    assert load(text)[0].body_mass == [0.0, 1.0]
    assert load(text, massless_link_density=500.0)[0].body_mass == [500.0, 1.0]
    builder = ModelBuilder()
    builder.default_shape_cfg.density = 2.0
    builder.add_urdf(text, ignore_inertial_definitions=True)
    assert builder.body_mass == [2.0, 2.0] and np.allclose(builder.body_inertia[1], np.eye(3) / 3.0)


def test_joints_that_move_nothing_are_remarked():
    text = robot(
        link("a"), link("b", ""), link("c", ""), joint("j", "continuous", "a", "b"), joint("k", "fixed", "b", "c")
    )
    with pytest.warns(UrdfWarning, match=r"mass.*\(1\): j$"):
        load(text)


def arm():
    """Fixed joints at the root, in the middle and at the tip, all with turned frames."""
    shape = '<collision><origin xyz="0.1 0 0" rpy="0.3 0 0"/><geometry><box size="1 2 3"/></geometry></collision>'
    body = (
        '<inertial><origin xyz="0.1 0.2 {0}" rpy="0.1 {0} 0"/><mass value="{0}"/>'
        '<inertia ixx="0.3" iyy="0.4" izz="0.5" ixy="0.01" ixz="0.02" iyz="-0.03"/></inertial>'
    )
    names = "abcdef"
    place = '<origin xyz="0.{0} -0.2 0.3" rpy="0.{0} 0.5 -0.7"/><axis xyz="0.6 0 0.8"/>' + LIMIT
    kinds = ["fixed", "revolute", "fixed", "prismatic", "fixed"]
    joints = [joint(f"j{n}", kind, names[n], names[n + 1], place.format(n + 1)) for n, kind in enumerate(kinds)]
    return robot(*(link(name, body.format(n + 1) + shape) for n, name in enumerate(names)), *joints)


def test_collapsing_keeps_frames_shapes_and_the_whole_dynamics(rng):
    q = rng.uniform(-1, 2, 2)
    whole, report = load(arm())
    small, collapsed = load(arm(), collapse_fixed_joints=True)
    assert whole.body_count == 6 and small.body_count == 3 and list(collapsed.joints) == ["j1", "j3"]
    assert list(collapsed.links.values()) == [0, 0, 1, 1, 2, 2]
    poses_whole, poses_small = poses(whole, q), poses(small, q)
    for name in report.links:
        body, frame = collapsed.frames[name]
        assert np.allclose(poses_small[body] @ pose_matrix(frame), poses_whole[report.links[name]], atol=1e-13)
        (a,), (b,) = report.shapes[name], collapsed.shapes[name]
        place_a = poses_whole[whole.shape_body[a]] @ pose_matrix(np.array(whole.shape_transform[a]))
        place_b = poses_small[small.shape_body[b]] @ pose_matrix(np.array(small.shape_transform[b]))
        assert np.allclose(place_a, place_b, atol=1e-13)
    free = {"floating": True, "hide_visuals": True}
    masses = []
    for options in ({}, {"collapse_fixed_joints": True}):
        builder, _ = load(arm(), **free, **options)
        tree = Tree.from_model(builder.finalize(device="cpu", dtype=wp.float64))
        state = np.concatenate([[0, 0, 0, 0, 0, 0, 1], q])
        masses.append(mass_matrix(tree, state))
    # Rows of the base are about its centre of mass, which moves with collapsing; those of the joints stay.
    assert masses[0].shape == masses[1].shape == (8, 8)
    assert np.allclose(masses[0][6:, 6:], masses[1][6:, 6:], atol=1e-11)
    assert masses[0][0, 0] == pytest.approx(21.0) and masses[1][0, 0] == pytest.approx(21.0)
    assert small.body_mass == [3.0, 7.0, 11.0]


def test_the_root_is_fixed_freed_or_held_by_any_joint(rng):
    pose = transform(rng.normal(size=3), quat_from_rpy(rng.uniform(-1, 1, 3)))
    builder, report = load(two_links("continuous"), xform=pose)
    assert builder.joint_type[report.base_joint] == JointType.FIXED
    assert np.allclose(poses(builder, [0.0])[0], pose_matrix(pose))

    builder, report = load(two_links("continuous"), xform=pose, floating=True)
    assert builder.joint_type[report.base_joint] == JointType.FREE
    # The coordinates of a freed root are its pose in the world.
    assert np.allclose(builder.joint_q[:7], pose)
    assert np.allclose(poses(builder, builder.joint_q)[0], pose_matrix(pose))

    slide = {"joint_type": JointType.D6, "linear_axes": [JointDofConfig(axis=(1, 0, 0))], "label": "rail"}
    builder, report = load(two_links("continuous"), xform=pose, base_joint=slide)
    assert builder.joint_label[report.base_joint] == "rail"
    moved = pose_matrix(pose)
    moved[0, 3] += 0.7
    # The rail runs along the world's x, however the robot is turned.
    assert np.allclose(poses(builder, [0.7, 0.0])[0], moved)


def test_a_robot_is_mounted_on_another(rng):
    pose = transform(rng.normal(size=3), quat_from_rpy(rng.uniform(-1, 1, 3)))
    builder, first = load(two_links("continuous"), xform=((1, 0, 0), (0, 0, 0, 1)))
    hand = builder.add_urdf(
        two_links("continuous").replace('"bot"', '"hand"'), parent_body=first.links["b"], xform=pose
    )
    assert builder.articulation_count == 1 and hand.articulation == first.articulation == 0
    assert list(builder.joint_articulation) == [0] * 4
    q = rng.uniform(-3, 3, 2)
    placed = poses(builder, q)
    assert np.allclose(placed[hand.links["a"]], placed[first.links["b"]] @ pose_matrix(pose), atol=1e-13)
    assert builder.body_q[hand.links["a"]] == pytest.approx(
        transform_multiply(builder.body_q[first.links["b"]], pose).tolist()
    )


def test_y_up_files_and_y_up_scenes(rng):
    builder = ModelBuilder(up_axis="y")
    text = two_links("continuous", '<origin xyz="0 0 1"/>')
    report = builder.add_urdf(text)
    assert builder.body_q[report.links["b"]][:3] == pytest.approx((0, 1, 0), abs=1e-15)
    builder = ModelBuilder()
    report = builder.add_urdf(two_links("continuous", '<origin xyz="0 1 0"/>'), up_axis="y")
    assert builder.body_q[report.links["b"]][:3] == pytest.approx((0, 0, 1), abs=1e-15)


def test_scale_multiplies_lengths_only(rng):
    q, scale = rng.uniform(-1, 2, 2), 2.5
    (one, _), (big, _) = load(arm()), load(arm(), scale=scale)
    for a, b in zip(poses(one, q), poses(big, q * [1, scale]), strict=True):
        assert np.allclose(a[:3, :3], b[:3, :3]) and np.allclose(scale * a[:3, 3], b[:3, 3])
    assert one.body_mass == big.body_mass
    assert np.allclose(np.array(big.body_com), scale * np.array(one.body_com))
    assert np.allclose(np.array(big.body_inertia), scale**2 * np.array(one.body_inertia))
    assert (
        big.joint_limit_upper == [2, 5] and big.joint_velocity_limit == [4, 10] and big.joint_effort_limit == [30, 30]
    )
    assert np.allclose(big.shape_scale, scale * np.array(one.shape_scale))


def test_order_of_joints():
    text = robot(
        *(link(name) for name in "abcde"),
        joint("b_e", "fixed", "b", "e"),
        joint("a_b", "fixed", "a", "b"),
        joint("a_c", "fixed", "a", "c"),
        joint("b_d", "fixed", "b", "d"),
    )
    assert list(load(text)[1].joints) == ["a_b", "b_e", "b_d", "a_c"]
    assert list(load(text, joint_ordering="bfs")[1].joints) == ["a_b", "a_c", "b_e", "b_d"]
    with pytest.raises(ValueError, match=r"'b_e'.*'b'.*joint_ordering='dfs'"):
        load(text, joint_ordering=None)
    in_order = robot(*(link(n) for n in "abc"), joint("x", "fixed", "a", "c"), joint("y", "fixed", "c", "b"))
    assert list(load(in_order, joint_ordering=None)[1].joints) == ["x", "y"]


def colliding_chain():
    """a - b = c - d, where = is fixed, with one shape each; e is a visual on d."""
    shape = '<collision><geometry><sphere radius="1"/></geometry></collision>'
    extra = '<visual><geometry><sphere radius="1"/></geometry></visual>'
    return robot(
        *(link(name, shape + (extra if name == "d" else "")) for name in "abcd"),
        joint("ab", "continuous", "a", "b"),
        joint("bc", "fixed", "b", "c"),
        joint("cd", "continuous", "c", "d"),
    )


@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
@pytest.mark.parametrize("collapse", [False, True])
def test_links_collide_with_each_other_only_on_request_and_never_with_their_neighbours(collapse):
    builder, report = load(colliding_chain(), collapse_fixed_joints=collapse)
    shapes = [report.shapes[name][0] for name in "abcd"]
    pairs = {(x, y) for n, x in enumerate(shapes) for y in shapes[n + 1 :]}
    assert pairs <= set(builder.shape_collision_filter_pairs)
    builder, report = load(colliding_chain(), collapse_fixed_joints=collapse, enable_self_collisions=True)
    a, _, _, d = (report.shapes[name][0] for name in "abcd")
    assert pairs - set(builder.shape_collision_filter_pairs) == {(a, d)}


def test_robots_of_one_scene_still_touch_each_other():
    builder = ModelBuilder()
    reports = []
    for _ in range(2):
        with pytest.warns(UrdfWarning):
            reports.append(builder.add_urdf(colliding_chain()))
    first, second = ({shape for shapes in report.shapes.values() for shape in shapes} for report in reports)
    assert not any((x in first) != (y in first) for x, y in builder.shape_collision_filter_pairs)
    assert first.isdisjoint(second)
