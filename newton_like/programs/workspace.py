"""A batch, ready for kernels: its tree, parameters and layout as Warp structs, and the workers' memory.

On a CPU a batch is cut into blocks of as many articulations as a lane has numbers; the blocks are shared out to a few threads, each with
memory of its own that stays in its cache. On a GPU there is one articulation a thread, and memory is laid out so that neighbouring
threads read neighbouring words.
"""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import warp as wp

from newton_like.arrays import as_numbers, copied_array
from newton_like.compiler.cpp import Emitter
from newton_like.kernels.layout import ROWS, sizes, stack
from newton_like.kernels.tree import PRESCRIBED
from newton_like.programs.device import BLOCK_DIM, interleaved
from newton_like.programs.structs import copied
from newton_like.threads import Command, compiling, cut, worker_count

BLOCKS_PER_THREAD = 8
"""A batch with fewer blocks for each thread is launched on fewer threads, unless their number is asked for."""


class Workspace:
    """A batch, ready for kernels: its tree, parameters and layout as Warp structs, and the workers' memory.

    Attributes:
        m: the programs' namespace.
        batch: the articulations, `blocks` blocks of lanes.
        numbers, arrays: the fields of the tree on the host.
        parameters: a :class:`newton_like.programs.parameters.Parameters`, which all workspaces of the batch share.
        T, P, L: the structs ``Tree``, ``Params`` and ``Layout``.
        workers: CPU threads that share the blocks.
        layout: where rows of memory start.
        memory: one array of lanes a worker (CPU), or one for all threads (CUDA), which has `columns`, one a thread.

    Args:
        m: the programs' namespace.
        batch: a :class:`newton_like.programs.template.Batch`.
        parameters: its :class:`newton_like.programs.parameters.Parameters`.
        device: where it runs.
        threads: see :func:`newton_like.threads.worker_count`.
        fields: of the tree beside those that the template has: integers, arrays of integers, and arrays on the device.
    """

    def __init__(self, m, batch, parameters, device, threads: int | None = None, fields: dict | None = None):
        self.m, self.batch, self.device = m, batch, wp.get_device(device)
        self.blocks = -(-batch.count // m.width)
        self.T, self.numbers, self.arrays = m.Tree(), {}, {}
        self._set_tree(tree_fields(m, batch.template, parameters))
        self._set_tree(fields or {})
        self.parameters = parameters
        self._zeros: dict[int, wp.array] = {}
        self.workers, self.columns = 1, 1
        if interleaved(self.device):
            self.columns = self.blocks
        else:
            # waking a thread costs about as much as stepping a few blocks
            most = self.blocks if threads is not None else self.blocks // BLOCKS_PER_THREAD
            self.workers = min(worker_count(threads), max(most, 1))

    def with_memory(self, sizes: dict[str, int], fields: dict | None = None) -> Workspace:
        """The same batch with memory of its own.

        Args:
            sizes: of the rows of memory.
            fields: of the tree that are others.
        """
        work = copy.copy(self)
        work.layout = layout = stack(sizes)
        work.L = self.m.Layout()
        for name, at in layout.items():
            if name in self.m.Layout.vars:
                setattr(work.L, name, at)
            elif name in ROWS:
                raise ValueError(f"row '{name}' is not known to these programs; say so in newton_like.kernels.layout")
        if not self.batch.template.dense:
            # rows of bodies have no gaps, whatever lies between in the arrays
            fields = {"body_slot": np.arange(self.batch.template.bodies), **(fields or {})}
        if fields:
            work.T, work.numbers, work.arrays = copied(self.m.Tree, self.T), dict(self.numbers), dict(self.arrays)
            work._set_tree(fields)
        shape = (layout["size"], self.columns)
        work.memory = [wp.zeros(shape, dtype=self.m.lane, device=self.device) for _ in range(self.workers)]
        return work

    def ints(self, values) -> wp.array:
        """Integers on the device; at least one, so that there is an address."""
        values = np.asarray(values, dtype=np.int32).ravel()
        return copied_array(values if values.size else np.zeros(1, np.int32), wp.int32, self.device)

    def zeros(self, size: int) -> wp.array:
        """So many zeros, for arrays that are not given."""
        if size not in self._zeros:
            self._zeros[size] = wp.zeros(size, dtype=self.m.real, device=self.device)
        return self._zeros[size]

    def _set_tree(self, fields: dict) -> None:
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                self.arrays[name] = value
                setattr(self.T, name, self.ints(value))
            elif isinstance(value, wp.array):
                setattr(self.T, name, value)
            else:
                self.numbers[name] = int(value)
                setattr(self.T, name, int(value))

    @property
    def P(self):
        """The struct ``Params``."""
        return self.parameters.P

    def emitter(self, held: np.ndarray | None = None, cut: int | None = None) -> Emitter:
        """What writes code for this batch."""
        return Emitter(self.m, self.layout, self.parameters.known, held, cut)

    def block_lanes(self, n: int, dtype=None) -> wp.array:
        """Zeros, ``[blocks, n]`` lanes, or another type if asked for."""
        dtype = self.m.lane if dtype is None else dtype
        if interleaved(self.device):
            return wp.zeros((n, self.blocks), dtype=dtype, device=self.device).transpose((1, 0))
        return wp.zeros((self.blocks, n), dtype=dtype, device=self.device)

    def spread(self, vectors: np.ndarray) -> tuple[int, wp.array, wp.array]:
        """Numbers of clusters, as `m.param` of the kernels reads them.

        Args:
            vectors: ``[count, n]``.

        Returns:
            1 if clusters differ, or 0; the numbers of the first cluster, ``[n]``; those of all clusters if they differ,
            ``[blocks, n]`` lanes.
        """
        vary = int((vectors != vectors[:1]).any())
        varying = self.block_lanes(vectors.shape[1] if vary else 0)
        if vary:
            self.fill_lanes(varying, vectors)
        return vary, wp.array(vectors[0], dtype=self.m.real, device=self.device), varying

    def fill_lanes(self, lanes: wp.array, vectors: np.ndarray) -> None:
        """Copies numbers of clusters, ``[count, n]``, into lanes, ``[blocks, n]``. The last cluster fills the last block."""
        width = self.m.width
        filled = np.concatenate([vectors, np.repeat(vectors[-1:], self.blocks * width - len(vectors), axis=0)])
        filled = filled.reshape(self.blocks, width, -1).transpose(0, 2, 1)
        wp.copy(as_numbers(lanes, self.m.real, width), wp.array(filled, dtype=self.m.real, device=self.device))

    @compiling
    def record(self, kernel, inputs, threads: int | None = None, loops: bool = False) -> list[list]:
        """Recorded launches for `run_shared`.

        Args:
            kernel: its first arguments are ``first, columns``, or ``first, each, columns`` where it `loops`.
            inputs: called with the memory's index, gives the arguments that follow.
            threads: that share the blocks; by default all workers.
            loops: whether a CPU thread of the kernel does several blocks.
        """
        threads, cuda = self.workers if threads is None else threads, interleaved(self.device)

        def command(first: int, n: int, i: int) -> Command:
            lead = [first, 1 if cuda else n, self.columns] if loops else [first, self.columns]
            launch = wp.launch(
                kernel,
                dim=1 if loops and not cuda else n,
                inputs=[*lead, *inputs(i)],
                device=self.device,
                record_cmd=True,
                block_dim=BLOCK_DIM if self.device.is_cuda else None,
            )
            return Command(launch)

        return [[command(first, n, i) for first, n in cut(self.blocks, threads)] for i in range(threads)]

    def shares_of_worlds(self) -> list[tuple[int, int]] | None:
        """First world and number of worlds of each share of a launch on a CPU; None: lanes do not hold the worlds in their order."""
        batch, width = self.batch, self.m.width
        if self.device.is_cuda or not np.array_equal(batch.world, np.arange(batch.count)):
            return None
        return [
            (first * width, min(n * width, batch.count - first * width)) for first, n in cut(self.blocks, self.workers)
        ]


def tree_fields(m, template, parameters) -> dict:
    """The fields of a ``Tree``, zero and empty where a template does not say them."""
    fields = {name: 0 if field.type is wp.int32 else np.zeros(0, int) for name, field in m.Tree.vars.items()}
    # numbers; an array that is not set is empty
    for name in (
        "surface_table",
        "loop_uniform",
        "loop_varying",
        "tendon_uniform",
        "tendon_varying",
        "actuator_uniform",
        "actuator_varying",
    ):
        del fields[name]
    for name in fields:
        if hasattr(template, name):
            fields[name] = getattr(template, name)
    fields.update(reach=template.reach, dof_limits=parameters.dof_limits)
    fields.update(prescribed=bool((parameters.dof_limits & PRESCRIBED).any()))
    return fields


def row_sizes(template, rows, **counts: int) -> dict[str, int]:
    """Sizes of rows of memory for a template; see :func:`newton_like.kernels.layout.sizes` for further `counts`."""
    own = {name: getattr(template, name) for name in ("coords", "dofs", "bodies", "trees", "entries", "reach")}
    return sizes(rows, SimpleNamespace(**{**own, **counts}))
