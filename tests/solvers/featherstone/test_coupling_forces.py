"""Forces of mimic joints, DISTANCE joints, polynomials between joints and ties of tendons: statics, MuJoCo's forces, worlds, graphs."""

import warnings

import mujoco
import numpy as np
import pytest
import warp as wp

from newton_like import BodyFlags, ModelBuilder, ModelFlags
from newton_like.solvers import SolverFeatherstone

pytestmark = pytest.mark.slow

G = 9.81

# A weight on a slide, held through a relation by a weight and a spring on a hinge; a weight on an arm, held by a rod.
HELD = """<mujoco><option timestep="1e-5"/><default><geom contype="0" conaffinity="0" size=".05"/></default>
<worldbody>
 <body name="a"><joint name="a" type="slide" axis="0 0 1"/><geom type="sphere" mass="{mass}"/></body>
 <body name="b" pos="0 1 0"><joint name="b" axis="0 1 0" stiffness="60" damping="20"/><geom type="sphere" pos="0 0 -.2" mass="2"/></body>
 <body name="c" pos="0 2 0"><joint name="c" axis="0 1 0"/><geom type="sphere" pos="1 0 0" mass="{arm}"/>
  <site name="tip" pos="1 0 0"/></body>
 <site name="wall" pos="{x} 2 1"/>
</worldbody>
<tendon>
 <fixed name="ta"><joint joint="a" coef="1"/></fixed><fixed name="tb"><joint joint="b" coef="1"/></fixed>
 <spatial name="rod"><site site="tip"/><site site="wall"/></spatial>
</tendon>
<equality>{ab}<tendon name="rod" tendon1="rod" polycoef="{shift} 0 0 0 0" {soft}/></equality></mujoco>"""
JOINTS = '<joint name="ab" joint1="a" joint2="b" polycoef="{}" {}/>'
TENDONS = '<tendon name="ab" tendon1="ta" tendon2="tb" polycoef="{}" {}/>'
RELATIONS = {
    "mimic": (JOINTS, (1, 1, 0, 0, 0)),
    "polynomial": (JOINTS, (1, 1, 1, 1, 1)),
    "tie": (TENDONS, (1, 1, 1, 1, 1)),
}


class Held:
    """The text of such a scene with random numbers, and these numbers."""

    def __init__(self, rng, relation: str, soft: bool = False):
        self.mass, self.arm, self.x = rng.uniform(0.5, 2.0, 3)
        text, used = RELATIONS[relation]
        self.polynomial = np.array([0.02, 0.3, 0.1, 0.05, 0.02]) * rng.uniform(0.5, 1.5, 5) * used
        self.shift = float(rng.uniform(-0.01, 0.01)) if soft else 0.0
        law = 'solref="{:.3f} {:.3f}" solimp=".8 .95 .02 .5 2"'
        laws = [law.format(*rng.uniform([0.02, 0.5], [0.1, 1.5])) if soft else "" for _ in range(2)]
        ab = text.format(" ".join(map(repr, self.polynomial.tolist())), laws[0])
        self.xml = HELD.format(mass=self.mass, arm=self.arm, x=self.x, ab=ab, shift=self.shift, soft=laws[1])

    def builder(self) -> ModelBuilder:
        builder = ModelBuilder()
        builder.add_mjcf(self.xml)
        return builder


def solver_of(model, **options) -> SolverFeatherstone:
    return SolverFeatherstone(model, **{"evaluator": "general", **options})


def stepped(model, steps: int, solver=None, dt: float = 1.0 / 240.0):
    solver, state = solver or solver_of(model), model.state()
    for _ in range(steps):
        solver.step(state, state, dt=dt)
    return solver, state


@pytest.mark.parametrize("relation", RELATIONS)
def test_relations_hold_weights(rng, relation):
    """At rest the first coordinate carries its own weight, and the second one p'(q2) times that, beside its spring and its weight. The rod
    carries the moment of the arm."""
    scene = Held(rng, relation)
    solver, state = stepped(scene.builder().finalize("cpu", dtype=wp.float64), 2000)
    force = solver.coupling_forces().numpy()
    kinds = [coupling.kind for coupling in solver.couplings]
    assert kinds == [relation, "tie"]
    assert [c.label.split("/")[-1] for c in solver.couplings] == ["ta" if relation == "tie" else "a", "rod"]
    assert force[0] == pytest.approx(scene.mass * G, rel=1e-6)
    _, q2, q3 = state.joint_q.numpy()
    slope = np.polynomial.Polynomial(scene.polynomial).deriv()(q2)
    pendulum = -60.0 * q2 - 2.0 * G * 0.2 * np.sin(q2)
    assert slope * force[0] == pytest.approx(pendulum, rel=1e-5)
    tip = np.array([np.cos(q3), -np.sin(q3)])
    line = tip - [scene.x, 1.0]
    length = np.linalg.norm(line)
    # dL/dq of the tip, which turns about y: d(x, z)/dq = (z, -x)
    lever = line @ [tip[1], -tip[0]] / length
    assert force[1] * lever == pytest.approx(-scene.arm * G * tip[0], rel=1e-5)
    assert force[1] < 0.0


def test_distance_joints_carry_weights(rng):
    """Of trees and of loops, in worlds with other limits: hanging from the longest distance, standing on the shortest one, on a bar, and
    between the limits, where nothing acts."""
    scene, expected = ModelBuilder(), []
    for place, limits in ((-1.0, (-1.0, 1.0)), (1.0, (1.0, -1.0)), (1.0, (1.0, 1.0)), (-1.0, (0.5, 2.0))):
        world = ModelBuilder()
        for loop in (False, True):
            mass = float(rng.uniform(0.5, 2.0))
            body = world.add_link(mass=mass, inertia=0.01 * np.eye(3))
            distance = {"min_distance": limits[0], "max_distance": limits[1]}
            if loop:
                world.add_articulation([world.add_joint_free(body)])
                world.add_joint_distance(-1, body, **distance, label="loop")
                world.joint_q[-7 - 7 + 2] = place
            else:
                world.add_articulation([world.add_joint_distance(-1, body, **distance, label="tree")])
                world.joint_q[2] = place
            expected.append(np.sign(place) * mass * G if limits != (0.5, 2.0) else 0.0)
        scene.add_world(world)
    # few steps, so that what stands does not fall over
    solver, _ = stepped(scene.finalize("cpu", dtype=wp.float64), 3)
    np.testing.assert_allclose(solver.coupling_forces().numpy(), expected, rtol=1e-6, atol=1e-9)
    assert {(c.kind, c.part) for c in solver.couplings} == {("distance", 0)}
    assert [c.world for c in solver.couplings] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [c.label for c in solver.couplings] == ["tree", "loop"] * 4
    assert solver.loop_forces().shape == (8, 0)


@pytest.mark.parametrize("relation", RELATIONS)
def test_forces_are_those_of_mujoco(rng, relation):
    """Soft relations at rest in random configurations: in a short step, forces are those of MuJoCo's `efc_force`."""
    scene = Held(rng, relation, soft=True)
    model = scene.builder().finalize("cpu", dtype=wp.float64)
    other = mujoco.MjModel.from_xml_string(scene.xml)
    solver, state, data = solver_of(model), model.state(), mujoco.MjData(other)
    largest = np.zeros(2)
    for _ in range(4):
        q = rng.normal(size=3) * 0.01
        data.qpos[:], data.qvel[:] = q, 0.0
        mujoco.mj_forward(other, data)
        rows = [list(data.efc_id[: data.nefc]).index(i) for i in range(2)]
        expected = data.efc_force[rows]
        solver.reset(state, None, q, np.zeros(3))
        solver.step(state, state, dt=1e-6)
        np.testing.assert_allclose(solver.coupling_forces().numpy(), expected, rtol=1e-3, atol=1e-3)
        largest = np.maximum(largest, np.abs(expected))
    assert largest.min() > 0.1


def test_graphs_and_edits(rng):
    """A launch of a graph is a step like any other. Of two equations of one joint, one is enabled at a time: the other has no force, and
    keeps its place."""
    builder = Held(rng, "polynomial").builder()
    builder.add_custom_values(
        **{
            "mujoco:equality_constraint_joint1": 2,
            "mujoco:equality_constraint_joint2": -1,
            "mujoco:equality_constraint_polycoef": (0.0, 0.0, 0.0, 0.0, 0.0),
            "mujoco:equality_constraint_enabled": 0,
        }
    )
    model = builder.finalize("cpu", dtype=wp.float64)
    solver, state = stepped(model, 5)
    assert [(c.kind, c.index) for c in solver.couplings] == [("polynomial", 0), ("polynomial", 1), ("tie", 2)]
    with wp.ScopedCapture("cpu") as capture:
        solver.step(state, state)
    for _ in range(3):
        wp.capture_launch(capture.graph)
    force = solver.coupling_forces().numpy()
    np.testing.assert_array_equal(force, stepped(model, 8)[0].coupling_forces().numpy())
    assert force[1] == 0.0 and force[0] != 0.0 and force[2] != 0.0
    model.mujoco.equality_constraint_enabled.assign([0, 1])
    with warnings.catch_warnings():
        # the graph, and the rod that holds the same joint
        warnings.simplefilter("ignore")
        solver.notify_model_changed(ModelFlags.CONSTRAINT_PROPERTIES)
    solver.step(state, state)
    force = solver.coupling_forces().numpy()
    assert force[0] == 0.0 and force[1] != 0.0


def test_prescribed_joints_have_forces_where_they_hold_others(rng):
    """A prescribed follower holds the weight that it leads. A relation between two prescribed joints, which nothing can close, has no
    force, nor has a prescribed distance."""
    builder, mass, ratio = ModelBuilder(), float(rng.uniform(0.5, 2.0)), float(rng.uniform(0.5, 2.0))
    links = [builder.add_link(mass=mass, inertia=np.eye(3), is_kinematic=True) for _ in range(2)]
    joints = [builder.add_joint_prismatic(-1, link, axis=(0, 0, 1)) for link in links]
    builder.add_articulation(joints)
    builder.set_joint_mimic(joints[1], joints[0], coeffs=(0.1, ratio))
    links.append(builder.add_link(mass=mass, inertia=np.eye(3), is_kinematic=True))
    builder.add_articulation([builder.add_joint_distance(-1, links[2], max_distance=1.0)])
    builder.joint_q[1], builder.joint_q[4] = 0.1, -2.0
    model = builder.finalize("cpu", dtype=wp.float64)
    model.joint_q.assign([0.0, 0.2, *model.joint_q.numpy()[2:]])
    solver, _ = stepped(model, 3)
    np.testing.assert_array_equal(solver.coupling_forces().numpy(), 0.0)
    model.joint_q.assign([0.0, 0.1, *model.joint_q.numpy()[2:]])
    model.body_flags.assign([BodyFlags.DYNAMIC, BodyFlags.KINEMATIC, BodyFlags.KINEMATIC])
    solver.notify_model_changed(ModelFlags.BODY_PROPERTIES)
    solver, _ = stepped(model, 3, solver)
    np.testing.assert_allclose(solver.coupling_forces().numpy(), [-mass * G / ratio, 0.0], rtol=1e-6)


def test_without_couplings_there_are_no_forces():
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_revolute(-1, link, axis=(0, 1, 0))])
    solver, _ = stepped(builder.finalize("cpu", dtype=wp.float64), 1)
    assert solver.couplings == [] and solver.coupling_forces().shape == (0,)


@pytest.mark.slow
def test_worlds_and_evaluators_give_the_same_bits(rng):
    """Forces are sorted by world, in batches of other robots and alone, from steps with lists of contacts, too."""
    worlds = [Held(rng, relation).builder() for relation in (*RELATIONS, *RELATIONS)]
    for builder in worlds:
        body = builder.add_link(mass=1.0, inertia=0.01 * np.eye(3))
        builder.add_articulation([builder.add_joint_distance(-1, body, max_distance=0.1)])
        builder.joint_q[-7 + 0] = 0.1
    scene = ModelBuilder()
    for builder in worlds:
        scene.add_world(builder)
    found = []
    for evaluator in ("general", "specialised"):
        model = scene.finalize("cpu")
        solver, _ = stepped(model, 60, solver_of(model, evaluator=evaluator))
        found.append(solver.coupling_forces().numpy().reshape(6, 3))
        assert [c.world for c in solver.couplings] == np.repeat(np.arange(6), 3).tolist()
    np.testing.assert_array_equal(*found)
    for builder, force in zip(worlds, found[0], strict=True):
        alone, _ = stepped(builder.finalize("cpu"), 60)
        names = {(c.kind, c.label): f for c, f in zip(alone.couplings, alone.coupling_forces().numpy(), strict=True)}
        assert len(names) == 3
        np.testing.assert_array_equal(sorted(names.values()), sorted(force))
    model = scene.finalize("cpu")
    solver, state = solver_of(model), model.state()
    for _ in range(60):
        solver.step(state, state, contacts=model.collide(state))
    np.testing.assert_allclose(solver.coupling_forces().numpy().reshape(6, 3), found[0], rtol=1e-4, atol=1e-4)
