"""Errors of float32 a kilometre from the origin, against float64, where results name the origin or a place in the world.

Results relative to the robot have the same bits as at the origin: see test_kinematics, test_forces and test_momentum.
"""

import numpy as np
import pytest
import warp as wp

from newton_like import dynamics
from newton_like.types import VelRepr
from tests.support.random_trees import random_state, random_tree

FAR = np.array([600.0, -700.0, 400.0])


@pytest.mark.slow
def test_results_in_the_world_lose_some_digits_a_kilometre_away(rng):
    tree = random_tree(rng, joints=6, floating=True)
    tree.joint_X_p[0] = wp.transform(0, 0, 0, 0, 0, 0, 1)
    tree.add_joint_ball(-1, tree.body_count - 1, parent_xform=wp.transform(*(FAR + rng.normal(size=3)), 0, 0, 0, 1))
    models, given = [tree.finalize("cpu", dtype=dtype) for dtype in (wp.float32, wp.float64)], []
    q, qd = (np.asarray(x, np.float32) for x in random_state(models[0], rng))
    q[:3] += FAR.astype(np.float32)
    for model in models:
        model.evaluator, state = "general", model.state()
        state.joint_q.assign(q)
        state.joint_qd.assign(qd)
        given.append((model, state))

    def error(function, columns=None, **options):
        """The largest error, in some columns of the result, and the largest number of the exact one."""
        single, double = (function(model, state, **options) for model, state in given)
        if isinstance(single, tuple):  # constraint_jacobian: rows, and gaps
            single, double = single[1], double[1]
        exact = double.numpy()
        return np.abs(single.numpy() - exact)[..., :columns].max(), np.abs(exact).max()

    # half the spacing of numbers below 1024, 3.05e-5
    assert error(dynamics.link_transforms, columns=3)[0] < 7e-5
    assert error(dynamics.constraint_jacobian)[0] < 7e-5
    for function, share in (
        (dynamics.mass_matrix, 1e-6),
        (dynamics.link_jacobians, 1e-6),
        (dynamics.bias_forces, 2e-5),
    ):
        off, scale = error(function, repr=VelRepr.INERTIAL)
        assert off < share * scale
    # roundings of angular velocities, some 1e-7 of those of all joints, have a lever of a kilometre
    off, _ = error(dynamics.link_velocities, columns=3, repr=VelRepr.INERTIAL)
    assert off < 2e-4 * np.abs(qd[3:]).sum()
