"""Threads that compute a chunk together: a team. On a CPU, all threads are the team of a large world; on a GPU, the threads of a block are
the team of a chunk.

Each member of a team runs the kernel of a step for the same chunk, takes its share of the bodies, joints and contacts that may be
computed side by side, and waits for the others before it goes on. What is computed side by side writes to different places, so results do
not depend on the number of members.
"""

import warp as wp

SYNC = 32
"""Integers of a chunk for its barrier: the number of members that have arrived, and, in another cache line, how often all had."""

SERIAL = 4
"""Blocks of lanes below which one member computes a colour and those that follow: the others would wait longer."""

_SPINS = 4000
"""Looks at a barrier before a member offers its processor to other threads."""


BLOCK = 64
"""Threads of a block on a GPU."""


@wp.func_native(
    "\n#if defined(__CUDA_ARCH__)\n"
    "if (members > 1) __syncthreads();"
    "\n#else\n"
    "if (members < 2) return; typedef int whole;"
    f" int* const arrived = sync.data + {SYNC} * c; int* const passed = arrived + {SYNC // 2};"
    " const int before = __atomic_load_n(passed, __ATOMIC_ACQUIRE);"
    " if (__atomic_add_fetch(arrived, 1, __ATOMIC_ACQ_REL) == members) {"
    "   __atomic_store_n(arrived, 0, __ATOMIC_RELAXED); __atomic_store_n(passed, before + 1, __ATOMIC_RELEASE); return; }"
    f" for (int i = 0; __atomic_load_n(passed, __ATOMIC_ACQUIRE) == before; ++i)"
    f"   if (i > {_SPINS} && pause != 0) ((whole (*)(void))pause)();"
    "\n#endif\n"
)
def wait_for_all(sync: wp.array[int], c: int, members: int, pause: wp.uint64):
    """Returns once all members have called it. `pause`: the address of a function that lets other threads run, or 0."""


@wp.func
def share_start(count: int, member: int, members: int) -> int:
    """The first item of a member's share; that of member `members` is the number of items."""
    return count // members * member + wp.min(member, count % members)
