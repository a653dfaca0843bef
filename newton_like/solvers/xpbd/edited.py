"""Edits that leave the order of bodies and joints as it is: the edited numbers are written into the tables of the steps.

Kept impulses, turns of angles and velocities of rotors stay. Everything else builds the tables again: other bodies that forces move, joints
that are enabled or disabled, free joints that begin or cease to act, a first armature, damper, velocity limit or dry friction, models with
mimic joints, equalities or tendons, and islands that sleep.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.kernels.solvers.xpbd.bodies import NO_SPIN, SPIN_BEFORE
from newton_like.kernels.solvers.xpbd.joints import JOINT_NUMBERS
from newton_like.model.editing.edits import BODIES, GAINS, GRAVITY, JOINTS, KINDS, OTHERS, SHAPES, TYPES, edits_of
from newton_like.model.model import contact_room
from newton_like.solvers.xpbd.anchors import Anchors
from newton_like.solvers.xpbd.features import check_bodies, check_features, check_joints
from newton_like.solvers.xpbd.laws import contact_laws_of
from newton_like.solvers.xpbd.lines import LinesOf
from newton_like.solvers.xpbd.moving import moving_bodies
from newton_like.solvers.xpbd.round import round_arrays
from newton_like.solvers.xpbd.tables import (
    CONSTANT_ROWS,
    MASS_COLUMN,
    acts_along,
    arrays_of_joints,
    body_constants,
    bounded_joints,
    floating_joints_that_act,
    joint_rows,
    limited_floating_joints,
    number_places,
    remember_velocities,
)


def order_of(model, anchors: Anchors) -> tuple[bytes, ...]:
    """What the order of the tables follows from, of the arrays that may be edited; `anchors`: those of the model."""
    floating = floating_joints_that_act(model), limited_floating_joints(model)
    parts = (
        moving_bodies(model),
        model.joint_enabled.numpy(),
        *floating,
        bounded_joints(model),
        anchors.kinds,
    )
    return (*(x.tobytes() for x in parts), bytes([remember_velocities(model)]))


def arrays_of(model) -> tuple:
    """The arrays that steps read where the model has them."""
    names = ("mu", "restitution", "time_constant", "damping_ratio", "mu_torsional", "mu_rolling")
    materials = (getattr(model, f"shape_material_{n}") for n in names)
    return model.gravity, model.body_com, model.shape_body, *arrays_of_joints(model).values(), *materials


def put_numbers(array: wp.array, shape: tuple, at: tuple, numbers: np.ndarray) -> None:
    """Writes numbers to places of an array that has this shape."""
    view = array.numpy()
    view.reshape(shape)[at] = numbers
    if not array.device.is_cpu:
        array.assign(view)


def take_over(solver, since: int) -> bool:
    """Writes what was edited after the version `since`. Returns False if the tables must be built again.

    Raises:
        ValueError: the solver does not support a feature, see `check_features`.
    """
    model, edits = solver.model, edits_of(solver.model)
    told = [version > since for version in edits.last]
    same = all(x is y for x, y in zip(solver._arrays, arrays_of(model), strict=True))
    if not same or solver._sleepers is not None:
        return False
    if not any(told[g] for g in range(len(told)) if g != GRAVITY):
        return True
    if solver._lines or (told[OTHERS] and LinesOf(model).lines):
        return False
    when = edits.when.numpy()
    when = np.maximum(when[:, :-1], when[:, -1:]) > since
    if told[OTHERS] or told[KINDS]:
        check_features(model)
    elif told[JOINTS] or told[GAINS] or told[BODIES]:
        check_joints(model)
    anchored = told[JOINTS] or told[OTHERS] or told[KINDS]
    anchors = Anchors(model) if anchored else solver._anchors
    if (anchored or told[GAINS] or told[BODIES]) and order_of(model, anchors) != solver._order:
        return False
    of_shapes = told[SHAPES] or told[TYPES] or told[OTHERS] or (told[BODIES] and solver._laws)
    if of_shapes and not _take_shapes(solver):
        return False
    if anchored:
        _take_anchors(solver, anchors)
    worlds = when[BODIES]
    if worlds.any():
        _take_bodies(solver, np.flatnonzero(worlds[solver._world_of_body]))
    worlds = when[JOINTS] | when[GAINS] | worlds
    return not worlds.any() or _take_joints(solver, worlds)


def _take_shapes(solver) -> bool:
    """Laws of contacts and radii of shapes."""
    model = solver.model
    laws = contact_laws_of(model)
    new = {} if laws is None else laws.arrays(model, solver._array)
    known = [x.shape for x in solver._laws.values() if isinstance(x, wp.array)]
    if [x.shape for x in new.values() if isinstance(x, wp.array)] != known:
        return False
    if solver._contact_room != contact_room(model):
        return False
    pairs = [(solver._laws[name], x) for name, x in new.items()]
    if solver._lists is not None:
        fixed = solver._lists["fixed"]
        pairs += [(fixed[name], x) for name, x in round_arrays(model, solver._array).items()]
    for old, x in pairs:
        if isinstance(x, wp.array) and x is not old:
            wp.copy(old, x)
    return True


def _take_anchors(solver, anchors: Anchors) -> None:
    """Where joints with the world hold bodies."""
    solver._anchors = anchors
    if solver._lists is not None:
        fixed = solver._lists["fixed"]
        fixed["body_rail"].assign(anchors.rails)
        fixed["body_pivot"].assign(anchors.pivots)


def _take_bodies(solver, bodies: np.ndarray) -> None:
    model, slots = solver.model, solver._slots
    check_bodies(model, bodies)
    known = body_constants(model, solver._moves)[bodies]
    numbers, mass = solver._bodies["numbers"], solver._bodies["inverse_mass"]
    put_numbers(numbers, numbers.shape, (number_places(slots, bodies, CONSTANT_ROWS),), known)
    # angular momenta are found again, with the new inertia
    rows = np.arange(SPIN_BEFORE, SPIN_BEFORE + 3)
    put_numbers(numbers, numbers.shape, (number_places(slots, bodies, rows),), NO_SPIN)
    put_numbers(mass, mass.shape, (bodies,), known[:, MASS_COLUMN])


def _take_joints(solver, worlds: np.ndarray) -> bool:
    """Numbers of joints in these worlds."""
    lanes, world = solver._lane_joint, solver._lane_world
    block, lane = np.nonzero((world >= 0) & worlds[world])
    if not len(block):
        return True
    rows = joint_rows(solver.model, lanes[block, lane], solver._lengths[block])
    acting = bool(solver._joints["acting"])
    if acting != acts_along(rows) and (not acting or len(block) == (lanes >= 0).sum()):
        return False
    numbers = solver._joints["numbers"]
    put_numbers(numbers, (len(lanes), JOINT_NUMBERS, lanes.shape[1]), (block, slice(None), lane), rows)
    if acting and not acts_along(rows):
        # others may act still
        view = numbers.numpy().reshape(len(lanes), JOINT_NUMBERS, lanes.shape[1])
        return acts_along(view.transpose(0, 2, 1).reshape(-1, JOINT_NUMBERS))
    return True
