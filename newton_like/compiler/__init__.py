"""Specialisation of programs: traces, their order, their adjoints, and code generation. No file of this folder uses a model."""
