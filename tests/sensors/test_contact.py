"""Contact sensors: sums of a list of contacts by row and column, weights at rest, worlds, choices and errors."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like import ModelBuilder
from newton_like.sensors import SensorContact
from newton_like.solvers import SolverFeatherstone
from tests.support.simulate import GRAVITY, worlds_of


def tower(boxes: int = 3) -> ModelBuilder:
    """Boxes on top of each other, of two shapes each, on a table."""
    builder = ModelBuilder()
    builder.add_shape_box(-1, xform=(0, 0, -0.5, 0, 0, 0, 1), hx=1.0, hy=1.0, hz=0.5, label="table")
    for i in range(boxes):
        body = builder.add_body(xform=(0.0, 0.0, 0.1 + 0.2 * i, 0, 0, 0, 1), label=f"box{i}")
        for side in (-1, 1):
            builder.add_shape_box(
                body, xform=(0.05 * side, 0, 0, 0, 0, 0, 1), hx=0.05, hy=0.1, hz=0.1, label=f"box{i}_{'l_r'[side + 1]}"
            )
    return builder


def simulated(builder, steps: int, make):
    """The model, sensors that `make` makes of it, and the contacts after some steps, with the state."""
    model = builder.finalize("cpu")
    sensors = make(model)
    solver, state, contacts = SolverFeatherstone(model, evaluator="general"), model.state(), model.contacts()
    for _ in range(steps):
        solver.step(state, state)
    solver.update_contacts(contacts, state)
    for sensor in sensors:
        sensor.update(state, contacts)
    return model, sensors, contacts, state


def test_boxes_of_a_tower_feel_the_weight_above():
    """The net force on each box carries its weight; each box presses on the one below with all weights above; actions are reactions."""
    model, (total, pairs, table), _, state = simulated(
        worlds_of([tower(3), tower(2), tower(3)]),
        480,
        lambda model: (
            SensorContact(model, sensing_bodies="box*"),
            SensorContact(model, sensing_bodies="box*", counterpart_bodies="box*", measure_total=False),
            SensorContact(model, sensing_shapes="table", counterpart_bodies=["box0", "box2"]),
        ),
    )
    weight = GRAVITY * model.body_mass.numpy()[0]
    close = dict(atol=2.0e-3 * weight)
    np.testing.assert_allclose(total.total_force.numpy(), [[0, 0, weight]] * 8, **close)
    matrix = pairs.force_matrix.numpy()
    assert pairs.total_force is None and matrix.shape == (8, 3, 3)
    expected = np.zeros((8, 3))
    for first, count in ((0, 3), (3, 2), (5, 3)):
        assert pairs.counterpart_indices[first] == list(range(first, first + count))
        for i in range(count - 1):
            above = (count - 1 - i) * weight
            expected[first + i, i + 1], expected[first + i + 1, i] = -above, above
    np.testing.assert_allclose(matrix[:, :, 2], expected, **close)
    for first, count in ((0, 3), (3, 2), (5, 3)):
        block = matrix[first : first + count, :count]
        np.testing.assert_allclose(block, -block.transpose(1, 0, 2), **close)
    np.testing.assert_allclose(table.total_force.numpy()[:, 2], [-3 * weight, -2 * weight, -3 * weight], **close)
    np.testing.assert_allclose(table.force_matrix.numpy()[:, :, 2], np.outer([-3, -2, -3], [weight, 0.0]), **close)
    place = table.position_matrix.numpy()
    np.testing.assert_allclose(place[:, 0], 0.0, atol=2.0e-3)
    assert not place[:, 1].any(), "the upper box does not touch the table"
    np.testing.assert_allclose(pairs.position_matrix.numpy()[0, 1], [0, 0, 0.2], atol=2.0e-3)
    np.testing.assert_array_equal(total.sensing_transforms.numpy(), state.body_q.numpy())


def listed(model, rng, count: int, room: int = 0):
    """Contacts of random pairs of shapes of one world with random forces, in random order."""
    contacts = nl.Contacts(room or count, device=model.device, requested_attributes=("force",))
    world = model.shape_world.numpy()
    pairs = [
        (a, b)
        for a in range(len(world))
        for b in range(len(world))
        if a != b and (world[a] == world[b] or min(world[a], world[b]) < 0)
    ]
    chosen = np.array(pairs)[rng.integers(len(pairs), size=count)]
    for name, values in (
        ("rigid_contact_shape0", chosen[:, 0]), ("rigid_contact_shape1", chosen[:, 1]),
        ("rigid_contact_point0", rng.normal(size=(count, 3))), ("rigid_contact_point1", rng.normal(size=(count, 3))),
        ("rigid_contact_normal", rng.normal(size=(count, 3))), ("rigid_contact_margin0", rng.uniform(0.0, 0.1, count)),
        ("force", rng.normal(size=(count, 6))),
    ):  # fmt: skip
        array = getattr(contacts, name).numpy()
        array[:count] = values
        getattr(contacts, name).assign(array)
    contacts.rigid_contact_count.assign([count])
    return contacts


@pytest.mark.parametrize("sensing", ["body", "shape"])
@pytest.mark.parametrize("counterpart", ["body", "shape"])
def test_rows_and_columns_are_sums_over_the_list(rng, sensing, counterpart):
    """Every entry is the sum over the contacts of its two objects, found by a loop over the list."""
    scene = worlds_of([tower(3), tower(1), tower(2)])
    scene.add_ground_plane(label="ground")
    model = scene.finalize("cpu")
    choice = {"body": "bodies", "shape": "shapes"}
    sensor = SensorContact(
        model, **{f"sensing_{choice[sensing]}": "box[01]*", f"counterpart_{choice[counterpart]}": "*"}
    )
    state = model.state()
    pose = rng.normal(size=(model.body_count, 7))
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
    state.body_q.assign(pose)
    body, label = model.shape_body.numpy(), model.body_label if sensing == "body" else model.shape_label
    assert [re.match("box[01]", label[i]) is not None for i in sensor.sensing_indices] == [True] * len(
        sensor.sensing_indices
    )

    def named(s: int, kind: str) -> int:
        return s if kind == "shape" else body[s]

    for count in (200, 0, 7):
        contacts = listed(model, rng, count, 300)
        sensor.update(state, contacts)
        first = [np.zeros((*sensor.force_matrix.shape, 3)) for _ in range(3)]
        matrix, friction, position = first
        total, weight = np.zeros((len(label), 3)), np.zeros(sensor.force_matrix.shape)
        arrays = [
            getattr(contacts, f"rigid_contact_{x}").numpy()
            for x in ("shape0", "shape1", "point0", "point1", "normal", "margin0")
        ]
        for i in range(count):
            one, two, p, q, n, margin = (x[i] for x in arrays)
            ends = []
            for s, x in ((one, p), (two, q)):
                frame = wp.transform(*pose[body[s]]) if body[s] >= 0 else wp.transform_identity()
                ends.append(np.array(wp.transform_point(frame, wp.vec3(*x.tolist()))))
            middle = 0.5 * (ends[0] + margin * n + ends[1])
            for mine, other, sign in ((one, two, 1.0), (two, one, -1.0)):
                row = named(mine, sensing)
                if row not in sensor.sensing_indices:
                    continue
                row = sensor.sensing_indices.index(row)
                f = sign * contacts.force.numpy()[i, :3].astype(float)
                total[row] += f
                if (column := named(other, counterpart)) in sensor.counterpart_indices[row]:
                    column = sensor.counterpart_indices[row].index(column)
                    matrix[row, column] += f
                    friction[row, column] += f - n * (f @ n) / (n @ n)
                    position[row, column] += np.linalg.norm(f) * middle
                    weight[row, column] += np.linalg.norm(f)
        position /= np.where(weight > 0.0, weight, 1.0)[:, :, None]
        rows = len(sensor.sensing_indices)
        np.testing.assert_allclose(sensor.total_force.numpy(), total[:rows], atol=1.0e-4)
        for measured, wanted in (
            (sensor.force_matrix, matrix), (sensor.force_matrix_friction, friction), (sensor.position_matrix, position),
        ):  # fmt: skip
            np.testing.assert_allclose(measured.numpy(), wanted, atol=1.0e-4)


def test_rows_keep_the_order_of_indices_and_lists_may_be_in_any_order(rng):
    model = worlds_of([tower(2)] * 2).finalize("cpu")
    contacts = listed(model, rng, 50)
    ahead, back = (SensorContact(model, sensing_bodies=order) for order in ([0, 1, 2, 3], [3, 1, 0, 2]))
    for sensor in (ahead, back):
        sensor.update(None, contacts)
    assert back.sensing_indices == [3, 1, 0, 2]
    np.testing.assert_array_equal(back.total_force.numpy(), ahead.total_force.numpy()[[3, 1, 0, 2]])
    np.testing.assert_array_equal(back.total_force_friction.numpy(), ahead.total_force_friction.numpy()[[3, 1, 0, 2]])


def test_worlds_do_not_mix(rng):
    """A list with contacts across worlds, which no solver makes, has them in totals, and not in columns of another world."""
    model = worlds_of([tower(1)] * 2).finalize("cpu")
    sensor = SensorContact(model, sensing_bodies="*", counterpart_shapes="*")
    contacts = nl.Contacts(1, device=model.device, requested_attributes=("force",))
    contacts.rigid_contact_shape0.assign([1])
    contacts.rigid_contact_shape1.assign([4])
    contacts.rigid_contact_count.assign([1])
    contacts.force.assign([[1.0, 2.0, 3.0, 0.0, 0.0, 0.0]])
    sensor.update(None, contacts)
    np.testing.assert_array_equal(sensor.total_force.numpy(), [[1, 2, 3], [-1, -2, -3]])
    assert not sensor.force_matrix.numpy().any()


def test_states_without_poses_clear_positions(rng):
    model = worlds_of([tower(2)]).finalize("cpu")
    sensor = SensorContact(model, sensing_bodies="*", counterpart_shapes="*")
    contacts = listed(model, rng, 30)
    sensor.update(model.state(), contacts)
    transforms = sensor.sensing_transforms.numpy()
    assert sensor.position_matrix.numpy().any()
    for state in (None, SimpleNamespace(body_q=None)):
        sensor.update(state, contacts)
        assert not sensor.position_matrix.numpy().any() and sensor.force_matrix.numpy().any()
        np.testing.assert_array_equal(sensor.sensing_transforms.numpy(), transforms)


def test_lists_of_a_negative_number_of_contacts_are_empty(rng):
    """As in steps that get such a list."""
    model = worlds_of([tower(2)]).finalize("cpu")
    sensor = SensorContact(model, sensing_bodies="*")
    contacts = listed(model, rng, 30)
    contacts.rigid_contact_count.assign([-2])
    sensor.update(model.state(), contacts)
    assert not sensor.total_force.numpy().any()


def test_a_model_without_worlds_is_one_world():
    builder = tower(1)
    model = builder.finalize("cpu")
    sensor = SensorContact(model, sensing_shapes="*")
    assert sensor.sensing_indices == [0, 1, 2] and sensor.counterpart_indices == [[], [], []]
    assert sensor.force_matrix is None and sensor.position_matrix is None and sensor.counterpart_type is None


def test_wrong_choices_are_named():
    scene = worlds_of([tower(1)] * 2)
    scene.add_ground_plane(label="ground")
    model = scene.finalize("cpu")
    for options, kind, told in (
        ({}, ValueError, "sensing_bodies"),
        ({"sensing_bodies": "*", "sensing_shapes": "*"}, ValueError, "sensing_shapes"),
        (
            {"sensing_bodies": "*", "counterpart_bodies": "*", "counterpart_shapes": "*"},
            ValueError,
            "counterpart_shapes",
        ),
        ({"sensing_bodies": "leg"}, ValueError, "'leg'"),
        ({"sensing_bodies": "*", "counterpart_shapes": "leg"}, ValueError, "counterpart_shapes 'leg'"),
        ({"sensing_bodies": [0, 0]}, ValueError, "body 0"),
        ({"sensing_bodies": [2]}, IndexError, "body 2"),
        ({"sensing_shapes": [-1]}, IndexError, "shape -1"),
        ({"sensing_shapes": "*"}, ValueError, "'ground'"),
        ({"sensing_bodies": "*", "measure_total": False}, ValueError, "measure_total"),
        ({"sensing_bodies": 3}, TypeError, "pattern"),
    ):
        with pytest.raises(kind, match=re.escape(told)):
            SensorContact(model, **options)
    with pytest.raises(TypeError, match="model"):
        SensorContact(scene, sensing_bodies="*")


def test_wrong_contacts_and_states_are_named():
    model = worlds_of([tower(1)] * 2).finalize("cpu")
    other = worlds_of([tower(1)] * 3).finalize("cpu")
    sensor = SensorContact(model, sensing_bodies="*", request_contact_attributes=False)
    with pytest.raises(ValueError, match="request_contact_attributes"):
        sensor.update(model.state(), model.contacts())
    model.request_contact_attributes("force")
    other.request_contact_attributes("force")
    with pytest.raises(ValueError, match="contacts"):
        sensor.update(model.state(), other.contacts())
    with pytest.raises(ValueError, match="state"):
        sensor.update(other.state(), model.contacts())
    with pytest.raises(TypeError, match="contacts"):
        sensor.update(model.contacts(), model.state())
    with pytest.raises(ValueError, match="observables"):
        sensor.update(model.state(), model.contacts(), observables=3)
    assert nl.sensors.SensorContact is SensorContact


def test_a_graph_measures_as_calls_do():
    """Steps, the list of contacts and the sensor are captured, and replayed with equal bits."""
    forces = []
    for captured in (False, True):
        model = worlds_of([tower(2)] * 2).finalize("cpu")
        sensor = SensorContact(model, sensing_bodies="*", counterpart_shapes="*")
        solver, contacts = SolverFeatherstone(model, evaluator="general"), model.contacts()
        state, start = model.state(), model.state()

        def measure(state=state, solver=solver, contacts=contacts, sensor=sensor):
            solver.step(state, state)
            solver.update_contacts(contacts, state)
            sensor.update(state, contacts)

        again = measure
        measure()
        if captured:
            with wp.ScopedCapture("cpu") as capture:
                measure()

            def again(graph=capture.graph):
                wp.capture_launch(graph)

        state.assign(start)
        solver.reset(state)
        for _ in range(50):
            again()
        forces.append((sensor.total_force.numpy(), sensor.force_matrix.numpy(), sensor.position_matrix.numpy()))
    assert forces[0][0].any()
    for one, other in zip(*forces, strict=True):
        np.testing.assert_array_equal(one, other)
