"""Denormal numbers."""

import warp as wp


@wp.func_native(
    "\n#if defined(__x86_64__) && !defined(__CUDA_ARCH__)\n"
    "const unsigned int before = __builtin_ia32_stmxcsr(); __builtin_ia32_ldmxcsr(before | 0x8040); return (int)before;"
    "\n#else\nreturn 0;\n#endif\n"
)
def begin_without_denormals() -> int:
    """Makes this thread take denormal numbers as zero, with which processors compute slowly. Returns the mode before. Bodies whose joints
    are at rest in a free fall have such numbers."""


@wp.func_native(
    "\n#if defined(__x86_64__) && !defined(__CUDA_ARCH__)\n__builtin_ia32_ldmxcsr((unsigned int)mode);\n#endif\n"
)
def end_without_denormals(mode: int):
    """Makes this thread compute in a mode."""
