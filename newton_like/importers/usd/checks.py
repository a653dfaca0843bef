"""Checks for mistakes that USD ignores silently: properties of the wrong kind, missing targets and transform ops, samples without a time.
Each becomes an error or a remark."""

from __future__ import annotations

import functools
import re

from pxr import Usd, Vt

from newton_like.importers.usd.values.names import is_of_others, is_read
from newton_like.importers.usd.values.units import Reader

_RELATIONS = re.compile(
    r"physics:(body0|body1|filteredPairs|filteredGroups|simulationOwner)|newton:mimicJoint|proxyPrim|mjc:(target|path|sideSites)|newtonLike:(pairs|equality[0-9]+Joint)"
    r"|physxMimicJoint:\w+:referenceJoint|physxTendon:[\w:]+:parentLink|collection:\w+:(includes|excludes)|material:binding(:.*)?"
)
_TARGETED = re.compile(
    r"physics:(filteredPairs|filteredGroups)|collection:colliders:(includes|excludes)|material:binding.*"
)
"""Relationships whose missing targets no other check reports."""

_DRAWN = re.compile(r"primvars:.*|extent|visibility|purpose|userProperties:.*|inputs:.*|outputs:.*")


@functools.cache
def _is_relation(name: str) -> bool:
    return _RELATIONS.fullmatch(name) is not None


class Checks:
    """Checks the properties of prims.

    Args:
        stage: the stage.
        reader: reader of attributes.
        remark: function that is called with a statement and a path.
    """

    def __init__(self, stage, reader: Reader, remark):
        self._stage, self._reader, self._remark = stage, reader, remark
        self._sampled = reader.time.IsDefault() and any(layer.ListAllTimeSamples() for layer in stage.GetUsedLayers())

    def look(self, prim, names) -> None:
        """Checks a prim.

        Args:
            prim: any prim.
            names: names of its authored properties.

        Raises:
            ImportFileError: a relationship instead of an attribute, or the reverse.
        """
        if not names:
            return
        # prim.GetAuthoredRelationships() would follow the schemas instead of the layers.
        relations = {relation.name for spec in prim.GetPrimStack() for relation in spec.relationships}
        expected = {name for name in names if _is_relation(name)}
        if relations != expected:
            self._refuse(prim, relations, expected)
        for name in expected:
            if _TARGETED.fullmatch(name):
                for target in prim.GetRelationship(name).GetForwardedTargets():
                    if not self._stage.GetPrimAtPath(target.GetPrimPath()):
                        self._remark(
                            "relationships name prims that do not exist", f"{prim.GetPath()}.{name} -> {target}"
                        )
        if "xformOpOrder" in names:
            self._look_at_ops(prim, names)
        if self._sampled:
            for name in names:
                if name not in relations and not _DRAWN.fullmatch(name):
                    self._look_at_samples(prim.GetAttribute(name))

    def _refuse(self, prim, relations: set[str], expected: set[str]) -> None:
        for name in sorted(expected - relations):
            raise self._reader.error(prim, f"{name} is an attribute; make it a relationship: rel {name} = </path>")
        definition = prim.GetPrimDefinition()
        for name in sorted(relations - expected):
            if definition.GetSchemaAttributeSpec(name) or (is_read(name) and not is_of_others(name)):
                raise self._reader.error(prim, f"{name} is a relationship; make it an attribute with a value")

    def _look_at_ops(self, prim, names) -> None:
        order = prim.GetAttribute("xformOpOrder").Get()
        if order is not None and not isinstance(order, Vt.TokenArray):
            raise self._reader.error(prim, f"xformOpOrder is {str(order)[:40]!r}; give a list of tokens (token[])")
        # An inherited order may name ops that only some prims have, so missing ops alone are not a mistake; a misspelt name also leaves an
        # authored op unused.
        used = {name.removeprefix("!invert!") for name in order or ()}
        if any(name.startswith("xformOp:") and name not in used for name in names):
            for name in sorted(used - {"!resetXformStack!"}):
                if not prim.HasAttribute(name):
                    self._remark(
                        "xformOpOrder contains ops that do not exist; USD ignores them", f"{prim.GetPath()}.{name}"
                    )

    def _look_at_samples(self, attribute: Usd.Attribute) -> None:
        source = attribute.GetResolveInfo(Usd.TimeCode.Default()).GetSource()
        if source != Usd.ResolveInfoSourceDefault and attribute.GetNumTimeSamples():
            self._remark(
                "attributes have time samples only, but no time is given; give time=",
                str(attribute.GetPath()),
            )
