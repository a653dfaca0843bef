"""The data of a robot that programs read: the structure of its tree (integers) and its parameters (numbers).

`Tree` is the same for every world of a template. `Params` holds the parameters of all worlds: one copy where all worlds agree, or one
lane a world where they differ; functions such as `body_param` read both. `newton_like.programs.parameters` fills the parameter blocks
below, `newton_like.collision.ground` those of colliders and planes.

Bodies are numbered tree by tree, parents first. Joint ``k`` moves body ``k``, and index ``T.bodies + i`` is the world as tree i has it.
Degrees of freedom are numbered along the bodies. The *chain* of a degree of freedom lists it and all its ancestors from the root
down; ``depth`` is its place in that list. Row ``i`` of a packed triangular matrix begins where this list
does, at ``chain_at[i]``, and has ``depth[i] + 1`` entries, one for each member of the chain.
"""

import types

import warp as wp

# Limits and friction that a degree of freedom may have, as bits of Tree.dof_limits; PRESCRIBED: it moves a kinematic body in some world;
# SLIP: dry friction in motion is not that at rest. The order is that of their bits.
BITS = EFFORT, FRICTION, VELOCITY, POSITION, PRESCRIBED, SLIP = 1, 2, 4, 8, 16, 32

# Joints at this speed or below it are at rest for dry friction [m/s or rad/s].
REST_SPEED = 1.0e-4

# The armature of a prescribed degree of freedom, and half of it; other armatures are smaller. Rounding removes all inertia and all
# impulses beside it. It is a power of four, so that products of its root and of the inverse of this root are exact. Squares of whitened
# velocities are finite in single precision.
PRESCRIBED_ARMATURE, MOST_ARMATURE = 2.0**80, 2.0**79

# Joint kinds. A D6 joint with a single axis is PRISMATIC or REVOLUTE; a DISTANCE joint is FREE.
FIXED, REVOLUTE, PRISMATIC, BALL, FREE, COMPOUND = range(6)

# Representations of velocities, see newton_like.kernels.dynamics.representation; NATIVE: the joint's own velocities.
NATIVE, COM, MIXED, INERTIAL, BODY_FIXED = range(5)

# Kinds of pieces of tendons: a straight line; around a sphere or a cylinder, on the outside or, by a side site, on the inside.
# MASSIVE is a straight line of a tendon with inertia. WRENCH is no piece: a force and a torque of one body on another. CRANK is a slider
# on an axis, moved by a rod. TURNING is a WRENCH whose length has the angle of one body relative to the other along its torque.
STRAIGHT, ROUND_SPHERE, ROUND_CYLINDER, IN_SPHERE, IN_CYLINDER, MASSIVE, WRENCH, CRANK, TURNING = range(1, 10)

# Kinds of couplings: the first coordinate of a joint follows another joint; limits of the distance of a joint. Coordinate n > 0 of a
# joint follows as SPAN + n.
FOLLOW, SPAN = range(2)

# Parameter blocks: the size of each block, and the positions of parameters in it.

BODY = 10  # inertia about the centre of mass: xx yy zz xy xz yz, link axes
MASS, CENTRE_OF_MASS, INERTIA = 0, 1, 4

# Quaternions and positions of the anchors X_p and inverse X_c (of X_c the position), the product of both quaternions, which is the
# child's orientation at q = 0, and the limits of a distance joint.
JOINT = 21
PARENT_QUAT, PARENT_POS, CHILD_QUAT_INVERSE, CHILD_POS, HOME_QUAT, DISTANCE_MIN, DISTANCE_MAX = 0, 4, 7, 11, 14, 18, 19
# Joints of robots of the SDK are no distance joints, and have other numbers there: the motion for each unit of the coordinate [rad or m],
# and the pitch [m/rad].
MOTION_SCALE, SCREW_PITCH = DISTANCE_MIN, DISTANCE_MAX

# The axis in the anchor's frame and in the parent's; the child's orientation half a turn from q = 0: X_p (axis, 0) inverse X_c.
DOF = 10
AXIS, AXIS_IN_PARENT, HALF_TURN_QUAT = 0, 3, 6

GAIN = 18
(
    ARMATURE, DAMPING, STIFFNESS, REST_Q, TARGET_KE, TARGET_KD, TARGET_VELOCITY_GAIN, EFFORT_LIMIT, VELOCITY_LIMIT, FRICTION_LOSS,
    LIMIT_LOWER, LIMIT_UPPER, LIMIT_OMEGA, LIMIT_DAMPING_RATIO, MIMIC_OFFSET, MIMIC_RATIO, CLIP_FORCE,
    FRICTION_RATIO,
) = range(GAIN)  # fmt: skip
# The four numbers of a rest orientation: x, y, z at REST_Q of three dofs, and w at MIMIC_OFFSET of the first one.
REST_W = MIMIC_OFFSET

COLLIDER = 20
SIZE, CENTER, ROTATION, SURFACE, RADIUS = 0, 3, 6, 10, 18
# Surface properties. OMEGA and DAMPING_RATIO are those of its spring-damper per unit of effective mass.
MU, RESTITUTION, OMEGA, DAMPING_RATIO, MU_TORSIONAL, MU_ROLLING, MARGIN, GAP = range(8)

# The law of a contact whose shapes state MuJoCo's settings, see `kernels.solvers.rows.contact_law`: one where MuJoCo's rules combine the
# friction; sliding, torsional and rolling friction; one where contacts are soft; stiffness and damping per unit of mass, times the
# largest impedance squared and times it, and the largest stiffness times dt squared; least and largest impedance, inverse width,
# midpoint and power of the curve between them; and what is added to the signed distance.
LAW = 14
(
    LAW_BY_RULE, LAW_MU, LAW_SOFT, LAW_STIFFNESS, LAW_DAMPING, LAW_MOST, LAW_IMPEDANCE, LAW_IMPEDANCE_MOST, LAW_INVERSE_WIDTH,
    LAW_MIDPOINT, LAW_POWER, LAW_SHIFT,
) = (0, 1, *range(4, LAW))  # fmt: skip

# What a tree has as `laws`: none; one of each collider and pair; or one of each candidate, where contacts are handed over.
NO_LAWS, LAWS_OF_PAIRS, LAWS_OF_CANDIDATES = range(3)

# Integers of a shape that may touch another one (its body, -1: the world; its kind; the first vertex and the number of vertices of its
# hull), and of a pair of these: both shapes; the last dofs of the chains of the second and the first one's bodies, -1: none; the number
# of dofs that both chains have; and the first candidate.
SHAPE_TABLE, PAIR_TABLE = 4, 6

# A contact given to the solver: 1 if it exists, its point on the body (link frame) and on the other shape (world; of a pair of
# shapes on bodies: link frame), the normal, both margins, and the surface properties from MU to MU_ROLLING.
GIVEN = 18
GIVEN_ON, GIVEN_POINT, GIVEN_OTHER_POINT, GIVEN_NORMAL = 0, 1, 4, 7
GIVEN_MARGIN, GIVEN_OTHER_MARGIN, GIVEN_SURFACE = 10, 11, 12

# Offsets are those of the plane's origin along its normal and tangents.
PLANE = 14
NORMAL, TANGENT_1, TANGENT_2, OFFSET, OFFSET_1, OFFSET_2, HALF_LENGTH, HALF_WIDTH = 0, 3, 6, 9, 10, 11, 12, 13


def tree_structs(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: the structs of a robot, the functions that read its parameters, and the decorators ``func`` and ``shared``,
    which annotate arguments with these names:

        b: block, t: column of the memory (int),  T: Tree,  P: Params,  L: Layout,  o: Options,  mem: the memory

    Structs are references: a copy of a tree, with its many arrays, costs as much as a short function.
    """

    @m.struct
    class Tree:
        bodies: int
        trees: int
        dofs: int
        colliders: int
        candidates: int
        free_root: int
        # whether some degree of freedom is prescribed in some world
        prescribed: int
        # the tree of each body; then the first body of each tree and, last, the number of bodies
        forest: wp.array[int]
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
        # shapes of pairs and pairs, see `kernels.collision.pairs.detect`; candidates from first_paired on are those of pairs. Tables have
        # SHAPE_TABLE and PAIR_TABLE integers a row, one behind the other; where rows of candidates have their dofs, and these, come last.
        shapes: int
        pairs: int
        first_paired: int
        pair_table: wp.array[int]
        # one for a robot alone in its cluster whose bodies may touch each other, see `kernels.solvers.polish`
        polished: int
        # above zero if some contact has a law, see LAW; one if some of these may be soft; one if some position limit has a law, and where
        # those of the degrees of freedom begin
        laws: int
        soft_contacts: int
        limit_laws: int
        first_limit_law: int
        # the last pairs are those with surfaces, see `kernels.collision.surfaces`; heights, triangles and boxes of these
        surface_pairs: int
        surface_table: wp.array[m.real]
        # contact points of colliders from first_guarded on are computed only if they are near; hulls, from first_hull on, come last
        first_guarded: int
        first_hull: int
        # per coupling (a mimic joint or a distance limit)
        couplings: int
        coupling_kind: wp.array[int]
        coupling_body: wp.array[int]
        coupling_other: wp.array[int]
        # rows of a contact point: 3, or 6 with torsional and rolling friction
        contact_rows: int
        # forces of limits and friction that persist between steps: three a dof, or 0
        limit_rows: int
        # stride of a constraint row: the longest chain
        reach: int
        # sizes of dense results: joints and dofs of the largest articulation of the model
        links: int
        columns: int
        # representations of the base's velocity, of results, and of given wrenches (NATIVE: no wrenches are given)
        base_repr: int
        output_repr: int
        wrench_repr: int
        # 1: relative velocities of frames have world axes
        world_axes: int
        # 1: given wrenches are ordered by link, 0: by body
        wrenches_by_link: int
        # 1: the wrenches of frames replace those given for their links
        replace_wrenches: int
        # 1: forces of FREE joints are wrenches at the centre of mass in world axes
        world_wrench: int
        # selects a momentum, inertia or energy, see `kernels.dynamics.momentum`
        quantity: int
        # selects coordinates, see `kernels.joints.configuration`, and passive forces, see `kernels.dynamics.system`
        configuration_mode: int
        force_terms: int
        # size of a result that depends on none of the counts above
        result_size: int
        # number of contact points or frames, and the link of each
        points: int
        point_body: wp.array[int]
        # numbers of a frame's offset from its link (0; 3: a point; 7: a transform), and components of its results
        offset_size: int
        components: int
        # the contact law, as bits defined in the law's file, and the number of Gauss-Seidel sweeps
        contact_law: int
        contact_sweeps: int
        # rows of loop joints and their kinds; point_body has the parent bodies of all rows, then the child bodies
        loop_rows: int
        loop_kind: wp.array[int]
        # how many of them are solved together, the first ones; in a step, 1 if some row has a law other than HARD, and the laws of rows,
        # see `kernels.solvers.rows.closure_rows`
        loop_block: int
        loop_soft: int
        # 1 if some row ties tendons
        loop_tied: int
        # the least inverse mass of two links of a row, in millionths: rows that respond by a rounding error of it are moved by no joint
        loop_response: int
        loop_rule: wp.array[int]
        # the first row of the joint of each row, then the numbers of its rows
        loop_group: wp.array[int]
        # in a step, anchors and directions of these rows: one copy, or one lane a world where they differ
        loops_vary: int
        # where the dofs of each row, those of the chains of both bodies, begin and, last, end in this list; then these, ascending
        loop_span: wp.array[int]
        loop_uniform: wp.array[m.real]
        loop_varying: m.memory
        proximal_steps: int
        # impulses of couplings, then of rows of loop joints, then of tendons, and where those of tendons begin
        bonds: int
        first_tendon: int
        # tendons, see `kernels.dynamics.tendons`: the first item of each and, last, their number; the integers of items; where the dofs
        # of each tendon, and those below them, begin and, last, end in this list, then these, ascending
        tendons: int
        tendon_at: wp.array[int]
        tendon_item: wp.array[int]
        tendon_span: wp.array[int]
        # in a step, their numbers: one copy, or one lane a world where they differ; and where the laws of their limits begin
        tendons_vary: int
        # how many of these numbers specialised code reads in memory
        tendon_loads: int
        tendon_uniform: wp.array[m.real]
        tendon_varying: m.memory
        first_tendon_law: int
        # in a step, 1 if contacts are in slots, see `kernels.collision.pairs.gathered`
        slotted: int
        # in a step, actuators, see `kernels.solvers.actuators`: their integers; their numbers, one copy, or one lane a world where they
        # differ; one if one of them acts on contacts; and one if bodies are relieved of weight, by shares that follow these numbers
        actuators: int
        adhesive: int
        actuator_table: wp.array[int]
        actuators_vary: int
        actuator_uniform: wp.array[m.real]
        actuator_varying: m.memory
        relieved: int
        # the operations of an interpreted program
        code: wp.array[int]

    @m.struct
    class Params:
        uniform: wp.array[m.real]
        varying: m.memory
        # 1: parameters of the group differ between worlds
        joints_vary: int
        bodies_vary: int
        gains_vary: int
        colliders_vary: int
        planes_vary: int
        gravity_vary: int
        pairs_vary: int
        laws_vary: int
        weights_vary: int
        # first index of each group
        joint_at: int
        dof_at: int
        body_at: int
        gain_at: int
        collider_at: int
        plane_at: int
        gravity_at: int
        hull_at: int
        pair_at: int
        law_at: int
        weight_at: int

    @m.struct
    class Options:
        dt: m.real
        inverse_dt: m.real
        iterations: int
        drive_passes: int
        restitution_speed: m.real
        push_speed: m.real
        # change of the velocities by a sweep, as a part of that by all impulses, below which the sweeps of clusters with pairs end
        tolerance: m.real
        # factor on the angular velocity of floating bodies after a step
        spin_share: m.real

    @m.func
    def tree_of(k: int, T: Tree) -> int:
        """The tree of body k."""
        return T.forest[k]

    @m.func
    def tree_start(i: int, T: Tree) -> int:
        """The first body of tree i; that of tree T.trees is the number of bodies."""
        return T.forest[T.bodies + i]

    @m.func
    def joint_param(P: Params, b: int, k: int, i: int) -> m.lane:
        return m.param(P.uniform, P.varying, P.joints_vary, b, P.joint_at + JOINT * k + i)

    @m.func
    def joint_vec(P: Params, b: int, k: int, i: int) -> m.Vec3:
        return m.vec(joint_param(P, b, k, i), joint_param(P, b, k, i + 1), joint_param(P, b, k, i + 2))

    @m.func
    def joint_quat(P: Params, b: int, k: int, i: int) -> m.Quat:
        v = joint_vec(P, b, k, i)
        return m.quat(v.x, v.y, v.z, joint_param(P, b, k, i + 3))

    @m.func
    def dof_param(P: Params, b: int, dof: int, i: int) -> m.lane:
        return m.param(P.uniform, P.varying, P.joints_vary, b, P.dof_at + DOF * dof + i)

    @m.func
    def dof_vec(P: Params, b: int, dof: int, i: int) -> m.Vec3:
        return m.vec(dof_param(P, b, dof, i), dof_param(P, b, dof, i + 1), dof_param(P, b, dof, i + 2))

    @m.func
    def dof_quat(P: Params, b: int, dof: int, i: int) -> m.Quat:
        v = dof_vec(P, b, dof, i)
        return m.quat(v.x, v.y, v.z, dof_param(P, b, dof, i + 3))

    @m.func
    def body_param(P: Params, b: int, k: int, i: int) -> m.lane:
        return m.param(P.uniform, P.varying, P.bodies_vary, b, P.body_at + BODY * k + i)

    @m.func
    def body_mass(P: Params, b: int, k: int) -> m.lane:
        return body_param(P, b, k, MASS)

    @m.func
    def body_com(P: Params, b: int, k: int) -> m.Vec3:
        i = CENTRE_OF_MASS
        return m.vec(body_param(P, b, k, i), body_param(P, b, k, i + 1), body_param(P, b, k, i + 2))

    @m.func
    def body_inertia(P: Params, b: int, k: int) -> m.Sym3:
        i = INERTIA
        return m.sym(
            body_param(P, b, k, i), body_param(P, b, k, i + 1), body_param(P, b, k, i + 2),
            body_param(P, b, k, i + 3), body_param(P, b, k, i + 4), body_param(P, b, k, i + 5),
        )  # fmt: skip

    @m.func
    def gain(P: Params, b: int, dof: int, i: int) -> m.lane:
        return m.param(P.uniform, P.varying, P.gains_vary, b, P.gain_at + GAIN * dof + i)

    @m.func
    def where_prescribed(P: Params, b: int, dof: int, x: m.lane, y: m.lane) -> m.lane:
        """x in worlds where the degree of freedom moves a kinematic body, else y."""
        return m.where_lt(m.fill(m.real(MOST_ARMATURE)), gain(P, b, dof, ARMATURE), x, y)

    @m.func
    def gravity(P: Params, b: int) -> m.Vec3:
        i = P.gravity_at
        return m.vec(
            m.param(P.uniform, P.varying, P.gravity_vary, b, i),
            m.param(P.uniform, P.varying, P.gravity_vary, b, i + 1),
            m.param(P.uniform, P.varying, P.gravity_vary, b, i + 2),
        )

    @m.func
    def collider_param(P: Params, b: int, s: int, i: int) -> m.lane:
        return m.param(P.uniform, P.varying, P.colliders_vary, b, P.collider_at + COLLIDER * s + i)

    @m.func
    def collider_vec(P: Params, b: int, s: int, i: int) -> m.Vec3:
        return m.vec(collider_param(P, b, s, i), collider_param(P, b, s, i + 1), collider_param(P, b, s, i + 2))

    @m.func
    def collider_quat(P: Params, b: int, s: int, i: int) -> m.Quat:
        v = collider_vec(P, b, s, i)
        return m.quat(v.x, v.y, v.z, collider_param(P, b, s, i + 3))

    @m.func
    def pair_param(P: Params, b: int, p: int) -> m.lane:
        """Zero, or far below zero where the shapes of pair p may not touch."""
        return m.param(P.uniform, P.varying, P.pairs_vary, b, P.pair_at + p)

    @m.func
    def law_param(P: Params, b: int, law: int, i: int) -> m.lane:
        return m.param(P.uniform, P.varying, P.laws_vary, b, P.law_at + LAW * law + i)

    @m.func
    def weight_param(P: Params, b: int, dof: int) -> m.lane:
        """The inverse inertia of a degree of freedom in the initial pose, if limits are soft by it."""
        return m.param(P.uniform, P.varying, P.weights_vary, b, P.weight_at + dof)

    @m.func
    def plane_param(P: Params, b: int, pl: int, i: int) -> m.lane:
        return m.param(P.uniform, P.varying, P.planes_vary, b, P.plane_at + PLANE * pl + i)

    @m.func
    def plane_vec(P: Params, b: int, pl: int, i: int) -> m.Vec3:
        return m.vec(plane_param(P, b, pl, i), plane_param(P, b, pl, i + 1), plane_param(P, b, pl, i + 2))

    known = dict(b=int, t=int, T=wp.ref[Tree], P=wp.ref[Params], L=wp.ref[m.Layout], o=wp.ref[Options], mem=m.memory)

    def annotated(f):
        if m.memory is None:  # traced functions run as Python, which reads no annotations
            return f
        # Warp expects annotations in the order of the arguments
        names = (*f.__code__.co_varnames[: f.__code__.co_argcount], "return")
        told = {**known, **f.__annotations__}
        f.__annotations__ = {name: told[name] for name in names if name in told}
        return f

    def func(f):
        return m.func(annotated(f))

    def shared(f):
        return m.shared(annotated(f))

    return locals()
