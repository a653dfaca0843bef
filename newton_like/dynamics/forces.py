"""Forces of the equation of motion ``M(q) nu_dot + h(q, nu) = tau + sum J^T f``, and its solution for tau and for nu_dot."""

from __future__ import annotations

import warp as wp

from newton_like.coercion import as_index
from newton_like.dynamics.common import (
    Q,
    V,
    columns,
    dof_vector,
    evaluate,
    link_vectors,
    links,
    representation,
    state_arrays,
    to_device,
)
from newton_like.launch import active_tape
from newton_like.model.arguments import check_array
from newton_like.model.batched import Field, Program, run, selection
from newton_like.types import VelRepr


def _inverse_rows(model, template) -> dict[str, int]:
    return {"acceleration": template.dofs}


def _forward_rows(model, template) -> dict[str, int]:
    n = template.dofs
    return {"tau": n, "lever": 6 * n, "pivot": n, "articulated": 21 * template.bodies}


def _solve_rows(model, template) -> dict[str, int]:
    return {"tau": template.dofs, "pivot": template.dofs, "acceleration": template.dofs}


_VECTOR = (Field("vector", "articulations", columns),)
_BIAS = Program("eval_bias_forces", (Q, V), _VECTOR, _inverse_rows)
_GRAVITY = Program("eval_gravity_forces", (Q,), _VECTOR)
_PUBLIC = Program("eval_inverse_dynamics", (Q, V, Field("acceleration", "dofs")), (Field("vector", "dofs"),))
_PUBLIC = _PUBLIC.ask(world_wrench=1)
_WRENCHES = Field("wrenches", "articulations", lambda model: 6 * links(model))
_FORWARD = {
    "aba": ("eval_forward_dynamics", _forward_rows),
    "crb": ("eval_forward_dynamics_crb", _solve_rows),
}


def _given_as(value, name: str) -> int:
    """A representation of wrenches, as an integer of the programs."""
    if value is None:
        raise ValueError(f"{name} is None; wrenches need a VelRepr")
    return representation(value, name)


def _link_forces(model, link_forces, repr) -> tuple[tuple, list, dict[str, int]]:
    """Input, array and settings of wrenches of links; nothing without any."""
    kind = _given_as(repr, "link_forces_repr")
    if link_forces is None:
        return (), [], {}
    field, array = link_vectors(model, link_forces, "link_forces", "wrenches")
    return (field,), [array], {"given_as": kind, "other": int(field.kind == "articulations")}


def bias_forces(model, state, *, repr=None, out: wp.array | None = None) -> wp.array:
    """Bias forces h: what keeps all accelerations zero (Coriolis, centrifugal and gyroscopic forces, and gravity).

    By the recursive Newton-Euler algorithm (Featherstone 2008, table 5.1).

    Args:
        model: the :class:`Model`.
        state: the :class:`State` whose ``joint_q`` and ``joint_qd`` count.
        repr: :class:`VelRepr` of the velocity of floating bases, whose accelerations are its derivatives; None: as
            ``joint_qd``.
        out: written; a new array by default.

    Returns:
        [N or N m], ``[articulation_count, max_dofs_per_articulation]``; dofs that an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; an unknown representation.
        TypeError: an array of the wrong scalar type.
    """
    program = _BIAS.ask(base=representation(repr))
    return evaluate(model, program, state_arrays(model, state), [(columns(model),)], out)


def gravity_forces(model, state, *, repr=None, out: wp.array | None = None) -> wp.array:
    """Gravity forces g: what holds the articulations at rest, the derivative of their potential energy ``-sum m g . x_com``.

    Args:
        model: the :class:`Model`.
        state: the :class:`State` whose ``joint_q`` counts.
        repr: :class:`VelRepr` of the velocity of floating bases; None: as ``joint_qd``.
        out: written; a new array by default.

    Returns:
        [N or N m], ``[articulation_count, max_dofs_per_articulation]``; dofs that an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; an unknown representation.
        TypeError: an array of the wrong scalar type.
    """
    program = _GRAVITY.ask(base=representation(repr))
    return evaluate(model, program, state_arrays(model, state, False), [(columns(model),)], out)


def inverse_dynamics(
    model,
    state,
    joint_acceleration=None,
    link_forces=None,
    link_forces_repr=VelRepr.COM,
    repr=None,
    out: wp.array | None = None,
) -> wp.array:
    """Joint forces tau for given accelerations: ``M nu_dot + h - sum J^T f``.

    By the recursive Newton-Euler algorithm (Featherstone 2008, table 5.1). Springs, damping and friction of the joints
    are no part of h; their armature is one of M.

    Args:
        model: the :class:`Model`.
        state: the :class:`State` whose ``joint_q`` and ``joint_qd`` count.
        joint_acceleration: nu_dot, the derivatives of the velocities [m/s^2 or rad/s^2], ``[joint_dof_count]`` or
            ``[articulation_count, max_dofs_per_articulation]``; zeros by default.
        link_forces: wrenches on links (force [N], torque [N m]): like ``State.body_f`` (``[body_count]`` spatial
            vectors, or ``[body_count, 6]``), or ``[articulation_count, max_joints_per_articulation, 6]``; none by
            default.
        link_forces_repr: :class:`VelRepr` of these wrenches, the dual of the link's twist. COM, as ``body_f``: torque
            about the centre of mass, world axes; MIXED: about the link's origin, world axes; INERTIAL: about the
            world's origin, world axes; BODY: about the link's origin, the link's axes.
        repr: :class:`VelRepr` of the velocity of floating bases, whose derivative their acceleration is, and their
            force the dual; None: as ``joint_qd``.
        out: written; a new array by default.

    Returns:
        [N or N m], ``[articulation_count, max_dofs_per_articulation]``; dofs that an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; numbers that are not finite; an unknown representation.
        TypeError: an array of the wrong scalar type.
    """
    field, acceleration = dof_vector(model, joint_acceleration, "joint_acceleration", "acceleration")
    fields, arrays, settings = _link_forces(model, link_forces, link_forces_repr)
    program = Program(_PUBLIC.name, (Q, V, field, *fields), _VECTOR).ask(base=representation(repr), **settings)
    inputs = [*state_arrays(model, state), acceleration, *arrays]
    return evaluate(model, program, inputs, [(columns(model),)], out)


def forward_dynamics(
    model,
    state,
    joint_forces=None,
    link_forces=None,
    *,
    method: str = "aba",
    link_forces_repr=VelRepr.COM,
    repr=None,
    out: wp.array | None = None,
) -> wp.array:
    """Accelerations nu_dot under joint forces and wrenches on links, for joints without limits, springs and friction.

    ``"aba"``: the articulated-body algorithm (Featherstone 2008, table 7.1), one degree of freedom after the other where
    a joint has several. ``"crb"``: the mass matrix, its sparse factorisation and two solves (section 6.5). Both count
    the armature. A floating base is solved in its joint's velocities and represented at the end, so that no digits are
    lost far from the world's origin.

    A degree of freedom that moves nothing (a body that lost its mass, the twist of a point mass, and no armature)
    counts as locked: it does not accelerate, whatever the force on it. ``"crb"`` sees this of any such degree of
    freedom; ``"aba"`` where the body of the joint and what is left of its children is at fault, not where two joints in
    line with a massless body between them turn against each other.

    Args:
        model: the :class:`Model`.
        state: the :class:`State` whose ``joint_q`` and ``joint_qd`` count.
        joint_forces: tau [N or N m], ``[joint_dof_count]`` or ``[articulation_count, max_dofs_per_articulation]``: power
            per velocity. For a floating base that is the dual of its twist: with `repr` COM a world wrench at the centre
            of mass, as ``Control.joint_f`` has it. Zeros by default.
        link_forces: wrenches on links (force [N], torque [N m]): like ``State.body_f`` (``[body_count]`` spatial
            vectors, or ``[body_count, 6]``), or ``[articulation_count, max_joints_per_articulation, 6]``; none by
            default.
        method: ``"aba"`` or ``"crb"``.
        link_forces_repr: :class:`VelRepr` of these wrenches, see :func:`inverse_dynamics`.
        repr: :class:`VelRepr` of the velocity of floating bases, whose derivative their acceleration is, and their
            force the dual; None: as ``joint_qd``.
        out: written; a new array by default.

    Returns:
        [m/s^2 or rad/s^2], ``[articulation_count, max_dofs_per_articulation]``; dofs that an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; numbers that are not finite; an unknown representation or
            method.
        TypeError: an array of the wrong scalar type.
    """
    if method not in _FORWARD:
        raise ValueError(f"method={method!r} is unknown; use 'aba' or 'crb'")
    name, rows = _FORWARD[method]
    field, forces = dof_vector(model, joint_forces, "joint_forces", "force")
    fields, arrays, settings = _link_forces(model, link_forces, link_forces_repr)
    program = Program(name, (Q, V, field, *fields), _VECTOR, rows).ask(output=representation(repr), **settings)
    inputs = [*state_arrays(model, state), forces, *arrays]
    return evaluate(model, program, inputs, [(columns(model),)], out)


def frame_forces(
    model,
    state,
    link,
    forces,
    *,
    frame=None,
    repr=VelRepr.MIXED,
    link_forces=None,
    link_forces_repr=VelRepr.COM,
    replace: bool = False,
    out: wp.array | None = None,
) -> wp.array:
    """Wrenches of links with one more, that acts at a point or in a frame of a link.

    Args:
        model: the :class:`Model`.
        state: the :class:`State` whose ``joint_q`` counts.
        link: index of the link in its articulation, as in :func:`newton_like.eval_jacobian`; articulations without it stay
            as they are.
        forces: wrenches (force [N], torque [N m]), ``[articulation_count, 6]``, or six numbers for all.
        frame: on the link: position [m], or position and quaternion x y z w, in the link's frame; the link's own frame by
            default.
        repr: :class:`VelRepr` of `forces`: MIXED: torque about the frame's origin, world axes; BODY: the same along the
            frame's axes; INERTIAL: about the world's origin, world axes; COM: about the link's centre of mass, world axes.
        link_forces: the wrenches so far, ``[articulation_count, max_joints_per_articulation, 6]``; none by default.
        link_forces_repr: :class:`VelRepr` of these and of the result, see :func:`inverse_dynamics`.
        replace: the wrench takes the place of the link's, in place of being added to it.
        out: written; a new array by default. It may be `link_forces`, but for gradients.

    Returns:
        ``[articulation_count, max_joints_per_articulation, 6]``, as :func:`inverse_dynamics` and
        :func:`forward_dynamics` take them.

    Raises:
        ValueError: an array of the wrong shape or device; numbers that are not finite; an unknown representation.
        TypeError: an array of the wrong scalar type; `link` is no integer.
        IndexError: no articulation has such a link.
    """
    link = as_index(link, "link", links(model))
    forces = to_device(model, forces, "forces")
    shape = (6,) if forces.ndim == 1 else (model.articulation_count, 6)
    check_array(model, forces, "forces", model.dtype, shape)
    place = [0.0] * 3 if frame is None else frame
    place = to_device(model, [*place, 0.0, 0.0, 0.0, 1.0] if len(place) == 3 else place, "frame")
    check_array(model, place, "frame", model.dtype, (7,))
    if link_forces is not None:
        link_forces = to_device(model, link_forces, "link_forces")
        check_array(model, link_forces, "link_forces", model.dtype, (model.articulation_count, links(model), 6))
    wrench = Field("second", "all" if forces.ndim == 1 else "articulations", 6)
    program = Program("eval_frame_forces", (Q, wrench, Field("shift", "all", 7), _WRENCHES), (_WRENCHES,)).ask(
        link=link,
        output=_given_as(repr, "repr"),
        given_as=_given_as(link_forces_repr, "link_forces_repr"),
        other=int(not replace),
    )
    inputs = [*state_arrays(model, state, False), forces, place, link_forces]
    return evaluate(model, program, inputs, [(links(model), 6)], out)


def eval_inverse_dynamics(model, state, joint_qdd=None, joint_f: wp.array | None = None, mask=None) -> wp.array:
    """Joint forces for given accelerations, ``tau = M qdd + c + g``, as :class:`Control` takes them in ``joint_f``.

    See :func:`newton_like.dynamics.inverse_dynamics`, which counts forces on links too. Springs, damping and friction of
    joints are no part of it; armature is.

    Args:
        model: the :class:`Model`.
        state: the :class:`State` whose ``joint_q`` and ``joint_qd`` count; poses of bodies are not read.
        joint_qdd: derivatives of ``joint_qd`` [m/s^2 or rad/s^2], ``[joint_dof_count]``; zeros by default, which leaves
            c + g.
        joint_f: written [N or N m], ``[joint_dof_count]``; of FREE and DISTANCE joints it is the world wrench at the
            child's centre of mass. A new array of zeros by default.
        mask: which articulations to evaluate, ``[articulation_count]`` bools or integers; all by default. The forces of
            the others keep their values.

    Returns:
        ``joint_f``.

    Raises:
        ValueError: an array of the wrong shape or device, or with gaps; numbers that are not finite.
        TypeError: an array of the wrong scalar type.
    """
    arrays, shape = state_arrays(model, state), (model.joint_dof_count,)
    if joint_qdd is not None:
        joint_qdd = check_array(model, to_device(model, joint_qdd, "joint_qdd"), "joint_qdd", model.dtype, shape)
    chosen = selection(model, mask)
    if joint_f is None:
        grad = active_tape() is not None and any(a is not None and a.requires_grad for a in (*arrays, joint_qdd))
        joint_f = wp.zeros(shape, dtype=model.dtype, device=model.device, requires_grad=grad)
    else:
        check_array(model, joint_f, "joint_f", model.dtype, shape)
    if model.articulation_count and joint_f.size:
        run(model, _PUBLIC, [*arrays, joint_qdd, joint_f], chosen)
    return joint_f
