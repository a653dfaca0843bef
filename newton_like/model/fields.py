"""Arrays of models, states and controls as attributes: what may be set, and under which names."""

from __future__ import annotations

import difflib
import math

import warp as wp

from newton_like.arrays import host_array

_INTEGERS = (wp.bool, wp.int32)


class Fields:
    """Attributes that take arrays of any library, and no names that nothing reads.

    A Warp array of the same type, number of entries and device takes the place of the old one. The values of anything else with as many
    numbers (a NumPy array, a torch tensor, a list, a Warp array of another precision or device) are copied into the array that is there.
    """

    _complete = True
    """Whether all attributes are there; until then any may be set."""

    def __setattr__(self, name: str, value) -> None:
        if not self._complete:
            object.__setattr__(self, name, value)
            return
        old = getattr(self, name, None)
        if isinstance(old, wp.array):
            value = _taken(old, value, f"{type(self).__name__}.{name}")
        elif old is None and not (name.startswith("_") or hasattr(self, name) or self._accepts(name)):
            near = difflib.get_close_matches(name, [n for n in dir(self) if not n.startswith("_")], n=1)
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name!r}{f'; did you mean {near[0]!r}?' if near else ''}"
                " (nothing would read it; keep values of your own elsewhere)",
                name=name,
                obj=self,
            )
        object.__setattr__(self, name, value)

    def _accepts(self, name: str) -> bool:
        """Whether a name that has no value yet may be given one."""
        return False


def _taken(old: wp.array, value, what: str) -> wp.array | None:
    """The array that an attribute has after a value was set."""
    if value is None or value is old:
        return value
    if isinstance(value, wp.array) and value.device == old.device and _numbers(value) == _numbers(old):
        if not value.is_contiguous:
            raise ValueError(f"{what}: the array is not contiguous; pass array.contiguous()")
        return value
    numbers = host_array(value, what)
    wanted = (*old.shape, *getattr(old.dtype, "_shape_", ()))
    if numbers.size != math.prod(wanted):
        raise ValueError(f"{what}: cannot take numbers of shape {numbers.shape}; it has {wanted}")
    if _numbers(old)[0] in _INTEGERS and numbers.dtype.kind == "f":
        raise TypeError(f"{what}: cannot take numbers of type {numbers.dtype}; it has {_numbers(old)[0].__name__}")
    old.assign(numbers.reshape(wanted))
    return old


def _numbers(array: wp.array) -> tuple[type, int]:
    """Scalar type of an array, and how many of them it has."""
    scalar = getattr(array.dtype, "_wp_scalar_type_", array.dtype)
    return scalar, array.size * getattr(array.dtype, "_length_", 1)
