"""Loop joints of a batch in the solver: constraint rows of trees, and the numbers that kernels read of them."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import as_numbers
from newton_like.dynamics.internal.frames import NONE, WORLD
from newton_like.dynamics.loops import Loops, loops_of
from newton_like.kernels.dynamics.loops import NO_ROW, WORLD_OF
from newton_like.kernels.solvers.closures import loop_force_kernel
from newton_like.model.edits import GAINS, JOINTS, edits_of
from newton_like.types import JointTargetMode


class LoopWatch:
    """The loop joints of a model, as a solver knows them.

    Args:
        model: the model.

    Attributes:
        loops: their rows; None: the model has none.

    Raises:
        ValueError: a loop joint has a drive, friction, a spring or limits, connects two articulations, or limits a distance.
    """

    def __init__(self, model):
        self._any = bool((model.joint_articulation.numpy() < 0).any())
        self.accept(model)

    def accept(self, model) -> None:
        """Records the loop joints as the known ones."""
        self.loops = checked_loops(model) if self._any else None
        self._since = edits_of(model).version

    def changed(self, model) -> bool:
        """Whether rows came or went since :meth:`accept`. Otherwise the numbers of the rows are read again."""
        edits = edits_of(model)
        if not self._any or max(edits.last[JOINTS], edits.last[GAINS]) <= self._since:
            return False
        found = checked_loops(model)
        if not np.array_equal(self.loops.rows, found.rows):
            return True
        self.loops, self._since = found, edits.version
        return False

    def kinds(self, articulations: int) -> list[bytes]:
        """What the loop joints of each articulation have in common with those of others that can share a batch with it."""
        if self.loops is None:
            return [b""] * articulations
        return [rows.tobytes() for rows in self.loops.rows.astype(np.int32)]


def checked_loops(model) -> Loops:
    """The loop joints of a model.

    Raises:
        ValueError: see :class:`LoopWatch`.
    """
    loops = loops_of(model)
    start, mode = model.joint_qd_start.numpy(), model.joint_target_mode.numpy()
    gains = model.joint_target_ke.numpy() + model.joint_target_kd.numpy()
    for j in np.flatnonzero((model.joint_articulation.numpy() < 0) & model.joint_enabled.numpy().astype(bool)).tolist():
        dofs = slice(start[j], start[j + 1])
        if ((mode[dofs] != JointTargetMode.NONE) & (gains[dofs] > 0.0)).any():
            raise ValueError(
                f"loop joint '{model.joint_label[j]}' (index {j}) has a drive, which SolverFeatherstone does not solve; close the loop at"
                " another joint, or set joint_target_ke and joint_target_kd of this joint to 0"
            )
    for told in loops.passive.values():
        raise ValueError(f"{told.partition(';')[0]} by SolverFeatherstone; close the loop at another joint")
    return loops


class Closures:
    """The rows of the loop joints of a batch.

    Args:
        batch: a :class:`newton_like.programs.template.Batch`, whose articulations have the same rows.
        loops: the loop joints of its model; None: there are none.

    Attributes:
        numbers, arrays: fields of the kernels' ``Tree``.
    """

    def __init__(self, batch, loops: Loops | None):
        self.batch, self._rows = batch, []
        kinds, ends = [], ([], [])
        for i in range(batch.template.trees) if loops is not None else ():
            kind, *links = loops.rows[int(batch.articulations[0]) + i]
            used = np.flatnonzero((kind != NO_ROW) & (links[1] != NONE))
            self._rows.append(used)
            kinds += kind[used].tolist()
            for found, listed in zip(ends, links, strict=True):
                at = int(batch.template.tree_at[i])
                found += [WORLD_OF - i if k == WORLD else at + k for k in listed[used].tolist()]
        self.numbers = {"loop_rows": len(kinds)}
        self.arrays = {"loop_kind": np.array(kinds, dtype=int), "point_body": np.array([*ends[0], *ends[1]], dtype=int)}
        self.arrays["loop_span"] = _spans(self.batch.template, *ends)
        self._known = self._index = None
        self._memory: list[wp.array] = []

    def vectors(self, loops: Loops) -> np.ndarray:
        """Anchors and directions of the rows, ``[count, rows * LOOP]``."""
        found = [loops.numbers[self.batch.articulations + i][:, used] for i, used in enumerate(self._rows)]
        return np.concatenate(found, axis=1).reshape(self.batch.count, -1)

    def fill(self, work, loops: Loops | None) -> bool:
        """Brings the numbers of the rows into the struct ``Tree`` of a workspace. Returns whether launches have to be recorded again."""
        if not self.numbers["loop_rows"]:
            return False
        vectors = self.vectors(loops)
        if self._known is not None and np.array_equal(self._known, vectors):
            return False
        T, real, width = work.T, work.m.real, work.m.width
        vary = int((vectors != vectors[:1]).any())
        moves = self._known is None or vary != T.loops_vary
        self._known = vectors
        if moves:
            # graphs know the addresses of the old ones
            self._memory += [T.loop_uniform, T.loop_varying]
            T.loops_vary = vary
            T.loop_uniform = wp.array(vectors[0], dtype=real, device=work.device)
            T.loop_varying = work.block_lanes(vectors.shape[1] if vary else 0)
        else:
            T.loop_uniform.assign(vectors[0])
        if vary:
            filled = np.concatenate([vectors, np.repeat(vectors[-1:], work.blocks * width - len(vectors), axis=0)])
            filled = filled.reshape(work.blocks, width, -1).transpose(0, 2, 1)
            wp.copy(as_numbers(T.loop_varying, real, width), wp.array(filled, dtype=real, device=work.device))
        return moves

    def take_forces(self, work, kept: wp.array, force: wp.array) -> None:
        """Writes the forces of the rows in the last step into an array ``[articulation_count, rows]``.

        Args:
            work: the workspace of the batch.
            kept: its memory that outlives a step.
            force: the array.
        """
        if not self.numbers["loop_rows"]:
            return
        if self._index is None:
            tree = np.repeat(np.arange(len(self._rows)), [len(used) for used in self._rows])
            index = (self.batch.articulations, tree, np.concatenate(self._rows))
            self._index = [wp.array(np.asarray(x), dtype=wp.int32, device=work.device) for x in index]
        first = work.L.kept_coupling_impulse + work.numbers["couplings"]
        articulations, tree, row = self._index
        wp.launch(
            loop_force_kernel(work.m.real),
            dim=(self.batch.count, self.numbers["loop_rows"]),
            inputs=[articulations, first, tree, row, work.m.width, as_numbers(kept, work.m.real, work.m.width)],
            outputs=[force],
            device=work.device,
        )


def _spans(template, parents: list[int], children: list[int]) -> np.ndarray:
    """The dofs of each row, as the kernels' ``Tree`` has them."""
    spans = []
    for ends in zip(parents, children, strict=True):
        leaves = [int(template.leaf[k]) for k in ends if k >= 0]
        chains = [
            template.chain[template.chain_at[i] : template.chain_at[i] + template.depth[i] + 1]
            for i in leaves
            if i >= 0
        ]
        spans.append(np.unique(np.concatenate([np.zeros(0, int), *chains])))
    starts = len(spans) + 1 + np.cumsum([0, *[len(span) for span in spans]])
    return np.concatenate([starts, *spans]).astype(int)
