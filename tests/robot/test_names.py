"""All names of the SDK exist, with its arguments."""

import enum
import inspect
import re
from pathlib import Path

import pytest

from newton_like import robot

NAMES = Path(__file__).parents[1] / "support" / "robot_sdk_names.txt"

"""Classes that are not there yet."""


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


CASES = [case for case in members()]


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
