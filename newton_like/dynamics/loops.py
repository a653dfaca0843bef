"""Joints that close loops: what they ask of the accelerations of the trees that they connect, and the dynamics under it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from newton_like.coercion import as_index, as_number
from newton_like.dynamics.buffers import buffers_of
from newton_like.dynamics.common import columns, dof_vector, state_arrays
from newton_like.dynamics.dense import dof_rows
from newton_like.dynamics.forces import bias_forces
from newton_like.dynamics.jacobians import link_jacobians
from newton_like.dynamics.kinematics import link_bias_accelerations, link_transforms, link_velocities
from newton_like.dynamics.matrices import mass_matrix
from newton_like.dynamics.names import names_of, unknown
from newton_like.geometry.transforms import quat_rotate
from newton_like.kernels.dynamics.loops import ANGULAR, LINEAR, loop_kernels
from newton_like.model.arguments import check_array

TIME_CONSTANT = 0.1
"""Open loops close like a critically damped spring of this time constant [s], unless another one is asked for."""


class Loops:
    """The rows that the loop joints of a model have in the constraints of its articulations, as of one version of it.

    Attributes:
        joints: for every articulation the loop joints on its links: their indices in the model.
        ranges: for each of these, first row and the one behind the last.
        count: rows of the articulation that has most.
        rows: the struct that kernels read.
        dofs: number of degrees of freedom of every articulation, on the device.
    """

    def __init__(self, model):
        self.version = model.version
        names, bodies = names_of(model), model.body_count
        articulation, link = np.full(bodies, -1), np.full(bodies, -1)
        for a, (s, n) in enumerate(zip(names.start, names.count, strict=True)):
            articulation[names.child[s : s + n]] = a
            link[names.child[s : s + n]] = np.arange(n)
        self.joints: list[list[int]] = [[] for _ in range(model.articulation_count)]
        self.ranges: list[list[tuple[int, int]]] = [[] for _ in range(model.articulation_count)]
        found: list[list[tuple]] = [[] for _ in range(model.articulation_count)]
        parents, enabled = model.joint_parent.numpy(), model.joint_enabled.numpy()
        for j in np.flatnonzero(model.joint_articulation.numpy() < 0):
            parent, child = int(parents[j]), int(names.child[j])
            a = int(articulation[child])
            _refuse(model, j, parent, articulation, a)
            on = int(link[parent]) if parent >= 0 else -1
            rows = [(kind, on, int(link[child]), *where) for kind, *where in _joint_rows(model, int(j))]
            if not enabled[j]:
                rows = [(0, *row[1:]) for row in rows]
            self.joints[a].append(int(j))
            self.ranges[a].append((len(found[a]), len(found[a]) + len(rows)))
            found[a] += rows
        self.count = max((len(rows) for rows in found), default=0)
        self.rows = self._struct(model, found)
        start = model.joint_qd_start.numpy()
        dofs = start[names.start + names.count] - start[names.start]
        self.dofs = wp.array(dofs.astype(np.int32), dtype=wp.int32, device=model.device)

    def _struct(self, model, found):
        rows, shape = loop_kernels(model.dtype).Rows(), (model.articulation_count, self.count)
        vec3 = wp.vec3d if model.dtype is wp.float64 else wp.vec3
        for i, name in enumerate(("kind", "parent", "child", "parent_at", "child_at", "parent_axis", "child_axis")):
            vector = i >= 3
            values = np.zeros((*shape, 3) if vector else shape)
            for a, listed in enumerate(found):
                for r, row in enumerate(listed):
                    values[a, r] = row[i]
            dtype = vec3 if vector else wp.int32
            setattr(rows, name, wp.array(values, dtype=dtype, shape=shape, device=model.device))
        return rows


def _refuse(model, j: int, parent: int, articulation, a: int) -> None:
    """Raises for what is no equation between accelerations of one articulation."""
    name = f"loop joint '{model.joint_label[j]}' (index {j})"
    if parent >= 0 and articulation[parent] != a:
        raise ValueError(
            f"{name} connects articulations {articulation[parent]} and {a}; list the joints of both in one articulation"
        )
    if max(model.joint_min_distance.numpy()[j], model.joint_max_distance.numpy()[j]) >= 0.0:
        raise ValueError(
            f"{name} limits a distance, which is no equation; a rod with a ball joint at each end keeps one"
        )


def _joint_rows(model, j: int) -> list[tuple]:
    """The rows of a loop joint: kind, anchors in parent and child, direction fixed to the parent, direction fixed to the child.

    A joint with l slides and t turns blocks the 3 - l directions at right angles to its slides. Of its turns it keeps at right angles:
    without any, each axis and another one; with one, its axis and two others; with two, the first axis, fixed to the parent, and the
    second, fixed to the child.
    """
    linear, angular = (int(n) for n in model.joint_dof_dim.numpy()[j])
    start = int(model.joint_qd_start.numpy()[j])
    axes = model.joint_axis.numpy()[start : start + linear + angular].astype(np.float64)
    x_p, x_c = (x.numpy()[j].astype(np.float64) for x in (model.joint_X_p, model.joint_X_c))

    def row(kind, n, u):
        return (kind, x_p[:3], x_c[:3], quat_rotate(x_p[3:], n), quat_rotate(x_c[3:], u))

    rows = [row(LINEAR, n, np.zeros(3)) for n in _frame(axes[:linear])[linear:]]
    t = _frame(axes[linear:])
    right = {0: ((2, 1), (0, 2), (1, 0)), 1: ((1, 0), (2, 0)), 2: ((0, 1),), 3: ()}[angular]
    return rows + [row(ANGULAR, t[n], t[u]) for n, u in right]


def _frame(axes: np.ndarray) -> np.ndarray:
    """Three orthonormal vectors, the first of which span the axes."""
    frame = []
    for v in [*axes, *np.eye(3)]:
        v = v - sum((np.dot(v, e) * e for e in frame), np.zeros(3))
        length = np.linalg.norm(v)
        # what is left of the coordinate axes adds up to at least one squared, so that one of three has more than a third
        if length > (1.0e-6 if len(frame) < len(axes) else 0.5):
            frame.append(v / length)
    return np.array(frame[:3])


_loops: WeakKeyDictionary = WeakKeyDictionary()


def loops_of(model) -> Loops:
    """The loop joints of a model, read anew after :meth:`Model.notify_changed`.

    Raises:
        ValueError: a loop joint connects two articulations, or limits a distance.
    """
    loops = _loops.get(model)
    if loops is None or loops.version != model.version:
        loops = _loops[model] = Loops(model)
    return loops


def loop_joint(model, joint, articulation: int = 0) -> int:
    """Index of a loop joint among those of an articulation, from its name or that index.

    Raises:
        KeyError: no loop joint has the name.
        IndexError: the index, or the articulation, does not exist.
        ValueError: several have the name.
        TypeError: neither a name nor an index.
    """
    joints = loops_of(model).joints[as_index(articulation, "articulation", model.articulation_count)]
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


def _result(model, out, name: str, *shape: int) -> wp.array:
    shape = (model.articulation_count, *shape)
    if out is None:
        return wp.zeros(shape, dtype=model.dtype, device=model.device)
    return check_array(model, out, name, model.dtype, shape)


def constraint_rows(model, transforms, jacobians, out=None) -> tuple[wp.array, wp.array]:
    """Constraint Jacobian and error, from the poses of the links and their Jacobians in MIXED."""
    loops, kernels = loops_of(model), loop_kernels(model.dtype)
    matrix, error = (None, None) if out is None else out
    matrix = _result(model, matrix, "out", loops.count, columns(model))
    error = _result(model, error, "out", loops.count)
    wp.launch(kernels.jacobian, error.shape, [loops.rows, transforms, jacobians], [matrix, error], device=model.device)
    return matrix, error


def constraint_drift(model, transforms, velocities, accelerations, out=None) -> wp.array:
    """Constraint bias, from poses, velocities and bias accelerations of the links in MIXED."""
    loops = loops_of(model)
    out = _result(model, out, "out", loops.count)
    inputs = [loops.rows, transforms, velocities, accelerations]
    wp.launch(loop_kernels(model.dtype).bias, out.shape, inputs, [out], device=model.device)
    return out


def constraint_jacobian(model, state, *, out=None) -> tuple[wp.array, wp.array]:
    """Constraint Jacobian K of the loop joints, and how far they are open: g with ``dg/dt = K joint_qd``.

    Every loop joint has as many rows as it blocks directions: distances of its anchors along axes of the parent's anchor [m],
    then cosines of angles that it keeps right. Rows of disabled joints are zero.

    Args:
        model: the :class:`Model`.
        state: the :class:`State` whose ``joint_q`` counts.
        out: two arrays to write to; new ones by default.

    Returns:
        K, ``[articulation_count, rows, max_dofs_per_articulation]``, and g, ``[articulation_count, rows]``; rows that an
        articulation lacks are zero.

    Raises:
        ValueError: a loop joint connects two articulations, or limits a distance; an array of the wrong shape or device.
        TypeError: an array of the wrong scalar type.
    """
    loops_of(model)
    return constraint_rows(model, link_transforms(model, state), link_jacobians(model, state), out)


def constraint_bias(model, state, *, out: wp.array | None = None) -> wp.array:
    """Constraint bias k of the loop joints: they stay closed where ``K joint_qdd = -k``.

    Arguments and errors as for :func:`constraint_jacobian`.

    Returns:
        [m/s^2, 1/s^2], ``[articulation_count, rows]``.
    """
    loops_of(model)
    poses, velocities = link_transforms(model, state), link_velocities(model, state)
    return constraint_drift(model, poses, velocities, link_bias_accelerations(model, state), out)


def constrained_dynamics(model, state, joint_forces=None, *, time_constant=TIME_CONSTANT, out=None):
    """Accelerations of trees whose loop joints stay closed, and the forces that keep them so.

    Solves ``M v_dot + h = tau + K^T lambda`` and ``K v_dot = -k - 2/T K v - g/T^2`` together (Featherstone 2008, section 8.5).
    The last two terms, with the time constant T, close loops that rounding and integration open (Baumgarte 1972); velocities and
    coordinates that agree with the loops do not feel them.

    ``K M^-1 K^T`` is singular where loop joints ask for the same thing twice, as all but two of the rows of a planar four-bar
    linkage's hinge do. It is solved by five proximal steps (Carpentier, Budhiraja and Mansard 2021) with a softness of 1e-8
    (float32: 1e-5) of its largest diagonal entry: of an infinity of forces that do the same one is found near the smallest, the
    accelerations are met to rounding, and demands that contradict each other are met on (weighted) average.

    Args:
        model: the :class:`Model`.
        state: the :class:`State` whose ``joint_q`` and ``joint_qd`` count.
        joint_forces: tau, ``[joint_dof_count]`` or ``[articulation_count, max_dofs_per_articulation]``; None: zeros. Of FREE and
            DISTANCE joints in the axes of the parent's anchor, as ``joint_qd``.
        time_constant: T [s]; None: loops that are open stay as they are.
        out: two arrays to write to; new ones by default.

    Returns:
        v_dot, as ``joint_qd``, ``[articulation_count, max_dofs_per_articulation]``, and lambda, ``[articulation_count, rows]``.

    Raises:
        ValueError: a loop joint connects two articulations, or limits a distance; an array of the wrong shape or device; a time
            constant that is not positive.
        TypeError: an array of the wrong scalar type.
    """
    matrix, error = constraint_jacobian(model, state)
    return solve_constrained(
        model, state, mass_matrix(model, state), bias_forces(model, state), matrix, constraint_bias(model, state), error,
        joint_forces, time_constant, out,
    )  # fmt: skip


def solve_constrained(model, state, mass, load, matrix, drift, error, joint_forces, time_constant, out):
    """See :func:`constrained_dynamics`; of a state with rows of its own these are read."""
    loops, kernels, n = loops_of(model), loop_kernels(model.dtype), columns(model)
    frequency = 0.0
    if time_constant is not None:
        time_constant = as_number(time_constant, "time_constant")
        if time_constant <= 0.0:
            raise ValueError(f"time_constant is {time_constant}; it must be positive, or None")
        frequency = 1.0 / time_constant
    acceleration, multiplier = (None, None) if out is None else out
    acceleration = _result(model, acceleration, "out", n)
    multiplier = _result(model, multiplier, "out", loops.count)
    field, force = dof_vector(model, joint_forces, "joint_forces", "tau")
    if force is None:
        force = _result(model, None, "joint_forces", n)
    elif field.kind == "dofs":
        force = dof_rows(model).rows(force)
    velocity = dof_rows(model).rows(state_arrays(model, state)[1])
    shapes = {
        "root": (n, n),
        "whitened": (loops.count, n),
        "delassus": (loops.count, loops.count),
        "wanted": (loops.count,),
    }
    shapes["step"] = shapes["wanted"]
    buffers = buffers_of(model)
    scratch = [buffers.get(f"loops {name}", (model.articulation_count, *shape)) for name, shape in shapes.items()]
    inputs = [loops.dofs, loops.rows, mass, load, force, velocity, matrix, drift, error, frequency, *scratch]
    wp.launch(kernels.solve, model.articulation_count, inputs, [acceleration, multiplier], device=model.device)
    return acceleration, multiplier
