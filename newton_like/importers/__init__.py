"""Readers of robot files. They call the model builder and never touch an array."""
