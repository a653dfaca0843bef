"""A compact set of unordered pairs of indices, for millions of pairs; and the pairs of shapes that may touch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet

import numpy as np

from newton_like.types import ShapeFlags


class PairSet(MutableSet):
    """Unordered pairs of different non-negative indices; behaves like a set of tuples ``(a, b)`` with ``a < b``.

    A builder with 4096 worlds of a robot with filtered self-collisions has millions of pairs, and a Python set of
    tuples needs hundreds of bytes for each. Here a pair takes eight bytes: ``a * 2**32 + b`` in a sorted array.
    """

    def __init__(self, pairs: Iterable = ()):
        self._codes = np.empty(0, dtype=np.int64)
        self._pending: list[np.ndarray] = []
        self.update(pairs)

    @classmethod
    def _from_iterable(cls, iterable) -> PairSet:
        return cls(list(iterable))

    def update(self, pairs: Iterable) -> None:
        """Adds pairs, given as an iterable of pairs of indices or an array ``[n, 2]``.

        Raises:
            ValueError: a pair does not have two different non-negative indices.
        """
        if isinstance(pairs, PairSet):
            pairs = pairs.to_array()
        elif not isinstance(pairs, np.ndarray):
            pairs = list(pairs) if isinstance(pairs, Iterable) else [pairs]
        try:
            array = np.asarray(pairs)
        except ValueError:  # of unequal length
            array = np.zeros(1, dtype=object)
        if array.size == 0:
            return
        if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
            raise ValueError(f"{pairs!r} are not pairs; give two indices (integers) for each")
        array = array.astype(np.int64)
        low, high = array.min(axis=1), array.max(axis=1)
        wrong = (low < 0) | (low == high)
        if wrong.any():
            raise ValueError(f"pair {tuple(array[wrong][0].tolist())} must have two different indices of at least 0")
        self._pending.append((low << 32) | high)

    def add(self, pair) -> None:
        """Adds one pair, in either order."""
        self.update([pair])

    def append(self, pair) -> None:
        """The same as :meth:`add`, as for a list."""
        self.add(pair)

    def extend(self, pairs: Iterable) -> None:
        """The same as :meth:`update`, as for a list."""
        self.update(pairs)

    def discard(self, pair) -> None:
        """Removes a pair, in either order, if it exists."""
        codes = self._sorted()
        at = self._find(codes, pair)
        if at is not None:
            self._codes = np.delete(codes, at)

    @property
    def codes(self) -> np.ndarray:
        """All pairs as ``a * 2**32 + b`` in ascending order. The array is the same object until pairs are added or removed."""
        return self._sorted()

    def to_array(self) -> np.ndarray:
        """All pairs as ``[n, 2]`` int32 with the smaller index first, in ascending order."""
        codes = self._sorted()
        return np.stack([codes >> 32, codes & 0xFFFFFFFF], axis=1).astype(np.int32)

    def _sorted(self) -> np.ndarray:
        if self._pending:
            codes = np.concatenate([self._codes, *self._pending])
            codes.sort()  # a hundred times faster than np.unique, which hashes
            self._codes = codes[np.concatenate([[True], codes[1:] != codes[:-1]])]
            self._pending = []
        return self._codes

    @staticmethod
    def _find(codes: np.ndarray, pair) -> int | None:
        try:
            a, b = sorted(int(index) for index in pair)
        except (TypeError, ValueError):
            return None
        code = (a << 32) | b
        at = int(np.searchsorted(codes, code))
        return at if at < codes.size and codes[at] == code else None

    def __contains__(self, pair) -> bool:
        return self._find(self._sorted(), pair) is not None

    def __len__(self) -> int:
        return int(self._sorted().size)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return map(tuple, self.to_array().tolist())

    def __repr__(self) -> str:
        return f"PairSet({list(self)})" if len(self) <= 20 else f"PairSet of {len(self)} pairs"


def may_collide(group_a, group_b):
    """Whether collision groups let shapes touch; see ``ShapeConfig.collision_group``. Arrays broadcast."""
    a, b = np.asarray(group_a), np.asarray(group_b)
    return (a != 0) & (b != 0) & (((a > 0) & (b > 0) & (a == b)) | (((a < 0) | (b < 0)) & (a != b)))


def contact_pairs(model) -> np.ndarray:
    """The pairs of shapes that may touch, ``[n, 2]`` int32, see :attr:`Model.shape_contact_pairs`."""
    group, body, world = (
        getattr(model, name).numpy().astype(np.int64) for name in ("shape_collision_group", "shape_body", "shape_world")
    )
    found = np.flatnonzero(((model.shape_flags.numpy() & int(ShapeFlags.COLLIDE_SHAPES)) != 0) & (group != 0))
    found = found[np.argsort(world[found], kind="stable")]
    place = np.arange(len(found))
    # those of all worlds come first; the other shapes meet them, and the later ones of their own world
    shared = int(np.searchsorted(world[found], 0))
    later = np.searchsorted(world[found], world[found], side="right") - place - 1
    everywhere = np.where(world[found] < 0, 0, shared)
    count = everywhere + later
    first = np.repeat(place, count)
    second = np.arange(len(first)) - np.repeat(np.cumsum(count) - count, count)
    mine = second >= everywhere[first]
    second = np.where(mine, second - everywhere[first] + first + 1, second)
    a, b = found[first], found[second]
    keep = may_collide(group[a], group[b]) & (np.maximum(body[a], -1) != np.maximum(body[b], -1))
    low, high = np.minimum(a, b)[keep], np.maximum(a, b)[keep]
    codes = (low << 32) | high
    filtered = model.shape_collision_filter_pairs.codes
    keep = ~np.isin(codes, filtered)
    low, high, codes = low[keep], high[keep], codes[keep]
    order = np.lexsort((codes, np.maximum(world[low], world[high])))
    return np.stack([low[order], high[order]], axis=1).astype(np.int32)
