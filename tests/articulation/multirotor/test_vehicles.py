"""The vehicles of the project have the published numbers, and are consistent."""

import math

import numpy as np
import pytest

from newton_like.articulation.multirotor import VEHICLES
from newton_like.geometry import inertia
from newton_like.geometry.shapes import mass_properties
from newton_like.types import GeoType
from tests.support.multirotors import flock


def test_the_crazyflie_has_its_published_numbers():
    drone = flock("crazyflie", 1)
    masses = drone.rotors.masses
    assert masses.total[0] == pytest.approx(0.027)
    assert np.allclose(np.diag(masses.moments[0]), [1.4e-5, 1.4e-5, 2.17e-5], rtol=1e-5)
    assert np.allclose(np.abs(drone.model.frames.transform[:4, :2]), 0.028)
    # 3.16e-10 N and 7.94e-12 N m at 1 rev/min
    assert drone.thruster_parameter("thrust_constant")[0, 0] / 60.0**2 == pytest.approx(3.16e-10, rel=1e-6)
    assert np.allclose(drone.thruster_parameter("torque_to_thrust_ratio"), 7.94e-12 / 3.16e-10)
    assert drone.thruster_parameter("thrust_max")[0].sum() == pytest.approx(2.25 * 0.027 * 9.81)


def test_the_iris_has_its_published_numbers():
    drone = flock("iris", 1)
    assert drone.rotors.masses.total[0] == pytest.approx(1.52)
    k = drone.thruster_parameter("thrust_constant")[0, 0]
    assert k * (1.0 / (2 * math.pi)) ** 2 == pytest.approx(8.54858e-6)
    assert drone.thruster_parameter("thrust_max")[0, 0] == pytest.approx(8.54858e-6 * 838.0**2)
    assert (drone.thruster_parameter("time_constant_up") == 0.0125).all()
    assert (drone.thruster_parameter("time_constant_down") == 0.025).all()
    assert np.allclose(np.abs(drone.allocation_matrix.numpy()[5]), 0.016)


def test_the_hexarotor_weighs_what_its_comment_says():
    drone = flock("hexarotor", 1)
    volume, com, moments = mass_properties(GeoType.CYLINDER, (0.12, 0.04, 0), 1.0)
    parts = [inertia.transform(1.5, com, moments * 1.5 / volume, [0, 0, 0, 0, 0, 0, 1])]
    volume, com, moments = mass_properties(GeoType.CYLINDER, (0.02, 0.02, 0), 1.0)
    parts += [inertia.transform(0.15, com, moments * 0.15 / volume, pose) for pose in drone.model.frames.transform[:6]]
    mass, com, moments = inertia.combine(parts)
    assert drone.rotors.masses.total[0] == pytest.approx(mass)
    assert np.allclose(drone.rotors.masses.centre[0], com, atol=1e-6)
    assert np.allclose(drone.rotors.masses.moments[0], moments, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("vehicle", VEHICLES)
def test_vehicles_lift_themselves_and_turn_about_each_axis(vehicle):
    """Default speeds carry about the weight; all thrust carries more; the allocation has all torques."""
    drone = flock(vehicle, 1)
    weight = drone.rotors.masses.total[0] * 9.81
    matrix = drone.allocation_matrix.numpy().astype(float)
    assert matrix[2] @ drone.data.applied_thrust.numpy()[0] == pytest.approx(weight, rel=0.02)
    assert matrix[2] @ drone.thruster_parameter("thrust_max")[0] > 1.5 * weight
    wanted = 6 if vehicle == "hexarotor" else 4
    assert np.linalg.matrix_rank(matrix, tol=1e-3) == wanted
    # rotors that turn one way and the other are equally many
    assert drone.rotors.spins.sum() == 0


NAMES = {
    "": "actuators allocation_matrix body_names data device find_bodies find_joints instantaneous_wrench_composer is_fixed_base"
    " is_initialized joint_names"
    " num_bodies num_instances num_joints num_thrusters permanent_wrench_composer reset set_external_force_and_torque"
    " set_joint_effort_target set_joint_position_target set_joint_velocity_target set_thrust_target thruster_names update write_data_to_sim"
    " write_joint_state_to_sim write_root_com_state_to_sim write_root_link_pose_to_sim write_root_pose_to_sim write_root_state_to_sim"
    " write_root_velocity_to_sim",
    "data": "applied_thrust body_acc_w body_com_pose_w body_state_w computed_thrust default_mass default_root_state default_thruster_rps"
    " heading_w joint_pos joint_vel projected_gravity_b root_ang_vel_b root_com_vel_w root_lin_vel_b root_lin_vel_w root_link_pose_w"
    " root_pos_w root_quat_w root_state_w thrust_target",
}


def test_a_multirotor_has_the_names_that_learners_know():
    drone = flock("iris", 2)
    for owner, names in NAMES.items():
        thing = getattr(drone, owner) if owner else drone
        assert [name for name in names.split() if not hasattr(thing, name)] == []
    for name in ("thrust_target", "computed_thrust", "applied_thrust", "default_thruster_rps"):
        assert getattr(drone.data, name).shape == (2, 4)
