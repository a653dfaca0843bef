"""Which bodies forces move."""

from __future__ import annotations

import numpy as np

from newton_like.model.joint_types import look_up
from newton_like.types import BodyFlags


def held_bodies(model) -> np.ndarray:
    """Bodies that enabled fixed joints hold to the world, ``[body_count]``."""
    held = np.zeros(model.body_count + 1, dtype=bool)
    held[-1] = True
    if not model.joint_count:
        return held[:-1]
    fixed = look_up(model.joint_type.numpy(), "fixed") & model.joint_enabled.numpy().astype(bool)
    parent, child = model.joint_parent.numpy()[fixed], model.joint_child.numpy()[fixed]
    while len(new := child[held[parent] & ~held[child]]):
        held[new] = True
    return held[:-1]


def moving_bodies(model) -> np.ndarray:
    """Bodies that forces move: all but kinematic ones, and but those without mass that fixed joints hold to the world,
    ``[body_count]``."""
    moves = (model.body_flags.numpy() & BodyFlags.KINEMATIC) == 0
    massless = moves & (model.body_mass.numpy() <= 0.0)
    return moves & ~(massless & held_bodies(model)) if massless.any() else moves
