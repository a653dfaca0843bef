"""Soft connects and welds that are open, and their softness, against MuJoCo."""

import mujoco
import numpy as np
import pytest
import warp as wp

from newton_like import ModelBuilder
from newton_like.solvers import SolverFeatherstone
from tests.support.mjcf_peer import MjcfPeer

BRANCHES = """
<mujoco>
  <default><geom contype="0" conaffinity="0" density="500"/></default>
  <worldbody>
    <body name="a" pos="0.1 0 1">
      <joint axis="0.2 1 0.1"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03"/>
      <body name="b" pos="0.4 0 0">
        <joint axis="0 1 0.3"/>
        <geom type="capsule" fromto="0 0 0 0.1 0.2 0.3" size="0.04"/>
        <site name="b" pos="0.1 0.2 0.3"/>
      </body>
      <body name="c" pos="0.2 0.3 0">
        <joint type="ball"/>
        <geom type="box" pos="0.1 0 0" size="0.1 0.05 0.03"/>
        <site name="c" pos="0.15 0.02 0.01"/>
      </body>
    </body>
    <body name="d" pos="0.3 0.8 1.3">
      <freejoint/>
      <geom type="box" pos="0.02 0.01 0" size="0.1 0.05 0.04"/>
      <site name="d" pos="0.1 0.05 0.04"/>
    </body>
  </worldbody>
  <equality>
    <{0} site1="{1}" site2="{2}" solref="0.05 1"/>
    <{0} site1="{3}" site2="{4}" solref="0.04 0.7" solimp="0.8 0.9 0.1 0.4 3"/>
  </equality>
</mujoco>
"""


@pytest.mark.parametrize("kind", ["connect", "weld"])
@pytest.mark.parametrize("order", ["bccd", "cbdc"])
def test_open_constraints_accelerate_links_as_in_mujoco(rng, kind, order):
    """At random states, gaps are as long as the links, and angles are of any size. Two links hang on a third one, which turns both. The
    change of the velocity in a step of a microsecond is the acceleration to O(dt). MuJoCo before version 4 leaves out the part of
    accelerations of constraints that comes from velocities."""
    peer = MjcfPeer(BRANCHES.format(kind, *order))
    solver, dt = SolverFeatherstone(peer.model, evaluator="general"), 1.0e-6
    for _ in range(8):
        peer.random_state(rng)
        if int(mujoco.__version__.split(".")[0]) < 4:
            peer.data.qvel[:] = 0.0
            mujoco.mj_forward(peer.mj, peer.data)
        state, out = peer.state(), peer.model.state()
        solver.step(state, out, None, None, dt)
        before = state.joint_qd.numpy()
        T, drift = peer.velocity_map(before)
        found = T @ (out.joint_qd.numpy() - before) / dt + drift
        assert abs(peer.data.efc_force).max() > 0.1
        np.testing.assert_allclose(found, peer.data.qacc, rtol=0, atol=2.0e-4 * abs(peer.data.qacc).max())


SLIDES = {
    "one": ("0 0 1",),
    "two": ("1 0 0", "0 0 1"),
    "three": ("1 0 0", "0 1 0", "0 0 1"),
    "oblique": ("1 0 1",),
    "two that are not at right angles": ("1 0 0", "1 0 1"),
}


@pytest.mark.parametrize("place", ["0 0 0", "0.02 0 0"])
@pytest.mark.parametrize("name", SLIDES)
def test_links_on_slides_give_way_to_a_soft_weld_as_in_mujoco(name, place):
    """MuJoCo counts the whole inverse mass of links that slide along axes of their own frames, and a third of its trace for others."""
    joints = "".join(f'<joint type="slide" axis="{axis}" armature="0.3"/>' for axis in SLIDES[name])
    text = f"""<mujoco><worldbody><body name="b" pos="0 0 1">{joints}
        <geom type="box" pos="{place}" size="0.05 0.1 0.02" mass="2" contype="0" conaffinity="0"/></body></worldbody>
        <equality><weld body1="b" solref="0.1 1"/></equality></mujoco>"""
    mj = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    builder = ModelBuilder()
    builder.add_mjcf(text)
    model, dt = builder.finalize("cpu", dtype=wp.float64), 1.0e-6
    state = model.state()
    SolverFeatherstone(model, evaluator="general").step(state, state, None, None, dt)
    found = state.joint_qd.numpy()[: mj.nv] / dt
    assert (abs(data.qacc) < 5.0).all() and abs(data.qacc).max() > 0.1
    np.testing.assert_allclose(found, data.qacc, rtol=0, atol=1.0e-4)
