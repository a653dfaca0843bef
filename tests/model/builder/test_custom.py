"""Custom attributes: declared, given, copied into worlds, and carried by models, states and controls."""

import warnings

import numpy as np
import pytest
import warp as wp

from newton_like import Model, ModelBuilder, urdf
from newton_like.dynamics import reduce
from newton_like.model.columns import KIND_OF
from newton_like.model.custom import COUNTED, CustomAttribute, CustomFrequency
from newton_like.model.state import ON_REQUEST
from tests.support.random_trees import random_tree

F, A = Model.AttributeFrequency, Model.AttributeAssignment

PER_ENTITY = list(COUNTED)


def random_entry(rng, attribute: CustomAttribute):
    if attribute.dtype is str:
        return str(rng.integers(1000))
    if attribute.dtype is wp.bool:
        return bool(rng.random() < 0.5)
    size = attribute.shape
    return rng.integers(100, size=size).tolist() if attribute.scalar is wp.int32 else rng.normal(size=size).tolist()


def declared(rng) -> list[CustomAttribute]:
    """An attribute of every frequency and of all kinds of types, on the three objects."""
    dtypes = [wp.float32, wp.float64, wp.int32, wp.bool, wp.vec3, wp.vec2i, wp.mat33, wp.quat]
    attributes = []
    for i, frequency in enumerate(PER_ENTITY):
        dtype = dtypes[rng.integers(len(dtypes))]
        space = [None, "own", "other"][rng.integers(3)]
        attributes.append(CustomAttribute(f"mine_{i}", dtype, frequency, A(int(rng.integers(3))), space))
    return attributes


def given_robot(rng, attributes) -> ModelBuilder:
    """A random robot with shapes, and entries for some of its entities."""
    robot = random_tree(rng, joints=4, floating=True)
    for body in range(robot.body_count):
        robot.add_shape_sphere(body, radius=0.1)
    for attribute in attributes:
        robot.add_custom_attribute(attribute)
        count = getattr(robot, COUNTED[attribute.frequency])
        for i in rng.choice(count, rng.integers(count + 1), replace=False).tolist():
            robot.custom_attributes[attribute.key].values[i] = random_entry(rng, attribute)
    return robot


def carried(target, attribute):
    """The array of an attribute."""
    space = getattr(target, attribute.namespace) if attribute.namespace else target
    return getattr(space, attribute.name)


def test_entries_are_replicated_with_their_entities(rng):
    attributes = declared(rng)
    robot, others = given_robot(rng, attributes), given_robot(rng, attributes)
    scene = ModelBuilder()
    scene.add_world(others)
    scene.replicate(robot, 3)
    model = scene.finalize("cpu")
    targets = (model, model.state(), model.control())
    for attribute in attributes:
        expected = [
            builder.custom_attributes[attribute.key].values.get(i, attribute.default)
            for builder in (others, robot, robot, robot)
            for i in range(getattr(builder, COUNTED[attribute.frequency]))
        ]
        array = carried(targets[attribute.assignment], attribute)
        assert array.dtype == attribute.dtype
        np.testing.assert_allclose(array.numpy().reshape(np.shape(expected)), expected, rtol=1e-6)
        assert not any(
            hasattr(target, attribute.namespace or attribute.name)
            and hasattr(getattr(target, attribute.namespace, target) if attribute.namespace else target, attribute.name)
            for target in targets
            if target is not targets[attribute.assignment]
        )


def test_entries_are_given_with_what_they_are_of(rng):
    """For dofs, coordinates and constraints one value for all, one each, or some by their places."""
    builder = ModelBuilder()
    for attribute in (
        CustomAttribute("heat", float, F.BODY, A.STATE),
        CustomAttribute("paint", wp.vec3, F.SHAPE),
        CustomAttribute("maker", str, F.JOINT),
        CustomAttribute("gain", float, F.JOINT_DOF, A.CONTROL),
        CustomAttribute("scale", wp.vec2, F.JOINT_COORD, default=(1.0, 1.0)),
        CustomAttribute("weight", float, F.JOINT_CONSTRAINT),
        CustomAttribute("kind", int, F.ARTICULATION),
    ):
        builder.add_custom_attribute(attribute)
    link = builder.add_link(mass=1.0, inertia=np.eye(3), custom_attributes={"heat": 7})
    builder.add_shape_box(link, custom_attributes={"paint": wp.vec3(1.0, 2.0, 3.0)})
    scales = rng.normal(size=(4, 2))
    ball = builder.add_joint_ball(
        -1, link, custom_attributes={"gain": [1.0, 2.0, 3.0], "scale": scales, "weight": {1: 5.0}, "maker": "us"}
    )
    tip = builder.add_link(mass=1.0, inertia=np.eye(3))
    hinge = builder.add_joint_revolute(link, tip, custom_attributes={"gain": 4.0, "scale": (8.0, 9.0)})
    builder.add_articulation([ball, hinge], custom_attributes={"kind": 3})
    body = builder.add_body(mass=1.0, inertia=np.eye(3), custom_attributes={"heat": np.float32(2.5)})
    model = builder.finalize("cpu")
    np.testing.assert_array_equal(model.state().heat.numpy()[[link, tip, body]], [7.0, 0.0, 2.5])
    np.testing.assert_array_equal(model.paint.numpy(), [[1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(model.control().gain.numpy(), [1, 2, 3, 4, *[0] * 6])
    np.testing.assert_allclose(model.scale.numpy(), [*scales, (8.0, 9.0), *[(1.0, 1.0)] * 7], rtol=1e-6)
    np.testing.assert_array_equal(model.weight.numpy(), [0, 5, 0, *[0] * 5])
    assert model.joint_constraint_count == 8
    assert model.maker == ["us", "", ""]
    np.testing.assert_array_equal(model.kind.numpy(), [3, 0])


def test_references_follow_what_they_refer_to(rng):
    """Through copies, and where fixed joints are merged or joints are locked."""
    robot = random_tree(rng, joints=6, floating=True, label="robot")
    for kind in ("body", "joint", "joint_dof", "joint_coord", "articulation", "joint_constraint"):
        count = getattr(robot, f"{kind}_count")
        targets = rng.integers(-1, count, size=robot.body_count)
        robot.add_custom_attribute(
            CustomAttribute(f"to_{kind}", int, F.BODY, references=kind, values=dict(enumerate(targets.tolist())))
        )
    robot.add_custom_attribute(CustomAttribute("place", int, F.BODY, references="world", default=-1))
    scene = ModelBuilder()
    scene.replicate(robot, 3)
    model = scene.finalize("cpu")
    np.testing.assert_array_equal(model.place.numpy(), model.body_world.numpy())
    for kind in ("body", "joint", "joint_dof", "joint_coord", "articulation", "joint_constraint"):
        count, one = getattr(robot, f"{kind}_count"), robot.custom_attributes[f"to_{kind}"].values
        own = np.array([one[i] for i in range(robot.body_count)])
        expected = np.concatenate([np.where(own < 0, own, own + world * count) for world in range(3)])
        np.testing.assert_array_equal(getattr(model, f"to_{kind}").numpy(), expected)


def test_merged_bodies_and_locked_joints_take_their_entries_along(rng):
    builder = ModelBuilder()
    for attribute in (
        CustomAttribute("body_number", int, F.BODY),
        CustomAttribute("follows", int, F.BODY, references="body", default=-1),
        CustomAttribute("dof_number", int, F.JOINT_DOF),
        CustomAttribute("blocked", int, F.JOINT_CONSTRAINT),
    ):
        builder.add_custom_attribute(attribute)
    parent, joints = -1, []
    for i, kind in enumerate(("revolute", "fixed", "prismatic", "revolute")):
        link = builder.add_link(
            mass=1.0, inertia=np.eye(3), custom_attributes={"body_number": 10 + i, "follows": 3 - i}, label=f"link_{i}"
        )
        own = {"blocked": 100 * i + np.arange(6 if kind == "fixed" else 5)}
        if kind != "fixed":
            own["dof_number"] = 20 + i
        add = getattr(builder, f"add_joint_{kind}")
        joints.append(add(parent, link, label=f"joint_{i}", custom_attributes=own))
        parent = link
    builder.add_articulation(joints)
    reduced = reduce(builder, locked_positions={"joint_0": 0.3})
    builder.collapse_fixed_joints()
    model = builder.finalize("cpu")
    np.testing.assert_array_equal(model.body_number.numpy(), [10, 12, 13])
    np.testing.assert_array_equal(model.follows.numpy(), [2, -1, 0])  # references to a merged body become -1
    np.testing.assert_array_equal(model.dof_number.numpy(), [20, 22, 23])
    np.testing.assert_array_equal(model.blocked.numpy(), [100 * i + k for i in (0, 2, 3) for k in range(5)])

    model = reduced.finalize("cpu")
    np.testing.assert_array_equal(model.dof_number.numpy(), [22, 23])
    kept = [
        int(label.removeprefix("joint_")) for label in model.joint_label
    ]  # a fixed joint that was not locked is kept
    expected = [100 * i + k for i in kept for k in range(6 if i == 1 else 5)]
    np.testing.assert_array_equal(model.blocked.numpy(), expected)


def test_states_copy_and_assign_them(rng):
    builder = ModelBuilder()
    builder.add_custom_attribute(CustomAttribute("heat", wp.vec3, F.BODY, A.STATE, "own"))
    builder.add_custom_attribute(CustomAttribute("mode", int, F.JOINT, A.STATE))
    builder.add_body(mass=1.0, inertia=np.eye(3))
    model = builder.finalize("cpu")
    state, heat = model.state(requires_grad=True), rng.normal(size=(1, 3)).astype(np.float32)
    state.own.heat, state.mode = heat, [4]  # numbers of any library, as for other arrays
    assert state.own.heat.requires_grad and not state.mode.requires_grad
    copy, other = state.clone(), model.state()
    other.assign(state)
    state.own.heat.zero_()
    state.mode.zero_()
    for kept in (copy, other):
        np.testing.assert_array_equal(kept.own.heat.numpy(), heat)
        assert kept.mode.numpy() == [4]
    with pytest.raises(AttributeError, match=r"heet.*heat"):
        state.own.heet = heat
    whole, part = model.state(), model.state()
    del part.own
    for a, b in ((whole, part), (part, whole)):
        with pytest.raises(ValueError, match=r"State\.own\.heat"):
            a.assign(b)
    plain = ModelBuilder()
    plain.add_body(mass=1.0, inertia=np.eye(3))
    plain = plain.finalize("cpu")
    for a, b in ((state, plain.state()), (plain.state(), state)):
        with pytest.raises(ValueError, match=r"State\.(mode|own\.heat)"):
            a.assign(b)


@pytest.mark.parametrize("bodies", [(1, 2), (2, 1)])
def test_an_assignment_that_fails_changes_nothing(rng, bodies):
    models = []
    for count in bodies:
        builder = ModelBuilder()
        for name, dtype, namespace in (("maker", str, None), ("maker", str, "lab")):
            builder.add_custom_attribute(CustomAttribute(name, dtype, F.BODY, A.STATE, namespace))
        builder.add_custom_attribute(CustomAttribute("note", str, F.ONCE, A.STATE))
        for i in range(count):
            given = {"maker": f"{count} {i}", "lab:maker": f"lab {count} {i}"}
            builder.add_body(mass=1.0, inertia=np.eye(3), custom_attributes=given)
        models.append(builder.finalize("cpu"))
    mine, other = (model.state() for model in models)
    other.joint_q = rng.normal(size=len(other.joint_q))
    other.note[:] = ["new"]
    before = (list(mine.maker), list(mine.lab.maker), list(mine.note), mine.joint_q.numpy().copy())
    with pytest.raises(ValueError, match=r"State\."):
        mine.assign(other)
    # arrays of equal sizes, and texts of different numbers
    same = mine.clone()
    same.joint_q = rng.normal(size=len(mine.joint_q))
    same.lab.maker.append("more")
    with pytest.raises(ValueError, match=r"State\.lab\.maker.*texts"):
        mine.assign(same)
    assert before[:3] == (mine.maker, mine.lab.maker, mine.note)
    np.testing.assert_array_equal(mine.joint_q.numpy(), before[3])
    del same.lab.maker[-1]
    same.note[:] = ["new"]
    mine.assign(same)
    assert mine.note == ["new"]
    np.testing.assert_array_equal(mine.joint_q.numpy(), same.joint_q.numpy())


def test_urdf_files_say_that_they_lack_them(tmp_path):
    builder = ModelBuilder()
    builder.add_custom_attribute(CustomAttribute("heat", float, F.BODY, namespace="own"))
    builder.add_body(mass=1.0, inertia=np.eye(3), label="ball")
    with pytest.warns(UserWarning, match="own:heat"):
        report = urdf.write(builder.finalize("cpu"), tmp_path / "a.urdf")
    assert ["own:heat"] in report.remarks.values()


def test_entities_of_ones_own_are_counted_and_copied(rng):
    sensors = ModelBuilder()
    sensors.add_custom_frequency(CustomFrequency("sensor", "lab"))
    body = sensors.add_body(mass=1.0, inertia=np.eye(3))
    for name, dtype, references in (
        ("on", int, "body"),
        ("at", wp.vec3, None),
        ("like", int, "lab:sensor"),
        ("world", int, "world"),
    ):
        sensors.add_custom_attribute(
            CustomAttribute(
                name, dtype, "lab:sensor", namespace="lab", references=references, default=-1 if references else None
            )
        )
    at = rng.normal(size=(2, 3))
    for row in at:
        sensors.add_custom_values(**{"lab:on": body, "lab:at": row, "lab:like": 0})
    scene = ModelBuilder()
    scene.replicate(sensors, 3)
    model = scene.finalize("cpu")
    assert model.get_custom_frequency_count("lab:sensor") == 6
    np.testing.assert_array_equal(model.lab.on.numpy(), [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(model.lab.like.numpy(), [0, 0, 2, 2, 4, 4])
    np.testing.assert_array_equal(model.lab.world.numpy(), [0, 0, 1, 1, 2, 2])
    np.testing.assert_allclose(model.lab.at.numpy(), np.tile(at, (3, 1)), rtol=1e-6)
    with pytest.raises(KeyError, match="lab:sensor"):
        model.get_custom_frequency_count("sensor")


def test_entities_have_the_default_of_attributes_that_are_left_out(rng):
    """Without a warning, if all attributes that occur were given together once; and with one, if two were given in separate calls."""
    defaults = {f"sensor_{i}": float(rng.integers(100)) for i in range(4)}
    names = rng.choice(list(defaults), int(rng.integers(2, 5)), replace=False).tolist()

    def finalized(rows) -> tuple:
        builder = ModelBuilder()
        builder.add_custom_frequency(CustomFrequency("sensor"))
        for name, default in defaults.items():
            builder.add_custom_attribute(CustomAttribute(name, float, "sensor", default=default))
        for i, row in enumerate(rows):
            assert builder.add_custom_values(**row) == dict.fromkeys(row, i)
        builder.add_body(mass=1.0, inertia=np.eye(3))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = builder.finalize("cpu")
        for name, default in defaults.items():
            np.testing.assert_array_equal(getattr(model, name).numpy(), [row.get(name, default) for row in rows])
        return [str(warning.message) for warning in caught]

    rows = [dict.fromkeys(names, 1.0)]
    for _ in range(int(rng.integers(1, 6))):
        rows.append(
            {name: float(rng.integers(100, 200)) for name in rng.choice(names, int(rng.integers(1, len(names))), False)}
        )
    assert finalized(rows) == []
    (told,) = finalized([{names[0]: 1.0}, {names[0]: 2.0}, {names[1]: 3.0}])
    assert names[0] in told


def test_numbers_of_warp_are_entries(rng):
    for dtype, number in (
        (wp.float32, rng.normal()),
        (wp.float64, rng.normal()),
        (wp.int32, rng.integers(99)),
        (wp.bool, True),
    ):
        given = dtype(number)
        assert CustomAttribute("mine", dtype, F.BODY).entry(given, "mine") == wp.dtype_to_numpy(dtype)(number)
    with pytest.raises(TypeError, match="mine"):
        CustomAttribute("mine", int, F.BODY).entry(wp.float32(1.5), "mine")


def test_wrong_entries_are_refused_and_leave_the_builder_as_it_was():
    builder = ModelBuilder()
    builder.add_custom_attribute(CustomAttribute("heat", float, F.BODY))
    builder.add_custom_attribute(CustomAttribute("gain", wp.vec3, F.JOINT_DOF))
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    for given, error, named in (
        ({"heet": 1.0}, AttributeError, "heet.*heat"),
        ({"gain": 1.0}, ValueError, "gain.*JOINT_DOF"),
        ({"heat": "hot"}, TypeError, "heat.*float32.*hot"),
        ({"heat": [1.0, 2.0]}, TypeError, "heat"),
        ([1.0], TypeError, "custom_attributes"),
    ):
        with pytest.raises(error, match=named):
            builder.add_link(mass=1.0, custom_attributes=given)
    for gains in ([[1.0, 2.0, 3.0]] * 2, {3: (1.0, 2.0, 3.0)}):
        with pytest.raises(ValueError, match="gain"):
            builder.add_joint_revolute(-1, link, custom_attributes={"gain": gains})
    assert (builder.body_count, builder.joint_count) == (1, 0)
    builder.add_articulation([builder.add_joint_revolute(-1, link)])
    builder.custom_attributes["heat"].values[5] = 1.0
    with pytest.raises(ValueError, match=r"heat.*\b5\b"):
        builder.finalize("cpu")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("body_mass", float, F.BODY), "body_mass"),
        (("joint_q", float, F.JOINT_COORD, A.STATE), "joint_q"),
        (("heat", float, F.BODY, A.STATE, "clone"), "clone"),
        (("world_count", int, F.ONCE), "world_count"),
        (("heat", list, F.BODY), "dtype"),
        (("heat", float, 99), "99"),
        (("heat", float, "lab:sensor"), "lab:sensor"),
        (("2heat", float, F.BODY), "2heat"),
        (("heat", float, F.BODY, A.MODEL, None, "body"), "references"),
        (("heat", int, F.BODY, A.MODEL, None, F.ONCE), "references"),
    ],
)
def test_declarations_that_cannot_be_are_refused(arguments, named):
    builder = ModelBuilder()
    with pytest.raises(ValueError, match=named):
        builder.add_custom_attribute(CustomAttribute(*arguments))
        builder.finalize("cpu")


def test_one_name_is_declared_in_one_way():
    builder, other = ModelBuilder(), ModelBuilder()
    builder.add_custom_attribute(CustomAttribute("heat", float, F.BODY))
    builder.add_custom_attribute(CustomAttribute("heat", wp.float32, F.BODY))
    assert len(builder.custom_attributes) == 1
    different = CustomAttribute("heat", float, F.SHAPE)
    with pytest.raises(ValueError, match="heat"):
        builder.add_custom_attribute(different)
    other.add_custom_attribute(different)
    with pytest.raises(ValueError, match="heat"):
        builder.add_builder(other)


def test_bad_owners_of_entities_are_named():
    def with_items(resolver=None, **options):
        b = ModelBuilder()
        link = b.add_link(mass=1.0, inertia=np.eye(3))
        b.add_articulation([b.add_joint_revolute(-1, link)])
        key = "item_articulation"
        b.add_custom_frequency(
            b.CustomFrequency("item", articulation_owner_attribute=key, articulation_owner_resolver=resolver)
        )
        wanted = {"name": key, "dtype": int, "frequency": "item", "references": "articulation"}
        b.add_custom_attribute(b.CustomAttribute(**(wanted | options)))
        return b

    for wrong, error in (
        ({"name": ""}, ValueError),
        ({"name": "a:b"}, ValueError),
        ({"name": "item", "namespace": "x:y"}, ValueError),
        ({"name": "item", "articulation_owner_attribute": "owner"}, ValueError),
        ({"name": "item", "namespace": "lab", "label_attribute": "item_label"}, ValueError),
        ({"name": "item", "articulation_owner_resolver": list}, ValueError),
        (
            {"name": "item", "articulation_owner_attribute": "item_articulation", "articulation_owner_resolver": 1},
            TypeError,
        ),
    ):
        with pytest.raises(error, match="custom frequency"):
            CustomFrequency(**wrong)
    for wrong in (
        {"references": None},
        {"references": "joint"},
        {"assignment": A.STATE},
        {"name": "other"},
    ):
        with pytest.raises(ValueError, match=r"'item' needs .*'item_articulation'"):
            with_items(**wrong).finalize("cpu")
    for owner in (1, -2):
        b = with_items()
        b.add_custom_values(item_articulation=owner)
        with pytest.raises(ValueError, match=f"index 0.* {owner} "):
            b.finalize("cpu")
    for resolver, error in (
        (lambda b: [], ValueError),
        (lambda b: [1], IndexError),
        (lambda b: ["a"], TypeError),
        (lambda b: 0, TypeError),
    ):
        b = with_items(resolver)
        b.add_custom_values(item_articulation=None)
        with pytest.raises(error, match=r"articulation_owner_resolver.*'item'"):
            b.finalize("cpu")
        with pytest.raises(error, match="articulation_owner_resolver"):
            ModelBuilder().add_world(b)
    b, other = with_items(), with_items(lambda b: [])
    with pytest.raises(ValueError, match="'item'"):
        b.add_custom_frequency(other.custom_frequencies["item"])
    with pytest.raises(ValueError, match="'item'"):
        b.add_builder(other)
    b.add_custom_frequency(with_items().custom_frequencies["item"])


def test_frequencies_tell_the_lengths_of_arrays(rng):
    """Of all arrays of models, states and controls, those of a user among them."""
    builder = given_robot(rng, attributes := declared(rng))
    builder.add_custom_frequency(CustomFrequency("item"))
    builder.add_custom_attribute(CustomAttribute("item_mass", float, "item"))
    builder.add_custom_values(item_mass=1.0)
    model = builder.finalize("cpu")
    for attribute in attributes:
        assert model.get_attribute_frequency(attribute.key) is attribute.frequency
        assert model.get_attribute_frequency(attribute.key.replace(":", ".")) is attribute.frequency
    assert model.get_attribute_frequency("item_mass") == "item"
    assert len(model.gravity) == model.world_count and model.get_attribute_frequency("gravity") is F.WORLD
    model.request_state_attributes(*ON_REQUEST)
    seen = set()
    for source in (model, model.state(), model.control()):
        spaces = {"": source, "mujoco.": getattr(source, "mujoco", None)}
        arrays = {
            f"{space}{name}": a for space, own in spaces.items() if own is not None for name, a in vars(own).items()
        }
        for name in KIND_OF.keys() & arrays.keys():
            total = name in ("joint_q_start", "joint_qd_start", "articulation_start")
            assert len(arrays[name]) == getattr(model, COUNTED[model.get_attribute_frequency(name)]) + total
            seen.add(name)
    assert seen == KIND_OF.keys()
    with pytest.raises(KeyError, match=r"'joint_qq'.*joint_q"):
        model.get_attribute_frequency("joint_qq")


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("order", [1, -1])
def test_attributes_and_namespaces_do_not_share_a_name(copied, order):
    first, second = [CustomAttribute("lab", float, F.BODY), CustomAttribute("x", float, F.BODY, namespace="lab")][
        ::order
    ]
    builder = ModelBuilder()
    builder.add_custom_attribute(first)
    # another object has names of its own
    if first.namespace is None:
        builder.add_custom_attribute(CustomAttribute("y", float, F.BODY, A.STATE, "lab"))
    before = set(builder.custom_attributes)
    if copied:
        other = ModelBuilder()
        other.add_custom_attribute(CustomAttribute("y", float, F.BODY))
        other.add_custom_attribute(second)
    with pytest.raises(ValueError, match=r"lab.*Model"):
        builder.add_builder(other) if copied else builder.add_custom_attribute(second)
    assert set(builder.custom_attributes) == before


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (wp.int32, 2**40),
        (wp.int32, -(2**31) - 1),
        (wp.int64, 2**70),
        (wp.uint8, -1),
        (wp.uint64, -1),
        (wp.float32, 1e300),
        (wp.vec3, (0.0, 1e300, 0.0)),
        (wp.float16, 1e6),
    ],
)
def test_numbers_beyond_the_range_of_a_type_are_refused(dtype, value):
    attribute = CustomAttribute("heat", dtype, F.BODY)
    with pytest.raises(ValueError, match=r"at home: .*range of"):
        attribute.entry(value, "at home")
    scalar = attribute.scalar
    text = " ".join(map(str, np.atleast_1d(value))) if scalar in (wp.float32, wp.float16) else str(value)
    with pytest.raises(ValueError, match=r"in a file.*range of"):
        attribute.read(text, "in a file")


def test_the_ends_of_a_range_are_kept():
    for dtype in (wp.int8, wp.uint8, wp.int32, wp.int64, wp.uint64):
        info, attribute = np.iinfo(wp.dtype_to_numpy(dtype)), CustomAttribute("heat", dtype, F.BODY)
        for end in (int(info.min), int(info.max)):
            assert attribute.entry(end, "end") == attribute.read(str(end), "end") == end
    real = CustomAttribute("heat", float, F.BODY)
    assert real.entry(np.inf, "end") == real.read("inf", "end") == np.inf
    assert np.isnan(real.entry(np.nan, "end"))
    with pytest.raises(ValueError, match="1e999"):
        real.read("1e999", "end")


def test_references_beyond_what_exists_are_refused():
    builder = ModelBuilder()
    builder.add_custom_attribute(CustomAttribute("on", int, F.BODY, references="body", default=-1))
    builder.add_body(mass=1.0, inertia=np.eye(3), custom_attributes={"on": 0})
    builder.add_body(mass=1.0, inertia=np.eye(3))
    np.testing.assert_array_equal(builder.finalize("cpu").on.numpy(), [0, -1])
    builder.custom_attributes["on"].values[1] = 77
    with pytest.raises(ValueError, match=r"on.*index 1.*77.*body"):
        builder.finalize("cpu")


def test_rows_of_different_lengths_are_named():
    builder = ModelBuilder()
    for dtype in (wp.vec3, wp.vec3i):
        with pytest.raises(TypeError, match=r"'w'.*vec3"):
            CustomAttribute("w", dtype, F.BODY, default=[[1, 2], [3]])
    builder.add_custom_attribute(CustomAttribute("v", wp.vec3, F.JOINT_DOF))
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    with pytest.raises((TypeError, ValueError), match=r"'v'"):
        builder.add_joint_ball(-1, link, custom_attributes={"v": [[1.0, 2.0, 3.0], [4.0, 5.0]]})


@pytest.mark.parametrize(("entry", "fine"), [(-1, True), (0, True), (-2, False), (1, False)])
def test_references_name_an_entity_or_none(entry, fine):
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    builder.add_custom_attribute(CustomAttribute("friend", int, F.BODY, references="body", default=-1))
    builder.custom_attributes["friend"].values[0] = entry
    if fine:
        assert builder.finalize("cpu").friend.numpy().tolist() == [entry]
    else:
        with pytest.raises(ValueError, match=rf"friend.*index 0.*{entry}\b.*body"):
            builder.finalize("cpu")
