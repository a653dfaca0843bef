"""Triangles of polygons: they cover the polygon once, whatever its shape."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from newton_like.geometry.mesh import Mesh
from newton_like.geometry.polygons import are_convex, triangulate, without_concave_polygons


def star(rng, n: int) -> np.ndarray:
    """A polygon around the origin ``[n, 2]``, counterclockwise."""
    angle = np.sort((np.arange(n) + rng.uniform(0.1, 0.9, n)) * 2.0 * np.pi / n)
    return rng.uniform(0.2, 1.0, n)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def area(points: np.ndarray) -> float:
    """The area of a polygon ``[n, 2]`` (shoelace formula)."""
    x, y = points.T
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def in_space(rng, flat: np.ndarray) -> np.ndarray:
    turn = Rotation.random(random_state=rng)
    return turn.apply(np.column_stack([flat, np.zeros(len(flat))])) + rng.normal(size=3)


@pytest.mark.parametrize("n", [4, 7, 30, 180])
def test_triangles_cover_the_polygon_once(rng, n):
    flat = star(rng, n)
    (triples,) = triangulate(in_space(rng, flat)[None])
    areas = [area(flat[list(triple)]) for triple in triples]
    assert len(triples) == n - 2
    assert min(areas) > -1e-12
    assert sum(areas) == pytest.approx(area(flat), rel=1e-12)


def test_convex_polygons_are_told_apart(rng):
    angle = np.sort(rng.uniform(0.0, 2.0 * np.pi, (20, 9)), axis=1)
    circles = [in_space(rng, np.stack([np.cos(a), np.sin(a)], axis=1)) for a in angle]
    assert are_convex(np.array(circles)).all()
    dented = np.array(circles)
    dented[:, 4] = 0.9 * dented.mean(axis=1) + 0.1 * dented[:, 0]
    assert not are_convex(dented).any()


def prism(flat: np.ndarray, height: float, negative: bool) -> str:
    """An OBJ file of a prism, with two polygons and a quad for each side; `negative`: references count backwards."""
    n = len(flat)
    lines = [f"v {x:.17g} {y:.17g} {z}" for z in (0.0, height) for x, y in flat]
    loops = [list(range(n))[::-1], [n + i for i in range(n)]]
    loops += [[i, (i + 1) % n, n + (i + 1) % n, n + i] for i in range(n)]
    lines += ["f " + " ".join(str(i - 2 * n if negative else i + 1) for i in loop) for loop in loops]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("negative", [False, True])
def test_a_prism_over_a_polygon_has_its_surface(rng, tmp_path, negative):
    """The areas of all triangles add up to the surface. The file begins its lines with blanks."""
    flat = star(rng, 12)
    path = tmp_path / "prism.obj"
    path.write_text(prism(flat, 0.5, negative).replace("v ", " v\t").replace("f ", "\tf "))
    mesh = Mesh.from_file(path)
    corners = mesh.vertices.astype(np.float64)[mesh.indices.reshape(-1, 3)]
    sizes = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    around = np.linalg.norm(flat - np.roll(flat, 1, axis=0), axis=1).sum()
    assert sizes.sum() == pytest.approx(2.0 * area(flat) + 0.5 * around, rel=1e-5)


def test_files_without_concave_polygons_stay_as_they_are(rng):
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert without_concave_polygons(prism(square, 1.0, False)) is None
    assert without_concave_polygons("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n") is None
    # the reader of the file refuses what does not exist
    assert without_concave_polygons("v 0 0 0\nf 1 2 3 4\n") is None
