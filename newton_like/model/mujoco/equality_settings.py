"""Equality constraints of MuJoCo as rows of custom attributes, with Newton's names in the namespace ``mujoco``: polynomials between joints,
and the softness of mimic joints and loop joints."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.model.custom import CustomAttribute, CustomFrequency
from newton_like.model.mujoco.contact_settings import NAMESPACE, SOLIMP, SOLREF

EQUALITY = f"{NAMESPACE}:equality_constraint"
"""The custom frequency of equality constraints."""

JOINT_KIND = 2
"""MuJoCo's number of equalities of joints."""

_VEC5 = wp.types.vector(5, wp.float32)
_ATTRIBUTES = (
    ("equality_constraint_world", wp.int32, 0, "world"),
    ("equality_constraint_type", wp.int32, JOINT_KIND, None),
    ("equality_constraint_joint1", wp.int32, -1, "joint"),
    ("equality_constraint_joint2", wp.int32, -1, "joint"),
    ("equality_constraint_polycoef", _VEC5, (0.0, 1.0, 0.0, 0.0, 0.0), None),
    ("equality_constraint_enabled", wp.int32, 1, None),
    # of a soft weld: how much of an angle counts as a length
    ("equality_constraint_torquescale", wp.float32, 1.0, None),
    # the mimic joint or the loop joint that is the constraint; -1: a polynomial
    ("equality_constraint_target", wp.int32, -1, "joint"),
    # own: 1: soft by solref and solimp
    ("eq_rules", wp.int32, 0, None),
    ("eq_solref", wp.vec2, SOLREF, None),
    ("eq_solimp", _VEC5, SOLIMP, None),
)

EQUALITY_DEFAULTS = {name: default for name, _, default, _ in _ATTRIBUTES}
"""The entries of a row that states nothing."""


def declare_equality_settings(builder) -> None:
    """Declares the custom attributes in a builder; see :meth:`newton_like.solvers.SolverFeatherstone.register_custom_attributes`."""
    if EQUALITY not in builder.custom_frequencies:
        builder.add_custom_frequency(CustomFrequency("equality_constraint", namespace=NAMESPACE))
    for name, dtype, default, refers in _ATTRIBUTES:
        builder.add_custom_attribute(
            CustomAttribute(name, dtype, EQUALITY, namespace=NAMESPACE, default=default, references=refers)
        )


def has_equalities(model) -> bool:
    """Whether a model may have equality constraints."""
    return hasattr(getattr(model, NAMESPACE, None), "equality_constraint_enabled")


def equalities_of(model, every: bool = False) -> dict[str, np.ndarray] | None:
    """The enabled rows on the host, by the names of the attributes without ``equality_constraint_`` and ``eq_``; None: there are none.

    Args:
        model: the model.
        every: also rows that are not enabled, which are not checked.

    Raises:
        ValueError: a setting is out of range.
    """
    if not has_equalities(model):
        return None
    space = getattr(model, NAMESPACE)
    rows = {
        name.removeprefix("equality_constraint_").removeprefix("eq_"): getattr(space, name).numpy()
        for name, *_ in _ATTRIBUTES
    }
    on = rows["enabled"] != 0
    enabled = {name: values[on] for name, values in rows.items()}
    _check(model, enabled)
    rows = rows if every else enabled
    return rows if len(rows["enabled"]) else None


def switched_off(model) -> np.ndarray:
    """Which loop joints and mimic joints have a row that is not enabled, and so do not act, bool, ``[joint_count]``."""
    off = np.zeros(model.joint_count, dtype=bool)
    if has_equalities(model):
        space = getattr(model, NAMESPACE)
        target, enabled = (getattr(space, f"equality_constraint_{name}").numpy() for name in ("target", "enabled"))
        off[target[(target >= 0) & (target < len(off)) & (enabled == 0)]] = True
    return off


def _check(model, rows: dict) -> None:
    for i, (kind, first, second, target) in enumerate(
        zip(rows["type"], rows["joint1"], rows["joint2"], rows["target"], strict=True)
    ):
        joint = int(target if target >= 0 else first)
        if not 0 <= joint < model.joint_count:
            raise ValueError(
                f"equality constraint {i}: give the joint of a polynomial as equality_constraint_joint1, or the joint that it softens as"
                " equality_constraint_target"
            )
        what = f"equality constraint {i} of joint '{model.joint_label[joint]}' (index {joint})"
        if target < 0 and kind != JOINT_KIND:
            raise ValueError(f"{what}: a connect or weld is a loop joint; give it as equality_constraint_target")
        for name in ("polycoef", "solref", "solimp"):
            if not np.isfinite(rows[name][i]).all():
                raise ValueError(f"{what}: {name} is {rows[name][i].tolist()}; give finite numbers")
        solref = rows["solref"][i]
        if rows["rules"][i] and not ((solref > 0.0).all() or (solref < 0.0).all()):
            raise ValueError(
                f"{what}: eq_solref is {solref.tolist()}; give a time constant [s] and a damping ratio above 0, or both a stiffness and a"
                " damping as negative numbers"
            )
        scale = float(rows["torquescale"][i])
        if not np.isfinite(scale) or (rows["rules"][i] and scale == 0.0):
            raise ValueError(
                f"{what}: equality_constraint_torquescale is {scale:g}; give a finite number other than 0, or use a ball joint if rotations"
                " are to be free"
            )
        if target < 0 and second >= model.joint_count:
            raise ValueError(
                f"{what}: equality_constraint_joint2 is {second}, but there are {model.joint_count} joints"
            )
