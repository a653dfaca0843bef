"""Initial states of assets that configurations state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from newton_like.articulation.names import by_name
from newton_like.options import Settings, configuration


@configuration(slots=True)
class InitialStateCfg(Settings):
    """The state to which a reset leads. What is None is that of the model.

    As in Isaac Lab, origins of worlds are not added to `pos`. The simulation itself starts in the state of the model.

    Attributes:
        pos: position of the root link [m], world axes.
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


def put_defaults(init_state: InitialStateCfg, data, is_floating: bool, label: str) -> None:
    """Writes an initial state into the defaults of data.

    Args:
        init_state: the state.
        data: the :class:`newton_like.articulation.ArticulationData`.
        is_floating: whether the root has velocities.
        label: name of the articulation in error messages.

    Raises:
        TypeError: not an initial state.
        ValueError: numbers of another count or that are not finite, a zero quaternion, velocities of a root without a free joint; patterns
            that match no joint.
    """
    if not isinstance(init_state, InitialStateCfg):
        raise TypeError(f"init_state must be an InitialStateCfg, not {type(init_state).__name__}")
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
        root[:, first : first + count] = numbers
    data.default_root_state.assign(root)
    for name in ("joint_pos", "joint_vel"):
        value = getattr(init_state, name)
        if value is not None:
            target = getattr(data, f"default_{name}")
            numbers = target.numpy().copy()
            given = by_name(value, data.joint_names, "joint", None, f"init_state.{name}")
            target.assign(np.where(np.isnan(given), numbers, given).astype(numbers.dtype))
