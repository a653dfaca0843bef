"""Joints on the device: coordinates to poses and velocities, and back."""
