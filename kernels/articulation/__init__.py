"""Kernels of assets for learning: state of articulations, commands, actuators and external wrenches."""
