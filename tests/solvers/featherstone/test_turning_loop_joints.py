"""Springs, drives, friction and limits of loop joints with three rotations: ball joints, and D6 joints with three angular axes."""

import numpy as np
import pytest
import warp as wp

from newton_like import JointDofConfig, JointTargetMode, ModelBuilder, ModelFlags, eval_fk
from newton_like.geometry.transforms import quat_from_axis_angle
from newton_like.solvers import SolverFeatherstone
from tests.support.random_trees import random_inertia, random_transform

DT = 1.0 / 480.0
FREE = dict(limit_lower=-np.inf, limit_upper=np.inf)
SETTINGS = {
    "spring": dict(stiffness=3.0, damping=0.1, rest_q=0.4),
    "drive": dict(target_ke=4.0, target_kd=0.2),
    "weak drive": dict(target_ke=4.0, target_kd=0.2, effort_limit=0.5),
    "speed drive": dict(target_kd=0.5, actuator_mode=JointTargetMode.VELOCITY),
    "friction": dict(friction=0.3),
    "limits": dict(limit_lower=-0.2, limit_upper=0.3),
}
OF_BALLS = {name: values for name, values in SETTINGS.items() if name != "limits"} | {
    "angle": dict(max_angle=0.4),
    "swing": dict(max_swing=0.3),
}


def held_body(key: int, on_loop: bool, settings: dict, axes=None, which: int = -1) -> ModelBuilder:
    """A body on a ball joint to the world, or on one with three rotations, which is the joint of its tree, or closes a loop beside a free
    joint.

    Args:
        key: of the random numbers.
        on_loop: where the joint is.
        settings: forces of the joint.
        axes: of three rotations; None: a ball joint.
        which: the rotation that has the settings, of three; -1: all.
    """
    rng = np.random.default_rng(key)
    builder = ModelBuilder()
    mass = rng.uniform(0.5, 1.0)
    link = builder.add_link(
        mass=mass, com=0.1 * rng.normal(size=3), inertia=random_inertia(rng, mass, 0.3) + 0.02 * np.eye(3)
    )
    held = dict(parent_xform=random_transform(rng, 0.3), child_xform=random_transform(rng, 0.3), label="held")
    if axes is None:
        settings = dict(settings)
        if "rest_q" in settings:
            settings["rest_q"] = quat_from_axis_angle(rng.normal(size=3), settings["rest_q"])
        add, held = builder.add_joint_ball, held | settings
    else:
        rows = [dict(FREE) | (settings if which in (i, -1) else {}) for i in range(3)]
        if rows[1]["limit_upper"] == np.inf:
            rows[1] |= dict(limit_lower=-1.2, limit_upper=1.2)
        held["angular_axes"] = [JointDofConfig(axis=axis, **row) for axis, row in zip(axes, rows, strict=True)]
        add = builder.add_joint_d6
    if on_loop:
        builder.add_articulation([builder.add_joint_free(link)])
        add(-1, link, **held)
    else:
        builder.add_articulation([add(-1, link, **held)])
    return builder


def paths_of(builders, q, v, target_q, target_qd, steps: int, dt: float) -> list[np.ndarray]:
    """Poses of the body on a joint of a tree, and on a loop joint, which starts with the same pose and velocity."""
    found, start, start_v = [], None, None
    for on_loop, builder in enumerate(builders):
        model = builder.finalize("cpu", dtype=wp.float64)
        state, control = model.state(), model.control()
        if on_loop:
            state.joint_q.assign([*start, *model.joint_q.numpy()[7:]])
            state.joint_qd.assign([*start_v, 0.0, 0.0, 0.0])
        else:
            state.joint_q.assign(q)
            state.joint_qd.assign(v)
            eval_fk(model, state.joint_q, state.joint_qd, state)
            start, start_v = state.body_q.numpy()[0].copy(), state.body_qd.numpy()[0].copy()
        for name, values in (("joint_target_q", target_q), ("joint_target_qd", target_qd)):
            targets = getattr(control, name).numpy()
            targets[-len(values) :] = values
            getattr(control, name).assign(targets)
        solver, path = SolverFeatherstone(model, evaluator="general"), []
        for _ in range(steps):
            solver.step(state, state, control, None, dt)
            path.append(state.body_q.numpy()[0].copy())
        found.append(np.array(path))
    return found


def apart(one: np.ndarray, two: np.ndarray) -> float:
    """The largest distance of places and quaternions in two paths."""
    turned = np.minimum(np.abs(one[:, 3:] - two[:, 3:]).max(axis=1), np.abs(one[:, 3:] + two[:, 3:]).max(axis=1))
    return max(turned.max(), np.abs(one[:, :3] - two[:, :3]).max())


@pytest.mark.parametrize("name", OF_BALLS)
def test_a_body_on_a_ball_loop_joint_moves_as_on_one_of_a_tree(rng, name):
    """Targets and rest orientations are any; directions of forces agree to first order in the time step."""
    key = int(rng.integers(2**31))
    q, v = quat_from_axis_angle(rng.normal(size=3), 0.2), rng.uniform(-2.0, 2.0, 3)
    target_q, target_qd = quat_from_axis_angle(rng.normal(size=3), rng.uniform(0.2, 1.5)), rng.uniform(-2.0, 2.0, 3)
    builders = [held_body(key, on_loop, OF_BALLS[name]) for on_loop in (False, True)]
    one, two = paths_of(builders, q, v, target_q, target_qd, 240, DT)
    moved = np.abs(one - one[0]).max()
    assert apart(one, two) < (4e-2 if name in ("angle", "swing") else 5e-3) * max(moved, 0.05)


@pytest.mark.parametrize("which", [0, 1, 2, -1])
@pytest.mark.parametrize("name", SETTINGS)
def test_a_body_on_a_loop_joint_with_three_rotations_moves_as_on_one_of_a_tree(rng, name, which):
    """Axes are right-handed and left-handed. Forces agree to first order in the time step, and differences grow in the motion."""
    key = int(rng.integers(2**31))
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    q, v = rng.uniform(-0.15, 0.15, 3), rng.uniform(-1.5, 1.5, 3)
    target_q, target_qd = rng.uniform(-0.8, 0.8, 3), rng.uniform(-2.0, 2.0, 3)
    for hand in (1.0, -1.0):
        turns = axes * np.array([[1.0], [1.0], [hand]])
        builders = [held_body(key, on_loop, SETTINGS[name], turns, which) for on_loop in (False, True)]
        one, two = paths_of(builders, q, v, target_q, target_qd, 240, DT)
        moved = np.abs(one - one[0]).max()
        assert apart(one, two) < (8e-2 if name == "limits" else 4e-2) * max(moved, 0.05), hand


def test_differences_shrink_with_the_time_step(rng):
    """Of limits and friction of all three rotations, and of a spring of a ball joint."""
    key, axes = int(rng.integers(2**31)), np.linalg.qr(rng.normal(size=(3, 3)))[0]
    q, v = rng.uniform(-0.15, 0.15, 3), rng.uniform(-1.0, 1.0, 3)
    settings = SETTINGS["limits"] | SETTINGS["friction"] | SETTINGS["drive"]
    sizes = []
    for dt in (4e-3, 1e-3):
        builders = [held_body(key, on_loop, settings, axes) for on_loop in (False, True)]
        sizes.append(apart(*paths_of(builders, q, v, [0.5, 0.1, -0.6], [0.0] * 3, int(0.4 / dt), dt)))
    assert sizes[1] < 2e-3 and sizes[1] < 0.6 * sizes[0] + 1e-4


def test_forces_of_ball_loop_joints_may_come(rng):
    """A spring that is named in `varying` has rows; another one comes with an edit."""
    key = int(rng.integers(2**31))
    for varying in ((), ("joint_stiffness", "joint_damping", "joint_max_angle")):
        model = held_body(key, True, {}).finalize("cpu", dtype=wp.float64)
        solver = SolverFeatherstone(model, evaluator="general", varying=varying)
        steppers = solver._steppers
        assert len(solver.couplings) == (4 if varying else 0)
        numbers = model.joint_stiffness.numpy()
        numbers[-3:] = 50.0
        model.joint_stiffness.assign(numbers)
        model.joint_damping.assign(numbers / 10.0)
        model.joint_max_angle.assign([-1.0, 0.02])
        solver.notify_model_changed(ModelFlags.JOINT_DOF_PROPERTIES | ModelFlags.JOINT_PROPERTIES)
        assert (solver._steppers is steppers) == bool(varying)
        assert [(c.kind, c.part) for c in solver.couplings] == [*(("spring", i) for i in range(3)), ("max_angle", 0)]


def test_torques_of_a_ball_loop_joint_can_be_read(rng):
    """At rest, the spring and the limit carry the moment of the weight."""
    builder, mass, reach = ModelBuilder(), float(rng.uniform(0.5, 2.0)), 0.3
    link = builder.add_link(mass=mass, com=(reach, 0, 0), inertia=0.01 * np.eye(3))
    builder.add_articulation([builder.add_joint_free(link)])
    builder.add_joint_ball(-1, link, stiffness=2.0, damping=1.0, max_angle=0.3)
    model = builder.finalize("cpu", dtype=wp.float64)
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    for _ in range(2000):
        solver.step(state, state, dt=DT)
    found = dict(zip([(c.kind, c.part) for c in solver.couplings], solver.coupling_forces().numpy(), strict=True))
    assert found["spring", 1] == pytest.approx(-2.0 * 0.3, rel=1e-4)
    assert [found["spring", 0], found["spring", 2]] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert found["max_angle", 0] == pytest.approx(0.6 - mass * 9.81 * reach * np.cos(0.3), rel=1e-4)


def test_three_rotations_without_limits_of_the_second_one_are_refused(rng):
    axes = np.eye(3)
    builder = held_body(0, True, SETTINGS["spring"], axes, 0)
    builder.joint_limit_upper[-2] = 1.55
    with pytest.raises(ValueError, match=r"loop joint 'held' \(index 1\) turns about 3 axes.*stiffness.*85 degrees"):
        SolverFeatherstone(builder.finalize("cpu"), evaluator="general")
    builder = held_body(0, True, {}, axes, 0)
    builder.joint_limit_lower[-2], builder.joint_limit_upper[-2] = -np.inf, np.inf
    model = builder.finalize("cpu")
    solver = SolverFeatherstone(model, evaluator="general")
    assert solver.couplings == []
    model.joint_friction.assign([0.0] * 6 + [0.0, 0.0, 1.0])
    with pytest.raises(ValueError, match=r"'held'.*friction.*85 degrees"):
        solver.notify_model_changed(ModelFlags.JOINT_DOF_PROPERTIES)
