"""README and docs: their Python code runs, their commands run, and their links are valid."""

import contextlib
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import textwrap
import traceback
from functools import cache
from pathlib import Path
from unittest import mock

import pytest
from newton_like.kernels.simd import QUICK_COMPILATION

from tests.support.paths import ROOT

PAGES = sorted(
    p for f in ("", "docs", "assets", "examples", "tests", "tests/benchmarks") for p in (ROOT / f).glob("*.md")
)

FENCE = re.compile(r"^(?P<indent>[ \t]*)```(?P<kind>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)```[ \t]*$", re.M | re.S)


def blocks(page: Path, kind: str) -> list[tuple[int, str]]:
    """(line of the first character, code) of every fenced block of a kind."""
    text = page.read_text()
    found = [m for m in FENCE.finditer(text) if m["kind"] == kind]
    return [(text.count("\n", 0, m.start("code")) + 1, textwrap.dedent(m["code"])) for m in found]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def run(arguments: list[str], cwd: Path) -> subprocess.CompletedProcess:
    """Runs ``python`` with these arguments: a script, or ``-m`` and a module. The quick tests run it in this process, which has imported
    the package and precompiled Warp's header, as both take seconds."""
    if QUICK_COMPILATION:
        return run_here(arguments, cwd)
    env = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    return subprocess.run([sys.executable, *arguments], cwd=cwd, env=env, capture_output=True, text=True, check=False)


def run_here(arguments: list[str], cwd: Path) -> subprocess.CompletedProcess:
    import matplotlib

    matplotlib.use("Agg")
    out, err, code = io.StringIO(), io.StringIO(), 0
    module = arguments[0] == "-m"
    name, words = arguments[int(module)], arguments[int(module) + 1 :]
    with (
        mock.patch.dict(os.environ),
        mock.patch.object(sys, "argv", [name, *words]),
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            if module:
                runpy.run_module(name, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(name, run_name=Path(name).stem)
        except SystemExit as end:
            code = end.code or 0
        except Exception:
            traceback.print_exc()
            code = 1
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def run_blocks(page: Path, folder: Path) -> None:
    """Runs the blocks of a page one after the other, as a reader would type them in; line numbers are the page's own."""
    lines: list[str] = []
    for first, code in blocks(page, "python"):
        lines += [""] * (first - 1 - len(lines)) + code.splitlines()
    script = folder / f"{page.stem}_md.py"
    script.write_text("\n".join(lines) + "\n")
    ran = run([str(script)], folder)
    assert ran.returncode == 0, f"{page}:\n{ran.stderr}"


SLOW_PAGES = {
    f"docs/{name}.md" for name in ("articulation", "dynamics", "guide", "maximal", "multirotor", "robot", "scenes")
}
"""Pages whose robots get code of their own, which takes a minute to compile."""


def with_python() -> list:
    """Pages with blocks of Python."""
    pages = [p for p in PAGES if blocks(p, "python")]
    return [pytest.param(p, marks=pytest.mark.slow) if name_of(p) in SLOW_PAGES else p for p in pages]


@pytest.mark.parametrize("page", with_python(), ids=name_of)
def test_python_blocks_run(page, tmp_path):
    run_blocks(page, tmp_path)


def commands() -> list[tuple[str, str]]:
    """(page, module and arguments) of every `python -m` of this repository, in bash blocks and within lines of text."""
    found = set()
    for page in PAGES:
        inline = re.findall(r"`([^`\n]+)`", FENCE.sub("", page.read_text()))
        shell = "\n".join(code for _, code in blocks(page, "bash")).replace("\\\n", " ").splitlines()
        for line in [*inline, *shell]:
            for part in line.split("&&"):
                match = re.search(r"python -m ((examples|tests|newton_like)\.\w.*)", part.split("#")[0])
                if match:
                    found.add((name_of(page), match[1].strip()))
    return sorted(found)


@cache
def help_of(module: str) -> str:
    """What ``python -m module --help`` prints; run in this process, which has imported the package already."""
    shown = io.StringIO()
    with (
        mock.patch.dict(os.environ),
        mock.patch.object(sys, "argv", [module, "--help"]),
        contextlib.redirect_stdout(shown),
        pytest.raises(SystemExit) as stopped,
    ):
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    assert stopped.value.code in (None, 0)
    return shown.getvalue()


# Few worlds and frames, so that a command shows that it runs, and not that the robot walks: other tests ask that.
LIGHT = {"--world-count": "2", "--num-frames": "4", "--device": "cpu"}
HEAVY = {"--test", "--benchmark"}


def options_of(module: str) -> set[str]:
    return set(re.findall(r"--[\w-]+", help_of(module)))


@pytest.mark.parametrize(("page", "command"), commands(), ids=[": ".join(c) for c in commands()])
def test_options_of_commands_are_known(page, command):
    module, *words = shlex.split(command)
    unknown = [w for w in words if w.startswith("--") and w.split("=")[0] not in options_of(module)]
    assert unknown == [], f"{page}: python -m {command}"


EXAMPLES = [c for c in commands() if c[1].startswith("examples.")]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "command"), EXAMPLES, ids=[": ".join(c) for c in EXAMPLES])
def test_commands_run(page, command, tmp_path):
    """Commands of examples, without benchmarks, which take minutes. tests/examples tests the results of the examples."""
    module, *words = shlex.split(command)
    known = options_of(module)
    words = [w for w in words if w not in HEAVY]
    # Later arguments override earlier ones.
    for flag, value in LIGHT.items():
        words += [flag, value] if flag in known else []
    ran = run(["-m", module, *words], tmp_path)
    assert ran.returncode == 0, f"{page}: python -m {command}\n{ran.stderr}"


def tool_commands() -> list[tuple[str, str]]:
    """(page, arguments) of every `newton-like` in bash blocks."""
    lines = [(name_of(p), line) for p in PAGES for _, code in blocks(p, "bash") for line in code.splitlines()]
    return [(page, line.split(maxsplit=1)[1]) for page, line in lines if line.startswith("newton-like ")]


def with_marks() -> list:
    """The commands; those that simulate are slow, as tests/cli simulates in the same way."""
    marks = {"simulate": pytest.mark.slow}
    return [pytest.param(*c, marks=marks.get(c[1].split()[0], ()), id=": ".join(c)) for c in tool_commands()]


@pytest.mark.parametrize(("page", "command"), with_marks())
def test_tool_commands_run(page, command, tmp_path):
    """They name files as seen from the root of the repository, and write where they are run."""
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    words = shlex.split(command)
    more = ["--frames", "2"] if words[0] == "simulate" else []
    ran = run(["-m", "newton_like", *words, *more], tmp_path)
    assert ran.returncode == 0, f"{page}: newton-like {command}\n{ran.stderr}"
    written = [
        tmp_path / word
        for word in words
        if Path(word).suffix in (".png", ".usda", ".gif") and not word.startswith("assets")
    ]
    assert all(file.stat().st_size > 0 for file in written)
    if "--json" in words:
        json.loads(ran.stdout)


def test_the_main_commands_are_among_them():
    """Checks that the patterns above find the commands."""
    assert {c.split()[0] for _, c in tool_commands()} >= {"inspect", "convert", "simulate"}
    assert {c.split()[0] for _, c in commands()} >= {"examples.quadruped", "examples.pendulum", "tests.benchmarks.run"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_are_named_are_there(page):
    """Checks paths from the root of the repository, such as `tests/support`, except those in `output`."""
    spans = re.findall(r"`([^`\s]+)`", FENCE.sub("", page.read_text()))
    tops = {p.name for p in ROOT.iterdir()} - {"output"}
    named = [s for s in spans if "/" in s and s.split("/")[0] in tops]
    assert [s for s in named if not (ROOT / s).exists()] == []


def test_readme_opens_with_the_two_commands():
    commands = [line for _, code in blocks(ROOT / "README.md", "bash") for line in code.splitlines() if line.strip()]
    main_job, tests = commands[:2]
    assert 'pip install -e ".[examples]"' in main_job and "python -m examples.quadruped" in main_job
    assert (
        'pip install -e ".[test]"' in tests
        and tests.split("&&")[-1].strip() == ".venv/bin/python -m pytest -n auto --dist loadfile"
    )


def test_ci_runs_what_the_readme_says_and_what_is_slow():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    text = script.read_text()
    assert re.search(r'pip" install .*-e "\.\[(test|dev)\]"', text) and '-m pytest -m "" ' in text


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    text = FENCE.sub("", page.read_text())
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    local = [t.split("#")[0] for t in targets if not re.match(r"[a-z]+:", t)]
    assert [t for t in local if t and not (page.parent / t).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_code_slips_past(page):
    """Only blocks of these languages are looked at, or need not be."""
    text = page.read_text()
    kinds = {m["kind"] for m in FENCE.finditer(text)}
    assert kinds <= {"python", "bash", "text"}
    assert text.count("```") == 2 * len(FENCE.findall(text)), "a fence is not closed, or inside of a line"
    assert not re.search(r"^\n    \S", FENCE.sub("", text), re.M), "an indented block: fence it"


@pytest.mark.parametrize(
    "broken", ["raise SystemExit(3)", "assert 1 == 2", "import newton_like; newton_like.nothing", "x ="]
)
def test_a_wrong_block_would_fail(broken, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"Text.\n\n```python\nx = 1\n```\n\nMore.\n\n```python\nassert x == 1\n{broken}\n```\n")
    with pytest.raises(AssertionError):
        run_blocks(page, tmp_path)
