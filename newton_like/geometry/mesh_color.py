"""The mean colour of the materials of a mesh file."""

from __future__ import annotations

import numpy as np

TEXTURE = 256
"""Width and height to which textures are scaled down."""


def mean_color(scene) -> tuple[float, float, float] | None:
    """Mean colour of the surfaces of a trimesh scene, weighted by area, from 0 to 1; None if the file has no colours.

    Textures are sampled at the corners of the triangles. A missing or broken texture counts as white.
    """
    total, area = np.zeros(3), 0.0
    for mesh in scene.geometry.values():
        faces = getattr(mesh, "faces", None)
        if faces is None or not len(faces):
            continue
        colors = _face_colors(mesh.visual, np.asarray(faces))
        if colors is not None:
            weights = np.asarray(mesh.area_faces)
            total += weights @ colors
            area += weights.sum()
    return tuple(float(x) for x in np.clip(total / area, 0.0, 1.0)) if area > 0.0 else None


def _face_colors(visual, faces: np.ndarray) -> np.ndarray | None:
    if visual.kind in ("face", "vertex"):
        return np.asarray(visual.face_colors)[:, :3] / 255.0
    material = getattr(visual, "material", None)
    image = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
    # trimesh assigns a default grey to OBJ files without materials
    if material is None or (image is None and not hasattr(material, "baseColorFactor") and "kd" not in material.kwargs):
        return None
    if hasattr(material, "baseColorFactor"):
        color = material.baseColorFactor
        color = np.full(3, 255.0) if color is None else np.asarray(color)
    else:
        color = np.full(3, 255.0) if image is not None else np.asarray(material.main_color)
    color = np.broadcast_to(color[:3] / 255.0, (len(faces), 3))
    if image is None or visual.uv is None:
        return color
    return color * _texture(image, np.asarray(visual.uv, dtype=np.float64)[faces])


def _texture(image, uv: np.ndarray) -> np.ndarray:
    """Mean colour of a texture at the corners of each triangle, ``[m, 3]``, for texture coordinates ``[m, 3, 2]``."""
    try:
        image.draft("RGB", (TEXTURE, TEXTURE))
        pixels = np.asarray(image.convert("RGB")) / 255.0
    except (OSError, ValueError):
        return np.ones((len(uv), 3))
    height, width = pixels.shape[:2]
    uv = np.nan_to_num(uv) % 1.0
    column = np.minimum((uv[..., 0] * width).astype(int), width - 1)
    row = np.minimum(((1.0 - uv[..., 1]) * height).astype(int), height - 1)
    return pixels[row, column].mean(axis=1)
