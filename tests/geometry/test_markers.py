"""Arrows, frames, balls and rods: surfaces, boxes and directions."""

import numpy as np
import pytest

from newton_like.geometry.markers import AXES, CONE, HEAD, ROD, SPHERE, Markers
from newton_like.geometry.transforms import quat_to_matrix


def random_markers(rng) -> Markers:
    found = Markers()
    points, vectors = rng.normal(size=(2, 4, 3))
    poses = np.concatenate([rng.normal(size=(3, 3)), rng.normal(size=(3, 4))], axis=1)
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    found.add_arrows(points, vectors, 0.02, (1.0, 0.0, 0.0), np.arange(4))
    found.add_balls(points, 0.1, (0.0, 1.0, 0.0)).add_frames(poses, 0.5, 2)
    return found.add_rods(points, points + vectors, 0.01, (0.0, 0.0, 1.0))


def test_surfaces_are_closed_face_outward_and_lie_in_the_box(rng):
    markers = random_markers(rng)
    corners, normals, owner = markers.surface()
    assert sorted(set(owner)) == list(range(len(markers)))
    box = markers.box
    assert (corners >= box[0] - 1e-9).all() and (corners <= box[1] + 1e-9).all()
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (np.einsum("tk,tck->tc", across, normals) > 0.0).all()
    # the volume of a closed surface; round shapes of 24 sides are a little smaller than their formulas
    volume = np.bincount(owner, np.einsum("tk,tk->t", corners.mean(axis=1), across) / 6.0)
    factor = {ROD: 1.0, CONE: 1.0 / 3.0, SPHERE: 4.0 / 3.0}
    wanted = np.pi * np.prod(markers.scale, axis=1) * [factor[k] for k in markers.kind]
    ratio = volume / wanted
    assert (ratio < 1.0).all() and (ratio > 0.95).all()


def test_arrows_lead_from_their_points_along_their_vectors(rng):
    points, vectors = rng.normal(size=(2, 5, 3))
    found = Markers().add_arrows(points, vectors, 0.01, (1.0, 0.0, 0.0))
    corners, _, owner = found.surface()
    for i in range(5):
        along = (corners[(owner == i) | (owner == 5 + i)].reshape(-1, 3) - points[i]) @ vectors[i]
        length = np.linalg.norm(vectors[i])
        assert along.min() == pytest.approx(0.0, abs=1e-9) and along.max() == pytest.approx(length**2, rel=1e-9)
    np.testing.assert_allclose(found.scale[5:, 0], HEAD * 0.01)


def test_frames_are_the_columns_of_their_rotations(rng):
    pose = np.concatenate([rng.normal(size=3), rng.normal(size=4)])
    pose[3:] /= np.linalg.norm(pose[3:])
    found = Markers().add_frames(pose, 0.4)
    axes = quat_to_matrix(pose[3:])
    for k in range(3):
        np.testing.assert_allclose(quat_to_matrix(found.pose[k, 3:])[:, 2], axes[:, k], atol=1e-12)
        np.testing.assert_allclose(found.pose[k, :3], pose[:3] + 0.2 * axes[:, k], atol=1e-12)
        assert tuple(found.color[k]) == AXES[k]


def test_what_is_not_finite_or_has_no_length_is_left_out():
    points = np.array([[0.0, 0.0, 0.0], [np.nan, 0.0, 0.0], [1.0, 0.0, 0.0]])
    found = Markers().add_balls(points, 0.1, (1, 1, 1)).add_rods(points, points * 2.0, 0.1, (1, 1, 1))
    assert found.kind.tolist() == [SPHERE, SPHERE, ROD]
    opposite = Markers().add_rods(np.zeros(3), [0.0, 0.0, -2.0], 0.1, (1, 1, 1))
    np.testing.assert_allclose(opposite.box, [[-0.1, -0.1, -2.0], [0.1, 0.1, 0.0]], atol=1e-12)


def test_bad_markers_are_named():
    with pytest.raises(ValueError, match=r"points.*\(2,\)"):
        Markers().add_balls([1.0, 2.0], 0.1, (1, 1, 1))
    with pytest.raises(ValueError, match=r"radius -1\b"):
        Markers().add_balls(np.zeros(3), -1.0, (1, 1, 1))
