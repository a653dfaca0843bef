"""Lists of contacts without room for all: each world keeps about the same number, its deepest contacts."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.kernels.collision.ration import ration_kernels


def lost_of(model, contacts) -> wp.array:
    """The array of a list of contacts for the numbers of contacts that its worlds drop."""
    lost = getattr(contacts, "lost", None)
    # lists of others have none
    return wp.empty(model.world_count + 1, dtype=wp.int32, device=model.device) if lost is None else lost


def rationed(world: np.ndarray, rank: np.ndarray, room: int, worlds: int) -> tuple[np.ndarray, np.ndarray]:
    """On the host: the contacts of a list that are kept, by their indices, and how many each world drops.

    Args:
        world: of each contact.
        rank: contacts with the smallest numbers are kept, of equal ones the first.
        room: number of contacts that are kept, below that of all.
        worlds: number of worlds.
    """
    number = np.bincount(world, minlength=worlds)
    levels = np.sort(number)
    # all worlds can have `level` contacts: those with fewer keep theirs
    left, level = room, 0
    for i, n in enumerate(levels):
        level = left // (worlds - i)
        if n > level:
            break
        left -= n
    quota = np.minimum(number, level)
    more = np.flatnonzero(number > quota)[: room - quota.sum()]
    quota[more] += 1
    order = np.lexsort((np.arange(len(world)), np.nan_to_num(rank), world))
    place = np.arange(len(world)) - np.searchsorted(world[order], world[order])
    return np.sort(order[place < quota[world[order]]]), number - quota


class Ration:
    """Finds the contacts of a model that a list keeps.

    Args:
        model: the model.
        crowd_worlds: the worlds that are crowds; -1: bodies that belong to no single world.
        crowd_row: the first row of each crowd, and their number.
    """

    def __init__(self, model, crowd_worlds=(), crowd_row=(0,)):
        self._dtype, self._device = model.dtype, model.device
        last = model.world_count
        world = model.articulation_world.numpy()
        world = np.where(world < 0, last, world)
        order = np.argsort(world, kind="stable")
        self.worlds, self.crowds = last + 1, len(crowd_worlds)
        self._order, self._first, self._crowd_row, self._world = (
            wp.array(np.asarray(x, dtype=np.int32), dtype=wp.int32, device=model.device)
            for x in (
                order,
                np.searchsorted(world[order], np.arange(last + 2)),
                crowd_row,
                [*range(last + 1), *(last if w < 0 else w for w in crowd_worlds)],
            )
        )
        slots = self.worlds + self.crowds
        self._number, self._quota, self._place, self._counts, self._crowd_pair = (
            wp.zeros(n, dtype=wp.int32, device=model.device) for n in (slots, slots, slots, len(world), self.crowds + 1)
        )
        self._nothing = wp.zeros(0, dtype=wp.int32, device=model.device)

    def share(self, room: int, starts: wp.array, lost: wp.array, pairs: tuple = ()) -> None:
        """Finds the number of contacts that each world keeps, if there is no room for all.

        Args:
            room: number of contacts that the list has room for.
            starts: of each articulation the number of contacts before its own; at the end the number of all.
            lost: gets the number of contacts that each world drops.
            pairs: of crowds, the first pair of each row, and the number of contacts before those of each pair.
        """
        share, _ = ration_kernels(self._dtype)
        wp.launch(
            share,
            dim=1,
            inputs=[
                room,
                starts,
                self._order,
                self._first,
                self._crowd_row,
                *(pairs or (self._nothing,) * 2),
                self._world,
            ],
            outputs=[self._counts, self._crowd_pair, self._number, self._quota, self._place, lost],
            device=self._device,
            record_tape=False,
        )

    def choose(self, at: wp.array, numbers: wp.array, moved: wp.array) -> None:
        """Chooses among the contacts of articulations.

        Args:
            at: where the contacts of each one begin in `numbers`.
            numbers: gap and another number of each contact; see :mod:`newton_like.kernels.collision.ration`.
            moved: gets the place in the list of the first contact of each one.
        """
        self._launch(self.worlds, 0, [self._order, self._first, self._counts, at, numbers], moved)

    def choose_pairs(self, counts: wp.array, at: wp.array, numbers: wp.array, moved: wp.array) -> None:
        """As :meth:`choose`, among the contacts of the pairs of crowds; counts: their number of each pair."""
        self._launch(self.crowds, self.worlds, [self._nothing, self._crowd_pair, counts, at, numbers], moved)

    def _launch(self, worlds: int, first: int, units: list, moved: wp.array) -> None:
        _, choose = ration_kernels(self._dtype)
        wp.launch(
            choose,
            dim=worlds,
            inputs=[first, self._number, self._quota, self._place, *units],
            outputs=[moved],
            device=self._device,
            record_tape=False,
        )
