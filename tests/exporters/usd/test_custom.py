"""Custom attributes in USD stages: user-defined ones, and MuJoCo's settings of bodies, shapes, pairs, limits and constraints."""

import warnings

import numpy as np
import pytest

pytest.importorskip("pxr")
import warp as wp
from pxr import Usd

from newton_like import Model, ModelBuilder
from newton_like.importers.usd import UsdWarning
from newton_like.importers.xml_source import ImportFileError
from newton_like.model.custom import COUNTED, CustomAttribute, CustomFrequency, holder
from newton_like.model.mujoco.contact_settings import SETTINGS, declare_body_settings, declare_contact_settings
from newton_like.model.mujoco.effort_settings import EFFORT_SETTINGS, declare_effort_settings
from newton_like.solvers import SolverFeatherstone
from newton_like.usd import write
from tests.support.random_trees import random_tree
from tests.support.usd_models import differences, differences_of_constraints

F, A = Model.AttributeFrequency, Model.AttributeAssignment
DTYPES = [
    wp.float16, wp.float32, wp.float64, wp.int8, wp.int32, wp.int64, wp.uint32, wp.uint64, wp.bool, str, wp.vec2, wp.vec3, wp.vec4d,
    wp.vec2i, wp.types.vector(5, wp.float32), wp.mat33, wp.mat22d, wp.quat, wp.quatd, wp.transform,
]  # fmt: skip


def random_entry(rng, attribute: CustomAttribute):
    if attribute.dtype is str:
        return f"text {rng.integers(1000)}"
    if attribute.scalar is wp.bool:
        return bool(rng.integers(2))
    kind = np.dtype(wp.dtype_to_numpy(attribute.scalar))
    if kind.kind == "f":
        return rng.normal(size=attribute.shape).astype(kind).tolist()
    bounds = np.iinfo(kind)
    return rng.integers(bounds.min, bounds.max, size=attribute.shape, dtype=kind, endpoint=True).tolist()


def declarations(rng) -> list[CustomAttribute]:
    """Attributes of all types, of random frequencies, objects, namespaces and names in files."""
    made = []
    for i, dtype in enumerate(DTYPES):
        frequency = list(COUNTED)[int(rng.integers(len(COUNTED)))]
        space = [None, "lab"][rng.integers(2)]
        usd = [None, f"mine:number{i}"][rng.integers(2)]
        made.append(CustomAttribute(f"a{i}", dtype, frequency, A(int(rng.integers(3))), space, usd_attribute_name=usd))
    return made


def read(path, attributes=(), remarks: str = "error") -> Model:
    builder = ModelBuilder()
    for attribute in attributes:
        builder.add_custom_attribute(attribute.copy())
    with warnings.catch_warnings():
        warnings.simplefilter(remarks)
        report = builder.add_usd(str(path))
    assert report.not_understood == {}
    return builder.finalize("cpu")


def arrays(model, attribute):
    owner = (model, model.state(), model.control())[attribute.assignment]
    space, name = holder(owner, attribute.key)
    found = getattr(space, name)
    return np.array(found) if isinstance(found, list) else found.numpy()


@pytest.mark.filterwarnings("ignore:.*target gains are set, but target_mode is NONE")
def test_random_entries_come_back(rng, tmp_path):
    """Of three worlds, of which the second is a reference to the first, and the third has one other number."""
    attributes = declarations(rng)
    robot = random_tree(rng, joints=5, floating=True)
    stone = robot.add_body(mass=1.0, inertia=np.eye(3))
    robot.add_shape_sphere(stone, radius=0.1)
    robot.add_shape_sphere(-1, radius=0.1)
    for attribute in attributes:
        robot.add_custom_attribute(attribute)
        count = robot.joint_constraint_count if attribute.frequency is F.JOINT_CONSTRAINT else None
        count = count or getattr(robot, COUNTED[attribute.frequency])
        for i in rng.choice(count, rng.integers(count + 1), replace=False).tolist():
            robot.custom_attributes[attribute.key].values[i] = random_entry(rng, attribute)
    scene = ModelBuilder()
    scene.replicate(robot, 3)
    chosen = attributes[int(rng.integers(len(attributes)))]
    values = scene.custom_attributes[chosen.key].values
    count = scene.joint_constraint_count if chosen.frequency is F.JOINT_CONSTRAINT else None
    count = count or getattr(scene, COUNTED[chosen.frequency])
    old = values.get(count - 1, chosen.default)
    while (new := random_entry(rng, chosen)) == old:
        pass
    values[count - 1] = new
    model = scene.finalize("cpu")
    assert write(model, tmp_path / "a.usda").copies == 1
    other = read(tmp_path / "a.usda", attributes)
    assert differences(model, other, ignore=("body_q", "body_qd")) == {}
    for attribute in attributes:
        np.testing.assert_array_equal(arrays(other, attribute), arrays(model, attribute), err_msg=str(attribute))


def test_arrays_of_a_model_are_written_as_they_are_now(rng, tmp_path):
    """Not the entries that the builder was given; and those of a state, if a state is written."""
    builder = ModelBuilder()
    attributes = [CustomAttribute("heat", wp.float32, F.BODY), CustomAttribute("soot", wp.float32, F.BODY, A.STATE)]
    for attribute in attributes:
        builder.add_custom_attribute(attribute)
    builder.add_body(mass=1.0, inertia=np.eye(3), custom_attributes={"heat": 1.0, "soot": 2.0})
    model = builder.finalize("cpu")
    state = model.state()
    heat, soot = rng.normal(size=(2, 1)).astype(np.float32)
    model.heat.assign(heat)
    state.soot.assign(soot)
    write(model, tmp_path / "a.usda", state=state)
    other = read(tmp_path / "a.usda", attributes)
    np.testing.assert_array_equal([other.heat.numpy(), other.state().soot.numpy()], [heat, soot])
    write(model, tmp_path / "a.usda")
    np.testing.assert_array_equal(read(tmp_path / "a.usda", attributes).state().soot.numpy(), [2.0])


def test_what_is_not_written_is_named(tmp_path):
    builder = ModelBuilder()
    builder.add_custom_frequency(CustomFrequency("sensor"))
    left_out = {
        "once": CustomAttribute("once", float, F.ONCE, values={0: 1.0}),
        "room": CustomAttribute("room", float, F.WORLD, values={0: 1.0}),
        "friend": CustomAttribute("friend", int, F.BODY, references="body", default=-1, values={0: 0}),
        "changed": CustomAttribute(
            "changed", float, F.BODY, values={0: 1.0}, usd_value_transformer=lambda v, _: 2.0 * v
        ),
        "sensor_range": CustomAttribute("sensor_range", float, "sensor", values=[3.0]),
        "taken": CustomAttribute("taken", float, F.BODY, values={0: 9.0}, usd_attribute_name="physics:mass"),
        "misnamed": CustomAttribute("misnamed", float, F.BODY, values={0: 9.0}, usd_attribute_name="no name"),
    }
    for attribute in (
        *left_out.values(),
        CustomAttribute("unset", float, F.WORLD),
        CustomAttribute("kept", float, F.BODY),
    ):
        builder.add_custom_attribute(attribute)
    builder.begin_world()
    builder.add_body(mass=1.0, inertia=np.eye(3), custom_attributes={"kept": 5.0})
    builder.end_world()
    with pytest.warns(UsdWarning, match="once"):
        report = write(builder.finalize("cpu"), tmp_path / "a.usda")
    assert set(report.remarks["custom attributes are not written"]) == set(left_out)
    fresh = ModelBuilder()
    with pytest.warns(UsdWarning, match="newton:kept"):
        # a builder that does not declare an attribute says so
        assert fresh.add_usd(str(tmp_path / "a.usda")).not_understood == {"newton:kept": 1}


def random_settings(rng, builder: ModelBuilder) -> None:
    """Random settings of MuJoCo of all bodies, shapes and degrees of freedom, and of some pairs."""

    def law() -> tuple:
        solref = rng.uniform(0.01, 0.1, 2) if rng.random() < 0.5 else -rng.uniform(1.0, 100.0, 2)
        return solref.tolist(), rng.uniform(0.1, 0.9, 5).tolist()

    declare_contact_settings(builder)
    declare_body_settings(builder)
    declare_effort_settings(builder)
    values = {key.removeprefix("mujoco:"): a.values for key, a in builder.custom_attributes.items()}
    for i in range(builder.body_count):
        # a model without any compensation does not need the attribute
        values["gravcomp"][i] = float(rng.choice([0.0, rng.normal()])) if i else 0.5
    for i in range(builder.shape_count):
        values["contact_rules"][i] = int(rng.integers(4))
        values["condim"][i] = int(rng.choice([1, 3, 4, 6]))
        values["geom_priority"][i] = int(rng.integers(-2, 3))
        values["geom_solmix"][i] = float(rng.uniform(0.0, 2.0))
        values["solref"][i], values["geom_solimp"][i] = law()
        values["geom_turning_friction"][i] = rng.uniform(0.0, 1.0, 2).tolist()
    for i in range(builder.joint_dof_count):
        values["limit_rules"][i] = int(rng.integers(2))
        values["effort_rules"][i], values["jnt_actgravcomp"][i] = (
            1 if i == 0 else int(rng.integers(2)),
            int(rng.integers(2)),
        )
        values["effort_middle"][i] = float(rng.choice([0.0, rng.normal()]))
        values["solreflimit"][i], values["solimplimit"][i] = law()
        values["limit_margin"][i] = float(rng.choice([0.0, rng.uniform(0.0, 0.1)]))
    for a, b in [(0, 2), (3, 1), (4, 1)]:
        solref, solimp = law()
        row = {
            "geom1": a, "geom2": b, "condim": int(rng.choice([1, 3, 4, 6])), "solref": solref, "solimp": solimp,
            "margin": rng.uniform(0.0, 0.1), "gap": rng.uniform(0.0, 0.1), "friction": rng.uniform(0.0, 1.0, 5).tolist(),
        }  # fmt: skip
        builder.add_custom_values(**{f"mujoco:pair_{name}": value for name, value in row.items()})


@pytest.mark.filterwarnings("ignore:.*target gains are set, but target_mode is NONE")
def test_settings_of_mujoco_come_back_without_a_declaration(rng, tmp_path):
    """In three worlds with a shared floor, which is the first shape of a pair, so that no world may refer to another; and without it."""
    for shared in (True, False):
        scene = ModelBuilder()
        if shared:
            scene.add_ground_plane()
        robot = random_tree(rng, joints=6, floating=bool(rng.integers(2)))
        for body in range(6):
            robot.add_shape_sphere(body, radius=0.1)
        random_settings(rng, robot)
        scene.replicate(robot, 3)
        if shared:
            count = len(scene.custom_attributes["mujoco:pair_geom1"].values)
            scene.begin_world()
            ball = scene.add_shape_sphere(scene.add_body(), radius=0.1)
            scene.add_custom_values(**{"mujoco:pair_geom1": 0, "mujoco:pair_geom2": ball, "mujoco:pair_condim": 6})
            scene.end_world()
            assert count == 9
        model = scene.finalize("cpu")
        assert write(model, tmp_path / "a.usda", instance_worlds=bool(rng.integers(2))).copies == 2
        other = read(tmp_path / "a.usda")
        assert differences(model, other, ignore=("body_q", "body_qd")) == {}
        for name in (*SETTINGS, *EFFORT_SETTINGS, "gravcomp"):
            mine, theirs = (getattr(m.mujoco, name).numpy() for m in (model, other))
            if name in ("pair_geom1", "pair_geom2"):
                # the two shapes of a pair are not told apart
                mine, theirs = (
                    np.sort([m.mujoco.pair_geom1.numpy(), m.mujoco.pair_geom2.numpy()], 0) for m in (model, other)
                )
            np.testing.assert_array_equal(theirs, mine, err_msg=name)


def test_worlds_with_other_settings_are_written_in_full(rng, tmp_path):
    robot = random_tree(rng, joints=4)
    for body in range(4):
        robot.add_shape_sphere(body, radius=0.1)
    robot.add_shape_box(0)
    random_settings(rng, robot)
    for name in ("gravcomp", "solref", "solimplimit", "pair_margin"):
        scene = ModelBuilder()
        scene.replicate(robot, 3)
        model = scene.finalize("cpu")
        array = getattr(model.mujoco, name)
        values = array.numpy()
        values[-1] = values[-1] + 0.25
        array.assign(values)
        assert write(model, tmp_path / "a.usda").copies == 1, name


def test_pairs_of_edited_stages(rng, tmp_path):
    """Shapes that are not loaded are named, and so are numbers that are missing."""
    robot = random_tree(rng, joints=5)
    for body in range(5):
        robot.add_shape_sphere(body, radius=0.1, label=f"ball_{body}")
    random_settings(rng, robot)
    write(robot.finalize("cpu"), tmp_path / "a.usda")
    builder = ModelBuilder()
    with pytest.warns(UserWarning, match="pairs of shapes that are not loaded.*ball_0 and .*ball_2"):
        builder.add_usd(str(tmp_path / "a.usda"), ignore_paths=[".*ball_2"])
    assert len(builder.custom_attributes["mujoco:pair_geom1"].values) == 2
    stage = Usd.Stage.Open(str(tmp_path / "a.usda"))
    (prim,) = (prim for prim in stage.Traverse() if prim.GetName() == "ball_0")
    prim.GetAttribute("newtonLike:pairSolref").Set([1.0])
    with pytest.raises(ImportFileError, match=f"<{prim.GetPath()}>: newtonLike:pairSolref .*2"):
        ModelBuilder().add_usd(stage)


PENDULA = """<mujoco><compiler angle="radian"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
<geom name="floor" type="plane" size="1 1 1" contype="1" conaffinity="1" friction=".8" solref=".03 .9"/>
<body name="a" pos="0 0 1" gravcomp="{gravcomp}"><joint name="a" axis="0 1 0" range="-.3 .4" margin=".05" solreflimit=".04 .8"/>
  <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass=".5"/><site name="sa" pos=".2 0 .1"/>
  <body name="b" pos=".3 0 0"><joint name="b" axis="0 1 .2" range="-.5 .2" solimplimit=".8 .9 .05 .4 3"/>
    <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass=".4"/><site name="sb" pos=".1 0 -.1"/>
    <body name="c" pos=".3 0 0" gravcomp=".4"><joint name="c" type="slide" axis="1 0 0" range="-.1 .01" margin=".02"/>
      <geom type="box" size=".05 .05 .05" mass=".3"/></body></body></body>
<body name="d" pos="0 .5 1"><joint name="d" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass=".5"/>
  <body name="e" pos=".3 0 0"><joint name="e" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass=".5"/></body></body>
<body name="ball" pos="1 0 .11"><freejoint/><geom name="ball" size=".1" mass="1" contype="1" conaffinity="1" solimp=".8 .9 .02"
  condim="4" friction=".7 .01 .001" priority="1"/></body>
<body name="other" pos="2 0 .11"><freejoint/><geom name="other" size=".1" mass="1"/></body>
<body name="hand" mocap="true" pos="0 1 1"><geom size=".02"/></body>
<body name="held" pos="0 1 1"><freejoint/><geom size=".03" mass=".2"/></body>
</worldbody><contact><pair geom1="floor" geom2="other" solref=".05 1.2" margin=".02" condim="3" friction=".5 .5 .1 .1 .1"/></contact>
<equality><joint joint1="d" joint2="e" polycoef="0 1 .3 0 0" solref=".05 .7" solimp=".7 .9 .02"/>
<weld body1="hand" body2="held" solref=".06 1"/><connect body1="e" body2="b" anchor=".2 0 0" solref="-400 -30"/></equality>
<tendon><spatial name="t" limited="true" range="0 {length}" margin=".01" solreflimit=".03 .9" solimplimit=".7 .9 .02" frictionloss=".1">
<site site="sa"/><site site="sb"/></spatial></tendon>
<actuator><general joint="a" dyntype="filter" dynprm=".1" gainprm="2" biastype="affine" biasprm=".1 -1 -.2"/>
<muscle tendon="t" force="3" lengthrange=".1 .6"/></actuator></mujoco>"""


@pytest.mark.slow
def test_a_scene_with_all_settings_moves_alike_after_a_round_trip(rng, tmp_path):
    """Limits, equalities, a tendon and contacts are soft; frames of a stage are in single precision."""
    text = PENDULA.format(gravcomp=rng.uniform(0.2, 1.0), length=rng.uniform(0.36, 0.4))
    builder = ModelBuilder()
    builder.add_mjcf(text)
    model = builder.finalize("cpu", dtype=wp.float64)
    report = write(model, tmp_path / "a.usda")
    assert "custom attributes are not written" not in report.remarks
    again = ModelBuilder()
    again.add_usd(str(tmp_path / "a.usda"))
    other = again.finalize("cpu", dtype=wp.float64)
    both = model, other
    # shapes that do not collide have no materials in a stage
    assert differences(*both, ignore=("body_q", "shape_margin", "shape_gap", "shape_material_mu")) == {}
    assert differences_of_constraints(*both) == {}
    ways, controls = [], rng.uniform(0.0, 1.0, 2)
    for each in both:
        state, control = each.state(), each.control()
        control.actuator_ctrl = controls
        solver, way = SolverFeatherstone(each, evaluator="general"), []
        for _ in range(200):
            solver.step(state, state, control, None, 0.002)
            way.append(state.joint_q.numpy())
        ways.append(np.array(way))
    np.testing.assert_allclose(*ways, atol=1e-5)
    # the limits are reached, and each setting matters
    for name in ("gravcomp", "solreflimit", "solimplimit", "limit_margin", "solref", "pair_solref", "eq_solref"):
        array = getattr(other.mujoco, name)
        kept = array.numpy()
        array.assign(1.7 * kept if kept.any() else kept + 0.1)
        state, control = other.state(), other.control()
        control.actuator_ctrl = controls
        solver = SolverFeatherstone(other, evaluator="general")
        for _ in range(200):
            solver.step(state, state, control, None, 0.002)
        assert np.abs(state.joint_q.numpy() - ways[1][-1]).max() > 1e-4, name
        array.assign(kept)


def test_newton_reads_the_same_settings(rng, tmp_path):
    newton = pytest.importorskip("newton")
    pytest.importorskip("newton_usd_schemas")
    builder = ModelBuilder()
    builder.add_mjcf(PENDULA.format(gravcomp=rng.uniform(0.2, 1.0), length=0.38))
    model = builder.finalize("cpu")
    write(model, tmp_path / "a.usda")
    peer = newton.ModelBuilder()
    newton.solvers.SolverMuJoCo.register_custom_attributes(peer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.add_usd(str(tmp_path / "a.usda"))
    theirs = peer.finalize("cpu").mujoco
    for name in ("gravcomp", "condim", "geom_priority", "geom_solimp", "solimplimit", "limit_margin"):
        # the order of entities differs
        found = [np.unique(getattr(space, name).numpy(), axis=0) for space in (model.mujoco, theirs)]
        np.testing.assert_array_equal(*found, err_msg=name)


OTHERS = """#usda 1.0
(metersPerUnit = 0.01
upAxis = "Z")
def Xform "R" {
  def Xform "A" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {
    float physics:mass = 1
    double mjc:gravcomp = 0.6
    def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
      uniform double[] mjc:solref = [0.1, 0]
    }
  }
  def Xform "B" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {
    float physics:mass = 1
  }
  def PhysicsRevoluteJoint "hinge" {
    rel physics:body1 = </R/A>
    float physics:lowerLimit = -10
    %s
  }
  def PhysicsPrismaticJoint "slide" {
    rel physics:body0 = </R/A>
    rel physics:body1 = </R/B>
    double mjc:margin = 3
    double[] mjc:solimplimit = [0.8, 0.9, 2]
  }
}
"""


def imported(line: str) -> tuple[ModelBuilder, object]:
    stage = Usd.Stage.CreateInMemory()
    assert stage.GetRootLayer().ImportFromString(OTHERS % line)
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return builder, builder.add_usd(stage)


def test_settings_of_other_tools_are_read():
    """In centimetres; angles are in radians, as in MuJoCo."""
    builder, report = imported("double[] mjc:solreflimit = [0.05, 0.7]\n    double mjc:margin = 0.1")
    assert report.not_understood == {}
    model = builder.finalize("cpu")
    hinge, slide = (report.dofs[f"/R/{name}"][0] for name in ("hinge", "slide"))
    space = model.mujoco
    np.testing.assert_allclose(space.gravcomp.numpy(), [0.6, 0.0])
    np.testing.assert_array_equal(space.limit_rules.numpy(), [1, 1])
    np.testing.assert_allclose(space.solreflimit.numpy()[[hinge, slide]], [(0.05, 0.7), (0.02, 1.0)])
    np.testing.assert_allclose(
        space.solimplimit.numpy()[[hinge, slide]], [(0.9, 0.95, 0.001, 0.5, 2.0), (0.8, 0.9, 0.02, 0.5, 2.0)]
    )
    np.testing.assert_allclose(space.limit_margin.numpy()[[hinge, slide]], [0.1, 0.03])
    # without a rule, settings of contacts have no effect, and the report says so
    assert [paths for what, paths in report.remarks.items() if "contact_rules" in what] == [["/R/A/ball"]]


@pytest.mark.parametrize("margin", [None, 0.2])
def test_a_softness_of_two_signs_is_ignored_as_in_mjcf(margin):
    stated = "" if margin is None else f"\n    double mjc:margin = {margin}"
    builder, report = imported(f"double[] mjc:solreflimit = [0.05, -1]{stated}")
    assert [paths for what, paths in report.remarks.items() if "two signs" in what] == [["/R/hinge"]]
    model = builder.finalize("cpu")
    SolverFeatherstone(model, evaluator="general")
    space, hinge = model.mujoco, report.dofs["/R/hinge"][0]
    assert space.limit_rules.numpy()[hinge] == (margin is not None)
    np.testing.assert_allclose(space.solreflimit.numpy()[hinge], (0.02, 1.0))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("double[] mjc:solreflimit = [0.05, 1, 2]", "mjc:solreflimit"),
        ("double[] mjc:solimplimit = [0.05, 1, 2, 3, 4, 5]", "mjc:solimplimit"),
        ("double mjc:margin = -0.1", "mjc:margin"),
    ],
)
def test_bad_settings_are_refused_with_their_prim(line, told):
    with pytest.raises(ImportFileError, match=f"</R/hinge>: {told}"):
        imported(line)
