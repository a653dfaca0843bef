"""Coordinates on the configuration manifold: normalised, principal and random coordinates, and local coordinates."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.dynamics.coordinates.joint_positions import generator, random_joint_positions
from newton_like.dynamics.internal.common import (
    Q,
    V,
    columns,
    dof_vector,
    evaluate,
    input_array,
    output_array,
    state_arrays,
    to_device,
)
from newton_like.dynamics.internal.dense import coord_rows
from newton_like.kernels.joints.configuration import NORMAL, PRINCIPAL, ZERO
from newton_like.model.arguments import check_model
from newton_like.programs.program import Field, Program


def positions(model) -> int:
    """Largest number of coordinates of an articulation: columns of dense configurations."""
    return coord_rows(model).columns


def coord_vector(model, value, name: str, row: str) -> tuple[Field, wp.array]:
    """One number for each coordinate: ``[joint_coord_count]`` or ``[articulation_count, max_coords]``.

    Raises:
        TypeError, ValueError: wrong scalar type, shape or device, or host numbers that are not finite.
    """
    array = to_device(model, value, name)
    if array.ndim == 1:
        return Field(row, "coords"), input_array(model, array, name, model.dtype, (model.joint_coord_count,))
    shape = (model.articulation_count, positions(model))
    return Field(row, "articulations", positions), input_array(model, array, name, model.dtype, shape)


_CHOSEN = Field("third", "articulations", positions)
_CONFIGURATION = Program("eval_configuration", (Q,), (_CHOSEN,))


def _choose(model, mode: int, given, out) -> wp.array:
    return evaluate(model, _CONFIGURATION.ask(configuration_mode=mode), [given], [(positions(model),)], out)


def normalize_configuration(model, state, *, out: wp.array | None = None) -> wp.array:
    """Coordinates with unit quaternions; other coordinates as they are. The quaternion zero becomes the identity.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        out: array for the result; a new array by default.

    Returns:
        Coordinates [m, rad or quaternion x y z w], ``[articulation_count, max_coords]``, where ``max_coords`` is the
        number of coordinates of the articulation that has most; what another one lacks is zero.

    Raises:
        ValueError: an array of the wrong shape or device.
        TypeError: an array of the wrong scalar type.
    """
    return _choose(model, NORMAL, state_arrays(model, state, velocities=False)[0], out)


def principal_value(model, state, *, out: wp.array | None = None) -> wp.array:
    """The coordinates of the same poses with unit quaternions that have w >= 0, and with angles in (-pi, pi].

    Angles are those of REVOLUTE joints and the angular ones of D6 joints. Joint limits are not considered. Arguments,
    result and errors as for :func:`normalize_configuration`.
    """
    return _choose(model, PRINCIPAL, state_arrays(model, state, velocities=False)[0], out)


def zero_configuration(model, *, out: wp.array | None = None) -> wp.array:
    """The coordinates at which every joint's transform is the identity: zeros, and quaternions (0, 0, 0, 1).

    Arguments, result and errors as for :func:`normalize_configuration`.
    """
    return _choose(check_model(model), ZERO, None, out)


def rand_configuration(model, seed=None, *, out: wp.array | None = None) -> wp.array:
    """Random coordinates, those of :func:`random_joint_positions`, by articulation.

    Args:
        model: the :class:`Model`.
        seed: a number, or a ``numpy.random.Generator``; None: other numbers each time.
        out: array for the result; a new array by default.

    Returns:
        Coordinates [m, rad or quaternion x y z w], ``[articulation_count, max_coords]``, see
        :func:`normalize_configuration`.

    Raises:
        ValueError, TypeError: as :func:`normalize_configuration`; ``seed`` cannot seed a generator.
    """
    check_model(model)
    out = output_array(model, out, (model.articulation_count, positions(model)))
    return coord_rows(model).rows(random_joint_positions(model, seed), out=out) if out.size else out


def rand_velocity(model, seed=None, *, out: wp.array | None = None) -> wp.array:
    """Random velocities, normally distributed with deviation 1 m/s or 1 rad/s.

    Arguments and errors as for :func:`rand_configuration`.

    Returns:
        ``[articulation_count, max_dofs_per_articulation]``; dofs that an articulation lacks are zero.
    """
    shape = (model.articulation_count, columns(model))
    start = model.joint_qd_start.numpy()
    counts = start[model.articulation_end.numpy()] - start[model.articulation_start.numpy()[: shape[0]]]
    normal = np.where(np.arange(shape[1]) < counts[:, None], generator(seed).normal(size=shape), 0.0)
    out = output_array(model, out, shape)
    out.assign(normal)
    return out


def local_coordinates(model, state, q0, *, out=None) -> tuple[wp.array, wp.array]:
    """Coordinates of a state in a flat chart about other coordinates q0, and their rates.

    Of joints with single axes and D6 joints the differences of their coordinates, and the velocities. Of a BALL joint
    ``phi = log(inverse(R0) R)``, a rotation vector of length at most pi in the axes of R0 (the child's anchor), and of
    FREE and DISTANCE joints ``phi = log SE3(inverse(H0) H)``, linear part first; phi_dot is the velocity of the child's
    anchor in its own axes through the inverse right Jacobian of the exponential map (Sola, Deray and Atchuthan 2018,
    "A micro Lie theory for state estimation in robotics", appendices B and D). The formulas keep all digits
    down to phi = 0 and up to rotations by pi, where phi jumps.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        q0: coordinates, ``[joint_coord_count]`` or ``[articulation_count, max_coords]``; quaternions need not be unit.
        out: two arrays to write to; new ones by default.

    Returns:
        phi [m or rad] and phi_dot [m/s or rad/s], each ``[articulation_count, max_dofs_per_articulation]``; dofs that
        an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; numbers that are not finite.
        TypeError: an array of the wrong scalar type.
    """
    field, start = coord_vector(model, q0, "q0", "second")
    results = (Field("vector", "articulations", columns), Field("third", "articulations", columns))
    program = Program("eval_local_coordinates", (Q, V, field), results)
    return evaluate(model, program, [*state_arrays(model, state), start], [(columns(model),)] * 2, out)


def global_coordinates(model, q0, phi, *, out: wp.array | None = None) -> wp.array:
    """The coordinates whose local coordinates about q0 are phi: the inverse of :func:`local_coordinates`.

    Args:
        model, q0: as there.
        phi: [m or rad], ``[joint_dof_count]`` or ``[articulation_count, max_dofs_per_articulation]``; rotation vectors
            may be of any length.
        out: array for the result; a new array by default.

    Returns:
        Coordinates with unit quaternions, ``[articulation_count, max_coords]``, see :func:`normalize_configuration`.

    Raises:
        ValueError, TypeError: as :func:`local_coordinates`.
    """
    start_field, start = coord_vector(model, q0, "q0", "q")
    phi_field, given = dof_vector(model, phi, "phi", "vector")
    program = Program("eval_global_coordinates", (start_field, phi_field), (_CHOSEN,))
    return evaluate(model, program, [start, given], [(positions(model),)], out)


def velocity_of_position_rate(model, state, rate, *, out: wp.array | None = None) -> wp.array:
    """The velocities with which coordinates change at given rates: the inverse of :func:`position_rate`.

    The component of a rate that changes the length of a quaternion is ignored.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``. Rates of quaternions are those of unit ones.
        rate: time derivatives of the coordinates, ``[joint_coord_count]`` or ``[articulation_count, max_coords]``.
        out: array for the result; a new array by default.

    Returns:
        As ``joint_qd``, ``[articulation_count, max_dofs_per_articulation]``; dofs that an articulation lacks are zero.

    Raises:
        ValueError, TypeError: as :func:`local_coordinates`.
    """
    field, given = coord_vector(model, rate, "rate", "second")
    program = Program("eval_velocity_of_rate", (Q, field), (Field("vector", "articulations", columns),))
    return evaluate(model, program, [*state_arrays(model, state, velocities=False), given], [(columns(model),)], out)
