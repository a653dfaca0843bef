"""Views of some articulations of a model: their coordinates, links and parameters as ``[world, articulation, value]``."""

from newton_like.model.labels import match_labels
from newton_like.selection.layout import FrequencyLayout
from newton_like.selection.view import ArticulationView

__all__ = ["ArticulationView", "FrequencyLayout", "match_labels"]
