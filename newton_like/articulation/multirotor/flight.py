"""Launches of the kernel of multirotors over the instances of a model."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import warp as wp

from newton_like.arrays import flat, is_captured, unrecorded
from newton_like.articulation.multirotor.parameters import Parameters
from newton_like.articulation.multirotor.specialised import specialised_kernel
from newton_like.kernels.articulation.multirotor.records import (
    ALLOCATE,
    BOUND,
    CONTROL,
    FORCES,
    MOTORS,
    RESTART,
    ROTOR,
    VEHICLE,
)
from newton_like.kernels.articulation.multirotor.step import flight_kernel, flight_namespace
from newton_like.programs.device import interleaved, lane_width
from newton_like.programs.recording import Recording, Recordings
from newton_like.threads import Command, cut, worker_count

_RECORDED = 32
_BLOCKS_A_THREAD = 8
"""Fewer blocks for each thread are launched on fewer threads."""

WORTHWHILE = 256
"""Instances from which on code is compiled for the vehicle, unless something else is asked for: compiling takes seconds."""

COMMAND = 11
"""Most numbers of a command."""


class Flight:
    """Rotors, controller and forces of all instances, in the memory that the kernel reads and writes.

    Args:
        model: the model.
        bodies: of each instance the bodies that the kernel knows, the root first, ``[count, bodies]``.
        body: for each rotor its body among these.
        fast: for each rotor whether its state is its speed, and not its thrust.
        evaluator: ``"general"``: one kernel for all vehicles; ``"specialised"``: code for this vehicle; ``"auto"``: the second for many
            instances on a CPU. Both give the same bits there.

    Attributes:
        speed: speeds [rev/s], or thrusts [N] of rotors whose state is the thrust, ``[count, rotors]``.
        target, computed, applied: thrusts [N], ``[count, rotors]``.
        wrench: that the controller asks for, ``[count, 6]``.
        wind: velocity of the air in the world [m/s], ``[count, 3]``.
        command: of the controller, ``[count, COMMAND]``, contiguous for each length that is used.
        parameters: the :class:`newton_like.articulation.multirotor.parameters.Parameters`.

    Raises:
        ValueError: bodies lie differently in different worlds.
    """

    def __init__(self, model, bodies: np.ndarray, body: list[int], fast: list[bool], evaluator: str = "auto"):
        self.model, self.device, self.count, self.rotors = model, model.device, len(bodies), len(body)
        self.m = flight_namespace(lane_width(model.device, model.dtype), model.dtype)
        self._first = np.asarray(bodies)[:, 0].astype(np.int64)
        apart = np.asarray(bodies) - self._first[:, None]
        strides = np.diff(self._first)
        if (apart != apart[0]).any() or (strides != strides[:1]).any():
            raise ValueError(
                "the bodies of multirotors must be evenly spaced; make the worlds with ModelBuilder.replicate"
            )
        self._apart, self._stride = apart[0], int(strides[0]) if len(strides) else 0
        n = self.rotors
        self.parameters = Parameters(self.m, self.count, parameter_count(n), self.device)
        self._specialised = evaluator == "specialised" or (evaluator == "auto" and self.count >= WORTHWHILE)
        self._specialised &= self.m.width > 1
        self._kernels: dict = {}
        self._lists = {"fast": [int(x) for x in fast], "body": [int(x) for x in body]}
        self._ints = {
            "fast": self._int_array(np.asarray(fast, dtype=np.int32)),
            "body": self._int_array(np.asarray(body, dtype=np.int32)),
        }
        self.speed, self.target, self.computed, self.applied = (self._numbers(n) for _ in range(4))
        self.wrench, self.wind = self._numbers(6), self._numbers(3)
        self._recorded, self._moved = Recordings(_RECORDED, self.device), 0
        self._none = wp.zeros(0, dtype=wp.bool, device=self.device)
        self._memory: list | None = None
        self.rows, self._size = self._lay_out()

    def _int_array(self, values) -> wp.array:
        values = np.asarray(values, dtype=np.int32).ravel()
        return wp.array(values if values.size else np.zeros(1, np.int32), dtype=wp.int32, device=self.device)

    def _numbers(self, n: int) -> wp.array:
        return wp.zeros((self.count, n), dtype=self.model.dtype, device=self.device)

    def _lay_out(self) -> tuple[dict[str, int], int]:
        k, n = len(self._apart), self.rotors
        sizes = {
            "pose": 7 * k, "twist": 6 * k, "speed": n, "target": n, "command": COMMAND, "wind": 3, "force": 6 * k,
            "wrench": 6, "computed": n, "applied": n, "work": n * n + 4 * n,
        }  # fmt: skip
        rows, at = {}, 0
        for name, size in sizes.items():
            rows[name], at = at, at + size
        # the last square of numbers that is brought may be wider than its row
        return rows, at + self.m.width

    def run(self, state, stages: int, *, kind: int = 0, command: wp.array | None = None, air: int = 0, full: bool = False,
            tilted: bool = False, rounds: int = 0, jointed: bool = False, added: bool = True, defaults: wp.array | None = None,
            mask: wp.array | None = None) -> None:  # fmt: skip
        """Launches stages of the kernel.

        Args:
            state: poses and velocities of bodies, and their forces; None: not needed.
            stages: see :mod:`newton_like.kernels.articulation.multirotor.records`.
            kind, command: controller, and its command ``[count, n]``.
            air, full, tilted, rounds, jointed: options of the struct ``Flight``.
            added: whether wrenches are added to the forces of the state; otherwise they replace them.
            defaults: speeds of rotors that start again, ``[count, rotors]``.
            mask: bools of the instances whose results are stored, ``[count]``; None: all.
        """
        if is_captured(self.device):
            self.parameters.spread()
        self.upload()
        columns = 0 if command is None else command.shape[1]
        places = self._places(state, stages, command, air, added, defaults)
        arrays = [array for _, _, array in places]
        options = (stages, kind, columns, air, int(full), int(tilted), rounds, int(jointed))

        def record() -> Recording:
            with unrecorded(self.device, "a multirotor"):
                return self._record(options, places, mask)

        key = (*options, added, None if mask is None else mask.ptr)
        self._recorded.of(key, arrays, record).run_on(arrays)

    def upload(self) -> None:
        """Copies parameters to the device, if they changed, and warns if graphs do not see the change."""
        self.parameters.upload()
        if self._moved != self.parameters.moved:
            if self._recorded.outdate(moved=True):
                warnings.warn(
                    "graphs that were captured earlier do not see edits of multirotors: capture them again",
                    stacklevel=2,
                )
            self._moved = self.parameters.moved

    def _places(self, state, stages: int, command, air: int, added: bool, defaults) -> list[tuple]:
        """Rows of memory, whether they are brought or taken, and arrays."""
        posed = stages & (CONTROL | FORCES)
        new = stages & (MOTORS | RESTART)
        moving = stages & CONTROL or (stages & FORCES and air)
        found = [
            ("pose", False, state.body_q if posed else None),
            ("twist", False, state.body_qd if moving else None),
            ("speed", False, defaults if stages & RESTART else self.speed if stages & (MOTORS | FORCES) else None),
            ("target", False, self.target if stages & MOTORS and not stages & ALLOCATE else None),
            ("wrench", False, self.wrench if stages & ALLOCATE and not stages & CONTROL else None),
            ("command", False, command if stages & CONTROL else None),
            ("wind", False, self.wind if stages & FORCES and air else None),
            ("applied", False, self.applied if stages & FORCES and not stages & MOTORS else None),
            ("force", False, state.body_f if stages & FORCES and added else None),
            ("wrench", True, self.wrench if stages & CONTROL and not stages & MOTORS else None),
            ("target", True, self.target if stages & (ALLOCATE | BOUND | RESTART) else None),
            ("speed", True, self.speed if new else None),
            ("computed", True, self.computed if new else None),
            ("applied", True, self.applied if new else None),
            ("force", True, state.body_f if stages & FORCES else None),
        ]
        if stages & FORCES and not added:
            found.insert(0, ("force", False, self._zeros()))
        return [each for each in found if each[2] is not None]

    def _zeros(self) -> wp.array:
        if not hasattr(self, "_nothing"):
            self._nothing = wp.zeros(6 * len(self._apart), dtype=self.model.dtype, device=self.device)
        return self._nothing

    def _piece(self, row: str, array: wp.array):
        piece = self.m.Piece()
        piece.row, piece.numbers = self.rows[row], flat(array, self.model.dtype)
        piece.place = self._int_array([0])
        piece.part = self._int_array([0])
        piece.parts = 1
        unit = {"pose": 7, "twist": 6, "force": 6}.get(row)
        if unit is None:
            piece.size = piece.stride = array.shape[1]
        elif array is getattr(self, "_nothing", None):
            piece.size, piece.stride = array.size, 0
        else:
            piece.size, piece.parts = unit, len(self._apart)
            piece.start, piece.stride = unit * int(self._first[0]), unit * self._stride
            piece.part = self._int_array(unit * self._apart)
        return piece

    def _kernel(self, options: tuple, results: list):
        stages = options[0]
        if not self._specialised or stages & (BOUND | RESTART):
            return flight_kernel(self.m.width, self.model.dtype)
        outputs = [(row, 6 * len(self._apart) if row == "force" else array.shape[1]) for row, array in results]
        held = self.parameters.hold()
        key = (options, tuple(outputs), self.parameters.moved, held.tobytes())
        if key not in self._kernels:
            names = ("stages", "kind", "columns", "air", "full", "tilted", "rounds", "jointed")
            flight = SimpleNamespace(
                rotors=self.rotors,
                bodies=len(self._apart),
                **dict(zip(names, options, strict=True)),
                **self._lists,
                **self.rows,
            )
            self._kernels[key] = specialised_kernel(self.m, self.rows, flight, self.parameters, held, outputs)
        return self._kernels[key]

    def _record(self, options: tuple, places: list, mask: wp.array | None) -> Recording:
        m, width = self.m, self.m.width
        F = m.Flight()
        F.rotors, F.bodies = self.rotors, len(self._apart)
        F.stages, F.kind, F.columns, F.air, F.full, F.tilted, F.rounds, F.jointed = options
        F.fast, F.body = self._ints["fast"], self._ints["body"]
        for name, at in self.rows.items():
            setattr(F, name, at)
        B = m.Batch()
        B.count, B.masked, B.start, B.stride = self.count, int(mask is not None), 0, 1
        chosen = self._none if mask is None else mask
        both = []
        for taken in (False, True):
            structs = [self._piece(row, array) for row, out, array in places if out is taken]
            array = wp.array(structs or [m.Piece()], dtype=m.Piece, device=self.device)
            both.append((structs, array))
        blocks, cuda = -(-self.count // width), interleaved(self.device)
        kernel = self._kernel(options, [(row, array) for row, out, array in places if out])
        workers = 1 if cuda else min(worker_count(), max(blocks // _BLOCKS_A_THREAD, 1))
        columns = blocks if cuda else 1
        if self._memory is None or len(self._memory) != workers:
            self._memory = [wp.zeros((self._size, columns), dtype=m.lane, device=self.device) for _ in range(workers)]
        after = [x for structs, array in both for x in (len(structs), array)]

        def command(first: int, n: int, i: int) -> Command:
            launch = wp.launch(
                kernel,
                dim=n if cuda else 1,
                inputs=[
                    first,
                    1 if cuda else n,
                    columns,
                    B,
                    F,
                    self.parameters.struct,
                    chosen,
                    self._memory[i],
                    *after,
                ],
                device=self.device,
                record_cmd=True,
            )
            return Command(launch)

        launches = [[[command(first, n, i) for first, n in cut(blocks, workers)] for i in range(workers)]]
        targets = None
        if not interleaved(self.device):
            targets = [[array.numpy()["numbers"]["data"] for _, array in both]]
        arrays = [array for _, out, array in places if not out] + [array for _, out, array in places if out]
        return Recording(launches, arrays, (both, F, B, self.parameters.struct, self._memory, chosen), targets)


def parameter_count(n: int) -> int:
    """Number of parameters of a multirotor of n rotors."""
    return VEHICLE + (ROTOR + 3) * n + 6 * n + n * n + 6 * n
