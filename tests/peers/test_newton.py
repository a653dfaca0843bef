"""Small stages read by newton's importer and by newton_like: bodies, masses, joint frames, limits, drives and collision filters."""

import itertools
import warnings

import numpy as np
import pytest

pytest.importorskip("pxr")
pytest.importorskip("newton_usd_schemas")
pytest.importorskip("newton")
import newton
from pxr import Sdf, Usd

from newton_like import JointType, ModelBuilder, ShapeFlags
from tests.support.usd_stages import text

BODY = '(prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])'
SOLID = '(prepend apiSchemas = ["PhysicsCollisionAPI"])'
WEIGHED = '(prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMassAPI"])'
HULL = (
    'def Mesh "m" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"]) {\n'
    "point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]\nint[] faceVertexCounts = [3, 3, 3, 3]\n"
    'int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]\nuniform token physics:approximation = "convexHull" }'
)
ABOUT = "float3 physics:diagonalInertia = (1, 2, 2.5)\nfloat physics:mass = 2\n"


def ops(*entries: str) -> str:
    """Transform ops, in this order."""
    names = [entry.split(" = ")[0].split(" ")[-1] for entry in entries]
    return "\n".join(
        entry for entry in entries if " = " in entry
    ) + f"\nuniform token[] xformOpOrder = {names}\n".replace("'", '"')


def under(*entries: str) -> str:
    place = ops("double3 xformOp:translate = (1, 0.5, 0)", "float xformOp:rotateZ = 30")
    return f'def Xform "g" {{ {ops(*entries)}def Xform "a" {BODY} {{ {ABOUT}{place} }} }}'


MOVE = "double3 xformOp:translate = (1, 2, 3)"
BODIES = {
    "explicit": f'def Xform "a" {BODY} {{ {ABOUT}point3f physics:centerOfMass = (0.1, 0.2, 0.3)\n'
    "quatf physics:principalAxes = (0.9238795, 0, 0.3826834, 0) }",
    "density": f'def Xform "a" {BODY} {{ float physics:density = 500\ndef Cube "c" {SOLID} {{ double size = 0.4 }} '
    f'def Sphere "s" {SOLID} {{ double radius = 0.3\n{ops(MOVE)} }} }}',
    "of shapes": f'def Xform "a" {BODY} {{ def Cube "c" {WEIGHED} {{ double size = 0.4\nfloat physics:mass = 3 }} '
    f'def Capsule "s" {WEIGHED} {{ double radius = 0.3\nuniform token axis = "X"\nfloat physics:density = 200\n{ops(MOVE)} }} }}',
    "mass and shapes": f'def Xform "a" {BODY} {{ float physics:mass = 5\ndef Cylinder "c" {SOLID} {{ double radius = 0.4 }} '
    f'def Cone "s" {SOLID} {{ double radius = 0.3 }} }}',
    "uneven scale": 'def Cube "a" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {'
    f"{ops(MOVE, 'float3 xformOp:rotateXYZ = (10, 20, 30)', 'float3 xformOp:scale = (1, 2, 0.5)')} }}",
    "mirrored hull": f'def Xform "a" {BODY} {{ {ops("float3 xformOp:scale = (-1, 1, 1)")}{HULL} }}',
    "mirrored group": under("float3 xformOp:scale = (1, -1, 1)"),
    "pivot": under(
        MOVE,
        "double3 xformOp:translate:p = (0.5, 0, 0)",
        "float3 xformOp:rotateZYX = (10, 20, 30)",
        "!invert!xformOp:translate:p",
    ),
    "matrix": under("matrix4d xformOp:transform = ((0,1,0,0), (-1,0,0,0), (0,0,1,0), (3,4,5,1))"),
    "turn first": under("quatf xformOp:orient = (0.5, 0.5, -0.5, 0.5)", MOVE),
    "inverse": under("float xformOp:rotateY = 30", MOVE, "!invert!xformOp:rotateY"),
    **{
        f"rotate{''.join(order)}": under(MOVE, f"float3 xformOp:rotate{''.join(order)} = (10, 20, 30)")
        for order in itertools.permutations("XYZ")
    },
    "velocity": f'def Xform "a" {BODY} {{ {ABOUT}vector3f physics:velocity = (1, 2, 3)\n'
    f"vector3f physics:angularVelocity = (90, 0, 20)\n{ops('float xformOp:rotateZ = 90')} }}",
    "kinematic": f'def Xform "a" {BODY} {{ {ABOUT}bool physics:kinematicEnabled = 1 }}',
}


def both(source: str):
    """Our builder and newton's."""
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.ImportFromString(source)
    stage = Usd.Stage.Open(layer)
    builders = ModelBuilder(), newton.ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for builder in builders:
            builder.add_usd(stage)
    return builders


def assert_same(ours, theirs, name):
    """newton computes in float32, some products deep."""
    ours, theirs = (np.array([np.array(v, dtype=float).reshape(-1) for v in values]) for values in (ours, theirs))
    if name in ("body_q", "joint_X_p", "joint_X_c"):
        theirs[:, 3:] *= np.sign(np.sum(ours[:, 3:] * theirs[:, 3:], axis=1, keepdims=True))
    np.testing.assert_allclose(np.clip(theirs, -1e10, 1e10), ours, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name):
    ours, theirs = both(text(BODIES[name]))
    assert ours.body_label == theirs.body_label
    for field in ("body_mass", "body_com", "body_inertia", "body_q", "body_qd"):
        assert_same(getattr(ours, field), getattr(theirs, field), field)


D6 = [f"{axis}{letter}" for axis in ("trans", "rot") for letter in "XYZ"]
JOINTS = {
    "Revolute": 'uniform token physics:axis = "Y"\nfloat physics:lowerLimit = -30\nfloat physics:upperLimit = 60\n'
    "float drive:angular:physics:stiffness = 10\nfloat drive:angular:physics:damping = 1\n"
    "float drive:angular:physics:targetPosition = 20\nfloat drive:angular:physics:maxForce = 7",
    "Prismatic": 'uniform token physics:axis = "X"\nfloat physics:lowerLimit = -3\nfloat physics:upperLimit = 6\n'
    "float drive:linear:physics:stiffness = 10\nfloat drive:linear:physics:targetVelocity = 2",
    "Spherical": "",
    "Fixed": "",
    "Distance": "float physics:minDistance = 0.1\nfloat physics:maxDistance = 2",
    "": "\n".join(
        f"float limit:{axis}:physics:low = {-0.5 if axis.endswith('Z') else 1}\n"
        f"float limit:{axis}:physics:high = {0.7 if axis.endswith('Z') else -1}"
        for axis in D6
    )
    + "\nfloat drive:rotZ:physics:stiffness = 3\nfloat drive:transZ:physics:damping = 4",
}


@pytest.mark.parametrize("kind", JOINTS)
def test_joints(kind):
    schemas = [f"PhysicsDriveAPI:{axis}" for axis in ("angular", "linear", "rotZ", "transZ")]
    schemas = {
        "Revolute": schemas[:1],
        "Prismatic": schemas[1:2],
        "": [f"PhysicsLimitAPI:{a}" for a in D6] + schemas[2:],
    }.get(kind, [])
    bodies = f'def Xform "a" {BODY} {{ {ABOUT} }} def Xform "b" {BODY} {{ {ABOUT}{ops("double3 xformOp:translate = (1, 0, 0)")} }}'
    applied = f"(prepend apiSchemas = {schemas})".replace("'", '"') if schemas else ""
    joint = (
        f'def Physics{kind}Joint "j" {applied} {{ rel physics:body0 = </R/a>\nrel physics:body1 = </R/b>\n'
        f"point3f physics:localPos0 = (0.4, 0, 0)\npoint3f physics:localPos1 = (-0.6, 0, 0)\n{JOINTS[kind]} }}"
    )
    held = 'def PhysicsFixedJoint "w" { rel physics:body1 = </R/a> }'
    ours, theirs = both(
        text(f'def Xform "R" (prepend apiSchemas = ["PhysicsArticulationRootAPI"]) {{ {bodies}{held}{joint} }}')
    )
    assert len(ours.joint_type) == len(theirs.joint_type) == 2
    i, j = (next(n for n, label in enumerate(b.joint_label) if label.endswith("j")) for b in (ours, theirs))
    assert JointType(ours.joint_type[i]).name == newton.JointType(theirs.joint_type[j]).name
    for field in ("joint_X_p", "joint_X_c"):
        assert_same([getattr(ours, field)[i]], [getattr(theirs, field)[j]], field)
    if kind in ("Revolute", "Prismatic", ""):
        parts = [
            slice([*b.joint_qd_start, b.joint_dof_count][n], [*b.joint_qd_start, b.joint_dof_count][n + 1])
            for b, n in ((ours, i), (theirs, j))
        ]
        for name in (
            "axis",
            "limit_lower",
            "limit_upper",
            "target_ke",
            "target_kd",
            "effort_limit",
            "target_qd",
            "armature",
            "friction",
        ):
            assert_same(getattr(ours, f"joint_{name}")[parts[0]], getattr(theirs, f"joint_{name}")[parts[1]], name)


def cubes(names: str, inside: str = "", schemas: str = "") -> str:
    return "".join(
        f'def Cube "{name}" (prepend apiSchemas = [{schemas}"PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {{ {inside} }}\n'
        for name in names
    )


def group(name: str, members: str, filtered: str = "", inverted: int = 0, merged: str = "") -> str:
    return (
        f'def PhysicsCollisionGroup "{name}" (prepend apiSchemas = ["CollectionAPI:colliders"]) {{\n'
        f"rel collection:colliders:includes = [{', '.join(f'</{m}>' for m in members)}]\n"
        f"rel physics:filteredGroups = [{', '.join(f'</{f}>' for f in filtered)}]\n"
        f"bool physics:invertFilteredGroups = {inverted}\n"
        + (f'string physics:mergeGroup = "{merged}"\n' if merged else "")
        + "}\n"
    )


JOINED = (
    'def PhysicsRevoluteJoint "j" {{ rel physics:body0 = </a>\nrel physics:body1 = </b>\nbool physics:collisionEnabled = {0} }}\n'
    'def PhysicsRevoluteJoint "k" {{ rel physics:body0 = </b>\nrel physics:body1 = </c> }}\n'
    'def PhysicsRevoluteJoint "l" {{ rel physics:body0 = </a>\nrel physics:body1 = </c>\nbool physics:excludeFromArticulation = 1 }}'
)
TOUCHING = {
    "pairs": cubes("a", "rel physics:filteredPairs = [</b>, </c>]", '"PhysicsFilteredPairsAPI", ') + cubes("bcd"),
    "groups": cubes("abcd") + group("g", "ab", "h") + group("h", "c"),
    "within a group": cubes("abcd") + group("g", "ab", "g"),
    "inverted": cubes("abcd") + group("g", "ab", "h", 1) + group("h", "c") + group("k", "d"),
    "merged": cubes("abcd") + group("g", "a", "h", 0, "m") + group("i", "b", "", 0, "m") + group("h", "c"),
    "merged, inverted": cubes("abcd") + group("g", "a", "h", 1, "m") + group("i", "b", "k", 1, "m") + group("h", "c") + group("k", "d"),
    "joined": cubes("abcd") + JOINED.format(0),
    "joined, and may touch": cubes("abcd") + JOINED.format(1),
    "variant": 'def Xform "v" (variants = { string k = "y" }\nprepend variantSets = "k") { variantSet "k" = { "x" { '
    + cubes("a") + ' } "y" { ' + cubes("bc") + " } } }",
    "instances": 'def Xform "proto" { ' + cubes("ab") + " }\n"
    + "".join(f'def Xform "i{k}" (prepend references = </proto>\ninstanceable = true) {{}}\n' for k in range(2)),
}  # fmt: skip


def touching(builder, flags) -> set[tuple[str, str]]:
    """Labels of shapes of different bodies that may touch: by their flags, groups and filters."""
    forbidden = {tuple(sorted(pair)) for pair in builder.shape_collision_filter_pairs}
    found = set()
    for i, j in itertools.combinations(range(len(builder.shape_label)), 2):
        a, b = builder.shape_collision_group[i], builder.shape_collision_group[j]
        alike = a == b if a > 0 and b > 0 else a != b if a < 0 and b < 0 else bool(a and b)
        collide = all(int(builder.shape_flags[n]) & int(flags.COLLIDE_SHAPES) for n in (i, j))
        if collide and alike and builder.shape_body[i] != builder.shape_body[j] and (i, j) not in forbidden:
            found.add(tuple(sorted((builder.shape_label[i], builder.shape_label[j]))))
    return found


@pytest.mark.parametrize("name", TOUCHING)
def test_what_may_touch(name):
    ours, theirs = both(text(TOUCHING[name]))
    found = touching(ours, ShapeFlags)
    assert found and found == touching(theirs, newton.ShapeFlags)
    assert sorted(ours.body_label) == sorted(theirs.body_label)
