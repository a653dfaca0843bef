"""Mechanisms after RigidBodyDynamics.jl: a state that computes derived quantities on demand and caches them."""

from newton_like.mechanism.quantities import QUANTITIES
from newton_like.mechanism.state import MechanismState

__all__ = ["QUANTITIES", "MechanismState"]
