"""Random states within bounds."""

from __future__ import annotations

import numpy as np

from newton_like.arrays import check_recorded
from newton_like.coercion import as_list
from newton_like.dynamics.coordinates.joint_positions import generator, joint_limits_of, random_joint_positions
from newton_like.dynamics.coordinates.velocity import set_velocity
from newton_like.dynamics.internal.common import representation
from newton_like.dynamics.names import names_of
from newton_like.geometry.transforms import quat_from_rpy
from newton_like.kinematics import eval_fk
from newton_like.model.arguments import as_numbers, check_model
from newton_like.model.joint_types import look_up


def random_state(
    model,
    seed=None,
    *,
    base_pos_bounds=None,
    base_rpy_bounds=None,
    joint_pos_bounds=None,
    base_vel_lin_bounds=(-1.0, 1.0),
    base_vel_ang_bounds=(-1.0, 1.0),
    joint_vel_bounds=(-1.0, 1.0),
    repr=None,
):
    """A random state of all articulations, uniform within bounds, different for each articulation.

    A bound is a pair (lowest, highest) of numbers or of arrays that NumPy can broadcast to the quantity. Positions without bounds are
    those of :func:`random_joint_positions`. Mimic joints follow their leaders; loop joints keep the coordinates of the model.

    Args:
        model: the :class:`Model`.
        seed: an integer, or a ``numpy.random.Generator``; None: other numbers each time.
        base_pos_bounds: of positions of floating bases (FREE joints on the world) [m], ``[3]``; None: within 1 m of zero.
        base_rpy_bounds: of their roll, pitch and yaw about the fixed axes x, y and z, in this order [rad], ``[3]``; None: uniform
            rotations.
        joint_pos_bounds: of coordinates of all other joints that are lengths or angles [m or rad], ``[joint_dof_count]``, laid
            out as ``joint_qd``. The limits of the joints also apply. None: only the limits of the joints.
        base_vel_lin_bounds, base_vel_ang_bounds: of linear [m/s] and angular velocities [rad/s] of floating bases, ``[3]``.
        joint_vel_bounds: of velocities of all other joints [m/s or rad/s], ``[joint_dof_count]``.
        repr: :class:`VelRepr` of the velocities of floating bases; None: as ``joint_qd``.

    Returns:
        A new :class:`State`, with poses and velocities of bodies that agree with the joints.

    Raises:
        TypeError: bounds are not a pair of numbers; ``seed`` is not an integer, a Generator or None.
        ValueError: a lower bound above the upper one, or bounds that leave nothing between the limits of a joint; an unknown
            representation; another shape.
        RuntimeError: a graph is being captured.
    """
    check_recorded(check_model(model).device, "random_state")
    representation(repr)
    rng, dofs = generator(seed), model.joint_dof_count
    bounds = {
        "base_pos_bounds": (base_pos_bounds, (3,)),
        "base_rpy_bounds": (base_rpy_bounds, (3,)),
        "joint_pos_bounds": (joint_pos_bounds, (dofs,)),
        "base_vel_lin_bounds": (base_vel_lin_bounds, (3,)),
        "base_vel_ang_bounds": (base_vel_ang_bounds, (3,)),
        "joint_vel_bounds": (joint_vel_bounds, (dofs,)),
    }
    without = ("base_pos_bounds", "base_rpy_bounds", "joint_pos_bounds")
    low_high = {
        name: None if given is None and name in without else _bounds(given, shape, name)
        for name, (given, shape) in bounds.items()
    }
    state = model.state()
    positions = None
    if low_high["joint_pos_bounds"] is not None:
        positions = _within_limits(model, *low_high["joint_pos_bounds"])
    random_joint_positions(model, rng, limits=positions, out=state.joint_q)
    bases = _free_bases(model)
    q, at = state.joint_q.numpy().astype(np.float64), model.joint_q_start.numpy()[bases][:, None]
    if low_high["base_pos_bounds"] is not None:
        q[at + np.arange(3)] = rng.uniform(*low_high["base_pos_bounds"], (len(bases), 3))
    if low_high["base_rpy_bounds"] is not None:
        angles = rng.uniform(*low_high["base_rpy_bounds"], (len(bases), 3))
        q[at + np.arange(3, 7)] = quat_from_rpy(angles)
    state.joint_q.assign(q)

    joints = np.flatnonzero(model.joint_articulation.numpy() >= 0)
    starts = model.joint_qd_start.numpy()
    moving = np.repeat(np.isin(np.arange(model.joint_count), joints), np.diff(starts))
    v = np.where(moving, rng.uniform(*low_high["joint_vel_bounds"], dofs), state.joint_qd.numpy())
    at = starts[bases][:, None]
    v[at + np.arange(3)] = rng.uniform(*low_high["base_vel_lin_bounds"], (len(bases), 3))
    v[at + np.arange(3, 6)] = rng.uniform(*low_high["base_vel_ang_bounds"], (len(bases), 3))
    state.joint_qd.assign(v)
    if repr is not None:
        set_velocity(model, state, v, repr)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    return state


def _bounds(given, shape: tuple[int, ...], name: str) -> tuple[np.ndarray, np.ndarray]:
    pair = as_list(given, name, "two bounds (lowest, highest)")
    if len(pair) != 2:
        raise ValueError(f"{name} must be a pair (lowest, highest), not {len(pair)} entries")
    ends = []
    for value in pair:
        numbers = as_numbers(value, name, "a pair of bounds (lowest, highest)")
        try:
            ends.append(np.broadcast_to(numbers, shape))
        except ValueError:
            raise ValueError(f"{name} has bounds of shape {numbers.shape}; give numbers, or shape {shape}") from None
    low, high = ends
    if not np.isfinite(low).all() or not np.isfinite(high).all():
        raise ValueError(f"{name} must be finite")
    wrong = low > high
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(f"{name}: the lower bound {low[i]:g} is above the upper one {high[i]:g}; swap them")
    return low, high


def _within_limits(model, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of all dofs, intersected with the limits of joints."""
    lower, upper = joint_limits_of(model)
    low, high = np.maximum(low, lower), np.minimum(high, upper)
    wrong = low > high
    if wrong.any():
        dof = int(np.argmax(wrong))
        joint = int(np.searchsorted(model.joint_qd_start.numpy(), dof, side="right")) - 1
        raise ValueError(
            f"joint_pos_bounds leave nothing between the limits {lower[dof]:g} and {upper[dof]:g} of joint "
            f"{model.joint_label[joint]!r} (index {joint})"
        )
    return low, high


def _free_bases(model) -> np.ndarray:
    """FREE root joints of articulations."""
    first = names_of(model).start
    types, parents = model.joint_type.numpy()[first], model.joint_parent.numpy()[first]
    free = look_up(types, "floats") & ~look_up(types, "limits_distance")
    return first[free & (parents < 0)]
