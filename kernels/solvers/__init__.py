"""Stages of the solvers, one a file."""
