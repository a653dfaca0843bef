"""Writes shapes of a model as gprims, their materials, and shared meshes."""

from __future__ import annotations

import numpy as np
from pxr import Sdf

from newton_like.exporters.usd.author import Author, Names
from newton_like.exporters.usd.host import Host
from newton_like.geometry.mesh import Mesh
from newton_like.geometry.outline import triangles as triangles_of
from newton_like.geometry.transforms import transform_inverse, transform_multiply
from newton_like.importers.usd.own import USED_SIZES
from newton_like.types import GeoType, ShapeFlags

PRIM_TYPES = {
    GeoType.NONE: "Xform",
    GeoType.PLANE: "Plane",
    GeoType.HFIELD: "Mesh",
    GeoType.SPHERE: "Sphere",
    GeoType.CAPSULE: "Capsule",
    GeoType.ELLIPSOID: "Sphere",
    GeoType.CYLINDER: "Cylinder",
    GeoType.BOX: "Cube",
    GeoType.MESH: "Mesh",
    GeoType.CONE: "Cone",
    GeoType.CONVEX_MESH: "Mesh",
}
SOURCED = (GeoType.MESH, GeoType.CONVEX_MESH, GeoType.HFIELD)
MESHES = (*SOURCED, GeoType.ELLIPSOID)
"""Types that collide as a mesh in other tools."""

ROUND = 32, 16
"""Numbers of segments and rings of the mesh that represents a colliding ellipsoid in other tools."""

ENDLESS = 100.0
"""Side [m] of the square that represents an infinite plane in pictures."""

MATERIAL = {
    "physics:dynamicFriction": "mu",
    "physics:staticFriction": "mu",
    "physics:restitution": "restitution",
    "newton:torsionalFriction": "mu_torsional",
    "newton:rollingFriction": "mu_rolling",
    "newton:contactStiffness": "ke",
    "newton:contactDamping": "kd",
    "newton:contactFrictionGain": "kf",
    "newtonLike:timeConstant": "time_constant",
    "newtonLike:dampingRatio": "damping_ratio",
}
"""Attributes of a material, and their columns ``shape_material_*``."""


def unit_ball() -> Mesh:
    """A triangle mesh of a ball of radius 1. UsdPhysics has no ellipsoids, and no spheres with a nonuniform scale."""
    around, rings = ROUND
    turn = 2.0 * np.pi * np.arange(around) / around
    tilt = np.pi * np.arange(1, rings) / rings
    circles = np.stack(
        [
            np.outer(np.sin(tilt), np.cos(turn)),
            np.outer(np.sin(tilt), np.sin(turn)),
            np.cos(tilt)[:, None] + 0.0 * turn,
        ],
        axis=-1,
    )
    points = np.concatenate([circles.reshape(-1, 3), [(0.0, 0.0, 1.0), (0.0, 0.0, -1.0)]])
    here = np.arange(around)
    beside = (here + 1) % around
    faces = [np.stack([np.full(around, len(points) - 2), here, beside], axis=1)]
    for ring in range(rings - 2):
        top, low = ring * around, (ring + 1) * around
        faces.append(np.stack([top + here, low + here, low + beside], axis=1))
        faces.append(np.stack([top + here, low + beside, top + beside], axis=1))
    last = (rings - 2) * around
    faces.append(np.stack([np.full(around, len(points) - 1), last + beside, last + here], axis=1))
    return Mesh(points, np.concatenate(faces), compute_inertia=False, path="unit_ball")


class MeshLibrary:
    """Meshes and heightfields as abstract prims that shapes refer to, one for each source.

    Args:
        author: author of the layer.
        names: names of prims.
        root: prim below which the library is created on first use.
    """

    def __init__(self, author: Author, names: Names, root: str):
        self._author, self._names, self._root = author, names, root
        self._folder = None
        self._ball: Mesh | None = None
        self._paths: dict[int, str] = {}

    def ball(self) -> str:
        """Path of a ball of radius 1 as a mesh."""
        self._ball = self._ball or unit_ball()
        return self.path(self._ball)

    def path(self, source) -> str:
        """Path of the prim of a source."""
        path = self._paths.get(id(source))
        if path is None:
            if self._folder is None:
                self._folder = self._names.path(self._root, "meshes")
                self._author.prim(self._folder, "Scope", specifier=Sdf.SpecifierClass)
            stem = getattr(getattr(source, "path", None), "stem", "") or "mesh"
            path = self._paths[id(source)] = self._names.path(self._folder, stem)
            self._write(path, source)
        return path

    def _write(self, path: str, source) -> None:
        author = self._author
        prim = author.prim(path, "Mesh")
        if hasattr(source, "nrow"):
            points, triangles = triangles_of(GeoType.HFIELD, (1.0, 1.0, 1.0), source)
            author.set(prim, "newtonLike:heightfield", "int2", (source.nrow, source.ncol), uniform=True)
        else:
            points, triangles = source.vertices, source.indices.reshape(-1, 3)
            author.set(prim, "newton:maxHullVertices", "int", source.max_hull_vertices, uniform=True)
            if not source.is_solid:
                author.set(prim, "newtonLike:meshIsSolid", "bool", False, uniform=True)
        author.set(prim, "points", "point3f[]", points)
        author.set(prim, "faceVertexCounts", "int[]", np.full(len(triangles), 3))
        author.set(prim, "faceVertexIndices", "int[]", triangles.reshape(-1))
        author.set(prim, "extent", "float3[]", [points.min(axis=0), points.max(axis=0)])
        author.set(prim, "subdivisionScheme", "token", "none", uniform=True)


def write_geometry(author: Author, meshes: MeshLibrary, path: str, kind: GeoType, scale, source, pose, apis=()):
    """Writes the gprim of a shape at a pose in its parent, and returns the prim."""
    x, y = float(scale[0]), float(scale[1])
    as_mesh = kind == GeoType.ELLIPSOID and "PhysicsCollisionAPI" in apis
    prim = author.prim(path, "Mesh" if as_mesh else PRIM_TYPES[kind], apis=apis)
    factors = half = None
    if as_mesh:
        prim.referenceList.prependedItems = [Sdf.Reference("", Sdf.Path(meshes.ball()))]
        factors = scale
    elif kind in SOURCED:
        prim.referenceList.prependedItems = [Sdf.Reference("", Sdf.Path(meshes.path(source)))]
        factors = scale if tuple(scale) != (1.0, 1.0, 1.0) else None
    elif kind in (GeoType.BOX, GeoType.ELLIPSOID):
        name, size = ("size", 2.0) if kind == GeoType.BOX else ("radius", 1.0)
        author.set(prim, name, "double", size)
        half, factors = (1.0, 1.0, 1.0), scale
    elif kind == GeoType.SPHERE:
        author.set(prim, "radius", "double", x)
        half = (x, x, x)
    elif kind == GeoType.PLANE:
        width, length = (side if side > 0.0 else ENDLESS for side in (x, y))
        author.set(prim, "axis", "token", "Z", uniform=True)
        author.set(prim, "width", "double", width)
        author.set(prim, "length", "double", length)
        half = (0.5 * width, 0.5 * length, 0.0)
    elif kind in (GeoType.CAPSULE, GeoType.CYLINDER, GeoType.CONE):
        author.set(prim, "axis", "token", "Z", uniform=True)
        author.set(prim, "radius", "double", x)
        author.set(prim, "height", "double", 2.0 * y)
        half = (x, x, y + x if kind == GeoType.CAPSULE else y)
    if half is not None:
        author.set(prim, "extent", "float3[]", [[-h for h in half], half])
    author.place(prim, pose, factors)
    return prim


def write_look(author: Author, prim, color, opacity: float, shown: bool) -> None:
    """Writes colour, opacity and purpose of a gprim."""
    author.set(prim, "primvars:displayColor", "color3f[]", [color])
    if opacity != 1.0:
        author.set(prim, "primvars:displayOpacity", "float[]", [opacity])
    if not shown:
        author.set(prim, "purpose", "token", "guide", uniform=True)


class ShapeWriter:
    """Writes shapes with their physics.

    Args:
        author: author of the layer.
        host: arrays of the model.
        names: names of prims.
        meshes: library of meshes.
    """

    def __init__(self, author: Author, host: Host, names: Names, meshes: MeshLibrary):
        self._author, self._host, self._names, self._meshes = author, host, names, meshes
        self._materials: dict[tuple, str] = {}

    def write(self, path: str, shape: int, index: int, scope) -> None:
        """Writes one shape.

        Args:
            path: path of its prim.
            shape: index in the model.
            index: index among the shapes of its scope.
            scope: scope of the shape; materials are below its prim.
        """
        author, host = self._author, self._host
        kind = GeoType(int(host.shape_type[shape]))
        flags = ShapeFlags(int(host.shape_flags[shape]))
        collides, shown = bool(flags & ShapeFlags.COLLIDE_SHAPES), bool(flags & ShapeFlags.VISIBLE)
        collides = collides and kind != GeoType.NONE
        apis = []
        if collides:
            apis += ["PhysicsCollisionAPI", "NewtonCollisionAPI"]
            if kind in MESHES:
                apis += ["PhysicsMeshCollisionAPI", "NewtonMeshCollisionAPI"]
        if flags & ShapeFlags.SITE:
            apis.append("NewtonSiteAPI")
        material = self._material(shape, scope) if collides else None
        if material:
            apis.append("MaterialBindingAPI")
        pose = host.shape_transform[shape]
        if host.shape_body[shape] < 0:
            pose = transform_multiply(transform_inverse(scope.frame), pose)
        source = host.shape_source[shape]
        scale = host.shape_scale[shape]
        prim = write_geometry(author, self._meshes, path, kind, scale, source, pose, apis)
        write_look(author, prim, host.shape_color[shape], host.shape_opacity[shape], shown)
        author.set(prim, "newtonLike:label", "string", scope.strip(host.shape_label[shape]))
        author.set(prim, "newtonLike:index", "int", index)
        author.set(prim, "newtonLike:geometry", "token", kind.name.lower(), uniform=True)
        unused = np.array(scale)[USED_SIZES.get(kind, 3) :]
        if kind in (GeoType.PLANE, GeoType.NONE) or (kind in SOURCED and np.min(scale) < 0.0) or unused.any():
            author.set(prim, "newtonLike:scale", "double3", scale)
        if flags != _usual_flags(collides, shown, flags):
            author.set(prim, "newtonLike:flags", "int", int(flags))
        group = int(host.shape_collision_group[shape])
        if group != (0 if flags & ShapeFlags.SITE else 1):
            author.set(prim, "newtonLike:collisionGroup", "int", group)
        if not host.shape_is_solid[shape]:
            author.set(prim, "newton:massModel", "token", "shell", uniform=True)
        if collides:
            author.set(prim, "newton:contactMargin", "float", host.shape_margin[shape])
            author.set(prim, "newton:contactGap", "float", host.shape_gap[shape])
            if kind in MESHES:
                approximation = "none" if kind == GeoType.HFIELD else "convexHull"
                author.set(prim, "physics:approximation", "token", approximation, uniform=True)
        if material:
            author.relate(prim, "material:binding:physics", [material])

    def _material(self, shape: int, scope) -> str:
        host = self._host
        values = tuple(float(getattr(host, f"shape_material_{name}")[shape]) for name in MATERIAL.values())
        key = (scope.root, values)
        if key not in self._materials:
            folder = f"{scope.root}/materials"
            author = self._author
            if author.layer.GetPrimAtPath(folder) is None:
                author.prim(folder, "Scope")
            path = self._names.path(folder, f"material_{len(self._materials)}")
            prim = author.prim(path, "Material", apis=["PhysicsMaterialAPI", "NewtonMaterialAPI"])
            for name, value in zip(MATERIAL, values, strict=True):
                author.set(prim, name, "float", value)
            self._materials[key] = path
        return self._materials[key]


def _usual_flags(collides: bool, shown: bool, flags: ShapeFlags) -> ShapeFlags:
    """The flags that follow from the schemas and the purpose of the prim."""
    result = ShapeFlags.VISIBLE if shown else ShapeFlags(0)
    if flags & ShapeFlags.SITE:
        return result | ShapeFlags.SITE
    return result | (ShapeFlags.COLLIDE_SHAPES | ShapeFlags.COLLIDE_PARTICLES if collides else ShapeFlags(0))
