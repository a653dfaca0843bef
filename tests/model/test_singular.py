"""Models with a singular mass matrix: kinematics works; functions that need the inverse raise an error with the joint and the cure."""

import itertools
import re

import numpy as np
import pytest
import warp as wp

from newton_like import dynamics
from newton_like.kinematics import eval_fk
from newton_like.mechanism import MechanismState
from newton_like.model import ModelBuilder
from newton_like.model.singular import check_invertible
from newton_like.solvers import SolverFeatherstone
from newton_like.types import JointType
from tests.support import reference
from tests.support.random_trees import random_inertia, random_state, random_transform, random_tree, random_unit

UNIT = {"mass": 1.0, "inertia": np.eye(3)}


def refused(model) -> int | None:
    """The joint that is named as the reason why there is no inverse."""
    try:
        check_invertible(model, "test")
    except ValueError as error:
        assert re.search(r"\bbody .*(mass|inertia).*armature.*reduce", str(error))
        return int(re.search(r"index (\d+)", str(error)).group(1))
    return None


def without_mass(builder: ModelBuilder, rng, share: float, points: float) -> ModelBuilder:
    for body in range(builder.body_count):
        draw = rng.random()
        if draw < share:
            builder.body_mass[body], builder.body_inertia[body] = 0.0, np.zeros((3, 3))
        elif draw < share + points:
            builder.body_inertia[body] = np.zeros((3, 3))
    return builder


def smallest(tree, q) -> float:
    """Smallest eigenvalue of the mass matrix with its diagonal scaled to one."""
    M = reference.mass_matrix(tree, q)
    if np.diag(M).min() < 1e-12:
        return 0.0
    scale = 1.0 / np.sqrt(np.diag(M))
    return np.linalg.eigvalsh(M * np.outer(scale, scale)).min()


@pytest.mark.slow
@pytest.mark.parametrize("worlds", [1, 3])
def test_the_verdict_is_that_of_the_mass_matrix_at_random_configurations(rng, worlds):
    verdicts = []
    for _ in range(40):
        builder = without_mass(
            random_tree(rng, joints=6, armature=bool(rng.random() < 0.3)), rng, share=0.35, points=0.15
        )
        whole = ModelBuilder()
        whole.replicate(builder, worlds)
        model = whole.finalize("cpu", dtype=wp.float64)
        tree = reference.Tree.from_model(builder.finalize("cpu", dtype=wp.float64))
        n = tree.coord_count
        largest = max(smallest(tree, random_state(model, rng)[0][:n]) for _ in range(3))
        named = refused(model)
        assert (named is not None) == (largest < 1e-10), largest
        assert named is None or named < builder.joint_count
        verdicts.append(named is not None)
    assert 0 < sum(verdicts) < len(verdicts)  # both happen


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
@pytest.mark.parametrize("offset", [0.0, 1e-3])
def test_a_point_mass_on_the_axis_is_nothing_to_turn(rng, offset, dtype):
    """A massless arm on a hinge carries a point through a weld; frames are random, the point is on the axis or off."""
    builder = ModelBuilder()
    base, arm, point = (builder.add_link(**unit) for unit in (UNIT, {}, {"mass": 1.0}))
    frames = [random_transform(rng) for _ in range(3)]
    axis = random_unit(rng)
    across = np.cross(axis, random_unit(rng))
    # In the frame of the hinge, turned by zero, then back through the weld into the frame of the point.
    place = np.append(rng.normal() * axis + offset * across / np.linalg.norm(across), 1.0)
    matrices = [reference.pose_matrix(x) for x in frames]
    builder.body_com[point] = (np.linalg.inv(matrices[2]) @ matrices[1] @ place)[:3]
    joints = [
        builder.add_joint_free(base, parent_xform=random_transform(rng), child_xform=random_transform(rng)),
        builder.add_joint_revolute(base, arm, axis=axis, parent_xform=frames[0], child_xform=frames[1]),
        builder.add_joint_fixed(arm, point, parent_xform=frames[2]),
    ]
    builder.add_articulation(joints)
    assert refused(builder.finalize("cpu", dtype=dtype)) == (None if offset else 1)


@pytest.mark.parametrize("lever", [0.0, 0.2])
def test_two_hinges_in_line_with_a_massless_link_between_them_are_one_too_many(rng, lever):
    """With a lever between the parallel axes both move."""
    builder, pose, axis = ModelBuilder(), random_transform(rng), random_unit(rng)
    first, second = builder.add_link(), builder.add_link(mass=1.0, inertia=random_inertia(rng, 1.0))
    across = lever * np.cross(axis, random_unit(rng))
    joints = [
        builder.add_joint_revolute(-1, first, axis=axis, parent_xform=pose),
        builder.add_joint_revolute(first, second, axis=axis, parent_xform=(*across, 0, 0, 0, 1)),
    ]
    builder.add_articulation(joints)
    assert refused(builder.finalize("cpu")) == (None if lever else 0)


def test_a_joint_that_lines_up_with_another_in_some_configurations_only_is_served(rng):
    """Three turns about z, x and z at the zeros of the second; a point mass on the axis at the zeros of the joint between."""
    builder = ModelBuilder()
    links = [builder.add_link(), builder.add_link(), builder.add_link(mass=1.0, inertia=random_inertia(rng, 1.0))]
    parents = [-1, *links[:2]]
    builder.add_articulation(
        [builder.add_joint_revolute(p, c, axis=a) for p, c, a in zip(parents, links, "zxz", strict=True)]
    )
    arm, bob = builder.add_link(), builder.add_link(mass=1.0, com=(0, 0, -1))
    builder.add_articulation(
        [builder.add_joint_revolute(-1, arm, axis="z"), builder.add_joint_revolute(arm, bob, axis="y")]
    )
    assert refused(builder.finalize("cpu")) is None


def hinge(**link) -> ModelBuilder:
    """A joint named 'motor' that moves a body named 'rotor'."""
    builder = ModelBuilder()
    body = builder.add_link(label="rotor", **link)
    builder.add_articulation([builder.add_joint_revolute(-1, body, label="motor")])
    return builder


def test_armature_or_mass_cures_before_and_after_finalize():
    builder = hinge()
    model = builder.finalize("cpu")
    with pytest.raises(ValueError, match=r"joint 'motor'.*'rotor'.*mass.*SolverFeatherstone.*armature"):
        SolverFeatherstone(model)
    model.joint_armature = [1e-6]
    model.notify_changed()
    SolverFeatherstone(model)
    builder.joint_armature[0] = 1e-6
    assert refused(builder.finalize("cpu")) is None
    assert refused(hinge(mass=1.0, inertia=np.eye(3)).finalize("cpu")) is None


@pytest.mark.slow
def test_a_solver_refuses_mass_that_is_taken_away(rng):
    builder = ModelBuilder()
    builder.replicate(hinge(mass=1.0, inertia=np.eye(3)), 3)
    model, world = builder.finalize("cpu"), int(rng.integers(3))
    solver, state = SolverFeatherstone(model), model.state()
    mass, inertia = model.body_mass.numpy(), model.body_inertia.numpy()
    mass[world], inertia[world] = 0.0, 0.0
    model.body_mass, model.body_inertia = mass, inertia
    with pytest.raises(ValueError, match=rf"joint 'motor' \(index {world}\)"):
        solver.notify_model_changed()
    with pytest.raises(ValueError, match="'motor'"):
        solver.step(state, state)
    model.body_mass, model.body_inertia = np.ones(3), np.tile(np.eye(3), (3, 1, 1))
    solver.notify_model_changed()
    solver.step(state, state)


def test_dummy_links_are_fine():
    """As in many URDF files: a massless root that carries the robot, massless frames on fixed joints at the ends."""
    builder = ModelBuilder()
    root, body, tip = builder.add_link(), builder.add_link(**UNIT), builder.add_link()
    joints = [builder.add_joint_free(root), builder.add_joint_fixed(root, body), builder.add_joint_fixed(body, tip)]
    builder.add_articulation(joints)
    model = builder.finalize("cpu")
    assert model.body_inv_mass.numpy().tolist() == [0.0, 1.0, 0.0]
    assert refused(model) is None
    bob = hinge(mass=1, com=(0, 1, 1))  # a point mass on a string turns about the hinge
    assert refused(bob.finalize("cpu")) is None
    weightless = ModelBuilder()
    weightless.add_body(mass=1, label="point")
    with pytest.raises(ValueError, match=r"joint 'point_free_joint'.*'point'.*\(1 kg\).*inertia"):
        SolverFeatherstone(weightless.finalize("cpu"))
    empty = ModelBuilder().finalize("cpu")
    assert refused(empty) is None


def test_what_needs_the_inverse_refuses_and_all_else_serves(rng):
    builder = random_tree(rng, joints=5, types=[JointType.REVOLUTE], floating=True, armature=False)
    tip = builder.add_link(label="tip")
    builder.extend_articulation(0, [builder.add_joint_revolute(builder.body_count - 2, tip, label="finger")])
    model = builder.finalize("cpu", dtype=wp.float64)
    state = model.state()
    state.joint_q, state.joint_qd = random_state(model, rng)
    tree, n = reference.Tree.from_model(model), model.joint_dof_count
    M = reference.mass_matrix(tree, state.joint_q.numpy())
    np.testing.assert_allclose(dynamics.mass_matrix(model, state).numpy()[0], M, atol=1e-9)
    a = rng.normal(size=n)
    tau = dynamics.inverse_dynamics(model, state, a[None]).numpy()[0]
    expected = M @ a + reference.bias_forces(tree, state.joint_q.numpy(), state.joint_qd.numpy())
    np.testing.assert_allclose(tau, expected, atol=1e-8)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    # without other forces the base supports the weight of the robot
    assert np.isfinite(dynamics.link_jacobian(model, state, "tip").numpy()).all()
    refusing = {
        "forward_dynamics": lambda: dynamics.forward_dynamics(model, state),
        "mass_matrix_inverse": lambda: dynamics.mass_matrix_inverse(model, state),
        "velocity_rate": lambda: dynamics.velocity_rate(model, state),
        "state_rate": lambda: dynamics.state_rate(model, state),
        "integrate": lambda: dynamics.integrate(model, state, model.state(), dt=0.01),
        "of a mechanism": lambda: MechanismState(model).mass_matrix_inverse(),
        "solver": lambda: SolverFeatherstone(model),
    }
    for name, call in refusing.items():
        with pytest.raises(ValueError, match=r"joint 'finger'.*'tip'.*armature"):
            call()
            pytest.fail(name)


def test_equal_worlds_are_looked_at_once_and_the_one_that_differs_is_found(rng):
    """The massless arm is aligned with the second hinge in one world of many."""
    builder, odd = ModelBuilder(), int(rng.integers(20))
    for world in range(20):
        one = ModelBuilder()
        first, second = one.add_link(), one.add_link(**UNIT)
        lever = 0.0 if world == odd else 0.3
        joints = [
            one.add_joint_revolute(-1, first, axis="z", parent_xform=(world, 0, 0, 0, 0, 0, 1)),
            one.add_joint_revolute(first, second, axis="z", parent_xform=(lever, 0, 0, 0, 0, 0, 1)),
        ]
        one.add_articulation(joints)
        builder.add_world(one)
    assert refused(builder.finalize("cpu")) == 2 * odd


@pytest.mark.parametrize("order", sorted(itertools.permutations("xyz")))
def test_three_axes_of_one_joint_are_no_massless_chain(order):
    builder = ModelBuilder()
    body = builder.add_link(**UNIT)
    builder.add_articulation([builder.add_joint_d6(-1, body, angular_axes=list(order))])
    assert refused(builder.finalize("cpu")) is None
