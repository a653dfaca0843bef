"""Soft contact of the links of a model with the ground: Hunt and Crossley's law, and friction with a tangential state."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import warp as wp

from newton_like.coercion import as_count, as_number
from newton_like.dynamics.contact.ground import NOT_NEGATIVE, POSITIVE, ContactLaw, GroundContact
from newton_like.dynamics.contact.points import ContactPoints, check_part, check_points, contact_point_positions
from newton_like.dynamics.contact.terrain import Terrain
from newton_like.dynamics.internal.common import (
    Q,
    V,
    evaluate,
    input_array,
    link_vectors,
    links,
    six_by_link,
    state_arrays,
    to_device,
)
from newton_like.dynamics.kinematics import chosen, output_representation
from newton_like.geometry.transforms import quat_rotate
from newton_like.kernels.dynamics.contact.soft import LAW, ONE_PLANE, SQUARE_ROOTS
from newton_like.kernels.tree import NATIVE
from newton_like.kinematics import eval_fk
from newton_like.options import configuration
from newton_like.programs.program import Field, Program
from newton_like.types import VelRepr


@configuration(frozen=True, eq=False)
class SoftContactParameters(ContactLaw):
    """Constants of the contact law, see :func:`soft_contact_forces`: one number, or one for each articulation.

    Attributes:
        stiffness: K [N/m^(1+p)], above 0.
        damping: D [N s/m^(1+q)], above 0.
        mu: coefficient of friction, at least 0.
        p: exponent of the stiffness, at least 0.
        q: exponent of the damping, at least 0.

    Raises:
        ValueError: a number out of its range.
        TypeError: not numbers.
    """

    stiffness: float | np.ndarray = 1.0e6
    damping: float | np.ndarray = 2000.0
    mu: float | np.ndarray = 0.5
    p: float | np.ndarray = 0.5
    q: float | np.ndarray = 0.5

    _rules: ClassVar = {"stiffness": POSITIVE, "damping": POSITIVE, **dict.fromkeys(("mu", "p", "q"), NOT_NEGATIVE)}
    _of = " of a soft contact"

    @property
    def square_roots(self) -> bool:
        """Whether both exponents are 1/2."""
        return bool(np.all(np.asarray(self.p) == 0.5) and np.all(np.asarray(self.q) == 0.5))

    def numbers(self, model) -> np.ndarray:
        """K, D, mu, p, q of every articulation, ``[articulation_count, 5]``.

        Raises:
            ValueError: values for another number of articulations.
        """
        return np.stack(self._columns(model), axis=1)


class SoftContact(GroundContact):
    """Contact points, terrain, and the parameters of soft contact.

    Args:
        model: the :class:`Model`; its z axis points up.
        points: the :class:`ContactPoints`, by default those of the shapes.
        terrain: the ground, by default level at z = 0.
        parameters: the :class:`SoftContactParameters`, by default those of :func:`estimate_soft_contact_parameters`.

    Attributes:
        points, terrain, parameters: as given.
        law: the constants on the device, ``[articulation_count, 5]``: K, D, mu, p, q. Gradients reach them.

    Raises:
        TypeError: arguments of other classes.
        ValueError: points of another model; an up axis other than z; an articulation count that does not fit.
    """

    def __init__(
        self,
        model,
        points: ContactPoints | None = None,
        terrain: Terrain | None = None,
        parameters: SoftContactParameters | None = None,
    ):
        super().__init__(model, points, terrain)
        if parameters is None:
            parameters = estimate_soft_contact_parameters(model, points=self.points)
        if not isinstance(parameters, SoftContactParameters):
            raise TypeError(f"parameters must be SoftContactParameters, not {type(parameters).__name__}")
        self.parameters = parameters
        self.law = self._law(parameters)

    def state(self, requires_grad: bool = False) -> wp.array:
        """A contact state without displacements, zeros ``[articulation_count, points.count, 3]``."""
        return wp.zeros(self.shape, dtype=self.model.dtype, device=self.model.device, requires_grad=requires_grad)


class SoftContactForces(NamedTuple):
    """Results of :func:`soft_contact_forces`.

    Attributes:
        points: forces on the contact points [N], world axes, ``[articulation_count, points, 3]``.
        state_rate: time derivative of the contact state [m/s], ``[articulation_count, points, 3]``.
        depth: how deep the points are below the ground [m], along its normal, ``[articulation_count, points]``.
        links: wrenches on the links, ``[articulation_count, max_joints_per_articulation, 6]``.
    """

    points: wp.array
    state_rate: wp.array
    depth: wp.array
    links: wp.array


def soft_contact_forces(
    model,
    state,
    contact: SoftContact,
    contact_state=None,
    *,
    link_forces=None,
    link_forces_repr=VelRepr.COM,
    out_repr=VelRepr.COM,
    repr=None,
    out=None,
) -> SoftContactForces:
    """Forces of the ground on contact points, and the rates of their tangential states.

    With the depth d of a point below the ground of normal n, its velocity v and its state m (m_t: tangential part):
    ``f_n = max(0, K d^(1+p) + D d^q d')`` with ``d' = -n.v`` (Hunt and Crossley 1975), ``f_t = -(K d^p m_t + D d^q v_t)``,
    scaled to ``mu f_n`` where it is larger, and ``m' = v_t`` where the point sticks, ``-(f_t + K d^p m_t) / (D d^q)`` where it
    slips and ``-(K / D) m`` where it does not touch (Azad and Featherstone 2010).

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        contact: the :class:`SoftContact`.
        contact_state: m [m], ``[articulation_count, points, 3]``; None: zeros.
        link_forces: wrenches that are added to those of the ground in the result ``links``; shapes as for
            :func:`forward_dynamics`.
        link_forces_repr: :class:`VelRepr` of ``link_forces``.
        out_repr: :class:`VelRepr` of the result ``links``; ``repr`` is another name of it.
        out: four arrays to write to, in the order of the result; new ones by default.

    Raises:
        ValueError: an array of the wrong shape or device; the contact of another model; an unknown representation.
        TypeError: an array of the wrong scalar type.
    """
    n = check_part(model, contact, SoftContact, "contact").points.count
    if contact_state is not None:
        contact_state = input_array(
            model, to_device(model, contact_state, "contact_state"), "contact_state", model.dtype, contact.shape
        )
    given, wrenches = link_vectors(model, link_forces, "link_forces", "wrenches")
    ground = contact.ground(state)
    kind = output_representation(link_forces_repr, "link_forces_repr")
    inputs = (
        Q, V, contact.points.offset_field, Field("point_on", "articulations", n), Field("point_slip", "articulations", 3 * n),
        Field("point_law", "articulations", LAW), contact.ground_field, given,
    )  # fmt: skip
    outputs = (
        Field("point_force", "articulations", 3 * n),
        Field("point_slip_rate", "articulations", 3 * n),
        Field("point_depth", "articulations", n),
        Field("second", "articulations", six_by_link),
    )
    program = Program("eval_soft_contact", inputs, outputs, tables=contact.points.table).ask(
        contact_law=SQUARE_ROOTS * contact.parameters.square_roots | ONE_PLANE * contact.one_plane, offset_size=3,
        output_repr=output_representation(chosen(out_repr, repr, VelRepr.COM), "out_repr"),
        wrench_repr=kind if wrenches is not None else NATIVE,
        wrenches_by_link=int(given.kind == "articulations"),
    )  # fmt: skip
    arrays = [
        *state_arrays(model, state), contact.points.offsets, contact.points.on, contact_state, contact.law, ground, wrenches,
    ]  # fmt: skip
    shapes = [(n, 3), (n, 3), (n,), (links(model), 6)]
    return SoftContactForces(*evaluate(model, program, arrays, shapes, out))


def estimate_soft_contact_parameters(
    model,
    static_friction: float = 0.5,
    active_points: int = 4,
    damping_ratio: float = 1.0,
    max_penetration: float | None = None,
    *,
    points: ContactPoints | None = None,
    p: float = 0.5,
    q: float = 0.5,
) -> SoftContactParameters:
    """Constants for a given penetration depth of each articulation that rests on a few of its points.

    ``K = (m g / active_points) / max_penetration^(1+p)`` and ``D = 2 damping_ratio sqrt(K m)``, m the mass of the articulation.

    Args:
        model: the :class:`Model`.
        static_friction: mu.
        active_points: number of points that support the weight.
        damping_ratio: 1 for about critical damping.
        max_penetration: depth at rest [m]; by default 0.005 times twice the height of the centre of mass above the lowest
            contact point, in the model's initial pose ``model.joint_q``.
        points: the :class:`ContactPoints` for the lowest contact point, by default those of the shapes.
        p, q: exponents.

    Returns:
        Parameters with ``stiffness`` and ``damping`` for each articulation.

    Raises:
        ValueError: a number out of its range; an articulation without mass, without weight, or, where ``max_penetration`` is
            not given, with no point below its centre of mass.
        TypeError: not numbers.
    """
    active_points = as_count(active_points, "active_points")
    damping_ratio = as_number(damping_ratio, "damping_ratio")
    if damping_ratio <= 0.0:
        raise ValueError(f"damping_ratio {damping_ratio} must be above 0")
    mass, com = _mass_and_com(model)
    weight = mass * np.linalg.norm(model.gravity.numpy()[np.maximum(model.articulation_world.numpy(), 0)], axis=1)
    for a in np.flatnonzero(weight <= 0.0)[:1]:
        raise ValueError(
            f"articulation '{model.articulation_label[a]}' (index {a}) has no weight; give parameters instead"
        )
    if max_penetration is None:
        points = ContactPoints(model) if points is None else check_points(model, points)
        places = contact_point_positions(model, model, points).numpy().astype(np.float64)
        lowest = np.where(points.link >= 0, places[..., 2], np.inf).min(axis=1, initial=np.inf)
        depth = 0.005 * 2.0 * (com[:, 2] - lowest)
        for a in np.flatnonzero(~(np.isfinite(depth) & (depth > 0.0)))[:1]:
            raise ValueError(
                f"articulation '{model.articulation_label[a]}' (index {a}) has no contact point below its centre of mass; "
                "give max_penetration"
            )
    else:
        depth = as_number(max_penetration, "max_penetration")
        if depth <= 0.0:
            raise ValueError(f"max_penetration {depth} must be above 0")
    stiffness = weight / active_points / depth ** (1.0 + as_number(p, "p"))
    return SoftContactParameters(stiffness, 2.0 * damping_ratio * np.sqrt(stiffness * mass), static_friction, p, q)


def _mass_and_com(model) -> tuple[np.ndarray, np.ndarray]:
    """Mass and centre of mass of every articulation in the initial pose of the model, ``[articulation_count]`` and ``[.., 3]``."""
    state = model.state(requires_grad=False)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    pose, body_mass = state.body_q.numpy().astype(np.float64), model.body_mass.numpy().astype(np.float64)
    places = pose[:, :3] + quat_rotate(pose[:, 3:], model.body_com.numpy().astype(np.float64))
    start, end, child = model.articulation_start.numpy(), model.articulation_end.numpy(), model.joint_child.numpy()
    mass, com = np.zeros(model.articulation_count), np.zeros((model.articulation_count, 3))
    for a in range(model.articulation_count):
        bodies = child[start[a] : end[a]]
        mass[a] = body_mass[bodies].sum()
        com[a] = body_mass[bodies] @ places[bodies] / max(mass[a], 1.0e-30)
    return mass, com
