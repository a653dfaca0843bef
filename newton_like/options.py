"""Settings and options by name: errors for unknown names, which name the near ones, and options of Newton that do not exist here."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import wraps
from typing import dataclass_transform

_set = object.__setattr__

ANY = object()
"""In place of a value without effect: no value has an effect."""


class OneOf(tuple):
    """In place of a value without effect: several values that have none."""


def did_you_mean(name: object, known: Iterable[str], otherwise: str = "") -> str:
    """The end of a message about an unknown name: the known names that are nearest to it, or another text if none is near."""
    name, known = str(name), list(known)
    near = difflib.get_close_matches(name, known, 3, 0.75) or difflib.get_close_matches(name, known, 1)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else otherwise


def unknown_option(function: str, name: str, own: Iterable[str], others: Iterable[str] = ()) -> TypeError:
    """The error for an argument that a function does not have.

    Args:
        function: its name.
        name: the argument.
        own: the arguments that the function has.
        others: names that it accepts, too, and that are named only if they are near.
    """
    own = list(own)
    hint = did_you_mean(name, [*own, *others], f"; it has {', '.join(own)}")
    return TypeError(f"{function}() has no option {name!r}{hint}")


def refuse_options(function: Callable, options: dict) -> None:
    """Raises TypeError for the first of the options that a function got in its ``**others`` argument. Call it where there are some: that
    argument costs a function 50 ns, a tenth of what a wrapper costs."""
    for name in options:
        raise unknown_option(_name_of(function), name, named_arguments(function))


def _name_of(function: Callable) -> str:
    """The name by which a function is called: that of the class for ``__init__``."""
    return function.__qualname__.split(".")[-2] if function.__name__ == "__init__" else function.__name__


def named_arguments(function: Callable) -> list[str]:
    """The names that a function has for its arguments, without ``self``."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind not in kinds and p.name != "self"]


def unknown_attribute(thing: object, name: str, cure: str) -> AttributeError:
    """The error for an attribute that was set and that an object does not have.

    Args:
        thing: the object.
        name: the attribute.
        cure: advice.
    """
    hint = did_you_mean(name, (n for n in dir(thing) if not n.startswith("_")))
    return AttributeError(f"{type(thing).__name__} has no attribute {name!r}{hint} ({cure})", name=name, obj=thing)


class Settings:
    """Base class of classes with ``__slots__``: setting another attribute raises an error that names the near ones. Subclasses without
    ``__slots__`` are free."""

    __slots__ = ()

    def __setattr__(self, name: str, value) -> None:
        try:
            _set(self, name, value)
        except AttributeError:
            # not the error of a property
            if hasattr(type(self), name):
                raise
            raise unknown_attribute(self, name, "unknown attributes have no effect") from None


@dataclass_transform(field_specifiers=(field,))
def configuration(**options):
    """Decorator as ``dataclass(**options)``, for subclasses of :class:`Settings` and frozen classes: unknown arguments raise a
    TypeError that names the near ones."""

    def decorate(cls: type) -> type:
        made = dataclass(**options)(cls)
        init = made.__init__

        @wraps(init)
        def checked(self, *args, **settings):
            try:
                init(self, *args, **settings)
            except TypeError:
                own = named_arguments(init)
                for name in settings:
                    if name not in own:
                        raise unknown_option(made.__name__, name, own) from None
                raise

        made.__init__ = checked
        return made

    return decorate


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
    raise unknown_option(function, name, own, known)


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
