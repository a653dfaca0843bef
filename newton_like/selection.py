"""Views of some articulations of a model: their coordinates, links and parameters as ``[world, articulation, value]``."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like import kinematics
from newton_like.arrays import flat, host_array
from newton_like.coercion import as_flag
from newton_like.dynamics.matrices import eval_mass_matrix
from newton_like.kernels.selection import mark, scatter_kernel
from newton_like.model.arguments import check_array
from newton_like.model.columns import COLUMNS, COUNTS
from newton_like.model.custom import AttributeFrequency
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.model.labels import match_labels, matches
from newton_like.types import JointType, warp_types

__all__ = ["ArticulationView", "match_labels"]

_KIND = {column.name: column.kind for column in COLUMNS if column.type != "object" and not column.builder_only} | {
    "body_f": "body",
    "body_inv_mass": "body",
    "body_inv_inertia": "body",
    "joint_ancestor": "joint",
    "shape_collision_radius": "shape",
    "shape_hull_first": "shape",
    "shape_hull_count": "shape",
}
"""What the arrays of models, states and controls have one entry of."""

_KIND_OF = {
    AttributeFrequency.JOINT: "joint",
    AttributeFrequency.JOINT_DOF: "dof",
    AttributeFrequency.JOINT_COORD: "coord",
    AttributeFrequency.BODY: "body",
    AttributeFrequency.SHAPE: "shape",
    AttributeFrequency.ARTICULATION: "articulation",
}
"""The same of custom attributes."""

_STARTS = ("joint_q_start", "joint_qd_start", "articulation_start")
"""Arrays with one more entry, the total."""


class ArticulationView:
    """Equal articulations of all worlds, selected by label. Their arrays have the world as first dimension.

    A scene of many worlds has flat arrays. A view gives the part that belongs to some robots as arrays of shape ``[world,
    articulation of the world, value]``: joint coordinates, links, shapes, and every parameter of the model. Where the chosen
    rows lie at regular distances, as after ``replicate``, what a getter returns is the memory of the state (or control, or
    model) itself: writing to it writes to the state. Otherwise it is a copy; a setter writes it back. Setters take Warp
    arrays, NumPy arrays and lists, broadcast over worlds and articulations, and write only where ``mask`` is true: bools
    ``[world_count]`` or ``[world_count, count_per_world]``. They are not recorded on tapes.

    The interface is that of Newton 1.8, for selections of equal robots in all worlds.

    Attributes:
        model: the :class:`Model`.
        device: of its arrays.
        world_count: number of worlds; 1 for a scene without worlds.
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
        verbose: bool = False,
    ):
        """Chooses articulations, and what of them the view shows.

        Patterns of joints and links are held against the last part of the labels in the first chosen articulation; they
        pick places, which are the same in all articulations. Links are in the order of the joints that carry them, as in
        :func:`eval_jacobian`.

        Args:
            model: the :class:`Model`.
            pattern: of whole articulation labels: shell-style (``"robot_*"``), a list of these, a compiled regular
                expression (which must match the whole label), or a list of articulation indices.
            include_joints, exclude_joints, include_links, exclude_links: patterns likewise, or lists of places among the
                joints (links) of an articulation; by default all are included and none is excluded.
            include_joint_types, exclude_joint_types: lists of :class:`JointType`.
            include_loop_closing_joints, homogeneous: Newton's; only the defaults mean something here: joints of the articulations alone,
                and articulations that are built alike and as many in each world.
            verbose: print what was chosen.

        Raises:
            KeyError: a pattern matches nothing.
            NotImplementedError: loop joints, or worlds that differ, are asked for.
            IndexError: an index does not exist.
            TypeError: a pattern of another type.
            ValueError: chosen articulations differ in joints or shapes, or worlds in the number of articulations; some
                belong to a world and some to none; a list of indices is not in ascending order.
        """
        if as_flag(include_loop_closing_joints, "include_loop_closing_joints"):
            raise NotImplementedError(
                "include_loop_closing_joints=True: views have the joints of their articulations alone"
            )
        if not as_flag(homogeneous, "homogeneous"):
            raise NotImplementedError(
                "homogeneous=False: worlds of a view have equal articulations, and as many; make a view for each kind"
            )
        self.model, self.device = model, model.device
        ids = matches(pattern, model.articulation_label, "pattern", "articulation")
        self._ids = _by_world(model, ids)
        self.world_count, self.count_per_world = self._ids.shape
        self.count = self._ids.size

        joints = _joints_of(model, self._ids)
        first = joints[0, 0]
        types = model.joint_type.numpy()[first]
        root = int(np.flatnonzero(model.joint_ancestor.numpy()[first] < 0)[0])
        self.root_joint_type = JointType(int(types[root]))
        self.is_floating_base = JOINT_TYPES[self.root_joint_type].floats
        q_start, qd_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
        # a D6 joint without axes fixes, too
        self.is_fixed_base = bool(qd_start[first[root] + 1] == qd_start[first[root]])
        self._root = {
            "coord": _Rows(q_start[joints[..., root]]),
            "dof": _Rows(qd_start[joints[..., root]]),
            "joint": _Rows(joints[..., root]),
        }

        names = [_last(model.joint_label[j]) for j in first]
        kept = _filter(names, include_joints, exclude_joints, "joints")
        kept &= np.isin(types, types if include_joint_types is None else _types(include_joint_types))
        kept &= ~np.isin(types, [] if exclude_joint_types is None else _types(exclude_joint_types))
        places = np.flatnonzero(kept)

        links = model.joint_child.numpy()[joints]
        link_names = [_last(model.body_label[b]) for b in links[0, 0]]
        links = links[..., np.flatnonzero(_filter(link_names, include_links, exclude_links, "links"))]
        shapes, self.link_shapes = _shapes_of(model, links, self._ids)

        joints = joints[..., places]
        rows = {
            "articulation": self._ids[..., None],
            "joint": joints,
            "dof": _ranges(qd_start, joints),
            "coord": _ranges(q_start, joints),
            "body": links,
            "shape": shapes,
        }
        self._rows = {kind: _Rows(x) for kind, x in rows.items()}
        self.joint_count, self.link_count, self.shape_count = (
            rows[kind].shape[2] for kind in ("joint", "body", "shape")
        )
        self.joint_dof_count, self.joint_coord_count = (rows[kind].shape[2] for kind in ("dof", "coord"))
        self.joint_labels = [model.joint_label[j] for j in joints[0, 0]]
        self.link_labels = [model.body_label[b] for b in links[0, 0]]
        self.shape_labels = [model.shape_label[s] for s in shapes[0, 0]]
        self.joint_names, self.link_names, self.shape_names = (
            [_last(label) for label in labels] for labels in (self.joint_labels, self.link_labels, self.shape_labels)
        )
        self.joint_dof_counts = np.diff(qd_start)[joints[0, 0]].tolist()
        self.joint_coord_counts = np.diff(q_start)[joints[0, 0]].tolist()
        self.joint_dof_names = _numbered(self.joint_names, self.joint_dof_counts)
        self.joint_coord_names = _numbered(self.joint_names, self.joint_coord_counts)

        self.articulation_ids = wp.array(self._ids, dtype=wp.int32, device=model.device)
        chosen = np.zeros(model.articulation_count, dtype=bool)
        chosen[self._ids] = True
        self.articulation_mask = wp.array(chosen, dtype=wp.bool, device=model.device)
        if as_flag(verbose, "verbose"):
            counts = f"{self.link_count} links, {self.joint_count} joints, {self.joint_dof_count} dofs, {self.shape_count} shapes"
            print(f"{self!r}: {counts} each")

    @property
    def body_labels(self) -> list[str]:
        """Another name of ``link_labels``."""
        return self.link_labels

    @property
    def body_names(self) -> list[str]:
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
            ``[world_count, count_per_world, joints, dofs, coordinates, links or shapes]`` of the array's type.

        Raises:
            KeyError: no such array with an entry for each joint, dof, coordinate, body, shape or articulation.
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
            KeyError, ValueError: as :meth:`get_attribute`; values or mask of the wrong shape or device.
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
        return self._root_velocities(source).read() if self.is_floating_base else None

    def set_root_velocities(self, target, values, mask=None) -> None:
        """Writes the velocities that :meth:`get_root_velocities` reads.

        Raises:
            ValueError: the base does not float.
        """
        if not self.is_floating_base:
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

    def eval_jacobian(self, state, J=None, mask=None) -> wp.array:
        """:func:`newton_like.eval_jacobian` of the articulations in the view; rows of others keep their values."""
        return kinematics.eval_jacobian(self.model, state, J, mask=self.get_model_articulation_mask(mask))

    def eval_mass_matrix(self, state, H=None, mask=None) -> wp.array:
        """:func:`newton_like.eval_mass_matrix` of the articulations in the view; rows of others keep their values."""
        return eval_mass_matrix(self.model, state, H, mask=self.get_model_articulation_mask(mask))

    def _find(self, name: str, source) -> _Part:
        kinds = _KIND | self._custom_kinds()
        array = _attribute(source, name) if isinstance(name, str) else None
        if name not in kinds or not isinstance(array, wp.array):
            known = sorted(n for n in kinds if isinstance(_attribute(source, n), wp.array))
            raise KeyError(f"{type(source).__name__} has no array {name!r} to view; it has {', '.join(known)}")
        kind = kinds[name]
        if array.ndim == 2:  # pairs of integers
            array = flat(array, wp.vec2i)
        entries = getattr(self.model, COUNTS[kind]) + (name in _STARTS)
        if array.shape != (entries,) or array.device != self.model.device:
            raise ValueError(
                f"{name} has shape {array.shape} on {array.device}; the model of this view has ({entries},) on "
                f"{self.model.device}"
            )
        return _Part(array, self._rows[kind], array.dtype)

    def _custom_kinds(self) -> dict[str, str]:
        """What custom attributes have one entry of."""
        return {
            key.replace(":", "."): _KIND_OF[attribute.frequency]
            for key, attribute in self.model.custom_attributes.items()
            if attribute.frequency in _KIND_OF
        }

    def _root_transforms(self, source) -> _Part:
        kind = warp_types(self.model.dtype).transform
        if self.is_floating_base:
            return _Part(self._find("joint_q", source).array, self._root["coord"], kind, unit=1)
        if source is not self.model:
            raise ValueError(f"{self!r} has no floating base, its root is placed by the model; pass view.model")
        return _Part(source.joint_X_p, self._root["joint"], kind)

    def _root_velocities(self, source) -> _Part:
        kind = warp_types(self.model.dtype).spatial_vector
        return _Part(self._find("joint_qd", source).array, self._root["dof"], kind, unit=1)

    def _write(self, part: _Part, values, mask, name: str = "values") -> None:
        part.write(self._values(part, values, name), None if mask is None else self._mask(mask))

    def _values(self, part: _Part, values, name: str) -> wp.array:
        shape, device = part.shape, self.model.device
        if isinstance(values, wp.array):
            inner = getattr(part.dtype, "_shape_", ())
            if inner and values.dtype is part.scalar and values.shape == shape + inner:
                values = values.contiguous().view(part.dtype)
            return check_array(self.model, values.contiguous(), name, part.dtype, shape)
        inner = getattr(part.dtype, "_shape_", ())
        host = host_array(values, name)
        if host.dtype.kind == "f" and not np.all(np.isfinite(host)):
            raise ValueError(f"{name} holds numbers that are not finite")
        try:
            host = np.broadcast_to(host, shape + inner)
        except ValueError:
            raise ValueError(f"{name} has shape {host.shape}; it must broadcast to {shape + inner}") from None
        return wp.array(np.ascontiguousarray(host), dtype=part.dtype, device=device)

    def _mask(self, mask) -> wp.array:
        """``[world_count, count_per_world]`` bools on the device."""
        shape, device = self._ids.shape, self.model.device
        if not isinstance(mask, wp.array):
            host = host_array(mask, "mask")
            if host.dtype != bool:
                raise TypeError(f"mask must hold bools, not {host.dtype}")
            mask = wp.array(host, dtype=wp.bool, device=device)
        if mask.dtype is not wp.bool:
            raise TypeError(f"mask must hold bools, not {mask.dtype.__name__}")
        if mask.shape not in (shape, shape[:1]) or mask.device != device:
            raise ValueError(
                f"mask has shape {mask.shape} on {mask.device}; it must have {shape[:1]} or {shape} on {device}"
            )
        if mask.ndim == 2:
            return mask
        spread = wp.array(ptr=mask.ptr, dtype=wp.bool, shape=shape, strides=(mask.strides[0], 0), device=device)
        spread._ref = mask
        return spread


class _Rows:
    """Where entries begin in a flat array: ``[world, articulation, value]`` integers.

    Attributes:
        rows: the integers.
        strides: distances of neighbours along each axis where they are regular and rows ascend, else None.
    """

    def __init__(self, rows: np.ndarray):
        self.rows, self.strides = rows, _strides(rows)
        self._scalars: dict = {}

    def scalars(self, unit: int, width: int, device) -> wp.array:
        """Where all scalars of entries are that have `width` of them and begin at ``r * unit``: ``[world, articulation, scalar]``."""
        key = (unit, width)
        if key not in self._scalars:
            at = self.rows[..., None] * unit + np.arange(width)
            self._scalars[key] = wp.array(at.reshape(*at.shape[:2], -1), dtype=wp.int32, device=device)
        return self._scalars[key]


class _Part:
    """Some entries of an array: of type `dtype`; one that begins at row r begins at scalar ``r * unit`` of the array."""

    def __init__(self, array: wp.array, rows: _Rows, dtype, unit: int | None = None):
        self.array, self.rows, self.dtype = array, rows, dtype
        self.width = _width(dtype)
        self.unit = self.width if unit is None else unit
        self.scalar = getattr(dtype, "_wp_scalar_type_", dtype)
        self.shape = rows.rows.shape

    def read(self) -> wp.array:
        """The entries, without a copy where they lie at regular distances."""
        rows = self.rows
        if not rows.rows.size:
            return wp.empty(self.shape, dtype=self.dtype, device=self.array.device)
        if rows.strides is not None:
            first = int(rows.rows.flat[0])
            return self._view(self.array, first * self.unit, [s * self.unit for s in rows.strides])
        indices = rows.scalars(self.unit, self.width, self.array.device).flatten()
        copy = wp.indexedarray(flat(self.array, self.scalar), [indices]).contiguous()
        dense = np.cumprod([1, *self.shape[:0:-1]])[::-1] * self.width
        return self._view(copy, 0, dense.tolist())

    def write(self, values: wp.array, mask: wp.array | None) -> None:
        """Writes entries where the mask is true; everywhere without one."""
        if not self.rows.rows.size:
            return
        if mask is None and self.rows.strides is not None:
            wp.copy(self.read(), values)
            return
        device = self.array.device
        places = self.rows.scalars(self.unit, self.width, device)
        chosen = wp.full(self.shape[:2], True, dtype=wp.bool, device=device) if mask is None else mask
        scalars = flat(values, self.scalar).reshape(places.shape)
        wp.launch(
            scatter_kernel(self.scalar),
            dim=self.shape[:2],
            inputs=[places, chosen, scalars],
            outputs=[flat(self.array, self.scalar)],
            device=device,
        )

    def _view(self, array: wp.array, offset: int, strides) -> wp.array:
        size = wp.types.type_size_in_bytes(self.scalar)
        place = {"shape": self.shape, "strides": tuple(size * s for s in strides), "device": array.device}
        grad = None
        if array.requires_grad and array.grad is not None:
            grad = wp.array(ptr=array.grad.ptr + size * offset, dtype=self.dtype, **place)
            grad._ref = array.grad
        view = wp.array(ptr=array.ptr + size * offset, dtype=self.dtype, grad=grad, **place)
        view._ref = array
        return view


def _width(dtype) -> int:
    """Scalars in an entry of a type."""
    return int(np.prod(getattr(dtype, "_shape_", ()), dtype=np.int64))


def _strides(rows: np.ndarray) -> list[int] | None:
    """Distances of neighbours along each axis; None where they are not regular. Axes without neighbours count as dense."""
    strides, dense = [], 1
    for axis in reversed(range(rows.ndim)):
        n = rows.shape[axis]
        steps = np.diff(rows, axis=axis)
        if steps.size and (steps.flat[0] <= 0 or np.any(steps != steps.flat[0])):
            return None
        strides.insert(0, int(steps.flat[0]) if steps.size else dense)
        dense = strides[0] * max(n, 1)
    return strides


def _attribute(source, name: str):
    """An attribute of an object, or of one of its namespaces; None if there is none."""
    for part in name.split("."):
        source = getattr(source, part, None)
    return source


def _last(label: str) -> str:
    return label.rpartition("/")[2]


def _numbered(names: list[str], counts: list[int]) -> list[str]:
    return [name if n == 1 else f"{name}:{i}" for name, n in zip(names, counts, strict=True) for i in range(n)]


def _filter(names: list[str], include, exclude, kind: str) -> np.ndarray:
    """Which places a view keeps."""
    kept = np.full(len(names), include is None)
    if include is not None:
        kept[matches(include, names, f"include_{kind}", kind[:-1])] = True
    if exclude is not None:
        kept[matches(exclude, names, f"exclude_{kind}", kind[:-1])] = False
    return kept


def _types(kinds) -> list[int]:
    return [int(JointType(kind)) for kind in np.atleast_1d(np.asarray(kinds, dtype=np.int64)).tolist()]


def _by_world(model, ids: np.ndarray) -> np.ndarray:
    """Articulations in rows, one for each world."""
    if not ids.size:
        raise KeyError("pattern picks no articulation; give the labels of some")
    worlds = model.articulation_world.numpy()[ids]
    if np.all(worlds < 0):
        return ids[None]
    if np.any(worlds < 0):
        label = model.articulation_label[ids[worlds < 0][0]]
        raise ValueError(f"articulation '{label}' belongs to no world, others of the pattern do; choose one kind only")
    counts = np.bincount(worlds, minlength=model.world_count)
    if np.any(counts != counts[0]):
        w = int(np.flatnonzero(counts != counts[0])[0])
        raise ValueError(
            f"the pattern picks {counts[0]} articulations in world 0 and {counts[w]} in world {w}; choose labels that every "
            "world has as often"
        )
    return ids[np.argsort(worlds, kind="stable")].reshape(model.world_count, -1)


def _joints_of(model, ids: np.ndarray) -> np.ndarray:
    """Joints of every articulation, ``[world, articulation, joint]``, after a check that they are alike."""
    start, end = model.articulation_start.numpy()[ids], model.articulation_end.numpy()[ids]
    counts = end - start
    _demand_equal(model, ids, counts[..., None], "joints")
    joints = start[..., None] + np.arange(counts.flat[0])
    types = np.concatenate(
        [model.joint_type.numpy()[joints], model.joint_dof_dim.numpy()[joints].reshape(*ids.shape, -1)], -1
    )
    _demand_equal(model, ids, types, "joint types")
    return joints


def _shapes_of(model, links: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, list[list[int]]]:
    """Shapes of the links, ``[world, articulation, shape]``, and the places of each link's shapes among them."""
    body = model.shape_body.numpy()
    order = np.argsort(body, kind="stable")
    start = np.searchsorted(body[order], links, "left")
    counts = np.searchsorted(body[order], links, "right") - start
    _demand_equal(model, ids, counts, "numbers of shapes of the links")
    places = np.split(np.arange(counts[0, 0].sum()), np.cumsum(counts[0, 0])[:-1]) if counts.shape[2] else []
    rows = [start[..., i : i + 1] + np.arange(n) for i, n in enumerate(counts[0, 0])]
    found = order[np.concatenate(rows, axis=-1)] if rows else np.zeros((*ids.shape, 0), dtype=np.int64)
    return found, [place.tolist() for place in places]


def _demand_equal(model, ids: np.ndarray, values: np.ndarray, what: str) -> None:
    different = np.argwhere(np.any(values != values[0, 0], axis=-1))
    if len(different):
        a, b = int(ids[0, 0]), int(ids[tuple(different[0])])
        raise ValueError(
            f"articulations '{model.articulation_label[a]}' (index {a}) and '{model.articulation_label[b]}' (index {b}) have "
            f"different {what}; a view holds articulations that are built alike: choose them by another pattern"
        )


def _ranges(start: np.ndarray, joints: np.ndarray) -> np.ndarray:
    """Dofs or coordinates of the joints in rows."""
    counts = np.diff(start)[joints[0, 0]] if joints.shape[2] else []
    rows = [start[joints[..., i : i + 1]] + np.arange(n) for i, n in enumerate(counts)]
    return np.concatenate(rows, axis=-1) if rows else np.zeros((*joints.shape[:2], 0), dtype=np.int64)
