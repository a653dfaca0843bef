"""The memory of a worker: the table of its rows.

A row is a named sequence of lanes; ``L.name`` is the index of its first lane. The struct ``Layout``, the sizes, the lanes that persist
between steps and the rows that specialised code writes follow from the tables below. To add a row, add a line.

Every program has the rows of `KINEMATICS`. The step of `SolverFeatherstone` also has those of `STEP`. Each program of the dynamics library
names the further rows that it uses.
"""

import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A named sequence of lanes.

    Attributes:
        name: the field of ``Layout``.
        meaning: the meaning of its numbers.
        size: a function from the namespace of counts (see :func:`sizes`) to the number of lanes; None: each program gives the size.
        read_by: untraced code that reads the row: ``"kernel"``, the kernel that calls the stages of a step; ``"hulls"``, ``"pairs"``,
            ``"polish"`` (steps of Newton), ``"couplings"``, ``"loops"``, ``"tendons"``, ``"massive"`` (spatial tendons with inertia),
            ``"carriers"`` (kinematic bodies), ``"actuators"``, ``"adhesion"`` (actuators on contacts), ``"ranges"`` (of sums of forces),
            ``"accelerations"`` (states with ``joint_qdd``) and ``"laws"`` (soft contacts of pairs). Specialised steps call such
            code, too. Traces contain all other readers.
        kept: a function from the namespace of counts to the number of lanes, from the first one on, that persist between steps; None: no
            lane persists.
        shared: whether programs of the dynamics library also use a row of a step.
    """

    name: str
    meaning: str
    size: Callable | None = None
    read_by: str = ""
    kept: Callable | None = None
    shared: bool = False


def _dofs(n) -> int:
    return n.dofs


def _trees(n) -> int:
    return n.trees


def _impulses(n) -> int:
    return n.contact_rows * n.candidates + _bonds(n) + n.limit_rows


def _bonds(n) -> int:
    return n.bonds


def _one(n) -> int:
    return 1


def _settling(n) -> bool:
    """Whether sweeps go on until velocities settle."""
    return bool(n.pairs or n.bonds)


SINGLE_ROWS = 96
"""Worlds with more rows are not solved one at a time."""


def _single_slots(n) -> int:
    """The largest number of contacts of a world that is solved alone."""
    return min(n.candidates, SINGLE_ROWS // max(n.contact_rows, 1))


KINEMATICS = (
    Row("q", "joint coordinates", lambda n: n.coords, "kernel"),
    Row("v", "joint velocities", _dofs, "kernel"),
    Row("origin", "reference points of trees in the world", lambda n: 3 * n.trees, "hulls pairs tendons"),
    Row(
        "quat",
        "orientations of bodies and, last, of the world as each tree has it",
        lambda n: 4 * (n.bodies + n.trees),
        "hulls pairs loops",
    ),
    Row("rot", "the same as matrices", lambda n: 9 * (n.bodies + n.trees), "hulls couplings pairs tendons"),
    Row(
        "pos",
        "places of link frames about the origin",
        lambda n: 3 * (n.bodies + n.trees),
        "hulls couplings pairs tendons",
    ),
    Row(
        "com", "places of centres of mass about the origin", lambda n: 3 * (n.bodies + n.trees), "couplings laws ranges"
    ),
    Row("subspace", "motion subspaces: six numbers a dof", lambda n: 6 * n.dofs, "couplings pairs ranges tendons"),
    Row("twist", "twists of bodies about the origin", lambda n: 6 * (n.bodies + n.trees), "hulls pairs loops massive"),
    Row("drift", "bias accelerations of bodies", lambda n: 6 * (n.bodies + n.trees), "loops massive"),
    Row("load", "wrenches on bodies and what they carry", lambda n: 6 * n.bodies),
    Row("composite", "inertias of bodies and what they carry", lambda n: 10 * n.bodies, "pairs"),
    # the kernel reads the same entries as the traced stage `predict`
    Row("h", "joint-space inertia or its factor, a packed triangle", lambda n: n.entries, "couplings pairs tendons"),
)
"""Rows of every program."""

STEP = (
    # inputs
    Row("force", "joint forces", _dofs, shared=True),
    Row("target_q", "position targets", lambda n: n.coords, "kernel", shared=True),
    Row("target_v", "velocity targets", _dofs),
    Row("act", "forces of drives", _dofs),
    Row("wrench", "external wrenches on bodies", lambda n: 6 * n.bodies, shared=True),
    # forces without constraints, and the resulting velocity
    Row("error", "from coordinates to their targets, by dof", _dofs, shared=True),
    Row("strain", "from rest values to coordinates, by dof", _dofs, shared=True),
    Row("root", "inverse roots of the factor's diagonal", _dofs, "couplings kernel tendons", shared=True),
    Row("carried", "masses on moving joints behind bodies", lambda n: n.bodies, shared=True),
    Row("light", "one for bodies of hardly any mass beside that", lambda n: n.bodies, shared=True),
    Row("drag", "armature and implicit passive terms of the diagonal", _dofs),
    Row("push", "forces of drives at no velocity", _dofs, "ranges"),
    Row("saturated", "-1, 0 or 1: which limit a drive gives", _dofs),
    Row("excess", "change of `saturated` that brings the drive within its limit", _dofs),
    Row("over", "positive where a limit was broken that no row enforced", _one, "kernel"),
    Row("bias", "bias forces", _dofs, "kernel", shared=True),
    Row("bias_change", "change of a tree's velocity by the last iteration for the bias, squared, over its square; positive: once more",
        _trees, "kernel"),
    Row("bias_share", "share of the sum of old and new velocity that counts as the middle", _trees, "kernel"),
    Row("bias_size", "square of the velocity of a tree", _trees),
    Row("middle", "velocities at the middle of the step", _dofs),
    Row("trial", "forces at these velocities, or without constraints", _dofs),
    Row("tau", "forces without the bias", _dofs, "actuators tendons", shared=True),
    Row("u", "new velocities", _dofs, "kernel", shared=True),
    Row("z", "new velocities, whitened", _dofs, "couplings kernel", shared=True),
    # contacts: candidates have positions and forces, active contacts have constraint rows
    Row("gap", "distances of candidates", lambda n: n.candidates, "adhesion hulls pairs"),
    Row("near", "negative where a candidate acts", lambda n: n.candidates, "kernel"),
    Row("clear", "negative where a collider may touch", lambda n: n.colliders, "kernel"),
    Row("point", "contact points about the origin", lambda n: 3 * n.candidates, "hulls pairs"),
    # impulses are contiguous, so that they are scaled, copied and cleared together
    Row("impulse", "impulses of candidates, between steps forces", lambda n: n.contact_rows * n.candidates, "kernel",
        lambda n: n.contact_rows * n.candidates, shared=True),
    Row("coupling_impulse", "the same of couplings, then of rows of loop joints, then of tendons", _bonds, "couplings kernel", _bonds),
    Row("dof_impulse", "the same of friction, velocity limit and position limit of dofs", lambda n: 3 * n.dofs, "kernel",
        lambda n: n.limit_rows),
    Row("contact", "coefficients of active contacts", lambda n: n.contact_numbers * n.candidates, "kernel", shared=True),
    Row("contact_y", "whitened rows of active contacts", lambda n: n.reach * n.contact_rows * n.candidates,
        "adhesion carriers pairs",
        shared=True),
    # contacts of a robot alone in slots, see `kernels.collision.pairs.gathered`
    Row("slot", "contacts in slots", lambda n: n.slotted * n.slot_numbers * n.candidates, "kernel"),
    Row("slot_count", "how many slots a world has", lambda n: n.slotted, "kernel"),
    Row("slot_work", "products and tangents of the rows of a slot", lambda n: n.slotted * n.slot_work_numbers, "kernel"),
    Row("fresh", "a contact before it gets a slot", lambda n: n.slotted * n.slot_numbers, "kernel"),
    Row("shape_more", "sizes and materials of shapes", lambda n: n.slotted * n.more_numbers * n.shapes, "kernel"),
    Row("pair_limit", "how far from each other its surfaces are looked at", lambda n: n.slotted * n.pairs, "kernel"),
    Row("gathered", "the pairs that a visit looks at", lambda n: n.slotted * n.gathered_numbers, "kernel"),
    Row("old_impulse", "impulses of the step before", lambda n: n.slotted * n.contact_rows * n.candidates, "kernel"),
    Row("old_feature", "their features", lambda n: n.slotted * n.candidates, "kernel"),
    Row("old_pair", "and their pairs", lambda n: n.slotted * n.candidates, "kernel", lambda n: n.slotted * n.candidates),
    # the same of packed contacts
    Row("packed", "coefficients of contacts in slots", lambda n: n.packed * n.contact_numbers * n.candidates, "kernel"),
    Row("packed_y", "their rows, over all dofs", lambda n: max(n.packed, n.slotted) * n.dofs * n.contact_rows * n.candidates, "kernel"),
    Row("packed_impulse", "their impulses", lambda n: n.packed * n.contact_rows * n.candidates, "kernel"),
    Row("packed_swept", "these after the last sweep", lambda n: n.packed * n.contact_rows * n.candidates, "kernel"),
    Row("packed_start", "these with which the next sweep starts", lambda n: n.packed * n.contact_rows * n.candidates, "kernel"),
    Row("packed_worlds", "one more than the slots of a world whose contacts are in slots, else zero", _one, "kernel"),
    Row("material", "material of a contact", lambda n: 6, "pairs"),
    # a pair of shapes that is looked at
    Row("tree_mass", "masses of trees", lambda n: n.trees if n.pairs else 0, "pairs"),
    Row("push_share", "share of the push of active contacts", lambda n: n.candidates if n.pairs else 0, "kernel pairs"),
    Row("shape_place", "places and bounds of shapes", lambda n: n.place_numbers * n.shapes, "pairs"),
    Row("pair_shapes", "places, axes and sizes of both shapes", lambda n: n.pair_numbers, "pairs"),
    Row("manifold", "their contact points", lambda n: n.manifold_numbers, "pairs"),
    Row("normal", "normals of candidates of pairs", lambda n: 3 * (n.candidates - n.first_paired), "pairs"),
    Row("feature", "what touches at these candidates", lambda n: n.candidates - n.first_paired, "kernel pairs",
        lambda n: n.candidates if n.pairs else 0),
    Row("matched", "impulses of a pair in the order of its new points", lambda n: n.matched_numbers, "pairs"),
    Row("pair_work", "what the search for them works with", lambda n: n.pair_work_numbers, "pairs"),
    Row("surface_work", "the search for contacts with a surface", lambda n: n.surface_numbers if n.surface_pairs else 0, "pairs"),
    Row("corners", "corners of the part that two faces share", lambda n: n.corner_numbers, "pairs"),
    Row("given", "contacts that are handed over", lambda n: n.given, "kernel"),
    # constraint rows of dofs (limits and friction) and couplings
    Row("dof_need", "negative where a dof needs its hard limits", _dofs, "kernel"),
    Row("dof_fresh", "negative where the solution breaks them", _dofs, "kernel"),
    Row("speeding", "positive where a speed is above its limit", _one, "kernel"),
    Row("unsettled", "the same of SETTLED times the limit", _one, "kernel"),
    Row("dof_row", "coefficients of rows of dofs", lambda n: n.dof_numbers * n.dofs, "polish"),
    Row("dof_y", "whitened rows of dofs", lambda n: n.reach * n.dofs, "carriers polish"),
    Row("coupling_row", "coefficients of couplings", lambda n: n.coupling_numbers * n.couplings, "couplings"),
    Row("coupling_y", "whitened rows of couplings, over all dofs", lambda n: n.dofs * n.couplings, "couplings carriers"),
    # rows of loop joints
    Row("loop", "anchors and directions of the rows of loop joints", lambda n: n.loop_numbers * n.loop_rows, shared=True),
    Row("loop_row", "whitened rows of loop joints, over all dofs", lambda n: n.dofs * n.loop_rows, "carriers", shared=True),
    Row("loop_gram", "their products, a packed triangle", lambda n: n.loop_rows * (n.loop_rows + 1) // 2, "carriers", shared=True),
    Row("loop_law", "numbers of their laws", lambda n: n.law_numbers * n.loop_rows * n.loop_soft),
    Row("loop_speed", "their velocities before the step", lambda n: n.loop_rows * n.loop_soft),
    Row("loop_compliance", "their softness", lambda n: n.loop_rows * n.loop_soft),
    Row("loop_impedance", "their impedances", lambda n: n.loop_rows * n.loop_soft),
    Row("loop_bounded", "bounds and masses of bounded rows", lambda n: n.bounded_numbers * (n.loop_rows - n.loop_block)),
    Row("loop_want", "what they ask for", lambda n: n.loop_rows, shared=True),
    Row("loop_left", "the errors that a step leaves", lambda n: n.loop_rows),
    Row("loop_step", "a correction of their forces", lambda n: n.loop_rows, shared=True),
    Row("loop_q", "coordinates that are set aside", lambda n: n.coords if n.loop_rows else 0),
    Row("loop_v", "velocities that are set aside", lambda n: n.dofs if n.loop_rows else 0),
    # tendons
    Row("tendon_f", "forces of their drives", lambda n: n.tendons),
    Row("tendon_target_q", "lengths that drives aim at", lambda n: n.tendons),
    Row("tendon_target_qd", "and their rates", lambda n: n.tendons),
    Row("tendon_record", "numbers of tendons for specialised code", lambda n: n.tendon_records),
    Row("tendon_length", "their lengths", lambda n: n.tendons, "actuators", shared=True),
    Row("tendon_j", "derivatives of these, over all dofs", lambda n: n.dofs * n.tendons, "actuators", shared=True),
    Row("tendon_y", "these whitened", lambda n: n.dofs * n.tendons, "carriers"),
    Row("tendon_tau", "joint forces of springs, dampers and drives", lambda n: n.dofs if n.tendons else 0, "actuators"),
    Row("tendon_row", "coefficients of tendons", lambda n: n.tendon_numbers * n.tendons, "kernel"),
    Row("tendon_force", "their forces in the last step", lambda n: n.tendons, "kernel", lambda n: n.tendons),
    # actuators
    Row("actuator_ctrl", "controls of actuators", lambda n: n.actuators),
    Row("actuator_act", "their activations", lambda n: n.actuators),
    Row("actuator_strength", "what their gains are multiplied by", lambda n: n.actuators),
    # the search for impulses
    Row("warm_work", "what remembered impulses do along the targets of their rows", _one, "kernel"),
    Row("free_z", "z without impulses", _dofs, "kernel"),
    Row("swept_z", "z after the last sweep, where bodies may touch each other", lambda n: n.dofs if n.pairs else 0, "kernel"),
    Row("swept_impulse", "impulses of active rows after the last sweep", lambda n: _impulses(n) if n.pairs else 0, "kernel"),
    Row("start_impulse", "the same with which the next sweep starts", lambda n: _impulses(n) if n.pairs else 0, "kernel"),
    Row("round_z", "z before the last round of sweeps", lambda n: n.dofs if _settling(n) else 0, "kernel"),
    Row("pace", "how far impulses go on, zero where that diverged; or how many changes are known, less one", _one, "kernel"),
    Row("first_way", "change of z by the first sweep, squared", _one, "kernel"),
    Row("settled", "one for a world whose sweeps are done", _one, "kernel"),
    Row("settled_z", "its z", lambda n: n.dofs if _settling(n) else 0, "kernel"),
    Row("settled_impulse", "its impulses", lambda n: _impulses(n) if _settling(n) else 0, "kernel"),
    # steps of Newton between sweeps
    Row("friction_bound", "bounds of the friction of dofs in the list", lambda n: n.polished * n.dofs, "kernel"),
    Row("velocity_bound", "velocity limits of dofs in the list; zero without one", lambda n: n.polished * n.dofs, "kernel"),
    Row("sweep_z", "z before the last sweep", lambda n: n.polished * n.dofs, "kernel"),
    Row("mix_residual", "the change of z by a sweep, see `kernels.solvers.mixing`", lambda n: max(n.packed, n.slotted) * n.dofs, "kernel"),
    Row("mix_change", "how that changed from one sweep to the next", lambda n: max(n.packed, n.slotted) * n.dofs, "kernel"),
    Row("mix_way", "how the z after a sweep did", lambda n: max(n.packed, n.slotted) * n.dofs, "kernel"),
    Row("aside_impulse", "impulses before the last step", lambda n: n.polished * _impulses(n), "kernel"),
    Row("sweep_change", "change of z or of impulses by the last sweep, squared; negative in pairs of sweeps", _one, "kernel"),
    Row("tried", "one for a world that makes a step", lambda n: n.polished, "kernel"),
    Row("resting", "one for a world whose last step was taken back", lambda n: n.polished, "kernel"),
    Row("beside", "numbers of single worlds, side by side",
        lambda n: max(n.packed, n.slotted) * (_single_slots(n) * (n.dofs * n.contact_rows + n.contact_numbers + n.contact_rows)
            + n.dofs * (n.reach + n.dof_numbers + 5) + 8 * 16), "kernel"),
    Row("newton", "equations of a step of a thread with one world", lambda n: n.newton_numbers and n.newton_numbers + 3 * n.dofs),
    Row("first_u", "velocities of an earlier solution, and work numbers", _dofs, "kernel"),
    Row("first_impulse", "impulses of an earlier solution", _impulses, "kernel"),
    # energy added by the time discretisation
    Row("fastness", "how much the motion of a tree turns in a step, as `bias_change`", _trees, "kernel"),
    Row("account", "energy that was added and not taken back", _trees, "kernel", _trees),
    Row("owed", "one where that exceeds OWED times the kinetic energy", _trees, "kernel", _trees),
    Row("ledger", "energies of a tree that are compared", lambda n: n.ledger_numbers * n.trees, "kernel"),
    # outputs
    Row("body_q", "poses of link frames", lambda n: 7 * n.bodies, "kernel", shared=True),
    Row("body_qd", "velocities of centres of mass and angular velocities", lambda n: 6 * n.bodies, "kernel", shared=True),
    Row("joint_qdd", "changes of joint velocities by time", _dofs, "accelerations"),
)  # fmt: skip
"""Further rows of a step."""

LIBRARY = (
    # results of several kinds
    Row("matrix", "a matrix that is a result"),
    Row("vector", "a vector that is a result"),
    Row("second", "a second one"),
    Row("third", "a third one"),
    # forces and accelerations
    Row("acceleration", "joint accelerations", _dofs),
    Row("articulated", "articulated inertias, or inertias and their rates, of bodies", lambda n: 21 * n.bodies),
    Row("lever", "articulated inertias times motion subspaces", lambda n: 6 * n.dofs),
    Row("pivot", "inverse pivots", _dofs),
    Row("subspace_rate", "rates of motion subspaces", lambda n: 6 * n.dofs),
    Row("wrenches", "wrenches on links or frames"),
    Row("limit_stiffness", "stiffness of joint limits"),
    Row("limit_damping", "damping of joint limits"),
    Row("weights", "numbers that all articulations share"),
    # integration
    Row("rate", "rates of coordinates"),
    Row("rate_total", "their weighted sum so far"),
    Row("acceleration_total", "the same of accelerations"),
    Row("next_q", "coordinates of the next stage"),
    Row("next_v", "velocities of the next stage"),
    Row("next_rate", "rates of the next stage"),
    Row("next_rate_total", "their weighted sum with this stage"),
    Row("next_acceleration_total", "the same of accelerations"),
    # contact points of links
    Row("offset", "places of frames on their links"),
    Row("point_on", "which points are looked at"),
    Row("point_slip", "tangential deflections of points"),
    Row("point_slip_rate", "their rates"),
    Row("point_ground", "the ground below points as a plane n.x = c: n and c"),
    Row("point_law", "parameters of the contact law"),
    Row("point_force", "forces on points"),
    Row("point_depth", "depths of points"),
    Row("search", "an iterative search so far"),
    Row("found", "the same after one more visit"),
    Row("next_contact", "coefficients of contacts with their masses"),
    Row("previous_z", "z before the last sweep", _dofs),
    Row("momentum", "how far sweeps go on along their last change", _one),
    # loop joints
    Row("loop_force", "their forces"),
    Row("loop_given", "which of them are independent"),
    Row("tendon", "numbers of tendons, see `kernels.dynamics.tendons`"),
    # robots of the SDK
    Row("base_twist", "twist of the base link"),
    Row("base_acceleration", "its acceleration"),
    Row("operational", "an inertia in operational space, or its inverse"),
    Row("capsules", "ends of axes in link frames, and radii"),
    Row("capsule_axes", "start and direction of axes in the frame of the reference link"),
    Row("pairs", "distances of pairs of capsules, and where they are"),
    Row("distance_rows", "derivatives of these distances"),
    Row("goals", "poses that links are to have, a factor on the damping, and whether anything is to be done"),
    Row("ik_settings", "limits, weights and tolerances of inverse kinematics"),
    Row("ik_error", "weighted rotations and translations to the goals"),
    Row("ik_columns", "their negative derivatives"),
    Row("ik_gram", "products of these with themselves, a packed triangle, and its factor"),
    Row("ik_force", "the solution for them"),
    Row("ik_step", "a step of the dofs"),
    Row("ik_result", "the best joint positions, and what is known about them"),
    # orientations that are differentiated
    Row("turn", "variations of orientations", lambda n: 3 * (n.bodies + n.trees)),
)
"""Further rows of programs of the dynamics library, which also use the shared rows of `STEP`."""

ROWS = {row.name: row for row in (*KINEMATICS, *STEP, *LIBRARY)}
STEP_ROWS = tuple(row.name for row in (*KINEMATICS, *STEP))
LIBRARY_ROWS = tuple(row.name for row in (*KINEMATICS, *(row for row in STEP if row.shared), *LIBRARY))
KEPT = tuple(row for row in STEP if row.kept is not None)


def sizes(rows: Iterable[Row], counts) -> dict[str, int]:
    """Numbers of lanes of rows that have a `size`.

    Args:
        rows: rows with a `size`.
        counts: a namespace with coords, dofs, bodies, trees, entries (of `h`) and reach (the longest chain); for a step also candidates,
            colliders, contact_rows, couplings, loop_rows, tendons, bonds, limit_rows and given, and the sizes of records: contact_numbers,
            dof_numbers, coupling_numbers, loop_numbers, tendon_numbers, tendon_records, ledger_numbers, those of
            `kernels.collision.pairs.records`; pairs, shapes, first_paired, polished, packed and newton_numbers.
    """
    return {row.name: row.size(counts) for row in rows}


def stack(sizes: dict[str, int]) -> dict[str, int]:
    """First lanes of contiguous rows of these sizes. The entry ``"size"`` is the total plus one, because memory must not be empty."""
    layout, at = {}, 0
    for name, size in sizes.items():
        layout[name] = at
        at += size
    layout["size"] = at + 1
    return layout


def layout_struct(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: the struct ``Layout``. Field ``name`` is the first lane of a row, and ``kept_name`` its first lane in the
    memory that persists between steps.

    Steps and the dynamics library have separate structs with only the rows in ``m.memory_rows``, because each launch passes a struct.
    """
    kept = [f"kept_{row.name}" for row in KEPT] if m.memory_rows == STEP_ROWS else []
    fields = ["size", *m.memory_rows, *kept]
    Layout = m.struct(type("Layout", (), {"__annotations__": dict.fromkeys(fields, int), "__module__": __name__}))
    return dict(Layout=Layout)
