"""Recorded animations: poses in USD at a time code are those of the state at that time."""

import numpy as np
import pytest

pytest.importorskip("pxr")
from pxr import Usd, UsdGeom
from scipy.spatial.transform import Rotation, Slerp

from newton_like import ModelBuilder, eval_fk
from newton_like.geometry.transforms import quat_from_axis_angle, transform_multiply, transform_to_matrix
from newton_like.usd import Recorder
from tests.support.random_trees import random_state, random_transform
from tests.support.usd_models import random_scene

pytestmark = pytest.mark.filterwarnings("ignore:.*target gains are set, but target_mode is NONE")

DOUBLE_OF_SINGLE = 2.0e-6
"""Attitudes are written as quatf, and poses of float32 models have unit quaternions to 1e-7."""


def matrices(stage, paths, code) -> np.ndarray:
    cache = UsdGeom.XformCache(Usd.TimeCode(code))
    return np.array([np.array(cache.GetLocalToWorldTransform(stage.GetPrimAtPath(path))).T for path in paths])


def random_states(model, rng, count):
    """Independent states; quaternions of either sign, as solvers leave them."""
    states = []
    for _ in range(count):
        state = model.state()
        q = state.body_q.numpy().reshape(-1, 7)
        for body in range(model.body_count):
            q[body] = random_transform(rng, 2.0)
        state.body_q.assign(q)
        states.append(state)
    return states


@pytest.mark.parametrize("suffix", [".usda", ".usdc"])
def test_a_recording_holds_the_poses_of_all_bodies_and_shapes(rng, tmp_path, suffix):
    model = random_scene(rng, loops=False).finalize()
    path, fps = tmp_path / f"motion{suffix}", float(rng.uniform(10.0, 100.0))
    states = random_states(model, rng, 4)
    times = np.sort(rng.uniform(0.0, 3.0, 4))
    with Recorder(model, path, fps=fps) as recorder:
        for time, state in zip(times, states, strict=True):
            recorder.record(state, time)
    stage = Usd.Stage.Open(str(path))
    assert stage.GetTimeCodesPerSecond() == pytest.approx(fps)
    assert stage.GetStartTimeCode() == pytest.approx(times[0] * fps)
    assert stage.GetEndTimeCode() == pytest.approx(times[-1] * fps)
    shapes = [s for s in range(model.shape_count) if recorder.shape_paths[s]]
    assert len(shapes) > 20
    for time, state in zip(times, states, strict=True):
        q = state.body_q.numpy().astype(float).reshape(-1, 7)
        found = matrices(stage, recorder.body_paths, time * fps)
        np.testing.assert_allclose(found, transform_to_matrix(q), atol=5.0 * DOUBLE_OF_SINGLE)
        found = matrices(stage, [recorder.shape_paths[s] for s in shapes], time * fps)
        for matrix, shape in zip(found, shapes, strict=True):
            body, local = model.shape_body.numpy()[shape], model.shape_transform.numpy()[shape].astype(float)
            expected = transform_multiply(q[body], local) if body >= 0 else local
            np.testing.assert_allclose(matrix[:3, 3], expected[:3], atol=5.0 * DOUBLE_OF_SINGLE)


def test_sizes_of_shapes_in_a_recording(rng, tmp_path):
    """The box around each shape that USD computes is the one of its sizes."""
    builder = ModelBuilder()
    body = builder.add_body(mass=1.0, inertia=np.eye(3))
    radius, half = rng.uniform(0.1, 1.0, 2)
    h = rng.uniform(0.1, 1.0, 3)
    builder.add_shape_box(body, hx=h[0], hy=h[1], hz=h[2])
    builder.add_shape_ellipsoid(body, rx=h[0], ry=h[1], rz=h[2])
    builder.add_shape_capsule(body, radius=radius, half_height=half)
    builder.add_shape_cylinder(body, radius=radius, half_height=half)
    builder.add_shape_cone(body, radius=radius, half_height=half)
    builder.add_shape_sphere(body, radius=radius)
    builder.add_shape_plane(body=-1, width=2.0 * h[0], length=2.0 * h[1])
    round_ = (radius, radius, half)
    expected = [h, h, (radius, radius, half + radius), round_, round_, (radius,) * 3, (h[0], h[1], 0.0)]
    recorder = Recorder(builder.finalize(), tmp_path / "shapes.usda")
    recorder.save()
    stage = Usd.Stage.Open(str(tmp_path / "shapes.usda"))
    for path, half_size in zip(recorder.shape_paths, expected, strict=True):
        gprim = UsdGeom.Boundable(stage.GetPrimAtPath(path))
        computed = UsdGeom.Boundable.ComputeExtentFromPlugins(gprim, Usd.TimeCode.Default())
        written = gprim.GetExtentAttr().Get()
        np.testing.assert_allclose(written, computed, rtol=1e-6)
        scale = np.linalg.norm(matrices(stage, [path], 0.0)[0][:3, :3], axis=0)
        np.testing.assert_allclose(np.array(computed[1]) * scale, half_size, rtol=1e-6)


def test_attitudes_go_the_short_way_between_samples(tmp_path, rng):
    """A state may give q or -q; a player that goes half way between two samples must not see the difference."""
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    model = builder.finalize()
    axis = rng.normal(size=3)
    recorder = Recorder(model, tmp_path / "spin.usda", fps=1.0)
    angles = np.arange(12) * 0.9
    for frame, angle in enumerate(angles):
        state = model.state()
        q = quat_from_axis_angle(axis / np.linalg.norm(axis), angle) * rng.choice([-1.0, 1.0])
        state.body_q.assign(np.array([[0.0, 0.0, 0.0, *q]], dtype=np.float32))
        recorder.record(state, frame)
    recorder.save()
    stage = Usd.Stage.Open(str(tmp_path / "spin.usda"))
    for frame in range(11):
        found = matrices(stage, recorder.body_paths, frame + 0.5)[0][:3, :3]
        ends = Rotation.from_rotvec(np.outer(angles[frame : frame + 2], axis / np.linalg.norm(axis)))
        np.testing.assert_allclose(found, Slerp([0, 1], ends)(0.5).as_matrix(), atol=1e-5)


def test_bodies_that_stand_still_have_one_value(tmp_path):
    builder = ModelBuilder()
    for i in range(2):
        builder.add_body(mass=1.0, inertia=np.eye(3), label=f"body {i}", xform=((i, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)))
    model = builder.finalize()
    recorder = Recorder(model, tmp_path / "a.usda")
    for frame in range(3):
        state = model.state()
        q = state.body_q.numpy()
        q[1, 2] = frame
        state.body_q.assign(q)
        recorder.record(state, frame / 60.0)
    recorder.save()
    stage = Usd.Stage.Open(str(tmp_path / "a.usda"))
    still, moving = (stage.GetPrimAtPath(path).GetAttribute("xformOp:translate") for path in recorder.body_paths)
    assert still.GetNumTimeSamples() == 0 and moving.GetTimeSamples() == [0.0, 1.0, 2.0]
    np.testing.assert_allclose(still.Get(1.0), (0.0, 0.0, 0.0))


def test_worlds_share_what_they_look_like(rng, tmp_path):
    """One gprim for each shape of one world, however many worlds; and each world has its own motion."""
    source = ModelBuilder()
    for i in range(2):
        body = source.add_body(mass=1.0, inertia=np.eye(3), label=f"link_{i}")
        source.add_shape_box(body, hx=0.1 * (i + 1))
        source.add_shape_sphere(body, radius=0.2)
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.replicate(source, 50, spacing=(1.0, 1.0, 0.0))
    model = builder.finalize()
    recorder = Recorder(model, tmp_path / "worlds.usda")
    states = random_states(model, rng, 2)
    for frame, state in enumerate(states):
        recorder.record(state, frame / 60.0)
    recorder.save()
    stage = Usd.Stage.Open(str(tmp_path / "worlds.usda"))
    written = stage.GetRootLayer().ExportToString()
    assert written.count("def Cube") == 2 and written.count("def Sphere") == 2
    assert len({str(stage.GetPrimAtPath(path).GetPrototype().GetPath()) for path in recorder.body_paths}) == 2
    q = states[1].body_q.numpy().astype(float).reshape(-1, 7)
    np.testing.assert_allclose(matrices(stage, recorder.body_paths, 1.0), transform_to_matrix(q), atol=1e-5)
    assert recorder.body_paths[2].startswith("/recording/world_1/")


def test_hidden_shapes_are_guides(tmp_path):
    builder = ModelBuilder()
    body = builder.add_body(mass=1.0, inertia=np.eye(3))
    cfg = builder.default_shape_cfg.copy(is_visible=False)
    builder.add_shape_sphere(body, cfg=cfg)
    builder.add_shape_sphere(body)
    model = builder.finalize()
    for show, wanted in ((False, ["guide", "default"]), (True, ["default", "default"])):
        recorder = Recorder(model, tmp_path / f"{show}.usda", show_colliders=show)
        recorder.save()
        stage = Usd.Stage.Open(str(tmp_path / f"{show}.usda"))
        assert [UsdGeom.Imageable(stage.GetPrimAtPath(p)).ComputePurpose() for p in recorder.shape_paths] == wanted


def test_saving_again_adds_what_was_recorded_since(tmp_path, rng):
    model = random_scene(rng, joints=3, loops=False).finalize()
    recorder = Recorder(model, tmp_path / "a.usdc", fps=10.0)
    states = random_states(model, rng, 3)
    recorder.record(states[0], 0.0)
    recorder.save()
    stage = Usd.Stage.Open(str(tmp_path / "a.usdc"))
    assert stage.GetEndTimeCode() == 0.0
    recorder.record(states[1], 0.1)
    recorder.record(states[2], 0.1)  # the same time again: the last one counts
    recorder.save()
    assert stage.GetEndTimeCode() == pytest.approx(1.0)
    q = states[2].body_q.numpy().astype(float).reshape(-1, 7)
    np.testing.assert_allclose(matrices(stage, recorder.body_paths, 1.0), transform_to_matrix(q), atol=1e-5)


def test_a_moving_robot(rng, tmp_path):
    """States of forward kinematics, as a user records them."""
    model = random_scene(rng, loops=False).finalize()
    recorder = Recorder(model, tmp_path / "a.usdc", fps=30.0)
    expected = []
    for frame in range(5):
        state = model.state()
        q, qd = random_state(model, rng)
        state.joint_q.assign(q.astype(np.float32))
        state.joint_qd.assign(qd.astype(np.float32))
        eval_fk(model, state.joint_q, state.joint_qd, state)
        expected.append(state.body_q.numpy().astype(float).reshape(-1, 7))
        recorder.record(state, frame / 30.0)
    recorder.save()
    stage = Usd.Stage.Open(str(tmp_path / "a.usdc"))
    for frame, q in enumerate(expected):
        np.testing.assert_allclose(
            matrices(stage, recorder.body_paths, frame), transform_to_matrix(q), atol=5.0 * DOUBLE_OF_SINGLE
        )


def test_an_error_in_the_loop_saves_nothing(tmp_path):
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    with pytest.raises(ZeroDivisionError), Recorder(builder.finalize(), tmp_path / "a.usda"):
        raise ZeroDivisionError
    assert not (tmp_path / "a.usda").exists()


def test_wrong_arguments_say_what_to_do(tmp_path):
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3), label="stone")
    model = builder.finalize()
    with pytest.raises(TypeError, match="finalize"):
        Recorder(builder, tmp_path / "a.usda")
    with pytest.raises(ValueError, match=r"'\.mp4'.*\.usda"):
        Recorder(model, tmp_path / "a.mp4")
    with pytest.raises(ValueError, match=r"fps 0.*0"):
        Recorder(model, tmp_path / "a.usda", fps=0)
    with pytest.raises(ValueError, match=r"up_axis.*'Y'.*'Z'"):
        Recorder(model, tmp_path / "a.usda", up_axis="X")
    recorder = Recorder(model, tmp_path / "a.usda")
    with pytest.raises(ValueError, match=r"time .*nan"):
        recorder.record(model.state(), float("nan"))
    state = model.state()
    state.body_q.assign(np.full((1, 7), np.nan, dtype=np.float32))
    with pytest.raises(ValueError, match=r"body 'stone' \(index 0\).*diverged"):
        recorder.record(state, 0.0)
    builder.add_body(mass=1.0, inertia=np.eye(3))
    with pytest.raises(ValueError, match=r"body_q.*2.*1"):
        recorder.record(builder.finalize().state(), 0.0)
    with pytest.raises(TypeError, match=r"model\.state\(\).*NoneType"):
        recorder.record(None, 0.0)
    assert recorder.times == []


@pytest.mark.slow
def test_the_benchmark_runs_and_checks_itself(monkeypatch):
    from tests.benchmarks import bench_usd

    rows = bench_usd.table([8, 16], 2).splitlines()
    assert len(rows) == 4 and rows[3].startswith("| 16 |")
    monkeypatch.setattr(bench_usd, "SPREAD", -1.0)
    with pytest.raises(RuntimeError, match=r"boxes_2/box_\d"):
        bench_usd.table([8], 2)


def test_a_recording_shows_contacts_and_their_forces(tmp_path):
    """A ball at each contact, and an arrow along each force; the largest force of the recording has the longest one."""
    ball, builder = ModelBuilder(), ModelBuilder()
    ball.add_shape_sphere(ball.add_body(xform=(0.3, 0.2, 0.1, 0.0, 0.0, 0.0, 1.0)), radius=0.1)
    builder.add_ground_plane()
    builder.replicate(ball, 2, spacing=(1.0, 0.0, 0.0))
    model = builder.finalize("cpu")
    model.request_contact_attributes("force")
    contacts, state = model.contacts(), model.state()
    for name, values in (
        ("shape0", [0, 0]), ("shape1", [1, 2]), ("point0", [(0.3, 0.2, 0.0), (1.3, 0.2, 0.0)]), ("point1", [(0.0, 0.0, -0.1)] * 2),
    ):  # fmt: skip
        array = getattr(contacts, f"rigid_contact_{name}")
        array[:2].assign(np.array(values))
    contacts.rigid_contact_count.assign([2])
    with Recorder(model, tmp_path / "bare.usda") as bare:
        bare.record(state, 0.0)
    with Recorder(model, tmp_path / "contacts.usda", fps=10.0) as recorder:
        for frame, size in enumerate((2.0, 4.0)):
            force = contacts.force.numpy()
            force[0, 2] = -size
            contacts.force.assign(force)
            recorder.record(state, frame / 10.0, contacts=contacts)
        recorder.record(state, 0.2)
        with pytest.raises(TypeError, match="contacts must be Contacts"):
            recorder.record(state, 0.3, contacts="all")
    assert not Usd.Stage.Open(str(tmp_path / "bare.usda")).GetPrimAtPath("/recording/markers")
    stage = Usd.Stage.Open(str(tmp_path / "contacts.usda"))
    drawn = UsdGeom.PointInstancer(stage.GetPrimAtPath("/recording/markers"))
    places = [np.array(drawn.GetPositionsAttr().Get(code)) for code in range(3)]
    assert [len(each) for each in places] == [4, 4, 0]
    balls = sorted(places[0][:2].tolist())
    np.testing.assert_allclose(np.array(balls)[:, 1:], [[0.2, 0.0]] * 2, atol=1.0e-6)
    np.testing.assert_allclose(np.diff(np.array(balls)[:, 0]), 1.0, atol=1.0e-6)
    # rod and head lie behind each other: together they are the arrow
    length = [np.array(drawn.GetScalesAttr().Get(code))[2:, 2].sum() for code in range(2)]
    assert length[1] == pytest.approx(2.0 * length[0], rel=1.0e-5)
    size = np.linalg.norm([0.2, 0.2, 0.2])
    assert length[1] == pytest.approx(0.25 * size, rel=1.0e-5)
