"""Names of bodies, joints and tendons, found by regular expressions."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Sequence

import numpy as np

from newton_like.model.labels import some_of
from newton_like.selection.members import last_part


def names_of_labels(labels: Sequence[str]) -> list[str]:
    """Names of entities of an articulation: last parts of their labels, or, where two of these are the same, what is behind the part that
    all labels share: ``left/arm`` and ``right/arm`` of ``robot/left/arm`` and ``robot/right/arm``."""
    names = [last_part(label) for label in labels]
    return names if len(set(names)) == len(names) else [label[len(shared_part(labels)) :] for label in labels]


def names_of_dofs(labels: Sequence[str], counts: Sequence[int]) -> list[str]:
    """Names of the dofs of joints. Those of a joint with several are numbered, as ``wrist:0``; where its label stands for as many joints of
    a MJCF file, as ``robot/a+b``, they are ``a`` and ``b``."""
    shared, result = shared_part(labels), []
    for label, count in zip(labels, counts, strict=True):
        parts = label.removeprefix(shared).split("+")
        if count > 1 and len(parts) == count:
            result += [shared + part for part in parts]
        else:
            result += [label if count == 1 else f"{label}:{i}" for i in range(count)]
    return names_of_labels(result)


def shared_part(labels: Sequence[str]) -> str:
    """The beginning of all labels, up to a slash."""
    homes = [label.split("/")[:-1] for label in labels]
    parts = itertools.takewhile(lambda same: len(set(same)) == 1, zip(*homes, strict=False))
    return "".join(f"{same[0]}/" for same in parts)


def find_names(
    patterns, names: Sequence[str], kind: str, preserve_order: bool = False, subset: Sequence[str] | None = None
) -> tuple[list[int], list[str]]:
    """Indices and names that match regular expressions as a whole.

    Args:
        patterns: a regular expression, or several.
        names: the names.
        kind: what they name, for error messages.
        preserve_order: results are in the order of the patterns, not of the names.
        subset: names among which to search; indices are those in `subset`. None: all.

    Raises:
        TypeError: a pattern is neither a text nor a compiled regular expression.
        ValueError: a pattern is no regular expression or matches nothing; two patterns match one name.
    """
    many = _listed(patterns, kind)
    among = list(names) if subset is None else list(subset)
    unknown = [name for name in among if name not in names]
    if unknown:
        raise ValueError(f"{kind} {unknown[0]!r} of the subset does not exist{near(unknown[0], names)}")
    owner: dict[int, str] = {}
    found: list[int] = []
    for pattern in many:
        hits = [i for i, name in enumerate(among) if pattern.fullmatch(name)]
        if not hits:
            raise ValueError(f"pattern {pattern.pattern!r} matches no {kind}{near(pattern.pattern, among)}")
        for i in hits:
            if i in owner:
                raise ValueError(
                    f"{kind} {among[i]!r} matches two patterns, {owner[i]!r} and {pattern.pattern!r}; make one of them narrower"
                )
            owner[i] = pattern.pattern
        found += hits
    if not preserve_order:
        found.sort()
    return found, [among[i] for i in found]


def _listed(patterns, kind: str) -> list[re.Pattern]:
    try:
        many = [patterns] if isinstance(patterns, str | re.Pattern) else list(patterns)
    except TypeError:
        raise TypeError(f"patterns of {kind} names must be a text or several, not {patterns!r}") from None
    result = []
    for one in many:
        if isinstance(one, re.Pattern):
            result.append(one)
            continue
        if not isinstance(one, str):
            raise TypeError(f"a pattern of {kind} names must be a text or a compiled regular expression, not {one!r}")
        try:
            result.append(re.compile(one))
        except re.error as error:
            raise ValueError(f"pattern {one!r} of {kind} names is no regular expression: {error}") from None
    return result


def near(name: str, names: Sequence[str]) -> str:
    """The end of an error message for a name that does not exist: near names, and what there is."""
    if not names:
        return "; there are none"
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or _near_words(name, names)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return f"{hint} (there are {some_of([repr(n) for n in names], 12)})"


def _near_words(pattern: str, names: Sequence[str], most: int = 3) -> list[str]:
    """Names with words near those of a regular expression: ``left_hip`` for ``.*hipp.*``."""
    words = _words(pattern)

    def ratios(name: str) -> list[float]:
        own = _words(name)
        return [max((difflib.SequenceMatcher(None, w, x).ratio() for x in own), default=0.0) for w in words]

    scores = [ratios(name) for name in names]
    best = sorted(range(len(names)), key=lambda i: (-sum(scores[i]), i))[:most]
    return [names[i] for i in best if max(scores[i], default=0.0) > 0.75]


def _words(text: str) -> list[str]:
    """Words of at least two letters, in lower case. A regular expression gives those that stand in it."""
    return re.findall(r"[a-z]{2,}", re.sub(r"\\[a-z]", " ", text).lower())


def by_name(values, names: Sequence[str], kind: str, default: float | np.ndarray | None, what: str) -> np.ndarray:
    """One number for each name, from a number for all, or from numbers by pattern.

    Args:
        values: None: the default; a number; or a dictionary of numbers by regular expression.
        names: the names.
        kind: what they name.
        default: a number, or one for each name, where none is given.
        what: name of the values in error messages.

    Raises:
        ValueError: see :func:`find_names`; a value that is not finite.
        TypeError: not numbers.
    """
    result = np.full(len(names), np.nan) if default is None else np.array(np.broadcast_to(default, len(names)), float)
    if values is None:
        return result
    if not isinstance(values, dict):
        result[:] = _numbers(values, len(names), what)
        return result
    owner: dict[int, str] = {}
    for pattern, value in values.items():
        try:
            found = find_names(pattern, names, kind)[0]
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from None
        for i in found:
            if i in owner:
                raise ValueError(f"{what}: {kind} {names[i]!r} matches two patterns, {owner[i]!r} and {pattern!r}")
            owner[i] = pattern
            result[i] = _numbers(value, 1, what)[0]
    return result


def _numbers(value, count: int, what: str) -> np.ndarray:
    try:
        numbers = np.broadcast_to(np.asarray(value, dtype=float), count)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be a number, {count} numbers, or numbers by pattern, not {value!r}") from None
    if np.isnan(numbers).any():
        raise ValueError(f"{what} is NaN; give a number")
    return numbers
