"""Edits of a model between steps: the numbers are taken over where they stand, and all others stay."""

import numpy as np
import pytest

import newton_like as nl
from newton_like.solvers import SolverXPBD
from newton_like.types import ModelFlags
from tests.solvers.xpbd.scenes import after, started, xpbd

WORLDS = 20


def arms():
    """In each world an arm of two links on a rail, and a box on the ground."""
    world = nl.ModelBuilder()
    links = [world.add_link(mass=1.0, com=(0.2, 0, 0.05), inertia=0.02 * np.eye(3)) for _ in range(3)]
    joints = [
        world.add_joint_prismatic(-1, links[0], axis=(1, 0, 0), parent_xform=(0, 0, 1.5, 0, 0, 0, 1), damping=0.1)
    ]
    for k in (1, 2):
        place = (0.4, 0, 0, 0, 0, 0, 1)
        joints.append(world.add_joint_revolute(links[k - 1], links[k], axis=(0, 1, 0), parent_xform=place, damping=0.1))
    world.add_articulation(joints)
    box = world.add_body(xform=(3, 0, 0.1, 0, 0, 0, 1))
    world.add_shape_box(box, hx=0.1, hy=0.1, hz=0.1)
    scene = nl.ModelBuilder()
    scene.replicate(world, WORLDS)
    scene.add_ground_plane()
    return scene.finalize("cpu")


def scaled(model, name: str, chosen, factor: float) -> None:
    array = getattr(model, name)
    numbers = array.numpy().copy().reshape(WORLDS, -1) if name != "shape_material_mu" else None
    if numbers is None:
        numbers = array.numpy().copy()
        numbers[:-1] = np.where(chosen, factor, 1.0).astype(numbers.dtype) * numbers[:-1]
        array.assign(numbers)
        return
    numbers[chosen] *= factor
    array.assign(numbers.reshape(array.numpy().shape))


EDITS = {
    "masses": (ModelFlags.BODY_INERTIAL_PROPERTIES, ("body_mass", "body_inertia")),
    "centres of mass": (ModelFlags.BODY_INERTIAL_PROPERTIES, ("body_com",)),
    "gains": (ModelFlags.JOINT_DOF_PROPERTIES, ("joint_damping",)),
    "friction": (ModelFlags.SHAPE_PROPERTIES, ("shape_material_mu",)),
    "everything": (ModelFlags.ALL, ("body_mass", "body_inertia", "joint_damping")),
}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("edit", EDITS)
def test_edits_act_as_in_a_new_solver(edit, masked, rng, monkeypatch):
    """The tables are not built again, and the bits of the next steps are those of a solver of the edited model."""
    flags, names = EDITS[edit]
    model, chosen = arms(), rng.random(WORLDS) < 0.3
    speed = rng.normal(size=model.joint_dof_count)
    solver, state = xpbd(model), started(model, joint_qd=speed)
    after(solver, state, 0.05, 1 / 240)
    before = state.body_q.numpy().tobytes()
    for name in names:
        scaled(model, name, chosen if masked else np.ones(WORLDS, dtype=bool), 1.7)
    monkeypatch.setattr(SolverXPBD, "_build", lambda self: pytest.fail("the tables are built again"))
    solver.notify_model_changed(flags, chosen if masked else None)
    monkeypatch.undo()
    found = []
    for each in (solver, xpbd(model)):
        each.forget()
        state = started(model, joint_qd=speed)
        after(each, state, 0.1, 1 / 240)
        found.append(state.body_q.numpy().tobytes() + state.body_qd.numpy().tobytes())
    assert found[0] == found[1] and before not in found


def test_edits_keep_the_impulses_of_contacts(rng):
    """A tower at rest does not feel that a number of its joints or shapes is written anew."""
    builder = nl.ModelBuilder()
    builder.add_ground_plane()
    for i in range(6):
        box = builder.add_body(xform=(0, 0, 0.1 + 0.2 * i, 0, 0, 0, 1))
        builder.add_shape_box(box, hx=0.1, hy=0.1, hz=0.1)
    model = builder.finalize("cpu")
    solver, state = xpbd(model), started(model)
    after(solver, state, 1.0, 1 / 240)
    for flags in (ModelFlags.SHAPE_PROPERTIES, ModelFlags.JOINT_DOF_PROPERTIES, ModelFlags.BODY_INERTIAL_PROPERTIES):
        rest = abs(state.body_qd.numpy()).max()
        solver.notify_model_changed(flags)
        solver.step(state, state)
        assert abs(state.body_qd.numpy()).max() < 2.0 * rest + 1e-4


def test_edits_that_change_the_order_build_the_tables_again(rng):
    """A joint that is disabled lets go; a mass of zero is refused by name, and comes back at the next step."""
    model = arms()
    solver, state = xpbd(model), started(model)
    solver.step(state, state)
    enabled = model.joint_enabled.numpy().copy()
    enabled[2] = False
    model.joint_enabled.assign(enabled)
    solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
    height = state.body_q.numpy()[2, 2]
    after(solver, state, 0.2, 1 / 240)
    assert state.body_q.numpy()[2, 2] == pytest.approx(height - 0.5 * 9.81 * 0.2**2, abs=0.03)
    inertia = model.body_inertia.numpy().copy()
    inertia[5] = np.diag([0.01, 0.01, 0.0])
    model.body_inertia.assign(inertia)
    for call in (
        lambda: solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES),
        lambda: solver.step(state, state),
    ):
        with pytest.raises(ValueError, match=r"index 5\b.*inertia"):
            call()
