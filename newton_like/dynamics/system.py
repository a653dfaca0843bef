"""A mechanism as a system of differential equations: passive joint forces, and rates of coordinates, velocities and contacts."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import warp as wp

from newton_like.coercion import as_number
from newton_like.dynamics.contact.rigid import RigidContact, rigid_contact_forces
from newton_like.dynamics.contact.soft import SoftContact, soft_contact_forces
from newton_like.dynamics.coordinates.configuration import positions
from newton_like.dynamics.forces import SOLVING, link_wrenches
from newton_like.dynamics.internal.buffers import buffers_of
from newton_like.dynamics.internal.common import (
    Q,
    V,
    columns,
    constants,
    dof_vector,
    evaluate,
    links,
    representation,
    state_arrays,
)
from newton_like.dynamics.loops import TIME_CONSTANT, constrained_dynamics, loops_of
from newton_like.kernels.dynamics.system import LIMITS, SPRINGS, STATIC_FRICTION, VISCOUS_FRICTION
from newton_like.model.arguments import check_array, check_choice
from newton_like.model.singular import check_invertible
from newton_like.programs.program import Field, Program
from newton_like.types import VelRepr

FRICTION_SPEED = 1.0e-3
"""Joint speed [m/s or rad/s] from which static friction has its full value."""

_PASSIVE = {"friction": STATIC_FRICTION | VISCOUS_FRICTION, "limits": LIMITS, "springs": SPRINGS}


_ONE = Field("weights", "all", 1)
_VECTOR = Field("vector", "articulations", columns)
_LIMITS = Field("limit_stiffness", "dofs"), Field("limit_damping", "dofs")
_STRAINS = ("target_q", "error", "strain")
_METHODS = {"aba": "eval_rates", "crb": "eval_rates_crb"}


@cache
def _joint_program(force: Field) -> Program:
    return Program("eval_joint_forces", (Q, V, force, *_LIMITS, _ONE), (_VECTOR,), _STRAINS)


_RATE = Program("eval_position_rate", (Q, V, _ONE), (Field("vector", "articulations", positions),))


@cache
def _rates_program(method: str, force: Field, wrenches: tuple, coordinates: bool) -> Program:
    inputs = (Q, V, force, *_LIMITS, Field("weights", "all", 2), *wrenches)
    outputs = (_VECTOR, Field("third", "articulations", positions)) if coordinates else (_VECTOR,)
    return Program(_METHODS[method], inputs, outputs, (*SOLVING[method], *_STRAINS), adjoint="eval_rates_implicit")


class StateRate(NamedTuple):
    """Time derivative of a state.

    Attributes:
        joint_q: of the coordinates, ``[articulation_count, max coordinates]``, see :func:`position_rate`.
        joint_qd: of the velocities, ``[articulation_count, max_dofs_per_articulation]``, see :func:`velocity_rate`.
        contact: of the contact state, ``[articulation_count, points, 3]``, see :func:`soft_contact_forces`; None without one.
    """

    joint_q: wp.array
    joint_qd: wp.array
    contact: wp.array | None


def _weight(value, name: str) -> float:
    """A nonnegative finite number. Raises TypeError or ValueError for other values."""
    value = as_number(value, name)
    if value < 0.0:
        raise ValueError(f"{name} {value} must be at least 0")
    return value


def _weights(model, *values: float) -> wp.array:
    return constants(values, model.dtype, str(model.device))


def passive_bits(passive) -> int:
    """Kinds of passive joint forces as bits.

    Raises:
        TypeError: not a sequence of names.
        ValueError: an unknown name.
    """
    if isinstance(passive, str):
        raise TypeError(f"passive={passive!r} must be a tuple of names, such as ({passive!r},)")
    try:
        names = tuple(passive)
    except TypeError:
        raise TypeError(f"passive={passive!r} must be a tuple of names, such as ('friction',)") from None
    bits = 0
    for name in names:
        if not isinstance(name, str) or name not in _PASSIVE:
            raise ValueError(
                f"passive: {name!r} is not a kind of joint force; use any of {', '.join(map(repr, _PASSIVE))}"
            )
        bits |= _PASSIVE[name]
    return bits


def check_options(function: str, options: dict, known: tuple[str, ...]) -> None:
    """Raises TypeError for an unknown option of a function."""
    for name in options:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}; options are {', '.join(known)}")


def sum_of_joint_forces(model, arrays, joint_forces, bits: int, friction_speed, out=None) -> wp.array:
    """The sum of the given joint forces and the passive forces of `bits`, ``[articulation_count, max_dofs_per_articulation]``.

    Args:
        arrays: checked arrays of coordinates and velocities.
    """
    field, given = dof_vector(model, joint_forces, "joint_forces", "force")
    speed = _weights(model, _weight(friction_speed, "friction_speed"))
    inputs = [*arrays, given, *_limit_gains(model), speed]
    return evaluate(model, _joint_program(field).ask(force_terms=bits), inputs, [(columns(model),)], out)


def _limit_gains(model) -> list[wp.array]:
    shape = (model.joint_dof_count,)
    stiffness = check_array(model, model.joint_limit_ke, "model.joint_limit_ke", model.dtype, shape)
    return [stiffness, check_array(model, model.joint_limit_kd, "model.joint_limit_kd", model.dtype, shape)]


def joint_friction_forces(model, state, *, friction_speed: float = FRICTION_SPEED, out=None) -> wp.array:
    """Friction of the joints in motion, dry and viscous: ``-joint_friction_ratio joint_friction s(qd) - joint_damping qd``.

    s(qd) is the sign of the velocity, made steady: it grows evenly from -1 to 1 between ``-friction_speed`` and
    ``friction_speed``, which explicit integrators need.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        friction_speed: [m/s or rad/s]; 0 for the sign itself.
        out: array for the result; a new array by default.

    Returns:
        [N or N m], ``[articulation_count, max_dofs_per_articulation]``; dofs that an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; a negative ``friction_speed``.
        TypeError: an array of the wrong scalar type.
    """
    arrays = state_arrays(model, state)
    return sum_of_joint_forces(model, arrays, None, _PASSIVE["friction"], friction_speed, out)


def joint_limit_forces(model, state, *, out=None) -> wp.array:
    """Springs and dampers that act while a coordinate is beyond a limit: ``-joint_limit_ke (q - limit) - joint_limit_kd qd``.

    Loop joints have none here: their coordinates are none of the trees'. Limits of the rotations of BALL joints have none either.

    Arguments, result and errors as for :func:`joint_friction_forces`.
    """
    return sum_of_joint_forces(model, state_arrays(model, state), None, LIMITS, 0.0, out)


def joint_spring_forces(model, state, *, out=None) -> wp.array:
    """Springs of the joints: ``-joint_stiffness (q - joint_rest_q)``; of a BALL joint, of the rotation vector from its rest.

    FREE and DISTANCE joints have none here.

    Arguments, result and errors as for :func:`joint_friction_forces`.
    """
    return sum_of_joint_forces(model, state_arrays(model, state), None, SPRINGS, 0.0, out)


def position_rate(model, state, *, regularisation: float = 0.1, out=None) -> wp.array:
    """Time derivatives of the joint coordinates.

    Of a quaternion q with angular velocity w, ``dq/dt = (w, 0) q / 2 + regularisation |w| (1 - |q|) q / 2``: the second term
    draws it back to unit length when it is integrated as four numbers. Of a FREE joint, whose velocity is that of the
    centre of mass, the rate of its position is that of the child's anchor.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        regularisation: the factor above; 0 for the derivative alone.
        out: array for the result; a new array by default.

    Returns:
        [m/s, rad/s or 1/s], ``[articulation_count, coordinates of the articulation that has most]``; coordinates that an
        articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; a negative ``regularisation``.
        TypeError: an array of the wrong scalar type.
    """
    return _position_rate(model, state_arrays(model, state), regularisation, out)


def _position_rate(model, arrays, regularisation: float, out=None) -> wp.array:
    gain = _weights(model, _weight(regularisation, "regularisation"))
    most = positions(model)
    return evaluate(model, _RATE.ask(result_size=most), [*arrays, gain], [(most,)], out)


def velocity_rate(
    model,
    state,
    joint_forces=None,
    link_forces=None,
    *,
    passive=tuple(_PASSIVE),
    friction_speed: float = FRICTION_SPEED,
    loop_time_constant: float | None = TIME_CONSTANT,
    method: str = "aba",
    link_forces_repr=VelRepr.COM,
    repr=None,
    out=None,
) -> wp.array:
    """Time derivatives of the velocities: forward dynamics with the passive forces of the joints, and with closed loops.

    Drives, mimic joints, polynomials of equality constraints and the distances of DISTANCE joints are not included. Models with enabled
    loop joints are solved by :func:`constrained_dynamics`, whatever the method.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        joint_forces, link_forces, method, link_forces_repr, repr, out: as for :func:`forward_dynamics`.
        passive: which passive forces are added to ``joint_forces``: any of ``"friction"`` (:func:`joint_friction_forces`),
            ``"limits"`` (:func:`joint_limit_forces`), ``"springs"`` (:func:`joint_spring_forces`).
        friction_speed: see :func:`joint_friction_forces`.
        loop_time_constant: [s], the ``time_constant`` of :func:`constrained_dynamics`.

    Returns:
        [m/s^2 or rad/s^2], ``[articulation_count, max_dofs_per_articulation]``; dofs that an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; numbers that are not finite; an unknown representation, method or
            kind of force; a loop joint with passive forces of the named kinds, or that :func:`constrained_dynamics` does not support.
        TypeError: an array of the wrong scalar type.
    """
    return rates(
        model, state, state_arrays(model, state), joint_forces, link_forces, link_forces_repr, repr=repr, out=out, passive=passive,
        friction_speed=friction_speed, loop_time_constant=loop_time_constant, method=method,
    ).joint_qd  # fmt: skip


def rates(
    model,
    state,
    arrays,
    joint_forces,
    link_forces,
    link_forces_repr,
    contact=None,
    contact_state=None,
    *,
    repr=None,
    out=None,
    passive=tuple(_PASSIVE),
    friction_speed: float = FRICTION_SPEED,
    loop_time_constant: float | None = TIME_CONSTANT,
    method: str = "aba",
    slip_rate=None,
    regularisation: float | None = None,
) -> StateRate:
    """Rates of the velocities, of the contact state, and, with `regularisation`, of the coordinates; see :func:`state_rate`.

    One program computes the rates of velocities and coordinates, except for rigid contact and loop joints.

    Args:
        arrays: checked arrays of coordinates and velocities.
        slip_rate: array for the rate of the contact state; a new array by default.
        regularisation: see :func:`position_rate`; None: the result has no rate of the coordinates.
    """
    check_choice(method, "method", _METHODS)
    loops, rigid = loops_of(model, polynomials=True), isinstance(contact, RigidContact)
    if rigid:
        if contact_state is not None:
            raise ValueError("contact_state is not an argument for a RigidContact; omit it")
        if loops.enabled:
            raise ValueError("rigid contact is not supported together with loop joints; use SoftContact")
    elif contact is not None:
        forces, depth, wrenches = _ground_buffers(model, contact)
        ground = soft_contact_forces(
            model, state, contact, contact_state, link_forces=link_forces, link_forces_repr=link_forces_repr,
            out=[forces, slip_rate, depth, wrenches],
        )  # fmt: skip
        link_forces, link_forces_repr, slip_rate = ground.links, VelRepr.COM, ground.state_rate
    bits = passive_bits(passive)
    if bits:
        for kind, refusal in loops.passive.items():
            if bits & _PASSIVE[kind]:
                raise ValueError(refusal)
    if not (rigid or loops.enabled):
        forces = dof_vector(model, joint_forces, "joint_forces", "force")
        wrenches = link_wrenches(model, link_forces, link_forces_repr)
        found = _tree_rates(model, arrays, forces, wrenches, bits, friction_speed, regularisation, method, repr, out)
        return StateRate(*found, slip_rate)
    q_rate = None if regularisation is None else _position_rate(model, arrays, regularisation)
    buffers = buffers_of(model)
    if bits:
        place = buffers.get("joint forces", (model.articulation_count, columns(model)))
        joint_forces = sum_of_joint_forces(model, arrays, joint_forces, bits, friction_speed, place)
    options = {"link_forces_repr": link_forces_repr, "repr": repr}
    if rigid:
        arrays = [*_ground_buffers(model, contact), out]
        found = rigid_contact_forces(model, state, contact, joint_forces, link_forces, out=arrays, **options)
        return StateRate(q_rate, found.accelerations, None)
    place = buffers.get("loop forces", (model.articulation_count, loops.count))
    options["time_constant"] = loop_time_constant
    found = constrained_dynamics(model, state, joint_forces, link_forces, out=(out, place), **options)
    return StateRate(q_rate, found[0], slip_rate)


def _tree_rates(
    model, arrays, joint_forces, link_forces, bits: int, friction_speed, regularisation, method: str, repr, out
) -> tuple[wp.array | None, wp.array]:
    """Rates of the coordinates, None without `regularisation`, and of the velocities, of trees without loops.

    Args:
        joint_forces, link_forces: results of :func:`dof_vector` and :func:`link_wrenches`.
    """
    field, given = joint_forces
    fields, wrenches, settings = link_forces
    check_invertible(model, "forward_dynamics")
    numbers = [_weight(friction_speed, "friction_speed"), 0.0]
    shapes, most = [(columns(model),)], 0
    if regularisation is not None:
        numbers[1], most = _weight(regularisation, "regularisation"), positions(model)
        shapes, out = [*shapes, (most,)], None if out is None else [out, None]
    program = _rates_program(method, field, fields, len(shapes) > 1).ask(
        force_terms=bits, result_size=most, output_repr=representation(repr), **settings
    )
    inputs = [*arrays, given, *_limit_gains(model), _weights(model, *numbers), *wrenches]
    found = evaluate(model, program, inputs, shapes, out)
    return (None, found) if regularisation is None else (found[1], found[0])


def _ground_buffers(model, contact) -> list[wp.array]:
    """Arrays for forces on points, depths of points and wrenches on links."""
    shapes = contact.shape, contact.shape[:2], (model.articulation_count, links(model), 6)
    names = ("contact forces", "depth", "contact wrenches")
    return [buffers_of(model).get(*of) for of in zip(names, shapes, strict=True)]


def state_rate(
    model,
    state,
    joint_forces=None,
    link_forces=None,
    *,
    contact: SoftContact | RigidContact | None = None,
    contact_state=None,
    link_forces_repr=VelRepr.COM,
    regularisation: float = 0.1,
    **options,
) -> StateRate:
    """Time derivatives of coordinates, velocities and contact state: the whole right-hand side of the equations of motion.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        joint_forces, link_forces, link_forces_repr: as for :func:`forward_dynamics`.
        contact: a :class:`SoftContact` or a :class:`RigidContact`, whose forces are added to those on the links; none by default.
        contact_state: the state of soft contact, see :func:`soft_contact_forces`; None: zeros.
        regularisation: see :func:`position_rate`.
        **options: ``passive``, ``friction_speed``, ``loop_time_constant`` and ``method`` of :func:`velocity_rate`.

    Raises:
        ValueError: an array of the wrong shape or device; numbers that are not finite; the contact of another model; a
            ``contact_state`` without soft contact; rigid contact of a model with loop joints; as :func:`velocity_rate`.
        TypeError: an array of the wrong scalar type.
    """
    check_options("state_rate", options, ("passive", "friction_speed", "loop_time_constant", "method"))
    if contact is None and contact_state is not None:
        raise ValueError("contact_state needs contact; give contact, too")
    arrays = state_arrays(model, state)
    return rates(
        model, state, arrays, joint_forces, link_forces, link_forces_repr, contact, contact_state,
        regularisation=regularisation, **options,
    )  # fmt: skip
