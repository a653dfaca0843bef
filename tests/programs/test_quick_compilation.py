"""Kernels that are compiled with less optimisation, as those of the quick tests, give the same bits."""

import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

SCRIPT = """
import hashlib

import numpy as np

import newton_like as nl
from newton_like import dynamics
from newton_like.solvers import SolverFeatherstone, SolverXPBD
from tests.support.mechanisms import quadruped

one = quadruped()
box = one.add_body(xform=(0.1, 0.0, 0.9, 0, 0, 0, 1))
one.add_shape_box(box, hx=0.1, hy=0.1, hz=0.1)
scene = nl.ModelBuilder()
scene.add_ground_plane()
scene.replicate(one, 9)
model = scene.finalize("cpu")
speeds = 0.5 * np.random.default_rng(1).normal(size=model.joint_dof_count)
for make in (SolverXPBD, lambda model: SolverFeatherstone(model, evaluator="general")):
    state, solver = model.state(), make(model)
    state.joint_qd.assign(speeds)
    nl.eval_fk(model, state.joint_q, state.joint_qd, state)
    for _ in range(100):
        solver.step(state, state, dt=1 / 240)
    model.evaluator = "general"
    mass = dynamics.mass_matrix(model, state).numpy()
    model.evaluator = "specialised"
    assert dynamics.mass_matrix(model, state).numpy().tobytes() == mass.tobytes()
    results = (state.joint_q.numpy(), state.joint_qd.numpy(), state.body_q.numpy(), state.body_qd.numpy(), mass)
    assert all(np.isfinite(x).all() for x in results)
    print(hashlib.sha256(b"".join(x.tobytes() for x in results)).hexdigest())
"""


@pytest.mark.slow
def test_less_optimisation_gives_the_same_bits():
    """Kernels fuse the operations that they say, and no others; so the level of optimisation does not change results."""
    found = []
    for quick in ("0", "1"):
        environment = {**os.environ, "NEWTON_LIKE_QUICK_COMPILATION": quick}
        command = [sys.executable, "-c", SCRIPT]
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        # Warp prints lines of its own
        found.append([word for word in ran.stdout.split() if len(word) == 64])
    assert len(found[0]) == 2 and len(set(found[0])) == 2
    assert found[0] == found[1]
