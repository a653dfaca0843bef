"""Multirotors refuse bad input by name."""

import numpy as np
import pytest

from newton_like.articulation.multirotor import (
    BodyDrag,
    GroundEffect,
    LeeRateController,
    Multirotor,
    MultirotorCfg,
    ThrusterCfg,
    add_vehicle,
)
from newton_like.model.builder.builder import ModelBuilder
from tests.support.multirotors import flock, in_worlds


def with_cfg(**fields):
    def edit(settings):
        for name, value in fields.items():
            if hasattr(settings, name):
                setattr(settings, name, value)
            else:
                setattr(settings.actuators["rotors"], name, value)

    return edit


BAD_SETTINGS = [
    (
        {"thruster_names_expr": "prop_.*"},
        r"pattern 'prop_\.\*' matches no body or frame.*there are 'base_link', 'rotor_0'",
    ),
    ({"thruster_names_expr": ["rotor_0", "rotor_.*"]}, "'rotor_0' matches two patterns"),
    ({"thrust_range": (3.0, 1.0)}, "thrust_range of 'rotors': the least thrust 3 N is above the largest, 1 N"),
    ({"thrust_range": 3.0}, "thrust_range of 'rotors' must be two numbers"),
    ({"thrust_constant": 0.0}, "thrust_constant 0 of thruster 'rotor_0' must be positive"),
    ({"thrust_constant": {"rotor_[012]": 1.0}}, "thrust_constant of 'rotors' has no number for the thruster 'rotor_3'"),
    ({"time_constant_up": {"rotor_.*": 0.1, "rotor_2": -1.0}}, "'rotor_2' matches two patterns"),
    ({"time_constant_down": -0.1}, "time_constant_down -0.1 of thruster 'rotor_0' must be 0 or more"),
    (
        {"time_constant_down": {"rotor_[01]": 0.0, "rotor_2": -0.1, "rotor_3": -0.2}},
        "time_constant_down -0.1 of thruster 'rotor_2' must be 0 or more",
    ),
    ({"efficiency": -1.0}, "efficiency -1 of thruster 'rotor_0' must be from 0 to 1"),
    ({"efficiency": {"rotor_[013]": 0.0, "rotor_2": 5.0}}, "efficiency 5 of thruster 'rotor_2' must be from 0 to 1"),
    ({"max_thrust_rate": float("nan")}, "max_thrust_rate of 'rotors' is NaN"),
    ({"state": "rpm"}, r"group 'rotors': state 'rpm' must be one of \('speed', 'thrust'\)"),
    ({"integration": "rk45"}, "group 'rotors': integration 'rk45' must be one of"),
    ({"rotor_directions": (1, -1, 1)}, "rotor_directions has 3 entries; there are 4 thrusters: rotor_0"),
    ({"rotor_directions": (1, -1, 1, 0)}, r"rotor_directions .* must be 1 \(counter-clockwise\) or -1"),
    ({"rotor_directions": {"rotor_[02]": -1}}, "rotor_directions has no number for the thruster 'rotor_1'"),
    ({"rps": {"rotor_[012]": 90.0}}, "rps has no number for the thruster 'rotor_3'"),
    ({"thruster_force_direction": (0, 0, 0)}, "thruster_force_direction .* must be a direction"),
    ({"allocation_matrix": np.zeros((4, 4))}, r"allocation_matrix has shape \(4, 4\); it must be \(6, 4\).*rotor_0"),
    ({"allocation_matrix": np.full((6, 4), np.inf)}, "allocation_matrix contains numbers that are not finite"),
    ({"actuators": {}}, "actuators must be a dictionary of groups of thrusters"),
    ({"drag": BodyDrag(linear=(1.0, -1.0, 0.0))}, "drag.linear must be a number or three numbers, not negative"),
    ({"ground_effect": GroundEffect(strength=4.0)}, "ground_effect.strength 4 must be from 0 to below 4"),
]


@pytest.mark.parametrize(
    ("fields", "message"), BAD_SETTINGS, ids=[f"{next(iter(f))}{i}" for i, (f, _) in enumerate(BAD_SETTINGS)]
)
def test_settings_are_refused_by_name(fields, message):
    with pytest.raises(ValueError, match=message):
        flock("iris", 2, cfg=with_cfg(**fields))


def test_groups_that_overlap_are_refused():
    def overlap(settings):
        settings.actuators["more"] = ThrusterCfg("rotor_[23]")

    with pytest.raises(ValueError, match=r"'rotor_2'.*'rotors'.*'more'"):
        flock("iris", 1, cfg=overlap)


def test_frames_of_one_name_are_refused_as_thrusters():
    def double(one):
        one.frames.extend(["left/rotor_2", "left/camera", "right/camera"], [0] * 3, [(0, 0, 0, 0, 0, 0, 1.0)] * 3)

    with pytest.raises(ValueError, match=r"'rotor_2'.*frames.*'left/rotor_2'"):
        flock("iris", 2, edit=double)
    # frames that are no thrusters may share a name
    names = ["rotor_0", "rotor_1", "rotor_3"]
    drone = flock("iris", 2, edit=double, cfg=with_cfg(thruster_names_expr=names, rotor_directions=None))
    assert drone.thruster_names == names


def test_settings_of_another_type_are_refused():
    drone = flock("iris", 1)
    with pytest.raises(TypeError, match=r"cfg.*MultirotorCfg.*dict"):
        Multirotor(drone.sim, "*", {})
    with pytest.raises(KeyError, match="nothing"):
        Multirotor(drone.sim, "nothing", drone.rotors.cfg)


def test_unknown_vehicles_are_refused():
    with pytest.raises(ValueError, match=r"'iri'.*crazyflie, iris, hexarotor"):
        add_vehicle(ModelBuilder(), "iri")


def test_a_matrix_needs_all_thrusters_on_the_root():
    one = ModelBuilder()
    root, arm = (one.add_link(mass=1.0, inertia=1e-3 * np.eye(3), label=label) for label in ("root", "arm"))
    one.add_articulation([one.add_joint_free(root), one.add_joint_revolute(root, arm, axis=(0, 0, 1), label="hinge")])
    cfg = MultirotorCfg({"all": ThrusterCfg(["root", "arm"])}, allocation_matrix=np.zeros((6, 2)))
    with pytest.raises(ValueError, match=r"allocation_matrix.*root.*'arm'"):
        in_worlds(one, cfg, 1, 0.01)


def test_targets_and_parameters_are_refused_by_name():
    drone = flock("iris", 3)
    with pytest.raises(ValueError, match=r"target.*\(2, 4\).*\(3, 4\)"):
        drone.set_thrust_target(np.zeros((2, 4)))
    with pytest.raises(ValueError, match=r"target.*finite"):
        drone.set_thrust_target(np.nan)
    with pytest.raises(IndexError, match=r"thruster_ids.*index 4.*4"):
        drone.set_thrust_target(0.0, thruster_ids=[4])
    with pytest.raises(IndexError, match=r"env_ids.*index 3.*3"):
        drone.set_thrust_target(0.0, env_ids=[3])
    with pytest.raises(ValueError, match=r"wrench has shape \(3, 5\)"):
        drone.set_wrench_target(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="allocation 'best' must be 'pseudo_inverse' or 'bounded'"):
        drone.set_wrench_target(np.zeros(6), allocation="best")
    for weights in ((1.0,) * 5, 1.0, (1, 1, 1, 1, 1, 0), (1, 1, 1, 1, 1, -2), (1, 1, 1, 1, 1, np.nan), "heavy"):
        with pytest.raises(ValueError, match=r"weights.*six"):
            drone.set_wrench_target(np.zeros(6), allocation="bounded", weights=weights)
        with pytest.raises(ValueError, match=r"weights.*six"):
            LeeRateController(drone, allocation="bounded", weights=weights)
    with pytest.raises(KeyError, match=r"'mass'.*thrust_constant"):
        drone.set_thruster_parameter("mass", 1.0)
    with pytest.raises(ValueError, match=r"thrust_constant -1\b.*'rotor_2'"):
        drone.set_thruster_parameter("thrust_constant", -1.0, thruster_ids=[2])
    with pytest.raises(ValueError, match="thruster 'rotor_1': thrust_min is above thrust_max"):
        drone.set_thruster_parameter("thrust_min", 50.0, thruster_ids=[1], env_ids=[2])
    with pytest.raises(ValueError, match=r"efficiency.*\(2,\).*\(3, 4\)"):
        drone.set_thruster_parameter("efficiency", [0.0, 1.0])
    with pytest.raises(ValueError, match=r"radius -1\b.*'rotor_3'"):
        drone.set_thruster_parameter("radius", [0.0, 0.1, 0.0, -1.0])
    with pytest.raises(ValueError, match=r"efficiency 1\.5\b.*'rotor_1'.*0.*1"):
        drone.set_thruster_parameter("efficiency", 1.5, thruster_ids=[1], env_ids=[2])
    with pytest.raises(ValueError, match="efficiency contains NaN"):
        drone.set_thruster_parameter("efficiency", np.nan)
    # nothing of this was stored
    assert (drone.thruster_parameter("thrust_min") == 0.0).all()
    assert (drone.thruster_parameter("efficiency") == 1.0).all()


def test_time_steps_too_long_for_a_scheme_are_refused():
    drone = flock("iris", 1, dt=0.1, cfg=with_cfg(integration="rk4"))
    with pytest.raises(ValueError, match=r"'rk4'.*stable.*0\.1"):
        drone.write_data_to_sim()
