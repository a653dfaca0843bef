"""A model of newton_like as a MuJoCo model, and maps between their coordinates.

In MuJoCo joint axes are in the frame of the body. Therefore the frame of each MuJoCo body is the *joint frame* of its
link, and `joint_X_c` gives the link frame. A FREE or DISTANCE joint below another link becomes three slides and a ball.

MuJoCo's angular velocities of ball and free joints are in the child's axes, and the linear velocity of a free joint is
that of the body's origin, not of the centre of mass. ``qvel = T(q) qd`` implies ``tau = T^T tau_mj``,
``M = T^T M_mj T`` and ``qacc = T qdd + drift``.
"""

from __future__ import annotations

from collections import Counter

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from .reference import BALL, D6, DISTANCE, FIXED, FREE, PRISMATIC, REVOLUTE, Tree, com_in_child_anchor, pose_matrix

# Values of newton_like.GeoType.
PLANE, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH, CONVEX_MESH = 1, 3, 4, 5, 6, 7, 8, 10

_UNLIMITED = 1e9
_JOINT, _GEOM = mujoco.mjtJoint, mujoco.mjtGeom


def _wxyz(xyzw: np.ndarray) -> np.ndarray:
    return np.roll(xyzw, 1, axis=-1)


def _xyzw(wxyz: np.ndarray) -> np.ndarray:
    return np.roll(wxyz, -1, axis=-1)


def _quat(R: np.ndarray) -> np.ndarray:
    return _wxyz(Rotation.from_matrix(R).as_quat())


def _solref(time_constant: float, damping_ratio: float) -> list[float]:
    """MuJoCo's `solref` of the same stiffness and of at most critical damping, for which MuJoCo has its lower bound of 2 dt."""
    ratio = min(damping_ratio, 1.0)
    return [time_constant / ratio, ratio]


def _set_law(joint, name: str, value: float) -> None:
    """Sets a linear coefficient; later versions of MuJoCo have polynomial coefficients."""
    setattr(joint, name, [value, 0.0, 0.0] if np.ndim(getattr(joint, name)) else value)


def to_mujoco(model, **options) -> mujoco.MjModel:
    """The MuJoCo model of `MujocoBridge`, for tests without maps."""
    return MujocoBridge(model, **options).model


class MujocoBridge:
    """One world of a finalized model in MuJoCo.

    Args:
        model: A finalized model; entities of other worlds and joints outside of articulations are left out.
        world: The world to convert; shapes of world -1 belong to every world.
        contacts: Enable contacts between shapes of bodies and static shapes, with the shapes' friction and softness.
        between_bodies: Enable contacts between shapes of different bodies, too, except those of bodies all of whose pairs of shapes are
            in `Model.shape_collision_filter_pairs`.
        limits: Enforce joint limits.
        friction: Enforce dry friction of joints.
        drives: Add an actuator per axis of PRISMATIC, REVOLUTE and D6 joints: force ``ke (target_q - q) +
            kd (target_qd - qd) + f`` clipped to the effort limit; `ctrl` computes its control.

    Attributes:
        tree: The arrays that were taken, and their indices in the model.
        model: The `mujoco.MjModel`.
        data: A `mujoco.MjData` that the methods below use.
    """

    def __init__(
        self, model, *, world: int = 0, contacts=False, between_bodies=False, limits=False, friction=False, drives=False
    ):
        self.tree = tree = Tree.from_model(model, world)
        self._options = {"limits": limits, "friction": friction}
        spec = mujoco.MjSpec()
        spec.compiler.degree = False
        spec.compiler.boundmass = spec.compiler.boundinertia = 0.0
        spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
        spec.option.gravity = model.gravity.numpy()[world].astype(np.float64)
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC

        self._joint_of = {int(c): j for j, c in enumerate(tree.joint_child)}
        placed = {-1: spec.worldbody}
        for j in tree.parents_first():
            placed[int(tree.joint_child[j])] = self._add_body(spec, placed, j)
        if contacts:
            self._add_shapes(spec, model, placed, world, between_bodies)
            if between_bodies:
                self._exclude(spec, model, placed)
        if drives:
            self._add_drives(spec, model)

        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self.body_id = np.array([self.model.body(f"body_{i}").id for i in range(tree.body_count)], np.int64)
        # The first MuJoCo joint of each of ours; -1 for FIXED.
        first = [
            mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, f"joint_{j}_0") for j in range(tree.joint_count)
        ]
        self._qpos_start = [int(self.model.jnt_qposadr[i]) if i >= 0 else -1 for i in first]
        for j in np.flatnonzero(tree.joint_type == BALL):
            at = self.model.jnt_qposadr[first[j]]
            self.model.qpos_spring[at : at + 4] = _wxyz(tree.joint_rest_q[tree.q_of(j)])
        self._qvel_start = [int(self.model.jnt_dofadr[i]) if i >= 0 else -1 for i in first]

    def _child_frame(self, body: int) -> np.ndarray:
        """From the link frame to the MuJoCo body."""
        return pose_matrix(self.tree.joint_X_c[self._joint_of[body]]) if body >= 0 else np.eye(4)

    def _is_free_root(self, j: int) -> bool:
        return self.tree.joint_type[j] in (FREE, DISTANCE) and self.tree.joint_parent[j] < 0

    def _add_body(self, spec, placed, j):
        tree = self.tree
        parent, child = int(tree.joint_parent[j]), int(tree.joint_child[j])
        X = np.linalg.inv(self._child_frame(parent)) @ pose_matrix(tree.joint_X_p[j])
        body = placed[parent].add_body(name=f"body_{child}", pos=X[:3, 3], quat=_quat(X[:3, :3]))
        body.explicitinertial = True
        body.mass = tree.body_mass[child]
        body.ipos = com_in_child_anchor(tree, j)
        R = pose_matrix(tree.joint_X_c[j])[:3, :3]
        I = R.T @ tree.body_inertia[child] @ R
        body.fullinertia = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]

        kind, dofs = tree.joint_type[j], tree.qd_of(j)
        if kind in (PRISMATIC, REVOLUTE, D6):
            linear = {PRISMATIC: 1, REVOLUTE: 0, D6: tree.joint_dof_dim[j, 0]}[kind]
            for i, d in enumerate(range(dofs.start, dofs.stop)):
                joint = body.add_joint(
                    name=f"joint_{j}_{i}",
                    type=_JOINT.mjJNT_SLIDE if i < linear else _JOINT.mjJNT_HINGE,
                    axis=tree.joint_axis[d],
                )
                self._set_dof(joint, d)
                joint.springref = tree.joint_rest_q[tree.q_of(j)][i]
                if self._options["limits"]:
                    low, high = tree.joint_limit_lower[d], tree.joint_limit_upper[d]
                    joint.limited = bool(low > -_UNLIMITED or high < _UNLIMITED)
                    joint.range = [low, high]
        elif kind == BALL:
            self._check_isotropic(j)
            joint = body.add_joint(name=f"joint_{j}_0", type=_JOINT.mjJNT_BALL)
            self._set_dof(joint, dofs.start)
        elif kind in (FREE, DISTANCE):
            for name in ("armature", "damping", "stiffness"):
                if np.any(getattr(tree, f"joint_{name}")[dofs]):
                    raise ValueError(f"joint {j}: MuJoCo has no {name} at the centre of mass of a free body")
            if self._is_free_root(j):
                body.add_joint(name=f"joint_{j}_0", type=_JOINT.mjJNT_FREE)
            else:
                for i, axis in enumerate(np.eye(3)):
                    body.add_joint(name=f"joint_{j}_{i}", type=_JOINT.mjJNT_SLIDE, axis=axis)
                body.add_joint(name=f"joint_{j}_3", type=_JOINT.mjJNT_BALL)
        elif kind != FIXED:
            raise ValueError(f"joint {j} has the unknown type {kind}")
        return body

    def _set_dof(self, joint, d: int):
        joint.armature = self.tree.joint_armature[d]
        _set_law(joint, "damping", self.tree.joint_damping[d])
        _set_law(joint, "stiffness", self.tree.joint_stiffness[d])
        if self._options["friction"]:
            joint.frictionloss = self.tree.joint_friction[d]

    def _check_isotropic(self, j: int):
        tree, dofs = self.tree, self.tree.qd_of(j)
        for name in ("armature", "damping", "friction", "stiffness"):
            if np.ptp(getattr(tree, f"joint_{name}")[dofs]) > 0.0:
                raise ValueError(f"joint {j}: a MuJoCo ball joint has one {name} for its three directions")

    def _add_shapes(self, spec, model, placed, world, between_bodies):
        read = {
            name: getattr(model, f"shape_{name}").numpy() for name in ("type", "body", "transform", "scale", "world")
        }
        material = {
            name: getattr(model, f"shape_material_{name}").numpy().astype(np.float64)
            for name in ("mu", "mu_torsional", "mu_rolling", "time_constant", "damping_ratio")
        }
        margin, flags = model.shape_margin.numpy(), model.shape_flags.numpy()
        local = {-1: -1} | {int(b): i for i, b in enumerate(self.tree.bodies)}
        collides = 2  # ShapeFlags.COLLIDE_SHAPES
        for s, kind in enumerate(read["type"]):
            if read["world"][s] not in (world, -1) or not flags[s] & collides:
                continue
            body = local[int(read["body"][s])]
            X = np.linalg.inv(self._child_frame(body)) @ pose_matrix(read["transform"][s].astype(np.float64))
            torsional, rolling = material["mu_torsional"][s], material["mu_rolling"][s]
            geom = placed[body].add_geom(
                name=f"shape_{s}",
                pos=X[:3, 3],
                quat=_quat(X[:3, :3]),
                friction=[material["mu"][s], torsional, rolling],
                condim=6 if rolling > 0.0 else 4 if torsional > 0.0 else 3,
                solref=_solref(material["time_constant"][s], material["damping_ratio"][s]),
                margin=float(margin[s]),
                contype=0 if body < 0 else 1,
                conaffinity=1 if body < 0 or between_bodies else 0,
            )
            a, b, c = (float(x) for x in read["scale"][s])
            if kind in (MESH, CONVEX_MESH):
                first, count = int(model.shape_hull_first.numpy()[s]), int(model.shape_hull_count.numpy()[s])
                points = model.hull_points.numpy()[first : first + count].astype(np.float64)
                spec.add_mesh(name=f"mesh_{s}", uservert=points.flatten())
                geom.type, geom.meshname = _GEOM.mjGEOM_MESH, f"mesh_{s}"
            elif kind == PLANE:
                geom.type, geom.size = _GEOM.mjGEOM_PLANE, [0.0, 0.0, 1.0]
            else:
                types = {
                    SPHERE: (_GEOM.mjGEOM_SPHERE, [a, 0.0, 0.0]),
                    CAPSULE: (_GEOM.mjGEOM_CAPSULE, [a, b, 0.0]),
                    CYLINDER: (_GEOM.mjGEOM_CYLINDER, [a, b, 0.0]),
                    BOX: (_GEOM.mjGEOM_BOX, [a, b, c]),
                    ELLIPSOID: (_GEOM.mjGEOM_ELLIPSOID, [a, b, c]),
                }
                if int(kind) not in types:
                    raise ValueError(f"shape {s} has type {kind}, which MuJoCo does not know")
                geom.type, geom.size = types[int(kind)]

    def _exclude(self, spec, model, placed):
        """Bodies of which no shapes may touch; MuJoCo itself leaves out parent and child, and what is fixed."""
        local = {-1: -1} | {int(b): i for i, b in enumerate(self.tree.bodies)}
        body_of = model.shape_body.numpy()
        shapes = {int(geom.name.removeprefix("shape_")) for geom in spec.geoms}
        owner = {s: local[int(body_of[s])] for s in shapes}
        filtered: dict[tuple[int, int], int] = {}
        for a, b in model.shape_collision_filter_pairs.to_array().tolist():
            if a in owner and b in owner and owner[a] != owner[b]:
                bodies = tuple(sorted((owner[a], owner[b])))
                filtered[bodies] = filtered.get(bodies, 0) + 1
        count = Counter(owner.values())
        for (a, b), pairs in filtered.items():
            if pairs < count[a] * count[b]:
                raise ValueError(
                    f"bodies {a} and {b}: {pairs} of their {count[a] * count[b]} pairs of shapes are filtered, but MuJoCo excludes whole "
                    "bodies; filter all of these pairs or none"
                )
            spec.add_exclude(bodyname1=placed[a].name, bodyname2=placed[b].name)

    def _add_drives(self, spec, model):
        tree = self.tree
        self._ke, self._kd, effort = (
            getattr(model, f"joint_{n}").numpy().astype(np.float64)[tree.dofs]
            for n in ("target_ke", "target_kd", "effort_limit")
        )
        self._driven, self._driven_coord = [], []
        for j in range(tree.joint_count):
            dofs = tree.qd_of(j)
            if tree.joint_type[j] not in (PRISMATIC, REVOLUTE, D6):
                continue
            for i, d in enumerate(range(dofs.start, dofs.stop)):
                spec.add_actuator(
                    name=f"drive_{d}",
                    target=f"joint_{j}_{i}",
                    trntype=mujoco.mjtTrn.mjTRN_JOINT,
                    gaintype=mujoco.mjtGain.mjGAIN_FIXED,
                    gainprm=[1.0] + [0.0] * 9,
                    biastype=mujoco.mjtBias.mjBIAS_AFFINE,
                    biasprm=[0.0, -self._ke[d], -self._kd[d]] + [0.0] * 7,
                    forcelimited=True,
                    forcerange=[-effort[d], effort[d]],
                )
                self._driven.append(d)
                self._driven_coord.append(tree.joint_q_start[j] + i)

    def ctrl(self, target_q: np.ndarray, target_qd: np.ndarray, force: np.ndarray) -> np.ndarray:
        """Controls [nu] of the drives from targets [coord], their rates [dof] and feed-forward forces [dof]."""
        d = self._driven
        return self._ke[d] * target_q[self._driven_coord] + self._kd[d] * target_qd[d] + force[d]

    def _blocks(self):
        tree = self.tree
        for j in range(tree.joint_count):
            if tree.joint_type[j] != FIXED:
                s, v = tree.q_of(j), tree.qd_of(j)
                at, to = self._qpos_start[j], self._qvel_start[j]
                yield j, s, v, slice(at, at + s.stop - s.start), slice(to, to + v.stop - v.start)

    def qpos(self, q: np.ndarray) -> np.ndarray:
        """MuJoCo's `qpos` of our coordinates [coord]."""
        qpos = np.zeros(self.model.nq)
        for j, s, _, at, _ in self._blocks():
            kind = self.tree.joint_type[j]
            qpos[at] = q[s]
            if kind == BALL:
                qpos[at] = _wxyz(q[s])
            elif kind in (FREE, DISTANCE):
                X = pose_matrix(q[s])
                if self._is_free_root(j):
                    X = pose_matrix(self.tree.joint_X_p[j]) @ X
                qpos[at] = [*X[:3, 3], *_quat(X[:3, :3])]
        return qpos

    def q(self, qpos: np.ndarray) -> np.ndarray:
        """Our coordinates of MuJoCo's `qpos`; quaternions up to sign."""
        q = np.zeros(self.tree.coord_count)
        for j, s, _, at, _ in self._blocks():
            kind = self.tree.joint_type[j]
            q[s] = qpos[at]
            if kind == BALL:
                q[s] = _xyzw(qpos[at])
            elif kind in (FREE, DISTANCE):
                X = pose_matrix(np.concatenate([qpos[at][:3], _xyzw(qpos[at][3:])]))
                if self._is_free_root(j):
                    X = np.linalg.inv(pose_matrix(self.tree.joint_X_p[j])) @ X
                q[s] = [*X[:3, 3], *_xyzw(_quat(X[:3, :3]))]
        return q

    def velocity_map(self, q: np.ndarray, qd: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """T [nv, dof] of ``qvel = T qd``, and drift [nv] of ``qacc = T qdd + drift``."""
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
                x, y, z = arm = R @ com_in_child_anchor(tree, j)
                w = qd[v][3:]
                # Origin: p' = v - w x arm, hence p'' = v' - w' x arm - w x (w x arm).
                block[:3, 3:] = [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]
                pull = -np.cross(w, np.cross(w, arm))
                if self._is_free_root(j):
                    P = pose_matrix(tree.joint_X_p[j])[:3, :3]
                    block[:3], pull = P @ block[:3], P @ pull
                block[3:, 3:] = R.T
                drift[to][:3] = pull
            T[to, v] = block
        return T, drift

    def qvel(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """MuJoCo's `qvel` of our velocities [dof]."""
        return self.velocity_map(q)[0] @ qd

    def qd(self, q: np.ndarray, qvel: np.ndarray) -> np.ndarray:
        """Our velocities [dof] of MuJoCo's `qvel`."""
        return np.linalg.solve(self.velocity_map(q)[0], qvel)

    def set_state(self, q: np.ndarray, qd: np.ndarray, data: mujoco.MjData | None = None) -> None:
        """Sets our coordinates and velocities in `data` (by default that of the bridge) and runs `mj_forward`."""
        data = self.data if data is None else data
        data.qpos[:], data.qvel[:] = self.qpos(q), self.qvel(q, qd)
        mujoco.mj_forward(self.model, data)

    def get_state(self, data: mujoco.MjData | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Our coordinates and velocities of `data`."""
        data = self.data if data is None else data
        q = self.q(data.qpos)
        return q, self.qd(q, data.qvel)

    def body_q(self, data: mujoco.MjData | None = None) -> np.ndarray:
        """Poses [body, 7] of our link frames, as of the last `mj_forward`."""
        data = self.data if data is None else data
        poses = np.zeros((self.tree.body_count, 7))
        for b, i in enumerate(self.body_id):
            X = np.eye(4)
            X[:3, :3], X[:3, 3] = data.xmat[i].reshape(3, 3), data.xpos[i]
            X = X @ np.linalg.inv(self._child_frame(b))
            poses[b] = [*X[:3, 3], *Rotation.from_matrix(X[:3, :3]).as_quat()]
        return poses

    def body_qd(self, data: mujoco.MjData | None = None) -> np.ndarray:
        """Velocities [body, 6] of centre of mass and rotation in world axes, as of the last `mj_forward`."""
        data = self.data if data is None else data
        velocities, one = np.zeros((self.tree.body_count, 6)), np.zeros(6)
        for b, i in enumerate(self.body_id):
            # Object type BODY is the inertial frame, at the centre of mass; 0: in world axes. Angular comes first.
            mujoco.mj_objectVelocity(self.model, data, mujoco.mjtObj.mjOBJ_BODY, i, one, 0)
            velocities[b] = np.roll(one, 3)
        return velocities

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """M [dof, dof] in our velocities, armature included."""
        self.set_state(q, np.zeros(self.tree.dof_count))
        M, T = np.zeros((self.model.nv, self.model.nv)), self.velocity_map(q)[0]
        for i, unit in enumerate(np.eye(self.model.nv)):
            mujoco.mj_mulM(self.model, self.data, M[i], unit)
        return T.T @ M @ T

    def bias_forces(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Coriolis, centrifugal and gravity forces [dof] in our velocities: ``M qdd + bias = tau``."""
        self.set_state(q, qd)
        (T, drift), inertial = self.velocity_map(q, qd), np.zeros(self.model.nv)
        mujoco.mj_mulM(self.model, self.data, inertial, drift)
        return T.T @ (self.data.qfrc_bias + inertial)

    def passive_forces(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Forces of springs and dampers [dof]."""
        self.set_state(q, qd)
        return self.velocity_map(q)[0].T @ self.data.qfrc_passive

    def forward_dynamics(
        self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray | None = None, body_f: np.ndarray | None = None
    ) -> np.ndarray:
        """Accelerations [dof] under generalized forces and wrenches `body_f` [body, 6], constraints included."""
        (T, drift), data = self.velocity_map(q, qd), self.data
        if tau is not None:
            data.qfrc_applied[:] = np.linalg.solve(T.T, tau)
        if body_f is not None:
            data.xfrc_applied[self.body_id] = body_f
        self.set_state(q, qd)
        data.qfrc_applied[:], data.xfrc_applied[:] = 0.0, 0.0
        return np.linalg.solve(T, data.qacc - drift)
