"""Kernels that compute what sensors measure."""
