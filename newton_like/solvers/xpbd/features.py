"""What :class:`SolverXPBD` refuses, by name, when it is made or after an edit."""

from __future__ import annotations

import warnings

import numpy as np

from newton_like.geometry.transforms import (
    quat_inverse,
    quat_multiply,
    quat_normalize,
    quat_rotate,
    transform_inverse,
    transform_multiply,
)
from newton_like.kinematics import eval_fk
from newton_like.model.joint_types import JOINT_TYPES, look_up
from newton_like.model.mujoco.contact_settings import SOLIMP, SOLREF, has_contact_settings, settings_of
from newton_like.model.mujoco.equality_settings import equalities_of
from newton_like.solvers.xpbd.moving import moving_bodies
from newton_like.types import JointTargetMode

SOLVER = "SolverXPBD"
_ELSE = "SolverFeatherstone does"
NO_SPEED = 1.0e5
"""Velocity limits of free joints from here on are none [m/s or rad/s]."""


OPEN = 0.01
"""Distance of the anchors of a joint from which on the first step warns [m]."""


def _first(wrong: np.ndarray) -> int | None:
    found = np.flatnonzero(wrong)
    return int(found[0]) if len(found) else None


def check_bodies(model, bodies: np.ndarray) -> None:
    """Raises ValueError, with its name, for the first of these bodies whose mass or inertia the solver does not take.

    Args:
        model: the model.
        bodies: indices.
    """
    bodies = bodies[moving_bodies(model)[bodies]]
    i = _first(model.body_mass.numpy()[bodies] <= 0.0)
    if i is not None:
        i = int(bodies[i])
        joined = model.joint_type.numpy()[model.joint_child.numpy() == i]
        how = "give it mass and inertia"
        if look_up(joined, "fixed").any():
            how = "give it mass, or merge it with collapse_fixed_joints"
        elif (model.joint_parent.numpy() == i).any():
            how += (
                ", at least about 5 % of those that it carries; importers make such links where the joints of a body do not fit into one"
                " joint"
            )
        raise ValueError(
            f"body '{model.body_label[i]}' (index {i}) has no mass and is not fixed to the world; {SOLVER} moves each body by its own mass:"
            f" {how}"
        )
    if not len(bodies):
        return
    moments = np.linalg.eigvalsh(model.body_inertia.numpy()[bodies].astype(np.float64))
    k = _first(moments[:, 0] <= 1.0e-7 * np.maximum(moments[:, 2], 1.0e-30))
    if k is not None:
        i = int(bodies[k])
        raise ValueError(
            f"body '{model.body_label[i]}' (index {i}) has the principal moments of inertia {moments[k].tolist()} kg m^2; {SOLVER} needs"
            " positive ones, the least above 1e-7 of the largest: give it inertia"
        )


def _check_worlds(model) -> None:
    i = _first(model.body_world.numpy() < 0)
    if i is not None and model.world_count > 1:
        raise ValueError(
            f"body '{model.body_label[i]}' (index {i}) belongs to all worlds, and {SOLVER} moves bodies of single worlds only: add it"
            " to a world"
        )


def _check_free_joints(model) -> None:
    """What acts along free joints acts at the centre of mass of the child, so that positions must be those of this point."""
    if not model.joint_count:
        return
    types, child = model.joint_type.numpy(), model.joint_child.numpy()
    free = look_up(types, "floats")
    owner = np.repeat(np.arange(model.joint_count), np.diff(model.joint_qd_start.numpy()))
    mode = model.joint_target_mode.numpy()
    driven = np.isin(mode, (JointTargetMode.POSITION, JointTargetMode.POSITION_VELOCITY))
    placed = {
        "drive of position": driven & (model.joint_target_ke.numpy() > 0.0),
        "stiffness": model.joint_stiffness.numpy() > 0.0,
    }
    away = np.linalg.norm(model.joint_X_c.numpy()[:, :3] - model.body_com.numpy()[child], axis=1) > 1.0e-6
    for name, acts in placed.items():
        i = _first(acts & (free & away)[owner])
        if i is not None:
            k = owner[i]
            raise ValueError(
                f"joint '{model.joint_label[k]}' (index {k}) leaves its body free and has a {name}, which {SOLVER} applies at the centre of"
                f" mass only: place the anchor of the child there; SolverFeatherstone applies it elsewhere, too"
            )


def _check_relations(model) -> None:
    rows = equalities_of(model)
    i = None if rows is None else _first(rows["rules"] != 0)
    if i is not None:
        k = int(rows["target"][i] if rows["target"][i] >= 0 else rows["joint1"][i])
        raise ValueError(
            f"an equality constraint of joint '{model.joint_label[k]}' (index {k}) states softness of MuJoCo (mujoco:eq_solref,"
            f" mujoco:eq_solimp), which {SOLVER} does not support; {_ELSE}: set mujoco:eq_rules to 0 for a rigid one"
        )
    if has_contact_settings(model):
        settings = settings_of(model)
        i = _first(np.asarray(settings.get("limit_rules", np.zeros(0))) != 0)
        if i is not None:
            k = int(np.searchsorted(model.joint_qd_start.numpy(), i, side="right")) - 1
            raise ValueError(
                f"joint '{model.joint_label[k]}' (index {k}): mujoco:limit_rules of degree of freedom {i} states softness of a limit"
                f" (mujoco:solreflimit, mujoco:solimplimit), which {SOLVER} does not support; {_ELSE}: set"
                " mujoco:limit_rules to 0 for hard limits"
            )
        i = _first((settings["pair_geom1"] >= 0) & (settings["pair_geom2"] >= 0))
        if i is not None:
            one, two = (model.shape_label[int(settings[f"pair_geom{k}"][i])] for k in (1, 2))
            raise ValueError(
                f"the pair of shapes '{one}' and '{two}' has settings of its own (mujoco:pair), which {SOLVER} does not support; {_ELSE}:"
                " give the settings to the shapes"
            )
    if "mujoco:gravcomp" in model.custom_attributes and (model.mujoco.gravcomp.numpy() != 0.0).any():
        raise ValueError(f"mujoco:gravcomp compensates weight, which {SOLVER} does not support; {_ELSE}")


def _check_tendons(model) -> None:
    if not model.tendons:
        return
    armature, stiffness = model.tendon_armature.numpy(), model.tendon_limit_ke.numpy()
    for n, tendon in enumerate(model.tendons):
        told = None
        limited = tendon.limits is not None
        if armature[n] > 0.0:
            told = "inertia (armature)"
        elif tendon.ties:
            told = "equality constraints on its length (ties)"
        elif limited and (tuple(tendon.solref_limit) != SOLREF or tuple(tendon.solimp_limit) != SOLIMP):
            told = "limits with a softness of MuJoCo (solref_limit, solimp_limit)"
        elif limited and stiffness[n] >= 0.0:
            told = "limits with a stiffness (limit_ke)"
        elif limited and tendon.margin > 0.0:
            told = "limits with a margin"
        if told is not None:
            raise ValueError(
                f"tendon '{tendon.label}' (index {n}) has {told}, which {SOLVER} does not support; {_ELSE}"
            )


def _check_balls(model) -> None:
    if not model.joint_count:
        return
    balls = look_up(model.joint_type.numpy(), "turns_only") & model.joint_enabled.numpy().astype(bool)
    for name in ("max_angle", "max_swing"):
        limit = getattr(model, f"joint_{name}").numpy()
        i = _first(balls & (limit >= 0.0) & (limit < np.pi))
        if i is not None:
            raise ValueError(
                f"joint '{model.joint_label[i]}' (index {i}) is a ball joint with {name} {limit[i]:g}, which {SOLVER} does not support;"
                f" {_ELSE}: set joint_{name} to -1 for none"
            )


def check_features(model) -> None:
    """Raises ValueError, with the name of the entity, for features that the solver does not have."""
    check_bodies(model, np.arange(model.body_count))
    _check_worlds(model)
    check_joints(model)


def check_joints(model) -> None:
    """The part of :func:`check_features` that concerns joints, constraints and tendons."""
    _check_free_joints(model)
    _check_relations(model)
    _check_tendons(model)
    _check_balls(model)


def warn_open_joints(model, body_q, stacklevel: int) -> bool:
    """Warns of a joint whose anchors are far apart in the poses of bodies. Returns whether there is one.

    Args:
        model: the model.
        body_q: poses of bodies, ``[body_count, 7]``.
        stacklevel: that of the warning.
    """
    types, parent, child = (getattr(model, f"joint_{name}").numpy() for name in ("type", "parent", "child"))
    if not len(types):
        return False
    poses = np.append(np.asarray(body_q, dtype=np.float64).reshape(-1, 7), [[0, 0, 0, 0, 0, 0, 1]], axis=0)
    frames = (model.joint_X_p.numpy(), parent), (model.joint_X_c.numpy(), child)
    one, two = (poses[k][:, :3] + quat_rotate(poses[k][:, 3:], X[:, :3].astype(np.float64)) for X, k in frames)
    held = (
        ~look_up(types, "floats") & (model.joint_dof_dim.numpy()[:, 0] == 0) & model.joint_enabled.numpy().astype(bool)
    )
    gap = np.where(held, np.linalg.norm(two - one, axis=1), 0.0)
    i = int(np.argmax(gap))
    if gap[i] > OPEN:
        in_tree = model.joint_articulation.numpy()[i] >= 0
        how = "the step closes them at once" if in_tree else "steps close them at max_depenetration_speed"
        warnings.warn(
            f"{SOLVER}.step: the anchors of joint '{model.joint_label[i]}' (index {i}) are {gap[i]:.3g} m apart in body_q of"
            f" state_in, and {how}; call newton_like.eval_fk after setting joint coordinates",
            UserWarning,
            stacklevel=stacklevel,
        )
    return bool(gap[i] > OPEN)


def _posed(model) -> tuple[np.ndarray, np.ndarray]:
    """Poses and velocities that the initial coordinates give all bodies; if all float on the world, without the kernel of `eval_fk`."""
    tree = np.flatnonzero(model.joint_articulation.numpy() >= 0)
    if not look_up(model.joint_type.numpy()[tree], "floats").all() or (model.joint_parent.numpy()[tree] >= 0).any():
        posed = model.state(requires_grad=False)
        eval_fk(model, posed.joint_q, posed.joint_qd, posed)
        return posed.body_q.numpy().reshape(-1, 7).astype(np.float64), posed.body_qd.numpy().reshape(-1, 6)
    q, qd, parent, anchor = (
        getattr(model, name).numpy().astype(np.float64) for name in ("joint_q", "joint_qd", "joint_X_p", "joint_X_c")
    )
    parent, anchor = parent.reshape(-1, 7)[tree], anchor.reshape(-1, 7)[tree]
    q = q[model.joint_q_start.numpy()[tree][:, None] + np.arange(7)]
    qd = qd[model.joint_qd_start.numpy()[tree][:, None] + np.arange(6)]
    q[:, 3:] = quat_normalize(q[:, 3:])
    poses, speeds = (
        model.body_q.numpy().reshape(-1, 7).astype(np.float64),
        model.body_qd.numpy().reshape(-1, 6).copy(),
    )
    child = model.joint_child.numpy()[tree]
    poses[child] = transform_multiply(transform_multiply(parent, q), transform_inverse(anchor))
    speeds[child, :3], speeds[child, 3:] = (quat_rotate(parent[:, 3:], part) for part in (qd[:, :3], qd[:, 3:]))
    return poses, speeds


def warn_unposed(model, state, stacklevel: int) -> None:
    """Warns if a state is as `Model.state` makes it, and its joint coordinates and velocities are not those of its bodies.

    Args:
        model: the model.
        state: the state of the first step.
        stacklevel: that of the warning.
    """
    names = ("joint_q", "joint_qd", "body_q", "body_qd")
    if not model.articulation_count or any(
        getattr(state, name).numpy().tobytes() != getattr(model, name).numpy().tobytes() for name in names
    ):
        return
    here, speed = model.body_q.numpy().reshape(-1, 7).astype(np.float64), model.body_qd.numpy().reshape(-1, 6)
    there, wanted = _posed(model)
    # of unit quaternions, the sine of half the angle between them; a point 1 m away moves by about twice as much
    sine = np.linalg.norm(quat_multiply(quat_inverse(here[:, 3:]), there[:, 3:])[:, :3], axis=1)
    off = np.linalg.norm(here[:, :3] - there[:, :3], axis=1) + 2.0 * sine
    for name, given, apart in (("q", "poses", off), ("qd", "velocities", np.abs(speed - wanted).max(axis=1))):
        i = int(np.argmax(apart))
        if apart[i] > OPEN:
            warnings.warn(
                f"{SOLVER}.step: body_{name} of state_in are not the {given} of its joint_{name} (body '{model.body_label[i]}',"
                f" index {i}), and the step starts from body_{name}; call"
                " newton_like.eval_fk(model, state.joint_q, state.joint_qd, state) before the first step",
                UserWarning,
                stacklevel=stacklevel,
            )
            return


def check_all_axes(model) -> None:
    """Raises ValueError for axes of an enabled joint that are not perpendicular to each other."""
    if not model.joint_count:
        return
    dims, first = model.joint_dof_dim.numpy(), model.joint_qd_start.numpy()
    axis = model.joint_axis.numpy().astype(np.float64)
    several = (dims > 1).any(axis=1) & ~look_up(model.joint_type.numpy(), "has_quaternion")
    for j in np.flatnonzero(several & model.joint_enabled.numpy().astype(bool)).tolist():
        linear, angular = np.split(axis[first[j] : first[j + 1]], [dims[j, 0]])
        for axes in (linear, angular):
            check_axes(model, j, axes)


def check_axes(model, joint: int, axes: np.ndarray) -> None:
    """Raises ValueError for axes of a joint that are not perpendicular to each other.

    Args:
        model: the model.
        joint: its index.
        axes: unit vectors, ``[n, 3]``.
    """
    if len(axes) > 1 and abs(axes @ axes.T - np.eye(len(axes))).max() > 1.0e-4:
        kind = JOINT_TYPES[int(model.joint_type.numpy()[joint])].type.name
        raise ValueError(
            f"joint '{model.joint_label[joint]}' (index {joint}) is a {kind} joint with axes that are not perpendicular to"
            f" each other, which {SOLVER} does not support; {_ELSE}"
        )
