"""Pictures and videos of models."""

from newton_like.geometry.markers import Markers
from newton_like.viewer.picture import bounds, picture
from newton_like.viewer.video import VideoRecorder

__all__ = ["Markers", "VideoRecorder", "bounds", "picture"]
