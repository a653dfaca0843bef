"""Looking out for edits of shapes that ask for other pairs, and not for other numbers."""

from __future__ import annotations

import warp as wp

from newton_like.kernels.edits import edit_kernels
from newton_like.model.edits import SHAPES, edits_of


class ShapeWatch:
    """What pairs of shapes were found from: flags, collision groups and filters.

    Args:
        model: the model.
    """

    def __init__(self, model):
        self._note(model)
        self._since = edits_of(model).version

    def _note(self, model) -> None:
        self._flags, self._groups = wp.clone(model.shape_flags), wp.clone(model.shape_collision_group)
        self._filtered = model.shape_collision_filter_pairs.codes

    def changed(self, model) -> bool:
        """Whether that was edited since the last call."""
        edits = edits_of(model)
        if edits.last[SHAPES] <= self._since or not model.shape_count:
            return False
        differs = wp.zeros(1, dtype=wp.bool, device=model.device)
        now = [model.shape_flags, model.shape_collision_group]
        wp.launch(
            edit_kernels().watch,
            dim=model.shape_count,
            inputs=[model.shape_world, edits.rows[SHAPES], self._since, *now, self._flags, self._groups],
            outputs=[differs],
            device=model.device,
            record_tape=False,
        )
        self._since = edits.version
        filtered = model.shape_collision_filter_pairs.codes is not self._filtered
        if model.device.is_capturing or not (filtered or differs.numpy()[0]):
            return False
        self._note(model)
        return True
