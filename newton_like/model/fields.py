"""Attributes with arrays, of models, states and controls: checks of assigned names and values."""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded, host_array
from newton_like.options import unknown_attribute

_INTEGERS = (wp.bool, wp.int32)

_left_out: WeakKeyDictionary = WeakKeyDictionary()
"""For each object, the arrays by name whose attributes are None."""


class Fields:
    """Base class whose attributes accept arrays of any library. Unknown names raise AttributeError.

    A Warp array of the same scalar type, size and device replaces the old array. Other values with the same number of entries (a NumPy
    array, a torch tensor, a list, a Warp array of another precision or device) are copied into the old array. None leaves an array out,
    where the class permits it.
    """

    _needed = False
    """Whether no array may be None."""

    _rows_alike: tuple[str, ...] = ()
    """Arrays that also take one row, for all entries."""

    _complete = True
    """Whether all attributes exist; until then assignments are not checked."""

    def __setattr__(self, name: str, value) -> None:
        if not self._complete:
            object.__setattr__(self, name, value)
            return
        old = getattr(self, name, None)
        if value is None and isinstance(old, wp.array):
            if self._needed:
                raise ValueError(f"{type(self).__name__}.{name} must be an array, not None")
            _left_out.setdefault(self, {})[name] = old
        elif old is None and self in _left_out:
            # an array that comes back must fit in the place of the one that was left out
            old = _left_out[self].get(name)
        if isinstance(old, wp.array):
            value = _taken(old, value, f"{type(self).__name__}.{name}", name in self._rows_alike)
        elif old is None and not (name.startswith("_") or hasattr(self, name) or self._accepts(name)):
            raise unknown_attribute(
                self,
                name,
                "unknown attributes have no effect; store other data elsewhere, or declare a custom attribute",
            )
        object.__setattr__(self, name, value)

    def _accepts(self, name: str) -> bool:
        """Whether an attribute without a value may be set."""
        return False


def _taken(old: wp.array, value, what: str, rows_alike: bool) -> wp.array | None:
    """The array of an attribute after the assignment of a value; `rows_alike`: one row may be given for all."""
    if value is None or value is old:
        return value
    if isinstance(value, wp.array) and value.device == old.device and _numbers(value) == _numbers(old):
        if not value.is_contiguous:
            raise ValueError(f"{what}: the array is not contiguous; pass array.contiguous()")
        return value
    check_recorded(old.device, f"{what} from the host")
    numbers = host_array(value, what)
    wanted = (*old.shape, *getattr(old.dtype, "_shape_", ()))
    if rows_alike and numbers.size == math.prod(wanted[1:]):
        numbers = np.broadcast_to(numbers.reshape(wanted[1:]), wanted)
    if numbers.size != math.prod(wanted):
        alike = f"; {wanted[1:]} sets all {wanted[0]} rows alike" if rows_alike else ""
        raise ValueError(f"{what}: cannot take numbers of shape {numbers.shape}; it has {wanted}{alike}")
    if _numbers(old)[0] in _INTEGERS and numbers.dtype.kind == "f":
        raise TypeError(f"{what}: cannot take numbers of type {numbers.dtype}; it has {_numbers(old)[0].__name__}")
    old.assign(numbers.reshape(wanted))
    return old


def _numbers(array: wp.array) -> tuple[type, int]:
    """Scalar type of an array, and its number of scalars."""
    scalar = getattr(array.dtype, "_wp_scalar_type_", array.dtype)
    return scalar, array.size * getattr(array.dtype, "_length_", 1)
