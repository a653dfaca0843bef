"""Shapes, meshes, inertia and host-side transforms. Floor 0: independent of models."""
