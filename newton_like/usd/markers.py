"""Markers and visibility over time in recorded stages."""

from __future__ import annotations

import numpy as np
from pxr import Gf, Sdf, UsdGeom, Vt

from newton_like.exporters.usd.author import Author
from newton_like.geometry.markers import CONE, ROD, SPHERE

_PRIMS = {ROD: "Cylinder", CONE: "Cone", SPHERE: "Sphere"}
_VISIBLE, _INVISIBLE = str(UsdGeom.Tokens.inherited), str(UsdGeom.Tokens.invisible)


def write_visibility(layer: Sdf.Layer, paths: list[str], codes: list[float], hidden: list) -> None:
    """Writes when the prims of bodies are invisible, as time samples where this changes.

    Args:
        layer: the layer.
        paths: of the prims of all bodies.
        codes: time codes, ascending.
        hidden: for each time which bodies are hidden, ``[bodies]`` bools, or None.
    """
    if all(mask is None for mask in hidden):
        return
    none = np.zeros(len(paths), dtype=bool)
    masks = np.array([none if mask is None else mask for mask in hidden])
    for body in np.flatnonzero(masks.any(axis=0)):
        attribute = Author(layer).set(layer.GetPrimAtPath(paths[body]), "visibility", "token", _VISIBLE)
        mask, last = masks[:, body], None
        attribute.default = _INVISIBLE if mask[0] else _VISIBLE
        if mask.all():
            continue
        for code, now in zip(codes, mask.tolist(), strict=True):
            if now is not last:
                layer.SetTimeSample(attribute.path, code, _INVISIBLE if now else _VISIBLE)
            last = now


def write_markers(layer: Sdf.Layer, path: str, codes: list[float], markers: list) -> None:
    """Writes markers as a ``PointInstancer`` whose arrays are time samples, with a prototype for each kind and colour.

    Args:
        layer: the layer.
        path: of the prim.
        codes: time codes, ascending.
        markers: for each time :class:`newton_like.geometry.markers.Markers`, or None.
    """
    if all(each is None for each in markers):
        return
    author = Author(layer)
    prim = author.prim(path, "PointInstancer")
    author.prim(f"{path}/prototypes", "Scope")
    found: dict[tuple, int] = {}
    for each in markers:
        if each is not None:
            looks = np.unique(np.column_stack([each.kind, each.color]), axis=0)
            for look in map(tuple, looks.tolist()):
                found.setdefault(look, len(found))
    names = [f"{path}/prototypes/{_PRIMS[int(look[0])].lower()}_{i}" for look, i in found.items()]
    for (kind, *color), name in zip(found, names, strict=True):
        _write_unit(author, name, int(kind), color)
    author.relate(prim, "prototypes", names)
    kinds = Sdf.ValueTypeNames
    types = {
        "protoIndices": kinds.IntArray, "positions": kinds.Point3fArray, "orientations": kinds.QuathArray, "scales": kinds.Float3Array,
    }  # fmt: skip
    paths = {name: Sdf.AttributeSpec(prim, name, kind).path for name, kind in types.items()}
    for code, each in zip(codes, markers, strict=True):
        for name, value in _samples(each, found).items():
            layer.SetTimeSample(paths[name], code, value)


def _samples(markers, looks: dict[tuple, int]) -> dict:
    """The arrays of the instancer at one time."""
    if markers is None:
        return {
            "protoIndices": Vt.IntArray(), "positions": Vt.Vec3fArray(), "orientations": Vt.QuathArray(), "scales": Vt.Vec3fArray(),
        }  # fmt: skip
    rows = np.column_stack([markers.kind, markers.color]).tolist()
    q = markers.pose[:, 3:].tolist()
    return {
        "protoIndices": Vt.IntArray([looks[tuple(row)] for row in rows]),
        "positions": Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(markers.pose[:, :3], dtype=np.float32)),
        "orientations": Vt.QuathArray([Gf.Quath(w, x, y, z) for x, y, z, w in q]),
        "scales": Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(markers.scale, dtype=np.float32)),
    }


def _write_unit(author: Author, path: str, kind: int, color) -> None:
    """A gprim with the radius 1 and the length 1 about its middle."""
    prim = author.prim(path, _PRIMS[kind])
    author.set(prim, "radius", "double", 1.0)
    half = 1.0 if kind == SPHERE else 0.5
    if kind != SPHERE:
        author.set(prim, "height", "double", 1.0)
        author.set(prim, "axis", "token", "Z", uniform=True)
    author.set(prim, "extent", "float3[]", [[-1.0, -1.0, -half], [1.0, 1.0, half]])
    author.set(prim, "primvars:displayColor", "color3f[]", [color])
