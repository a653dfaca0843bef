"""Damage to text files: what goes wrong in an editor, on a disk, or on purpose."""

from __future__ import annotations

import re

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


def damaged(rng, lines, nonsense=NONSENSE) -> str:
    """A text with some lines gone, doubled or swapped, values or names of others, or cut off."""
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


def finalizes(builder) -> None:
    """Makes the model of what could be read; where nobody can simulate it, the error names the joint, body or shape."""
    try:
        builder.finalize("cpu")
    except ValueError as error:
        assert re.match(r"(joint|body|shape) '.*' \(index \d+\)", str(error)), error


def entities(root: str) -> dict[str, str]:
    """Files of a root element that grow without bounds, or read the file ``{path}``."""
    bombs = "".join(f'<!ENTITY {x} "{f"&{y};" * 10}">' for x, y in zip("bcdefghij", "abcdefghi", strict=True))
    return {
        "bomb": f'<!DOCTYPE {root} [<!ENTITY a "aaaaaaaaaa">{bombs}]><{root} name="&j;"/>',
        "external": f'<!DOCTYPE {root} [<!ENTITY x SYSTEM "file://{{path}}">]><{root} name="&x;"/>',
        "parameter": f'<!DOCTYPE {root} [<!ENTITY % x SYSTEM "file://{{path}}"> %x;]><{root} name="bot"/>',
        "external doctype": f'<!DOCTYPE {root} SYSTEM "file://{{path}}"><{root} name="bot"/>',
        "harmless doctype": f'<!DOCTYPE {root}><{root} name="bot"/>',
    }
