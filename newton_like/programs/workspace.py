"""A batch, ready for kernels: its tree, parameters and layout as Warp structs, and the workers' memory.

On a CPU a batch is cut into blocks of as many articulations as a lane has numbers; the blocks are shared out to a few threads, each with
memory of its own that stays in its cache. On a GPU there is one articulation a thread, and memory is laid out so that neighbouring
threads read neighbouring words.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.compiler.cpp import Emitter, Parameters
from newton_like.programs.device import BLOCK_DIM, interleaved, worker_count
from newton_like.programs.threads import Command, cut

BLOCKS_PER_THREAD = 8
"""A batch with fewer blocks for each thread is launched on fewer threads, unless their number is asked for."""


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
        self.known = Parameters(parameters.at, values[0], same)
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

    def emitter(self, held: np.ndarray | None = None, cut: int | None = None) -> Emitter:
        """What writes code for this batch."""
        return Emitter(self.m, self.layout, self.known, held, cut)

    def signature(self) -> bytes:
        """Of the numbers that specialised code holds as constants."""
        same, values = self.known.same, self.known.values
        return same.tobytes() + np.where(same, values, 0).tobytes()

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
    settings = (
        "links", "columns", "base_repr", "output_repr", "wrench_repr", "wrenches_by_link", "replace_wrenches", "world_wrench", "quantity",
        "configuration_mode", "force_terms", "result_size", "points", "offset_size", "components", "contact_law", "contact_sweeps",
        "loop_rows", "proximal_steps",
    )  # fmt: skip
    numbers.update(dict.fromkeys(settings, 0))
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
