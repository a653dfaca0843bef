"""The table of all lists of a :class:`ModelBuilder` and all arrays of a :class:`Model`.

A column is a list of the builder and an array of the same name of the model. Code that creates, copies, checks and
converts the lists iterates over this table, so a new quantity needs only a new row.
"""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("body", "joint", "dof", "coord", "articulation", "shape")
"""Kinds of columns, which have one entry for each of these. ``dof`` and ``coord`` are the joints' velocity and position coordinates."""

COUNTS = {kind: {"dof": "joint_dof_count", "coord": "joint_coord_count"}.get(kind, f"{kind}_count") for kind in KINDS}
"""Attributes of builders and models with the number of each kind."""

SHAPES = {"real": (), "vec2": (2,), "vec3": (3,), "mat33": (3, 3), "transform": (7,), "spatial_vector": (6,)}
"""Shape of one entry, by type, for types of real numbers."""

INT_SHAPES = {"int": (), "bool": (), "int2": (2,)}
"""Shape of one entry, by type, for types of integers."""


@dataclass(frozen=True)
class Column:
    """One quantity of every body, joint, dof, coordinate, articulation or shape.

    Attributes:
        name: name of the builder's list and the model's array.
        kind: one of ``KINDS``.
        type: ``real, vec2, vec3, mat33, transform, spatial_vector`` (arrays of the model's scalar type), ``int, int2,
            bool``, or ``object`` (a list in the model too).
        meaning: meaning, with unit and frame.
        refers: kind of the entities that an index column refers to; the index -1 refers to none.
        low, high: smallest and largest allowed value.
        unlimited: infinities are allowed and become ``MAXVAL`` with their sign.
        builder_only: whether the model has no such array.
    """

    name: str
    kind: str
    type: str
    meaning: str
    refers: str | None = None
    low: float | None = None
    high: float | None = None
    unlimited: bool = False
    builder_only: bool = False


def _columns(kind: str, *rows) -> tuple[Column, ...]:
    return tuple(Column(name, kind, type_, meaning, **options) for name, type_, meaning, options in rows)


def _row(name, type_, meaning, **options):
    return name, type_, meaning, options


COLUMNS: tuple[Column, ...] = (
    *_columns(
        "body",
        _row("body_label", "object", "name"),
        _row("body_world", "int", "world, -1: shared by all"),
        _row("body_mass", "real", "mass [kg]", low=0.0),
        _row("body_com", "vec3", "centre of mass in the link frame [m]"),
        _row("body_inertia", "mat33", "inertia about the centre of mass, link axes [kg m^2]"),
        _row("body_flags", "int", "BodyFlags"),
        _row("body_q", "transform", "initial pose of the link frame in the world"),
        _row(
            "body_qd",
            "spatial_vector",
            "initial velocity of the centre of mass [m/s], angular velocity [rad/s], world axes",
        ),
        _row("body_lock_inertia", "bool", "shapes added later leave mass and inertia alone", builder_only=True),
    ),
    *_columns(
        "joint",
        _row("joint_label", "object", "name"),
        _row("joint_world", "int", "world, -1: shared by all"),
        _row("joint_type", "int", "JointType"),
        _row("joint_parent", "int", "parent body, -1: the world", refers="body"),
        _row("joint_child", "int", "child body", refers="body"),
        _row("joint_articulation", "int", "articulation, -1: closes a loop", refers="articulation"),
        _row("joint_enabled", "bool", "a disabled joint exerts no force between its bodies"),
        _row("joint_X_p", "transform", "parent anchor frame in the parent's link frame"),
        _row("joint_X_c", "transform", "child anchor frame in the child's link frame"),
        _row("joint_dof_dim", "int2", "numbers of linear and of angular dofs"),
        _row("joint_q_start", "int", "first coordinate", refers="coord"),
        _row("joint_qd_start", "int", "first dof", refers="dof"),
        _row("joint_mimic_joint", "int", "joint that this one follows, -1: none", refers="joint"),
        _row("joint_mimic_coeffs", "vec2", "(c0, c1) of q = c0 + c1 q_reference [m or rad, 1]"),
        _row("joint_min_distance", "real", "of the anchors of a DISTANCE joint [m], negative: none", unlimited=True),
        _row("joint_max_distance", "real", "of the anchors of a DISTANCE joint [m], negative: none", unlimited=True),
        _row("joint_max_angle", "real", "of the rotation of a BALL joint [rad], negative: none", unlimited=True),
        _row(
            "joint_max_swing",
            "real",
            "of the x axis of a BALL joint's child anchor from that of its parent anchor [rad], negative: none",
            unlimited=True,
        ),
        _row("joint_collision_filter_parent", "bool", "shapes of parent and child never touch", builder_only=True),
    ),
    *_columns(
        "dof",
        _row("joint_axis", "vec3", "unit axis in the parent anchor frame"),
        _row("joint_armature", "real", "inertia of the drive [kg or kg m^2]", low=0.0),
        _row(
            "joint_friction",
            "real",
            "dry friction [N or N m], at rest if joint_friction_ratio is below 1",
            low=0.0,
            unlimited=True,
        ),
        _row("joint_friction_ratio", "real", "dry friction in motion, divided by that at rest [1]", low=0.0, high=1.0),
        _row("joint_damping", "real", "passive viscous damping [N s/m or N m s/rad]", low=0.0),
        _row("joint_stiffness", "real", "passive spring about joint_rest_q [N/m or N m/rad]", low=0.0),
        _row(
            "joint_limit_lower",
            "real",
            "lower position limit [m or rad], -1e10: none; first of a DISTANCE joint: its smallest distance",
            unlimited=True,
        ),
        _row(
            "joint_limit_upper",
            "real",
            "upper position limit [m or rad], 1e10: none; first of a DISTANCE joint: its largest distance",
            unlimited=True,
        ),
        _row("joint_limit_ke", "real", "limit stiffness of penalty solvers [N/m or N m/rad]", low=0.0),
        _row("joint_limit_kd", "real", "limit damping of penalty solvers [N s/m or N m s/rad]", low=0.0),
        _row("joint_effort_limit", "real", "largest drive force [N or N m]", low=0.0, unlimited=True),
        _row("joint_velocity_limit", "real", "largest speed [m/s or rad/s]", low=0.0, unlimited=True),
        _row("joint_target_ke", "real", "drive position gain [N/m or N m/rad]", low=0.0),
        _row("joint_target_kd", "real", "drive velocity gain [N s/m or N m s/rad]", low=0.0),
        _row("joint_target_mode", "int", "JointTargetMode"),
        _row("joint_qd", "real", "initial velocity [m/s or rad/s]"),
        _row("joint_f", "real", "default of Control.joint_f [N or N m]"),
        _row("joint_act", "real", "default of Control.joint_act [N or N m]"),
        _row("joint_target_qd", "real", "default velocity target [m/s or rad/s]"),
    ),
    *_columns(
        "coord",
        _row("joint_q", "real", "initial coordinates [m, rad or quaternion]"),
        _row("joint_target_q", "real", "default position target [m, rad or quaternion]"),
        _row("joint_rest_q", "real", "rest coordinates of the passive spring [m, rad or quaternion]"),
    ),
    *_columns(
        "articulation",
        _row("articulation_label", "object", "name"),
        _row("articulation_world", "int", "world, -1: shared by all"),
        _row("articulation_start", "int", "first joint", refers="joint"),
        _row("articulation_end", "int", "one behind the last joint", refers="joint"),
    ),
    *_columns(
        "shape",
        _row("shape_label", "object", "name"),
        _row("shape_world", "int", "world, -1: shared by all"),
        _row("shape_type", "int", "GeoType"),
        _row("shape_body", "int", "body, -1: fixed in the world", refers="body"),
        _row("shape_transform", "transform", "shape frame in the link frame"),
        _row("shape_scale", "vec3", "sizes, as GeoType says [m, or factors of the source]"),
        _row("shape_source", "object", "Mesh or Heightfield, or None"),
        _row("shape_flags", "int", "ShapeFlags"),
        _row("shape_is_solid", "bool", "solid, or a shell of the margin's thickness"),
        _row("shape_collision_group", "int", "see ShapeConfig.collision_group"),
        _row("shape_material_mu", "real", "sliding friction coefficient", low=0.0),
        _row("shape_material_restitution", "real", "coefficient of restitution", low=0.0, high=1.0),
        _row("shape_material_mu_torsional", "real", "torsional friction coefficient [m]", low=0.0),
        _row("shape_material_mu_rolling", "real", "rolling friction coefficient [m]", low=0.0),
        _row("shape_material_time_constant", "real", "inverse natural frequency of the contact's spring [s]", low=0.0),
        _row("shape_material_damping_ratio", "real", "of the contact's spring and damper", low=0.0),
        _row("shape_material_ke", "real", "stiffness of penalty solvers [N/m]", low=0.0),
        _row("shape_material_kd", "real", "damping of penalty solvers [N s/m]", low=0.0),
        _row("shape_material_kf", "real", "friction gain of penalty solvers [N s/m]", low=0.0),
        _row("shape_margin", "real", "thickness added to the surface [m]", low=0.0),
        _row("shape_gap", "real", "distance beyond the margin at which contacts are found [m]", low=0.0),
        _row("shape_color", "vec3", "display colour, red green blue in 0..1", low=0.0, high=1.0),
        _row("shape_opacity", "real", "display opacity in 0..1", low=0.0, high=1.0),
        _row("shape_collision_filter_parent", "bool", "never touches shapes of its body's parent", builder_only=True),
    ),
)
"""All columns, in the order in which the model documents them."""

_DIFFERENTIATED = ("body_mass", "body_com", "body_inertia", "joint_limit_ke", "joint_limit_kd")
_INITIAL = (
    "body_q", "body_qd", "joint_q", "joint_qd", "joint_f", "joint_act", "joint_target_q", "joint_target_qd",
)  # fmt: skip
"""Initial values, which states and controls copy to arrays with gradients."""

WITH_GRADIENT = (*_DIFFERENTIATED, "gravity")
"""Constants of a model with respect to which functions of the dynamics library have gradients."""

WITHOUT_GRADIENT = tuple(
    column.name
    for column in COLUMNS
    if column.type in SHAPES and not column.builder_only and column.name not in (*_DIFFERENTIATED, *_INITIAL)
)
"""Real constants of a model without gradients."""

READ_WITHOUT_GRADIENT = tuple(
    name for name in WITHOUT_GRADIENT if name.startswith("joint_") or name in ("shape_transform", "shape_scale")
)
"""Constants in `WITHOUT_GRADIENT` that functions of the dynamics library read. These functions raise if one requires gradients."""

BY_NAME: dict[str, Column] = {column.name: column for column in COLUMNS}

KIND_OF: dict[str, str] = {c.name: c.kind for c in COLUMNS if c.type != "object" and not c.builder_only} | {
    "body_f": "body",
    "joint_qdd": "dof",
    "body_qdd": "body",
    "body_parent_f": "body",
    "mujoco.qfrc_actuator": "dof",
    "body_inv_mass": "body",
    "body_inv_inertia": "body",
    "joint_ancestor": "joint",
    "shape_collision_radius": "shape",
    "shape_hull_first": "shape",
    "shape_hull_count": "shape",
}
"""What the arrays of models, states and controls have one entry of."""
