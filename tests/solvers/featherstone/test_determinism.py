"""A world gives the same bits, independent of other worlds, their number, its index, and the number of threads.

The key of a world determines its parameters, its initial state and its commands. Some worlds stand, some fall, some tumble with joints
beyond their limits, some have saturated drives, some are pushed; all differ in their parameters. Comparisons are of raw bytes, including
the signs of zeros.
"""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder
from newton_like.solvers import SolverFeatherstone
from tests.support.mechanisms import mechanism, quadruped, random_commands, random_start, same_robot, vary, worlds_of

DT = 1.0 / 240.0
STEPS = 60
COMMAND_STEPS = 6
KEYS = list(range(33))  # two blocks of sixteen worlds (or four of eight) and a short one
VARIED = ("body_mass", "joint_target_ke", "joint_friction", "joint_effort_limit", "shape_material_mu", "shape_scale")

# float32 at the width of this machine; and blocks of another size
PRECISIONS = {"float": (None, wp.float32), "double": (8, wp.float64)}
# Each specialised program compiles for half a minute: one robot a precision. That they have the bits of the general code is
# tested in test_evaluators.py.
CASES = [
    pytest.param(("mechanism", "general", "float"), marks=pytest.mark.slow),
    pytest.param(("mechanism", "specialised", "float"), marks=pytest.mark.slow),
    ("quadruped", "general", "double"),
    pytest.param(("quadruped", "specialised", "double"), marks=pytest.mark.slow),
]


class Scene:
    """Worlds of one robot, each determined by its key."""

    def __init__(self, robot: str, evaluator: str, precision: str):
        self.robot = same_robot(mechanism) if robot == "mechanism" else quadruped()
        self.evaluator = evaluator
        self.width, self.dtype = PRECISIONS[precision]

    def make(self, keys, threads=None):
        """A model, its solver, a state and a control."""
        model = worlds_of(self.robot, len(keys), slope=True).finalize("cpu", dtype=self.dtype)
        vary(model, VARIED, keys)
        for w, key in enumerate(keys):
            model.set_gravity((0.01 * key, 0.0, -9.81 + 0.02 * key), world=w)
        solver = SolverFeatherstone(model, evaluator=self.evaluator, width=self.width, threads=threads)
        state = model.state()
        q, qd = random_start(model, keys)
        state.joint_q.assign(q.ravel())
        state.joint_qd.assign(qd.ravel())
        return model, solver, state, model.control()

    def run(self, keys, threads=None, steps=STEPS, meddle=None, watch=None):
        """Bytes of every world's trajectory by key.

        Args:
            keys: of the worlds.
            threads: of the solver.
            steps: number of steps.
            meddle: called with (step, model, solver, state, control) before every step.
            watch: called with the same after every step.
        """
        model, solver, state, control = self.make(keys, threads)
        path = []
        for i in range(steps):
            if i % COMMAND_STEPS == 0:
                command(model, keys, state, control, i * DT)
            if meddle is not None:
                meddle(i, model, solver, state, control)
            solver.step(state, state, control, None, DT)
            path.append(public_numbers(model, state))
            if watch is not None:
                watch(i, model, solver, state, control)
        trajectory = np.stack(path, axis=1)
        return {key: trajectory[w].tobytes() for w, key in enumerate(keys)}


def command(model, keys, state, control, seconds):
    """Sets the commands of the keys' worlds at a time."""
    for name, values in random_commands(model, keys, seconds).items():
        array = getattr(state if name == "body_f" else control, name)
        array.assign(values.reshape(-1, 6) if name == "body_f" else values.ravel())


def public_numbers(model, state) -> np.ndarray:
    """All numbers of the state that a step writes, ``[world, n]``."""
    arrays = (state.joint_q, state.joint_qd, state.body_q, state.body_qd)
    return np.concatenate([a.numpy().reshape(model.world_count, -1) for a in arrays], axis=1)


def differing(some: dict, others: dict) -> list:
    """Keys of worlds, among those of both, whose bytes differ."""
    return [key for key in some if key in others and some[key] != others[key]]


@pytest.fixture(scope="module", params=CASES, ids=lambda c: "-".join(c))
def scene(request):
    return Scene(*request.param)


@pytest.fixture(scope="module")
def reference(scene):
    """Trajectories of all keys in order, one thread."""
    return scene.run(KEYS, threads=1)


def single_axes(model) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and dofs, counted within a world, of the joints that have as many of both."""
    joints = model.joint_count // model.world_count
    q, qd = (getattr(model, f"joint_{n}_start").numpy()[: joints + 1] for n in ("q", "qd"))
    coords, dofs = [], []
    for j in range(joints):
        if q[j + 1] - q[j] == qd[j + 1] - qd[j]:
            coords += range(q[j], q[j + 1])
            dofs += range(qd[j], qd[j + 1])
    return np.array(coords), np.array(dofs)


def test_worlds_differ_and_do_everything(scene):
    """The worlds of the other tests differ: only some have contacts, exceeded limits and saturated drives."""
    seen = {"contact": [], "limit": [], "saturation": []}

    def watch(i, model, solver, state, control):
        coords, dofs = single_axes(model)

        def of_world(array, columns):
            return array.numpy().reshape(model.world_count, -1)[:, columns]

        force = solver.contact_forces().numpy()[model.shape_world.numpy() >= 0].reshape(model.world_count, -1)
        seen["contact"].append((force != 0.0).any(axis=1))
        q = of_world(state.joint_q, coords)
        lower, upper, ke, kd, effort = (
            of_world(getattr(model, f"joint_{name}"), dofs)
            for name in ("limit_lower", "limit_upper", "target_ke", "target_kd", "effort_limit")
        )
        seen["limit"].append(((q < lower) | (q > upper)).any(axis=1))
        push = ke * (of_world(control.joint_target_q, coords) - q) - kd * of_world(state.joint_qd, dofs)
        seen["saturation"].append((np.abs(push) > effort).any(axis=1))

    paths = scene.run(KEYS, watch=watch)
    assert len(set(paths.values())) == len(KEYS)
    for name, worlds in seen.items():
        share = np.mean(worlds, axis=1)
        # in most steps some worlds do and some do not
        assert np.mean((share > 0.0) & (share < 1.0)) > 0.5, name


def test_same_run_twice(scene, reference):
    assert not differing(reference, scene.run(KEYS, threads=1))


@pytest.mark.parametrize("threads", [2, 3])
def test_threads(scene, reference, threads):
    assert not differing(reference, scene.run(KEYS, threads=threads))


def test_places(scene, reference, rng):
    """The same worlds in another order have other neighbours, and other places in their block."""
    keys = [int(k) for k in rng.permutation(KEYS)]
    assert not differing(reference, scene.run(keys))


@pytest.mark.parametrize("count", [2, 15, 17])
def test_batch_sizes(scene, reference, rng, count):
    keys = [int(k) for k in rng.choice(KEYS, count, replace=False)]
    assert not differing(reference, scene.run(keys, threads=2))


def test_alone(rng):
    """One world and no other. (Specialised code of a single world is another program: all its numbers are constants.)"""
    scene = Scene("quadruped", "general", "float")
    reference = scene.run(KEYS)
    for key in rng.choice(KEYS, 4, replace=False):
        assert not differing(reference, scene.run([int(key)]))


@pytest.mark.slow
def test_larger_batches(scene, reference):
    """The keys several times over, as many as the other sizes do not reach."""
    model_keys = [key for i in range(4) for key in KEYS[i:] + KEYS[:i]]
    model, solver, state, control = scene.make(model_keys)
    path = []
    for i in range(STEPS):
        if i % COMMAND_STEPS == 0:
            command(model, model_keys, state, control, i * DT)
        solver.step(state, state, control, None, DT)
        path.append(public_numbers(model, state))
    trajectory = np.stack(path, axis=1)
    wrong = [w for w, key in enumerate(model_keys) if trajectory[w].tobytes() != reference[key]]
    assert not wrong


def set_entry(array, worlds, world, values):
    """Writes numbers into the part of an array that belongs to a world."""
    rows = array.numpy().reshape(worlds, -1).copy()
    rows[world] = values
    array.assign(rows.reshape(array.shape + getattr(array.dtype, "_shape_", ())))


def wild(kind, model, state, control, world):
    """Does something terrible to one world."""
    worlds = model.world_count
    name, value = kind
    set_entry(getattr(state if name in ("joint_q", "joint_qd", "body_f") else control, name), worlds, world, value)


WILD = [
    ("joint_f", np.nan),
    ("joint_f", 1e30),
    ("joint_act", np.inf),
    ("joint_target_q", np.nan),
    ("joint_target_q", 1e30),
    ("joint_target_qd", -1e30),
    ("body_f", np.nan),
    ("body_f", 1e30),
    ("joint_q", np.nan),
    ("joint_q", 1e30),
    ("joint_qd", np.nan),
    ("joint_qd", 1e30),
]


def test_wild_worlds_leave_the_others_alone(scene, reference, rng):
    """From step 10 on; whether a wild world stays wild or comes back to its senses, the others do not notice."""
    sick = [int(k) for k in rng.choice(len(KEYS), len(WILD), replace=False)]

    def meddle(i, model, solver, state, control):
        if i == 10:
            for world, kind in zip(sick, WILD, strict=True):
                wild(kind, model, state, control, world)

    assert set(differing(reference, scene.run(KEYS, meddle=meddle))) <= set(sick)


def test_check_names_the_unhealthy(scene, rng):
    """NaN, infinite and absurdly fast worlds, and no other."""
    sick = sorted(int(k) for k in rng.choice(len(KEYS), 4, replace=False))
    kinds = [("joint_f", np.nan), ("joint_q", np.inf), ("joint_qd", 1e30), ("body_f", np.nan)]
    seen = []

    def meddle(i, model, solver, state, control):
        if i <= 10:
            assert solver.check(state).all()
        if i == 10:
            for world, kind in zip(sick, kinds, strict=True):
                wild(kind, model, state, control, world)

    def watch(i, model, solver, state, control):
        seen.append(np.flatnonzero(~solver.check(state)))

    scene.run(KEYS, steps=14, meddle=meddle, watch=watch)
    np.testing.assert_array_equal(seen[-1], sick)


@pytest.mark.slow
def test_reset_brings_worlds_back(scene, rng):
    """After a reset by mask a world agrees with a new world, and the other worlds are not affected."""
    sick = sorted(int(k) for k in rng.choice(len(KEYS), 5, replace=False))
    kinds = [("joint_f", np.nan), ("joint_q", np.nan), ("joint_qd", 1e30), ("body_f", np.nan), ("joint_q", 1e30)]
    at = 4 * COMMAND_STEPS
    mask = np.isin(np.arange(len(KEYS)), sick)

    def leave_alone(i, model, solver, state, control):
        """The sick ones get no commands of their own, before and after."""
        fresh = model.control()
        for name in ("joint_f", "joint_target_q", "joint_target_qd", "joint_act"):
            rows = getattr(control, name).numpy().reshape(len(KEYS), -1).copy()
            rows[mask] = getattr(fresh, name).numpy().reshape(len(KEYS), -1)[mask]
            getattr(control, name).assign(rows.ravel())
        forces = state.body_f.numpy().reshape(len(KEYS), -1, 6)
        forces[mask] = 0.0
        state.body_f.assign(forces.reshape(-1, 6))

    def meddle(i, model, solver, state, control):
        leave_alone(i, model, solver, state, control)
        if i == at - 4:
            for world, kind in zip(sick, kinds, strict=True):
                wild(kind, model, state, control, world)
        if i == at:
            np.testing.assert_array_equal(np.flatnonzero(~solver.check(state)), sick)
            solver.reset(state, mask)
            assert solver.check(state).all()

    tail = []
    scene.run(KEYS, steps=at + 30, meddle=meddle, watch=lambda i, m, s, state, c: tail.append(public_numbers(m, state)))

    undisturbed = []
    scene.run(
        KEYS,
        steps=at + 30,
        meddle=leave_alone,
        watch=lambda i, m, s, state, c: undisturbed.append(public_numbers(m, state)),
    )
    model, solver, _, control = scene.make(KEYS)
    state, fresh = model.state(), []
    for _ in range(30):
        solver.step(state, state, control, None, DT)
        fresh.append(public_numbers(model, state))

    tail, undisturbed, fresh = (np.stack(x, axis=1) for x in (tail, undisturbed, fresh))
    healthy = [w for w in range(len(KEYS)) if not mask[w]]
    assert not [w for w in healthy if tail[w].tobytes() != undisturbed[w].tobytes()]
    assert not [w for w in sick if tail[w, at:].tobytes() != fresh[w].tobytes()]


def test_reset_of_all_is_a_fresh_start(scene):
    model, solver, state, control = scene.make(KEYS)
    for i in range(20):
        command(model, KEYS, state, control, i * DT)
        solver.step(state, state, control, None, DT)
    solver.reset(state)
    other_model, other, fresh, _ = scene.make(KEYS)
    fresh = other_model.state()
    control = model.control()
    for _ in range(20):
        solver.step(state, state, control, None, DT)
        other.step(fresh, fresh, control, None, DT)
    assert public_numbers(model, state).tobytes() == public_numbers(other_model, fresh).tobytes()


@pytest.mark.slow
def test_handed_contacts(rng):
    """The same for given contacts, in any order."""
    scene = Scene("quadruped", "general", "float")

    def run(keys, threads):
        model, solver, state, control = scene.make(keys, threads)
        path = []
        for i in range(30):
            if i % COMMAND_STEPS == 0:
                command(model, keys, state, control, i * DT)
            solver.step(state, state, control, model.collide(state), DT)
            path.append(public_numbers(model, state))
        trajectory = np.stack(path, axis=1)
        return {key: trajectory[w].tobytes() for w, key in enumerate(keys)}

    reference = run(KEYS, 1)
    assert not differing(reference, run([int(k) for k in rng.permutation(KEYS)], 2))
    assert not differing(reference, run(KEYS[5:12], 3))


def test_a_scene_without_robots_can_be_stepped_and_reset():
    builder = ModelBuilder()
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    state, solver = model.state(), SolverFeatherstone(model)
    solver.step(state, state, dt=0.01)
    solver.reset(state)
    solver.reset(state, [True])
    assert solver.check(state).tolist() == [True]
