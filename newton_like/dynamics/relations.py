"""Relations between coordinates of joints: mimic joints, and polynomials of equality constraints."""

from __future__ import annotations

import numpy as np

from newton_like.dynamics.internal.common import columns
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.model.mujoco.equality_settings import equalities_of, switched_off

POWERS = 5
"""Coefficients of a polynomial."""


class Relations:
    """The relations of a model, ``q1 = c0 + c1 q2 + ... + c4 q2^4``, row by row in each articulation.

    Args:
        model: the model.

    Attributes:
        count: the largest number of relations of an articulation.
        names: of each articulation and each of its rows, the relation in words.

    Raises:
        ValueError: an equality constraint is out of range, or ties joints that are not revolute or prismatic, or not in one articulation.
    """

    def __init__(self, model):
        articulation = model.joint_articulation.numpy()
        found = [*_mimics(model), *_polynomials(model, articulation)]
        owner = articulation[[j for j, *_ in found]] if found else np.zeros(0, dtype=int)
        taken = np.zeros(model.articulation_count, dtype=int)
        self._at = np.zeros((2, len(found)), dtype=int)
        for i, a in enumerate(owner.tolist()):
            self._at[:, i] = a, taken[a]
            taken[a] += 1
        self.count = int(taken.max(initial=0))
        self.names: list[list[str]] = [[] for _ in range(model.articulation_count)]
        for (j, leader, _, law), a in zip(found, owner.tolist(), strict=True):
            self.names[a].append(relation_name(model, j, leader, law))
        self._shape = (model.articulation_count, self.count, columns(model))
        if not found:
            return
        q_start, qd_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
        first = qd_start[model.articulation_start.numpy()[owner]]
        # of both joints the coordinate, and the number of the dof in the articulation
        ends = np.array([(j, leader, n) for j, leader, n, _ in found])
        self._led = ends[:, 1] >= 0
        both = np.maximum(ends[:, :2], 0).T
        self._q = [q_start[joints] + ends[:, 2] for joints in both]
        self._dof = [qd_start[joints] + ends[:, 2] - first for joints in both]
        self._law = np.array([law for *_, law in found], dtype=np.float64)

    def rows(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Their Jacobian, ``[articulation_count, count, max_dofs_per_articulation]``, and their errors, ``[articulation_count, count]``.

        Args:
            q: coordinates of all joints.
        """
        K, gap = np.zeros(self._shape), np.zeros(self._shape[:2])
        if self.count:
            leader = np.where(self._led, q[self._q[1]], 0.0)
            powers = leader[:, None] ** np.arange(POWERS)
            slope = np.sum(self._law[:, 1:] * powers[:, :-1] * np.arange(1, POWERS), axis=1)
            K[(*self._at[:, self._led], self._dof[1][self._led])] = -slope[self._led]
            K[(*self._at, self._dof[0])] += 1.0
            gap[tuple(self._at)] = q[self._q[0]] - np.sum(self._law * powers, axis=1)
        return K, gap


def relation_name(model, joint: int, leader: int, law) -> str:
    """A relation in words, for messages."""
    terms = [f"{c:g}" + (f" q^{n}" if n > 1 else " q" if n else "") for n, c in enumerate(law) if c or not n]
    other = f", q of '{model.joint_label[leader]}'" if leader >= 0 else ""
    return f"the relation of joint '{model.joint_label[joint]}' (index {joint}) = {' + '.join(terms)}{other}"


def has_polynomials(model) -> str:
    """The error for functions that do not know polynomials between joints; empty if the model has none."""
    rows = equalities_of(model)
    joints = [] if rows is None else rows["joint1"][rows["target"] < 0].tolist()
    if not joints:
        return ""
    return (
        f"an equality constraint ties joint '{model.joint_label[joints[0]]}' (index {joints[0]}) by a polynomial, which is not supported"
        " here; SolverFeatherstone and dynamics.assemble know polynomials, and set_joint_mimic makes linear relations"
    )


def _mimics(model) -> list[tuple]:
    """Of each dof of a follower: joint, leader, number of the dof, coefficients."""
    leaders, coeffs = model.joint_mimic_joint.numpy(), model.joint_mimic_coeffs.numpy()
    on, sizes = model.joint_enabled.numpy().astype(bool) & ~switched_off(model), model.joint_dof_dim.numpy().sum(axis=1)
    return [
        (j, int(leaders[j]), n, (*coeffs[j].tolist(), *[0.0] * (POWERS - 2)))
        for j in np.flatnonzero((leaders >= 0) & on).tolist()
        for n in range(int(sizes[j]))
    ]


def _polynomials(model, articulation) -> list[tuple]:
    rows = equalities_of(model)
    if rows is None:
        return []
    types, sizes = model.joint_type.numpy(), model.joint_dof_dim.numpy().sum(axis=1)
    found = []
    for target, j, leader, law in zip(rows["target"], rows["joint1"], rows["joint2"], rows["polycoef"], strict=True):
        if target >= 0:
            continue
        for k in (int(j), int(leader)):
            if k >= 0 and (not JOINT_TYPES[int(types[k])].axis_by_axis or sizes[k] != 1 or articulation[k] < 0):
                raise ValueError(
                    f"an equality constraint ties joint '{model.joint_label[k]}' (index {k}), which is not a revolute or prismatic joint"
                    " of an articulation; tie such joints"
                )
        if leader >= 0 and articulation[j] != articulation[leader]:
            raise ValueError(
                f"an equality constraint ties joint '{model.joint_label[j]}' (index {j}) to joint '{model.joint_label[leader]}' (index"
                f" {leader}) of another articulation; make one of both by builder.merge_articulations"
            )
        law = law.tolist() if leader >= 0 else [float(law[0]), *[0.0] * (POWERS - 1)]
        found.append((int(j), int(leader), 0, tuple(law)))
    return found
