"""A robot with actuators of all kinds, and the same in MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import warp as wp

from newton_like import ModelBuilder
from newton_like.solvers import SolverFeatherstone

ROBOT = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="{dt}" integrator="{integrator}"><flag contact="disable"/></option>
  <worldbody>
    <site name="w1" pos=".05 .02 .4"/> <site name="w2" pos="-.1 .1 .2"/>
    <body name="b0" pos="0 0 .5">
      <joint name="a" axis="0 1 0" damping=".1"/>
      <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" mass="1"/>
      <site name="s0" pos=".1 .03 .05" euler=".3 .2 -.4"/>
      <body name="b1" pos=".3 0 0">
        <joint name="b" axis="0 .2 1" range="-1 2" limited="false"/>
        <geom type="capsule" size=".02" fromto="0 0 0 .2 .05 0" mass=".5"/>
        <site name="s1" pos=".1 -.02 .03" euler="-.3 .6 .1"/>
        <body name="b2" pos=".2 .05 0">
          <joint name="c" type="ball"/>
          <geom type="box" size=".03 .05 .08" pos=".02 .01 .1" mass=".3"/>
          <site name="s2" pos=".03 .02 .1" euler=".7 .1 .5"/>
          <body name="b3" pos="0 0 .2" euler=".2 .4 .1">
            <joint name="d" type="slide" axis=".3 .5 1"/>
            <geom type="box" size=".04 .03 .05" mass=".2"/>
            <site name="s3" pos=".02 -.02 .05" euler=".1 .9 .5"/>
          </body>
        </body>
      </body>
    </body>
    <body name="f" pos="1 0 1" euler=".4 .1 .8">
      <freejoint name="free"/>
      <geom type="box" size=".1 .2 .3" pos=".05 0 .02" mass="2"/>
      <site name="sf" pos=".1 .1 .2" euler=".2 .1 .5"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="t1"><joint joint="a" coef="1"/><joint joint="b" coef="-.7"/></fixed>
    <spatial name="t2"><site site="w1"/><site site="s0"/><site site="s1"/></spatial>
    <spatial name="t3"><site site="w2"/><site site="s3"/></spatial>
  </tendon>
  <actuator>
    <general site="s0" gainprm="0"/> <general site="sf" gainprm="0"/>
{actuators}
  </actuator>
</mujoco>
"""
"""Both trees have an actuator without force, so that one kernel serves all sets of actuators."""

IDLE = 2

KINDS = {
    "damper": '<damper joint="a" kv="2" ctrlrange="0 1"/>',
    "spring": '<general joint="b" gaintype="affine" gainprm="1 .5 -.2" biastype="affine" biasprm=".3 -2 -.4" gear="1.5"/>',
    "growing": '<general joint="a" biastype="affine" biasprm="0 .5 .1" forcerange="-.3 .6"/>',
    "filter": '<general joint="a" dyntype="filter" dynprm=".05" gainprm="2" gear="-2"/>',
    "servo": '<position joint="b" kp="5" kv=".5" timeconst=".03"/>',
    "intvelocity": '<intvelocity joint="b" kp="4" actrange="-.5 .4" ctrlrange="-1 1"/>',
    "early": '<general joint="d" dyntype="filterexact" dynprm=".02" gainprm="2" actearly="true" biastype="affine" biasprm="0 -3 0"/>',
    "cylinder": '<cylinder joint="d" timeconst=".1" area="2" bias="0 -1 -.5"/>',
    "muscle": '<muscle joint="a" lengthrange="-2 2" force="10" range=".6 1.2" ctrlrange="0 1"/>',
    "smooth": '<muscle tendon="t1" lengthrange="-2 3" force="8" timeconst=".02 .05" tausmooth=".3"/>',
    "scaled": '<muscle tendon="t2" lengthrange=".2 .7" scale="3" fvmax="1.4" lmin=".4" vmax=".8"/>',
    "pulling": '<general tendon="t2" dyntype="integrator" gainprm="3" actrange="-.4 .5" forcerange="-.8 1.1"/>',
    "affine_tendon": '<general tendon="t3" gaintype="affine" gainprm="1 2 -.6" gear="2"/>',
    "both": '<general tendon="t3" gear="-1.3" gainprm="3"/>',
    "site": '<motor site="s2" gear="1 .5 -.3 .1 .2 -.15"/>',
    "site_filter": '<general site="sf" gear="0 1 0 .3 0 .1" dyntype="filter" dynprm=".02"/>',
    "refsite": '<general site="s3" refsite="s0" gear="1 .4 .3 0 0 0" gainprm="4" biastype="affine" biasprm=".1 -3 -.4"/>',
    "turn": '<motor site="s3" refsite="s0" gear="0 0 0 .1 .2 .3"/>',
    "ball": '<motor joint="c" gear=".1 .2 -.15"/>',
    "ball_parent": '<velocity jointinparent="c" gear=".2 -.1 .3" kv=".1"/>',
    "free": '<motor joint="free" gear="1 2 3 .2 .1 -.3"/>',
    "free_parent": '<general jointinparent="free" gear="0 1 0 .1 -.4 .3" dyntype="filterexact" dynprm=".1"/>',
    "crank": '<general cranksite="s2" slidersite="w1" cranklength=".6" gear="1.3" biastype="affine" biasprm=".1 -3 -.4"/>',
    "short_crank": '<motor cranksite="s0" slidersite="s1" cranklength=".05" gear="-2"/>',
    "dcmotor": '<dcmotor joint="b" nominal="12 .5 100" gear="5" cogging=".1 6 .2"/>',
    "winding": '<dcmotor tendon="t1" motorconst=".5" resistance="2" inductance="0 .05" saturation="0 .3 0"/>',
}  # fmt: skip
"""Actuators by name."""


def robot(kinds=tuple(KINDS), dt: float = 0.002, integrator: str = "Euler", options: str = "") -> str:
    actuators = "\n".join(f"    {KINDS[kind]}" for kind in kinds)
    return ROBOT.format(actuators=actuators, dt=dt, integrator=integrator)


class Pair:
    """A model here and in MuJoCo, in float64.

    Attributes:
        report: what the importer found.
    """

    def __init__(self, xml: str, **options):
        builder = ModelBuilder()
        self.report = builder.add_mjcf(xml)
        self.model = builder.finalize("cpu", dtype=wp.float64)
        self.mj = mujoco.MjModel.from_xml_path(xml) if xml.endswith(".xml") else mujoco.MjModel.from_xml_string(xml)
        self.data = mujoco.MjData(self.mj)
        self.state, self.control = self.model.state(), self.model.control()
        self.solver = SolverFeatherstone(
            self.model, **{"evaluator": "general", "width": 1, "unsupported_contacts": "ignore", **options}
        )

    def set(self, qpos, qvel, act, ctrl) -> None:
        """The same state in both."""
        mj, data = self.mj, self.data
        data.qpos[:], data.qvel[:] = qpos, qvel
        mujoco.mj_normalizeQuat(mj, data.qpos)
        data.ctrl[:] = ctrl
        if mj.na:
            data.act[:] = act
        mujoco.mj_forward(mj, data)
        q, v = self.model.joint_q.numpy(), self.model.joint_qd.numpy()
        for i in range(mj.njnt):
            name, kind = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_JOINT, i), mj.jnt_type[i]
            name = name or [*self.report.joints][i]
            at, dof = self.report.coords[name], self.report.dofs[name]
            here, there = mj.jnt_qposadr[i], mj.jnt_dofadr[i]
            if kind == mujoco.mjtJoint.mjJNT_FREE:
                body = mj.jnt_bodyid[i]
                turn = data.xmat[body].reshape(3, 3)
                q[at : at + 3] = data.qpos[here : here + 3]
                q[at + 3 : at + 7] = np.roll(data.qpos[here + 3 : here + 7], -1)
                spin = turn @ data.qvel[there + 3 : there + 6]
                v[dof + 3 : dof + 6] = spin
                v[dof : dof + 3] = data.qvel[there : there + 3] + np.cross(spin, data.xipos[body] - data.xpos[body])
            elif kind == mujoco.mjtJoint.mjJNT_BALL:
                q[at : at + 4] = np.roll(data.qpos[here : here + 4], -1)
                v[dof : dof + 3] = self._ball(i, data.qpos[here : here + 4]) @ data.qvel[there : there + 3]
            else:
                q[at], v[dof] = data.qpos[here], data.qvel[there]
        self.state.joint_q.assign(q)
        self.state.joint_qd.assign(v)
        self.give(ctrl, act)

    def give(self, ctrl, act=None) -> None:
        """Controls, and activations."""
        number = 0
        activations = self.state.actuator_act.numpy()
        arrays = {name: getattr(self.model, name).numpy().copy() for name in self.control._names}
        summed: dict = {}
        for made, x in zip(self.report.actuators, ctrl, strict=True):
            if made.ctrlrange and made.drive != "actuator_ctrl":
                x = np.clip(x, *made.ctrlrange)
            if made.drive is not None:
                key = made.drive, made.index
                summed[key] = summed.get(key, 0.0) + made.factor * x + made.offset
            if made.activated:
                if act is not None and made.act >= 0:
                    activations[made.act] = act[number]
                number += 1
        for (name, index), x in summed.items():
            arrays[name][index] = x
        for name, array in arrays.items():
            getattr(self.control, name).assign(array)
        self.state.actuator_act.assign(activations)

    def activations(self) -> np.ndarray:
        """Activations in the order of MuJoCo."""
        return self.state.actuator_act.numpy()[[made.act for made in self.report.actuators if made.activated]]

    def _ball(self, joint: int, quat) -> np.ndarray:
        """From MuJoCo's velocity of a ball joint, in axes of the child, to that in axes of the parent's anchor."""
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, quat / np.linalg.norm(quat))
        return turn.reshape(3, 3)

    def step(self, dt: float) -> None:
        self.solver.step(self.state, self.state, self.control, dt=dt)

    def velocities(self) -> np.ndarray:
        """Velocities of joints in MuJoCo's form, at the pose of MuJoCo's data."""
        mj, data, v = self.mj, self.data, self.state.joint_qd.numpy()
        found = np.zeros(mj.nv)
        for i in range(mj.njnt):
            name, kind = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_JOINT, i), mj.jnt_type[i]
            dof, there = self.report.dofs[name or [*self.report.joints][i]], mj.jnt_dofadr[i]
            if kind == mujoco.mjtJoint.mjJNT_FREE:
                body = mj.jnt_bodyid[i]
                spin = v[dof + 3 : dof + 6]
                found[there : there + 3] = v[dof : dof + 3] - np.cross(spin, data.xipos[body] - data.xpos[body])
                found[there + 3 : there + 6] = data.xmat[body].reshape(3, 3).T @ spin
            elif kind == mujoco.mjtJoint.mjJNT_BALL:
                quat = data.qpos[mj.jnt_qposadr[i] : mj.jnt_qposadr[i] + 4]
                found[there : there + 3] = self._ball(i, quat).T @ v[dof : dof + 3]
            else:
                found[there] = v[dof]
        return found

    def actuated(self, base: Pair, qpos, qvel, act, ctrl, dt: float = 1.0e-6) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations by the actuators alone, in MuJoCo and here, where they are those of a step less those of the same robot without
        actuators, `base`."""
        self.mj.opt.timestep = dt
        self.set(qpos, qvel, act, ctrl)
        base.set(qpos, qvel, [], np.zeros(base.mj.nu))
        theirs = np.zeros((1, self.mj.nv))
        mujoco.mj_solveM(self.mj, self.data, theirs, self.data.qfrc_actuator.reshape(1, -1))
        for pair in (self, base):
            pair.step(dt)
        self.state.joint_qd.assign((self.state.joint_qd.numpy() - base.state.joint_qd.numpy()) / dt)
        return theirs[0], self.velocities()

    def random(self, rng) -> tuple:
        """Random coordinates, velocities, activations and controls."""
        mj = self.mj
        qpos = self.mj.qpos0 + 0.5 * rng.normal(size=mj.nq)
        return qpos, rng.normal(size=mj.nv), rng.uniform(0.0, 1.0, mj.na), rng.uniform(-1.0, 1.0, mj.nu)
