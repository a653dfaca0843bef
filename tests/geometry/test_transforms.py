"""Host-side quaternions and transforms against scipy's rotations and 4x4 matrices."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like.geometry import transforms as tf

# A handful of float64 operations on numbers of size one; 1e-13 is some hundred times their rounding.
EXACT = 1e-13


def random_quats(rng, *lead):
    q = rng.normal(size=(*lead, 4))
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def random_poses(rng, *lead):
    return np.concatenate([rng.normal(size=(*lead, 3)), random_quats(rng, *lead)], axis=-1)


def same_rotation(a, b):
    """Largest difference of two arrays of quaternions, up to sign."""
    return np.max(np.minimum(np.abs(a - b).max(axis=-1), np.abs(a + b).max(axis=-1)))


def test_quaternion_product_rotation_and_matrix_agree_with_scipy(rng):
    a, b, v = random_quats(rng, 50), random_quats(rng, 50), rng.normal(size=(50, 3))
    ra, rb = Rotation.from_quat(a), Rotation.from_quat(b)
    assert same_rotation(tf.quat_multiply(a, b), (ra * rb).as_quat()) < EXACT
    assert np.allclose(tf.quat_rotate(a, v), ra.apply(v), atol=EXACT)
    assert np.allclose(tf.quat_to_matrix(a), ra.as_matrix(), atol=EXACT)
    assert same_rotation(tf.quat_inverse(a), ra.inv().as_quat()) < EXACT


def test_quat_from_rpy_is_the_fixed_axis_convention_of_urdf(rng):
    rpy = rng.uniform(-np.pi, np.pi, size=(50, 3))
    # scipy: lower-case letters are rotations about fixed axes, here x (roll) first.
    assert same_rotation(tf.quat_from_rpy(rpy), Rotation.from_euler("xyz", rpy).as_quat()) < EXACT


def test_quat_from_axis_angle_ignores_the_length_of_the_axis(rng):
    axis, angle = rng.normal(size=(50, 3)), rng.uniform(-7.0, 7.0, 50)
    unit = axis / np.linalg.norm(axis, axis=1, keepdims=True)
    expected = Rotation.from_rotvec(unit * angle[:, None]).as_quat()
    assert same_rotation(tf.quat_from_axis_angle(axis, angle), expected) < EXACT
    assert tf.quat_from_axis_angle([0, 0, 2], 0.3).shape == (4,)


def test_quaternions_of_single_matrices_have_the_bits_of_those_of_batches(rng):
    q = tf.quat_normalize(rng.normal(size=(200, 4)))
    # half turns, whose w is zero, and unit quaternions
    q = np.concatenate([q, tf.quat_normalize(np.c_[rng.normal(size=(20, 3)), np.zeros(20)]), np.eye(4)])
    matrices = tf.quat_to_matrix(q)
    together = tf.quat_from_matrix(matrices)
    assert all(tf.quat_from_matrix(m).tobytes() == x.tobytes() for m, x in zip(matrices, together, strict=True))


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 1.0, np.pi - 1e-9, np.pi])
def test_quat_from_matrix_keeps_all_digits_at_every_angle(rng, angle):
    axis = rng.normal(size=(30, 3))
    q = tf.quat_from_axis_angle(axis, angle)
    back = tf.quat_from_matrix(tf.quat_to_matrix(q))
    # The matrix itself rounds each entry to 1e-16, which turns the frame by about as much.
    assert same_rotation(q, back) < 1e-14
    assert np.all(back[:, 3] >= 0.0)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 1.0, np.pi - 1e-7, np.pi])
def test_quat_between_turns_one_direction_into_the_other_by_the_smallest_angle(rng, angle):
    a = rng.normal(size=3)
    across = np.cross(a, rng.normal(size=3))
    across /= np.linalg.norm(across)
    b = 3.0 * Rotation.from_rotvec(angle * across).apply(a)
    q = tf.quat_between(a, b)
    # Near opposite directions the axis a x b has size 1e-7 and keeps 9 of 16 digits.
    assert np.allclose(tf.quat_rotate(q, a / np.linalg.norm(a)), b / np.linalg.norm(b), atol=1e-8)
    assert np.isclose(2.0 * np.arctan2(np.linalg.norm(q[:3]), q[3]), angle, atol=1e-8)


def test_transforms_compose_and_invert_like_matrices(rng):
    a, b, p = random_poses(rng, 4, 5), random_poses(rng, 5), rng.normal(size=(4, 5, 3))
    A, B = tf.transform_to_matrix(a), tf.transform_to_matrix(b)
    assert np.allclose(tf.transform_to_matrix(tf.transform_multiply(a, b)), A @ B, atol=EXACT)
    assert np.allclose(tf.transform_to_matrix(tf.transform_inverse(a)), np.linalg.inv(A), atol=1e-12)
    assert np.allclose(tf.transform_point(a, p), (A @ np.append(p, np.ones((4, 5, 1)), -1)[..., None])[..., :3, 0])
    assert np.allclose(A[..., :3, 3], a[..., :3], atol=EXACT)
    assert same_rotation(tf.quat_from_matrix(A[..., :3, :3]), a[..., 3:]) < EXACT


def test_warp_reads_the_same_transform(rng):
    """Layout and product are those of Warp's transforms, which the device code uses."""
    a, b = random_poses(rng), random_poses(rng)
    product = wp.transform(*a.tolist()) * wp.transform(*b.tolist())
    # wp.transform holds float32.
    assert np.allclose(tf.transform_multiply(a, b), np.array([*product]), atol=1e-5)
    assert np.allclose(tf.as_transform(wp.transform(*a.tolist())), a, atol=1e-6)


def test_as_transform_takes_what_people_write():
    expected = [1.0, 2.0, 3.0, 0.0, 0.0, 1.0, 0.0]
    for given in (
        [1, 2, 3, 0, 0, 1, 0],
        ((1, 2, 3), (0, 0, 1, 0)),
        np.array(expected, dtype=np.float32),
        wp.transform((1.0, 2.0, 3.0), (0.0, 0.0, 1.0, 0.0)),
        (wp.vec3(1.0, 2.0, 3.0), wp.quat(0.0, 0.0, 1.0, 0.0)),
    ):
        assert tf.as_transform(given).tolist() == expected
    assert tf.as_transform(None).tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert np.linalg.norm(tf.as_transform([0, 0, 0, 0, 0, 0.7071, 0.7071])[3:]) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ([1, 2, 3], ValueError, r"arm: .*\b3\b"),
        ("nonsense", TypeError, r"arm.*'nonsense'"),
        (5, TypeError, r"arm.*5"),
        ([0, 0, float("nan"), 0, 0, 0, 1], ValueError, r"arm.*nan.*finite"),
        ([0, 0, 0, 0, 0, 0, 1.1], ValueError, r"arm.*1.1"),
        ([0, 0, 0, 0, 0, 0, 0], ValueError, "length 0"),
    ],
)
def test_as_transform_says_what_is_wrong(given, error, words):
    with pytest.raises(error, match=words):
        tf.as_transform(given, "arm")


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.quat_from_axis_angle([0, 0, 0], 1.0),
        lambda: tf.quat_between([0, 0, 0], [1, 0, 0]),
        lambda: tf.quat_normalize([0, 0, 0, 0]),
        lambda: tf.quat_normalize([0, 0, np.inf, 0]),
    ],
)
def test_directions_without_length_are_refused(call):
    with pytest.raises(ValueError, match=r"length"):
        call()
