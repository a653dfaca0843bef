"""Fixtures of all tests. Random inputs are fresh in every run; ``NEWTON_LIKE_SEED=<printed seed>`` repeats one."""

import os
import secrets
import zlib

import numpy as np
import pytest

# Set in the environment as well, so that parallel test processes share it.
SEED = int(os.environ.setdefault("NEWTON_LIKE_SEED", str(secrets.randbelow(2**31))))


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
