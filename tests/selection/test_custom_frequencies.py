"""Views of custom frequencies whose entities belong to articulations."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like.selection import ArticulationView
from tests.selection.test_differing_worlds import chain

F, A = nl.Model.AttributeFrequency, nl.Model.AttributeAssignment


def declare(b: nl.ModelBuilder, resolver=None, labels: bool = False) -> nl.ModelBuilder:
    """Sensors, which have an articulation, a joint, a value of the model and one of controls, and perhaps a label."""
    b.add_custom_frequency(
        b.CustomFrequency(
            "sensor",
            "lab",
            articulation_owner_attribute="lab:sensor_articulation",
            articulation_owner_resolver=resolver,
            label_attribute="lab:sensor_label" if labels else None,
        )
    )
    for name, dtype, options in (
        ("sensor_articulation", int, {"references": "articulation"}),
        ("sensor_joint", int, {"references": "joint"}),
        ("sensor_value", wp.vec3, {}),
        ("sensor_command", float, {"assignment": A.CONTROL}),
        ("sensor_label", str, {}),
    ):
        b.add_custom_attribute(b.CustomAttribute(name, dtype, "lab:sensor", namespace="lab", **options))
    return b


def random_scene(rng, same: bool) -> tuple[nl.Model, list[int]]:
    """Worlds of two robots and a random number of others, with sensors in a random order: the model, and the articulation of each."""
    scene, owners = nl.ModelBuilder(), []
    for _ in range(4):
        b = declare(nl.ModelBuilder())
        labels = rng.permutation(["robot", "robot", *["other"] * int(rng.integers(0, 3))])
        for label in labels:
            b.add_builder(chain(label, ["revolute"], []))
        sensors = [
            a for a, label in enumerate(labels) for _ in range(2 if label == "robot" else int(rng.integers(0, 3)))
        ]
        sensors += [-1] + ([] if same else [int(np.flatnonzero(labels == "robot")[0])] * int(rng.integers(1, 3)))
        first = scene.articulation_count
        for sensor in rng.permutation(sensors):
            b.add_custom_values(**{"lab:sensor_articulation": int(sensor), "lab:sensor_value": rng.normal(size=3)})
            owners.append(first + int(sensor) if sensor >= 0 else -1)
        scene.add_world(b)
    return scene.finalize("cpu"), owners


def test_a_view_has_the_entities_of_its_articulations(rng):
    model, owners = random_scene(rng, True)
    np.testing.assert_array_equal(model.custom_frequency_articulation["lab:sensor"].numpy(), owners)
    assert model.custom_frequency_counts == {"lab:sensor": len(owners)}
    view, control = ArticulationView(model, "robot"), model.control()
    rows = np.array([[np.flatnonzero(np.equal(owners, a)) for a in world] for world in view.articulation_ids.numpy()])
    assert view.custom_frequency_counts == {"lab:sensor": 2} and view.custom_frequency_labels == {"lab:sensor": []}
    np.testing.assert_array_equal(view.frequency_layouts["lab:sensor"].get_absolute_indices(), rows)
    for name, source in (("lab.sensor_value", model), ("lab.sensor_command", control)):
        array = getattr(source.lab, name.partition(".")[2])
        array.assign(rng.normal(size=array.numpy().shape))
        before, mask = array.numpy().copy(), rng.uniform(size=(4, 2)) < 0.5
        np.testing.assert_array_equal(view.get_attribute(name, source).numpy(), before[rows])
        values = rng.normal(size=before[rows].shape).astype(np.float32)
        view.set_attribute(name, source, values, mask)
        before[rows[mask]] = values[mask]
        np.testing.assert_array_equal(array.numpy(), before)


def test_articulations_with_different_numbers_of_entities_share_the_rest(rng):
    model, _ = random_scene(rng, False)
    with pytest.raises(ValueError, match=r"lab:sensor.*homogeneous=False"):
        ArticulationView(model, "robot")
    view = ArticulationView(model, "robot", homogeneous=False)
    assert view.custom_frequency_counts == view.custom_frequency_labels == {"lab:sensor": None}
    assert "lab:sensor" not in view.frequency_layouts
    with pytest.raises(AttributeError, match=r"lab.sensor_value.*'robot'"):
        view.get_attribute("lab.sensor_value", model)
    assert view.get_dof_positions(model.state()).shape == (4, 2, 8)


def test_resolvers_tell_the_owners_of_what_was_added_and_copies_keep_theirs(rng):
    """Owners are those of the sensors' joints, whichever builder the sensors were added to."""

    def owners_of_joints(b):
        return [b.joint_articulation[joint] for joint in b.custom_attributes["lab:sensor_joint"].values]

    robot = declare(chain("robot", ["revolute", "revolute"], []), owners_of_joints, labels=True)
    for i in range(int(rng.integers(1, 4))):
        robot.add_custom_values(**{"lab:sensor_joint": int(rng.integers(0, 3)), "lab:sensor_label": f"imu/{i}"})
    world = nl.ModelBuilder()
    for prefix in ("left", "right"):
        world.add_builder(robot, label_prefix=prefix)
    world.add_builder(chain("other", ["revolute"], []))
    world.add_custom_values(**{"lab:sensor_joint": 6, "lab:sensor_label": "spare"})
    scene = nl.ModelBuilder()
    scene.replicate(world, 3, label_prefixes=[None, "b", "c"])
    for _ in range(2):  # a builder is not changed by finalize()
        model = scene.finalize("cpu")
        owners = model.custom_frequency_articulation["lab:sensor"].numpy()
        np.testing.assert_array_equal(owners, model.joint_articulation.numpy()[model.lab.sensor_joint.numpy()])
    count = robot._rows_of("lab:sensor")
    view = ArticulationView(model, "*robot")
    assert view.custom_frequency_counts["lab:sensor"] == count
    assert view.custom_frequency_labels["lab:sensor"] == [str(i) for i in range(count)]
    expected = [f"{side}/imu/{i}" for side in ("left", "right") for i in range(count)] + ["spare"]
    assert model.lab.sensor_label == [f"{p}{label}" for p in ("", "b/", "c/") for label in expected]


def test_frequencies_without_owners_are_not_viewed(rng):
    b = chain("robot", ["revolute"], [])
    b.add_custom_frequency(b.CustomFrequency("item"))
    b.add_custom_attribute(b.CustomAttribute("item_mass", float, "item"))
    b.add_custom_values(item_mass=1.0)
    model = b.finalize("cpu")
    view = ArticulationView(model, "robot")
    assert view.custom_frequency_counts == model.custom_frequency_articulation == {}
    with pytest.raises(AttributeError, match=r"item_mass.*articulation_owner_attribute"):
        view.get_attribute("item_mass", model)


def test_frequencies_without_entities_are_empty(rng):
    model = declare(chain("robot", ["revolute"], [])).finalize("cpu")
    view = ArticulationView(model, "robot")
    assert model.custom_frequency_articulation["lab:sensor"].shape == (0,)
    assert view.custom_frequency_counts == {"lab:sensor": 0} and view.custom_frequency_labels == {"lab:sensor": []}


@pytest.mark.parametrize("owners", [True, False])
def test_arrays_of_frequencies_without_entities_are_refused_by_their_frequency(owners):
    b = chain("robot", ["revolute"], [])
    if owners:
        declare(b)
    else:
        b.add_custom_frequency(b.CustomFrequency("sensor", "lab"))
        b.add_custom_attribute(b.CustomAttribute("sensor_value", float, "lab:sensor", namespace="lab"))
    model = b.finalize("cpu")
    with pytest.raises(KeyError, match=r"lab\.sensor_value.*no entities.*'lab:sensor'"):
        ArticulationView(model, "robot").get_attribute("lab.sensor_value", model)
