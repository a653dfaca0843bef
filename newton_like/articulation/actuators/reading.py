"""Numbers that are read as copies, so that writes into them would be lost."""

from __future__ import annotations

import numpy as np
import warp as wp


class Reading(wp.array):
    """A copy of numbers of an actuator that refuses to be written."""

    _told = ""

    @classmethod
    def of(cls, numbers: np.ndarray, group, name: str) -> Reading:
        """A copy of numbers of a group, which are set by another way."""
        table = group._table
        result = cls(np.ascontiguousarray(numbers), dtype=table.kp.dtype, device=table.kp.device)
        result._told = (
            f"this is a copy; set numbers of actuator {group.name!r} by actuators[{group.name!r}].{name} = values, or"
            f" .set_numbers(env_ids, {name}=values)"
        )
        return result

    def numpy(self) -> np.ndarray:
        """The numbers. NumPy refuses to write them."""
        numbers = super().numpy().view()
        numbers.flags.writeable = False
        return numbers

    def _refuse(self, *args, **options):
        raise TypeError(self._told)

    __setitem__ = assign = fill_ = zero_ = _refuse
