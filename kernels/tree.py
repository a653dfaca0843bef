"""What a program knows of a robot: the shape of its tree (integers), its parameters (numbers) and where things lie in memory.

`Tree` is the same for every world of a template. `Params` holds the numbers of all worlds: one copy where all worlds agree, one
lane a world where they differ, and a program does not notice which. The sizes
below are the strides of the parameter blocks; `newton_like.programs.template` fills them.

Bodies are numbered along the tree, parents first; body ``k`` is moved by joint ``k``, and index ``T.bodies`` stands for the world.
Degrees of freedom are numbered along the bodies. The *chain* of a degree of freedom lists it and all its ancestors from the root
down; ``depth`` is its place in that list. Row ``i`` of a packed triangular matrix has ``depth[i] + 1`` entries, one for each
member of the chain.
"""

import types

import warp as wp

# What can bind a degree of freedom, as bits of Tree.dof_limits.
EFFORT, FRICTION, VELOCITY, POSITION = 1, 2, 4, 8

# Joint kinds. PRISMATIC, REVOLUTE and single-axis D6 joints share two of them; DISTANCE moves as FREE.
FIXED, REVOLUTE, PRISMATIC, BALL, FREE, COMPOUND = range(6)

# Representations of velocities, see newton_like.kernels.dynamics.representation; NATIVE: velocities of the joint as they are.
NATIVE, COM, MIXED, INERTIAL, BODY_FIXED = range(5)

BODY = 10  # mass, com (3, link frame), inertia about the com (xx yy zz xy xz yz, link axes)
JOINT = 21  # quat of X_p (4), position of X_p (3), quat of inverse X_c (4), position of X_c (3), product of both quats (4), distance limits
DOF = 10  # axis in the anchor frame (3), axis in the parent body (3), quat X_p (axis, 0) inverse X_c (4)
GAIN = 17  # see GAINS
GAINS = (
    "armature", "damping", "stiffness", "rest_q", "target_ke", "target_kd", "target_velocity_gain", "effort_limit",
    "velocity_limit", "friction", "limit_lower", "limit_upper", "limit_omega", "limit_damping_ratio", "mimic_offset",
    "mimic_ratio", "clip_force",
)  # fmt: skip
COLLIDER = 20  # size (3), position (3), rotation quat (4), then MATERIAL (8), bounding radius, spare
MATERIAL = ("mu", "restitution", "omega", "damping_ratio", "mu_torsional", "mu_rolling", "margin", "gap")
GIVEN = 18  # a contact that is handed over: there, point on the body (3, link frame), point on the other shape (3, world), normal (3),
# margins (2), material (6)
PLANE = 14  # normal (3), first tangent (3), second tangent (3), offsets along these (3, normal first), half length, half width


def tree_structs(m: types.SimpleNamespace) -> types.SimpleNamespace:
    """The namespace `m` with the structs of a robot and the readers of its parameters."""

    @m.struct
    class Tree:
        bodies: int
        dofs: int
        colliders: int
        candidates: int
        free_root: int
        # per body
        parent: wp.array[int]
        kind: wp.array[int]
        q_at: wp.array[int]
        dof_at: wp.array[int]
        linear: wp.array[int]
        angular: wp.array[int]
        child_at: wp.array[int]
        child: wp.array[int]
        leaf: wp.array[int]
        body_slot: wp.array[int]
        # per degree of freedom
        depth: wp.array[int]
        row: wp.array[int]
        chain_at: wp.array[int]
        chain: wp.array[int]
        dof_q: wp.array[int]
        dof_limits: wp.array[int]
        # per collider (a shape of a body and a plane)
        collider_body: wp.array[int]
        collider_kind: wp.array[int]
        collider_plane: wp.array[int]
        collider_candidate: wp.array[int]
        hull_at: wp.array[int]
        hull_count: wp.array[int]
        # per candidate contact point
        candidate_collider: wp.array[int]
        candidate_body: wp.array[int]
        plane_finite: wp.array[int]
        # colliders from the first one on are looked at only when they come near; hulls, from the second one on, come last
        first_guarded: int
        first_hull: int
        # per coupling (a mimic joint or a distance limit)
        couplings: int
        coupling_kind: wp.array[int]
        coupling_body: wp.array[int]
        coupling_other: wp.array[int]
        # rows of a contact point: 3, or 6 with torsional and rolling friction
        contact_rows: int
        # forces of limits and friction that outlive a step: three a dof, or none
        limit_rows: int
        # stride of a constraint row: the longest chain
        reach: int
        # sizes of a dense matrix: joints and dofs of the largest articulation of the model
        links: int
        columns: int
        # what a program is asked for: representations of the base's velocity and of results, a link and another one
        base: int
        output: int
        link: int
        other: int
        # which of its results a program gives
        choice: int
        # representation of given wrenches; 1: forces of FREE joints are world wrenches at the centre of mass
        given_as: int
        world_wrench: int
        # contact points on links, or frames, and on which one each is
        points: int
        point_body: wp.array[int]
        # numbers a frame's offset from its link has (0, 3: a point, or 7), and how many of its vectors' components are wanted
        offset_size: int
        components: int
        # visits that iterative solvers pay to each contact point
        sweeps: int
        # what the rows of loop joints are; the bodies of their parents, then those of their children, are at point_body
        loop_kind: wp.array[int]
        # the operations of an interpreted program
        code: wp.array[int]

    @m.struct
    class Params:
        uniform: wp.array[m.real]
        varying: m.memory
        # whether any number of the group differs between worlds
        joints_vary: int
        bodies_vary: int
        gains_vary: int
        colliders_vary: int
        planes_vary: int
        gravity_vary: int
        # where the groups start
        joint_at: int
        dof_at: int
        body_at: int
        gain_at: int
        collider_at: int
        plane_at: int
        gravity_at: int
        hull_at: int

    @m.struct
    class Options:
        dt: m.real
        inverse_dt: m.real
        iterations: int
        drive_passes: int
        restitution_speed: m.real
        push_speed: m.real

    @m.func
    def joint_param(P: Params, b: int, i: int) -> m.lane:
        return m.param(P.uniform, P.varying, P.joints_vary, b, P.joint_at + i)

    @m.func
    def joint_vec(P: Params, b: int, i: int) -> m.Vec3:
        return m.vec(joint_param(P, b, i), joint_param(P, b, i + 1), joint_param(P, b, i + 2))

    @m.func
    def joint_quat(P: Params, b: int, i: int) -> m.Quat:
        return m.quat(
            joint_param(P, b, i), joint_param(P, b, i + 1), joint_param(P, b, i + 2), joint_param(P, b, i + 3)
        )

    @m.func
    def dof_param(P: Params, b: int, i: int) -> m.lane:
        return m.param(P.uniform, P.varying, P.joints_vary, b, P.dof_at + i)

    @m.func
    def dof_vec(P: Params, b: int, i: int) -> m.Vec3:
        return m.vec(dof_param(P, b, i), dof_param(P, b, i + 1), dof_param(P, b, i + 2))

    @m.func
    def body_param(P: Params, b: int, i: int) -> m.lane:
        return m.param(P.uniform, P.varying, P.bodies_vary, b, P.body_at + i)

    @m.func
    def body_com(P: Params, b: int, k: int) -> m.Vec3:
        i = BODY * k + 1
        return m.vec(body_param(P, b, i), body_param(P, b, i + 1), body_param(P, b, i + 2))

    @m.func
    def body_inertia(P: Params, b: int, k: int) -> m.Sym3:
        i = BODY * k + 4
        return m.sym(
            body_param(P, b, i), body_param(P, b, i + 1), body_param(P, b, i + 2),
            body_param(P, b, i + 3), body_param(P, b, i + 4), body_param(P, b, i + 5),
        )  # fmt: skip

    @m.func
    def gain(P: Params, b: int, dof: int, i: int) -> m.lane:
        return m.param(P.uniform, P.varying, P.gains_vary, b, P.gain_at + GAIN * dof + i)

    @m.func
    def gravity(P: Params, b: int) -> m.Vec3:
        i = P.gravity_at
        return m.vec(
            m.param(P.uniform, P.varying, P.gravity_vary, b, i),
            m.param(P.uniform, P.varying, P.gravity_vary, b, i + 1),
            m.param(P.uniform, P.varying, P.gravity_vary, b, i + 2),
        )

    @m.func
    def collider_param(P: Params, b: int, i: int) -> m.lane:
        return m.param(P.uniform, P.varying, P.colliders_vary, b, P.collider_at + i)

    @m.func
    def collider_vec(P: Params, b: int, i: int) -> m.Vec3:
        return m.vec(collider_param(P, b, i), collider_param(P, b, i + 1), collider_param(P, b, i + 2))

    @m.func
    def plane_param(P: Params, b: int, i: int) -> m.lane:
        return m.param(P.uniform, P.varying, P.planes_vary, b, P.plane_at + i)

    @m.func
    def plane_vec(P: Params, b: int, i: int) -> m.Vec3:
        return m.vec(plane_param(P, b, i), plane_param(P, b, i + 1), plane_param(P, b, i + 2))

    return types.SimpleNamespace(**{**vars(m), **{k: v for k, v in locals().items() if k != "m"}})
