"""Contact detection: one kind of geometry a file."""
