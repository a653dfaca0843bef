"""Contact points of links: terrain and contact laws."""
