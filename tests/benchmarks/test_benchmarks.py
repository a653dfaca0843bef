"""The benchmarks run, tell engines that disagree from those that agree, and judge what was measured only."""

import re
from dataclasses import replace

import numpy as np
import pytest
import warp as wp

from tests.benchmarks import bench_contact, bench_methods, light_links, run
from tests.benchmarks.cases import CASES
from tests.benchmarks.contact_scenes import SCENES
from tests.benchmarks.engines import Settled

STAND, TROT = (next(case for case in CASES if case.name == name) for name in ("stand", "trot"))


def settled(feet: int, way: float = 0.0) -> Settled:
    worlds = np.ones(4)
    return Settled(0.3 * worlds, way * worlds, np.full(4, feet), worlds, True)


@pytest.mark.slow
def test_one_case_runs_and_its_table_has_what_was_asked_for(tmp_path, capsys, monkeypatch):
    # It makes Warp quiet, and the tests after this one should not find it so.
    monkeypatch.setattr(wp.config, "log_level", wp.config.log_level)
    output = tmp_path / "made" / "table.md"
    quick = ["--no-peers", "--no-first-step", "--rounds", "1", "--seconds", "0.005"]
    run.main(["--cases", "stand", "--worlds", "3", *quick, "--output", str(output)])
    rows = [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in output.read_text().splitlines()
        if "|" in line
    ]
    assert rows[0][2] == "N = 3"
    for engine in ("newton_like, general", "newton_like, specialised"):
        (row,) = (r for r in rows if r[1] == engine)
        rate, times = row[2].split(" (")
        # Three worlds at a time step of 1/240 s are faster than real time, and no machine steps them in a nanosecond.
        assert 720.0 < float(rate.replace(",", "")) < 3e9
        assert times.endswith(" x)") and "4 feet down" in row[3]
    assert any(r[1].startswith("mujoco.rollout") for r in rows)
    # The targets are for 4096 worlds: three have none.
    assert "target" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"heights": np.full(4, 0.31)}, "base heights 0.3000 m and 0.3100 m"),
        ({"touching": np.array([4, 4, 3, 4])}, "shapes on the ground: 4.00 and 3.75, not 4"),
        ({"force": np.array([1.0, 1.0, 1.0, 0.9])}, "ground forces over the weight"),
        ({"finite": False}, "finite: True, False"),
        ({}, None),
    ],
)
def test_robots_that_stand_otherwise_are_not_compared(change, named):
    said = run.disagreement(STAND, settled(4), replace(settled(4), **change))
    assert said is None if named is None else named in said


def test_robots_that_walk_otherwise_are_not_compared():
    assert run.disagreement(TROT, settled(2, 0.5), settled(3, 0.45)) is None
    assert re.search(r"distances.*0\.50.*0\.30", run.disagreement(TROT, settled(2, 0.5), settled(2, 0.3)))
    # Both stood still: they agree, and are no trot.
    assert "distances walked" in run.disagreement(TROT, settled(4, 0.0), settled(4, 0.0))


def test_targets_are_met_or_missed():
    ratios = {("design", "general", 4096): 9.0, ("design", "specialised", 4096): 19.0, ("stand", "general", 64): 1.0}
    general, special = run.targets(ratios)
    assert general.startswith("design, general") and general.endswith(": met")
    assert special.startswith("design, specialised") and special.endswith(": MISSED")
    (cold, warm, memory) = run.targets(
        {("stand", "general", "first"): (31.0, 1.0), ("stand", "general", "memory"): 39e3}
    )
    assert cold.endswith("MISSED") and warm.endswith("met") and memory.endswith("met")


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["--worlds", "0"], "--worlds: 0 must be at least 1"),
        (["--rounds", "0"], "--rounds: 0 must be at least 1"),
        (["--seconds", "0"], "--seconds 0 must be above 0"),
        (["--output", "/dev/null/table.md"], "--output /dev/null/table.md: cannot write there"),
        (["--cases", "moonwalk"], "design"),
    ],
)
def test_wrong_options_are_named(arguments, cure, capsys):
    with pytest.raises(SystemExit):
        run.main(arguments)
    assert cure in capsys.readouterr().err


@pytest.mark.slow
def test_a_scene_with_contacts_runs_and_its_row_has_times_and_residual(capsys, monkeypatch):
    monkeypatch.setattr(wp.config, "log_level", wp.config.log_level)
    bench_contact.main(["--scenes", "tower", "--worlds", "8", "--rounds", "1", "--seconds", "0.005"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    head, _, row = ([cell.strip() for cell in line[2:-2].split(" | ")] for line in lines)
    cells = dict(zip(head, row, strict=True))
    assert cells["scene"] == "tower of ten boxes" and cells["remarks"] == ""
    # Four points at each of ten faces.
    assert cells["contacts a world"] == "40.0"
    for name in head:
        if name.endswith("[us]"):
            assert 0.1 < float(cells[name].replace(",", "")) < 1e5
    typical, largest = (float(x) for x in cells["residual, 95 % and all of the worlds [m/s]"].split(", "))
    assert 0.0 < typical <= largest < 0.02


PANDA = next(scene for scene in SCENES if scene.name == "panda")


@pytest.mark.parametrize(
    ("who", "move", "depth", "named"),
    [
        ("here", (0.0, 0.0, 0.0), 0.0, None),
        ("here", (0.0, 0.0, np.nan), 0.0, "newton_like is not finite"),
        ("there", (0.0, 0.0, np.nan), 0.0, "MuJoCo is not finite"),
        ("here", (0.0, 0.0, 0.0), 0.006, "overlap of 6.0 mm, above 5 mm in 50% of the states"),
        ("here", (0.0, 0.0, -0.02), 0.0, "heights of a body differ from those of MuJoCo by 20.0 mm"),
        ("here", (0.0, 0.007, 0.0), 0.0, "newton_like: the grasped body moves by 7.0 mm"),
        ("there", (0.008, 0.0, 0.0), 0.0, "MuJoCo: the grasped body moves by 8.0 mm"),
    ],
)
def test_scenes_that_did_not_settle_are_found(who, move, depth, named):
    begin = np.tile([0.5, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0], (2, 2, 1))
    ends = {"here": begin.copy(), "there": begin.copy()}
    ends[who][:, 1, :3] += move
    said = bench_contact.faults(PANDA, ["panda_leftfinger", "cube"], [0.0, depth], begin, ends["here"], ends["there"])
    assert said == [] if named is None else named in said[0]


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["--worlds", "0"], "--worlds: 0 must be at least 1"),
        (["--seconds", "-1"], "--seconds -1 must be above 0"),
        (["--scenes", "moonwalk"], "tower"),
    ],
)
def test_wrong_options_of_contact_scenes_are_named(arguments, cure, capsys):
    with pytest.raises(SystemExit):
        bench_contact.main(arguments)
    assert cure in capsys.readouterr().err


def test_slides_in_line_exceed_their_limits_less_with_the_named_armature(capsys, monkeypatch):
    monkeypatch.setattr(wp.config, "log_level", wp.config.log_level)
    light_links.main(["--parts", "slides", "--worlds", "2"])
    lines = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    rows = [[float(cell.removesuffix(" %")) for cell in line] for line in lines[2:]]
    assert [row[:2] for row in rows] == [[g, speed] for g in (0.0, -9.81) for speed in light_links.DEVIATIONS]
    for _, _, without, named, *_ in rows:
        assert 0.0 < named < without < 2.0


@pytest.mark.slow
def test_scenes_of_methods_keep_their_energy(capsys):
    """Passive mechanisms keep their energy, and their joints stay closed; one printed line for each number of iterations."""
    bench_methods.main(["--scenes", "double pendulum", "four-bar, free", "--iterations", "2", "4", "--worlds", "2"])
    lines = [line for line in capsys.readouterr().out.splitlines() if ", 8 x " in line]
    assert len(lines) == 4
    for line in lines:
        found = {name: float(x) for name, x in re.findall(r"([a-z][^,:]*? \[[^]]*\]) (\S+?)(?:,|$)", line)}
        assert abs(found["change of energy [J]"]) < 1e-3 and found["largest rise [J]"] < 1e-4
        assert found["gap [mm]"] < 0.05 and found["speed at the end [m/s, rad/s]"] > 0.5
