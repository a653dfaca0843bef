"""MechanismState: caching and invalidation, setters and views, queries."""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

from newton_like import JointType, MechanismState, ModelBuilder, ModelFlags, dynamics
from newton_like.mechanism import QUANTITIES
from newton_like.types import VelRepr
from tests.support import reference
from tests.support.kinematic_cases import forest, same_sign
from tests.support.loops import add_loop, looped
from tests.support.random_trees import random_state, random_tree
from tests.support.traced import run_by_numpy

FRAMES = {"relative_transform": dict(source=2, target=None), "relative_twist": dict(source=2, target=None)}


@pytest.fixture
def launches(monkeypatch):
    """Names of the programs and kernels that were launched; programs are run by NumPy."""
    names, launch = [], wp.launch

    def run(model, program, arrays, mask=None):
        names.append(program.name)
        run_by_numpy(model, program, arrays, mask)

    def counted(kernel, *args, **options):
        # a workspace is made, and its parameters gathered, when a program runs for the first time
        if not (kernel.module.name.startswith("newton_like.parameters") or kernel.key.startswith("mass_kernels")):
            names.append(kernel.key)
        return launch(kernel, *args, **options)

    for module in ("internal.common", "forces"):
        monkeypatch.setattr(f"newton_like.dynamics.{module}.run", run)
    monkeypatch.setattr(wp, "launch", counted)
    return names


def ask(state, name):
    """A quantity, as one array or several."""
    result = getattr(state, name)(**FRAMES.get(name, {}))
    return result if isinstance(result, tuple) else (result,)


def numbers(state, name):
    return [a.numpy().copy() for a in ask(state, name)]


def same_robots(rng, worlds=2, **options):
    scene = ModelBuilder()
    scene.replicate(random_tree(rng, **options), worlds)
    return scene


# ------------------------------------------------------------------------------------------------------- the cache


SETTERS = {
    "q": [
        lambda s, rng: s.set_configuration(rng.normal(size=s.configuration().shape)),
        lambda s, rng: s.set_configuration(rng.normal(size=s.configuration(0).shape), joint=0),
        lambda s, rng: s.set_configuration(rng.normal(size=s.configuration(world=1).shape), world=1),
        lambda s, rng: s.normalize_configuration(),
        lambda s, rng: s.principal_value(),
        lambda s, rng: s.zero_configuration(),
        lambda s, rng: s.rand_configuration(rng),
        lambda s, rng: s.global_coordinates(s.configuration(), rng.normal(size=s.velocity().shape)),
    ],
    "v": [
        lambda s, rng: s.set_velocity(rng.normal(size=s.velocity().shape)),
        lambda s, rng: s.set_velocity(rng.normal(size=s.velocity(0).shape), joint=0),
        lambda s, rng: s.set_velocity(rng.normal(size=s.velocity(world=0).shape), world=0),
        lambda s, rng: s.rand_velocity(rng),
        lambda s, rng: s.zero_velocity(),
    ],
    "s": [lambda s, rng: s.set_additional_state(rng.normal(size=(2, 3))), lambda s, rng: s.reset_contact_state()],
    "qvs": [
        lambda s, rng: s.set_dirty(),
        lambda s, rng: s.joints_changed(),
        lambda s, rng: s.copy_from(s.copy_to()),
        lambda s, rng: s.rand(rng),
        lambda s, rng: s.zero(),
        lambda s, rng: s.model.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES),
    ],
}


def test_every_method_that_writes_is_tried_below():
    methods = {n: f.__code__ for c in MechanismState.__mro__ for n, f in vars(c).items() if hasattr(f, "__code__")}
    writers, found = set(), {"_changed"}
    while writers != found:
        writers, found = found, found | {n for n, code in methods.items() if found & {*code.co_names}}
    tried = {n for setters in SETTERS.values() for setter in setters for n in setter.__code__.co_names}
    assert {n for n in writers if not n.startswith("_")} <= tried


@pytest.mark.slow
def test_a_second_query_launches_nothing_and_setters_forget_just_what_depends_on_them(rng, launches):
    state = MechanismState(same_robots(rng, joints=5, floating=True).finalize("cpu", dtype=wp.float64), None, 3)
    state.rand(rng)
    for name in QUANTITIES:
        ask(state, name)
    for changed, setters in SETTERS.items():
        for setter in setters:
            launches.clear()
            before = {name: ask(state, name) for name in QUANTITIES}
            assert launches == [], "a second query"
            setter(state, rng)
            for name, quantity in QUANTITIES.items():
                launches.clear()
                after = ask(state, name)
                stale = bool(set(quantity.reads) & set(changed))
                # a constraint without loop joints has no rows to launch
                if not name.startswith("constraint"):
                    assert bool(launches) == stale, (name, changed)
                # results stay where they are
                assert all(a.ptr == b.ptr for a, b in zip(after, before[name], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", QUANTITIES)
def test_dependencies_are_what_the_table_says(rng, launches, name):
    """Other velocities change a quantity that reads them and no other one; so do other coordinates."""
    model = looped(rng).finalize("cpu", dtype=wp.float64)
    state = MechanismState(model)
    state.rand(rng)
    first = numbers(state, name)
    state.rand_velocity(rng)
    other = MechanismState(model)
    other.copy_from(state)
    second = numbers(other, name)
    changed = any((a != b).any() for a, b in zip(first, second, strict=True))
    assert changed == ("v" in QUANTITIES[name].reads)
    # cached quantities agree with those of a new state, after any setter
    for a, b in zip(numbers(state, name), second, strict=True):
        np.testing.assert_array_equal(a, b)
    state.rand_configuration(rng)
    other.copy_from(state)
    third = numbers(other, name)
    # a link's inertia in its own axes is the same everywhere, to rounding
    moved = any(np.abs(a - b).max(initial=0.0) > 1e-9 for a, b in zip(second, third, strict=True))
    assert moved == (name != "link_spatial_inertias")
    for a, b in zip(numbers(state, name), third, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_quantities_are_those_of_the_functions(rng, by_numpy):
    """On a State with the same numbers; options have a place of their own."""
    model = forest(rng, joints=4).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    plain = SimpleNamespace(joint_q=wp.array(q, dtype=wp.float64), joint_qd=wp.array(qd, dtype=wp.float64))
    state = MechanismState(model, plain)
    names = {"link_spatial_inertias": "link_spatial_inertia", "crb_inertias": "crb_inertia"}
    for name in QUANTITIES:
        expected = getattr(dynamics, names.get(name, name))(model, plain, **FRAMES.get(name, {}))
        expected = expected if isinstance(expected, tuple) else (expected,)
        for a, b in zip(numbers(state, name), expected, strict=True):
            np.testing.assert_array_equal(a, b.numpy())
    for repr in VelRepr:
        expected = dynamics.total_momentum(model, plain, repr=repr).numpy()
        np.testing.assert_array_equal(state.total_momentum(repr=repr).numpy(), expected)
    assert state.total_momentum().ptr == state.total_momentum(repr=VelRepr.MIXED).ptr
    assert state.total_momentum().ptr != state.total_momentum(repr=VelRepr.BODY).ptr


def test_edits_of_the_model_count_once_they_are_notified(rng, by_numpy):
    model = same_robots(rng, joints=4, floating=True).finalize("cpu", dtype=wp.float64)
    state = MechanismState(model)
    M = state.mass_matrix().numpy().copy()
    model.body_mass.assign(2.0 * model.body_mass.numpy())
    model.body_inertia.assign(2.0 * model.body_inertia.numpy())
    armature = model.joint_armature.numpy()
    model.joint_armature.assign(2.0 * armature)
    np.testing.assert_array_equal(state.mass_matrix().numpy(), M)
    model.notify_changed()
    np.testing.assert_allclose(state.mass_matrix().numpy(), 2.0 * M, rtol=1e-13, atol=1e-13)


def test_update_launches_always_into_the_same_arrays(rng, launches):
    """The stages for CUDA graphs run whether they are stale or not."""
    state = MechanismState(looped(rng).finalize("cpu", dtype=wp.float64))
    state.update("mass_matrix", "constraint_bias", ("total_momentum", {"repr": VelRepr.BODY}))
    places = [a.ptr for name in ("mass_matrix", "constraint_bias") for a in ask(state, name)]
    first = list(launches)
    assert first == ["eval_mass_matrix", "eval_constraint_bias", "eval_momentum"]
    launches.clear()
    state.update("mass_matrix", "constraint_bias", ("total_momentum", {"repr": VelRepr.BODY}))
    assert launches == first
    launches.clear()
    state.update()
    assert sorted(launches) == sorted(first)
    assert places == [a.ptr for name in ("mass_matrix", "constraint_bias") for a in ask(state, name)]
    # a view was written, as a graph does it, without a word
    M = state.mass_matrix().numpy().copy()
    state.configuration().assign(state.configuration().numpy() + rng.normal(size=state.configuration().shape))
    np.testing.assert_array_equal(state.mass_matrix().numpy(), M)
    state.update("mass_matrix")
    assert (state.mass_matrix().numpy() != M).any()
    with pytest.raises(KeyError, match=r"quantity 'mass'.*average_"):
        state.update("mass")


def test_what_fails_is_not_kept(rng, by_numpy):
    state = MechanismState(same_robots(rng, joints=3).finalize("cpu", dtype=wp.float64))
    for _ in range(2):
        with pytest.raises(ValueError, match="repr=99"):
            state.total_momentum(repr=99)
    with pytest.raises(TypeError):
        state.mass_matrix(of="everything")


# --------------------------------------------------------------------------------------------------- q, v and s


@pytest.mark.parametrize("build", [same_robots, forest, looped])
def test_rows_and_flat_arrays_hold_the_same_numbers(rng, build):
    """Robots of one shape, of several, and with coordinates of loop joints between."""
    model = build(rng, worlds=2).finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)
    state = MechanismState(model)
    state.set_configuration(q)
    state.set_velocity(qd)
    start, end = model.articulation_start.numpy(), model.articulation_end.numpy()
    for rows, values, starts, flat in (
        (state.configuration(), q, model.joint_q_start.numpy(), state.joint_q),
        (state.velocity(), qd, model.joint_qd_start.numpy(), state.joint_qd),
    ):
        assert flat.shape == (len(values),)
        of_tree = np.zeros(len(values), bool)
        for a in range(model.articulation_count):
            s = slice(starts[start[a]], starts[end[a]])
            of_tree[s] = True
            np.testing.assert_array_equal(rows.numpy()[a, : s.stop - s.start], values[s])
            assert not rows.numpy()[a, s.stop - s.start :].any()
        np.testing.assert_array_equal(flat.numpy()[of_tree], values[of_tree])
    # and the other way round: a view is written
    state.velocity().assign(2.0 * state.velocity().numpy())
    state.set_dirty()
    np.testing.assert_array_equal(state.joint_qd.numpy()[of_tree], 2.0 * qd[of_tree])


def test_setters_write_what_they_name_and_nothing_else(rng):
    """A joint by name or index, a world, both; numbers and Warp arrays; one row for all."""
    model = same_robots(rng, worlds=3, joints=6, label="arm").finalize("cpu")
    state = MechanismState(model, additional_states=4)
    for k in range(6):
        joint = k if k % 2 else f"arm_joint_{k}"
        width = state.configuration_range(joint)
        if width.start == width.stop:
            state.set_configuration(np.zeros((3, 0)), joint)
            assert state.configuration(joint).shape == (3, 0)
            continue
        expected = state.configuration().numpy().copy()
        for value, rows, world in (
            (rng.normal(size=(3, width.stop - width.start)), slice(None), None),
            (rng.normal(size=width.stop - width.start), slice(None), None),
            (rng.normal(size=(1, width.stop - width.start)), slice(1, 2), 1),
        ):
            state.set_configuration(value, joint, world=world)
            expected[rows, width] = value
            np.testing.assert_array_equal(state.configuration().numpy(), expected.astype(np.float32))
            np.testing.assert_array_equal(state.configuration(joint).numpy(), expected[:, width].astype(np.float32))
    v = rng.normal(size=(3, state.num_velocities)).astype(np.float32)
    state.set_velocity(wp.array(v, dtype=wp.float32, device="cpu"))
    state.set_velocity(2.0 * v[2], world=2)
    np.testing.assert_array_equal(state.velocity().numpy(), v * [[1], [1], [2]])
    np.testing.assert_array_equal(state.velocity(world=2).numpy(), 2.0 * v[2:])
    state.set_additional_state(np.ones(4), world=1)
    np.testing.assert_array_equal(state.additional_state().numpy(), [[0] * 4, [1] * 4, [0] * 4])
    state.reset_contact_state()
    assert not state.additional_state().numpy().any()


def test_copies_are_in_the_order_q_v_s(rng):
    model = forest(rng, worlds=2).finalize("cpu", dtype=wp.float64)
    state = MechanismState(model, additional_states=2)
    state.set_configuration(rng.normal(size=state.configuration().shape))
    state.set_velocity(rng.normal(size=state.velocity().shape))
    state.set_additional_state(rng.normal(size=(4, 2)))
    rows = state.copy_to()
    parts = [state.configuration(), state.velocity(), state.additional_state()]
    np.testing.assert_array_equal(rows.numpy(), np.hstack([a.numpy() for a in parts]))
    for source in (rows, rows.numpy(), state):
        other = MechanismState(model, additional_states=2)
        other.copy_from(source)
        assert other.copy_to(other.copy_to()).numpy().tolist() == rows.numpy().tolist()


def test_ranges_joints_and_supports_follow_the_tree(rng):
    model = random_tree(rng, joints=9, label="t").finalize("cpu")
    state = MechanismState(model)
    starts, dofs = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    assert (state.num_positions, state.num_velocities) == (model.joint_coord_count, model.joint_dof_count)
    for j in range(9):
        assert state.configuration_range(f"t_joint_{j}") == slice(starts[j], starts[j + 1])
        assert state.velocity_range(j) == slice(dofs[j], dofs[j + 1])
        assert all(state.configuration_index_to_joint(i) == j for i in range(starts[j], starts[j + 1]))
        assert all(state.velocity_index_to_joint(i) == j for i in range(dofs[j], dofs[j + 1]))
    parent, child = model.joint_parent.numpy(), model.joint_child.numpy()
    for j in range(9):
        carried = {int(child[j])}
        for _ in range(9):
            carried |= {int(c) for p, c in zip(parent, child, strict=True) if p in carried}
        for k in range(9):
            assert state.supports(j, f"t_link_{k}") == (model.body_label.index(f"t_link_{k}") in carried)


def test_loop_joints_support_nothing(rng):
    """Loop joints support no body, by any of their names; unknown names raise errors."""
    tree = random_tree(rng, joints=6, types=[JointType.REVOLUTE], floating=True, label="t")
    add_loop(tree, rng, JointType.REVOLUTE, 2, 5)
    tree.joint_label[-1] = "t/closing"
    state = MechanismState(tree.finalize("cpu"))
    for body in range(6):
        assert state.supports("closing", body) is False
        assert state.supports("t/closing", f"t_link_{body}") is False
    with pytest.raises(KeyError, match="closng"):
        state.supports("closng", 0)
    with pytest.raises(KeyError, match="no_link"):
        state.supports("closing", "no_link")
    with pytest.raises(IndexError):
        state.supports("closing", 0, 1)


def test_local_and_global_coordinates_move_the_state(rng, by_numpy):
    model = forest(rng).finalize("cpu", dtype=wp.float64)
    state, start = MechanismState(model), MechanismState(model)
    state.rand(rng)
    start.rand(rng)
    q = state.joint_q.numpy().copy()
    phi, rate = state.local_coordinates(start.configuration())
    np.testing.assert_array_equal(rate.numpy() != 0.0, state.velocity().numpy() != 0.0)
    state.zero_configuration()
    state.global_coordinates(start.configuration(), phi)
    np.testing.assert_allclose(same_sign(model, state.joint_q.numpy(), q), q, atol=1e-13)
    rate = state.velocity_to_configuration_derivative()
    back = state.configuration_derivative_to_velocity(rate)
    np.testing.assert_allclose(back.numpy(), state.velocity().numpy(), atol=1e-13)


# -------------------------------------------------------------------------------------------------------- queries


def test_queries_of_single_joints_and_links(rng, by_numpy):
    """X_wp X_p X_j inverse(X_c) = X_wc; twists across joints and their biases add up, about the world's origin, to those of links."""
    model = same_robots(rng, joints=7).finalize("cpu", dtype=wp.float64)
    state = MechanismState(model)
    state.rand(rng)
    world = VelRepr.INERTIAL
    S = state.motion_subspaces(repr=world).numpy()
    for k in range(7):
        j = k  # in the first world
        parent = model.joint_parent.numpy()[j]
        body, above = model.body_label[model.joint_child.numpy()[j]], parent
        X_p, X_c = (reference.pose_matrix(x.numpy()[j]) for x in (model.joint_X_p, model.joint_X_c))
        if above >= 0:
            above = model.body_label[above]
            X_wp = reference.pose_matrix(state.transform_to_root(above).numpy()[0])
            carried = [state.twist_wrt_world(above, repr=world), state.bias_acceleration(above, repr=world)]
            carried = [x.numpy() for x in carried]
        else:
            X_wp, carried = np.eye(4), [0.0, 0.0]
        X_j = reference.pose_matrix(state.joint_transform(model.joint_label[j]).numpy()[0])
        X_wc = reference.pose_matrix(state.transform_to_root(k).numpy()[0])
        np.testing.assert_allclose(X_wp @ X_p @ X_j @ np.linalg.inv(X_c), X_wc, atol=1e-13)
        # sums of a few terms of up to some 100, with levers of some metres
        twist = state.twist(k, repr=world).numpy()
        np.testing.assert_allclose(carried[0] + twist, state.twist_wrt_world(body, repr=world).numpy(), atol=1e-11)
        bias = state.bias_acceleration(joint=k, repr=world).numpy()
        np.testing.assert_allclose(carried[1] + bias, state.bias_acceleration(body, repr=world).numpy(), atol=1e-10)
        dofs = state.velocity_range(k)
        expected = np.einsum("aic,ai->ac", S[:, dofs], state.velocity().numpy()[:, dofs])
        np.testing.assert_allclose(twist, expected, atol=1e-12)
        np.testing.assert_array_equal(state.spatial_inertia(k), state.link_spatial_inertias().numpy()[:, k])
        np.testing.assert_array_equal(state.crb_inertia(body), state.crb_inertias().numpy()[:, k])
    np.testing.assert_array_equal(state.gravitational_potential_energy(), state.potential_energy())


def test_offsets_that_can_be_written_are_read_each_time(rng, by_numpy, launches):
    """A list or an array is the same object with other numbers in it; a tuple never is."""
    model = same_robots(rng, joints=3).finalize("cpu", dtype=wp.float64)
    state = MechanismState(model)
    offsets = np.zeros(7), wp.zeros(7, dtype=wp.float64, device="cpu"), wp.transformd(), [0.0] * 7
    for offset in offsets:
        for x in (1.0, 2.0):
            numbers = [x, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
            if isinstance(offset, wp.array):
                offset.assign(numbers)
            else:
                offset[:] = numbers
            seen = state.relative_transform((2, offset), 2).numpy()
            np.testing.assert_allclose(seen, [numbers] * 2, atol=1e-14)
    fixed = (2, (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
    kept = state.relative_transform(fixed, 2)
    launches.clear()
    assert state.relative_transform(fixed, 2) is kept
    assert not launches


@pytest.mark.parametrize("repr", VelRepr)
def test_joint_biases_are_rates_of_joint_twists(rng, by_numpy, repr):
    """Central differences along the flow, in every representation of the child."""
    model = random_tree(rng, joints=7).finalize("cpu", dtype=wp.float64)
    tree = reference.Tree.from_model(model)
    q, qd = random_state(model, rng)

    def twists(q):
        state = SimpleNamespace(joint_q=wp.array(q, dtype=wp.float64), joint_qd=wp.array(qd, dtype=wp.float64))
        return dynamics.joint_twists(model, state, repr=repr).numpy(), state

    step = 1e-5
    ends = [twists(reference.displace(tree, q, qd, s * step))[0] for s in (1, -1)]
    bias = dynamics.joint_bias_accelerations(model, twists(q)[1], repr=repr).numpy()
    # rounding 1e-15 / 1e-5 and third derivatives, up to 1e4, times 1e-10 / 6
    np.testing.assert_allclose(bias, (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-6)


def test_links_that_some_articulations_lack_are_zero_there(rng, by_numpy):
    """Robots of several shapes: a name finds its link at another index, or not at all."""
    scene = forest(rng, worlds=2, robots=2, joints=5)
    model = scene.finalize("cpu", dtype=wp.float64)
    state = MechanismState(model)
    state.rand(rng)
    every = state.link_transforms().numpy()
    for body in range(model.body_count // 2):
        label = model.body_label[body]
        pose = state.transform_to_root(label)
        assert pose.ptr == state.transform_to_root(label).ptr
        for a in range(4):
            links = [model.body_label[b] for b in dynamics.link_bodies(model, a)]
            expected = every[a, links.index(label)] if label in links else np.zeros(7)
            np.testing.assert_array_equal(pose.numpy()[a], expected)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [wp.float64, wp.float32])
def test_kernels_of_joint_motion_do_what_the_programs_say(rng, monkeypatch, dtype):
    """Compiled, on several robots and worlds, against NumPy in double precision."""
    builder = forest(rng, worlds=2, joints=5)
    model, exact = builder.finalize("cpu", dtype=dtype), builder.finalize("cpu", dtype=wp.float64)
    q, qd = random_state(model, rng)

    def results(model):
        arrays = {"joint_q": q, "joint_qd": qd}
        arrays = {name: wp.array(a, dtype=model.dtype, device="cpu") for name, a in arrays.items()}
        state = MechanismState(model, SimpleNamespace(**arrays))
        names = ("joint_transforms", "motion_subspaces", "joint_twists", "joint_bias_accelerations")
        return [ask(state, name)[0].numpy() for name in names]

    model.evaluator = "general"
    actual = results(model)
    monkeypatch.setattr("newton_like.dynamics.internal.common.run", run_by_numpy)
    for a, b in zip(actual, results(exact), strict=True):
        # accelerations of some 10 m/s^2, relative to the largest one
        tolerance = 1e-13 if dtype is wp.float64 else 1e-5
        np.testing.assert_allclose(a, b, rtol=0.0, atol=tolerance * max(1.0, np.abs(b).max()))


# ------------------------------------------------------------------------------------------------------ bad input


def test_bad_input_is_named(rng):
    model = same_robots(rng, joints=4, floating=True, label="arm").finalize("cpu", dtype=wp.float64)
    state = MechanismState(model, additional_states=2)
    n = state.num_positions
    for setter, what in ((state.set_configuration, "configuration"), (state.set_velocity, "velocity")):
        with pytest.raises(ValueError, match=rf"{what} .*\(3, 1\).*\(2, "):
            setter(np.zeros((3, 1)))
        with pytest.raises(ValueError, match=f"{what} .*finite"):
            setter(np.full(state.joint_q.shape, np.nan))
        with pytest.raises(TypeError, match=f"{what} .*numbers"):
            setter("zero")
        with pytest.raises(TypeError, match=f"{what} .*float32.*float64"):
            setter(wp.zeros((2, n), dtype=wp.float32, device="cpu"))
        with pytest.raises(KeyError, match=r"joint 'arm_joint_9' .*'arm_joint_"):
            setter([0.0], "arm_joint_9")
        with pytest.raises(IndexError, match=r"joint 4.*4"):
            setter([0.0], 4)
        with pytest.raises(TypeError, match=r"^joint .*index"):
            setter([0.0], 1.5)
        with pytest.raises(IndexError, match=r"world 2.*2"):
            setter([0.0], world=2)
    with pytest.raises(ValueError, match=r"additional state.*\(3,\).*\(2, 2\)"):
        state.set_additional_state(np.zeros(3))
    with pytest.raises(ValueError, match=r"state.*\(2, 3\)"):
        state.copy_from(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"^out .*shape"):
        state.copy_to(wp.zeros((2, 3), dtype=wp.float64, device="cpu"))
    with pytest.raises(TypeError, match=r"additional_states.*'many'"):
        MechanismState(model, additional_states="many")
    with pytest.raises(KeyError, match="body 'arm_link_9'"):
        state.transform_to_root("arm_link_9")
    with pytest.raises(KeyError, match=r"joint 'elbow'.*0"):
        state.twist("elbow")
    with pytest.raises(TypeError, match="bias_acceleration"):
        state.bias_acceleration()
    with pytest.raises(IndexError, match="index 999"):
        state.configuration_index_to_joint(999)
    with pytest.raises(IndexError, match=r"articulation 2.*2"):
        state.velocity_range(0, articulation=2)
    with pytest.raises(IndexError, match=r"loop joint 0.*0"):
        state.constraint_range(0)
    with pytest.raises(ValueError, match=r"time_constant.*0\.0.*None"):
        state.constrained_dynamics(time_constant=0.0)


def test_states_of_other_models_are_refused(rng):
    builder = same_robots(rng, joints=4)
    model, twin = builder.finalize("cpu"), builder.finalize("cpu")
    state = MechanismState(model)
    with pytest.raises(ValueError, match=r"state .*model"):
        state.copy_from(MechanismState(twin))
    with pytest.raises(ValueError, match=r"3 additional states.*0"):
        state.copy_from(MechanismState(model, additional_states=3))
    other = same_robots(rng, worlds=40, joints=2, floating=True).finalize("cpu")
    with pytest.raises(ValueError, match=r"state\.joint_q .*shape"):
        MechanismState(model, other.state())
    with pytest.raises(ValueError, match=r"state\.joint_q .*shape"):
        dynamics.mass_matrix(model, MechanismState(other))
    with pytest.raises(TypeError, match=r"state\.joint_q.*float64.*float32"):
        MechanismState(model, builder.finalize("cpu", dtype=wp.float64).state())


def test_robots_of_several_shapes_are_set_one_world_or_one_joint_at_a_time(rng):
    model = forest(rng, worlds=2, joints=5).finalize("cpu")
    state = MechanismState(model)
    with pytest.raises(ValueError, match="joint 'tree_0_joint_1'"):
        state.configuration("tree_0_joint_1")
    with pytest.raises(ValueError, match="world 0"):
        MechanismState(ModelBuilder().finalize("cpu")).configuration(world=0)


def test_models_without_joints_or_dofs_have_answers(by_numpy):
    """Empty arrays or zeros of the right shape."""
    builder = ModelBuilder()
    empty = MechanismState(builder.finalize("cpu", dtype=wp.float64))
    builder.add_articulation([builder.add_joint_fixed(-1, builder.add_link(mass=1.0, inertia=np.eye(3)))])
    fixed = MechanismState(builder.finalize("cpu", dtype=wp.float64))
    for state, count in ((empty, 0), (fixed, 1)):
        for name in QUANTITIES.keys() - FRAMES.keys():
            assert all(a.shape[0] == count for a in ask(state, name))
        state.rand(1)
        state.zero()
        state.copy_from(state.copy_to())
        state.update()
        assert [a.shape for a in state.constrained_dynamics()] == [(count, 0)] * 2
    np.testing.assert_array_equal(fixed.transform_to_root(0), [[0, 0, 0, 0, 0, 0, 1]])
    with pytest.raises(IndexError, match=r"articulation 0.*0"):
        empty.twist("hinge")
    with pytest.raises(IndexError, match=r"articulation 0.*0"):
        empty.constraint_range(0)
