"""Internal functions of the dynamics library."""
