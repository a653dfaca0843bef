"""Contacts of a list, given to chunks."""

from __future__ import annotations

import warp as wp

from newton_like.kernels.solvers.xpbd.order import order_kernels
from newton_like.programs.device import interleaved
from newton_like.threads import Command


def sharing(N, lists: dict, chunks: int, dtype, device):
    """What lists the contacts of each chunk in the order of the list, without arguments: one thread on a CPU, sorting on a GPU.

    Args:
        N: the struct of the list.
        lists: its memory, see :meth:`newton_like.solvers.SolverXPBD._list_arrays`.
        chunks: number of chunks.
        dtype, device: of the model.
    """
    _, share_out, _, (name_chunks, find_starts), _ = order_kernels(dtype)
    if not interleaved(device):
        return Command(wp.launch(share_out, dim=1, inputs=[N], device=device, record_cmd=True)).launch
    room, chunk = lists["room"], lists["chunk"]

    def share():
        wp.launch(name_chunks, dim=room, inputs=[N, chunk], device=device)
        wp.utils.radix_sort_pairs(chunk, lists["fixed"]["chosen"], room)
        wp.launch(find_starts, dim=chunks + 1, inputs=[N, chunk, room], device=device)

    return share
