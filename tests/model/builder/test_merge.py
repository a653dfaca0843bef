"""Articulations that become one."""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, dynamics, eval_fk
from newton_like.model.actuators import Actuator
from newton_like.model.columns import COLUMNS
from newton_like.model.custom import AttributeFrequency, CustomAttribute
from newton_like.model.tendons import Tendon
from newton_like.solvers import SolverFeatherstone
from tests.support.random_trees import random_state, random_tree


def scene(rng) -> ModelBuilder:
    """Three trees, with loop joints between their joints, entries of custom attributes, a mimic joint, a tendon and an actuator."""
    builder = ModelBuilder()
    for name, frequency in (
        ("of_joint", "JOINT"),
        ("of_dof", "JOINT_DOF"),
        ("of_coord", "JOINT_COORD"),
        ("of_row", "JOINT_CONSTRAINT"),
    ):
        builder.add_custom_attribute(CustomAttribute(name, float, AttributeFrequency[frequency]))
    builder.add_custom_attribute(CustomAttribute("of_tree", float, AttributeFrequency.ARTICULATION))
    builder.add_custom_attribute(
        CustomAttribute("partner", int, AttributeFrequency.BODY, references="joint", default=-1)
    )
    for name in "abc":
        random_tree(rng, joints=5, builder=builder, floating=name == "b", label=name)
        link, first = builder.joint_child[-1], builder.joint_child[-5]
        base = builder.add_link(mass=1.0, inertia=np.eye(3), label=f"{name} base")
        hand = builder.add_link(mass=1.0, inertia=np.eye(3), label=f"{name} hand")
        slides = [
            builder.add_joint_prismatic(-1, base, axis=(0, 0, 1), label=f"{name} rail"),
            builder.add_joint_prismatic(base, hand, axis=(1, 0, 0), label=f"{name} slide"),
        ]
        builder.extend_articulation(name, slides)
        builder.set_joint_mimic(slides[1], slides[0], coeffs=(0.1, 2.0))
        builder.add_tendon(Tendon(label=name, joints=((slides[0], 0, 1.0), (slides[1], 0, -0.5)), stiffness=3.0))
        builder.add_actuator(Actuator(label=name, transmission="joint", target=slides[0]))
        if name != "c":
            builder.add_joint_ball(first, link, label=f"{name} loop")
    for key, attribute in builder.custom_attributes.items():
        count = {
            "of_joint": builder.joint_count,
            "of_dof": builder.joint_dof_count,
            "of_coord": builder.joint_coord_count,
        }
        count |= {"of_row": builder.joint_constraint_count, "of_tree": 3, "partner": builder.body_count}
        values = rng.integers(builder.joint_count, size=count[key]) if key == "partner" else rng.normal(size=count[key])
        attribute.values = {i: value for i, value in enumerate(values.tolist()) if rng.random() < 0.7}
    builder.joint_qd = rng.normal(size=builder.joint_dof_count).tolist()
    return builder


def told(builder: ModelBuilder) -> dict:
    """Everything about each joint by its label."""
    found = {}
    labels = builder.joint_label
    blocked = np.cumsum([0, *(6 - linear - angular for linear, angular in builder.joint_dof_dim)]).tolist()
    starts = {
        "joint": range(builder.joint_count + 1),
        "dof": [*builder.joint_qd_start, builder.joint_dof_count],
        "coord": [*builder.joint_q_start, builder.joint_coord_count],
        "joint_constraint": blocked,
    }
    custom = {"of_joint": "joint", "of_dof": "dof", "of_coord": "coord", "of_row": "joint_constraint"}
    for j, label in enumerate(labels):
        own = {}
        for column in COLUMNS:
            if column.kind in starts and column.name not in (
                "joint_articulation",
                "joint_q_start",
                "joint_qd_start",
                "joint_mimic_joint",
            ):
                values = getattr(builder, column.name)
                own[column.name] = [values[i] for i in range(starts[column.kind][j], starts[column.kind][j + 1])]
        for name, kind in custom.items():
            values = builder.custom_attributes[name].values
            own[name] = [values.get(i) for i in range(starts[kind][j], starts[kind][j + 1])]
        leader = builder.joint_mimic_joint[j]
        own["leader"] = None if leader < 0 else labels[leader]
        found[label] = own
    found["tendons"] = [[(labels[j], *rest) for j, *rest in tendon.joints] for tendon in builder.tendons]
    found["actuators"] = [labels[actuator.target] for actuator in builder.actuators]
    found["partners"] = {i: labels[j] for i, j in builder.custom_attributes["partner"].values.items()}
    return found


def test_everything_keeps_its_joint(rng):
    builder = scene(rng)
    before, of_trees = told(builder), dict(builder.custom_attributes["of_tree"].values)
    report = builder.merge_articulations(["a", "c"], label="both")
    assert told(builder) == before
    assert builder.articulation_label == ["both", "b"]
    assert report["articulation_remap"] == {0: 0, 1: 1, 2: 0}
    owners = {label: builder.joint_articulation[j] for j, label in enumerate(builder.joint_label)}
    assert {label[0] for label, a in owners.items() if a == 0} == {"a", "c"}
    assert [label for label, a in owners.items() if a < 0] == ["a loop", "b loop"]
    assert builder.custom_attributes["of_tree"].values == {a: x for a, x in of_trees.items() if a < 2}
    assert sorted(report["joint_remap"].values()) == list(range(builder.joint_count))
    builder.finalize("cpu")


@pytest.mark.slow
def test_the_model_moves_as_before(rng):
    """Poses, velocities and energy, by the indices of bodies, in a fall without loop joints."""
    builder = scene(rng)
    builder.joint_enabled = [a >= 0 for a in builder.joint_articulation]
    q, qd = random_state(builder.finalize("cpu"), rng)
    for j, leader in enumerate(builder.joint_mimic_joint):
        if leader >= 0:
            c0, c1 = builder.joint_mimic_coeffs[j]
            q[builder.joint_q_start[j]] = c0 + c1 * q[builder.joint_q_start[leader]]
            qd[builder.joint_qd_start[j]] = c1 * qd[builder.joint_qd_start[leader]]
    builder.joint_q, builder.joint_qd = q.tolist(), qd.tolist()
    results = []
    for merged in (False, True):
        if merged:
            builder.merge_articulations([0, 2])
        model = builder.finalize("cpu", dtype=wp.float64)
        state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
        eval_fk(model, state.joint_q, state.joint_qd, state)
        for _ in range(20):
            solver.step(state, state, dt=1e-3)
        energy = float(dynamics.kinetic_energy(model, state).numpy().sum())
        results.append([state.body_q.numpy(), state.body_qd.numpy(), energy])
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-9)


def two_arms(rng_key: int, merged: bool) -> ModelBuilder:
    """Two double pendulums in their own articulations, or in one, whose ends a ball joint connects."""
    builder, rng = ModelBuilder(), np.random.default_rng(rng_key)
    arms, joints = [], []
    for x in (0.0, 0.8):
        links = [builder.add_link(mass=m, com=(0, 0, -0.2), inertia=0.01 * np.eye(3)) for m in rng.uniform(0.5, 1.5, 2)]
        arms.append(links)
        joints.append(
            [
                builder.add_joint_revolute(-1, links[0], axis=(0, 1, 0), parent_xform=(x, 0, 0, 0, 0, 0, 1)),
                builder.add_joint_revolute(links[0], links[1], axis=(0, 1, 0), parent_xform=(0, 0, -0.4, 0, 0, 0, 1)),
            ]
        )
    for own in [[*joints[0], *joints[1]]] if merged else joints:
        builder.add_articulation(own)
    ends = {f"{end}_xform": (0, 0, -0.4, 0, 0, 0, 1) for end in ("parent", "child")}
    builder.add_joint_ball(arms[0][1], arms[1][1], label="grip", **ends)
    builder.joint_q[:4] = [-0.1, -0.9, 0.1, 0.9]
    return builder


@pytest.mark.slow
def test_a_loop_joint_between_two_articulations_is_solved_after_the_merge(rng):
    """With the same bits as in one articulation from the start."""
    key, found = int(rng.integers(2**31)), []
    for way in ("one", "all connected", "named"):
        world = two_arms(key, way == "one")
        scene = ModelBuilder()
        scene.replicate(world, 3)
        if way == "all connected":
            assert scene.merge_articulations()["articulation_remap"] == {0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 5: 2}
        elif way == "named":
            world.merge_articulations(["articulation_0", "articulation_1"])
            scene = ModelBuilder()
            scene.replicate(world, 3)
        model = scene.finalize("cpu")
        state, solver = model.state(), SolverFeatherstone(model, evaluator="general")
        dynamics.assemble(model, state)
        for _ in range(50):
            solver.step(state, state, dt=1 / 240)
        found.append(state.joint_q.numpy())
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_tendons_and_mimic_joints_connect_articulations(rng):
    builder = ModelBuilder()
    rails = []
    for i in range(6):
        link = builder.add_link(mass=1.0, inertia=0.1 * np.eye(3))
        rails.append(builder.add_joint_prismatic(-1, link, axis=(0, 0, 1)))
        builder.add_articulation(rails[-1:], label=f"rail {i}")
    builder.set_joint_mimic(rails[3], rails[0])
    builder.add_tendon(Tendon(label="rope", joints=((rails[1], 0, 1.0), (rails[5], 0, 1.0))))
    with pytest.raises(ValueError, match="merge_articulations"):
        builder.finalize("cpu")
    builder.merge_articulations()
    assert builder.articulation_label == ["rail 0", "rail 1", "rail 2", "rail 4"]
    assert [builder.joint_child[j] for j in range(6)] == [0, 3, 1, 5, 2, 4]
    SolverFeatherstone(builder.finalize("cpu"), evaluator="general")
    assert builder.merge_articulations()["articulation_remap"] == {a: a for a in range(4)}


def test_errors_name_the_articulations():
    builder = two_arms(0, False)
    with pytest.raises(ValueError, match="at least two"):
        builder.merge_articulations([0])
    with pytest.raises(KeyError, match="articulation_7"):
        builder.merge_articulations(["articulation_0", "articulation_7"])
    with pytest.raises(ValueError, match="label"):
        builder.merge_articulations(label="both")
    scene = ModelBuilder()
    scene.replicate(builder, 2)
    with pytest.raises(ValueError, match=r"index 1.*index 2.*different worlds"):
        scene.merge_articulations([1, 2])
