"""Every keyword of every builder method, and every list of the builder, with invalid values.

Each call gives a result or an error from a ``raise`` statement of this package, never an internal error of
Python or NumPy, and an error leaves the builder unchanged.
"""

import copy
import inspect
import traceback
import warnings

import numpy as np
import pytest
import trimesh
import warp as wp

from newton_like.coercion import as_flag, as_list, as_matrix33, as_member, as_number, as_vector
from newton_like.geometry.mesh import Heightfield, Mesh
from newton_like.geometry.transforms import as_transform
from newton_like.model import JointDofConfig, ModelBuilder, ShapeConfig
from newton_like.model.columns import COLUMNS
from newton_like.types import Axis, GeoType, JointTargetMode, JointType

pytestmark = pytest.mark.slow

NAN, INF = float("nan"), float("inf")
UNIT = {"mass": 1.0, "inertia": np.eye(3)}
CUBE = Mesh(*(getattr(trimesh.creation.box(), name) for name in ("vertices", "faces")))
HILLS = Heightfield(np.arange(9.0), 3, 3)

HOSTILE = [
    *(None, True, "x", "nonsense", "", b"x", 0, 1, -1, 2, 99, -99, 10**400, 2**40, 1.5, -2.5, NAN, INF, -INF, 1e300),
    *(1e-300, 1e39, np.float32(1.5), np.int64(1), np.array(1.0), np.array([1.0]), np.array([1.0, 2.0]), [], (), [1]),
    *([1, 2], [1, 2, 3], (0, 0, 0), (0, 0, 1), (1e39,) * 3, [1, 2, 3, 4], [NAN] * 3, [NAN] * 7, [1] * 6, [0] * 7),
    *([0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 2], ((0, 0), (0, 0, 0, 1)), ((0, 0, 0), (0, 0, 0, 5)), [1] * 9),
    *(np.eye(3), np.eye(4), -np.eye(3), 1e39 * np.eye(3), ["a", "b", "c"], ["1", "2", "3"], [["1"] * 3] * 3),
    *([None] * 3, {}, {"a": 1}, {1, 2, 3}, object(), object, len, 1j, [1j] * 3, wp.vec3(1, 2, 3), wp.transform()),
    *(wp.array([1.0, 2.0, 3.0], dtype=float), JointDofConfig(), ShapeConfig(), Axis.X, JointType.FREE, GeoType.BOX),
    *([JointDofConfig()], [JointDofConfig()] * 4, ["x", "y", "z"], "xyz", ["q"], [(0, 0, 0)], CUBE, HILLS),
    *(range(3), ModelBuilder, [(0, 99)], {(1, 1)}),
]

# Required arguments of each method besides the tested one; other methods have none.
NEEDS = {
    **{
        f"add_joint_{kind}": {"parent": 0, "child": 1}
        for kind in ("revolute", "prismatic", "ball", "fixed", "distance")
    },
    "add_joint": {"joint_type": JointType.FIXED, "parent": 0, "child": 1},
    "add_joint_d6": {"parent": 0, "child": 1, "linear_axes": ["x"]},
    "add_joint_free": {"child": 1},
    "add_shape": {"body": 1, "type": GeoType.BOX},
    **{f"add_shape_{kind}": {"body": 1} for kind in ("sphere", "box", "capsule", "cylinder", "cone", "ellipsoid")},
    "add_shape_mesh": {"body": 1, "mesh": CUBE},
    "add_shape_convex_hull": {"body": 1, "mesh": CUBE},
    "add_shape_heightfield": {"heightfield": HILLS},
    "add_site": {"body": 1},
    "add_shape_collision_filter_pair": {"shape_a": 0, "shape_b": 1},
    "add_articulation": {"joints": [2]},
    "extend_articulation": {"articulation": 0, "joints": [2]},
    "set_joint_mimic": {"joint": 1, "reference_joint": 0},
    "add_world": {"builder": None},
    "add_builder": {"builder": None},
    "replicate": {"builder": None, "copy_count": 2},
}
# Files and formats have tests of their own (test_urdf_errors).
METHODS = sorted(
    name
    for name, method in inspect.getmembers(ModelBuilder, inspect.isfunction)
    if not name.startswith("_") and name not in ("add_urdf", "add_mjcf", "add_usd")
)


def scene() -> ModelBuilder:
    """Three bodies, of which the last has its joint outside of the articulation."""
    builder = ModelBuilder()
    bodies = [builder.add_link(**UNIT) for _ in range(3)]
    joints = [builder.add_joint_revolute(a, b, axis="y") for a, b in ((-1, bodies[0]), (bodies[0], bodies[1]))]
    builder.add_articulation(joints)
    builder.add_shape_sphere(bodies[0])
    builder.add_shape_sphere(bodies[1])
    builder.add_joint_revolute(bodies[1], bodies[2])
    builder.add_shape_mesh(bodies[2], mesh=CUBE)
    return builder


def whole() -> ModelBuilder:
    """The same as a world, with all joints in the articulation, so that it can be finalized."""
    world = scene()
    world.extend_articulation(0, [2])
    builder = ModelBuilder()
    builder.add_world(world)
    return builder


def part() -> ModelBuilder:
    builder = ModelBuilder()
    builder.add_body(**UNIT)
    return builder


def contents(builder: ModelBuilder) -> dict:
    names = [column.name for column in COLUMNS if column.type != "object"]
    names += ["world_count", "world_label", "world_gravity"]
    return {name: copy.copy(getattr(builder, name)) for name in names}


def foreign(error: Exception) -> bool:
    """Whether an error was raised by another library, and not by a ``raise`` statement of this package."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return "newton_like" not in last.filename or not last.line.startswith("raise")


HALVES = pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])


@HALVES
@pytest.mark.parametrize("method", METHODS)
def test_keywords_take_what_they_should_and_refuse_the_rest_in_words(method, half):
    signature = inspect.signature(getattr(ModelBuilder, method)).parameters
    # lists of names, `*attributes`, are no keywords
    parameters = [name for name, p in signature.items() if name != "self" and p.kind != p.VAR_POSITIONAL]
    make = whole if method == "finalize" else scene
    builder, refused = make(), 0
    before = contents(builder)
    for name in parameters:
        for value in HOSTILE[half::2]:
            if method == "finalize" and name == "device":
                continue  # Warp names its devices itself
            needs = dict(NEEDS.get(method, {}))
            if "builder" in needs:
                needs["builder"] = part()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    getattr(builder, method)(**{**needs, name: value})
                except (ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError) as error:
                    assert not foreign(error), f"{method}({name}={value!r}): {error!r}"
                    assert contents(builder) == before, f"{method}({name}={value!r}) left something behind"
                    refused += 1
                else:
                    builder = make()
    assert refused > 0 or set(parameters) <= {"label"}


@HALVES
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_entries_of_lists_are_checked_by_finalize(column, half):
    """Accepted values are finite in float32 arrays."""
    builder = whole()
    builder.finalize("cpu")
    for value in HOSTILE[half::2]:
        getattr(builder, column.name)[-1] = value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # gains without a drive
            warnings.simplefilter("error", RuntimeWarning)
            try:
                model = builder.finalize("cpu")
            except (ValueError, TypeError, KeyError, IndexError) as error:
                assert not foreign(error), f"{column.name}[-1] = {value!r}: {error!r}"
                continue
        for name, array in vars(model).items():
            if isinstance(array, wp.array) and array.numpy().dtype.kind == "f":
                assert np.isfinite(array.numpy()).all(), f"{column.name}[-1] = {value!r} gives {name}"


@HALVES
def test_attributes_are_read_when_they_are_set(half):
    def checked(name, value):
        builder = whole()
        try:
            setattr(builder, name, value)
            builder.finalize("cpu")
        except (ValueError, TypeError, KeyError, IndexError) as error:
            assert not foreign(error), f"builder.{name} = {value!r}: {error!r}"
            return False
        return True

    others = ("gravity", "up_axis", "world_count", "world_label", "world_gravity", "rigid_gap", "default_joint_cfg")
    others += ("default_shape_cfg", "shape_collision_filter_pairs", "custom_attributes", "custom_frequencies")
    for name in others:
        assert not all([checked(name, value) for value in HOSTILE[half::2]]), name
    for column in COLUMNS[half::2]:
        assert not any([checked(column.name, value) for value in (None, 5, b"x", {}, object(), np.zeros(7))])
        assert checked(column.name, getattr(whole(), column.name)), column.name
    with pytest.raises(AttributeError, match=r"'joint_taget_ke'.*'joint_target_ke'"):
        ModelBuilder().joint_taget_ke = [1.0]
    for cfg in (ShapeConfig(), JointDofConfig()):
        with pytest.raises(AttributeError, match="frictoin"):
            cfg.frictoin = 0.1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda b: b.add_link(mass=10**400), ValueError, r"body 'body_3'.*mass.*308"),
        (lambda b: b.add_link(is_kinematic="no"), TypeError, r"is_kinematic.*True.*False.*'no'"),
        (lambda b: b.add_link(com={1, 2, 3}), TypeError, r"com.*3.*{1.*2.*3}"),
        (lambda b: b.add_link(xform=["0"] * 6 + ["1"]), TypeError, "xform: .*transform"),
        (
            lambda b: b.add_joint("hinge", 0, 2),
            TypeError,
            r"joint 'joint_3'.*JointType.*'hinge'.*PR",
        ),
        (lambda b: b.add_joint(9, 0, 2), ValueError, "joint_type.*9 .*JointType.*PRISMATIC, REVOLUTE"),
        (
            lambda b: b.add_joint_d6(0, 2, linear_axes=5),
            TypeError,
            r"linear_axes.*JointDofConfig.*5",
        ),
        (lambda b: b.add_joint_d6(0, 2, linear_axes=["q"]), ValueError, r"joint 'joint_3'.*linear axis"),
        (lambda b: b.add_joint_ball(0, 2, target_qd=[1]), ValueError, r"joint 'joint_3'.*target_qd.*3"),
        (lambda b: b.add_shape_box(0, cfg={"mu": 1}), TypeError, r"cfg.*ShapeConfig.*{'mu'.*1}"),
        (lambda b: b.add_shape_box(0, color=(2, 0, 0)), ValueError, "color.*2.*0.*1"),
        (lambda b: b.add_shape(body=0, type=JointType.FREE), TypeError, r"type.*GeoType"),
        (lambda b: b.add_shape(body=0, type=GeoType.BOX, src=CUBE), ValueError, "BOX.*src"),
        (lambda b: b.add_shape_capsule(0, radius=1e300), ValueError, r"radius 1e\+300.*1e\+30.*SI"),
        (lambda b: b.add_articulation(2), TypeError, r"joints.*2"),
        (lambda b: b.set_joint_mimic(1, 0, coeffs=[1]), ValueError, r"coeffs.*2.*1"),
        (
            lambda b: b.replicate(part(), 2, spacing=(1, 0, 0), xforms=[None, None]),
            ValueError,
            "xforms.*spacing",
        ),
        (lambda b: b.replicate(part(), 2, label_prefixes="ab"), TypeError, "label_prefixes"),
        (lambda b: b.shape_collision_filter_pairs.add((0, 0.5)), ValueError, r"pairs.*indices"),
        (lambda b: setattr(b, "rigid_gap", "wide"), TypeError, r"rigid_gap.*'wide'"),
        (
            lambda b: setattr(b, "default_shape_cfg", None),
            TypeError,
            r"default_shape_cfg.*ShapeConfig.*None",
        ),
        (
            lambda b: setattr(b, "body_mass", 5),
            TypeError,
            "builder.body_mass",
        ),
    ],
)
def test_errors_of_arguments_name_the_cure(call, error, message):
    with pytest.raises(error, match=message):
        call(scene())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "body_mass",
            1e39,
            r"body 'body_2' \(index 2, world 0\): mass 1e\+39 .*1e\+30.*SI",
        ),
        (
            "body_mass",
            1e-300,
            r"body 'body_2' \(index 2, world 0\): body_inv_mass .*float32.*wp\.float64",
        ),
        ("joint_damping", 1e39, r"joint 'joint_2' \(index 2, world 0\): damping 1e\+39 .*1e\+30"),
        ("joint_enabled", "no", r"builder.joint_enabled\[2\] .*'no'.*True.*False"),
        ("joint_parent", [1, 2], r"builder.joint_parent\[2\] .*\[1, 2\].*integer"),
        ("shape_collision_group", 2**40, r"builder.shape_collision_group\[2\] .*1099511627776.*integer"),
        ("shape_flags", 64, r"shape 'shape_2' \(index 2, world 0\): flags 64 .*ShapeFlags"),
        ("shape_source", HILLS, r"shape 'shape_2' .*: shape_source <.*Height.*Mesh"),
        ("shape_color", (0, 0, 2), r"shape 'shape_2' .*: color \(0, 0, 2\) .*1"),
        ("body_label", 7, r"builder.body_label\[2\] .*\b7\b.*string"),
    ],
)
def test_errors_of_entries_name_the_cure(name, value, message):
    builder = whole()
    getattr(builder, name)[-1] = value
    with pytest.raises((ValueError, TypeError), match=message):
        builder.finalize("cpu")


def test_what_single_precision_cannot_hold_double_precision_can():
    builder = whole()
    builder.body_mass[1] = 1e-200
    builder.body_inertia[1] = 1e-200 * np.eye(3)
    assert builder.finalize("cpu", dtype=wp.float64).body_inv_mass.numpy()[1] == 1 / 1e-200
    with pytest.raises(ValueError, match=r"body_inv_mass.*float32"):
        builder.finalize("cpu")


def test_what_belongs_to_the_whole_scene_is_checked_too():
    builder = whole()
    builder.shape_collision_filter_pairs.add((0, 9))
    with pytest.raises(ValueError, match=r"filter_pairs.*9.*3"):
        builder.finalize("cpu", dtype=wp.float64)
    builder = ModelBuilder()
    builder.begin_world()
    builder.end_world()
    builder.world_gravity[0] = (0, 0, NAN)
    with pytest.raises(ValueError, match=r"world 0.*gravity.*nan"):
        builder.finalize("cpu")
    builder.world_gravity = [None, None]
    with pytest.raises(ValueError, match=r"world_gravity.*2.*1"):
        builder.finalize("cpu")


def test_arrays_of_any_library_are_vectors():
    for three in (wp.array([1, 2, 3], dtype=float), np.array([1, 2, 3]), iter((1, 2, 3)), np.float32([1, 2, 3])):
        assert as_vector(three, 3, "x") == (1.0, 2.0, 3.0)
    assert as_transform(wp.array([1, 2, 3, 0, 0, 0, 1], dtype=float)).tolist() == [1, 2, 3, 0, 0, 0, 1]
    assert as_matrix33(wp.mat33(*range(9)), "x") == ((0, 1, 2), (3, 4, 5), (6, 7, 8))
    assert as_list(np.array([4, 5]), "x", "numbers") == [4, 5]
    assert [as_flag(value, "x") for value in (True, np.bool_(False), 1, np.int32(0))] == [True, False, True, False]
    assert as_member(JointTargetMode, np.int64(2), "x") is JointTargetMode.VELOCITY
    for wrong in (1.0, "1", None, 2, np.array([1])):
        with pytest.raises(TypeError):
            as_flag(wrong, "x")
    with pytest.raises(ValueError, match="308"):
        as_number(-(10**400), "x")
