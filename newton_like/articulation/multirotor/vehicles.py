"""Vehicles of the project: a Crazyflie 2, an Iris and a hexarotor with tilted rotors."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import NamedTuple

from newton_like import assets
from newton_like.articulation.multirotor.config import MultirotorCfg, ThrusterCfg

RADIANS = (2.0 * math.pi) ** 2
"""A thrust constant for rad/s times this number is one for rev/s."""

MINUTES = 3600.0
"""A thrust constant for 1/min times this number is one for rev/s."""


def crazyflie() -> MultirotorCfg:
    """Crazyflie 2: 27 g, 3.16e-10 N min^2, drag 7.94e-12 N m min^2, thrust 2.25 times the weight. Time constants are assumed."""
    thrust = 2.25 * 0.027 * 9.81 / 4
    motors = ThrusterCfg(
        "rotor_.*",
        thrust_range=(0.0, thrust),
        thrust_constant=3.16e-10 * MINUTES,
        time_constant_up=0.03,
        time_constant_down=0.03,
        torque_to_thrust_ratio=7.94e-12 / 3.16e-10,
        radius=0.023,
    )
    return MultirotorCfg({"rotors": motors}, rotor_directions=(1, -1, 1, -1), rps=240.0)


def iris() -> MultirotorCfg:
    """Iris: 1.52 kg, 8.54858e-6 N s^2 up to 838 rad/s, torque 0.016 m times the thrust, time constants 12.5 ms up and 25 ms down."""
    constant = 8.54858e-6
    motors = ThrusterCfg(
        "rotor_.*",
        thrust_range=(0.0, constant * 838.0**2),
        thrust_constant=constant * RADIANS,
        time_constant_up=0.0125,
        time_constant_down=0.025,
        torque_to_thrust_ratio=0.016,
        radius=0.128,
    )
    return MultirotorCfg({"rotors": motors}, rotor_directions=(1, 1, -1, -1), rps=105.0)


def hexarotor() -> MultirotorCfg:
    """A hexarotor of 2.4 kg whose rotors are tilted by 25 degrees: force and torque are independent (``fully_actuated=True``)."""
    motors = ThrusterCfg(
        "rotor_.*",
        thrust_range=(0.0, 12.0),
        thrust_constant=4.0e-4,
        time_constant_up=0.02,
        time_constant_down=0.03,
        torque_to_thrust_ratio=0.016,
        radius=0.13,
    )
    return MultirotorCfg({"rotors": motors}, rotor_directions=(1, -1, 1, -1, 1, -1), rps=104.0)


class Vehicle(NamedTuple):
    """A vehicle of the project: the file of its bodies, and the function that makes its settings."""

    file: str
    settings: Callable[[], MultirotorCfg]


VEHICLES = {
    "crazyflie": Vehicle("crazyflie.urdf", crazyflie),
    "iris": Vehicle("iris.urdf", iris),
    "hexarotor": Vehicle("hexarotor.urdf", hexarotor),
}
"""Vehicles by name."""


def add_vehicle(builder, name: str, **options) -> MultirotorCfg:
    """Adds a vehicle of the project to a builder, as one floating body with a frame for each rotor.

    Args:
        builder: a :class:`newton_like.ModelBuilder`.
        name: a name of `VEHICLES`.
        **options: further arguments of ``builder.add_urdf``, such as ``xform``.

    Returns:
        Its settings, a copy that may be edited.

    Raises:
        ValueError: there is no such vehicle.
    """
    if name not in VEHICLES:
        raise ValueError(f"there is no vehicle {name!r}; there are {', '.join(VEHICLES)}")
    vehicle = VEHICLES[name]
    builder.add_urdf(assets.path(vehicle.file), **{"floating": True, "collapse_fixed_joints": True, **options})
    return copy.deepcopy(vehicle.settings())
