"""Models and mechanisms as files."""
