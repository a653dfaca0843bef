"""Loop joints: their constraints, the dynamics under them, and that loops stay closed."""

import numpy as np
import pytest
import warp as wp

from newton_like import JointType, MechanismState, ModelBuilder, ModelFlags, dynamics
from newton_like.compiler.order import needed
from newton_like.dynamics.internal import common
from newton_like.programs.device import lane_width
from newton_like.programs.robot import INERTIA
from newton_like.programs.run import _numbers_of
from newton_like.programs.tracing import trace_program
from newton_like.types import VelRepr
from tests.support import reference
from tests.support.kinematic_cases import KINDS
from tests.support.loops import add_loop, closed, loop_coordinates, looped
from tests.support.random_trees import random_state, random_tree
from tests.support.traced import differences, run_by_numpy, run_traced_adjoint


def along(model, q, qd, function, step=1e-5):
    """Central difference of function(state) along the flow of the velocities."""
    tree = reference.Tree.from_model(model)
    ends = []
    for s in (1, -1):
        moved = q.copy()
        moved[tree.coords] = reference.displace(tree, q[tree.coords], qd[tree.dofs], s * step)
        state = MechanismState(model)
        state.set_configuration(moved)
        state.set_velocity(qd)
        ends.append(function(state))
    return (ends[0] - ends[1]) / (2 * step)


def rate(state):
    """K v"""
    return np.einsum("ari,ai->ar", state.constraint_jacobian()[0].numpy(), state.velocity().numpy())


def test_constraints_of_all_joint_types_are_derivatives(rng, by_numpy):
    """g' = K v and g'' = k at constant v, on and off the manifold; every type has as many rows as it blocks directions."""
    tree = random_tree(rng, joints=6)
    rows = []
    for kind, linear, angular, hand in KINDS:
        if kind != JointType.DISTANCE and hand == 1:
            parent, child = rng.choice([-1, *range(6)]), rng.integers(6)
            if parent != child:
                joint = add_loop(tree, rng, kind, int(parent), int(child), linear, angular)
                rows.append(6 - sum(tree.joint_dof_dim[joint]))
    scene = ModelBuilder()
    scene.replicate(tree, 2)
    model = scene.finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    state = MechanismState(model)
    state.set_configuration(q)
    state.set_velocity(qd)
    assert state.num_constraints == sum(rows)
    assert [state.constraint_range(i) for i in range(len(rows))] == [
        slice(sum(rows[:i]), sum(rows[: i + 1])) for i in range(len(rows))
    ]
    assert state.constraint_index_to_joint(0) == next(i for i, n in enumerate(rows) if n)
    # rounding 1e-15 / 1e-5 of numbers of some 10, and third derivatives of up to 1e4 times 1e-10 / 6
    close = dict(rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(rate(state), along(model, q, qd, lambda s: s.constraint_jacobian()[1].numpy()), **close)
    np.testing.assert_allclose(state.constraint_bias().numpy(), along(model, q, qd, rate), **close)


def test_constrained_accelerations_solve_both_equations(rng, by_numpy):
    """M a + h = tau + K^T l and K a = -k - 2/T K v - g/T^2; Gauss' principle without rows: forward dynamics."""
    model = looped(rng).finalize("cpu", dtype=wp.float64)
    state = MechanismState(model)
    state.rand(rng)
    tau = rng.normal(size=state.velocity().shape)
    T = 0.3
    a, force = (x.numpy() for x in state.constrained_dynamics(tau, time_constant=T))
    M, h, k = (f().numpy() for f in (state.mass_matrix, state.bias_forces, state.constraint_bias))
    K, g = (x.numpy() for x in state.constraint_jacobian())
    for i in range(2):
        pull = K[i].T @ force[i]
        # loop forces without effect on the joints are large for contradictory rows, and cancel up to rounding errors
        size = np.abs(K[i].T) @ np.abs(force[i]) + np.abs(M[i]) @ np.abs(a[i]) + np.abs(h[i])
        np.testing.assert_array_less(np.abs(M[i] @ a[i] + h[i] - tau[i] - pull), 1e-12 * size.max())
        # five proximal steps leave (softness / (softness + s))^5 of the residual in a direction with the compliance s
        wanted = -k[i] - 2 / T * rate(state)[i] - g[i] / T**2
        A = K[i] @ np.linalg.solve(M[i], K[i].T)
        s, U = np.linalg.eigh(A)
        soft = 1e-8 * A.diagonal().max()
        free = K[i] @ np.linalg.solve(M[i], tau[i] - h[i])
        left = U @ ((soft / (soft + np.maximum(s, 0.0))) ** 5 * (U.T @ (wanted - free)))
        rounding = 1e-14 * (np.abs(A) @ np.abs(force[i])).max()
        np.testing.assert_allclose(K[i] @ a[i], wanted - left, atol=1e-7 * max(1.0, np.abs(wanted).max()) + rounding)
    same = dynamics.constrained_dynamics(model, state, tau, time_constant=T)
    np.testing.assert_array_equal(same[0].numpy(), a)
    free = MechanismState(random_tree(rng, joints=4).finalize("cpu", dtype=wp.float64))
    free.rand(rng)
    expected = dynamics.forward_dynamics(free.model, free).numpy()
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(free.constrained_dynamics()[0].numpy(), expected, atol=1e-10 * scale)


def four_bar(redundant=True):
    """Crank, coupler and rocker in a vertical plane. A hinge closes the loop; three of its five rows are redundant."""
    builder = ModelBuilder()
    places = {"A": (0.0, 0.0, 0.0), "B": (0.1, 0.0, 0.4), "C": (1.2, 0.0, 0.7), "D": (1.0, 0.0, -0.1)}
    at = {name: np.array(x) for name, x in places.items()}

    def rod(start, end):
        centre = (at[end] - at[start]) / 2
        return builder.add_link(mass=1.0 + np.linalg.norm(centre), com=centre, inertia=0.02 * np.eye(3))

    def hinge(parent, child, x, y, **options):
        frames = {"parent_xform": (*x, 0, 0, 0, 1), "child_xform": (*y, 0, 0, 0, 1)}
        add = builder.add_joint_revolute if redundant or not options else builder.add_joint_ball
        axis = {"axis": (0, 1, 0)} if add == builder.add_joint_revolute else {}
        return add(parent, child, **axis, **frames, **options)

    crank, coupler, rocker = rod("A", "B"), rod("B", "C"), rod("D", "C")
    zero = np.zeros(3)
    joints = [hinge(-1, crank, at["A"], zero), hinge(crank, coupler, at["B"] - at["A"], zero)]
    joints.append(hinge(-1, rocker, at["D"], zero))
    builder.add_articulation(joints)
    hinge(coupler, rocker, at["C"] - at["B"], at["C"] - at["D"], label="closing")
    return builder


def turning(model, speed=3.0):
    """A state whose velocities keep the loop closed."""
    state = MechanismState(model)
    K = state.constraint_jacobian()[0].numpy()[0].astype(np.float64)
    direction = np.linalg.svd(K)[2][-1]
    state.set_velocity(np.atleast_2d(speed * direction / direction[0]))
    return state


def simulate(model, steps, duration=1.0):
    """Largest error of the energy [J] and of the loop [m], by the classical Runge-Kutta method."""
    state = turning(model)
    energy = state.mechanical_energy().numpy()[0]
    lost = opened = 0.0
    for _ in range(steps):
        dynamics.integrate(model, state, state, duration / steps, "rk4")
        lost = max(lost, abs(state.mechanical_energy().numpy()[0] - energy))
        opened = max(opened, np.abs(state.constraint_jacobian()[1].numpy()).max())
    return lost, opened


@pytest.mark.slow
def test_a_four_bar_linkage_stays_closed_and_keeps_its_energy():
    """Both errors fall by 16 when steps are halved: the order of the integrator; redundant rows do not disturb it."""
    model = four_bar().finalize("cpu", dtype=wp.float64)
    assert MechanismState(model).num_constraints == 5
    errors = np.array([simulate(model, steps) for steps in (100, 200, 400)])
    # of some 20 J, and of rods of a metre
    assert (errors[0] < 1e-2).all()
    ratios = errors[:-1] / errors[1:]
    assert (ratios > 10.0).all(), ratios
    # a ball joint, with one redundant row of three, gives the same motion
    other = np.array(simulate(four_bar(redundant=False).finalize("cpu", dtype=wp.float64), 200))
    np.testing.assert_allclose(other, errors[1], rtol=1e-3)


@pytest.mark.slow
def test_open_loops_close_with_the_time_constant():
    """A loop that is open by a little closes as (1 + t/T) exp(-t/T), the critically damped spring's law."""
    model = four_bar().finalize("cpu", dtype=wp.float64)
    state = MechanismState(model)
    q = np.array([0.0, 1e-4, 0.0])
    state.set_configuration(q)
    g = state.constraint_jacobian()[1].numpy()[0].copy()
    T, dt, steps = 0.05, 1e-3, 100
    v = np.zeros(3)
    for _ in range(steps):
        state.set_configuration(q)
        state.set_velocity(v)
        a = state.constrained_dynamics(time_constant=T)[0].numpy()[0]
        v = v + dt * a
        q = q + dt * v
    state.set_configuration(q)
    t = steps * dt
    # one percent of the opening: steps of a fiftieth of T, of first order
    np.testing.assert_allclose(
        state.constraint_jacobian()[1].numpy()[0], g * (1 + t / T) * np.exp(-t / T), atol=0.02 * np.abs(g).max()
    )


@pytest.mark.slow
def test_single_precision_solves_the_same_linkage():
    """And code for this linkage alone gives the bits of that for any robot."""
    model = four_bar().finalize("cpu")
    a, force = (x.numpy() for x in turning(model).constrained_dynamics())
    b, other = (x.numpy() for x in turning(four_bar().finalize("cpu", dtype=wp.float64)).constrained_dynamics())
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())
    np.testing.assert_allclose(force, other, atol=1e-3 * np.abs(other).max())
    if lane_width("cpu") > 1:
        model.evaluator = "specialised"
        for x, y in zip(turning(model).constrained_dynamics(), (a, force), strict=True):
            np.testing.assert_array_equal(x.numpy(), y)


def test_disabled_loop_joints_do_nothing(rng, by_numpy):
    model = four_bar().finalize("cpu", dtype=wp.float64)
    state = MechanismState(model)
    model.joint_enabled.assign(np.array([True, True, True, False]))
    model.notify_changed(ModelFlags.JOINT_PROPERTIES)
    expected = dynamics.forward_dynamics(model, state).numpy()
    a, force = (x.numpy() for x in state.constrained_dynamics())
    np.testing.assert_allclose(a, expected, rtol=1e-12)
    assert not force.any()


def test_loops_between_articulations_and_ropes_are_refused(rng):
    builder = ModelBuilder()
    links = [builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(2)]
    for i, link in enumerate(links):
        builder.add_articulation([builder.add_joint_revolute(-1, link, label=f"hinge_{i}")])
    builder.add_joint_ball(*links, label="bridge")
    state = MechanismState(builder.finalize("cpu"))
    with pytest.raises(
        ValueError, match=r"loop joint 'bridge' \(index 2\) .*articulations 'articulation_0' .*'articulation_1'"
    ):
        _ = state.num_constraints
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_free(link)])
    builder.add_joint_distance(-1, link, max_distance=1.0, label="rope")
    state = MechanismState(builder.finalize("cpu"))
    with pytest.raises(ValueError, match=r"loop joint 'rope' \(index 1\)"):
        state.constrained_dynamics()
    with pytest.raises(KeyError, match=r"loop joint 'clasp'.*0.*'closing'"):
        MechanismState(four_bar().finalize("cpu")).constraint_range("clasp")


def test_rates_are_those_of_closed_loops_and_passive_forces_of_loop_joints_are_refused(by_numpy):
    builder = four_bar()
    builder.joint_damping[:2] = [0.3, 0.2]
    builder.joint_limit_upper[-1] = 1.0
    model = builder.finalize("cpu", dtype=wp.float64)
    state = turning(model)
    with pytest.raises(
        ValueError,
        match=r"loop joint 'closing' \(index 3\).*joint_limit_upper.*\[1\.0\].*'limits'",
    ):
        dynamics.velocity_rate(model, state)
    rates = dynamics.state_rate(model, state, passive=("friction",), loop_time_constant=0.2)
    damping = -np.array([[0.3, 0.2, 0.0]]) * state.velocity().numpy()
    np.testing.assert_array_equal(
        rates.joint_qd.numpy(), state.constrained_dynamics(damping, time_constant=0.2)[0].numpy()
    )
    contact = dynamics.RigidContact(model, dynamics.ContactPoints(model, {0: [(0, 0, 0)]}))
    with pytest.raises(ValueError, match=r"rigid contact.*SoftContact"):
        dynamics.state_rate(model, state, contact=contact)
    # a disabled loop joint has no constraint
    model.joint_enabled.assign(np.array([True, True, True, False]))
    model.notify_changed(ModelFlags.JOINT_PROPERTIES)
    np.testing.assert_array_equal(
        dynamics.velocity_rate(model, state).numpy(), dynamics.forward_dynamics(model, state, damping).numpy()
    )


@pytest.fixture
def programs(monkeypatch) -> list:
    """Programs that are run, by NumPy, with their inputs."""
    calls: list = []

    def run(model, program, arrays, mask=None):
        calls.append((program, [None if a is None else a.numpy().ravel() for a in arrays[: len(program.inputs)]]))
        run_by_numpy(model, program, arrays, mask)

    monkeypatch.setattr(common, "run", run)
    return calls


@pytest.mark.slow
def test_forces_on_links_and_representations(rng, by_numpy):
    """A wrench on a link acts as joint forces by its Jacobian; the base's representation changes neither motion nor loop forces."""
    tree, scene = random_tree(rng, joints=7, floating=True), ModelBuilder()
    # a link that floats can give way in all directions: five rows that are independent
    add_loop(tree, rng, JointType.REVOLUTE, -1, 4)
    scene.replicate(tree, 2)
    model = scene.finalize("cpu", dtype=wp.float64)
    state = MechanismState(model)
    state.rand(rng)
    tau = rng.normal(size=state.velocity().shape)
    wrenches = rng.normal(size=(2, model.max_joints_per_articulation, 6))
    a, force = (x.numpy() for x in state.constrained_dynamics(tau, wrenches, link_forces_repr=VelRepr.MIXED))
    J = state.link_jacobians().numpy()
    lifted = tau + np.einsum("alci,alc->ai", J, wrenches)
    expected = [x.numpy() for x in state.constrained_dynamics(lifted)]
    # rounding times the conditioning of rows and masses, some 1e6
    close = dict(rtol=1e-8, atol=1e-8 * np.abs(force).max())
    np.testing.assert_allclose(a, expected[0], rtol=1e-8, atol=1e-8 * np.abs(a).max())
    np.testing.assert_allclose(force, expected[1], **close)
    moves = dynamics.link_accelerations(model, state, a).numpy()
    for repr in VelRepr:
        X = np.linalg.solve(dynamics.link_jacobian(model, state, 0, repr=repr).numpy()[..., :6], J[:, 0, :, :6])
        turned = np.concatenate([np.linalg.solve(X.transpose(0, 2, 1), tau[:, :6, None])[..., 0], tau[:, 6:]], axis=1)
        b, other = state.constrained_dynamics(turned, wrenches, link_forces_repr=VelRepr.MIXED, repr=repr)
        again = dynamics.link_accelerations(model, state, b, repr=repr).numpy()
        np.testing.assert_allclose(again, moves, rtol=1e-8, atol=1e-8 * np.abs(moves).max())
        np.testing.assert_allclose(other.numpy(), force, **close)


def test_gradients_of_redundant_loops(rng, programs):
    """Gradients of accelerations and of the joint forces of the loop, with three redundant rows of five, against differences."""
    model = four_bar().finalize("cpu", dtype=wp.float64)
    state = MechanismState(model)
    state.set_configuration(0.2 * rng.normal(size=3))
    state.set_velocity(rng.normal(size=3))
    state.constrained_dynamics(rng.normal(size=(1, 3)))
    ((program, inputs),) = programs
    K = state.constraint_jacobian()[0].numpy()[0]
    for seeds in ([rng.normal(size=3), np.zeros(5)], [np.zeros(3), K @ rng.normal(size=3)]):
        given = [np.zeros(f.length(model)) if x is None else x for f, x in zip(program.inputs, inputs, strict=True)]
        ways = [*(rng.normal(size=x.size) for x in given), rng.normal(size=10 * model.body_count)]
        ways.append(rng.normal(size=3 * model.articulation_count))
        # anchors and axes stay where they are: the hinges in parallel
        ways[-3][:] = 0.0
        gradients = run_traced_adjoint(model, program, given, seeds)
        expected = differences(model, program, given, seeds, ways)
        actual = np.array([g @ w for g, w in zip(gradients, ways, strict=True)])
        # contradictions of redundant rows by rounding are divided by a softness of 1e-8
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * max(1.0, np.abs(expected).max()))


@pytest.mark.slow
def test_a_gradient_costs_at_most_four_evaluations(rng, programs):
    """In operations of the code, as for other programs (tests/compiler/test_adjoint.py)."""
    model = looped(rng, worlds=1).finalize("cpu", dtype=wp.float64)
    state = MechanismState(model)
    state.constrained_dynamics()
    state.constraint_jacobian()
    state.constraint_bias()
    robot = _numbers_of(model).robots[0]

    def operations(trace, emitter, fields, prefix=""):
        rows = {prefix + f.row for f in fields}
        return len(needed(trace, emitter.stores(trace, lambda place: emitter.name(place) in rows)))

    for program, _ in programs:
        work = robot.work(model, program, 1, 1, True)
        emitter = work.emitter()
        once = operations(trace_program(program.name, work, emitter.parameter), emitter, program.outputs)
        adjoint = robot.adjoint(model, program, work, emitter, INERTIA)
        # anchors and axes of the rows have no gradients
        fields = [f for f in (*program.inputs, *INERTIA) if f.row not in ("loop", "weights")]
        assert once > 100
        assert operations(adjoint, emitter, fields, "adjoint_") < 4 * once, program.name


@pytest.mark.parametrize("floating", [True, False])
def test_assemble_closes_loops_near_the_start(rng, floating):
    """Loops that are closed somewhere, from coordinates near that place; a joint that is fixed keeps its position."""
    loops = ((JointType.BALL, 2, 5), (JointType.REVOLUTE, -1, 4))
    tree, closed_q = closed(rng, loops, joints=9, floating=floating, types=(JointType.REVOLUTE, JointType.BALL))
    scene = ModelBuilder()
    scene.replicate(tree, 3)
    model = scene.finalize("cpu", dtype=wp.float64)
    state = model.state()
    state.joint_q.assign(loop_coordinates(model, closed_q))
    name = dynamics.joint_names(model)[-1]
    # where the loops close, so that the other joints can close them
    before = dynamics.joint_positions(model, state, name).numpy()
    moved = dynamics.global_coordinates(
        model, state.joint_q, 0.05 * rng.normal(size=(3, model.max_dofs_per_articulation))
    )
    dynamics.set_joint_positions(model, state, moved.numpy())
    dynamics.set_joint_positions(model, state, before, name)
    start = dynamics.joint_positions(model, state).numpy()
    gap = np.abs(dynamics.constraint_jacobian(model, state)[1].numpy()).max()
    assert gap > 1e-4
    dynamics.assemble(model, state, fixed=[name])
    assert np.abs(dynamics.constraint_jacobian(model, state)[1].numpy()).max() < 1e-9
    # quaternions are normalised
    np.testing.assert_allclose(dynamics.joint_positions(model, state, name).numpy(), before, rtol=0, atol=1e-15)
    assert np.abs(dynamics.joint_positions(model, state).numpy() - start).max() < 2.0
    # the same by its index
    closed_q = dynamics.joint_positions(model, state).numpy()
    dynamics.set_joint_positions(model, state, start)
    dynamics.assemble(model, state, fixed=len(dynamics.joint_names(model)) - 1)
    np.testing.assert_array_equal(dynamics.joint_positions(model, state).numpy(), closed_q)


@pytest.mark.slow
def test_loops_that_cannot_close_are_refused_with_their_gap():
    """A rod of one metre between two points that are two metres apart."""
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_revolute(-1, link, axis=(0, 1, 0))])
    far = builder.add_joint_ball(
        -1, link, parent_xform=(2, 0, 0, 0, 0, 0, 1), child_xform=(1, 0, 0, 0, 0, 0, 1), label="far"
    )
    model = builder.finalize("cpu")
    state = model.state()
    before = state.joint_q.numpy().copy()
    with pytest.raises(ValueError, match=rf"'far' \(index {far}\).* 1 m"):
        dynamics.assemble(model, state)
    np.testing.assert_array_equal(state.joint_q.numpy(), before)


def test_a_loop_that_stays_open_is_named_with_its_world(rng):
    """Worlds have equal labels; one of them has a rod that is too short."""
    scene = ModelBuilder()
    short = int(rng.integers(3))
    for world in range(3):
        rod = ModelBuilder()
        link = rod.add_link(mass=1.0, inertia=np.eye(3), label="rod")
        rod.add_articulation([rod.add_joint_revolute(-1, link, axis=(0, 1, 0))], label="crane")
        reach = 2.0 if world == short else 1.0
        rod.add_joint_ball(
            -1, link, parent_xform=(reach, 0, 0, 0, 0, 0, 1), child_xform=(1, 0, 0, 0, 0, 0, 1), label="far"
        )
        scene.add_world(rod)
    model = scene.finalize("cpu")
    told = rf"world {short} \('{model.world_label[short]}'\), articulation .*crane.*'far'"
    with pytest.raises(ValueError, match=told):
        dynamics.assemble(model, model.state())


@pytest.mark.parametrize("nearer", [0.02, 0.6, 0.95])
def test_assemble_closes_straight_chains_whose_ends_have_to_approach_each_other(nearer):
    """No joint of a straight chain changes the distance of its ends, so the first search stays there."""
    links, length = 12, 0.1
    chain, joints, link = ModelBuilder(), [], -1
    for i in range(links):
        child = chain.add_link(mass=0.1, com=(0.05, 0.0, 0.0), inertia=1e-4 * np.eye(3))
        place = (length if i else 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        joints.append(chain.add_joint_revolute(link, child, axis=(0, 1, 0), parent_xform=place))
        link = child
    chain.add_articulation(joints)
    end = (nearer * links * length, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    chain.add_joint_ball(-1, link, parent_xform=end, child_xform=(length, 0, 0, 0, 0, 0, 1), label="end")
    scene = ModelBuilder()
    scene.replicate(chain, 2)
    model = scene.finalize("cpu", dtype=wp.float64)
    state = model.state()
    dynamics.assemble(model, state, fixed=["joint_4"])
    assert abs(dynamics.constraint_jacobian(model, state)[1].numpy()).max() < 1e-8
    assert not state.joint_q.numpy().reshape(2, -1)[:, 4].any()
