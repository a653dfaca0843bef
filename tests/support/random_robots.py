"""Random robots of the robot SDK, made by the same calls in newton_like.robot and in the vendor's library."""

import numpy as np
from scipy.linalg import expm
from scipy.spatial.transform import Rotation


def random_pose(rng, size: float = 0.3) -> np.ndarray:
    """A rigid motion, ``[4, 4]``."""
    T = np.eye(4)
    T[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    T[:3, 3] = rng.normal(scale=size, size=3)
    return T


def cross_matrix(x) -> np.ndarray:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def spatial_inertia(mass: float, com, inertia) -> np.ndarray:
    """The 6x6 inertia about the origin, angular part first, of a body with an inertia about its centre of mass."""
    c = cross_matrix(com)
    return np.block([[inertia + mass * c @ c.T, mass * c], [mass * c.T, mass * np.eye(3)]])


def random_inertia(rng) -> np.ndarray:
    """The 6x6 inertia of a cloud of points."""
    points, masses = rng.normal(scale=0.2, size=(6, 3)), rng.uniform(0.1, 1.0, 6)
    com = masses @ points / masses.sum()
    moments = sum(m * cross_matrix(p - com) @ cross_matrix(p - com).T for m, p in zip(masses, points, strict=True))
    return spatial_inertia(masses.sum(), com, moments)


def adjoint(T) -> np.ndarray:
    """``Ad(T) = [[R, 0], [[p] R, R]]``."""
    R = T[:3, :3]
    return np.block([[R, np.zeros((3, 3))], [cross_matrix(T[:3, 3]) @ R, R]])


def random_robot(
    lib, seed: int, joints: int = 9, fold: bool = False, *, moving: int | None = None, unit=False, helical=False
):
    """A tree of revolute, prismatic, fixed and general joints with branches, a link without mass, and capsules.

    Args:
        lib: ``newton_like.robot`` or ``rby1_sdk.dynamics``.
        seed: of the random numbers; both libraries make the same robot from it.
        joints: number of joints.
        fold: describe joints that move without ``T_jc``, which the vendor's library ignores: with
            ``exp([S] q) T_jc = T_jc exp([Ad(T_jc^-1) S] q)`` this is the same robot.
        moving: number of joints that are not fixed; ``None``: a random number.
        unit: axes are coordinate axes of the joint frame, whose length is exactly 1; otherwise they have random lengths.
        helical: general joints are screws that also move along their axis.

    Returns:
        Links and joints, in the order in which they were made; ``joints[i]`` moves ``links[i + 1]``.
    """
    rng = np.random.default_rng(seed)
    names = rng.permutation(joints + 1)
    if moving is None:
        more = rng.choice(["revolute", "fixed"], max(0, joints - 4))
        kinds = rng.permutation(["revolute", "prismatic", "fixed", "general"][:joints] + list(more))
    else:
        more = rng.choice(["revolute", "prismatic", "general"], max(0, moving - 3))
        some = ["revolute", "prismatic", "general"][:moving] + list(more)
        kinds = rng.permutation(some + ["fixed"] * (joints - moving))
    links = [lib.Link(f"link_{names[0]}", random_inertia(rng))]
    made = []
    for i, kind in enumerate(kinds):
        inertia = np.zeros((6, 6)) if 0 < i == joints // 2 else random_inertia(rng)
        link, T, axis = lib.Link(f"link_{names[i + 1]}", inertia), random_pose(rng), rng.normal(size=3)
        if unit:
            T[:3, :3], axis = np.eye(3), np.roll([1.0, 0.0, 0.0], rng.integers(3))
        T_pj, T_jc, name = random_pose(rng), random_pose(rng), f"joint_{names[i + 1]}"
        if kind == "fixed":
            joint = lib.Joint.make_fixed(name)
        elif kind == "general" or fold:
            local = np.concatenate([np.zeros(3), axis] if kind == "prismatic" else [axis, np.zeros(3)])
            if helical and kind == "general":
                local[3:] = rng.normal() * axis
            S = adjoint(T) @ local
            if fold:
                S, T_pj, T_jc = adjoint(np.linalg.inv(T_jc)) @ S, T_pj @ T_jc, np.eye(4)
            joint = lib.Joint.make(name, S)
        else:
            joint = (lib.Joint.make_prismatic if kind == "prismatic" else lib.Joint.make_revolute)(name, T, axis)
        joint.connect_links(links[rng.integers(len(links))], link, T_pj, T_jc)
        for quantity in ("q", "qdot", "qddot"):
            getattr(joint, f"set_limit_{quantity}")(*np.sort(rng.normal(size=2)))
        joint.set_limit_torque(rng.uniform(1.0, 9.0))
        collision = lib.Collision(f"collision_{i}")
        collision.set_origin(random_pose(rng))
        bits = [int(b) for b in rng.integers(0, 4, 4)]
        collision.add_geom(
            lib.GeomCapsule(float(rng.uniform(0.0, 0.4)), float(rng.uniform(0.0, 0.1)), bits[0], bits[1])
        )
        collision.add_geom(lib.GeomCapsule(rng.normal(size=3), rng.normal(size=3), 0.05, bits[2], bits[3]))
        link.add_collision(collision)
        links.append(link)
        made.append(joint)
    return links, made


def screw_motion(S, q: float) -> np.ndarray:
    """``exp([S] q)``, ``[4, 4]``, by the matrix exponential."""
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = cross_matrix(S[:3]), S[3:]
    return expm(matrix * q)


def link_poses(base_link, q: dict[str, float]) -> dict[str, np.ndarray]:
    """Poses of links in the base link by name, from the definition ``T_pc = T_pj exp([S] q) T_jc`` of each joint."""
    poses, waiting = {base_link.name: np.eye(4)}, [base_link]
    while waiting:
        link = waiting.pop()
        for joint in link.child_joints:
            child = joint.child_link
            motion = screw_motion(joint.S, q.get(joint.name, 0.0))
            poses[child.name] = poses[link.name] @ joint.T_pj @ motion @ joint.T_jc
            waiting.append(child)
    return poses
