"""Adds the tendons of PhysX of a USD stage to a builder: PhysxTendonAxis schemas of joints, and PhysxTendonAttachment schemas of bodies.

PhysX's schemas are usually not registered with USD, so the names of applied schemas and the attributes are read without them.
Lengths are in units of the stage, and angles in degrees.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile

from newton_like.importers.shared import bounded
from newton_like.importers.usd.values.pose import transform, transform_multiply
from newton_like.model.tendons import Tendon

SCHEMA = "PhysxTendon"
NAMESPACE = "physxTendon:"

NOT_LOADED = (
    "tendons of PhysX with a joint or link that is in no articulation here are kept in the report and have no effect"
)
NO_SCHEMA = "attributes of PhysX's tendons have no effect without their API schema of the same instance name; apply it"
NO_INSTANCE = (
    "schemas of PhysX's tendons have no effect without an instance name; apply them as PhysxTendonAxisRootAPI:name"
)
MISPLACED = "schemas of PhysX's tendons have no effect here; axes are applied to joints, and attachments to prims with a RigidBodyAPI"
DISABLED = "tendons of PhysX whose tendonEnabled is false are kept in the report and have no effect"
NO_ROOT = (
    "axes of PhysX's tendons without a PhysxTendonAxisRootAPI of the same name in their articulation have no effect"
)
NO_GEARING = "tendons of PhysX whose gearings are all 0 have no effect"
FOLLOWS = (
    "forces of PhysX's fixed tendons follow the gearing; forceCoefficient, which is not proportional to it, is not used"
)
NO_LEAF = "attachments of PhysX's tendons that lie between no root and leaf have no effect"
NO_PULLEY = "tendons of PhysX with a gearing of 0 or less at an attachment are kept in the report and have no effect"
ALONG = "tendons of PhysX pull at all attachments of a path, as its length changes, and not only at root and leaf as in PhysX"
"""Remarks."""


@dataclass(eq=False)
class _Axis:
    """An axis of a fixed tendon: the joint's path, the instance's name, and indices of joint and articulation (-1: in no articulation)."""

    path: str
    name: str
    is_root: bool
    joint: int
    articulation: int


@dataclass(eq=False)
class _Attachment:
    """An attachment of a spatial tendon: the link's path, the instance's name, ``Root``, ``Leaf`` or "", and the site (-1: none yet)."""

    path: str
    name: str
    kind: str
    site: int = -1


class PhysxTendons:
    """Tendons of PhysX of one scene.

    Args:
        builder: the builder with the added scene.
        scene: the records.
        made: the ``SceneBuilder`` that added them.
    """

    def __init__(self, builder, scene, made):
        self.builder, self.scene, self.made, self.reader = builder, scene, made, scene.reader
        self._axes: list[_Axis] = []
        self._attachments: dict[tuple[str, str], _Attachment] = {}

    def add(self) -> None:
        """Adds all of them, the fixed ones first.

        Raises:
            ImportFileError: an attribute is invalid, or an attachment that it names does not exist.
        """
        for record in self.scene.tendons:
            if record.kind == "physx":
                self._look(record.path)
        self._add_fixed()
        self._add_spatial()

    def _look(self, path: str) -> None:
        """Finds the axes and attachments of a prim."""
        prim, scene = self.scene.prim_at(path), self.scene
        applied = _applied(prim)
        named = {name: kinds for name, kinds in applied.items() if name}
        if "" in applied:
            scene.remark(NO_INSTANCE, path)
        authored = {attribute.GetName() for attribute in prim.GetAuthoredAttributes()}
        if any(name.startswith(NAMESPACE) and _instance(name) not in named for name in authored):
            scene.remark(NO_SCHEMA, path)
        is_joint, is_body = prim.IsA("PhysicsJoint"), "PhysicsRigidBodyAPI" in prim.GetAppliedSchemas()
        for name, kinds in named.items():
            if is_joint and kinds & {"Axis", "AxisRoot"}:
                joint = self.made.joints.get(path, -1)
                owner = self.builder.joint_articulation[joint] if joint >= 0 else -1
                self._axes.append(_Axis(path, name, "AxisRoot" in kinds, joint if owner >= 0 else -1, owner))
            elif is_body and not is_joint and kinds & {"Attachment", "AttachmentRoot", "AttachmentLeaf"}:
                if kinds >= {"AttachmentRoot", "AttachmentLeaf"}:
                    raise self.reader.error(
                        prim, f"attachment {name!r} of a PhysX tendon is both root and leaf; apply one of these schemas"
                    )
                ends = [end for end in ("Root", "Leaf") if f"Attachment{end}" in kinds]
                self._attachments[path, name] = _Attachment(path, name, "".join(ends))
            else:
                scene.remark(MISPLACED, path)

    # ------------------------------------------------------------------------------------------------- fixed

    def _add_fixed(self) -> None:
        groups = {axis: [axis] for axis in self._axes if axis.is_root}
        roots: dict[tuple, list[_Axis]] = {}
        for root in groups:
            roots.setdefault((root.name, root.articulation), []).append(root)
            roots.setdefault((root.name, None), []).append(root)
        for axis in self._axes:
            if not axis.is_root:
                owner = None if axis.joint < 0 else axis.articulation
                root = self._root_of(axis, roots.get((axis.name, owner), []))
                if root is None:
                    self.scene.remark(NO_ROOT, axis.path)
                else:
                    groups[root].append(axis)
        for root, axes in groups.items():
            prim = self.scene.prim_at(root.path)
            if not self.reader.flag(prim, f"{NAMESPACE}{root.name}:tendonEnabled", True):
                self.scene.remark(DISABLED, root.path)
            elif any(axis.joint < 0 for axis in axes):
                self.scene.remark(NOT_LOADED, root.path)
            else:
                self._add_one_fixed(root, axes)

    def _root_of(self, axis: _Axis, roots: list[_Axis]) -> _Axis | None:
        """The root of an axis, of those of its name in its articulation: the only one, or the nearest above its joint. For a joint in no
        articulation: of all of its name."""
        if axis.joint < 0:
            # the tendon that this joint is missing in, by its path
            return max(roots, key=lambda root: _shared(root.path, axis.path), default=None)
        if len(roots) < 2:
            return roots[0] if roots else None
        builder, joint = self.builder, axis.joint
        carriers = {
            body: index for index, body in enumerate(builder.joint_child) if builder.joint_articulation[index] >= 0
        }
        while joint is not None:
            near = [root for root in roots if root.joint == joint]
            if len(near) == 1:
                return near[0]
            joint = None if near else carriers.get(builder.joint_parent[joint])
        paths = ", ".join(f"<{root.path}>" for root in roots)
        raise self.reader.error(
            self.scene.prim_at(axis.path),
            f"its axis {axis.name!r} of a PhysX tendon may belong to the roots of {paths}; rename the tendons",
        )

    def _add_one_fixed(self, root: _Axis, axes: list[_Axis]) -> None:
        reader, units, prim = self.reader, self.scene.units, self.scene.prim_at(root.path)
        joints, ratios = [], {}
        for axis in axes:
            dof, unit = self._dof(axis)
            coefficient = units.meters * self._first(axis, "gearing") / unit.position
            own = self.scene.prim_at(axis.path).GetAttribute(f"{NAMESPACE}{axis.name}:forceCoefficient")
            # a length per radian, or a number without unit
            arm = coefficient / (units.meters if unit is units.angular else 1.0)
            stated = self._first(axis, "forceCoefficient") if own and own.HasAuthoredValue() else arm
            if coefficient or stated:
                ratios[axis.path] = stated / arm if arm else math.inf
            if coefficient:
                joints.append((axis.joint, dof, coefficient))
        if not joints:
            self.scene.remark(NO_GEARING, root.path)
            return
        # PhysX multiplies the force of the tendon by forceCoefficient, which here is a factor on the gains if it is the same for all axes
        factor = next(iter(ratios.values()))
        if not (
            0.0 < factor < math.inf and all(math.isclose(ratio, factor, rel_tol=1.0e-3) for ratio in ratios.values())
        ):
            factor = 1.0
            for path, ratio in ratios.items():
                if not math.isclose(ratio, 1.0, rel_tol=1.0e-3):
                    self.scene.remark(FOLLOWS, path)
        name = f"{NAMESPACE}{root.name}:"
        rest = units.meters * reader.number(prim, f"{name}restLength", 0.0)
        self.builder.add_tendon(
            Tendon(
                label=f"{root.path}/{root.name}",
                joints=tuple(joints),
                rest_length=(rest, rest),
                limits=self._limits(prim, name),
                **self._gains(prim, name, factor),
            )
        )

    def _dof(self, axis: _Axis):
        """The number of the dof of an axis in its joint, and its units."""
        builder, units = self.builder, self.scene.units
        dofs = self.made.dofs[axis.path]
        if len(dofs) != 1:
            raise self.reader.error(
                self.scene.prim_at(axis.path),
                f"axis {axis.name!r} of a PhysX tendon needs a joint that turns about one axis or slides along one, and this one has"
                f" {len(dofs)} degrees of freedom; apply it to another joint",
            )
        dof = dofs[0] - builder.joint_qd_start[axis.joint]
        return dof, units.linear if dof < builder.joint_dof_dim[axis.joint][0] else units.angular

    def _first(self, axis: _Axis, name: str) -> float:
        """The first number of an array, the only one that PhysX uses."""
        prim, full = self.scene.prim_at(axis.path), f"{NAMESPACE}{axis.name}:{name}"
        values = self.reader.numbers(prim, full)
        if values is None:
            return 1.0
        if not values.size or not math.isfinite(values.flat[0]):
            raise self.reader.error(prim, f"{full} is {values.tolist()}; give one finite number")
        return float(values.flat[0])

    # ----------------------------------------------------------------------------------------------- spatial

    def _add_spatial(self) -> None:
        used: set[_Attachment] = set()
        for leaf in self._attachments.values():
            if leaf.kind == "Leaf":
                chain = list(self._chain(leaf))
                used.update(chain)
                if chain[-1].kind != "Root":
                    self.scene.remark(NOT_LOADED, leaf.path)
                else:
                    self._add_one_spatial(chain[::-1])
        for attachment in self._attachments.values():
            if attachment not in used:
                self.scene.remark(NO_LEAF, attachment.path)

    def _chain(self, leaf: _Attachment) -> Iterator[_Attachment]:
        """The attachments from a leaf to its root, or to one whose parent is not loaded."""
        here, passed = leaf, set()
        while here is not None:
            if here in passed:
                raise self.reader.error(
                    self.scene.prim_at(leaf.path),
                    f"the parents of attachment {leaf.name!r} of a PhysX tendon lead back to attachment {here.name!r} of <{here.path}>;"
                    " let them lead to a root",
                )
            passed.add(here)
            yield here
            here = None if here.kind == "Root" else self._parent(here)

    def _parent(self, attachment: _Attachment) -> _Attachment | None:
        """The parent of an attachment; None: its link is not loaded."""
        reader, prim, name = self.reader, self.scene.prim_at(attachment.path), f"{NAMESPACE}{attachment.name}:"
        links = [str(target) for target in reader.targets(prim, f"{name}parentLink")]
        parent = reader.token(prim, f"{name}parentAttachment", "")
        if len(links) != 1 or not parent:
            raise reader.error(
                prim,
                f"{name}parentLink has {len(links)} targets and {name}parentAttachment is {parent!r}; name a link and an attachment of"
                " it, up to one with a PhysxTendonAttachmentRootAPI",
            )
        (link,) = links
        if not self.scene.prim_at(link):
            raise reader.error(prim, f"{name}parentLink names <{link}>, which does not exist; name a link")
        if link in self.scene.bodies and (link, parent) not in self._attachments:
            raise reader.error(
                prim, f"{name}parentAttachment names {parent!r}, which is not applied to <{link}>; correct it"
            )
        return self._attachments.get((link, parent))

    def _add_one_spatial(self, chain: list[_Attachment]) -> None:
        reader, units = self.reader, self.scene.units
        root, leaf = chain[0], chain[-1]
        prim, name = self.scene.prim_at(root.path), f"{NAMESPACE}{root.name}:"
        last, own = self.scene.prim_at(leaf.path), f"{NAMESPACE}{leaf.name}:"
        if not reader.flag(prim, f"{name}tendonEnabled", True):
            self.scene.remark(DISABLED, root.path)
            return
        gearings = [
            reader.number(self.scene.prim_at(here.path), f"{NAMESPACE}{here.name}:gearing", 1.0) for here in chain[1:]
        ]
        rest = reader.limit(last, f"{own}restLength", -math.inf)
        if rest >= 0.0:
            rest = units.meters * reader.number(last, f"{own}restLength")
        settings = {"limits": self._limits(last, own), **self._gains(prim, name)}
        is_loaded = all(here.path in self.made.frames for here in chain) and self.made.options.load_sites
        if not is_loaded or min(gearings) <= 0.0:
            self.scene.remark(NO_PULLEY if is_loaded else NOT_LOADED, leaf.path)
            return
        if len(chain) > 2:
            self.scene.remark(ALONG, leaf.path)
        path, before = [], 1.0
        for (parent, here), gearing in zip(pairwise(chain), gearings, strict=True):
            if gearing != before:
                path.append(("pulley", 1.0 / gearing))
            if gearing != before or not path:
                path.append(("site", self._site(parent)))
            path.append(("site", self._site(here)))
            before = gearing
        self.builder.add_tendon(
            Tendon(
                label=f"{leaf.path}/{leaf.name}",
                path=tuple(path),
                rest_length=(rest, rest) if rest >= 0.0 else None,
                **settings,
            )
        )

    def _site(self, attachment: _Attachment) -> int:
        """The site at an attachment; it is added for the first tendon."""
        if attachment.site < 0:
            scene, prim = self.scene, self.scene.prim_at(attachment.path)
            local = self.reader.vector(prim, f"{NAMESPACE}{attachment.name}:localPos", (0.0, 0.0, 0.0))
            place = transform(scene.units.meters * (scene.stretch_of(prim) @ local))
            body, frame = self.made.frames[attachment.path]
            label = f"{attachment.path}/{attachment.name}_site"
            attachment.site = self.builder.add_site(body, xform=transform_multiply(frame, place), label=label)
        return attachment.site

    # ---------------------------------------------------------------------------------------------- settings

    def _gains(self, prim, name: str, factor: float = 1.0) -> dict:
        """Offset, and spring, damper and springs of the limits that a root states, times a factor."""
        reader, units = self.reader, self.scene.units
        gain = factor * units.linear.gain
        return {
            "stiffness": gain * reader.number(prim, f"{name}stiffness", 0.0, low=0.0),
            "damping": gain * reader.number(prim, f"{name}damping", 0.0, low=0.0),
            "limit_ke": gain * reader.number(prim, f"{name}limitStiffness", 0.0, low=0.0),
            "offset": units.meters * reader.number(prim, f"{name}offset", 0.0),
        }

    def _limits(self, prim, name: str) -> tuple[float, float] | None:
        low = self.reader.limit(prim, f"{name}lowerLimit", -math.inf)
        high = self.reader.limit(prim, f"{name}upperLimit", math.inf)
        if low > high or low == math.inf or high == -math.inf:
            raise self.reader.error(
                prim,
                f"{name}lowerLimit {low:g} and {name}upperLimit {high:g} leave no length between them; correct them",
            )
        if (low, high) == (-math.inf, math.inf):
            return None
        return bounded(self.scene.units.meters * low), bounded(self.scene.units.meters * high)


def _applied(prim) -> dict[str, set[str]]:
    """Tendon schemas of a prim by instance name, such as ``{"t": {"Axis", "AxisRoot"}}``."""
    listed, found = prim.GetMetadata("apiSchemas"), {}
    for token in () if listed is None else listed.GetAppliedItems():
        schema, _, name = token.partition(":")
        if schema.startswith(SCHEMA) and schema.endswith("API"):
            found.setdefault(name, set()).add(schema.removeprefix(SCHEMA).removesuffix("API"))
    return found


def _instance(attribute: str) -> str:
    """The instance name in the name of an attribute."""
    return attribute.removeprefix(NAMESPACE).rpartition(":")[0]


def _shared(path: str, other: str) -> int:
    """How many names two paths share at their beginning."""
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(path.split("/"), other.split("/"), strict=False))
    )
