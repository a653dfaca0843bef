"""A substitute for torch tensors, which cannot be converted to NumPy if they have gradients or are on a GPU."""

import numpy as np


class Tensor:
    def __init__(self, values, ready: int = 0):
        self._values, self._ready = values, ready

    def detach(self):
        return Tensor(self._values, max(self._ready, 1))

    def cpu(self):
        return Tensor(self._values, 2 if self._ready else 0)

    def __array__(self, dtype=None, copy=None):
        if self._ready < 2:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().cpu() instead.")
        return np.asarray(self._values, dtype=dtype)
