"""Parses the physics of a USD stage.

Semantics: UsdPhysics (https://openusd.org/release/api/usd_physics_page_front.html). This file does not use the builder.
"""

from __future__ import annotations

import math
import re

import numpy as np
from pxr import Tf, Usd, UsdGeom, UsdPhysics, UsdShade

from newton_like.importers.shared import Options
from newton_like.importers.usd.checks import Checks
from newton_like.importers.usd.joints import KINDS, JointReader
from newton_like.importers.usd.physx_tendons import NAMESPACE, SCHEMA
from newton_like.importers.usd.records import Body, Mass, Material, Scene, Shape, Tendon
from newton_like.importers.usd.shapes import GPRIMS, ShapeReader
from newton_like.importers.usd.values.pose import quat_rotate, transform, transform_inverse, transform_multiply
from newton_like.importers.usd.values.units import SENTINEL, Placement, Reader, Units, placement
from newton_like.importers.xml_source import ImportFileError

EARTH_GRAVITY = 9.81
"""Gravity [m/s^2] of a scene without gravityMagnitude; UsdPhysics specifies "Earth gravity"."""


class StageParser:
    """Parses a stage in one traversal.

    Args:
        stage: a ``Usd.Stage``.
        source: its name for messages.
        time: a ``Usd.TimeCode``.
        root_path: path of the prim whose descendants are read.
        ignore: regular expressions of paths to leave out.
        options: options of the user.
        left_out: paths that are ignored with their descendants.
    """

    def __init__(self, stage, source: str, time, root_path: str, ignore, options: Options, left_out=()):
        self._stage, self._options = stage, options
        self.reader = Reader(source, time)
        units = Units(UsdGeom.GetStageMetersPerUnit(stage), UsdPhysics.GetStageKilogramsPerUnit(stage))
        self.scene = Scene(source, units, str(UsdGeom.GetStageUpAxis(stage)), reader=self.reader)
        self.scene.prim_at = stage.GetPrimAtPath
        self._root_path, self._ignore = root_path, [re.compile(pattern) for pattern in ignore]
        self._left_out = left_out
        self._cache = UsdGeom.XformCache(time)
        self._shapes = ShapeReader(self.reader, units.meters, options.mesh_maxhullvert, self.scene.remark)
        self._joints = JointReader(self.reader, units, self.scene.remark, self._frame_of)
        self._checks = Checks(stage, self.reader, self.scene.remark)
        self._owner: dict[str, str | None] = {}
        self._places: dict[str, Placement] = {}
        self.scene.stretch_of = lambda prim: self._place(prim, str(prim.GetPath())).stretch
        self._joint_prims: list = []
        self._group_prims: list = []
        self._colliders: list = []
        self._drawn: list = []

    def parse(self) -> Scene:
        """Parses the stage. Raises ImportFileError for an invalid stage."""
        scene, root = self.scene, self._stage.GetPrimAtPath(self._root_path)
        if not root:
            raise ValueError(f"{scene.source}: root_path {self._root_path!r} names no prim; give a path of the stage")
        for name, value in (("metersPerUnit", scene.units.meters), ("kilogramsPerUnit", scene.units.kilograms)):
            if not (math.isfinite(value) and 1.0e-12 <= value <= 1.0e12):
                raise ImportFileError(f"{scene.source}: {name} is {value:g}; correct the metadata of the stage")
        if not UsdGeom.StageHasAuthoredMetersPerUnit(self._stage):
            scene.remark("metersPerUnit is missing; USD's default of 0.01 (centimetres) is used", "/")
        walk = iter(Usd.PrimRange(root, Usd.TraverseInstanceProxies()))
        for prim in walk:
            path = str(prim.GetPath())
            if (
                path in self._left_out
                or (self._ignore and any(pattern.search(path) for pattern in self._ignore))
                or self._visit(prim, path)
            ):
                walk.PruneChildren()
        for prim, kind, applied in self._joint_prims:
            if self._options.only_load_enabled_joints and not self.reader.flag(prim, "physics:jointEnabled", True):
                continue
            scene.joints[str(prim.GetPath())] = self._joints.read(prim, kind, applied)
        self._scale_mimics()
        self._bind_materials()
        self._read_groups()
        return scene

    def _visit(self, prim, path: str) -> bool:
        """Reads a prim. Returns true if its children are to be skipped."""
        kind, applied = prim.GetTypeName(), prim.GetAppliedSchemas()
        owner = self._owner.get(path.rpartition("/")[0])
        known = True
        names = prim.GetAuthoredPropertyNames()
        self._checks.look(prim, names)
        if "PhysicsRigidBodyAPI" in applied and self._read_body(prim, path, applied):
            owner = path
        self._owner[path] = owner
        if "PhysicsArticulationRootAPI" in applied:
            self._read_root(prim, path)
        if "PhysicsFilteredPairsAPI" in applied:
            targets = self.reader.targets(prim, "physics:filteredPairs")
            self.scene.filters += [(path, str(target)) for target in targets]
        if kind in GPRIMS:
            self._read_shape(prim, path, owner, applied)
        elif kind in KINDS:
            self._joint_prims.append((prim, KINDS[kind], applied))
        elif kind == "PhysicsScene":
            self._read_scene(prim)
        elif kind == "PhysicsCollisionGroup":
            if not prim.HasAttribute("newtonLike:collisionGroup"):  # else each shape has its own attribute
                self._group_prims.append(prim)
        elif kind == "MjcTendon":
            targets = [str(t) for r in prim.GetAuthoredRelationships() for t in r.GetForwardedTargets()]
            self._read_tendon(prim, path, "mjc", "mjc:", targets)
        elif kind == "MjcActuator":
            self.scene.actuators.append(path)
        elif "PhysicsCollisionAPI" in applied and not prim.IsA(UsdGeom.Gprim):
            self.scene.remark("CollisionAPI has no effect on prims without geometry", prim)
        elif kind == "PointInstancer" or (kind and self._is_foreign(prim, kind, applied)):
            self.scene.leftovers.not_understood[f"prims of type {kind}"] += 1
            return kind == "PointInstancer"
        elif kind == "Xform" and self.reader.get(prim, "newtonLike:geometry") == "none":
            self._read_shape(prim, path, owner, applied)
        elif _is_site(prim):
            self._read_site(prim, path, owner)
        else:
            known = kind != "Material" and any(name.startswith("Physics") for name in applied)
        if _authored_schemas(prim, SCHEMA) or any(name.startswith(NAMESPACE) for name in names):
            self._read_tendon(prim, path, "physx", NAMESPACE, [path])
        if "PhysicsMassAPI" in applied and not {"PhysicsRigidBodyAPI", "PhysicsCollisionAPI"} & set(applied):
            self.scene.remark("MassAPI has no effect on prims that are neither bodies nor colliders", prim)
        if kind not in ("Shader", "NodeGraph", "MjcTendon", "MjcActuator"):
            self.scene.leftovers.look(prim, applied, known, names)
        return False

    def _is_foreign(self, prim, kind: str, applied) -> bool:
        """Whether a prim has a type of physics or geometry that is not read."""
        if "PhysicsCollisionAPI" in applied or kind.startswith(("Physx", "Physics", "Mjc", "Newton")):
            return True
        if prim.IsA(UsdPhysics.Joint):
            return True
        shown = not self._options.hide_visuals or self._options.parse_visuals_as_colliders
        return shown and prim.IsA(UsdGeom.Gprim) and not prim.IsA(UsdGeom.Subset)

    def _place(self, prim, path: str) -> Placement:
        """Frame of a prim in the stage.

        Raises:
            ImportFileError: a scale of zero, or numbers that are not finite.
        """
        place = self._places.get(path)
        if place is None:
            try:
                matrix = self._cache.GetLocalToWorldTransform(prim)
            except Tf.ErrorException as error:
                words = " ".join(str(error).split())[-160:]
                raise self.reader.error(prim, f"its xformOps, or those above it, cannot be read: {words}") from error
            place = placement(matrix, self.scene.units.meters)
            if place is None:
                raise self.reader.error(prim, "its frame has a scale of 0 or a number that is not finite; correct it")
            self._places[path] = place
        return place

    def _read_body(self, prim, path: str, applied) -> bool:
        """Reads a body. Returns false if the body is disabled, so that its colliders are static."""
        reader, units = self.reader, self.scene.units
        enabled = reader.flag(prim, "physics:rigidBodyEnabled", True)
        if not enabled and self._options.only_load_enabled_rigid_bodies:
            return False
        place = self._place(prim, path)
        if place.sheared:
            self.scene.remark(
                "frames of bodies are sheared (rotated below a nonuniform scale); the nearest rotation is used", prim
            )
        velocity = units.meters * reader.vector(prim, "physics:velocity", np.zeros(3))
        spin = math.pi / 180.0 * reader.vector(prim, "physics:angularVelocity", np.zeros(3))
        self.scene.bodies[path] = Body(
            path=path,
            pose=place.pose,
            mass=self._read_mass(prim, place, applied),
            velocity=np.concatenate([quat_rotate(place.pose[3:], velocity), quat_rotate(place.pose[3:], spin)]),
            kinematic=reader.flag(prim, "physics:kinematicEnabled", False),
        )
        return True

    def _read_mass(self, prim, place: Placement, applied) -> Mass:
        result = Mass()
        if "PhysicsMassAPI" not in applied:
            return result
        reader, units = self.reader, self.scene.units
        # In these attributes zero (or infinity) means "not given".
        result.mass = units.kilograms * reader.number(prim, "physics:mass", 0.0, low=0.0) or None
        result.density = units.density * reader.number(prim, "physics:density", 0.0, low=0.0) or None
        com = reader.numbers(prim, "physics:centerOfMass")
        com = np.full(3, math.inf) if com is None else com
        if com.shape != (3,) or np.isnan(com).any():
            raise reader.error(prim, f"physics:centerOfMass is {com.tolist()}; give three numbers")
        if np.all(np.abs(com) < SENTINEL):
            result.com = units.meters * (place.stretch @ com)
        moments = reader.vector(prim, "physics:diagonalInertia", np.zeros(3))
        if moments.min() < 0.0:
            raise reader.error(prim, f"physics:diagonalInertia {moments.tolist()} has a negative moment; correct it")
        axes = self._principal_axes(prim)
        if moments.any():
            turn = np.eye(3) if axes is None else np.stack([quat_rotate(axes, e) for e in np.eye(3)], axis=1)
            result.inertia = units.inertia * (turn * moments) @ turn.T
        elif axes is not None and abs(axes[3]) < 1.0:
            self.scene.remark("principalAxes have no effect without diagonalInertia", prim)
        tensor = reader.get(prim, "newton:inertia")
        if tensor is not None and len(tensor):
            result.inertia = units.inertia * self._tensor(prim, tensor)
        if reader.flag(prim, "newtonLike:massless", False):
            result.mass, result.inertia = 0.0, np.zeros((3, 3))
        return result

    def _principal_axes(self, prim) -> np.ndarray | None:
        """Principal axes of the inertia; zeros mean "not given" in the schema."""
        axes = self.reader.get(prim, "physics:principalAxes")
        if axes is None or (hasattr(axes, "GetImaginary") and axes.GetReal() == 0.0 and not any(axes.GetImaginary())):
            return None
        return self.reader.rotation(prim, "physics:principalAxes")

    def _tensor(self, prim, value) -> np.ndarray:
        """Reads the inertia of NewtonMassAPI: ``xx yy zz xy xz yz`` about the centre of mass, in the body's axes."""
        numbers = np.array(value, dtype=np.float64)
        if numbers.shape != (6,) or not np.all(np.isfinite(numbers)):
            raise self.reader.error(prim, f"newton:inertia is {value}; give six numbers: xx, yy, zz, xy, xz, yz")
        xx, yy, zz, xy, xz, yz = numbers
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    def _read_shape(self, prim, path: str, owner: str | None, applied) -> None:
        reader = self.reader
        is_site = _is_site(prim)
        collider = "PhysicsCollisionAPI" in applied
        if self._options.parse_visuals_as_colliders:
            if collider:
                return
            collider = not is_site
        elif not collider and not is_site and self._options.hide_visuals:
            return
        image = UsdGeom.Imageable(prim)
        time = reader.time
        shown = image.ComputeVisibility(time) != "invisible" and image.ComputePurpose() in ("default", "render")
        if not collider and not is_site and not shown and not prim.HasAttribute("newtonLike:index"):
            return
        try:
            place = self._place(prim, path)
            approximation = None
            if "PhysicsMeshCollisionAPI" in applied and collider and not self._options.skip_mesh_approximation:
                approximation = reader.token(prim, "physics:approximation", "none")
            pieces = self._shapes.read(prim, place, approximation)
        except ValueError as error:
            if collider:
                raise
            self.scene.remark("visuals cannot be used and are ignored", f"{path} ({error})")
            return
        shape = Shape(path, owner, pieces, place.pose, collider=collider, site=is_site, shown=shown)
        if collider:
            shape.collides = reader.flag(prim, "physics:collisionEnabled", True)
            shape.mass = self._read_mass(prim, place, applied)
            self._read_margins(prim, shape)
            self._colliders.append((prim, shape))
        self._read_color(prim, shape)
        self.scene.shapes[path] = shape

    def _read_margins(self, prim, shape: Shape) -> None:
        """Reads margin and gap. In PhysX, contacts are at ``restOffset`` and detected from ``contactOffset`` on. The wall of a shell has
        the thickness of the margin."""
        reader, meters = self.reader, self.scene.units.meters
        if reader.token(prim, "newton:massModel", "solid") == "shell":
            shape.settings["is_solid"] = False
        rest, contact = (reader.authored(prim, f"physxCollision:{name}Offset") for name in ("rest", "contact"))
        rest, contact = (None if offset is None or math.isinf(offset) else offset for offset in (rest, contact))
        margin = reader.authored(prim, "newton:contactMargin")
        gap = reader.authored(prim, "newton:contactGap")
        if margin is None:
            margin = reader.authored(prim, "mjc:margin") if rest is None else rest
        if gap is None:
            gap = reader.authored(prim, "mjc:gap") if contact is None else contact - (rest or 0.0)
        if margin is not None and margin < 0.0:
            self.scene.remark("rest offsets below 0 are ignored", prim)
            margin = None
        for name, value in (("margin", margin), ("gap", gap)):
            if value is not None and math.isfinite(value):
                if value < 0.0:
                    raise reader.error(prim, f"the contact {name} {value:g} is negative; give at least 0")
                shape.settings[name] = meters * value

    def _read_color(self, prim, shape: Shape) -> None:
        """Reads display colour and opacity, own or inherited; see ``_bind_materials`` for prims without them."""
        color = self._primvar(prim, "displayColor", 3)
        if color is None:
            self._drawn.append((prim, shape))
        else:
            shape.color = tuple(color.tolist())
        opacity = self._primvar(prim, "displayOpacity", 1)
        shape.opacity = None if opacity is None else float(opacity[0])

    def _primvar(self, prim, name: str, width: int) -> np.ndarray | None:
        """First entry of a primvar with values between 0 and 1, of the prim or of its nearest ancestor with the primvar."""
        primvar = UsdGeom.PrimvarsAPI(prim).FindPrimvarWithInheritance(name)
        if not primvar or not primvar.HasValue():
            return None
        owner = primvar.GetAttr().GetPrim()
        numbers = self.reader.numbers(owner, f"primvars:{name}")
        if numbers is None or not numbers.size:
            return None
        if numbers.size % width or not np.isfinite(numbers).all():
            self.scene.remark(f"primvars:{name} is not a list of {width} finite numbers and is ignored", owner)
            return None
        return np.clip(numbers.reshape(-1, width)[0], 0.0, 1.0)

    def _read_site(self, prim, path: str, owner: str | None) -> None:
        place = self._place(prim, path)
        self.scene.shapes[path] = Shape(path, owner, [], place.pose, site=True, shown=False)

    def _read_scene(self, prim) -> None:
        reader, scene = self.reader, self.scene
        if scene.gravity is not None:
            scene.remark("several physics scenes; the gravity of the first is used", prim)
            return
        magnitude = reader.limit(prim, "physics:gravityMagnitude", -math.inf)
        direction = reader.vector(prim, "physics:gravityDirection", np.zeros(3))
        if magnitude == math.inf:
            raise reader.error(prim, "physics:gravityMagnitude is infinite; give a number, or -inf for Earth's")
        # In UsdPhysics a negative number means Earth's gravity.
        magnitude = EARTH_GRAVITY if magnitude < 0.0 else scene.units.meters * magnitude
        if not direction.any():
            direction = -np.eye(3)["XYZ".index(scene.up_axis)]
        scene.gravity = magnitude * direction / np.linalg.norm(direction)
        if not reader.flag(prim, "newton:gravityEnabled", True):
            scene.gravity = np.zeros(3)

    def _read_root(self, prim, path: str) -> None:
        setting = None
        for name in ("newton:selfCollisionEnabled", "physxArticulation:enabledSelfCollisions"):
            if setting is None:
                setting = self.reader.flag(prim, name, None)
        self.scene.roots[path] = setting
        if self._options.override_root_xform:
            self.scene.root_poses[path] = self._place(prim, path).pose

    def _frame_of(self, joint, target, frame: np.ndarray):
        """The body of a prim, and a frame of that prim in the body; see `frame_of` of ``JointReader``."""
        path = str(target.GetPrimPath())
        prim = self._stage.GetPrimAtPath(target.GetPrimPath())
        if not prim:
            raise self.reader.error(
                joint, f"it connects <{path}>, which does not exist; correct physics:body0 or body1"
            )
        if path not in self._owner:
            raise self.reader.error(
                joint, f"it connects <{path}>, which is not imported; widen root_path or ignore the joint as well"
            )
        place = self._place(prim, path)
        local = transform(self.scene.units.meters * (place.stretch @ frame[:3]), frame[3:])
        world = transform_multiply(place.pose, local)
        body = self._owner[path]
        if body is None:
            return None, world
        if body == path:
            return body, local
        return body, transform_multiply(transform_inverse(self.scene.bodies[body].pose), world)

    def _scale_mimics(self) -> None:
        """Converts mimic factors between linear and angular joints, which are in lengths of the stage per radian."""
        for joint in self.scene.joints.values():
            if joint.mimic is None:
                continue
            leader = self.scene.joints.get(joint.mimic[0])
            if leader is not None:
                power = bool(joint.linear) - bool(leader.linear)
                path, offset, factor = joint.mimic
                joint.mimic = (path, offset, factor * self.scene.units.meters**power)

    def _bind_materials(self) -> None:
        for shape, material in _bound(self._colliders, "physics", self._read_material):
            shape.material = material
        for shape, color in _bound(self._drawn, "", lambda material: _diffuse(material, self.reader.time)):
            shape.color = color

    def _read_material(self, material) -> Material | None:
        prim = material.GetPrim()
        if "PhysicsMaterialAPI" not in prim.GetAppliedSchemas():
            return None
        reader, units = self.reader, self.scene.units
        static, dynamic, restitution, density = (
            reader.number(prim, f"physics:{name}", 0.0, low=0.0)
            for name in ("staticFriction", "dynamicFriction", "restitution", "density")
        )
        if restitution > 1.0:
            raise reader.error(prim, f"physics:restitution {restitution:g} is above 1; no impact gains energy")
        if static != dynamic:
            self.scene.remark("static and dynamic friction differ; the dynamic one is used", prim)
        settings = {"mu": dynamic, "restitution": restitution}
        for setting, choices in (
            ("mu_torsional", (("newton:torsionalFriction", units.meters), ("mjc:torsionalfriction", units.meters))),
            ("mu_rolling", (("newton:rollingFriction", units.meters), ("mjc:rollingfriction", units.meters))),
            ("time_constant", (("newtonLike:timeConstant", 1.0),)),
            ("damping_ratio", (("newtonLike:dampingRatio", 1.0),)),
            ("ke", (("newton:contactStiffness", units.kilograms),)),
            ("kd", (("newton:contactDamping", units.kilograms),)),
            ("kf", (("newton:contactFrictionGain", units.kilograms),)),
        ):
            for name, unit in choices:
                if setting not in settings and reader.authored(prim, name) is not None:
                    settings[setting] = unit * reader.number(prim, name, low=0.0)
        return Material(settings, units.density * density or None)

    def _read_groups(self) -> None:
        """Reads the pairs of sets of colliders whose collisions the collision groups disable."""
        if not self._group_prims:
            return
        groups = [UsdPhysics.CollisionGroup(prim) for prim in self._group_prims]
        queries = [group.GetCollidersCollectionAPI().ComputeMembershipQuery() for group in groups]
        table = UsdPhysics.CollisionGroup.ComputeCollisionGroupTable(self._stage)
        members: list[list[str]] = [[] for _ in groups]
        for prim, _ in self._colliders:
            path = prim.GetPath()
            for member, query in zip(members, queries, strict=True):
                if query.IsPathIncluded(path):
                    member.append(str(path))
        for i, first in enumerate(self._group_prims):
            for j in range(i, len(groups)):
                apart = not table.IsCollisionEnabled(first.GetPath(), self._group_prims[j].GetPath())
                if apart and members[i] and members[j]:
                    self.scene.groups.append((members[i], members[j]))

    def _read_tendon(self, prim, path: str, kind: str, prefix: str, targets: list[str]) -> None:
        settings = {a.GetName(): a.Get() for a in prim.GetAuthoredAttributes() if a.GetName().startswith(prefix)}
        self.scene.tendons.append(Tendon(path, kind, tuple(targets), settings))


def _authored_schemas(prim, prefix: str) -> bool:
    """Whether an API schema with this prefix is authored, registered with USD or not."""
    listed = prim.GetMetadata("apiSchemas")
    if listed is not None and not hasattr(listed, "GetAppliedItems"):
        raise ImportFileError(f"<{prim.GetPath()}>: its apiSchemas are {str(listed)[:40]!r}; give a list of names")
    return listed is not None and any(name.startswith(prefix) for name in listed.GetAppliedItems())


def _is_site(prim) -> bool:
    return _authored_schemas(prim, "NewtonSiteAPI") or _authored_schemas(prim, "MjcSiteAPI")


def _bound(users: list, purpose: str, read):
    """Shapes of the pairs ``(prim, shape)`` whose prims have a bound material, each with the result of `read` for the material."""
    prims, found = [prim for prim, _ in users], {}
    materials = UsdShade.MaterialBindingAPI.ComputeBoundMaterials(prims, purpose)[0] if prims else []
    for (_, shape), material in zip(users, materials, strict=True):
        if material:
            path = str(material.GetPath())
            if path not in found:
                found[path] = read(material)
            yield shape, found[path]


def _diffuse(material, time) -> tuple | None:
    """Diffuse colour of a material with a preview surface."""
    source = material.ComputeSurfaceSource()
    shader = source[0] if isinstance(source, tuple) else source
    colour = shader.GetInput("diffuseColor") if shader else None
    value = colour.Get(time) if colour else None
    if value is None or not hasattr(value, "__len__") or len(value) != 3:
        return None
    return tuple(np.clip(np.array(value, dtype=np.float64), 0.0, 1.0).tolist())
