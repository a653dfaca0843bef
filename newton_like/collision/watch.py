"""Detection of edits of shapes that change the pairs of colliding shapes."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import flat
from newton_like.collision.ground import disabled_joints
from newton_like.collision.laws import law_inputs
from newton_like.kernels.edits import edit_kernels
from newton_like.model.editing.edit_checks import check_mesh_scales, check_shape_types
from newton_like.model.editing.edits import GAINS, JOINTS, OTHERS, SHAPES, TYPES, edits_of
from newton_like.model.editing.fingerprints import Accepted

_FORMS = ("shape_type", "shape_hull_first", "shape_hull_count", "hull_points")


def _watched(model) -> list[wp.array]:
    return [model.shape_flags, model.shape_collision_group, model.shape_type]


class ShapeWatch:
    """A record of the arrays that determine pairs of shapes and their tables: flags, collision groups, filters, types, hulls, what the
    laws of contacts are made of, and which joints of trees are disabled.

    Args:
        model: the model.
    """

    def __init__(self, model):
        check_shape_types(model)
        check_mesh_scales(model)
        self.accept(model)

    def accept(self, model) -> None:
        """Records the current arrays as those of the current pairs."""
        self._old, self._accepted = [wp.clone(a) for a in _watched(model)], Accepted()
        self._filtered = model.shape_collision_filter_pairs.codes
        self._forms = [getattr(model, name).numpy().copy() for name in _FORMS]
        self._of_laws = law_inputs(model)
        self._disabled = disabled_joints(model)
        self._since = edits_of(model).version

    def changed(self, model) -> bool:
        """Whether the arrays differ from the record. Stays True until :meth:`accept` is called.

        Raises:
            ValueError: the type of a shape does not exist, or the scale of a mesh is not that of its hull.
        """
        edits = edits_of(model)
        if edits.last[SHAPES] > self._since and model.shape_count and self._differs(model, edits):
            check_shape_types(model)
            return True
        if self._of_laws and max(edits.last[SHAPES], edits.last[GAINS]) > self._since:
            now = law_inputs(model)
            if not all(np.array_equal(old, now.get(name)) for name, old in self._of_laws.items()):
                return True
        if edits.last[TYPES] > self._since and not all(
            np.array_equal(old, getattr(model, name).numpy()) for old, name in zip(self._forms, _FORMS, strict=True)
        ):
            check_shape_types(model)
            return True
        joints = max(edits.last[JOINTS], edits.last[OTHERS]) > self._since
        if joints and not np.array_equal(self._disabled, disabled_joints(model)):
            return True
        self._since = edits.version
        return False

    def _equals(self, model) -> bool:
        """Whether no array differs in any world, as far as the host sees."""
        if not model.device.is_cpu:
            return False
        old, now = self._old, _watched(model)
        if model._hull_scale is not None:
            old, now = [*old, model._hull_scale], [*now, model.shape_scale]
        if self._accepted.known(now):
            return True
        same = all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(old, now, strict=True))
        if same:
            self._accepted.accept()
        return same

    def _differs(self, model, edits) -> bool:
        if model.shape_collision_filter_pairs.codes is not self._filtered:
            return True
        if self._equals(model):
            return False
        differs = wp.zeros(2, dtype=wp.bool, device=model.device)
        now = _watched(model)
        old = model._hull_scale
        words = 0 if old is None else wp.types.type_size_in_bytes(old.dtype) // 4
        scales = [now[0]] * 2 if old is None else [flat(a, wp.int32) for a in (model.shape_scale, old)]
        wp.launch(
            edit_kernels().watch,
            dim=model.shape_count,
            inputs=[
                model.shape_world,
                edits.rows[SHAPES],
                self._since,
                *now,
                *self._old,
                words,
                model.shape_hull_count,
                *scales,
            ],
            outputs=[differs],
            device=model.device,
            record_tape=False,
        )
        flags, scaled = differs.numpy().tolist()
        if scaled:
            check_mesh_scales(model)
        return flags
