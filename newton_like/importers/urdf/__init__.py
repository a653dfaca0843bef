"""URDF robots: :func:`add_urdf`."""

from newton_like.importers.urdf.importer import UrdfImport, UrdfWarning, add_urdf

__all__ = ["UrdfImport", "UrdfWarning", "add_urdf"]
