"""Quantities of root links: frames of the link and of its centre of mass, velocities in root axes, gravity and heading.

A row of the result has the numbers of one instance, from the offsets below. With the pose (p, R) of the link, the centre of mass c in the
link frame, the velocity v of the centre of mass and the angular velocity w:

    velocity of the link's origin  = v - w x R c
    pose of the centre of mass     = (p + R c, R R_c), where R_c turns the link axes to the principal axes
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.simd import C_NAME, GENERAL_FLAGS, atan2_code, module_options, simd_types

LINK_STATE, COM_STATE, ROOT_STATE = 0, 13, 26
"""Pose and velocity of the link; of the centre of mass; pose of the link with the velocity of the centre of mass."""
LINK_VELOCITY_B, COM_VELOCITY_B, GRAVITY_B, HEADING = 39, 42, 45, 48
"""Linear velocities in root axes (link, centre of mass), the direction of gravity in root axes, and the heading."""
ANGULAR_VELOCITY_B = 49
ROOT_SIZE = 52

BODY_SIZE = 39
"""Numbers of a body: its states as the first three of a root."""


_STATES = """
const real* p = (const real*)(body_q.data + body);
const real* q = p + 3;
const real* v = (const real*)(body_qd.data + body);
const real* w = v + 3;
const real* c = (const real*)(com.data + frame);
const real* turn = c + 3;
const real x = q[0], y = q[1], z = q[2], s = q[3];
// the rotation as a matrix
const real r00 = 1 - 2 * (y * y + z * z), r01 = 2 * (x * y - s * z), r02 = 2 * (x * z + s * y);
const real r10 = 2 * (x * y + s * z), r11 = 1 - 2 * (x * x + z * z), r12 = 2 * (y * z - s * x);
const real r20 = 2 * (x * z - s * y), r21 = 2 * (y * z + s * x), r22 = 1 - 2 * (x * x + y * y);
const real arm[3] = {
    r00 * c[0] + r01 * c[1] + r02 * c[2], r10 * c[0] + r11 * c[1] + r12 * c[2], r20 * c[0] + r21 * c[1] + r22 * c[2]
};
const real u[3] = {
    v[0] - (w[1] * arm[2] - w[2] * arm[1]), v[1] - (w[2] * arm[0] - w[0] * arm[2]), v[2] - (w[0] * arm[1] - w[1] * arm[0])
};
real* link = out.data + at + LINK_STATE;
real* centre = out.data + at + COM_STATE;
real* both = out.data + at + ROOT_STATE;
for (int k = 0; k < 7; ++k) { link[k] = p[k]; both[k] = p[k]; }
for (int k = 0; k < 3; ++k) {
    link[7 + k] = u[k]; link[10 + k] = w[k];
    centre[k] = p[k] + arm[k]; centre[7 + k] = v[k]; centre[10 + k] = w[k];
    both[7 + k] = v[k]; both[10 + k] = w[k];
}
centre[3] = s * turn[0] + x * turn[3] + y * turn[2] - z * turn[1];
centre[4] = s * turn[1] + y * turn[3] + z * turn[0] - x * turn[2];
centre[5] = s * turn[2] + z * turn[3] + x * turn[1] - y * turn[0];
centre[6] = s * turn[3] - x * turn[0] - y * turn[1] - z * turn[2];
"""

_ROOT = """
real* o = out.data + at;
#define INTO_ROOT(to, a) { \
    const real a0 = a[0], a1 = a[1], a2 = a[2]; \
    o[to] = r00 * a0 + r10 * a1 + r20 * a2; \
    o[to + 1] = r01 * a0 + r11 * a1 + r21 * a2; \
    o[to + 2] = r02 * a0 + r12 * a1 + r22 * a2; }
INTO_ROOT(LINK_VELOCITY_B, u)
INTO_ROOT(COM_VELOCITY_B, v)
INTO_ROOT(ANGULAR_VELOCITY_B, w)
INTO_ROOT(GRAVITY_B, down)
#undef INTO_ROOT
// their arctangent is the heading
o[HEADING] = r10;
heads.data[place] = r00;
"""

_HEADINGS = """
simd y, x, out_;
for (int k = 0; k < WIDTH; ++k) { const int i = k < count ? k : 0; y[k] = out.data[at + i * SIZE]; x[k] = heads.data[place + i]; }
{ simd out; ATAN2 out_ = out; }
for (int k = 0; k < count; ++k) out.data[at + k * SIZE] = out_[k];
"""


def _code(real, text: str) -> str:
    names = (
        "LINK_STATE", "COM_STATE", "ROOT_STATE", "LINK_VELOCITY_B", "COM_VELOCITY_B", "ANGULAR_VELOCITY_B", "GRAVITY_B", "HEADING",
    )  # fmt: skip
    for name in names:
        text = text.replace(name, str(globals()[name]))
    return f"typedef {C_NAME[real]} real;{text}"


@cache
def state_kernels(real, block: int = 1) -> types.SimpleNamespace:
    """Kernels for the scalar type `real`: `root` over blocks of so many instances, `bodies` over bodies of instances, `wxyz` over rows.
    Blocks of several instances, of 8 or 16, are for CPUs."""
    vec3 = wp.types.vector(3, real)
    transform = wp.types.transformation(real)
    spatial = wp.types.vector(6, real)

    # pointers: an index of Warp costs a product with the stride
    @wp.func_native(_code(real, _STATES))
    def put_states(
        body: int,
        frame: int,
        at: int,
        body_q: wp.array[transform],
        body_qd: wp.array[spatial],
        com: wp.array2d[transform],
        out: wp.array[real],
    ): ...

    @wp.func_native(_code(real, _STATES + _ROOT))
    def put_root(
        body: int,
        frame: int,
        at: int,
        place: int,
        down: vec3,
        body_q: wp.array[transform],
        body_qd: wp.array[spatial],
        com: wp.array2d[transform],
        heads: wp.array[real],
        out: wp.array[real],
    ): ...

    if block > 1:
        simd = simd_types(block, real)
        code = (
            _HEADINGS.replace("WIDTH", str(block))
            .replace("SIZE", str(ROOT_SIZE))
            .replace("ATAN2", atan2_code(block, real))
        )

        @wp.func_native(simd + code)
        def put_headings(at: int, place: int, count: int, heads: wp.array[real], out: wp.array[real]): ...

    else:

        @wp.func
        def put_headings(at: int, place: int, count: int, heads: wp.array[real], out: wp.array[real]):
            out[at] = wp.atan2(out[at], heads[place])

    options = module_options(GENERAL_FLAGS, block)

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def root(
        first: int,
        # of instances: root body, world, centre of mass with the turn to principal axes; `own` is 0 where it is that of the first one
        body_of: wp.array[int],
        world_of: wp.array[int],
        own: int,
        com: wp.array2d[transform],
        # Model and state:
        gravity: wp.array[vec3],
        body_q: wp.array[transform],
        body_qd: wp.array[spatial],
        # a number for each instance, then out:
        heads: wp.array[real],
        out: wp.array[real],
    ):
        begin = (first + wp.tid()) * block
        count = wp.min(block, body_of.shape[0] - begin)
        for k in range(count):
            i = begin + k
            g = gravity[world_of[i]]
            size = wp.length(g)
            if size > real(0.0):
                g = g / size
            put_root(body_of[i], i * own * com.shape[1], i * ROOT_SIZE, i, g, body_q, body_qd, com, heads, out)
        put_headings(begin * ROOT_SIZE + HEADING, begin, count, heads, out)

    @wp.kernel(module="unique", enable_backward=False, module_options=options)
    def bodies(
        first: int,
        count: int,
        # of instances and bodies: indices, centres of mass with the turn to principal axes; `own` as above
        body_of: wp.array2d[int],
        own: int,
        com: wp.array2d[transform],
        # State:
        body_q: wp.array[transform],
        body_qd: wp.array[spatial],
        # out:
        out: wp.array[real],
    ):
        n = first + wp.tid()
        i = n // count
        k = n % count
        put_states(body_of[i, k], i * own * count + k, n * BODY_SIZE, body_q, body_qd, com, out)

    @wp.kernel(module="unique", enable_backward=False)
    def wxyz(
        # where the quaternion begins in a row
        at: int,
        rows: wp.array2d[real],
        # out:
        out: wp.array2d[real],
    ):
        i, j = wp.tid()
        k = j
        if j >= at and j < at + 4:
            k = at + (j - at + 3) % 4
        out[i, j] = rows[i, k]

    return types.SimpleNamespace(root=root, bodies=bodies, wxyz=wxyz)
