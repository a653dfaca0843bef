"""Mimic joints, polynomials between joints and tendons: against the solver in generalized coordinates, and by laws."""

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.tree import ROUND_CYLINDER

import newton_like as nl
from newton_like.geometry.wrapping import piece_length
from newton_like.model.mujoco.equality_settings import EQUALITY_DEFAULTS, declare_equality_settings
from newton_like.model.tendons import Tendon, TendonTie
from newton_like.solvers import SolverFeatherstone
from tests.solvers.xpbd.scenes import after, momentum, started, with_all_programs, xpbd
from tests.support.random_trees import random_inertia

pytestmark = pytest.mark.slow
"""These tests share a kernel with lines and laws of contacts, which takes as long to compile as all others of this folder."""


def fingers(rng, floating: bool = False) -> tuple[nl.ModelBuilder, list[int]]:
    """Three links on hinges in a plane."""
    builder, joints, parent = nl.ModelBuilder(), [], -1
    if floating:
        parent = builder.add_link(mass=2.0, inertia=random_inertia(rng, 2.0, 0.4))
        joints.append(builder.add_joint_free(parent))
    for i in range(3):
        mass = rng.uniform(0.4, 1.0)
        inertia = mass * np.diag([0.01, 0.03, 0.03])
        link = builder.add_link(mass=mass, com=(0.25, 0, 0), inertia=inertia)
        at = (0.5 if i else 0.1, 0, 0, 0, 0, 0, 1)
        joints.append(builder.add_joint_revolute(parent, link, axis=(0, 1, 0), parent_xform=at, damping=0.2))
        parent = link
    builder.add_articulation(joints)
    return builder, joints


def add_equality(builder, **values) -> None:
    builder.add_custom_values(**{f"mujoco:{name}": value for name, value in {**EQUALITY_DEFAULTS, **values}.items()})


def mimic(builder, joints, rng):
    builder.set_joint_mimic(joints[2], joints[1], coeffs=(0.1, 0.7))
    return lambda q: q[2] - 0.1 - 0.7 * q[1]


def polynomial(builder, joints, rng):
    declare_equality_settings(builder)
    powers = (0.05, 0.5, -0.4, 0.2, 0.1)
    values = {
        "equality_constraint_joint1": joints[0], "equality_constraint_joint2": joints[1], "equality_constraint_polycoef": powers,
    }  # fmt: skip
    add_equality(builder, **values)
    return lambda q: q[0] - sum(c * q[1] ** k for k, c in enumerate(powers))


def fixed_tendon(builder, joints, rng):
    parts = tuple((j, 0, float(c)) for j, c in zip(joints, rng.uniform(0.05, 0.1, 3), strict=True))
    drive = dict(target_ke=400.0, target_kd=20.0, target_q=0.02, effort_limit=30.0)
    builder.tendons.append(
        Tendon(
            label="pull", joints=parts, stiffness=300.0, damping=3.0, rest_length=(-0.01, 0.01), friction=1.0, **drive
        )
    )


def spatial_tendon(builder, joints, rng):
    """A line from the world around a cylinder on the first link to the second one."""
    start = builder.add_site(-1, xform=(0.0, 0.0, 0.2, 0, 0, 0, 1))
    round_shape = builder.add_shape_cylinder(
        0, xform=(0.5, 0, 0, 2**-0.5, 0, 0, 2**-0.5), radius=0.06, half_height=0.1,
        cfg=nl.ShapeConfig(density=0.0, has_shape_collision=False),
    )  # fmt: skip
    end = builder.add_site(1, xform=(0.3, 0.0, 0.05, 0, 0, 0, 1))
    path = (("site", start), ("geom", round_shape, -1), ("site", end))
    builder.tendons.append(Tendon(label="line", path=path, stiffness=400.0, damping=4.0, rest_length=(0.0, 0.7)))


LINES = (mimic, polynomial, fixed_tendon, spatial_tendon)


@pytest.mark.parametrize("add", LINES, ids=lambda add: add.__name__)
def test_lines_act_as_in_generalized_coordinates(add, rng):
    builder, joints = fingers(rng)
    relation = add(builder, joints, rng)
    with_all_programs(builder)
    model = builder.finalize("cpu")
    q = np.zeros(model.joint_coord_count)
    q[1] = 0.3
    if relation is not None:
        q[2] = 0.1 + 0.7 * 0.3 if add is mimic else 0.2
        q[0] = 0.0 if add is mimic else q[0] - relation(q)
    exact = after(SolverFeatherstone(model, evaluator="general"), started(model, q), 0.3, 1 / 1920).joint_q.numpy()[:3]
    errors = []
    for dt in (1 / 120, 1 / 480):
        found = after(xpbd(model, iterations=4), started(model, q), 0.3, dt).joint_q.numpy()[:3]
        errors.append(abs(found - exact).max())
        # the error is closed in every sub-step, but for what the joint has turned by in the last one, of second order
        assert relation is None or abs(relation(found)) < 1e-4
    # forces act with an error of first order; the reference has one of 1e-4
    assert errors[0] < 2e-2
    assert errors[1] < 0.5 * errors[0] + 4e-4


@pytest.mark.parametrize("dt", [1 / 240, 1 / 960])
def test_equations_between_chains_do_not_vibrate(dt, rng):
    """The error of an equation between two joints that swing is of second order in the length of a sub-step."""
    builder, roots, chains = nl.ModelBuilder(), [], []
    for side in (0.0, 1.0):
        parent, joints, reach = -1, [], 0.0
        for length in rng.uniform(0.25, 0.35, 2):
            mass = rng.uniform(0.8, 1.2)
            inertia = mass * length**2 * np.diag([0.005, 0.085, 0.085])
            link = builder.add_link(mass=mass, com=(0.5 * length, 0, 0), inertia=inertia)
            at = (reach, 0, 0, 0, 0, 0, 1) if joints else (0, side, 1, 0, 0, 0, 1)
            axis = (0, 0, 1) if joints and side else (0, 1, 0)
            joints.append(builder.add_joint_revolute(parent, link, axis=axis, parent_xform=at))
            parent, reach = link, length
        roots.append(joints[0])
        chains += joints
    builder.add_articulation(chains)
    builder.set_joint_mimic(roots[1], roots[0], coeffs=(0.0, 1.0))
    with_all_programs(builder)
    model = builder.finalize("cpu")
    solver, state, errors = xpbd(model), started(model), []
    for _ in range(round(0.4 / dt)):
        solver.step(state, state, dt=dt)
        q = state.joint_q.numpy()
        errors.append(abs(q[2] - q[0]))
    assert q[0] > 1.0
    h = dt / solver.substeps
    # angular accelerations are up to some 100 rad/s^2, and a sub-step closes the error; single precision rounds angles
    assert max(errors) < 100.0 * h**2 + 2e-6


@pytest.mark.parametrize("kind", ["polynomial", "tendon", "mimic"])
def test_lines_connect_two_articulations(kind, rng):
    """Two masses on vertical rails, each an articulation, fall as the masses of Atwood's machine. Mimic joints need one articulation."""
    builder, rails, masses = nl.ModelBuilder(), [], rng.uniform(0.5, 2.0, 2) * [4.0, 1.0]
    for mass in masses:
        link = builder.add_link(mass=mass, inertia=0.01 * np.eye(3))
        rails.append(builder.add_joint_prismatic(-1, link, axis=(0, 0, 1)))
        builder.add_articulation(rails[-1:])
    ratio = rng.uniform(0.3, 0.8)
    if kind == "polynomial":
        declare_equality_settings(builder)
        add_equality(
            builder, equality_constraint_joint1=rails[1], equality_constraint_joint2=rails[0],
            equality_constraint_polycoef=(0.0, -ratio, 0.0, 0.0, 0.0),
        )  # fmt: skip
    elif kind == "tendon":
        parts = (rails[0], 0, ratio), (rails[1], 0, 1.0)
        builder.tendons.append(Tendon(label="rope", joints=parts, limits=(0.0, 1.0)))
    else:
        builder.set_joint_mimic(rails[1], rails[0], coeffs=(0.0, -ratio))
        with pytest.raises(ValueError, match="merge_articulations"):
            builder.finalize("cpu")
        builder.merge_articulations()
    with_all_programs(builder)
    model, seconds = builder.finalize("cpu"), 0.25
    q = after(xpbd(model), started(model), seconds, 1 / 240).joint_q.numpy()[:2]
    # m0 and m1 move by x and -r x: (m0 + r^2 m1) x'' = -(m0 - r m1) g
    fall = -0.5 * seconds**2 * 9.81 * (masses[0] - ratio * masses[1]) / (masses[0] + ratio**2 * masses[1])
    # 60 steps of 8 sub-steps round places below 1 m
    assert q == pytest.approx([fall, -ratio * fall], abs=2e-5)


def test_an_equation_in_double_precision_shares_a_torque(rng):
    """Two links on vertical hinges, tied by a ratio, turn under a constant torque as one link of constant inertia does."""
    builder, hinges, inertias = nl.ModelBuilder(), [], rng.uniform(0.01, 0.03, 2)
    for side, inertia in enumerate(inertias):
        link = builder.add_link(mass=0.5, inertia=inertia * np.eye(3))
        hinges.append(builder.add_joint_revolute(-1, link, axis=(0, 0, 1), parent_xform=(0, side, 0, 0, 0, 0, 1)))
    builder.add_articulation(hinges)
    ratio = rng.uniform(-2.0, -1.0)
    builder.set_joint_mimic(hinges[1], hinges[0], coeffs=(0.0, ratio))
    model = builder.finalize("cpu", dtype=wp.float64)
    control, seconds = model.control(), 0.3
    control.joint_f.assign([0.0, 0.2])
    q = after(xpbd(model), started(model), seconds, 1 / 240, control).joint_q.numpy()
    rate = 0.2 * ratio / (inertias[0] + ratio**2 * inertias[1])
    assert q[0] == pytest.approx(0.5 * rate * seconds**2, abs=1e-4)
    assert q[1] == pytest.approx(ratio * q[0], abs=1e-6)


def test_a_line_around_a_cylinder_holds_a_rod(rng):
    """At rest, the torque of the weight is that of the tension: the change of the length of the line with the angle, found by NumPy."""
    mass, reach, stiffness, radius = rng.uniform(0.8, 1.5), 0.4, 300.0, 0.06
    builder = nl.ModelBuilder()
    rod = builder.add_link(mass=mass, com=(reach, 0, 0), inertia=0.02 * np.eye(3))
    builder.add_articulation([builder.add_joint_revolute(-1, rod, axis=(0, 1, 0), damping=2.0)])
    config = nl.ShapeConfig(density=0.0, has_shape_collision=False)
    turned = (2**-0.5, 0, 0, 2**-0.5)
    places = (-0.2, 0.0, 0.3), (0.05, 0.0, 0.15)
    start = builder.add_site(-1, xform=(*places[0], 0, 0, 0, 1))
    around = builder.add_shape_cylinder(-1, xform=(*places[1], *turned), radius=radius, half_height=0.1, cfg=config)
    end = builder.add_site(rod, xform=(reach, 0, 0, 0, 0, 0, 1))
    path = (("site", start), ("geom", around, -1), ("site", end))
    builder.tendons.append(Tendon(label="line", path=path, stiffness=stiffness, rest_length=(0.0, 0.6)))
    with_all_programs(builder)
    model = builder.finalize("cpu")
    angle = float(after(xpbd(model), started(model), 4.0, 1 / 240).joint_q.numpy()[0])

    def energy(q: float) -> float:
        tip = reach * np.array([np.cos(q), 0.0, -np.sin(q)])
        # in the frame of the cylinder, whose axis is z
        x, y = (np.array([p[0], p[2], -p[1]]) for p in np.array([places[0], tip]) - places[1])
        length = piece_length(ROUND_CYLINDER, x, y, None, radius)
        straight = np.linalg.norm(tip - places[0])
        assert length > straight + 1e-3
        return 0.5 * stiffness * max(0.0, length - 0.6) ** 2 + mass * 9.81 * tip[2]

    step = 1e-4
    torque = (energy(angle + step) - energy(angle - step)) / (2.0 * step)
    # the rod has come to rest up to single precision
    assert abs(torque) < 5e-3 * mass * 9.81 * reach


def test_a_limited_tendon_stops(rng):
    """Two joints fall until the sum of their angles is at the limit, which one of them alone does not reach."""
    builder, joints = fingers(rng)
    builder.tendons.append(Tendon(label="stop", joints=((joints[0], 0, 1.0), (joints[1], 0, 1.0)), limits=(-0.5, 0.6)))
    with_all_programs(builder)
    model = builder.finalize("cpu")
    sums = []
    solver, state = xpbd(model), started(model)
    for _ in range(120):
        solver.step(state, state, dt=1 / 240)
        sums.append(state.joint_q.numpy()[:2].sum())
    assert max(sums) > 0.599
    # a limit gives way by what a sub-step moves beyond its linear prediction: (1/1920 s)^2 / 2 at some 100 rad/s^2
    assert max(sums) < 0.6 + 1e-3


def test_lines_keep_momentum(rng):
    """Equal and opposite: a spring, a drive and friction between links change no momentum in free flight."""
    builder, joints = fingers(rng, floating=True)
    bodies = builder.body_count
    fixed_tendon(builder, joints[1:], rng)
    builder.set_joint_mimic(joints[3], joints[2], coeffs=(0.0, -0.5))
    with_all_programs(builder)
    model = builder.finalize("cpu")
    model.set_gravity((0.0, 0.0, 0.0))
    qd = np.append(rng.normal(size=6), np.zeros(model.joint_dof_count - 6))
    state = started(model, joint_qd=qd)
    before = momentum(model, state, bodies)
    after(xpbd(model), state, 0.5, 1 / 240)
    now = momentum(model, state, bodies)
    # the joints move
    assert abs(state.joint_q.numpy()[7:10]).max() > 1e-3
    size = sum(np.linalg.norm(x) for x in before)
    # 960 sub-steps round by 6e-8 each: 6e-5 if all errors add
    assert max(np.linalg.norm(a - b) for a, b in zip(before, now, strict=True)) < 6e-5 * size


def test_lines_of_a_world_do_not_depend_on_the_others(rng):
    builder, joints = fingers(rng)
    for add in (mimic, fixed_tendon, spatial_tendon):
        add(builder, joints, rng)
    with_all_programs(builder)
    q = rng.uniform(-0.3, 0.3, (11, builder.joint_coord_count))
    q[:, 2] = 0.1 + 0.7 * q[:, 1]
    found = []
    for chosen in (slice(None), slice(7, 8)):
        scene = nl.ModelBuilder()
        scene.replicate(builder, len(q[chosen]))
        model = scene.finalize("cpu")
        state = after(xpbd(model), started(model, q[chosen].ravel()), 0.2, 1 / 240)
        found.append(state.body_q.numpy().reshape(len(q[chosen]), -1))
    assert np.array_equal(found[0][7], found[1][0])
    assert abs(found[0][0] - found[0][1]).max() > 1e-3


def test_reset_forgets_impulses_of_lines(rng):
    builder, joints = fingers(rng)
    fixed_tendon(builder, joints, rng)
    with_all_programs(builder)
    model = builder.finalize("cpu")
    solver, state, found = xpbd(model), started(model), []
    for _ in range(2):
        solver.reset(state)
        found.append(after(solver, state, 0.1, 1 / 240).body_q.numpy().copy())
    assert np.array_equal(*found)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (dict(armature=0.1), r"'pull' \(index 0\).*inertia"),
        (dict(limits=(-1.0, 1.0), solref_limit=(0.1, 1.0)), "'pull'.*limits"),
        (dict(limits=(-1.0, 1.0), margin=0.1), "'pull'.*margin"),
        (dict(ties=(TendonTie(),)), "'pull'.*equality"),
    ],
)
def test_tendons_are_refused_by_name(change, told, rng):
    builder, joints = fingers(rng)
    builder.tendons.append(Tendon(label="pull", joints=((joints[0], 0, 1.0),), **change))
    with pytest.raises(ValueError, match=told):
        xpbd(builder.finalize("cpu"))


def test_soft_equalities_are_refused_by_name(rng):
    builder, joints = fingers(rng)
    declare_equality_settings(builder)
    add_equality(builder, equality_constraint_joint1=joints[0], eq_rules=1)
    with pytest.raises(ValueError, match=r"'.*' \(index 0\).*softness"):
        xpbd(builder.finalize("cpu"))
