"""What refers to bodies, geoms and sites that ``ignore_names`` and ``ignore_classes`` leave out: it is left out, too."""

from __future__ import annotations

from newton_like.importers.mjcf.source import Findings
from newton_like.importers.xml_source import XmlElement

_KIND = {
    **dict.fromkeys(("joint", "joint1", "joint2", "jointinparent"), "joint"),
    **dict.fromkeys(("site", "site1", "site2", "refsite", "cranksite", "slidersite", "sidesite"), "site"),
    **dict.fromkeys(("body", "body1", "body2"), "body"),
    **dict.fromkeys(("geom", "geom1", "geom2"), "geom"),
    **dict.fromkeys(("tendon", "tendon1", "tendon2"), "tendon"),
    "actuator": "actuator",
}
"""The kind of what an attribute names."""

_FROM = {"body": "body", "xbody": "body", "geom": "geom", "site": "site"}
"""Kinds by the types of objects of sensors."""

_NAMED = {"body": "body", "joint": "joint", "freejoint": "joint", "geom": "geom", "site": "site"}


class LeftOut:
    """Bodies, geoms and sites that are left out, with their descendants.

    Attributes:
        names: kinds and names of all that is left out.
        joints: number of joints and mocap bodies that are left out: keyframes have numbers of them.
    """

    def __init__(self):
        self.names: set[tuple[str, str]] = set()
        self.joints = 0

    def add(self, element: XmlElement) -> None:
        """Leaves out an element of the tree of bodies."""
        waiting = [element]
        while waiting:
            each = waiting.pop()
            kind = _NAMED.get(each.tag)
            self.joints += kind == "joint" or each.get("mocap") == "true"
            if kind is not None and each.get("name"):
                self.names.add((kind, each.get("name")))
            waiting += each.children

    def drop_references(self, sections: dict[str, list[XmlElement]], findings: Findings) -> None:
        """Removes elements that refer to what is left out from the lists of a model, with a remark. Keyframes are removed if joints or
        actuators are left out, because their numbers are those of the whole model."""
        if not self.names and not self.joints:
            return
        dropped = []
        # tendons before what pulls at them, actuators before sensors of them
        for section in ("tendon", "contact", "equality", "actuator", "sensor"):
            kept = []
            for element in sections.get(section, ()):
                if self._refers(element) or any(self._refers(child) for child in element.children):
                    dropped.append(f"{element.tag} {element.get('name', '')}".strip())
                    if section in ("tendon", "actuator"):
                        # a nameless one is only counted
                        self.names.add((section, element.get("name", "")))
                else:
                    kept.append(element)
            sections[section] = kept
        if self.joints or any(kind == "actuator" for kind, _ in self.names):
            dropped += [f"key {element.get('name', '')}".strip() for element in sections.get("keyframe", ())]
            sections["keyframe"] = []
        for name in dropped:
            findings.remark(
                "elements refer to entities that ignore_names or ignore_classes ignores; they are ignored, too", name
            )

    def _refers(self, element: XmlElement) -> bool:
        named = [(kind, element.get(attribute)) for attribute, kind in _KIND.items() if element.get(attribute)]
        for kind, name in (("objtype", "objname"), ("reftype", "refname")):
            if element.get(name):
                named.append((_FROM.get(element.get(kind, ""), ""), element.get(name)))
        return any(each in self.names for each in named)
