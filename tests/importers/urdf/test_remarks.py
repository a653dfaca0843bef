"""Remarks of the URDF importer about parts that are left out: unused parts, unknown parts, and parts that other readers ignore."""

import numpy as np
import pytest

from newton_like.importers.urdf import UrdfWarning
from newton_like.importers.xml_source import ImportFileError, MissingFileError
from newton_like.model import ModelBuilder
from newton_like.solvers import SolverFeatherstone
from newton_like.types import GeoType
from tests.importers.urdf.test_importer import INERTIAL, LIMIT, joint, link, load, robot, two_links
from tests.support.remarks import remarked


def test_what_a_free_joint_cannot_have_is_remarked():
    with pytest.warns(UrdfWarning, match=r"<limit>.*\(1\).*j.*<dynamics>"):
        load(two_links("floating", LIMIT + '<dynamics damping="1"/>'))


def test_what_other_readers_pass_over_is_remarked(tmp_path):
    """A mimic of a fixed joint, a second axis, more than three scales of a mesh, empty lines before the XML declaration."""
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    mesh = '<collision><geometry><mesh filename="tetra.obj" scale="1 2 3 4"/></geometry></collision>'
    text = robot(
        link("a"),
        link("b", INERTIAL + mesh),
        link("c"),
        joint("weld", "fixed", "a", "b", '<mimic joint="turn"/>'),
        joint("turn", "continuous", "b", "c", '<axis xyz="0 1 0"/><axis xyz="1 0 0"/>'),
    )
    source = tmp_path / "bot.urdf"
    (tmp_path / "tetra.obj").write_text(corners)
    source.write_text(f'\n \n<?xml version="1.0"?>\n{text}')
    with pytest.warns(UrdfWarning) as caught:
        builder, report = load(source)
    source.write_text('\n \n<?xml version="1.0"?>\n<robot')
    with pytest.raises(ValueError, match="line 4"):
        load(source)
    assert len(caught) == 1
    assert remarked(report, "<mimic>") == ["weld"]
    assert remarked(report, "<axis>") == ["turn"]
    assert remarked(report, "scale") == ["b"]
    assert builder.joint_axis[-1] == (0.0, 1.0, 0.0)
    assert tuple(builder.shape_scale[-1]) == (1.0, 2.0, 3.0)


def test_elements_that_are_not_understood_are_counted():
    text = robot(
        link("a", INERTIAL + "<contact><mu/></contact>"),
        link("b"),
        joint("j", "fixed", "a", "b", '<safety_controller k_velocity="1"/><calibration rising="0"/>'),
        "<sensor><joint/></sensor><gazebo/><gazebo/>",
    )
    with pytest.warns(UrdfWarning, match="1 link/contact, 2 robot/gazebo, 1 robot/sensor"):
        report = load(text)[1]
    assert report.not_understood == {"robot/gazebo": 2, "robot/sensor": 1, "link/contact": 1}
    assert report.unused == {"joint/calibration": 1}


def test_misspelt_attributes_stray_text_and_left_out_numbers_are_named():
    inertia = '<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0"/>'
    text = robot(
        link("a", f'5 kg<inertial><origin xyz="0 0 0" ryp="1 0 0"/>{inertia}</inertial>'),
        link("b"),
        joint("j", "fixed", "a", "b", '<!-- a remark --><origin xyz="0 0 0"/>'),
    ).replace("<robot", '<robot xmlns:gazebo="http://gazebosim.org"', 1)
    with pytest.warns(UrdfWarning, match="1 link/text, 1 origin@ryp"):
        report = load(text)[1]
    assert report.not_understood == {"link/text": 1, "origin@ryp": 1}
    assert remarked(report, "<inertia>", "ixy", "ixz", "iyz") == ["a"]


def test_inertia_without_mass_is_left_out_and_remarked():
    """As on frames of bolt, panda and kuka_iiwa."""
    massless = '<inertial><mass value="0"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>'
    text = robot(link("a", INERTIAL), link("foot", massless), joint("weld", "fixed", "a", "foot"))
    with pytest.warns(UrdfWarning, match=r"inertia.*mass.*foot"):
        builder, report = load(text, floating=True)
    assert remarked(report, "inertia", "mass") == ["foot"]
    assert builder.body_mass[1] == 0.0 and not np.any(builder.body_inertia[1])
    SolverFeatherstone(builder.finalize("cpu"))


@pytest.mark.parametrize("mass", ["", "<mass/>"])
def test_inertial_without_mass_is_left_out_with_one_remark(mass):
    moments = '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>'
    bare = f'<inertial><origin xyz="0 0 1"/>{mass}{moments}</inertial>'
    ball = '<collision><geometry><sphere radius="0.5"/></geometry></collision>'
    text = robot(link("a", INERTIAL), link("foot", bare + ball), joint("weld", "fixed", "a", "foot"))
    with pytest.warns(UrdfWarning, match=r"<inertial>.*mass.*foot"):
        builder, report = load(text, floating=True)
    assert list(report.remarks.values()) == [["foot"]]
    assert builder.body_mass[1] == 0.0 and not np.any(builder.body_inertia[1])
    SolverFeatherstone(builder.finalize("cpu"))
    with pytest.warns(UrdfWarning, match=r"<inertial>.*mass.*foot"):
        builder, _ = load(text, floating=True, massless_link_density=1000.0)
    assert np.isclose(builder.body_mass[1], 1000.0 * 4.0 / 3.0 * np.pi * 0.5**3)


@pytest.mark.parametrize("moment", ["ixx", "iyy", "izz"])
def test_half_an_inertia_is_left_out_with_one_remark(moment):
    moments = " ".join(f'{name}="0.1"' for name in ("ixx", "iyy", "izz") if name != moment)
    half = f'<inertial><origin xyz="0 0 1"/><mass value="2"/><inertia {moments}/></inertial>'
    text = robot(link("a", INERTIAL), link("foot", half), joint("weld", "fixed", "a", "foot"))
    with pytest.warns(UrdfWarning, match=r"<inertia>.*point.*foot"):
        builder, report = load(text, floating=True)
    assert list(report.remarks.values()) == [["foot"]]
    assert builder.body_mass[1] == 2.0 and builder.body_com[1][2] == 1.0 and not np.any(builder.body_inertia[1])


@pytest.mark.parametrize("armature", [0.0, 0.1])
def test_massless_links_behind_joints_are_read_for_kinematics(armature):
    """As romeo's fingers: one remark, a model that finalizes, a solver that names joint and cure."""
    builder = ModelBuilder()
    builder.default_joint_cfg.armature = armature
    text = robot(link("a", INERTIAL), link("finger", ""), joint("knuckle", "continuous", "a", "finger"))
    if armature:
        assert not remarked(builder.add_urdf(text), "without mass")
        SolverFeatherstone(builder.finalize("cpu"))
        return
    with pytest.warns(UrdfWarning, match=r"without mass.*knuckle") as caught:
        builder.add_urdf(text)
    assert len(caught) == 1
    with pytest.raises(ValueError, match=r"knuckle.*armature"):
        SolverFeatherstone(builder.finalize("cpu"))


def test_meshes_that_fit_no_folder_can_be_skipped(tmp_path):
    """The error of a missing collision mesh names the option; with it all else of the link stays."""
    shapes = "".join(
        f"<collision><geometry>{shape}</geometry></collision>"
        for shape in ('<mesh filename="package://bot_support/hand.stl"/>', '<box size="1 2 3"/>')
    )
    source = tmp_path / "bot.urdf"
    source.write_text(robot(link("a", INERTIAL + shapes)))
    with pytest.raises(MissingFileError, match=r"bot_support.*package_dirs.*skip_missing_meshes=True"):
        load(source)
    with pytest.warns(UrdfWarning, match=r"missing.*package://bot_support/hand.stl"):
        builder, report = load(source, skip_missing_meshes=True)
    assert [builder.shape_type[i] for i in report.shapes["a"]] == [GeoType.BOX]
    (tmp_path / "bot_support").mkdir()
    (tmp_path / "bot_support" / "hand.stl").write_text("no mesh")
    with pytest.raises(ImportFileError, match=r"hand\.stl") as caught:  # a broken file is not missing
        load(source, skip_missing_meshes=True)
    assert not isinstance(caught.value, MissingFileError)


def test_meshes_outside_of_the_allowed_folders_can_be_skipped(tmp_path):
    """As in MJCF files: by path, by file URI, and through the folders of a package."""
    (tmp_path / "robot" / "urdf").mkdir(parents=True)
    (tmp_path / "hand.stl").write_text("secret")
    source = tmp_path / "robot" / "urdf" / "bot.urdf"
    for name in ("../../hand.stl", f"file://{tmp_path}/hand.stl", "package://robot/../../hand.stl"):
        mesh = f'<collision><geometry><mesh filename="{name}"/></geometry></collision>'
        source.write_text(robot(link("a", INERTIAL + mesh)))
        with pytest.raises(MissingFileError, match=r"hand\.stl.*skip_missing_meshes=True"):
            load(source)
        with pytest.warns(UrdfWarning, match=r"outside.*hand\.stl"):
            _, report = load(source, skip_missing_meshes=True)
        assert not report.shapes["a"]


def test_mass_without_inertia_is_remarked(rng):
    numbers = {"point": (rng.uniform(0.1, 1.0), 0.0), "solid": (rng.uniform(0.1, 1.0), 1.0), "nothing": (0.0, 0.0)}
    links = [
        link(
            name,
            f'<inertial><mass value="{mass!r}"/>'
            f'<inertia ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial>',
        )
        for name, (mass, inertia) in numbers.items()
    ]
    joints = [joint(f"to_{name}", "fixed", "solid", name) for name in ("point", "nothing")]
    with pytest.warns(UrdfWarning, match="mass.*inertia"):
        builder, report = load(robot(*links, *joints))
    assert remarked(report, "mass without") == ["point"]
    assert builder.body_mass[report.links["point"]] == numbers["point"][0]


def test_mass_without_an_inertia_element_is_a_point():
    """A joint through the point moves no inertia: the solver names the joint."""
    text = robot(
        link("a", INERTIAL),
        link("bob", '<inertial><origin xyz="0 0 0"/><mass value="2"/></inertial>'),
        joint("turn", "continuous", "a", "bob"),
    )
    with pytest.warns(UrdfWarning, match="mass.*inertia") as caught:
        builder, report = load(text)
    assert len(caught) == 1
    assert remarked(report, "mass without") == ["bob"]
    bob = report.links["bob"]
    assert builder.body_mass[bob] == 2.0 and not np.any(builder.body_inertia[bob])
    with pytest.raises(ValueError, match="turn"):
        SolverFeatherstone(builder.finalize("cpu"))


@pytest.mark.parametrize("tag", ["visual", "collision"])
@pytest.mark.parametrize(
    "shape",
    [
        '<sphere radius="0"/>',
        '<box size="1 0 1"/>',
        '<cylinder radius="1" length="0"/>',
        '<capsule radius="0" length="1"/>',
        '<mesh filename="none.stl" scale="1 0 1"/>',
    ],
)
def test_shapes_of_size_zero_are_left_out(tag, shape):
    pieces = "".join(f"<{tag}><geometry>{part}</geometry></{tag}>" for part in (shape, '<sphere radius="1"/>'))
    with pytest.warns(UrdfWarning, match="size zero") as caught:
        builder, report = load(robot(link("a", INERTIAL + pieces)))
    assert len(caught) == 1
    assert remarked(report, tag, "size zero") == ["a"]
    assert [builder.shape_type[i] for i in report.shapes["a"]] == [GeoType.SPHERE]


@pytest.mark.parametrize("rgba", ["", "1", "1 0", "1 0 0 0 1"])
def test_colours_of_other_counts_are_ignored(rgba):
    def colour(text):
        material = f'<material name="m"><color rgba="{text}"/></material>'
        sphere = '<geometry><sphere radius="1"/></geometry>'
        return load(robot(link("a", f"{INERTIAL}<visual>{sphere}{material}</visual>")))

    with pytest.warns(UrdfWarning, match="colours"):
        builder, report = colour(rgba)
    assert len(remarked(report, "3 or 4", "ignored")) == len(report.remarks) == 1
    plain = load(robot(link("a", INERTIAL + '<visual><geometry><sphere radius="1"/></geometry></visual>')))[0]
    assert np.array_equal(builder.shape_color[0], plain.shape_color[0])
    with pytest.warns(UrdfWarning, match="alpha"):
        three = colour("0.25 0.5 0.75")[0]
    four = colour("0.25 0.5 0.75 1")[0]
    assert np.array_equal(three.shape_color[0], four.shape_color[0])


def test_joints_that_follow_an_unknown_joint_are_free():
    links = [link(name, INERTIAL) for name in "abc"]
    lead = joint("lead", "continuous", "a", "b", '<mimic joint="gone" multiplier="2"/>')
    follow = joint("follow", "continuous", "b", "c", '<mimic joint="lead" multiplier="3"/>')
    with pytest.warns(UrdfWarning, match="gone"):
        builder, report = load(robot(*links, lead, follow))
    assert remarked(report, "exist") == ["lead (gone)"]
    assert builder.joint_mimic_joint[report.joints["lead"]] == -1
    assert builder.joint_mimic_joint[report.joints["follow"]] == report.joints["lead"]


@pytest.mark.parametrize("named", ["", ' name=" "'])
def test_a_robot_without_a_name_gets_that_of_the_file(tmp_path, named):
    """As other readers do; a text is called robot."""
    text = robot(link("a"), link("b", INERTIAL), joint("j", "continuous", "a", "b")).replace(' name="bot"', named, 1)
    assert 'name="bot"' not in text
    source = tmp_path / "ur3.urdf"
    source.write_text(text)
    for given, name in ((source, "ur3"), (text, "robot")):
        with pytest.warns(UrdfWarning, match=rf"<robot>.*'{name}'$"):
            builder, report = load(given)
        assert [statement for statement in report.remarks if "no name" in statement]
        assert builder.articulation_label == [name]


def test_changes_of_inertia_are_plain_numbers():
    """A link whose inertia is impossible to 100 percent, and another one to a few."""
    wild = '<inertial><mass value="1"/><inertia ixx="{}" iyy="1" izz="{}" ixy="0" ixz="0" iyz="0"/></inertial>'
    text = robot(
        link("a"),
        link("b", wild.format(-1, -1)),
        link("c", wild.format(1, 2.1)),
        joint("i", "continuous", "a", "b"),
        joint("j", "continuous", "b", "c"),
    )
    with pytest.warns(UrdfWarning, match=r"change: \d+(\.\d+)? %"):
        _, report = load(text)
    names = remarked(report, "impossible inertia")
    assert len(names) == 2
    assert not any("e+" in name for name in names)


def test_meshes_of_the_same_python_package_are_found(tmp_path):
    """Robots that are data of a Python package share meshes there, beside and above their own folders; nothing is read from outside."""
    package = tmp_path / "robots_of_mine"
    for folder in ("humanoid/one", "hands/left/meshes"):
        (package / folder).mkdir(parents=True)
    (package / "__init__.py").write_text("")
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (package / "hands/left/meshes/palm.obj").write_text(corners)
    (tmp_path / "palm.obj").write_text(corners)
    source = package / "humanoid/one/one.urdf"

    def with_mesh(name: str):
        mesh = f'<collision><geometry><mesh filename="{name}"/></geometry></collision>'
        source.write_text(robot(link("a"), link("b", INERTIAL + mesh), joint("j", "continuous", "a", "b")))
        return load(source)[0]

    for name in ("../../hands/left/meshes/palm.obj", "package://robots_of_mine/hands/left/meshes/palm.obj"):
        assert with_mesh(name).shape_count == 1
    with pytest.raises(ImportFileError, match="outside"):
        with_mesh("../../../palm.obj")
    (package / "__init__.py").unlink()
    with pytest.raises(ImportFileError, match="outside"):
        with_mesh("../../hands/left/meshes/palm.obj")
