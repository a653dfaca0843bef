"""The contacts of a state as a list: :func:`collide`."""

from __future__ import annotations

from functools import cache
from operator import attrgetter, is_
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from newton_like.arrays import active_tape, flat, keep_for_graph, unrecorded
from newton_like.collision.crowds import Crowds, crowd_keys
from newton_like.collision.ground import (
    ContactTables,
    find_colliders,
    refuse_unsupported,
    shape_kinds,
    unsupported_pairs,
)  # fmt: skip
from newton_like.collision.pairs import add_pairs, cluster_kinds, find_clusters, resolved
from newton_like.collision.ration import Ration, lost_of
from newton_like.collision.watch import ShapeWatch
from newton_like.kernels.collision.collect import collect_kernels, detect_kernel
from newton_like.kernels.collision.pairs.records import PAIR_COUNTS
from newton_like.kernels.collision.surfaces.records import SURFACE_WORK
from newton_like.kernels.layout import KINEMATICS, ROWS, STEP_ROWS
from newton_like.model.arguments import arrays_of_state, check_choice, check_made_by
from newton_like.model.editing.edit_checks import check_mesh_scales, check_shape_types
from newton_like.model.editing.edits import (
    ARRAYS,
    FLAGS,
    JOINTS,
    SHAPES,
    kernels_of_edits,
)
from newton_like.model.editing.graphs import add_capture
from newton_like.programs.device import lane_width
from newton_like.programs.parameters import Parameters, TablesChanged
from newton_like.programs.program import Field
from newton_like.programs.recording import Recordings
from newton_like.programs.robot import Kernel, namespace
from newton_like.programs.run import record_launches
from newton_like.programs.template import find_batches
from newton_like.programs.workspace import Workspace, row_sizes
from newton_like.threads import KeptLaunch
from newton_like.types import warp_types

_READ = frozenset((*ARRAYS[JOINTS], *ARRAYS[SHAPES], "body_com", FLAGS))
"""Arrays of parameters that :func:`collide` reads."""

_RECORDED = 16
_LOOKING, _PAIR, _SURFACE = 50, 300, 8000
"""About how many vector operations it takes to look at a candidate, at a pair of shapes on bodies, and at a pair with a height field or a
mesh. They decide how many threads share them."""


@cache
def _detect_kernel(width: int, real, pairs: bool, surfaces: bool):
    return detect_kernel(namespace(width, real, STEP_ROWS), pairs, surfaces)


_OF_PAIRS = [
    ROWS[name] for name in ("shape_place", "pair_shapes", "manifold", "corners", "pair_work", "normal", "surface_work")
]


class _Part:
    """A batch with its colliders, and where :func:`collide` puts its candidates."""

    def __init__(self, model, batch, tables: ContactTables):
        self.batch, self.tables, self.candidates = batch, tables, tables.numbers["candidates"]
        width = lane_width(model.device, model.dtype)
        count, self.before_pairs = self.candidates, tables.numbers["first_paired"]
        results = [
            Field("near", "articulations", 1),
            Field("gap", "batch", 2 * count),
            Field("point", "batch", 3 * count),
        ]
        if count > self.before_pairs:
            results.append(Field("normal", "batch", 3 * (count - self.before_pairs)))
        self.fields = ((Field("body_q", "bodies", 7), Field("body_qd", "bodies", 6)), tuple(results))
        rows = [*KINEMATICS, *(ROWS[field.row] for fields in self.fields for field in fields), *_OF_PAIRS]
        m = namespace(width, model.dtype, STEP_ROWS)
        work = Workspace(m, batch, Parameters(m, model, batch, tables), model.device)
        counts = {
            name: tables.numbers[name] for name in ("candidates", "first_paired", "shapes", "pairs", "surface_pairs")
        }
        sizes = row_sizes(batch.template, dict.fromkeys(rows), **counts, **PAIR_COUNTS, surface_numbers=SURFACE_WORK)
        self.work = work.with_memory(sizes, tables.fields)
        kernel = _detect_kernel(width, model.dtype, counts["pairs"] > 0, counts["surface_pairs"] > 0)
        self.kernel = Kernel(kernel, _LOOKING * count + _PAIR * counts["pairs"] + _SURFACE * counts["surface_pairs"])
        self.recorded = Recordings(_RECORDED, model.device)

    def refresh(self, model) -> None:
        """Takes over what was edited; see :meth:`newton_like.programs.parameters.Parameters.refresh`."""
        parameters = self.work.parameters
        stale, _ = parameters.refresh(model)
        if stale:
            self.recorded.outdate(parameters.freed)

    def find(self, model, inputs, results):
        """Looks at the candidates at poses and velocities of bodies. Returns the recording that was run."""

        def record():
            with unrecorded(model.device, "Model.collide"):
                return record_launches(model, [(self.work, self.kernel)], self.fields, (inputs, results))

        arrays = [*inputs, *results]
        recording = self.recorded.of((), arrays, record, lambda: _READ)
        recording.run_on(arrays)
        return recording


class _Finder:
    """What :func:`collide` needs for a model.

    Attributes:
        found: number of contacts of every articulation, as a real number.
        gap, point: of every contact, the gap and the number of its candidate, and its point. There is room for all candidates of an
            articulation; first: of every articulation the place of its first contact.
        normal: normals of the contacts of pairs; first_normal, before_pairs: of every articulation the place of the first one, and the
            number of candidates that come before those of pairs.
        shape, plane: shape indices of candidates and their steps, ``[2, ...]``; of a pair the second and the first one. row, copy: of every
            articulation the first of its candidates there, and how often the steps are added.
        counts, starts: number of contacts of every articulation, then 0; and how many those before it have.
        unsupported: pairs of shapes that may touch and that are not looked at, ``[n, 2]``.
        crowds: what finds the contacts of worlds with many shapes, whose articulations have no candidates; None: there are none.
        captured: whether graphs read its arrays.
        last: the last call of :func:`collide`, if it can be repeated.
        earlier: the finder of an earlier version of the model, if graphs read its arrays.
    """

    def __init__(self, model, earlier: _Finder | None = None):
        self.version, self.watch, self.unsupported = (
            model.version,
            ShapeWatch(model),
            unsupported_pairs(model, known=resolved),
        )
        self.earlier = earlier if earlier is not None and (earlier.earlier or earlier.captured) else None
        self.captured, self.last = False, None
        crowded = crowd_keys(model)
        self.crowds = _crowds_of(model) if crowded else None
        clusters = find_clusters(model, crowded)
        batches = find_batches(model, cluster_kinds(shape_kinds(model), clusters), clusters) if clusters else []
        tables = [(batch, add_pairs(model, batch, find_colliders(model, batch))) for batch in batches]
        self.parts = [_Part(model, batch, found) for batch, found in tables if found.numbers["candidates"]]
        first, before, first_normal, row, copy = np.zeros((5, model.articulation_count), dtype=np.int32)
        shape, plane, rows, total, ends, normals = [], [], 0, 0, [], [0]
        for part in self.parts:
            n, members = part.candidates, part.batch.articulations
            first[members] = total + n * np.arange(len(members))
            paired = n - part.before_pairs
            before[members] = part.before_pairs
            first_normal[members] = normals[-1] + paired * np.arange(len(members))
            normals.append(normals[-1] + paired * len(members))
            found, of = part.tables, part.tables.arrays["candidate_collider"]
            of, pair = of[: part.before_pairs], of[part.before_pairs :]
            one, two = (found.pair_shapes[:, found.arrays[name][pair]] for name in ("pair_one", "pair_two"))
            both = [
                np.concatenate([found.shapes[:, of], two], axis=1),
                np.concatenate([found.planes[:, of], one], axis=1),
            ]
            steps = [indices[-1:] - indices[-2:-1] if len(indices) > 1 else 0 * indices for indices in both]
            copies = np.arange(len(members))
            if all((x == x[:1] + copies[:, None] * step).all() for x, step in zip(both, steps, strict=True)):
                # robots that are evenly spaced in the model share a row
                row[members], copy[members], both = rows, copies, [x[:1] for x in both]
            else:
                row[members], steps = rows + n * copies, [np.zeros_like(x) for x in both]
            rows += both[0].size
            for indices, x, step in zip((shape, plane), both, steps, strict=True):
                indices.append(np.stack([x.ravel(), step.ravel()]))
            ends.append((total, total := total + n * len(members)))
        self.found = wp.zeros(model.articulation_count, dtype=model.dtype, device=model.device)
        self.gap = wp.zeros(2 * total, dtype=model.dtype, device=model.device)
        vec3 = warp_types(model.dtype).vec3
        self.point = wp.zeros(total, dtype=vec3, device=model.device)
        self.normal = wp.zeros(normals[-1], dtype=vec3, device=model.device)
        shape, plane = (np.concatenate([*x, np.zeros((2, 0), int)], axis=1) for x in (shape, plane))
        self.first, self.shape, self.plane, self.first_normal, self.before_pairs, self.row, self.copy = (
            wp.array(x, dtype=wp.int32, device=model.device)
            for x in (first, shape, plane, first_normal, before, row, copy)
        )
        self.counts, self.starts = (
            wp.zeros(model.articulation_count + 1, dtype=wp.int32, device=model.device) for _ in range(2)
        )
        self.results = [
            [self.found, self.gap[2 * start : 2 * end], flat(self.point[start:end], model.dtype)] for start, end in ends
        ]
        for results, start, end in zip(self.results, normals[:-1], normals[1:], strict=True):
            if end > start:
                results.append(flat(self.normal[start:end], model.dtype))
        self.adding_up, self.writing = KeptLaunch(), KeptLaunch()
        self.nothing = wp.zeros(0, dtype=wp.int32, device=model.device)
        # on a CPU the memory of the number of contacts is read at once
        self.tally = self.starts.numpy() if model.device.is_cpu else None
        self._ration = None

    def refresh(self, model) -> bool:
        """Takes over what was edited. Returns whether that is possible; else other candidates are needed."""
        current = False
        try:
            if not self.watch.changed(model):
                for part in self.parts:
                    part.refresh(model)
                current = True
        except TablesChanged:
            pass
        finally:
            # graphs go on with this finder, which nobody refreshes any more
            for graphs in () if current else self.graphs():
                graphs.outdate()
        self.version = model.version
        return current

    def ration(self, model, contacts) -> Ration | None:
        """Chooses the contacts that a list keeps, after those of articulations were counted, and those of crowds found. Returns what
        chooses among those of crowds; None: there is room for all."""
        room, crowds = contacts.rigid_contact_max, self.crowds
        known = self.tally is not None and not model.device.is_capturing
        contacts.short = known and bool(self.tally[-1] + (0 if crowds is None else crowds.count) > room)
        if known and not contacts.short:
            return None
        if self._ration is None:
            with unrecorded(model.device, "Model.collide"):
                self._ration = Ration(model) if crowds is None else Ration(model, crowds.worlds, crowds.rows)
        ration = self._ration
        ration.share(room, self.starts, lost_of(model, contacts), () if crowds is None else crowds.pairs)
        if self.parts:
            ration.choose(self.first, self.gap, self.starts)
        return ration

    def graphs(self) -> list:
        """The graphs that repeat launches of its parts."""
        return [part.recorded.graphs for part in self.parts]

    def follow_edits(self, model) -> None:
        """Takes over edits of the model for these graphs."""
        _finder(model)

    def find(self, model, body_q: wp.array, body_qd: wp.array) -> list:
        """Looks at all candidates at poses and velocities of bodies, numbers in a row. Returns the recordings that were run."""
        return [
            part.find(model, [body_q, body_qd], results) for part, results in zip(self.parts, self.results, strict=True)
        ]


_OF_STATE = attrgetter("body_q", "body_qd")
_OF_LIST = attrgetter(
    *(f"rigid_contact_{name}" for name in ("count", "shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1")), "force"
)  # fmt: skip
_OF_MODEL = attrgetter("shape_body", "shape_transform", "shape_margin")


class _Call:
    """A call of :func:`collide`, whose launches are repeated if the next call has the same arrays. For a few worlds, checks and the search
    for recordings take longer than the launches."""

    def __init__(self, model, finder: _Finder, state, contacts, choice: str, recordings: list):
        self.finder, self.version, self.choice, self.recordings = finder, model.version, choice, recordings
        self.arrays = self._arrays(model, state, contacts)

    @staticmethod
    def _arrays(model, state, contacts) -> tuple:
        return *_OF_STATE(state), *_OF_LIST(contacts), *_OF_MODEL(model)

    def repeat(self, model, state, contacts, choice: str) -> bool:
        """Repeats the call, if the arguments are the same. Returns whether it did."""
        if (
            model.version != self.version
            or choice != self.choice
            or model.device.is_capturing
            or active_tape() is not None
        ):
            return False
        try:
            arrays = self._arrays(model, state, contacts)
        except AttributeError:
            return False
        if not all(map(is_, arrays, self.arrays)):
            return False
        if contacts.force is not None:
            contacts.force.zero_()
        for recording in self.recordings:
            recording.run()
        self.finder.adding_up.repeat()
        contacts.short = bool(self.finder.tally[-1] > contacts.rigid_contact_max)
        if contacts.short:
            self.finder.ration(model, contacts)
        self.finder.writing.repeat()
        return True


def _finder(model) -> _Finder:
    finder = getattr(model, "_contact_finder", None)
    if finder is None or finder.version != model.version:
        with unrecorded(model.device, "Model.collide of a model that is new or edited"):
            # after an error everything is made again
            model._contact_finder = None
            if finder is None or not finder.refresh(model):
                finder = _Finder(model, finder)
            model._contact_finder = finder
    return finder


_crowds_ahead: WeakKeyDictionary = WeakKeyDictionary()
"""Versions of models, and their crowds, which the finder of a first :func:`collide` takes."""


def kernels_ahead(model) -> list:
    """The kernels that a first :func:`collide` of a model loads, as far as they are known before it; the largest one first."""
    if getattr(model, "_contact_finder", None) is not None:
        return []
    check_shape_types(model)
    check_mesh_scales(model)
    found = [collect_kernels(model.dtype)[1], *kernels_of_edits(model)]
    if crowd_keys(model):
        crowds = Crowds(model)
        _crowds_ahead[model] = model.version, crowds
        found = crowds.kernels() + found
    return found


def _crowds_of(model) -> Crowds:
    version, crowds = _crowds_ahead.pop(model, (None, None))
    return crowds if crowds is not None and version == model.version else Crowds(model)


def check_contacts(model, contacts) -> None:
    """Checks a list of contacts.

    Raises:
        TypeError: it is not a list of contacts.
        ValueError: another model made it, or it is on another device than the model, or of another scalar type.
    """
    if not hasattr(contacts, "rigid_contact_normal"):
        order = (
            "; the order of a step is step(state_in, state_out, control, contacts, dt)" if np.isscalar(contacts) else ""
        )
        raise TypeError(
            f"contacts must be Contacts, as model.contacts() makes them, not {type(contacts).__name__}{order}"
        )
    if contacts.rigid_contact_normal.dtype is not warp_types(model.dtype).vec3 or contacts.device != model.device:
        raise ValueError("contacts belong to another model (device or scalar type); they come from model.contacts()")
    check_made_by(model, contacts, "contacts", "use contacts made by model.contacts() of the given model")
    if getattr(contacts, "world_count", model.world_count) != model.world_count:
        with unrecorded(model.device, "a list of contacts that the user made"):
            contacts.set_world_count(model.world_count)


def collide(model, state, contacts, unsupported_contacts: str = "error", moves: wp.array | None = None) -> None:
    """Finds the contacts of moving shapes with planes, with other moving shapes, and with fixed convex shapes, meshes and height fields.

    Contacts are in the order of clusters, see :mod:`newton_like.programs.template`, and within one those with planes come first. Those of
    worlds with more than 64 shapes on bodies come last, shape by shape. Shape 0
    is the plane, shape 1 the moving shape; of two other shapes, shape 0 is that of the simpler kind. Normals point from shape 0 to shape 1.
    Where there is no room for all contacts, each world keeps about the same number, those with the smallest gaps; the contacts are then
    in the order of worlds, and within one in the order above. ``contacts.dropped`` and ``contacts.dropped_by_world`` tell how many are
    dropped.

    Args:
        model: the model.
        state: its ``body_q`` and ``body_qd`` are read.
        contacts: where the contacts go, from ``model.contacts()``.
        unsupported_contacts: ``"error"``, or ``"ignore"``: pairs whose contacts are not found are ignored, such as those
            with planes and height fields on moving bodies.
        moves: of each shape, zero if it does not move, for worlds with many shapes: contacts of two shapes that do not move are left out.

    Raises:
        TypeError: ``state`` is not a state, or of another scalar type; ``contacts`` are not a list of contacts.
        ValueError: ``state`` or ``contacts`` belong to another model; shapes may touch whose contacts are not found; an unknown choice.
        RuntimeError: a tape records, and the state requires gradients; or a graph is captured on a CPU, and a world has more than 64 shapes
            on bodies.
    """
    last = getattr(getattr(model, "_contact_finder", None), "last", None)
    if last is not None and moves is None and last.repeat(model, state, contacts, unsupported_contacts):
        return
    check_choice(unsupported_contacts, "unsupported_contacts", ("error", "ignore"))
    body_q, body_qd = arrays_of_state(model, state, "body_q", "body_qd")
    check_contacts(model, contacts)
    if active_tape() is not None and (body_q.requires_grad or body_qd.requires_grad):
        raise RuntimeError(
            "model.collide has no gradients, but a tape is recording and the state requires a gradient; use "
            "newton_like.dynamics.SoftContact or RigidContact, which have gradients, or call collide outside of the tape"
        )
    force = getattr(contacts, "force", None)
    if force is not None:
        force.zero_()
    finder, total = _finder(model), model.articulation_count
    if unsupported_contacts == "error":
        refuse_unsupported(model, finder.unsupported, "collide finds")
    if finder.crowds is not None:
        finder.crowds.check_capture()
    finder.last = None
    recordings = finder.find(model, flat(body_q, model.dtype), flat(body_qd, model.dtype))
    counts, starts = finder.counts, finder.starts
    if model.device.is_capturing:
        finder.captured = True
        add_capture(model, finder)
        keep_for_graph(model.device, model, finder, contacts)
    count, add_up, write = collect_kernels(model.dtype)
    if model.device.is_cpu:
        length = contacts.rigid_contact_count if finder.crowds is None else finder.nothing
        finder.adding_up(add_up, 1, 1, [finder.found], [starts, length], model.device)
    elif finder.parts:
        wp.launch(count, dim=total, inputs=[finder.found], outputs=[counts], device=model.device)
        wp.utils.array_scan(counts, starts, inclusive=False)
    search = None
    if finder.crowds is not None:
        numbers = flat(body_q, model.dtype), flat(body_qd, model.dtype)
        search = finder.crowds.search(model, *numbers, contacts, starts[total:], moves)
    ration = finder.ration(model, contacts)
    finder.writing(
        write,
        total if finder.parts else 0,
        finder.point.size,
        inputs=[
            finder.found, finder.first, finder.first_normal, finder.gap, finder.point, finder.normal, finder.before_pairs, finder.row,
            finder.copy, finder.shape, finder.plane, starts, model.shape_body, model.shape_transform, model.shape_margin, body_q,
        ],
        outputs=[
            contacts.rigid_contact_shape0, contacts.rigid_contact_shape1, contacts.rigid_contact_point0,
            contacts.rigid_contact_point1, contacts.rigid_contact_normal, contacts.rigid_contact_margin0,
            contacts.rigid_contact_margin1,
        ],
        device=model.device,
    )  # fmt: skip
    if search is not None:
        finder.crowds.list(search, ration)
    elif model.device.is_cuda:
        wp.copy(contacts.rigid_contact_count, starts, src_offset=total, count=1)
    elif not model.device.is_capturing:
        finder.last = _Call(model, finder, state, contacts, unsupported_contacts, recordings)
