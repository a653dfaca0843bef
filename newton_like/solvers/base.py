"""The base class of solvers: checks of models, checks of worlds, and resets."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded, flat, host_array, keep_for_graph, unrecorded
from newton_like.coercion import as_number
from newton_like.kernels.solvers.health import health_kernels
from newton_like.kinematics import move_bodies
from newton_like.model.arguments import arrays_of_state, check_model, check_row
from newton_like.model.editing.edit_checks import check_masses, check_shape_types
from newton_like.model.editing.edits import BODIES, GAINS, JOINTS, KINDS, OTHERS, edits_of
from newton_like.model.editing.fingerprints import Accepted
from newton_like.model.joint_types import look_up
from newton_like.model.model import resting_body
from newton_like.model.singular import armature_matters, refuse_singular
from newton_like.model.worlds import chosen_worlds
from newton_like.options import unknown_attribute
from newton_like.solvers.near_singular import warn_near_singular
from newton_like.types import BodyFlags, ModelFlags


def _loop_joints(model, solver: str) -> str | None:
    loops = np.flatnonzero(model.joint_articulation.numpy() < 0)
    if not len(loops):
        return None
    return (
        f"joint '{model.joint_label[loops[0]]}' (index {loops[0]}) is in no articulation and closes a loop; {solver} does not solve loop"
        " joints: remove it, or add it to an articulation"
    )


def _disabled_joints(model, solver: str) -> str | None:
    enabled = model.joint_enabled.numpy().astype(bool, copy=False)
    if enabled.all():
        return None
    disabled = np.flatnonzero(~enabled & (model.joint_articulation.numpy() >= 0))
    if not len(disabled):
        return None
    return (
        f"joint '{model.joint_label[disabled[0]]}' (index {disabled[0]}) is disabled; {solver} keeps all tree joints: remove it; or give"
        " its child a free joint, in the same articulation, and connect both links by a joint that is in no articulation, which closes a"
        " loop and may be disabled; or use SolverXPBD"
    )


def _kinematic_bodies(model, solver: str) -> str | None:
    bodies = np.flatnonzero(model.body_flags.numpy() & BodyFlags.KINEMATIC)
    if not len(bodies):
        return None
    return f"body '{model.body_label[bodies[0]]}' (index {bodies[0]}) is kinematic, which {solver} does not support: fix it to the world"


def _check_flags(model) -> None:
    """Raises ValueError for flags of bodies that do not exist, and for kinematic bodies that are not on the world."""
    flags, child = model.body_flags.numpy(), model.joint_child.numpy()
    wrong = ~np.isin(flags, (BodyFlags.DYNAMIC, BodyFlags.KINEMATIC))
    told = "has the flags {}; body_flags holds BodyFlags.DYNAMIC or BodyFlags.KINEMATIC"
    if not wrong.any():
        tree = (model.joint_parent.numpy() >= 0) & (model.joint_articulation.numpy() >= 0)
        wrong[child[tree]] = flags[child[tree]] == BodyFlags.KINEMATIC
        told = "is kinematic and has another body as its parent; the parent must be the world"
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(f"body '{model.body_label[i]}' (index {i}) {told.format(int(flags[i]))}")


def _tendons(model, solver: str) -> str | None:
    if not model.tendons:
        return None
    return f"tendon '{model.tendons[0].label}' (index 0): {solver} does not support tendons; clear model.tendons to simulate without them"


def _actuators(model, solver: str) -> str | None:
    if not model.actuators:
        return None
    label = model.actuators[0].label
    return f"actuator '{label}' (index 0): {solver} does not support actuators; clear model.actuators to simulate without them"


def _resting_bodies(model, solver: str) -> str | None:
    told = resting_body(model)
    if told is None:
        return None
    return (
        f"{told} has no joint in an articulation, and {solver} does not move such bodies; use add_body for a free body, or hold it in the"
        " world by add_joint_fixed"
    )


FEATURES: dict[str, Callable] = {
    "resting bodies": _resting_bodies,
    "loop joints": _loop_joints,
    "disabled joints": _disabled_joints,
    "kinematic bodies": _kinematic_bodies,
    "tendons": _tendons,
    "actuators": _actuators,
}
"""Checks of features that not every solver supports. A check takes a model and the name of a solver. It returns the error message
for the first entity that needs the feature, or None."""


ROUNDED = 1.0e-6
"""Deviations of the length of a quaternion from 1 that count as rounding."""


class SolverBase:
    """Base class of solvers. A solver advances the states of one model in time.

    A subclass lists the supported :data:`FEATURES` in `supports`, overrides :meth:`step`, `_refresh` and `_forget`, and calls
    `_check_version` at the start of a step.

    Args:
        model: the model.

    Raises:
        TypeError: `model` is not a model.
        ValueError: the model needs a feature that the solver does not support, or has a joint that moves no inertia
            (:mod:`newton_like.model.singular`).
    """

    supports: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()
    """Arrays on request of states, see :meth:`Model.request_state_attributes`, that a step writes."""

    _reduced = True
    """Whether the solver inverts the inertia of joint coordinates, so that each joint must move inertia."""

    _complete = False
    """Whether all attributes exist, so that others are refused; a class that sets it leaves its subclasses free."""

    def __init__(self, model):
        self.model = check_model(model)
        check_recorded(model.device, f"{type(self).__name__}(model)")
        self._check_features(*FEATURES)
        self._flags = model.body_flags.numpy().copy()
        # flags and masses may have been edited since `finalize` checked them
        _check_flags(model)
        check_masses(model)
        check_shape_types(model)
        if self._reduced:
            refuse_singular(model, type(self).__name__)
            warn_near_singular(model, type(self).__name__, stacklevel=4)
        self._version, self._enabled = model.version, Accepted()
        self._chosen = self._sick = self._control = self._armature_matters = None
        # whether the copy of the initial control is older than an edit
        self._stale = False
        self._sizes: dict[str, int | None] = {}
        self._quaternions: tuple | None = None

    def __setattr__(self, name: str, value) -> None:
        if name == "model" and vars(self).get("model", value) is not value:
            raise AttributeError(
                f"{type(self).__name__}.model cannot be changed; make another solver with {type(self).__name__}(model)",
                name=name,
                obj=self,
            )
        if self._complete and not (name.startswith("_") or name in vars(self) or hasattr(type(self), name)):
            raise unknown_attribute(
                self, name, "unknown attributes have no effect; store other data elsewhere, or in a subclass"
            )
        object.__setattr__(self, name, value)

    def __deepcopy__(self, memo):
        name = type(self).__name__
        raise TypeError(
            f"a {name} cannot be copied; make another one with {name}(model), where model may be copy.deepcopy(model)"
        )

    @property
    def device(self) -> wp.Device:
        """Device of the model."""
        return self.model.device

    def step(self, state_in, state_out, control=None, contacts=None, dt: float = 1.0 / 240.0) -> None:
        """Advances all worlds by one step.

        Args:
            state_in: the state now.
            state_out: the state afterwards.
            control: forces and targets; None: those of the model's initial control.
            contacts: None: the solver finds contacts itself.
            dt: time step [s].
        """
        raise NotImplementedError

    def notify_model_changed(self, flags: ModelFlags | int = ModelFlags.ALL, world_mask=None) -> None:
        """Reads edited model arrays. Contact forces of the last step are kept for warm starts.

        Kernels on the device read the arrays of the groups `flags`, for the worlds that `world_mask` selects. The time grows with
        the number of selected worlds. Forces and targets of the model, which count in steps without a control, are taken for all
        worlds, unless `flags` has only flags of inertia, shapes and gravity. `SolverFeatherstone` with specialised kernels compiles
        them again at the first edit of parameters that are equal in all worlds, unless the array was named in its argument
        ``varying``. The contact tables are built again if flags or collision groups of shapes changed, or if a kind of limit
        becomes active for a degree of freedom for the first time. After these two kinds of edit, graphs that were captured earlier
        compute with the old parameters; one UserWarning says that they must be captured again. Graphs see other edits.

        Args:
            flags: groups of arrays that were edited.
            world_mask: worlds whose arrays were edited, see :meth:`reset`; None: all worlds, and entities that all worlds share.

        Raises:
            ValueError: a mass or a moment of inertia is negative or not finite; an inertia is not symmetric, or one moment is above the
                sum of the other two; an array of structure was edited (see :mod:`newton_like.model.editing.structure`); the type of a
                shape does not exist; a size of a shape is negative; the scale of a mesh that collides was edited, whose hull keeps it; a
                gain, armature, damping, stiffness, friction, limit of effort or velocity, or number of a material is negative or NaN, or
                infinite without being a limit; a restitution is above 1; a centre of mass, a position limit, a pose or size of a shape
                that may touch a plane, or gravity is NaN, or infinite without being a limit; a bounding radius is negative or not finite;
                an anchor or an axis of a joint, a rest position, a coefficient of a mimic, or a distance of a DISTANCE joint is NaN, or
                infinite without being a limit; a quaternion or an axis does not have length 1; a target mode does not exist; limits
                exclude all positions; a joint moves nothing; a body that hangs on another one is kinematic; or see :meth:`reset`.
                Distances, mimic coefficients and lengths of axes of joints that do not use them are not looked at.
        """
        self.model.notify_changed(flags, world_mask)
        edits = edits_of(self.model)
        edits.at_once = True
        try:
            self._check_version()
        finally:
            edits.at_once = False

    def _check_features(self, *features: str) -> None:
        """Raises ValueError if the model asks for one of :data:`FEATURES` that the solver does not support."""
        for feature in features:
            told = None if feature in self.supports else FEATURES[feature](self.model, type(self).__name__)
            if told is not None:
                raise ValueError(told)

    def _check_version(self) -> None:
        """Takes over what was edited since the last step."""
        model = self.model
        if self._version == model.version:
            return
        if not model.device.is_capturing:
            self._take_over()
        else:
            with unrecorded(model.device, f"{type(self).__name__} of an edited model"):
                self._take_over()

    def _take_over(self) -> None:
        model = self.model
        edits, seen = edits_of(model), self._version
        if edits.last[KINDS] > seen:
            self._check_kinds()
        self._check_inertia(edits, seen)
        if edits.last[JOINTS] > seen and not self._enabled.known([model.joint_enabled]):
            self._check_features("disabled joints")
            self._enabled.accept()
        if self._control is not None and max(edits.last[g] for g in (JOINTS, GAINS, OTHERS)) > seen:
            self._stale = True
            if model.device.is_cuda or any(self.graphs()):
                # launches of graphs read the copy
                self._renew_control()
        self._refresh()
        # last, so that an error comes back at the next step
        self._version = model.version

    def _check_kinds(self) -> None:
        """Looks at flags of bodies that may have been edited."""
        flags = self.model.body_flags.numpy()
        if np.array_equal(flags, self._flags):
            return
        self._check_features("kinematic bodies")
        _check_flags(self.model)
        # a joint whose body has no mass may be dynamic now
        self._armature_matters = None
        self._kinds_changed()
        self._flags = flags.copy()

    def _kinds_changed(self) -> None:
        """Kinematic bodies became dynamic, or dynamic ones kinematic."""

    def _check_inertia(self, edits, seen: int) -> None:
        """Raises ValueError for negative masses and masses that are not finite, and for joints that have nothing to move."""
        if edits.last[BODIES] > seen:
            unsound, _, lean = edits.masses.numpy().tolist()
            if unsound > seen:
                check_masses(self.model)
            if lean > seen:
                self._armature_matters = None
        if self._reduced and max(edits.last[g] for g in (BODIES, GAINS, JOINTS)) > seen:
            if self._armature_matters is None:
                # no robot without lean bodies depends on its armature
                self._armature_matters = bool(edits.lean.numpy().any()) and armature_matters(self.model)
            if self._armature_matters:
                refuse_singular(self.model, type(self).__name__)

    def graphs(self) -> list:
        """The :class:`newton_like.model.editing.graphs.Graphs` that repeat launches of this solver."""
        return []

    def follow_edits(self, model) -> None:
        """Takes over edits of the model for these graphs."""
        self._check_version()

    def _refresh(self) -> None:
        """Gathers the numbers of the model again."""

    def _forget(self, mask: wp.array) -> None:
        """Forgets what is remembered of the worlds that the mask selects, ``[world_count]`` bool."""

    def _default_control(self):
        """The model's initial control, as of its version."""
        if self._control is None or self._stale:
            with unrecorded(self.model.device, f"{type(self).__name__} without a control"):
                if self._control is None:
                    self._control = self.model.control(requires_grad=False)
                self._renew_control()
        return self._control

    def _renew_control(self) -> None:
        """Copies the forces and targets of the model into the initial control."""
        for name in self._control._names:
            wp.copy(getattr(self._control, name), getattr(self.model, name))
        self._stale = False

    # ------------------------------------------------------------------------------------------------ health

    def check(self, state, highest_speed: float = 1.0e4) -> np.ndarray:
        """Finds healthy worlds: worlds with finite joint coordinates and activations of actuators, and joint velocities below a bound.
        For :class:`SolverXPBD` also with finite poses of bodies, and velocities of bodies below the bound.

        Args:
            state: the state to check.
            highest_speed: the bound [m/s or rad/s].

        Returns:
            ``[world_count]`` bool. Articulations of world -1 count as those of world 0.

        Raises:
            TypeError: ``state`` is no state, or of another scalar type; the bound is no number.
            ValueError: an array of ``state`` is of another length or device, or has gaps; the bound is NaN or not positive.
            RuntimeError: a graph is being captured.
        """
        model, bound = self.model, as_number(highest_speed, "highest_speed", finite=False)
        if not bound > 0.0:
            raise ValueError(f"highest_speed {bound:g} must be positive")
        check_recorded(model.device, "solver.check, which reads results on the host")
        joint_q, joint_qd = arrays_of_state(model, state, "joint_q", "joint_qd")
        if self._sick is None:
            self._sick = wp.empty(model.world_count, dtype=wp.bool, device=model.device)
        self._sick.zero_()
        kernels = health_kernels(model.dtype)
        if model.actuator_count and state.actuator_act is not None:
            acts = check_row(model, state.actuator_act, "state.actuator_act", model.actuator_count)
            inputs = [model.actuator_world, acts]
            wp.launch(kernels.inspect, dim=len(acts), inputs=inputs, outputs=[self._sick], device=model.device)
        wp.launch(
            kernels.examine,
            dim=model.articulation_count,
            inputs=[
                model.articulation_start,
                model.articulation_world,
                model.joint_q_start,
                model.joint_qd_start,
                model.dtype(bound),
                joint_q,
                joint_qd,
            ],
            outputs=[self._sick],
            device=model.device,
        )
        if not self._reduced:
            poses, speeds = arrays_of_state(model, state, "body_q", "body_qd")
            inputs = [model.body_world, model.dtype(bound), flat(poses, model.dtype), flat(speeds, model.dtype)]
            wp.launch(
                kernels.examine_bodies, dim=model.body_count, inputs=inputs, outputs=[self._sick], device=model.device
            )
        return ~self._sick.numpy()

    def reset(self, state, world_mask=None, joint_q=None, joint_qd=None) -> None:
        """Resets worlds to an initial state, and clears their contact forces and their accounts of energy. External forces
        ``body_f`` of the worlds become zero, and activations of actuators those of the model. Other worlds do not change.
        Articulations of world -1 are reset with world 0.

        Arrays may be of Warp, NumPy or torch, or lists. Warp arrays on the device of the model are used without a copy and
        without synchronisation. Other arrays, and indices, are copied through the host.

        Args:
            state: the state to change, ``body_q`` and ``body_qd`` too.
            world_mask: which worlds: ``[world_count]`` bools (or bytes that are 0 or 1), or other integers, which are indices of worlds;
                None: all.
            joint_q: coordinates of the worlds afterwards [m, rad or quaternion x y z w]; None: those of the model. Quaternions from the
                host are normalised; those of Warp arrays are taken as they are, and normalised where they are read. Quaternions of zeros
                are refused, except in Warp arrays on a GPU or in a capture. Of all worlds, ``[joint_coord_count]`` or ``[world_count, n]``,
                of which the chosen ones are taken; or, where `world_mask` holds indices, ``[len(world_mask), n]``, a row for each index;
                or ``[n]``, the same in all chosen worlds.
            joint_qd: velocities afterwards [m/s or rad/s], likewise.

        Raises:
            ValueError: an array has the wrong size or device; an index occurs twice; numbers from the host are not finite; a quaternion is
                zero.
            IndexError: a world does not exist.
            TypeError: an argument is not an array.
            RuntimeError: a graph is being captured, and an array is not a Warp array on the device of the model.
        """
        model = self.model
        if not hasattr(state, "body_f"):
            raise TypeError(f"state must be a State, as model.state() makes it, not {type(state).__name__}")
        arrays = arrays_of_state(model, state, "joint_q", "joint_qd", "body_q", "body_qd")
        forces = None if state.body_f is None else check_row(model, state.body_f, "state.body_f", 6 * model.body_count)
        mask, indices = chosen_worlds(model, world_mask, "solver.reset")
        initial_q = self._initial("joint_q", "joint_coord", joint_q, mask, indices)
        initial_qd = self._initial("joint_qd", "joint_dof", joint_qd, mask, indices)
        if self._chosen is None:
            self._chosen = wp.zeros(model.articulation_count, dtype=wp.bool, device=model.device)
        kernels = health_kernels(model.dtype)
        wp.launch(
            kernels.restore,
            dim=model.articulation_count,
            inputs=[
                mask,
                model.articulation_start,
                model.articulation_world,
                model.joint_q_start,
                model.joint_qd_start,
                initial_q,
                initial_qd,
            ],
            outputs=[*arrays[:2], self._chosen],
            device=model.device,
        )
        self._forget(mask)
        if forces is not None:
            inputs = [mask, model.body_world]
            wp.launch(kernels.release, dim=model.body_count, inputs=inputs, outputs=[forces], device=model.device)
        if model.actuator_count:
            acts = check_row(model, state.actuator_act, "state.actuator_act", model.actuator_count)
            inputs = [mask, model.actuator_world, model.actuator_act]
            wp.launch(kernels.rouse, dim=model.actuator_count, inputs=inputs, outputs=[acts], device=model.device)
        if model.articulation_count:
            move_bodies(model, arrays, self._chosen)
        if model.device.is_capturing:
            keep_for_graph(model.device, model, self, state, *arrays, mask, initial_q, initial_qd, self._chosen)

    def forget(self, world_mask=None) -> None:
        """Clears contact forces, which steps start from, and accounts of energy of worlds. Call it after writing other coordinates into a
        state by hand; :meth:`reset` calls it.

        Args:
            world_mask: which worlds, see :meth:`reset`.
        """
        self._forget(chosen_worlds(self.model, world_mask, "solver.forget")[0])

    def _initial(self, name: str, kind: str, given, mask: wp.array, indices: wp.array | None) -> wp.array:
        """Numbers of all worlds in a row, from those that were given for all worlds or for some."""
        model, whole = self.model, getattr(self.model, name)
        # reading a GPU would wait for it
        readable = model.device.is_cpu and not model.device.is_capturing
        if given is None:
            if name == "joint_q" and readable:
                self._refuse_zero_quaternions(whole.numpy(), mask, None)
            return whole
        each = self._size_of_worlds(f"{kind}_world_start")
        rows = model.world_count if indices is None else indices.size

        def spread_out(numbers: np.ndarray) -> np.ndarray:
            """One row is that of every world."""
            return np.tile(numbers, (rows, 1)) if numbers.shape == (each,) != whole.shape else numbers

        if not isinstance(given, wp.array) or given.device != model.device or given.dtype is not model.dtype:
            if model.device.is_capturing:
                raise RuntimeError(
                    f"solver.reset: while a graph is captured, pass {name} as a Warp array of {model.dtype.__name__} on {model.device};"
                    " other arrays are copied through the host"
                )
            numbers = spread_out(host_array(given, name))
            self._check_finite(name, numbers, mask, indices)
            if name == "joint_q":
                numbers = self._unit_quaternions(numbers, mask, indices)
            given = wp.array(numbers, dtype=model.dtype, device=model.device)
        elif name == "joint_q" and readable:
            self._refuse_zero_quaternions(spread_out(given.numpy()), mask, indices)
        if given.size == whole.size and (indices is None or given.ndim == 1):
            return given.contiguous().flatten()
        if given.shape == (each,):
            given = given.reshape((1, each))
        elif each is None or given.shape != (rows, each):
            alike = f", ({each},) or ({rows}, {each})" if each is not None else ", as its worlds are not all alike"
            raise ValueError(f"{name} has shape {given.shape}; the model needs ({whole.size},){alike}")
        spread = wp.empty_like(whole)
        kernel = health_kernels(model.dtype).spread
        wp.launch(kernel, dim=(rows, each), inputs=[given, indices], outputs=[spread], device=model.device)
        return spread

    def _check_finite(self, name: str, numbers: np.ndarray, mask: wp.array, indices: wp.array | None) -> None:
        """Raises ValueError if numbers of worlds that are chosen are not finite."""
        if np.isfinite(numbers).all():
            return
        wrong = np.flatnonzero(~np.isfinite(numbers.ravel()))
        model, size = self.model, getattr(self.model, name).size
        if numbers.size == size and (indices is None or numbers.ndim == 1):
            starts = (model.joint_q_start if name == "joint_q" else model.joint_qd_start).numpy()
            joints = np.searchsorted(starts, wrong, side="right") - 1
            worlds = np.maximum(model.joint_world.numpy()[joints], 0)
            wrong = wrong[mask.numpy()[worlds]]
        if wrong.size:
            raise ValueError(
                f"{name} holds {numbers.ravel()[wrong[0]]} at index {wrong[0]}, and {wrong.size} numbers that are not finite in all; give"
                " finite ones"
            )

    def _unit_quaternions(self, numbers: np.ndarray, mask: wp.array, indices: wp.array | None) -> np.ndarray:
        """The numbers with quaternions of length 1. Those that have it up to rounding keep their bits.

        Raises:
            ValueError: a quaternion of a chosen world is zero, so that it is no rotation.
        """
        if not self._refuse_zero_quaternions(numbers, mask, indices):
            return numbers
        rows, _, starts = self._rotations(numbers, indices)
        places = starts[:, None] + np.arange(4)
        length = np.linalg.norm(rows[:, places].astype(np.float64), axis=2)
        row, i = np.nonzero((np.abs(length - 1.0) > ROUNDED) & (length > 0.0))
        if not row.size:
            return numbers
        mended = rows.astype(np.float64)
        mended[row[:, None], places[i]] /= length[row, i, None]
        return mended.reshape(numbers.shape)

    def _refuse_zero_quaternions(self, numbers: np.ndarray, mask: wp.array, indices: wp.array | None) -> bool:
        """Raises ValueError for quaternions of zeros in chosen worlds. Returns False for numbers of a shape that the caller refuses."""
        found = self._rotations(numbers, indices)
        if found is None:
            return False
        rows, joints, starts = found
        model = self.model
        if len(rows) == 1 and indices is None and model.world_count > 1:
            worlds = np.flatnonzero(mask.numpy())
            width = self._size_of_worlds("joint_coord_world_start")
            if not worlds.size:
                return True
            if width is not None and 4 * worlds.size < model.world_count:
                last = starts[: np.searchsorted(starts, width)] + 3
                if rows.reshape(-1, width)[worlds[:, None], last].all():
                    return True
        # in most quaternions w is not zero
        last = self._quaternions[2]
        if len(starts) == len(self._quaternions[1]) and (rows[:, last] != 0).all():
            return True
        wrong = rows[:, starts] == 0
        for i in range(1, 4):
            wrong &= rows[:, starts + i] == 0
        if numbers.size == model.joint_coord_count and len(rows) == 1 and wrong.any():
            wrong &= mask.numpy()[np.maximum(model.joint_world.numpy()[joints], 0)]
        if wrong.any():
            row, i = np.argwhere(wrong)[0]
            where = "" if len(rows) == 1 else f" in row {row}"
            raise ValueError(
                f"joint_q: the quaternion of joint '{model.joint_label[joints[i]]}' (index {joints[i]}){where} is zero; give a unit"
                " quaternion (x, y, z, w)"
            )
        return True

    def _rotations(self, numbers: np.ndarray, indices: wp.array | None) -> tuple | None:
        """Coordinates in rows, the joints of a row that have quaternions, and where in the row these start; None for numbers of a shape
        that the caller refuses."""
        model = self.model
        if self._quaternions is None:
            at = look_up(model.joint_type.numpy(), "rotation_at")
            has = np.flatnonzero(at >= 0)
            starts = model.joint_q_start.numpy()[has] + at[has]
            steps = np.diff(starts)
            # numbers that are evenly spaced are read as a slice, which takes a tenth of the time
            even = len(steps) and (steps == steps[0]).all()
            self._quaternions = has, starts, slice(starts[0] + 3, None, steps[0]) if even else starts + 3
        joints, starts, _ = self._quaternions
        if numbers.size == model.joint_coord_count and (indices is None or numbers.ndim == 1):
            return numbers.reshape(1, -1), joints, starts
        # a row for each world; all worlds are alike
        width = self._size_of_worlds("joint_coord_world_start")
        if indices is None or numbers.shape != (indices.size, width):
            return None
        first = starts < width
        return numbers, joints[first], starts[first]

    def _size_of_worlds(self, name: str) -> int | None:
        """How many entities of a kind each world has, None where worlds differ or share some."""
        if name not in self._sizes:
            *starts, total = getattr(self.model, name).numpy().tolist()
            sizes = {b - a for a, b in itertools.pairwise(starts)}
            alike = starts[0] == 0 and starts[-1] == total and len(sizes) == 1
            self._sizes[name] = total if self.model.world_count == 1 else sizes.pop() if alike else None
        return self._sizes[name]
