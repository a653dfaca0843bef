"""The worlds in which arrays of a model differ from those that were read last."""

from __future__ import annotations

import warp as wp

from newton_like.model.editing.edits import ARRAYS, BODIES, FLAGS, GAINS, GRAVITY, GROUPS, JOINTS, SHAPES, edits_of
from newton_like.model.editing.fingerprints import Fingerprints
from newton_like.model.joint_types import look_up

_DISTANCES = ("joint_min_distance", "joint_max_distance", FLAGS)


class Changes:
    """The worlds in which arrays differ from those that were read last, for the parameters of all batches of a model.

    Args:
        model: the model.
        prescribed: whether the parameters depend on flags of bodies.
    """

    def __init__(self, model, prescribed: bool):
        self._edits = edits_of(model)
        names = {g: [*ARRAYS[g], *((FLAGS,) if prescribed else ())] for g in (JOINTS, GAINS, SHAPES)}
        # arrays that no number depends on are not compared
        if not look_up(model.joint_type.numpy(), "limits_distance").any():
            names[JOINTS] = [name for name in names[JOINTS] if name not in _DISTANCES]
        if not (model.joint_mimic_joint.numpy() >= 0).any():
            names[GAINS].remove("joint_mimic_coeffs")
        if ((model.joint_parent.numpy() >= 0) & (model.joint_ancestor.numpy() < 0)).any():
            # joints that a resting body carries start where it is
            names[JOINTS].append("body_q")
        # gravity is read as fast as it is compared, and a notice compares inertial numbers
        self._masses = self._edits.prints(model)
        self._prints = {g: Fingerprints(model, tuple(each), crossing=True) for g, each in names.items()}
        self._found: set[int] = set()

    def look(self, model, since: int) -> None:
        """Finds the worlds that changed, among those that were edited after the version `since`."""
        edits = self._edits
        groups = [g for g in GROUPS if edits.last[g] > since]
        self._found = {
            g
            for g in groups
            if g == GRAVITY
            or (
                edits.differing > since
                if g == BODIES
                else self._prints[g].look(model, edits.rows[g], since, edits.version)
            )
        }
        if BODIES in self._found and not edits.compared(since):
            # the next notice compares with numbers that may be others than those that are read now
            self._masses.forget()

    def found(self, group: int) -> bool:
        """Whether any world was found by the last look."""
        return group in self._found

    def edited(self, group: int) -> wp.array:
        """The last edit of a group in each world that changed it, ``[world_count + 1]``."""
        if group == BODIES:
            return self._masses.changed
        return self._edits.rows[group] if group == GRAVITY else self._prints[group].changed

    def forget(self, groups=GROUPS) -> None:
        """All worlds were read: the next look finds all that were edited."""
        for group in groups:
            if group != GRAVITY:
                (self._masses if group == BODIES else self._prints[group]).forget()
