"""Entries of custom attributes in files."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np

from newton_like.importers.xml_source import ImportFileError, XmlElement
from newton_like.model.custom import AttributeFrequency, CustomAttribute, several

BODY, SHAPE = (AttributeFrequency.BODY,), (AttributeFrequency.SHAPE,)
ARTICULATION = (AttributeFrequency.ARTICULATION,)
JOINT = (
    AttributeFrequency.JOINT,
    AttributeFrequency.JOINT_DOF,
    AttributeFrequency.JOINT_COORD,
    AttributeFrequency.JOINT_CONSTRAINT,
)


def from_element(builder, element: XmlElement, frequencies, kind: str) -> dict:
    """The argument ``custom_attributes`` for the entity of an XML element.

    Args:
        builder: the builder with the declared attributes.
        element: the element, whose attributes include defaults.
        frequencies: frequencies of the entity.
        kind: file format, ``"mjcf"`` or ``"urdf"``.

    Raises:
        ImportFileError: a string is not a value of the attribute's type.
    """
    found = {}
    for attribute in builder.get_custom_attributes_by_frequency(frequencies):
        text = element.attributes.get(_name(attribute, kind))
        if text is None:
            continue
        name, change = _name(attribute, kind), getattr(attribute, f"{kind}_value_transformer")
        try:
            value = attribute.read(text, name) if change is None else change(text, {"element": element})
        except ValueError as error:
            raise element.error(str(error)) from None
        if value is not None:
            _check(attribute, value, name, element.error)
            found[attribute.key] = value
    return found


def from_elements(builder, elements: list[XmlElement], kind: str) -> dict:
    """The argument ``custom_attributes`` for a joint with an axis for each element; entries of dofs and coordinates are by index."""
    found: dict = {}
    for place, element in enumerate(elements):
        for key, value in from_element(builder, element, JOINT, kind).items():
            if builder.custom_attributes[key].frequency in (JOINT[1], JOINT[2]) and len(elements) > 1:
                found.setdefault(key, {})[place] = value
            else:
                found.setdefault(key, value)
    return found


def understood(builder, counts: Counter, tags: dict[str, tuple], kind: str) -> None:
    """Removes attributes that are read as custom attributes from the counts of unknown attributes, by ``tag@name``."""
    for tag, frequencies in tags.items():
        for attribute in builder.get_custom_attributes_by_frequency(frequencies):
            counts.pop(f"{tag}@{_name(attribute, kind)}", None)


def from_prim(builder, prim, frequencies, reader, context: dict | None = None) -> dict:
    """The argument ``custom_attributes`` for the entity of a USD prim.

    Args:
        builder: the builder with the declared attributes.
        prim: the prim; attributes with authored values are read.
        frequencies: frequencies of the entity.
        reader: reader of the stage's attributes.
        context: passed to the transformers of values; by default the prim alone.

    Raises:
        ImportFileError: a value is not of the attribute's type.
    """
    found = {}
    for attribute in builder.get_custom_attributes_by_frequency(frequencies):
        value, change = None, attribute.usd_value_transformer
        if attribute.usd_attribute_name != "*":
            authored = prim.GetAttribute(attribute.usd_attribute_name)
            if not authored or not authored.HasAuthoredValue():
                continue
            value = authored.Get(reader.time)
        if change is None:
            value = _split(attribute, _plain(value))
        else:
            value = change(value, {"attr": attribute, **(context or {"prim": prim})})
        if value is not None:
            _check(attribute, value, attribute.usd_attribute_name, partial(reader.error, prim))
            found[attribute.key] = value
    return found


def _split(attribute: CustomAttribute, value):
    """Entries of several numbers, of a list of all numbers of the dofs, coordinates or constraints of a joint; and numbers of MuJoCo's
    schemas with those that are missing at the end."""
    size = int(np.prod(attribute.shape, dtype=int))
    if (
        attribute.usd_attribute_name.startswith("mjc:")
        and np.ndim(value) == len(attribute.shape) == 1
        and len(value) < size
    ):
        return [*value, *attribute.default[len(value) :]]
    if attribute.frequency not in JOINT[1:] or not attribute.shape or np.ndim(value) != 1 or len(value) % size:
        return value
    return np.reshape(value, attribute.shape if len(value) == size else (-1, *attribute.shape)).tolist()


def add_entities(builder, prims, reader, name: str, result, world: int) -> None:
    """Adds the entities of custom frequencies that prims stand for.

    Args:
        builder: has the frequencies.
        prims: all prims that are imported, in the order of the stage.
        reader: reader of the stage's attributes.
        name: of the file.
        result: the report of the import.
        world: world that entities are added to.

    Raises:
        RuntimeError: a function of a frequency failed.
        ImportFileError: the value is not an entry of the attribute.
    """
    asked = [frequency for frequency in builder.custom_frequencies.values() if frequency.usd_prim_filter is not None]
    keys = {f.key: [a.key for a in builder.get_custom_attributes_by_frequency([f.key])] for f in asked}
    current, builder._current_world = builder.current_world, world
    try:
        for prim in prims:
            for frequency in asked:
                if keys[frequency.key]:
                    _add_rows(builder, frequency, keys[frequency.key], prim, reader, name, result)
    finally:
        builder._current_world = current


def _add_rows(builder, frequency, keys: list[str], prim, reader, name: str, result) -> None:
    """Adds the entities that a prim stands for, if any."""
    context = {"prim": prim, "result": result, "builder": builder}
    if not _called(frequency, "usd_prim_filter", name, prim, context):
        return
    expands = frequency.usd_entry_expander is not None
    if expands:
        rows = _called(frequency, "usd_entry_expander", name, prim, context)
    else:
        rows = [from_prim(builder, prim, [frequency.key], reader, context)]
    try:
        builder.add_custom_values_batch([{**dict.fromkeys(keys), **row} for row in rows])
    except (TypeError, ValueError, AttributeError) as error:
        raise ImportFileError(f"{name}: <{prim.GetPath()}>: {error}") from error


def _called(frequency, function: str, name: str, prim, context: dict):
    """What a function of a frequency says about a prim."""
    try:
        found = getattr(frequency, function)(prim, context)
        return found if function == "usd_prim_filter" else list(found)
    except Exception as error:
        raise RuntimeError(
            f"{name}: <{prim.GetPath()}>: {function} of the custom frequency {frequency.key!r} failed: {error}"
        ) from error


def _check(attribute: CustomAttribute, value, name: str, error) -> None:
    """Raises ``error(message)`` for a value that is not of the attribute's type. The builder checks the number of entries of a joint."""
    if isinstance(value, dict):
        values = list(value.values())
    else:
        values = value if attribute.frequency in JOINT[1:] and several(attribute, value) else [value]
    try:
        for entry in values:
            attribute.entry(entry, name)
    except (TypeError, ValueError) as wrong:
        raise error(str(wrong)) from None


def _name(attribute: CustomAttribute, kind: str) -> str:
    return getattr(attribute, f"{kind}_attribute_name")


def _plain(value):
    """Converts a USD value to a string, a number or nested lists of numbers; quaternions are x y z w."""
    if hasattr(value, "GetReal") and hasattr(value, "GetImaginary"):
        return (*value.GetImaginary(), value.GetReal())
    if value is None or isinstance(value, str | bool | int | float):
        return value
    try:
        return np.array(value).tolist()
    except (TypeError, ValueError):
        return str(value)
