"""Motors of URDF files: transmissions with reductions, and safety controllers with soft limits."""

import re

import numpy as np
import pytest

from newton_like.importers.urdf import UrdfWarning
from newton_like.importers.xml_source import ImportFileError
from newton_like.model.builder.builder import ModelBuilder
from tests.support.paths import ROBOTS

INERTIAL = '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'
LIMIT = '<limit lower="-1" upper="2" effort="30" velocity="4"/>'


def chain(joints, *others):
    """A robot whose links ``l0``, ``l1``, ... are a chain of joints ``(name, type, contents)``."""
    parts = [f'<link name="l{n}">{INERTIAL}</link>' for n in range(len(joints) + 1)]
    for n, (name, kind, inside) in enumerate(joints):
        parts.append(
            f'<joint name="{name}" type="{kind}"><parent link="l{n}"/><child link="l{n + 1}"/>{inside}</joint>'
        )
    return f'<robot name="bot">{"".join(parts)}{"".join(others)}</robot>'


def simple(joint, reduction, rotor=""):
    """A transmission as ros_control writes it."""
    return (
        f'<transmission name="{joint}_trans"><type>transmission_interface/SimpleTransmission</type>'
        f'<joint name="{joint}"><hardwareInterface>EffortJointInterface</hardwareInterface><offset>0.25</offset></joint>'
        f'<actuator name="{joint}_motor"><mechanicalReduction>{reduction}</mechanicalReduction>{rotor}</actuator>'
        "</transmission>"
    )


ARM = [("hip", "revolute", LIMIT), ("slide", "prismatic", LIMIT), ("wheel", "continuous", ""), ("weld", "fixed", "")]


def load(text, **options):
    builder = ModelBuilder()
    return builder, builder.add_urdf(text, **options)


def armature(builder, report, joint):
    return builder.joint_armature[builder.joint_qd_start[report.joints[joint]]]


def test_transmissions_are_kept_with_their_reductions_and_change_no_limit(recwarn):
    bare, _ = load(chain(ARM))
    builder, report = load(chain(ARM, simple("hip", -50), simple("wheel", 0.5)))
    assert [(t.name, t.type, t.reduction) for t in report.transmissions] == [
        ("hip_trans", "SimpleTransmission", -50.0),
        ("wheel_trans", "SimpleTransmission", 0.5),
    ]
    (joint,), (actuator,) = report.transmissions[0].joints, report.transmissions[0].actuators
    assert (joint.name, joint.offset, joint.interfaces) == ("hip", 0.25, ("EffortJointInterface",))
    assert (actuator.name, actuator.reduction, actuator.rotor_inertia) == ("hip_motor", -50.0, 0.0)
    for array in ("joint_effort_limit", "joint_velocity_limit", "joint_limit_lower", "joint_armature"):
        assert getattr(builder, array) == getattr(bare, array)
    assert report.not_understood == {} and [str(w.message) for w in recwarn] == []


def test_rotors_add_the_square_of_the_reduction_to_the_joint(rng):
    """A rotor of inertia J that turns n times as fast as its joint has the kinetic energy J (n qd)^2 / 2."""
    moment, up, down = rng.uniform(1.0e-6, 1.0e-4), rng.uniform(10.0, 100.0), -rng.uniform(10.0, 100.0)
    text = chain(ARM, simple("hip", repr(up)), simple("slide", repr(down)))
    builder, report = load(text, rotor_inertia=moment)
    # products of three numbers, rounded twice
    assert armature(builder, report, "hip") == pytest.approx(moment * up**2, rel=1e-15)
    assert armature(builder, report, "slide") == pytest.approx(moment * down**2, rel=1e-15)
    assert armature(builder, report, "wheel") == 0.0
    one, report_one = load(text, rotor_inertia={"slide_motor": moment})
    assert armature(one, report_one, "hip") == 0.0
    assert armature(one, report_one, "slide") == armature(builder, report, "slide")
    named = {"hip": moment}
    assert armature(*load(text, rotor_inertia=named), "hip") == armature(builder, report, "hip")


def test_rotors_grow_with_the_robot_as_its_links_do():
    text = chain(ARM, simple("hip", 10), simple("slide", 10))
    builder, report = load(text, rotor_inertia=0.001, scale=2.0)
    assert armature(builder, report, "hip") == pytest.approx(4.0 * 0.1, rel=1e-15)
    assert armature(builder, report, "slide") == pytest.approx(0.1, rel=1e-15)  # a mass, which keeps its number


def test_two_motors_of_a_joint_add_up_and_the_default_armature_gives_way():
    builder = ModelBuilder()
    builder.default_joint_cfg.armature = 0.7
    drake = '<drake:gear_ratio value="10"/><drake:rotor_inertia value="0.001"/>'
    text = chain(ARM, simple("hip", 3, drake), simple("hip", 20)).replace(
        "<robot", '<robot xmlns:drake="https://drake.mit.edu"', 1
    )
    report = builder.add_urdf(text)
    assert report.transmissions[0].reduction == 10.0
    assert armature(builder, report, "hip") == pytest.approx(0.1, rel=1e-15)
    assert armature(builder, report, "wheel") == 0.7
    both, report = load(text, rotor_inertia={"hip": 0.002})
    assert armature(both, report, "hip") == pytest.approx(0.002 * (10**2 + 20**2), rel=1e-15)


def test_old_and_coupled_transmissions_are_read():
    old = (
        '<transmission type="pr2_mechanism_model/SimpleTransmission" name="t"><actuator name="m"/><joint name="hip"/>'
        "<mechanicalReduction>-60</mechanicalReduction><motorTorqueConstant>1</motorTorqueConstant></transmission>"
    )
    coupled = (
        '<transmission name="wrist"><type>transmission_interface/DifferentialTransmission</type>'
        '<actuator name="m1"><role>actuator1</role><mechanicalReduction>-1.0</mechanicalReduction></actuator>'
        '<actuator name="m2"><role>actuator2</role><mechanicalReduction>1.0</mechanicalReduction></actuator>'
        '<joint name="hip"><role>joint1</role><mechanicalReduction>2</mechanicalReduction></joint>'
        '<joint name="wheel"><role>joint2</role></joint></transmission>'
    )
    with pytest.warns(UrdfWarning, match=r"transmission.*\(1\): wrist; .*motorTorque"):
        builder, report = load(chain(ARM, old, coupled), rotor_inertia=0.001)
    assert report.not_understood == {"transmission/motorTorqueConstant": 1}
    assert report.transmissions[0].reduction == -60.0
    assert armature(builder, report, "hip") == pytest.approx(3.6, rel=1e-15)
    wrist = report.transmissions[1]
    assert [(end.name, end.role, end.reduction) for end in wrist.joints] == [
        ("hip", "joint1", 2),
        ("wheel", "joint2", 1),
    ]
    assert [end.role for end in wrist.actuators] == ["actuator1", "actuator2"]
    with pytest.raises(ValueError, match=r"'wrist'.*2.*2"):
        _ = wrist.reduction


def test_transmissions_that_move_nothing_are_named():
    with pytest.warns(UrdfWarning, match=r"transmission.*\(1\): knee_trans;.*transmission.*\(1\): weld_trans"):
        load(chain(ARM, simple("knee", 2), simple("weld", 2)), rotor_inertia=1.0e-5)


@pytest.mark.parametrize(
    ("reduction", "message"),
    [
        ("0", r"<mechanicalReduction>.* 0\b"),
        ("0.0 ", r"line 2: <mechanicalReduction>"),
    ],
)
def test_wrong_reductions_are_refused(reduction, message):
    with pytest.raises(ImportFileError, match=message):
        load(chain(ARM, "\n", simple("hip", reduction)))


@pytest.mark.parametrize("reduction", ["fast", "", "nan", "${ratio}"])
def test_reductions_that_are_no_numbers_are_left_out_and_named(reduction):
    with pytest.warns(UrdfWarning, match="1 mechanicalReduction/text"):
        _, report = load(chain(ARM, simple("hip", reduction)))
    assert report.transmissions[0].actuators[0].reduction == 1.0


@pytest.mark.parametrize(
    ("rotor", "error", "message"),
    [
        ({"knee": 1.0}, KeyError, r"rotor_inertia.*'knee'.*XML"),
        ({"hip": -1.0}, ValueError, r"'hip'.* -1 kg m\^2"),
        ("much", TypeError, "rotor_inertia.*'much'"),
        (-1.0, ValueError, r"rotor_inertia -1 kg m\^2"),
        (float("nan"), ValueError, "rotor_inertia.*nan"),
    ],
)
def test_wrong_rotors_are_refused(rotor, error, message):
    builder = ModelBuilder()
    with pytest.raises(error, match=message):
        builder.add_urdf(chain(ARM, simple("hip", 2)), rotor_inertia=rotor)
    assert builder.body_count == builder.joint_count == 0


def safety(lower, upper, k_position=20, k_velocity=5):
    soft = f'soft_lower_limit="{lower}" soft_upper_limit="{upper}"'
    return f'{LIMIT}<safety_controller {soft} k_position="{k_position}" k_velocity="{k_velocity}"/>'


def limits(builder, report, joint):
    dof = builder.joint_qd_start[report.joints[joint]]
    return tuple(getattr(builder, f"joint_limit_{name}")[dof] for name in ("lower", "upper", "ke", "kd"))


def test_soft_limits_are_data_unless_asked_for(recwarn):
    text = chain([("hip", "revolute", safety(-0.5, 1.5))])
    assert limits(*load(text), "hip") == limits(*load(chain([("hip", "revolute", LIMIT)])), "hip")
    found = load(text)[1].safety["hip"]
    assert (found.soft_lower, found.soft_upper, found.k_position, found.k_velocity) == (-0.5, 1.5, 20.0, 5.0)
    assert [str(w.message) for w in recwarn] == []


def test_soft_limits_narrow_limits_and_bring_their_spring():
    """At a soft limit x+ the effort is bounded by -k_velocity (v + k_position (x - x+)): the spring of ke and kd."""
    joints = [
        ("in", "revolute", safety(-0.5, 1.5)),
        ("wide", "revolute", safety(-9, 9)),
        ("slide", "prismatic", safety(0.25, 0.75, k_position=0)),
        ("wheel", "continuous", safety(0, 0)),
    ]
    with pytest.warns(UrdfWarning, match=r"continuous.*limits.*\(1\): wheel"):
        builder, report = load(chain(joints), soft_limits=True, scale=2.0)
    default = builder.default_joint_cfg
    assert limits(builder, report, "in") == (-0.5, 1.5, 100.0, 5.0)
    assert limits(builder, report, "wide") == (-1.0, 2.0, 100.0, 5.0)
    assert limits(builder, report, "slide") == (0.5, 1.5, default.limit_ke, default.limit_kd)
    # a joint that cannot be at 0 starts at the nearer limit, soft ones among them
    assert builder.joint_q[builder.joint_q_start[report.joints["slide"]]] == 0.5


def test_soft_limits_that_mean_nothing_are_named():
    with pytest.warns(UrdfWarning, match=r"soft limits.*\(1\): hip"):
        load(chain([("hip", "revolute", safety(0, 0))]), soft_limits=True)
    with pytest.warns(UrdfWarning, match=r"soft limits.*\(1\): w"):
        load(chain([("w", "continuous", safety(-1, 1))]), soft_limits=True)


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        (safety(1, -1), ["'hip'", "soft_lower_limit 1", "soft_upper_limit -1"]),
        (safety(3, 4), ["'hip'", "soft limits", "3", "4", "-1", "2"]),
        (safety("low", 4), ["<safety_controller>", "soft_lower_limit='low'"]),
        (safety(0, 1, k_velocity=-1), ["<safety_controller>", "k_velocity='-1'"]),
        (LIMIT + '<safety_controller soft_lower_limit="-1"/>', ["<safety_controller>", "'k_velocity'"]),
    ],
)
def test_wrong_soft_limits_are_refused(inside, words):
    builder = ModelBuilder()
    with pytest.raises(ImportFileError) as caught:
        builder.add_urdf(chain([("hip", "revolute", inside)]), soft_limits=True)
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)
    assert builder.body_count == 0


@pytest.mark.skipif(not ROBOTS.is_dir(), reason="needs ../shared/example-robot-data")
@pytest.mark.filterwarnings("ignore::newton_like.importers.urdf.UrdfWarning")
def test_tiago_keeps_its_transmissions_and_soft_limits():
    path = ROBOTS / "tiago_description" / "robots" / "tiago.urdf"
    text = path.read_text()
    builder, report = load(path, soft_limits=True, hide_visuals=True)
    assert len(report.transmissions) == len(re.findall("<transmission ", text)) > 40
    assert len(report.safety) == len(re.findall("<safety_controller ", text)) > 5
    reductions = sorted(
        end.reduction for t in report.transmissions for end in (*t.actuators, *t.joints) if end.reduction != 1
    )
    written = [float(number) for number in re.findall("<mechanicalReduction>(.*?)<", text)]
    assert reductions == sorted(number for number in written if number != 1.0)
    assert limits(builder, report, "torso_lift_joint") == (0.0, 0.35, 400.0, 20.0)
    assert np.all(np.array(builder.joint_limit_lower) <= np.array(builder.joint_limit_upper))
