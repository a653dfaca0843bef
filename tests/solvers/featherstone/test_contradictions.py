"""Constraints that no coordinates satisfy together are named with their errors, and others are not."""

import re
import warnings

import numpy as np
import pytest

from newton_like import JointType, ModelBuilder, dynamics
from newton_like.solvers import SolverFeatherstone
from tests.support.loops import closed, four_bar, loop_coordinates

GEOM = '<geom type="capsule" size=".03" fromto="0 0 0 .4 0 0" mass="1" contype="0" conaffinity="0"/>'
ENDS = "body1='B2' body2='B0'"


def arm(equalities: str):
    """Three bars on hinges, with equalities."""
    bodies = "".join(
        f'<body name="B{k}" pos="{0.4 * (k > 0)} 0 0"><joint name="j{k}" axis="0 1 0"/>{GEOM}' for k in range(3)
    )
    builder = ModelBuilder()
    builder.add_mjcf(
        f"<mujoco><worldbody>{bodies}{'</body>' * 3}</worldbody><equality>{equalities}</equality></mujoco>"
    )
    return builder.finalize("cpu")


def told(model) -> list[str]:
    """Warnings about contradictions. What is said of these is an error unless warnings are asked for."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SolverFeatherstone(model, evaluator="general", unsatisfied_constraints="warn")
    found = [str(w.message) for w in caught if "contradict" in str(w.message)]
    if found:
        what = re.search(r"these stay open.*dynamics.assemble", found[0]).group()
        with pytest.raises(ValueError, match=re.escape(what)):
            SolverFeatherstone(model, evaluator="general")
    else:
        SolverFeatherstone(model, evaluator="general")
    return found


@pytest.mark.slow
def test_relations_that_contradict_each_other_are_named_with_half_of_their_difference(rng):
    """Of least squares, two values of one coordinate are each missed by half of their difference."""
    a, b = rng.uniform(-1.0, 1.0, 2)
    model = arm(
        f'<joint joint1="j1" polycoef="{a}"/><joint joint1="j1" polycoef="{b}"/><joint joint1="j2" joint2="j0"/>'
    )
    (text,) = told(model)
    sizes = [float(x) for x in re.findall(r"by (\d[\d.]*\d)", text)]
    assert len(sizes) == 2
    np.testing.assert_allclose(sizes, abs(a - b) / 2.0, rtol=0.06)
    assert "'mujoco/j1' (index 1)" in text
    assert "j2" not in text
    state = model.state()
    before = state.joint_q.numpy()
    with pytest.raises(ValueError, match=r"joint 'mujoco/j1' \(index 1\).*open"):
        dynamics.assemble(model, state)
    np.testing.assert_array_equal(state.joint_q.numpy(), before)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("equalities", "names"),
    [
        (f"<weld name='u' {ENDS} relpose='.3 0 .1 1 0 0 0'/><weld name='v' {ENDS} relpose='.3 0 .2 1 0 0 0'/>", "uv"),
        ('<joint joint1="j0" joint2="j1" polycoef=".1 1 0 0 0"/><joint joint1="j1" joint2="j0"/>', ("j0", "j1")),
        ('<joint joint1="j0" joint2="j1" polycoef="1 0 1 0 0"/><joint joint1="j0" polycoef=".2"/>', ("j0",)),
        ('<connect name="far" body1="B2" anchor="9 0 0"/><weld name="held" body1="B0"/>', ()),
    ],
    ids=["welds", "circle", "no root", "closed at the start"],
)  # fmt: skip
def test_contradictions_of_all_kinds_are_found(equalities, names):
    found = told(arm(equalities))
    assert len(found) == bool(names)
    assert all(f"mujoco/{name}'" in found[0] for name in names)


def test_soft_constraints_and_those_that_agree_are_not_named(rng):
    a, b = rng.uniform(-1.0, 1.0, 2)
    assert not told(arm(f'<joint joint1="j0" polycoef="{a}" solref=".02 1"/><joint joint1="j0" polycoef="{b}"/>'))
    c = rng.uniform(0.5, 2.0)
    twice = f'<joint joint1="j0" joint2="j1" polycoef="{a} {c} 0 0 0"/>'
    assert not told(arm(twice + twice + f'<joint joint1="j1" polycoef="{b}"/>'))


def test_loops_that_can_close_are_not_named(rng):
    """From coordinates at which they are open."""
    floating = bool(rng.integers(2))
    base = -1 if not floating else 0
    tree, q = closed(rng, [(JointType.BALL, base, 4), (JointType.REVOLUTE, 1, 6)], joints=7, floating=floating)
    model = tree.finalize("cpu")
    model.joint_q.assign(loop_coordinates(model, q + rng.uniform(-0.02, 0.02, len(q))))
    assert not told(model)
    assert not told(four_bar(rng)[0].finalize("cpu"))


def test_an_assembled_state_satisfies_polynomials_and_mimic_joints(rng):
    c = rng.uniform(-0.4, 0.4, 5)
    model = arm(
        f'<joint joint1="j0" joint2="j2" polycoef="{" ".join(map(str, c))}"/><joint joint1="j1" joint2="j2" polycoef=".1 -1 0 0 0"/>'
    )
    state = model.state()
    state.joint_q.assign(rng.uniform(-0.5, 0.5, 3))
    held = state.joint_q.numpy()[2]
    dynamics.assemble(model, state, fixed=["j2"], tolerance=1e-6)
    q = state.joint_q.numpy()
    assert q[2] == held
    np.testing.assert_allclose(q[:2], [np.polyval(c[::-1], held), 0.1 - held], atol=2e-6)


def test_functions_of_loop_joints_refuse_polynomials_by_name(rng):
    model = arm('<joint joint1="j0" joint2="j1" polycoef="0 0 1 0 0"/><connect body1="B2" anchor=".4 0 0"/>')
    state = model.state()
    for function in (dynamics.constraint_jacobian, dynamics.constraint_bias, dynamics.constrained_dynamics):
        with pytest.raises(ValueError, match=r"joint 'mujoco/j0' \(index 0\).*polynomial"):
            function(model, state)


FIXED = """<mujoco><worldbody><body><joint name="a" axis="0 1 0" range="-30 30"/><geom size=".02" pos=".1 0 0"/></body></worldbody>
<tendon><fixed name="t" range="{}" limited="true"><joint joint="a" coef="1"/></fixed></tendon><equality>{}</equality></mujoco>"""


@pytest.mark.parametrize(
    ("limits", "equality", "told"),
    [
        (
            "-5 5",
            '<tendon tendon1="t" polycoef="0 0 0 0 0"/><tendon tendon1="t" polycoef=".4 0 0 0 0"/>',
            "/t'.*lengths 0 and 0.4",
        ),
        ("-.1 .1", '<tendon tendon1="t" polycoef=".3 0 0 0 0"/>', "/t'.*beyond its limits -0.1 and 0.1"),
        (
            "-5 5",
            '<joint joint1="a" polycoef="2 0 0 0 0"/>',
            "/a'.*held at 2, beyond its limits -0.524 and 0.524",
        ),
        ("-5 5", '<joint joint1="a" polycoef=".4 0 0 0 0"/><tendon tendon1="t" polycoef=".4 0 0 0 0"/>', None),
    ],
)
def test_values_that_joints_and_tendons_cannot_have_are_named(limits, equality, told):
    builder = ModelBuilder()
    builder.add_mjcf(FIXED.format(limits, equality))
    model = builder.finalize("cpu")
    if told is None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            SolverFeatherstone(model, evaluator="general")
        return
    with pytest.warns(UserWarning, match=told):
        SolverFeatherstone(model, evaluator="general", unsatisfied_constraints="warn")
    if "lengths" in told:
        with pytest.raises(ValueError, match=rf"{told}.*unsatisfied_constraints='warn'"):
            SolverFeatherstone(model, evaluator="general")


def test_small_gaps_and_other_choices(rng):
    """Below 1 cm there is a warning, as files with rounded numbers have such gaps."""
    a, gap = rng.uniform(-1.0, 1.0), rng.uniform(5.0e-4, 1.5e-2)
    model = arm(f'<joint joint1="j1" polycoef="{a}"/><joint joint1="j1" polycoef="{a + gap}"/>')
    with pytest.warns(UserWarning, match="stay open"):
        SolverFeatherstone(model, evaluator="general")
    with pytest.raises(ValueError, match="unsatisfied_constraints 'ignore' must be 'error' or 'warn'"):
        SolverFeatherstone(model, unsatisfied_constraints="ignore")


@pytest.mark.slow
def test_loops_that_can_close_are_never_refused(rng):
    """Closed trees that start anywhere: a search may end at a local minimum, which is no proof."""
    for _ in range(5):
        tree, q = closed(rng, [(JointType.BALL, -1, 4), (JointType.REVOLUTE, 1, 6)], joints=7, floating=False)
        model = tree.finalize("cpu")
        model.joint_q.assign(loop_coordinates(model, q + rng.uniform(-3.0, 3.0, len(q))))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            SolverFeatherstone(model, evaluator="general")
