"""Arrays for what functions find on the way, used again from call to call: launches on the same arrays are recorded once."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import warp as wp

from newton_like.launch import active_tape


class Buffers:
    """Arrays of a model by name; new ones with gradients each time while a tape records, as it goes back to them later."""

    def __init__(self, model):
        self.dtype, self.device = model.dtype, model.device
        self._made: dict = {}

    def get(self, name: str, shape: tuple[int, ...]) -> wp.array:
        """The array of that name and shape, with whatever it holds."""
        if active_tape() is not None:
            return wp.zeros(shape, dtype=self.dtype, device=self.device, requires_grad=True)
        key = (name, shape)
        if key not in self._made:
            self._made[key] = wp.zeros(shape, dtype=self.dtype, device=self.device)
        return self._made[key]


_buffers: WeakKeyDictionary = WeakKeyDictionary()


def buffers_of(model) -> Buffers:
    """The buffers of a model."""
    if model not in _buffers:
        _buffers[model] = Buffers(model)
    return _buffers[model]
