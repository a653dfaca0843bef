"""Deep copies of models."""

from __future__ import annotations

import copy
import weakref

import warp as wp

from newton_like.model.custom import AttributeNamespace
from newton_like.model.frames import FrameTable
from newton_like.model.pairs import PairSet
from newton_like.model.state import copied

_MADE_AGAIN = ("_edits", "_contact_finder", "_graph_readers", "_graph_numbers", "_surfaces")


def _copy_of(name: str, value):
    """A copy of an attribute of a model. Numbers and names are shared."""
    if isinstance(value, wp.array | list):
        return copied(value, None)
    if isinstance(value, AttributeNamespace):
        arrays = {key: array for key, array in vars(value).items() if key != "_name"}
        return AttributeNamespace(name, {key: copied(array, None) for key, array in arrays.items()})
    if isinstance(value, dict):
        return {key: wp.clone(x) if isinstance(x, wp.array) else x for key, x in value.items()}
    if isinstance(value, FrameTable):
        return value.copy()
    if isinstance(value, PairSet):
        return PairSet(value)
    return None if name in _MADE_AGAIN else value


def deep_copy(model, memo: dict):
    """A separate model with arrays of its own.

    Args:
        model: the model.
        memo: copies that :func:`copy.deepcopy` made so far. States and contacts of the model among them, and those to come, belong to the
            copy.
    """
    twin = memo[id(model)] = copy.copy(model)
    for name, value in vars(model).items():
        vars(twin)[name] = _copy_of(name, value)
    vars(twin)["made_by"] = memo[id(model.made_by)] = weakref.ref(twin)
    for other in list(memo.values()):
        if getattr(other, "made_by", None) is model.made_by:
            other.made_by = twin.made_by
    return twin
