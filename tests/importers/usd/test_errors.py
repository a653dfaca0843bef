"""The USD importer: errors name file, prim and cure, and the builder does not change."""

import copy
import re

import numpy as np
import pytest

pytest.importorskip("pxr")
from pxr import Usd

from newton_like.importers.usd import UsdWarning
from newton_like.importers.xml_source import ImportFileError
from newton_like.model.builder.builder import ModelBuilder
from newton_like.model.columns import COLUMNS
from newton_like.types import JointType
from tests.support.usd_stages import random_robot, text, write_robot

BODY = '(prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])'
SOLID = '(prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMassAPI"])'
MASS = "float physics:mass = 1\nfloat3 physics:diagonalInertia = (1, 1, 1)"
TWO = f'def Xform "a" {BODY} {{ {MASS} }}\ndef Xform "b" {BODY} {{ {MASS} }}\n'
ENDS = "rel physics:body0 = </a>\nrel physics:body1 = </b>\n"
DRIVE = '(prepend apiSchemas = ["PhysicsDriveAPI:angular"])'


def joint(kind: str, inside: str, api: str = "") -> str:
    return f'{TWO}def Physics{kind}Joint "j" {api} {{ {ENDS}{inside} }}'


def mesh(inside: str) -> str:
    return f'def Mesh "m" {SOLID} {{ {inside} }}'


WRONG = [
    (f'def Xform "a" {BODY} {{ float physics:mass = -1 }}', ["</a>", "physics:mass -1"]),
    (f'def Xform "a" {BODY} {{ float physics:density = -1 }}', ["</a>", "physics:density -1"]),
    (f'def Xform "a" {BODY} {{ float physics:mass = nan }}', ["</a>", "physics:mass", "NaN"]),
    (f'def Xform "a" {BODY} {{ float physics:mass = inf }}', ["</a>", "physics:mass", "inf", "1e+30"]),
    (
        f'def Xform "a" {BODY} {{ point3f physics:centerOfMass = (nan, 0, 0) }}',
        ["</a>", "physics:centerOfMass", "[nan, 0.0, 0.0]"],
    ),
    (
        f'def Xform "a" {BODY} {{ float3 physics:diagonalInertia = (1, -1, 1) }}',
        ["</a>", "physics:diagonalInertia [1.0, -1.0, 1.0]"],
    ),
    (
        f'def Xform "a" {BODY} {{ {MASS}\nvector3f physics:velocity = (inf, 0, 0) }}',
        ["</a>", "physics:velocity", "[inf, 0.0, 0.0]"],
    ),
    (
        f'def Xform "a" {BODY} {{ float3 xformOp:scale = (1, 0, 1)\nuniform token[] xformOpOrder = ["xformOp:scale"] }}',
        ["</a>", "scale", "0"],
    ),
    (f'def Cube "c" {SOLID} {{ double size = 0 }}', ["</c>", "size", "0", "Cube"]),
    (f'def Sphere "c" {SOLID} {{ double radius = -2 }}', ["</c>", "radius -2"]),
    (f'def Cylinder "c" {SOLID} {{ uniform token axis = "W" }}', ["</c>", "axis 'W'", "'X'", "'Y'", "'Z'"]),
    (
        f'def Capsule_1 "c" {SOLID} {{ double radiusTop = 0\ndouble radiusBottom = 0 }}',
        ["</c>", "radiusBottom", "radiusTop", "0"],
    ),
    (
        f'def Cube "c" {SOLID} {{ float newton:contactMargin = 1\nfloat newton:contactGap = -1 }}',
        ["</c>", "gap -1"],
    ),
    (mesh(""), ["</m>", "points", "faces"]),
    (
        mesh(
            "point3f[] points = [(0,0,0), (1,0,0), (0,1,0)]\nint[] faceVertexCounts = [4]\nint[] faceVertexIndices = [0,1,2]"
        ),
        ["</m>", "faceVertexCounts", "4", "3 faceVertexIndices"],
    ),
    (
        mesh(
            "point3f[] points = [(0,0,0), (1,0,0), (0,1,0)]\nint[] faceVertexCounts = [3]\nint[] faceVertexIndices = [0,1,9]"
        ),
        ["</m>", "faceVertexIndices", "9", "3 points"],
    ),
    (
        mesh(
            "point3f[] points = [(nan,0,0), (1,0,0), (0,1,0)]\nint[] faceVertexCounts = [3]\nint[] faceVertexIndices = [0,1,2]"
        ),
        ["</m>", "points", "finite"],
    ),
    (
        f'def Points "p" {SOLID} {{ point3f[] points = [(0,0,0), (1,0,0)]\nfloat[] widths = [1, 2, 3] }}',
        ["</p>", "2 points", "3 widths"],
    ),
    (
        joint("Revolute", "float physics:lowerLimit = 2\nfloat physics:upperLimit = 1"),
        ["</j>", "lower limit 2", "upper limit 1"],
    ),
    (joint("Revolute", 'uniform token physics:axis = "Q"'), ["</j>", "physics:axis 'Q'"]),
    (
        joint("Revolute", "quatf physics:localRot0 = (0, 0, 0, 0)"),
        ["</j>", "physics:localRot0", "(0, 0, 0, 0)", "(1, 0, 0, 0)"],
    ),
    (joint("Revolute", "point3f physics:localPos1 = (nan, 0, 0)"), ["</j>", "physics:localPos1", "[nan, 0.0, 0.0]"]),
    (
        joint("Revolute", "float drive:angular:physics:stiffness = -1", DRIVE),
        ["</j>", "drive:angular:physics:stiffness -1"],
    ),
    (
        joint("Revolute", "float drive:angular:physics:maxForce = -1", DRIVE),
        ["</j>", "drive:angular:physics:maxForce -1"],
    ),
    (
        joint("Revolute", 'uniform token drive:angular:physics:type = "magic"', DRIVE),
        ["</j>", "drive:angular:physics:type 'magic'", "'force'", "'acceleration'"],
    ),
    (joint("Revolute", "float newton:armature = -1"), ["</j>", "newton:armature -1"]),
    (
        joint("Distance", "float physics:minDistance = 2\nfloat physics:maxDistance = 1"),
        ["</j>", "physics:minDistance 2", "physics:maxDistance 1"],
    ),
    (joint("Revolute", "rel newton:mimicJoint = </j>"), ["</j>", "mimic", "itself"]),
    (joint("Revolute", "rel newton:mimicJoint = </nobody>"), ["</j>", "mimic", "</nobody>"]),
    (f'{TWO}def PhysicsFixedJoint "j" {{ rel physics:body0 = </nobody> }}', ["</j>", "</nobody>", "physics:body0"]),
    (f'{TWO}def PhysicsFixedJoint "j" {{ rel physics:body0 = [</a>, </b>] }}', ["</j>", "physics:body0", "2 prims"]),
    (
        f'{TWO}def PhysicsFixedJoint "w" {{ rel physics:body1 = </b> }}\ndef PhysicsJoint "j" '
        f'(prepend apiSchemas = ["PhysicsLimitAPI:transX"]) {{ {ENDS} }}',
        ["</j>", "physics:body0", "localPos", "localRot"],
    ),
    ('def PhysicsScene "s" { float physics:gravityMagnitude = inf }', ["</s>", "physics:gravityMagnitude", "-inf"]),
    (
        'def Material "m" (prepend apiSchemas = ["PhysicsMaterialAPI"]) { float physics:restitution = 2 }\n'
        'def Cube "c" (prepend apiSchemas = ["PhysicsCollisionAPI", "MaterialBindingAPI"]) { rel material:binding = </m> }',
        ["</m>", "physics:restitution 2"],
    ),
]


@pytest.mark.parametrize(("body", "parts"), WRONG, ids=range(len(WRONG)))
@pytest.mark.filterwarnings("ignore::newton_like.importers.usd.UsdWarning")
def test_wrong_stages_name_file_prim_and_cure(body, parts):
    builder = ModelBuilder()
    with pytest.raises(ValueError) as caught:
        builder.add_usd(text(body))
    for part in ["<text>", *parts]:
        assert part in str(caught.value), str(caught.value)
    assert builder.body_count == builder.shape_count == 0


@pytest.mark.parametrize(
    ("head", "part"),
    [
        ("metersPerUnit = 0", "metersPerUnit.*0"),
        ("metersPerUnit = -1", "metersPerUnit.*-1"),
        ("metersPerUnit = 1\nkilogramsPerUnit = 0", "kilogramsPerUnit.*0"),
        ('metersPerUnit = 1\nupAxis = "W"', "upAxis.*'W'.*'Y'"),
    ],
)
def test_wrong_metadata(head, part):
    with pytest.raises(ImportFileError, match=part):
        ModelBuilder().add_usd(text('def Cube "c" {}', head))


def test_order_of_the_stage_may_not_be_that_of_a_tree():
    joints = (
        'def PhysicsFixedJoint "x" { rel physics:body0 = </b>\nrel physics:body1 = </c> }\n'
        'def PhysicsFixedJoint "y" { rel physics:body0 = </a>\nrel physics:body1 = </b> }'
    )
    source = text(f'{TWO}def Xform "c" {BODY} {{ {MASS} }}\n{joints}')
    with pytest.raises(ImportFileError, match=r"</x>.*joint_ordering='dfs'"):
        ModelBuilder().add_usd(source, joint_ordering=None)


def test_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.usda'"):
        ModelBuilder().add_usd(tmp_path / "nowhere.usda")
    for name, content in (
        ("a.usda", b"no usd"),
        ("b.usdc", b"PXR-USDC" + bytes(200)),
        ("c.xyz", b"<robot/>"),
        ("d.usdz", b"PK"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ImportFileError, match=rf"{re.escape(name)}.*USD"):
            ModelBuilder().add_usd(tmp_path / name)
    with pytest.raises(ImportFileError, match="USD"):
        ModelBuilder().add_usd("#usda 1.0\ndef Xform {")
    with pytest.raises(TypeError, match=r"Usd\.Stage.*5"):
        ModelBuilder().add_usd(5)


@pytest.mark.parametrize(
    ("options", "error", "part"),
    [
        ({"root_path": "/nowhere"}, ValueError, "root_path '/nowhere'"),
        ({"root_path": "a b"}, ValueError, "root_path 'a b'.*'/World'"),
        ({"root_path": 3}, TypeError, "root_path.*3"),
        ({"ignore_paths": ["("]}, ValueError, r"ignore_paths.*'\('"),
        ({"ignore_paths": [3]}, TypeError, "ignore_paths.*3"),
        ({"joint_ordering": "up"}, ValueError, "joint_ordering 'up'.*'dfs'"),
        ({"mesh_maxhullvert": 3}, ValueError, "mesh_maxhullvert 3.*8"),
        ({"floating": "yes"}, TypeError, "floating.*'yes'"),
        ({"hide_visuals": "False"}, TypeError, "hide_visuals.*'False'"),
        ({"enable_self_collisions": "no"}, TypeError, "enable_self_collisions.*'no'"),
        ({"parent_body": 3}, IndexError, "parent_body 3"),
        ({"floating": True, "base_joint": {}}, ValueError, "floating.*base_joint"),
        ({"base_joint": {"joint_type": JointType.FREE, "wheel": 1}}, TypeError, "base_joint.*'wheel'"),
        ({"time": "now"}, TypeError, "time.*'now'"),
        ({"xform": [1, 2]}, (TypeError, ValueError), "xform"),
    ],
)
def test_arguments(options, error, part):
    with pytest.raises(error, match=part):
        ModelBuilder().add_usd(text(TWO), **options)


def test_an_error_leaves_the_builder_as_it_was(rng):
    robot = random_robot(rng, 4)
    stage = write_robot(robot).stage
    builder = ModelBuilder()
    builder.add_usd(stage)
    builder.add_ground_plane()
    before = {column.name: copy.deepcopy(getattr(builder, column.name)) for column in COLUMNS}
    gravity, pairs = builder.gravity, set(builder.shape_collision_filter_pairs)
    prim = stage.GetPrimAtPath("/Robot/joint_2")
    prim.CreateRelationship("newton:mimicJoint").SetTargets(["/nobody"])
    with pytest.raises(ValueError, match="/nobody"):
        builder.add_usd(stage)
    for name, values in before.items():
        assert getattr(builder, name) == values, name
    assert builder.gravity == gravity and set(builder.shape_collision_filter_pairs) == pairs


DAMAGE = ["nan", "inf", "-1", "0", "1e30", '"x"', "(0, 0, 0)", "[]", "</nowhere>", ""]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_damaged_stages_give_a_model_or_one_of_our_errors(rng):
    """Random values in place of those of a good file."""
    stage = write_robot(random_robot(rng, 3)).stage
    lines = stage.GetRootLayer().ExportToString().split("\n")
    values = [i for i, line in enumerate(lines) if " = " in line and "apiSchemas" not in line]
    outcomes = []
    for _ in range(150):
        damaged = list(lines)
        for number in rng.choice(values, size=int(rng.integers(1, 3)), replace=False):
            head, _, _ = damaged[number].partition(" = ")
            damaged[number] = f"{head} = {rng.choice(DAMAGE)}"
        builder = ModelBuilder()
        try:
            builder.add_usd("\n".join(damaged))
            builder.finalize(device="cpu")
            outcomes.append(True)
        except (ValueError, FileNotFoundError) as error:
            assert str(error)
            outcomes.append(False)
    assert np.any(outcomes) and not np.all(outcomes)


def test_good_stages_are_not_warned_about(rng, recwarn):
    ModelBuilder().add_usd(write_robot(random_robot(rng, 4)).stage)
    assert not [w for w in recwarn if issubclass(w.category, UsdWarning)]
    assert Usd.Stage is not None
