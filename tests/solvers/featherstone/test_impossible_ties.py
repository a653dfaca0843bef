"""Rigid ties of tendons that no coordinates satisfy are named, and steps with them stay bounded."""

import re
import warnings

import numpy as np
import pytest

from newton_like import JointType, ModelBuilder, dynamics
from newton_like.dynamics.coordinates.configuration import rand_configuration
from newton_like.dynamics.tendons import tendons_of
from newton_like.model.singular import ModelArrays
from newton_like.solvers import SolverFeatherstone
from newton_like.solvers.featherstone.contradictions import _Errors
from newton_like.solvers.featherstone.loop_rows import solver_rows
from newton_like.solvers.featherstone.path_lengths import PathLengths
from tests.support.simulate import Simulation
from tests.support.tendons import chain

REACH = 0.2, 0.3
"""Distance of the pivot from the end of the tendon in the world, and length of the bar: lengths are between 0.1 and 0.5."""

BAR = """<mujoco><worldbody><site name="w" pos="0 0 1.2"/><body name="a" pos="0 0 1"><joint name="j" axis="0 1 0" {}/>
<geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/><site name="s" pos=".3 0 0"/><body name="b" pos=".3 0 0">
<joint name="k" axis="0 1 0"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/><site name="e" pos=".3 0 0"/></body></body></worldbody>
<tendon><spatial name="t"><site site="w"/><site site="s"/></spatial><spatial name="u"><site site="w"/><site site="e"/></spatial>
<fixed name="f"><joint joint="j" coef="1"/></fixed></tendon><equality>{}</equality></mujoco>"""
START = float(np.hypot(*REACH))
"""Length of tendon t at the start."""


def bar(equality: str, joint: str = "") -> ModelBuilder:
    builder = ModelBuilder()
    builder.add_mjcf(BAR.format(joint, equality))
    return builder


def tied(tendon: str, length: float, more: str = "") -> str:
    """A tendon whose length is to differ so much from that at the start."""
    return f'<tendon tendon1="{tendon}" {more} polycoef="{length} 0 0 0 0"/>'


def told(model, **options) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SolverFeatherstone(model, evaluator="general", **options)
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(
    ("equality", "names"),
    [
        (tied("t", 0.2), ["the tie of tendon 'mujoco/t' (index 0) by 0.061"]),
        (tied("t", -0.3), ["the tie of tendon 'mujoco/t' (index 0) by 0.039"]),
        (tied("u", 0.6), ["the tie of tendon 'mujoco/u'"]),
        (tied("t", 0.1) + tied("f", -1.0), ["the tie of tendon 'mujoco/t'", "the tie of tendon 'mujoco/f'"]),
        (
            tied("t", 0.1) + '<connect name="held" body1="a" anchor=".3 0 0"/>',
            ["tendon 'mujoco/t'", "loop joint 'mujoco/held'"],
        ),
        (
            '<tendon tendon1="t" tendon2="f" polycoef=".3 0 1 0 0"/>',
            ["the tie of tendon 'mujoco/t'"],
        ),
        (tied("t", 0.13) + '<joint joint1="j" polycoef="-1"/>', ["the tie of tendon 'mujoco/t'", "joint 'mujoco/j'"]),
    ],
    ids=["long", "short", "two bars", "two tendons", "connect", "leader", "joint"],
)
@pytest.mark.slow
def test_ties_that_no_coordinates_satisfy_are_refused_with_their_gaps(equality, names):
    model = bar(equality).finalize("cpu")
    with pytest.raises(ValueError, match=r"no coordinates satisfy all rigid constraints") as caught:
        SolverFeatherstone(model, evaluator="general")
    assert all(name in str(caught.value) for name in names)
    (text,) = told(model, unsatisfied_constraints="warn")
    assert all(name in text for name in names)


def test_ties_that_can_hold_are_not_named(rng):
    lowest, highest = REACH[1] - REACH[0] - START, sum(REACH) - START
    assert not told(bar(tied("t", rng.uniform(lowest + 0.001, highest - 0.001))).finalize("cpu"))
    assert not told(
        bar(f'<tendon tendon1="t" tendon2="f" polycoef="0 {rng.uniform(-0.3, 0.3)} 0 0 0"/>').finalize("cpu")
    )
    assert not told(bar(tied("t", 0.3, 'solref=".02 1"')).finalize("cpu"))


def test_a_tie_that_holds_a_joint_beyond_its_limits_is_a_warning():
    (text,) = told(bar(tied("t", 0.1), 'range="-10 10"').finalize("cpu"))
    assert "within the limits" in text
    assert "the limits of joint 'mujoco/j' (index 0)" in text
    assert "the tie of tendon 'mujoco/t' (index 0)" in text
    assert not told(bar(tied("t", 0.1), 'range="-10 50"').finalize("cpu"))


@pytest.mark.slow
def test_a_tie_out_of_reach_leads_to_the_nearest_pose(rng):
    """The bar and the pivot of the tendon are in line: at pi / 2 for a longest length, at -pi / 2 for a shortest one."""
    for length, best in ((rng.uniform(0.15, 1.0), np.pi / 2), (rng.uniform(-0.35, -0.28), -np.pi / 2)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sim = Simulation(bar(tied("t", length), 'damping=".02"'), unsatisfied_constraints="warn")
        speeds = sim.run(2.0, lambda sim=sim: abs(sim.qd[0, 0]))
        assert np.isfinite(speeds).all()
        assert speeds.max() < 40.0
        assert abs(sim.q[0, 0] - best) < 0.05


@pytest.mark.slow
def test_a_distance_out_of_reach_stays_bounded():
    """A bar that hangs on a rod of constant length, which is too long."""
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, com=(0.15, 0, 0), inertia=0.01 * np.eye(3))
    builder.add_articulation([builder.add_joint_revolute(-1, link, axis=(0, 1, 0))])
    builder.add_joint_distance(
        -1, link, parent_xform=(0, 0, 0.2, 0, 0, 0, 1), child_xform=(0.3, 0, 0, 0, 0, 0, 1), min_distance=0.6, max_distance=0.6
    )  # fmt: skip
    with pytest.raises(ValueError, match="DISTANCE loop joint"):
        SolverFeatherstone(builder.finalize("cpu"), evaluator="general")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = Simulation(builder, unsatisfied_constraints="warn")
    speeds = sim.run(2.0, lambda: abs(sim.qd[0, 0]))
    assert np.isfinite(speeds).all()
    assert speeds.max() < 100.0


def test_a_tie_out_of_reach_has_the_same_bits_in_every_block():
    """What a step notes of a tie that it cannot close does not reach the next block of the same memory. Three blocks are one launch on one
    thread."""
    scene = ModelBuilder()
    scene.replicate(bar(tied("u", 0.6)), 24)
    model = scene.finalize("cpu")
    state = model.state()
    # the bars hang almost straight down, where hardly any motion makes the tendon longer, and turn
    state.joint_q.assign(np.tile([np.pi / 2 + 0.1, 0.2], 24).astype(np.float32))
    state.joint_qd.assign(np.tile([3.0, -4.0], 24).astype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solver = SolverFeatherstone(model, evaluator="general", unsatisfied_constraints="warn", threads=1)
    for _ in range(3):
        solver.step(state, state, None, None, 0.004)
    q = state.joint_q.numpy().reshape(24, -1)
    assert np.isfinite(q).all()
    np.testing.assert_array_equal(q, np.tile(q[:1], (24, 1)))


def test_assemble_closes_ties_or_refuses_them(rng):
    change = rng.uniform(-0.1, 0.1)
    model = bar(tied("t", change) + tied("u", change)).finalize("cpu")
    state = model.state()
    dynamics.assemble(model, state)
    lengths = dynamics.tendon_lengths(model, state).numpy()[0]
    np.testing.assert_allclose(lengths[0] - START, change, atol=2.0e-5)
    np.testing.assert_allclose(lengths[1] - np.hypot(0.2, 0.6), change, atol=2.0e-5)
    model = bar(tied("t", 0.2)).finalize("cpu")
    state = model.state()
    with pytest.raises(ValueError, match=re.escape("the tie of tendon 'mujoco/t' (index 0) stays open by 0.0606")):
        dynamics.assemble(model, state)
    np.testing.assert_array_equal(state.joint_q.numpy(), model.joint_q.numpy())


def test_lengths_of_the_search_are_those_of_the_dynamics_library(rng):
    """Also around shapes."""
    builder = ModelBuilder()
    tie = '<equality><tendon tendon1="t0" polycoef="0 0 0 0 0"/></equality></mujoco>'
    builder.add_mjcf(chain(rng).replace("</mujoco>", tie))
    model = builder.finalize("cpu")
    assert JointType.FREE not in model.joint_type.numpy()
    q = rand_configuration(model, rng).numpy()
    state = model.state()
    state.joint_q.assign(q.ravel())
    want = dynamics.tendon_lengths(model, state).numpy()[0]
    paths = PathLengths(model, tendons_of(model), 0, range(model.tendon_count))
    rows = solver_rows(model)
    error = _Errors(model, ModelArrays(model), rows, 0, np.flatnonzero(rows.rows[0, 0] != 0), None)
    tree = error.tree.one(0)
    tree.grounded = True
    turns, places, _, _ = tree.kinematics(q.astype(np.float64))
    turns, places = np.stack([*turns, np.eye(3)[None]], axis=1), np.stack([*places, np.zeros((1, 3))], axis=1)
    np.testing.assert_allclose(paths(q.astype(np.float64), turns, places)[0], want, atol=2.0e-5)
