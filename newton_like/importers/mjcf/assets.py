"""Meshes and height fields of MJCF: from files or from numbers in the XML, with MuJoCo's four ways of giving a mesh mass."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from newton_like.geometry.mesh import Heightfield, Mesh, load_triangles
from newton_like.geometry.transforms import quat_to_matrix
from newton_like.importers.mjcf.obj import load_obj
from newton_like.importers.mjcf.pose import unit
from newton_like.importers.mjcf.records import Mjcf
from newton_like.importers.mjcf.source import floats, whole, words
from newton_like.importers.shared import shared_mesh
from newton_like.importers.xml_source import MissingFileError, XmlElement

MODES = ("legacy", "exact", "convex", "shell")
"""Ways to compute the mass of a mesh, see :func:`mesh_mass`."""

MAX_GRID = 2**24
"""Largest number of heights of a height field."""

LEAST_VOLUME = 1.0e-15
"""Smallest volume [m^3] of a mesh with mass. MuJoCo also rejects smaller volumes."""


class Assets:
    """Meshes and height fields of a model, loaded on demand."""

    def __init__(self, model: Mjcf, hull_vertices: int):
        self._model, self._hull_vertices = model, hull_vertices
        self._meshes: dict[str, Mesh] = {}
        self._masses: dict[str, tuple] = {}
        self._hfields: dict[str, tuple[Heightfield, tuple]] = {}

    def mesh(self, name: str) -> Mesh:
        """The mesh, in metres. Raises ImportFileError for a missing or broken file, or numbers that are not a mesh."""
        if name not in self._meshes:
            element = self._model.meshes[name]
            try:
                vertices, faces = self._triangles(element)
                vertices = _placed(element, vertices)
                scale = np.prod(np.sign(floats(element, "scale", 3, (1.0, 1.0, 1.0), least=3)))
                if scale == 0.0:
                    raise ValueError("its scale must not be zero")
                if faces is None:
                    faces = Mesh(vertices, [0, 0, 0], compute_inertia=False).hull_mesh
                    vertices, faces = faces.vertices, faces.indices.reshape(-1, 3)
                elif scale < 0.0:
                    faces = faces[:, ::-1]
                most = whole(element, "maxhullvert", -1)
                most = self._hull_vertices if most < 8 else min(most, self._hull_vertices)
                path = element.get("file")
                self._meshes[name] = shared_mesh(vertices, faces, most, path or f"{name} in the XML")
            except (OSError, ValueError, TypeError) as error:
                if hasattr(error, "args") and str(error).startswith(f"{element.file}, line"):
                    raise
                raise element.error(f"the mesh {name!r} cannot be used: {error}") from error
        return self._meshes[name]

    def is_missing(self, name: str) -> bool:
        """Whether a mesh has a file that is in none of the allowed folders."""
        try:
            if "file" in self._model.meshes[name].attributes:
                self._path(self._model.meshes[name])
        except MissingFileError:
            return True
        return False

    def mesh_mass(self, name: str) -> tuple[float, np.ndarray, np.ndarray]:
        """Volume (area of a shell), centre and inertia about it, of a mesh with density one.

        Raises:
            ImportFileError: the mesh encloses no volume.
        """
        if name not in self._masses:
            element = self._model.meshes[name]
            mode = words(element, "inertia", MODES, "legacy")
            mesh = self.mesh(name)
            try:
                if mode == "convex":
                    mesh = mesh.hull_mesh
                self._masses[name] = mesh_mass(mesh.vertices, mesh.indices.reshape(-1, 3), mode)
            except ValueError as error:
                raise element.error(f"the mesh {name!r} {error}") from error
        return self._masses[name]

    def hfield(self, name: str) -> Heightfield:
        """The height field; its lowest point is at z = 0.

        Raises:
            ImportFileError: a missing or broken file, or numbers that are not a height field.
        """
        if name not in self._hfields:
            element = self._model.hfields[name]
            radius_x, radius_y, height, base = element.numbers("size", 4)
            if min(radius_x, radius_y, height) <= 0.0 or base < 0.0:
                raise element.error(f"size={element.attributes['size']!r} must be above 0 [m]")
            try:
                data = self._heights(element)
                low, high = float(data.min()), float(data.max())
                flat = Heightfield(
                    data, *data.shape, radius_x, radius_y, min_z=0.0, max_z=height if high > low else 0.0
                )
            except (OSError, ValueError, TypeError) as error:
                if str(error).startswith(f"{element.file}, line"):
                    raise
                raise element.error(f"the height field {name!r} cannot be used: {error}") from error
            self._hfields[name] = flat
        return self._hfields[name]

    def _path(self, element: XmlElement) -> Path:
        name = element.need_text("file").replace("\\", "/")
        compiler = self._model.compiler
        if compiler.strippath:
            name = name.rsplit("/", 1)[-1]
        return self._model.source.find(name, compiler.meshdir, element)

    def _triangles(self, element: XmlElement) -> tuple[np.ndarray, np.ndarray | None]:
        """Vertices as given, and triangles, or ``None`` for those of the convex hull."""
        if "builtin" in element.attributes:
            raise element.error("builtin meshes are not supported; write its vertices and faces, or use a file")
        if "file" in element.attributes:
            path = self._path(element)
            return {".msh": _load_msh, ".obj": load_obj}.get(path.suffix.lower(), load_triangles)(path)
        vertices = _array(element, "vertex", 3)
        if "face" not in element.attributes:
            return vertices, None
        faces = _array(element, "face", 3)
        if np.any(faces != np.trunc(faces)) or faces.min() < 0 or faces.max() >= len(vertices):
            raise element.error(
                f"face contains an index that is outside of the {len(vertices)} vertices, counted from 0"
            )
        return vertices, faces.astype(np.int64)

    def _heights(self, element: XmlElement) -> np.ndarray:
        rows, columns = whole(element, "nrow", 0, low=0), whole(element, "ncol", 0, low=0)
        if "file" not in element.attributes:
            if rows < 2 or columns < 2 or rows * columns > MAX_GRID:
                raise element.error(
                    f"nrow {rows} and ncol {columns} must be at least 2, and make at most {MAX_GRID} heights"
                )
            if "elevation" not in element.attributes:
                return np.zeros((rows, columns))
            data = np.array(element.numbers("elevation", rows * columns))
            # The first line of the text is the row with the largest y, as in a picture.
            return data.reshape(rows, columns)[::-1]
        path = self._path(element)
        if path.suffix.lower() == ".png":
            return _load_png(path)
        raw = path.read_bytes()
        rows, columns = (int(n) for n in np.frombuffer(raw[:8].ljust(8, b"\0"), dtype="<i4"))
        if not (2 <= rows <= MAX_GRID and 2 <= columns <= MAX_GRID and len(raw) == 8 + 4 * rows * columns):
            raise ValueError(
                f"'{path}' is not a height field: it must have the numbers of rows and columns, and the heights"
            )
        return np.frombuffer(raw[8:], dtype="<f4").reshape(rows, columns).astype(np.float64)


def mesh_mass(vertices: np.ndarray, faces: np.ndarray, mode: str) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume, centre and inertia at density one of a mesh, computed as in MuJoCo.

    A mesh is a sum of tetrahedra between its triangles and an interior point. ``exact`` and ``convex`` (of the hull) add signed
    volumes, which is correct for closed surfaces. ``legacy`` adds absolute volumes, so that open and misoriented surfaces
    have mass, and surfaces that are not star-shaped have too much. The interior point is the centre of the surface for the
    centre of mass, and the centre of mass for volume and inertia. ``shell`` distributes the mass over the surface.

    Raises:
        ValueError: the volume is zero or negative.
    """
    corners = vertices[faces]
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = 0.5 * np.linalg.norm(cross, axis=1)
    total = float(area.sum())
    if total <= 0.0:
        raise ValueError("has no area; repair it")
    centre = area @ corners.mean(axis=1) / total
    if mode == "shell":
        volume, com = total, centre
        corners = corners - com
        second = _second(area / 12.0, corners)
    else:
        weights = _tetrahedra(corners - centre, mode)
        volume = float(weights.sum())
        if volume < LEAST_VOLUME:
            lack = "is turned inside out" if volume < -LEAST_VOLUME else "encloses no volume"
            raise ValueError(f"{lack}; repair it, or set its inertia to 'shell', 'legacy' or 'convex'")
        com = centre + weights @ (corners - centre).sum(axis=1) / (4.0 * volume)
        corners = corners - com
        weights = _tetrahedra(corners, mode)
        volume = float(weights.sum())
        second = _second(weights / 20.0, corners)
    inertia = np.trace(second) * np.eye(3) - second
    return volume, com, 0.5 * (inertia + inertia.T)


def _tetrahedra(corners: np.ndarray, mode: str) -> np.ndarray:
    """Volumes of the tetrahedra between triangles and the origin, signed unless the mode is ``legacy``."""
    volumes = np.einsum("ti,ti->t", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
    return np.abs(volumes) if mode == "legacy" else volumes


def _second(weights: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Sum of ``w (sum of v v^T + s s^T)`` with s the sum of the corners: the integral of x x^T.

    With w the area over 12 for triangles and the volume over 20 for tetrahedra with a corner at the origin.
    """
    middle = corners.sum(axis=1)
    return np.einsum("t,tia,tib->ab", weights, corners, corners) + np.einsum("t,ta,tb->ab", weights, middle, middle)


def _placed(element: XmlElement, vertices: np.ndarray) -> np.ndarray:
    """Vertices in the frame of ``refpos`` and ``refquat``, then scaled."""
    vertices = vertices - np.array(element.numbers("refpos", 3, (0.0, 0.0, 0.0)))
    w, *xyz = element.numbers("refquat", 4, (1.0, 0.0, 0.0, 0.0))
    rotation = quat_to_matrix(unit(element, "refquat", [*xyz, w]))
    return (vertices @ rotation) * np.array(floats(element, "scale", 3, (1.0, 1.0, 1.0), least=3))


def _array(element: XmlElement, name: str, width: int) -> np.ndarray:
    count = len(element.need_text(name).split())
    if count % width:
        raise element.error(f"{name} has {count} numbers; give {width} for each entry")
    return np.array(element.numbers(name, count)).reshape(-1, width)


def _load_msh(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo's own binary meshes: four counts, vertices, normals, texture coordinates, triangles."""
    raw = path.read_bytes()
    counts = np.frombuffer(raw[:16].ljust(16, b"\0"), dtype="<i4").astype(np.int64)
    vertices, normals, texture, faces = counts
    sizes = 12 * vertices, 12 * normals + 8 * texture, 12 * faces
    if counts.min() < 0 or vertices < 3 or faces < 1 or len(raw) != 16 + sum(sizes):
        raise ValueError(f"mesh '{path}' is not an MSH file: its length does not match its counts")
    points = np.frombuffer(raw[16 : 16 + sizes[0]], dtype="<f4").reshape(-1, 3)
    triangles = np.frombuffer(raw[len(raw) - sizes[2] :], dtype="<i4").reshape(-1, 3)
    return points.astype(np.float64), triangles.astype(np.int64)


def _load_png(path: Path) -> np.ndarray:
    try:
        from PIL import Image
    except ImportError:
        raise ValueError(f"'{path}' needs the package pillow to be read; install it") from None
    with Image.open(path) as image:
        if image.width * image.height > MAX_GRID:
            raise ValueError(f"'{path}' has more than {MAX_GRID} pixels; make it smaller")
        return np.asarray(image.convert("L"), dtype=np.float64)[::-1]
