"""Which files a USD stage may consist of: those in its folder and in ``package_dirs``; others are not even opened."""

import re
import zipfile

import pytest

pytest.importorskip("pxr")
from pxr import Sdf, Usd, UsdUtils

from newton_like.importers.xml_source import ImportFileError
from newton_like.model.builder.builder import ModelBuilder
from newton_like.usd import Simulation
from tests.support.usd_stages import text

SECRET = text(
    'def Cube "secret" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {}', 'metersPerUnit = 1\ndefaultPrim = "secret"'
)
HEAD = "metersPerUnit = 1\n"
CLIP = (
    'dictionary default = {{ asset[] assetPaths = [@{}@]\nstring primPath = "/secret"\ndouble2[] active = [(0, 0)] }}'
)
TEMPLATE = 'dictionary default = {{ string templateAssetPath = "{}"\nstring primPath = "/secret" }}'


def scene(arc: str, path: str) -> str:
    """A stage that names a file in one of the ways that USD has."""
    head = HEAD
    prim = 'def "x"'
    if arc == "sublayer":
        head += f"subLayers = [@{path}@]"
    elif arc == "expression":
        head += f'expressionVariables = {{ string FILE = "{path}" }}'
        prim += ' (references = @`"${FILE}"`@) {}'
    elif arc == "variant":
        prim += (
            ' (variants = { string k = "none" }\nvariantSets = "k") { variantSet "k" = { "none" {}\n'
            f'"file" (references = @{path}@) {{}} }} }}'
        )
    elif arc in ("clip", "template"):
        prim += f" (clips = {{ {(CLIP if arc == 'clip' else TEMPLATE).format(path)} }}) {{ double size.timeSamples = {{ 0: 1 }} }}"
    else:
        prim += f" ({arc} = @{path}@) {{}}"
    written = text(prim if "{" in prim else f"{prim} {{}}", head)
    return written.replace("FILE\n}\n", "FILE}")


ARCS = ["references", "payload", "sublayer", "expression", "variant", "clip", "template"]


@pytest.fixture
def place(tmp_path):
    """A folder for the stage with a subfolder, and a file next to it outside of the allowed folders."""
    (tmp_path / "stage" / "inner").mkdir(parents=True)
    (tmp_path / "secret.usda").write_text(SECRET)
    (tmp_path / "stage" / "inner" / "secret.usda").write_text(SECRET)
    return tmp_path


@pytest.mark.parametrize("arc", ARCS)
@pytest.mark.parametrize("way", ["up", "absolute", "around", "missing", "url"])
def test_files_elsewhere_are_refused_before_they_are_opened(place, arc, way, monkeypatch):
    names = {
        "up": "../secret.usda",
        "absolute": str(place / "secret.usda"),
        "around": "./inner/../../secret.usda",
        "missing": "/nowhere/at/all.usda",
        "url": "https://example.org/secret.usda",
    }
    file = place / "stage" / "scene.usda"
    file.write_text(scene(arc, names[way]))
    cure = "" if way == "url" else ".*package_dirs"
    for load in (ModelBuilder().add_usd, Simulation):
        with pytest.raises(ImportFileError, match=rf"^scene\.usda: .*'{re.escape(names[way])}'{cure}"):
            load(file)
        assert Sdf.Layer.Find(str(place / "secret.usda")) is None
    with pytest.raises(ImportFileError):  # nor does it depend on how the file is named
        monkeypatch.chdir(place / "stage")
        ModelBuilder().add_usd("scene.usda")


@pytest.mark.filterwarnings("ignore::newton_like.importers.usd.UsdWarning")
@pytest.mark.parametrize("arc", ARCS)
def test_files_in_the_folder_and_in_package_dirs_are_read(place, arc):
    inside, outside = place / "stage" / "in.usda", place / "stage" / "out.usda"
    inside.write_text(scene(arc, "./inner/secret.usda"))
    outside.write_text(scene(arc, "../secret.usda"))
    shapes = 1 if arc in ("references", "payload", "sublayer", "expression") else 0
    for file, folders in ((inside, ()), (outside, [place])):
        builder = ModelBuilder()
        builder.add_usd(file, package_dirs=folders)
        assert builder.shape_count == shapes


@pytest.mark.parametrize("arc", ARCS)
def test_binary_files_hide_nothing(place, arc):
    (place / "stage" / "scene.usda").write_text(scene(arc, "../secret.usda"))
    Sdf.Layer.FindOrOpen(str(place / "stage" / "scene.usda")).Export(str(place / "stage" / "binary.usdc"))
    with pytest.raises(ImportFileError, match=r"binary\.usdc.*'\.\./secret\.usda'"):
        ModelBuilder().add_usd(place / "stage" / "binary.usdc")
    assert Sdf.Layer.Find(str(place / "secret.usda")) is None


@pytest.mark.filterwarnings("ignore::newton_like.importers.usd.UsdWarning")
@pytest.mark.parametrize("arc", ARCS)
def test_binary_files_are_read(place, arc):
    (place / "stage" / "scene.usda").write_text(scene(arc, "./inner/secret.usda"))
    Sdf.Layer.FindOrOpen(str(place / "stage" / "scene.usda")).Export(str(place / "stage" / "binary.usdc"))
    builder = ModelBuilder()
    builder.add_usd(place / "stage" / "binary.usdc")
    assert builder.shape_count == (arc in ("references", "payload", "sublayer", "expression"))


@pytest.mark.parametrize("arc", ["references", "payload", "sublayer"])
def test_names_without_a_dot_are_looked_up_in_package_dirs(place, arc):
    (place / "library" / "part").mkdir(parents=True)
    (place / "library" / "part" / "part.usda").write_text(SECRET)
    file = place / "stage" / "scene.usda"
    file.write_text(scene(arc, "part/part.usda"))
    for load in (ModelBuilder().add_usd, lambda *a, **k: Simulation(*a, **k).model):
        result = load(file, package_dirs=str(place / "library"))
        assert len(result.shapes) == 1 if hasattr(result, "shapes") else result.shape_count == 1


def test_files_of_files_are_looked_at(place):
    """The stage names a good file, and that names a bad one."""
    file = place / "stage" / "scene.usda"
    file.write_text(scene("references", "./inner/next.usda"))
    (place / "stage" / "inner" / "next.usda").write_text(scene("payload", "../../secret.usda"))
    with pytest.raises(ImportFileError, match=r"next\.usda.*'\.\./\.\./secret\.usda'"):
        ModelBuilder().add_usd(file)


def test_texts_have_no_folder(place, monkeypatch):
    monkeypatch.chdir(place / "stage")
    source = scene("references", "inner/secret.usda")
    with pytest.raises(ImportFileError, match=r"<text>.*'inner/secret\.usda'.*package_dirs"):
        ModelBuilder().add_usd(source)
    builder = ModelBuilder()
    builder.add_usd(source, package_dirs=[place / "stage"])
    assert builder.shape_count == 1


def test_archives_are_read_and_cannot_look_out_of_themselves(place):
    folder = place / "stage"
    (folder / "root.usda").write_text(scene("references", "./inner/secret.usda"))
    assert UsdUtils.CreateNewUsdzPackage(str(folder / "root.usda"), str(folder / "all.usdz"))
    builder = ModelBuilder()
    builder.add_usd(folder / "all.usdz")
    assert builder.shape_count == 1
    for name, refused in (("../secret.usda", False), (str(place / "secret.usda"), True)):
        with zipfile.ZipFile(folder / f"bad_{refused}.usdz", "w") as archive:
            archive.writestr("root.usda", scene("references", name))
        # Relative names stay inside of the archive, where there is no such file.
        kind = (
            pytest.raises(ImportFileError, match=r"secret\.usda'.*outside")
            if refused
            else pytest.warns(match=r"\(1\): .*secret\.usda")
        )
        with kind:
            ModelBuilder().add_usd(folder / f"bad_{refused}.usdz")


def test_stages_that_are_open_are_the_callers_affair(place):
    file = place / "stage" / "scene.usda"
    file.write_text(scene("references", "../secret.usda"))
    builder = ModelBuilder()
    builder.add_usd(Usd.Stage.Open(str(file)))
    assert builder.shape_count == 1


def test_files_that_name_each_other_end(place):
    """Cyclic references do not hang: USD leaves the last one out, and the report has a remark."""
    for here, there in (("a", "b"), ("b", "a")):
        (place / "stage" / f"{here}.usda").write_text(
            text(f'def Xform "x" (references = @./{there}.usda@</x>) {{}}', HEAD)
        )
    with pytest.warns(UserWarning, match=r"references.*\(1\): Cycle"):
        ModelBuilder().add_usd(place / "stage" / "a.usda")


def test_what_is_no_usd(tmp_path):
    (tmp_path / "a.usda").write_text("no usd")
    for load in (ModelBuilder().add_usd, Simulation):
        with pytest.raises(ImportFileError, match=r"a\.usda.*USD"):
            load(tmp_path / "a.usda")
        with pytest.raises(FileNotFoundError, match=r"x{40}"):
            load(tmp_path / ("x" * 5000))
        with pytest.raises(TypeError, match=r"Usd\.Stage.*5"):
            load(5)
    with pytest.raises(FileNotFoundError):
        Simulation("#usda 1.0\n")
