"""Forces of springs, drives, dry friction and limits of loop joints, and of limits of ball joints, among the forces of couplings: statics,
formulas, worlds."""

import numpy as np
import pytest
import warp as wp

from newton_like import JointDofConfig, ModelBuilder, ModelFlags
from newton_like.solvers import SolverFeatherstone

G, DT = 9.81, 1.0 / 240.0
REACH = 0.3
"""Of the centre of mass from the hinge."""


def arm(rng, **settings) -> tuple[ModelBuilder, float]:
    """A free body on a hinge that closes a loop, and the moment of its weight about the hinge while it is level. The angle grows
    downwards."""
    builder, mass = ModelBuilder(), float(rng.uniform(0.5, 2.0))
    link = builder.add_link(mass=mass, com=(REACH, 0, 0), inertia=0.01 * np.eye(3))
    builder.add_articulation([builder.add_joint_free(link)])
    usual = {"limit_lower": -np.inf, "limit_upper": np.inf, "axis": (0, 1, 0)}
    builder.add_joint_revolute(-1, link, label="hinge", **usual | settings)
    return builder, mass * G * REACH


class Run:
    """Some steps of a model.

    Attributes:
        forces: by kind; angle: of the first body about y, half a step later, where forces are; speed: of the angle.
    """

    def __init__(self, builder: ModelBuilder, steps: int = 1500, speed: float = 0.0, control=None):
        model = builder.finalize("cpu", dtype=wp.float64)
        self.solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
        state.joint_qd.assign([0.0, 0.0, -speed * REACH, 0.0, speed, 0.0, *[0.0] * (model.joint_dof_count - 6)])
        for _ in range(steps):
            self.solver.step(state, state, control, dt=DT)
        q, qd = state.joint_q.numpy(), state.joint_qd.numpy()
        self.speed = qd[4]
        self.angle = 2.0 * np.arctan2(q[4], q[6]) + 0.5 * DT * self.speed
        self.state = state

    @property
    def forces(self) -> dict[str, float]:
        force = self.solver.coupling_forces().numpy().tolist()
        return dict(zip([coupling.kind for coupling in self.solver.couplings], force, strict=True))


def test_springs_and_drives_hold_a_weight_by_their_formulas(rng):
    rest, target, ke = rng.uniform(-0.3, 0.3, 2)[0], float(rng.uniform(-0.3, 0.3)), rng.uniform(20.0, 60.0, 2)
    for effort in (np.inf, 1e3):
        # a drive without a limit of its effort is a row of another kind
        settings = dict(stiffness=ke[0], rest_q=rest, damping=1.0, target_ke=ke[1], target_kd=1.0, target_q=target)
        builder, moment = arm(rng, effort_limit=effort, **settings)
        run = Run(builder)
        assert [(c.kind, c.index, c.part, c.label) for c in run.solver.couplings] == [
            ("spring", 1, 0, "hinge"),
            ("drive", 1, 0, "hinge"),
        ]
        assert run.forces["spring"] == pytest.approx(ke[0] * (rest - run.angle), rel=1e-5)
        assert run.forces["drive"] == pytest.approx(ke[1] * (target - run.angle), rel=1e-5)
        assert sum(run.forces.values()) == pytest.approx(-moment * np.cos(run.angle), rel=1e-5)


def test_forces_in_motion_are_those_of_the_formulas(rng):
    """Springs and dampers are implicit: forces are those at the end of the step to the next middle."""
    ke, kd = float(rng.uniform(5.0, 20.0)), float(rng.uniform(0.1, 0.5))
    builder, _ = arm(rng, stiffness=ke, damping=kd, friction=0.3)
    for steps in (1, 7, 40):
        run = Run(builder, steps, speed=4.0)
        after = run.angle
        assert run.forces["spring"] == pytest.approx(-ke * after - kd * run.speed, rel=1e-3)
        if abs(run.speed) > 0.3:
            assert run.forces["friction"] == pytest.approx(-0.3 * np.sign(run.speed))


def test_drives_are_limited_by_their_effort(rng):
    builder, moment = arm(rng, target_ke=1e3, target_kd=10.0, effort_limit=0.5, limit_upper=0.4)
    run = Run(builder)
    assert run.forces["drive"] == pytest.approx(-0.5)
    assert run.angle == pytest.approx(0.4, abs=1e-6)
    assert run.forces["limit"] == pytest.approx(0.5 - moment * np.cos(0.4), rel=1e-5)


def test_dry_friction_holds_a_weight(rng):
    builder, moment = arm(rng, friction=20.0)
    run = Run(builder, 300)
    assert abs(run.angle) < 1e-6
    assert run.forces == {"friction": pytest.approx(-moment, rel=1e-6)}


def test_parts_are_degrees_of_freedom_and_signs_those_of_coordinates(rng):
    """A plate on two slides and a universal joint: it lies on a lower limit, and leans on an upper one."""
    builder = ModelBuilder(gravity=(-3.0, 0.0, -G))
    link = builder.add_link(mass=2.0, inertia=0.1 * np.eye(3))
    builder.add_articulation([builder.add_joint_free(link)])
    slides = [
        JointDofConfig(axis=axis, limit_lower=low, limit_upper=high, friction=0.0)
        for axis, low, high in (((0, 0, 1), -0.01, 1.0), ((-1, 0, 0), -1.0, 0.02))
    ]
    turns = [JointDofConfig.create_unlimited(axis).copy(friction=1.0) for axis in ("x", "y")]
    builder.add_joint_d6(-1, link, linear_axes=slides, angular_axes=turns, label="plate")
    run = Run(builder, 600)
    listed = [(coupling.kind, coupling.part) for coupling in run.solver.couplings]
    assert listed == [("friction", 2), ("friction", 3), ("limit", 0), ("limit", 1)]
    np.testing.assert_allclose(run.solver.coupling_forces().numpy(), [0.0, 0.0, 2.0 * G, -6.0], atol=1e-5)


@pytest.mark.parametrize("soft", [False, True])
def test_limits_of_ball_joints_carry_weights(rng, soft):
    limit, mass = float(rng.uniform(0.2, 0.8)), float(rng.uniform(0.5, 2.0))
    for name in ("max_angle", "max_swing"):
        builder = ModelBuilder()
        if soft:
            SolverFeatherstone.register_custom_attributes(builder)
        link = builder.add_link(mass=mass, com=(REACH, 0, 0), inertia=0.01 * np.eye(3))
        custom = {"mujoco:limit_rules": {0: 1}} if soft else None
        ball = builder.add_joint_ball(-1, link, damping=0.5, **{name: limit}, label="ball", custom_attributes=custom)
        builder.add_articulation([ball])
        model = builder.finalize("cpu", dtype=wp.float64)
        solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
        for _ in range(2000):
            solver.step(state, state, dt=DT)
        (coupling,) = solver.couplings
        assert (coupling.kind, coupling.index, coupling.label) == (name, ball, "ball")
        angle = 2.0 * np.arcsin(state.joint_q.numpy()[1])
        assert angle == pytest.approx(limit, abs=0.1 if soft else 1e-6) and (angle > limit + 1e-5) == soft
        assert solver.coupling_forces().numpy() == pytest.approx([-mass * G * REACH * np.cos(angle)], rel=1e-4)


@pytest.mark.slow
def test_worlds_have_their_own_entries_in_order(rng):
    scene, expected = ModelBuilder(), []
    for rest in rng.uniform(-0.5, 0.5, 9):
        builder, moment = arm(rng, stiffness=50.0, damping=2.0, rest_q=rest, friction=0.0, limit_upper=2.0)
        scene.add_world(builder)
        expected.append(moment)
    model = scene.finalize("cpu", dtype=wp.float64)
    solver, state = SolverFeatherstone(model, evaluator="specialised"), model.state()
    for _ in range(1500):
        solver.step(state, state, dt=DT)
    kinds = np.reshape([coupling.kind for coupling in solver.couplings], (9, -1))
    assert (kinds == ["spring", "limit"]).all()
    assert [coupling.world for coupling in solver.couplings] == np.repeat(np.arange(9), 2).tolist()
    q = state.joint_q.numpy().reshape(9, -1)
    angle = 2.0 * np.arctan2(q[:, 4], q[:, 6])
    found = solver.coupling_forces().numpy().reshape(9, 2)
    np.testing.assert_allclose(found[:, 0], -np.array(expected) * np.cos(angle), rtol=1e-5)
    np.testing.assert_array_equal(found[:, 1], 0.0)


@pytest.mark.slow
def test_the_list_follows_edits(rng):
    builder, _ = arm(rng, stiffness=50.0)
    model = builder.finalize("cpu")
    solver = SolverFeatherstone(model, evaluator="general")
    assert [coupling.kind for coupling in solver.couplings] == ["spring"]
    model.joint_friction.assign([0.0] * 6 + [0.5])
    solver.notify_model_changed(ModelFlags.JOINT_DOF_PROPERTIES)
    assert [coupling.kind for coupling in solver.couplings] == ["spring", "friction"]
    model.joint_stiffness.assign([0.0] * 7)
    solver.notify_model_changed(ModelFlags.JOINT_DOF_PROPERTIES)
    assert [coupling.kind for coupling in solver.couplings] == ["friction"]
    state = model.state()
    for _ in range(3):
        solver.step(state, state, dt=DT)
    assert solver.coupling_forces().numpy() == pytest.approx([-0.5], rel=1e-5)
    named = SolverFeatherstone(arm(rng)[0].finalize("cpu"), evaluator="general", varying=("joint_friction",))
    assert [coupling.kind for coupling in named.couplings] == ["friction"]
