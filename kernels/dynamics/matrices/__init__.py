"""Matrices of a mechanism and their factors."""
