"""Forces of contacts: balance of momentum, lists, sensors, articulations."""

import numpy as np
import pytest

import newton_like as nl
from newton_like.articulation import Articulation, SimulationContext
from newton_like.sensors import SensorContact
from tests.solvers.xpbd.scenes import after, masses, started, xpbd

GRAVITY = 9.81


def pile(rng, worlds: int = 1) -> nl.ModelBuilder:
    """Two boxes that fall on each other and on the ground."""
    world = nl.ModelBuilder()
    for i in range(2):
        turn = rng.normal(size=4)
        body = world.add_body(xform=(0.03 * i, 0, 0.25 + 0.45 * i, *(turn / np.linalg.norm(turn))), label=f"box_{i}")
        world.add_shape_box(body, hx=0.1, hy=0.12, hz=0.08)
    scene = nl.ModelBuilder()
    scene.add_ground_plane(label="ground")
    scene.replicate(world, worlds)
    return scene


def total(model, contacts) -> np.ndarray:
    """The force on each body, and the torque about its centre of mass on the bodies of first shapes, ``[bodies, 6]``."""
    count = int(contacts.rigid_contact_count.numpy()[0])
    out = np.zeros((model.body_count + 1, 6))
    body = model.shape_body.numpy()
    one, two = (body[getattr(contacts, f"rigid_contact_shape{k}").numpy()[:count]] for k in (0, 1))
    force = contacts.force.numpy()[:count].astype(float)
    np.add.at(out, one, force)
    np.add.at(out[:, :3], two, -force[:, :3])
    return out[:-1]


@pytest.mark.parametrize("handed", [False, True])
def test_forces_change_the_momentum(handed, rng):
    """The forces of a step, with gravity, times the time step are the change of the momentum of each body."""
    model = pile(rng).finalize("cpu")
    model.request_contact_attributes("force")
    solver, state, contacts = xpbd(model), started(model), model.contacts()
    most = 0.0
    for _ in range(120):
        before = state.body_qd.numpy()[:, :3].astype(float)
        if handed:
            model.collide(state, contacts)
        solver.step(state, state, None, contacts if handed else None)
        solver.update_contacts(contacts, state)
        change = masses(model)[:, None] * (state.body_qd.numpy()[:, :3] - before)
        weight = masses(model)[:, None] * [0.0, 0.0, -GRAVITY]
        force = total(model, contacts)[:, :3]
        most = max(most, np.linalg.norm(force))
        # rounding of velocities of 3 m/s and of impulses of 8 sub-steps, in single precision
        assert change == pytest.approx((force + weight) / 240, abs=2e-5)
    # the boxes fell on something
    assert most > 2.0 * GRAVITY * masses(model).sum()


@pytest.mark.slow
def test_sensors_weigh_a_tower(rng):
    world = nl.ModelBuilder()
    for i in range(3):
        box = world.add_body(xform=(0, 0, 0.1 + 0.2 * i, 0, 0, 0, 1), label=f"box_{i}")
        world.add_shape_box(box, hx=0.1, hy=0.1, hz=0.1)
    scene = nl.ModelBuilder()
    scene.add_ground_plane(label="ground")
    scene.replicate(world, 3)
    model = scene.finalize("cpu")
    sensor = SensorContact(model, sensing_bodies="box_*", counterpart_bodies="box_*")
    solver, state, contacts = xpbd(model), started(model), model.contacts()
    after(solver, state, 1.0, 1 / 240)
    solver.update_contacts(contacts, state)
    sensor.update(state, contacts)
    weight = GRAVITY * masses(model)[0]
    # at rest, up to what two iterations leave
    assert sensor.total_force.numpy().reshape(3, 3, 3)[..., 2] == pytest.approx(weight, rel=2e-2)
    assert sensor.force_matrix.numpy().reshape(3, 3, 3, 3)[:, 1, 0, 2] == pytest.approx(2.0 * weight, rel=2e-2)


def test_lists_without_forces_are_told(rng):
    model = pile(rng).finalize("cpu")
    solver, state, contacts = xpbd(model), started(model), model.contacts()
    solver.update_contacts(contacts)
    assert contacts.rigid_contact_count.numpy()[0] == 0
    solver.step(state, state)
    with pytest.raises(ValueError, match="request_contact_attributes"):
        solver.update_contacts(contacts)
    model.request_contact_attributes("force")
    model.collide(state, contacts := model.contacts())
    solver.step(state, state, None, contacts)
    with pytest.raises(ValueError, match="another list"):
        solver.update_contacts(model.contacts())


@pytest.mark.filterwarnings("ignore:.*nearly vanishes.*")
def test_articulations_read_forces_of_joints_and_contacts(rng):
    """The wrench of the joint that holds a pendulum at rest is its weight."""
    builder = nl.ModelBuilder()
    links, joints, parent = [], [], -1
    for i in range(2):
        link = builder.add_link(mass=1.0 + i, com=(0, 0, -0.2), inertia=0.02 * np.eye(3), label=f"link_{i}")
        at = (0, 0, -0.4 if i else 0.0, 0, 0, 0, 1)
        joints.append(builder.add_joint_revolute(parent, link, axis=(0, 1, 0), parent_xform=at, label=f"hinge_{i}"))
        links.append(link)
        parent = link
    builder.add_articulation(joints, label="arm")
    model = builder.finalize("cpu")
    sim = SimulationContext(model, solver=xpbd(model))
    arm = Articulation(sim, "arm")
    for _ in range(5):
        sim.step()
        arm.update(sim.dt)
    wrench = arm.data.body_incoming_joint_wrench_b.numpy()[0]
    assert wrench[:, 2] == pytest.approx([3.0 * GRAVITY, 2.0 * GRAVITY], rel=1e-4)
