"""A process reuses the cached kernels of an earlier one."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys

import newton_like as nl
from newton_like import dynamics

builder = nl.ModelBuilder()
link = builder.add_link(mass=1.0, inertia=[0.1, 0.0, 0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 0.1], label="link")
builder.add_articulation([builder.add_joint_revolute(-1, link, axis="y", label="hinge")])
model = builder.finalize("cpu")
state = model.state()
for name in sys.argv[1:]:
    if name == "kinematics":
        nl.eval_fk(model, state.joint_q, state.joint_qd, state)
    else:
        dynamics.mass_matrix(model, state)
"""


@pytest.mark.slow
def test_keys_do_not_depend_on_what_was_compiled_before(tmp_path):
    def folders_after(*names):
        environment = {**os.environ, "WARP_CACHE_PATH": str(tmp_path)}
        subprocess.run(
            [sys.executable, "-c", SCRIPT, *names], check=True, env=environment, capture_output=True, text=True
        )
        return {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("wp_*") if p.is_dir()}

    first = folders_after("kinematics", "mass_matrix")
    assert len(first) >= 2
    assert folders_after("mass_matrix", "kinematics") == first
