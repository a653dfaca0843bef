"""Names, poses and numbers of prims, in the units of the model."""
