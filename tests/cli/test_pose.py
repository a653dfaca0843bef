"""Initial positions, keyframes, drive gains and videos of `newton-like simulate`."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest
import warp as wp
from newton_like.assets import path as asset

from newton_like import dynamics
from newton_like.cli import main
from newton_like.cli.options import DAMPING_TIME, assignments, gains
from newton_like.cli.pose import prepare
from newton_like.cli.scene import read
from newton_like.cli.simulate import simulate

ARM = str(asset("arm.urdf"))

TWO = """<mujoco model="two"><option gravity="0 0 0"/><worldbody>
<body name="a"><joint name="swing" type="hinge" axis="0 1 0"/><geom size="0.1"/>
<body name="b" pos="0 0 1"><joint name="slide" type="slide" axis="1 0 0"/><joint name="turn" axis="0 0 1"/><geom size="0.1"/>
<body name="c" pos="0 0 1"><joint name="ball" type="ball"/><geom size="0.1"/></body></body></body></worldbody>
<actuator><position joint="swing" kp="7" gear="2"/><motor joint="slide" gear="3"/></actuator>
<keyframe><key name="rest" qpos="0 0 0 1 0 0 0"/><key name="bent" qpos="0.3 0.2 0.1 1 0 0 0" ctrl="0.5 0.25"/></keyframe></mujoco>"""


def options(**given) -> argparse.Namespace:
    """Those of the command, as it parses them."""
    defaults = {"keyframe": None, "joint_positions": None, "stiffness": None, "damping": None}
    return argparse.Namespace(**{**defaults, **given})


def scene_of(path, importer=None, **given):
    args = options(**given)
    keyframe = {"keyframe": args.keyframe} if args.keyframe is not None else {}
    return read(
        Path(path),
        {**(importer or {}), **keyframe},
        dtype=wp.float32,
        prepare=lambda b, report: prepare(b, report, args),
    )


@pytest.fixture
def two(tmp_path) -> Path:
    file = tmp_path / "two.xml"
    file.write_text(TWO)
    return file


def run(capsys, *args) -> tuple[int, str, str]:
    code = main([str(a) for a in args])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_robot_holds_its_pose(rng):
    """At rest the force of a spring, stiffness times deflection, is that of gravity in every joint."""
    free = scene_of(ARM)
    names = dynamics.joint_names(free.model)
    count = free.model.joint_dof_count
    low, high = free.model.joint_limit_lower.numpy(), free.model.joint_limit_upper.numpy()
    wanted = np.clip(rng.uniform(-0.5, 0.5, count), low + 0.2, high - 0.2)
    stiffness = rng.uniform(2000.0, 4000.0, count)
    moving = [n for n in names if (lambda s: s.stop > s.start)(dynamics.joint_dofs(free.model, n))]
    assert len(moving) == count
    scene = scene_of(
        ARM,
        joint_positions=[[(None, wanted.tolist())]],
        stiffness=[[(n, [k]) for n, k in zip(moving, stiffness, strict=True)]],
    )
    np.testing.assert_allclose(scene.model.joint_q.numpy(), wanted, atol=1e-6)
    np.testing.assert_allclose(scene.model.joint_target_q.numpy(), wanted, atol=1e-6)
    np.testing.assert_allclose(scene.model.joint_target_kd.numpy(), DAMPING_TIME * stiffness, rtol=1e-6)
    # effort limits would bound the springs
    scene.model.joint_effort_limit.fill_(1.0e6)
    simulate(scene, argparse.Namespace(file=ARM, frames=180, fps=60.0, substeps=4, output=None, quiet=True, json=False))
    q = scene.state.joint_q.numpy()
    gravity = dynamics.gravity_forces(scene.model, scene.state).numpy()[0]
    friction = scene.model.joint_friction.numpy()
    # dry friction holds, too; float32 angles of up to 1 rad under stiff springs
    assert np.all(np.abs(stiffness * (wanted - q) - gravity) <= friction + 2e-7 * stiffness.max() + 2e-2)


def test_positions_are_found_by_name_and_by_wildcards(two, rng):
    """Whole labels, their last parts and wildcards; a joint of four coordinates takes four numbers."""
    turn, slide = rng.uniform(-1.0, 1.0, 2)
    quaternion = rng.normal(size=4)
    quaternion /= np.linalg.norm(quaternion)
    scene = scene_of(two, joint_positions=[[("ball", quaternion.tolist())]])
    labels = dynamics.joint_names(scene.model)
    part = dynamics.joint_coords(scene.model, "ball")
    np.testing.assert_allclose(scene.model.joint_q.numpy()[part], quaternion, atol=1e-6)
    for name in ("swing", next(label for label in labels if label.endswith("/swing")), "sw?ng"):
        scene = scene_of(two, joint_positions=[[(name, [turn])]])
        assert scene.model.joint_q.numpy()[0] == pytest.approx(turn, rel=1e-6)
    # the slide and the turn of body b are one joint of two coordinates
    (joint,) = set(labels) - {label for label in labels if label.endswith(("swing", "ball"))}
    scene = scene_of(two, joint_positions=[[(joint, [slide, turn])]])
    part = dynamics.joint_coords(scene.model, joint)
    np.testing.assert_allclose(scene.model.joint_q.numpy()[part], [slide, turn], rtol=1e-6)


def test_wildcards_mean_the_joints_that_have_drives(rng):
    """The base of a floating robot is none of them; its whole name means it."""
    stiffness = rng.uniform(100.0, 200.0)
    quadruped, floating = str(asset("quadruped.urdf")), {"floating": True}
    by_pattern, plain = (
        scene_of(quadruped, floating, stiffness=[[(name, [stiffness])]], joint_positions=[[("*_calf", [0.1])]]).model
        for name in ("*", None)
    )
    np.testing.assert_array_equal(by_pattern.joint_target_ke.numpy(), plain.joint_target_ke.numpy())
    assert not by_pattern.joint_target_ke.numpy()[:6].any() and by_pattern.joint_target_ke.numpy()[6:].all()
    scene_of(quadruped, floating, joint_positions=[[("*", [0.1])]])
    named = scene_of(quadruped, floating, stiffness=[[("floating_base", [stiffness])]]).model
    assert named.joint_target_ke.numpy()[:6].all()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"joint_positions": [[("swong", [1.0])]]}, KeyError, "'swong'.*'swing'"),
        ({"joint_positions": [[("ball", [1.0])]]}, ValueError, "two/ball' has 4 .*not 1"),
        ({"joint_positions": [[(None, [1.0, 2.0])]]}, ValueError, r"2 numbers.* 7 .*swing"),
        ({"stiffness": [[("nothing*", [1.0])]]}, KeyError, r"nothing\*"),
        ({"keyframe": "gone"}, KeyError, "gone.*'rest', 'bent'"),
    ],
)
def test_wrong_names_and_numbers_are_named(two, given, error, words):
    with pytest.raises(error, match=words):
        scene_of(two, **given)


def test_keyframes_set_positions_and_targets(two):
    """By name and by number. A position servo with gear g holds ctrl / g; a motor pushes with g ctrl."""
    for wanted in ("bent", 1, "1"):
        args = options(keyframe=str(wanted))
        importer = {"keyframe": 1 if wanted in (1, "1") else wanted}
        scene = read(two, importer, dtype=wp.float64, prepare=lambda b, r, a=args: prepare(b, r, a))
        model = scene.model
        np.testing.assert_allclose(model.joint_q.numpy()[:3], [0.3, 0.2, 0.1], rtol=1e-12)
        assert model.joint_target_q.numpy()[0] == pytest.approx(0.25)
        assert model.joint_f.numpy()[1] + model.joint_act.numpy()[1] == pytest.approx(0.75)
    with pytest.raises(ValueError, match="keyframe"):
        read(Path(ARM), {"keyframe": "bent"})


def test_the_command_takes_keyframes_by_name_and_number(capsys, two):
    energies = {}
    for wanted in ("rest", "bent", "1"):
        code, out, _ = run(capsys, "simulate", two, "--keyframe", wanted, "--frames", 30, "--json")
        assert code == 0
        energies[wanted] = json.loads(out)["energy_end"]
    # without gravity a robot at rest stays so, and the drives of the other keyframe move it
    assert energies["rest"] == pytest.approx(0.0, abs=1e-6)
    assert energies["bent"] == energies["1"] > 1e-3
    code, _, err = run(capsys, "simulate", two, "--keyframe", "gone", "--frames", 1)
    assert code == 1 and "gone" in err and "'rest'" in err


def test_positions_beyond_limits_are_remarked():
    model = scene_of(ARM).model
    dof = dynamics.joint_dofs(model, "elbow").start
    name, high = "elbow", float(model.joint_limit_upper.numpy()[dof])
    scene = scene_of(ARM, joint_positions=[[(name, [high + 0.1])]])
    (remark,) = [text for text in scene.remarks if "limits" in text]
    assert name in remark


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=1", [("a", [1.0])]),
        ("a=1,b=-2e-1", [("a", [1.0]), ("b", [-0.2])]),
        ("q=1,0,0,0,b=2", [("q", [1.0, 0.0, 0.0, 0.0]), ("b", [2.0])]),
        ("1,2,a=3", [(None, [1.0, 2.0]), ("a", [3.0])]),
    ],
)
def test_assignments_are_read(text, found):
    assert assignments(text) == found


@pytest.mark.parametrize(
    "args",
    [
        ["--joint-positions", "a="],
        ["--joint-positions", "=1"],
        ["--joint-positions", "a=nan"],
        ["--joint-positions", "a"],
        ["--stiffness", "a=1,2"],
        ["--stiffness", "-1"],
        ["--damping", "soft"],
        ["--viewer", "window"],
    ],
)
def test_options_that_cannot_be_read_end_with_two(capsys, args):
    with pytest.raises(SystemExit) as stop:
        main(["simulate", ARM, *args])
    assert stop.value.code == 2
    assert args[0] in capsys.readouterr().err.splitlines()[-1]
    assert gains("5") == [(None, [5.0])]


@pytest.mark.slow
def test_simulate_writes_videos(capsys, tmp_path, monkeypatch):
    """As the output itself, beside another output, or in the current folder under the name of the source."""
    image = pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    common = ["simulate", ARM, "--frames", 6, "--fps", 25, "--stiffness", 500, "--json"]
    for more, video, output in (
        (["--output", "film.gif"], "film.gif", None),
        (["--viewer", "gif", "--output", "film2.usda"], "film2.gif", "film2.usda"),
        (["--viewer", "gif"], "arm.gif", None),
    ):
        code, out, err = run(capsys, *common, *more)
        data = json.loads(out)
        assert (code, err) == (0, "")
        assert (data["video"], data["output"]) == (video, output)
        with image.open(tmp_path / video) as film:
            assert film.size == (640, 400)
        assert output is None or Path(output).stat().st_size > 0
    code, _, err = run(capsys, *common, "--viewer", "mp4", "--output", "film.gif")
    assert code == 1 and "--viewer mp4" in err
    code, _, err = run(capsys, *common, "--output", "nowhere/film.gif")
    assert code == 1 and "nowhere" in err
