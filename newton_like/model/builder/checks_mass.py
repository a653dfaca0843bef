"""Refuses inertias that no body has, and joints that would move nothing."""

from __future__ import annotations

import numpy as np

from newton_like.geometry import inertia as inertia_math
from newton_like.geometry.transforms import quat_rotate, quat_to_matrix, transform_inverse, transform_multiply
from newton_like.model.builder.checks import Report
from newton_like.types import BodyFlags, JointType

SINGULAR = 1.0e-9
"""Smallest over largest moment (or eigenvalue of a joint's scaled inertia) below which an inertia counts as singular. A
hair is far above: 0.1 mm thick and one metre long it has 1e-8."""
NOTHING = 1.0e-20
"""Inertia [kg or kg m^2] that counts as none: below that of a grain of dust, above rounding around exact zeros."""


def check_masses(columns: dict, ancestor: np.ndarray, report: Report) -> None:
    """Each inertia is possible, and each dof moves something that has mass or inertia along it.

    A body without mass is fine where bodies that it carries, or the armature of its joint, give the joint something to
    move.
    """
    mass, inertia = columns["body_mass"], columns["body_inertia"]
    if not len(mass):
        return
    size = np.abs(inertia).max(axis=(1, 2))
    slack = inertia_math.RELATIVE_TOLERANCE * size
    skew = np.abs(inertia - inertia.transpose(0, 2, 1)).max(axis=(1, 2))
    moments = np.linalg.eigvalsh(0.5 * (inertia + inertia.transpose(0, 2, 1)))
    wrong = (skew > slack) | (moments[:, 0] < -slack) | (moments[:, 2] > moments[:, 0] + moments[:, 1] + slack)
    wrong |= (mass <= 0.0) & (size > 0.0)
    report.refuse("body", wrong, lambda i: f"{inertia_math.check(mass[i], inertia[i])} (mass {mass[i]:g} kg)")
    columns["body_inertia"] = 0.5 * (inertia + inertia.transpose(0, 2, 1))
    suspect = (mass <= 0.0) | (moments[:, 0] <= SINGULAR * moments[:, 2])
    if suspect.any():
        _check_movement(columns, ancestor, suspect, report)


def _check_movement(columns: dict, ancestor: np.ndarray, suspect: np.ndarray, report: Report) -> None:
    """The inertia that each joint feels, its subtree rigid and all coordinates zero, is positive definite.

    The block of joint j in the mass matrix, ``S_j^T I^c_j S_j`` plus armature, with the composite inertia ``I^c`` of
    Featherstone 2008, section 6.2.
    """
    owner, child = columns["joint_articulation"], columns["joint_child"]
    affected = np.zeros(len(columns["articulation_start"]), dtype=bool)
    affected[owner[(owner >= 0) & suspect[child]]] = True
    joints = np.flatnonzero((owner >= 0) & affected[owner])
    pose, anchor, levels = _zero_poses(columns, ancestor, joints)
    mass, moment, second = _composites(columns, ancestor, pose, levels)

    dims = columns["joint_dof_dim"]
    dofs = dims.sum(axis=1)
    dynamic = columns["body_flags"][child] == BodyFlags.DYNAMIC
    for count in range(1, 7):
        group = joints[(dofs[joints] == count) & dynamic[joints]]
        if not group.size:
            continue
        index = columns["joint_qd_start"][group, None] + np.arange(count)
        axis = quat_rotate(anchor[group, None, 3:], columns["joint_axis"][index])
        angular = np.arange(count) >= dims[group, :1]
        safe = np.maximum(mass[group], NOTHING)
        com = np.where(mass[group, None] > 0.0, moment[group] / safe[:, None], anchor[group, :3])
        about_com = second[group] - mass[group, None, None] * _steiner(com)
        turn = np.where(angular[..., None], axis, 0.0)
        slide = np.where(angular[..., None], np.cross(axis, (com - anchor[group, :3])[:, None]), axis)
        block = mass[group, None, None] * (slide @ slide.transpose(0, 2, 1)) + turn @ about_com @ turn.transpose(
            0, 2, 1
        )
        block = block + columns["joint_armature"][index][:, :, None] * np.eye(count)
        felt = np.diagonal(block, axis1=1, axis2=2)
        empty = felt <= NOTHING
        scale = 1.0 / np.sqrt(np.maximum(felt, NOTHING))
        smallest = np.linalg.eigvalsh(block * scale[:, :, None] * scale[:, None, :])[:, 0]
        wrong = empty.any(axis=1) | (smallest < SINGULAR)
        report.refuse("joint", wrong, lambda i: _nothing_to_move(columns, mass, i, report), among=group)


def _nothing_to_move(columns: dict, mass: np.ndarray, joint: int, report: Report) -> str:
    body = report.name("body", columns["joint_child"][joint])
    kind = JointType(columns["joint_type"][joint]).name
    if mass[joint] <= 0.0:
        lack = f"{body} and all that it carries have no mass"
    else:
        lack = f"{body} and all that it carries ({mass[joint]:g} kg) have no inertia about an axis of the joint"
    return (
        f"this {kind} joint has nothing to move: {lack}; give the body mass and inertia, a shape with density, or the "
        "joint an armature"
    )


def _zero_poses(columns: dict, ancestor: np.ndarray, joints: np.ndarray):
    """Poses of child link frames and of parent anchor frames with all coordinates zero and every root at the origin.

    Returns:
        Both by joint, and the joints by their depth in the tree.
    """
    total = len(columns["joint_type"])
    pose, anchor = np.zeros((total, 7)), np.zeros((total, 7))
    to_child = transform_inverse(columns["joint_X_c"])
    levels = []
    level = joints[ancestor[joints] < 0]
    anchor[level, 6] = 1.0
    rest = joints[ancestor[joints] >= 0]
    while level.size:
        pose[level] = transform_multiply(anchor[level], to_child[level])
        levels.append(level)
        next_ones = np.isin(ancestor[rest], level)
        level, rest = rest[next_ones], rest[~next_ones]
        anchor[level] = transform_multiply(pose[ancestor[level]], columns["joint_X_p"][level])
    return pose, anchor, levels


def _composites(columns: dict, ancestor: np.ndarray, pose: np.ndarray, levels: list[np.ndarray]):
    """Mass, first moment and inertia about the origin of each joint's child with all that it carries."""
    total = len(pose)
    mass, moment, second = np.zeros(total), np.zeros((total, 3)), np.zeros((total, 3, 3))
    for level in levels:
        body = columns["joint_child"][level]
        rotation = quat_to_matrix(pose[level, 3:])
        com = pose[level, :3] + quat_rotate(pose[level, 3:], columns["body_com"][body])
        mass[level] = columns["body_mass"][body]
        moment[level] = mass[level, None] * com
        turned = rotation @ columns["body_inertia"][body] @ rotation.transpose(0, 2, 1)
        second[level] = turned + mass[level, None, None] * _steiner(com)
    for level in reversed(levels[1:]):
        for quantity in (mass, moment, second):
            np.add.at(quantity, ancestor[level], quantity[level])
    return mass, moment, second


def _steiner(offset: np.ndarray) -> np.ndarray:
    """``|r|^2 1 - r r^T`` for each row."""
    return np.sum(offset**2, axis=-1)[:, None, None] * np.eye(3) - offset[:, :, None] * offset[:, None, :]
