"""Functions that read and set positions, velocities and forces of joints by name, for all articulations at once."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from newton_like.arrays import active_tape, constant_array
from newton_like.coercion import as_list
from newton_like.dynamics.internal.common import (
    check_passes_gradients,
    finite_numbers,
    joints_changed,
    output_array,
)
from newton_like.dynamics.names import check_name, index_of, names_of, unknown
from newton_like.kernels.dynamics.entries import gather_entries, scatter_entries
from newton_like.model.arguments import as_numbers, check_array, check_finite, check_made_by, check_model

_KEPT = 256

_places: WeakKeyDictionary = WeakKeyDictionary()


def joint_positions(model, state, joints=None, *, out: wp.array | None = None) -> wp.array:
    """Coordinates of some joints.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        joints: name or index of one joint, or a list of them, in the wanted order; all by default, in the order of the articulation.
        out: array for the result; a new array by default.

    Returns:
        Their coordinates one after the other [m, rad or quaternion x y z w], ``[articulation_count, coordinates]``; zeros for joints
        that an articulation lacks.

    Raises:
        KeyError: no articulation has a joint of a name.
        IndexError: no articulation has a joint of an index.
        ValueError: several joints of an articulation have a name, or the joint has another number of coordinates in another
            articulation; an array of the wrong shape or device.
        TypeError: an array of the wrong scalar type; neither names nor indices.
    """
    return _read(model, state, "joint_q", joints, out)


def joint_velocities(model, state, joints=None, *, out: wp.array | None = None) -> wp.array:
    """Velocities of some joints [m/s or rad/s], as in ``joint_qd``, ``[articulation_count, dofs]``; see :func:`joint_positions`.

    :func:`velocity` gives those of floating bases in other representations.
    """
    return _read(model, state, "joint_qd", joints, out)


def joint_forces(model, control, joints=None, *, out: wp.array | None = None) -> wp.array:
    """Forces of some joints [N or N m], those in ``joint_f`` of a :class:`Control`, ``[articulation_count, dofs]``.

    Arguments, result and errors as for :func:`joint_positions`.
    """
    return _read(model, control, "joint_f", joints, out)


def set_joint_positions(model, state, values, joints=None) -> None:
    """Sets coordinates of some joints.

    Args:
        model: the :class:`Model`.
        state: the :class:`State` whose ``joint_q`` is written.
        values: [m, rad or quaternion x y z w], ``[articulation_count, coordinates]``, or one row for all articulations: numbers or a
            Warp array. Values for joints that an articulation lacks are not used.
        joints: as for :func:`joint_positions`.

    Raises:
        KeyError, IndexError, ValueError, TypeError: as :func:`joint_positions`; wrong shape, numbers that are not finite, or a joint
            that is named twice; on a tape, values with gradients for a state without.
    """
    _write(model, state, "joint_q", values, joints)


def set_joint_velocities(model, state, values, joints=None) -> None:
    """Sets velocities of some joints [m/s or rad/s], as in ``joint_qd``; see :func:`set_joint_positions`."""
    _write(model, state, "joint_qd", values, joints)


def set_joint_forces(model, control, values, joints=None) -> None:
    """Sets forces of some joints [N or N m], ``joint_f`` of a :class:`Control`; see :func:`set_joint_positions`."""
    _write(model, control, "joint_f", values, joints)


def _holder(name: str) -> str:
    return "control" if name == "joint_f" else "state"


def _array(model, holder, name: str) -> wp.array:
    check_model(model)
    what = _holder(name)
    if not hasattr(holder, name):
        kind = "Control, as model.control()" if what == "control" else "State, as model.state()"
        raise TypeError(f"{what} must be a {kind} makes it, not {type(holder).__name__}")
    count = model.joint_coord_count if name == "joint_q" else model.joint_dof_count
    check_made_by(model, holder, what)
    return check_array(model, getattr(holder, name), f"{what}.{name}", model.dtype, (count,))


def _read(model, holder, name: str, joints, out) -> wp.array:
    array = check_finite(model, _array(model, holder, name), f"{_holder(name)}.{name}")
    places = places_of(model, name, joints)
    grad = active_tape() is not None and array.requires_grad
    result = output_array(model, out, places.shape, grad)
    check_passes_gradients([array], [result], "out")
    if result.size:
        inputs, device = [array, places], model.device
        wp.launch(gather_entries(model.dtype), places.shape, inputs=inputs, outputs=[result], device=device)
    return result


def _write(model, holder, name: str, values, joints) -> None:
    array = _array(model, holder, name)
    if hasattr(holder, "joints_changed"):
        # reading the properties updates both arrays, before one of them is written
        holder.joint_q, holder.joint_qd  # noqa: B018
    places = places_of(model, name, joints)
    if isinstance(joints, list | tuple) and len(set(joints)) < len(joints):
        twice = next(joint for i, joint in enumerate(joints) if joint in joints[:i])
        raise ValueError(f"joints names {twice!r} twice; give each joint one value")
    what = "values"
    if not isinstance(values, wp.array):
        numbers = finite_numbers(model, as_numbers(values, what), what)
        values = wp.array(np.atleast_1d(numbers), dtype=model.dtype, device=model.device)
    rows, shape = values, places.shape
    if values.ndim == 1:
        check_array(model, values, what, model.dtype, shape[1:])
        rows = values.reshape((1, shape[1]))
    elif values.shape != shape:
        raise ValueError(f"{what} has shape {values.shape}; give {shape}, or {shape[1:]} for all articulations")
    check_array(model, rows, what, model.dtype, rows.shape)
    check_passes_gradients([values], [array], f"the array {name} that is set")
    if places.size:
        inputs, device = [rows, int(values.ndim == 2), places], model.device
        wp.launch(scatter_entries(model.dtype), shape, inputs=inputs, outputs=[array], device=device)
    joints_changed(holder)


def places_of(model, name: str, joints) -> wp.array:
    """Indices of the numbers of joints in a flat array, ``[articulation_count, numbers]``; -1 for joints that an articulation lacks.

    Raises:
        KeyError, IndexError, ValueError, TypeError: as :func:`joint_positions`.
    """
    starts = model.joint_q_start if name == "joint_q" else model.joint_qd_start
    if joints is not None:
        joints = (
            [joints] if isinstance(joints, str | int | np.integer) else as_list(joints, "joints", "names or indices")
        )
        joints = tuple((type(check_name(joint, "joint")), joint) for joint in joints)
    kept = _places.setdefault(model, {})
    key = (name == "joint_q", joints, model.version)
    if key not in kept:
        if len(kept) >= _KEPT:
            kept.clear()
        found = _places_of(model, starts.numpy(), None if joints is None else [joint for _, joint in joints])
        kept[key] = constant_array(found, wp.int32, model.device)
    return kept[key]


def _places_of(model, starts: np.ndarray, joints) -> np.ndarray:
    names = names_of(model)
    if joints is None:
        ends = starts[names.start + names.count]
        counts = ends - starts[names.start]
        step = np.arange(counts.max(initial=0))
        return np.where(step < counts[:, None], starts[names.start][:, None] + step, -1).astype(np.int32)
    columns = [np.zeros((len(names.start), 0), dtype=np.int32)]
    for joint in joints:
        indices = _indices(model, names, joint)
        have = indices >= 0
        at = names.start[have] + indices[have]
        widths = np.unique(starts[at + 1] - starts[at])
        if len(widths) != 1:
            raise ValueError(
                f"joint {joint!r} has {' or '.join(map(str, widths))} numbers in different articulations; choose joints of one kind"
            )
        places = np.full((len(have), int(widths[0])), -1, dtype=np.int32)
        places[have] = starts[at][:, None] + np.arange(widths[0])
        columns.append(places)
    return np.concatenate(columns, axis=1)


def _indices(model, names, joint) -> np.ndarray:
    """The index of a joint in every articulation; -1 in articulations without it."""
    if isinstance(joint, str):
        found = names.everywhere("joint", joint)
        if all(i is None for i in found):
            raise unknown("joint", joint, names.every("joint"), "any articulation")
        return np.array([-1 if i is None else i for i in found])
    largest = int(np.argmax(names.count)) if len(names.count) else 0
    index = index_of(model, "joint", joint, largest)
    return np.where(index < names.count, index, -1)
