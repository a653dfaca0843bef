"""Entries of custom attributes in files."""

from __future__ import annotations

from collections import Counter

import numpy as np

from newton_like.importers.xml_source import XmlElement
from newton_like.model.custom import AttributeFrequency, CustomAttribute

BODY, SHAPE = (AttributeFrequency.BODY,), (AttributeFrequency.SHAPE,)
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
        change = getattr(attribute, f"{kind}_value_transformer")
        try:
            value = (
                attribute.read(text, _name(attribute, kind)) if change is None else change(text, {"element": element})
            )
        except ValueError as error:
            raise element.error(str(error)) from None
        if value is not None:
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


def from_prim(builder, prim, frequencies, time) -> dict:
    """The argument ``custom_attributes`` for the entity of a USD prim.

    Args:
        builder: the builder with the declared attributes.
        prim: the prim; attributes with authored values are read.
        frequencies: frequencies of the entity.
        time: time code.
    """
    found = {}
    for attribute in builder.get_custom_attributes_by_frequency(frequencies):
        value, change = None, attribute.usd_value_transformer
        if attribute.usd_attribute_name != "*":
            authored = prim.GetAttribute(attribute.usd_attribute_name)
            if not authored or not authored.HasAuthoredValue():
                continue
            value = authored.Get(time)
        value = _plain(value) if change is None else change(value, {"prim": prim, "attr": attribute})
        if value is not None:
            found[attribute.key] = value
    return found


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
