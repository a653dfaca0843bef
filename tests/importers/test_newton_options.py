"""Options of Newton's importers: taken where they have a meaning here, else refused by name."""

import inspect

import numpy as np
import pytest
from pxr import Usd

from newton_like import ModelBuilder, ShapeFlags
from newton_like.importers.newton_options import MJCF, URDF, USD
from newton_like.importers.xml_source import ImportFileError

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
