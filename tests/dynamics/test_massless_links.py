"""Forward dynamics and inverses of mass matrices with links without mass or inertia."""

from itertools import product

import numpy as np
import pytest
import warp as wp

from newton_like import JointType, ModelBuilder, dynamics
from newton_like.types import VelRepr
from tests.support import reference
from tests.support.dynamics_cases import Case
from tests.support.kinematic_cases import add_joint
from tests.support.random_trees import random_inertia, random_state, random_tree

from .test_forces import METHODS, SOLVED, close


def edited(case, mass=None, inertia=None):
    """The case with other masses and inertias of some bodies, by index, which `finalize` would refuse."""
    model = case.model
    for array, values in ((model.body_mass, mass), (model.body_inertia, inertia)):
        numbers = array.numpy()
        for body, value in (values or {}).items():
            numbers[body] = value
        array.assign(numbers)
    model.notify_changed()
    return Case(model, case.q, case.qd)


@pytest.mark.parametrize(
    "kind", [JointType.REVOLUTE, JointType.PRISMATIC, JointType.BALL, JointType.FREE, JointType.D6]
)
def test_a_leaf_without_mass_is_locked(rng, by_numpy, kind):
    """It is locked for any force, and the other bodies move as without it."""
    builder = random_tree(rng, joints=4, armature=False, floating=True)
    _, joint = add_joint(builder, rng, kind, builder.joint_child[1], linear=2, angular=3)
    builder.extend_articulation(0, [joint])
    model = builder.finalize("cpu", dtype=wp.float64)
    case = Case(model, *random_state(model, rng))
    leaf = case.tree.joint_child[-1]
    case = edited(case, {leaf: 0.0}, {leaf: 0.0})
    n, rest = len(case.qd), case.tree.joint_qd_start[-2]
    M, h = reference.mass_matrix(case.tree, case.q), reference.bias_forces(case.tree, case.q, case.qd)
    tau = rng.normal(size=n)
    expected = np.zeros(n)
    expected[:rest] = np.linalg.solve(M[:rest, :rest], (tau - h)[:rest])
    for method in METHODS:
        close(case.get(dynamics.forward_dynamics, joint_forces=tau, method=method), expected, SOLVED)
    inverse = np.zeros((n, n))
    inverse[:rest, :rest] = np.linalg.inv(M[:rest, :rest])
    close(case.get(dynamics.mass_matrix_inverse), inverse, SOLVED)


def test_a_free_point_mass_flies_and_does_not_turn(rng, by_numpy):
    """f = m (a - g); without armature its turns are locked, with armature they are those of the armature."""
    builder = ModelBuilder()
    com, mass = rng.normal(size=3), rng.uniform(0.5, 2.0)
    body = builder.add_link(mass=mass, com=com, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_free(body)])
    model = builder.finalize("cpu", dtype=wp.float64)
    case = edited(Case(model, *random_state(model, rng)), inertia={0: 0.0})
    f = rng.normal(size=6)
    expected = np.concatenate([f[:3] / mass + model.gravity.numpy()[0], np.zeros(3)])
    for method, repr in product(METHODS, (None, VelRepr.COM)):
        close(case.get(dynamics.forward_dynamics, joint_forces=f, method=method, repr=repr), expected)
    close(case.get(dynamics.mass_matrix_inverse), np.diag([1 / mass] * 3 + [0.0] * 3))
    for repr in VelRepr:
        M, inverse = (case.get(f, repr=repr) for f in (dynamics.mass_matrix, dynamics.mass_matrix_inverse))
        close(inverse @ M @ inverse, inverse)
    armature = rng.uniform(0.1, 1.0, 3)
    model.joint_armature.assign(np.concatenate([np.zeros(3), armature]))
    model.notify_changed()
    expected[3:] = f[3:] / armature
    for method in METHODS:
        close(case.get(dynamics.forward_dynamics, joint_forces=f, method=method), expected)


def test_the_twist_of_a_point_mass_on_a_ball_joint_is_locked(rng, by_numpy):
    """One of three directions, not along an axis of the joint: accelerations are finite and satisfy the equation of motion."""
    builder = ModelBuilder()
    body = builder.add_link(mass=2.0, com=rng.normal(size=3), inertia=random_inertia(rng, 2.0))
    builder.add_articulation([builder.add_joint_ball(-1, body)])
    model = builder.finalize("cpu", dtype=wp.float64)
    case = edited(Case(model, *random_state(model, rng)), inertia={0: 0.0})
    # gravity gives no torque along the arm
    for method in METHODS:
        found = case.get(dynamics.forward_dynamics, method=method)
        assert np.abs(found).max() < 1e3
        close(case.get(dynamics.inverse_dynamics, joint_acceleration=found), np.zeros(3), SOLVED, 10.0)
