"""The table of inputs and outputs of a step."""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

import newton_like as nl
from newton_like.solvers import SolverFeatherstone
from newton_like.solvers.featherstone.arrays import PLAIN, WITH_TENDONS


@pytest.mark.parametrize("ports", [PLAIN, WITH_TENDONS])
def test_the_kernel_finds_wrenches_first(ports):
    assert ports.inputs[0].field.row == "wrench"
    assert [port.field.row for port in ports.inputs].count("wrench") == 1


@pytest.mark.parametrize("ports", [PLAIN, WITH_TENDONS])
def test_arrays_come_in_the_order_of_the_table(ports):
    table = (*ports.inputs, *ports.outputs)
    owners = {
        owner: SimpleNamespace(**{p.name: f"{owner}.{p.name}" for p in table if p.owner == owner})
        for owner in ("state_in", "control", "state_out")
    }
    assert ports.arrays_of(**owners) == tuple(f"{port.owner}.{port.name}" for port in table)


@pytest.mark.parametrize("evaluator", ["general", pytest.param("specialised", marks=pytest.mark.slow)])
def test_accelerations_exist_on_request(evaluator):
    """Of a pendulum at rest on its side: g m l / I."""
    builder = nl.ModelBuilder()
    rod = builder.add_link(mass=2.0, com=(0.5, 0.0, 0.0), inertia=np.diag([0.1, 0.1, 0.1]))
    builder.add_articulation([builder.add_joint_revolute(-1, rod, axis=(0, 1, 0))])
    model = builder.finalize("cpu")
    solver, plain = SolverFeatherstone(model, evaluator=evaluator), model.state()
    solver.step(plain, plain, dt=1e-4)
    assert plain.joint_qdd is None
    by_hand = model.state()
    with pytest.raises(AttributeError, match="request_state_attributes"):
        by_hand.joint_qdd = wp.zeros(1, dtype=float, device="cpu")
    vars(by_hand)["joint_qdd"] = wp.zeros(1, dtype=float, device="cpu")
    with pytest.raises(ValueError, match="request_state_attributes"):
        solver.step(by_hand, by_hand, dt=1e-4)
    with pytest.raises(ValueError, match="no array 'joint_qddd'"):
        model.request_state_attributes("joint_qddd")
    model.request_state_attributes("joint_qdd")
    asked = model.state()
    solver.step(asked, asked, dt=1e-4)
    wanted = 9.81 * 2.0 * 0.5 / (0.1 + 2.0 * 0.25)
    assert asked.joint_qdd.numpy()[0] == pytest.approx(wanted, rel=1e-3)
    twin = asked.clone()
    twin.joint_qdd.zero_()
    twin.assign(asked)
    assert twin.joint_qdd.numpy()[0] == asked.joint_qdd.numpy()[0]
    with pytest.raises(ValueError, match=r"State\.joint_qdd\b"):
        twin.assign(plain)
