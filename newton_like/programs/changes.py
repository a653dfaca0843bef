"""The worlds in which arrays of a model differ from those that were read last."""

from __future__ import annotations

import warp as wp

from newton_like.model.edits import ARRAYS, FLAGS, GRAVITY, GROUPS, JOINTS, edits_of
from newton_like.model.fingerprints import Fingerprints


class Changes:
    """The worlds in which arrays differ from those that were read last, for the parameters of all batches of a model.

    Args:
        model: the model.
        prescribed: whether the parameters depend on flags of bodies.
    """

    def __init__(self, model, prescribed: bool):
        self._edits = edits_of(model)
        resting = (model.joint_parent.numpy() >= 0) & (model.joint_ancestor.numpy() < 0)
        # joints that a resting body carries start where it is
        others = {JOINTS: ("body_q",) if resting.any() else ()}
        # gravity is read as fast as it is compared
        self._prints = {
            g: Fingerprints(model, (*ARRAYS[g], *others.get(g, ()), *((FLAGS,) if prescribed else ())), crossing=True)
            for g in GROUPS
            if g != GRAVITY
        }
        self._found: set[int] = set()

    def look(self, model, since: int) -> None:
        """Finds the worlds that changed, among those that were edited after the version `since`."""
        edits = self._edits
        groups = [g for g in GROUPS if edits.last[g] > since]
        self._found = {
            g
            for g in groups
            if g not in self._prints or self._prints[g].look(model, edits.rows[g], since, edits.version)
        }

    def found(self, group: int) -> bool:
        """Whether any world was found by the last look."""
        return group in self._found

    def edited(self, group: int) -> wp.array:
        """The last edit of a group in each world that changed it, ``[world_count + 1]``."""
        return self._edits.rows[group] if group not in self._prints else self._prints[group].changed

    def forget(self, groups=GROUPS) -> None:
        """All worlds were read: the next look finds all that were edited."""
        for group in groups:
            if group in self._prints:
                self._prints[group].forget()
