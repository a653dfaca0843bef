"""Multirotors: thrusters, control allocation, Lee controllers, drag, ground effect, and vehicles."""

from newton_like.articulation.multirotor.config import BodyDrag, GroundEffect, MultirotorCfg, ThrusterCfg
from newton_like.articulation.multirotor.data import MultirotorData
from newton_like.articulation.multirotor.lee import (
    LeeAccelerationController,
    LeeAttitudeController,
    LeePositionController,
    LeeRateController,
    LeeVelocityController,
)
from newton_like.articulation.multirotor.multirotor import Multirotor
from newton_like.articulation.multirotor.thruster import Thruster
from newton_like.articulation.multirotor.vehicles import VEHICLES, add_vehicle

__all__ = [
    "VEHICLES",
    "BodyDrag",
    "GroundEffect",
    "LeeAccelerationController",
    "LeeAttitudeController",
    "LeePositionController",
    "LeeRateController",
    "LeeVelocityController",
    "Multirotor",
    "MultirotorCfg",
    "MultirotorData",
    "Thruster",
    "ThrusterCfg",
    "add_vehicle",
]
