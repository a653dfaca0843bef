"""The contacts of a state as a list: :func:`collide`, and handing such a list to a solver."""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

from newton_like.arrays import as_numbers, check_recorded, flat
from newton_like.collision.ground import ContactTables, couplings_of, find_colliders, moving_shapes, shape_kinds
from newton_like.kernels.collision.collect import collect_kernels, detect_kernel, hand_over_kernels
from newton_like.kernels.layout import KINEMATICS, ROWS, STEP_ROWS
from newton_like.kernels.tree import GIVEN
from newton_like.programs.device import lane_width
from newton_like.programs.parameters import gather_parameters
from newton_like.programs.program import Field
from newton_like.programs.recording import Recordings
from newton_like.programs.robot import Kernel, namespace
from newton_like.programs.run import record_launches
from newton_like.programs.template import find_batches
from newton_like.programs.workspace import Workspace, row_sizes
from newton_like.types import warp_types

SLOTS = 8
"""Contacts of one shape that a solver takes from a list."""

_RECORDED = 16
_LOOKING = 50
"""Vector operations that looking at a candidate is worth."""


@cache
def _detect_kernel(width: int, real):
    return detect_kernel(namespace(width, real, STEP_ROWS))


class _Finder:
    """What :func:`collide` needs for a model: a workspace for each batch that has colliders, and the candidates of all articulations.

    Attributes:
        near, gap, point: what is known of candidates, ``[articulations, candidates]``; articulations with fewer than others have the first.
        shape, plane: shape indices of candidates.
    """

    def __init__(self, model):
        self.version = model.version
        found = [(batch, find_colliders(model, batch)) for batch in find_batches(model, shape_kinds(model))]
        found = [(batch, tables) for batch, tables in found if tables.numbers["candidates"]]
        most = max((tables.numbers["candidates"] for _, tables in found), default=0)
        width = lane_width(model.device, model.dtype)
        shape = (model.articulation_count, most)
        self.near, self.gap = (wp.zeros(shape, dtype=model.dtype, device=model.device) for _ in range(2))
        self.point = wp.zeros(shape, dtype=warp_types(model.dtype).vec3, device=model.device)
        self.results = [flat(a, model.dtype) for a in (self.near, self.gap, self.point)]
        self.fields = (
            (Field("body_q", "bodies", 7), Field("body_qd", "bodies", 6)),
            (Field("near", "articulations", most), Field("gap", "articulations", most), Field("point", "articulations", 3 * most)),
        )  # fmt: skip
        rows = [*KINEMATICS, *(ROWS[field.row] for fields in self.fields for field in fields)]
        index = np.zeros((2, *shape), dtype=np.int32)
        self.batches = []
        for batch, tables in found:
            parameters = gather_parameters(model, batch, tables.parameters)
            work = Workspace(namespace(width, model.dtype, STEP_ROWS), batch, parameters, model.device)
            sizes = row_sizes(batch.template, rows, candidates=most)
            work = work.with_memory(sizes, {**tables.numbers, **tables.arrays})
            self.batches.append((work, Kernel(_detect_kernel(width, model.dtype), _LOOKING * most)))
            of = tables.arrays["candidate_collider"]
            for one, shapes in zip(index, (tables.shapes, tables.planes), strict=True):
                one[batch.articulations, : len(of)] = shapes[:, of]
        self.shape, self.plane = (wp.array(one, dtype=wp.int32, device=model.device) for one in index)
        self.recorded = Recordings(_RECORDED, model.device)

    def find(self, model, body_q: wp.array, body_qd: wp.array) -> None:
        """Looks at the candidates at poses and velocities of bodies, numbers in a row."""
        inputs = [body_q, body_qd]

        def record():
            check_recorded(model.device, "Model.collide")
            return record_launches(model, self.batches, self.fields, (inputs, self.results))

        arrays = [*inputs, *self.results]
        self.recorded.of(("collide",), arrays, record).run_on(arrays)


def _finder(model) -> _Finder:
    finder = getattr(model, "_contact_finder", None)
    if finder is None or finder.version != model.version:
        finder = model._contact_finder = _Finder(model)
    return finder


def collide(model, state, contacts) -> None:
    """Finds the contacts of moving shapes with planes, in the order of articulations and, within one, of shapes.

    Shape 0 is the plane, shape 1 the moving shape. Where there is no room for all contacts, the last ones are left out and
    ``contacts.dropped`` tells how many.

    Args:
        model: the model.
        state: its ``body_q`` and ``body_qd`` are read.
        contacts: where the contacts go, from ``model.contacts()``.

    Raises:
        ValueError: ``state`` belongs to another model.
    """
    if state.body_q.shape[0] != model.body_count:
        raise ValueError(
            f"state has {state.body_q.shape[0]} bodies, the model {model.body_count}; states come from model.state()"
        )
    finder, total = _finder(model), model.articulation_count
    finder.find(model, flat(state.body_q, model.dtype), flat(state.body_qd, model.dtype))
    counts, starts = (wp.zeros(total + 1, dtype=wp.int32, device=model.device) for _ in range(2))
    count, write = collect_kernels(model.dtype)
    wp.launch(count, dim=total, inputs=[finder.near, counts], device=model.device)
    wp.utils.array_scan(counts, starts, inclusive=False)
    wp.launch(
        write,
        dim=total,
        inputs=[
            finder.near, finder.gap, finder.point, finder.shape, finder.plane, starts,
            model.shape_body, model.shape_transform, model.shape_margin, state.body_q,
        ],
        outputs=[
            contacts.rigid_contact_shape0, contacts.rigid_contact_shape1, contacts.rigid_contact_point0,
            contacts.rigid_contact_point1, contacts.rigid_contact_normal, contacts.rigid_contact_margin0,
            contacts.rigid_contact_margin1,
        ],
        device=model.device,
    )  # fmt: skip
    wp.copy(contacts.rigid_contact_count, starts, src_offset=total, count=1)


def given_tables(model, batch) -> ContactTables:
    """Candidates for contacts that are handed over: SLOTS for every moving shape of the batch."""
    moving = np.flatnonzero(moving_shapes(model))
    body = model.shape_body.numpy()
    order = moving[np.argsort(body[moving], kind="stable")]
    starts = np.searchsorted(body[order], np.arange(model.body_count + 1))
    template = batch.template
    shapes, bodies = [[] for _ in range(batch.count)], []
    for k in range(template.bodies):
        at = batch.body_start + template.body_slot[k]
        lists = [order[starts[x] : starts[x + 1]] for x in at.tolist()]
        bodies += [k] * len(lists[0])
        for a, x in enumerate(lists):
            shapes[a] += x.tolist()
    material = materials(model)
    of = np.repeat(np.arange(len(bodies)), SLOTS)
    couplings = couplings_of(batch)
    numbers = dict(
        colliders=0, candidates=len(of), first_guarded=0, first_hull=0, contact_rows=6 if material[:, 4:].any() else 3,
        couplings=len(couplings["coupling_kind"]), given=GIVEN * len(of),
    )  # fmt: skip
    none = np.zeros(0, dtype=int)
    arrays = dict(
        collider_body=none, collider_kind=none, collider_plane=none, collider_candidate=none, hull_at=none, hull_count=none,
        candidate_collider=of, candidate_body=np.array(bodies, dtype=int)[of], plane_finite=none, **couplings,
    )  # fmt: skip
    tables = ContactTables(numbers, arrays)
    tables.shapes = np.array(shapes, dtype=int).reshape(batch.count, len(bodies))
    return tables


def materials(model) -> np.ndarray:
    """``[shape_count, 6]``: mu, restitution, time constant, damping ratio, torsional and rolling friction."""
    names = ("mu", "restitution", "time_constant", "damping_ratio", "mu_torsional", "mu_rolling")
    return np.stack([getattr(model, f"shape_material_{name}").numpy() for name in names], axis=1)


class HandOver:
    """Brings lists of contacts to the candidates of a batch.

    Attributes:
        lanes: ``[blocks, GIVEN * candidates]`` lanes, what the step kernel reads.
    """

    def __init__(self, model, tables: ContactTables, work: Workspace):
        self.model, self.work = model, work
        self.lanes = work.block_lanes(tables.numbers["given"])
        articulation = np.full(model.shape_count, -1, dtype=np.int32)
        candidate = np.zeros(model.shape_count, dtype=np.int32)
        articulation[tables.shapes] = np.arange(tables.shapes.shape[0])[:, None]
        candidate[tables.shapes] = SLOTS * np.arange(tables.shapes.shape[1])
        device = model.device
        self.articulation = wp.array(articulation, dtype=wp.int32, device=device)
        self.candidate = wp.array(candidate, dtype=wp.int32, device=device)
        self.moving = wp.array(moving_shapes(model), dtype=wp.bool, device=device)
        self.material = wp.array(materials(model), dtype=model.dtype, device=device)

    def place(self, contacts, used: wp.array) -> None:
        """Puts the contacts of a list where the step kernel finds them; `used` gets 1 for each that found a place."""
        room, device = contacts.rigid_contact_max, self.model.device
        self.lanes.zero_()
        if not room or not self.lanes.size:
            return
        keys, place = hand_over_kernels(self.model.dtype)
        key = wp.zeros(2 * room, dtype=wp.int32, device=device)
        value = wp.zeros(2 * room, dtype=wp.int32, device=device)
        pair = [contacts.rigid_contact_shape0, contacts.rigid_contact_shape1]
        wp.launch(keys, dim=room, inputs=[contacts.rigid_contact_count, *pair, self.moving, key, value], device=device)
        wp.utils.radix_sort_pairs(key, value, room)
        wp.launch(
            place,
            dim=room,
            inputs=[
                key, value, SLOTS, self.articulation, self.candidate, *pair, contacts.rigid_contact_point0, contacts.rigid_contact_point1,
                contacts.rigid_contact_normal, contacts.rigid_contact_margin0, contacts.rigid_contact_margin1, self.material,
                as_numbers(self.lanes, self.model.dtype, self.work.m.width), used,
            ],
            device=device,
        )  # fmt: skip
