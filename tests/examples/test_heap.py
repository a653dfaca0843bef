"""The heap of mixed bodies in a box."""

import numpy as np
import pytest
import warp as wp

from examples import heap


@pytest.fixture(autouse=True)
def _log_level(monkeypatch):
    # the examples make Warp quiet, and the tests after these should not find it so
    monkeypatch.setattr(wp.config, "log_level", wp.config.log_level)


@pytest.mark.slow
def test_the_example_passes_its_test(monkeypatch, capsys):
    monkeypatch.setattr(heap, "BODIES", 200)
    monkeypatch.setattr(heap.build, "__defaults__", (200,))
    monkeypatch.setattr(heap, "SIDE", 6)
    monkeypatch.setattr(heap, "INSIDE", 0.5 * heap.SPACING * 6 + 0.05)
    heap.main(["--test", "--quiet"])
    assert "test passed" in capsys.readouterr().out


def test_the_polyhedron_is_closed_and_has_its_size():
    mesh = heap.polyhedron()
    corners, faces = np.asarray(mesh.vertices), np.asarray(mesh.indices).reshape(-1, 3)
    assert np.allclose(np.linalg.norm(corners, axis=1), heap.SIZE)
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    # each edge has a face on both sides, of opposite directions
    assert sorted(map(tuple, edges.tolist())) == sorted(map(tuple, edges[:, ::-1].tolist()))
    assert (np.einsum("ni,ni->n", corners[faces[:, 0]], np.cross(corners[faces[:, 1]], corners[faces[:, 2]])) > 0).all()
