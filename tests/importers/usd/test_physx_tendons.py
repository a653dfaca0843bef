"""Tendons of PhysX in USD stages: lengths, forces, limits, units, names, and mistakes of files."""

import math
import re
import warnings

import numpy as np
import pytest
import warp as wp

pytest.importorskip("pxr")

from newton_like import dynamics, eval_fk
from newton_like.articulation.tendons import TendonGroup
from newton_like.geometry.transforms import transform_point
from newton_like.importers.usd import UsdWarning
from newton_like.importers.xml_source import ImportFileError
from newton_like.model.actuators import Actuator
from newton_like.model.builder.builder import ModelBuilder
from newton_like.model.tendons import ARRAYS
from newton_like.solvers import SolverFeatherstone
from newton_like.usd import Simulation, write
from tests.support.usd_stages import text

DEGREE = math.pi / 180.0
FINGER = dict(
    hinge=("AxisRoot:t", "float[] @t:gearing = [-0.00805]"),
    knuckle=("Axis:t", "float[] @t:gearing = [0.00705]"),
)


def part(kind: str, name: str, schemas, lines: str) -> str:
    own, more = lines if isinstance(lines, tuple) else ("", lines)
    listed = ", ".join(f'"{one}"' for one in [*schemas, *(f"PhysxTendon{one}" for one in map(_schema, own.split()))])
    applied = f"(prepend apiSchemas = [{listed}])" if listed else ""
    return f'def {kind} "{name}" {applied} {{\n{more.replace("; ", chr(10)).replace("@", "physxTendon:")}\n}}\n'


def _schema(token: str) -> str:
    kind, mark, name = token.partition(":")
    return f"{kind}API{mark}{name}"


def robot(root: str = "R", meters: float = 1.0, scale=(1, 1, 1), **parts) -> str:
    """The text of a robot: a base at the world, a hinge about z at x = 1, a second one at x = 2, and a slide along x. Each link has mass 1
    and moments 0.1.

    Args:
        meters: metres of the stage's unit of length.
        scale: scale of the slider.
        parts: schemas of tendons, and attributes with @ for their namespace, of the links base, upper, lower and slider, and of the joints
            hinge, knuckle, slide and fixed.
    """
    links = {"base": 0.0, "upper": 1.0, "lower": 2.0, "slider": 3.0}
    body = ("PhysicsRigidBodyAPI", "PhysicsMassAPI")
    result = ""
    for name, at in links.items():
        schemas, lines = parts.get(name, ("", ""))
        place = f"double3 xformOp:translate = ({at / meters}, 0, 0); double3 xformOp:scale = {scale if name == 'slider' else (1, 1, 1)}; "
        place += 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]; '
        place += f"float physics:mass = 1; float3 physics:diagonalInertia = ({0.1 / meters**2}, {0.1 / meters**2}, {0.1 / meters**2}); "
        result += part("Xform", name, body, (schemas, place + lines))
    schemas, lines = parts.get("fixed", ("", ""))
    result += part("PhysicsFixedJoint", "fixed", (), (schemas, f"rel physics:body1 = </{root}/base>; {lines}"))
    joints = [
        ("hinge", "Revolute", "Z", "base", "upper"),
        ("knuckle", "Revolute", "Z", "upper", "lower"),
        ("slide", "Prismatic", "X", "lower", "slider"),
    ]
    for name, kind, axis, one, two in joints:
        schemas, lines = parts.get(name, ("", ""))
        frame = f"rel physics:body0 = </{root}/{one}>; rel physics:body1 = </{root}/{two}>; "
        frame += f"point3f physics:localPos0 = ({1 / meters}, 0, 0); "
        result += part(f"Physics{kind}Joint", name, (), (schemas, f'token physics:axis = "{axis}"; {frame}{lines}'))
    return part("Xform", root, ("PhysicsArticulationRootAPI",), result)


def attached(name: str, at=(0, 0, 0), parent: str = "", link: str = "", more: str = "", root: str = "R") -> str:
    """Attributes of an attachment."""
    lines = f"point3f @{name}:localPos = {tuple(at)}; "
    if parent:
        lines += f'token @{name}:parentAttachment = "{parent}"; rel @{name}:parentLink = </{root}/{link}>; '
    return lines + "; ".join(f"float @{name}:{line}" for line in more.split("; ") if line)


def imported(*robots: str, meters: float = 1.0, kilograms: float = 1.0, **options):
    builder = ModelBuilder(gravity=0.0)
    head = f'metersPerUnit = {meters}\nkilogramsPerUnit = {kilograms}\nupAxis = "Z"'
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UsdWarning)
        return builder, builder.add_usd(text("".join(robots), head), **options)


def at(builder, q=(0.0, 0.0, 0.0), qd=(0.0, 0.0, 0.0)):
    """The model, and a state with coordinates and velocities of hinge, knuckle and slide."""
    builder.joint_q[:], builder.joint_qd[:] = q, qd
    # it exerts no force; with it the kernel is that of the tests of actuators
    builder.add_actuator(Actuator(label="idle", transmission="joint", target=builder.joint_label.index("/R/hinge")))
    model = builder.finalize("cpu", dtype=wp.float64)
    return model, model.state()


def lengths(model, state) -> np.ndarray:
    return dynamics.tendon_lengths(model, state).numpy()[0]


def forces(model, state, dt: float = 1.0e-6):
    """Forces of the tendons, and those along coordinates from the acceleration of a robot at rest, in a short step."""
    solver = SolverFeatherstone(model, evaluator="general", width=1)
    mass, before = dynamics.mass_matrix(model, state).numpy()[0], state.joint_qd.numpy().copy()
    solver.step(state, state, None, dt=dt)
    return solver.tendon_forces().numpy(), mass @ (state.joint_qd.numpy() - before) / dt


def test_the_length_of_a_fixed_tendon_is_the_sum_of_gearings_times_degrees_and_lengths(rng):
    g, q, offset = rng.normal(size=3).astype(np.float32), rng.normal(size=3), np.float32(rng.normal())
    lines = [f"float[] @t:gearing = [{x}, 77]" for x in g]
    builder, report = imported(
        robot(
            hinge=("AxisRoot:t", f"{lines[0]}; float @t:offset = {offset}"),
            knuckle=("Axis:t", lines[1]),
            slide=("Axis:t", lines[2]),
        )
    )
    model, state = at(builder, q)
    expected = float(offset) + g.astype(float) @ (q / [DEGREE, DEGREE, 1.0])
    np.testing.assert_allclose(lengths(model, state), [expected], rtol=1e-9, atol=1e-9)
    assert report.remarks == {} and report.not_understood == {}
    assert [record.path for record in report.tendons] == ["/R/hinge", "/R/knuckle", "/R/slide"]


def test_an_axis_without_gearing_has_one_and_one_without_a_unit_of_length_none():
    """Gearings of 1 are the default, and a root with gearing 0 is only a common ancestor."""
    builder, _ = imported(
        robot(hinge=("AxisRoot:t", "float[] @t:gearing = [0]"), knuckle=("Axis:t", ""), slide=("Axis:t", ""))
    )
    knuckle, slide = (builder.joint_label.index(f"/R/{name}") for name in ("knuckle", "slide"))
    (tendon,) = builder.tendons
    np.testing.assert_allclose(tendon.joints, [(knuckle, 0, 1.0 / DEGREE), (slide, 0, 1.0)])
    assert (tendon.limits, tendon.rest_length, tendon.limit_ke) == (None, (0.0, 0.0), 0.0)


@pytest.mark.parametrize(("meters", "kilograms"), [(1.0, 1.0), (0.01, 1.0), (0.01, 0.001)])
def test_numbers_of_fixed_tendons_have_the_units_of_the_stage(meters, kilograms):
    root = "float[] @t:gearing = [2]; float @t:stiffness = 3; float @t:damping = 4; "
    root += "float @t:limitStiffness = 5; float @t:offset = 6; float @t:restLength = 7; "
    root += "float @t:lowerLimit = -8; float @t:upperLimit = 9"
    builder, _ = imported(
        robot(meters=meters, hinge=("AxisRoot:t", root), slide=("Axis:t", "")), meters=meters, kilograms=kilograms
    )
    (tendon,) = builder.tendons
    np.testing.assert_allclose([c for _, _, c in tendon.joints], [2.0 * meters / DEGREE, 1.0])
    np.testing.assert_allclose(
        [tendon.offset, *tendon.rest_length, *tendon.limits], meters * np.array([6, 7, 7, -8, 9])
    )
    np.testing.assert_allclose([tendon.stiffness, tendon.damping, tendon.limit_ke], kilograms * np.array([3, 4, 5]))


def test_spring_and_damper_pull_at_each_joint_by_its_gearing(rng):
    g, q, speed = (0.01, -0.02), rng.uniform(0.2, 0.6, 3), 0.3
    root = f"float[] @t:gearing = [{g[0]}]; float @t:stiffness = 40; float @t:damping = 3; "
    root += "float @t:restLength = 0.1"
    parts = dict(hinge=("AxisRoot:t", root), knuckle=("Axis:t", f"float[] @t:gearing = [{g[1]}]"))
    spring = -40.0 * ((g[0] * q[0] + g[1] * q[1]) / DEGREE - 0.1)
    found, along = forces(*at(imported(robot(**parts))[0], q))
    np.testing.assert_allclose(found, [spring], rtol=1e-3)
    np.testing.assert_allclose(along, spring * np.array([*g, 0.0]) / DEGREE, rtol=1e-3, atol=1e-3 * abs(spring))
    found, _ = forces(*at(imported(robot(**parts))[0], q, (0.0, speed, 0.0)))
    np.testing.assert_allclose(found, [spring - 3.0 * g[1] * speed / DEGREE], rtol=1e-3)


@pytest.mark.parametrize(("knuckle", "stiffness"), [(0.2, 30.0), (0.1, 30.0), (0.2, 0.0)])
def test_limits_are_springs_of_the_limit_stiffness(knuckle, stiffness):
    """A coupling of two joints of a finger as in the Shadow Hand; without a stiffness its limits have no effect."""
    limits = "; float @t:lowerLimit = -0.001; float @t:upperLimit = 0.001; "
    limits += f"float @t:limitStiffness = {stiffness}"
    parts = FINGER | {"hinge": (FINGER["hinge"][0], FINGER["hinge"][1] + limits)}
    model, state = at(imported(robot(**parts))[0], (0.1, knuckle, 0.0))
    length = (-0.00805 * 0.1 + 0.00705 * knuckle) / DEGREE
    np.testing.assert_allclose(lengths(model, state), [length], rtol=1e-6)
    beyond = length - np.clip(length, -0.001, 0.001)
    found, along = forces(model, state)
    np.testing.assert_allclose(found, [-stiffness * beyond], rtol=1e-3)
    expected = -stiffness * beyond * np.array([-0.00805, 0.00705, 0.0]) / DEGREE
    np.testing.assert_allclose(along, expected, rtol=1e-3, atol=1e-4)


def test_robots_with_tendons_of_the_same_name_have_their_own():
    robots = [robot(root, **FINGER) for root in ("R", "S")]
    builder, _ = imported(*robots)
    for root, tendon in zip("RS", builder.tendons, strict=True):
        joints = [builder.joint_label[index] for index, _, _ in tendon.joints]
        assert joints == [f"/{root}/hinge", f"/{root}/knuckle"]
        assert tendon.label == f"/{root}/hinge/t"


def test_a_robot_whose_axis_is_not_in_its_articulation_leaves_those_of_others():
    broken = FINGER | {"knuckle": (FINGER["knuckle"][0], FINGER["knuckle"][1] + "; bool physics:jointEnabled = 0")}
    builder, report = imported(robot("R", **FINGER), robot("S", **broken), robot("T", **FINGER))
    assert [tendon.label for tendon in builder.tendons] == ["/R/hinge/t", "/T/hinge/t"]
    assert [paths for told, paths in report.remarks.items() if "in no articulation" in told] == [["/S/hinge"]]


def test_of_two_roots_of_one_name_the_nearest_above_an_axis_counts():
    builder, _ = imported(robot(hinge=("AxisRoot:t", ""), knuckle=("AxisRoot:t", ""), slide=("Axis:t", "")))
    names = [[builder.joint_label[index] for index, _, _ in tendon.joints] for tendon in builder.tendons]
    assert names == [["/R/hinge"], ["/R/knuckle", "/R/slide"]]
    with pytest.raises(ImportFileError, match=r"</R/hinge>: .*'t'.*</R/knuckle>, </R/slide>.*rename"):
        imported(robot(hinge=("Axis:t", ""), knuckle=("AxisRoot:t", ""), slide=("AxisRoot:t", "")))


def test_names_are_those_of_the_instances():
    builder, _ = imported(
        robot(
            **FINGER,
            slide=("AxisRoot:u", ""),
            base=("AttachmentRoot:r", ""),
            upper=("AttachmentLeaf:l", attached("l", (1, 0, 0), "r", "base")),
        )
    )
    model, _ = at(builder)
    assert TendonGroup(model, np.array([0]), spatial=False).names == ["t", "u"]
    assert TendonGroup(model, np.array([0]), spatial=True).names == ["l"]


BRANCHED = dict(
    base=("AttachmentRoot:r", attached("r", (0.1, 0.2, 0.3),
          more="stiffness = 6; damping = 2; offset = 0.5; limitStiffness = 8; gearing = 9")),
    upper=("Attachment:m", attached("m", (0.3, 0.4, -0.1), "r", "base", "gearing = 2")),
    lower=("AttachmentLeaf:a", attached("a", (0.2, -0.1, 0.2), "m", "upper",
           "restLength = 1.5; lowerLimit = 1; upperLimit = 1.25")),
    slider=("AttachmentLeaf:b", attached("b", (-0.2, 0.1, 0), "m", "upper", "gearing = 0.25")),
)  # fmt: skip


def points(builder, state) -> dict:
    """Where the sites are, by the names of their attachments."""
    found = {}
    for label, body, pose in zip(builder.shape_label, builder.shape_body, builder.shape_transform, strict=True):
        if label.endswith("_site"):
            frame = state.body_q.numpy()[body]
            found[label[:-5].rpartition("/")[2]] = transform_point(frame, np.array(pose)[:3])
    return found


def test_each_leaf_is_a_tendon_with_the_distances_times_their_gearings(rng):
    builder, report = imported(robot(**BRANCHED))
    assert [tendon.label for tendon in builder.tendons] == ["/R/lower/a", "/R/slider/b"]
    model, state = at(builder, rng.normal(size=3))
    eval_fk(model, state.joint_q, state.joint_qd, state)
    p = points(builder, state)
    assert builder.shape_count == len(p) == 4
    c, s = np.cos(state.joint_q.numpy()[0]), np.sin(state.joint_q.numpy()[0])
    np.testing.assert_allclose(p["m"], [1.0 + 0.3 * c - 0.4 * s, 0.3 * s + 0.4 * c, -0.1], atol=1e-6)
    first, a, b = (np.linalg.norm(p[i] - p[j]) for i, j in ("rm", "ma", "mb"))
    np.testing.assert_allclose(lengths(model, state), [0.5 + 2.0 * first + a, 0.5 + 2.0 * first + 0.25 * b], rtol=1e-6)
    one, other = builder.tendons
    assert (one.rest_length, one.limits, one.stiffness, one.damping, one.limit_ke) == (
        (1.5, 1.5),
        (1.0, 1.25),
        6.0,
        2.0,
        8.0,
    )
    assert (other.rest_length, other.limits) == (None, None)
    (told,) = report.remarks
    assert "root and leaf" in told and report.remarks[told] == ["/R/lower", "/R/slider"]
    assert report.not_understood == {}


def test_a_negative_rest_length_is_the_length_at_the_start():
    parts = BRANCHED | {"slider": ("AttachmentLeaf:b", BRANCHED["slider"][1] + "; float @b:restLength = -1")}
    builder, _ = imported(robot(**parts))
    model, state = at(builder)
    start = lengths(model, state)[1]
    np.testing.assert_allclose([model.tendon_rest_lower.numpy()[1], model.tendon_rest_upper.numpy()[1]], start)
    found, _ = forces(model, state)
    np.testing.assert_allclose(found[1], 0.0, atol=1e-4)


def test_a_spring_between_two_links_pulls_along_their_distance():
    """The tip of the slide is 4 from the root, along the slide: gearing 2 halves the rest length and doubles the force."""
    parts = dict(
        base=("AttachmentRoot:r", attached("r", more="stiffness = 6")),
        slider=("AttachmentLeaf:l", attached("l", (1, 0, 0), "r", "base", "restLength = 7; gearing = 2")),
    )
    found, along = forces(*at(imported(robot(**parts))[0]))
    np.testing.assert_allclose(found, [-6.0 * (2.0 * 4.0 - 7.0)], rtol=1e-4)
    np.testing.assert_allclose(along, [0.0, 0.0, -12.0], rtol=1e-4, atol=1e-3)


def test_attachments_of_merged_links_keep_their_places():
    parts = dict(base=("AttachmentRoot:r", ""), lower=("AttachmentLeaf:l", attached("l", (0.5, 0.25, 0), "r", "base")))
    source = robot(**parts).replace('PhysicsRevoluteJoint "knuckle"', 'PhysicsFixedJoint "knuckle"')
    for merged in (False, True):
        builder, _ = imported(source, collapse_fixed_joints=merged)
        assert builder.body_count == 4 - merged
        model = builder.finalize("cpu")
        np.testing.assert_allclose(lengths(model, model.state()), [math.hypot(2.5, 0.25)], rtol=1e-6)


@pytest.mark.parametrize("meters", [1.0, 0.01])
def test_places_and_lengths_of_attachments_have_the_units_and_the_scale_of_the_link(meters):
    leaf = attached("l", (1, 1, 0), "r", "base", "restLength = 2; upperLimit = 3")
    source = robot(meters=meters, scale=(2, 3, 1), base=("AttachmentRoot:r", ""), slider=("AttachmentLeaf:l", leaf))
    builder, _ = imported(source, meters=meters)
    model, state = at(builder)
    expected = np.hypot(3.0 + 2.0 * meters, 3.0 * meters)
    np.testing.assert_allclose(lengths(model, state), [expected], rtol=1e-6)
    np.testing.assert_allclose(
        [builder.tendons[0].rest_length[0], builder.tendons[0].limits[1]], [2 * meters, 3 * meters]
    )


# Mistakes, and what is not built


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (dict(hinge=("AxisRoot:t", "float[] @t:gearing = []")), r"</R/hinge>: physxTendon:t:gearing is \[\].*one"),
        (dict(hinge=("AxisRoot:t", "float[] @t:gearing = [nan]")), "</R/hinge>: physxTendon:t:gearing .*finite"),
        (dict(hinge=("AxisRoot:t", "float @t:stiffness = -1")), "</R/hinge>: physxTendon:t:stiffness -1 "),
        (dict(hinge=("AxisRoot:t", "float @t:lowerLimit = 2; float @t:upperLimit = 1")), "</R/hinge>: .*lowerLimit 2 .*upperLimit 1 "),
        (dict(hinge=("AxisRoot:t", "rel @t:stiffness = </R>")), "</R/hinge>: .*stiffness.*attribute"),
        (dict(fixed=("AxisRoot:t", "")), "</R/fixed>: axis 't' .* 0 degrees"),
        (dict(base=("AttachmentRoot:r", ""), upper=("AttachmentLeaf:l", "")), "</R/upper>: physxTendon:l:parentLink has 0 targets"),
        (dict(upper=("AttachmentLeaf:l", attached("l", (0, 0, 0), "r", "base"))), "</R/upper>: .*parentAttachment names 'r'.*</R/base>"),
        (dict(upper=("AttachmentLeaf:l", attached("l", (0, 0, 0), "r", "none"))), "</R/upper>: .*parentLink names </R/none>"),
        (dict(upper=("AttachmentLeaf:l", attached("l", (0, 0, 0), "m", "base")),
              base=("Attachment:m", attached("m", (0, 0, 0), "n", "lower")),
              lower=("Attachment:n", attached("n", (0, 0, 0), "m", "base"))),
         "</R/upper>: the parents of attachment 'l' .*'m' of </R/base>"),
        (dict(upper=("AttachmentLeaf:l AttachmentRoot:l", "")), "</R/upper>: .*both root and leaf"),
        (dict(base=("AttachmentRoot:r", ""), upper=("AttachmentLeaf:l", attached("l", (math.inf, 0, 0), "r", "base"))),
         "</R/upper>: .*localPos"),
        (dict(upper=("AttachmentLeaf:l", "token @l:parentLink = \"r\"")), "</R/upper>: physxTendon:l:parentLink .*relationship"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_with_their_prim(parts, told):
    with pytest.raises(ImportFileError, match=told):
        imported(robot(**parts))


LEAF = dict(base=("AttachmentRoot:r", ""), upper=("AttachmentLeaf:l", attached("l", (1, 0, 0), "r", "base")))


@pytest.mark.parametrize(
    ("parts", "options", "told", "path"),
    [
        (dict(hinge=("AxisRoot:t", "bool @t:tendonEnabled = 0")), {}, "tendonEnabled is false", "/R/hinge"),
        (LEAF | dict(base=("AttachmentRoot:r", "bool @r:tendonEnabled = 0")), {}, "tendonEnabled is false", "/R/base"),
        (dict(hinge=("Axis:t", "")), {}, "without a PhysxTendonAxisRootAPI", "/R/hinge"),
        (dict(hinge=("AxisRoot:t", ""), knuckle=("Axis:t", "bool physics:jointEnabled = 0")), {}, "in no articulation", "/R/hinge"),
        (dict(hinge=("AxisRoot:t", ""), knuckle=("Axis:t", "bool physics:excludeFromArticulation = 1")), {},
         "in no articulation", "/R/hinge"),
        (dict(hinge=("AxisRoot:t", "float[] @t:gearing = [0]")), {}, "gearings are all 0", "/R/hinge"),
        (dict(hinge=("", "float @t:stiffness = 1")), {}, "without their API schema", "/R/hinge"),
        (dict(hinge=("AxisRoot", "")), {}, "without an instance name", "/R/hinge"),
        (dict(hinge=("AttachmentRoot:t", "")), {}, "have no effect here", "/R/hinge"),
        (dict(upper=("AxisRoot:t", "")), {}, "have no effect here", "/R/upper"),
        (dict(base=("AttachmentRoot:r", "")), {}, "between no root and leaf", "/R/base"),
        (LEAF | dict(upper=("AttachmentLeaf:l", LEAF["upper"][1] + "; float @l:gearing = -1")), {}, "gearing of 0 or less", "/R/upper"),
        (LEAF, dict(load_sites=False), "in no articulation", "/R/upper"),
        (LEAF, dict(ignore_paths=["/R/base$", "/R/fixed", "/R/hinge"]), "in no articulation", "/R/upper"),
    ],
)  # fmt: skip
def test_what_is_not_built_is_remarked(parts, options, told, path):
    builder, report = imported(robot(**parts), **options)
    assert builder.tendons == [] and builder.shape_count == 0
    assert [path] == [one for statement, paths in report.remarks.items() if re.search(told, statement) for one in paths]
    assert {record.kind for record in report.tendons} == {"physx"}


def test_joints_that_are_ignored_are_no_axes():
    builder, report = imported(robot(**FINGER), ignore_paths=["/R/knuckle", "/R/lower", "/R/slide"])
    assert [len(tendon.joints) for tendon in builder.tendons] == [1] and report.remarks == {}


def with_coefficients(spring: str = "", **coefficients):
    """A tendon with gearings of 1 along hinge, knuckle and slide, and coefficients of some of them."""
    lines = {name: f"float[] @t:forceCoefficient = [{x}]; " for name, x in coefficients.items()}
    kinds = {name: ("AxisRoot:t" if name == "hinge" else "Axis:t") for name in ("hinge", "knuckle", "slide")}
    source = {name: (kind, lines.get(name, "") + (spring if name == "hinge" else "")) for name, kind in kinds.items()}
    return imported(robot(**source))


def test_force_coefficients_that_are_not_proportional_to_the_gearing_are_remarked_once():
    assert with_coefficients()[1].remarks == with_coefficients(hinge=1.0 / DEGREE, slide=1.0)[1].remarks == {}
    (paths,) = with_coefficients(hinge=1.0, knuckle=0.0, slide=1.0)[1].remarks.values()
    assert paths == ["/R/hinge", "/R/knuckle"]
    (paths,) = with_coefficients(hinge=0.0, knuckle=0.0, slide=0.0)[1].remarks.values()
    assert paths == ["/R/hinge", "/R/knuckle", "/R/slide"]


def test_force_coefficients_that_are_proportional_to_the_gearing_give_forces_as_in_physx():
    """The force of a joint is the spring's times the coefficient; here both have a gearing of 1 per degree, and the slide has 1."""
    q, coefficient = (0.1, 0.2, 0.3), 2.5
    spring = "float @t:stiffness = 7; float @t:damping = 3; float @t:limitStiffness = 5; float @t:upperLimit = 4"
    builder, report = with_coefficients(spring, hinge=coefficient, knuckle=coefficient, slide=coefficient * DEGREE)
    assert report.remarks == {}
    _, along = forces(*at(builder, q))
    length = (q[0] + q[1]) / DEGREE + q[2]
    force = -7.0 * length - 5.0 * (length - 4.0)
    np.testing.assert_allclose(along, force * coefficient * np.array([1.0, 1.0, DEGREE]), rtol=1e-3)


def test_attributes_with_other_names_are_counted():
    _, report = imported(robot(hinge=("AxisRoot:t", "float @t:stifness = 1")))
    assert report.not_understood == {"physxTendon:t:stifness": 1}


@pytest.mark.parametrize("meters", [1.0, 0.01])
def test_tendons_are_written_and_come_back(tmp_path, meters):
    root = "; float @t:lowerLimit = -0.1; float @t:limitStiffness = 4; float @t:offset = 0.25"
    parts = FINGER | {"hinge": (FINGER["hinge"][0], FINGER["hinge"][1] + root)} | BRANCHED
    builder, _ = imported(robot(meters=meters, **parts), meters=meters)
    model = builder.finalize("cpu")
    write(model, tmp_path / "a.usda")
    again = ModelBuilder()
    report = again.add_usd(str(tmp_path / "a.usda"))
    assert report.remarks == {} and report.not_understood == {}
    other = again.finalize("cpu")
    assert [(t.label, t.joints, t.path) for t in other.tendons] == [(t.label, t.joints, t.path) for t in model.tendons]
    for name in ARRAYS:
        mine, theirs = (getattr(m, f"tendon_{name}").numpy() for m in (model, other))
        np.testing.assert_allclose(theirs, mine, rtol=1e-6, err_msg=name)


@pytest.mark.slow
def test_stages_with_tendons_are_simulated_in_place(tmp_path):
    """A spring of a tendon holds the slide away from its start."""
    parts = dict(
        base=("AttachmentRoot:r", attached("r", more="stiffness = 100; damping = 20")),
        slider=("AttachmentLeaf:l", attached("l", (1, 0, 0), "r", "base", "restLength = 4.5")),
    )
    (tmp_path / "a.usda").write_text(text(robot(**parts)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UsdWarning)
        simulation = Simulation(str(tmp_path / "a.usda"), solver_options={"evaluator": "general"})
    for _ in range(200):
        simulation.step()
    np.testing.assert_allclose(simulation.state.joint_q.numpy()[2], 0.5, atol=1e-3)
