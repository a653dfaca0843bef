"""Arrays of a model and a state on the host, divided into the scopes of a stage: the shared scene, and each world."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from newton_like.exporters.usd.custom import entries_of, pair_bonds
from newton_like.geometry.transforms import IDENTITY, quat_rotate, transform_inverse, transform_multiply
from newton_like.kinematics import eval_fk
from newton_like.model.actuators import NUMBERS as ACTUATOR_NUMBERS
from newton_like.model.arguments import check_sizes
from newton_like.model.columns import COLUMNS
from newton_like.model.configs import JointDofConfig
from newton_like.model.joint_types import JOINT_TYPES, look_up
from newton_like.model.mujoco.equality_settings import equalities_of
from newton_like.model.tendons import ARRAYS
from newton_like.types import MAXVAL

EQUAL = 5.0e-6
"""Largest relative difference of poses of worlds that count as copies. The poses of a rotated copy are rounded to float32, for every body
along its chains. All other numbers must be equal."""


MEMBERS = {"body": "bodies", "joint": "joints", "articulation": "articulations", "shape": "shapes"}
"""Attributes of a scope, by kind of entity."""

MOST_ORIGINALS = 8
"""Largest number of worlds that a world is compared with, to avoid quadratic time for thousands of different worlds."""


class Host:
    """NumPy copies of all arrays of a model, by name, with reals in double precision.

    Attributes:
        model: the model.
        pose: link frames in the world ``[body_count, 7]``.
        twist: velocity of the centre of mass and angular velocity, world axes ``[body_count, 6]``.
        plain_free: for each joint, whether it is a FREE joint without further properties, which needs no prim in a stage.
        actuator_act: activations of the actuators ``[actuator_count]``.
        custom, left_out: see :func:`newton_like.exporters.usd.custom.entries_of`.
    """

    def __init__(self, model, state=None):
        self.model = model
        for column in COLUMNS:
            if column.builder_only:
                continue
            value = getattr(model, column.name)
            if column.type != "object":
                value = value.numpy()
                value = value.astype(np.float64) if value.dtype.kind == "f" else value
            setattr(self, column.name, value)
        # these limits are copies of the distances, which are separate attributes
        first = self.joint_qd_start[:-1][look_up(self.joint_type, "limits_distance")]
        self.joint_limit_lower[first], self.joint_limit_upper[first] = -MAXVAL, MAXVAL
        given = state is not None
        if not given:
            state = model.state()
            eval_fk(model, state.joint_q, state.joint_qd, state)
        parts = ("joint_q", "joint_qd", "body_q", "body_qd")
        check_sizes(model, state, parts)
        for name in parts:
            if not np.isfinite(getattr(state, name).numpy()).all():
                raise ValueError(f"{name} of the state contains numbers that are not finite; the simulation diverged")
        for name in ("joint_q", "joint_qd"):
            setattr(self, name, getattr(state, name).numpy().astype(np.float64))
        activations = state.actuator_act if len(state.actuator_act) == len(model.actuators) else model.actuator_act
        self.actuator_act = activations.numpy().astype(np.float64) if model.actuators else np.zeros(0)
        self.pose = state.body_q.numpy().astype(np.float64).reshape(-1, 7)
        self.twist = state.body_qd.numpy().astype(np.float64).reshape(-1, 6)
        self.gravity = model.gravity.numpy().astype(np.float64)
        self.shapes_of = model.body_shapes
        blocked = 6 - self.joint_dof_dim.reshape(-1, 2).sum(axis=1)
        self._constraint_start = np.concatenate([[0], np.cumsum(blocked)]).astype(int)
        self.custom, self.left_out = entries_of(model, state if given else None)
        self.plain_free = [self._is_plain_free(joint) for joint in range(model.joint_count)]

    def coords(self, joint: int) -> slice:
        """Coordinates of a joint."""
        return slice(int(self.joint_q_start[joint]), int(self.joint_q_start[joint + 1]))

    def dofs(self, joint: int) -> slice:
        """Dofs of a joint."""
        return slice(int(self.joint_qd_start[joint]), int(self.joint_qd_start[joint + 1]))

    def rows(self, kind: str, joint: int) -> slice:
        """Dofs, coordinates or constraints of a joint."""
        starts = self.starts(kind)
        return slice(int(starts[joint]), int(starts[joint + 1]))

    def starts(self, kind: str) -> np.ndarray:
        """First index of the dofs, coordinates or constraints of each joint, and their number."""
        return {"dof": self.joint_qd_start, "coord": self.joint_q_start, "constraint": self._constraint_start}[kind]

    def angular(self, joint: int) -> np.ndarray:
        """Mask of the dofs of a joint that are angles."""
        linear, angular = self.joint_dof_dim[joint]
        return np.arange(linear + angular) >= linear

    def _is_plain_free(self, joint: int) -> bool:
        anchored = JOINT_TYPES[self.joint_type[joint]].anchored
        if anchored or self.joint_parent[joint] >= 0 or not self.joint_enabled[joint]:
            return False
        for entries in self.custom:
            if entries.kind in ("joint", "dof", "coord", "constraint"):
                rows = slice(joint, joint + 1) if entries.kind == "joint" else self.rows(entries.kind, joint)
                if entries.given[rows].any():
                    return False
        poses = [self.joint_X_p[joint], self.joint_X_c[joint]]
        poses += [getattr(self, name)[self.coords(joint)] for name in ("joint_target_q", "joint_rest_q")]
        if not all(np.array_equal(pose, IDENTITY) for pose in poses):
            return False
        return all(np.all(getattr(self, name)[self.dofs(joint)] == value) for name, value in FREE_DOF.items())


_FREE = JointDofConfig.create_unlimited("x")
FREE_DOF = {f"joint_{f.name}": getattr(_FREE, f.name) for f in fields(_FREE) if f.type == "float"}
FREE_DOF |= dict.fromkeys(("joint_target_mode", "joint_target_qd", "joint_f", "joint_act"), 0.0)
"""Values of dofs that were created without settings (``JointDofConfig.create_unlimited``)."""


@dataclass
class Scope:
    """The entities below one prim: the shared scene, or one world.

    Attributes:
        world: index, -1 for the shared scene.
        frame: pose of the scope's prim in the stage.
        bodies, joints, articulations, shapes: indices, ascending.
        copy_of: the scope that this one is a moved copy of, or ``None``.
        prefix: common prefix of the labels.
        root: path of the prim, set by the writer.
    """

    world: int
    frame: np.ndarray
    bodies: np.ndarray
    joints: np.ndarray
    articulations: np.ndarray
    shapes: np.ndarray
    copy_of: Scope | None = None
    prefix: str = ""
    root: str = field(default="")

    def strip(self, label: str) -> str:
        """A label without the common prefix of this scope."""
        return label.removeprefix(self.prefix)


def scopes(host: Host, share: bool) -> list[Scope]:
    """The shared scene, followed by each world. If ``share``, worlds that are moved copies of an earlier one refer to it."""
    worlds = {kind: getattr(host, f"{kind}_world") for kind in MEMBERS}
    inside = any(np.any(world >= 0) for world in worlds.values()) or host.model.world_count > 1
    result = []
    order = {kind: np.argsort(worlds[kind], kind="stable") for kind in MEMBERS}
    for world in range(-1, host.model.world_count if inside else 0):
        members = []
        for kind in MEMBERS:
            ids = worlds[kind][order[kind]]
            members.append(order[kind][np.searchsorted(ids, world) : np.searchsorted(ids, world, side="right")])
        result.append(Scope(world, IDENTITY.copy(), *members))
    if share:
        originals: dict[tuple, list[Scope]] = {}
        bonds = _bonds(host, result)
        for scope in result[1:]:
            key = (bonds.get(scope.world),)
            key += tuple(len(getattr(scope, name)) for name in MEMBERS.values())
            key += (host.body_mass[scope.bodies].tobytes(), host.shape_type[scope.shapes].tobytes())
            known = originals.setdefault(key, [])
            if not any(_copies(host, scope, original) for original in known[:MOST_ORIGINALS]):
                known.append(scope)
    return result


def _bonds(host: Host, found: list[Scope]) -> dict[int, tuple]:
    """The tendons and equality constraints of worlds that have some, with numbers of joints and shapes within the world; equal ones may be
    copies of each other."""
    model, bonds = host.model, {}
    first = {
        s.world: (int(s.joints[0]) if len(s.joints) else 0, int(s.shapes[0]) if len(s.shapes) else 0) for s in found
    }
    arrays = [getattr(model, f"tendon_{name}").numpy() for name in ARRAYS] if model.tendons else []
    for n, tendon in enumerate(model.tendons):
        joint, shape = first.get(tendon.world, (0, 0))
        alike = tendon.renumbered(lambda j, k=joint: j - k, lambda i, k=shape: i - k, world=-1, label="")
        alone = n if any(i < shape for kind, *ids in tendon.path if kind != "pulley" for i in ids if i >= 0) else -1
        numbers = tuple(float(array[n]) for array in arrays)
        label = tendon.label.rpartition("/")[2]
        bonds[tendon.world] = (*bonds.get(tendon.world, ()), (repr(alike), numbers, label, alone))
    _add_actuators(host, first, bonds)
    _add_frames(host, found, bonds)
    pair_bonds(model, first, bonds)
    rows = equalities_of(model, every=True)
    for i in range(0 if rows is None else len(rows["target"])):
        joint = max(int(rows["target"][i]), int(rows["joint1"][i]))
        if not 0 <= joint < model.joint_count:
            continue
        world = int(host.joint_world[joint])
        own = [int(rows[name][i]) for name in ("target", "joint1", "joint2")]
        own = [j - first[world][0] if j >= 0 else -1 for j in own]
        law = [rows[name][i].tolist() for name in ("polycoef", "rules", "solref", "solimp", "enabled", "torquescale")]
        bonds[world] = (*bonds.get(world, ()), (repr(own), repr(law)))
    return bonds


def _copies(host: Host, scope: Scope, original: Scope) -> bool:
    """Whether a world is a moved copy of another. Sets the attributes of a copy."""
    if not len(scope.bodies) + len(scope.shapes):
        return False
    prefixes = _label_prefixes(host, scope, original)
    frame = _displacement(host, scope, original)
    if prefixes is None or frame is None or not np.array_equal(host.gravity[scope.world], host.gravity[original.world]):
        return False
    members = {kind: (getattr(scope, name), getattr(original, name)) for kind, name in MEMBERS.items()}
    for kind in ("dof", "coord", "constraint"):
        members[kind] = tuple(_rows(host.starts(kind), joints) for joints in members["joint"])
    first = {kind: [int(rows[0]) if len(rows) else 0 for rows in pair] for kind, pair in members.items()}
    for column in COLUMNS:
        if column.builder_only or column.name in _MOVED or column.name.endswith(("_world", "_label")):
            continue
        mine, theirs = members[column.kind]
        if len(mine) != len(theirs):
            return False
        values = getattr(host, column.name)
        if column.type == "object":
            if any(values[a] is not values[b] for a, b in zip(mine, theirs, strict=True)):
                return False
            continue
        mine, theirs = values[mine], values[theirs]
        if column.refers is not None:
            mine = np.where(mine >= 0, mine - first[column.refers][0], -1)
            theirs = np.where(theirs >= 0, theirs - first[column.refers][1], -1)
        if not np.array_equal(mine, theirs):
            return False
    # the shape of the members was compared with the columns
    if any(entries.differ(*members[entries.kind]) for entries in host.custom):
        return False
    if not _moved_alike(host, scope, original, frame):
        return False
    scope.copy_of, scope.frame, scope.prefix = original, frame, prefixes[0]
    original.prefix = prefixes[1]
    return True


_MOVED = ("body_q", "body_qd", "shape_transform", "joint_X_p", "joint_q", "joint_qd")


def _rows(starts: np.ndarray, joints: np.ndarray) -> np.ndarray:
    return np.concatenate([np.arange(starts[j], starts[j + 1]) for j in joints] or [np.zeros(0, dtype=int)]).astype(int)


def _label_prefixes(host: Host, scope: Scope, original: Scope) -> tuple[str, str] | None:
    """The prefixes in which all labels of two worlds differ, or ``None`` if the labels also differ elsewhere."""
    labels = [
        [getattr(host, f"{kind}_label")[i] for kind, name in MEMBERS.items() for i in getattr(one, name)]
        for one in (scope, original)
    ]
    if labels[0] == labels[1]:
        return "", original.prefix
    mine, theirs = labels[0][0], labels[1][0]
    rest = len(_common_end(mine, theirs))
    heads = mine[: len(mine) - rest], theirs[: len(theirs) - rest]
    # The prefix ends with a slash that is common to both labels.
    cut = mine[len(heads[0]) :].find("/") + 1
    heads = mine[: len(heads[0]) + cut], theirs[: len(heads[1]) + cut]
    if original.prefix and original.prefix != heads[1]:
        return None
    if not heads[0].endswith("/") or not heads[1].endswith("/"):
        return None
    stripped = [
        [label.removeprefix(head) if label.startswith(head) else None for label in group]
        for head, group in zip(heads, labels, strict=True)
    ]
    return heads if stripped[0] == stripped[1] and None not in stripped[0] else None


def _common_end(a: str, b: str) -> str:
    count = 0
    while count < min(len(a), len(b)) and a[-1 - count] == b[-1 - count]:
        count += 1
    return a[len(a) - count :]


def _displacement(host: Host, scope: Scope, original: Scope) -> np.ndarray | None:
    """The displacement of a copy, from the first entity with a pose in the world."""
    if len(scope.bodies):
        mine, theirs = host.pose[scope.bodies[0]], host.pose[original.bodies[0]]
    else:
        static = [
            (host.shape_transform[a], host.shape_transform[b])
            for a, b in zip(scope.shapes, original.shapes, strict=True)
            if host.shape_body[a] < 0
        ]
        if not static:
            return None
        mine, theirs = static[0]
    frame = transform_multiply(mine, transform_inverse(theirs))
    frame[3:] *= np.sign(frame[6]) or 1.0
    if np.abs(frame[3:6]).max() < EQUAL:
        # Copies on a grid are not rotated; this removes rounding errors of the quaternion.
        frame = np.array([*(mine[:3] - theirs[:3]), 0.0, 0.0, 0.0, 1.0])
    frame[:3][np.abs(frame[:3]) < 1.0e-12] = 0.0
    return frame


def _add_actuators(host: Host, first: dict, bonds: dict) -> None:
    """The same for actuators."""
    model = host.model
    if not model.actuators:
        return
    arrays = [getattr(model, f"actuator_{name}").numpy() for name in (*ACTUATOR_NUMBERS, "ctrl")]
    arrays.append(host.actuator_act)
    bodies, tendons = (_first_of(world) for world in (model.body_world.numpy(), [x.world for x in model.tendons]))
    for n, actuator in enumerate(model.actuators):
        world = actuator.world
        joint, shape = first.get(world, (0, 0))
        body, tendon = bodies.get(world, 0), tendons.get(world, 0)
        alike = actuator.renumbered(
            lambda j, k=joint: j - k, lambda i, k=shape: i - k, lambda i, k=tendon: i - k, lambda i, k=body: i - k, world=-1, label=""
        )  # fmt: skip
        sites = [i for i in (actuator.target if actuator.pulls_sites else -1, actuator.reference) if i >= 0]
        alone = n if any(i < shape for i in sites) else -1
        numbers = tuple(array[n].tobytes() for array in arrays)
        label = actuator.label.rpartition("/")[2]
        bonds[world] = (*bonds.get(world, ()), (repr(alike), numbers, label, alone))


def frame_world(host: Host, frame: int) -> int:
    """The world of a named frame: that of its body or articulation, -1 without one."""
    body, articulation = (int(getattr(host.model.frames, name)[frame]) for name in ("body", "articulation"))
    if body >= 0:
        return int(host.body_world[body])
    return int(host.articulation_world[articulation]) if articulation >= 0 else -1


def _add_frames(host: Host, found: list[Scope], bonds: dict) -> None:
    """The same for named frames. Worlds with frames of the world are no copies."""
    frames = host.model.frames
    first = {scope.world: int(scope.bodies[0]) if len(scope.bodies) else 0 for scope in found}
    for i in range(len(frames)):
        world, body = frame_world(host, i), int(frames.body[i])
        place = body - first.get(world, 0) if body >= 0 else f"alone {i}"
        label = frames.label[i].rpartition("/")[2]
        bonds[world] = (*bonds.get(world, ()), ("frame", place, label, frames.transform[i].tobytes()))


def _first_of(worlds) -> dict[int, int]:
    """The first index of the entities of each world."""
    found: dict[int, int] = {}
    for index, world in enumerate(worlds):
        found.setdefault(int(world), index)
    return found


def _moved_alike(host: Host, scope: Scope, original: Scope, frame: np.ndarray) -> bool:
    def close(mine, theirs):
        mine, theirs = mine.reshape(-1, 7), theirs.reshape(-1, 7)
        flip = np.sign(np.sum(mine[:, 3:] * theirs[:, 3:], axis=1, keepdims=True))
        size = max(1.0, np.abs(mine[:, :3]).max(initial=0.0))
        return (
            np.abs(mine[:, :3] - theirs[:, :3]).max(initial=0.0) <= EQUAL * size
            and np.abs(mine[:, 3:] - flip * theirs[:, 3:]).max(initial=0.0) <= EQUAL
        )

    turn = frame[3:]
    poses = [(host.pose[scope.bodies], transform_multiply(frame, host.pose[original.bodies]))]
    theirs = host.shape_transform[original.shapes]
    static = host.shape_body[original.shapes] < 0
    poses.append(
        (host.shape_transform[scope.shapes], np.where(static[:, None], transform_multiply(frame, theirs), theirs))
    )
    for mine, joint in zip(scope.joints, original.joints, strict=True):
        anchor = host.joint_X_p[joint]
        if host.joint_parent[joint] < 0 and JOINT_TYPES[host.joint_type[joint]].anchored:
            anchor = transform_multiply(frame, anchor)
        poses.append((host.joint_X_p[mine], anchor))
        if not JOINT_TYPES[host.joint_type[joint]].floats:
            for name, rows in (("joint_q", host.coords), ("joint_qd", host.dofs)):
                if not np.array_equal(getattr(host, name)[rows(mine)], getattr(host, name)[rows(joint)]):
                    return False
    spin = quat_rotate(turn, host.twist[original.bodies].reshape(-1, 2, 3)).reshape(-1, 6)
    speed = max(1.0, np.abs(spin).max(initial=0.0))
    if np.abs(host.twist[scope.bodies] - spin).max(initial=0.0) > EQUAL * speed:
        return False
    return all(close(mine, theirs) for mine, theirs in poses)
