"""Conversion of user input for numbers, vectors and indices to Python numbers, with errors for invalid values."""

from __future__ import annotations

import math
import operator
from enum import Enum

import numpy as np
import warp as wp

from newton_like.types import Axis

LARGEST = 1.0e30
"""Largest accepted length, mass or other quantity in SI units. Physical quantities are smaller, and products of a few such
numbers, such as an inertia far from the origin, do not overflow."""


def as_number(value, what: str, *, finite: bool = True) -> float:
    """One real number as ``float``. Python, NumPy and Warp numbers, integers and booleans among them, are numbers.

    Args:
        value: the number.
        what: its name in the error.
        finite: whether infinities and numbers beyond ``LARGEST`` also raise an error. NaN always does.

    Raises:
        TypeError: ``value`` is not a number.
        ValueError: NaN; with `finite`, an infinite or too large number.
    """
    if type(value) is float and -LARGEST <= value <= LARGEST:
        return value
    if isinstance(value, str | bytes):
        raise TypeError(f"{what} must be a number, not {value!r}")
    try:
        number = float(value.value) if hasattr(value, "value") else float(value)
    except OverflowError:
        raise ValueError(f"{what} has more than 308 digits; give a smaller number") from None
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be a number, not {value!r}") from error
    if math.isnan(number) or (finite and math.isinf(number)):
        raise ValueError(f"{what} is {number}; give a {'finite ' if finite else ''}number")
    if finite and abs(number) > LARGEST:
        raise ValueError(f"{what} {number:g} is beyond {LARGEST:g}; units are SI (m, kg, s)")
    return number


def as_time_step(value, what: str = "dt") -> float:
    """A time step [s] as ``float``.

    Raises:
        TypeError: ``value`` is not a number; truth values are none here.
        ValueError: it is not above zero, or not finite.
    """
    if type(value) is float and 0.0 < value <= LARGEST:
        return value
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{what} must be a number of seconds, not {value!r}")
    number = as_number(value, what)
    if number <= 0.0:
        raise ValueError(f"{what} {value!r} must be a positive number of seconds")
    return number


def as_list(value, what: str, entries: str) -> list:
    """Entries of a list, a tuple, an array or another ordered collection.

    Args:
        value: the entries.
        what: name of the argument in the error.
        entries: description of valid entries for the error.

    Raises:
        TypeError: ``value`` is a string or not an ordered collection.
    """
    if isinstance(value, wp.array):
        value = value.numpy()
    try:
        if isinstance(value, str | bytes | dict | set | frozenset):
            raise TypeError
        return list(value)
    except TypeError:
        raise TypeError(f"{what} must be a list of {entries}, not {value!r}") from None


def as_flag(value, what: str) -> bool:
    """A truth value: ``True``, ``False``, 1 or 0, of Python or NumPy.

    Raises:
        TypeError: ``value`` has another type; for instance the string ``"False"`` is true in Python.
    """
    if isinstance(value, bool | np.bool_ | int | np.integer) and value in (0, 1):
        return bool(value)
    raise TypeError(f"{what} must be True or False, not {value!r}")


def as_member(enum, value, what: str):
    """Member of an enumeration from that member or its number.

    Raises:
        TypeError: ``value`` is not an integer, or is a member of another enumeration.
        ValueError: no member has that number.
    """
    if isinstance(value, enum):
        return value
    names = ", ".join(enum.__members__)
    if isinstance(value, bool | np.bool_ | Enum) or not isinstance(value, int | np.integer):
        raise TypeError(f"{what} must be a {enum.__name__}, not {value!r}; use {names}")
    if int(value) not in set(enum):
        raise ValueError(f"{what}: {value} is not a {enum.__name__}; use {names}")
    return enum(int(value))


def as_vector(value, length: int, what: str) -> tuple[float, ...]:
    """``length`` finite numbers as a tuple of ``float``.

    Raises:
        TypeError: ``value`` is not a sequence of numbers.
        ValueError: it has another length, or a number that is not finite.
    """
    try:
        parts = tuple(as_number(part, what) for part in as_list(value, what, "numbers"))
    except TypeError as error:
        raise TypeError(f"{what} must be {length} numbers, not {value!r}") from error
    if len(parts) != length:
        raise ValueError(f"{what} must have {length} numbers, not {len(parts)}: {value!r}")
    return parts


def as_axis(value, what: str = "axis") -> tuple[float, float, float]:
    """Direction of unit length from an :class:`Axis`, its name or number, or a vector of any length but zero.

    Raises:
        TypeError, ValueError: as :meth:`Axis.from_any` and :func:`as_vector`; a zero vector has no direction.
    """
    if isinstance(value, str | int | np.integer):
        try:
            return Axis.from_any(value).to_vector()
        except (TypeError, ValueError) as error:
            raise type(error)(f"{what}: {error}") from None
    vector = as_vector(value, 3, what)
    length = math.hypot(*vector)
    if length < 1.0e-12:
        raise ValueError(
            f"{what} {vector} has length {length:g} and therefore no direction; give an axis such as (0, 0, 1)"
        )
    return tuple(component / length for component in vector)


def as_matrix33(value, what: str) -> tuple[tuple[float, float, float], ...]:
    """A 3x3 matrix as three row tuples, from nine numbers in rows, a nested sequence or an array.

    Raises:
        TypeError: ``value`` is not made of numbers.
        ValueError: it has another shape, or a number that is not finite.
    """
    try:
        matrix = np.array(value)
        if matrix.dtype.kind not in "fiub":
            raise TypeError
        matrix = matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be a 3x3 matrix of numbers, not {value!r}") from error
    if matrix.shape not in ((3, 3), (9,)):
        raise ValueError(f"{what} must be a 3x3 matrix (or 9 numbers in rows), not of shape {matrix.shape}")
    if not np.all(np.abs(matrix) <= LARGEST):
        raise ValueError(f"{what} {matrix.tolist()} has a number that is not finite, or beyond {LARGEST:g}")
    return tuple(tuple(row) for row in matrix.reshape(3, 3).tolist())


def _integer(value, demand: str) -> int:
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{demand}, not {value!r}") from None


def as_count(value, name: str, lowest: int = 1, most: int = 2**31 - 1) -> int:
    """A count.

    Raises:
        TypeError: not an integer.
        ValueError: less than `lowest` or above `most`.
    """
    count = _integer(value, f"{name} must be an integer")
    if not lowest <= count <= most:
        raise ValueError(f"{name} {count} must be {f'at least {lowest}' if count < lowest else f'at most {most}'}")
    return count


def as_index(value, what: str, count: int, *, lowest: int = 0) -> int:
    """An integer in ``lowest .. count - 1``.

    Raises:
        TypeError: ``value`` is not an integer.
        IndexError: it is outside that range.
    """
    index = _integer(value, f"{what} must be an index (an integer)")
    if not lowest <= index < count:
        raise IndexError(f"{what} {index} is out of range: {count} exist" + (", -1 is the world" if lowest < 0 else ""))
    return index


def as_device(device) -> wp.Device:
    """A device of Warp; None: the current one.

    Raises:
        ValueError, RuntimeError: the device does not exist, as Warp raises it, with the names of those that do.
    """
    try:
        return wp.get_device(device)
    except (ValueError, RuntimeError) as error:
        known = ", ".join(repr(each.alias) for each in wp.get_devices())
        raise type(error)(f"device {device!r} does not exist; this machine has {known}") from error
