"""Contacts of any two convex shapes, found in their Minkowski difference."""
