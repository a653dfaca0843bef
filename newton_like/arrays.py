"""Conversion of arrays for programs, and checks of active tapes and captures."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import warp as wp
from warp._src import context

_NO_NUMBERS = {"c": "complex numbers", "U": "text", "S": "text", "M": "dates", "m": "durations"}
"""Kinds of NumPy types that NumPy converts to real numbers without an error."""

_HOST_TYPE = {wp.int32: np.int32, wp.bool: np.bool_}
"""NumPy types of Warp's types that have one name for arrays of all shapes."""


def active_tape() -> wp.Tape | None:
    """The active tape, or None. Warp has no public function for it."""
    runtime = context.runtime
    return None if runtime is None else runtime.tape


def flat(array: wp.array, dtype) -> wp.array:
    """The numbers of an array of scalars, vectors or transforms as one row, in place.

    Raises:
        ValueError: the array is not contiguous.
    """
    if array.dtype is dtype and array.ndim == 1 and array.is_contiguous:
        return array
    if not array.is_contiguous:
        raise ValueError("arrays must be contiguous; pass array.contiguous()")
    size = array.size * wp.types.type_size_in_bytes(array.dtype) // wp.types.type_size_in_bytes(dtype)
    gradient = None
    if array.requires_grad and array.grad is not None:
        gradient = wp.array(ptr=array.grad.ptr, dtype=dtype, shape=(size,), device=array.device, copy=False)
    row = wp.array(ptr=array.ptr, dtype=dtype, shape=(size,), device=array.device, copy=False, grad=gradient)
    # keeps the owner of the memory alive
    row._owner = array
    return row


def is_captured(device) -> bool:
    """As ``device.is_capturing``, which takes six times as long on a CPU."""
    return cpu_is_captured() if device.is_cpu else bool(device.is_capturing)


def cpu_is_captured() -> bool:
    """The same of the CPU."""
    graph = context.runtime._apic_graph
    return graph is not None and graph.device.is_cpu


def check_recorded(device, what: str) -> None:
    """Raises an error before operations that a graph cannot record, such as copies from the host.

    Raises:
        RuntimeError: a graph is being captured.
    """
    if is_captured(device):
        raise RuntimeError(f"{what}: not while a graph is captured; call it before the capture")


def captured_graph(device):
    """The graph that is being captured on a device; None: another library began the capture. Warp has no public function for it."""
    return context.runtime._apic_graph if device.is_cpu else device.captures.get(device.stream)


def keep_for_graph(device, *objects) -> None:
    """Keeps objects alive as long as the graph that is being captured: launches of a graph know addresses only. Warp has no public place
    for such objects, so that they are an attribute of its graph.

    Args:
        device: the device, which is capturing.
        objects: the owners of the memory.
    """
    graph = captured_graph(device)
    if graph is None:
        _kept.extend(objects)
        return
    kept = vars(graph).setdefault("_newton_like_kept", {})
    kept.update((id(each), each) for each in objects)


_kept: list = []
"""Objects of graphs that Warp does not know. They are never freed."""


@contextmanager
def unrecorded(device, what: str, cure: str = "call it once with the same arrays before a graph is captured"):
    """Operations that prepare a call, which a graph must not repeat: kernels are compiled, and arrays allocated and filled. On a CPU
    a capture pauses meanwhile; Warp has no public function for it.

    Args:
        device: the device.
        what: the call.
        cure: what to do on a GPU.

    Raises:
        RuntimeError: a CUDA graph is being captured.
    """
    if not device.is_capturing:
        yield
        return
    if device.is_cuda:
        raise RuntimeError(f"{what}: {cure}")
    graph = context.capture_pause(device)
    try:
        yield
    finally:
        context.capture_resume(graph)


def copied_array(values: np.ndarray, dtype, device, **options) -> wp.array:
    """A Warp array with a copy of a NumPy array: integers, bools, or numbers of the scalar type of `dtype`. On a CPU NumPy makes the copy,
    in a third of Warp's time."""
    if not device.is_cpu or not values.size:
        return wp.array(values, dtype=dtype, device=device, **options)
    copy = np.array(values, dtype=_HOST_TYPE.get(dtype, values.dtype), order="C")
    return wp.array(copy, dtype=dtype, device=device, copy=False, **options)


def constant_array(values, dtype, device, **options) -> wp.array:
    """An array of numbers from the host that later calls use again; a graph that is being captured does not copy them."""
    with unrecorded(device, "arrays that the first call makes"):
        return wp.array(values, dtype=dtype, device=device, **options)


def as_numbers(lanes: wp.array, dtype, width: int) -> wp.array:
    """An array ``[blocks, n]`` of lanes as numbers ``[blocks, n, width]``, in place."""
    size = wp.types.type_size_in_bytes(dtype)
    return wp.array(
        ptr=lanes.ptr,
        dtype=dtype,
        shape=(*lanes.shape, width),
        strides=(*lanes.strides, size),
        device=lanes.device,
        copy=False,
    )


def host_array(value, what: str, wanted: str = "an array of numbers") -> np.ndarray:
    """Real numbers, integers or bools of the host, of a Warp array or of a tensor on any device as a NumPy array. An array may be returned
    without a copy.

    Raises:
        TypeError: not numbers, complex numbers, text, or rows of different lengths.
        ValueError: a Warp array with gradients while a tape records, because its gradients would be lost.
    """
    found = repr(value) if isinstance(value, str | bytes | None) else type(value).__name__
    if isinstance(value, wp.array):
        if value.requires_grad and active_tape() is not None:
            raise ValueError(
                f"{what} requires a gradient, but it is read on the host and gets none; pass {what} as numbers (array.numpy()), or "
                "leave the call out of the tape"
            )
        value = value.numpy()
    elif hasattr(value, "detach"):  # torch does not convert tensors with gradients or on GPUs
        value = value.detach().cpu()
    try:
        numbers = np.asarray(value)
        if numbers.dtype.kind in _NO_NUMBERS:
            found = f"{found} ({_NO_NUMBERS[numbers.dtype.kind]})"
            raise TypeError
        if numbers.dtype.kind == "O" and any(each is None for each in numbers.flat):  # NumPy converts None to NaN
            raise TypeError
        return numbers if numbers.dtype.kind in "biuf" else numbers.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{what} must be {wanted}, not {found}") from None
