"""Stages are opened: files that may be read, binary ones by a process of their own first."""
