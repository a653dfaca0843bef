"""Collision detection: pairs of shapes, and the contacts of a state."""

from newton_like.collision.pipeline import collide

__all__ = ["collide"]
