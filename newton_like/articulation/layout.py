"""Where the joints and bodies of the instances of an asset lie in the flat arrays of a model."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.articulation.chosen import scalars
from newton_like.articulation.names import names_of_dofs, names_of_labels
from newton_like.model.custom import FREQUENCY_OF
from newton_like.model.joint_types import look_up
from newton_like.selection.view import ArticulationView


class Layout:
    """The instances of an asset: one articulation in each world.

    Attributes:
        model: the model.
        count: number of instances.
        joint_names: names of the dofs of joints, without those of a floating root.
        body_names: names of links, the root first.
        worlds: world of each instance, ``[count]``.
        is_every_world: whether these are all worlds in their order.
        bodies: bodies of each instance, ``[count, links]``.
        dofs, coords: dofs and coordinates of joints, ``[count, joints]``.
        articulations: articulation of each instance, ``[count]``.
        root_joints: joint that carries each root, ``[count]``.
        joints: joints that carry the links, ``[count, links]``.
        links: places of the links among those of the articulation.
        is_floating: whether this is a free joint.

    Args:
        model: the model.
        pattern: pattern of the labels of articulations, as for :class:`newton_like.selection.ArticulationView`.

    Raises:
        KeyError: nothing matches.
        ValueError: a world has several or none; articulations differ, lie at irregular distances in the arrays, or have ball joints.
    """

    def __init__(self, model, pattern):
        view = ArticulationView(model, pattern)
        if view.count_per_world != 1:
            raise ValueError(
                f"the pattern {pattern!r} matches {view.count_per_world} articulations in each world"
                f" ({', '.join(repr(model.articulation_label[i]) for i in view.articulation_ids.numpy()[0][:4])}); an asset is one of them:"
                " choose a narrower pattern, or a RigidObjectCollection for single bodies"
            )
        self.model, self.count = model, view.world_count
        self.articulations = view.articulation_ids.numpy()[:, 0].copy()
        self.worlds = np.maximum(view.world_ids.numpy(), 0)
        self.is_every_world = np.array_equal(self.worlds, np.arange(model.world_count))
        self.label = model.articulation_label[self.articulations[0]]
        first = model.articulation_start.numpy()[self.articulations]
        self.root_joints = first
        kinds = model.joint_type.numpy()[first]
        self.is_floating = bool(look_up(kinds, "floats")[0])
        self._refuse()
        if self.is_floating:
            # the dofs of a floating root are not among those of the joints
            view = ArticulationView(model, pattern, exclude_joints=[0])
        self.joint_names = names_of_dofs(view.joint_labels, view.joint_dof_counts)
        self.body_names = names_of_labels(view.link_labels)
        self.dofs, self.coords, self.bodies = (
            view.frequency_layouts[FREQUENCY_OF[kind]].rows[:, 0] for kind in ("dof", "coord", "body")
        )
        for kind, rows in (("joints", self.dofs), ("coordinates", self.coords), ("links", self.bodies)):
            if not _is_regular(rows):
                raise ValueError(
                    f"articulation '{self.label}': its {kind} lie at irregular distances in the arrays of the model, so that data cannot be"
                    " views; make worlds with ModelBuilder.replicate, with the joints and links of a robot next to each other"
                )
        self.joints = first[:, None] + np.arange(self.bodies.shape[1])
        self.links = np.arange(self.bodies.shape[1])
        self.root_coords = model.joint_q_start.numpy()[first]
        self.root_dofs = model.joint_qd_start.numpy()[first]

    def _refuse(self) -> None:
        """Raises ValueError for joints that assets do not have."""
        model = self.model
        start, end = (int(x.numpy()[self.articulations[0]]) for x in (model.articulation_start, model.articulation_end))
        kinds = model.joint_type.numpy()[start:end]
        turns, floats, limits = (look_up(kinds, name) for name in ("turns_only", "floats", "limits_distance"))
        inner = floats & ((np.arange(end - start) > 0) | limits)
        for wrong, told in (
            (turns, "is a ball joint, whose coordinates are a quaternion; give it three angular axes as a D6 joint"),
            (inner, "is a free or distance joint; articulations of assets have free joints at the root only"),
        ):
            if wrong.any():
                name = model.joint_label[start + int(np.argmax(wrong))]
                raise ValueError(f"joint '{name}' of articulation '{self.label}' {told}")

    def view(self, array: wp.array, rows: np.ndarray) -> wp.array:
        """The entries of an array of the model, a state or a control, without a copy.

        Args:
            array: contiguous array.
            rows: which entries, ``[count, n]``, at regular distances.

        Returns:
            ``[count, n]`` scalars, with the dimensions of a vector, transform or matrix behind.
        """
        whole = scalars(array)
        a, b = _steps(rows)
        unit = whole.strides[0]
        first = int(rows.flat[0]) if rows.size else 0
        result = wp.array(
            ptr=(whole.ptr or 0) + first * unit if rows.size else whole.ptr,
            dtype=whole.dtype,
            shape=(*rows.shape, *whole.shape[1:]),
            strides=(a * unit, b * unit, *whole.strides[1:]),
            device=array.device,
        )
        result._ref = array
        return result

    def root_view(self, array: wp.array, starts: np.ndarray, size: int) -> wp.array:
        """The coordinates or dofs of the root joints, ``[count, size]``, without a copy."""
        return self.view(array, starts[:, None] + np.arange(size))


def _steps(rows: np.ndarray) -> tuple[int, int]:
    """Distances of rows from instance to instance and from item to item."""
    between = int(rows[1, 0] - rows[0, 0]) if rows.shape[0] > 1 and rows.shape[1] else rows.shape[1]
    within = int(rows[0, 1] - rows[0, 0]) if rows.shape[1] > 1 else 1
    return max(between, 1), within


def regular_place(rows: np.ndarray) -> tuple[int, int, int]:
    """First row, rows from instance to instance, and from joint to joint."""
    between = int(rows[1, 0] - rows[0, 0]) if len(rows) > 1 else 0
    return int(rows[0, 0]), between, int(rows[0, 1] - rows[0, 0]) if rows.shape[1] > 1 else 1


def _is_regular(rows: np.ndarray) -> bool:
    if not rows.size:
        return True
    a, b = _steps(rows)
    regular = rows[0, 0] + a * np.arange(rows.shape[0])[:, None] + b * np.arange(rows.shape[1])
    return bool(np.array_equal(rows, regular))
