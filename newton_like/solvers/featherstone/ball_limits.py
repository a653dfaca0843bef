"""Limits of the rotations of ball joints, in trees and in loops, as constraint rows of `kernels.solvers.rows.closure_rows` have them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from newton_like.collision.laws import soft_numbers
from newton_like.dynamics.internal.frames import WORLD
from newton_like.dynamics.names import names_of
from newton_like.geometry.transforms import quat_inverse, quat_multiply, quat_rotate
from newton_like.kernels.dynamics.loops import CHILD_DIRECTION, LOOP, PARENT_DIRECTION
from newton_like.kernels.parameters.gains import NO_LIMIT
from newton_like.kernels.solvers.rows.closure_rows import LIMIT, SPIN, STOP, STOP_BOUND, SWING
from newton_like.model.editing.edits import BALL_LIMITS
from newton_like.model.joint_types import look_up
from newton_like.model.mujoco.contact_settings import has_contact_settings, settings_of
from newton_like.types import BodyFlags

_KINDS = dict(zip(BALL_LIMITS, (SPIN, SWING), strict=True))


class Stop(NamedTuple):
    """A limit of a ball joint.

    Attributes:
        joint: its index.
        kind: SPIN or SWING.
        law: LIMIT, or STOP if it is soft.
        ends: links of the parent and of the child.
        vectors, numbers: of the row.
    """

    joint: int
    kind: int
    law: int
    ends: tuple[int, int]
    vectors: np.ndarray
    numbers: tuple


def limited_balls(model) -> np.ndarray:
    """Ball joints with rows for limits of their rotation: those that have a limit, and all if limits may vary; bool, ``[joint_count]``.
    Kinematic bodies of trees have none."""
    balls = look_up(model.joint_type.numpy(), "turns_only") & model.joint_enabled.numpy().astype(bool)
    if not balls.any():
        return balls
    moved = (model.body_flags.numpy()[model.joint_child.numpy()] & int(BodyFlags.KINEMATIC)) != 0
    balls &= ~(moved & (model.joint_articulation.numpy() >= 0))
    if not model.varying.isdisjoint(BALL_LIMITS):
        return balls
    limits = np.stack([getattr(model, name).numpy() for name in BALL_LIMITS])
    return balls & ~((limits < 0.0) | (limits >= NO_LIMIT)).all(axis=0)


def stops_of(model) -> Iterator[Stop]:
    """The limits of the ball joints of a model, by joint.

    Raises:
        ValueError: a limit is no number.
    """
    joints = np.flatnonzero(limited_balls(model))
    if not len(joints):
        return
    names = names_of(model)
    parent, child, owner = (
        getattr(model, f"joint_{name}").numpy()[joints] for name in ("parent", "child", "articulation")
    )
    first, last = (getattr(model, f"joint_X_{end}").numpy()[joints, 3:].astype(np.float64) for end in "pc")
    # bodies that rest carry joints
    carried = (parent >= 0) & (model.joint_ancestor.numpy()[joints] < 0) & (owner >= 0)
    first[carried] = quat_multiply(model.body_q.numpy()[parent[carried], 3:].astype(np.float64), first[carried])
    ends = np.stack([np.where((parent < 0) | carried, WORLD, names.link[parent]), names.link[child]], axis=1).tolist()
    vectors = {kind: np.zeros((len(joints), LOOP)) for kind in (SPIN, SWING)}
    vectors[SPIN][:, :4] = quat_multiply(last, quat_inverse(first))
    x = np.array([1.0, 0.0, 0.0])
    for at, turn in ((PARENT_DIRECTION, first), (CHILD_DIRECTION, last)):
        vectors[SWING][:, at : at + 3] = quat_rotate(turn, x)
    laws = _softness(model, model.joint_qd_start.numpy()[joints])
    limits = {name: getattr(model, name).numpy()[joints].astype(np.float64) for name in BALL_LIMITS}
    for i, j in enumerate(joints.tolist()):
        for name, kind in _KINDS.items():
            limit = float(limits[name][i])
            if np.isnan(limit):
                raise ValueError(
                    f"joint '{model.joint_label[j]}' (index {j}): {name} is nan; give a number, -1 for none"
                )
            if limit < 0.0 and name not in model.varying:
                continue
            limit = limit if 0.0 <= limit < NO_LIMIT else NO_LIMIT
            row = vectors[kind][i]
            if laws is None or laws[i] is None:
                yield Stop(j, kind, LIMIT, tuple(ends[i]), row, (-NO_LIMIT, limit))
            else:
                numbers, margin = laws[i]
                row[STOP_BOUND] = limit - margin
                yield Stop(j, kind, STOP, tuple(ends[i]), row, numbers)


def _softness(model, dofs: np.ndarray) -> list | None:
    """The numbers of the laws of limits by their degrees of freedom, and margins; None for rigid ones, or if all are rigid."""
    settings = settings_of(model) if has_contact_settings(model) else {}
    rules = np.asarray(settings.get("limit_rules", ()))
    if not rules.size or not rules[dofs].any():
        return None
    rows = np.concatenate([settings[name][dofs] for name in ("solreflimit", "solimplimit")], axis=1).astype(np.float64)
    different, of = np.unique(rows, axis=0, return_inverse=True)
    numbers = [tuple(soft_numbers(row[:2], row[2:])) for row in different]
    margins = settings["limit_margin"][dofs].tolist()
    return [
        (numbers[k], margin) if soft else None
        for k, margin, soft in zip(of.ravel().tolist(), margins, rules[dofs].tolist(), strict=True)
    ]
