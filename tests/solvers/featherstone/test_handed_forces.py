"""Forces of the contacts of a list that was handed to a step: balance of momentum, sums, order, and errors."""

import numpy as np
import pytest

from newton_like import ModelBuilder, ModelFlags
from newton_like.sensors import SensorContact
from newton_like.types import ShapeFlags
from tests.solvers.featherstone.test_contact_lists import DT, Listed, Watched, check_momentum, heap
from tests.solvers.featherstone.test_handed_pairs import rearranged
from tests.support.simulate import GRAVITY, worlds_of


class Handed(Watched):
    """A simulation whose steps get lists of contacts."""

    def step(self) -> None:
        """A step with the contacts of the state, in random order and with random pairs of shapes swapped."""
        found = self.model.collide(self.state, self.model.contacts(200 * self.model.world_count))
        n = int(found.rigid_contact_count.numpy()[0])
        order, swap = self.rng.permutation(n), self.rng.uniform(size=n) < 0.5
        self.contacts = rearranged(self.model, found, order, swap)
        self.solver.step(self.state, self.state, None, self.contacts, DT)


def handed(rng, turning: float = 0.0, worlds: int = 3) -> Handed:
    simulation = Handed(worlds_of([heap(rng, turning) for _ in range(worlds)]))
    simulation.rng = rng
    return simulation


@pytest.mark.slow
@pytest.mark.parametrize("turning", [0.0, 0.01])
def test_forces_of_a_list_change_the_momentum_of_each_body(rng, turning):
    """m (v' - v) = dt (sum f + m g) and I (w' - w) = dt sum t."""
    simulation = handed(rng, turning)
    for _ in range(3):
        for _ in range(50):
            simulation.step()
        before = simulation.velocities.reshape(-1, 6)
        simulation.step()
        after, poses = simulation.velocities.reshape(-1, 6), simulation.poses.reshape(-1, 7)
        listed = simulation.listed()
        check_momentum(simulation.model, listed, before, after, poses)
    assert listed.count > 20 and (np.linalg.norm(listed.force, axis=1) > 0.1 * GRAVITY).sum() > 10


@pytest.mark.slow
def test_sums_over_a_list_are_the_forces_on_shapes_and_of_sensors(rng):
    simulation = handed(rng, worlds=2)
    for _ in range(150):
        simulation.step()
    listed, model = simulation.listed(), simulation.model
    total = np.zeros((model.shape_count, 3))
    np.add.at(total, listed.shape0, listed.force)
    np.add.at(total, listed.shape1, -listed.force)
    moving = model.shape_body.numpy() >= 0
    forces = simulation.solver.contact_forces().numpy()
    atol = 1.0e-5 * np.abs(forces).max()
    np.testing.assert_allclose(np.where(moving[:, None], total, 0.0), forces, atol=atol)
    sensor = SensorContact(model, sensing_bodies="*")
    sensor.update(simulation.state, simulation.contacts)
    felt = np.zeros((model.body_count, 3))
    np.add.at(felt, model.shape_body.numpy()[moving], total[moving])
    np.testing.assert_allclose(sensor.total_force.numpy(), felt, atol=atol)


@pytest.mark.slow
def test_contacts_that_are_not_used_have_no_force(rng):
    """Those beyond the places of a shape, and those of shapes that a filter keeps apart."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    body = builder.add_body(xform=(0, 0, 0.1, 0, 0, 0, 1))
    builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    simulation = Handed(worlds_of([builder]))
    contacts, model = simulation.model.contacts(40), simulation.model
    for _ in range(100):
        found = model.collide(simulation.state, model.contacts(40))
        order = np.tile(np.arange(4), 9)
        contacts = rearranged(model, found, order, np.zeros(36, dtype=bool))
        simulation.solver.step(simulation.state, simulation.state, None, contacts, DT)
    simulation.solver.update_contacts(contacts)
    listed, unused = Listed(contacts), simulation.solver.unused_contacts()
    used = (listed.wrench != 0.0).any(axis=1)
    assert unused > 0 and used.sum() <= 36 - unused
    mass = model.body_mass.numpy()[0]
    np.testing.assert_allclose(listed.force.sum(axis=0), [0, 0, -mass * GRAVITY], atol=1.0e-3 * mass * GRAVITY)


@pytest.mark.slow
def test_only_the_list_of_the_last_step_gets_forces(rng):
    simulation = handed(rng, worlds=1)
    simulation.step()
    solver, model = simulation.solver, simulation.model
    with pytest.raises(ValueError, match="list"):
        solver.update_contacts(model.contacts())
    solver.update_contacts(simulation.contacts)
    model.shape_material_mu_torsional.fill_(0.01)
    solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)  # contacts get three more rows
    with pytest.raises(ValueError, match="step"):
        solver.update_contacts(simulation.contacts)
    simulation.step()
    solver.update_contacts(simulation.contacts)
    solver.step(simulation.state, simulation.state, None, None, DT)
    solver.update_contacts(model.contacts())


@pytest.mark.slow
def test_forces_after_an_edit_of_shapes(rng):
    """The edit gives the solver new memory, for lists too; until the next step there are no forces."""
    simulation = handed(rng, worlds=1)
    simulation.step()
    solver, model = simulation.solver, simulation.model
    flags = model.shape_flags.numpy()
    flags[int(np.argmax(model.shape_body.numpy() >= 0))] &= ~int(ShapeFlags.COLLIDE_SHAPES)
    model.shape_flags.assign(flags)
    solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    with pytest.raises(ValueError, match="call step with the list again"):
        solver.update_contacts(simulation.contacts)
    for force in (solver.contact_forces(), solver.loop_forces(), solver.tendon_forces(), solver.coupling_forces()):
        assert not force.numpy().any()
    for _ in range(100):
        simulation.step()
    solver.update_contacts(simulation.contacts)
    assert simulation.contacts.force.numpy().any()
    assert solver.contact_forces().numpy().any()


@pytest.mark.slow
def test_a_list_without_forces_is_named(rng):
    from tests.support.simulate import Simulation

    simulation = Simulation(worlds_of([heap(rng, 0.0)]), DT)
    contacts = simulation.model.collide(simulation.state)
    simulation.solver.step(simulation.state, simulation.state, None, contacts, DT)
    with pytest.raises(ValueError, match="request_contact_attributes"):
        simulation.solver.update_contacts(contacts)
    assert simulation.solver.contact_forces().shape == (simulation.model.shape_count,)
