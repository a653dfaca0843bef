"""Safe reading of MJCF files: includes, classes of defaults, and checks of elements and attributes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from newton_like.importers.xml_source import MissingFileError, XmlElement, XmlSource, own_folder, read_xml

MAX_ELEMENTS = 500_000
"""Largest number of elements of a model with its includes and replicas. Scenes have thousands; more indicate a mistake or an attack."""

MAX_INCLUDES = 1000
"""Largest number of files of a model."""

MAIN = "main"
"""Name of the class of defaults for all elements."""

ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")
"""Attributes for the orientation of an element; it may have one of them."""

_GROWING = (
    "size friction solref solimp solreflimit solimplimit solreffriction solimpfriction gear gainprm biasprm dynprm "
    "polycoef springlength damping stiffness user"
)
GROWING = frozenset(_GROWING.split())
"""Attributes whose last numbers may be omitted; the defaults then give these numbers."""

_NO_CLASS = frozenset(("freejoint", "body", "frame", "replicate", "inertial", "exclude", "key"))


@dataclass(frozen=True)
class MjcfSource(XmlSource):
    """A model whose includes are replaced by their contents.

    Attributes:
        allowed: folders from which files may be read, including subfolders.
        resolver: ``f(folder, name)`` returns paths of files instead of a search, or ``None``.
    """

    allowed: tuple[Path, ...]
    resolver: Callable | None = None

    def find(self, name: str, subfolder: str, element: XmlElement, beside: bool = False) -> Path:
        """The file that an element names.

        Args:
            name: the name in the element.
            subfolder: base folder (``meshdir``) of relative names, relative to the main file.
            element: the element, for error messages.
            beside: whether to search also in the folder of the element's own file, after that of the main file.

        Raises:
            MissingFileError: the file does not exist, or is outside of the allowed folders.
            ImportFileError: an invalid name.
        """
        if "\0" in name or "\0" in subfolder:
            raise element.error("a file name contains a null character; correct the name")
        if self.resolver is not None:
            return self._resolved(name if beside else os.path.join(subfolder, name), element)
        places = [Path(subfolder, name)] if self.folder is None else [self.folder / subfolder / name]
        if beside and self.folder is not None:
            places.append(Path(element.file).parent / name)
        if not os.path.isabs(os.path.join(subfolder, name)):
            places += [
                root / part for root in self.allowed[self.folder is not None :] for part in (places[0].name, name)
            ]
        seen, also = [], ", or ignore such meshes with skip_missing_meshes=True" if element.tag == "mesh" else ""
        for place in places:
            path = Path(os.path.abspath(place))
            if not any(path.is_relative_to(folder) for folder in self.allowed):
                continue
            seen.append(path)
            if os.path.isfile(path):
                return path
        if not seen:
            folders = ", ".join(map(str, self.allowed)) or "none, as the model is a text without a file"
            raise element.error(
                f"the file {name!r} is outside of the folders that may be read ({folders}); move it there, or name its "
                f"folder in package_dirs{also}",
                MissingFileError,
            )
        raise element.error(
            f"the file {name!r} does not exist (searched: {', '.join(map(str, seen[:4]))}); correct it{also}",
            MissingFileError,
        )

    def _resolved(self, name: str, element: XmlElement) -> Path:
        """The path that the user's function returns for a name."""
        path = self.resolver(None if self.folder is None else str(self.folder), name)
        if not isinstance(path, str | os.PathLike) or not os.path.isabs(path):
            raise element.error(f"path_resolver gave {path!r} for {name!r}; it must give an absolute path")
        if not os.path.isfile(path):
            raise element.error(
                f"the file {str(path)!r}, which path_resolver gave for {name!r}, does not exist", MissingFileError
            )
        return Path(path)


def read_mjcf(source, package_dirs=(), resolver: Callable | None = None) -> MjcfSource:
    """Reads a model and all files that it includes.

    Files are read only from :func:`newton_like.importers.xml_source.own_folder` and ``package_dirs``.

    Raises:
        FileNotFoundError: the file does not exist.
        ImportFileError: broken XML, not MJCF, or includes that are missing, repeated or outside of the allowed folders.
    """
    xml = read_xml(source, package_dirs)
    _check_root(xml, ("mujoco",))
    own = () if xml.folder is None else (own_folder(xml.folder),)
    allowed = tuple(Path(os.path.abspath(folder)) for folder in (*own, *package_dirs))
    result = MjcfSource(xml.root, xml.name, xml.folder, allowed, resolver)
    _include(result, xml.root, set() if xml.folder is None else {os.path.abspath(xml.name)})
    return result


def _check_root(xml: XmlSource, tags: tuple[str, ...]) -> None:
    root = xml.root
    if root.tag in tags:
        return
    cure = "MJCF starts with <mujoco>"
    if root.tag == "robot":
        cure = "this is URDF; read it with add_urdf"
    elif root.tag == "mujocoinclude":
        cure = "this is a part of a model; read the file that includes it"
    raise root.error(f"is not an MJCF model: {cure}")


def _include(source: MjcfSource, element: XmlElement, seen: set[str]) -> None:
    """Replaces all ``<include>`` below an element by the children of the files' outermost elements."""
    stack = [element]
    while stack:
        parent = stack.pop()
        children = []
        for child in parent.children:
            children += _included(source, child, seen) if child.tag == "include" else [child]
        parent.children = children
        if any(child.tag == "include" for child in children):
            stack.append(parent)
            continue
        stack += children


def _included(source: MjcfSource, element: XmlElement, seen: set[str]) -> list[XmlElement]:
    path = source.find(element.need_text("file"), "", element, beside=True)
    if str(path) in seen:
        raise element.error(f"the file {str(path)!r} is included already; include it once")
    if len(seen) >= MAX_INCLUDES:
        raise element.error(f"more than {MAX_INCLUDES} files are included; put the model into fewer")
    seen.add(str(path))
    try:
        xml = read_xml(path)
    except OSError as error:
        raise element.error(f"{path} cannot be read: {error}; check its permissions") from error
    _check_root(xml, ("mujoco", "mujocoinclude"))
    return xml.root.children


class Defaults:
    """Classes of defaults: values of missing attributes, by tag."""

    def __init__(self):
        self._classes: dict[str, dict[str, dict[str, str]]] = {MAIN: {}}
        self._parents: dict[str, str] = {}
        self.actuators: dict[str, list[list[XmlElement]]] = {MAIN: [[]]}
        """For each class, the default elements of actuators (shared by all kinds) of the classes from the main class down to it."""

    def read(self, element: XmlElement, is_actuator) -> None:
        """Reads a top-level ``<default>`` element with its nested classes."""
        name = element.get("class", MAIN) or MAIN
        self._classes.setdefault(name, self._classes[MAIN])
        self.actuators.setdefault(name, self.actuators[MAIN])
        self._fill(element, name, is_actuator)

    def _fill(self, element: XmlElement, name: str, is_actuator) -> None:
        for child in element.children:
            if child.tag == "default":
                continue
            if is_actuator(child.tag):
                self.actuators[name][-1].append(child)
            else:
                own = {key: value for key, value in child.attributes.items() if key != "class"}
                self._classes[name][child.tag] = merged(self._classes[name].get(child.tag, {}), own, child)
        for child in element.all("default"):
            inner = child.get("class")
            if not inner:
                raise child.error("a class of defaults inside another needs a name; add class='...'")
            if inner in self._classes:
                raise child.error(f"the class {inner!r} is defined twice; rename one")
            self._classes[inner] = {tag: dict(values) for tag, values in self._classes[name].items()}
            self.actuators[inner] = [*self.actuators[name], []]
            self._fill(child, inner, is_actuator)

    def check(self, name: str, element: XmlElement) -> str:
        """Checks the name of a class. Raises ImportFileError if the class does not exist."""
        if name not in self._classes:
            shown = ", ".join(sorted(self._classes)[:8])
            raise element.error(f"unknown class {name!r}; there are: {shown}")
        return name

    def apply(self, element: XmlElement, childclass: str = MAIN) -> XmlElement:
        """The element, with missing attributes from its class (or from ``childclass``)."""
        if element.tag in _NO_CLASS:
            return element
        name = self.check(element.get("class") or childclass, element)
        values = self._classes[name].get(element.tag, {})
        attributes = merged(values, element.attributes, element)
        return XmlElement(element.tag, attributes, element.line, element.file, element.children, element.texts)


def merged(defaults: dict[str, str], own: dict[str, str], element: XmlElement) -> dict[str, str]:
    """Attributes of an element over those of its defaults.

    Raises:
        ImportFileError: the element has two orientations.
    """
    turned = [name for name in ORIENTATIONS if name in own]
    if len(turned) > 1:
        raise element.error(f"has two orientations ({' and '.join(turned)}); keep one")
    result = {name: value for name, value in defaults.items() if not (turned and name in ORIENTATIONS)}
    for name, value in own.items():
        if name in GROWING and name in result:
            numbers, rest = value.split(), result[name].split()
            value = " ".join(numbers + rest[len(numbers) :])
        result[name] = value
    return result


@dataclass
class Findings:
    """Findings about a file for the report of an import.

    Attributes:
        remarks: statements, each with the names of the entities concerned.
        not_understood: numbers of items that were ignored, by ``parent/tag``, ``tag@attribute`` or ``tag/text``.
        unused: numbers of items without meaning for a simulation, by ``parent/tag`` or ``tag@attribute``.
    """

    remarks: dict[str, list[str]] = field(default_factory=dict)
    not_understood: Counter = field(default_factory=Counter)
    unused: Counter = field(default_factory=Counter)

    def remark(self, statement: str, name: str) -> None:
        self.remarks.setdefault(statement, []).append(name)

    def check_all(self, root: XmlElement, tables: Tables) -> None:
        """Counts the unknown and unused items of the whole file.

        Raises:
            ImportFileError: more than ``MAX_ELEMENTS`` elements.
        """
        stack, count = [(root, None)], 0
        while stack:
            element, parent = stack.pop()
            count += 1
            if count > MAX_ELEMENTS:
                raise element.error(f"the model has more than {MAX_ELEMENTS} elements; split it")
            if parent is not None and element.tag in tables.unused_elements.get(parent.tag, ()):
                self.unused[f"{parent.tag}/{element.tag}"] += 1
                continue
            if parent is not None and element.tag not in tables.elements.get(parent.tag, ()):
                self.not_understood[f"{parent.tag}/{element.tag}"] += 1
                continue
            if any(text.strip() for text in element.texts):
                self.not_understood[f"{element.tag}/text"] += 1
            known = tables.attributes.get(element.tag)
            for name in element.attributes if known is not None else ():
                if name in tables.unused_attributes.get(element.tag, ()):
                    self.unused[f"{element.tag}@{name}"] += 1
                elif name not in known:
                    self.not_understood[f"{element.tag}@{name}"] += 1
            stack += [(child, element) for child in element.children]


@dataclass(frozen=True)
class Tables:
    """Known names: elements by parent, attributes by element.

    Attributes:
        elements: child elements that are read.
        unused_elements: child elements without meaning for a simulation.
        attributes: attributes that are read; elements without an entry keep all attributes as data.
        unused_attributes: attributes without meaning for a simulation.
    """

    elements: dict[str, frozenset[str]]
    unused_elements: dict[str, frozenset[str]]
    attributes: dict[str, frozenset[str]]
    unused_attributes: dict[str, frozenset[str]]


def words(element: XmlElement, name: str, choices: dict | tuple, default=None):
    """Value of an attribute with a fixed set of words: the entry of a dict, or the word itself. Raises ImportFileError for other words."""
    text = element.get(name)
    if text is None:
        return default
    if text.strip() not in choices:
        raise element.error(f"{name}={text!r} must be {' or '.join(map(repr, choices))}")
    return choices[text.strip()] if isinstance(choices, dict) else text.strip()


def floats(element: XmlElement, name: str, most: int, default=None, least: int = 1) -> tuple[float, ...] | None:
    """Between ``least`` and ``most`` finite numbers of an attribute, or ``default`` if it is missing.

    Raises:
        ImportFileError: another count, or a value that is not a finite number.
    """
    text = element.get(name)
    if text is None:
        return default
    count = len(text.split())
    if not least <= count <= most:
        wanted = f"{most}" if least == most else f"{least} to {most}"
        raise element.error(f"{name}={text!r} must have {wanted} numbers separated by spaces, not {count}")
    return element.numbers(name, count)


def whole(element: XmlElement, name: str, default: int, low: int | None = None) -> int:
    """An integer of an attribute. Raises ImportFileError for other values, or values below `low`."""
    if name not in element.attributes:
        return default
    value = element.number(name, low=low)
    if value != int(value):
        raise element.error(f"{name}={element.attributes[name]!r} must be a whole number")
    return int(value)
