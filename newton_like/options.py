"""Options of Newton that do not exist here: values without effect are accepted, other values raise an error that names the option."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

ANY = object()
"""In place of a value without effect: no value has an effect."""


class OneOf(tuple):
    """In place of a value without effect: several values that have none."""


def check_option(function: str, name: str, value, known: dict, own: Iterable[str]) -> None:
    """Accepts an option of Newton at a value without effect.

    Args:
        function: name of the function that got the option, for messages.
        name: the option.
        value: its value.
        known: for each option of Newton that does not exist here, the value without effect (or :data:`ANY`, or :class:`OneOf`), and
            advice instead of other values.
        own: the options that exist here.

    Raises:
        ValueError: the value would have an effect in Newton.
        TypeError: the option does not exist in Newton either.
    """
    if name in known:
        neutral, cure = known[name]
        if not _without_effect(value, neutral):
            raise ValueError(
                f"{function}: {name}={value!r} is an option of Newton that newton_like does not support; {cure}"
            )
        return
    own = list(own)
    near = difflib.get_close_matches(name, [*own, *known], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(own)}"
    raise TypeError(f"{function}() has no option {name!r}{hint}")


def _without_effect(value, neutral) -> bool:
    if neutral is ANY:
        return True
    if isinstance(neutral, OneOf):
        return any(_without_effect(value, one) for one in neutral)
    if isinstance(neutral, tuple):
        return isinstance(value, list | tuple) and tuple(value) == neutral
    # arrays have no single truth value
    same = value is neutral or (isinstance(value, type(neutral) | int | float) and value == neutral)
    return bool(same)
