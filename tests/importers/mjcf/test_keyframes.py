"""Keyframes of MJCF: pose and controls, against MuJoCo."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

import mujoco

from newton_like.solvers import SolverFeatherstone
from tests.support.mjcf_peer import MjcfPeer
from tests.support.random_mjcf import text

ACTUATORS = [
    '<position joint="{0}" kp="7" kv="2"/>',
    '<position joint="{0}" kp="3" gear="2" ctrlrange="-0.5 0.3"/>',
    '<velocity joint="{0}" kv="2"/>',
    '<motor joint="{0}" gear="3" ctrlrange="-0.2 0.4"/>',
    '<general joint="{0}" gainprm="4" biastype="affine" biasprm="1 -5 -0.5"/>',
]


def test_controls_of_a_keyframe_become_targets_and_forces(rng):
    """The generalised forces of all actuators in the keyframe, at random velocities; the last actuator shares its joint."""
    names = ["a", "b", "c", "d", "e", "a"]
    bodies = "".join(
        f'<body><joint name="{name}" axis="0 1 0"/><geom size="0.1"/></body>' for name in names[: len(ACTUATORS)]
    )
    forms = [form.format(name) for form, name in zip([*ACTUATORS, ACTUATORS[0]], names, strict=True)]
    qpos, ctrl, qvel = (
        rng.uniform(-1, 1, len(ACTUATORS)),
        rng.uniform(-1, 1, len(forms)),
        rng.normal(size=len(ACTUATORS)),
    )
    xml = (
        f"<mujoco><worldbody>{bodies}</worldbody><actuator>{''.join(forms)}</actuator><keyframe>"
        f'<key name="zeros" qpos="{text(qpos)}"/><key name="home" qpos="{text(qpos)}" ctrl="{text(ctrl)}"/></keyframe></mujoco>'
    )
    for number, key in enumerate(("zeros", "home")):
        peer = MjcfPeer(xml, keyframe=key)
        mujoco.mj_resetDataKeyframe(peer.mj, peer.data, number)
        peer.data.qvel[:] = qvel
        mujoco.mj_forward(peer.mj, peer.data)
        model = peer.model
        ke, kd, q, qd, force = (
            getattr(model, f"joint_{name}").numpy() for name in ("target_ke", "target_kd", "target_q", "target_qd", "f")
        )
        found = ke * (q - model.joint_q.numpy()) + kd * (qd - qvel) + force
        np.testing.assert_allclose(found, peer.data.qfrc_actuator, atol=1e-12)


def quadruped(iterations: int) -> str:
    """About the size of a Go1, with its gains and ranges; MuJoCo's solver runs for so many iterations."""
    legs = ""
    for name, x, y in (("fr", 1, -1), ("fl", 1, 1), ("rr", -1, -1), ("rl", -1, 1)):
        legs += f"""
        <body name="{name}_hip" pos="{0.188 * x} {0.047 * y} 0"><geom size="0.04" mass="0.68" contype="0" conaffinity="0"/>
          <joint name="{name}_0" class="abduction"/>
          <body pos="0 {0.08 * y} 0"><geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.015" mass="1" contype="0" conaffinity="0"/>
            <joint name="{name}_1" class="hip"/>
            <body pos="0 0 -0.213"><geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.01" mass="0.2" contype="0" conaffinity="0"/>
              <joint name="{name}_2" class="knee"/><geom name="{name}" class="foot"/></body></body></body>"""
    drives = "".join(f'<position joint="{n}_{i}"/>' for n in ("fr", "fl", "rr", "rl") for i in range(3))
    pose = "0.1 0.9 -1.8 -0.1 0.9 -1.8 " * 2
    return f"""<mujoco><compiler angle="radian"/><option timestep="0.002" iterations="{iterations}"/>
      <default><joint axis="0 1 0" armature="0.005" damping="0.5"/><position forcerange="-35 35" inheritrange="1" kp="35"/>
        <default class="abduction"><joint axis="1 0 0" range="-0.863 0.863"/></default>
        <default class="hip"><joint range="-0.686 4.501"/></default>
        <default class="knee"><joint range="-2.818 -0.888"/></default>
        <default class="foot"><geom size="0.023" pos="0 0 -0.213" mass="0.05"/></default></default>
      <worldbody><geom type="plane" size="1 1 1" friction="0.6"/>
        <body name="trunk" pos="0 0 0.445"><freejoint/><geom type="box" size="0.2 0.05 0.05" mass="5.2"/>{legs}</body></worldbody>
      <actuator>{drives}</actuator>
      <keyframe><key name="home" qpos="0 0 0.278 1 0 0 0 {pose}" ctrl="{pose}"/></keyframe></mujoco>"""


def upright(qpos, w: int) -> float:
    """Height of the trunk's z axis; `w` is the place of the quaternion's first imaginary part."""
    return 1.0 - 2.0 * (qpos[w] ** 2 + qpos[w + 1] ** 2)


@pytest.mark.parametrize("key", [None, "home"])
def test_a_quadruped_ends_as_in_mujoco(key):
    """From its keyframe it stands. Without one its knees start outside of their ranges, its drives straighten its legs, and it ends as
    MuJoCo's robot does where MuJoCo's solver converges."""
    peer = MjcfPeer(quadruped(100), keyframe=key)
    if key:
        mujoco.mj_resetDataKeyframe(peer.mj, peer.data, 0)
    solver, state = (
        SolverFeatherstone(peer.model, evaluator="general", unsupported_contacts="ignore"),
        peer.model.state(),
    )
    for _ in range(1500):
        solver.step(state, state, dt=0.002)
        mujoco.mj_step(peer.mj, peer.data)
    ours, theirs = state.joint_q.numpy(), peer.data.qpos
    np.testing.assert_allclose(ours[2], theirs[2], atol=0.02)
    np.testing.assert_allclose(upright(ours, 3), upright(theirs, 4), atol=0.02)
    if key:
        assert upright(ours, 3) > 0.99
