"""Random mechanisms and states, built through the public `ModelBuilder`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from newton_like import JointType, ModelBuilder

ALL = tuple(JointType)

# Bound of the second of three angular axes of a D6 joint [rad]: near 90 degrees the mass matrix becomes singular.
_MIDDLE_TURN = 1.1


def random_transform(rng: np.random.Generator, scale: float = 0.5) -> np.ndarray:
    """A position of the given size [m] and a uniform rotation: (x, y, z, quaternion xyzw)."""
    return np.concatenate([scale * rng.normal(size=3), Rotation.random(None, rng).as_quat()])


def random_unit(rng: np.random.Generator) -> np.ndarray:
    """A direction, uniform on the sphere."""
    v = rng.normal(size=3)
    return v / np.linalg.norm(v)


def random_inertia(rng: np.random.Generator, mass: float, size: float = 0.2) -> np.ndarray:
    """Inertia [kg m^2] about the centre of mass of an ellipsoid of that mass with random axes of about `size` [m]."""
    squares = (size * rng.uniform(0.3, 1.5, 3)) ** 2
    R = Rotation.random(None, rng).as_matrix()
    return 0.2 * mass * R @ np.diag(squares.sum() - squares) @ R.T


def _skewed_axes(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Oblique axes, far from coplanar, which `finalize` makes orthonormal."""
    axes = Rotation.random(None, rng).as_matrix()[:count] + 0.15 * rng.normal(size=(count, 3))
    return [a / np.linalg.norm(a) for a in axes]


def random_tree(
    rng: np.random.Generator,
    *,
    joints: int = 8,
    types: Sequence[JointType] = ALL,
    floating: bool | None = None,
    builder: ModelBuilder | None = None,
    armature: bool = True,
    damping: bool = True,
    stiffness: bool = False,
    friction: bool = False,
    limits: bool = False,
    size: float = 0.3,
    label: str = "tree",
) -> ModelBuilder:
    """A kinematic tree of random shape with random joint frames, axes, masses and inertias, as one articulation.

    Args:
        joints: Number of joints, and of links.
        types: Joint types to draw from, each equally likely.
        floating: True: the root is a FREE joint; False: it is of another type; None: any of `types`.
        builder: The builder to add to; by default a new one.
        armature, damping, stiffness, friction, limits: Whether joints of one axis and D6 joints get random values;
            BALL joints get equal values for their three dofs, and no limits. Limits are about +-1.5.
        size: Scale of the links and joint offsets [m].
        label: Label of the articulation, and prefix of its links and joints.
    """
    builder = ModelBuilder() if builder is None else builder
    # Links are added in another order than joints, so that tests detect a confusion of both indices.
    links = [-1] * joints
    for i in rng.permutation(joints):
        mass = rng.uniform(0.3, 3.0)
        links[i] = builder.add_link(
            mass=mass,
            com=0.3 * size * rng.normal(size=3),
            inertia=random_inertia(rng, mass, size),
            label=f"{label}_link_{i}",
        )

    def some(wanted, low, high):
        return float(rng.uniform(low, high)) if wanted else 0.0

    def dof():
        values = {
            "armature": some(armature, 0.001, 0.05),
            "damping": some(damping, 0.0, 0.5),
            "friction": some(friction, 0.0, 0.5),
        }
        if stiffness:
            values |= {"stiffness": some(True, 0.0, 20.0), "rest_q": some(True, -0.3, 0.3)}
        if limits:
            values |= {"limit_lower": some(True, -1.5, -0.1), "limit_upper": some(True, 0.1, 1.5)}
        return values

    def axes(count):
        return [ModelBuilder.JointDofConfig(axis=a, **dof()) for a in count]

    added = []
    for i in range(joints):
        kinds = list(types)
        if i == 0 and floating:
            kinds = [JointType.FREE]
        elif i == 0 and floating is not None:
            kinds = [t for t in types if t != JointType.FREE]
        kind = kinds[rng.integers(len(kinds))]
        # Half of the links are children of the previous link, which gives long chains and branches.
        parent = -1 if i == 0 else links[i - 1 if rng.random() < 0.5 else rng.integers(i)]
        frames = {
            "parent_xform": random_transform(rng, size),
            "child_xform": random_transform(rng, size),
            "label": f"{label}_joint_{i}",
        }
        if kind == JointType.PRISMATIC:
            j = builder.add_joint_prismatic(parent, links[i], axis=random_unit(rng), **dof(), **frames)
        elif kind == JointType.REVOLUTE:
            j = builder.add_joint_revolute(parent, links[i], axis=random_unit(rng), **dof(), **frames)
        elif kind == JointType.BALL:
            values = {k: v for k, v in dof().items() if not k.startswith("limit")}
            if stiffness:
                values["rest_q"] = Rotation.random(None, rng).as_quat()
            j = builder.add_joint_ball(parent, links[i], **values, **frames)
        elif kind == JointType.FIXED:
            j = builder.add_joint_fixed(parent, links[i], **frames)
        elif kind == JointType.FREE:
            j = builder.add_joint_free(links[i], parent=parent, **frames)
        elif kind == JointType.DISTANCE:
            j = builder.add_joint_distance(parent, links[i], min_distance=-1.0, max_distance=-1.0, **frames)
        else:
            linear = rng.integers(4)
            angular = rng.integers(0 if linear else 1, 4)
            j = builder.add_joint_d6(
                parent,
                links[i],
                linear_axes=axes(Rotation.random(None, rng).as_matrix()[:linear]),
                angular_axes=axes(_skewed_axes(rng, angular)),
                **frames,
            )
        added.append(j)
    builder.add_articulation(added, label=label)
    return builder


def random_state(
    model, rng: np.random.Generator, far: float = 0.0, speed: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and velocities of all joints of a model, float64.

    Args:
        model: A finalized model.
        far: Distance [m] from the origin of roots that are FREE or DISTANCE.
        speed: Scale of the velocities [m/s, rad/s].

    Returns:
        ``(joint_q, joint_qd)``; quaternions are unit, turns lie in +-pi (the middle one of a chain in +-1.1), slides
        in about +-1 m. Joint limits are not looked at.
    """
    kinds, parents = model.joint_type.numpy(), model.joint_parent.numpy()
    start, dims = model.joint_q_start.numpy(), model.joint_dof_dim.numpy()
    q = np.zeros(model.joint_coord_count)
    for j, kind in enumerate(kinds):
        s = slice(start[j], start[j + 1])
        if kind == JointType.BALL:
            q[s] = Rotation.random(None, rng).as_quat()
        elif kind in (JointType.FREE, JointType.DISTANCE):
            q[s] = random_transform(rng, 0.5)
            if parents[j] < 0:
                q[s][:3] += far * random_unit(rng)
        else:
            linear, angular = dims[j]
            turns = rng.uniform(-np.pi, np.pi, angular)
            if angular > 1:
                turns[1] *= _MIDDLE_TURN / np.pi
            q[s] = np.concatenate([0.5 * rng.normal(size=linear), turns])
    return q, speed * rng.normal(size=model.joint_dof_count)
