"""What passive motion keeps, and how fast its error shrinks with the time step."""

import numpy as np
import warp as wp

from newton_like import JointType, eval_fk

from .support import reference
from .support.random_trees import random_state, random_tree
from .support.simulate import Simulation, worlds_of

SMOOTH = (JointType.REVOLUTE, JointType.PRISMATIC, JointType.BALL, JointType.D6)
TREES = 8


def chains(rng, gravity=None, **options):
    """One world for each of several random trees without losses."""
    trees = [random_tree(rng, joints=5, damping=False, **options) for _ in range(TREES)]
    for tree in trees:
        if gravity is not None:
            tree.gravity = gravity
    return worlds_of(trees)


def every_tree(simulation):
    return [reference.Tree.from_model(simulation.model, w) for w in range(simulation.worlds)]


def total_energy(tree, q, qd):
    return (
        reference.kinetic_energy(tree, q, qd) + reference.potential_energy(tree, q) + reference.spring_energy(tree, q)
    )


def each(simulation, trees, law) -> np.ndarray:
    """``law(tree, q, qd)`` of every world."""
    q, qd = simulation.state.joint_q.numpy(), simulation.state.joint_qd.numpy()
    return np.array([law(t, q[t.coords], qd[t.dofs]) for t in trees])


def test_passive_motion_is_second_order_in_the_time_step(rng):
    # Springs are implicit, and so of first order: there are none here.
    scene = chains(rng, types=SMOOTH)
    start, seconds = None, 0.25
    ends = {}
    steps = [1.0 / 512.0, 1.0 / 1024.0, 1.0 / 2048.0, 1.0 / 16384.0]
    for dt in steps:
        simulation = Simulation(scene, dt, dtype=wp.float64)
        start = random_state(simulation.model, rng) if start is None else start
        simulation.set_state(*start)
        simulation.run(seconds)
        ends[dt] = simulation.poses[:, :, :3].reshape(TREES, -1)
    errors = np.array([np.linalg.norm(ends[dt] - ends[steps[-1]], axis=1) for dt in steps[:-1]])
    slopes = np.log2(errors[:-1] / errors[1:])
    print("slopes", slopes)
    # The reference has 1/64 of the error of the finest step, which moves a slope by 0.02; higher orders move it more, for trees that
    # whip about most. A scheme of first order has a slope of 1.
    assert abs(np.median(slopes) - 2.0) < 0.05
    assert (slopes[-1] > 1.6).all()


def test_free_floating_trees_keep_their_momentum(rng):
    # No armature: rotors that turn only about a joint's axis exert no torque on the link before, which is an approximation that does
    # not keep angular momentum.
    scene = chains(rng, gravity=0.0, types=SMOOTH, floating=True, armature=False)
    errors = []
    for dt in (1.0 / 240.0, 1.0 / 480.0):
        simulation = Simulation(scene, dt, dtype=wp.float64)
        trees = every_tree(simulation)
        if not errors:
            start = random_state(simulation.model, rng)
        simulation.set_state(*start)
        before = each(simulation, trees, reference.momentum)
        simulation.run(1.0)
        after = each(simulation, trees, reference.momentum)
        mass = np.array([t.body_mass.sum() for t in trees])[:, None]
        errors.append(np.abs(after - before).max(axis=1) / (mass[:, 0] + np.linalg.norm(before, axis=1)))
    print("errors", errors)
    # Kicks conserve momentum at the middle configuration; drifts along joints move it by an error of second order: (omega dt)^2 / 10
    # with rates of a few rad/s, growing for a second. Halving the step quarters it.
    assert max(errors[0]) < 2e-2
    assert np.median(errors[1] / errors[0]) < 0.4


def test_energy_does_not_drift(rng):
    scene = chains(rng, types=(JointType.REVOLUTE, JointType.PRISMATIC))
    simulation = Simulation(scene, 1.0 / 1000.0, dtype=wp.float64)
    model, trees = simulation.model, every_tree(simulation)
    simulation.set_state(*random_state(model, rng, speed=0.5))
    eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)

    def energies():
        return np.stack([each(simulation, trees, total_energy), each(simulation, trees, reference.kinetic_energy)])

    first = energies()
    seen = simulation.run(5.0, energies, every=250)
    scale = np.maximum(seen[:, 1].max(axis=0), first[1])
    error = np.abs(seen[:, 0] - first[0]) / scale
    print("largest error of energy", error.max(axis=0))
    # (omega dt)^2 with rates of up to 30 rad/s: 1e-3, a bounded oscillation.
    assert error.max() < 1e-2
    assert np.median(error) < 1e-4
