"""Chunks of worlds, slots of bodies, and blocks of joints: the tables that the kernel of a step reads."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from newton_like.geometry.transforms import quat_from_matrix, quat_multiply

from newton_like.kernels.solvers.xpbd.bodies import (  # isort: skip
    BODY_INERTIA, BODY_INVERSE, BODY_NUMBERS, DYNAMIC, INVERSE_MASS, LINE, QUAT,
)  # fmt: skip
from newton_like.kernels.solvers.xpbd.joints import (  # isort: skip
    ANGULAR_SIGN, ARMATURE, AXES, BLOCK_COLUMNS, CHILD_AT, CHILD_FRAME, CLIP, DAMPING, LENGTH, DOF_NUMBERS, DOFS_AT, EFFORT,
    JOINT_NUMBERS, JOINT_WORK, KD, KE, KV, LINEAR_FRAME, LINEAR_SIGN, LOSS, LOSS_IN_MOTION, LOWER, PARENT_AT, PARENT_FRAME, REST,
    REST_TURN, ROTOR, ROWS, SPEED, STIFFNESS, TURNS, UNKNOWN, UPPER,
)  # fmt: skip
from newton_like.kernels.solvers.xpbd.order import BODY_AT, CHUNK_COLUMNS, SLOTS
from newton_like.kernels.solvers.xpbd.wrenches import WRENCH_COLUMNS
from newton_like.model.joint_types import JOINT_TYPES, look_up
from newton_like.solvers.xpbd.colours import colours_of_joints
from newton_like.solvers.xpbd.features import NO_SPEED, check_axes
from newton_like.solvers.xpbd.moving import moving_bodies
from newton_like.solvers.xpbd.trees import Placed, trees_of_joints
from newton_like.types import MAXVAL, JointTargetMode

BODIES_PER_CHUNK = 128
"""About how many bodies a chunk has, so that its numbers stay in the cache of a core."""


@dataclass
class Slots:
    """Where bodies stand.

    Attributes:
        chunks: table of chunks, ``[chunks, CHUNK_COLUMNS]``, without blocks.
        body, world: of each slot the body (-1: none) and the world.
        chunk_of, slot_of: of each body; slots count from the first one of the chunk.
        fixed: of each world the slot that stands for it in joints and contacts.
    """

    chunks: np.ndarray
    body: np.ndarray
    world: np.ndarray
    chunk_of: np.ndarray
    slot_of: np.ndarray
    fixed: np.ndarray
    chunk_of_world: np.ndarray


def worlds_of_bodies(model) -> np.ndarray:
    """The world of each body; bodies of all worlds count as those of world 0."""
    return np.maximum(model.body_world.numpy(), 0)


def trees_of_bodies(model) -> np.ndarray:
    """The articulation that moves each body; -1 for bodies without one."""
    found, owner = np.full(model.body_count, -1), model.joint_articulation.numpy()
    found[model.joint_child.numpy()[owner >= 0]] = owner[owner >= 0]
    return found


def bodies_of_joints(model) -> np.ndarray:
    """One for each body that is the child or the parent of a joint which does not leave it free, enabled or not, else zero."""
    ends = np.stack([model.joint_parent.numpy(), model.joint_child.numpy()]).reshape(2, -1)
    if model.joint_count:
        ends = ends[:, ~look_up(model.joint_type.numpy(), "floats")]
    found = np.zeros(model.body_count, dtype=int)
    found[ends[ends >= 0]] = 1
    return found


def turning_coordinates(model) -> np.ndarray:
    """The coordinates of joints that are angles."""
    if not model.joint_count:
        return np.zeros(0, dtype=int)
    linear, angular = np.where(
        look_up(model.joint_type.numpy(), "has_quaternion")[:, None], 0, model.joint_dof_dim.numpy()
    ).T
    first = model.joint_q_start.numpy()[: len(linear)] + linear
    return np.repeat(first - np.cumsum(angular) + angular, angular) + np.arange(angular.sum())


def make_slots(model, width: int, least: int, body_numbers: int) -> Slots:
    """Groups worlds in chunks, as many as `least` if there are as many worlds. Bodies with the same place in their worlds follow each
    other."""
    worlds, world = model.world_count, worlds_of_bodies(model)
    each = max(1.0, model.body_count / max(worlds, 1))
    size = int(np.ceil(BODIES_PER_CHUNK / each))
    size = max(1, -(-size // width) * width) if size > 1 else 1
    most = max(width, worlds // least // width * width)
    size = min(size, most)
    count = max(1, -(-worlds // size))
    first_of_world = np.full(worlds, model.body_count)
    np.minimum.at(first_of_world, world, np.arange(model.body_count))
    ordinal = np.arange(model.body_count) - first_of_world[world] if model.body_count else np.zeros(0, dtype=int)
    chunk_of = world // size
    order = np.lexsort((world, ordinal, chunk_of))
    body, of_world, table = [], [], np.zeros((count, CHUNK_COLUMNS), dtype=np.int32)
    slot_of, fixed = np.zeros(model.body_count, dtype=np.int32), np.zeros(worlds, dtype=np.int32)
    ends = np.searchsorted(chunk_of[order], np.arange(count + 1))
    number = first = 0
    for c in range(count):
        own = order[ends[c] : ends[c + 1]]
        here = np.arange(c * size, min(worlds, (c + 1) * size))
        slot_of[own] = np.arange(len(own))
        fixed[here] = len(own) + np.arange(len(here))
        used = len(own) + len(here)
        slots = -(-(used + 1) // width) * width
        table[c, :4] = number, slots, first, used
        table[c, 6:8] = here[0], here[-1] + 1
        body.append(np.concatenate([own, np.full(slots - len(own), -1)]))
        of_world.append(np.concatenate([world[own], here, np.full(slots - used, here[0])]))
        number, first = number + body_numbers * slots, first + slots
    return Slots(
        table, np.concatenate(body), np.concatenate(of_world), chunk_of, slot_of, fixed, np.arange(worlds) // size
    )


CONSTANT_ROWS = (*range(BODY_INERTIA, BODY_INERTIA + 6), *range(BODY_INVERSE, BODY_INVERSE + 6), INVERSE_MASS, DYNAMIC)
"""Numbers of a body that are constant in steps."""

MASS_COLUMN = CONSTANT_ROWS.index(INVERSE_MASS)


def body_constants(model, moves: np.ndarray) -> np.ndarray:
    """These numbers, ``[body_count, len(CONSTANT_ROWS)]``; `moves`: which bodies forces move."""
    inertia = model.body_inertia.numpy().astype(np.float64).reshape(-1, 3, 3)
    inverse = np.zeros_like(inertia)
    inverse[moves] = np.linalg.inv(inertia[moves])
    at = (slice(None), (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2))
    own = np.where(moves[:, None], inertia[at], 0.0)
    inverse_mass = 1.0 / np.where(moves, model.body_mass.numpy().astype(np.float64), np.inf)
    return np.concatenate([own, inverse[at], inverse_mass[:, None], moves[:, None]], axis=1)


def number_places(slots: Slots, bodies, numbers) -> np.ndarray:
    """Where these numbers of bodies stand, ``[bodies, numbers]``; see :func:`newton_like.kernels.solvers.xpbd.bodies.place_in_chunk`."""
    chunk, slot = slots.chunks[slots.chunk_of[bodies]], slots.slot_of[bodies][:, None]
    numbers = np.asarray(numbers)
    inside = np.where(numbers < LINE, LINE * slot + numbers, numbers * chunk[:, SLOTS][:, None] + slot)
    return chunk[:, BODY_AT][:, None] + inside


def pose_places(model, slots: Slots, array) -> tuple:
    """Where the real part of the orientation of each body stands, and the worlds of bodies; `array` copies to the device."""
    return array(number_places(slots, slice(None), [QUAT + 3])[:, 0]), array(worlds_of_bodies(model))


def fixed_places(slots: Slots, array) -> tuple:
    """Of each world the first number and the number of slots of the chunk, and the slot of fixed bodies."""
    chunk = slots.chunks[slots.chunk_of_world]
    return array(chunk[:, BODY_AT]), array(chunk[:, SLOTS]), array(slots.fixed)


def body_numbers(slots: Slots, known: np.ndarray) -> np.ndarray:
    """The numbers of bodies in slots: constants and identities."""
    out = []
    for _, size, first, *_ in slots.chunks.tolist():
        body = slots.body[first : first + size]
        rows = np.zeros((BODY_NUMBERS, size))
        rows[QUAT + 3] = 1.0
        there = body >= 0
        rows[np.array(CONSTANT_ROWS)[:, None], np.flatnonzero(there)] = known[body[there]].T
        out += [rows[:LINE].T.ravel(), rows[LINE:].ravel()]
    return np.concatenate(out)


def first_work(blocks: int, copies: int, width: int) -> np.ndarray:
    """The work memory of joints before the first step, ``[(blocks + copies) * JOINT_WORK, width]``: rotors have the velocities of their
    joints. Lanes without a joint keep the rows of copies, see `newton_like.solvers.xpbd.trees`, which are unit vectors: the response to a
    row without a direction is not finite."""
    out = np.zeros((blocks + copies, JOINT_WORK, width))
    out[:, ROTOR : ROTOR + 6] = UNKNOWN
    out[blocks:, ROWS : ROWS + 18] = np.tile(np.eye(3).ravel(), 2)[:, None]
    return out.reshape(-1, width)


def arrays_of_joints(model) -> dict:
    """The arrays of the model that the forces of joints which leave a body free read."""
    return dict(anchor=model.joint_X_p, effort_limit=model.joint_effort_limit, mode=model.joint_target_mode)


def _basis(axes: np.ndarray) -> tuple[np.ndarray, float]:
    """A right-handed basis, as a quaternion, that begins with the axes; and the sign of the third axis against the third one of the
    basis."""
    if not len(axes):
        return np.array([0.0, 0.0, 0.0, 1.0]), 1.0
    a = axes[0]
    if len(axes) > 1:
        b = axes[1]
    else:
        b = np.eye(3)[np.argmin(abs(a))]
    b = b - a * (a @ b)
    b = b / np.linalg.norm(b)
    c = np.cross(a, b)
    sign = 1.0 if len(axes) < 3 or c @ axes[2] > 0.0 else -1.0
    return quat_from_matrix(np.stack([a, b, c], axis=1)), sign


@dataclass
class Blocks:
    """Joints in blocks of lanes.

    Attributes:
        table: the kind of each block, ``[blocks, BLOCK_COLUMNS]``.
        joint: of each lane the joint, -1 for none; parent, child: slots; dof, coordinate: first ones.
        numbers: ``[blocks, JOINT_NUMBERS, width]``.
        wrenches: of joints that leave a body free, by chunks, see `newton_like.kernels.solvers.xpbd.wrenches`.
        wrench_start: first of these of each chunk.
        apart: whether forces move none of the parents of these, and each has another child.
        world: of each lane, -1 for none, ``[blocks, width]``.
        chunk, colour: of each block.
        placed: of each lane the place in a tree, see :func:`newton_like.solvers.xpbd.trees.trees_of_joints`, ``[blocks, width]``.
    """

    table: np.ndarray
    joint: np.ndarray
    parent: np.ndarray
    child: np.ndarray
    dof: np.ndarray
    coordinate: np.ndarray
    numbers: np.ndarray
    wrenches: np.ndarray
    wrench_start: np.ndarray
    apart: bool
    world: np.ndarray
    chunk: np.ndarray
    colour: np.ndarray
    placed: Placed

    @property
    def acting(self) -> bool:
        """Whether something acts along degrees of freedom that keeps its impulse."""
        return acts_along(self.numbers.transpose(0, 2, 1).reshape(-1, JOINT_NUMBERS))


def acts_along(rows: np.ndarray) -> bool:
    """Whether something acts along degrees of freedom of joints with these constants, ``[n, JOINT_NUMBERS]``, and keeps its impulse."""
    kept = (KE, KD, ARMATURE, DAMPING, STIFFNESS, LOSS)
    firsts = [DOFS_AT + DOF_NUMBERS * i for i in range(6)]
    limited = any(
        (rows[:, at + LOWER] > -0.5 * MAXVAL).any() or (rows[:, at + UPPER] < 0.5 * MAXVAL).any() for at in firsts
    )
    return limited or bool(rows[:, [at + k for at in firsts for k in kept]].any())


def _floating_joints(model, chosen: np.ndarray) -> np.ndarray:
    """Which joints that leave a body free have a degree of freedom that is `chosen`, ``[joint_count]``."""
    floats = look_up(model.joint_type.numpy(), "floats") if model.joint_count else np.zeros(0, dtype=bool)
    owner = np.repeat(np.arange(model.joint_count), np.diff(model.joint_qd_start.numpy()))
    return floats & (np.bincount(owner, chosen, minlength=model.joint_count) > 0)


def floating_joints_that_act(model) -> np.ndarray:
    """Which joints that leave a body free have drives, passive forces or limits of velocity, ``[joint_count]``."""
    mode = model.joint_target_mode.numpy()
    driven = (mode != JointTargetMode.NONE) & (mode != JointTargetMode.EFFORT)
    acts = driven & ((model.joint_target_ke.numpy() > 0.0) | (model.joint_target_kd.numpy() > 0.0))
    for name in ("damping", "stiffness", "friction", "armature"):
        acts = acts | (getattr(model, f"joint_{name}").numpy() > 0.0)
    acts = acts | (model.joint_velocity_limit.numpy() < NO_SPEED)
    return _floating_joints(model, acts)


def remember_velocities(model) -> bool:
    """Whether rows of joints need the velocity after their last impulse: those of rotors, and those of dampers, velocity limits and dry
    friction, which close what later joints moved them."""
    mode = model.joint_target_mode.numpy()
    position = np.isin(mode, (JointTargetMode.POSITION, JointTargetMode.POSITION_VELOCITY))
    springs = (position & (model.joint_target_ke.numpy() > 0.0)) | (model.joint_stiffness.numpy() > 0.0)
    driven = (mode != JointTargetMode.NONE) & (mode != JointTargetMode.EFFORT) & (model.joint_target_kd.numpy() > 0.0)
    slow = driven | (model.joint_damping.numpy() > 0.0) | (model.joint_velocity_limit.numpy() < NO_SPEED)
    found = (slow & ~springs) | (model.joint_friction.numpy() > 0.0) | (model.joint_armature.numpy() > 0.0)
    return bool(found.any())


def limited_floating_joints(model) -> np.ndarray:
    """Which joints that leave a body free have drives of the mode EFFORT, whose limits hold for ``joint_f``, ``[joint_count]``."""
    return _floating_joints(model, model.joint_target_mode.numpy() == JointTargetMode.EFFORT)


def bounded_joints(model) -> np.ndarray:
    """Which joints keep a distance that has a limit, ``[joint_count]``."""
    keeps = look_up(model.joint_type.numpy(), "limits_distance") if model.joint_count else np.zeros(0, dtype=bool)
    return keeps & (np.maximum(model.joint_min_distance.numpy(), model.joint_max_distance.numpy()) >= 0.0)


def _kind(joint: int, row, dims: np.ndarray) -> tuple[int, int, int]:
    if row.has_quaternion:
        return TURNS, int(dims[joint, 0]), 3
    return AXES, int(dims[joint, 0]), int(dims[joint, 1])


def make_blocks(model, slots: Slots, width: int, measured=(), lined=()) -> Blocks:
    """Joints that constrain a body that forces move, ordered by chunks and colours.

    Args:
        model: the model.
        slots: its bodies.
        width: lanes of a block.
        measured: joints whose coordinates are read, whether or not forces move a body of theirs.
        lined: bodies on which lines act.

    Raises:
        ValueError: axes of a joint are not perpendicular to each other.
    """
    types, parent, child = (getattr(model, f"joint_{name}").numpy() for name in ("type", "parent", "child"))
    enabled, dims = model.joint_enabled.numpy().astype(bool), model.joint_dof_dim.numpy()
    moves = np.append(moving_bodies(model), False)
    world = np.append(worlds_of_bodies(model), 0)
    found, kinds, wrenches = [], [], []
    bounded = bounded_joints(model)
    acting, read = floating_joints_that_act(model), set(np.asarray(measured, dtype=int).tolist())
    for j in range(model.joint_count):
        row = JOINT_TYPES[int(types[j])]
        a, b = int(parent[j]), int(child[j])
        if not enabled[j]:
            continue
        if row.floats:
            wrenches.append(j)
            if bounded[j] and (moves[a] or moves[b] or j in read):
                found.append(j)
                kinds.append((LENGTH, 1, 0))
            if not acting[j]:
                continue
        if moves[a] or moves[b] or j in read:
            found.append(j)
            kinds.append(_kind(j, row, dims))
    found, kinds = np.array(found, dtype=int), np.array(kinds, dtype=int).reshape(-1, 3)
    own = np.where(child[found] >= 0, child[found], parent[found])
    world_of = world[own]
    colour, ordinal = np.zeros(len(found), dtype=int), np.zeros(len(found), dtype=int)
    placed, measures = np.zeros((4, len(found)), dtype=int), np.isin(found, np.array(sorted(read), dtype=int))
    order = np.argsort(world_of, kind="stable")
    ends = np.searchsorted(world_of[order], np.arange(model.world_count + 1))
    known: dict[bytes, np.ndarray] = {}
    for start, end in pairwise(ends):
        here = order[start:end]
        if not len(here):
            continue
        pairs = np.stack([parent[found[here]], child[found[here]]], axis=1)
        pairs = np.where(moves[pairs], pairs, -1)
        pulled = np.isin(pairs, lined)
        low = pairs[pairs >= 0].min() if (pairs >= 0).any() else 0
        pairs = np.where(pairs >= 0, pairs - low, -1)
        alone = measures[here]
        key = pairs.tobytes() + pulled.tobytes() + kinds[here].tobytes() + alone.tobytes()
        if key not in known:
            known[key] = colours_of_joints(pairs, pairs[pulled].tolist()), trees_of_joints(pairs, kinds[here], alone)
        colour[here], ordinal[here] = known[key][0], np.arange(len(here))
        placed[:, here] = known[key][1].depth, known[key][1].rank, known[key][1].leaf, known[key][1].moved
    chunk = slots.chunk_of_world[world_of]
    in_tree = placed[0] > 0
    order = np.lexsort((world_of, ordinal, in_tree, *kinds.T[::-1], colour, chunk))
    group = np.stack([chunk, colour, *kinds.T, in_tree], axis=1)[order]
    cuts = np.flatnonzero(np.any(np.diff(group, axis=0) != 0, axis=1)) + 1 if len(group) else np.zeros(0, dtype=int)
    lanes, table, block_chunk, block_colour = [], [], [], []
    for piece in np.split(order, cuts) if len(order) else ():
        for i in range(0, len(piece), width):
            part = piece[i : i + width]
            lanes.append(np.concatenate([part, np.full(width - len(part), -1)]))
            table.append((*kinds[piece[0]], -1, -1, in_tree[piece[0]]))
            block_chunk.append(chunk[piece[0]])
            block_colour.append(colour[piece[0]])
    lanes = np.array(lanes, dtype=int).reshape(-1, width)
    joint = np.append(found, -1)[lanes]
    table, block_chunk = np.array(table, dtype=np.int32).reshape(-1, BLOCK_COLUMNS), np.array(block_chunk, dtype=int)
    dummy = slots.chunks[block_chunk, 3][:, None]

    def places(bodies, worlds):
        return np.where(
            bodies >= 0, slots.slot_of[np.maximum(bodies, 0)] if len(slots.slot_of) else 0, slots.fixed[worlds]
        )

    of_world = np.append(world_of, 0)[lanes]
    sides = [np.where(joint >= 0, places(np.append(x, -1)[joint], of_world), dummy) for x in (parent, child)]
    for column, side in zip((3, 4), sides, strict=True):
        run = (np.diff(side, axis=1) == 1).all(axis=1) & (joint >= 0).all(axis=1)
        table[:, column] = np.where(run & (width > 1), side[:, 0], -1)
    slots.chunks[:, 4] = np.searchsorted(block_chunk, np.arange(len(slots.chunks)))
    slots.chunks[:, 5] = np.searchsorted(block_chunk, np.arange(len(slots.chunks)), side="right")
    starts = [
        np.where(joint >= 0, np.append(getattr(model, n).numpy()[:-1], 0)[joint], 0)
        for n in ("joint_qd_start", "joint_q_start")
    ]
    wrenches = np.array(wrenches, dtype=int)
    wrench_chunk = slots.chunk_of[child[wrenches]] if len(wrenches) else wrenches
    order = np.argsort(wrench_chunk, kind="stable")
    wrenches, wrench_chunk = wrenches[order], wrench_chunk[order]
    listed = (
        np.stack(
            [
                model.joint_qd_start.numpy()[wrenches],
                places(child[wrenches], world[child[wrenches]]),
                places(parent[wrenches], world[child[wrenches]]),
                wrenches,
                acting[wrenches],
                limited_floating_joints(model)[wrenches],
            ],
            axis=1,
        )
        if len(wrenches)
        else np.zeros((0, WRENCH_COLUMNS))
    )
    return Blocks(
        table, joint, *(x.astype(np.int32).ravel() for x in (*sides, *starts)), numbers_of(model, joint, table[:, 0] == LENGTH),
        listed.astype(np.int32), np.searchsorted(wrench_chunk, np.arange(len(slots.chunks) + 1)).astype(np.int32),
        not moves[parent[wrenches]].any() and len(np.unique(child[wrenches])) == len(wrenches),
        np.where(joint >= 0, of_world, -1).astype(np.int32), block_chunk, np.array(block_colour, dtype=int),
        Placed(*np.append(placed, np.zeros((4, 1), dtype=int), axis=1)[:, lanes]),
    )  # fmt: skip


def _frames(model, out: np.ndarray, rows: np.ndarray, joints: np.ndarray, lengths: np.ndarray) -> None:
    """Places and orientations of the frames of joints; `lengths`: which rows are the distances of anchors."""
    com = np.append(model.body_com.numpy().astype(np.float64), np.zeros((1, 3)), axis=0)
    frame_p, frame_c = (getattr(model, f"joint_X_{side}").numpy().astype(np.float64) for side in "pc")
    parent, child, types = (getattr(model, f"joint_{name}").numpy() for name in ("parent", "child", "type"))
    axis, first, dims = (
        model.joint_axis.numpy().astype(np.float64),
        model.joint_qd_start.numpy(),
        model.joint_dof_dim.numpy(),
    )
    out[rows, PARENT_AT : PARENT_AT + 3] = frame_p[joints, :3] - com[parent[joints]]
    out[rows, CHILD_AT : CHILD_AT + 3] = frame_c[joints, :3] - com[child[joints]]
    # velocities of joints that leave a body free are those of the centre of mass
    free = look_up(types[joints], "floats") & ~lengths
    out[rows[free], CHILD_AT : CHILD_AT + 3] = 0.0
    quaternion = look_up(types[joints], "has_quaternion")
    counts = np.where(quaternion[:, None], 0, dims[joints])
    place = np.arange(6)
    there = place < counts.sum(axis=1)[:, None]
    axes = np.where(there[..., None], np.append(axis, np.zeros((6, 3)), axis=0)[first[joints][:, None] + place], 0.0)
    # joints with the same axes share the bases
    _, at, kind = np.unique(
        np.column_stack([counts, axes.reshape(-1, 18)]), axis=0, return_index=True, return_inverse=True
    )
    bases = np.zeros((len(at), 10))
    for i in np.argsort(at).tolist():
        row, (n, k) = at[i], counts[at[i]].tolist()
        linear, angular = axes[row, :n], axes[row, n : n + k]
        for each in (linear, angular):
            check_axes(model, int(joints[row]), each)
        bases[i, :4], bases[i, 4] = _basis(linear)
        bases[i, 5:9], bases[i, 9] = _basis(angular)
    own = bases[kind.ravel()]
    out[rows, LINEAR_FRAME : LINEAR_FRAME + 4] = quat_multiply(frame_p[joints, 3:], own[:, :4])
    out[rows, PARENT_FRAME : PARENT_FRAME + 4] = quat_multiply(frame_p[joints, 3:], own[:, 5:9])
    out[rows, CHILD_FRAME : CHILD_FRAME + 4] = quat_multiply(frame_c[joints, 3:], own[:, 5:9])
    out[rows, LINEAR_SIGN], out[rows, ANGULAR_SIGN] = own[:, 4], own[:, 9]


def _dofs(model, out: np.ndarray, rows: np.ndarray, joints: np.ndarray, keeps: np.ndarray) -> None:
    """Numbers of the degrees of freedom of joints; `keeps`: which rows are the distances of anchors."""
    first, types = model.joint_qd_start.numpy(), model.joint_type.numpy()
    coordinate = model.joint_q_start.numpy()
    arrays = {
        name: getattr(model, f"joint_{name}").numpy().astype(np.float64)
        for name in (
            "armature",
            "friction",
            "friction_ratio",
            "damping",
            "stiffness",
            "effort_limit",
            "velocity_limit",
            "target_ke",
            "target_kd",
            "rest_q",
        )
    }
    lower, upper = (getattr(model, f"joint_limit_{x}").numpy().astype(np.float64) for x in ("lower", "upper"))
    nearest, farthest = model.joint_min_distance.numpy(), model.joint_max_distance.numpy()
    mode = model.joint_target_mode.numpy()
    quaternion, turn = (look_up(types[joints], x) for x in ("has_quaternion", "rotation_at"))
    counts = np.where(keeps, 1, np.diff(first)[joints])
    whole = np.flatnonzero(quaternion)
    if len(whole):
        places = (coordinate[joints[whole]] + turn[whole])[:, None] + np.arange(4)
        out[rows[whole][:, None], REST_TURN + np.arange(4)] = arrays["rest_q"][places]
    for i in range(int(counts.max())):
        here = np.flatnonzero(counts > i)
        at, j, c = rows[here], joints[here], DOFS_AT + DOF_NUMBERS * i
        out[at, c + SPEED], out[at, c + EFFORT] = MAXVAL, MAXVAL
        out[at, c + LOWER], out[at, c + UPPER] = -MAXVAL, MAXVAL
        if i == 0:
            length = keeps[here]
            low, high = nearest[j[length]], farthest[j[length]]
            out[at[length], c + LOWER] = np.where(low >= 0.0, low, -MAXVAL)
            out[at[length], c + UPPER] = np.where(high >= 0.0, high, MAXVAL)
            here = here[~length]
            at, j = rows[here], joints[here]
        if not len(here):
            continue
        d = first[j] + i
        position = np.isin(mode[d], (JointTargetMode.POSITION, JointTargetMode.POSITION_VELOCITY))
        velocity = np.isin(mode[d], (JointTargetMode.VELOCITY, JointTargetMode.POSITION_VELOCITY))
        out[at, c + KE] = np.where(position, arrays["target_ke"][d], 0.0)
        out[at, c + KD] = np.where(position | velocity, arrays["target_kd"][d], 0.0)
        out[at, c + KV] = np.where(velocity, arrays["target_kd"][d], 0.0)
        out[at, c + CLIP] = mode[d] == JointTargetMode.EFFORT
        out[at, c + EFFORT], out[at, c + SPEED] = arrays["effort_limit"][d], arrays["velocity_limit"][d]
        out[at, c + LOSS], out[at, c + ARMATURE] = arrays["friction"][d], arrays["armature"][d]
        out[at, c + LOSS_IN_MOTION] = arrays["friction"][d] * arrays["friction_ratio"][d]
        out[at, c + DAMPING], out[at, c + STIFFNESS] = arrays["damping"][d], arrays["stiffness"][d]
        scalar = ~quaternion[here]
        out[at[scalar], c + LOWER], out[at[scalar], c + UPPER] = lower[d[scalar]], upper[d[scalar]]
        placed = scalar | (i < turn[here])
        out[at[placed], c + REST] = arrays["rest_q"][coordinate[j[placed]] + i]


def joint_rows(model, joints: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The constants of joints, ``[n, JOINT_NUMBERS]``; identities for joints -1.

    Args:
        model: the model.
        joints: their indices; a joint that keeps a distance may have a row for it, and one for its degrees of freedom.
        lengths: which rows are such distances.
    """
    out = np.zeros((len(joints), JOINT_NUMBERS))
    for at in (LINEAR_FRAME, PARENT_FRAME, CHILD_FRAME, REST_TURN):
        out[:, at + 3] = 1.0
    for i in range(6):
        out[:, DOFS_AT + DOF_NUMBERS * i + LOWER], out[:, DOFS_AT + DOF_NUMBERS * i + UPPER] = -MAXVAL, MAXVAL
    rows = np.flatnonzero(joints >= 0)
    if len(rows):
        _frames(model, out, rows, joints[rows], lengths[rows])
        _dofs(model, out, rows, joints[rows], lengths[rows])
    return out


def numbers_of(model, joint: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The constants of joints in blocks, ``[blocks, JOINT_NUMBERS, width]``. Lanes without a joint have identities."""
    rows = joint_rows(model, joint.ravel(), np.repeat(lengths, joint.shape[1]))
    return np.ascontiguousarray(rows.reshape(-1, joint.shape[1], JOINT_NUMBERS).transpose(0, 2, 1))
