"""The inputs of a state, and the results that follow from them."""

from __future__ import annotations

import numpy as np

from newton_like.arrays import host_array
from newton_like.robot.arguments import LARGE
from newton_like.robot.core.orders import JointOrder, LinkOrder
from newton_like.robot.core.single import Memory
from newton_like.robot.core.tasks import FRAMES, Task
from newton_like.robot.errors import RobotError, RobotIndexError, ShapeError

INPUTS = {"q": "q", "qdot": "v", "qddot": "acceleration", "V0": "base_twist", "Vdot0": "base_acceleration", "tau": None}
"""The inputs, and the rows of kernels that read them."""

_DOUBLE, _NUMBERS = np.dtype(np.float64), (float, int)


class StateCore:
    """Inputs and results of a state. Indices of links, and the order of joints, are those of the state.

    Args:
        robot: the :class:`newton_like.robot.Robot`.
        links, joints: their order in the state. States share orders.

    Attributes:
        robot: the robot.
        bodies: of each link of the state, its body.
        base: index of the base link.
        order: of each dof, the place of its joint in the state.
        dofs: their number.
        joints, joint_names, link_names: of the state, in its order.
        scale: motion for each unit of the coordinates, ``[n]``; None if all are 1.
        given: the inputs by name, as they were set. Those of one configuration are in the memory.
        read: the same arrays and the weights of links, by the names that kernels have for them.
        batched: whether an input of kernels is a batch.
        placed: whether the frames in the memory are those of q.
        capsules, wheels: what the robot makes for the state when it is first asked for.
    """

    __slots__ = (
        "_loan", "_memory", "_runs", "base", "batched", "bodies", "capsules", "dofs", "given", "joint_names", "joints",
        "link_names", "order", "placed", "read", "robot", "scale", "wheels",
    )  # fmt: skip

    def __init__(self, robot, links: LinkOrder, joints: JointOrder):
        self.robot = robot
        self.bodies, self.base, self.link_names = links
        self.joints, self.joint_names, self.order, self.scale, key = joints
        self.dofs = n = len(self.joints)
        self.capsules = self.wheels = self._loan = None
        self.placed = self.batched = False
        store = robot.core.patterns.store
        memory = store.take(key)
        if memory is None:
            memory = Memory(key, n, len(self.bodies))
        else:
            self._loan = store.lend(memory)
            memory.clear()
        self._memory, self._runs = memory, memory.runs
        # entries are replaced by batches
        self.given, self.read = memory.given.copy(), memory.read.copy()

    def set(self, name: str, value, what: str | None = None, opposite: bool = False) -> None:
        """Checks and copies an input, or its opposite. `what`: its name in errors, by default `name`."""
        given = self.given[name]
        kind = type(value)
        if (kind is list or kind is tuple) and value and len(value) == len(given) and type(value[0]) in _NUMBERS:
            value = _as_doubles(value)
        # most arrays have this object as their type
        plain = type(value) is np.ndarray and value.dtype is _DOUBLE and value.shape == given.shape and value.ndim == 1
        if not (plain and value.dot(value) < LARGE):
            value = self.numbers(name, value, what)
            if value.shape != given.shape:
                self._resize(name, value.shape)
                given = self.given[name]
        if opposite:
            np.negative(value, out=given)
        else:
            given[...] = value
        if name == "q":
            self.placed = False

    def numbers(self, name: str, value, what: str | None = None) -> np.ndarray:
        """Checked numbers for an input, ``[size]`` or ``[batch, size]``."""
        what = name if what is None else what
        of_base = name[0] == "V"
        if type(value) is not np.ndarray or value.dtype.kind not in "iuf":
            value = host_array(value, what)
        numbers = np.asarray(value, dtype=float)
        size = 6 if of_base else self.dofs
        if numbers.ndim == 2 and numbers.shape == (size, 1) and size > 1:
            numbers = numbers[:, 0]
        if numbers.shape == (size,) and numbers.dot(numbers) < LARGE:
            # a fast test that finite numbers pass, unless they are large
            return numbers
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
        """Another array for an input: that of the memory for one configuration, of which launches know, or a new one for a batch."""
        row, memory = INPUTS[name], self._memory
        single = len(shape) == 1
        self.given[name] = memory.given[name] if single else np.empty(shape)
        if row is not None:
            self.read[row] = self.given[name]
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
            if index >= 0:
                return self.bodies[index]
        except (IndexError, TypeError, ValueError):
            pass
        if isinstance(index, int | np.integer):
            links = f"the state has {len(self.bodies)} links, 0 to {len(self.bodies) - 1}"
            kind = RobotIndexError if 0 <= index < 2**32 else _NoUnsigned
            raise kind(f"link index {index} is out of range; {links}")
        raise TypeError(f"a link index must be an integer, not {index!r}; see state.link_names")

    def count_links(self, links) -> bool:
        """Adds 1 to the weights of a list of links. Returns False, and adds nothing, for other things than a list of valid indices."""
        if type(links) is np.ndarray and links.ndim == 1 and links.dtype.kind in "iu":
            links = links.tolist()
        if type(links) is not list or not links:
            return False
        try:
            if not min(links) >= 0:
                return False
            chosen = [self.bodies[i] for i in links]
        except (IndexError, TypeError, ValueError):
            return False
        weights = memoryview(self.read["weights"])
        for k in chosen:
            weights[k] += 1.0
        return True

    def _record(self, key, task: Task, fresh: bool, shape: tuple[int, ...] | None) -> tuple:
        """The launch of a task in the memory of the state, and the array of its result."""
        memory, patterns = self._memory, self.robot.core.patterns
        if memory.lanes is None:
            memory.prepare(patterns)
            # memory that takes long to make
            self._loan = patterns.store.lend(memory)
        out = None if shape is None else np.zeros(shape)
        self._runs[key] = made = patterns.launch(task, fresh, memory, out), out
        return made

    def place(self) -> None:
        """Computes the frames of all links, unless they are known."""
        if not self.placed and not self.batched:
            run, _ = self._runs.get(FRAMES) or self._record(FRAMES, FRAMES, True, None)
            run()
            self.placed = True

    def evaluate(self, task: Task, shape: tuple[int, ...], target: int = 0, ref: int = 0, seen: int = 0) -> np.ndarray:
        """The result of a task that has one; links as indices of bodies."""
        if self.batched:
            return self._evaluate_batch(task, shape, (target, ref, seen))
        if not self.placed and task.frames:
            self.place()
        run, out = self._runs.get(task) or self._record(task, task, not task.frames, shape)
        links = self._memory.view
        links[0], links[1], links[2] = target, ref, seen
        run()
        return out.copy()

    def _evaluate_batch(self, task: Task, shape: tuple[int, ...], links: tuple[int, int, int]) -> np.ndarray:
        rows = ("q", *task.inputs)
        count = self.size(rows)
        if count is None:
            # only inputs that the task does not read are batches
            run, out = self._runs.get((task, True)) or self._record((task, True), task, True, shape)
            self._memory.links[:] = links
            run()
            return out.copy()
        return self.robot.core.evaluate(self.order, count, task, self.read, shape, links)


def _as_doubles(value: list | tuple):
    """A list of numbers as an array in double precision; other lists as they are."""
    try:
        array = np.array(value)
    except (TypeError, ValueError, OverflowError):
        return value
    return array if array.dtype == float else value


class _NoUnsigned(RobotIndexError, TypeError):
    """An index that no unsigned integer of 32 bits can be, for which bindings of C++ raise a TypeError."""
