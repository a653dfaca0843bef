"""Exporters of models to files."""
