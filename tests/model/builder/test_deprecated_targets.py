"""``target_pos`` and ``target_vel``, which Newton 1.8 accepts as names of ``target_q`` and ``target_qd``."""

import dataclasses

import numpy as np
import pytest

from newton_like.model import JointDofConfig, ModelBuilder


@pytest.mark.parametrize("slides", [False, True])
def test_joints_take_the_deprecated_names(slides):
    builder = ModelBuilder()
    add = builder.add_joint_prismatic if slides else builder.add_joint_revolute
    links = [builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(2)]
    with pytest.warns(DeprecationWarning, match=r"target_(pos|vel)\b.*target_qd?\b") as caught:
        joint = add(-1, links[0], axis="y", target_pos=0.3, target_vel=-2.0)
    assert {warning.filename for warning in caught} == {__file__}
    builder.add_articulation([joint, add(links[0], links[1], axis="y", target_q=0.1)])
    assert builder.joint_target_q == [0.3, 0.1]
    assert builder.joint_target_qd == [-2.0, 0.0]


def test_settings_of_an_axis_take_the_deprecated_names():
    with pytest.warns(DeprecationWarning, match="use target_q") as caught:
        axis = JointDofConfig(axis="z", target_pos=0.3)
    assert {warning.filename for warning in caught} == {__file__}
    assert (axis.target_q, axis.target_qd) == (0.3, None)
    assert dataclasses.replace(axis, target_q=0.5).target_q == 0.5
    assert axis.copy(armature=0.1).target_q == 0.3
    with pytest.warns(DeprecationWarning, match="use target_qd"):
        axis.target_vel = 2.0
    with pytest.warns(DeprecationWarning, match="use target_qd"):
        assert axis.target_vel == axis.target_qd == 2.0


def test_two_names_with_different_values_are_refused():
    with pytest.warns(DeprecationWarning), pytest.raises(ValueError, match=r"target_q=0\.1 and target_pos=0\.3"):
        JointDofConfig(target_q=0.1, target_pos=0.3)
