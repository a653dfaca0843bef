"""Custom attributes that files hold."""

import numpy as np
import pytest
import warp as wp
from pxr import Usd

from newton_like import Model, ModelBuilder
from newton_like.importers.xml_source import ImportFileError
from newton_like.model.custom import CustomAttribute, CustomFrequency

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


ROOM = """#usda 1.0
(metersPerUnit = 1
upAxis = "Z")
def Xform "r" {
def Xform "lamp_0" {
custom float newton:lab:lamp_power = 5
}
def Xform "shelf" {
def Xform "lamp_1" {
custom int count = 2
}
}
def Xform "lamp_2" {
custom float newton:lab:lamp_power = 7
}
}"""


def with_lamps(**functions) -> ModelBuilder:
    builder = ModelBuilder()
    functions.setdefault("usd_prim_filter", lambda prim, context: prim.GetName().startswith("lamp"))
    builder.add_custom_frequency(CustomFrequency("lamp", "lab", **functions))
    for name, dtype, options in (
        ("power", float, {"default": 1.0}),
        ("world", int, {"references": "world"}),
        ("path", str, {}),
    ):
        builder.add_custom_attribute(CustomAttribute(f"lamp_{name}", dtype, "lab:lamp", namespace="lab", **options))
    builder.add_custom_attribute(
        CustomAttribute(
            "lamp_place",
            str,
            "lab:lamp",
            usd_attribute_name="*",
            usd_value_transformer=lambda value, context: (
                f"{context['prim'].GetPath()} {len(context['builder'].world_label)}"
            ),
        )
    )
    return builder


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_prims_that_stand_for_entities():
    for options, found in (
        ({}, ["/r/lamp_0", "/r/shelf/lamp_1", "/r/lamp_2"]),
        ({"ignore_paths": "shelf"}, ["/r/lamp_0", "/r/lamp_2"]),
        ({"root_path": "/r/shelf"}, ["/r/shelf/lamp_1"]),
    ):
        builder = with_lamps()
        builder.begin_world()
        builder.add_usd(ROOM, **options)
        builder.end_world()
        model = builder.finalize("cpu")
        powers = {"/r/lamp_0": 5.0, "/r/lamp_2": 7.0}
        np.testing.assert_array_equal(model.lab.lamp_power.numpy(), [powers.get(path, 1.0) for path in found])
        assert model.lamp_place == [f"{path} 1" for path in found]
        np.testing.assert_array_equal(model.lab.lamp_world.numpy(), np.zeros(len(found)))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_prims_that_stand_for_several_entities():
    seen = []

    def expand(prim, context):
        seen.append(context)
        return ({"lab:lamp_path": f"{prim.GetPath()}/{i}"} for i in range(prim.GetAttribute("count").Get() or 0))

    builder = with_lamps(usd_entry_expander=expand)
    report = builder.add_usd(ROOM)
    assert builder.finalize("cpu").lab.lamp_path == ["/r/shelf/lamp_1/0", "/r/shelf/lamp_1/1"]
    assert [str(context["prim"].GetPath()) for context in seen] == ["/r/lamp_0", "/r/shelf/lamp_1", "/r/lamp_2"]
    assert all(context["builder"] is builder and context["result"] is report for context in seen)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_functions_of_entities_that_fail_are_named_and_leave_the_builder_as_it_was():
    body = (
        'def Xform "arm" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {\nfloat physics:mass = 1\n}'
    )
    source = ROOM.replace('def Xform "r" {', f'def Xform "r" {{\n{body}')

    def refuse(prim, context):
        raise LookupError("no lamps here")

    for functions, error, message in (
        ({"usd_prim_filter": refuse}, RuntimeError, r"</r>: usd_prim_filter .*'lab:lamp'.*no lamps"),
        ({"usd_entry_expander": refuse}, RuntimeError, r"</r/lamp_0>: usd_entry_expander .*'lab:lamp'.*no lamps"),
        ({"usd_entry_expander": lambda prim, context: [{"lab:watt": 1.0}]}, ImportFileError, r"lamp_0.*lab:watt"),
        (
            {"usd_entry_expander": lambda prim, context: [{"lab:lamp_power": "x"}]},
            ImportFileError,
            r"lamp_0.*lamp_power",
        ),
    ):
        builder = with_lamps(**functions)
        with pytest.raises(error, match=message):
            builder.add_usd(source)
        assert builder.body_count == 0 and builder.current_world == -1
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
