"""Constraint rows of a step: of contacts, degrees of freedom, couplings and loop joints."""
