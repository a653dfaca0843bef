"""Coordinates and velocities of joints, and what they are in other representations."""
