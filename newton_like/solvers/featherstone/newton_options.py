"""Options of Newton's ``SolverFeatherstone`` that this engine does not have."""

from __future__ import annotations

from newton_like.options import ANY, check_option, named_arguments

_NEWTON = {
    "update_mass_matrix_interval": (1, "the mass matrix is computed and factored in every step"),
    "friction_smoothing": (ANY, ""),
    "use_tile_gemm": (ANY, ""),
    "fuse_cholesky": (ANY, ""),
    "deterministic": (ANY, ""),
}
"""Options of Newton 1.8 that do not exist here: values without effect, and advice instead of other values."""


def refuse_unknown(solver: type, newton_options: dict) -> None:
    """Looks at arguments of ``SolverFeatherstone`` that it does not have by name.

    Args:
        solver: the class.
        newton_options: these arguments.

    Raises:
        TypeError, ValueError: see :func:`newton_like.options.check_option`.
    """
    own = [name for name in named_arguments(solver.__init__) if name != "model"] if newton_options else []
    for name, value in newton_options.items():
        check_option("SolverFeatherstone", name, value, _NEWTON, own)
