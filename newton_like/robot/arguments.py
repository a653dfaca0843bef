"""Conversion of the arguments of the robot package to NumPy arrays in double precision, with errors that name the argument."""

from __future__ import annotations

import math

import numpy as np

from newton_like.coercion import as_number
from newton_like.robot.errors import RobotError, ShapeError

_DOUBLE, _LISTS = np.dtype(np.float64), (list, tuple)

_EXACT = "dfilq"
"""Characters of the types of arrays whose numbers ``tolist`` makes floats or integers of Python."""

_FLOATS, _PLAIN = frozenset((np.float64, np.float32)), frozenset((float, int))

LARGEST_INTEGER = 2**53
"""Integers below this are exact in double precision."""

RIGID_TOLERANCE = 1.0e-6
"""Largest deviation of the entries of ``R^T R`` from the identity, for a rotation matrix R. It allows for matrices in single precision."""

LARGE = 1e300
"""Sum of squares of numbers below which none of them is infinite or NaN."""

SHORT = 64
"""Number of numbers up to which Python's functions are faster than those of NumPy."""

MAX_BITS = 2**32 - 1
"""Largest value of ``coltype`` and ``colaffinity``, which have 32 bits."""


def as_name(value, what: str) -> str:
    """A name. Raises TypeError for other types than ``str``, and RobotError for an empty name."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {value!r}")
    if not value:
        raise RobotError(f"{what} is empty; give a name")
    return value


def as_object(value, kind: type, what: str):
    """`value`, which must be a `kind`. Raises TypeError."""
    if not isinstance(value, kind):
        raise TypeError(f"{what} must be a {kind.__name__}, not {value!r}")
    return value


def as_array_of_any(value, shape: tuple[int, ...], what: str) -> np.ndarray:
    """As :func:`as_array`, for numbers that may be infinite or NaN."""
    if type(value) is np.ndarray and value.shape == shape and value.dtype.char in _EXACT:
        return value.astype(_DOUBLE)
    try:
        given = np.asarray(value)
    except ValueError as error:
        raise ShapeError(f"{what} must have the shape {shape}; its rows differ in length") from error
    if type(value) in _LISTS and given.dtype == _DOUBLE and given.shape == shape:
        return given
    if given.dtype.kind == "O":
        given = _numbers_of_objects(given)
    if given is None or given.dtype.kind not in "fiub":
        raise TypeError(f"{what} must be an array of real numbers with the shape {shape}, not {value!r}")
    array = np.array(given, dtype=np.float64)
    if len(shape) == 1 and array.shape == (*shape, 1):
        array = array[:, 0].copy()
    if array.shape != shape:
        raise ShapeError(f"{what} must have the shape {shape}, not {array.shape}")
    return array


def as_array(value, shape: tuple[int, ...], what: str) -> np.ndarray:
    """A new array of finite numbers with this shape, in double precision. A vector may also be a column ``[n, 1]``.

    Raises:
        ShapeError: another shape.
        TypeError: not numbers.
        RobotError: a number is not finite.
    """
    array = as_array_of_any(value, shape, what)
    # few numbers are tested faster in Python; squares of large numbers overflow, of which np.dot warns
    short = array.size <= SHORT and math.hypot(*array.ravel().tolist()) < LARGE
    if not short and not np.isfinite(array).all():
        raise RobotError(f"{what} has a number that is not finite: {array.tolist()}")
    return array


def _numbers_of_objects(given: np.ndarray) -> np.ndarray | None:
    """An array of objects that are real numbers as an array of numbers; None for other objects."""
    if any(isinstance(x, str | bytes) or not hasattr(x, "__float__") for x in given.flat):
        return None
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def as_pose(value, what: str) -> np.ndarray:
    """A homogeneous transform ``[4, 4]`` of a rigid motion, as a new array.

    Raises:
        ShapeError, TypeError: as :func:`as_array`.
        RobotError: the matrix is not a rotation with a translation.
    """
    T = as_array_of_any(value, (4, 4), what)
    if not _is_rigid(*T.tolist()):
        # names the mistake
        T = as_array(T, (4, 4), what)
        check_rigid(T, what)
    return T


def as_pose_rows(value, what: str) -> list[list[float]]:
    """The rows of a homogeneous transform; see :func:`as_pose`."""
    rows = _plain_rows(value)
    return rows if rows is not None and _is_rigid(*rows) else as_pose(value, what).tolist()


def as_matrix_rows(value, what: str) -> list[list[float]]:
    """The rows of a matrix ``[4, 4]``. Numbers of arrays may be infinite or NaN. Raises as :func:`as_array`."""
    rows = _plain_rows(value)
    return as_array(value, (4, 4), what).tolist() if rows is None else rows


def _plain_rows(value) -> list[list[float]] | None:
    """The rows of an array ``[4, 4]`` of floats or integers, or of lists of them that are finite; None for other things."""
    if type(value) is np.ndarray:
        return value.tolist() if value.shape == (4, 4) and value.dtype.char in _EXACT else None
    if type(value) is not list or len(value) != 4:
        return None
    total = 0.0
    for row in value:
        if type(row) is not list or len(row) != 4:
            return None
        a, b, c, d = row
        if not type(a) is type(b) is type(c) is type(d) is float:
            return value if _have_integers(value) else None
        total += a + b + c + d
    return value if total - total == 0.0 else None


def _have_integers(rows: list) -> bool:
    """Whether rows are four lists of four numbers each: finite floats, and integers that are exact in double precision."""
    for row in rows:
        if type(row) is not list or len(row) != 4:
            return False
    flat = [*rows[0], *rows[1], *rows[2], *rows[3]]
    try:
        return _PLAIN.issuperset(map(type, flat)) and math.hypot(*flat) < LARGEST_INTEGER
    except OverflowError:
        return False


def is_plain_number(x) -> bool:
    """Whether x is a float of Python, or of NumPy in single or double precision, or an integer that is exact in double precision."""
    kind = type(x)
    return kind is float or kind in _FLOATS or (kind is int and -LARGEST_INTEGER < x < LARGEST_INTEGER)


def plain_vector(value, size: int) -> list | None:
    """The numbers of a vector, for arrays ``[size]`` or ``[size, 1]`` of floats or integers, and for lists and tuples of numbers that pass
    :func:`is_plain_number`; None for other things."""
    if type(value) is np.ndarray:
        if value.dtype.char not in _EXACT:
            return None
        if value.shape == (size,):
            return value.tolist()
        return value[:, 0].tolist() if value.shape == (size, 1) else None
    if (type(value) is list or type(value) is tuple) and len(value) == size:
        for x in value:
            if not is_plain_number(x):
                return None
        return [*map(float, value)]
    return None


def check_rigid(T: np.ndarray, what: str) -> None:
    """Checks transforms, ``[4, 4]`` or ``[batch, 4, 4]``. Raises RobotError for the first one that is not a rotation with a translation."""
    if T.ndim == 2 and _is_rigid(*T.tolist()):
        return
    R = T[..., :3, :3]
    row = np.abs(T[..., 3, :] - (0.0, 0.0, 0.0, 1.0)).max(axis=-1) > RIGID_TOLERANCE
    turn = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-1, -2)) > RIGID_TOLERANCE
    wrong = row | turn | (np.linalg.det(R) < 0.0)
    if not wrong.any():
        return
    at = int(np.argmax(wrong))
    which, bad = (f"{what}[{at}]", T[at]) if T.ndim == 3 else (what, T)
    if np.ravel(row)[at]:
        raise RobotError(f"{which} has the last row {bad[3].tolist()}; that of a transform is [0, 0, 0, 1]")
    raise RobotError(f"{which} has the upper left block {bad[:3, :3].tolist()}, which is not a rotation matrix")


def _is_rigid(x: list[float], y: list[float], z: list[float], last: list[float]) -> bool:
    """Whether one matrix by rows passes :func:`check_rigid` and is finite. For so few numbers, Python is faster than NumPy."""
    a, b, c, p = x
    d, e, f, q = y
    g, h, i, r = z
    u, v, w, one = last
    most = RIGID_TOLERANCE
    return (
        abs(a * a + d * d + g * g - 1.0) <= most and abs(b * b + e * e + h * h - 1.0) <= most
        and abs(c * c + f * f + i * i - 1.0) <= most and abs(a * b + d * e + g * h) <= most
        and abs(a * c + d * f + g * i) <= most and abs(b * c + e * f + h * i) <= most
        and a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) > 0.0
        and abs(u) <= most and abs(v) <= most and abs(w) <= most and abs(one - 1.0) <= most
        and p - p == q - q == r - r == 0.0
    )  # fmt: skip


def as_limit(value, what: str) -> float:
    """A limit: a number, also an infinite one. Raises TypeError, or RobotError for NaN."""
    try:
        return as_number(value, what, finite=False)
    except ValueError as error:
        raise _kind(error)(str(error)) from None


def as_length(value, what: str) -> float:
    """A finite number of at least 0. Raises TypeError or RobotError."""
    try:
        number = as_number(value, what)
    except ValueError as error:
        raise _kind(error)(str(error)) from None
    if number < 0.0:
        raise RobotError(f"{what} {number:g} m is negative")
    return number


def _kind(error: ValueError) -> type[RobotError]:
    """For an integer that no float can be, also a TypeError."""
    return ShapeError if isinstance(error.__context__, OverflowError) else RobotError


def as_bits(value, what: str) -> int:
    """A bit mask of 32 bits. Raises TypeError for another type, ShapeError for a number out of range."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{what} must be an integer, not {value!r}")
    if not 0 <= value <= MAX_BITS:
        raise ShapeError(f"{what} {value} must be from 0 to {MAX_BITS}")
    return int(value)


def one_form(what: str, forms: tuple[tuple[str, ...], ...], args: tuple, named: dict) -> dict:
    """The arguments of a function that has several forms, by name.

    Raises:
        TypeError: the arguments are those of no form.
    """
    for names in forms:
        if len(args) + len(named) == len(names) and set(named) == set(names[len(args) :]):
            return dict(zip(names, args, strict=False)) | named
    known = " or ".join(f"({', '.join(names)})" for names in forms)
    raise TypeError(f"{what} takes {known}, not {len(args)} arguments by position and {sorted(named)} by name")
