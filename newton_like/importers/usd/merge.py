"""Merges several one-axis joints between the same two bodies, which converters from MuJoCo write for joints of several axes.

As simultaneous constraints, two hinges with different axes would be a weld. If all joints agree on the rest pose of the bodies
and no two are parallel, they are read as a sequence in their order: as the axes of one D6, or, if the axes
are not orthogonal through one point, as a chain with massless bodies between them.
"""

from __future__ import annotations

import numpy as np

from newton_like.importers.usd.joints import Axis, Joint
from newton_like.importers.usd.records import Body, Mass, Scene
from newton_like.importers.usd.values.pose import (
    quat_from_matrix,
    quat_inverse,
    quat_multiply,
    quat_rotate,
    transform,
    transform_inverse,
    transform_multiply,
)

AGREES = 1.0e-4
"""Distance [m] and angle [rad] up to which frames count as equal; frames in files are float32."""


def merge_joints(scene: Scene) -> dict[str, tuple[str, int]]:
    """Merges joints with the same bodies in the records of a scene.

    Returns:
        For each joint that became an axis of a D6: the path of the D6, and the index of the axis.
    """
    pairs: dict[tuple, list[Joint]] = {}
    for joint in scene.joints.values():
        usable = joint.enabled and not joint.excluded and joint.kind in ("revolute", "prismatic")
        if usable and None not in joint.bodies and joint.bodies[0] != joint.bodies[1]:
            pairs.setdefault(tuple(joint.bodies), []).append(joint)
    parts: dict[str, tuple[str, int]] = {}
    for joints in pairs.values():
        if len(joints) > 1 and _is_sequence(joints):
            if _is_d6(joints):
                parts.update(_make_d6(scene, joints))
            else:
                _make_chain(scene, joints)
    return parts


def _direction(joint: Joint) -> np.ndarray:
    """Axis in the second body's frame."""
    axis = (joint.linear or joint.angular)[0].axis
    return quat_rotate(joint.anchors[1][3:], axis)


def _is_sequence(joints: list[Joint]) -> bool:
    """Whether the frames agree on one rest pose, and the hinges and the slides are independent."""
    rest = [transform_multiply(joint.anchors[0], transform_inverse(joint.anchors[1])) for joint in joints]
    for other in rest[1:]:
        off = quat_multiply(quat_inverse(rest[0][3:]), other[3:])
        if np.abs(other[:3] - rest[0][:3]).max() > AGREES or np.abs(off[:3]).max() > 0.5 * AGREES:
            return False
    for kind in ("revolute", "prismatic"):
        axes = [_direction(joint) for joint in joints if joint.kind == kind]
        if len(axes) > 3 or (axes and np.linalg.svd(np.stack(axes), compute_uv=False)[-1] < 1.0e-3):
            return False
    return True


def _is_d6(joints: list[Joint]) -> bool:
    """Whether a D6 can represent the joints: translations first, orthogonal axes, and hinges through one point."""
    kinds = [joint.kind for joint in joints]
    if kinds != sorted(kinds):  # prismatic before revolute
        return False
    for kind in ("revolute", "prismatic"):
        axes = [_direction(joint) for joint in joints if joint.kind == kind]
        if axes and np.abs(np.stack(axes) @ np.stack(axes).T - np.eye(len(axes))).max() > AGREES:
            return False
    turning = [joint for joint in joints if joint.kind == "revolute"]
    return all(np.abs(joint.anchors[1][:3] - turning[0].anchors[1][:3]).max() <= AGREES for joint in turning)


def _make_d6(scene: Scene, joints: list[Joint]) -> dict[str, tuple[str, int]]:
    """Replaces joints by one D6 with the path of the first joint; its frame is along the hinges, if any."""
    slides = [joint for joint in joints if joint.kind == "prismatic"]
    turns = [joint for joint in joints if joint.kind == "revolute"]
    lead = turns or slides
    axes = [_direction(joint) for joint in lead[:2]]
    if len(axes) == 1:
        other = np.eye(3)[int(np.argmin(np.abs(axes[0])))]
        axes.append(other - (other @ axes[0]) * axes[0])
    first = axes[0] / np.linalg.norm(axes[0])
    second = axes[1] - (axes[1] @ first) * first
    second /= np.linalg.norm(second)
    frame = np.stack([first, second, np.cross(first, second)], axis=1)
    child = transform(lead[0].anchors[1][:3], quat_from_matrix(frame))
    rest = transform_multiply(lead[0].anchors[0], transform_inverse(lead[0].anchors[1]))
    merged = Joint(
        path=joints[0].path,
        kind="d6",
        bodies=list(joints[0].bodies),
        anchors=[transform_multiply(rest, child), child],
        collides=all(joint.collides for joint in joints),
    )
    parts = {}
    for target, group in ((merged.linear, slides), (merged.angular, turns)):
        for joint in group:
            old = (joint.linear or joint.angular)[0]
            axis = frame.T @ _direction(joint)
            if joint.kind == "revolute":
                axis = np.round(axis)
            target.append(Axis(axis / np.linalg.norm(axis), old.settings, old.acceleration, old.position, old.velocity))
            if joint.mimic is not None:
                scene.remark("mimics of joints that become one axis of a D6 joint are ignored", joint.path)
    for number, joint in enumerate([*slides, *turns]):
        parts[joint.path] = (merged.path, number)
        if joint.path != merged.path:
            del scene.joints[joint.path]
    scene.joints[merged.path] = merged
    return parts


def _make_chain(scene: Scene, joints: list[Joint]) -> None:
    """Adds massless bodies between the joints, in the pose of the last body."""
    before = joints[0].bodies[0]
    last = scene.bodies[joints[0].bodies[1]]
    for number, joint in enumerate(joints):
        if number:
            joint.bodies[0] = before
            joint.anchors[0] = joint.anchors[1].copy()
        if joint is not joints[-1]:
            before = f"{joint.path}/link"
            scene.bodies[before] = Body(before, last.pose, Mass(0.0), np.zeros(6), False)
            joint.bodies[1] = before
