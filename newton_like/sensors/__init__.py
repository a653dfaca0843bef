"""Sensors: quantities that are measured from states and contacts, for all worlds at once."""

from newton_like.sensors.contact import SensorContact

__all__ = ["SensorContact"]
