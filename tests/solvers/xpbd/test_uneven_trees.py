"""Trees of joints whose links differ much in mass and size: passes over joints do not converge there, and must not add energy."""

import numpy as np
import pytest

import newton_like as nl
from tests.solvers.xpbd.scenes import energies, of_worlds, started, xpbd
from tests.support.random_trees import random_unit

# the solver warns of links as light as these
pytestmark = pytest.mark.filterwarnings("ignore:the moments of inertia of")

KINDS = ("fixed", "ball", "revolute", "prismatic")


def random_turn(rng) -> tuple:
    turn = rng.normal(size=4)
    return tuple(turn / np.linalg.norm(turn))


def add_tree(world, rng, kinds, place, links: int) -> None:
    """A floating tree of links of 1 cm to 0.5 m. The heaviest link has up to 25 times the mass of the lightest one."""
    added, joints, scale = [], [], 10.0 ** rng.uniform(-1.5, 1.0)
    for i in range(links):
        half = 0.5 * 10.0 ** rng.uniform(-2.0, np.log10(0.5)) * rng.uniform(0.4, 1.0, 3)
        link = world.add_link(xform=place)
        cfg = nl.ShapeConfig(density=scale * 25.0 ** rng.uniform() / (8.0 * half.prod()), mu=rng.uniform(0.0, 1.0))
        if rng.uniform() < 0.5:
            world.add_shape_box(link, hx=half[0], hy=half[1], hz=half[2], cfg=cfg)
        else:
            world.add_shape_capsule(link, radius=0.5 * half[0], half_height=half[2], cfg=cfg)
        if i == 0:
            joints.append(world.add_joint_free(link))
        else:
            parent, size = added[rng.integers(len(added))]
            near, far = (random_unit(rng) * s * rng.uniform(0.5, 1.1) for s in (size, half))
            ends = dict(parent_xform=(*near, *random_turn(rng)), child_xform=(*far, *random_turn(rng)))
            kind = kinds[rng.integers(len(kinds))]
            if kind in ("revolute", "prismatic"):
                ends["axis"] = tuple(random_unit(rng))
            if kind == "prismatic":
                ends.update(limit_lower=-0.05, limit_upper=0.05)
            joints.append(getattr(world, f"add_joint_{kind}")(parent, link, **ends))
        added.append((link, half))
    world.add_articulation(joints)


def kinetic(model, state) -> np.ndarray:
    """Kinetic energy of each world [J]."""
    still = model.state()
    still.body_q.assign(state.body_q)
    return of_worlds(model, energies(model, state) - energies(model, still))


def gaining(found: list, first: np.ndarray) -> int:
    """How many worlds become NaN or get more than 1.02 times the energy of the start."""
    return int((~(np.array(found) < 1.02 * first).all(axis=0)).sum())


@pytest.mark.parametrize("speed", [0.1, 3.0])
def test_trees_of_uneven_links_gain_no_energy(speed, rng):
    """Velocities that joints do not allow are those after an impact. Of 512 worlds at each speed, none and one gained energy; of 256 worlds
    with two equal passes over joints and gaps that close by half at least, 28 and 35."""
    scene = nl.ModelBuilder(gravity=0.0)
    for i in range(96):
        world = nl.ModelBuilder(gravity=0.0)
        add_tree(world, rng, KINDS[i % 4 : i % 4 + 1], (0, 0, 0, *random_turn(rng)), rng.integers(4, 9))
        scene.add_world(world)
    model = scene.finalize("cpu")
    state, solver, contacts = started(model), xpbd(model), model.contacts()
    start = state.body_qd.numpy()
    start[:, :3] = speed * rng.normal(size=(len(start), 3))
    state.body_qd.assign(start)
    first, found = kinetic(model, state), []
    for _ in range(120):
        solver.step(state, state, None, contacts, 1 / 240)
        found.append(kinetic(model, state))
    assert gaining(found, first) <= 3


@pytest.mark.slow
def test_trees_of_uneven_links_that_fall_gain_no_energy(rng):
    """Impacts reach the other links slowly, because passes over joints do not converge: kept impulses of contacts must wait for them.
    Of 960 worlds, two gained energy; with contacts that do not wait, 13 of 240."""
    scene = nl.ModelBuilder()
    for _ in range(64):
        world = nl.ModelBuilder()
        for i in range(rng.integers(1, 4)):
            x, y = 0.3 * rng.normal(size=2)
            place = (i + x, y, rng.uniform(0.7, 2.7), *random_turn(rng))
            add_tree(world, rng, KINDS, place, rng.integers(2, 8))
        scene.add_world(world)
    scene.add_ground_plane(cfg=nl.ShapeConfig(mu=0.8))
    model = scene.finalize("cpu")
    state, solver = started(model), xpbd(model)
    first, found = of_worlds(model, energies(model, state)), []
    for _ in range(240):
        solver.step(state, state, dt=1 / 240)
        found.append(of_worlds(model, energies(model, state)))
    assert gaining(found, first) <= 1
