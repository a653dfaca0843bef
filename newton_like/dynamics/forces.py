"""Forces of the equation of motion ``M(q) nu_dot + h(q, nu) = tau + sum J^T f``, and its solution for tau or nu_dot."""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

from newton_like.arrays import active_tape
from newton_like.dynamics.internal.common import (
    Q,
    V,
    columns,
    dof_vector,
    evaluate,
    input_array,
    link_vectors,
    links,
    output_array,
    representation,
    state_arrays,
    to_device,
)
from newton_like.dynamics.internal.frames import WORLD, Asked, asked_frames, asked_points
from newton_like.dynamics.kinematics import chosen, frame_program, output_representation
from newton_like.model.arguments import check_choice
from newton_like.model.singular import check_invertible
from newton_like.programs.program import Field, Program, cached_program
from newton_like.programs.run import run, selection
from newton_like.types import VelRepr

SOLVING = {"aba": ("tau", "pivot", "acceleration", "lever", "articulated"), "crb": ("tau", "pivot", "acceleration")}
"""Further rows of memory of forward dynamics by a method."""
_VECTOR = (Field("vector", "articulations", columns),)
_BIAS = Program("eval_bias_forces", (Q, V), _VECTOR, ("acceleration",))
_GRAVITY = Program("eval_gravity_forces", (Q,), _VECTOR)
_PUBLIC = Program("eval_inverse_dynamics", (Q, V, Field("acceleration", "dofs")), (Field("vector", "dofs"),))
_PUBLIC = _PUBLIC.ask(world_wrench=1)
_WRENCHES, _APPLIED = (Field(row, "articulations", lambda model: 6 * links(model)) for row in ("wrenches", "third"))
_FORWARD = {"aba": "eval_forward_dynamics", "crb": "eval_forward_dynamics_crb"}


def link_wrenches(model, link_forces, repr) -> tuple[tuple, list, dict[str, int]]:
    """Inputs, arrays and settings of a program for wrenches on links; empty if there are none."""
    kind = output_representation(repr, "link_forces_repr")
    if link_forces is None:
        return (), [], {}
    field, array = link_vectors(model, link_forces, "link_forces", "wrenches")
    return (field,), [array], {"wrench_repr": kind, "wrenches_by_link": int(field.kind == "articulations")}


def bias_forces(model, state, *, repr=None, out: wp.array | None = None) -> wp.array:
    """Bias forces h: the joint forces for zero accelerations (Coriolis, centrifugal and gyroscopic forces, and gravity).

    By the recursive Newton-Euler algorithm (Featherstone 2008, table 5.1).

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        repr: :class:`VelRepr` of the velocity of floating bases, whose accelerations are its derivatives; None: as
            ``joint_qd``.
        out: array for the result; a new array by default.

    Returns:
        [N or N m], ``[articulation_count, max_dofs_per_articulation]``; dofs that an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; an unknown representation.
        TypeError: an array of the wrong scalar type.
    """
    program = _BIAS.ask(base_repr=representation(repr))
    return evaluate(model, program, state_arrays(model, state), [(columns(model),)], out)


def gravity_forces(model, state, *, repr=None, out: wp.array | None = None) -> wp.array:
    """Gravity forces g: the joint forces that hold articulations at rest, the derivative of their potential energy ``-sum m g . x_com``.

    Arguments, result and errors as for :func:`bias_forces`; ``joint_qd`` of the state is not used.
    """
    program = _GRAVITY.ask(base_repr=representation(repr))
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

    By the recursive Newton-Euler algorithm (Featherstone 2008, table 5.1). h does not include springs, damping and friction of
    joints. M includes the armature.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
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
        out: array for the result; a new array by default.

    Returns:
        [N or N m], ``[articulation_count, max_dofs_per_articulation]``; dofs that an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; numbers that are not finite; an unknown representation.
        TypeError: an array of the wrong scalar type.
    """
    field, acceleration = dof_vector(model, joint_acceleration, "joint_acceleration", "acceleration")
    fields, arrays, settings = link_wrenches(model, link_forces, link_forces_repr)
    program = cached_program(_PUBLIC.name, (Q, V, field, *fields), _VECTOR).ask(
        base_repr=representation(repr), **settings
    )
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

    A degree of freedom without armature that moves no mass in a configuration (for example three aligned axes of massless links), or whose
    mass was removed after ``finalize``, counts as locked: it does not accelerate under any force. ``"crb"`` detects every such degree of
    freedom. ``"aba"`` detects those for which the articulated inertia of the joint's body is zero along the axis, but not the opposite
    rotation of two aligned joints with a massless body between them.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        joint_forces: tau [N or N m], ``[joint_dof_count]`` or ``[articulation_count, max_dofs_per_articulation]``: power
            per velocity. For a floating base that is the dual of its twist: with `repr` COM a world wrench at the centre
            of mass, as ``Control.joint_f`` has it. Zeros by default.
        link_forces, link_forces_repr: wrenches on links (force [N], torque [N m]), as for :func:`inverse_dynamics`; none by default.
        method: ``"aba"`` or ``"crb"``.
        repr, out: as for :func:`inverse_dynamics`.

    Returns:
        [m/s^2 or rad/s^2], ``[articulation_count, max_dofs_per_articulation]``; dofs that an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; numbers that are not finite; an unknown representation or
            method; a joint that moves no mass in any configuration (:mod:`newton_like.model.singular`).
        TypeError: an array of the wrong scalar type.
    """
    check_choice(method, "method", _FORWARD)
    field, forces = dof_vector(model, joint_forces, "joint_forces", "force")
    arrays = state_arrays(model, state)
    fields, wrenches, settings = link_wrenches(model, link_forces, link_forces_repr)
    check_invertible(model, "forward_dynamics")
    program = _forward_program(method, field, fields).ask(output_repr=representation(repr), **settings)
    return evaluate(model, program, [*arrays, forces, *wrenches], [(columns(model),)], out)


@cache
def _forward_program(method: str, force: Field, wrenches: tuple) -> Program:
    inputs = (Q, V, force, *wrenches)
    return Program(_FORWARD[method], inputs, _VECTOR, SOLVING[method], adjoint="eval_forward_dynamics_implicit")


def _applied(
    model, state, asked: Asked, forces, size: int, single: bool, repr, link_forces, link_forces_repr, replace, out
):
    """Wrenches of links plus those of some frames."""
    if any((frames.links[:-1] == WORLD).any() for frames, _ in asked.parts):
        raise ValueError("a force on the world has no effect; name a link, a site, or a pair (link, offset)")
    forces = to_device(model, forces, "forces")
    one = (size,) if single else (asked.count, size)
    shared = forces.ndim == len(one)
    input_array(model, forces, "forces", model.dtype, one if shared else (model.articulation_count, *one))
    if link_forces is not None:
        link_forces = to_device(model, link_forces, "link_forces")
        input_array(model, link_forces, "link_forces", model.dtype, (model.articulation_count, links(model), 6))
    given = Field("second", "all" if shared else "articulations", size * asked.count)
    inputs, arrays = [Q, given, _WRENCHES], [*state_arrays(model, state, False), forces, link_forces]
    if asked.field is not None:
        inputs, arrays = [*inputs, asked.field], [*arrays, asked.offsets]
    settings = {
        "output_repr": output_representation(repr, "repr"),
        "wrench_repr": output_representation(link_forces_repr, "link_forces_repr"),
        "replace_wrenches": int(bool(replace)),
        "components": size,
    }
    for frames, mask in asked.parts:
        program = frame_program("eval_frame_forces", frames, inputs, _APPLIED, **settings)
        out = evaluate(model, program, arrays, [(links(model), 6)], out, mask=mask)
    return out


def frame_forces(
    model,
    state,
    frames,
    forces,
    *,
    forces_repr=VelRepr.MIXED,
    repr=None,
    link_forces=None,
    link_forces_repr=VelRepr.COM,
    replace: bool = False,
    out: wp.array | None = None,
) -> wp.array:
    """Wrenches of links from wrenches in frames of links.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        frames: a frame, or a list of them: the name of a site or link, the index of a link, or a pair of a link and an offset (see
            :func:`frame_transform`). Articulations that have no such link stay as they are.
        forces: their wrenches (force [N], torque [N m]), ``[articulation_count, 6]`` for one frame,
            ``[articulation_count, frames, 6]`` for a list; without the first dimension: the same for all articulations.
        forces_repr: :class:`VelRepr` of `forces`; ``repr`` is another name of it. MIXED: torque about the frame's origin, world
            axes; BODY: the same along the frame's axes; INERTIAL: about the world's origin, world axes; COM: about the link's centre
            of mass, world axes.
        link_forces: the wrenches so far, ``[articulation_count, max_joints_per_articulation, 6]``; none by default.
        link_forces_repr: :class:`VelRepr` of these and of the result, see :func:`inverse_dynamics`.
        replace: links of `frames` lose the wrench that they had, instead of getting more.
        out: array for the result; a new array by default. It may be `link_forces`, except under a tape.

    Returns:
        ``[articulation_count, max_joints_per_articulation, 6]``, as :func:`inverse_dynamics` and
        :func:`forward_dynamics` take them.

    Raises:
        ValueError: an array of the wrong shape or device; numbers that are not finite; an unknown representation; the world
            as a frame.
        TypeError: an array of the wrong scalar type; a value that is not a frame.
        KeyError: an unknown name.
        IndexError: no articulation has such a link.
    """
    single = frames is None or isinstance(frames, str | int | np.integer | tuple)
    asked = asked_frames(model, [frames] if single else frames)
    given = chosen(forces_repr, repr)
    return _applied(model, state, asked, forces, 6, single, given, link_forces, link_forces_repr, replace, out)


def point_forces(
    model,
    state,
    links,
    points,
    forces,
    *,
    link_forces=None,
    link_forces_repr=VelRepr.COM,
    replace: bool = False,
    out: wp.array | None = None,
) -> wp.array:
    """Wrenches of links from forces at points of links.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        links: the link of all points, or a list with one for each: names or indices.
        points: where they are in their link frames [m], ``[n, 3]`` or ``[articulation_count, n, 3]``; gradients flow to Warp arrays.
        forces: [N], world axes, ``[n, 3]`` or ``[articulation_count, n, 3]``.
        link_forces, link_forces_repr, replace, out: see :func:`frame_forces`.

    Returns:
        As :func:`frame_forces`.

    Raises:
        ValueError, TypeError, KeyError, IndexError: as :func:`frame_forces`.
    """
    asked = asked_points(model, links, points)
    return _applied(model, state, asked, forces, 3, False, VelRepr.MIXED, link_forces, link_forces_repr, replace, out)


def eval_inverse_dynamics(model, state, joint_qdd=None, joint_f: wp.array | None = None, mask=None) -> wp.array:
    """Joint forces for given accelerations, ``tau = M qdd + c + g``, as :class:`Control` takes them in ``joint_f``.

    See :func:`newton_like.dynamics.inverse_dynamics`, which counts forces on links too. Springs, damping and friction of
    joints are not included; armature is.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``, and not the poses of bodies.
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
        joint_qdd = input_array(model, to_device(model, joint_qdd, "joint_qdd"), "joint_qdd", model.dtype, shape)
    chosen = selection(model, mask)
    grad = active_tape() is not None and any(a is not None and a.requires_grad for a in (*arrays, joint_qdd))
    joint_f = output_array(model, joint_f, shape, grad, "joint_f")
    if model.articulation_count and joint_f.size:
        run(model, _PUBLIC, [*arrays, joint_qdd, joint_f], chosen)
    return joint_f
