"""The same MJCF in MuJoCo and in newton_like: maps between their coordinates, and comparisons of masses and motion.

``qvel = T(q) qd`` implies ``tau = T^T tau_mj``, ``M = T^T M_mj T`` and ``qacc = T qdd + drift``. MuJoCo's angular
velocities of ball and free joints are in the child's axes, and the linear velocity of a free joint is that of the body's
origin, not of the centre of mass.
"""

from __future__ import annotations

import warnings

import mujoco
import numpy as np
import warp as wp
from scipy.spatial.transform import Rotation

from newton_like import dynamics
from newton_like.kinematics import eval_fk
from newton_like.model.builder.builder import ModelBuilder

_FREE, _BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)


class MjcfPeer:
    """One model in both engines.

    Args:
        source: path of a file or XML text.
        assets: files that a text names, for MuJoCo (newton_like reads them from ``package_dirs``).
        options: options of ``add_mjcf``.

    Attributes:
        builder, report, model: objects of newton_like, with float64 and the general evaluator.
        mj, data: objects of MuJoCo.
    """

    def __init__(self, source, assets=None, **options):
        text = str(source)
        if text.lstrip().startswith("<"):
            self.mj = mujoco.MjModel.from_xml_string(text, assets or {})
        else:
            self.mj = mujoco.MjModel.from_xml_path(text)
        self.data = mujoco.MjData(self.mj)
        self.builder = ModelBuilder()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.report = self.builder.add_mjcf(source, **options)
        self._model = None

    @property
    def model(self):
        if self._model is None:
            self._model = self.builder.finalize(device="cpu", dtype=wp.float64)
            self._model.evaluator = "general"
        return self._model

    def body_name(self, i: int) -> str:
        return self.mj.body(i).name or f"body_{i}"

    def joint_name(self, j: int) -> str:
        """Name of a joint, or the name that the importer assigns."""
        body = int(self.mj.jnt_bodyid[j])
        number = j - int(self.mj.body_jntadr[body])
        return self.mj.joint(j).name or f"{self.body_name(body)}_joint" + (f"_{number}" if number else "")

    def random_state(self, rng) -> None:
        """Sets random coordinates and velocities in MuJoCo's data."""
        mj, data = self.mj, self.data
        for j in range(mj.njnt):
            at = mj.jnt_qposadr[j]
            if mj.jnt_type[j] == _FREE:
                data.qpos[at : at + 3] = rng.normal(size=3)
                data.qpos[at + 3 : at + 7] = Rotation.random(None, rng).as_quat(scalar_first=True)
            elif mj.jnt_type[j] == _BALL:
                data.qpos[at : at + 4] = Rotation.random(None, rng).as_quat(scalar_first=True)
            else:
                data.qpos[at] = rng.uniform(-1.2, 1.2)
        data.qvel[:] = rng.normal(size=mj.nv)
        mujoco.mj_forward(mj, data)

    def joint_q(self) -> np.ndarray:
        """MuJoCo's ``qpos`` as coordinates of the model."""
        q = np.array(self.builder.joint_q)
        for j in range(self.mj.njnt):
            at, to = self.mj.jnt_qposadr[j], self.report.coords[self.joint_name(j)]
            if self.mj.jnt_type[j] == _FREE:
                q[to : to + 3] = self.data.qpos[at : at + 3]
                at, to = at + 3, to + 3
            if self.mj.jnt_type[j] in (_FREE, _BALL):
                q[to : to + 4] = np.roll(self.data.qpos[at : at + 4], -1)
            else:
                q[to] = self.data.qpos[at]
        return q

    def velocity_map(self, qd=None) -> tuple[np.ndarray, np.ndarray]:
        """``T`` and ``drift`` at MuJoCo's ``qpos``; columns of dofs of loop joints are zero."""
        mj = self.mj
        T, drift = np.zeros((mj.nv, self.model.joint_dof_count)), np.zeros(mj.nv)
        for j in range(mj.njnt):
            at, to, qa = mj.jnt_dofadr[j], self.report.dofs[self.joint_name(j)], mj.jnt_qposadr[j]
            if mj.jnt_type[j] == _BALL:
                R = Rotation.from_quat(self.data.qpos[qa : qa + 4], scalar_first=True).as_matrix()
                T[at : at + 3, to : to + 3] = R.T
            elif mj.jnt_type[j] == _FREE:
                R = Rotation.from_quat(self.data.qpos[qa + 3 : qa + 7], scalar_first=True).as_matrix()
                body = self.report.links[self.body_name(int(mj.jnt_bodyid[j]))]
                x, y, z = arm = R @ np.array(self.builder.body_com[body])
                T[at : at + 3, to : to + 3] = np.eye(3)
                T[at : at + 3, to + 3 : to + 6] = [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]
                T[at + 3 : at + 6, to + 3 : to + 6] = R.T
                if qd is not None:
                    w = qd[to + 3 : to + 6]
                    drift[at : at + 3] = -np.cross(w, np.cross(w, arm))
            else:
                T[at, to] = 1.0
        return T, drift

    def state(self):
        """A state of the model with MuJoCo's coordinates and velocities, after forward kinematics."""
        state = self.model.state()
        state.joint_q.assign(self.joint_q())
        qd = np.linalg.lstsq(self.velocity_map()[0], self.data.qvel, rcond=None)[0]
        state.joint_qd.assign(qd)
        eval_fk(self.model, state.joint_q, state.joint_qd, state)
        return state

    def _dense(self, blocks, rank: int) -> np.ndarray:
        """Blocks of articulations as one array over all dofs."""
        count = self.model.joint_dof_count
        result = np.zeros((count,) * rank)
        starts = self.model.joint_qd_start.numpy()
        for a, block in enumerate(blocks.numpy()):
            first = self.model.articulation_start.numpy()[a]
            low, high = starts[first], starts[self.model.articulation_end.numpy()[a]]
            n = high - low
            result[(slice(low, high),) * rank] = block[(slice(0, n),) * rank]
        # mocap bodies have no dofs in MuJoCo
        for joint in self.report.mocaps.values():
            own = slice(starts[joint], starts[joint] + 6)
            result[own] = 0.0
            result[..., own] = 0.0
        return result

    def check_masses(self, tolerance: float = 1e-6) -> None:
        """Checks masses, total mass, centres and inertias, relative to their sizes."""
        mj, builder = self.mj, self.builder
        for i in range(1, mj.nbody):
            link, pose = self.report.frames[self.body_name(i)]
            name = self.body_name(i)
            assert link >= 0, name
            assert np.allclose(pose, [0, 0, 0, 0, 0, 0, 1]), name
            R = Rotation.from_quat(mj.body_iquat[i], scalar_first=True).as_matrix()
            inertia = R @ np.diag(mj.body_inertia[i]) @ R.T
            np.testing.assert_allclose(builder.body_mass[link], mj.body_mass[i], rtol=tolerance, atol=0, err_msg=name)
            if not mj.body_mass[i]:
                continue  # the centre of a body without mass is arbitrary
            size = max(np.abs(mj.body_ipos[i]).max(), np.sqrt(np.abs(inertia).max() / max(mj.body_mass[i], 1e-300)))
            np.testing.assert_allclose(builder.body_com[link], mj.body_ipos[i], atol=tolerance * size, err_msg=name)
            np.testing.assert_allclose(
                builder.body_inertia[link], inertia, atol=tolerance * np.abs(inertia).max(), err_msg=name
            )
        np.testing.assert_allclose(sum(builder.body_mass), mj.body_mass.sum(), rtol=tolerance)

    def check_poses(self, rng, tolerance: float = 1e-9) -> None:
        """Checks frames of bodies, geoms and sites in a random state. Positions are in metres, and scenes have a size of a few metres."""
        self.random_state(rng)
        state = self.state()
        poses = {-1: np.eye(4)}
        for b, x in enumerate(state.body_q.numpy()):
            poses[b] = _matrix(x)
        for i in range(self.mj.nbody):
            link, pose = self.report.frames[self.body_name(i)]
            self._compare(
                poses[link] @ _matrix(pose), self.data.xpos[i], self.data.xmat[i], tolerance, self.body_name(i)
            )
        kinds = (("geom", self.mj.ngeom, self.report.shapes), ("site", self.mj.nsite, self.report.sites))
        for kind, count, shapes in kinds:
            for i in range(count):
                name = getattr(self.mj, kind)(i).name or f"{kind}_{i}"
                if name not in shapes or (kind == "geom" and self.mj.geom_dataid[i] >= 0):
                    continue  # MuJoCo moves the frames of meshes to their inertial frames
                shape = shapes[name]
                X = poses[self.builder.shape_body[shape]] @ _matrix(self.builder.shape_transform[shape])
                at, turned = getattr(self.data, f"{kind}_xpos")[i], getattr(self.data, f"{kind}_xmat")[i]
                self._compare(X, at, turned, tolerance, name)

    @staticmethod
    def _compare(X, at, turned, tolerance, name):
        np.testing.assert_allclose(X[:3, 3], at, atol=tolerance, err_msg=name)
        np.testing.assert_allclose(X[:3, :3], turned.reshape(3, 3), atol=tolerance, err_msg=name)

    def check_dynamics(self, rng, tolerance: float = 1e-6) -> None:
        """Checks mass matrix and bias forces in a random state, relative to their largest entries."""
        if not self.mj.nv:
            return
        self.random_state(rng)
        state = self.state()
        qd = state.joint_qd.numpy()
        T, drift = self.velocity_map(qd)
        M = np.zeros((self.mj.nv, self.mj.nv))
        for i, unit in enumerate(np.eye(self.mj.nv)):
            mujoco.mj_mulM(self.mj, self.data, M[i], unit)
        ours = self._dense(dynamics.mass_matrix(self.model, state), 2)
        np.testing.assert_allclose(ours, T.T @ M @ T, atol=tolerance * np.abs(M).max())
        bias = self._dense(dynamics.bias_forces(self.model, state), 1)
        wanted = T.T @ (self.data.qfrc_bias + M @ drift)
        np.testing.assert_allclose(bias, wanted, atol=tolerance * (1e-3 + np.abs(wanted).max()))

    def check(self, rng, tolerance: float = 1e-6) -> None:
        """All checks."""
        self.check_masses(tolerance)
        self.check_poses(rng)
        self.check_dynamics(rng, tolerance)


def _matrix(x) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_quat(np.asarray(x)[3:]).as_matrix()
    matrix[:3, 3] = np.asarray(x)[:3]
    return matrix
