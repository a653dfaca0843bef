"""Reference kinematics and dynamics of trees from definitions, with dense matrices in float64.

Every pose along a motion is a polynomial of degree two in time, ``X(t) = X0 + X1 t + X2 t^2`` (a 4 x 4 matrix each),
and poses compose by the product of polynomials. Its coefficients give velocities and accelerations, which are
exact to rounding without formulas of spatial algebra. Dynamics follows d'Alembert's principle: forces of inertia and
gravity on each body, projected by its Jacobian.

This file does not import newton_like: `Tree.from_model` only reads arrays by name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

PRISMATIC, REVOLUTE, BALL, FIXED, FREE, DISTANCE, D6 = range(7)

PER_BODY = ("body_mass", "body_com", "body_inertia")
PER_JOINT = ("joint_type", "joint_X_p", "joint_X_c", "joint_dof_dim")
PER_DOF = (
    "joint_axis",
    "joint_armature",
    "joint_damping",
    "joint_stiffness",
    "joint_friction",
    "joint_limit_lower",
    "joint_limit_upper",
)


@dataclass
class Tree:
    """The arrays of a model for kinematics and dynamics, in float64, without loop joints."""

    body_mass: np.ndarray
    body_com: np.ndarray
    body_inertia: np.ndarray
    body_gravity: np.ndarray
    joint_type: np.ndarray
    joint_parent: np.ndarray
    joint_child: np.ndarray
    joint_X_p: np.ndarray
    joint_X_c: np.ndarray
    joint_dof_dim: np.ndarray
    joint_q_start: np.ndarray
    joint_qd_start: np.ndarray
    joint_axis: np.ndarray
    joint_armature: np.ndarray
    joint_damping: np.ndarray
    joint_stiffness: np.ndarray
    joint_rest_q: np.ndarray
    joint_friction: np.ndarray
    joint_limit_lower: np.ndarray
    joint_limit_upper: np.ndarray
    bodies: np.ndarray
    """Index of each body in the model."""
    coords: np.ndarray
    """Index of each coordinate in the model's `joint_q`."""
    dofs: np.ndarray
    """Index of each velocity in the model's `joint_qd`."""

    @classmethod
    def from_model(cls, model, world: int | None = None) -> Tree:
        """The trees of one world (with the bodies of world -1), or of all worlds."""

        def read(name):
            value = getattr(model, name).numpy()
            return value.astype(np.float64 if value.dtype.kind == "f" else np.int64)

        body_world, parent, child = read("body_world"), read("joint_parent"), read("joint_child")
        in_world = np.ones(len(body_world), bool) if world is None else np.isin(body_world, (world, -1))
        bodies = np.flatnonzero(in_world)
        joints = np.flatnonzero(in_world[child] & (read("joint_articulation") >= 0))
        q_start, qd_start = read("joint_q_start"), read("joint_qd_start")
        coords = [np.arange(q_start[j], q_start[j + 1]) for j in joints]
        dofs = [np.arange(qd_start[j], qd_start[j + 1]) for j in joints]
        all_coords, all_dofs = _join(coords), _join(dofs)
        local = {-1: -1} | {int(b): i for i, b in enumerate(bodies)}
        return cls(
            body_gravity=read("gravity")[np.maximum(body_world[bodies], 0)],
            joint_parent=np.array([local[int(b)] for b in parent[joints]], np.int64),
            joint_child=np.array([local[int(b)] for b in child[joints]], np.int64),
            joint_q_start=np.cumsum([0, *map(len, coords)]),
            joint_qd_start=np.cumsum([0, *map(len, dofs)]),
            bodies=bodies,
            coords=all_coords,
            dofs=all_dofs,
            **{name: read(name)[bodies] for name in PER_BODY},
            **{name: read(name)[joints] for name in PER_JOINT},
            joint_rest_q=read("joint_rest_q")[all_coords],
            **{name: read(name)[all_dofs] for name in PER_DOF},
        )

    @property
    def body_count(self) -> int:
        return len(self.body_mass)

    @property
    def joint_count(self) -> int:
        return len(self.joint_type)

    @property
    def coord_count(self) -> int:
        return int(self.joint_q_start[-1])

    @property
    def dof_count(self) -> int:
        return int(self.joint_qd_start[-1])

    def q_of(self, j: int) -> slice:
        return slice(self.joint_q_start[j], self.joint_q_start[j + 1])

    def qd_of(self, j: int) -> slice:
        return slice(self.joint_qd_start[j], self.joint_qd_start[j + 1])

    def parents_first(self) -> list[int]:
        """The joints in depth-first order, parents before children."""
        order, bodies = [], [-1]
        while bodies:
            body = bodies.pop()
            order += [j for j in range(self.joint_count) if self.joint_child[j] == body >= 0]
            bodies += [int(c) for c in self.joint_child[self.joint_parent == body]]
        if len(order) != self.joint_count:
            raise ValueError(f"joints {sorted(set(range(self.joint_count)) - set(order))} hang on no tree")
        return order


def _join(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def pose_matrix(X: np.ndarray) -> np.ndarray:
    """The 4 x 4 matrix of a transform (position, quaternion xyzw)."""
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_quat(X[3:]).as_matrix()
    matrix[:3, 3] = X[:3]
    return matrix


def matrix_pose(matrix: np.ndarray) -> np.ndarray:
    """The transform (position, quaternion xyzw) of a 4 x 4 matrix."""
    return np.concatenate([matrix[:3, 3], Rotation.from_matrix(matrix[:3, :3]).as_quat()])


def cross_matrix(w: np.ndarray) -> np.ndarray:
    """The matrix of ``w x``."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def com_in_child_anchor(tree: Tree, j: int) -> np.ndarray:
    """The child's centre of mass in the child's joint frame."""
    com = np.append(tree.body_com[tree.joint_child[j]], 1.0)
    return (np.linalg.inv(pose_matrix(tree.joint_X_c[j])) @ com)[:3]


def _compose(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.stack([sum(a[i] @ b[k - i] for i in range(k + 1)) for k in range(3)])


def _motion(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    X = np.zeros((3, 4, 4))
    X[:, :3, :3], X[:, :3, 3], X[0, 3, 3] = R, p, 1.0
    return X


def _turning(R0: np.ndarray, w: np.ndarray, wd: np.ndarray) -> np.ndarray:
    """R(t) that solves R' = [w(t)] R with w(t) = w + wd t."""
    W = cross_matrix(w)
    return np.stack([R0, W @ R0, 0.5 * (cross_matrix(wd) + W @ W) @ R0])


def _joint_motion(tree: Tree, j: int, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    kind = tree.joint_type[j]
    still = np.stack([np.eye(3), np.zeros((3, 3)), np.zeros((3, 3))])
    if kind == BALL:
        return _motion(_turning(Rotation.from_quat(q).as_matrix(), qd, qdd), np.zeros((3, 3)))
    if kind in (FREE, DISTANCE):
        R = _turning(Rotation.from_quat(q[3:]).as_matrix(), qd[3:], qdd[3:])
        arm = np.einsum("kij,j->ki", R, com_in_child_anchor(tree, j))
        com = np.stack([q[:3] + arm[0], qd[:3], 0.5 * qdd[:3]])
        return _motion(R, com - arm)
    linear = {PRISMATIC: 1, REVOLUTE: 0, FIXED: 0, D6: int(tree.joint_dof_dim[j, 0])}[kind]
    X = _motion(still, np.zeros((3, 3)))
    for i, axis in enumerate(tree.joint_axis[tree.qd_of(j)]):
        if i < linear:
            X = _compose(X, _motion(still, np.outer([q[i], qd[i], 0.5 * qdd[i]], axis)))
        else:
            R0 = Rotation.from_rotvec(q[i] * axis).as_matrix()
            X = _compose(X, _motion(_turning(R0, qd[i] * axis, qdd[i] * axis), np.zeros((3, 3))))
    return X


def body_motion(tree: Tree, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Coefficients [body, power of t, 4, 4] of the body frames' poses in the world."""
    X = np.zeros((tree.body_count, 3, 4, 4))
    world = _motion(np.stack([np.eye(3), np.zeros((3, 3)), np.zeros((3, 3))]), np.zeros((3, 3)))
    X[:] = world
    for j in tree.parents_first():
        parent, child, s, v = tree.joint_parent[j], tree.joint_child[j], tree.q_of(j), tree.qd_of(j)
        X_wp = X[parent] if parent >= 0 else world
        X_pc = pose_matrix(tree.joint_X_p[j]) @ _joint_motion(tree, j, q[s], qd[v], qdd[v])
        X[child] = _compose(X_wp, X_pc @ np.linalg.inv(pose_matrix(tree.joint_X_c[j])))
    return X


def body_poses(tree: Tree, q: np.ndarray) -> np.ndarray:
    """`body_q` [body, 7]."""
    zero = np.zeros(tree.dof_count)
    return np.array([matrix_pose(X[0]) for X in body_motion(tree, q, zero, zero)]).reshape(-1, 7)


def _twists(tree: Tree, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Velocity and acceleration [body, 6] of centre of mass and rotation, in world axes."""
    R, c = X[:, :, :3, :3], np.einsum("bkij,bj->bki", X[:, :, :3, :3], tree.body_com) + X[:, :, :3, 3]
    W = np.einsum("bij,bkj->bik", R[:, 1], R[:, 0])
    # R'' R^T = [w'] + [w]^2, and the second term is symmetric.
    A = 2.0 * np.einsum("bij,bkj->bik", R[:, 2], R[:, 0])
    A = 0.5 * (A - A.transpose(0, 2, 1))

    def vector(S):
        return np.stack([S[:, 2, 1], S[:, 0, 2], S[:, 1, 0]], axis=1)

    return np.hstack([c[:, 1], vector(W)]), np.hstack([2.0 * c[:, 2], vector(A)])


def body_velocities(tree: Tree, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """`body_qd` [body, 6]: velocity of the centre of mass and angular velocity, in world axes."""
    return _twists(tree, body_motion(tree, q, qd, np.zeros(tree.dof_count)))[0]


def body_accelerations(tree: Tree, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Time derivative [body, 6] of `body_velocities` along a motion whose velocities have the derivative `qdd`."""
    return _twists(tree, body_motion(tree, q, qd, qdd))[1]


def jacobian(tree: Tree, q: np.ndarray) -> np.ndarray:
    """J [body, 6, dof] with ``body_velocities = J qd``."""
    columns = [body_velocities(tree, q, unit) for unit in np.eye(tree.dof_count)]
    return np.stack(columns, axis=2) if columns else np.zeros((tree.body_count, 6, 0))


def _world_inertia(tree: Tree, q: np.ndarray) -> np.ndarray:
    zero = np.zeros(tree.dof_count)
    R = body_motion(tree, q, zero, zero)[:, 0, :3, :3]
    return R @ tree.body_inertia @ R.transpose(0, 2, 1)


def mass_matrix(tree: Tree, q: np.ndarray) -> np.ndarray:
    """M [dof, dof], armature included."""
    J, inertia = jacobian(tree, q), _world_inertia(tree, q)
    M = np.einsum("b,bid,bie->de", tree.body_mass, J[:, :3], J[:, :3])
    return M + np.einsum("bid,bij,bje->de", J[:, 3:], inertia, J[:, 3:]) + np.diag(tree.joint_armature)


def inverse_dynamics(
    tree: Tree, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, body_f: np.ndarray | None = None
) -> np.ndarray:
    """Generalized forces [dof] that make `qdd`, passive forces (`passive_forces`) among them: ``M qdd + bias``."""
    v, a = _twists(tree, body_motion(tree, q, qd, qdd))
    inertia, w = _world_inertia(tree, q), v[:, 3:]
    spin = np.einsum("bij,bj->bi", inertia, w)
    force = tree.body_mass[:, None] * (a[:, :3] - tree.body_gravity)
    torque = np.einsum("bij,bj->bi", inertia, a[:, 3:]) + np.cross(w, spin)
    wrench = np.hstack([force, torque])
    if body_f is not None:
        wrench = wrench - body_f
    return np.einsum("bid,bi->d", jacobian(tree, q), wrench) + tree.joint_armature * qdd


def bias_forces(tree: Tree, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Coriolis, centrifugal and gravity forces [dof]: `inverse_dynamics` at ``qdd = 0``."""
    return inverse_dynamics(tree, q, qd, np.zeros(tree.dof_count))


def spring_offsets(tree: Tree, q: np.ndarray) -> np.ndarray:
    """Displacement of each dof from the rest position of its spring [dof]; BALL: the rotation vector from rest, in the parent anchor."""
    offset = np.zeros(tree.dof_count)
    for j in range(tree.joint_count):
        s, v = tree.q_of(j), tree.qd_of(j)
        if tree.joint_type[j] == BALL:
            rest = Rotation.from_quat(tree.joint_rest_q[s])
            offset[v] = (Rotation.from_quat(q[s]) * rest.inv()).as_rotvec()
        elif tree.joint_type[j] in (FREE, DISTANCE):
            if np.any(tree.joint_stiffness[v]):
                raise ValueError(f"joint {j} is free and has a spring; there is no law for it")
        else:
            offset[v] = q[s] - tree.joint_rest_q[s]
    return offset


def passive_forces(tree: Tree, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Damping, and springs about `joint_rest_q` [dof]."""
    return -tree.joint_damping * qd - tree.joint_stiffness * spring_offsets(tree, q)


def spring_energy(tree: Tree, q: np.ndarray) -> float:
    """Energy of the springs. A BALL joint has a spring energy only if its three stiffnesses are equal."""
    return 0.5 * float(tree.joint_stiffness @ spring_offsets(tree, q) ** 2)


def generalized_forces(tree: Tree, q: np.ndarray, joint_f: np.ndarray) -> np.ndarray:
    """`joint_f` as forces conjugate to `qd`: wrenches of FREE and DISTANCE joints are rotated from the world to the parent anchor."""
    tau, poses = np.array(joint_f, np.float64), body_poses(tree, q)
    for j in range(tree.joint_count):
        if tree.joint_type[j] in (FREE, DISTANCE):
            parent, s = tree.joint_parent[j], tree.qd_of(j)
            R = pose_matrix(tree.joint_X_p[j])[:3, :3]
            if parent >= 0:
                R = pose_matrix(poses[parent])[:3, :3] @ R
            tau[s] = np.concatenate([R.T @ tau[s][:3], R.T @ tau[s][3:]])
    return tau


def forward_dynamics(
    tree: Tree, q: np.ndarray, qd: np.ndarray, tau: np.ndarray | None = None, body_f: np.ndarray | None = None
) -> np.ndarray:
    """Accelerations [dof] under generalized forces, wrenches and passive forces; no dry friction, no limits."""
    force = passive_forces(tree, q, qd) - inverse_dynamics(tree, q, qd, np.zeros(tree.dof_count), body_f)
    return np.linalg.solve(mass_matrix(tree, q), force if tau is None else force + tau)


def kinetic_energy(tree: Tree, q: np.ndarray, qd: np.ndarray) -> float:
    """Energy of motion of the bodies and of the armature."""
    v, inertia = body_velocities(tree, q, qd), _world_inertia(tree, q)
    moving = tree.body_mass @ (v[:, :3] ** 2).sum(axis=1) + np.einsum("bi,bij,bj->", v[:, 3:], inertia, v[:, 3:])
    return 0.5 * float(moving + tree.joint_armature @ qd**2)


def _centres(tree: Tree, q: np.ndarray) -> np.ndarray:
    poses = body_poses(tree, q)
    return poses[:, :3] + Rotation.from_quat(poses[:, 3:]).apply(tree.body_com)


def potential_energy(tree: Tree, q: np.ndarray) -> float:
    """Energy of gravity, zero at the origin of the world."""
    return -float(np.einsum("b,bi,bi->", tree.body_mass, tree.body_gravity, _centres(tree, q)))


def momentum(tree: Tree, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Linear momentum, and angular momentum about the origin of the world [6]; armature has none."""
    v, inertia = body_velocities(tree, q, qd), _world_inertia(tree, q)
    linear = tree.body_mass[:, None] * v[:, :3]
    angular = np.cross(_centres(tree, q), linear) + np.einsum("bij,bj->bi", inertia, v[:, 3:])
    return np.concatenate([linear.sum(axis=0), angular.sum(axis=0)])


def displace(tree: Tree, q: np.ndarray, qd: np.ndarray, dt: float) -> np.ndarray:
    """Coordinates on a smooth curve through `q` with velocities `qd` at ``dt = 0``, for finite differences."""
    moved = np.array(q, np.float64)

    def turned(quaternion, w):
        return (Rotation.from_rotvec(dt * w) * Rotation.from_quat(quaternion)).as_quat()

    for j in range(tree.joint_count):
        s, v, kind = tree.q_of(j), qd[tree.qd_of(j)], tree.joint_type[j]
        if kind == BALL:
            moved[s] = turned(q[s], v)
        elif kind in (FREE, DISTANCE):
            r, old, new = com_in_child_anchor(tree, j), q[s][3:], turned(q[s][3:], v[3:])
            com = q[s][:3] + Rotation.from_quat(old).apply(r) + dt * v[:3]
            moved[s] = np.concatenate([com - Rotation.from_quat(new).apply(r), new])
        else:
            moved[s] = q[s] + dt * v
    return moved
