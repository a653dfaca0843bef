"""Frames and inertias of links for inverse dynamics: those that need the fewest operations.

The z axis of the frame of a link on a revolute joint is the axis of the joint, and its x axis is perpendicular to the next axis, too
(Denavit and Hartenberg 1955), so that the constant rotation between two links is one about x. A link on a prismatic joint has the axes of
its parent, and its centre of mass as origin.

Mass on the axis of a revolute joint moves as the parent does. So the total mass of a link, its first moment and its second moment along
the axis are moved to the parent (Khalil and Kleinfinger 1987, "Minimum operations and minimum parameters of the dynamic models of tree
structure robots"). A link on a prismatic joint turns as its parent does, which gets the second moments about the centre of mass. Forces
of joints stay the same. Links have no inertia on their own then; some numbers may be negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from newton_like.kernels.tree import BODY, CENTRE_OF_MASS, GAIN, INERTIA, JOINT, MASS
from newton_like.robot.screws import axis_of, inverse
from newton_like.robot.to_model import Edge, body_numbers, joint_frames

from newton_like.kernels.robot.newton_euler import (  # isort: skip
    ALONG, ANGLE, DIRECTION, ORIGIN, PITCH, POSITION, ROTATION, SCALE, TURN,
)  # fmt: skip

_ROUNDING = 1e-15
"""Sine of the angle between axes that are parallel up to rounding."""

_FAR = 4.0
"""How far origins are at most, as a multiple of lengths of the link or the robot. The common normal of nearly parallel axes, and rounding
errors of numbers about its feet, may be larger than that."""


class _Axis(NamedTuple):
    """The joint of a link.

    Attributes:
        edge: the joint.
        rotates: whether it is revolute.
        direction, anchor: of its axis in the frame of the parent link.
        turn: orientation of the link in its parent at coordinate 0.
        z, point: direction of the axis and the anchor in the frame of the link.
        pitch, scale: see :func:`newton_like.robot.screws.axis_of`.
    """

    edge: Edge
    rotates: bool
    direction: np.ndarray
    anchor: np.ndarray
    turn: np.ndarray
    z: np.ndarray
    point: np.ndarray
    pitch: float
    scale: float


class _Tree:
    """Links with their frames and mass distributions.

    Attributes:
        turn, origin: of the frame of each link, in the link's own frame.
        joint, gain: numbers of joints and of dofs as :mod:`newton_like.kernels.robot.newton_euler` has them.
    """

    def __init__(self, inertias, edges: list[Edge]):
        self.count = len(inertias)
        self.axes: dict[int, _Axis] = {e.child: _axis(e) for e in edges if not e.joint.is_fixed()}
        self.fixed = {e.child: e for e in edges if e.joint.is_fixed()}
        self.children: list[list[int]] = [[] for _ in inertias]
        for k, axis in self.axes.items():
            self.children[axis.edge.parent].append(k)
        self.numbers = [body_numbers(G) for G in inertias]
        self.turn, self.origin = [np.eye(3)] * self.count, [np.zeros(3)] * self.count
        self.joint = np.zeros((self.count, JOINT))
        # links whose origin is the foot of the common normal with the next axis
        self.footed: dict[int, int] = {}
        lengths = [v for x in self.axes.values() for v in (x.anchor, x.point)] + [x["com"] for x in self.numbers]
        self.size = float(np.abs(lengths).max())

    def place(self, k: int) -> None:
        """Frame of link k, and the numbers of its joint but for the origin of a link on a prismatic joint."""
        axis, row = self.axes[k], self.joint[k]
        p = axis.edge.parent
        row[SCALE] = axis.scale
        x = self.turn[p].T @ (axis.anchor - self.origin[p])
        u = self.turn[p].T @ axis.direction
        if not axis.rotates:
            self.turn[k], self.origin[k] = axis.turn.T @ self.turn[p], axis.point
            row[POSITION : POSITION + 3], row[DIRECTION : DIRECTION + 3] = x, _clean(u)
            return
        near = -float(u @ x)
        x = x + near * u
        if self.footed.get(p) == k:
            x, u = np.array([x[0], 0.0, 0.0]), np.array([0.0, u[1], u[2]])
        u = _clean(u / np.linalg.norm(u))
        R = _turned_to(u)
        along, side = self._next(k, near)
        self.origin[k] = axis.point + along * axis.z
        self.turn[k] = np.column_stack([side, np.cross(axis.z, side), axis.z])
        spin = R.T @ self.turn[p].T @ axis.turn @ self.turn[k]
        row[POSITION : POSITION + 3], row[ROTATION : ROTATION + 9] = x, R.ravel()
        row[ALONG], row[ANGLE], row[PITCH] = along - near, np.arctan2(spin[1, 0], spin[0, 0]), axis.pitch

    def frames(self) -> np.ndarray:
        """Numbers of links that move, ``[dofs, GAIN]``; writes those of the others."""
        rows = np.zeros((len(self.axes), GAIN))
        for dof, k in enumerate(self.axes):
            rows[dof, TURN : TURN + 9], rows[dof, ORIGIN : ORIGIN + 3] = self.turn[k].ravel(), self.origin[k]
        for k, edge in self.fixed.items():
            to_carrier = inverse(edge.T_pj @ edge.T_jc)
            row, turn = self.joint[k], to_carrier[:3, :3]
            row[ROTATION : ROTATION + 9] = (turn @ self.turn[edge.parent]).ravel()
            row[POSITION : POSITION + 3] = turn @ self.origin[edge.parent] + to_carrier[:3, 3]
        return rows

    def _next(self, k: int, near: float) -> tuple[float, np.ndarray]:
        """Where the origin of link k is on its axis, from the anchor, and the direction of x. `near`: the point next to the origin of the
        parent."""
        z, point = self.axes[k].z, self.axes[k].point
        for child in self.children[k]:
            after = self.axes[child]
            if after.rotates:
                normal, between = np.cross(z, after.direction), point - after.anchor
                s = float(np.linalg.norm(normal))
                if s < _ROUNDING:
                    aside = after.anchor - point
                    aside = aside - (aside @ z) * z
                    if np.linalg.norm(aside) <= _ROUNDING * self.size:
                        aside = _across(z)
                    self.footed[k] = child
                    return near, _side(aside, z)
                c = float(z @ after.direction)
                foot = (c * float(after.direction @ between) - float(z @ between)) / s**2
                nearby = np.linalg.norm(between) + np.linalg.norm(self.numbers[k]["com"] - point)
                if abs(foot) <= _FAR * nearby:
                    self.footed[k] = child
                    return foot, _side(normal, z)
        directions = self._directions(k, np.eye(3))
        normals = [np.cross(z, direction) for direction in directions]
        return near, _side(next((n for n in normals if np.linalg.norm(n) >= _ROUNDING), _across(z)), z)

    def _directions(self, k: int, turn: np.ndarray):
        """Directions of the next revolute joints behind link k, as long as all are at coordinate 0. `turn`: of link k."""
        for child in self.children[k]:
            axis = self.axes[child]
            if axis.rotates:
                yield turn @ axis.direction
            else:
                yield from self._directions(child, turn @ axis.turn)

    def regroup(self) -> np.ndarray:
        """Numbers of the links, ``[links, BODY]``; places links on prismatic joints at their centres of mass."""
        rows = np.zeros((self.count, BODY))
        masses, firsts, seconds = np.zeros(self.count), np.zeros((self.count, 3)), np.zeros((self.count, 3, 3))
        for k in range(self.count - 1, 0, -1):
            if k not in self.axes:
                continue
            axis, row, number = self.axes[k], self.joint[k], self.numbers[k]
            p, com = axis.edge.parent, self.turn[k].T @ (number["com"] - self.origin[k])
            J = self.turn[k].T @ number["inertia"] @ self.turn[k]
            masses[k] += number["mass"]
            firsts[k] += number["mass"] * com
            seconds[k] += 0.5 * np.trace(J) * np.eye(3) - 0.5 * (J + J.T) + number["mass"] * np.outer(com, com)
            if axis.rotates and not axis.pitch:
                u = row[ROTATION + 2 : ROTATION + 9 : 3]
                at = row[POSITION : POSITION + 3] + row[ALONG] * u
                moment = firsts[k, 2]
                masses[p] += masses[k]
                firsts[p] += masses[k] * at + moment * u
                seconds[p] += masses[k] * np.outer(at, at) + moment * (np.outer(at, u) + np.outer(u, at))
                seconds[p] += seconds[k, 2, 2] * np.outer(u, u)
                masses[k] = firsts[k, 2] = seconds[k, 2, 2] = 0.0
            elif not axis.rotates and np.abs(firsts[k]).max() <= _FAR * self.size * masses[k]:
                if masses[k]:
                    com = firsts[k] / masses[k]
                    seconds[k] -= masses[k] * np.outer(com, com)
                    row[POSITION : POSITION + 3] += com
                    self.origin[k] = self.origin[k] + self.turn[k] @ com
                    for child in self.children[k]:
                        self.joint[child, POSITION : POSITION + 3] -= com
                seconds[p] += seconds[k]
                firsts[k], seconds[k] = 0.0, 0.0
        rows[:, MASS], rows[:, CENTRE_OF_MASS : CENTRE_OF_MASS + 3] = masses, firsts
        for i, (a, b) in enumerate(((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))):
            rows[:, INERTIA + i] = seconds[:, a, b]
        # that of the base link acts on no joint
        rows[0] = 0.0
        return rows


def _axis(edge: Edge) -> _Axis:
    rotates, axis, X_p, X_c = joint_frames(edge)
    turn = X_p[:3, :3] @ X_c[:3, :3].T
    ends = X_p[:3, :3] @ axis, X_p[:3, 3], turn, X_c[:3, :3] @ axis, X_c[:3, 3]
    return _Axis(edge, rotates, *ends, axis_of(edge.S).pitch, axis_of(edge.S).scale)


def _clean(u: np.ndarray) -> np.ndarray:
    """A direction without numbers that are rounding errors of zero."""
    return np.where(np.abs(u) < _ROUNDING, 0.0, u)


def _across(z: np.ndarray) -> np.ndarray:
    """A vector that is not parallel to z."""
    return np.eye(3)[np.argmin(np.abs(z))]


def _side(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The unit vector perpendicular to z next to x."""
    x = x / np.linalg.norm(x)
    x = x - (x @ z) * z
    return x / np.linalg.norm(x)


def _turned_to(u: np.ndarray) -> np.ndarray:
    """A rotation whose third column is u, about the x axis if that is possible."""
    x = np.array([1.0, 0.0, 0.0]) if u[0] == 0.0 else _side(np.array([u[1], -u[0], 0.0]), u)
    return np.column_stack([x, np.cross(u, x), u])


def regrouped_numbers(inertias, edges: list[Edge]) -> dict[str, np.ndarray]:
    """Numbers of groups of parameters for :mod:`newton_like.kernels.robot.newton_euler`.

    Args:
        inertias: 6 x 6, of links; zero for those on fixed joints.
        edges: the joints, in the order of their child links, parents first. No parent is on a fixed joint.
    """
    tree = _Tree(inertias, edges)
    for k in tree.axes:
        tree.place(k)
    bodies = tree.regroup()
    return dict(joint=tree.joint, body=bodies, gain=tree.frames())
