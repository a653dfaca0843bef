"""Denormal numbers."""

import warp as wp


@wp.func_native(
    "\n#if defined(__x86_64__) && !defined(__CUDA_ARCH__)\n"
    "const unsigned int before = __builtin_ia32_stmxcsr(); __builtin_ia32_ldmxcsr(before | 0x8040); return (int)before;"
    "\n#else\nreturn 0;\n#endif\n"
)
def begin_without_denormals() -> int:
    """Makes this thread take denormal numbers as zero, and returns the mode before. Processors compute slowly with such numbers, which
    bodies in free fall have whose joints are at rest."""


@wp.func_native(
    "\n#if defined(__x86_64__) && !defined(__CUDA_ARCH__)\n__builtin_ia32_ldmxcsr((unsigned int)mode);\n#endif\n"
)
def end_without_denormals(mode: int):
    """Gives this thread the mode that it had before."""
