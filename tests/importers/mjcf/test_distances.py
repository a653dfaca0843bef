"""Distance equalities of MJCF files, which versions of MuJoCo before 2.2.2 have."""

import numpy as np

from newton_like.solvers import SolverFeatherstone
from newton_like.types import JointType
from tests.support.mjcf_texts import load, model
from tests.support.remarks import remarked

BALL = (
    '<body pos="{}"><freejoint/><geom name="{}" type="sphere" size="{}" mass="1" contype="0" conaffinity="0"/></body>'
)


def _bar(distance: str):
    bodies = BALL.format("0 0 1", "a", ".1") + BALL.format(".5 0 1", "b", ".15")
    tie = f'<equality><distance name="bar" geom1="a" geom2="b" {distance}/></equality></mujoco>'
    return load(model(bodies).replace("</mujoco>", tie))


def test_distances_of_spheres_hold_those_of_their_centres():
    builder, report = _bar('distance=".25"')
    joint = report.equalities[0].joint
    assert builder.joint_type[joint] == JointType.DISTANCE
    assert (builder.joint_min_distance[joint], builder.joint_max_distance[joint]) == (0.5, 0.5)
    scene = builder.finalize("cpu")
    solver, state = SolverFeatherstone(scene, evaluator="general"), scene.state()
    state.joint_qd.assign([0.0, 1.0, 0.0, 0.0, 0.0, 0.0, *[0.0] * 12])
    for _ in range(200):
        solver.step(state, state, dt=1e-3)
    ends = state.body_q.numpy()[:, :3]
    assert abs(np.linalg.norm(ends[1] - ends[0]) - 0.5) < 1e-4
    # both turn about their centre of mass at 2 rad/s
    assert abs(ends[0, 1] - 0.1 - 0.25 * np.sin(0.4)) < 1e-4


def test_distances_that_no_spheres_can_have_are_remarked():
    _, report = _bar('distance="-.3"')
    assert report.equalities[0].joint == -1
    assert remarked(report, "distances", "radii") == ["bar"]
    _, report = _bar('solref=".1 1"')
    assert remarked(report, "distances", "softness") == ["bar"]
