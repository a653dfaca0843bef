"""Opening of stages: checks of the files that may be read, and checks of binary files in a separate process."""
