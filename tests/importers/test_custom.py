"""Custom attributes that files hold."""

import numpy as np
import pytest
import warp as wp
from pxr import Usd

from newton_like import Model, ModelBuilder
from newton_like.importers.xml_source import ImportFileError
from newton_like.model.custom import CustomAttribute

F, A = Model.AttributeFrequency, Model.AttributeAssignment


def declared() -> ModelBuilder:
    builder = ModelBuilder()
    for attribute in (
        CustomAttribute("heat", float, F.BODY, A.STATE, default=20.0, usd_attribute_name="lab:heat"),
        CustomAttribute("maker", str, F.JOINT, mjcf_attribute_name="by"),
        CustomAttribute("gain", float, F.JOINT_DOF, A.CONTROL, default=1.0),
        CustomAttribute("paint", wp.vec3, F.SHAPE, namespace="lab", default=(1.0, 1.0, 1.0)),
        CustomAttribute(
            "doubled",
            int,
            F.BODY,
            mjcf_value_transformer=lambda text, _: 2 * int(text),
            urdf_value_transformer=lambda text, _: None if text == "7" else 2 * int(text),
            usd_value_transformer=lambda value, context: 2 * value if context["prim"].GetName() == "arm" else None,
        ),
    ):
        builder.add_custom_attribute(attribute)
    return builder


MJCF = """<mujoco model="m">
<default><geom paint="0.1 0.2 0.3"/></default>
<worldbody>
<body name="arm" heat="30" doubled="4"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <joint name="x" type="slide" axis="1 0 0" gain="5" by="us"/><joint name="a" gain="6"/><geom size="0.1"/>
  <body name="tip"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><joint name="b"/><geom size="0.1" paint="0.9"/></body>
</body></worldbody></mujoco>"""


def test_mjcf():
    """Defaults of the file count; of numbers that are left out at the end, those of the attribute."""
    builder = declared()
    made = builder.add_mjcf(MJCF)
    model = builder.finalize("cpu")
    arm, tip = made.links["arm"], made.links["tip"]
    np.testing.assert_array_equal(model.state().heat.numpy()[[arm, tip]], [30.0, 20.0])
    np.testing.assert_array_equal(model.doubled.numpy()[[arm, tip]], [8, 0])
    np.testing.assert_array_equal(model.control().gain.numpy()[[made.dofs[n] for n in "xab"]], [5.0, 6.0, 1.0])
    assert [model.maker[made.joints[name]] for name in ("x", "b")] == ["us", ""]
    np.testing.assert_allclose(model.lab.paint.numpy(), [(0.1, 0.2, 0.3), (0.9, 1.0, 1.0)])
    assert not made.not_understood
    assert made.remarks == {} or all("paint" not in remark for remark in made.remarks)
    with pytest.raises(ImportFileError, match=r"arm.*heat.*warm"):
        declared().add_mjcf(MJCF.replace('heat="30"', 'heat="warm"'))


def test_urdf():
    link = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    builder = declared()
    made = builder.add_urdf(
        f'<robot name="r"><link name="base" doubled="7" heat="40">{link}</link><link name="arm" doubled="3">{link}</link>'
        '<joint name="j" type="continuous" gain="2.5" maker="them"><parent link="base"/><child link="arm"/></joint></robot>'
    )
    model = builder.finalize("cpu")
    base, arm, joint = made.links["base"], made.links["arm"], made.joints["j"]
    np.testing.assert_array_equal(model.state().heat.numpy()[[base, arm]], [40.0, 20.0])
    np.testing.assert_array_equal(model.doubled.numpy()[[base, arm]], [0, 6])
    np.testing.assert_array_equal(model.control().gain.numpy(), [2.5])
    assert model.maker[joint] == "them"
    assert not made.not_understood


def test_usd():
    body = '(prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])'
    mass = "float physics:mass = 1\nfloat3 physics:diagonalInertia = (1, 1, 1)"
    source = f"""#usda 1.0
(metersPerUnit = 1
upAxis = "Z")
def Xform "r" (prepend apiSchemas = ["PhysicsArticulationRootAPI"]) {{
def Xform "arm" {body} {{ {mass}
custom float lab:heat = 30
custom int newton:doubled = 4
def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{
custom float3 newton:lab:paint = (0.1, 0.2, 0.3)
}}
}}
def Xform "tip" {body} {{ {mass}
custom int newton:doubled = 5
}}
def PhysicsRevoluteJoint "a" {{ rel physics:body1 = </r/arm>
custom float newton:gain = 5
custom string newton:maker = "us"
}}
def PhysicsRevoluteJoint "b" {{ rel physics:body0 = </r/arm>
rel physics:body1 = </r/tip>
}}
}}"""
    stage = Usd.Stage.CreateInMemory()
    stage.GetRootLayer().ImportFromString(source)
    builder = declared()
    made = builder.add_usd(stage)
    model = builder.finalize("cpu")
    arm, tip = made.bodies["/r/arm"], made.bodies["/r/tip"]
    np.testing.assert_array_equal(model.state().heat.numpy()[[arm, tip]], [30.0, 20.0])
    np.testing.assert_array_equal(model.doubled.numpy()[[arm, tip]], [8, 0])
    np.testing.assert_array_equal(model.control().gain.numpy()[[*made.dofs["/r/a"], *made.dofs["/r/b"]]], [5.0, 1.0])
    assert [model.maker[made.joints[path]] for path in ("/r/a", "/r/b")] == ["us", ""]
    np.testing.assert_allclose(model.lab.paint.numpy(), [(0.1, 0.2, 0.3)])
    assert not made.not_understood


def test_an_import_that_fails_takes_entries_back():
    builder = declared()
    wrong = MJCF.replace('<joint name="b"/>', '<joint name="b" gain="many"/>')
    with pytest.raises(ImportFileError):
        builder.add_mjcf(wrong)
    assert not any(attribute.values for attribute in builder.custom_attributes.values())


@pytest.mark.parametrize("number", ["99999999999", "9" * 30])
def test_numbers_beyond_the_range_of_a_type_are_named_with_the_line(number):
    builder = declared()
    builder.add_custom_attribute(CustomAttribute("count", int, F.BODY))
    text = f'<robot name="r">\n<link name="base" count="{number}"/></robot>'
    with pytest.raises(ImportFileError, match=rf"line 2.*base.*count.*{number}"):
        builder.add_urdf(text)


@pytest.mark.parametrize(
    "wrong", ['custom string lab:heat = "warm"', "custom float2 lab:heat = (1, 2)", "custom double lab:heat = 1e300"]
)
def test_values_of_another_type_in_a_stage_are_errors_about_it(wrong):
    stage = Usd.Stage.CreateInMemory("lab.usda")
    stage.GetRootLayer().ImportFromString(f"""#usda 1.0
def Xform "arm" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {{
float physics:mass = 1
{wrong}
}}""")
    with pytest.raises(ImportFileError, match=r"lab\.usda.*/arm.*lab:heat"):
        declared().add_usd(stage)
