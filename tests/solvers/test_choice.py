"""Which solver is chosen for which model."""

import re

import numpy as np
import pytest

import newton_like as nl
from newton_like.solvers import SolverFeatherstone, SolverXPBD, choose_solver
from newton_like.solvers.choice import LONG_CHAIN, MANY_BODIES
from tests.solvers.xpbd.scenes import pendulum


def heap(count: int, worlds: int = 1, hooked: bool = False) -> nl.ModelBuilder:
    """Balls, and, if hooked, a body without inertia, which only a solver in joint coordinates can move."""
    world = nl.ModelBuilder()
    for i in range(count):
        world.add_shape_sphere(world.add_body(xform=(i, 0, 1, 0, 0, 0, 1)), radius=0.1)
    if hooked:
        hook = world.add_link(mass=0.0, label="hook")
        rod = world.add_link(mass=1.0, inertia=np.eye(3))
        joints = [
            world.add_joint_revolute(-1, hook, axis=(1, 0, 0)),
            world.add_joint_revolute(hook, rod, axis=(0, 1, 0)),
        ]
        world.add_articulation(joints)
    scene = nl.ModelBuilder()
    scene.add_ground_plane()
    scene.replicate(world, worlds)
    return scene


def between() -> nl.ModelBuilder:
    """Two free bodies that a loop joint connects."""
    scene = nl.ModelBuilder()
    bodies = [scene.add_body(mass=1.0, inertia=np.eye(3)) for _ in range(2)]
    scene.add_joint_ball(*bodies, label="link")
    return scene


def with_table() -> nl.ModelBuilder:
    """A long chain, and a joint whose axes are not perpendicular."""
    scene = pendulum(LONG_CHAIN)
    body = scene.add_link(mass=1.0, inertia=np.eye(3))
    axes = [nl.ModelBuilder.JointDofConfig(axis=axis) for axis in ((1, 0, 0), (0.8, 0.6, 0))]
    scene.add_articulation([scene.add_joint_d6(-1, body, linear_axes=axes, label="table")])
    return scene


def with_follower() -> nl.ModelBuilder:
    """A loop between two bodies, and a joint that follows a disabled one."""
    scene = between()
    joints, parent = [], -1
    for i in range(2):
        link = scene.add_link(mass=1.0, inertia=np.eye(3))
        joints.append(scene.add_joint_revolute(parent, link, axis=(0, 1, 0), label=f"hinge_{i}"))
        parent = link
    scene.add_articulation(joints)
    scene.set_joint_mimic(joints[1], joints[0])
    scene.joint_enabled[joints[0]] = False
    return scene


def with_disabled_joint() -> nl.ModelBuilder:
    scene = pendulum(3)
    scene.joint_enabled[1] = False
    return scene


@pytest.mark.parametrize(
    ("build", "solver", "told"),
    [
        (lambda: pendulum(3), SolverFeatherstone, "joints"),
        (lambda: heap(MANY_BODIES - 1, worlds=3), SolverFeatherstone, "joints"),
        (lambda: heap(MANY_BODIES, worlds=3), SolverXPBD, f"{MANY_BODIES} free bodies"),
        (lambda: pendulum(LONG_CHAIN), SolverXPBD, f"{LONG_CHAIN} joints"),
        (between, SolverXPBD, "'link'"),
        (lambda: heap(MANY_BODIES, hooked=True), SolverFeatherstone, "'hook'.*mass"),
        (with_table, SolverFeatherstone, "'table'.*perpendicular"),
        (with_follower, SolverFeatherstone, "'hinge_0'.*disabled"),
        (with_disabled_joint, SolverXPBD, r"index 1\) is disabled"),
    ],
)
def test_models_get_the_solver_that_fits(build, solver, told):
    choice = choose_solver(build().finalize("cpu"))
    assert choice.solver is solver
    assert re.search(told, choice.reason)
    assert str(choice).startswith(solver.__name__)


def test_the_solver_for_a_disabled_joint_takes_the_model():
    model = with_disabled_joint().finalize("cpu")
    choose_solver(model).solver(model)


def test_solvers_are_known_by_name_and_by_class():
    model = pendulum(1).finalize("cpu")
    for wanted in ("xpbd", "XPBD", SolverXPBD):
        assert choose_solver(model, wanted).solver is SolverXPBD
    with pytest.raises(ValueError, match=r"'xpdb'.*'xpbd'"):
        choose_solver(model, "xpdb")
    with pytest.raises(TypeError, match="not 3"):
        choose_solver(model, 3)
