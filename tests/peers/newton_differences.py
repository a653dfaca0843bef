"""Unit tests of Newton 1.8 that do not pass here, with the reason of each.

Keys are modules of ``newton.tests`` without ``test_``, then shell-style patterns of ``Class.test``, whose tests all fail or are skipped.
``tests/peers/test_newton_tests.py`` keeps the list true.
"""

SOLVERS = "another solver of Newton: only SolverFeatherstone and SolverXPBD are here"
PARTICLES = "particles and deformable bodies, which do not exist here"
WORDING = "wording of an error, which is raised here too"
PRIVATE = "a private function of Newton"
CUDA = "skipped without a CUDA device"
KINEMATIC = "a kinematic body keeps its velocity, here also after it was moved by forces; Newton's solvers do not change its coordinates"
STATIC_PAIRS = "include_static_kinematic_pairs=False: contacts of shapes that no force moves are listed"
OF_PIPELINE = "skipped without a CUDA device (see STAND_INS), or about private names of the pipeline"
WARP = "functions for kernels of the user"
OF_STEP = "contacts of these shapes with planes are found from tables of a model, and not by a function for kernels of the user"
SDF = "signed distance fields of meshes: a moving mesh is its convex hull, a fixed one its triangles"
BUFFERS = "sizes of buffers of Newton's narrow phase"
PAIR_LISTS = "private tables of Newton behind Model.shape_contact_pairs, or assigned pairs, which are not accepted here"
SHARED = (
    "bodies that move and belong to no world, beside worlds: refused by name, since worlds share nothing that moves"
)
REFUSED = "refused by name in finalize, not where it is declared"
ACTUATORS = "actuators as objects: drives are numbers of the joints here"
IRREGULAR = "rows at irregular distances, and shapes that worlds have in another order, need no homogeneous=False: they are gathered"
MASKS = "masks of views are bools; integers could be meant as indices"
TWICE = "two joints of an articulation with one child are refused by name"
TENDONS = "tendons have arrays of the model, without MuJoCo's namespace and without views of a selection"
GRAVITY = "Model.gravity has a row for each world; Newton's further row is for what belongs to no world, and nothing there moves here"
GRAVITY_OF_PARTICLES = f"{GRAVITY}; besides, the models of these tests have particles"
ONE_PARTICLE = "the model of the test has a particle; without it, the test passes"
FRONT = "a fixed mesh has a front side, and a shape beside its boundary whose middle is behind it does not touch it"
TURNS = "eval_ik gives angles in (-pi, pi]; Newton counts further for some"
INDICES = "an articulation that does not exist is an IndexError; Newton leaves it out"
SITES = "is_site=True turns mass and collisions of a configuration off; Newton wants all of them turned off by hand"
ORDER = (
    "the step is of second order: the error of what a parent carries along falls with the third power of the time step"
)
OBSERVABLES = "solver observables: forces of contacts come from solver.update_contacts(contacts, state)"
REQUESTED = "requests for arrays of states and forces of contacts are deprecated in Newton, which warns; here, nothing replaces them"
OFFSETS = "offsets of contact points: here, surfaces are the margins away along the normal"
EQUALITIES = (
    "rows for SolverMuJoCo by a private function; here equality constraints of MJCF are loop joints, mimic joints and polynomials, which"
    " tests/solvers/featherstone/test_loop_forces.py tests"
)
COLLECTED = "equality constraints as data without loop joints (convert_mjc_equality_constraints=False)"
RETURN = "a follower that starts away from its relation returns within some steps; Newton moves it there at once"
BRANCH = "a branch of a path with one site is refused, as by MuJoCo"
UNKNOWN = "a tendon that names a missing or unnamed site or geom is refused by name, as by MuJoCo; Newton drops this part of the path"
WITHIN = "looks at heights at the ends of steps, and a ball bounces within one"
INTERVAL = "update_mass_matrix_interval: the mass matrix is factored in every step"

DIFFERENCES: dict[str, dict[str, str]] = {
    "body_force": {
        "*_kamino_cpu": SOLVERS,
        "*_mujoco_cpu_cpu": SOLVERS,
        "*_mujoco_warp_cpu": SOLVERS,
        "*_semi_implicit_cpu": SOLVERS,
        "*_steel_cpu": SOLVERS,
    },
    "body_velocity": {
        "*_kamino_cpu": SOLVERS,
        "*_mujoco_cpu_cpu": SOLVERS,
        "*_mujoco_warp_cpu": SOLVERS,
        "*_semi_implicit_cpu": SOLVERS,
        "TestBodyVelocity.test_featherstone_distance_descendant_stays_inertial_under_parent_torque_cpu": ORDER,
        "TestBodyVelocity.test_featherstone_free_descendant_stays_inertial_under_parent_torque_cpu": ORDER,
    },
    "collision_pipeline": {
        "TestCollisionPipeline.*": OF_PIPELINE,
        "TestCollisionPipelineFilterPairs.*": OF_PIPELINE,
        "TestContactCountEstimator.*": BUFFERS,
        "TestCurvedPrimitiveSDFExclusion.*": SDF,
        "TestDeterministicPipeline.*": BUFFERS,
        "TestFullSurfaceSoftContact.*": PARTICLES,
        "TestHeightfieldConvexMidphase.*": CUDA,
        "TestMeshConvexMidphase.*": PRIVATE,
        "TestMeshSignQueries.test_[bmprv]*": SDF,
        "TestMeshSignQueries.test_open_mesh_boundary_contacts_cpu": FRONT,
        "TestMeshSignQueries.test_open_mesh_soft_contact_uses_normal_sign": PARTICLES,
        "TestParticleShapeContacts.*": PARTICLES,
        "TestPlanarSDFOptIn.*": SDF,
        "TestPlanarSDFRouting.*": SDF,
        "TestRigidContactNormal.*": CUDA,
        "TestShapePairsMaxScaling.*": BUFFERS,
        "TestTrianglePairCapacityEstimator.*": BUFFERS,
    },
    "collision_primitives": {
        "TestCollisionPrimitives.test_plane_box": OF_STEP,
        "TestCollisionPrimitives.test_plane_capsule": OF_STEP,
        "TestCollisionPrimitives.test_plane_cylinder": OF_STEP,
    },
    "control_force": {
        "*_kamino_cpu": SOLVERS,
        "*_mujoco_cpu_cpu": SOLVERS,
        "*_mujoco_warp_cpu": SOLVERS,
        "*_vbd_cpu": SOLVERS,
        "*_semi_implicit_cpu": SOLVERS,
    },
    "custom_attributes": {
        "TestCustomAttributes.test_mjcf_and_urdf_value_transformer_none_uses_default": PRIVATE,
        "TestCustomAttributes.test_usd_value_transformer_none_uses_default": PRIVATE,
        "TestCustomFrequencyAttributes.test_add_builder_rejects_conflicting_custom_attribute_model_finalizers": PRIVATE,
        "TestCustomFrequencyAttributes.test_custom_attribute_model_finalizer_rejects_conflicting_registration": PRIVATE,
        "TestCustomFrequencyAttributes.test_custom_frequency_articulation_view_rejects_unscoped_rows": PRIVATE,
        "TestCustomFrequencyAttributes.test_unsupported_frequency_raises_on_finalize": REFUSED,
        "TestCustomAttributes.test_custom_attributes_with_multi_builders": SHARED,
        "TestCustomFrequencyAttributes.test_once_reference_defaults_preserve_destination": SHARED,
        "TestCustomFrequencyAttributes.test_transform_value_list_and_sentinel_shape_refs": SHARED,
        "TestCustomFrequencyAttributes.test_world_frequency_merge_add_world": SHARED,
    },
    "equality_constraints": {
        "TestEqualityConstraints.test_add_builder_preserves_sparse_attribute_alignment": EQUALITIES,
        "TestEqualityConstraints.test_collapse_fixed_joints_*": EQUALITIES,
        "TestEqualityConstraints.test_default_equality_constraint_torquescale_is_numeric": EQUALITIES,
        "TestEqualityConstraints.test_equality_constraint*": EQUALITIES,
        "TestEqualityConstraints.test_multiple_constraints": COLLECTED,
        "TestEqualityConstraints.test_raw_equality_rows_infer_world_ownership": EQUALITIES,
        "TestEqualityConstraints.test_target_and_objtype_defaults": EQUALITIES,
        "TestEqualityConstraints.test_zero_constraint_model_exposes_shape_stable_equality_arrays": EQUALITIES,
    },
    "fixed_tendon": {"*": SOLVERS},
    "jacobian_mass_matrix": {},
    "joint_limits": {},
    "kinematic_links": {
        "*_mujoco_cpu_cpu": SOLVERS,
        "*_vbd_cpu": SOLVERS,
        "*_semi_implicit_cpu": SOLVERS,
        "*_lox_cpu": SOLVERS,
        "*_steel_propagation_cpu": SOLVERS,
        "*_steel_serial_cpu": SOLVERS,
        "TestKinematicLinks.test_featherstone_rebuilds_mass_matrix_after_kinematic_toggle": INTERVAL,
        "TestKinematicLinks.test_featherstone_refreshes_joint_inertia_separately_from_forces": INTERVAL,
        "TestKinematicLinksCanonical.test_kinematic_runtime_toggle_featherstone_cpu": KINEMATIC,
        "TestKinematicLinksCanonical.test_kinematic_runtime_toggle_xpbd_cpu": KINEMATIC,
        "TestKinematicLinks.test_immovable_contact_pair_filtering": STATIC_PAIRS,
        "TestKinematicLinks.test_immovable_filter_does_not_remove_dynamic_pairs": STATIC_PAIRS,
        "TestKinematicLinks.test_imported_kinematic_root_attached_to_parent_raises": PRIVATE,
        "TestKinematicLinks.test_kinematic_middle_link_raises": REFUSED,
        "TestKinematicLinks.test_kinematic_non_root_link_raises": REFUSED,
    },
    "kinematics": {
        "TestSimKinematics.test_bounds_checking_cpu": INDICES,
        "TestSimKinematics.test_fk_ik_revolute_small_angles_cpu": TURNS,
        "TestSimKinematics.test_fk_error_mask_and_indices_cpu": WORDING,
        "TestSimKinematics.test_ik_error_mask_and_indices_cpu": WORDING,
    },
    "match_labels": {},
    "physics_verification": {
        "*_kamino_cpu": SOLVERS,
        "*_mujoco_cpu_cpu": SOLVERS,
        "*_semi_implicit_cpu": SOLVERS,
        "*_steel_cpu": SOLVERS,
        "TestPhysicsVerification.test_restitution_sweep_xpbd_cpu": WITHIN,
    },
    "rigid_contact": {
        "*_kamino_cpu": SOLVERS,
        "*_mujoco_cpu_cpu": SOLVERS,
        "*_semi_implicit_cpu": SOLVERS,
        "*_steel_cpu": SOLVERS,
        "TestRigidContact.test_mujoco_warp_newton_contacts": SOLVERS,
        "TestRigidContact.test_penalty_friction_*": SOLVERS,
    },
    "rigid_friction_ramp": {
        "*_kamino_*_cpu": SOLVERS,
        "*_kamino_cpu": SOLVERS,
        "*_mujoco_cpu_cpu": SOLVERS,
        "*_vbd_cpu": SOLVERS,
        "TestRigidFrictionRamp.test_view_*": "shows a viewer",
    },
    "runtime_gravity": {
        "*_kamino_cpu": SOLVERS,
        "*_mujoco_cpu_cpu": SOLVERS,
        "*_mujoco_warp_cpu": SOLVERS,
        "*_particles_xpbd_cpu": PARTICLES,
        "TestRuntimeGravity.test_global_gravity_bodies_xpbd_cpu": SHARED,
        "TestRuntimeGravity.test_per_world_gravity_bodies_xpbd_cpu": GRAVITY,
        "*_vbd_cpu": SOLVERS,
        "*_semi_implicit_cpu": SOLVERS,
        "TestRuntimeGravity.test_begin_world_gravity_parameter_cpu": GRAVITY,
        "TestRuntimeGravity.test_add_world_copies_gravity_cpu": GRAVITY_OF_PARTICLES,
        "TestRuntimeGravity.test_gravity_fallback_cpu": PARTICLES,
        "TestRuntimeGravity.test_replicate_gravity_cpu": GRAVITY_OF_PARTICLES,
        "TestRuntimeGravity.test_replicate_gravity_nonzero_cpu": GRAVITY_OF_PARTICLES,
        "TestRuntimeGravity.test_set_gravity_array_cpu": PARTICLES,
        "TestRuntimeGravity.test_set_gravity_global_world_cpu": GRAVITY_OF_PARTICLES,
        "TestRuntimeGravity.test_set_gravity_implicit_world_compatibility_cpu": PARTICLES,
        "TestRuntimeGravity.test_set_gravity_invalid_array_size_cpu": ONE_PARTICLE,
        "TestRuntimeGravity.test_set_gravity_invalid_world_cpu": ONE_PARTICLE,
        "TestRuntimeGravity.test_set_gravity_per_world_cpu": GRAVITY_OF_PARTICLES,
        "TestRuntimeGravity.test_builder_rejects_invalid_gravity_vector": WORDING,
    },
    "selection": {
        "TestSelectionActuatorMapping.test_actuator_mapping_built_once_and_cached_cpu": ACTUATORS,
        "TestSelectionActuatorMapping.test_borrowed_view_with_device_alias_cpu": ACTUATORS,
        "TestSelectionActuatorMapping.test_borrowed_view_without_dof_layout_cpu": ACTUATORS,
        "TestSelectionActuatorMapping.test_dense_view_reversed_actuator_order_cpu": ACTUATORS,
        "TestSelectionActuatorMapping.test_sparse_world_actuator_parameters_use_selected_rows_cpu": ACTUATORS,
        "TestSelectionActuatorMapping.test_sparse_world_partial_actuator_parameters_cpu": ACTUATORS,
        "TestSelectionMuJoCoActuators.test_actuator_frequency_uses_declared_articulation_owner": ACTUATORS,
        "TestSelectionMuJoCoActuators.test_actuator_owners_survive_merge_followed_by_import": ACTUATORS,
        "TestSelectionMuJoCoActuators.test_partial_layout_preserves_builtin_access_with_unequal_actuator_counts": ACTUATORS,
        "TestSelectionActuatorMapping.test_actuator_access_after_capture_before_replay": CUDA,
        "TestSelectionActuatorMapping.test_actuator_capture_without_mempool_raises": CUDA,
        "TestSelectionActuatorMapping.test_actuator_parameters_capture_cold": CUDA,
        "TestSelectionShapeRows.test_interleaved_shape_rows_capture_cold": CUDA,
        "TestSelectionSparseWorlds.test_attribute_access_after_capture_before_replay": CUDA,
        "TestSelectionSparseWorlds.test_sparse_world_getters_capture_cold": CUDA,
        "TestSelection.test_selection_mask": MASKS,
        "TestSelection.test_selection_mask_rejects_invalid_warp_arrays": WORDING,
        "TestSelectionSparseWorlds.test_irregular_custom_frequency_requires_non_homogeneous_cpu": IRREGULAR,
        "TestSelection.test_get_attribute_extended_state": REQUESTED,
        "TestSelectionFixedTendons.test_multiple_articulations_per_world": TENDONS,
        "TestSelectionFixedTendons.test_no_tendons_but_model_has_tendons": TENDONS,
        "TestSelectionFixedTendons.test_no_tendons_in_articulation": TENDONS,
        "TestSelectionFixedTendons.test_tendon_count": TENDONS,
        "TestSelectionFixedTendons.test_tendon_generic_api": TENDONS,
        "TestSelectionFixedTendons.test_tendon_multi_world": TENDONS,
        "TestSelectionFixedTendons.test_tendon_names": TENDONS,
        "TestSelectionFixedTendons.test_tendon_selection_shapes": TENDONS,
        "TestSelectionFixedTendons.test_tendon_set_values": TENDONS,
        "TestSelectionSparseWorlds.test_sparse_world_custom_frequency_cpu": TENDONS,
        "TestSelection.test_duplicate_joint_child_is_one_link": TWICE,
        "TestSelectionShapeRows.test_interleaved_shape_rows_differ_between_worlds_cpu": IRREGULAR,
        "TestSelectionShapeRows.test_interleaved_shape_rows_require_matching_owners_cpu": IRREGULAR,
        "TestSelectionSparseWorlds.test_homogeneous_rejects_differing_worlds_cpu": IRREGULAR,
        "TestSelection.test_articulation_selector_lists": WORDING,
        "TestSelection.test_compiled_regex_selectors": WORDING,
        "TestSelectionSparseWorlds.test_sparse_world_view_rejections_cpu": WORDING,
    },
    "sensor_contact": {
        "TestSensorContact.test_default_preserves_legacy_force_allocation": REQUESTED,
        "TestSensorContact.test_initial_observables_read_and_contact_validation": OBSERVABLES,
        "TestSensorContact.test_legacy_attribute_request_warns_at_caller": REQUESTED,
        "TestSensorContact.test_observables_must_belong_to_sensor_model": OBSERVABLES,
        "TestSensorContact.test_position_matrix": OFFSETS,
        "TestSensorContact.test_selected_contact_observables_share_sensor_binding": OBSERVABLES,
        "TestSensorContactKamino.*": SOLVERS,
        "TestSensorContactMuJoCo.*": SOLVERS,
        "TestSensorContactSteel.*": SOLVERS,
    },
    "shape_contact_pairs": {"*": PAIR_LISTS},
    "sites": {
        "TestSiteInvariantEnforcement.test_add_shape_validates_collision_flags": SITES,
        "TestSiteInvariantEnforcement.test_add_shape_validates_collision_group": SITES,
        "TestSiteInvariantEnforcement.test_add_shape_validates_density": SITES,
    },
    "solver_mimic": {
        "TestSolverMimic.test_eval_mimic_selection_cpu": "newton.eval_mimic: there is no such function",
        "TestSolverMimic.test_featherstone_mimic_cpu": RETURN,
        "TestSolverMimic.test_featherstone_mimic_requires_shared_articulation": REFUSED,
        "TestSolverMimic.test_mimic_compound_d6_coordinate_gradients_cpu": WARP,
        "TestSolverMimic.test_semi_implicit_mimic*": SOLVERS,
        "TestSolverMimic.test_steel_mimic_cpu": SOLVERS,
        "TestSolverMimic.test_vbd_mimic_cpu": SOLVERS,
    },
    "spatial_tendon": {
        "TestMujocoSpatialTendon.test_mixed_fixed_and_spatial_tendons": TENDONS,
        "TestMujocoSpatialTendon.test_spatial_tendon_default_class": TENDONS,
        "TestMujocoSpatialTendon.test_spatial_tendon_explicit_*": TENDONS,
        "TestMujocoSpatialTendon.test_spatial_tendon_geom_suffix_names": TENDONS,
        "TestMujocoSpatialTendon.test_spatial_tendon_missing_*": UNKNOWN,
        "TestMujocoSpatialTendon.test_spatial_tendon_multi_world_wrap_offsets": TENDONS,
        "TestMujocoSpatialTendon.test_spatial_tendon_names_across_imports": TENDONS,
        "TestMujocoSpatialTendon.test_spatial_tendon_parsing": TENDONS,
        "TestMujocoSpatialTendon.test_spatial_tendon_pulley*": BRANCH,
        "TestMujocoSpatialTendon.test_spatial_tendon_simulation": SOLVERS,
        "TestMujocoSpatialTendon.test_spatial_tendon_site_*": TENDONS,
        "TestMujocoSpatialTendon.test_spatial_tendon_un*": UNKNOWN,
        "TestMujocoSpatialTendon.test_spatial_tendon_warning_missing_site": UNKNOWN,
        "TestMujocoSpatialTendon.test_spatial_tendon_warning_out_of_bounds_wrap": TENDONS,
        "TestMujocoSpatialTendon.test_spatial_tendon_with_actuator": SOLVERS,
    },
    "state_assign": {},
}

STAND_INS: dict[str, tuple[str, ...]] = {
    "collision_pipeline:SolverXPBD": (
        "TestCollisionPipeline.test_box_box_*",
        "TestCollisionPipeline.test_box_mesh_*",
        "TestCollisionPipeline.test_capsule_capsule_*",
        "TestCollisionPipeline.test_capsule_mesh_*",
        "TestCollisionPipeline.test_collision_pipeline_first_call_capture_cpu",
        "TestCollisionPipeline.test_mesh_mesh_explicit_cpu",
        "TestCollisionPipeline.test_mesh_mesh_bvh_vs_bvh_*",
        "TestCollisionPipeline.test_sphere_box_*",
        "TestCollisionPipeline.test_sphere_capsule_*",
        "TestCollisionPipeline.test_sphere_cone_*",
        "TestCollisionPipeline.test_sphere_cylinder_*",
        "TestCollisionPipeline.test_sphere_mesh_*",
        "TestCollisionPipeline.test_sphere_sphere_*",
        "TestCollisionPipelineFilterPairs.test_collision_filter_consistent_across_broadphases_cpu",
        "TestCollisionPipelineFilterPairs.test_shape_collision_filter_pairs_*",
        "TestMeshConvexMidphase.test_mesh_convex_midphase_queries_margin_shell_cpu",
        "TestRigidContactNormal.*",
    ),
    "fixed_tendon:SolverMuJoCo": ("TestMujocoFixedTendon.*",),
    "kinematic_links:SolverMuJoCo": (
        "TestKinematicLinksCanonical.test_kinematic_fixed_root_static_force_immune_mujoco_cpu_cpu",
        "TestKinematicLinksCanonical.test_kinematic_free_base_prescribed_motion_mujoco_cpu_cpu",
        "TestKinematicLinksCanonical.test_kinematic_revolute_root_pendulum_prescribed_motion_mujoco_cpu_cpu",
    ),
    "physics_verification:SolverMuJoCo": (
        "TestPhysicsVerification.test_energy_conservation_mujoco_cpu_cpu",
        "TestPhysicsVerification.test_free_fall_mujoco_cpu_cpu",
        "TestPhysicsVerification.test_joint_actuation_mujoco_cpu_cpu",
        "TestPhysicsVerification.test_momentum_conservation_mujoco_cpu_cpu",
        "TestPhysicsVerification.test_pendulum_period_mujoco_cpu_cpu",
        "TestPhysicsVerification.test_projectile_motion_mujoco_cpu_cpu",
        "TestPhysicsVerification.test_torque_free_precession_mujoco_cpu_cpu",
    ),
    "physics_verification:SolverMuJoCo=SolverXPBD": (
        "TestPhysicsVerification.test_energy_conservation_mujoco_cpu_cpu",
        "TestPhysicsVerification.test_free_fall_mujoco_cpu_cpu",
        "TestPhysicsVerification.test_joint_actuation_mujoco_cpu_cpu",
        "TestPhysicsVerification.test_momentum_conservation_mujoco_cpu_cpu",
        "TestPhysicsVerification.test_pendulum_period_mujoco_cpu_cpu",
        "TestPhysicsVerification.test_projectile_motion_mujoco_cpu_cpu",
        "TestPhysicsVerification.test_torque_free_precession_mujoco_cpu_cpu",
    ),
    "rigid_contact:SolverMuJoCo": (
        "TestRigidContact.test_box_drop_mujoco_cpu_cpu",
        "TestRigidContact.test_mujoco_convex_on_convex_mujoco_cpu_cpu",
        "TestRigidContact.test_shapes_on_plane_mujoco_cpu_cpu",
    ),
    "rigid_contact:SolverXPBD": (
        "TestRigidContact.test_box_drop_xpbd_cpu",
        "TestRigidContact.test_mesh_box_on_ground_cpu",
        "TestRigidContact.test_shape_collisions_gjk_mpr_multicontact_cpu",
        "TestRigidContact.test_shapes_on_plane_xpbd_cpu",
    ),
    "rigid_friction_ramp:SolverMuJoCo": (
        "TestRigidFrictionRamp.test_friction_ramp_mujoco_cpu_cpu",
        "TestRigidFrictionStoppingDistance.test_friction_stopping_distance_mujoco_cpu_cpu",
    ),
    "rigid_friction_ramp:SolverXPBD": ("TestRigidFrictionRamp.test_friction_ramp_xpbd_cpu",),
    "solver_xpbd": (
        "TestSolverXPBD.test_prismatic_joint_retains_extension_in_parent_moment_arm_cpu",
        "TestSolverXPBD.test_restitution_flag_does_not_change_body_integration_cpu",
        "TestSolverXPBD.test_rigid_restitution_elastic_box_on_plane_cpu",
        "TestSolverXPBD.test_rigid_restitution_elastic_no_explosion_cpu",
        "TestSolverXPBD.test_rigid_restitution_multi_manifold_energy_cpu",
        "TestSolverXPBD.test_rigid_restitution_preserves_separating_velocity_cpu",
        "TestSolverXPBD.test_rigid_restitution_runs_with_requires_grad_cpu",
        "TestSolverXPBD.test_rigid_restitution_zero_settles_cpu",
        "TestSolverXPBD.test_xpbd_aligned_box_stack_remains_stable_cpu",
    ),
    "spatial_tendon:SolverMuJoCo": ("TestMujocoSpatialTendon.test_spatial_tendon_simulation",),
}
"""Tests of other solvers of Newton, and of Newton's SolverXPBD, that pass here.

A key is a module, and behind the colon Newton's solver whose tests run with another one: SolverFeatherstone at its default settings, or
SolverXPBD where that is behind ``=``. Without a colon, tests of Newton's SolverXPBD run with the solver of this name.

With SolverFeatherstone, these do not pass. ``test_friction_stopping_distance_xpbd`` gives the velocity as ``body_qd``, and
SolverFeatherstone reads ``joint_qd``. ``test_kinematic_runtime_toggle_mujoco``: a kinematic body keeps its velocity. Tests of loop joints
and of MuJoCo's restitution ask for ``use_mujoco_cpu``, ``EqType`` and the whole ``mj_model``, with SolverXPBD in the place of SolverMuJoCo,
too. Hulls of more than 64 vertices have fewer here, so that one of a ball is turned by an impact (``test_*_convex_hull``). Height fields
have no sides (``test_heightfield_convex_midphase_queries_margin_shell_at_lateral_edge``). The other tests of the collision pipeline are
about signed distance fields, particles, warnings of deprecation, private names, or options and functions that do not exist here:
``shape_pairs_filtered``, ``enable_surface_velocity``, ``compute_convex_hull``.

Of the 51 tests of Newton's SolverXPBD, 42 do not pass: 14 about particles, rods or deprecated functions, and 16 that read
``solver.observables`` or expect a DeprecationWarning (forces of contacts come from ``update_contacts``, those of joints from
``newton_like.articulation``, or from ``State.body_parent_f`` of SolverFeatherstone).
``test_ball_joint_recovers_from_large_anchor_separation`` (a gap of 1.4 m: 0.97 m are left after a step, Newton wants 0.5 m),
``test_prismatic_joint_recovers_from_large_transverse_separation`` (0.83 m of 1 m are left, Newton wants 0.5 m) and
``test_distance_joint_limits`` (anchors beyond a limit return at
1 m/s, Newton's at once): joints that are torn are closed over some steps. ``test_restitution_is_disabled_by_default``: restitution acts by
default. ``test_rigid_restitution_can_be_enabled_after_construction``: a ball at rest that a force pushes down rests. ``test_xpbd_mimic_*``
(four tests): a follower that starts away from its relation returns at 1 rad/s, Newton's at once; ball joints do not mimic.
``test_rigid_restitution_uses_integrated_velocity`` and ``*_grad_keeps_iteration_counts``: an option that has no effect here.
``test_articulation_contact_drift``: sets inertias of a builder by expressions of Warp.

All of ``test_joint_drive``, with SolverXPBD in the place of SolverMuJoCo: expects the velocity of one explicit Euler step (19.95 m/s), and
drives are implicit here, in sub-steps (19.89 m/s).
"""
