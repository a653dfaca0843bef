"""Checks of arrays and selections that functions over articulations are given."""

from __future__ import annotations

import numpy as np
import warp as wp


def check_array(model, array, name: str, dtype, shape: tuple[int, ...]) -> wp.array:
    """The array, if a kernel can use it.

    Raises:
        TypeError: no Warp array, or another scalar type.
        ValueError: another shape or device, or gaps between its entries.
    """
    if not isinstance(array, wp.array):
        raise TypeError(f"{name} must be a Warp array of {dtype.__name__}, not {type(array).__name__}")
    if array.dtype is not dtype and not wp.types.types_equal(array.dtype, dtype):
        raise TypeError(f"{name} holds {array.dtype.__name__}; this model needs {dtype.__name__}")
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; this model needs {shape}")
    if array.device != model.device:
        raise ValueError(
            f"{name} is on {array.device} and the model on {model.device}; use {name}.to('{model.device}')"
        )
    if not array.is_contiguous:
        raise ValueError(f"{name} is not contiguous; pass {name}.contiguous()")
    return array


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
        given = given.numpy()
    values = np.asarray(given)
    if values.size == 0:
        values = values.astype(bool if indices is None else np.int64)
    if not (np.issubdtype(values.dtype, np.integer) or (indices is None and values.dtype == bool)):
        wanted = "bools" if indices is None else "integers"
        raise TypeError(f"{name} must hold {wanted}, not {values.dtype}")
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
