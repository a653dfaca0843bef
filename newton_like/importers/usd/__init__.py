"""Importer of USD stages: :func:`add_usd`."""

from newton_like.importers.usd.importer import UsdImport, UsdWarning, add_usd

__all__ = ["UsdImport", "UsdWarning", "add_usd"]
