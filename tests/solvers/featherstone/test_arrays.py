"""The table of inputs and outputs of a step."""

from types import SimpleNamespace

import pytest

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
