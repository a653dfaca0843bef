"""The rows of loop joints, equality constraints and limits of ball joints of a model, as `kernels.solvers.rows.closure_rows` has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from newton_like.collision.laws import soft_numbers
from newton_like.dynamics.internal.frames import NONE, WORLD
from newton_like.dynamics.loops import Loops, axes_of, loops_of
from newton_like.dynamics.names import names_of
from newton_like.dynamics.tendons import tendons_of
from newton_like.geometry.transforms import quat_inverse, quat_multiply, quat_rotate
from newton_like.kernels.dynamics.loops import ANGULAR, CHILD_DIRECTION, LINEAR, LOOP, PARENT_ANCHOR, PARENT_DIRECTION
from newton_like.kernels.parameters.gains import NO_LIMIT, WEAK
from newton_like.kernels.solvers.rows.closure_rows import (
    ANGLE_SHARE,
    CHILD_FRAME,
    DRIVE,
    DRY,
    GOAL_AXIS,
    HARD,
    LEADER_REST,
    LENGTH,
    LIMIT,
    MIDDLE,
    OUTER,
    OWN_REST,
    PARENT_FRAME,
    POLYNOMIAL,
    REACHED,
    REFERENCE,
    ROW_GOAL,
    ROW_LAW,
    SOFT,
    SOFT_WEIGHT,
    SPIN,
    SPRING,
    STOP,
    SWING,
    TENDONS,
    TILT,
    TOWARDS,
    TURN,
)
from newton_like.kernels.solvers.rows.equality_rows import BETWEEN
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.model.mujoco.equality_settings import equalities_of, switched_off
from newton_like.solvers.featherstone.ball_limits import stops_of
from newton_like.solvers.featherstone.idle_rows import idle_rows
from newton_like.solvers.featherstone.loop_weights import InverseMasses, references_of
from newton_like.types import JointTargetMode

KIND, LAW, PARENT, CHILD, SOURCE = range(5)

MIMIC, ROPE, POLYNOMIAL_ROW, TIE, PASSIVE, MOTOR, RUBBING, BOUND, ANGLE_BOUND, SWING_BOUND = range(10)
"""Kinds of couplings: mimic joints, DISTANCE joints, rows of equality constraints, ties of tendons; forces along dofs of loop joints
(springs and dampers, drives, dry friction, limits); limits of ball joints."""

OF_ROWS = PASSIVE
"""Kinds from here on exist where there are rows for them."""

NO_COUPLING = (-1, -1, -1)

_OF_STOPS = {SPIN: ANGLE_BOUND, SWING: SWING_BOUND}
"""Kinds of couplings of limits of ball joints, by the kinds of their rows."""

STEEPEST = np.radians(85.0)
"""Loop joints with three rotations have forces along these where limits keep the second angle below."""


@dataclass
class Row:
    """A row.

    Attributes:
        kind, law: see `kernels.solvers.rows.closure_rows`.
        ends: links of the parent and of the child; of TENDONS the leading and the tied tendon, counted in the articulation.
        vectors: anchors and directions, or the coefficients of a polynomial, ``[LOOP]``.
        numbers: of the law.
        source: which row of the dynamics library it is; -1: none.
        targets: of a drive: where the targets of its coordinate and of its dof are in the control.
        joint: the loop joint, or the first joint of an equality constraint; -1 for rows of tendons.
        dofs: of a polynomial: its dofs, counted from the first one of the articulation.
        coupling: the coupling that the row solves: its kind, its index and its part, see
            :class:`newton_like.solvers.featherstone.couplings.Coupling`.
    """

    kind: int
    law: int
    ends: tuple[int, int]
    vectors: np.ndarray
    numbers: tuple = ()
    source: int = -1
    targets: tuple[int, int] = (-1, -1)
    joint: int = -1
    dofs: tuple[int, ...] = ()
    coupling: tuple[int, int, int] = NO_COUPLING


class _Law(NamedTuple):
    """A force along a dof of a loop joint.

    Attributes:
        name: of the force, in messages.
        coupling: kind of the coupling that it is.
        law, numbers, targets: see :class:`Row`.
        acts: whether there is a force now. Other laws stand for numbers that will be edited.
    """

    name: str
    coupling: int
    law: int
    numbers: tuple
    targets: tuple[int, int] = (-1, -1)
    acts: bool = True


@dataclass
class SolverRows:
    """The rows of all articulations of a model.

    Attributes:
        loops: those of the dynamics library.
        rows: kind, law, link of the parent, link of the child and row of the dynamics library, ``[articulation_count, 5, rows]``. Rows with
            laws before DRIVE come first; rows that an articulation lacks are NO_ROW.
        numbers: vectors, then numbers of the law, ``[articulation_count, rows, LOOP + ROW_LAW]``.
        targets: of drives, ``[articulation_count, rows, 2]``; see :class:`Row`.
        joints: the joint of each row, ``[articulation_count, rows]``; -1 for rows that an articulation lacks.
        couplings: the coupling of each row, ``[articulation_count, rows, 3]``; see :class:`Row`.
        idle: which rows no joint moves, ``[articulation_count, rows]``; steps leave them out.
        soft_followers: mimic joints whose relation is a row, or switched off.
        follower_kinds: what articulations with the same of these have in common.
    """

    loops: Loops
    rows: np.ndarray
    numbers: np.ndarray
    targets: np.ndarray
    joints: np.ndarray
    couplings: np.ndarray
    idle: np.ndarray
    soft_followers: frozenset = field(default_factory=frozenset)
    follower_kinds: list[bytes] = field(default_factory=list)


def solver_rows(model) -> SolverRows:
    """The rows of a model.

    Raises:
        ValueError: a loop joint connects two articulations, or has a force that is not solved; an equality constraint is out of range.
    """
    loops = loops_of(model, distances=True, polynomials=True)
    found, followers = _Finder(model, loops).find()
    _weigh(model, found)
    for listed in found:
        listed.sort(key=lambda row: (row.law >= DRIVE, row.law))
    count = max((len(listed) for listed in found), default=0)
    rows = np.zeros((len(found), 5, count), dtype=int)
    rows[:, PARENT : CHILD + 1] = NONE
    rows[:, SOURCE] = -1
    numbers = np.zeros((len(found), count, LOOP + ROW_LAW))
    targets, joints = np.full((len(found), count, 2), -1), np.full((len(found), count), -1)
    couplings = np.full((len(found), count, 3), NO_COUPLING)
    for a, listed in enumerate(found):
        for r, row in enumerate(listed):
            rows[a, :, r] = row.kind, row.law, *row.ends, row.source
            numbers[a, r, :LOOP] = row.vectors
            numbers[a, r, LOOP : LOOP + len(row.numbers)] = row.numbers
            targets[a, r], joints[a, r], couplings[a, r] = row.targets, row.joint, row.coupling
    kinds: list[list[int]] = [[] for _ in found]
    owner, first = model.joint_articulation.numpy(), model.articulation_start.numpy()
    for j in sorted(followers):
        kinds[owner[j]].append(int(j - first[owner[j]]))
    of_followers = [repr(listed).encode() for listed in kinds]
    idle = idle_rows(model, rows, numbers)
    return SolverRows(loops, rows, numbers, targets, joints, couplings, idle, followers, of_followers)


def _weigh(model, found: list[list[Row]]) -> None:
    """Completes the numbers of soft rows with their inverse masses, those of MuJoCo's ``mj_diagApprox``, and the vectors of rigid rows of
    lengths with REFERENCE."""
    masses = None
    owner, start = model.joint_articulation.numpy(), model.joint_qd_start.numpy()
    first = start[model.articulation_start.numpy()]
    for a, listed in enumerate(found):
        for row in listed:
            if row.law == HARD and row.kind in (LENGTH, TENDONS):
                tendon = row.ends[1] if row.kind == TENDONS else -1
                row.vectors[REFERENCE] = references_of(model).of_row(a, tendon, row.ends)
                row.vectors[REACHED] = 1.0
            if row.law not in (SOFT, STOP):
                continue
            masses = masses or InverseMasses(model)
            if row.law == STOP and owner[row.joint] >= 0:
                # the mean of the dofs of the ball joint
                dof = int(start[row.joint] - first[a])
                weight = sum(masses.of_dof(a, dof + i) for i in range(3)) / 3.0
            elif row.law == STOP:
                weight = masses.of_ends(a, row.ends, True)
            elif row.kind == TENDONS:
                weight = sum(masses.of_tendon(a, n) for n in row.ends if n >= 0)
            elif row.kind == POLYNOMIAL:
                weight = sum(masses.of_dof(a, dof) for dof in row.dofs)
            else:
                turns = row.kind in (ANGULAR, TILT)
                # MuJoCo's approximation of the response of a row is without the factor on its angle
                share = row.vectors[ANGLE_SHARE] if turns else 1.0
                weight = masses.of_ends(a, row.ends, turns) / share**2
            row.numbers = (*row.numbers[:SOFT_WEIGHT], weight)


class _Finder:
    """Finds the rows of a model."""

    def __init__(self, model, loops: Loops):
        self.model, self.loops = model, loops
        self.names = names_of(model)
        self.equalities = equalities_of(model)
        self.off = switched_off(model)
        self.soft: dict[int, tuple] = {}
        self.angle_share: dict[int, float] = {}
        if self.equalities is not None:
            targets, rules = self.equalities["target"], self.equalities["rules"]
            self.soft = {int(j): self._softness(i) for i, j in enumerate(targets) if j >= 0 and rules[i]}
            # MuJoCo's rows of rotations are parts of quaternions, which change half as fast as angles
            scales = self.equalities["torquescale"]
            self.angle_share = {
                int(j): 0.5 * abs(float(scales[i])) for i, j in enumerate(targets) if int(j) in self.soft
            }
        names = (
            "joint_type", "joint_enabled", "joint_parent", "joint_articulation", "joint_X_p", "joint_X_c", "joint_q_start",
            "joint_qd_start", "joint_dof_dim", "joint_min_distance", "joint_max_distance", "joint_target_mode", "joint_target_ke",
            "joint_target_kd", "joint_effort_limit", "joint_friction", "joint_friction_ratio", "joint_damping", "joint_stiffness",
            "joint_rest_q", "joint_limit_lower", "joint_limit_upper", "joint_mimic_joint", "joint_mimic_coeffs",
        )  # fmt: skip
        for name in names:
            setattr(self, name.removeprefix("joint_"), getattr(model, name).numpy())

    def _softness(self, i: int) -> tuple:
        return tuple(soft_numbers(self.equalities["solref"][i], self.equalities["solimp"][i]))

    def find(self) -> tuple[list[list[Row]], frozenset]:
        found: list[list[Row]] = []
        for a, (joints, ranges) in enumerate(zip(self.loops.joints, self.loops.ranges, strict=True)):
            listed = []
            for j, (start, end) in zip(joints, ranges, strict=True):
                if self.enabled[j] and not self.off[j]:
                    own = self._closing(a, j, start, end) + self._along(j)
                    for row in own:
                        row.joint = j
                    listed += own
            found.append(listed)
        owner = {j: a for a, joints in enumerate(self.loops.joints) for j in joints}
        for j, kind, law, ends, vectors, numbers in stops_of(self.model):
            row = Row(kind, law, ends, vectors, numbers, joint=j, coupling=(_OF_STOPS[kind], j, 0))
            found[owner.get(j, int(self.articulation[j]))].append(row)
        followers = self._add_equalities(found)
        return found, followers

    def _row(self, j: int):
        return JOINT_TYPES[int(self.type[j])]

    def _name(self, j: int) -> str:
        return f"loop joint '{self.model.joint_label[j]}' (index {j})"

    def _closing(self, a: int, j: int, start: int, end: int) -> list[Row]:
        """The rows that block directions, and those of limits of a distance."""
        law = (SOFT, self.soft[j]) if j in self.soft else (HARD, ())
        rows, numbers = self.loops.rows[a], self.loops.numbers[a]
        if j in self.soft:
            numbers = numbers.copy()
            numbers[rows[0] == ANGULAR, ANGLE_SHARE] = self.angle_share[j]
        kinds = rows[0].copy()
        turns = [r for r in range(start, end) if kinds[r] == ANGULAR]
        if j in self.soft and len(turns) == 3:
            kinds[turns], numbers[turns] = TILT, self._tilts(j)
        found = [
            Row(int(kinds[r]), law[0], (int(rows[1, r]), int(rows[2, r])), numbers[r], law[1], r)
            for r in range(start, end)
        ]
        if self._row(j).limits_distance:
            shortest, longest = float(self.min_distance[j]), float(self.max_distance[j])
            vectors = np.zeros(LOOP)
            vectors[:3], vectors[3:6] = self.X_p[j][:3], self.X_c[j][:3]
            varies = self._may_vary("joint_min_distance", "joint_max_distance")
            if shortest == longest and shortest >= 0.0:
                vectors[PARENT_DIRECTION] = shortest
                found.append(Row(LENGTH, *law[:1], self._ends(j), vectors, law[1], coupling=(ROPE, j, 0)))
            elif varies or max(shortest, longest) >= 0.0:
                bounds = (shortest if shortest >= 0.0 else -NO_LIMIT, longest if longest >= 0.0 else NO_LIMIT)
                found.append(Row(LENGTH, LIMIT, self._ends(j), vectors, bounds, coupling=(ROPE, j, 0)))
        return found

    def _tilts(self, j: int) -> np.ndarray:
        """The vectors of the three rows of rotations of a soft weld."""
        first, second = (x[j][3:].astype(np.float64) for x in (self.X_p, self.X_c))
        vectors = np.zeros((3, LOOP))
        vectors[:, ANGLE_SHARE] = self.angle_share[j]
        vectors[:, BETWEEN : BETWEEN + 4] = quat_multiply(second, quat_inverse(first))
        for axis, row in zip(np.eye(3), vectors, strict=True):
            row[PARENT_DIRECTION : PARENT_DIRECTION + 3] = quat_rotate(first, axis)
        return vectors

    def _ends(self, j: int) -> tuple[int, int]:
        parent = int(self.parent[j])
        link = self.names.link
        return (int(link[parent]) if parent >= 0 else WORLD), int(link[int(self.names.child[j])])

    def _along(self, j: int) -> list[Row]:
        """The rows of forces along the directions in which a loop joint moves."""
        linear, angular = (int(n) for n in self.dof_dim[j])
        first, coordinate = int(self.qd_start[j]), int(self.q_start[j])
        found = []
        if self._row(j).floats:
            return found
        frame = axes_of(self.model, j)
        ball = self._row(j).turns_only
        for n in range(linear + angular):
            laws = self._laws(first + n, coordinate if ball else coordinate + n, ball)
            if not laws:
                continue
            turns = n >= linear
            if turns and angular == 3 and not ball:
                acting = [law for law in laws if law.acts]
                if acting:
                    self._check_middle(j, first + linear + 1, acting)
                elif not self._is_bounded(first + linear + 1):
                    continue
            for law in laws:
                kind, ends, vectors = self._direction(j, frame, n, law)
                coupling = law.coupling, j, n
                found.append(Row(kind, law.law, ends, vectors, law.numbers, -1, law.targets, coupling=coupling))
        return found

    def _is_bounded(self, middle: int) -> bool:
        """Whether the limits of the second of three rotations keep the axes of the others apart."""
        return max(-self.limit_lower[middle], self.limit_upper[middle]) <= STEEPEST

    def _check_middle(self, j: int, middle: int, acting: list[_Law]) -> None:
        """Raises ValueError for a joint with forces along three rotations whose second angle may come to a right angle: there, the other
        two have no values."""
        if not self._is_bounded(middle):
            raise ValueError(
                f"{self._name(j)} turns about 3 axes and has forces along them ({', '.join(law.name for law in acting)}), which are solved"
                f" only where limits keep the second angle within +-{np.degrees(STEEPEST):.0f} degrees: at 90 degrees the other two angles"
                " have no values. Set limit_lower and limit_upper of the second axis, set the forces to 0, or use a ball joint"
            )

    def _direction(self, j: int, frame, n: int, law: _Law) -> tuple[int, tuple[int, int], np.ndarray]:
        """Kind, ends and vectors of a row along dof n of a loop joint."""
        linear, angular = (int(x) for x in self.dof_dim[j])
        ends = self._ends(j)
        if n < linear:
            return LINEAR, ends, self._vectors(j, frame, n, linear)
        if self._row(j).turns_only:
            if law.numbers[ROW_GOAL:]:
                return TOWARDS, ends, self._towards(j, n)
            return TURN, ends, self._vectors(j, frame, n, linear)
        if angular == 2 and n == linear + 1:
            return TURN, ends[::-1], self._second_turn(j, frame)
        if angular == 3:
            return self._third_turn(j, frame, n - linear, ends)
        return TURN, ends, self._vectors(j, frame, n, linear)

    def _towards(self, j: int, n: int) -> np.ndarray:
        """Of a ball joint: anchors, and axis n of that of the parent."""
        vectors = np.zeros(LOOP)
        vectors[PARENT_FRAME : PARENT_FRAME + 4], vectors[CHILD_FRAME : CHILD_FRAME + 4] = (
            self.X_p[j][3:],
            self.X_c[j][3:],
        )
        vectors[GOAL_AXIS + n] = 1.0
        return vectors

    def _third_turn(self, j: int, frame, k: int, ends) -> tuple[int, tuple[int, int], np.ndarray]:
        """Of three rotations: about a, which is fixed to the parent, b, and c, which is fixed to the child. With d = a x b, which is c or
        -c, the first angle turns d of the parent to that of the child about a. The third one turns a of the child to that of the parent
        about -c: an angle with the ends swapped. The angle between -a and d of the child is the second one plus a right angle."""
        to_parent, to_child = (x[j][3:].astype(np.float64) for x in (self.X_p, self.X_c))
        a, b, c = frame[1]
        d = np.cross(a, b)
        vectors = np.zeros(LOOP)
        kind, turns, numbers = OUTER, (to_parent, to_parent, to_child), (a, d, d)
        if k == 1:
            kind, numbers = MIDDLE, (-a, d, d)
        elif k == 2:
            turns, numbers, ends = (to_child, to_child, to_parent), (-c, a, a), ends[::-1]
        for at, turn, v in zip((PARENT_DIRECTION, PARENT_ANCHOR, CHILD_DIRECTION), turns, numbers, strict=True):
            vectors[at : at + 3] = quat_rotate(turn, v)
        return kind, ends, vectors

    def _may_vary(self, *names: str) -> bool:
        """Whether numbers of any of these arrays will be edited. Rows of such numbers exist where they are zero, too."""
        return not self.model.varying.isdisjoint(names)

    def _vectors(self, j: int, frame, n: int, linear: int) -> np.ndarray:
        x_p, x_c = (x[j].astype(np.float64) for x in (self.X_p, self.X_c))
        sliding, turning = frame
        if n < linear:
            return np.concatenate([x_p[:3], x_c[:3], quat_rotate(x_p[3:], sliding[n]), np.zeros(3)])
        k = n - linear
        vectors = np.zeros(LOOP)
        across = turning[(k + 1) % 3]
        vectors[PARENT_DIRECTION : PARENT_DIRECTION + 3] = quat_rotate(x_p[3:], turning[k])
        vectors[PARENT_ANCHOR : PARENT_ANCHOR + 3] = quat_rotate(x_p[3:], across)
        vectors[CHILD_DIRECTION : CHILD_DIRECTION + 3] = quat_rotate(x_c[3:], across)
        return vectors

    def _second_turn(self, j: int, frame) -> np.ndarray:
        """Of two rotations: about a, which is fixed to the parent, and then about b, which is fixed to the child. The first angle turns b
        of the parent to that of the child. The second one turns a of the child to that of the parent, about -b: a turn with the ends
        swapped."""
        a, b = frame[1][:2]
        to_parent, to_child = (x[j][3:].astype(np.float64) for x in (self.X_p, self.X_c))
        vectors = np.zeros(LOOP)
        vectors[PARENT_DIRECTION : PARENT_DIRECTION + 3] = quat_rotate(to_child, -b)
        vectors[PARENT_ANCHOR : PARENT_ANCHOR + 3] = quat_rotate(to_child, a)
        vectors[CHILD_DIRECTION : CHILD_DIRECTION + 3] = quat_rotate(to_parent, a)
        return vectors

    def _laws(self, i: int, coordinate: int, whole: bool) -> list[_Law]:
        """The forces along dof i. `whole`: its coordinates are a quaternion, from `coordinate` on."""
        laws = []
        stiffness, damping = float(self.stiffness[i]), float(self.damping[i])
        rest = 0.0 if whole else float(self.rest_q[coordinate])
        # behind the effort
        towards = (0.0, *self.rest_q[coordinate : coordinate + 4].tolist()) if whole else ()
        acts = stiffness > 0.0 or damping > 0.0
        if acts or self._may_vary("joint_stiffness", "joint_damping"):
            name = "stiffness" if stiffness > 0.0 else "damping"
            goal = towards if stiffness > 0.0 or self._may_vary("joint_stiffness") else ()
            laws.append(_Law(name, PASSIVE, SPRING, (stiffness, damping, rest, 0.0, *goal), acts=acts))
        mode = int(self.target_mode[i])
        ke = float(self.target_ke[i]) if mode & JointTargetMode.POSITION else 0.0
        kd = float(self.target_kd[i]) if mode & (JointTargetMode.POSITION | JointTargetMode.VELOCITY) else 0.0
        acts = ke > 0.0 or kd > 0.0
        follows = mode & (JointTargetMode.POSITION | JointTargetMode.VELOCITY)
        gains_vary = follows and self._may_vary("joint_target_ke", "joint_target_kd")
        if acts or gains_vary or self._may_vary("joint_target_mode"):
            follows_turns = whole and (ke > 0.0 or self._may_vary("joint_target_ke", "joint_target_mode"))
            targets = coordinate if follows_turns or not whole else -1, (i if mode & JointTargetMode.VELOCITY else -1)
            effort = float(self.effort_limit[i])
            law = DRIVE if effort < WEAK or self._may_vary("joint_effort_limit") else SPRING
            goal = (0.0, 0.0, 0.0, 1.0) if follows_turns else ()
            laws.append(_Law("a drive", MOTOR, law, (ke, kd, 0.0, 0.0, effort, *goal), targets, acts))
        acts = self.friction[i] > 0.0
        if acts or self._may_vary("joint_friction"):
            forces = float(self.friction[i]), float(self.friction[i] * self.friction_ratio[i])
            laws.append(_Law("friction", RUBBING, DRY, forces, acts=acts))
        lower, upper = float(self.limit_lower[i]), float(self.limit_upper[i])
        acts = lower > -NO_LIMIT or upper < NO_LIMIT
        if acts or self._may_vary("joint_limit_lower", "joint_limit_upper"):
            laws.append(_Law("limits", BOUND, LIMIT, (max(lower, -NO_LIMIT), min(upper, NO_LIMIT)), acts=acts))
        return laws

    def _add_equalities(self, found: list[list[Row]]) -> frozenset:
        """Adds polynomials and soft mimic relations. Returns the followers of these."""
        # relations that are off are no couplings either
        followers = set(np.flatnonzero(self.off & (self.mimic_joint >= 0)).tolist())
        for j in self.soft:
            if self.mimic_joint[j] >= 0:
                c0, c1 = (float(x) for x in self.mimic_coeffs[j])
                followers.add(j)
                self._add_polynomial(found, j, int(self.mimic_joint[j]), (c0, c1), (SOFT, self.soft[j]), (MIMIC, j, 0))
        rows = self.equalities
        # places of the enabled rows
        enabled = [] if rows is None else np.flatnonzero(equalities_of(self.model, every=True)["enabled"]).tolist()
        for i in range(0 if rows is None else len(rows["target"])):
            if rows["target"][i] >= 0:
                continue
            law = (SOFT, self._softness(i)) if rows["rules"][i] else (HARD, ())
            coefficients = rows["polycoef"][i].tolist()
            self._add_polynomial(
                found,
                int(rows["joint1"][i]),
                int(rows["joint2"][i]),
                coefficients,
                law,
                (POLYNOMIAL_ROW, enabled[i], 0),
            )
        self._add_ties(found)
        return frozenset(followers)

    def _add_ties(self, found) -> None:
        """Adds the equality constraints of tendons."""
        tendons = self.model.tendons
        if not any(tendon.ties for tendon in tendons):
            return
        places = {n: (a, i) for a, own in enumerate(tendons_of(self.model).index) for i, n in enumerate(own)}
        for n, tendon in enumerate(tendons):
            what = f"tendon '{tendon.label}' (index {n})"
            for part, tie in enumerate(tendon.ties):
                if not tie.enabled:
                    continue
                tie.check(what, n, len(tendons))
                a, own = places[n]
                owner, leader = places[n + tie.leader] if tie.leader else (a, -1)
                if owner != a:
                    raise ValueError(
                        f"{what} is tied to tendon '{tendons[n + tie.leader].label}' (index {n + tie.leader}) of another articulation;"
                        " make one of both by builder.merge_articulations"
                    )
                vectors = np.zeros(LOOP)
                used = tie.polycoef if tie.leader else tie.polycoef[:1]
                vectors[: len(used)] = used
                vectors[OWN_REST], vectors[LEADER_REST] = tie.rest
                law = HARD if tie.solref is None else SOFT
                numbers = () if tie.solref is None else tuple(soft_numbers(tie.solref, tie.solimp))
                found[a].append(Row(TENDONS, law, (leader, own), vectors, numbers, coupling=(TIE, n, part)))

    def _add_polynomial(self, found, j: int, leader: int, coefficients, law, coupling) -> None:
        for k in (j, leader):
            if k >= 0 and (not self._row(k).axis_by_axis or sum(self.dof_dim[k]) != 1 or self.articulation[k] < 0):
                raise ValueError(
                    f"an equality constraint ties joint '{self.model.joint_label[k]}' (index {k}), which is not a revolute or prismatic"
                    " joint of an articulation; tie such joints"
                )
        a = int(self.articulation[j])
        if leader >= 0 and self.articulation[leader] != a:
            raise ValueError(
                f"an equality constraint ties joint '{self.model.joint_label[j]}' (index {j}) to joint"
                f" '{self.model.joint_label[leader]}' (index {leader}) of another articulation; make one of both by"
                " builder.merge_articulations"
            )
        vectors = np.zeros(LOOP)
        # without a leader, the polynomial is its constant
        used = coefficients if leader >= 0 else coefficients[:1]
        vectors[: len(used)] = used
        link, child = self.names.link, self.names.child
        ends = (int(link[int(child[leader])]) if leader >= 0 else WORLD, int(link[int(child[j])]))
        first = int(self.qd_start[self.names.start[a]])
        dofs = tuple(int(self.qd_start[k]) - first for k in (j, leader) if k >= 0)
        found[a].append(Row(POLYNOMIAL, *law[:1], ends, vectors, law[1], joint=j, dofs=dofs, coupling=coupling))
