"""Views of worlds that differ: what they read and write is what a walk over the tables of the model finds."""

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like.selection import ArticulationView

ARRAYS = {
    "joint": "joint_X_p",
    "dof": "joint_armature",
    "coord": "joint_q",
    "body": "body_com",
    "shape": "shape_margin",
}
COUNTS = {
    "joint": "joint_count", "dof": "joint_dof_count", "coord": "joint_coord_count", "body": "link_count", "shape": "shape_count",
}  # fmt: skip


def chain(label: str, kinds: list[str], shapes: list[int], floating: bool = True) -> nl.ModelBuilder:
    """A chain of joints of some kinds; `shapes` are the links that have them, in the order of the model."""
    b = nl.ModelBuilder()
    links = [b.add_link(label=f"{label}/link_{i}", mass=1.0, inertia=np.eye(3)) for i in range(len(kinds) + 1)]
    joints = [b.add_joint_free(links[0]) if floating else b.add_joint_fixed(-1, links[0])]
    joints += [getattr(b, f"add_joint_{kind}")(links[i], links[i + 1]) for i, kind in enumerate(kinds)]
    b.joint_label = [f"{label}/joint_{i}" for i in range(len(joints))]
    b.add_articulation(joints, label=label)
    for link in shapes:
        b.add_shape_sphere(links[link], radius=0.1)
    return b


def random_chain(rng, label: str) -> nl.ModelBuilder:
    kinds = rng.choice(["revolute", "prismatic", "ball"], rng.integers(1, 5)).tolist()
    return chain(label, kinds, rng.integers(0, len(kinds) + 1, rng.integers(0, 6)).tolist())


def scattered_worlds(rng, robot: nl.ModelBuilder, per_world: int) -> tuple[nl.Model, list[int]]:
    """Worlds of random other robots, some of which have copies of the robot among them: the model, and which worlds these are."""
    scene, found = nl.ModelBuilder(), []
    for world in range(7):
        has = world == 2 or (world != 3 and rng.uniform() < 0.6)
        parts = [robot] * per_world * has + [random_chain(rng, f"other_{i}") for i in range(rng.integers(1, 4))]
        scene.begin_world()
        for i in rng.permutation(len(parts)):
            scene.add_builder(parts[i])
        scene.end_world()
        found += [world] * has
    return scene.finalize("cpu"), found


def rows_of(model, articulation: int, loops: bool = False) -> dict[str, list[int]]:
    """Rows of one articulation, by a walk over the model."""
    child, owner = model.joint_child.numpy(), model.joint_articulation.numpy()
    tree = [j for j in range(model.joint_count) if owner[j] == articulation]
    links = [int(child[j]) for j in tree]
    joints = [j for j in range(model.joint_count) if j in tree or (loops and owner[j] < 0 and child[j] in links)]
    rows = {"joint": joints, "body": links}
    rows["shape"] = [s for s, body in enumerate(model.shape_body.numpy()) if body in links]
    for kind, start in (("dof", model.joint_qd_start.numpy()), ("coord", model.joint_q_start.numpy())):
        rows[kind] = [i for j in joints for i in range(start[j], start[j + 1])]
    return rows


def expected_rows(model, view, kind: str) -> np.ndarray:
    ids = view.articulation_ids.numpy()
    return np.array([[rows_of(model, a)[kind] for a in row] for row in ids]).reshape(*ids.shape, -1).astype(int)


@pytest.mark.parametrize("per_world", [1, 2])
def test_data_of_scattered_robots_are_the_rows_of_the_flat_arrays(rng, per_world):
    model, worlds = scattered_worlds(rng, random_chain(rng, "robot"), per_world)
    view = ArticulationView(model, "robot", homogeneous=False)
    assert view.is_sparse and (view.world_count, view.count_per_world) == (len(worlds), per_world)
    np.testing.assert_array_equal(view.world_ids.numpy(), worlds)
    ids = view.articulation_ids.numpy()
    np.testing.assert_array_equal(
        model.articulation_world.numpy()[ids], np.repeat(worlds, per_world).reshape(ids.shape)
    )
    assert [model.articulation_label[a] for a in np.flatnonzero(view.articulation_mask.numpy())] == ["robot"] * ids.size
    for kind, name in ARRAYS.items():
        array, rows = getattr(model, name), expected_rows(model, view, kind)
        array.assign(rng.normal(size=array.numpy().shape))
        np.testing.assert_array_equal(view.get_attribute(name, model).numpy(), array.numpy()[rows])
        assert getattr(view, COUNTS[kind]) == rows.shape[2]
    roots = model.joint_q_start.numpy()[rows_of(model, ids[0, 0])["joint"][0]]
    np.testing.assert_array_equal(
        view.get_root_transforms(model).numpy()[0, 0], model.joint_q.numpy()[roots : roots + 7]
    )
    owners = model.shape_body.numpy()[expected_rows(model, view, "shape")]
    for link, shapes in enumerate(view.link_shapes):
        assert np.all(owners[..., shapes] == expected_rows(model, view, "body")[..., link, None])


@pytest.mark.parametrize("masked", [None, "worlds", "articulations"])
def test_reading_what_was_written_is_the_identity_and_nothing_else_changes(rng, masked):
    model, worlds = scattered_worlds(rng, random_chain(rng, "robot"), 2)
    state, view = model.state(), ArticulationView(model, "robot", homogeneous=False)
    shape = {"worlds": (len(worlds),), "articulations": (len(worlds), 2)}.get(masked)
    mask = None if masked is None else rng.uniform(size=shape) < 0.5
    chosen = np.broadcast_to(True if mask is None else mask.reshape(len(worlds), -1), (len(worlds), 2))
    for name, kind in (("joint_q", "coord"), ("joint_qd", "dof"), ("body_qd", "body")):
        array, rows = getattr(state, name), expected_rows(model, view, kind)
        array.assign(rng.normal(size=array.numpy().shape))
        before = array.numpy().copy()
        values = rng.normal(size=(*rows.shape, *before.shape[1:])).astype(np.float32)
        view.set_attribute(name, state, values, mask)
        read = view.get_attribute(name, state).numpy()
        np.testing.assert_array_equal(read[chosen], values[chosen])
        np.testing.assert_array_equal(read[~chosen], before[rows][~chosen])
        others = np.ones(len(before), dtype=bool)
        others[rows] = False
        np.testing.assert_array_equal(array.numpy()[others], before[others])
        view.set_attribute(name, state, view.get_attribute(name, state))
        np.testing.assert_array_equal(view.get_attribute(name, state).numpy(), read)
    expected = np.zeros(model.articulation_count, dtype=bool)
    expected[view.articulation_ids.numpy()[chosen]] = True
    np.testing.assert_array_equal(view.get_model_articulation_mask(mask).numpy(), expected)


def test_forward_kinematics_moves_the_robots_of_the_view(rng):
    model, worlds = scattered_worlds(rng, random_chain(rng, "robot"), 1)
    state, view = model.state(), ArticulationView(model, "robot", homogeneous=False)
    nl.eval_fk(model, state.joint_q, state.joint_qd, state)
    before = state.body_q.numpy().copy()
    mask = rng.uniform(size=len(worlds)) < 0.5
    mask[0] = True
    view.set_root_transforms(state, [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0], mask)
    view.eval_fk(state, mask)
    np.testing.assert_allclose(
        view.get_link_transforms(state).numpy()[mask, 0, 0, :3], [[1.0, 2.0, 3.0]] * mask.sum(), atol=1e-6
    )
    moved = np.flatnonzero(np.any(state.body_q.numpy() != before, axis=1))
    assert set(moved) <= set(expected_rows(model, view, "body")[mask].ravel())


def test_data_in_which_robots_differ_are_not_available_and_others_are(rng):
    """Pairs of random robots: what they have alike is compared joint by joint and link by link."""
    for _ in range(8):
        scene = nl.ModelBuilder()
        for _ in range(2):
            scene.add_world(random_chain(rng, "robot"))
        model = scene.finalize("cpu")
        state, view = model.state(), ArticulationView(model, "robot", homogeneous=False)
        a, b = rows_of(model, 0), rows_of(model, 1)
        owners = [{int(link): i for i, link in enumerate(rows["body"])} for rows in (a, b)]
        shapes = [
            [list(owners[i][model.shape_body.numpy()[s]] for s in rows["shape"])] for i, rows in enumerate((a, b))
        ]
        alike = {kind: len(a[kind]) == len(b[kind]) for kind in ("joint", "body")}
        for kind, start in (("dof", model.joint_qd_start.numpy()), ("coord", model.joint_q_start.numpy())):
            alike[kind] = np.array_equal(np.diff(start)[a["joint"]], np.diff(start)[b["joint"]])
        alike["shape"] = sorted(shapes[0][0]) == sorted(shapes[1][0])
        for kind, name in ARRAYS.items():
            same = len(a[kind]) == len(b[kind])
            assert getattr(view, COUNTS[kind]) == (len(a[kind]) if same else None)
            source = state if name == "joint_q" else model
            if alike[kind]:
                read = view.get_attribute(name, source).numpy()
                np.testing.assert_array_equal(read[0, 0], getattr(source, name).numpy()[a[kind]])
                assert set(map(bytes, read[1, 0])) == set(map(bytes, getattr(source, name).numpy()[b[kind]]))
            else:
                with pytest.raises(AttributeError, match=rf"{name}.*'robot' .index 0.*'robot' .index 1"):
                    view.get_attribute(name, source)
                with pytest.raises(AttributeError, match=name):
                    view.set_attribute(name, source, 0.0)
        contiguous = {
            "joint": "joints", "dof": "joint_dofs", "coord": "joint_coords", "body": "links", "shape": "shapes",
        }  # fmt: skip
        assert all((getattr(view, f"{name}_contiguous") is None) != alike[kind] for kind, name in contiguous.items())
        assert (view.joint_dof_names is None) != alike["dof"] and (view.joint_coord_counts is None) != alike["coord"]
        assert (view.shape_labels is None) != alike["shape"] and (view.link_names is None) != alike["body"]
        # roots are alike in all of them
        start = model.joint_q_start.numpy()[[a["joint"][0], b["joint"][0]]]
        expected = state.joint_q.numpy()[start[:, None] + np.arange(7)]
        np.testing.assert_array_equal(view.get_root_transforms(state).numpy()[:, 0], expected)


def test_roots_that_differ_are_not_available(rng):
    scene = nl.ModelBuilder()
    for floating in (True, False):
        scene.add_world(chain("robot", ["revolute"], [], floating))
    model = scene.finalize("cpu")
    state, view = model.state(), ArticulationView(model, "robot", homogeneous=False)
    assert view.root_joint_type is view.is_floating_base is view.is_fixed_base is None
    for call in (
        lambda: view.get_root_transforms(state),
        lambda: view.get_root_velocities(state),
        lambda: view.set_root_transforms(state, 0.0),
        lambda: view.set_root_velocities(state, 0.0),
    ):
        with pytest.raises(AttributeError, match="root"):
            call()
    assert view.joint_names == ["joint_0", "joint_1"] and view.joint_dof_names is None


def test_homogeneous_views_refuse_what_differs(rng):
    scene = nl.ModelBuilder()
    a, b = chain("a", ["revolute"], [0]), chain("b", ["ball"], [0])
    for part in (a, b, a):
        scene.add_world(part)
    model = scene.finalize("cpu")
    with pytest.raises(ValueError, match=r"world 0 .*world 1.*homogeneous=False"):
        ArticulationView(model, "a")
    with pytest.raises(ValueError, match=r"'a' .*'b' .*homogeneous=False"):
        ArticulationView(model, "*")
    two = nl.ModelBuilder()
    for count in (1, 2):
        two.begin_world()
        two.replicate(a, count, separate_worlds=False)
        two.end_world()
    for homogeneous in (True, False):
        with pytest.raises(ValueError, match=r"1 .*world 0.*2 .*world 1"):
            ArticulationView(two.finalize("cpu"), "a", homogeneous=homogeneous)
    for partial in (True, False):
        with pytest.warns(DeprecationWarning, match="allow_partial_layouts"):
            if partial:
                assert ArticulationView(model, "a", allow_partial_layouts=True).is_sparse
            else:
                with pytest.raises(ValueError, match="world 1"):
                    ArticulationView(model, "a", allow_partial_layouts=False)
    with pytest.warns(DeprecationWarning), pytest.raises(ValueError, match="homogeneous=False"):
        ArticulationView(model, "a", homogeneous=False, allow_partial_layouts=False)


def test_patterns_pick_the_places_of_the_first_robot(rng):
    """A longer robot has the same joints at these places, and no others in the view; a shorter one lacks some."""
    scene = nl.ModelBuilder()
    for length in (2, 4):
        scene.add_world(chain("robot", ["revolute"] * length, range(length)))
    model = scene.finalize("cpu")
    view = ArticulationView(
        model, "robot", exclude_joints="joint_1", include_links=["link_0", "link_2"], homogeneous=False
    )
    rows = [rows_of(model, a) for a in (0, 1)]
    expected = [[r["joint"][i] for i in (0, 2)] for r in rows]
    np.testing.assert_array_equal(
        view.get_attribute("joint_X_p", model).numpy()[:, 0], model.joint_X_p.numpy()[expected]
    )
    np.testing.assert_array_equal(view.frequency_layouts[nl.Model.AttributeFrequency.JOINT].rows[:, 0], expected)
    links = [[r["body"][i] for i in (0, 2)] for r in rows]
    np.testing.assert_array_equal(view.frequency_layouts[nl.Model.AttributeFrequency.BODY].rows[:, 0], links)
    assert view.joint_names == ["joint_0", "joint_2"] and view.joint_dof_count == 7
    backwards = ArticulationView(model, [1], exclude_joints="joint_1", homogeneous=False)
    assert backwards.joint_names == ["joint_0", "joint_2", "joint_3", "joint_4"]


def test_shapes_of_a_link_are_at_the_same_places_in_whatever_order_worlds_have_them(rng):
    scene, others = nl.ModelBuilder(), nl.ModelBuilder()
    others.add_body(label="other", mass=1.0, inertia=np.eye(3))
    owners = rng.integers(0, 3, 6)
    for _ in range(4):
        b = chain("robot", ["revolute", "ball"], [])
        b.add_builder(others)
        order = np.append(rng.permutation(owners), [3, 3])
        for link in rng.permutation(order):
            b.add_shape_sphere(int(link), radius=rng.uniform(0.1, 0.2))
        scene.add_world(b)
    model = scene.finalize("cpu")
    view = ArticulationView(model, "robot")
    rows = expected_rows(model, view, "shape")
    read = view.frequency_layouts[nl.Model.AttributeFrequency.SHAPE].rows
    np.testing.assert_array_equal(read[0], rows[0])
    np.testing.assert_array_equal(np.sort(read, axis=2), rows)
    links = model.shape_body.numpy()[read] - expected_rows(model, view, "body")[..., :1]
    np.testing.assert_array_equal(links, np.broadcast_to(links[0], links.shape))
    assert [np.flatnonzero(links[0, 0] == i).tolist() for i in range(3)] == view.link_shapes
    for link in range(3):
        assert np.all(np.diff(read[..., view.link_shapes[link]], axis=2) > 0)


def test_joints_that_close_loops_are_shown_on_request(rng):
    scene = nl.ModelBuilder()
    for _ in range(3):
        b = chain("robot", ["revolute", "revolute"], [])
        b.add_builder(chain("other", ["revolute"] * int(rng.integers(1, 3)), []))
        b.add_joint_ball(1, 0, label="loop_robot")
        b.add_joint_revolute(4, 3, label="loop_other")
        scene.add_world(b)
    model = scene.finalize("cpu")
    for label in ("robot", "other"):
        plain = ArticulationView(model, label, homogeneous=False)
        assert plain.joint_names is None or "loop_" not in "".join(plain.joint_names)
        view = ArticulationView(model, label, homogeneous=False, include_loop_closing_joints=True)
        assert (view.joint_count is None) == (plain.joint_count is None)
        if view.joint_count is None:
            continue
        assert view.joint_names[-1] == f"loop_{label}" and view.link_names == plain.link_names
        for kind in ("joint", "dof", "coord"):
            ids = view.articulation_ids.numpy()[:, 0]
            rows = np.array([rows_of(model, a, loops=True)[kind] for a in ids])[:, None]
            array = getattr(model, ARRAYS[kind]).numpy()
            np.testing.assert_array_equal(view.get_attribute(ARRAYS[kind], model).numpy(), array[rows])


def test_layouts_tell_the_rows(rng):
    """From offset, strides and values where they are regular, and one by one where not."""
    regular = 0
    for sparse in (False, True):
        robot = random_chain(rng, "robot")
        if sparse:
            model, _ = scattered_worlds(rng, robot, 2)
        else:
            scene, pair = nl.ModelBuilder(), nl.ModelBuilder()
            pair.replicate(robot, 2, separate_worlds=False)
            scene.replicate(pair, 3)
            model = scene.finalize("cpu")
        for options in ({}, {"exclude_joints": "joint_1", "exclude_links": "link_0"}):
            view = ArticulationView(model, "robot", homogeneous=not sparse, **options)
            for layout in view.frequency_layouts.values():
                rows = layout.get_absolute_indices(view.world_count, view.count_per_world)
                assert layout.selected_value_count == rows.shape[2]
                assert layout.value_count == (np.ptp(rows, axis=2).max() + 1 if rows.shape[2] else 0)
                with pytest.raises(ValueError, match="world_count"):
                    layout.get_absolute_indices(view.world_count + 1)
                if layout.uses_explicit_model_indices:
                    np.testing.assert_array_equal(layout.get_model_indices().numpy(), rows)
                    assert layout.offset is layout.stride_between_worlds is layout.stride_within_worlds is None
                    assert not layout.is_contiguous and view.uses_explicit_model_indices
                    continue
                regular += 1
                with pytest.raises(RuntimeError, match="regular"):
                    layout.get_model_indices()
                assert (layout.slice is None) != (layout.indices is None) and layout.is_contiguous == (
                    layout.indices is None
                )
                values = np.arange(layout.value_count)[layout.slice] if layout.is_contiguous else layout.indices.numpy()
                w, a = np.indices(rows.shape[:2])[..., None]
                again = layout.offset + layout.stride_between_worlds * w + layout.stride_within_worlds * a + values
                np.testing.assert_array_equal(again, rows)
            packed = {"dof": view.joint_dofs_contiguous, "body": view.links_contiguous, "shape": view.shapes_contiguous}
            frequencies = nl.Model.AttributeFrequency
            for kind, frequency in (
                ("dof", frequencies.JOINT_DOF),
                ("body", frequencies.BODY),
                ("shape", frequencies.SHAPE),
            ):
                rows = view.frequency_layouts[frequency].rows
                dense = range(rows.min(initial=10**6), rows.max(initial=-1) + 1)
                assert packed[kind] is (rows.ravel().tolist() == list(dense))
    assert regular


def test_pairs_of_integers_have_an_axis_of_their_own(rng):
    model, _ = scattered_worlds(rng, random_chain(rng, "robot"), 1)
    view = ArticulationView(model, "robot", homogeneous=False)
    rows = expected_rows(model, view, "joint")
    read = view.get_attribute("joint_dof_dim", model)
    assert read.dtype is wp.int32 and read.shape == (*rows.shape, 2)
    np.testing.assert_array_equal(read.numpy(), model.joint_dof_dim.numpy()[rows])
    before = model.joint_dof_dim.numpy().copy()
    values = rng.integers(0, 9, read.shape)
    view.set_attribute("joint_dof_dim", model, values)
    before[rows] = values
    np.testing.assert_array_equal(model.joint_dof_dim.numpy(), before)
