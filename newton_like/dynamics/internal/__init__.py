"""What the functions of the dynamics library share, and users do not call."""
