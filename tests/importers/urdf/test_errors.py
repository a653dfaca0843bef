"""Wrong URDF files and wrong arguments: each is refused with the file, the line, the element and the cure."""

import copy
import os
import re
from pathlib import Path
from xml.parsers.expat import errors

import numpy as np
import pytest
import trimesh

from newton_like.importers.urdf import UrdfWarning
from newton_like.importers.xml_source import ImportFileError
from newton_like.model.builder.builder import ModelBuilder
from newton_like.model.columns import COLUMNS
from newton_like.types import JointType
from tests.support.counting import calls_of
from tests.support.damage import NONSENSE, SECRET, entities, read_damaged

LINKS = """<robot name="bot">
<link name="a"/>
<link name="b"/>
"""


def link(inside):
    """A robot of one link, with the contents of the link in line 3."""
    return f'<robot name="bot">\n<link name="a">\n{inside}\n</link></robot>'


def hinge(inside, kind="revolute"):
    """A robot of two links and a joint, with the contents of the joint in line 7."""
    return f"""{LINKS}<joint name="knee" type="{kind}">
<parent link="a"/>
<child link="b"/>
{inside}
</joint></robot>"""


def inertial(mass='<mass value="1"/>', inertia='<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'):
    return link(f"<inertial>\n{mass}\n{inertia}\n</inertial>")


def collision(geometry):
    return link(f"<collision><geometry>{geometry}</geometry></collision>")


LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'

GOOD = """<robot name="bot" xmlns:drake="http://drake.mit.edu">
<material name="red"><color rgba="1 0 0 1"/></material>
<link name="a">
<inertial><origin xyz="0 0 .1" rpy="0 .1 0"/>
<mass value="2"/>
<inertia ixx=".1" ixy="0" ixz="0" iyy=".1" iyz="0" izz=".1"/></inertial>
<collision name="c"><origin xyz="0 0 1"/><geometry><box size="1 2 3"/></geometry></collision>
<visual><geometry><sphere radius=".5"/></geometry><material name="red"/></visual>
</link>
<link name="b"><inertial><mass value="1"/><inertia ixx=".1" ixy="0" ixz="0" iyy=".1" iyz="0" izz=".1"/></inertial></link>
<link name="c"><collision><geometry><cylinder radius=".1" length="2"/></geometry></collision></link>
<link name="d"><collision><geometry><capsule radius=".1" length="2"/></geometry></collision></link>
<link name="e"><visual><geometry><mesh filename="e.stl" scale="1 1 1"/></geometry></visual></link>
<link name="f"/>
<joint name="hip" type="revolute">
<parent link="a"/>
<child link="b"/>
<origin xyz="0 0 1" rpy="0 0 1"/>
<axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="30" velocity="5"/>
<dynamics damping=".1" friction=".2"/>
<safety_controller soft_lower_limit="-.5" soft_upper_limit=".5" k_position="10" k_velocity="5"/>
</joint>
<joint name="slide" type="prismatic"><parent link="b"/><child link="c"/>
<limit lower="0" upper="1" effort="30" velocity="5"/>
<mimic joint="hip" multiplier="2" offset=".1"/>
</joint>
<joint name="wheel" type="continuous"><parent link="c"/><child link="d"/>
<mimic joint="slide" multiplier="-1"/></joint>
<joint name="table" type="planar"><parent link="a"/><child link="e"/><axis xyz="0 0 1"/></joint>
<joint name="weld" type="fixed"><parent link="e"/><child link="f"/></joint>
<transmission name="t"><type>transmission_interface/SimpleTransmission</type>
<joint name="hip"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
<actuator name="m"><mechanicalReduction>50</mechanicalReduction><drake:rotor_inertia value="1e-5"/></actuator>
</transmission>
</robot>""".splitlines()

WRONG_FILES = {
    "broken": ('<robot name="bot">\n<link name="a">', ["line 2", errors.XML_ERROR_NO_ELEMENTS]),
    "mismatched": ('<robot name="bot">\n<link name="a">\n</robot>', ["line 3", errors.XML_ERROR_TAG_MISMATCH]),
    "no xml": ("<", ["line 1", errors.XML_ERROR_UNCLOSED_TOKEN]),
    "lines of something else": ("robot: bot\nlinks: a, b\n", ["line 1", errors.XML_ERROR_SYNTAX]),
    "other root": ("<sdf/>", ["line 1", "<sdf>", "<robot>"]),
    "model of MuJoCo": ("<mujoco/>", ["line 1", "<mujoco>", "add_mjcf"]),
    "xacro": (
        '<robot name="bot" xmlns:xacro="x">\n<xacro:arm/></robot>',
        ["line 2", "<xacro:arm>", "xacro file.xacro > file.urdf"],
    ),
    "no links": ('<robot name="bot"/>', ["line 1", "<robot name='bot'>", "<link>"]),
    "nameless link": ('<robot name="bot">\n<link/></robot>', ["line 2", "<link>", "'name'"]),
    "capsule without length": (
        '<robot name="bot"><link name="a"><collision><geometry><capsule radius=".1"/></geometry></collision></link></robot>',
        ["<capsule>", "'length'"],
    ),
    "capsule of two lengths": (
        '<robot name="bot"><link name="a"><visual><geometry><capsule radius=".1" length="1" height="2"/></geometry></visual>'
        "</link></robot>",
        ["<capsule>", "length", "height"],
    ),
    "same link twice": (
        '<robot name="bot">\n<link name="a"/>\n<link name="a"/></robot>',
        ["line 3", "<link name='a'>", "line 2"],
    ),
    "same joint twice": (
        hinge("", "fixed").replace("</robot>", "\n<link name='c'/>")
        + '<joint name="knee" type="fixed"><parent link="a"/><child link="c"/></joint></robot>',
        ["line 9", "<joint name='knee'>", "line 4"],
    ),
    "unknown link": (
        hinge("", "fixed").replace('<child link="b"/>', '<child link="bb"/>'),
        ["line 6", "<child>", "'knee'", "'bb'", "'b'"],
    ),
    "no parent": (
        hinge("", "fixed").replace('<parent link="a"/>', ""),
        ["line 4", "<joint name='knee'>", "<parent>", "add"],
    ),
    "two parents elements": (hinge('<parent link="a"/>', "fixed"), ["line 7", "<parent>", "<joint name='knee'>", "2"]),
    "two roots": ("".join([LINKS, "</robot>"]), ["line 3", "<link name='b'>", "root", "a, b"]),
    "own parent": (
        hinge("", "fixed").replace('<child link="b"/>', '<child link="a"/>'),
        ["line 4", "<joint name='knee'>", "'a'", "<parent>", "<child>"],
    ),
    "two joints to one link": (
        hinge("", "fixed").replace("</robot>", "")
        + '\n<joint name="also" type="fixed"><parent link="a"/><child link="b"/></joint></robot>',
        ["line 9", "<joint name='also'>", "'b'", "'knee'", "line 4"],
    ),
    "cycle": (
        LINKS
        + '<link name="c"/><joint name="x" type="fixed"><parent link="b"/><child link="c"/></joint>'
        + '\n<joint name="y" type="fixed"><parent link="c"/><child link="b"/></joint></robot>',
        ["line 5", "<joint name='y'>", "b <- c <- b"],
    ),
    "no joint type": (hinge("", "").replace(' type=""', ""), ["line 4", "<joint name='knee'>", "'type'"]),
    "unknown joint type": (
        hinge("", "hinge"),
        ["line 4", "<joint name='knee'>", "type='hinge'", "revolute", "continuous"],
    ),
    "zero axis": (
        hinge('<axis xyz="0 0 0"/>' + LIMIT),
        ["line 7", "<axis>", "'knee'", "xyz='0 0 1'"],
    ),
    "short axis": (hinge('<axis xyz="0 1"/>' + LIMIT), ["line 7", "<axis>", "xyz='0 1'", "3", "2"]),
    "wordy axis": (hinge('<axis xyz="0 one 0"/>' + LIMIT), ["line 7", "<axis>", "'one'"]),
    "nan origin": (hinge('<origin xyz="0 nan 0"/>' + LIMIT), ["line 7", "<origin>", "'nan'"]),
    "infinite origin": (hinge('<origin rpy="inf 0 0"/>' + LIMIT), ["line 7", "<origin>", "rpy='inf 0 0'", "'inf'"]),
    "underscored number": (hinge('<origin xyz="1_0 0 0"/>' + LIMIT), ["line 7", "<origin>", "'1_0'"]),
    "crossed limits": (
        hinge('<limit lower="1.2" upper="0.8" effort="1" velocity="1"/>'),
        ["line 7", "<limit>", "'knee'", "lower", "1.2", "upper", "0.8"],
    ),
    "nan limit": (hinge('<limit lower="nan" upper="1"/>'), ["line 7", "<limit>", "lower='nan'"]),
    "negative effort": (hinge('<limit effort="-1"/>'), ["line 7", "<limit>", "effort='-1'"]),
    "negative velocity": (hinge('<limit effort="1" velocity="-1"/>'), ["line 7", "<limit>", "velocity='-1'"]),
    "negative damping": (hinge(LIMIT + '<dynamics damping="-1"/>'), ["line 7", "<dynamics>", "damping='-1'"]),
    "negative friction": (hinge(LIMIT + '<dynamics friction="-1"/>'), ["line 7", "<dynamics>", "friction='-1'"]),
    "products beyond all bounds": (
        "\n".join(GOOD).replace('multiplier="2"', 'multiplier="1e20"').replace('multiplier="-1"', 'multiplier="1e20"'),
        ["line 28", "<joint name='wheel'>", "'bot/wheel'", "'bot/hip'", "1e+40", "1e+30"],
    ),
    "mimic of itself": (hinge(LIMIT + '<mimic joint="knee"/>'), ["line 7", "<mimic>", "knee -> knee"]),
    "mimic without joint": (hinge(LIMIT + "<mimic/>"), ["line 7", "<mimic>", "'joint'"]),
    "floating mimic": (hinge('<mimic joint="knee"/>', "floating"), ["line 7", "<mimic>", "'knee'", "floating"]),
    "negative mass": (inertial('<mass value="-1"/>'), ["line 4", "<mass>", "link 'a'", "-1 kg"]),
    "nan mass": (inertial('<mass value="nan"/>'), ["line 4", "<mass>", "value='nan'"]),
    "no geometry": (link("<collision/>"), ["line 3", "<collision>", "<geometry>"]),
    "empty geometry": (collision(""), ["line 3", "<geometry>", "'a'", "box", "mesh", "nothing"]),
    "unknown geometry": (collision("<torus/>"), ["line 3", "<geometry>", "'a'", "<torus>"]),
    "two geometries": (
        collision('<sphere radius="1"/><sphere radius="1"/>'),
        ["line 3", "<geometry>", "'a'", "<sphere>, <sphere>"],
    ),
    "cosmic sphere": (collision('<sphere radius="1e31"/>'), ["line 3", "<sphere>", "radius='1e31'", "1e+30"]),
    "negative sphere": (collision('<sphere radius="-1"/>'), ["line 3", "<sphere>", "collision", "'a'", "[m]"]),
    "no radius": (collision("<sphere/>"), ["line 3", "<sphere>", "'radius'"]),
    "negative visual": (
        link('<visual><geometry><sphere radius="-1"/></geometry></visual>'),
        ["line 3", "<sphere>", "visual", "'a'", "[m]"],
    ),
    "axis without direction": (hinge(f"<axis/>{LIMIT}"), ["line 7", "<axis>", "'xyz'"]),
    "no file name": (collision("<mesh/>"), ["line 3", "<mesh>", "'filename'"]),
    "missing mesh": (
        collision('<mesh filename="package://arm/m.stl"/>'),
        ["line 3", "<mesh>", "collision", "'a'", "'package://arm/m.stl'", "package_dirs"],
    ),
    "far mesh": (
        collision('<mesh filename="https://x.org/m.stl"/>'),
        ["line 3", "<mesh>", "'a'", "'https://x.org/m.stl'", "supported"],
    ),
    "other machine": (
        collision('<mesh filename="file://host/m.stl"/>'),
        ["line 3", "<mesh>", "'a'", "'file://host/m.stl'", "'host'"],
    ),
    "nan box": (collision('<box size="1 nan 0"/>'), ["line 3", "<box>", "'nan'"]),
    "colour of words": (
        link('<visual><geometry><sphere radius="1"/></geometry><material><color rgba="1 0 red"/></material></visual>'),
        ["line 3", "<color>", "rgba='1 0 red'"],
    ),
}


@pytest.mark.parametrize(("text", "words"), WRONG_FILES.values(), ids=WRONG_FILES.keys())
def test_wrong_files_are_refused_by_name_line_and_cure(tmp_path, text, words):
    """Errors of texts and of files; the builder does not change."""
    path = tmp_path / "bot.urdf"
    path.write_text(text)
    for source, name in ((text, "XML text, line"), (path, f"{path}, line")):
        builder = ModelBuilder()
        builder.add_body(mass=1.0, inertia=np.eye(3))
        before = {column.name: copy.deepcopy(getattr(builder, column.name)) for column in COLUMNS}
        with pytest.raises(ImportFileError) as caught:
            builder.add_urdf(source)
        message = str(caught.value)
        assert message.startswith(name)
        assert [word for word in words if word not in message] == [], message
        assert {column.name: getattr(builder, column.name) for column in COLUMNS} == before


def test_errors_are_value_errors():
    assert issubclass(ImportFileError, ValueError)


def test_unreadable_collision_meshes_are_named(tmp_path):
    (tmp_path / "m.stl").write_text("solid but not a mesh")
    path = tmp_path / "bot.urdf"
    path.write_text(collision('<mesh filename="m.stl"/>'))
    with pytest.raises(ImportFileError, match=r"line 3: <mesh>.*collision.*'a'.*m\.stl'"):
        ModelBuilder().add_urdf(path)


WORDS = ("a", "b", "hip", "slide", "weld", "floating", "planar", "fixed", "0 0 0")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
def test_damaged_files_give_a_model_or_an_error_that_names_the_line(rng):
    def add(number: int, builder, text: str) -> None:
        builder.add_urdf(text, soft_limits=number % 2 == 0, collapse_fixed_joints=number % 3 == 0)

    add(0, ModelBuilder(), "\n".join(GOOD))
    refused, loaded = read_damaged(rng, GOOD, add, 550, NONSENSE + WORDS)
    assert refused > 100 and loaded > 30  # of 550; both ways were walked


ENTITIES = entities("robot")


@pytest.mark.parametrize("text", ENTITIES.values(), ids=ENTITIES.keys())
def test_entities_and_document_types_are_refused(tmp_path, text):
    (tmp_path / "secret").write_text(SECRET)
    with pytest.raises(ImportFileError, match=r"line 1.*entities") as caught:
        ModelBuilder().add_urdf(text.replace("{path}", str(tmp_path / "secret")))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../../secret.stl", "outside.*package_dirs"),
        ("{place}/secret.stl", "outside.*package_dirs"),
        ("file://{place}/secret.stl", "outside.*package_dirs"),
        ("../meshes/../../secret.stl", "outside.*package_dirs"),
        ("package://bot/../secret.stl", r"\bpackage\b(?!:)"),
        ("package://bot/meshes/..%2f../../secret.stl", r"\bpackage\b(?!:)"),
        ("package://bot/{place}/secret.stl", r"\bpackage\b(?!:)"),
        ("package://../secret.stl", r"\bpackage\b(?!:)"),
    ],
)
def test_meshes_outside_of_the_allowed_folders_are_refused(tmp_path, monkeypatch, name, words):
    """The meshes exist and are readable. They are read if the caller allows their folder."""
    for folder in ("bot/urdf", "bot/meshes"):
        (tmp_path / folder).mkdir(parents=True)
    trimesh.creation.box(extents=[1, 2, 3]).export(tmp_path / "secret.stl")
    path = tmp_path / "bot" / "urdf" / "bot.urdf"
    path.write_text(collision(f'<mesh filename="{name.replace("{place}", str(tmp_path))}"/>'))
    monkeypatch.chdir(path.parent)
    for source in (path, "bot.urdf", path.read_text()):
        with pytest.raises(ImportFileError, match=rf"line 3: <mesh>.*collision.*'a'.*secret\.stl'.*{words}"):
            ModelBuilder().add_urdf(source)
    with pytest.warns(UrdfWarning, match=r"visual.*\(1\): .*secret\.stl"):
        ModelBuilder().add_urdf(path.read_text().replace("collision", "visual"))
    if "package:" not in name:
        builder = ModelBuilder()
        builder.add_urdf(path, package_dirs=tmp_path)
        assert builder.shape_count == 1


def test_a_package_reaches_up_to_its_package_xml(tmp_path):
    (tmp_path / "bot" / "robots" / "urdf").mkdir(parents=True)
    trimesh.creation.box(extents=[1, 2, 3]).export(tmp_path / "bot" / "box.stl")
    path = tmp_path / "bot" / "robots" / "urdf" / "bot.urdf"
    path.write_text(collision('<mesh filename="../../box.stl"/>'))
    with pytest.raises(ImportFileError, match=r"line 3: <mesh>.*box\.stl'.*outside"):
        ModelBuilder().add_urdf(path)
    (tmp_path / "bot" / "package.xml").write_text("<package/>")
    ModelBuilder().add_urdf(path)


def test_undeclared_entities_are_refused():
    with pytest.raises(ImportFileError, match=errors.XML_ERROR_UNDEFINED_ENTITY):
        ModelBuilder().add_urdf('<robot name="&x;"><link name="a"/></robot>')


def test_characters_written_as_numbers_are_fine():
    report = ModelBuilder().add_urdf('<robot name="b&#111;t &amp; co"><link name="a"/></robot>')
    assert report.name == "bot & co"


ROBOT = '<robot name="b\u00f6t"><link name="a"/></robot>'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_files_of_every_usual_encoding_are_read(tmp_path, encoding):
    path = tmp_path / "bot.urdf"
    declaration = "" if encoding.startswith("utf") else f'<?xml version="1.0" encoding="{encoding}"?>'
    path.write_bytes((declaration + ROBOT).encode(encoding))
    assert ModelBuilder().add_urdf(path).name == ModelBuilder().add_urdf(path.read_bytes()).name == "b\u00f6t"


@pytest.mark.parametrize("encoding", ["klingon", "rot13", "shift_jis", "idna", "undefined", "punycode"])
def test_encodings_that_cannot_be_read_are_named(tmp_path, encoding):
    """Codecs fail in three ways: unknown, not of text, of several bytes a character."""
    path = tmp_path / "bot.urdf"
    path.write_text(f'<?xml version="1.0" encoding="{encoding}"?>{ROBOT}')
    with pytest.raises(ImportFileError, match=r"bot\.urdf, line 1: .*encoding.*UTF-8"):
        ModelBuilder().add_urdf(path)


def test_characters_that_no_file_has_are_refused():
    with pytest.raises(ImportFileError, match=f"line 1: .*{re.escape(errors.XML_ERROR_INVALID_TOKEN)}"):
        ModelBuilder().add_urdf(ROBOT.replace("\u00f6", "\ud800"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
@pytest.mark.parametrize("place", ["text", "name"])
def test_large_files_are_read_in_few_pieces(place):
    """Ten megabytes in one element or one attribute, in case the parser joins the text so far with each new piece."""
    lines = 500_000 * "a line of remarks.. "
    text = ROBOT.replace("><", f">{lines}<", 1) if place == "text" else ROBOT.replace('"b', f'"{lines}', 1)
    small, large = (calls_of(lambda robot=robot: ModelBuilder().add_urdf(robot)) for robot in (ROBOT, text))
    assert large - small < 100


def chain_of_mimics(count: int) -> tuple[ModelBuilder, object, int]:
    """Joints that each follow the one before, the last one first: a builder, its report, and the calls that it took."""
    links = "".join(f'<link name="l{i}"/>' for i in range(count + 1))
    joints = "".join(
        f'<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f"{f'<mimic joint={chr(34)}j{i - 1}{chr(34)} offset={chr(34)}.25{chr(34)}/>' if i else ''}</joint>"
        for i in reversed(range(count))
    )
    builder, reports = ModelBuilder(), []
    with pytest.warns(UrdfWarning):
        calls = calls_of(lambda: reports.append(builder.add_urdf(f'<robot name="bot">{links}{joints}</robot>')))
    return builder, reports[0], calls


@pytest.mark.slow
def test_long_chains_of_mimics_take_calls_in_proportion():
    *_, fewer = chain_of_mimics(50)
    builder, report, more = chain_of_mimics(200)
    # Following each chain to its end anew would make it sixteen times as many.
    assert more < 5 * fewer
    for i in (1, 2, 199):
        assert builder.joint_mimic_coeffs[report.joints[f"j{i}"]] == (0.25 * i, 1.0)
        assert builder.joint_mimic_joint[report.joints[f"j{i}"]] == report.joints["j0"]


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path, kind):
    path = {"folder": tmp_path, "pipe": tmp_path / "pipe", "device": Path("/dev/zero")}[kind]
    if kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(FileNotFoundError, match=re.escape(repr(str(path))) + (".*folder" if kind == "folder" else "")):
        ModelBuilder().add_urdf(path)


def test_deep_nesting_is_refused():
    with pytest.raises(ImportFileError, match=r"line 1: <robot>.*500"):
        ModelBuilder().add_urdf("<robot>" * 100000)


@pytest.mark.parametrize("source", ["nowhere.urdf", "package://nobody/x.urdf", "file:///nowhere.urdf", "", "a" * 5000])
def test_missing_files_are_named(source):
    with pytest.raises(FileNotFoundError, match=re.escape(f"'{source[:40]}")):
        ModelBuilder().add_urdf(source)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"scale": 0}, ValueError, "scale 0"),
        ({"scale": "big"}, TypeError, "scale.*'big'"),
        ({"massless_link_density": -1}, ValueError, "massless_link_density -1 kg"),
        ({"xform": (1, 2)}, TypeError, "xform"),
        ({"joint_ordering": "sideways"}, ValueError, "joint_ordering 'sideways'.*'dfs'"),
        ({"up_axis": "w"}, ValueError, "axis 'w'.*'X'"),
        ({"parent_body": 3}, IndexError, "parent_body 3"),
        (
            {"floating": True, "base_joint": {"joint_type": JointType.FIXED}},
            ValueError,
            r"floating.*base_joint",
        ),
        ({"base_joint": {}}, ValueError, "base_joint.*'joint_type'"),
        ({"base_joint": {"joint_type": JointType.FIXED, "parent": 0}}, ValueError, "base_joint.*parent_body"),
        ({"base_joint": 5}, TypeError, "base_joint.*5"),
        ({"base_joint": {"joint_type": JointType.D6, "axes": []}}, TypeError, "base_joint.*'axes'.*add_joint"),
        ({"mesh_maxhullvert": 2}, ValueError, "mesh_maxhullvert 2.*8"),
        ({"mesh_maxhullvert": 8.5}, TypeError, r"mesh_maxhullvert.*8\.5"),
        ({"floating": "no"}, TypeError, r"floating.*True.*False.*'no'"),
        ({"enable_self_collisions": None}, TypeError, r"enable_self_collisions.*None"),
        ({"package_dirs": 5}, TypeError, r"package_dirs.*5"),
        ({"package_dirs": [5]}, TypeError, r"package_dirs.*5"),
    ],
)
def test_wrong_arguments(options, error, words):
    with pytest.raises(error, match=words):
        ModelBuilder().add_urdf(link(""), **options)


def test_a_wrong_base_joint_leaves_the_builder_as_it_was():
    """Its error comes when bodies are there already, here of a robot that is mounted on another."""
    builder = ModelBuilder()
    first = builder.add_urdf(collision('<sphere radius="1"/>'))
    before = {column.name: copy.deepcopy(getattr(builder, column.name)) for column in COLUMNS}
    pairs = set(builder.shape_collision_filter_pairs)
    for base in ({"joint_type": JointType.D6, "linear_axes": ["q"]}, {"joint_type": JointType.REVOLUTE}):
        with pytest.raises(ValueError, match="joint 'bot/base_joint'"):
            builder.add_urdf(collision('<sphere radius="1"/>'), base_joint=base, parent_body=first.links["a"])
        assert {column.name: getattr(builder, column.name) for column in COLUMNS} == before
        assert set(builder.shape_collision_filter_pairs) == pairs
    builder.add_urdf(collision('<sphere radius="1"/>'), parent_body=first.links["a"])
    assert builder.articulation_end == [2] and (0, 1) in builder.shape_collision_filter_pairs


@pytest.mark.parametrize("source", [5, None, ["a"]])
def test_what_is_no_file_is_refused(source):
    with pytest.raises(TypeError, match=rf"\b{type(source).__name__}\b"):
        ModelBuilder().add_urdf(source)


def test_robots_are_mounted_only_where_joints_stay_together():
    builder = ModelBuilder()
    first = builder.add_urdf(link(""))
    loose = builder.add_link(mass=1.0)
    with pytest.raises(ValueError, match=r"parent_body.*'body_1'.*articulation"):
        builder.add_urdf(link(""), parent_body=loose)
    with pytest.raises(ValueError, match=r"floating=True.*parent_body"):
        builder.add_urdf(link(""), parent_body=first.links["a"], floating=True)
    builder.add_urdf(link(""))
    with pytest.raises(ValueError, match=r"parent_body.*'bot/a'.*articulation"):
        builder.add_urdf(link(""), parent_body=first.links["a"])
