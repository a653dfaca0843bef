"""Numbers of joints as rows of articulations, ``[articulation_count, columns]``, instead of one flat array."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import warp as wp


class Rows:
    """Where the coordinates (or the dofs) of articulations are in flat arrays and in rows.

    Attributes:
        start, count: first place in flat arrays, and number, of every articulation.
        columns: the largest number.
        shared: whether both are the same memory: all articulations have as many and fill the flat array one after the other.
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
        return wp.array(np.asarray(values, dtype=np.int32), dtype=wp.int32, device=self.device)

    @property
    def shape(self) -> tuple[int, int]:
        """Of the rows."""
        return len(self.start), self.columns

    def rows(self, flat: wp.array, out: wp.array | None = None) -> wp.array:
        """A flat array as rows: the same memory where that is possible and no other is given, else a copy."""
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
        """Writes rows to a flat array; what belongs to no articulation stays."""
        if self.shared:
            wp.copy(out, rows.flatten())
        else:
            _copy(out, self._flat, rows.flatten(), self._dense)


def _copy(to: wp.array, at: wp.array, source: wp.array, where: wp.array) -> None:
    if len(at):
        wp.copy(wp.indexedarray(to, [at]), wp.indexedarray(source, [where]))


_rows: WeakKeyDictionary = WeakKeyDictionary()


def coord_rows(model) -> Rows:
    """Of ``joint_q`` and its like."""
    return _of(model)[0]


def dof_rows(model) -> Rows:
    """Of ``joint_qd`` and its like."""
    return _of(model)[1]


def _of(model) -> tuple[Rows, Rows]:
    # which joints an articulation has never changes
    found = _rows.get(model)
    if found is None:
        found = _rows[model] = Rows(model, model.joint_q_start.numpy()), Rows(model, model.joint_qd_start.numpy())
    return found
