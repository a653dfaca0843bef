"""Fixtures of all tests. ``NEWTON_LIKE_SEED=<number>`` gives other random inputs, ``NEWTON_LIKE_SEED=fresh`` new ones in every run.
``NEWTON_LIKE_SEED=seen`` draws one of the seeds with which the quick tests have passed (see also tests/seeds_seen.txt); slow tests keep the
default. ``--seeds 100`` runs each test with random inputs a hundred times, with the seed and its 99 successors."""

import gc
import os
import secrets
import zlib
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import warp as wp

DEFAULT_SEED = 20261121
AT_ONCE = 10
"""All quick tests have passed with so many seeds in one run (2026-11-27); tests may be younger than the numbers of their files."""
TESTS = Path(__file__).parent

# Put into the environment as a number, so that parallel test processes share it.
if os.environ.setdefault("NEWTON_LIKE_SEED", str(DEFAULT_SEED)) == "fresh":
    os.environ["NEWTON_LIKE_SEED"] = str(secrets.randbelow(2**31))
if os.environ["NEWTON_LIKE_SEED"] == "seen":
    os.environ["NEWTON_LIKE_SEED"], os.environ["NEWTON_LIKE_DRAWN"] = str(DEFAULT_SEED), str(secrets.randbelow(AT_ONCE))
if not os.environ["NEWTON_LIKE_SEED"].isdecimal():
    raise pytest.UsageError(
        f"NEWTON_LIKE_SEED is {os.environ['NEWTON_LIKE_SEED']!r}; make it a number, 'fresh' or 'seen'"
    )
SEED = int(os.environ["NEWTON_LIKE_SEED"])
DRAWN = int(os.environ.get("NEWTON_LIKE_DRAWN", "0"))
"""What is added to the seed of the random inputs of quick tests, modulo the number of seeds with which they have passed."""


def seeds_seen() -> dict[str, int]:
    """With how many seeds, from the default on, the quick tests of a file have passed."""
    rows = (line.split() for line in (TESTS / "seeds_seen.txt").read_text().splitlines() if not line.startswith("#"))
    return {path: int(quick) for _, quick, path in rows if quick.isdecimal() and int(quick) > 0}


SEEN = seeds_seen() if DRAWN else {}


def pytest_configure(config):
    """The quick tests compile kernels with less optimisation. With the slow tests, as in ``.ci/run``, all tests run what users run."""
    if config.option.markexpr == "not slow" and "NEWTON_LIKE_QUICK_COMPILATION" not in os.environ:
        level, wp.config.log_level = wp.config.log_level, wp.LOG_ERROR
        os.environ["NEWTON_LIKE_QUICK_COMPILATION"] = "0" if wp.is_cuda_available() else "1"
        wp.config.log_level = level


def pytest_sessionstart(session):
    """Of two processes that collect all tests, the second one imports them backwards before. pytest rewrites the assertions of each file at
    its first import, and keeps what it wrote: each process writes half of the files, and reads the other half."""
    worker = getattr(session.config, "workerinput", {"workerid": "gw0"})["workerid"]
    if int(worker.removeprefix("gw")) % 2 and session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        for path in sorted(TESTS.rglob("test_*.py"), reverse=True):
            # what cannot be imported is for the collection to tell
            with suppress(Exception, pytest.skip.Exception):
                import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))


def pytest_collection_finish(session):
    """The garbage collector leaves out what the collection of tests has made, and looks at everything less often: a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(2000, 10, 40)


def pytest_sessionfinish():
    """pytest collects garbage several times at its end, which takes seconds for what thousands of tests have left."""
    gc.freeze()


def pytest_report_header(config):
    return f"random inputs: NEWTON_LIKE_SEED={SEED}" + (f" NEWTON_LIKE_DRAWN={DRAWN}" if DRAWN else "")


def pytest_addoption(parser):
    parser.addoption("--seeds", type=int, default=1, metavar="N", help="runs each test of random inputs with N seeds")


def pytest_generate_tests(metafunc):
    count = metafunc.config.getoption("--seeds")
    if count > 1 and "rng" in metafunc.fixturenames:
        metafunc.fixturenames.append("further_seed")
        metafunc.parametrize("further_seed", [pytest.param(i, id=f"seed{SEED + i}") for i in range(count)])


def pytest_collection_modifyitems(config, items):
    """With ``--seeds``, all tests run with one seed before the next: an interrupted run has seen as many seeds for each test."""
    if config.getoption("--seeds") > 1:
        config.hook.pytest_deselected(items=[item for item in items if "rng" not in item.fixturenames])
        items[:] = [item for item in items if "rng" in item.fixturenames]
        items.sort(key=lambda item: item.callspec.params["further_seed"])


@pytest.fixture
def rng(request) -> np.random.Generator:
    """Random numbers of this test: a function of the run's seed and the test's name, not of the order of the tests."""
    seed, name, drawn = SEED, request.node.nodeid, 0
    further = getattr(request.node, "callspec", None)
    if further is not None and "further_seed" in further.params:
        seed += further.params["further_seed"]
        name = name.replace(f"seed{seed}-", "").replace(f"-seed{seed}", "").replace(f"[seed{seed}]", "")
    elif request.node.get_closest_marker("slow") is None:
        drawn = DRAWN % SEEN.get(name.partition("::")[0], 1)
    print(f"random inputs: NEWTON_LIKE_SEED={seed}{f' NEWTON_LIKE_DRAWN={DRAWN}' if drawn else ''} repeats them")
    return np.random.default_rng([seed + drawn, zlib.crc32(name.encode())])


@pytest.fixture(scope="module")
def module_rng(request) -> np.random.Generator:
    """Random numbers of what the tests of a file share: a function of the run's seed and the name of the file. With
    ``--seeds``, they are those of the first seed."""
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
