"""Checks of array arguments and selections of functions over articulations."""

from __future__ import annotations

import ctypes
import math
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded, flat, host_array
from newton_like.types import warp_types

SEARCHED = 8192
"""Largest number of entries for which arrays are checked for finite values by default: by one product, in half a microsecond. For larger
arrays the check takes a tenth of the functions' time and starts threads of the linear algebra library."""

_views: WeakKeyDictionary = WeakKeyDictionary()


def check_model(model):
    """Checks a model. Raises TypeError for other objects."""
    if not hasattr(model, "joint_coord_world_start"):
        cure = "; pass a Model: builder.finalize()" if hasattr(model, "finalize") else ""
        raise TypeError(f"model must be a Model, as ModelBuilder.finalize() makes it, not {type(model).__name__}{cure}")
    return model


OWN_STATE = "use a state made by model.state() of the given model, and State.assign to copy the numbers"


def check_made_by(model, state, name: str, cure: str = OWN_STATE) -> None:
    """Raises ValueError for a state, or other arrays, of another model. Objects that were not made by a model pass."""
    maker = getattr(state, "made_by", None)
    if maker is not None and maker is not model.made_by:
        raise ValueError(
            f"{name} belongs to another model ({_described(maker())}) and not to the given one ({_described(model)}); {cure}"
        )


def check_sizes(model, state, names: tuple[str, ...] = ("body_q",)) -> None:
    """Raises TypeError for an object without the arrays of a state, ValueError for arrays of other sizes. A state of a model of the same
    sizes passes, for example one on another device."""
    for name in names:
        if not hasattr(state, name):
            raise TypeError(f"state must be a State, as model.state() makes it, not {type(state).__name__}")
        found, wanted = len(getattr(state, name)), len(getattr(model, name))
        if found != wanted:
            raise ValueError(
                f"{name} of the state has {found} entries, but that of the model has {wanted}; use a state of this model"
            )


def finite_poses(model, state, time: float | None = None, bodies: np.ndarray | None = None) -> np.ndarray:
    """A copy of the poses of some bodies, or of all, ``[bodies, 7]``, for recorders and pictures; errors name the time [s], if given.

    Raises:
        TypeError, ValueError: see :func:`check_sizes`; a pose is not finite.
    """
    check_sizes(model, state)
    poses = state.body_q.numpy().reshape(-1, 7)
    poses = poses.copy() if bodies is None else poses[bodies]
    wrong = ~np.isfinite(poses).all(axis=1)
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        body = first if bodies is None else int(bodies[first])
        when = "" if time is None else f" at {time:g} s"
        raise ValueError(
            f"body {model.body_label[body]!r} (index {body}): its pose {poses[first].tolist()}{when} is not finite; "
            "the simulation diverged, use a smaller time step"
        )
    return poses


def _described(model) -> str:
    if model is None:
        return "that is gone"
    labels, count = [repr(label) for label in model.articulation_label[:3]], model.articulation_count
    more = ", ..." if count > len(labels) else ""
    return f"worlds: {model.world_count}, articulations: {count}{', ' if labels else ''}{', '.join(labels)}{more}"


def as_numbers(value, name: str, wanted: str = "an array of numbers") -> np.ndarray:
    """The result of :func:`newton_like.arrays.host_array` in float64."""
    return host_array(value, name, wanted).astype(np.float64, copy=False)


def constant_numbers(value, name: str, wanted: str = "an array of numbers") -> np.ndarray:
    """:func:`as_numbers` for values that are stored as constants without gradients.

    Raises:
        ValueError: a Warp array that requires a gradient.
    """
    if isinstance(value, wp.array) and value.requires_grad:
        raise ValueError(
            f"{name}: the array requires a gradient, but functions have no gradient with respect to it; pass array.numpy()"
        )
    return as_numbers(value, name, wanted)


def check_choice(value, name: str, choices) -> None:
    """Raises ValueError if a value is not one of the choices."""
    if not isinstance(value, str) or value not in choices:
        *others, last = map(repr, choices)
        raise ValueError(f"{name}={value!r} is unknown; use {', '.join(others)} or {last}")


def check_finite(model, array: wp.array, name: str, what=None) -> wp.array:
    """Checks that the numbers of an array are finite, unless :attr:`Model.check_finite` disables the check, and returns the array.

    Args:
        model: the model.
        array: contiguous, of the model's scalar type or of vectors or transforms of it.
        name: name of the array in error messages.
        what: ``what(index)`` names the entity of a number, for the error message.

    Raises:
        ValueError: a number is not finite.
    """
    mode = model.check_finite
    if mode is False or (mode == "auto" and (array.size > SEARCHED or array.device.is_cuda)):
        return array
    if array.device.is_cuda and array.device.is_capturing:
        return array
    known = _views.get(array)
    values, weights = _numbers(model, array) if known is None else known
    # the weighted sum cannot overflow for ordinary finite numbers
    if weights is not None and math.isfinite(values.dot(weights)):
        return array
    fine = np.isfinite(values)
    if not fine.all():
        at = int(np.argmin(fine))
        whose = f" ({what(at)})" if what is not None else ""
        raise ValueError(
            f"{name} holds {values[at]} at index {at}{whose}, and {fine.size - fine.sum()} numbers that are not finite in all; "
            "reset these worlds, or set model.check_finite = False to compute the other worlds"
        )
    return array


def _numbers(model, array: wp.array) -> tuple[np.ndarray, np.ndarray | None]:
    """The numbers of an array as one row, and small weights if there are at most `SEARCHED`; cached on CPUs for the array's lifetime."""
    if array.device.is_cuda:
        return array.numpy().ravel(), None
    real = ctypes.c_double if model.dtype is wp.float64 else ctypes.c_float
    row = flat(array, model.dtype)
    values = np.zeros(0, real)
    if row.size:
        # this view holds no reference to the array
        values = np.frombuffer((real * row.size).from_address(row.ptr), dtype=real)
    _views[array] = known = values, np.full(row.size, 1.0e-10, real) if array.size <= SEARCHED else None
    return known


def check_array(model, array, name: str, dtype, shape: tuple[int, ...]) -> wp.array:
    """Checks that a kernel can use an array, and returns it.

    Raises:
        TypeError: not a Warp array, or another scalar type.
        ValueError: another shape or device, or gaps between its entries.
    """
    if not isinstance(array, wp.array):
        raise TypeError(f"{name} must be a Warp array of {dtype.__name__}, not {type(array).__name__}")
    if array.dtype is not dtype and not wp.types.types_equal(array.dtype, dtype):
        raise TypeError(f"{name} has the type {array.dtype.__name__}; this model needs {dtype.__name__}")
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; this model needs {shape}")
    if array.device != model.device:
        raise ValueError(
            f"{name} is on {array.device} and the model on {model.device}; use {name}.to('{model.device}')"
        )
    if not array.is_contiguous:
        raise ValueError(f"{name} is not contiguous; pass {name}.contiguous()")
    return array


def check_row(model, array, name: str, count: int) -> wp.array:
    """The numbers of an array of scalars, vectors or transforms as one row, if a kernel can use them.

    Raises:
        TypeError: no Warp array, or another scalar type.
        ValueError: another number of numbers, another device, or gaps between its entries.
    """
    if not isinstance(array, wp.array):
        raise TypeError(f"{name} must be a Warp array, not {type(array).__name__}")
    scalar = getattr(array.dtype, "_wp_scalar_type_", array.dtype)
    if scalar is not model.dtype:
        raise TypeError(f"{name} holds {scalar.__name__}; this model needs {model.dtype.__name__}")
    row = flat(check_array(model, array, name, array.dtype, array.shape), model.dtype)
    if row.size != count:
        raise ValueError(f"{name} has {row.size} numbers; this model needs {count}")
    return row


_OF_STATES = {
    "joint_q": ("real", "joint_coord_count"),
    "joint_qd": ("real", "joint_dof_count"),
    "body_q": ("transform", "body_count"),
    "body_qd": ("spatial_vector", "body_count"),
}
"""Types and lengths of the arrays of a state."""


def arrays_of_state(model, state, *names: str) -> list[wp.array]:
    """Arrays of a state by their names, if kernels can use them.

    Raises:
        TypeError: no state, an array that is none, or one of another scalar type.
        ValueError: an array of another length or device, or with gaps.
    """
    kinds, arrays = warp_types(model.dtype), []
    for name in names:
        kind, count = _OF_STATES[name]
        try:
            array = getattr(state, name)
        except AttributeError:
            raise TypeError(f"state must be a State, as model.state() makes it, not {type(state).__name__}") from None
        arrays.append(check_array(model, array, f"state.{name}", getattr(kinds, kind), (getattr(model, count),)))
    return arrays


def selection(model, buffer: wp.array, mask=None, indices=None) -> wp.array | None:
    """The selected articulations as bools on the model's device; None for all.

    Args:
        model: the model.
        buffer: bools, one for each articulation, that are overwritten where the selection has to be copied.
        mask: bools or integers (0: not selected), one for each articulation: a Warp or NumPy array or a sequence.
        indices: articulations: integers, likewise.

    Raises:
        ValueError: both are given; wrong length, shape or device.
        TypeError: wrong scalar types.
        IndexError: an articulation does not exist.
        RuntimeError: a graph is being captured, and the selection has to be copied.
    """
    if mask is None and indices is None:
        return None
    if mask is not None and indices is not None:
        raise ValueError("mask and indices both select articulations; give one of them")
    count = model.articulation_count
    name, given = ("mask", mask) if indices is None else ("indices", indices)
    if isinstance(given, wp.array):
        if given.device != model.device:
            raise ValueError(
                f"{name} is on {given.device} and the model on {model.device}; use {name}.to('{model.device}')"
            )
        if indices is None and given.dtype is wp.bool and given.shape == (count,) and given.is_contiguous:
            return given
    check_recorded(model.device, f"{name} from the host")
    values = host_array(given, name)
    if values.size == 0:
        values = values.astype(bool if indices is None else np.int64)
    if not (np.issubdtype(values.dtype, np.integer) or (indices is None and values.dtype == bool)):
        wanted = "bools" if indices is None else "integers"
        raise TypeError(f"{name} must contain {wanted}, not {values.dtype}")
    if indices is None:
        if values.shape != (count,):
            raise ValueError(f"mask has shape {values.shape}; it needs one bool for each articulation: ({count},)")
        chosen = values != 0
    else:
        if values.ndim != 1:
            raise ValueError(f"indices has shape {values.shape}; it must be a list of articulations")
        wrong = values[(values < 0) | (values >= count)]
        if wrong.size:
            raise IndexError(f"indices: articulation {wrong[0]} does not exist; the model has {count}")
        chosen = np.zeros(count, dtype=bool)
        chosen[values] = True
    if count:
        buffer.assign(chosen)
    return buffer


def joint_selection(model, mask) -> wp.array | None:
    """Selected joints as bools on the model's device; None for all.

    Args:
        model: the model.
        mask: bools or integers (0: not selected), one for each joint: a Warp, NumPy or torch array or a sequence.

    Raises:
        ValueError: wrong length or device.
        TypeError: wrong scalar type.
    """
    if mask is None:
        return None
    shape = (model.joint_count,)
    if isinstance(mask, wp.array) and mask.dtype is wp.bool:
        return check_array(model, mask, "joint_mask", wp.bool, shape)
    values = host_array(mask, "joint_mask")
    if values.dtype != bool and not np.issubdtype(values.dtype, np.integer):
        raise TypeError(f"joint_mask must contain bools, not {values.dtype}")
    if values.shape != shape:
        raise ValueError(f"joint_mask has shape {values.shape}; it needs one bool for each joint: {shape}")
    check_recorded(model.device, "joint_mask from the host")
    return wp.array(values != 0, dtype=wp.bool, device=model.device)
