"""Views of some articulations of a model."""

from __future__ import annotations

import warnings
from typing import Never

import numpy as np
import warp as wp

from newton_like import kinematics
from newton_like.coercion import as_flag
from newton_like.dynamics.matrices import eval_mass_matrix
from newton_like.kernels.selection import mark
from newton_like.model.columns import COUNTS, KIND_OF
from newton_like.model.custom import FREQUENCY_OF, holder
from newton_like.model.joint_types import look_up
from newton_like.model.labels import matches
from newton_like.options import refuse_options
from newton_like.selection.layout import FrequencyLayout, Rows
from newton_like.selection.members import by_world, custom_members, last_part, members
from newton_like.selection.part import Part, as_mask, as_values
from newton_like.types import JointType, warp_types

_KINDS = {frequency: kind for kind, frequency in FREQUENCY_OF.items()}
"""Kinds of columns by their frequencies."""

_STARTS = ("joint_q_start", "joint_qd_start", "articulation_start")
"""Arrays with one more entry, the total."""


class ArticulationView:
    """Articulations that are built alike, selected by label. Their arrays have the world as first dimension.

    A scene of many worlds has flat arrays. A view gives the part that belongs to some robots as arrays of shape ``[world,
    articulation of the world, value]``: joint coordinates, links, shapes, and every parameter of the model. Where the chosen
    rows lie at regular distances, as after ``replicate``, what a getter returns is the memory of the state (or control, or
    model) itself: writing to it writes to the state. Otherwise it is a copy; a setter writes it back. Setters take Warp
    arrays, NumPy arrays and lists, broadcast over worlds and articulations, and write only where ``mask`` is true: bools
    ``[world_count]`` or ``[world_count, count_per_world]``. Tapes record getters and setters of arrays that require gradients.

    Worlds may differ with ``homogeneous=False``. The worlds of the view are those that have chosen articulations. Data in which the
    articulations differ, such as joint coordinates of robots with different joints, are not available: attributes that describe them
    are None, and functions that read or write them raise AttributeError. Articulations agree in joints (links) if they have as many,
    and in dofs and coordinates (shapes) if each joint (link) has as many. Types and names are not compared.

    The interface is that of Newton 1.8.

    Attributes:
        model: the :class:`Model`.
        device: of its arrays.
        world_count: number of worlds of the view; 1 for a scene without worlds.
        world_ids: which worlds of the model these are, ``[world_count]`` int; -1 for a scene without worlds.
        is_sparse: whether worlds of the model are left out.
        count, count_per_world: number of chosen articulations, of all worlds and of each.
        articulation_ids: their indices, ``[world_count, count_per_world]`` int.
        articulation_mask: ``[articulation_count]`` bools of the model, true for those in the view.
        joint_count, joint_dof_count, joint_coord_count, link_count, shape_count: how many of them the view has in each
            articulation.
        joint_labels, link_labels, shape_labels: full labels in the first articulation.
        joint_names, link_names, shape_names: their last parts, behind the last ``/``.
        joint_dof_names, joint_coord_names: name of the joint, with ``:i`` behind it where the joint has several.
        joint_dof_counts, joint_coord_counts: dofs and coordinates of each joint of the view.
        link_shapes: for every link of the view, the places of its shapes in the view.
        root_joint_type: :class:`JointType` of the joint that carries the root.
        is_floating_base, is_fixed_base: whether that is a FREE or DISTANCE joint; whether it has no dof.
        custom_frequency_counts: how many entities each articulation has of the custom frequencies whose rows belong to articulations,
            by the keys of these (see :class:`CustomFrequency`).
        custom_frequency_labels: last parts of the labels of these entities in the first articulation; an empty list for a
            frequency without labels.
    """

    def __init__(
        self,
        model,
        pattern,
        *,
        include_joints=None,
        exclude_joints=None,
        include_links=None,
        exclude_links=None,
        include_joint_types=None,
        exclude_joint_types=None,
        include_loop_closing_joints: bool = False,
        homogeneous: bool = True,
        verbose: bool | None = False,
        allow_partial_layouts: bool | None = None,
        **others: Never,
    ):
        """Chooses articulations, and what of them the view shows.

        Patterns of joints and links are held against the last part of the labels in the first chosen articulation; they
        pick places, which are the same in all articulations. Links are in the order of the joints that carry them, as in
        :func:`eval_jacobian`, joints and shapes in that of the model.

        Args:
            model: the :class:`Model`.
            pattern: of whole articulation labels: shell-style (``"robot_*"``), a list of these, a compiled regular
                expression (which must match the whole label), or a list of articulation indices.
            include_joints, exclude_joints, include_links, exclude_links: patterns likewise, or lists of places among the
                joints (links) of an articulation; by default all are included and none is excluded.
            include_joint_types, exclude_joint_types: lists of :class:`JointType`. A joint is in the view if a pattern or a type
                includes it, and none excludes it.
            include_loop_closing_joints: also show the joints that close loops, in the articulation that carries their child.
            homogeneous: all worlds have chosen articulations, and all these are alike. False: see the class.
            verbose: print what was chosen.
            allow_partial_layouts: name of ``not homogeneous`` before Newton 1.8.

        Raises:
            KeyError: a pattern matches nothing.
            IndexError: an index does not exist.
            TypeError: a pattern of another type.
            ValueError: chosen articulations of a homogeneous view differ in joints or shapes, or a world has none; worlds of any view
                differ in the number of articulations; some belong to a world and some to none; a list of indices is not in ascending
                order.
        """
        if others:
            refuse_options(ArticulationView.__init__, others)
        homogeneous = _homogeneous(homogeneous, allow_partial_layouts)
        loops = as_flag(include_loop_closing_joints, "include_loop_closing_joints")
        self.model, self.device = model, model.device
        ids = matches(pattern, model.articulation_label, "pattern", "articulation")
        self._ids, worlds = by_world(model, ids, homogeneous)
        self.world_count, self.count_per_world = self._ids.shape
        self.count = self._ids.size
        self.world_ids = wp.array(worlds, dtype=wp.int32, device=model.device)
        self.is_sparse = bool(worlds[0] >= 0) and len(worlds) < model.world_count

        options = {
            "include_joints": include_joints,
            "exclude_joints": exclude_joints,
            "include_links": include_links,
            "exclude_links": exclude_links,
            "include_joint_types": include_joint_types,
            "exclude_joint_types": exclude_joint_types,
        }
        found, self.link_shapes = members(model, self._ids, options, loops, homogeneous)
        custom = custom_members(model, self._ids, homogeneous)
        self._rows = {"articulation": FrequencyLayout(self._ids[..., None], model.device)}
        self._reasons: dict[str, str] = {}
        for kind, entries in (found | custom).items():
            if entries.rows is None:
                self._reasons[kind] = entries.reason
            else:
                self._rows[kind] = FrequencyLayout(entries.rows, model.device)
        self._kinds = KIND_OF | _custom_kinds(model)
        self._set_root(model)
        self._describe(model, found, custom)

        self.articulation_ids = wp.array(self._ids, dtype=wp.int32, device=model.device)
        chosen = np.zeros(model.articulation_count, dtype=bool)
        chosen[self._ids] = True
        self.articulation_mask = wp.array(chosen, dtype=wp.bool, device=model.device)
        if verbose is not None and as_flag(verbose, "verbose"):
            counts = {
                "links": self.link_count,
                "joints": self.joint_count,
                "dofs": self.joint_dof_count,
                "shapes": self.shape_count,
            }
            parts = [f"different numbers of {what}" if n is None else f"{n} {what} each" for what, n in counts.items()]
            print(f"{self!r}: {', '.join(parts)}")

    def _set_root(self, model) -> None:
        """Finds what carries the roots, and where its coordinates are."""
        q_start, qd_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
        joints = model.articulation_start.numpy()[self._ids]
        types = model.joint_type.numpy()[joints]
        kind = _common(types)
        self.root_joint_type = None if kind is None else JointType(int(kind))
        self.is_floating_base = _common(look_up(types, "floats"))
        # a D6 joint without axes fixes, too
        self.is_fixed_base = _common(qd_start[joints + 1] == qd_start[joints])
        self._root = {
            kind: Rows(x) for kind, x in (("coord", q_start[joints]), ("dof", qd_start[joints]), ("joint", joints))
        }

    def _describe(self, model, found: dict, custom: dict) -> None:
        """Numbers, labels and names of what the view has."""
        joints, links, shapes = (found[kind] for kind in ("joint", "body", "shape"))
        self.joint_count, self.link_count, self.shape_count = joints.count, links.count, shapes.count
        self.joint_dof_count, self.joint_coord_count = found["dof"].count, found["coord"].count
        self.joint_labels, self.joint_names = _labels(model.joint_label, joints.first)
        self.link_labels, self.link_names = _labels(model.body_label, links.first)
        self.shape_labels, self.shape_names = _labels(model.shape_label, shapes.first)
        counts = {
            kind: None
            if found[kind].rows is None or joints.first is None
            else np.diff(start.numpy())[joints.first].tolist()
            for kind, start in (("dof", model.joint_qd_start), ("coord", model.joint_q_start))
        }
        self.joint_dof_counts, self.joint_coord_counts = counts["dof"], counts["coord"]
        self.joint_dof_names = _numbered(self.joint_names, self.joint_dof_counts)
        self.joint_coord_names = _numbered(self.joint_names, self.joint_coord_counts)
        self.custom_frequency_counts = {key: entries.count for key, entries in custom.items()}
        self.custom_frequency_labels = {}
        for key, entries in custom.items():
            attribute = model.custom_frequency_label_attributes.get(key)
            labels = getattr(*holder(model, attribute)) if attribute is not None and entries.count else []
            places = entries.first if labels or entries.first is None else []
            self.custom_frequency_labels[key] = _labels(labels, places)[1]

    @property
    def frequency_layouts(self) -> dict:
        """A :class:`FrequencyLayout` for each available frequency, by :class:`AttributeFrequency` and keys of custom frequencies."""
        return {FREQUENCY_OF.get(kind, kind): layout for kind, layout in self._rows.items()}

    @property
    def uses_explicit_model_indices(self) -> bool:
        """Whether a frequency, or the roots, have rows at irregular distances, so that getters return copies of them."""
        return any(rows.uses_explicit_model_indices for rows in self._rows.values()) or any(
            rows.strides is None for rows in self._root.values()
        )

    @property
    def joints_contiguous(self) -> bool | None:
        """Whether the rows of joints follow each other without gaps, over all articulations and worlds of the view.

        None where they are not available. The same holds for the other properties of this kind.
        """
        return self._is_packed("joint")

    @property
    def joint_dofs_contiguous(self) -> bool | None:
        """The same for dofs."""
        return self._is_packed("dof")

    @property
    def joint_coords_contiguous(self) -> bool | None:
        """The same for coordinates."""
        return self._is_packed("coord")

    @property
    def links_contiguous(self) -> bool | None:
        """The same for links."""
        return self._is_packed("body")

    @property
    def shapes_contiguous(self) -> bool | None:
        """The same for shapes."""
        return self._is_packed("shape")

    def _is_packed(self, kind: str) -> bool | None:
        return self._rows[kind].is_packed if kind in self._rows else None

    @property
    def body_shapes(self) -> list[list[int]] | None:
        """Another name of ``link_shapes``."""
        return self.link_shapes

    @property
    def body_labels(self) -> list[str] | None:
        """Another name of ``link_labels``."""
        return self.link_labels

    @property
    def body_names(self) -> list[str] | None:
        """Another name of ``link_names``."""
        return self.link_names

    def __repr__(self) -> str:
        label = self.model.articulation_label[self._ids[0, 0]]
        return f"ArticulationView({self.world_count} worlds x {self.count_per_world} articulations like '{label}')"

    def get_attribute(self, name: str, source) -> wp.array:
        """An array of the model, a state or a control, for what is in the view.

        Args:
            name: of the array, such as ``"joint_armature"``, ``"body_mass"``, ``"joint_target_q"``; that of a custom attribute, with its
                namespace in front: ``"lab.heat"``.
            source: the :class:`Model`, :class:`State` or :class:`Control` that has it.

        Returns:
            ``[world_count, count_per_world, joints, dofs, coordinates, links or shapes]`` of the array's type; arrays of two
            dimensions, such as ``joint_dof_dim``, have the second one behind these.

        Raises:
            KeyError: no such array with an entry for each joint, dof, coordinate, body, shape, articulation or entity of a custom
                frequency.
            AttributeError: the articulations of the view differ in what the array has entries of, or its custom frequency does not tell
                which articulation a row belongs to.
            ValueError: the array is that of another model.
        """
        return self._find(name, source).read()

    def set_attribute(self, name: str, target, values, mask=None) -> None:
        """Writes an array of the model, a state or a control, for what is in the view.

        After writing arrays of the model tell the solver: :meth:`SolverFeatherstone.notify_model_changed`.

        Args:
            name: of the array.
            target: the :class:`Model`, :class:`State` or :class:`Control` that has it.
            values: of the shape that :meth:`get_attribute` has, or (no Warp arrays) one that broadcasts to it.
            mask: see the class.

        Raises:
            KeyError, AttributeError, ValueError: as :meth:`get_attribute`; values or mask of the wrong shape or device.
            TypeError: values of another type.
        """
        self._write(self._find(name, target), values, mask, name)

    def get_root_transforms(self, source) -> wp.array:
        """Poses of the roots, ``[world_count, count_per_world]`` transforms.

        Of a floating base, the coordinates of its joint: the pose of the child's anchor in the parent's anchor frame, which is
        the pose of the root link in the world where both anchors are the identity, as importers make them. Of another base,
        the parent anchor of its joint (``Model.joint_X_p``), and ``source`` must be the model.
        """
        return self._root_transforms(source).read()

    def set_root_transforms(self, target, values, mask=None) -> None:
        """Writes the poses that :meth:`get_root_transforms` reads. Call :meth:`eval_fk` to move the links along."""
        self._write(self._root_transforms(target), values, mask)

    def get_root_velocities(self, source) -> wp.array | None:
        """Velocities of floating bases, ``[world_count, count_per_world]`` spatial vectors: velocity of the centre of mass
        and angular velocity in the parent anchor's axes; None where the base does not float."""
        return self._root_velocities(source).read() if self._base_floats() else None

    def set_root_velocities(self, target, values, mask=None) -> None:
        """Writes the velocities that :meth:`get_root_velocities` reads.

        Raises:
            ValueError: the base does not float.
        """
        if not self._base_floats():
            raise ValueError(f"{self!r} has no floating base, so its root has no velocity to set")
        self._write(self._root_velocities(target), values, mask)

    def get_link_transforms(self, source) -> wp.array:
        """Poses of the link frames in the world, ``[world_count, count_per_world, link_count]`` transforms."""
        return self.get_attribute("body_q", source)

    def get_link_velocities(self, source) -> wp.array:
        """Velocities of the centres of mass and angular velocities in world axes, ``[world_count, count_per_world,
        link_count]`` spatial vectors."""
        return self.get_attribute("body_qd", source)

    def get_dof_positions(self, source) -> wp.array:
        """Joint coordinates, ``[world_count, count_per_world, joint_coord_count]``."""
        return self.get_attribute("joint_q", source)

    def set_dof_positions(self, target, values, mask=None) -> None:
        """Writes joint coordinates."""
        self.set_attribute("joint_q", target, values, mask)

    def get_dof_velocities(self, source) -> wp.array:
        """Joint velocities, ``[world_count, count_per_world, joint_dof_count]``."""
        return self.get_attribute("joint_qd", source)

    def set_dof_velocities(self, target, values, mask=None) -> None:
        """Writes joint velocities."""
        self.set_attribute("joint_qd", target, values, mask)

    def get_dof_forces(self, source) -> wp.array:
        """Joint forces of a control, ``[world_count, count_per_world, joint_dof_count]``."""
        return self.get_attribute("joint_f", source)

    def set_dof_forces(self, target, values, mask=None) -> None:
        """Writes joint forces of a control."""
        self.set_attribute("joint_f", target, values, mask)

    def get_model_articulation_mask(self, mask=None) -> wp.array:
        """A mask for functions over the model, ``[articulation_count]`` bools: those of the view where ``mask`` is true."""
        if mask is None:
            return self.articulation_mask
        chosen = wp.zeros(self.model.articulation_count, dtype=wp.bool, device=self.model.device)
        inputs = [self.articulation_ids, self._mask(mask)]
        wp.launch(mark, dim=self._ids.shape, inputs=inputs, outputs=[chosen], device=self.model.device)
        return chosen

    def eval_fk(self, target, mask=None, *, joint_mask=None) -> None:
        """:func:`newton_like.eval_fk` of the articulations in the view: ``target.body_q`` and ``body_qd`` from its joints."""
        chosen = self.get_model_articulation_mask(mask)
        kinematics.eval_fk(self.model, target.joint_q, target.joint_qd, target, mask=chosen, joint_mask=joint_mask)

    def eval_jacobian(self, state, J=None, joint_S_s=None, mask=None) -> wp.array:
        """:func:`newton_like.eval_jacobian` of the articulations in the view; rows of others keep their values.

        ``joint_S_s`` is memory that Newton works with, and is not read.
        """
        return kinematics.eval_jacobian(self.model, state, J, joint_S_s, self.get_model_articulation_mask(mask))

    def eval_mass_matrix(
        self, state, H=None, J=None, body_I_s=None, joint_S_s=None, mask=None, *, include_armature: bool = True
    ) -> wp.array:
        """:func:`newton_like.eval_mass_matrix` of the articulations in the view; rows of others keep their values.

        ``J``, ``body_I_s`` and ``joint_S_s`` are memory that Newton works with, and are not read.
        """
        chosen = self.get_model_articulation_mask(mask)
        return eval_mass_matrix(self.model, state, H, mask=chosen, include_armature=include_armature)

    def _find(self, name: str, source) -> Part:
        array = self._array(name, source)
        kind = self._kinds[name]
        rows = self._rows.get(kind)
        if rows is None:
            reason = self._reasons.get(kind) or (
                f"its custom frequency {kind!r} does not tell which articulation a row belongs to; name the attribute that does as "
                "articulation_owner_attribute of the CustomFrequency"
            )
            raise AttributeError(f"{name} is not available in this view: {reason}")
        return Part(array, rows, array.dtype)

    def _array(self, name: str, source) -> wp.array:
        """An array of a source, if it can be that of the model."""
        array = _attribute(source, name) if isinstance(name, str) else None
        kind = self._kinds.get(name) if isinstance(name, str) else None
        if array is None and self.model.custom_frequency_counts.get(kind) == 0:
            raise KeyError(
                f"{name} is not available in this view: the model has no entities of its custom frequency {kind!r}; add some with "
                "add_custom_values before finalize"
            )
        if name not in self._kinds or not isinstance(array, wp.array):
            known = sorted(n for n in self._kinds if isinstance(_attribute(source, n), wp.array))
            raise KeyError(f"{type(source).__name__} has no array {name!r} to view; it has {', '.join(known)}")
        if kind in COUNTS:
            entries = getattr(self.model, COUNTS[kind]) + (name in _STARTS)
        else:
            entries = self.model.get_custom_frequency_count(kind)
        if array.shape[0] != entries or array.device != self.model.device:
            raise ValueError(
                f"{name} has shape {array.shape} on {array.device}; the model of this view has ({entries},) on "
                f"{self.model.device}"
            )
        return array

    def _base_floats(self) -> bool:
        """Whether the base floats. Raises AttributeError: articulations differ in it."""
        if self.is_floating_base is None:
            raise AttributeError(
                f"the roots of {self!r} are not available: some are carried by floating bases, others are not"
            )
        return self.is_floating_base

    def _root_transforms(self, source) -> Part:
        kind = warp_types(self.model.dtype).transform
        if self._base_floats():
            return Part(self._array("joint_q", source), self._root["coord"], kind, unit=1)
        if source is not self.model:
            raise ValueError(f"{self!r} has no floating base, its root is placed by the model; pass view.model")
        return Part(source.joint_X_p, self._root["joint"], kind)

    def _root_velocities(self, source) -> Part:
        kind = warp_types(self.model.dtype).spatial_vector
        return Part(self._array("joint_qd", source), self._root["dof"], kind, unit=1)

    def _write(self, part: Part, values, mask, name: str = "values") -> None:
        part.write(as_values(self.model, part, values, name), None if mask is None else self._mask(mask))

    def _mask(self, mask) -> wp.array:
        """``[world_count, count_per_world]`` bools on the device."""
        return as_mask(mask, self._ids.shape, self.model.device)


def _homogeneous(homogeneous, allow_partial_layouts) -> bool:
    homogeneous = as_flag(homogeneous, "homogeneous")
    if allow_partial_layouts is None:
        return homogeneous
    warnings.warn(
        "allow_partial_layouts is deprecated since Newton 1.8; give homogeneous", DeprecationWarning, stacklevel=3
    )
    partial = as_flag(allow_partial_layouts, "allow_partial_layouts")
    if not (partial or homogeneous):
        raise ValueError("`homogeneous=False` implies `allow_partial_layouts=True`; give homogeneous alone")
    return not partial


def _custom_kinds(model) -> dict[str, str]:
    """What custom attributes have one entry of: a kind, or the key of a custom frequency."""
    return {
        key.replace(":", "."): _KINDS.get(attribute.frequency, attribute.frequency)
        for key, attribute in model.custom_attributes.items()
        if attribute.frequency in _KINDS or isinstance(attribute.frequency, str)
    }


def _attribute(source, name: str):
    """An attribute of an object, or of one of its namespaces; None if there is none."""
    for part in name.split("."):
        source = getattr(source, part, None)
    return source


def _common(values: np.ndarray):
    """The value that all entries have, None where they differ."""
    return values.flat[0].item() if np.all(values == values.flat[0]) else None


def _labels(labels: list[str], indices: list[int] | None) -> tuple[list[str] | None, list[str] | None]:
    """Labels of some entities, and their last parts."""
    if indices is None:
        return None, None
    chosen = [labels[i] for i in indices]
    return chosen, [last_part(label) for label in chosen]


def _numbered(names: list[str] | None, counts: list[int] | None) -> list[str] | None:
    if names is None or counts is None:
        return None
    return [name if n == 1 else f"{name}:{i}" for name, n in zip(names, counts, strict=True) for i in range(n)]
