"""The table of inputs and outputs of a step."""

from types import SimpleNamespace

from newton_like.solvers.featherstone.arrays import INPUTS, OUTPUTS, arrays_of


def test_the_kernel_finds_wrenches_first():
    assert INPUTS[0].field.row == "wrench"
    assert [port.field.row for port in INPUTS].count("wrench") == 1


def test_arrays_come_in_the_order_of_the_table():
    owners = {
        owner: SimpleNamespace(**{p.name: f"{owner}.{p.name}" for p in (*INPUTS, *OUTPUTS) if p.owner == owner})
        for owner in ("state_in", "control", "state_out")
    }
    assert arrays_of(**owners) == tuple(f"{port.owner}.{port.name}" for port in (*INPUTS, *OUTPUTS))
