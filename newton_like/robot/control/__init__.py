"""What users of a robot build on it: inverse kinematics and controllers."""
