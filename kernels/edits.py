"""Kernels that record in which worlds arrays were edited, and that update what depends on masses and inertias."""

import types
from functools import cache

import warp as wp
from newton_like.kernels.simd import COPYING, GENERAL_FLAGS, module_options


@cache
def edit_kernels() -> types.SimpleNamespace:
    """Kernels ``mark`` (over worlds), which records edits, and ``watch`` (over shapes), which detects edited flags, types and collision
    groups, and edited scales of hulls."""

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def mark(mask: wp.array[wp.bool], groups: int, as_first: int, version: int, when: wp.array2d[int]):
        """what all worlds share has numbers of the groups `as_first` from world 0"""
        w = wp.tid()
        if mask[w]:
            for g in range(when.shape[0]):
                if ((groups >> g) & 1) != 0:
                    when[g, w] = version
                    # a scene without worlds is one world
                    if mask.shape[0] == 1 or (w == 0 and ((as_first >> g) & 1) != 0):
                        when[g, mask.shape[0]] = version

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def watch(
        world: wp.array[int],
        edited: wp.array[int],
        since: int,
        flags: wp.array[int],
        groups: wp.array[int],
        types: wp.array[int],
        old_flags: wp.array[int],
        old_groups: wp.array[int],
        old_types: wp.array[int],
        # hulls, and their scales as words of 32 bits, now and before; 0 words a shape: there are no hulls
        words: int,
        hulls: wp.array[int],
        scales: wp.array[int],
        old_scales: wp.array[int],
        # out:
        changed: wp.array[wp.bool],
    ):
        s = wp.tid()
        w = world[s]
        if w < 0:
            w = edited.shape[0] - 1
        if edited[w] > since:
            if flags[s] != old_flags[s] or groups[s] != old_groups[s] or types[s] != old_types[s]:
                changed[0] = True
            if words > 0 and hulls[s] > 0:
                for k in range(words * s, words * s + words):
                    if scales[k] != old_scales[k]:
                        changed[1] = True

    return types.SimpleNamespace(mark=mark, watch=watch)


@cache
def fingerprint_kernels() -> types.SimpleNamespace:
    """Kernels that compare the fingerprints of arrays with those of the last look. They run in this order: ``compare_shared`` (one thread)
    for entities that all worlds share, ``compare`` (over blocks of `each` worlds from `first` on), and ``mark_shared`` (one thread), which
    marks what is shared. ``digest`` (one thread) computes one fingerprint of whole arrays.

    A row of `table` has, for each array, its address, that of the first entity of each world, and the number of words of 32 bits of an
    entity. `since` has the version since when edits of worlds are of interest, how often worlds were looked at, and the version that
    worlds are marked with. `looked` has the value of that counter for each block and, last, for what is shared; -1: the fingerprint is not
    known. `news` has the value at which what is shared changed, and the one at which any world did.
    """
    # words go into chains by the round of XXH64 (Y. Collet, xxHash), which is one to one in the word and in the chain: a change of one
    # word is always found, and a random change is missed with a probability of 2^-64. A register has eight chains. With fewer than four
    # registers a round waits for the last one. Where no instruction multiplies registers of 64 bits, another round takes less than half
    # the time: factors of 32 bits (XXH32's) for the words, and a shift and an addition for the chain. It is one to one in the chain and in
    # each word of 32 bits
    masks = ", ".join(["0u"] * 64 + ["~0u"] * 64)
    fold = """
        typedef unsigned long long Word;
        const Word odd = 11400714785074694791ull, other = 14029467366897019727ull;
        auto join = [&](auto& x, auto word) { x += word * other; x = (x << 31) | (x >> 33); x *= odd; };
        Word all = 0;
    #ifdef __clang__
        typedef Word Chains __attribute__((ext_vector_type(8)));
        const Chains numbers = {1, 2, 3, 4, 5, 6, 7, 8};
        Chains a = odd * numbers, b = odd * (numbers + 8), c = odd * (numbers + 16), d = odd * (numbers + 24);
        auto mix = [&](auto& x, auto words) {
    #ifdef __AVX512DQ__
            join(x, words);
    #else
            x += (words & 0xffffffffu) * 2654435761u + (words >> 32) * 2246822519u; x = (x << 32) | (x >> 32); x += x << 27;
    #endif
        };
        auto read = [](const unsigned* from) { Chains x; __builtin_memcpy(&x, from, 64); return x; };
        static const unsigned masks[128] = {MASKS};
    #else
        Word chain[16];
        for (int i = 0; i < 16; ++i) chain[i] = odd * (i + 1);
    #endif
        for (int k = 0; k < count; ++k) {
            const long long* row = (const long long*)table.data + 3 * k;
            const unsigned* words = (const unsigned*)row[0];
            const int* starts = (const int*)row[1];
            size_t at = FIRST, end = END;
    #ifdef __clang__
            // the next block's words come while the other arrays of this one are read; of a long block its own
            const size_t next = end - at < 1024 ? end - at : 1024;
            for (; at + 64 <= end; at += 64) {
                for (int i = 0; i < 64; i += 16) __builtin_prefetch(words + at + next + i);
                mix(a, read(words + at)); mix(b, read(words + at + 16));
                mix(c, read(words + at + 32)); mix(d, read(words + at + 48));
            }
            if (at < end && end >= 64) {
                // the last 64 words, of which those that were read count as zero
                const unsigned* mask = masks + (end - at);
                words += end - 64;
                mix(a, read(words) & read(mask)); mix(b, read(words + 16) & read(mask + 16));
                mix(c, read(words + 32) & read(mask + 32)); mix(d, read(words + 48) & read(mask + 48));
            } else
                for (; at < end; ++at) join(all, (Word)words[at]);
        }
        join(a, b); join(c, d); join(a, c);
        for (int i = 0; i < 8; ++i) join(all, a[i]);
    #else
            for (; at + 32 <= end; at += 32)
                for (int i = 0; i < 16; ++i) join(chain[i], words[at + 2 * i] | (Word)words[at + 2 * i + 1] << 32);
            for (int i = 0; at < end; ++at, ++i) join(chain[i & 15], (Word)words[at]);
        }
        for (int i = 0; i < 16; ++i) join(all, chain[i]);
    #endif
        return all;
    """.replace("MASKS", masks)

    @wp.func_native(fold.replace("FIRST", "row[2] * starts[begin]").replace("END", "row[2] * starts[behind]"))
    def fold_worlds(table: wp.array[wp.int64], count: int, begin: int, behind: int) -> wp.uint64: ...

    # part 0 of what is shared lies before the first world, part 1 behind the last
    first, end = "part ? row[2] * starts[worlds] : 0", "row[2] * starts[part ? worlds + 1 : 0]"

    @wp.func_native(fold.replace("FIRST", first).replace("END", end))
    def fold_shared(table: wp.array[wp.int64], count: int, part: int, worlds: int) -> wp.uint64: ...

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def compare_shared(
        worlds: int,
        blocks: int,
        count: int,
        table: wp.array[wp.int64],
        edited: wp.array[int],
        since: wp.array[int],
        # out:
        prints: wp.array[wp.uint64],
        looked: wp.array[int],
        news: wp.array[int],
        changed: wp.array[int],
        any_changed: wp.array[int],
    ):
        for part in range(2):
            found = fold_shared(table, count, part, worlds)
            if found != prints[blocks + part]:
                prints[blocks + part] = found
                news[0] = since[1]

    @wp.kernel(module="unique", enable_backward=False, module_options=COPYING)
    def mark_shared(
        worlds: int,
        blocks: int,
        count: int,
        table: wp.array[wp.int64],
        edited: wp.array[int],
        since: wp.array[int],
        # out:
        prints: wp.array[wp.uint64],
        looked: wp.array[int],
        news: wp.array[int],
        changed: wp.array[int],
        any_changed: wp.array[int],
    ):
        # what is shared may be computed together with entities of worlds
        if edited[worlds] > since[0]:
            if looked[blocks] < wp.max(news[0], news[1]):
                changed[worlds] = since[2]
                any_changed[0] = since[2]
            looked[blocks] = since[1]

    @wp.kernel(
        module="unique",
        enable_backward=False,
        module_options=module_options(GENERAL_FLAGS, 8),
    )
    def compare(
        first: int,
        each: int,
        # whether numbers of worlds depend on what is shared
        crossing: int,
        worlds: int,
        blocks: int,
        count: int,
        table: wp.array[wp.int64],
        edited: wp.array[int],
        since: wp.array[int],
        # out:
        prints: wp.array[wp.uint64],
        looked: wp.array[int],
        news: wp.array[int],
        changed: wp.array[int],
        any_changed: wp.array[int],
    ):
        b = first + wp.tid()
        begin = b * each
        behind = wp.min(begin + each, worlds)
        chosen = int(0)
        for w in range(begin, behind):
            if edited[w] > since[0]:
                chosen += 1
        if chosen == 0:
            return
        known = int(0)
        if crossing != 0:
            known = news[0]
        if chosen == behind - begin:
            found = fold_worlds(table, count, begin, behind)
            if looked[b] >= known and found == prints[b]:
                return
            prints[b] = found
            looked[b] = since[1]
        else:
            # the other worlds are not read
            looked[b] = -1
        for w in range(begin, behind):
            if edited[w] > since[0]:
                changed[w] = since[2]
        news[1] = since[1]
        any_changed[0] = since[2]

    @wp.kernel(
        module="unique",
        enable_backward=False,
        module_options=module_options(GENERAL_FLAGS, 8),
    )
    def digest(count: int, table: wp.array[wp.int64], found: wp.array[wp.uint64]):
        found[0] = fold_worlds(table, count, 0, 1)

    return types.SimpleNamespace(digest=digest, compare=compare, compare_shared=compare_shared, mark_shared=mark_shared)


DEGENERATE = 1.0e-12
"""An inertia is singular if its determinant is at most this fraction of the cube of its mean moment."""

REGULAR = 3.0e-8
"""If the determinant of a body's inertia over the cube of its mean moment is above this value, no principal moment is below 1e-9 of
the largest."""

NOTHING = 1.0e-20
"""Masses [kg] and inertias [kg m^2] up to this value count as zero. It is below those of a grain of dust, and above rounding errors around
exact zeros."""

NEGLIGIBLE = 1.0e-9
"""A singular inertia has rank one if the largest cross product of two of its rows is at most this fraction of its squared trace."""


LARGEST = 1.7e308
"""Sums above this value count as infinite."""

THIRD = 0.3333333333333333

POSSIBLE = 1.0e-5
"""Deviations of an inertia from a possible one, over powers of its mean moment, that are looked at on the host:
``newton_like.geometry.inertia.RELATIVE_TOLERANCE``."""


@cache
def mass_kernels(real) -> types.SimpleNamespace:
    """Kernels that check and invert the masses and inertias of bodies of edited worlds.

    ``invert``, over the worlds from `first` on, computes inverse masses and inertias; the inverse of a zero or singular one is 0. The last
    world is world -1. The kernel sets ``found[0]`` if a mass or an inertia may be impossible, ``found[1]`` if an inertia is
    singular, and ``found[2]`` if a body became `lean` (its mass or inertia is zero or nearly singular).
    ``invert_singular``, over bodies, computes the pseudo-inverses of singular inertias.
    """
    f = wp.float64

    # pointers, as in `newton_like.kernels.parameters`
    @wp.func_native("return a.data[size_t(at) + i];")
    def entry(a: wp.array[real], at: int, i: int) -> wp.float64: ...

    @wp.func_native(f"a.data[size_t(at) + i] = static_cast<wp::{real.__name__}>(x);")
    def store(a: wp.array[real], at: int, i: int, x: wp.float64): ...

    @wp.func_native("if (thin && !lean.data[i]) found.data[2] = version; lean.data[i] = thin;")
    def note_lean(lean: wp.array[wp.bool], i: int, thin: wp.bool, found: wp.array[int], version: int): ...

    @wp.func_native("double x = a.data[size_t(at) + i], y = a.data[size_t(at) + j]; return x < y ? y - x : x - y;")
    def apart(a: wp.array[real], at: int, i: int, j: int) -> wp.float64: ...

    @wp.func_native("if (!((x >= 0) & (y >= 0) & (z >= 0))) found.data[0] = version;")
    def judge(x: wp.float64, y: wp.float64, z: wp.float64, found: wp.array[int], version: int): ...

    @wp.func
    def moment(inertia: wp.array[real], at: int, i: int, j: int):
        """Entry (i, j) of the symmetric part of the inertia that starts at `at`."""
        return f(0.5) * (entry(inertia, at, 3 * i + j) + entry(inertia, at, 3 * j + i))

    @wp.kernel(module="unique", enable_backward=False, module_options=module_options(GENERAL_FLAGS, 8))
    def invert(
        first: int,
        body_start: wp.array[int],
        edited: wp.array[int],
        version: int,
        inverses: int,
        mass: wp.array[real],
        inertia: wp.array[real],
        # out:
        inverse_mass: wp.array[real],
        inverse_inertia: wp.array[real],
        lean: wp.array[wp.bool],
        found: wp.array[int],
    ):
        w = first + wp.tid()
        if edited[w] != version:
            return
        # bodies of world -1 are stored before the first world and after the last one
        count = body_start[w + 1] - body_start[w]
        before = int(0)
        if w == edited.shape[0] - 1:
            before = body_start[0]
        for k in range(count + before):
            i = body_start[w] + k - before
            if k < before:
                i = k
            m = entry(mass, i, 0)
            at = 9 * i
            xx = entry(inertia, at, 0)
            yy = entry(inertia, at, 4)
            zz = entry(inertia, at, 8)
            xy = moment(inertia, at, 0, 1)
            xz = moment(inertia, at, 0, 2)
            yz = moment(inertia, at, 1, 2)
            trace = xx + yy + zz
            sound = m >= f(0.0) and xx >= f(0.0) and yy >= f(0.0) and zz >= f(0.0)
            if not (sound and wp.abs(m + trace + xy + xz + yz) <= f(LARGEST)):
                found[0] = version
            # by cofactors
            a = yy * zz - yz * yz
            b = xz * yz - xy * zz
            c = xy * yz - xz * yy
            y = xx * zz - xz * xz
            z = xx * yy - xy * xy
            det = xx * a + xy * b + xz * c
            size = f(THIRD) * trace
            volume = size * size * size
            # of the second moments h - I with h = tr(I) / 2, which are not negative: the sum of principal minors, and the determinant
            h = f(0.5) * trace
            minors = a + y + z - h * h
            second = h * minors - det
            skew = apart(inertia, at, 1, 3) + apart(inertia, at, 2, 6) + apart(inertia, at, 5, 7)
            slack = f(-POSSIBLE) * size
            judge(minors - slack * size, second - slack * size * size, -slack - skew, found, version)
            note_lean(lean, i, not (m > f(0.0) and size > f(NOTHING) and det > f(REGULAR) * volume), found, version)
            if inverses == 0:
                continue
            inverse = f(0.0)
            if m > f(0.0):
                inverse = f(1.0) / m
            store(inverse_mass, i, 0, inverse)
            scale = f(0.0)
            if wp.abs(det) > f(DEGENERATE) * wp.abs(volume):
                scale = f(1.0) / det
            elif size > f(0.0):
                found[1] = version
            a = scale * a
            b = scale * b
            c = scale * c
            d = scale * (xy * xz - xx * yz)
            store(inverse_inertia, at, 0, a)
            store(inverse_inertia, at, 1, b)
            store(inverse_inertia, at, 2, c)
            store(inverse_inertia, at, 3, b)
            store(inverse_inertia, at, 4, scale * y)
            store(inverse_inertia, at, 5, d)
            store(inverse_inertia, at, 6, c)
            store(inverse_inertia, at, 7, d)
            store(inverse_inertia, at, 8, scale * z)

    @wp.kernel(module="unique", enable_backward=False)
    def invert_singular(
        world: wp.array[int],
        edited: wp.array[int],
        version: int,
        inertia: wp.array[real],
        # out:
        inverse_inertia: wp.array[real],
    ):
        i = wp.tid()
        w = world[i]
        if w < 0:
            w = edited.shape[0] - 1
        if edited[w] != version:
            return
        at = 9 * i
        x = wp.vec3d(moment(inertia, at, 0, 0), moment(inertia, at, 0, 1), moment(inertia, at, 0, 2))
        y = wp.vec3d(moment(inertia, at, 0, 1), moment(inertia, at, 1, 1), moment(inertia, at, 1, 2))
        z = wp.vec3d(moment(inertia, at, 0, 2), moment(inertia, at, 1, 2), moment(inertia, at, 2, 2))
        trace = x[0] + y[1] + z[2]
        size = trace / f(3.0)
        regular = wp.abs(wp.dot(x, wp.cross(y, z))) > f(DEGENERATE) * wp.abs(size * size * size)
        if regular or not (trace > f(0.0) and wp.isfinite(trace)):
            return
        # all cross products of the rows of a matrix of rank two are along its null vector
        null = wp.cross(x, y)
        other = wp.cross(y, z)
        if wp.length_sq(other) > wp.length_sq(null):
            null = other
        other = wp.cross(z, x)
        if wp.length_sq(other) > wp.length_sq(null):
            null = other
        a = wp.matrix_from_rows(x, y, z)
        if wp.length(null) > f(NEGLIGIBLE) * trace * trace:
            n = wp.normalize(null)
            a = wp.inverse(a + trace * wp.outer(n, n)) - wp.outer(n, n) / trace
        else:
            a = a / (trace * trace)
        for j in range(3):
            for k in range(3):
                inverse_inertia[at + 3 * j + k] = real(a[j, k])

    return types.SimpleNamespace(invert=invert, invert_singular=invert_singular)
