"""Reading and writing some entries of a flat array, with gradients."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import warp as wp

from newton_like.arrays import active_tape, check_recorded, flat, host_array
from newton_like.kernels.dynamics.entries import gather_entries
from newton_like.kernels.selection import return_kernel, scatter_kernel
from newton_like.model.arguments import check_array
from newton_like.selection.layout import Rows


class Part:
    """Some entries of an array.

    Attributes:
        shape, dtype: of what is read: ``[world, articulation, ...]``.
    """

    def __init__(self, array: wp.array, rows: Rows, dtype, unit: int | None = None):
        """Entries of type `dtype`; one that begins at row r begins at scalar ``r * unit`` of the array, by default ``r`` times its size."""
        self.array, self.rows, self.dtype = array, rows, dtype
        self.scalar, self._dense = _scalars(dtype)
        self._inner: tuple[int, ...] = array.shape[1:]
        self._width = self._dense * math.prod(self._inner)
        self._unit = self._width if unit is None else unit
        self.shape = rows.rows.shape + self._inner

    def read(self) -> wp.array:
        """The entries: the memory of the array where they lie at regular distances, else a copy, which a tape records."""
        rows = self.rows
        if not rows.size:
            return wp.empty(self.shape, dtype=self.dtype, device=self.array.device)
        if rows.strides is not None:
            unit = self._unit
            strides = [s * unit for s in rows.strides]
            if self._inner:
                strides += [self._dense * s for s in _dense_strides(self._inner)]
            return self._view(self.array, rows.first * unit, strides)
        copy = self._recorded_copy() if self.array.requires_grad and active_tape() is not None else self._copy()
        return self._view(copy, 0, [self._dense * s for s in _dense_strides(self.shape)])

    def write(self, values: wp.array, mask: wp.array | None) -> None:
        """Writes entries where the mask is true; everywhere without one. A tape records it where gradients are required.

        Raises:
            ValueError: a tape records values that require a gradient, and the array has none.
        """
        if not self.rows.size:
            return
        tape = active_tape()
        recorded = tape is not None and (self.array.requires_grad or values.requires_grad)
        if recorded and not self.array.requires_grad:
            raise ValueError(
                "values require a gradient, and the array that is written has none; make the state or control with requires_grad=True, or "
                "leave the call out of the tape"
            )
        if mask is None and self.rows.strides is not None and not recorded:
            wp.copy(self.read(), values)
            return
        if recorded and self.rows.strides is not None and values.ptr == self.read().ptr:
            return  # what was read is written back
        device = self.array.device
        places = self._places()
        chosen = wp.full(places.shape[:2], True, dtype=wp.bool, device=device) if mask is None else mask
        scalars = flat(values, self.scalar).reshape(places.shape)
        target = flat(self.array, self.scalar)
        wp.launch(
            scatter_kernel(self.scalar),
            dim=places.shape[:2],
            inputs=[places, chosen, scalars],
            outputs=[target],
            device=device,
            record_tape=False,
        )
        if recorded:
            tracked = [array for array in (self.array, values) if array.requires_grad]
            tape.record_func(lambda: _return_gradients(places, chosen, scalars, target), tracked)

    def _places(self) -> wp.array:
        return self.rows.scalars(self._unit, self._width, self.array.device)

    def _copy(self) -> wp.array:
        return wp.indexedarray(flat(self.array, self.scalar), [self._places().flatten()]).contiguous()

    def _recorded_copy(self) -> wp.array:
        places = self._places()
        places = places.reshape((-1, places.shape[2]))
        copy = wp.empty(places.shape, dtype=self.scalar, device=self.array.device, requires_grad=True)
        wp.launch(
            gather_entries(self.scalar),
            dim=places.shape,
            inputs=[flat(self.array, self.scalar), places],
            outputs=[copy],
            device=self.array.device,
        )
        return copy

    def _view(self, array: wp.array, offset: int, strides) -> wp.array:
        size = wp.types.type_size_in_bytes(self.scalar)
        place = {"shape": self.shape, "strides": tuple(size * s for s in strides), "device": array.device}
        grad = None
        if array.requires_grad and array.grad is not None:
            grad = wp.array(ptr=array.grad.ptr + size * offset, dtype=self.dtype, **place)
            grad._ref = array.grad
        view = wp.array(ptr=array.ptr + size * offset, dtype=self.dtype, grad=grad, **place)
        view._ref = array
        return view


def as_values(model, part: Part, values, name: str) -> wp.array:
    """Values for a part as a contiguous array of its shape and type.

    Raises:
        TypeError, ValueError: they have another type, shape or device, or are not finite.
    """
    shape, inner = part.shape, getattr(part.dtype, "_shape_", ())
    if isinstance(values, wp.array):
        if inner and values.dtype is part.scalar and values.shape == shape + inner:
            values = values.contiguous().view(part.dtype)
        return check_array(model, values.contiguous(), name, part.dtype, shape)
    host = host_array(values, name)
    if host.dtype.kind == "f" and not np.all(np.isfinite(host)):
        raise ValueError(f"{name} holds numbers that are not finite")
    try:
        host = np.broadcast_to(host, shape + inner)
    except ValueError:
        raise ValueError(f"{name} has shape {host.shape}; it must broadcast to {shape + inner}") from None
    check_recorded(model.device, f"{name} from the host")
    return wp.array(np.ascontiguousarray(host), dtype=part.dtype, device=model.device)


def as_mask(mask, shape: tuple[int, int], device) -> wp.array:
    """A mask of worlds ``[world]`` or articulations ``[world, articulation]`` as bools of articulations on the device.

    Raises:
        TypeError: it holds no bools.
        ValueError: it has another shape or device.
    """
    if not isinstance(mask, wp.array):
        host = host_array(mask, "mask")
        if host.dtype != bool:
            raise TypeError(f"mask must hold bools, not {host.dtype}")
        check_recorded(device, "mask from the host")
        mask = wp.array(host, dtype=wp.bool, device=device)
    if mask.dtype is not wp.bool:
        raise TypeError(f"mask must hold bools, not {mask.dtype.__name__}")
    if mask.shape not in (shape, shape[:1]) or mask.device != device:
        raise ValueError(
            f"mask has shape {mask.shape} on {mask.device}; it must have {shape[:1]} or {shape} on {device}"
        )
    if mask.ndim == 2:
        return mask
    spread = wp.array(ptr=mask.ptr, dtype=wp.bool, shape=shape, strides=(mask.strides[0], 0), device=device)
    spread._ref = mask
    return spread


def _return_gradients(places: wp.array, chosen: wp.array, values: wp.array, target: wp.array) -> None:
    """The gradient of what was written belongs to the values; what was overwritten has none."""
    given = values.grad if values.requires_grad else wp.zeros(0, dtype=values.dtype, device=values.device)
    wp.launch(
        return_kernel(values.dtype),
        dim=places.shape[:2],
        inputs=[places, chosen],
        outputs=[target.grad, given.flatten()],
        device=places.device,
        record_tape=False,
    )


@cache
def _scalars(dtype) -> tuple[type, int]:
    """Scalar type of an entry of a type, and how many of them it has."""
    return getattr(dtype, "_wp_scalar_type_", dtype), math.prod(getattr(dtype, "_shape_", ()))


def _dense_strides(shape: tuple[int, ...]) -> list[int]:
    """Distances of neighbours along each axis of an array without gaps."""
    return np.cumprod([1, *shape[:0:-1]])[::-1].tolist() if shape else []
