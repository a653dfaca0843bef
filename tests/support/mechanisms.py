"""Robots that use every part of the solver, and batches of worlds with different motions."""

from __future__ import annotations

import os

import numpy as np
from scipy.spatial.transform import Rotation

from newton_like import JointDofConfig, JointTargetMode, JointType, ModelBuilder, ShapeConfig
from newton_like.geometry.mesh import Mesh

from .paths import ROOT
from .random_trees import random_inertia, random_transform, random_unit

STANDING = np.tile([0.0, 0.8, -1.6], 4)
"""Joint angles [rad] of the project's quadruped at rest."""


def quadruped(ke: float = 60.0, kd: float = 2.0) -> ModelBuilder:
    """The project's quadruped in its stance, with drives of the given gains, without a ground."""
    builder = ModelBuilder()
    builder.default_joint_cfg.target_ke, builder.default_joint_cfg.target_kd = ke, kd
    builder.default_joint_cfg.armature = 0.005
    builder.add_urdf(
        ROOT / "assets" / "quadruped.urdf", floating=True, xform=(0, 0, 0.3, 0, 0, 0, 1), collapse_fixed_joints=True
    )
    builder.joint_q[7:] = builder.joint_target_q[7:] = STANDING.tolist()
    return builder


def _hull(rng: np.random.Generator) -> Mesh:
    """A mesh of points on a sphere with arbitrary triangles, because the shape collides as the hull of its points."""
    return Mesh([0.08 * random_unit(rng) for _ in range(14)], np.arange(12), compute_inertia=False)


def mechanism(rng: np.random.Generator, rolling: bool = True, couplings: bool = True) -> ModelBuilder:
    """A floating robot of all seven joint types and all eight shapes, with every kind of limit, loss, spring and drive.

    Args:
        rng: draws frames, axes, masses and settings.
        rolling: shapes have torsional and rolling friction, so that a contact has six rows.
        couplings: a mimic joint and a distance limit.
    """
    builder = ModelBuilder()
    material = ShapeConfig(
        density=0.0,
        mu=0.7,
        restitution=0.3,
        collision_group=-1,
        mu_torsional=0.01 * rolling,
        mu_rolling=0.005 * rolling,
    )

    def link():
        mass = rng.uniform(0.5, 2.0)
        return builder.add_link(mass=mass, com=0.03 * rng.normal(size=3), inertia=random_inertia(rng, mass, 0.15))

    def frames():
        return {"parent_xform": random_transform(rng, 0.12), "child_xform": random_transform(rng, 0.08)}

    def axis(**settings):
        return JointDofConfig(axis=random_unit(rng), armature=0.01, damping=0.1, **settings)

    bodies = [link() for _ in range(8)]
    trunk, ball, arm, slider, elbow, wrist, plate, tether = bodies
    joints = [builder.add_joint_free(trunk)]
    joints.append(
        builder.add_joint_ball(
            trunk, ball, target_ke=15.0, target_kd=0.5, stiffness=2.0, damping=0.1, armature=0.01, friction=0.1,
            effort_limit=4.0, velocity_limit=9.0, **frames(),
        )
    )  # fmt: skip
    first, second = (Rotation.random(None, rng).as_matrix()[:2] for _ in range(2))
    joints.append(
        builder.add_joint_d6(
            trunk,
            arm,
            linear_axes=[JointDofConfig(axis=first[0], limit_lower=-0.1, limit_upper=0.1, friction=1.0, damping=1.0)],
            angular_axes=[
                JointDofConfig(axis=second[0], limit_lower=-0.8, limit_upper=0.8, damping=0.1, velocity_limit=6.0),
                JointDofConfig(axis=second[1], effort_limit=2.0, damping=0.1, actuator_mode=JointTargetMode.EFFORT),
            ],
            **frames(),
        )
    )
    slide = axis(stiffness=50.0, rest_q=0.02, limit_lower=-0.15, limit_upper=0.1, friction=0.5)
    joints.append(builder.add_joint(JointType.PRISMATIC, arm, slider, linear_axes=[slide], **frames()))
    turn = axis(target_ke=30.0, target_kd=1.0, effort_limit=3.0, velocity_limit=8.0, limit_lower=-1.5, limit_upper=1.2)
    joints.append(builder.add_joint(JointType.REVOLUTE, ball, elbow, angular_axes=[turn], **frames()))
    free = axis(target_kd=0.3, target_qd=0.5, actuator_mode=JointTargetMode.VELOCITY)
    joints.append(builder.add_joint(JointType.REVOLUTE, elbow, wrist, angular_axes=[free], **frames()))
    joints.append(builder.add_joint_fixed(wrist, plate, **frames()))
    limits = {"min_distance": 0.1, "max_distance": 0.35} if couplings else {"min_distance": -1.0, "max_distance": -1.0}
    joints.append(builder.add_joint_distance(slider, tether, **frames(), **limits))
    builder.add_articulation(joints)
    if couplings:
        builder.set_joint_mimic(joints[5], joints[4], coeffs=(0.1, -0.7))

    def at():
        return {"xform": random_transform(rng, 0.02), "cfg": material}

    builder.add_shape_box(trunk, hx=0.12, hy=0.08, hz=0.05, **at())
    builder.add_shape_ellipsoid(ball, rx=0.06, ry=0.05, rz=0.04, **at())
    builder.add_shape_cylinder(arm, radius=0.04, half_height=0.06, **at())
    builder.add_shape_capsule(slider, radius=0.03, half_height=0.05, **at())
    builder.add_shape_cone(elbow, radius=0.05, half_height=0.05, **at())
    builder.add_shape_sphere(wrist, radius=0.04, **at())
    builder.add_shape_sphere(plate, radius=0.03, **at())
    builder.add_shape_convex_hull(tether, mesh=_hull(rng), **at())
    return builder


def same_robot(make, *numbers, **options) -> ModelBuilder:
    """A random robot that is the same in all tests of a run, so that they share its compiled programs.

    Args:
        make: function from a generator of random numbers to a builder.
        numbers: distinguish robots of one kind.
        options: options of `make`.
    """
    return make(np.random.default_rng([int(os.environ["NEWTON_LIKE_SEED"]), *numbers]), **options)


def worlds_of(robot: ModelBuilder, count: int, slope: bool = False) -> ModelBuilder:
    """Copies of a robot as worlds, on the ground; with `slope` there is a finite, tilted plane as well."""
    scene = ModelBuilder()
    scene.replicate(robot, count)
    scene.add_ground_plane()
    if slope:
        tilt = Rotation.from_euler("x", 0.3).as_quat()
        scene.add_shape_plane(xform=(0.1, 0.2, 0.02, *tilt), width=1.0, length=0.8)
    return scene


def vary(model, names, keys, spread: float = 0.2) -> None:
    """Multiplies rows of model arrays by random factors within ``1 +- spread``, one for each world, determined by its key.

    Args:
        model: worlds of one robot each; static shapes of world -1 do not change.
        names: arrays of bodies, shapes, or dofs.
        keys: an integer for each world.
    """
    shapes = model.shape_world.numpy()
    for name in names:
        array = getattr(model, name)
        values = array.numpy()
        mine = shapes if name.startswith("shape") else np.arange(len(values)) // (len(values) // model.world_count)
        for w, key in enumerate(keys):
            own = mine == w
            if name == "shape_scale":
                # vertices of hulls do not follow their scale
                own &= model.shape_hull_count.numpy() == 0
            values[own] *= 1.0 + spread * np.random.default_rng([key, 7]).uniform(-1.0, 1.0)
        array.assign(values)
    model.notify_changed()


def random_start(
    model, keys, height: tuple[float, float] = (0.1, 0.5), speed: float = 2.0
) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates ``[world, coord]`` and velocities ``[world, dof]``, determined by the key of each world.

    One third of the worlds starts in the model's initial state. Another third has a random orientation and velocity of the base. The last
    third also has random joint positions within and slightly beyond their limits.
    """
    worlds = model.world_count
    q = model.joint_q.numpy().reshape(worlds, -1).astype(np.float64)
    qd = np.zeros((worlds, model.joint_dof_count // worlds))
    types = model.joint_type.numpy()[: len(model.joint_type) // worlds]
    q_start, qd_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    lower, upper = model.joint_limit_lower.numpy(), model.joint_limit_upper.numpy()
    for w, key in enumerate(keys):
        if key % 3 == 0:
            continue
        rng = np.random.default_rng([key, 3])
        qd[w] = speed * rng.normal(size=qd.shape[1])
        for j, kind in enumerate(types):
            s, d = slice(q_start[j], q_start[j + 1]), slice(qd_start[j], qd_start[j + 1])
            if kind in (JointType.FREE, JointType.DISTANCE):
                q[w, s] = [*0.2 * rng.normal(size=3), *Rotation.random(None, rng).as_quat()]
                if j == 0:
                    q[w, s.start + 2] = rng.uniform(*height)
            elif key % 3 == 2 and kind == JointType.BALL:
                q[w, s] = Rotation.random(None, rng).as_quat()
            elif key % 3 == 2 and kind != JointType.FIXED:
                low, high = np.maximum(lower[d], -1.5), np.minimum(upper[d], 1.5)
                q[w, s] = low + (high - low) * rng.uniform(-0.05, 1.05, len(low))
    return q, qd


def random_commands(model, keys, seconds: float, force: float = 5.0) -> dict[str, np.ndarray]:
    """Inputs of every world, by name of the array; some worlds have none, and some are driven into their limits."""
    worlds = model.world_count
    bodies = model.body_count // worlds
    rest = model.joint_target_q.numpy().reshape(worlds, -1).astype(np.float64)
    dofs = model.joint_dof_count // worlds
    out = {
        "joint_target_q": rest.copy(),
        "joint_target_qd": np.zeros((worlds, dofs)),
        "joint_f": np.zeros((worlds, dofs)),
        "joint_act": np.zeros((worlds, dofs)),
        "body_f": np.zeros((worlds, bodies, 6)),
    }
    base = int(model.joint_q_start.numpy()[1]) if model.joint_type.numpy()[0] == JointType.FREE else 0
    for w, key in enumerate(keys):
        rng = np.random.default_rng([key, 5, int(20 * seconds)])
        if key % 4 == 1:
            out["joint_target_q"][w, base:] += 0.3 * rng.normal(size=rest.shape[1] - base)
        if key % 4 == 2:
            # far away: drives saturate
            out["joint_target_q"][w, base:] += 4.0 * rng.normal(size=rest.shape[1] - base)
            out["joint_target_qd"][w] = rng.normal(size=dofs)
        if key % 4 == 3:
            out["joint_f"][w, max(base - 1, 0) :] = force * rng.normal(size=dofs - max(base - 1, 0))
            out["joint_act"][w] = 0.1 * force * rng.normal(size=dofs)
        if key % 5 == 3:
            out["body_f"][w, rng.integers(bodies)] = force * rng.normal(size=6)
    return out
