"""Kernels of the solver in maximal coordinates."""
