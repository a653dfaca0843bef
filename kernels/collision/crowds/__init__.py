"""Contacts of crowds, worlds with many shapes: a tree of boxes finds the pairs that are near, and lanes are pairs of the same kinds."""
