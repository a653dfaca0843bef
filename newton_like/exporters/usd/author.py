"""Writes prims into Sdf layers without a stage. Nothing is composed, so the time is linear in the number of prims."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
from pxr import Gf, Sdf, Tf, Vt

from newton_like.geometry.transforms import quat_normalize

SUFFIXES = (".usda", ".usdc", ".usd")

_FOREIGN = re.compile(r"(newton|newtonLike|mjc|state|physxArticulation):")
"""Attributes of schemas that are not part of USD, which are declared ``custom``."""

_T = Sdf.ValueTypeNames
_KINDS = {
    "bool": (_T.Bool, bool),
    "int": (_T.Int, int),
    "int2": (_T.Int2, lambda v: Gf.Vec2i(*map(int, v))),
    "int64": (_T.Int64, int),
    "uint64": (_T.UInt64, int),
    "float": (_T.Float, float),
    "double": (_T.Double, float),
    "string": (_T.String, str),
    "token": (_T.Token, str),
    "float2": (_T.Float2, lambda v: Gf.Vec2f(*map(float, v))),
    "float3": (_T.Float3, lambda v: Gf.Vec3f(*map(float, v))),
    "float4": (_T.Float4, lambda v: Gf.Vec4f(*map(float, v))),
    "point3f": (_T.Point3f, lambda v: Gf.Vec3f(*map(float, v))),
    "vector3f": (_T.Vector3f, lambda v: Gf.Vec3f(*map(float, v))),
    "double2": (_T.Double2, lambda v: Gf.Vec2d(*map(float, v))),
    "double3": (_T.Double3, lambda v: Gf.Vec3d(*map(float, v))),
    "double4": (_T.Double4, lambda v: Gf.Vec4d(*map(float, v))),
    "quatf": (_T.Quatf, lambda q: Gf.Quatf(float(q[3]), float(q[0]), float(q[1]), float(q[2]))),
    "quatd": (_T.Quatd, lambda q: Gf.Quatd(float(q[3]), float(q[0]), float(q[1]), float(q[2]))),
    "matrix4d": (_T.Matrix4d, Gf.Matrix4d),
    "double[]": (_T.DoubleArray, lambda v: Vt.DoubleArray([float(x) for x in v])),
    "float[]": (_T.FloatArray, lambda v: Vt.FloatArray([float(x) for x in v])),
    "int[]": (_T.IntArray, lambda v: Vt.IntArray.FromNumpy(np.ascontiguousarray(v, dtype=np.int32))),
    "int64[]": (_T.Int64Array, lambda v: Vt.Int64Array([int(x) for x in v])),
    "uint64[]": (_T.UInt64Array, lambda v: Vt.UInt64Array([int(x) for x in v])),
    "bool[]": (_T.BoolArray, lambda v: Vt.BoolArray([bool(x) for x in v])),
    "string[]": (_T.StringArray, lambda v: Vt.StringArray([str(x) for x in v])),
    "token[]": (_T.TokenArray, lambda v: Vt.TokenArray([str(x) for x in v])),
    "point3f[]": (_T.Point3fArray, lambda v: _vectors(v)),
    "float3[]": (_T.Float3Array, lambda v: _vectors(v)),
    "vector3f[]": (_T.Vector3fArray, lambda v: _vectors(v)),
    "color3f[]": (_T.Color3fArray, lambda v: _vectors(v)),
}
"""For each name of a value type: the type, and the conversion of numbers to its values. Quaternions are given as x, y, z, w."""


def _vectors(values) -> Vt.Vec3fArray:
    return Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(values, dtype=np.float32).reshape(-1, 3))


class Author:
    """Writes prims and properties into one layer.

    Args:
        layer: the ``Sdf.Layer``.
    """

    def __init__(self, layer: Sdf.Layer):
        self.layer = layer

    def prim(self, path: str, type_name: str = "", *, apis=(), specifier=Sdf.SpecifierDef) -> Sdf.PrimSpec:
        """The prim of a path. A missing prim is created with its parents.

        Args:
            path: path of the prim.
            type_name: type of the prim; empty for none.
            apis: names of API schemas to apply.
            specifier: ``Sdf.SpecifierDef``, ``SpecifierOver`` or ``SpecifierClass``.
        """
        prim = Sdf.CreatePrimInLayer(self.layer, path)
        prim.specifier = specifier
        if type_name:
            prim.typeName = type_name
        if apis:
            prim.SetInfo("apiSchemas", Sdf.TokenListOp.Create(prependedItems=list(apis)))
        return prim

    def set(
        self, prim: Sdf.PrimSpec, name: str, kind: str, value=None, *, uniform: bool = False, custom: bool | None = None
    ) -> Sdf.AttributeSpec:
        """Declares an attribute and sets its value.

        Args:
            prim: the prim of the attribute.
            name: name of the attribute.
            kind: type of its values: ``"float"``, ``"double3"``, ``"token[]"`` ...
            value: numbers, strings or arrays; ``None`` only declares the attribute.
            uniform: whether the attribute does not vary over time.
            custom: whether no schema has the attribute; None: the name tells it.
        """
        type_, convert = _KINDS[kind]
        attribute = prim.attributes.get(name)
        if attribute is None:
            variability = Sdf.VariabilityUniform if uniform else Sdf.VariabilityVarying
            attribute = Sdf.AttributeSpec(
                prim, name, type_, variability, _FOREIGN.match(name) is not None if custom is None else custom
            )
        if value is not None:
            attribute.default = convert(value)
        return attribute

    def relate(self, prim: Sdf.PrimSpec, name: str, targets) -> None:
        """Declares a relationship with the given paths as targets."""
        relation = Sdf.RelationshipSpec(prim, name, _FOREIGN.match(name) is not None, Sdf.VariabilityUniform)
        relation.targetPathList.explicitItems = [Sdf.Path(target) for target in targets]

    def place(self, prim: Sdf.PrimSpec, pose, scale=None) -> None:
        """Sets the pose of a prim in its parent, seven numbers, as translate, orient and (if given) scale."""
        self.set(prim, "xformOp:translate", "double3", pose[:3])
        self.set(prim, "xformOp:orient", "quatd", quat_normalize(np.asarray(pose[3:], dtype=np.float64)))
        order = ["xformOp:translate", "xformOp:orient"]
        if scale is not None:
            self.set(prim, "xformOp:scale", "double3", scale)
            order.append("xformOp:scale")
        self.set(prim, "xformOpOrder", "token[]", order, uniform=True)


class Names:
    """Names of prims: labels without the characters that USD forbids, unique in each parent."""

    def __init__(self):
        self._taken: dict[str, set[str]] = {}

    def path(self, parent: str, label: str) -> str:
        """A unique path below ``parent``, named after the last part of a label."""
        name = re.sub(r"\W", "_", label.rstrip("/").rpartition("/")[2], flags=re.ASCII) or "_"
        if name[0].isdigit():
            name = f"_{name}"
        taken = self._taken.setdefault(parent, set())
        unique, number = name, 1
        while unique in taken:
            unique = f"{name}_{number}"
            number += 1
        taken.add(unique)
        return f"{parent}/{unique}"


def as_target(path) -> Path:
    """Checks the path of a stage to be saved.

    Raises:
        TypeError: not a path.
        ValueError: a suffix other than .usda, .usdc or .usd.
        FileNotFoundError: the folder does not exist.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a string or a path, not {path!r}")
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"path '{path}' has the suffix {path.suffix!r}; use one of {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder of path '{path}' does not exist; make it first")
    return path


def save(layer: Sdf.Layer, path: Path) -> None:
    """Saves a layer as a file; stages with the file open get the new content. Raises OSError if the file cannot be written."""
    try:
        done = layer.Export(str(path))
    except Tf.ErrorException as error:
        # removes the position in USD's own source code
        text = re.sub(r"(Error in )?'\S+' at line \d+ in file \S+ : ", "", " ".join(str(error).split()))
        raise OSError(f"'{path}' cannot be written: {text[-200:]}") from None
    if not done:
        raise OSError(f"'{path}' cannot be written; see the messages of USD above")
    opened = Sdf.Layer.Find(str(path))
    if opened is not None:
        opened.Reload(force=True)
