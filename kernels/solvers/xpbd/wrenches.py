"""Forces of joints that leave a body free.

``joint_f`` of such a joint is a wrench at the centre of mass of the child, in world axes. ``joint_act`` is one along the axes of the anchor
of the parent, within the effort limits. Where the mode of a degree of freedom is EFFORT, the limit applies to the sum of both along it. If
springs, drives or other forces act along the degrees of freedom, rows of the joint apply ``joint_act``, see `joint_solve`.
"""

import warp as wp
from newton_like.kernels.parameters.gather import EFFORT_MODE
from newton_like.kernels.solvers.xpbd.bodies import INVERSE_MASS, POS, PUSH, QUAT, TORQUE, place_in_chunk

# Columns of the table of these joints: first degree of freedom, slots of the child and of the parent, the joint, one if rows apply
# ``joint_act``, and one if a degree of freedom has the mode EFFORT.
WRENCH_DOF, WRENCH_CHILD, WRENCH_PARENT, WRENCH_JOINT, WRENCH_ROWS, WRENCH_LIMITED = range(6)
WRENCH_COLUMNS = 6


def wrench_function(real, Bodies, read3, put3):
    """The function ``load_wrenches`` over joints that leave a body free.

    Args:
        real: scalar type.
        Bodies: the struct of bodies of a step.
        read3, put3: functions that read and write a vector of a body.
    """
    vec3, quat = wp.types.vector(3, real), wp.types.quaternion(real)

    @wp.func
    def push_slot(G: wp.ref[Bodies], at: int, stride: int, slot: int, f: vec3, turn: vec3):
        """Adds a force and a torque to the body in a slot."""
        mass = G.numbers[place_in_chunk(at, stride, slot, INVERSE_MASS)]
        put3(G.numbers, at, stride, slot, PUSH, read3(G.numbers, at, stride, slot, PUSH) + f * mass)
        put3(G.numbers, at, stride, slot, TORQUE, read3(G.numbers, at, stride, slot, TORQUE) + turn)

    @wp.func
    def drive_push(G: wp.ref[Bodies], i: int, d: int, x: real) -> real:
        """What is to be added to the force x along degree of freedom d of row i of the table: the force of its drive, less what the limit
        takes of x."""
        limit = G.effort_limit[d]
        act = G.joint_act[d]
        push = wp.min(wp.max(act, -limit), limit)
        if wp.isnan(act):
            push = act
        rest = push
        if G.mode[d] == EFFORT_MODE:
            rest = act
            whole = act + x
            # a force within its limit keeps its bits
            if wp.abs(whole) > limit:
                rest = wp.min(wp.max(whole, -limit), limit) - x
        if G.wrenches[i, WRENCH_ROWS] != 0:
            rest = rest - push
        return rest

    @wp.func
    def load_wrenches(G: wp.ref[Bodies], begin: int, end: int, at: int, stride: int):
        """Adds the forces of joints that leave bodies free, and the opposite ones on their parents if forces move any."""
        for i in range(begin, end):
            d = G.wrenches[i, WRENCH_DOF]
            own = G.wrenches[i, WRENCH_CHILD]
            other = G.wrenches[i, WRENCH_PARENT]
            f = vec3(G.joint_f[d], G.joint_f[d + 1], G.joint_f[d + 2])
            turn = vec3(G.joint_f[d + 3], G.joint_f[d + 4], G.joint_f[d + 5])
            driven = G.wrenches[i, WRENCH_LIMITED]
            for k in range(6):
                if G.joint_act[d + k] != real(0.0):
                    driven = 1
            if driven != 0:
                q = quat()
                for k in range(4):
                    q[k] = G.numbers[place_in_chunk(at, stride, other, QUAT + k)]
                q = q * wp.transform_get_rotation(G.anchor[G.wrenches[i, WRENCH_JOINT]])
                push = wp.quat_rotate_inv(q, f)
                twist = wp.quat_rotate_inv(q, turn)
                for k in range(3):
                    push[k] = drive_push(G, i, d + k, push[k])
                    twist[k] = drive_push(G, i, d + 3 + k, twist[k])
                f = f + wp.quat_rotate(q, push)
                turn = turn + wp.quat_rotate(q, twist)
            push_slot(G, at, stride, own, f, turn)
            if G.apart == 0:
                arm = read3(G.numbers, at, stride, own, POS) - read3(G.numbers, at, stride, other, POS)
                push_slot(G, at, stride, other, -f, -turn - wp.cross(arm, f))

    return load_wrenches
