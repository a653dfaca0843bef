"""Robots and states with a fixed number of joints that move, for scripts that name them."""

from __future__ import annotations

from newton_like.robot.robot import Robot
from newton_like.robot.state import State


class State_18(State):
    """A :class:`State` of a :class:`Robot_18`."""

    __slots__ = ()


class State_24(State):
    """A :class:`State` of a :class:`Robot_24`."""

    __slots__ = ()


class State_26(State):
    """A :class:`State` of a :class:`Robot_26`."""

    __slots__ = ()


class Robot_18(Robot):
    """A :class:`Robot` with 18 joints that move."""

    _state, _dofs = State_18, 18


class Robot_24(Robot):
    """A :class:`Robot` with 24 joints that move."""

    _state, _dofs = State_24, 24


class Robot_26(Robot):
    """A :class:`Robot` with 26 joints that move."""

    _state, _dofs = State_26, 26
