"""Contacts: rest, sliding, rebounds, stacks, ratios of masses."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like.types import BodyFlags
from tests.solvers.xpbd.scenes import after, started, xpbd

GRAVITY = 9.81


def boxes(places, mu: float = 0.5, masses=None, half: float = 0.1, **options) -> nl.ModelBuilder:
    builder = nl.ModelBuilder()
    builder.default_shape_cfg.mu = mu
    builder.add_ground_plane()
    for i, place in enumerate(places):
        body = builder.add_body(xform=(*place, 0, 0, 0, 1))
        mass = 1.0 if masses is None else masses[i]
        cfg = nl.ShapeConfig(mu=mu, density=mass / (8 * half**3), **options)
        builder.add_shape_box(body, hx=half, hy=half, hz=half, cfg=cfg)
    return builder


def test_a_sliding_box_stops_where_coulomb_says(rng):
    """The way is v^2 / (2 mu g), with an error of first order."""
    mu, speed = 0.4, 2.0
    model = boxes([(0, 0, 0.1)], mu).finalize("cpu")
    errors = []
    for substeps in (4, 16):
        state = started(model, joint_qd=[speed, 0, 0, 0, 0, 0])
        after(xpbd(model, substeps=substeps), state, 1.0, 1 / 240)
        errors.append(abs(state.body_q.numpy()[0, 0] - speed**2 / (2 * mu * GRAVITY)))
        assert abs(state.body_qd.numpy()).max() < 1e-3
    assert errors[0] < 5e-3
    assert errors[1] < 0.6 * errors[0] + 2e-4


@pytest.mark.parametrize("mu", [0.3, 0.8])
def test_friction_holds_up_to_its_cone(mu, rng):
    """On a slope of 0.5 rad a box rests if mu > tan(0.5) = 0.55, and else slides with g (sin - mu cos)."""
    model = boxes([(0, 0, 0.1)], mu).finalize("cpu")
    model.set_gravity((GRAVITY * np.sin(0.5), 0.0, -GRAVITY * np.cos(0.5)))
    state = after(xpbd(model), started(model), 0.5, 1 / 240)
    expected = max(0.0, 0.5 * GRAVITY * (np.sin(0.5) - mu * np.cos(0.5)))
    assert state.body_qd.numpy()[0, 0] == pytest.approx(expected, rel=1e-2, abs=2e-3)


@pytest.mark.parametrize("restitution", [0.0, 0.5, 0.9])
def test_a_ball_rebounds_by_its_restitution(restitution, rng):
    builder = nl.ModelBuilder()
    builder.add_ground_plane(cfg=nl.ShapeConfig(restitution=restitution))
    ball = builder.add_body(xform=(0, 0, 1.1, 0, 0, 0, 1))
    builder.add_shape_sphere(ball, radius=0.1, cfg=nl.ShapeConfig(restitution=restitution))
    model = builder.finalize("cpu")
    state, solver = started(model), xpbd(model)
    after(solver, state, np.sqrt(2 / GRAVITY) + 0.02, 1 / 240)
    heights = [0.0]
    for _ in range(200):
        solver.step(state, state)
        heights.append(state.body_q.numpy()[0, 2] - 0.1)
    assert max(heights) == pytest.approx(restitution**2, abs=2e-2)


def test_a_row_of_touching_balls_rebounds_by_newtons_law(rng):
    """The first ball hits four at rest with a restitution of 1: all contacts have it at once, and the energy stays. Balls that
    rebound in another world change no bit."""
    row, falling = nl.ModelBuilder(), nl.ModelBuilder()
    cfg = nl.ShapeConfig(mu=0.0, restitution=1.0)
    for x in (-0.3, 0.2, 0.4, 0.6, 0.8):
        row.add_shape_sphere(row.add_body(xform=(x, 0, 0, 0, 0, 0, 1)), radius=0.1, cfg=cfg)
    for z in (0.2, 0.43):
        falling.add_shape_sphere(falling.add_body(xform=(0, 0, z, 0, 0, 0, 1)), radius=0.1, cfg=cfg)
    falling.add_ground_plane(cfg=cfg)
    results = []
    for worlds in ([row], [row, falling]):
        builder = nl.ModelBuilder()
        for world in worlds:
            builder.add_world(world)
        model = builder.finalize("cpu")
        for world in range(len(worlds)):
            model.set_gravity((0.0, 0.0, -9.81 * world), world)
        state, solver = started(model, joint_qd=[1.5, *np.zeros(model.joint_dof_count - 1)]), xpbd(model)
        after(solver, state, 0.5, 1 / 240)
        results.append(np.concatenate([state.body_q.numpy()[:5], state.body_qd.numpy()[:5]], axis=1))
    speeds = results[0][:, 7]
    np.testing.assert_allclose(speeds, [-0.9, 0.6, 0.6, 0.6, 0.6], atol=2e-3)
    assert (speeds**2).sum() == pytest.approx(1.5**2, rel=2e-3)
    assert np.array_equal(*results)


def test_a_ball_rebounds_the_same_beside_a_box_that_lands_at_the_same_time(rng):
    """Further passes over the four points of the box, in another world, change no bit of the ball, which has one point."""
    cfg = nl.ShapeConfig(mu=0.5, restitution=rng.uniform(0.6, 0.9))
    ball, box, start = nl.ModelBuilder(), nl.ModelBuilder(), (0, 0, rng.uniform(0.4, 0.8), 0, 0, 0, 1)
    ball.add_shape_sphere(ball.add_body(xform=start), radius=0.1, cfg=cfg)
    box.add_shape_box(box.add_body(xform=start), hx=0.1, hy=0.1, hz=0.1, cfg=cfg)
    paths = []
    for worlds in ([ball], [ball, box]):
        builder = nl.ModelBuilder()
        builder.add_ground_plane(cfg=cfg)
        for world in worlds:
            builder.add_world(world)
        model = builder.finalize("cpu")
        solver, state = xpbd(model), started(model, joint_qd=np.tile([1.0, 0, 0, 0, 0, 0], len(worlds)))
        paths.append([])
        for _ in range(240):
            solver.step(state, state)
            paths[-1].append(state.body_qd.numpy()[0].copy())
    assert np.array_equal(*paths)


def test_contacts_on_one_body_are_found_again_in_short_chains(rng):
    """Contacts look for those of the step before in chains. With one chain a body, the time of a step would grow with the square of the
    number of balls on a kinematic plate."""
    builder = nl.ModelBuilder()
    plate = builder.add_body(mass=1.0, inertia=np.eye(3))
    builder.add_shape_box(plate, hx=9.0, hy=9.0, hz=0.1)
    builder.body_flags[plate] = int(BodyFlags.KINEMATIC)
    for x in range(15):
        for y in range(15):
            ball = builder.add_body(xform=(0.22 * x, 0.22 * y, 0.2, 0, 0, 0, 1))
            builder.add_shape_sphere(ball, radius=rng.uniform(0.09, 0.1))
    model = builder.finalize("cpu")
    solver, state = xpbd(model), started(model)
    for _ in range(60):
        solver.step(state, state)
    lists = solver._lists
    first, following = (lists["fixed"][f"kept_{name}"].numpy() for name in ("head", "next"))
    lengths = np.zeros(len(first), dtype=int)
    for i, k in enumerate(first.tolist()):
        while k >= 0:
            lengths[i], k = lengths[i] + 1, int(following[k])
    assert lengths.sum() >= 225 and lengths.max() < 15


def test_restitution_may_be_turned_off_and_on(rng):
    """A ball of restitution 0.8 stays down while rebounds are off."""
    builder = nl.ModelBuilder()
    builder.add_ground_plane(cfg=nl.ShapeConfig(restitution=0.8))
    ball = builder.add_body(xform=(0, 0, 0.3, 0, 0, 0, 1))
    builder.add_shape_sphere(ball, radius=0.1, cfg=nl.ShapeConfig(restitution=0.8))
    model = builder.finalize("cpu")
    solver, highest = xpbd(model, enable_restitution=False), []
    for enabled in (False, True, False):
        solver.enable_restitution = enabled
        state = started(model)
        solver.reset(state)
        after(solver, state, np.sqrt(0.4 / GRAVITY) + 0.02, 1 / 240)
        highest.append(max(after(solver, state, 1 / 240, 1 / 240).body_q.numpy()[0, 2] for _ in range(60)) - 0.1)
    assert highest[0] < 1e-3 and highest[2] < 1e-3
    assert highest[1] == pytest.approx(0.8**2 * 0.2, rel=0.15)


@pytest.mark.slow
def test_ten_boxes_stand(rng):
    places = [(0.002 * (-1) ** i, 0.002 * rng.normal(), 0.1 + 0.2 * i) for i in range(10)]
    model = boxes(places).finalize("cpu")
    state = after(xpbd(model), started(model), 3.0, 1 / 240)
    moved = state.body_q.numpy()[:, :3] - np.array(places)
    assert abs(moved).max() < 2e-3
    assert abs(state.body_qd.numpy()).max() < 2e-3


def test_a_light_box_carries_one_of_a_hundred_times_its_mass(rng):
    places = [(0.0, 0.0, 0.1), (0.003, -0.002, 0.3)]
    model = boxes(places, masses=(1.0, 100.0)).finalize("cpu")
    state = after(xpbd(model), started(model), 2.0, 1 / 240)
    moved = state.body_q.numpy()[:, :3] - np.array(places)
    assert abs(moved).max() < 4e-3
    assert abs(state.body_qd.numpy()).max() < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize(("boxes_below", "time_constant", "sinks"), [(5, 0.001, 0.011), (9, 0.0005, 0.0055)])
def test_a_tower_of_light_boxes_carries_a_heavy_one(boxes_below, time_constant, sinks, rng):
    """The tower is an elastic column: with nine boxes and the default softness it gives way sideways, see docs/maximal.md."""
    places, masses = [(0, 0, 0.1 + 0.2 * i) for i in range(boxes_below + 1)], (*[1.0] * boxes_below, 100.0)
    model = boxes(places, masses=masses, time_constant=time_constant).finalize("cpu")
    state = after(xpbd(model), started(model), 6.0, 1 / 240)
    moved = state.body_q.numpy()[:, :3] - places
    assert abs(moved[:, :2]).max() < 1e-3
    assert -sinks < moved[:, 2].min() < -0.5 * sinks
    assert abs(state.body_qd.numpy()).max() < 5e-3


@pytest.mark.parametrize("mass", [10.0, 40.0])
def test_a_heavy_box_that_falls_on_a_light_one_does_not_rebound(mass, rng):
    """Kept impulses would throw it up, at 1.1 and 1.4 m/s."""
    model = boxes([(0.0, 0.0, 0.1), (0.0, 0.0, 0.7)], masses=(1.0, mass)).finalize("cpu")
    solver, state, speeds = xpbd(model), started(model), []
    for _ in range(120):
        speeds.append(after(solver, state, 1 / 240, 1 / 240).body_qd.numpy()[1, 2])
    assert min(speeds) < -2.5
    assert max(speeds) < 0.6
    assert after(solver, state, 0.5, 1 / 240).body_q.numpy()[1, 2] == pytest.approx(0.3, abs=3e-3)


def test_lists_of_the_user_act_like_those_that_the_solver_finds(rng):
    model = boxes([(0, 0, 0.11), (0.05, 0, 0.32)]).finalize("cpu")
    one, two, contacts = started(model), started(model), model.contacts()
    after(xpbd(model), one, 0.25, 1 / 240)
    after(xpbd(model), two, 0.25, 1 / 240, contacts=contacts)
    assert np.array_equal(one.body_q.numpy(), two.body_q.numpy())


def test_an_empty_list_means_no_contacts(rng):
    model = boxes([(0, 0, 0.1)]).finalize("cpu")
    state, solver = started(model), xpbd(model)
    contacts = model.contacts()
    for _ in range(24):
        solver.step(state, state, contacts=contacts)
    assert state.body_q.numpy()[0, 2] == pytest.approx(0.1 - 0.5 * GRAVITY * 0.01, rel=1e-3)


@pytest.mark.parametrize("count", [0, 1])
def test_kept_impulses_outlast_a_smaller_list(count, rng):
    """The capacity of a list changes nothing: kept impulses of a large list stay in memory while a small list is used."""
    model = boxes([(0, 0, 0.1), (0.05, 0, 0.3), (0.5, 0, 0.1), (0.5, 0.05, 0.3)]).finalize("cpu")
    found = []
    for room in (1, None):
        state, solver, contacts = started(model), xpbd(model), model.contacts()
        after(solver, state, 0.1, 1 / 240, contacts=contacts)
        model.collide(state, contacts)
        few = model.contacts(rigid_contact_max=room) if room else model.contacts()
        for name in ("shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1"):
            whole = getattr(contacts, f"rigid_contact_{name}")
            wp.copy(getattr(few, f"rigid_contact_{name}"), whole, count=1)
        few.rigid_contact_count.fill_(count)
        for _ in range(2):
            solver.step(state, state, contacts=few)
            for bank in solver._lists["banks"]:
                assert bank["start"].numpy()[-1] <= min(
                    bank[name].size for name in ("shape0", "shape1", "point", "force")
                )
        after(solver, state, 0.1, 1 / 240, contacts=contacts)
        found.append(np.vstack([state.body_q.numpy(), np.pad(state.body_qd.numpy(), ((0, 0), (0, 1)))]))
    assert np.isfinite(found[0]).all()
    assert np.array_equal(*found)


def test_new_contacts_share_the_impulse_of_an_old_one(rng):
    """A box that rests on one contact below its centre stays at rest on its four corners."""
    model = boxes([(0, 0, 0.1)]).finalize("cpu")
    state, solver, corners = started(model), xpbd(model, iterations=1, substeps=1), model.contacts()
    model.collide(state, corners)
    assert corners.rigid_contact_count.numpy()[0] == 4
    centre = model.contacts()
    for name in ("shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1"):
        numbers = getattr(corners, f"rigid_contact_{name}").numpy().copy()
        numbers[0] = numbers[:4].mean(axis=0)
        getattr(centre, f"rigid_contact_{name}").assign(numbers)
    centre.rigid_contact_count.fill_(1)
    for _ in range(120):
        solver.step(state, state, contacts=centre)
    solver.step(state, state, contacts=corners)
    # one pass does not converge: four times the impulse of the weight, 1/24 m/s, would move the box
    assert abs(state.body_qd.numpy()).max() < 1e-3


@pytest.mark.slow
def test_overlaps_are_pushed_out_slowly(rng):
    """A box that starts 2 cm deep comes out without a jump."""
    model = boxes([(0, 0, 0.08)]).finalize("cpu")
    state, solver, heights = started(model), xpbd(model), []
    for _ in range(480):
        solver.step(state, state)
        heights.append(state.body_q.numpy()[0, 2])
    assert max(heights) < 0.101
    assert heights[-1] > 0.0995


def test_impacts_of_links_with_rotors_add_no_energy(rng):
    """A rod on a hinge with a heavy rotor falls with its tip on the ground, without restitution, at various parts of a step."""
    builder = nl.ModelBuilder()
    for angle in rng.uniform(0.2, 0.25, 32):
        world = nl.ModelBuilder()
        world.add_ground_plane()
        rod = world.add_link(mass=0.1, com=(0.3, 0, 0), inertia=0.001 * np.eye(3))
        place = (0, 0, 0.3, 0, 0, 0, 1)
        world.add_articulation([world.add_joint_revolute(-1, rod, axis=(0, 1, 0), parent_xform=place, armature=0.1)])
        world.add_shape_sphere(rod, xform=(0.6, 0, 0, 0, 0, 0, 1), radius=0.05, cfg=nl.ShapeConfig(density=0.0, mu=0.0))
        world.joint_q[0], world.joint_qd[0] = angle, 2.0
        builder.add_world(world)
    model = builder.finalize("cpu")
    solver, state, speeds = xpbd(model), started(model), []
    for _ in range(60):
        solver.step(state, state, dt=1 / 240)
        speeds.append(state.joint_qd.numpy().copy())
    speeds = np.array(speeds)
    assert (speeds.max(axis=0) > 2.0).all() and (speeds.min(axis=0) < 0.1).all()
    assert (-speeds.min(axis=0) < 0.9 * speeds.max(axis=0)).all()
