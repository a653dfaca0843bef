"""Forces of couplings: mimic joints, DISTANCE joints, polynomials between joints, and ties of tendons; and forces along the directions in
which loop joints move, and of limits of ball joints."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from newton_like.arrays import as_numbers
from newton_like.kernels.solvers.rows.couplings import coupling_force_kernel
from newton_like.kernels.tree import SPAN
from newton_like.model.editing.edits import edits_of
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.model.mujoco.equality_settings import equalities_of
from newton_like.solvers.featherstone.loop_rows import (
    ANGLE_BOUND,
    BOUND,
    MIMIC,
    MOTOR,
    OF_ROWS,
    PASSIVE,
    POLYNOMIAL_ROW,
    ROPE,
    RUBBING,
    SWING_BOUND,
    TIE,
    SolverRows,
)
from newton_like.types import BodyFlags


class Coupling(NamedTuple):
    """A relation between coordinates or lengths, along whose first coordinate a force acts; or a force along a coordinate of a loop joint,
    or along the angle that a limit of a ball joint is about.

    ========== ================================================= ====================================================
    kind       `index`                                           the force, positive where it
    ========== ================================================= ====================================================
    mimic      the joint that follows                            increases its coordinate [N or N m]
    distance   the DISTANCE joint                                pushes its anchors apart [N]
    polynomial row of ``mujoco:equality_constraint``             increases the coordinate of its first joint [N or N m]
    tie        the tied tendon                                   makes the tendon longer [N; N m along angles]
    spring     the loop joint; its spring and damper             increases the coordinate [N or N m]
    drive      the loop joint                                    increases the coordinate [N or N m]
    friction   the loop joint; its dry friction                  increases the coordinate [N or N m]
    limit      the loop joint; its limits of position            increases the coordinate [N or N m]
    max_angle  the ball joint, of a tree or of a loop            increases the angle, so that it is never positive [N m]
    max_swing  the ball joint, of a tree or of a loop            increases the angle, so that it is never positive [N m]
    ========== ================================================= ====================================================

    The other coordinate or length of a relation ``q1 = p(q2)`` gets ``-p'(q2)`` times the force. Forces from ``spring`` on are listed where
    the joint has them (is enabled, and has a stiffness, a limit, ...), or where their arrays are named in ``varying``.

    Attributes:
        kind: see the table.
        index: see the table.
        part: which of the ``ties`` of the tendon, or which degree of freedom of the joint that follows or of the loop joint; otherwise
            zero.
        label: label of the joint, of the first joint or of the tendon.
        world: its world; -1: in none.
    """

    kind: str
    index: int
    part: int
    label: str
    world: int


_KINDS = {
    MIMIC: "mimic", ROPE: "distance", POLYNOMIAL_ROW: "polynomial", TIE: "tie", PASSIVE: "spring", MOTOR: "drive", RUBBING: "friction",
    BOUND: "limit", ANGLE_BOUND: "max_angle", SWING_BOUND: "max_swing",
}  # fmt: skip


def couplings_of(model, rows: SolverRows | None = None) -> list[Coupling]:
    """The couplings of a model, by world, then by kind in the order of the table of :class:`Coupling`, then by `index` and `part`; also
    those that are not enabled.

    Args:
        model: the model.
        rows: its rows, with forces of loop joints and limits of ball joints.
    """
    labels, worlds = model.joint_label, model.joint_world.numpy().tolist()
    found = []

    def add(kind: int, joint: int, index: int, part: int = 0) -> None:
        found.append((worlds[joint], kind, index, part, labels[joint]))

    dofs = np.diff(model.joint_qd_start.numpy()).tolist()
    for j in np.flatnonzero(model.joint_mimic_joint.numpy() >= 0).tolist():
        for n in range(dofs[j]):
            add(MIMIC, j, j, n)
    for j in np.flatnonzero([JOINT_TYPES[kind].limits_distance for kind in model.joint_type.numpy().tolist()]).tolist():
        add(ROPE, j, j)
    equalities = equalities_of(model, every=True)
    if equalities is not None:
        first = equalities["joint1"]
        listed = (equalities["target"] < 0) & (first >= 0) & (first < model.joint_count)
        for i in np.flatnonzero(listed).tolist():
            add(POLYNOMIAL_ROW, int(first[i]), i)
    if any(tendon.ties for tendon in model.tendons):
        of_tendons = model.tendon_world.numpy().tolist()
        for n, tendon in enumerate(model.tendons):
            found += [(of_tendons[n], TIE, n, part, tendon.label) for part in range(len(tendon.ties))]
    keys = [] if rows is None else rows.couplings.reshape(-1, 3).tolist()
    found += [(worlds[j], kind, j, part, labels[j]) for kind, j, part in keys if kind >= OF_ROWS]
    return [Coupling(_KINDS[kind], index, part, label, world) for world, kind, index, part, label in sorted(found)]


class CouplingForces:
    """Finds the forces of couplings in the memory of the steps of a solver.

    Args:
        solver: the solver.
    """

    def __init__(self, solver):
        self._solver, self._version, self._listed = solver, None, []
        self._places: WeakKeyDictionary = WeakKeyDictionary()

    @property
    def listed(self) -> list[Coupling]:
        """The couplings of the model."""
        version = edits_of(self._solver.model).version
        if version != self._version:
            self._listed, self._version = couplings_of(self._solver.model, self._solver.loops), version
            self._places.clear()
        return self._listed

    def take(self, steppers) -> wp.array:
        """The forces in the last step, ``[couplings]``.

        Args:
            steppers: those of this step.
        """
        solver = self._solver
        model, listed = solver.model, self.listed
        force = wp.zeros(len(listed), dtype=model.dtype, device=model.device)
        for stepper in steppers if listed else ():
            if stepper not in self._places:
                self._places[stepper] = self._find(stepper)
            index, places, bodies = self._places[stepper]
            if not index.size:
                continue
            work = stepper.work
            wp.launch(
                coupling_force_kernel(work.m.real),
                dim=index.shape,
                inputs=[
                    index,
                    places,
                    bodies,
                    model.body_flags,
                    int(BodyFlags.KINEMATIC),
                    work.m.width,
                    as_numbers(stepper.kept, work.m.real, work.m.width),
                ],
                outputs=[force],
                device=work.device,
            )
        return force

    def _find(self, stepper) -> tuple[wp.array, wp.array, wp.array]:
        """Which couplings a stepper solves, ``[count, n]``; where their forces are, ``[n]``; and the bodies whose joints they couple where
        rows may have no effect, ``[count, n, 2]``, -1: none."""
        batch, work = stepper.batch, stepper.work
        names = {kind: number for number, kind in _KINDS.items()}
        at = {(names[one.kind], one.index, one.part): i for i, one in enumerate(self.listed)}
        arrays, columns, places, bodies = stepper.tables.arrays, [], [], []
        child = self._solver.model.joint_child.numpy()
        table = [arrays[f"coupling_{name}"].tolist() for name in ("kind", "body", "other")]
        for e, (kind, body, other) in enumerate(zip(*table, strict=True)):
            joints, others = (batch.joint_start + batch.template.joint_slot[k] for k in (body, other))
            bodies.append([child[joints], child[others] if kind != SPAN else np.full(batch.count, -1)])
            part = max(kind - SPAN, 0)
            columns.append([(ROPE if kind == SPAN else MIMIC, int(j), part) for j in joints])
            places.append(e)
        for row, keys in stepper.closures.couplings(self._solver.loops):
            columns.append([tuple(key) for key in keys.tolist()])
            places.append(work.numbers["couplings"] + row)
            bodies.append(np.full((2, batch.count), -1))
        # one that was edited without a notice is in no list
        index = np.array([[at.get(key, -1) for key in column] for column in columns], dtype=int)
        index = np.ascontiguousarray(index.reshape(len(columns), batch.count).T)
        places = np.array(places, dtype=int) + work.L.kept_coupling_impulse
        bodies = np.ascontiguousarray(
            np.array(bodies, dtype=int).reshape(len(columns), 2, batch.count).transpose(2, 0, 1)
        )
        return tuple(wp.array(x, dtype=wp.int32, device=work.device) for x in (index, places, bodies))
