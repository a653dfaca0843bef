"""Importers of robot files. They call the model builder and do not access arrays."""
