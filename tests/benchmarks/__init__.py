"""Measurements against other engines: ``python -m tests.benchmarks.run``."""
