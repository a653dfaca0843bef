"""URDF robots: :func:`add_urdf`."""

from newton_like.importers.urdf.importer import UrdfImport, UrdfWarning, add_urdf
from newton_like.importers.urdf.motors import SafetyController, Transmission, TransmissionEnd

__all__ = ["SafetyController", "Transmission", "TransmissionEnd", "UrdfImport", "UrdfWarning", "add_urdf"]
