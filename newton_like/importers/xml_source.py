"""Safe reading of XML robot files, with line numbers and checked attributes, and the search for the files that they name."""

from __future__ import annotations

import codecs
import io
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit
from xml.parsers import expat

from newton_like.coercion import LARGEST

MAX_DEPTH = 500
"""Deepest nesting of elements. Robot files have about ten levels, but a rope in MJCF has one for each body. MuJoCo has the same limit."""

PIECE = 2**24
"""Bytes that are parsed at once. The first piece is enough to reject a huge file of another kind, and robot files are smaller than one
piece."""

SHOWN_CHARACTERS = 200
"""Number of characters of a source in error messages."""


class ImportFileError(ValueError):
    """A robot file is wrong. The message names the file, the line, the element and a solution."""


class OutsideFoldersError(ValueError):
    """A file that a robot file names is outside of the folders that may be read, or of its package."""


class MissingFileError(ImportFileError):
    """A file that a robot file names is in none of the allowed folders."""


@dataclass
class XmlElement:
    """An element of a file, with its line number.

    Attributes:
        tag: name of the element.
        attributes: its attributes.
        line: line of the opening tag, counted from 1.
        file: name of the file in messages.
        children: child elements, in order.
        texts: text of the element, without that of children, in pieces.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    file: str
    children: list[XmlElement] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        name = self.attributes.get("name")
        return f"<{self.tag}{f' name={name!r}' if name is not None else ''}>"

    def error(self, message: str, kind: type[ImportFileError] = ImportFileError) -> ImportFileError:
        """Returns an error about this element, to be raised."""
        return kind(f"{self.file}, line {self.line}: {self}: {message}")

    def all(self, tag: str) -> Iterator[XmlElement]:
        """Children with this tag."""
        return (child for child in self.children if child.tag == tag)

    def first(self, tag: str) -> XmlElement | None:
        """The only child with this tag, or ``None``. Raises ImportFileError if there are several."""
        found = list(self.all(tag))
        if len(found) > 1:
            raise found[1].error(f"{self} has {len(found)} <{tag}> elements; keep one")
        return found[0] if found else None

    def need(self, tag: str) -> XmlElement:
        """The only child with this tag. Raises ImportFileError if there is none or if there are several."""
        found = self.first(tag)
        if found is None:
            raise self.error(f"has no <{tag}>; add one")
        return found

    def get(self, name: str, default: str | None = None) -> str | None:
        """Text of an attribute."""
        return self.attributes.get(name, default)

    def need_text(self, name: str) -> str:
        """Text of a required attribute. Raises ImportFileError if it is missing or empty."""
        value = self.attributes.get(name, "").strip()
        if not value:
            raise self.error(f"has no attribute {name!r}; add {name}='...'")
        return value

    def number(self, name: str, default: float | None = None, *, low: float | None = None, infinite=False) -> float:
        """One number of an attribute.

        Args:
            name: the attribute.
            default: value of a missing attribute; without a default the attribute is required.
            low: smallest allowed value.
            infinite: allow ``inf`` and ``-inf``.

        Raises:
            ImportFileError: missing, not a number, not finite, or too small.
        """
        if name not in self.attributes and default is not None:
            return default
        text = self.need_text(name)
        value = self._parse(name, text, infinite)
        if low is not None and value < low:
            raise self.error(f"{name}={text!r} must be at least {low:g}")
        return value

    def numbers(self, name: str, count: int, default: Sequence[float] | None = None) -> tuple[float, ...]:
        """``count`` finite numbers of an attribute, separated by white space.

        Raises:
            ImportFileError: missing (without a default), another count, or a value that is not a finite number.
        """
        if name not in self.attributes and default is not None:
            return tuple(default)
        text = self.need_text(name)
        parts = text.split()
        if len(parts) != count:
            raise self.error(f"{name}={text!r} must have {count} numbers separated by spaces, not {len(parts)}")
        return tuple(self._parse(name, part, False) for part in parts)

    def _parse(self, name: str, text: str, infinite: bool) -> float:
        try:
            # float() also accepts 1_000, which other readers of these files reject.
            value = float(text) if "_" not in text else math.nan
        except ValueError:
            raise self.error(f"{name}={self.attributes[name]!r}: {text!r} is not a number") from None
        if math.isnan(value) or (math.isinf(value) and not infinite):
            raise self.error(f"{name}={self.attributes[name]!r}: {text!r} is not a finite number")
        if abs(value) > LARGEST and not infinite:
            raise self.error(
                f"{name}={self.attributes[name]!r}: {text!r} is beyond {LARGEST:g}; units are SI (m, kg, s)"
            )
        return value


@dataclass(frozen=True)
class XmlSource:
    """A parsed file.

    Attributes:
        root: the outermost element.
        name: name of the file in messages.
        folder: base folder of relative names, or ``None`` for a text without a file.
    """

    root: XmlElement
    name: str
    folder: Path | None


def read_xml(source: str | bytes | os.PathLike, package_dirs: Sequence = ()) -> XmlSource:
    """Reads an XML file, or a text: a string that starts with ``<`` or has several lines.

    Document types and entities raise an error: they can make a small file grow without bounds (entity
    bombs) and read other files of the machine (external entities), and robot descriptions do not need them.

    Args:
        source: path, ``file:``, ``package:`` or ``model:`` URI, or the XML itself.
        package_dirs: see :func:`find_file`.

    Raises:
        FileNotFoundError: the file does not exist.
        ImportFileError: not well-formed XML, or a document type or entities.
        TypeError: ``source`` is neither a path nor text.
    """
    if not isinstance(source, str | bytes | os.PathLike):
        raise TypeError(f"a {type(source).__name__} is not a robot file; give a path or the XML as text")
    if isinstance(source, bytes):
        return XmlSource(_parse(io.BytesIO(source), "XML text", None), "XML text", None)
    text = source if isinstance(source, str) else os.fspath(source)
    if text.lstrip("\ufeff \t\r\n").startswith("<") or "\n" in text:
        # Lone surrogates, which no encoding has, become bytes that the parser rejects with a line number.
        data = text.lstrip("\ufeff").encode(errors="surrogatepass")
        return XmlSource(_parse(io.BytesIO(data), "XML text", "utf-8"), "XML text", None)
    path, tried = find_file(text, None, package_dirs)
    if path is None:
        shown = text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."
        places = f"; looked at {len(tried)} places" if len(tried) > 1 else ""
        lack = "is a folder" if os.path.isdir(text) else "does not exist"
        raise FileNotFoundError(
            f"robot file {shown!r} {lack}{places}; correct the path, or name its package folder in package_dirs"
        )
    try:
        with open(path, "rb") as stream:
            folder = path.absolute().parent
            # the folders above that of "a/b/.." are not a/b and a
            folder = folder.resolve() if os.pardir in folder.parts else folder
            return XmlSource(_parse(stream, str(path), None), str(path), folder)
    except OSError as error:
        raise ImportFileError(f"{path} cannot be read: {error}; check its permissions") from error


def _parse(stream: BinaryIO, file: str, encoding: str | None) -> XmlElement:
    parser = expat.ParserCreate(encoding)
    piece, skipped = _without_leading_space(stream.read(PIECE))
    stack: list[XmlElement] = []
    roots: list[XmlElement] = []

    def refuse(*_):
        raise ImportFileError(
            f"{file}, line {skipped + parser.CurrentLineNumber}: document types and entities (<!DOCTYPE>, <!ENTITY>) are "
            "not allowed, because they can read other files and grow without bounds; remove the declaration"
        )

    def start(tag, attributes):
        element = XmlElement(tag, attributes, skipped + parser.CurrentLineNumber, file)
        if len(stack) >= MAX_DEPTH:
            raise element.error(f"elements are nested deeper than {MAX_DEPTH}; no robot file is")
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def end(_):
        stack.pop()

    def characters(text):
        if stack:
            stack[-1].texts.append(text)

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.buffer_text = True
    try:
        while piece:
            parser.Parse(piece, False)
            piece = stream.read(PIECE)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        reason = expat.errors.messages[error.code]
        raise ImportFileError(f"{file}, line {skipped + error.lineno}: broken XML: {reason}; repair the file") from None
    except ImportFileError:
        raise
    except (LookupError, ValueError) as error:
        # Python's codecs raise this for an encoding="..." that they or the parser do not support.
        raise ImportFileError(f"{file}, line 1: its encoding cannot be read: {error}; save it as UTF-8") from None
    return roots[0]


def _without_leading_space(piece: bytes) -> tuple[bytes, int]:
    """Removes leading white space, which many readers accept before ``<?xml``, and a byte order mark of UTF-8 before it. Returns the rest
    and the number of removed lines."""
    rest = piece.removeprefix(codecs.BOM_UTF8).lstrip(b" \t\r\n")
    return (rest, piece[: len(piece) - len(rest)].count(b"\n")) if rest.startswith(b"<") else (piece, 0)


def find_file(
    uri: str, folder: Path | None, package_dirs: Sequence = (), within: Sequence[Path] | None = None
) -> tuple[Path | None, list[Path]]:
    """Finds the file that a robot description names.

    * ``package://name/rest`` and ``model://name/rest``: ``rest`` in the folder ``name``. The search order is: each
      of ``package_dirs``, which is that folder or contains it; ``folder`` and all folders above it, likewise; the
      folders of the environment variables ``ROS_PACKAGE_PATH`` and ``AMENT_PREFIX_PATH``.
    * ``file:///path``: that path.
    * a path: relative ones start at ``folder``, then at each of ``package_dirs``; without a ``folder`` also at the
      working directory.

    Args:
        uri: URI or path in the description.
        folder: folder of the description; ``None`` for a text.
        package_dirs: folders of packages.
        within: folders that must contain the file, see :func:`allowed_folders`; ``None``: any folder. The file of a
            package URI is always in its package.

    Returns:
        The file, or ``None``; and all paths that were tried.

    Raises:
        OutsideFoldersError: a path out of its package or of ``within``.
        ValueError: an unsupported kind of URI, or another machine.
    """
    roots = [Path(root) for root in ([package_dirs] if isinstance(package_dirs, str | os.PathLike) else package_dirs)]
    scheme = uri.split(":", 1)[0].lower() if "://" in uri or uri.lower().startswith("file:") else ""
    if scheme in ("package", "model"):
        package, _, rest = unquote(uri.split("://", 1)[1]).partition("/")
        if package in (os.curdir, os.pardir) or os.path.isabs(rest) or _climbs(rest):
            raise OutsideFoldersError(f"{uri!r} leads out of its package; name the package that the file is in")
        within, above = None, [] if folder is None else [folder, *folder.parents]
        candidates = []
        for root in [*roots, *above, *_package_path()]:
            if root.absolute().name == package:
                candidates.append(root / rest)
            candidates.append(root / package / rest)
    elif scheme == "file":
        parts = urlsplit(uri)
        if parts.netloc not in ("", "localhost"):
            raise ValueError(f"{uri!r} names the machine {parts.netloc!r}; only local files are read")
        candidates = [Path(unquote(parts.path))]
    elif scheme:
        raise ValueError(f"{uri!r}: {scheme}: is not supported; download the file and name it by path")
    else:
        path = Path(uri)
        bases = ([Path()] if folder is None else [folder]) + roots
        candidates = [path] if path.is_absolute() else [base / path for base in bases]
    tried = list(dict.fromkeys(candidates))
    if within is not None:
        tried = [path for path in tried if any(Path(os.path.abspath(path)).is_relative_to(root) for root in within)]
        if not tried:
            raise OutsideFoldersError(
                f"{uri!r} is outside of the folders that may be read ({', '.join(map(str, within))}); move it there, or "
                "name its folder in package_dirs"
            )
    # for invalid names os.path.isfile() is false, but Path.is_file() raises
    return next((path for path in tried if os.path.isfile(path)), None), tried


def own_folder(folder: Path) -> Path:
    """The package of a file in `folder`: the nearest folder above it with a ``package.xml``; else the Python package that contains it,
    which is the outermost of the folders above it that have an ``__init__.py`` without a gap between them; else the parent of `folder`,
    which contains ``../meshes``."""
    above = [folder, *folder.parents]
    for place in above:
        if os.path.isfile(place / "package.xml"):
            return place
    start = next((i for i, place in enumerate(above) if os.path.isfile(place / "__init__.py")), None)
    if start is None:
        return folder.parent
    outside = (i for i, place in enumerate(above) if i > start and not os.path.isfile(place / "__init__.py"))
    package = above[next(outside, len(above)) - 1]
    return package if folder.parent.is_relative_to(package) else folder.parent


def allowed_folders(folder: Path | None, package_dirs: Sequence = ()) -> tuple[Path, ...]:
    """Folders from which a description may read other files, including subfolders.

    These are ``package_dirs``, the folders of ``ROS_PACKAGE_PATH`` and ``AMENT_PREFIX_PATH``, and the file's :func:`own_folder`, or the
    working directory for a text without a file. Paths are compared as they are written, so a symbolic link may lead out of a folder.
    """
    own = Path() if folder is None else own_folder(folder)
    return tuple(Path(os.path.abspath(root)) for root in (own, *package_dirs, *_package_path()))


def _package_path() -> list[Path]:
    """Folders of packages from the environment variables."""
    folders = [Path(p) for p in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if p]
    return folders + [Path(p, "share") for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]


def _climbs(path: str) -> bool:
    """Whether a relative path leads above its base folder."""
    return os.path.normpath(path).split(os.sep)[0] == os.pardir
