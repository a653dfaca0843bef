"""Wrong URDF files and wrong arguments: each is refused with the file, the line, the element and the cure."""

import copy
import os
from pathlib import Path

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
    """A robot of one link; what is inside stands in line 3."""
    return f'<robot name="bot">\n<link name="a">\n{inside}\n</link></robot>'


def hinge(inside, kind="revolute"):
    """A robot of two links and a joint; what is inside stands in line 7."""
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
    "broken": ('<robot name="bot">\n<link name="a">', ["line 2", "broken XML", "no element found"]),
    "mismatched": ('<robot name="bot">\n<link name="a">\n</robot>', ["line 3", "mismatched tag"]),
    "no xml": ("<", ["broken XML"]),
    "lines of something else": ("robot: bot\nlinks: a, b\n", ["line 1", "broken XML"]),
    "other root": ("<sdf/>", ["line 1", "<sdf>", "starts with <robot>"]),
    "model of MuJoCo": ("<mujoco/>", ["line 1", "<mujoco>", "read it with add_mjcf"]),
    "no name": ('<robot><link name="a"/></robot>', ["<robot>", "no attribute 'name'"]),
    "xacro": (
        '<robot name="bot" xmlns:xacro="x">\n<xacro:arm/></robot>',
        ["line 2", "<xacro:arm>", "run 'xacro file.xacro > file.urdf'"],
    ),
    "no links": ('<robot name="bot"/>', ["has no <link>"]),
    "nameless link": ('<robot name="bot">\n<link/></robot>', ["line 2", "<link>", "no attribute 'name'"]),
    "capsule without length": (
        '<robot name="bot"><link name="a"><collision><geometry><capsule radius=".1"/></geometry></collision></link></robot>',
        ["<capsule>", "no attribute 'length'"],
    ),
    "capsule of two lengths": (
        '<robot name="bot"><link name="a"><visual><geometry><capsule radius=".1" length="1" height="2"/></geometry></visual>'
        "</link></robot>",
        ["<capsule>", "both length and height", "keep one"],
    ),
    "same link twice": (
        '<robot name="bot">\n<link name="a"/>\n<link name="a"/></robot>',
        ["line 3", "<link name='a'>", "in line 2 already; rename"],
    ),
    "same joint twice": (
        hinge("", "fixed").replace("</robot>", "\n<link name='c'/>")
        + '<joint name="knee" type="fixed"><parent link="a"/><child link="c"/></joint></robot>',
        ["line 9", "<joint name='knee'>", "in line 4 already"],
    ),
    "unknown link": (
        hinge("", "fixed").replace('<child link="b"/>', '<child link="bb"/>'),
        ["line 6", "<child>", "'knee'", "unknown link 'bb'", "did you mean 'b'?"],
    ),
    "no parent": (hinge("", "fixed").replace('<parent link="a"/>', ""), ["<joint name='knee'>", "has no <parent>"]),
    "two parents elements": (hinge('<parent link="a"/>', "fixed"), ["line 7", "has 2 <parent> elements; keep one"]),
    "two roots": ("".join([LINKS, "</robot>"]), ["line 3", "2 root links (a, b)", "connect all but one"]),
    "own parent": (
        hinge("", "fixed").replace('<child link="b"/>', '<child link="a"/>'),
        ["line 4", "link 'a' is its own parent"],
    ),
    "two joints to one link": (
        hinge("", "fixed").replace("</robot>", "")
        + '\n<joint name="also" type="fixed"><parent link="a"/><child link="b"/></joint></robot>',
        ["line 9", "<joint name='also'>", "child of joint 'knee' (line 4) already", "tree"],
    ),
    "cycle": (
        LINKS
        + '<link name="c"/><joint name="x" type="fixed"><parent link="b"/><child link="c"/></joint>'
        + '\n<joint name="y" type="fixed"><parent link="c"/><child link="b"/></joint></robot>',
        ["form a cycle: b <- c <- b", "remove one"],
    ),
    "no joint type": (hinge("", "").replace(' type=""', ""), ["line 4", "no attribute 'type'"]),
    "unknown joint type": (hinge("", "hinge"), ["line 4", "type='hinge'", "revolute, continuous"]),
    "zero axis": (
        hinge('<axis xyz="0 0 0"/>' + LIMIT),
        ["line 7", "<axis>", "'knee' has length zero", "xyz='0 0 1'"],
    ),
    "short axis": (hinge('<axis xyz="0 1"/>' + LIMIT), ["line 7", "xyz='0 1' must have 3 numbers", "not 2"]),
    "wordy axis": (hinge('<axis xyz="0 one 0"/>' + LIMIT), ["line 7", "'one' is not a number"]),
    "nan origin": (hinge('<origin xyz="0 nan 0"/>' + LIMIT), ["line 7", "<origin>", "'nan' is not a finite number"]),
    "infinite origin": (hinge('<origin rpy="inf 0 0"/>' + LIMIT), ["'inf' is not a finite number"]),
    "underscored number": (hinge('<origin xyz="1_0 0 0"/>' + LIMIT), ["'1_0' is not a finite number"]),
    "crossed limits": (
        hinge('<limit lower="1.2" upper="0.8" effort="1" velocity="1"/>'),
        ["line 7", "'knee': lower 1.2 is above upper 0.8; swap them"],
    ),
    "nan limit": (hinge('<limit lower="nan" upper="1"/>'), ["line 7", "lower='nan'"]),
    "negative effort": (hinge('<limit effort="-1"/>'), ["line 7", "effort='-1' must be at least 0"]),
    "negative velocity": (hinge('<limit effort="1" velocity="-1"/>'), ["velocity='-1' must be at least 0"]),
    "negative damping": (hinge(LIMIT + '<dynamics damping="-1"/>'), ["damping='-1' must be at least 0"]),
    "negative friction": (hinge(LIMIT + '<dynamics friction="-1"/>'), ["friction='-1' must be at least 0"]),
    "mimic of nobody": (hinge(LIMIT + '<mimic joint="hip"/>'), ["line 7", "'knee' follows the unknown joint 'hip'"]),
    "products beyond all bounds": (
        "\n".join(GOOD).replace('multiplier="2"', 'multiplier="1e20"').replace('multiplier="-1"', 'multiplier="1e20"'),
        ["line 28", "'bot/wheel'", "coeffs 1e+40 is beyond 1e+30"],
    ),
    "mimic of itself": (hinge(LIMIT + '<mimic joint="knee"/>'), ["in a circle: knee -> knee"]),
    "mimic without joint": (hinge(LIMIT + "<mimic/>"), ["<mimic>", "no attribute 'joint'"]),
    "floating mimic": (hinge('<mimic joint="knee"/>', "floating"), ["'knee' is floating and cannot follow"]),
    "negative mass": (inertial('<mass value="-1"/>'), ["line 4", "<mass>", "link 'a'", "-1 kg"]),
    "nan mass": (inertial('<mass value="nan"/>'), ["line 4", "value='nan'"]),
    "no mass": (inertial(""), ["line 3", "<inertial>", "has no <mass>"]),
    "no inertia": (inertial(inertia=""), ["has no <inertia>"]),
    "half an inertia": (inertial(inertia='<inertia ixx="1" iyy="1"/>'), ["line 5", "no attribute 'izz'"]),
    "inertia without mass": (inertial('<mass value="0"/>'), ["line 5", "link 'a' has inertia but no mass"]),
    "no geometry": (link("<collision/>"), ["line 3", "<collision>", "has no <geometry>"]),
    "empty geometry": (collision(""), ["line 3", "<geometry>", "must hold one of box", "not nothing"]),
    "unknown geometry": (collision("<torus/>"), ["line 3", "link 'a'", "not <torus>"]),
    "two geometries": (collision('<sphere radius="1"/><sphere radius="1"/>'), ["not <sphere>, <sphere>"]),
    "flat box": (collision('<box size="1 0 1"/>'), ["line 3", "<box>", "sizes must be above 0"]),
    "cosmic sphere": (collision('<sphere radius="1e31"/>'), ["line 3", "radius='1e31'", "beyond 1e+30; units are SI"]),
    "negative sphere": (collision('<sphere radius="-1"/>'), ["<sphere>", "sizes must be above 0"]),
    "no radius": (collision("<sphere/>"), ["no attribute 'radius'"]),
    "negative visual": (
        link('<visual><geometry><sphere radius="-1"/></geometry></visual>'),
        ["in a visual of link 'a'"],
    ),
    "axis without direction": (hinge(f"<axis/>{LIMIT}"), ["line 7", "<axis>", "no attribute 'xyz'"]),
    "no file name": (collision("<mesh/>"), ["<mesh>", "no attribute 'filename'"]),
    "zero scale": (collision('<mesh filename="m.stl" scale="1 0 1"/>'), ["scale='1 0 1' must not be zero"]),
    "missing mesh": (
        collision('<mesh filename="package://arm/m.stl"/>'),
        ["line 3", "<mesh>", "collision mesh of link 'a'", "'package://arm/m.stl' is not there", "package_dirs"],
    ),
    "far mesh": (collision('<mesh filename="https://x.org/m.stl"/>'), ["https: is not supported; download"]),
    "other machine": (collision('<mesh filename="file://host/m.stl"/>'), ["names the machine 'host'"]),
    "short colour": (
        link('<visual><geometry><sphere radius="1"/></geometry><material><color rgba="1 0 0"/></material></visual>'),
        ["rgba='1 0 0' must have 4 numbers"],
    ),
}


@pytest.mark.parametrize(("text", "words"), WRONG_FILES.values(), ids=WRONG_FILES.keys())
def test_wrong_files_are_refused_by_name_line_and_cure(tmp_path, text, words):
    """As text and as a file; and the builder stays as it was."""
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
    with pytest.raises(ImportFileError, match=r"line 3: <mesh>: the collision mesh of link 'a' .*m\.stl"):
        ModelBuilder().add_urdf(path)


WORDS = ("a", "b", "hip", "slide", "weld", "floating", "planar", "fixed", "0 0 0")


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
    with pytest.raises(ImportFileError, match=r"line 1: document types and entities .* are refused.*remove") as caught:
        ModelBuilder().add_urdf(text.replace("{path}", str(tmp_path / "secret")))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../../secret.stl", "is outside of the folders that may be read"),
        ("{place}/secret.stl", "is outside of the folders that may be read"),
        ("file://{place}/secret.stl", "is outside of the folders that may be read"),
        ("../meshes/../../secret.stl", "is outside of the folders that may be read"),
        ("package://bot/../secret.stl", "leads out of its package"),
        ("package://bot/meshes/..%2f../../secret.stl", "leads out of its package"),
        ("package://bot/{place}/secret.stl", "leads out of its package"),
        ("package://../secret.stl", "leads out of its package"),
    ],
)
def test_meshes_outside_of_the_allowed_folders_are_refused(tmp_path, monkeypatch, name, message):
    """They are there and could be read; and they are read where the caller says so."""
    for folder in ("bot/urdf", "bot/meshes"):
        (tmp_path / folder).mkdir(parents=True)
    trimesh.creation.box(extents=[1, 2, 3]).export(tmp_path / "secret.stl")
    path = tmp_path / "bot" / "urdf" / "bot.urdf"
    path.write_text(collision(f'<mesh filename="{name.replace("{place}", str(tmp_path))}"/>'))
    monkeypatch.chdir(path.parent)
    for source in (path, "bot.urdf", path.read_text()):
        with pytest.raises(ImportFileError, match=f"line 3: <mesh>: the collision mesh of link 'a' .*{message}"):
            ModelBuilder().add_urdf(source)
    with pytest.warns(UrdfWarning, match="outside of the folders"):
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
    with pytest.raises(ImportFileError, match="outside of the folders"):
        ModelBuilder().add_urdf(path)
    (tmp_path / "bot" / "package.xml").write_text("<package/>")
    ModelBuilder().add_urdf(path)


def test_undeclared_entities_are_refused():
    with pytest.raises(ImportFileError, match="undefined entity"):
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
    with pytest.raises(ImportFileError, match=r"bot.urdf, line 1: its encoding cannot be read: .*.*UTF-8"):
        ModelBuilder().add_urdf(path)


def test_characters_that_no_file_has_are_refused():
    with pytest.raises(ImportFileError, match="line 1: broken XML"):
        ModelBuilder().add_urdf(ROBOT.replace("\u00f6", "\ud800"))


@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
@pytest.mark.parametrize("place", ["text", "name"])
def test_large_files_are_read_in_few_pieces(place):
    """Ten megabytes inside of one element or one attribute: what is there so far is joined to each new piece."""
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
    with pytest.raises(FileNotFoundError, match="is a folder; correct" if kind == "folder" else "does not exist"):
        ModelBuilder().add_urdf(path)


def test_deep_nesting_is_refused():
    with pytest.raises(ImportFileError, match="nested deeper"):
        ModelBuilder().add_urdf("<robot>" * 100000)


@pytest.mark.parametrize("source", ["nowhere.urdf", "package://nobody/x.urdf", "file:///nowhere.urdf", "", "a" * 5000])
def test_missing_files_are_named(source):
    with pytest.raises(FileNotFoundError, match=r"does not exist.*; correct the path"):
        ModelBuilder().add_urdf(source)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"scale": 0}, ValueError, r"scale 0.*0"),
        ({"scale": "big"}, TypeError, "scale must be a number"),
        ({"massless_link_density": -1}, ValueError, "at least 0"),
        ({"xform": (1, 2)}, TypeError, "xform"),
        ({"joint_ordering": "sideways"}, ValueError, "'dfs', 'bfs' or None"),
        ({"up_axis": "w"}, ValueError, "unknown axis"),
        ({"parent_body": 3}, IndexError, "parent_body 3"),
        (
            {"floating": True, "base_joint": {"joint_type": JointType.FIXED}},
            ValueError,
            r"floating.*base_joint",
        ),
        ({"base_joint": {}}, ValueError, "no 'joint_type'"),
        ({"base_joint": {"joint_type": JointType.FIXED, "parent": 0}}, ValueError, "must not hold parent"),
        ({"base_joint": 5}, TypeError, "base_joint"),
        ({"base_joint": {"joint_type": JointType.D6, "axes": []}}, TypeError, r"'axes'.*add_joint"),
        ({"mesh_maxhullvert": 2}, ValueError, "at least 8"),
        ({"mesh_maxhullvert": 8.5}, TypeError, r"mesh_maxhullvert.*\(an integer\).*8.5"),
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
    with pytest.raises(TypeError, match="no robot file"):
        ModelBuilder().add_urdf(source)


def test_robots_are_mounted_only_where_joints_stay_together():
    builder = ModelBuilder()
    first = builder.add_urdf(link(""))
    loose = builder.add_link(mass=1.0)
    with pytest.raises(ValueError, match="in no articulation"):
        builder.add_urdf(link(""), parent_body=loose)
    with pytest.raises(ValueError, match="floating=True frees the robot"):
        builder.add_urdf(link(""), parent_body=first.links["a"], floating=True)
    builder.add_urdf(link(""))
    with pytest.raises(ValueError, match="not in the articulation that was added last"):
        builder.add_urdf(link(""), parent_body=first.links["a"])
