"""Models of the engine for robots of the SDK."""

from __future__ import annotations

import copy
import itertools
import warnings
from typing import NamedTuple

import numpy as np
import warp as wp

from newton_like.callers import outside_level
from newton_like.geometry.transforms import quat_between, quat_from_matrix, transform
from newton_like.importers.shared import possible_inertia
from newton_like.model import ModelBuilder, ShapeConfig
from newton_like.model.custom import AttributeFrequency, CustomAttribute
from newton_like.robot.errors import RobotError
from newton_like.robot.screws import axis_of, cross_matrix, inverse, shifted
from newton_like.robot.structure.collision import GeomCapsule
from newton_like.robot.structure.joint import Joint
from newton_like.types import MAXVAL

_PITCH = 1e-9
"""Pitch [m/rad], for an axis up to 1 m from the origin, below which a joint of a model is a rotation."""


_LARGEST, _SMALLEST = 1e30, 1e-30
"""Largest number of models, and least length of a screw's axis."""

NAMESPACE, FILTER = "robot", ("coltype", "colaffinity")
"""Custom attributes of shapes: the groups of capsules, see :class:`Geom`."""


class Edge(NamedTuple):
    """A joint of a robot as it was when the robot was made.

    Attributes:
        joint: the joint, whose limits are read when they are asked for.
        parent, child: indices of links of the robot.
        S, T_pj, T_jc: see :class:`Joint`.
    """

    joint: Joint
    parent: int
    child: int
    S: np.ndarray
    T_pj: np.ndarray
    T_jc: np.ndarray


def edges_of(links, joints) -> list[Edge]:
    """The joints of a tree, whose order is that of their child links."""
    index = {id(link): i for i, link in enumerate(links)}
    return [Edge(j, index[id(j.parent_link)], i + 1, j.S, j.T_pj, j.T_jc) for i, j in enumerate(joints)]


def body_numbers(inertia) -> dict:
    """Mass, centre of mass and inertia about it [kg, m, kg m^2] of a 6 x 6 inertia, as arguments of ``add_link``."""
    G = np.asarray(inertia, dtype=float)
    mass = float(G[3, 3])
    moment = np.array([G[2, 4], G[0, 5], G[1, 3]])
    com = moment / mass if mass > 0.0 else np.zeros(3)
    C = cross_matrix(com)
    return dict(mass=mass, com=com, inertia=G[:3, :3] - mass * C @ C.T)


def transform7(T: np.ndarray) -> np.ndarray:
    """Position and quaternion (x, y, z, w) of a homogeneous transform."""
    return transform(T[:3, 3], quat_from_matrix(T[:3, :3]))


def joint_frames(edge: Edge) -> tuple[bool, np.ndarray, np.ndarray, np.ndarray]:
    """Of a joint that is not fixed, in the engine's terms: whether it rotates, its axis, and its frames on the parent and on the child.

    ``T_pj exp([S] q) T_jc = X_p motion(q) inverse(X_c)`` with the anchor on the axis.
    """
    axis = axis_of(edge.S)
    to_anchor = shifted(axis.point)
    return axis.rotates, axis.direction, edge.T_pj @ to_anchor, inverse(edge.T_jc) @ to_anchor


def merged_inertias(links, edges: list[Edge]) -> tuple[list[np.ndarray], bool]:
    """The 6 x 6 inertias of links if links on fixed joints have given theirs to the link that carries them; and whether such a link has
    one."""
    found, merged = [np.array(link.inertia, dtype=float) for link in links], False
    for edge in reversed(edges):
        G = found[edge.child]
        if edge.joint.is_fixed() and G.any():
            X = inverse(edge.T_pj @ edge.T_jc)
            A = np.zeros((6, 6))
            A[:3, :3] = A[3:, 3:] = X[:3, :3]
            A[3:, :3] = cross_matrix(X[:3, 3]) @ X[:3, :3]
            found[edge.parent], found[edge.child], merged = found[edge.parent] + A.T @ G @ A, np.zeros((6, 6)), True
    return found, merged


def with_inertias(model, inertias):
    """A model like that of :func:`machine_model` with other 6 x 6 inertias of links."""
    twin, numbers = copy.copy(model), [body_numbers(G) for G in inertias]
    for name in ("mass", "com", "inertia"):
        known = getattr(model, f"body_{name}")
        vars(twin)[f"body_{name}"] = wp.array([x[name] for x in numbers], dtype=known.dtype, device="cpu")
    return twin


def flattened(edges: list[Edge]) -> list[Edge]:
    """The joints of a tree, with parents that are no links on fixed joints: each joint connects its child to the link that carries it."""
    carriers, found = {}, []
    for edge in edges:
        if edge.parent in carriers:
            parent, X = carriers[edge.parent]
            edge = edge._replace(parent=parent, T_pj=X @ edge.T_pj)
        if edge.joint.is_fixed():
            carriers[edge.child] = edge.parent, edge.T_pj @ edge.T_jc
        found.append(edge)
    return found


def machine_model(links, edges: list[Edge], flat: list[Edge]):
    """A model of one articulation: the first link on a fixed joint, and a joint for each other link, which are in the same order. Its
    parents are the links that move on their own. `flat`: the joints with these parents, see :func:`flattened`.

    Raises:
        RobotError: a number that is too large, or a screw that is too long or too short.
    """
    _check_sizes(links, edges)
    builder = ModelBuilder(gravity=0.0)
    bodies = [builder.add_link(label=link.name, **body_numbers(link.inertia)) for link in links]
    root = builder.add_joint_fixed(-1, bodies[0], label="base")
    # with an armature, models do not look for joints that move nothing, which takes long and matters for simulations only
    builder.add_articulation([root, *_add_joints(builder, flat, bodies, lambda edge: {"armature": 1.0})])
    # inertias of files are used as they are, also those that no body can have
    inertias = np.array(builder.body_inertia)
    builder.body_inertia = [np.zeros((3, 3))] * len(links)
    model = builder.finalize("cpu", dtype=wp.float64)
    model.body_inertia.assign(inertias)
    model.joint_armature.zero_()
    # distances have no meaning for these joints; see `newton_like.kernels.tree`
    axes = [None if e.joint.is_fixed() else axis_of(e.S) for e in edges]
    model.joint_min_distance.assign([1.0, *(1.0 if axis is None else axis.scale for axis in axes)])
    model.joint_max_distance.assign([0.0, *(0.0 if axis is None else axis.pitch for axis in axes)])
    return model


def _check_sizes(links, edges: list[Edge]) -> None:
    """Names the first link or joint with a number that models cannot have."""
    for link in links:
        G = np.abs(link.inertia)
        if not G.max() <= _LARGEST:
            raise RobotError(
                f"I of link {link.name!r} has the entry {G.max():g}, which is beyond {_LARGEST:g}; units are kg, m"
            )
        if link.mass > 0.0 and not G[:3, 3:].max() <= _LARGEST * link.mass:
            raise RobotError(
                f"I of link {link.name!r} has its centre of mass beyond {_LARGEST:g} m; its mass is {link.mass:g} kg"
            )
    for edge in edges:
        name = edge.joint.name
        for T, what in ((edge.T_pj, "T_pj"), (edge.T_jc, "T_jc")):
            far = float(np.abs(T[:3, 3]).max())
            if not far <= _LARGEST:
                raise RobotError(
                    f"{what} of joint {name!r} has the number {far:g}, which is beyond {_LARGEST:g}; units are m"
                )
        if edge.joint.is_fixed():
            continue
        w, v = float(np.abs(edge.S[:3]).max()), float(np.abs(edge.S[3:]).max())
        size = w or v
        if not _SMALLEST <= size <= _LARGEST:
            raise RobotError(
                f"the axis of joint {name!r} has a length of about {size:g}; give an S with a length of 1 rad or m for each unit of the "
                f"coordinate, or at least from {_SMALLEST:g} to {_LARGEST:g}"
            )
        if w and not v <= _LARGEST * min(w, 1.0):
            raise RobotError(
                f"S of joint {name!r} is {edge.S.tolist()}: its axis is beyond {_LARGEST:g} m from the joint frame, or its pitch beyond "
                f"{_LARGEST:g} m/rad; units are rad and m"
            )


def robot_builder(
    links, edges: list[Edge], name: str, floating: bool, self_collisions: bool, q: dict[str, float], poses
) -> ModelBuilder:
    """See :meth:`newton_like.robot.Robot.to_builder`; `q`: coordinates by names of joints; `poses`: of the links, ``[links, 4, 4]``."""
    builder = ModelBuilder()
    bodies = _add_possible_links(builder, links, poses)
    # a "/" would look like the prefix of a model that was added to another one
    label = _unused(f"{name.replace('/', '_')}_base", {edge.joint.name for edge in edges})
    root = (
        builder.add_joint_free(bodies[0], label=label)
        if floating
        else builder.add_joint_fixed(-1, bodies[0], label=label)
    )
    joints = _add_joints(builder, edges, bodies, _limits)
    builder.add_articulation([root, *joints], label=name)
    for edge, joint in zip(edges, joints, strict=True):
        if edge.joint.name in q:
            builder.joint_q[builder.joint_q_start[joint]] = q[edge.joint.name]
    for name in FILTER:
        builder.add_custom_attribute(
            CustomAttribute(name, wp.uint32, AttributeFrequency.SHAPE, namespace=NAMESPACE, default=1)
        )
    shapes, labels = [], set()
    for link, body in zip(links, bodies, strict=True):
        for collision in link.collisions:
            for i, geom in enumerate(collision.geoms):
                label = _unused(f"{link.name}/{collision.name or 'collision'}_{i}", labels)
                labels.add(label)
                shapes.append((_add_capsule(builder, body, collision, geom, label), geom))
    for i, (shape, geom) in enumerate(shapes):
        for other, other_geom in shapes[i + 1 :]:
            if not (self_collisions and geom.filter(other_geom)):
                builder.shape_collision_filter_pairs.add((shape, other))
    return builder


def _unused(label: str, used: set[str]) -> str:
    """The label, or, if it is used, the label with the first number from 2 on that makes it unique."""
    numbered = (f"{label}_{number}" for number in itertools.count(2))
    return label if label not in used else next(each for each in numbered if each not in used)


def _add_possible_links(builder: ModelBuilder, links, poses) -> list[int]:
    """Adds links with poses. Inertias that no body can have are replaced by the nearest possible ones, with a warning. Returns the
    bodies."""
    bodies, replaced = [], {}
    for link, pose in zip(links, poses, strict=True):
        numbers = body_numbers(link.inertia)
        if numbers["mass"] > 0.0:
            numbers["inertia"] = possible_inertia(
                numbers["mass"],
                numbers["inertia"],
                "links",
                link.name,
                lambda what, name: replaced.setdefault(what, []).append(name),
            )
        bodies.append(builder.add_link(label=link.name, xform=transform7(pose), **numbers))
    for what, names in replaced.items():
        warnings.warn(f"{what}: {', '.join(names)}", stacklevel=outside_level())
    return bodies


def _add_joints(builder: ModelBuilder, edges: list[Edge], bodies: list[int], settings) -> list[int]:
    """Adds joints and returns them. `settings` gives further arguments for a joint that moves."""
    made = []
    for edge in edges:
        ends, label = (bodies[edge.parent], bodies[edge.child]), edge.joint.name
        if edge.joint.is_fixed():
            frames = dict(parent_xform=transform7(edge.T_pj), child_xform=transform7(inverse(edge.T_jc)))
            made.append(builder.add_joint_fixed(*ends, label=label, **frames))
            continue
        rotates, axis, X_p, X_c = joint_frames(edge)
        add = builder.add_joint_revolute if rotates else builder.add_joint_prismatic
        frames = dict(parent_xform=transform7(X_p), child_xform=transform7(X_c))
        made.append(add(*ends, axis=axis, label=label, **frames, **settings(edge)))
    return made


def _limits(edge: Edge) -> dict:
    """The limits of a joint as arguments of the builder, whose number for no limit is MAXVAL.

    Raises:
        ValueError: a joint whose coordinate is not in radians or metres.
    """
    axis, joint = axis_of(edge.S), edge.joint
    if abs(axis.scale - 1.0) > 1e-9:
        raise RobotError(
            f"joint {joint.name!r} moves {axis.scale:g} rad or m for each unit of its coordinate; joints of models move 1. "
            f"Divide its screw by {axis.scale:g}"
        )
    if axis.pitch and abs(axis.pitch) > _PITCH * max(1.0, float(np.abs(axis.point).max())):
        raise RobotError(
            f"joint {joint.name!r} is helical, with {axis.pitch:g} m for each radian; models have no such joints"
        )
    lower, upper = joint.get_limit_q_lower(), joint.get_limit_q_upper()
    speed = min(-joint.get_limit_qdot_lower(), joint.get_limit_qdot_upper())
    if speed < 0.0:
        raise RobotError(
            f"joint {joint.name!r} has velocities from {joint.get_limit_qdot_lower():g} to {joint.get_limit_qdot_upper():g} only; "
            "joints of models may stand still"
        )
    if abs(joint.get_limit_qdot_upper() + joint.get_limit_qdot_lower()) > 1e-9 * speed:
        warnings.warn(
            f"joint {joint.name!r} has velocities from {joint.get_limit_qdot_lower():g} to {joint.get_limit_qdot_upper():g}; "
            f"joints of models have one limit for both directions, and this one gets {speed:g}",
            stacklevel=outside_level(),
        )
    found = dict(limit_lower=lower, limit_upper=upper, velocity_limit=speed, effort_limit=joint.get_limit_torque())
    return {name: min(max(value, -MAXVAL), MAXVAL) for name, value in found.items()}


def _add_capsule(builder: ModelBuilder, body: int, collision, geom, label: str) -> int:
    """Adds a capsule of a link as a shape without density. Returns the shape."""
    if not isinstance(geom, GeomCapsule):
        raise RobotError(f"a geom of collision {collision.name!r} has no shape; use GeomCapsule")
    start, end = (collision.origin[:3, :3] @ x + collision.origin[:3, 3] for x in (geom.start_point, geom.end_point))
    length = float(np.linalg.norm(end - start))
    along = (end - start) / length if length else np.array([0.0, 0.0, 1.0])
    xform = transform(0.5 * (start + end), quat_between((0.0, 0.0, 1.0), along))
    common = dict(radius=geom.radius, xform=xform, cfg=ShapeConfig(density=0.0), label=label)
    common["custom_attributes"] = {f"{NAMESPACE}:{name}": getattr(geom, name) for name in FILTER}
    if not length:
        return builder.add_shape_sphere(body, **common)
    return builder.add_shape_capsule(body, half_height=0.5 * length, **common)
