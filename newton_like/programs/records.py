"""The records of numbers that the parameters of a batch consist of, where they lie in a row, and the arrays that each number comes from."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from newton_like.model.editing.edits import BODIES, FLAGS, GAINS, GRAVITY, JOINTS, SHAPES

from newton_like.kernels.tree import (  # isort: skip
    ARMATURE, AXIS, AXIS_IN_PARENT, BODY, CENTER, CENTRE_OF_MASS, CHILD_POS, CHILD_QUAT_INVERSE, CLIP_FORCE, COLLIDER, DAMPING,
    DAMPING_RATIO, DISTANCE_MAX, DISTANCE_MIN, DOF, EFFORT, EFFORT_LIMIT, FRICTION, FRICTION_LOSS, FRICTION_RATIO, GAIN, GAP, HALF_LENGTH,
    HALF_TURN_QUAT, HOME_QUAT, INERTIA, JOINT, LAW, LAW_MU, LAW_SHIFT, LIMIT_LOWER, LIMIT_UPPER, MARGIN, MASS, MIMIC_OFFSET,
    MIMIC_RATIO, MU, MU_ROLLING, MU_TORSIONAL, OMEGA, PARENT_POS, PARENT_QUAT, PLANE, POSITION, RADIUS, RESTITUTION,
    REST_Q, REST_W, ROTATION, SIZE, SLIP, STIFFNESS, SURFACE, TARGET_KD, TARGET_KE, TARGET_VELOCITY_GAIN, VELOCITY, VELOCITY_LIMIT,
)  # fmt: skip

RECORDS = {
    "joint": JOINT,
    "dof": DOF,
    "body": BODY,
    "gain": GAIN,
    "collider": COLLIDER,
    "hull": 3,
    "plane": PLANE,
    "gravity": 3,
    "pair": 1,
    "law": LAW,
    "weight": 1,
}
"""How many numbers a record of each group has."""

READ = {
    JOINTS: ("joint", "weight"), GAINS: ("gain", "weight"), BODIES: ("body", "weight"), SHAPES: ("collider", "plane", "pair", "law"),
    GRAVITY: ("gravity",),
}  # fmt: skip
"""The groups of parameters that come from a group of arrays."""

WEIGHED = frozenset(group for group, names in READ.items() if "weight" in names)
"""Groups of arrays that inverse inertias depend on."""

VARY_FLAGS = {
    "joints_vary": ("joint", "dof"), "bodies_vary": ("body",), "gains_vary": ("gain",), "colliders_vary": ("collider", "hull"),
    "planes_vary": ("plane",), "gravity_vary": ("gravity",), "pairs_vary": ("pair",),
    "laws_vary": ("law",), "weights_vary": ("weight",),
}  # fmt: skip
"""Fields of the struct ``Params``, which say whether numbers of some groups vary."""


def _span(first: int, count: int = 1) -> list[int]:
    return list(range(first, first + count))


_IN_ANCHOR = _span(AXIS_IN_PARENT, 3) + _span(HALF_TURN_QUAT, 4)
SOURCES: dict[str, dict[str, list[int]]] = {
    "joint_X_p": {"joint": _span(PARENT_QUAT, 4) + _span(PARENT_POS, 3) + _span(HOME_QUAT, 4), "dof": _IN_ANCHOR},
    "joint_X_c": {
        "joint": _span(CHILD_QUAT_INVERSE, 4) + _span(CHILD_POS, 3) + _span(HOME_QUAT, 4),
        "dof": _span(HALF_TURN_QUAT, 4),
    },
    "joint_min_distance": {"joint": [DISTANCE_MIN]},
    "joint_max_distance": {"joint": [DISTANCE_MAX]},
    "joint_axis": {"dof": _span(AXIS, 3) + _IN_ANCHOR},
    "body_mass": {"body": [MASS]},
    "body_com": {"body": _span(CENTRE_OF_MASS, 3)},
    "body_inertia": {"body": _span(INERTIA, 6)},
    "joint_target_mode": {"gain": [TARGET_KE, TARGET_KD, TARGET_VELOCITY_GAIN, CLIP_FORCE]},
    "joint_target_ke": {"gain": [TARGET_KE]},
    "joint_target_kd": {"gain": [TARGET_KD, TARGET_VELOCITY_GAIN]},
    "joint_armature": {"gain": [ARMATURE]},
    "joint_damping": {"gain": [DAMPING]},
    "joint_stiffness": {"gain": [STIFFNESS]},
    "joint_effort_limit": {"gain": [EFFORT_LIMIT]},
    "joint_velocity_limit": {"gain": [VELOCITY_LIMIT]},
    "joint_friction": {"gain": [FRICTION_LOSS]},
    "joint_friction_ratio": {"gain": [FRICTION_RATIO]},
    "joint_limit_lower": {"gain": [LIMIT_LOWER]},
    "joint_limit_upper": {"gain": [LIMIT_UPPER]},
    "joint_rest_q": {"gain": [REST_Q, REST_W]},
    "joint_mimic_coeffs": {"gain": [MIMIC_OFFSET, MIMIC_RATIO]},
    "shape_transform": {"collider": _span(CENTER, 3) + _span(ROTATION, 4), "plane": _span(0, PLANE)},
    "shape_scale": {"collider": [*_span(SIZE, 3), RADIUS], "plane": _span(HALF_LENGTH, 2)},
    "shape_collision_radius": {"collider": [RADIUS]},
    "shape_margin": {"collider": [SURFACE + MARGIN], "law": [LAW_SHIFT]},
    "shape_gap": {"collider": [SURFACE + GAP]},
    "shape_material_mu": {"collider": [SURFACE + MU], "law": [LAW_MU]},
    "shape_material_restitution": {"collider": [SURFACE + RESTITUTION]},
    "shape_material_time_constant": {"collider": [SURFACE + OMEGA]},
    "shape_material_damping_ratio": {"collider": [SURFACE + DAMPING_RATIO]},
    "shape_material_mu_torsional": {"collider": [SURFACE + MU_TORSIONAL]},
    "shape_material_mu_rolling": {"collider": [SURFACE + MU_ROLLING]},
    "gravity": {"gravity": _span(0, 3)},
}
"""The arrays that parameters come from, and which numbers of a record each of them changes; and see :data:`MASSES`."""

LINES = "tendon_armature"
"""The array with inertias along tendons."""

MASSES = frozenset(
    ("joint_X_p", "joint_X_c", "joint_axis", "joint_armature", "body_mass", "body_com", "body_inertia", FLAGS, LINES)
)
"""The arrays that weights depend on: each of them changes the weights of all degrees of freedom."""

KINEMATIC = {
    "joint": [DISTANCE_MIN, DISTANCE_MAX],
    "gain": [
        ARMATURE, DAMPING, STIFFNESS, TARGET_KE, TARGET_KD, TARGET_VELOCITY_GAIN, EFFORT_LIMIT, VELOCITY_LIMIT, FRICTION_LOSS,
        LIMIT_LOWER, LIMIT_UPPER, CLIP_FORCE,
    ],
    "body": [MASS, *_span(INERTIA, 6)],
    "collider": [SURFACE + GAP],
    "pair": [0],
}  # fmt: skip
"""The parameters that depend on whether a body is kinematic."""

BINDING = {
    "joint_effort_limit": EFFORT, "joint_friction": FRICTION, "joint_friction_ratio": SLIP, "joint_velocity_limit": VELOCITY,
    "joint_limit_lower": POSITION, "joint_limit_upper": POSITION,
}  # fmt: skip
"""Limits that may bind a dof once numbers of an array vary."""

DRIVES = {"joint_target_mode", "joint_target_ke", "joint_target_kd"}
"""Arrays that may give a dof a drive, which its effort limit then binds, once their numbers vary."""


class Layout:
    """Where the records of a batch are in a row of parameters.

    Args:
        template: the :class:`newton_like.programs.template.Template` of the batch.
        contacts: colliders and planes, a :class:`newton_like.collision.ground.ContactTables`; None: there are none.
        prescribed: whether kinematic bodies keep their velocity.

    Attributes:
        counts: number of records of each group.
        at: where each group starts; `size`: length of a row.
        spans: where each group starts and ends.
        drivers: see :func:`drivers_of`; empty unless `prescribed`.
    """

    def __init__(self, template, contacts, prescribed: bool):
        colliders, hull, planes, pairs = (0, 0, 0, 0) if contacts is None else contacts.sizes
        self.counts = dict(
            joint=template.bodies, dof=template.dofs, body=template.bodies, gain=template.dofs, collider=colliders, hull=hull, plane=planes,
            gravity=1, pair=pairs, law=0 if contacts is None else contacts.law_count,
            weight=0 if contacts is None or contacts.weights is None else template.dofs,
        )  # fmt: skip
        ends = np.cumsum([0] + [n * RECORDS[name] for name, n in self.counts.items()]).tolist()
        self.at, self.size = dict(zip(self.counts, ends, strict=False)), ends[-1]
        self.spans = dict(zip(self.counts, pairwise(ends), strict=True))
        self.drivers = drivers_of(template, contacts) if prescribed else {}

    def read(self, names) -> frozenset[str]:
        """The arrays among some that parameters come from."""
        weighed = MASSES if self.counts["weight"] else frozenset()
        return frozenset(name for name in names if name in SOURCES or name == FLAGS or name in weighed)

    def slots(self, names) -> np.ndarray:
        """Which parameters come from some arrays, ``[size]`` bool."""
        chosen = np.zeros(self.size, dtype=bool)
        if not MASSES.isdisjoint(names):
            chosen[slice(*self.spans["weight"])] = True
        for name in names:
            for group, places in (KINEMATIC if name == FLAGS else SOURCES.get(name, {})).items():
                start, end = self.spans[group]
                rows = chosen[start:end].reshape(-1, RECORDS[group])
                if name == FLAGS:
                    drivers = self.drivers.get(group, np.zeros(0))
                    if group == "pair" and self.drivers:
                        drivers = np.maximum(drivers, self.drivers["second"])
                    driven = np.flatnonzero(drivers >= 0)
                    rows[np.ix_(driven, places)] = True
                else:
                    rows[:, places] = True
        return chosen

    def arrays_of(self, differs: np.ndarray) -> set[str]:
        """The arrays that some parameters come from."""
        names = set()
        for name, groups in SOURCES.items():
            for group, places in groups.items():
                start, end = self.spans[group]
                if differs[start:end].reshape(-1, RECORDS[group])[:, places].any():
                    names.add(name)
        start, end = self.spans["pair"]
        if differs[start:end].any():
            names.add(FLAGS)
        start, end = self.spans["weight"]
        if differs[start:end].any() and names.isdisjoint(MASSES):
            # of the arrays that weights come from, this one alone has no other parameters
            names.add(LINES)
        return names


_NONE = np.zeros(0, dtype=int)


def drivers_of(template, contacts) -> dict[str, np.ndarray]:
    """The body whose flag a record depends on: its place in the articulation, for each record of each group of parameters. It is the body
    of the only joint with degrees of freedom between the record's body and the world; -1 if there is no such joint, or several."""
    joint = np.where((template.parent >= template.bodies) & (np.diff(template.dof_at) > 0), template.body_slot, -1)
    owner = np.repeat(np.arange(template.bodies), np.diff(template.dof_at))
    body = np.array([-1 if leaf < 0 else joint[owner[leaf]] for leaf in template.leaf], dtype=int)
    drivers = dict(joint=joint, gain=joint[owner], body=body, collider=_NONE, pair=_NONE, second=_NONE)
    if contacts is not None and contacts.plane_of is not None:
        arrays = contacts.arrays
        # a pair of two shapes that no force moves is off; shapes as such never are
        colliders = body[arrays["collider_body"]] if len(arrays["collider_body"]) else []
        drivers["collider"] = np.concatenate([colliders, np.full(len(arrays["shape_body"]), -1)]).astype(int)
        moves = np.append(template.leaf >= 0, False)
        of = np.where(moves[arrays["shape_body"]], np.append(body, -1)[arrays["shape_body"]], -2)
        drivers["pair"], drivers["second"] = of[arrays["pair_one"]], of[arrays["pair_two"]]
    return drivers
