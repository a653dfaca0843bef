"""Distances of capsules on straight ways between joint positions.

A distance changes by at most ``rho |dq|`` while one joint turns by dq, where rho is an upper bound of the distance of the joint's axis from
the points of one of the two capsules. With these bounds, distances at some places of a way tell how near capsules come between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from newton_like.robot.core.state import StateCore
from newton_like.robot.nearest import Capsules, Distances, capsules_of, chosen_pairs
from newton_like.robot.robot import Robot
from newton_like.robot.screws import axis_of
from newton_like.robot.state import State
from newton_like.robot.to_model import Edge, joint_frames

PLACES = 16
"""Configurations of a launch."""

_UNSEEN, _PART = 1e-4, 0.1
"""How much nearer than allowed capsules may come between places that were looked at: a distance [m], or this part of the sum of their
radii if that is more."""

_SLIDE = 0.125
"""Least bound of the displacement of joints that translate [m]; the others are this times powers of 2."""


_KEPT = 4
"""Bounds of derivatives that are kept, for different bounds of displacements."""


class Sweep:
    """Straight ways of a robot between its capsules.

    Args:
        robot: the robot.
        state: gives the order of links and joints.
        pairs: see :meth:`Robot.compute_distances`.
    """

    def __init__(self, robot: Robot, state: State, pairs):
        self._robot, self._pairs = robot, pairs
        self._core, self._capsules = state.core, capsules_of(state.core)
        self._chosen = chosen_pairs(self._capsules, pairs)
        self._state = robot.make_state(state.link_names, state.joint_names)
        some = self._capsules.pairs if self._chosen is None else self._capsules.pairs[self._chosen]
        self._unseen = np.maximum(_UNSEEN, _PART * self._capsules.radii[some].sum(axis=1))

    def is_clear(self, start: np.ndarray, end: np.ndarray, near: Distances, floor: np.ndarray) -> bool:
        """Whether distances on the way stay at or above a floor, ``[pairs]``; but for ``_UNSEEN`` and ``_PART`` between the places that are
        looked at. Intervals are halved until the bounds of the distances say so.

        Args:
            start, end: joint positions, ``[n]``.
            near: distances at the start.
            floor: least distances [m]; -infinity for pairs that do not matter.
        """
        s = np.linspace(0.0, 1.0, PLACES + 1)
        d = np.concatenate([near.distance[None], self._distances(start, end, s[1:])])
        if (d[1:] < floor).any():
            return False
        change = self._bounds(start, end) @ np.abs(end - start)
        left, right, first, last = s[:-1], s[1:], d[:-1], d[1:]
        while True:
            least = 0.5 * (first + last - change * (right - left)[:, None])
            undecided = (least < floor - self._unseen).any(axis=1)
            if not undecided.any():
                return True
            left, right, first, last = (x[undecided] for x in (left, right, first, last))
            middle = 0.5 * (left + right)
            found = self._distances(start, end, middle)
            if (found < floor).any():
                return False
            left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
            first, last = np.concatenate([first, found]), np.concatenate([found, last])

    def _distances(self, start: np.ndarray, end: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Distances at parts s of a way, ``[len(s), pairs]``, in launches of one size."""
        found = []
        for i in range(0, len(s), PLACES):
            some = s[i : i + PLACES]
            padded = np.append(some, np.full(PLACES - len(some), some[-1]))
            self._state.set_q(start + padded[:, None] * (end - start))
            found.append(self._robot.compute_distances(self._state, self._pairs).distance[: len(some)])
        return np.concatenate(found)

    def _bounds(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """See :func:`distance_bounds`."""
        return distance_bounds(self._core, self._capsules, self._chosen, start, end)


def distance_bounds(
    core: StateCore, capsules: Capsules, chosen: np.ndarray | None, start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Upper bounds of the derivatives of distances with respect to coordinates, ``[pairs, n]``.

    Args:
        core: gives the order of joints.
        capsules: of the robot.
        chosen: indices of pairs; None: all.
        start, end: joint positions, ``[n]``. The bounds hold between them.
    """
    scale = np.ones(core.dofs) if core.scale is None else np.abs(core.scale)
    slides = np.zeros(core.dofs)
    some = capsules.slides
    if some is None:
        axes = [axis_of(joint.S) for joint in core.joints]
        some = capsules.slides = np.flatnonzero([not axis.rotates or axis.pitch != 0.0 for axis in axes])
    if len(some):
        farthest = np.maximum(np.abs(start[some]), np.abs(end[some])) * scale[some]
        # powers of 2, so that bounds are computed once for many ways
        slides[some] = _SLIDE * 2.0 ** np.ceil(np.log2(np.maximum(farthest / _SLIDE, 1.0)))
    known, key = capsules.bounds, slides.tobytes()
    # threads share capsules
    found = known.get(key)
    if found is None:
        if len(known) >= _KEPT:
            known.pop(next(iter(list(known))), None)
        known[key] = found = _change_bounds(core, capsules, slides[core.order]) * scale
    return found if chosen is None else found[chosen]


def _change_bounds(core: StateCore, capsules: Capsules, slides: np.ndarray) -> np.ndarray:
    """Upper bounds of the derivatives of the distances of all pairs with respect to the motion of joints, ``[pairs, n]``, joints as in the
    state.

    Args:
        slides: of each dof, a bound of its displacement along its axis [m, or rad of a joint with a pitch].
    """
    edges = core.robot.core.edges
    dof_of = {edge.child: i for i, edge in enumerate(edge for edge in edges if not edge.joint.is_fixed())}
    links = [_Link(edge, slides[dof_of[edge.child]] if edge.child in dof_of else 0.0) for edge in edges]
    ends = capsules.numbers[:, :6].reshape(-1, 2, 3)
    bounds = np.zeros((len(capsules.pairs), core.dofs))
    for row, (a, b) in zip(bounds, capsules.pairs, strict=True):
        crossed = list(_crossed(links, capsules.bodies[a], capsules.bodies[b]))
        if not crossed:
            continue
        between = [float(np.linalg.norm(one[2] - other[1])) for one, other in pairwise(crossed)]
        from_a = [float(np.linalg.norm(ends[a] - crossed[0][1], axis=1).max())]
        for (body, _, _), step in zip(crossed[:-1], between, strict=True):
            from_a.append(from_a[-1] + links[body - 1].slide + step)
        from_b = [float(np.linalg.norm(ends[b] - crossed[-1][2], axis=1).max())]
        for (body, _, _), step in zip(crossed[:0:-1], between[::-1], strict=True):
            from_b.append(from_b[-1] + links[body - 1].slide + step)
        for (body, _, _), x, y in zip(crossed, from_a, from_b[::-1], strict=True):
            if body in dof_of:
                link = links[body - 1]
                row[core.order[dof_of[body]]] = min(x, y) + abs(link.pitch) if link.rotates else 1.0
    return bounds


class _Link:
    """The joint of a body: its parent, whether it rotates, its pitch [m/rad], a bound of its displacement [m], and a point of its axis in
    the parent and in the body (for joints that translate, at 0)."""

    def __init__(self, edge: Edge, slide: float):
        self.parent = edge.parent
        if edge.joint.is_fixed():
            self.rotates, self.pitch, self.slide = False, 0.0, 0.0
            self.above, self.below = (edge.T_pj @ edge.T_jc)[:3, 3], np.zeros(3)
        else:
            axis = axis_of(edge.S)
            self.rotates, _, above, below = joint_frames(edge)
            self.above, self.below, self.pitch = above[:3, 3], below[:3, 3], axis.pitch
            self.slide = abs(slide * axis.pitch) if self.rotates else abs(slide)


def _crossed(links: list[_Link], first: int, last: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """The joints between two bodies, from the first to the last one: the body of each joint, and the point of its axis in the body before
    and in the body after it."""
    up, down = [first], [last]
    # parents come before their children
    while up[-1] != down[-1]:
        chain = up if up[-1] > down[-1] else down
        chain.append(links[chain[-1] - 1].parent)
    for body in up[:-1]:
        yield body, links[body - 1].below, links[body - 1].above
    for body in down[-2::-1]:
        yield body, links[body - 1].above, links[body - 1].below
