"""Errors of SolverFeatherstone: messages name the entity and the cure."""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder
from newton_like.solvers import SolverFeatherstone


def bodies(count: int = 2, **link) -> ModelBuilder:
    builder = ModelBuilder()
    for i in range(count):
        builder.add_body(mass=1.0, inertia=np.eye(3), label=f"stone_{i}", **link)
    return builder


def solver_of(builder, **options):
    options = {"evaluator": "general"} | options
    model = builder.finalize("cpu")
    return model, SolverFeatherstone(model, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"evaluator": "fast"}, r"evaluator 'fast' .*'auto', 'general', 'specialised'"),
        ({"unsupported_contacts": "warn"}, "unsupported_contacts 'warn' .*'error'.*'ignore'"),
        ({"iterations": 0}, r"iterations 0 .*\b1\b"),
        ({"iterations": -3}, r"iterations -3 .*\b1\b"),
        ({"restitution_speed": 0.0}, "restitution_speed 0 "),
        ({"angular_damping": -0.5}, "angular_damping -0.5 "),
        ({"restitution_speed": float("nan")}, "restitution_speed is nan"),
        ({"max_depenetration_speed": -1.0}, "max_depenetration_speed -1 "),
        ({"max_depenetration_speed": float("inf")}, "max_depenetration_speed is inf"),
        ({"width": 5}, "width 5 "),
        ({"threads": 0}, r"threads 0 .*\b1\b"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        solver_of(bodies(), **options)


def test_loop_joints_between_articulations_are_refused():
    builder = ModelBuilder()
    links = [builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(2)]
    for link in links:
        builder.add_articulation([builder.add_joint_revolute(-1, link)])
    builder.add_joint_revolute(*links, label="closing_pin")
    with pytest.raises(ValueError, match=r"joint 'closing_pin' \(index 2\) .*articulation"):
        solver_of(builder)


def test_disabled_joints_are_refused():
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_revolute(-1, link, label="hinge", enabled=False)])
    with pytest.raises(
        ValueError, match=r"joint 'hinge' \(index 0\) .*disabled.*closes a loop and may be disabled.*SolverXPBD"
    ):
        solver_of(builder)


def touching() -> ModelBuilder:
    builder = bodies()
    for body in range(2):
        builder.add_shape_sphere(body, radius=0.1, label=f"ball_{body}")
    return builder


def test_pairs_that_are_not_solved_are_refused_unless_told():
    builder = bodies(2)
    builder.add_shape_sphere(0, radius=0.1, label="ball")
    builder.add_shape_plane(body=1, label="ramp")
    with pytest.raises(ValueError, match=r"'ball' \(index 0\) and 'ramp' \(index 1\).*\b1\b.*pairs.*plane"):
        solver_of(builder)
    solver_of(builder, unsupported_contacts="ignore")
    builder.add_shape_collision_filter_pair(0, 1)
    solver_of(builder)
    solver_of(touching())


@pytest.mark.parametrize("dt", [0.0, -0.01, float("nan"), float("inf")])
def test_time_steps_must_be_positive(dt):
    model, solver = solver_of(bodies())
    state = model.state()
    with pytest.raises(ValueError, match=r"^dt "):
        solver.step(state, state, None, None, dt)
    # Also after a step that was fine.
    solver.step(state, state, None, None, 0.01)
    before = state.joint_q.numpy().copy()
    with pytest.raises(ValueError, match=r"^dt "):
        solver.step(state, state, None, None, dt)
    np.testing.assert_array_equal(state.joint_q.numpy(), before)


def test_arrays_of_other_models_are_refused():
    model, solver = solver_of(bodies(2))
    other = bodies(3).finalize("cpu")
    state = model.state()
    for pair, name in (((other.state(), state), "state_in"), ((state, other.state()), "state_out")):
        with pytest.raises(ValueError, match=rf"^{name}\.\w+ .*model.state\(\)"):
            solver.step(*pair, None, None, 0.01)
    with pytest.raises(ValueError, match=r"control.joint_f.*18.*12.*model.control\(\)"):
        solver.step(state, state, other.control(), None, 0.01)


def test_missing_state_arrays_are_refused():
    model, solver = solver_of(bodies())
    for name in ("joint_q", "joint_qd"):
        state = model.state()
        setattr(state, name, None)
        with pytest.raises(ValueError, match=rf"state_in.{name} .*None.*model.state\(\)"):
            solver.step(state, model.state(), None, None, 0.01)
    state = model.state()
    state.body_q = None
    with pytest.raises(TypeError, match=r"state_out.*State.*model"):
        solver.step(state, model)
    with pytest.raises(ValueError, match=r"state_out\.body_q .*None"):
        solver.step(model.state(), state, None, None, 0.01)


def test_contacts_of_other_models_are_refused():
    model, solver = solver_of(touching(), unsupported_contacts="ignore")
    contacts = touching().finalize("cpu", dtype=wp.float64).contacts()
    state = model.state()
    with pytest.raises(ValueError, match=r"contacts .*model.contacts\(\)"):
        solver.step(state, state, None, contacts, 0.01)


def test_masks_of_the_wrong_length_are_refused():
    model, solver = solver_of(bodies())
    with pytest.raises(ValueError, match=r"world_mask.*3.*1"):
        solver.reset(model.state(), [True, False, True])


def test_states_of_other_models_do_not_collide():
    model = touching().finalize("cpu")
    with pytest.raises(ValueError, match=r"state\.body_q.*3.*2"):
        model.collide(bodies(3).finalize("cpu").state())
