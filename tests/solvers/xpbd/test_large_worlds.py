"""Worlds that several threads compute together."""

import numpy as np
import pytest
from newton_like.kernels.solvers.xpbd.team import SERIAL, share_start

import newton_like as nl
from newton_like.solvers.xpbd.colours import LAST
from newton_like.solvers.xpbd.teams import TEAM, joint_stages
from tests.solvers.xpbd.scenes import started, xpbd


def test_shares_cover_all_items_once(rng):
    for count, members in zip(rng.integers(0, 50, 20).tolist(), rng.integers(1, 9, 20).tolist(), strict=True):
        ends = [share_start.func(count, k, members) for k in range(members + 1)]
        assert ends[0] == 0 and ends[-1] == count
        sizes = np.diff(ends)
        assert sizes.max(initial=0) - sizes.min(initial=count) <= 1


def test_stages_of_joints_cover_all_blocks_in_order(rng):
    sizes = rng.integers(1, 3 * SERIAL, 40)
    colour = np.concatenate([np.repeat(np.arange(20), sizes[:20]), np.repeat(np.arange(20), sizes[20:])])
    chunk = np.repeat([0, 2], [sizes[:20].sum(), sizes[20:].sum()])
    # chunk 2 has joints of the last colour
    colour[(chunk == 2) & (colour == 19)] = LAST
    stages, at = joint_stages(chunk, colour, 4)
    assert np.array_equal(np.concatenate([np.arange(a, b) for a, b, *_ in stages]), np.arange(len(chunk)))
    for c in range(4):
        own = stages[at[c] : at[c + 1]]
        assert set(chunk[own[:, 0]]) <= {c}
    assert np.flatnonzero(stages[:, 3]).tolist() == [len(stages) - 1]
    assert (colour[stages[-1, 0] : stages[-1, 1]] == LAST).all() and (colour == LAST).sum() == np.diff(stages[-1, :2])
    for a, b, alone, _ in stages.tolist():
        # threads share the blocks of one colour only
        assert alone or (len(set(colour[a:b])) == 1 and b - a >= SERIAL)


def pile(bodies: int, chain: int) -> nl.ModelBuilder:
    """Boxes in towers of four, and chains of at most ten balls on joints that fall on them."""
    builder = nl.ModelBuilder()
    side = int(np.ceil(np.sqrt(bodies / 4)))
    for i in range(bodies):
        x, y, z = i // 4 % side, i // 4 // side, i % 4
        body = builder.add_body(xform=(0.23 * x, 0.23 * y, 0.1 + 0.2 * z, 0, 0, 0, 1))
        builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    links = [builder.add_link(mass=0.5, inertia=0.002 * np.eye(3)) for _ in range(chain)]
    joints = []
    for k, link in enumerate(links):
        builder.add_shape_sphere(link, radius=0.05)
        place = (0.2, 0, 0, 0, 0, 0, 1) if k % 10 else (0.0, 0.4 + 0.03 * k, 1.1, 0, 0, 0, 1)
        joints.append(builder.add_joint_ball(links[k - 1] if k % 10 else -1, link, parent_xform=place))
    if joints:
        builder.add_articulation(joints)
    return builder


@pytest.mark.slow
def test_bits_do_not_depend_on_threads_and_other_worlds(rng):
    one, other = pile(TEAM, 40), pile(12, 3)

    def run(worlds, place, threads):
        builder = nl.ModelBuilder()
        builder.add_ground_plane()
        for world in worlds:
            builder.add_world(world)
        model = builder.finalize("cpu")
        state, solver = started(model), xpbd(model, threads=threads)
        for _ in range(40):
            solver.step(state, state)
        own = model.body_world.numpy() == place
        return np.concatenate([state.body_q.numpy()[own], state.body_qd.numpy()[own]], axis=1)

    alone = run([one], 0, 1)
    assert np.isfinite(alone).all()
    for worlds, place, threads in (([one], 0, 2), ([other, one, other], 1, 2)):
        assert np.array_equal(run(worlds, place, threads), alone)


@pytest.mark.slow
def test_a_large_world_keeps_momentum(rng):
    """Without gravity, and without anything fixed, impulses come in pairs."""
    # a team computes worlds with more than TEAM bodies
    model = pile(TEAM + 4, 0).finalize("cpu")
    model.set_gravity((0.0, 0.0, 0.0))
    state = started(model)
    start = rng.normal(size=(model.body_count, 6)).astype(np.float32)
    state.body_qd.assign(start)
    mass = model.body_mass.numpy().astype(float)
    before = mass @ state.body_qd.numpy().astype(float)[:, :3]
    solver = xpbd(model, threads=2)
    for _ in range(60):
        solver.step(state, state)
    # impacts changed velocities
    assert np.abs(state.body_qd.numpy() - start)[:, :3].max() > 0.1
    after = mass @ state.body_qd.numpy().astype(float)[:, :3]
    # rounding of single precision, over all bodies, sub-steps and contacts
    assert np.abs(after - before).max() < 1.0e-4 * mass.sum()


def test_members_of_a_team_share_forces_of_joints_only_where_each_body_has_one():
    """A body that is free and also has a distance joint gets the forces of both joints; one thread adds them."""
    solvers = []
    for tethered in (False, True):
        builder = nl.ModelBuilder()
        for i in range(2):
            body = builder.add_body(xform=(0.5 * i, 0.0, 1.0, 0, 0, 0, 1))
            builder.add_shape_sphere(body, radius=0.1)
        if tethered:
            builder.add_joint_distance(-1, body, min_distance=0.0, max_distance=2.0)
        solvers.append(xpbd(builder.finalize("cpu")))
    assert [solver._bodies["apart"] for solver in solvers] == [1, 0]
