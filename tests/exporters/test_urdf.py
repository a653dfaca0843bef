"""Robots of models as URDF files, and back."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import warp as wp

from newton_like import assets, eval_fk, eval_mass_matrix
from newton_like.exporters import urdf
from newton_like.geometry.transforms import quat_from_rpy, quat_to_matrix
from newton_like.model.actuators import Actuator
from newton_like.model.builder.builder import ModelBuilder
from newton_like.model.configs import JointDofConfig
from newton_like.model.tendons import Tendon
from newton_like.types import JointType
from tests.support.paths import ROBOTS, by_size
from tests.support.remarks import remarked

PATHS = [Path(assets.path("quadruped.urdf")), Path(assets.path("arm.urdf")), *sorted(ROBOTS.rglob("*.urdf"))]

pytestmark = pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")

BODY = ("body_mass", "body_com", "body_inertia")
DOF = (
    "joint_limit_lower", "joint_limit_upper", "joint_effort_limit", "joint_velocity_limit", "joint_damping",
    "joint_friction", "joint_armature", "joint_axis",
)  # fmt: skip
JOINT = (
    "joint_type",
    "joint_parent",
    "joint_child",
    "joint_X_p",
    "joint_X_c",
    "joint_mimic_joint",
    "joint_mimic_coeffs",
)
SHAPE = ("shape_type", "shape_body", "shape_transform", "shape_scale", "shape_flags", "shape_color", "shape_opacity")


def finalized(builder):
    return builder.finalize("cpu", dtype=wp.float64)


def written_and_read(model, path, **options):
    """The model of the exported file, and the report of the exporter."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = urdf.write(model, path)
    builder = ModelBuilder()
    builder.add_urdf(path, floating=report.floating, xform=report.xform if not report.floating else None, **options)
    return finalized(builder), report


def differences(first, second, names, tolerance):
    found = {}
    for name in names:
        a, b = (getattr(model, name).numpy().astype(float) for model in (first, second))
        if a.shape == b.shape and a.shape[1:] == (7,):  # q and -q turn the same way
            b[:, 3:] *= np.sign(np.sum(a[:, 3:] * b[:, 3:], axis=1))[:, None]
        if a.shape != b.shape or not np.allclose(a, b, rtol=tolerance, atol=tolerance):
            found[name] = np.abs(a - b).max() if a.shape == b.shape else (a.shape, b.shape)
    return found


@pytest.mark.parametrize("path", by_size(PATHS), ids=lambda path: path.stem)
def test_every_robot_comes_back_field_by_field(path, tmp_path):
    """Every other robot floats, and has its fixed joints collapsed."""
    builder, floating = ModelBuilder(), PATHS.index(path) % 2 == 0
    # Fixed robots have a random base pose; hundreds of visual meshes are not read.
    place = None if floating else (0.1, -0.2, 0.3, 0.0, 0.6, 0.0, 0.8)
    builder.add_urdf(
        path, xform=place, floating=floating, hide_visuals=path.stem != "arm", collapse_fixed_joints=floating
    )
    first = finalized(builder)
    second, report = written_and_read(first, tmp_path / "out.urdf")
    assert second.body_label == first.body_label and second.joint_label == first.joint_label
    # Shapes of merged links are named after the link that they are on now.
    names = [[label.rpartition("/")[2] for label in model.shape_label] for model in (first, second)]
    assert names[0] == names[1]
    # Angles are written as roll, pitch and yaw: a few roundings of numbers of size 1.
    assert differences(first, second, (*BODY, *DOF, *JOINT, *SHAPE, "joint_q", "joint_target_q"), 1e-14) == {}
    for ours, theirs in zip(first.shape_source, second.shape_source, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            triangles = [mesh.vertices[mesh.indices.reshape(-1, 3)] for mesh in (ours, theirs)]
            np.testing.assert_array_equal(*triangles)
    assert report.remarks == {}


def test_frames_move_to_where_joints_hold_them(rng, tmp_path):
    """Random trees with anchors anywhere in the child: links move, poses of shapes and the mass matrix do not."""
    builder = ModelBuilder()
    joints, parent = [], -1
    for number in range(6):
        turn = lambda: quat_from_rpy(rng.uniform(-3, 3, 3))  # noqa: E731
        link = builder.add_link(
            mass=rng.uniform(1, 2), com=rng.normal(size=3), inertia=np.diag(rng.uniform(1, 1.5, 3)), label=f"l{number}"
        )
        ends = {
            "parent_xform": (*rng.normal(size=3), *turn()),
            "child_xform": (*rng.normal(size=3), *turn()),
            "label": f"j{number}",
        }
        cfg = JointDofConfig(
            axis=rng.normal(size=3), damping=0.3, armature=rng.uniform(0, 1), limit_lower=-2.0, limit_upper=1.0
        )
        add = (builder.add_joint_revolute, builder.add_joint_prismatic)[number % 2]
        if number == 3:
            joints.append(builder.add_joint_fixed(parent, link, **ends))
        else:
            joints.append(add(parent, link, axis=cfg, **ends))
        builder.add_shape_box(
            link,
            xform=(*rng.normal(size=3), *turn()),
            hx=0.1,
            hy=0.2,
            hz=0.3,
            cfg=builder.default_shape_cfg.copy(density=0.0),
        )
        parent = rng.integers(-1, number + 1) if number > 2 else link
        parent = link if parent < 0 else int(parent)
    builder.add_articulation(joints, label="bot")
    first = finalized(builder)
    second, report = written_and_read(first, tmp_path / "out.urdf", joint_ordering=None)
    # The base is no free or fixed joint: it gets a link of its own in the file, which does not move.
    assert second.body_count == first.body_count + 1 and set(report.links.values()) == {f"l{n}" for n in range(6)}
    q = rng.uniform(-1, 1, first.joint_coord_count)
    results = []
    for model in (first, second):
        state = model.state()
        state.joint_q.assign(q)
        eval_fk(model, state.joint_q, state.joint_qd, state)
        poses = {}
        for body, pose in enumerate(state.body_q.numpy()):
            for shape in np.flatnonzero(model.shape_body.numpy() == body):
                local = model.shape_transform.numpy()[shape]
                R = quat_to_matrix(pose[3:])
                poses[model.shape_label[shape].rpartition("/")[2], model.body_label[body].rpartition("/")[2]] = (
                    pose[:3] + R @ local[:3], R @ quat_to_matrix(local[3:])
                )  # fmt: skip
        results.append((eval_mass_matrix(model, state).numpy()[0], poses))
    (M1, poses1), (M2, poses2) = results
    np.testing.assert_allclose(M2, M1, rtol=0, atol=1e-12 * np.abs(M1).max())
    assert len(poses1) == len(poses2) == 6
    for key, (at, turned) in poses1.items():
        link = next(other for name, other in poses2 if other == key[1])
        found = next(value for (_, other), value in poses2.items() if other == link)
        np.testing.assert_allclose(found[0], at, atol=1e-12)
        np.testing.assert_allclose(found[1], turned, atol=1e-12)


@pytest.mark.parametrize("pitch", [0.5 * np.pi, -0.5 * np.pi, 0.5 * np.pi - 1e-9, 0.5 * np.pi - 1e-5, 0.3])
def test_turns_come_back_wherever_they_point(rng, pitch, tmp_path):
    q = quat_from_rpy((rng.uniform(-3, 3), pitch, rng.uniform(-3, 3)))
    back = quat_from_rpy(urdf._rpy(q))
    # Two roundings of numbers of size 1; the sign of a quaternion is free.
    assert abs(abs(q @ back) - 1.0) < 1e-15 and np.abs(quat_to_matrix(q) - quat_to_matrix(back)).max() < 1e-14


def planar(builder, axes):
    a, b = builder.add_link(mass=1.0, label="a"), builder.add_link(mass=1.0, label="b")
    first = builder.add_joint_free(a, label="base")
    second = builder.add_joint_d6(a, b, label="d6", linear_axes=axes[:2], angular_axes=axes[2:])
    builder.add_articulation([first, second], label="bot")
    builder.body_inertia = [np.eye(3), np.eye(3)]
    return finalized(builder)


def test_planar_joints_come_back_and_other_d6_are_refused(tmp_path):
    second, _ = written_and_read(planar(ModelBuilder(), ["x", "y", "z"]), tmp_path / "out.urdf")
    assert JointType(second.joint_type.numpy()[1]) == JointType.D6 and second.joint_dof_dim.numpy()[1].tolist() == [
        2,
        1,
    ]
    with pytest.raises(ValueError, match=r"joint 'd6' \(index 1\).*D6.*2.*1.*URDF"):
        urdf.write(planar(ModelBuilder(), ["y", "x", "z"]), tmp_path / "other.urdf")
    assert not (tmp_path / "other.urdf").exists()


def test_what_urdf_cannot_say_is_said_once(tmp_path):
    builder = ModelBuilder()
    body = builder.add_link(mass=1.0, inertia=np.eye(3), is_kinematic=True, label="a")
    tip = builder.add_link(mass=1.0, inertia=np.eye(3), label="b")
    base = builder.add_joint_fixed(-1, body, label="base")
    joint = builder.add_joint_revolute(body, tip, axis="z", target_ke=5.0, stiffness=3.0, effort_limit=0.0, label="j")
    builder.add_articulation([base, joint], label="bot")
    builder.add_shape_cone(tip, label="cone")
    builder.add_site(tip, label="tool")
    lid = builder.add_link(mass=1.0, inertia=np.eye(3), label="lid")
    axes = {"linear_axes": [JointDofConfig(axis="x", limit_upper=1.0), "y"], "angular_axes": ["z"]}
    table = builder.add_joint_d6(body, lid, enabled=False, label="table", **axes)
    builder.extend_articulation(0, [table])
    with pytest.warns(
        urdf.UrdfExportWarning,
        match=r"out.urdf.*shapes.*URDF.*cone.*limits.*0.*j.*gains",
    ):
        report = urdf.write(finalized(builder), tmp_path / "out.urdf")
    # each is told once
    words = ("shapes that", "limits of 0", "springs", "gains", "sites", "kinematic", "disabled", "planar joints")
    assert [sum(word in remark for remark in report.remarks) for word in words] == [1] * len(report.remarks)


def test_wrong_arguments_and_robots_are_refused(tmp_path):
    builder = ModelBuilder()
    with pytest.raises(TypeError, match="Model"):
        urdf.write(builder, tmp_path / "x.urdf")
    a, b = (
        builder.add_link(mass=1.0, inertia=np.eye(3), label="a"),
        builder.add_link(mass=1.0, inertia=np.eye(3), label="a"),
    )
    joints = [builder.add_joint_free(a, label="f"), builder.add_joint_ball(a, b, label="b")]
    builder.add_articulation(joints, label="bot")
    model = finalized(builder)
    with pytest.raises(TypeError, match=r"path.*5"):
        urdf.write(model, 5)
    with pytest.raises(IndexError, match="articulation 3"):
        urdf.write(model, tmp_path / "x.urdf", articulation=3)
    with pytest.raises(ValueError, match="name 'a'"):
        urdf.write(model, tmp_path / "x.urdf")
    model.body_label[1] = "c"
    with pytest.raises(ValueError, match=r"joint 'b' \(index 1\).*BALL"):
        urdf.write(model, tmp_path / "x.urdf")
    loop = ModelBuilder()
    loop.add_urdf(assets.path("arm.urdf"))
    loop.add_joint_ball(-1, loop.body_count - 1, label="loop")
    with pytest.raises(ValueError, match=r"joint 'loop'.*URDF"):
        urdf.write(finalized(loop), tmp_path / "x.urdf")


def test_tendons_and_actuators_of_the_robot_are_named(tmp_path):
    builder = ModelBuilder()
    for name in ("a", "b"):
        link = builder.add_link(mass=1.0, inertia=np.eye(3), label=f"{name}/link")
        joint = builder.add_joint_revolute(-1, link, label=f"{name}/hinge")
        builder.add_articulation([joint], label=name)
        builder.add_tendon(Tendon(label=f"{name}/sinew", joints=((joint, 0, 1.0),)))
        site = builder.add_site(link)
        cord = builder.add_tendon(Tendon(label=f"{name}/cord", path=(("site", site), ("site", builder.add_site(-1)))))
        for kind, target in (("joint", joint), ("tendon", cord), ("site", site), ("body", link)):
            builder.add_actuator(Actuator(label=f"{name}/{kind}", transmission=kind, target=target))
    with pytest.warns(urdf.UrdfExportWarning, match="tendons.*: b/sinew, b/cord"):
        report = urdf.write(builder.finalize("cpu"), tmp_path / "b.urdf", articulation=1)
    assert remarked(report, "tendons") == ["b/sinew", "b/cord"]
    assert remarked(report, "actuators", "written") == ["b/joint", "b/tendon", "b/site", "b/body"]
