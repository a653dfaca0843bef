"""Reused arrays for intermediate results and for numbers from the host. Launches on the same arrays are recorded once; recording takes a
hundred times as long as repeating a recorded launch."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from newton_like.arrays import active_tape


class Buffers:
    """Arrays of a model by name. While a tape records, every call returns a new array with gradients, because the tape uses it later."""

    def __init__(self, model):
        self.dtype, self.device = model.dtype, model.device
        self._made: dict = {}

    def get(self, name: str, shape: tuple[int, ...]) -> wp.array:
        """The array of that name and shape; its contents are undefined."""
        if active_tape() is not None:
            return wp.zeros(shape, dtype=self.dtype, device=self.device, requires_grad=True)
        key = (name, shape)
        if key not in self._made:
            self._made[key] = wp.zeros(shape, dtype=self.dtype, device=self.device)
        return self._made[key]

    def holding(self, name: str, numbers: np.ndarray) -> wp.array:
        """An array with these numbers, valid until the next call with that name; while a tape records, a new constant array."""
        array = self._made.get(name)
        if active_tape() is not None or array is None or array.shape != numbers.shape:
            array = wp.array(numbers, dtype=self.dtype, device=self.device)
            if active_tape() is None:
                self._made[name] = array
        elif self.device.is_cpu:
            array.numpy()[...] = numbers
        else:
            array.assign(numbers)
        return array


_buffers: WeakKeyDictionary = WeakKeyDictionary()


def buffers_of(model) -> Buffers:
    """The buffers of a model."""
    if model not in _buffers:
        _buffers[model] = Buffers(model)
    return _buffers[model]
