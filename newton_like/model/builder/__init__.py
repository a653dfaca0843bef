"""The builder of scenes, and its checks."""

from newton_like.model.builder.builder import ModelBuilder

__all__ = ["ModelBuilder"]
