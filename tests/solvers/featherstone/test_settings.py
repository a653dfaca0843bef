"""Settings that are written after a solver was made."""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder
from newton_like.solvers import SolverFeatherstone


@pytest.fixture(scope="module")
def model():
    """A box that spins and falls, and a ball that rests inside the ground: each setting acts on their next step."""
    builder = ModelBuilder()
    cfg = builder.default_shape_cfg.copy(restitution=0.5, mu=0.8)
    body = builder.add_body(xform=(0.0, 0.0, 0.03, 0.1, 0.2, 0.0, 0.95**0.5))
    box = builder.add_shape_box(body, hx=0.1, hy=0.2, hz=0.05, cfg=cfg)
    body = builder.add_body(xform=(1.0, 0.0, 0.02, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_collision_filter_pair(box, builder.add_shape_sphere(body, radius=0.1, cfg=cfg))
    builder.add_ground_plane(cfg=cfg)
    builder.joint_qd[:6] = [0.3, 0.2, -1.0, 1.0, 2.0, 3.0]
    return builder.finalize("cpu")


def after(solver, state):
    """Coordinates after a step from the start, with nothing remembered."""
    solver.reset(state)
    solver.step(state, state, None, None, 0.004)
    return np.concatenate([state.joint_q.numpy(), state.joint_qd.numpy()])


@pytest.mark.parametrize(
    ("name", "value"),
    [("iterations", 1), ("restitution_speed", 20.0), ("max_depenetration_speed", 0.01), ("angular_damping", 50.0)],
)
def test_the_next_step_uses_what_was_written(model, name, value):
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    before, default = after(solver, state), getattr(solver, name)
    setattr(solver, name, value)
    assert getattr(solver, name) == value
    new = after(solver, state)
    assert not np.array_equal(new, before)
    other = SolverFeatherstone(model, evaluator="general", **{name: value})
    np.testing.assert_array_equal(new, after(other, model.state()))
    setattr(solver, name, default)
    np.testing.assert_array_equal(after(solver, state), before)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("iterations", 0, ValueError),
        ("iterations", 2.5, TypeError),
        ("iterations", "x", TypeError),
        ("iterations", np.nan, TypeError),
        ("iterations", True, TypeError),
        ("restitution_speed", "x", TypeError),
        ("restitution_speed", -1.0, ValueError),
        ("max_depenetration_speed", np.nan, ValueError),
        ("angular_damping", -1.0, ValueError),
        ("evaluator", "specialised", AttributeError),
        ("unsupported_contacts", "ignore", AttributeError),
        ("width", 1, AttributeError),
        ("threads", 1, AttributeError),
    ],
)
def test_what_cannot_be_written_is_refused_by_name(model, name, value, error):
    solver = SolverFeatherstone(model, evaluator="general")
    before = getattr(solver, name)
    with pytest.raises(error, match=name):
        setattr(solver, name, value)
    assert getattr(solver, name) == before
    if error is not AttributeError:
        with pytest.raises(error, match=name):
            SolverFeatherstone(model, evaluator="general", **{name: value})


@pytest.mark.slow
def test_contacts_of_the_last_step_are_known_after_a_setting_was_written(model):
    """The list is the same as before."""
    model.request_contact_attributes("force")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    solver.step(state, state, None, None, 0.004)
    lists = []
    for iterations in (8, 16):
        solver.iterations = iterations
        lists.append(model.contacts())
        solver.update_contacts(lists[-1], state)
    assert lists[0].rigid_contact_count.numpy()[0] > 0
    for name in ("rigid_contact_count", "rigid_contact_point0", "rigid_contact_normal", "force"):
        before, new = (getattr(listed, name).numpy() for listed in lists)
        np.testing.assert_array_equal(new, before)


def test_a_step_that_was_handed_no_contacts_has_none_unused(model):
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    contacts = model.collide(state)
    # the fixed shape twice: such contacts are not used
    contacts.rigid_contact_shape1.assign(contacts.rigid_contact_shape0.numpy())
    solver.step(state, state, None, contacts, 0.001)
    assert solver.unused_contacts() == contacts.rigid_contact_count.numpy()[0] > 0
    solver.step(state, state, None, None, 0.001)
    assert solver.unused_contacts() == 0


def test_the_default_control_requires_no_gradient(rng):
    """A tape may record a step of a state without gradients, whatever the model requires."""
    builder = ModelBuilder()
    builder.add_body(mass=rng.uniform(1.0, 2.0), inertia=np.eye(3))
    model = builder.finalize("cpu", requires_grad=True)
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state(requires_grad=False)
    with wp.Tape():
        solver.step(state, state, None, None, 0.01)
    assert state.joint_q.numpy()[2] < 0.0
