"""The configuration and the motion of a robot, or of a batch of its copies."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from newton_like.arrays import host_array
from newton_like.robot.calls import Calls
from newton_like.robot.errors import RobotError, RobotIndexError, ShapeError
from newton_like.robot.tasks import FRAMES, Task

_ROWS = {"q": "q", "qdot": "v", "qddot": "acceleration", "V0": "base_twist", "Vdot0": "base_acceleration", "tau": None}
"""The inputs, and the rows of kernels that read them."""

LARGE = 1e300
"""Sum of squares of an input below which it has no number that is not finite."""


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

    __slots__ = (
        "__weakref__", "_base", "_batched", "_bodies", "_calls", "_capsules", "_count", "_given", "_joint_names", "_joints",
        "_link_names", "_links", "_order", "_placed", "_read", "_robot", "_runs", "_scale", "_wheels",
    )  # fmt: skip

    def __init__(self, *_args, **_options):
        raise TypeError(f"{type(self).__name__}() cannot be called; use robot.make_state(link_names, joint_names)")

    @classmethod
    def _made(cls, robot, links: list[int], joints: list[int]) -> State:
        """The state of a robot that lists its links and its moving joints in this order."""
        self = object.__new__(cls)
        self._robot, self._bodies, self._count = robot, links, len(links)
        self._joints = [robot._joints[i] for i in joints]
        self._link_names, self._joint_names = (
            [x.name for x in some] for some in ([robot._links[i] for i in links], self._joints)
        )
        self._base, self._order = links.index(0), np.argsort(np.array(joints, dtype=int))
        scale = robot._scale[np.array(joints, dtype=int)]
        self._scale = None if (scale == 1.0).all() else scale
        self._given = {name: np.zeros(6 if name[0] == "V" else len(joints)) for name in _ROWS}
        self._read = {row: self._given[name] for name, row in _ROWS.items() if row}
        self._read["weights"] = np.zeros(len(links))
        if self._scale is not None:
            self._read.update({_ROWS[name]: np.zeros(len(joints)) for name in ("q", "qdot", "qddot")})
        self._calls = self._links = self._wheels = None
        self._runs: dict = {}
        self._placed = self._batched = False
        self._capsules = None
        return self

    def __repr__(self) -> str:
        base = f"\n  base_link_idx={self._base},"
        return (
            f"{type(self).__name__}({base}"
            + ",".join(f"\n  {name}={x.tolist()}" for name, x in self._given.items())
            + "\n)"
        )

    def __str__(self) -> str:
        some = ", ".join(f"{name}={self._given[name].tolist()}" for name in ("q", "qdot", "tau"))
        return f"{type(self).__name__}(base={self._base}, {some})"

    def __reduce__(self):
        # a shallow copy would share memory with this state, and not know when its inputs change
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled; use make_state and set the inputs of the new state"
        )

    # ------------------------------------------------------------------------------------------------ names

    @property
    def link_names(self) -> list[str]:
        """Names of the links in the order of their indices."""
        return list(self._link_names)

    @property
    def joint_names(self) -> list[str]:
        """Names of the joints that move, in the order of all vectors."""
        return list(self._joint_names)

    @property
    def base_link_idx(self) -> int:
        """Index of the base link."""
        return self._base

    def get_link_names(self) -> list[str]:
        """:attr:`link_names`"""
        return list(self._link_names)

    def get_joint_names(self) -> list[str]:
        """:attr:`joint_names`"""
        return list(self._joint_names)

    def get_base_link_idx(self) -> int:
        """:attr:`base_link_idx`"""
        return self._base

    @property
    def batch_size(self) -> int | None:
        """Number of configurations; None for one that is no batch.

        Raises:
            ValueError: inputs have different numbers of configurations.
        """
        return self._size(tuple(self._read))

    # ------------------------------------------------------------------------------------------------ inputs

    def set_q(self, q: ArrayLike) -> None:
        """Sets the joint positions [rad or m], ``[n]``, ``[n, 1]`` or ``[batch, n]``. For n = 1, ``[1, 1]`` is a batch.

        Raises:
            ValueError, TypeError: another shape, numbers that are not finite, or no numbers.
        """
        self._placed = False
        self._set("q", q)

    def set_qdot(self, qdot: ArrayLike) -> None:
        """Sets the joint velocities [rad/s or m/s], as :meth:`set_q`."""
        self._set("qdot", qdot)

    def set_qddot(self, qddot: ArrayLike) -> None:
        """Sets the joint accelerations [rad/s^2 or m/s^2], as :meth:`set_q`."""
        self._set("qddot", qddot)

    def set_tau(self, tau: ArrayLike) -> None:
        """Sets the joint torques [N m] and forces [N], as :meth:`set_q`. No function reads them."""
        self._set("tau", tau)

    def set_V0(self, V0: ArrayLike) -> None:
        """Sets the twist of the base link in its own frame, angular part first [rad/s, m/s], ``[6]`` or ``[batch, 6]``.

        Raises:
            ValueError, TypeError: see :meth:`set_q`.
        """
        self._set("V0", V0)

    def set_Vdot0(self, Vdot0: ArrayLike) -> None:
        """Sets the spatial acceleration of the base link in its own frame, angular part first [rad/s^2, m/s^2], ``[6]`` or ``[batch, 6]``.

        Raises:
            ValueError, TypeError: see :meth:`set_q`.
        """
        self._set("Vdot0", Vdot0)

    def set_gravity(self, gravity: ArrayLike) -> None:
        """Sets :attr:`Vdot0` to the opposite of an acceleration ``[0, 0, 0, gx, gy, gz]`` in the frame of the base link.

        Raises:
            ValueError, TypeError: see :meth:`set_q`.
        """
        self._set("Vdot0", -self._numbers("Vdot0", gravity, "gravity"))

    def get_q(self) -> np.ndarray:
        """A copy of the joint positions [rad or m], ``[n]`` or ``[batch, n]``."""
        return self._given["q"].copy()

    def get_qdot(self) -> np.ndarray:
        """A copy of the joint velocities [rad/s or m/s], ``[n]`` or ``[batch, n]``."""
        return self._given["qdot"].copy()

    def get_qddot(self) -> np.ndarray:
        """A copy of the joint accelerations [rad/s^2 or m/s^2], ``[n]`` or ``[batch, n]``."""
        return self._given["qddot"].copy()

    def get_tau(self) -> np.ndarray:
        """A copy of the joint torques [N m] and forces [N], ``[n]`` or ``[batch, n]``."""
        return self._given["tau"].copy()

    def _get_V0(self) -> np.ndarray:
        """A copy of the twist of the base link in its own frame, angular part first [rad/s, m/s], ``[6]`` or ``[batch, 6]``."""
        return self._given["V0"].copy()

    def _get_Vdot0(self) -> np.ndarray:
        """A copy of the spatial acceleration of the base link in its own frame, angular part first [rad/s^2, m/s^2], ``[6]`` or
        ``[batch, 6]``; see :meth:`set_gravity`."""
        return self._given["Vdot0"].copy()

    q = property(get_q, set_q)
    qdot = property(get_qdot, set_qdot)
    qddot = property(get_qddot, set_qddot)
    tau = property(get_tau, set_tau)
    V0 = property(_get_V0, set_V0)
    Vdot0 = property(_get_Vdot0, set_Vdot0)

    def _set(self, name: str, value) -> None:
        """Checks and copies an input."""
        given = self._given[name]
        plain = type(value) is np.ndarray and value.shape == given.shape and value.ndim == 1 and value.dtype == float
        if not (plain and value.dot(value) < LARGE):
            value = self._numbers(name, value)
            if value.shape != given.shape:
                self._resize(name, value.shape)
                given = self._given[name]
        given[...] = value
        self._written(name)

    def _written(self, name: str) -> None:
        """Tells kernels the numbers of an input that was written."""
        row = _ROWS[name]
        if self._scale is not None and row is not None and name[0] != "V":
            np.multiply(self._given[name], self._scale, out=self._read[row])

    def _numbers(self, name: str, value, what: str | None = None) -> np.ndarray:
        """Checked numbers for an input, ``[size]`` or ``[batch, size]``."""
        what = name if what is None else what
        of_base = name[0] == "V"
        numbers = np.asarray(host_array(value, what), dtype=float)
        size = 6 if of_base else len(self._joints)
        if numbers.ndim == 2 and numbers.shape == (size, 1) and size > 1:
            numbers = numbers[:, 0]
        if numbers.ndim not in (1, 2) or numbers.shape[-1] != size or (numbers.ndim == 2 and not len(numbers)):
            wanted = (
                "6 numbers, angular part first" if of_base else f"a number for each of the {size} joints of the state"
            )
            raise ShapeError(f"{what} has shape {numbers.shape}; give {wanted}: [{size}] or [batch, {size}]")
        if not np.isfinite(numbers).all():
            at = tuple(map(int, np.argwhere(~np.isfinite(numbers))[0]))
            whose = "" if of_base else f" (joint {self._joint_names[at[-1]]!r})"
            raise RobotError(f"{what}{list(at)} is {numbers[at]}{whose}; give finite numbers")
        return numbers

    def _resize(self, name: str, shape: tuple[int, ...]) -> None:
        """New memory for an input. Recorded launches read the old one."""
        row = _ROWS[name]
        self._given[name] = np.empty(shape)
        if row is not None:
            scaled = self._scale is not None and name[0] != "V"
            self._read[row] = np.empty(shape) if scaled else self._given[name]
            self._runs.clear()
            self._batched = any(x.ndim > 1 for x in self._read.values())
            self._placed = False

    # ------------------------------------------------------------------------------------------------ results

    def _size(self, rows: tuple[str, ...]) -> int | None:
        """The number of configurations of some inputs."""
        sizes = {row: len(self._read[row]) for row in rows if self._read[row].ndim > 1}
        if len(set(sizes.values())) > 1:
            names = ", ".join(f"{name} has {sizes[row]}" for name, row in _ROWS.items() if row in sizes)
            raise ShapeError(f"inputs of the state have different numbers of configurations: {names}; set all of them")
        return next(iter(sizes.values()), None)

    def _link(self, index) -> int:
        """The body of the link with an index of this state."""
        try:
            if 0 <= index < self._count:
                return self._bodies[index]
        except (TypeError, ValueError):
            pass
        if isinstance(index, int | np.integer):
            links = f"the state has {self._count} links, 0 to {self._count - 1}"
            kind = RobotIndexError if index >= 0 else _NegativeIndex
            raise kind(f"link index {index} is out of range; {links}")
        raise TypeError(f"a link index must be an integer, not {index!r}; see state.link_names")

    def _begin(self) -> Calls:
        """Memory for one configuration, which is made when it is first used."""
        if self._calls is None:
            self._calls = Calls(self._robot._machine, None, self._order, "general")
            self._links = memoryview(self._calls.links)
        return self._calls

    def _place(self) -> None:
        """Computes the frames of all links, unless they are known."""
        if not self._placed and not self._batched:
            run = self._runs.get(FRAMES)
            if run is None:
                self._begin()
                run = self._runs[FRAMES] = self._calls.record(FRAMES, self._read, np.empty(0), True)
            run.run()
            self._placed = True

    def _evaluate(self, task: Task, shape: tuple[int, ...], target: int = 0, ref: int = 0, seen: int = 0) -> np.ndarray:
        """The result of a task; links as indices of bodies."""
        if self._batched:
            return self._evaluate_batch(task, shape, (target, ref, seen))
        if not self._placed:
            self._place()
        known = self._runs.get(task)
        if known is None:
            out = np.zeros(shape)
            known = self._runs[task] = (self._calls.record(task, self._read, out, False), out)
        links = self._links
        links[0], links[1], links[2] = target, ref, seen
        known[0].run()
        return known[1].copy()

    def _evaluate_batch(self, task: Task, shape: tuple[int, ...], links: tuple[int, int, int]) -> np.ndarray:
        rows = ("q", *task.inputs)
        count = self._size(rows)
        if count is None:
            # only inputs that the task does not read are batches
            known = self._runs.get((task, True))
            if known is None:
                out = np.zeros(shape)
                known = self._runs[task, True] = (self._begin().record(task, self._read, out, True), out)
            self._calls.links[:3] = links
            known[0].run()
            return known[1].copy()
        return self._robot._calls_of(self._order, count).evaluate(task, self._read, shape, links)


class _NegativeIndex(RobotIndexError, TypeError):
    """A negative index, for which bindings of C++ raise a TypeError."""
