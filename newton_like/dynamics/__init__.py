"""Dynamics of the articulations of a model, one algorithm a file.

Kinematic bodies are bodies like all others here: ``Model.body_flags`` is for solvers.
"""

from newton_like.dynamics.assemble import assemble
from newton_like.dynamics.com import com_bias_acceleration, com_jacobian, com_position, com_velocity, link_com_position
from newton_like.dynamics.contact.links import in_contact, link_contact_forces
from newton_like.dynamics.contact.points import (
    ContactPoints,
    contact_point_jacobian_derivatives,
    contact_point_jacobians,
    contact_point_poses,
    contact_point_positions,
    contact_point_velocities,
)
from newton_like.dynamics.contact.rigid import (
    Impact,
    RelaxedRigidContactParameters,
    RigidContact,
    RigidContactForces,
    RigidContactParameters,
    impact,
    rigid_contact_forces,
)
from newton_like.dynamics.contact.soft import (
    SoftContact,
    SoftContactForces,
    SoftContactParameters,
    estimate_soft_contact_parameters,
    soft_contact_forces,
)
from newton_like.dynamics.contact.terrain import FlatTerrain, HeightfieldTerrain, PlaneTerrain
from newton_like.dynamics.coordinates.configuration import (
    global_coordinates,
    local_coordinates,
    normalize_configuration,
    principal_value,
    rand_configuration,
    rand_velocity,
    velocity_of_position_rate,
    zero_configuration,
)
from newton_like.dynamics.coordinates.conversions import (
    convert_acceleration,
    convert_force,
    convert_velocity,
    to_angular_first,
    to_linear_first,
    velocity_transform,
    wxyz_to_xyzw,
    xyzw_to_wxyz,
)
from newton_like.dynamics.coordinates.joint_motion import (
    joint_bias_accelerations,
    joint_transforms,
    joint_twists,
    motion_subspaces,
)
from newton_like.dynamics.coordinates.joint_positions import joint_position_limits, random_joint_positions
from newton_like.dynamics.coordinates.joint_values import (
    joint_forces,
    joint_positions,
    joint_velocities,
    set_joint_forces,
    set_joint_positions,
    set_joint_velocities,
)
from newton_like.dynamics.coordinates.random_state import random_state
from newton_like.dynamics.coordinates.velocity import set_velocity, velocity
from newton_like.dynamics.energy import kinetic_energy, mechanical_energy, potential_energy
from newton_like.dynamics.forces import (
    bias_forces,
    forward_dynamics,
    frame_forces,
    gravity_forces,
    inverse_dynamics,
    point_forces,
)
from newton_like.dynamics.inertia import (
    crb_inertia,
    inertial_parameters,
    link_mass,
    link_spatial_inertia,
    set_inertial_parameters,
    set_link_inertia,
    set_link_mass,
    total_mass,
)
from newton_like.dynamics.integrators import integrate
from newton_like.dynamics.jacobians import (
    frame_jacobian,
    frame_jacobian_derivative,
    frame_jacobian_derivatives,
    frame_jacobians,
    link_jacobian,
    link_jacobian_derivative,
    link_jacobian_derivatives,
    link_jacobians,
    point_jacobian_derivatives,
    point_jacobians,
)
from newton_like.dynamics.kinematics import (
    frame_acceleration,
    frame_bias_acceleration,
    frame_transform,
    frame_transforms,
    frame_velocities,
    frame_velocity,
    link_acceleration,
    link_accelerations,
    link_bias_acceleration,
    link_bias_accelerations,
    link_transform,
    link_transforms,
    link_velocities,
    link_velocity,
    point_bias_accelerations,
    point_positions,
    point_velocities,
    relative_transform,
    relative_twist,
)
from newton_like.dynamics.loops import constrained_dynamics, constraint_bias, constraint_jacobian
from newton_like.dynamics.matrices import coriolis_matrix, mass_matrix, mass_matrix_inverse
from newton_like.dynamics.momentum import (
    average_centroidal_velocity,
    average_centroidal_velocity_jacobian,
    average_velocity,
    average_velocity_jacobian,
    centroidal_momentum,
    centroidal_momentum_bias,
    centroidal_momentum_jacobian,
    locked_centroidal_inertia,
    locked_spatial_inertia,
    total_momentum,
    total_momentum_jacobian,
)
from newton_like.dynamics.names import (
    base_link,
    frame_index,
    frame_indices,
    frame_link,
    frame_names,
    frame_offset,
    is_floating_base,
    joint_coords,
    joint_dofs,
    joint_index,
    joint_indices,
    joint_names,
    link_bodies,
    link_index,
    link_indices,
    link_names,
)
from newton_like.dynamics.reduce import reduce
from newton_like.dynamics.system import (
    StateRate,
    joint_friction_forces,
    joint_limit_forces,
    joint_spring_forces,
    position_rate,
    state_rate,
    velocity_rate,
)
from newton_like.dynamics.tendons import tendon_jacobian, tendon_kinematics, tendon_lengths, tendon_velocities

# all functions and classes above
__all__ = [name for name, value in globals().items() if callable(value)]
