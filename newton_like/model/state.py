"""States and controls: the arrays that a step updates, and the inputs of a step."""

from __future__ import annotations

import warp as wp

from newton_like.model.custom import attach, holder
from newton_like.model.fields import Fields

JOINT_QDD, BODY_QDD, BODY_PARENT_F, QFRC_ACTUATOR = "joint_qdd", "body_qdd", "body_parent_f", "mujoco:qfrc_actuator"

ON_REQUEST: dict[str, tuple[str, str, tuple[str, ...]]] = {
    JOINT_QDD: ("joint_dof_count", "real", ()),
    BODY_QDD: ("body_count", "spatial_vector", (JOINT_QDD,)),
    BODY_PARENT_F: ("body_count", "spatial_vector", (JOINT_QDD,)),
    QFRC_ACTUATOR: ("joint_dof_count", "real", ()),
}
"""Arrays that states have on request: the attribute of the model with their length, their type, and what else they need."""


def checked_requests(names) -> frozenset[str]:
    """Names of arrays that states have on request, and of those that they need.

    Raises:
        TypeError: a name is not a text.
        ValueError: there is no such array.
    """
    there = f"there are {', '.join(map(repr, ON_REQUEST))}"
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"an array of states must be a text, not {name!r}; {there}")
        if name not in ON_REQUEST:
            raise ValueError(f"states have no array {name!r} on request; {there}")
    return frozenset(names).union(*(ON_REQUEST[name][2] for name in names))


def requested_array(state, name: str):
    """An array on request of a state; None: the state has none."""
    owner, attribute = holder(state, name)
    return getattr(owner, attribute, None)


class _Arrays(Fields):
    """Base class of states and controls: a fixed set of arrays."""

    _names: tuple[str, ...] = ()
    _on_request: tuple[str, ...] = ()
    # keys of the custom attributes; in a slot, so that vars() contains only arrays
    __slots__ = ("_custom",)

    def _custom_arrays(self) -> dict:
        """Arrays of custom attributes by key."""
        owners = {key: holder(self, key) for key in self._custom}
        return {key: getattr(*owner) for key, owner in owners.items() if hasattr(*owner)}

    def _accepts(self, name: str) -> bool:
        return name in self._names or name in ("made_by", "_custom")

    def _held(self, other=None) -> tuple[str, ...]:
        """Names of the arrays of this object; with `other`, also of those on request that only the other one has."""
        wanted = [name for name in self._on_request if any(getattr(x, name, None) is not None for x in (self, other))]
        return (*self._names, *wanted)

    def assign(self, other) -> None:
        """Copies the values of all arrays of ``other`` into the arrays of this object.

        Raises:
            TypeError: ``other`` is of another class.
            ValueError: an array has another length or scalar type, or only one of the two has a custom attribute, so they belong to
                different models.
        """
        if not isinstance(other, type(self)):
            raise TypeError(f"cannot assign a {type(other).__name__} to a {type(self).__name__}")
        pairs = [(name, getattr(self, name), getattr(other, name)) for name in self._held(other)]
        if self._custom or other._custom:
            pairs += self._custom_pairs(other)
        for name, mine, theirs in pairs:
            if _kind(mine) != _kind(theirs):
                raise ValueError(
                    f"{type(self).__name__}.{name.replace(':', '.')}: cannot assign {_described(theirs)} to {_described(mine)};"
                    " both must come from the same model"
                )
        for _, mine, theirs in pairs:
            if isinstance(mine, list):
                mine[:] = theirs
            else:
                wp.copy(mine, theirs)

    def _custom_pairs(self, other) -> list[tuple]:
        """Keys of the custom attributes, and the arrays, or lists of strings, of both objects."""
        mine, theirs = self._custom_arrays(), other._custom_arrays()
        missing = sorted({*self._custom, *other._custom} - (mine.keys() & theirs.keys()))
        if missing:
            raise ValueError(
                f"{type(self).__name__}.{missing[0].replace(':', '.')} is an attribute of one of the two only; both must come from"
                " models with the same custom attributes"
            )
        return [(key, array, theirs[key]) for key, array in mine.items()]

    def clone(self, requires_grad: bool | None = None):
        """An independent copy.

        Args:
            requires_grad: whether the arrays of the copy have gradients; by default like the originals.
        """
        result = type(self).__new__(type(self))
        for name in self._held():
            vars(result)[name] = copied(getattr(self, name), requires_grad)
        if self._custom:
            attach(result, {key: copied(array, requires_grad) for key, array in self._custom_arrays().items()})
        result._custom = self._custom
        return result

    def __deepcopy__(self, memo):
        """As :meth:`clone`: the copy belongs to the same model, or to its copy if both are copied together."""
        result = self.clone()
        if hasattr(self, "made_by"):
            result.made_by = memo.get(id(self.made_by), self.made_by)
        return result

    @property
    def requires_grad(self) -> bool:
        """Whether the arrays have gradients."""
        arrays = [getattr(self, name) for name in self._held()] + list(self._custom_arrays().values())
        return any(getattr(array, "requires_grad", False) for array in arrays)


def _kind(array) -> tuple:
    """What two arrays, or lists of texts, must have in common for one to be copied into the other."""
    if array is None:
        return ()
    return (str, len(array)) if isinstance(array, list) else (array.dtype, array.shape)


def _described(array) -> str:
    if array is None:
        return "nothing (arrays on request: see Model.request_state_attributes)"
    return f"{len(array)} texts" if isinstance(array, list) else f"{array.dtype.__name__}{array.shape}"


def copied(array, requires_grad: bool | None):
    """A copy of an array, or of a list of strings. `requires_grad` None: with gradients like the original."""
    if not isinstance(array, wp.array):
        return list(array)
    grad = array.requires_grad if requires_grad is None else requires_grad and _is_real(array)
    return wp.clone(array, requires_grad=grad)


def _is_real(array: wp.array) -> bool:
    return wp.types.type_is_float(getattr(array.dtype, "_wp_scalar_type_", array.dtype))


class State(_Arrays):
    """Positions and velocities of all joints and bodies at one time. :meth:`Model.state` creates states.

    Attributes:
        joint_q: coordinates of all joints [m, rad or quaternion x y z w], ``[joint_coord_count]``.
        joint_qd: velocities of all dofs [m/s or rad/s], ``[joint_dof_count]``. Of FREE and DISTANCE joints: velocity of
            the child's centre of mass, then angular velocity, both relative to the parent anchor frame and in its axes.
        body_q: poses of the link frames in the world, ``[body_count]`` transforms.
        body_qd: ``[body_count]`` spatial vectors: velocity of the centre of mass [m/s], angular velocity [rad/s], world
            axes.
        body_f: external wrenches, ``[body_count]`` spatial vectors: force [N], torque about the centre of mass [N m],
            world axes. A solver adds them in every step until they are changed; :meth:`clear_forces` sets them to zero.
        actuator_act: activations of the actuators of the model, ``[actuator_count]``; of those without dynamics not used.
        joint_qdd: accelerations of all dofs in the last step [m/s^2 or rad/s^2], ``[joint_dof_count]``: the change of ``joint_qd`` by
            all forces and impulses of the step, divided by its length. A step with :attr:`SolverFeatherstone.substeps` gives that of the
            last substep. None unless :meth:`Model.request_state_attributes` requested it before the state was made. Only steps write it,
            of solvers that name it in ``results``: those of :class:`newton_like.solvers.SolverXPBD` leave it as it is.
        body_qdd: accelerations of the centres of mass [m/s^2] and angular accelerations [rad/s^2], world axes, ``[body_count]`` spatial
            vectors, on request. Of :class:`newton_like.solvers.SolverFeatherstone` those that ``joint_qdd`` gives at the coordinates and
            velocities of this state; of :class:`newton_like.solvers.SolverXPBD` the change of ``body_qd`` in the step, divided by its
            length.
        body_parent_f: wrenches that the bodies get through their joints in the last step, drives included: force [N], torque about the
            centre of mass [N m], world axes, ``[body_count]`` spatial vectors, on request. They balance accelerations (``body_qdd``),
            gravity, ``body_f`` and contacts at the poses of this state, with an error of first order in the time step. Of FREE joints:
            ``Control.joint_f``, the drive, and what is left of this error. SolverXPBD refuses to write it.
        mujoco.qfrc_actuator: forces of the drives [N or N m] in the state before the last step, within their effort limits,
            ``[joint_dof_count]``, on request; without ``Control.joint_f``. Zero for joints of kinematic bodies. The step itself takes the
            drives at the new state (they are implicit). SolverXPBD refuses to write it.
        made_by: ``Model.made_by`` of the model that created the state. Functions of ``newton_like.dynamics`` raise ValueError for
            a state of another model. None: no check (states that were constructed directly).
    """

    joint_q: wp.array
    joint_qd: wp.array
    body_q: wp.array
    body_qd: wp.array
    body_f: wp.array
    actuator_act: wp.array
    joint_qdd: wp.array | None = None
    body_qdd: wp.array | None = None
    body_parent_f: wp.array | None = None

    _names = ("joint_q", "joint_qd", "body_q", "body_qd", "body_f", "actuator_act")
    # those of a namespace are with the custom attributes
    _on_request = tuple(name for name in ON_REQUEST if ":" not in name)
    # a slot, so that vars() contains only arrays
    __slots__ = ("made_by",)

    def __init__(
        self,
        joint_q: wp.array,
        joint_qd: wp.array,
        body_q: wp.array,
        body_qd: wp.array,
        body_f: wp.array,
        actuator_act: wp.array | None = None,
    ):
        if actuator_act is None:
            actuator_act = wp.zeros(0, dtype=joint_q.dtype, device=joint_q.device)
        # bypasses the checks of __setattr__
        vars(self).update(
            joint_q=joint_q, joint_qd=joint_qd, body_q=body_q, body_qd=body_qd, body_f=body_f, actuator_act=actuator_act
        )
        self.made_by = None
        self._custom = ()

    def __setattr__(self, name: str, value) -> None:
        if name in self._on_request and value is not None and name not in vars(self):
            raise AttributeError(
                f"State has no array {name!r}; call model.request_state_attributes({name!r}) before model.state()",
                name=name,
                obj=self,
            )
        super().__setattr__(name, value)

    def clone(self, requires_grad: bool | None = None) -> State:
        """An independent copy.

        Args:
            requires_grad: whether its arrays have gradients; by default as they are here.
        """
        result = super().clone(requires_grad)
        result.made_by = self.made_by
        return result

    def clear_forces(self) -> None:
        """Sets ``body_f`` to zero."""
        self.body_f.zero_()

    @property
    def body_count(self) -> int:
        """Number of bodies."""
        return len(self.body_q)

    @property
    def joint_coord_count(self) -> int:
        """Number of position coordinates."""
        return len(self.joint_q)

    @property
    def joint_dof_count(self) -> int:
        """Number of velocity coordinates."""
        return len(self.joint_qd)


class Control(_Arrays):
    """Forces and targets of the joints. :meth:`Model.control` creates controls.

    Attributes:
        joint_f: forces [N or N m], ``[joint_dof_count]``. Of FREE and DISTANCE joints: force, then torque about the
            child's centre of mass, in world axes.
        joint_target_q: position targets, laid out as ``State.joint_q``, ``[joint_coord_count]``.
        joint_target_qd: velocity targets, laid out as ``State.joint_qd``, ``[joint_dof_count]``.
        joint_act: feedforward forces of the drives [N or N m]; the effort limit applies to the sum with the forces of the gains,
            ``[joint_dof_count]``.
        tendon_f: forces of the drives of tendons [N], which shorten a tendon if negative; the effort limit applies to the sum with the
            forces of the gains, ``[tendon_count]``.
        tendon_target_q, tendon_target_qd: lengths of tendons [m] that their drives aim at, and their rates [m/s], ``[tendon_count]``.
        actuator_ctrl: controls of the actuators of the model, ``[actuator_count]``.
    """

    joint_f: wp.array
    joint_target_q: wp.array
    joint_target_qd: wp.array
    joint_act: wp.array
    tendon_f: wp.array
    tendon_target_q: wp.array
    tendon_target_qd: wp.array
    actuator_ctrl: wp.array

    _names = (
        "joint_f", "joint_target_q", "joint_target_qd", "joint_act", "tendon_f", "tendon_target_q", "tendon_target_qd",
        "actuator_ctrl",
    )  # fmt: skip

    def __init__(
        self,
        joint_f: wp.array,
        joint_target_q: wp.array,
        joint_target_qd: wp.array,
        joint_act: wp.array,
        tendon_f: wp.array,
        tendon_target_q: wp.array,
        tendon_target_qd: wp.array,
        actuator_ctrl: wp.array,
    ):
        vars(self).update(
            joint_f=joint_f, joint_target_q=joint_target_q, joint_target_qd=joint_target_qd, joint_act=joint_act,
            tendon_f=tendon_f, tendon_target_q=tendon_target_q, tendon_target_qd=tendon_target_qd,
            actuator_ctrl=actuator_ctrl,
        )  # fmt: skip
        self._custom = ()

    def clear(self, model=None) -> None:
        """Sets all forces, velocity targets and controls of actuators to zero. Position targets and lengths stay: zeros are not
        quaternions. With a `model`, they become those of the model."""
        velocities = self.joint_target_qd, self.tendon_target_qd
        for array in (self.joint_f, self.joint_act, self.tendon_f, *velocities, self.actuator_ctrl):
            array.zero_()
        if model is not None:
            self.joint_target_q.assign(model.joint_target_q)
            self.tendon_target_q.assign(model.tendon_target_q)
