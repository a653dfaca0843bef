"""Tendons of a batch in the solver: constraint rows of trees, and the numbers that kernels read of them."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import as_numbers
from newton_like.collision.laws import soft_table
from newton_like.dynamics.tendons import Tendons, tree_tables
from newton_like.kernels.dynamics.tendons import (
    LIMIT_KE,
    LIMIT_LOWER,
    LIMIT_UPPER,
    LIMIT_WEIGHT,
    REST_LOWER,
    REST_UPPER,
    TENDON,
)
from newton_like.kernels.parameters.gains import NO_LIMIT
from newton_like.kernels.solvers.tendons import tendon_force_kernel
from newton_like.model.editing.edits import OTHERS, SHAPES, edits_of
from newton_like.model.mujoco.contact_settings import SOLIMP, SOLREF
from newton_like.solvers.featherstone.actuators import add_lines
from newton_like.solvers.featherstone.loop_weights import tendon_weights
from newton_like.types import MAXVAL


class TendonWatch:
    """The tendons of a model, as a solver knows them, and the rows of actuators that pull no tendon.

    Args:
        model: the model.

    Attributes:
        tendons: the :class:`newton_like.dynamics.tendons.Tendons`; None: the model has none.

    Raises:
        ValueError: a tendon runs through two articulations, or along coordinates that are no lengths or angles; a path wraps around
            nothing; a tendon that wraps around a shape has inertia; a number is out of range.
    """

    def __init__(self, model):
        self.accept(model)

    def accept(self, model) -> None:
        """Records the tendons as the known ones."""
        self.tendons = checked_tendons(model) if model.tendons or model.actuators else None
        self._count, self._since = len(model.tendons), edits_of(model).version

    def changed(self, model) -> bool:
        """Whether tendons came or went since :meth:`accept`. Otherwise their numbers are read again."""
        if len(model.tendons) != self._count:
            return True
        edits = edits_of(model)
        if self.tendons is None or max(edits.last[OTHERS], edits.last[SHAPES]) <= self._since:
            return False
        found = checked_tendons(model)
        if found.items != self.tendons.items:
            return True
        self.tendons, self._since = found, edits.version
        return False

    def kinds(self, articulations: int) -> list[bytes]:
        """What the tendons of each articulation have in common with those of others that can share a batch with it."""
        if self.tendons is None:
            return [b""] * articulations
        known = {items: repr((items.tendons, items.lines)).encode() for items in dict.fromkeys(self.tendons.items)}
        return [known[items] for items in self.tendons.items]


def checked_tendons(model) -> Tendons:
    """The tendons of a model.

    Raises:
        ValueError: see :class:`TendonWatch`.
    """
    tendons = Tendons(model)
    add_lines(model, tendons)
    for name in ("stiffness", "damping", "armature", "target_ke", "target_kd", "effort_limit", "friction"):
        numbers = getattr(model, f"tendon_{name}").numpy()
        wrong = ~(np.isfinite(numbers) & (numbers >= 0.0))
        if wrong.any():
            n = int(np.argmax(wrong))
            raise ValueError(
                f"tendon '{model.tendon_label[n]}' (index {n}): tendon_{name} is {numbers[n]:g}; give a number of at least 0"
            )
    stiffness = model.tendon_limit_ke.numpy()
    wrong = ~(np.isfinite(stiffness) & ((stiffness >= 0.0) | (stiffness == -1.0)))
    if wrong.any():
        n = int(np.argmax(wrong))
        raise ValueError(
            f"tendon '{model.tendon_label[n]}' (index {n}): tendon_limit_ke is {stiffness[n]:g}; give a number of at least 0, or -1 for"
            " limits as soft as solref_limit states"
        )
    armature = model.tendon_armature.numpy()
    for n in np.flatnonzero(armature > 0.0).tolist():
        if any(kind == "geom" for kind, *_ in model.tendons[n].path):
            raise ValueError(
                f"tendon '{model.tendon_label[n]}' (index {n}) wraps around a shape and has inertia (armature {armature[n]:g}), which is"
                " not solved; set its armature to 0"
            )
    for lower, upper in (("limit_lower", "limit_upper"), ("rest_lower", "rest_upper")):
        low, high = getattr(model, f"tendon_{lower}").numpy(), getattr(model, f"tendon_{upper}").numpy()
        wrong = ~(low <= high)
        if wrong.any():
            n = int(np.argmax(wrong))
            raise ValueError(
                f"tendon '{model.tendon_label[n]}' (index {n}): tendon_{lower} {low[n]:g} is above tendon_{upper} {high[n]:g}; swap them"
            )
    return tendons


class TendonRows:
    """The tendons of a batch.

    Args:
        batch: a :class:`newton_like.programs.template.Batch`, whose clusters have the same tendons.
        tendons: the tendons of its model; None: there are none.

    Attributes:
        numbers, arrays: fields of the kernels' ``Tree``.
        index: the tendons of each cluster in the model, ``[count, tendons]``.
        items: numbers of the items that specialised code holds as constants: those of all clusters, until one is edited; else None.
    """

    def __init__(self, batch, tendons: Tendons | None):
        self.batch, self._known, self._index, self.items = batch, None, None, None
        self.index = np.zeros((batch.count, 0), dtype=int)
        self.numbers, self.arrays = {"tendons": 0}, {}
        if tendons is None:
            return
        template = batch.template
        trees = [tendons.items[int(batch.articulations[0]) + i] for i in range(template.trees)]
        tables = tree_tables(trees, template)
        self.numbers = {"tendons": tables.pop("tendons")}
        if self.numbers["tendons"]:
            self.arrays = tables
            own = [[n for i in range(template.trees) for n in tendons.index[a + i]] for a in batch.articulations]
            self.index = np.array(own, dtype=int)

    def vectors(self, model, tendons: Tendons) -> np.ndarray:
        """The numbers of the tendons of each cluster and then of their items, ``[count, ...]``."""
        found = [tendons.numbers(model, self.batch.articulations + i) for i in range(self.batch.template.trees)]
        sizes = [
            len(tendons.items[int(self.batch.articulations[0]) + i].tendons) for i in range(self.batch.template.trees)
        ]
        if _follow_laws(model):
            weights = tendon_weights(model)
            for i, (x, size) in enumerate(zip(found, sizes, strict=True)):
                x[:, LIMIT_WEIGHT : size * TENDON : TENDON] = weights[self.batch.articulations + i, :size]
        records = [x[:, : size * TENDON] for x, size in zip(found, sizes, strict=True)]
        items = [x[:, size * TENDON :] for x, size in zip(found, sizes, strict=True)]
        line = np.zeros(TENDON)
        line[[REST_UPPER, LIMIT_UPPER]], line[[REST_LOWER, LIMIT_LOWER]], line[LIMIT_KE] = MAXVAL, -MAXVAL, -1.0
        lines = np.tile(line, (len(self.index), self.numbers["tendons"] - self.index.shape[1]))
        of_lines = [tendons.line_numbers(self.batch.articulations + i) for i in range(self.batch.template.trees)]
        return np.concatenate([*records, lines, *items, *of_lines], axis=1)

    def laws(self, model) -> np.ndarray:
        """The laws of the limits, ``[count or 1, tendons, LAW_TABLE]``."""
        lines = [_LAW_OF_LINES] * (self.numbers["tendons"] - self.index.shape[1])
        ours = [[_law(model.tendons[n]) for n in own] + lines for own in self.index]
        ours = ours[:1] if all(own == ours[0] for own in ours[1:]) else ours
        solref, solimp, margin = zip(*(law for own in ours for law in own), strict=True)
        table = soft_table(np.array(solref), np.array(solimp), np.array(margin))
        return table.reshape(len(ours), -1, table.shape[-1])

    def fill(self, work, model, tendons: Tendons | None) -> bool:
        """Brings the numbers of the tendons into the struct ``Tree`` of a workspace. Returns whether launches have to be recorded again."""
        if not self.numbers["tendons"]:
            return False
        vectors = self.vectors(model, tendons)
        if self._known is not None and np.array_equal(self._known, vectors):
            return False
        items = vectors[:, TENDON * self.numbers["tendons"] :]
        if self._known is None:
            shared = (items == items[:1]).all() and model.varying.isdisjoint(("shape_transform", "shape_scale"))
            self.items = items[0] if shared else None
        elif self.items is not None and not (items == self.items).all():
            self.items = None
        self._known = vectors
        T = work.T
        T.tendons_vary, T.tendon_uniform, T.tendon_varying = work.spread(vectors)
        return True

    def take_forces(self, work, kept: wp.array, force: wp.array) -> None:
        """Writes the forces of the tendons in the last step into an array ``[tendon_count]``.

        Args:
            work: the workspace of the batch.
            kept: its memory that outlives a step.
            force: the array.
        """
        if not self.index.size:
            return
        if self._index is None:
            self._index = wp.array(self.index, dtype=wp.int32, device=work.device)
        wp.launch(
            tendon_force_kernel(work.m.real),
            dim=self.index.shape,
            inputs=[self._index, work.L.kept_tendon_force, work.m.width, as_numbers(kept, work.m.real, work.m.width)],
            outputs=[force],
            device=work.device,
        )


def _follow_laws(model) -> bool:
    """Whether a tendon has limits that follow a law."""
    low, high, stiffness = (getattr(model, f"tendon_limit_{name}").numpy() for name in ("lower", "upper", "ke"))
    return bool(((stiffness < 0.0) & ((low > -NO_LIMIT) | (high < NO_LIMIT))).any())


_LAW_OF_LINES = SOLREF, SOLIMP, 0.0
"""Rows of actuators have no limits."""


def _law(tendon) -> tuple:
    return tendon.solref_limit, tendon.solimp_limit, tendon.margin
