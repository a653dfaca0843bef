"""Contact of links with the ground: contact points, terrain and contact laws."""
