"""Kernels of multirotors: thrusters, forces of the air, Lee controllers and control allocation."""
