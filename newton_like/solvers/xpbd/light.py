"""Links that are too light for those on either side, of joints that passes solve one by one."""

from __future__ import annotations

import warnings

import numpy as np

from newton_like.model.joint_types import look_up
from newton_like.solvers.xpbd.features import SOLVER
from newton_like.solvers.xpbd.moving import moving_bodies

LEAST = 1.5e-3
"""Ratio of :func:`inertia_ratios` below which :func:`warn_light_links` warns. Under drives, robots of ``example-robot-data`` below it shook
at 2 to 8 m/s with 2 passes that solve one joint after the other: Unitree G1 (waist, 2e-4) and Alex (spine, 1e-3), with pelvises fixed to
the world. The next one is at 3e-3."""


def inertia_ratios(model) -> tuple[np.ndarray, np.ndarray]:
    """How light links between heavier ones are.

    The ratio of a link is its least moment of inertia over that of the heaviest link that hangs on it, or of the heaviest one above it if
    this is lighter; the world is infinitely heavy. Passes over joints solve one joint at a time, and bring about this part of a moment
    through the link.

    Args:
        model: the model.

    Returns:
        indices of the links with links on either side ``[n]``, and their ratios ``[n]`` [1].
    """
    above, joint = _tree(model)
    levels = _levels(above)
    own = np.linalg.eigvalsh(model.body_inertia.numpy().astype(float).reshape(-1, 3, 3))[:, 0]
    # the heaviest of a link and those that hang on it, and the heaviest above
    branch = own.copy()
    for level in reversed(levels):
        np.maximum.at(branch, above[level], branch[level])
    below = np.zeros(len(own))
    child = np.flatnonzero(above >= 0)
    np.maximum.at(below, above[child], branch[child])
    up = np.where((joint >= 0) & (above < 0), np.inf, 0.0)
    for level in levels:
        up[level] = np.maximum(up[above[level]], own[above[level]])
    between = np.flatnonzero((below > 0.0) & (up > 0.0))
    return between, own[between] / np.minimum(below, up)[between]


def warn_light_links(model, together: np.ndarray, stacklevel: int) -> None:
    """Warns of links whose ratio is below `LEAST`, by name, unless all their joints are solved together.

    Args:
        model: the model.
        together: which joints the recursion over trees solves, ``[joint_count]``.
        stacklevel: that of the warning.
    """
    links, ratios = inertia_ratios(model)
    joints = np.flatnonzero(~together & model.joint_enabled.numpy().astype(bool))
    ends = np.append(model.joint_parent.numpy()[joints], model.joint_child.numpy()[joints])
    light = np.flatnonzero((ratios < LEAST) & np.isin(links, ends))
    if len(light) == 0:
        return
    labels = list(dict.fromkeys(model.body_label[links[i]] for i in light[np.argsort(ratios[light], kind="stable")]))
    names = ", ".join(f"'{label}'" for label in labels[:3]) + (
        f" and {len(labels) - 3} more" if len(labels) > 3 else ""
    )
    warnings.warn(
        f"the moments of inertia of {names} are {ratios[light].min():.1g} of those of links on either side; {SOLVER} does not hold joints"
        " of such links, which shake under drives. Use SolverFeatherstone, or give them 0.01 of the moments of inertia of their neighbours",
        stacklevel=stacklevel + 1,
    )


def _tree(model) -> tuple[np.ndarray, np.ndarray]:
    """Of each body, the parent in its tree and the joint that holds it, or -1. Free and distance joints hold nothing. Bodies that no force
    moves are parts of the world."""
    above, joint = np.full(model.body_count, -1), np.full(model.body_count, -1)
    if not model.joint_count:
        return above, joint
    moves = np.append(moving_bodies(model), False)
    parent, child = model.joint_parent.numpy(), model.joint_child.numpy()
    holds = (model.joint_articulation.numpy() >= 0) & model.joint_enabled.numpy().astype(bool) & moves[child]
    holds = np.flatnonzero(holds & ~look_up(model.joint_type.numpy(), "floats"))
    parent, child = parent[holds], child[holds]
    above[child], joint[child] = np.where(moves[parent], parent, -1), holds
    return above, joint


def _levels(above: np.ndarray) -> list[np.ndarray]:
    """The bodies that hang on others, level by level."""
    root, depth = np.arange(len(above)), np.zeros(len(above), dtype=int)
    while (more := above[root] >= 0).any():
        root = np.where(more, above[root], root)
        depth += more
    return [np.flatnonzero(depth == d) for d in range(1, depth.max(initial=0) + 1)]
