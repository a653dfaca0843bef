"""The configuration and the motion of a robot, or of a batch of its copies."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from newton_like.robot.core.orders import JointOrder, LinkOrder
from newton_like.robot.core.state import StateCore


class State:
    """Joint positions, velocities, accelerations and torques of a robot, and the motion of its base link. :meth:`Robot.make_state` makes
    it.

    Vectors have the order of :attr:`joint_names`. Indices of links count :attr:`link_names`.

    An input is one configuration, ``[n]``, or a batch of them, ``[batch, n]``; an input of one configuration holds for the whole batch.
    Functions of the robot return results with the same first dimension. Setters and getters copy. Results always follow the inputs; no
    function has to be called to update them. Two threads must not use one state at the same time.

    Attributes:
        q, qdot, qddot: positions, velocities and accelerations of the joints [rad or m, and s], ``[n]`` or ``[batch, n]``. Zero at first.
        tau: torques [N m] and forces [N] of the joints, which :meth:`Robot.compute_inverse_dynamics` writes.
        V0: twist of the base link in its own frame, angular part first [rad/s, m/s], ``[6]`` or ``[batch, 6]``.
        Vdot0: spatial acceleration of the base link, likewise [rad/s^2, m/s^2]; see :meth:`set_gravity`.
    """

    # the core is for the files of this package
    __slots__ = ("__weakref__", "core")

    def __init__(self, *_args: object, **_options: object) -> None:
        raise TypeError(f"{type(self).__name__}() cannot be called; use robot.make_state(link_names, joint_names)")

    def __repr__(self) -> str:
        base = f"\n  base_link_idx={self.core.base},"
        return (
            f"{type(self).__name__}({base}"
            + ",".join(f"\n  {name}={x.tolist()}" for name, x in self.core.given.items())
            + "\n)"
        )

    def __str__(self) -> str:
        some = ", ".join(f"{name}={self.core.given[name].tolist()}" for name in ("q", "qdot", "tau"))
        return f"{type(self).__name__}(base={self.core.base}, {some})"

    def __reduce__(self):
        # a shallow copy would share memory with this state, and not know when its inputs change
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled; use make_state and set the inputs of the new state"
        )

    # ------------------------------------------------------------------------------------------------ names

    @property
    def link_names(self) -> list[str]:
        """Names of the links in the order of their indices."""
        return list(self.core.link_names)

    @property
    def joint_names(self) -> list[str]:
        """Names of the joints that move, in the order of all vectors."""
        return list(self.core.joint_names)

    @property
    def base_link_idx(self) -> int:
        """Index of the base link."""
        return self.core.base

    def get_link_names(self) -> list[str]:
        """:attr:`link_names`"""
        return list(self.core.link_names)

    def get_joint_names(self) -> list[str]:
        """:attr:`joint_names`"""
        return list(self.core.joint_names)

    def get_base_link_idx(self) -> int:
        """:attr:`base_link_idx`"""
        return self.core.base

    @property
    def batch_size(self) -> int | None:
        """Number of configurations; None for one that is no batch.

        Raises:
            ValueError: inputs have different numbers of configurations.
        """
        return self.core.size(tuple(self.core.read))

    # ------------------------------------------------------------------------------------------------ inputs

    def set_q(self, q: ArrayLike) -> None:
        """Sets the joint positions [rad or m], ``[n]``, ``[n, 1]`` or ``[batch, n]``. For n = 1, ``[1, 1]`` is a batch.

        Raises:
            ValueError, TypeError: another shape, numbers that are not finite, or no numbers.
        """
        self.core.set("q", q)

    def set_qdot(self, qdot: ArrayLike) -> None:
        """Sets the joint velocities [rad/s or m/s], as :meth:`set_q`."""
        self.core.set("qdot", qdot)

    def set_qddot(self, qddot: ArrayLike) -> None:
        """Sets the joint accelerations [rad/s^2 or m/s^2], as :meth:`set_q`."""
        self.core.set("qddot", qddot)

    def set_tau(self, tau: ArrayLike) -> None:
        """Sets the joint torques [N m] and forces [N], as :meth:`set_q`. No function reads them."""
        self.core.set("tau", tau)

    def set_V0(self, V0: ArrayLike) -> None:
        """Sets the twist of the base link in its own frame, angular part first [rad/s, m/s], ``[6]`` or ``[batch, 6]``.

        Raises:
            ValueError, TypeError: see :meth:`set_q`.
        """
        self.core.set("V0", V0)

    def set_Vdot0(self, Vdot0: ArrayLike) -> None:
        """Sets the spatial acceleration of the base link in its own frame, angular part first [rad/s^2, m/s^2], ``[6]`` or ``[batch, 6]``.

        Raises:
            ValueError, TypeError: see :meth:`set_q`.
        """
        self.core.set("Vdot0", Vdot0)

    def set_gravity(self, gravity: ArrayLike) -> None:
        """Sets :attr:`Vdot0` to the opposite of an acceleration ``[0, 0, 0, gx, gy, gz]`` in the frame of the base link.

        Raises:
            ValueError, TypeError: see :meth:`set_q`.
        """
        self.core.set("Vdot0", gravity, "gravity", opposite=True)

    def get_q(self) -> np.ndarray:
        """A copy of the joint positions [rad or m], ``[n]`` or ``[batch, n]``."""
        return self.core.given["q"].copy()

    def get_qdot(self) -> np.ndarray:
        """A copy of the joint velocities [rad/s or m/s], ``[n]`` or ``[batch, n]``."""
        return self.core.given["qdot"].copy()

    def get_qddot(self) -> np.ndarray:
        """A copy of the joint accelerations [rad/s^2 or m/s^2], ``[n]`` or ``[batch, n]``."""
        return self.core.given["qddot"].copy()

    def get_tau(self) -> np.ndarray:
        """A copy of the joint torques [N m] and forces [N], ``[n]`` or ``[batch, n]``."""
        return self.core.given["tau"].copy()

    def _get_V0(self) -> np.ndarray:
        """A copy of the twist of the base link in its own frame, angular part first [rad/s, m/s], ``[6]`` or ``[batch, 6]``."""
        return self.core.given["V0"].copy()

    def _get_Vdot0(self) -> np.ndarray:
        """A copy of the spatial acceleration of the base link in its own frame, angular part first [rad/s^2, m/s^2], ``[6]`` or
        ``[batch, 6]``; see :meth:`set_gravity`."""
        return self.core.given["Vdot0"].copy()

    q = property(get_q, set_q)
    qdot = property(get_qdot, set_qdot)
    qddot = property(get_qddot, set_qddot)
    tau = property(get_tau, set_tau)
    V0 = property(_get_V0, set_V0)
    Vdot0 = property(_get_Vdot0, set_Vdot0)


def new_state(kind: type[State], robot, links: LinkOrder, joints: JointOrder) -> State:
    """A state of a robot; see :class:`StateCore`."""
    state = object.__new__(kind)
    state.core = StateCore(robot, links, joints)
    return state
