"""The wheel and the sdist, and the cost of `import newton_like`."""

import ast
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import newton_like
from tests.support.paths import ROOT
from tests.support.sources import forget_sources, nodes_of

LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache")
FOLDERS = {"newton_like": "newton_like", "kernels": "newton_like/kernels", "assets": "newton_like/assets"}


def run(*command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | environment
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with an sdist and the wheel built from it, made of a clean copy so that no old build lends them a file."""
    source, out = tmp_path_factory.mktemp("source") / "project", tmp_path_factory.mktemp("dist")
    shutil.copytree(ROOT, source, ignore=LEFT_OUT)
    made = run(sys.executable, "-m", "build", "--outdir", str(out), cwd=source)
    said = made.stdout + made.stderr
    if made.returncode and "No matching distribution found for hatchling" in said:
        pytest.skip("building a wheel fetches hatchling, and there is no package index to be reached")
    assert made.returncode == 0, said
    return out


@pytest.fixture(scope="module")
def wheel(built) -> Path:
    (path,) = built.glob("*.whl")
    return path


def files_in(folder: str) -> set[str]:
    """Paths of all files in a folder of the repository, seen from its root."""
    paths = (p for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return {p.relative_to(ROOT).as_posix() for p in paths if not p.name.startswith(".")}


@pytest.mark.parametrize("left", [False, True])
def test_a_checkout_finds_the_kernels_beside_it(tmp_path, left):
    """Also where an earlier build left an empty folder inside, and where the package is imported anew."""
    package = tmp_path / "newton_like"
    package.mkdir()
    for path in (ROOT / "newton_like").iterdir():
        if path.name not in ("kernels", "assets", "__pycache__"):
            (package / path.name).symlink_to(path)
    for name in ("kernels", "assets"):
        (tmp_path / name).symlink_to(ROOT / name)
        if left:
            (package / name / "__pycache__").mkdir(parents=True)
    program = (
        "import importlib, sys, newton_like.checkout as c; importlib.reload(c)\n"
        "import newton_like.kernels.layout as l, newton_like.assets as a; print(l.__file__, a.__file__)\n"
        "print([getattr(f, '__name__', '') for f in sys.meta_path].count('FinderBeside'))"
    )
    done = run(sys.executable, "-c", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *files, count = done.stdout.split()[-3:]
    assert files == [str(tmp_path / "kernels" / "layout.py"), str(tmp_path / "assets" / "__init__.py")]
    assert count == "1"


@pytest.mark.slow
def test_sdist_holds_all_that_the_readme_speaks_of(built):
    """The sdist contains examples, documentation and all tests, so that documented commands work with an sdist."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    expected = {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", ".ci/run"}
    expected |= set().union(*(files_in(f) for f in (*FOLDERS, "examples", "docs", "tests")))
    assert expected - inside == set(), "the sdist target of pyproject.toml leaves these out"


@pytest.mark.slow
def test_wheel_holds_the_package_and_nothing_else(wheel):
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {t for t in tops if not t.endswith(".dist-info")} == {"newton_like"}


@pytest.mark.slow
def test_wheel_holds_every_module_and_asset(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    expected = {target + name.removeprefix(folder) for folder, target in FOLDERS.items() for name in files_in(folder)}
    assert expected - inside == set(), "the wheel target of pyproject.toml leaves these out"


@pytest.mark.slow
def test_wheel_carries_the_licence_and_the_version(wheel):
    archive = zipfile.ZipFile(wheel)
    licences = [n for n in archive.namelist() if n.endswith("LICENSE") and ".dist-info/" in n]
    assert len(licences) == 1
    (metadata,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
    lines = archive.read(metadata).decode().splitlines()
    assert f"Version: {newton_like.__version__}" in lines and "License-Expression: Apache-2.0" in lines


@pytest.mark.slow
def test_wheel_works_outside_the_repository(wheel, tmp_path):
    site = tmp_path / "site"
    command = (sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", str(site), str(wheel))
    installed = run(*command, "--disable-pip-version-check", cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    script = tmp_path / "stranger.py"
    script.write_text(
        "import importlib.resources, pathlib\n"
        "import newton_like\n"
        f"site = pathlib.Path({str(site)!r})\n"
        "assert pathlib.Path(newton_like.__file__).is_relative_to(site), newton_like.__file__\n"
        "asset = importlib.resources.files('newton_like.assets') / 'quadruped.urdf'\n"
        "assert pathlib.Path(str(asset)).is_relative_to(site), asset\n"
        "builder = newton_like.ModelBuilder()\n"
        "builder.add_urdf(str(asset), floating=True)\n"
        "model = builder.finalize('cpu')\n"
        "state = model.state()\n"
        "newton_like.eval_fk(model, model.joint_q, model.joint_qd, state)\n"
        "print(model.joint_dof_count, float(state.body_q.numpy()[:, 3:].sum()))\n"
    )
    ran = run(sys.executable, str(script), cwd=tmp_path, PYTHONPATH=str(site))
    assert ran.returncode == 0, ran.stderr
    # Six of the floating base and three a leg.
    assert ran.stdout.split()[-2] == "18"


@pytest.mark.slow
def test_a_script_in_the_folder_above_the_clone_gets_the_package(tmp_path):
    """Python takes a folder of the package's name without ``__init__.py``, as the clone is, for a package without code; any other one of
    that name on the path goes before."""
    clone, environment = tmp_path / "newton_like", tmp_path / "environment"
    shutil.copytree(ROOT, clone, ignore=LEFT_OUT)
    made = run(sys.executable, "-m", "venv", str(environment), cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    (site,) = environment.glob("lib/python*/site-packages")
    packages = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (site / "shared.pth").write_text("\n".join(packages))
    python = str(environment / "bin" / "python")
    command = (python, "-m", "pip", "install", "--no-deps", "--quiet", "--disable-pip-version-check", "-e", str(clone))
    installed = run(*command, cwd=tmp_path)
    if installed.returncode and "No matching distribution found for hatchling" in installed.stdout + installed.stderr:
        pytest.skip("building fetches hatchling, and there is no package index to be reached")
    assert installed.returncode == 0, installed.stderr
    script = tmp_path / "script.py"
    script.write_text(
        "import importlib.resources, newton_like, newton_like.kernels.lanes as lanes\n"
        "assets = importlib.resources.files('newton_like.assets')\n"
        "newton_like.ModelBuilder().add_urdf(str(assets / 'quadruped.urdf'), floating=True)\n"
        "print(newton_like.__file__, lanes.__file__)\n"
    )
    for folder in (tmp_path, clone, tmp_path / "environment"):
        for arguments in ((str(script),), ("-c", script.read_text())):
            ran = run(python, *arguments, cwd=folder)
            assert ran.returncode == 0, ran.stderr
            files = ran.stdout.split()[-2:]
            assert files == [str(clone / "newton_like" / "__init__.py"), str(clone / "kernels" / "lanes.py")]


IMPORT = "import sys, newton_like; print(*sys.modules)"
LAUNCH = """
import warp as wp

@wp.kernel
def fill(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0

wp.launch(fill, dim=1, outputs=[wp.zeros(1, dtype=float, device="cpu")], device="cpu")
"""


def compiled_files(cache: Path) -> list[str]:
    return sorted(str(p.relative_to(cache)) for p in cache.rglob("*") if p.is_file())


def test_import_leaves_programs_until_they_are_needed():
    """A model can be built without importing the dynamics library, and every public name is available on access."""
    code = (
        "import sys, newton_like as nl; late = ('newton_like.dynamics', 'newton_like.programs'); "
        "early = [m for m in sys.modules if m.startswith(late)]; assert not early, early; "
        "assert all(getattr(nl, name) is not None for name in nl.__all__); "
        "assert set(nl.__all__) <= set(dir(nl)); print('newton_like.dynamics' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.stdout.split()[-1:] == ["True"], found.stderr


@pytest.mark.slow
def test_import_compiles_nothing(tmp_path):
    """Cheap and sure where a stopwatch is not: Warp's kernel cache stays empty, and heavy modules stay out."""
    imported = run(sys.executable, "-c", IMPORT, cwd=tmp_path, WARP_CACHE_PATH=str(tmp_path / "import"))
    assert imported.returncode == 0, imported.stderr
    assert compiled_files(tmp_path / "import") == []
    heavy = {"matplotlib", "mujoco", "pinocchio", "newton", "pxr", "torch", "jax", "pytest"}
    assert heavy & set(imported.stdout.split()) == set()

    # The cache would show it: one kernel that is launched leaves files there.
    script = tmp_path / "launch.py"
    script.write_text(LAUNCH)
    launched = run(sys.executable, str(script), cwd=tmp_path, WARP_CACHE_PATH=str(tmp_path / "launch"))
    assert launched.returncode == 0, launched.stderr
    assert compiled_files(tmp_path / "launch") != []


def test_import_prints_nothing(tmp_path):
    imported = run(sys.executable, "-W", "error", "-c", "import newton_like", cwd=tmp_path)
    assert (imported.returncode, imported.stdout, imported.stderr) == (0, "", "")


@pytest.fixture(scope="module", autouse=True)
def sources():
    yield
    forget_sources()


def imported_distributions(folder: str) -> set[str]:
    """Top-level names that the Python files of a folder import, the standard library and the project left out."""
    names = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in nodes_of(path):
            if isinstance(node, ast.Import):
                names |= {a.name.split(".")[0] for a in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - {"newton_like", "examples", "tests"}


def declared(extra: str | None = None) -> set[str]:
    """Import names of the declared dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    import_names = {"warp-lang": "warp", "usd-core": "pxr", "pycollada": "collada", "pin": "pinocchio", "pillow": "PIL"}
    names = set()
    for requirement in wanted:
        name = requirement.split("[")[0].split(">")[0].split("=")[0].strip()
        if name == "newton-like":
            names |= declared(requirement.split("[")[1].split("]")[0])
        else:
            names.add(import_names.get(name, name.replace("-", "_")))
    return names


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "extras"),
    [
        ("newton_like", ("examples", "video", "ik", "decomposition", "onnx", "torch", "jax")),
        ("kernels", ()),
        ("examples", ("examples",)),
        ("tests", ("test", "peers", "jax", "bullet")),
    ],
)
def test_what_is_imported_is_declared(folder, extras):
    allowed = declared().union(*(declared(e) for e in extras))
    assert imported_distributions(folder) - allowed == set()
