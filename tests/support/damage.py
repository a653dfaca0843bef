"""Random damage of text files, as by editing mistakes, disk errors or attacks."""

from __future__ import annotations

import re

import numpy as np

from newton_like.importers.xml_source import ImportFileError
from newton_like.model.builder.builder import ModelBuilder

NONSENSE = (
    "",
    "nan",
    "-1",
    "1e400",
    "0",
    "x",
    "1 2 3",
    "0 0 0 0",
    "inf",
    "1_0",
    "true",
    "1e29",
    "-1e-320",
    "main",
    "&lt;",
    "\u2603",
    "9" * 30,
)

FINITE = ("body_mass", "body_inertia", "joint_q", "joint_armature", "joint_X_p", "joint_target_ke", "shape_transform")
"""Arrays of a model that must be finite."""

SECRET = "the-content-of-a-private-file"


def damaged(rng, lines, nonsense=NONSENSE) -> str:
    """A text with some lines removed, duplicated or swapped, with values or names of other lines, or truncated."""
    lines = list(lines)
    for _ in range(rng.integers(1, 4)):
        at, other = rng.integers(0, len(lines), 2)
        kind = rng.integers(0, 8)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[other])
        elif kind == 2:
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 3:
            names = re.findall(r"([\w:]+)=", lines[at])
            if names:
                lines[at] = lines[at].replace(f"{rng.choice(names)}=", "foo=", 1)
        elif kind == 4 and rng.random() < 0.2:
            lines[at] = lines[at][: rng.integers(len(lines[at]) + 1)]
        else:
            values = re.findall(r'"[^"]*"|(?<=>)[^<>]+(?=<)', lines[at])
            if values:
                value = str(rng.choice(values))
                quote = value[:1] if value[:1] == '"' else ""
                lines[at] = lines[at].replace(value, f"{quote}{rng.choice(nonsense)}{quote}", 1)
    return "\n".join(lines)


def read_damaged(rng, lines, add, count: int, nonsense=NONSENSE) -> tuple[int, int]:
    """Reads damaged copies of an XML file: each gives a model of finite numbers, or an error that names the line and leaves the
    builder as it was.

    Args:
        rng: source of the damage.
        lines: lines of the valid file.
        add: function that is called with the number of the copy, a builder and a text.
        count: number of copies; some of the readable ones are finalized.
        nonsense: values to write.

    Returns:
        Numbers of rejected and of read copies.
    """
    refused = 0
    for number in range(count):
        text = damaged(rng, lines, nonsense)
        builder = ModelBuilder()
        try:
            add(number, builder, text)
        except ImportFileError as error:
            refused += 1
            assert str(error).startswith("XML text, line "), text
            assert builder.body_count == builder.joint_count == builder.shape_count == len(builder.tendons) == 0
            continue
        for name in FINITE:
            assert np.all(np.isfinite(np.array(getattr(builder, name), dtype=float).ravel())), text
        if number % 5 == 0:
            finalizes(builder)
    return refused, count - refused


def finalizes(builder) -> None:
    """Finalizes a builder. If this raises, the error must name the joint, body or shape."""
    try:
        builder.finalize("cpu")
    except ValueError as error:
        assert re.match(r"(joint|body|shape) '.*' \(index \d+\)", str(error)), error


def entities(root: str) -> dict[str, str]:
    """Files with a root element whose XML entities grow without bounds, or read the file ``{path}``."""
    bombs = "".join(f'<!ENTITY {x} "{f"&{y};" * 10}">' for x, y in zip("bcdefghij", "abcdefghi", strict=True))
    return {
        "bomb": f'<!DOCTYPE {root} [<!ENTITY a "aaaaaaaaaa">{bombs}]><{root} name="&j;"/>',
        "external": f'<!DOCTYPE {root} [<!ENTITY x SYSTEM "file://{{path}}">]><{root} name="&x;"/>',
        "parameter": f'<!DOCTYPE {root} [<!ENTITY % x SYSTEM "file://{{path}}"> %x;]><{root} name="bot"/>',
        "external doctype": f'<!DOCTYPE {root} SYSTEM "file://{{path}}"><{root} name="bot"/>',
        "harmless doctype": f'<!DOCTYPE {root}><{root} name="bot"/>',
    }
