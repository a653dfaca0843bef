"""Quadratic programs with bounds."""

import numpy as np
import pytest
from scipy.optimize import nnls

from newton_like.robot.control import quadratic

pytest.importorskip("daqp")


def program(rng):
    """A program that zero is a point of, with a nearly singular H and nearly parallel rows, such as those of capsules of one link."""
    n, rows = (int(x) for x in rng.integers(2, 9, 2))
    J, G = rng.normal(size=(3, n)), rng.normal(size=(rows, n))
    G = np.concatenate([G, G + 1e-9 * rng.normal(size=G.shape), rng.uniform(0.1, 3.0, (rows, 1)) * G, -G[:1]])
    low, high = -rng.choice([0.0, 0.2], n, p=[0.2, 0.8]), rng.choice([0.0, 0.2], n, p=[0.2, 0.8])
    return J.T @ J + 1e-8 * np.eye(n), J.T @ rng.normal(size=3), low, high, G, -rng.choice([0.0, 1e-9, 1e-3], len(G))


def residual(x, H, f, low, high, G, least) -> float:
    """The part of the cost's gradient that no positive forces of active bounds balance (Karush, Kuhn and Tucker)."""
    axes, gradient = np.eye(len(x)), H @ x + f
    active = [*axes[x <= low + 1e-9], *-axes[x >= high - 1e-9], *G[least + 1e-6 >= G @ x]]
    rest = nnls(np.array(active).T, gradient)[1] if active else np.linalg.norm(gradient)
    return rest / np.linalg.norm(f)


def test_minima_of_programs_with_nearly_parallel_rows(rng):
    """The solver alone reports a quarter of these programs as infeasible."""
    for _ in range(200):
        given = program(rng)
        low, high, G, least = given[2:]
        x, status = quadratic.minimum(quadratic.solver(), *given)
        assert status == "optimal"
        assert (low <= x).all() and (x <= high).all() and (G @ x >= least - 1e-6).all()
        assert residual(x, *given) < 1e-5


def test_programs_without_a_point_are_infeasible(rng):
    for _ in range(50):
        H, f, low, high, G, least = program(rng)
        row = rng.normal(size=(1, len(f)))
        far = np.abs(row).sum() * 0.2 + rng.uniform(1e-3, 1.0)
        for rows, bounds in ((row, [far]), (np.concatenate([row, -row]), [1e-3, 0.0])):
            given = H, f, low, high, np.concatenate([G, rows]), np.concatenate([least, bounds])
            x, status = quadratic.minimum(quadratic.solver(), *given)
            assert status == "infeasible" and not x.any()
        assert quadratic.minimum(quadratic.solver(), H, f, high + 0.1, high, G, least)[1] == "infeasible"


def test_zero_is_the_result_if_the_solver_finds_none(rng):
    H, f, low, high, G, least = program(rng)

    def broken(H, f, *_args, **_options):
        return np.ones(len(f)), 0.0, -2, {}

    x, status = quadratic.minimum(broken, H, f, low - 0.1, high + 0.1, G, least)
    assert status == "still" and not x.any()
    x, status = quadratic.minimum(broken, H, f, high + 0.1, high + 0.2, G[:0], least[:0])
    assert status == "cycling" and not x.any()
