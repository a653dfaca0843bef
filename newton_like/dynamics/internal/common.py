"""Shared code of the functions of the dynamics library: checking inputs, representations, running programs and returning results."""

from __future__ import annotations

from enum import Enum
from functools import cache, lru_cache

import numpy as np
import warp as wp

from newton_like.arrays import active_tape, check_recorded, constant_array
from newton_like.dynamics.internal.buffers import buffers_of
from newton_like.model.arguments import as_numbers, check_array, check_finite, check_made_by, check_model
from newton_like.programs.program import Field, Program
from newton_like.programs.run import run
from newton_like.types import VelRepr, warp_types

Q, V = Field("q", "coords"), Field("v", "dofs")
DIMENSIONS = 4
"""Largest number of dimensions of Warp's arrays."""


def columns(model) -> int:
    """Degrees of freedom of the largest articulation: columns of dense matrices."""
    return model.max_dofs_per_articulation


def links(model) -> int:
    """Joints of the largest articulation, equal to its links."""
    return model.max_joints_per_articulation


def representation(value, name: str = "repr") -> int:
    """A representation as an integer of the programs; 0 for None, the joint's own velocities.

    Raises:
        ValueError: not a representation.
    """
    return 0 if value is None else int(velocity_representation(value, name, "None or "))


def velocity_representation(value, name: str, other: str = "") -> VelRepr:
    """A representation, from a `VelRepr` or its number. Raises ValueError for other values."""
    if isinstance(value, VelRepr):
        return value
    try:
        if isinstance(value, bool | np.bool_ | Enum) or not isinstance(value, int | np.integer):
            raise ValueError
        return VelRepr(value)
    except ValueError:
        names = ", ".join(f"VelRepr.{r.name}" for r in VelRepr)
        raise ValueError(f"{name}={value!r} is not a representation; use {other}one of {names}") from None


def state_arrays(model, state, velocities: bool = True) -> list[wp.array]:
    """Checks ``joint_q`` and ``joint_qd`` of a state (or of another object with these attributes) and returns them.

    Raises:
        TypeError: `model` is not a model, or `state` lacks the attributes.
        TypeError, ValueError: wrong scalar type, shape or device, or numbers that are not finite.
        ValueError: another model made the state.
    """
    check_state(check_model(model), state, "state", velocities)
    shape, starts = (model.joint_coord_count,), model.joint_q_start
    arrays = [input_array(model, state.joint_q, "state.joint_q", model.dtype, shape, starts)]
    if velocities:
        shape, starts = (model.joint_dof_count,), model.joint_qd_start
        arrays.append(input_array(model, state.joint_qd, "state.joint_qd", model.dtype, shape, starts))
    check_made_by(model, state, "state")
    return arrays


def check_state(model, state, name: str, velocities: bool = True) -> None:
    """Raises TypeError for an object without the arrays of a state."""
    if not hasattr(state, "joint_q") or (velocities and not hasattr(state, "joint_qd")):
        raise TypeError(f"{name} must be a State, as model.state() makes it, not {type(state).__name__}")


def joints_changed(state) -> None:
    """Tells a state whose joint arrays were written, if it keeps quantities that follow from them."""
    if hasattr(state, "joints_changed"):
        state.joints_changed()


def input_array(model, array, name: str, dtype, shape: tuple[int, ...], starts: wp.array | None = None) -> wp.array:
    """Checks an input array of a program. With `starts`, the first index of each joint, errors name the joint.

    Raises:
        TypeError, ValueError: wrong scalar type, shape or device, or numbers that are not finite.
    """
    check_array(model, array, name, dtype, shape)

    def whose(i: int) -> str:
        j = int(np.searchsorted(starts.numpy(), i, side="right")) - 1
        return f"joint '{model.joint_label[j]}', index {j}, of world {int(model.joint_world.numpy()[j])}"

    return check_finite(model, array, name, None if starts is None else whose)


@lru_cache(maxsize=256)
def constants(values: tuple[float, ...], dtype, device: str) -> wp.array:
    """A constant array for programs. Equal numbers give the same array, so that recorded launches are reused."""
    return constant_array(values, dtype, wp.get_device(device))


def to_device(model, value, name: str) -> wp.array:
    """Returns a Warp array as it is, or numbers from the host as an array that is valid until the next call with that name.

    Raises:
        TypeError: not real numbers.
        ValueError: numbers that are not finite, or beyond the model's scalar type.
    """
    if isinstance(value, wp.array):
        return value
    return buffers_of(model).holding(name, finite_numbers(model, as_numbers(value, name), name))


def finite_numbers(model, numbers: np.ndarray, name: str) -> np.ndarray:
    """Converts numbers from the host to the model's scalar type.

    Raises:
        ValueError: numbers that are not finite or beyond that type, or too many dimensions.
    """
    check_recorded(model.device, f"{name} from the host")
    if numbers.ndim > DIMENSIONS:
        raise ValueError(f"{name} has shape {numbers.shape}; arrays have at most {DIMENSIONS} dimensions")
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} contains numbers that are not finite")
    with np.errstate(over="ignore"):
        result = numbers.astype(wp.dtype_to_numpy(model.dtype), copy=False)
    if not np.isfinite(result).all():
        raise ValueError(f"{name} holds {numbers[~np.isfinite(result)][0]:g}, which is beyond {model.dtype.__name__}")
    return result


@cache
def dof_fields(row: str) -> tuple[Field, Field]:
    """Fields with one number for each degree of freedom: of a flat array, and of an array with a row for each articulation."""
    return Field(row, "dofs"), Field(row, "articulations", columns)


def dof_vector(model, value, name: str, row: str) -> tuple[Field, wp.array | None]:
    """One number for each degree of freedom: ``[joint_dof_count]`` or ``[articulation_count, max_dofs]``; None: zeros.

    Raises:
        TypeError, ValueError: wrong scalar type, shape or device, or numbers that are not finite.
    """
    flat, dense = dof_fields(row)
    if value is None:
        return flat, None
    array = to_device(model, value, name)
    if array.ndim == 1:
        return flat, input_array(model, array, name, model.dtype, (model.joint_dof_count,))
    return dense, input_array(model, array, name, model.dtype, (model.articulation_count, columns(model)))


def six_by_link(model) -> int:
    """Numbers of an articulation with six for each link."""
    return 6 * links(model)


@cache
def _link_fields(row: str) -> tuple[Field, Field]:
    return Field(row, "bodies", 6), Field(row, "articulations", six_by_link)


def link_vectors(model, value, name: str, row: str) -> tuple[Field, wp.array | None]:
    """Six numbers for each link: ``[body_count]`` spatial vectors, ``[body_count, 6]``, or ``[articulation_count, max_links, 6]``;
    None: zeros. In programs, link k starts at ``row + 6 * T.body_slot[k]`` for the first two, and at ``row + 6 * k`` for the last,
    for which ``T.wrenches_by_link`` is 1.

    Raises:
        TypeError, ValueError: wrong scalar type, shape or device, or numbers that are not finite.
    """
    flat, dense = _link_fields(row)
    if value is None:
        return flat, None
    array = to_device(model, value, name)
    if array.ndim == 1 and array is not value:
        raise ValueError(
            f"{name} has shape {array.shape}; this model needs {(model.body_count, 6)}, or "
            f"{(model.articulation_count, links(model), 6)}"
        )
    if array.ndim == 3:
        return dense, input_array(model, array, name, model.dtype, (model.articulation_count, links(model), 6))
    if array.ndim == 1:
        return flat, input_array(model, array, name, warp_types(model.dtype).spatial_vector, (model.body_count,))
    return flat, input_array(model, array, name, model.dtype, (model.body_count, 6))


def has_gradients(model, inputs) -> bool:
    """Whether a tape is active and results of `inputs` and of the model's masses, centres of mass, inertias and gravity need gradients."""
    if active_tape() is None:
        return False
    constants = (model.body_mass, model.body_com, model.body_inertia, model.gravity)
    return any(a is not None and a.requires_grad for a in (*inputs, *constants))


def output_array(
    model, out, shape: tuple[int, ...], grad: bool = False, name: str = "out", zeros: bool = True
) -> wp.array:
    """Checks the output array of a user, or makes a new one.

    Args:
        zeros: whether a new array holds zeros; False: undefined numbers, for callers that write all of them.

    Raises:
        TypeError, ValueError: `out` has the wrong scalar type, shape or device.
    """
    if out is None:
        if not zeros:
            return wp.array(shape=shape, dtype=model.dtype, device=model.device, requires_grad=grad)
        return wp.zeros(shape, dtype=model.dtype, device=model.device, requires_grad=grad)
    return check_array(model, out, name, model.dtype, shape)


def check_passes_gradients(inputs, outputs, name: str) -> None:
    """Raises ValueError if a tape records, an input has gradients, and an output has none."""
    if active_tape() is None or not any(a is not None and a.requires_grad for a in inputs):
        return
    if not all(a.requires_grad for a in outputs):
        raise ValueError(
            f"{name} has no gradient, but an input requires one: pass an array with requires_grad=True, omit {name}, or move the "
            "call out of the tape"
        )


def output_arrays(model, inputs, shapes, out=None, name: str = "out", zeros: bool = True) -> list[wp.array]:
    """Output arrays of the given shapes for results of `inputs`: those in `out` if given, else new ones, see :func:`output_array`."""
    grad = has_gradients(model, inputs)
    if out is None:
        return [output_array(model, None, shape, grad, name, zeros) for shape in shapes]
    given = list(out)
    if len(given) != len(shapes):
        raise ValueError(f"{name} must contain {len(shapes)} arrays, not {len(given)}")
    results = [output_array(model, array, shape, grad, name, zeros) for shape, array in zip(shapes, given, strict=True)]
    if grad:
        check_passes_gradients(inputs, [a for a in given if a is not None], name)
    return results


def by_articulation(model, shapes) -> list[tuple[int, ...]]:
    """The shapes with a leading dimension of ``articulation_count``."""
    return [(model.articulation_count, *shape) for shape in shapes]


def evaluate(model, program: Program, inputs, shapes, out=None, name: str = "out", mask=None):
    """Runs a program and returns its outputs.

    Args:
        model: the model.
        program: the program; every output is of the kind ``"articulations"``.
        inputs: arrays or None.
        shapes: for every output, its shape after ``[articulation_count]``.
        out: the output array (one output) or arrays; by default new ones.
        name: name of `out` in error messages.
        mask: bools of the selected articulations, or None.

    Returns:
        One array, or a tuple of arrays.

    Raises:
        TypeError, ValueError: `out` has the wrong scalar type, shape or device.
    """
    single = len(shapes) == 1
    given = [out] if single and out is not None else out
    # without a mask the program writes every number: each articulation has joints, and so belongs to a batch
    results = output_arrays(model, inputs, by_articulation(model, shapes), given, name, zeros=mask is not None)
    if model.articulation_count and any(a.size for a in results):
        run(model, program, [*inputs, *results], mask)
    return results[0] if single else tuple(results)
