"""Record of edits: which groups of arrays of a model were edited, in which worlds, and in which version.

Caches of parameters use the record to find stale entries.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

from newton_like.arrays import flat
from newton_like.coercion import as_list
from newton_like.kernels.edits import edit_kernels, mass_kernels
from newton_like.model.actuators import NUMBERS as ACTUATOR_NUMBERS
from newton_like.model.editing.fingerprints import Fingerprints
from newton_like.model.tendons import ARRAYS as TENDON_ARRAYS
from newton_like.options import did_you_mean
from newton_like.threads import run_shared, shared_out
from newton_like.types import ModelFlags

JOINTS, GAINS, BODIES, SHAPES, GRAVITY = GROUPS = range(5)
"""Groups of arrays that are read together."""

TYPES, OTHERS, KINDS = 5, 6, 7
"""Types and hulls of shapes, all other arrays, and flags of bodies: only the version of their last edit is noted."""

FLAGS = "body_flags"
"""The array with the kinematic bodies. Parameters of joints, dofs, bodies and shapes depend on it."""

_FLAGS = {
    # joints may be carried by bodies that rest
    JOINTS: ModelFlags.JOINT_PROPERTIES | ModelFlags.BODY_PROPERTIES,
    GAINS: ModelFlags.JOINT_DOF_PROPERTIES
    | ModelFlags.CONSTRAINT_PROPERTIES
    | ModelFlags.JOINT_DOF_FORCE_PROPERTIES
    | ModelFlags.JOINT_DOF_INERTIAL_PROPERTIES
    | ModelFlags.JOINT_REFERENCE_POSE_PROPERTIES,
    BODIES: ModelFlags.BODY_INERTIAL_PROPERTIES,
    SHAPES: ModelFlags.SHAPE_PROPERTIES | ModelFlags.SHAPE_TYPE_AND_SOURCE,
    GRAVITY: ModelFlags.MODEL_PROPERTIES,
}

_FLAGS = {group: int(flags) for group, flags in _FLAGS.items()}
_TYPES, _KINDS = int(ModelFlags.SHAPE_TYPE_AND_SOURCE), int(ModelFlags.BODY_PROPERTIES)
_ALL = int(ModelFlags.ALL)
_ACCOUNTED = _FLAGS[BODIES] | _FLAGS[SHAPES] | _FLAGS[GRAVITY]

MATERIALS = tuple(
    f"shape_material_{name}"
    for name in ("mu", "restitution", "time_constant", "damping_ratio", "mu_torsional", "mu_rolling")
)
"""Numbers of a material, in the order of a surface."""

TURNING = MATERIALS[4:]
"""Friction of turns about the normal and the tangents of a contact."""

ARRAYS = {
    JOINTS: ("joint_X_p", "joint_X_c", "joint_min_distance", "joint_max_distance", "joint_axis"),
    GAINS: (
        "joint_target_mode", "joint_target_ke", "joint_target_kd", "joint_armature", "joint_damping", "joint_stiffness",
        "joint_effort_limit", "joint_velocity_limit", "joint_friction", "joint_friction_ratio", "joint_limit_lower", "joint_limit_upper",
        "joint_rest_q", "joint_mimic_coeffs",
    ),
    BODIES: ("body_mass", "body_com", "body_inertia"),
    SHAPES: (
        "shape_scale", "shape_transform", "shape_collision_radius", "shape_margin", "shape_gap",
        *MATERIALS,
    ),
    GRAVITY: ("gravity",),
}  # fmt: skip
"""The arrays of each group that programs read."""


BALL_LIMITS = ("joint_max_angle", "joint_max_swing")
"""Limits of ball joints, which are numbers of constraint rows and of no program's parameters."""

READ_ANYWAY = (
    *BALL_LIMITS, *(f"tendon_{name}" for name in TENDON_ARRAYS), *(f"actuator_{name}" for name in ACTUATOR_NUMBERS),
)  # fmt: skip
"""Arrays that kernels read from memory in any case. A tendon with inertia has items of another kind, and ball joints have rows for limits
that may come; naming their arrays selects these."""


def checked_names(names, what: str) -> frozenset[str]:
    """Names of arrays that may vary.

    Raises:
        TypeError: they are not names.
        ValueError: the array does not exist, or it does not vary.
    """
    if names is None or isinstance(names, str):
        names = () if names is None else (names,)
    else:
        names = (
            tuple(names) if isinstance(names, set | frozenset) else tuple(as_list(names, what, "names of model arrays"))
        )
    known = [*(name for group in GROUPS for name in ARRAYS[group]), FLAGS, *READ_ANYWAY]
    for name in names:
        if name not in known:
            raise ValueError(
                f"{what}: {name!r} is not an array of parameters{did_you_mean(name, known)}"
                f" (there are {', '.join(known)})"
            )
    return frozenset(names)


def checked_flags(flags) -> int:
    """Flags of groups of arrays as a number.

    Raises:
        TypeError: they are not flags.
        ValueError: the flags do not exist.
    """
    if isinstance(flags, bool) or not isinstance(flags, int | np.integer):
        raise TypeError(f"flags must be ModelFlags or their number, not {type(flags).__name__}")
    # operators of enumerations take a microsecond each
    flags = int(flags)
    if not 0 <= flags <= _ALL:
        raise ValueError(f"flags {flags} are unknown; ModelFlags has those from 0 to {_ALL}")
    return flags


@cache
def _groups_of(flags: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The groups of some flags, and those of types, others and kinds that are among them."""
    others = {TYPES: flags & _TYPES, KINDS: flags & _KINDS, OTHERS: flags & ~_ACCOUNTED}
    return tuple(g for g in GROUPS if flags & _FLAGS[g]), tuple(each for each, told in others.items() if told)


class Edits:
    """The edits of a model.

    Attributes:
        version: how often arrays were edited.
        last: version of the last edit of each group, of types and hulls of shapes, of others, and of flags of bodies.
        masses: ``[3]``: version of the last edit after which (0) a mass or a moment of inertia was negative or not finite, (1) an
            inertia was singular, (2) a body became lean; -1: never.
        differing: version of the last notice whose look at inertial numbers found differences.
        at_once: whether arrays are read at once after a notice, so that they are those that the notice compared.
        lean: bodies without mass, or without inertia about at least one axis, ``[body_count]`` bool.
        when: version of the last edit of each group in each world and, last, in what all worlds share,
            ``[groups, world_count + 1]``; `rows`: the same, group by group.
    """

    def __init__(self, world_count: int, body_count: int, device):
        self.version = self.differing = 0
        self.at_once = False
        self.last = [0] * (len(GROUPS) + 3)
        self.lean = wp.zeros(body_count, dtype=wp.bool, device=device)
        self.masses = wp.full(3, -1, dtype=wp.int32, device=device)
        self.when = wp.zeros((len(GROUPS), world_count + 1), dtype=wp.int32, device=device)
        self.rows = [self.when[g] for g in GROUPS]
        # a view of memory, for CPUs
        self._seen = self.when.numpy() if self.when.device.is_cpu else None
        self._recorded: tuple | None = None
        # the inertial numbers that were read last
        self._prints: Fingerprints | None = None

    def note(self, flags: int, mask: wp.array | None) -> None:
        """Notes that the groups of `flags` were edited in the worlds that the mask selects, ``[world_count]`` bool; None: everywhere."""
        self.version += 1
        groups, others = _groups_of(flags)
        for each in groups + others:
            self.last[each] = self.version
        if mask is None:
            for g in groups:
                if self._seen is not None:
                    self._seen[g] = self.version
                else:
                    self.rows[g].fill_(self.version)
        if mask is not None and groups:
            wp.launch(
                edit_kernels().mark,
                dim=mask.shape[0],
                inputs=[mask, sum(1 << g for g in groups), 1 << GRAVITY, self.version],
                outputs=[self.when],
                device=self.when.device,
                record_tape=False,
            )

    def prints(self, model) -> Fingerprints:
        """Fingerprints of masses, centres of mass and inertias, as of the last notice."""
        if self._prints is None:
            self._prints = Fingerprints(model, (*ARRAYS[BODIES], FLAGS), crossing=True)
        return self._prints

    def compared(self, since: int) -> bool:
        """Whether a reader that knows the version `since` reads the inertial numbers that the last notice compared."""
        return self.at_once and since == self.version - 1

    def read_masses(self, model, inverses: bool = True) -> None:
        """Checks the masses of the bodies of the last edit that differ from those read before, and updates their inverses."""
        if not model.body_count:
            return
        if inverses:
            if not self.prints(model).look(model, self.rows[BODIES], self.version - 1, self.version):
                return
            self.differing = self.version
        told_worlds = self.prints(model).changed if inverses else self.rows[BODIES]
        kernels = mass_kernels(model.dtype)
        arrays = (model.body_mass, model.body_inertia, model.body_inv_mass, model.body_inv_inertia)
        key = [inverses, *(a.ptr for a in arrays)]
        if self._recorded is None or self._recorded[0] != key:
            mass, inertia, inverse_mass, inverse_inertia = views = [flat(a, model.dtype) for a in arrays]
            told = [model.body_world_start, told_worlds, self.version, int(inverses), mass, inertia]
            results = [inverse_mass, inverse_inertia, self.lean, self.masses]

            def record(first: int, count: int) -> wp.Launch:
                return wp.launch(
                    kernels.invert,
                    dim=count,
                    inputs=[first, *told],
                    outputs=results,
                    device=model.device,
                    record_cmd=True,
                )

            # the launches know addresses only
            self._recorded = key, shared_out(record, model.world_count + 1, model.body_count, model.device), views
        _, launches, (_, inertia, _, inverse_inertia) = self._recorded
        for command in launches[0]:
            command.set_param_by_name("version", self.version)
        run_shared(launches)
        if inverses and (model.device.is_cuda or self.masses.numpy()[1] == self.version):
            wp.launch(
                kernels.invert_singular,
                dim=model.body_count,
                inputs=[model.body_world, told_worlds, self.version, inertia],
                outputs=[inverse_inertia],
                device=model.device,
                record_tape=False,
            )


def kernels_of_edits(model) -> list:
    """The kernels that the first :func:`edits_of` of a model loads."""
    return [mass_kernels(model.dtype).invert] if model._edits is None and model.body_count else []


def edits_of(model) -> Edits:
    """The edits of a model."""
    if model._edits is None:
        model._edits = edits = Edits(model.world_count, model.body_count, model.device)
        edits.read_masses(model, False)
        # a copy of a model counts on
        edits.version = model.version
    return model._edits
