"""The parameters of a batch on its device: a row of numbers for each articulation, gathered by kernels from the arrays of the model.

Numbers that all articulations share are *held*: one copy of them is kept, and specialised code has them as constants. The others lie in
lanes. The first edit of a held number takes it out of the held ones for good, with all numbers that come from the same array: specialised
code is compiled again at most once for each array. Numbers of arrays in ``Model.varying`` are never held.
"""

from __future__ import annotations

import copy
from functools import cached_property

import numpy as np
import warp as wp

from newton_like.arrays import as_numbers, copied_array, flat
from newton_like.compiler.cpp import Constants
from newton_like.kernels.parameters import parameter_kernels
from newton_like.kernels.tree import BITS, LAW, POSITION, PRESCRIBED
from newton_like.model.editing.edit_checks import check_numbers
from newton_like.model.editing.edits import (
    ARRAYS,
    BODIES,
    FLAGS,
    GAINS,
    GRAVITY,
    GROUPS,
    JOINTS,
    KINDS,
    OTHERS,
    SHAPES,
    edits_of,
)
from newton_like.model.joint_types import JOINT_TYPES, look_up
from newton_like.programs.changes import Changes
from newton_like.programs.device import interleaved
from newton_like.programs.records import BINDING, DRIVES, KINEMATIC, READ, VARY_FLAGS, WEIGHED, Layout
from newton_like.programs.structs import copied, filled
from newton_like.threads import Command, run_shared, shared_out


class Parameters:
    """The parameters of a batch.

    Attributes:
        at: where each group of parameters starts in a row; `size`: length of a row.
        known: the held ones as emitted code sees them.
        dof_limits: what may bind each dof in some articulation, bits of ``newton_like.kernels.tree``, ``[dofs]``.
        P: the struct ``Params``.
        freed: the arrays whose numbers the last edit took out of the held ones.
        moved: whether the last edit went into other memory, of which recorded launches do not know.

    With `prescribed`, the joint of a kinematic body has the armature ``PRESCRIBED_ARMATURE`` and no drives, springs, friction and limits.
    The body and the bodies that are fixed to it have no mass, and their shapes no contacts.

    Args:
        m: the programs' namespace.
        model: the model.
        batch: a :class:`newton_like.programs.template.Batch`.
        contacts: colliders and planes, a :class:`newton_like.collision.ground.ContactTables`; None: there are none.
        prescribed: whether kinematic bodies keep their velocity; False: they are bodies like all others.
        changes: what finds the worlds in which numbers changed; the owner calls its ``look`` before :meth:`refresh`. None: all worlds that
            were edited are read.
    """

    def __init__(self, m, model, batch, contacts=None, prescribed: bool = False, changes: Changes | None = None):
        self.m, self.batch, self.contacts, self.device = m, batch, contacts, model.device
        self._kinds = model.body_flags.numpy().copy() if prescribed else None
        self._layout = Layout(batch.template, contacts, prescribed)
        self.at, self.size = self._layout.at, self._layout.size
        self._kernels = parameter_kernels(m.real)
        self._worlds, self._loose = model.world_count, set()
        self._recorded: dict = {}
        self.freed: frozenset[str] = frozenset()
        self.moved = False
        self._seen = wp.zeros(1, dtype=wp.int32, device=self.device)
        # inertias along tendons, of which parameters have only what they do to weights
        self._lines = model.tendon_armature.numpy().copy() if self._layout.counts["weight"] else None
        self._edits, self._kept, self._changes = edits_of(model), False, changes
        self._gather_all(model)

    # ------------------------------------------------------------------------------------------------ reading

    def refresh(self, model) -> tuple[bool, bool]:
        """Takes over what was edited since numbers were last read.

        Returns:
            Whether launches have to be recorded again, since they are told of other memory; and whether code that holds numbers has to be
            compiled again.

        Raises:
            ValueError: numbers are not finite or out of range, see :func:`newton_like.model.editing.edit_checks.check_numbers`.
            TablesChanged: limits, rolling contacts or edges of planes are needed that the tables do not have.
        """
        edits, since = self._edits, self._since
        self.freed, self.moved, told = frozenset(), False, self._told
        groups = [g for g in GROUPS if edits.last[g] > since]
        kinds, lines = self._kinds_changed(model), self._lines_changed(model)
        if self._changes is not None:
            groups = [g for g in groups if self._changes.found(g)]
            if kinds:
                # all worlds that were edited are read, with flags that the fingerprints of these groups do not know
                self._changes.forget((GAINS, BODIES, SHAPES))
        declared = self._layout.read(model.varying) - self._loose
        if not groups and not declared and not kinds and lines is None:
            self._since = edits.version
            return False, False
        kept, self._kept = self._kept, False
        if kept and self.P.varying.size:
            # a tape reads the old numbers
            lanes, self.P.varying = self.P.varying, self._lanes(self.P.varying.shape[1])
            self.moved = True
            wp.copy(self.P.varying, lanes)
            self._recorded.clear()
            self._told = self._tell()
        self._read(model, groups, kinds, lines)
        differs, binds, tables, unsound = self._news()
        if unsound or (differs and JOINTS in groups):
            check_numbers(model)
        if binds or tables:
            raise TablesChanged
        if differs or declared:
            self.freed = frozenset(declared | (self._layout.arrays_of(self._differs.numpy()) if differs else set()))
            self._loosen(self.freed)
            self._read(model, groups, kinds, lines)
            self._status.zero_()
        self._since = edits.version
        return told != self._told, bool(differs or declared)

    def with_numbers(self, **groups: np.ndarray) -> Parameters:
        """Parameters of which some groups have other numbers, the same ones for all articulations. They do not follow edits."""
        values = self.known.values.copy()
        for name, numbers in groups.items():
            start, end = self._layout.spans[name]
            values[start:end] = numbers.ravel()
        twin = copy.copy(self)
        twin.known = Constants(self.at, values, np.ones(self.size, dtype=bool))
        uniform = wp.array(values, dtype=self.m.real, device=self.device)
        twin.P = copied(self.m.Params, self.P, uniform=uniform, varying=self._lanes(0))
        return twin

    def _tell(self) -> tuple:
        """What launches are told of where numbers are: which groups of them lie in lanes, and these lanes."""
        return *(getattr(self.P, flag) for flag in VARY_FLAGS), self.P.varying.ptr

    def _kinds_changed(self, model) -> bool:
        """Whether bodies may have become kinematic or dynamic since the last call. After the first change every edit of flags counts: an
        edit may name some of the worlds in which the array changed, and a later edit the others."""
        if not self._layout.drivers or self._edits.last[KINDS] <= self._since:
            return False
        if self._kinds is not None and np.array_equal(model.body_flags.numpy(), self._kinds):
            return False
        self._kinds = None
        return True

    def _lines_changed(self, model) -> wp.array | None:
        """When inertias along tendons became others, in the worlds where they did, ``[world_count + 1]``; None: nowhere, or no parameters
        depend on them. No record of edits says which worlds an edit of tendons named: like their other numbers, it counts in all."""
        if self._lines is None or self._edits.last[OTHERS] <= self._since:
            return None
        lines = model.tendon_armature.numpy()
        differs = lines != self._lines
        if not differs.any():
            return None
        self._lines = lines.copy()
        edited = np.zeros(self._worlds + 1)
        # of tendons in world -1 the last one
        edited[model.tendon_world.numpy()[differs]] = self._edits.version
        return copied_array(edited, wp.int32, self.device)

    def _read(self, model, groups: list[int], kinds: bool, lines: wp.array | None) -> None:
        """Reads the numbers of groups of arrays in the worlds that were edited, by launches that are recorded once. With `kinds`, reads all
        numbers that depend on flags of bodies, in the worlds whose joints were edited. With `lines`, those that depend on inertias along
        tendons, in the worlds where they were edited then."""
        self._seen.fill_(self._since)
        if self._layout.counts["weight"] and (kinds or lines is not None or not WEIGHED.isdisjoint(groups)):
            self._tables["weights"].assign(self.contacts.weights().ravel())
        for group in groups:
            key = [getattr(model, name).ptr for name in (*ARRAYS[group], "body_q", FLAGS)]
            known = self._recorded.get(group)
            if known is None or known[0] != key:
                target = self._target(self._held, self.P.varying, self._seen)
                known = self._recorded[group] = (key, *self._launches(model, target, group))
            self._run(known[1])
        for group in (GAINS, BODIES, SHAPES) if kinds else ():
            target = self._target(self._held, self.P.varying, self._seen)
            self._run(self._launches(model, target, group, self._edits.rows[JOINTS])[0])
        if lines is not None:
            target = self._target(self._held, self.P.varying, self._seen)
            target.edited = lines
            inputs = [self._tables["weights"], self.at["weight"]]
            self._run([self._launch("weights", target, self._layout.counts["weight"], inputs)])

    def _edited(self, group: int) -> wp.array:
        """The last edit of a group in each world."""
        return self._edits.rows[group] if self._changes is None else self._changes.edited(group)

    def _loosen(self, names) -> None:
        """Takes the numbers of some arrays out of the held ones."""
        self._loose |= names
        held = self.known.same & ~self._layout.slots(names)
        self.known = Constants(self.at, self.known.values, held)
        self._held.assign(np.where(held, self.known.values, np.nan))
        self._recorded.clear()
        lanes = self.P.varying
        self._lay_out(self.P.uniform, held, lanes)
        if not lanes.size and self.P.varying.size:
            self._copy(self.P.uniform, 0, self.size)

    def keep(self) -> None:
        """Keeps the numbers for the launches that were recorded with them: the next edit goes into a copy."""
        self._kept = True

    def rows(self) -> np.ndarray:
        """The numbers of all articulations on the host, ``[count, size]``."""
        first = self.P.uniform.numpy()
        if not self.P.varying.size:
            return np.broadcast_to(first, (self.batch.count, self.size)).copy()
        lanes = as_numbers(self.P.varying, self.m.real, self.m.width).numpy()
        return lanes.transpose(0, 2, 1).reshape(-1, self.size)[: self.batch.count].copy()

    def _gather_all(self, model) -> None:
        """Reads all numbers, finds out which ones are shared, and gives the others lanes."""
        if self._changes is not None:
            self._changes.forget()
        self._loose |= self._layout.read(model.varying)
        size, real = self.size, self.m.real
        first = wp.zeros(size, dtype=real, device=self.device)
        start, end = self._layout.spans["hull"]
        if end > start:
            first[start:end].assign(self.contacts.hull)
        self._differs = wp.zeros(size, dtype=wp.bool, device=self.device)
        self._status = wp.zeros(4, dtype=wp.bool, device=self.device)
        self._binds = wp.zeros(len(BITS) * max(self.batch.template.dofs, 1), dtype=wp.bool, device=self.device)
        none = wp.full(size, float("nan"), dtype=real, device=self.device)
        # programs without contacts have no rows for limits, so that all limits are known there
        self._limits = wp.full(max(self.batch.template.dofs, 1), sum(BITS), dtype=wp.int32, device=self.device)
        always = wp.full(1, -1, dtype=wp.int32, device=self.device)
        alone = self._target(none, None, always)
        alone.count = alone.width = alone.written = alone.step = 1
        alone.numbers = first
        others = self._target(first, None, always)
        for group in GROUPS:
            self._gather(model, alone, group)
        for group in GROUPS:
            self._gather(model, others, group)
        values = first.numpy().copy()
        anchors = slice(0, self._layout.spans["dof"][1])
        if self._status.numpy()[3] or self._differs.numpy()[anchors].any() or not np.isfinite(values[anchors]).all():
            check_numbers(model)
        # a number that is not a number differs from itself
        held = (values == values) & ~self._differs.numpy() & ~self._layout.slots(self._loose)
        if self.contacts is not None and self.contacts.laws is not None:
            # lists of contacts write these
            at = self.at["law"]
            held[at : at + LAW * self.contacts.laws.handed] = False
        self.known = Constants(self.at, values, held)
        self._held = wp.array(np.where(held, self.known.values, np.nan), dtype=real, device=self.device)
        self._lay_out(first, held)
        if self.P.varying.size:
            target = self._target(none, self.P.varying, always)
            for group in GROUPS:
                self._gather(model, target, group)
            if end > start:
                self._copy(first, start, end)
        self.dof_limits = self._dof_limits(model.varying)
        if self.contacts is not None and len(self.dof_limits):
            self._limits.assign(self.dof_limits)
        self._status.zero_()
        self._differs.zero_()
        self._since = self._edits.version

    def _copy(self, first: wp.array, start: int, end: int) -> None:
        """Gives all articulations some numbers of the first one."""
        none = wp.full(self.size, float("nan"), dtype=self.m.real, device=self.device)
        target = self._target(none, self.P.varying, self._seen)
        target.edited = self._edits.rows[0]
        self._run([self._launch("copies", target, end - start, [start, first])])

    def _lay_out(self, first: wp.array, held: np.ndarray, lanes: wp.array | None = None) -> None:
        """Makes the struct for these numbers of the first articulation, some of which are held, and lanes where it needs any."""
        P = self.P = self.m.Params()
        varies = {name: bool((~held[start:end]).any()) for name, (start, end) in self._layout.spans.items()}
        for flag, names in VARY_FLAGS.items():
            setattr(P, flag, int(any(varies[name] for name in names)))
        for name, start in self.at.items():
            setattr(P, f"{name}_at", start)
        P.uniform = first
        P.varying = lanes if lanes is not None and lanes.size else self._lanes(self.size if any(varies.values()) else 0)
        self._told = self._tell()

    def _lanes(self, n: int) -> wp.array:
        """Room for the numbers of all articulations, ``[blocks, n]`` lanes."""
        blocks = -(-self.batch.count // self.m.width)
        if not n:
            return wp.zeros((0, 0), dtype=self.m.lane, device=self.device)
        if interleaved(self.device):
            # neighbouring threads read neighbouring words
            return wp.zeros((n, blocks), dtype=self.m.lane, device=self.device).transpose((1, 0))
        return wp.zeros((blocks, n), dtype=self.m.lane, device=self.device)

    def _news(self) -> list[bool]:
        told = self._status.numpy().tolist()
        if any(told):
            self._status.zero_()
        return told

    # ------------------------------------------------------------------------------------------------ kernels

    def _target(self, held: wp.array, lanes: wp.array | None, since: wp.array):
        target = self._kernels.Target()
        target.count, target.width, target.since = self.batch.count, self.m.width, since
        if lanes is not None and lanes.size:
            numbers = as_numbers(lanes, self.m.real, self.m.width)
            unit = wp.types.type_size_in_bytes(self.m.real)
            target.block_step, target.step = numbers.strides[0] // unit, numbers.strides[1] // unit
            shape = (lanes.size * self.m.width,)
            target.numbers = wp.array(ptr=lanes.ptr, dtype=self.m.real, shape=shape, device=self.device, copy=False)
            target.written = 1
        target.held, target.world = held, self._tables["world"]
        target.differs, target.status = self._differs, self._status
        return target

    def _gather(self, model, target, group: int) -> None:
        """Reads the numbers of one group of arrays for the articulations of `target`."""
        self._run(self._launches(model, target, group)[0])

    def _launches(self, model, target, group: int, edited: wp.array | None = None) -> tuple[list, list]:
        """Recorded launches that do so, and what they read; `edited`: when worlds were edited, None: in arrays of the group."""
        target.edited = self._edited(group) if edited is None else edited
        launches, reads = [], [target]

        def launch(name: str, items: int, inputs: list, outputs: tuple = ()) -> None:
            launches.append(self._launch(name, target, items, inputs, outputs))
            reads.append((inputs, outputs))

        t, at = self._tables, self.at
        counts = {name: n for name, n in self._layout.counts.items() if n}
        if counts.keys().isdisjoint(READ[group]):
            return launches, reads

        def numbers(name: str) -> wp.array:
            array = getattr(model, name)
            return flat(array, wp.int32 if array.dtype is wp.int32 else model.dtype)

        def arrays(kind):
            return filled(kind, **{name: numbers(name) for name in kind.vars})

        K, B = self._kernels, self._batch
        if group in WEIGHED and "weight" in counts:
            launch("weights", counts["weight"], [t["weights"], at["weight"]])
        if group == JOINTS:
            T = filled(
                K.JointTables, dof_at=t["dof_at"], distant=t["distant"], driver=t["driver_of_joint"], has_coordinate=t["has_coordinate"],
                slot=t["joint_slot"], dof_slot=t["dof_slot"],
            )  # fmt: skip
            launch("joints", counts["joint"], [B, T, arrays(K.JointArrays), at["joint"], at["dof"]])
        elif group == BODIES:
            T = filled(K.BodyTables, slot=t["slot"], driver=t["driver_of_body"])
            launch("bodies", counts["body"], [B, T, arrays(K.BodyArrays), at["body"]])
        elif group == GAINS:
            of_dofs = {name: t[name] for name in ("rest_of", "rest_w_of", "mimic_of", "has_coordinate", "dof_slot")}
            driven = int(not DRIVES.isdisjoint(model.varying))
            T = filled(K.GainTables, **of_dofs, driver=t["driver_of_gain"], limits=self._limits, driven=driven)
            launch("gains", counts["gain"], [B, T, arrays(K.GainArrays), at["gain"]], (self._binds,))
        elif group == SHAPES:
            M = arrays(K.ShapeArrays)
            if "collider" in counts:
                turning = int(self.contacts.numbers["contact_rows"] > 3)
                T = filled(
                    K.ColliderTables, shapes=t["shapes"], planes=t["partners"], allowed=t["allowed"], forms=t["forms"],
                    driver=t["driver_of_collider"], turning=turning,
                )  # fmt: skip
                launch("colliders", counts["collider"], [B, T, M, at["collider"]])
            if "pair" in counts:
                two = t["driver_of_second"]
                T = filled(K.PairTables, allowed=t["pair_allowed"], driver_one=t["driver_of_pair"], driver_two=two)
                launch("pairs", counts["pair"], [B, T, numbers(FLAGS), at["pair"]])
            if "law" in counts:
                one, two, table, stride = (t[f"law_{name}"] for name in ("one", "two", "table", "stride"))
                T = filled(K.LawTables, one=one, two=two, table=table, stride=stride)
                launch("laws", counts["law"], [T, M, at["law"]])
            if "plane" in counts:
                launch("planes", counts["plane"], [M, t["plane_of"], t["finite"], at["plane"]])
        elif group == GRAVITY:
            launch("gravities", 1, [at["gravity"], t["gravity_world"], numbers("gravity")])
        return launches, reads

    def _launch(self, name: str, target, items: int, inputs: list, outputs: tuple = ()) -> list[list[Command]]:
        """A recorded launch, for `run_shared`."""
        target.items, target.sharing = items, items if self.device.is_cuda else 1
        lanes = -(-target.count // target.width) * target.width

        def record(first: int, count: int) -> wp.Launch:
            return wp.launch(
                getattr(self._kernels, name),
                dim=(count, target.sharing),
                inputs=[copied(self._kernels.Target, target, first_lane=first), *inputs],
                outputs=outputs,
                device=self.device,
                record_cmd=True,
            )

        return shared_out(record, lanes, lanes * items, self.device)

    @staticmethod
    def _run(launches: list) -> None:
        for workers in launches:
            run_shared(workers)

    @cached_property
    def _batch(self):
        """Where the batch is in the arrays of the model, as kernels are told it."""
        batch, fields = self.batch, {}
        for name in ("joint", "q", "qd", "body"):
            starts = getattr(batch, f"{name}_start")
            fields[f"{name}_start"], fields[f"{name}_stride"] = int(starts[0]), batch.stride(starts)
        return filled(self._kernels.Batch, **fields)

    @cached_property
    def _tables(self) -> dict[str, wp.array]:
        """What kernels are told of the batch."""
        batch, template, device = self.batch, self.batch.template, self.device
        # last comes what all worlds share
        world = np.where(batch.world < 0, self._worlds, batch.world)
        rest, rest_w, mimic = (np.full(template.dofs, -1) for _ in range(3))
        for k in range(template.bodies):
            i, n = int(template.dof_at[k]), int(template.dof_at[k + 1] - template.dof_at[k])
            q = int(template.q_at[k])
            if JOINT_TYPES[template.joint_type[k]].turns_only:
                # a rest orientation has four numbers: x, y, z with the three dofs, w where a mimic offset would be
                rest[i : i + 3], rest_w[i] = template.q_slot[q : q + 3], template.q_slot[q + 3]
            elif template.dof_q[i : i + n].min(initial=0) >= 0:
                rest[i : i + n] = template.q_slot[q : q + n]
                if template.mimic[k] >= 0 and n:
                    mimic[i : i + n] = template.joint_slot[k]
            elif n == 6:
                rest[i : i + 6], rest_w[i + 3] = template.q_slot[q : q + 6], template.q_slot[q + 6]
        tables = dict(
            world=world, gravity_world=np.maximum(batch.world, 0), slot=template.body_slot, dof_at=template.dof_at, rest_of=rest,
            joint_slot=template.joint_slot, dof_slot=template.dof_slot,
            rest_w_of=rest_w, mimic_of=mimic, has_coordinate=template.dof_q >= 0,
            distant=look_up(np.asarray(template.joint_type, int), "limits_distance"),
        )  # fmt: skip
        for name in KINEMATIC:
            tables[f"driver_of_{name}"] = self._layout.drivers.get(name, np.full(self._layout.counts[name], -1))
        contacts = self.contacts
        if contacts is not None:
            tables["finite"] = contacts.arrays["plane_finite"]
            tables["forms"] = contacts.forms
        found = {name: copied_array(np.asarray(x), wp.int32, device) for name, x in tables.items()}
        if contacts is not None and contacts.shapes is not None and contacts.plane_of is not None:
            for name, table in (
                ("shapes", contacts.records),
                ("partners", contacts.partners),
                ("plane_of", contacts.plane_of),
            ):
                found[name] = copied_array(np.asarray(table, dtype=np.int32), wp.int32, device)
            for name, table in (("allowed", contacts.record_allowed), ("pair_allowed", contacts.pair_allowed)):
                found[name] = copied_array(np.asarray(table), wp.bool, device)
            second = self._layout.drivers.get("second", np.full(self._layout.counts["pair"], -1))
            found["driver_of_second"] = copied_array(np.asarray(second), wp.int32, device)
        if contacts is not None and contacts.laws is not None:
            law = contacts.laws
            found["law_one"], found["law_two"] = (copied_array(np.asarray(x), wp.int32, device) for x in law.shapes)
            found["law_table"] = wp.array(law.table.ravel(), dtype=self.m.real, device=device)
            found["law_stride"] = law.table[0].size if len(law.table) > 1 else 0
        if self._layout.counts["weight"]:
            found["weights"] = wp.array(contacts.weights().ravel(), dtype=self.m.real, device=device)
        return found

    # ------------------------------------------------------------------------------------------------ what varies

    def _dof_limits(self, declared: frozenset[str]) -> np.ndarray:
        template = self.batch.template
        found = self._binds.numpy()[: len(BITS) * template.dofs].reshape(-1, len(BITS))
        bits = found @ np.array(BITS)
        for name in declared & set(BINDING):
            bits |= BINDING[name]
        if FLAGS in declared and self._layout.drivers:
            bits |= np.where(self._layout.drivers["gain"] >= 0, PRESCRIBED, 0)
        bits = np.where(template.dof_q >= 0, bits, bits & ~POSITION)
        return bits.astype(np.int32)


class TablesChanged(Exception):
    """What was edited asks for other tables than a batch has."""
