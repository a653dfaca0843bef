"""Entries of custom attributes that files hold."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np

from newton_like.importers.xml_source import XmlElement
from newton_like.model.custom import AttributeFrequency, CustomAttribute, several

BODY, SHAPE = (AttributeFrequency.BODY,), (AttributeFrequency.SHAPE,)
JOINT = (
    AttributeFrequency.JOINT,
    AttributeFrequency.JOINT_DOF,
    AttributeFrequency.JOINT_COORD,
    AttributeFrequency.JOINT_CONSTRAINT,
)


def from_element(builder, element: XmlElement, frequencies, kind: str) -> dict:
    """The argument ``custom_attributes`` of what an XML element becomes.

    Args:
        builder: has the declared attributes.
        element: its attributes are read, defaults included.
        frequencies: of what it becomes.
        kind: of the file, ``"mjcf"`` or ``"urdf"``.

    Raises:
        ImportFileError: a value is none of the attribute's type.
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
    """The same of a joint with an axis for each element: entries of dofs and coordinates by their places."""
    found: dict = {}
    for place, element in enumerate(elements):
        for key, value in from_element(builder, element, JOINT, kind).items():
            if builder.custom_attributes[key].frequency in (JOINT[1], JOINT[2]) and len(elements) > 1:
                found.setdefault(key, {})[place] = value
            else:
                found.setdefault(key, value)
    return found


def understood(builder, counts: Counter, tags: dict[str, tuple], kind: str) -> None:
    """Takes attributes that are read as custom ones out of the counts of what is not understood, by ``tag@name``."""
    for tag, frequencies in tags.items():
        for attribute in builder.get_custom_attributes_by_frequency(frequencies):
            counts.pop(f"{tag}@{_name(attribute, kind)}", None)


def from_prim(builder, prim, frequencies, reader) -> dict:
    """The argument ``custom_attributes`` of what a USD prim becomes.

    Args:
        builder: has the declared attributes.
        prim: its attributes are read where they have authored values.
        frequencies: of what it becomes.
        reader: of the stage's attributes.

    Raises:
        ImportFileError: a value is none of the attribute's type.
    """
    found = {}
    for attribute in builder.get_custom_attributes_by_frequency(frequencies):
        value, change = None, attribute.usd_value_transformer
        if attribute.usd_attribute_name != "*":
            authored = prim.GetAttribute(attribute.usd_attribute_name)
            if not authored or not authored.HasAuthoredValue():
                continue
            value = authored.Get(reader.time)
        value = _plain(value) if change is None else change(value, {"prim": prim, "attr": attribute})
        if value is not None:
            _check(attribute, value, attribute.usd_attribute_name, partial(reader.error, prim))
            found[attribute.key] = value
    return found


def _check(attribute: CustomAttribute, value, name: str, error) -> None:
    """Raises ``error(message)`` for what is no value of an attribute; how many entries a joint needs is seen by the builder."""
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
    """A value of USD as a text, a number or numbers; quaternions x y z w."""
    if hasattr(value, "GetReal") and hasattr(value, "GetImaginary"):
        return (*value.GetImaginary(), value.GetReal())
    if value is None or isinstance(value, str | bool | int | float):
        return value
    try:
        return np.array(value).tolist()
    except (TypeError, ValueError):
        return str(value)
