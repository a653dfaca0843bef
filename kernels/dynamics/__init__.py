"""Rigid-body dynamics, one algorithm a file, named as in the literature."""
