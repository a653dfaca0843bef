"""Robots whose joint-space inertia comes near to singular in configurations that they can reach.

Joints that are connected by links of little or no mass act as one joint with several axes. Where these axes line up, one degree
of freedom moves almost no inertia, and its acceleration under a given force is almost unbounded. The measure is the pivot of
:mod:`newton_like.model.singular`, which contains the armature of the joint, over the size of the inertia that the joint carries.
"""

from __future__ import annotations

import warnings

import numpy as np

from newton_like.model.singular import NOTHING, ModelArrays, Trees, trees_with

NEAR = 1.0e-3
"""A measure below which a degree of freedom is named. For comparison: rods on hinges about z, y and z of a floating body, that start at
random, are off by more than 0.01 m after 120 steps of 1/240 s in 29 % of the worlds at a measure of 0, in 24 % at 4e-5, in 14 % at 4e-4, in
7 % at 1e-3, in 2 % at 4e-3 and in none at 1e-2."""
CURED = 1.0e-2
"""The suggested armature as a share of the size of the inertia that the joint carries."""
LIGHT = 1.0e-3
"""Links of a smaller part of the mass that they carry are looked at. Others keep their joints from lining up with those behind."""
DRAWS = 48
"""Configurations with random positions that are tried, and as many at limits and in the middle."""
PROMISING = 0.1
"""The least measure of these below which the configuration is searched around."""
ROUNDS, AROUND = (0.3, 0.1, 0.03, 0.01), 24
"""Widths of the searches as parts of the range, and configurations of each."""
SEARCHED = 100_000
"""Joints, times configurations, that the searches of an articulation compute at most: for half a second. Where more degrees of freedom are
near, the nearest are searched around."""
SHOWN = 4
"""Joints that a warning names."""


def warn_near_singular(model, user: str, stacklevel: int) -> None:
    """Warns of degrees of freedom whose inertia nearly vanishes in a configuration within their limits, and says the armature that
    prevents it. Of articulations of one shape the first is looked at.

    Args:
        model: the model.
        user: the solver.
        stacklevel: as ``warnings.warn`` has it.
    """
    found = near_singular(model)
    if not found:
        return
    shown = [
        f"joint '{model.joint_label[joint]}' {armature:.2g}{_given(model, joint)}"
        for joint, armature in list(found.items())[:SHOWN]
    ]
    more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    warnings.warn(
        f"{user}: the inertia of some joints nearly vanishes in configurations within their limits, because links of little or no mass"
        " connect joints whose axes line up. Motion through these configurations is inaccurate, and the step adds some armature there."
        f" These armatures [kg m^2 or kg] avoid the problem: {', '.join(shown)}{more}"
        " (builder.joint_armature, or default_joint_cfg.armature before an import)",
        stacklevel=stacklevel,
    )


def near_singular(model) -> dict[int, float]:
    """Joints of the first articulation of each shape whose measure falls below NEAR, with an armature that lifts it above."""
    arrays, found = ModelArrays(model), {}
    moving = (arrays["joint_articulation"] >= 0) & (arrays["joint_dof_dim"].sum(axis=1) > 0)
    for tree in trees_with(arrays, moving, first_alone=True):
        dofs = _light_dofs(tree)
        if dofs.size:
            measure, size = _worst(tree, dofs, *_ranges(arrays, tree))
            for i in dofs[measure < NEAR]:
                joint = int(tree.first_joint[0]) + int(np.searchsorted(tree.dof_at, i, side="right")) - 1
                found[joint] = max(found.get(joint, 0.0), CURED * float(size[dofs == i][0]))
    return found


def _given(model, joint: int) -> str:
    """The armature that a joint has, in words; nothing for none."""
    first, last = model.joint_qd_start.numpy()[joint : joint + 2]
    most = float(model.joint_armature.numpy()[first:last].max())
    return f" instead of {most:.2g}" if most > 0.0 else ""


def _light_dofs(tree: Trees) -> np.ndarray:
    """Degrees of freedom of the links, with all that is welded to them, that are light beside what they carry."""
    root = np.arange(len(tree.parent))
    for k, parent in enumerate(tree.parent):
        if tree.sizes[k] == 0 and parent >= 0:
            root[k] = root[parent]
    mass, carried = tree.mass[0], tree.carried_mass(0)
    own = np.bincount(root, mass, minlength=len(root))
    # a body that turns freely about an axis through its own mass has inertia about any
    stout = np.linalg.eigvalsh(tree.inertia[0])[:, 0] > NOTHING
    solid = np.bincount(root, stout & (mass > 0.0), minlength=len(root)) > 0
    light = ((own < LIGHT * carried) | ~solid) & (carried > 0.0) & tree.dynamic[0]
    return np.flatnonzero(np.repeat(light, tree.sizes))


def _ranges(arrays, tree: Trees) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest positions of every degree of freedom: its limits, within half a turn or a metre."""
    first = int(arrays["joint_qd_start"][tree.first_joint[0]])
    limits = [
        np.asarray(arrays[f"joint_limit_{end}"][first : first + tree.dofs], np.float64) for end in ("lower", "upper")
    ]
    reach = np.full(tree.dofs, np.pi)
    for k, count in enumerate(tree.linear):
        reach[tree.dof_at[k] : tree.dof_at[k] + count] = 1.0
    low, high = np.clip(limits[0], -reach, reach), np.clip(limits[1], -reach, reach)
    return np.minimum(low, high), high


def _worst(tree: Trees, dofs: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least measure that draws, and searches around the nearest, find for each of some degrees of freedom, and the size of the inertia
    that it carries there."""
    rng = np.random.default_rng(1)
    share = np.concatenate([rng.uniform(size=(DRAWS, tree.dofs)), rng.choice([0.0, 0.5, 1.0], (DRAWS, tree.dofs))])
    q = np.concatenate([low + share * (high - low), np.clip(0.0, low, high)[None]])
    measure, size = (part[:, dofs] for part in _measures(tree, q))
    best = measure.argmin(axis=0)
    at, every = q[best], np.arange(len(dofs))
    least, carried = measure[best, every], size[best, every]
    near = np.flatnonzero(least < PROMISING)
    most = max(SEARCHED // (len(ROUNDS) * AROUND * len(tree.parent)), 1)
    near = np.sort(near[np.argsort(least[near], kind="stable")[:most]])
    every = np.arange(len(near))
    for width in ROUNDS if near.size else ():
        steps = width * (high - low) * rng.uniform(-1.0, 1.0, (len(near), AROUND, tree.dofs))
        tried = np.clip(at[near, None] + steps, low, high)
        parts = _measures(tree, tried.reshape(-1, tree.dofs))
        measure, size = (part.reshape(len(near), AROUND, -1)[every, :, dofs[near]] for part in parts)
        best = measure.argmin(axis=1)
        better = measure[every, best] < least[near]
        moved = near[better]
        at[moved] = tried[every, best][better]
        least[moved], carried[moved] = measure[every, best][better], size[every, best][better]
    return least, carried


def _measures(tree: Trees, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The measures of all degrees of freedom, and the sizes of the inertias that they carry: ``[len(q), dofs]``."""
    share, felt, size = tree.one(0, len(q)).measures(q)
    return share * felt / np.maximum(size, NOTHING), size
