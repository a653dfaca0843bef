"""Data of assets as arrays of NumPy or tensors of torch."""

from __future__ import annotations

import numpy as np
import warp as wp

SETTABLE = ("default_", "soft_")
"""Beginnings of the names of data that users set. Other data are computed, or are arrays of the simulation."""


class NumpyViews:
    """The same attributes as arrays of NumPy, in place on a CPU: ``data.numpy.joint_pos``. On a GPU they are copies.

    Only names of `SETTABLE` can be set as a whole; others raise AttributeError.

    Args:
        data: the data of an asset.
    """

    def __init__(self, data):
        self._data = data

    def __getattr__(self, name: str):
        if name.startswith("_"):
            # copies ask for such names before there are data
            raise AttributeError(name)
        return self._view(getattr(self._data, name))

    def _view(self, value):
        return value.numpy() if isinstance(value, wp.array) else value

    def __dir__(self):
        return [name for name in dir(self._data) if not name.startswith("_")]

    def _known(self, name: str, value) -> wp.array:
        target = getattr(self._data, name)
        if not isinstance(target, wp.array):
            raise AttributeError(f"{name!r} is no array of the data, so that it cannot be set to {value!r}")
        if not name.startswith(SETTABLE):
            raise AttributeError(
                f"{name!r} belongs to the simulation; set it by the write_*_to_sim and set_* methods of the asset"
            )
        return target

    def __setattr__(self, name: str, value) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            target = self._known(name, value)
            target.assign(np.broadcast_to(value, target.shape))


class TorchViews(NumpyViews):
    """The same attributes as tensors of torch, in place: ``data.torch.joint_pos``."""

    def _view(self, value):
        return wp.to_torch(value, requires_grad=False) if isinstance(value, wp.array) else value

    def __setattr__(self, name: str, value) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            wp.to_torch(self._known(name, value), requires_grad=False)[...] = value
