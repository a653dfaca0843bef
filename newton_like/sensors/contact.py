"""Contact sensors: forces on chosen bodies or shapes, also apart by what touches them."""

from __future__ import annotations

import logging
from typing import Never

import numpy as np
import warp as wp

from newton_like.arrays import keep_for_graph, unrecorded
from newton_like.coercion import as_flag
from newton_like.collision.pipeline import check_contacts
from newton_like.kernels.sensors.contact import sensor_kernels
from newton_like.model.arguments import check_array, check_made_by, check_model
from newton_like.model.contacts import FORCE
from newton_like.model.labels import match_labels
from newton_like.options import check_option, refuse_options
from newton_like.types import warp_types

log = logging.getLogger("newton_like")

_PLURAL = {"body": "bodies", "shape": "shapes"}


def _chosen(model, pattern, kind: str, argument: str) -> list[int]:
    """Indices of the bodies or shapes that a pattern or a list of indices names, in the order of a list.

    Raises:
        TypeError: neither patterns nor indices.
        ValueError: nothing matches, or an index occurs twice.
        IndexError: an index does not exist.
    """
    labels = getattr(model, f"{kind}_label")
    found = [int(i) for i in match_labels(labels, pattern)]
    if not found:
        shown = ", ".join(repr(x) for x in list(dict.fromkeys(labels))[:8]) or "none"
        raise ValueError(f"{argument} {pattern!r} matches no {kind}; labels of {_PLURAL[kind]}: {shown}")
    seen = set()
    for i in found:
        if not 0 <= i < len(labels):
            raise IndexError(f"{argument}: {kind} {i} does not exist; the model has {len(labels)}")
        if i in seen:
            raise ValueError(f"{argument}: {kind} {i} occurs twice; give each index once")
        seen.add(i)
    return found


def _worlds(model, kind: str) -> np.ndarray:
    """The world of each body or shape. A model that was built without worlds is one world."""
    worlds = getattr(model, f"{kind}_world").numpy()
    if model.world_count <= 1 and (worlds < 0).all():
        return np.zeros_like(worlds)
    return worlds


class SensorContact:
    """Forces of contacts on chosen bodies or shapes (the sensing objects), in total and apart by chosen counterparts.

    Names and layout are those of Newton. Rows are sensing objects. Column j of row i belongs to the counterpart
    ``counterpart_indices[i][j]``; rows with fewer counterparts than others end with zeros. Worlds share columns: counterparts that belong
    to all worlds come first, those of the own world follow. Sums are in the order of the list of contacts, with equal bits in each run.

    Example::

        sensor = SensorContact(model, sensing_bodies="*_foot", counterpart_shapes="ground*")
        contacts = model.contacts()
        solver.step(state, state, control, dt=1 / 240)
        solver.update_contacts(contacts, state)
        sensor.update(state, contacts)
        sensor.total_force.numpy()

    Attributes:
        sensing_indices: body or shape of each row: in the order of a list of indices, else ascending.
        sensing_type: ``"body"`` or ``"shape"``.
        counterpart_indices: bodies or shapes of the columns of each row; rows of one world share the list.
        counterpart_type: ``"body"``, ``"shape"``, or None without counterparts.
        total_force: force on each sensing object [N], world axes, ``[rows]`` vec3; None with ``measure_total=False``.
        total_force_friction: the part of it that is tangential to the contacts.
        force_matrix: force on each sensing object by each counterpart [N], ``[rows, columns]`` vec3; None without counterparts.
        force_matrix_friction: the part of it that is tangential to the contacts.
        position_matrix: mean of the contact points of each pair, weighted by the sizes of their forces [m], world frame,
            ``[rows, columns]`` vec3; zero without force; None without counterparts.
        sensing_transforms: pose of each sensing object in the world, ``[rows]`` transforms.
    """

    def __init__(
        self,
        model,
        *,
        sensing_bodies=None,
        sensing_shapes=None,
        counterpart_bodies=None,
        counterpart_shapes=None,
        measure_total: bool = True,
        verbose: bool | None = None,
        request_contact_attributes: bool = True,
        **others: Never,
    ):
        """Makes a sensor.

        Args:
            model: the model.
            sensing_bodies, sensing_shapes: one of both: shell-style pattern of labels, list of such patterns, compiled regular expression
                of whole labels, or list of indices. Sensing objects belong to a world, unless the model was built without worlds.
            counterpart_bodies, counterpart_shapes: none or one of both, likewise.
            measure_total: whether to compute ``total_force`` and ``total_force_friction``.
            verbose: log numbers of rows and columns.
            request_contact_attributes: call ``model.request_contact_attributes("force")``, so that steps keep their contacts.

        Raises:
            TypeError: `model` is not a model; a pattern of another type.
            ValueError: none or both of the sensing arguments, or both counterpart arguments; a pattern that matches nothing; a repeated
                index; a sensing object that belongs to all worlds; nothing to measure.
            IndexError: an index that does not exist.
        """
        if others:
            refuse_options(SensorContact.__init__, others)
        self._model = model = check_model(model)
        if (sensing_bodies is None) == (sensing_shapes is None):
            raise ValueError("give one of sensing_bodies and sensing_shapes")
        if counterpart_bodies is not None and counterpart_shapes is not None:
            raise ValueError("give at most one of counterpart_bodies and counterpart_shapes")
        measured = as_flag(measure_total, "measure_total")
        self.sensing_type = "body" if sensing_shapes is None else "shape"
        self.counterpart_type = None
        if counterpart_bodies is not None or counterpart_shapes is not None:
            self.counterpart_type = "body" if counterpart_shapes is None else "shape"
        elif not measured:
            raise ValueError("the sensor would measure nothing: give counterparts, or omit measure_total=False")
        pattern = sensing_bodies if sensing_shapes is None else sensing_shapes
        argument = f"sensing_{_PLURAL[self.sensing_type]}"
        self.sensing_indices = _chosen(model, pattern, self.sensing_type, argument)
        worlds = _worlds(model, self.sensing_type)[self.sensing_indices]
        if (worlds < 0).any():
            i = self.sensing_indices[int(np.argmax(worlds < 0))]
            label = getattr(model, f"{self.sensing_type}_label")[i]
            raise ValueError(
                f"{argument}: {self.sensing_type} '{label}' (index {i}) belongs to all worlds, so that its force has no row for each; take"
                " it as a counterpart"
            )
        rows, self.device = len(self.sensing_indices), model.device
        column_of, columns = self._columns(
            worlds, counterpart_bodies if counterpart_shapes is None else counterpart_shapes
        )
        row_of = np.full(len(getattr(model, f"{self.sensing_type}_label")), -1)
        row_of[self.sensing_indices] = np.arange(rows)
        vec3 = warp_types(model.dtype).vec3

        def zeros(*shape, dtype=vec3):
            return wp.zeros(shape, dtype=dtype, device=model.device)

        self._sensing_shape_to_row = self._by_shape(row_of, self.sensing_type)
        self._counterpart_shape_to_col = self._by_shape(column_of, self.counterpart_type)
        self._indices, self._row_world = (
            wp.array(np.asarray(x), dtype=wp.int32, device=model.device)
            for x in (self.sensing_indices, np.where(model.world_count > 1, worlds, -1))
        )
        # kernels take empty arrays for what is not measured
        self._total = [zeros(rows if measured else 0) for _ in range(2)]
        self._matrix = [zeros(rows, columns) for _ in range(3)]
        self._weight = zeros(rows, columns, dtype=model.dtype)
        self._entries: list[wp.array] = []
        self._no_poses = zeros(0, dtype=warp_types(model.dtype).transform)
        self.total_force, self.total_force_friction = self._total if measured else (None, None)
        self.force_matrix, self.force_matrix_friction, self.position_matrix = (
            self._matrix if self.counterpart_type else (None, None, None)
        )
        self.sensing_transforms = zeros(rows, dtype=warp_types(model.dtype).transform)
        if request_contact_attributes:
            model.request_contact_attributes(FORCE)
        if verbose:
            log.info("contact sensor: %d %s, %d columns", rows, _PLURAL[self.sensing_type], columns)

    def _columns(self, worlds: np.ndarray, pattern) -> tuple[np.ndarray, int]:
        """The column of each body or shape, -1 for none, and the number of columns. Lists the counterparts of each row."""
        kind = self.counterpart_type
        if kind is None:
            self.counterpart_indices = [[]] * len(worlds)
            return np.zeros(0, dtype=int), 0
        chosen = np.array(sorted(_chosen(self._model, pattern, kind, f"counterpart_{_PLURAL[kind]}")))
        where = _worlds(self._model, kind)[chosen]
        shared = chosen[where < 0]
        column_of = np.full(len(getattr(self._model, f"{kind}_label")), -1)
        column_of[shared] = np.arange(len(shared))
        own, lists = [chosen[where == w] for w in range(self._model.world_count)], []
        for members in own:
            column_of[members] = len(shared) + np.arange(len(members))
            lists.append([*shared.tolist(), *members.tolist()])
        self.counterpart_indices = [lists[w] for w in worlds]
        return column_of, max(map(len, lists))

    def _by_shape(self, numbers: np.ndarray, kind: str | None) -> wp.array:
        """Numbers of bodies or shapes as numbers of shapes; -1 for shapes on no body."""
        if kind == "body":
            numbers = np.append(numbers, -1)[self._model.shape_body.numpy()]
        elif kind is None:
            numbers = np.full(self._model.shape_count, -1)
        return wp.array(numbers, dtype=wp.int32, device=self._model.device)

    def update(self, state, contacts, *, observables=None) -> None:
        """Measures.

        Args:
            state: its ``body_q`` is read, for poses and positions of contacts; None, or a state without: poses stay, and positions are
                zero.
            contacts: contacts with forces, from :meth:`newton_like.solvers.SolverFeatherstone.update_contacts`.
            observables: must be None: forces are those of ``contacts.force``.

        Raises:
            TypeError: ``contacts`` are not a list of contacts; an array of another scalar type.
            ValueError: ``contacts`` have no forces, or belong to another model or device, as ``state`` may.
        """
        observed = {"observables": (None, "forces come from solver.update_contacts(contacts, state)")}
        check_option("SensorContact.update", "observables", observables, observed, ())
        model, kernels = self._model, sensor_kernels(self._model.dtype)
        check_contacts(model, contacts)
        if contacts.force is None:
            raise ValueError(
                "contacts have no forces: make them with model.contacts() after model.request_contact_attributes('force')"
                " (SensorContact(model, ...) calls it), and fill them with solver.update_contacts(contacts, state)"
            )
        body_q = None if state is None else state.body_q
        if body_q is not None:
            check_made_by(model, state, "state")
            transform = warp_types(model.dtype).transform
            check_array(model, body_q, "state.body_q", transform, (model.body_count,))
            wp.launch(
                kernels.place,
                dim=len(self.sensing_indices),
                inputs=[
                    self._indices,
                    self.sensing_type == "shape",
                    model.shape_body,
                    model.shape_transform,
                    body_q,
                ],
                outputs=[self.sensing_transforms],
                device=model.device,
                record_tape=False,
            )
        # on a CPU the number of contacts is at hand
        count = contacts.rigid_contact_shape0.shape[0]
        if model.device.is_cpu and not model.device.is_capturing:
            count = max(min(count, int(contacts.rigid_contact_count.numpy()[0])), 0)
        row, entry = self._sorted(kernels, contacts, count)
        for matrix in self._matrix:
            matrix.zero_()
        wp.launch(
            kernels.add_forces,
            dim=len(self.sensing_indices),
            inputs=[
                2 * count, row, entry, self._row_world, self._counterpart_shape_to_col, contacts.rigid_contact_shape0,
                contacts.rigid_contact_shape1, contacts.rigid_contact_point0, contacts.rigid_contact_point1, contacts.rigid_contact_normal,
                contacts.rigid_contact_margin0, contacts.rigid_contact_margin1, contacts.force, model.shape_body, model.shape_world,
                self._no_poses if body_q is None else body_q,
            ],
            outputs=[*self._total, *self._matrix, self._weight],
            device=model.device,
            record_tape=False,
        )  # fmt: skip
        if model.device.is_capturing:
            keep_for_graph(model.device, self, state, contacts, row, entry)

    def _sorted(self, kernels, contacts, count: int) -> list[wp.array]:
        """The entries of the first `count` contacts, sorted by row, with their rows."""
        # sorting takes twice the room
        size = max(4 * contacts.rigid_contact_shape0.shape[0], 1)
        if not self._entries or self._entries[0].size < size:
            with unrecorded(self.device, "SensorContact.update"):
                self._entries = [wp.zeros(size, dtype=int, device=self.device) for _ in range(2)]
        row, entry = self._entries
        if count:
            wp.launch(
                kernels.list_rows,
                dim=count,
                inputs=[
                    contacts.rigid_contact_count,
                    contacts.rigid_contact_shape0,
                    contacts.rigid_contact_shape1,
                    self._sensing_shape_to_row,
                ],
                outputs=[row, entry],
                device=self.device,
                record_tape=False,
            )
            wp.utils.radix_sort_pairs(row, entry, 2 * count)
        return [row, entry]
