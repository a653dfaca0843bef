"""MuJoCo's settings of contacts and of joint limits as custom attributes of shapes, of pairs of shapes and of degrees of freedom, with
Newton's names in the namespace ``mujoco``."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.model.custom import AttributeFrequency, CustomAttribute, CustomFrequency

NAMESPACE = "mujoco"
PAIR = f"{NAMESPACE}:pair"
"""The custom frequency of pairs of shapes with settings of their own."""

FRICTION_RULE, SOFTNESS_RULE, LARGER_RULE = 1, 2, 4
"""Bits of ``contact_rules``."""

SOLREF, SOLIMP = (0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)
"""MuJoCo's defaults of ``solref`` and ``solimp``."""

FRICTION = (1.0, 0.005, 0.0001)
"""MuJoCo's default of ``friction`` of geoms: sliding, torsional, rolling."""

PAIR_FRICTION = (1.0, 1.0, 0.005, 0.0001, 0.0001)
"""That of pairs: sliding along both tangents, torsional, rolling about both tangents."""

_VEC5 = wp.types.vector(5, wp.float32)

_OF_SHAPES = (
    # own, a sum of: 1: friction as MuJoCo combines it, 2: softness by solref and solimp, 4: the larger friction of two shapes with this
    ("contact_rules", wp.int32, 0, None),
    ("condim", wp.int32, 3, "mjc:condim"),
    ("geom_priority", wp.int32, 0, "mjc:priority"),
    ("geom_solmix", wp.float32, 1.0, "mjc:solmix"),
    ("solref", wp.vec2, SOLREF, "mjc:solref"),
    ("geom_solimp", _VEC5, SOLIMP, "mjc:solimp"),
    # own: torsional and rolling friction, whatever condim is
    ("geom_turning_friction", wp.vec2, FRICTION[1:], None),
)
_OF_PAIRS = (
    ("pair_world", wp.int32, 0, "world"),
    ("pair_geom1", wp.int32, -1, "shape"),
    ("pair_geom2", wp.int32, -1, "shape"),
    ("pair_condim", wp.int32, 3, None),
    ("pair_solref", wp.vec2, SOLREF, None),
    ("pair_solimp", _VEC5, SOLIMP, None),
    ("pair_margin", wp.float32, 0.0, None),
    ("pair_gap", wp.float32, 0.0, None),
    ("pair_friction", _VEC5, PAIR_FRICTION, None),
)
_OF_DOFS = (
    # own: 1: the position limits of a degree of freedom are soft by solreflimit and solimplimit
    ("limit_rules", wp.int32, 0, None),
    ("solreflimit", wp.vec2, SOLREF, "mjc:solreflimit"),
    ("solimplimit", _VEC5, SOLIMP, "mjc:solimplimit"),
    ("limit_margin", wp.float32, 0.0, "mjc:margin"),
)

_SHAPE_SETTINGS = tuple(name for name, *_ in _OF_SHAPES)
PAIR_SETTINGS = tuple(name for name, *_ in _OF_PAIRS)
LIMIT_SETTINGS = tuple(name for name, *_ in _OF_DOFS)
SETTINGS = (*_SHAPE_SETTINGS, *PAIR_SETTINGS, *LIMIT_SETTINGS)


def is_solref(solref) -> bool:
    """Whether two numbers are a time constant and a damping ratio, or a stiffness and a damping as negative numbers."""
    return min(solref) > 0.0 or max(solref) < 0.0


def declare_attributes(builder, rows, frequency: AttributeFrequency) -> None:
    """Declares custom attributes of shapes or degrees of freedom, which importers of MJCF read with checks of their own.

    Args:
        builder: the builder.
        rows: of each attribute the name, the type, the default and the name in USD.
        frequency: what has the attributes.
    """
    for name, dtype, default, usd in rows:
        builder.add_custom_attribute(
            CustomAttribute(
                name, dtype, frequency, namespace=NAMESPACE, default=default, usd_attribute_name=usd,
                mjcf_attribute_name=f"mujoco:{name}",
            )
        )  # fmt: skip


def declare_contact_settings(builder) -> None:
    """Declares the settings of contacts and limits of MuJoCo as custom attributes of a builder; see
    :meth:`newton_like.solvers.SolverFeatherstone.register_custom_attributes`."""
    if PAIR not in builder.custom_frequencies:
        builder.add_custom_frequency(CustomFrequency("pair", namespace=NAMESPACE))
    declare_attributes(builder, _OF_SHAPES, AttributeFrequency.SHAPE)
    for name, dtype, default, refers in _OF_PAIRS:
        builder.add_custom_attribute(
            CustomAttribute(name, dtype, PAIR, namespace=NAMESPACE, default=default, references=refers)
        )
    declare_attributes(builder, _OF_DOFS, AttributeFrequency.JOINT_DOF)


def declare_body_settings(builder) -> None:
    """Declares the share of the weight of bodies that is taken away, ``mujoco:gravcomp``."""
    builder.add_custom_attribute(
        CustomAttribute(
            "gravcomp", wp.float32, AttributeFrequency.BODY, namespace=NAMESPACE, default=0.0, usd_attribute_name="mjc:gravcomp",
            # the importer reads it with its own checks
            mjcf_attribute_name="mujoco:gravcomp",
        )
    )  # fmt: skip


def has_contact_settings(model) -> bool:
    """Whether shapes, pairs or degrees of freedom of a model may have settings of MuJoCo."""
    space = getattr(model, NAMESPACE, None)
    return hasattr(space, "contact_rules") or hasattr(space, "limit_rules")


def settings_of(model) -> dict:
    """The settings on the host, ``[shape_count, ...]``, ``[pairs, ...]`` and ``[joint_dof_count, ...]``."""
    space = getattr(model, NAMESPACE)
    # attributes of a frequency without entities have no arrays
    sizes = {
        "solref": 2,
        "geom_solimp": 5,
        "geom_turning_friction": 2,
        "pair_solref": 2,
        "pair_solimp": 5,
        "pair_friction": 5,
    }
    sizes |= {"solreflimit": 2, "solimplimit": 5}
    none = {name: np.zeros((0, sizes[name]) if name in sizes else 0) for name in SETTINGS}
    return {name: getattr(space, name).numpy() if hasattr(space, name) else none[name] for name in SETTINGS}
