"""Writes models as UsdPhysics stages."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field

import numpy as np
from pxr import Sdf

from newton_like.coercion import as_flag
from newton_like.exporters.usd.actuators import ActuatorWriter
from newton_like.exporters.usd.author import Author, Names, as_target, save
from newton_like.exporters.usd.constraints import TendonWriter, write_equalities
from newton_like.exporters.usd.custom import NO_CUSTOM, CustomWriter
from newton_like.exporters.usd.filters import Filters, write_groups
from newton_like.exporters.usd.frames import write_frames
from newton_like.exporters.usd.host import MEMBERS, Host, Scope, scopes
from newton_like.exporters.usd.joints import JointWriter
from newton_like.exporters.usd.shapes import MeshLibrary, ShapeWriter
from newton_like.geometry.transforms import (
    IDENTITY,
    quat_from_matrix,
    quat_inverse,
    quat_rotate,
    transform_inverse,
    transform_multiply,
)
from newton_like.importers.usd import UsdWarning
from newton_like.model.labels import some_of
from newton_like.model.model import Model, resting_body
from newton_like.types import Axis, BodyFlags

CREATOR = "newton_like"

THIN = 1.0e-7
"""A moment of inertia of 0 is written as this fraction of the largest moment, the precision of float32."""


@dataclass(frozen=True)
class UsdExport:
    """Result of :func:`write`.

    Attributes:
        root: path of the default prim.
        bodies, joints, shapes, articulations: path of the prim of each, by index; empty for free joints and for
            articulations of single free bodies, which need no prim.
        worlds: path of each world's prim; empty for a model without worlds.
        copies: number of worlds that are references to an equal one.
        remarks: statements about parts that other tools cannot read, or that are not written, with the labels concerned.
    """

    root: str
    bodies: list[str]
    joints: list[str]
    shapes: list[str]
    articulations: list[str]
    worlds: list[str]
    copies: int
    remarks: dict[str, list[str]] = field(default_factory=dict)


def write(
    model: Model, path, *, state=None, root: str | None = None, share_worlds: bool = True, instance_worlds: bool = False
) -> UsdExport:
    """Saves a model as a UsdPhysics stage, in metres and kilograms.

    ``ModelBuilder.add_usd`` reads the stage as the same model. Attributes ``newtonLike:``, which other tools ignore, have the properties
    for which UsdPhysics and the ``newton:`` attributes of newton 1.8 have no name. Poses of bodies follow from the joint coordinates. Each
    articulation is one prim with its bodies as children and its joints in a scope; a free base has no joint prim. Numbers of the
    schemas are float32. Tendons are prims of type MjcTendon, actuators those of type MjcActuator, and equality constraints MjcEquality
    schemas of joints, in MuJoCo's units. Entries of custom attributes that are not the default are attributes of the prim of their
    entity, :attr:`CustomAttribute.usd_attribute_name`; the list of a joint has all numbers of its dofs, coordinates or constraints.
    Custom attributes of worlds, of the model as a whole and of other frequencies, those that refer to entities and those with a
    ``usd_value_transformer`` are omitted with a warning. Named frames of merged links
    (``model.frames``) are attributes of the prims of their bodies.

    Each mesh is written once and referenced. The same holds for worlds that differ in their position only.

    Args:
        model: the model.
        path: the file: ``.usda`` (text), ``.usdc`` (binary) or ``.usd`` (binary). An existing file is replaced.
        state: positions, velocities, activations and custom attributes of states to write; by default those of the model's initial state.
        root: name of the default prim; by default that of the file.
        share_worlds: refer to equal worlds instead of writing each in full.
        instance_worlds: make these references instances, which USD composes only once. Stronger layers cannot override the
            contents of single instances.

    Returns:
        The paths of all prims.

    Raises:
        TypeError: ``model`` is not a :class:`Model`, ``state`` is not a state, or ``path`` is not a path.
        ValueError: a body has no joint, the file has another suffix, ``root`` is not a valid name of a prim, the model's up axis is X, or
            the state is of another size or not finite.
        FileNotFoundError: the folder of the file does not exist.
        OSError: the file cannot be written.
    """
    if not isinstance(model, Model):
        raise TypeError(f"{model!r} is not a Model; a ModelBuilder makes one by finalize()")
    path, rests = as_target(path), resting_body(model)
    if rests is not None:
        raise ValueError(
            f"{rests} has no joint; other USD tools would let it fall: fix the body to the world with add_joint_fixed"
        )
    if model.up_axis == Axis.X:
        raise ValueError("USD stages have Y or Z up, but this model has X up; build it with up_axis 'Z' or 'Y'")
    if root is None:
        root = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
        root = root if Sdf.Path.IsValidIdentifier(root) else f"_{root}"
    elif not isinstance(root, str) or not Sdf.Path.IsValidIdentifier(root):
        raise ValueError(f"root {root!r} is not a name of a prim; use letters, digits and _, no digit first")
    layer = Sdf.Layer.CreateAnonymous(".usda")
    with Sdf.ChangeBlock():
        made = StageWriter(layer, Host(model, state), root, as_flag(share_worlds, "share_worlds"))
        made.write(as_flag(instance_worlds, "instance_worlds"))
    save(layer, path)
    left_out = made.report.remarks.get(NO_CUSTOM)
    if left_out:
        warnings.warn(UsdWarning(f"{path.name}: {NO_CUSTOM}: {some_of(left_out, 5)}"), stacklevel=2)
    return made.report


def set_stage_metadata(layer: Sdf.Layer, up_axis, root: str) -> None:
    """Sets units, up axis and default prim of a layer."""
    pseudo = layer.pseudoRoot
    pseudo.SetInfo("metersPerUnit", 1.0)
    pseudo.SetInfo("kilogramsPerUnit", 1.0)
    pseudo.SetInfo("upAxis", Axis.from_any(up_axis).name)
    pseudo.SetInfo("customLayerData", {"creator": CREATOR})
    layer.defaultPrim = root


class StageWriter:
    """Writes one model into one layer.

    Args:
        layer: an empty layer.
        host: arrays of the model.
        root: name of the default prim.
        share: whether worlds refer to equal ones.

    Attributes:
        report: the report.
    """

    def __init__(self, layer: Sdf.Layer, host: Host, root: str, share: bool):
        self._layer, self._host, self._root = layer, host, f"/{root}"
        self._author, self._names = Author(layer), Names()
        self._scopes = scopes(host, share)
        self._filters = Filters(host)
        self._meshes = MeshLibrary(self._author, self._names, self._root)
        self._joints = JointWriter(self._author, host, self.remark)
        self._shapes = ShapeWriter(self._author, host, self._names, self._meshes)
        counts = {name: getattr(host.model, f"{kind}_count") for kind, name in MEMBERS.items()}
        self.report = UsdExport(
            root=self._root,
            **{name: [""] * count for name, count in counts.items()},
            worlds=[],
            copies=sum(scope.copy_of is not None for scope in self._scopes),
        )

    def remark(self, statement: str, *labels: str) -> None:
        """Adds a remark about the entities with these labels."""
        self.report.remarks.setdefault(statement, []).extend(labels)

    def write(self, instance: bool) -> None:
        """Writes everything."""
        host = self._host
        set_stage_metadata(self._layer, host.model.up_axis, self._root[1:])
        self._author.prim(self._root, "Xform")
        self._layer.GetPrimAtPath(self._root).SetInfo("kind", "assembly" if len(self._scopes) > 1 else "component")
        shared = self._scopes[0]
        shared.root = self._root
        self._scene(shared, host.gravity[0])
        for scope in self._scopes[1:]:
            scope.root = self._names.path(self._root, host.model.world_label[scope.world])
            self.report.worlds.append(scope.root)
        for scope in self._scopes:
            if scope.copy_of is None:
                self._write_scope(scope)
            else:
                self._copy_scope(scope, instance)
        whole = [scope for scope in self._scopes if scope.copy_of is None]
        write_frames(self._author, host, self.report.bodies, self.report.articulations, whole)
        self._write_constraints()
        self._filters.write(self._author, self.report.bodies, self.report.shapes, self._scopes)
        write_groups(self._author, host, self.report.shapes, self._scopes)
        self._write_custom()

    def _scene(self, scope: Scope, gravity: np.ndarray) -> None:
        author = self._author
        prim = author.prim(self._names.path(scope.root, "physicsScene"), "PhysicsScene")
        gravity = quat_rotate(quat_inverse(scope.frame[3:]), gravity) if scope.world >= 0 else gravity
        size = float(np.linalg.norm(gravity))
        down = -np.array(self._host.model.up_vector) if size == 0.0 else gravity / size
        author.set(prim, "physics:gravityDirection", "vector3f", down)
        author.set(prim, "physics:gravityMagnitude", "float", size)

    def _world_prim(self, scope: Scope):
        author = self._author
        prim = author.prim(scope.root, "Xform")
        author.set(prim, "newtonLike:world", "int", scope.world, uniform=True)
        author.set(prim, "newtonLike:label", "string", self._host.model.world_label[scope.world])
        if scope.prefix:
            author.set(prim, "newtonLike:labelPrefix", "string", scope.prefix)
        return prim

    def _copy_scope(self, scope: Scope, instance: bool) -> None:
        original = scope.copy_of
        prim = self._world_prim(scope)
        prim.referenceList.prependedItems = [Sdf.Reference("", Sdf.Path(original.root))]
        if instance:
            prim.instanceable = True
        if not np.array_equal(scope.frame, IDENTITY):
            self._author.place(prim, scope.frame)
        for name in MEMBERS.values():
            paths = getattr(self.report, name)
            for a, b in zip(getattr(scope, name).tolist(), getattr(original, name).tolist(), strict=True):
                paths[a] = paths[b].replace(original.root, scope.root, 1)

    def _write_scope(self, scope: Scope) -> None:
        host = self._host
        if scope.world >= 0:
            self._world_prim(scope)
            if not np.array_equal(host.gravity[scope.world], host.gravity[0]):
                self._scene(scope, host.gravity[scope.world])
        self._names.path(scope.root, "materials")
        self._names.path(scope.root, "collisionGroups")
        order = {int(body): i for i, body in enumerate(scope.bodies)}
        position = {int(joint): i for i, joint in enumerate(scope.joints)}
        for number, articulation in enumerate(scope.articulations.tolist()):
            self._write_articulation(articulation, number, scope, order)
        for body in scope.bodies.tolist():
            if not self.report.bodies[body]:
                self._write_body(body, order[body], scope.root, scope)
        loops = None
        for joint in scope.joints.tolist():
            articulation = int(host.joint_articulation[joint])
            if articulation < 0:
                loops = loops or self._folder(scope.root, "loopJoints")
                self._write_joint(joint, position[joint], loops, scope)
            elif not host.plain_free[joint]:
                self._write_joint(joint, position[joint], f"{self.report.articulations[articulation]}/joints", scope)
        for joint in scope.joints.tolist():
            leader = int(host.joint_mimic_joint[joint])
            if leader >= 0:
                self._joints.mimic(self.report.joints[joint], joint, self.report.joints[leader])
        for number, shape in enumerate(scope.shapes.tolist()):
            body = int(host.shape_body[shape])
            label = scope.strip(host.shape_label[shape])
            path = self._names.path(self.report.bodies[body] if body >= 0 else scope.root, label)
            self.report.shapes[shape] = path
            self._shapes.write(path, shape, number, scope)

    def _write_constraints(self) -> None:
        model, report = self._host.model, self.report
        tendons = [""] * len(model.tendons)
        if model.tendons:
            writer = TendonWriter(self._author, model)
            for scope in self._scopes:
                own = [n for n, tendon in enumerate(model.tendons) if tendon.world == scope.world]
                for index, n in enumerate(own) if scope.copy_of is None else ():
                    label = scope.strip(model.tendons[n].label)
                    tendons[n] = self._names.path(scope.root, label)
                    writer.write(tendons[n], n, index, label, report.joints, report.shapes)
                for n in own if scope.copy_of is None else ():
                    writer.tie(n, tendons)
        whole = {scope.world for scope in self._scopes if scope.copy_of is None}
        worlds = self._host.joint_world
        write_equalities(self._author, model, report.joints, lambda j: int(worlds[j]) in whole, self.remark)
        if model.actuators:
            self._write_actuators(tendons)

    def _write_actuators(self, tendons: list[str]) -> None:
        model, report = self._host.model, self.report
        writer = ActuatorWriter(self._author, self._host, self.remark)
        paths = {"joint": report.joints, "shape": report.shapes, "tendon": tendons, "body": report.bodies}
        for scope in self._scopes:
            own = [n for n, actuator in enumerate(model.actuators) if actuator.world == scope.world]
            for index, n in enumerate(own) if scope.copy_of is None else ():
                label = scope.strip(model.actuators[n].label)
                writer.write(self._names.path(scope.root, label), n, index, label, paths)

    def _write_custom(self) -> None:
        host, report = self._host, self.report
        writer = CustomWriter(self._author, host, self.remark)
        if host.left_out:
            self.remark(NO_CUSTOM, *host.left_out)
        writer.write({kind: getattr(report, name) for kind, name in MEMBERS.items()}, self._scopes)
        copied = {scope.world for scope in self._scopes if scope.copy_of is not None}
        writer.write_pairs(report.shapes, lambda shape: int(host.shape_world[shape]) not in copied)

    def _folder(self, parent: str, name: str) -> str:
        path = self._names.path(parent, name)
        self._author.prim(path, "Scope")
        return path

    def _write_articulation(self, articulation: int, number: int, scope: Scope, order: dict[int, int]) -> None:
        host, author = self._host, self._author
        joints = range(int(host.articulation_start[articulation]), int(host.articulation_end[articulation]))
        label = scope.strip(host.articulation_label[articulation])
        first = joints[0]
        if len(joints) == 1 and host.plain_free[first]:
            # A free body needs no articulation prim; other tools simulate it faster without one.
            path = self._write_body(
                int(host.joint_child[first]), order[int(host.joint_child[first])], scope.root, scope
            )
            prim = author.layer.GetPrimAtPath(path)
            author.set(prim, "newtonLike:articulationLabel", "string", label)
        else:
            # Importers add the suffix "_articulation" for a body without an articulation prim, so prims do not have it.
            path = self._names.path(scope.root, label.removesuffix("_articulation") or label)
            self.report.articulations[articulation] = path
            prim = author.prim(path, "Xform", apis=["PhysicsArticulationRootAPI", "NewtonArticulationRootAPI"])
            self._names.path(path, "joints")
            author.set(prim, "newtonLike:label", "string", label)
            author.set(prim, "newtonLike:index", "int", number)
            touching = self._filters.self_colliding[articulation]
            author.set(prim, "newton:selfCollisionEnabled", "bool", touching)
            children = sorted(int(host.joint_child[joint]) for joint in joints)
            for body in children:
                self._write_body(body, order[body], path, scope)
            if any(not host.plain_free[joint] for joint in joints):
                author.prim(f"{path}/joints", "Scope")
        for joint in joints:
            if host.plain_free[joint]:
                prim = author.layer.GetPrimAtPath(self.report.bodies[int(host.joint_child[joint])])
                author.set(prim, "newtonLike:baseJointLabel", "string", scope.strip(host.joint_label[joint]))
                author.set(prim, "newtonLike:baseJointIndex", "int", int(np.searchsorted(scope.joints, joint)))

    def _write_body(self, body: int, index: int, parent: str, scope: Scope) -> str:
        host, author = self._host, self._author
        label = scope.strip(host.body_label[body])
        path = self._names.path(parent, label)
        self.report.bodies[body] = path
        prim = author.prim(path, "Xform", apis=["PhysicsRigidBodyAPI", "PhysicsMassAPI", "NewtonMassAPI"])
        author.set(prim, "newtonLike:label", "string", label)
        author.set(prim, "newtonLike:index", "int", index)
        pose = transform_multiply(transform_inverse(scope.frame), host.pose[body])
        author.place(prim, pose)
        self._write_mass(prim, body)
        if host.body_flags[body] & BodyFlags.KINEMATIC:
            author.set(prim, "physics:kinematicEnabled", "bool", True)
        twist = quat_rotate(quat_inverse(host.pose[body, 3:]), host.twist[body].reshape(2, 3))
        if twist.any():
            author.set(prim, "physics:velocity", "vector3f", twist[0])
            author.set(prim, "physics:angularVelocity", "vector3f", np.degrees(twist[1]))
        return path

    def _write_mass(self, prim, body: int) -> None:
        host, author = self._host, self._author
        mass, inertia = float(host.body_mass[body]), host.body_inertia[body]
        author.set(prim, "physics:centerOfMass", "point3f", host.body_com[body])
        if mass == 0.0:
            # In UsdPhysics 0 means "not given".
            author.set(prim, "newtonLike:massless", "bool", True)
            self.remark(
                "other tools compute the mass of bodies without mass from their colliders", host.body_label[body]
            )
            return
        author.set(prim, "physics:mass", "float", mass)
        moments, axes = principal(inertia)
        moments = moments.astype(np.float32)
        if moments.any():
            # In UsdPhysics a moment of 0 means "not given", so the zero moment of a thin rod becomes a small number.
            moments[moments == 0.0] = THIN * moments.max()
            author.set(prim, "physics:diagonalInertia", "float3", moments)
            author.set(prim, "physics:principalAxes", "quatf", axes)
        else:
            self.remark(
                "other tools compute the inertia of bodies without inertia from their colliders", host.body_label[body]
            )
        xx, yy, zz = np.diagonal(inertia)
        author.set(prim, "newton:inertia", "double[]", (xx, yy, zz, inertia[0, 1], inertia[0, 2], inertia[1, 2]))

    def _write_joint(self, joint: int, index: int, folder: str, scope: Scope) -> None:
        host = self._host
        parent, child = int(host.joint_parent[joint]), int(host.joint_child[joint])
        path = self._names.path(folder, scope.strip(host.joint_label[joint]))
        self.report.joints[joint] = path
        ends = (self.report.bodies[parent] if parent >= 0 else scope.root, self.report.bodies[child])
        self._joints.write(path, joint, index, ends, scope, self._filters.colliding_joint[joint])


def principal(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments ``[3]``, and the rotation ``[4]`` from the principal axes to the axes of the inertia ``[3, 3]``."""
    off = np.abs(inertia - np.diag(np.diagonal(inertia))).max()
    if off <= 1.0e-9 * np.abs(inertia).max():
        return np.diagonal(inertia).copy(), np.array([0.0, 0.0, 0.0, 1.0])
    moments, axes = np.linalg.eigh(0.5 * (inertia + inertia.T))
    if np.linalg.det(axes) < 0.0:
        axes[:, 2] = -axes[:, 2]
    return np.maximum(moments, 0.0), quat_from_matrix(axes)
