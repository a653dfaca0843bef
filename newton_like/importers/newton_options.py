"""Options of Newton's importers that newton_like does not support, and errors for unknown options."""

from __future__ import annotations

import difflib
import functools
import inspect

import numpy as np

_ROOT = "compose the pose with xform, or set builder.joint_q and joint_X_p of the root afterwards"
_MASSLESS = "merge links by collapse_fixed_joints=True"
_GAPS = "newton_like has one convention for margins and gaps"

URDF = {
    "bodies_follow_joint_ordering": (True, "bodies are always added in the order of joints"),
    "collapse_massless_fixed_root": (False, _MASSLESS),
    "force_position_velocity_actuation": (False, "set builder.joint_target_mode afterwards"),
    "joint_damping_mode": (
        "passive",
        "the damping of a URDF is passive; set builder.joint_target_kd for that of a drive",
    ),
    "override_root_xform": (False, _ROOT),
}
MJCF = {
    "armature_scale": (1.0, "multiply builder.joint_armature afterwards"),
    "collapse_massless_fixed_root": (False, _MASSLESS),
    "collider_classes": (("collision",), "geoms collide by their contype and conaffinity, as in MuJoCo"),
    "convert_3d_hinge_to_ball_joints": (False, "three hinges of a body are one D6 joint"),
    "convert_mjc_equality_constraints": (True, "leave equalities out by skip_equality_constraints=True"),
    "ctrl_direct": (False, "the actuators of the report say which entry of Control takes the control of each"),
    "ignore_classes": ((), "name the bodies and geoms in ignore_names"),
    "legacy_margin_gap": (False, _GAPS),
    "no_class_as_colliders": (True, "geoms collide by their contype and conaffinity, as in MuJoCo"),
    "override_root_xform": (False, _ROOT),
    "visual_classes": (("visual",), "geoms are visuals by their contype and conaffinity, as in MuJoCo"),
}
USD = {
    "allow_unsafe_torch_checkpoints": (False, "files of torch are not read"),
    "apply_up_axis_from_stage": (
        False,
        "the stage is turned to the axis of the builder; give ModelBuilder(up_axis=...) that of the stage",
    ),
    "bodies_follow_joint_ordering": (True, "bodies are always added in the order of joints"),
    "convert_mjc_equality_constraints": (True, "leave prims out by ignore_paths"),
    "force_position_velocity_actuation": (False, "set builder.joint_target_mode afterwards"),
    "hide_collision_shapes": (False, "clear ShapeFlags.VISIBLE in builder.shape_flags afterwards"),
    "legacy_margin_gap": (False, _GAPS),
    "load_static_visual_shapes": (True, "leave visuals out by hide_visuals=True, or prims by ignore_paths"),
    "only_load_enabled_joints": (
        False,
        "disabled joints are kept with joint_enabled false; leave them out by ignore_paths",
    ),
    "only_load_enabled_rigid_bodies": (True, "a prim whose rigidBodyEnabled is false becomes part of its parent body"),
    "override_root_xform": (False, _ROOT),
    "parse_mujoco_options": (True, "leave gravity out by scene_gravity=False"),
    "return_deformable_results": (False, "newton_like has no deformable bodies"),
    "schema_resolvers": (None, "attributes of newton, physx and mjc are read as the docstring says"),
    "skip_mesh_approximation": (False, "meshes collide as the stage says"),
}
"""For each option, the value that has no effect, and advice instead of other values."""


def refuses_others(known: dict):
    """Decorator of importers: options of Newton are accepted at the value without effect; other values and unknown options raise."""

    def decorate(function):
        own = tuple(inspect.signature(function).parameters)

        @functools.wraps(function)
        def importer(builder, source, **options):
            for name in [name for name in options if name not in own]:
                _refuse(function.__name__, name, options.pop(name), known, own)
            return function(builder, source, **options)

        return importer

    return decorate


def _refuse(function: str, name: str, value, known: dict, own) -> None:
    if name in known:
        neutral, cure = known[name]
        if isinstance(neutral, tuple) and isinstance(value, list):
            value = tuple(value)
        # an array is none of these values, and comparing it would give an array
        if not (isinstance(value, type(neutral) | int | np.generic) and bool(value == neutral)):
            raise ValueError(
                f"{function}: {name}={value!r} is an option of Newton that newton_like does not support; {cure}"
            )
        return
    near = difflib.get_close_matches(name, [*own[2:], *known], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(own[2:])}"
    raise TypeError(f"{function}() has no option {name!r}{hint}")
