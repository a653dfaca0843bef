"""Programs of the robot SDK: quantities of one robot with respect to its links."""
