"""MuJoCo's settings of contacts: of geoms, and of explicit pairs of geoms."""

from __future__ import annotations

from newton_like.importers.mjcf.records import Geom, Mjcf
from newton_like.importers.mjcf.source import floats, whole
from newton_like.importers.xml_source import XmlElement
from newton_like.model.mujoco.contact_settings import (
    FRICTION,
    FRICTION_RULE,
    LARGER_RULE,
    NAMESPACE,
    PAIR,
    PAIR_FRICTION,
    SOFTNESS_RULE,
    SOLIMP,
    SOLREF,
    declare_contact_settings,
    is_solref,
)

CONDIMS = (1, 3, 4, 6)
_UNUSED = ("solreffriction", "adhesion")
"""Settings of pairs that are not used. The gap of a pair has no effect on forces."""


def read_condim(element: XmlElement) -> int:
    """``condim`` of an element. Raises ImportFileError for a number that it cannot be."""
    condim = whole(element, "condim", 3)
    if condim not in CONDIMS:
        raise element.error(f"condim={condim} must be 1, 3, 4 or 6")
    return condim


def read_solimp(element: XmlElement) -> tuple[float, ...]:
    """Five numbers of ``solimp``. Raises ImportFileError for numbers that are not finite. Others are clipped later, as in MuJoCo."""
    given = floats(element, "solimp", 5, ())
    return (*given, *SOLIMP[len(given) :])


def read_limit_settings(model: Mjcf, element: XmlElement, label: str) -> dict:
    """Settings of the limits of a hinge or slide joint, by the names of custom attributes; none where the file states none.

    Args:
        model: the file, for remarks.
        element: the joint.
        label: its name.

    Raises:
        ImportFileError: a number is not one that it can be.
    """
    stated = [name for name in ("solreflimit", "solimplimit", "margin") if name in element.attributes]
    if not stated:
        return {}
    solref = (*floats(element, "solreflimit", 2, ()), *SOLREF)[:2]
    if not is_solref(solref):
        model.findings.remark("joints have a solreflimit with a 0 or with two signs, which is ignored", label)
        solref = SOLREF
        if stated == ["solreflimit"]:
            return {}
    given = floats(element, "solimplimit", 5, ())
    return {
        "limit_rules": 1, "solreflimit": solref, "solimplimit": (*given, *SOLIMP[len(given) :]),
        "limit_margin": element.number("margin", 0.0, low=0.0),
    }  # fmt: skip


def read_pair_settings(model: Mjcf, elements: list[XmlElement]) -> list[dict]:
    """Settings of pairs of geoms, by the names of custom attributes without ``pair_``, and of these ``geom1`` and ``geom2`` by name. What
    a pair does not state has MuJoCo's defaults, whatever its geoms state.

    Raises:
        ImportFileError: a number is not one that it can be.
    """
    result, seen = [], set()
    for element in elements:
        label = f"{element.get('geom1')}-{element.get('geom2')}"
        geoms = frozenset((element.get("geom1"), element.get("geom2")))
        if geoms in seen:
            model.findings.remark("geoms have several contact pairs; the first one counts", label)
        seen.add(geoms)
        for name in _UNUSED:
            if name in element.attributes:
                model.findings.remark(f"{name} of contact pairs is ignored", label)
        friction = floats(element, "friction", 5, ())
        if min(friction, default=0.0) < 0.0:
            raise element.error(f"friction={element.attributes['friction']!r} must be at least 0")
        friction = (*friction, *PAIR_FRICTION[len(friction) :])
        if friction[0] != friction[1] or friction[3] != friction[4]:
            model.findings.remark(
                "contact pairs have different friction along both tangents; the first number counts", label
            )
        solref = (*floats(element, "solref", 2, ()), *SOLREF)[:2]
        if not is_solref(solref):
            model.findings.remark("contacts have a solref with a 0 or with two signs, which is ignored", label)
            solref = SOLREF
        result.append(
            {
                "geom1": element.get("geom1"), "geom2": element.get("geom2"), "condim": read_condim(element), "friction": friction,
                "solref": solref, "solimp": read_solimp(element), "margin": element.number("margin", 0.0, low=0.0),
                "gap": element.number("gap", 0.0, low=0.0),
            }
        )  # fmt: skip
    return result


class ContactSettings:
    """The settings of a file.

    A file in which some geom states ``solref`` or ``solimp`` is soft as in MuJoCo: also its other geoms, which then have MuJoCo's defaults.
    A file in which some geom states a ``priority`` or a ``condim`` other than 3 has MuJoCo's rules for friction. Where geoms of a file
    differ in nothing but their sliding friction, contacts between them have the larger one, as in MuJoCo.

    Args:
        builder: the model builder.
        model: the file.
        geoms: its geoms with collisions.
        pairs: settings of pairs, see :func:`read_pair_settings`.
        scale: of lengths.
    """

    def __init__(self, builder, model: Mjcf, geoms: list[Geom], pairs: list[dict], scale: float):
        self.builder, self.pairs, self.scale = builder, pairs, scale
        stated = [geom.contact for geom in geoms]
        friction = any(contact["condim"] != 3 or contact.get("priority", 0) for contact in stated)
        softness = any(
            "solimp" in contact or ("solref" in contact and is_solref(_solref(contact))) for contact in stated
        )
        sliding = {
            contact["friction"][0] if "friction" in contact else builder.default_shape_cfg.mu for contact in stated
        }
        larger = len(sliding) > 1 and not friction
        self.rules = FRICTION_RULE * friction + SOFTNESS_RULE * softness + LARGER_RULE * larger

    def declare(self) -> None:
        """Declares the custom attributes, if there is anything to say."""
        if self.rules or self.pairs:
            declare_contact_settings(self.builder)

    def of_geom(self, geom: Geom) -> dict:
        """Entries of the custom attributes of a geom."""
        if not self.rules:
            return {}
        contact = geom.contact
        width = 2
        solimp = list(contact.get("solimp", SOLIMP))
        solimp[width] *= self.scale
        solref = _solref(contact)
        values = {
            "contact_rules": self.rules, "condim": contact["condim"], "geom_priority": contact.get("priority", 0),
            "geom_solmix": contact.get("solmix", 1.0), "solref": solref if is_solref(solref) else SOLREF, "geom_solimp": solimp,
            "geom_turning_friction": contact.get("friction", FRICTION)[1:],
        }  # fmt: skip
        return {f"{NAMESPACE}:{name}": value for name, value in values.items()}

    def least_gap(self, geom: Geom) -> float:
        """The gap that finds the contacts of this geom's pairs."""
        return max((self.scale * p["margin"] for p in self.pairs if geom.name in (p["geom1"], p["geom2"])), default=0.0)

    def add_pairs(self, shapes: dict[str, int]) -> None:
        """Adds the settings of pairs whose geoms became shapes."""
        for pair in self.pairs:
            if pair["geom1"] not in shapes or pair["geom2"] not in shapes:
                continue
            solimp = list(pair["solimp"])
            solimp[2] *= self.scale
            values = {
                **pair, "geom1": shapes[pair["geom1"]], "geom2": shapes[pair["geom2"]], "solimp": solimp,
                "margin": self.scale * pair["margin"], "gap": self.scale * pair["gap"],
            }  # fmt: skip
            self.builder.add_custom_values(**{f"{PAIR}_{name}": value for name, value in values.items()})


def _solref(contact: dict) -> tuple[float, float]:
    return (*contact.get("solref", SOLREF), 1.0)[:2]


def remark_wide_margin(findings, margin: float, limits: tuple[float, float] | None, name: str) -> None:
    """Remarks on a joint or tendon whose limits can act both at once."""
    if limits is not None and 2.0 * margin > limits[1] - limits[0]:
        findings.remark("margins reach from both limits over the middle of the range; only the nearer limit acts", name)
