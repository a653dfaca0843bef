"""Masks and indices of worlds, as arrays of Warp, NumPy or torch, or as lists."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import host_array


def chosen_worlds(model, chosen, what: str) -> tuple[wp.array, wp.array | None]:
    """A mask of worlds on the model's device, and the indices of the worlds if indices were given. A mask that is on the device is not
    copied.

    Args:
        model: the model.
        chosen: a mask, ``[world_count]`` bools, or bytes that are 0 or 1; or indices, other integers; None: all worlds.
        what: name of the argument in error messages.

    Raises:
        ValueError: a mask of another length; a repeated index.
        IndexError: a world does not exist.
        TypeError: real numbers, or not an array.
        RuntimeError: a graph is being captured, and the worlds are no mask on the device.
    """
    count = model.world_count
    if chosen is None:
        chosen = np.ones(count, bool)
    elif isinstance(chosen, wp.array) and (chosen.dtype, chosen.shape, chosen.device) == (
        wp.bool,
        (count,),
        model.device,
    ):
        return chosen, None
    if model.device.is_capturing:
        raise RuntimeError(
            f"{what}: while a graph is captured, pass a mask [{count}] of wp.bool on {model.device}, also for all worlds; indices and"
            " other masks are copied through the host"
        )
    values = host_array(chosen, "world_mask", "bools or indices of worlds").ravel()
    # torch had masks of bytes; others cannot be one
    mask_of_bytes = values.dtype == np.uint8 and values.size == count and values.max(initial=0) <= 1
    if (values.dtype.kind in "iu" and not mask_of_bytes) or not values.size:
        values = values.astype(np.int32)
        wrong = values[(values < 0) | (values >= count)]
        if wrong.size:
            raise IndexError(f"world_mask: world {wrong[0]} does not exist; the model has {count}")
        mask = np.zeros(count, bool)
        mask[values] = True
        if mask.sum() != values.size:
            again = int(values[np.flatnonzero(np.bincount(values, minlength=count)[values] > 1)[0]])
            raise ValueError(
                f"world_mask contains the index {again} twice: integers are indices of worlds, and masks are bools"
                f" (give each index once, or {count} bools)"
            )
        return wp.array(mask, dtype=wp.bool, device=model.device), wp.array(values, dtype=int, device=model.device)
    if values.dtype.kind == "f":
        raise TypeError(f"world_mask must contain bools or indices of worlds, not {values.dtype}")
    if values.size != count:
        raise ValueError(f"world_mask has {values.size} entries, the model has {count} worlds")
    return wp.array(values.astype(bool), dtype=wp.bool, device=model.device), None
