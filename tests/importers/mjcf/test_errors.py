"""Wrong MJCF files and wrong arguments: each is refused with the file, the line, the element and the cure."""

import copy
import re
import warnings
from xml.parsers.expat import errors

import pytest

from newton_like.importers.mjcf import MjcfWarning
from newton_like.importers.xml_source import ImportFileError
from newton_like.model.builder.builder import ModelBuilder
from newton_like.model.columns import COLUMNS
from newton_like.types import JointType
from tests.support.counting import calls_of
from tests.support.damage import SECRET, entities, read_damaged


def model(inside, outside="", after=""):
    """An MJCF with a moving body: `inside` is line 3, in the body, and `after` is line 5, after the world."""
    return (
        f'<mujoco model="m">{outside}\n<worldbody><body name="a"><joint name="j"/><geom name="g" size=".1"/><site name="s"/>\n'
        f"{inside}\n</body></worldbody>\n{after}</mujoco>"
    )


def body(inside):
    """A body in line 3."""
    return f'<mujoco>\n<worldbody>\n<body name="a">{inside}</body></worldbody></mujoco>'


SECOND = '<body name="b"><joint name="k"/><geom size=".1"/><site name="w" pos="0 0 1"/></body>'

WRONG_FILES = {
    "broken": ("<mujoco>\n<worldbody>", ["line 2", errors.XML_ERROR_NO_ELEMENTS]),
    "urdf": ('<robot name="x"/>', ["line 1", "<robot name='x'>", "add_urdf"]),
    "included part": ("<mujocoinclude/>", ["line 1", "<mujocoinclude>", "includes"]),
    "other": ("<sdf/>", ["line 1", "<sdf>", "<mujoco>"]),
    "empty": ("<mujoco/>", ["line 1", "<mujoco>", "<worldbody>"]),
    "global coordinates": (
        model("", '<compiler coordinate="global"/>'),
        ["<compiler>", "coordinate='global'", "MuJoCo 2.3.3"],
    ),
    "angle": (model("", '<compiler angle="turns"/>'), ["<compiler>", "angle='turns'", "'degree'", "'radian'"]),
    "eulerseq": (model("", '<compiler eulerseq="xyw"/>'), ["<compiler>", "eulerseq='xyw'", "x y z X Y Z"]),
    "bool": (model("", '<compiler autolimits="yes"/>'), ["<compiler>", "autolimits='yes'", "'true'", "'false'"]),
    "attached to a body": (model('<attach model="arm"/>'), ["line 3", "<attach>", "'arm'", "MjSpec", "to_xml"]),
    "attached to a frame, after unknown materials": (
        '<mujoco><asset><model name="arm" file="arm.xml"/></asset>\n<worldbody><geom size="1" material="of arm"/>\n'
        '<frame><attach model="arm" prefix="l_"/></frame></worldbody></mujoco>',
        ["line 3", "<attach>", "'arm'", "MjSpec"],
    ),
    "timestep": (model("", '<option timestep="0"/>'), ["<option>", "timestep='0'", "[s]"]),
    "class twice": (
        model("", '<default><default class="x"/><default class="x"/></default>'),
        ["line 1", "<default>", "class 'x'", "defined"],
    ),
    "class without a name": (model("", "<default><default/></default>"), ["line 1", "<default>", "class='...'"]),
    "springlength": (
        model(
            SECOND,
            "",
            '<tendon><spatial name="t" springlength="1 .5"><site site="s"/><site site="w"/></spatial></tendon>',
        ),
        ["line 5", "<spatial name='t'>", "springlength='1 .5'", "swap"],
    ),
    "pulley at the end": (
        model(
            SECOND,
            "",
            '<tendon><spatial name="t"><site site="s"/><site site="w"/><pulley divisor="2"/></spatial></tendon>',
        ),
        ["line 5", "<spatial name='t'>", "pulley", "sites behind it"],
    ),
    "same equality twice": (
        model("", "", '<equality><weld name="e" body1="a"/><joint name="e" joint1="j" active="false"/></equality>'),
        ["line 5", "<joint name='e'>", "equality 'e'", "twice"],
    ),
    "unknown class": (model('<geom class="x" size="1"/>'), ["line 3", "<geom>", "class 'x'", "main"]),
    "unknown childclass": (model('<body childclass="x"/>'), ["line 3", "<body>", "class 'x'", "main"]),
    "same body twice": (
        model('<body name="a"/>'),
        ["line 3", "<body name='a'>", "body 'a'"],
    ),
    "same joint twice": (model('<joint name="j"/>'), ["line 3", "<joint name='j'>", "joint 'j'"]),
    "two orientations": (
        model('<geom size="1" quat="1 0 0 0" euler="0 0 0"/>'),
        ["line 3", "<geom>", "quat", "euler"],
    ),
    "no axis": (model('<body><joint axis="0 0 0"/><geom size="1"/></body>'), ["line 3", "<joint>", "axis='0 0 0'"]),
    "no turn": (model('<geom size="1" quat="0 0 0 0"/>'), ["line 3", "<geom>", "quat='0 0 0 0'"]),
    "flat axes": (model('<geom size="1" xyaxes="1 0 0 2 0 0"/>'), ["line 3", "<geom>", "xyaxes='1 0 0 2 0 0'"]),
    "same points": (
        model('<geom type="box" size="1" fromto="1 1 1 1 1 1"/>'),
        ["line 3", "<geom>", "fromto='1 1 1 1 1 1'"],
    ),
    "numbers": (
        model('<geom size="1" pos="1 2"/>'),
        ["line 3", "<geom>", "pos='1 2'", "3", "2"],
    ),
    "no number": (model('<geom size="big"/>'), ["line 3", "<geom>", "size='big'", "'big'"]),
    "not finite": (model('<geom size="1" pos="0 nan 0"/>'), ["line 3", "<geom>", "pos='0 nan 0'", "'nan'"]),
    "no size": (model('<geom name="x"/>'), ["<geom name='x'>", "size 0", "sphere", "[m]"]),
    "negative size": (model('<geom type="box" size="1 -1 1"/>'), ["line 3", "<geom>", "size 1", "box", "[m]", "-1"]),
    "many sizes": (model('<geom size="1 2 3 4"/>'), ["line 3", "<geom>", "size='1 2 3 4'", "1", "3", "4"]),
    "type": (model('<geom type="cube" size="1"/>'), ["line 3", "<geom>", "type='cube'", "'sphere'"]),
    "mass": (model('<geom size="1" mass="-1"/>'), ["line 3", "<geom>", "mass='-1'"]),
    "condim": (model('<geom size="1" condim="2"/>'), ["line 3", "<geom>", "condim=2", "6"]),
    "friction": (model('<geom size="1" friction="-1"/>'), ["line 3", "<geom>", "friction='-1'"]),
    "whole number": (model('<geom size="1" contype="1.5"/>'), ["line 3", "<geom>", "contype='1.5'"]),
    "material": (model('<geom size="1" material="x"/>'), ["line 3", "<geom>", "material 'x'", "<asset>"]),
    "mesh": (model('<geom type="mesh" mesh="x"/>'), ["line 3", "<geom>", "asset 'x'"]),
    "no mesh": (model('<geom type="mesh"/>'), ["line 3", "<geom>", "'mesh'", "mesh='...'"]),
    "no hfield": (model('<geom type="hfield"/>'), ["line 3", "<geom>", "'hfield'", "hfield='...'"]),
    "shell of a mesh": (
        model(
            '<geom type="mesh" mesh="x" shellinertia="true"/>', '<asset><mesh name="x" vertex="0 0 0 1 0 0"/></asset>'
        ),
        ["line 3", "<geom>", "shellinertia", "inertia='shell'", "<mesh>"],
    ),
    "fromto of a sphere": (model('<geom size="1" fromto="0 0 0 1 1 1"/>'), ["line 3", "<geom>", "fromto", "'sphere'"]),
    "plane that moves": (model('<geom type="plane" size="1 1 1"/>'), ["line 3", "<geom>", "plane", "world"]),
    "joint in the world": (
        "<mujoco><worldbody>\n<frame><joint/></frame></worldbody></mujoco>",
        ["line 2", "<joint>", "<body>"],
    ),
    "free joint inside": (
        model("<body><freejoint/></body>"),
        ["line 3", "<body>", "free joint"],
    ),
    "free joint with others": (model("<freejoint/>"), ["line 2", "<body name='a'>", "free joint"]),
    "turns after a ball": (
        body('<joint type="ball"/><joint/><geom size="1"/>'),
        ["line 3", "<body name='a'>", "ball joint"],
    ),
    "limits the wrong way": (
        model('<body><joint range="1 -1" limited="true"/></body>'),
        ["line 3", "<joint>", "range='1 -1'"],
    ),
    "no limits": (
        model('<body><joint limited="true"/></body>'),
        ["line 3", "<joint>", "limited='true'", "range='...'"],
    ),
    "limits or none": (
        model('<body><joint range="-1 1"/></body>', '<compiler autolimits="false"/>'),
        ["line 3", "<joint>", "range", "limited='true'", "autolimits='false'"],
    ),
    "damping": (model('<body><joint damping="-1"/></body>'), ["line 3", "<joint>", "damping='-1'"]),
    "two inertials": (
        model('<inertial pos="0 0 0" mass="1"/><inertial pos="0 0 0" mass="1"/>'),
        ["line 3", "<inertial>", "body 'a'"],
    ),
    "inertial nowhere": (model('<inertial mass="1"/>'), ["line 3", "<inertial>", "'pos'"]),
    "inertial without mass": (model('<inertial pos="0 0 0"/>'), ["line 3", "<inertial>", "'mass'"]),
    "turned full inertia": (
        model('<inertial pos="0 0 0" mass="1" euler="1 0 0" fullinertia="1 1 1 0 0 0"/>'),
        ["line 3", "<inertial>", "fullinertia", "diaginertia"],
    ),
    "impossible inertia": (
        model('<inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/>'),
        ["line 2", "body 'a'", "1, 1, 3", "balanceinertia='true'", "<compiler>"],
    ),
    "negative inertia": (
        model('<inertial pos="0 0 0" mass="1" diaginertia="1 1 -1"/>'),
        ["line 2", "body 'a'", "moment", "-1"],
    ),
    "mocap inside": (model('<body mocap="true"/>'), ["line 3", "<body>", "mocap"]),
    "mocap with joints": (
        '<mujoco><worldbody><body mocap="true"><joint/></body></worldbody></mujoco>',
        ["line 1", "<body>", "mocap", "joint"],
    ),
    "replicas without count": (model("<replicate/>"), ["line 3", "<replicate>", "'count'"]),
    "many replicas": (
        model('<replicate count="1000000000"/>'),
        ["line 3", "<replicate>", "count=1000000000", "500000"],
    ),
    "actuator of nothing": (
        model("", after="<actuator><motor/></actuator>"),
        ["line 5", "<motor>", "joint='...'"],
    ),
    "actuator of two": (
        model("", after='<actuator><motor joint="j" site="s"/></actuator>'),
        ["line 5", "<motor>", "joint and site"],
    ),
    "actuator of an unknown joint": (
        model("", after='<actuator><motor joint="k"/></actuator>'),
        ["line 5", "<motor>", "joint 'k'", ": j"],
    ),
    "actuator relative to an unknown site": (
        model(
            "",
            after='<actuator><motor site="s" refsite="r"/></actuator>',
        ),
        ["line 5", "<motor>", "site 'r'", "refsite"],
    ),
    "crank of an unknown site": (
        model("", after='<actuator><motor slidersite="s" cranksite="r"/></actuator>'),
        ["line 5", "<motor>", "cranksite 'r'"],
    ),
    "negative time constant of a filter": (
        model("", after='<actuator><general joint="j" dyntype="filter" dynprm="-1"/></actuator>'),
        ["line 5", "<general>", "time constant -1"],
    ),
    "negative time constant of a muscle": (
        model("", after='<actuator><muscle joint="j" timeconst=".01 -.04"/></actuator>'),
        ["line 5", "<muscle>", "time constant -0.04"],
    ),
    "crank without a rod": (
        model("", after='<actuator><motor slidersite="s" cranksite="s"/></actuator>'),
        ["line 5", "<motor>", "cranklength"],
    ),
    "crank with a rod of no length": (
        model("", after='<actuator><motor slidersite="s" cranksite="s" cranklength="0"/></actuator>'),
        ["line 5", "<motor>", "cranklength=0"],
    ),
    "adhesion of an unknown body": (
        model("", after='<actuator><adhesion body="nowhere"/></actuator>'),
        ["line 5", "<adhesion>", "unknown body 'nowhere'"],
    ),
    "adhesion of nothing": (
        model("", after="<actuator><adhesion/></actuator>"),
        ["line 5", "<adhesion>", "body='...'"],
    ),
    "adhesion that pushes": (
        model("", after='<actuator><adhesion name="a" body="world" ctrlrange="-1 1"/></actuator>'),
        ["line 5", "<adhesion name='a'>", "ctrlrange"],
    ),
    "damper without controls": (
        model("", after='<actuator><damper name="d" joint="j" kv="2"/></actuator>'),
        ["line 5", "<damper name='d'>", "ctrlrange"],
    ),
    "damper that adds energy": (
        model("", after='<actuator><damper name="d" joint="j" kv="2" ctrlrange="-1 2"/></actuator>'),
        ["line 5", "<damper name='d'>", "ctrlrange"],
    ),
    "motor without a constant": (
        model("", after='<actuator><dcmotor joint="j" resistance="2"/></actuator>'),
        ["line 5", "<dcmotor>", "motor constant"],
    ),
    "motor with an unknown input": (
        model("", after='<actuator><dcmotor joint="j" motorconst="1" resistance="2" input="steam"/></actuator>'),
        ["line 5", "<dcmotor>", "'steam'"],
    ),
    "equality of an unknown tendon": (
        model("", after='<equality><tendon tendon1="t"/></equality>'),
        ["line 5", "<tendon>", "tendon1='t'"],
    ),
    "muscle of nothing": (model("", after="<actuator><muscle/></actuator>"), ["line 5", "<muscle>", "joint='...'"]),
    "same actuator twice": (
        model("", after='<actuator><motor name="x" joint="j"/><motor name="x" joint="j"/></actuator>'),
        ["line 5", "<motor name='x'>", "actuator 'x'"],
    ),
    "kv and dampratio": (
        model("", after='<actuator><position joint="j" kv="1" dampratio="1"/></actuator>'),
        ["line 5", "<position>", "kv", "dampratio"],
    ),
    "inherited range": (
        model("", after='<actuator><position joint="j" inheritrange="1"/></actuator>'),
        ["line 5", "<position>", "joint 'j'", "inheritrange"],
    ),
    "equality of an unknown body": (
        model("", after='<equality><connect body1="x" anchor="0 0 0"/></equality>'),
        ["line 5", "<connect>", "body1='x'", "a, world"],
    ),
    "equality of one": (
        model("", after='<equality><weld body1="a" body2="a"/></equality>'),
        ["line 5", "<weld>", "'a'"],
    ),
    "equality of a ball": (
        model('<body><joint type="ball" name="b"/></body>', after='<equality><joint joint1="b"/></equality>'),
        ["line 5", "<joint>", "joint 'b'", "hinge", "slide"],
    ),
    "empty tendon": (model("", after="<tendon><fixed/></tendon>"), ["line 5", "<fixed>", "tendon"]),
    "huge": (
        model('<geom size="1e20"/>'),
        ["line 2", "body 'a'", "4.18879e+63 kg", "1.67552e+103 kg m^2"],
    ),
    "seven axes": (
        body('<joint/><joint/><joint/><joint/><joint type="slide"/><joint type="slide"/><joint type="slide"/>'),
        ["line 3", "<body name='a'>", "freedom"],
    ),
    "tendon around a box": (
        model('<geom name="h" type="box" size="1 1 1"/>', after='<tendon><spatial><geom geom="h"/></spatial></tendon>'),
        ["line 5", "<geom>", "tendon", "box"],
    ),
    "pulley": (
        model("", after='<tendon><spatial><pulley divisor="0"/></spatial></tendon>'),
        ["line 5", "<pulley>", "divisor=0"],
    ),
    "pair of an unknown geom": (
        model("", after='<contact><pair geom1="g" geom2="h"/></contact>'),
        ["line 5", "<pair>", "geom2='h'", ": g"],
    ),
    "keyframe": (model("", after='<keyframe><key qpos="1 2"/></keyframe>'), ["line 5", "<key>", "qpos", "2", "1"]),
    "open mesh text": (
        model('<geom type="mesh" mesh="x"/>', '<asset><mesh name="x" vertex="0 0 0 1"/></asset>'),
        ["<mesh name='x'>", "vertex", "4", "3"],
    ),
    "face of no vertex": (
        model(
            '<geom type="mesh" mesh="x"/>', '<asset><mesh name="x" vertex="0 0 0 1 0 0 0 1 0" face="0 1 3"/></asset>'
        ),
        ["<mesh name='x'>", "face", "3"],
    ),
    "flat mesh": (
        model(
            '<geom type="mesh" mesh="x"/>', '<asset><mesh name="x" vertex="0 0 0 1 0 0 0 1 0" face="0 1 2"/></asset>'
        ),
        ["<mesh name='x'>", "mesh 'x'", "volume", "'shell'"],
    ),
    "builtin mesh": (
        model('<geom type="mesh" mesh="x"/>', '<asset><mesh name="x" builtin="sphere" params="2"/></asset>'),
        ["<mesh name='x'>", "builtin"],
    ),
    "mesh without a name": (model("", "<asset><mesh/></asset>"), ["line 1", "<mesh>", "name='...'"]),
    "hfield": (
        '<mujoco><asset><hfield name="h" nrow="1" ncol="2" size="1 1 1 1"/></asset><worldbody>'
        '<geom type="hfield" hfield="h"/></worldbody></mujoco>',
        ["<hfield name='h'>", "nrow 1", "ncol 2"],
    ),
}


@pytest.mark.parametrize(("text", "words"), WRONG_FILES.values(), ids=WRONG_FILES.keys())
def test_wrong_files_are_refused_by_name(text, words):
    builder = ModelBuilder()
    with pytest.raises(ImportFileError) as caught:
        builder.add_mjcf(text)
    message = str(caught.value)
    assert message.startswith("XML text, line "), message
    assert [word for word in words if word not in message] == [], message
    assert builder.body_count == builder.joint_count == builder.shape_count == 0


GOOD = """<mujoco model="m">
<compiler angle="degree" eulerseq="xyz" inertiafromgeom="auto"/>
<option timestep="0.002" gravity="0 0 -9.81"/>
<default>
<geom density="500" friction="1 .01 .001"/>
<joint armature=".01" damping=".1"/>
<default class="arm">
<geom type="capsule" size=".05 .2"/>
</default>
</default>
<asset>
<mesh name="t" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
<mesh name="u" vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 2 1 0 1 3 0 3 2 1 2 3" inertia="exact" scale="1 1 1"/>
<hfield name="h" nrow="2" ncol="3" size="1 2 3 .1" elevation="0 1 2 3 4 8"/>
<material name="red" rgba="1 0 0 1"/>
</asset>
<worldbody>
<geom name="floor" type="plane" size="0 0 .1" material="red"/>
<geom type="hfield" hfield="h" pos="5 0 0"/>
<body name="root" pos="0 0 1">
<freejoint name="free"/>
<geom type="box" size=".1 .2 .3" euler="10 20 30"/>
<site name="tip" pos="0 0 .1"/>
<body name="upper" pos="0 0 .3" childclass="arm">
<joint name="x" axis="1 0 0" range="-90 90"/>
<joint name="y" axis="0 1 0" ref="10"/>
<geom fromto="0 0 0 0 0 1"/>
<body name="lower" pos="0 0 1" quat="1 0 0 1">
<joint name="z" type="slide" axis="0 0 1" limited="true" range="-1 1"/>
<inertial pos="0 0 .1" mass="2" diaginertia=".1 .2 .25"/>
<geom type="mesh" mesh="u" zaxis="1 1 1"/>
</body>
</body>
<body name="other" pos="1 0 0">
<joint name="b" type="ball"/>
<geom name="ball" type="sphere" size=".1 .2 .3" mass="3"/>
</body>
</body>
<frame pos="1 2 3" euler="0 0 90">
<replicate count="3" offset="1 0 0">
<body name="r">
<joint name="k"/>
<geom type="cylinder" size=".1 .2"/>
</body>
</replicate>
</frame>
</worldbody>
<actuator>
<motor name="m" joint="x" gear="5" ctrlrange="-1 1"/>
<position joint="z" kp="10" dampratio="1"/>
<velocity joint="k" kv="3"/>
</actuator>
<equality>
<connect body1="lower" body2="other" anchor="0 0 0"/>
<joint joint1="x" joint2="z" polycoef="0 1 0 0 0"/>
</equality>
<tendon>
<fixed name="f"><joint joint="x" coef="1"/></fixed>
<spatial name="sp"><site site="tip"/><geom geom="ball"/><site site="tip"/></spatial>
</tendon>
<contact>
<exclude body1="root" body2="lower"/>
<pair geom1="floor" geom2="ball"/>
</contact>
<keyframe>
<key name="home" qpos="0 0 1 1 0 0 0 0 0 0 1 0 0 0 0 0 0"/>
</keyframe>
</mujoco>
""".splitlines()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_damaged_files_give_a_model_or_an_error_that_names_the_line(rng):
    ModelBuilder().add_mjcf("\n".join(GOOD))
    refused, loaded = read_damaged(rng, GOOD, lambda number, builder, text: builder.add_mjcf(text), 300)
    assert refused > 60 and loaded > 20  # of 300; both ways were walked


ENTITIES = entities("mujoco")


@pytest.mark.parametrize("text", ENTITIES.values(), ids=ENTITIES.keys())
@pytest.mark.parametrize("included", [False, True])
def test_entities_are_refused_in_files_and_includes(tmp_path, text, included):
    (tmp_path / "secret").write_text(SECRET)
    source = text.replace("{path}", str(tmp_path / "secret"))
    if included:
        (tmp_path / "part.xml").write_text(source)
        source = tmp_path / "main.xml"
        source.write_text('<mujoco><include file="part.xml"/></mujoco>')
    with pytest.raises(ImportFileError, match=r"line 1.*entities") as caught:
        ModelBuilder().add_mjcf(source)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("where", ["../../outside/part.xml", "{outside}/part.xml", "sub/../../../outside/part.xml"])
@pytest.mark.parametrize("what", ["include", "mesh", "meshdir", "hfield"])
def test_files_outside_of_the_allowed_folders_are_refused(tmp_path, where, what):
    outside, inside = tmp_path / "outside", tmp_path / "robot" / "xml"
    outside.mkdir()
    inside.mkdir(parents=True)
    (outside / "part.xml").write_text(f"<mujocoinclude><body name='{SECRET}'/></mujocoinclude>")
    name = where.replace("{outside}", str(outside))
    folder, _, file = name.rpartition("/")
    text = {
        "include": f'<mujoco><worldbody><include file="{name}"/></worldbody></mujoco>',
        "mesh": f'<mujoco><asset><mesh name="x" file="{name}"/></asset>',
        "meshdir": f'<mujoco><compiler meshdir="{folder}"/><asset><mesh name="x" file="{file}"/></asset>',
        "hfield": f'<mujoco><asset><hfield name="x" size="1 1 1 1" file="{name}"/></asset>',
    }[what]
    if what != "include":
        kind = "hfield" if what == "hfield" else "mesh"
        text += f'<worldbody><geom type="{kind}" {kind}="x"/></worldbody></mujoco>'
    main = inside / "main.xml"
    main.write_text(text)
    with pytest.raises(ImportFileError, match=r"main\.xml, line 1: .*outside") as caught:
        ModelBuilder().add_mjcf(main)
    assert SECRET not in str(caught.value) and "package_dirs" in str(caught.value)
    if what == "include":
        assert ModelBuilder().add_mjcf(main, package_dirs=[outside]).links[SECRET] == 0


@pytest.mark.parametrize("depth", [1, 3])
def test_files_of_the_models_own_folder_tree_are_read(tmp_path, depth):
    """As for URDF: beside the folder of the file, or anywhere below the nearest folder with a package.xml."""
    inside = tmp_path.joinpath("robot", *"abc"[:depth])
    inside.mkdir(parents=True)
    (tmp_path / "robot" / "assets").mkdir()
    (tmp_path / "robot" / "assets" / "part.xml").write_text("<mujocoinclude><body name='part'/></mujocoinclude>")
    main = inside / "main.xml"
    up = "/".join([".."] * depth)
    main.write_text(f'<mujoco><worldbody><include file="{up}/assets/part.xml"/></worldbody></mujoco>')
    if depth > 1:
        with pytest.raises(ImportFileError, match=r"part\.xml'.*outside"):
            ModelBuilder().add_mjcf(main)
        (tmp_path / "robot" / "package.xml").write_text("<package/>")
    assert ModelBuilder().add_mjcf(main).links["part"] == 0


def test_a_text_may_read_no_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "part.xml").write_text("<mujocoinclude><body/></mujocoinclude>")
    text = '<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>'
    with pytest.raises(ImportFileError, match=r"part\.xml'.*none.*package_dirs"):
        ModelBuilder().add_mjcf(text)
    assert ModelBuilder().add_mjcf(text, package_dirs=tmp_path).links


def test_files_that_include_each_other_are_refused(tmp_path):
    (tmp_path / "a.xml").write_text('<mujoco><include file="b.xml"/></mujoco>')
    (tmp_path / "b.xml").write_text('<mujoco><include file="a.xml"/></mujoco>')
    with pytest.raises(ImportFileError, match=r"b\.xml, line 1: <include>.*a\.xml'"):
        ModelBuilder().add_mjcf(tmp_path / "a.xml")


def test_missing_files_are_named(tmp_path):
    main = tmp_path / "main.xml"
    main.write_text('<mujoco><include file="part.xml"/></mujoco>')
    with pytest.raises(
        ImportFileError, match=rf"line 1: <include>.*'part\.xml'.*{re.escape(str(tmp_path / 'part.xml'))}"
    ):
        ModelBuilder().add_mjcf(main)
    with pytest.raises(FileNotFoundError, match=re.escape(repr(str(tmp_path / "nothing.xml")))):
        ModelBuilder().add_mjcf(tmp_path / "nothing.xml")


def test_missing_looks_are_left_out_but_not_missing_collisions(tmp_path):
    main = tmp_path / "main.xml"
    text = (
        '<mujoco><asset><mesh file="no.stl"/></asset><worldbody><geom size=".1"/>'
        '<geom type="mesh" mesh="no" contype="{0}" conaffinity="0"/></worldbody></mujoco>'
    )
    main.write_text(text.format(0))
    with pytest.warns(MjcfWarning, match=r"visual.*\(1\): no"):
        builder = ModelBuilder()
        builder.add_mjcf(main)
    assert builder.shape_count == 1
    main.write_text(text.format(1))
    with pytest.raises(ImportFileError, match=r"line 1: <mesh>.*'no\.stl'"):
        ModelBuilder().add_mjcf(main)


def test_elements_deeper_than_those_of_mujoco_are_refused():
    with pytest.raises(ImportFileError, match=r"line 1: <body>.*500"):
        ModelBuilder().add_mjcf(f"<mujoco><worldbody>{'<body>' * 500}{'</body>' * 500}</worldbody></mujoco>")


def test_replicas_of_replicas_do_not_grow_without_bounds():
    text = '<body><geom size="1"/></body>'
    for _ in range(12):
        text = f'<replicate count="100" offset="1 0 0">{text}</replicate>'

    def read():
        with pytest.raises(ImportFileError, match=r"line 1: <replicate>: .*500000"):
            ModelBuilder().add_mjcf(f"<mujoco><worldbody>{text}</worldbody></mujoco>")

    # Replicas are counted before they are made.
    assert calls_of(read) < 50_000


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"scale": 0}, ValueError, "scale 0"),
        ({"xform": (1, 2)}, TypeError, "xform"),
        ({"joint_ordering": "sideways"}, ValueError, "joint_ordering 'sideways'.*'dfs'"),
        ({"up_axis": "w"}, ValueError, "axis 'w'.*'X'"),
        ({"parent_body": 3}, IndexError, "parent_body 3"),
        ({"mesh_maxhullvert": 2}, ValueError, "mesh_maxhullvert 2.*8"),
        ({"floating": "no"}, TypeError, r"floating.*True.*False.*'no'"),
        ({"enable_self_collisions": None}, TypeError, r"enable_self_collisions.*None"),
        ({"package_dirs": 5}, TypeError, r"package_dirs.*5"),
        ({"keyframe": 1.5}, TypeError, r"keyframe.*1.5"),
        ({"keyframe": "x"}, KeyError, "keyframe.*'x'"),
        ({"floating": True}, ValueError, "floating.*'a'.*hinge"),
        ({"base_joint": {}}, ValueError, "base_joint.*'joint_type'"),
        ({"skip_equality_constraints": 2}, TypeError, "skip_equality_constraints.*True.*False.*2"),
    ],
)
def test_wrong_arguments(options, error, words):
    with pytest.raises(error, match=words):
        ModelBuilder().add_mjcf(model(""), **options)


def test_several_roots_have_no_common_base():
    text = '<mujoco><worldbody><body><geom size="1"/></body><body><geom size="1"/></body></worldbody></mujoco>'
    with pytest.raises(ValueError, match=r"2 bodies.*floating"):
        ModelBuilder().add_mjcf(text, floating=True)


def test_an_error_while_building_leaves_the_builder_as_it_was():
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder.add_mjcf("\n".join(GOOD))
        before = {column.name: copy.deepcopy(getattr(builder, column.name)) for column in COLUMNS}
        pairs, tendons = set(builder.shape_collision_filter_pairs), list(builder.tendons)
        base = {"joint_type": JointType.D6, "linear_axes": ["q"]}
        with pytest.raises(ValueError, match="joint 'm/base_joint'"):
            builder.add_mjcf(
                '<mujoco model="m"><option gravity="1 2 3"/><worldbody><body><geom size="1"/></body></worldbody></mujoco>',
                base_joint=base,
            )
    assert {column.name: getattr(builder, column.name) for column in COLUMNS} == before
    assert set(builder.shape_collision_filter_pairs) == pairs and builder.tendons == tendons
    assert builder.gravity == (0.0, 0.0, -9.81)
