"""Contact points of links: the ground below them and the laws of contact."""
