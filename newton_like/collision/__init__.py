"""Which shapes may touch, and the contacts of a state."""
