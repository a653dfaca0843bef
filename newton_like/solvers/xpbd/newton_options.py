"""Options of Newton's solver of this name."""

from __future__ import annotations

from newton_like.options import ANY, OneOf

_ADVICE = "impulses are not relaxed; substeps and iterations set the accuracy"
NEWTON = {
    "soft_body_relaxation": (ANY, ""),
    "soft_contact_relaxation": (ANY, ""),
    "joint_linear_relaxation": (OneOf((0.7, 1.0)), _ADVICE),
    "joint_angular_relaxation": (OneOf((0.4, 1.0)), _ADVICE),
    "rigid_contact_relaxation": (OneOf((0.8, 1.0)), _ADVICE),
    "joint_linear_compliance": (0.0, "joints are rigid; give a D6 joint springs"),
    "joint_angular_compliance": (0.0, "joints are rigid; give a D6 joint springs"),
    "rigid_contact_restitution_iterations": (ANY, ""),
    "rigid_contact_con_weighting": (ANY, ""),
    "tendon_max_sweeps": (ANY, ""),
    "tendon_settle_tol": (ANY, ""),
    "tendon_activation_tol": (ANY, ""),
    "deterministic": (ANY, ""),
}
"""Options of Newton 1.8 that do not exist here: values without effect, and advice instead of other values."""
