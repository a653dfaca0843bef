"""The kernel of multirotors: control, allocation, motors and forces of all worlds in one launch."""

from functools import cache
from types import SimpleNamespace

import warp as wp
from newton_like.kernels.articulation.multirotor.allocation import control_allocation_program
from newton_like.kernels.articulation.multirotor.forces import rotor_force_program
from newton_like.kernels.articulation.multirotor.lee import lee_program
from newton_like.kernels.articulation.multirotor.motors import motor_program
from newton_like.kernels.articulation.multirotor.records import (
    ALLOCATE,
    BOUND,
    CONTROL,
    FORCES,
    MOTORS,
    RESTART,
    flight_structs,
)
from newton_like.kernels.lanes import extended, lane_math
from newton_like.kernels.pieces import piece_moves
from newton_like.kernels.simd import GENERAL_FLAGS, module_options
from newton_like.kernels.spatial import spatial_algebra

PROGRAMS = (
    spatial_algebra,
    flight_structs,
    motor_program,
    rotor_force_program,
    lee_program,
    control_allocation_program,
)


def run_stages(m: SimpleNamespace, b, t, F, V, mem) -> None:
    """The stages of a flight one after the other, for a namespace of symbolic numbers."""
    for stage, program in (
        (CONTROL, m.steer),
        (ALLOCATE, m.allocate),
        (BOUND, m.allocate_bounded),
        (MOTORS, m.spin),
        (FORCES, m.push),
        (RESTART, m.restart),
    ):
        if F.stages & stage:
            program(b, t, F, V, mem)


@cache
def flight_namespace(width: int, real) -> SimpleNamespace:
    """The programs of multirotors for one lane width and scalar type."""
    return piece_moves(extended(lane_math(width, real), PROGRAMS))


def emitted_kernel(m: SimpleNamespace, code: str, flags: str):
    """The kernel of C++ code for one vehicle, with the arguments of :func:`flight_kernel`."""

    @wp.func_native(code)
    def program(b: int, t: int, P: m.Vehicle, mem: m.memory, pieces: wp.array[m.Piece]): ...

    @wp.kernel(module="unique", enable_backward=False, module_options=module_options(flags, m.width))
    def fly_specialised(
        first: int,
        each: int,
        columns: int,
        B: m.Batch,
        F: m.Flight,
        V: m.Vehicle,
        mask: wp.array[bool],
        mem: m.memory,
        # in:
        inputs: int,
        pieces_in: wp.array[m.Piece],
        # out:
        outputs: int,
        pieces_out: wp.array[m.Piece],
    ):
        t = wp.tid() % columns
        start = first + wp.tid() * each
        for b in range(start, start + each):
            m.bring(b, t, B, 0, inputs, pieces_in, mem)
            program(b, t, V, mem, pieces_out)
            m.take(b, t, B, outputs, pieces_out, mask, mem)

    return fly_specialised


@cache
def flight_kernel(width: int, real):
    """The kernel of all multirotors. Thread i computes blocks ``first + i * each`` to ``first + (i + 1) * each - 1``."""
    m = flight_namespace(width, real)
    options = module_options(GENERAL_FLAGS, width)

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def fly(
        first: int,
        each: int,
        columns: int,
        B: m.Batch,
        F: m.Flight,
        V: m.Vehicle,
        mask: wp.array[bool],
        mem: m.memory,
        # in:
        inputs: int,
        pieces_in: wp.array[m.Piece],
        # out:
        outputs: int,
        pieces_out: wp.array[m.Piece],
    ):
        t = wp.tid() % columns
        start = first + wp.tid() * each
        for b in range(start, start + each):
            if m.wanted(b, B, mask):
                m.bring(b, t, B, 0, inputs, pieces_in, mem)
                if (F.stages & CONTROL) != 0:
                    m.steer(b, t, F, V, mem)
                if (F.stages & ALLOCATE) != 0:
                    m.allocate(b, t, F, V, mem)
                if (F.stages & BOUND) != 0:
                    m.allocate_bounded(b, t, F, V, mem)
                if (F.stages & MOTORS) != 0:
                    m.spin(b, t, F, V, mem)
                if (F.stages & FORCES) != 0:
                    m.push(b, t, F, V, mem)
                if (F.stages & RESTART) != 0:
                    m.restart(b, t, F, V, mem)
                m.take(b, t, B, outputs, pieces_out, mask, mem)

    return fly
