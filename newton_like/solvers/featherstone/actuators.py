"""Actuators of a batch in the solver: the rows that they pull, and the numbers that kernels read of them."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from newton_like.dynamics.matrices import mass_matrix
from newton_like.dynamics.names import names_of
from newton_like.dynamics.tendons import Tendons, tendon_jacobian, tendons_of
from newton_like.geometry.transforms import quat_inverse, quat_multiply, quat_rotate, quat_to_matrix
from newton_like.kernels.dynamics.tendons import AXES, CENTER, END, ITEM_NUMBERS, JOINT, RADIUS, SCALE, SIDE, START
from newton_like.kernels.solvers.actuators import (
    ACC0,
    COGGING,
    ENTRY,
    ENTRY_Q,
    GAIN_PRM,
    LENGTH_RANGE,
    ON_CONTACTS,
    PEAK,
)
from newton_like.kernels.tree import CRANK, TURNING, WRENCH
from newton_like.model.actuators import BIASES, DRIVES, DYNAMIC_NUMBERS, DYNAMICS, GAINS, TIME_CONSTANTS
from newton_like.model.editing.edits import BODIES, OTHERS, edits_of
from newton_like.model.joint_types import JOINT_TYPES
from newton_like.solvers.featherstone.force_ranges import ForceRanges, range_numbers
from newton_like.solvers.featherstone.muscle_ranges import length_ranges

_WORLD = -1
_ORDER = (
    "gear", "gainprm", "biasprm", "dynprm", "ctrlrange", "forcerange", "actrange", "lengthrange", "acc0", "factor", "offset",
)  # fmt: skip
"""The arrays ``actuator_*`` in the order of a record of `kernels.solvers.actuators`. Of the gears it has the first one."""


class ActuatorTable:
    """The actuators of a model, by articulations, for one version of the model.

    Attributes:
        index: for each articulation, indices of its actuators in the model, in their order there.
        integers: types of gain, bias and dynamics, and whether it is early, for each of them.
        tendons: the index in the model of the tendon that each of them pulls; -1: none.
        lines: items of the row of each of them, see :class:`newton_like.dynamics.tendons.TendonItems`; None: no row of its own.
        numbers: ``ITEM_NUMBERS`` numbers of each item.
        entries: entry of a drive and the coordinate or dof of it, or ON_CONTACTS and the link, counted from the first one of the
            articulation.

    Raises:
        ValueError: an actuator pulls several articulations or none; its joint has no such coordinate; its gain or bias depends on a
            length that is not supported.
    """

    def __init__(self, model):
        count = model.articulation_count
        self.index: list[list[int]] = [[] for _ in range(count)]
        self.integers, self.tendons, self.lines, self.numbers, self.entries = (
            [[] for _ in range(count)] for _ in range(5)
        )
        if not model.actuators:
            return
        self._names, self._labels, self._pulled = names_of(model), model.joint_label, model.tendons
        names = ("joint_type", "joint_articulation", "joint_q_start", "joint_qd_start", "joint_parent", "joint_child")
        self._joints = {name.removeprefix("joint_"): getattr(model, name).numpy().tolist() for name in names}
        self._anchors = [getattr(model, name).numpy().astype(np.float64) for name in ("joint_X_p", "joint_X_c")]
        self._shapes = model.shape_body.numpy().tolist(), model.shape_transform.numpy().astype(np.float64)
        self._gears = model.actuator_gear.numpy().astype(np.float64)
        for n, actuator in enumerate(model.actuators):
            self._add(n, actuator)

    def _add(self, n: int, actuator) -> None:
        what = f"actuator '{actuator.label}' (index {n})"
        tendon, line, numbers, entry = -1, None, None, (0, 0)
        if actuator.transmission == "tendon":
            tendon = actuator.target
            if tendon >= len(self._pulled):
                raise ValueError(
                    f"{what} pulls the tendon {tendon}, but the model has {len(self._pulled)}; remove it from model.actuators"
                )
            a = None
        elif actuator.transmission == "site":
            a, line, numbers = self._site(what, n, actuator)
        elif actuator.transmission == "slidercrank":
            a, line, numbers = self._crank(what, actuator)
        elif actuator.transmission == "body":
            a, entry = int(self._names.articulation[actuator.target]), (ON_CONTACTS, self._link(actuator.target))
        else:
            a, line, numbers, entry = self._joint(what, n, actuator)
        if a is None:
            a = self._owner(tendon)
        if a < 0:
            raise ValueError(f"{what} acts on an entity that is in no articulation; name an entity of an articulation")
        if line is not None and not numbers[0][SCALE] and line[0][0] == WRENCH and self._needs_length(actuator):
            raise ValueError(
                f"{what}: the length of a site without reference, or of a free joint, is always zero; give a muscle or a motor with cogging"
                " another target"
            )
        self.index[a].append(n)
        types = GAINS.index(actuator.gain), BIASES.index(actuator.bias), DYNAMICS.index(actuator.dynamics)
        self.integers[a].append((*types, int(actuator.actearly)))
        self.tendons[a].append(tendon)
        self.lines[a].append(line)
        self.numbers[a].append(numbers)
        self.entries[a].append(entry)

    def _owner(self, tendon: int) -> int:
        """The articulation of a tendon; its other parts are checked by `Tendons`."""
        tendon = self._pulled[tendon]
        if tendon.joints:
            return self._joints["articulation"][tendon.joints[0][0]]
        bodies = [self._shapes[0][entry[1]] for entry in tendon.path if entry[0] != "pulley" and entry[1] >= 0]
        owners = [int(self._names.articulation[body]) for body in bodies if body >= 0]
        return owners[0] if owners else -1

    @staticmethod
    def _needs_length(actuator) -> bool:
        return actuator.is_muscle or (actuator.bias == "dcmotor" and actuator.biasprm[COGGING] != 0.0)

    def _link(self, body: int) -> int:
        return _WORLD if body < 0 else int(self._names.link[body])

    def _joint(self, what: str, n: int, actuator) -> tuple:
        joints, j = self._joints, actuator.target
        a, kind = joints["articulation"][j], JOINT_TYPES[joints["type"][j]]
        if a < 0:
            raise ValueError(f"{what}: joint '{self._labels[j]}' closes a loop; name a joint of an articulation")
        first = int(self._names.start[a])
        dofs = joints["qd_start"][j + 1] - joints["qd_start"][j]
        if kind.has_quaternion != (actuator.dof < 0) or actuator.dof >= dofs or kind.limits_distance:
            raise ValueError(
                f"{what}: joint '{self._labels[j]}' (index {j}) has no dof {actuator.dof} that is a length or an angle; give"
                " dof=-1 for a whole BALL or FREE joint, or another joint"
            )
        if actuator.dof >= 0:
            dof = joints["qd_start"][j] - joints["qd_start"][first] + actuator.dof
            coord = joints["q_start"][j] - joints["q_start"][first] + actuator.dof
            if actuator.drive is not None:
                entry = 1 + DRIVES.index(actuator.drive)
                return a, None, None, (entry, coord if entry == 1 else dof)
            numbers = np.zeros(ITEM_NUMBERS)
            numbers[SCALE] = 1.0
            return a, ((JOINT, dof, coord, -2, -2),), [numbers], (0, 0)
        parent, child = (self._link(joints[name][j]) for name in ("parent", "child"))
        gear, inside = self._gears[n], actuator.transmission == "jointinparent"
        torque = np.zeros(ITEM_NUMBERS)
        if kind.turns_only:
            # in the frame of the parent's anchor or of the child's
            torque[SIDE : SIDE + 3] = quat_rotate(self._anchors[0 if inside else 1][j, 3:], gear[:3])
            torque[AXES : AXES + 9] = _turn(*(anchors[j, 3:] for anchors in self._anchors))
            return a, ((TURNING, child, parent, parent if inside else child, -2),), [torque], (0, 0)
        force = np.zeros(ITEM_NUMBERS)
        force[CENTER : CENTER + 3], torque[SIDE : SIDE + 3] = gear[:3], gear[3:]
        items = (WRENCH, child, parent, parent, -2), (WRENCH, child, parent, parent if inside else child, -2)
        return a, items, [force, torque], (0, 0)

    def _site(self, what: str, n: int, actuator) -> tuple:
        bodies, poses = self._shapes
        own, reference = actuator.target, actuator.reference
        gear, numbers = self._gears[n], np.zeros(ITEM_NUMBERS)
        axes = own if reference < 0 else reference
        numbers[START : START + 3] = poses[own, :3]
        numbers[CENTER : CENTER + 3] = quat_rotate(poses[axes, 3:], gear[:3])
        numbers[SIDE : SIDE + 3] = quat_rotate(poses[axes, 3:], gear[3:])
        kind = WRENCH
        if reference >= 0:
            numbers[END : END + 3] = poses[reference, :3]
            numbers[SCALE] = 1.0
        if reference >= 0 and any(actuator.gear[3:]):
            kind, numbers[AXES : AXES + 9] = TURNING, _turn(poses[reference, 3:], poses[own, 3:])
        a = self._owner_of_sites(what, own, axes)
        ends = self._link(bodies[own]), _WORLD if reference < 0 else self._link(bodies[reference])
        return a, ((kind, *ends, self._link(bodies[axes]), -2),), [numbers]

    def _owner_of_sites(self, what: str, *sites: int) -> int:
        """The articulation of sites, of which some may be fixed to the world."""
        bodies = self._shapes[0]
        owners = {int(self._names.articulation[bodies[s]]) for s in sites if bodies[s] >= 0}
        if not owners:
            raise ValueError(
                f"{what} acts on sites of the world only, where forces have no effect; give it a site of a body that moves, or remove it"
            )
        if len(owners) > 1:
            raise ValueError(
                f"{what} acts between {len(owners)} articulations, and is supported within one; make one of them before finalize, by"
                " builder.merge_articulations()"
            )
        return owners.pop()

    def _crank(self, what: str, actuator) -> tuple:
        bodies, poses = self._shapes
        crank, slider = actuator.target, actuator.reference
        numbers = np.zeros(ITEM_NUMBERS)
        numbers[START : START + 3], numbers[END : END + 3] = poses[slider, :3], poses[crank, :3]
        numbers[CENTER : CENTER + 3] = quat_rotate(poses[slider, 3:], np.array([0.0, 0.0, 1.0]))
        numbers[RADIUS] = actuator.rod
        a = self._owner_of_sites(what, crank, slider)
        ends = self._link(bodies[slider]), self._link(bodies[crank])
        return a, ((CRANK, *ends, ends[0], -2),), [numbers]


def _turn(other: np.ndarray, own: np.ndarray) -> np.ndarray:
    """The rotation, as nine numbers, of a body relative to another where frames of both agree; given the frames as quaternions."""
    return quat_to_matrix(quat_multiply(own, quat_inverse(other))).ravel()


_tables: WeakKeyDictionary = WeakKeyDictionary()


def table_of(model) -> ActuatorTable:
    """The actuators of a model; found again after :meth:`Model.notify_changed`.

    Raises:
        ValueError: see :class:`ActuatorTable`.
    """
    known = _tables.get(model)
    if known is None or known[0] != (model.version, len(model.actuators)):
        known = _tables[model] = (model.version, len(model.actuators)), ActuatorTable(model)
    return known[1]


def add_lines(model, tendons: Tendons) -> None:
    """Adds the rows of actuators that pull no tendon."""
    if model.actuators:
        table = table_of(model)
        items = [[line for line in x if line is not None] for x in table.lines]
        tendons.add_lines(items, [[y for line in x if line is not None for y in line] for x in table.numbers])


class ActuatorWatch:
    """The actuators of a model, and its bodies that are relieved of weight, as a solver knows them.

    Attributes:
        table: the :class:`ActuatorTable`; None: the model has none.
        relieved: whether a body is relieved of weight.
        ranges: of sums of forces, see :class:`newton_like.solvers.featherstone.force_ranges.ForceRanges`.
    """

    def __init__(self, model):
        self.accept(model)

    def accept(self, model) -> None:
        """Records the actuators as the known ones."""
        self.table = table_of(model) if model.actuators else None
        self.relieved = is_relieved(model)
        self.ranges = ForceRanges(model)
        self._known, self._since = list(model.actuators), edits_of(model).version
        counts = [TIME_CONSTANTS.get(actuator.dynamics, 0) for actuator in self._known]
        self._are_times = np.array(counts, dtype=int)[:, None] > np.arange(DYNAMIC_NUMBERS)
        self._check_times(model)

    def _check_times(self, model) -> None:
        if not self._known:
            return
        numbers = model.actuator_dynprm.numpy()
        wrong = np.argwhere(self._are_times & ~(numbers >= 0.0))
        if len(wrong):
            n, k = wrong[0]
            raise ValueError(
                f"actuator '{self._known[n].label}' (index {n}): the time constant {numbers[n, k]:g} in actuator_dynprm must be at"
                " least 0"
            )

    def changed(self, model) -> bool:
        """Whether actuators came or went since :meth:`accept`, or were replaced.

        Raises:
            ValueError: a time constant is below zero.
        """
        if len(model.actuators) != len(self._known):
            return True
        edits = edits_of(model)
        if max(edits.last[OTHERS], edits.last[BODIES]) <= self._since:
            return False
        # the comparison of lists begins with the identity of objects
        if self.relieved != is_relieved(model) or list(model.actuators) != self._known or self.ranges.changed(model):
            return True
        self._check_times(model)
        self._since = edits.version
        return False

    def kinds(self, articulations: int) -> list[bytes]:
        """What the actuators of each articulation have in common with those of others that can share a batch with it."""
        ranges = self.ranges.kinds(articulations)
        if self.table is None:
            return ranges
        t = self.table
        parts = zip(
            t.integers,
            t.entries,
            (_local(x) for x in t.tendons),
            ([y is None for y in x] for x in t.lines),
            strict=True,
        )
        return [repr(x).encode() + y for x, y in zip(parts, ranges, strict=True)]


def _local(tendons: list[int]) -> list[int]:
    """Indices of tendons relative to the first one."""
    first = min((n for n in tendons if n >= 0), default=0)
    return [n - first if n >= 0 else -1 for n in tendons]


def weights(model) -> np.ndarray | None:
    """Shares of the weight of bodies that are taken away, ``[body_count]``; None: the model has no such shares."""
    if "mujoco:gravcomp" not in model.custom_attributes:
        return None
    return model.mujoco.gravcomp.numpy().astype(np.float64)


def is_relieved(model) -> bool:
    """Whether some body is relieved of weight."""
    shares = weights(model)
    return shares is not None and bool(shares.any())


class ActuatorRows:
    """The actuators of a batch.

    Args:
        batch: a :class:`newton_like.programs.template.Batch`, whose clusters have the same actuators.
        watch: the actuators of its model.
        tendons: the :class:`newton_like.dynamics.tendons.Tendons` of the model; None: there are none.

    Attributes:
        numbers, arrays: fields of the kernels' ``Tree``.
        summed: whether sums of forces have ranges.
        index: the actuators of each cluster in the model, ``[count, actuators]``.
    """

    def __init__(self, batch, watch: ActuatorWatch, tendons: Tendons | None):
        self.batch, self._known = batch, None
        self._ranges: dict[int, list[float]] = {}
        self.index = np.zeros((batch.count, 0), dtype=int)
        self.numbers, self.arrays = {"actuators": 0, "adhesive": 0, "relieved": int(watch.relieved)}, {}
        self._pulled, self._lines = [[] for _ in batch.articulations], 0
        self._bind(watch, tendons)
        flags = watch.ranges.flags(batch, self._pulled[0], self._lines)
        self.summed = len(flags) > 0
        if self.summed:
            rows = self.arrays.get("actuator_table", np.zeros(0, dtype=int))
            self.arrays["actuator_table"] = np.concatenate([rows, flags])

    def _bind(self, watch: ActuatorWatch, tendons: Tendons | None) -> None:
        table, batch, template = watch.table, self.batch, self.batch.template
        if tendons is not None:
            trees = range(template.trees)
            self._pulled = [[n for i in trees for n in tendons.index[int(a) + i]] for a in batch.articulations]
            self._lines = len(self._pulled[0])
        if table is None:
            return
        own = [[n for i in range(template.trees) for n in table.index[a + i]] for a in batch.articulations]
        self.index = np.array(own, dtype=int).reshape(batch.count, len(own[0]))
        self.numbers["actuators"] = self.index.shape[1]
        if not self.index.size:
            return
        start = int(batch.articulations[0])
        pulled = self._pulled[0]
        rows, line = [], len(pulled)
        for i in range(template.trees):
            a, first = start + i, int(template.tree_at[i])
            for k, integers in enumerate(table.integers[a]):
                entry, place = table.entries[a][k]
                if entry == ON_CONTACTS:
                    place += first
                elif entry:
                    place += int(template.q_at[first] if entry == ENTRY_Q else template.dof_at[first])
                row = -1
                if table.tendons[a][k] >= 0:
                    row = pulled.index(table.tendons[a][k])
                elif table.lines[a][k] is not None:
                    row, line = line, line + 1
                rows.append((*integers, row, entry, place))
        self._lines = line
        self.arrays = {"actuator_table": np.array(rows, dtype=int).reshape(-1)}
        self.numbers["adhesive"] = int(any(row[ENTRY] == ON_CONTACTS for row in rows))

    @property
    def acts(self) -> bool:
        """Whether there is anything to do in a step."""
        return self.numbers["actuators"] > 0 or self.numbers["relieved"] > 0 or self.summed

    def vectors(self, model) -> np.ndarray:
        """The numbers of the actuators of each cluster and then of its bodies, ``[count, ...]``."""
        columns = []
        for name in _ORDER:
            numbers = getattr(model, f"actuator_{name}").numpy().astype(np.float64)
            numbers = numbers[:, :1] if name == "gear" else numbers[:, None] if numbers.ndim == 1 else numbers
            columns.append(numbers[self.index])
        records = np.concatenate(columns, axis=2)
        for k, actuator in enumerate(self._first(model)):
            # the gear of a wrench is in the wrench
            if actuator.transmission == "site" or (actuator.transmission.startswith("joint") and actuator.dof < 0):
                records[:, k, 0] = 1.0
        self._fill_acc0(model, records)
        self._fill_ranges(model, records)
        found = [records.reshape(len(records), -1)]
        if self.numbers["relieved"]:
            slots = np.asarray(self.batch.template.body_slot, dtype=int)
            bodies = np.asarray(self.batch.body_start, dtype=int)[:, None] + slots
            found.append(weights(model)[bodies])
        if self.summed:
            found.append(range_numbers(model, self.batch, self._pulled, self._lines))
        return np.concatenate(found, axis=1)

    def _fill_acc0(self, model, records: np.ndarray) -> None:
        """The accelerations by a unit force, of muscles that need them and do not state them."""
        peaks, known = records[..., GAIN_PRM + PEAK], records[..., ACC0]
        muscles = [
            (k, actuator)
            for k, actuator in enumerate(self._first(model))
            if actuator.is_muscle and ((peaks[:, k] < 0.0) & (known[:, k] == 0.0)).any()
        ]
        if not muscles:
            return
        state = model.state(requires_grad=False)
        inertia = mass_matrix(model, state).numpy().astype(np.float64)
        jacobian = tendon_jacobian(model, state).numpy().astype(np.float64) if model.tendons else None
        starts, first = model.joint_qd_start.numpy(), model.joint_qd_start.numpy()[names_of(model).start]
        owner, gears = model.joint_articulation.numpy(), model.actuator_gear.numpy()[:, 0]
        places = {n: (a, i) for a, own in enumerate(tendons_of(model).index) for i, n in enumerate(own)}
        for k, _ in muscles:
            for c in np.flatnonzero((peaks[:, k] < 0.0) & (known[:, k] == 0.0)):
                actuator = model.actuators[self.index[c, k]]
                if actuator.transmission == "tendon":
                    a, at = places[actuator.target]
                    row = jacobian[a, at]
                elif actuator.transmission != "joint":
                    raise ValueError(
                        f"actuator '{actuator.label}' (index {self.index[c, k]}): a muscle on a {actuator.transmission} needs a force;"
                        " give a positive third number of gainprm, or acc0"
                    )
                else:
                    a = int(owner[actuator.target])
                    row = np.zeros(inertia.shape[1])
                    row[starts[actuator.target] - first[a] + actuator.dof] = 1.0
                moved = np.flatnonzero(np.diag(inertia[a]) > 0.0)
                found = np.linalg.solve(inertia[a][np.ix_(moved, moved)], gears[self.index[c, k]] * row[moved])
                known[c, k] = np.linalg.norm(found)

    def _fill_ranges(self, model, records: np.ndarray) -> None:
        """The ranges of lengths of muscles along tendons that do not state them; each is searched once, and the model gets it."""
        muscles = [k for k, actuator in enumerate(self._first(model)) if actuator.is_muscle]
        ranges = records[..., LENGTH_RANGE : LENGTH_RANGE + 2]
        open_ones = [(c, k) for k in muscles for c in np.flatnonzero(ranges[:, k, 0] == ranges[:, k, 1])]
        if not open_ones:
            return
        gears, wanted = model.actuator_gear.numpy()[:, 0], {}
        for n in {int(self.index[c, k]) for c, k in open_ones} - self._ranges.keys():
            actuator = model.actuators[n]
            if actuator.transmission != "tendon" or gears[n] == 0.0:
                raise ValueError(
                    f"actuator '{actuator.label}' (index {n}) is a muscle whose length has no range; give actuator_lengthrange its smallest"
                    " and largest length"
                )
            wanted[n] = actuator.target
        if wanted:
            found = length_ranges(model, wanted)
            known = model.actuator_lengthrange.numpy()
            for n, pair in found.items():
                known[n] = sorted(gears[n] * x for x in pair)
                self._ranges[n] = known[n].tolist()
            model.actuator_lengthrange.assign(known)
        for c, k in open_ones:
            ranges[c, k] = self._ranges[int(self.index[c, k])]

    def _first(self, model) -> list:
        """The actuators of the first cluster, whose kinds are those of all."""
        return [model.actuators[n] for n in self.index[0]] if self.index.size else []

    def fill(self, work, model) -> bool:
        """Brings the numbers into the struct ``Tree`` of a workspace. Returns whether launches have to be recorded again."""
        if not self.acts:
            return False
        vectors = self.vectors(model)
        if self._known is not None and np.array_equal(self._known, vectors):
            return False
        self._known = vectors
        T = work.T
        T.actuators_vary, T.actuator_uniform, T.actuator_varying = work.spread(vectors)
        return True
