"""What the kernels of `newton_like.kernels.parameters` share: reading arrays as numbers in a row, giving numbers to lanes, and watching for
numbers that cannot be."""

import types
from functools import cache

import warp as wp

QUATERNION, AXIS = 1.0e-2, 1.0e-3
"""Largest deviations of lengths from one: ``UNIT_TOLERANCE`` and ``AXIS_TOLERANCE`` of ``newton_like.geometry.transforms``."""

EFFORT_MODE = 4
"""The last of ``newton_like.types.JointTargetMode``."""

KINEMATIC = 2
"""The bit of ``newton_like.types.BodyFlags``."""


@cache
def gather_functions(real) -> types.SimpleNamespace:
    """For the scalar type `real`: the structs `Target` and `Batch`, and the functions of kernels that fill a target."""

    @wp.struct
    class Target:
        # the first lane that is done, articulations, those of a block, and whether there are blocks to write to
        first_lane: int
        count: int
        width: int
        written: int
        # the lanes as numbers in a row, and how far apart are those of neighbouring blocks and those of neighbouring places
        numbers: wp.array[real]
        block_step: int
        step: int
        # the numbers that all articulations share; NaN where articulations may differ
        held: wp.array[real]
        # the world of each articulation, when worlds were edited, and since when they are of interest, [1]
        world: wp.array[int]
        edited: wp.array[int]
        since: wp.array[int]
        # blocks of an articulation, and how many threads share them
        items: int
        sharing: int
        # out: which of the held numbers differ; and, of the whole batch: whether any does, whether a limit binds that none bound
        # before, whether contacts turn about their normal or a plane ends, and whether a number is not finite or out of range
        differs: wp.array[wp.bool]
        status: wp.array[wp.bool]

    @wp.struct
    class Batch:
        # of the first articulation the first joint, coordinate, dof and body in the arrays of the model, and the strides to the next one
        joint_start: int
        joint_stride: int
        q_start: int
        q_stride: int
        qd_start: int
        qd_stride: int
        body_start: int
        body_stride: int

    # pointers: indices that may be negative and strides, which arrays of Warp have, take half the time of a kernel on a CPU
    value = f"auto value = static_cast<wp::{real.__name__}>(x), held = G.held.data[place];"
    varies = "__builtin_expect(held != held, 1)"
    write = "if (G.written) G.numbers.data[lane + place * G.step] = value;"
    differ = "G.differs.data[place] = true; G.status.data[0] = true;"

    # the two differ in speed only: most numbers of joints and shapes are held; those of bodies are, or vary together
    @wp.func_native(f"{value} if (value != held) {{ if ({varies}) {{ {write} }} else {{ {differ} }} }}")
    def give(G: Target, lane: int, place: int, x: wp.float64): ...

    @wp.func_native(f"{value} if ({varies}) {{ {write} }} else if (value != held) {{ {differ} }}")
    def give_of_body(G: Target, lane: int, place: int, x: wp.float64): ...

    @wp.func
    def give3(G: Target, lane: int, place: int, x: wp.vec3d):
        give(G, lane, place, x[0])
        give(G, lane, place + 1, x[1])
        give(G, lane, place + 2, x[2])

    @wp.func
    def give4(G: Target, lane: int, place: int, v: wp.vec3d, w: wp.float64):
        give3(G, lane, place, v)
        give(G, lane, place + 3, w)

    # a quaternion of length 1; the length is looked at only where a number is not held, or differs
    low, high = (1.0 - QUATERNION) ** 2, (1.0 + QUATERNION) ** 2
    number = f"wp::{real.__name__}"
    entries = ", ".join(f"static_cast<{number}>({entry})" for entry in ("v[0]", "v[1]", "v[2]", "w"))
    four = f"const {number} x[4] = {{{entries}}};"
    same = " & ".join(f"(x[{i}] == held[{i}])" for i in range(4))
    each = "; ".join(
        f"if (held[{i}] != held[{i}]) {{ if (G.written) G.numbers.data[lane + (place + {i}) * G.step] = x[{i}]; }}"
        f" else if (x[{i}] != held[{i}]) {{ G.differs.data[place + {i}] = true; G.status.data[0] = true; }}"
        for i in range(4)
    )

    @wp.func_native(
        f"{four} const auto held = G.held.data + place; if (!({same})) {{ auto y = dot(v, v) + w * w;"
        f" if (!((y >= {low}) & (y <= {high}))) G.status.data[3] = true; {each} }}"
    )
    def give_turn(G: Target, lane: int, place: int, v: wp.vec3d, w: wp.float64): ...

    # whether three numbers are not held, or differ
    three = " & ".join(f"(static_cast<{number}>(x[{i}]) == held[{i}])" for i in range(3))

    @wp.func_native(f"const auto held = G.held.data + place; return !({three});")
    def news(G: Target, place: int, x: wp.vec3d) -> wp.bool: ...

    @wp.func_native(f"return !(static_cast<{number}>(x) == G.held.data[place]);")
    def is_new(G: Target, place: int, x: wp.float64) -> wp.bool: ...

    @wp.func
    def lane_of(G: Target, thread: int):
        """Where the first number of a thread's articulation goes."""
        block = thread // G.width
        return block * G.block_step + thread - block * G.width

    @wp.func
    def articulation(G: Target, at_lane: int):
        """The articulation of a thread, or -1 if its world was not edited, and where its first number goes. Lanes beyond the last
        articulation repeat it."""
        thread = G.first_lane + at_lane
        i = wp.min(thread, G.count - 1)
        if G.edited[G.world[i]] <= G.since[0]:
            i = -1
        return i, lane_of(G, thread)

    @wp.func_native("return a.data[i];")
    def fetch(a: wp.array[real], i: int) -> wp.float64: ...

    @wp.func_native("return a.data[i];")
    def whole(a: wp.array[int], i: int) -> int: ...

    @wp.func
    def fetch3(a: wp.array[real], i: int):
        return wp.vec3d(fetch(a, i), fetch(a, i + 1), fetch(a, i + 2))

    # the difference of a number that is not finite from itself is not a number
    @wp.func_native("if (!(x - x == 0)) G.status.data[3] = true;")
    def watch(G: Target, x: wp.float64): ...

    @wp.func_native("auto x = a.data[i] + a.data[i + 1] + a.data[i + 2]; if (!(x - x == 0)) G.status.data[3] = true;")
    def watch3(G: Target, a: wp.array[real], i: int): ...

    # comparisons with NaN are false
    def watched(tolerance: float, *names: str) -> str:
        low, high = (1.0 - tolerance) ** 2, (1.0 + tolerance) ** 2
        inside = " & ".join(f"({name} >= {low}) & ({name} <= {high})" for name in names)
        return f"if (!({inside})) G.status.data[3] = true;"

    @wp.func_native(f"auto x = dot(v, v) + w * w; {watched(QUATERNION, 'x')}")
    def watch_quaternion(G: Target, v: wp.vec3d, w: wp.float64): ...

    @wp.func_native(f"auto x = dot(v, v); {watched(AXIS, 'x')}")
    def watch_axis(G: Target, v: wp.vec3d): ...

    # limits may be infinite
    @wp.func_native(
        "if (!((gains - gains == 0) & (least >= 0) & (effort >= 0) & (speed >= 0) & (lower < far) & (upper > -far)"
        f" & (mode >= 0) & (mode <= {EFFORT_MODE}))) G.status.data[3] = true;"
    )
    def watch_gains(
        G: Target,
        gains: wp.float64,
        least: wp.float64,
        effort: wp.float64,
        speed: wp.float64,
        lower: wp.float64,
        upper: wp.float64,
        far: wp.float64,
        mode: int,
    ): ...

    @wp.func_native("if (!(x <= y)) G.status.data[3] = true;")
    def watch_order(G: Target, x: wp.float64, y: wp.float64): ...

    @wp.func_native("if (!((x[0] >= 0) & (x[1] >= 0) & (x[2] >= 0))) G.status.data[3] = true;")
    def watch_sizes(G: Target, x: wp.vec3d): ...

    # two shapes that touch
    @wp.func_native(
        "auto x = a.data[s], y = a.data[g]; if (!((x >= 0) & (y >= 0) & (x <= most) & (y <= most))) G.status.data[3] = true;"
    )
    def watch_pair(G: Target, a: wp.array[real], s: int, g: int, most: wp.float64): ...

    @wp.func
    def prescribed(slot: int, first: int, flags: wp.array[int]):
        """Whether the body at a place of an articulation is kinematic; False for the place -1."""
        found = bool(False)
        if slot >= 0:
            found = (whole(flags, first + slot) & KINEMATIC) != 0
        return found

    @wp.func
    def turned(v: wp.vec3d, w: wp.float64, x: wp.vec3d):
        """The vector x turned by the unit quaternion (v, w)."""
        y = wp.float64(2.0) * wp.cross(v, x)
        return x + w * y + wp.cross(v, y)

    return types.SimpleNamespace(
        Target=Target, Batch=Batch, give=give, give_of_body=give_of_body, give3=give3, give4=give4, lane_of=lane_of,
        articulation=articulation, fetch=fetch, whole=whole, fetch3=fetch3, watch=watch, watch3=watch3, watch_quaternion=watch_quaternion,
        watch_axis=watch_axis, watch_sizes=watch_sizes, give_turn=give_turn, news=news, is_new=is_new,
        watch_gains=watch_gains, watch_order=watch_order, watch_pair=watch_pair, prescribed=prescribed, turned=turned,
    )  # fmt: skip
