"""Rigid and relaxed rigid contact of the links of a model with the ground, and impacts."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import warp as wp

from newton_like.coercion import as_count
from newton_like.dynamics.contact.ground import NOT_NEGATIVE, POSITIVE, ContactLaw, GroundContact
from newton_like.dynamics.contact.points import ContactPoints, check_part
from newton_like.dynamics.contact.search import Search, rows
from newton_like.dynamics.contact.terrain import Terrain
from newton_like.dynamics.internal import common
from newton_like.dynamics.internal.common import (
    Q,
    V,
    by_articulation,
    columns,
    dof_vector,
    has_gradients,
    link_vectors,
    links,
    output_arrays,
    representation,
    six_by_link,
    state_arrays,
)
from newton_like.dynamics.kinematics import output_representation
from newton_like.kernels.dynamics.contact.rigid import BOUNCES, COULOMB, RELAXED, RIGID_LAW
from newton_like.kernels.dynamics.contact.soft import ONE_PLANE
from newton_like.model.arguments import check_choice
from newton_like.model.singular import check_invertible
from newton_like.options import configuration
from newton_like.programs.program import Field, Program
from newton_like.types import VelRepr

SWEEPS = 50
"""Default number of Gauss-Seidel sweeps."""

TRACED_VISITS = 400
"""Largest number of updates (contact points times sweeps) in one specialised program, whose code has no loops. With more updates each
sweep is a separate program."""

FRICTION = {"coulomb": COULOMB, "convex": 0}


_SHARE = (lambda x: (x >= 0.0) & (x <= 1.0), "between 0 and 1")
_INSIDE = (lambda x: (x > 0.0) & (x < 1.0), "above 0 and below 1")
_PART = (lambda x: (x > 0.0) & (x <= 1.0), "above 0 and at most 1")
_POWER = (lambda x: x >= 1.0, "at least 1")


@configuration(frozen=True, eq=False)
class RigidContactParameters(ContactLaw):
    """Constants of rigid contact, see :func:`rigid_contact_forces`: one number, or one for each articulation.

    Attributes:
        mu: coefficient of friction, at least 0.
        time_constant: T [s] of the stabilisation: depths and velocities of points that touch go away like those of a critically
            damped spring of this time constant, above 0. It should be several time steps.
        restitution: of :func:`impact`, between 0 and 1.
        relaxed: whether the forces are regularised.

    Raises:
        ValueError: a number out of its range.
        TypeError: not numbers.
    """

    mu: float | np.ndarray = 0.5
    time_constant: float | np.ndarray = 0.02
    restitution: float | np.ndarray = 0.0

    _rules: ClassVar = {"mu": NOT_NEGATIVE, "time_constant": POSITIVE, "restitution": _SHARE}
    relaxed = False

    def numbers(self, model) -> np.ndarray:
        """mu, K, D, d_min, d_max, 1 / width, midpoint, power and restitution of every articulation, ``[articulation_count, 9]``.

        Raises:
            ValueError: values for another number of articulations.
        """
        mu, time, restitution = self._columns(model)
        one = np.ones(model.articulation_count)
        return np.stack([mu, time**-2, 2.0 / time, one, one, one, 0.5 * one, one, restitution], axis=1)


@configuration(frozen=True, eq=False)
class RelaxedRigidContactParameters(ContactLaw):
    """Constants of relaxed rigid contact, see :func:`rigid_contact_forces`: one number, or one for each articulation.

    Attributes:
        mu: coefficient of friction, at least 0.
        time_constant: T [s] of the reference spring and damper, above 0.
        damping_ratio: damping ratio zeta of the reference spring and damper, above 0.
        d_min, d_max: impedance xi at depth 0, and from the width on: the fraction of the reference acceleration that is reached, above 0
            and at most 1, with d_min not above d_max.
        width: depth [m] over which the impedance changes, above 0.
        midpoint: fraction of the width at which the two power functions of the impedance meet, between 0 and 1.
        power: exponent of the power functions, at least 1.
        restitution: restitution of :func:`impact`, between 0 and 1.
        relaxed: whether the forces are regularised.

    The parameters have the meaning and, except for the friction, the defaults of MuJoCo's ``solref`` and ``solimp``.

    Raises:
        ValueError: a number out of its range.
        TypeError: not numbers.
    """

    mu: float | np.ndarray = 0.5
    time_constant: float | np.ndarray = 0.02
    damping_ratio: float | np.ndarray = 1.0
    d_min: float | np.ndarray = 0.9
    d_max: float | np.ndarray = 0.95
    width: float | np.ndarray = 0.001
    midpoint: float | np.ndarray = 0.5
    power: float | np.ndarray = 2.0
    restitution: float | np.ndarray = 0.0

    _rules: ClassVar = {
        "mu": NOT_NEGATIVE, "time_constant": POSITIVE, "damping_ratio": POSITIVE, "d_min": _PART, "d_max": _PART,
        "width": POSITIVE, "midpoint": _INSIDE, "power": _POWER, "restitution": _SHARE,
    }  # fmt: skip
    relaxed = True

    def numbers(self, model) -> np.ndarray:
        """mu, K, D, d_min, d_max, 1 / width, midpoint, power and restitution of every articulation, ``[articulation_count, 9]``.

        ``K = 1 / (d_max T zeta)^2`` and ``D = 2 / (d_max T)``.

        Raises:
            ValueError: values for another number of articulations; a d_min above d_max.
        """
        mu, time, ratio, low, high, width, *rest = self._columns(model)
        for a in np.flatnonzero(low > high)[:1]:
            raise ValueError(f"d_min {low[a]} is above d_max {high[a]}; the impedance grows with the depth")
        stiffness, damping = (high * time * ratio) ** -2, 2.0 / (high * time)
        return np.stack([mu, stiffness, damping, low, high, 1.0 / width, *rest], axis=1)


class RigidContact(GroundContact):
    """Contact points, terrain, and the parameters of rigid contact.

    Args:
        model: the :class:`Model`; its z axis points up.
        points: the :class:`ContactPoints`, by default those of the shapes. Every point has the same cost, whether it touches or not:
            a dozen relevant points are cheaper than all vertices of a mesh.
        terrain: the ground, by default level at z = 0.
        parameters: :class:`RigidContactParameters` (the default) or :class:`RelaxedRigidContactParameters`.
        friction: ``"coulomb"`` or ``"convex"``, see :func:`rigid_contact_forces`.
        sweeps: number of Gauss-Seidel sweeps over the contact points.

    Attributes:
        model, points, terrain, parameters, friction, sweeps: as given.
        law: the constants on the device, ``[articulation_count, 9]``: mu, K, D, d_min, d_max, 1 / width, midpoint, power,
            restitution. Gradients reach them.

    Raises:
        TypeError: arguments of other classes.
        ValueError: points of another model; an up axis other than z; an articulation count that does not fit; relaxed contact of
            a link without mass; an unknown friction; less than one sweep.
    """

    def __init__(
        self,
        model,
        points: ContactPoints | None = None,
        terrain: Terrain | None = None,
        parameters: RigidContactParameters | RelaxedRigidContactParameters | None = None,
        *,
        friction: str = "coulomb",
        sweeps: int = SWEEPS,
    ):
        super().__init__(model, points, terrain)
        parameters = RigidContactParameters() if parameters is None else parameters
        if not isinstance(parameters, RigidContactParameters | RelaxedRigidContactParameters):
            raise TypeError(
                "parameters must be RigidContactParameters or RelaxedRigidContactParameters, not "
                f"{type(parameters).__name__}"
            )
        check_choice(friction, "friction", FRICTION)
        self.parameters, self.friction = parameters, friction
        self.sweeps = as_count(sweeps, "sweeps")
        if parameters.relaxed:
            self._check_masses()
        self.law = self._law(parameters)

    def arrays(self, state) -> list[wp.array]:
        """Inputs of all programs of rigid contact besides the state, see ``_fields``."""
        return [self.points.offsets, self.points.on, self.law, self.ground(state)]

    def _check_masses(self) -> None:
        model, points = self.model, self.points
        a, i = np.nonzero(points.link >= 0)
        bodies = model.joint_child.numpy()[model.articulation_start.numpy()[a] + points.link[a, i]]
        for body in bodies[model.body_mass.numpy()[bodies] <= 0.0][:1]:
            raise ValueError(
                f"body '{model.body_label[body]}' (index {body}) has contact points but no mass, and the softness "
                "of relaxed contact depends on the mass; give the body mass, or use RigidContactParameters"
            )


class RigidContactForces(NamedTuple):
    """Results of :func:`rigid_contact_forces`.

    Attributes:
        points: forces on the contact points [N], world axes, ``[articulation_count, points, 3]``.
        depth: how deep the points are below the ground [m], along its normal, ``[articulation_count, points]``.
        links: wrenches on the links, ``[articulation_count, max_joints_per_articulation, 6]``.
        accelerations: nu_dot under all forces, ``[articulation_count, max_dofs_per_articulation]``.
    """

    points: wp.array
    depth: wp.array
    links: wp.array
    accelerations: wp.array


class Impact(NamedTuple):
    """Results of :func:`impact`.

    Attributes:
        joint_qd: velocities after it, ``[joint_dof_count]``.
        points: impulses on the contact points [N s], world axes, ``[articulation_count, points, 3]``.
    """

    joint_qd: wp.array
    points: wp.array


def _in_stages(contact: RigidContact, arrays, sweeps: int) -> bool:
    """Whether sweeps are separate programs: with gradients, or if code without loops would be long."""
    model = contact.model
    long = contact.points.count * sweeps > TRACED_VISITS and model.evaluator == "specialised"
    return long or has_gradients(model, arrays)


def _fields(contact: RigidContact) -> tuple[Field, ...]:
    """Inputs of all programs of rigid contact."""
    n = contact.points.count
    return (
        Q, V, contact.points.offset_field, Field("point_on", "articulations", n), Field("point_law", "articulations", RIGID_LAW),
        contact.ground_field,
    )  # fmt: skip


def _program(name: str, contact: RigidContact, inputs, outputs, **settings) -> Program:
    fields = (*_fields(contact), *inputs)
    program = Program(name, fields, outputs, rows(contact.points.count), tables=contact.points.table, varied=True)
    return program.ask(offset_size=3, contact_sweeps=contact.sweeps, **settings)


def rigid_contact_forces(
    model,
    state,
    contact: RigidContact,
    joint_forces=None,
    link_forces=None,
    *,
    link_forces_repr=VelRepr.COM,
    repr=None,
    out=None,
) -> RigidContactForces:
    """Forces of the ground on the touching contact points (depth at least 0), and the accelerations with these forces.

    The forces f, three for each point with the Jacobian J of their positions, solve

        ``min 1/2 f.(A + R) f + f.(J nu_dot_free + J_dot nu - a)``  with  ``|f_t| <= mu f_n``, ``f_n >= 0``, ``A = J M^-1 J^T``

    where nu_dot_free are the accelerations without contact, and for a point of depth d and velocity v, with the normal n of the ground,

    * rigid: ``a = d / T^2 n - 2 v / T`` and ``R = 0``: penetration and velocity of touching points, including slip, decay within a few T
      (Baumgarte 1972), and normal forces are never negative;
    * relaxed: ``a = K xi d n - D v`` with ``K = 1 / (d_max T zeta)^2``, ``D = 2 / (d_max T)``, and ``R = 2 mu^2 (1 + mu^2) (1 - xi) /
      (xi m)``, m the mass of the link (Todorov 2014; MuJoCo's ``solref`` and ``solimp``). The impedance ``xi(d)`` grows from d_min to
      d_max over the width. With xi = 1, or without friction, R is zero.

    ``friction="convex"`` solves this convex problem. A slipping point, whose tangential acceleration differs from a_t by w_t, then also
    accelerates away from the ground by mu |w_t|: a box that starts to slip down a slope accelerates by ``g (sin - mu cos) / (1 + mu^2)``,
    and a sliding box rises from the ground. ``friction="coulomb"`` adds mu |w_t| to the linear term along the normal, which gives
    Coulomb's law (De Saxce and Feng 1998): the box stays on the ground and accelerates by ``g (sin - mu cos)``. If all points stick, both
    are equal.

    The solver is block projected Gauss-Seidel with ``contact.sweeps`` sweeps over all points. It starts from the forces of each point
    alone, scaled by a common factor. This start does not depend on the order of the points, so it is symmetric for symmetric contacts.
    Forces at more than three points of a link are not unique, but accelerations are. If the mechanism cannot have the accelerations that
    the contact needs, the rigid problem has no solution, and forces grow from sweep to sweep; relaxed contact always has a solution.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        contact: the :class:`RigidContact`.
        joint_forces, link_forces, link_forces_repr, repr: other forces, as for :func:`forward_dynamics`.
        out: four output arrays, in the order of the result; new ones by default.

    Returns:
        The ``links`` of the result are the sum of contact wrenches and ``link_forces``, in ``link_forces_repr``, and ``accelerations``
        are those of :func:`forward_dynamics` with them. The force is zero at points on links that cannot move.

    Raises:
        ValueError: an array of the wrong shape or device; the contact of another model; an unknown representation.
        TypeError: an array of the wrong scalar type.
    """
    n = check_part(model, contact, RigidContact, "contact").points.count
    field, forces = dof_vector(model, joint_forces, "joint_forces", "force")
    given, wrenches = link_vectors(model, link_forces, "link_forces", "wrenches")
    kind = output_representation(link_forces_repr, "link_forces_repr")
    base = representation(repr)
    arrays = [*state_arrays(model, state), *contact.arrays(state), forces, wrenches]
    check_invertible(model, "rigid_contact_forces")
    outputs = (
        Field("point_force", "articulations", 3 * n),
        Field("point_depth", "articulations", n),
        Field("second", "articulations", six_by_link),
        Field("vector", "articulations", columns),
    )
    settings = dict(
        contact_law=RELAXED * contact.parameters.relaxed | FRICTION[contact.friction] | ONE_PLANE * contact.one_plane,
        output_repr=base, wrench_repr=kind, wrenches_by_link=int(given.kind == "articulations"),
    )  # fmt: skip
    shapes = [(n, 3), (n,), (links(model), 6), (columns(model),)]
    results = output_arrays(model, arrays, by_articulation(model, shapes), out)
    if not model.articulation_count or not any(a.size for a in results):
        return RigidContactForces(*results)
    if not _in_stages(contact, arrays, contact.sweeps):
        program = _program("eval_rigid_contact", contact, (field, given), outputs, **settings)
        common.run(model, program, [*arrays, *results])
        return RigidContactForces(*results)
    search = Search(contact, arrays, **settings)
    made = dict.fromkeys(("contact", "contact_y", "h", "root", "found"))
    inputs = dict(zip((*_fields(contact), field, given), arrays, strict=True))
    blocks, rows, h, root, found, _ = search.run("eval_contact_blocks", inputs, {**made, outputs[1]: results[1]})
    found = search.sweep(blocks, rows, found)
    search.run(
        "eval_contact_results",
        {"q": arrays[0], "v": arrays[1], "offset": arrays[2], given: arrays[-1], "h": h, "root": root, "search": found},
        dict(zip((outputs[0], *outputs[2:]), (results[0], *results[2:]), strict=True)),
    )
    return RigidContactForces(*results)


def impact(model, state, contact: RigidContact, *, out=None) -> Impact:
    """Velocities after an impact of the points that touch the ground (depth at least 0).

    The impulses p solve ``min 1/2 p.A p + p.(J nu)`` with ``|p_t| <= mu p_n``, ``p_n >= 0``, A as in :func:`rigid_contact_forces`, and
    Coulomb's law as in that function, for any ``contact.friction``. Approaching points stop, and sticking points stop in all directions.
    Separating points keep their velocities, unless impulses at other points drive them into the ground. With a restitution e, all impulses
    (including friction) are multiplied by 1 + e (Smith, Kaufman, Vouga, Tamstorf and Grinspun 2012, "Reflections on simultaneous impact"),
    and points that would then enter the ground are stopped. Neither adds energy: for the first, p.(J nu + A p) is not positive; for the
    second, the factor is below 1 + e if 1 + e would add energy.

    Args:
        model: the :class:`Model`.
        state: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        contact: the :class:`RigidContact`, rigid or relaxed.
        out: two output arrays, in the order of the result; new ones by default. The first may be ``state.joint_qd``, except with
            gradients.

    Raises:
        ValueError: an array of the wrong shape or device; the contact of another model.
        TypeError: an array of the wrong scalar type.
    """
    n = check_part(model, contact, RigidContact, "contact").points.count
    bounces = bool(np.any(np.asarray(contact.parameters.restitution) > 0.0))
    arrays = [*state_arrays(model, state), *contact.arrays(state)]
    check_invertible(model, "impact")
    outputs = (Field("next_v", "dofs"), Field("point_force", "articulations", 3 * n))
    results = output_arrays(model, arrays, [(model.joint_dof_count,), contact.shape], out)
    settings = dict(contact_law=COULOMB | BOUNCES * bounces | ONE_PLANE * contact.one_plane)
    if not model.articulation_count:
        return Impact(*results)
    if not _in_stages(contact, arrays, (1 + bounces) * contact.sweeps):
        common.run(model, _program("eval_impact", contact, (), outputs, **settings), [*arrays, *results])
        return Impact(*results)
    search = Search(contact, arrays, **settings)
    made = dict.fromkeys(("contact", "contact_y", "h", "root", "found"))
    inputs = dict(zip(_fields(contact), arrays, strict=True))
    blocks, rows, h, root, found = search.run("eval_impact_blocks", inputs, made)
    found = search.sweep(blocks, rows, found)
    kept = {}
    if bounces:
        law = {"contact": blocks, "contact_y": rows, "point_law": contact.law, "search": found}
        made = dict.fromkeys(("next_contact", "found", "impulse", "acceleration"))
        blocks, found, impulse, z = search.run("eval_impact_bounce", law, made)
        found = search.sweep(blocks, rows, found)
        kept = {"impulse": impulse, "acceleration": z}
    ends = {"v": arrays[1], "contact": blocks, "h": h, "root": root, "search": found, **kept}
    search.run("eval_impact_results", ends, dict(zip(outputs, results, strict=True)))
    return Impact(*results)
