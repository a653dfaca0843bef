"""Launching batched kernels: lane widths, blocks of worlds, workers and their memory.

On a CPU a batch is cut into blocks of ``width`` articulations; the blocks are shared out to a few Python threads (Warp releases
the GIL inside a launch), each with memory of its own that stays in its cache. On a GPU there is one articulation a thread and
memory is laid out so that neighbouring threads read neighbouring words. Results do not depend on the number of threads.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import pairwise

import numpy as np
import warp as wp

WIDTHS = (1, 8, 16)

BLOCKS_PER_THREAD = 8
"""A batch with fewer blocks for each thread is launched on fewer threads, unless their number is asked for."""

BLOCK_DIM = 32
"""GPU threads of a block: a few thousand worlds shall reach all multiprocessors of a GPU."""

PIECES_PER_THREAD = 4
"""More pieces than threads, so that a thread which is held up does not hold up the others."""


@cache
def _cpu_has_avx512() -> bool:
    try:
        with open("/proc/cpuinfo") as info:
            return "avx512f" in info.read()
    except OSError:
        return False


def lane_width(device=None, dtype=wp.float32, width: int | None = None) -> int:
    """The number of worlds a kernel advances at once.

    Args:
        device: 1 on CUDA devices.
        dtype: ``wp.float32`` or ``wp.float64``.
        width: 1, 8 or 16 to choose it; otherwise the environment variable ``NEWTON_LIKE_WIDTH``, otherwise what fills one or two
            vector registers of this processor.

    Raises:
        ValueError: any other width, or a width other than 1 on a CUDA device.
    """
    cuda = wp.get_device(device).is_cuda
    chosen = width if width is not None else os.environ.get("NEWTON_LIKE_WIDTH")
    if chosen is None:
        if cuda or platform.machine().lower() not in ("x86_64", "amd64"):
            return 1 if cuda else 8
        return 16 if dtype is wp.float32 and _cpu_has_avx512() else 8
    if str(chosen) not in map(str, WIDTHS):
        raise ValueError(f"lane width {chosen!r} must be one of {WIDTHS}; see NEWTON_LIKE_WIDTH")
    if cuda:
        if width not in (None, 1):
            raise ValueError(f"lane width {width} on {device}: CUDA kernels advance one world a thread; use 1")
        return 1
    return int(chosen)


def worker_count(threads: int | None = None) -> int:
    """How many CPU threads share a launch: `threads`, else the environment variable ``NEWTON_LIKE_THREADS``, else all cores.

    Raises:
        ValueError: fewer than one.
    """
    chosen = threads if threads is not None else os.environ.get("NEWTON_LIKE_THREADS")
    if chosen is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not str(chosen).isdigit() or int(chosen) < 1:
        raise ValueError(f"number of threads {chosen!r} must be at least 1; see NEWTON_LIKE_THREADS")
    return int(chosen)


class Command:
    """A launch that Warp has recorded (``record_cmd=True``), whose arguments are packed once and not at every launch on a CPU.

    On GPUs and in captures it is Warp that launches.
    """

    def __init__(self, recorded: wp.Launch):
        self._recorded, self._ready = recorded, None
        self._pack()

    def _pack(self) -> None:
        recorded = self._recorded
        if recorded.device.is_cpu and not recorded.adjoint and recorded.block_dim <= 1:
            bounds, *values = recorded.params
            labels = tuple(argument.label for argument in recorded.kernel.adj.args)
            arguments = _arguments(labels, tuple(map(type, values)))(*values)
            self._ready = partial(recorded.hooks.forward, ctypes.byref(bounds), ctypes.byref(arguments))

    def set_param_by_name(self, name: str, value) -> None:
        """Changes an argument."""
        self._recorded.set_param_by_name(name, value)
        self._pack()

    def launch(self) -> None:
        """Runs the kernel."""
        if self._ready is None or self._recorded.device.is_capturing:
            self._recorded.launch()
        else:
            self._ready()


@cache
def _arguments(labels: tuple, kinds: tuple) -> type:
    return type("Arguments", (ctypes.Structure,), {"_fields_": list(zip(labels, kinds, strict=True))})


@cache
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix="newton_like")


def run_shared(workers: list[list]) -> None:
    """Launches pieces of work on several threads, each piece once: whoever is free takes the next one.

    A thread that the operating system is late to start is not waited for: others do its share.

    Args:
        workers: for every worker the same pieces, recorded on its own memory.
    """
    if len(workers) == 1:
        for command in workers[0]:
            command.launch()
        return
    pieces, left = len(workers[0]), itertools.count()

    def work(commands):
        while (i := next(left)) < pieces:
            commands[i].launch()

    futures = [_pool(len(workers) - 1).submit(work, commands) for commands in workers[1:]]
    work(workers[0])
    for future in futures:
        if not future.cancel():
            future.result()


def active_tape() -> wp.Tape | None:
    """The tape that records now. Warp has no public name for it."""
    from warp._src.context import runtime

    return runtime.tape if runtime is not None else None


def flat(array: wp.array, dtype) -> wp.array:
    """The numbers of an array of scalars, vectors or transforms as one row, in place.

    Raises:
        ValueError: the array is not contiguous.
    """
    if array.dtype is dtype and array.ndim == 1 and array.is_contiguous:
        return array
    if not array.is_contiguous:
        raise ValueError("arrays must be contiguous; pass array.contiguous()")
    size = array.size * wp.types.type_size_in_bytes(array.dtype) // wp.types.type_size_in_bytes(dtype)
    gradient = None
    if array.requires_grad and array.grad is not None:
        gradient = wp.array(ptr=array.grad.ptr, dtype=dtype, shape=(size,), device=array.device, copy=False)
    return wp.array(ptr=array.ptr, dtype=dtype, shape=(size,), device=array.device, copy=False, grad=gradient)


def check_recorded(device, what: str) -> None:
    """Called before what a CUDA graph cannot record is done: the first call with some arrays compiles and copies from the host.

    Raises:
        RuntimeError: a CUDA graph is being captured.
    """
    if device.is_cuda and device.is_capturing:
        raise RuntimeError(f"{what}: call it once with the same arrays before a CUDA graph is captured")


def interleaved(device) -> bool:
    """Whether there is one articulation a thread, and neighbouring threads read neighbouring words: on CUDA devices."""
    return device.is_cuda


def as_numbers(lanes: wp.array, dtype, width: int) -> wp.array:
    """An array ``[blocks, n]`` of lanes as numbers ``[blocks, n, width]``, in place."""
    size = wp.types.type_size_in_bytes(dtype)
    return wp.array(
        ptr=lanes.ptr,
        dtype=dtype,
        shape=(*lanes.shape, width),
        strides=(*lanes.strides, size),
        device=lanes.device,
        copy=False,
    )


def cut(blocks: int, threads: int) -> list[tuple[int, int]]:
    """First block and number of blocks of pieces of work for some threads: a few more than threads."""
    if threads == 1:
        return [(0, blocks)] if blocks else []
    ends = np.linspace(0, blocks, min(PIECES_PER_THREAD * threads, blocks) + 1).astype(int)
    return [(int(a), int(b - a)) for a, b in pairwise(ends)]


class Workspace:
    """A batch, ready for kernels: its tree, parameters and layout as Warp structs, and the workers' memory.

    Attributes:
        m: the programs' namespace.
        T, P, L: the structs ``Tree``, ``Params`` and ``Layout``.
        memory: one array of lanes a worker (CPU), or one for all threads (CUDA).
        blocks: number of blocks.
    """

    def __init__(
        self, m, template, count: int, parameters, contacts, layout: dict[str, int], device, threads: int | None = None
    ):
        self.m, self.template, self.count, self.device = m, template, count, wp.get_device(device)
        self.blocks = -(-count // m.width)
        self.contacts = contacts
        self.layout = layout
        self.T = self._tree(parameters)
        self.L = m.Layout()
        for name, at in layout.items():
            setattr(self.L, name, at)
        self.P = m.Params()
        self.set_parameters(parameters)
        if interleaved(self.device):
            self.workers = 1
            rows = self.blocks
        else:
            # waking a thread costs about as much as stepping a few blocks
            most = self.blocks if threads is not None else self.blocks // BLOCKS_PER_THREAD
            self.workers = min(worker_count(threads), max(most, 1))
            rows = 1
        self.rows = rows
        self.memory = [wp.zeros((layout["size"], rows), dtype=m.lane, device=self.device) for _ in range(self.workers)]

    def _ints(self, values) -> wp.array:
        values = np.asarray(values, dtype=np.int32).ravel()
        return wp.array(values if values.size else np.zeros(1, np.int32), dtype=wp.int32, device=self.device)

    def _tree(self, parameters):
        numbers, arrays = self.numbers, self.arrays = tree_numbers(self.template, parameters, self.contacts)
        T = self.m.Tree()
        for name, value in numbers.items():
            setattr(T, name, int(value))
        for name, values in arrays.items():
            setattr(T, name, self._ints(values))
        return T

    def set_parameters(self, parameters) -> None:
        """Puts new numbers in place of the old ones."""
        self.parameters = parameters
        real = np.float32 if self.m.real is wp.float32 else np.float64
        values = parameters.values.astype(real)
        same = (values == values[:1]).all(axis=0)
        self.uniform_values, self.same = values[0], same
        P, at = self.P, parameters.at
        ends = dict(zip(at, [*list(at.values())[1:], values.shape[1]], strict=True))
        varies = {name: bool((~same[at[name] : ends[name]]).any()) for name in at}
        P.joints_vary = int(varies["joint"] or varies["dof"])
        P.bodies_vary = int(varies["body"])
        P.gains_vary = int(varies["gain"])
        P.colliders_vary = int(varies["collider"] or varies["hull"])
        P.planes_vary = int(varies["plane"])
        P.gravity_vary = int(varies["gravity"])
        for name, start in at.items():
            setattr(P, f"{name}_at", start)
        P.uniform = wp.array(values[0], dtype=self.m.real, device=self.device)
        P.varying = self.lanes(values if any(varies.values()) else values[:1, :0])

    def signature(self) -> bytes:
        """Of the numbers that specialised code holds as constants."""
        return self.same.tobytes() + np.where(self.same, self.uniform_values, 0).tobytes()

    def lanes(self, values: np.ndarray) -> wp.array:
        """Numbers ``[count, n]`` as lanes ``[blocks, n]``; the last block repeats the last articulation."""
        n, width = values.shape[1], self.m.width
        if n == 0:
            return wp.zeros((0, 0), dtype=self.m.lane, device=self.device)
        if width == 1:
            if interleaved(self.device):
                # neighbouring threads read neighbouring words
                columns = wp.array(np.ascontiguousarray(values.T), dtype=self.m.lane, device=self.device)
                return columns.transpose((1, 0))
            return wp.array(np.ascontiguousarray(values), dtype=self.m.lane, device=self.device)
        padded = values[np.minimum(np.arange(self.blocks * width), len(values) - 1)]
        blocked = np.ascontiguousarray(padded.reshape(self.blocks, width, n).transpose(0, 2, 1))
        return wp.array(blocked, dtype=self.m.lane, device=self.device)

    def kept(self, n: int, dtype=None) -> wp.array:
        """Zeros that outlive a step, ``[blocks, n]`` lanes, or another type if asked for."""
        dtype = self.m.lane if dtype is None else dtype
        if interleaved(self.device):
            return wp.zeros((n, self.blocks), dtype=dtype, device=self.device).transpose((1, 0))
        return wp.zeros((self.blocks, n), dtype=dtype, device=self.device)

    def record(self, kernel, inputs) -> list[list]:
        """Recorded launches for `run_shared`. `inputs` is called with the worker's index and gives what follows (first, workers)."""
        return [
            [
                Command(
                    wp.launch(
                        kernel,
                        dim=n,
                        inputs=[first, self.rows, *inputs(i)],
                        device=self.device,
                        record_cmd=True,
                        block_dim=BLOCK_DIM if self.device.is_cuda else None,
                    )
                )
                for first, n in cut(self.blocks, self.workers)
            ]
            for i in range(self.workers)
        ]


def tree_numbers(template, parameters, contacts) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """The fields of a ``Tree``: numbers, and arrays of integers."""
    numbers = dict(
        bodies=template.bodies,
        dofs=template.dofs,
        free_root=template.free_root,
        reach=int(template.depth.max(initial=0)) + 1,
    )
    settings = ("base", "output", "link", "other", "choice", "given_as", "world_wrench", "points", "links", "columns")
    numbers.update(dict.fromkeys((*settings, "offset_size", "components", "sweeps"), 0))
    numbers.update({name: n for name, n in contacts.numbers.items() if name != "given"})
    arrays = {
        name: getattr(template, name)
        for name in (
            "parent", "kind", "q_at", "dof_at", "linear", "angular", "child_at", "child", "leaf", "depth", "row", "chain_at",
            "chain", "dof_q", "body_slot",
        )
    }  # fmt: skip
    arrays["dof_limits"] = parameters.dof_limits
    arrays.update(contacts.arrays)
    return numbers, arrays


def make_layout(template, numbers: dict[str, int]) -> dict[str, int]:
    """Where things lie in a worker's memory, in lanes."""
    n, bodies, span = template.dofs, template.bodies, template.span
    reach = int(template.depth.max(initial=0)) + 1
    candidates, rows, couplings = numbers["candidates"], numbers["contact_rows"], numbers["couplings"]
    sizes = dict(
        q=template.coords, v=n, force=n, target_q=template.coords, target_v=n, act=n, wrench=6 * span,
        origin=3, quat=4 * (bodies + 1), rot=9 * (bodies + 1), pos=3 * (bodies + 1), com=3 * bodies, subspace=6 * n,
        twist=6 * (bodies + 1), drift=6 * (bodies + 1), load=6 * bodies, composite=10 * bodies,
        error=n, strain=n, h=int((template.depth + 1).sum()), root=n, drag=n, push=n, saturated=n, excess=n, over=1,
        bias=n, middle=2 * n, tau=n, u=n, z=n,
        gap=candidates, near=candidates, clear=numbers["colliders"], point=3 * candidates,
        impulse=rows * candidates, coupling_impulse=couplings, dof_impulse=3 * n,
        contact=12 * candidates, contact_y=reach * rows * candidates, material=6, given=numbers.get("given", 0),
        dof_need=n, dof_fresh=n, dof_row=7 * n, dof_y=reach * n,
        coupling_row=4 * couplings, coupling_y=n * couplings, work=1 + n, stash=1 + 4 * n + rows * candidates + couplings,
        tally=3,
        body_q=7 * span, body_qd=6 * span,
    )  # fmt: skip
    return stack(sizes)


def stack(sizes: dict[str, int]) -> dict[str, int]:
    """Where rows of these sizes start that lie one behind the other, and at ``"size"`` how much memory they need."""
    layout, at = {}, 0
    for name, size in sizes.items():
        layout[name] = at
        at += size
    layout["size"] = at + 1
    return layout
