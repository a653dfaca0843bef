"""Checks of binary USD files in a separate process: files that crash it or do not terminate raise an error with their name."""

import os
import re
import shutil
import signal
import subprocess
import sys
import warnings

import pytest

pytest.importorskip("pxr")
from pxr import Sdf, Usd, UsdUtils

from newton_like.importers.usd.opening import guard
from newton_like.importers.xml_source import ImportFileError
from newton_like.model.builder.builder import ModelBuilder
from newton_like.usd import Simulation
from tests.support.usd_damage import FEATURES, POINTING, binary, misdirected
from tests.support.usd_stages import text

pytestmark = pytest.mark.filterwarnings("ignore::newton_like.importers.usd.UsdWarning")


@pytest.fixture
def asked(monkeypatch):
    """Requests that the other process gets."""
    requests, ask = [], guard._reader.ask
    monkeypatch.setattr(guard._reader, "ask", lambda request: requests.append(request) or ask(request))
    return requests


def dies(path) -> bool:
    """Whether USD alone ends a process that goes over the prims of a file."""
    program = f"from pxr import Sdf; Sdf.Layer.FindOrOpen({str(path)!r}).Traverse('/', lambda path: None)"
    return subprocess.run([sys.executable, "-c", program], capture_output=True).returncode < 0


@pytest.fixture
def deadly(tmp_path):
    """A file that crashes this version of USD."""
    for number, content in enumerate(misdirected(binary(POINTING))[::-1]):
        path = tmp_path / f"deadly_{number}.usdc"
        path.write_bytes(content)
        if dies(path):
            return path
    pytest.skip("this version of USD survives lists that point out of their tables")


@pytest.mark.slow
def test_what_usd_dies_of_is_refused(deadly):
    top = deadly.with_name("top.usda")
    top.write_text(text(f'def "x" (references = @./{deadly.name}@) {{}}'))
    other = deadly.with_suffix(".usd")
    shutil.copy(deadly, other)
    for source, name in ((deadly, deadly), (top, deadly), (other, other)):
        for load in (ModelBuilder().add_usd, Simulation):
            with pytest.raises(ImportFileError, match=rf"^{re.escape(name.name)} .*damaged"):
                load(source)
    good = deadly.with_name("good.usdc")
    good.write_bytes(binary(POINTING))
    builder = ModelBuilder()
    builder.add_usd(good)
    assert builder.body_count == 1


@pytest.mark.slow
def test_lists_that_point_nowhere(tmp_path):
    """Schemas, targets, variants and children without a name raise errors; USD ignores some, and crashes for others."""
    lists = misdirected(binary(POINTING))
    for number, content in enumerate(lists):
        path = tmp_path / f"list_{number}.usdc"
        path.write_bytes(content)
        with pytest.raises(ImportFileError, match=rf"^list_{number}\.usdc .*(damaged|USD)"):
            ModelBuilder().add_usd(path)
    assert len(lists) > 8


@pytest.mark.slow
def test_archives_and_clips(deadly, tmp_path):
    """Files in archives and files of samples are read too."""
    archive = tmp_path / "all.usdz"
    with Sdf.ZipFileWriter.CreateNew(str(archive)) as writer:
        writer.AddFile(str(deadly), "root.usdc")
    clip = tmp_path / "clip.1.usdc"
    shutil.copy(deadly, clip)
    clips = 'clips = { dictionary default = { string templateAssetPath = "./clip.#.usdc"\nstring primPath = "/a" } }'
    (tmp_path / "top.usda").write_text(text(f'def "x" ({clips}) {{}}'))
    for source, name in ((archive, archive), (tmp_path / "top.usda", clip)):
        with pytest.raises(ImportFileError, match=rf"^{re.escape(name.name)} .*damaged"):
            ModelBuilder().add_usd(source)


def test_files_are_read_once(tmp_path, asked):
    """Each file and each stage, until one of them changes; texts not at all."""
    layer = tmp_path / "layer.usdc"
    layer.write_bytes(binary(POINTING))
    top = tmp_path / "top.usda"
    top.write_text(text('def "x" (references = @./layer.usdc@</a>) {}\ndef "y" (payload = @./layer.usdc@</a>) {}'))
    for _ in range(3):
        ModelBuilder().add_usd(top)
    assert [request.get("layer") for request in asked] == [str(layer), None]
    ModelBuilder().add_usd(layer)
    assert [request.get("stage") for request in asked] == [None, str(top), str(layer)]
    status = os.stat(layer)
    os.utime(layer, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
    ModelBuilder().add_usd(top)
    assert len(asked) == 5
    ModelBuilder().add_usd(top.read_text(), package_dirs=tmp_path)
    assert "text" in asked[-1] and len(asked) == 6
    ModelBuilder().add_usd(FEATURES)
    ModelBuilder().add_usd(Usd.Stage.Open(str(layer)))
    assert len(asked) == 6


def test_good_files_come_through(tmp_path):
    """The same stage as text, as a binary file and in an archive."""
    models = []
    (tmp_path / "a.usdc").write_bytes(binary(FEATURES.read_text()))
    assert UsdUtils.CreateNewUsdzPackage(str(tmp_path / "a.usdc"), str(tmp_path / "a.usdz"))
    for source in (FEATURES, tmp_path / "a.usdc", tmp_path / "a.usdz"):
        builder = ModelBuilder()
        builder.add_usd(source)
        models.append((builder.body_label, builder.body_mass, builder.shape_label, repr(builder.joint_X_p)))
    assert models[0] == models[1] == models[2] and models[0][0]


@pytest.fixture
def afresh():
    """A separate process for this test alone."""
    guard._reader.stop()
    yield
    guard._reader.stop()


@pytest.mark.slow
def test_what_has_no_end_is_cut(tmp_path, monkeypatch, afresh):
    """An endless regular expression in place of USD: it blocks Python's signals and threads."""
    path, script = tmp_path / "a.usdc", tmp_path / "endless.py"
    path.write_bytes(binary(POINTING))
    source = guard.SCRIPT.read_text()
    opening = "Sdf.Layer.FindOrOpen(identifier)"
    assert opening in source
    script.write_text(source.replace(opening, "re.match('(a+)+$', 'a' * 60 + 'b')"))
    monkeypatch.setattr(guard, "SCRIPT", script)
    monkeypatch.setattr(guard, "SECONDS", 0.2)
    with pytest.raises(ImportFileError, match=r"^a\.usdc .* 0\.3\d* s\b"):
        ModelBuilder().add_usd(path)
    monkeypatch.undo()
    builder = ModelBuilder()
    builder.add_usd(path)  # in a new process, and the earlier result is not cached
    assert builder.body_count == 1


def test_a_process_that_somebody_else_ended(tmp_path):
    """If the process was ended between two files, the second file is read in a new process."""
    for name in ("a.usdc", "b.usdc"):
        path = tmp_path / name
        path.write_bytes(binary(POINTING))
        ModelBuilder().add_usd(path)
        process = guard._reader._process
        process.kill()
        process.wait()


@pytest.mark.parametrize("how", ["frozen", "no program", "another program"])
def test_without_another_process(tmp_path, monkeypatch, afresh, how):
    """There is one warning, and the file is read in this process."""
    path = tmp_path / "a.usdc"
    path.write_bytes(binary(POINTING))
    monkeypatch.setattr(guard, "_warned", [])
    if how == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    elif how == "no program":
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    else:
        monkeypatch.setattr(guard, "SCRIPT", tmp_path / "reading.py")
    builder = ModelBuilder()
    with pytest.warns(RuntimeWarning, match="process"):
        builder.add_usd(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        builder.add_usd(path)
    assert builder.body_count == 2


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_have_processes_of_their_own_and_none_outlives_its_parent(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.usdc").write_bytes(binary(POINTING))
    program = f"""
import os
from newton_like.importers.usd.opening import guard

def read(name):
    guard.Guard(name).layer({str(tmp_path)!r} + f"/{{name}}.usdc")
    return guard._reader._process.pid

first = read("a")
fork = os.fork()
if fork == 0:
    print("read", read("b"), flush=True)
    os._exit(0)
assert os.waitpid(fork, 0)[1] == 0
assert read("c") == first
print("read", first, flush=True)
"""
    result = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=600)
    assert result.returncode == 0 and not result.stderr, result.stderr
    pids = [int(pid) for pid in re.findall(r"read (\d+)", result.stdout)]
    assert len(set(pids)) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            for _ in range(2000):  # the fork's ends when its input does
                os.kill(pid, 0)
                signal.sigtimedwait([], 0.05)
