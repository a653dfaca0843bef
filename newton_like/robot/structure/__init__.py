"""What a robot is made of: links, joints, capsules, wheels, and files."""
