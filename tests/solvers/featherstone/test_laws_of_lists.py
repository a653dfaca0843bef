"""Contacts that are handed over in lists follow MuJoCo's settings of geoms and pairs as those that the solver finds."""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, ModelFlags, eval_fk
from newton_like.collision.laws import MOST_CLASSES
from newton_like.solvers import SolverFeatherstone

DT = 0.002
WORLDS = 3


def file(rng) -> str:
    """Balls and boxes with drawn settings on a plane and on a fixed box, stacks of two, and pairs with settings of their own."""

    def soft() -> str:
        low = rng.uniform(0.7, 0.9)
        curve = f"{low} {rng.uniform(low, 0.95)} {rng.uniform(0.001, 0.004)} 0.4 2"
        if rng.random() < 0.3:
            return f'solref="{-rng.uniform(2e3, 6e3)} {-rng.uniform(40, 90)}" solimp="{curve}"'
        return f'solref="{rng.uniform(0.02, 0.07)} {rng.uniform(0.7, 1.3)}" solimp="{curve}"'

    def body(name: str, shape: str, x: float, z: float, more: str) -> str:
        geom = f'<geom name="{name}" type="{shape}" size="0.1 0.1 0.1" {more}/>'
        return f'<body pos="{x} 0 {z}"><freejoint/>{geom}</body>'

    slide = rng.uniform(0.2, 0.5)
    mu = f"{rng.uniform(0.3, 0.9)} {rng.uniform(0.005, 0.03)} 0.003"
    return f"""<mujoco><worldbody>
        <geom name="floor" type="plane" size="9 9 0.1" friction="{mu}" {soft()}/>
        <geom name="step" type="box" pos="4 0 0.1" size="0.5 0.5 0.1" priority="1" condim="6" {soft()}/>
        {body("ball", "sphere", 0, 0.1, f'condim="4" {soft()}')}
        {body("low", "box", 1, 0.099, f'solmix="{rng.uniform(1, 4)}" {soft()}')}
        {body("high", "box", 1, 0.297, f'margin="0.002" {soft()}')}
        {body("own", "box", 2, 0.098, "")}
        {body("over", "box", 2, 0.296, "")}
        {body("raised", "box", 4, 0.3, soft())}
        </worldbody><contact>
        <pair geom1="own" geom2="over" condim="3" friction="{slide} {slide} 0.01 0.01 0.01" {soft()}/>
        <pair geom1="own" geom2="floor" margin="0.001" {soft()}/>
        </contact></mujoco>"""


def built(xml: str, dtype=wp.float32):
    robot, scene = ModelBuilder(), ModelBuilder()
    SolverFeatherstone.register_custom_attributes(robot)
    robot.add_mjcf(xml)
    scene.replicate(robot, WORLDS)
    return scene.finalize("cpu", dtype=dtype)


def moved(model, steps: int, listed: bool, push=0.0, solver=None):
    """Positions after some steps, in which boxes are pushed first."""
    solver = solver or SolverFeatherstone(model, evaluator="general")
    state, contacts = model.state(), model.contacts(60 * WORLDS)
    speeds = state.joint_qd.numpy().reshape(WORLDS, -1, 6)
    speeds[:, 1:, :2] += push
    state.joint_qd.assign(speeds.ravel())
    eval_fk(model, state.joint_q, state.joint_qd, state)
    for _ in range(steps):
        if listed:
            model.collide(state, contacts)
        solver.step(state, state, None, contacts if listed else None, DT)
    assert solver.unused_contacts() == 0
    return state.body_q.numpy().reshape(WORLDS, -1, 7)[:, :, :3]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_bodies_rest_as_on_contacts_that_the_solver_finds(rng, dtype):
    model = built(file(rng), dtype)
    found, listed = (moved(model, 300, of_list) for of_list in (False, True))
    np.testing.assert_allclose(listed, found, rtol=0, atol=2.0e-6)
    # hard contacts would let nothing sink
    assert (found[:, 0, 2] < 0.0999).all()


@pytest.mark.slow
def test_boxes_slide_as_on_contacts_that_the_solver_finds(rng):
    model = built(file(rng))
    push = rng.uniform(-0.4, 0.4, 2)
    found, listed = (moved(model, 150, of_list, push) for of_list in (False, True))
    np.testing.assert_allclose(listed[:, 1:], found[:, 1:], rtol=0, atol=2.0e-3)


@pytest.mark.slow
def test_edited_settings_act_on_lists_after_a_notice(rng):
    model = built(file(rng))
    solver = SolverFeatherstone(model, evaluator="general")
    before = moved(model, 300, True, solver=solver)
    model.mujoco.solref.assign(1.3 * model.mujoco.solref.numpy())
    solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    after = moved(model, 300, True, solver=solver)
    assert abs(after[:, 0, 2] - before[:, 0, 2]).min() > 1.0e-5
    np.testing.assert_allclose(after, moved(model, 300, False), rtol=0, atol=2.0e-6)


@pytest.mark.slow
def test_friction_of_edited_materials_is_that_of_the_rules(rng):
    """The friction of a law is that of the materials at the time of the step."""
    model = built(file(rng))
    solver = SolverFeatherstone(model, evaluator="general")
    moved(model, 3, True, solver=solver)
    model.shape_material_mu.assign(0.2 * model.shape_material_mu.numpy())
    solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    found = moved(model, 100, False, 0.4)
    np.testing.assert_allclose(moved(model, 100, True, 0.4, solver)[:, 1:], found[:, 1:], rtol=0, atol=2.0e-3)


def test_more_kinds_of_shapes_than_there_are_laws_for_are_refused():
    robot = ModelBuilder()
    SolverFeatherstone.register_custom_attributes(robot)
    robot.add_ground_plane()
    body = robot.add_body(mass=1.0, inertia=np.eye(3))
    for i in range(MOST_CLASSES + 1):
        settings = {"mujoco:contact_rules": 2, "mujoco:solref": (0.02 + 1.0e-4 * i, 1.0)}
        robot.add_shape_sphere(body, radius=0.1, custom_attributes=settings)
    model = robot.finalize("cpu")
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    with pytest.raises(ValueError, match=r"514 different sets.*at most 512; use fewer, or pass contacts=None"):
        solver.step(state, state, None, model.contacts(4), DT)
