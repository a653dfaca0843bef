"""The inputs of a state, and the results that follow from them."""

from __future__ import annotations

import numpy as np

from newton_like.arrays import host_array
from newton_like.robot.core.calls import Calls
from newton_like.robot.core.tasks import FRAMES, Task
from newton_like.robot.errors import RobotError, RobotIndexError, ShapeError

INPUTS = {"q": "q", "qdot": "v", "qddot": "acceleration", "V0": "base_twist", "Vdot0": "base_acceleration", "tau": None}
"""The inputs, and the rows of kernels that read them."""

_READ = [(name, row) for name, row in INPUTS.items() if row]

LARGE = 1e300
"""Sum of squares of an input below which it has no number that is not finite."""


class StateCore:
    """Inputs and results of a state. Indices of links, and the order of joints, are those of the state.

    Args:
        robot: the :class:`newton_like.robot.Robot`.
        bodies: of each link of the state, its body.
        dofs: of each joint of the state, its dof.

    Attributes:
        robot: the robot.
        bodies: as above.
        base: index of the base link.
        order: of each dof, the place of its joint in the state.
        dofs: their number.
        joints, joint_names, link_names: of the state, in its order.
        scale: motion for each unit of the coordinates, ``[n]``; None if all are 1.
        given: the inputs by name, as they were set.
        read: what kernels read: inputs of joints in units of motion, and the weights of links.
        batched: whether an input of kernels is a batch.
        placed: whether the frames in the memory are those of q.
        capsules, wheels: what the robot makes for the state when it is first asked for.
    """

    __slots__ = (
        "_calls", "_links", "_runs", "base", "batched", "bodies", "capsules", "dofs", "given", "joint_names", "joints", "link_names",
        "order", "placed", "read", "robot", "scale", "wheels",
    )  # fmt: skip

    def __init__(self, robot, bodies: list[int], dofs: list[int]):
        core, n = robot.core, len(dofs)
        self.robot, self.bodies, self.base = robot, bodies, bodies.index(0)
        self.joints, self.dofs, self.order = [core.joints[i] for i in dofs], n, np.array(dofs, dtype=int).argsort()
        self.link_names, self.joint_names = [core.link_names[k] for k in bodies], [core.joint_names[i] for i in dofs]
        self.scale = None if core.unit else core.scale[dofs]
        self.given = given = {name: np.zeros(6 if name[0] == "V" else n) for name in INPUTS}
        self.read = {row: given[name] for name, row in _READ}
        self.read["weights"] = np.zeros(len(bodies))
        if self.scale is not None:
            self.read.update({INPUTS[name]: np.zeros(len(dofs)) for name in ("q", "qdot", "qddot")})
        self._calls = self._links = self.capsules = self.wheels = None
        self._runs: dict = {}
        self.placed = self.batched = False

    def set(self, name: str, value) -> None:
        """Checks and copies an input."""
        given = self.given[name]
        plain = type(value) is np.ndarray and value.shape == given.shape and value.ndim == 1 and value.dtype == float
        if not (plain and value.dot(value) < LARGE):
            value = self.numbers(name, value)
            if value.shape != given.shape:
                self._resize(name, value.shape)
                given = self.given[name]
        given[...] = value
        self.written(name)

    def written(self, name: str) -> None:
        """Tells kernels the numbers of an input that was written."""
        row = INPUTS[name]
        if name == "q":
            self.placed = False
        if self.scale is not None and row is not None and name[0] != "V":
            np.multiply(self.given[name], self.scale, out=self.read[row])

    def numbers(self, name: str, value, what: str | None = None) -> np.ndarray:
        """Checked numbers for an input, ``[size]`` or ``[batch, size]``."""
        what = name if what is None else what
        of_base = name[0] == "V"
        numbers = np.asarray(host_array(value, what), dtype=float)
        size = 6 if of_base else self.dofs
        if numbers.ndim == 2 and numbers.shape == (size, 1) and size > 1:
            numbers = numbers[:, 0]
        if numbers.ndim == 2 and not len(numbers):
            raise ShapeError(
                f"{what} has shape {numbers.shape}, a batch without configurations; give at least one: [{size}] or [batch, {size}]"
            )
        if numbers.ndim not in (1, 2) or numbers.shape[-1] != size:
            wanted = (
                "6 numbers, angular part first" if of_base else f"a number for each of the {size} joints of the state"
            )
            raise ShapeError(f"{what} has shape {numbers.shape}; give {wanted}: [{size}] or [batch, {size}]")
        if not np.isfinite(numbers).all():
            at = tuple(map(int, np.argwhere(~np.isfinite(numbers))[0]))
            whose = "" if of_base else f" (joint {self.joint_names[at[-1]]!r})"
            raise RobotError(f"{what}{list(at)} is {numbers[at]}{whose}; give finite numbers")
        return numbers

    def _resize(self, name: str, shape: tuple[int, ...]) -> None:
        """New memory for an input. Recorded launches read the old one."""
        row = INPUTS[name]
        self.given[name] = np.empty(shape)
        if row is not None:
            scaled = self.scale is not None and name[0] != "V"
            self.read[row] = np.empty(shape) if scaled else self.given[name]
            self._runs.clear()
            self.batched = any(x.ndim > 1 for x in self.read.values())
            self.placed = False

    def size(self, rows: tuple[str, ...]) -> int | None:
        """The number of configurations of some inputs."""
        sizes = {row: len(self.read[row]) for row in rows if self.read[row].ndim > 1}
        if len(set(sizes.values())) > 1:
            names = ", ".join(f"{name} has {sizes[row]}" for name, row in INPUTS.items() if row in sizes)
            raise ShapeError(f"inputs of the state have different numbers of configurations: {names}; set all of them")
        return next(iter(sizes.values()), None)

    def body(self, index) -> int:
        """The body of the link with an index of this state."""
        try:
            if 0 <= index < len(self.bodies):
                return self.bodies[index]
        except (TypeError, ValueError):
            pass
        if isinstance(index, int | np.integer):
            links = f"the state has {len(self.bodies)} links, 0 to {len(self.bodies) - 1}"
            kind = RobotIndexError if index >= 0 else _NegativeIndex
            raise kind(f"link index {index} is out of range; {links}")
        raise TypeError(f"a link index must be an integer, not {index!r}; see state.link_names")

    def _begin(self) -> Calls:
        """Memory for one configuration, which is made when it is first used."""
        if self._calls is None:
            self._calls = Calls(self.robot.core.machine, None, self.order, "general")
            self._links = memoryview(self._calls.links)
        return self._calls

    def place(self) -> None:
        """Computes the frames of all links, unless they are known."""
        if not self.placed and not self.batched:
            run = self._runs.get(FRAMES)
            if run is None:
                self._begin()
                run = self._runs[FRAMES] = self._calls.record(FRAMES, self.read, [], True)
            run.run()
            self.placed = True

    def evaluate(self, task: Task, shape: tuple[int, ...], target: int = 0, ref: int = 0, seen: int = 0) -> np.ndarray:
        """The result of a task that has one; links as indices of bodies."""
        if self.batched:
            return self._evaluate_batch(task, shape, (target, ref, seen))
        if not self.placed:
            self.place()
        known = self._runs.get(task)
        if known is None:
            out = np.zeros(shape)
            known = self._runs[task] = (self._calls.record(task, self.read, [out], False), out)
        links = self._links
        links[0], links[1], links[2] = target, ref, seen
        known[0].run()
        return known[1].copy()

    def _evaluate_batch(self, task: Task, shape: tuple[int, ...], links: tuple[int, int, int]) -> np.ndarray:
        rows = ("q", *task.inputs)
        count = self.size(rows)
        if count is None:
            # only inputs that the task does not read are batches
            known = self._runs.get((task, True))
            if known is None:
                out = np.zeros(shape)
                known = self._runs[task, True] = (self._begin().record(task, self.read, [out], True), out)
            self._calls.links[:3] = links
            known[0].run()
            return known[1].copy()
        (found,) = self.robot.core.calls(self.order, count).evaluate(task, self.read, (shape,), links)
        return found


class _NegativeIndex(RobotIndexError, TypeError):
    """A negative index, for which bindings of C++ raise a TypeError."""
