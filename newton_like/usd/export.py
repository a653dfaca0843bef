"""Old import path of :func:`newton_like.usd.write`."""

from newton_like.exporters.usd import UsdExport, write

__all__ = ["UsdExport", "write"]
