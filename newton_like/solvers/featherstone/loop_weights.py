"""Inverse masses of bodies, joints and tendons at the initial coordinates of a model, by which soft equality constraints and
limits of joints and tendons are soft, and the measure of what is small for rigid ones. These coordinates are those that the model had when
it was finalized: later edits of ``joint_q`` choose where motions start, and change no softness.

A soft row has R = (1 - d) / d w, see `kernels.solvers.rows.closure_rows`. w is a property of the model, as in MuJoCo, and not of the pose:
where nothing gives way along a row, its response vanishes, and a softness that vanished with it would be none.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from newton_like.arrays import unrecorded
from newton_like.dynamics.assemble import displace
from newton_like.dynamics.jacobians import link_jacobians
from newton_like.dynamics.matrices import mass_matrix, mass_matrix_inverse
from newton_like.dynamics.tendons import tendon_jacobian, tendons_of
from newton_like.model.editing.edits import BODIES, JOINTS, KINDS, SHAPES, edits_of
from newton_like.types import BodyFlags, VelRepr

ALIGNED = 1.0e-6
"""Cosines, products of inertia and centres of mass [m] within this of their ideal count as such."""

NEVER_LESS = 1.0e-4
"""Part of the largest inverse mass along a tendon that the one of its limits has at least, if it begins where motions hardly change its
length."""

POSES = 3
"""Poses in which the largest inverse mass along a tendon is looked for: the initial one, and others."""


def initial_state(model):
    """A state with the coordinates that a model had when it was finalized."""
    state = model.state(requires_grad=False)
    state.joint_q.assign(model._finalized_q)
    return state


class InverseMasses:
    """Inverse masses of a model at the coordinates of :func:`initial_state`, computed when they are first asked for.

    Args:
        model: the model.
    """

    def __init__(self, model):
        self.model = model
        self._state = initial_state(model)

    @cached_property
    def _responses(self) -> np.ndarray:
        """Inverse mass matrices, ``[articulations, dofs, dofs]``; zero for dofs that an articulation lacks, and for those of kinematic
        bodies."""
        return self._responses_at(self._state)

    @cached_property
    def _own_responses(self) -> np.ndarray:
        """The diagonals of the inverse mass matrices, ``[articulations, dofs]``."""
        model = self.model
        massive = len(model.tendons) > 0 and model.tendon_armature.numpy().any()
        if massive or (model.body_flags.numpy() & int(BodyFlags.KINEMATIC)).any():
            return np.diagonal(self._responses, axis1=1, axis2=2)
        # on the device, in a twentieth of the time
        return np.diagonal(mass_matrix_inverse(model, self._state).numpy(), axis1=1, axis2=2)

    def _responses_at(self, state) -> np.ndarray:
        """With the inertia along tendons."""
        matrices = mass_matrix(self.model, state).numpy().astype(np.float64)
        if self.model.tendons and self.model.tendon_armature.numpy().any():
            own = tendons_of(self.model).table
            armature = self.model.tendon_armature.numpy().astype(np.float64)
            armature = np.where(own >= 0, armature[np.maximum(own, 0)], 0.0)
            rows = tendon_jacobian(self.model, state).numpy().astype(np.float64)
            matrices += np.einsum("ati,at,atj->aij", rows, armature, rows)
        moves = (np.diagonal(matrices, axis1=1, axis2=2) > 0.0) & ~self._prescribed(matrices.shape[1])
        both = moves[:, :, None] & moves[:, None, :]
        return np.linalg.inv(np.where(both, matrices, np.eye(matrices.shape[1]))) * both

    def _prescribed(self, dofs: int) -> np.ndarray:
        """Which dofs move kinematic bodies, ``[articulations, dofs]``."""
        model = self.model
        found = np.zeros((model.articulation_count, dofs), dtype=bool)
        kinematic = (model.body_flags.numpy() & int(BodyFlags.KINEMATIC)) != 0
        if kinematic.any():
            start, owner = model.joint_qd_start.numpy(), model.joint_articulation.numpy()
            first = start[model.articulation_start.numpy()]
            for j in np.flatnonzero(kinematic[model.joint_child.numpy()] & (owner >= 0)).tolist():
                a = owner[j]
                found[a, start[j] - first[a] : start[j + 1] - first[a]] = True
        return found

    @cached_property
    def links(self) -> np.ndarray:
        """Mean inverse masses and mean inverse moments of inertia of links at their centres of mass, ``[articulations, links, 2]``."""
        jacobians = link_jacobians(self.model, self._state, out_repr=VelRepr.COM).numpy().astype(np.float64)
        rows = jacobians.reshape(*jacobians.shape[:2], 2, 3, -1)
        found = np.einsum("alsij,ajk,alsik->als", rows, self._responses, rows) / 3.0
        for a, k, mass in self._sliders():
            found[a, k] = 1.0 / mass, 0.0
        return found

    def _sliders(self) -> Iterator[tuple[int, int, float]]:
        """Articulations, numbers and masses of links that count with their whole inverse mass although they slide along some axes only:
        those for which MuJoCo's ``body_simple`` is 2. Their parents are fixed, they have no children, they slide along axes of their own
        frames, and their principal axes are these frames."""
        from scipy.spatial.transform import Rotation  # an import takes a quarter of a second

        model = self.model
        start, owner, child, parent, dims, starts, axes, X_c, com, inertia, mass = (
            getattr(model, name).numpy()
            for name in (
                "articulation_start", "joint_articulation", "joint_child", "joint_parent", "joint_dof_dim",
                "joint_qd_start", "joint_axis", "joint_X_c", "body_com", "body_inertia", "body_mass",
            )
        )  # fmt: skip
        slides = (dims[:, 0] > 0) & (dims[:, 1] == 0)
        parents = set(parent[owner >= 0].tolist())
        for j in np.flatnonzero(slides & (owner >= 0)).tolist():
            body = int(child[j])
            own = Rotation.from_quat(X_c[j, 3:]).apply(axes[starts[j] : starts[j] + dims[j, 0]])
            aligned = (abs(own).max(axis=1) > 1.0 - ALIGNED).all()
            tensor = inertia[body].reshape(3, 3)
            principal = abs(tensor - np.diag(np.diag(tensor))).max() <= ALIGNED * abs(tensor).max()
            if parent[j] < 0 and body not in parents and aligned and principal and abs(com[body]).max() <= ALIGNED:
                yield int(owner[j]), j - int(start[owner[j]]), float(mass[body])

    @cached_property
    def tendons(self) -> np.ndarray:
        """Inverse masses along tendons, ``[articulations, tendons]``."""
        rows = tendon_jacobian(self.model, self._state).numpy().astype(np.float64)
        return np.einsum("atj,ajk,atk->at", rows, self._responses, rows)

    def most_of_tendons(self) -> np.ndarray:
        """The largest inverse masses along tendons in some poses, displaced from the initial one in the same way in all worlds."""
        found = [self.tendons]
        dofs = self._responses.shape[1]
        for n in range(1, POSES):
            state = initial_state(self.model)
            turned = np.sin(n * (1.0 + np.arange(dofs)))
            displace(self.model, state, np.broadcast_to(turned, (self.model.articulation_count, dofs)))
            rows = tendon_jacobian(self.model, state).numpy().astype(np.float64)
            found.append(np.einsum("atj,ajk,atk->at", rows, self._responses_at(state), rows))
        return np.max(found, axis=0)

    def of_ends(self, a: int, links: tuple[int, int], turns: bool) -> float:
        """The sum of the mean inverse masses of two links of an articulation, or of their inverse moments; links below 0 are the world."""
        return float(sum(self.links[a, k, int(turns)] for k in links if k >= 0))

    def of_dof(self, a: int, dof: int) -> float:
        """The inverse inertia of a dof, counted from the first one of its articulation."""
        return float(self._responses[a, dof, dof])

    def of_dofs(self) -> np.ndarray:
        """The inverse inertias of all degrees of freedom; zero for those that belong to no articulation, ``[joint_dof_count]``."""
        model = self.model
        start, owner = model.joint_qd_start.numpy(), model.joint_articulation.numpy()
        of = np.repeat(owner, np.diff(start))
        first = start[model.articulation_start.numpy()]
        found = np.zeros(model.joint_dof_count)
        own = np.flatnonzero(of >= 0)
        dof = own - first[of[own]]
        found[own] = self._own_responses[of[own], dof]
        return found

    def of_tendon(self, a: int, n: int) -> float:
        """The inverse inertia along tendon n of an articulation."""
        return float(self.tendons[a, n])


class References(NamedTuple):
    """Sizes of the responses of rows, in poses in which they do not vanish.

    Attributes:
        tendons: the largest inverse masses along tendons in some poses, ``[articulations, tendons]``.
        links: see :attr:`InverseMasses.links`.
    """

    tendons: np.ndarray
    links: np.ndarray

    def of_row(self, a: int, tendon: int, links: tuple[int, int]) -> float:
        """That of a tendon of an articulation; if `tendon` is below 0, of the distance of two links, which are the world if below 0."""
        return float(self.tendons[a, tendon] if tendon >= 0 else sum(self.links[a, k, 0] for k in links if k >= 0))


_references: WeakKeyDictionary = WeakKeyDictionary()


def references_of(model) -> References:
    """The references of a model. They stay when masses are edited: only their order of magnitude counts."""
    known = _references.get(model)
    if known is None or known[0] != len(model.tendons):
        masses = InverseMasses(model)
        tendons = masses.most_of_tendons() if model.tendons else np.zeros((model.articulation_count, 0))
        known = _references[model] = len(model.tendons), References(tendons, masses.links)
    return known[1]


_weights: WeakKeyDictionary = WeakKeyDictionary()


def _state_of_masses(model) -> tuple:
    """What changes where masses, anchors or inertias along joints and tendons are edited."""
    last = edits_of(model).last
    inertias = [getattr(model, f"{name}_armature").numpy().tobytes() for name in ("joint", "tendon")]
    return (len(model.tendons), last[BODIES], last[JOINTS], last[KINDS], *inertias)


_of_dofs: WeakKeyDictionary = WeakKeyDictionary()


def dof_weights(model) -> np.ndarray:
    """The inverse inertias of degrees of freedom by which position limits are soft, ``[joint_dof_count]``, as ``dof_invweight0`` of
    MuJoCo, at the coordinates of :func:`initial_state`; computed again when masses, anchors or inertias along joints and tendons were
    edited."""
    key = _state_of_masses(model)
    known = _of_dofs.get(model)
    if known is None or known[0] != key:
        with unrecorded(model.device, "the softness of limits of joints"):
            known = _of_dofs[model] = key, InverseMasses(model).of_dofs()
    return known[1]


def tendon_weights(model) -> np.ndarray:
    """The inverse masses along all tendons by which their limits are soft, ``[articulations, tendons]``, those of MuJoCo's
    ``tendon_invweight0``; computed again when masses, anchors, shapes or inertias along joints and tendons were edited."""
    key = (edits_of(model).last[SHAPES], *_state_of_masses(model))
    known = _weights.get(model)
    if known is None or known[0] != key:
        with unrecorded(model.device, "the softness of limits of tendons"):
            weights = np.maximum(InverseMasses(model).tendons, NEVER_LESS * references_of(model).tendons)
        known = _weights[model] = key, weights
    return known[1]
