"""Bodies on a flat face of several contact points: they slide, land and rebound without turning."""

import numpy as np
import pytest

import newton_like as nl
from tests.solvers.xpbd.scenes import after, started, xpbd

GRAVITY, HALF = 9.81, 0.1
KINDS = ("box", "cylinder", "cone", "hull")


def prism(sides: int = 6, radius: float = 0.1) -> nl.Mesh:
    turn = 2.0 * np.pi * np.arange(sides) / sides
    rim = np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1)
    points = np.vstack([np.column_stack([rim, np.full(sides, z)]) for z in (-HALF, HALF)])
    faces = [(0, i + 1, i) for i in range(1, sides - 1)] + [
        (sides, sides + i, sides + i + 1) for i in range(1, sides - 1)
    ]
    for i in range(sides):
        j = (i + 1) % sides
        faces += [(i, j, sides + i), (j, sides + j, sides + i)]
    return nl.Mesh(points.astype(np.float32), np.array(faces, dtype=np.int32).ravel())


def bodies(height: float = HALF, **material):
    """A body of each kind, one a world, with its face on or above a plane."""
    scene, config = nl.ModelBuilder(), nl.ShapeConfig(**material)
    scene.add_ground_plane(cfg=config)
    for kind in KINDS:
        world = nl.ModelBuilder()
        body = world.add_body(xform=(0, 0, height, 0, 0, 0, 1))
        if kind == "box":
            world.add_shape_box(body, hx=0.15, hy=0.1, hz=HALF, cfg=config)
        elif kind == "hull":
            world.add_shape_convex_hull(body, mesh=prism(), cfg=config)
        else:
            getattr(world, f"add_shape_{kind}")(body, radius=0.1, half_height=HALF, cfg=config)
        scene.add_world(world)
    return scene.finalize("cpu")


def turned(model, angles, velocity=(0.0, 0.0, 0.0)) -> tuple[np.ndarray, np.ndarray]:
    """Joint coordinates of bodies that are turned about the vertical, and their velocities."""
    q = model.joint_q.numpy().reshape(-1, 7).copy()
    q[:, 5], q[:, 6] = np.sin(0.5 * angles), np.cos(0.5 * angles)
    qd = np.zeros((len(q), 6))
    qd[:, :3] = velocity
    return q.ravel(), qd.ravel()


def turns(state, angles) -> np.ndarray:
    """By how much bodies have turned about the vertical [rad]."""
    q = state.body_q.numpy().astype(float)
    found = 2.0 * np.arctan2(q[:, 5], q[:, 6]) - angles
    return (found + np.pi) % (2.0 * np.pi) - np.pi


def test_a_body_that_slides_on_a_face_does_not_turn(rng):
    """Friction is opposite to the slip at all points, whatever the direction: the way is v^2 / (2 mu g), and no moment acts."""
    mu, speed, course = 0.5, 2.0, rng.uniform(0.0, 2.0 * np.pi)
    model, angles = bodies(mu=mu), rng.uniform(-np.pi, np.pi, len(KINDS))
    along = np.array([np.cos(course), np.sin(course)])
    state = started(model, *turned(model, angles, (*(speed * along), 0.0)))
    after(xpbd(model), state, 1.0, 1 / 240)
    assert abs(state.body_qd.numpy()).max() < 1e-3
    assert abs(turns(state, angles)).max() < 2e-3
    way = state.body_q.numpy()[:, :2]
    assert np.abs(way - speed**2 / (2.0 * mu * GRAVITY) * along).max() < 5e-3


def test_a_body_that_lands_on_a_face_stands_still(rng):
    """All points of a face take the impact, not one after the other."""
    height = 0.3
    model, angles = bodies(HALF + height), rng.uniform(-np.pi, np.pi, len(KINDS))
    state, solver, fastest = started(model, *turned(model, angles)), xpbd(model), 0.0
    after(solver, state, np.sqrt(2.0 * height / GRAVITY) - 2 / 240, 1 / 240)
    for _ in range(120):
        solver.step(state, state)
        fastest = max(fastest, abs(state.body_qd.numpy()[:, 3:]).max())
    # one pass leaves 1.4 to 2.8 rad/s
    assert fastest < 0.7
    assert abs(turns(state, angles)).max() < 5e-3
    assert abs(state.body_qd.numpy()).max() < 2e-3
    assert abs(state.body_q.numpy()[:, :3] - [0.0, 0.0, HALF]).max() < 2e-3


def test_a_body_that_rebounds_from_a_face_does_not_turn(rng):
    height, restitution = 0.3, 0.6
    model, angles = bodies(HALF + height, restitution=restitution), rng.uniform(-np.pi, np.pi, len(KINDS))
    state, solver = started(model, *turned(model, angles)), xpbd(model)
    after(solver, state, np.sqrt(2.0 * height / GRAVITY) + 4 / 240, 1 / 240)
    speed, spin = state.body_qd.numpy()[:, 2], state.body_qd.numpy()[:, 3:]
    # up to the gravity of five steps
    assert speed == pytest.approx(restitution * np.sqrt(2.0 * GRAVITY * height), abs=0.25)
    # one pass leaves 5 to 10 rad/s
    assert abs(spin).max() < 0.9


def test_bits_of_a_world_do_not_depend_on_impacts_in_others(rng):
    """Further passes over the contacts of an impact leave all other bodies as they are, also in the same lanes."""
    rest, found = [], []
    for falls in (False, True):
        scene = nl.ModelBuilder()
        scene.add_ground_plane()
        for k in range(16):
            world = nl.ModelBuilder()
            body = world.add_body(xform=(0, 0, HALF + (0.01 * k if falls and k % 2 else 0.0), 0, 0, 0, 1))
            world.add_shape_box(body, hx=0.1, hy=0.1, hz=HALF)
            scene.add_world(world)
        model = scene.finalize("cpu")
        state, solver = started(model), xpbd(model)
        for _ in range(60):
            solver.step(state, state)
            rest.append(state.body_q.numpy()[::2].tobytes() + state.body_qd.numpy()[::2].tobytes())
        found.append(rest)
        rest = []
    assert found[0] == found[1]
