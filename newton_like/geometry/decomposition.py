"""Parts of triangle meshes: connected parts and convex parts, and boxes and spheres around points."""

from __future__ import annotations

import functools
import inspect
from collections import Counter

import numpy as np

from newton_like.geometry.mesh import Mesh
from newton_like.geometry.transforms import quat_from_matrix, transform

QUICK = {"threshold": 0.05, "mcts_nodes": 20, "mcts_iterations": 60, "mcts_max_depth": 2}
"""Settings of CoACD where none are given: a shallower search than CoACD's own, which takes a fraction of its time."""

INSTALL = "pip install 'newton-like[decomposition]'"
"""The command that installs CoACD."""


@functools.lru_cache(maxsize=256)
def connected_parts(mesh: Mesh) -> tuple[Mesh, ...]:
    """Connected parts of a mesh. Vertices at the same position count as one. A mesh of one part is returned as it is."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _, merged = np.unique(mesh.vertices, axis=0, return_inverse=True)
    faces = merged.reshape(-1)[mesh.indices.reshape(-1, 3)]
    total = int(merged.max()) + 1
    start, end = faces.reshape(-1), np.roll(faces, -1, axis=1).reshape(-1)
    graph = coo_array((np.ones(len(start)), (start, end)), shape=(total, total))
    _, part = connected_components(graph, directed=False)
    of_face = part[faces[:, 0]]
    counts = Counter(of_face.tolist())
    if len(counts) == 1:
        return (mesh,)
    triangles = mesh.indices.reshape(-1, 3)
    parts = []
    for label in counts:
        used, indices = np.unique(triangles[of_face == label], return_inverse=True)
        parts.append(_part_of(mesh, mesh.vertices[used], indices.reshape(-1, 3)))
    return tuple(parts)


def convex_parts(mesh: Mesh, **settings) -> tuple[Mesh, ...]:
    """Convex meshes whose union is nearly `mesh`: the approximate convex decomposition of each connected part.

    CoACD computes them (Wei, Liu, Ling and Su 2022, "Approximate convex decomposition for 3D meshes with collision-aware concavity and tree
    search"). The result depends on the mesh and the settings alone. A mesh that was decomposed before with the same settings gives the
    same objects.

    Args:
        mesh: the mesh [m]. Surfaces with holes are closed first by CoACD.
        settings: keyword arguments of ``coacd.run_coacd``, such as ``threshold`` (the concavity that a part may have, from 0.01 for many
            parts to 1), ``max_convex_hull`` and ``seed``. Others are those of :data:`QUICK`.

    Returns:
        At least one mesh, each convex, in the frame of `mesh`.

    Raises:
        ModuleNotFoundError: CoACD is not installed.
        TypeError: an unknown setting.
        ValueError: CoACD finds no parts.
    """
    coacd = _coacd()
    known = [name for name in inspect.signature(coacd.run_coacd).parameters if name != "mesh"]
    for name in settings:
        if name not in known:
            raise TypeError(f"convex decomposition: {name!r} is no setting of CoACD; it has {', '.join(known)}")
    return _decomposed(mesh, tuple(sorted({**QUICK, **settings}.items())))


def bounding_box(points) -> tuple[np.ndarray, np.ndarray]:
    """A box of nearly the smallest volume around points (computed by trimesh).

    Args:
        points: ``[n, 3]`` [m].

    Returns:
        Its pose (7 numbers) and half extents ``[3]`` [m].

    Raises:
        ValueError: the points lie in a plane.
    """
    import trimesh

    points = np.asarray(points, dtype=np.float64)
    size = np.ptp(points, axis=0).max()
    if np.linalg.matrix_rank(points - points.mean(axis=0), tol=1.0e-9 * size * len(points)) < 3:
        raise ValueError("the points lie in a plane; a box around them is not a solid")
    to_box, _ = trimesh.bounds.oriented_bounds(points)
    turn = to_box[:3, :3]
    inside = points @ turn.T
    low, high = inside.min(axis=0), inside.max(axis=0)
    return transform(0.5 * (low + high) @ turn, quat_from_matrix(turn.T)), 0.5 * (high - low)


def bounding_sphere(points) -> tuple[np.ndarray, float]:
    """The smallest sphere around points (computed by trimesh), enlarged by its rounding errors.

    Args:
        points: ``[n, 3]`` [m].

    Returns:
        Its centre ``[3]`` and radius [m].
    """
    import trimesh

    points = np.asarray(points, dtype=np.float64)
    center, _ = trimesh.nsphere.minimum_nsphere(points)
    return center, float(np.linalg.norm(points - center, axis=1).max())


def _coacd():
    try:
        import coacd
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"convex decomposition needs the package coacd: {INSTALL}") from error
    coacd.set_log_level("error")
    return coacd


@functools.lru_cache(maxsize=256)
def _decomposed(mesh: Mesh, settings: tuple) -> tuple[Mesh, ...]:
    coacd = _coacd()
    parts = []
    for piece in connected_parts(mesh):
        try:
            found = coacd.run_coacd(coacd.Mesh(piece.vertices, piece.indices.reshape(-1, 3)), **dict(settings))
        except Exception as error:  # of the library, whose kinds are not documented
            raise ValueError(f"{mesh}: CoACD failed: {error}") from error
        parts += [_part_of(mesh, vertices, faces) for vertices, faces in found]
    if not parts:
        raise ValueError(f"{mesh}: CoACD found no convex parts; repair the mesh")
    return tuple(parts)


def _part_of(mesh: Mesh, vertices, faces) -> Mesh:
    settings = {"compute_inertia": False, "is_solid": mesh.is_solid, "max_hull_vertices": mesh.max_hull_vertices}
    return Mesh(vertices, faces, **settings, color=mesh.color, path=mesh.path)
