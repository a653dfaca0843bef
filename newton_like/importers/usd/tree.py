"""Builds trees from the joints of a USD stage, which may connect bodies in any order and direction."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from newton_like.importers.shared import ordered
from newton_like.importers.usd.joints import Axis, Joint
from newton_like.importers.usd.records import Scene
from newton_like.importers.usd.values.pose import (
    quat_inverse,
    quat_multiply,
    quat_rotate,
    transform_inverse,
    transform_multiply,
)
from newton_like.importers.xml_source import ImportFileError

OFF_TOLERANCE = 1.0e-4
"""Largest distance [m] and angle [rad] between the two frames of a joint without a remark; frames in files are float32."""


@dataclass
class Edge:
    """A joint of a tree.

    Attributes:
        joint: the record.
        parent, child: paths of the bodies; parent ``None`` is the world.
        flipped: whether the parent is the joint's second body.
        linear, angular: its axes relative to the parent, the angular axes in the order of rotations.
        frames: joint frame in the parent (or the stage) and in the child.
    """

    joint: Joint
    parent: str | None
    child: str
    flipped: bool
    linear: list[Axis] = field(default_factory=list)
    angular: list[Axis] = field(default_factory=list)

    @property
    def frames(self) -> tuple[np.ndarray, np.ndarray]:
        first, second = self.joint.anchors
        return (second, first) if self.flipped else (first, second)


@dataclass
class Tree:
    """Bodies that joints connect: the root, its joint to the world (or ``None``), and the other joints in order."""

    root: str
    base: Edge | None
    edges: list[Edge] = field(default_factory=list)

    @property
    def bodies(self) -> list[str]:
        """Paths of all bodies, the root first."""
        return [self.root, *(edge.child for edge in self.edges)]


def build_trees(scene: Scene, ordering: str | None) -> tuple[list[Tree], list[Edge]]:
    """Trees that contain every body once, and the joints that close loops.

    Roots are bodies with a joint to the world, then those with an ArticulationRootAPI, then those that are not the second
    body of a joint. A tree has the joints nearest to its root; distance joints are last.

    Args:
        scene: the records.
        ordering: ``"dfs"``, ``"bfs"``, or ``None`` for the order of the stage.

    Raises:
        ImportFileError: a joint that cannot be reversed, or that precedes the joint of its parent.
    """
    at: dict[str, list[tuple[Joint, str | None]]] = {path: [] for path in scene.bodies}
    loops: list[Edge] = []
    second = set()
    for joint in scene.joints.values():
        first, other = joint.bodies
        if first == other:
            scene.remark("joints connect nothing that moves, and are ignored", joint.path)
            continue
        if joint.excluded or not joint.enabled:
            loops.append(_edge(scene, joint, first, other))
            continue
        for here, there in ((first, other), (other, first)):
            if here is not None:
                at[here].append((joint, there))
        if other is not None and first is not None:
            second.add(other)
    position = {path: i for i, path in enumerate(scene.joints)}
    used: set[str] = set()
    trees, seen = [], set()
    for root, base in _roots(scene, at, second):
        if root in seen:
            continue
        tree = Tree(root, None if base is None else _edge(scene, base, None, root))
        if base is not None:
            used.add(base.path)
        _grow(scene, tree, at, seen, used)
        told = bool(tree.edges) and all(edge.joint.path in scene.order for edge in tree.edges)
        tree.edges = _ordered(scene, tree, None if told and ordering == "dfs" else ordering, position)
        trees.append(tree)
    for joint in scene.joints.values():
        if joint.enabled and not joint.excluded and joint.path not in used and joint.bodies[0] != joint.bodies[1]:
            loops.append(_edge(scene, joint, *joint.bodies))
            scene.remark("joints close loops", joint.path)
    loops.sort(key=lambda edge: position[edge.joint.path])
    return trees, loops


def _roots(scene: Scene, at, second: set[str]):
    """Candidates for roots in order of preference, each with its joint to the world."""
    ranked = []
    holding = {}
    rooted = {path for root in scene.roots for path in _bodies_of_root(scene, root)}
    for number, (path, joints) in enumerate(at.items()):
        held = [joint for joint, there in joints if there is None]
        held.sort(key=lambda joint: (joint.kind == "distance", joint.path not in scene.roots, joint.kind != "fixed"))
        holding[path] = held[0] if held else None
        if held:
            rank = 1 if held[0].kind == "distance" else 0
        elif path in rooted:
            rank = 2
        else:
            rank = 4 if path in second else 3
        ranked.append((rank, number, path))
    return [(path, holding[path]) for _, _, path in sorted(ranked)]


def _bodies_of_root(scene: Scene, root: str) -> list[str]:
    """The body of an ArticulationRootAPI: its prim, or the second body of its joint."""
    if root in scene.bodies:
        return [root]
    joint = scene.joints.get(root)
    if joint is not None:
        return [path for path in (joint.bodies[1] or joint.bodies[0],) if path is not None]
    return []


def _grow(scene: Scene, tree: Tree, at, seen: set[str], used: set[str]) -> None:
    """Adds all bodies that joints connect with the root, the nearest first, and those of distance joints last."""
    seen.add(tree.root)
    near, far = deque([tree.root]), deque()

    def take(joint: Joint, here: str, there: str) -> None:
        seen.add(there)
        used.add(joint.path)
        tree.edges.append(_edge(scene, joint, here, there))
        near.append(there)

    while near or far:
        if not near:
            joint, here, there = far.popleft()
            if there not in seen:
                take(joint, here, there)
            continue
        here = near.popleft()
        for joint, there in at[here]:
            if there is None or there in seen:
                continue
            if joint.kind == "distance":
                far.append((joint, here, there))
            else:
                take(joint, here, there)


def _edge(scene: Scene, joint: Joint, parent: str | None, child: str | None) -> Edge:
    """A joint from parent to child; the world is never a child."""
    if child is None:
        parent, child = child, parent
    flipped = joint.bodies[1] != child
    edge = Edge(joint, parent, child, flipped, list(joint.linear), list(joint.angular))
    if flipped and joint.linear and joint.angular:
        raise ImportFileError(
            f"{scene.source}: <{joint.path}>: it slides and turns, and its first body hangs on its second; swap "
            "physics:body0 and body1, and localPos and localRot with them"
        )
    if flipped:
        # The inverse motion has the same coordinates, opposite axes, and the reverse order of rotations.
        edge.linear = [_opposite(axis) for axis in joint.linear]
        edge.angular = [_opposite(axis) for axis in reversed(joint.angular)]
    return edge


def _opposite(axis: Axis) -> Axis:
    return Axis(-axis.axis, axis.settings, axis.acceleration, axis.position, axis.velocity)


def _ordered(scene: Scene, tree: Tree, ordering: str | None, position: dict[str, int]) -> list[Edge]:
    """Edges with parents before children; ``position`` is the index of each joint in the stage."""
    edges = sorted(tree.edges, key=lambda edge: position[edge.joint.path])
    return ordered(
        tree.root,
        edges,
        ordering,
        lambda edge: ImportFileError(
            f"{scene.source}: <{edge.joint.path}> stands before the joint that moves its parent <{edge.parent}>; use "
            "joint_ordering='dfs'"
        ),
    )


def coordinates(scene: Scene, edge: Edge) -> np.ndarray:
    """Coordinates of a joint with its bodies where the stage has them; states that the file gives stand above that.

    Remarks where the bodies are not where the joint can hold them. Only the states of a joint count whose ``newtonLike:axes`` are not
    orthogonal: those of the schemas are the nearest orthogonal ones, and do not hold the bodies where they are.
    """
    states = [axis.position for axis in (*edge.linear, *edge.angular)]
    if None not in states and not _is_orthogonal(scene.prim_at(edge.joint.path)):
        return np.array(states)
    relative = _relative(scene, edge)
    place, turn = relative[:3], relative[3:]
    slides = np.array([place @ axis.axis for axis in edge.linear])
    angles = _angles(turn, [axis.axis for axis in edge.angular])
    if edge.joint.kind in ("free", "distance"):
        return relative
    off = place - sum((q * axis.axis for q, axis in zip(slides, edge.linear, strict=True)), np.zeros(3))
    chain = np.array([0.0, 0.0, 0.0, 1.0])
    for angle, axis in zip(angles, edge.angular, strict=True):
        chain = quat_multiply(chain, [*(math.sin(0.5 * angle) * axis.axis), math.cos(0.5 * angle)])
    left = 0.0 if edge.joint.kind == "ball" else _angle_between(chain, turn)
    if np.abs(off).max() > OFF_TOLERANCE or left > OFF_TOLERANCE:
        scene.remark(
            "the poses of bodies contradict their joints; the model starts in the pose that the joints define",
            f"{edge.joint.path} ({np.linalg.norm(off):.2g} m, {math.degrees(left):.2g} degrees)",
        )
    if edge.joint.kind == "ball":
        return turn
    q = np.concatenate([slides, [_wound(a, axis.settings) for a, axis in zip(angles, edge.angular, strict=True)]])
    for i, axis in enumerate([*edge.linear, *edge.angular]):
        if axis.position is not None:
            if abs(axis.position - q[i]) > OFF_TOLERANCE:
                scene.remark("joint states contradict the poses of bodies; the joint states are used", edge.joint.path)
            q[i] = axis.position
    return q


def _is_orthogonal(prim) -> bool:
    """Whether the axes of a joint as the model had them, if the prim has them, are orthogonal up to single precision."""
    attribute = prim.GetAttribute("newtonLike:axes") if prim else None
    axes = np.array(attribute.Get() or np.zeros((0, 3)) if attribute else np.zeros((0, 3)), dtype=np.float64)
    return bool(np.abs(axes @ axes.T - np.eye(len(axes))).max(initial=0.0) < OFF_TOLERANCE)


def speeds(scene: Scene, edge: Edge, coms: dict[str, np.ndarray]) -> np.ndarray:
    """Joint velocities that match the velocities of the bodies in the stage as closely as the joint permits.

    Args:
        scene: the records.
        edge: a joint, not of kind ``free`` or ``distance``.
        coms: centres of mass in the stage by body [m].
    """
    given = [axis.velocity for axis in (*edge.linear, *edge.angular)]
    child = scene.bodies[edge.child]
    parent = scene.bodies[edge.parent] if edge.parent is not None else None
    relative = np.zeros(6)
    if child.velocity.any() or (parent is not None and parent.velocity.any()):
        anchor = transform_multiply(child.pose, edge.frames[1])[:3]
        for body, sign in ((child, 1.0), (parent, -1.0)):
            if body is not None:
                spin = body.velocity[3:]
                relative[:3] += sign * (body.velocity[:3] + np.cross(spin, anchor - coms[body.path]))
                relative[3:] += sign * spin
        frame = edge.frames[0] if parent is None else transform_multiply(parent.pose, edge.frames[0])
        inverse = quat_inverse(frame[3:])
        relative = np.concatenate([quat_rotate(inverse, relative[:3]), quat_rotate(inverse, relative[3:])])
    if edge.joint.kind == "ball":
        return relative[3:]
    slides = [relative[:3] @ axis.axis for axis in edge.linear]
    turns: list[float] = []
    if edge.angular:
        q = _angles(_relative(scene, edge)[3:], [axis.axis for axis in edge.angular])
        carried, columns = np.array([0.0, 0.0, 0.0, 1.0]), []
        for angle, axis in zip(q, edge.angular, strict=True):
            columns.append(quat_rotate(carried, axis.axis))
            carried = quat_multiply(carried, [*(math.sin(0.5 * angle) * axis.axis), math.cos(0.5 * angle)])
        turns = np.linalg.lstsq(np.stack(columns, axis=1), relative[3:], rcond=None)[0].tolist()
    return np.array([v if g is None else g for g, v in zip(given, [*slides, *turns], strict=True)])


def _relative(scene: Scene, edge: Edge) -> np.ndarray:
    """Pose of the child's joint frame in the parent's."""
    to_parent, to_child = edge.frames
    if edge.parent is not None:
        to_parent = transform_multiply(scene.bodies[edge.parent].pose, to_parent)
    return transform_multiply(transform_inverse(to_parent), transform_multiply(scene.bodies[edge.child].pose, to_child))


def _angles(turn: np.ndarray, axes: list[np.ndarray]) -> np.ndarray:
    """Angles [rad] of intrinsic rotations about coordinate axes (or their opposites) that are closest to a rotation."""
    if not axes:
        return np.zeros(0)
    if len(axes) == 1:
        return np.array([2.0 * math.atan2(float(turn[:3] @ axes[0]), float(turn[3]))])
    from scipy.spatial.transform import Rotation

    numbers = [int(np.argmax(np.abs(axis))) for axis in axes]
    sequence = numbers + [i for i in range(3) if i not in numbers]
    angles = Rotation.from_quat(turn).as_euler("".join("XYZ"[i] for i in sequence))
    return np.array([angles[i] * axis[numbers[i]] for i, axis in enumerate(axes)])


def _wound(angle: float, settings: dict) -> float:
    """The equivalent angle in [-pi, pi), or an angle one turn away if only that is within the limits."""
    angle = (angle + math.pi) % (2.0 * math.pi) - math.pi
    low, high = settings.get("limit_lower", -math.inf), settings.get("limit_upper", math.inf)
    slack = OFF_TOLERANCE
    for candidate in (angle, angle + 2.0 * math.pi, angle - 2.0 * math.pi):
        if low - slack <= candidate <= high + slack:
            return candidate
    return angle


def _angle_between(a: np.ndarray, b: np.ndarray) -> float:
    off = quat_multiply(quat_inverse(np.asarray(a)), b)
    return 2.0 * math.atan2(float(np.linalg.norm(off[:3])), abs(float(off[3])))
