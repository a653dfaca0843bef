"""Robots whose joint-space inertia comes near to singular in configurations that they can reach.

Joints that are connected by links of little inertia act as one joint with several axes, and so do the axes of one D6 joint. Where these
axes line up, one degree of freedom moves almost no inertia, and its acceleration under a given force is almost unbounded. The measure is
the pivot of :mod:`newton_like.model.singular`, which contains the armature of the joint, over the size of the inertia that the joint
carries.
"""

from __future__ import annotations

import warnings

import numpy as np

from newton_like.model.labels import some_of
from newton_like.model.singular import NOTHING, ModelArrays, Trees, trees_with

NEAR = 1.0e-3
"""A measure below which a degree of freedom is named. For comparison: rods on hinges about z, y and z of a floating body, that start at
random, are off by more than 0.01 m after 120 steps of 1/240 s in 28 % of the worlds at a measure of 0, in 25 % at 4e-5, in 17 % at 4e-4, in
11 % at 1e-3, in 3 % at 4e-3 and in none at 1e-2 (`tests/benchmarks/light_links.py`)."""
CURED = 1.0e-2
"""The suggested armature as a share of the size of the inertia that the joint carries."""
LIGHT = 1.0e-3
"""Links of a smaller part of the mass that they carry are massless: their joints are named wherever the measure is below NEAR."""
HEAVY = 0.15
"""Joints of links from here on are not looked at. For links between the two bounds, and between the axes of a joint, heavy links hold what
is behind them rigid. With all joints of a long arm free, the measure of its first joint is small in many configurations, and harmless."""
DROP = 0.1
"""Joints of these links are named only if their inertia also falls below this part of its median. A small inertia that does not
change, such as that of the last joint of a thin tool, is harmless."""
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
        f"joint '{model.joint_label[joint]}' {armature:.2g}{_given(model, joint)}" for joint, armature in found.items()
    ]
    warnings.warn(
        f"{user}: the inertia of some joints nearly vanishes in configurations within their limits, where axes of joints line up. The links"
        " between these axes have little or no inertia, or one joint has the axes. Motion through these configurations is inaccurate."
        f" These armatures [kg m^2 or kg] reduce the error: {some_of(shown, SHOWN)}"
        " (builder.joint_armature, or default_joint_cfg.armature before an import)",
        stacklevel=stacklevel,
    )


def near_singular(model) -> dict[int, float]:
    """Joints of the first articulation of each shape whose measure falls below NEAR, with an armature that lifts it above."""
    arrays, found = ModelArrays(model), {}
    moving = (arrays["joint_articulation"] >= 0) & (arrays["joint_dof_dim"].sum(axis=1) > 0)
    for tree in trees_with(arrays, moving, first_alone=True):
        low, high = _ranges(arrays, tree)
        massless, light, holding = _light_dofs(tree)
        room = SEARCHED
        for dofs, held, drop in (
            (np.flatnonzero(massless), None, np.inf),
            (np.flatnonzero(light & _thin_dofs(tree, low, high)), holding, DROP),
        ):
            if not dofs.size:
                continue
            measure, size, part, room = _worst(tree, dofs, held, 5.0 * drop, low, high, room)
            for i in dofs[(measure < NEAR) & (part < drop)]:
                joint = int(tree.first_joint[0]) + int(np.searchsorted(tree.dof_at, i, side="right")) - 1
                found[joint] = max(found.get(joint, 0.0), CURED * float(size[dofs == i][0]))
    return found


def _given(model, joint: int) -> str:
    """The armature that a joint has, in words; nothing for none."""
    first, last = model.joint_qd_start.numpy()[joint : joint + 2]
    most = float(model.joint_armature.numpy()[first:last].max())
    return f" instead of {most:.2g}" if most > 0.0 else ""


def _welded(tree: Trees) -> np.ndarray:
    """The joint that moves each body: that of the body to which it is welded."""
    root = np.arange(len(tree.parent))
    for k, parent in enumerate(tree.parent):
        if tree.sizes[k] == 0 and parent >= 0:
            root[k] = root[parent]
    return root


def _inner_dofs(tree: Trees) -> np.ndarray:
    """Degrees of freedom behind which the same joint has another axis, ``[dofs]`` bool; none of joints with a quaternion, which turn alike
    about all axes."""
    inner = np.ones(tree.dofs, bool)
    inner[tree.dof_at[1:][tree.sizes > 0] - 1] = False
    return inner & ~np.repeat(tree.whole, tree.sizes)


def _light_dofs(tree: Trees) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Degrees of freedom that move massless links, and other ones that move light links, ``[dofs]`` bool; and the joints of heavy links,
    ``[joints]`` bool. All that is welded to a link belongs to it. Between the axes of one joint there is no mass."""
    root, mass, carried = _welded(tree), tree.mass[0], tree.carried_mass(0)
    own = np.bincount(root, mass, minlength=len(root))
    # a body that turns freely about an axis through its own mass has inertia about any
    stout = np.linalg.eigvalsh(tree.inertia[0])[:, 0] > NOTHING
    solid = np.bincount(root, stout & (mass > 0.0), minlength=len(root)) > 0
    moved = (carried > 0.0) & tree.dynamic[0]
    massless = np.repeat(((own < LIGHT * carried) | ~solid) & moved, tree.sizes)
    light = np.repeat((own < HEAVY * carried) & ~tree.whole & moved, tree.sizes)
    light |= _inner_dofs(tree) & np.repeat(moved, tree.sizes)
    return massless, light & ~massless, (own >= HEAVY * carried)[root]


def _thin_dofs(tree: Trees, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Degrees of freedom whose measure may fall below NEAR as other joints behind them move, ``[dofs]`` bool. A pivot is not below the
    inertia of the link itself about the axis, which does not change. The size is not above that of the chains stretched out."""
    one, root = tree.one(0), _welded(tree)
    turns, places, subspace, reference = (np.array(part)[:, 0] for part in one.kinematics(np.zeros((1, tree.dofs))))
    com = places + np.einsum("kij,kj->ki", turns, tree.com[0])
    lever = com - reference[root]
    axis, joint = subspace, np.repeat(np.arange(len(root)), tree.sizes)
    own = tree.armature[0].copy()
    for k, mass in enumerate(tree.mass[0]):
        moved = joint == root[k]
        velocity = axis[moved, :3] + np.cross(axis[moved, 3:], lever[k])
        spin = axis[moved, 3:] @ turns[k]
        own[moved] += mass * np.sum(velocity**2, axis=1) + np.einsum("ij,jk,ik->i", spin, tree.inertia[0, k], spin)
    # sums over all that a body carries: of masses, of masses times distances, and of masses times squared distances and moments
    mass, first = tree.mass[0].copy(), tree.mass[0] * np.linalg.norm(com - reference, axis=1)
    second = first * np.linalg.norm(com - reference, axis=1) + 0.5 * np.trace(tree.inertia[0], axis1=1, axis2=2)
    reach, carries = np.maximum(np.abs(low), np.abs(high)), tree.sizes > 1
    for k in range(len(root) - 1, -1, -1):
        parent = tree.parent[k]
        if parent >= 0:
            slides = reach[tree.dof_at[k] : tree.dof_at[k] + tree.linear[k]].sum()
            distance = np.linalg.norm(reference[k] - reference[parent]) + slides
            second[parent] += second[k] + 2.0 * distance * first[k] + distance**2 * mass[k]
            first[parent] += first[k] + distance * mass[k]
            mass[parent] += mass[k]
            carries[parent] |= carries[k] or tree.sizes[k] > 0
    size = np.where(axis[:, 3:].any(axis=1), second[joint], mass[joint])
    return ((own < NEAR * size) | _inner_dofs(tree)) & np.repeat(carries, tree.sizes)


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


def _worst(
    tree: Trees, dofs: np.ndarray, holding: np.ndarray | None, drop: float, low: np.ndarray, high: np.ndarray, room: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """The least measure that draws, and searches around the nearest, find for each of some degrees of freedom, the size of the inertia
    that it carries there, and its pivot there as a part of the median; and what is left of the `room` for searches, in joints
    times configurations. Searches start where this part is below `drop`."""
    rng = np.random.default_rng(1)
    share = np.concatenate([rng.uniform(size=(DRAWS, tree.dofs)), rng.choice([0.0, 0.5, 1.0], (DRAWS, tree.dofs))])
    q = np.concatenate([low + share * (high - low), np.clip(0.0, low, high)[None]])
    measure, size = (part[:, dofs] for part in _measures(tree, q, holding))
    best, usual = measure.argmin(axis=0), np.maximum(np.median((measure * size)[:DRAWS], axis=0), NOTHING)
    at, every = q[best], np.arange(len(dofs))
    least, carried = measure[best, every], size[best, every]
    near = np.flatnonzero((least < PROMISING) & (least * carried < drop * usual))
    cost = len(ROUNDS) * AROUND * len(tree.parent)
    near = np.sort(near[np.argsort(least[near], kind="stable")[: max(room // cost, 1)]])
    every = np.arange(len(near))
    for width in ROUNDS if near.size else ():
        steps = width * (high - low) * rng.uniform(-1.0, 1.0, (len(near), AROUND, tree.dofs))
        tried = np.clip(at[near, None] + steps, low, high)
        parts = _measures(tree, tried.reshape(-1, tree.dofs), holding)
        measure, size = (part.reshape(len(near), AROUND, -1)[every, :, dofs[near]] for part in parts)
        best = measure.argmin(axis=1)
        better = measure[every, best] < least[near]
        moved = near[better]
        at[moved] = tried[every, best][better]
        least[moved], carried[moved] = measure[every, best][better], size[every, best][better]
    return least, carried, least * carried / usual, room - cost * len(near)


def _measures(tree: Trees, q: np.ndarray, holding: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The measures of all degrees of freedom, and the sizes of the inertias that they carry: ``[len(q), dofs]``."""
    share, felt, size = tree.one(0, len(q)).measures(q, holding=holding)
    return share * felt / np.maximum(size, NOTHING), size
