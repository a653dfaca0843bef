"""Mechanisms after RigidBodyDynamics.jl: a state that computes what follows from it when it is first asked for, and keeps it."""

from newton_like.mechanism.quantities import QUANTITIES
from newton_like.mechanism.state import MechanismState

__all__ = ["QUANTITIES", "MechanismState"]
