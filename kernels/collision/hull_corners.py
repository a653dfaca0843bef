"""Passes over the vertices of a convex hull: those that may touch a plane, and the farthest one along a direction. The code is native,
because registers hold all that a pass carries."""

import types

import warp as wp
from newton_like.kernels.simd import C_NAME, FUSE, register_code, simd_types

FAR = 1.0e10
"""A distance [m] that is farther than anything."""

LISTED = 64
"""Of hulls with no more vertices than this, those that may touch are listed once."""


def _code(width: int, real) -> str:
    """C++ body of ``find_corners`` for lanes of `width` worlds."""
    number = C_NAME[real]
    if width == 1:
        head = f"typedef {number} simd;"
        read = "const char* own = (const char*)varying.data + b * (size_t)varying.strides[0] + at * (size_t)varying.strides[1];"
        varied = f"*(const {number}*)(own + ({{}}) * (size_t)varying.strides[1])"
        some, put = "({})", "mem.data[(size_t)(place + {}) * mem.shape[1] + t] = {};"
    else:
        head = FUSE + simd_types(width, real)
        read = "const simd* own = (const simd*)(varying.data + (size_t)b * varying.shape[1] + at);"
        varied, some = "own[{}]", "(__builtin_reduce_or((simdi)({})) != 0)"
        put = "((simd*)mem.data)[place + {}] = {};"
    registers = register_code(
        width, down_x="down.x", down_y="down.y", down_z="down.z", above="above_", thick="thick_", reach="reach_"
    )
    vertex = "".join(
        f"const simd {axis} = varies ? {varied.format(f'3 * i + {k}')} : simd(fixed[3 * i + {k}]);"
        for k, axis in enumerate("xyz")
    )
    vertex += "const simd low = down_x * x + down_y * y + down_z * z;"

    def choose(better: str, best: str, point: str) -> str:
        """Statements: the vertex becomes `point` where `better` is above `best`, which becomes the larger of both."""
        moved = "".join(f"{point}{k} = {best} < {better} ? {k} : {point}{k};" for k in "xyz")
        return f"{moved} {best} = {best} < {better} ? {better} : {best};"

    def new_point(name: str, value: str) -> str:
        return f"simd {name}x = {value}x, {name}y = {value}y, {name}z = {value}z;"

    def touches(statements: str) -> str:
        """A pass over the vertices that may touch, with their weights and their positions relative to the first corner."""
        return f"""
        for (int k = 0; k < number; ++k) {{
            const int i = listed ? near[k] : k;
            {vertex}
            if (!listed && !{some.format("bar < low")}) continue;
            const simd ex = x - fx, ey = y - fy, ez = z - fz;
            const simd deeper = low - slab;
            const simd weight = (deeper > 0 ? deeper : simd(0)) + (above < low ? touching : simd(0));
            {statements}
        }}"""

    sides = (
        "const simd left = weight * (lx * ex + ly * ey + lz * ez), right = weight * (rx * ex + ry * ey + rz * ez);"
        f"{choose('left', 'most', 't')} {choose('right', 'best', 'u')}"
    )
    corners = [f"{point}{axis}" for point in "fstu" for axis in "xyz"]
    # a maximum of four independent ones: a processor compares them in parallel
    lowest = "".join(
        f"{{ const int i = k + {n}; {vertex} lows[i % {LISTED}] = low; low{n} = low{n} < low ? low : low{n}; }}"
        for n in range(4)
    )
    return f"""{head} {read} const {number}* fixed = uniform.data + at; {registers}
        simd lows[{LISTED}];
        const bool listed = count <= {LISTED};
        simd low0 = simd(-{FAR}), low1 = low0, low2 = low0, low3 = low0;
        int k = 0;
        for (; k + 3 < count; k += 4) {{ {lowest} }}
        for (; k < count; ++k) {{ const int i = k; {vertex} lows[i % {LISTED}] = low; low0 = low0 < low ? low : low0; }}
        low0 = low0 < low1 ? low1 : low0; low2 = low2 < low3 ? low3 : low2;
        const simd lowest = low0 < low2 ? low2 : low0;
        if (!{some.format("above - lowest < reach")}) return false;
        // vertices within this height of the deepest one may touch the plane within the step; those below the plane touch it now
        const simd slab = lowest - thick, touching = simd(64) * thick, bar = slab < above ? slab : above;
        int near[{LISTED}], number = listed ? 0 : count;
        if (listed) for (int i = 0; i < count; ++i) if ({some.format("bar < lows[i]")}) near[number++] = i;
        simd fx = simd(0), fy = simd(0), fz = simd(0), deepest = simd(-{FAR});
        for (int k = 0; k < number; ++k) {{ const int i = listed ? near[k] : k; {vertex} {choose("low", "deepest", "f")} }}
        {new_point("s", "f")} simd farthest = simd(0);
        {touches(f"const simd far = weight * (ex * ex + ey * ey + ez * ez); {choose('far', 'farthest', 's')}")}
        // to both sides of the line through these two, and behind the first one
        const simd ax = sx - fx, ay = sy - fy, az = sz - fz;
        const simd cx = ay * down_z - az * down_y, cy = az * down_x - ax * down_z, cz = ax * down_y - ay * down_x;
        const simd lx = cx - simd(0.1) * ax, ly = cy - simd(0.1) * ay, lz = cz - simd(0.1) * az;
        const simd rx = -simd(0.1) * ax - cx, ry = -simd(0.1) * ay - cy, rz = -simd(0.1) * az - cz;
        // areas of points on the line are rounding errors
        simd most = simd(1.0e-4) * farthest, best = most;
        {new_point("t", "f")} {new_point("u", "f")}
        {touches(sides)}
        {"".join(put.format(k, name) for k, name in enumerate(corners))}
        return true;"""


def _farthest_code(width: int, real) -> str:
    """C++ body of ``hull_farthest`` for lanes of `width` worlds."""
    number = C_NAME[real]
    if width == 1:
        head = f"typedef {number} simd;"
        read = "const char* own = (const char*)varying.data + b * (size_t)varying.strides[0] + at * (size_t)varying.strides[1];"
        varied = f"*(const {number}*)(own + ({{}}) * (size_t)varying.strides[1])"
        put = "mem.data[(size_t)(place + {}) * mem.shape[1] + t] = {};"
    else:
        head = FUSE + simd_types(width, real)
        read = "const simd* own = (const simd*)(varying.data + (size_t)b * varying.shape[1] + at);"
        varied, put = "own[{}]", "((simd*)mem.data)[place + {}] = {};"
    registers = register_code(width, dx="direction.x", dy="direction.y", dz="direction.z")

    def part(n: int, taken: str) -> str:
        """Statements: vertex i + n * part becomes the farthest one of its part if it is farther than those before it."""
        at = f"3 * (i + {n} * part)"
        places = [f"{at} + {k}" for k in range(3)]
        vertex = "".join(f"const simd {k} = {taken.format(place)};" for k, place in zip("xyz", places, strict=True))
        moved = "".join(f"{k}{n} = far ? {k} : {k}{n};" for k in "xyz")
        if width > 1:
            moved = moved.replace("far ?", f"most{n} < reach ?")
        far = f"const bool far = most{n} < reach;" if width == 1 else ""
        return f"{{ {vertex} const simd reach = x * dx + (y * dy + z * dz); {far} {moved} most{n} = most{n} < reach ? reach : most{n}; }}"

    def all_parts(taken: str) -> str:
        loop = "".join(part(n, taken) for n in range(4))
        rest = part(3, taken)
        return f"for (int i = 0; i < part; ++i) {{ {loop} }} for (int i = part; i + 3 * part < count; ++i) {rest}"

    new = "".join(f"simd most{n} = simd(-{FAR}), x{n} = simd(0), y{n} = simd(0), z{n} = simd(0);" for n in range(4))

    def better(n: int, other: int) -> str:
        """Statements: the farther one of two parts; the first one of equal vertices counts."""
        moved = "".join(f"{k}{n} = most{n} < most{other} ? {k}{other} : {k}{n};" for k in "xyz")
        return f"{moved} most{n} = most{n} < most{other} ? most{other} : most{n};"

    return f"""{head} {read} const {number}* fixed = uniform.data + at; {registers}
        // four parts of the vertices, which a processor compares in parallel
        const int part = count / 4;
        {new}
        if (varies) {{ {all_parts(varied)} }} else {{ {all_parts("simd(fixed[{}])")} }}
        {better(0, 1)} {better(2, 3)} {better(0, 2)}
        {"".join(put.format(i, f"{k}0") for i, k in enumerate("xyz"))}"""


def hull_corner_program(m: types.SimpleNamespace) -> dict:
    """For the namespace `m`: ``find_corners`` and ``hull_farthest``."""
    if not hasattr(m, "width"):
        return {"find_corners": None, "hull_farthest": None}  # a stage of a specialised step does not contain hulls

    @wp.func_native(_farthest_code(m.width, m.real))
    def hull_farthest(
        # the vertices: from place `at` of the parameters of block b on
        uniform: wp.array[m.real], varying: m.memory, varies: int, b: int, at: int, count: int, direction: m.Vec3,
        mem: m.memory, place: int, t: int,
    ):  # fmt: skip
        """Stores the vertex at `place` that is farthest along a direction, the first one of several."""

    @wp.func_native(_code(m.width, m.real))
    def find_corners(
        # the vertices: from place `at` of the parameters of block b on
        uniform: wp.array[m.real], varying: m.memory, varies: int, b: int, at: int, count: int,
        # the direction towards the plane, in the axes of the vertices; the distance of the plane from their origin in this direction
        down: m.Vec3, above_: m.lane, thick_: m.lane, reach_: m.lane,
        mem: m.memory, place: int, t: int,
    ) -> bool:  # fmt: skip
        """Returns whether the deepest vertex is closer than `reach_` to the plane in some world, and then stores four vertices at
        `place`: the deepest one, the farthest one from it, and the two farthest on either side of the line through both, or behind
        the first one. Distances are weighted by depth, because a vertex that is left out may penetrate the
        plane, and pushing it out later adds energy. Vertices higher than `thick_` above the deepest one and above the plane do not
        count."""

    return {"find_corners": find_corners, "hull_farthest": hull_farthest}
