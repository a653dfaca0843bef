"""Loop joints: their constraints on the accelerations of trees, and constrained dynamics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from newton_like.arrays import constant_array
from newton_like.coercion import as_index, as_number
from newton_like.dynamics.forces import forward_dynamics, link_wrenches
from newton_like.dynamics.internal.common import (
    Q,
    V,
    by_articulation,
    columns,
    constants,
    dof_vector,
    evaluate,
    output_array,
    output_arrays,
    representation,
    state_arrays,
)
from newton_like.dynamics.internal.frames import NONE, WORLD
from newton_like.dynamics.names import names_of, unknown
from newton_like.dynamics.relations import has_polynomials
from newton_like.geometry.transforms import quat_rotate
from newton_like.kernels.dynamics.loops import ANGULAR, LINEAR, LOOP, NO_ROW, PROXIMAL_STEPS
from newton_like.model.mujoco.equality_settings import switched_off
from newton_like.model.singular import check_invertible
from newton_like.programs.program import Field, Program
from newton_like.types import MAXVAL, VelRepr

TIME_CONSTANT = 0.1
"""Default time constant [s] of the critically damped spring that closes open loops."""


@dataclass(frozen=True)
class LoopRows:
    """Constraint rows of some articulations: their kinds, and the links of their parents followed by those of their children."""

    kinds: tuple[int, ...]
    links: tuple[int, ...]

    def of(self, batch) -> dict:
        """Integers and arrays of ``Tree`` for programs; see `tables` of :class:`newton_like.programs.program.Program`."""
        arrays = {"loop_kind": np.array(self.kinds), "point_body": np.array(self.links)}
        count = len(self.kinds)
        return {"loop_rows": count, "loop_block": count, "proximal_steps": PROXIMAL_STEPS, **arrays}


class Loops:
    """Constraint rows of the loop joints of a model, for one version of the model.

    Attributes:
        joints: for every articulation, the indices in the model of the loop joints on its links.
        ranges: for each of these, the half-open range of its rows.
        count: the largest number of rows of an articulation.
        parts: pairs of rows and a mask of the articulations that have them; None: all articulations.
        vectors: anchors and directions of the rows, ``[articulation_count, rows * LOOP]``; None: there are no rows.
        rows: kinds of rows, links of their parents and links of their children, ``[articulation_count, 3, rows]``.
        numbers: `vectors` on the host, ``[articulation_count, rows, LOOP]``.
        enabled: whether any loop joint is enabled.
        passive: kinds of passive forces of enabled loop joints, each with the message of its error.
        distance: the error of a loop joint that limits a distance; empty: there is none.
        polynomial: the error of a polynomial between joints; empty: there is none.
    """

    def __init__(self, model):
        self.version = model.version
        closing = np.flatnonzero(model.joint_articulation.numpy() < 0)
        self.joints: list[list[int]] = [[] for _ in range(model.articulation_count)]
        self.ranges: list[list[tuple[int, int]]] = [[] for _ in range(model.articulation_count)]
        found: list[list[tuple]] = [[] for _ in range(model.articulation_count)]
        self.passive: dict[str, str] = {}
        self.distance = ""
        self.polynomial = has_polynomials(model)
        self.enabled = False
        if len(closing):
            self._find(model, closing, found)
        self.count = max((len(rows) for rows in found), default=0)
        self.parts, self.vectors = [], None
        self.rows, self.numbers = np.zeros((len(found), 3, 0), dtype=int), np.zeros((len(found), 0, LOOP))
        if self.count:
            self._fill(model, found)

    def _find(self, model, closing, found) -> None:
        names = names_of(model)
        articulation, link = names.articulation, names.link
        parents, enabled = model.joint_parent.numpy(), model.joint_enabled.numpy().astype(bool) & ~switched_off(model)
        for j in closing:
            parent, child = int(parents[j]), int(names.child[j])
            a = int(articulation[child])
            _refuse(model, j, parent, articulation, a)
            self.distance = self.distance or _distance_error(model, j)
            on = int(link[parent]) if parent >= 0 else WORLD
            rows = [(kind if enabled[j] else NO_ROW, on, int(link[child]), v) for kind, v in _joint_rows(model, int(j))]
            if enabled[j]:
                self.enabled = True
                self.passive |= _passive(model, int(j))
            self.joints[a].append(int(j))
            self.ranges[a].append((len(found[a]), len(found[a]) + len(rows)))
            found[a] += rows

    def _fill(self, model, found) -> None:
        rows = np.zeros((len(found), 3, self.count), dtype=int)
        rows[:, 1:] = NONE
        vectors = np.zeros((len(found), self.count, LOOP))
        for a, listed in enumerate(found):
            for r, (*what, numbers) in enumerate(listed):
                rows[a, :, r], vectors[a, r] = what, numbers
        self.rows, self.numbers = rows, vectors
        self.vectors = constant_array(vectors.reshape(len(found), -1), model.dtype, model.device)
        different, of = np.unique(rows, axis=0, return_inverse=True)
        for i, (kinds, parents, children) in enumerate(different.tolist()):
            mask = constant_array(of.ravel() == i, wp.bool, model.device) if len(different) > 1 else None
            self.parts.append((LoopRows(tuple(kinds), (*parents, *children)), mask))


def _refuse(model, j: int, parent: int, articulation, a: int) -> None:
    """Raises ValueError for a loop joint that is not a constraint on the accelerations of one articulation."""
    name = f"loop joint '{model.joint_label[j]}' (index {j})"
    if a < 0 or (parent >= 0 and articulation[parent] < 0):
        raise ValueError(
            f"{name} connects a body that belongs to no articulation; fix the body to the world with add_joint_fixed"
        )
    if parent >= 0 and articulation[parent] != a:
        one, two = (f"'{model.articulation_label[i]}' (index {i})" for i in (int(articulation[parent]), a))
        raise ValueError(
            f"{name} connects the articulations {one} and {two}; make one of them before finalize, by builder.merge_articulations() or one"
            " add_articulation for the joints of both, which may have several trees, or use SolverXPBD"
        )


def _distance_error(model, j: int) -> str:
    """The error of a loop joint that limits a distance; empty for others."""
    if max(model.joint_min_distance.numpy()[j], model.joint_max_distance.numpy()[j]) < 0.0:
        return ""
    return (
        f"loop joint '{model.joint_label[j]}' (index {j}) limits a distance, which is not supported; model a constant distance as a rod"
        " with two ball joints"
    )


def _passive(model, j: int) -> dict[str, str]:
    """Passive forces of a loop joint along its own coordinates, which are not supported: error messages by kind."""
    start, end = model.joint_qd_start.numpy()[j : j + 2]
    found = {}
    for kind, names in PASSIVE.items():
        for name in names:
            values = getattr(model, f"joint_{name}").numpy()[start:end]
            if (np.abs(values) < MAXVAL if kind == "limits" else values > 0.0).any():
                found[kind] = (
                    f"loop joint '{model.joint_label[j]}' (index {j}) has joint_{name} {values.tolist()}, which is not solved; "
                    f"leave {kind!r} out of passive, or close the loop at another joint"
                )
    return found


PASSIVE = {"friction": ("friction", "damping"), "limits": ("limit_lower", "limit_upper"), "springs": ("stiffness",)}
"""Kinds of passive forces, and the parameters of joints for each."""


def _joint_rows(model, j: int) -> list[tuple]:
    """The rows of a loop joint: kind, anchors in parent and child, a direction fixed to the parent, a direction fixed to the child.

    Linear rows block the directions at right angles to the joint's linear axes. Angular rows keep pairs of directions orthogonal, one
    fixed to the parent and one to the child. Without rotational axes: three pairs of coordinate axes. With one: two directions of the
    parent, and the axis in the child. With two: the first axis in the parent, and the second in the child.
    """
    linear, angular = (int(n) for n in model.joint_dof_dim.numpy()[j])
    sliding, t = axes_of(model, j)
    x_p, x_c = (x.numpy()[j].astype(np.float64) for x in (model.joint_X_p, model.joint_X_c))

    def row(kind, n, u):
        return kind, np.concatenate([x_p[:3], x_c[:3], quat_rotate(x_p[3:], n), quat_rotate(x_c[3:], u)])

    rows = [row(LINEAR, n, np.zeros(3)) for n in sliding[linear:]]
    right = {0: ((2, 1), (0, 2), (1, 0)), 1: ((1, 0), (2, 0)), 2: ((0, 1),), 3: ()}[angular]
    return rows + [row(ANGULAR, t[n], t[u]) for n, u in right]


def axes_of(model, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal vectors in the joint frame, ``[3, 3]`` each: the first ones span the linear axes of a joint, and its angular ones."""
    linear, angular = (int(n) for n in model.joint_dof_dim.numpy()[j])
    start = int(model.joint_qd_start.numpy()[j])
    axes = model.joint_axis.numpy()[start : start + linear + angular].astype(np.float64)
    return _frame(axes[:linear]), _frame(axes[linear:])


def _frame(axes: np.ndarray) -> np.ndarray:
    """Three orthonormal vectors; the first ones span the given axes."""
    frame = []
    for v in [*axes, *np.eye(3)]:
        v = v - sum((np.dot(v, e) * e for e in frame), np.zeros(3))
        length = np.linalg.norm(v)
        # the squared lengths of the coordinate axes' projections sum to at least 1, so one of them is at least 1/3
        if length > (1.0e-6 if len(frame) < len(axes) else 0.5):
            frame.append(v / length)
    return np.array(frame[:3])


_loops: WeakKeyDictionary = WeakKeyDictionary()


def loops_of(model, distances: bool = False, polynomials: bool = False) -> Loops:
    """The loop joints of a model; computed again after :meth:`Model.notify_changed`.

    Args:
        model: the :class:`Model`.
        distances: whether loop joints that limit a distance, which have no rows here, are taken.
        polynomials: the same of polynomials between joints.

    Raises:
        ValueError: a loop joint connects two articulations, or limits a distance; an equality constraint is a polynomial.
    """
    loops = _loops.get(model)
    if loops is None or loops.version != model.version:
        loops = _loops[model] = Loops(model)
    if loops.distance and not distances:
        raise ValueError(loops.distance)
    if loops.polynomial and not polynomials:
        raise ValueError(loops.polynomial)
    return loops


def loop_joint(model, joint, articulation: int = 0) -> int:
    """Index of a loop joint among those of an articulation, from its name or index.

    Raises:
        KeyError: no loop joint has the name.
        IndexError: the index, or the articulation, does not exist.
        ValueError: several loop joints have the name.
        TypeError: neither a name nor an index.
    """
    joints = loops_of(model, polynomials=True).joints[as_index(articulation, "articulation", model.articulation_count)]
    if not isinstance(joint, str):
        return as_index(joint, "loop joint", len(joints))
    labels = [model.joint_label[j] for j in joints]
    found = [i for i, label in enumerate(labels) if label == joint]
    found = found or [i for i, label in enumerate(labels) if label.endswith(f"/{joint}")]
    if not found:
        raise unknown("loop joint", joint, labels, f"articulation {articulation}")
    if len(found) > 1:
        raise ValueError(
            f"loop joint {joint!r} is ambiguous in articulation {articulation}: indices {found}; give an index"
        )
    return found[0]


def _run(model, program: Program, arrays, shapes, out):
    """Runs a program with the vectors of the rows as its last input."""
    loops = loops_of(model, polynomials=True)
    field = Field("loop", "articulations", loops.count * LOOP)
    for rows, mask in loops.parts:
        part = replace(program, inputs=(*program.inputs, field), tables=rows)
        out = evaluate(model, part, [*arrays, loops.vectors], shapes, out, mask=mask)
    return out


def constraint_jacobian(model, state, *, out=None) -> tuple[wp.array, wp.array]:
    """Constraint Jacobian K of the loop joints, and how far they are open: g with ``dg/dt = K joint_qd``.

    Every loop joint has as many rows as it blocks directions: distances of its anchors along axes of the parent's anchor [m],
    then cosines of angles that it keeps right. Rows of disabled joints are zero.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        out: two arrays to write to; new ones by default.

    Returns:
        K, ``[articulation_count, rows, max_dofs_per_articulation]``, and g, ``[articulation_count, rows]``; rows that an
        articulation lacks are zero.

    Raises:
        ValueError: a loop joint connects two articulations, or limits a distance; an equality constraint is a polynomial; an array of the
            wrong shape or device.
        TypeError: an array of the wrong scalar type.
    """
    loops_of(model)
    return loop_jacobian(model, state, out)


def loop_jacobian(model, state, out=None) -> tuple[wp.array, wp.array]:
    """The same of a model that may have polynomials between joints, which have no rows."""
    count, arrays = loops_of(model, polynomials=True).count, state_arrays(model, state, False)
    shapes = [(count, columns(model)), (count,)]
    if count == 0:
        return tuple(output_arrays(model, arrays, by_articulation(model, shapes), out))
    outputs = Field("matrix", "articulations", lambda m: count * columns(m)), Field("vector", "articulations", count)
    return _run(model, Program("eval_constraint_jacobian", (Q,), outputs), arrays, shapes, out)


def constraint_bias(model, state, *, out: wp.array | None = None) -> wp.array:
    """Constraint bias k of the loop joints: they stay closed where ``K joint_qdd = -k``.

    Arguments and errors as for :func:`constraint_jacobian`.

    Returns:
        [m/s^2, 1/s^2], ``[articulation_count, rows]``.
    """
    count, arrays = loops_of(model).count, state_arrays(model, state)
    if count == 0:
        return output_array(model, out, (model.articulation_count, 0))
    outputs = (Field("vector", "articulations", count),)
    return _run(model, Program("eval_constraint_bias", (Q, V), outputs), arrays, [(count,)], out)


def constrained_dynamics(
    model,
    state,
    joint_forces=None,
    link_forces=None,
    *,
    time_constant: float | None = TIME_CONSTANT,
    link_forces_repr=VelRepr.COM,
    repr=None,
    out=None,
) -> tuple[wp.array, wp.array]:
    """Accelerations of trees with closed loop joints, and the forces of the loop joints.

    Solves ``M v_dot + h = tau + J^T f + K^T lambda`` and ``K v_dot = -k - 2/T K v - g/T^2`` together (Featherstone 2008, section 8.5).
    The last two terms, with the time constant T, close loops that rounding and integration open (Baumgarte 1972). They are zero for
    velocities and coordinates that satisfy the constraints.

    ``K M^-1 K^T`` is singular if rows are redundant, as all but two rows of the hinge of a planar four-bar linkage. The system is solved by
    five proximal steps (Carpentier, Budhiraja and Mansard 2021) with a softness of 1e-8 (float32: 1e-5) of the largest diagonal entry. Of
    equivalent forces, the result is near the smallest. Accelerations are precise up to rounding, and contradictory rows are satisfied on
    (weighted) average.

    As in :func:`forward_dynamics`, springs, limits, friction and drives are not included, nor the armature of loop joints.

    Gradients are those of the two equations (by the implicit function theorem). If forces are not unique, the gradients of lambda exclude
    changes with zero ``K^T lambda``.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        joint_forces: tau, as for :func:`forward_dynamics`; zeros by default.
        link_forces, link_forces_repr: wrenches f on links, as for :func:`inverse_dynamics`; none by default.
        time_constant: T [s]; None: loops that are open stay as they are.
        repr: :class:`VelRepr` of the velocity of floating bases, whose derivative their acceleration is, and their force the dual;
            None: as ``joint_qd``, whose K is that of :func:`constraint_jacobian`.
        out: two arrays to write to; new ones by default.

    Returns:
        v_dot, as ``joint_qd``, ``[articulation_count, max_dofs_per_articulation]``, and lambda, ``[articulation_count, rows]``: forces
        along the rows, on the child [N], and for cosines [N m].

    Raises:
        ValueError: a loop joint connects two articulations, or limits a distance; an equality constraint is a polynomial; an array of the
            wrong shape or device; numbers that are not finite; an unknown representation; a time constant that is not positive.
        TypeError: an array of the wrong scalar type.
    """
    count, frequency = loops_of(model).count, 0.0
    if time_constant is not None:
        time_constant = as_number(time_constant, "time_constant")
        if time_constant <= 0.0:
            raise ValueError(f"time_constant is {time_constant}; it must be positive, or None")
        frequency = 1.0 / time_constant
    if count == 0:
        acceleration, multiplier = (None, None) if out is None else out
        multiplier = output_array(model, multiplier, (model.articulation_count, 0))
        acceleration = forward_dynamics(
            model, state, joint_forces, link_forces, method="crb", link_forces_repr=link_forces_repr, repr=repr, out=acceleration
        )  # fmt: skip
        return acceleration, multiplier
    field, forces = dof_vector(model, joint_forces, "joint_forces", "force")
    fields, wrenches, settings = link_wrenches(model, link_forces, link_forces_repr)
    weights = constants((frequency,), model.dtype, str(model.device))
    outputs = Field("vector", "articulations", columns), Field("loop_force", "articulations", count)
    program = Program(
        "eval_constrained_dynamics", (Q, V, field, _WEIGHTS, *fields), outputs, _rows(count),
        adjoint="eval_constrained_dynamics_implicit",
    )  # fmt: skip
    program = program.ask(output_repr=representation(repr), **settings)
    arrays = [*state_arrays(model, state), forces, weights, *wrenches]
    check_invertible(model, "constrained_dynamics")
    return _run(model, program, arrays, [(columns(model),), (count,)], out)


_WEIGHTS = Field("weights", "all", 1)


def _rows(n: int) -> tuple:
    """Rows of memory for n constraint rows of loop joints."""
    sizes = dict(loop_gram=n * (n + 1) // 2, loop_want=n, loop_step=n, loop_given=n)
    own = (Field(name, "articulations", size) for name, size in sizes.items())
    return ("tau", "acceleration", "pivot", "root", "z", "u", Field("loop_row", "dofs", n), *own)
