"""Dynamics of the articulations of a model, one algorithm a file."""
