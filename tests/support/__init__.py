"""Shared code of tests: random mechanisms, and independent reference implementations."""
