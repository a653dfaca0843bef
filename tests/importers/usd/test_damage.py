"""Damaged USD stages give a model or an error of the importer. For thousands of stages: ``python -m tests.support.usd_corpus``."""

from collections import Counter

import pytest

pytest.importorskip("pxr")

from newton_like.importers.xml_source import ImportFileError
from newton_like.model.builder.builder import ModelBuilder
from tests.support import usd_corpus
from tests.support.usd_stages import text

CUBE = 'def Cube "c" (prepend apiSchemas = ["PhysicsCollisionAPI"])'
BODY = 'def Xform "a" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])'


@pytest.mark.slow
def test_a_sample_of_the_corpus():
    cases = usd_corpus.run(seed=0, count=200)
    ends = Counter(case["end"] for case in cases)
    wrong = [case for case in cases if case["end"] in ("defect", "hang", "crash")]
    assert not wrong, wrong[:3]
    assert len(cases) == 200 and ends["model"] > 15 and ends["error"] > 60, ends


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (
            f'{CUBE} {{ string physics:collisionEnabled = "yes" }}',
            "</c>.*physics:collisionEnabled.*'yes'.*true",
        ),
        (f"{CUBE} {{ rel size = </c> }}", "</c>.*size.*relationship.*attribute"),
        (
            f'{CUBE} {{ uniform token xformOpOrder = "xformOp:scale" }}',
            r"</c>.*xformOpOrder.*'xformOp:scale'.*token\[\]",
        ),
        (
            f'{CUBE} {{ string xformOp:translate = "here"\nuniform token[] xformOpOrder = ["xformOp:translate"] }}',
            r"</c>.*xformOp.*TypeTranslate",
        ),
        (
            f'{BODY} {{ float3 physics:diagonalInertia = (1, 1, 1)\ntoken physics:principalAxes = "x" }}',
            r"</a>.*physics:principalAxes.* x\b.*\(1, 0, 0, 0\)",
        ),
        (
            f"{BODY} {{ bool physics:kinematicEnabled = 1\nfloat physics:rigidBodyEnabled = 0.5 }}",
            r"physics:rigidBodyEnabled.*'0\.5'.*true",
        ),
        (
            'def PhysicsFixedJoint "j" { string physics:body0 = "/a" }',
            "</j>.*physics:body0.*attribute.*rel physics:body0",
        ),
    ],
)
def test_values_of_the_wrong_kind_are_no_defaults(body, part):
    with pytest.raises(ImportFileError, match=part):
        ModelBuilder().add_usd(text(body))


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (f"{CUBE} {{ double size.timeSamples = {{ 0: 3 }} }}", r"time=.*\(1\): /c\.size"),
        (
            f"{CUBE} {{ rel physics:filteredPairs = </nowhere> }}",
            r"\(1\): /c\.physics:filteredPairs -> /nowhere",
        ),
        (
            f'{CUBE} {{ double3 xformOp:translat = (1, 0, 0)\nuniform token[] xformOpOrder = ["xformOp:translate"] }}',
            r"xformOpOrder.*\(1\): /c\.xformOp:translate",
        ),
        (f"{CUBE} {{ float[] primvars:displayOpacity = [nan] }}", r"primvars:displayOpacity.* 1 .*\(1\): /c"),
    ],
)
def test_what_usd_passes_over_is_remarked(body, part):
    with pytest.warns(UserWarning, match=part):
        ModelBuilder().add_usd(text(body))


def test_nesting_ends_somewhere(tmp_path):
    """A hundred thousand levels crash USD's parser."""
    source = text("").rstrip() + "\n" + 'def Xform "x" {\n' * 200_000 + "}\n" * 200_000
    (tmp_path / "deep.usda").write_text(source)
    (tmp_path / "top.usda").write_text(text('def "x" (references = @./deep.usda@) {}'))
    for stage in (source, tmp_path / "deep.usda", tmp_path / "top.usda"):
        with pytest.raises(ImportFileError, match=r"\b500\b"):
            ModelBuilder().add_usd(stage)


@pytest.mark.parametrize("name", ["isaac:physics:robotJoints", "omni:links", "userProperties:parts"])
def test_relationships_of_other_programs_are_read_over(name):
    """As the USD files that Isaac Sim writes have them."""
    builder = ModelBuilder()
    builder.add_usd(text(f"{CUBE} {{ custom rel {name} = </c>\ncustom rel {name}s }}"))
    assert builder.shape_count == 1
