"""Exports models as UsdPhysics stages."""

from newton_like.exporters.usd.stage import UsdExport, write

__all__ = ["UsdExport", "write"]
