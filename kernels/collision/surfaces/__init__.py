"""Contacts of convex shapes with fixed surfaces: height fields and triangle meshes."""
