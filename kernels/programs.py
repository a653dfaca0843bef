"""All programs over one kind of number, in one namespace."""

import types
from functools import cache

import warp as wp
from newton_like.kernels.collision.hull_corners import hull_corner_program
from newton_like.kernels.collision.pairs.box import box_pairs
from newton_like.kernels.collision.pairs.box_axes import box_axes_program
from newton_like.kernels.collision.pairs.box_cylinder import box_cylinder_pair
from newton_like.kernels.collision.pairs.boxes import box_bounds
from newton_like.kernels.collision.pairs.capsule_box import capsule_box_pair
from newton_like.kernels.collision.pairs.capsule_cylinder import capsule_cylinder_pair
from newton_like.kernels.collision.pairs.choice import choice_program
from newton_like.kernels.collision.pairs.detect import pair_detection
from newton_like.kernels.collision.pairs.dispatch import pair_dispatch
from newton_like.kernels.collision.pairs.gathered import gathered_pairs
from newton_like.kernels.collision.pairs.manifold import manifold_program
from newton_like.kernels.collision.pairs.minkowski.convex import convex_pairs
from newton_like.kernels.collision.pairs.minkowski.nearest import nearest_program
from newton_like.kernels.collision.pairs.minkowski.polytope import polytope_program
from newton_like.kernels.collision.pairs.minkowski.support import support_program
from newton_like.kernels.collision.pairs.patches import patch_program
from newton_like.kernels.collision.pairs.round import round_pairs
from newton_like.kernels.collision.pairs.shapes import pair_shape_program
from newton_like.kernels.collision.pairs.spheres import sphere_bounds
from newton_like.kernels.collision.plane import plane_collision
from newton_like.kernels.collision.segments import segment_program
from newton_like.kernels.collision.surfaces.ball import ball_program
from newton_like.kernels.collision.surfaces.convex import convex_surface_program
from newton_like.kernels.collision.surfaces.detect import surface_detection
from newton_like.kernels.collision.surfaces.field import field_program
from newton_like.kernels.collision.surfaces.found import found_points
from newton_like.kernels.collision.surfaces.mesh import mesh_program
from newton_like.kernels.dynamics.aba import aba_program
from newton_like.kernels.dynamics.configuration import configuration_program
from newton_like.kernels.dynamics.contact.rigid import rigid_contact_program
from newton_like.kernels.dynamics.contact.search import contact_search_program
from newton_like.kernels.dynamics.contact.soft import soft_contact_program
from newton_like.kernels.dynamics.implicit import implicit_program
from newton_like.kernels.dynamics.joint_motion import joint_motion_program
from newton_like.kernels.dynamics.link_kinematics import link_kinematics_program
from newton_like.kernels.dynamics.loops import loop_program
from newton_like.kernels.dynamics.matrices.armature import armature_program
from newton_like.kernels.dynamics.matrices.coriolis import coriolis_program
from newton_like.kernels.dynamics.matrices.crba import crba_program
from newton_like.kernels.dynamics.matrices.factor import factor_program
from newton_like.kernels.dynamics.matrices.mass_matrix import mass_matrix_program
from newton_like.kernels.dynamics.momentum import momentum_program
from newton_like.kernels.dynamics.moved import moved_program
from newton_like.kernels.dynamics.representation import representation_program
from newton_like.kernels.dynamics.rnea import rnea_program
from newton_like.kernels.dynamics.system import system_program
from newton_like.kernels.dynamics.tendons import tendon_program
from newton_like.kernels.dynamics.wrapping import wrapping_program
from newton_like.kernels.interpreter import interpreter_program
from newton_like.kernels.joints.configuration import configuration_dispatch
from newton_like.kernels.joints.forward import joint_dispatch
from newton_like.kernels.joints.inverse import inverse_joint_dispatch
from newton_like.kernels.joints.variation import variation_rules
from newton_like.kernels.kinematics import kinematics_program
from newton_like.kernels.lanes import lane_math
from newton_like.kernels.layout import LIBRARY_ROWS, layout_struct
from newton_like.kernels.registration import collection_paused
from newton_like.kernels.robot.capsules import capsule_program
from newton_like.kernels.robot.ik import ik_program
from newton_like.kernels.robot.inertia import robot_inertia_program
from newton_like.kernels.robot.newton_euler import newton_euler_program
from newton_like.kernels.robot.relative import relative_program
from newton_like.kernels.robot.tasks import robot_task_program
from newton_like.kernels.rows import row_program
from newton_like.kernels.solvers.actuators import actuator_program
from newton_like.kernels.solvers.balance import balance_program
from newton_like.kernels.solvers.copies import copies_program
from newton_like.kernels.solvers.drives import drive_program
from newton_like.kernels.solvers.finish import finish_program
from newton_like.kernels.solvers.force_ranges import range_program
from newton_like.kernels.solvers.impulses import impulse_program
from newton_like.kernels.solvers.integrate import integrate_program
from newton_like.kernels.solvers.mixing import mixing_program
from newton_like.kernels.solvers.packed import packed_program
from newton_like.kernels.solvers.polish import polish_program
from newton_like.kernels.solvers.rows.adhesion import adhesion_program
from newton_like.kernels.solvers.rows.carriers import carrier_program
from newton_like.kernels.solvers.rows.closure_rows import closure_row_program
from newton_like.kernels.solvers.rows.closures import closure_program
from newton_like.kernels.solvers.rows.contact_law import contact_law_program
from newton_like.kernels.solvers.rows.contact_rows import contact_row_program
from newton_like.kernels.solvers.rows.couplings import coupling_program
from newton_like.kernels.solvers.rows.dof_rows import dof_row_program
from newton_like.kernels.solvers.rows.equality_rows import equality_row_program
from newton_like.kernels.solvers.rows.slots import slot_program
from newton_like.kernels.solvers.tendons import tendon_row_program
from newton_like.kernels.spans import span_program
from newton_like.kernels.spatial import spatial_algebra
from newton_like.kernels.tree import tree_structs

LAYERS = (
    # floor 0
    spatial_algebra,
    layout_struct,
    tree_structs,
    interpreter_program,
    # floor 1
    variation_rules,
    joint_dispatch,
    inverse_joint_dispatch,
    configuration_dispatch,
    kinematics_program,
    row_program,
    span_program,
    # floor 4
    configuration_program,
    moved_program,
    representation_program,
    link_kinematics_program,
    joint_motion_program,
    armature_program,
    rnea_program,
    crba_program,
    factor_program,
    mass_matrix_program,
    aba_program,
    implicit_program,
    coriolis_program,
    momentum_program,
    system_program,
    soft_contact_program,
    rigid_contact_program,
    contact_search_program,
    loop_program,
    wrapping_program,
    tendon_program,
    hull_corner_program,
    plane_collision,
    segment_program,
    pair_shape_program,
    round_pairs,
    support_program,
    nearest_program,
    polytope_program,
    patch_program,
    choice_program,
    manifold_program,
    convex_pairs,
    capsule_box_pair,
    capsule_cylinder_pair,
    box_cylinder_pair,
    box_axes_program,
    box_pairs,
    pair_dispatch,
    box_bounds,
    sphere_bounds,
    pair_detection,
    gathered_pairs,
    found_points,
    field_program,
    mesh_program,
    ball_program,
    convex_surface_program,
    surface_detection,
    # floor 5
    drive_program,
    contact_law_program,
    equality_row_program,
    closure_row_program,
    dof_row_program,
    contact_row_program,
    packed_program,
    mixing_program,
    copies_program,
    slot_program,
    polish_program,
    finish_program,
    coupling_program,
    tendon_row_program,
    actuator_program,
    range_program,
    adhesion_program,
    carrier_program,
    impulse_program,
    integrate_program,
    balance_program,
    closure_program,
    # floor 6
    relative_program,
    robot_inertia_program,
    newton_euler_program,
    capsule_program,
    robot_task_program,
    ik_program,
)
"""Functions that add programs to the namespace `m`, in this order. A layer gets the namespace so far and returns new names; later layers
call them as ``m.name``. Layers return all their local names, so these must be unique."""

_REPLACED = {"func", "shared"}
"""Names that a layer may redefine."""


def assemble(m: types.SimpleNamespace, rows: tuple[str, ...] = LIBRARY_ROWS) -> types.SimpleNamespace:
    """All programs over the numbers of `m`; the struct ``Layout`` has the memory rows `rows`."""
    m = types.SimpleNamespace(**vars(m), memory_rows=rows)
    for layer in LAYERS:
        made = layer(m)
        made.pop("m", None)
        for name, value in made.items():
            if name not in _REPLACED and getattr(m, name, value) is not value:
                raise NameError(f"{layer.__name__}: a layer below has another '{name}'; give it a name of its own")
        m = types.SimpleNamespace(**{**vars(m), **made})
    return m


@cache
@collection_paused()
def programs(width: int, real=wp.float32, rows: tuple[str, ...] = LIBRARY_ROWS) -> types.SimpleNamespace:
    """All programs over lanes of `width` worlds, as Warp functions that serve all robots."""
    return assemble(lane_math(width, real), rows)
