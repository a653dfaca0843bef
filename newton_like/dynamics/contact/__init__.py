"""Contact of links with the ground: its points, the ground, and the laws between the two."""
