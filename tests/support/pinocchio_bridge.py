"""A model of newton_like as a pinocchio model (float64), and maps between their coordinates.

The child frame of a pinocchio joint is the child anchor of the link, at `joint_X_c` in the link frame.
FIXED joints have no pinocchio joint: their links are attached to the preceding joint.

Pinocchio's velocities of spherical and free-flyer joints are in the child's axes, and those of a free flyer are of the origin of
the joint frame. ``v = T(q) qd`` implies ``tau = T^T tau_pin``, ``M = T^T M_pin T`` and ``a = T qdd + drift``.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from .reference import BALL, DISTANCE, FIXED, FREE, PRISMATIC, REVOLUTE, Tree, com_in_child_anchor, pose_matrix


class PinocchioBridge:
    """One world of a finalized model in pinocchio.

    Args:
        model: A finalized model; entities of other worlds and joints outside of articulations are left out.
        world: The world to take.

    Attributes:
        tree: The arrays that were taken, and their indices in the model.
        model: The `pinocchio.Model`.
        data: Its `pinocchio.Data`.
    """

    def __init__(self, model, *, world: int = 0):
        self.tree = tree = Tree.from_model(model, world)
        self.model = pin.Model()
        self.model.gravity.linear = model.gravity.numpy()[world].astype(np.float64)
        # Joint of each link, and the link's pose in the joint frame.
        self._carrier, self._offset = {-1: 0}, {-1: np.eye(4)}
        self._joint_id = {}
        # Depth first, because pinocchio's crba needs contiguous velocities of each subtree.
        for j in tree.parents_first():
            self._add_joint(j)
        self.data = self.model.createData()

    def _add_joint(self, j: int) -> None:
        tree, kind = self.tree, self.tree.joint_type[j]
        parent, child, dofs = int(tree.joint_parent[j]), int(tree.joint_child[j]), tree.qd_of(j)
        X = self._offset[parent] @ pose_matrix(tree.joint_X_p[j])
        offset = np.linalg.inv(pose_matrix(tree.joint_X_c[j]))
        if kind == FIXED:
            self._carrier[child], self._offset[child] = self._carrier[parent], X @ offset
        else:
            if kind == BALL:
                joint = pin.JointModelSpherical()
            elif kind in (FREE, DISTANCE):
                joint = pin.JointModelFreeFlyer()
            else:
                linear = {PRISMATIC: 1, REVOLUTE: 0}.get(int(kind), int(tree.joint_dof_dim[j, 0]))
                joint = pin.JointModelComposite()
                for i, axis in enumerate(tree.joint_axis[dofs]):
                    one = pin.JointModelPrismaticUnaligned if i < linear else pin.JointModelRevoluteUnaligned
                    joint.addJoint(one(axis))
            self._carrier[child] = self.model.addJoint(self._carrier[parent], joint, pin.SE3(X), f"joint_{j}")
            self._offset[child] = offset
            self._joint_id[j] = self._carrier[child]
            start = self.model.joints[self._carrier[child]].idx_v
            self._check_armature(j)
            armature = self.model.armature.copy()
            armature[start : start + dofs.stop - dofs.start] = tree.joint_armature[dofs]
            self.model.armature = armature
        inertia = pin.Inertia(tree.body_mass[child], tree.body_com[child], tree.body_inertia[child])
        self.model.appendBodyToJoint(self._carrier[child], inertia, pin.SE3(self._offset[child]))

    def _check_armature(self, j: int) -> None:
        armature = self.tree.joint_armature[self.tree.qd_of(j)]
        kind = self.tree.joint_type[j]
        if kind == BALL and np.ptp(armature) > 0.0:
            raise ValueError(f"joint {j}: armature that differs by direction turns with the parent, pinocchio's not")
        if kind in (FREE, DISTANCE) and np.any(armature):
            raise ValueError(f"joint {j}: pinocchio has no armature at the centre of mass of a free body")

    def _blocks(self):
        for j, i in self._joint_id.items():
            joint = self.model.joints[i]
            at, to = slice(joint.idx_q, joint.idx_q + joint.nq), slice(joint.idx_v, joint.idx_v + joint.nv)
            yield j, self.tree.q_of(j), self.tree.qd_of(j), at, to

    def q_pin(self, q: np.ndarray) -> np.ndarray:
        """Pinocchio's configuration of our coordinates [coord]; the two order their quaternions alike."""
        result = np.zeros(self.model.nq)
        for _, s, _, at, _ in self._blocks():
            result[at] = q[s]
        return result

    def velocity_map(self, q: np.ndarray, qd: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """T [nv, dof] of ``v = T qd``, and drift [nv] of ``a = T qdd + drift``."""
        tree = self.tree
        T, drift = np.zeros((self.model.nv, tree.dof_count)), np.zeros(self.model.nv)
        qd = np.zeros(tree.dof_count) if qd is None else qd
        for j, s, v, _, to in self._blocks():
            kind = tree.joint_type[j]
            block = np.eye(v.stop - v.start)
            if kind == BALL:
                block = Rotation.from_quat(q[s]).as_matrix().T
            elif kind in (FREE, DISTANCE):
                R = Rotation.from_quat(q[s][3:]).as_matrix()
                # R^T (v - w x R r), and its derivative at v' = w' = 0 is -R^T (w x v).
                x, y, z = R @ com_in_child_anchor(tree, j)
                block[:3, :3] = block[3:, 3:] = R.T
                block[:3, 3:] = R.T @ [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]
                drift[to][:3] = -R.T @ np.cross(qd[v][3:], qd[v][:3])
            T[to, v] = block
        return T, drift

    def body_q(self, q: np.ndarray) -> np.ndarray:
        """Poses [body, 7] of our link frames."""
        pin.forwardKinematics(self.model, self.data, self.q_pin(q))
        poses = np.zeros((self.tree.body_count, 7))
        for b in range(self.tree.body_count):
            X = self.data.oMi[self._carrier[b]].homogeneous @ self._offset[b]
            poses[b] = [*X[:3, 3], *Rotation.from_matrix(X[:3, :3]).as_quat()]
        return poses

    def body_qd(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Velocities [body, 6] of centre of mass and rotation, in world axes."""
        pin.forwardKinematics(self.model, self.data, self.q_pin(q), self.velocity_map(q)[0] @ qd)
        velocities = np.zeros((self.tree.body_count, 6))
        for b in range(self.tree.body_count):
            i = self._carrier[b]
            arm = (self._offset[b] @ np.append(self.tree.body_com[b], 1.0))[:3]
            R, v = self.data.oMi[i].rotation, self.data.v[i]
            velocities[b] = [*(R @ (v.linear + np.cross(v.angular, arm))), *(R @ v.angular)]
        return velocities

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """M [dof, dof] in our velocities, armature included."""
        M, T = pin.crba(self.model, self.data, self.q_pin(q)), self.velocity_map(q)[0]
        M = np.triu(M) + np.triu(M, 1).T
        return T.T @ M @ T

    def inverse_dynamics(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """``M qdd + bias`` [dof] in our velocities."""
        T, drift = self.velocity_map(q, qd)
        return T.T @ pin.rnea(self.model, self.data, self.q_pin(q), T @ qd, T @ qdd + drift)

    def bias_forces(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Coriolis, centrifugal and gravity forces [dof]."""
        return self.inverse_dynamics(q, qd, np.zeros(self.tree.dof_count))

    def forward_dynamics(self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray | None = None) -> np.ndarray:
        """Accelerations [dof] under generalized forces [dof]; no passive forces, no constraints."""
        T, drift = self.velocity_map(q, qd)
        force = np.zeros(self.model.nv) if tau is None else np.linalg.solve(T.T, tau)
        return np.linalg.solve(T, pin.aba(self.model, self.data, self.q_pin(q), T @ qd, force) - drift)
