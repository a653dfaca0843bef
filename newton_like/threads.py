"""CPU threads that share the blocks of a launch. Warp releases the GIL during a launch. Results do not depend on the number of
threads."""

from __future__ import annotations

import ctypes
import itertools
import os
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, partial, wraps
from itertools import pairwise
from threading import RLock

import numpy as np
import warp as wp

SHARES_PER_THREAD = 4
"""Number of shares per thread, above 1 so that a delayed thread does not delay the others."""


_COMPILING = RLock()


def compiling(function):
    """Decorator of functions that make or load kernels: one thread of the process at a time runs them.

    Warp does not protect the making and the loading of a kernel from other threads. A kernel that two threads load at once is loaded twice,
    and the code of the first thread is freed.
    """

    @wraps(function)
    def alone(*args, **kwargs):
        with _COMPILING:
            return function(*args, **kwargs)

    return alone


def worker_count(threads: int | None = None) -> int:
    """Number of CPU threads of a launch: `threads`, else the environment variable ``NEWTON_LIKE_THREADS``, else the number of cores.

    Raises:
        ValueError: a number below 1.
    """
    chosen = threads if threads is not None else os.environ.get("NEWTON_LIKE_THREADS")
    if chosen is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not str(chosen).isdigit() or int(chosen) < 1:
        raise ValueError(f"number of threads {chosen!r} must be at least 1; see NEWTON_LIKE_THREADS")
    return int(chosen)


class Command:
    """A launch that Warp has recorded (``record_cmd=True``). On a CPU its arguments are packed once, and not for every launch.

    On GPUs Warp launches the kernel.
    """

    def __init__(self, recorded: wp.Launch):
        self._recorded, self._ready, self._packed = recorded, None, None
        self._pack()

    def _pack(self) -> None:
        recorded = self._recorded
        if recorded.device.is_cpu and not recorded.adjoint and recorded.block_dim <= 1:
            bounds, *values = recorded.params
            labels = tuple(argument.label for argument in recorded.kernel.adj.args)
            arguments = _arguments(labels, tuple(map(type, values)))(*values)
            self._ready = partial(recorded.hooks.forward, ctypes.byref(bounds), ctypes.byref(arguments))
            self._packed = recorded.hooks.forward, bounds, arguments

    def packed(self) -> tuple:
        """On a CPU: the function that launches, which takes the addresses of two structs, and the structs: bounds and arguments."""
        return self._packed

    def set_param_by_name(self, name: str, value) -> None:
        """Changes an argument."""
        self._recorded.set_param_by_name(name, value)
        self._pack()

    def launch(self) -> None:
        """Runs the kernel."""
        if self._ready is None:
            self._recorded.launch()
        else:
            self._ready()

    def launch_in_graph(self) -> None:
        """Runs the kernel, and records the launch in the graph that is being captured."""
        self._recorded.launch()


class Series:
    """Commands that are launched one after the other, as one command.

    A thread launches all of them before it takes its next share, while the worlds of the share are in its cache.
    """

    def __init__(self, commands: list[Command]):
        self._commands = commands

    def set_param_by_name(self, name: str, value) -> None:
        """Changes an argument of all commands."""
        for command in set(self._commands):
            command.set_param_by_name(name, value)

    def launch(self) -> None:
        """Runs the kernels."""
        for command in self._commands:
            command.launch()

    def launch_in_graph(self) -> None:
        """Runs the kernels, and records the launches in the graph that is being captured."""
        for command in self._commands:
            command.launch_in_graph()


_COMPILERS = 4
"""Largest number of threads that compile. Warp precompiles its header for each of them, which takes seconds."""


@compiling
def load_together(kernels: list, device, threads: int | None = None) -> None:
    """Compiles and loads kernels side by side, before launches would load them one after the other. For GPUs nothing is done.

    Args:
        kernels: the kernels, those first that take the longest time; kernels of one module count once.
        device: device of their launches.
        threads: largest number of threads, see :func:`worker_count`.

    Raises:
        Exception: of Warp, if it cannot compile a kernel.
    """
    modules = list(dict.fromkeys(kernel.module for kernel in kernels))
    threads = min(worker_count(threads), len(modules), _COMPILERS)
    if not device.is_cpu or threads < 2:
        return
    left = itertools.count()

    def work():
        while (i := next(left)) < len(modules):
            wp.force_load(device, [modules[i]], max_workers=0)

    futures = [_pool(threads - 1).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        wait(futures)
    for future in futures:
        future.result()


@cache
def _arguments(labels: tuple, kinds: tuple) -> type:
    return type("Arguments", (ctypes.Structure,), {"_fields_": list(zip(labels, kinds, strict=True))})


def in_series(workers: list[list], later: list[list], count: int) -> list[list]:
    """Commands for :func:`run_shared` that launch `count` commands of each share in turn: that of `workers`, then that of `later`."""
    return [
        [Series([command, *[other] * (count - 1)]) for command, other in zip(*both, strict=True)]
        for both in zip(workers, later, strict=True)
    ]


@cache
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix="newton_like")


def run_shared(workers: list[list]) -> None:
    """Launches the shares on several threads, each share once. A free thread takes the next share.

    If the operating system starts a thread late, other threads compute its shares.

    Args:
        workers: for every worker, the commands of all shares, on the worker's own memory if they need memory.
    """
    if len(workers) == 1:
        for command in workers[0]:
            command.launch()
        return
    shares, left = len(workers[0]), itertools.count()

    def work(commands):
        while (i := next(left)) < shares:
            commands[i].launch()

    futures = [_pool(len(workers) - 1).submit(work, commands) for commands in workers[1:]]
    try:
        work(workers[0])
    finally:
        for future in [future for future in futures if not future.cancel()]:
            future.result()


def cut(blocks: int, threads: int, each: int = SHARES_PER_THREAD) -> list[tuple[int, int]]:
    """First block and number of blocks of each share, with `each` shares per thread."""
    if threads == 1:
        return [(0, blocks)] if blocks else []
    ends = np.linspace(0, blocks, min(each * threads, blocks) + 1).astype(int)
    return [(int(a), int(b - a)) for a, b in pairwise(ends)]


WORTHWHILE = 10_000
"""Number of small pieces of work (a body, a joint) for which another thread saves time: about 200 microseconds."""


def shared_out(record, size: int, pieces: int, device) -> list[list[Command]]:
    """Recorded launches for `run_shared`: one, or several shares if there is enough work.

    Args:
        record: ``record(first, count)`` records a launch of the kernel's threads from ``first`` on.
        size: total number of the kernel's threads.
        pieces: number of pieces of work.
        device: device of the launch.
    """
    threads = 1 if device.is_cuda or pieces < WORTHWHILE else worker_count()
    return [[Command(record(first, count)) for first, count in cut(size, threads, 1)]] * threads


def launch_shared(kernel, size: int, pieces: int, inputs: list, outputs: list, device) -> None:
    """Launches a kernel once, on several threads of a CPU if there is enough work. Its first argument is the number that its thread indices
    are added to.

    Args:
        kernel: the kernel.
        size: total number of the kernel's threads.
        pieces: number of pieces of work.
        inputs, outputs: its other arguments.
        device: device of the launch.
    """
    if pieces < WORTHWHILE:
        wp.launch(kernel, dim=size, inputs=[0, *inputs], outputs=outputs, device=device)
    else:
        KeptLaunch()(kernel, size, pieces, inputs, outputs, device)


class KeptLaunch:
    """Launches a kernel as :func:`launch_shared` does, and keeps the recorded launches: where only arrays differ from those of the launch
    before, these are exchanged."""

    def __init__(self):
        self._what, self._values, self._workers = None, [], []

    def __call__(self, kernel, size: int, pieces: int, inputs: list, outputs: list, device) -> None:
        if device.is_cuda or device.is_capturing:
            wp.launch(kernel, dim=size, inputs=[0, *inputs], outputs=outputs, device=device)
            return
        what, values = (kernel, size, worker_count()), [*inputs, *outputs]
        if what != self._what:

            def record(first: int, count: int) -> wp.Launch:
                return wp.launch(
                    kernel, dim=count, inputs=[first, *inputs], outputs=outputs, device=device, record_cmd=True
                )

            self._what, self._workers = what, shared_out(record, size, pieces, device)
        else:
            labels = kernel.adj.args[1:]
            for label, value, before in zip(labels, values, self._values, strict=True):
                if value is not before:
                    for command in self._workers[0]:
                        command.set_param_by_name(label.label, value)
        self._values = values
        run_shared(self._workers)

    def repeat(self) -> None:
        """Launches the kernel with the arrays of the launch before."""
        run_shared(self._workers)
