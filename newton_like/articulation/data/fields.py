"""Properties of data of assets: parts of arrays that are computed when they are read."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.articulation.data.assigning import Assigned, no_attribute
from newton_like.articulation.data.foreign import NumpyViews, TorchViews
from newton_like.articulation.launching import Repeated
from newton_like.kernels.articulation.root import state_kernels


class Part:
    """A property that is a part of the last dimension of a group of numbers, which are computed once a step.

    Args:
        group: name of the group.
        first, last: the part; without `last`, a single number without a dimension.
        doc: what it is.
        quat: where a quaternion begins in it; -1: it has none.
    """

    def __init__(self, group: str, first: int, last: int | None, doc: str, quat: int = -1):
        self.group, self.first, self.last, self.quat = group, first, last, quat
        self.__doc__ = doc
        self.name = ""

    def __set_name__(self, owner, name: str) -> None:
        self.name = name

    def __get__(self, data, owner=None):
        if data is None:
            return self
        # a call less where the group is fresh: environments read dozens of properties
        if data._stamps.get(self.group) != data._sim.stamp:
            data._fresh(self.group)
        view = data._views.get(self.name)
        if view is None:
            view = data._views[self.name] = inner_part(data._groups[self.group], self.first, self.last)
        return view


class View:
    """A property that is an array of the simulation itself, or a part of the last dimension of one.

    Args:
        source: name of the attribute of the data with the array.
        doc: what it is.
        moved: whether bodies have to be moved before it is read.
        quat: where a quaternion begins in it; -1: it has none.
        first, last: the part; by default the whole.
    """

    def __init__(
        self, source: str, doc: str, moved: bool = False, quat: int = -1, first: int = 0, last: int | None = None
    ):
        self._source, self._moved, self.quat, self.first, self.last = source, moved, quat, first, last
        self.__doc__ = doc
        self.name = ""

    def __set_name__(self, owner, name: str) -> None:
        self.name = name

    def __get__(self, data, owner=None):
        if data is None:
            return self
        if self._moved:
            data._sim.forward()
        if self.last is None:
            return getattr(data, self._source)
        view = data._views.get(self.name)
        if view is None:
            view = data._views[self.name] = inner_part(getattr(data, self._source), self.first, self.last)
        return view


class Fresh(Assigned):
    """Base class of data: groups of numbers that are computed once a step, and quaternions in the order w x y z.

    Names that end with ``_wxyz`` are copies of the properties of the same name without the ending, with quaternions in the order w x y z.

    Args:
        sim: the :class:`newton_like.articulation.SimulationContext`.
    """

    def __init__(self, sim):
        self._sim = sim
        self._views: dict[str, wp.array] = {}
        self._stamps: dict[str, int] = {}
        self._groups: dict[str, wp.array] = {}
        self._turned: dict[str, tuple[int, wp.array]] = {}
        # groups that were read since the last step of the environment; and those that this step has computed, with the stamp and the
        # version of the model
        self._read: set[str] = set()
        self._ahead: dict[str, tuple[int, int]] = {}

    @property
    def numpy(self) -> NumpyViews:
        """The same attributes as arrays of NumPy, in place on a CPU: ``data.numpy.joint_pos``."""
        return NumpyViews(self)

    @property
    def torch(self) -> TorchViews:
        """The same attributes as tensors of torch, in place: ``data.torch.joint_pos``."""
        return TorchViews(self)

    def _fresh(self, group: str) -> wp.array:
        """The numbers of a group, computed unless they are those of now."""
        if self._stamps.get(group) != self._sim.stamp:
            self._sim.forward()
            # edits of the model after a step count at the first reading
            if self._ahead.get(group) != (self._sim.stamp, self._sim.model.version):
                self._compute(group)
            self._stamps[group] = self._sim.stamp
            self._read.add(group)
        return self._groups[group]

    def _compute(self, group: str) -> None:
        numbers = getattr(self, f"_compute_{group}")(self._groups.get(group))
        if numbers is not self._groups.get(group):
            self._groups[group] = numbers
            for name in [n for n in self._views if getattr(getattr(type(self), n, None), "group", None) == group]:
                del self._views[name]

    def launches_ahead(self) -> dict[str, Repeated]:
        """The launches of groups that were read since the last call, which a step can take over. :meth:`computed` follows the step."""
        groups, self._read = self._read, set()
        makers = {group: getattr(type(self), f"_launch_{group}", None) for group in sorted(groups)}
        return {group: make(self, self._groups[group]) for group, make in makers.items() if make is not None}

    def computed(self, groups) -> None:
        """Tells that the numbers of groups are those of now."""
        self._ahead = dict.fromkeys(groups, (self._sim.stamp, self._sim.model.version))

    def __getattr__(self, name: str):
        base = name.removesuffix("_wxyz")
        field = getattr(type(self), base, None)
        if base == name or getattr(field, "quat", -1) < 0:
            raise no_attribute(self, name)
        return self._wxyz(base, field.quat)

    def _wxyz(self, name: str, at: int) -> wp.array:
        source = getattr(self, name)
        stamp, result = self._turned.get(name, (None, None))
        if stamp == self._sim.stamp:
            return result
        if result is None:
            result = wp.empty(source.shape, dtype=source.dtype, device=source.device)
        rows, out = (_rows(x) for x in (source, result))
        kernel = state_kernels(source.dtype).wxyz
        wp.launch(kernel, dim=rows.shape, inputs=[at, rows], outputs=[out], device=source.device)
        self._turned[name] = (self._sim.stamp, result)
        return result

    def buffer(self, *shape: int, value: float = 0.0) -> wp.array:
        """A new array of the model's scalar type."""
        model = self._sim.model
        return wp.full(shape, value, dtype=model.dtype, device=model.device)

    def copy_of(self, view: wp.array) -> wp.array:
        """A copy without gaps."""
        result = wp.empty(view.shape, dtype=view.dtype, device=view.device)
        if view.size:
            wp.copy(result, view)
        return result


def inner_part(array: wp.array, first: int, last: int | None) -> wp.array:
    """A part of the last dimension of an array, in place; without `last`, one number without the dimension."""
    step = array.strides[-1]
    shape, strides = array.shape[:-1], array.strides[:-1]
    if last is not None:
        shape, strides = (*shape, last - first), (*strides, step)
    part = wp.array(
        ptr=(array.ptr or 0) + first * step if array.size else array.ptr,
        dtype=array.dtype,
        shape=shape,
        strides=strides,
        device=array.device,
    )
    part._ref = array
    return part


def _rows(array: wp.array) -> wp.array:
    """An array as rows of its last dimension, in place. Rows are at regular distances."""
    shape, strides = array.shape, array.strides
    steps = [(n, s) for n, s in zip(shape[:-1], strides[:-1], strict=True) if n > 1]
    count = int(np.prod(shape[:-1]))
    if len(steps) > 1 and steps[0][1] != steps[1][0] * steps[1][1]:
        array = array.contiguous()
        steps = [(count, array.strides[-2])]
    step = steps[-1][1] if steps else strides[-1]
    rows = wp.array(
        ptr=array.ptr,
        dtype=array.dtype,
        shape=(count, shape[-1]),
        strides=(step, array.strides[-1]),
        device=array.device,
    )
    rows._ref = array
    return rows
