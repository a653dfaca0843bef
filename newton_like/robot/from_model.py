"""Robots of the SDK from models of the engine."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np

from newton_like.callers import outside_level
from newton_like.geometry.transforms import transform_to_matrix
from newton_like.model import Model
from newton_like.model.arguments import check_model
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.robot.arguments import as_object
from newton_like.robot.errors import RobotError, RobotIndexError, RobotNameError
from newton_like.robot.robot import Robot
from newton_like.robot.screws import inverse, spatial_inertia
from newton_like.robot.structure.collision import Collision, GeomCapsule
from newton_like.robot.structure.configuration import RobotConfiguration
from newton_like.robot.structure.joint import UNLIMITED, Joint
from newton_like.robot.structure.link import Link, link_of_file
from newton_like.robot.to_model import FILTER, NAMESPACE
from newton_like.types import MAXVAL, GeoType, ShapeFlags

_LEFT_OUT = {
    "joint_armature": "armatures", "joint_damping": "damping", "joint_stiffness": "springs", "joint_friction": "friction",
}  # fmt: skip
"""Arrays of dofs without a counterpart in a robot."""


_LIMITS = "joint_limit_lower", "joint_limit_upper", "joint_velocity_limit", "joint_effort_limit"
"""Arrays of dofs that become limits of joints."""


def from_model(model: Model, articulation: int | str | None = None, *, evaluator: str = "auto") -> Robot:
    """The robot of an articulation of a model, with the same names, frames, inertias and limits. A first part of labels that all bodies
    and joints have, such as that of ``go2/base``, is left out of the names.

    The base link is the root body of the articulation if a FREE or FIXED joint connects it to the world; otherwise it is a link "world"
    without mass. A D6 joint with several axes becomes a chain of joints, with links without mass between them. They are called ``label:0``,
    ``label:1``, ...; or ``a``, ``b``, ... if the label is ``a+b+...`` with a name for each axis, such as that of joints of one MJCF body.
    Frames of bodies that were merged become links on fixed joints. Capsules and spheres that collide become capsules of the type 1 with
    the affinity 1, or those of the robot if the model is one of :meth:`Robot.to_builder`; other collision filters are not read.

    Args:
        model: the :class:`newton_like.Model`.
        articulation: index or label; by default the only one, or the first one of equal worlds.
        evaluator: see :class:`Robot`.

    Raises:
        TypeError: not a model; `articulation` is neither an index nor a label.
        KeyError, IndexError: no articulation with this label, or several; no such index.
        ValueError: the first world has no articulation, or several, and `articulation` is missing; a BALL, FREE or DISTANCE joint above
            which there is a link; a second body that a joint connects to the world; a joint to a body of another articulation.

    Warns:
        UserWarning: the articulation has armatures, damping, springs, friction or coupled joints, which robots do not have.
    """
    check_model(model)
    a = _articulation(model, articulation)
    first, last = int(model.articulation_start.numpy()[a]), int(model.articulation_end.numpy()[a])
    name = _naming(model, first, last)
    links = _links(model, first, last, name)
    base = _connect(model, first, last, links, name)
    _add_capsules(model, links)
    _add_frames(model, links, name)
    _warn(model, first, last)
    return Robot(RobotConfiguration(model.articulation_label[a], base), evaluator=evaluator)


def _articulation(model, articulation) -> int:
    labels = model.articulation_label
    if articulation is None:
        worlds = model.articulation_world.numpy()
        members = np.flatnonzero(worlds == worlds.min()) if len(worlds) else []
        if len(members) != 1:
            raise RobotError(
                f"the model has {len(members)} articulations in its first world: {', '.join(map(repr, labels[:8])) or 'none'}; name one"
            )
        return int(members[0])
    if isinstance(articulation, str):
        if labels.count(articulation) != 1:
            raise RobotNameError(
                f"{labels.count(articulation)} articulations have the label {articulation!r}; the labels are {', '.join(labels[:8])}"
            )
        return labels.index(articulation)
    if isinstance(articulation, bool) or not isinstance(articulation, int | np.integer):
        raise TypeError(f"articulation must be an index or a label, not {articulation!r}")
    if not 0 <= articulation < len(labels):
        has = f"{len(labels)} articulations, 0 to {len(labels) - 1}" if labels else "no articulations"
        raise RobotIndexError(f"articulation {articulation}: the model has {has}")
    return int(articulation)


def _naming(model, first: int, last: int) -> Callable[[str], str]:
    """The function from labels to names."""
    bodies = model.joint_child.numpy()[first:last].tolist()
    labels = [*(model.body_label[b] for b in bodies), *model.joint_label[first:last]]
    prefixes = {label.partition("/")[0] if "/" in label else None for label in labels}
    prefix = f"{prefixes.pop()}/" if len(prefixes) == 1 and None not in prefixes else ""
    return lambda label: label.removeprefix(prefix)


def _links(model, first: int, last: int, name: Callable[[str], str]) -> dict[int, Link]:
    """Links of an articulation by bodies."""
    mass, com, inertia = (x.numpy().astype(float) for x in (model.body_mass, model.body_com, model.body_inertia))
    links = {}
    for body in model.joint_child.numpy()[first:last].tolist():
        G = spatial_inertia(mass[body], com[body], inertia[body])
        links[body] = link_of_file(name(model.body_label[body]), G)
    return links


def _connect(model, first: int, last: int, links: dict[int, Link], name_of: Callable[[str], str]) -> Link:
    """Connects links by joints. Returns the base link."""
    parents, children, types = (x.numpy().tolist() for x in (model.joint_parent, model.joint_child, model.joint_type))
    X_p, X_c = (transform_to_matrix(each.numpy()) for each in (model.joint_X_p, model.joint_X_c))
    starts, axes = model.joint_qd_start.numpy().tolist(), model.joint_axis.numpy().astype(float).reshape(-1, 3)
    dims = model.joint_dof_dim.numpy().tolist()
    limits = [getattr(model, name).numpy().tolist() for name in _LIMITS]
    labels = {name_of(label) for label in model.joint_label[first:last]}
    base = world = None
    for j in range(first, last):
        label, kind = name_of(model.joint_label[j]), JOINT_TYPES[types[j]]
        child = links[children[j]]
        if parents[j] < 0 and (kind.fixed or not kind.anchored):
            if base is not None:
                raise RobotError(f"joint {label!r} connects a second body to the world; a robot has one base link")
            base = child
            continue
        parent = links.get(parents[j])
        if parent is None:
            if parents[j] >= 0:
                raise RobotError(
                    f"joint {label!r} connects the articulation to a body of another one; robots are single trees"
                )
            if base is None:
                base = world = Link("world", np.zeros((6, 6)))
            if base is not world:
                raise RobotError(f"joint {label!r} connects a second body to the world; a robot has one base link")
            parent = base
        if not (kind.fixed or kind.axis_by_axis):
            raise RobotError(
                f"joint {label!r} is a {kind.type.name} joint; joints of robots have one degree of freedom or none"
            )
        dofs = range(starts[j], starts[j + 1])
        slides = dims[j][0]
        names = _axis_names(label, len(dofs), labels)
        T = X_p[j]
        for i, (dof, name) in enumerate(zip(dofs, names, strict=False)):
            make = Joint.make_prismatic if i < slides else Joint.make_revolute
            joint = make(name, axis=axes[dof])
            _limit(joint, *(limit[dof] for limit in limits))
            end = child if i == len(dofs) - 1 else Link(f"{label}:{i}", np.zeros((6, 6)))
            joint.connect_links(parent, end, T, inverse(X_c[j]) if end is child else np.eye(4))
            parent, T = end, np.eye(4)
        if not dofs:
            Joint.make_fixed(label).connect_links(parent, child, T, inverse(X_c[j]))
    return as_object(base, Link, "base link")


def _axis_names(label: str, count: int, labels: set[str]) -> list[str]:
    """Names of the axes of a joint: the parts of its label, unless a joint has one of them as its whole label.

    Args:
        label: of the joint.
        count: number of axes.
        labels: of all joints of the articulation.
    """
    if count < 2:
        return [label]
    prefix, slash, last = label.rpartition("/")
    names = [prefix + slash + name for name in last.split("+")]
    if len(names) == len(set(names)) == count and all(last.split("+")) and not labels.intersection(names):
        return names
    return [f"{label}:{i}" for i in range(count)]


def _limit(joint: Joint, lower: float, upper: float, speed: float, effort: float) -> None:
    """Sets the limits of a joint to those of a dof of a model."""
    lower, upper, speed, effort = (
        x if abs(x) < MAXVAL else math.copysign(UNLIMITED, x) for x in (lower, upper, speed, effort)
    )
    joint.set_limit_q(lower, upper)
    joint.set_limit_qdot(-speed, speed)
    joint.set_limit_torque(effort)


def _add_capsules(model, links: dict[int, Link]) -> None:
    """Adds the capsules and spheres of a model that collide."""
    own = getattr(model, NAMESPACE, None)
    groups = [getattr(own, name).numpy() if hasattr(own, name) else np.ones(model.shape_count, int) for name in FILTER]
    bodies, flags, types = (x.numpy() for x in (model.shape_body, model.shape_flags, model.shape_type))
    scales, poses = model.shape_scale.numpy(), model.shape_transform.numpy()
    for i in np.flatnonzero(np.isin(types, (int(GeoType.CAPSULE), int(GeoType.SPHERE))) & np.isin(bodies, list(links))):
        if not flags[i] & ShapeFlags.COLLIDE_SHAPES:
            continue
        scale = scales[i].astype(float)
        height = 2.0 * scale[1] if types[i] == GeoType.CAPSULE else 0.0
        collision = Collision(model.shape_label[i])
        collision.set_origin(transform_to_matrix(poses[i]))
        collision.add_geom(GeomCapsule(height, float(scale[0]), *(int(bits[i]) for bits in groups)))
        links[int(bodies[i])].add_collision(collision)


def _add_frames(model, links: dict[int, Link], name: Callable[[str], str]) -> None:
    """Adds a link without mass for each named frame of a body."""
    known = {link.name for link in links.values()}
    for label, body, transform in zip(model.frames.label, model.frames.body, model.frames.transform, strict=True):
        label = name(label)
        if int(body) in links and label not in known:
            known.add(label)
            T = transform_to_matrix(transform)
            Joint.make_fixed(f"{label}_frame").connect_links(links[int(body)], Link(label, np.zeros((6, 6))), T)


def _warn(model, first: int, last: int) -> None:
    dofs = slice(int(model.joint_qd_start.numpy()[first]), int(model.joint_qd_start.numpy()[last]))
    left = [what for name, what in _LEFT_OUT.items() if getattr(model, name).numpy()[dofs].any()]
    left += ["coupled joints"] if (model.joint_mimic_joint.numpy()[first:last] >= 0).any() else []
    if left:
        warnings.warn(
            f"the robot has no {', '.join(left)}, but the model has; results of the robot are without them",
            stacklevel=outside_level(),
        )
