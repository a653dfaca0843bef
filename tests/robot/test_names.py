"""All names of the SDK exist, with its arguments."""

import enum
import inspect
import re
import typing
from pathlib import Path

import numpy as np
import pytest

from newton_like import robot

NAMES = Path(__file__).parents[1] / "support" / "robot_sdk_names.txt"


def members() -> list[tuple[str, str, tuple[str, ...] | None]]:
    """(class, member, names of its arguments) of each overload; ``None`` for an attribute, and for a constructor that is not described."""
    found, owner = [], ""
    for line in NAMES.read_text().splitlines():
        if line.startswith("class "):
            owner = re.match(r"class (\w+)", line)[1]
        elif match := re.match(r"    (?:\d\. )?(\w+)(?:\((.*)\)(?: -> .*)?)?$", line):
            name, text = match.groups()
            if text is not None:
                # commas in brackets do not separate arguments
                while (outer := re.sub(r"\[[^\[\]]*\]|\([^()]*\)", "", text)) != text:
                    text = outer
                text = None if text == "..." else tuple(re.findall(r"(\w+)[^,]*", text))
            found.append((owner, name, text))
    return found


CASES = members()


@pytest.mark.parametrize(("owner", "name", "arguments"), CASES, ids=[f"{a}.{b}-{c}" for a, b, c in CASES])
def test_name_exists_with_its_arguments(owner, name, arguments):
    assert owner in robot.__all__
    cls = getattr(robot, owner)
    if issubclass(cls, enum.Enum):
        # `name` is an attribute of the SDK's enumerations, too, and the constructor takes the number
        assert name == "__init__" or hasattr(next(iter(cls)), name)
        return
    assert hasattr(cls, name)
    if arguments is not None:
        member = inspect.getattr_static(cls, name)
        first = () if isinstance(member, staticmethod) else (None,)
        # arguments of the SDK without names are given by position
        by_name = {} if "arg0" in arguments else dict.fromkeys(arguments)
        by_position = (None,) * (len(arguments) - len(by_name))
        inspect.signature(getattr(cls, name)).bind(*first, *by_position, **by_name)


@pytest.mark.parametrize("size", [18, 24, 26])
def test_robots_and_states_of_fixed_size_have_the_same_names(size):
    assert issubclass(getattr(robot, f"Robot_{size}"), robot.Robot)
    assert issubclass(getattr(robot, f"State_{size}"), robot.State)


OVERLOADS = [case for case in members() if case[0] == "Robot" and case[2] and case[1] != "__init__"]


@pytest.mark.parametrize(("owner", "name", "arguments"), OVERLOADS, ids=[f"{b}-{c}" for _, b, c in OVERLOADS])
def test_functions_of_robots_take_their_arguments_by_name_and_by_position(owner, name, arguments):
    """Also functions with several forms, whose signature in Python is not that of each form."""
    base, values = robot.Link("base"), {}
    for wheel in ("right", "left"):
        robot.Joint.make_revolute(wheel, axis=[0, -1, 0]).connect_links(base, robot.Link(f"{wheel}_link"))
    made = robot.Robot(
        robot.RobotConfiguration("cart", base, robot.MobileBaseDifferential(["right", "left"], [0.5, 0.1]))
    )
    state = made.make_state([], [])
    values = {
        "state": state, "reference_link_index": 0, "target_link_index": 1, "ref_link": 0, "target_link": 1, "target_links": [1, 2],
        "linear_velocity": [1.0, 0.0], "angular_velocity": 2.0, "body_velocity": [2.0, 1.0, 0.0], "base_link": base,
        "include_fixed": True, "collision_threshold": 1, "getter": lambda joint: 1.0, "name": "base", "index": 0, "link_names": [],
        "joint_names": [],
    }  # fmt: skip
    function, given = getattr(made, name), {argument: values[argument] for argument in arguments}
    state.q = [0.1, 0.2]
    by_name = function(**given)
    by_position = function(*given.values())
    if name == "make_state":
        by_name, by_position = by_name.joint_names, by_position.joint_names
    assert type(by_name) is type(by_position) and np.all(np.equal(by_name, by_position))


def test_names_are_read_from_the_list():
    assert ("Joint", "connect_links", ("parent_link", "child_link", "T_pj", "T_jc")) in CASES
    assert ("Joint", "make_revolute", ("name", "T", "axis")) in CASES
    assert ("GeomCapsule", "__init__", ("start_point", "end_point", "radius", "coltype", "colaffinity")) in CASES
    assert ("MobileBase", "params", None) in CASES


@pytest.mark.parametrize(
    ("function", "arguments"),
    [("load_robot_from_urdf", ["path", "base_link_name"]), ("load_robot_from_urdf_data", ["model", "base_link_name"])],
)
def test_functions_have_their_arguments(function, arguments):
    assert list(inspect.signature(getattr(robot, function)).parameters) == arguments


def described() -> list:
    """The public functions, and the public methods and properties of the public classes."""
    found = []
    for name in robot.__all__:
        x = getattr(robot, name)
        found += [x] if inspect.isroutine(x) or inspect.isclass(x) else []
        for member, value in inspect.getmembers(x) if inspect.isclass(x) else ():
            if member == "__init__" or not member.startswith("_"):
                functions = (value.fget, value.fset) if isinstance(value, property) else (value,)
                found += [f for f in functions if inspect.isfunction(f) or inspect.ismethod(f)]
    return found


@pytest.mark.parametrize("x", described(), ids=lambda x: x.__qualname__)
def test_type_hints_can_be_read(x):
    """All names of annotations are known where they are written, and all arguments of functions have a type."""
    hints = typing.get_type_hints(x)
    if not inspect.isclass(x) and x.__module__.startswith(robot.__name__):
        assert set(inspect.signature(x).parameters) <= {*hints, "self", "cls"}


def test_type_checkers_accept_loops_over_collisions():
    """A script for the SDK reads attributes of the results; in a union with lists, type checkers refuse them."""
    hints = typing.get_type_hints(robot.Robot.detect_collisions_or_nearest_links)
    assert typing.get_origin(hints["return"]) is list
    (entry,) = typing.get_args(hints["return"])
    assert entry in (typing.Any, robot.CollisionResult)
