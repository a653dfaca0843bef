"""Initial states of assets that configurations state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from newton_like.articulation.names import by_name
from newton_like.model.labels import some_of
from newton_like.options import Settings, configuration


@configuration(slots=True)
class InitialStateCfg(Settings):
    """The state to which a reset leads. What is None is that of the model.

    As in Isaac Lab, origins of worlds are not added to `pos`. The simulation itself starts in the state of the model.

    Attributes:
        pos: position of the root link [m], world axes. The pose of a root on a joint, such as a cart on its rail, follows from the joint:
            another one than that of the model is refused.
        rot: its quaternion x y z w.
        lin_vel, ang_vel: linear velocity of the root's centre of mass [m/s] and angular velocity [rad/s], world axes.
        joint_pos, joint_vel: positions [rad or m] and velocities [rad/s or m/s] of joints: a number, or numbers by regular expression;
            joints without one have those of the model.
        rps: speeds of the rotors of a multirotor [rev/s], likewise; all rotors need one.
    """

    pos: Sequence[float] | None = None
    rot: Sequence[float] | None = None
    lin_vel: Sequence[float] | None = None
    ang_vel: Sequence[float] | None = None
    joint_pos: float | dict[str, float] | None = None
    joint_vel: float | dict[str, float] | None = None
    rps: float | dict[str, float] | None = None


def put_defaults(init_state: InitialStateCfg, asset) -> None:
    """Writes an initial state into the defaults of the data of an articulation.

    Args:
        init_state: the state.
        asset: the articulation.

    Raises:
        TypeError: not an initial state.
        ValueError: numbers of another count or that are not finite, a zero quaternion, velocities of a root without a free joint, the pose
            of a root on a joint; patterns that match no joint; positions or velocities beyond the limits of joints.
    """
    if not isinstance(init_state, InitialStateCfg):
        raise TypeError(f"init_state must be an InitialStateCfg, not {type(init_state).__name__}")
    data, label, is_floating = asset.data, asset._layout.label, not asset.is_fixed_base
    root = data.default_root_state.numpy().copy()
    for name, first, count in (("pos", 0, 3), ("rot", 3, 4), ("lin_vel", 7, 3), ("ang_vel", 10, 3)):
        value = getattr(init_state, name)
        if value is None:
            continue
        numbers = np.asarray(value, dtype=float)
        if numbers.shape != (count,) or not np.isfinite(numbers).all():
            raise ValueError(f"init_state.{name} {value!r} must be {count} finite numbers")
        if name == "rot":
            if not np.linalg.norm(numbers) > 0.0:
                raise ValueError("init_state.rot is a zero quaternion; give a rotation (x, y, z, w)")
            numbers = numbers / np.linalg.norm(numbers)
        if first >= 7 and numbers.any() and not is_floating:
            raise ValueError(
                f"init_state.{name}: '{label}' has no free joint at its root, so that its root has no velocity"
            )
        if first < 7 and not is_floating and not asset.root_is_fixed:
            _refuse_another_root(name, numbers, root[:, first : first + count], asset)
        root[:, first : first + count] = numbers
    data.default_root_state.assign(root)
    for name in ("joint_pos", "joint_vel"):
        value = getattr(init_state, name)
        if value is not None:
            target = getattr(data, f"default_{name}")
            numbers = target.numpy().copy()
            given = by_name(value, data.joint_names, "joint", None, f"init_state.{name}")
            limits = data.joint_pos_limits.numpy() if name == "joint_pos" else _both_ways(data.joint_vel_limits.numpy())
            _refuse_beyond(name, given, limits, data.joint_names)
            target.assign(np.where(np.isnan(given), numbers, given).astype(numbers.dtype))


def _both_ways(limits: np.ndarray) -> np.ndarray:
    return np.stack([-limits, limits], axis=-1)


def _refuse_beyond(name: str, given: np.ndarray, limits: np.ndarray, joint_names: Sequence[str]) -> None:
    """Raises ValueError for numbers of joints beyond the limits of a world, up to rounding; NaN: none is given."""
    low, high = limits[..., 0].astype(float), limits[..., 1].astype(float)
    room = 1.0e-5 * np.maximum(1.0, np.abs(given))
    beyond = (given < low - room) | (given > high + room)
    if beyond.any():
        rows, columns = beyond.argmax(axis=0), np.flatnonzero(beyond.any(axis=0))
        told = [
            f"{joint_names[j]!r} ({given[j]:g} is not within {low[rows[j], j]:g} and {high[rows[j], j]:g})"
            for j in columns
        ]
        raise ValueError(
            f"init_state.{name}: numbers beyond the limits of joints: {some_of(told, 6)}; give numbers within the limits"
        )


def _refuse_another_root(name: str, numbers: np.ndarray, now: np.ndarray, asset) -> None:
    """Raises ValueError unless a root on a joint is there in the model."""
    sign = np.where(now @ numbers < 0.0, -1.0, 1.0)[:, None] if name == "rot" else 1.0
    if not np.allclose(sign * numbers, now, rtol=1.0e-5, atol=1.0e-5):
        joint = asset.model.joint_label[int(asset._layout.root_joints[0])]
        raise ValueError(
            f"init_state.{name}: the root of '{asset._layout.label}' moves on joint '{joint}', so that its pose follows from that joint:"
            " give init_state.joint_pos, or place the robot in the builder"
        )
