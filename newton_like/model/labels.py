"""Selection of labels by patterns."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from itertools import pairwise

import numpy as np

from newton_like.options import did_you_mean


def some_of(names: list[str], most: int) -> str:
    """Names in words, about `most` of them, and how many more there are. A single name more is shown as well."""
    shown = names if len(names) <= most + 1 else names[:most]
    more = f", and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"{', '.join(shown)}{more}"


def match_labels(labels: list[str], pattern) -> list[int]:
    """Indices of the labels that match a pattern.

    Args:
        labels: the labels.
        pattern: a pattern of whole labels: shell-style (``"arm_*"``), a compiled regular expression, or a list of shell-style patterns, of
            which a label must match one. A list of integers is returned unchanged and unchecked, as indices.

    Returns:
        The indices in ascending order, without duplicates.

    Raises:
        TypeError: a pattern of another type, or a list of patterns and integers.
    """
    patterns = pattern if isinstance(pattern, list) else [pattern]
    if isinstance(pattern, list) and all(isinstance(p, int) and not isinstance(p, bool) for p in pattern):
        return pattern
    kinds = str if isinstance(pattern, list) else str | re.Pattern
    for one in patterns:
        if not isinstance(one, kinds):
            raise TypeError(
                f"pattern must be a text, a compiled regular expression, a list of texts or a list of indices, not {pattern!r}"
            )
    return [i for i, label in enumerate(labels) if any(_fits(one, label) for one in patterns)]


def _fits(pattern: str | re.Pattern, label: str) -> bool:
    """Whether a pattern matches a whole label."""
    return fnmatchcase(label, pattern) if isinstance(pattern, str) else pattern.fullmatch(label) is not None


def _is_expression(pattern: str, labels: list[str]) -> bool:
    """Whether a text that fits no label is a regular expression that does."""
    try:
        return any(re.fullmatch(pattern, label) for label in labels)
    except re.error:
        return False


def matches(pattern, labels: list[str], name: str, kind: str) -> np.ndarray:
    """Indices of the labels that a pattern, or a list of patterns or indices, selects."""
    many = pattern if isinstance(pattern, list | tuple | range | np.ndarray) else [pattern]
    found = np.zeros(len(labels), dtype=bool)
    indices = [one for one in many if isinstance(one, int | np.integer) and not isinstance(one, bool)]
    if any(a >= b for a, b in pairwise(indices)):
        raise ValueError(f"{name} {indices} must be in ascending order, each once; a view keeps the order of the model")
    for one in many:
        if isinstance(one, int | np.integer) and not isinstance(one, bool):
            if not 0 <= one < len(labels):
                raise IndexError(f"{name}: {kind} {one} does not exist; there are {len(labels)}")
            found[one] = True
            continue
        if not isinstance(one, str | re.Pattern):
            raise TypeError(f"{name} must be a text, a compiled regular expression or a list of indices, not {one!r}")
        fitting = {label for label in set(labels) if _fits(one, label)}  # worlds have the same labels
        hits = [label in fitting for label in labels]
        if not fitting:
            shown = ", ".join(repr(x) for x in list(dict.fromkeys(labels))[:8])
            hint = did_you_mean(one if isinstance(one, str) else one.pattern, dict.fromkeys(labels))
            if isinstance(one, str) and _is_expression(one, labels):
                hint = "; a text is a shell-style pattern here (* and ?): give re.compile(...) for a regular expression"
            rest = f"{hint} (there are {shown})" if hint else f"; there are {shown}"
            raise KeyError(f"{name} {one!r} matches no {kind}{rest}")
        found |= hits
    return np.flatnonzero(found)
