"""Triangle meshes and heightfields: geometry, volume properties, convex hulls, files."""

from __future__ import annotations

import functools
import io
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Never

import numpy as np
import warp as wp

from newton_like.coercion import LARGEST, as_count, as_flag, as_number, as_vector
from newton_like.geometry.mesh_color import mean_color
from newton_like.geometry.polygons import plain_lines, without_concave_polygons
from newton_like.geometry.primitives import Primitives
from newton_like.options import refuse_options

MAX_HULL_VERTICES = 64
"""Default largest number of vertices of a collision hull."""

SHOWN_CHARACTERS = 80
"""Number of characters of an invalid array in error messages."""

LEAST_HULL_VERTICES = 8
"""Least value of ``max_hull_vertices``: six extremes along the axes, and two more if these are coplanar."""

MERGE_TOLERANCE = 1.0e-7
"""Vertices closer than this fraction of the mesh's size are merged; files have six to seven digits."""

CLOSED_VOLUME_FRACTION = 1.0e-6
"""A closed surface that encloses less than this fraction of its convex hull's volume is a doubled sheet, not a solid."""

MOST_VOLUME_FRACTION = 1.01
"""A surface that encloses more than this goes round parts of its inside more than once."""


_owner: ContextVar[str] = ContextVar("owner", default="")


@contextmanager
def warnings_about(owner: str) -> Iterator[None]:
    """Within the context, warnings of meshes begin with the name of the shape that the mesh is for."""
    token = _owner.set(f"{owner}: ")
    try:
        yield
    finally:
        _owner.reset(token)


def _readonly(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def _numbers(value, what: str) -> np.ndarray:
    """Real numbers as a float64 array of any shape, copied."""
    try:
        array = np.array(value)
        if array.size and array.dtype.kind not in "fiub":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be an array of numbers, not {str(value)[:SHOWN_CHARACTERS]}") from None


class Mesh(Primitives):
    """Triangle mesh, seen from outside with counter-clockwise triangles.

    A mesh does not change after it was made, so that shapes, worlds and models share it. Volume properties and hull are
    computed when they are first asked for.

    **Volume properties** (``volume``, ``com``, ``inertia``) are those of the enclosed solid of density one, exact for
    polyhedra (Mirtich 1996; computed by trimesh). Vertices that coincide are merged first, so that STL files close. A
    surface that is closed but turned inside out is taken as meant the other way round. A surface with holes, with
    triangles of mixed orientation, or that encloses nothing has no volume of its own: it gets the properties of its
    convex hull, with a warning.

    **Contacts** of a mesh on no body act on the front side of its triangles. A closed surface that is turned inside out is taken the
    other way round here, too, unless ``is_solid`` is false, as for a room that bodies are in. Open surfaces, such as terrain, are taken as
    they are.

    Attributes:
        vertices: corner points [m], shape ``[n, 3]``, float64.
        indices: three vertex numbers a triangle, flat, shape ``[3 m]``, int32.
        is_solid: whether mass fills the volume (default) or covers the surface.
        color: red, green, blue from 0 to 1, or ``None``.
        path: file it came from, or ``None``.
    """

    def __init__(
        self,
        vertices,
        indices,
        *,
        compute_inertia: bool = True,
        is_solid: bool = True,
        max_hull_vertices: int = MAX_HULL_VERTICES,
        color=None,
        path: str | os.PathLike | None = None,
        **others: Never,
    ):
        """Creates a mesh from vertices and triangles.

        Args:
            vertices: corner points [m], ``[n, 3]``.
            indices: three vertex numbers a triangle, ``[m, 3]`` or flat.
            compute_inertia: whether volume properties are computed (with warnings) now, and not on first use.
            is_solid: whether mass fills the volume or covers the surface.
            max_hull_vertices: largest number of vertices of :attr:`hull_vertices`, at least 8.
            color: red, green, blue from 0 to 1.
            path: file the mesh came from, used to name it in messages.

        Raises:
            TypeError: an argument has another type.
            ValueError: no vertices or triangles, a coordinate that is not finite, or an index out of range.
        """
        if others:
            refuse_options(Mesh.__init__, others)
        if path is not None and not isinstance(path, str | os.PathLike):
            raise TypeError(f"path of a mesh must be a string or a path, not {path!r}")
        self.path = None if path is None else Path(path)
        points = _numbers(vertices, f"{self}: vertices")
        faces = _numbers(indices, f"{self}: indices")
        if points.size == 0 or points.ndim > 2 or points.size % 3 or (points.ndim == 2 and points.shape[1] != 3):
            raise ValueError(f"{self}: vertices must have the shape [n, 3] with n > 0, not {list(points.shape)}")
        points = points.reshape(-1, 3)
        fine = np.all(np.abs(points) <= LARGEST, axis=1)
        if not fine.all():
            row = int(np.flatnonzero(~fine)[0])
            raise ValueError(
                f"{self}: vertex {row} is {points[row].tolist()}; coordinates must be finite and below {LARGEST:g} [m]"
            )
        if faces.size == 0 or faces.size % 3:
            raise ValueError(
                f"{self}: indices must contain three numbers per triangle, and at least one triangle, not {faces.size}"
            )
        if not np.array_equal(faces, np.trunc(faces)) or np.abs(faces).max() > 2**31:
            raise ValueError(f"{self}: indices must be whole numbers that name vertices")
        faces = faces.astype(np.int64).reshape(-1)
        if faces.min() < 0 or faces.max() >= len(points):
            bad = faces[(faces < 0) | (faces >= len(points))][0]
            raise ValueError(
                f"{self}: index {bad} is out of range; the mesh has {len(points)} vertices, counted from 0"
            )
        max_hull_vertices = as_count(max_hull_vertices, f"{self}: max_hull_vertices", LEAST_HULL_VERTICES)
        self.vertices = _readonly(points)
        self.indices = _readonly(faces.astype(np.int32))
        self.is_solid = as_flag(is_solid, f"{self}: is_solid")
        self.max_hull_vertices = max_hull_vertices
        self.color = None if color is None else as_vector(color, 3, f"{self}: color")
        if as_flag(compute_inertia, f"{self}: compute_inertia"):
            self._volume_properties  # noqa: B018

    def finalize(self, device=None, *, requires_grad: bool = False, bvh_constructor: str | None = None) -> int:
        """A Warp mesh in single precision, for queries in the user's kernels (``wp.mesh_query_ray``, ...). It is made once for each device
        and choice of arguments, and lives as long as this object.

        Args:
            device: Warp device; None: the current one.
            requires_grad: whether points and velocities have gradients.
            bvh_constructor: see :class:`warp.Mesh`; None: Warp's default.

        Returns:
            The ``id`` of the :class:`warp.Mesh`.
        """
        device, requires_grad = wp.get_device(device), as_flag(requires_grad, f"{self}: requires_grad")
        key = (device.alias, requires_grad, bvh_constructor)
        if key not in self._finalized:
            points = wp.array(self.vertices, dtype=wp.vec3, device=device, requires_grad=requires_grad)
            indices = wp.array(self.indices, dtype=wp.int32, device=device)
            self._finalized[key] = wp.Mesh(points, indices, wp.zeros_like(points), bvh_constructor=bvh_constructor)
        return self._finalized[key].id

    @functools.cached_property
    def _finalized(self) -> dict[tuple, wp.Mesh]:
        return {}

    def __str__(self) -> str:
        return f"mesh '{self.path}'" if self.path is not None else "mesh"

    def __repr__(self) -> str:
        return f"<{self}: {len(self.vertices)} vertices, {len(self.indices) // 3} triangles>"

    # Copies of a builder share its meshes, so that a deep copy of ten thousand robots does not copy ten thousand meshes.
    def __deepcopy__(self, memo) -> Mesh:
        return self

    @functools.cached_property
    def is_watertight(self) -> bool:
        """Whether the surface is closed and its triangles agree on what is inside, once coinciding vertices merge.

        The test is the one that volume integrals need: every edge is run through as often one way as the other.
        """
        size = np.max(np.ptp(self.vertices, axis=0))
        if size == 0.0:
            return False
        grid = np.round((self.vertices - self.vertices.min(axis=0)) / (MERGE_TOLERANCE * size))
        _, merged = np.unique(grid, axis=0, return_inverse=True)
        faces = merged.reshape(-1)[self.indices.reshape(-1, 3)].astype(np.int64)
        start, end = faces.reshape(-1), np.roll(faces, -1, axis=1).reshape(-1)
        one_way, edge = np.sign(end - start), np.minimum(start, end) * len(grid) + np.maximum(start, end)
        _, edge = np.unique(edge, return_inverse=True)
        return not np.any(np.bincount(edge.reshape(-1), weights=one_way))

    @functools.cached_property
    def has_area(self) -> bool:
        """Whether some triangle has an area, beyond rounding errors of its corners."""
        size = np.max(np.ptp(self.vertices, axis=0))
        return bool(np.any(_areas(self.vertices[self.indices.reshape(-1, 3)]) > 1.0e-12 * size**2))

    @functools.cached_property
    def is_line(self) -> bool:
        """Whether all vertices lie on a line, or are one point, beyond rounding errors."""
        sizes = np.linalg.svd(self.vertices - self.vertices.mean(axis=0), compute_uv=False)
        return len(sizes) < 2 or bool(sizes[1] <= 1.0e-12 * max(sizes[0], np.finfo(float).tiny))

    @functools.cached_property
    def _volume_properties(self) -> tuple[float, np.ndarray, np.ndarray]:
        if not self.is_solid:
            return self._surface_properties()
        faces = _hull_triangles(self._hull)
        hull = None if faces is None else _solid_properties(self._hull[faces])
        if hull is None or hull[0] <= 0.0:
            warnings.warn(f"{_owner.get()}{self} is flat and encloses no volume; its mass is zero", stacklevel=4)
            return 0.0, _readonly(self.vertices.mean(axis=0)), _readonly(np.zeros((3, 3)))
        if self.is_watertight:
            solid = _solid_properties(self.vertices[self.indices.reshape(-1, 3)])
            if CLOSED_VOLUME_FRACTION * hull[0] <= solid[0] <= MOST_VOLUME_FRACTION * hull[0]:
                return solid
            twice = solid[0] > hull[0]
            why = "encloses more than its convex hull, with repeated triangles" if twice else "encloses no volume"
        else:
            why = "is not closed, or its triangles have inconsistent orientations"
        warnings.warn(
            f"{_owner.get()}{self} {why}; mass, centre of mass and inertia are those of its convex hull. Repair the mesh or give the "
            "body its inertia",
            stacklevel=4,
        )
        return hull

    def _surface_properties(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Area, centre and inertia of the surface, with one kilogram per square metre."""
        corners = self.vertices[self.indices.reshape(-1, 3)]
        area = _areas(corners)
        total = float(area.sum())
        if total == 0.0:
            warnings.warn(f"{_owner.get()}{self} has no area; its mass is zero", stacklevel=5)
            return 0.0, _readonly(self.vertices.mean(axis=0)), _readonly(np.zeros((3, 3)))
        com = np.einsum("t,tij->j", area, corners) / (3.0 * total)
        corners = corners - com
        middle = corners.sum(axis=1)
        # Integral of x x^T over a triangle: area / 12 (sum of v v^T + s s^T) with s the sum of its corners.
        second = np.einsum("t,tia,tib->ab", area, corners, corners) + np.einsum("t,ta,tb->ab", area, middle, middle)
        second /= 12.0
        return total, _readonly(com), _readonly(np.trace(second) * np.eye(3) - second)

    @property
    def volume(self) -> float:
        """Enclosed volume [m^3] (area [m^2] where ``is_solid`` is false), which is the mass at density one."""
        return self._volume_properties[0]

    @property
    def com(self) -> np.ndarray:
        """Centre of mass [m], shape ``[3]``."""
        return self._volume_properties[1]

    @property
    def inertia(self) -> np.ndarray:
        """Inertia about the centre of mass at density one, ``[3, 3]``: kg m^2 for one kilogram a cubic metre."""
        return self._volume_properties[2]

    @functools.cached_property
    def _hull(self) -> np.ndarray:
        """All vertices of the convex hull, sorted."""
        return _hull_points(self.vertices)

    @functools.cached_property
    def _reduced_hull(self) -> tuple[np.ndarray, float]:
        points, error = _reduce_hull(self._hull, self.max_hull_vertices)
        return _readonly(points), error

    @property
    def hull_vertices(self) -> np.ndarray:
        """Vertices of a convex hull with at most ``max_hull_vertices`` vertices [m], ``[k, 3]``.

        The vertices are a choice from those of the exact hull, so the reduced hull lies inside it; :attr:`hull_error`
        says how far inside. The choice starts with the extremes along the axes and then always takes the vertex that
        sticks out farthest (ties: the smallest coordinates), which depends on the point set alone, not on their order.
        """
        return self._reduced_hull[0]

    @property
    def hull_error(self) -> float:
        """How far vertices of the exact hull stand out of the reduced one: largest distance to a face's plane [m]."""
        return self._reduced_hull[1]

    @functools.cached_property
    def hull_mesh(self) -> Mesh:
        """The exact convex hull as a closed mesh.

        Raises:
            ValueError: all vertices lie in one plane.
        """
        faces = _hull_triangles(self._hull)
        if faces is None:
            raise ValueError(
                f"{self} is flat; its convex hull is not a solid, and has no mass. Give it a thickness, or give the shape the density 0 and"
                " its body a mass"
            )
        return Mesh(self._hull, faces, compute_inertia=False, is_solid=self.is_solid, path=self.path)

    @staticmethod
    def from_file(path: str | os.PathLike, *, scale=1.0, max_hull_vertices: int = MAX_HULL_VERTICES) -> Mesh:
        """Loads an STL, OBJ, DAE, PLY, OFF or glTF file.

        All objects of the file become one mesh, of the mean colour of their materials. The same unchanged file is read once
        and shared. For the unit and axes of COLLADA files see :func:`load_triangles`.

        Args:
            path: the file.
            scale: one factor, or one for each axis; a negative product mirrors and turns the triangles over.
            max_hull_vertices: see :class:`Mesh`.

        Raises:
            FileNotFoundError: the file does not exist.
            ValueError: the file cannot be read as a mesh or contains no triangles, or a scale is zero or not finite.
        """
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"path of a mesh must be a string or a path, not {path!r}")
        path = Path(path)
        if not os.path.isfile(path):
            raise FileNotFoundError(f"mesh file '{path}' does not exist")
        what = f"mesh '{path}': scale"
        factors = (as_number(scale, what),) * 3 if np.isscalar(scale) else as_vector(scale, 3, what)
        if 0.0 in factors:
            raise ValueError(f"{what} {factors} must not be zero")
        max_hull_vertices = as_count(max_hull_vertices, f"mesh '{path}': max_hull_vertices", LEAST_HULL_VERTICES)
        stat = path.stat()
        return _cached_mesh(str(path.resolve()), stat.st_mtime_ns, stat.st_size, factors, max_hull_vertices)


class Heightfield:
    """Terrain as a grid of heights. It cannot move.

    Heights are ``min_z + data * (max_z - min_z)`` with ``data`` from 0 to 1. Row ``r`` lies at
    ``y = -hy + 2 hy r / (nrow - 1)``, column ``c`` at ``x = -hx + 2 hx c / (ncol - 1)``.

    Attributes:
        data: normalised heights, ``[nrow, ncol]``.
        nrow, ncol: number of rows and columns.
        hx, hy: half the extent along x and y [m].
        min_z, max_z: heights of ``data`` 0 and 1 [m].
    """

    def __init__(
        self, data, nrow: int, ncol: int, hx: float = 1.0, hy: float = 1.0, min_z=None, max_z=None, **others: Never
    ):
        """Creates a heightfield. If ``min_z`` and ``max_z`` are given, the heights are scaled to this range.

        Raises:
            ValueError: fewer than 2 rows or columns, a wrong number of heights, heights that are not finite, an extent
                that is not positive, ``max_z < min_z``, or only one of ``min_z`` and ``max_z``.
        """
        if others:
            refuse_options(Heightfield.__init__, others)
        nrow, ncol = as_count(nrow, "heightfield: nrow", 2), as_count(ncol, "heightfield: ncol", 2)
        heights = _numbers(data, "heightfield: data")
        hx, hy = as_number(hx, "heightfield: hx"), as_number(hy, "heightfield: hy")
        if heights.size != nrow * ncol:
            raise ValueError(f"heightfield: {heights.size} heights for {nrow} rows of {ncol} columns")
        if not np.all(np.abs(heights) <= LARGEST):
            raise ValueError(f"heightfield: heights must be finite and below {LARGEST:g} [m]")
        if not (hx > 0.0 and hy > 0.0):
            raise ValueError(f"heightfield: half extents hx {hx} and hy {hy} must be positive")
        if (min_z is None) != (max_z is None):
            raise ValueError("heightfield: give both min_z and max_z, or neither")
        low, high = float(heights.min()), float(heights.max())
        if min_z is not None:
            min_z, max_z = as_number(min_z, "heightfield: min_z"), as_number(max_z, "heightfield: max_z")
            if min_z > max_z:
                raise ValueError(f"heightfield: min_z {min_z} must not be above max_z {max_z}")
        self.data = _readonly(((heights - low) / (high - low if high > low else 1.0)).reshape(nrow, ncol))
        self.nrow, self.ncol = nrow, ncol
        self.hx, self.hy = hx, hy
        self.min_z = low if min_z is None else min_z
        self.max_z = high if max_z is None else max_z

    def __deepcopy__(self, memo) -> Heightfield:
        return self


def load_triangles(path: str | os.PathLike) -> tuple[np.ndarray, np.ndarray]:
    """Vertices ``[n, 3]`` [m] and triangles ``[m, 3]`` of all objects of a mesh file.

    A COLLADA file's ``<unit>`` is applied, as RViz and Gazebo do (pinocchio reads the plain numbers). Its ``<up_axis>``
    is not, as in RViz and pinocchio: the axes of the file are the axes of the link. All other formats have no unit and
    are in metres.

    Raises:
        ValueError: the file cannot be read, contains no triangles, or is a COLLADA file with XML entities.
    """
    return _load(Path(path))[:2]


def _load_scene(path: Path):
    """The scene of a mesh file. Of OBJ files, triangles cover concave polygons once, and lines may begin with blanks."""
    import trimesh

    if path.suffix.lower() == ".obj":
        given = path.read_text(errors="replace")
        plain = plain_lines(given)
        text = without_concave_polygons(plain) or plain
        if text != given:
            resolver = trimesh.resolvers.FilePathResolver(str(path))
            return trimesh.load_scene(io.StringIO(text), file_type="obj", resolver=resolver, process=False)
    return trimesh.load_scene(str(path), process=False)


def _load(path: Path):
    """The result of :func:`load_triangles`, and the scene of the file."""
    factor = 1.0
    try:
        if path.suffix.lower() == ".dae":
            text = path.read_bytes()
            if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
                raise ValueError("it declares XML entities or a document type, which are not allowed; remove them")
            unit = re.search(rb"<unit\b[^>]*\bmeter\s*=\s*[\"']([^\"']+)[\"']", text)
            factor = float(unit.group(1)) if unit else 1.0
            if not (np.isfinite(factor) and factor > 0.0):
                raise ValueError(f"its unit of {factor} metres must be above 0")
        scene = _load_scene(path)
        mesh = scene.to_mesh()
    except Exception as error:
        raise ValueError(f"mesh '{path}' cannot be read: {error}") from error
    faces = getattr(mesh, "faces", None)
    if faces is None or len(faces) == 0:
        raise ValueError(f"mesh '{path}' contains no triangles")
    return factor * np.asarray(mesh.vertices, dtype=np.float64), np.asarray(faces, dtype=np.int64), scene


@functools.lru_cache(maxsize=256)
def _cached_mesh(path: str, mtime: int, size: int, scale: tuple, max_hull_vertices: int) -> Mesh:
    # mtime and size are only part of the cache key, so that an edited file is read again.
    del mtime, size
    vertices, faces, scene = _load(Path(path))
    if np.prod(scale) < 0.0:
        faces = faces[:, ::-1]
    color = mean_color(scene)
    return Mesh(
        vertices * scale, faces, compute_inertia=False, max_hull_vertices=max_hull_vertices, color=color, path=path
    )


def _solid_properties(triangles) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume, centre and inertia at density one of the solid inside closed ``triangles`` ``[m, 3, 3]``."""
    from trimesh.triangles import mass_properties

    # Volumes are computed about a point near the solid: they are differences, which lose digits far from the origin.
    triangles = np.asarray(triangles, dtype=np.float64)
    middle = 0.5 * (triangles.min(axis=(0, 1)) + triangles.max(axis=(0, 1)))
    # A surface without volume has no centre; callers do not use the centre then.
    with np.errstate(invalid="ignore", divide="ignore"):
        properties = mass_properties(triangles - middle, density=1.0)
    sign = 1.0 if properties.mass > 0.0 else -1.0
    inertia = sign * np.asarray(properties.inertia, dtype=np.float64)
    com = middle + np.asarray(properties.center_mass, dtype=np.float64)
    return sign * float(properties.mass), _readonly(com), _readonly(0.5 * (inertia + inertia.T))


def _span(points: np.ndarray) -> np.ndarray:
    """Coordinates ``[n, rank]`` of points in the line, plane or space that they span."""
    centred = points - points.mean(axis=0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    # Coordinates have 16 digits; extents below a billionth of the size are rounding errors.
    return centred @ axes[: max(1, int(np.sum(sizes > 1.0e-9 * sizes[0])))].T


def _hull_points(points: np.ndarray) -> np.ndarray:
    """Vertices of the convex hull of ``points``, sorted by x, y, z; also for points in a plane or on a line."""
    from scipy.spatial import ConvexHull

    points = np.unique(points, axis=0)
    if len(points) <= 2:
        return points
    span = _span(points)
    if span.shape[1] == 1:
        chosen = np.array([np.argmin(span), np.argmax(span)])
    else:
        chosen = ConvexHull(points if span.shape[1] == 3 else span).vertices
    return points[np.sort(chosen)]


def _areas(corners: np.ndarray) -> np.ndarray:
    """Areas of triangles from their corners, ``[m, 3, 3]``."""
    return 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=-1)


def _hull_triangles(points: np.ndarray) -> np.ndarray | None:
    """Outward triangles ``[m, 3]`` of the convex hull of ``points``, or ``None`` for a flat hull."""
    from scipy.spatial import ConvexHull, QhullError

    if len(points) < 4:
        return None
    try:
        hull = ConvexHull(points)
    except QhullError:
        return None
    faces = hull.simplices.copy()
    corners = points[faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.sum(normal * hull.equations[:, :3], axis=1) < 0.0
    faces[inward] = faces[inward][:, ::-1]
    return faces


def _reduce_hull(points: np.ndarray, count: int) -> tuple[np.ndarray, float]:
    """At most ``count`` of the hull vertices, in the given order, and how far the other points are outside of the hull of these."""
    from scipy.spatial import ConvexHull

    if len(points) <= count:
        return points, 0.0
    extremes = np.concatenate([points.argmin(axis=0), points.argmax(axis=0)])
    chosen = list(dict.fromkeys(extremes.tolist()))
    span = _span(points)
    while len(chosen) <= span.shape[1] or _span(points[chosen]).shape[1] < span.shape[1]:
        # The extremes are coplanar or collinear: adds the points farthest from their plane or line.
        known = span[chosen] - span[chosen[0]]
        beside = (span - span[chosen[0]]) @ (np.eye(span.shape[1]) - np.linalg.pinv(known) @ known)
        chosen.append(int(np.argmax(np.linalg.norm(beside, axis=1))))
    while True:
        hull = ConvexHull(span[chosen])
        outside = np.max(span @ hull.equations[:, :-1].T + hull.equations[:, -1], axis=1)
        outside[chosen] = 0.0
        worst = int(np.argmax(outside))
        if len(chosen) >= count or outside[worst] <= 0.0:
            return points[np.sort(chosen)], float(max(outside[worst], 0.0))
        chosen.append(worst)
