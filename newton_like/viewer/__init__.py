"""Looking at models: pictures."""

from newton_like.viewer.picture import picture

__all__ = ["picture"]
