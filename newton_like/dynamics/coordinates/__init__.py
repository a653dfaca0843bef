"""Coordinates and velocities of joints, and their conversion to other representations."""
