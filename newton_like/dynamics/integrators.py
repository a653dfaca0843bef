"""Integrators of the equations of motion on the configuration manifold.

Coordinates advance by increments in the Lie algebra of every joint, relative to the start of the step. Increments of angles and
displacements are differences; increments of rotations are rotation vectors, whose rates are the inverse differential of the exponential map
times the angular velocities (Munthe-Kaas 1999). A method of order p for ordinary differential equations therefore has order p here.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import warp as wp

from newton_like.coercion import as_number
from newton_like.dynamics.contact.points import check_part
from newton_like.dynamics.contact.rigid import RigidContact, impact
from newton_like.dynamics.contact.soft import SoftContact
from newton_like.dynamics.internal.buffers import buffers_of
from newton_like.dynamics.internal.common import (
    Q,
    V,
    check_passes_gradients,
    check_state,
    columns,
    constants,
    joints_changed,
    state_arrays,
)
from newton_like.dynamics.system import check_options, rates
from newton_like.kinematics import eval_fk
from newton_like.model.arguments import check_array, check_choice, check_made_by, check_model
from newton_like.programs.program import Field, Program
from newton_like.programs.run import run
from newton_like.types import VelRepr

_WEIGHTS = Field("weights", "all", 4)
_STAGE = Program(
    "eval_stage",
    (
        Q, V, Field("rate", "dofs"), Field("acceleration", "articulations", columns), Field("rate_total", "dofs"),
        Field("acceleration_total", "dofs"), _WEIGHTS,
    ),
    (
        Field("next_q", "coords"), Field("next_v", "dofs"), Field("next_rate", "dofs"), Field("next_rate_total", "dofs"),
        Field("next_acceleration_total", "dofs"),
    ),
    ("u",),
)  # fmt: skip


def _increment(size: int) -> Program:
    inputs = [Field(name, "articulations", size) for name in ("vector", "rate", "rate_total")]
    outputs = [Field(name, "articulations", size) for name in ("next_v", "next_rate_total")]
    return Program("eval_increment", (*inputs, _WEIGHTS), tuple(outputs)).ask(result_size=size)


@dataclass(frozen=True)
class _Stage:
    """Weights of a stage, in time steps. A stage adds to the start `last` times the last rates, `total` times the weighted sum of
    rates, and `new` times the new velocities. Then it adds `share` times the last rates to the weighted sum."""

    last: float
    total: float
    share: float
    new: float = 0.0


_METHODS = {
    "semi_implicit": (_Stage(1.0, 0.0, 0.0, 1.0),),
    "explicit": (_Stage(1.0, 0.0, 0.0),),
    "heun": (_Stage(1.0, 0.0, 0.5), _Stage(0.5, 1.0, 0.0)),
    "rk4": (
        _Stage(0.5, 0.0, 1.0 / 6.0),
        _Stage(0.5, 0.0, 1.0 / 3.0),
        _Stage(1.0, 0.0, 1.0 / 3.0),
        _Stage(1.0 / 6.0, 1.0, 0.0),
    ),
}
"""Tableaus: explicit Euler, Heun (1900), Kutta (1901). The coordinates of semi-implicit Euler advance by the new velocities only."""


def integrate(
    model,
    state_in,
    state_out,
    dt: float,
    method: str = "semi_implicit",
    *,
    joint_forces=None,
    link_forces=None,
    link_forces_repr=VelRepr.COM,
    contact: SoftContact | RigidContact | None = None,
    contact_state: wp.array | None = None,
    contact_state_out: wp.array | None = None,
    **options,
) -> None:
    """Advances coordinates, velocities and contact state by a time step.

    The forces are those given, those of `contact`, and the passive forces of :func:`velocity_rate`. All are
    explicit, so the step must be short compared with their time constants
    (:class:`newton_like.solvers.SolverFeatherstone` treats stiff forces implicitly).

    ================= ===== =================================== ================================================
    method            order evaluations of the forward dynamics
    ================= ===== =================================== ================================================
    ``semi_implicit`` 1     1                                   velocities first, then coordinates by the new ones
    ``explicit``      1     1                                   Euler
    ``heun``          2     2                                   trapezoidal predictor and corrector
    ``rk4``           4     4                                   the classical Runge-Kutta method
    ================= ===== =================================== ================================================

    Args:
        model: the :class:`Model`.
        state_in: the :class:`State`; the function reads ``joint_q`` and ``joint_qd``.
        state_out: written: ``joint_q``, ``joint_qd``, and ``body_q``, ``body_qd`` by :func:`newton_like.eval_fk`; or a
            :class:`MechanismState`. May be ``state_in``, except with gradients. Coordinates of loop joints stay as they are.
        dt: time step [s].
        method: see the table.
        joint_forces, link_forces, link_forces_repr: as for :func:`forward_dynamics`, constant over the step; or functions
            of a state (anything with ``joint_q`` and ``joint_qd``) that give them at every stage.
        contact: a :class:`SoftContact` or a :class:`RigidContact`, whose forces are added to those on the links; none by default.
            With :class:`RigidContactParameters` every step begins with an :func:`impact` of the touching points, so that a step
            across an impact is of first order.
        contact_state: the state of soft contact, see :func:`soft_contact_forces`.
        contact_state_out: written; by default ``contact_state``; with gradients it must be another array.
        **options: ``passive``, ``friction_speed``, ``loop_time_constant`` of :func:`velocity_rate`, and ``forward_method``, its
            ``method``.

    Raises:
        ValueError: an unknown method; a time step that is not positive and finite; an array of the wrong shape or device; a state
            of another model; soft contact without its state, or a state without it; rigid contact of a model with loop joints; as
            :func:`velocity_rate`.
        TypeError: an array of the wrong scalar type; an option that is none.
    """
    check_choice(method, "method", _METHODS)
    check_options("integrate", options, ("passive", "friction_speed", "loop_time_constant", "forward_method"))
    check_model(model)
    dt = as_number(dt, "dt")
    if dt <= 0.0:
        raise ValueError(f"dt {dt} must be above 0")
    start = _checked(model, state_in, "state_in")
    end = _checked(model, state_out, "state_out")
    check_passes_gradients(start, end, "state_out")
    slips = _contact_states(model, contact, contact_state, contact_state_out)
    options["method"] = options.pop("forward_method", "aba")
    buffers, device = buffers_of(model), str(model.device)
    if isinstance(contact, RigidContact) and not contact.parameters.relaxed:
        out = buffers.get("struck", start[1].shape), buffers.get("impulses", contact.shape)
        start[1] = impact(model, SimpleNamespace(joint_q=start[0], joint_qd=start[1]), contact, out=out).joint_qd
    stage = SimpleNamespace(joint_q=start[0], joint_qd=start[1])
    rate, slip = start[1], slips[0] if slips else None
    totals, slip_total = (None, None), None
    stages = _METHODS[method]
    for i, weights in enumerate(stages):
        forces = [f(stage) if callable(f) else f for f in (joint_forces, link_forces)]
        out = buffers.get("acceleration", (model.articulation_count, columns(model)))
        _, acceleration, slip_rate = rates(
            model, stage, state_arrays(model, stage), *forces, link_forces_repr, contact, slip, out=out,
            slip_rate=buffers.get("slip rate", contact.shape) if slips else None, **options,
        )  # fmt: skip
        numbers = (dt * weights.last, weights.total, dt * weights.new, dt * weights.share)
        w = constants(numbers, model.dtype, device)
        final = i + 1 == len(stages)
        found = list(end) if final else [buffers.get(f"{n} {i}", a.shape) for n, a in zip("qv", end, strict=True)]
        found += [buffers.get(f"{n} {i}", end[1].shape) for n in ("rate", "rate total", "acceleration total")]
        if model.joint_dof_count:
            # semi-implicit: coordinates advance by the new velocities only
            run(model, _STAGE, [*start, None if weights.new else rate, acceleration, *totals, w, *found])
        stage = SimpleNamespace(joint_q=found[0], joint_qd=found[1])
        rate, totals = found[2], found[3:]
        if slips:
            slip = slips[1] if final else buffers.get(f"slip {i}", contact.shape)
            total = buffers.get(f"slip total {i}", contact.shape)
            if slip.size:
                size = contact.shape[1] * contact.shape[2]
                run(model, _increment(size), [slips[0], slip_rate, slip_total, w, slip, total])
            slip_total = total
    joints_changed(state_out)
    if hasattr(state_out, "body_q"):
        eval_fk(model, *end, state_out)


def _checked(model, state, name: str) -> list[wp.array]:
    check_state(model, state, name)
    arrays = [
        check_array(model, state.joint_q, f"{name}.joint_q", model.dtype, (model.joint_coord_count,)),
        check_array(model, state.joint_qd, f"{name}.joint_qd", model.dtype, (model.joint_dof_count,)),
    ]
    check_made_by(model, state, name)
    return arrays


def _contact_states(model, contact, before, after) -> list[wp.array]:
    """The contact states before and after the step; empty without soft contact."""
    if contact is None or isinstance(contact, RigidContact):
        if before is not None or after is not None:
            raise ValueError(
                f"contact_state is given {'without contact' if contact is None else 'with a RigidContact'}"
            )
        return []
    check_part(model, contact, SoftContact, "contact")
    if before is None:
        raise ValueError("contact needs contact_state; start with contact.state()")
    after = before if after is None else after
    names = ("contact_state", "contact_state_out")
    return [check_array(model, a, n, model.dtype, contact.shape) for a, n in zip((before, after), names, strict=True)]
