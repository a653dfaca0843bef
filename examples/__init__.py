"""Scenes to run: ``python -m examples.quadruped``."""
