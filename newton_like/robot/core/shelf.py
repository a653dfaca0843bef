"""Things that one user at a time works with, such as memory and launches."""

from __future__ import annotations

from collections import OrderedDict

_EACH = 8
"""Things of one key that are kept: threads that use a robot at the same time need one each."""


class Shelf:
    """What nobody uses at the moment, by key.

    A user takes a thing, works with it, and gives it back. A second user with the same key, who comes meanwhile, gets another thing, or
    None and makes one. The second user may be another thread. It may also be a signal handler or a ``__del__`` that interrupts the first
    user in its own thread, where a lock does not help. Each change is one operation of a list or a dict, which nothing interrupts. A user
    who fails does not give the thing back.

    Args:
        most: how many keys are kept, those that were used last.
    """

    __slots__ = ("_idle", "_most")

    def __init__(self, most: int):
        self._idle: OrderedDict = OrderedDict()
        self._most = most

    def take(self, key):
        """A thing that nobody else has from now on; None if there is none."""
        idle = self._idle.get(key)
        if idle:
            try:
                return idle.pop()
            except IndexError:
                # another user took it
                pass
        return None

    def give(self, key, thing) -> None:
        """Keeps a thing for the next user."""
        idle = self._idle.get(key)
        if idle is None:
            idle = self._idle.setdefault(key, [])
        if len(idle) < _EACH:
            idle.append(thing)
        try:
            self._idle.move_to_end(key)
            while len(self._idle) > self._most:
                self._idle.popitem(last=False)
        except KeyError:
            # others removed keys meanwhile; the thing may be forgotten then
            pass
