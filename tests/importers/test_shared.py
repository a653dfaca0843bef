"""Common behaviour of all importers."""

import copy

import numpy as np
import pytest

from newton_like import ModelBuilder
from newton_like.importers.shared import unchanged_by_errors
from newton_like.solvers import SolverFeatherstone
from tests.support.mechanisms import quadruped


def test_an_error_leaves_every_attribute_of_a_builder_as_it_was():
    builder = ModelBuilder()
    builder.add_world(quadruped())
    before = copy.deepcopy(vars(builder))
    with pytest.raises(RuntimeError), unchanged_by_errors(builder):
        builder.gravity = (0.0, 0.0, -3.0)
        builder.add_world(quadruped())
        builder.begin_world()
        body = builder.add_body(mass=1.0, inertia=np.eye(3))
        builder.add_shape_sphere(body, radius=0.1)
        raise RuntimeError
    assert builder.gravity == ModelBuilder().gravity
    for name, value in before.items():
        if not name.startswith("_") or name in ("_gravity", "_current_world"):
            assert str(getattr(builder, name)) == str(value), name
    builder.add_world(quadruped())
    assert builder.finalize("cpu").world_count == 2


@pytest.mark.parametrize("kind", ["mjcf", "urdf"])
def test_joints_that_move_nothing_are_remarked(kind):
    """One of two massless hands has an armature; the model can be used for kinematics. (The USD importer has remarks about bodies.)"""
    builder = ModelBuilder()
    if kind == "mjcf":
        inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
        hands = '<body><joint name="empty"/></body><body><joint name="motor" armature="0.1"/></body>'
        source = f"<mujoco><worldbody><body><freejoint/>{inertial}{hands}</body></worldbody></mujoco>"
        add = builder.add_mjcf
    else:
        inertia = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
        source = (
            f'<robot name="r"><link name="a">{inertia}</link><link name="b"/><joint name="empty" type="continuous">'
        )
        source += '<parent link="a"/><child link="b"/></joint></robot>'
        add = builder.add_urdf
    with pytest.warns(UserWarning, match=r"without mass.*\(1\): \S*empty"):
        add(source)
    with pytest.raises(ValueError, match=r"empty.*armature"):
        SolverFeatherstone(builder.finalize("cpu"))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_reports_of_all_formats_have_the_same_names():
    urdf = ModelBuilder().add_urdf('<robot name="r"><link name="a"/></robot>', floating=True)
    mjcf = ModelBuilder().add_mjcf(
        '<mujoco><worldbody><body name="a"><freejoint/><geom size=".1"/></body></worldbody></mujoco>'
    )
    assert urdf.bodies == urdf.links == {"a": 0}
    assert mjcf.bodies == mjcf.links
    assert mjcf.bodies["a"] == 0
    pytest.importorskip("pxr")
    usd = ModelBuilder().add_usd('#usda 1.0\ndef Xform "a" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {}')
    assert usd.bodies == {"/a": 0}
    for report in (urdf, mjcf, usd):
        assert all(
            isinstance(getattr(report, name), dict)
            for name in ("bodies", "joints", "shapes", "remarks", "not_understood")
        )
