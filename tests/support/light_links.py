"""Robots whose inertia nearly vanishes in some configurations, because links between their hinges are light."""

from __future__ import annotations

import numpy as np

from newton_like.model import ModelBuilder
from newton_like.solvers.near_singular import near_singular

SPEED = 12.0
"""Velocity limit of the hinges of a rod [rad/s]."""


def rod(thin: float, armature: float = 0.0) -> ModelBuilder:
    """A rod, 0.5 m long, with a point mass at its end, on a floating body. Three hinges about z, y and z without links of mass between them
    connect it; `thin` is its inertia about its own axis, the last z."""
    builder = ModelBuilder()
    bodies = [builder.add_link(mass=1.0, inertia=0.1 * np.eye(3)), builder.add_link(), builder.add_link()]
    bodies.append(builder.add_link(mass=1.0, com=(0, 0, -0.5), inertia=thin * np.eye(3)))
    joints = [builder.add_joint_free(bodies[0])]
    for parent, child, axis in zip(bodies, bodies[1:], "zyz", strict=False):
        options = {"velocity_limit": SPEED, "armature": armature, "label": f"{axis}{child}"}
        joints.append(builder.add_joint_revolute(parent, child, axis=axis, **options))
    builder.add_articulation(joints)
    return builder


def slides(armature: float = 0.0) -> ModelBuilder:
    """A mass on two slides, with a hinge between them: massless links connect all."""
    builder = ModelBuilder()
    bodies = [builder.add_link(), builder.add_link(), builder.add_link(mass=1.0, inertia=0.01 * np.eye(3))]
    limits = {"limit_lower": -0.5, "limit_upper": 0.5}
    builder.add_articulation(
        [
            builder.add_joint_prismatic(-1, bodies[0], axis="z", armature=armature, label="first", **limits),
            builder.add_joint_revolute(bodies[0], bodies[1], axis="y", limit_lower=-3.0, limit_upper=3.0),
            builder.add_joint_prismatic(bodies[1], bodies[2], axis="z", **limits),
        ]
    )
    return builder


def arm(link: float, compound: bool = False, turn: float = np.pi, gyration: float = 0.02) -> ModelBuilder:
    """A rod with a mass of 1 kg at its end on hinges in the world: about z, y and z with links of mass `link` between them; or `compound`,
    about z, y and x in one D6 joint. The hinges behind the first turn as far as `turn`."""
    builder, parent, joints, body = ModelBuilder(gravity=0.0), -1, [], -1
    limits = [{"limit_lower": -most, "limit_upper": most} for most in (np.pi, turn, turn)]
    tip = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": 1e-5 * np.eye(3)}
    if compound:
        body = builder.add_link(**tip)
        axes = [builder.JointDofConfig(axis=axis, **limit) for axis, limit in zip("zyx", limits, strict=True)]
        joints.append(builder.add_joint_d6(-1, body, angular_axes=axes, label="shoulder"))
    for axis, limit in zip("" if compound else "zyz", limits, strict=False):
        light = {"mass": link, "inertia": link * gyration**2 * np.eye(3)}
        body = builder.add_link(**(tip if len(joints) == 2 else light))
        joints.append(builder.add_joint_revolute(parent, body, axis=axis, label=f"{axis}{len(joints)}", **limit))
        parent = body
    builder.add_articulation(joints)
    return builder


def prevented(builder: ModelBuilder) -> ModelBuilder:
    """With the armatures that the warning names, about the first axes of the joints."""
    for joint, armature in near_singular(builder.finalize("cpu")).items():
        builder.joint_armature[builder.joint_qd_start[joint]] = armature
    return builder
