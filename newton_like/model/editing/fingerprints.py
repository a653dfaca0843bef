"""Fingerprints of arrays as they were last read, and the worlds in which the arrays differ from them.

A reader of some arrays of a model has :class:`Fingerprints` of them. After a notice it calls :meth:`Fingerprints.look`, and then reads the
worlds that are marked. The numbers of all other worlds are those that a reader of all worlds would find.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.kernels.edits import fingerprint_kernels
from newton_like.model.columns import KIND_OF
from newton_like.threads import Command, cut, run_shared, worker_count

_BLOCK = 16
"""Worlds that have one fingerprint on a CPU. On a GPU each world has its own."""

_WORDS = 2_000_000
"""Number of words for whose comparison another thread saves time: about 300 microseconds."""

_STARTS = {"dof": "joint_dof", "coord": "joint_coord"}


class Digest:
    """One fingerprint of whole arrays on a CPU, of 64 bits.

    Args:
        arrays: contiguous arrays of at least four bytes, or empty ones.
    """

    def __init__(self, arrays: list[wp.array]):
        rows = [(a.ptr, a.size * wp.types.type_size_in_bytes(a.dtype)) for a in arrays]
        # bytes behind the last whole word count with those before them
        rows += [(at + size - 4, 4) for at, size in rows if size % 4]
        self._ends = wp.array(np.array([[0, size // 4] for _, size in rows], dtype=np.int32).ravel(), device="cpu")
        table = [[at, self._ends.ptr + 8 * i, 1] for i, (at, size) in enumerate(rows) if size]
        self._table = wp.array(np.array(table, dtype=np.int64).ravel(), dtype=wp.int64, device="cpu")
        self._found = wp.zeros(1, dtype=wp.uint64, device="cpu")
        self._command = Command(
            wp.launch(
                fingerprint_kernels().digest,
                dim=1,
                inputs=[len(table), self._table],
                outputs=[self._found],
                device="cpu",
                record_cmd=True,
            )
        )
        self._view = self._found.numpy()

    def read(self) -> int:
        """The fingerprint of the numbers that the arrays have now."""
        self._command.launch()
        return int(self._view[0])


class Accepted:
    """The contents of some arrays that were found right, so that they are not checked again. Arrays on a GPU are always checked again."""

    def __init__(self):
        self._key, self._digest, self._now, self._known = None, None, None, None

    def known(self, arrays: list[wp.array]) -> bool:
        """Whether the arrays have the contents that were accepted."""
        key = [(a.ptr, a.size) for a in arrays]
        if self._key != key:
            self._key, self._known, self._digest = key, None, None
            if all(a.device.is_cpu and a.is_contiguous and (a.size == 0 or a.size >= 4) for a in arrays):
                self._digest = Digest(arrays)
        if self._digest is None:
            return False
        self._now = self._digest.read()
        return self._now == self._known

    def accept(self) -> None:
        """The contents that the last call of :meth:`known` saw are right."""
        self._known = self._now


class Fingerprints:
    """Fingerprints of arrays of a model, 64 bits for each block of worlds.

    An edit of one word of 32 bits in a block is always found. Other edits are missed with a probability of ``2^-64``.

    Attributes:
        changed: version of the last edit that changed each world and, last, what all worlds share, ``[world_count + 1]`` int. The worlds of
            a block are marked together, but only those that were edited.

    Args:
        model: the model.
        names: the arrays, which have entries of bodies, joints, dofs, coordinates or shapes.
        crossing: whether numbers of a world also depend on entities that all worlds share.
    """

    def __init__(self, model, names: tuple[str, ...], crossing: bool):
        self.names, self.device, self._crossing = names, model.device, int(crossing)
        self._worlds, self._each = model.world_count, _BLOCK if model.device.is_cpu else 1
        self._blocks = -(-self._worlds // self._each)

        def integers(size: int, value: int) -> wp.array:
            return wp.full(size, value, dtype=wp.int32, device=model.device)

        self.changed = integers(self._worlds + 1, 0)
        self._prints = wp.zeros(self._blocks + 2, dtype=wp.uint64, device=model.device)
        self._looked, self._news = integers(self._blocks + 1, -1), integers(2, 0)
        self._any, self._since = integers(1, -1), integers(3, 0)
        # views of memory, for CPUs
        self._seen = (self._any.numpy(), self._since.numpy()) if model.device.is_cpu else None
        self._count, self._key = 0, None

    def forget(self) -> None:
        """The reader has read other numbers: the next look marks all worlds that were edited."""
        if self._count:
            self._looked.fill_(-1)

    def look(self, model, edited: wp.array, since: int, version: int) -> bool:
        """Marks the worlds with ``edited > since``, ``[world_count + 1]``, that changed since they were looked at, with `version`.

        Returns:
            Whether there are any; on a GPU always True.
        """
        self._count += 1
        arrays = [getattr(model, name) for name in self.names]
        key = [edited.ptr, *(a.ptr for a in arrays)]
        if self._key != key:
            self._record(model, arrays, edited)
            self._key = key
        told = (since, self._count, version)
        if self._seen is not None:
            self._seen[1][:] = told
        else:
            self._since.assign(np.array(told, dtype=np.int32))
        for launches in self._launches:
            run_shared(launches)
        return self._seen is None or int(self._seen[0][0]) == version

    def _record(self, model, arrays: list[wp.array], edited: wp.array) -> None:
        rows, shared, words = [], False, 0
        for name, array in zip(self.names, arrays, strict=True):
            if not array.is_contiguous:
                raise ValueError(f"model.{name} must be contiguous; assign {name}.contiguous()")
            kind = KIND_OF[name]
            starts = getattr(model, f"{_STARTS.get(kind, kind)}_world_start")
            begin, *_, end, total = starts.numpy().tolist()
            shared |= begin > 0 or end < total
            each = wp.types.type_size_in_bytes(array.dtype) // 4
            words += each * total
            if array.size:
                rows.append([array.ptr, starts.ptr, each])
        table = wp.array(np.array(rows, dtype=np.int64).ravel(), dtype=wp.int64, device=self.device)
        kernels = fingerprint_kernels()
        told = [self._worlds, self._blocks, len(rows), table, edited, self._since]
        results = [self._prints, self._looked, self._news, self.changed, self._any]
        # launches know addresses only; the other arrays are the model's
        self._reads = told

        def launch(kernel, count: int, *inputs) -> Command:
            return Command(
                wp.launch(
                    kernel, dim=count, inputs=[*inputs, *told], outputs=results, device=self.device, record_cmd=True
                )
            )

        threads = 1 if self.device.is_cuda or words < _WORDS else worker_count()
        shares = [
            launch(kernels.compare, count, first, self._each, self._crossing)
            for first, count in cut(self._blocks, threads, 1)
        ]
        self._launches = [[shares] * threads]
        if shared:
            before, after = (launch(kernel, 1) for kernel in (kernels.compare_shared, kernels.mark_shared))
            self._launches = [[[before]], *self._launches, [[after]]]
