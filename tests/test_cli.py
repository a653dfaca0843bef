"""The command ``newton-like``: what it prints, writes and refuses."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp
from newton_like.assets import path as asset

from newton_like import ModelBuilder, eval_fk
from newton_like.cli import main
from newton_like.geometry.outline import triangles
from newton_like.geometry.shapes import mass_properties
from newton_like.types import GeoType
from newton_like.viewer import picture

ROBOT = str(asset("quadruped.urdf"))


def run(capsys, *args) -> tuple[int, str, str]:
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


def test_inspect_draws(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "robot.png"
    code, _, _ = run(capsys, "inspect", ROBOT, "--plot", file, "--quiet")
    assert code == 0
    assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    "args, code, words",
    [
        (["inspect", "nowhere.urdf"], 1, "nowhere.urdf"),
        (["inspect", "robot.step"], 1, "robot.step"),
    ],
)
def test_what_is_wrong_is_one_line(capsys, tmp_path, monkeypatch, args, code, words):
    monkeypatch.chdir(tmp_path)
    Path("robot.step").write_text("")
    got, _, err = run(capsys, *args)
    assert got == code
    assert words in err
    assert err.count("\n") == 1


def test_errors_are_json_too(capsys, tmp_path):
    file = tmp_path / "broken.urdf"
    file.write_text("<robot name='x'><link name='a'/><link name='a'/></robot>")
    code, out, _ = run(capsys, "inspect", file, "--json")
    assert code == 1
    assert "a" in json.loads(out)["error"]


@pytest.mark.parametrize(
    "args", [["simulate", ROBOT, "--frames", "0"], ["simulate", ROBOT, "--fps", "nan"], ["fly", ROBOT], []]
)
def test_wrong_options_end_with_two(args):
    with pytest.raises(SystemExit) as stop:
        main(args)
    assert stop.value.code == 2


def test_simulate_keeps_the_energy_of_a_falling_robot(capsys):
    code, out, _ = run(capsys, "simulate", ROBOT, "--floating", "--frames", 6, "--json")
    data = json.loads(out)
    assert code == 0
    assert data["frames"] == 6
    assert data["seconds"] == pytest.approx(0.1)
    # joints are at rest relative to each other and fall freely; limits and drives do nothing but rounding
    assert data["energy_end"] == pytest.approx(data["energy_start"], abs=0.05)


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "newton_like", "--version"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert done.stdout.startswith("newton-like 0.")


SHAPES = [
    (GeoType.BOX, (0.3, 0.2, 0.1)),
    (GeoType.SPHERE, (0.4, 0.0, 0.0)),
    (GeoType.ELLIPSOID, (0.3, 0.2, 0.5)),
    (GeoType.CAPSULE, (0.2, 0.4, 0.0)),
    (GeoType.CYLINDER, (0.2, 0.4, 0.0)),
    (GeoType.CONE, (0.3, 0.5, 0.0)),
]


@pytest.mark.parametrize("kind, scale", SHAPES)
def test_outlines_enclose_the_shapes(kind, scale):
    """Volume and centre of the triangles are those of the shape, less what 24 corners cut off."""
    import trimesh

    vertices, faces = triangles(kind, scale)
    solid = trimesh.Trimesh(vertices, faces)
    mass, com, _ = mass_properties(kind, scale, 1.0)
    assert solid.is_watertight
    # a circle of 24 corners has 1 - sin(2 pi / 24) / (2 pi / 24) = 1.1 % less area; a ball with twelve rows loses that three times and more
    assert mass * 0.94 < solid.volume <= mass * (1.0 + 1e-9)
    np.testing.assert_allclose(solid.center_mass, com, atol=0.01)


def test_pictures_show_what_is_there(tmp_path):
    """A red ball in front of nothing: red where it is projected, white elsewhere."""
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    builder = ModelBuilder(up_axis="Y")
    builder.add_shape_sphere(-1, radius=0.5, color=(1.0, 0.0, 0.0))
    figure = picture(builder.finalize("cpu"), size=(3.0, 3.0))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    image = np.asarray(canvas.buffer_rgba())[..., :3].astype(int)
    middle, corner = image[image.shape[0] // 2, image.shape[1] // 2], image[2, 2]
    assert middle[0] > 100
    assert max(middle[1], middle[2]) < 30
    np.testing.assert_array_equal(corner, 255)
    with pytest.raises(ValueError, match="no shapes"):
        picture(ModelBuilder().finalize("cpu"))
