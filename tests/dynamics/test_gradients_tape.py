"""Compiled functions of the dynamics library on Warp's tape: gradients against central differences, in double precision.

The robots are the same in every run, so that their kernels are compiled once; their states are random.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

import newton_like.dynamics as dynamics
from newton_like import ModelBuilder
from newton_like.model.columns import READ_WITHOUT_GRADIENT, WITH_GRADIENT
from newton_like.solvers import SolverFeatherstone
from newton_like.types import VelRepr
from tests.support.dynamics_cases import known_robots
from tests.support.kinematic_cases import gradient_errors
from tests.support.random_trees import random_inertia, random_state, random_transform

TOLERANCE = 1e-6
"""Relative to the derivative: truncation of steps of 1e-6, and cancellation of numbers of up to a thousand of their size."""


@pytest.fixture(scope="module")
def model():
    return known_robots()


def start(model, rng) -> list[np.ndarray]:
    return list(random_state(model, rng))


def at(q, qd):
    return SimpleNamespace(joint_q=q, joint_qd=qd)


def wrenches(model) -> tuple[int, int, int]:
    """Shape of forces on links."""
    return model.articulation_count, model.max_joints_per_articulation, 6


def inertias(model) -> np.ndarray:
    return dynamics.inertial_parameters(model, linear=True).numpy().ravel()


def agree(model, function, inputs, rng) -> None:
    for array in (model.body_mass, model.body_com, model.body_inertia):
        # other tests left something there
        array.grad.zero_()
    errors = gradient_errors(function, inputs, rng, directions=3)
    assert max(errors) < TOLERANCE, errors


@pytest.mark.slow
@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics"])
def test_dynamics_with_forces_on_links(model, rng, name):
    """With respect to coordinates, velocities, forces or accelerations, wrenches of links and inertial parameters."""
    shape, before = wrenches(model), inertias(model)

    def function(q, qd, given, f, parameters):
        dynamics.set_inertial_parameters(model, parameters.reshape((model.body_count, 10)), linear=True)
        return [getattr(dynamics, name)(model, at(q, qd), given, f.reshape(shape), link_forces_repr=VelRepr.BODY)]

    inputs = [*start(model, rng), rng.normal(size=model.joint_dof_count), rng.normal(size=np.prod(shape)), before]
    agree(model, function, inputs, rng)
    dynamics.set_inertial_parameters(model, before.reshape(-1, 10), linear=True)


@pytest.mark.slow
def test_jacobians_of_links(model, rng):
    agree(model, lambda q: [dynamics.link_jacobians(model, at(q, None))], start(model, rng)[:1], rng)


@pytest.mark.slow
def test_offsets_of_frames(model, rng):
    """One offset for all robots, and one for each of another frame, which the first is seen from."""
    offsets = [random_transform(rng), np.array([random_transform(rng) for _ in range(4)]).ravel()]

    def function(q, one, each):
        return [dynamics.relative_transform(model, at(q, None), (2, one), (1, each.reshape((4, 7))))]

    agree(model, function, [start(model, rng)[0], *offsets], rng)
    with wp.Tape(), pytest.raises(ValueError, match=r"offset.*\(3, 7\).*\(7,\).*\(4, 7\)"):
        dynamics.frame_transform(model, model, (1, wp.zeros((3, 7), dtype=wp.float64, requires_grad=True)))


@pytest.mark.slow
@pytest.mark.parametrize(("method", "steps"), [("semi_implicit", 6), ("rk4", 2)])
def test_several_steps(model, rng, method, steps):
    """The final state, with respect to the first one, constant forces and inertial parameters."""
    shape, before = wrenches(model), inertias(model)

    def function(q, qd, forces, f, parameters):
        dynamics.set_inertial_parameters(model, parameters.reshape((model.body_count, 10)), linear=True)
        state = at(q, qd)
        for _ in range(steps):
            after = at(*(wp.zeros_like(a, requires_grad=True) for a in (q, qd)))
            dynamics.integrate(model, state, after, 0.01, method, joint_forces=forces, link_forces=f.reshape(shape))
            state = after
        return [state.joint_q, state.joint_qd]

    inputs = [*start(model, rng), rng.normal(size=model.joint_dof_count), rng.normal(size=np.prod(shape)), before]
    agree(model, function, inputs, rng)
    dynamics.set_inertial_parameters(model, before.reshape(-1, 10), linear=True)


@pytest.mark.slow
@pytest.mark.parametrize("hills", [False, True])
def test_soft_contact(model, rng, hills):
    """Forces and rates of contact points, with respect to the state, tangential displacements and constants of the law."""
    ground = dynamics.PlaneTerrain((0.1, 0.2, 1.0))
    if hills:
        ground = dynamics.HeightfieldTerrain(0.3 * rng.normal(size=(6, 5)), (-4.0, -4.0), (2.0, 1.6))
    state = start(model, rng)
    # a force bends sharply where a point touches the ground
    while True:
        points = dynamics.ContactPoints(model, {b: rng.normal(size=(2, 3)) for b in range(model.body_count)})
        law = dynamics.SoftContactParameters(50.0, 10.0, 0.4, *rng.uniform(0.4, 0.9, 2))
        contact = dynamics.SoftContact(model, points, ground, law)
        probe = at(*(wp.array(x, dtype=wp.float64) for x in state))
        depth = dynamics.soft_contact_forces(model, probe, contact).depth.numpy()
        if depth.max() > 0.1 and depth[depth > 0.0].min() > 0.02:
            break

    def function(q, qd, slips, constants):
        contact.law = constants.reshape(contact.law.shape)
        return list(dynamics.soft_contact_forces(model, at(q, qd), contact, slips.reshape(contact.shape)))

    inputs = [*state, 0.1 * rng.normal(size=np.prod(contact.shape)), contact.law.numpy().ravel()]
    agree(model, function, inputs, rng)


@pytest.mark.slow
def test_numbers_that_all_articulations_share(model, rng):
    """Gradients of points and forces that are given once are sums over articulations."""
    state = at(*(wp.array(x, dtype=wp.float64) for x in start(model, rng)))

    def function(points, forces):
        places = dynamics.point_positions(model, state, [0, 2], points.reshape((2, 3)))
        loads = dynamics.point_forces(model, state, [0, 2], points.reshape((2, 3)), forces.reshape((2, 3)))
        return [places, loads]

    agree(model, function, [rng.normal(size=6), rng.normal(size=6)], rng)


# ------------------------------------------------------------------------------------- gravity, and quantities without gradients


def falls(model, state):
    """Accelerations, holding forces and energies of a state, and coordinates after two steps."""
    functions = (
        dynamics.forward_dynamics,
        dynamics.gravity_forces,
        dynamics.potential_energy,
        dynamics.mechanical_energy,
    )
    results = [function(model, state) for function in functions]
    for _ in range(2):
        after = at(*(wp.zeros_like(a, requires_grad=True) for a in (state.joint_q, state.joint_qd)))
        dynamics.integrate(model, state, after, 0.01, passive=())
        state = after
    return [*results, state.joint_q]


def pendulum(scene, rng):
    """A link that forces do not move, which all worlds may share."""
    link = scene.add_link(mass=1.3, com=rng.normal(size=3), inertia=np.eye(3), is_kinematic=True)
    scene.add_articulation([scene.add_joint_revolute(-1, link, axis="x")])


@pytest.mark.slow
@pytest.mark.parametrize("worlds", [0, 2])
def test_gravity_has_the_gradients_of_all_robots_of_its_world(rng, worlds):
    """Two robots in each world and one that all share, before and behind them; or a scene without worlds."""
    arm, crane, scene = pin_arm(rng), pin_arm(rng, 2), ModelBuilder()
    pendulum(scene, rng)
    for _ in range(worlds):
        scene.begin_world()
        for robot in (arm, crane, arm):
            scene.add_builder(robot)
        scene.end_world()
    if worlds:
        pendulum(scene, rng)
    else:
        scene.add_builder(crane)
    model = scene.finalize("cpu", dtype=wp.float64, requires_grad=True)
    model.evaluator = "general"
    q, qd = start(model, rng)
    state = at(wp.array(q, dtype=wp.float64), wp.array(qd, dtype=wp.float64))
    model.set_gravity(rng.normal(size=(model.world_count, 3)))
    weights = [rng.normal(size=r.size) for r in falls(model, state)]
    with wp.Tape() as tape:
        results = falls(model, state)
    seeds = {r: wp.array(w.reshape(r.shape), dtype=wp.float64) for r, w in zip(results, weights, strict=True)}
    tape.backward(grads=seeds)
    found, gravity, step = model.gravity.grad.numpy().copy(), model.gravity.numpy().copy(), 1e-5
    tape.zero()
    assert not model.gravity.grad.numpy().any()

    def value(change) -> float:
        model.set_gravity(gravity + change)
        return sum(w @ r.numpy().ravel() for w, r in zip(weights, falls(model, state), strict=True))

    for place in np.ndindex(gravity.shape):
        change = np.zeros(gravity.shape)
        change[place] = step
        expected = (value(change) - value(-change)) / (2.0 * step)
        np.testing.assert_allclose(found[place], expected, rtol=1e-6, atol=1e-6)


def pin_arm(rng, links: int = 1) -> ModelBuilder:
    """A chain of hinges."""
    arm, parent, joints = ModelBuilder(), -1, []
    for _ in range(links):
        link = arm.add_link(mass=rng.uniform(0.5, 2.0), com=rng.normal(size=3), inertia=random_inertia(rng, 1.0))
        joints.append(arm.add_joint_revolute(parent, link, axis=rng.normal(size=3), parent_xform=random_transform(rng)))
        parent = link
    arm.add_articulation(joints)
    return arm


@pytest.mark.slow
def test_what_does_not_read_gravity_leaves_its_gradient_alone(rng):
    model = pin_arm(rng).finalize("cpu", dtype=wp.float64, requires_grad=True)
    model.evaluator = "general"
    state = model.state()
    with wp.Tape() as tape:
        pose = dynamics.link_transforms(model, state)
    tape.backward(grads={pose: wp.array(rng.normal(size=pose.shape), dtype=wp.float64)})
    assert state.joint_q.grad.numpy().any()
    assert not model.gravity.grad.numpy().any()


@pytest.mark.parametrize("name", READ_WITHOUT_GRADIENT)
def test_constants_without_gradients_require_none_and_are_refused_where_they_do(rng, name):
    model = pin_arm(rng).finalize("cpu", requires_grad=True)
    array, state = getattr(model, name), model.state()
    assert not array.requires_grad
    for given in WITH_GRADIENT:
        assert getattr(model, given).requires_grad
    array.requires_grad = True
    dynamics.bias_forces(model, state)
    with wp.Tape(), pytest.raises(ValueError, match=rf"model\.{name} "):
        dynamics.bias_forces(model, state)


@pytest.mark.slow
def test_sizes_of_shapes_that_are_to_have_gradients_are_refused():
    """Points of contact are made from sizes of shapes on the host, without gradients."""
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body(xform=(0, 0, 0.1, 0, 0, 0, 1)), radius=0.1)
    model = builder.finalize("cpu", requires_grad=True)
    contact, model.shape_scale.requires_grad = dynamics.SoftContact(model), True
    with wp.Tape(), pytest.raises(ValueError, match=r"model\.shape_scale "):
        dynamics.integrate(model, model.state(), model.state(), 1e-3, contact=contact, contact_state=contact.state())


@pytest.mark.slow
def test_results_that_cannot_pass_gradients_on_are_refused(rng):
    """A result to write, a state after a step, numbers that are read on the host, and a step of the solver."""
    model = pin_arm(rng).finalize("cpu", requires_grad=True)
    state, still = model.state(), model.state(requires_grad=False)
    out = wp.zeros((1, 1), dtype=wp.float32)
    for call in (
        lambda: dynamics.bias_forces(model, state, out=out),
        lambda: dynamics.integrate(model, state, still, 0.01),
    ):
        with wp.Tape(), pytest.raises(ValueError, match=r"(out|state_out) has no gradient"):
            call()
    dynamics.bias_forces(model, state, out=out)
    # of masses
    with wp.Tape(), pytest.raises(ValueError, match=r"bias_forces.*gradient.*requires_grad=True"):
        dynamics.bias_forces(model, still, out=out)
    heights = wp.zeros((3, 3), requires_grad=True)
    with pytest.raises(ValueError, match=r"heights.*gradient"):
        dynamics.HeightfieldTerrain(heights)
    with pytest.raises(ValueError, match=r"points.*gradient"):
        dynamics.ContactPoints(model, {0: heights})
    with pytest.raises(ValueError, match=r"mu.*gradient"):
        dynamics.RigidContactParameters(mu=wp.ones(1, requires_grad=True))
    with wp.Tape(), pytest.raises(ValueError, match=r"velocity.*gradient"):
        dynamics.convert_velocity(wp.zeros(6, requires_grad=True), (0, 0, 0, 0, 0, 0, 1), VelRepr.MIXED, VelRepr.BODY)
    solver = SolverFeatherstone(model)
    with wp.Tape(), pytest.raises(RuntimeError, match="gradient"):
        solver.step(state, model.state(), dt=0.01)
    with wp.Tape():
        solver.step(still, still, model.control(requires_grad=False), dt=0.01)
