"""Lengths of the tendons of an articulation in NumPy, in many configurations at once."""

from __future__ import annotations

import numpy as np

from newton_like.geometry.wrapping import piece_length
from newton_like.kernels.dynamics.tendons import (
    AXES,
    CENTER,
    END,
    ITEM_NUMBERS,
    JOINT,
    OFFSET,
    RADIUS,
    SCALE,
    SIDE,
    START,
    TENDON,
)
from newton_like.kernels.tree import MASSIVE, STRAIGHT


class PathLengths:
    """The lengths of some tendons of an articulation.

    Args:
        model: the model.
        tendons: its :class:`newton_like.dynamics.tendons.Tendons`.
        a: index of the articulation.
        chosen: numbers of the tendons in the articulation.

    Attributes:
        chosen: these, in ascending order.
        key: bytes that are equal for articulations whose tendons have the same paths, up to the place of the world.
        wraps: number of pieces that wrap around shapes.
    """

    def __init__(self, model, tendons, a: int, chosen):
        self.chosen = sorted(set(chosen))
        own = tendons.items[a].tendons
        numbers = tendons.numbers(model, [a])[0]
        table = numbers[TENDON * len(own) :].reshape(-1, ITEM_NUMBERS)
        starts = np.cumsum([0, *map(len, own)])
        self._offsets = [float(numbers[TENDON * n + OFFSET]) for n in self.chosen]
        self._items = [list(zip(own[n], table[starts[n] :], strict=False)) for n in self.chosen]
        self.wraps = sum(item[0] not in (JOINT, STRAIGHT, MASSIVE) for items in self._items for item, _ in items)
        self.key = repr((self.chosen, self._offsets)).encode() + b"".join(
            repr(item).encode() + _relative(item, numbers).tobytes() for items in self._items for item, numbers in items
        )

    def __call__(self, q: np.ndarray, turns: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Lengths ``[n, tendons]``.

        Args:
            q: positions of the dofs of the articulation, ``[n, dofs]``.
            turns, places: poses of its links, and then of the world, ``[n, links + 1, 3, 3]`` and ``[n, links + 1, 3]``.
        """
        found = np.empty((len(q), len(self.chosen)))
        for i, (offset, items) in enumerate(zip(self._offsets, self._items, strict=True)):
            total = np.full(len(q), offset)
            for (kind, first, last, around, beside), numbers in items:
                if kind == JOINT:
                    total += numbers[SCALE] * q[:, first]
                    continue
                x, y = (places[:, k] + turns[:, k] @ numbers[at : at + 3] for k, at in ((first, START), (last, END)))
                if kind in (STRAIGHT, MASSIVE):
                    total += numbers[SCALE] * np.linalg.norm(y - x, axis=1)
                    continue
                axes = turns[:, around] @ numbers[AXES : AXES + 9].reshape(3, 3)
                centre = places[:, around] + turns[:, around] @ numbers[CENTER : CENTER + 3]
                points = [x, y]
                if beside >= -1:
                    points.append(places[:, beside] + turns[:, beside] @ numbers[SIDE : SIDE + 3])
                points = [np.einsum("nij,ni->nj", axes, p - centre) for p in points]
                for n in range(len(q)):
                    x, y, *side = (p[n] for p in points)
                    total[n] += numbers[SCALE] * piece_length(kind, x, y, side[0] if side else None, numbers[RADIUS])
            found[:, i] = total
        return found


def _relative(item: tuple, numbers: np.ndarray) -> np.ndarray:
    """The numbers of an item without places in the world, which differ between copies of an articulation."""
    result = numbers.copy()
    if item[0] != JOINT:
        for link, at in zip(item[1:], (START, END, CENTER, SIDE), strict=True):
            if link == -1:
                result[at : at + 3] = 0.0
    return result
