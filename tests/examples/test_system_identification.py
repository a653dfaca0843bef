"""The example that identifies an arm: derivatives with respect to its parameters, and the accuracy of the result."""

import numpy as np
import pytest
import warp as wp

from examples import system_identification as example


@pytest.fixture(scope="module")
def prediction():
    rng = np.random.default_rng(3)
    model = example.build(16, "cpu")
    return example.Prediction(model, example.Parameters(model), example.Motion.exciting(0.1 * np.arange(16), rng))


@pytest.mark.slow
def test_gradients_reach_masses_and_first_moments(prediction, rng):
    x, direction = 0.1 * rng.normal(size=(2, 4 * example.LINKS))
    seed = rng.normal(size=(16, example.LINKS))
    gradient = prediction.torques(x)[1](seed).sum(axis=0)
    ahead, behind = (np.sum(seed * prediction.torques(x + s * direction)[0]) for s in (1e-5, -1e-5))
    # truncation, and cancellation of sums of about a thousand
    np.testing.assert_allclose(gradient @ direction, (ahead - behind) / 2e-5, rtol=1e-6, atol=1e-5)


def test_numbers_of_masses_and_centres(prediction, rng):
    parameters = prediction.parameters
    mass, centre = rng.uniform(0.5, 2.0, example.LINKS), rng.normal(size=(example.LINKS, 3))
    vectors = parameters.vectors(parameters.numbers(mass, centre))
    np.testing.assert_allclose(vectors[:, 0], mass, rtol=1e-12)
    np.testing.assert_allclose(vectors[:, 1:4], centre, rtol=1e-12, atol=1e-12)


def test_combinations_that_are_not_identifiable(prediction):
    """The torque of a hinge along gravity depends on one parameter of its link, the inertia about the hinge, and not on the other three."""
    base = example.Base.of(prediction, np.zeros(4 * example.LINKS), np.ones(example.LINKS))
    known = base.known()
    assert base.rank == 4 * example.LINKS - 3
    assert not known[:4].any() and known[4:].all()


@pytest.mark.slow
def test_finds_the_arm(capsys, tmp_path):
    """With the default seed: others are other arms, some of which bear weaker links."""
    wp.config.log_level = wp.LOG_WARNING
    example.main(["--test", "--quiet", "--viewer", "plot", "--output-path", str(tmp_path)])
    assert "test passed" in capsys.readouterr().out
    assert (tmp_path / "system_identification.png").stat().st_size > 10_000


@pytest.mark.slow
def test_says_so_where_it_has_not_found_it():
    with pytest.raises(SystemExit, match=r"test failed: .*mean square error"):
        example.main(["--test", "--quiet", "--num-frames", "20", "--world-count", "256"])
