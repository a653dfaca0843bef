"""The builder of models: Python lists of entities, which :meth:`ModelBuilder.finalize` converts to arrays."""

from __future__ import annotations

import dataclasses
import types
from typing import TYPE_CHECKING, Never

import numpy as np
import warp as wp

from newton_like.coercion import as_flag, as_index, as_list, as_matrix33, as_number, as_vector
from newton_like.geometry.transforms import as_transform
from newton_like.model.actuators import NUMBERS as ACTUATOR_NUMBERS
from newton_like.model.actuators import Actuator, check_sites
from newton_like.model.builder.approximation import ApproximationMethods
from newton_like.model.builder.collapse import collapse_fixed_joints
from newton_like.model.builder.custom import CustomMethods
from newton_like.model.builder.finalize import finalize
from newton_like.model.builder.joints import JointMethods
from newton_like.model.builder.merge import merge_articulations
from newton_like.model.builder.shapes import ShapeMethods
from newton_like.model.builder.worlds import WorldMethods
from newton_like.model.columns import BY_NAME, COLUMNS
from newton_like.model.configs import JointDofConfig, ShapeConfig
from newton_like.model.contacts import checked_attributes
from newton_like.model.custom import AttributeFrequency, CustomAttribute, CustomFrequency
from newton_like.model.frames import FrameTable
from newton_like.model.model import Model, shapes_by_body
from newton_like.model.pairs import PairSet
from newton_like.model.state import checked_requests
from newton_like.model.tendons import ARRAYS as TENDON_ARRAYS
from newton_like.model.tendons import Tendon, check_shapes
from newton_like.options import OneOf, check_option, did_you_mean, refuse_options
from newton_like.types import Axis, AxisType, BodyFlags

DEFAULT_GRAVITY = -9.81
DEFAULT_GAP = 0.001
MAX_WORLDS = 2**31
"""Largest number of worlds; indices are int32."""


_SETTINGS = {
    "up_axis": Axis.from_any,
    "default_joint_cfg": lambda value: _config(value, JointDofConfig, "default_joint_cfg"),
    "default_shape_cfg": lambda value: _config(value, ShapeConfig, "default_shape_cfg"),
    "frames": lambda value: _config(value, FrameTable, "frames"),
    "rigid_gap": lambda value: as_number(value, "rigid_gap"),
    "shape_collision_filter_pairs": lambda value: value if isinstance(value, PairSet) else PairSet(value),
    "custom_attributes": lambda value: _table(value, CustomAttribute, "custom_attributes"),
    "custom_frequencies": lambda value: _table(value, CustomFrequency, "custom_frequencies"),
    "world_count": lambda value: as_index(value, "world_count", MAX_WORLDS),
}
"""Functions that check and convert the values of attributes that are not lists."""

_OTHER_ATTRIBUTES = ("actuators", "gravity", "tendons", "world_label", "world_gravity")

_SKIPPED = {
    f"skip_{part}": (OneOf((True, False)), "give True or False")
    for part in (
        "all_validations", "validation_worlds", "validation_joints", "validation_shapes", "validation_inertia",
        "validation_structure", "validation_joint_ordering",
    )
}  # fmt: skip
"""Options of `finalize` in Newton that have no effect here, see :func:`newton_like.options.check_option`."""

_OF_MODELS = (
    "articulation_world_start", "body_inv_inertia", "body_inv_mass", "body_world_start", "custom_frequency_articulation",
    "custom_frequency_counts", "custom_frequency_label_attributes", "device", "dtype", "hull_points", "joint_ancestor",
    "joint_coord_world_start", "joint_dof_world_start", "joint_world_start", "made_by", "max_dofs_per_articulation",
    "max_joints_per_articulation", "requires_grad", "shape_collision_radius", "shape_hull_count", "shape_hull_first",
    "shape_world_start", "tendon_count", "tendon_label", "tendon_world", "version", *(f"tendon_{name}" for name in TENDON_ARRAYS),
    *(f"actuator_{name}" for name in ("count", "label", "world", "ctrl", "act", *ACTUATOR_NUMBERS)),
)  # fmt: skip
"""Attributes of instances of :class:`Model` that a builder lacks."""


class ModelExpectedError(AttributeError, TypeError):
    """A builder was given instead of a :class:`Model`. It is an AttributeError, so that ``hasattr`` answers, and a TypeError."""


def _urdf():
    from newton_like.importers.urdf import add_urdf

    return add_urdf


def _mjcf():
    from newton_like.importers.mjcf import add_mjcf

    return add_mjcf


def _usd():
    from newton_like.importers.usd import add_usd

    return add_usd


class _Importer:
    """A descriptor that makes a function of a builder a method. The function is imported on first access, with its signature and
    docstring."""

    def __init__(self, function):
        self._function = function

    def __get__(self, builder, owner=None):
        function = self._function()
        return function if builder is None else types.MethodType(function, builder)


def _length(column: str, meaning: str) -> property:
    def count(self) -> int:
        return len(getattr(self, column))

    return property(count, doc=meaning)


class ModelBuilder(JointMethods, ShapeMethods, ApproximationMethods, WorldMethods, CustomMethods):
    """Collects bodies, joints and shapes, and turns them into a :class:`Model`.

    Example::

        builder = ModelBuilder()
        arm = builder.add_link()
        builder.add_shape_box(arm, hx=0.05, hy=0.05, hz=0.5)
        hinge = builder.add_joint_revolute(-1, arm, axis="y", child_xform=((0, 0, 0.5), (0, 0, 0, 1)))
        builder.add_articulation([hinge])
        model = builder.finalize()

    Every quantity is a list under the name that the array of the model will have (``body_mass``, ``joint_q``,
    ``shape_scale`` ...; the table is ``newton_like.model.columns``). The lists may be edited until :meth:`finalize`,
    which checks them all. Their entries are floats, tuples of floats (a transform is seven: position, quaternion x y z
    w; an inertia is three rows) and ints; whatever can be read as these may be assigned.

    Attributes:
        up_axis: the direction of :meth:`add_ground_plane` and of scalar gravity.
        default_joint_cfg: settings of revolute, prismatic and ball joints where none are given.
        default_shape_cfg: settings of shapes where none are given.
        rigid_gap: gap [m] of shapes whose :class:`ShapeConfig` names none.
        shape_collision_filter_pairs: pairs of shapes that never touch, a :class:`PairSet`.
        world_count: number of worlds begun so far.
        world_label: their names.
        world_gravity: their gravity vectors, lists of three numbers that may be edited: the builder's gravity at the time when the
            world was begun, unless the world has its own.
        tendons: see :meth:`add_tendon`.
        actuators: see :meth:`add_actuator`.
        frames: named frames of links that were merged into others, a :class:`newton_like.model.frames.FrameTable`.
        custom_attributes, custom_frequencies: see :meth:`add_custom_attribute` and :meth:`add_custom_frequency`.
    """

    CustomAttribute = CustomAttribute
    CustomFrequency = CustomFrequency
    JointDofConfig = JointDofConfig
    ShapeConfig = ShapeConfig

    def __init__(self, up_axis: AxisType = Axis.Z, gravity=None, **others: Never):
        """An empty scene.

        Args:
            up_axis: which axis points up.
            gravity: acceleration [m/s^2], a vector or a number along the up axis; by default -9.81.
        """
        if others:
            refuse_options(ModelBuilder.__init__, others)
        for column in COLUMNS:
            setattr(self, column.name, [])
        self.shape_collision_filter_pairs = PairSet()
        self.up_axis = up_axis
        self.gravity = gravity
        self.default_joint_cfg = JointDofConfig()
        self.default_shape_cfg = ShapeConfig()
        self.rigid_gap = DEFAULT_GAP
        self.world_count = 0
        self.world_label: list[str] = []
        self.world_gravity: list[list[float]] = []
        self.tendons: list[Tendon] = []
        self.actuators: list[Actuator] = []
        self.frames = FrameTable()
        self.custom_attributes: dict[str, CustomAttribute] = {}
        self.custom_frequencies: dict[str, CustomFrequency] = {}
        self._current_world = -1
        self._requested: frozenset[str] = frozenset()
        self._requested_of_contacts: frozenset[str] = frozenset()
        self._forget_neighbours()

    def __setattr__(self, name, value):
        if name in BY_NAME:
            if not isinstance(value, list):
                value = value.numpy() if isinstance(value, wp.array) else value
                entries = value.tolist() if isinstance(value, np.ndarray) else value
                value = as_list(entries, f"builder.{name}", f"entries, one for each {BY_NAME[name].kind}")
        elif name in _SETTINGS:
            value = _SETTINGS[name](value)
        elif type(self) is ModelBuilder and not name.startswith("_") and name not in _OTHER_ATTRIBUTES:
            hint = did_you_mean(name, [*BY_NAME, *_SETTINGS, *_OTHER_ATTRIBUTES])
            raise AttributeError(f"a ModelBuilder has no attribute {name!r} to set{hint}")
        super().__setattr__(name, value)

    def __getattr__(self, name: str):
        if name in _OF_MODELS or (not name.startswith("_") and hasattr(Model, name)):
            raise ModelExpectedError(
                f"model must be a Model, not a ModelBuilder, which has no {name!r}; pass a Model: builder.finalize()"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @property
    def gravity(self) -> tuple[float, float, float]:
        """Gravity [m/s^2] in world axes. May be set to a vector, a number along the up axis, or ``None`` (-9.81)."""
        if self._gravity is None:
            return self._gravity_vector(DEFAULT_GRAVITY)
        return self._gravity

    @gravity.setter
    def gravity(self, value):
        self._gravity = None if value is None else self._gravity_vector(value)

    def _gravity_vector(self, value) -> tuple[float, float, float]:
        if np.isscalar(value) or getattr(value, "shape", None) == ():
            value = as_number(value, "gravity")
            return tuple(value if axis == self.up_axis else 0.0 for axis in Axis)
        return as_vector(value, 3, "gravity")

    @property
    def up_vector(self) -> tuple[float, float, float]:
        """Unit vector of the up axis."""
        return Axis.from_any(self.up_axis).to_vector()

    @property
    def current_world(self) -> int:
        """World that entities are added to; -1 (all worlds) if no world is open."""
        return self._current_world

    body_count = _length("body_label", "Number of bodies.")
    joint_count = _length("joint_label", "Number of joints.")
    joint_dof_count = _length("joint_qd", "Number of velocity coordinates of all joints.")
    joint_coord_count = _length("joint_q", "Number of position coordinates of all joints.")
    articulation_count = _length("articulation_label", "Number of articulations.")
    shape_count = _length("shape_label", "Number of shapes.")

    @property
    def body_shapes(self) -> dict[int, list[int]]:
        """Shapes of each body; -1 is the world."""
        return shapes_by_body(self.shape_body, self.body_count)

    @property
    def default_site_cfg(self) -> ShapeConfig:
        """A new configuration for sites: no density, no collisions."""
        cfg = ShapeConfig()
        cfg.mark_as_site()
        return cfg

    def add_link(
        self,
        *,
        xform=None,
        com=None,
        inertia=None,
        mass: float = 0.0,
        label: str | None = None,
        lock_inertia: bool = False,
        is_kinematic: bool = False,
        custom_attributes: dict | None = None,
        **others: Never,
    ) -> int:
        """Adds a body without a joint. Solvers need a joint of an articulation for each body.

        A body that is not the child of such a joint remains at ``body_q``; joints of articulations may be attached to it.

        Args:
            xform: initial pose of the link frame in the world. The initial coordinates of a free joint are computed from this
                pose. For other joints, forward kinematics replaces the pose.
            com: centre of mass in the link frame [m]; by default the origin.
            inertia: 3x3 matrix about the centre of mass, in link axes [kg m^2]; by default zero.
            mass: mass [kg]. Shapes added later add theirs.
            label: name; without one ``body_<index>``.
            lock_inertia: shapes that are added later do not change mass, centre of mass and inertia.
            is_kinematic: solvers do not change the velocity of its joint, which you set in the state. Only bodies whose parent is the
                world may be kinematic.
            custom_attributes: entries of :class:`CustomAttribute` of bodies, by key.

        Returns:
            The body's index.

        Raises:
            TypeError, ValueError: a value is not a number, not finite, or negative where it cannot be.
            AttributeError: a custom attribute is not declared.
        """
        if others:
            refuse_options(ModelBuilder.add_link, others)
        index = self.body_count
        label = f"body_{index}" if label is None else str(label)
        what = f"body {label!r} (index {index})"
        mass = as_number(mass, f"{what}: mass")
        if mass < 0.0:
            raise ValueError(f"{what}: mass {mass:g} kg is negative")
        com = (0.0, 0.0, 0.0) if com is None else as_vector(com, 3, f"{what}: com")
        inertia = ((0.0, 0.0, 0.0),) * 3 if inertia is None else as_matrix33(inertia, f"{what}: inertia")
        xform = as_transform(xform, f"{what}: xform")
        lock_inertia = as_flag(lock_inertia, f"{what}: lock_inertia")
        is_kinematic = as_flag(is_kinematic, f"{what}: is_kinematic")
        custom = self._custom_entries(custom_attributes, {AttributeFrequency.BODY: 1}, what)
        self._keep_entries(custom)
        self.body_label.append(label)
        self.body_world.append(self.current_world)
        self.body_mass.append(mass)
        self.body_com.append(com)
        self.body_inertia.append(inertia)
        self.body_flags.append(int(BodyFlags.KINEMATIC if is_kinematic else BodyFlags.DYNAMIC))
        self.body_q.append(tuple(xform.tolist()))
        self.body_qd.append((0.0,) * 6)
        self.body_lock_inertia.append(lock_inertia)
        return index

    def add_body(
        self,
        *,
        xform=None,
        com=None,
        inertia=None,
        mass: float = 0.0,
        label: str | None = None,
        lock_inertia: bool = False,
        is_kinematic: bool = False,
        custom_attributes: dict | None = None,
        **others: Never,
    ) -> int:
        """Adds a body that moves freely: a link, a free joint and an articulation of its own.

        Arguments as :meth:`add_link`. Joint and articulation are called ``<label>_free_joint`` and
        ``<label>_articulation``.

        Returns:
            The body's index.
        """
        if others:
            refuse_options(ModelBuilder.add_body, others)
        body = self.add_link(**{name: value for name, value in locals().items() if name not in ("self", "others")})
        name = self.body_label[body]
        joint = self.add_joint_free(body, label=f"{name}_free_joint")
        self.add_articulation([joint], label=f"{name}_articulation")
        return body

    def add_articulation(
        self, joints, label: str | None = None, custom_attributes: dict | None = None, **others: Never
    ) -> int:
        """Declares a kinematic tree of joints.

        Joints that belong to no articulation close loops: their child is the child of another joint already.

        Args:
            joints: joint indices, contiguous and ascending; each joint comes after that of its parent body.
            label: name; without one ``articulation_<index>``.
            custom_attributes: entries of :class:`CustomAttribute` of articulations, by key.

        Returns:
            The articulation's index.

        Raises:
            AttributeError: a custom attribute is not declared.
            IndexError: a joint does not exist.
            ValueError: the joints are none, not contiguous, in different worlds, or belong to an articulation already.
        """
        if others:
            refuse_options(ModelBuilder.add_articulation, others)
        index = self.articulation_count
        label = f"articulation_{index}" if label is None else str(label)
        joints = self._articulation_joints(joints, f"articulation {label!r}")
        if self.articulation_end and joints[0] < self.articulation_end[-1]:
            raise ValueError(
                f"articulation {label!r}: its joints must come after those of {self.articulation_label[-1]!r}"
            )
        self._keep_entries(
            self._custom_entries(custom_attributes, {AttributeFrequency.ARTICULATION: 1}, f"articulation {label!r}")
        )
        self.articulation_label.append(label)
        self.articulation_world.append(self.joint_world[joints[0]])
        self.articulation_start.append(joints[0])
        self.articulation_end.append(joints[-1] + 1)
        for joint in joints:
            self.joint_articulation[joint] = index
        return index

    def extend_articulation(self, articulation: int | str, joints) -> None:
        """Adds joints to an articulation, for example a gripper to an arm.

        Args:
            articulation: index or label.
            joints: joint indices, contiguous and ascending, directly after those the articulation has.

        Raises:
            KeyError, IndexError: the articulation or a joint does not exist.
            ValueError: the joints do not follow directly, or belong to an articulation already.
        """
        articulation = self._resolve("articulation", articulation)
        what = self._describe("articulation", articulation)
        joints = self._articulation_joints(joints, what)
        end = self.articulation_end[articulation]
        if joints[0] != end:
            raise ValueError(
                f"{what} ends with joint index {end - 1}; joint indices from {joints[0]} do not follow directly, "
                "add them before other joints"
            )
        if self.joint_world[joints[0]] != self.articulation_world[articulation]:
            raise ValueError(f"{what} and {self._describe('joint', joints[0])} are in different worlds")
        self.articulation_end[articulation] = joints[-1] + 1
        for joint in joints:
            self.joint_articulation[joint] = articulation

    def _articulation_joints(self, joints, what: str) -> list[int]:
        joints = as_list(joints, f"{what}: joints", "joint indices")
        joints = [as_index(joint, f"{what}: joint", self.joint_count) for joint in joints]
        if not joints:
            raise ValueError(f"{what} has no joints; give the indices that the add_joint methods returned")
        if joints != list(range(joints[0], joints[0] + len(joints))):
            raise ValueError(
                f"{what}: joint indices {joints} are not contiguous and ascending; add the joints of an articulation "
                "one after the other"
            )
        for joint in joints:
            if self.joint_articulation[joint] >= 0:
                owner = self._describe("articulation", self.joint_articulation[joint])
                raise ValueError(f"{what}: {self._describe('joint', joint)} belongs to {owner} already")
        if len({self.joint_world[joint] for joint in joints}) > 1:
            raise ValueError(f"{what}: its joints are in different worlds")
        return joints

    def add_tendon(self, tendon: Tendon) -> int:
        """Adds a tendon to the current world.

        Returns:
            Its index in ``tendons``.

        Raises:
            TypeError, ValueError, IndexError: not a :class:`Tendon`, or an invalid one; a path over a shape that is no site, or
                around a shape that is neither a sphere nor a cylinder.
        """
        if not isinstance(tendon, Tendon):
            raise TypeError(f"{tendon!r} is not a Tendon")
        tendon.check(self.joint_count, self.shape_count, self.joint_dof_dim)
        check_shapes(tendon, self)
        self.tendons.append(dataclasses.replace(tendon, world=self.current_world))
        return len(self.tendons) - 1

    def add_actuator(self, actuator: Actuator) -> int:
        """Adds an actuator to the current world.

        Returns:
            Its index in ``actuators``.

        Raises:
            TypeError, ValueError, IndexError: not an :class:`Actuator`, or an invalid one; a target that does not exist, or a shape that is
                no site.
        """
        if not isinstance(actuator, Actuator):
            raise TypeError(f"{actuator!r} is not an Actuator")
        actuator.check(self.joint_count, self.shape_count, len(self.tendons), self.body_count)
        check_sites(actuator, self)
        self.actuators.append(dataclasses.replace(actuator, world=self.current_world))
        return len(self.actuators) - 1

    def collapse_fixed_joints(self, verbose: bool = False, joints_to_keep=None) -> dict:
        """Merges welded bodies; see :func:`newton_like.model.builder.collapse.collapse_fixed_joints`."""
        return collapse_fixed_joints(self, verbose=as_flag(verbose, "verbose"), joints_to_keep=joints_to_keep)

    def merge_articulations(self, articulations=None, *, label: str | None = None) -> dict:
        """Makes one articulation of several; see :func:`newton_like.model.builder.merge.merge_articulations`."""
        return merge_articulations(self, articulations, label=label)

    def request_state_attributes(self, *attributes: str) -> None:
        """:meth:`Model.request_state_attributes` of the models that this builder makes, and of builders that it is added to.

        Args:
            attributes: names of arrays of states.

        Raises:
            TypeError: a name is not a text.
            ValueError: there is no such array; ``finalize`` raises if it is the name of a custom attribute.
        """
        self._requested |= checked_requests(attributes)

    def request_contact_attributes(self, *attributes: str) -> None:
        """:meth:`Model.request_contact_attributes` of the models that this builder makes, and of builders that it is added to.

        Args:
            attributes: names of attributes of contacts; there is ``"force"``.

        Raises:
            TypeError: a name is not a text.
            ValueError: there is no such attribute.
        """
        self._requested_of_contacts |= checked_attributes(attributes)

    if TYPE_CHECKING:
        from newton_like.importers.mjcf import add_mjcf
        from newton_like.importers.urdf import add_urdf
        from newton_like.importers.usd import add_usd
    else:
        add_urdf, add_mjcf, add_usd = _Importer(_urdf), _Importer(_mjcf), _Importer(_usd)

    def finalize(
        self, device=None, *, requires_grad: bool = False, dtype=wp.float32, **skipped_validations: bool
    ) -> Model:
        """Checks the builder and creates a model. The builder can still be used afterwards.

        Args:
            device: Warp device; by default the current one.
            requires_grad: allocate gradients of the arrays that functions have gradients with respect to: masses, centres of mass,
                inertias, stiffness and damping of limits, gravity, and initial coordinates, velocities, forces and targets.
            dtype: scalar type of all real arrays, ``wp.float32`` or ``wp.float64``.
            skipped_validations: options of Newton, ``skip_all_validations`` and others. They have no effect: everything is always checked.

        Raises:
            ValueError, TypeError, IndexError: an entity is invalid; the message names the entity and a solution.
            ValueError, RuntimeError: the device does not exist.
            RuntimeError: a graph is being captured.
        """
        for name, value in skipped_validations.items():
            check_option("finalize", name, value, _SKIPPED, ("device", "requires_grad", "dtype"))
        return finalize(self, device=device, requires_grad=requires_grad, dtype=dtype)

    def _describe(self, kind: str, index: int) -> str:
        """Name, index and, in scenes with worlds, world of an entity, for messages."""
        world = getattr(self, f"{kind}_world")[index]
        place = f", world {world}" if self.world_count and world >= 0 else ""
        return f"{kind} {getattr(self, f'{kind}_label')[index]!r} (index {index}{place})"

    def _resolve(self, kind: str, entity: int | str) -> int:
        """Index of an entity from its index or label."""
        labels = getattr(self, f"{kind}_label")
        if not isinstance(entity, str):
            return as_index(entity, kind, len(labels))
        matches = [index for index, label in enumerate(labels) if label == entity]
        if not matches:
            shown = ", ".join(repr(label) for label in labels[:8]) + (", ..." if len(labels) > 8 else "")
            raise KeyError(f"no {kind} is called {entity!r}; there are: {shown or 'none'}")
        if len(matches) > 1:
            raise KeyError(f"{len(matches)} {kind}s are called {entity!r}; give the index (first: {matches[0]})")
        return matches[0]

    def _shapes_of(self, body: int, before: int | None = None) -> list[int]:
        """Shapes of a body. For the world, only those that collide with the current world."""
        shapes = self._neighbours.of(self, "shape_body").get(body, [])
        if body < 0 and self.current_world >= 0:
            shapes = [shape for shape in shapes if self.shape_world[shape] in (-1, self.current_world)]
        return [shape for shape in shapes if before is None or shape < before]

    def _joints_of(self, body: int) -> list[int]:
        """Joints whose parent or child is a body. For the world, only joints of the current world."""
        joints = self._neighbours.of(self, "joint_parent", "joint_child").get(body, [])
        if body < 0 and self.current_world >= 0:
            joints = [joint for joint in joints if self.joint_world[joint] == self.current_world]
        return joints

    def _forget_neighbours(self) -> None:
        """Clears the index of neighbours. Must be called after the bodies of joints or shapes were renumbered."""
        self._neighbours = _Neighbours()


class _Neighbours:
    """Index of the shapes and joints of each body, extended on demand when lists have grown."""

    def __init__(self):
        self._found: dict[tuple[str, ...], dict[int, list[int]]] = {}
        self._seen: dict[tuple[str, ...], int] = {}

    def of(self, builder, *columns: str) -> dict[int, list[int]]:
        """Indices of the entities that refer to a body in one of the columns, by body."""
        found = self._found.setdefault(columns, {})
        bodies = [getattr(builder, column) for column in columns]
        for index in range(self._seen.get(columns, 0), len(bodies[0])):
            for column in bodies:
                found.setdefault(column[index], []).append(index)
        self._seen[columns] = len(bodies[0])
        return found


def _config(value, kind: type, name: str):
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, not {value!r}")
    return value


def _table(value, kind: type, name: str) -> dict:
    if not isinstance(value, dict) or not all(isinstance(entry, kind) for entry in value.values()):
        raise TypeError(f"{name} must be a dict of {kind.__name__}, not {value!r}")
    return value
