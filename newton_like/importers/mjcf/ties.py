"""Equality constraints of MJCF as mimic joints, polynomials and loop joints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.polynomial import Polynomial

from newton_like.geometry.transforms import IDENTITY, transform, transform_inverse, transform_multiply
from newton_like.importers.mjcf.constraints import Equality, Names, TendonRecord
from newton_like.importers.mjcf.records import Mjcf
from newton_like.importers.shared import NO_FORCES
from newton_like.model.mujoco.contact_settings import NAMESPACE
from newton_like.model.mujoco.equality_settings import EQUALITY_DEFAULTS, declare_equality_settings
from newton_like.model.tendons import TendonTie, length_of


class Ties:
    """Equality constraints as mimic joints, polynomials and loop joints.

    Attributes:
        followers: for the name of each mimic joint: the leader's name, ``c0`` and ``c1`` of ``q = c0 + c1 q_leader``, and the
            equality.
        polynomials: the other equalities of joints.
    """

    def __init__(self, model: Mjcf, names: Names, equalities: list[Equality], tendons: list[TendonRecord], options):
        self.model, self.equalities, self.tendons, self.options = model, equalities, tendons, options
        self._names = names
        self._index = {body.name: i for i, body in enumerate(model.bodies)}
        self._static_pose = model.world_poses()
        self.polynomials: list[Equality] = []
        self.followers = self._find_followers()

    def _find_followers(self) -> dict[str, tuple[str, float, float, Equality]]:
        joints = self._names.tables["joint"]
        found: dict[str, tuple] = {}
        for equality in self.equalities:
            if equality.kind != "joint":
                continue
            if self.options.skip_equality_constraints:
                continue
            # mimic joints cannot be switched on later
            if not equality.active or not equality.second or any(equality.polycoef[2:]) or equality.first in found:
                self.polynomials.append(equality)
                continue
            c0, c1 = equality.polycoef[:2]
            offset = joints[equality.first].ref + c0 - c1 * joints[equality.second].ref
            found[equality.first] = (equality.second, offset, c1, equality)
        # A soft equality is a row between its own two joints: it is no part of a chain of mimic joints.
        soft = {name for name, (*_, equality) in found.items() if equality.softness is not None}
        for name in [name for name, (leader, *_) in found.items() if leader in found and soft & {name, leader}]:
            self.polynomials.append(found.pop(name)[-1])
        # A mimic joint whose leader is a mimic joint follows the joint at the end of the chain.
        for name in list(found):
            leader, offset, factor, equality = found[name]
            seen = {name}
            while leader in found and leader not in seen:
                seen.add(leader)
                leader, more, times, _ = found[leader]
                offset, factor = offset + factor * more, factor * times
            if leader in seen:
                self.polynomials.append(equality)
                del found[name]
                continue
            found[name] = (leader, offset, factor, equality)
        return found

    def _body_of(self, equality: Equality, which: str) -> tuple[int, np.ndarray]:
        """Body of one side of a connect, weld or distance, and the pose of the connected frame in it."""
        name = getattr(equality, which)
        if equality.kind == "distance":
            geom = self._names.tables["geom"][name]
            return geom.body, geom.pose
        if equality.on_sites:
            site = self._names.tables["site"][name]
            return site.body, site.pose
        return (self._index[name] if name else 0), IDENTITY

    def _closes_loop(self, equality: Equality) -> bool:
        """Whether an equality becomes a loop joint: a connect, a weld, or a distance of spheres, which is one of their centres."""
        if equality.kind != "distance":
            return equality.kind in ("connect", "weld")
        geoms = self._names.tables["geom"]
        return all(name and geoms[name].kind == "sphere" for name in (equality.first, equality.second))

    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of bodies that must be in one articulation."""
        owner = {joint.name: i for i, body in enumerate(self.model.bodies) for joint in body.joints}
        ties = [(owner[name], owner[leader]) for name, (leader, *_) in self.followers.items()]
        ties += [(owner[e.first], owner[e.second]) for e in self.polynomials if e.second]
        if not self.options.skip_equality_constraints:
            carriers = {record.name: self._carrier(record, owner) for record in self.tendons}
            for equality in self.equalities:
                ends = [carriers.get(name, -1) for name in (equality.first, equality.second)]
                if equality.kind == "tendon" and min(ends) > 0:
                    ties.append((ends[0], ends[1]))
                if self._closes_loop(equality):
                    ties.append((self._body_of(equality, "first")[0], self._body_of(equality, "second")[0]))
        if self.options.parent_body >= 0:
            roots = [i for i, body in enumerate(self.model.bodies) if body.parent == 0]
            ties += [(roots[0], root) for root in roots[1:]]
        return ties

    def _carrier(self, record: TendonRecord, owner: dict[str, int]) -> int:
        """A body that moves of those that a tendon runs through; -1: none."""
        bodies = [owner[name] for name, _ in record.joints]
        bodies += [self._names.tables[kind][name].body for kind, name, *_ in record.path if kind != "pulley"]
        return max(bodies, default=-1)

    def add_tendon_ties(self, builder, index: dict[str, int]) -> None:
        """Adds equality constraints of tendons; ``index`` gives tendon indices by name."""
        for equality in self.equalities:
            if equality.kind != "tendon" or self.options.skip_equality_constraints:
                continue
            own, leader = index[equality.first], index[equality.second] if equality.second else index[equality.first]
            units = [self.options.scale if builder.tendons[n].is_spatial else 1.0 for n in (own, leader)]
            scaled = tuple(units[0] * c / units[1] ** i for i, c in enumerate(equality.polycoef))
            softness = {}
            if equality.softness is not None:
                solref, (low, high, width, *curve) = equality.softness
                softness = {"solref": tuple(solref), "solimp": (low, high, units[0] * width, *curve)}
            rest = tuple(length_of(builder.tendons[n], builder) for n in (own, leader))
            tie = TendonTie(leader=leader - own, polycoef=scaled, rest=rest, enabled=equality.active, **softness)
            builder.tendons[own] = replace(builder.tendons[own], ties=(*builder.tendons[own].ties, tie))

    @property
    def alone(self) -> set[str]:
        """Names of the joints that need a joint of the builder of their own."""
        names = {name for name, (leader, *_) in self.followers.items() for name in (name, leader)}
        return names | {name for e in self.polynomials for name in (e.first, e.second) if name}

    def declare(self, builder) -> None:
        """Declares the custom attributes of equalities, if some are needed."""
        used = [] if self.options.skip_equality_constraints else self.equalities
        if self.polynomials or any(e.softness is not None for e in used if e.kind not in ("distance", "tendon")):
            declare_equality_settings(builder)

    def _soften(self, builder, equality: Equality, target: int, **values) -> None:
        """Adds the row of an equality with softness, or of a polynomial. Polynomials are switched on and off by their row, and others by
        their joint."""
        if equality.softness is not None:
            solref, (low, high, width, *curve) = equality.softness
            slides = equality.kind != "joint" or self._names.tables["joint"][equality.first].kind == "slide"
            width *= self.options.scale if slides else 1.0
            values |= {"eq_rules": 1, "eq_solref": solref, "eq_solimp": (low, high, width, *curve)}
        elif target >= 0:
            return
        values["equality_constraint_target"] = target
        values = {**EQUALITY_DEFAULTS, **values}
        builder.add_custom_values(**{f"{NAMESPACE}:{name}": value for name, value in values.items()})

    def add_polynomials(self, builder, index: dict[str, int]) -> None:
        """Adds polynomials between joints; ``index`` gives joint indices by name."""
        joints = self._names.tables["joint"]
        for equality in self.polynomials:
            names = [name for name in (equality.first, equality.second) if name]
            units = [self.options.scale if joints[n].kind == "slide" else 1.0 for n in names]
            # q1 = ref1 + sum of c_i (q2 - ref2)^i in the units of the builder
            law = Polynomial(equality.polycoef if equality.second else equality.polycoef[:1])
            if equality.second:
                law = law(Polynomial([-joints[equality.second].ref, 1.0 / units[1]]))
            coefficients = units[0] * (law + joints[equality.first].ref).coef
            equality.joint = index[equality.first]
            self._soften(
                builder, equality, -1, equality_constraint_joint1=index[equality.first],
                equality_constraint_joint2=index[equality.second] if equality.second else -1,
                equality_constraint_polycoef=(*coefficients.tolist(), *[0.0] * 5)[:5],
                equality_constraint_enabled=int(equality.active),
            )  # fmt: skip

    def add_mimics(self, builder, index: dict[str, int]) -> None:
        """Adds mimic relations to the builder; ``index`` gives joint indices by name."""
        joints = self._names.tables["joint"]
        for name, (leader, offset, factor, equality) in self.followers.items():
            unit, leader_unit = (self.options.scale if joints[n].kind == "slide" else 1.0 for n in (name, leader))
            builder.set_joint_mimic(index[name], index[leader], coeffs=(unit * offset, factor * unit / leader_unit))
            equality.joint = index[name]
            self._soften(builder, equality, index[name])

    def add_loops(self, builder, hosts, links, in_link) -> None:
        """Adds loop joints for connects, welds and distances."""
        findings = self.model.findings
        for equality in self.equalities:
            far = equality.kind == "distance"
            if far and not self._closes_loop(equality):
                findings.remark("distances between geoms that are not spheres are kept as data only", equality.name)
            if not self._closes_loop(equality) or self.options.skip_equality_constraints:
                continue
            (first, at_first), (second, at_second) = (self._body_of(equality, side) for side in ("first", "second"))
            if not equality.on_sites and not far:
                relative = equality.relpose
                if relative is None:
                    relative = transform_multiply(
                        transform_inverse(self._static_pose[first]), self._static_pose[second]
                    )
                if equality.kind == "weld":
                    at_second = transform(equality.anchor)
                    at_first = transform_multiply(relative, at_second)
                else:
                    at_first = transform(equality.anchor)
                    at_second = transform_multiply(transform_inverse(relative), at_first)
            (first, at_first), (second, at_second) = (hosts.place(first, at_first), hosts.place(second, at_second))
            ends = [(links[first], in_link(first, at_first)), (links[second], in_link(second, at_second))]
            if first == second or ends[0][0] == ends[1][0]:
                findings.remark(
                    "equalities connect bodies that are merged into one body, and are ignored", equality.name
                )
                continue
            if ends[1][0] < 0:
                ends.reverse()
            (parent, x_p), (child, x_c) = ends
            placed = {
                "parent_xform": x_p,
                "child_xform": x_c,
                "collision_filter_parent": False,
                "enabled": equality.active,
            }
            placed["label"] = f"{self.model.name}/{equality.name}"
            if far:
                geoms = self._names.tables["geom"]
                radii = [geoms[name].size[0] for name in (equality.first, equality.second)]
                length = self.options.scale * (equality.distance + sum(radii))
                if not length > 0.0:
                    findings.remark(
                        "distances between spheres are less than minus the sum of their radii, and are ignored",
                        equality.name,
                    )
                    continue
                equality.joint = builder.add_joint_distance(
                    parent, child, min_distance=length, max_distance=length, **placed
                )
                if equality.softness is not None:
                    findings.remark("distances have a softness, which is ignored", equality.name)
                continue
            if equality.kind == "connect" or equality.torquescale == 0.0:
                equality.joint = builder.add_joint_ball(parent, child, **NO_FORCES, **placed)
            else:
                equality.joint = builder.add_joint_fixed(parent, child, **placed)
            share = {"equality_constraint_torquescale": equality.torquescale} if equality.torquescale else {}
            self._soften(builder, equality, equality.joint, **share)
