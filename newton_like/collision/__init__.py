"""Collision detection: pairs of shapes, the contacts of a state, and closest points."""

from newton_like.collision.closest import ClosestPoints, closest_points
from newton_like.collision.collision_pipeline import CollisionPipeline
from newton_like.collision.pipeline import collide

__all__ = ["ClosestPoints", "CollisionPipeline", "closest_points", "collide"]
