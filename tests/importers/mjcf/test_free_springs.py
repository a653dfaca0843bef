"""Springs of free joints are those of MuJoCo where the centre of mass is the origin of the body, and keep the pose of the file."""

import warnings

import mujoco
import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder
from newton_like.geometry.transforms import transform_multiply
from newton_like.solvers import SolverFeatherstone

BOX = """<mujoco><worldbody><body name="a" pos="0 0 1" euler="20 30 0"><joint type="free" name="f" {}/>
<geom type="box" size=".1 .05 .03" mass="2"/></body></worldbody>
<keyframe><key name="aside" qpos=".3 .2 1.1 .8 .6 0 0"/></keyframe></mujoco>"""


def _read(text: str, **options):
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return builder, builder.add_mjcf(text, **options)


def test_a_box_on_springs_moves_as_in_mujoco():
    text = BOX.format('stiffness="30" damping=".5"')
    reference = mujoco.MjModel.from_xml_string(text)
    reference.opt.timestep = 1e-4
    data = mujoco.MjData(reference)
    mujoco.mj_resetDataKeyframe(reference, data, 0)
    model = _read(text, keyframe="aside")[0].finalize("cpu", dtype=wp.float64)
    solver, state = SolverFeatherstone(model, evaluator="general"), model.state()
    for _ in range(500):
        mujoco.mj_step(reference, data, 10)
        solver.step(state, state, dt=1e-3)
    q = state.joint_q.numpy()
    np.testing.assert_allclose(q[:3], data.qpos[:3], atol=3e-3)
    assert abs(q[[6, 3, 4, 5]] @ data.qpos[3:]) > 1.0 - 1e-5


@pytest.mark.parametrize("gain", ["joint_stiffness", "joint_target_ke"])
def test_poses_of_springs_and_drives_move_with_copies(gain):
    builder, _ = _read(BOX.format('stiffness="0"'))
    pose = np.array(builder.joint_q)
    getattr(builder, gain)[:6] = [5.0] * 6
    name = "joint_rest_q" if gain == "joint_stiffness" else "joint_target_q"
    setattr(builder, name, pose.tolist())
    scene = ModelBuilder()
    turn = np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.6, 0.8])
    scene.add_builder(builder, xform=turn)
    np.testing.assert_allclose(getattr(scene, name), transform_multiply(turn, pose), atol=1e-6)
    np.testing.assert_allclose(getattr(scene, name), scene.joint_q, atol=1e-6)


def test_velocities_of_drives_turn_with_copies():
    builder, _ = _read(BOX.format('stiffness="0"'))
    builder.joint_target_qd[:6] = builder.joint_qd[:6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    scene = ModelBuilder()
    scene.add_builder(builder, xform=(0.0, 0.0, 0.0, 0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)))
    builder.joint_target_kd[:6] = [5.0] * 6
    scene.add_builder(builder, xform=(0.0, 0.0, 0.0, 0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)))
    np.testing.assert_allclose(scene.joint_qd, [-2.0, 1.0, 3.0, -5.0, 4.0, 6.0] * 2, atol=1e-6)
    np.testing.assert_allclose(scene.joint_target_qd[6:], scene.joint_qd[6:], atol=1e-6)
    assert scene.joint_target_qd[:6] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_the_place_of_the_file_is_that_of_rest_at_any_start():
    builder, report = _read(BOX.format('stiffness="30"'), keyframe="aside")
    start, _ = _read(BOX.format('stiffness="30"'))
    np.testing.assert_allclose(builder.joint_rest_q, start.joint_q)
    assert not np.allclose(builder.joint_rest_q, builder.joint_q)
    assert any("springs" in remark and "centre of mass" in remark for remark in report.remarks)
