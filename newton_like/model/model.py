"""The model: flat arrays of all quantities that are constant during a simulation."""

from __future__ import annotations

import weakref
from typing import Never

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded, host_array, unrecorded
from newton_like.coercion import as_count, as_flag, as_index, as_number
from newton_like.kernels.edits import DEGENERATE, NEGLIGIBLE
from newton_like.model.columns import KIND_OF
from newton_like.model.contacts import FORCE, Contacts, checked_attributes
from newton_like.model.copies import deep_copy
from newton_like.model.custom import FREQUENCY_OF, AttributeAssignment, AttributeFrequency, AttributeNamespace, attach
from newton_like.model.editing.edits import BODIES, checked_flags, checked_names, edits_of
from newton_like.model.editing.graphs import follow_edits
from newton_like.model.editing.structure import check_structure
from newton_like.model.fields import Fields
from newton_like.model.frames import FrameTable
from newton_like.model.pairs import contact_pairs
from newton_like.model.state import BODY_PARENT_F, ON_REQUEST, Control, State, checked_requests, copied
from newton_like.model.worlds import chosen_worlds
from newton_like.options import check_option, did_you_mean, refuse_options
from newton_like.types import Axis, GeoType, ModelFlags, ShapeFlags, warp_types

EVALUATORS = ("auto", "general", "specialised")
"""Ways to run batched programs."""

_EARLIER = "call it before a graph is captured"
"""For arrays that are made during a capture on a GPU."""

CONTACTS_PER_SHAPE, CONTACTS_PER_HULL = 8, 16
"""Capacity for contacts of each moving shape in a buffer of default size: the eight corners of a box on a plane; and of each convex hull:
two faces of eight corners."""


class Model(Fields):
    """Constants of all worlds as Warp arrays. :meth:`ModelBuilder.finalize` creates models.

    Arrays are flat and ordered by world: entities of world 3 follow those of world 2, and those shared by all worlds
    (world -1) come before the first or after the last. Entities of one kind keep the indices they had in the builder.
    Real numbers are of type ``dtype``. Units are SI, quaternions are x y z w, spatial vectors are linear first.

    Every quantity in the table ``newton_like.model.columns`` that is not marked ``builder_only`` is an array (a list,
    for labels and sources) of that name with one entry for each body, joint, dof, coordinate, articulation or shape:
    ``body_mass``, ``joint_axis``, ``joint_q``, ``articulation_start``, ``shape_scale`` and so on. Three start arrays
    have one more entry at
    the end, the total: ``joint_q_start``, ``joint_qd_start``, ``articulation_start``. Infinite limits are stored as
    ``MAXVAL``.

    These are derived from them:

    Attributes:
        body_inv_mass, body_inv_inertia: inverses, zero where there is no mass (no inertia).
        joint_ancestor: joint whose child is this joint's parent body, -1 for a joint on the world, ``[joint_count]``.
        shape_collision_radius: radius of the bounding sphere about the origin of the shape frame [m],
            ``[shape_count]``.
        hull_points: vertices of the convex hulls of all colliding meshes, scaled, in the shape frame [m], vec3. Shapes
            with the same mesh and scale share them.
        shape_hull_first, shape_hull_count: where a shape's vertices are in ``hull_points``; count 0 for shapes that are
            no meshes or do not collide.
        shape_collision_filter_pairs: pairs of shapes that never touch: a :class:`PairSet`. Shapes of one body, and of
            bodies that a joint connects (unless told otherwise), are in it.
        gravity: acceleration of each world [m/s^2], ``[world_count]`` vec3. Articulations of world -1 have that of world 0. Three numbers
            that are assigned are that of all worlds.
        body_world_start, joint_world_start, joint_coord_world_start, joint_dof_world_start, articulation_world_start,
            shape_world_start: first entity of each world, then the first shared one after all worlds, then the number
            of all, ``[world_count + 2]`` int.

    These are plain values:

    Attributes:
        dtype: scalar type of all real arrays.
        device: where the arrays are.
        requires_grad: whether arrays have gradients: those that :meth:`ModelBuilder.finalize` lists, and those of new states.
        up_axis: the :class:`Axis` that points up.
        world_count: number of worlds. A scene without worlds counts as one; its entities are in world -1 all the same.
        body_count, joint_count, joint_coord_count, joint_dof_count, articulation_count, shape_count: numbers of
            entities.
        max_joints_per_articulation, max_dofs_per_articulation: largest numbers in any articulation.
        world_label: names of the worlds.
        frames: named frames of links that were merged into others, a :class:`newton_like.model.frames.FrameTable` on the host;
            call :meth:`notify_changed` after editing it.
        tendons: a list of :class:`newton_like.model.tendons.Tendon`: what they run through. Their numbers are the arrays
            ``tendon_offset, tendon_stiffness, tendon_damping, tendon_armature, tendon_rest_lower, tendon_rest_upper, tendon_target_ke,
            tendon_target_kd, tendon_effort_limit, tendon_friction, tendon_limit_lower, tendon_limit_upper,
            tendon_limit_ke`` (-1: limits are as soft as ``solref_limit`` states) and the defaults of controls
            ``tendon_f, tendon_target_q, tendon_target_qd``, ``[tendon_count]`` each, in the order of the worlds; call
            ``notify_changed(ModelFlags.TENDON_PROPERTIES)`` after editing them.
        tendon_count, tendon_label, tendon_world: number of tendons, their names and worlds.
        actuators: a list of :class:`newton_like.model.actuators.Actuator`: what they pull, and their types. Their numbers are the arrays
            ``actuator_gear``, ``actuator_gainprm``, ``actuator_biasprm``, ``actuator_dynprm``, ``actuator_ctrlrange``,
            ``actuator_forcerange``, ``actuator_actrange`` and ``actuator_lengthrange``, ``[actuator_count, numbers]``,
            ``actuator_acc0``, ``actuator_factor`` and ``actuator_offset``, and the defaults ``actuator_ctrl`` of controls and
            ``actuator_act`` of states, ``[actuator_count]``; call ``notify_changed(ModelFlags.ACTUATOR_PROPERTIES)`` after editing them.
        actuator_count, actuator_label, actuator_world: number of actuators, their names and worlds.
        evaluator: how functions over this model run. ``"general"``: code for any robot, compiled once; ``"specialised"``:
            straight-line code for each robot of the model, which is faster and is compiled at its first use; ``"auto"`` (the
            default): specialised on CPUs where a batch has 256 articulations or more. On CPUs both give bitwise identical results
            if the lane width is above 1. Gradients are straight-line code, too; gradients of very large robots, and all gradients
            with ``"general"``, are interpreted from a list of operations: they need no compilation and take longer.
        check_finite: whether functions of ``newton_like.dynamics`` search the Warp arrays that they are given for numbers that
            are not finite, and raise ValueError (numbers from the host always are). ``"auto"`` (the default): arrays of up to
            8192 entries on CPUs; ``True``: all arrays (on GPUs this synchronises; no check while a graph is captured); ``False``:
            no arrays, so calls succeed although some worlds have diverged.
        made_by: a weak reference to the model. States store it, so functions raise ValueError for states of another model. Copies of the
            model share the reference.
        varying: names of arrays whose numbers will be edited, see :class:`newton_like.solvers.SolverFeatherstone`. Specialised
            kernels read these arrays from memory, so edits of these arrays need no compilation.
        joint_constraint_count: number of velocity directions that the joints block.
        custom_attributes: the declared :class:`CustomAttribute` by their keys, ``"name"`` or ``"namespace:name"``. Their arrays are
            ``model.name`` or ``model.namespace.name``, or attributes of states or controls.
        custom_frequency_counts: numbers of entities of the registered :class:`CustomFrequency`, by their keys.
        custom_frequency_articulation: articulation of each entity, int arrays by the keys of the frequencies that define it.
        custom_frequency_label_attributes: keys of the attributes with labels of entities, by the keys of the frequencies that have some.
        contact_attributes: attributes of contacts that were requested, see :meth:`request_contact_attributes`.
        state_attributes: arrays of states that were requested, see :meth:`request_state_attributes`.
        rigid_contact_max: capacity for contacts of :meth:`contacts` and :class:`newton_like.CollisionPipeline`. None (the default): eight
            for every colliding shape on a body, 16 for a convex hull.
        version: number of calls of :meth:`notify_changed`. Cached results of an older version are stale.
    """

    def __init__(self, device=None, dtype=wp.float32, requires_grad: bool = False):
        """An empty model. Use :meth:`ModelBuilder.finalize`."""
        self.device = wp.get_device(device)
        self.dtype = dtype
        self.requires_grad = bool(requires_grad)
        self.up_axis = Axis.Z
        self.evaluator = "auto"
        self.check_finite = "auto"
        self.tendons: list = []
        self.actuators: list = []
        self.frames = FrameTable()
        self._contact_room = None
        self.version = 0
        self._varying = frozenset()
        # the reason that the mass matrix is singular, and the version it was found for; see newton_like.model.singular
        self._singular = None
        self.made_by = weakref.ref(self)

    AttributeAssignment = AttributeAssignment
    AttributeFrequency = AttributeFrequency
    AttributeNamespace = AttributeNamespace

    def __copy__(self) -> Model:
        """A model with the same arrays and a separate record of edits."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, _edits=None, _contact_finder=None, _graph_readers=None, _graph_numbers=None)
        return twin

    def __deepcopy__(self, memo) -> Model:
        """A separate model with arrays of its own: edits of one have no effect on the other. States and contacts that are copied together
        with their model belong to the copy."""
        return deep_copy(self, memo)

    contact_attributes: frozenset[str] = frozenset()
    state_attributes: frozenset[str] = frozenset()
    _complete = False  # until finalize has set all arrays
    _needed = True
    _rows_alike = ("gravity",)
    _edits = _graph_readers = _graph_numbers = _surfaces = None
    # scales of shapes as of finalize, where there are hulls; and what the structure was, see newton_like.model.editing.structure
    _hull_scale = _structure = _accepted = None
    # coordinates as of finalize, on the host: softness depends on inertias there, whatever joint_q became
    _finalized_q = None

    @property
    def rigid_contact_max(self) -> int | None:
        """Default capacity for contacts."""
        return self._contact_room

    @rigid_contact_max.setter
    def rigid_contact_max(self, value: int | None) -> None:
        self._contact_room = None if value is None else checked_room(self, value)

    @property
    def evaluator(self) -> str:
        """The kind of kernels for functions of this model, see above."""
        return self._evaluator

    @evaluator.setter
    def evaluator(self, value: str) -> None:
        if value not in EVALUATORS:
            raise ValueError(f"evaluator {value!r} must be one of {EVALUATORS}")
        self._evaluator = value

    @property
    def check_finite(self) -> bool | str:
        """Whether inputs are checked for numbers that are not finite, see above."""
        return self._check_finite

    @check_finite.setter
    def check_finite(self, value: bool | str) -> None:
        if value != "auto" and not isinstance(value, bool):
            raise ValueError(f"check_finite {value!r} must be 'auto', True or False")
        self._check_finite = value

    @property
    def varying(self) -> frozenset[str]:
        """Names of arrays whose numbers will be edited, see above."""
        return self._varying

    @varying.setter
    def varying(self, names) -> None:
        self._varying = checked_names(names, "Model.varying")

    @property
    def up_vector(self) -> tuple[float, float, float]:
        """Unit vector of the up axis."""
        return self.up_axis.to_vector()

    @property
    def shape_contact_pairs(self) -> wp.array[wp.vec2i]:
        """Pairs of shapes that may touch as groups, worlds, bodies and filters say when this is called, the smaller index first: those of
        all worlds, then by world. A new array, which solvers do not read."""
        return wp.array(contact_pairs(self), dtype=wp.vec2i, device=self.device)

    @property
    def shape_contact_pair_count(self) -> int:
        """Number of these pairs."""
        return len(contact_pairs(self))

    @property
    def body_shapes(self) -> dict[int, list[int]]:
        """Shapes of each body; -1 is the world."""
        return shapes_by_body(self.shape_body.numpy().tolist(), self.body_count)

    def state(self, requires_grad: bool | None = None, **others: Never) -> State:
        """A new state with the initial coordinates and velocities of the model.

        ``body_q`` and ``body_qd`` are copies of the arrays of the model; :func:`newton_like.eval_fk` computes them from
        ``joint_q`` and ``joint_qd``.

        Args:
            requires_grad: allocate gradients; by default as the model.
        """
        if others:
            refuse_options(Model.state, others)
        grad = self.requires_grad if requires_grad is None else as_flag(requires_grad, "requires_grad")
        with unrecorded(self.device, "Model.state", _EARLIER):
            names = [name for name in State._names if name != "body_f"]
            initial = {name: wp.clone(getattr(self, name), requires_grad=grad) for name in names}
            state = State(**initial, body_f=wp.zeros_like(self.body_qd, requires_grad=grad))
            state.made_by = self.made_by
            arrays = {key: copied(array, grad) for key, array in self._custom_state.items()}
            for name in sorted(self.state_attributes):
                counted, kind, _ = ON_REQUEST[name]
                count, dtype = getattr(self, counted), getattr(warp_types(self.dtype), kind)
                arrays[name] = wp.zeros(count, dtype=dtype, device=self.device)
            attach(state, arrays)
            state._custom = tuple(key for key in arrays if key not in State._on_request)
        return state

    def control(self, requires_grad: bool | None = None, clone_variables: bool = True, **others: Never) -> Control:
        """A new control with the forces and targets of the model.

        Args:
            requires_grad: allocate gradients; by default as the model.
            clone_variables: False: the arrays are those of the model, and not copies. Edits of them change both.

        Raises:
            ValueError: ``requires_grad`` differs from that of the arrays, which are not copied.
        """
        if others:
            refuse_options(Model.control, others)
        if not as_flag(clone_variables, "clone_variables"):
            return self._shared_control(requires_grad)
        grad = self.requires_grad if requires_grad is None else as_flag(requires_grad, "requires_grad")
        with unrecorded(self.device, "Model.control", _EARLIER):
            control = Control(**{name: wp.clone(getattr(self, name), requires_grad=grad) for name in Control._names})
            _add_custom(control, self._custom_control, grad)
        return control

    def _shared_control(self, requires_grad: bool | None) -> Control:
        """A control with the arrays of the model."""
        arrays = {name: getattr(self, name) for name in Control._names}
        for name, array in arrays.items():
            if requires_grad is not None and bool(requires_grad) != array.requires_grad:
                raise ValueError(
                    f"requires_grad={requires_grad} with clone_variables=False: {name} of the model has requires_grad"
                    f" {array.requires_grad}, and is not copied; leave requires_grad out"
                )
        control = Control(**arrays)
        if self._custom_control:
            attach(control, self._custom_control)
            control._custom = tuple(self._custom_control)
        return control

    def get_custom_frequency_count(self, frequency: str) -> int:
        """Number of entities of a :class:`CustomFrequency`.

        Args:
            frequency: its key, ``"name"`` or ``"namespace:name"``.

        Raises:
            KeyError: none of that key was registered with the builder.
        """
        if frequency not in self.custom_frequency_counts:
            known = ", ".join(map(repr, self.custom_frequency_counts)) or "none"
            raise KeyError(f"custom frequency {frequency!r} is unknown; there are {known}")
        return self.custom_frequency_counts[frequency]

    def get_attribute_frequency(self, name: str) -> AttributeFrequency | str:
        """What an array of the model, its states or its controls has one entry of.

        Args:
            name: of the array, such as ``"joint_q"``; that of a custom attribute, with its namespace in front: ``"lab.heat"``.

        Returns:
            A member of :class:`AttributeFrequency`, or the key of a :class:`CustomFrequency`.

        Raises:
            KeyError: the array does not exist.
        """
        custom = self.custom_attributes.get(str(name).replace(".", ":"))
        if custom is not None:
            return custom.frequency
        if name == "gravity":
            return AttributeFrequency.WORLD
        name = str(name).replace(":", ".")
        if name not in KIND_OF:
            near = did_you_mean(name, [*KIND_OF, *self.custom_attributes])
            raise KeyError(f"no array {name!r} with an entry for each entity is known{near}")
        return FREQUENCY_OF[KIND_OF[name]]

    def contacts(self, rigid_contact_max: int | None = None, *, collision_pipeline=None, **others: Never) -> Contacts:
        """Memory for contacts.

        Args:
            rigid_contact_max: how many; by default the attribute ``rigid_contact_max``.
            collision_pipeline: a :class:`newton_like.CollisionPipeline` of this model, whose ``contacts()`` is called instead.

        Raises:
            TypeError: an argument is of another kind.
            ValueError: a negative number, or 0 where shapes on bodies collide; the pipeline of another model, or both arguments.
        """
        if others:
            refuse_options(Model.contacts, others)
        if collision_pipeline is not None:
            if rigid_contact_max is not None:
                raise ValueError("rigid_contact_max: give it to the CollisionPipeline, or omit collision_pipeline")
            return self._own(collision_pipeline).contacts()
        rigid_contact_max = contact_room(self) if rigid_contact_max is None else checked_room(self, rigid_contact_max)
        with unrecorded(self.device, "Model.contacts", _EARLIER):
            contacts = Contacts(
                rigid_contact_max,
                device=self.device,
                dtype=self.dtype,
                requires_grad=self.requires_grad,
                requested_attributes=self.contact_attributes,
                world_count=self.world_count,
            )
        contacts.made_by = self.made_by
        return contacts

    def request_contact_attributes(self, *attributes: str) -> None:
        """Requests attributes of contacts. With ``"force"``, lists that are made afterwards have the array ``force``, and steps keep their
        contacts for :meth:`newton_like.solvers.SolverFeatherstone.update_contacts`, which takes time and memory.

        Args:
            attributes: names; there is ``"force"``.

        Raises:
            TypeError: a name is not a text.
            ValueError: there is no such attribute.
            RuntimeError: a graph is being captured.
        """
        wanted = checked_attributes(attributes)
        if not wanted <= self.contact_attributes:
            # solvers look at it when the version of the model changes
            self.notify_changed(0)
            self.contact_attributes = self.contact_attributes | wanted

    def request_state_attributes(self, *attributes: str) -> None:
        """Requests arrays of states. States that :meth:`state` makes afterwards have them, and steps of
        :class:`newton_like.solvers.SolverFeatherstone` write them; :class:`newton_like.solvers.SolverXPBD` writes ``"body_qdd"`` only.
        Newton calls this function deprecated; here it does not warn.

        Args:
            attributes: names: ``"joint_qdd"``, ``"body_qdd"``, ``"body_parent_f"``, ``"mujoco:qfrc_actuator"``, see :class:`State`.
                ``body_qdd`` and ``body_parent_f`` also request ``joint_qdd``; ``body_parent_f`` also requests the attribute ``force`` of
                contacts, so that steps keep their contacts. All but ``joint_qdd`` take time in each step: steps of 1024 quadrupeds
                on a CPU take 1.4 times as long with ``body_qdd``, 3.9 with ``body_parent_f``, 1.3 with ``mujoco:qfrc_actuator``.

        Raises:
            TypeError: a name is not a text.
            ValueError: there is no such array, or the model has a custom attribute of this name.
        """
        wanted = checked_requests(attributes)
        for name in sorted(wanted & self.custom_attributes.keys()):
            raise ValueError(f"state attribute {name!r} was declared as a custom attribute; give that another name")
        if not wanted <= self.state_attributes:
            # solvers look at it when the version of the model changes
            self.notify_changed(0)
            self.state_attributes = self.state_attributes | wanted
        if BODY_PARENT_F in wanted:
            self.request_contact_attributes(FORCE)

    def collide(
        self,
        state: State,
        contacts: Contacts | None = None,
        *,
        unsupported_contacts: str | None = None,
        collision_pipeline=None,
        enable_rigid_soft_full_surface_contact: bool = False,
    ) -> Contacts:
        """Finds the contacts of a state; see :func:`newton_like.collision.collide`. Warns on a CPU if a list has too little room.

        Args:
            state: poses of the bodies.
            contacts: where to put them; by default a new :class:`Contacts`.
            unsupported_contacts: ``"error"`` (default), or ``"ignore"``: pairs whose contacts are not found are ignored.
            collision_pipeline: a :class:`newton_like.CollisionPipeline` of this model, whose settings hold for this call.
            enable_rigid_soft_full_surface_contact: must be False: there are no deformable bodies.

        Raises:
            TypeError: an argument is of another kind.
            ValueError: shapes may touch whose contacts are not found; contacts or a pipeline of another model; a pipeline together with
                ``unsupported_contacts``.
        """
        soft = {"enable_rigid_soft_full_surface_contact": (False, "there are no deformable bodies here")}
        for name in soft:
            check_option("Model.collide", name, enable_rigid_soft_full_surface_contact, soft, ())
        if collision_pipeline is not None:
            if unsupported_contacts is not None:
                raise ValueError("unsupported_contacts: give it to the CollisionPipeline, or omit collision_pipeline")
            pipeline = self._own(collision_pipeline)
            contacts = pipeline.contacts() if contacts is None else contacts
            pipeline.collide(state, contacts)
            return contacts
        from newton_like.collision import collide

        contacts = self.contacts() if contacts is None else contacts
        collide(self, state, contacts, "error" if unsupported_contacts is None else unsupported_contacts)
        if contacts.short:
            contacts.warn_dropped(stacklevel=2)
        return contacts

    def _own(self, pipeline):
        """A collision pipeline of this model."""
        maker = getattr(pipeline, "model", None)
        if maker is None or not hasattr(pipeline, "collide"):
            raise TypeError(f"collision_pipeline must be a CollisionPipeline, not {type(pipeline).__name__}")
        if maker is not self:
            raise ValueError("collision_pipeline belongs to another model; make one with CollisionPipeline(model)")
        return pipeline

    def notify_changed(self, flags: ModelFlags | int = ModelFlags.ALL, world_mask=None) -> None:
        """Declares that model arrays were edited, so that derived data are computed again.

        Kernels read only the arrays of the groups `flags`, for the worlds that `world_mask` selects. After
        ``BODY_INERTIAL_PROPERTIES``, ``body_inv_mass`` and ``body_inv_inertia`` are renewed. Where graphs were captured on the model, their
        parameters are refreshed at once; a UserWarning names edits that these graphs do not see.

        Args:
            flags: which groups of arrays.
            world_mask: the edited worlds: ``[world_count]`` bools (or bytes that are 0 or 1), or other integers, which are world
                indices; None: all worlds, and entities that all worlds share.

        Raises:
            ValueError, IndexError, TypeError: flags or worlds that do not exist.
            ValueError: an array of structure was edited, see :mod:`newton_like.model.editing.structure`.
        """
        check_recorded(self.device, "Model.notify_changed")
        flags, mask = checked_flags(flags), None
        if world_mask is not None:
            mask, _ = chosen_worlds(self, world_mask, "notify_changed")
            if self.device.is_cpu and not mask.numpy().any():
                return
        check_structure(self, flags)
        edits = edits_of(self)
        edits.note(flags, mask)
        self.version = edits.version
        if edits.last[BODIES] == edits.version and self.body_count:
            edits.read_masses(self)
        edits.at_once = True
        try:
            follow_edits(self)
        finally:
            edits.at_once = False

    def set_gravity(self, gravity, world: int | None = None) -> None:
        """Changes gravity of all worlds, or of one.

        The new gravity acts from the next step on in every world that is set; :meth:`notify_changed` is called for these worlds. A later
        ``solver.notify_model_changed(..., world_mask)``, which Newton needs after this function, changes nothing: its mask does not bring
        old gravity back. To change some worlds, call this function for each of them, or write ``gravity`` and notify with a mask.

        Args:
            gravity: acceleration [m/s^2]: a vector in world axes, a number along the up axis, or (without ``world``) an
                array ``[world_count, 3]``.
            world: one world; by default all.

        Raises:
            IndexError: the world does not exist.
            ValueError: wrong shape, or a number that is not finite.
        """
        check_recorded(self.device, "Model.set_gravity")
        values = host_array(gravity, "gravity").astype(np.float64)
        if values.ndim == 0:
            values = as_number(gravity, "gravity") * np.array(self.up_vector)
        rows = slice(None) if world is None else as_index(world, "world", self.world_count)
        current = self.gravity.numpy()
        if values.shape not in ((3,), current[rows].shape) or not np.all(np.isfinite(values)):
            raise ValueError(
                f"gravity {gravity!r} must be finite numbers of shape (3,)"
                + (f" or ({self.world_count}, 3)" if world is None else "")
            )
        current[rows] = values
        self.gravity.assign(current)
        self.notify_changed(ModelFlags.MODEL_PROPERTIES, None if world is None else [rows])


def _add_custom(target, arrays: dict, requires_grad: bool) -> None:
    """Gives a state or a control copies of the arrays of custom attributes."""
    if arrays:
        attach(target, {key: copied(array, requires_grad) for key, array in arrays.items()})
        target._custom = tuple(arrays)


def carried_bodies(joint_child: np.ndarray, joint_articulation: np.ndarray, body_count: int) -> np.ndarray:
    """Mask of the bodies that are children of joints of articulations, ``[body_count]`` bool; other bodies rest at ``Model.body_q``."""
    carried = np.zeros(body_count, dtype=bool)
    carried[joint_child[joint_articulation >= 0]] = True
    return carried


def resting_body(model) -> str | None:
    """Name of the first body that is not the child of a joint of an articulation; None if there is no such body."""
    rest = np.flatnonzero(
        ~carried_bodies(model.joint_child.numpy(), model.joint_articulation.numpy(), model.body_count)
    )
    return f"body '{model.body_label[rest[0]]}' (index {rest[0]})" if rest.size else None


def shapes_by_body(shape_body: list[int], body_count: int) -> dict[int, list[int]]:
    """Indices of the shapes of every body and of the world (-1)."""
    result = {body: [] for body in range(-1, body_count)}
    for shape, body in enumerate(shape_body):
        result[body].append(shape)
    return result


def contact_room(model) -> int:
    """Default capacity for contacts: ``rigid_contact_max`` of the model, or `CONTACTS_PER_SHAPE` for every colliding shape on a body, but
    `CONTACTS_PER_HULL` for every convex hull."""
    if model.rigid_contact_max is not None:
        return model.rigid_contact_max
    hulls = np.isin(model.shape_type.numpy()[_colliding(model)], (GeoType.MESH, GeoType.CONVEX_MESH))
    return int(np.where(hulls, CONTACTS_PER_HULL, CONTACTS_PER_SHAPE).sum())


def checked_room(model, value) -> int:
    """A capacity for contacts.

    Raises:
        TypeError: it is not an integer.
        ValueError: it is negative, or 0 where a shape on a body collides, whose contacts would all be lost.
    """
    room = as_count(value, "rigid_contact_max", 0)
    colliding = [] if room else _colliding(model)
    if len(colliding):
        shape = int(colliding[0])
        raise ValueError(
            f"rigid_contact_max 0 leaves no room for the contacts of shape {model.shape_label[shape]!r} (index {shape}); give at least 1,"
            " or None for the default"
        )
    return room


def _colliding(model) -> np.ndarray:
    """Indices of the shapes on bodies that collide with shapes."""
    flags, body = model.shape_flags.numpy(), model.shape_body.numpy()
    return np.flatnonzero((flags & int(ShapeFlags.COLLIDE_SHAPES) != 0) & (body >= 0))


def inverse_masses(mass: np.ndarray) -> np.ndarray:
    """Inverse masses [1/kg]; 0 for bodies without mass."""
    return np.divide(1.0, mass, out=np.zeros_like(mass), where=mass > 0.0)


def inverse_inertias(inertia: np.ndarray) -> np.ndarray:
    """Inverse inertias ``[n, 3, 3]``; directions without inertia have the inverse 0."""
    inertia = np.asarray(inertia, dtype=np.float64)
    inverse = np.zeros_like(inertia)
    size = np.trace(inertia, axis1=1, axis2=2) / 3.0
    regular = np.abs(np.linalg.det(inertia)) > DEGENERATE * np.abs(size) ** 3
    inverse[regular] = np.linalg.inv(inertia[regular])
    singular = ~regular & inertia.any((1, 2)) & np.isfinite(inertia).all((1, 2))
    if singular.any():
        inverse[singular] = np.linalg.pinv(inertia[singular], rcond=NEGLIGIBLE, hermitian=True)
    return inverse
