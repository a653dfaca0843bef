"""Edited models in the solver: the effect of `notify_model_changed`, by world, and the specialised code after edits."""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, ModelFlags, ShapeConfig, dynamics
from newton_like.collision.ground import unsupported_pairs
from newton_like.model.columns import BY_NAME
from newton_like.solvers import SolverFeatherstone
from newton_like.types import BodyFlags, GeoType, ShapeFlags
from tests.support.mechanisms import mechanism, quadruped, random_start, same_robot, vary, worlds_of

WORLDS, DT = 6, 1.0 / 240.0
RANDOMISED = ("body_mass", "body_com", "joint_armature", "joint_damping", "shape_material_mu", "joint_target_ke")


def scene(dtype=wp.float64):
    return worlds_of(same_robot(mechanism), WORLDS).finalize("cpu", dtype=dtype)


def run(solver, state, steps: int = 8) -> bytes:
    for _ in range(steps):
        solver.step(state, state, None, None, DT)
    return state.joint_q.numpy().tobytes()


def started(model):
    state = model.state()
    q, qd = random_start(model, range(WORLDS), height=(0.05, 0.2))
    state.joint_q.assign(q.ravel())
    state.joint_qd.assign(qd.ravel())
    return state


@pytest.mark.parametrize("varying", [(), RANDOMISED])
def test_an_edited_solver_steps_as_a_new_one(rng, varying):
    """In the worlds that were named; the others go on with the old numbers."""
    model, twin = scene(), scene()
    keys = rng.integers(1000, size=WORLDS)
    solver = SolverFeatherstone(model, evaluator="general", varying=varying)
    run(solver, started(model))
    vary(model, RANDOMISED, keys)
    mask = np.arange(WORLDS) % 2 == 0
    for name in RANDOMISED:
        model_array, own = getattr(model, name), getattr(twin, name)
        world = {"b": model.body_world, "s": model.shape_world}.get(name[0])
        world = np.arange(len(own)) // (len(own) // WORLDS) if world is None else world.numpy()
        chosen = (world >= 0) & mask[world]
        numbers = own.numpy()
        numbers[chosen] = model_array.numpy()[chosen]
        own.assign(numbers)
    # `vary` notified the model of all worlds: a mask after that adds none
    fresh = scene()
    masked = SolverFeatherstone(fresh, evaluator="general", varying=varying)
    for name in RANDOMISED:
        getattr(fresh, name).assign(getattr(model, name).numpy())
    masked.notify_model_changed(ModelFlags.ALL, mask)
    assert run(masked, started(fresh)) == run(SolverFeatherstone(twin, evaluator="general"), started(twin))
    assert run(solver, started(model)) != run(masked, started(fresh))


@pytest.mark.slow
def test_code_is_made_once_for_what_varies(rng):
    """Specialised code with declared varying parameters is kept; other code is compiled again, for the first edit only."""
    kernels = {}
    for varying in ((), RANDOMISED):
        model = worlds_of(quadruped(), WORLDS).finalize("cpu")
        solver = SolverFeatherstone(model, evaluator="specialised", varying=varying)
        (stepper,) = solver._steppers
        kernels[varying] = [stepper.kernel]
        for _ in range(3):
            vary(model, RANDOMISED, rng.integers(1000, size=WORLDS))
            solver.notify_model_changed()
            kernels[varying].append(stepper.kernel)
    first, *later = kernels[RANDOMISED]
    assert all(k is first for k in later)
    first, second, *later = kernels[()]
    assert second is not first
    assert all(k is second for k in later)


@pytest.mark.slow
def test_code_for_what_varies_gives_the_bits_of_the_general_kernel(rng):
    """Before and after edits."""
    paths = {}
    keys = rng.integers(1000, size=(2, WORLDS))
    for evaluator in ("general", "specialised"):
        model = worlds_of(quadruped(), WORLDS).finalize("cpu")
        solver = SolverFeatherstone(model, evaluator=evaluator, width=8, varying=RANDOMISED)
        state, path = model.state(), []
        path.append(run(solver, state))
        for each in keys:
            vary(model, RANDOMISED, each)
            path.append(run(solver, state))
        paths[evaluator] = path
    assert paths["general"] == paths["specialised"]
    assert len(set(paths["general"])) == 3


@pytest.mark.parametrize("handed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_shapes_that_stop_colliding_fall_through(handed):
    """Flags of shapes, world by world; then all collide again, and stay on the ground that they are on."""
    one = ModelBuilder()
    body = one.add_body(xform=(0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0), mass=1.0, inertia=0.01 * np.eye(3))
    one.add_shape_sphere(body, radius=0.1)
    scene = ModelBuilder()
    scene.replicate(one, 3)
    scene.add_ground_plane()
    model = scene.finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()

    def heights(steps):
        for _ in range(steps):
            solver.step(state, state, None, model.collide(state) if handed else None, DT)
        return state.body_q.numpy()[:, 2]

    np.testing.assert_allclose(heights(20), 0.1, atol=1e-3)
    flags = model.shape_flags.numpy()
    ghost = int(np.flatnonzero(model.shape_body.numpy() == 1)[0])
    flags[ghost] &= ~int(ShapeFlags.COLLIDE_SHAPES)
    model.shape_flags.assign(flags)
    solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    after = heights(60)
    np.testing.assert_allclose(after[[0, 2]], 0.1, atol=1e-3)
    assert after[1] < -0.1
    # a shape that is filtered falls, too
    model.shape_collision_filter_pairs.add((ghost - 1, int(np.flatnonzero(model.shape_body.numpy() < 0)[0])))
    solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    after = heights(60)
    assert after[0] < 0.0
    np.testing.assert_allclose(after[2], 0.1, atol=1e-3)


@pytest.mark.slow
def test_bodies_touch_after_their_groups_were_edited():
    builder = ModelBuilder(gravity=0.0)
    for i in range(2):
        body = builder.add_body(xform=(0.15 * i, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
        builder.add_shape_sphere(body, radius=0.1, cfg=ShapeConfig(collision_group=1 + i))
    model = builder.finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    solver.step(state, state)
    assert not state.joint_qd.numpy().any()
    assert model.collide(state).rigid_contact_count.numpy()[0] == 0
    model.shape_collision_group.fill_(1)
    solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    assert model.collide(state).rigid_contact_count.numpy()[0] == 1
    solver.step(state, state)
    speeds = state.joint_qd.numpy().reshape(2, 6)[:, 0]
    assert speeds[0] < -1.0e-3
    np.testing.assert_allclose(speeds[1], -speeds[0], rtol=1.0e-4)


def test_pairs_that_edits_let_touch_are_refused():
    builder = ModelBuilder()
    builder.add_shape_sphere(
        builder.add_body(mass=1.0, inertia=np.eye(3)), radius=0.1, cfg=ShapeConfig(collision_group=1)
    )
    builder.add_shape_plane(body=builder.add_body(mass=1.0, inertia=np.eye(3)), cfg=ShapeConfig(collision_group=2))
    model = builder.finalize("cpu")
    solver = SolverFeatherstone(model, evaluator="general")
    state = model.state()
    assert not len(unsupported_pairs(model))
    model.collide(state)
    model.shape_collision_group.fill_(1)
    with pytest.raises(ValueError, match=r"shape_0.*shape_1"):
        solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"shape_0.*shape_1"):
            solver.step(state, state)
    with pytest.raises(ValueError, match=r"shape_0.*shape_1"):
        model.collide(state)
    assert model.collide(state, unsupported_contacts="ignore").rigid_contact_count.numpy()[0] == 0
    with pytest.raises(ValueError, match="perhaps"):
        model.collide(state, unsupported_contacts="perhaps")


@pytest.mark.slow
def test_shapes_may_become_others():
    """A box that becomes a ball rests on its radius."""
    one = ModelBuilder()
    body = one.add_body(xform=(0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0), mass=1.0, inertia=0.01 * np.eye(3))
    one.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    one.add_ground_plane()
    model = one.finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    solver.step(state, state)
    assert model.collide(state).rigid_contact_count.numpy()[0] == 4
    kinds = model.shape_type.numpy()
    kinds[kinds == GeoType.BOX] = GeoType.SPHERE
    model.shape_type.assign(kinds)
    solver.notify_model_changed(ModelFlags.SHAPE_TYPE_AND_SOURCE)
    for _ in range(60):
        solver.step(state, state)
    np.testing.assert_allclose(state.body_q.numpy()[0, 2], 0.1, atol=1e-3)
    assert model.collide(state).rigid_contact_count.numpy()[0] == 1


def test_a_solver_that_was_interrupted_takes_everything_over(monkeypatch):
    model, twin = scene(), scene()
    solver, state = SolverFeatherstone(model, evaluator="general"), started(model)
    for one in (model, twin):
        vary(one, RANDOMISED, range(WORLDS))
        # friction in all joints: rows that were not there
        one.joint_friction.fill_(0.3)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("newton_like.solvers.featherstone.stepper.Stepper._choose_kernel", interrupt)
        with pytest.raises(KeyboardInterrupt):
            solver.notify_model_changed()
    assert run(solver, state) == run(SolverFeatherstone(twin, evaluator="general"), started(twin))


def test_a_mass_that_is_taken_away_is_refused_until_it_comes_back():
    builder = ModelBuilder()
    parent, joints = -1, []
    for _ in range(3):
        link = builder.add_link(mass=1.0, inertia=0.1 * np.eye(3))
        joints.append(builder.add_joint_revolute(parent, link, axis=(0, 1, 0), parent_xform=(0, 0, -1, 0, 0, 0, 1)))
        parent = link
    builder.add_articulation(joints)
    model = builder.finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    mass, inertia = model.body_mass.numpy().copy(), model.body_inertia.numpy().copy()
    model.body_mass[2:].zero_()
    model.body_inertia[2:].zero_()
    for _ in range(2):
        with pytest.raises(ValueError, match=model.joint_label[2]):
            solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    # armature cures it, and is missed when it goes
    model.joint_armature.fill_(0.1)
    solver.notify_model_changed(ModelFlags.ALL)
    solver.step(state, state)
    model.joint_armature.zero_()
    with pytest.raises(ValueError, match=model.joint_label[2]):
        solver.notify_model_changed(ModelFlags.JOINT_DOF_PROPERTIES)
    with pytest.raises(ValueError, match=model.joint_label[2]):
        SolverFeatherstone(model)
    # a point mass beside the axis will do, and one on it will not
    model.body_mass[2:].fill_(1.0)
    for offset in (0.1, 0.0):
        model.body_com[2:].assign([[0.0, 0.0, offset]])
        if offset:
            solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
        else:
            with pytest.raises(ValueError, match=model.joint_label[2]):
                solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    model.body_mass.assign(mass)
    model.body_inertia.assign(inertia)
    solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    solver.step(state, state)


def test_edits_that_the_solver_does_not_support_are_refused():
    model = worlds_of(quadruped(), 2).finalize("cpu")
    solver = SolverFeatherstone(model, evaluator="general")
    enabled = model.joint_enabled.numpy().copy()
    disabled = enabled.copy()
    disabled[3] = False
    model.joint_enabled.assign(disabled)
    with pytest.raises(ValueError, match=model.joint_label[3]):
        solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
    model.joint_enabled.assign(enabled)
    flags = model.body_flags.numpy().copy()
    model.body_flags.fill_(int(BodyFlags.KINEMATIC))
    with pytest.raises(ValueError, match=r"kinematic.*world"):
        solver.notify_model_changed(ModelFlags.BODY_PROPERTIES)
    model.body_flags.assign(flags)
    solver.notify_model_changed()


def test_masses_that_were_edited_before_a_solver_was_made_are_checked():
    model = worlds_of(quadruped(), 2).finalize("cpu")
    mass = model.body_mass.numpy()
    mass[3] = -1.0
    model.body_mass.assign(mass)
    model.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    with pytest.raises(ValueError, match=model.body_label[3]):
        SolverFeatherstone(model)


@pytest.mark.parametrize(
    ("flags", "error"),
    [("BODY", TypeError), ([True], TypeError), (1.5, TypeError), (8192, ValueError), (-1, ValueError)],
)
def test_flags_that_do_not_exist_are_refused(flags, error):
    model = worlds_of(quadruped(), 2).finalize("cpu")
    with pytest.raises(error, match="flags"):
        model.notify_changed(flags)


def test_initial_controls_are_renewed_for_edits_of_drives_and_not_of_masses(rng):
    model = worlds_of(quadruped(), 2).finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    solver.step(state, state)
    model.joint_target_q.assign(rng.normal(size=model.joint_coord_count))
    solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    assert (solver._default_control().joint_target_q.numpy() != model.joint_target_q.numpy()).any()
    solver.notify_model_changed(ModelFlags.JOINT_DOF_PROPERTIES)
    np.testing.assert_array_equal(solver._default_control().joint_target_q.numpy(), model.joint_target_q.numpy())


@pytest.mark.parametrize("varying", [False, True])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("body_com", "body"),
        ("joint_target_ke", "joint"),
        ("joint_target_kd", "joint"),
        ("joint_friction", "joint"),
        ("joint_armature", "joint"),
        ("shape_material_mu", "shape"),
        ("gravity", "world"),
    ],
)
def test_numbers_that_are_not_finite_are_refused_by_name(rng, name, kind, varying):
    """By the notice of the edit, by each step and by functions of the library, until the array is mended."""
    model = worlds_of(quadruped(), WORLDS).finalize("cpu")
    solver = SolverFeatherstone(model, evaluator="general", varying=[name] if varying else ())
    state, array = model.state(), getattr(model, name)
    solver.step(state, state)
    dynamics.forward_dynamics(model, state)
    sound, numbers = wp.clone(array), array.numpy().copy()
    chosen, entity = rng.integers(len(numbers), size=1), None
    if kind == "joint":
        # nothing reads gains of dofs without drives
        chosen, entity = rng.choice(np.flatnonzero(model.joint_target_mode.numpy() & 1), 1), r"\d+"
    elif kind == "shape":
        # some of them can touch the ground
        chosen = np.flatnonzero(model.shape_body.numpy() >= 0)
    i = int(chosen[0])
    entity = i if entity is None else entity
    numbers[chosen] = rng.choice([np.nan, np.inf])
    array.assign(numbers)
    named = rf"{kind} .*index {entity}\b.*{name}\[{i}\]"
    with pytest.raises(ValueError, match=named):
        solver.notify_model_changed()
    calls = [lambda: solver.step(state, state), lambda: SolverFeatherstone(model, evaluator="general")]
    if kind != "shape":
        calls.append(lambda: dynamics.forward_dynamics(model, state))
    for call in calls * 2:
        with pytest.raises(ValueError, match=named):
            call()
    wp.copy(array, sound)
    solver.notify_model_changed()
    solver.step(state, state)
    assert np.isfinite(dynamics.forward_dynamics(model, state).numpy()).all()
    assert np.isfinite(state.joint_q.numpy()).all()


DOFS = ("target_ke", "target_kd", "armature", "damping", "stiffness", "friction", "effort_limit", "velocity_limit")
LIMITS = ("limit_lower", "limit_upper")
MATERIALS = ("mu", "restitution", "time_constant", "damping_ratio", "mu_torsional", "mu_rolling")


@pytest.mark.parametrize("varying", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *((f"joint_{name}", -1.0) for name in DOFS),
        *((f"joint_{name}", np.nan) for name in (*DOFS, *LIMITS)),
        *((f"shape_material_{name}", bad) for name in MATERIALS for bad in (-0.1, np.nan)),
        ("shape_material_restitution", 1.1),
        *((f"shape_{name}", bad) for name in ("margin", "gap") for bad in (-0.1, np.nan)),
        *((f"shape_{name}", np.nan) for name in ("transform", "scale")),
        *((f"joint_{name}", np.nan) for name in ("X_p", "X_c", "axis")),
    ],
)
def test_numbers_that_a_builder_refuses_are_refused_after_an_edit(rng, name, bad, varying):
    """By a solver and by a new one."""
    model = worlds_of(quadruped(), WORLDS).finalize("cpu")
    solver = SolverFeatherstone(model, evaluator="general", varying=[name] if varying else ())
    state, array = model.state(), getattr(model, name)
    numbers = array.numpy().copy()
    rows = numbers.reshape(len(numbers), -1)
    if name.startswith("shape"):
        # all that can touch the ground
        rows[model.shape_body.numpy() >= 0, int(rng.integers(rows.shape[1]))] = bad
    else:
        rows[int(rng.integers(len(rows))), int(rng.integers(rows.shape[1]))] = bad
    array.assign(numbers)
    with pytest.raises(ValueError, match=name):
        solver.notify_model_changed()
    with pytest.raises(ValueError, match=name):
        solver.step(state, state)
    with pytest.raises(ValueError, match=name):
        SolverFeatherstone(model, evaluator="general")


def springs():
    """A ball joint and a hinge with springs, a slide that follows the hinge, and a free body at a rope, in each world."""
    one = ModelBuilder()
    bodies = [one.add_link(mass=1.0, inertia=0.1 * np.eye(3), com=(0.0, 0.0, -0.2)) for _ in range(4)]
    joints = [
        one.add_joint_ball(-1, bodies[0], label="ball"),
        one.add_joint_revolute(bodies[0], bodies[1], axis="y", limit_lower=-3.0, limit_upper=3.0, label="hinge"),
        one.add_joint_prismatic(bodies[1], bodies[2], axis="x", label="slide"),
        one.add_joint_distance(bodies[2], bodies[3], min_distance=0.1, max_distance=0.5, label="rope"),
    ]
    one.add_articulation(joints)
    one.set_joint_mimic("slide", "hinge", coeffs=(0.0, 0.1))
    one.joint_stiffness[:4] = [1.0] * 4
    scene = ModelBuilder()
    scene.replicate(one, 3)
    return scene.finalize("cpu", dtype=wp.float64)


@pytest.mark.parametrize("varying", [False, True])
@pytest.mark.parametrize(
    ("joint", "name", "bad"),
    [
        ("hinge", "joint_rest_q", np.nan),
        ("hinge", "joint_rest_q", np.inf),
        ("ball", "joint_rest_q", 0.0),
        ("rope", "joint_rest_q", np.nan),
        ("hinge", "joint_limit_lower", np.inf),
        ("hinge", "joint_limit_upper", -np.inf),
        ("hinge", "joint_limit_upper", -4.0),
        ("hinge", "joint_axis", 0.0),
        ("hinge", "joint_axis", 1.0),
        ("slide", "joint_axis", 0.0),
        ("rope", "joint_X_p", 0.0),
        ("hinge", "joint_X_c", 0.0),
        ("hinge", "joint_target_mode", -1),
        ("hinge", "joint_target_mode", 5),
        ("slide", "joint_mimic_coeffs", np.nan),
        ("rope", "joint_min_distance", np.nan),
        ("rope", "joint_max_distance", 0.05),
    ],
)
def test_numbers_that_a_joint_cannot_have_are_refused_by_name(rng, joint, name, bad, varying):
    """By the notice of the edit, by each step and by a new solver, until the array is mended."""
    model = springs()
    solver = SolverFeatherstone(model, evaluator="general", varying=[name] if varying else ())
    state, array = model.state(), getattr(model, name)
    j = int(rng.choice([j for j, label in enumerate(model.joint_label) if label.endswith(joint)]))
    starts = {"coord": model.joint_q_start, "dof": model.joint_qd_start}
    first = int(starts[BY_NAME[name].kind].numpy()[j]) if BY_NAME[name].kind in starts else j
    sound, numbers = wp.clone(array), array.numpy()
    rows = slice(first, first + (4 if joint == "ball" else 1))
    numbers[rows] = bad
    array.assign(numbers)
    refused = "joint_min_distance" if "distance" in name else "joint_limit_lower" if bad == -4.0 else name
    named = rf"joint '[^']*{joint}' \(index {j}\): {refused}\["
    for call in [
        solver.notify_model_changed,
        lambda: solver.step(state, state),
        lambda: SolverFeatherstone(model, evaluator="general"),
    ]:
        with pytest.raises(ValueError, match=named):
            call()
    wp.copy(array, sound)
    solver.notify_model_changed()
    solver.step(state, state)
    assert np.isfinite(state.joint_q.numpy()).all()


@pytest.mark.parametrize("name", ["joint_mimic_coeffs", "joint_min_distance", "joint_max_distance"])
def test_numbers_that_a_joint_does_not_use_do_not_matter(name):
    """NaN there changes no bit, and makes no new kernel."""
    ends = []
    for value in (None, np.nan):
        model = springs()
        solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
        (stepper,) = solver._steppers
        known = stepper.work.parameters.known
        if value is not None:
            numbers, user = getattr(model, name).numpy(), "slide" if "mimic" in name else "rope"
            uses = np.array([label.endswith(user) for label in model.joint_label])
            numbers[~uses] = value
            getattr(model, name).assign(numbers)
            solver.notify_model_changed()
            assert stepper.work.parameters.known is known
        ends.append(run(solver, state))
    assert ends[0] == ends[1]


def test_gravity_that_is_set_acts_in_all_worlds_that_are_set(rng):
    """Whatever mask a notice afterwards has. A mask selects the worlds whose gravity is read from the array that was written."""
    one = ModelBuilder()
    one.add_body(mass=1.0, inertia=np.eye(3))
    scene = ModelBuilder()
    scene.replicate(one, WORLDS)
    model = scene.finalize("cpu", dtype=wp.float64)
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()

    def accelerations():
        solver.reset(state)
        solver.step(state, state, dt=DT)
        return state.joint_qd.numpy().reshape(WORLDS, 6)[:, 2] / DT

    first, second, third, fourth = rng.uniform(-20.0, 0.0, 4)
    mask = rng.permutation(np.arange(WORLDS) < WORLDS // 2)
    model.set_gravity(first)
    solver.notify_model_changed(ModelFlags.MODEL_PROPERTIES, mask)
    np.testing.assert_allclose(accelerations(), first)
    numbers = model.gravity.numpy().copy()
    numbers[:, 2] = second
    model.gravity.assign(numbers)
    solver.notify_model_changed(ModelFlags.MODEL_PROPERTIES, mask)
    expected = np.where(mask, second, first)
    np.testing.assert_allclose(accelerations(), expected)
    world = int(rng.integers(WORLDS))
    model.set_gravity(third, world=world)
    expected[world] = third
    np.testing.assert_allclose(accelerations(), expected)
    model.set_gravity(np.outer(np.linspace(fourth, 0.0, WORLDS), (0.0, 0.0, 1.0)))
    np.testing.assert_allclose(accelerations(), np.linspace(fourth, 0.0, WORLDS), atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, -0.1])
@pytest.mark.parametrize("varying", [False, True])
def test_a_radius_that_cannot_be_is_refused_by_name(bad, varying):
    model = worlds_of(quadruped(), 2).finalize("cpu")
    name = "shape_collision_radius"
    solver = SolverFeatherstone(model, evaluator="general", varying=[name] if varying else ())
    numbers = model.shape_collision_radius.numpy()
    numbers[np.flatnonzero(model.shape_body.numpy() >= 0)] = bad
    model.shape_collision_radius.assign(numbers)
    with pytest.raises(ValueError, match=rf"shape .*{name}\["):
        solver.notify_model_changed()
    turned = model.shape_transform.numpy().copy()
    turned[:, 3:] = 0.0
    model.shape_collision_radius.assign(np.abs(np.nan_to_num(numbers, nan=0.1)))
    solver.notify_model_changed()
    model.shape_transform.assign(turned)
    with pytest.raises(ValueError, match=r"shape .*shape_transform\[.*length 1"):
        solver.notify_model_changed()


@pytest.mark.parametrize("name", ["limit_lower", "limit_upper", "effort_limit", "velocity_limit"])
def test_limits_may_be_infinite(name):
    model = worlds_of(quadruped(), 2).finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    getattr(model, f"joint_{name}").fill_(-np.inf if name == "limit_lower" else np.inf)
    solver.notify_model_changed()
    solver.step(state, state)
    assert np.isfinite(state.joint_q.numpy()).all()
