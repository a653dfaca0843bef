"""Multirotors refuse bad input by name."""

import numpy as np
import pytest

from newton_like.articulation import ImplicitActuatorCfg
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
        r"'prop_\.\*'.*'base_link', 'rotor_0'",
    ),
    ({"thruster_names_expr": ["rotor_0", "rotor_.*"]}, "'rotor_0'.*two"),
    ({"thrust_range": (3.0, 1.0)}, r"thrust_range.*'rotors'.*\b3 N\b.*\b1 N\b"),
    ({"thrust_range": 3.0}, "thrust_range.*'rotors'.*two"),
    ({"thrust_constant": 0.0}, "thrust_constant 0 .*'rotor_0'"),
    ({"thrust_constant": {"rotor_[012]": 1.0}}, "thrust_constant.*'rotors'.*'rotor_3'"),
    ({"time_constant_up": {"rotor_.*": 0.1, "rotor_2": -1.0}}, "'rotor_2'.*two"),
    ({"time_constant_down": -0.1}, r"time_constant_down -0\.1 .*'rotor_0'"),
    (
        {"time_constant_down": {"rotor_[01]": 0.0, "rotor_2": -0.1, "rotor_3": -0.2}},
        r"time_constant_down -0\.1 .*'rotor_2'",
    ),
    ({"efficiency": -1.0}, "efficiency -1 .*'rotor_0'.*0.*1"),
    ({"efficiency": {"rotor_[013]": 0.0, "rotor_2": 5.0}}, "efficiency 5 .*'rotor_2'.*0.*1"),
    ({"max_thrust_rate": float("nan")}, "max_thrust_rate.*'rotors'.*NaN"),
    ({"state": "rpm"}, "'rotors'.*state 'rpm'.*'speed', 'thrust'"),
    ({"integration": "rk45"}, "'rotors'.*integration 'rk45'"),
    ({"rotor_directions": (1, -1, 1)}, r"rotor_directions.*\b3\b.*\b4 .*rotor_0"),
    ({"rotor_directions": (1, -1, 1, 0)}, "rotor_directions.*1.*-1"),
    ({"rotor_directions": {"rotor_[02]": -1}}, "rotor_directions.*'rotor_1'"),
    ({"rps": {"rotor_[012]": 90.0}}, "^rps .*'rotor_3'"),
    ({"thruster_force_direction": (0, 0, 0)}, "thruster_force_direction"),
    ({"allocation_matrix": np.zeros((4, 4))}, r"allocation_matrix.*\(4, 4\).*\(6, 4\).*rotor_0"),
    ({"allocation_matrix": np.full((6, 4), np.inf)}, "allocation_matrix.*finite"),
    ({"actuators": {}}, "^actuators.*dictionary"),
    ({"thruster_names_expr": []}, "'rotors' has no thrusters.*thruster_names_expr"),
    ({"rps": float("inf")}, "^rps .*finite"),
    ({"drag": BodyDrag(linear=(1.0, -1.0, 0.0))}, r"drag\.linear.*negative"),
    ({"ground_effect": GroundEffect(strength=4.0)}, r"ground_effect\.strength 4 .*0.*4"),
]


@pytest.mark.parametrize(
    ("fields", "message"), BAD_SETTINGS, ids=[f"{next(iter(f))}{i}" for i, (f, _) in enumerate(BAD_SETTINGS)]
)
def test_settings_are_refused_by_name(fields, message):
    with pytest.raises(ValueError, match=message):
        flock("iris", 2, cfg=with_cfg(**fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"drag": 3.0}, "^drag must be a BodyDrag or None, not float"),
        ({"ground_effect": 0.0}, "^ground_effect must be a GroundEffect or None, not float"),
        ({"debug_vis": "no"}, "^debug_vis must be True or False"),
    ],
)
def test_settings_of_another_type_are_refused_by_name(fields, message):
    with pytest.raises(TypeError, match=message):
        flock("iris", 2, cfg=with_cfg(**fields))


def test_groups_of_thrusters_and_joints_have_different_names():
    """Both are in `actuators`."""
    one = ModelBuilder()
    base, arm = (one.add_link(mass=1.0, inertia=np.eye(3), label=label) for label in ("base", "arm"))
    root = one.add_joint_free(base)
    one.add_articulation([root, one.add_joint_revolute(base, arm, axis=(0, 1, 0), label="elbow")], label="crane")
    cfg = MultirotorCfg({"all": ThrusterCfg("base")})
    with pytest.raises(ValueError, match="'all' is one of thrusters and one of joint actuators"):
        Multirotor(one.finalize("cpu"), "crane", cfg, actuators={"all": ImplicitActuatorCfg("elbow")})


def test_attributes_of_groups_of_thrusters_are_not_set():
    """They had no effect."""
    group = flock("iris", 1).actuators["rotors"]
    for name, told in (
        ("thrust_constant", r"set_thruster_parameter\('thrust_constant'"), ("efficiency", "set_thruster_parameter"),
        ("thrust_target", "set_thrust_target"),
    ):  # fmt: skip
        with pytest.raises(AttributeError, match=f"'{name}' of a group of thrusters cannot be set; call {told}"):
            setattr(group, name, 0.5)
    with pytest.raises(AttributeError, match="'target'; did you mean 'thrust_target'"):
        group.target = 0.5


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
    with pytest.raises(ValueError, match=r"allocation.*'best'.*'pseudo_inverse'.*'bounded'"):
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
    with pytest.raises(ValueError, match=r"'rotor_1'.*thrust_min.*thrust_max"):
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


def test_joint_actuators_among_thrusters_are_refused():
    def mixed(settings):
        settings.actuators["legs"] = ImplicitActuatorCfg(".*")

    with pytest.raises(TypeError, match=r"group 'legs' of MultirotorCfg.actuators must be a ThrusterCfg, not Implicit"):
        flock("iris", 2, cfg=mixed)


def test_input_without_an_effect_is_refused():
    def still(settings):
        settings.drag = None
        settings.actuators["rotors"].rotor_drag = 0.0

    drone, weights = flock("iris", 2, cfg=still), (1, 1, 1, 10, 10, 1)
    with pytest.raises(ValueError, match=r"weights .*10.*allocation='bounded'"):
        drone.set_wrench_target(np.zeros(6), weights=weights)
    with pytest.raises(ValueError, match=r"weights .*10.*allocation='bounded'"):
        LeeRateController(drone, weights=weights)
    with pytest.raises(ValueError, match="'iris' has no drag"):
        drone.set_wind([9.0, 0.0, 0.0])
    drone.set_thruster_parameter("rotor_drag", 1e-4)
    drone.set_wind([9.0, 0.0, 0.0])


def test_controllers_of_others_are_refused():
    drone, twin, many, other = flock("iris", 2), flock("iris", 2), flock("iris", 3), flock("hexarotor", 2)
    for stranger, message in (
        (twin, "another multirotor, 'iris' in 2 worlds"),
        (many, r"'iris' in 3 worlds \(this one: 'iris' in 2 worlds\).*LeeRateController\(multirotor\)"),
        (other, "'hexarotor' in 2 worlds"),
    ):
        with pytest.raises(ValueError, match=message):
            drone.controller = LeeRateController(stranger)
    for wrong in ("lee", 3, LeeRateController):
        with pytest.raises(TypeError, match="controller of 'iris' must be a Lee controller or None"):
            drone.controller = wrong
    assert drone.controller is None
    drone.controller = own = LeeRateController(drone)
    with pytest.raises(ValueError, match="another multirotor"):
        drone.controller = LeeRateController(twin)
    assert drone.controller is own
    with pytest.raises(TypeError, match="LeeRateController needs a Multirotor, not 3"):
        LeeRateController(3)
    with pytest.raises(TypeError, match=r"LeeRateController\(\) has no option 'rate_gian'; did you mean 'rate_gain'"):
        LeeRateController(drone, rate_gian=1.0)
    for gain in (-1.0, float("nan"), (1.0, -1.0, 0.0)):
        with pytest.raises(ValueError, match=r"rate_gain holds (-1|nan)"):
            LeeRateController(drone, rate_gain=gain)
