"""Fixtures of all tests. ``NEWTON_LIKE_SEED=<number>`` gives other random inputs, ``NEWTON_LIKE_SEED=fresh`` new ones in every run."""

import os
import secrets
import zlib

import numpy as np
import pytest

DEFAULT_SEED = 20261121

# Put into the environment as a number, so that parallel test processes share it.
if os.environ.setdefault("NEWTON_LIKE_SEED", str(DEFAULT_SEED)) == "fresh":
    os.environ["NEWTON_LIKE_SEED"] = str(secrets.randbelow(2**31))
if not os.environ["NEWTON_LIKE_SEED"].isdecimal():
    raise pytest.UsageError(f"NEWTON_LIKE_SEED is {os.environ['NEWTON_LIKE_SEED']!r}; make it a number or 'fresh'")
SEED = int(os.environ["NEWTON_LIKE_SEED"])


def pytest_report_header(config):
    return f"random inputs: NEWTON_LIKE_SEED={SEED}"


@pytest.fixture
def rng(request) -> np.random.Generator:
    """Random numbers of this test: a function of the run's seed and the test's name, not of the order of the tests."""
    print(f"random inputs: NEWTON_LIKE_SEED={SEED} repeats them")
    return np.random.default_rng([SEED, zlib.crc32(request.node.nodeid.encode())])


@pytest.fixture
def by_numpy(monkeypatch):
    """Functions of the dynamics library are run by NumPy, in double precision and without a compiler."""
    from newton_like.dynamics.internal import common
    from tests.support.traced import run_by_numpy

    monkeypatch.setattr(common, "run", run_by_numpy)
    monkeypatch.setattr("newton_like.kinematics.run", run_by_numpy)
    monkeypatch.setattr("newton_like.dynamics.forces.run", run_by_numpy)
    monkeypatch.setattr("newton_like.dynamics.coordinates.velocity.run", run_by_numpy)
