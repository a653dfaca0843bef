"""Actuators of articulations: laws from commands to joint efforts, for groups of joints."""

from newton_like.articulation.actuators.configs import (
    ActuatorCfg,
    DCMotorCfg,
    DelayedPDActuatorCfg,
    IdealPDActuatorCfg,
    ImplicitActuatorCfg,
    NetworkActuatorCfg,
    RemotizedPDActuatorCfg,
)
from newton_like.articulation.actuators.groups import (
    Actuator,
    DCMotor,
    DelayedPDActuator,
    IdealPDActuator,
    ImplicitActuator,
    NetworkActuator,
    RemotizedPDActuator,
)

__all__ = [
    "Actuator",
    "ActuatorCfg",
    "DCMotor",
    "DCMotorCfg",
    "DelayedPDActuator",
    "DelayedPDActuatorCfg",
    "IdealPDActuator",
    "IdealPDActuatorCfg",
    "ImplicitActuator",
    "ImplicitActuatorCfg",
    "NetworkActuator",
    "NetworkActuatorCfg",
    "RemotizedPDActuator",
    "RemotizedPDActuatorCfg",
]
