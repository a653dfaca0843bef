"""Lists of contacts for a solver: the candidates that their contacts become, and handing a list over."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import as_numbers
from newton_like.collision.ground import KIND, NO_PAIRS, ContactTables, couplings_of, moving_shapes
from newton_like.collision.laws import ListedLaws
from newton_like.collision.pairs import add_pairs
from newton_like.kernels.collision.collect import hand_over_kernels
from newton_like.kernels.collision.plane import HULL
from newton_like.kernels.tree import GIVEN
from newton_like.model.editing.edits import KINDS, MATERIALS, TURNING, edits_of
from newton_like.programs.parameters import TablesChanged
from newton_like.programs.workspace import Workspace
from newton_like.threads import launch_shared

SLOTS, HULL_SLOTS = 8, 16
"""Contacts of one shape with shapes on no body that a solver takes from a list, and of one convex hull."""


def _room(model, shapes: np.ndarray) -> np.ndarray:
    """For how many contacts with shapes on no body there is room, for each column of `shapes`: the moving shapes of clusters,
    ``[clusters, columns]``, -1 where one lacks a shape."""
    hulls = np.isin(model.shape_type.numpy(), [kind for kind in KIND if KIND[kind] == HULL])
    return np.where(np.append(hulls, False)[shapes].any(axis=0), HULL_SLOTS, SLOTS)


def given_tables(model, batch) -> ContactTables:
    """Candidates for contacts that are handed over: `_room` for every moving shape of the batch beside those on no body, then those of
    pairs of shapes on bodies. Clusters may differ in shapes that do not collide: the places of shapes that one lacks have the index -1."""
    moving = np.flatnonzero(moving_shapes(model))
    body = model.shape_body.numpy()
    order = moving[np.argsort(body[moving], kind="stable")]
    starts = np.searchsorted(body[order], np.arange(model.body_count + 1))
    template = batch.template
    shapes, bodies = [np.zeros((batch.count, 0), dtype=int)], []
    for k in range(template.bodies):
        at = batch.body_start + template.body_slot[k]
        number = starts[at + 1] - starts[at]
        rank = np.arange(number.max())
        place = np.minimum(starts[at][:, None] + rank, len(order) - 1)
        shapes.append(np.where(rank < number[:, None], order[place], -1))
        bodies += [k] * len(rank)
    turning = any(name in model.varying or getattr(model, name).numpy().any() for name in TURNING)
    shapes = np.concatenate(shapes, axis=1)
    of = np.repeat(np.arange(len(bodies)), _room(model, shapes))
    couplings = couplings_of(batch)
    numbers = dict(
        colliders=0, candidates=len(of), first_guarded=0, first_hull=0, contact_rows=6 if turning else 3,
        couplings=len(couplings["coupling_kind"]), given=GIVEN * len(of), shapes=0, pairs=0, first_paired=len(of), surface_pairs=0,
        loop_rows=0, loop_block=0, loop_soft=0,
    )  # fmt: skip
    none = np.zeros(0, dtype=int)
    arrays = dict(
        collider_body=none, collider_kind=none, collider_plane=none, collider_candidate=none, hull_at=none, hull_count=none,
        candidate_collider=of, candidate_body=np.array(bodies, dtype=int)[of], plane_finite=none, **NO_PAIRS, **couplings,
    )  # fmt: skip
    tables = ContactTables(numbers, arrays, hull=np.zeros((0, 3)))
    tables.shapes = shapes
    add_pairs(model, batch, tables, fixed=False)
    numbers["given"] = GIVEN * numbers["candidates"]
    return tables


def _motion(model) -> np.ndarray:
    """For each shape 0 if it is fixed, 1 if forces move it, 2 if it moves with a kinematic body, ``[shape_count]`` int32."""
    return np.where(moving_shapes(model, dynamic=True), 1, 2 * moving_shapes(model)).astype(np.int32)


class HandOver:
    """Brings lists of contacts to the candidates of a batch.

    Attributes:
        lanes: ``[blocks, GIVEN * candidates]`` lanes, what the step kernel reads.
        home: of each contact of the last list, the candidate, as the kernel ``place`` counts them; 0: none.
    """

    def __init__(self, model, tables: ContactTables, work: Workspace, laws: ListedLaws | None = None):
        self.model, self.work = model, work
        self.lanes = work.block_lanes(tables.numbers["given"])
        self.home = None
        # how many contacts of the last list may have places; None: graphs write to the places
        self._listed: int | None = 0
        device, places = model.device, self._places(tables)
        self.articulation, self.candidate, self.room, self.second = (
            wp.array(np.concatenate(x), dtype=wp.int32, device=device) for x in zip(*places, strict=True)
        )
        self.moves = wp.array(_motion(model), dtype=wp.int32, device=device)
        self._kinds = edits_of(model).last[KINDS]
        self.material = wp.zeros((len(MATERIALS), model.shape_count), dtype=model.dtype, device=device)
        self._turning = tables.numbers["contact_rows"] > 3
        self._has_laws = laws is not None and tables.laws is not None and tables.laws.handed > 0
        none = np.zeros(0)
        found = (laws.class_of, laws.table, laws.codes, laws.of_pairs) if self._has_laws else (none,) * 4
        self._laws = [
            wp.array(np.ravel(x), dtype=kind, device=device)
            for x, kind in zip(found, (wp.int32, wp.float64, wp.int64, wp.float64), strict=True)
        ]
        self._classes = len(laws.table) if self._has_laws else 0
        self.read()

    def _places(self, tables: ContactTables) -> tuple:
        """Of shapes and of pairs: the articulation of the batch or -1, the first candidate, the number of candidates, and the shape that
        normals point to."""
        articulation = np.full(self.model.shape_count, -1)
        candidate = np.zeros(self.model.shape_count, dtype=int)
        cluster, place = np.nonzero(tables.shapes >= 0)
        shape = tables.shapes[cluster, place]
        slots, room = _room(self.model, tables.shapes), np.zeros(self.model.shape_count, dtype=int)
        articulation[shape], candidate[shape], room[shape] = cluster, (np.cumsum(slots) - slots)[place], slots[place]
        of_shapes = (articulation, candidate, room, np.arange(self.model.shape_count))
        one, two = (tables.pair_shapes[:, tables.arrays[name]].astype(np.int64) for name in ("pair_one", "pair_two"))
        codes = (np.minimum(one, two) << 32) | np.maximum(one, two)
        order = np.argsort(codes, axis=None, kind="stable")
        self.pairs = wp.array(codes.ravel()[order], dtype=wp.int64, device=self.model.device)
        first = tables.arrays["pair_candidate"]
        of_pairs = (np.arange(len(codes))[:, None], first[:-1], np.diff(first), two)
        return of_shapes, tuple(np.broadcast_to(x, codes.shape).ravel()[order] for x in of_pairs)

    def read(self) -> None:
        """Takes materials from the model.

        Raises:
            TablesChanged: contacts need rows about their normal and tangents that they do not have.
        """
        if not self._turning and any(getattr(self.model, name).numpy().any() for name in TURNING):
            raise TablesChanged
        # Warp cannot take rows of an array without columns
        for row, name in enumerate(MATERIALS if self.model.shape_count else ()):
            wp.copy(self.material[row], getattr(self.model, name))
        kinds = edits_of(self.model).last[KINDS]
        if kinds != self._kinds:
            self.moves.assign(_motion(self.model))
            self._kinds = kinds

    def _law_numbers(self) -> tuple[wp.array, int]:
        """The parameters of the batch, as numbers, and where laws are in them."""
        parameters = self.work.parameters
        if not self._has_laws:
            return wp.zeros((0, 0, 0), dtype=self.model.dtype, device=self.model.device), 0
        return as_numbers(parameters.P.varying, self.model.dtype, self.work.m.width), parameters.at["law"]

    def place(self, contacts, used: wp.array) -> None:
        """Puts the contacts of a list where the step kernel finds them; `used` gets 1 for each that found a place."""
        room, device = contacts.rigid_contact_max, self.model.device
        keys, place, clear = hand_over_kernels(self.model.dtype)
        lanes = as_numbers(self.lanes, self.model.dtype, self.work.m.width) if self.lanes.size else self.lanes
        if device.is_capturing or device.is_cuda:
            self._listed = None
        if self._listed is None:
            self.lanes.zero_()
        elif self._listed:
            launch_shared(clear, self._listed, self._listed, [self.home], [lanes], device)
            self._listed = 0
        self.home = wp.zeros(max(room, 1), dtype=wp.int32, device=device)
        if not room or not self.lanes.size:
            return
        if self._listed is not None:
            # the memory of a CPU tells how many contacts there are
            self._listed = room = min(max(int(contacts.rigid_contact_count.numpy()[0]), 0), room)
            if not room:
                return
        law_numbers, law_at = self._law_numbers()
        key, value = (wp.zeros(2 * room, dtype=wp.int32, device=device) for _ in range(2))
        pair = [contacts.rigid_contact_shape0, contacts.rigid_contact_shape1]
        inputs = [contacts.rigid_contact_count, *pair, self.moves, self.model.shape_body, self.pairs]
        launch_shared(keys, room, room, inputs, [key, value], device)
        wp.utils.radix_sort_pairs(key, value, room)
        launch_shared(
            place,
            room,
            room,
            inputs=[
                key, value, self.articulation, self.candidate, self.room, self.second, *pair,
                *(getattr(contacts, f"rigid_contact_{name}") for name in ("point0", "point1", "normal", "margin0", "margin1")),
                *(getattr(self.model, f"shape_{name}") for name in ("body", "type", "transform", "scale")),
                self.material, *self._laws, self._classes, law_at,
            ],
            outputs=[lanes, used, self.home, law_numbers],
            device=device,
        )  # fmt: skip
