"""The general kernel and specialised code do the same: bit by bit where they have the same width, else to rounding."""

import numpy as np
import pytest
import trimesh
import warp as wp
from newton_like.kernels.solvers.step import Features

from newton_like import JointDofConfig, JointTargetMode, ModelBuilder
from newton_like.geometry.mesh import Mesh
from newton_like.solvers import SolverFeatherstone
from newton_like.solvers.featherstone.specialise import BUDGET
from newton_like.solvers.featherstone.stepper import general_step
from tests.support.mechanisms import mechanism, quadruped, random_commands, random_start, same_robot, vary, worlds_of
from tests.support.random_trees import random_inertia, random_transform, random_unit

DT = 1.0 / 240.0
KEYS = list(range(19))  # one block and a short one, of sixteen; of eight, two and a short one
VARIED = ("body_mass", "joint_target_ke", "joint_friction", "joint_effort_limit", "shape_material_mu", "shape_scale")
# Those that other tests compile as well, and as many kinds of memory: registers of floats, of doubles, single doubles.
FLOAT, DOUBLE, SINGLE = (None, wp.float32), (8, wp.float64), (1, wp.float64)


def arm(rng: np.random.Generator) -> ModelBuilder:
    """A fixed chain of a D6 joint, a slider and two hinges, without limits, contacts and friction: no constraint row at all."""
    builder = ModelBuilder()
    joints, parent = [], -1
    for i in range(4):
        mass = rng.uniform(0.5, 2.0)
        link = builder.add_link(mass=mass, com=0.05 * rng.normal(size=3), inertia=random_inertia(rng, mass, 0.2))
        frames = {"parent_xform": random_transform(rng, 0.2), "child_xform": random_transform(rng, 0.1)}
        settings = {"damping": 0.1, "armature": 0.01, "target_ke": 5.0, "target_kd": 0.2}
        if i == 0:
            axes = [JointDofConfig(axis=a, **settings) for a in np.eye(3)[:2]]
            joints.append(builder.add_joint_d6(parent, link, linear_axes=axes[:1], angular_axes=axes, **frames))
        elif i == 1:
            joints.append(
                builder.add_joint_prismatic(parent, link, axis=random_unit(rng), stiffness=60.0, **settings, **frames)
            )
        else:
            mode = JointTargetMode.VELOCITY if i == 2 else JointTargetMode.POSITION_VELOCITY
            joints.append(
                builder.add_joint_revolute(
                    parent, link, axis=random_unit(rng), actuator_mode=mode, **settings, **frames
                )
            )
        parent = link
    builder.add_articulation(joints)
    return builder


def hull() -> ModelBuilder:
    """A free hull, which specialised steps look for contacts of by a general function."""
    builder, box = ModelBuilder(), trimesh.creation.box(extents=(0.2, 0.3, 0.1))
    body = builder.add_body(xform=(0, 0, 0.2, 0, 0.1, 0, 0.995), mass=1.0, inertia=0.01 * np.eye(3))
    builder.add_shape_convex_hull(body, mesh=Mesh(box.vertices, box.faces))
    return builder


def hopper() -> ModelBuilder:
    """A floating base with one leg, a ball for a foot, limits, dry friction and a drive: every kind of row, little to compile."""
    builder = ModelBuilder()
    base = builder.add_link(mass=2.0, inertia=0.02 * np.eye(3), xform=(0, 0, 0.3, 0, 0, 0, 1))
    leg = builder.add_link(mass=0.3, com=(0, 0, -0.1), inertia=2e-3 * np.eye(3))
    limits = {"limit_lower": -0.5, "limit_upper": 0.5, "velocity_limit": 20.0, "effort_limit": 5.0}
    drive = {"friction": 0.05, "damping": 0.1, "armature": 0.01, "target_ke": 20.0, "target_kd": 1.0}
    hip_in_base = (0.05, 0, 0, 0, 0, 0, 1)
    free = builder.add_joint_free(child=base)
    hip = builder.add_joint_revolute(base, leg, axis=(0, 1, 0), parent_xform=hip_in_base, **limits, **drive)
    builder.add_articulation([free, hip])
    builder.add_shape_sphere(leg, xform=(0, 0, -0.2, 0, 0, 0, 1), radius=0.03)
    builder.add_shape_sphere(base, radius=0.05)
    return builder


def follower() -> ModelBuilder:
    """Two hinges, one of which follows the other, which is a general function too."""
    builder, joints, parent = ModelBuilder(), [], -1
    for _ in range(2):
        link = builder.add_link(mass=0.2, com=(0.1, 0, 0), inertia=1e-3 * np.eye(3))
        joints.append(builder.add_joint_revolute(parent, link, axis=(0, 1, 0), parent_xform=(0.1, 0, 0, 0, 0, 0, 1)))
        parent = link
    builder.add_articulation(joints)
    builder.set_joint_mimic(joints[1], joints[0], coeffs=(0.1, -0.7))
    return builder


ROBOTS = {
    "mechanism": lambda: same_robot(mechanism),
    # point contacts, no couplings: other rows, other code
    "quadruped": quadruped,
    "arm": lambda: same_robot(arm, 1),
    "hopper": hopper,
    "hull": hull,
    "follower": follower,
}


def trajectory(robot, evaluator, width, dtype, keys=KEYS, varied=VARIED, slope=True, steps=60, **options):
    """Everything public of the worlds after every step, ``[step, world, n]``, and the solver."""
    model = worlds_of(ROBOTS[robot](), len(keys), slope).finalize("cpu", dtype=dtype)
    vary(model, [name for name in varied if model.shape_count > 2 or not name.startswith("shape")], keys)
    solver = SolverFeatherstone(model, evaluator=evaluator, width=width, **options)
    state, control = model.state(), model.control()
    q, qd = random_start(model, keys)
    state.joint_q.assign(q.ravel())
    state.joint_qd.assign(qd.ravel())
    path = []
    for i in range(steps):
        if i % 6 == 0:
            for name, values in random_commands(model, keys, i * DT).items():
                array = getattr(state if name == "body_f" else control, name)
                array.assign(values.reshape(-1, 6) if name == "body_f" else values.ravel())
        solver.step(state, state, control, None, DT)
        force = solver.contact_forces().numpy()[model.shape_world.numpy() >= 0].reshape(len(keys), -1)
        arrays = (state.joint_q, state.joint_qd, state.body_q, state.body_qd)
        path.append(np.hstack([*[a.numpy().reshape(len(keys), -1) for a in arrays], force]))
    return np.array(path), solver


# Numbers that all worlds share are constants of the specialised code, those that vary are read: both have to be right. One world shares
# everything with itself.
BIT_BY_BIT = [
    pytest.param("mechanism", FLOAT, KEYS, VARIED, marks=pytest.mark.slow),
    pytest.param("quadruped", FLOAT, KEYS[:3], (), marks=pytest.mark.slow),
    ("hopper", FLOAT, KEYS[:3], ()),
    pytest.param("hull", FLOAT, KEYS[:3], (), marks=pytest.mark.slow),
    pytest.param("follower", FLOAT, KEYS[:3], (), marks=pytest.mark.slow),
    pytest.param("quadruped", DOUBLE, KEYS, VARIED, marks=pytest.mark.slow),
    pytest.param("arm", DOUBLE, KEYS, (), marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("robot", "precision", "keys", "varied"), BIT_BY_BIT, ids=lambda x: x if isinstance(x, str) else None
)
def test_same_width_same_bits(robot, precision, keys, varied):
    """Signs of zeros included, contact forces too."""
    options = {"angular_damping": 0.3}
    general, _ = trajectory(robot, "general", *precision, keys, varied, **options)
    specialised, solver = trajectory(robot, "specialised", *precision, keys, varied, **options)
    assert solver.m.width > 1
    different = [
        (step, key)
        for step in range(len(general))
        for w, key in enumerate(keys)
        if general[step, w].tobytes() != specialised[step, w].tobytes()
    ]
    assert not different, f"first (step, key): {different[0]}"
    moved = np.abs(general[-1] - general[0]).max(axis=1)
    assert (moved > 0.01).all()


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["hopper", "mechanism"])
def test_general_code_for_rows_of_large_robots_has_the_same_bits(robot, monkeypatch):
    """Beyond the budget, specialised steps build rows of contacts and limits by general code, in short functions."""
    general, _ = trajectory(robot, "general", *FLOAT)
    monkeypatch.setattr("newton_like.solvers.featherstone.specialise.BUDGET", 500)
    monkeypatch.setattr("newton_like.solvers.featherstone.specialise.LARGE_CUT", 400)
    shared, solver = trajectory(robot, "specialised", *FLOAT)
    assert solver._steppers[0].operations > 500
    assert general.tobytes() == shared.tobytes()


def differences(path, other):
    """Largest difference of the public numbers in every step and world, relative to their size there, ``[step, world]``."""
    return np.abs(path - other).max(axis=2) / np.abs(path).max(axis=2)


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["mechanism", "quadruped", "arm"])
def test_widths_agree_to_rounding(robot):
    """Width 1 neither fuses nor has the vector sine, so bits differ.

    Double rounding, 2e-16, grows by the condition of a step's equations, 1e4 or less. Sliding contacts that few sweeps leave
    unsolved amplify it from step to step, and where a hull has only two vertices near the ground, rounding decides which of them
    is counted twice: less than half of the worlds do that in ten steps.
    """
    wide, _ = trajectory(robot, "general", *DOUBLE, steps=10)
    single, _ = trajectory(robot, "general", *SINGLE, steps=10)
    error = differences(wide, single)
    assert error.max() > 0.0
    assert np.mean(error[0] < 1e-11) > 0.8
    assert np.median(error.max(axis=0)) < 1e-10


@pytest.mark.parametrize("robot", ["quadruped", "arm"])
def test_float_agrees_with_double(robot):
    """As much worse as float32 is (6e-8), over a single step: what touches or does not is the same in all worlds but few."""
    single, _ = trajectory(robot, "general", *FLOAT, steps=1)
    double, _ = trajectory(robot, "general", *DOUBLE, steps=1)
    error = differences(double, single.astype(np.float64))[0]
    assert np.median(error) < 1e-5
    assert np.mean(error < 1e-3) > 0.8


@pytest.mark.slow
def test_sixteen_and_eight_floats_agree():
    """They do the same operations in the same order on other registers: bit by bit."""
    eight, _ = trajectory("mechanism", "general", 8, wp.float32)
    sixteen, _ = trajectory("mechanism", "general", 16, wp.float32)
    assert eight.tobytes() == sixteen.tobytes()


@pytest.mark.slow
def test_specialised_at_width_one():
    """As a GPU thread runs it: plain numbers, neither fused nor with the vector sine; general code to rounding."""
    general, _ = trajectory("arm", "general", *SINGLE, steps=20)
    specialised, solver = trajectory("arm", "specialised", *SINGLE, steps=20)
    assert solver.m.width == 1
    assert differences(general, specialised).max() < 1e-10


@pytest.mark.slow
def test_auto_specialises_small_robots_and_spares_large_ones(monkeypatch):
    model = worlds_of(quadruped(), 1).finalize("cpu")
    solver = SolverFeatherstone(model, evaluator="auto")
    (stepper,) = solver._steppers
    assert stepper.kernel is not general_step(solver.width, wp.float32, Features())
    assert 1_000 < stepper.operations < BUDGET

    monkeypatch.setattr("newton_like.solvers.featherstone.stepper.BUDGET", stepper.operations - 1)
    solver = SolverFeatherstone(model, evaluator="auto")
    assert solver._steppers[0].kernel is general_step(solver.width, wp.float32, Features())


@pytest.mark.slow
def test_edited_numbers_reach_specialised_code():
    """A number that is a constant of the code, then one that varies: after notify_changed both evaluators still agree."""
    paths = []
    for evaluator in ("general", "specialised"):
        model = worlds_of(ROBOTS["arm"](), 3).finalize("cpu", dtype=wp.float64)
        solver = SolverFeatherstone(model, evaluator=evaluator, width=8)
        state = model.state()
        path = []
        for edit in (None, 2.0, [1.0, 1.5, 3.0]):
            if edit is not None:
                mass = model.body_mass.numpy().reshape(3, -1) * np.reshape(edit, (-1, 1))
                model.body_mass.assign(mass.ravel())
                model.notify_changed()
            for _ in range(5):
                solver.step(state, state, None, None, DT)
            path.append(state.joint_q.numpy().reshape(3, -1).copy())
        paths.append(np.array(path))
    assert paths[0].tobytes() == paths[1].tobytes()
    # equal worlds stay equal until their masses differ
    np.testing.assert_array_equal(paths[0][1][0], paths[0][1][2])
    assert (paths[0][2][0] != paths[0][2][2]).any()
