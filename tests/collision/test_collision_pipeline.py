"""The pipeline with Newton's interface: the contacts of `Model.collide`, and options that are refused by name."""

import copy

import numpy as np
import pytest

import newton_like as nl
from newton_like.collision.collision_pipeline import _NEWTON
from newton_like.model.contacts import Contacts
from newton_like.options import ANY, OneOf
from newton_like.solvers import SolverFeatherstone
from tests.collision.test_pipeline import on_ground, scene

ARRAYS = ("count", "shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1")


def test_contacts_are_those_of_the_model(rng):
    model = on_ground(["sb", "bs"]).finalize("cpu")
    state = model.state()
    state.body_q.assign(np.c_[rng.normal(scale=0.1, size=(4, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (4, 1))])
    pipeline = nl.CollisionPipeline(model, broad_phase="nxn", unsupported_contacts="ignore")
    contacts = pipeline.contacts()
    assert pipeline.collide(state, contacts, dt=0.01) is None
    expected = model.collide(state, unsupported_contacts="ignore")
    assert contacts.rigid_contact_max == pipeline.rigid_contact_max == expected.rigid_contact_max
    assert contacts.rigid_contact_count.numpy()[0] > 0
    for name in ARRAYS:
        np.testing.assert_array_equal(
            getattr(contacts, f"rigid_contact_{name}").numpy(), getattr(expected, f"rigid_contact_{name}").numpy()
        )
    assert pipeline.device == model.device
    builder = nl.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    builder.add_shape_plane(body=builder.add_body(mass=1.0, inertia=np.eye(3)))
    model = builder.finalize("cpu")
    with pytest.raises(ValueError, match="unsupported_contacts"):
        nl.CollisionPipeline(model).collide(model.state(), model.contacts())


@pytest.mark.slow
def test_solvers_take_the_contacts(rng):
    """With the impulses of the solver's own contacts."""
    model = on_ground(["s"]).finalize("cpu")
    solver, pipeline = nl.solvers.SolverFeatherstone(model, evaluator="general"), nl.CollisionPipeline(model)
    states, contacts = [], pipeline.contacts()
    height, speed = 0.1 - rng.uniform(0.001, 0.01), rng.uniform(0.5, 2.0)
    for given in (None, contacts):
        state = model.state()
        state.joint_q.assign([0.0, 0.0, height, 0.0, 0.0, 0.0, 1.0])
        state.joint_qd.assign([0.0, 0.0, -speed, 0.0, 0.0, 0.0])
        nl.eval_fk(model, state.joint_q, state.joint_qd, state)
        pipeline.collide(state, contacts)
        solver.step(state, state, None, given, 1e-3)
        states.append(state.joint_qd.numpy())
    np.testing.assert_allclose(states[1], states[0], atol=1e-5)
    assert states[0][2] > -0.5 * speed


@pytest.mark.slow
def test_models_without_shapes_step_with_an_empty_list():
    model = scene("n").finalize("cpu")
    solver, pipeline = nl.solvers.SolverFeatherstone(model, evaluator="general"), nl.CollisionPipeline(model)
    states = [model.state(), model.state()]
    contacts = pipeline.contacts()
    for state, given in zip(states, (None, contacts), strict=True):
        pipeline.collide(state, contacts)
        solver.step(state, state, None, given, 0.01)
    np.testing.assert_array_equal(states[1].joint_qd.numpy(), states[0].joint_qd.numpy())
    assert states[0].joint_qd.numpy().any()


@pytest.mark.filterwarnings("ignore:Model.collide")
def test_capacity_and_gradients():
    model = on_ground(["sb"]).finalize("cpu")
    pipeline = nl.CollisionPipeline(model, rigid_contact_max=3, requires_grad=True, unsupported_contacts="ignore")
    contacts = pipeline.contacts()
    assert contacts.rigid_contact_max == 3
    assert contacts.rigid_contact_point0.requires_grad
    assert not nl.CollisionPipeline(model).contacts().rigid_contact_point0.requires_grad
    state = model.state()
    pipeline.collide(state, contacts)
    found = model.collide(state, unsupported_contacts="ignore").rigid_contact_count.numpy()[0]
    assert contacts.dropped == found - 3 > 0


def test_options_of_newton_are_refused_by_name():
    model = on_ground(["s"]).finalize("cpu")
    for name, (neutral, _) in _NEWTON.items():
        for value in neutral if isinstance(neutral, OneOf) else [True if neutral is ANY else neutral]:
            nl.CollisionPipeline(model, **{name: value})
        if neutral is not ANY:
            for other in ("other", 0.3, np.ones(2)):
                with pytest.raises(ValueError, match=name):
                    nl.CollisionPipeline(model, **{name: other})
    with pytest.raises(TypeError, match=r"'rigid_contact_may'.*rigid_contact_max"):
        nl.CollisionPipeline(model, rigid_contact_may=1)
    for wrong, error in ((-1, ValueError), (0, ValueError), ("many", TypeError)):
        with pytest.raises(error, match="rigid_contact_max"):
            nl.CollisionPipeline(model, rigid_contact_max=wrong)
    with pytest.raises(ValueError, match="unsupported_contacts"):
        nl.CollisionPipeline(model, unsupported_contacts="maybe")
    with pytest.raises(TypeError, match="Model"):
        nl.CollisionPipeline(nl.ModelBuilder())
    pipeline = nl.CollisionPipeline(model)
    for name, value in (("soft_contact_margin", 0.1), ("soft_self_contact", True)):
        with pytest.raises(ValueError, match=name):
            pipeline.collide(model.state(), pipeline.contacts(), **{name: value})


def test_a_pipeline_of_the_model_may_be_given_to_it(rng):
    model = on_ground(["sb", "bs"]).finalize("cpu")
    state = model.state()
    state.body_q.assign(np.c_[rng.normal(scale=0.1, size=(4, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (4, 1))])
    pipeline = nl.CollisionPipeline(model, rigid_contact_max=70, unsupported_contacts="ignore")
    found, expected = model.collide(state, collision_pipeline=pipeline), pipeline.contacts()
    pipeline.collide(state, expected)
    assert found.rigid_contact_max == model.contacts(collision_pipeline=pipeline).rigid_contact_max == 70
    assert found.rigid_contact_count.numpy()[0] > 0
    for name in ARRAYS:
        np.testing.assert_array_equal(
            getattr(found, f"rigid_contact_{name}").numpy(), getattr(expected, f"rigid_contact_{name}").numpy()
        )
    other = nl.CollisionPipeline(on_ground(["sb", "bs"]).finalize("cpu"))
    for call, error, named in (
        (lambda: model.collide(state, collision_pipeline=other), ValueError, "collision_pipeline"),
        (lambda: model.contacts(collision_pipeline=other), ValueError, "collision_pipeline"),
        (lambda: model.collide(state, collision_pipeline=state), TypeError, "collision_pipeline.*State"),
        (
            lambda: model.collide(state, collision_pipeline=pipeline, unsupported_contacts="ignore"),
            ValueError,
            "unsupported_contacts",
        ),
        (lambda: model.contacts(3, collision_pipeline=pipeline), ValueError, "rigid_contact_max"),
        (
            lambda: model.collide(state, enable_rigid_soft_full_surface_contact=True),
            ValueError,
            "enable_rigid_soft_full_surface_contact",
        ),
        (lambda: model.contacts("x"), TypeError, "rigid_contact_max"),
        (lambda: model.contacts(1.5), TypeError, "rigid_contact_max"),
        (lambda: model.contacts(-1), ValueError, "rigid_contact_max"),
    ):
        with pytest.raises(error, match=named):
            call()


@pytest.mark.slow
def test_contacts_of_another_model_are_refused(rng):
    """Also if both models have the same sizes; contacts that no model made, and those of a copy of the model, are accepted."""
    model, other = (on_ground(["sb", "bs"]).finalize("cpu") for _ in range(2))
    state, solver = model.state(), SolverFeatherstone(model, unsupported_contacts="ignore")
    pipeline = nl.CollisionPipeline(other, unsupported_contacts="ignore")
    for foreign in (other.contacts(), pipeline.contacts()):
        for call in (
            lambda contacts: solver.step(state, state, contacts=contacts),
            lambda contacts: model.collide(state, contacts, unsupported_contacts="ignore"),
        ):
            with pytest.raises(ValueError, match=r"contacts\b.*another"):
                call(foreign)
    for own in (model.contacts(), copy.copy(model).contacts(), Contacts(8, device="cpu")):
        solver.step(state, state, contacts=own)


def test_a_model_states_the_capacity_of_its_lists(rng):
    model = on_ground(["sb"]).finalize("cpu")
    default = model.contacts().rigid_contact_max
    assert model.rigid_contact_max is None and default == nl.CollisionPipeline(model).rigid_contact_max > 0
    model.rigid_contact_max = capacity = int(rng.integers(1, 100))
    assert model.contacts().rigid_contact_max == nl.CollisionPipeline(model).rigid_contact_max == capacity
    assert model.contacts(7).rigid_contact_max == 7
    with pytest.raises((TypeError, ValueError), match="rigid_contact_max"):
        model.rigid_contact_max = -1
    # without room all contacts would be lost, in SolverXPBD too
    shape = next(model.shape_label[s] for s in range(model.shape_count) if model.shape_body.numpy()[s] >= 0)
    with pytest.raises(ValueError, match=f"rigid_contact_max 0 .*'{shape}'"):
        model.rigid_contact_max = 0
    with pytest.raises(ValueError, match=f"rigid_contact_max 0 .*'{shape}'"):
        model.contacts(0)
    assert nl.ModelBuilder().finalize("cpu").contacts(0).rigid_contact_max == 0
    model.rigid_contact_max = None
    assert model.contacts().rigid_contact_max == default


def test_filter_pairs_are_appended_as_in_newton():
    builder = on_ground(["sb"])
    before = len(builder.shape_collision_filter_pairs)
    builder.shape_collision_filter_pairs.append((2, 1))
    builder.shape_collision_filter_pairs.extend([(0, 2), (1, 2)])
    assert (1, 2) in builder.shape_collision_filter_pairs and (0, 2) in builder.shape_collision_filter_pairs
    assert before <= len(builder.shape_collision_filter_pairs) <= before + 2
