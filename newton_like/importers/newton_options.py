"""Options of Newton's importers that newton_like does not support, and errors for unknown options."""

from __future__ import annotations

import functools
import inspect

from newton_like.options import check_option

_GAPS = "newton_like has one convention for margins and gaps"

URDF = {
    "bodies_follow_joint_ordering": (True, "bodies are always added in the order of joints"),
}
MJCF = {
    "collider_classes": (("collision",), "geoms collide by their contype and conaffinity, as in MuJoCo"),
    "convert_3d_hinge_to_ball_joints": (False, "three hinges of a body are one D6 joint"),
    "convert_mjc_equality_constraints": (True, "leave equalities out by skip_equality_constraints=True"),
    "ctrl_direct": (False, "report.actuators has the array and the index of the control of each actuator"),
    "legacy_margin_gap": (False, _GAPS),
    "no_class_as_colliders": (True, "geoms collide by their contype and conaffinity, as in MuJoCo"),
    "visual_classes": (("visual",), "geoms are visuals by their contype and conaffinity, as in MuJoCo"),
}
USD = {
    "allow_unsafe_torch_checkpoints": (False, "files of torch are not read"),
    "bodies_follow_joint_ordering": (True, "bodies are always added in the order of joints"),
    "convert_mjc_equality_constraints": (True, "leave prims out by ignore_paths"),
    "legacy_margin_gap": (False, _GAPS),
    "parse_mujoco_options": (True, "leave gravity out by scene_gravity=False"),
    "return_deformable_results": (False, "newton_like has no deformable bodies"),
    "schema_resolvers": (None, "attributes of newton, physx and mjc are read as the docstring says"),
}
"""For each option, the value that has no effect, and advice instead of other values."""


def refuses_others(known: dict):
    """Decorator of importers: options of Newton are accepted at the value without effect; other values and unknown options raise."""

    def decorate(function):
        own = tuple(inspect.signature(function).parameters)

        @functools.wraps(function)
        def importer(builder, source, **options):
            for name in [name for name in options if name not in own]:
                check_option(function.__name__, name, options.pop(name), known, own[2:])
            return function(builder, source, **options)

        return importer

    return decorate
