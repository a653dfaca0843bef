"""Inertias of links and subtrees, and functions that read and set the inertial parameters of a model."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.coercion import as_flag, as_index, as_list
from newton_like.dynamics.internal.common import (
    Q,
    evaluate,
    has_gradients,
    input_array,
    links,
    output_array,
    state_arrays,
    to_device,
)
from newton_like.dynamics.internal.frames import asked_link
from newton_like.dynamics.kinematics import chosen, for_frames, output_representation
from newton_like.dynamics.names import names_of, unknown
from newton_like.geometry import inertia as inertia_math
from newton_like.kernels.dynamics.inertial_parameters import parameter_kernels
from newton_like.kernels.dynamics.momentum import LINK, LINK_MASS, SUBTREE
from newton_like.model.arguments import as_numbers, check_model
from newton_like.programs.program import Field, Program
from newton_like.types import ModelFlags, VelRepr

_TOTAL_MASS = Program("eval_total_mass", (), (Field("vector", "articulations", 1),))
_INERTIAS = Program("eval_inertia", (Q,), (Field("matrix", "articulations", lambda m: 36 * links(m)),))


def _inertias(model, state, choice: int, repr, out):
    program = _INERTIAS.ask(quantity=choice, output_repr=output_representation(repr, "out_repr"))
    return evaluate(model, program, state_arrays(model, state, False), [(links(model), 6, 6)], out)


def link_spatial_inertia(
    model, state=None, *, out_repr=VelRepr.BODY, repr=None, out: wp.array | None = None
) -> wp.array:
    """Spatial inertia of each link: it takes the link's velocity in a representation to its momentum in the same one.

    In BODY it depends on ``body_mass``, ``body_com`` and ``body_inertia`` alone.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q``. Not needed for BODY.
        out_repr: :class:`VelRepr`: about the link's origin (BODY, MIXED), its centre of mass (COM) or the origin of the world
            (INERTIAL), along the link's axes (BODY) or the world's.
        out: array for the result; a new array by default.

    Returns:
        [kg, kg m, kg m^2], ``[articulation_count, max_joints_per_articulation, 6, 6]``; links that an articulation lacks are zero.

    Raises:
        ValueError: an array of the wrong shape or device; an unknown representation.
        TypeError: an array of the wrong scalar type.
    """
    out_repr = chosen(out_repr, repr, VelRepr.BODY)
    if state is None:
        if output_representation(out_repr, "out_repr") != VelRepr.BODY:
            raise TypeError(f"inertias in {VelRepr(out_repr)!r} depend on the pose; give a state, or use VelRepr.BODY")
        # the result does not depend on the pose
        state = check_model(model)
    return _inertias(model, state, LINK, out_repr, out)


def crb_inertia(model, state, *, out_repr=VelRepr.BODY, repr=None, out: wp.array | None = None) -> wp.array:
    """Composite-rigid-body inertia of each link: the sum of the inertias of the link and its descendants.

    As if all joints below were locked (Featherstone 2008, section 6.2). Arguments, result and errors as
    :func:`link_spatial_inertia`.
    """
    return _inertias(model, state, SUBTREE, chosen(out_repr, repr, VelRepr.BODY), out)


def total_mass(model, *, out: wp.array | None = None) -> wp.array:
    """Mass of each mechanism.

    Args:
        model: the :class:`Model`.
        out: array for the result; a new array by default.

    Returns:
        [kg], ``[articulation_count]``.

    Raises:
        ValueError, TypeError: ``out`` has another shape, device or scalar type.
    """
    return evaluate(check_model(model), _TOTAL_MASS, [], [()], out)


def link_mass(model, link, *, out: wp.array | None = None) -> wp.array:
    """Mass of a link; :func:`set_link_mass` sets it.

    Args:
        model: the :class:`Model`.
        link: name or index.
        out: array for the result; a new array by default.

    Returns:
        [kg], ``[articulation_count]``; zero where an articulation lacks the link.

    Raises:
        KeyError, IndexError: no articulation has the link.
        ValueError: ``out`` has another shape or device; several links have the name.
        TypeError: ``out`` has another scalar type; neither a name nor an index.
    """
    asked = asked_link(check_model(model), link)
    return for_frames(model, "eval_links", asked, [], [], "vector", (), True, out, quantity=LINK_MASS)


def inertial_parameters(model, *, linear: bool = False, out: wp.array | None = None) -> wp.array:
    """Inertial parameters of all bodies as vectors ``(m, cx, cy, cz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz)``, on Warp's tape.

    Args:
        model: the :class:`Model`; the function reads ``body_mass``, ``body_com`` and ``body_inertia``.
        linear: false: centre of mass c and inertia about it; true: first moment m c instead of c, and inertia about the link's
            origin. Inverse dynamics and energies are linear in these (Atkeson, An and Hollerbach 1986) where the motion of the links is
            given; the ``joint_qd`` of FREE joints is that of a centre of mass, and moves with it. Both in link axes.
        out: array for the result; a new array by default.

    Returns:
        [kg, m or kg m, kg m^2], ``[body_count, 10]``, in the order of ``body_mass``.

    Raises:
        ValueError: `out` has the wrong shape or device.
        TypeError: it has the wrong scalar type.
    """
    shape, sources = (model.body_count, 10), (model.body_mass, model.body_com, model.body_inertia)
    out = output_array(model, out, shape, has_gradients(model, ()))
    arguments = [int(as_flag(linear, "linear")), *sources]
    kernel = parameter_kernels(model.dtype).read
    wp.launch(kernel, dim=model.body_count, inputs=arguments, outputs=[out], device=model.device)
    return out


def set_inertial_parameters(model, values, *, linear: bool = False) -> None:
    """The inverse of :func:`inertial_parameters`: sets masses, centres of mass and inertias of all bodies, and notifies the model.

    On Warp's tape, gradients flow through ``body_mass``, ``body_com`` and ``body_inertia`` to `values` (the model needs
    ``requires_grad=True``). Whether a body can have such an inertia is not checked, so that a search may pass through others.

    Args:
        model: the :class:`Model`, whose ``body_mass``, ``body_com`` and ``body_inertia`` are written.
        values: ``[body_count, 10]``.
        linear: see :func:`inertial_parameters`. A body without mass has its centre of mass at the link's origin.

    Raises:
        ValueError: the wrong shape or device, or host numbers that are not finite.
        TypeError: not numbers, or of the wrong scalar type.
    """
    values = input_array(model, to_device(model, values, "values"), "values", model.dtype, (model.body_count, 10))
    arguments = [int(as_flag(linear, "linear")), values]
    results = [model.body_mass, model.body_com, model.body_inertia]
    kernel = parameter_kernels(model.dtype).write
    wp.launch(kernel, dim=model.body_count, inputs=arguments, outputs=results, device=model.device)
    model.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)


def set_link_mass(model, link, mass, *, world=None) -> None:
    """Sets the mass of a link, in one world, some or all, and notifies the model.

    The centre of mass, and the inertia about the centre of mass, do not change.

    Args:
        model: the :class:`Model`.
        link: name, or index of the link in its articulation (that of its joint), see :func:`link_index`.
        mass: [kg], a number, or one for each of the worlds.
        world: index or indices; by default all worlds that have the link.

    Raises:
        KeyError: no link has the name, or none in a world that is asked for.
        IndexError: the link, or the world, does not exist.
        ValueError: several links of a world are meant; another number of masses; a mass that no body with the link's inertia has.
        TypeError: something else than numbers.
    """
    bodies = _bodies(model, link, world)
    values = _numbers(mass, "mass", (), len(bodies))
    _check(model, bodies, values, model.body_inertia.numpy()[bodies])
    _write(model.body_mass, bodies, values)
    model.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)


def set_link_inertia(model, link, inertia, *, world=None) -> None:
    """Sets the inertia of a link, in one world, some or all, and notifies the model. Mass and centre of mass stay.

    Args:
        model, link, world: as for :func:`set_link_mass`.
        inertia: 3x3, about the centre of mass, in link axes [kg m^2]; or one for each of the worlds.

    Raises:
        KeyError, IndexError, TypeError: as :func:`set_link_mass`.
        ValueError: several links of a world are meant; another shape; an inertia that no body of the link's mass has.
    """
    bodies = _bodies(model, link, world)
    values = _numbers(inertia, "inertia", (3, 3), len(bodies))
    _check(model, bodies, model.body_mass.numpy()[bodies], values)
    _write(model.body_inertia, bodies, 0.5 * (values + values.transpose(0, 2, 1)))
    model.notify_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)


def _bodies(model, link, world) -> np.ndarray:
    """The body of a link in each of the worlds."""
    names = names_of(model)
    if isinstance(link, str):
        numbers = names.everywhere("link", link)
        if all(i is None for i in numbers):
            raise unknown("link", link, names.every("link"), "the model")
    else:
        link = as_index(link, "link", model.max_joints_per_articulation)
        numbers = [link if link < count else None for count in names.count]
    owners = model.articulation_world.numpy().tolist() if model.world_count > 1 else [0] * model.articulation_count
    bodies: dict[int, list[int]] = {}
    for a, i in enumerate(numbers):
        if i is not None:
            bodies.setdefault(owners[a], []).append(int(names.child[names.start[a] + i]))
    chosen = list(bodies)
    if world is not None:
        chosen = as_list(world, "world", "indices") if np.ndim(world) else [world]
        chosen = [as_index(w, "world", model.world_count) for w in chosen]
    for w in chosen:
        if w not in bodies:
            raise KeyError(f"world {w} has no link {link!r}")
        if len(bodies[w]) > 1:
            raise ValueError(
                f"several articulations of world {w} have a link {link!r}; give the whole label of one of them"
            )
    return np.array([bodies[w][0] for w in chosen], dtype=int)


def _numbers(value, name: str, shape: tuple[int, ...], count: int) -> np.ndarray:
    numbers = as_numbers(value, name, "made of numbers")
    if numbers.shape not in (shape, (count, *shape)):
        raise ValueError(
            f"{name} has shape {numbers.shape}; it must be {shape}, or {(count, *shape)}: one for each world"
        )
    return np.broadcast_to(numbers, (count, *shape))


def _check(model, bodies, masses, inertias) -> None:
    for body, mass, inertia in zip(bodies, masses, inertias, strict=True):
        wrong = inertia_math.check(mass, inertia)
        if wrong:
            of = "" if mass < 0.0 else f" (mass {mass:g} kg)"
            raise ValueError(f"link {model.body_label[body]!r} (body {body}): {wrong}{of}")


def _write(array: wp.array, bodies, values) -> None:
    numbers = array.numpy()
    numbers[bodies] = values
    array.assign(numbers)
