"""Models: their controls and their device."""

import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder
from newton_like.model.custom import AttributeAssignment, AttributeFrequency


def test_controls_may_share_the_arrays_of_their_model():
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    builder.add_custom_attribute(
        ModelBuilder.CustomAttribute(
            name="heat",
            frequency=AttributeFrequency.JOINT_DOF,
            assignment=AttributeAssignment.CONTROL,
            dtype=wp.float32,
        )
    )
    model = builder.finalize("cpu")
    own, shared = model.control(), model.control(clone_variables=False)
    for name in ("joint_f", "joint_target_q", "joint_target_qd", "joint_act"):
        assert getattr(shared, name) is getattr(model, name)
        assert getattr(own, name).ptr != getattr(model, name).ptr
    assert model.control(clone_variables=False).heat.ptr == shared.heat.ptr != own.heat.ptr
    assert shared.clone().joint_f.ptr != model.joint_f.ptr
    with pytest.raises(ValueError, match=r"requires_grad.*clone_variables"):
        model.control(requires_grad=True, clone_variables=False)


def test_devices_that_do_not_exist_are_named():
    for device in ("cuda:77", "gpu", 5):
        with pytest.raises((ValueError, RuntimeError), match=f"{device!r}.*'cpu'"):
            ModelBuilder().finalize(device)


def test_a_cleared_control_has_the_targets_of_a_model(rng):
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    model = builder.finalize("cpu")
    control, targets = model.control(), rng.normal(size=7)
    for array in (control.joint_f, control.joint_target_q, control.joint_target_qd):
        array.assign(rng.normal(size=array.shape))
    control.joint_target_q.assign(targets)
    control.clear()
    assert not control.joint_f.numpy().any()
    assert not control.joint_target_qd.numpy().any()
    np.testing.assert_allclose(control.joint_target_q.numpy(), targets, rtol=1e-6)
    control.clear(model)
    np.testing.assert_array_equal(control.joint_target_q.numpy(), model.joint_target_q.numpy())
