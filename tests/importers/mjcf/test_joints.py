"""The MJCF importer: joints, actuators, equality constraints, tendons and keyframes, against MuJoCo where it has them too."""

import math
import warnings

import numpy as np
import pytest

pytest.importorskip("mujoco")

import mujoco

from newton_like.geometry.transforms import quat_to_matrix, transform_multiply
from newton_like.importers.mjcf import MjcfWarning
from newton_like.model.builder.builder import ModelBuilder
from newton_like.model.configs import JointDofConfig
from newton_like.model.tendons import tendon_numbers
from newton_like.solvers import SolverFeatherstone
from newton_like.types import MAXVAL, JointTargetMode, JointType
from tests.support.mjcf_peer import MjcfPeer
from tests.support.mjcf_texts import BOX, hinge, load, model
from tests.support.random_mjcf import text
from tests.support.remarks import remarked

# --------------------------------------------------------------------------------------------------- joints


@pytest.mark.parametrize(
    ("joints", "types"),
    [
        ("", [JointType.FIXED]),
        ("<freejoint/>", [JointType.FREE]),
        ('<joint type="ball"/>', [JointType.BALL]),
        ("<joint/>", [JointType.REVOLUTE]),
        ('<joint type="slide"/>', [JointType.PRISMATIC]),
        ('<joint type="slide"/><joint axis="1 0 0"/><joint axis="0 1 0"/>', [JointType.D6]),
        ('<joint axis="1 0 0"/><joint axis="1 1 0"/>', [JointType.REVOLUTE] * 2),
        ('<joint axis="1 0 0"/><joint type="slide"/>', [JointType.REVOLUTE, JointType.PRISMATIC]),
        (
            '<joint axis="1 0 0"/><joint axis="0 1 0"/><joint axis="0 0 1" pos="0 0 1"/>',
            [JointType.D6, JointType.REVOLUTE],
        ),
    ],
)
def test_joints_of_a_body_share_one_where_they_can(joints, types):
    builder, report = load(model(f'<body name="a">{joints}{BOX}</body>'))
    assert builder.joint_type == types
    assert builder.body_label[report.links["a"]] == "m/a" == builder.body_label[-1]
    assert [mass > 0.0 for mass in builder.body_mass] == [False] * (len(types) - 1) + [True]


@pytest.mark.parametrize("limits", ['limited="true"', 'range="-1 1"', 'limited="true" range="-1 1"'])
def test_limits_of_free_joints_are_not_used(limits):
    """Classes of defaults often have them for the joints of the legs."""
    builder, report = load(model(f'<body name="a"><joint type="free" {limits}/>{BOX}</body>'))
    assert builder.joint_type[-1] == JointType.FREE
    assert remarked(report, "free", "limits") == ["a_joint"]


def test_passive_settings_and_limits():
    builder, report = load(
        model(
            f'<body><joint name="h" range="-30 60" stiffness="5" springref="20" damping=".3" frictionloss=".4" armature=".5"/>'
            f'<joint name="s" type="slide" limited="false" range="-1 1" stiffness="7" springref=".2"/>{BOX}</body>'
        )
    )
    h, s = report.dofs["h"], report.dofs["s"]
    assert builder.joint_limit_lower[h] == pytest.approx(-math.pi / 6.0)
    assert builder.joint_limit_upper[h] == pytest.approx(math.pi / 3.0)
    assert (builder.joint_limit_lower[s], builder.joint_limit_upper[s]) == (-MAXVAL, MAXVAL)
    assert builder.joint_rest_q[report.coords["h"]] == pytest.approx(math.pi / 9.0)
    assert builder.joint_rest_q[report.coords["s"]] == 0.2
    names = ("stiffness", "damping", "friction", "armature")
    assert [getattr(builder, f"joint_{name}")[h] for name in names] == [5.0, 0.3, 0.4, 0.5]
    assert [getattr(builder, f"joint_{name}")[s] for name in names] == [7.0, 0.0, 0.0, 0.0]


def test_settings_that_the_file_does_not_name_are_the_builders():
    builder = ModelBuilder()
    builder.default_joint_cfg = JointDofConfig(armature=0.3, damping=0.2)
    builder.add_mjcf(hinge(joint='damping="5"'))
    assert (builder.joint_armature, builder.joint_damping) == ([0.3], [5.0])


@pytest.mark.parametrize("joints", ['<joint name="j" armature=".1"/>', '<joint name="j" type="ball"/>'])
def test_springdamper_is_that_of_mujoco(joints):
    xml = model(
        f'<body>{joints.replace("/>", " pos=")}".1 .2 .3" springdamper=".5 .7"/>{BOX}<body pos="1 0 0"><joint/>{BOX}</body></body>'
    )
    peer = MjcfPeer(xml)
    dof = peer.report.dofs["j"]
    assert peer.builder.joint_stiffness[dof] == pytest.approx(peer.mj.jnt_stiffness[0], rel=1e-9)
    assert peer.builder.joint_damping[dof] == pytest.approx(peer.mj.dof_damping[0], rel=1e-9)


def test_initial_coordinates_are_the_references():
    builder, report = load(
        model(f'<body><joint name="h" ref="30"/><joint name="s" type="slide" ref=".2"/>{BOX}</body>')
    )
    assert builder.joint_q[report.coords["h"]] == pytest.approx(math.pi / 6.0)
    assert builder.joint_q[report.coords["s"]] == 0.2


# --------------------------------------------------------------------------------------------------- actuators


def actuator(xml, joint="", **options):
    builder, report = load(hinge(after=f"<actuator>{xml}</actuator>", joint=joint), **options)
    return builder, report, report.dofs["j"]


@pytest.mark.parametrize(
    ("xml", "mode", "ke", "kd", "effort"),
    [
        ('<motor joint="j" gear="3" ctrlrange="-2 2"/>', "EFFORT", 0.0, 0.0, 6.0),
        ('<motor joint="j" gear="3" forcerange="-2 2"/>', "EFFORT", 0.0, 0.0, 6.0),
        ('<motor joint="j"/>', "EFFORT", 0.0, 0.0, 1e6),
        ('<position joint="j" kp="50" kv="2"/>', "POSITION", 50.0, 2.0, 1e6),
        ('<position joint="j" kp="50" kv="2" gear="2" forcerange="-5 5"/>', "POSITION", 200.0, 8.0, 10.0),
        ('<velocity joint="j" kv="4" gear="2"/>', "VELOCITY", 0.0, 16.0, 1e6),
        ('<intvelocity joint="j" kp="4" kv="1" actrange="-1 1"/>', "POSITION", 4.0, 1.0, 1e6),
        ('<general joint="j" gainprm="5"/>', "EFFORT", 0.0, 0.0, 1e6),
        ('<general joint="j" gainprm="5" biastype="affine" biasprm="1 -5 -.5"/>', "POSITION", 5.0, 0.5, 1e6),
        ('<position joint="j" kp="50"/><velocity joint="j" kv="3"/>', "POSITION_VELOCITY", 50.0, 3.0, 1e6),
    ],
)
def test_actuators_become_drives(xml, mode, ke, kd, effort):
    builder, _, dof = actuator(xml)
    assert builder.joint_target_mode[dof] == JointTargetMode[mode]
    got = (builder.joint_target_ke[dof], builder.joint_target_kd[dof], builder.joint_effort_limit[dof])
    assert got == pytest.approx((ke, kd, effort))


LINEAR = [
    '<motor joint="j" gear="3" ctrlrange="-2 2"/>',
    '<position joint="j" kp="50" kv="2" gear="2"/>',
    '<velocity joint="j" kv="4" gear="-2"/>',
    '<general joint="j" gainprm="5" biastype="affine" biasprm="1 -7 -.5" gear="1.5"/>',
    '<general joint="j" gainprm="5" biastype="affine" biasprm="1 0 -.5"/>',
    '<position joint="j" kp="50" dampratio="1.2" gear="2"/>',
    '<position joint="j" kp="50"/><position joint="j" kp="20" kv="1" gear=".5"/><velocity joint="j" kv="3"/><motor joint="j"/>',
]


@pytest.mark.parametrize("xml", LINEAR)
def test_drives_give_the_force_of_mujoco(rng, xml):
    """With targets from controls by factor and offset: the engine's law ``ke (q* - q) + kd (qd* - qd) + f``."""
    peer = MjcfPeer(hinge(after=f"<actuator>{xml}</actuator>", joint='armature=".1"'))
    peer.random_state(rng)
    ctrl = rng.uniform(-1.0, 1.0, peer.mj.nu)
    peer.data.ctrl[:] = ctrl
    mujoco.mj_forward(peer.mj, peer.data)
    target = {"joint_target_q": 0.0, "joint_target_qd": 0.0, "joint_f": 0.0}
    for value, made in zip(ctrl, peer.report.actuators, strict=True):
        assert made.index == 0
        target[made.drive] += made.factor * value + made.offset
    ke, kd = peer.builder.joint_target_ke[0], peer.builder.joint_target_kd[0]
    force = ke * (target["joint_target_q"] - peer.data.qpos[0]) + kd * (target["joint_target_qd"] - peer.data.qvel[0])
    assert force + target["joint_f"] == pytest.approx(peer.data.qfrc_actuator[0], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "joint", ['axis="0 1 0"', 'springdamper=".1 .8" damping="9"', 'type="ball" damping=".7"', 'type="free"']
)
def test_actuators_have_armature_and_damping_of_their_own(rng, joint):
    """Both are in MuJoCo's mass matrix and passive forces, times the square of the gear, and in its damping ratios."""
    xml = (
        '<motor joint="j" gear="3" armature=".2" damping=".3"/><motor joint="j" gear="-2" armature=".1"/>'
        '<position joint="j" kp="40" dampratio=".9" damping=".5"/><position jointinparent="j" gear="2" damping=".1"/>'
    )
    peer = MjcfPeer(hinge(after=f"<actuator>{xml}</actuator>", joint=f'{joint} armature=".1"'))
    peer.check_dynamics(rng, 1e-9)
    mujoco.mj_resetData(peer.mj, peer.data)
    peer.data.qvel[:] = 1.0
    mujoco.mj_forward(peer.mj, peer.data)
    np.testing.assert_allclose(peer.builder.joint_damping, -peer.data.qfrc_damper, rtol=1e-12)
    if peer.mj.nv == 1:
        np.testing.assert_allclose(peer.report.actuators[2].bias[1], peer.mj.actuator_biasprm[2], rtol=1e-12)


def test_damping_ratios_count_the_inertia_that_a_joint_moves_while_others_are_loose(rng):
    lengths, chain = rng.uniform(0.2, 0.6, 3), ""
    for i, length in reversed([*enumerate(lengths)]):
        place = f"{lengths[i - 1] if i else 0.0} 0 0"
        geom = f'<geom type="capsule" size=".05" fromto="0 0 0 {length} 0 0"/>'
        chain = f'<body pos="{place}"><joint name="j{i}" axis="0 1 {i}" armature=".01"/>{geom}{chain}</body>'
    servos = "".join(
        f'<position joint="j{i}" kp="{kp}" gear="{gear}" dampratio="{ratio}"/>'
        for i, (kp, gear, ratio) in enumerate(rng.uniform((50.0, 0.5, 0.3), (100.0, 2.0, 1.2), (3, 3)))
    )
    peer = MjcfPeer(model(chain, f"<actuator>{servos}</actuator>"))
    # both invert a 3x3 matrix whose condition is below 1e4, in double precision
    np.testing.assert_allclose(
        [a.bias[1][2] for a in peer.report.actuators], peer.mj.actuator_biasprm[:, 2], rtol=1e-10
    )


DEFAULT_ACTUATORS = (
    '<position kp="50" kv="3"/>',
    '<position kp="20"/>',
    '<velocity kv="5"/>',
    '<general gainprm="9" biasprm="1 2 -3" biastype="affine" ctrlrange="-3 3"/>',
    '<motor gear="5"/>',
    '<damper kv="4" ctrlrange="0 1"/>',
    '<general gaintype="affine" gainprm="2 3 -4"/>',
    '<cylinder area="7" timeconst=".5"/>',
)


@pytest.mark.slow
def test_defaults_of_actuators_are_shared_by_all_kinds(rng):
    """Gains and biases with nested classes agree with MuJoCo."""
    kinds = ("general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder")
    limits = {"damper": 'ctrlrange="0 1"'}
    actuators = "".join(f'<{kind} class="inner" joint="j" {limits.get(kind, "")}/>' for kind in kinds)
    plain = [[one, "", ""] for one in DEFAULT_ACTUATORS]
    drawn = [[str(rng.choice(["", *DEFAULT_ACTUATORS])) for _ in range(3)] for _ in range(30)]
    for main, outer, inner in plain + drawn:
        second = str(rng.choice(DEFAULT_ACTUATORS))
        if inner and second.split()[0] != inner.split()[0]:
            inner += second
        default = f'{main}<default class="outer">{outer}<default class="inner">{inner}</default></default>'
        xml = hinge(after=f"<actuator>{actuators}</actuator>")
        peer = MjcfPeer(xml.replace("<worldbody>", f"<default>{default}</default><worldbody>"))
        for i, ours in enumerate(peer.report.actuators):
            named = f"{default} {ours.kind}"
            np.testing.assert_allclose(ours.gain[1], peer.mj.actuator_gainprm[i], err_msg=named)
            np.testing.assert_allclose(ours.bias[1], peer.mj.actuator_biasprm[i], err_msg=named)
            none = ours.dynamics[0] == "none"
            assert none == (peer.mj.actuator_dyntype[i] == mujoco.mjtDyn.mjDYN_NONE), named
            if not none:
                np.testing.assert_allclose(ours.dynamics[1][0], peer.mj.actuator_dynprm[i][0], err_msg=named)
            np.testing.assert_allclose(ours.gear, peer.mj.actuator_gear[i], err_msg=named)


@pytest.mark.parametrize(
    "xml",
    [
        '<muscle site="s" lengthrange="-1 1"/>',
        '<general joint="j" gaintype="user"/>',
        '<general joint="j" dyntype="user"/>',
        '<pid joint="j"/>',
        '<dcmotor joint="j" motorconst="1" resistance="2" thermal="1 2"/>',
    ],
)
def test_actuators_that_are_not_simulated_are_kept_and_named(xml):
    with pytest.warns(MjcfWarning, match=rf"actuator.*\(1\): actuator_0 \({xml[1:].split()[0]}: "):
        report = ModelBuilder().add_mjcf(hinge('<site name="s"/>', f"<actuator>{xml}</actuator>"))
    (made,) = report.actuators
    assert made.drive is None and made.index == -1 and made.attributes


def test_force_limits_of_joints_hold_for_their_actuators():
    builder, _, dof = actuator('<position joint="j" kp="5"/>', 'actuatorfrcrange="-7 7"')
    assert builder.joint_effort_limit[dof] == 7.0
    builder, _, dof = actuator('<position joint="j" kp="5" forcerange="-3 3"/>', 'actuatorfrcrange="-7 7"')
    assert builder.joint_effort_limit[dof] == 3.0


def test_targets_start_at_control_zero_or_next_to_it():
    builder, report, _ = actuator('<position joint="j" kp="5" ctrlrange=".4 1"/>')
    assert builder.joint_target_q[report.coords["j"]] == pytest.approx(0.4)
    builder, report, dof = actuator('<general joint="j" gainprm="2" biastype="affine" biasprm="3 0 0"/>')
    assert builder.joint_f[dof] == 3.0


def test_position_range_is_inherited():
    _, report, _ = actuator('<position joint="j" kp="5" inheritrange=".5"/>', 'range="-20 60"')
    assert np.rad2deg(report.actuators[0].ctrlrange) == pytest.approx([0.0, 40.0])


def test_replicas_repeat_what_refers_to_them():
    xml = model(
        f'<replicate count="3" offset="1 0 0"><body name="b"><joint name="j"/>{BOX}<site name="s"/></body></replicate>'
    ).replace(
        "</mujoco>",
        '<actuator><motor name="m" joint="j"/></actuator><tendon><fixed name="t"><joint joint="j" coef="2"/></fixed></tendon>'
        '<contact><exclude body1="b" body2="world"/></contact></mujoco>',
    )
    _, report = load(xml)
    assert [made.name for made in report.actuators] == ["m0", "m1", "m2"]
    assert [made.target for made in report.actuators] == ["j0", "j1", "j2"]
    assert report.tendons == ["t0", "t1", "t2"]
    assert report.excludes == [("b0", "world"), ("b1", "world"), ("b2", "world")]


# --------------------------------------------------------------------------------------------------- constraints

TWO = (
    f'<body name="a" pos="0 0 1" euler="10 20 30"><joint name="p"/>{BOX}<geom name="w" size=".1"/><site name="x" pos=".1 .2 .3"/></body>'
    f'<body name="b" pos="1 0 0"><joint name="q" ref="15"/>{BOX}<site name="y"/></body>'
)


def tied(equality, **options):
    return load(model(TWO).replace("</mujoco>", f"<equality>{equality}</equality></mujoco>"), **options)


def anchors(builder, joint):
    """Poses of both anchors of a joint in the world, everything where the file places it."""
    result = []
    for body, local in (
        (builder.joint_parent[joint], builder.joint_X_p),
        (builder.joint_child[joint], builder.joint_X_c),
    ):
        result.append(transform_multiply(builder.body_q[body], local[joint]) if body >= 0 else np.array(local[joint]))
    return result


@pytest.mark.parametrize(
    ("equality", "kind"),
    [
        ('<connect body1="a" body2="b" anchor=".1 .2 .3"/>', JointType.BALL),
        ('<connect body1="a" anchor=".1 .2 .3"/>', JointType.BALL),
        ('<weld body1="a" body2="b" anchor=".1 .2 .3"/>', JointType.FIXED),
        ('<weld body1="a"/>', JointType.FIXED),
    ],
)
def test_loops_are_closed_where_the_file_places_bodies(equality, kind):
    builder, report = tied(equality)
    joint = report.equalities[0].joint
    assert builder.joint_type[joint] == kind and builder.joint_articulation[joint] == -1
    first, second = anchors(builder, joint)
    np.testing.assert_allclose(first[:3], second[:3], atol=1e-12)
    if kind == JointType.FIXED:
        np.testing.assert_allclose(quat_to_matrix(first[3:]), quat_to_matrix(second[3:]), atol=1e-12)
    else:
        i = report.links["a"]
        wanted = transform_multiply(builder.body_q[i], [0.1, 0.2, 0.3, 0, 0, 0, 1])[:3]
        np.testing.assert_allclose(first[:3], wanted, atol=1e-12)
    builder.finalize(device="cpu")  # both trees are in one articulation, or this raises
    assert len(report.articulations) == (1 if 'body2="b"' in equality else 2)


def test_weld_with_a_pose_of_its_own():
    builder, report = tied('<weld body1="a" body2="b" relpose="1 2 3 0 1 0 0"/>')
    joint = report.equalities[0].joint
    np.testing.assert_allclose(builder.joint_X_p[joint], [1, 2, 3, 1, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(builder.joint_X_c[joint], [0, 0, 0, 0, 0, 0, 1], atol=1e-12)


def test_sites_are_tied():
    builder, report = tied('<weld site1="x" site2="y"/>')
    joint = report.equalities[0].joint
    np.testing.assert_allclose(builder.joint_X_p[joint][:3], [0.1, 0.2, 0.3])
    assert builder.joint_child[joint] == report.links["b"]


def test_linear_joint_equality_is_a_mimic(rng):
    """MuJoCo measures both joints from their references."""
    c0, c1 = map(float, rng.normal(size=2))
    builder, report = tied(f'<joint joint1="q" joint2="p" polycoef="{c0!r} {c1!r} 0 0 0"/>')
    q = report.joints["q"]
    assert builder.joint_mimic_joint[q] == report.joints["p"] and report.equalities[0].joint == q
    np.testing.assert_allclose(builder.joint_mimic_coeffs[q], (math.radians(15.0) + c0, c1))
    builder.finalize(device="cpu")


def test_chain_of_mimics_follows_its_end():
    bodies = "".join(f'<body name="{n}"><joint name="{n}"/>{BOX}</body>' for n in "abc")
    laws = '<joint joint1="a" joint2="b" polycoef="1 2 0 0 0"/><joint joint1="b" joint2="c" polycoef="3 4 0 0 0"/>'
    builder, report = load(model(bodies).replace("</mujoco>", f"<equality>{laws}</equality></mujoco>"))
    a = report.joints["a"]
    assert builder.joint_mimic_joint[a] == report.joints["c"]
    assert builder.joint_mimic_coeffs[a] == (1.0 + 2.0 * 3.0, 8.0)


@pytest.mark.parametrize(
    ("equality", "statement"),
    [
        ('<distance geom1="geom_0" geom2="w"/>', "distance.*: equality_0"),
    ],
)
def test_equalities_that_are_only_data_are_named(equality, statement):
    with pytest.warns(MjcfWarning, match=statement):
        report = ModelBuilder().add_mjcf(model(TWO).replace("</mujoco>", f"<equality>{equality}</equality></mujoco>"))
    assert report.equalities[0].joint == -1 and report.equalities[0].attributes


@pytest.mark.parametrize(
    ("equality", "laws"),
    [
        ('<joint joint1="p" joint2="q" polycoef="0 1 2 0 0"/>', [("p", "q")]),
        ('<joint joint1="p"/>', [("p", "")]),
        ('<joint joint1="p" joint2="q"/><joint joint1="q" joint2="p"/>', [("p", "q")]),
        ('<joint joint1="p" joint2="q"/><joint joint1="p" joint2="q" polycoef="1"/>', [("p", "q")]),
    ],
)
def test_laws_between_joints_that_are_no_mimic_relations_are_polynomials(equality, laws):
    """The first of two laws for one joint is a mimic relation, and so is one of two joints that follow each other."""
    builder, report = tied(equality)
    model = builder.finalize(device="cpu")
    of = [report.joints.get(name, -1) for pair in laws for name in pair]
    rows = [getattr(model.mujoco, f"equality_constraint_joint{i}").numpy() for i in (1, 2)]
    np.testing.assert_array_equal(np.array(rows).T.ravel(), of)
    assert all(equality.joint >= 0 for equality in report.equalities)
    assert (builder.joint_mimic_joint.count(-1) < builder.joint_count) == (len(report.equalities) > 1)


def test_polynomials_are_those_of_mujoco_in_other_units(rng):
    """References and the scale are in the coefficients: with s the scale of lengths, s q1 = p(s q2) for sliding joints."""
    polynomial = rng.normal(size=5)
    for scale in (1.0, 2.5):
        builder, _ = tied(f'<joint joint1="p" joint2="q" polycoef="{" ".join(map(str, polynomial))}"/>', scale=scale)
        found = builder.finalize(device="cpu").mujoco.equality_constraint_polycoef.numpy()[0]
        peer = mujoco.MjModel.from_xml_string(
            model(TWO).replace("</mujoco>", '<equality><joint joint1="p" joint2="q"/></equality></mujoco>')
        )
        units = [scale if peer.joint(name).type[0] == mujoco.mjtJoint.mjJNT_SLIDE else 1.0 for name in "pq"]
        refs = [peer.qpos0[peer.joint(name).qposadr[0]] for name in "pq"]
        for q in rng.uniform(-1.0, 1.0, 5):
            wanted = refs[0] + np.polyval(polynomial[::-1], q - refs[1])
            np.testing.assert_allclose(np.polyval(found[::-1], units[1] * q), units[0] * wanted, rtol=1e-4, atol=1e-5)


def test_softness_of_equalities_is_kept_by_joint():
    builder, report = tied(
        '<connect body1="a" body2="b" anchor="0 0 0" solref=".1 .5"/><joint joint1="q" joint2="p" solimp=".5 .6 .2"/>'
    )
    rows = builder.finalize(device="cpu").mujoco
    np.testing.assert_array_equal(
        sorted(rows.equality_constraint_target.numpy()), sorted(e.joint for e in report.equalities)
    )
    of = {int(j): i for i, j in enumerate(rows.equality_constraint_target.numpy())}
    first, second = (of[e.joint] for e in report.equalities)
    np.testing.assert_allclose(rows.eq_solref.numpy()[[first, second]], [[0.1, 0.5], [0.02, 1.0]])
    np.testing.assert_allclose(rows.eq_solimp.numpy()[second], [0.5, 0.6, 0.2, 0.5, 2.0])
    assert rows.eq_rules.numpy().tolist() == [1, 1]


def test_equalities_can_be_left_as_data():
    builder, report = tied('<weld body1="a" body2="b"/><joint joint1="q" joint2="p"/>', skip_equality_constraints=True)
    assert builder.joint_count == 2 and builder.joint_mimic_joint == [-1, -1] and len(report.equalities) == 2


TENDONS = """<tendon>
<fixed name="f" stiffness="3" damping="2" frictionloss="1" armature=".5" range="-1 2" springlength="0 .4">
<joint joint="p" coef="2"/><joint joint="q" coef="-3"/></fixed>
<spatial name="s"><site site="x"/><geom geom="w" sidesite="y"/><site site="y"/><pulley divisor="2"/>
<site site="x"/><site site="y"/></spatial>
</tendon>"""


@pytest.mark.slow
def test_tendons_are_read():
    builder, report = load(model(TWO).replace("</mujoco>", f"{TENDONS}</mujoco>"))
    fixed, spatial = builder.tendons
    assert report.tendons == ["f", "s"] and (fixed.label, spatial.label) == ("m/f", "m/s")
    assert fixed.joints == ((report.joints["p"], 0, 2.0), (report.joints["q"], 0, -3.0)) and not fixed.is_spatial
    values = (fixed.stiffness, fixed.damping, fixed.friction, fixed.armature, fixed.limits, fixed.rest_length)
    assert values == (3.0, 2.0, 1.0, 0.5, (-1.0, 2.0), (0.0, 0.4))
    x, y = report.sites["x"], report.sites["y"]
    assert spatial.path == (
        ("site", x),
        ("geom", report.shapes["w"], y),
        ("site", y),
        ("pulley", 2.0),
        ("site", x),
        ("site", y),
    )
    built = builder.finalize(device="cpu")
    SolverFeatherstone(built, unsupported_contacts="ignore")
    built.tendons.clear()
    SolverFeatherstone(built, unsupported_contacts="ignore")


def test_tendons_are_copied_with_builders():
    builder, _ = load(model(TWO).replace("</mujoco>", f"{TENDONS}</mujoco>"))
    scene = ModelBuilder()
    scene.replicate(builder, 3, label_prefixes=["a", "b", "c"])
    assert len(scene.tendons) == 6 and [t.world for t in scene.tendons] == [0, 0, 1, 1, 2, 2]
    last = scene.tendons[4]
    assert last.label == "c/m/f"
    assert [scene.joint_label[j] for j, _, _ in last.joints] == ["c/m/p", "c/m/q"]
    assert [scene.shape_label[entry[1]] for entry in scene.tendons[5].path[:2]] == ["c/m/x", "c/m/w"]


def test_keyframes(rng):
    """A state of MuJoCo by name: the same poses of all bodies."""
    xml = model(
        f'<body name="f"><freejoint name="r"/>{BOX}</body><body name="c"><joint type="ball" name="k"/>{BOX}</body>'
        + TWO
    )
    mj = mujoco.MjModel.from_xml_string(xml)
    qpos = rng.normal(size=mj.nq)
    for at in (3, 7):
        qpos[at : at + 4] /= np.linalg.norm(qpos[at : at + 4])
    key = f'<keyframe><key/><key name="home" time="2" qpos="{text(qpos)}" ctrl=""/></keyframe>'
    peer = MjcfPeer(xml.replace("</mujoco>", f"{key}</mujoco>"), keyframe="home")
    peer.data.qpos[:] = qpos
    mujoco.mj_forward(peer.mj, peer.data)
    np.testing.assert_allclose(peer.builder.joint_q, peer.joint_q())
    home = peer.report.keyframes[1]
    assert (home.name, home.time, home.qpos) == ("home", 2.0, tuple(qpos))
    numbered, _ = load(xml.replace("</mujoco>", f"{key}</mujoco>"), keyframe=np.int64(1))
    assert numbered.joint_q == peer.builder.joint_q
    with pytest.raises(KeyError, match=r"keyframe.*'hom'.*'key_0'.*'home'"):
        load(xml.replace("</mujoco>", f"{key}</mujoco>"), keyframe="hom")


@pytest.mark.parametrize(("name", "count"), [("qpos", 3), ("qpos", 10), ("qvel", 2)])
def test_short_keyframes_are_filled_up_as_in_mujoco(rng, name, count):
    inside = (
        f'<body name="f" pos="1 2 3" euler="10 20 30"><freejoint/>{BOX}</body><body><joint type="ball"/>{BOX}</body>'
    )
    xml = model(inside + TWO)
    key = f'<keyframe><key {name}="{text(rng.uniform(0.5, 1.0, count))}"/></keyframe>'
    with pytest.warns(MjcfWarning, match=r"keyframe.*\(1\): key_0"):
        ours = ModelBuilder().add_mjcf(xml.replace("</mujoco>", f"{key}</mujoco>")).keyframes[0]
    theirs = mujoco.MjModel.from_xml_string(xml.replace("</mujoco>", f"{key}</mujoco>")).key(0)
    found, expected = np.array(getattr(ours, name)), getattr(theirs, name).copy()
    if name == "qpos":  # MuJoCo normalises quaternions when it reads them
        for part in (slice(3, 7), slice(7, 11)):
            found[part], expected[part] = (x[part] / np.linalg.norm(x[part]) for x in (found, expected))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_connects_have_no_forces_of_the_builders_defaults():
    builder = ModelBuilder()
    builder.default_joint_cfg = JointDofConfig(
        armature=0.3, damping=0.2, target_ke=5.0, target_kd=1.0, friction=0.1, stiffness=2.0
    )
    body = f'<body name="{{}}" pos="{{}} 0 0"><joint axis="0 1 0"/>{BOX}</body>'
    ends = '<equality><connect body1="a" body2="b" anchor=".5 0 0"/></equality>'
    builder.add_mjcf(model(body.format("a", 0) + body.format("b", 1), ends))
    loop = builder.joint_qd_start[2]
    for name in ("armature", "damping", "target_ke", "target_kd", "friction", "stiffness"):
        assert getattr(builder, f"joint_{name}")[loop : loop + 3] == [0.0] * 3
        assert getattr(builder, f"joint_{name}")[0] > 0.0


def test_default_rest_lengths_of_tendons_are_those_where_the_springs_of_the_joints_rest(rng):
    """MuJoCo's ``tendon_lengthspring``: fixed, straight and wrapping tendons, in a tree with several joints of a body and a merged body."""

    def joint(name, kind):
        numbers = {"ref": rng.uniform(-0.3, 0.3), "springref": rng.uniform(-0.5, 0.5)}
        if kind == "hinge":
            numbers = {key: np.degrees(value) for key, value in numbers.items()}
        shown = " ".join(f'{key}="{value}"' for key, value in numbers.items())
        pos, axis = text(rng.uniform(-0.2, 0.2, 3)), text(rng.normal(size=3))
        return f'<joint name="{name}" type="{kind}" pos="{pos}" axis="{axis}" {shown}/>'

    def place():
        return f'pos="{text(rng.uniform(-0.5, 0.5, 3))}" euler="{text(rng.uniform(-90, 90, 3))}"'

    xml = model(
        f'<site name="w" pos="1 .2 0"/><body name="a" {place()}>{joint("s", "slide")}{joint("p", "slide")}{joint("q", "hinge")}{BOX}'
        f'<geom name="c" type="cylinder" size=".15 .1"/><body name="m" {place()}>{BOX}<body {place()}>{joint("r", "hinge")}{BOX}'
        f'<body name="e" {place()}>{BOX}<site name="x" pos="-1 .1 0"/></body></body></body></body>',
        '<tendon><fixed name="f" stiffness="3"><joint joint="q" coef="2"/><joint joint="r" coef="-.4"/></fixed>'
        '<spatial name="t" stiffness="9"><site site="w"/><site site="x"/></spatial>'
        '<spatial name="u" stiffness="9"><site site="w"/><geom geom="c"/><site site="x"/></spatial>'
        "</tendon>",
    )
    expected = mujoco.MjModel.from_xml_string(xml)
    assert np.abs(expected.tendon_lengthspring[:, 0] - expected.tendon_length0).min() > 1e-3
    for options, factors in (
        ({"scale": 2.0}, [1.0, 2.0, 2.0]),
        ({"collapse_fixed_joints": True}, 1.0),
        ({"xform": (1.0, 2.0, 3.0, 0.6, 0.0, 0.0, 0.8)}, 1.0),
    ):
        builder, _ = load(xml, **options)
        rest = tendon_numbers(builder)["rest_lower"]
        np.testing.assert_allclose(rest, factors * expected.tendon_lengthspring[:, 0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("margin", "names"), [("0.24", []), ("0.26", ["j", "t"])])
def test_margins_over_the_middle_of_a_range_are_remarked(margin, names):
    """MuJoCo then has a row for each limit; here, there is one for the nearer one."""
    xml = model(
        f'<body><joint name="j" type="slide" range="-.2 .3" margin="{margin}"/>{BOX}</body>',
        f'<tendon><fixed name="t" range="-.2 .3" margin="{margin}"><joint joint="j" coef="1"/></fixed></tendon>',
    )
    peer = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(peer)
    data.qpos[:] = 0.05
    mujoco.mj_forward(peer, data)
    assert data.nefc == 2 * len(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MjcfWarning)
        report = ModelBuilder().add_mjcf(xml)
    assert remarked(report, "margins", "nearer limit") == names
