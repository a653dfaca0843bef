"""Warp structs as kernels take them."""

from __future__ import annotations


def copied(kind, struct, **fields):
    """A copy of a struct of Warp's type `kind`, with other `fields`."""
    copy = kind()
    for name in kind.vars:
        setattr(copy, name, fields[name] if name in fields else getattr(struct, name))
    return copy


def filled(kind, **fields):
    """A struct of Warp's type `kind` with these `fields`."""
    struct = kind()
    for name, value in fields.items():
        setattr(struct, name, value)
    return struct
