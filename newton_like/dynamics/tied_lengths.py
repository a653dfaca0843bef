"""Equality constraints on the lengths of tendons."""

from __future__ import annotations

import numpy as np

from newton_like.dynamics.internal.common import columns
from newton_like.dynamics.relations import POWERS
from newton_like.dynamics.tendons import tendon_kinematics, tendons_of


class TiedLengths:
    """The enabled ties of the tendons of a model, ``L - l = sum of c_i (L' - l')^i``, row by row in each articulation.

    Args:
        model: the model.

    Attributes:
        count: the largest number of ties of an articulation.
        names: of each articulation and each of its rows, the tie in words.

    Raises:
        ValueError: a tie is between tendons of two articulations.
        IndexError: the leader of a tie does not exist.
    """

    def __init__(self, model):
        self._model = model
        self.names: list[list[str]] = [[] for _ in range(model.articulation_count)]
        found, self.count = [], 0
        if any(tendon.ties for tendon in model.tendons):
            places = {n: (a, i) for a, own in enumerate(tendons_of(model).index) for i, n in enumerate(own)}
        for n, tendon in enumerate(model.tendons):
            what = f"tendon '{model.tendon_label[n]}' (index {n})"
            for tie in (tie for tie in tendon.ties if tie.enabled):
                tie.check(what, n, len(model.tendons))
                (a, own), (owner, leader) = places[n], places[n + tie.leader]
                if owner != a:
                    raise ValueError(
                        f"{what} is tied to tendon {n + tie.leader} of another articulation; list the joints of both in one"
                    )
                law = tie.polycoef if tie.leader else (tie.polycoef[0], *[0.0] * (POWERS - 1))
                found.append((a, len(self.names[a]), own, leader, *tie.rest, *law))
                self.names[a].append(f"the tie of {what}")
        self.count = max(map(len, self.names), default=0)
        table = np.array(found, dtype=np.float64).reshape(-1, 6 + POWERS)
        self._at, self._own, self._leader = table[:, :2].astype(int).T, *table[:, 2:4].astype(int).T
        self._rest, self._law = table[:, 4:6], table[:, 6:]

    def rows(self, state) -> tuple[np.ndarray, np.ndarray]:
        """Their Jacobian, ``[articulation_count, count, max_dofs_per_articulation]``, and their errors, ``[articulation_count, count]``.

        Args:
            state: the state; reads ``joint_q``.
        """
        model = self._model
        K = np.zeros((model.articulation_count, self.count, columns(model)))
        gap = np.zeros(K.shape[:2])
        if self.count:
            lengths, jacobian, _ = (x.numpy().astype(np.float64) for x in tendon_kinematics(model, state))
            a = self._at[0]
            x = lengths[a, self._leader] - self._rest[:, 1]
            powers = x[:, None] ** np.arange(POWERS)
            slope = np.sum(self._law[:, 1:] * powers[:, :-1] * np.arange(1, POWERS), axis=1)
            K[tuple(self._at)] = jacobian[a, self._own] - slope[:, None] * jacobian[a, self._leader]
            gap[tuple(self._at)] = lengths[a, self._own] - self._rest[:, 0] - np.sum(self._law * powers, axis=1)
        return K, gap
