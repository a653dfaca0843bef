"""Parameters of batches: kernels gather them from the arrays of a model, initially and after edits."""

import copy

import numpy as np
import pytest
import warp as wp
from newton_like.kernels.layout import STEP_ROWS

from newton_like import ModelFlags
from newton_like.collision.ground import find_colliders, shape_kinds
from newton_like.model.editing.edits import ARRAYS, GROUPS
from newton_like.model.joint_types import look_up
from newton_like.programs.parameters import Parameters, TablesChanged
from newton_like.programs.records import SOURCES
from newton_like.programs.robot import namespace
from newton_like.programs.template import find_batches
from tests.support.mechanisms import mechanism, same_robot, worlds_of
from tests.support.random_trees import random_transform, random_unit

WORLDS = 11
"""Not as many as two blocks have lanes."""

NAMES = [name for group in GROUPS for name in ARRAYS[group]]
ADDED = (
    "joint_min_distance", "joint_max_distance", "joint_mimic_coeffs", "joint_armature", "body_com", "gravity",
    "shape_margin",
)  # fmt: skip
"""Arrays whose zeros may become other numbers."""


def scene(dtype=wp.float64, **options):
    robot = same_robot(mechanism, **options)
    # a ratio of one means that there is no other friction in motion, and asks for other tables when it changes
    robot.joint_friction_ratio = [0.9] * robot.joint_dof_count
    return worlds_of(robot, WORLDS, slope=True).finalize("cpu", dtype=dtype)


def parameters_of(model, width: int = 8) -> Parameters:
    (batch,) = find_batches(model, shape_kinds(model))
    m = namespace(width, model.dtype, STEP_ROWS)
    return Parameters(m, model, batch, find_colliders(model, batch))


def new_values(model, name: str, rng) -> np.ndarray:
    """Other numbers for an array, of the same kind: limits stay limits, and there is a drive where there was one."""
    old = getattr(model, name).numpy()
    count = len(old)
    if name in ("joint_X_p", "joint_X_c", "shape_transform"):
        return np.stack([random_transform(rng) for _ in range(count)])
    if name == "joint_axis":
        return np.stack([random_unit(rng) for _ in range(count)])
    if name == "joint_target_mode":
        # position drives become position and velocity drives, and the other way round
        return np.where(old == 1, 3, np.where(old == 3, 1, old))
    if name == "joint_rest_q":
        new = old + rng.uniform(0.01, 0.1, old.shape)
        types = model.joint_type.numpy()
        starts = model.joint_q_start.numpy()[:-1] + look_up(types, "rotation_at")
        for start in starts[look_up(types, "has_quaternion")]:
            new[start : start + 4] /= np.linalg.norm(new[start : start + 4])
        return new
    if name in ADDED:
        return old + rng.uniform(0.01, 0.1, old.shape)
    # where there is none there stays none, and what is unlimited stays so
    return np.where(np.abs(old) < 1.0e5, old * rng.uniform(0.5, 0.9, old.shape), old)


def edit(model, name: str, values, rows=slice(None)) -> None:
    array = getattr(model, name)
    numbers = array.numpy()
    numbers[rows] = values[rows]
    array.assign(numbers)


def world_of_entries(model, name: str) -> np.ndarray:
    """The world of each entry of an array, -1 for shared ones."""
    if name == "gravity":
        return np.arange(model.world_count)
    if name.startswith(("shape", "body")):
        return getattr(model, f"{name.split('_')[0]}_world").numpy()
    count = len(getattr(model, name))
    assert count % WORLDS == 0
    return np.arange(count) // (count // WORLDS)


def test_the_table_names_the_arrays_that_are_read():
    assert sorted(SOURCES) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_array_changes_the_numbers_that_the_table_says(rng, name):
    """All of them, and no others: code that holds the others as constants stays right."""
    model = scene()
    parameters = parameters_of(model)
    before = parameters.rows()
    edit(model, name, new_values(model, name, rng))
    after = parameters_of(model).rows()
    changed = (before != after).any(axis=0)
    told = parameters._layout.slots([name])
    assert changed.any()
    assert not (changed & ~told).any()
    if name in (
        "body_mass",
        "body_inertia",
        "body_com",
        "joint_armature",
        "gravity",
        "shape_margin",
        "shape_material_mu",
    ):
        assert (changed == told).all()


@pytest.mark.slow
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("width", [1, 8])
def test_edits_are_those_of_a_model_made_anew(rng, declared, width):
    """Of all arrays in turn, in the chosen worlds and nowhere else; in lanes of both widths."""
    model, twin = scene(), scene()
    if declared:
        model.varying = NAMES
    parameters = parameters_of(model, width)
    places = parameters.P.varying.ptr
    for name in rng.permutation(NAMES):
        values = new_values(model, name, rng)
        mask = rng.random(WORLDS) < 0.5
        world = world_of_entries(model, name)
        chosen = np.where(world >= 0, mask[world], False)
        values[world < 0] = getattr(model, name).numpy()[world < 0]
        # edits without a notification are not read
        edit(model, name, values)
        edit(twin, name, values, chosen)
        model.notify_changed(ModelFlags.ALL, mask)
        stale, code = parameters.refresh(model)
        assert not (declared and (stale or code))
        np.testing.assert_array_equal(parameters.rows(), parameters_of(twin, width).rows(), err_msg=name)
        edit(model, name, getattr(twin, name).numpy())
    if declared:
        assert parameters.P.varying.ptr == places


def test_code_is_stale_once_for_each_array(rng):
    model = scene()
    parameters = parameters_of(model)
    for name in ("body_mass", "joint_armature"):
        for turn in range(3):
            edit(model, name, new_values(model, name, rng))
            model.notify_changed()
            assert parameters.refresh(model) == ((True, True) if turn == 0 else (False, False))
    # numbers that stay as they are are no edit
    model.notify_changed()
    assert parameters.refresh(model) == (False, False)


@pytest.mark.parametrize("worlds", [[0], [1], list(range(WORLDS))])
def test_a_number_that_is_none_stays_in_its_world(rng, worlds):
    """When numbers are gathered, and after it was mended."""
    model = scene()
    expected = parameters_of(model).rows()
    mass = model.body_mass.numpy().reshape(WORLDS, -1)
    whole = mass.copy()
    mass[worlds, 1] = np.nan
    model.body_mass.assign(mass.ravel())
    parameters = parameters_of(model)
    assert np.isnan(parameters.rows()).any(axis=1).nonzero()[0].tolist() == worlds
    model.body_mass.assign(whole.ravel())
    model.notify_changed()
    parameters.refresh(model)
    np.testing.assert_array_equal(parameters.rows(), expected)


def test_copies_of_a_model_keep_account_of_their_own_edits(rng):
    model = scene()
    parameters = parameters_of(model)
    twin = copy.copy(model)
    edit(model, "body_mass", new_values(model, "body_mass", rng))
    twin.notify_changed()
    model.notify_changed()
    parameters.refresh(model)
    np.testing.assert_array_equal(parameters.rows(), parameters_of(model).rows())
    assert twin._edits is not model._edits


def test_groups_that_are_not_named_are_not_read(rng):
    model = scene()
    model.varying = ("body_mass", "joint_armature")
    parameters = parameters_of(model)
    before = parameters.rows()
    edit(model, "body_mass", new_values(model, "body_mass", rng))
    model.notify_changed(ModelFlags.JOINT_DOF_PROPERTIES)
    parameters.refresh(model)
    np.testing.assert_array_equal(parameters.rows(), before)
    model.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    parameters.refresh(model)
    assert (parameters.rows() != before).any()


@pytest.mark.parametrize(
    ("name", "value", "declared"),
    [("joint_friction", 1.0, False), ("joint_velocity_limit", 1.0, False), ("joint_effort_limit", 1.0, False),
     ("joint_friction", 1.0, True), ("joint_velocity_limit", 1.0, True), ("joint_effort_limit", 1.0, True),
     ("shape_material_mu_rolling", 0.1, False), ("shape_material_mu_rolling", 0.1, True)],
)  # fmt: skip
def test_limits_and_rows_that_were_not_there_are_asked_for(name, value, declared):
    """By an exception that lays contacts and limits out anew, unless they were told to vary: then they are there."""
    model = scene(rolling=False)
    if declared:
        model.varying = [name]
    parameters = parameters_of(model)
    getattr(model, name).fill_(value)
    model.notify_changed()
    if declared:
        assert parameters.refresh(model) == (False, False)
    else:
        with pytest.raises(TablesChanged):
            parameters.refresh(model)


@pytest.mark.parametrize("names", ["body_mass", ("body_mas",), ("joint_q",), (3,)])
def test_names_of_arrays_that_vary_are_checked(names):
    model = scene()
    if names == "body_mass":
        model.varying = names
        assert model.varying == {"body_mass"}
        return
    with pytest.raises(ValueError, match=str(names[0])):
        model.varying = names
