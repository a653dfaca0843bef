"""Options of Newton's importers: taken where they have a meaning here, else refused by name."""

import inspect

import numpy as np
import pytest
from pxr import Usd

from newton_like import Axis, GeoType, JointTargetMode, JointType, ModelBuilder, ShapeFlags, eval_fk
from newton_like.geometry.transforms import quat_between, quat_inverse, transform, transform_inverse, transform_multiply
from newton_like.importers.mjcf import MjcfWarning
from newton_like.importers.newton_options import MJCF, URDF, USD
from newton_like.importers.xml_source import ImportFileError
from tests.support.random_trees import random_transform

ROBOT = """<mujoco model="m"><asset><mesh name="mesh" file="{mesh}"/></asset><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="arm"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><joint name="a"/><geom name="ball" size="0.1"/>
<geom name="look" type="mesh" mesh="mesh" contype="0" conaffinity="0"/><site name="mark"/>
<body name="tip"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><joint name="b"/><geom name="end" size="0.1"/></body>
</body></worldbody></mujoco>"""
OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"

STAGE = """#usda 1.0
(metersPerUnit = 1
upAxis = "Z")
def Xform "arm" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {
float physics:mass = 1
float3 physics:diagonalInertia = (1, 1, 1)
def Sphere "solid" (prepend apiSchemas = ["PhysicsCollisionAPI"]) { double radius = 0.1
}
def Sphere "look" { double radius = 0.2
}
def Sphere "mark" (prepend apiSchemas = ["NewtonSiteAPI"]) { double radius = 0.01
}
}
def PhysicsRevoluteJoint "a" (prepend apiSchemas = ["PhysicsDriveAPI:angular"]) { rel physics:body1 = </arm>
float drive:angular:physics:stiffness = 10
float drive:angular:physics:damping = 2
}
"""


def add_mjcf(folder, **options):
    (folder / "m.obj").write_text(OBJ)
    (folder / "robot.xml").write_text(ROBOT.format(mesh="m.obj"))
    builder = ModelBuilder()
    return builder, builder.add_mjcf(folder / "robot.xml", **options)


def add_usd(**options):
    stage = Usd.Stage.CreateInMemory()
    stage.GetRootLayer().ImportFromString(STAGE)
    builder = ModelBuilder()
    return builder, builder.add_usd(stage, **options)


def test_parts_of_an_mjcf_are_left_out(tmp_path):
    shapes = {"floor", "ball", "look", "end"}
    for options, left_out in (
        ({}, set()),
        ({"parse_visuals": False}, {"look"}),
        ({"parse_meshes": False}, {"look"}),
        ({"ignore_names": ["flo", "en"]}, {"floor", "end"}),
        ({"ignore_names": "tip"}, {"end"}),
    ):
        _, made = add_mjcf(tmp_path, **options)
        assert set(made.shapes) == shapes - left_out, options
        assert set(made.sites) == {"mark"}
        assert ("tip" in made.links) == (options.get("ignore_names") != "tip")
    assert not add_mjcf(tmp_path, parse_sites=False)[1].sites
    with pytest.raises(ValueError, match="ignore_names"):
        add_mjcf(tmp_path, ignore_names=["("])


def test_a_function_finds_the_files_of_an_mjcf(tmp_path):
    elsewhere, asked = tmp_path / "elsewhere", []
    elsewhere.mkdir()
    (elsewhere / "m.obj").write_text(OBJ)
    (tmp_path / "robot").mkdir()
    (tmp_path / "robot" / "robot.xml").write_text(ROBOT.format(mesh="far/m.obj"))

    def resolver(folder, name):
        asked.append((folder, name))
        return str(elsewhere / name.rpartition("/")[2])

    builder = ModelBuilder()
    made = builder.add_mjcf(tmp_path / "robot" / "robot.xml", path_resolver=resolver)
    np.testing.assert_array_equal(np.ptp(builder.shape_source[made.shapes["look"]].vertices, axis=0), np.ones(3))
    assert set(asked) == {(str(tmp_path / "robot"), "far/m.obj")}
    # a mesh that collides has to be there
    (tmp_path / "robot" / "robot.xml").write_text(
        ROBOT.format(mesh="far/m.obj").replace(' contype="0" conaffinity="0"', "")
    )
    for wrong in (
        lambda folder, name: "m.obj",
        lambda folder, name: None,
        lambda folder, name: str(tmp_path / "none.obj"),
    ):
        with pytest.raises(ImportFileError, match=r"path_resolver.*far/m\.obj"):
            ModelBuilder().add_mjcf(tmp_path / "robot" / "robot.xml", path_resolver=wrong)


def test_parts_of_a_stage_are_left_out_and_gains_scaled():
    for options, shapes in (({}, 3), ({"load_visual_shapes": False}, 2), ({"load_sites": False}, 2)):
        builder, _ = add_usd(**options)
        assert builder.shape_count == shapes
        sites = [flags for flags in builder.shape_flags if flags & ShapeFlags.SITE]
        assert len(sites) == ("load_sites" not in options)
    plain, scaled = add_usd()[0], add_usd(joint_drive_gains_scaling=3.0)[0]
    for name in ("joint_target_ke", "joint_target_kd"):
        np.testing.assert_allclose(getattr(scaled, name), 3.0 * np.array(getattr(plain, name)))
        assert getattr(plain, name)[0] > 0.0


def test_verbose_tells_what_was_added(tmp_path, capsys):
    add_mjcf(tmp_path, verbose=True)
    told = capsys.readouterr().out
    assert all(part in told for part in ("robot.xml", "2 bodies", "2 joints", "5 shapes"))
    add_usd(verbose=True)
    told = capsys.readouterr().out
    assert all(part in told for part in ("1 bodies", "1 joints", "3 shapes"))


@pytest.mark.parametrize(("method", "table"), [("add_urdf", URDF), ("add_mjcf", MJCF), ("add_usd", USD)])
def test_other_options_of_newton_are_refused_by_name(method, table, tmp_path):
    """Options of Newton are accepted at the value without effect, which scripts may pass."""
    add = getattr(ModelBuilder(), method)
    for name, (neutral, _) in table.items():
        other = "other" if not isinstance(neutral, bool) else not neutral
        with pytest.raises(ValueError, match=name):
            add("nowhere", **{name: other})
        with pytest.raises((FileNotFoundError, ImportFileError)):
            add(str(tmp_path / "nowhere.xml"), **{name: list(neutral) if isinstance(neutral, tuple) else neutral})
        with pytest.raises(ValueError, match=name):
            add("nowhere", **{name: np.array([1.0, 2.0])})
    assert not table.keys() & inspect.signature(add).parameters.keys()
    with pytest.raises(TypeError, match=r"'xfrom'.*'xform'"):
        add("nowhere", xfrom=1)
    for options in ({"xfrom": 1, "lable": 2}, {"lable": 2, "xfrom": 1}):
        with pytest.raises(TypeError, match=repr(next(iter(options)))):
            add("nowhere", **options)


SWITCHED_OFF = """#usda 1.0
(metersPerUnit = 1
upAxis = "Z")
def Xform "base" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) { float physics:mass = 1
float3 physics:diagonalInertia = (1, 1, 1)
}
def Xform "tip" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) { float physics:mass = 1
float3 physics:diagonalInertia = (1, 1, 1)
}
def Xform "still" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) { bool physics:rigidBodyEnabled = 0
float physics:mass = 1
float3 physics:diagonalInertia = (1, 1, 1)
}
def PhysicsRevoluteJoint "held" { rel physics:body0 = </base>
rel physics:body1 = </tip>
}
def PhysicsRevoluteJoint "loose" { rel physics:body0 = </base>
rel physics:body1 = </tip>
bool physics:jointEnabled = 0
}
"""


def test_disabled_joints_and_bodies_are_left_out_or_kept():
    def read(**options):
        stage = Usd.Stage.CreateInMemory()
        stage.GetRootLayer().ImportFromString(SWITCHED_OFF)
        builder = ModelBuilder()
        return builder, builder.add_usd(stage, **options)

    for options, joints, bodies in (
        ({}, {"/held", "/loose"}, {"/base", "/tip"}),
        (
            {"only_load_enabled_joints": False, "only_load_enabled_rigid_bodies": True},
            {"/held", "/loose"},
            {"/base", "/tip"},
        ),
        ({"only_load_enabled_joints": True}, {"/held"}, {"/base", "/tip"}),
        ({"only_load_enabled_rigid_bodies": False}, {"/held", "/loose"}, {"/base", "/tip", "/still"}),
    ):
        builder, made = read(**options)
        assert set(made.joints) == joints
        assert set(made.bodies) == bodies
        for path in {"/loose"} & joints:
            assert not builder.joint_enabled[made.joints[path]]
        if "/still" in bodies:
            assert builder.body_mass[made.bodies["/still"]] == 1.0
    with pytest.raises(TypeError, match="only_load_enabled_joints"):
        read(only_load_enabled_joints="yes")


def test_reports_of_stages_answer_the_names_of_newton():
    _, made = add_usd()
    assert made["path_body_map"] == made["bodies"] == made.bodies
    assert made["path_joint_map"] == made.joints
    assert made["path_shape_map"] == {path: shapes[0] for path, shapes in made.shapes.items()}
    assert (made["linear_unit"], made["mass_unit"], made["up_axis"]) == (1.0, 1.0, made.up_axis)
    assert "path_body_map" in made and "bodies" in made and "path_cloth_map" not in made
    with pytest.raises(KeyError, match=r"path_cloth_map.*path_body_map.*path_shape_map"):
        _ = made["path_cloth_map"]
    assert add_usd(ignore_paths=None)[1].bodies == made.bodies


def test_damping_of_a_urdf_is_passive_or_that_of_drives(rng):
    damping = rng.uniform(0.1, 1.0, 2)
    text = (
        '<robot name="r"><link name="base"/>'
        + "".join(
            f'<link name="{n}"/><joint name="{n}" type="{kind}"><parent link="base"/><child link="{n}"/><axis xyz="0 0 1"/>'
            f'<dynamics damping="{d!r}"/></joint>'
            for n, kind, d in zip("ab", ("continuous", "planar"), damping.tolist(), strict=True)
        )
        + "</robot>"
    )
    kept, made = {}, {}
    for mode in ("passive", "drive"):
        builder = ModelBuilder()
        builder.default_joint_cfg.damping, builder.default_joint_cfg.target_kd = 3.0, 5.0
        with pytest.warns(UserWarning, match="mass"):
            builder.add_urdf(text, joint_damping_mode=mode)
        kept[mode], made[mode] = builder.joint_damping, builder.joint_target_kd
    expected = [damping[0], *[damping[1]] * 3]
    np.testing.assert_allclose(kept["passive"], expected)
    np.testing.assert_allclose(made["drive"], expected)
    assert set(kept["drive"]) == {3.0}
    assert set(made["passive"]) == {5.0}
    with pytest.raises(ValueError, match="joint_damping_mode='active'"):
        ModelBuilder().add_urdf(text, joint_damping_mode="active")


URDF_ROBOT = """<robot name="r"><link name="base"/><link name="plate"/><link name="trunk"><inertial><mass value="2"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<link name="leg"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<link name="foot"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="b" type="fixed"><parent link="base"/><child link="plate"/><origin xyz="0 0 {a}"/></joint>
<joint name="p" type="fixed"><parent link="plate"/><child link="trunk"/><origin xyz="{b} 0 0" rpy="0 0 1"/></joint>
<joint name="hip" type="continuous"><parent link="trunk"/><child link="leg"/><axis xyz="0 0 1"/></joint>
<joint name="f" type="fixed"><parent link="leg"/><child link="foot"/></joint></robot>"""


def test_a_free_root_without_mass_takes_what_is_fixed_to_it(rng):
    """The fixed joint behind links with mass stays."""
    a, b = rng.uniform(0.1, 1.0, 2)
    for floating, joints in ((True, {"hip", "f"}), (False, {"b", "p", "hip", "f"})):
        builder = ModelBuilder()
        made = builder.add_urdf(
            URDF_ROBOT.format(a=a, b=b), floating=floating, up_axis="y", collapse_massless_fixed_root=True
        )
        assert set(made.joints) == joints
        assert (made.links["trunk"] == made.links["base"] == made.links["plate"]) == floating
        if floating:
            assert builder.body_mass[made.links["base"]] == 2.0
            np.testing.assert_allclose(made.frames["trunk"][1][:3], (b, 0.0, a))
            builder.finalize("cpu")
    base = {"joint_type": JointType.FREE}
    assert ModelBuilder().add_urdf(
        URDF_ROBOT.format(a=a, b=b), base_joint=base, collapse_massless_fixed_root=True
    ).joints.keys() == {"hip", "f"}
    heavy = URDF_ROBOT.format(a=a, b=b).replace(
        '<link name="base"/>', '<link name="base"><inertial><mass value="1"/></inertial></link>'
    )
    with pytest.warns(UserWarning, match="point"):
        assert len(ModelBuilder().add_urdf(heavy, floating=True, collapse_massless_fixed_root=True).joints) == 4


ROOTS = """<mujoco><worldbody><geom name="rock" size="0.1" pos="1 2 3"/>
<body name="base" pos="{0} {1} {2}" euler="0 0 30"><freejoint/>
<body name="plate" pos="0 0 {3}"><body name="trunk" pos="{4} 0 0"><geom name="g" size="0.1" density="500"/>
<body name="leg" pos="0 0 -1"><joint armature="0.5"/><geom size="0.1" class="soft"/><body name="foot"><geom size="0.1"/></body></body>
</body></body></body>{more}</worldbody><default><default class="soft"/><default class="hard"/></default>{keys}</mujoco>"""


def test_bodies_fixed_to_a_free_body_without_mass_are_merged_into_it(rng):
    text = ROOTS.format(*rng.uniform(0.1, 1.0, 5), more="", keys="")
    builder = ModelBuilder()
    made = builder.add_mjcf(text, collapse_massless_fixed_root=True)
    assert made.links["base"] == made.links["plate"] == made.links["trunk"]
    assert len({made.links[name] for name in ("base", "leg", "foot")}) == 3
    whole = ModelBuilder()
    kept = whole.add_mjcf(text)
    assert len(set(kept.links.values())) == 6
    for name in ("leg", "foot"):
        np.testing.assert_allclose(builder.body_q[made.links[name]], whole.body_q[kept.links[name]], atol=1e-12)
    fixed = ModelBuilder()
    assert len(set(fixed.add_mjcf(text, floating=False, collapse_massless_fixed_root=True).links.values())) == 6
    builder.finalize("cpu")


def test_roots_of_an_mjcf_are_at_the_given_pose(rng):
    """What a root carries moves with it; the geoms of the world do not."""
    key = '<keyframe><key name="k" qpos="9 9 9 1 0 0 0 0.3"/></keyframe>'
    text = ROOTS.format(*rng.uniform(0.1, 1.0, 5), more="", keys=key)
    pose = random_transform(rng)
    for options in ({}, {"keyframe": "k"}, {"floating": False}):
        builder, plain = ModelBuilder(up_axis="y"), ModelBuilder(up_axis="y")
        made = builder.add_mjcf(text, xform=pose, override_root_xform=True, up_axis="z", **options)
        other = plain.add_mjcf(text, xform=pose, up_axis="z", **options)
        turn = transform(q=quat_between((0, 0, 1), (0, 1, 0)))
        model = builder.finalize("cpu")
        state = model.state()
        eval_fk(model, state.joint_q, state.joint_qd, state)
        wanted = transform_multiply(pose, turn)
        np.testing.assert_allclose(np.abs(state.body_q.numpy()[made.links["base"]]), np.abs(wanted), atol=1e-6)
        for report, of in ((made, builder), (other, plain)):
            place = transform_multiply(wanted, transform((1.0, 2.0, 3.0)))
            np.testing.assert_allclose(of.shape_transform[report.shapes["rock"]], place, atol=1e-6)
        relative = [
            transform_multiply(transform_inverse(of.body_q[report.links["base"]]), of.body_q[report.links["foot"]])
            for report, of in ((made, builder), (other, plain))
        ]
        np.testing.assert_allclose(*relative, atol=1e-6)
    with pytest.raises(ValueError, match=r"override_root_xform=True.*xform"):
        ModelBuilder().add_mjcf(text, override_root_xform=True)


def test_the_pose_of_the_root_turns_the_axes_of_the_base_joint(rng):
    """Only where the pose replaces that of the root."""
    pose, base = random_transform(rng), {"joint_type": JointType.D6, "linear_axes": ["x"]}
    for replaced in (False, True):
        builder = ModelBuilder()
        builder.add_urdf(URDF_ROBOT.format(a=1, b=1), xform=pose, base_joint=base, override_root_xform=replaced)
        anchor = pose if replaced else transform(pose[:3])
        np.testing.assert_allclose(builder.joint_X_p[0], anchor, atol=1e-12)
        back = transform() if replaced else transform(q=quat_inverse(pose[3:]))
        np.testing.assert_allclose(builder.joint_X_c[0], back, atol=1e-12)


def test_armatures_and_classes_of_an_mjcf():
    text = ROOTS.format(*range(5), more='<body name="hand" childclass="hard"><geom name="h" size="1"/></body>', keys="")
    builder = ModelBuilder()
    made = builder.add_mjcf(text, armature_scale=3.0)
    assert builder.joint_armature[6] == 1.5
    other = builder.add_mjcf(text.replace(' armature="0.5"', ""), armature_scale=3.0, ignore_classes="har")
    assert set(made.links) - set(other.links) == {"hand"}
    soft = ModelBuilder().add_mjcf(text, ignore_classes=["so.t"])
    assert len(made.shapes) - len(soft.shapes) == 1
    builder = ModelBuilder()
    builder.default_joint_cfg.armature = 0.25
    builder.add_mjcf(text.replace(' armature="0.5"', ""), armature_scale=3.0)
    assert builder.joint_armature[6] == 0.75
    for wrong in (-1.0, "much"):
        with pytest.raises((TypeError, ValueError), match="armature_scale"):
            ModelBuilder().add_mjcf(text, armature_scale=wrong)


ARTICULATED = """#usda 1.0
(metersPerUnit = 0.01
upAxis = "Y")
def Sphere "rock" (prepend apiSchemas = ["PhysicsCollisionAPI"]) { double3 xformOp:translate = (1, 2, 3)
uniform token[] xformOpOrder = ["xformOp:translate"]
}
def Sphere "look" {}
def Xform "loose" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) { double3 xformOp:translate = (100, 0, 0)
uniform token[] xformOpOrder = ["xformOp:translate"]
def Mesh "solid" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"]) {
int[] faceVertexCounts = [3, 3, 3, 3]
int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]
point3f[] points = [(0, 0, 0), (10, 0, 0), (0, 10, 0), (0, 0, 10)]
uniform token physics:approximation = "boundingCube"
}
}
def Xform "robot" (prepend apiSchemas = ["PhysicsArticulationRootAPI"]) { double3 xformOp:translate = (100, 200, 300)
float xformOp:rotateY = 40
uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateY"]
def Xform "arm" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) { double3 xformOp:translate = (50, 0, 0)
uniform token[] xformOpOrder = ["xformOp:translate"]
def Sphere "solid" (prepend apiSchemas = ["PhysicsCollisionAPI"]) { double radius = 1
}
def Sphere "look" { double radius = 2
}
}
def Xform "tip" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) { double3 xformOp:translate = (50, 100, 0)
uniform token[] xformOpOrder = ["xformOp:translate"]
def Sphere "solid" (prepend apiSchemas = ["PhysicsCollisionAPI"]) { double radius = 1
}
}
def PhysicsRevoluteJoint "a" (prepend apiSchemas = ["PhysicsDriveAPI:angular"]) { rel physics:body0 = </robot/arm>
rel physics:body1 = </robot/tip>
point3f physics:localPos0 = (0, 100, 0)
float drive:angular:physics:stiffness = 10
float drive:angular:physics:damping = 2
}
}
"""
HELD = ARTICULATED.replace(
    'def PhysicsRevoluteJoint "a"',
    """def PhysicsFixedJoint "held" { rel physics:body1 = </robot/arm>
point3f physics:localPos0 = (138.30222, 200, 267.86062)
quatf physics:localRot0 = (0.9396926, 0, 0.3420201, 0)
}
def PhysicsRevoluteJoint "a\"""",
)


def stage_of(text: str):
    stage = Usd.Stage.CreateInMemory()
    stage.GetRootLayer().ImportFromString(text)
    return stage


@pytest.mark.parametrize("text", [ARTICULATED, HELD], ids=["free", "held"])
def test_articulations_of_a_stage_are_at_the_given_pose(text, rng):
    """Their bodies keep their poses in the root prim; other bodies and static shapes are where they are without this."""
    pose = random_transform(rng)
    builder, plain = ModelBuilder(), ModelBuilder()
    made = builder.add_usd(stage_of(text), xform=pose, override_root_xform=True)
    other = plain.add_usd(stage_of(text), xform=pose)
    model = builder.finalize("cpu")
    state = model.state()
    eval_fk(model, state.joint_q, state.joint_qd, state)
    upright = transform(q=quat_between((0, 1, 0), (0, 0, 1)))
    for name, place in (("/robot/arm", (0.5, 0.0, 0.0)), ("/robot/tip", (0.5, 1.0, 0.0))):
        wanted = transform_multiply(pose, transform_multiply(upright, transform(place)))
        for found in (builder.body_q[made.bodies[name]], state.body_q.numpy()[made.bodies[name]]):
            np.testing.assert_allclose(found[:3], wanted[:3], atol=1e-5)
            np.testing.assert_allclose(abs(np.dot(found[3:], wanted[3:])), 1.0, atol=1e-6)
    np.testing.assert_allclose(builder.body_q[made.bodies["/loose"]], plain.body_q[other.bodies["/loose"]])
    for path, shapes in made.shapes.items():
        for mine, theirs in zip(shapes, other.shapes[path], strict=True):
            np.testing.assert_allclose(builder.shape_transform[mine], plain.shape_transform[theirs], atol=1e-12)


def test_options_of_newton_for_shapes_and_drives_of_a_stage():
    def added(**options):
        builder = ModelBuilder()
        return builder, builder.add_usd(stage_of(ARTICULATED), **options)

    plain, usual = added()
    assert plain.shape_flags[usual.shapes["/robot/arm/solid"][0]] & ShapeFlags.VISIBLE
    for options in ({}, {"force_show_colliders": True}):
        builder, made = added(hide_collision_shapes=True, **options)
        hidden = {
            path for path, shapes in made.shapes.items() if not builder.shape_flags[shapes[0]] & ShapeFlags.VISIBLE
        }
        assert hidden == {"/robot/arm/solid"}
    builder, made = added(hide_collision_shapes=True, load_visual_shapes=False)
    assert all(flags & ShapeFlags.VISIBLE for flags in builder.shape_flags)
    builder, made = added(load_static_visual_shapes=False)
    assert {path for path, shapes in usual.shapes.items() if shapes and not made.shapes[path]} == {"/look"}
    solid = usual.shapes["/loose/solid"][0]
    assert plain.shape_type[solid] == GeoType.BOX
    builder, made = added(skip_mesh_approximation=True)
    assert builder.shape_type[made.shapes["/loose/solid"][0]] == GeoType.MESH
    for force, mode in ((False, JointTargetMode.POSITION), (True, JointTargetMode.POSITION_VELOCITY)):
        builder, made = added(force_position_velocity_actuation=force)
        assert builder.joint_target_mode[made.dofs["/robot/a"][0]] == mode
        builder = ModelBuilder()
        builder.add_urdf(URDF_ROBOT.format(a=1, b=1), force_position_velocity_actuation=force)
        assert builder.joint_target_mode == [mode]


def test_the_up_axis_of_a_stage_becomes_that_of_the_builder():
    builder = ModelBuilder()
    made = builder.add_usd(stage_of(ARTICULATED), apply_up_axis_from_stage=True)
    assert builder.up_axis == Axis.Y == made.up_axis
    np.testing.assert_allclose(builder.body_q[made.bodies["/loose"]], transform((1.0, 0.0, 0.0)))
    assert builder.finalize("cpu").gravity.numpy()[0].tolist() == pytest.approx([0.0, -9.81, 0.0])
    builder = ModelBuilder()
    with pytest.raises(ImportFileError):
        builder.add_usd(stage_of(ARTICULATED.replace("(100, 0, 0)", "(nan, 0, 0)")), apply_up_axis_from_stage=True)
    assert builder.up_axis == Axis.Z


REFERENCES = (
    '<tendon><fixed name="t1"><joint joint="ja" coef="1"/><joint joint="jb" coef="1"/></fixed>'
    '<fixed name="t2"><joint joint="jb" coef="2"/></fixed><spatial name="t3"><site site="sa"/><site site="sb"/></spatial></tendon>'
    '<equality><joint joint1="ja" joint2="jb"/><weld body1="a"/><connect site1="sb" site2="sa"/><joint joint1="jb"/></equality>'
    '<contact><exclude body1="a" body2="b"/><pair geom1="ga" geom2="gb"/></contact>'
    '<actuator><motor name="m1" joint="ja"/><motor name="m2" joint="jb"/><motor name="m3" tendon="t1"/><motor name="m4" tendon="t2"/>'
    '<motor name="m5" site="sa"/></actuator>'
    '<sensor><jointpos name="s1" joint="ja"/><jointpos name="s2" joint="jb"/><actuatorfrc actuator="m1"/>'
    '<framepos objtype="body" objname="deep"/><framepos objtype="body" objname="b" reftype="site" refname="sa"/></sensor>'
    '<keyframe><key name="k" qpos="1 2 3"/></keyframe>'
)
KEPT = (
    '<tendon><fixed name="t2"><joint joint="jb" coef="2"/></fixed></tendon><equality><joint joint1="jb"/></equality>'
    '<actuator><motor name="m2" joint="jb"/><motor name="m4" tendon="t2"/></actuator><sensor><jointpos name="s2" joint="jb"/></sensor>'
)


def test_what_refers_to_ignored_bodies_is_ignored_with_a_remark():
    """The model is that of the file without the body and all that names it."""

    def tree(with_a: bool, after: str) -> str:
        a = (
            '<body name="a" pos="0 0 1"><joint name="ja"/><geom name="ga" size=".1"/><site name="sa"/>'
            '<body name="deep"><joint name="jd"/><geom size=".1"/></body></body>'
        )
        b = '<body name="b"><joint name="jb"/><geom name="gb" size=".1"/><site name="sb"/></body>'
        return f"<mujoco><worldbody>{a * with_a}{b}</worldbody>{after}</mujoco>"

    builder, plain = ModelBuilder(), ModelBuilder()
    with pytest.warns(MjcfWarning, match=r"ignore_names.*\(14\)") as told:
        report = builder.add_mjcf(tree(True, REFERENCES), ignore_names=["a"])
    assert len(told) == 1
    expected = plain.add_mjcf(tree(False, KEPT))
    assert report.joints == expected.joints and report.sensors == expected.sensors and not report.keyframes
    for name in ("body_label", "joint_label", "shape_label", "joint_q", "joint_type"):
        assert getattr(builder, name) == getattr(plain, name)
    assert [t.label for t in builder.tendons] == [t.label for t in plain.tendons] and len(builder.tendons) == 1
    assert len(report.actuators) == len(expected.actuators) == 2
    (left,) = (names for text, names in report.remarks.items() if "ignore_names" in text)
    assert {"motor m1", "motor m3", "fixed t1", "spatial t3", "jointpos s1", "key k"} <= set(left)
