"""Equalities that are inactive in a file are off, and can be switched on and off by world."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, ModelFlags, usd
from newton_like.solvers import SolverFeatherstone

pytestmark = pytest.mark.slow

GEOM = '<geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" contype="0" conaffinity="0"/>'
BARS = f"""<mujoco><worldbody><body name="a" pos="0 0 1"><joint name="j" axis="0 1 0"/>{GEOM}</body>
<body name="b" pos="0 1 1"><joint name="k" axis="0 1 0"/>{GEOM.replace(".3 0 0", ".6 0 0")}</body></worldbody>
<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon><equality>{{}}</equality></mujoco>"""
SOFT = 'solref=".1 1"'
EQUALITIES = {
    "connect": '<connect name="e" body1="a" anchor=".3 0 0" {}/>',
    "weld": '<weld name="e" body1="a" {}/>',
    "two trees": '<weld name="e" body1="b" body2="a" {}/>',
    "polynomial": '<joint name="e" joint1="j" polycoef="0 0 0 0 0" {}/>',
    "mimic": '<joint name="e" joint1="j" joint2="k" polycoef="0 -1 0 0 0" {}/>',
    "tie": '<tendon name="e" tendon1="t" polycoef="0 0 0 0 0" {}/>',
}


def scene(kind: str, rest: str, worlds: int = 2) -> tuple[ModelBuilder, object]:
    robot, builder = ModelBuilder(), ModelBuilder()
    report = robot.add_mjcf(BARS.format(EQUALITIES[kind].format(rest)))
    builder.replicate(robot, worlds)
    return builder, report


def fall(model, solver, steps: int = 10) -> np.ndarray:
    """Angles of both bars in each world."""
    state = model.state()
    for _ in range(steps):
        solver.step(state, state, dt=1 / 240)
    return state.joint_q.numpy().reshape(model.world_count, -1)


def switch(model, kind: str, world: int, on: bool) -> None:
    """Switches the equality of a world."""
    if kind == "tie":
        tendon = model.tendons[world]
        model.tendons[world] = replace(tendon, ties=(replace(tendon.ties[0], enabled=on),))
    elif kind in ("polynomial", "mimic"):
        rows = model.mujoco.equality_constraint_enabled.numpy()
        rows[world] = on
        model.mujoco.equality_constraint_enabled.assign(rows)
    else:
        closing = np.flatnonzero(model.joint_articulation.numpy() < 0)
        enabled = model.joint_enabled.numpy()
        enabled[closing[world]] = on
        model.joint_enabled.assign(enabled)


@pytest.mark.parametrize("rest", ["", SOFT], ids=["rigid", "soft"])
@pytest.mark.parametrize("kind", EQUALITIES)
def test_an_inactive_equality_acts_where_it_is_switched_on(kind, rest):
    free = fall(*_both(scene(kind, f'{rest} active="false"')[0]))
    model, solver = _both(scene(kind, f'{rest} active="false"')[0])
    want = fall(*_both(scene(kind, rest)[0]))
    assert np.abs(free - want).max() > 1.0e-3
    switch(model, kind, 1, True)
    solver.notify_model_changed()
    got = fall(model, solver)
    np.testing.assert_array_equal(got[0], free[0])
    # a mimic joint is another row than a polynomial
    np.testing.assert_allclose(got[1], want[1], atol=1.0e-4 if kind == "mimic" else 1.0e-6)
    switch(model, kind, 1, False)
    solver.notify_model_changed()
    np.testing.assert_array_equal(fall(model, solver), free)


def _both(builder: ModelBuilder):
    model = builder.finalize("cpu")
    return model, SolverFeatherstone(model, evaluator="general")


@pytest.mark.parametrize("kind", ["connect", "weld", "mimic"])
def test_a_row_that_is_not_enabled_switches_its_joint_off(kind):
    """Also the softness of a loop joint or of a mimic joint."""
    model, solver = _both(scene(kind, SOFT)[0])
    want = fall(*_both(scene(kind, f'{SOFT} active="false"')[0]))
    on = fall(model, solver)
    rows = model.mujoco.equality_constraint_enabled.numpy()
    assert len(rows) == 2
    rows[0] = 0
    model.mujoco.equality_constraint_enabled.assign(rows)
    solver.notify_model_changed(ModelFlags.CONSTRAINT_PROPERTIES)
    got = fall(model, solver)
    np.testing.assert_allclose(got[0], want[0], atol=1.0e-6)
    np.testing.assert_array_equal(got[1], on[1])


@pytest.mark.parametrize("kind", EQUALITIES)
def test_stages_keep_inactive_equalities(kind, tmp_path):
    builder, _ = scene(kind, f'{SOFT} active="false"', 1)
    model = builder.finalize("cpu", dtype=wp.float32)
    usd.write(model, tmp_path / "stage.usda")
    again = ModelBuilder()
    SolverFeatherstone.register_custom_attributes(again)
    again.add_usd(str(tmp_path / "stage.usda"))
    back, solver = _both(again)
    free = fall(model, SolverFeatherstone(model, evaluator="general"))
    assert back.world_count == 1
    np.testing.assert_allclose(np.sort(fall(back, solver)), np.sort(free), atol=1.0e-5)
    switch(model, kind, 0, True)
    switch(back, kind, 0, True)
    model.notify_changed()
    back.notify_changed()
    on = fall(model, SolverFeatherstone(model, evaluator="general"))
    assert np.abs(on - free).max() > 1.0e-4
    np.testing.assert_allclose(
        np.sort(fall(back, SolverFeatherstone(back, evaluator="general"))), np.sort(on), atol=1e-5
    )


def test_a_loop_joint_takes_the_place_of_a_disabled_joint_of_a_tree(rng):
    """As the message about a disabled joint of a tree says: its child is free where the loop joint is disabled."""
    robot, reach = ModelBuilder(), rng.uniform(0.1, 0.3)
    base, arm = (robot.add_link(mass=1.0, inertia=0.01 * np.eye(3)) for _ in range(2))
    robot.add_articulation([robot.add_joint_fixed(-1, base), robot.add_joint_free(arm)])
    robot.joint_q[-7:] = [reach, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    robot.add_joint_revolute(base, arm, axis=(0, 1, 0), child_xform=(-reach, 0, 0, 0, 0, 0, 1), enabled=False)
    builder = ModelBuilder()
    builder.replicate(robot, 2)
    model = builder.finalize("cpu", dtype=wp.float64)
    solver = SolverFeatherstone(model, evaluator="general")
    enabled = model.joint_enabled.numpy()
    enabled[np.flatnonzero(~enabled.astype(bool))[1]] = True
    model.joint_enabled.assign(enabled)
    solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
    places = fall(model, solver, 48)[:, :3]
    assert abs(places[0] - [reach, 0.0, -0.5 * 9.81 * 0.2**2]).max() < 1.0e-3
    assert abs(np.linalg.norm(places[1]) - reach) < 1.0e-4 and places[1, 2] < -0.02
