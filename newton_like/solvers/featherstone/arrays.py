"""What comes in and goes out of a step: one table of arrays by name."""

from __future__ import annotations

from dataclasses import dataclass

from newton_like.arrays import flat
from newton_like.model.state import State
from newton_like.programs.program import Field


@dataclass(frozen=True)
class Port:
    """An array that a step reads or writes.

    Attributes:
        owner: the argument of ``step`` that has it.
        name: under which name.
        field: where its numbers go.
        needed: whether the array must exist; a missing input is zero.
    """

    owner: str
    name: str
    field: Field
    needed: bool = True


INPUTS = (
    # the kernel takes the first one for wrenches, which it looks for before it brings them in
    Port("state_in", "body_f", Field("wrench", "bodies", 6), needed=False),
    Port("state_in", "joint_q", Field("q", "coords")),
    Port("state_in", "joint_qd", Field("v", "dofs")),
    Port("control", "joint_f", Field("force", "dofs"), needed=False),
    Port("control", "joint_target_q", Field("target_q", "coords"), needed=False),
    Port("control", "joint_target_qd", Field("target_v", "dofs"), needed=False),
    Port("control", "joint_act", Field("act", "dofs"), needed=False),
)
OF_TENDONS = tuple(
    Port("control", name, Field(name, "tendons"), needed=False)
    for name in ("tendon_f", "tendon_target_q", "tendon_target_qd")
)
"""Further inputs of models with tendons."""
OF_ACTUATORS = (
    Port("control", "actuator_ctrl", Field("actuator_ctrl", "actuators"), needed=False),
    Port("state_in", "actuator_act", Field("actuator_act", "actuators")),
)
"""Further inputs of models with actuators."""

OUTPUTS = (
    Port("state_out", "joint_q", Field("q", "coords")),
    Port("state_out", "joint_qd", Field("v", "dofs")),
    Port("state_out", "body_q", Field("body_q", "bodies", 7)),
    Port("state_out", "body_qd", Field("body_qd", "bodies", 6)),
    # exists on request
    Port("state_out", "joint_qdd", Field("joint_qdd", "dofs"), needed=False),
)
ACTIVATIONS = (Port("state_out", "actuator_act", Field("actuator_act", "actuators")),)
"""Further outputs of models with actuators."""


class Ports:
    """The arrays of a step, as a table.

    Args:
        inputs, outputs: ports.

    Attributes:
        arrays_of: function of ``state_in, control, state_out``: the arrays in the order of the table; None where there is none.
    """

    def __init__(self, inputs: tuple[Port, ...], outputs: tuple[Port, ...] = OUTPUTS):
        self.inputs, self.outputs = inputs, outputs
        self._all = (*inputs, *outputs)
        self._names = [f"{port.owner}.{port.name}" for port in self._all]
        # written from the table once: in a step of one world, getting the names of attributes would take a tenth of the time
        found = [
            f"getattr({port.owner}, {port.name!r}, None)" if port.name in State._on_request else name
            for port, name in zip(self._all, self._names, strict=True)
        ]
        self.arrays_of = eval(f"lambda state_in, control, state_out: ({', '.join(found)})")

    def check_arguments(self, state_in, control, state_out) -> None:
        """Raises TypeError for the first argument of a step that is of another kind than it should be."""
        a_state, a_control = "a State, as model.state() makes it", "None or a Control, as model.control() makes it"
        for name, value, wanted, ports in (
            ("state_in", state_in, a_state, self.inputs),
            ("state_out", state_out, a_state, self.outputs),
            ("control", control, a_control, self.inputs if control is not None else ()),
        ):
            needed = [p.name for p in ports if p.owner == name and p.name not in State._on_request]
            if not all(hasattr(value, each) for each in needed):
                order = "the arguments are step(state_in, state_out, control, contacts, dt)"
                raise TypeError(f"{name} must be {wanted}, not {type(value).__name__}; {order}")

    def after(self, inputs: list, outputs: list) -> list:
        """The inputs of a step that follows: coordinates and velocities are those of the outputs."""
        here = {port.name: array for port, array in zip(self.outputs, outputs, strict=True)}
        return [
            here[port.name]
            if port.owner == "state_in" and port.name in here and array.ptr != here[port.name].ptr
            else array
            for port, array in zip(self.inputs, inputs, strict=True)
        ]

    def check_arrays(self, model, arrays) -> tuple[list, list]:
        """Inputs and outputs as rows of numbers, None where there is none.

        Raises:
            ValueError: an array that is needed does not exist, or one belongs to another model.
        """
        rows = []
        for port, name, array in zip(self._all, self._names, arrays, strict=True):
            if array is None and port.needed:
                raise ValueError(f"{name} is None; states come from model.state()")
            scalar = None if array is None else getattr(array.dtype, "_wp_scalar_type_", array.dtype)
            if scalar not in (None, model.dtype):
                raise ValueError(
                    f"{name} has the type {scalar.__name__}, but the model has {model.dtype.__name__}; "
                    "states and controls come from model.state() and model.control()"
                )
            row = None if array is None else flat(array, model.dtype)
            if row is not None and (row.size != port.field.length(model) or row.device != model.device):
                raise ValueError(
                    f"{name} has {row.size} numbers on {row.device}, the model needs {port.field.length(model)} on {model.device}; "
                    "states and controls come from model.state() and model.control()"
                )
            rows.append(row)
        return rows[: len(self.inputs)], rows[len(self.inputs) :]


PLAIN, WITH_TENDONS = Ports(INPUTS), Ports((*INPUTS, *OF_TENDONS))
WITH_ACTUATORS = Ports((*INPUTS, *OF_TENDONS, *OF_ACTUATORS), (*OUTPUTS, *ACTIVATIONS))
"""The ports of models without tendons and actuators, with tendons, and with actuators."""
