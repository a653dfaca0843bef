"""Bodies without joints rest, and may carry articulations and be held by loop joints."""

import warnings

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder, dynamics, eval_fk, eval_ik, eval_jacobian, eval_mass_matrix, urdf, usd
from newton_like.geometry.transforms import transform_multiply
from newton_like.solvers import SolverFeatherstone
from tests.support.kinematic_cases import moving_state, pose_error, real_array, same_sign
from tests.support.random_trees import random_transform

SOLID = {"mass": 1.0, "inertia": np.eye(3)}


def finalized(builder: ModelBuilder, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return builder.finalize("cpu", **options)


def robot(frames, base_pose, resting: bool) -> ModelBuilder:
    """A floating, a turning and a hinged body on a resting body, or on the world at the pose of that body."""
    builder = ModelBuilder()
    parent, place = -1, base_pose
    if resting:
        parent, place = builder.add_link(xform=base_pose, **SOLID, label="base"), np.array([0, 0, 0, 0, 0, 0, 1.0])
    joints = []
    for kind, frame in zip(("free", "ball", "revolute"), frames, strict=True):
        link = builder.add_link(com=frame[:3], **SOLID)
        ends = {"parent": parent, "child": link, "child_xform": frame}
        joints.append(getattr(builder, f"add_joint_{kind}")(**ends, parent_xform=transform_multiply(place, frame)))
    for joint in joints:
        builder.add_articulation([joint])
    return builder


def test_what_a_resting_body_carries_moves_as_on_the_world(rng):
    frames, base = [random_transform(rng) for _ in range(3)], random_transform(rng)
    places = [random_transform(rng) for _ in range(3)]
    models = []
    for resting in (True, False):
        scene = ModelBuilder()
        scene.replicate(robot(frames, base, resting), 3, xforms=places)
        models.append(finalized(scene, dtype=wp.float64))
    mine, theirs = models
    state, q, qd = moving_state(mine, rng)
    other = theirs.state()
    # coordinates of the floating body on the resting one are those in its axes; on the world those in the axes of the world
    poses = np.array([transform_multiply(place, base) for place in places])
    other.joint_q.assign(q)
    other.joint_qd.assign(qd)
    anchors = theirs.joint_X_p.numpy().copy()
    for world in range(3):
        anchors[3 * world] = transform_multiply(poses[world], frames[0])
    theirs.joint_X_p.assign(anchors)
    theirs.notify_changed()
    for model, one in ((mine, state), (theirs, other)):
        eval_fk(model, one.joint_q, one.joint_qd, one)
    moved = mine.joint_child.numpy()
    assert max(pose_error(state.body_q.numpy()[moved], other.body_q.numpy())) < 1e-12
    np.testing.assert_allclose(state.body_qd.numpy()[moved], other.body_qd.numpy(), rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(
        eval_jacobian(mine, state).numpy(), eval_jacobian(theirs, other).numpy(), rtol=0.0, atol=1e-12
    )
    np.testing.assert_allclose(
        eval_mass_matrix(mine, state).numpy(), eval_mass_matrix(theirs, other).numpy(), rtol=0.0, atol=1e-12
    )
    found_q, found_qd = real_array(mine, np.zeros_like(q)), real_array(mine, np.zeros_like(qd))
    eval_ik(mine, state, found_q, found_qd)
    np.testing.assert_allclose(found_qd.numpy(), qd, rtol=0.0, atol=1e-11)
    again = mine.state()
    eval_fk(mine, found_q, found_qd, again)
    assert max(pose_error(again.body_q.numpy()[moved], state.body_q.numpy()[moved])) < 1e-12
    quaternions = same_sign(mine, found_q.numpy(), q)
    np.testing.assert_allclose(quaternions[:7], q[:7], rtol=0.0, atol=1e-12)
    # they rest
    rest = np.flatnonzero(~np.isin(np.arange(mine.body_count), moved))
    assert max(pose_error(state.body_q.numpy()[rest], poses)) < 1e-12
    assert not state.body_qd.numpy()[rest].any()


def test_a_joint_between_a_robot_and_its_resting_base_closes_a_loop():
    builder = ModelBuilder()
    links = [builder.add_link(**SOLID) for _ in range(3)]
    slides = [builder.add_joint_prismatic(links[i], links[i + 1], axis="xy"[i]) for i in range(2)]
    builder.add_articulation(slides)
    loop = builder.add_joint_ball(links[2], links[0])
    model = finalized(builder)
    np.testing.assert_array_equal(model.joint_ancestor.numpy(), [-1, 0, 1])
    assert model.joint_articulation.numpy()[loop] == -1
    state = model.state()
    state.joint_qd.assign([0.3, -0.4, 9.0, 9.0, 9.0])
    eval_fk(model, state.joint_q, state.joint_qd, state)
    np.testing.assert_allclose(state.body_qd.numpy()[2, :3], [0.3, -0.4, 0.0], atol=1e-6)
    with pytest.raises(ValueError, match=f"loop joint.*index {loop}"):
        dynamics.constrained_dynamics(model, state, None)


def test_resting_bodies_are_remarked_and_refused_where_they_would_fall(tmp_path):
    builder = ModelBuilder()
    builder.add_link(**SOLID, label="cup")
    builder.add_body(**SOLID)
    with pytest.warns(UserWarning, match=r"'cup'.*add_body"):
        model = builder.finalize("cpu")
    with pytest.raises(ValueError, match=r"'cup' \(index 0\).*SolverFeatherstone"):
        SolverFeatherstone(model)
    with pytest.raises(ValueError, match="'cup'"):
        usd.write(model, tmp_path / "a.usda")
    with pytest.raises(ValueError, match="'cup'"):
        urdf.write(model, tmp_path / "a.urdf")


def test_a_joint_that_nobody_gave_to_an_articulation_is_still_a_mistake():
    builder = ModelBuilder()
    builder.add_joint_revolute(-1, builder.add_link(**SOLID), label="hinge")
    with pytest.raises(ValueError, match=r"'hinge'.*add_articulation"):
        builder.finalize("cpu")
