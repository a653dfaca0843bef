"""Links of a few grams under drives that are stiff for them: one sub-step cannot close the gaps that such drives open."""

import numpy as np
import pytest

import newton_like as nl
from tests.solvers.xpbd.scenes import energies, started, xpbd

WORLDS = 32
STIFFNESS = 100.0


def light_chains(rng, links: int) -> nl.ModelBuilder:
    """Chains of hinges about random axes on the world, one a world, of links of 1.5 to 3 g with moments of inertia of 1e-6 kg m^2."""
    builder = nl.ModelBuilder()
    for _ in range(WORLDS):
        world, joints, parent = nl.ModelBuilder(), [], -1
        for _ in range(links):
            moments = 1e-6 * rng.uniform(0.5, 1.0, size=3)
            place = 0.02 * rng.normal(size=3)
            link = world.add_link(mass=0.003 * rng.uniform(0.5, 1.0), com=tuple(place), inertia=np.diag(moments))
            axis = rng.normal(size=3)
            frame = (*0.04 * rng.normal(size=3), 0.0, 0.0, 0.0, 1.0)
            joint = world.add_joint_revolute(
                parent, link, axis=tuple(axis / np.linalg.norm(axis)), parent_xform=frame, target_ke=STIFFNESS
            )
            joints.append(joint)
            parent = link
        world.add_articulation(joints)
        builder.add_world(world)
    return builder


@pytest.mark.parametrize("dt", [1 / 240, 1 / 7680])
def test_stiff_drives_give_light_links_no_more_energy_than_they_have(dt, rng):
    """Drives are implicit springs without damping, which lose energy: kinetic energy and that of the springs never exceed the start.
    With the shorter steps, drives turn links by a tenth of a radian in a sub-step, so that it is not their stiffness which holds them."""
    model = light_chains(rng, 3).finalize("cpu")
    state, control = started(model, 0.5 * rng.normal(size=model.joint_coord_count)), model.control()
    goal = state.joint_q.numpy() + 0.15 * rng.normal(size=model.joint_coord_count)
    control.joint_target_q.assign(goal)
    solver = xpbd(model)

    def energy() -> np.ndarray:
        of_springs = 0.5 * STIFFNESS * (state.joint_q.numpy() - goal) ** 2
        return (energies(model, state) + of_springs).reshape(WORLDS, -1).sum(axis=1)

    first, found = energy(), []
    for _ in range(240):
        solver.step(state, state, control, None, dt)
        found.append(energy())
    assert np.isfinite(found).all()
    # passes that have not converged: 1.002 with the shorter step and 1.1 with the other one in 20 drawn sets of 32
    assert (np.max(found, axis=0) / first).max() < 1.5
