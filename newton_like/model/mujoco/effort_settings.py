"""Ranges of the forces of all actuators of a degree of freedom together, as custom attributes in the namespace ``mujoco``."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.model.custom import AttributeFrequency
from newton_like.model.mujoco.contact_settings import NAMESPACE, declare_attributes

EFFORT_SETTINGS = ("effort_rules", "effort_middle", "jnt_actgravcomp")

_ATTRIBUTES = (
    # own: 1: the effort limit of a degree of freedom bounds the sum of the forces of its drive and of actuators
    ("effort_rules", wp.int32, 0, None),
    # own: the middle of the range of that sum, whose half width is the effort limit
    ("effort_middle", wp.float32, 0.0, None),
    # whether weight that is taken away counts for that sum
    ("jnt_actgravcomp", wp.int32, 0, None),
)


def declare_effort_settings(builder) -> None:
    """Declares these settings as custom attributes of a builder."""
    declare_attributes(builder, _ATTRIBUTES, AttributeFrequency.JOINT_DOF)


def effort_settings(model) -> dict[str, np.ndarray] | None:
    """The settings of all degrees of freedom on the host, by name; None: no limit bounds a sum."""
    space = getattr(model, NAMESPACE, None)
    if not hasattr(space, "effort_rules"):
        return None
    rules = space.effort_rules.numpy()
    if not rules.any():
        return None
    return {
        name: getattr(space, name).numpy() if hasattr(space, name) else np.zeros(len(rules)) for name in EFFORT_SETTINGS
    }
