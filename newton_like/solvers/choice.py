"""Which solver fits a model, by name or by the model itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from newton_like.model.arguments import check_model
from newton_like.model.joint_types import look_up
from newton_like.solvers.base import FEATURES, SolverBase
from newton_like.solvers.featherstone import SolverFeatherstone
from newton_like.solvers.xpbd import SolverXPBD
from newton_like.solvers.xpbd.features import check_all_axes, check_features
from newton_like.solvers.xpbd.laws import laws_by_class
from newton_like.solvers.xpbd.lines import LinesOf
from newton_like.types import BodyFlags, ShapeFlags

SOLVERS = {"featherstone": SolverFeatherstone, "xpbd": SolverXPBD}
"""Solvers by name."""

MANY_BODIES = 24
"""Free bodies of one world that collide, from which on `SolverXPBD` is chosen: the time of a step of `SolverFeatherstone` grows with the
square of the number of bodies that may touch each other."""
LONG_CHAIN = 60
"""Joints between the world and a body, from which on `SolverXPBD` is chosen: the time of a step of `SolverFeatherstone` grows with the
square of this number."""


@dataclass(frozen=True)
class SolverChoice:
    """A solver for a model.

    Attributes:
        solver: the class.
        reason: why it was chosen, one sentence.
    """

    solver: type[SolverBase]
    reason: str

    def __str__(self) -> str:
        return f"{self.solver.__name__}: {self.reason}"


def choose_solver(model, wanted: str | type = "auto") -> SolverChoice:
    """Chooses a solver.

    Rules of ``"auto"``, the first that applies: `SolverFeatherstone` if the model has a feature that `SolverXPBD` refuses; `SolverXPBD` if
    the model has one that `SolverFeatherstone` refuses (disabled joints of trees), if loop joints connect articulations, if a world has
    many free bodies that collide, or if a chain of joints is long; else `SolverFeatherstone`, which is exact in its joints.

    Args:
        model: the model.
        wanted: ``"auto"``, the name of a solver (``"featherstone"``, ``"xpbd"``), or a class.

    Raises:
        TypeError: `model` is no model, or `wanted` is neither a text nor a class of solvers.
        ValueError: there is no solver of this name.
    """
    check_model(model)
    if isinstance(wanted, type) and issubclass(wanted, SolverBase):
        return SolverChoice(wanted, "it was asked for")
    if not isinstance(wanted, str):
        raise TypeError(f"wanted must be a class of solvers, a name ({', '.join(SOLVERS)}) or 'auto', not {wanted!r}")
    if wanted != "auto":
        if wanted.lower() not in SOLVERS:
            raise ValueError(f"there is no solver {wanted!r}; use {', '.join(map(repr, SOLVERS))} or 'auto'")
        return SolverChoice(SOLVERS[wanted.lower()], "it was asked for")
    refused = _refusal(model)
    if refused is not None:
        return SolverChoice(SolverFeatherstone, f"SolverXPBD refuses the model ({refused})")
    told = (
        _refused_by_featherstone(model) or _connects_articulations(model) or _many_bodies(model) or _long_chain(model)
    )
    if told:
        return SolverChoice(SolverXPBD, told)
    return SolverChoice(SolverFeatherstone, "it is exact in its joints, and no world has many bodies that collide")


def _refusal(model) -> str | None:
    """What `SolverXPBD` refuses in a model."""
    if model.actuators:
        return f"actuator '{model.actuators[0].label}'"
    try:
        check_features(model)
        check_all_axes(model)
        LinesOf(model)
        laws_by_class(model)
    except ValueError as error:
        return str(error)
    return None


def _refused_by_featherstone(model) -> str:
    lacks = sorted(SolverXPBD.supports - SolverFeatherstone.supports)
    told = next((x for x in (FEATURES[name](model, "SolverFeatherstone") for name in lacks) if x is not None), None)
    return "" if told is None else f"SolverFeatherstone refuses the model ({told})"


def _connects_articulations(model) -> str:
    owner = np.append(np.full(max(model.body_count, 1), -1), -1)
    trees = model.joint_articulation.numpy() >= 0
    owner[model.joint_child.numpy()[trees]] = model.joint_articulation.numpy()[trees]
    parent, child = model.joint_parent.numpy(), model.joint_child.numpy()
    between = ~trees & model.joint_enabled.numpy().astype(bool) & (parent >= 0) & (owner[parent] != owner[child])
    if not between.any():
        return ""
    label = model.joint_label[int(np.argmax(between))]
    return f"loop joint '{label}' connects two articulations, which SolverFeatherstone solves as one only (builder.merge_articulations)"


def _many_bodies(model) -> str:
    if not model.shape_count or not model.body_count:
        return ""
    free = np.zeros(model.body_count, dtype=bool)
    tree = model.joint_articulation.numpy() >= 0
    child = model.joint_child.numpy()
    free[child[tree & look_up(model.joint_type.numpy(), "floats") & (model.joint_parent.numpy() < 0)]] = True
    free &= (model.body_flags.numpy() & BodyFlags.KINEMATIC) == 0
    touching = (model.shape_flags.numpy() & ShapeFlags.COLLIDE_SHAPES) != 0
    hit = np.zeros(model.body_count, dtype=bool)
    body = model.shape_body.numpy()
    hit[body[touching & (body >= 0)]] = True
    count = np.bincount(np.maximum(model.body_world.numpy()[free & hit], 0), minlength=1).max()
    if count < MANY_BODIES:
        return ""
    return (
        f"a world has {count} free bodies that collide, which it solves in a time that grows linearly with their number"
    )


def _long_chain(model) -> str:
    parent, child = model.joint_parent.numpy().tolist(), model.joint_child.numpy().tolist()
    depth: dict[int, int] = {-1: 0}
    tree = (model.joint_articulation.numpy() >= 0).tolist()
    # joints of an articulation follow their parents
    for a, b, on in zip(parent, child, tree, strict=True):
        if on:
            depth[b] = depth.get(a, 0) + 1
    most = max(depth.values())
    return (
        f"a chain has {most} joints, which it solves in a time that grows linearly with their number"
        if most >= LONG_CHAIN
        else ""
    )
