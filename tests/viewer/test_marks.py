"""Contacts in pictures and videos: dots at the contact points, arrows along the forces."""

import numpy as np
import pytest

import newton_like as nl
from newton_like import ModelBuilder
from newton_like.viewer import VideoRecorder, picture
from newton_like.viewer.marks import LONGEST, Marks, arrows
from newton_like.viewer.scene import Scene


def scene(worlds: int = 2) -> ModelBuilder:
    """A ball on the ground in each world."""
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body(xform=(0.3, 0.2, 0.1, 0, 0, 0, 1)), radius=0.1)
    found = ModelBuilder()
    found.add_ground_plane()
    found.replicate(builder, worlds)
    return found


def listed(model, force=(0.0, 0.0, -5.0)):
    """One contact of each ball with the ground."""
    contacts = nl.Contacts(4, device=model.device, requested_attributes=("force",))
    balls = np.flatnonzero(model.shape_body.numpy() >= 0)
    n = len(balls)
    for name, values in (
        ("rigid_contact_shape0", np.full(n, np.flatnonzero(model.shape_body.numpy() < 0)[0])), ("rigid_contact_shape1", balls),
        ("rigid_contact_point0", [(0.3, 0.2, 0.0)] * n), ("rigid_contact_point1", [(0.0, 0.0, -0.1)] * n),
        ("rigid_contact_normal", [(0.0, 0.0, 1.0)] * n), ("force", [(*force, 0.0, 0.0, 0.0)] * n),
    ):  # fmt: skip
        array = getattr(contacts, name).numpy()
        array[:n] = values
        getattr(contacts, name).assign(array)
    contacts.rigid_contact_count.assign([n])
    return contacts


def test_marks_are_at_contact_points_of_shown_worlds():
    model = scene().finalize("cpu")
    contacts, poses = listed(model), model.body_q.numpy().reshape(-1, 7)
    one, both = Scene(model, 1), Scene(model, None, spacing=(2.0, 0.0, 0.0))
    np.testing.assert_allclose(one.marks(poses[1:], contacts).points, [[0.3, 0.2, 0.0]], atol=1.0e-6)
    marks = both.marks(poses, contacts)
    # worlds that are drawn apart take their contacts along, those on shared shapes too
    np.testing.assert_allclose(np.diff(marks.points, axis=0), [[2.0, 0.0, 0.0]], atol=1.0e-6)
    np.testing.assert_allclose(marks.forces, [[0.0, 0.0, 5.0]] * 2)
    assert marks.largest == 5.0


@pytest.mark.parametrize("shape", [-1, 3])
def test_contacts_of_shapes_that_do_not_exist_are_left_out(shape):
    model = scene().finalize("cpu")
    contacts, drawn = listed(model), Scene(model, None)
    shapes = contacts.rigid_contact_shape0.numpy()
    shapes[0] = shape
    contacts.rigid_contact_shape0.assign(shapes)
    assert len(drawn.marks(model.body_q.numpy()[drawn.bodies], contacts).points) == 1
    contacts.rigid_contact_count.assign([-1])
    assert len(drawn.marks(model.body_q.numpy()[drawn.bodies], contacts).points) == 0


def test_arrows_begin_at_their_points_and_are_as_long_as_their_forces(rng):
    forces = rng.normal(size=(5, 3))
    marks = Marks(rng.normal(size=(5, 3)), forces)
    largest, size = marks.largest, 3.0
    drawn = iter(arrows(marks, size, largest))
    for point, force in zip(marks.points, forces, strict=True):
        dot, rod, head = (next(drawn)[0] for _ in range(3))
        np.testing.assert_allclose(dot.mean(axis=0), point, atol=0.01)
        way = force / np.linalg.norm(force)
        ends = np.concatenate([rod, head]) @ way - point @ way
        assert ends.max() == pytest.approx(LONGEST * size * np.linalg.norm(force) / largest, rel=1.0e-6)
        assert ends.min() == pytest.approx(0.0, abs=0.02)
    assert next(drawn, None) is None


def test_contacts_without_force_are_dots():
    marks = Marks(np.zeros((3, 3)), np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [np.nan, 0.0, 0.0]]))
    assert len(arrows(marks, 1.0, marks.largest)) == 3 + 2
    assert len(arrows(Marks(np.zeros((2, 3)), np.zeros((2, 3))), 1.0, 0.0)) == 2


def test_pictures_show_contacts():
    """Arrows are red pixels, which a picture of a grey ball does not have."""
    builder = scene()
    builder.shape_color[:] = [(0.5, 0.5, 0.5)] * len(builder.shape_color)
    model = builder.finalize("cpu")

    def red(contacts) -> int:
        figure = picture(model, contacts=contacts, size=(3.0, 2.0))
        figure.canvas.draw()
        image = np.asarray(figure.canvas.buffer_rgba()).astype(int)
        return int(((image[..., 0] - image[..., 1:3].max(axis=2)) > 60).sum())

    assert red(None) == 0
    assert red(listed(model)) > 20


def test_videos_show_contacts(tmp_path):
    from PIL import Image

    model = scene().finalize("cpu")
    path = tmp_path / "film.gif"
    with VideoRecorder(model, path, contacts=True, size=(64, 48), fps=10) as recorder:
        recorder.record(model.state(), 0.0, listed(model))
        recorder.record(model.state(), 0.1)
        recorder.record(model.state(), 0.2)
    with Image.open(path) as film:
        frames = []
        for i in range(film.n_frames):
            film.seek(i)
            frames.append(np.asarray(film.convert("RGB")).astype(int))
    assert len(frames) == 2 and (frames[0] != frames[1]).any()


def test_wrong_contacts_are_named(tmp_path):
    model, other = scene().finalize("cpu"), scene(3).finalize("cpu")
    with pytest.raises(TypeError, match="contacts"):
        picture(model, contacts=3)
    with pytest.raises(ValueError, match="contacts"):
        picture(model, contacts=other.contacts())
    with pytest.raises(ValueError, match="contacts=True"):
        VideoRecorder(model, tmp_path / "film.gif").record(model.state(), 0.0, model.contacts())
    with pytest.raises(TypeError, match="contacts"):
        VideoRecorder(model, tmp_path / "film.gif", contacts="yes")
