"""Assets for learning: articulations, actuators, external wrenches and simulation loops over batches of worlds."""

from newton_like.articulation.actuators import (
    DCMotorCfg,
    DelayedPDActuatorCfg,
    IdealPDActuatorCfg,
    ImplicitActuatorCfg,
    NetworkActuatorCfg,
    RemotizedPDActuatorCfg,
)
from newton_like.articulation.articulation import Articulation
from newton_like.articulation.data.articulation_data import ArticulationData
from newton_like.articulation.data.body_data import BodyData
from newton_like.articulation.drawing import DebugVisCfg
from newton_like.articulation.graphs import StepGraph
from newton_like.articulation.initial import InitialStateCfg
from newton_like.articulation.rigid_object import RigidObject, RigidObjectCollection, RigidObjectCollectionData
from newton_like.articulation.scene import InteractiveScene
from newton_like.articulation.simulation import SimulationContext
from newton_like.articulation.wrenches import WrenchComposer

__all__ = [
    "Articulation",
    "ArticulationData",
    "BodyData",
    "DCMotorCfg",
    "DebugVisCfg",
    "DelayedPDActuatorCfg",
    "IdealPDActuatorCfg",
    "ImplicitActuatorCfg",
    "InitialStateCfg",
    "InteractiveScene",
    "NetworkActuatorCfg",
    "RemotizedPDActuatorCfg",
    "RigidObject",
    "RigidObjectCollection",
    "RigidObjectCollectionData",
    "SimulationContext",
    "StepGraph",
    "WrenchComposer",
]
