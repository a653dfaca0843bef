"""Records of edited arrays, and the updates after edits of masses."""

import copy

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, ModelFlags, dynamics
from newton_like.model.editing.edits import edits_of
from newton_like.model.model import inverse_inertias, inverse_masses
from tests.support.random_trees import random_inertia

BODIES = 40


def bodies(dtype=wp.float64, worlds: int = 0):
    one = ModelBuilder()
    for _ in range(BODIES):
        one.add_body(mass=1.0, inertia=np.eye(3))
    scene = one
    if worlds:
        scene = ModelBuilder()
        scene.replicate(one, worlds)
    return scene.finalize("cpu", dtype=dtype)


def random_masses(rng):
    """Masses and inertias of solid bodies, rods, points and massless bodies."""
    mass, inertia = rng.uniform(0.1, 5.0, BODIES), np.zeros((BODIES, 3, 3))
    for i in range(BODIES):
        kind = i % 5
        if kind < 3:
            inertia[i] = random_inertia(rng, mass[i], 10.0 ** rng.uniform(-3, 1))
        elif kind == 3:
            axis = rng.normal(size=3)
            inertia[i] = axis @ axis * np.eye(3) - np.outer(axis, axis)
        if i % 10 == 4:
            mass[i] = 0.0
    return mass, inertia


@pytest.mark.parametrize(("dtype", "rtol"), [(wp.float32, 2e-6), (wp.float64, 1e-9)])
def test_inverses_are_those_of_edited_masses(rng, dtype, rtol):
    """Of regular, of singular and of no inertia, against NumPy. Rods of float32 are regular to rounding, and are left out there."""
    model = bodies(dtype)
    mass, inertia = random_masses(rng)
    if dtype is wp.float32:
        inertia[3::5] = 0.0
    model.body_mass.assign(mass)
    model.body_inertia.assign(inertia)
    model.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    given = model.body_mass.numpy().astype(np.float64), model.body_inertia.numpy().astype(np.float64)
    np.testing.assert_allclose(model.body_inv_mass.numpy(), inverse_masses(given[0]), rtol=rtol)
    expected = inverse_inertias(given[1])
    size = np.abs(expected).max(axis=(1, 2), keepdims=True)
    assert (np.abs(model.body_inv_inertia.numpy() - expected) <= rtol * size).all()


def test_inverses_of_other_worlds_stay(rng):
    model = bodies(worlds=4)
    before = model.body_inv_mass.numpy().copy()
    model.body_mass.fill_(4.0)
    model.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES, [2])
    expected = np.where(model.body_world.numpy() == 2, 0.25, before)
    np.testing.assert_array_equal(model.body_inv_mass.numpy(), expected)


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([0, 7], IndexError),
        ([True], ValueError),
        ([0.5] * 4, TypeError),
        ([1, 1], ValueError),
        ([None, True], TypeError),
    ],
)
def test_worlds_that_make_no_sense_are_refused(mask, error):
    model = bodies(worlds=4)
    version = model.version
    with pytest.raises(error, match="world"):
        model.notify_changed(ModelFlags.ALL, mask)
    assert model.version == version


def test_a_copy_of_an_edited_model_knows_which_bodies_lack_mass(rng):
    model = bodies()
    model.body_mass, model.body_inertia = random_masses(rng)
    model.notify_changed()
    lean = edits_of(model).lean.numpy()
    assert 0 < lean.sum() < BODIES
    np.testing.assert_array_equal(edits_of(copy.copy(model)).lean.numpy(), lean)


def test_gravity_of_what_worlds_share_is_that_of_world_0(rng):
    """At once, whichever worlds were edited before."""
    scene = ModelBuilder()
    for world in (-1, 0, 1):
        if world >= 0:
            scene.begin_world()
        link = scene.add_link(mass=1.0, inertia=np.eye(3), com=(1.0, 0.0, 0.0), is_kinematic=world < 0)
        scene.add_articulation([scene.add_joint_revolute(-1, link, axis="y")])
        if world >= 0:
            scene.end_world()
    model = scene.finalize("cpu")
    state = model.state()
    shared = int(np.flatnonzero(model.articulation_world.numpy() < 0)[0])
    for world in rng.permutation([0, 1, 0, 1]).tolist():
        size = rng.uniform(1.0, 9.0)
        model.set_gravity(-size, world)
        forces, gravity = dynamics.gravity_forces(model, state).numpy().ravel(), model.gravity.numpy()[:, 2]
        expected = np.abs(gravity[np.maximum(model.articulation_world.numpy(), 0)])
        np.testing.assert_allclose(np.abs(forces), expected, rtol=1e-6)
        assert abs(forces[shared]) == pytest.approx(abs(gravity[0]), rel=1e-6)


def test_what_varies_is_a_list_of_names():
    model = bodies(worlds=1)
    model.varying = {"body_mass"}
    for wrong, error in ((5, TypeError), ({"body_mass": 1}, TypeError), (["mass"], ValueError)):
        with pytest.raises(error, match="varying"):
            model.varying = wrong
    assert model.varying == {"body_mass"}


def test_inverses_follow_arrays_that_replace_others(rng):
    """Launches are recorded once for the arrays of a model: other arrays, and later edits, count."""
    model = bodies()
    for replaced in (False, True, False, True, True):
        mass, inertia = rng.uniform(0.1, 5.0, BODIES), np.array([random_inertia(rng, 1.0) for _ in range(BODIES)])
        if replaced:
            model.body_mass = wp.array(mass, dtype=wp.float64, device="cpu")
            model.body_inertia = wp.array(inertia, dtype=wp.mat33d, device="cpu")
            model.body_inv_mass, model.body_inv_inertia = map(wp.clone, (model.body_inv_mass, model.body_inv_inertia))
        else:
            model.body_mass.assign(mass)
            model.body_inertia.assign(inertia)
        model.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
        np.testing.assert_array_equal(model.body_inv_mass.numpy(), 1.0 / mass)
        np.testing.assert_allclose(model.body_inv_inertia.numpy(), np.linalg.inv(inertia), rtol=1e-10)


@pytest.mark.parametrize("name", ["body_mass", "body_inertia"])
def test_negative_masses_are_refused_by_the_first_function_that_reads_them(rng, name):
    """Without a notice; later functions know masses as of the last notice, and the next one is refused until the mass is mended."""
    builder = ModelBuilder()
    for _ in range(3):
        mass = rng.uniform(0.5, 2.0)
        builder.add_body(mass=mass, inertia=random_inertia(rng, mass, 0.2))
    model = builder.finalize("cpu")
    array, i = getattr(model, name), int(rng.integers(3))
    sound = array.numpy().copy()
    array.numpy()[i] *= -1.0
    state = model.state()
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"body '.*' \(index {i}\): {name} is"):
            dynamics.mass_matrix(model, state)
    array.assign(sound)
    before = dynamics.mass_matrix(model, state).numpy()
    array.numpy()[i] *= -1.0
    np.testing.assert_array_equal(dynamics.mass_matrix(model, state).numpy(), before)
    model.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"\(index {i}\): {name} is"):
            dynamics.mass_matrix(model, state)
    array.assign(sound)
    model.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    np.testing.assert_array_equal(dynamics.mass_matrix(model, state).numpy(), before)
