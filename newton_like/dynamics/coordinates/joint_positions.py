"""Limits of joint positions, and random positions between them."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded
from newton_like.coercion import as_index, as_list
from newton_like.dynamics.internal.common import output_array
from newton_like.dynamics.names import as_link_index, index_of, joint_dofs, names_of, unknown
from newton_like.model.joint_types import look_up
from newton_like.types import MAXVAL

SLIDE = 1.0
"""Half-width [m] of the range of linear coordinates without limits."""


def joint_position_limits(model, joints=None, articulation: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Limits of the positions of joints.

    Args:
        model: the :class:`Model`.
        joints: name or index of one joint, or a list of them; all joints of the articulation by default.
        articulation: which one; the first by default.

    Returns:
        Lower and upper limits [m or rad] of the joints' degrees of freedom, one after the other, ``[dofs]`` each (float64); infinite
        where there is none, as for all directions of BALL, FREE and DISTANCE joints.

    Raises:
        KeyError: no joint has the name; similar ones are named.
        IndexError: an index, or the articulation, does not exist.
        ValueError: several joints have the name.
    """
    a = as_index(articulation, "articulation", model.articulation_count)
    if joints is None:
        joints = range(int(names_of(model).count[a]))
    elif isinstance(joints, str | int | np.integer):
        joints = [joints]
    names, starts = names_of(model), model.joint_qd_start.numpy()
    first = int(starts[names.start[a]])
    # missing limits are stored as large numbers
    lower, upper = joint_limits_of(model)
    dofs = [np.arange(0)]
    for joint in as_list(joints, "joints", "names or indices"):
        s = joint_dofs(model, index_of(model, "joint", joint, a), a)
        dofs.append(first + np.arange(s.start, s.stop))
    chosen = np.concatenate(dofs)
    return lower[chosen], upper[chosen]


def joint_limits_of(model) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper limits of all dofs, infinite for dofs without limits, ``[joint_dof_count]``."""
    lower, upper = (getattr(model, f"joint_limit_{x}").numpy().astype(np.float64) for x in ("lower", "upper"))
    lower[lower <= -MAXVAL] = -np.inf
    upper[upper >= MAXVAL] = np.inf
    counts = np.diff(model.joint_qd_start.numpy())
    free = np.repeat(look_up(model.joint_type.numpy(), "has_quaternion"), counts)
    lower[free], upper[free] = -np.inf, np.inf
    return lower, upper


def generator(seed) -> np.random.Generator:
    """A generator of random numbers from a seed; a given generator is returned.

    Raises:
        TypeError, ValueError: `seed` is not a generator, a number or None, or is negative.
    """
    try:
        return np.random.default_rng(seed)
    except TypeError:
        raise TypeError(f"seed must be a number or a numpy.random.Generator, not {type(seed).__name__}") from None
    except ValueError:
        raise ValueError(f"seed {seed!r} is negative; give a number of at least 0") from None


def random_joint_positions(model, seed=None, *, joints=None, limits=None, out: wp.array | None = None) -> wp.array:
    """Random coordinates for ``State.joint_q``, different for each articulation.

    Coordinates are uniform between their limits. Angles with a range of 2 pi or more use 2 pi of it, [-pi, pi] if it is within the range.
    Linear coordinates without limits use a range of 2 m, within 1 m of zero if possible. Rotations of BALL, FREE and DISTANCE joints are
    uniform, those of BALL joints within their limits. Positions of FREE joints are within 1 m of zero along each axis, and anchors of
    DISTANCE joints have a permitted distance. Mimic joints follow their leaders. Loop joints keep the coordinates of the model.

    Args:
        model: the :class:`Model`.
        seed: an integer, or a ``numpy.random.Generator``; None: other numbers each time.
        joints: names or indices of the joints to draw, in all articulations that have them; other joints keep the coordinates of
            the model. All by default.
        limits: lower and upper limits [m or rad], ``[joint_dof_count]`` each, instead of those of the model.
        out: array for the result; a new array by default.

    Returns:
        [m, rad or quaternion x y z w], ``[joint_coord_count]``.

    Raises:
        KeyError: no articulation has a joint of a name.
        IndexError: no articulation has a joint of an index.
        ValueError, TypeError: ``out`` has another shape, device or scalar type; no seed.
    """
    check_recorded(model.device, "random_joint_positions")
    rng = generator(seed)
    out = output_array(model, out, (model.joint_coord_count,))
    q = model.joint_q.numpy().astype(np.float64)
    drawn = _draw(model, rng, joint_limits_of(model) if limits is None else limits)
    wanted = np.repeat(_wanted(model, joints), np.diff(model.joint_q_start.numpy()))
    q[wanted] = drawn[wanted]
    _follow(model, q)
    if q.size:
        out.assign(q)
    return out


def _wanted(model, joints) -> np.ndarray:
    """Mask of the joints to draw, ``[joint_count]``."""
    if joints is None:
        return model.joint_articulation.numpy() >= 0
    if isinstance(joints, str | int | np.integer):
        joints = [joints]
    names, wanted = names_of(model), np.zeros(model.joint_count, dtype=bool)
    for joint in as_list(joints, "joints", "names or indices"):
        if isinstance(joint, str):
            found = names.everywhere("joint", joint)
            if all(i is None for i in found):
                raise unknown("joint", joint, names.every("joint"), "any articulation")
        else:
            i = as_link_index(joint, "joint", int(names.count.max(initial=0)))
            found = [i if i < n else None for n in names.count]
        wanted[[s + i for s, i in zip(names.start, found, strict=True) if i is not None]] = True
    return wanted


def _draw(model, rng: np.random.Generator, limits) -> np.ndarray:
    """Random coordinates of all joints, without mimic relations."""
    kinds, dims = model.joint_type.numpy(), model.joint_dof_dim.numpy()
    at, dof = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    lower, upper = limits
    q = np.zeros(model.joint_coord_count)

    scalar = ~look_up(kinds, "has_quaternion")
    for linear in (True, False):
        counts = np.where(scalar, dims[:, 0 if linear else 1], 0)
        shift = np.zeros_like(counts) if linear else dims[:, 0]
        joint = np.repeat(np.arange(len(kinds)), counts)
        step = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + shift[joint]
        low, high = lower[dof[joint] + step], upper[dof[joint] + step]
        reach = SLIDE if linear else np.pi
        wide = ~np.isfinite(high - low) if linear else high - low >= 2.0 * np.pi
        start = np.where(wide, np.clip(-reach, low, high - 2.0 * reach), low)
        width = np.where(wide, 2.0 * reach, high - np.where(wide, 0.0, low))
        q[at[joint] + step] = start + width * rng.random(len(joint))

    turned = np.flatnonzero(~scalar)
    q[at[turned + 1][:, None] - [4, 3, 2, 1]] = _directions(rng, len(turned), 4)
    _turn_within_limits(model, rng, q)
    free = np.flatnonzero(~look_up(kinds, "anchored"))
    q[at[free][:, None] + [0, 1, 2]] = rng.uniform(-SLIDE, SLIDE, (len(free), 3))
    rope = np.flatnonzero(look_up(kinds, "limits_distance"))
    near = np.maximum(model.joint_min_distance.numpy()[rope].astype(np.float64), 0.0)
    far = model.joint_max_distance.numpy()[rope].astype(np.float64)
    far = np.where(far < 0.0, near + SLIDE, far)
    apart = near + (far - near) * rng.random(len(rope))
    q[at[rope][:, None] + [0, 1, 2]] = apart[:, None] * _directions(rng, len(rope), 3)
    return q


def _turn_within_limits(model, rng: np.random.Generator, q: np.ndarray) -> None:
    """Draws the rotations of ball joints with limits: uniform among those that the limits allow.

    With the angles s, by which the x axis turns, and t about that axis, volumes of rotations are sin(s) ds dt, and the angle of the whole
    rotation is 2 acos(cos(s / 2) cos(t / 2)), which is at least as large as both.
    """
    angle, swing = (
        np.where((x < 0.0) | (x > np.pi), np.pi, x)
        for x in (getattr(model, f"joint_max_{name}").numpy().astype(np.float64) for name in ("angle", "swing"))
    )
    left = np.flatnonzero(look_up(model.joint_type.numpy(), "turns_only") & (np.minimum(angle, swing) < np.pi))
    at = model.joint_q_start.numpy()
    while left.size:
        low = np.cos(np.minimum(angle, swing)[left])
        s = np.arccos(low + (1.0 - low) * rng.random(left.size))
        t = angle[left] * rng.uniform(-1.0, 1.0, left.size)
        about = rng.uniform(-np.pi, np.pi, left.size)
        # the axis of s is at right angles to x
        first, last = np.sin(0.5 * s), np.cos(0.5 * s)
        y, z = first * np.cos(about), first * np.sin(about)
        c, d = np.cos(0.5 * t), np.sin(0.5 * t)
        turn = np.stack([last * d, y * c + z * d, z * c - y * d, last * c], axis=1)
        good = 2.0 * np.arccos(np.minimum(turn[:, 3], 1.0)) <= angle[left]
        q[at[left[good]][:, None] + np.arange(4)] = turn[good]
        left = left[~good]


def _directions(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """Unit vectors, uniform on the sphere, ``[n, size]``."""
    x = rng.normal(size=(n, size))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _follow(model, q: np.ndarray) -> None:
    """Sets the coordinates of mimic joints: q = c0 + c1 q_leader."""
    leader = model.joint_mimic_joint.numpy()
    followers = np.flatnonzero(leader >= 0)
    at, coefficients = model.joint_q_start.numpy(), model.joint_mimic_coeffs.numpy().astype(np.float64)
    to, source = at[followers], at[leader[followers]]
    # a leader may be a mimic joint itself, so repeat for chains
    for _ in followers:
        new = coefficients[followers, 0] + coefficients[followers, 1] * q[source]
        if np.array_equal(new, q[to]):
            break
        q[to] = new
