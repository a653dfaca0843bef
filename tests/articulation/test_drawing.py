"""Debug drawing and visibility of assets in pictures, videos and recorded stages."""

import numpy as np
import pytest

import newton_like as nl
from newton_like.articulation import Articulation, IdealPDActuatorCfg, RigidObjectCollection, SimulationContext
from newton_like.articulation.drawing import FORCE, LONGEST, TARGET, TORQUE, DebugVisCfg
from newton_like.geometry.markers import CONE, ROD, SPHERE
from newton_like.model.overlays import overlays_of
from newton_like.viewer import Markers, VideoRecorder, picture
from tests.articulation.robots import WORLDS, add_robot, numbers, rotation, shake, walker


def of_color(markers: Markers, color) -> Markers:
    return markers.chosen((markers.color == color).all(axis=1))


def directions(markers: Markers) -> np.ndarray:
    """The vectors of rods or cones from end to end."""
    return rotation(markers.pose[:, 3:])[:, :, 2] * markers.scale[:, 2:]


@pytest.fixture
def robot(rng) -> Articulation:
    robot = walker(
        rng, actuators={"right": IdealPDActuatorCfg("right.*", stiffness=5.0, damping=0.1, effort_limit=9.0)}
    )
    robot.debug_vis_cfg.frames = robot.debug_vis_cfg.targets = False
    return robot


def test_arrows_are_the_wrenches_of_the_last_step_in_the_pose_that_is_drawn(robot, rng):
    f, n = rng.normal(size=(2, WORLDS, 3)) + 3.0
    robot.debug_vis_cfg.size, robot.debug_vis_cfg.newton = 0.5, 0.02
    robot.set_debug_vis(True)
    robot.set_external_force_and_torque(f[:, None], None, body_ids=[2], is_global=True)
    robot.instantaneous_wrench_composer.add_forces_and_torques(torques=n[:, None], body_ids=[1])
    robot.write_data_to_sim()
    shake(robot, rng)
    found = robot.markers()
    d = robot.data
    turn = rotation(numbers(d.body_link_quat_w)[:, 1])
    for color, body, wanted in (
        (FORCE, 2, 0.02 * f),
        (TORQUE, 1, 0.02 * np.einsum("nij,nj->ni", turn, n) / 0.25),
    ):
        arrow = of_color(found, color)
        rods, heads = (arrow.chosen(arrow.kind == kind) for kind in (ROD, CONE))
        np.testing.assert_allclose(directions(rods) + directions(heads), wanted, rtol=1e-5, atol=1e-6)
        begin = rods.pose[:, :3] - 0.5 * directions(rods)
        np.testing.assert_allclose(begin, numbers(d.body_com_pos_w)[:, body], atol=1e-5)
        np.testing.assert_array_equal(rods.world, np.arange(WORLDS))
    robot.write_data_to_sim()
    assert not len(of_color(robot.markers(), TORQUE)) and len(of_color(robot.markers(worlds=[1, 3]), FORCE)) == 4


def test_very_long_arrows_are_cut(robot):
    robot.debug_vis_cfg.size = 0.5
    robot.set_external_force_and_torque([0.0, 0.0, 1e6], None, body_ids=[0], is_global=True)
    arrow = of_color(robot.markers(worlds=[0]), FORCE)
    np.testing.assert_allclose(directions(arrow).sum(axis=0), [0.0, 0.0, 0.5 * LONGEST], rtol=1e-6)


def test_targets_are_the_links_at_the_targets_of_driven_joints(robot, rng):
    """Rods end where the joints of the links would be; joints without a gain are where they are."""
    robot.debug_vis_cfg.targets = True
    robot.set_joint_position_target(rng.uniform(-1.0, 1.0, (WORLDS, 4)))
    rods = of_color(robot.markers(), TARGET)
    assert (rods.kind == ROD).all()
    q = robot.data.joint_pos.numpy().copy()
    q[:, 2:] = robot.data.joint_pos_target.numpy()[:, 2:]
    robot.write_joint_position_to_sim(q)
    anchors = numbers(robot.data.body_link_pos_w)
    names = robot.body_names
    half = 0.5 * directions(rods)
    ends = np.stack([rods.pose[:, :3] - half, rods.pose[:, :3] + half], 1).reshape(-1, 3)
    for k in (names.index("right_hip"), names.index("right_knee"), names.index("left_knee")):
        gap = np.linalg.norm(ends[None] - anchors[:, k, None], axis=2).min(axis=1)
        assert gap.max() < 1e-5, names[k]


def test_frames_are_those_of_the_links(robot):
    robot.debug_vis_cfg.frames = True
    axes = robot.markers(worlds=[2])
    assert len(axes) == 3 * robot.num_bodies
    pose = numbers(robot.data.body_link_pose_w)[2]
    turn = np.swapaxes(rotation(pose[:, 3:]), 0, 2).transpose(0, 2, 1).reshape(-1, 3)
    way = directions(axes)
    np.testing.assert_allclose(way / np.linalg.norm(way, axis=1, keepdims=True), turn, atol=1e-5)
    np.testing.assert_allclose(axes.pose[:, :3] - 0.5 * way, np.tile(pose[:, :3], (3, 1)), atol=1e-5)


def boxes(rng):
    """Two boxes in each of three worlds, red and green; the red one is a rigid object that is watched."""
    one = nl.ModelBuilder()
    for k, (label, color) in enumerate((("red", (0.9, 0.1, 0.1)), ("green", (0.1, 0.8, 0.1)))):
        link = one.add_link(label=f"{label}/box", xform=(0.6 * k, 0.0, 0.2, 0, 0, 0, 1))
        one.add_shape_box(link, hx=0.2, hy=0.2, hz=0.2, color=color)
        one.add_articulation([one.add_joint_free(link)], label=label)
    scene = nl.ModelBuilder()
    scene.replicate(one, 3)
    sim = SimulationContext(scene.finalize("cpu"), evaluator="general")
    return RigidObjectCollection(sim, ["red", "green"])


def pixels(figure, channel: int) -> int:
    figure.canvas.draw()
    image = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)
    others = np.delete(image, channel, axis=2).max(axis=2)
    return int((image[..., channel] > others + 60).sum())


def test_pictures_leave_hidden_instances_out_and_show_markers(rng):
    pair = boxes(rng)
    model = pair.model

    def look(world):
        figure = picture(model, pair.sim.state, world=world, size=(2.0, 1.5), extent=[[-0.3, -0.3, 0], [1, 0.3, 0.5]])
        return [pixels(figure, channel) for channel in range(3)]

    before = look(0)
    assert before[0] > 200 and before[1] > 200
    pair.set_visibility(False, env_ids=[0], object_ids=[0])
    now = look(0)
    assert now[0] == 0 and now[1] >= before[1] and look(1)[0] == before[0]
    pair.set_visibility(False)
    with pytest.raises(ValueError, match="hidden"):
        look(0)
    pair.set_visibility(True)
    assert look(0) == before and overlays_of(model).hidden is None
    assert pair.set_debug_vis(True) and pair.has_debug_vis_implementation
    assert look(0)[2] > before[2]
    # the settings are those of all objects
    pair.debug_vis_cfg.frames = False
    assert look(0) == before and not len(pair.markers(worlds=[0]))
    pair.debug_vis_cfg = DebugVisCfg(size=0.01)
    assert before[2] <= look(0)[2] and len(pair.markers(worlds=[0])) == len(pair.markers()) / pair.num_instances > 0
    pair.set_debug_vis(False)
    assert look(0) == before
    blue = Markers().add_balls([[0.3, -0.3, 0.4]], 0.1, (0.1, 0.1, 0.9))
    figure = picture(model, pair.sim.state, markers=blue, size=(2.0, 1.5))
    assert pixels(figure, 2) > 50
    with pytest.raises(TypeError, match=r"markers.*newton_like\.viewer\.Markers.*list"):
        picture(model, markers=[1])
    with pytest.raises(TypeError, match="visible"):
        pair.set_visibility("no")


def test_videos_follow_visibility_and_markers(rng, tmp_path):
    image = pytest.importorskip("PIL.Image")
    pair = boxes(rng)
    red = pair.objects["red"]
    with VideoRecorder(pair.model, tmp_path / "boxes.gif", fps=10, size=(160, 120)) as recorder:
        for k in range(5):
            pair.set_visibility(k != 1, object_ids=[0])
            red.set_debug_vis(k == 3)
            if k == 2:
                pair.set_visibility(False)
            recorder.record(pair.sim.state, 0.1 * k)
    film, seen = image.open(tmp_path / "boxes.gif"), []
    for k in range(film.n_frames):
        film.seek(k)
        frame = np.asarray(film.convert("RGB")).astype(int)
        seen.append([int((frame[..., c] > np.delete(frame, c, axis=2).max(axis=2) + 60).sum()) for c in range(3)])
    seen = np.array(seen)
    # red box; none; nothing at all; axes of the red box, too
    assert seen[0, 0] > 100 and seen[1, 0] == 0 and seen[1, 1] > 100 and not seen[2].any() and seen[3, 2] > seen[0, 2]


def test_recorded_stages_have_visibility_and_markers_over_time(rng, tmp_path):
    usd = pytest.importorskip("pxr.Usd")
    from pxr import Gf, UsdGeom

    from newton_like.usd import Recorder

    pair = boxes(rng)
    arrow = [Markers().add_arrows([0.1 * k, 0.2, 0.3], rng.normal(size=3), 0.01, (0.2, 0.4, 0.6)) for k in range(4)]
    arrow[1].add_balls(rng.normal(size=(2, 3)), 0.1, (0.9, 0.8, 0.7))
    with Recorder(pair.model, tmp_path / "boxes.usda", fps=10) as recorder:
        for k in range(4):
            pair.set_visibility(k != 2, env_ids=[1], object_ids=[1])
            recorder.record(pair.sim.state, 0.1 * k, None if k == 3 else arrow[k])
        body = pair.model.body_label.index("green/box", 2) if "green/box" in pair.model.body_label[2:] else 3
        path = recorder.body_paths[body]
    stage = usd.Stage.Open(str(tmp_path / "boxes.usda"))
    for number, each in enumerate(recorder.body_paths):
        shown = [UsdGeom.Imageable(stage.GetPrimAtPath(each)).ComputeVisibility(k) for k in range(4)]
        wanted = ["inherited"] * 4
        if each == path:
            wanted[2] = "invisible"
        assert shown == wanted, number
    instancer = UsdGeom.PointInstancer(stage.GetPrimAtPath("/recording/markers"))
    kinds = {ROD: "Cylinder", CONE: "Cone", SPHERE: "Sphere"}
    targets = instancer.GetPrototypesRel().GetTargets()
    for k in range(4):
        moves = instancer.ComputeInstanceTransformsAtTime(k, k)
        if k == 3:
            assert len(moves) == 0
            continue
        marks = arrow[k]
        for i, (move, which) in enumerate(zip(moves, instancer.GetProtoIndicesAttr().Get(k), strict=True)):
            prim = stage.GetPrimAtPath(targets[which])
            assert prim.GetTypeName() == kinds[marks.kind[i]]
            np.testing.assert_allclose(prim.GetAttribute("primvars:displayColor").Get()[0], marks.color[i], rtol=1e-6)
            # quaternions of instances have half precision
            top = marks.pose[i, :3] + rotation(marks.pose[i, 3:])[:, 2] * marks.scale[i, 2]
            np.testing.assert_allclose(move.Transform(Gf.Vec3d(0, 0, 1)), top, atol=5e-3)


def test_stages_that_are_simulated_in_place_hide_and_show_their_prims(tmp_path):
    pytest.importorskip("pxr")
    from pxr import UsdGeom

    from newton_like.usd import Simulation, write

    one = nl.ModelBuilder()
    for label in ("left", "right"):
        link = one.add_link(label=label, xform=(0.0, 0.0, 1.0, 0, 0, 0, 1))
        one.add_shape_box(link, hx=0.1, hy=0.1, hz=0.1)
        one.add_articulation([one.add_joint_free(link)], label=label)
    write(one.finalize("cpu"), tmp_path / "two.usda")
    simulation = Simulation(tmp_path / "two.usda", solver={"evaluator": "general"})
    body = next(b for b, name in enumerate(simulation.model.body_label) if name.endswith("left"))
    path = next(path for path, (number, _) in simulation.report.frames.items() if number == body)
    for hidden in (False, True, False):
        overlays_of(simulation.model).hide(np.array([body]), hidden, simulation.model.body_count)
        simulation.step()
    image = UsdGeom.Imageable(simulation.stage.GetPrimAtPath(str(path)))
    codes = [simulation._start + k * simulation._time_codes / simulation.fps for k in range(4)]
    assert [image.ComputeVisibility(code) for code in codes] == ["inherited", "inherited", "invisible", "inherited"]


def test_robots_without_shapes_are_hidden_too(rng):
    one = nl.ModelBuilder()
    add_robot(one, rng)
    scene = nl.ModelBuilder()
    scene.replicate(one, 2)
    robot = Articulation(SimulationContext(scene.finalize("cpu"), evaluator="general"), "walker")
    robot.set_visibility(False, [1])
    picture(robot.model, world=0, size=(1.0, 1.0))
    with pytest.raises(ValueError, match="hidden"):
        picture(robot.model, world=1, size=(1.0, 1.0))


def test_settings_of_debug_drawing_are_checked_when_they_are_set(rng):
    pair = boxes(rng)
    cube = next(iter(pair.objects.values()))
    for name, value, error in (
        ("size", -1.0, ValueError), ("size", 0, ValueError), ("newton", np.nan, ValueError), ("newton", "x", TypeError),
        ("frames", "no", TypeError), ("frame", True, AttributeError),
    ):  # fmt: skip
        with pytest.raises(error, match=name):
            setattr(pair.debug_vis_cfg, name, value)
    with pytest.raises(ValueError, match=r"newton -1 must be above 0"):
        DebugVisCfg(newton=-1)
    for each in (pair, cube):
        with pytest.raises(TypeError, match="must be a DebugVisCfg, not int"):
            each.debug_vis_cfg = 3
    assert pair.debug_vis_cfg == DebugVisCfg()
