"""Edits of a model after ``finalize``: which arrays were edited in which worlds, and checks of their numbers."""
