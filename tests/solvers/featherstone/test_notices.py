"""Notices read the worlds that changed: their parameters are those of a solver that reads all worlds at each notice."""

import subprocess
import sys

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, ModelFlags
from newton_like.model.editing.edits import ARRAYS, BODIES, GAINS, GRAVITY, JOINTS, SHAPES, edits_of
from newton_like.solvers import SolverFeatherstone
from newton_like.types import BodyFlags
from tests.support.mechanisms import mechanism, same_robot
from tests.support.paths import ROOT

WORLDS = 37
FLAG = {
    JOINTS: ModelFlags.JOINT_PROPERTIES,
    GAINS: ModelFlags.JOINT_DOF_PROPERTIES,
    BODIES: ModelFlags.BODY_INERTIAL_PROPERTIES,
    SHAPES: ModelFlags.SHAPE_PROPERTIES,
    GRAVITY: ModelFlags.MODEL_PROPERTIES,
}
LENGTHS = ("joint_X_p", "joint_X_c")
EDITED = {
    JOINTS: LENGTHS,
    GAINS: ("joint_target_ke", "joint_target_kd", "joint_armature", "joint_damping", "joint_effort_limit"),
    BODIES: ("body_mass", "body_com", "body_inertia"),
    SHAPES: ("shape_material_mu", "shape_gap"),
    GRAVITY: ("gravity",),
}


def scene(dtype, shared: bool):
    """Worlds of a robot, a kinematic body and a robot on a resting body; with `shared`, a kinematic body of all worlds."""
    one = ModelBuilder()
    one.add_builder(same_robot(mechanism))
    table = one.add_body(mass=2.0, inertia=0.1 * np.eye(3), xform=(0.0, 3.0, 0.2, 0.0, 0.0, 0.0, 1.0))
    one.add_shape_box(table, hx=0.1, hy=0.1, hz=0.1)
    result = ModelBuilder()
    if shared:
        pole = result.add_link(mass=1.0, inertia=0.1 * np.eye(3), is_kinematic=True)
        joint = result.add_joint_revolute(-1, pole, axis=(0.0, 1.0, 0.0), target_ke=3.0, armature=0.1)
        result.add_articulation([joint])
    result.replicate(one, WORLDS)
    result.add_ground_plane()
    return result.finalize("cpu", dtype=dtype)


def parameters(solver) -> list[bytes]:
    rows = [stepper.work.parameters.rows().tobytes() for stepper in solver._steppers]
    return [*rows, solver.model.body_inv_mass.numpy().tobytes(), solver.model.body_inv_inertia.numpy().tobytes()]


def edit(rng, model, group: int, before: dict) -> None:
    """Changes some rows of some arrays of a group; or gives an array numbers that it had before."""
    for name in rng.permutation(EDITED[group])[: rng.integers(1, 3)]:
        array = getattr(model, name)
        numbers = array.numpy().copy()
        kept = before.setdefault(name, [numbers.copy()])
        if rng.random() < 0.3:
            numbers = kept[rng.integers(len(kept))].copy()
        else:
            rows = rng.random(len(numbers)) < rng.choice([0.02, 0.3, 1.0])
            part = numbers[rows, :3] if name in LENGTHS else numbers[rows]
            part *= rng.uniform(0.8, 1.0, (len(part),) + (1,) * (part.ndim - 1))
            if name in LENGTHS:
                numbers[rows, :3] = part
            else:
                numbers[rows] = part
            kept.append(numbers.copy())
        array.assign(numbers)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "shared"), [(wp.float64, True), (wp.float32, False)])
def test_a_notice_finds_what_a_reader_of_all_worlds_finds(rng, dtype, shared):
    """Edits of random worlds, with masks or without, of what is shared, without a notice, and back to numbers from before."""
    models = [scene(dtype, shared) for _ in range(2)]
    solver, reader = (SolverFeatherstone(model, evaluator="general") for model in models)
    # a second solver of the model takes edits over later, as at a step
    other, before = SolverFeatherstone(models[0], evaluator="general"), ({}, {})
    turns = int(rng.integers(6))
    for turn in range(14):
        groups = rng.permutation(list(EDITED))[: rng.integers(0, 4)]
        seed = int(rng.integers(1 << 30))
        for model, kept in zip(models, before, strict=True):
            own = np.random.default_rng(seed)
            for group in groups:
                edit(own, model, group, kept)
        if turn % 6 == turns:
            flags = models[0].body_flags.numpy().copy()
            loose = np.flatnonzero((models[0].joint_parent.numpy() < 0) & (models[0].joint_world.numpy() >= 0))
            body = models[0].joint_child.numpy()[loose[rng.integers(len(loose))]]
            flags[body] = BodyFlags.DYNAMIC if flags[body] == BodyFlags.KINEMATIC else BodyFlags.KINEMATIC
            for model in models:
                model.body_flags.assign(flags)
        told = rng.choice([*groups, *EDITED], size=2, replace=True)
        flag = ModelFlags.ALL if rng.random() < 0.2 else FLAG[told[0]] | FLAG[told[1]]
        flag |= ModelFlags.BODY_PROPERTIES if rng.random() < 0.2 else 0
        mask = None if rng.random() < 0.5 else rng.random(WORLDS) < rng.choice([0.05, 0.9, 1.0])
        # it forgets what it has read
        reader.changes.forget()
        if edits_of(models[1])._prints is not None:
            edits_of(models[1])._prints.forget()
        for each in (solver, reader):
            each.notify_model_changed(flag, mask)
        assert parameters(solver) == parameters(reader), (turn, flag)
        if rng.random() < 0.3:
            other._check_version()
    for each in (solver, reader, other):
        each.notify_model_changed(ModelFlags.ALL)
    other._check_version()
    assert parameters(solver) == parameters(reader) == parameters(other)


def test_only_blocks_of_worlds_that_changed_are_read(rng):
    """And none where nothing changed."""
    model = scene(wp.float32, False)
    solver = SolverFeatherstone(
        model, evaluator="general", varying=[name for names in ARRAYS.values() for name in names]
    )
    solver.notify_model_changed()
    solver.notify_model_changed()
    assert not any(solver.changes.found(g) for g in (JOINTS, GAINS, BODIES, SHAPES))
    world = int(rng.integers(WORLDS))
    masses = model.body_mass.numpy()
    body = int(rng.choice(np.flatnonzero(model.body_world.numpy() == world)))
    # the smallest change
    masses[body] = np.nextafter(masses[body], np.float32(np.inf))
    solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    read = np.flatnonzero(solver.changes.edited(BODIES).numpy() == model.version)
    assert world in read
    assert (read // 16 == world // 16).all()
    # of the ground, which all worlds touch
    friction = model.shape_material_mu.numpy()
    friction[-1] *= 0.5
    solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    assert (solver.changes.edited(SHAPES).numpy()[:WORLDS] == model.version).all()


@pytest.mark.parametrize("name", ["body_mass", "body_com", "body_inertia"])
def test_changes_of_signs_and_of_order_are_found(rng, name):
    """Two numbers of a world that swap places, and numbers that change their sign together."""
    model = scene(wp.float32, False)
    solver = SolverFeatherstone(model, evaluator="general")
    array, flag = getattr(model, name), ModelFlags.BODY_INERTIAL_PROPERTIES
    numbers = array.numpy().reshape(model.body_count, -1)
    numbers *= rng.uniform(0.5, 1.0, (model.body_count, 1)).astype(np.float32)
    solver.notify_model_changed(flag)
    for _ in range(20):
        own = np.flatnonzero(model.body_world.numpy() == rng.integers(WORLDS))
        i, j = rng.choice(own, 2, replace=False)
        numbers[[i, j]] = numbers[[j, i]]
        if name == "body_com":
            numbers[own] *= np.float32(-1.0)
        solver.notify_model_changed(flag)
        assert solver.changes.found(BODIES)
        held = solver._steppers[0].work.parameters.rows()
        solver.changes.forget()
        solver.notify_model_changed(flag)
        assert held.tobytes() == solver._steppers[0].work.parameters.rows().tobytes()


SCRIPT = """
import sys

import numpy as np
import warp as wp

import newton_like as nl
from newton_like.solvers import SolverFeatherstone
from tests.support.mechanisms import quadruped

scene = nl.ModelBuilder()
scene.add_ground_plane()
robot = quadruped()
body = robot.add_link(mass=1.0, inertia=0.1 * np.eye(3))
robot.add_articulation([robot.add_joint_free(body)])
robot.add_joint_revolute(-1, body, axis=(0.0, 1.0, 0.0))
scene.replicate(robot, 9)
model = scene.finalize("cpu")
names = ("body_mass", "shape_material_mu", "joint_friction", "joint_damping")
solver = SolverFeatherstone(model, evaluator=sys.argv[1], varying=names)
state = model.state()
solver.step(state, state)

mask = np.arange(9) == 4
gains = nl.ModelFlags.JOINT_DOF_PROPERTIES
kinds = (nl.ModelFlags.BODY_INERTIAL_PROPERTIES, nl.ModelFlags.SHAPE_PROPERTIES, gains, gains)
rows = model.joint_q.numpy().reshape(9, -1)
print("AFTER", flush=True)
for name, kind in zip(names, kinds):
    for chosen in (mask, None):
        array = getattr(model, name)
        array.assign(0.1 + 1.1 * array.numpy())
        solver.notify_model_changed(kind, chosen)
solver.notify_model_changed()
solver.reset(state, mask)
solver.reset(state, [1, 2], joint_q=rows[:2])
solver.reset(state, None, joint_q=rows)
solver.check(state)
solver.step(state, state)
print("END", flush=True)
"""


@pytest.mark.parametrize("evaluator", ["general", pytest.param("specialised", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_nothing_is_loaded_after_the_first_step_for_what_varies(evaluator):
    """Warp names each module that it compiles or loads. Notices and resets load none, if it was said what varies."""
    command = [sys.executable, "-c", SCRIPT, evaluator]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    before, after = ran.stdout.split("AFTER")
    assert "Module " in before
    assert "Module " not in after and "END" in after
