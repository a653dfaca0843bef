"""Named frames of bodies, such as those of rotors and merged links, and frames of joints come back from USD."""

import warnings

import numpy as np
import pytest

pytest.importorskip("pxr")
from pxr import Usd, UsdGeom

from newton_like import JointDofConfig, ModelBuilder
from newton_like.articulation.multirotor.vehicles import add_vehicle
from newton_like.geometry.transforms import transform_multiply
from newton_like.importers.xml_source import ImportFileError
from newton_like.usd import write
from tests.support.random_trees import random_transform


def floating_and_fixed(rng) -> ModelBuilder:
    """A free body and an arm whose base was merged into the world, both with frames in a mixed order."""
    builder = ModelBuilder()
    hull, base, arm = (builder.add_link(mass=1.0, inertia=np.eye(3), label=name) for name in ("hull", "base", "arm"))
    builder.add_articulation([builder.add_joint_free(hull)], label="boat")
    joints = [
        builder.add_joint_fixed(-1, base, parent_xform=random_transform(rng)),
        builder.add_joint_revolute(base, arm, axis=(0, 1, 0)),
    ]
    builder.add_articulation(joints, label="crane")
    builder.collapse_fixed_joints()
    arm = builder.body_label.index("arm")
    builder.frames.extend(
        ["tip", "bow", "tip/eye"], [arm, hull, arm], [random_transform(rng) for _ in range(3)], [-1, -1, -1]
    )
    return builder


def assert_same(found, frames, tolerance=1e-12) -> None:
    assert found.label == frames.label
    np.testing.assert_array_equal(found.body, frames.body)
    np.testing.assert_array_equal(found.articulation, frames.articulation)
    np.testing.assert_allclose(found.transform, frames.transform, atol=tolerance)


@pytest.mark.parametrize("copies", [0, 3])
def test_frames_come_back(rng, tmp_path, copies):
    one, builder = floating_and_fixed(rng), ModelBuilder()
    builder.add_ground_plane()
    if copies:
        builder.replicate(one, copies, spacing=(3.0, 2.0, 0.0))
    else:
        builder.add_builder(one, xform=random_transform(rng), label_prefix="port")
    builder.frames.extend(["mark"], [-1], [random_transform(rng)])
    written = write(builder.finalize("cpu"), tmp_path / "scene.usda")
    assert not written.remarks
    again = ModelBuilder()
    report = again.add_usd(str(tmp_path / "scene.usda"))
    assert not report.not_understood
    # the frame of the scene as a whole is read with the scene, before its worlds
    order = np.argsort([label != "mark" for label in builder.frames.label], kind="stable") if copies else slice(None)
    expected = builder.frames.copy()
    expected.label = np.array(expected.label)[order].tolist()
    for name in ("body", "articulation", "transform"):
        setattr(expected, name, getattr(expected, name)[order])
    assert_same(again.frames, expected)


def test_rotors_of_vehicles_come_back_in_copies(tmp_path):
    one, builder = ModelBuilder(), ModelBuilder()
    add_vehicle(one, "iris")
    assert len(one.frames)
    builder.replicate(one, 3, spacing=(3.0, 0.0, 0.0))
    assert write(builder.finalize("cpu"), tmp_path / "fleet.usda").copies == 2
    again = ModelBuilder()
    again.add_usd(str(tmp_path / "fleet.usda"))
    assert_same(again.frames, builder.frames)


def test_worlds_with_other_frames_are_written_in_full(rng, tmp_path):
    one, builder = ModelBuilder(), ModelBuilder()
    add_vehicle(one, "iris")
    builder.replicate(one, 2, spacing=(3.0, 0.0, 0.0))
    builder.frames.transform[-1] = random_transform(rng)
    assert write(builder.finalize("cpu"), tmp_path / "fleet.usda").copies == 0
    again = ModelBuilder()
    again.add_usd(str(tmp_path / "fleet.usda"))
    assert_same(again.frames, builder.frames)


def test_frames_of_the_world_move_with_the_stage(rng, tmp_path):
    """As the bodies: a stage that refers to the file below a moved prim, which is added at another place."""
    builder = floating_and_fixed(rng)
    write(builder.finalize("cpu"), tmp_path / "scene.usda")
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, "Z")
    prim = UsdGeom.Xform.Define(stage, "/Site")
    shift, place = rng.normal(size=3), random_transform(rng)
    prim.AddTranslateOp().Set(tuple(shift.tolist()))
    prim.GetPrim().GetReferences().AddReference(str(tmp_path / "scene.usda"))
    again = ModelBuilder()
    again.add_usd(stage, xform=place, package_dirs=[str(tmp_path)])
    moved = builder.frames.copy()
    pose = transform_multiply(np.array(place), [*shift, 0, 0, 0, 1])
    fixed = moved.body < 0
    assert fixed.any()
    moved.transform[fixed] = transform_multiply(pose, moved.transform[fixed])
    assert_same(again.frames, moved, 1e-6)


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("frameIndices", [0], "2 newtonLike:frameIndices"),
        ("framePoses", [0.0] * 13, "14 newtonLike:framePoses"),
        ("framePoses", [0.0] * 14, "unit length"),
        ("framePoses", [np.nan] + [1.0] * 13, "finite"),
    ],
)
def test_damaged_frames_are_refused_with_their_prim(tmp_path, name, values, told):
    builder = ModelBuilder()
    body = builder.add_link(mass=1.0, inertia=np.eye(3), label="hull")
    builder.add_articulation([builder.add_joint_free(body)])
    builder.frames.extend(["a", "b"], [body] * 2, [(0, 0, 0, 0, 0, 0, 1)] * 2)
    written = write(builder.finalize("cpu"), tmp_path / "scene.usda")
    stage = Usd.Stage.Open(str(tmp_path / "scene.usda"))
    stage.GetPrimAtPath(written.bodies[0]).GetAttribute(f"newtonLike:{name}").Set(values)
    with pytest.raises(ImportFileError, match=f"{written.bodies[0]}.*{told}"):
        ModelBuilder().add_usd(stage)


def test_axes_that_are_not_orthogonal_come_back_without_remarks(rng, tmp_path):
    """The schemas have the nearest orthogonal axes, which do not hold the bodies where they are."""
    builder = ModelBuilder()
    body = builder.add_link(mass=1.0, inertia=np.eye(3))
    along, about = ([JointDofConfig(axis=rng.normal(size=3))] for _ in range(2))
    builder.add_articulation(
        [builder.add_joint_d6(-1, body, linear_axes=along, angular_axes=about, parent_xform=random_transform(rng))]
    )
    builder.joint_q[:] = rng.uniform(0.3, 1.0, 2).tolist()
    write(builder.finalize("cpu"), tmp_path / "joint.usda")
    again = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.add_usd(str(tmp_path / "joint.usda"))
    np.testing.assert_allclose(again.joint_q, builder.joint_q, atol=1e-6)
    np.testing.assert_allclose(again.joint_axis, builder.finalize("cpu").joint_axis.numpy(), atol=1e-6)
