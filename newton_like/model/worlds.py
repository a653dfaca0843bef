"""Masks and indices of worlds, as arrays of Warp, NumPy or torch, or as lists."""

from __future__ import annotations

import numpy as np
import warp as wp

from newton_like.arrays import check_recorded, host_array


def chosen_worlds(model, chosen, what: str) -> tuple[wp.array, wp.array | None]:
    """Worlds as bools on the model's device, which are taken as they are where they are there already, and their indices if these were
    given.

    Args:
        model: the model.
        chosen: ``[world_count]`` bools (or bytes), or other integers, which are indices; None: all worlds.
        what: who asks, for errors.

    Raises:
        ValueError: bools of another number of worlds; an index that is there twice.
        IndexError: a world does not exist.
        TypeError: real numbers, or no array.
        RuntimeError: a CUDA graph is being captured, and worlds come from the host.
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
    check_recorded(model.device, f"{what} with worlds from the host")
    values = host_array(chosen, "world_mask", "bools or indices of worlds").ravel()
    if (values.dtype.kind in "iu" and values.dtype != np.uint8) or not values.size:  # torch had masks of that type
        values = values.astype(np.int32)
        wrong = values[(values < 0) | (values >= count)]
        if wrong.size:
            raise IndexError(f"world_mask: world {wrong[0]} does not exist; the model has {count}")
        mask = np.zeros(count, bool)
        mask[values] = True
        if mask.sum() != values.size:
            raise ValueError("world_mask holds an index twice; give each world once")
        return wp.array(mask, dtype=wp.bool, device=model.device), wp.array(values, dtype=int, device=model.device)
    if values.dtype.kind == "f":
        raise TypeError(f"world_mask must hold bools or indices of worlds, not {values.dtype}")
    if values.size != count:
        raise ValueError(f"world_mask has {values.size} entries, the model has {count} worlds")
    return wp.array(values.astype(bool), dtype=wp.bool, device=model.device), None
