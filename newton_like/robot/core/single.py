"""Launches for one configuration, and the memory of a state that they work on.

A launch is recorded once for a robot. Each state has a copy of it that is told the addresses of the state's memory: recording takes half a
millisecond, a copy some ten microseconds.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import numpy as np
import warp as wp

from newton_like.robot.core.calls import Calls, in_lanes, input_places, result_places
from newton_like.robot.core.machine import Machine
from newton_like.robot.core.tasks import Task

_IDLE = 2**26
"""Bytes of the memory of states that are gone that a robot keeps for the next states."""

_ORDERS = 1024
"""Orders of joints for which such memory is kept."""


class _Pattern(NamedTuple):
    """A recorded launch.

    Attributes:
        launch: takes the addresses of the bounds and of the arguments.
        bounds, arguments: structs of C.
        inputs, outputs: structs ``Piece``.
        fields: names of the inputs.
        places: of the numbers of inputs and results, by order of joints.
        reads: what the launch knows addresses of.
    """

    launch: Callable
    bounds: object
    arguments: object
    inputs: np.ndarray
    outputs: np.ndarray
    fields: tuple[str, ...]
    places: dict[bytes, tuple[list[np.ndarray], list[np.ndarray]]]
    reads: tuple


class Patterns:
    """The recorded launches of a robot for one configuration.

    Args:
        machine: the robot.
        dofs: their number.

    Attributes:
        store: memory that states hand on.
    """

    def __init__(self, machine: Machine, dofs: int):
        self._machine, self._order = machine, np.arange(dofs)
        self._calls: Calls | None = None
        self._made: dict[tuple[Task, bool], _Pattern] = {}
        self.store = Store()

    def lanes(self) -> wp.array:
        """New memory for one configuration."""
        known = self._one().work.memory[0]
        return wp.zeros(known.shape, dtype=known.dtype, device="cpu")

    def _one(self) -> Calls:
        """What launches are recorded with. Its memory is not used."""
        calls = self._calls
        if calls is None:
            # several threads may make one
            self._calls = calls = Calls(self._machine, 1, self._order, "general")
        return calls

    def launch(self, task: Task, fresh: bool, memory: Memory, out: np.ndarray | None = None) -> Callable[[], object]:
        """A function that computes a task in the memory of a state.

        Args:
            task: what is asked for.
            fresh: whether frames are computed; otherwise those in the memory are used.
            memory: of the state.
            out: for the result.
        """
        pattern = self._made.get((task, fresh)) or self._record(task, fresh, memory, out)
        found = pattern.places.get(memory.order) or self._places(task, pattern, memory)
        results = [] if out is None else [out]
        given = self._told(pattern.inputs, [memory.read[name] for name in pattern.fields], found[0])
        taken = self._told(pattern.outputs, results, found[1])
        bounds, arguments = pattern.bounds, type(pattern.arguments).from_buffer_copy(pattern.arguments)
        arguments.T.point_body.data = memory.links.ctypes.data
        arguments.mem.data = memory.lanes.ptr
        arguments.pieces_in.data, arguments.pieces_out.data = given.ctypes.data, taken.ctypes.data
        memory.kept += [given, taken, found, results, pattern]
        return partial(pattern.launch, ctypes.byref(bounds), ctypes.byref(arguments))

    def _record(self, task: Task, fresh: bool, memory: Memory, out: np.ndarray | None) -> _Pattern:
        fields = (("q",) if fresh else ()) + task.inputs
        given = {name: np.zeros_like(memory.read[name]) for name in fields}
        results = [] if out is None else [np.zeros_like(out)]
        recording = self._one().record(task, given, results, fresh)
        (((command,),),) = recording.launches
        _, inputs, outputs, _ = recording.reads
        pieces = [x.array.numpy().copy() for x in (inputs, outputs)]
        made = _Pattern(*command.packed(), *pieces, fields, {}, (recording, command, given, results))
        return self._made.setdefault((task, fresh), made)

    def _places(self, task: Task, pattern: _Pattern, memory: Memory) -> tuple[list[np.ndarray], list[np.ndarray]]:
        order = np.frombuffer(memory.order, dtype=self._order.dtype)
        given = [input_places(name, memory.read[name].shape[-1], order) for name in pattern.fields]
        taken = [result_places(x, x.length(self._machine.model), order) for x in task.results]
        if len(pattern.places) >= _ORDERS:
            pattern.places.clear()
        made = tuple([in_lanes(x, self._machine) for x in some] for some in (given, taken))
        return pattern.places.setdefault(memory.order, made)

    @staticmethod
    def _told(pieces: np.ndarray, arrays: list[np.ndarray], places: list[np.ndarray]) -> np.ndarray:
        """Structs ``Piece`` with other addresses."""
        pieces = pieces.copy()
        for i, (array, place) in enumerate(zip(arrays, places, strict=True)):
            if array.size:
                pieces["numbers"]["data"][i] = array.ctypes.data
                pieces["place"]["data"][i] = place.ctypes.data
        return pieces


class Memory:
    """The memory of a state for one configuration, and its launches.

    Nothing here refers to objects of the user, such as links, or to the robot; see :class:`Store`.

    Attributes:
        order: of each dof, the place of its joint in the state, as bytes.
        given: the inputs by name.
        read: the same inputs and the weights of links by the names that kernels have for them.
        runs: by task, a function that launches it, and the array of its result.
        links: the three links that kernels read.
        lanes: what kernels work in; None until something is computed.
        kept: what launches know addresses of.
    """

    __slots__ = ("_numbers", "given", "kept", "lanes", "links", "order", "read", "runs", "view")

    def __init__(self, order: bytes, dofs: int, links: int):
        # one block, so that one call clears it
        ends = [0, dofs, 2 * dofs, 3 * dofs, 4 * dofs, 4 * dofs + 6, 4 * dofs + 12, 4 * dofs + 12 + links]
        self._numbers = x = np.zeros(ends[-1])
        q, v, acceleration, tau, twist, base_acceleration, weights = (
            x[:dofs], x[dofs : ends[2]], x[ends[2] : ends[3]], x[ends[3] : ends[4]], x[ends[4] : ends[5]], x[ends[5] : ends[6]],
            x[ends[6] : ends[7]],
        )  # fmt: skip
        self.given = {
            "q": q, "qdot": v, "qddot": acceleration, "V0": twist, "Vdot0": base_acceleration, "tau": tau,
        }  # fmt: skip
        self.read = {
            "q": q, "v": v, "acceleration": acceleration, "base_twist": twist, "base_acceleration": base_acceleration, "weights": weights,
        }  # fmt: skip
        self.order, self.lanes, self.links, self.view = order, None, None, None
        self.runs: dict = {}
        self.kept: list = []

    def prepare(self, patterns: Patterns) -> None:
        """Makes the memory that kernels work in."""
        self.links = np.zeros(3, dtype=np.int32)
        # faster than the array
        self.view = memoryview(self.links)
        self.lanes = patterns.lanes()

    def clear(self) -> None:
        """Sets all inputs to zero."""
        self._numbers.fill(0.0)


class Store:
    """Memory of states that are gone, for the next states of a robot. Threads may use it at the same time.

    The memory of a state comes back when nobody can use the state any more. The collector of cycles calls ``__del__`` of all objects that
    are in a cycle before it knows whether one of these makes them reachable again, and ``__del__`` of others may use a state later. So the
    state holds an array of NumPy, of which the collector knows nothing, and which is freed with the state. No code of Python runs then,
    but a method of a deque: signal handlers run between operations of Python, and Python ignores errors of handlers that interrupt a
    ``__del__`` or a callback. A handler that interrupts itself without end would never come to an end.
    """

    __slots__ = ("__weakref__", "_given", "_idle", "_lent", "_returned")

    def __init__(self):
        self._lent: dict[int, _Loan] = {}
        self._returned: deque[_Loan] = deque()
        self._idle: dict[bytes, list[Memory]] = {}
        # about how many
        self._given = 0

    def lend(self, memory: Memory) -> np.ndarray:
        """What a state holds as long as it uses memory, which comes back then."""
        held = np.empty(())
        loan = _Loan(held, self._returned.append, memory)
        self._lent[id(loan)] = loan
        return held

    def collect(self) -> None:
        """Takes back the memory of states that are gone."""
        while self._returned:
            try:
                loan = self._returned.popleft()
            except IndexError:
                # another thread took it
                break
            self._lent.pop(id(loan), None)
            self.give(loan.memory)

    def take(self, order: bytes) -> Memory | None:
        """Memory for an order of joints, which nobody else has; None if there is none."""
        if self._returned:
            self.collect()
        idle = self._idle.get(order)
        if idle:
            try:
                # that of the last state may be in a cache of the processor
                memory = idle.pop()
                self._given -= 1
                return memory
            except IndexError:
                # another thread took it
                pass
        return None

    def give(self, memory: Memory) -> None:
        """Keeps memory that nobody uses any more, and forgets some if there is too much."""
        idle = self._idle.get(memory.order)
        if idle is None:
            if len(self._idle) >= _ORDERS:
                # a copy: the collector may give memory meanwhile
                for oldest in [*self._idle][:1]:
                    self._idle.pop(oldest, None)
            idle = self._idle.setdefault(memory.order, [])
        idle.append(memory)
        self._given += 1
        if self._given * memory.lanes.capacity > _IDLE:
            known = list(self._idle.values())
            # exact again: memory may have gone with its order
            self._given = sum(map(len, known))
            if self._given * memory.lanes.capacity > _IDLE:
                # the oldest one of the order that has most
                with suppress(IndexError):
                    max(known, key=len).pop(0)
                    self._given -= 1


class _Loan(weakref.ref):
    """Memory of a state, and a reference to what the state holds as long as it uses the memory."""

    __slots__ = ("memory",)

    def __new__(cls, held: np.ndarray, returned, memory: Memory):
        return super().__new__(cls, held, returned)

    def __init__(self, held: np.ndarray, returned, memory: Memory):
        super().__init__(held, returned)
        self.memory = memory
