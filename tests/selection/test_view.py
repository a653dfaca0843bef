"""Views of articulations: their entries agree with a loop over labels in the flat arrays."""

import re

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like.selection import ArticulationView, match_labels

WORLDS = 3


def leg_robot(rng, label: str, extra: bool = False) -> nl.ModelBuilder:
    """A floating trunk, a ball shoulder, a hinge and a slide; every number random."""
    b = nl.ModelBuilder()
    mass = {"mass": 1.0, "inertia": np.eye(3)}
    trunk, arm, hand, tip = (b.add_link(label=f"{label}/{name}", **mass) for name in ("trunk", "arm", "hand", "tip"))
    joints = [
        b.add_joint_free(trunk, label=f"{label}/root"),
        b.add_joint_ball(trunk, arm, label=f"{label}/shoulder"),
        b.add_joint_revolute(arm, hand, axis="y", label=f"{label}/wrist"),
        b.add_joint_prismatic(hand, tip, axis="x", label=f"{label}/slide"),
    ]
    for link, count in ((trunk, 1), (hand, 2)):
        for i in range(count):
            b.add_shape_sphere(link, radius=rng.uniform(0.1, 0.2), label=f"{label}/ball_{link}_{i}")
    if extra:
        b.add_shape_sphere(tip, radius=0.1)
    b.add_articulation(joints, label=label)
    return b


def worlds_of_one(robot: nl.ModelBuilder) -> nl.Model:
    scene = nl.ModelBuilder()
    scene.replicate(robot, WORLDS)
    return scene.finalize("cpu")


@pytest.fixture
def scene(rng):
    """Three worlds of a robot, a pendulum and the robot once more; other things shared by all."""
    pole = nl.ModelBuilder()
    rod = pole.add_link(mass=1.0, inertia=np.eye(3), label="rod")
    pole.add_articulation(
        [pole.add_joint_revolute(-1, rod, axis="y", parent_xform=(1, 2, 3, 0, 0, 0, 1))], label="pole"
    )
    b = nl.ModelBuilder()
    b.add_ground_plane()
    for _ in range(WORLDS):
        b.begin_world()
        b.add_builder(leg_robot(rng, "robot_a"))
        b.add_builder(pole)
        b.add_builder(leg_robot(rng, "robot_b"))
        b.end_world()
    return b.finalize("cpu")


def randomise(array, rng) -> np.ndarray:
    values = rng.normal(size=array.numpy().shape)
    array.assign(values)
    return array.numpy().copy()


def expected_rows(model, label: str, kind: str) -> np.ndarray:
    """Rows of every robot in every world, found by walking the model from labels."""
    result = []
    for w in range(WORLDS):
        a = next(
            i
            for i, name in enumerate(model.articulation_label)
            if name == label and model.articulation_world.numpy()[i] == w
        )
        joints = range(model.articulation_start.numpy()[a], model.articulation_end.numpy()[a])
        bodies = [int(model.joint_child.numpy()[j]) for j in joints]
        starts = {"coord": model.joint_q_start.numpy(), "dof": model.joint_qd_start.numpy()}
        if kind in starts:
            result.append([i for j in joints for i in range(starts[kind][j], starts[kind][j + 1])])
        elif kind == "shape":
            result.append([s for b in bodies for s, owner in enumerate(model.shape_body.numpy()) if owner == b])
        else:
            result.append({"joint": list(joints), "body": bodies, "articulation": [a]}[kind])
    return np.array(result, dtype=int)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("joint_q", "coord"),
        ("joint_qd", "dof"),
        ("joint_armature", "dof"),
        ("joint_axis", "dof"),
        ("joint_X_p", "joint"),
        ("joint_type", "joint"),
        ("joint_enabled", "joint"),
        ("body_mass", "body"),
        ("body_inertia", "body"),
        ("body_q", "body"),
        ("body_qd", "body"),
        ("shape_scale", "shape"),
        ("articulation_world", "articulation"),
        ("joint_q_start", "joint"),
    ],
)
def test_attributes_are_the_rows_of_the_flat_arrays(scene, rng, name, kind):
    if name not in ("joint_type", "joint_enabled", "articulation_world", "joint_q_start"):
        randomise(getattr(scene, name), rng)
    flat = getattr(scene, name).numpy()
    for label in ("robot_a", "pole"):
        found = ArticulationView(scene, label).get_attribute(name, scene)
        assert found.dtype is getattr(scene, name).dtype
        np.testing.assert_array_equal(found.numpy(), flat[expected_rows(scene, label, kind)][:, None])
    both = ArticulationView(scene, "robot_*").get_attribute(name, scene).numpy()
    assert both.shape[:2] == (WORLDS, 2)
    for i, label in enumerate(("robot_a", "robot_b")):
        np.testing.assert_array_equal(both[:, i], flat[expected_rows(scene, label, kind)])


def test_a_view_without_gaps_is_the_memory_of_the_state(scene, rng):
    state, view = scene.state(), ArticulationView(scene, "robot_b")
    q = view.get_dof_positions(state)
    values = rng.normal(size=q.shape)
    q.assign(values)
    np.testing.assert_array_equal(
        state.joint_q.numpy()[expected_rows(scene, "robot_b", "coord")], values[:, 0].astype(np.float32)
    )
    others = expected_rows(scene, "robot_a", "coord")
    np.testing.assert_array_equal(state.joint_q.numpy()[others], scene.joint_q.numpy()[others])


def test_velocities_and_forces_are_those_of_the_dofs(scene, rng):
    state, control = scene.state(), scene.control()
    view = ArticulationView(scene, "robot_b", exclude_joint_types=[nl.JointType.FREE])
    rows = expected_rows(scene, "robot_b", "dof")[:, 6:]
    for array, get, put, owner in (
        (state.joint_qd, view.get_dof_velocities, view.set_dof_velocities, state),
        (control.joint_f, view.get_dof_forces, view.set_dof_forces, control),
    ):
        values = rng.normal(size=rows.shape).astype(np.float32)
        put(owner, values[:, None])
        np.testing.assert_array_equal(get(owner).numpy()[:, 0], values)
        np.testing.assert_array_equal(array.numpy()[rows], values)
        assert np.count_nonzero(array.numpy()) == values.size


@pytest.mark.parametrize("kinds", [{}, {"exclude_joints": "shoulder"}], ids=["regular", "with gaps"])
@pytest.mark.parametrize("masked", [None, "worlds", "articulations"])
def test_setters_write_what_is_chosen_and_nothing_else(scene, rng, kinds, masked):
    state, view = scene.state(), ArticulationView(scene, "robot_*", **kinds)
    before = randomise(state.joint_q, rng)
    shape = {"worlds": (WORLDS,), "articulations": (WORLDS, 2)}.get(masked)
    mask = None if masked is None else rng.uniform(size=shape) < 0.5
    values = rng.normal(size=view.get_dof_positions(state).shape).astype(np.float32)
    view.set_dof_positions(state, wp.array(values, dtype=wp.float32, device="cpu"), mask)

    chosen = (
        np.ones((WORLDS, 2), dtype=bool) if mask is None else np.broadcast_to(mask.reshape(WORLDS, -1), (WORLDS, 2))
    )
    places = [i for i in range(13) if not kinds or not 7 <= i < 11]
    after = before.copy()
    for k, label in enumerate(("robot_a", "robot_b")):
        rows = expected_rows(scene, label, "coord")[:, [p for p in places if p < 13]]
        for w in np.flatnonzero(chosen[:, k]):
            after[rows[w]] = values[w, k]
    np.testing.assert_array_equal(state.joint_q.numpy(), after)
    expected = np.where(
        chosen[..., None],
        values,
        before[np.stack([expected_rows(scene, label, "coord")[:, places] for label in ("robot_a", "robot_b")], axis=1)],
    )
    np.testing.assert_array_equal(view.get_dof_positions(state).numpy(), expected)


def test_vectors_are_written_under_a_mask(scene, rng):
    view = ArticulationView(scene, "robot_*", include_links=["arm", "tip"])
    before = randomise(scene.body_com, rng)
    mask = np.array([False, True, False])
    view.set_attribute("body_com", scene, [[1, 2, 3], [4, 5, 6]], mask)
    after = scene.body_com.numpy()
    changed = np.flatnonzero(np.any(after != before, axis=1))
    rows = np.concatenate([expected_rows(scene, label, "body")[1, [1, 3]] for label in ("robot_a", "robot_b")])
    np.testing.assert_array_equal(changed, np.sort(rows))
    np.testing.assert_array_equal(after[rows[0]], [1, 2, 3])
    np.testing.assert_array_equal(after[rows[3]], [4, 5, 6])


def test_roots_and_forward_kinematics(scene, rng):
    state, view = scene.state(), ArticulationView(scene, "robot_*")
    assert view.is_floating_base and not view.is_fixed_base and view.root_joint_type is nl.JointType.FREE
    poses = rng.normal(size=(WORLDS, 2, 7))
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    twists = rng.normal(size=(WORLDS, 2, 6))
    mask = np.array([True, False, True])
    before = state.body_q.numpy().copy()
    view.set_root_transforms(state, poses, mask)
    view.set_root_velocities(state, twists, mask)
    view.eval_fk(state, mask)
    # a free joint with anchors at the origin: its coordinates are the pose of the link, to the rounding of one product
    np.testing.assert_allclose(view.get_link_transforms(state).numpy()[mask, :, 0], poses[mask], atol=1e-6)
    np.testing.assert_allclose(view.get_link_velocities(state).numpy()[mask, :, 0], twists[mask], atol=1e-5)
    np.testing.assert_allclose(view.get_root_transforms(state).numpy()[mask], poses[mask], atol=1e-7)
    np.testing.assert_allclose(view.get_root_velocities(state).numpy()[mask], twists[mask], atol=1e-6)
    moved = np.flatnonzero(np.any(state.body_q.numpy() != before, axis=1))
    assert np.all(
        np.isin(
            moved, np.concatenate([expected_rows(scene, x, "body")[[0, 2]].ravel() for x in ("robot_a", "robot_b")])
        )
    )

    pole = ArticulationView(scene, "pole")
    assert not pole.is_floating_base and pole.get_root_velocities(state) is None
    np.testing.assert_array_equal(pole.get_root_transforms(scene).numpy()[:, 0, :3], np.tile([1, 2, 3], (WORLDS, 1)))
    pole.set_root_transforms(scene, [3, 2, 1, 0, 0, 0, 1])
    np.testing.assert_array_equal(pole.get_root_transforms(scene).numpy()[:, 0, :3], np.tile([3, 2, 1], (WORLDS, 1)))


def test_names_follow_the_filters(scene):
    view = ArticulationView(
        scene, re.compile("robot_[ab]"), exclude_joint_types=[nl.JointType.FREE], include_links=re.compile("h.*|tip")
    )
    assert view.joint_names == ["shoulder", "wrist", "slide"]
    assert view.joint_labels == ["robot_a/shoulder", "robot_a/wrist", "robot_a/slide"]
    assert view.joint_dof_names == ["shoulder:0", "shoulder:1", "shoulder:2", "wrist", "slide"]
    assert view.joint_coord_names == ["shoulder:0", "shoulder:1", "shoulder:2", "shoulder:3", "wrist", "slide"]
    assert (view.joint_count, view.joint_dof_count, view.joint_coord_count) == (3, 5, 6)
    assert view.joint_dof_counts == [3, 1, 1] and view.joint_coord_counts == [4, 1, 1]
    assert view.link_names == ["hand", "tip"] and view.link_shapes == [[0, 1], []] and view.shape_count == 2
    assert (view.world_count, view.count_per_world, view.count) == (WORLDS, 2, 2 * WORLDS)
    np.testing.assert_array_equal(view.articulation_mask.numpy(), [True, False, True] * WORLDS)
    assert ArticulationView(scene, [0, 3, 6]).count == WORLDS
    only = ArticulationView(scene, "robot_a", include_joint_types=[nl.JointType.REVOLUTE, nl.JointType.PRISMATIC])
    assert only.joint_names == ["wrist", "slide"]
    assert ArticulationView(scene, "robot_a", include_joints=[1, "sl*"]).joint_names == ["shoulder", "slide"]


def test_functions_of_the_model_are_evaluated_for_the_view(scene, rng):
    scene.joint_armature.assign(rng.uniform(0.1, 1.0, scene.joint_dof_count))
    scene.notify_changed()
    state = scene.state()
    view = ArticulationView(scene, "robot_b")
    M = nl.eval_mass_matrix(scene, state).numpy().copy()
    mine = view.eval_mass_matrix(state).numpy()
    chosen = view.articulation_mask.numpy()
    np.testing.assert_array_equal(mine[chosen], M[chosen])
    assert not mine[~chosen].any() and M[~chosen].any()
    rigid = nl.eval_mass_matrix(scene, state, include_armature=False).numpy()
    again = view.eval_mass_matrix(state, J=None, body_I_s=None, joint_S_s=None, include_armature=False).numpy()
    np.testing.assert_array_equal(again[chosen], rigid[chosen])
    assert np.abs(M[chosen] - rigid[chosen]).max() > 0.09
    J = nl.eval_jacobian(scene, state).numpy().copy()
    np.testing.assert_array_equal(view.eval_jacobian(state, mask=np.array([1, 0, 0], bool)).numpy()[2], J[2])
    half = view.get_model_articulation_mask(wp.array([True, False, True], dtype=wp.bool, device="cpu")).numpy()
    np.testing.assert_array_equal(half, [0, 0, 1, 0, 0, 0, 0, 0, 1])


def test_gradients_of_views_are_those_of_the_state(scene):
    state = scene.state(requires_grad=True)
    view = ArticulationView(scene, "robot_b").get_dof_positions(state)
    state.joint_q.grad.fill_(2.0)
    np.testing.assert_array_equal(view.grad.numpy(), np.full(view.shape, 2.0))


def test_scenes_without_worlds_and_in_double_precision(rng):
    b = nl.ModelBuilder()
    b.add_builder(leg_robot(rng, "one"))
    b.add_builder(leg_robot(rng, "two"))
    model = b.finalize("cpu", dtype=wp.float64)
    view = ArticulationView(model, ["one", "two"])
    assert (view.world_count, view.count_per_world) == (1, 2)
    state, values = model.state(), rng.normal(size=(1, 2, 13))
    view.set_dof_positions(state, values, np.array([[False, True]]))
    np.testing.assert_array_equal(state.joint_q.numpy()[13:], values[0, 1])
    np.testing.assert_array_equal(state.joint_q.numpy()[:13], model.joint_q.numpy()[:13])


def test_labels_are_matched_by_patterns_as_a_view_matches_them(rng):
    parts = ["arm", "leg", "left", "right"]
    labels = ["/".join(rng.choice(parts, 2)) for _ in range(20)]
    first = labels[0].split("/")[0]
    places = [i for i, label in enumerate(labels) if label.startswith(f"{first}/")]
    assert match_labels(labels, f"{first}/*") == match_labels(labels, re.compile(f"{first}/.*")) == places
    assert match_labels(labels, [f"{first}/*", labels[0], "none"]) == places
    assert match_labels(labels, re.compile(first)) == []  # of whole labels
    assert match_labels(labels, [7, 3]) == [7, 3]
    for wrong in ([1, "a"], [re.compile("a")], 1.5, [True]):
        with pytest.raises(TypeError, match="pattern"):
            match_labels(labels, wrong)


def test_custom_attributes_and_pairs_are_viewed_like_others(rng):
    """Those of bodies, joints, dofs, coordinates, shapes and articulations, on models, states and controls."""
    F, A = nl.Model.AttributeFrequency, nl.Model.AttributeAssignment
    robot = leg_robot(rng, "robot")
    for i, (frequency, assignment) in enumerate(
        ((F.BODY, A.STATE), (F.JOINT_DOF, A.CONTROL), (F.SHAPE, A.MODEL), (F.ARTICULATION, A.MODEL))
    ):
        robot.add_custom_attribute(
            robot.CustomAttribute(f"mine_{i}", wp.vec3, frequency, assignment, "lab" if i % 2 else None)
        )
    model = worlds_of_one(robot)
    view, state, control = ArticulationView(model, "robot"), model.state(), model.control()
    for name, source, count in (
        ("mine_0", state, 4),
        ("lab.mine_1", control, 11),
        ("mine_2", model, 3),
        ("lab.mine_3", model, 1),
    ):
        values = rng.normal(size=(WORLDS, 1, count, 3)).astype(np.float32)
        view.set_attribute(name, source, values)
        np.testing.assert_array_equal(view.get_attribute(name, source).numpy(), values)
        owner = source.lab if "." in name else source
        np.testing.assert_array_equal(getattr(owner, name.rpartition(".")[2]).numpy(), values.reshape(-1, 3))
    np.testing.assert_array_equal(
        view.get_attribute("joint_dof_dim", model).numpy().reshape(-1, 2), model.joint_dof_dim.numpy()
    )
    with pytest.raises(KeyError, match="mine_0"):
        view.get_attribute("mine_0", model)


def test_vectors_are_taken_as_arrays_of_their_numbers(rng):
    model = worlds_of_one(leg_robot(rng, "robot"))
    view, state = ArticulationView(model, "robot"), model.state()
    values = rng.normal(size=(WORLDS, 1, 4, 6)).astype(np.float32)
    view.set_attribute("body_qd", state, wp.array(values, dtype=wp.float32, device="cpu"))
    np.testing.assert_array_equal(state.body_qd.numpy(), values.reshape(-1, 6))


def test_a_base_without_dofs_is_fixed(rng):
    for kind, fixed in (("fixed", True), ("d6", True), ("revolute", False)):
        builder = nl.ModelBuilder()
        links = [builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(2)]
        root = getattr(builder, f"add_joint_{kind}")(-1, links[0])
        builder.add_articulation([root, builder.add_joint_fixed(*links)], label="robot")
        model = builder.finalize("cpu")
        view, dofs = ArticulationView(model, "robot"), 0 if fixed else 1
        assert (view.is_fixed_base, view.is_floating_base) == (fixed, False)
        assert view.get_dof_positions(model.state()).shape == (1, 1, dofs)


def test_newtons_arguments_of_views(rng, capsys):
    model = worlds_of_one(leg_robot(rng, "robot"))
    view = ArticulationView(model, "robot", homogeneous=True, include_loop_closing_joints=False, verbose=True)
    assert all(part in capsys.readouterr().out for part in ("robot",))
    assert view.body_labels == view.link_labels and view.body_names == view.link_names and view.device == model.device
    assert view.body_shapes == view.link_shapes
    ArticulationView(model, "robot", verbose=None)
    assert not capsys.readouterr().out
    both = ArticulationView(
        model,
        "robot",
        include_joints="wrist",
        include_joint_types=[nl.JointType.BALL, nl.JointType.FREE],
        exclude_joints="root",
    )
    assert both.joint_names == ["shoulder", "wrist"]
    for name in ("include_loop_closing_joints", "homogeneous", "verbose"):
        with pytest.raises(TypeError, match=name):
            ArticulationView(model, "robot", **{name: "no"})
    for indices in ([2, 0], [0, 0]):
        with pytest.raises(ValueError, match="include_joints"):
            ArticulationView(model, "robot", include_joints=indices)


def test_bad_requests_are_named(scene, rng):
    state, view = scene.state(), ArticulationView(scene, "robot_a")
    with pytest.raises(KeyError, match=r"'dog' .*'robot_a'.*'pole'.*'robot_b'"):
        ArticulationView(scene, "dog")
    with pytest.raises(KeyError, match=r"include_joints 'knee' .*'root'"):
        ArticulationView(scene, "robot_a", include_joints="knee")
    with pytest.raises(IndexError, match="articulation 9"):
        ArticulationView(scene, [9])
    with pytest.raises(TypeError, match=r"pattern.*text"):
        ArticulationView(scene, 1.5)
    with pytest.raises(ValueError, match=r"'robot_a' .index 0..*'pole'.*1"):
        ArticulationView(scene, "*")
    with pytest.raises(ValueError, match=r"\b1 .*world 0.*\b0 .*world 1\b"):
        ArticulationView(scene, [0])
    with pytest.raises(KeyError, match=r"State.*'body_mass'.*body_f.*body_q"):
        view.get_attribute("body_mass", state)
    with pytest.raises(ValueError, match=r"joint_q .*\(2,\).*\(3, 1, 13\)"):
        view.set_dof_positions(state, [1.0, 2.0])
    with pytest.raises(ValueError, match="finite"):
        view.set_dof_positions(state, np.nan)
    with pytest.raises(TypeError, match="float64"):
        view.set_dof_positions(state, wp.zeros((3, 1, 13), dtype=wp.float64, device="cpu"))
    with pytest.raises(ValueError, match=r"mask .*\(2,\)"):
        view.set_dof_positions(state, 0.0, np.array([True, False]))
    with pytest.raises(TypeError, match=r"mask.*bools"):
        view.set_dof_positions(state, 0.0, np.array([1, 0, 1]))
    with pytest.raises(ValueError, match="floating base"):
        ArticulationView(scene, "pole").set_root_velocities(state, 0.0)
    with pytest.raises(ValueError, match=r"floating base.*view\.model"):
        ArticulationView(scene, "pole").get_root_transforms(state)
    other = leg_robot(rng, "x").finalize("cpu")
    with pytest.raises(ValueError, match=r"joint_q .*\(13,\) on cpu.*view"):
        view.get_dof_positions(other.state())
    different = nl.ModelBuilder()
    different.add_world(leg_robot(rng, "robot"))
    different.add_world(leg_robot(rng, "robot", extra=True))
    with pytest.raises(ValueError, match=r"'robot' \(index 0\).*shapes"):
        ArticulationView(different.finalize("cpu"), "robot")
