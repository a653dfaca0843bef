"""Chosen instances and items of an asset, and the values that are written for them."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded, host_array, is_captured, keep_for_graph
from newton_like.kernels.articulation.scatter import scatter_kernels


class Chosen:
    """Some instances, joints, bodies or tendons.

    Attributes:
        size: number of all of them.
        count: number of chosen ones.
        everything: whether all are chosen, in their order.
        masked: whether a mask chose them.
        indices: the chosen ones, int.
    """

    def __init__(self, indices: np.ndarray | None, size: int, device, masked: bool = False):
        self.size, self.masked, self._device = size, masked, device
        self.everything = indices is None
        self.count = size if indices is None else len(indices)
        self._indices, self._array = indices, None

    @property
    def indices(self) -> np.ndarray:
        if self._indices is None:
            self._indices = np.arange(self.size)
        return self._indices

    @property
    def array(self) -> wp.array:
        """The indices on the device; without entries: all."""
        if self._array is None:
            numbers = np.zeros(0, dtype=np.int32) if self.everything else self._indices
            self._array = wp.array(numbers, dtype=wp.int32, device=self._device)
        return self._array


def choose(ids, size: int, device, what: str, everything: Chosen | None = None) -> Chosen:
    """Instances or items as :class:`Chosen`.

    Args:
        ids: None: all; a slice, an index, a list or array of indices, or a mask of `size` bools, of NumPy, Warp or torch.
        size: number of instances or items.
        device: device of the result.
        what: name of the argument in error messages.
        everything: the result for None.

    Raises:
        IndexError: an index does not exist.
        ValueError: an index occurs twice; a mask of another length.
        TypeError: not indices.
    """
    if isinstance(ids, Chosen):
        return ids
    if ids is None or (isinstance(ids, slice) and ids == slice(None)):
        return Chosen(None, size, device) if everything is None else everything
    check_recorded(device, what)
    if isinstance(ids, slice):
        return Chosen(np.arange(size)[ids].astype(np.int32), size, device)
    numbers = np.atleast_1d(host_array(ids, what, "indices, a slice or a mask")).ravel()
    if numbers.dtype == bool:
        if numbers.size != size:
            raise ValueError(f"{what}: the mask has {numbers.size} entries; it needs {size}")
        return Chosen(np.flatnonzero(numbers).astype(np.int32), size, device, masked=True)
    if not numbers.size:
        return Chosen(np.zeros(0, dtype=np.int32), size, device)
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"{what} must hold indices or bools, not {numbers.dtype}")
    wrong = numbers[(numbers < 0) | (numbers >= size)]
    if wrong.size:
        raise IndexError(f"{what}: index {wrong[0]} does not exist; there are {size}")
    if np.unique(numbers).size != numbers.size:
        again = int(np.flatnonzero(np.bincount(numbers) > 1)[0])
        raise ValueError(f"{what} contains the index {again} twice; give each index once")
    return Chosen(numbers.astype(np.int32), size, device)


_FEW = 8192
"""Up to so many values are written without a launch on a CPU."""


def write(target: wp.array, rows: Chosen, items: Chosen, values, name: str) -> None:
    """Writes values into chosen rows and items of an array.

    Args:
        target: ``[instances, items]`` or ``[instances, items, numbers]`` scalars, of any strides.
        rows, items: what is written.
        values: numbers that broadcast to ``[chosen rows, chosen items, numbers]``. If `rows` is a mask, also those of all instances.
        name: name of the values in error messages.

    Raises:
        TypeError: not numbers.
        ValueError: another shape, or numbers that are not finite.
    """
    put(target, rows, items, prepared(target, rows, items, values, name))


def prepared(target: wp.array, rows: Chosen, items: Chosen, values, name: str) -> tuple:
    """Values that :func:`put` writes. Arguments and errors are those of :func:`write`."""
    return _as_array(target, values, (rows.count, items.count, *target.shape[2:]), rows, name)


def put(target: wp.array, rows: Chosen, items: Chosen, values: tuple) -> None:
    """Writes what :func:`prepared` gave."""
    given, own = values
    if not rows.count or not items.count:
        return
    captured = is_captured(target.device)
    if target.device.is_cpu and not captured and rows.count * items.count <= _FEW:
        _put_few(target.numpy(), rows, items, given if isinstance(given, np.ndarray) else given.numpy(), own)
        return
    if isinstance(given, np.ndarray):
        if target.device.is_cpu and rows.everything and items.everything:
            np.copyto(target.numpy(), given)
            return
        given = wp.array(np.ascontiguousarray(given), dtype=target.dtype, device=target.device)
    if captured:
        keep_for_graph(target.device, given)
    elif rows.everything and items.everything:
        if target.device.is_cpu:
            # a copy of Warp between arrays with gaps takes five times as long
            np.copyto(target.numpy(), given.numpy())
        else:
            wp.copy(target, given)
        return
    wp.launch(
        scatter_kernels(target.dtype).scatter,
        dim=(rows.count, items.count),
        inputs=[rows.array, items.array, own, _deep(given)],
        outputs=[_deep(target)],
        device=target.device,
    )


def _put_few(target: np.ndarray, rows: Chosen, items: Chosen, given: np.ndarray, own: bool) -> None:
    """Writes few values on the host. A launch takes as long as some thousands of them."""
    given = given[rows.indices] if own else given
    if rows.everything or items.everything:
        chosen = slice(None) if rows.everything else rows.indices
        target[chosen, slice(None) if items.everything else items.indices] = given
    else:
        target[np.ix_(rows.indices, items.indices)] = given


def _deep(array: wp.array) -> wp.array:
    """An array with a third dimension, in place."""
    if array.ndim == 3:
        return array
    size = wp.types.type_size_in_bytes(array.dtype)
    deep = wp.array(
        ptr=array.ptr, dtype=array.dtype, shape=(*array.shape, 1), strides=(*array.strides, size), device=array.device
    )
    deep._ref = array
    return deep


def _as_array(target: wp.array, values, shape: tuple[int, ...], rows: Chosen, name: str) -> tuple:
    """Values as an array of the shape, of NumPy or Warp, and whether its rows are those of all instances."""
    whole = (rows.size, *shape[1:])
    if hasattr(values, "detach") and getattr(values, "is_cuda", False):
        values = wp.from_torch(values.detach().contiguous())
    if isinstance(values, wp.array):
        values = scalars(values)
        if values.dtype is target.dtype and values.device == target.device:
            if values.shape == shape:
                return values, False
            if rows.masked and values.shape == whole:
                return values, True
    check_recorded(target.device, f"{name} from the host")
    numbers = host_array(values, name)
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    numbers = numbers.astype(wp.dtype_to_numpy(target.dtype), copy=False)
    if numbers.shape == shape:
        return numbers, False
    if numbers.shape == whole and rows.masked:
        return numbers[rows.indices], False
    try:
        return np.broadcast_to(numbers, shape), False
    except ValueError:
        raise ValueError(f"{name} has shape {numbers.shape}; it must be {shape}, or broadcast to it") from None


def as_device(
    values, rows: Chosen, inner: tuple[int, ...], dtype, device, name: str, quaternion_at: int | None = None
) -> wp.array:
    """Values of chosen rows as an array on the device, ``[chosen rows, *inner]``.

    Args:
        values: numbers that broadcast to this shape; if `rows` is a mask, also those of all rows.
        rows: chosen rows.
        inner: shape of a row.
        dtype, device: of the result.
        name: name of the values in error messages.
        quaternion_at: where a quaternion begins in a row, which must not be zero; numbers of Warp are not looked at.

    Raises:
        TypeError: not numbers.
        ValueError: another shape; numbers that are not finite; a zero quaternion.
    """
    shape = (rows.count, *inner)
    if hasattr(values, "detach") and getattr(values, "is_cuda", False):
        values = wp.from_torch(values.detach().contiguous())
    if isinstance(values, wp.array):
        values = scalars(values)
        if values.dtype is dtype and values.device == device and values.shape == shape:
            if is_captured(device):
                keep_for_graph(device, values)
            return values
    check_recorded(device, f"{name} from the host")
    numbers = host_array(values, name)
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    if rows.masked and numbers.shape == (rows.size, *inner):
        numbers = numbers[rows.indices]
    try:
        numbers = np.broadcast_to(numbers, shape)
    except ValueError:
        raise ValueError(f"{name} has shape {numbers.shape}; it must be {shape}, or broadcast to it") from None
    if quaternion_at is not None:
        length = np.linalg.norm(numbers[..., quaternion_at : quaternion_at + 4], axis=-1)
        if (length == 0.0).any():
            raise ValueError(
                f"{name}: the quaternion in row {int(np.argmin(length))} is zero; give a rotation (x, y, z, w)"
            )
    return wp.array(np.ascontiguousarray(numbers), dtype=dtype, device=device)


def scalars(array: wp.array) -> wp.array:
    """An array of vectors or transforms as one of scalars, with a further dimension, in place."""
    inner = getattr(array.dtype, "_shape_", ())
    if not inner:
        return array
    real = array.dtype._wp_scalar_type_
    size, steps = wp.types.type_size_in_bytes(real), []
    for n in reversed(inner):
        steps.insert(0, size)
        size *= n
    result = wp.array(
        ptr=array.ptr, dtype=real, shape=(*array.shape, *inner), strides=(*array.strides, *steps), device=array.device
    )
    result._ref = array
    return result


def friction_ratio(at_rest: np.ndarray, in_motion: np.ndarray) -> np.ndarray:
    """Dry friction in motion divided by that at rest; one where there is none."""
    some = at_rest > 0.0
    return np.where(some, in_motion / np.where(some, at_rest, 1.0), 1.0)
