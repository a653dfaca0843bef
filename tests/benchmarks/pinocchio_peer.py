"""Pinocchio's dynamics of the robots of a model, for `bench_dynamics`; pinocchio comes with the extra `peers`."""

from __future__ import annotations

import os

import numpy as np
import pinocchio as pin

from tests.support.pinocchio_bridge import PinocchioBridge
from tests.support.reference import FREE


class Peer:
    """Pinocchio on the robots of a model, with a joint for each axis."""

    def __init__(self, bridge: PinocchioBridge, q: np.ndarray, qd: np.ndarray, a: np.ndarray, tau: np.ndarray):
        tree = bridge.tree
        self.model = pin.Model()
        self.model.gravity = bridge.model.gravity
        carrier, place = {-1: 0}, {-1: pin.SE3.Identity()}
        for j in tree.parents_first():
            parent, child, dofs = int(tree.joint_parent[j]), int(tree.joint_child[j]), tree.qd_of(j)
            at, X = carrier[parent], place[parent] * _se3(tree.joint_X_p[j])
            if tree.joint_type[j] == FREE:
                at, X = self.model.addJoint(at, pin.JointModelFreeFlyer(), X, f"joint_{j}"), pin.SE3.Identity()
            else:
                for i, axis in enumerate(tree.joint_axis[dofs]):
                    at = self.model.addJoint(at, _hinge(axis), X, f"joint_{j}_{i}")
                    X = pin.SE3.Identity()
            carrier[child], place[child] = at, X * _se3(tree.joint_X_c[j]).inverse()
            inertia = pin.Inertia(tree.body_mass[child], tree.body_com[child], tree.body_inertia[child])
            self.model.appendBodyToJoint(at, inertia, place[child])
        self.model.armature = bridge.model.armature.copy()
        self.data, self.pool = self.model.createData(), pin.ModelPool(self.model, os.cpu_count() or 1)
        maps = [bridge.velocity_map(x, v) for x, v in zip(q, qd, strict=True)]
        self.q = np.asfortranarray(np.stack([bridge.q_pin(x) for x in q], axis=1))
        self.v = np.asfortranarray(np.stack([T @ v for (T, _), v in zip(maps, qd, strict=True)], axis=1))
        self.a = np.asfortranarray(np.stack([T @ x + d for (T, d), x in zip(maps, a, strict=True)], axis=1))
        self.tau = np.asfortranarray(
            np.stack([np.linalg.solve(T.T, f) for (T, _), f in zip(maps, tau, strict=True)], axis=1)
        )
        self.maps, self.out = maps, np.zeros_like(self.v, order="F")
        self.columns = [np.ascontiguousarray(x) for x in self.q.T]

    def inverse(self, threads: int) -> None:
        pin.rneaInParallel(threads, self.pool, self.q, self.v, self.a, self.out)

    def forward(self, threads: int) -> None:
        pin.abaInParallel(threads, self.pool, self.q, self.v, self.tau, self.out)

    def mass(self, threads: int) -> None:
        model, data, crba = self.model, self.data, pin.crba
        for q in self.columns:
            crba(model, data, q)


def _se3(x) -> pin.SE3:
    return pin.XYZQUATToSE3(np.asarray(x, dtype=np.float64))


def _hinge(axis):
    names = {(1, 0, 0): pin.JointModelRX, (0, 1, 0): pin.JointModelRY, (0, 0, 1): pin.JointModelRZ}
    aligned = names.get(tuple(np.round(axis, 12)))
    return aligned() if aligned else pin.JointModelRevoluteUnaligned(np.asarray(axis, dtype=np.float64))
