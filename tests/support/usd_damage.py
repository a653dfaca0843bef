"""USD stages with realistic damage, determined by a seed and a number."""

from __future__ import annotations

import re
import struct
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from pxr import Sdf, UsdUtils

from .paths import ROOT
from .usd_stages import random_robot, write_robot

FEATURES = Path(__file__).with_name("usd_features.usda")
"""A stage with many features and unusual units, and replacements for its values and declarations."""

_SECTIONS = [
    part.split("\n") for part in Path(__file__).with_name("usd_damages.txt").read_text().rstrip().split("\n\n")
]
VALUES, TYPED, SCHEMAS, TYPES, ARCS, HEADS = (section[1:] for section in _SECTIONS)
_ATTRIBUTE = re.compile(r"\s*(?:custom )?(?:uniform |prepend |append )?[\w\[\]]+ ([\w:]+)(?:\.\w+)? = ")
_PRIM = re.compile(r'(\s*)(def|over|class) (?:(\w+) )?"(\w+)"')


@cache
def sources() -> tuple[list[str], list[bytes]]:
    """Valid stages: texts, and binary files and archives."""
    written = write_robot(random_robot(np.random.default_rng(7), 3))
    robot = written.stage.GetRootLayer()
    texts = [
        FEATURES.read_text(),
        FEATURES.read_text(),
        robot.ExportToString(),
        (ROOT / "assets" / "cartpole.usda").read_text(),
        (ROOT / "assets" / "arm.usda").read_text(),
        POINTING,
    ]
    files = []
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate(texts[1:]):
            layer = Sdf.Layer.CreateAnonymous(".usda")
            layer.ImportFromString(content)
            path = Path(folder, f"{number}.usdc")
            layer.Export(str(path))
            files.append(path.read_bytes())
            if number == 0:
                UsdUtils.CreateNewUsdzPackage(str(path), str(path.with_suffix(".usdz")))
                files.append(path.with_suffix(".usdz").read_bytes())
    return texts, files


POINTING = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def Cube "a" (
    prepend apiSchemas = ["PhysicsRigidBodyAPI"]
    variants = {
        string size = "small"
    }
    prepend variantSets = "size"
)
{
    rel physics:filteredPairs = </a/b>
    variantSet "size" = {
        "small" {
            double size = 0.5
        }
    }
    def Sphere "b" (
        prepend apiSchemas = ["PhysicsCollisionAPI"]
    )
    {
        double radius.timeSamples = { 0: 1, 1: 2 }
        double radius = 0.25
    }
}
"""
"""A stage with lists of paths, tokens and values."""


def binary(text: str) -> bytes:
    """A stage as a binary file."""
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.ImportFromString(text)
    with tempfile.TemporaryDirectory() as folder:
        layer.Export(f"{folder}/stage.usdc")
        return Path(folder, "stage.usdc").read_bytes()


def misdirected(data: bytes) -> list[bytes]:
    """Copies of a binary stage, in each of which one list of one element has an index out of range.

    A list is a count of eight bytes and an index of four bytes for each element (crateFile.h of OpenUSD). Lists are between the
    header of 88 bytes and the first section, whose start is in the table of contents.
    """
    contents = struct.unpack_from("<q", data, 16)[0]
    end = struct.unpack_from("<q", data, contents + 24)[0]
    places = [at + 8 for at in range(88, end - 12) if data[at : at + 8] == struct.pack("<q", 1)]
    return [data[:at] + b"\x00\xff\xff\xff" + data[at + 4 :] for at in places]


def damaged(seed: int, number: int) -> tuple[str | bytes, str, int]:
    """A damaged stage, the name of the damage, and the number of the valid stage."""
    rng = np.random.default_rng([seed, number])
    texts, files = sources()
    if rng.random() < 0.2:
        which = int(rng.integers(len(files)))
        data, what = _damage_bytes(rng, files[which])
        return data, what, which
    which = int(rng.integers(len(texts)))
    lines = texts[which].split("\n")
    kinds = []
    for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
        kind = str(rng.choice(list(_DAMAGES)))
        kinds.append(kind + ": " + str(_DAMAGES[kind](rng, lines)))
    return "\n".join(lines), "; ".join(kinds), which


def _damage_bytes(rng, data: bytes) -> tuple[bytes, str]:
    data = bytearray(data)
    kind = str(rng.choice(["cut", "bits", "zeros", "ones", "swap", "grow", "header", "lists"]))
    at = int(rng.integers(len(data)))
    if kind == "cut":
        del data[at:]
    elif kind == "lists":
        for place in rng.integers(min(88, len(data) - 1), len(data), int(rng.choice([1, 2, 4]))):
            data[place] = int(rng.choice([0, 1, 2, 4, 127, 128, 129, 255]))
    elif kind == "bits":
        for place in rng.integers(0, len(data), int(rng.choice([1, 2, 10, 200]))):
            data[place] ^= 1 << int(rng.integers(8))
    elif kind in ("zeros", "ones"):
        length = int(rng.choice([1, 4, 8, 64, 1000]))
        data[at : at + length] = (b"\0" if kind == "zeros" else b"\xff") * length
    elif kind == "swap":
        length = int(rng.choice([4, 8, 64]))
        other = int(rng.integers(len(data)))
        data[at : at + length], data[other : other + length] = data[other : other + length], data[at : at + length]
    elif kind == "grow":
        data[at:at] = rng.bytes(int(rng.choice([1, 8, 300])))
    else:
        for place in rng.integers(8, 88, 4):
            data[place] = int(rng.integers(256))
    return bytes(data), f"bytes {kind} at {at}"


def _pick(rng, lines: list[str], pattern: re.Pattern) -> tuple[int, re.Match] | tuple[None, None]:
    found = [i for i, line in enumerate(lines) if pattern.match(line)]
    if not found:
        return None, None
    i = int(rng.choice(found))
    return i, pattern.match(lines[i])


def _value(rng, lines):
    i, match = _pick(rng, lines, _ATTRIBUTE)
    if match:
        lines[i] = lines[i][: match.end()] + str(rng.choice(VALUES))
        return lines[i].strip()
    return None


def _number(rng, lines):
    """Changes one of several numbers."""
    i, match = _pick(rng, lines, _ATTRIBUTE)
    if match:
        numbers = list(re.finditer(r"-?\d+\.?\d*(e-?\d+)?", lines[i][match.end() :]))
        if numbers:
            chosen = numbers[int(rng.integers(len(numbers)))]
            start, end = match.end() + chosen.start(), match.end() + chosen.end()
            lines[i] = lines[i][:start] + str(rng.choice(VALUES[:13])) + lines[i][end:]
            return lines[i].strip()[:200]
    return None


def _type(rng, lines):
    i, match = _pick(rng, lines, _ATTRIBUTE)
    if match:
        lines[i] = str(rng.choice(TYPED)).format(match.group(1))
        return lines[i]
    return None


def _samples(rng, lines):
    i, match = _pick(rng, lines, _ATTRIBUTE)
    if match:
        head, _, value = lines[i].partition(" = ")
        bad = str(rng.choice([value, "nan", "None", "(nan, 0, 0)"]))
        time = str(rng.choice(["0", "1e300", "nan", "inf", "-5"]))
        lines[i] = f"{head}.timeSamples = {{ {time}: {bad}, 1: {value} }}"
        return lines[i].strip()[:200]
    return None


def _name(rng, lines):
    i, match = _pick(rng, lines, _ATTRIBUTE)
    if match:
        name = match.group(1)
        other = str(
            rng.choice([name[:-1], name.upper(), f"{name}:x", name.replace("physics", "physic"), "physics:mass"])
        )
        lines[i] = lines[i].replace(name, other, 1)
        return lines[i].strip()[:200]
    return None


def _line(rng, lines):
    i, j = (int(n) for n in rng.integers(0, len(lines), 2))
    kind = str(rng.choice(["drop", "double", "swap", "move"]))
    if kind == "drop":
        return kind, lines.pop(i).strip()[:100]
    if kind == "double":
        lines.insert(i, lines[i])
    elif kind == "swap":
        lines[i], lines[j] = lines[j], lines[i]
    else:
        lines.insert(j, lines.pop(i))
    return kind, lines[min(i, len(lines) - 1)].strip()[:100]


def _letters(rng, lines):
    i = int(rng.integers(len(lines)))
    at = int(rng.integers(len(lines[i]) + 1))
    extra = str(rng.choice(["", "}", "{", '"', "(", ")", "\x00", "\ud800", "é" * 50, "#", "/*", ">", "9" * 400, "\r"]))
    lines[i] = lines[i][:at] + extra + lines[i][at + int(rng.integers(3)) :]
    return ascii(lines[i].strip()[:100])


def _cut(rng, lines):
    del lines[int(rng.integers(len(lines))) :]
    return len(lines)


def _prim(rng, lines):
    """Changes the type, the schemas or the name of a prim."""
    i, match = _pick(rng, lines, _PRIM)
    if not match:
        return None
    indent, specifier, kind, name = match.groups()
    what = str(rng.choice(["type", "untyped", "specifier", "name"]))
    if what == "type":
        kind = str(rng.choice(TYPES))
    elif what == "untyped":
        kind = None
    elif what == "specifier":
        specifier = str(rng.choice(["over", "class", "def"]))
    else:
        name = str(rng.choice(["left", "World", "x", "hinge", "box"]))
    lines[i] = f'{indent}{specifier} {kind + " " if kind else ""}"{name}"' + lines[i][match.end() :]
    return lines[i].strip()


def _schemas(rng, lines):
    i, _ = _pick(rng, lines, re.compile(r".*apiSchemas = \["))
    if i is None:
        return None
    names = [f'"{name}"' for name in rng.choice(SCHEMAS, int(rng.integers(0, 5)), replace=True)]
    lines[i] = re.sub(r"apiSchemas = \[[^\]]*\]", f"apiSchemas = [{', '.join(names)}]", lines[i])
    return lines[i].strip()


def _arc(rng, lines):
    """Changes an arc or metadatum of a prim, including cycles."""
    i, match = _pick(rng, lines, re.compile(_PRIM.pattern + r" (\()?"))
    if not match:
        return None
    arc = str(rng.choice(ARCS)).replace("{path}", match.group(4))
    end = lines[i].find("(", match.end() - 1)
    if end >= 0:
        lines[i] = f"{lines[i][: end + 1]}{arc}\n{lines[i][end + 1 :]}"
    else:
        end = len(match.group(0).rstrip(" ("))
        lines[i] = f"{lines[i][:end]} ({arc}) {lines[i][end:]}"
    return lines[i].strip()[:200]


def _head(rng, lines):
    lines[1:2] = ["(", str(rng.choice(HEADS))]
    return lines[2]


def _deep(rng, lines):
    """Nests prims and bodies deeply."""
    depth = int(rng.choice([5, 50, 300, 3000]))
    api = str(
        rng.choice(
            ["", '(prepend apiSchemas = ["PhysicsRigidBodyAPI"])', '(prepend apiSchemas = ["PhysicsCollisionAPI"])']
        )
    )
    kind = str(rng.choice(["Xform", "Cube", "Scope"]))
    lines += [f'def {kind} "d" {api} {{'] * depth + ["}"] * depth
    return depth, kind, api


def _circle(rng, lines):
    """Adds cycles of joints and relationships."""
    body = '(prepend apiSchemas = ["PhysicsRigidBodyAPI"])'
    count = int(rng.integers(1, 5))
    kind = str(rng.choice(["PhysicsRevoluteJoint", "PhysicsFixedJoint", "PhysicsJoint"]))
    for n in range(count):
        lines += [f'def Cube "ring_{n}" {body} {{', "}", f'def {kind} "tie_{n}" {{', f"rel physics:body0 = </ring_{n}>"]
        lines += [
            f"rel physics:body1 = </ring_{(n + 1) % count}>",
            f"rel newton:mimicJoint = </tie_{(n + 1) % count}>",
            "}",
        ]
    lines += ['def "loop" {', "rel a = </loop.b>", "rel b = </loop.a>", "}"]
    return count, kind


def _many(rng, lines):
    i, match = _pick(rng, lines, re.compile(r"\s*\w+\[\] ([\w:]+) = \["))
    if match:
        lines[i] = lines[i][: match.end()] + ", ".join([str(rng.choice(["0", "(0, 0, 0)", "-1", "3"]))] * 2000) + "]"
        return match.group(0)
    return None


_DAMAGES = {
    **{f"value {n}": _value for n in range(4)},
    **{f"number {n}": _number for n in range(2)},
    **{f"type {n}": _type for n in range(4)},
    "samples": _samples,
    "name": _name,
    "line": _line,
    "letters": _letters,
    "cut": _cut,
    "prim": _prim,
    "schemas": _schemas,
    "arc": _arc,
    "head": _head,
    "deep": _deep,
    "circle": _circle,
    "many": _many,
}
