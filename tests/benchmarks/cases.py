"""The robots and motions that are measured, built by any engine with this project's builder vocabulary."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import warp as wp

from examples.gait import Trot

QUADRUPED = Path(__file__).resolve().parents[2] / "assets" / "quadruped.urdf"
FOOT_RADIUS = 0.02
RNG = 7
SETTLED = 64
"""Worlds that are settled; larger batches repeat them."""


@dataclass(frozen=True)
class Case:
    """A robot, what it does, and the time step.

    Attributes:
        name: short, for the command line.
        title: for the table.
        robot: from an engine (its module) to a builder with one robot and no ground.
        dt: time step [s].
        settle: how long the worlds run before anything is measured [s].
        targets: joint angles and rates [joint] at a time [s]; None: those of the builder.
        period: of the targets [s].
        feet: number of shapes that touch the ground at the end of `settle`; None where it changes.
    """

    name: str
    title: str
    robot: Callable
    dt: float
    settle: float
    targets: Callable | None = None
    period: float = 0.0
    feet: int | None = 4

    def scene(self, engine, worlds: int):
        """A builder with copies of the robot, one a world, on level ground."""
        scene = engine.ModelBuilder()
        scene.add_ground_plane(cfg=_material(engine, 1))
        scene.replicate(self.robot(engine), worlds)
        return scene

    def starts(self, joint_q: np.ndarray) -> np.ndarray:
        """Coordinates ``[SETTLED, coord]`` around those of one robot."""
        rng = np.random.default_rng(RNG)
        q = np.tile(joint_q, (SETTLED, 1)).astype(np.float64)
        q[:, 2] += rng.uniform(0.0, 0.01, SETTLED)
        q[:, 7:] += rng.normal(0.0, 0.02, q[:, 7:].shape)
        return q

    @property
    def steps_to_settle(self) -> int:
        """Number of steps before anything is measured."""
        return round(self.settle / self.dt)

    @cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray]:
        count = self.steps_to_settle + 2 * round(self.period / self.dt)
        rows = [self.targets(self.dt * (i + 0.5)) for i in range(count)]
        return np.array([q for q, _ in rows]), np.array([qd for _, qd in rows])

    def commands(self, step: int, worlds: int) -> tuple[np.ndarray, np.ndarray]:
        """Targets ``[worlds, joint]`` and rates in a step; worlds are at different places of the period."""
        q, qd = self._table
        period = round(self.period / self.dt)
        ahead = (np.arange(worlds) % SETTLED) * period // SETTLED
        at = step + ahead
        last = len(q) - period
        at = np.where(at < last, at, last + (at - last) % period)
        return q[at], qd[at]


def _material(engine, collision_group: int = -1):
    """Of feet, which touch the ground and never each other; of the ground in group 1."""
    settings = engine.ModelBuilder.ShapeConfig if hasattr(engine.ModelBuilder, "ShapeConfig") else engine.ShapeConfig
    return settings(density=0.0, mu=0.8, mu_torsional=0.0, mu_rolling=0.0, collision_group=collision_group)


def _dof(engine):
    return (
        engine.ModelBuilder.JointDofConfig if hasattr(engine.ModelBuilder, "JointDofConfig") else engine.JointDofConfig
    )


def _at(x=0.0, y=0.0, z=0.0, turn=0.0):
    """A place, turned about z."""
    return wp.transform(wp.vec3(x, y, z), wp.quat(0.0, 0.0, math.sin(0.5 * turn), math.cos(0.5 * turn)))


def project_quadruped(engine):
    """``assets/quadruped.urdf``, feet straight below the hips."""
    builder = engine.ModelBuilder()
    cfg = builder.default_joint_cfg
    cfg.armature, cfg.target_ke, cfg.target_kd = 0.005, 200.0, 4.0
    cfg.actuator_mode = engine.JointTargetMode.POSITION_VELOCITY
    gait = Trot()
    builder.add_urdf(
        str(QUADRUPED),
        xform=_at(z=gait.height + FOOT_RADIUS),
        floating=True,
        collapse_fixed_joints=True,
        enable_self_collisions=False,
    )
    stance = [float(x) for x in gait.targets(0.0)[0]]
    builder.joint_q[7:] = stance
    builder.joint_target_q[7:] = stance
    return builder


def design_quadruped(engine):
    """Thirteen bodies, twelve hinges, sphere feet, straight legs: the robot for which the targets of speed were stated."""
    builder = engine.ModelBuilder()
    drive = dict(target_ke=200.0, target_kd=5.0, effort_limit=80.0, actuator_mode=engine.JointTargetMode.POSITION)
    leg_inertia = wp.mat33(np.diag([1.8e-3, 1.7e-3, 1.1e-3]))
    base = builder.add_link(
        mass=6.2, com=wp.vec3(0.0, 0.0, 0.02), inertia=wp.mat33(np.diag([0.018, 0.37, 0.37])), xform=_at(z=0.55)
    )
    joints = [builder.add_joint_free(base)]
    builder.joint_q[2] = 0.55
    for x in (0.3, -0.3):
        for y in (0.104, -0.104):
            side = math.copysign(1.0, y)
            hip, thigh, shank = (
                builder.add_link(mass=2.0, com=wp.vec3(0.0, 0.0, z), inertia=leg_inertia) for z in (0.0, -0.125, -0.125)
            )
            x_axis, turned = wp.vec3(1.0, 0.0, 0.0), side * 0.5 * math.pi
            joints += [
                builder.add_joint_revolute(base, hip, axis=x_axis, parent_xform=_at(x, y), **drive),
                builder.add_joint_revolute(
                    hip, thigh, axis=x_axis, parent_xform=_at(y=0.05 * side, turn=turned), **drive
                ),
                builder.add_joint_revolute(thigh, shank, axis=x_axis, parent_xform=_at(z=-0.25), **drive),
            ]
            builder.add_shape_sphere(shank, xform=_at(z=-0.25), radius=0.03, cfg=_material(engine))
    builder.add_articulation(joints)
    return builder


def humanoid(engine):
    """A person of 43 kg with 27 degrees of freedom, the free trunk among them, on two box feet."""
    builder = engine.ModelBuilder()
    dof = _dof(engine)
    axes = {"x": wp.vec3(1.0, 0.0, 0.0), "y": wp.vec3(0.0, 1.0, 0.0), "z": wp.vec3(0.0, 0.0, 1.0)}

    def link(mass, length, width, z):
        """A limb along z, from its joint."""
        round_, along = mass * (width**2 / 4 + length**2 / 12), mass * width**2 / 2
        return builder.add_link(mass=mass, com=wp.vec3(0.0, 0.0, z), inertia=wp.mat33(np.diag([round_, round_, along])))

    def joint(parent, child, turns, ke, at):
        settings = dict(
            target_ke=ke, target_kd=0.05 * ke, armature=0.02, damping=0.5, effort_limit=300.0, limit_lower=-2.5, limit_upper=2.5,
            actuator_mode=engine.JointTargetMode.POSITION,
        )  # fmt: skip
        if len(turns) == 1:
            return builder.add_joint_revolute(parent, child, axis=axes[turns], parent_xform=at, **settings)
        return builder.add_joint_d6(
            parent, child, angular_axes=[dof(axis=axes[a], **settings) for a in turns], parent_xform=at
        )

    trunk = link(12.0, 0.45, 0.15, 0.15)
    joints = [builder.add_joint_free(trunk)]
    builder.joint_q[2] = 1.13
    waist, pelvis = link(2.5, 0.12, 0.12, -0.05), link(6.0, 0.15, 0.14, -0.05)
    joints += [joint(trunk, waist, "zy", 600.0, _at(z=-0.08)), joint(waist, pelvis, "x", 600.0, _at(z=-0.1))]
    for side in (1.0, -1.0):
        thigh, shin, foot = link(5.0, 0.4, 0.06, -0.2), link(2.8, 0.4, 0.05, -0.2), link(1.2, 0.05, 0.1, -0.03)
        joints += [
            joint(pelvis, thigh, "xzy", 800.0, _at(y=0.1 * side, z=-0.1)),
            joint(thigh, shin, "y", 800.0, _at(z=-0.4)),
            joint(shin, foot, "yx", 800.0, _at(z=-0.4)),
        ]
        builder.add_shape_box(foot, xform=_at(x=0.03, z=-0.03), hx=0.12, hy=0.05, hz=0.02, cfg=_material(engine))
        upper, lower = link(1.6, 0.28, 0.04, -0.14), link(1.0, 0.28, 0.04, -0.14)
        joints += [
            joint(trunk, upper, "xy", 100.0, _at(y=0.2 * side, z=0.35)),
            joint(upper, lower, "y", 100.0, _at(z=-0.28)),
        ]
    builder.add_articulation(joints)
    return builder


CASES = [
    Case("stand", "quadruped.urdf, standing", project_quadruped, 1.0 / 240.0, 1.5),
    Case(
        "trot",
        "quadruped.urdf, trotting",
        project_quadruped,
        1.0 / 240.0,
        1.5,
        Trot().targets,
        1.0 / Trot().frequency,
        None,
    ),
    Case("design", "design quadruped, standing", design_quadruped, 0.004, 1.5),
    Case("humanoid", "humanoid, 27 dofs, standing", humanoid, 1.0 / 240.0, 4.0, feet=2),
]
