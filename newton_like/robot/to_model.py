"""Models of the engine for robots of the SDK."""

from __future__ import annotations

import numpy as np
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like.model import ModelBuilder
from newton_like.robot.screws import axis_of, inverse, shifted


def body_numbers(link) -> dict:
    """Mass, centre of mass and inertia about it [kg, m, kg m^2] of a link's 6 x 6 inertia, as arguments of ``add_link``."""
    G = np.asarray(link.inertia, dtype=float)
    mass = float(G[3, 3])
    moment = np.array([G[2, 4], G[0, 5], G[1, 3]])
    com = moment / mass if mass > 0.0 else np.zeros(3)
    skew = np.array([[0.0, -com[2], com[1]], [com[2], 0.0, -com[0]], [-com[1], com[0], 0.0]])
    return dict(mass=mass, com=com, inertia=G[:3, :3] - mass * skew @ skew.T)


def transform7(T: np.ndarray) -> np.ndarray:
    """Position and quaternion (x, y, z, w) of a homogeneous transform."""
    return np.concatenate([T[:3, 3], Rotation.from_matrix(T[:3, :3]).as_quat()])


def joint_frames(joint) -> tuple[bool, np.ndarray, np.ndarray, np.ndarray]:
    """Of a joint that is not fixed, in the engine's terms: whether it rotates, its axis, and its frames on the parent and on the child.

    ``T_pj exp([S] q) T_jc = X_p motion(q) inverse(X_c)`` with the anchor on the axis.
    """
    axis = axis_of(joint.S, f"joint {joint.name!r}")
    to_anchor = shifted(axis.point)
    return axis.rotates, axis.direction, joint.T_pj @ to_anchor, inverse(joint.T_jc) @ to_anchor


def machine_model(links, joints):
    """A model of one articulation: the first link on a fixed joint, and a joint for each other link, which are in the same order."""
    builder = ModelBuilder(gravity=0.0)
    index = {id(link): builder.add_link(label=link.name, **body_numbers(link)) for link in links}
    made = [builder.add_joint_fixed(-1, index[id(links[0])], label="base")]
    for joint in joints:
        ends = (index[id(joint.parent_link)], index[id(joint.child_link)])
        if joint.is_fixed():
            frames = dict(parent_xform=transform7(joint.T_pj), child_xform=transform7(inverse(joint.T_jc)))
            made.append(builder.add_joint_fixed(*ends, label=joint.name, **frames))
            continue
        rotates, axis, X_p, X_c = joint_frames(joint)
        add = builder.add_joint_revolute if rotates else builder.add_joint_prismatic
        frames = dict(parent_xform=transform7(X_p), child_xform=transform7(X_c))
        made.append(add(*ends, axis=axis, label=joint.name, armature=0.0, **frames))
    builder.add_articulation(made)
    return builder.finalize("cpu", dtype=wp.float64)
