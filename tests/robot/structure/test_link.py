"""Links: their inertia, and the matrices that are no inertia."""

import numpy as np
import pytest

from newton_like import robot as rd
from tests.support.random_robots import random_inertia, spatial_inertia


def test_inertia_gives_the_kinetic_energy_of_its_points(rng):
    points, masses = rng.normal(size=(7, 3)), rng.uniform(0.1, 1.0, 7)
    com = masses @ points / masses.sum()
    offsets = points - com
    moments = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, offsets, strict=True))
    link = rd.Link("link", spatial_inertia(masses.sum(), com, moments))
    w, v = rng.normal(size=(2, 3))
    velocities = v + np.cross(w, points)
    twist = np.concatenate([w, v])
    assert np.isclose(twist @ link.inertia @ twist, np.sum(masses[:, None] * velocities**2), rtol=1e-12)
    assert np.isclose(link.mass, masses.sum())
    assert np.allclose(link.center_of_mass, com)


def test_results_are_copies_and_inputs_are_copied(rng):
    G = random_inertia(rng)
    kept, link = G.copy(), rd.Link("link", G)
    G[:] = 0.0
    link.inertia[:] = 0.0
    link.child_joints.append(None)
    link.get_collisions().append(None)
    assert np.array_equal(link.inertia, kept)
    assert link.child_joints == [] and link.collisions == []


def test_inertia_is_the_identity_by_default_and_may_be_zero():
    assert np.array_equal(rd.Link("a").inertia, np.eye(6))
    empty = rd.Link("b", np.zeros((6, 6)))
    assert empty.mass == 0.0 and np.array_equal(empty.center_of_mass, np.zeros(3))


def changed(rng, row, column, value) -> np.ndarray:
    G = random_inertia(rng)
    G[row, column] = value
    return G


@pytest.mark.parametrize(
    "wrong",
    [
        lambda rng: changed(rng, 0, 1, 5.0),
        lambda rng: changed(rng, 3, 3, 50.0),
        lambda rng: -random_inertia(rng),
        lambda rng: changed(rng, 4, 4, np.nan),
        lambda rng: spatial_inertia(1.0, np.ones(3), np.eye(3)) - np.diag([0.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
        lambda rng: random_inertia(rng) + np.block([[np.zeros((3, 3)), np.eye(3)], [np.eye(3), np.zeros((3, 3))]]),
    ],
    ids=["asymmetric", "several masses", "negative", "nan", "moment without mass", "coupling"],
)
def test_matrices_that_are_no_inertia_name_the_link(rng, wrong):
    with pytest.raises(rd.RobotError, match="'forearm'"):
        rd.Link("forearm", wrong(rng))


@pytest.mark.parametrize("shape", [(5, 5), (36,), (6, 6, 1)])
def test_other_shapes_are_of_the_kinds_of_the_sdk(shape):
    with pytest.raises(TypeError, match="'forearm'") as raised:
        rd.Link("forearm", np.zeros(shape))
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize("name", [3, None, b"link"])
def test_names_are_strings(name):
    with pytest.raises(TypeError, match="link"):
        rd.Link(name)


def test_other_objects_are_no_collisions():
    with pytest.raises(TypeError, match="'forearm'"):
        rd.Link("forearm").add_collision(None)


def test_inertias_that_no_body_can_have_are_refused_unless_a_file_has_them(rng):
    with pytest.raises(rd.RobotError, match=r"'bad'.*negative principal moment"):
        rd.Link("bad", np.diag([1.0, 1.0, -1.0, 1.0, 1.0, 1.0]))
    G = np.diag([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    G[1, 5], G[2, 4], G[5, 1], G[4, 2] = -0.5, 0.5, -0.5, 0.5
    with pytest.raises(rd.RobotError, match="negative principal moment"):
        rd.Link("far", G)
    text = """<robot name="r"><link name="base"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="-0.5"/>
        </inertial></link></robot>"""
    with pytest.warns(UserWarning, match="negative principal moments.*base"):
        configuration = rd.load_robot_from_urdf_data(text, "base")
    assert configuration.base_link.inertia[2, 2] == -0.5


def test_the_fast_test_of_inertias_passes_only_what_the_complete_one_does(rng, monkeypatch):
    """Rods, heavy and light bodies, and matrices that are sound but for one entry, by less and by more than the tolerance."""

    def verdict(G) -> bool:
        try:
            rd.Link("link", G)
        except rd.RobotError:
            return False
        return True

    passed, same = [], []
    for k in range(300):
        mass, com, (Q, _) = 10.0 ** rng.uniform(-4, 4), rng.normal(size=3), np.linalg.qr(rng.normal(size=(3, 3)))
        moments = 10.0 ** rng.uniform(-6, 2, 3)
        if k % 3 == 0:
            moments[0] = -(10.0 ** rng.uniform(-9, -4)) * moments.max()
        G = spatial_inertia(mass, com, Q @ np.diag(moments) @ Q.T)
        if k % 3 == 1:
            G[tuple(rng.integers(6, size=2))] += rng.choice([-1, 1]) * 10.0 ** rng.uniform(-9, -3) * np.abs(G).max()
        passed.append(verdict(G))
        with monkeypatch.context() as complete:
            complete.setattr("newton_like.robot.structure.link._is_sound", lambda G: False)
            same.append(verdict(G) == passed[-1])
    assert all(same) and any(passed) and not all(passed)
    for entry in np.ndindex(6, 6):
        for wrong in (np.nan, np.inf, -np.inf):
            G = random_inertia(rng)
            G[entry] = wrong
            with pytest.raises(rd.RobotError, match="not finite"):
                rd.Link("link", G)
