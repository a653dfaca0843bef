"""Stages simulated in place: transforms in USD agree with the simulation, and the source does not change."""

import hashlib
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.support.paths import SCENES

pytest.importorskip("pxr")
from pxr import Gf, Sdf, Usd, UsdGeom
from scipy.spatial.transform import Rotation

from newton_like.geometry.transforms import transform_inverse, transform_multiply, transform_to_matrix
from newton_like.usd import Simulation

OPTIONS = {"evaluator": "general", "unsupported_contacts": "ignore"}
"""The kernel that other tests compiled already."""

pytestmark = pytest.mark.filterwarnings("ignore::newton_like.importers.usd.UsdWarning")

HEAD = '#usda 1.0\n(\n  defaultPrim = "World"\n  metersPerUnit = {meters}\n  upAxis = "{up}"\n  timeCodesPerSecond = {rate}\n'
HEAD += "  startTimeCode = {start}\n)\n"

BODY = (
    'prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]',
    "float physics:mass = 2\nfloat3 physics:diagonalInertia = (1, 1, 1)\n",
)


def write_stage(path, body: str, *, meters=1.0, up="Z", rate=24.0, start=0.0) -> str:
    head = HEAD.format(meters=meters, up=up, rate=rate, start=start)
    path.write_text(f'{head}def PhysicsScene "scene"\n{{\n}}\ndef Xform "World"\n{{\n{body}\n}}\n')
    return str(path)


def stone(name: str, extra: str = "", inside: str = "") -> str:
    return f'def Xform "{name}" ({BODY[0]})\n{{\n{BODY[1]}{extra}\n{inside}\n}}\n'


def matrix(stage, path, code) -> np.ndarray:
    """Column-vector matrix of a prim, by USD."""
    return np.array(UsdGeom.XformCache(Usd.TimeCode(code)).GetLocalToWorldTransform(stage.GetPrimAtPath(path))).T


def expected_matrix(simulation, path) -> np.ndarray:
    """Where the physics has a prim, in the units of the stage; without its scale."""
    body, inner = simulation.report.frames[path]
    pose = simulation.state.body_q.numpy().astype(float).reshape(-1, 7)[body]
    pose = transform_multiply(transform_inverse(simulation.report.stage_pose), transform_multiply(pose, inner))
    pose[:3] /= simulation.report.meters_per_unit
    return transform_to_matrix(pose)


def assert_follows(simulation, stage, code, atol=1e-6):
    """Checks positions and axis directions of the prims of bodies against the state; the scales of prims do not change."""
    for path in simulation.report.frames:
        found, wanted = matrix(stage, path, code), expected_matrix(simulation, path)
        size = max(1.0, np.abs(wanted[:3, 3]).max())
        np.testing.assert_allclose(found[:3, 3], wanted[:3, 3], atol=atol * size, err_msg=path)
        axes = found[:3, :3] / np.linalg.norm(found[:3, :3], axis=0)
        np.testing.assert_allclose(axes, wanted[:3, :3], atol=10.0 * atol, err_msg=path)


@pytest.mark.parametrize("meters", [1.0, 0.01])
@pytest.mark.parametrize("up", ["Z", "Y"])
@pytest.mark.parametrize("rate", [24.0, 60.0])
def test_a_stone_falls_by_half_g_t_squared_in_the_units_of_the_stage(tmp_path, meters, up, rate):
    """The first frame is at startTimeCode, and a time code is 1/timeCodesPerSecond later than the one before."""
    source = write_stage(tmp_path / "fall.usda", stone("stone"), meters=meters, up=up, rate=rate, start=100.0)
    simulation = Simulation(source, solver=OPTIONS)
    simulation.step(12)
    axis = "XYZ".index(up)
    assert simulation.time == pytest.approx(12.0 / rate) and simulation.time_code == 112.0
    for frame in range(13):
        place = matrix(simulation.stage, "/World/stone", 100.0 + frame)[:3, 3]
        fall = -0.5 * 9.81 * (frame / rate) ** 2 / meters
        # Steps are exact under constant force; positions add up in float32.
        np.testing.assert_allclose(place[axis], fall, atol=2e-6 / meters)
        np.testing.assert_allclose(np.delete(place, axis), 0.0, atol=1e-7)
    assert simulation.stage.GetEndTimeCode() == 112.0 and simulation.stage.GetStartTimeCode() == 100.0


def test_fps_apart_from_the_time_codes(tmp_path):
    source = write_stage(tmp_path / "fall.usda", stone("stone"), rate=24.0)
    simulation = Simulation(source, fps=60.0, substeps=3, solver=OPTIONS)
    simulation.step(5)
    times = simulation.stage.GetPrimAtPath("/World/stone").GetAttribute("xformOp:translate:simulated").GetTimeSamples()
    np.testing.assert_allclose(times, np.arange(6) * 24.0 / 60.0)
    assert simulation.time == pytest.approx(5.0 / 60.0)


NESTED = (
    # a parent with every kind of op, an uneven scale on top
    'def Xform "group"\n{{\ndouble3 xformOp:translate = (1, 2, 3)\nfloat3 xformOp:rotateXYZ = (10, 20, 30)\n'
    "float3 xformOp:scale = ({scale})\n"
    'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ", "xformOp:scale"]\n{inside}}}\n'
)
TURNED = (
    "double3 xformOp:translate = (0.5, 0.4, 0.3)\nfloat xformOp:rotateZ = 40\nfloat xformOp:rotateX:tilt = -25\n"
    "float3 xformOp:scale = (2, 2, 2)\n"
    'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateZ", "xformOp:rotateX:tilt", "xformOp:scale", '
    '"!invert!xformOp:rotateX:tilt"]\n'
)
PIVOTED = (
    "matrix4d xformOp:transform = ((0,1,0,0),(-1,0,0,0),(0,0,1,0),(3,4,5,1))\n"
    'uniform token[] xformOpOrder = ["xformOp:transform"]\nvector3f physics:angularVelocity = (40, 50, 60)\n'
    "vector3f physics:velocity = (1, 0, 0)\n"
)
RESET = (
    'double3 xformOp:translate = (7, 8, 9)\nuniform token[] xformOpOrder = ["!resetXformStack!", "xformOp:translate"]\n'
)


@pytest.mark.parametrize("scale", ["1, 1, 1", "2, 2, 2", "1, 2, 0.5", "-1, 1, 1"])
@pytest.mark.parametrize("meters", [1.0, 0.01])
def test_nested_prims_with_ops_of_every_kind(tmp_path, scale, meters):
    inside = stone("turned", TURNED) + stone("pivoted", PIVOTED, stone("reset", RESET)) + stone("plain")
    source = write_stage(tmp_path / "nested.usda", NESTED.format(scale=scale, inside=inside), meters=meters, up="Y")
    before = Usd.Stage.Open(source)
    paths = [f"/World/group/{name}" for name in ("turned", "pivoted", "pivoted/reset", "plain")]
    starts = {path: matrix(before, path, 0.0) for path in paths}
    simulation = Simulation(source, solver=OPTIONS)
    assert set(simulation.report.bodies) == set(paths)
    for path in paths:  # before the first step all transforms agree, including scales and shears
        np.testing.assert_allclose(matrix(simulation.stage, path, 0.0), starts[path], atol=1e-5 / meters)
    # The matrix of a prim's frame in its body, with constant scale, shear and mirror.
    stretches = {path: np.linalg.inv(expected_matrix(simulation, path)) @ starts[path] for path in paths}
    simulation.step(6)
    code = simulation.time_code
    for path in paths:
        wanted = expected_matrix(simulation, path) @ stretches[path]
        np.testing.assert_allclose(matrix(simulation.stage, path, code), wanted, atol=1e-5 / meters, err_msg=path)
    moved = matrix(simulation.stage, paths[1], code) @ np.linalg.inv(starts[paths[1]])
    assert np.linalg.norm(Rotation.from_matrix(moved[:3, :3]).as_rotvec()) > 0.05


def test_a_prim_under_a_moving_parent(tmp_path):
    """A lift that the source animates does not carry the stone that falls in it."""
    lift = (
        'def Xform "lift"\n{\ndouble3 xformOp:translate.timeSamples = { 0: (0, 0, 0), 24: (0, 10, 5) }\n'
        'uniform token[] xformOpOrder = ["xformOp:translate"]\n' + stone("stone") + "}\n"
    )
    simulation = Simulation(write_stage(tmp_path / "lift.usda", lift), solver=OPTIONS)
    simulation.step(12)
    for frame in (3, 12):
        place = matrix(simulation.stage, "/World/lift/stone", float(frame))[:3, 3]
        np.testing.assert_allclose(place, (0.0, 0.0, -0.5 * 9.81 * (frame / 24.0) ** 2), atol=1e-5)
    np.testing.assert_allclose(matrix(simulation.stage, "/World/lift", 12.0)[:3, 3], (0.0, 5.0, 2.5))


@pytest.mark.parametrize("sizes", [("1, 1, 1", "2, 2, 2"), ("2, 2, 2", "1, 3, 2")])
def test_a_prim_under_a_parent_that_grows(tmp_path, sizes):
    """A body is rigid: the scale of its prim makes up for that of its parent, from the frame on in which that changes."""
    group = (
        f'def Xform "group"\n{{\nfloat3 xformOp:scale.timeSamples = {{ 0: ({sizes[0]}), 6: ({sizes[0]}), 12: ({sizes[1]}) }}\n'
        'uniform token[] xformOpOrder = ["xformOp:scale"]\n'
        + stone("stone", "vector3f physics:angularVelocity = (0, 0, 90)")
        + "}\n"
    )
    simulation = Simulation(write_stage(tmp_path / "grow.usda", group), solver=OPTIONS)
    path, size = "/World/group/stone", float(sizes[0].split(",")[0])
    simulation.step(12)
    for frame in range(13):
        place = matrix(simulation.stage, path, float(frame))
        # float32 poses, and ops that are multiplied up again.
        np.testing.assert_allclose(np.linalg.norm(place[:3, :3], axis=0), size, rtol=1e-6)
        np.testing.assert_allclose(place[:3, 3], (0.0, 0.0, -0.5 * 9.81 * (frame / 24.0) ** 2), atol=1e-5)


def digest(path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_the_source_stays_as_it_was(tmp_path):
    source = write_stage(tmp_path / "fall.usda", stone("stone"))
    layer = Sdf.Layer.FindOrOpen(source)
    file, text = digest(source), layer.ExportToString()
    simulation = Simulation(source, solver=OPTIONS)
    simulation.step(3)
    simulation.save(tmp_path / "motion.usda")
    root = simulation.stage.GetRootLayer()
    assert not root.dirty and root.ExportToString() == text and digest(source) == file
    with pytest.raises(ValueError, match=r"fall\.usda.*stage"):
        simulation.save(source)


@pytest.mark.parametrize("suffix", [".usda", ".usdc"])
def test_a_saved_motion_is_a_stage_of_its_own(tmp_path, suffix):
    (tmp_path / "scenes").mkdir()
    (tmp_path / "out").mkdir()
    source = write_stage(
        tmp_path / "scenes" / "fall.usda", stone("stone", inside='def Sphere "ball"\n{\n}'), rate=48.0, up="Y"
    )
    simulation = Simulation(source, solver=OPTIONS)
    simulation.step(5)
    target = tmp_path / "out" / f"motion{suffix}"
    simulation.save(target)
    # Folders may be moved together: the source is named relatively.
    (tmp_path / "moved").mkdir()
    for folder in ("scenes", "out"):
        (tmp_path / folder).rename(tmp_path / "moved" / folder)
    stage = Usd.Stage.Open(str(tmp_path / "moved" / "out" / f"motion{suffix}"))
    assert stage.GetPrimAtPath("/World/stone/ball").GetTypeName() == "Sphere"
    assert (stage.GetTimeCodesPerSecond(), stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (48.0, 0.0, 5.0)
    assert UsdGeom.GetStageUpAxis(stage) == "Y" and str(stage.GetDefaultPrim().GetPath()) == "/World"
    assert_follows(simulation, stage, 5.0)


SHAPES = (
    'def Xform "holder" (variants = { string size = "small" }\nprepend variantSets = "size")\n{\nvariantSet "size" = {\n'
    '"small" {\ndouble3 xformOp:translate = (0, 0, 1)\n}\n"large" {\ndouble3 xformOp:translate = (0, 0, 5)\n}\n}\n'
    'uniform token[] xformOpOrder = ["xformOp:translate"]\n%s}\n'
)


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_saved_motion_is_of_what_was_simulated(tmp_path, in_memory):
    """Includes stages without a file, and opinions of the session layer only, here the selection of a variant."""
    source = write_stage(tmp_path / "fall.usda", SHAPES % stone("stone", inside='def Sphere "ball"\n{\n}'))
    stage = Usd.Stage.CreateInMemory() if in_memory else Usd.Stage.Open(source)
    if in_memory:
        stage.GetRootLayer().ImportFromString(Path(source).read_text())
    with Usd.EditContext(stage, stage.GetSessionLayer()):
        stage.GetPrimAtPath("/World/holder").GetVariantSet("size").SetVariantSelection("large")
    simulation = Simulation(stage, solver=OPTIONS)
    simulation.step(4)
    simulation.save(tmp_path / "motion.usda")
    saved = Usd.Stage.Open(str(tmp_path / "motion.usda"))
    assert saved.GetPrimAtPath("/World/holder/stone/ball").GetTypeName() == "Sphere"
    assert (saved.GetStartTimeCode(), saved.GetEndTimeCode(), saved.GetTimeCodesPerSecond()) == (0.0, 4.0, 24.0)
    assert_follows(simulation, saved, 4.0)
    assert matrix(saved, "/World/holder", 4.0)[2, 3] == 5.0
    assert bool(saved.GetRootLayer().subLayerPaths) == (not in_memory)


def test_changes_that_are_not_saved_are_named(tmp_path):
    stage = Usd.Stage.Open(write_stage(tmp_path / "fall.usda", stone("stone")))
    UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/World/stone")).SetTranslate((0.0, 0.0, 7.0))
    simulation = Simulation(stage, solver=OPTIONS)
    with pytest.warns(UserWarning, match=r"fall\.usda.*changes.*motion\.usda"):
        simulation.save(tmp_path / "motion.usda")
    stage.Save()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulation.save(tmp_path / "motion.usda")


def test_a_layer_of_the_stage_with_a_clock_of_its_own(tmp_path):
    """A sublayer counts 60 a second under a stage that counts 24; USD maps between the two, and so must we."""
    source = write_stage(tmp_path / "fall.usda", stone("stone"), rate=24.0)
    motion = Sdf.Layer.CreateNew(str(tmp_path / "motion.usda"))
    motion.timeCodesPerSecond = 60.0
    motion.Save()
    stage = Usd.Stage.Open(source)
    stage.GetSessionLayer().subLayerPaths.insert(0, motion.identifier)
    simulation = Simulation(stage, layer=motion, solver=OPTIONS)
    simulation.step(4)
    assert simulation.layer is motion and simulation.stage is stage
    samples = motion.ListTimeSamplesForPath("/World/stone.xformOp:translate:simulated")
    np.testing.assert_allclose(samples, np.arange(5) * 2.5)
    assert_follows(simulation, stage, 4.0)
    place = matrix(stage, "/World/stone", 2.0)[2, 3]
    np.testing.assert_allclose(place, -0.5 * 9.81 * (2.0 / 24.0) ** 2, atol=1e-6)
    with pytest.raises(RuntimeError, match=r"layer .*motion\.usda"):
        simulation.save(tmp_path / "other.usda")


def test_bodies_in_instances_get_prims_of_their_own(tmp_path):
    prototype = 'class Xform "proto"\n{\n' + stone("stone") + "}\n"
    placed = "".join(
        f'def Xform "copy_{i}" (\ninstanceable = true\nreferences = </World/proto>\n)\n{{\n'
        f'double3 xformOp:translate = ({i}, 0, 0)\nuniform token[] xformOpOrder = ["xformOp:translate"]\n}}\n'
        for i in range(3)
    )
    simulation = Simulation(write_stage(tmp_path / "instances.usda", prototype + placed), solver=OPTIONS)
    assert simulation.model.body_count == 3
    simulation.step(3)
    assert_follows(simulation, simulation.stage, 3.0)
    for i in range(3):
        place = matrix(simulation.stage, f"/World/copy_{i}/stone", 3.0)[:3, 3]
        np.testing.assert_allclose(place, (i, 0.0, -0.5 * 9.81 * (3.0 / 24.0) ** 2), atol=1e-6)


@pytest.mark.skipif(not SCENES.is_dir(), reason="no ../shared/scenes beside the repository")
@pytest.mark.parametrize("name", ["cartpole.usda", "ant.usda"])
def test_scenes_written_elsewhere(tmp_path, name):
    simulation = Simulation(SCENES / name, solver=OPTIONS)
    for frame in range(4):
        assert_follows(simulation, simulation.stage, simulation.time_code, atol=2e-6)
        if frame == 0 and simulation.model.joint_dof_count == 3:
            force = simulation.control.joint_f.numpy()
            force[0] = 5.0
            simulation.control.joint_f.assign(force)
        simulation.step(2)
    moved = [
        not np.allclose(matrix(simulation.stage, p, 0.0), matrix(simulation.stage, p, simulation.time_code), atol=1e-4)
        for p in simulation.report.frames
    ]
    assert any(moved)
    simulation.save(tmp_path / "motion.usda")
    assert_follows(simulation, Usd.Stage.Open(str(tmp_path / "motion.usda")), simulation.time_code, atol=2e-6)


def test_merged_bodies_keep_their_prims(tmp_path, rng):
    """Bodies that a fixed joint welds become one; both prims follow it."""
    weld = (
        'def PhysicsFixedJoint "weld"\n{\nrel physics:body0 = </World/a>\nrel physics:body1 = </World/b>\n'
        "point3f physics:localPos0 = (1, 2, 0)\n}\n"
    )
    spin = "vector3f physics:angularVelocity = (90, 0, 30)\n"
    place = 'double3 xformOp:translate = (1, 2, 0)\nuniform token[] xformOpOrder = ["xformOp:translate"]\n'
    source = write_stage(tmp_path / "weld.usda", stone("a", spin) + stone("b", place) + weld)
    simulation = Simulation(source, solver=OPTIONS, collapse_fixed_joints=True)
    assert simulation.model.body_count == 1 and len(simulation.report.frames) == 2
    simulation.step(6)
    assert_follows(simulation, simulation.stage, 6.0)
    a, b = (matrix(simulation.stage, f"/World/{name}", 6.0) for name in "ab")
    np.testing.assert_allclose((np.linalg.inv(a) @ b)[:3, 3], (1.0, 2.0, 0.0), atol=1e-5)


def test_samples_only_when_asked(tmp_path):
    simulation = Simulation(write_stage(tmp_path / "fall.usda", stone("stone")), write=False, solver=OPTIONS)
    simulation.step(4)
    simulation.write()
    attribute = simulation.stage.GetPrimAtPath("/World/stone").GetAttribute("xformOp:translate:simulated")
    assert attribute.GetTimeSamples() == [4.0]


def test_wrong_arguments_say_what_to_do(tmp_path):
    source = write_stage(tmp_path / "fall.usda", stone("stone"))
    with pytest.raises(TypeError, match=r"Usd\.Stage"):
        Simulation(7)
    with pytest.raises(FileNotFoundError, match=r"nothing\.usda"):
        Simulation(tmp_path / "nothing.usda")
    with pytest.raises(ValueError, match="sublayer"):
        Simulation(source, layer=Sdf.Layer.CreateAnonymous())
    with pytest.raises(TypeError, match=r"Sdf\.Layer"):
        Simulation(source, layer="motion.usda")
    with pytest.raises(ValueError, match=r"fps 0.*0"):
        Simulation(source, fps=0)
    with pytest.raises(ValueError, match=r"substeps 0.*1"):
        Simulation(source, substeps=0)
    simulation = Simulation(source, solver=OPTIONS)
    with pytest.raises(ValueError, match=r"frames -1.*0"):
        simulation.step(-1)
    with pytest.raises(ValueError, match=r"\.usd"):
        simulation.save(tmp_path / "motion.mov")
    q = simulation.state.joint_q.numpy()
    simulation.state.joint_q.assign(np.full_like(q, np.nan))
    with pytest.raises(RuntimeError, match="diverged"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        simulation.step()


def test_a_time_sample_is_where_the_stage_was_at_the_start(tmp_path):
    """Bodies start where the source has them at startTimeCode."""
    animated = "double3 xformOp:translate.timeSamples = { 0: (0, 0, 0), 10: (5, 0, 0) }\n"
    animated += 'uniform token[] xformOpOrder = ["xformOp:translate"]\n'
    source = write_stage(tmp_path / "a.usda", stone("stone", animated), start=4.0)
    simulation = Simulation(source, solver=OPTIONS)
    np.testing.assert_allclose(simulation.state.body_q.numpy().reshape(-1)[:3], (2.0, 0.0, 0.0), atol=1e-6)
    simulation.step(2)
    np.testing.assert_allclose(matrix(simulation.stage, "/World/stone", 6.0)[0, 3], 2.0, atol=1e-6)
    assert Gf.IsClose(simulation.time_code, 6.0, 1e-12)
