"""MJCF models (MuJoCo's XML): :func:`add_mjcf`."""

from newton_like.importers.mjcf.importer import Actuator, Equality, Keyframe, MjcfImport, MjcfWarning, add_mjcf

__all__ = ["Actuator", "Equality", "Keyframe", "MjcfImport", "MjcfWarning", "add_mjcf"]
