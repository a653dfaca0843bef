"""Poses, velocities and accelerations of links, frames and points.

A *link* is a name or an index, see :mod:`newton_like.dynamics.names`. A *frame* is one of these:

* the name of a site, or of a link that was merged into another one by collapsing fixed joints
* a link: its link frame
* a pair of a link and an offset, the pose of the frame in the link frame: seven numbers, or ``[articulation_count, 7]``
* None: the world

Results are differentiable with respect to offsets that are Warp arrays of the model's scalar type.
A name is looked up in each articulation; results of articulations without such a link are zeros.

Results are computed relative to the base and then shifted to the requested point. In float32, one kilometre from the world's
origin, relative transforms and twists, and velocities, accelerations and Jacobians in MIXED, BODY and COM are bitwise identical
to the results at the origin. Positions in the world have the precision of such numbers (7e-5 m), and INERTIAL velocities, with a
lever arm of one kilometre, have errors of 2e-4 m/s for each rad/s.
"""

from __future__ import annotations

import math

import warp as wp

from newton_like.dynamics.internal.common import Q, V, dof_vector, evaluate, representation, state_arrays
from newton_like.dynamics.internal.frames import Asked, Frames, asked_frames, asked_link, asked_points, every_link
from newton_like.model.arguments import check_choice
from newton_like.programs.program import Field, Program
from newton_like.types import VelRepr

MIXED = VelRepr.MIXED

_RATE = Field("acceleration", "dofs")


def output_representation(value, name: str) -> int:
    """A representation of a link's velocity as an integer of the programs.

    Raises:
        ValueError: not a representation, or None, which is the representation of joint velocities.
    """
    if value is None:
        names = ", ".join(f"VelRepr.{r.name}" for r in VelRepr)
        raise ValueError(f"{name}=None is not a representation of links; use one of {names}")
    return representation(value, name)


def chosen(out_repr, repr, default=MIXED):
    """The representation of a result: ``repr`` if given, else ``out_repr``. For functions in which ``repr`` is an alias of ``out_repr``.

    Raises:
        ValueError: both are given, and differ.
    """
    if repr is None:
        return out_repr
    if out_repr not in (default, repr):
        raise ValueError(f"out_repr={out_repr!r} and repr={repr!r} are two names of one argument; give one of them")
    return repr


def rate_rows(name: str) -> tuple[str, ...]:
    """Further rows of memory of a program: `subspace_rate` for derivatives."""
    return ("subspace_rate",) if name.endswith("derivatives") else ()


def frame_program(name: str, frames: Frames, inputs, result: Field, **settings: int) -> Program:
    """The program `name` for some frames; the same object for the same arguments."""
    key = (name, *settings.items(), *((f.row, f.kind) for f in inputs))
    if key not in frames.programs:
        program = Program(name, tuple(inputs), (result,), rate_rows(name), tables=frames, varied=frames.varied)
        frames.programs[key] = program.ask(**settings)
    return frames.programs[key]


def for_frames(
    model, name: str, asked: Asked, fields, arrays, row: str, shape: tuple[int, ...], single: bool, out, **settings
):
    """Runs a program whose result, in the memory row `row`, has numbers of the given shape for every frame."""
    if asked.field is not None:
        fields, arrays = [*fields, asked.field], [*arrays, asked.offsets]
    result = Field(row, "articulations", math.prod(shape) * asked.count)
    whole = shape if single else (asked.count, *shape)
    for frames, mask in asked.parts:
        program = frame_program(name, frames, fields, result, components=math.prod(shape[:1]), **settings)
        out = evaluate(model, program, arrays, [whole], out, mask=mask)
    return out


def _vectors(
    model, state, name: str, asked: Asked, size: int, single: bool, out, extra=(), velocities=True, **settings
):
    """Runs a program whose result `vector` has `size` numbers for every frame."""
    fields, arrays = [Q, V] if velocities else [Q], state_arrays(model, state, velocities)
    for field, array in extra:
        fields.append(field)
        arrays.append(array)
    return for_frames(model, name, asked, fields, arrays, "vector", (size,), single, out, **settings)


# ---------------------------------------------------------------------------------------------------------- poses


def link_transforms(model, state, *, out: wp.array | None = None) -> wp.array:
    """Poses of all links in the world.

    ``X_wc = X_wp X_p X_j(q) inverse(X_c)`` down the tree (Featherstone 2008, section 4.4).

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        out: array for the result; a new array by default.

    Returns:
        Position [m] and quaternion x y z w of the link frames, ``[articulation_count, max_links, 7]``; links that an articulation
        lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device.
        TypeError: an array of the wrong scalar type.
    """
    return _vectors(model, state, "eval_frame_transforms", every_link(model), 7, False, out, velocities=False)


def link_transform(model, state, link, *, out: wp.array | None = None) -> wp.array:
    """Pose of a link in the world, ``[articulation_count, 7]``; see :func:`frame_transform`."""
    return _poses(model, state, asked_link(model, link), True, out)


def frame_transform(model, state, frame, *, out: wp.array | None = None) -> wp.array:
    """Pose of a frame in the world.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``.
        frame: a frame, see above.
        out: array for the result; a new array by default.

    Returns:
        Position [m] and quaternion x y z w, ``[articulation_count, 7]``.

    Raises:
        KeyError: an unknown name; the message lists similar names.
        IndexError: a link that does not exist.
        ValueError: an array of the wrong shape or device; an offset that is not a transform; a name that several links have.
        TypeError: an array of the wrong scalar type; a value that is not a frame.
    """
    return _poses(model, state, asked_frames(model, [frame]), True, out)


def frame_transforms(model, state, frames, *, out: wp.array | None = None) -> wp.array:
    """Poses of several frames in the world, ``[articulation_count, frames, 7]``; see :func:`frame_transform`."""
    return _poses(model, state, asked_frames(model, frames), False, out)


def relative_transform(model, state, source, target, *, out: wp.array | None = None) -> wp.array:
    """Pose of one frame relative to another: ``inverse(X_target) X_source``, which takes coordinates in `source` to those in `target`.

    No digits are lost far from the world's origin.

    `source` and `target` are frames of the same articulation, or None for the world; the rest, result and errors as for
    :func:`frame_transform`.
    """
    return _poses(model, state, asked_frames(model, [source], target), True, out)


def _poses(model, state, asked, single: bool, out) -> wp.array:
    return _vectors(model, state, "eval_frame_transforms", asked, 7, single, out, velocities=False)


def point_positions(model, state, links, points, *, out: wp.array | None = None) -> wp.array:
    """Positions in the world of points fixed to links.

    Args:
        model, state, out: as for :func:`frame_transform`.
        links: the link of all points, or a list with one for each.
        points: where they are in their link frames [m], ``[n, 3]`` or ``[articulation_count, n, 3]``; gradients flow to Warp arrays.

    Returns:
        [m], ``[articulation_count, n, 3]``.

    Raises:
        KeyError, IndexError, ValueError, TypeError: as :func:`frame_transform`; points of the wrong shape, or not finite.
    """
    asked = asked_points(model, links, points)
    return _vectors(model, state, "eval_frame_transforms", asked, 3, False, out, velocities=False)


# ----------------------------------------------------------------------------------------------------- velocities


def link_velocities(model, state, *, out_repr=MIXED, repr=None, out: wp.array | None = None) -> wp.array:
    """Velocities of all links.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        out_repr: their :class:`VelRepr`; ``repr`` is another name of it.
        out: array for the result; a new array by default.

    Returns:
        Linear [m/s] and angular velocity [rad/s], ``[articulation_count, max_links, 6]``; links that an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; an unknown representation.
        TypeError: an array of the wrong scalar type.
    """
    return _velocities(model, state, every_link(model), False, chosen(out_repr, repr), out)


def link_velocity(model, state, link, *, out_repr=MIXED, repr=None, out: wp.array | None = None) -> wp.array:
    """Velocity of a link, ``[articulation_count, 6]``; see :func:`frame_velocity`."""
    return _velocities(model, state, asked_link(model, link), True, chosen(out_repr, repr), out)


def frame_velocity(model, state, frame, *, out_repr=MIXED, repr=None, out: wp.array | None = None) -> wp.array:
    """Velocity of a frame.

    Args:
        model, frame, out: as for :func:`frame_transform`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        out_repr: the :class:`VelRepr` of the result; COM means the centre of mass of the frame's link. ``repr`` is another name of it.

    Returns:
        Linear [m/s] and angular velocity [rad/s], ``[articulation_count, 6]``.

    Raises:
        KeyError, IndexError, ValueError, TypeError: as :func:`frame_transform`; an unknown representation.
    """
    return _velocities(model, state, asked_frames(model, [frame]), True, chosen(out_repr, repr), out)


def frame_velocities(model, state, frames, *, out_repr=MIXED, repr=None, out: wp.array | None = None) -> wp.array:
    """Velocities of several frames, ``[articulation_count, frames, 6]``; see :func:`frame_velocity`."""
    return _velocities(model, state, asked_frames(model, frames), False, chosen(out_repr, repr), out)


def relative_twist(
    model, state, source, target, *, out_repr=MIXED, repr=None, axes: str = "target", out: wp.array | None = None
) -> wp.array:
    """Velocity of one frame relative to another frame, as seen by an observer that moves with the other frame.

    With the frame B = `source` and the observer A = `target` (Traversaro and Saccon 2019):

    * BODY: of B's origin, in B's axes
    * MIXED: of B's origin, in A's axes: the time derivative of the position of `relative_transform`
    * INERTIAL: of the point at A's origin that moves along with B, in A's axes
    * COM: of the centre of mass of B's link, in A's axes

    With ``axes="world"``, MIXED and COM are along the axes of the world. INERTIAL is then the velocity of the point of B at the
    origin of the world. It equals the difference of the velocities of the two links in INERTIAL, so relative velocities along a
    chain add up.

    No digits are lost far from the world's origin, but for INERTIAL in the world's axes.

    `source` and `target` are frames of the same articulation, or None for the world; the rest, result and errors as for
    :func:`frame_velocity`.
    """
    check_choice(axes, "axes", ("target", "world"))
    world = axes == "world"
    if world and chosen(out_repr, repr) == VelRepr.BODY:
        raise ValueError("VelRepr.BODY is along the axes of the source; use MIXED, COM or INERTIAL with axes='world'")
    return _velocities(
        model, state, asked_frames(model, [source], target), True, chosen(out_repr, repr), out, world_axes=int(world)
    )


def _velocities(model, state, asked, single: bool, repr, out, **settings) -> wp.array:
    output = output_representation(repr, "out_repr")
    return _vectors(model, state, "eval_frame_velocities", asked, 6, single, out, output_repr=output, **settings)


def point_velocities(model, state, links, points, *, out: wp.array | None = None) -> wp.array:
    """Velocities [m/s] in world axes of points fixed to links, ``[articulation_count, n, 3]``; see :func:`point_positions`."""
    asked = asked_points(model, links, points)
    return _vectors(model, state, "eval_frame_velocities", asked, 3, False, out, output_repr=int(MIXED))


# -------------------------------------------------------------------------------------------------- accelerations


def link_accelerations(
    model, state, joint_acceleration=None, *, repr=None, out_repr=MIXED, out: wp.array | None = None
) -> wp.array:
    """Accelerations of all links: the time derivatives of :func:`link_velocities`, ``J nu_dot + J_dot nu``.

    Gravity plays no role.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        joint_acceleration: nu_dot [m/s^2 or rad/s^2], ``[joint_dof_count]`` or ``[articulation_count, max_dofs]``; None: zeros.
        repr: :class:`VelRepr` of nu of floating bases, whose time derivative is given; None: as ``joint_qd``.
        out_repr: :class:`VelRepr` of the links' velocities, whose time derivatives are returned: MIXED gives the classical
            acceleration of the link frame's origin, BODY and INERTIAL spatial ones (Featherstone 2008, section 2.11).
        out: array for the result; a new array by default.

    Returns:
        [m/s^2] and [rad/s^2], ``[articulation_count, max_links, 6]``; links that an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; an unknown representation; numbers that are not finite.
        TypeError: an array of the wrong scalar type.
    """
    return _accelerations(model, state, every_link(model), False, joint_acceleration, repr, out_repr, out)


def link_acceleration(
    model, state, link, joint_acceleration=None, *, repr=None, out_repr=MIXED, out: wp.array | None = None
) -> wp.array:
    """Acceleration of a link, ``[articulation_count, 6]``; see :func:`link_accelerations` and :func:`frame_transform`."""
    asked = asked_link(model, link)
    return _accelerations(model, state, asked, True, joint_acceleration, repr, out_repr, out)


def frame_acceleration(
    model, state, frame, joint_acceleration=None, *, repr=None, out_repr=MIXED, out: wp.array | None = None
) -> wp.array:
    """Acceleration of a frame, ``[articulation_count, 6]``; see :func:`link_accelerations` and :func:`frame_transform`."""
    asked = asked_frames(model, [frame])
    return _accelerations(model, state, asked, True, joint_acceleration, repr, out_repr, out)


def link_bias_accelerations(model, state, *, repr=None, out_repr=MIXED, out: wp.array | None = None) -> wp.array:
    """Accelerations of all links while nu is constant, ``J_dot nu``, ``[articulation_count, max_links, 6]``.

    See :func:`link_accelerations`. They depend on `repr`, as it says which velocities are constant.
    """
    return link_accelerations(model, state, repr=repr, out_repr=out_repr, out=out)


def link_bias_acceleration(model, state, link, *, repr=None, out_repr=MIXED, out: wp.array | None = None) -> wp.array:
    """Acceleration of a link while nu is constant, ``J_dot nu``, ``[articulation_count, 6]``; see :func:`link_accelerations`."""
    return link_acceleration(model, state, link, repr=repr, out_repr=out_repr, out=out)


def frame_bias_acceleration(model, state, frame, *, repr=None, out_repr=MIXED, out: wp.array | None = None) -> wp.array:
    """Acceleration of a frame while nu is constant, ``J_dot nu``, ``[articulation_count, 6]``; see :func:`link_accelerations`."""
    return frame_acceleration(model, state, frame, repr=repr, out_repr=out_repr, out=out)


def point_bias_accelerations(model, state, links, points, *, repr=None, out: wp.array | None = None) -> wp.array:
    """Accelerations [m/s^2] in world axes of points fixed to links while nu is constant, ``[articulation_count, n, 3]``.

    See :func:`point_positions` and :func:`link_accelerations`.
    """
    base = representation(repr)
    still = dof_vector(model, None, "joint_acceleration", "acceleration")
    return _vectors(
        model, state, "eval_frame_accelerations", asked_points(model, links, points), 3, False, out, [still],
        base_repr=base, output_repr=int(MIXED),
    )  # fmt: skip


def accelerations_after(model, joint_q, joint_qd, joint_qdd, out: wp.array | None) -> wp.array:
    """Accelerations of the centres of mass of all links where ``joint_qd`` changes at the rate ``joint_qdd``: linear [m/s^2], angular
    [rad/s^2], world axes, ``[articulation_count, max_links, 6]``. The arrays are those of a state of the model and are not checked."""
    return for_frames(
        model, "eval_frame_accelerations", every_link(model), [Q, V, _RATE], [joint_q, joint_qd, joint_qdd], "vector", (6,), False, out,
        base_repr=0, output_repr=int(VelRepr.COM),
    )  # fmt: skip


def _accelerations(model, state, asked, single: bool, joint_acceleration, repr, out_repr, out) -> wp.array:
    base, output = representation(repr), output_representation(out_repr, "out_repr")
    given = dof_vector(model, joint_acceleration, "joint_acceleration", "acceleration")
    return _vectors(
        model, state, "eval_frame_accelerations", asked, 6, single, out, [given], base_repr=base, output_repr=output
    )
