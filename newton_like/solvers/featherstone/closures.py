"""Loop joints and equality constraints of a batch in the solver: constraint rows of trees, and the numbers that kernels read of them."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import as_numbers
from newton_like.dynamics.internal.frames import NONE, WORLD
from newton_like.dynamics.tendons import tree_tables
from newton_like.kernels.dynamics.loops import LINEAR, LOOP, NO_ROW, WORLD_OF
from newton_like.kernels.solvers.rows.closure_rows import (
    DRIVE,
    HARD,
    LENGTH,
    POLYNOMIAL,
    ROW_LAW,
    SOFT,
    STOP,
    TENDONS,
    TOWARDS,
)
from newton_like.kernels.solvers.rows.closures import drive_target_kernel, loop_force_kernel
from newton_like.kernels.tree import SPAN
from newton_like.model.editing.edits import BODIES, GAINS, JOINTS, OTHERS, edits_of
from newton_like.model.joint_types import look_up
from newton_like.model.mujoco.equality_settings import has_equalities
from newton_like.solvers.featherstone.ball_limits import limited_balls
from newton_like.solvers.featherstone.loop_rows import LAW, SolverRows, solver_rows


class LoopWatch:
    """The loop joints, equality constraints and limits of ball joints of a model, as a solver knows them.

    Args:
        model: the model.

    Attributes:
        rows: their rows; None: the model has none.
        driven: whether a loop joint has a drive.

    Raises:
        ValueError: a loop joint has forces that are not solved or connects two articulations, or an equality constraint is out of range.
    """

    def __init__(self, model):
        tied = any(tendon.ties for tendon in model.tendons)
        self._always = bool((model.joint_articulation.numpy() < 0).any()) or has_equalities(model) or tied
        self._balls = bool(look_up(model.joint_type.numpy(), "turns_only").any())
        self.accept(model)

    def accept(self, model) -> None:
        """Records the rows as the known ones."""
        some = self._always or (self._balls and bool(limited_balls(model).any()))
        self.rows = solver_rows(model) if some else None
        self.driven = self.rows is not None and bool((self.rows.targets >= 0).any())
        self._since = edits_of(model).version

    def changed(self, model) -> bool:
        """Whether rows came or went since :meth:`accept`. Otherwise the numbers of the rows are read again."""
        edits = edits_of(model)
        if self.rows is None:
            # limits of ball joints may come
            found = self._balls and edits.last[JOINTS] > self._since and bool(limited_balls(model).any())
            self._since = edits.version
            return found
        groups = [JOINTS, GAINS, OTHERS]
        # the softness of rows depends on masses
        groups += [BODIES] if np.isin(self.rows.rows[:, LAW], (SOFT, STOP)).any() else []
        if max(edits.last[group] for group in groups) <= self._since:
            return False
        found = solver_rows(model)
        if self.rows.soft_followers != found.soft_followers:
            return True
        if any(
            not np.array_equal(getattr(self.rows, name), getattr(found, name)) for name in ("rows", "targets", "idle")
        ):
            return True
        self.rows, self._since = found, edits.version
        return False

    def kinds(self, articulations: int) -> list[bytes]:
        """What the rows of each articulation have in common with those of others that can share a batch with it."""
        if self.rows is None:
            return [b""] * articulations
        parts = zip(self.rows.rows.astype(np.int32), self.rows.idle, self.rows.follower_kinds, strict=True)
        return [rows.tobytes() + idle.tobytes() + followers for rows, idle, followers in parts]


class Closures:
    """The rows of the loop joints and equality constraints of a batch.

    Args:
        batch: a :class:`newton_like.programs.template.Batch`, whose articulations have the same rows.
        rows: those of its model; None: there are none.
        tendons: the :class:`newton_like.dynamics.tendons.Tendons` of the model; None: there are none.
        model: the model, for the masses of links.

    Attributes:
        numbers, arrays: fields of the kernels' ``Tree``.
    """

    def __init__(self, batch, rows: SolverRows | None, tendons=None, model=None):
        self.batch = batch
        # tree of the cluster and row of its articulation; rows with laws before DRIVE come first
        table, pulled = [], 0
        for i in range(batch.template.trees) if rows is not None else ():
            a = int(batch.articulations[0]) + i
            kind, law, parent, child, source = rows.rows[a]
            at = int(batch.template.tree_at[i])
            for r in np.flatnonzero((kind != NO_ROW) & (child != NONE) & ~rows.idle[a]).tolist():
                ends = [WORLD_OF - i if k == WORLD else at + int(k) for k in (parent[r], child[r])]
                if kind[r] == TENDONS:
                    ends = [pulled + int(k) if k >= 0 else -1 for k in (parent[r], child[r])]
                table.append((i, r, int(kind[r]), int(law[r]), *ends, int(source[r])))
            pulled += len(tendons.items[int(batch.articulations[0]) + i].tendons) if tendons is not None else 0
        table.sort(key=lambda row: row[3] >= DRIVE)
        self._table = np.array(table, dtype=int).reshape(-1, 7)
        _, _, kinds, laws, parents, children, _ = self._table.T
        block = int((laws < DRIVE).sum())
        self.numbers = {"loop_rows": len(table), "loop_block": block, "loop_soft": int((laws != HARD).any())}
        self.numbers["loop_tied"] = int((kinds == TENDONS).any())
        self.numbers["loop_response"] = self._least_response(model) if len(table) and model is not None else 0
        self.arrays = {"loop_kind": kinds, "loop_rule": laws, "point_body": np.concatenate([parents, children])}
        # rows of a joint with the same law follow each other
        joints = [
            (i, int(law), int(rows.joints[int(batch.articulations[0]) + i, r])) for i, r, _, law, *_ in self._table
        ]
        alone = [joint[2] < 0 or kind == POLYNOMIAL for joint, kind in zip(joints, kinds, strict=True)]
        first = [r if alone[r] else joints.index(joint) for r, joint in enumerate(joints)]
        sizes = [1 if alone[r] else joints.count(joint) for r, joint in enumerate(joints)]
        self.arrays["loop_group"] = np.array([*first, *sizes], dtype=int)
        own = [_tendon_spans(batch, tendons) if kind == TENDONS else None for kind in kinds]
        self.arrays["loop_span"] = _spans(batch.template, parents.tolist(), children.tolist(), block, own)
        self._known = self._index = self._targets = None
        self._memory: list[wp.array] = []

    def _least_response(self, model) -> int:
        """The least sum of the inverse masses of both links of a row, or of their inverse moments of inertia, in millionths."""
        template = self.batch.template
        links = model.joint_child.numpy()[int(self.batch.joint_start[0]) + np.asarray(template.joint_slot)]
        mass = model.body_mass.numpy()[links].astype(np.float64)
        moment = (
            np.trace(model.body_inertia.numpy().reshape(-1, 3, 3)[links], axis1=1, axis2=2).astype(np.float64) / 3.0
        )
        found = []
        for _, _, kind, _, parent, child, _ in self._table.tolist():
            if kind not in (POLYNOMIAL, TENDONS):
                inertia = mass if kind in (LINEAR, LENGTH) else moment
                response = sum(1.0 / inertia[k] for k in (parent, child) if k >= 0 and inertia[k] > 0.0)
                found += [response] if response > 0.0 else []
        return int(np.clip(1.0e6 * min(found, default=0.0), 0.0, 2.0e9))

    def drop_followers(self, rows: SolverRows | None, tables) -> None:
        """Takes mimic joints whose relation is a row out of the couplings of a batch."""
        if rows is None or not rows.soft_followers or not tables.numbers["couplings"]:
            return
        start, slots = self.batch.joint_start, self.batch.template.joint_slot
        keep = [
            kind == SPAN or int(start[0]) + int(slots[body]) not in rows.soft_followers
            for kind, body in zip(tables.arrays["coupling_kind"], tables.arrays["coupling_body"], strict=True)
        ]
        for name in ("coupling_kind", "coupling_body", "coupling_other"):
            tables.arrays[name] = tables.arrays[name][keep]
        tables.numbers["couplings"] = len(tables.arrays["coupling_kind"])

    def vectors(self, rows: SolverRows) -> np.ndarray:
        """Vectors of the rows and, with laws, their numbers, ``[count, rows * LOOP]`` or ``[count, rows * (LOOP + ROW_LAW)]``."""
        articulations = self.batch.articulations[:, None] + self._table[:, 0]
        found = rows.numbers[articulations, self._table[:, 1]]
        parts = [found[..., :LOOP], found[..., LOOP:]] if self.numbers["loop_soft"] else [found[..., :LOOP]]
        return np.concatenate([part.reshape(self.batch.count, -1) for part in parts], axis=1)

    def fill(self, work, loops: SolverRows | None) -> bool:
        """Brings the numbers of the rows into the struct ``Tree`` of a workspace. Returns whether launches have to be recorded again."""
        if not self.numbers["loop_rows"]:
            return False
        vectors = self.vectors(loops)
        if self._known is not None and np.array_equal(self._known, vectors):
            return False
        T, real = work.T, work.m.real
        self._targets = None
        # targets of drives may differ
        driven = (loops.targets[self.batch.articulations] >= 0).any()
        vary = int(driven or (vectors != vectors[:1]).any())
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
            work.fill_lanes(T.loop_varying, vectors)
        return moves

    def couplings(self, rows: SolverRows | None) -> list[tuple[int, np.ndarray]]:
        """The rows that solve couplings, and which coupling each is in each cluster, ``[count, 3]``; see
        :class:`newton_like.solvers.featherstone.loop_rows.Row`."""
        found = []
        for place, (i, r, *_) in enumerate(self._table.tolist()):
            keys = rows.couplings[self.batch.articulations + i, r]
            if (keys >= 0).any():
                found.append((place, keys))
        return found

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
            of = np.flatnonzero(self._table[:, 6] >= 0)
            index = (self.batch.articulations, self._table[of, 0], self._table[of, 6], of)
            self._index = [wp.array(np.ascontiguousarray(x), dtype=wp.int32, device=work.device) for x in index]
        first = work.L.kept_coupling_impulse + work.numbers["couplings"]
        articulations, tree, row, place = self._index
        wp.launch(
            loop_force_kernel(work.m.real),
            dim=(self.batch.count, row.size),
            inputs=[articulations, first, tree, row, place, work.m.width, as_numbers(kept, work.m.real, work.m.width)],
            outputs=[force],
            device=work.device,
        )

    def put_targets(self, work, rows: SolverRows, target_q, target_v) -> None:
        """Takes over the targets of drives of loop joints from flat arrays of the model; None: they are zero."""
        if self._targets is None:
            articulations = self.batch.articulations[:, None] + self._table[:, 0]
            places = rows.targets[articulations, self._table[:, 1]]
            driven = np.flatnonzero((places[0] >= 0).any(axis=1))
            lanes = self.numbers["loop_rows"] * LOOP + ROW_LAW * driven
            turns = self._table[driven, 2] == TOWARDS
            arrays = (
                np.ascontiguousarray(places[:, driven, 0]),
                np.ascontiguousarray(places[:, driven, 1]),
                lanes,
                turns,
            )
            self._targets = [wp.array(x, dtype=wp.int32, device=work.device) for x in arrays]
            self._nothing = wp.zeros(0, dtype=work.m.real, device=work.device)
        coordinate, dof, lanes, turns = self._targets
        if not lanes.size:
            return
        given = [self._nothing if x is None else x for x in (target_q, target_v)]
        wp.launch(
            drive_target_kernel(work.m.real),
            dim=coordinate.shape,
            inputs=[coordinate, dof, lanes, turns, work.m.width, *given],
            outputs=[as_numbers(work.T.loop_varying, work.m.real, work.m.width)],
            device=work.device,
        )


def _tendon_spans(batch, tendons) -> list[np.ndarray]:
    """The dofs of each tendon of a cluster."""
    trees = [tendons.items[int(batch.articulations[0]) + i] for i in range(batch.template.trees)]
    tables = tree_tables(trees, batch.template)
    span = tables["tendon_span"]
    return [span[span[n] : span[n + 1]] for n in range(tables["tendons"])]


def _spans(template, parents: list[int], children: list[int], block: int, of_tendons: list) -> np.ndarray:
    """The dofs of each row, as the kernels' ``Tree`` has them. Rows behind the block have those of the block, too. `of_tendons`: for rows
    of tendons the dofs of each tendon; None for others."""
    spans = []
    for ends, tied in zip(zip(parents, children, strict=True), of_tendons, strict=True):
        if tied is not None:
            spans.append(np.unique(np.concatenate([np.zeros(0, int), *(tied[n] for n in ends if n >= 0)])))
            continue
        leaves = [int(template.leaf[k]) for k in ends if k >= 0]
        chains = [
            template.chain[template.chain_at[i] : template.chain_at[i] + template.depth[i] + 1]
            for i in leaves
            if i >= 0
        ]
        spans.append(np.unique(np.concatenate([np.zeros(0, int), *chains])))
    spans[block:] = [np.unique(np.concatenate([span, *spans[:block]])) for span in spans[block:]]
    starts = len(spans) + 1 + np.cumsum([0, *[len(span) for span in spans]])
    return np.concatenate([starts, *spans]).astype(int)
