"""The command ``newton-like``: output, files and errors."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp
from newton_like.assets import path as asset

import newton_like
from newton_like import ModelBuilder, eval_fk
from newton_like.cli import main
from newton_like.cli.scene import read
from newton_like.cli.simulate import ignored
from newton_like.collision.ground import unsupported_pairs
from newton_like.collision.pairs import resolved

ROBOT = str(asset("quadruped.urdf"))


def run(capsys, *args) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([str(a) for a in args])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_inspect_says_what_the_model_says(capsys):
    code, out, _ = run(capsys, "inspect", ROBOT, "--floating", "--json")
    data = json.loads(out)
    builder = ModelBuilder()
    builder.add_urdf(ROBOT, floating=True)
    model = builder.finalize("cpu", dtype=wp.float64)
    assert code == 0
    assert data["counts"]["dofs"] == model.joint_dof_count
    assert data["mass"] == pytest.approx(model.body_mass.numpy().sum())
    assert [b["name"] for b in data["bodies"]] == model.body_label
    lower = model.joint_limit_lower.numpy()
    starts = model.joint_qd_start.numpy()
    for j, joint in enumerate(data["joints"]):
        if joint["type"] == "REVOLUTE":
            assert joint["dofs"][0]["lower"] == pytest.approx(lower[starts[j]])
    state = model.state()
    eval_fk(model, state.joint_q, state.joint_qd, state)
    assert np.isfinite(data["center_of_mass"]).all()


def test_inspect_prints_a_tree(capsys):
    code, out, _ = run(capsys, "inspect", ROBOT)
    assert code == 0
    lines = out.splitlines()
    trunk = next(i for i, line in enumerate(lines) if line.startswith("quadruped/trunk"))
    assert lines[trunk + 1].startswith("  quadruped/fl_hip")
    assert lines[trunk + 2].startswith("    quadruped/fl_thigh")
    assert "revolute [-1.2, 2.4]" in lines[trunk + 2]


@pytest.mark.slow
def test_inspect_draws(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "robot.png"
    code, _, _ = run(capsys, "inspect", ROBOT, "--plot", file, "--quiet")
    assert code == 0
    assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    "name, words",
    [
        ("nowhere.urdf", "nowhere.urdf"),
        ("robot.step", "'.step'"),
        ("robot", "suffix"),
        ("folder.urdf", "folder.urdf"),
        ("empty.urdf", "empty.urdf"),
        ("empty.xml", "empty.xml"),
        ("empty.usda", "empty.usda"),
        ("half.urdf", "half.urdf"),
    ],
)
@pytest.mark.parametrize("command", [["inspect"], ["convert"], ["simulate"]], ids=" ".join)
def test_what_is_wrong_is_one_line(capfd, tmp_path, monkeypatch, command, name, words):
    monkeypatch.chdir(tmp_path)
    Path("folder.urdf").mkdir()
    for empty in ("robot.step", "robot", "empty.urdf", "empty.xml", "empty.usda"):
        Path(empty).write_text("")
    Path("half.urdf").write_text(Path(ROBOT).read_text()[:1000])
    more = ["out.usda"] if command == ["convert"] else []
    got, out, err = run(capfd, *command, name, *more)
    assert got == 1
    assert out == ""
    assert words in err
    ours = [line for line in err.splitlines() if line.startswith("newton-like: ")]
    assert len(ours) == 1 and "Traceback" not in err
    assert not Path("out.usda").exists()
    got, out, _ = run(capfd, *command, name, *more, "--json")
    assert got == 1
    assert f"newton-like: {json.loads(out)['error']}" == ours[0]


def test_errors_are_json_too(capsys, tmp_path):
    file = tmp_path / "broken.urdf"
    file.write_text("<robot name='x'><link name='a'/><link name='a'/></robot>")
    code, out, _ = run(capsys, "inspect", file, "--json")
    assert code == 1
    assert json.loads(out)["kind"] == "ImportFileError"
    assert "a" in json.loads(out)["error"]


@pytest.mark.parametrize(
    "args, words",
    [
        (["simulate", ROBOT, "--frames", "0"], "--frames: 0 "),
        (["simulate", ROBOT, "--frames", "-3"], "--frames: -3 "),
        (["simulate", ROBOT, "--frames", "1.5"], "--frames: '1.5'"),
        (["simulate", ROBOT, "--fps", "nan"], "--fps: nan"),
        (["simulate", ROBOT, "--lift", "x"], "--lift: 'x'"),
        (["inspect", ROBOT, "--floating", "--fixed"], "--fixed"),
        (["inspect", ROBOT, "--collisions"], "--plot"),
        (["inspect", ROBOT, "--package-dir", "/nowhere"], "/nowhere"),
        (["fly", ROBOT], "fly"),
        (["simulat", ROBOT], "simulate"),
        (["simulate", ROBOT, "--stifness", "5"], "--stiffness"),
        (["simulate", "--stifness=5", ROBOT], "--stiffness"),
        (["inspect", ROBOT, "--plott", "x.png"], "--plot"),
        (["inspect", ROBOT, "more.urdf"], "more.urdf"),
        ([], "command"),
    ],
)
def test_wrong_options_end_with_two(capsys, args, words):
    with pytest.raises(SystemExit) as stop:
        main(args)
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert words in said.err.splitlines()[-1] and said.out == ""
    with pytest.raises(SystemExit) as stop:
        main([*args, "--json"])
    assert stop.value.code == 2
    assert words in json.loads(capsys.readouterr().out)["error"]


@pytest.mark.parametrize(
    "args, words",
    [
        (["convert", ROBOT, "{}/nowhere/out.usda"], "nowhere"),
        (["convert", ROBOT, "{}/out.obj"], "'.obj'"),
        (["convert", ROBOT, "{}/out"], "suffix"),
        (["convert", ROBOT, ROBOT], "output"),
        (["inspect", ROBOT, "--plot", "{}/nowhere/out.png"], "nowhere"),
        (["inspect", ROBOT, "--plot", "{}/out.txt"], "txt"),
        (["inspect", ROBOT, "--plot", "{}"], "folder"),
        (["inspect", ROBOT, "--plot", "{}/out"], "out.png"),
        (["simulate", ROBOT, "--frames", "1000000000", "--output", "{}/nowhere/out.usda"], "nowhere"),
        (["simulate", ROBOT, "--frames", "1000000000", "--output", ROBOT], "output"),
        (["simulate", ROBOT, "--device", "toaster"], "'toaster'"),
    ],
)
def test_outputs_that_cannot_be_written_are_named_at_once(capsys, tmp_path, args, words):
    before = Path(ROBOT).read_bytes()
    code, out, err = run(capsys, *(str(a).format(tmp_path) for a in args), "--quiet")
    assert code == 1 and out == ""
    assert words in err and err.count("\n") == 1
    assert Path(ROBOT).read_bytes() == before


def test_an_xml_that_is_a_urdf_is_read_as_one(capsys, tmp_path):
    """The format does not depend on the text and length of comments before the root element."""
    text = Path(ROBOT).read_text()
    file = tmp_path / "robot.xml"
    file.write_text(f"<!-- <mujoco> {'x' * 10000} -->" + text[text.index("<robot") :])
    code, out, _ = run(capsys, "inspect", file, "--json")
    assert code == 0
    assert json.loads(out)["format"] == "urdf"


def test_a_file_without_bodies_is_told(capsys, tmp_path):
    file, made = tmp_path / "empty.usda", tmp_path / "made.usda"
    file.write_text("#usda 1.0\n( metersPerUnit = 1 )\n")
    for command in (["inspect", file], ["convert", file, made], ["simulate", file, "--frames", "1"]):
        code, out, err = run(capsys, *command)
        assert code == 0 and ("0 J" in out or "0 bodies, 0 joints" in out)
        assert any(line.startswith("remark:") and "no bodies" in line for line in err.splitlines())


def test_numbers_that_json_does_not_know_become_null():
    from newton_like.cli.command import _plain

    assert _plain({"a": [float("inf"), (float("nan"), 1.5)], "b": "inf"}) == {"a": [None, [None, 1.5]], "b": "inf"}


def test_convert_keeps_the_robot(capsys, tmp_path):
    """`inspect` gives the same output for the converted file and the source, except for the format and the prefix of labels."""
    file = tmp_path / "robot.usda"
    code, out, _ = run(capsys, "convert", ROBOT, file, "--floating", "--json")
    assert code == 0
    assert json.loads(out)["bodies"] == 17
    source, made = (json.loads(run(capsys, "inspect", *args, "--json")[1]) for args in ((ROBOT, "--floating"), (file,)))
    for key in ("counts", "shapes", "up_axis"):
        assert made[key] == source[key]
    # masses and centres are float32 in USD
    assert made["mass"] == pytest.approx(source["mass"], rel=1e-6)
    np.testing.assert_allclose(made["center_of_mass"], source["center_of_mass"], atol=1e-6)
    limits = [
        [(j["type"], d["lower"], d["upper"]) for j in data["joints"] for d in j["dofs"]] for data in (source, made)
    ]
    for (kind, *bounds), (other, *others) in zip(*map(sorted, map(repr_free, limits)), strict=True):
        assert kind == other
        np.testing.assert_allclose(np.array(bounds, float), np.array(others, float), rtol=1e-6, atol=1e-7)


def test_one_robot_becomes_a_urdf(capsys, tmp_path):
    source, file = asset("arm.usda"), tmp_path / "arm.urdf"
    code, out, _ = run(capsys, "convert", source, file, "--json")
    assert code == 0
    assert "gains" in json.loads(out)["remarks"][0]
    before, after = (json.loads(run(capsys, "inspect", f, "--json")[1]) for f in (source, file))
    assert after["counts"] == before["counts"]
    assert after["mass"] == pytest.approx(before["mass"], rel=1e-12)
    code, _, err = run(capsys, "convert", asset("warehouse.usda"), file)
    assert code == 1 and "23 articulations" in err


def test_up_axis_and_package_folders_reach_the_importers(capsys, tmp_path):
    file, folder = tmp_path / "robot.urdf", tmp_path / "elsewhere" / "parts"
    folder.mkdir(parents=True)
    (folder / "tetrahedron.stl").write_text(TETRAHEDRON)
    file.write_text(
        "<robot name='r'><link name='a'><inertial><origin xyz='0 2 0'/><mass value='1'/>"
        "<inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>"
        "<collision><geometry><mesh filename='package://parts/tetrahedron.stl'/></geometry></collision></link></robot>"
    )
    code, _, err = run(capsys, "inspect", file)
    assert code == 1 and "tetrahedron.stl" in err
    code, out, _ = run(capsys, "inspect", file, "--package-dir", folder.parent, "--up-axis", "y", "--json")
    assert code == 0
    # the up axis of the file is that of the model; the rotation is an exact quarter turn, in double precision
    np.testing.assert_allclose(json.loads(out)["center_of_mass"], [0, 0, 2], atol=1e-12)
    code, _, err = run(capsys, "inspect", asset("arm.usda"), "--up-axis", "Y")
    assert code == 1 and "--up-axis" in err


CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
TETRAHEDRON = (
    "solid t\n"
    + "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join("vertex {} {} {}\n".format(*CORNERS[i]) for i in face)
        + "endloop\nendfacet\n"
        for face in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
    )
    + "endsolid t\n"
)


def repr_free(limits):
    """Limits with numbers in place of None, so that they can be sorted."""
    return [(kind, *(np.nan_to_num(np.array(b, float), nan=-1e9) for b in bounds)) for kind, *bounds in limits]


@pytest.mark.slow
def test_simulate_keeps_the_energy_of_a_falling_robot(capsys):
    code, out, _ = run(capsys, "simulate", ROBOT, "--floating", "--frames", 6, "--json")
    data = json.loads(out)
    assert code == 0
    assert data["frames"] == 6
    assert data["seconds"] == pytest.approx(0.1)
    # Its joints are at rest relative to each other and stay so; its 12 kg fall 5 cm, which turns 5.8 J from potential into kinetic
    # energy. In float32, 24 steps whose speeds are rounded by 6e-8 each may be off by 24 * 6e-8 * 2 * 5.8 J.
    assert data["energy_end"] == pytest.approx(data["energy_start"], abs=2e-5)


def test_the_lift_is_potential_energy(capsys, rng):
    """The energy of lifting is m g h, and zero for a fixed robot."""
    height = rng.uniform(1.0, 10.0)
    floating, lifted, fixed = (
        json.loads(run(capsys, "simulate", ROBOT, "--frames", 1, "--json", *more)[1])
        for more in (["--floating"], ["--floating", "--lift", height], ["--fixed", "--lift", height])
    )
    mass = json.loads(run(capsys, "inspect", ROBOT, "--json")[1])["mass"]
    # energies in float32
    rise = lifted["energy_start"] - floating["energy_start"]
    assert rise == pytest.approx(mass * 9.81 * height, rel=1e-5)
    assert fixed["energy_start"] == pytest.approx(floating["energy_start"], abs=1e-4)
    assert "--lift" in fixed["remarks"][-1]


@pytest.mark.slow
def test_the_ground_is_at_zero_and_robots_start_on_it(rng):
    from newton_like.cli.scene import CLEARANCE, lowest_points, read

    for up in "XYZ":
        builder = ModelBuilder(up_axis=up)
        turn = rng.normal(size=4)
        pose = (*rng.uniform(-2.0, -1.0, 3), *(turn / np.linalg.norm(turn)))
        builder.add_urdf(ROBOT, floating=True, xform=pose)
        model = builder.finalize("cpu", dtype=wp.float64)
        from newton_like.cli.scene import _put_on_ground, _start

        remarks: list[str] = []
        state = _put_on_ground(model, _start(model), remarks)
        # rounding of double
        assert lowest_points(model, state).min() == pytest.approx(CLEARANCE, abs=1e-9)
        assert len(remarks) == 1 and "lift" in remarks[0]
        # there is no horizontal motion, and bodies above the ground do not move
        np.testing.assert_allclose(
            np.delete(state.body_q.numpy()[0, :3], "XYZ".index(up)), np.delete(pose[:3], "XYZ".index(up))
        )
        assert _put_on_ground(model, state, remarks) is state and len(remarks) == 1
    fixed = read(Path(ROBOT), {}, ground=True)
    assert "float" in fixed.remarks[-1]
    free = read(Path(ROBOT), {"floating": True}, ground=True, lift=5.0)
    # after a sufficient lift no body is moved onto the ground
    assert free.remarks == []


@pytest.mark.slow
def test_shapes_that_touch_have_no_remark(capsys, tmp_path):
    """A ball over a fixed mesh; two balls."""
    file = tmp_path / "scene.xml"
    ball = "<body pos='{} 0 1'><freejoint/><geom name='{}' size='0.1'/></body>"
    mesh = "<asset><mesh name='m' vertex='0 0 0 1 0 0 0 1 0 0 0 1'/></asset>"
    fixed = "<geom name='rock' type='mesh' mesh='m'/>"
    for world in (fixed + ball.format(0, "one"), ball.format(0, "one") + ball.format(1, "other")):
        file.write_text(f"<mujoco>{mesh}<worldbody>{world}</worldbody></mujoco>")
        code, out, _ = run(capsys, "simulate", file, "--frames", 1, "--json")
        data = json.loads(out)
        assert code == 0
        assert data["ignored_pairs"]["count"] == 0
    assert run(capsys, "simulate", file, "--frames", 1, "--quiet")[2] == ""


def test_shapes_that_go_through_each_other_are_told():
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.1, label="ball")
    builder.add_shape_plane(body=builder.add_body(mass=1.0, inertia=np.eye(3)), label="tray")
    model = builder.finalize("cpu")
    (remark,) = ignored(model, unsupported_pairs(model, known=resolved))
    assert "through" in remark and "'ball'" in remark and "'tray'" in remark
    assert ignored(model, []) == []


def moving_pairs(path: Path, **options) -> int:
    """Number of pairs of moving shapes that may touch in a file."""
    return len(unsupported_pairs(read(path, options).model))


@pytest.mark.slow
def test_self_collisions_are_those_of_the_file(capsys, tmp_path):
    """MJCF and USD define self-collisions, and conversions keep them; a URDF does not, and has none by default."""
    file, again = tmp_path / "robot.usda", tmp_path / "again.usda"
    counts = {}
    for more in ((), ("--self-collisions",)):
        run(capsys, "convert", ROBOT, file, "--floating", *more)
        run(capsys, "convert", file, again)
        counts[more] = moving_pairs(Path(ROBOT), floating=True, enable_self_collisions=bool(more))
        assert moving_pairs(file) == moving_pairs(again) == counts[more]
    # 17 colliders, of which those of bodies that a joint connects do not touch
    assert counts[()] == 0 and 50 < counts[("--self-collisions",)] < 17 * 16 // 2
    # two limbs of one body, which are no parent and child: the pair that --no-self-collisions leaves out
    limb = "<body><joint axis='{}'/><geom size='0.1'/></body>"
    tree = f"<body pos='3 0 1'><freejoint/><geom size='0.1'/>{limb.format('1 0 0')}{limb.format('0 1 0')}</body>"
    both = tmp_path / "tree.xml"
    both.write_text(f"<mujoco><worldbody>{tree}</worldbody></mujoco>")
    assert moving_pairs(both) == 1
    assert moving_pairs(both, enable_self_collisions=False) == 0


def test_simulate_writes_the_motion(capsys, tmp_path):
    """The time samples of a falling body are its fall."""
    from pxr import Usd, UsdGeom

    source, file = tmp_path / "ball.xml", tmp_path / "motion.usda"
    source.write_text("<mujoco><worldbody><body pos='0 0 3'><freejoint/><geom size='0.1'/></body></worldbody></mujoco>")
    code, out, _ = run(capsys, "simulate", source, "--frames", 10, "--fps", 50, "--output", file)
    assert code == 0 and str(file) in out
    stage = Usd.Stage.Open(str(file))
    (ball,) = (
        p for p in stage.Traverse() if p.IsA(UsdGeom.Xform) and UsdGeom.Xformable(p).TransformMightBeTimeVarying()
    )
    for code in range(11):
        place = UsdGeom.XformCache(Usd.TimeCode(code)).GetLocalToWorldTransform(ball).ExtractTranslation()
        # the step is exact for a constant acceleration, but for rounding of float32 heights of 3 m
        assert place[2] == pytest.approx(3.0 - 0.5 * 9.81 * (code / 50) ** 2, abs=1e-5)


@pytest.mark.slow
def test_progress_bars_are_for_terminals(capfd):
    """There is no progress bar if stderr is a file or a pipe, or with `--quiet` or `--json`."""
    for more in ([], ["--quiet"], ["--json"]):
        code, _, err = run(capfd, "simulate", ROBOT, "--frames", 2, *more)
        assert code == 0
        assert err == ""


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    """As in `newton-like inspect ... | head -1`, where Python writes its buffered output at exit."""
    file = tmp_path / "empty.usda"
    file.write_text("#usda 1.0\n( metersPerUnit = 1 )\n")
    command = [sys.executable, "-m", "newton_like", "inspect", str(file), "--quiet"]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as running:
        running.stdout.close()
        said = running.stderr.read()
    assert (running.returncode, said) == (0, b"")


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "newton_like", "--version"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert done.stdout.startswith("newton-like 0.")


def test_the_version_is_that_of_the_package_that_runs(monkeypatch, capsys):
    """Also where it is not installed, and Python has no metadata of it."""

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"newton-like {newton_like.__version__}\n"


@pytest.mark.parametrize("name", ["motion.avi", "motion"])
def test_formats_that_are_not_written_are_refused_with_all_that_are(name, tmp_path, capsys):
    assert main(["simulate", ROBOT, "--output", str(tmp_path / name)]) != 0
    told = capsys.readouterr().err
    assert all(suffix in told for suffix in (".usd", ".usda", ".usdc", ".gif", ".mp4"))
