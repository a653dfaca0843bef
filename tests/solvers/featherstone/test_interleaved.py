"""Articulations with interleaved body indices."""

import numpy as np
import warp as wp

from newton_like import ModelBuilder, eval_fk
from newton_like.solvers import SolverFeatherstone


def scene(interleaved: bool) -> ModelBuilder:
    builder = ModelBuilder()
    owners = [0, 1, 0, 1, 1, 0] if interleaved else [0, 0, 0, 1, 1, 1]
    chains: list[list[int]] = [[], []]
    for i, owner in enumerate(owners):
        place = len(chains[owner])
        chains[owner].append(
            builder.add_link(mass=1.0 + owner + 0.1 * place, com=(0, 0, -0.2), inertia=0.02 * np.eye(3), label=f"{i}")
        )
    for owner, links in enumerate(chains):
        joints = [
            builder.add_joint_revolute(parent, link, axis="y", parent_xform=(0.0, owner, -0.4 * (k > 0), 0, 0, 0, 1))
            for k, (parent, link) in enumerate(zip([-1, *links[:-1]], links, strict=True))
        ]
        builder.add_articulation(joints)
    return builder


def test_interleaved_articulations_move_as_separate_ones(rng):
    """The order of bodies is a matter of storage: joints move in the same way, to the bit, and bodies go with them."""
    worlds = 3
    angles = rng.uniform(-1, 1, 6 * worlds)
    wrench = rng.normal(size=(6 * worlds, 6))
    results = []
    for interleaved in (False, True):
        world = scene(interleaved)
        builder = ModelBuilder()
        builder.replicate(world, worlds)
        model = builder.finalize(dtype=wp.float64)
        state = model.state()
        state.joint_q.assign(angles)
        # the same wrench on the same link of each chain
        child = model.joint_child.numpy()
        forces = np.zeros((6 * worlds, 6))
        forces[child] = wrench
        state.body_f.assign(forces)
        solver = SolverFeatherstone(model, evaluator="general", width=8)
        for _ in range(5):
            solver.step(state, state, dt=1 / 240)
        poses = model.state()
        eval_fk(model, state.joint_q, state.joint_qd, poses)
        # poses of the step and of eval_fk differ by rounding at most: they share the programs
        assert np.abs(poses.body_q.numpy() - state.body_q.numpy()).max() < 1e-13
        assert np.abs(poses.body_qd.numpy() - state.body_qd.numpy()).max() < 1e-12
        results.append((state.joint_q.numpy(), state.body_q.numpy()[child]))
    assert results[0][0].tobytes() == results[1][0].tobytes()
    assert results[0][1].tobytes() == results[1][1].tobytes()
