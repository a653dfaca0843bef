"""Kernels of joints: efforts of actuators, limits, dry friction at rest and in motion.

The efforts of a joint, with errors of position and velocity e = q* - q and ed = qd* - qd:

    PD                      computed = kp e + kd ed + feed-forward
    ideal PD                applied = computed within +-effort limit
    DC motor                applied = computed within the torque-speed line: with the stall effort s, the speed v without load, the limit l
                            and qd within +-v (1 + l / s):  from  max(-s (1 + qd / v), -l)  to  min(s (1 - qd / v), l)
    limits by position      applied = computed within +-limit(q), from a table, linear between its entries, and within +-effort limit
    network                 computed = what a function of the user gave; then as DC motor
    implicit PD             targets go to the drive of the step; the numbers above are only reported
"""

import types
from functools import cache

import warp as wp
from newton_like.kernels.simd import C_NAME, GENERAL_FLAGS, module_options

IMPLICIT, IDEAL, MOTOR, TABLE, NETWORK = range(5)
"""Laws of actuators. Joints without an actuator are IMPLICIT, with the gains of the model."""

DELAYED = 16
"""Added to a law: commands arrive later."""


_ROW = """
const long long n = (long long)i * count;
const real* __restrict kp_ = kp.data + (long long)i * gains;
const real* __restrict kd_ = kd.data + (long long)i * gains;
const real* __restrict limit_ = limit.data + (long long)i * gains;
const real* __restrict stall_ = stall.data + (long long)i * gains;
const real* __restrict speed_ = speed.data + (long long)i * gains;
const real* __restrict aim_q = target_q.data + n;
const real* __restrict aim_qd = target_qd.data + n;
const real* __restrict feed = target_f.data + n;
const real* __restrict q_ = joint_q.data + first_q + (long long)i * step_q;
const real* __restrict qd_ = joint_qd.data + first_v + (long long)i * step_v;
real* __restrict out_q = drive_q.data + first_q + (long long)i * step_q;
real* __restrict out_qd = drive_qd.data + first_v + (long long)i * step_v;
real* __restrict out_f = drive_f.data + first_v + (long long)i * step_v;
real* __restrict computed_ = computed.data + n;
real* __restrict applied_ = applied.data + n;
DELAY
for (int j = 0; j < count; ++j) {
    const int kind = KIND;
    const real q = q_[j * EACH], qd = qd_[j * EACH], bound = limit_[j];
    real effort = kp_[j] * (aim_q[j] - q) + kd_[j] * (aim_qd[j] - qd) + feed[j];
    real high = bound, low = -bound;
    LAWS
    // what is not a number stays so
    const real result = effort > high ? high : (effort < low ? low : effort);
    computed_[j] = effort;
    applied_[j] = result;
    DRIVES
}
"""

_DELAY = """
const int slots = history.shape[0], before = pushed.data[i], size = 3 * COUNT, here = before % slots;
pushed.data[i] = before + 1;
// slots are outside, so that instances next to each other write next to each other
const long long between = (long long)history.shape[1] * size;
#ifdef __clang__
{
    // what an instance some places ahead reads and writes is fetched meanwhile
    const long long next = i + 6 < history.shape[1] ? i + 6 : i;
    const int then = pushed.data[next], at = then % slots, lag = delay.data[next * count] < then ? delay.data[next * count] : then;
    const real* numbers = history.data + next * size;
    for (int j = 0; j < size; j += 64 / sizeof(real)) {
        __builtin_prefetch(numbers + at * between + j, 1);
        __builtin_prefetch(numbers + (lag > at ? at - lag + slots : at - lag) * between + j);
    }
}
#endif
real* past = history.data + (long long)i * size;
real* now = past + here * between;
real come[3 * COUNT];
for (int j = 0; j < COUNT; ++j) { now[j] = aim_q[j]; now[COUNT + j] = aim_qd[j]; now[2 * COUNT + j] = feed[j]; }
// the first command since the reset is as old as can be
int lags[COUNT], others = 0;
for (int j = 0; j < COUNT; ++j) {
    const int lag = delay.data[n + j] < before ? delay.data[n + j] : before;
    lags[j] = law.data[j] < DELAYED ? 0 : lag;
    others |= lags[j] ^ lags[0];
}
const real* then = past + (lags[0] > here ? here - lags[0] + slots : here - lags[0]) * between;
if (others) {
    for (int j = 0; j < COUNT; ++j) {
        const real* own = past + (lags[j] > here ? here - lags[j] + slots : here - lags[j]) * between;
        come[j] = own[j]; come[COUNT + j] = own[COUNT + j]; come[2 * COUNT + j] = own[2 * COUNT + j];
    }
    then = come;
}
aim_q = then; aim_qd = then + COUNT; feed = then + 2 * COUNT;
"""

_MOTOR = """{
    const real top = speed_[j], most = stall_[j], fastest = top * (real(1) + bound / most);
    const real v = qd > fastest ? fastest : (qd < -fastest ? -fastest : qd);
    const real pull = most * (real(1) - v / top), brake = most * (real(-1) - v / top);
    high = pull < bound ? pull : bound;
    low = brake > -bound ? brake : -bound;
}"""

_TABLE = """{
    const int first = rows.data[2 * j], last = first + rows.data[2 * j + 1] - 1;
    const real* t = table.data;
    int k = first;
    while (k < last && q > t[2 * k + 2]) ++k;
    real share = k < last ? (q - t[2 * k]) / (t[2 * k + 2] - t[2 * k]) : real(0);
    share = share < real(0) ? real(0) : share;
    high = k < last ? t[2 * k + 1] + share * (t[2 * k + 3] - t[2 * k + 1]) : t[2 * k + 1];
    high = high < bound ? high : bound;
    low = -high;
}"""

_CODE = (
    (NETWORK, "effort = network.data[n + j];"),
    (MOTOR, _MOTOR),
    (NETWORK, _MOTOR),
    (TABLE, _TABLE),
)


def _row_code(real, kinds: tuple[int, ...], each: int, joints: int) -> str:
    """C++ of the efforts of an instance with so many joints, which have some laws; `each`: numbers from joint to joint in the state."""
    plain = sorted({kind % DELAYED for kind in kinds})
    delays = any(kind >= DELAYED for kind in kinds)

    def only_for(kind: int, code: str) -> str:
        return code if len(plain) == 1 else f"if (kind == {kind}) {code}"

    laws = "\n".join(only_for(kind, code) for kind, code in _CODE if kind in plain)
    drives = []
    if IMPLICIT in plain:
        drives.append(
            only_for(
                IMPLICIT, "{ out_q[j * EACH] = aim_q[j]; out_qd[j * EACH] = aim_qd[j]; out_f[j * EACH] = feed[j]; }"
            )
        )
    if plain != [IMPLICIT]:
        drives.append(
            "out_f[j * EACH] = result;"
            if IMPLICIT not in plain
            else f"if (kind != {IMPLICIT}) out_f[j * EACH] = result;"
        )
    code = (
        _ROW.replace("DELAY\n", _DELAY if delays else "").replace("LAWS", laws).replace("DRIVES", "\n    ".join(drives))
    )
    code = code.replace("KIND", str(plain[0]) if len(plain) == 1 else f"law.data[j] % {DELAYED}")
    code = code.replace("EACH", str(each)).replace("DELAYED", str(DELAYED)).replace("COUNT", str(joints))
    return f"typedef {C_NAME[real]} real;" + code


@cache
def actuate_kernel(real, kinds: tuple[int, ...], each: int = 1, joints: int = 0):
    """The kernel of efforts for the scalar type `real` and the laws that joints have, over instances.

    Numbers of commands, gains and efforts are in rows without gaps; gains of all instances are in one row if `gains` is 0, and not the
    number of joints. Those of the state and the control begin at ``first_q + i step_q`` and ``first_v + i step_v``, with `each` numbers
    from joint to joint. `joints`: their number, if commands are delayed.

    Arguments are not structs: Warp copies a struct for each thread, which takes as long as the efforts of an instance.
    """

    # pointers, so that the compiler makes vectors of joints
    @wp.func_native(_row_code(real, kinds, each, joints))
    def row(
        i: int,
        count: int,
        law: wp.array[int],
        rows: wp.array2d[int],
        table: wp.array2d[real],
        gains: int,
        kp: wp.array[real],
        kd: wp.array[real],
        limit: wp.array[real],
        stall: wp.array[real],
        speed: wp.array[real],
        target_q: wp.array[real],
        target_qd: wp.array[real],
        target_f: wp.array[real],
        history: wp.array4d[real],
        pushed: wp.array[int],
        delay: wp.array[int],
        network: wp.array[real],
        first_q: int,
        step_q: int,
        first_v: int,
        step_v: int,
        joint_q: wp.array[real],
        joint_qd: wp.array[real],
        drive_q: wp.array[real],
        drive_qd: wp.array[real],
        drive_f: wp.array[real],
        computed: wp.array[real],
        applied: wp.array[real],
    ): ...

    @wp.kernel(module="unique", enable_backward=False, module_options=module_options(GENERAL_FLAGS, 1))
    def actuate(
        first: int,
        # of joints: laws, and the rows of their tables (first, count)
        law: wp.array[int],
        rows: wp.array2d[int],
        table: wp.array2d[real],
        # of instances and joints: gains, limits, stall effort, speed without load
        gains: int,
        kp: wp.array[real],
        kd: wp.array[real],
        limit: wp.array[real],
        stall: wp.array[real],
        speed: wp.array[real],
        # commands; those of steps before, [slot, instance, 3, joint]; number of commands since the reset; delays
        target_q: wp.array[real],
        target_qd: wp.array[real],
        target_f: wp.array[real],
        history: wp.array4d[real],
        pushed: wp.array[int],
        delay: wp.array[int],
        # efforts of networks
        network: wp.array[real],
        # where joints are in the state
        first_q: int,
        step_q: int,
        first_v: int,
        step_v: int,
        joint_q: wp.array[real],
        joint_qd: wp.array[real],
        # out: commands of drives, and what is reported
        drive_q: wp.array[real],
        drive_qd: wp.array[real],
        drive_f: wp.array[real],
        computed: wp.array[real],
        applied: wp.array[real],
    ):
        row(
            first + wp.tid(), law.shape[0], law, rows, table, gains, kp, kd, limit, stall, speed, target_q, target_qd, target_f, history,
            pushed, delay, network, first_q, step_q, first_v, step_v, joint_q, joint_qd, drive_q, drive_qd, drive_f, computed,
            applied,
        )  # fmt: skip

    return actuate


@cache
def joint_kernels(real) -> types.SimpleNamespace:
    """Kernels for the scalar type `real`, over instances and joints: `join_limits`."""

    @wp.kernel(module="unique", enable_backward=False)
    def join_limits(
        lower: wp.array2d[real],
        upper: wp.array2d[real],
        factor: real,
        # out: limits, and those of the share `factor` of the range about its middle. Soft limits that a user set stay until the limits
        # of the joint change.
        limits: wp.array3d[real],
        soft: wp.array3d[real],
    ):
        i, j = wp.tid()
        a = lower[i, j]
        b = upper[i, j]
        if limits[i, j, 0] == a and limits[i, j, 1] == b:
            return
        limits[i, j, 0] = a
        limits[i, j, 1] = b
        middle = real(0.5) * (a + b)
        half = real(0.5) * factor * (b - a)
        soft[i, j, 0] = middle - half
        soft[i, j, 1] = middle + half

    return types.SimpleNamespace(join_limits=join_limits)
