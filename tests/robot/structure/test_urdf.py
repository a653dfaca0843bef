"""Robots from URDF files: what is read, what is told, and what is wrong."""

import warnings

import numpy as np
import pytest

from newton_like import ModelBuilder, assets
from newton_like import robot as rd
from newton_like.importers.urdf import UrdfWarning
from newton_like.robot.structure.tree import survey

INERTIAL = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
MOBILE = '<mobile type="differential" xyz="1 2 3" rpy="0 0 0.5" joints="elbow shoulder" params="0.5 0.1"/>'


def file(*extra: str, arm: str = "", elbow: str = "", limit: str | None = None, kind: str = "revolute") -> str:
    """A robot base - shoulder - arm - elbow - hand."""
    limit = '<limit lower="-1" upper="2" velocity="3" effort="4" acceleration="5"/>' if limit is None else limit
    return (
        f'<robot name="robot"><link name="base">{INERTIAL}</link><link name="arm">{arm}</link><link name="hand"/>'
        '<joint name="shoulder" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>'
        '<limit velocity="9" effort="9"/></joint>'
        f'<joint name="elbow" type="{kind}"><parent link="arm"/><child link="hand"/>'
        f'<origin xyz="0.1 0.2 0.3" rpy="0 0 1"/>{elbow}{limit}</joint>{"".join(extra)}</robot>'
    )


def read(*arguments, base="base", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return rd.load_robot_from_urdf_data(file(*arguments, **options), base)


def joint_of(configuration, name):
    return next(joint for joint in survey(configuration.base_link)[1] if joint.name == name)


def test_links_joints_and_limits():
    configuration = read()
    links, joints = survey(configuration.base_link)
    assert configuration.name == "robot"
    assert [x.name for x in links] == ["base", "arm", "hand"] and [x.name for x in joints] == ["shoulder", "elbow"]
    assert [link.mass for link in links] == [2.0, 0.0, 0.0] and not links[1].inertia.any()
    elbow = joints[1]
    # the default axis of URDF
    assert np.array_equal(elbow.S, (1, 0, 0, 0, 0, 0))
    assert elbow.limit_q == (-1.0, 2.0) and elbow.limit_qdot == (-3.0, 3.0) and elbow.limit_torque == 4.0
    assert elbow.limit_qddot == (-5.0, 5.0)
    assert np.allclose(elbow.T_pj[:3, 3], (0.1, 0.2, 0.3)) and np.allclose(elbow.T_pj[:3, 0], (np.cos(1), np.sin(1), 0))
    free = rd.Joint.make_revolute("free")
    assert joints[0].limit_q == free.limit_q and joints[0].limit_qddot == free.limit_qddot
    assert configuration.mobile_base.type is rd.MobileBaseType.Unspecified and configuration.mobile_base.joints == []


def test_the_base_link_may_be_any_link():
    with pytest.warns(UrdfWarning, match="base"):
        configuration = rd.load_robot_from_urdf_data(file(), "arm")
    assert [link.name for link in survey(configuration.base_link)[0]] == ["arm", "hand"]
    assert configuration.base_link.parent_joint is None


def test_files_and_texts_are_the_same(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(file())
    names = [link.name for link in survey(read().base_link)[0]]
    for configuration in (
        rd.load_robot_from_urdf(path, "base"),
        rd.load_robot_from_urdf(str(path), "base"),
        rd.load_robot_from_urdf_data(file().encode(), "base"),
    ):
        assert [link.name for link in survey(configuration.base_link)[0]] == names


def capsule(attributes: str) -> str:
    return (
        '<collision name="shell"><origin xyz="1 2 3" rpy="0 0 0.5"/><geometry><capsule radius="0.1" length="0.4" '
        f"{attributes}/></geometry></collision>"
    )


def test_capsules():
    link = joint_of(read(arm=capsule('coltype="2" colaffinity="5"')), "shoulder").child_link
    (collision,) = link.collisions
    (geom,) = collision.geoms
    assert collision.name == "shell" and np.allclose(collision.origin[:3, 3], (1, 2, 3))
    assert np.allclose(collision.origin[:3, 0], (np.cos(0.5), np.sin(0.5), 0))
    assert (geom.coltype, geom.colaffinity, geom.radius) == (2, 5, 0.1)
    assert np.array_equal(geom.start_point, (0, 0, 0.2)) and np.array_equal(geom.end_point, (0, 0, -0.2))


def test_capsules_of_length_zero_are_spheres():
    text = file(arm=capsule('coltype="2" colaffinity="5"').replace('length="0.4"', 'length="0"'))
    link = joint_of(rd.load_robot_from_urdf_data(text, "base"), "shoulder").child_link
    (geom,) = link.collisions[0].geoms
    assert geom.radius == 0.1 and not geom.start_point.any() and not geom.end_point.any()


def test_capsules_of_radius_zero_are_lines_of_robots_only():
    text = file(arm=capsule('coltype="2" colaffinity="5"').replace('radius="0.1"', 'radius="0"'))
    link = joint_of(rd.load_robot_from_urdf_data(text, "base"), "shoulder").child_link
    (geom,) = link.collisions[0].geoms
    assert geom.radius == 0.0 and geom.start_point[2] == -geom.end_point[2] == 0.2
    builder = ModelBuilder()
    with pytest.warns(UrdfWarning, match=r"\barm\b"):
        report = builder.add_urdf(text)
    assert not report.shapes["arm"] and builder.shape_count == 0


def test_mobile_base():
    base = read(MOBILE).mobile_base
    assert isinstance(base, rd.MobileBaseDifferential) and base.type is rd.MobileBaseType.Differential
    assert base.joints == ["elbow", "shoulder"] and base.params == [0.5, 0.1]
    assert np.allclose(base.T[:3, 3], (1, 2, 3)) and np.allclose(base.T[:2, 0], (np.cos(0.5), np.sin(0.5)))


BOX = '<collision><geometry><box size="1 1 1"/></geometry></collision>'
MIMIC = '<mimic joint="shoulder"/>'


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (dict(arm=BOX), "arm"),
        (dict(arm=capsule('coltype="1"')), "arm"),
        (dict(elbow=MIMIC), "elbow"),
        (dict(elbow='<dynamics damping="1"/>'), "elbow"),
        (dict(elbow='<safety_controller k_velocity="1"/>'), "elbow"),
        (dict(elbow='<axis xyz="0 0 2"/>'), "elbow"),
        (dict(kind="floating"), "elbow"),
        (dict(kind="planar"), "elbow"),
        (dict(limit=""), "elbow"),
        (dict(limit='<limit lower="-1" upper="1" velocity="1" effort="1" acceleration="0"/>'), "elbow"),
        (dict(limit='<limit lower="-1" upper="1" velocity="1" effort="1" jerk="0"/>'), "limit@jerk"),
    ],
    ids=str,
)
def test_ambiguous_and_ignored_parts_are_told(options, named):
    with pytest.warns(UrdfWarning, match=named):
        rd.load_robot_from_urdf_data(file(**options), "base")


def test_unknown_parts_of_a_mobile_base_are_told():
    text = file(MOBILE.replace("<mobile ", '<mobile speed="1" ').replace("/>", "><mass/></mobile>"))
    with pytest.warns(UrdfWarning, match=r"mobile/mass.*mobile@speed"):
        rd.load_robot_from_urdf_data(text, "base")


@pytest.mark.parametrize("kind", ["floating", "planar"])
@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
def test_floating_and_planar_joints_become_fixed(kind):
    assert joint_of(rd.load_robot_from_urdf_data(file(kind=kind), "base"), "elbow").is_fixed()


@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
def test_missing_and_infinite_limits_are_unlimited():
    free = rd.Joint.make_revolute("free")
    for limit in ("", '<limit velocity="inf" lower="-inf" upper="inf" acceleration="inf"/>'):
        elbow = joint_of(rd.load_robot_from_urdf_data(file(limit=limit), "base"), "elbow")
        assert elbow.limit_q == free.limit_q and elbow.limit_qdot == free.limit_qdot
        assert elbow.limit_torque == free.limit_torque
        assert elbow.limit_qddot == (free.limit_q if limit else free.limit_qddot)


@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
def test_limits_of_zero_are_unlimited():
    """Many files have zeros where a limit is unknown. The SDK takes them as limits, so that such a joint could not move."""
    free = rd.Joint.make_revolute("free")
    text = file(kind="continuous", limit='<limit lower="0" upper="0" effort="0" velocity="0"/>')
    elbow = joint_of(rd.load_robot_from_urdf_data(text, "base"), "elbow")
    assert elbow.limit_q == free.limit_q and elbow.limit_qdot == free.limit_qdot
    assert elbow.limit_torque == free.limit_torque


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("hello", "XML"),
        ("", "XML"),
        ("<robot>", "XML"),
        ("<mujoco/>", "mujoco"),
        (file().replace('link="hand"', 'link="foot"'), "'foot'"),
        (file().replace('name="hand"', 'name="arm"'), "arm"),
        (file().replace('name="elbow"', 'name="shoulder"'), "shoulder"),
        (file().replace('<parent link="base"/>', '<parent link="hand"/>'), "cycle"),
        (file().replace("0.1 0.2 0.3", "0.1 x 0.3"), "'x'"),
        (file().replace('acceleration="5"', 'acceleration="-5"'), "acceleration"),
        (file(arm=capsule('coltype="-1" colaffinity="1"')), "'arm'"),
        (file(arm=capsule('coltype="1" colaffinity="4294967296"')), "colaffinity"),
        (file(MOBILE.replace("differential", "tracked")), "tracked"),
        (file(MOBILE.replace("elbow", "wheel")), "'wheel'"),
        (file(MOBILE.replace("elbow shoulder", "elbow")), "joints"),
        (file(MOBILE.replace("elbow shoulder", "elbow elbow")), "elbow"),
        (file(MOBILE.replace("0.5 0.1", "0.5")), "params"),
        (file(MOBILE.replace("0.5 0.1", "0.5 0")), "wheel_radius"),
        (file(MOBILE.replace('params="0.5 0.1"', "")), "params"),
        (file(MOBILE.replace("0 0 0.5", "1 0 0")), "mobile"),
        (file(MOBILE, MOBILE), "mobile"),
        (file().replace("<robot", '<!DOCTYPE robot SYSTEM "file:///etc/passwd"><robot'), "DOCTYPE"),
    ],
)
@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
def test_wrong_files(text, named):
    with pytest.raises(rd.RobotFileError, match=named) as raised:
        rd.load_robot_from_urdf_data(text, "base")
    assert isinstance(raised.value, RuntimeError) and isinstance(raised.value, ValueError)


def test_unknown_base_links_and_missing_files(tmp_path):
    with pytest.raises(rd.RobotFileError, match="'foot'"):
        rd.load_robot_from_urdf_data(file(), "foot")
    for missing in (tmp_path / "robot.urdf", tmp_path, file()):
        for kind in (RuntimeError, FileNotFoundError, rd.RobotFileError):
            with pytest.raises(kind, match="robot"):
                rd.load_robot_from_urdf(missing, "base")


@pytest.mark.parametrize(
    "call",
    [
        lambda: rd.load_robot_from_urdf(3, "base"),
        lambda: rd.load_robot_from_urdf_data(None, "base"),
        lambda: rd.load_robot_from_urdf_data(file(), None),
    ],
)
def test_other_types(call):
    with pytest.raises(TypeError):
        call()


@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
def test_a_file_of_the_project_has_the_inertias_of_the_importer():
    """The mass and the centre of mass of the quadruped's links are those of the model builder."""
    import newton_like as nl

    builder = nl.ModelBuilder()
    report = builder.add_urdf(assets.path("quadruped.urdf"))
    root = next(name for name, index in report.links.items() if index == min(report.links.values()))
    links, _ = survey(rd.load_robot_from_urdf(assets.path("quadruped.urdf"), root).base_link)
    assert {link.name for link in links} == report.links.keys()
    for link in links:
        body = report.links[link.name]
        mass, com, inertia = (
            builder.body_mass[body],
            np.array(builder.body_com[body]),
            np.array(builder.body_inertia[body]),
        )
        moved = inertia.reshape(3, 3) + mass * (com @ com * np.eye(3) - np.outer(com, com))
        assert np.isclose(link.mass, mass) and np.allclose(link.inertia[:3, :3], moved, atol=1e-9)
        assert mass == 0.0 or np.allclose(link.center_of_mass, com)
