"""Actuators in USD stages: what is written comes back, and others' stages are read."""

import warnings

import numpy as np
import pytest

pytest.importorskip("pxr")
from pxr import Usd

from newton_like import ModelBuilder
from newton_like.importers.xml_source import ImportFileError
from newton_like.model.actuators import NUMBERS
from newton_like.usd import write
from tests.support.actuators import robot

ADHESION = '<adhesion body="b1" gain="3" ctrlrange="0 1"/>'
TIES = """<equality><tendon tendon1="t1" tendon2="t2" polycoef="0 .5 .1" solref=".03 1"/><tendon tendon1="t3"/>
<tendon tendon1="t3" tendon2="t1"/></equality>"""


def world() -> ModelBuilder:
    text = robot().replace("</actuator>", f"{ADHESION}</actuator>").replace("</tendon>", f"</tendon>{TIES}")
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder.add_mjcf(text)
    return builder


def test_actuators_and_ties_come_back(tmp_path, rng):
    """Of three worlds, of which the second is a reference to the first, and the third has other numbers."""
    scene = ModelBuilder()
    scene.replicate(world(), 3)
    model = scene.finalize("cpu")
    gains = model.actuator_gainprm.numpy()
    gains[-1, 0] = rng.uniform(1.0, 2.0)
    model.actuator_gainprm.assign(gains)
    report = write(model, tmp_path / "a.usda")
    assert report.copies == 1
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = builder.add_usd(str(tmp_path / "a.usda"))
    assert found.not_understood == {}
    read = builder.finalize("cpu")
    for name in (*NUMBERS, "ctrl", "act"):
        mine, theirs = (getattr(m, f"actuator_{name}").numpy() for m in (model, read))
        np.testing.assert_array_equal(mine, theirs, err_msg=name)
    for mine, theirs in zip(model.actuators, read.actuators, strict=True):
        for name in (
            "label",
            "transmission",
            "target",
            "dof",
            "reference",
            "gain",
            "bias",
            "dynamics",
            "drive",
            "actearly",
            "world",
        ):
            assert getattr(mine, name) == getattr(theirs, name), (mine.label, name)
        assert theirs.rod == pytest.approx(mine.rod, rel=1e-12)
    # USD has the numbers of the file in double precision
    assert [tendon.ties for tendon in read.tendons] == [tendon.ties for tendon in model.tendons]


def test_activations_of_a_state_are_written(tmp_path, rng):
    """Of two worlds, which then are not copies of each other."""
    scene = ModelBuilder()
    scene.replicate(world(), 2)
    model = scene.finalize("cpu")
    state = model.state()
    state.actuator_act.assign(rng.uniform(0.0, 1.0, len(model.actuators)))
    assert write(model, tmp_path / "a.usda", state=state).copies == 0
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder.add_usd(str(tmp_path / "a.usda"))
    np.testing.assert_array_equal(builder.finalize("cpu").state().actuator_act.numpy(), state.actuator_act.numpy())


STAGE = """#usda 1.0
(metersPerUnit = %s
kilogramsPerUnit = 1
upAxis = "Z")
def Xform "R" {
def Xform "A" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {
  float physics:mass = 1
  def Sphere "s" (prepend apiSchemas = ["MjcSiteAPI"]) {
    double radius = 0.01
  }
}
def PhysicsRevoluteJoint "hinge" {
  rel physics:body1 = </R/A>
}
def MjcActuator "m" {
%s
}
}
"""


def imported(lines: str, metres: str = "1") -> ModelBuilder:
    stage = Usd.Stage.CreateInMemory()
    assert stage.GetRootLayer().ImportFromString(STAGE % (metres, lines.replace("; ", "\n")))
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder.add_usd(stage)
    return builder


def test_actuators_of_other_tools_are_read():
    """The attributes of a stage of Newton's own tests, ``mjc_schema_import.usda``."""
    servo = 'rel mjc:target = </R/hinge>; uniform token mjc:biasType = "affine"; uniform double[] mjc:biasPrm = [0, -10, -1]; '
    gains = "uniform double[] mjc:gainPrm = [10]; double mjc:ctrlRange:min = -1; double mjc:ctrlRange:max = 2"
    (actuator,) = imported(servo + gains).actuators
    assert (actuator.transmission, actuator.target, actuator.dof) == ("joint", 0, 0)
    assert (actuator.gainprm[0], actuator.biasprm[:3], actuator.ctrlrange) == (10.0, (0.0, -10.0, -1.0), (-1.0, 2.0))
    (actuator,) = imported("rel mjc:target = </R/A/s>; double[] mjc:gear = [0, 0, 10, 0, 0, 2]").actuators
    assert (actuator.transmission, actuator.gear) == ("site", (0.0, 0.0, 10.0, 0.0, 0.0, 2.0))
    assert not imported("rel mjc:target = </R/hinge>", metres="0.01").actuators


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("", "mjc:target"),
        ("rel mjc:target = </R/no>", "</R/no>"),
        ("rel mjc:target = [</R/hinge>, </R/A>]", r"mjc:target .*\b2\b"),
        ('rel mjc:target = </R/hinge>; token mjc:gainType = "magic"', "'magic'"),
        ("rel mjc:target = </R/hinge>; double[] mjc:gear = [1, 2, 3, 4, 5, 6, 7]", r"mjc:gear .*\b6\b"),
        ("rel mjc:target = </R/hinge>; double mjc:forceRange:min = 2; double mjc:forceRange:max = 1", "mjc:forceRange"),
        ('rel mjc:target = </R/hinge>; token mjc:dynType = "filter"; double[] mjc:dynPrm = [-1]', "time constant -1"),
        ("rel mjc:target = </R/A/s>; rel mjc:sliderSite = </R/A/s>", "mjc:cranklength|rod"),
    ],
)  # fmt: skip
def test_bad_actuators_are_refused_with_their_prim(lines, told):
    with pytest.raises(ImportFileError, match=f"</R/m>: .*{told}"):
        imported(lines)
