"""Which arrays of parameters a program reads, found from the code of its functions.

Functions are followed by the names that they use. Branches count as taken, so that the result may name arrays that a program
does not read for some robots.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType

from newton_like.model.editing.edits import ARRAYS, GAINS, JOINTS
from newton_like.programs.records import SOURCES
from newton_like.programs.robot import namespace

_BODIES = ("body_mass", "body_com", "body_inertia", "gravity")
"""Functions of ``newton_like.kernels.tree`` that are named as the array that they read."""


@cache
def arrays_read(name: str, width: int, real) -> frozenset[str]:
    """Names of the arrays of parameters that the program of a name reads."""
    m, found, seen = namespace(width, real), set(), set()
    open_functions = [_python(getattr(m, name))]
    while open_functions:
        function = open_functions.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        names = {each for code in _codes(function.__code__) for each in code.co_names}
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        used = {each: getattr(m, each) for each in names if hasattr(m, each)} | {k: c.cell_contents for k, c in cells}
        if function.__name__ in _BODIES:
            found.add(function.__name__)
        if function.__name__.startswith(("joint_", "dof_")):
            found |= set(ARRAYS[JOINTS])
        if "gain" in used:
            numbers = {function.__globals__.get(each) for each in names if each.isupper()}
            found |= {each for each in ARRAYS[GAINS] if numbers & set(SOURCES[each].get("gain", ()))}
        open_functions += [_python(each) for each in used.values()]
    return frozenset(found)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _python(function) -> FunctionType | None:
    """The Python function of a function of programs."""
    function = getattr(function, "func", function)
    return function if isinstance(function, FunctionType) else None
