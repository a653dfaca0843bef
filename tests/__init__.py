"""The tests of newton_like."""
