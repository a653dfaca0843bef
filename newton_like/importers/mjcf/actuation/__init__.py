"""Actuators of MJCF files."""
