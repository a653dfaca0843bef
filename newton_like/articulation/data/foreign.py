"""Data of assets as arrays of NumPy or tensors of torch."""

from __future__ import annotations

import warp as wp

from newton_like.articulation.data.assigning import assign


class NumpyViews:
    """The same attributes as arrays of NumPy, in place on a CPU: ``data.numpy.joint_pos``. On a GPU they are copies.

    They are set as those of the data itself: ``data.numpy.default_joint_pos = values`` copies into the array.

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

    def __setattr__(self, name: str, value) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            assign(self._data, name, value)


class TorchViews(NumpyViews):
    """The same attributes as tensors of torch, in place: ``data.torch.joint_pos``."""

    def _view(self, value):
        if not isinstance(value, wp.array):
            return value
        try:
            return wp.to_torch(value, requires_grad=False)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise ModuleNotFoundError(
                "data.torch needs torch: pip install 'newton-like[torch]'; data.numpy has the same attributes as arrays of NumPy",
                name="torch",
            ) from None
