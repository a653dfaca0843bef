"""Joint kinematics on the device: poses and velocities from coordinates, and coordinates from poses."""
