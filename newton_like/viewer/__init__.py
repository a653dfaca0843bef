"""Looking at models: pictures."""

from newton_like.viewer.picture import bounds, picture

__all__ = ["bounds", "picture"]
