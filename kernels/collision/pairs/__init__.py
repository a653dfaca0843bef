"""Narrow phase of two shapes, over lanes: contact points of a pair of shapes that are near in some world of a block."""
