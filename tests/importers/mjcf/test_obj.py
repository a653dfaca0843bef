"""OBJ files: every way to write a mesh gives the same triangles, and wrong files are refused."""

import re

import numpy as np
import pytest

from newton_like.geometry.polygons import triangulate
from newton_like.importers.mjcf.obj import load_obj


def polygons(rng) -> tuple[np.ndarray, list[list[int]]]:
    """Plane polygons of 3 to 7 corners, with corners that point inwards in some, one after the other: points and corners."""
    points, faces = [], []
    for n in rng.permutation([3, 4, 5, 6, 7] * 4):
        angle = np.sort((np.arange(n) + rng.uniform(0.1, 0.9, n)) * 2.0 * np.pi / n)
        frame = np.linalg.qr(rng.normal(size=(3, 3)))[0][:2]
        faces.append([*range(len(points), len(points) + n)])
        points += list((rng.uniform(0.3, 1.0, n) * [np.cos(angle), np.sin(angle)]).T @ frame + rng.normal(size=3))
    return np.array(points), faces


def written(points, faces, way: str) -> str:
    """The file, in one of several ways."""
    lines, done = ["# a mesh", "o part", "vn 0 0 1", "vt 0 0"], 0
    for face in faces:
        lines += [f"v {' '.join(map(repr, p.tolist()))}" for p in points[done : face[-1] + 1]]
        done = face[-1] + 1
        lines += ["f " + " ".join(str(i - done if way == "backwards" else i + 1) for i in face)]
    if way == "colours":
        lines = [f"{line} 0.1 0.2 0.3" if line.startswith("v ") else line for line in lines]
    if way == "references":
        lines = [re.sub(r"(?<=\d)\b", "/1/1", line) if line.startswith("f") else line for line in lines]
    if way == "blanks":
        lines = [" " + line.replace(" ", "\t ") + " " for line in lines]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("way", ["plain", "colours", "references", "blanks", "backwards"])
def test_polygons_are_cut_in_the_order_of_the_file(rng, tmp_path, way):
    """The area vectors of the triangles of a polygon, which are half the sums of cross products, add up to its own."""
    points, faces = polygons(rng)
    (tmp_path / "m.obj").write_text(written(points, faces, way))
    vertices, triangles = load_obj(tmp_path / "m.obj")
    np.testing.assert_array_equal(vertices, points)
    assert len(triangles) == sum(len(face) - 2 for face in faces)
    begin = 0
    for face in faces:
        own = triangles[begin : begin + len(face) - 2]
        begin += len(own)
        assert set(own.ravel()) <= set(face)
        a, b, c = vertices[own].swapaxes(0, 1)
        corners = points[face]
        wanted = np.cross(corners, np.roll(corners, -1, axis=0)).sum(axis=0)
        np.testing.assert_allclose(np.cross(b - a, c - a).sum(axis=0), wanted, atol=1e-12)


def test_quads_are_cut_along_their_shorter_diagonal(tmp_path):
    corners = "v 0 0 0\nv 2 0 0\nv 3 1 0\nv 1 1 0\n"  # from the second to the fourth corner it is shorter
    (tmp_path / "m.obj").write_text(f"{corners}f 1 2 3 4\nf 2 3 4 1\nf 1 2 3\n")
    assert load_obj(tmp_path / "m.obj")[1].tolist() == [[0, 1, 3], [1, 2, 3], [1, 2, 3], [1, 3, 0], [0, 1, 2]]


def test_polygons_are_cut_alone_as_together(rng):
    """Polygons with the same number of corners are cut together; the others do not change the triangles of one."""
    angle = np.sort((np.arange(9) + rng.uniform(0.1, 0.9, (30, 9))) * 2.0 * np.pi / 9, axis=1)
    flat = rng.uniform(0.2, 1.0, (30, 9))[..., None] * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=2)
    together = triangulate(flat)
    np.testing.assert_array_equal(together, np.concatenate([triangulate(one[None]) for one in flat]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("v 0 0 0\nv 1 0 0\nv 0 1 0\n", "triangles"),
        ("f 1 2 3\n", "triangles"),
        ("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 4\n", "corner"),
        ("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 0 1 2\nv 1 1 1\n", "corner"),
        ("v 0 0 0\nv 1 0 0\nv 0 1 0\nf -4 -1 -2\nv 1 1 1\n", "corner"),
        ("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2\nf 1 2 3\n", "3 corners"),
        ("v 0 0 0\nv 1 0 0\nv 0 1 0\nf\nf 1 2 3\n", "3 corners"),
        ("v 0 0 0\nv 1 0\nv 0 1 0 0\nf 1 2 3\n", "3 coordinates"),
        ("v 0 0 0\nv 1 x 0\nv 0 1 0\nf 1 2 3\n", "could not convert"),
        ("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 x\n", "invalid literal"),
    ],
)
def test_wrong_files_are_refused(tmp_path, text, message):
    (tmp_path / "m.obj").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_obj(tmp_path / "m.obj")
