"""Tendons, loop joints and equality constraints in USD stages: what is written comes back, and others' stages are read."""

import warnings

import numpy as np
import pytest

pytest.importorskip("pxr")
import warp as wp
from pxr import Usd

from newton_like import JointType, ModelBuilder
from newton_like.importers.xml_source import ImportFileError
from newton_like.model.mujoco.equality_settings import equalities_of
from newton_like.model.tendons import ARRAYS, Tendon
from newton_like.solvers import SolverFeatherstone
from newton_like.usd import write
from tests.support.loops import add_loop
from tests.support.random_trees import random_tree
from tests.support.tendons import chain
from tests.support.usd_models import colliding_pairs, differences, randomize_dofs

pytestmark = pytest.mark.filterwarnings("ignore:.*target gains are set, but target_mode is NONE")


def read(path, remarks: str = "error"):
    """The model of a file, without remarks but where they are ignored."""
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter(remarks)
        report = builder.add_usd(str(path))
    assert report.not_understood == {}
    return builder.finalize("cpu")


def chance(rng, value):
    """The value, or None."""
    return value if rng.random() < 0.6 else None


def random_numbers(rng) -> dict:
    """Random parameters of a tendon."""
    names = (
        "stiffness",
        "damping",
        "friction",
        "offset",
        "target_ke",
        "target_kd",
        "force",
        "target_q",
        "target_qd",
        "margin",
    )
    low, high = np.sort(rng.normal(size=2)).tolist()
    return {
        **{name: float(rng.choice([0.0, rng.uniform(0.1, 9.0)])) for name in names},
        "rest_length": (chance(rng, (low, high)) if rng.random() < 0.9 else (-1.0, -1.0)),
        "limits": chance(rng, (low - 1.0, high)),
        "effort": chance(rng, (low, high)),
        "effort_limit": chance(rng, 3.0 + low**2),
        "solref_limit": (float(rng.uniform(0.01, 0.1)), 1.0),
        "solimp_limit": (0.8, 0.9, float(rng.uniform(0.001, 0.1)), 0.4, 3.0),
    }


@pytest.mark.slow
def test_tendons_come_back(rng, tmp_path):
    one = ModelBuilder()
    one.add_mjcf(chain(rng))
    for i, tendon in enumerate(list(one.tendons)):
        one.add_tendon(Tendon(label=f"own/{i}", joints=tendon.joints, path=tendon.path, **random_numbers(rng)))
    scene = ModelBuilder()
    scene.replicate(one, 3)
    model = scene.finalize("cpu")
    assert write(model, tmp_path / "a.usda").copies == 2
    other = read(tmp_path / "a.usda")
    assert differences(model, other, ignore=("body_q",)) == {}
    assert [(t.label, t.world, t.joints, t.path) for t in other.tendons] == [
        (t.label, t.world, t.joints, t.path) for t in model.tendons
    ]
    for mine, theirs in zip(model.tendons, other.tendons, strict=True):
        for name in ("effort", "solref_limit", "solimp_limit", "margin"):
            assert getattr(mine, name) == getattr(theirs, name)
    for name in ARRAYS:
        mine, theirs = (getattr(m, f"tendon_{name}").numpy() for m in (model, other))
        np.testing.assert_array_equal(theirs, mine, err_msg=name)


@pytest.mark.slow
def test_worlds_with_other_tendons_are_written_in_full(rng, tmp_path):
    one = ModelBuilder()
    one.add_mjcf(chain(rng))
    scene = ModelBuilder()
    scene.replicate(one, 3)
    model = scene.finalize("cpu")
    stiffness = rng.uniform(1.0, 2.0, len(model.tendons)).astype(np.float32)
    model.tendon_stiffness = stiffness
    assert write(model, tmp_path / "a.usda").copies == 0
    np.testing.assert_array_equal(read(tmp_path / "a.usda").tendon_stiffness.numpy(), stiffness)


def test_loop_joints_come_back_with_limits_drives_and_friction(rng, tmp_path):
    tree = random_tree(rng, joints=8, floating=bool(rng.integers(2)))
    for kind in (JointType.REVOLUTE, JointType.PRISMATIC, JointType.BALL, JointType.FIXED):
        child = int(rng.integers(1, 8))
        add_loop(tree, rng, kind, int(rng.integers(-1, child)), child)
    tree.add_joint_distance(0, 5, min_distance=0.1, max_distance=0.7, label="rope")
    randomize_dofs(rng, tree)
    model = tree.finalize("cpu")
    write(model, tmp_path / "a.usda")
    # the loops are open, and their coordinates follow from the poses of bodies
    other = read(tmp_path / "a.usda", remarks="ignore")
    assert differences(model, other, ignore=("body_q", "body_qd", "joint_q", "joint_qd")) == {}


def test_equality_constraints_come_back(rng, tmp_path):
    c, d = (" ".join(map(str, rng.normal(size=5))) for _ in range(2))
    bodies = "".join(
        f'<body name="b{k}" pos=".3 0 0"><joint name="j{k}" axis="0 1 0" type="{"slide" if k == 2 else "hinge"}"/>'
        '<geom size=".05" contype="0" conaffinity="0"/>'
        for k in range(6)
    )
    builder = ModelBuilder()
    builder.add_mjcf(
        f"<mujoco><worldbody>{bodies}{'</body>' * 6}</worldbody><equality>"
        f'<joint joint1="j0" joint2="j2" polycoef="{c}" solref=".03 .9"/><joint joint1="j1" polycoef=".2"/>'
        '<joint joint1="j3" joint2="j4" polycoef=".1 2 0 0 0" solimp=".7 .8 .01"/><joint joint1="j5" joint2="j4"/>'
        '<connect body1="b5" anchor=".1 0 0" solref="-300 -20"/><weld body1="b2" body2="b4" solref=".05 1" torquescale="3"/>'
        '<weld body1="b1" body2="b5"/>'
        f'<joint joint1="j0" joint2="j1" polycoef="{d}"/><joint joint1="j3" joint2="j1" polycoef="{d}" solref="-90 -7"/>'
        '<joint joint1="j3" polycoef=".3"/>'
        "</equality></mujoco>"
    )
    # a second softness of a loop joint, and rows that are not enabled
    hinges = builder.joint_label.index("mujoco/j2"), builder.joint_label.index("mujoco/j4")
    loop = builder.joint_articulation.index(-1)
    rows = [
        {
            "equality_constraint_target": loop,
            "eq_rules": 1,
            "eq_solref": (0.07, 2.0),
            "equality_constraint_enabled": 0,
            "equality_constraint_torquescale": 0.7,
        },
        {
            "equality_constraint_joint1": hinges[0],
            "equality_constraint_joint2": hinges[1],
            "equality_constraint_enabled": 0,
        },
    ]
    builder.add_custom_values_batch([{f"mujoco:{name}": value for name, value in row.items()} for row in rows])
    scene = ModelBuilder()
    scene.replicate(builder, 2)
    model = scene.finalize("cpu")
    assert write(model, tmp_path / "a.usda").copies == 1
    other = read(tmp_path / "a.usda")
    assert differences(model, other, ignore=("body_q",)) == {}
    found = [equalities_of(m, every=True) for m in (model, other)]

    def rows(table):
        names = (
            "world",
            "target",
            "joint1",
            "joint2",
            "enabled",
            "rules",
            "polycoef",
            "solref",
            "solimp",
            "torquescale",
        )
        return sorted(
            [number for name in names for number in np.ravel(table[name][i]).tolist()]
            for i in range(len(table["target"]))
        )

    assert rows(found[1]) == rows(found[0])


STAGE = """#usda 1.0
(
    upAxis = "Z"
    metersPerUnit = 1
)
def Xform "R" (prepend apiSchemas = ["PhysicsArticulationRootAPI"])
{
    def Xform "A" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {
        float physics:mass = 1
        float3 physics:diagonalInertia = (0.1, 0.1, 0.1)
        def Sphere "s0" (prepend apiSchemas = ["MjcSiteAPI"])
        {
        }
        def Sphere "side" (prepend apiSchemas = ["MjcSiteAPI"])
        {
        }
        def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {
        }
        def Cube "box" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {
        }
    }
    def Xform "B" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {
        float physics:mass = 1
        float3 physics:diagonalInertia = (0.1, 0.1, 0.1)
        def Sphere "s1" (prepend apiSchemas = ["MjcSiteAPI"])
        {
        }
    }
    def PhysicsFixedJoint "root"
    {
        rel physics:body1 = </R/A>
    }
    def PhysicsRevoluteJoint "hinge"
    {
        rel physics:body0 = </R/A>
        rel physics:body1 = </R/B>
    }
    def MjcTendon "t"
    {
        %s
    }
}
"""
PATH = "rel mjc:path = [</R/B/s1>, </R/A/ball>, </R/A/s0>]\n"


def imported(lines: str, **options) -> ModelBuilder:
    stage = Usd.Stage.CreateInMemory()
    assert stage.GetRootLayer().ImportFromString((STAGE % lines).replace("; ", "\n"))
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder.add_usd(stage, **options)
    return builder


def test_paths_of_other_tools_are_read():
    """Repeated targets, a side site, a pulley within the path, and one before it."""
    builder = imported(
        PATH
        + "int[] mjc:path:indices = [2, 1, 0, 2, 0]; int[] mjc:path:segments = [0, 0, 0, 1, 1]; double[] mjc:path:divisors = [3, 2]; "
        "rel mjc:sideSites = </R/A/side>; int[] mjc:sideSites:indices = [-1, 0, -1, -1, -1]; double mjc:stiffness = 7; "
        "double mjc:range:max = 0.5; double[] mjc:springlength = [0.2]"
    )
    (tendon,) = builder.tendons
    a, ball, b, side = (builder.shape_label.index(f"/R/{name}") for name in ("A/s0", "A/ball", "B/s1", "A/side"))
    assert tendon.path == (
        ("pulley", 3.0), ("site", a), ("geom", ball, side), ("site", b), ("pulley", 2.0), ("site", a), ("site", b),
    )  # fmt: skip
    assert (tendon.stiffness, tendon.limits, tendon.rest_length) == (7.0, (0.0, 0.5), (0.2, 0.2))


def test_fixed_tendons_of_other_tools_are_read():
    builder = imported('token mjc:type = "fixed"; rel mjc:path = </R/hinge>; double[] mjc:path:coef = [-0.5]')
    assert builder.tendons[0].joints == ((builder.joint_label.index("/R/hinge"), 0, -0.5),)


@pytest.mark.parametrize("options", [dict(load_sites=False), dict(ignore_paths=["/R/A/ball"])])
def test_tendons_through_what_is_not_loaded_are_left_out(options):
    assert not imported(PATH, **options).tendons


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("", "mjc:path"),
        ('token mjc:type = "fixed"', "joints"),
        ('token mjc:type = "bent"', "'bent'"),
        ("rel mjc:path = [</R/A/s0>, </R/no>]", "</R/no>"),
        ('token mjc:type = "fixed"; rel mjc:path = </R/no>', "</R/no>"),
        (PATH + "int[] mjc:path:indices = [0, 3]", r"mjc:path:indices .*\[0.0, 3.0\].*\b2\b"),
        (PATH + "int[] mjc:path:segments = [0]", r"mjc:path:segments .*\b3\b"),
        (PATH + "int[] mjc:path:segments = [1, 0, 0]; double[] mjc:path:divisors = [1, 2]", "mjc:path:segments"),
        (PATH + "double[] mjc:path:divisors = [0]", "mjc:path:divisors"),
        (PATH + "rel mjc:sideSites = </R/A/side>; int[] mjc:sideSites:indices = [0]", r"mjc:sideSites:indices .*\b3\b"),
        ("rel mjc:path = [</R/A/s0>, </R/A/box>, </R/B/s1>]", "</R/A/box>"),
        ("rel mjc:path = [</R/A/s0>, </R/A/ball>]", "sites"),
        ("rel mjc:path = </R/A/s0>", "site"),
        (PATH + "double mjc:stiffness = -1", r"mjc:stiffness -1\b"),
        (PATH + "double mjc:range:min = 2; double mjc:range:max = 1", "mjc:range:min|mjc:range:max"),
        ('token mjc:type = "fixed"; rel mjc:path = </R/hinge>; double[] mjc:path:coef = [1, 2]', r"mjc:path:coef .*\b1\b"),
    ],
)  # fmt: skip
def test_bad_tendons_are_refused_with_their_prim(lines, told):
    with pytest.raises(ImportFileError, match=f"</R/t>: .*{told}"):
        imported(lines)


def test_a_softness_that_is_none_is_ignored_with_a_remark():
    """As in MuJoCo, and as for joints of such a stage."""
    stage = Usd.Stage.CreateInMemory()
    stage.GetRootLayer().ImportFromString(STAGE % (PATH + "double[] mjc:solreflimit = [0, 1]").replace("; ", "\n"))
    builder = ModelBuilder()
    with pytest.warns(UserWarning, match="mjc:solreflimit has a 0 or two signs"):
        builder.add_usd(stage)
    assert builder.tendons[0].solref_limit == Tendon(label="t").solref_limit


GEOM = '<geom type="capsule" size=".02" fromto="0 0 0 .2 0 0" contype="1" conaffinity="0"/>'
TREES = f"""<mujoco><worldbody>
<body name="a" pos="0 0 1"><joint name="ja" axis="0 1 0"/>{GEOM}<site name="sa" pos=".2 0 0"/></body>
<body name="b" pos="0.5 0 1"><joint name="jb" axis="0 1 0"/>{GEOM}
<body name="c" pos=".2 0 0"><joint name="jc" axis="0 1 0"/>{GEOM}<site name="sc" pos=".2 0 0"/></body></body>
<body name="m" {{}} pos="0 0 2">{GEOM}</body><body name="f" pos="0 0 2"><freejoint/>{GEOM}</body>
</worldbody>{{}}</mujoco>"""


@pytest.mark.parametrize(
    ("root", "couple"),
    [
        ("", '<equality><connect body1="a" body2="c" anchor=".2 0 0"/></equality>'),
        ("", '<equality><joint joint1="ja" joint2="jb" polycoef="0 1 .2 0 0"/></equality>'),
        ("", '<equality><joint joint1="ja" joint2="jb" polycoef="0 1 0 0 0"/></equality>'),
        pytest.param(
            "",
            '<tendon><spatial name="t" stiffness="9" springlength=".3"><site site="sa"/><site site="sc"/></spatial></tendon>',
            marks=pytest.mark.slow,
        ),
        ('mocap="true"', '<equality><weld body1="m" body2="f"/></equality>'),
    ],
)
def test_trees_that_constraints_couple_stay_one_articulation(tmp_path, root, couple):
    """Importers of MJCF put coupled trees into one articulation, which a stage keeps."""
    builder = ModelBuilder()
    builder.add_mjcf(TREES.format(root, couple))
    model = builder.finalize("cpu", dtype=wp.float64)
    path = tmp_path / "trees.usda"
    write(model, str(path))
    again = ModelBuilder()
    again.add_usd(str(path))
    read = again.finalize("cpu", dtype=wp.float64)
    for name in ("articulation_label", "joint_label", "body_label"):
        assert getattr(read, name) == getattr(model, name)
    assert colliding_pairs(read) == colliding_pairs(model)
    np.testing.assert_array_equal(read.joint_articulation.numpy(), model.joint_articulation.numpy())
    found = []
    for each in (model, read):
        state, solver = each.state(), SolverFeatherstone(each, evaluator="general")
        for _ in range(50):
            solver.step(state, state, None, None, 0.002)
        found.append(state.joint_q.numpy())
    # frames of a stage are in single precision
    np.testing.assert_allclose(*found, atol=1e-6)
