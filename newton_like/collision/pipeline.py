"""The contacts of a state as a list: :func:`collide`, and handing such a list to a solver."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import as_numbers, flat
from newton_like.collision.ground import ContactTables, couplings_of, find_colliders, moving_shapes, shape_kinds
from newton_like.kernels.collision.collect import (
    FOUND,
    collect_kernels,
    detect_kernel,
    hand_over_kernels,
)
from newton_like.kernels.layout import KINEMATICS, ROWS, STEP_ROWS
from newton_like.kernels.programs import programs
from newton_like.kernels.tree import GIVEN
from newton_like.programs.device import lane_width
from newton_like.programs.parameters import gather_parameters
from newton_like.programs.template import find_batches
from newton_like.programs.threads import run_shared
from newton_like.programs.workspace import Workspace, row_sizes

LOOKAHEAD = 1.0 / 120.0
"""Contacts are found where shapes come within their gap of each other in twice this time [s]."""

SLOTS = 8
"""Contacts of one shape that a solver takes from a list."""


class _Finder:
    """What :func:`collide` keeps for a model: a workspace for each batch that has colliders."""

    def __init__(self, model):
        self.version = model.version
        self.width = lane_width(model.device, model.dtype)
        self.parts = []
        for batch in find_batches(model, shape_kinds(model)):
            tables = find_colliders(model, batch)
            if not tables.numbers["candidates"]:
                continue
            parameters = gather_parameters(model, batch, tables.parameters)
            rows = (*KINEMATICS, *(ROWS[name] for name in ("near", "gap", "point", "body_q", "body_qd")))
            sizes = row_sizes(batch.template, rows, candidates=tables.numbers["candidates"])
            # where bodies lie in the arrays, gaps included
            fields = {**tables.numbers, **tables.arrays, "body_slot": batch.template.body_slot}
            work = Workspace(programs(self.width, model.dtype, STEP_ROWS), batch, parameters, model.device)
            work = work.with_memory(sizes, fields)
            found = work.kept(FOUND * tables.numbers["candidates"])
            index = [
                wp.array(np.ascontiguousarray(x), dtype=wp.int32, device=model.device)
                for x in (tables.shapes, tables.planes)
            ]
            self.parts.append((batch, work, found, *index))


def _finder(model) -> _Finder:
    kept = getattr(model, "_contact_finder", None)
    if kept is None or kept.version != model.version:
        kept = model._contact_finder = _Finder(model)
    return kept


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
    finder = _finder(model)
    device, real = model.device, model.dtype
    count, write = collect_kernels(real)
    detect = detect_kernel(finder.width, real)
    total = model.articulation_count
    counts = wp.zeros(total + 1, dtype=wp.int32, device=device)
    starts = wp.zeros(total + 1, dtype=wp.int32, device=device)
    body_q, body_qd = flat(state.body_q, real), flat(state.body_qd, real)
    for batch, work, found, _, _ in finder.parts:
        place = [batch.count, int(batch.body_start[0]), batch.stride(batch.body_start), real(LOOKAHEAD)]
        run_shared(
            work.record(
                detect, lambda i, w=work, p=place, f=found: [*p, w.T, w.P, w.L, body_q, body_qd, w.memory[i], f]
            )
        )
        inputs = [*_places(batch), work.numbers["candidates"], as_numbers(found, real, finder.width), counts]
        wp.launch(count, dim=batch.count, inputs=inputs, device=device)
    wp.utils.array_scan(counts, starts, inclusive=False)
    for batch, work, found, shapes, planes in finder.parts:
        wp.launch(
            write,
            dim=batch.count,
            inputs=[
                *_places(batch), work.numbers["candidates"], as_numbers(found, real, finder.width), work.T.candidate_collider,
                shapes, planes, starts,
                model.shape_body, model.shape_transform, model.shape_margin, state.body_q,
            ],
            outputs=[
                contacts.rigid_contact_shape0, contacts.rigid_contact_shape1, contacts.rigid_contact_point0,
                contacts.rigid_contact_point1, contacts.rigid_contact_normal, contacts.rigid_contact_margin0,
                contacts.rigid_contact_margin1,
            ],
            device=device,
        )  # fmt: skip
    wp.copy(contacts.rigid_contact_count, starts, src_offset=total, count=1)


def _places(batch) -> list[int]:
    """Index of the first articulation of a batch, and the stride to the next one."""
    return [int(batch.articulations[0]), batch.stride(batch.articulations)]


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
        self.lanes = work.kept(tables.numbers["given"])
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
