"""Islands of bodies at rest that are not computed until something disturbs them.

An island is a set of bodies that touch each other. It falls asleep once all its bodies have been slow for a while, if one of them touches
something that no force moves (others would lose their momentum), and if none touches a kinematic body that moves. Asleep, its bodies are
fixed, and contacts between them are not looked for. An island wakes as a whole.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.collision.ground import moving_shapes
from newton_like.kernels.solvers.xpbd.bodies import BODY_INVERSE, DYNAMIC, INVERSE_MASS
from newton_like.model.joint_types import look_up
from newton_like.solvers.xpbd.moving import moving_bodies
from newton_like.solvers.xpbd.tables import floating_joints_that_act, number_places

SPEED, SPIN = 0.02, 0.1
"""Bodies are slow below these velocities [m/s, rad/s]."""
TIME = 0.5
"""Time for which the bodies of an island are slow before it falls asleep [s]."""


class Sleepers:
    """The bodies of a solver that are asleep.

    Attributes:
        asleep: of each body, ``[body_count]`` bool.
        moves: of each shape, one if it moves, ``[shape_count]`` int, for searches of contacts.

    Args:
        model: the model, on a CPU.
        slots: where bodies stand, a :class:`newton_like.solvers.xpbd.tables.Slots`.
        numbers: the numbers of bodies, as the kernels have them.
        inverse_mass, body_moves: of bodies, as the kernels have them.
        pulled: the bodies of tendons and other lines.
    """

    def __init__(
        self, model, slots, numbers: wp.array, inverse_mass: wp.array, body_moves: wp.array, pulled: np.ndarray
    ):
        self._model, count = model, model.body_count
        self.asleep = np.zeros(count, dtype=bool)
        self._island, self._islands = np.full(count, -1), 0
        self._slow = np.zeros(count)
        self._pose = np.zeros((count, 7), dtype=model.body_q.numpy().dtype)
        self._world = model.body_world.numpy()
        self._dynamic = moving_bodies(model)
        self._may_sleep, self._dof = self._free_bodies(pulled), self._dofs()
        # kinematic bodies under islands, as rows of island and body
        self._supports = np.zeros((0, 2), dtype=int)
        self._numbers, self._mass, self._moves = numbers.numpy(), inverse_mass.numpy(), body_moves.numpy()
        rows = [INVERSE_MASS, DYNAMIC, *range(BODY_INVERSE, BODY_INVERSE + 6)]
        self._at = number_places(slots, slice(None), rows)
        self._awake_numbers, self._awake_mass = self._numbers[self._at].copy(), self._mass.copy()
        self._moving = moving_shapes(model).astype(np.int32)
        self.moves = wp.array(self._moving, dtype=wp.int32, device=model.device)

    def _free_bodies(self, pulled: np.ndarray) -> np.ndarray:
        """Bodies that no joint holds or drives, and no line pulls."""
        model = self._model
        held = model.joint_enabled.numpy().astype(bool)
        types = model.joint_type.numpy()
        if len(types):
            held &= ~(look_up(types, "floats") & ~look_up(types, "limits_distance")) | (model.joint_parent.numpy() >= 0)
            held |= model.joint_enabled.numpy().astype(bool) & floating_joints_that_act(model)
        out = self._dynamic.copy()
        out[pulled] = False
        for ends in (model.joint_parent.numpy()[held], model.joint_child.numpy()[held]):
            out[ends[ends >= 0]] = False
        return out

    def _dofs(self) -> np.ndarray:
        """The body that each degree of freedom moves."""
        return np.repeat(self._model.joint_child.numpy(), np.diff(self._model.joint_qd_start.numpy()))

    def _mark(self, bodies: np.ndarray, asleep: bool) -> None:
        self.asleep[bodies] = asleep
        self._numbers[self._at[bodies]] = 0.0 if asleep else self._awake_numbers[bodies]
        self._mass[bodies] = 0.0 if asleep else self._awake_mass[bodies]
        self._moves[bodies] = not asleep
        body = self._model.shape_body.numpy()
        self.moves.numpy()[:] = np.where((body >= 0) & np.append(self.asleep, False)[body], 0, self._moving)

    def _wake(self, islands: np.ndarray) -> None:
        if not len(islands):
            return
        bodies = np.flatnonzero(self.asleep & np.isin(self._island, islands))
        self._slow[bodies], self._island[bodies] = 0.0, -1
        self._supports = self._supports[~np.isin(self._supports[:, 0], islands)]
        self._mark(bodies, False)

    def wake_worlds(self, mask: np.ndarray) -> None:
        """Wakes all bodies of chosen worlds. The times for which they were slow start from zero."""
        chosen = mask[np.maximum(self._world, 0)]
        self._wake(np.unique(self._island[self.asleep & chosen]))
        self._slow[chosen] = 0.0

    def _pairs(self, contacts) -> np.ndarray:
        """The bodies of contacts, -1 for the world, ``[n, 2]``."""
        n = min(int(contacts.rigid_contact_count.numpy()[0]), contacts.rigid_contact_max)
        shapes = np.stack(
            [contacts.rigid_contact_shape0.numpy()[:n], contacts.rigid_contact_shape1.numpy()[:n]], axis=1
        )
        shapes = shapes[((shapes >= 0) & (shapes < self._model.shape_count)).all(axis=1)]
        return self._model.shape_body.numpy()[shapes]

    def _wake_untouched(self, contacts) -> None:
        """Wakes islands of which no body is in a list that the user hands over."""
        if contacts is None or not self.asleep.any():
            return
        touched = np.unique(self._pairs(contacts))
        known = np.unique(self._island[touched[touched >= 0]])
        self._wake(np.setdiff1d(self._island[self.asleep], known))

    def before_step(self, body_q, body_qd, body_f, forces, find, given=None):
        """Wakes what is disturbed, and finds contacts.

        Islands wake if poses or velocities of their bodies were edited, if forces act on them, if they are near a body that is awake or a
        kinematic body that moves, if a kinematic body under them moves or was moved, and if none of their bodies is in a list
        that is handed over.

        Args:
            body_q, body_qd, body_f: poses, velocities and forces of bodies.
            forces: arrays of forces by degrees of freedom.
            find: finds the contacts, and returns their list.
            given: the list that the user hands over; None: there is none.

        Returns:
            The list; None: there are none.
        """
        q, qd, f = (x.numpy().reshape(len(self.asleep), -1) for x in (body_q, body_qd, body_f))
        pushed = f.any(axis=1)
        for array in forces:
            pushed[self._dof[array.numpy().ravel() != 0.0]] = True
        shifted = (q != self._pose).any(axis=1) | qd.any(axis=1)
        self._wake(np.unique(self._island[self.asleep & (pushed | shifted)]))
        kinematic = ~self._dynamic & shifted
        self._wake(np.unique(self._supports[kinematic[self._supports[:, 1]], 0]))
        self._wake_untouched(given)
        while True:
            contacts = find()
            if contacts is None or not self.asleep.any():
                return contacts
            pairs = self._pairs(contacts)
            pairs = pairs[(pairs >= 0).all(axis=1)]
            asleep, acts = self.asleep[pairs], np.where(self._dynamic, ~self.asleep, kinematic)[pairs]
            touched = np.concatenate([pairs[asleep[:, k] & acts[:, 1 - k], k] for k in (0, 1)])
            if not len(touched):
                return contacts
            # these have contacts with other bodies that were not looked for
            self._wake(np.unique(self._island[touched]))

    def after_step(self, body_q, body_qd, contacts, dt: float) -> None:
        """Keeps the poses of bodies that are asleep, and lets islands fall asleep.

        Args:
            body_q, body_qd: poses and velocities after the step.
            contacts: those of the step.
            dt: length of the step [s].
        """
        q, qd = (x.numpy().reshape(len(self.asleep), -1) for x in (body_q, body_qd))
        q[self.asleep], qd[self.asleep] = self._pose[self.asleep], 0.0
        awake = ~self.asleep
        slow = (np.linalg.norm(qd[:, :3], axis=1) < SPEED) & (np.linalg.norm(qd[:, 3:], axis=1) < SPIN)
        self._slow = np.where(slow & self._dynamic, self._slow + dt, 0.0)
        self._pose[awake] = q[awake]
        ready = awake & self._may_sleep & (self._slow >= TIME)
        if not ready.any():
            return
        pairs = np.zeros((0, 2), dtype=int) if contacts is None else self._pairs(contacts)
        held = np.append(~self._dynamic, True)[pairs]
        pairs, on_ground = pairs[(pairs >= 0).all(axis=1)], pairs[held.any(axis=1)]
        both = pairs[(self._dynamic & awake)[pairs].all(axis=1)]
        n = len(self.asleep)
        from scipy.sparse import coo_matrix  # an import takes a third of a second, and few scenes sleep
        from scipy.sparse.csgraph import connected_components

        label = connected_components(coo_matrix((np.ones(len(both)), both.T), shape=(n, n)), directed=False)[1]
        stays = np.zeros(label.max() + 1, dtype=bool)
        stays[label[awake & self._dynamic & ~ready]] = True
        rests = np.zeros(len(stays), dtype=bool)
        rests[label[on_ground[on_ground >= 0]]] = True
        stays |= ~rests
        # bodies that a slow kinematic body carries would stop and wake again and again
        carries = ~self._dynamic & qd.any(axis=1)
        for k in (0, 1):
            stays[label[pairs[carries[pairs[:, 1 - k]], k]]] = True
        bodies = np.flatnonzero(ready & ~stays[label])
        if not len(bodies):
            return
        self._island[bodies] = self._islands + label[bodies]
        self._islands += int(label.max()) + 1
        qd[bodies], self._pose[bodies] = 0.0, q[bodies]
        self._mark(bodies, True)
        for k in (0, 1):
            under = pairs[self.asleep[pairs[:, k]] & ~self._dynamic[pairs[:, 1 - k]]]
            rows = np.stack([self._island[under[:, k]], under[:, 1 - k]], axis=1)
            self._supports = np.unique(np.concatenate([self._supports, rows]), axis=0)
