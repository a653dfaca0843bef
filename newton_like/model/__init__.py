"""The scene: its builder, its constants, its state."""

from newton_like.model.builder.builder import ModelBuilder
from newton_like.model.configs import JointDofConfig, ShapeConfig
from newton_like.model.contacts import Contacts
from newton_like.model.model import Model
from newton_like.model.pairs import PairSet
from newton_like.model.state import Control, State

__all__ = ["Contacts", "Control", "JointDofConfig", "Model", "ModelBuilder", "PairSet", "ShapeConfig", "State"]
