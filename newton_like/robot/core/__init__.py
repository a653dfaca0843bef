"""What robots and states are inside: their numbers, the kernels of a robot, and launches. Not part of the interface for users."""
