"""Which shapes are round: they touch next to their axes, however they turn."""

from __future__ import annotations

import numpy as np

from newton_like.geometry.transforms import quat_rotate
from newton_like.types import GeoType, warp_types

ROUND = (GeoType.SPHERE, GeoType.CAPSULE, GeoType.CYLINDER)
"""Shapes with a radius, the first number of their size."""


def round_arrays(model, array) -> dict:
    """Radii of round shapes, -1 of ellipsoids, else zero; axes of cylinders, in link axes, and squares of half axes of ellipsoids; and the
    orientations of shapes.

    Args:
        model: the model.
        array: makes arrays.
    """
    kinds = model.shape_type.numpy()
    radius = np.where(np.isin(kinds, [int(k) for k in ROUND]), model.shape_scale.numpy()[:, 0], 0.0)
    axis = quat_rotate(model.shape_transform.numpy()[:, 3:].astype(np.float64), np.array([0.0, 0.0, 1.0]))
    axis = np.where((kinds == GeoType.CYLINDER)[:, None], axis, 0.0)
    oval = kinds == GeoType.ELLIPSOID
    radius[oval], axis[oval] = -1.0, model.shape_scale.numpy()[oval].astype(np.float64) ** 2
    types = warp_types(model.dtype)
    return dict(
        round_radius=array(radius, model.dtype),
        round_axis=array(axis, types.vec3),
        round_turn=array(model.shape_transform.numpy()[:, 3:], types.quat),
    )
