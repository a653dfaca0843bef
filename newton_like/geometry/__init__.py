"""Shapes, meshes, inertia and host-side transforms. Floor 0: knows nothing of models."""
