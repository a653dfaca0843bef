"""Robots as URDF files; see :func:`write`."""

from newton_like.exporters.urdf import UrdfExport, UrdfExportWarning, write

__all__ = ["UrdfExport", "UrdfExportWarning", "write"]
