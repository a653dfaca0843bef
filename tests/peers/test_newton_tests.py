"""Newton's own unit tests on newton_like: which pass, and for each that does not, why (`newton_differences`)."""

import json
import subprocess
import sys
from fnmatch import fnmatchcase
from importlib.util import find_spec

import pytest

from tests.peers.newton_differences import DIFFERENCES, STAND_INS
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(find_spec("newton") is None, reason="newton is not installed")

QUICK = ("custom_attributes", "joint_limits", "kinematics", "match_labels", "sensor_contact")


def outcomes_of(module: str) -> dict[str, str]:
    """The outcome of each test of a module, see `tests.support.newton_shim`."""
    command = [sys.executable, "-m", "tests.support.newton_shim", f"test_{module}"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    outcomes = json.loads(run.stdout)[f"test_{module}"]
    assert outcomes, "no test was found"
    return outcomes


@pytest.mark.parametrize(
    "module", [m if m in QUICK else pytest.param(m, marks=pytest.mark.slow) for m in sorted(DIFFERENCES)]
)
def test_newtons_tests_pass_but_for_known_differences(module):
    """A test that fails and is not listed is a failure, and so is one that is listed and passes."""
    outcomes = outcomes_of(module)
    listed = {name: [p for p in DIFFERENCES[module] if fnmatchcase(name, p)] for name in outcomes}
    unexpected = {name: outcome for name, outcome in outcomes.items() if outcome and not listed[name]}
    assert not unexpected, "tests that fail and are not listed"
    assert not [name for name, outcome in outcomes.items() if not outcome and listed[name]], "listed, but passing"
    assert not set(DIFFERENCES[module]) - {p for patterns in listed.values() for p in patterns}, "listed, but no test"


@pytest.mark.slow
@pytest.mark.parametrize("module", sorted(STAND_INS))
def test_newtons_tests_of_other_solvers_pass_with_featherstone(module):
    outcomes = outcomes_of(module)
    found = {pattern: [name for name in outcomes if fnmatchcase(name, pattern)] for pattern in STAND_INS[module]}
    assert all(found.values()), "listed, but no test"
    failed = {name: outcomes[name] for names in found.values() for name in names if outcomes[name]}
    assert not failed
