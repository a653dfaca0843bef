"""README and docs tell the truth: their Python runs, their commands run, their links lead somewhere."""

import os
import re
import shlex
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

FENCE = re.compile(r"^(?P<indent>[ \t]*)```(?P<kind>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)```[ \t]*$", re.M | re.S)


def blocks(page: Path, kind: str) -> list[tuple[int, str]]:
    """(line of the first character, code) of every fenced block of a kind."""
    text = page.read_text()
    found = [m for m in FENCE.finditer(text) if m["kind"] == kind]
    return [(text.count("\n", 0, m.start("code")) + 1, textwrap.dedent(m["code"])) for m in found]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def run(command: list[str], cwd: Path) -> subprocess.CompletedProcess:
    env = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=name_of)
def test_python_blocks_run(page, tmp_path):
    """The blocks of a page run one after the other, as a reader would type them in; line numbers are the page's own."""
    lines: list[str] = []
    for first, code in blocks(page, "python"):
        lines += [""] * (first - 1 - len(lines)) + code.splitlines()
    script = tmp_path / f"{page.stem}_md.py"
    script.write_text("\n".join(lines) + "\n")
    ran = run([sys.executable, str(script)], tmp_path)
    assert ran.returncode == 0, f"{name_of(page)}:\n{ran.stderr}"


def example_commands() -> list[tuple[str, str]]:
    """(page, `python -m examples...` and its arguments) of all bash blocks."""
    commands = set()
    for page in PAGES:
        for _, code in blocks(page, "bash"):
            for line in code.replace("\\\n", " ").splitlines():
                for part in line.split("&&"):
                    if match := re.search(r"python -m (examples\..*)", part.split("#")[0]):
                        commands.add((name_of(page), match[1].strip()))
    return sorted(commands)


@cache
def help_of(module: str) -> str:
    shown = run([sys.executable, "-m", module, "--help"], ROOT)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


# Few worlds and frames, so that a command shows that it runs, and not that the robot walks: other tests ask that.
LIGHT = {"--world-count": "2", "--num-frames": "4", "--device": "cpu"}
HEAVY = {"--test", "--benchmark"}


@pytest.mark.parametrize(("page", "command"), example_commands(), ids=[": ".join(c) for c in example_commands()])
def test_example_commands_run(page, command, tmp_path):
    module, *words = shlex.split(command)
    known = help_of(module)
    unknown = [w for w in words if w.startswith("--") and w.split("=")[0] not in known]
    assert unknown == [], f"{page}: python -m {command}"
    words = [w for w in words if w not in HEAVY]
    # Later arguments override earlier ones.
    for flag, value in LIGHT.items():
        if flag in known:
            words += [flag, value]
    ran = run([sys.executable, "-m", module, *words], tmp_path)
    assert ran.returncode == 0, f"{page}: python -m {command}\n{ran.stderr}"


def test_readme_opens_with_the_two_commands():
    commands = [line for _, code in blocks(ROOT / "README.md", "bash") for line in code.splitlines() if line.strip()]
    main_job, tests = commands[:2]
    assert 'pip install -e ".[examples]"' in main_job and "python -m examples.quadruped" in main_job
    assert 'pip install -e ".[test]"' in tests and tests.split("&&")[-1].strip() == ".venv/bin/python -m pytest"


def test_ci_runs_what_the_readme_says():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    text = script.read_text()
    assert 'pip" install' in text and '-e ".[test]"' in text and "-m pytest" in text


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    text = FENCE.sub("", page.read_text())
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    local = [t.split("#")[0] for t in targets if not re.match(r"[a-z]+:", t)]
    assert [t for t in local if t and not (page.parent / t).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_blocks_say_their_language(page):
    """A block without a language would slip past these tests."""
    text = page.read_text()
    bare = [text.count("\n", 0, m.start()) + 1 for m in FENCE.finditer(text) if not m["kind"]]
    assert bare == []
