"""Data of assets, computed when they are read."""
