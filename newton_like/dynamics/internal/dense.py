"""Conversion of flat arrays of joint coordinates or velocities to dense arrays ``[articulation_count, columns]``, and back."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from newton_like.arrays import constant_array


class Rows:
    """Positions of the coordinates (or the dofs) of articulations in flat arrays and in dense arrays.

    Attributes:
        start, count: first index in flat arrays and number of coordinates of every articulation.
        columns: the largest `count`.
        shared: whether a dense array is a view of the flat array: all articulations have the same count, and they are contiguous.
    """

    def __init__(self, model, starts: np.ndarray):
        first = model.articulation_start.numpy()[: model.articulation_count]
        self.device = model.device
        self.start = starts[first].astype(int)
        self.count = starts[model.articulation_end.numpy()] - self.start
        self.columns = int(self.count.max(initial=0))
        self.size = int(starts[-1])
        places = np.arange(len(self.start)) * self.columns
        self.shared = self.size == len(self.start) * self.columns and np.array_equal(self.start, places)
        if not self.shared:
            inside = [np.arange(n) for n in self.count]
            join = lambda ends: np.concatenate([np.zeros(0), *[e + i for e, i in zip(ends, inside, strict=True)]])  # noqa: E731
            self._flat, self._dense = (self._ints(join(ends)) for ends in (self.start, places))

    def _ints(self, values) -> wp.array:
        return constant_array(np.asarray(values, dtype=np.int32), wp.int32, self.device)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the dense array."""
        return len(self.start), self.columns

    def rows(self, flat: wp.array, out: wp.array | None = None) -> wp.array:
        """A flat array as a dense array: a view if possible and `out` is not given, else a copy."""
        if self.shared:
            same = flat.reshape(self.shape)
            if out is None:
                return same
            wp.copy(out, same)
            return out
        if out is None:
            out = wp.zeros(self.shape, dtype=flat.dtype, device=flat.device)
        _copy(out.flatten(), self._dense, flat, self._flat)
        return out

    def flat(self, rows: wp.array, out: wp.array) -> None:
        """Writes a dense array to a flat array. Entries outside of articulations keep their values."""
        if self.shared:
            wp.copy(out, rows.flatten())
        else:
            _copy(out, self._flat, rows.flatten(), self._dense)


def _copy(to: wp.array, at: wp.array, source: wp.array, where: wp.array) -> None:
    if len(at):
        wp.copy(wp.indexedarray(to, [at]), wp.indexedarray(source, [where]))


_rows: WeakKeyDictionary = WeakKeyDictionary()


def coord_rows(model) -> Rows:
    """Conversion of ``joint_q`` and other arrays of coordinates."""
    return _of(model)[0]


def dof_rows(model) -> Rows:
    """Conversion of ``joint_qd`` and other arrays of dofs."""
    return _of(model)[1]


def _of(model) -> tuple[Rows, Rows]:
    # the joints of an articulation never change, so there is no check of the model's version
    found = _rows.get(model)
    if found is None:
        found = _rows[model] = Rows(model, model.joint_q_start.numpy()), Rows(model, model.joint_qd_start.numpy())
    return found
